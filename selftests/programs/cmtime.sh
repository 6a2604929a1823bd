#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 150
#
# cmtime: a hundred connections, one step at a time for all of them. Its server never ends.

# shellcheck disable=SC2317 # ktap_test calls the functions
# shellcheck source=selftests/programs/lib.sh
. "$TOP/selftests/programs/lib.sh"

hundred() {
	local code=0
	start_server cmtime -b "$MY_IP" -c 100 &&
		client cmtime -b "$MY_IP" -s "$MY_IP" -c 100 &&
		grep -q "^connect" "$WORK/client.log" || code=1
	finish "$code"
}

ktap_test "cmtime -c 100" hundred
ktap_end
