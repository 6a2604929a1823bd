#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Do bytes that nobody wrote reach user space? Debian's kernel, and a module built for it, clear all
# memory before use, which hides such a fault. So the module is built to have a pattern in each
# variable without a value, and runs where the allocator leaves its poison in what it gives out;
# uapi/uapi_security looks for both in all that comes back.

set -eu
TOP=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=${BUILD:-$TOP/build}

MODULE=$("$TOP/tools/vm/build-module" --dir "$BUILD/kernel-6.1-pattern" \
	KCFLAGS="-Werror -ftrivial-auto-var-init=pattern")
# The pattern is 0xfe; somewhere it is stored.
objdump -d "$MODULE" | grep -q 0xfefefefefefefefe ||
	{ echo "the compiler has put no pattern into variables" && exit 1; }

OPTIONS="init_on_alloc=0 init_on_free=0 slub_debug=FZP page_poison=1 randomize_kstack_offset=off"
"$TOP/tools/vm/run" --module "$MODULE" --append "$OPTIONS" --env POISONED=1 --timeout 900 "$@" -- \
	"$BUILD/selftests/uapi/uapi_security"
