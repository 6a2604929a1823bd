#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The Debian packages, as their users have them: built, looked at by lintian, and, in a virtual
# machine, installed, used, upgraded, removed and purged. Nothing may be left behind.

set -eu
TOP=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=${BUILD:-$TOP/build}
OLD=$(cat "$TOP/VERSION")
NEW=$OLD.1
PACKAGES=(rdma-ep-dkms librdmaep1 librdmaep-dev rdmaep-tools)

fail() {
	echo "FAILED: $*"
	exit 1
}

# built_module VERSION: has DKMS build the module from its package, as it does when the package is
# installed, and keeps it. In the machine, without KVM, compiling would take ten minutes.
built_module() {
	local version=$1 kernel work
	kernel=$("$TOP/tools/vm/kernel" --print-version)
	work=$(mktemp -d)
	dpkg-deb -x "$BUILD/packages/rdma-ep-dkms_${version}_all.deb" "$work/root"
	mkdir "$work/dkms"
	dkms build "rdma_ep/$version" -k "$kernel" --sourcetree "$work/root/usr/src" \
		--dkmstree "$work/dkms" --kernelsourcedir "$("$TOP/tools/vm/kernel" --print-headers)"
	cp "$work/dkms/rdma_ep/$version/$kernel"/*/module/rdma_ep.ko "$BUILD/packages/rdma_ep-$version.ko"
	rm -rf "$work"
}

outside() {
	local version
	rm -f "$BUILD"/packages/*.deb "$BUILD"/packages/*.ko
	for version in "$OLD" "$NEW"; do
		"$TOP/packaging/build-deb" --version "$version"
		built_module "$version"
	done
	# a tag is for who uploads packages, and an address that nobody has is on purpose
	lintian --allow-root --fail-on error,warning --suppress-tags bogus-mail-host-in-debian-changelog \
		"$BUILD"/packages/*"_${OLD}_"*.deb
	"$TOP/tools/vm/run" --timeout 900 --mem 2G -- "$0" --inside
}

# In the machine: under one more overlay, which shows every file that changes.
ROOT=/mnt/root
UPPER=/mnt/upper

# Of the kernel's modules only those that are needed: depmod, which would read the thousands of them
# each time it is run, takes minutes for that without KVM.
fewer_modules() {
	local all few
	all=/lib/modules/$(uname -r) few=$(mktemp -d)
	mount -t tmpfs tmpfs "$few"
	modprobe -a --show-depends rdma_ucm rdma_rxe siw 2>/dev/null | awk '$1 == "insmod" { print $2 }' |
		sort -u | xargs cp --parents -t "$few"
	cp -P "$all"/modules.builtin* "$all/modules.order" "$all/build" "$few$all"
	mount --bind "$few$all" "$all"
	depmod
}

make_root() {
	local dir
	mount -t tmpfs tmpfs /mnt
	mkdir -p $ROOT $UPPER /mnt/work
	mount -t overlay -o "lowerdir=/,upperdir=$UPPER,workdir=/mnt/work" overlay $ROOT
	for dir in proc sys dev run usr/lib/modules; do
		mount --rbind "/$dir" "$ROOT/$dir"
	done
	mount -t tmpfs -o mode=1777 tmpfs $ROOT/tmp
	# Its trigger reads all manual pages of the machine, to no purpose of ours.
	rm -f $ROOT/var/lib/man-db/auto-update
	# What DKMS calls to compile: it gets the module that was built from the same package outside.
	mkdir $ROOT/tmp/bin
	cat >$ROOT/tmp/bin/make <<-'END'
		#!/bin/sh
		for arg; do
			case $arg in
			M=*) dir=${arg#M=} ;;
			modules) version=$(basename "$(dirname "$dir")") && cp "/tmp/rdma_ep-$version.ko" "$dir/kernel/rdma_ep.ko" || exit ;;
			esac
		done
	END
	chmod +x $ROOT/tmp/bin/make
}

step() {
	printf '\n== %s (%s s)\n' "$*" "$SECONDS"
}

in_root() {
	chroot $ROOT env -u TOP -u BUILD PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"
}

install_version() {
	local package
	rm -rf $ROOT/tmp/packages
	mkdir $ROOT/tmp/packages
	for package in "${PACKAGES[@]}"; do
		cp "$BUILD/packages/${package}_$1"_*.deb $ROOT/tmp/packages/
	done
	cp "$BUILD/packages/rdma_ep-$1.ko" $ROOT/tmp/
	# shellcheck disable=SC2016 # the inner shell expands it
	in_root sh -c 'PATH=/tmp/bin:$PATH dpkg -i /tmp/packages/*.deb'
}

module_is() {
	[ "$(modinfo -F version rdma_ep)" = "$1" ] || fail "the module installed is not version $1"
	case $(modinfo -F filename rdma_ep) in
	*/updates/dkms/*) ;;
	*) fail "the module is not from DKMS" ;;
	esac
}

# talk SERVER... -- CLIENT...: both end well; what the server has of the libraries is in $LIBRARY.
AS_USER=()
talk() {
	local pid code=0 i
	local -a server=()
	while [ "$1" != -- ]; do
		server+=("$1")
		shift
	done
	shift
	timeout 60 chroot $ROOT "${AS_USER[@]}" "${server[@]}" &
	pid=$!
	for ((i = 0; i < 100; i++)); do
		! rdma resource show cm_id | grep -q "state LISTEN" || break
		sleep 0.2
	done
	LIBRARY=$(cat /proc/[0-9]*/maps 2>/dev/null | grep -oE '/lib(rdmacm|rdmaep)\.so\.1[.0-9]*' | sort -u | tr '\n' ' ')
	timeout 60 chroot $ROOT "${AS_USER[@]}" "$@" || code=$?
	wait $pid || code=$?
	[ "$code" = 0 ] || fail "${server[*]} with $*: exit code $code"
}

plain_rping() {
	talk rping -s -a "$MY_IP" -C 2 -- rping -c -a "$MY_IP" -C 2
}

inside() {
	local left
	rmmod rdma_ep
	fewer_modules
	make_root

	step "install"
	install_version "$OLD"
	module_is "$OLD"
	[ ! -e /sys/module/rdma_ep ] || fail "the module was loaded before anybody needed it"

	step "a program is built with the packages, and has the module loaded"
	in_root sh -c "mkdir -m 755 /tmp/x && cp /usr/share/doc/librdmaep-dev/examples/* /tmp/x/ &&
		make -s -C /tmp/x server client"
	AS_USER=(setpriv --reuid 65534 --regid 65534 --clear-groups)
	talk /tmp/x/server "$MY_IP" -- /tmp/x/client "$MY_IP"
	[ -e /sys/module/rdma_ep ] || fail "the module is not loaded"
	AS_USER=()

	step "the tools"
	in_root rdmaep doctor
	talk rdmaep run rping -s -a "$MY_IP" -C 2 -- rdmaep run rping -c -a "$MY_IP" -C 2

	step "librdmaep as the default, and back"
	! in_root rdmaep-default status || fail "it is the default before it was asked to be"
	in_root rdmaep-default on
	plain_rping
	[[ $LIBRARY == *librdmaep* ]] || fail "rping has $LIBRARY"
	[ ! -e /sys/module/rdma_ucm ] || fail "rdma_ucm is loaded"
	in_root rdmaep-default off
	plain_rping
	[[ $LIBRARY != *librdmaep* ]] || fail "rping has $LIBRARY"
	[ -e /sys/module/rdma_ucm ] || fail "rdma_ucm is not loaded"
	in_root rdmaep-default on

	step "upgrade"
	install_version "$NEW"
	module_is "$NEW"
	[ ! -e "$ROOT/usr/src/rdma_ep-$OLD" ] || fail "the old module's source is still there"
	rmmod rdma_ep
	in_root rdmaep-default status
	plain_rping
	[ "$(cat /sys/module/rdma_ep/version)" = "$NEW" ] || fail "the module in use is not the new one"

	step "remove"
	in_root dpkg -r "${PACKAGES[@]}"
	[ ! -e /sys/module/rdma_ep ] || fail "the module is still loaded"
	plain_rping
	[[ $LIBRARY != *librdmaep* ]] || fail "rping has $LIBRARY"

	step "purge"
	in_root dpkg -P "${PACKAGES[@]}"
	rmmod rdma_ucm
	# dkms makes itself a key for signing, the first time it is used for anything, and asks rpm
	# whose the module is, where there is one.
	left=$(cd $UPPER && find . \( -type f -o -type l \) | grep -vE \
		'^\./(var/lib/dpkg/|var/lib/dkms/mok\.|root/\.rpmdb/|var/log/|var/cache/(ldconfig|man|debconf)/|etc/ld\.so\.cache$)' || true
		find /usr/lib/modules -name 'rdma_ep*')
	[ -z "$left" ] || fail "left behind: $left"
	! grep -rl rdma_ep /usr/lib/modules/*/modules.* || fail "depmod still knows the module"
	! grep -q rdmaep $UPPER/var/lib/dpkg/status || fail "dpkg still knows the packages"
	step "done"
}

case ${1-} in
--inside) inside ;;
*) outside ;;
esac
