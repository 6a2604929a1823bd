// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rdmaep serve: the other end of "rdmaep ping". One thread: it sleeps in
 * poll(2) for the event channel and for the completions of each device.
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>
#include <rdmaep.h>

#include "path.h"
#include "tool.h"

#define MAX_DEVICES	16
#define MAX_PEERS	256	/* at once; a CQ has room for all of them */

/**
 * struct device - what connections on one RDMA device share
 * @verbs: the device
 * @pd: protection domain
 * @comp: completion channel
 * @cq: where all its QPs report
 */
struct device {
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ibv_comp_channel *comp;
	struct ibv_cq *cq;
};

/**
 * struct peer - a connection
 * @id: its id
 * @key: what its work requests are known by. Their completions may come when
 *	it has gone: no pointer is made of what is in one.
 * @mr: of @buf
 * @messages: how many were sent back
 * @name: the peer's address and port
 * @buf: the message
 */
struct peer {
	struct rdma_cm_id *id;
	uint64_t key;
	struct ibv_mr *mr;
	unsigned long messages;
	char name[NI_MAXHOST + 16];
	char buf[PATH_MAX_SIZE];
};

static struct {
	struct device device[MAX_DEVICES];
	int devices;
	struct peer *peer[MAX_PEERS];
	uint64_t last_serial;
	int peers;
	unsigned long ended;
	unsigned long end_after; /* so many connections; 0: never */
} server;

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

/* Each line with its time: a server's output is read later. */
__attribute__((format(printf, 1, 2)))
static void say(const char *fmt, ...)
{
	char stamp[32];
	time_t now = time(NULL);
	va_list ap;

	strftime(stamp, sizeof(stamp), "%H:%M:%S", localtime(&now));
	printf("%s ", stamp);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	tool_flush();
}

/* errno, and the library's reason if it has one. */
static void complain(const char *what)
{
	int err = errno;

	tool_error("%s: %s%s%s", what, strerror(err), rdmaep_strerror()[0] ? ": " : "",
		   rdmaep_strerror());
	errno = err;
}

static struct device *open_device(struct ibv_context *verbs)
{
	struct device *dev;
	int i;

	for (i = 0; i < server.devices; i++)
		if (server.device[i].verbs == verbs)
			return &server.device[i];
	if (server.devices == MAX_DEVICES) {
		errno = ENOSPC;
		return NULL;
	}
	dev = &server.device[server.devices];
	dev->verbs = verbs;
	dev->pd = ibv_alloc_pd(verbs);
	if (!dev->pd)
		return NULL;
	dev->comp = ibv_create_comp_channel(verbs);
	if (!dev->comp)
		goto dealloc_pd;
	dev->cq = ibv_create_cq(verbs, 2 * MAX_PEERS, NULL, dev->comp, 0);
	if (!dev->cq)
		goto destroy_comp;
	if (ibv_req_notify_cq(dev->cq, 0) ||
	    fcntl(dev->comp->fd, F_SETFL, O_NONBLOCK))
		goto destroy_cq;
	server.devices++;
	return dev;

destroy_cq:
	ibv_destroy_cq(dev->cq);
destroy_comp:
	ibv_destroy_comp_channel(dev->comp);
dealloc_pd:
	ibv_dealloc_pd(dev->pd);
	return NULL;
}

static void close_devices(void)
{
	struct device *dev;

	while (server.devices) {
		dev = &server.device[--server.devices];
		ibv_destroy_cq(dev->cq);
		ibv_destroy_comp_channel(dev->comp);
		ibv_dealloc_pd(dev->pd);
	}
}

static int post_recv(struct peer *peer)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)peer->buf,
		.length = sizeof(peer->buf),
		.lkey = peer->mr->lkey,
	};
	struct ibv_recv_wr wr = { .wr_id = peer->key, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_recv(peer->id->qp, &wr, &bad);
}

static int post_send(struct peer *peer, uint32_t len)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)peer->buf,
		.length = len,
		.lkey = peer->mr->lkey,
	};
	struct ibv_send_wr wr = {
		.wr_id = peer->key,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	}, *bad;

	return ibv_post_send(peer->id->qp, &wr, &bad);
}

static void name_peer(struct peer *peer)
{
	char host[NI_MAXHOST], port[16];
	struct sockaddr *addr = rdma_get_peer_addr(peer->id);
	socklen_t len = addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
						      sizeof(struct sockaddr_in);

	if (getnameinfo(addr, len, host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV))
		snprintf(peer->name, sizeof(peer->name), "?");
	else
		snprintf(peer->name, sizeof(peer->name),
			 addr->sa_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
}

/* Its place in the table is the low part of its key. NULL: no room, no memory. */
static struct peer *new_peer(struct rdma_cm_id *id)
{
	struct peer *peer;
	int i = 0;

	while (i < MAX_PEERS && server.peer[i])
		i++;
	peer = i < MAX_PEERS ? calloc(1, sizeof(*peer)) : NULL;
	if (!peer)
		return NULL;
	peer->key = ++server.last_serial * MAX_PEERS + i;
	peer->id = id;
	id->context = peer;
	name_peer(peer);
	server.peer[i] = peer;
	server.peers++;
	return peer;
}

static struct peer *find_peer(uint64_t key)
{
	struct peer *peer = server.peer[key % MAX_PEERS];

	return peer && peer->key == key ? peer : NULL;
}

static void free_peer(struct peer *peer)
{
	server.peer[peer->key % MAX_PEERS] = NULL;
	server.peers--;
	if (peer->id->qp)
		rdma_destroy_qp(peer->id);
	if (peer->mr)
		ibv_dereg_mr(peer->mr);
	rdma_destroy_id(peer->id);
	free(peer);
}

static int set_up(struct peer *peer)
{
	struct device *dev = open_device(peer->id->verbs);
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};

	if (!dev)
		return -1;
	attr.send_cq = dev->cq;
	attr.recv_cq = dev->cq;
	peer->mr = ibv_reg_mr(dev->pd, peer->buf, sizeof(peer->buf), IBV_ACCESS_LOCAL_WRITE);
	if (!peer->mr || rdma_create_qp(peer->id, dev->pd, &attr))
		return -1;
	return post_recv(peer) ? -1 : 0;
}

static void on_request(struct rdma_cm_event *event)
{
	const struct rdma_conn_param *asked = &event->param.conn;
	struct path_hello hello = path_hello();
	struct rdma_conn_param param = {
		.private_data = &hello,
		.private_data_len = sizeof(hello),
		.rnr_retry_count = 7,
	};
	struct peer *peer = new_peer(event->id);

	if (!peer) {
		say("no room for one more connection: rejected");
		rdma_reject(event->id, NULL, 0);
		rdma_destroy_id(event->id);
		return;
	}
	if (!path_is_hello(asked->private_data, asked->private_data_len)) {
		say("%s is not rdmaep ping: rejected", peer->name);
		rdma_reject(peer->id, NULL, 0);
		free_peer(peer);
		return;
	}
	if (set_up(peer) || rdma_accept(peer->id, &param)) {
		complain(peer->name);
		rdma_reject(peer->id, NULL, 0);
		free_peer(peer);
	}
}

static void on_end(struct peer *peer, const char *how)
{
	say("%s %s after %lu message%s", peer->name, how, peer->messages,
	    peer->messages == 1 ? "" : "s");
	rdma_disconnect(peer->id);
	free_peer(peer);
	server.ended++;
}

/* The event is acknowledged before its id may be destroyed. */
static void handle_event(struct rdma_event_channel *channel)
{
	enum rdma_cm_event_type type;
	struct rdma_cm_event *event;
	struct peer *peer;

	if (rdma_get_cm_event(channel, &event)) {
		if (errno != EAGAIN && errno != EINTR)
			complain("events");
		return;
	}
	type = event->event;
	peer = event->id->context;
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
		on_request(event);
	rdma_ack_cm_event(event);

	switch (type) {
	case RDMA_CM_EVENT_ESTABLISHED:
		say("%s connected", peer->name);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		on_end(peer, "gone");
		break;
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
		on_end(peer, "has failed to connect");
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		say("an RDMA device was removed");
		if (peer)
			on_end(peer, "lost");
		break;
	default:
		break;
	}
}

/* A message goes back; when it has gone there is room for the next. */
static void on_completion(const struct ibv_wc *wc)
{
	struct peer *peer = find_peer(wc->wr_id);

	if (!peer || wc->status == IBV_WC_WR_FLUSH_ERR)
		return;
	if (wc->status != IBV_WC_SUCCESS) {
		tool_error("%s: %s", peer->name, ibv_wc_status_str(wc->status));
		rdma_disconnect(peer->id);
		return;
	}
	if (wc->opcode & IBV_WC_RECV) {
		if (post_send(peer, wc->byte_len))
			complain(peer->name);
		return;
	}
	peer->messages++;
	if (post_recv(peer))
		complain(peer->name);
}

static void handle_completions(struct device *dev)
{
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;

	if (ibv_get_cq_event(dev->comp, &cq, &context))
		return;
	ibv_ack_cq_events(cq, 1);
	ibv_req_notify_cq(cq, 0);
	while (ibv_poll_cq(cq, 1, &wc) > 0)
		on_completion(&wc);
}

static int serve(struct rdma_event_channel *channel)
{
	struct pollfd fd[1 + MAX_DEVICES];
	int i, devices;

	while (!stop && (!server.end_after || server.ended < server.end_after)) {
		devices = server.devices;
		fd[0] = (struct pollfd){ .fd = channel->fd, .events = POLLIN };
		for (i = 0; i < devices; i++)
			fd[1 + i] = (struct pollfd){ .fd = server.device[i].comp->fd,
						     .events = POLLIN };
		if (poll(fd, 1 + devices, -1) < 0)
			continue; /* a signal */
		for (i = 0; i < devices; i++)
			if (fd[1 + i].revents)
				handle_completions(&server.device[i]);
		if (fd[0].revents)
			handle_event(channel);
	}
	return TOOL_OK;
}

/* Returns the listener, or NULL after an error message. */
static struct rdma_cm_id *start(struct rdma_event_channel *channel, const char *address,
				const char *port)
{
	struct addrinfo hints = { .ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM }, *info;
	struct rdma_cm_id *id;
	int err;

	/* [::] takes IPv4 as well, 0.0.0.0 nothing else */
	err = getaddrinfo(address ? address : "::", port, &hints, &info);
	if (err) {
		tool_error("%s, port %s: %s", address ? address : "any address", port,
			   gai_strerror(err));
		return NULL;
	}
	if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP)) {
		complain("endpoint");
		goto free_info;
	}
	if (rdma_bind_addr(id, info->ai_addr)) {
		complain("bind");
		if (errno == EADDRINUSE)
			tool_error("rdmaep list -l -p %s may say who has it; -p takes another",
				   port);
		goto destroy;
	}
	if (rdma_listen(id, 0)) {
		complain("listen");
		goto destroy;
	}
	freeaddrinfo(info);
	return id;

destroy:
	rdma_destroy_id(id);
free_info:
	freeaddrinfo(info);
	tool_advise(rdmaep_last_reason());
	return NULL;
}

static int run(const char *address, const char *port)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener;
	int ret = TOOL_FAILED;

	channel = rdma_create_event_channel();
	if (!channel) {
		complain("event channel");
		tool_error("see rdmaep doctor");
		return TOOL_FAILED;
	}
	listener = start(channel, address, port);
	if (listener && !fcntl(channel->fd, F_SETFL, O_NONBLOCK)) {
		sigaction(SIGINT, &action, NULL);
		sigaction(SIGTERM, &action, NULL);
		say("listening on %s, port %u", address ? address : "all addresses",
		    ntohs(rdma_get_src_port(listener)));
		ret = serve(channel);
		say("%lu connection%s served", server.ended, server.ended == 1 ? "" : "s");
	}
	if (listener)
		rdma_destroy_id(listener);
	/* with peers left, what they use is freed with the process */
	if (!server.peers) {
		close_devices();
		rdma_destroy_event_channel(channel);
	}
	return ret;
}

/**
 * tool_serve() - rdmaep serve
 * @cmd: this subcommand
 * @argc: number of arguments
 * @argv: arguments
 *
 * Return: exit code.
 */
int tool_serve(const struct tool_command *cmd, int argc, char **argv)
{
	static const struct option options[] = {
		{ "port", required_argument, NULL, 'p' },
		{ "address", required_argument, NULL, 'a' },
		{ "number", required_argument, NULL, 'n' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	const char *address = NULL, *port = PATH_PORT;
	int c;

	while ((c = tool_getopt(cmd, argc, argv, "p:a:n:h", options)) != -1) {
		switch (c) {
		case 'p':
			port = optarg;
			if (!path_is_port(optarg))
				return tool_usage_error(cmd, "%s is no port", optarg);
			break;
		case 'a':
			address = optarg;
			break;
		case 'n':
			if (!tool_number(optarg, 1, 1000000000, &server.end_after))
				return tool_usage_error(cmd, "%s is not a count", optarg);
			break;
		case 'h':
			return tool_help(cmd);
		default:
			return TOOL_USAGE;
		}
	}
	if (optind < argc)
		return tool_usage_error(cmd, "what is %s?", argv[optind]);
	return run(address, port);
}
