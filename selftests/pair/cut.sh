#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 600
# sides: ours ours
#
# The link of side b goes down while both sides have a connection in every state (see cut.c). Side a,
# which hears nothing more, must be told each end within its bound. Side b need not be: soft-RoCE
# may keep what it could not send, and destroying then waits for 10 s each time. Nothing may be left.

# shellcheck disable=SC2317 # ktap_test calls the functions
# shellcheck source=selftests/pair/lib.sh
. "$TOP/selftests/pair/lib.sh"
# shellcheck source=selftests/pair/storm.sh
. "$TOP/selftests/pair/storm.sh"
LIMIT=500

link_down() {
	local code=0
	sysctl -q net.ipv6.conf.d0.keep_addr_on_down=1
	if [ "$ROLE" = a ]; then
		program "$BUILD/selftests/pair/cut" "$PEER_IP" "ip neigh flush dev d0" || code=1
	else
		program "$BUILD/selftests/pair/cut" -l "$PEER_IP" "ip link set d0 down" || code=1
		ip link set d0 up
		# So that it lets go of what it could not send.
		rdma link delete rxe0 && rdma link add rxe0 type rxe netdev d0 || code=1
	fi
	cat "$WORK/log"
	rm -f "$WORK"/*
	nothing_left || code=1
	barrier "${0##*/}-done"
	return "$code"
}

ktap_test "the link of side b goes down in every state" link_down
ktap_end
