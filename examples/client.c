// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The smallest client: client ADDRESS
 *
 * Connects to the server, sends a message, and prints the answer.
 */
#include <err.h>
#include <stdio.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

int main(int argc, char **argv)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *addr;
	struct ibv_qp_init_attr attr = { .cap = { 1, 1, 1, 1, 0 }, .sq_sig_all = 1 };
	char out[64] = "hello, server", in[64] = "";
	struct ibv_mr *out_mr, *in_mr;
	struct rdma_cm_id *id;
	struct ibv_wc wc = {};

	if (argc != 2)
		errx(2, "usage: client ADDRESS");
	if (rdma_getaddrinfo(argv[1], "7471", &hints, &addr))
		err(1, "%s", argv[1]);
	/* Address and route are resolved in here, and the queue pair is made. */
	if (rdma_create_ep(&id, addr, NULL, &attr))
		err(1, "rdma_create_ep");

	out_mr = rdma_reg_msgs(id, out, sizeof(out));
	in_mr = rdma_reg_msgs(id, in, sizeof(in));
	if (!out_mr || !in_mr || rdma_post_recv(id, NULL, in, sizeof(in), in_mr))
		err(1, "buffers");
	if (rdma_connect(id, NULL))
		err(1, "rdma_connect");
	if (rdma_post_send(id, NULL, out, sizeof(out), out_mr, 0) ||
	    rdma_get_recv_comp(id, &wc) != 1 || wc.status != IBV_WC_SUCCESS)
		errx(1, "no answer: %s", ibv_wc_status_str(wc.status));
	printf("the server says: %.64s\n", in);

	rdma_disconnect(id);
	rdma_dereg_mr(out_mr);
	rdma_dereg_mr(in_mr);
	rdma_destroy_ep(id);
	rdma_freeaddrinfo(addr);
	return 0;
}
