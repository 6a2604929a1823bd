# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Sourced by tests with two machines after ktap.sh: a program on our library on the one, the
# distribution's librdmacm and rdma_ucm on the other. Each script runs on both machines; what
# is loaded there decides which library is used.

# shellcheck source=selftests/lib/ktap.sh
. "$TOP/selftests/lib/ktap.sh"

WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
NUMBER=0
ENDLESS=

# on_library COMMAND...: becomes that, on the library of this side, for $LIMIT or 90 s
on_library() {
	[ ! -e /dev/infiniband/rdma_ep ] || export LD_LIBRARY_PATH=$BUILD/lib/compat
	export LD_DEBUG=files LD_DEBUG_OUTPUT=$WORK/ld
	# Destroying what a device keeps takes some 10 s.
	exec timeout -k 20 $((${LIMIT:-90} * SLOW)) "$@"
}

# program COMMAND...: with its output in $WORK/log
program() {
	local code=0
	(on_library "$@") >>"$WORK/log" 2>&1 || code=$?
	[ "$code" = 0 ] || echo "exit code $code: $*" >>"$WORK/log"
	return "$code"
}

# right_library: what the programs loaded is what this side is to use
right_library() {
	local want=/lib/ loaded
	[ ! -e /dev/infiniband/rdma_ep ] || want=$BUILD/lib/compat/
	loaded=$(sed -n 's/.*calling init: \(.*librdmacm\.so\.1.*\)/\1/p' "$WORK"/ld.* | sort -u)
	[ -n "$loaded" ] && [[ $loaded == *"$want"* ]] && return
	echo "the library was '$loaded', not in $want"
	return 1
}

# listening: somebody does, on this side
listening() {
	local i
	for ((i = 0; i < 300 * SLOW; i++)); do
		# The state is shown a moment before requests are taken.
		! rdma resource show cm_id | grep -q "state LISTEN" || { sleep 0.3 && return; }
		sleep 0.1
	done
	echo "nobody listens"
	return 1
}

# An endless server has done well when it still runs after its client, and has no say in it.
end_server() {
	kill "$1" || { echo "the server has ended" >>"$WORK/log" && return 1; }
	wait "$1" || true
}

# between SERVER-ROLE SERVER-COMMAND... -- CLIENT-COMMAND...: this side's part of it
between() {
	local role=$1 code=0 pid
	local -a server=()
	shift
	while [ "$1" != -- ]; do
		server+=("$1")
		shift
	done
	shift
	if [ "$ROLE" = "$role" ]; then
		if [ -n "$ENDLESS" ]; then
			(on_library "${server[@]}") >>"$WORK/log" 2>&1 &
		else
			program "${server[@]}" &
		fi
		pid=$!
		listening || code=1
		barrier "${0##*/}-listening-$NUMBER"
		[ -n "$ENDLESS" ] || wait "$pid" || code=1
	else
		barrier "${0##*/}-listening-$NUMBER"
		program "$@" || code=1
	fi
	barrier "${0##*/}-done-$NUMBER"
	[ -z "$ENDLESS" ] || [ "$ROLE" != "$role" ] || end_server "$pid" || code=1
	[ "$code" != 0 ] || right_library || code=1
	[ "$code" = 0 ] || cat "$WORK/log"
	rm -f "$WORK"/*
	return "$code"
}

# both_ways NAME SERVER-COMMAND... -- CLIENT-COMMAND...: the server on a, then on b. ADDRESS
# and ADDRESS6 in the commands become those of the server.
both_ways() {
	local name=$1 role ip ip6
	local -a command
	shift
	for role in a b; do
		NUMBER=$((NUMBER + 1))
		[ "$ROLE" = $role ] && ip=$MY_IP ip6=$MY_IP6 || ip=$PEER_IP ip6=$PEER_IP6
		command=("${@//ADDRESS6/$ip6}")
		command=("${command[@]//ADDRESS/$ip}")
		ktap_test "$name, server on $role" between $role "${command[@]}"
	done
}

# both_ways_endless: the same for a server that never ends; it is killed when the client has.
both_ways_endless() {
	ENDLESS=1
	both_ways "$@"
	ENDLESS=
}
