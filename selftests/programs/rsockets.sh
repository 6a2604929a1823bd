#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 300
#
# Programs with sockets over RDMA: our library loads librdmacm for them and passes the calls on.
# (Not udpong: on a host that talks to itself it fails, with librdmacm too.)

# shellcheck disable=SC2317 # ktap_test calls the functions
# shellcheck source=selftests/programs/lib.sh
. "$TOP/selftests/programs/lib.sh"

[ "$RDMAEP_LIB" = stock ] || modprobe rdma_ucm
trap 'rm -rf "$WORK"; [ "$RDMAEP_LIB" = stock ] || rmmod rdma_ucm 2>/dev/null' EXIT

ALSO_LOADED=' /*/librdmacm.so.1'

# both_rstream OPTION...: the server's and the client's are the same.
both_rstream() {
	both rstream -b "$MY_IP" "$@" -- rstream -s "$MY_IP" "$@"
}

both_riostream() {
	both riostream -b "$MY_IP" "$@" -- riostream -s "$MY_IP" "$@"
}

# A server of rcopy ends by a signal.
copy() {
	local code=0
	head -c 300000 /dev/urandom >"$WORK/from"
	start_server rcopy
	client rcopy "$WORK/from" "$MY_IP:$WORK/to" && cmp "$WORK/from" "$WORK/to" || code=1
	finish "$code"
}

# librdmacm would free with libc's what libc has allocated with the other
other_malloc() {
	local code=0
	echo 'void *__libc_malloc(unsigned long); void *malloc(unsigned long n) { return __libc_malloc(n); }' |
		cc -shared -fPIC -x c -o "$WORK/malloc.so" -
	! LD_PRELOAD="$WORK/malloc.so" client rstream -s "$MY_IP" -C 1 || code=1
	grep -q "Address family not supported" "$WORK/client.log" || code=1
	[ "$code" = 0 ] || cat "$WORK/client.log"
	rm -f "$WORK"/*
	return "$code"
}

# librdmacm has the kernel load rdma_ucm.
loads_rdma_ucm() {
	rmmod rdma_ucm && both_rstream -S 64 -C 10 && [ -e /sys/module/rdma_ucm ]
}

ktap_test "rstream" both_rstream -S 4096 -C 100
ktap_test "rstream, blocking" both_rstream -T b -S 4096 -C 100
ktap_test "rstream, -T a" both_rstream -T a -S 4096 -C 100
ktap_test "riostream" both_riostream -S 4096 -C 100
ktap_test "rcopy" copy
[ "$RDMAEP_LIB" = stock ] || ktap_test "another malloc()" other_malloc
ktap_test "rdma_ucm is loaded" loads_rdma_ucm
ktap_end
