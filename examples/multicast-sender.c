// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Sends a datagram to all in a multicast group: multicast-sender GROUP TEXT
 *
 * Joining is also how a sender learns the group's address and key.
 */
#include <err.h>
#include <stdio.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

int main(int argc, char **argv)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_UDP }, *addr;
	struct ibv_qp_init_attr attr = {
		.cap = { 1, 1, 1, 1, 0 }, .qp_type = IBV_QPT_UD, .sq_sig_all = 1
	};
	struct rdma_ud_param *group;
	struct ibv_wc wc = {};
	struct rdma_cm_id *id;
	struct ibv_ah *ah;
	struct ibv_mr *mr;
	char out[64];

	if (argc != 3)
		errx(2, "usage: multicast-sender GROUP TEXT");
	if (rdma_getaddrinfo(argv[1], "7471", &hints, &addr))
		err(1, "%s", argv[1]);
	if (rdma_create_id(NULL, &id, NULL, RDMA_PS_UDP) ||
	    rdma_resolve_addr(id, NULL, addr->ai_dst_addr, 2000) ||
	    rdma_create_qp(id, NULL, &attr) ||
	    rdma_join_multicast(id, addr->ai_dst_addr, NULL))
		err(1, "%s", argv[1]);

	/* The event that told of the join is kept in a synchronous id. */
	group = &id->event->param.ud;
	snprintf(out, sizeof(out), "%s", argv[2]);
	mr = rdma_reg_msgs(id, out, sizeof(out));
	ah = ibv_create_ah(id->pd, &group->ah_attr);
	if (!mr || !ah)
		err(1, "ibv_create_ah");
	if (rdma_post_ud_send(id, NULL, out, sizeof(out), mr, 0, ah, group->qp_num) ||
	    rdma_get_send_comp(id, &wc) != 1 || wc.status != IBV_WC_SUCCESS)
		errx(1, "send: %s", ibv_wc_status_str(wc.status));

	ibv_destroy_ah(ah);
	rdma_dereg_mr(mr);
	rdma_leave_multicast(id, addr->ai_dst_addr);
	rdma_destroy_qp(id);
	rdma_destroy_id(id);
	rdma_freeaddrinfo(addr);
	return 0;
}
