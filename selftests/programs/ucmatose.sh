#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 200
#
# ucmatose: many connections at once, ids that migrate, options.

# shellcheck disable=SC2317 # ktap_test calls the functions
# shellcheck source=selftests/programs/lib.sh
. "$TOP/selftests/programs/lib.sh"

# both_ucmatose OPTION...
both_ucmatose() {
	both ucmatose "$@" -- ucmatose "$@" -s "$MY_IP"
}

ktap_test "ucmatose -c 8 -C 2" both_ucmatose -c 8 -C 2
ktap_test "ucmatose -m" both_ucmatose -m -c 4
ktap_test "ucmatose with all options" both_ucmatose -m -c 4 -t 32 -a 14
ktap_test "ucmatose bound on both sides" \
	both ucmatose -b "$MY_IP" -- ucmatose -b "$MY_IP" -s "$MY_IP"
ktap_test "ucmatose -P ib" \
	both ucmatose -P ib -b "$MY_IP" -- ucmatose -P ib -s "$MY_IP"
ktap_test "ucmatose -f name" both ucmatose -c 2 -- ucmatose -f name -c 2 -s "$MY_IP"
ktap_test "ucmatose over IPv6" \
	both ucmatose -c 4 -b "$MY_IP6" -- ucmatose -c 4 -s "$MY_IP6"
ktap_end
