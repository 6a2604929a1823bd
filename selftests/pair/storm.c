// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Many connections at once over a network that may do anything: each is made,
 * carries a message there and one back, and is ended.
 *
 *	storm server [-k] [-l] [-d S] [-b BACKLOG] [-p PORT] [-t S]
 *	storm client [-n COUNT] [-w AT-ONCE] [-p PORT] [-t S] [-s] ADDRESS
 *
 * Each end counts what every id is told, and how long each step took, and fails
 * if an event came twice, a connection came to no end within its bound (-t, of
 * one step, 125 s), or one that stood was not told its end. That a connection
 * does not come about is an outcome like another: how many did is printed, and
 * left to who reads it. The client keeps its ids until the very end, so that an
 * event too many has somewhere to come to. The server does with -k, and otherwise
 * for a second, as programs do.
 *
 * The server ends on SIGTERM, once all its connections have. With -l (lenient) it
 * gives up, without having failed, what did not come to an end within the bound:
 * its peer means harm. With -d it looks at no event for the first S seconds. With
 * -s the client is synchronous: a thread for each connection under way, and calls
 * that wait. It fails with -a if not all its connections stood and carried their
 * messages.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "pair_util.h"

#define EVENTS	   (RDMA_CM_EVENT_TIMEWAIT_EXIT + 1)
#define MESSAGE	   64
#define RESOLVE_MS 5000

/* How far a connection has come, which says what is timed */
enum step {
	RESOLVING,
	CONNECTING, /* or accepting */
	TALKING,
	DISCONNECTING,
	ENDED,
	STEPS
};

static const char *const step_names[STEPS] = { "resolve", "connect", "exchange", "disconnect" };

struct conn {
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	struct conn *next;
	enum step step;
	uint64_t since;
	bool stood, disconnected, overdue, given_up;
	unsigned int told[EVENTS];
	int status[EVENTS];
	char buf[2][MESSAGE]; /* received, sent */
};

static struct {
	bool server, sync, keep, lenient, all;
	unsigned int count, at_once, backlog, bound_s, sleep_s;
	const char *host, *port;

	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_comp_channel *comp;
	struct conn *conns;

	unsigned int made, ended, stood, exchanged, disconnected, overdue, twice, no_end, failed,
		given_up;
	unsigned int send_errors, told[EVENTS];
	uint64_t longest[STEPS];
} s = { .count = 32, .at_once = 32, .backlog = 128, .bound_s = 125, .port = "7171" };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile sig_atomic_t stop;

static void on_term(int sig)
{
	(void)sig;
	stop = 1;
}

static void took(enum step step, uint64_t ms)
{
	if (step < STEPS && ms > s.longest[step])
		s.longest[step] = ms;
}

static void go_to(struct conn *c, enum step step)
{
	uint64_t now = now_ms();

	took(c->step, now - c->since);
	if (step == ENDED && c->step != ENDED)
		s.ended++;
	c->step = step;
	c->since = now;
}

static struct conn *add_conn(struct rdma_cm_id *id, enum step step)
{
	struct conn *c = calloc(1, sizeof(*c));

	if (!c)
		die("calloc");
	c->id = id;
	c->step = step;
	c->since = now_ms();
	c->next = s.conns;
	s.conns = c;
	id->context = c;
	s.made++;
	return c;
}

/* One PD and one CQ serve all queue pairs */
static void need_cq(struct ibv_context *verbs)
{
	if (s.pd)
		return;
	s.pd = ibv_alloc_pd(verbs);
	s.comp = ibv_create_comp_channel(verbs);
	if (!s.pd || !s.comp)
		die("no PD or completion channel");
	s.cq = ibv_create_cq(verbs, 4096, NULL, s.comp, 0);
	if (!s.cq || ibv_req_notify_cq(s.cq, 0))
		die("no CQ");
	if (fcntl(s.comp->fd, F_SETFL, O_NONBLOCK))
		die("fcntl");
}

static int make_qp(struct conn *c)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1 },
		.sq_sig_all = 1,
	};

	need_cq(c->id->verbs);
	attr.send_cq = s.cq;
	attr.recv_cq = s.cq;
	if (rdma_create_qp(c->id, s.pd, &attr))
		return -1;
	c->mr = rdma_reg_msgs(c->id, c->buf, sizeof(c->buf));
	if (!c->mr)
		return -1;
	return rdma_post_recv(c->id, c, c->buf[0], MESSAGE, c->mr);
}

static struct rdma_conn_param conn_param(void)
{
	return (struct rdma_conn_param){
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = 7,
		.rnr_retry_count = 7,
	};
}

static void say(struct conn *c, const char *what)
{
	memset(c->buf[1], 'x', MESSAGE);
	if (rdma_post_send(c->id, c, c->buf[1], MESSAGE, c->mr, 0))
		fprintf(stderr, "%s: %s\n", what, strerror(errno));
}

/* The connection will be told its end, if it is one. */
static void disconnect(struct conn *c)
{
	if (c->step == DISCONNECTING || c->step == ENDED)
		return;
	go_to(c, DISCONNECTING);
	if (rdma_disconnect(c->id)) {
		fprintf(stderr, "rdma_disconnect: %s\n", strerror(errno));
		s.failed++;
		go_to(c, ENDED);
	}
}

static void give_up(struct conn *c, const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	s.failed++;
	go_to(c, ENDED);
}

/* These end an attempt, and of these there is one at most. */
static bool is_outcome(unsigned int type)
{
	return type == RDMA_CM_EVENT_ESTABLISHED || type == RDMA_CM_EVENT_UNREACHABLE ||
	       type == RDMA_CM_EVENT_REJECTED || type == RDMA_CM_EVENT_CONNECT_ERROR;
}

static unsigned int outcomes(const struct conn *c)
{
	unsigned int type, n = 0;

	for (type = 0; type < EVENTS; type++)
		if (is_outcome(type))
			n += c->told[type];
	return n;
}

static void on_request(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = conn_param();
	struct conn *c = add_conn(id, CONNECTING);

	if (make_qp(c))
		give_up(c, "queue pair");
	else if (rdma_accept(id, &param))
		give_up(c, "rdma_accept");
}

static void on_event(struct conn *c, enum rdma_cm_event_type type)
{
	struct rdma_conn_param param = conn_param();

	switch (type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (rdma_resolve_route(c->id, RESOLVE_MS))
			give_up(c, "rdma_resolve_route");
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		go_to(c, CONNECTING);
		if (make_qp(c))
			give_up(c, "queue pair");
		else if (rdma_connect(c->id, &param))
			give_up(c, "rdma_connect");
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		c->stood = true;
		s.stood++;
		if (c->step == CONNECTING)
			go_to(c, TALKING);
		if (!s.server)
			say(c, "send");
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		s.disconnected++;
		c->disconnected = true;
		if (c->step != DISCONNECTING && rdma_disconnect(c->id))
			fprintf(stderr, "rdma_disconnect after the peer: %s\n", strerror(errno));
		go_to(c, ENDED);
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	default:
		go_to(c, ENDED);
	}
}

static void next_event(void)
{
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;
	struct conn *c;

	if (rdma_get_cm_event(s.channel, &event)) {
		if (errno == EAGAIN || errno == EINTR)
			return;
		die("rdma_get_cm_event");
	}
	type = event->event;
	s.told[type]++;
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
		struct rdma_cm_id *id = event->id;

		rdma_ack_cm_event(event);
		on_request(id);
		return;
	}
	c = event->id->context;
	if (c) {
		c->told[type]++;
		c->status[type] = event->status;
	}
	rdma_ack_cm_event(event);
	if (c)
		on_event(c, type);
}

static void completions(void)
{
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;

	if (!s.cq)
		return;
	if (!ibv_get_cq_event(s.comp, &cq, &context)) {
		ibv_ack_cq_events(cq, 1);
		ibv_req_notify_cq(cq, 0);
	}
	while (ibv_poll_cq(s.cq, 1, &wc) > 0) {
		struct conn *c = (void *)(uintptr_t)wc.wr_id;

		if (wc.status == IBV_WC_SUCCESS && wc.opcode & IBV_WC_RECV) {
			s.exchanged++;
			if (s.server)
				say(c, "echo");
			else
				disconnect(c);
		} else if (wc.status != IBV_WC_SUCCESS && wc.status != IBV_WC_WR_FLUSH_ERR) {
			/* The peer did not acknowledge: that ends it. */
			s.send_errors++;
			if (c->stood)
				disconnect(c);
		}
	}
}

static void free_conn(struct conn *c);

/* Who waits beyond the bound has not learnt how it ended. */
static void look_at_clock(void)
{
	struct conn *c, **link = &s.conns;
	uint64_t now = now_ms();

	while ((c = *link)) {
		if (c->step == ENDED && s.server && !s.keep && now - c->since > 1000) {
			*link = c->next;
			free_conn(c);
			continue;
		}
		link = &c->next;
		if (c->step == ENDED || now - c->since < s.bound_s * 1000ULL)
			continue;
		if (s.lenient) {
			s.given_up++;
			c->given_up = true;
			go_to(c, ENDED);
			continue;
		}
		/* Nobody promises that a message comes back: the program ends that. */
		if (c->step == TALKING && !c->overdue) {
			c->overdue = true;
			disconnect(c);
			continue;
		}
		s.overdue++;
		fprintf(stderr, "nothing heard for %u s while in %s\n", s.bound_s,
			step_names[c->step]);
		go_to(c, ENDED);
	}
}

static void start_one(struct addrinfo *dst)
{
	struct rdma_cm_id *id;

	if (rdma_create_id(s.channel, &id, NULL, RDMA_PS_TCP))
		die("rdma_create_id");
	if (rdma_resolve_addr(id, NULL, dst->ai_addr, RESOLVE_MS))
		give_up(add_conn(id, RESOLVING), "rdma_resolve_addr");
	else
		add_conn(id, RESOLVING);
}

static bool more_to_do(struct addrinfo *dst)
{
	if (s.server)
		return !stop || s.ended < s.made;
	while (s.made < s.count && s.made - s.ended < s.at_once)
		start_one(dst);
	return s.ended < s.made;
}

static void handle(int timeout)
{
	struct pollfd fds[2] = {
		{ .fd = s.channel->fd, .events = POLLIN },
		{ .fd = s.comp ? s.comp->fd : -1, .events = POLLIN },
	};

	if (poll(fds, 2, timeout) < 0 && errno != EINTR)
		die("poll");
	if (fds[0].revents)
		next_event();
	completions();
}

/* Async: either end */
static void run(struct addrinfo *addr)
{
	uint64_t looked = 0, linger;

	s.channel = rdma_create_event_channel();
	if (!s.channel)
		die("rdma_create_event_channel");
	if (fcntl(s.channel->fd, F_SETFL, O_NONBLOCK))
		die("fcntl");
	if (s.server) {
		if (rdma_create_id(s.channel, &s.listener, NULL, RDMA_PS_TCP) ||
		    rdma_bind_addr(s.listener, addr->ai_addr) || rdma_listen(s.listener, s.backlog))
			die("listening");
		printf("listening\n");
		fflush(stdout);
		sleep(s.sleep_s);
	}
	while (more_to_do(addr)) {
		handle(200);
		if (now_ms() - looked > 500) {
			look_at_clock();
			looked = now_ms();
		}
	}
	for (linger = now_ms() + 1000; now_ms() < linger;)
		handle(100);
}

static void free_conn(struct conn *c)
{
	unsigned int type;
	bool twice = outcomes(c) > 1;

	for (type = 0; type < EVENTS; type++)
		twice |= c->told[type] > 1;
	if (twice) {
		s.twice++;
		fprintf(stderr, "told twice:");
		for (type = 0; type < EVENTS; type++)
			if (c->told[type])
				fprintf(stderr, " %s %u (%d)", rdma_event_str(type), c->told[type],
					c->status[type]);
		fprintf(stderr, "\n");
	}
	if (c->stood && !c->disconnected && !c->given_up)
		s.no_end++;
	if (c->id->qp)
		rdma_destroy_qp(c->id);
	if (c->mr)
		ibv_dereg_mr(c->mr);
	if (rdma_destroy_id(c->id))
		die("rdma_destroy_id");
	free(c);
}

static void clean_up(void)
{
	struct conn *c;

	if (s.listener && rdma_destroy_id(s.listener))
		die("rdma_destroy_id");
	while ((c = s.conns)) {
		s.conns = c->next;
		free_conn(c);
	}
	if (s.cq &&
	    (ibv_destroy_cq(s.cq) || ibv_destroy_comp_channel(s.comp) || ibv_dealloc_pd(s.pd)))
		die("destroying the CQ");
	rdma_destroy_event_channel(s.channel);
}

/*
 * Synchronous: each call returns how it ended.
 */

static void sync_took(enum step step, uint64_t *since)
{
	uint64_t now = now_ms();

	pthread_mutex_lock(&lock);
	took(step, now - *since);
	if (now - *since > s.bound_s * 1000ULL) {
		s.overdue++;
		fprintf(stderr, "%s took %llu ms\n", step_names[step],
			(unsigned long long)(now - *since));
	}
	pthread_mutex_unlock(&lock);
	*since = now;
}

static void count(unsigned int *counter)
{
	pthread_mutex_lock(&lock);
	(*counter)++;
	pthread_mutex_unlock(&lock);
}

static bool sync_exchange(struct rdma_cm_id *id, char *buf, struct ibv_mr *mr)
{
	struct pollfd fd = { .fd = id->recv_cq_channel->fd, .events = POLLIN };
	struct ibv_wc wc;

	if (rdma_post_send(id, NULL, buf + MESSAGE, MESSAGE, mr, IBV_SEND_SIGNALED))
		return false;
	if (rdma_get_send_comp(id, &wc) <= 0 || wc.status != IBV_WC_SUCCESS) {
		count(&s.send_errors);
		return false;
	}
	if (ibv_req_notify_cq(id->recv_cq, 0))
		return false;
	if (ibv_poll_cq(id->recv_cq, 1, &wc) == 1)
		return wc.status == IBV_WC_SUCCESS;
	if (poll(&fd, 1, s.bound_s * 1000) != 1)
		return false;
	return rdma_get_recv_comp(id, &wc) > 0 && wc.status == IBV_WC_SUCCESS;
}

static void sync_talk(struct rdma_cm_id *id, uint64_t *since)
{
	struct rdma_conn_param param = conn_param();
	char buf[2 * MESSAGE] = {};
	struct ibv_mr *mr = rdma_reg_msgs(id, buf, sizeof(buf));
	int err;

	if (!mr || rdma_post_recv(id, NULL, buf, MESSAGE, mr))
		die("posting a receive");
	err = rdma_connect(id, &param) ? errno : 0;
	sync_took(CONNECTING, since);
	if (err) {
		fprintf(stderr, "rdma_connect: %s\n", strerror(err));
		count(&s.failed);
	} else {
		count(&s.stood);
		if (sync_exchange(id, buf, mr))
			count(&s.exchanged);
		sync_took(TALKING, since);
		if (rdma_disconnect(id))
			fprintf(stderr, "rdma_disconnect: %s\n", strerror(errno));
		else
			count(&s.disconnected);
		sync_took(DISCONNECTING, since);
	}
	rdma_destroy_qp(id);
	rdma_dereg_mr(mr);
}

static void sync_one(void)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *res;
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	uint64_t since = now_ms();
	struct rdma_cm_id *id;

	if (rdma_getaddrinfo(s.host, s.port, &hints, &res))
		die("rdma_getaddrinfo");
	if (rdma_create_ep(&id, res, NULL, &attr)) {
		fprintf(stderr, "rdma_create_ep: %s\n", strerror(errno));
		count(&s.failed);
		sync_took(RESOLVING, &since);
	} else {
		sync_took(RESOLVING, &since);
		sync_talk(id, &since);
		rdma_destroy_ep(id);
	}
	count(&s.ended);
	rdma_freeaddrinfo(res);
}

static void *sync_thread(void *arg)
{
	bool more;

	(void)arg;
	for (;;) {
		pthread_mutex_lock(&lock);
		more = s.made < s.count;
		s.made += more;
		pthread_mutex_unlock(&lock);
		if (!more)
			return NULL;
		sync_one();
	}
}

static void run_sync(void)
{
	pthread_t *threads = calloc(s.at_once, sizeof(*threads));
	unsigned int i;

	if (!threads)
		die("calloc");
	for (i = 0; i < s.at_once; i++)
		if (pthread_create(&threads[i], NULL, sync_thread, NULL))
			die("pthread_create");
	for (i = 0; i < s.at_once; i++)
		pthread_join(threads[i], NULL);
	free(threads);
}

static int report(void)
{
	unsigned int i;

	printf("%s: %u connections, %u stood, %u messages, %u ended by DISCONNECTED;",
	       s.server ? "server" :
	       s.sync	? "synchronous client" :
			  "client",
	       s.made, s.stood, s.exchanged, s.disconnected);
	printf(" %u calls failed, %u sends not acknowledged, %u given up;", s.failed, s.send_errors,
	       s.given_up);
	for (i = 0; i < EVENTS; i++)
		if (s.told[i] && i != RDMA_CM_EVENT_ADDR_RESOLVED &&
		    i != RDMA_CM_EVENT_ROUTE_RESOLVED && i != RDMA_CM_EVENT_ESTABLISHED &&
		    i != RDMA_CM_EVENT_DISCONNECTED && i != RDMA_CM_EVENT_CONNECT_REQUEST)
			printf(" %s %u,", rdma_event_str(i) + strlen("RDMA_CM_EVENT_"), s.told[i]);
	printf(" longest:");
	for (i = 0; i < ENDED; i++)
		printf(" %s %.1f s", step_names[i], s.longest[i] / 1000.0);
	printf("; told twice %u, overdue %u, no end %u\n", s.twice, s.overdue, s.no_end);
	if (s.all && (s.stood < s.count || s.exchanged < s.count)) {
		printf("not all of %u connections stood\n", s.count);
		return 1;
	}
	return s.twice || s.overdue || s.no_end;
}

int main(int argc, char **argv)
{
	struct addrinfo hints = { .ai_family = AF_INET }, *addr;
	int opt;

	if (argc < 2)
		die("server or client?");
	s.server = !strcmp(argv[1], "server");
	optind = 2;
	while ((opt = getopt(argc, argv, "n:w:b:p:t:d:skla")) != -1) {
		switch (opt) {
		case 'n':
			s.count = atoi(optarg);
			break;
		case 'w':
			s.at_once = atoi(optarg);
			break;
		case 'b':
			s.backlog = atoi(optarg);
			break;
		case 'p':
			s.port = optarg;
			break;
		case 't':
			s.bound_s = atoi(optarg);
			break;
		case 'd':
			s.sleep_s = atoi(optarg);
			break;
		case 'k':
			s.keep = true;
			break;
		case 'l':
			s.lenient = true;
			break;
		case 'a':
			s.all = true;
			break;
		case 's':
			s.sync = true;
			break;
		default:
			return 2;
		}
	}
	s.host = argv[optind];
	signal(SIGTERM, on_term);
	hints.ai_flags = s.server ? AI_PASSIVE : 0;
	if (getaddrinfo(s.host, s.port, &hints, &addr))
		die("getaddrinfo");
	if (s.sync) {
		run_sync();
	} else {
		run(addr);
		clean_up();
	}
	freeaddrinfo(addr);
	return report();
}
