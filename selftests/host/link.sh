#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Programs of all kinds build with what `meson install` installs, and run: C and C++, through
# pkg-config, with the static library, and with -lrdmacm led to our library. The structs they
# share with it are the public header's.

set -eu
TOP=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=${BUILD:-$TOP/build}
CC=${CC:-cc}
CXX=${CXX:-c++}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

meson install -C "$BUILD" --destdir "$work/root" --no-rebuild --quiet >install.log 2>&1 ||
	{ cat install.log && exit 1; }
pc=$(find root -name rdmaep.pc)
[ -n "$pc" ] || { echo "rdmaep.pc is not installed" && exit 1; }
PKG_CONFIG_PATH=$work/$(dirname "$pc") PKG_CONFIG_SYSROOT_DIR=$work/root
export PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR
# Headers of libibverbs and librdmacm are the system's, not the new root's.
read -ra cflags < <(pkg-config --cflags rdmaep)
read -ra libs < <(pkg-config --libs-only-L --libs-only-l rdmaep)
libdir=$work/$(dirname "$(find root -name 'librdmaep.so.1')")
# What it keeps open would be opened anew each time.
readelf -d "$libdir/librdmaep.so.1" | grep -q NODELETE || { echo "dlclose(3) unloads it" && exit 1; }

cat >program.c <<END
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#ifdef WITH_RDMAEP_H
#include <rdmaep.h>
#endif
#include <errno.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
	struct rdma_addrinfo hints, *res;
	struct rdma_cm_id *id;

	memset(&hints, 0, sizeof(hints));
	hints.ai_port_space = RDMA_PS_TCP;
	if (strcmp(rdma_event_str(RDMA_CM_EVENT_ESTABLISHED), "RDMA_CM_EVENT_ESTABLISHED"))
		return 1;
	if (rdma_getaddrinfo("127.0.0.1", "7471", &hints, &res))
		return 2;
	if (res->ai_port_space != RDMA_PS_TCP || !res->ai_dst_len)
		return 3;
	/* There may be a device here or none: it must not crash. */
	if (!rdma_create_ep(&id, res, NULL, NULL))
		rdma_destroy_ep(id);
	else if (errno <= 0)
		return 4;
	rdma_freeaddrinfo(res);
#ifdef WITH_RDMAEP_H
	if (!rdmaep_strerror())
		return 5;
#endif
	return 0;
}
END
cp program.c program.cc

# needs PROGRAM LIBRARY: what the dynamic linker will look for
needs() {
	readelf -d "$1" | grep -q "NEEDED.*\[$2\]" || { echo "$1 does not need $2" && exit 1; }
}

lacks() {
	! readelf -d "$1" | grep -q "NEEDED.*$2" || { echo "$1 needs $2" && exit 1; }
}

"$CC" -Wall -Wextra -Werror -DWITH_RDMAEP_H "${cflags[@]}" -o c program.c "${libs[@]}"
needs c librdmaep.so.1
"$CXX" -Wall -Wextra -Werror -DWITH_RDMAEP_H "${cflags[@]}" -o cxx program.cc "${libs[@]}"
needs cxx librdmaep.so.1

"$CC" -Wall -Wextra -Werror -DWITH_RDMAEP_H "${cflags[@]}" -o static program.c \
	"$libdir/librdmaep.a" -libverbs -pthread
lacks static 'librdma'

# An existing build that says -lrdmacm
"$CC" -Wall -Wextra -Werror -o replaced program.c -L"$BUILD/lib/compat" -lrdmacm -libverbs
needs replaced librdmaep.so.1
lacks replaced librdmacm

# An existing program, linked with librdmacm, started on ours
"$CC" -Wall -Wextra -Werror -o existing program.c -lrdmacm -libverbs
needs existing librdmacm.so.1

for program in c cxx static replaced; do
	LD_LIBRARY_PATH=$libdir "./$program" || { echo "$program: exit code $?" && exit 1; }
done
LD_LIBRARY_PATH=$BUILD/lib/compat ./existing || { echo "existing: exit code $?" && exit 1; }
! LD_LIBRARY_PATH=$BUILD/lib/compat ldd ./existing | grep 'librdmacm.so.1 => /usr' || exit 1

# Layouts: the header's are those of existing programs, and we have no header of our own.
[ "$(getconf LONG_BIT)" != 64 ] || "$CC" -c -o layout.o "$TOP/selftests/host/layout.c"
copies=$(grep -rlE '^struct rdma_(cm_id|cm_event|addrinfo|conn_param|ud_param|route|addr) \{' \
	--include='*.[ch]' "$TOP/include" "$TOP/lib" "$TOP/tools" || true)
[ -z "$copies" ] || { echo "a copy of a public struct in: $copies" && exit 1; }
