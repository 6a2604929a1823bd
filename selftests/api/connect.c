// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rdma_listen(3), rdma_get_request(3), rdma_connect(3), rdma_accept(3),
 * rdma_reject(3), rdma_disconnect(3) and rdma_notify(3): reliable connections
 * with QPs that the library made. The rest is in external.c and ud.c.
 */
#include "api_utils.h"

PAIR_FIXTURE(connect)

/* InfiniBand's limits, which RoCE shares; rdma_connect(3), rdma_accept(3) */
#define MAX_CONNECT	56
#define MAX_ACCEPT	196
#define MAX_REJECT	148

#define REJ_INVALID_SERVICE_ID	8
#define REJ_CONSUMER_DEFINED	28

static char data[256] = "some private data";

TEST_F(connect, connects)
{
	struct pair *p = &self->pair;

	pair_connect(p);
	EXPECT_EQ(IBV_QPS_RTS, qp_state(p->client->qp));
	EXPECT_EQ(IBV_QPS_RTS, qp_state(p->server->qp));
	send_message(p->client, p->server);
	send_message(p->server, p->client);
}

/* several clients of one listener at the same time */
TEST_F(connect, several)
{
	struct rdma_cm_id *clients[3], *servers[3];
	struct pair *p = &self->pair;
	int i;

	for (i = 0; i < 3; i++) {
		pair_connect(p);
		clients[i] = p->client;
		servers[i] = p->server;
	}
	for (i = 0; i < 3; i++)
		send_message(clients[i], servers[i]);
	p->client = p->server = NULL;
	for (i = 0; i < 3; i++) {
		rdma_destroy_qp(clients[i]);
		ok(rdma_destroy_id(clients[i]));
		expect_event(p->server_channel, RDMA_CM_EVENT_DISCONNECTED);
		rdma_destroy_qp(servers[i]);
		ok(rdma_destroy_id(servers[i]));
	}
}

/* whole lives of connections, private data and all */
TEST_F(connect, again_and_again)
{
	struct pair *p = &self->pair;
	struct growth growth = {};
	int i;

	p->connect_param.private_data = data;
	p->connect_param.private_data_len = 20;
	p->accept_param = p->connect_param;
	for (i = 0; i < 12; i++) {
		pair_connect(p);
		ok(rdma_disconnect(p->client));
		expect_event(p->server_channel, RDMA_CM_EVENT_DISCONNECTED);
		ok(rdma_disconnect(p->server));
		expect_event(p->client_channel, RDMA_CM_EVENT_DISCONNECTED);
		pair_destroy(p);
		expect_no_leak(&self->before);
		if (i == 3)
			growth = growth_now();
	}
	expect_no_growth(&growth);
}

/* conn_param is optional where the id has a QP */
TEST_F(connect, without_parameters)
{
	struct ibv_qp_init_attr attr = qp_attr(IBV_QPT_RC);
	struct pair *p = &self->pair;

	pair_listen(p);
	pair_resolve(p);
	ok(rdma_connect(p->client, NULL));
	p->request = get_event(p->server_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	p->server = p->request->id;
	EXPECT_EQ(7, p->request->param.conn.retry_count);
	EXPECT_EQ(7, p->request->param.conn.rnr_retry_count);
	EXPECT_LT(0, p->request->param.conn.responder_resources);
	EXPECT_LT(0, p->request->param.conn.initiator_depth);
	ok(rdma_create_qp(p->server, NULL, &attr));
	ok(rdma_accept(p->server, NULL));
	expect_event(p->client_channel, RDMA_CM_EVENT_ESTABLISHED);
	expect_event(p->server_channel, RDMA_CM_EVENT_ESTABLISHED);
	send_message(p->client, p->server);
}

/* the QPs get what was agreed on */
TEST_F(connect, qp_attributes)
{
	struct ibv_qp_init_attr init;
	struct pair *p = &self->pair;
	struct ibv_qp_attr attr;
	int mask = IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC |
		   IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_DEST_QPN;

	p->connect_param = (struct rdma_conn_param){
		.responder_resources = 8, .initiator_depth = 4,
		.retry_count = 5, .rnr_retry_count = 6,
	};
	p->accept_param = (struct rdma_conn_param){
		.responder_resources = 4, .initiator_depth = 8,
		.rnr_retry_count = 3,
	};
	pair_connect(p);
	ASSERT_EQ(0, ibv_query_qp(p->client->qp, &attr, mask, &init));
	EXPECT_EQ(8, attr.max_dest_rd_atomic);
	EXPECT_EQ(4, attr.max_rd_atomic);
	EXPECT_EQ(5, attr.retry_cnt);
	EXPECT_EQ(p->server->qp->qp_num, attr.dest_qp_num);
	ASSERT_EQ(0, ibv_query_qp(p->server->qp, &attr, mask, &init));
	EXPECT_EQ(4, attr.max_dest_rd_atomic);
	EXPECT_EQ(8, attr.max_rd_atomic);
	EXPECT_EQ(6, attr.rnr_retry);
	EXPECT_EQ(p->client->qp->qp_num, attr.dest_qp_num);
}

/* "must be less than or equal to the local RDMA device attribute" */
TEST_F(connect, error_too_many_resources)
{
	struct ibv_device_attr attr;
	struct pair *p = &self->pair;
	struct rdma_conn_param param = {};

	pair_listen(p);
	pair_resolve(p);
	ASSERT_EQ(0, ibv_query_device(p->client->verbs, &attr));
	if (attr.max_qp_rd_atom < 254) {
		param.responder_resources = attr.max_qp_rd_atom + 1;
		err(EINVAL, rdma_connect(p->client, &param));
	}
	param.responder_resources = 0;
	if (attr.max_qp_init_rd_atom < 254) {
		param.initiator_depth = attr.max_qp_init_rd_atom + 1;
		err(EINVAL, rdma_connect(p->client, &param));
	}
	/* 0xff means as many as there are */
	param.initiator_depth = RDMA_MAX_INIT_DEPTH;
	param.responder_resources = RDMA_MAX_RESP_RES;
	ok(rdma_connect(p->client, &param));
	p->request = get_event(p->server_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	p->server = p->request->id;
	EXPECT_EQ(attr.max_qp_init_rd_atom < 255 ? attr.max_qp_init_rd_atom : 255,
		  p->request->param.conn.responder_resources);
}

/* "limited to 56 bytes for RDMA_PS_TCP" */
TEST_F(connect, private_data_limit)
{
	struct pair *p = &self->pair;

	pair_listen(p);
	pair_resolve(p);
	p->connect_param.private_data = data;
	p->connect_param.private_data_len = MAX_CONNECT + 1;
	err(EINVAL, rdma_connect(p->client, &p->connect_param));
	expect_reason(RDMA_EP_REASON_DATA_TOO_LONG);
	p->connect_param.private_data_len = 255;
	err(EINVAL, rdma_connect(p->client, &p->connect_param));
	p->connect_param.private_data_len = MAX_CONNECT;
	pair_request(p);
	EXPECT_EQ(MAX_CONNECT, p->request->param.conn.private_data_len);
	EXPECT_EQ(0, memcmp(data, p->request->param.conn.private_data,
			    MAX_CONNECT));
}

/* "196 bytes": what accepts it is not lost by trying with more first */
TEST_F(connect, accept_private_data_limit)
{
	struct pair *p = &self->pair;
	struct rdma_cm_event *event;

	pair_listen(p);
	pair_resolve(p);
	pair_request(p);
	p->accept_param.private_data = data;
	if (!on_stock()) {
		/* librdmacm has refused the client by the time it says so */
		p->accept_param.private_data_len = MAX_ACCEPT + 1;
		err(EINVAL, rdma_accept(p->server, &p->accept_param));
		expect_reason(RDMA_EP_REASON_DATA_TOO_LONG);
	}
	p->accept_param.private_data_len = MAX_ACCEPT;
	pair_accept(p);
	event = get_event(p->client_channel, RDMA_CM_EVENT_ESTABLISHED);
	EXPECT_EQ(MAX_ACCEPT, event->param.conn.private_data_len);
	EXPECT_EQ(0, memcmp(data, event->param.conn.private_data, MAX_ACCEPT));
	ok(rdma_ack_cm_event(event));
	expect_event(p->server_channel, RDMA_CM_EVENT_ESTABLISHED);
}

/* "must have resolved a route" */
TEST_F(connect, error_no_route)
{
	struct rdma_conn_param param = { .qp_num = 0x1234 };
	struct pair *p = &self->pair;

	pair_listen(p);
	ok(rdma_create_id(p->client_channel, &p->client, NULL, RDMA_PS_TCP));
	if (!on_stock())	/* which follows a NULL pointer */
		err(EINVAL, rdma_connect(p->client, &param));
	ok(rdma_resolve_addr(p->client, NULL, sa(&p->addr), RESOLVE_MS));
	expect_event(p->client_channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	err(EINVAL, rdma_connect(p->client, &param));
	expect_reason(RDMA_EP_REASON_STATE);
}

TEST_F(connect, error_twice)
{
	struct pair *p = &self->pair;

	pair_connect(p);
	err(EINVAL, rdma_connect(p->client, &p->connect_param));
	/* which does the connection no harm */
	EXPECT_EQ(IBV_QPS_RTS, qp_state(p->client->qp));
	send_message(p->client, p->server);
}

/* No QP on the id, and no number of one. */
TEST_F(connect, error_no_parameters_no_qp)
{
	struct pair *p = &self->pair;

	p->no_qp = true;
	pair_listen(p);
	pair_resolve(p);
	err(EINVAL, rdma_connect(p->client, NULL));
}

TEST_F(connect, refused)
{
	struct pair *p = &self->pair;
	struct rdma_cm_event *event;

	pair_listen(p);
	ok(rdma_destroy_id(p->listen));
	p->listen = NULL;
	pair_resolve(p);
	ok(rdma_connect(p->client, &p->connect_param));
	event = get_event(p->client_channel, RDMA_CM_EVENT_REJECTED);
	EXPECT_EQ(REJ_INVALID_SERVICE_ID, event->status);
	EXPECT_EQ(p->client, event->id);
	ok(rdma_ack_cm_event(event));
	EXPECT_EQ(IBV_QPS_ERR, qp_state(p->client->qp));
	expect_silence(p->client_channel);
}

/*
 * rdma_reject
 */

TEST_F(connect, reject)
{
	struct pair *p = &self->pair;
	struct rdma_cm_event *event;

	pair_listen(p);
	pair_resolve(p);
	pair_request(p);
	ok(rdma_reject(p->server, "go away", 7));
	event = get_event(p->client_channel, RDMA_CM_EVENT_REJECTED);
	EXPECT_EQ(REJ_CONSUMER_DEFINED, event->status);
	ASSERT_LE(7, event->param.conn.private_data_len);
	EXPECT_EQ(0, memcmp("go away", event->param.conn.private_data, 7));
	ok(rdma_ack_cm_event(event));
	EXPECT_EQ(IBV_QPS_ERR, qp_state(p->client->qp));
}

TEST_F(connect, reject_without_data)
{
	struct pair *p = &self->pair;

	pair_listen(p);
	pair_resolve(p);
	pair_request(p);
	ok(rdma_reject(p->server, NULL, 0));
	ok(rdma_ack_cm_event(get_event(p->client_channel,
				       RDMA_CM_EVENT_REJECTED)));
	/* It cannot be accepted any more. */
	err(EINVAL, rdma_accept(p->server, &p->accept_param));
}

TEST_F(connect, reject_private_data_limit)
{
	struct pair *p = &self->pair;
	struct rdma_cm_event *event;

	pair_listen(p);
	pair_resolve(p);
	pair_request(p);
	err(EINVAL, rdma_reject(p->server, data, MAX_REJECT + 1));
	expect_reason(RDMA_EP_REASON_DATA_TOO_LONG);
	ok(rdma_reject(p->server, data, MAX_REJECT));
	event = get_event(p->client_channel, RDMA_CM_EVENT_REJECTED);
	ASSERT_LE(MAX_REJECT, event->param.conn.private_data_len);
	EXPECT_EQ(0, memcmp(data, event->param.conn.private_data, MAX_REJECT));
	ok(rdma_ack_cm_event(event));
}

TEST_F(connect, error_reject_not_a_request)
{
	struct pair *p = &self->pair;

	pair_listen(p);
	pair_resolve(p);
	err(EINVAL, rdma_reject(p->client, NULL, 0));
	err(EINVAL, rdma_reject(p->listen, NULL, 0));
}

/*
 * rdma_accept
 */

/* "rdma_accept is not called on a listening rdma_cm_id" */
TEST_F(connect, error_accept_listener)
{
	struct rdma_conn_param param = { .qp_num = 0x1234 };

	pair_listen(&self->pair);
	err(EINVAL, rdma_accept(self->pair.listen, &param));
}

TEST_F(connect, error_accept_twice)
{
	struct pair *p = &self->pair;

	pair_connect(p);
	err(EINVAL, rdma_accept(p->server, &p->accept_param));
}

/* The event's own parameters may be passed on. */
TEST_F(connect, accept_with_event_parameters)
{
	struct pair *p = &self->pair;

	p->connect_param.initiator_depth = 2;
	p->connect_param.responder_resources = 1;
	pair_listen(p);
	pair_resolve(p);
	pair_request(p);
	ok(rdma_accept(p->server, &p->request->param.conn));
	pair_ack(p);
	expect_event(p->client_channel, RDMA_CM_EVENT_ESTABLISHED);
	expect_event(p->server_channel, RDMA_CM_EVENT_ESTABLISHED);
}

/* A client that gave up meanwhile. */
TEST_F(connect, accept_after_client_left)
{
	struct pair *p = &self->pair;
	struct rdma_cm_event *event;

	not_on_stock("events before rdma_accept are lost");
	pair_listen(p);
	pair_resolve(p);
	pair_request(p);
	pair_ack(p);
	rdma_destroy_qp(p->client);
	ok(rdma_destroy_id(p->client));
	p->client = NULL;
	/* One terminal event, whatever accept answers. */
	if (rdma_accept(p->server, &p->accept_param)) {
		EXPECT_LT(0, errno);
	}
	event = next_event(p->server_channel);
	ASSERT_NE(NULL, event);
	EXPECT_NE(RDMA_CM_EVENT_ESTABLISHED, event->event) {
		TH_LOG("%s", rdma_event_str(event->event));
	}
	ok(rdma_ack_cm_event(event));
	expect_silence(p->server_channel);
}

/*
 * rdma_disconnect
 */

/* "transitions any associated QP to the error state" */
TEST_F(connect, disconnect)
{
	struct pair *p = &self->pair;

	pair_connect(p);
	ok(rdma_disconnect(p->client));
	EXPECT_EQ(IBV_QPS_ERR, qp_state(p->client->qp));
	expect_event(p->server_channel, RDMA_CM_EVENT_DISCONNECTED);
	ok(rdma_disconnect(p->server));
	EXPECT_EQ(IBV_QPS_ERR, qp_state(p->server->qp));
	expect_event(p->client_channel, RDMA_CM_EVENT_DISCONNECTED);
}

TEST_F(connect, disconnect_from_passive_side)
{
	struct pair *p = &self->pair;

	pair_connect(p);
	ok(rdma_disconnect(p->server));
	expect_event(p->client_channel, RDMA_CM_EVENT_DISCONNECTED);
	ok(rdma_disconnect(p->client));
	expect_event(p->server_channel, RDMA_CM_EVENT_DISCONNECTED);
}

/* both at once: one event each */
TEST_F(connect, disconnect_both_sides)
{
	struct pair *p = &self->pair;

	pair_connect(p);
	ok(rdma_disconnect(p->client));
	ok(rdma_disconnect(p->server));
	expect_event(p->client_channel, RDMA_CM_EVENT_DISCONNECTED);
	expect_event(p->server_channel, RDMA_CM_EVENT_DISCONNECTED);
	expect_silence(p->client_channel);
}

/* Receives that were posted come back flushed. */
TEST_F(connect, disconnect_flushes)
{
	struct pair *p = &self->pair;
	char buf[64];
	struct ibv_mr *mr;
	struct ibv_wc wc;

	pair_connect(p);
	mr = rdma_reg_msgs(p->client, buf, sizeof(buf));
	ASSERT_NE(NULL, mr);
	ok(rdma_post_recv(p->client, buf, buf, sizeof(buf), mr));
	ok(rdma_disconnect(p->client));
	ASSERT_EQ(1, rdma_get_recv_comp(p->client, &wc));
	EXPECT_EQ(IBV_WC_WR_FLUSH_ERR, wc.status);
	ok(rdma_dereg_mr(mr));
	expect_event(p->server_channel, RDMA_CM_EVENT_DISCONNECTED);
}

TEST_F(connect, disconnect_by_destroy)
{
	struct pair *p = &self->pair;

	pair_connect(p);
	rdma_destroy_qp(p->client);
	ok(rdma_destroy_id(p->client));
	p->client = NULL;
	expect_event(p->server_channel, RDMA_CM_EVENT_DISCONNECTED);
}

TEST_F(connect, error_disconnect_unconnected)
{
	struct pair *p = &self->pair;

	pair_listen(p);
	ok(rdma_create_id(p->client_channel, &p->client, NULL, RDMA_PS_TCP));
	err(EINVAL, rdma_disconnect(p->client));
}

/*
 * What the peer may do is what it asked for in its answer, whatever we have
 * asked for ourselves.
 */
TEST_F(connect, peer_reads)
{
	struct ibv_qp_attr attr, kernels = { .qp_state = IBV_QPS_INIT };
	struct pair *p = &self->pair;
	struct ibv_qp_init_attr init;
	int mask;

	p->connect_param = (struct rdma_conn_param){ .retry_count = 7 };
	p->accept_param = (struct rdma_conn_param){
		.retry_count = 7, .initiator_depth = 1,
	};
	pair_connect(p);
	ASSERT_EQ(0, ibv_query_qp(p->client->qp, &attr, IBV_QP_ACCESS_FLAGS,
				  &init));
	EXPECT_NE(0, attr.qp_access_flags & IBV_ACCESS_REMOTE_READ);
	/* newer kernels permit more, a flush for instance */
	ok(rdma_init_qp_attr(p->client, &kernels, &mask));
	if (mask & IBV_QP_ACCESS_FLAGS)	/* not with iWARP */
		EXPECT_EQ(kernels.qp_access_flags, attr.qp_access_flags);
}

/* Of a connection that is only being made it is no error, and does nothing. */
TEST_F(connect, disconnect_pending)
{
	struct pair *p = &self->pair;
	struct rdma_cm_event *event;

	pair_listen(p);
	pair_resolve(p);
	pair_request(p);
	ok(rdma_disconnect(p->client));
	ok(rdma_disconnect(p->server));
	expect_silence(p->client_channel);
	ok(rdma_reject(p->server, NULL, 0));
	event = get_event(p->client_channel, RDMA_CM_EVENT_REJECTED);
	ok(rdma_ack_cm_event(event));
}

/* TIMEWAIT_EXIT: "The QP ... has exited its timewait state" */
TEST_F(connect, timewait_exit)
{
	struct pair *p = &self->pair;

	pair_connect(p);
	ok(rdma_disconnect(p->client));
	expect_event(p->server_channel, RDMA_CM_EVENT_DISCONNECTED);
	ok(rdma_disconnect(p->server));
	expect_event(p->client_channel, RDMA_CM_EVENT_DISCONNECTED);
	expect_event(p->client_channel, RDMA_CM_EVENT_TIMEWAIT_EXIT);
	expect_event(p->server_channel, RDMA_CM_EVENT_TIMEWAIT_EXIT);
}

/*
 * rdma_notify
 */

/* "EISCONN ... may safely be ignored" */
TEST_F(connect, notify_connected)
{
	struct pair *p = &self->pair;

	pair_connect(p);
	err(EISCONN, rdma_notify(p->server, IBV_EVENT_COMM_EST));
}

/*
 * "This routine forces the connection into an established state": the passive
 * side gets ESTABLISHED without a word from the client, which has read nothing.
 */
TEST_F(connect, notify_establishes)
{
	struct pair *p = &self->pair;

	pair_listen(p);
	pair_resolve(p);
	pair_request(p);
	pair_accept(p);
	EXPECT_FALSE(event_within(p->server_channel, NEVER_MS));
	ok(rdma_notify(p->server, IBV_EVENT_COMM_EST));
	expect_event(p->server_channel, RDMA_CM_EVENT_ESTABLISHED);
	expect_event(p->client_channel, RDMA_CM_EVENT_ESTABLISHED);
	send_message(p->server, p->client);
}

TEST_F(connect, error_notify)
{
	struct pair *p = &self->pair;

	pair_listen(p);
	err(EINVAL, rdma_notify(p->listen, IBV_EVENT_COMM_EST));
	pair_connect(p);
	err(EINVAL, rdma_notify(p->client, IBV_EVENT_QP_FATAL));
	/* no alternate path to go to; rdma_cm would go to it all the same */
	err_or_stock(EINVAL, 0, rdma_notify(p->client, IBV_EVENT_PATH_MIG));
}

/*
 * rdma_listen
 */

/* "The listen will be restricted to the locally bound source address." */
TEST_F(connect, listen_on_one_address)
{
	struct pair *p = &self->pair;
	struct sockaddr_storage other;
	struct ibv_qp_init_attr attr = qp_attr(IBV_QPT_RC);
	long end = now_ms() + SOON_MS;
	struct rdma_cm_event *event;
	bool ipv4 = variant->family == AF_INET;

	pair_listen(p);
	other = parse(ipv4 ? "10.77.0.3" : "fd77::3", port_of(sa(&p->addr)));
	ASSERT_EQ(0, system(ipv4 ? "ip addr add 10.77.0.3/24 dev d0" :
				   "ip addr add fd77::3/64 dev d0 nodad"));
	ok(rdma_create_id(p->client_channel, &p->client, NULL, RDMA_PS_TCP));
	/* The GID of the new address appears a little later. */
	while (rdma_bind_addr(p->client, sa(&other))) {
		ASSERT_LT(now_ms(), end);
		sleep_ms(20);
		ok(rdma_destroy_id(p->client));
		ok(rdma_create_id(p->client_channel, &p->client, NULL,
				  RDMA_PS_TCP));
	}
	ok(rdma_resolve_addr(p->client, NULL, sa(&other), RESOLVE_MS));
	expect_event(p->client_channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	ok(rdma_resolve_route(p->client, RESOLVE_MS));
	expect_event(p->client_channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	ok(rdma_create_qp(p->client, NULL, &attr));
	ok(rdma_connect(p->client, NULL));
	event = get_event(p->client_channel, RDMA_CM_EVENT_REJECTED);
	ok(rdma_ack_cm_event(event));
	EXPECT_FALSE(event_within(p->server_channel, 0));
	ASSERT_EQ(0, system(ipv4 ? "ip addr del 10.77.0.3/24 dev d0" :
				   "ip addr del fd77::3/64 dev d0"));
}

/* "bound to an RDMA port number only ... across all RDMA devices" */
TEST_F(connect, listen_on_wildcard)
{
	struct sockaddr_storage any = wildcard(variant->family, 0);
	struct pair *p = &self->pair;

	pair_listen(p);
	ok(rdma_destroy_id(p->listen));
	ok(rdma_create_id(p->server_channel, &p->listen, NULL, RDMA_PS_TCP));
	ok(rdma_bind_addr(p->listen, sa(&any)));
	ok(rdma_listen(p->listen, 0));
	EXPECT_EQ(NULL, p->listen->verbs);
	p->addr = my_addr(variant->family, src_port(p->listen));
	pair_connect(p);
	EXPECT_NE(NULL, p->server->verbs);
	send_message(p->client, p->server);
}

TEST_F(connect, listen_link_local)
{
	struct pair *p = &self->pair;
	struct sockaddr_storage addr;

	if (variant->family != AF_INET6)
		return;
	pair_listen(p);
	ok(rdma_destroy_id(p->listen));
	ok(rdma_create_id(p->server_channel, &p->listen, NULL, RDMA_PS_TCP));
	ASSERT_TRUE(link_local(&addr, 7471));
	ok(rdma_bind_addr(p->listen, sa(&addr)));
	ok(rdma_listen(p->listen, 1));
	p->addr = addr;
	pair_connect(p);
	EXPECT_TRUE(same_ip(sa(&addr), rdma_get_peer_addr(p->server)));
}

/* Without rdma_bind_addr, a port is picked. */
TEST_F(connect, listen_unbound)
{
	struct pair *p = &self->pair;

	pair_listen(p);
	ok(rdma_destroy_id(p->listen));
	ok(rdma_create_id(p->server_channel, &p->listen, NULL, RDMA_PS_TCP));
	ok(rdma_listen(p->listen, 1));
	EXPECT_NE(0, src_port(p->listen));
}

TEST_F(connect, error_listen)
{
	struct pair *p = &self->pair;

	pair_listen(p);
	/* again */
	err(EINVAL, rdma_listen(p->listen, 1));
	/* an active id */
	pair_resolve(p);
	err(EINVAL, rdma_listen(p->client, 1));
}

/*
 * rdma_get_request
 */

static void *connect_thread(void *arg)
{
	return (void *)(intptr_t)outcome(rdma_connect(arg, NULL));
}

TEST_F(connect, get_request)
{
	struct ibv_qp_init_attr attr = qp_attr(IBV_QPT_RC), attr2 = attr;
	struct pair *p = &self->pair;
	struct rdma_cm_id *request;
	struct rdma_addrinfo *res;
	pthread_t thread;
	void *code;

	res = my_addrinfo(variant->family, RAI_PASSIVE, RDMA_PS_TCP, 0);
	ASSERT_NE(NULL, res);
	ok(rdma_create_ep(&p->listen, res, NULL, &attr));
	rdma_freeaddrinfo(res);
	ok(rdma_listen(p->listen, 1));
	p->client = client_ep(variant->family, src_port(p->listen), NULL, &attr2);
	ASSERT_EQ(0, pthread_create(&thread, NULL, connect_thread, p->client));
	ok(rdma_get_request(p->listen, &request));

	/* "will reference event information associated with the request" */
	ASSERT_NE(NULL, request->event);
	EXPECT_EQ(RDMA_CM_EVENT_CONNECT_REQUEST, request->event->event);
	EXPECT_EQ(request, request->event->id);
	EXPECT_EQ(p->listen, request->event->listen_id);
	EXPECT_EQ(p->client->qp->qp_num, request->event->param.conn.qp_num);
	/* "will also reference an allocated QP" */
	EXPECT_NE(NULL, request->qp);
	/* synchronous, as its listener */
	EXPECT_NE(NULL, request->channel);
	EXPECT_NE(p->listen->channel, request->channel);
	ok(rdma_accept(request, NULL));
	EXPECT_EQ(RDMA_CM_EVENT_ESTABLISHED, request->event->event);
	ASSERT_EQ(0, pthread_join(thread, &code));
	EXPECT_EQ(0, (intptr_t)code);
	send_message(p->client, request);
	rdma_destroy_ep(p->client);
	rdma_destroy_ep(request);
	rdma_destroy_ep(p->listen);
	p->client = p->listen = NULL;
}

/* "only be used on listening rdma_cm_id's operating synchronously" */
TEST_F(connect, error_get_request_asynchronous)
{
	struct rdma_cm_id *id;

	pair_listen(&self->pair);
	err(EINVAL, rdma_get_request(self->pair.listen, &id));
}

TEST_F(connect, error_get_request_not_listening)
{
	struct rdma_cm_id *id;

	not_on_stock("it waits for ever");
	ok(rdma_create_id(NULL, &self->pair.client, NULL, RDMA_PS_TCP));
	err(EINVAL, rdma_get_request(self->pair.client, &id));
}

/* O_NONBLOCK on a synchronous listener's fd, as proxies and brpc do it */
TEST_F(connect, get_request_nonblocking)
{
	struct rdma_cm_id *id;

	ok(rdma_create_id(NULL, &self->pair.listen, NULL, RDMA_PS_TCP));
	struct sockaddr_storage addr = my_addr(variant->family, 0);

	ok(rdma_bind_addr(self->pair.listen, sa(&addr)));
	ok(rdma_listen(self->pair.listen, 4));
	ASSERT_EQ(0, fcntl(self->pair.listen->channel->fd, F_SETFL, O_NONBLOCK));
	err(EAGAIN, rdma_get_request(self->pair.listen, &id));
	err(EAGAIN, rdma_get_request(self->pair.listen, &id));
}

/* O_NONBLOCK on a synchronous client's fd */
TEST_F(connect, connect_nonblocking)
{
	struct ibv_qp_init_attr attr = qp_attr(IBV_QPT_RC);
	struct pair *p = &self->pair;

	pair_listen(p);
	p->client = client_ep(variant->family, port_of(sa(&p->addr)), NULL, &attr);
	ASSERT_EQ(0, fcntl(p->client->channel->fd, F_SETFL, O_NONBLOCK));
	err(EAGAIN, rdma_connect(p->client, NULL));
	p->request = get_event(p->server_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	p->server = p->request->id;
	attr = qp_attr(IBV_QPT_RC);
	ok(rdma_create_qp(p->server, NULL, &attr));
	pair_accept(p);
	expect_event(p->client->channel, RDMA_CM_EVENT_ESTABLISHED);
	expect_event(p->server_channel, RDMA_CM_EVENT_ESTABLISHED);
	EXPECT_EQ(IBV_QPS_RTS, qp_state(p->client->qp));
	send_message(p->client, p->server);
	rdma_destroy_ep(p->client);
	p->client = NULL;
}

/* id->event is not that of an earlier operation then. */
TEST_F(connect, connect_nonblocking_no_old_event)
{
	struct ibv_qp_init_attr attr = qp_attr(IBV_QPT_RC);
	struct pair *p = &self->pair;

	pair_listen(p);
	ok(rdma_create_id(NULL, &p->client, NULL, RDMA_PS_TCP));
	ok(rdma_resolve_addr(p->client, NULL, sa(&p->addr), RESOLVE_MS));
	ok(rdma_resolve_route(p->client, RESOLVE_MS));
	ok(rdma_create_qp(p->client, NULL, &attr));
	EXPECT_NE(NULL, p->client->event);
	ASSERT_EQ(0, fcntl(p->client->channel->fd, F_SETFL, O_NONBLOCK));
	err(EAGAIN, rdma_connect(p->client, NULL));
	EXPECT_EQ(NULL, p->client->event);
	rdma_destroy_ep(p->client);
	p->client = NULL;
}

/* A QP that is made when the parameters are known permits what they say. */
TEST_F(connect, late_qp_access)
{
	struct ibv_qp_init_attr attr = qp_attr(IBV_QPT_RC);
	struct ibv_qp_attr late = { .qp_state = IBV_QPS_INIT }, now = {};
	struct ibv_qp_init_attr init;
	struct pair *p = &self->pair;
	int mask = 0;

	p->no_qp = true;
	p->connect_param.qp_num = 0x1234;
	p->connect_param.responder_resources = 1;
	pair_listen(p);
	pair_resolve(p);
	pair_request(p);
	ok(rdma_init_qp_attr(p->client, &late, &mask));
	ok(rdma_create_qp(p->client, NULL, &attr));
	ASSERT_EQ(0, ibv_query_qp(p->client->qp, &now, IBV_QP_ACCESS_FLAGS, &init));
	if (mask & IBV_QP_ACCESS_FLAGS)	/* not with iWARP */
		EXPECT_EQ(late.qp_access_flags, now.qp_access_flags);
}

TEST_HARNESS_MAIN
