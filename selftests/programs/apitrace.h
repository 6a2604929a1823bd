/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the parts of apitrace share: they use the public API as programs do,
 * and say what it answered, in lines that are the same on every run.
 */
#ifndef APITRACE_H
#define APITRACE_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#define RESOLVE_MS	5000
#define SOON_MS		10000
#define SERVER_PORT	17471
#define CLIENT_PORT	17472

/**
 * struct world - two asynchronous ids on their way to a connection
 * @ps: port space
 * @bare: no queue pairs
 * @server_channel: the server's channel
 * @client_channel: the client's channel
 * @listen: the listener
 * @server: the id that came with the request
 * @client: the client
 * @request: the request, until it is acknowledged
 */
struct world {
	enum rdma_port_space ps;
	bool bare;
	struct rdma_event_channel *server_channel;
	struct rdma_event_channel *client_channel;
	struct rdma_cm_id *listen;
	struct rdma_cm_id *server;
	struct rdma_cm_id *client;
	struct rdma_cm_event *request;
};

/* Says something, after the name of the scenario. */
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Says what a call answered. */
void say_result(const char *what, long ret);
void say_fields(const char *what, const struct rdma_cm_id *id);
void say_event(const char *what, const struct rdma_cm_event *event);
/* Gives an id, a channel, a queue... a name to be said instead of its address. */
void name_it(const void *object, const char *name);
const char *name_of(const void *object);
void forget_names(void);
/* Ends the scenario if what it needs does not work. */
void need(bool works, const char *what);
/*
 * Runs a scenario in a process of its own. Whether it has come to an end: one
 * that crashes or hangs is said to.
 */
bool scenario(void (*run)(const void *arg), const void *arg, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* From now on it may take as long as a whole scenario. */
void expect_end(void);

#define RESULT(call)	({ errno = 0; say_result(#call, (call)); })
#define NEED(call)	need(call, #call)

/* The next event, or NULL if none comes within ms. */
struct rdma_cm_event *take_event(struct rdma_event_channel *channel, int ms);
/* Says and acknowledges all events until there is none for ms. */
void say_events(const char *what, struct rdma_event_channel *channel, int ms);
/* Takes and acknowledges the next event, which must be of that type. */
void expect(struct rdma_event_channel *channel, enum rdma_cm_event_type type);

struct sockaddr_in address(const char *ip, uint16_t port);
struct sockaddr_in my_address(uint16_t port);
struct ibv_qp_init_attr queue_attr(enum rdma_port_space ps);

void world_open(struct world *w, enum rdma_port_space ps);
void world_listen(struct world *w);
void world_resolve_addr(struct world *w);
void world_resolve(struct world *w);
void world_request(struct world *w, const struct rdma_conn_param *param);
void world_accept(struct world *w, const struct rdma_conn_param *param);
void world_connect(struct world *w);
void world_close(struct world *w);

/* The parts */
void trace_states(void);
void trace_fields(void);
void trace_arguments(void);
void trace_devices(void);
void trace_programs(void);
void trace_sync(void);

#endif /* APITRACE_H */
