# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Sourced after common.sh: the kernel's kernel-doc script, that of $KERNEL_DOC, or of the header
# packages that tools/vm/kernel downloads.

find_kernel_doc() {
	[ -n "${KERNEL_DOC-}" ] || KERNEL_DOC=$("$TOP/tools/vm/kernel" --print-headers)/scripts/kernel-doc
	[ -e "$KERNEL_DOC" ] || die "no kernel-doc at $KERNEL_DOC"
}

# kernel_doc_check HEADER: complains about comments that are missing or wrong. kernel-doc 6.1 has
# one level of warnings; later ones have more and want to be asked.
kernel_doc_check() {
	local -a options=(-none -Werror)
	find_kernel_doc
	! grep -q Wall "$KERNEL_DOC" || options+=(-Wall)
	perl "$KERNEL_DOC" "${options[@]}" "$1"
}

# kernel_doc_rst HEADER: the comments as reStructuredText. "@field[i]" makes markup that ends in
# the middle of a word. perl, since not every file system or tarball keeps the executable bit.
kernel_doc_rst() {
	find_kernel_doc
	perl "$KERNEL_DOC" -rst -sphinx-version 5.3.0 "$1" |
		sed -E 's/(\*\*[a-z_]+\*\*)([[({])/\1\\ \2/g'
}
