// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The link goes in every state that a connection can be in.
 *
 *	cut [-l] [-a ACK-TIMEOUT] PEER-ADDRESS COMMAND
 *
 * runs on both machines at once, and each has every kind of end: it brings a
 * connection into each state, meets the other side, runs the command, which
 * cuts the link, then measures what each id is told, and when.
 * What is to be told within which bound is in the table below; no more may come.
 * There are no queue pairs, whose numbers are made up: it is about the messages
 * of the connection manager. How long they are tried for goes by the ACK timeout
 * (RDMA_OPTION_ID_ACK_TIMEOUT), if it is given. With -l (lenient) an id may be told
 * nothing at all.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#include "pair_util.h"

#define PORT	     7200
#define PORT_UNTAKEN 7201 /* whose listener reads no event before the cut */
#define RESOLVE_MS   4000
#define WAIT_S	     130
#define BIT(n)	     (1U << (n))

#define ADDR_ERROR   BIT(RDMA_CM_EVENT_ADDR_ERROR)
#define UNREACHABLE  BIT(RDMA_CM_EVENT_UNREACHABLE)
#define DISCONNECTED BIT(RDMA_CM_EVENT_DISCONNECTED)
#define NOTHING	     0U

/* What the active side asks the passive to do, in the request's private data */
enum kind {
	UNTAKEN,
	TAKEN,
	ANSWERED,
	STANDS_1, /* this side disconnects after the cut */
	STANDS_2, /* nobody does anything after the cut */
	KINDS
};

/* Which ids there are, and what becomes of them */
enum which {
	RESOLVING,
	RESOLVING_LATER,
	CONNECTING_LATER,
	CONNECTING_UNTAKEN,
	CONNECTING_TAKEN,
	RESPONDED,
	A_DISCONNECTING,
	A_IDLE,
	ACCEPTING_UNTAKEN,
	REQUEST_REJECTED,
	ACCEPTING,
	P_DISCONNECTING,
	P_IDLE,
	IDS
};

static struct end {
	const char *name;
	unsigned int expected; /* events of which one must come */
	unsigned int bound_s;  /* within this, after the call or the cut */
	bool begun, over;
	struct rdma_cm_id *id;
	uint64_t since, took;
	int call; /* errno of the call after the cut */
	unsigned int told[32];
	int status;
} ends[IDS] = {
	[RESOLVING] = { "resolving an address when the link goes", ADDR_ERROR, 10 },
	[RESOLVING_LATER] = { "resolve the peer's address after the cut", ADDR_ERROR, 10 },
	[CONNECTING_LATER] = { "connect after the cut", UNREACHABLE, 110 },
	[CONNECTING_UNTAKEN] = { "connecting, the request not taken", UNREACHABLE, 110 },
	[CONNECTING_TAKEN] = { "connecting, the request taken", UNREACHABLE, 110 },
	[RESPONDED] = { "the reply has come, RTU not sent", NOTHING, 0 },
	[A_DISCONNECTING] = { "disconnect, active side", DISCONNECTED, 125 },
	[A_IDLE] = { "established, active side", NOTHING, 0 },
	[ACCEPTING_UNTAKEN] = { "accept a request that had not been taken", UNREACHABLE, 110 },
	[REQUEST_REJECTED] = { "reject a request that had been taken", NOTHING, 0 },
	[ACCEPTING] = { "accepting, reply sent before the cut", UNREACHABLE, 110 },
	[P_DISCONNECTING] = { "disconnect, passive side", DISCONNECTED, 125 },
	[P_IDLE] = { "established, passive side", NOTHING, 0 },
};

static const enum which active_of[KINDS] = { CONNECTING_UNTAKEN, CONNECTING_TAKEN, RESPONDED,
					     A_DISCONNECTING, A_IDLE };
static const enum which passive_of[KINDS] = { ACCEPTING_UNTAKEN, REQUEST_REJECTED, ACCEPTING,
					      P_DISCONNECTING, P_IDLE };

static struct rdma_event_channel *channel, *untaken;
static struct sockaddr_in peer;
static unsigned int qp_num;
static uint8_t ack_timeout;
static bool cut, lenient;

static void barrier(const char *name)
{
	char command[64];

	snprintf(command, sizeof(command), "barrier %s", name);
	if (system(command))
		exit(1);
}

static struct rdma_event_channel *make_channel(void)
{
	struct rdma_event_channel *made = rdma_create_event_channel();

	if (!made || fcntl(made->fd, F_SETFL, O_NONBLOCK))
		die("event channel");
	return made;
}

static struct rdma_cm_id *make_id(enum which which)
{
	struct rdma_cm_id *id;

	if (rdma_create_id(channel, &id, &ends[which], RDMA_PS_TCP))
		die("rdma_create_id");
	if (ack_timeout && rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT,
					   &ack_timeout, sizeof(ack_timeout)))
		die("rdma_set_option");
	ends[which].id = id;
	ends[which].begun = true;
	return id;
}

static struct rdma_cm_id *listen_on(struct rdma_event_channel *where, int port)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct rdma_cm_id *id;

	if (rdma_create_id(where, &id, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(id, (struct sockaddr *)&any) || rdma_listen(id, 16))
		die("listening");
	return id;
}

/* How a call went, or how the wait for its event begins */
static void called(enum which which, int ret)
{
	struct end *end = &ends[which];

	end->since = now_ms();
	end->call = ret ? errno : 0;
	end->over = ret != 0;
}

static struct rdma_conn_param param_of(uint32_t *kind)
{
	return (struct rdma_conn_param){
		.private_data = kind,
		.private_data_len = kind ? sizeof(*kind) : 0,
		.retry_count = 7,
		.rnr_retry_count = 7,
		.qp_num = ++qp_num,
	};
}

static void on_request(struct rdma_cm_event *event)
{
	struct rdma_conn_param param = param_of(NULL);
	struct rdma_cm_id *id = event->id;
	struct end *end;
	uint32_t kind;

	memcpy(&kind, event->param.conn.private_data, sizeof(kind));
	rdma_ack_cm_event(event);
	if (kind >= KINDS) {
		fprintf(stderr, "a request of kind %u\n", kind);
		exit(1);
	}
	end = &ends[passive_of[kind]];
	end->id = id;
	end->begun = true;
	id->context = end;
	if (kind == TAKEN)
		return;
	if (rdma_accept(id, &param))
		die("rdma_accept");
	end->since = now_ms();
}

static void on_end_event(struct end *end, enum rdma_cm_event_type type, int status)
{
	end->told[type]++;
	if ((cut || end == &ends[RESOLVING]) && end->expected & BIT(type) && !end->over) {
		end->over = true;
		end->status = status;
		end->took = now_ms() - end->since;
		return;
	}
	if (type == RDMA_CM_EVENT_ADDR_RESOLVED) {
		if (rdma_resolve_route(end->id, RESOLVE_MS))
			die("rdma_resolve_route");
	} else if (type == RDMA_CM_EVENT_CONNECT_RESPONSE) {
		if (end != &ends[RESPONDED] && rdma_establish(end->id))
			die("rdma_establish");
	}
}

/* Reads what is there, waiting for the first at most @ms */
static void events(struct rdma_event_channel *from, int ms)
{
	struct pollfd fd = { .fd = from->fd, .events = POLLIN };
	struct rdma_cm_event *event;

	if (poll(&fd, 1, ms) < 0 && errno != EINTR)
		die("poll");
	while (!rdma_get_cm_event(from, &event)) {
		enum rdma_cm_event_type type = event->event;
		struct end *end = event->id->context;
		int status = event->status;

		if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
			on_request(event);
			continue;
		}
		rdma_ack_cm_event(event);
		if (end)
			on_end_event(end, type, status);
	}
}

static void until(enum which which, enum rdma_cm_event_type type)
{
	uint64_t end = now_ms() + 20000;

	while (!ends[which].told[type] && now_ms() < end)
		events(channel, 100);
	if (ends[which].told[type])
		return;
	fprintf(stderr, "%s: no %s\n", ends[which].name, rdma_event_str(type));
	exit(1);
}

static void resolve(enum which which, int port)
{
	struct sockaddr_in to = peer;

	to.sin_port = htons(port);
	if (rdma_resolve_addr(make_id(which), NULL, (struct sockaddr *)&to, RESOLVE_MS))
		die("rdma_resolve_addr");
	until(which, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static void into_states(void)
{
	struct sockaddr_in nobody = peer;
	uint32_t kind;

	for (kind = 0; kind < KINDS; kind++) {
		struct rdma_conn_param param = param_of(&kind);
		enum which which = active_of[kind];

		resolve(which, kind == UNTAKEN ? PORT_UNTAKEN : PORT);
		if (rdma_connect(ends[which].id, &param))
			die("rdma_connect");
		ends[which].since = now_ms();
		if (kind >= ANSWERED)
			until(which, RDMA_CM_EVENT_CONNECT_RESPONSE);
	}
	resolve(CONNECTING_LATER, PORT);
	until(P_IDLE, RDMA_CM_EVENT_ESTABLISHED); /* the last request of the other side */

	nobody.sin_addr.s_addr = (nobody.sin_addr.s_addr & htonl(0xffffff00)) | htonl(0xee);
	called(RESOLVING,
	       rdma_resolve_addr(make_id(RESOLVING), NULL, (struct sockaddr *)&nobody, RESOLVE_MS));
}

static void after_the_cut(void)
{
	struct rdma_conn_param param = param_of(NULL);
	struct sockaddr_in to = peer;
	uint32_t kind = TAKEN;

	called(RESOLVING_LATER, rdma_resolve_addr(make_id(RESOLVING_LATER), NULL,
						  (struct sockaddr *)&to, RESOLVE_MS));
	called(A_DISCONNECTING, rdma_disconnect(ends[A_DISCONNECTING].id));
	called(P_DISCONNECTING, rdma_disconnect(ends[P_DISCONNECTING].id));
	called(REQUEST_REJECTED, rdma_reject(ends[REQUEST_REJECTED].id, NULL, 0));
	events(untaken, 1000);
	if (!ends[ACCEPTING_UNTAKEN].begun)
		fprintf(stderr, "the request that was not taken is not there\n");
	param = param_of(&kind);
	called(CONNECTING_LATER, rdma_connect(ends[CONNECTING_LATER].id, &param));
}

static bool all_over(void)
{
	enum which i;

	for (i = 0; i < IDS; i++)
		if (ends[i].expected && !ends[i].over)
			return false;
	return true;
}

static int judge(struct end *end)
{
	unsigned int type;
	int bad = 0;

	printf("%-42s: ", end->name);
	if (end->call)
		printf("the call fails with %s", strerror(end->call));
	for (type = 0; type < 32; type++) {
		if (!end->told[type])
			continue;
		/*
		 * rdma_cm tells the active side of each change of its neighbour. That
		 * is an outcome only while it connects.
		 */
		if (end->told[type] > 1 &&
		    (BIT(type) != UNREACHABLE || end->expected == UNREACHABLE))
			bad = 1;
		if (BIT(type) & end->expected)
			printf("%s (%d) after %.1f s", rdma_event_str(type) + 14, end->status,
			       end->took / 1000.0);
	}
	if (end->expected && !end->over) {
		printf("nothing is told within %u s", WAIT_S);
		bad = !lenient;
	}
	if (end->over && end->took > end->bound_s * 1000ULL)
		bad = 1;
	if (!end->begun)
		bad = 1;
	if (!end->expected && !end->call)
		printf("nothing is told");
	printf("%s\n", bad ? "  <-- WRONG" : "");
	if (bad) {
		printf("   told:");
		for (type = 0; type < 32; type++)
			if (end->told[type])
				printf(" %s %u", rdma_event_str(type), end->told[type]);
		printf("\n");
	}
	return bad;
}

int main(int argc, char **argv)
{
	struct rdma_cm_id *listener, *listener_untaken;
	uint64_t end;
	int i, opt, bad = 0;

	while ((opt = getopt(argc, argv, "a:l")) != -1) {
		switch (opt) {
		case 'a':
			ack_timeout = atoi(optarg);
			break;
		case 'l':
			lenient = true;
			break;
		default:
			return 2;
		}
	}
	argv += optind - 1;
	argc -= optind - 1;
	if (argc != 3)
		return 2;
	peer.sin_family = AF_INET;
	if (inet_pton(AF_INET, argv[1], &peer.sin_addr) != 1)
		die("address");
	/* Not those of the other side */
	qp_num = ntohl(peer.sin_addr.s_addr) % 255 * 1000;
	channel = make_channel();
	untaken = make_channel();
	listener = listen_on(channel, PORT);
	listener_untaken = listen_on(untaken, PORT_UNTAKEN);
	barrier("cut-listening");
	into_states();
	barrier("cut-states");
	if (system(argv[2]))
		die(argv[2]);
	barrier("cut-cut");
	cut = true;
	for (i = 0; i < IDS; i++)
		ends[i].since = ends[i].since ?: now_ms();
	after_the_cut();
	for (end = now_ms() + WAIT_S * 1000; now_ms() < end && !all_over();) {
		events(channel, 200);
		events(untaken, 0);
	}
	events(channel, 1000);
	for (i = 0; i < IDS; i++) {
		bad |= judge(&ends[i]);
		if (ends[i].id && rdma_destroy_id(ends[i].id))
			die("rdma_destroy_id");
	}
	if (rdma_destroy_id(listener) || rdma_destroy_id(listener_untaken))
		die("rdma_destroy_id");
	rdma_destroy_event_channel(channel);
	rdma_destroy_event_channel(untaken);
	return bad;
}
