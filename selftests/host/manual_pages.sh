#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Every page of section 3 of librdmacm's manual is in the table of Documentation/testing.rst, with
# a test that calls the function.

set -eu
TOP=$(cd "$(dirname "$0")/../.." && pwd)
PAGES=${PAGES:-/usr/share/man/man3}
failed=0

# table: "page test" for each page
table() {
	awk '/^Manual pages$/ { on = 1 } /^Writing a test$/ { on = 0 }
		on && /^``api\// { test = $1; gsub(/`/, "", test); sub(/^``[^`]*``/, "") }
		on && test && /^ *[a-z ].*rdma_/ {
			gsub(/[^a-z_0-9]+/, " ")
			for (i = 1; i <= NF; i++)
				if ($i ~ /^rdma_/)
					print $i, test
		}
		on && /^===/ && test { on = 0 }' "$TOP/Documentation/testing.rst"
}

names=$(table)
[ -n "$names" ] || { echo "Documentation/testing.rst has no table of manual pages" && exit 1; }
while read -r page test; do
	grep -q "\b$page(" "$TOP/selftests/$test.c" "$TOP/selftests/api/api_utils.h" ||
		{ echo "selftests/$test.c does not call $page()" && failed=1; }
done <<<"$names"

seen=0
for file in "$PAGES"/rdma_*.3*; do
	page=$(basename "${file%%.3*}")
	seen=$((seen + 1))
	grep -q "^$page " <<<"$names" ||
		{ echo "Documentation/testing.rst names no test of $page(3)" && failed=1; }
done
[ $seen -gt 40 ] || { echo "only $seen pages in $PAGES: is librdmacm-dev installed?" && failed=1; }
exit $failed
