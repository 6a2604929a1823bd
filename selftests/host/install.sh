#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What `meson install` puts somewhere, `ninja uninstall` takes away again; and the installed tool
# finds the library that was installed with it.

set -eu
TOP=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=${BUILD:-$TOP/build}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
meson install -C "$BUILD" --destdir "$work/root" --no-rebuild --quiet >"$work/log" 2>&1 ||
	{ cat "$work/log" && exit 1; }

for name in librdmaep.so.1 librdmaep.a rdmaep.pc rdmaep.h rdma_ep.h rdmaep rdmaep-default \
	90-rdma-ep.rules rdmaep.1 rdmaep_strerror.3 rdma_ep.4 rdmaep.7 rdmaep-default.8; do
	[ -n "$(find "$work/root" -name "$name")" ] || { echo "$name is not installed" && exit 1; }
done
# shellcheck disable=SC2016 # the inner shell expands it
"$(find "$work/root" -path '*/bin/rdmaep')" run sh -c 'echo "$LD_LIBRARY_PATH"' >"$work/path"
read -r path <"$work/path"
[ "$path" = "$(find "$work/root" -type d -path '*/lib/*/rdmaep')" ] ||
	{ echo "rdmaep run takes the library in $path" && exit 1; }

DESTDIR=$work/root ninja -C "$BUILD" uninstall >"$work/log" 2>&1 || { cat "$work/log" && exit 1; }
[ -z "$(find "$work/root" -not -type d 2>/dev/null)" ] ||
	{ echo "left behind:" && find "$work/root" -not -type d && exit 1; }
