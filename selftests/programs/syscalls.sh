#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 120
#
# The fused calls of the interface are really used: rdma_client and rdma_server make no more
# system calls on the device than their budget allows.

# shellcheck source=selftests/lib/ktap.sh
. "$TOP/selftests/lib/ktap.sh"

ktap_test "system calls of a connection" "$TOP/tools/bench/syscalls" --here
ktap_end
