# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Sourced by the tests of unmodified programs. The programs are the distribution's: they find
# our library in place of librdmacm.so.1 by LD_LIBRARY_PATH, and each test makes sure that
# they did. RDMAEP_LIB=stock runs them on librdmacm instead.

# shellcheck source=selftests/lib/ktap.sh
. "$TOP/selftests/lib/ktap.sh"

RDMAEP_LIB=${RDMAEP_LIB:-$BUILD/lib/compat}
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
SERVER_PID=
ALSO_LOADED= # a pattern of what else may be loaded as librdmacm, after the library under test

if [ "$RDMAEP_LIB" != stock ] && [ -e /sys/module/rdma_ucm ]; then
	echo "Bail out! rdma_ucm is loaded"
	exit 1
fi

# with_library COMMAND...: on the library under test, the dynamic linker keeping a diary.
with_library() {
	export LD_DEBUG=files LD_DEBUG_OUTPUT=$WORK/ld
	[ "$RDMAEP_LIB" = stock ] || export LD_LIBRARY_PATH=$RDMAEP_LIB
	exec timeout -k 5 $((60 * SLOW)) "$@"
}

# used_library: every program that ran has loaded the library under test, and $ALSO_LOADED.
used_library() {
	local file loaded n=0
	for file in "$WORK"/ld.*; do
		loaded=$(sed -n 's/.*calling init: \(.*librdmacm\.so\.1.*\)/\1/p' "$file" |
			awk '!seen[$0]++' | xargs)
		[ -n "$loaded" ] || continue # timeout(1) is no user of it
		n=$((n + 1))
		# shellcheck disable=SC2053 # the last is a pattern
		case $RDMAEP_LIB in
		stock) [[ $loaded != "$BUILD"/* ]] && continue ;;
		*) [[ $loaded == "$RDMAEP_LIB/librdmacm.so.1"$ALSO_LOADED ]] && continue ;;
		esac
		echo "the library was $loaded"
		return 1
	done
	[ $n -gt 0 ] || { echo "no program used the library" && return 1; }
}

# start_server COMMAND...: in the background, until somebody listens.
start_server() {
	local i
	(with_library "$@") >"$WORK/server.log" 2>&1 &
	SERVER_PID=$!
	for ((i = 0; i < 300 * SLOW; i++)); do
		! rdma resource show cm_id | grep -q "state LISTEN" || return 0
		kill -0 "$SERVER_PID" 2>/dev/null || break
		sleep 0.1
	done
	echo "it does not listen" >>"$WORK/server.log"
	return 1
}

# wait_server: its exit code.
wait_server() {
	local code=0
	wait "$SERVER_PID" || code=$?
	SERVER_PID=
	[ "$code" = 0 ] || echo "exit code $code" >>"$WORK/server.log"
	return "$code"
}

stop_server() {
	[ -n "$SERVER_PID" ] || return 0
	kill "$SERVER_PID" 2>/dev/null
	wait "$SERVER_PID" 2>/dev/null
	SERVER_PID=
}

# client COMMAND...: its exit code, also of a program that did not end.
client() {
	local code=0
	(with_library "$@") >>"$WORK/client.log" 2>&1 || code=$?
	[ "$code" = 0 ] || echo "exit code $code" >>"$WORK/client.log"
	return "$code"
}

# finish CODE: the end of a test: nothing runs on, and a failure shows what was said.
finish() {
	local code=$1 file
	stop_server
	[ "$code" != 0 ] || used_library || code=1
	for file in "$WORK"/*.log; do
		[ "$code" = 0 ] || sed "s/^/$(basename "$file" .log): /" "$file"
	done
	rm -f "$WORK"/*
	return "$code"
}

# both SERVER-COMMAND... -- CLIENT-COMMAND...: they talk, and both end well.
both() {
	local code=0
	local -a server=()
	while [ "$1" != -- ]; do
		server+=("$1")
		shift
	done
	shift
	start_server "${server[@]}" && client "$@" && wait_server || code=1
	finish "$code"
}
