# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Sourced by init: file systems, network, RDMA devices, the module under test.

mount_all() {
	mkdir -p /dev/pts /dev/shm /lib/modules
	mount -t devpts devpts /dev/pts
	mount -t tmpfs tmpfs /dev/shm
	mount -t tmpfs -o mode=755 tmpfs /run
	mount -t cgroup2 cgroup2 /sys/fs/cgroup
	mount -t debugfs debugfs /sys/kernel/debug
	mount -t tracefs tracefs /sys/kernel/tracing
	mount --bind "$VM_KERNEL_DIR/lib/modules" /lib/modules
	ln -sfn /proc/self/fd /dev/fd
	ln -sfn /proc/self/fd/0 /dev/stdin
	ln -sfn /proc/self/fd/1 /dev/stdout
	ln -sfn /proc/self/fd/2 /dev/stderr
	hostname rdma-vm
	printf '%s\n' '127.0.0.1 localhost' '::1 localhost' '10.77.0.1 rdma-vm rdma-vm4' \
		'fd77::1 rdma-vm rdma-vm6' >/etc/hosts
}

# The device file of the virtio port that the host named $1.
port() {
	local sys
	sys=$(grep -lx "$1" /sys/class/virtio-ports/*/name) || return
	echo "/dev/$(basename "$(dirname "$sys")")"
}

set_sysctls() {
	sysctl -qw kernel.panic=-1 kernel.hung_task_panic=1 kernel.sysrq=1 \
		net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.default.accept_dad=0
}

# netdev NAME ADDRESS4 ADDRESS6: up, with addresses at once and multicast routed through it.
netdev() {
	ip link set "$1" multicast on up
	ip addr add "$2/24" dev "$1"
	ip -6 addr add "$3/64" dev "$1" nodad
	ip link show "$1" | grep -q 'state UP\|state UNKNOWN'
}

make_devices() {
	local i type ip6
	ip link set lo up
	modprobe -a ib_uverbs rdma_cm "$VM_TRANSPORT" || return
	case $VM_TRANSPORT in
	rdma_rxe) type=rxe ;;
	*) type=$VM_TRANSPORT ;;
	esac
	if [ -n "$ROLE" ]; then
		modprobe virtio_net || return
		ip link set "$(basename /sys/bus/virtio/drivers/virtio_net/virtio*/net/*)" name d0
		netdev d0 "$MY_IP" "$MY_IP6" || return
		rdma link add "${type}0" type "$type" netdev d0 || return
	else
		modprobe dummy numdummies=0 || return
		for ((i = 0; i < VM_DEVS; i++)); do
			ip link add "d$i" type dummy || return
			[ "$i" = 0 ] && ip6=fd77::1 || ip6=fd77:$i::1
			netdev "d$i" "10.77.$i.1" "$ip6" || return
			rdma link add "$type$i" type "$type" netdev "d$i" || return
		done
	fi
	ip route add 224.0.0.0/4 dev d0
}

load_module() {
	if [ -n "$VM_MODULE" ]; then
		insmod "$VM_MODULE"
	else
		modprobe rdma_ucm
	fi
}
