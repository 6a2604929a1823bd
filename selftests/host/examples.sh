#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The Makefile of examples/ builds them as a reader would: with the installed library that
# pkg-config finds, and with librdmacm.

set -eu
TOP=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=${BUILD:-$TOP/build}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
meson install -C "$BUILD" --destdir "$work/root" --no-rebuild --quiet >"$work/install.log" 2>&1 ||
	{ cat "$work/install.log" && exit 1; }
PKG_CONFIG_PATH=$(dirname "$(find "$work/root" -name rdmaep.pc)")
PKG_CONFIG_SYSROOT_DIR=$work/root
export PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR

# build LIBRARY MAKE-ARGUMENT...: into a folder of its own; every program needs LIBRARY alone.
build() {
	local library=$1 dir=$work/$1 program
	shift
	mkdir "$dir"
	cp "$TOP"/examples/*.c "$TOP/examples/Makefile" "$dir/"
	make -s -C "$dir" CFLAGS="-O2 -Wall -Wextra -Werror" "$@"
	for program in "$dir"/*.c; do
		[ "$program" != "$dir/uring-connect.c" ] || continue # uses the device
		readelf -d "${program%.c}" | sed -n 's/.*NEEDED.*\[\(librdma[a-z]*\.so.*\)\]/\1/p' |
			grep -qx "$library" || { echo "$program: not linked with $library" && exit 1; }
	done
}

# The headers of libibverbs are the system's, not the new root's.
build librdmaep.so.1 "CPPFLAGS=-I$(dirname "$(find "$work/root" -name rdmaep.h)")" \
	"LIBS=$(pkg-config --libs-only-L --libs-only-l rdmaep)"
make -s -C "$work/librdmaep.so.1" CFLAGS="-O2 -Wall -Wextra -Werror" uring-connect \
	"CPPFLAGS=-I$(dirname "$(find "$work/root" -name rdmaep.h)")"
build librdmacm.so.1 "LIBS=-lrdmacm -libverbs"
