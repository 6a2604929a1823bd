// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rdmaep ping: go all the way to "rdmaep serve" on another machine, step by
 * step, each one timed. The first that fails is named, with why and what to do.
 */
#include <errno.h>
#include <float.h>
#include <getopt.h>
#include <net/if.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <json-c/json.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_ep.h>
#include <rdmaep.h>

#include "path.h"
#include "tool.h"

/* iWARP and RoCE say "no listener" with 28 or 8: see enum ib_cm_rej_reason. */
#define REJ_INVALID_SERVICE_ID	8

/**
 * struct ping - what is asked for, and how far it has got
 * @host: where to
 * @port: and on which port
 * @source: address to use here, or NULL
 * @count: messages to send
 * @size: bytes in each
 * @interval_ms: from one to the next
 * @timeout_ms: for each step
 * @json: the result as JSON, where steps and replies are collected
 * @steps: of @json
 * @replies: of @json: times in us
 * @src: @source, resolved, or NULL
 * @dst: @host, resolved
 * @id: the connection
 * @mr: of @buf
 * @buf: the message that goes out, then the one that comes in
 * @started: when the step under way began, in us
 * @sent: messages sent
 * @received: messages that came back
 * @min: of their times in us
 * @max: likewise
 * @sum: likewise
 */
struct ping {
	const char *host;
	const char *port;
	const char *source;
	unsigned long count;
	unsigned long size;
	unsigned long interval_ms;
	unsigned long timeout_ms;
	struct json_object *json;
	struct json_object *steps;
	struct json_object *replies;
	struct addrinfo *src;
	struct addrinfo *dst;
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	char *buf;
	double started;
	unsigned long sent;
	unsigned long received;
	double min;
	double max;
	double sum;
};

static double now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1e6 + ts.tv_nsec / 1e3;
}

/* A time as it is worth printing: tenths of a us. */
static struct json_object *json_us(double us)
{
	char text[32];

	snprintf(text, sizeof(text), "%.1f", us);
	return json_object_new_double_s(us, text);
}

static void begin(struct ping *ping)
{
	ping->started = now_us();
}

static struct json_object *add_step(struct ping *ping, const char *name, bool ok, double us,
				    const char *text)
{
	struct json_object *step = json_object_new_object();

	json_object_object_add(step, "step", json_object_new_string(name));
	json_object_object_add(step, "ok", json_object_new_boolean(ok));
	json_object_object_add(step, "us", json_us(us));
	json_object_object_add(step, ok ? "found" : "why", json_object_new_string(text));
	json_object_array_add(ping->steps, step);
	return step;
}

/* The step under way is done. */
__attribute__((format(printf, 3, 4)))
static void done(struct ping *ping, const char *name, const char *fmt, ...)
{
	double us = now_us() - ping->started;
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (ping->json)
		add_step(ping, name, true, us, text);
	else
		printf("%-11s %9.3f ms  %s\n", name, us / 1000, text);
	tool_flush();
}

/* The step under way has failed. Returns -1. */
__attribute__((format(printf, 4, 5)))
static int failed(struct ping *ping, const char *name, const char *todo, const char *fmt, ...)
{
	double us = now_us() - ping->started;
	struct json_object *step;
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (ping->json) {
		step = add_step(ping, name, false, us, text);
		if (todo)
			json_object_object_add(step, "todo", json_object_new_string(todo));
	} else {
		printf("%-11s %9.3f ms  FAILED: %s\n", name, us / 1000, text);
		if (todo)
			printf("%-25s -> %s\n", "", todo);
	}
	return -1;
}

/* The same for a call: its errno, the library's reason, and what is known of that. */
static int call_failed(struct ping *ping, const char *name, const char *todo)
{
	unsigned int reason = rdmaep_last_reason();
	const char *why = rdmaep_strerror();
	int err = errno;

	if (!todo && reason)
		todo = tool_reason_text(reason);
	if (why[0] && reason)
		return failed(ping, name, todo, "%s: %s (%s)", strerror(err), why,
			      tool_reason_name(reason));
	if (why[0])
		return failed(ping, name, todo, "%s", why);
	return failed(ping, name, todo, "%s", strerror(err));
}

static const char *name_addr(const struct sockaddr *addr, char *text, size_t size)
{
	char host[NI_MAXHOST], port[16];
	socklen_t len = addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
						      sizeof(struct sockaddr_in);

	if (getnameinfo(addr, len, host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV))
		snprintf(text, size, "?");
	else
		snprintf(text, size, addr->sa_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host,
			 port);
	return text;
}

static int look_up(struct ping *ping)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	char text[128];
	int err;

	begin(ping);
	err = getaddrinfo(ping->host, ping->port, &hints, &ping->dst);
	if (err == EAI_SERVICE)
		return failed(ping, "name", "a number, or a name of getent services",
			      "%s is no port", ping->port);
	if (err)
		return failed(ping, "name", "see getent hosts; a port goes into -p", "%s: %s",
			      ping->host, gai_strerror(err));
	if (ping->source) {
		hints.ai_family = ping->dst->ai_family;
		hints.ai_flags = AI_NUMERICHOST;
		err = getaddrinfo(ping->source, NULL, &hints, &ping->src);
		if (err)
			return failed(ping, "name", "the source has to be an address: see ip addr",
				      "%s: %s", ping->source, gai_strerror(err));
	}
	done(ping, "name", "%s is %s", ping->host,
	     name_addr(ping->dst->ai_addr, text, sizeof(text)));
	return 0;
}

static bool port_is_active(const struct ping *ping)
{
	struct ibv_port_attr attr;

	return !ping->id->verbs || ibv_query_port(ping->id->verbs, ping->id->port_num, &attr) ||
	       attr.state == IBV_PORT_ACTIVE;
}

static int resolve(struct ping *ping)
{
	char text[128];

	begin(ping);
	if (rdma_create_id(NULL, &ping->id, NULL, RDMA_PS_TCP))
		return call_failed(ping, "device", "see rdmaep doctor");
	done(ping, "device", "the module is there");

	begin(ping);
	if (rdma_resolve_addr(ping->id, ping->src ? ping->src->ai_addr : NULL,
			      ping->dst->ai_addr, ping->timeout_ms))
		return call_failed(ping, "address", NULL);
	if (!port_is_active(ping))
		return failed(ping, "address", tool_reason_text(RDMA_EP_REASON_PORT_DOWN),
			      "port %u of %s is not active", ping->id->port_num,
			      ibv_get_device_name(ping->id->verbs->device));
	done(ping, "address", "%s port %u, from %s",
	     ping->id->verbs ? ibv_get_device_name(ping->id->verbs->device) : "no device",
	     ping->id->port_num, name_addr(rdma_get_local_addr(ping->id), text, sizeof(text)));

	begin(ping);
	if (rdma_resolve_route(ping->id, ping->timeout_ms))
		return call_failed(ping, "route", NULL);
	done(ping, "route", "%d path%s, MTU %d", ping->id->route.num_paths,
	     ping->id->route.num_paths == 1 ? "" : "s",
	     ping->id->route.num_paths ? 128 << ping->id->route.path_rec->mtu : 0);
	return 0;
}

static int make_qp(struct ping *ping)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};

	begin(ping);
	ping->buf = calloc(2, PATH_MAX_SIZE);
	if (!ping->buf)
		return failed(ping, "queue pair", NULL, "out of memory");
	if (rdma_create_qp(ping->id, NULL, &attr))
		return call_failed(ping, "queue pair",
				   errno == ENOMEM ? "too little memory may be locked: ulimit -l" :
						     NULL);
	ping->mr = ibv_reg_mr(ping->id->pd, ping->buf, 2 * PATH_MAX_SIZE, IBV_ACCESS_LOCAL_WRITE);
	if (!ping->mr)
		return call_failed(ping, "queue pair",
				   "too little memory may be locked: ulimit -l");
	done(ping, "queue pair", "number %u, %d bytes of memory registered", ping->id->qp->qp_num,
	     2 * PATH_MAX_SIZE);
	return 0;
}

static int post_recv(struct ping *ping)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)ping->buf + PATH_MAX_SIZE,
		.length = PATH_MAX_SIZE,
		.lkey = ping->mr->lkey,
	};
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_recv(ping->id->qp, &wr, &bad);
}

static int post_send(struct ping *ping)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)ping->buf,
		.length = ping->size,
		.lkey = ping->mr->lkey,
	};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	}, *bad;

	return ibv_post_send(ping->id->qp, &wr, &bad);
}

/* What to do when the answer to the request is no, or none. */
static const char *connect_todo(const struct ping *ping, char *text, size_t size)
{
	const struct rdma_cm_event *event = ping->id->event;

	switch (rdmaep_last_reason()) {
	case RDMA_EP_REASON_REJECTED:
		if (event && event->event == RDMA_CM_EVENT_REJECTED &&
		    event->status != REJ_INVALID_SERVICE_ID)
			return "a program listens there, and said no: is it rdmaep serve?";
		snprintf(text, size, "nobody listens there: run rdmaep serve -p %s on %s",
			 ping->port, ping->host);
		return text;
	case RDMA_EP_REASON_TIMEOUT:
	case RDMA_EP_REASON_UNREACHABLE:
		return "nobody has answered: is the host up, has it an RDMA device on that address "
		       "(rdmaep doctor there), does the program there read its requests (BACKLOG "
		       "in rdmaep list there), and does a firewall let UDP port 4791 pass?";
	default:
		return NULL;
	}
}

static int connect_to(struct ping *ping)
{
	struct path_hello hello = path_hello();
	struct rdma_conn_param param = {
		.private_data = &hello,
		.private_data_len = sizeof(hello),
		.retry_count = 7,
		.rnr_retry_count = 7,
	};
	uint32_t timeout_ms = ping->timeout_ms;
	const struct rdma_cm_event *event;
	char text[256];

	begin(ping);
	rdmaep_set_option(ping->id, RDMAEP_OPT_CONNECT_TIMEOUT, &timeout_ms, sizeof(timeout_ms));
	if (post_recv(ping))
		return call_failed(ping, "connect", NULL);
	if (rdma_connect(ping->id, &param))
		return call_failed(ping, "connect", connect_todo(ping, text, sizeof(text)));
	event = ping->id->event;
	if (!event || !path_is_hello(event->param.conn.private_data,
				     event->param.conn.private_data_len))
		return failed(ping, "connect",
			      "it took the connection, so the path is fine; but run rdmaep serve there",
			      "the program on port %s is not rdmaep serve", ping->port);
	done(ping, "connect", "%s has accepted",
	     name_addr(rdma_get_peer_addr(ping->id), text, sizeof(text)));
	return 0;
}

#define PEER_ENDED	(-2)

/* An event has come: does it end the connection? Others are warnings. */
static bool is_end(struct ping *ping)
{
	struct rdma_cm_event *event;
	bool end;

	if (rdma_get_cm_event(ping->id->channel, &event))
		return false;
	end = event->event == RDMA_CM_EVENT_DISCONNECTED ||
	      event->event == RDMA_CM_EVENT_DEVICE_REMOVAL ||
	      event->event == RDMA_CM_EVENT_TIMEWAIT_EXIT;
	rdma_ack_cm_event(event);
	return end;
}

/*
 * Wait for the completion of what was posted: 1, 0 when the time is over, PEER_ENDED,
 * or -1.
 */
static int complete(struct ping *ping, struct ibv_comp_channel *channel, struct ibv_cq *cq,
		    struct ibv_wc *wc)
{
	double end = now_us() + ping->timeout_ms * 1000.0;
	struct pollfd fd[2] = {
		{ .fd = channel->fd, .events = POLLIN },
		{ .fd = ping->id->channel->fd, .events = POLLIN },
	};
	struct ibv_cq *which;
	void *context;
	double left;
	int n;

	for (;;) {
		n = ibv_poll_cq(cq, 1, wc);
		if (n)
			return n;
		if (ibv_req_notify_cq(cq, 0))
			return -1;
		/* it may have come before it was asked for */
		n = ibv_poll_cq(cq, 1, wc);
		if (n)
			return n;
		left = end - now_us();
		if (left <= 0 || poll(fd, 2, left / 1000 + 1) < 0)
			return 0;
		if (fd[1].revents && is_end(ping)) {
			n = ibv_poll_cq(cq, 1, wc);
			return n ? n : PEER_ENDED;
		}
		if (fd[0].revents) {
			if (ibv_get_cq_event(channel, &which, &context))
				return -1;
			ibv_ack_cq_events(which, 1);
		}
	}
}

static const char *message_todo(enum ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_RETRY_EXC_ERR:
		return "connected, but data does not arrive: does a firewall let UDP port 4791 "
		       "pass? Is the MTU the same on both sides and on the way?";
	case IBV_WC_WR_FLUSH_ERR:
		return "the peer has ended the connection";
	default:
		return NULL;
	}
}

static int message_failed(struct ping *ping, const char *what, int n, const struct ibv_wc *wc)
{
	if (n == PEER_ENDED)
		return failed(ping, "message", "has the program or the device there gone?",
			      "%s: the peer has ended the connection", what);
	if (!n)
		return failed(ping, "message",
			      ping->received ?
			      "it worked before: has the program there stopped (EVENTS and STATE in "
			      "rdmaep list there), or the host?" :
			      message_todo(IBV_WC_RETRY_EXC_ERR),
			      "%s: nothing for %lu ms", what, ping->timeout_ms);
	if (n < 0)
		return failed(ping, "message", NULL, "%s: the completion queue has failed", what);
	return failed(ping, "message", message_todo(wc->status), "%s: %s", what,
		      ibv_wc_status_str(wc->status));
}

static void reply(struct ping *ping, double us)
{
	ping->received++;
	ping->sum += us;
	if (us < ping->min)
		ping->min = us;
	if (us > ping->max)
		ping->max = us;
	if (ping->json)
		json_object_array_add(ping->replies, json_us(us));
	else
		printf("message     %9.3f ms  %lu of %lu, %lu bytes\n", us / 1000, ping->received,
		       ping->count, ping->size);
	tool_flush();
}

/* One message there and back. */
static int send_one(struct ping *ping)
{
	struct rdma_cm_id *id = ping->id;
	struct ibv_wc wc;
	unsigned long i;
	int n;

	for (i = 0; i < ping->size; i++)
		ping->buf[i] = ping->sent + i;
	begin(ping);
	if (post_send(ping))
		return call_failed(ping, "message", NULL);
	ping->sent++;
	n = complete(ping, id->send_cq_channel, id->send_cq, &wc);
	if (n <= 0 || wc.status != IBV_WC_SUCCESS)
		return message_failed(ping, "send", n, &wc);
	n = complete(ping, id->recv_cq_channel, id->recv_cq, &wc);
	if (n <= 0 || wc.status != IBV_WC_SUCCESS)
		return message_failed(ping, "reply", n, &wc);
	reply(ping, now_us() - ping->started);

	if (wc.byte_len != ping->size || memcmp(ping->buf, ping->buf + PATH_MAX_SIZE, ping->size))
		return failed(ping, "message", "the network or a device damages data",
			      "what came back is not what was sent");
	return post_recv(ping) ? call_failed(ping, "message", NULL) : 0;
}

static int send_all(struct ping *ping)
{
	unsigned long i;

	for (i = 0; i < ping->count; i++) {
		if (i)
			usleep(ping->interval_ms * 1000);
		if (send_one(ping))
			return -1;
	}
	begin(ping);
	if (rdma_disconnect(ping->id))
		return call_failed(ping, "disconnect", NULL);
	done(ping, "disconnect", "all is well");
	return 0;
}

static void clean_up(struct ping *ping)
{
	if (ping->mr)
		ibv_dereg_mr(ping->mr);
	if (ping->id) {
		if (ping->id->qp)
			rdma_destroy_qp(ping->id);
		rdma_destroy_id(ping->id);
	}
	if (ping->src)
		freeaddrinfo(ping->src);
	if (ping->dst)
		freeaddrinfo(ping->dst);
	free(ping->buf);
}

static void print_json(struct ping *ping)
{
	struct json_object *json = ping->json;

	json_object_object_add(json, "host", json_object_new_string(ping->host));
	json_object_object_add(json, "port", json_object_new_string(ping->port));
	json_object_object_add(json, "sent", json_object_new_int64(ping->sent));
	json_object_object_add(json, "received", json_object_new_int64(ping->received));
	if (ping->received) {
		json_object_object_add(json, "min_us", json_us(ping->min));
		json_object_object_add(json, "avg_us", json_us(ping->sum / ping->received));
		json_object_object_add(json, "max_us", json_us(ping->max));
	}
	tool_print_json(json);
}

static void print_summary(const struct ping *ping)
{
	if (ping->sent)
		printf("%lu sent, %lu came back", ping->sent, ping->received);
	if (ping->received)
		printf("; min/avg/max %.3f/%.3f/%.3f ms", ping->min / 1000,
		       ping->sum / ping->received / 1000, ping->max / 1000);
	if (ping->sent)
		putchar('\n');
}

static int run(struct ping *ping, bool json)
{
	int ret;

	if (json) {
		ping->json = json_object_new_object();
		ping->steps = json_object_new_array();
		ping->replies = json_object_new_array();
		json_object_object_add(ping->json, "steps", ping->steps);
		json_object_object_add(ping->json, "replies_us", ping->replies);
	}
	ret = look_up(ping) || resolve(ping) || make_qp(ping) || connect_to(ping) ||
	      send_all(ping);
	if (json)
		print_json(ping);
	else
		print_summary(ping);
	clean_up(ping);
	return ret ? TOOL_FAILED : TOOL_OK;
}

static bool seconds(const char *text, unsigned long min_ms, unsigned long *ms)
{
	double s;
	char *end;

	s = strtod(text, &end);
	*ms = s * 1000;
	return end != text && !*end && s >= 0 && s <= 3600 && *ms >= min_ms;
}

/**
 * tool_ping() - rdmaep ping
 * @cmd: this subcommand
 * @argc: number of arguments
 * @argv: arguments
 *
 * Return: exit code.
 */
int tool_ping(const struct tool_command *cmd, int argc, char **argv)
{
	static const struct option options[] = {
		{ "count", required_argument, NULL, 'c' },
		{ "port", required_argument, NULL, 'p' },
		{ "size", required_argument, NULL, 's' },
		{ "interval", required_argument, NULL, 'i' },
		{ "timeout", required_argument, NULL, 'W' },
		{ "source", required_argument, NULL, 'S' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	struct ping ping = {
		.port = PATH_PORT,
		.count = 5,
		.size = 64,
		.interval_ms = 200,
		.timeout_ms = 5000,
		.min = DBL_MAX,
	};
	const char *expected = NULL;
	bool json = false, ok = true;
	int c;

	while ((c = tool_getopt(cmd, argc, argv, "c:p:s:i:W:S:jh", options)) != -1) {
		switch (c) {
		case 'c':
			ok = tool_number(optarg, 1, 1000000000, &ping.count);
			expected = "a count";
			break;
		case 'p':
			ping.port = optarg;
			ok = path_is_port(optarg);
			expected = "a port";
			break;
		case 's':
			ok = tool_number(optarg, 1, PATH_MAX_SIZE, &ping.size);
			expected = "a number of bytes, from 1 to 65536";
			break;
		case 'i':
			ok = seconds(optarg, 0, &ping.interval_ms);
			expected = "a number of seconds, up to 3600";
			break;
		case 'W':
			ok = seconds(optarg, 1, &ping.timeout_ms);
			expected = "a number of seconds, from 0.001 to 3600";
			break;
		case 'S':
			ping.source = optarg;
			break;
		case 'j':
			json = true;
			break;
		case 'h':
			return tool_help(cmd);
		default:
			return TOOL_USAGE;
		}
		if (!ok)
			return tool_usage_error(cmd, "%s is not %s", optarg, expected);
	}
	if (optind + 1 != argc)
		return tool_usage_error(cmd, optind < argc ? "one host at a time" : "no host");
	ping.host = argv[optind];
	return run(&ping, json);
}
