# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Sourced after lib.sh by the tests that run storm: the network's faults, and what must hold
# afterwards.

STORM=$BUILD/selftests/pair/storm
PORT=7171
# shellcheck disable=SC2034 # on_library's
LIMIT=300

# network NETEM-OPTION... | calm: what happens to what this side sends
network() {
	tc qdisc del dev d0 root 2>/dev/null || true
	[ "$1" = calm ] || tc qdisc add dev d0 root netem limit 20000 "$@"
}

is_ours() {
	[ -e /dev/infiniband/rdma_ep ]
}

# both_ours: on both sides
both_ours() {
	! is_ours || : >"$SHARED/${0##*/}-ours.$ROLE"
	barrier "${0##*/}-whose" && [ -e "$SHARED/${0##*/}-ours.a" ] && [ -e "$SHARED/${0##*/}-ours.b" ]
}

# counter NAME
counter() {
	awk -v name="$1" '$1 == name || $1 == name ":" { print $2 }' /proc/net/rdma_ep
}

# nothing_left: no endpoint, no event that was not read or thrown away with its endpoint
nothing_left() {
	local i left
	is_ours || return 0
	for ((i = 0; i < 100 * SLOW; i++)); do
		left=$(($(counter endpoints) + $(counter contexts) + $(counter channels) + $(counter events_waiting)))
		[ $left != 0 ] || break
		sleep 0.1
	done
	left=$((left + $(counter events_queued) - $(counter events_read) - $(counter events_discarded)))
	left=$((left + $("$BUILD/tools/rdmaep/rdmaep" list | tail -n +2 | wc -l)))
	[ $left != 0 ] || return 0
	echo "something is left:"
	grep -E 'contexts|endpoints|channels|events' /proc/net/rdma_ep
	"$BUILD/tools/rdmaep/rdmaep" list
	return 1
}

# storm_server OPTION...: in the background, as $SERVER, until it listens
storm_server() {
	local i
	(on_library "$STORM" server -p "$PORT" "$@") >"$WORK/server" 2>&1 &
	SERVER=$!
	for ((i = 0; i < 300 * SLOW; i++)); do
		! grep -q listening "$WORK/server" || return 0
		kill -0 "$SERVER" 2>/dev/null || break
		sleep 0.1
	done
	return 1
}

# storm_result CODE FILE: stock may tell an event twice, and our side must not.
storm_result() {
	local code=$1
	sort <"$2" | uniq -c | sed 's/^ *1 //'
	if ! is_ours && [ "$code" = 1 ] && grep -q ': .*told twice [1-9].*overdue 0, no end 0' "$2"; then
		return 0
	fi
	return "$code"
}

# storm SERVER-ROLE CLIENT-OPTION...: this side's part of many connections
storm() {
	local role=$1 code=0 name=${0##*/}-$NUMBER
	shift
	if [ "$ROLE" = "$role" ]; then
		storm_server -b 128 || code=1
		barrier "$name-listening"
		barrier "$name-client"
		network calm # what is still to end may end in peace
		kill "$SERVER" || code=1
		wait "$SERVER" || code=$?
		storm_result "$code" "$WORK/server" && code=0
	else
		barrier "$name-listening"
		(on_library "$STORM" client -p "$PORT" "$@" "$PEER_IP") >"$WORK/client" 2>&1 || code=$?
		storm_result "$code" "$WORK/client" && code=0
		network calm
		barrier "$name-client"
	fi
	[ "$code" != 0 ] || right_library || code=1
	rm -f "$WORK"/*
	nothing_left || code=1
	barrier "$name-done"
	return "$code"
}
