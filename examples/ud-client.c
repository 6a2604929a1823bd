// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Datagrams, the side that asks: ud-client ADDRESS
 *
 * Asks for the queue pair of ud-server, sends it a datagram, and prints the
 * answer.
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
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_UDP }, *addr;
	struct ibv_qp_init_attr attr = { .cap = { 1, 1, 1, 1, 0 }, .sq_sig_all = 1 };
	struct datagram in = {}, out = { .text = "hello, server" };
	struct ibv_mr *in_mr, *out_mr;
	struct rdma_ud_param *server;
	struct ibv_wc wc = {};
	struct rdma_cm_id *id;
	struct ibv_ah *ah;

	if (argc != 2)
		errx(2, "usage: ud-client ADDRESS");
	if (rdma_getaddrinfo(argv[1], "7471", &hints, &addr))
		err(1, "%s", argv[1]);
	if (rdma_create_ep(&id, addr, NULL, &attr))
		err(1, "rdma_create_ep");
	in_mr = rdma_reg_msgs(id, &in, sizeof(in));
	out_mr = rdma_reg_msgs(id, &out, sizeof(out));
	if (!in_mr || !out_mr || rdma_post_recv(id, NULL, &in, sizeof(in), in_mr))
		err(1, "buffers");

	/* The event that answered is kept in a synchronous id. */
	if (rdma_connect(id, NULL))
		err(1, "rdma_connect");
	server = &id->event->param.ud;
	ah = ibv_create_ah(id->pd, &server->ah_attr);
	if (!ah)
		err(1, "ibv_create_ah");
	if (rdma_post_ud_send(id, NULL, out.text, sizeof(out.text), out_mr, 0, ah,
			      server->qp_num) ||
	    rdma_get_recv_comp(id, &wc) != 1 || wc.status != IBV_WC_SUCCESS)
		errx(1, "no answer: %s", ibv_wc_status_str(wc.status));
	printf("the server says: %.64s\n", in.text);

	ibv_destroy_ah(ah);
	rdma_dereg_mr(in_mr);
	rdma_dereg_mr(out_mr);
	rdma_destroy_ep(id);
	rdma_freeaddrinfo(addr);
	return 0;
}
