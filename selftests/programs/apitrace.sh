#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 1500
#
# A program linked with librdmacm says how the API answers: all fields of ids and events, arguments
# at their limits, threads. It runs on librdmacm with rdma_ucm and on ours, in one machine. Both
# must say the same: apitrace.sed makes of what librdmacm says what ours is to say, each rule with
# its reason.

# shellcheck disable=SC2317 # ktap_test calls the functions
# shellcheck source=selftests/programs/lib.sh
. "$TOP/selftests/programs/lib.sh"
trap 'modprobe -qr rdma_ucm; rm -rf "$WORK"' EXIT

PROGRAM=$BUILD/selftests/programs/apitrace

same() {
	local code=0
	LD_LIBRARY_PATH=$RDMAEP_LIB "$PROGRAM" "$1" >"$WORK/ours" || code=$?
	modprobe rdma_ucm || return 1
	"$PROGRAM" "$1" >"$WORK/stock" || code=$?
	modprobe -r rdma_ucm || return 1
	[ "$code" = 0 ] || { echo "exit code $code" && return 1; }
	[ -s "$WORK/ours" ] || { echo "it said nothing" && return 1; }
	diff <(sed -f "$TOP/selftests/programs/apitrace.sed" "$WORK/stock") "$WORK/ours"
}

for part in fields arguments devices programs; do
	ktap_test "$part" same "$part"
done
ktap_end
