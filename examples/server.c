// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The smallest server: server [ADDRESS]
 *
 * Takes one connection, prints the message that comes on it, and answers.
 */
#include <err.h>
#include <stdio.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

int main(int argc, char **argv)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP };
	struct ibv_qp_init_attr attr = { .cap = { 1, 1, 1, 1, 0 }, .sq_sig_all = 1 };
	struct rdma_cm_id *listener, *id;
	struct rdma_addrinfo *addr;
	char buf[64] = "";
	struct ibv_mr *mr;
	struct ibv_wc wc;

	if (rdma_getaddrinfo(argc > 1 ? argv[1] : NULL, "7471", &hints, &addr))
		err(1, "rdma_getaddrinfo");
	/* Each request comes with a queue pair made from attr. */
	if (rdma_create_ep(&listener, addr, NULL, &attr) || rdma_listen(listener, 8))
		err(1, "listen");
	if (rdma_get_request(listener, &id))
		err(1, "rdma_get_request");

	/* Once accepted, the client may send: the buffer has to be there before. */
	mr = rdma_reg_msgs(id, buf, sizeof(buf));
	if (!mr || rdma_post_recv(id, NULL, buf, sizeof(buf), mr) || rdma_accept(id, NULL))
		err(1, "accept");
	if (rdma_get_recv_comp(id, &wc) != 1 || wc.status != IBV_WC_SUCCESS)
		errx(1, "receive: %s", ibv_wc_status_str(wc.status));
	printf("the client says: %.64s\n", buf);

	snprintf(buf, sizeof(buf), "hello, client");
	if (rdma_post_send(id, NULL, buf, sizeof(buf), mr, 0) ||
	    rdma_get_send_comp(id, &wc) != 1 || wc.status != IBV_WC_SUCCESS)
		errx(1, "send");

	rdma_disconnect(id);
	rdma_dereg_mr(mr);
	rdma_destroy_ep(id);
	rdma_destroy_ep(listener);
	rdma_freeaddrinfo(addr);
	return 0;
}
