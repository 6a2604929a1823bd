// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Datagrams: what rdma_connect(3), rdma_accept(3), rdma_reject(3) and
 * rdma_get_cm_event(3) promise for RDMA_PS_UDP and RDMA_PS_IPOIB, and
 * rdma_post_ud_send(3).
 */
#include "api_utils.h"

#define MAX_CONNECT	180
#define MAX_ACCEPT	136

FIXTURE(ud) {
	struct objects before;
	struct pair pair;
	char data[256];
};

FIXTURE_VARIANT(ud) {
	int family;
	enum rdma_port_space ps;
};

FIXTURE_VARIANT_ADD(ud, ipv4) {
	.family = AF_INET,
	.ps = RDMA_PS_UDP,
};

FIXTURE_VARIANT_ADD(ud, ipv6) {
	.family = AF_INET6,
	.ps = RDMA_PS_UDP,
};

FIXTURE_SETUP(ud)
{
	int i;

	self->before = count_objects();
	self->pair.family = variant->family;
	self->pair.ps = variant->ps;
	for (i = 0; i < 256; i++)
		self->data[i] = i;
}

FIXTURE_TEARDOWN(ud)
{
	if (!_metadata->passed)
		return;
	pair_destroy(&self->pair);
	expect_no_leak(&self->before);
}

/* A datagram from the client to the server's QP, with what the event told. */
static void send_datagram(struct __test_metadata *_metadata,
			  struct rdma_cm_id *client, struct rdma_cm_id *server,
			  struct rdma_ud_param *to)
{
	char out[64] = "a datagram", in[128] = "";
	struct ibv_mr *mr_out, *mr_in;
	struct ibv_ah *ah;
	struct ibv_wc wc;

	mr_out = rdma_reg_msgs(client, out, sizeof(out));
	mr_in = rdma_reg_msgs(server, in, sizeof(in));
	ASSERT_NE(NULL, mr_out);
	ASSERT_NE(NULL, mr_in);
	ah = ibv_create_ah(client->pd, &to->ah_attr);
	ASSERT_NE(NULL, ah);
	ok(rdma_post_recv(server, in, in, sizeof(in), mr_in));
	ok(rdma_post_ud_send(client, out, out, sizeof(out), mr_out, 0, ah,
			     to->qp_num));
	ASSERT_EQ(1, rdma_get_send_comp(client, &wc));
	EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
	ASSERT_EQ(1, rdma_get_recv_comp(server, &wc));
	EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
	EXPECT_EQ((uintptr_t)in, wc.wr_id);
	/* A GRH comes first. */
	EXPECT_EQ(sizeof(out) + 40, wc.byte_len);
	EXPECT_STREQ("a datagram", in + 40);
	EXPECT_EQ(client->qp->qp_num, wc.src_qp);
	EXPECT_EQ(0, ibv_destroy_ah(ah));
	ok(rdma_dereg_mr(mr_out));
	ok(rdma_dereg_mr(mr_in));
}

/* "initiates a lookup of the remote QP providing the datagram service" */
TEST_F(ud, lookup)
{
	struct pair *p = &self->pair;
	struct rdma_cm_event *event;

	p->connect_param.private_data = "question";
	p->connect_param.private_data_len = 8;
	p->accept_param.private_data = "answer";
	p->accept_param.private_data_len = 6;
	pair_listen(p);
	pair_resolve(p);
	EXPECT_EQ(IBV_QPS_RTS, qp_state(p->client->qp));
	pair_request(p);
	ASSERT_LE(8, p->request->param.ud.private_data_len);
	EXPECT_EQ(0, memcmp("question", p->request->param.ud.private_data, 8));
	EXPECT_EQ(IBV_QPT_UD, p->server->qp_type);
	EXPECT_NE(NULL, p->server->verbs);
	pair_accept(p);

	event = get_event(p->client_channel, RDMA_CM_EVENT_ESTABLISHED);
	EXPECT_EQ(0, event->status);
	ASSERT_LE(6, event->param.ud.private_data_len);
	EXPECT_EQ(0, memcmp("answer", event->param.ud.private_data, 6));
	EXPECT_EQ(p->server->qp->qp_num, event->param.ud.qp_num);
	EXPECT_EQ(RDMA_UDP_QKEY, event->param.ud.qkey);
	EXPECT_EQ(1, event->param.ud.ah_attr.is_global);
	EXPECT_EQ(1, event->param.ud.ah_attr.port_num);
	send_datagram(_metadata, p->client, p->server, &event->param.ud);
	ok(rdma_ack_cm_event(event));
	/* The passive side gets no event. */
	expect_silence(p->server_channel);
}

/* A QP of the server's own, named by number. */
TEST_F(ud, external_qp)
{
	struct pair *p = &self->pair;
	struct rdma_cm_event *event;

	p->no_qp = true;
	p->connect_param.qp_num = 0x111;
	p->accept_param.qp_num = 0x222;
	pair_listen(p);
	pair_resolve(p);
	pair_request(p);
	pair_accept(p);
	event = get_event(p->client_channel, RDMA_CM_EVENT_ESTABLISHED);
	EXPECT_EQ(0x222, event->param.ud.qp_num);
	ok(rdma_ack_cm_event(event));
}

TEST_F(ud, reject)
{
	struct pair *p = &self->pair;
	struct rdma_cm_event *event;

	pair_listen(p);
	pair_resolve(p);
	pair_request(p);
	ok(rdma_reject(p->server, "no", 2));
	/* "the status result carried in the IB CM SIDR REP message" */
	event = get_event(p->client_channel, RDMA_CM_EVENT_UNREACHABLE);
	EXPECT_EQ(2, event->status);
	ok(rdma_ack_cm_event(event));
}

TEST_F(ud, refused)
{
	struct pair *p = &self->pair;
	struct rdma_cm_event *event;

	pair_listen(p);
	ok(rdma_destroy_id(p->listen));
	p->listen = NULL;
	pair_resolve(p);
	ok(rdma_connect(p->client, &p->connect_param));
	event = get_event(p->client_channel, RDMA_CM_EVENT_UNREACHABLE);
	EXPECT_NE(0, event->status);
	ok(rdma_ack_cm_event(event));
	expect_silence(p->client_channel);
}

/* "180 bytes for RDMA_PS_UDP" */
TEST_F(ud, private_data_limit)
{
	struct pair *p = &self->pair;

	pair_listen(p);
	pair_resolve(p);
	p->connect_param.private_data = self->data;
	p->connect_param.private_data_len = MAX_CONNECT + 1;
	err(EINVAL, rdma_connect(p->client, &p->connect_param));
	expect_reason(RDMA_EP_REASON_DATA_TOO_LONG);
	p->connect_param.private_data_len = MAX_CONNECT;
	pair_request(p);
	ASSERT_EQ(MAX_CONNECT, p->request->param.ud.private_data_len);
	EXPECT_EQ(0, memcmp(self->data, p->request->param.ud.private_data,
			    MAX_CONNECT));
}

/* "136 bytes for RDMA_PS_UDP" */
TEST_F(ud, accept_private_data_limit)
{
	struct pair *p = &self->pair;
	struct rdma_cm_event *event;

	pair_listen(p);
	pair_resolve(p);
	pair_request(p);
	p->accept_param.private_data = self->data;
	if (!on_stock()) {
		p->accept_param.private_data_len = MAX_ACCEPT + 1;
		err(EINVAL, rdma_accept(p->server, &p->accept_param));
		expect_reason(RDMA_EP_REASON_DATA_TOO_LONG);
	}
	p->accept_param.private_data_len = MAX_ACCEPT;
	pair_accept(p);
	event = get_event(p->client_channel, RDMA_CM_EVENT_ESTABLISHED);
	ASSERT_EQ(MAX_ACCEPT, event->param.ud.private_data_len);
	EXPECT_EQ(0, memcmp(self->data, event->param.ud.private_data,
			    MAX_ACCEPT));
	ok(rdma_ack_cm_event(event));
}

/* RDMA_PS_UDP and RDMA_PS_TCP have ports of their own. */
TEST_F(ud, ports_are_separate)
{
	struct sockaddr_storage addr = my_addr(variant->family, 7471);
	struct rdma_cm_id *tcp;

	pair_listen(&self->pair);
	addr = my_addr(variant->family, src_port(self->pair.listen));
	ok(rdma_create_id(self->pair.server_channel, &tcp, NULL, RDMA_PS_TCP));
	ok(rdma_bind_addr(tcp, sa(&addr)));
	ok(rdma_destroy_id(tcp));
}

/*
 * Synchronous
 */

static void *connect_thread(void *id)
{
	return (void *)(intptr_t)outcome(rdma_connect(id, NULL));
}

/*
 * "after accepting in synchronous mode" the request's event is acked, so that
 * listener and accepted id can be destroyed in either order
 */
static void synchronous(struct __test_metadata *_metadata, int family,
			bool listener_first)
{
	struct ibv_qp_init_attr server_attr = qp_attr(IBV_QPT_UD);
	struct ibv_qp_init_attr client_attr = server_attr;
	struct rdma_cm_id *listen, *client, *server;
	struct rdma_addrinfo *res;
	pthread_t thread;
	void *code;

	res = my_addrinfo(family, RAI_PASSIVE, RDMA_PS_UDP, 0);
	ASSERT_NE(NULL, res);
	ok(rdma_create_ep(&listen, res, NULL, &server_attr));
	rdma_freeaddrinfo(res);
	EXPECT_EQ(IBV_QPT_UD, listen->qp_type);
	ok(rdma_listen(listen, 4));
	res = my_addrinfo(family, 0, RDMA_PS_UDP, src_port(listen));
	ASSERT_NE(NULL, res);
	ok(rdma_create_ep(&client, res, NULL, &client_attr));
	rdma_freeaddrinfo(res);
	ASSERT_EQ(0, pthread_create(&thread, NULL, connect_thread, client));
	ok(rdma_get_request(listen, &server));
	ASSERT_NE(NULL, server->qp);
	ASSERT_NE(NULL, server->event);
	ok(rdma_accept(server, NULL));
	if (!on_stock())
		EXPECT_EQ(NULL, server->event);
	ASSERT_EQ(0, pthread_join(thread, &code));
	EXPECT_EQ(0, (intptr_t)code);
	ASSERT_NE(NULL, client->event);
	EXPECT_EQ(RDMA_CM_EVENT_ESTABLISHED, client->event->event);
	send_datagram(_metadata, client, server, &client->event->param.ud);
	rdma_destroy_ep(client);
	if (listener_first)
		rdma_destroy_ep(listen);
	rdma_destroy_ep(server);
	if (!listener_first)
		rdma_destroy_ep(listen);
}

TEST_F(ud, synchronous)
{
	synchronous(_metadata, variant->family, false);
}

TEST_F(ud, synchronous_listener_goes_first)
{
	not_on_stock("the listener waits for an ack");
	synchronous(_metadata, variant->family, true);
}

/* The IPoIB port space is for InfiniBand: a RoCE device will not have it. */
TEST_F(ud, ipoib)
{
	struct sockaddr_storage addr = my_addr(variant->family, 0);
	struct sockaddr_storage any = wildcard(variant->family, 0);
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id;

	ASSERT_NE(NULL, channel);
	ok(rdma_create_id(channel, &id, NULL, RDMA_PS_IPOIB));
	EXPECT_EQ(IBV_QPT_UD, id->qp_type);
	err(EINVAL, rdma_bind_addr(id, sa(&addr)));
	EXPECT_EQ(NULL, id->verbs);
	ok(rdma_bind_addr(id, sa(&any)));
	EXPECT_NE(0, src_port(id));
	ok(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

TEST_HARNESS_MAIN
