#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 200
#
# perftest with -R: connections made by rdma_cm, RC and UD.

# shellcheck disable=SC2317 # ktap_test calls the functions
# shellcheck source=selftests/programs/lib.sh
. "$TOP/selftests/programs/lib.sh"

# perf PROGRAM OPTION...
perf() {
	both "$@" -- "$@" "$MY_IP"
}

ktap_test "ib_send_bw -R" perf ib_send_bw -F -R -s 1024 -n 50
ktap_test "ib_write_lat -R" perf ib_write_lat -F -R -s 64 -n 50
ktap_test "ib_read_lat -R" perf ib_read_lat -F -R -s 64 -n 50
ktap_test "ib_send_bw -R -c UD" perf ib_send_bw -F -R -c UD -s 1024 -n 50
ktap_test "ib_send_lat -R -c UD" perf ib_send_lat -F -R -c UD -s 64 -n 50
ktap_end
