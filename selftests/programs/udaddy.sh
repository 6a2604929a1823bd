#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 200
#
# udaddy: datagrams. mckey: multicast.

# shellcheck disable=SC2317 # ktap_test calls the functions
# shellcheck source=selftests/programs/lib.sh
. "$TOP/selftests/programs/lib.sh"

# start_receiver COMMAND...: until the kernel has joined the group
start_receiver() {
	local i
	(with_library "$@") >"$WORK/server.log" 2>&1 &
	SERVER_PID=$!
	for ((i = 0; i < 300 * SLOW; i++)); do
		! ip maddr show dev d0 | grep -q "239.1.1.1" || return 0
		kill -0 "$SERVER_PID" 2>/dev/null || break
		sleep 0.1
	done
	return 1
}

# multicast SENDER-OPTION...
multicast() {
	local code=0
	start_receiver mckey -m 239.1.1.1 -b "$MY_IP" || code=1
	sleep $((2 * SLOW)) # from the group's membership to the QP's attachment
	[ "$code" = 0 ] && client mckey -m 239.1.1.1 -b "$MY_IP" -s "$@" && wait_server || code=1
	finish "$code"
}

ktap_test "udaddy -c 4" both udaddy -c 4 -- udaddy -c 4 -s "$MY_IP"
ktap_test "udaddy over IPv6" both udaddy -c 4 -b "$MY_IP6" -- udaddy -c 4 -s "$MY_IP6"
ktap_test "mckey" multicast
ktap_test "mckey with a send-only member" multicast -o
ktap_end
