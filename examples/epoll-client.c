// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A client that never blocks: epoll-client ADDRESS [COUNT]
 *
 * Every step of a connection is an event, and the next step is taken when it
 * comes. Meanwhile the thread is free for whatever else is in its epoll set.
 * It sends COUNT messages (3) to epoll-server, each when the answer to the one
 * before has come.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

static int epoll, count = 3, sent, done;
static char out[64], in[64];
static struct ibv_mr *out_mr, *in_mr;
static struct ibv_comp_channel *completions;
static struct ibv_cq *cq;

static void watch(int fd)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = fd };

	if (fcntl(fd, F_SETFL, O_NONBLOCK) || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev))
		err(1, "epoll_ctl");
}

static void make_queues(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.cap = { 2, 1, 1, 1, 0 }, .qp_type = IBV_QPT_RC, .sq_sig_all = 1
	};

	completions = ibv_create_comp_channel(id->verbs);
	cq = completions ? ibv_create_cq(id->verbs, 4, NULL, completions, 0) : NULL;
	if (!cq || ibv_req_notify_cq(cq, 0))
		err(1, "completion queue");
	watch(completions->fd);
	attr.send_cq = attr.recv_cq = cq;
	if (rdma_create_qp(id, NULL, &attr))
		err(1, "rdma_create_qp");
	out_mr = rdma_reg_msgs(id, out, sizeof(out));
	in_mr = rdma_reg_msgs(id, in, sizeof(in));
	if (!out_mr || !in_mr)
		err(1, "rdma_reg_msgs");
}

/* The place for the answer is there before the question is sent. */
static void send_next(struct rdma_cm_id *id)
{
	snprintf(out, sizeof(out), "message %d", ++sent);
	if (rdma_post_recv(id, NULL, in, sizeof(in), in_mr) ||
	    rdma_post_send(id, NULL, out, sizeof(out), out_mr, 0))
		err(1, "post");
}

static void handle_event(struct rdma_event_channel *channel)
{
	struct rdma_conn_param param = { .rnr_retry_count = 7, .retry_count = 7 };
	enum rdma_cm_event_type type;
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	int status;

	if (rdma_get_cm_event(channel, &event))
		return;
	type = event->event;
	status = event->status;
	id = event->id;
	rdma_ack_cm_event(event);

	switch (type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (rdma_resolve_route(id, 2000))
			err(1, "rdma_resolve_route");
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		make_queues(id);
		if (rdma_connect(id, &param))
			err(1, "rdma_connect");
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		send_next(id);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		done = 1;
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	default:
		/* a negative status is an errno; of REJECTED it is the peer's reason */
		errx(1, "%s: %s", rdma_event_str(type),
		     status < 0 ? strerror(-status) : "the other side refuses");
	}
}

static void handle_completions(struct rdma_cm_id *id)
{
	struct ibv_cq *which;
	struct ibv_wc wc;
	void *context;

	if (ibv_get_cq_event(completions, &which, &context))
		return;
	ibv_ack_cq_events(which, 1);
	if (ibv_req_notify_cq(which, 0))
		err(1, "ibv_req_notify_cq");
	while (!done && ibv_poll_cq(which, 1, &wc) == 1) {
		if (wc.status == IBV_WC_WR_FLUSH_ERR)
			continue; /* DISCONNECTED is on its way */
		if (wc.status != IBV_WC_SUCCESS)
			errx(1, "%s", ibv_wc_status_str(wc.status));
		if (wc.opcode != IBV_WC_RECV)
			continue;
		printf("back came: %.64s\n", in);
		if (sent < count)
			send_next(id);
		else
			rdma_disconnect(id);
	}
}

int main(int argc, char **argv)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *addr;
	struct rdma_event_channel *channel;
	struct epoll_event ev;
	struct rdma_cm_id *id;
	int n;

	if (argc < 2)
		errx(2, "usage: epoll-client ADDRESS [COUNT]");
	if (argc > 2)
		count = atoi(argv[2]);
	if (rdma_getaddrinfo(argv[1], "7471", &hints, &addr))
		err(1, "%s", argv[1]);
	epoll = epoll_create1(EPOLL_CLOEXEC);
	channel = rdma_create_event_channel();
	if (epoll < 0 || !channel)
		err(1, "event channel");
	watch(channel->fd);
	if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) ||
	    rdma_resolve_addr(id, NULL, addr->ai_dst_addr, 2000))
		err(1, "rdma_resolve_addr");
	rdma_freeaddrinfo(addr);

	while (!done) {
		n = epoll_wait(epoll, &ev, 1, -1);
		if (n < 0 && errno != EINTR)
			err(1, "epoll_wait");
		if (n == 1 && ev.data.fd == channel->fd)
			handle_event(channel);
		else if (n == 1)
			handle_completions(id);
	}

	rdma_destroy_qp(id);
	ibv_dereg_mr(out_mr);
	ibv_dereg_mr(in_mr);
	ibv_destroy_cq(cq);
	ibv_destroy_comp_channel(completions);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
	close(epoll);
	return 0;
}
