#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 600 2400
# sides: ours ours
#
# Side b sends what no peer should (see forge.c) to a listener with a backlog of 8 on side a, while
# honest clients of b connect to it. The victim must take no harm, honest clients must be served, and
# nothing may be left. The long form is ten times as much of it. RDMA_EP_SEED chooses other packets.

# shellcheck disable=SC2317 # ktap_test calls the functions
# shellcheck source=selftests/pair/lib.sh
. "$TOP/selftests/pair/lib.sh"
# shellcheck source=selftests/pair/storm.sh
. "$TOP/selftests/pair/storm.sh"

MORE=1
! is_long || MORE=10

meminfo() {
	awk -v name="$1:" '$1 == name { print $2 }' /proc/meminfo
}

# victim BARRIER SERVER-OPTION...: listens until the attack is over
victim() {
	local name=$1 code=0 slab most=0 now
	shift
	slab=$(meminfo Slab)
	rm -f "$SHARED/$name-over"
	storm_server -l -b 8 -t 10 "$@" || code=1
	barrier "$name-listening" || return
	while [ ! -e "$SHARED/$name-over" ]; do
		now=$(meminfo Slab)
		[ "$now" -le "$most" ] || most=$now
		sleep 0.5
	done
	is_ours && grep -E 'memory_bytes|backlog_overflows|event.CONNECT_REQUEST|rejected_by' /proc/net/rdma_ep | tr '\n' ' '
	kill "$SERVER" || code=1
	wait "$SERVER" || code=$?
	storm_result "$code" "$WORK/server" && code=0
	[ "$code" != 0 ] || right_library || code=1
	rm -f "$WORK"/*
	nothing_left || code=1
	echo "slab: $slab KiB before, $most at most, $(meminfo Slab) after"
	barrier "$name-done"
	return "$code"
}

# client OPTION...: an honest one
client() {
	local code=0
	(on_library "$STORM" client -p "$PORT" "$@" "$PEER_IP") >"$WORK/client" 2>&1 || code=$?
	storm_result "$code" "$WORK/client"
}

# forge OPTION...
forge() {
	"$BUILD/selftests/pair/forge" -p "$PORT" "$@" "$PEER_IP"
}

# attack BARRIER HONEST-OPTIONS FORGE-OPTION...: and after it all honest clients are served.
attack() {
	local name=$1 honest=$2 code=0 pid
	shift 2
	barrier "$name-listening" || return
	forge "$@" &
	pid=$!
	# shellcheck disable=SC2086 # several words
	[ -z "$honest" ] || client $honest || code=1
	wait "$pid" || code=1
	client -a -n 8 -w 4 || code=1
	: >"$SHARED/$name-over"
	[ "$code" != 0 ] || right_library || code=1
	rm -f "$WORK"/*
	barrier "$name-done"
	nothing_left || code=1
	return "$code"
}

# malice NAME HONEST-OPTIONS SERVER-OPTIONS FORGE-OPTION...
malice() {
	local what=$1 honest=$2 serve=$3
	shift 3
	NUMBER=$((NUMBER + 1))
	if [ "$ROLE" = a ]; then
		# shellcheck disable=SC2086 # several words
		ktap_test "$what" victim "${0##*/}-$NUMBER" $serve
	else
		ktap_test "$what" attack "${0##*/}-$NUMBER" "$honest" "$@"
	fi
}

seed() {
	echo "${RDMA_EP_SEED:-$NUMBER}"
}

ip neigh flush dev d0
malice "good requests from nobody" "-n 8 -w 4" "" -s "$(seed)" -n $((200 * MORE)) -r 100 req "$MY_IP"
malice "what is no good request" "-n 8 -w 4" "" -s "$(seed)" -n $((1000 * MORE)) -r 200 \
	odd-req wrong-port unknown-id bad-attribute noise sidr "$MY_IP"
malice "what is no message" "-n 8 -w 4" "" -s "$(seed)" -n $((500 * MORE)) -r 100 \
	short bad-packet no-opcode "$MY_IP"
malice "its own messages, again and changed" "-n 8 -w 4" "" -s "$(seed)" -t $((5 * MORE)) -r 200 \
	replay twist "$MY_IP"
ktap_end
