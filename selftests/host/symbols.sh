#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Our library stands in for librdmacm.so.1: it has its names, the functions under their version
# nodes, and nothing of its own under a foreign name.

set -eu
TOP=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=${BUILD:-$TOP/build}
OURS=$BUILD/lib/librdmaep.so.1
STOCK=${STOCK:-$(ldconfig -p | sed -n 's/.*librdmacm\.so\.1 (.*x86-64.*) => //p' | head -1)}
export LC_ALL=C
failed=0

fail() {
	echo "$*"
	failed=1
}

# exported LIBRARY: "function node" for each function it defines.
exported() {
	readelf -W --dyn-syms "$1" |
		awk '$5 != "LOCAL" && $7 != "UND" && $8 ~ /@/ { sub(/@+/, " ", $8); print $8 }' |
		awk 'NF == 2' | sort -u
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
exported "$OURS" >"$work/ours"

# The list that is kept in the tree, and that of the librdmacm which is installed
grep -v '^#' "$TOP/selftests/host/librdmacm.symbols" | sort >"$work/list"
missing=$(comm -23 "$work/list" "$work/ours")
[ -z "$missing" ] || fail "on the list, but not in $OURS: ${missing//$'\n'/, }"
if [ -n "$STOCK" ]; then
	exported "$STOCK" | grep '^rdma_' >"$work/stock"
	[ -s "$work/stock" ] || fail "no rdma_ function in $STOCK"
	missing=$(comm -23 "$work/stock" "$work/ours")
	[ -z "$missing" ] || fail "in $STOCK, but not in $OURS: ${missing//$'\n'/, }"
else
	fail "no librdmacm.so.1 to compare with"
fi

# What else we export is ours by its name and node.
strangers=$(comm -13 "$work/list" "$work/ours" | grep -v '^rdmaep_.* RDMAEP_1\.' |
	grep -v '^r[a-z0-9]* RDMACM_1\.[0-9]$' | grep -v '^\(RDMACM\|RDMAEP\)_' || true)
[ -z "$strangers" ] || fail "exported, and nobody asked for it: ${strangers//$'\n'/, }"

# Both names lead to the same file, and nothing drags librdmacm in.
[ "$(readlink -f "$BUILD/lib/compat/librdmacm.so.1")" = "$(readlink -f "$OURS")" ] ||
	fail "build/lib/compat/librdmacm.so.1 is another library"
! readelf -d "$OURS" | grep -q 'NEEDED.*librdmacm' || fail "it needs librdmacm"
readelf -d "$OURS" | grep -q 'SONAME.*librdmaep\.so\.1\]' || fail "its name is not librdmaep.so.1"

# The library that rdmaep-default(8) puts in front: its name, every version node, and ours with it.
default=$BUILD/lib/default/librdmacm.so.1
nodes() {
	readelf -W -V "$1" | sed -n 's/.*Rev: 1 .* Name: \(RDMA[A-Z_.0-9]*\)/\1/p' | sort
}
readelf -d "$default" | grep -q 'SONAME.*librdmacm\.so\.1\]' || fail "$default has another name"
readelf -d "$default" | grep -q 'NEEDED.*librdmaep\.so\.1\]' || fail "$default does not bring in ours"
[ -n "$(nodes "$OURS")" ] && [ "$(nodes "$default")" = "$(nodes "$OURS")" ] ||
	fail "$default has other version nodes"

exit $failed
