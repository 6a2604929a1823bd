// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Joins a multicast group and prints one datagram: multicast-receiver GROUP
 *
 * GROUP is an address such as 239.1.1.1; the routing table says on which
 * device (ip route add 224.0.0.0/4 dev eth0).
 */
#include <err.h>
#include <stdio.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

/* What a UD queue pair receives has the sender's address in front. */
struct datagram {
	struct ibv_grh grh;
	char text[64];
};

int main(int argc, char **argv)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_UDP }, *group;
	struct ibv_qp_init_attr attr = { .cap = { 1, 1, 1, 1, 0 }, .qp_type = IBV_QPT_UD };
	struct datagram in = {};
	struct rdma_cm_id *id;
	struct ibv_wc wc = {};
	struct ibv_mr *mr;

	if (argc != 2)
		errx(2, "usage: multicast-receiver GROUP");
	if (rdma_getaddrinfo(argv[1], "7471", &hints, &group))
		err(1, "%s", argv[1]);
	/* No channel: each call returns when what it began has come to its end. */
	if (rdma_create_id(NULL, &id, NULL, RDMA_PS_UDP) ||
	    rdma_resolve_addr(id, NULL, group->ai_dst_addr, 2000) ||
	    rdma_create_qp(id, NULL, &attr))
		err(1, "%s", argv[1]);
	mr = rdma_reg_msgs(id, &in, sizeof(in));
	if (!mr || rdma_post_recv(id, NULL, &in, sizeof(in), mr))
		err(1, "buffer");

	/* Whoever sends to the group from now on reaches the queue pair. */
	if (rdma_join_multicast(id, group->ai_dst_addr, NULL))
		err(1, "rdma_join_multicast");
	if (rdma_get_recv_comp(id, &wc) != 1 || wc.status != IBV_WC_SUCCESS)
		errx(1, "receive: %s", ibv_wc_status_str(wc.status));
	printf("to the group: %.64s\n", in.text);

	rdma_leave_multicast(id, group->ai_dst_addr);
	rdma_destroy_qp(id);
	rdma_dereg_mr(mr);
	rdma_destroy_id(id);
	rdma_freeaddrinfo(group);
	return 0;
}
