#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 300
#
# rping: asynchronous ids and two threads a side; -q keeps the QP to itself; -P serves many
# clients.

# shellcheck disable=SC2317 # ktap_test calls the functions
# shellcheck source=selftests/programs/lib.sh
. "$TOP/selftests/programs/lib.sh"

# both_rping ADDRESS SERVER-OPTION CLIENT-OPTION
both_rping() {
	# shellcheck disable=SC2086 # options are words
	both rping -s $2 ${1:+-a "$1"} -C 5 -- rping -c $3 -a "${1:-$MY_IP}" -C 5 -V
}

# rping's thread for events may come back to a channel that its main thread has destroyed just now;
# all that was to be tried has been done then.
rping_client() {
	client rping -c "$@" || tail -n 2 "$WORK/client.log" | grep -qx "rdma_get_cm_event: Bad file descriptor"
}

# A persistent server never ends: it has done well when its clients have.
persistent() {
	local code=0 i
	start_server rping -s -P -a "$MY_IP" || code=1
	for i in 1 2 3; do
		rping_client -a "$MY_IP" -C "$i" -V || code=1
	done
	kill -0 "$SERVER_PID" || code=1
	finish "$code"
}

ktap_test "IPv4" both_rping "$MY_IP" "" ""
ktap_test "server on a wildcard" both_rping "" "" ""
ktap_test "IPv6" both_rping "$MY_IP6" "" ""
ktap_test "-q on both sides" both_rping "$MY_IP" -q -q
ktap_test "-q on the server" both_rping "$MY_IP" -q ""
ktap_test "-q on the client" both_rping "$MY_IP" "" -q
ktap_test "-P with three clients" persistent
ktap_end
