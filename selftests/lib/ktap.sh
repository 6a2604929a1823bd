# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Sourced by tests that are shell scripts:
#
#	. "$TOP/selftests/lib/ktap.sh"
#	ktap_test "what is tested" COMMAND...
#	ktap_end
#
# COMMAND, usually a function, passes with 0, skips with 4 (its last line of output is the
# reason), fails with anything else; what it prints becomes comment lines.

KTAP_COUNT=0
KTAP_FAILED=0
KTAP_SKIPPED=0
echo "TAP version 13"

# Has the long form been asked for (tools/check --long)?
is_long() {
	[ -n "${RDMA_EP_LONG-}" ]
}

ktap_test() {
	local name=$1 output code=0
	shift
	KTAP_COUNT=$((KTAP_COUNT + 1))
	output=$("$@" 2>&1) || code=$?
	[ -z "$output" ] || echo "# ${output//$'\n'/$'\n'# }"
	case $code in
	0) echo "ok $KTAP_COUNT $name" ;;
	4)
		KTAP_SKIPPED=$((KTAP_SKIPPED + 1))
		echo "ok $KTAP_COUNT $name # SKIP ${output##*$'\n'}"
		;;
	*)
		KTAP_FAILED=$((KTAP_FAILED + 1))
		echo "# exited with $code"
		echo "not ok $KTAP_COUNT $name"
		;;
	esac
}

ktap_end() {
	echo "1..$KTAP_COUNT"
	[ $KTAP_FAILED = 0 ] || exit 1
	[ $KTAP_SKIPPED != $KTAP_COUNT ] || exit 4
	exit 0
}
