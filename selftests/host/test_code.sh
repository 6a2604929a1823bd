#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What any user could break the kernel with, kernel/test.c, is in the module only when it was
# asked for.

set -eu
TOP=$(cd "$(dirname "$0")/../.." && pwd)

test_symbols() {
	nm "$1" | grep -c ' rdma_ep_test_' || true
}

release=$("$TOP/tools/vm/build-module")
test=$("$TOP/tools/vm/build-module" --test)
[ "$(test_symbols "$release")" = 0 ] || { echo "test code in $release" && exit 1; }
# The name is still the right one to look for.
[ "$(test_symbols "$test")" != 0 ] || { echo "no test code in $test" && exit 1; }
