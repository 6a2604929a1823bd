#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 900
# sides: ours stock
#
# Unmodified programs on our library and module talk to the same on librdmacm and rdma_ucm, over
# a link between two machines, each as server and as client.

# shellcheck source=selftests/pair/lib.sh
. "$TOP/selftests/pair/lib.sh"

both_ways "rping" rping -s -a ADDRESS -C 5 -- rping -c -a ADDRESS -C 5 -V
both_ways "rping -q" rping -s -q -a ADDRESS -C 5 -- rping -c -q -a ADDRESS -C 5 -V
both_ways "rping over IPv6" rping -s -a ADDRESS6 -C 5 -- rping -c -a ADDRESS6 -C 5 -V
both_ways "rdma_server, rdma_client" rdma_server -- rdma_client -s ADDRESS
both_ways "ucmatose" ucmatose -c 4 -C 2 -- ucmatose -c 4 -C 2 -s ADDRESS
both_ways "ucmatose -m" ucmatose -m -c 4 -t 32 -a 14 -- ucmatose -m -c 4 -t 32 -a 14 -s ADDRESS
both_ways "udaddy" udaddy -c 4 -- udaddy -c 4 -s ADDRESS
both_ways "rdma_xserver, rdma_xclient" rdma_xserver -c r -- rdma_xclient -s ADDRESS -c r
both_ways "ib_send_bw -R" ib_send_bw -F -R -s 1024 -n 50 -- ib_send_bw -F -R -s 1024 -n 50 ADDRESS
both_ways "ib_send_lat -R -c UD" ib_send_lat -F -R -c UD -s 64 -n 50 -- \
	ib_send_lat -F -R -c UD -s 64 -n 50 ADDRESS
both_ways "ib_read_lat -R" ib_read_lat -F -R -s 64 -n 50 -- ib_read_lat -F -R -s 64 -n 50 ADDRESS
both_ways "ib_write_bw -R" ib_write_bw -F -R -s 4096 -n 50 -- \
	ib_write_bw -F -R -s 4096 -n 50 ADDRESS
both_ways_endless "rping -P" rping -s -P -a ADDRESS -- rping -c -a ADDRESS -C 3 -V
both_ways_endless "cmtime" cmtime -c 20 -- cmtime -s ADDRESS -c 20
ktap_end
