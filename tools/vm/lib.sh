# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034 # variables are used by the scripts that source this
#
# Sourced by run, shell and pair after common.sh: one VM from options to verdict.

# QEMU 7.2 cannot set the MSR behind arch-capabilities on every host.
KVM_CPU=max,-arch-capabilities

vm_defaults() {
	KERNEL=6.1 STOCK= MODULE= TEST= DEVS=1 TRANSPORT=rxe TIMEOUT=300 SMP=2 MEM=
	ICOUNT= OUTDIR= NAME= APPEND= ROLE= MY_IP=10.77.0.1 MY_IP6=fd77::1 PEER_IP= PEER_IP6=
	GUEST_ENV=(${RDMA_EP_LONG:+"RDMA_EP_LONG=$RDMA_EP_LONG"}) SHARED= NET=(-nic none) SHELL_MODE=0 GDB=0
}

# shellcheck disable=SC2016 # $OUT is meant for the reader
VM_HELP='  --kernel K     6.1 (default), rt, 6.12, 7.2, debug, kcsan, or another version: see tools/vm/kernel
  --stock        rdma_ucm instead of our module
  --test         our module with its test code (RDMA_EP_TEST=y)
  --module FILE  this module instead of a fresh build of the source tree
  --siw          software iWARP (kernel debug) instead of soft-RoCE
  --devs N       N netdevs d0, d1... with 10.77.I.1 and an RDMA device each
  --timeout S    for the command, in the guest (300)
  --smp N        CPUs (2)          --mem M   memory (1G, debug kernel 3G)
  --icount       one CPU that counts instructions: 1 virtual ns each
  --out DIR      files go there ($OUT in the guest); it is made and kept
  --name N       the same as --out build/vm/N
  --env A=B      in the environment of the command
  --gdb          let tools/vm/gdb attach to the kernel, on port 1234 of this machine
  --append OPTS  more kernel command line'

# vm_option ARGS...: takes one option; VM_SHIFT says how many words it was, 0 for "not mine".
vm_option() {
	VM_SHIFT=2
	case $1 in
	--kernel | --module | --devs | --timeout | --smp | --mem | --out | --name | --env | --append)
		[ $# -gt 1 ] || die "$1: what?"
		;;
	esac
	case $1 in
	--kernel) KERNEL=$2 ;;
	--stock) STOCK=1 VM_SHIFT=1 ;;
	--test) TEST=--test VM_SHIFT=1 ;;
	--module) MODULE=$(realpath "$2") ;;
	--siw) TRANSPORT=siw VM_SHIFT=1 ;;
	--devs) DEVS=$2 ;;
	--timeout)
		[[ $2 =~ ^[0-9]+$ ]] || die "--timeout $2: not a number of seconds"
		TIMEOUT=$2
		;;
	--smp) SMP=$2 ;;
	--mem) MEM=$2 ;;
	--icount) ICOUNT=1 SMP=1 VM_SHIFT=1 ;;
	--out) OUTDIR=$2 ;;
	--name) OUTDIR=$BUILD/vm/$2 ;;
	--env) GUEST_ENV+=("$2") ;;
	--gdb) GDB=1 APPEND+=" nokaslr" NET+=(-gdb tcp:localhost:1234) VM_SHIFT=1 ;;
	--append) APPEND+=" $2" ;;
	*) VM_SHIFT=0 ;;
	esac
}

# Modules that every guest has: to reach its root, and those the module under test needs.
vm_modules() {
	local module
	for module in virtio_pci virtio_console 9pnet_virtio 9p overlay virtio_net dummy \
		ib_uverbs rdma_cm rdma_rxe siw; do
		modprobe -d "$1" -S "$2" --show-depends $module 2>/dev/null || [ $module = siw ]
	done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }'
}

# busybox, our init and those modules.
vm_initramfs() {
	local dir version file module tree
	dir=$VM_KERNEL_DIR
	version=$(cat "$dir/version")
	INITRAMFS=$dir/initramfs.cpio.gz
	[ "$INITRAMFS" -nt "$TOP/tools/vm/guest/initramfs" ] && [ "$INITRAMFS" -nt "$TOP/tools/vm/lib.sh" ] &&
		[ "$INITRAMFS" -nt "$dir/version" ] && return
	tree=$(mktemp -d "$dir/initramfs.XXXXXX")
	mkdir -p "$tree/bin" "$tree/modules"
	cp /bin/busybox "$tree/bin/"
	cp "$TOP/tools/vm/guest/initramfs" "$tree/init"
	vm_modules "$dir" "$version" | while read -r file; do
		module=$(basename "$file" .xz)
		case $file in
		*.xz) xz -dc "$file" >"$tree/modules/$module" ;;
		*) cp "$file" "$tree/modules/" ;;
		esac
		echo "$module$([ "$module" != dummy.ko ] || echo " numdummies=0")"
	done >"$tree/modules/order"
	(cd "$tree" && find . -print | cpio -o -H newc --quiet | gzip -1) >"$tree.gz"
	mv "$tree.gz" "$INITRAMFS"
	rm -r "$tree"
}

# Kernel, module and output folder: everything that must exist before QEMU starts.
vm_prepare() {
	VM_KERNEL_DIR=$("$TOP/tools/vm/kernel" --kernel "$KERNEL" --print-dir)
	vm_initramfs
	SLOW=1
	case $KERNEL in debug | kcsan) SLOW=4 ;; rt) SLOW=2 ;; esac
	[ -n "$MEM" ] || { [ $SLOW = 4 ] && MEM=3G; } || MEM=1G
	if [ -z "$STOCK" ] && [ -z "$MODULE" ]; then
		MODULE=$("$TOP/tools/vm/build-module" --kernel "$KERNEL" ${TEST:+"$TEST"})
	fi
	[ -z "$STOCK" ] || MODULE=
	KEEP=1
	mkdir -p "$BUILD/vm"
	[ -n "$OUTDIR" ] || { OUTDIR=$(mktemp -d "$BUILD/vm/run.XXXXXX") && KEEP=; }
	mkdir -p "$OUTDIR"
	OUTDIR=$(realpath "$OUTDIR")
	exec {VM_LOCK}>"$OUTDIR/vm.lock"
	flock -n "$VM_LOCK" || die "another VM writes to $OUTDIR"
	rm -f "$OUTDIR"/vm.* "$OUTDIR"/*.log
	[ "$GDB" = 0 ] || ln -sfn "$OUTDIR" "$BUILD/vm/gdb"
	NONCE=$RANDOM$RANDOM$RANDOM
}

# vm_configure COMMAND...: what the guest's init reads.
vm_configure() {
	printf '%s\n' "$OUTDIR" "$TOP/tools/vm/guest/init" "$VM_KERNEL_DIR" >"$OUTDIR/vm.paths"
	{
		printf '%s=%q\n' TOP "$TOP" BUILD "$BUILD" KERNEL "$KERNEL" SLOW "$SLOW" \
			ROLE "$ROLE" MY_IP "$MY_IP" MY_IP6 "$MY_IP6" PEER_IP "$PEER_IP" \
			PEER_IP6 "$PEER_IP6" SHARED "$SHARED" VM_MODULE "$MODULE" \
			VM_DEVS "$DEVS" VM_TRANSPORT "$TRANSPORT" VM_CWD "$PWD" \
			VM_TIMEOUT "$TIMEOUT" VM_SHELL "$SHELL_MODE" VM_STTY "${STTY-}" VM_TERM "${TERM:-linux}" VM_GDB "$GDB"
		echo "VM_ENV=(${GUEST_ENV[*]@Q})"
		local -a command=("$@")
		echo "VM_COMMAND=(${command[*]@Q})"
	} >"$OUTDIR/vm.conf"
}

# KVM when it really runs a guest (the device alone proves nothing): tried once per boot of the
# machine, with a kernel that must come as far as to panic for want of a root.
vm_has_kvm() {
	local probe
	case ${RDMA_EP_ACCEL-} in
	kvm) return 0 ;;
	tcg) return 1 ;;
	esac
	[ -r /dev/kvm ] && [ -w /dev/kvm ] || return
	probe=$CACHE/kvm-$(cat /proc/sys/kernel/random/boot_id)
	if [ ! -s "$probe" ]; then
		rm -f "$CACHE"/kvm-*
		if timeout 10 qemu-system-x86_64 -accel kvm -cpu "$KVM_CPU" -m 512M -nodefaults \
			-display none -no-reboot -kernel "$VM_KERNEL_DIR/vmlinuz" \
			-append panic=-1 >/dev/null 2>&1; then
			echo yes
		else
			echo no
		fi >"$probe"
	fi
	[ "$(cat "$probe")" = yes ]
}

# Emulated VMs starve each other, and their tests run into timeouts: this machine runs as many
# at once as it has processors, and the others wait, in the order in which they came. A pair counts
# as one.
vm_wait_turn() {
	local slot queue waits=
	! vm_has_kvm || return 0
	exec {queue}>"$CACHE/vm.queue"
	flock -n "$queue" || { waits=1 && say "waiting: other machines are running" && flock "$queue"; }
	while :; do
		for slot in $(seq "$(nproc)"); do
			exec {VM_TURN}>"$CACHE/vm.turn.$slot"
			if flock -n "$VM_TURN"; then
				exec {queue}>&-
				return
			fi
			exec {VM_TURN}>&-
		done
		[ -n "$waits" ] || say "waiting: other machines are running"
		waits=1
		sleep 1
	done
}

# vm_qemu CHARDEV: becomes the VM, the command's output going to that QEMU chardev. To be called
# in a subshell; the VM does not outlive the shell above.
vm_qemu() {
	local cpu=max,la57=off
	local -a accel=(-accel "tcg,thread=multi")
	if [ -n "$ICOUNT" ]; then
		accel=(-accel tcg -icount "shift=0,sleep=off")
	elif vm_has_kvm; then
		accel=(-accel kvm) cpu=$KVM_CPU
	fi
	local share=local,security_model=none,multidevs=remap
	exec setpriv --pdeathsig TERM timeout --foreground -k 5 $((TIMEOUT + 60 * SLOW + 30)) qemu-system-x86_64 \
		-M q35 "${accel[@]}" -cpu "$cpu" -smp "$SMP" -m "$MEM" \
		-nodefaults -no-user-config -display none -no-reboot "${NET[@]}" \
		-kernel "$VM_KERNEL_DIR/vmlinuz" -initrd "$INITRAMFS" -append "$(vm_cmdline)" \
		-serial "file:$OUTDIR/console.log" -device virtio-serial-pci \
		-chardev "$1" \
		-chardev "file,id=verdict,path=$OUTDIR/vm.verdict" \
		-device "$([ "$SHELL_MODE" = 1 ] && echo virtconsole || echo virtserialport),chardev=out,name=rdma_ep.out" \
		-device virtserialport,chardev=verdict,name=rdma_ep.verdict \
		-virtfs "$share,path=/,mount_tag=root,readonly=on" \
		-virtfs "$share,path=$OUTDIR,mount_tag=out" \
		${SHARED:+-virtfs "$share,path=$SHARED,mount_tag=shared"} \
		2>"$OUTDIR/qemu.log"
}

vm_cmdline() {
	printf %s "console=ttyS0 loglevel=5 log_buf_len=4M panic=-1 oops=panic panic_on_warn=1" \
		" mitigations=off random.trust_cpu=on no_timer_check tsc=reliable 8250.nr_uarts=1" \
		" rcupdate.rcu_cpu_stall_timeout=180 watchdog_thresh=60 audit=0 nowatchdog" \
		" rdma_ep.nonce=$NONCE$APPEND"
}

# vm_verdict: the exit code that the guest reported, or 98 when it reported none.
vm_verdict() {
	local nonce code rest
	if { read -r nonce code rest <"$OUTDIR/vm.verdict"; } 2>/dev/null &&
		[ "$nonce" = "$NONCE" ] && [ -n "$code" ] && [ -z "$rest" ]; then
		return "$code"
	fi
	say "the VM ended without a verdict; the end of $OUTDIR/console.log:"
	tail -n "${VM_TAIL:-60}" "$OUTDIR/console.log" >&2 || true
	cat "$OUTDIR/qemu.log" >&2
	return 98
}

# Output nobody asked to keep goes when the run was good.
vm_clean_up() {
	[ -n "$KEEP" ] || { [ "$1" = 0 ] && rm -r "$OUTDIR"; } || say "logs: $OUTDIR"
}
