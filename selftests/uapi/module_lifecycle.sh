#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 150
#
# The module's life: loaded, used, held, unloaded, again and again; and what the rest of the
# system sees of it.
#
# The functions are called through ktap_test.
# shellcheck disable=SC2317

# shellcheck source=selftests/lib/ktap.sh
. "$TOP/selftests/lib/ktap.sh"
# Where the module under test is
# shellcheck disable=SC1091
. "$OUT/vm.conf"

DEVICE=/dev/infiniband/rdma_ep
export LD_LIBRARY_PATH=$BUILD/lib/compat

# wait_for SECONDS COMMAND...: until it succeeds
wait_for() {
	local i limit=$(($1 * 10 * SLOW))
	shift
	for ((i = 0; i < limit; i++)); do
		"$@" >/dev/null 2>&1 && return
		sleep 0.1
	done
	echo "in vain: $*"
	return 1
}

# Something to look at: a process that listens, and one that has connected to it.
listener() {
	rping -s -a "$MY_IP" -C 1 &
	LISTENER=$!
	wait_for 10 sh -c "rdma resource show cm_id | grep -q LISTEN"
}

node_is_for_everybody() {
	[ "$(stat -c %a-%F "$DEVICE")" = "666-character special file" ]
}

parameters_are_there() {
	modinfo -p "$VM_MODULE" | grep -q ^max_endpoints: &&
		modinfo -p "$VM_MODULE" | grep -q ^max_backlog: &&
		[ "$(cat /sys/module/rdma_ep/parameters/max_endpoints)" -gt 0 ] &&
		[ "$(cat /sys/module/rdma_ep/parameters/max_backlog)" -gt 0 ]
}

licence_and_version() {
	[ "$(modinfo -F license "$VM_MODULE")" = "Dual BSD/GPL" ] &&
		[ "$(modinfo -F version "$VM_MODULE")" = "$(head -n 1 "$TOP/VERSION")" ]
}

unload_is_refused_while_open() {
	local code=0
	exec {fd}<>"$DEVICE"
	rmmod rdma_ep && code=1
	exec {fd}>&-
	[ "$code" = 0 ] || echo "it was unloaded under an open file"
	return "$code"
}

unload_is_refused_while_used() {
	local code=0
	listener || return
	rmmod rdma_ep && code=1
	kill -9 "$LISTENER"
	wait "$LISTENER"
	return "$code"
}

# The owner of an id is the process that made it, for an accepted one the listener's.
resources_have_an_owner() {
	local shown code=0
	listener || return
	shown=$(rdma resource show cm_id)
	echo "$shown"
	grep LISTEN <<<"$shown" | grep -q "pid $LISTENER.*comm rping" || code=1
	kill -9 "$LISTENER"
	wait "$LISTENER"
	wait_for 10 sh -c "! rdma resource show cm_id | grep -q rping" || code=1
	return "$code"
}

fdinfo_tells_what_is_held() {
	local fd code=1
	listener || return
	for fd in /proc/"$LISTENER"/fd/*; do
		[ "$(readlink "$fd")" = "$DEVICE" ] || continue
		grep . "/proc/$LISTENER/fdinfo/${fd##*/}"
		grep -q "^rdma_ep-endpoints:.*1$" "/proc/$LISTENER/fdinfo/${fd##*/}" && code=0
	done
	kill -9 "$LISTENER"
	wait "$LISTENER"
	return "$code"
}

endpoints_are_limited() {
	local limit code=0
	limit=$(cat /sys/module/rdma_ep/parameters/max_endpoints)
	echo 0 >/sys/module/rdma_ep/parameters/max_endpoints
	RDMAEP_DEBUG=1 timeout $((10 * SLOW)) rping -s -a "$MY_IP" -C 1 2>&1 | tee /dev/stderr |
		grep -q "max_endpoints" || code=1
	echo "$limit" >/sys/module/rdma_ep/parameters/max_endpoints
	return "$code"
}

load_use_unload() {
	local i
	for i in 1 2 3; do
		wait_for 10 rmmod rdma_ep || return
		[ ! -e "$DEVICE" ] || { echo "$DEVICE outlives the module"; return 1; }
		insmod "$VM_MODULE" || return
		wait_for 5 test -c "$DEVICE" || return
		rdma_server &
		wait_for 10 sh -c "rdma resource show cm_id | grep -q LISTEN" || return
		rdma_client -s "$MY_IP" || return
		wait $! || return
	done
}

load_and_unload_at_once() {
	local i
	for i in 1 2 3 4 5 6 7 8 9 10; do
		wait_for 10 rmmod rdma_ep || return
		insmod "$VM_MODULE" || return
	done
}

ktap_test "the device node is for everybody" node_is_for_everybody
ktap_test "parameters" parameters_are_there
ktap_test "licence and version" licence_and_version
ktap_test "rmmod is refused while the device is open" unload_is_refused_while_open
ktap_test "rmmod is refused while a program listens" unload_is_refused_while_used
ktap_test "rdma resource show cm_id names the owner" resources_have_an_owner
ktap_test "fdinfo tells what a file holds" fdinfo_tells_what_is_held
ktap_test "endpoints of a context are limited" endpoints_are_limited
ktap_test "load, use, unload, three times" load_use_unload
ktap_test "load and unload ten times" load_and_unload_at_once
ktap_end
