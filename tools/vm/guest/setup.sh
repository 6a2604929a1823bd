# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Sourced by init: names, limits, network, RDMA devices, the module under test. It starts few
# processes: each costs a tenth of a second under emulation, half a second with KASAN.

# The device file of the virtio port that the host named $1.
port() {
	local sys name
	for sys in /sys/class/virtio-ports/*; do
		read -r name <"$sys/name"
		[ "$name" != "$1" ] || { echo "/dev/${sys##*/}" && return; }
	done
	return 1
}

name_things() {
	echo rdma-vm >/proc/sys/kernel/hostname
	printf '%s\n' '127.0.0.1 localhost' '::1 localhost' "$MY_IP rdma-vm rdma-vm4" \
		"$MY_IP6 rdma-vm rdma-vm6" >/etc/hosts
	# shellcheck disable=SC2153 # vm.conf sets it
	[ -z "$PEER_IP" ] || printf '%s\n' "$PEER_IP peer peer4" "$PEER_IP6 peer peer6" >>/etc/hosts
}

# Debian's 120 seconds for the debug kernel too, which has 60: ib_cm can keep an id for 66 (see "A link
# that goes" in Documentation/reliability.rst), and who destroys it sleeps as long.
set_limits() {
	local all=/proc/sys/net/ipv6/conf/all
	echo 120 >/proc/sys/kernel/hung_task_timeout_secs
	echo -1 >/proc/sys/kernel/panic
	echo 1 >/proc/sys/kernel/hung_task_panic
	echo 1 >/proc/sys/kernel/sysrq
	echo 0 >$all/accept_dad
	echo 0 >${all/all/default}/accept_dad
	ulimit -l unlimited
}

# On a machine too busy to let the kernel measure its TSC, time would run at a speed of its own.
trust_no_guessed_clock() {
	local log
	log=$(dmesg)
	[[ $log != *"Unable to calibrate"* || $log == *"Refined TSC"* ]] ||
		echo hpet >/sys/devices/system/clocksource/clocksource0/current_clocksource
}

# netdev NAME ADDRESS4 ADDRESS6: what ip has to do for it to be up, with addresses at once.
netdev() {
	echo "link set $1 multicast on up"
	echo "addr add $2/24 dev $1"
	echo "addr add $3/64 dev $1 nodad"
}

network() {
	local i sys prefix
	echo "link set lo up"
	if [ -n "$ROLE" ]; then
		for sys in /sys/bus/virtio/drivers/virtio_net/virtio*/net/*; do
			echo "link set ${sys##*/} name d0"
		done
		netdev d0 "$MY_IP" "$MY_IP6"
	else
		for ((i = 0; i < VM_DEVS; i++)); do
			echo "link add d$i type dummy"
			prefix=fd77:$i:
			netdev "d$i" "10.77.$i.1" "${prefix/:0:/:}:1"
		done
	fi
	echo "route add 224.0.0.0/4 dev d0"
}

make_devices() {
	local i
	ip -batch <(network) || return
	for ((i = 0; i < VM_DEVS; i++)); do
		rdma link add "$VM_TRANSPORT$i" type "$VM_TRANSPORT" netdev "d$i" || return
	done
}

# Where the module's sections are, for tools/vm/gdb.
section_addresses() {
	local file
	for file in /sys/module/rdma_ep/sections/.*; do
		[ ! -f "$file" ] || echo "${file##*/} $(<"$file")"
	done
}

load_module() {
	if [ -n "$VM_MODULE" ]; then
		insmod "$VM_MODULE" || return
		[ "$VM_GDB" = 0 ] || section_addresses >"$OUT/vm.sections"
	else
		modprobe rdma_ucm
	fi
}
