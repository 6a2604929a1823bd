// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What ids and events say of themselves, from the first step of a connection
 * to the last, asynchronous and synchronous.
 */
#include <pthread.h>

#include "apitrace.h"

static void say_next(const char *what, struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event = take_event(channel, SOON_MS);

	if (!event) {
		say("%s no event", what);
		return;
	}
	say_event(what, event);
	if (event->id)
		say_fields(what, event->id);
	rdma_ack_cm_event(event);
}

static void run_async(const void *arg)
{
	const struct world *kind = arg;
	struct sockaddr_in src = my_address(CLIENT_PORT), dst = my_address(SERVER_PORT);
	struct world w = { .bare = kind->bare };
	struct ibv_qp_init_attr attr = queue_attr(kind->ps);
	struct rdma_conn_param param = {
		.private_data = "hello", .private_data_len = 5, .responder_resources = 3,
		.initiator_depth = 2, .flow_control = 1, .retry_count = 4, .rnr_retry_count = 3,
		.srq = 1, .qp_num = 77,
	};

	world_open(&w, kind->ps);
	say_fields("created", w.client);
	world_listen(&w);
	say_fields("listening", w.listen);
	RESULT(rdma_resolve_addr(w.client, (struct sockaddr *)&src, (struct sockaddr *)&dst,
				 RESOLVE_MS));
	say_next("address", w.client_channel);
	RESULT(rdma_resolve_route(w.client, RESOLVE_MS));
	say_next("route", w.client_channel);
	if (!w.bare) {
		RESULT(rdma_create_qp(w.client, NULL, &attr));
		say_fields("with a QP", w.client);
	}
	RESULT(rdma_connect(w.client, &param));
	w.request = take_event(w.server_channel, SOON_MS);
	NEED(w.request);
	w.server = w.request->id;
	name_it(w.server, "server");
	say_event("request", w.request);
	say_fields("request", w.server);
	if (!w.bare)
		RESULT(rdma_create_qp(w.server, NULL, &attr));
	param = w.request->param.conn;
	param.private_data = "welcome";
	param.private_data_len = 7;
	param.qp_num = 78;
	RESULT(rdma_accept(w.server, &param));
	say_fields("accepted", w.server);
	say_next("client", w.client_channel);
	if (w.bare && w.ps == RDMA_PS_TCP)
		RESULT(rdma_establish(w.client));
	say_events("server", w.server_channel, 500);
	RESULT(rdma_disconnect(w.client));
	say_events("server", w.server_channel, 500);
	RESULT(rdma_disconnect(w.server));
	say_events("client", w.client_channel, 500);
	say_fields("disconnected", w.client);
	say_fields("disconnected", w.server);
	if (w.client->qp) {
		rdma_destroy_qp(w.client);
		say_fields("without a QP", w.client);
	}
	world_close(&w);
}

/*
 * Synchronous
 */

struct sync_kind {
	enum rdma_port_space ps;
	const char *name;
	bool no_server_qp;
	bool no_client_qp;
	bool reject;
};

static struct rdma_addrinfo *info_for(enum rdma_port_space ps, int flags, uint16_t port)
{
	struct rdma_addrinfo hints = { .ai_port_space = ps, .ai_flags = flags | RAI_NUMERICHOST },
			     *info = NULL;
	const char *ip = getenv("MY_IP");
	char service[8];

	snprintf(service, sizeof(service), "%u", port);
	NEED(!rdma_getaddrinfo((char *)(ip && *ip ? ip : "10.77.0.1"), service, &hints, &info));
	return info;
}

static void *connect_thread(void *arg)
{
	struct rdma_conn_param param = { .private_data = "hello", .private_data_len = 5,
					 .qp_num = 77 };
	struct rdma_cm_id *id = arg;
	int ret = rdma_connect(id, &param);

	return (void *)(intptr_t)(ret ? errno : 0);
}

static void *disconnect_thread(void *id)
{
	return (void *)(intptr_t)(rdma_disconnect(id) ? errno : 0);
}

static void serve_request(const struct sync_kind *kind, struct rdma_cm_id *listen,
			  struct rdma_cm_id *client)
{
	struct rdma_conn_param param = { .private_data = "welcome", .private_data_len = 7,
					 .qp_num = 78 };
	struct rdma_cm_id *server = NULL;
	pthread_t thread;
	void *ret;

	NEED(!pthread_create(&thread, NULL, connect_thread, client));
	RESULT(rdma_get_request(listen, &server));
	NEED(server);
	name_it(server, "server");
	name_it(server->channel, "server's channel");
	say_fields("request", server);
	if (server->event)
		say_event("request", server->event);
	say_fields("listener", listen);
	if (kind->reject)
		RESULT(rdma_reject(server, "no", 2));
	else
		RESULT(rdma_accept(server, &param));
	pthread_join(thread, &ret);
	say("connect: %s", ret ? strerrorname_np((intptr_t)ret) : "0");
	say_fields("client", client);
	if (client->event)
		say_event("client", client->event);
	say_fields("server", server);
	if (server->event)
		say_event("server", server->event);
	if (!kind->reject && kind->ps == RDMA_PS_TCP) {
		NEED(!pthread_create(&thread, NULL, disconnect_thread, server));
		RESULT(rdma_disconnect(client));
		pthread_join(thread, &ret);
		say("disconnect: %s", ret ? strerrorname_np((intptr_t)ret) : "0");
		say_fields("client", client);
		if (client->event)
			say_event("client", client->event);
	}
	rdma_destroy_ep(server);
}

static void run_sync(const void *arg)
{
	const struct sync_kind *kind = arg;
	struct ibv_qp_init_attr attr = queue_attr(kind->ps);
	struct rdma_cm_id *listen = NULL, *client = NULL;
	struct rdma_addrinfo *info;

	info = info_for(kind->ps, RAI_PASSIVE, SERVER_PORT);
	RESULT(rdma_create_ep(&listen, info, NULL, kind->no_server_qp ? NULL : &attr));
	NEED(listen);
	name_it(listen, "listener");
	name_it(listen->channel, "listener's channel");
	rdma_freeaddrinfo(info);
	say_fields("passive", listen);
	RESULT(rdma_listen(listen, 4));
	say_fields("listening", listen);

	attr = queue_attr(kind->ps);
	info = info_for(kind->ps, 0, SERVER_PORT);
	RESULT(rdma_create_ep(&client, info, NULL, kind->no_client_qp ? NULL : &attr));
	NEED(client);
	name_it(client, "client");
	name_it(client->channel, "client's channel");
	rdma_freeaddrinfo(info);
	say_fields("active", client);
	if (client->event)
		say_event("active", client->event);
	say("attributes %d %d %d cq %d %d", attr.cap.max_send_wr >= 4, attr.cap.max_recv_wr >= 4,
	    attr.cap.max_send_sge >= 1, !!attr.send_cq,
	    !!attr.recv_cq);
	serve_request(kind, listen, client);
	rdma_destroy_ep(client);
	rdma_destroy_ep(listen);
}

/* Steps of a synchronous id, each with the event that it leaves. */
static void run_sync_steps(const void *arg)
{
	struct sockaddr_in dst = my_address(SERVER_PORT), far = address("192.0.2.9", 1);
	struct rdma_cm_id *id = NULL;

	RESULT(rdma_create_id(NULL, &id, (void *)arg, RDMA_PS_TCP));
	NEED(id);
	name_it(arg, "context");
	name_it(id, "id");
	name_it(id->channel, "its channel");
	say_fields("created", id);
	RESULT(rdma_resolve_addr(id, NULL, (struct sockaddr *)&far, RESOLVE_MS));
	say_fields("unreachable", id);
	RESULT(rdma_resolve_addr(id, NULL, (struct sockaddr *)&dst, RESOLVE_MS));
	say_fields("address", id);
	if (id->event)
		say_event("address", id->event);
	RESULT(rdma_resolve_route(id, RESOLVE_MS));
	say_fields("route", id);
	if (id->event)
		say_event("route", id->event);
	RESULT(rdma_connect(id, NULL));
	say_fields("connect without anything", id);
	struct rdma_conn_param param = { .qp_num = 9 };
	RESULT(rdma_connect(id, &param));
	say_fields("nobody listens", id);
	if (id->event)
		say_event("nobody listens", id->event);
	RESULT(rdma_destroy_id(id));
}

/*
 * Groups
 */

static void run_multicast(const void *arg)
{
	struct rdma_cm_join_mc_attr_ex attr = { 0 };
	struct ibv_qp_init_attr qp = queue_attr(RDMA_PS_UDP);
	struct sockaddr_in src = my_address(0), group[3];
	struct world w = { 0 };
	int i;

	world_open(&w, *(const enum rdma_port_space *)arg);
	NEED(!rdma_bind_addr(w.client, (struct sockaddr *)&src));
	RESULT(rdma_create_qp(w.client, NULL, &qp));
	for (i = 0; i < 3; i++)
		group[i] = address(i == 0 ? "239.77.0.1" : i == 1 ? "239.77.0.2" : "239.77.0.3", 0);
	for (i = 0; i < 3; i++) {
		RESULT(rdma_join_multicast(w.client, (struct sockaddr *)&group[i], &group[i]));
		say_next("joined", w.client_channel);
	}
	RESULT(rdma_join_multicast(w.client, (struct sockaddr *)&group[0], &group[0]));
	say_events("joined twice", w.client_channel, 500);
	attr.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
	attr.addr = (struct sockaddr *)&group[1];
	attr.join_flags = RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER;
	RESULT(rdma_join_multicast_ex(w.client, &attr, &attr));
	say_events("send only", w.client_channel, 500);
	for (i = 2; i >= 0; i--)
		RESULT(rdma_leave_multicast(w.client, (struct sockaddr *)&group[i]));
	RESULT(rdma_leave_multicast(w.client, (struct sockaddr *)&group[0]));
	RESULT(rdma_leave_multicast(w.client, (struct sockaddr *)&group[0]));
	say_events("left", w.client_channel, 200);
	world_close(&w);
}

void trace_fields(void)
{
	static const struct world kinds[] = {
		{ .ps = RDMA_PS_TCP },
		{ .ps = RDMA_PS_TCP, .bare = true },
		{ .ps = RDMA_PS_UDP },
		{ .ps = RDMA_PS_IPOIB },
	};
	static const struct sync_kind syncs[] = {
		{ RDMA_PS_TCP, "TCP" },
		{ RDMA_PS_TCP, "TCP rejected", .reject = true },
		{ RDMA_PS_TCP, "TCP no client QP", .no_client_qp = true, .reject = true },
		{ RDMA_PS_TCP, "TCP no server QP", .no_server_qp = true },
		{ RDMA_PS_UDP, "UDP" },
		{ RDMA_PS_UDP, "UDP rejected", .reject = true },
	};
	static const enum rdma_port_space spaces[] = { RDMA_PS_UDP, RDMA_PS_IPOIB };
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		scenario(run_async, &kinds[i], "async %x%s", kinds[i].ps,
			 kinds[i].bare ? " no QP" : "");
	for (i = 0; i < sizeof(syncs) / sizeof(syncs[0]); i++)
		scenario(run_sync, &syncs[i], "sync %s", syncs[i].name);
	scenario(run_sync_steps, &spaces, "sync steps");
	for (i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++)
		scenario(run_multicast, &spaces[i], "multicast %x", spaces[i]);
}
