#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 300
#
# Two RDMA devices: a listener on a wildcard takes connections over both, each is reached by its
# own addresses, and RDMAEP_OPT_DEVICE keeps to one.

# shellcheck disable=SC2317 # ktap_test calls the functions
# shellcheck source=selftests/programs/lib.sh
. "$TOP/selftests/programs/lib.sh"

SECOND=10.77.9.1

second_device() {
	ip link add d9 type dummy && ip link set d9 multicast on up &&
		ip addr add "$SECOND"/24 dev d9 && rdma link add second0 type rxe netdev d9
}

undo() {
	rdma link delete second0
	ip link delete d9
	rm -rf "$WORK"
}
trap 'undo 2>/dev/null' EXIT

# One server, clients over each device.
each_address() {
	local code=0 address
	start_server rping -s -P || code=1
	for address in "$MY_IP" $SECOND; do
		client rping -c -a "$address" -C 2 -V || code=1
	done
	finish "$code"
}

# With a second device in the machine, the tests of RDMAEP_OPT_DEVICE forbid all but that.
options() {
	"$BUILD/selftests/api/option"
}

devices() {
	local output
	output=$(LD_LIBRARY_PATH=$RDMAEP_LIB "$BUILD/selftests/programs/apitrace" devices)
	echo "$output"
	[[ $output == *"devices 2 rxe0"* ]]
}

# What a program that can do without RDMA looks for: ENODEV from its first call, as rping says it.
no_device() {
	local output
	rdma link delete second0 && rdma link delete rxe0
	output=$(LD_LIBRARY_PATH=$RDMAEP_LIB rping -c -a "$MY_IP" -C 1 2>&1 || true)
	rdma link add rxe0 type rxe netdev d0
	echo "$output"
	[[ $output == *"No RDMA devices were detected"* ]]
}

ktap_test "a second device" second_device
ktap_test "rdma_get_devices() has both, in the kernel's order" devices
ktap_test "a listener on a wildcard, clients over both" each_address
ktap_test "RDMAEP_OPT_DEVICE" options
ktap_test "udaddy over the second" both udaddy -b $SECOND -- udaddy -s $SECOND
ktap_test "no device at all" no_device
ktap_end
