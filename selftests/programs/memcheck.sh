#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 400
#
# The library under valgrind's memcheck, in programs: no access to memory that is not
# there or says nothing, and nothing lost. What the kernel writes, the library says to valgrind.

# shellcheck disable=SC2317 # ktap_test calls the functions
# shellcheck source=selftests/lib/ktap.sh
. "$TOP/selftests/lib/ktap.sh"

WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT

# The kernel fills memory of verbs behind valgrind's back, in libibverbs and its providers.
cat >"$WORK/suppressions" <<-'END'
	{
	   verbs commands
	   Memcheck:Param
	   ioctl(generic)
	   ...
	   obj:*/libibverbs.so*
	}
	{
	   what providers know of the kernel's answers
	   Memcheck:Cond
	   ...
	   obj:*/libibverbs/*.so
	}
	{
	   libibverbs keeps its list of devices
	   Memcheck:Leak
	   ...
	   fun:ibv_get_device_list*
	}
END

# memcheck PART SCENARIO: of apitrace, in the processes that it forks
memcheck() {
	local code=0
	APITRACE_ONLY=$2 APITRACE_S=$((100 * SLOW)) LD_LIBRARY_PATH=$BUILD/lib/compat valgrind \
		--quiet --sim-hints=lax-ioctls --leak-check=full --show-leak-kinds=definite \
		--errors-for-leak-kinds=definite --suppressions="$WORK/suppressions" \
		--log-file="$WORK/log.%p" "$BUILD/selftests/programs/apitrace" "$1" \
		>"$WORK/output" 2>&1 || code=$?
	! cat "$WORK"/log.* | grep "^==.*==" || code=1
	! grep -e ": hangs" -e ": needs" -e "Segmentation" "$WORK/output" || code=1
	[ "$(grep -c "^$2: " "$WORK/output")" -gt 2 ] || code=1
	[ "$code" = 0 ] || cat "$WORK/output"
	rm -f "$WORK"/log.* "$WORK/output"
	return "$code"
}

command -v valgrind >/dev/null || { echo "Bail out! no valgrind" && exit 1; }

ktap_test "synchronous ids" memcheck fields "sync TCP"
ktap_test "synchronous ids, datagrams" memcheck fields "sync UDP"
ktap_test "asynchronous ids without QPs" memcheck fields "async 106 no QP"
ktap_test "multicast" memcheck fields "multicast 111"
ktap_end
