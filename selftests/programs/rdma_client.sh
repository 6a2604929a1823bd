#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 150
#
# rdma_server and rdma_client: rdma_getaddrinfo, rdma_create_ep and the rest of the synchronous
# calls. rdma_xserver and rdma_xclient: the same with other QP types.

# shellcheck source=selftests/programs/lib.sh
. "$TOP/selftests/programs/lib.sh"

ktap_test "rdma_server, rdma_client" both rdma_server -- rdma_client -s "$MY_IP"
ktap_test "rdma_server, rdma_client on another port" \
	both rdma_server -p 7555 -- rdma_client -s "$MY_IP" -p 7555
ktap_test "rdma_server, rdma_client over IPv6" \
	both rdma_server -s "$MY_IP6" -- rdma_client -s "$MY_IP6"
ktap_test "rdma_xserver, rdma_xclient -c r" both rdma_xserver -c r -- rdma_xclient -s "$MY_IP" -c r
ktap_end
