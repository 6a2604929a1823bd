// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * An event loop that serves many clients in one thread: epoll-server [ADDRESS]
 *
 * Sends each message back to where it came from. Two kinds of files are
 * waited for with epoll: the event channel, which tells of connections that
 * come and go, and each connection's completion channel, which tells of its
 * messages. SIGTERM or SIGINT ends it.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

struct conn {
	struct rdma_cm_id *id;
	struct ibv_comp_channel *completions;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	char buf[64];
};

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

static int watch(int epoll, int fd, void *what)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = what };

	if (fcntl(fd, F_SETFL, O_NONBLOCK))
		return -1;
	return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev);
}

/* Also for a connection that did not come into being: its parts may be NULL. */
static void destroy_conn(struct conn *conn)
{
	if (conn->id->qp)
		rdma_destroy_qp(conn->id);
	if (conn->mr)
		ibv_dereg_mr(conn->mr);
	if (conn->cq)
		ibv_destroy_cq(conn->cq);
	if (conn->completions)
		ibv_destroy_comp_channel(conn->completions);
	rdma_destroy_id(conn->id);
	free(conn);
}

static int make_queues(struct conn *conn, int epoll)
{
	struct rdma_cm_id *id = conn->id;
	struct ibv_qp_init_attr attr = {
		.cap = { 1, 1, 1, 1, 0 }, .qp_type = IBV_QPT_RC, .sq_sig_all = 1
	};

	conn->completions = ibv_create_comp_channel(id->verbs);
	if (!conn->completions || watch(epoll, conn->completions->fd, conn))
		return -1;
	conn->cq = ibv_create_cq(id->verbs, 2, NULL, conn->completions, 0);
	if (!conn->cq || ibv_req_notify_cq(conn->cq, 0))
		return -1;
	attr.send_cq = attr.recv_cq = conn->cq;
	if (rdma_create_qp(id, NULL, &attr))
		return -1;
	conn->mr = rdma_reg_msgs(id, conn->buf, sizeof(conn->buf));
	return conn->mr ? 0 : -1;
}

static void accept_conn(struct rdma_cm_id *id, int epoll)
{
	/* Who sends while our buffer is in use tries again, for ever. */
	struct rdma_conn_param param = { .rnr_retry_count = 7 };
	struct conn *conn = calloc(1, sizeof(*conn));

	if (!conn) {
		rdma_destroy_id(id); /* which rejects the request */
		return;
	}
	conn->id = id;
	id->context = conn;
	if (make_queues(conn, epoll) ||
	    rdma_post_recv(id, NULL, conn->buf, sizeof(conn->buf), conn->mr) ||
	    rdma_accept(id, &param)) {
		warn("cannot accept");
		destroy_conn(conn);
	}
}

static void handle_event(struct rdma_event_channel *channel, int epoll)
{
	enum rdma_cm_event_type type;
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	if (rdma_get_cm_event(channel, &event))
		return; /* EAGAIN: somebody was faster */
	type = event->event;
	id = event->id;
	/* An id must not be destroyed while its event is held. */
	rdma_ack_cm_event(event);

	switch (type) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		accept_conn(id, epoll);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		printf("connected\n");
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		printf("disconnected\n");
		rdma_disconnect(id);
		destroy_conn(id->context);
		break;
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
		printf("%s\n", rdma_event_str(type));
		destroy_conn(id->context);
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		errx(1, "the device is gone");
	default: /* such as TIMEWAIT_EXIT, which asks for nothing */
		break;
	}
}

/* One buffer: what was received is sent, what was sent makes room to receive. */
static void handle_completions(struct conn *conn)
{
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;

	if (ibv_get_cq_event(conn->completions, &cq, &context))
		return;
	ibv_ack_cq_events(cq, 1);
	/* Ask first, then look: what comes in between is not missed. */
	if (ibv_req_notify_cq(cq, 0))
		err(1, "ibv_req_notify_cq");
	while (ibv_poll_cq(cq, 1, &wc) == 1) {
		if (wc.status != IBV_WC_SUCCESS)
			continue; /* flushed: DISCONNECTED is on its way */
		if (wc.opcode == IBV_WC_RECV)
			rdma_post_send(conn->id, NULL, conn->buf, wc.byte_len, conn->mr, 0);
		else
			rdma_post_recv(conn->id, NULL, conn->buf, sizeof(conn->buf), conn->mr);
	}
}

static struct rdma_cm_id *listen_on(struct rdma_event_channel *channel, const char *address)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP };
	struct rdma_addrinfo *addr;
	struct rdma_cm_id *id;

	if (rdma_getaddrinfo(address, "7471", &hints, &addr))
		err(1, "rdma_getaddrinfo");
	if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(id, addr->ai_src_addr) || rdma_listen(id, 64))
		err(1, "listen");
	rdma_freeaddrinfo(addr);
	return id;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener;
	struct epoll_event ev;
	int epoll, n;

	setvbuf(stdout, NULL, _IOLBF, 0);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	epoll = epoll_create1(EPOLL_CLOEXEC);
	channel = rdma_create_event_channel();
	if (epoll < 0 || !channel || watch(epoll, channel->fd, NULL))
		err(1, "event channel");
	listener = listen_on(channel, argc > 1 ? argv[1] : NULL);

	/* One at a time, since handling one may destroy what another is about. */
	while (!stop) {
		n = epoll_wait(epoll, &ev, 1, -1);
		if (n < 0 && errno != EINTR)
			err(1, "epoll_wait");
		if (n == 1 && ev.data.ptr)
			handle_completions(ev.data.ptr);
		else if (n == 1)
			handle_event(channel, epoll);
	}

	rdma_destroy_id(listener);
	rdma_destroy_event_channel(channel);
	close(epoll);
	return 0;
}
