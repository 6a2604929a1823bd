// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Ids whose QP the program keeps to itself: rdma_establish(3),
 * rdma_init_qp_attr(3), rdma_set_local_ece(3), rdma_get_remote_ece(3) and
 * rdma_reject_ece().
 */
#include "api_utils.h"

#define REJ_ECE	35

FIXTURE(external) {
	struct objects before;
	struct pair pair;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *client_qp;
	struct ibv_qp *server_qp;
};

FIXTURE_VARIANT(external) {
	int family;
};

FIXTURE_VARIANT_ADD(external, ipv4) {
	.family = AF_INET,
};

FIXTURE_VARIANT_ADD(external, ipv6) {
	.family = AF_INET6,
};

FIXTURE_SETUP(external)
{
	struct ibv_qp_init_attr attr = qp_attr(IBV_QPT_RC);

	self->before = count_objects();
	self->pair = (struct pair){
		.family = variant->family, .ps = RDMA_PS_TCP, .no_qp = true,
	};
	pair_listen(&self->pair);
	pair_resolve(&self->pair);
	self->pd = ibv_alloc_pd(self->pair.client->verbs);
	ASSERT_NE(NULL, self->pd);
	self->cq = ibv_create_cq(self->pair.client->verbs, 16, NULL, NULL, 0);
	ASSERT_NE(NULL, self->cq);
	attr.send_cq = attr.recv_cq = self->cq;
	self->client_qp = ibv_create_qp(self->pd, &attr);
	ASSERT_NE(NULL, self->client_qp);
	self->server_qp = ibv_create_qp(self->pd, &attr);
	ASSERT_NE(NULL, self->server_qp);
	self->pair.connect_param = (struct rdma_conn_param){
		.qp_num = self->client_qp->qp_num,
		.retry_count = 7, .rnr_retry_count = 7,
		.responder_resources = 2, .initiator_depth = 2,
	};
	self->pair.accept_param = self->pair.connect_param;
	self->pair.accept_param.qp_num = self->server_qp->qp_num;
}

FIXTURE_TEARDOWN(external)
{
	if (!_metadata->passed)
		return;
	EXPECT_EQ(0, ibv_destroy_qp(self->client_qp));
	EXPECT_EQ(0, ibv_destroy_qp(self->server_qp));
	EXPECT_EQ(0, ibv_destroy_cq(self->cq));
	EXPECT_EQ(0, ibv_dealloc_pd(self->pd));
	pair_destroy(&self->pair);
	expect_no_leak(&self->before);
}

/* rdma_init_qp_attr says how, ibv_modify_qp does it. */
static int move_qp(struct rdma_cm_id *id, struct ibv_qp *qp,
		   enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask, ret;

	ret = outcome(rdma_init_qp_attr(id, &attr, &mask));
	if (ret)
		return ret;
	if (!(mask & IBV_QP_STATE) || attr.qp_state != state)
		return -1;
	return ibv_modify_qp(qp, &attr, mask);
}

static void connect_external(struct __test_metadata *_metadata,
			     FIXTURE_DATA(external) *self)
{
	struct pair *p = &self->pair;
	struct rdma_cm_event *event;

	ASSERT_EQ(0, move_qp(p->client, self->client_qp, IBV_QPS_INIT));
	pair_request(p);
	EXPECT_EQ(self->client_qp->qp_num, p->request->param.conn.qp_num);
	EXPECT_EQ(NULL, p->server->qp);
	ASSERT_EQ(0, move_qp(p->server, self->server_qp, IBV_QPS_INIT));
	ASSERT_EQ(0, move_qp(p->server, self->server_qp, IBV_QPS_RTR));
	ASSERT_EQ(0, move_qp(p->server, self->server_qp, IBV_QPS_RTS));
	pair_accept(p);

	/* "only generated on rdma_cm_id's that do not have a QP" */
	event = get_event(p->client_channel, RDMA_CM_EVENT_CONNECT_RESPONSE);
	EXPECT_EQ(0, event->status);
	EXPECT_EQ(self->server_qp->qp_num, event->param.conn.qp_num);
	ok(rdma_ack_cm_event(event));
	ASSERT_EQ(0, move_qp(p->client, self->client_qp, IBV_QPS_RTR));
	ASSERT_EQ(0, move_qp(p->client, self->client_qp, IBV_QPS_RTS));
	EXPECT_FALSE(event_within(p->server_channel, 0));
	ok(rdma_establish(p->client));
	/* "trigger a connection established event on the passive side" */
	expect_event(p->server_channel, RDMA_CM_EVENT_ESTABLISHED);
}

TEST_F(external, connects)
{
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND, .num_sge = 1 };
	struct ibv_recv_wr recv = { .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr *bad_send;
	char out[16] = "external", in[16] = "";
	struct ibv_sge sge_out, sge_in;
	struct ibv_mr *mr_out, *mr_in;
	long end = now_ms() + SOON_MS;
	struct ibv_wc wc;
	int done = 0;

	connect_external(_metadata, self);
	mr_out = ibv_reg_mr(self->pd, out, sizeof(out), 0);
	mr_in = ibv_reg_mr(self->pd, in, sizeof(in), IBV_ACCESS_LOCAL_WRITE);
	ASSERT_NE(NULL, mr_out);
	ASSERT_NE(NULL, mr_in);
	sge_out = (struct ibv_sge){ (uintptr_t)out, sizeof(out), mr_out->lkey };
	sge_in = (struct ibv_sge){ (uintptr_t)in, sizeof(in), mr_in->lkey };
	send.sg_list = &sge_out;
	recv.sg_list = &sge_in;
	ASSERT_EQ(0, ibv_post_recv(self->server_qp, &recv, &bad_recv));
	ASSERT_EQ(0, ibv_post_send(self->client_qp, &send, &bad_send));
	while (done < 2 && now_ms() < end) {
		if (ibv_poll_cq(self->cq, 1, &wc) != 1)
			continue;
		EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
		done++;
	}
	EXPECT_EQ(2, done);
	EXPECT_STREQ("external", in);
	EXPECT_EQ(0, ibv_dereg_mr(mr_out));
	EXPECT_EQ(0, ibv_dereg_mr(mr_in));
}

/* A QP in id->qp is the library's to move, also one that the program has made. */
static void adopt(struct pair *p, struct rdma_cm_id *id, struct ibv_qp *qp)
{
	id->qp = qp;
	p->connect_param.qp_num = p->accept_param.qp_num = 0;
}

static void accept_adopted(struct __test_metadata *_metadata,
			   FIXTURE_DATA(external) *self)
{
	struct pair *p = &self->pair;

	adopt(p, p->server, self->server_qp);
	pair_accept(p);
	expect_event(p->client_channel, RDMA_CM_EVENT_ESTABLISHED);
	expect_event(p->server_channel, RDMA_CM_EVENT_ESTABLISHED);
	EXPECT_EQ(IBV_QPS_RTS, qp_state(self->client_qp));
	EXPECT_EQ(IBV_QPS_RTS, qp_state(self->server_qp));
}

TEST_F(external, adopted)
{
	struct pair *p = &self->pair;

	adopt(p, p->client, self->client_qp);
	pair_request(p);
	EXPECT_EQ(self->client_qp->qp_num, p->request->param.conn.qp_num);
	accept_adopted(_metadata, self);
	ok(rdma_disconnect(p->client));
	EXPECT_EQ(IBV_QPS_ERR, qp_state(self->client_qp));
	expect_event(p->server_channel, RDMA_CM_EVENT_DISCONNECTED);
	p->client->qp = p->server->qp = NULL;
}

/* One that the program has moved to INIT goes on from there. */
TEST_F(external, adopted_in_init)
{
	struct pair *p = &self->pair;

	ASSERT_EQ(0, move_qp(p->client, self->client_qp, IBV_QPS_INIT));
	adopt(p, p->client, self->client_qp);
	pair_request(p);
	ASSERT_EQ(0, move_qp(p->server, self->server_qp, IBV_QPS_INIT));
	accept_adopted(_metadata, self);
	p->client->qp = p->server->qp = NULL;
}

TEST_F(external, disconnects)
{
	struct pair *p = &self->pair;

	connect_external(_metadata, self);
	ok(rdma_disconnect(p->client));
	expect_event(p->server_channel, RDMA_CM_EVENT_DISCONNECTED);
	ok(rdma_disconnect(p->server));
	expect_event(p->client_channel, RDMA_CM_EVENT_DISCONNECTED);
	/* The QP is none of the library's business. */
	EXPECT_EQ(IBV_QPS_RTS, qp_state(self->client_qp));
}

/* synchronous: rdma_connect returns with the response */
static void *connect_thread(void *arg)
{
	void **args = arg;

	return (void *)(intptr_t)outcome(rdma_connect(args[0], args[1]));
}

TEST_F(external, synchronous)
{
	struct pair *p = &self->pair;
	void *args[] = { p->client, &p->connect_param };
	pthread_t thread;
	void *code;

	ok(rdma_migrate_id(p->client, NULL));
	ASSERT_EQ(0, pthread_create(&thread, NULL, connect_thread, args));
	p->request = get_event(p->server_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	p->server = p->request->id;
	pair_accept(p);
	ASSERT_EQ(0, pthread_join(thread, &code));
	EXPECT_EQ(0, (intptr_t)code);
	ASSERT_NE(NULL, p->client->event);
	EXPECT_EQ(RDMA_CM_EVENT_CONNECT_RESPONSE, p->client->event->event);
	ok(rdma_establish(p->client));
	expect_event(p->server_channel, RDMA_CM_EVENT_ESTABLISHED);
}

/* A client may refuse the response. */
TEST_F(external, reject_response)
{
	struct pair *p = &self->pair;
	struct rdma_cm_event *event;

	pair_request(p);
	pair_accept(p);
	expect_event(p->client_channel, RDMA_CM_EVENT_CONNECT_RESPONSE);
	ok(rdma_reject(p->client, "no", 2));
	event = get_event(p->server_channel, RDMA_CM_EVENT_REJECTED);
	EXPECT_EQ(28, event->status);
	ok(rdma_ack_cm_event(event));
}

TEST_F(external, error_establish)
{
	struct pair *p = &self->pair;
	struct ibv_qp_init_attr attr = qp_attr(IBV_QPT_RC);

	/* nothing to establish yet */
	err(EINVAL, rdma_establish(p->client));
	err(EINVAL, rdma_establish(p->listen));
	connect_external(_metadata, self);
	err(EINVAL, rdma_establish(p->client));

	/* "should not be used on an rdma_cm_id on which a QP has been created" */
	rdma_destroy_id(p->client);
	expect_event(p->server_channel, RDMA_CM_EVENT_DISCONNECTED);
	pair_resolve(p);
	ok(rdma_create_qp(p->client, NULL, &attr));
	err(EINVAL, rdma_establish(p->client));
}

/*
 * rdma_init_qp_attr
 */

TEST_F(external, init_qp_attr)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	struct pair *p = &self->pair;
	int mask = 0;

	ok(rdma_init_qp_attr(p->client, &attr, &mask));
	EXPECT_EQ(IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX |
		  IBV_QP_PORT, mask);
	EXPECT_EQ(1, attr.port_num);
	EXPECT_EQ(0, attr.pkey_index);

	pair_request(p);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR };
	ok(rdma_init_qp_attr(p->server, &attr, &mask));
	EXPECT_EQ(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
		  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
		  IBV_QP_MIN_RNR_TIMER, mask);
	EXPECT_EQ(self->client_qp->qp_num, attr.dest_qp_num);
	EXPECT_EQ(1, attr.ah_attr.is_global);
	EXPECT_EQ(0, memcmp(&attr.ah_attr.grh.dgid,
			    &p->server->route.addr.addr.ibaddr.dgid, 16));
	EXPECT_EQ(1, attr.ah_attr.port_num);
}

TEST_F(external, error_init_qp_attr)
{
	struct sockaddr_storage any = wildcard(variant->family, 0);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	struct rdma_cm_id *id;
	int mask;

	/* not bound to a device */
	ok(rdma_create_id(self->pair.client_channel, &id, NULL, RDMA_PS_TCP));
	err(EINVAL, rdma_init_qp_attr(id, &attr, &mask));
	ok(rdma_bind_addr(id, sa(&any)));
	err(EINVAL, rdma_init_qp_attr(id, &attr, &mask));
	ok(rdma_destroy_id(id));
	/* no such state */
	attr.qp_state = 77;
	err(EINVAL, rdma_init_qp_attr(self->pair.client, &attr, &mask));
}

/*
 * Enhanced connection establishment
 */

TEST_F(external, ece)
{
	struct ibv_ece ece = { .vendor_id = 0x15b3, .options = 0x55 }, got = {};
	struct pair *p = &self->pair;

	ok(rdma_set_local_ece(p->client, &ece));
	pair_request(p);
	ok(rdma_get_remote_ece(p->server, &got));
	EXPECT_EQ(0x15b3, got.vendor_id);
	EXPECT_EQ(0x55, got.options);
	EXPECT_EQ(0, got.comp_mask);

	ece.options = 0x44;
	ok(rdma_set_local_ece(p->server, &ece));
	pair_accept(p);
	expect_event(p->client_channel, RDMA_CM_EVENT_CONNECT_RESPONSE);
	ok(rdma_get_remote_ece(p->client, &got));
	EXPECT_EQ(0x15b3, got.vendor_id);
	EXPECT_EQ(0x44, got.options);
	ok(rdma_establish(p->client));
	expect_event(p->server_channel, RDMA_CM_EVENT_ESTABLISHED);
}

TEST_F(external, reject_ece)
{
	struct ibv_ece ece = { .vendor_id = 0x15b3, .options = 0x55 };
	struct pair *p = &self->pair;
	struct rdma_cm_event *event;

	ok(rdma_set_local_ece(p->client, &ece));
	pair_request(p);
	ok(rdma_reject_ece(p->server, "ece", 3));
	event = get_event(p->client_channel, RDMA_CM_EVENT_REJECTED);
	EXPECT_EQ(REJ_ECE, event->status);
	EXPECT_EQ(0, memcmp(event->param.conn.private_data, "ece", 3));
	ok(rdma_ack_cm_event(event));
}

TEST_F(external, error_ece)
{
	struct ibv_ece ece = { .vendor_id = 0x15b3, .options = 0x55 };
	struct ibv_qp_init_attr attr = qp_attr(IBV_QPT_RC);
	struct pair *p = &self->pair;

	err(EINVAL, rdma_set_local_ece(p->client, NULL));
	err(EINVAL, rdma_set_local_ece(NULL, &ece));
	err(EINVAL, rdma_get_remote_ece(p->client, NULL));
	ece.comp_mask = 1;
	err(EINVAL, rdma_set_local_ece(p->client, &ece));
	ece.comp_mask = 0;
	ece.vendor_id = 0;
	err(EINVAL, rdma_set_local_ece(p->client, &ece));
	/* nothing came */
	pair_request(p);
	ok(rdma_get_remote_ece(p->server, &ece));
	EXPECT_EQ(0, ece.vendor_id);
	EXPECT_EQ(0, ece.options);
	/* for external QPs only */
	ece.vendor_id = 0x15b3;
	ok(rdma_create_qp(p->client, NULL, &attr));
	err(EINVAL, rdma_set_local_ece(p->client, &ece));
	err(EINVAL, rdma_get_remote_ece(p->client, &ece));
}

TEST_HARNESS_MAIN
