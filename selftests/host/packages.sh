#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# packages.sh [deb | rpm]
#
# The packages, as their users have them: built, looked at by lintian if they are Debian's, and, in
# a virtual machine, installed, used, upgraded and removed. Nothing may be left behind. The machine
# is Debian's with RPM packages too: rpm is told where its libraries are, and not to look for what
# the packages depend on.

set -eu
TOP=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=${BUILD:-$TOP/build}
OLD=$(cat "$TOP/VERSION")
NEW=$OLD.1
FORMAT=${1-deb}

fail() {
	echo "FAILED: $*"
	exit 1
}

# FORMAT_build VERSION: to build/packages or build/rpm
deb_build() {
	"$TOP/packaging/build-deb" --version "$1"
}

rpm_build() {
	"$TOP/packaging/build-rpm" --version "$1" --nodeps --define "_libdir /usr/lib/x86_64-linux-gnu"
}

# FORMAT_files VERSION: the packages
deb_files() {
	find "$BUILD/packages" -name "*_$1_*.deb" -not -name '*-dbgsym_*'
}

rpm_files() {
	find "$BUILD/rpm/RPMS" -name "*-$1-*.rpm"
}

# FORMAT_unpack_module VERSION DIR: what the module's package holds
deb_unpack_module() {
	dpkg-deb -x "$BUILD/packages/rdma-ep-dkms_${1}_all.deb" "$2"
}

rpm_unpack_module() {
	rpm2cpio "$BUILD/rpm/RPMS/noarch/rdma_ep-dkms-$1-1.noarch.rpm" | (cd "$2" && cpio -id --quiet)
}

# FORMAT_install: what is in /tmp/packages of the machine. They compile with /tmp/bin/make.
deb_install() {
	# shellcheck disable=SC2016 # the inner shell expands it
	in_root sh -c 'PATH=/tmp/bin:$PATH dpkg -i /tmp/packages/*.deb'
}

# Scriptlets have a PATH that rpm sets. Their failures do not make rpm fail.
rpm_install() {
	checked_rpm sh -c 'rpm -U --nodeps --define "_install_script_path /tmp/bin:/usr/sbin:/usr/bin:/sbin:/bin" \
		/tmp/packages/*.rpm'
}

checked_rpm() {
	local code=0
	in_root "$@" >"$BUILT/log" 2>&1 || code=$?
	cat "$BUILT/log"
	[ "$code" = 0 ] && ! grep -q "scriptlet failed" "$BUILT/log" || fail "$*"
}

# FORMAT_copy_examples DIR
deb_copy_examples() {
	in_root sh -c "cp /usr/share/doc/librdmaep-dev/examples/* $1"
}

rpm_copy_examples() {
	in_root sh -c "cp /usr/share/doc/librdmaep-devel*/examples/* $1"
}

# FORMAT_remove
deb_remove() {
	in_root dpkg -r rdma-ep-dkms librdmaep1 librdmaep-dev rdmaep-tools
}

rpm_remove() {
	checked_rpm rpm -e rdma_ep-dkms librdmaep librdmaep-devel rdmaep-tools
}

# FORMAT_forget: what remains to be done when they are removed
deb_forget() {
	step "purge"
	in_root dpkg -P rdma-ep-dkms librdmaep1 librdmaep-dev rdmaep-tools
	! grep -q rdmaep $UPPER/var/lib/dpkg/status || fail "dpkg still knows the packages"
}

rpm_forget() {
	! in_root rpm -qa | grep rdma || fail "rpm still knows the packages"
}

# built_module VERSION: has DKMS build the module from its package, as it does when the package is
# installed, and keeps it. In the machine, without KVM, compiling would take ten minutes.
built_module() {
	local version=$1 kernel work
	kernel=$("$TOP/tools/vm/kernel" --print-version)
	work=$(mktemp -d)
	mkdir "$work/root" "$work/dkms"
	"${FORMAT}_unpack_module" "$version" "$work/root"
	dkms build "rdma_ep/$version" -k "$kernel" --sourcetree "$work/root/usr/src" \
		--dkmstree "$work/dkms" --kernelsourcedir "$("$TOP/tools/vm/kernel" --print-headers)"
	cp "$work/dkms/rdma_ep/$version/$kernel"/*/module/rdma_ep.ko "$BUILT/rdma_ep-$version.ko"
	rm -rf "$work"
}

# Here: the packages and modules of two versions.
BUILT=$BUILD/packages-$FORMAT

outside() {
	local version
	rm -rf "$BUILT"
	mkdir -p "$BUILT"
	for version in "$OLD" "$NEW"; do
		"${FORMAT}_build" "$version"
		mkdir "$BUILT/$version"
		"${FORMAT}_files" "$version" | xargs cp -t "$BUILT/$version"
		built_module "$version"
	done
	# a tag is for who uploads packages, and an address that nobody has is on purpose
	[ "$FORMAT" != deb ] ||
		lintian --allow-root --fail-on error,warning --suppress-tags bogus-mail-host-in-debian-changelog \
			"$BUILT/$OLD"/*.deb
	"$TOP/tools/vm/run" --timeout 900 --mem 2G -- "$0" "$FORMAT" --inside
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
	rm -rf $ROOT/tmp/packages
	cp -r "$BUILT/$1" $ROOT/tmp/packages
	cp "$BUILT/rdma_ep-$1.ko" $ROOT/tmp/
	"${FORMAT}_install"
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
	local left code=0
	rmmod rdma_ep
	fewer_modules
	make_root

	step "install"
	install_version "$OLD"
	module_is "$OLD"
	[ ! -e /sys/module/rdma_ep ] || fail "the module was loaded before anybody needed it"

	step "a program is built with the packages, and has the module loaded"
	in_root mkdir -m 755 /tmp/x
	"${FORMAT}_copy_examples" /tmp/x
	in_root make -s -C /tmp/x server client
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
	in_root setpriv --reuid 65534 --clear-groups rdmaep-default off || code=$?
	[ "$code" = 2 ] || fail "rdmaep-default of an ordinary user: exit code $code"
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
	"${FORMAT}_remove"
	[ ! -e /sys/module/rdma_ep ] || fail "the module is still loaded"
	plain_rping
	[[ $LIBRARY != *librdmaep* ]] || fail "rping has $LIBRARY"

	"${FORMAT}_forget"
	rmmod rdma_ucm
	# dkms makes itself a key for signing, the first time it is used for anything, and asks rpm
	# whose the module is, where there is one.
	left=$(cd $UPPER && find . \( -type f -o -type l \) | grep -vE \
		'^\./(var/lib/(dpkg|rpm)/|var/lib/dkms/mok\.|root/\.rpmdb/|var/log/|var/cache/(ldconfig|man|debconf)/|etc/ld\.so\.cache$)' || true
		find /usr/lib/modules -name 'rdma_ep*')
	[ -z "$left" ] || fail "left behind: $left"
	! grep -rl rdma_ep /usr/lib/modules/*/modules.* || fail "depmod still knows the module"
	step "done"
}

case ${2-} in
--inside) inside ;;
*) outside ;;
esac
