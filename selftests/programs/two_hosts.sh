#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 300
#
# Two hosts in one machine: network namespaces with a soft-RoCE device each, as Linux has them from
# 7.1 on. They reach each other, and neither has to do with what is the other's.

# shellcheck disable=SC2016,SC2317 # the programs are awk's; ktap_test calls the functions
# shellcheck source=selftests/programs/lib.sh
. "$TOP/selftests/programs/lib.sh"

FIRST=10.78.0.1
SECOND=10.78.0.2

on() {
	ip netns exec "$@"
}

make_host() {
	ip netns add "$1" && ip link set "$2" netns "$1" && on "$1" ip link set lo up &&
		on "$1" ip addr add "$3/24" dev "$2" && on "$1" ip link set "$2" up &&
		on "$1" rdma link add "rxe_$1" type rxe netdev "$2"
}

hosts() {
	ip link add v1 type veth peer name v2 &&
		make_host first v1 "$FIRST" && make_host second v2 "$SECOND"
}

undo() {
	stop_server
	ip netns delete first
	ip netns delete second
	rm -rf "$WORK"
}
trap 'undo 2>/dev/null' EXIT

can_do_it() {
	local version
	version=$(uname -r)
	[ "$(printf '%s\n' 7.1 "$version" | sort -V | head -n 1)" = 7.1 ] ||
		{ echo "rxe knows network namespaces from 7.1 on, this is $version" && return 4; }
	hosts
}

# serve HOST COMMAND...: until somebody listens there.
serve() {
	local host=$1 i
	shift
	(with_library ip netns exec "$host" "$@") >"$WORK/server.log" 2>&1 &
	SERVER_PID=$!
	for ((i = 0; i < 100 * SLOW; i++)); do
		! on "$host" rdma resource show cm_id | grep -q "state LISTEN" || return 0
		sleep 0.2
	done
	echo "nobody listens on $host" >>"$WORK/server.log"
	return 1
}

talk() {
	local code=0
	serve first rping -s -a "$FIRST" -C 5 &&
		client ip netns exec second rping -c -a "$FIRST" -C 5 -V && wait_server || code=1
	finish "$code"
}

# "accepted" of one host and "connected" of the other; here nobody has done anything.
counted() {
	[ "$(on first awk '$1 == "accepted" { print $2 }' /proc/net/rdma_ep)" = 1 ] &&
		[ "$(on second awk '$1 == "connected" { print $2 }' /proc/net/rdma_ep)" = 1 ] &&
		[ "$(on second awk '$1 == "accepted" { print $2 }' /proc/net/rdma_ep)" = 0 ]
}

# A port that is taken on one host is free on the other, and an address of the other's is not here.
own_ports() {
	local code=0 output
	serve first rping -s -P -p 7300 || code=1
	(with_library ip netns exec second timeout $((10 * SLOW)) rping -s -P -p 7300) >"$WORK/second.log" 2>&1
	[ $? = 124 ] || code=1
	output=$( (with_library ip netns exec second rping -s -a "$FIRST" -p 7301) 2>&1) && code=1
	[[ $output == *"Cannot assign requested address"* ]] || { echo "$output" && code=1; }
	finish "$code"
}

# What the other host has is no fault here.
doctor() {
	local output
	output=$(on second rdmaep doctor) || { echo "$output" && return 1; }
	grep -q "^rxe_second ok .* RoCE on v2, is active" <<<"$output" &&
		grep -q "^rxe_first  WARN .* for another network namespace" <<<"$output" ||
		{ echo "$output" && return 1; }
}

# From here there is no way to either.
not_from_here() {
	local code=0
	serve first rping -s -P -a "$FIRST" || code=1
	! (with_library rping -c -a "$FIRST" -C 1) >"$WORK/client.log" 2>&1 || code=1
	finish "$code"
}

# The device of a host goes, with what uses it still there; the other host has its own.
host_goes() {
	local code=0
	serve second rping -s -P -a "$SECOND" || code=1
	on second rdma link delete rxe_second || code=1
	on first rdma link show rxe_first/1 | grep -q ACTIVE || code=1
	finish "$code"
}

ktap_test "two hosts" can_do_it
if [ $KTAP_SKIPPED = 0 ]; then
	ktap_test "they connect" talk
	ktap_test "each counts for itself" counted
	ktap_test "each has its own ports" own_ports
	ktap_test "rdmaep doctor" doctor
	ktap_test "no way from a third" not_from_here
	ktap_test "the device of one goes" host_goes
fi
ktap_end
