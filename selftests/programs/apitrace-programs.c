// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What programs do: several threads at one channel, epoll, ids that move, late
 * acknowledgments, odd orders of tidying up.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>

#include "apitrace.h"

#define CLIENTS		12
#define THREADS		4

/*
 * Many connections at once
 */

/**
 * struct crowd - one listener, many clients
 * @server_channel: the listener's channel, and that of its requests
 * @client_channel: that of all clients
 * @listen: the listener
 * @lock: guards what follows
 * @seen: how many events of each type
 * @servers: ids that came with requests
 * @num_servers: how many
 * @open: connections whose end is not seen yet
 */
struct crowd {
	struct rdma_event_channel *server_channel;
	struct rdma_event_channel *client_channel;
	struct rdma_cm_id *listen;
	pthread_mutex_t lock;
	int seen[32];
	struct rdma_cm_id *servers[CLIENTS];
	int num_servers;
	int open;
};

static void crowd_open(struct crowd *crowd, bool one_channel)
{
	struct sockaddr_in addr = address("0.0.0.0", SERVER_PORT);

	pthread_mutex_init(&crowd->lock, NULL);
	crowd->open = 2 * CLIENTS;
	NEED((crowd->server_channel = rdma_create_event_channel()));
	crowd->client_channel = crowd->server_channel;
	if (!one_channel)
		NEED((crowd->client_channel = rdma_create_event_channel()));
	NEED(!rdma_create_id(crowd->server_channel, &crowd->listen, crowd, RDMA_PS_TCP));
	NEED(!rdma_bind_addr(crowd->listen, (struct sockaddr *)&addr));
	NEED(!rdma_listen(crowd->listen, CLIENTS));
}

static void crowd_start(struct crowd *crowd)
{
	struct sockaddr_in dst = my_address(SERVER_PORT);
	struct rdma_cm_id *id;
	int i;

	for (i = 0; i < CLIENTS; i++) {
		NEED(!rdma_create_id(crowd->client_channel, &id, NULL, RDMA_PS_TCP));
		NEED(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&dst, RESOLVE_MS));
	}
}

/* The next step of the id that the event is for. False when all is over. */
static bool crowd_step(struct crowd *crowd, struct rdma_cm_event *event)
{
	struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1,
					 .retry_count = 7, .rnr_retry_count = 7 };
	struct ibv_qp_init_attr attr = queue_attr(RDMA_PS_TCP);
	enum rdma_cm_event_type type = event->event;
	struct rdma_cm_id *id = event->id;
	bool client = id->context != crowd;
	bool go_on = true;

	pthread_mutex_lock(&crowd->lock);
	crowd->seen[type]++;
	pthread_mutex_unlock(&crowd->lock);
	rdma_ack_cm_event(event);
	switch (type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		NEED(!rdma_resolve_route(id, RESOLVE_MS));
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		NEED(!rdma_create_qp(id, NULL, &attr));
		NEED(!rdma_connect(id, &param));
		break;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		NEED(!rdma_create_qp(id, NULL, &attr));
		NEED(!rdma_accept(id, &param));
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (client)
			NEED(!rdma_disconnect(id));
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		rdma_disconnect(id);
		rdma_destroy_qp(id);
		NEED(!rdma_destroy_id(id));
		pthread_mutex_lock(&crowd->lock);
		go_on = --crowd->open > 0;
		pthread_mutex_unlock(&crowd->lock);
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	default:
		say("unexpected %s status %d", rdma_event_str(type), event->status);
		exit(1);
	}
	return go_on;
}

static void crowd_close(struct crowd *crowd)
{
	int i;

	for (i = 0; i < RDMA_CM_EVENT_TIMEWAIT_EXIT; i++)
		if (i != RDMA_CM_EVENT_ESTABLISHED) /* may be lost when a client is quick */
			say("%s %d", rdma_event_str(i), crowd->seen[i]);
	say("established %s", crowd->seen[RDMA_CM_EVENT_ESTABLISHED] >= CLIENTS ? "all" : "few");
	RESULT(rdma_destroy_id(crowd->listen));
	rdma_destroy_event_channel(crowd->server_channel);
	if (crowd->client_channel != crowd->server_channel)
		rdma_destroy_event_channel(crowd->client_channel);
}

static void *crowd_thread(void *arg)
{
	struct rdma_cm_event *event;
	struct crowd *crowd = arg;

	/* Whoever sees the end writes an event that ends the others' poll. */
	while (crowd->open > 0) {
		event = take_event(crowd->server_channel, 100);
		if (event)
			crowd_step(crowd, event);
	}
	return NULL;
}

/* Threads that share a non-blocking channel: who comes too late gets EAGAIN. */
static void run_threads(const void *arg)
{
	struct crowd crowd = { 0 };
	pthread_t threads[THREADS];
	int i;

	crowd_open(&crowd, true);
	fcntl(crowd.server_channel->fd, F_SETFL,
	      fcntl(crowd.server_channel->fd, F_GETFL) | O_NONBLOCK);
	for (i = 0; i < THREADS; i++)
		NEED(!pthread_create(&threads[i], NULL, crowd_thread, &crowd));
	crowd_start(&crowd);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	crowd_close(&crowd);
}

/* Edge-triggered: each wakeup is followed by reads until there is no more. */
static void run_epoll(const void *arg)
{
	struct epoll_event ready, watch = { .events = EPOLLIN | EPOLLET };
	struct rdma_event_channel *channels[2];
	struct rdma_cm_event *event;
	struct crowd crowd = { 0 };
	int epoll, i;

	crowd_open(&crowd, false);
	channels[0] = crowd.server_channel;
	channels[1] = crowd.client_channel;
	NEED((epoll = epoll_create1(0)) >= 0);
	for (i = 0; i < 2; i++) {
		fcntl(channels[i]->fd, F_SETFL, fcntl(channels[i]->fd, F_GETFL) | O_NONBLOCK);
		watch.data.ptr = channels[i];
		NEED(!epoll_ctl(epoll, EPOLL_CTL_ADD, channels[i]->fd, &watch));
	}
	crowd_start(&crowd);
	while (crowd.open > 0) {
		NEED(epoll_wait(epoll, &ready, 1, SOON_MS) == 1);
		while (crowd.open > 0 && !rdma_get_cm_event(ready.data.ptr, &event))
			crowd_step(&crowd, event);
		if (crowd.open > 0)
			need(errno == EAGAIN, "EAGAIN");
	}
	crowd_close(&crowd);
}

/*
 * rdma_get_request() by several threads
 */

static void *accept_thread(void *arg)
{
	struct ibv_qp_init_attr attr = queue_attr(RDMA_PS_TCP);
	struct rdma_cm_id *id = NULL;

	if (rdma_get_request(arg, &id) || rdma_create_qp(id, NULL, &attr) || rdma_accept(id, NULL))
		return NULL;
	return id;
}

static void *connect_thread(void *arg)
{
	return (void *)(intptr_t)(rdma_connect(arg, NULL) ? errno : 0);
}

static struct rdma_cm_id *sync_id(enum rdma_port_space ps, bool listen)
{
	struct ibv_qp_init_attr attr = queue_attr(ps);
	struct sockaddr_in addr = my_address(SERVER_PORT);
	struct rdma_cm_id *id;

	NEED(!rdma_create_id(NULL, &id, NULL, ps));
	if (listen) {
		NEED(!rdma_bind_addr(id, (struct sockaddr *)&addr));
		NEED(!rdma_listen(id, 16));
		return id;
	}
	NEED(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr, RESOLVE_MS));
	NEED(!rdma_resolve_route(id, RESOLVE_MS));
	NEED(!rdma_create_qp(id, NULL, &attr));
	return id;
}

static void run_get_request(const void *arg)
{
	struct rdma_cm_id *listen, *clients[THREADS];
	pthread_t accepts[THREADS], connects[THREADS];
	int i, accepted = 0, connected = 0;
	void *ret;

	listen = sync_id(RDMA_PS_TCP, true);
	for (i = 0; i < THREADS; i++)
		NEED(!pthread_create(&accepts[i], NULL, accept_thread, listen));
	for (i = 0; i < THREADS; i++) {
		clients[i] = sync_id(RDMA_PS_TCP, false);
		NEED(!pthread_create(&connects[i], NULL, connect_thread, clients[i]));
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(connects[i], &ret);
		connected += !ret;
		pthread_join(accepts[i], &ret);
		accepted += !!ret;
		if (ret)
			rdma_destroy_ep(ret);
		rdma_destroy_ep(clients[i]);
	}
	say("connected %d accepted %d", connected, accepted);
	RESULT(rdma_destroy_id(listen));
}

/* A synchronous client of an asynchronous server, and the other way round. */
static void run_mix(const void *arg)
{
	struct ibv_qp_init_attr attr = queue_attr(RDMA_PS_TCP);
	struct rdma_cm_event *event;
	struct rdma_cm_id *client;
	struct world w = { 0 };
	pthread_t thread;
	void *ret;

	world_open(&w, RDMA_PS_TCP);
	world_listen(&w);
	client = sync_id(RDMA_PS_TCP, false);
	NEED(!pthread_create(&thread, NULL, connect_thread, client));
	event = take_event(w.server_channel, SOON_MS);
	NEED(event);
	w.server = event->id;
	name_it(w.server, "server");
	say_event("server", event);
	NEED(!rdma_create_qp(w.server, NULL, &attr));
	NEED(!rdma_accept(w.server, &event->param.conn));
	rdma_ack_cm_event(event);
	pthread_join(thread, &ret);
	say("connect: %s", ret ? strerrorname_np((intptr_t)ret) : "0");
	if (client->event)
		say_event("client", client->event);
	say_events("server", w.server_channel, 500);
	/* Migrated, the client goes on asynchronously, and back. */
	RESULT(rdma_migrate_id(client, w.client_channel));
	RESULT(rdma_disconnect(client));
	say_events("server", w.server_channel, 500);
	RESULT(rdma_disconnect(w.server));
	name_it(client, "sync client");
	say_events("client", w.client_channel, 500);
	RESULT(rdma_migrate_id(client, NULL));
	say("channel %s event %s", client->channel ? "some" : "NULL",
	    client->event ? "some" : "NULL");
	rdma_destroy_ep(client);
	world_close(&w);
}

/* What is open does not reach a program that is started. */
static void run_exec(const void *arg)
{
	struct world w = { 0 };
	char command[64];

	world_open(&w, RDMA_PS_TCP);
	world_listen(&w);
	world_resolve(&w);
	snprintf(command, sizeof(command), "ls -l /proc/self/fd | grep -c -e infiniband -e rdma");
	fflush(stdout);
	say("exit code %d", system(command) ? 1 : 0);
	world_close(&w);
}

/*
 * Ids that move, events that are acknowledged late
 */

static void run_migrate_pending(const void *arg)
{
	struct sockaddr_in dst = my_address(SERVER_PORT);
	struct rdma_event_channel *other;
	struct rdma_cm_id *ids[4];
	struct world w = { 0 };
	int i;

	world_open(&w, RDMA_PS_TCP);
	NEED((other = rdma_create_event_channel()));
	name_it(other, "other channel");
	for (i = 0; i < 4; i++) {
		NEED(!rdma_create_id(w.client_channel, &ids[i], NULL, RDMA_PS_TCP));
		name_it(ids[i], i == 0 ? "id 0" : i == 1 ? "id 1" : i == 2 ? "id 2" : "id 3");
		NEED(!rdma_resolve_addr(ids[i], NULL, (struct sockaddr *)&dst, RESOLVE_MS));
		usleep(100000);
	}
	RESULT(rdma_migrate_id(ids[2], other));
	RESULT(rdma_migrate_id(ids[0], other));
	say_events("first", w.client_channel, 500);
	say_events("other", other, 500);
	for (i = 0; i < 4; i++)
		RESULT(rdma_destroy_id(ids[i]));
	rdma_destroy_event_channel(other);
	world_close(&w);
}

static int destroyed;

static void *destroy_thread(void *id)
{
	rdma_destroy_id(id);
	__atomic_store_n(&destroyed, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void run_late_ack(const void *arg)
{
	struct sockaddr_in dst = my_address(SERVER_PORT);
	struct rdma_cm_event *event;
	struct world w = { 0 };
	pthread_t thread;

	world_open(&w, RDMA_PS_TCP);
	NEED(!rdma_resolve_addr(w.client, NULL, (struct sockaddr *)&dst, RESOLVE_MS));
	event = take_event(w.client_channel, SOON_MS);
	NEED(event);
	NEED(!pthread_create(&thread, NULL, destroy_thread, w.client));
	usleep(500000);
	say("destroyed before the event is acknowledged: %d",
	    __atomic_load_n(&destroyed, __ATOMIC_SEQ_CST));
	say_event("late", event);
	rdma_ack_cm_event(event);
	pthread_join(thread, NULL);
	say("destroyed %d", destroyed);
	w.client = NULL;
	world_close(&w);
}

/*
 * Odd orders
 */

static void run_channel_first(const void *arg)
{
	struct world w = { 0 };

	world_open(&w, RDMA_PS_TCP);
	world_connect(&w);
	rdma_destroy_event_channel(w.client_channel);
	rdma_destroy_event_channel(w.server_channel);
	rdma_destroy_qp(w.client);
	RESULT(rdma_destroy_id(w.client));
	rdma_destroy_qp(w.server);
	RESULT(rdma_destroy_id(w.server));
	RESULT(rdma_destroy_id(w.listen));
}

static void run_listener_first(const void *arg)
{
	struct world w = { 0 };

	world_open(&w, RDMA_PS_TCP);
	world_listen(&w);
	world_resolve(&w);
	world_request(&w, NULL);
	rdma_ack_cm_event(w.request);
	w.request = NULL;
	RESULT(rdma_destroy_id(w.listen));
	w.listen = NULL;
	world_accept(&w, NULL);
	say_events("client", w.client_channel, 500);
	say_events("server", w.server_channel, 500);
	world_close(&w);
}

static void run_listener_with_unread(const void *arg)
{
	struct rdma_conn_param param = { .retry_count = 7 };
	struct world w = { 0 };

	world_open(&w, RDMA_PS_TCP);
	world_listen(&w);
	world_resolve(&w);
	NEED(!rdma_connect(w.client, &param));
	usleep(300000);
	RESULT(rdma_destroy_id(w.listen));
	w.listen = NULL;
	say_events("server", w.server_channel, 100);
	say_events("client", w.client_channel, 500);
	world_close(&w);
}

static void run_destroy_connected(const void *arg)
{
	struct world w = { 0 };

	world_open(&w, RDMA_PS_TCP);
	world_connect(&w);
	rdma_destroy_qp(w.client);
	RESULT(rdma_destroy_id(w.client));
	w.client = NULL;
	say_events("server", w.server_channel, 500);
	RESULT(rdma_disconnect(w.server));
	world_close(&w);
}

static void run_destroy_requested(const void *arg)
{
	struct world w = { 0 };

	world_open(&w, RDMA_PS_TCP);
	world_listen(&w);
	world_resolve(&w);
	world_request(&w, NULL);
	rdma_ack_cm_event(w.request);
	w.request = NULL;
	rdma_destroy_qp(w.server);
	RESULT(rdma_destroy_id(w.server));
	w.server = NULL;
	say_events("client", w.client_channel, 1000);
	world_close(&w);
}

/* The queue pair goes, and another comes, before connecting and after. */
static void run_replace_qp(const void *arg)
{
	struct ibv_qp_init_attr attr = queue_attr(RDMA_PS_TCP);
	struct world w = { 0 };

	world_open(&w, RDMA_PS_TCP);
	world_listen(&w);
	world_resolve(&w);
	rdma_destroy_qp(w.client);
	RESULT(rdma_create_qp(w.client, NULL, &attr));
	world_request(&w, NULL);
	rdma_destroy_qp(w.server);
	attr = queue_attr(RDMA_PS_TCP);
	RESULT(rdma_create_qp(w.server, NULL, &attr));
	world_accept(&w, NULL);
	say_events("client", w.client_channel, 500);
	say_events("server", w.server_channel, 500);
	rdma_destroy_qp(w.client);
	attr = queue_attr(RDMA_PS_TCP);
	RESULT(rdma_create_qp(w.client, NULL, &attr));
	say_fields("client", w.client);
	RESULT(rdma_disconnect(w.client));
	say_events("client", w.client_channel, 500);
	say_events("server", w.server_channel, 500);
	world_close(&w);
}

/*
 * Data
 */

static void transfer(struct rdma_cm_id *from, struct rdma_cm_id *to, char *out, char *in)
{
	struct ibv_mr *mr_out, *mr_in;
	struct ibv_wc wc;

	NEED((mr_out = rdma_reg_msgs(from, out, 16)));
	NEED((mr_in = rdma_reg_msgs(to, in, 16)));
	RESULT(rdma_post_recv(to, in, in, 16, mr_in));
	RESULT(rdma_post_send(from, out, out, 16, mr_out, 0));
	memset(&wc, 0, sizeof(wc));
	RESULT(rdma_get_send_comp(from, &wc));
	say("send %s %d id %d", ibv_wc_status_str(wc.status), wc.opcode,
	    wc.wr_id == (uintptr_t)out);
	RESULT(rdma_get_recv_comp(to, &wc));
	say("receive %s %d id %d %u %s", ibv_wc_status_str(wc.status), wc.opcode,
	    wc.wr_id == (uintptr_t)in, wc.byte_len, in);
	RESULT(rdma_dereg_mr(mr_out));
	RESULT(rdma_dereg_mr(mr_in));
}

static void run_data(const void *arg)
{
	static char a[32] = "over there", b[32];
	struct world w = { 0 };

	world_open(&w, RDMA_PS_TCP);
	world_connect(&w);
	transfer(w.client, w.server, a, b);
	transfer(w.server, w.client, b, a + 16);
	RESULT(rdma_disconnect(w.client));
	RESULT(rdma_disconnect(w.server));
	world_close(&w);
}

/* Both servers' queue pairs take their receives from one queue. */
static void run_srq(const void *arg)
{
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct rdma_conn_param param = { .qp_num = 1 };
	struct ibv_qp_init_attr attr;
	struct ibv_srq *srq;
	struct ibv_pd *pd;
	struct world w = { 0 };

	world_open(&w, RDMA_PS_TCP);
	world_listen(&w);
	world_resolve(&w);
	NEED((pd = ibv_alloc_pd(w.client->verbs)));
	NEED((srq = ibv_create_srq(pd, &srq_attr)));
	name_it(srq, "srq");
	name_it(pd, "pd");
	NEED(!rdma_connect(w.client, &param));
	w.request = take_event(w.server_channel, SOON_MS);
	NEED(w.request);
	w.server = w.request->id;
	name_it(w.server, "server");
	say_event("request", w.request);
	attr = queue_attr(RDMA_PS_TCP);
	attr.srq = srq;
	RESULT(rdma_create_qp(w.server, pd, &attr));
	say_fields("server", w.server);
	world_accept(&w, NULL);
	say_events("client", w.client_channel, 500);
	say_events("server", w.server_channel, 500);
	rdma_destroy_qp(w.server);
	say_fields("server", w.server);
	say_result("destroy srq", -ibv_destroy_srq(srq));
	world_close(&w);
	say_result("dealloc pd", -ibv_dealloc_pd(pd));
}

void trace_programs(void)
{
	static const struct {
		const char *name;
		void (*run)(const void *arg);
	} programs[] = {
		{ "threads", run_threads },
		{ "epoll", run_epoll },
		{ "exec", run_exec },
		{ "migrate", run_migrate_pending },
		{ "late ack", run_late_ack },
		{ "channel first", run_channel_first },
		{ "listener first", run_listener_first },
		{ "listener with unread request", run_listener_with_unread },
		{ "destroy connected", run_destroy_connected },
		{ "destroy requested", run_destroy_requested },
		{ "replace QP", run_replace_qp },
		{ "data", run_data },
		{ "srq", run_srq },
	};
	size_t i;

	for (i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
		scenario(programs[i].run, NULL, "%s", programs[i].name);
}

/* Synchronous ids with more than one thread */
void trace_sync(void)
{
	scenario(run_get_request, NULL, "get_request");
	scenario(run_mix, NULL, "mix");
}
