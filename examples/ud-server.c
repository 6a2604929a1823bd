// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Datagrams, the side that is found: ud-server [ADDRESS]
 *
 * There is no connection. What looks like one (SIDR, service ID resolution)
 * only tells the client which queue pair to send to, and with which key.
 * Prints one datagram, and answers its sender.
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
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_UDP };
	struct ibv_qp_init_attr attr = { .cap = { 1, 1, 1, 1, 0 }, .sq_sig_all = 1 };
	struct datagram in = {}, out = {};
	struct rdma_cm_id *listener, *id;
	struct ibv_mr *in_mr, *out_mr;
	struct rdma_addrinfo *addr;
	struct rdma_conn_param param = {};
	struct ibv_wc wc = {};
	struct ibv_ah *ah;

	if (rdma_getaddrinfo(argc > 1 ? argv[1] : NULL, "7471", &hints, &addr))
		err(1, "rdma_getaddrinfo");
	if (rdma_create_ep(&listener, addr, NULL, &attr) || rdma_listen(listener, 8))
		err(1, "listen");
	if (rdma_get_request(listener, &id))
		err(1, "rdma_get_request");

	in_mr = rdma_reg_msgs(id, &in, sizeof(in));
	out_mr = rdma_reg_msgs(id, &out, sizeof(out));
	if (!in_mr || !out_mr || rdma_post_recv(id, NULL, &in, sizeof(in), in_mr))
		err(1, "buffers");
	/* The answer to "which queue pair": the one of this id. */
	param.qp_num = id->qp->qp_num;
	if (rdma_accept(id, &param))
		err(1, "rdma_accept");
	if (rdma_get_recv_comp(id, &wc) != 1 || wc.status != IBV_WC_SUCCESS)
		errx(1, "receive: %s", ibv_wc_status_str(wc.status));
	printf("the client says: %.64s\n", in.text);

	/* Where the datagram came from is where the answer goes. */
	ah = ibv_create_ah_from_wc(id->pd, &wc, &in.grh, id->port_num);
	if (!ah)
		err(1, "ibv_create_ah_from_wc");
	snprintf(out.text, sizeof(out.text), "hello, client");
	if (rdma_post_ud_send(id, NULL, out.text, sizeof(out.text), out_mr, 0, ah, wc.src_qp) ||
	    rdma_get_send_comp(id, &wc) != 1 || wc.status != IBV_WC_SUCCESS)
		errx(1, "send");

	ibv_destroy_ah(ah);
	rdma_dereg_mr(in_mr);
	rdma_dereg_mr(out_mr);
	rdma_destroy_ep(id);
	rdma_destroy_ep(listener);
	rdma_freeaddrinfo(addr);
	return 0;
}
