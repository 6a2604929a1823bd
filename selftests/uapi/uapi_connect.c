// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Connections: both ways to make one (a fused call per intention, or step by
 * step), what each event carries, private data to the last byte, refusals,
 * disconnecting, datagrams, multicast, options.
 *
 * Both ends are endpoints of one context. Queue pairs are made-up numbers but
 * for one test, which moves real ones with the attributes that come along.
 */
#include <infiniband/verbs.h>

#include "rdma_ep_utils.h"

/* <infiniband/marshall.h> is not installed everywhere */
void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *dst,
				struct ib_uverbs_qp_attr *src);

/* IBTA reject reasons */
#define REJ_NO_RESOURCES		3
#define REJ_INVALID_SERVICE_ID		8
#define REJ_CONSUMER_DEFINED		28
#define REJ_VENDOR_OPTION		35

#define MAX_DATA	256

FIXTURE(rc)
{
	struct test_ctx ctx;
	int fd;
	struct situation s;
	struct rdma_ep_record rec;
	uint8_t data[65536];
};

FIXTURE_VARIANT(rc)
{
	int family;
};

FIXTURE_VARIANT_ADD(rc, ipv4)
{
	.family = AF_INET,
};

FIXTURE_VARIANT_ADD(rc, ipv6)
{
	.family = AF_INET6,
};

FIXTURE_SETUP(rc)
{
	size_t i;

	ctx_open(_metadata, &self->ctx);
	self->fd = self->ctx.fd;
	self->s.family = variant->family;
	self->s.ps = PS_TCP;
	for (i = 0; i < sizeof(self->data); i++)
		self->data[i] = i * 7 + 1;
}

FIXTURE_TEARDOWN(rc)
{
	ctx_close(_metadata, &self->ctx);
}

/* The record carries these bytes, and zeros up to what the message can hold */
static void expect_data(struct __test_metadata *_metadata,
			const struct rdma_ep_record *rec,
			const uint8_t *data, size_t len, size_t field)
{
	ASSERT_TRUE(rec->flags & RDMA_EP_REC_DATA);
	EXPECT_EQ(field, rec->private_data_len);
	EXPECT_EQ(0, memcmp(rec->private_data, data, len));
	EXPECT_TRUE(is_filled(rec->private_data + len, MAX_DATA - len, 0));
}

static void expect_attr(struct __test_metadata *_metadata,
			const struct rdma_ep_record *rec, uint32_t parts)
{
	int i;

	EXPECT_EQ(parts, rec->flags & (RDMA_EP_REC_INIT | RDMA_EP_REC_RTR |
				       RDMA_EP_REC_RTS));
	for (i = 0; i < RDMA_EP_ATTRS; i++) {
		if (!(parts & (RDMA_EP_REC_INIT << i)))
			continue;
		EXPECT_EQ(IBV_QPS_INIT + i, rec->attr[i].qp_state);
		EXPECT_TRUE(rec->attr[i].qp_attr_mask & IBV_QP_STATE);
	}
	if (parts & RDMA_EP_REC_INIT) {
		EXPECT_EQ(1, rec->attr[RDMA_EP_ATTR_INIT].port_num);
	}
	if (parts & RDMA_EP_REC_RTR) {
		EXPECT_EQ(rec->qp_num, rec->attr[RDMA_EP_ATTR_RTR].dest_qp_num);
		EXPECT_EQ(1, rec->attr[RDMA_EP_ATTR_RTR].ah_attr.is_global);
		EXPECT_NE(0, rec->attr[RDMA_EP_ATTR_RTR].path_mtu);
	}
}

/*
 * Making a connection
 */

TEST_F(rc, step_by_step)
{
	struct rdma_ep_conn_param active = conn_param(self->data, 10);
	struct rdma_ep_conn_param passive = conn_param(self->data + 50, 20);
	struct rdma_ep_record *rec = &self->rec;
	struct situation *s = &self->s;
	union test_addr addr, mine;
	uint64_t listener_serial;

	active.responder_resources = 3;
	active.initiator_depth = 5;
	active.retry_count = 6;
	active.rnr_retry_count = 4;
	active.srq = 1;
	active.flow_control = 1;
	make_listener(_metadata, self->fd, s, 16);
	do_ok(try_query(self->fd, s->listener, RDMA_EP_REC_INFO, rec));
	listener_serial = rec->serial;

	do_ok(try_create(self->fd, PS_TCP, -1, 0x22, &s->active));
	addr = host_addr(variant->family, 0);
	do_ok(try_bind(self->fd, s->active, &addr, rec));
	mine = from_ep_addr(&rec->info.src);
	do_ok(try_resolve_addr(self->fd, s->active, 0, NULL, &s->addr,
			       RESOLVE_MS, NULL));
	wait_event(_metadata, self->fd, s->active, RDMA_EP_EVENT_ADDR_RESOLVED,
		   rec);
	do_ok(try_resolve_route(self->fd, s->active, 0, NULL));
	wait_event(_metadata, self->fd, s->active, RDMA_EP_EVENT_ROUTE_RESOLVED,
		   rec);
	do_ok(try_connect(self->fd, s->active, 0, &active, NULL));
	EXPECT_EQ(RDMA_EP_STATE_CONNECTING,
		  ep_state(_metadata, self->fd, s->active));

	wait_event(_metadata, self->fd, s->listener,
		   RDMA_EP_EVENT_CONNECT_REQUEST, rec);
	EXPECT_EQ(0, rec->status);
	EXPECT_EQ(0x11, rec->cookie);
	EXPECT_EQ(listener_serial, rec->serial);
	EXPECT_LT(listener_serial, rec->child_serial);
	s->passive = rec->child;
	EXPECT_NE(s->listener, s->passive);
	EXPECT_TRUE(rec->flags & RDMA_EP_REC_PARAM);
	EXPECT_FALSE(rec->flags & RDMA_EP_REC_UD);
	EXPECT_EQ(active.qp_num, rec->qp_num);
	/* what the peer starts is what we have to serve, and the reverse */
	EXPECT_EQ(active.initiator_depth, rec->responder_resources);
	EXPECT_EQ(active.responder_resources, rec->initiator_depth);
	EXPECT_EQ(active.retry_count, rec->retry_count);
	EXPECT_EQ(active.rnr_retry_count, rec->rnr_retry_count);
	EXPECT_EQ(1, rec->srq);
	expect_data(_metadata, rec, self->data, 10, RC_CONNECT_DATA);
	expect_attr(_metadata, rec, RDMA_EP_REC_INIT | RDMA_EP_REC_RTR |
		    RDMA_EP_REC_RTS);
	/* the info is that of the new endpoint: it sees the address we bound */
	ASSERT_TRUE(rec->flags & RDMA_EP_REC_INFO);
	EXPECT_EQ(RDMA_EP_STATE_REQUESTED, rec->info.state);
	EXPECT_EQ(RDMA_EP_TRANSPORT_ROCE, rec->info.transport);
	EXPECT_EQ(1, rec->info.port_num);
	addr = from_ep_addr(&rec->info.dst);
	EXPECT_EQ(variant->family, addr.sa.sa_family);
	EXPECT_EQ(addr_port(&mine), addr_port(&addr));
	addr = from_ep_addr(&rec->info.src);
	EXPECT_EQ(addr_port(&s->addr), addr_port(&addr));

	do_ok(try_accept(self->fd, s->passive, 0, &passive, NULL));
	wait_event(_metadata, self->fd, s->active,
		   RDMA_EP_EVENT_CONNECT_RESPONSE, rec);
	EXPECT_EQ(0, rec->status);
	EXPECT_EQ(0x22, rec->cookie);
	EXPECT_EQ(0, rec->child);
	EXPECT_EQ(passive.qp_num, rec->qp_num);
	expect_data(_metadata, rec, self->data + 50, 20, RC_ACCEPT_DATA);
	expect_attr(_metadata, rec, RDMA_EP_REC_INIT | RDMA_EP_REC_RTR | RDMA_EP_REC_RTS);
	EXPECT_EQ(RDMA_EP_STATE_RESPONDED,
		  ep_state(_metadata, self->fd, s->active));

	do_ok(try_establish(self->fd, s->active));
	EXPECT_EQ(RDMA_EP_STATE_CONNECTED,
		  ep_state(_metadata, self->fd, s->active));
	wait_event(_metadata, self->fd, s->passive, RDMA_EP_EVENT_ESTABLISHED,
		   rec);
	EXPECT_EQ(s->passive, rec->ep);
	EXPECT_EQ(0, rec->status);
	EXPECT_EQ(RDMA_EP_STATE_CONNECTED,
		  ep_state(_metadata, self->fd, s->passive));
	/* no event is left over at any end */
	expect_silence(_metadata, self->fd, s->listener, 100);
	expect_silence(_metadata, self->fd, s->active, 0);
	expect_silence(_metadata, self->fd, s->passive, 0);
	EXPECT_EQ(3, count_endpoints(_metadata, self->fd));
}

struct active_side {
	int fd;
	const struct situation *s;
	uint32_t ep;
	int ret;
	struct rdma_ep_record rec;
};

/* Three calls from nothing to a connection */
static void *fused_active(void *arg)
{
	struct active_side *a = arg;
	struct rdma_ep_conn_param param = conn_param(NULL, 0);

	a->ret = try_create_ep(a->fd, 0, PS_TCP, NULL, &a->s->addr, &a->rec,
			       &a->ep);
	if (!a->ret)
		a->ret = try_connect(a->fd, a->ep, RDMA_EP_F_WAIT, &param,
				     &a->rec);
	if (!a->ret)
		a->ret = try_establish(a->fd, a->ep);
	return NULL;
}

TEST_F(rc, fused)
{
	struct rdma_ep_conn_param param = conn_param(NULL, 0);
	struct active_side a = { .fd = self->fd, .s = &self->s };
	struct rdma_ep_record *rec = &self->rec;
	struct peer peer;
	pthread_t thread;

	make_listener(_metadata, self->fd, &self->s, 16);
	ASSERT_EQ(0, pthread_create(&thread, NULL, fused_active, &a));
	wait_event(_metadata, self->fd, self->s.listener,
		   RDMA_EP_EVENT_CONNECT_REQUEST, rec);
	self->s.passive = rec->child;
	do_ok(try_accept(self->fd, self->s.passive, RDMA_EP_F_WAIT, &param,
			 rec));
	EXPECT_GOOD_RECORD(rec);
	EXPECT_EVENT(ESTABLISHED, rec);
	EXPECT_EQ(self->s.passive, rec->ep);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	ASSERT_EQ(0, a.ret);
	EXPECT_GOOD_RECORD(&a.rec);
	EXPECT_EVENT(CONNECT_RESPONSE, &a.rec);
	EXPECT_EQ(a.ep, a.rec.ep);
	expect_attr(_metadata, &a.rec, RDMA_EP_REC_INIT | RDMA_EP_REC_RTR | RDMA_EP_REC_RTS);
	expect_silence(_metadata, self->fd, self->s.passive, 0);
	expect_silence(_metadata, self->fd, a.ep, 0);

	peer_start(_metadata, &peer, self->fd, self->s.passive);
	do_ok(try_disconnect(self->fd, a.ep, RDMA_EP_F_WAIT, rec));
	EXPECT_GOOD_RECORD(rec);
	EXPECT_EVENT(DISCONNECTED, rec);
	EXPECT_EQ(RDMA_EP_STATE_DISCONNECTED,
		  ep_state(_metadata, self->fd, a.ep));
	peer_stop(_metadata, &peer);
}

/* RDMA_EP_F_WAIT without a record: the caller wants to know only that it ended */
TEST_F(rc, wait_without_record)
{
	struct rdma_ep_conn_param param = conn_param(NULL, 0);

	make_listener(_metadata, self->fd, &self->s, 16);
	do_ok(try_destroy(self->fd, self->s.listener));
	self->s.active = make_active(_metadata, self->fd, &self->s);
	do_ok(try_connect(self->fd, self->s.active, RDMA_EP_F_WAIT, &param,
			  NULL));
	EXPECT_EQ(RDMA_EP_REASON_REJECTED, ep_reason.code);
	EXPECT_EQ(RDMA_EP_STATE_FAILED,
		  ep_state(_metadata, self->fd, self->s.active));
	expect_silence(_metadata, self->fd, self->s.active, 0);
}

/* Many connections to one listener, one after the other */
TEST_F(rc, several)
{
	struct situation s = self->s;
	int i;

	make_listener(_metadata, self->fd, &self->s, 16);
	for (i = 0; i < 10; i++) {
		struct rdma_ep_conn_param param = conn_param(NULL, 0);
		struct rdma_ep_conn_param answer = conn_param(NULL, 0);

		s.active = make_active(_metadata, self->fd, &self->s);
		do_ok(try_connect(self->fd, s.active, 0, &param, NULL));
		wait_event(_metadata, self->fd, self->s.listener,
			   RDMA_EP_EVENT_CONNECT_REQUEST, &self->rec);
		s.passive = self->rec.child;
		do_ok(try_accept(self->fd, s.passive, 0, &answer, NULL));
		wait_event(_metadata, self->fd, s.active,
			   RDMA_EP_EVENT_CONNECT_RESPONSE, &self->rec);
		do_ok(try_establish(self->fd, s.active));
		wait_event(_metadata, self->fd, s.passive,
			   RDMA_EP_EVENT_ESTABLISHED, &self->rec);
	}
	EXPECT_EQ(21, count_endpoints(_metadata, self->fd));
}

/* A wildcard listener: each request tells by which device it came */
TEST_F(rc, wildcard_listener)
{
	union test_addr any = any_addr(variant->family, 0);
	struct rdma_ep_conn_param param = conn_param(NULL, 0);
	union test_addr addr;

	do_ok(try_create(self->fd, PS_TCP, -1, 0, &self->s.listener));
	do_ok(try_bind(self->fd, self->s.listener, &any, &self->rec));
	do_ok(try_listen(self->fd, self->s.listener, 0, NULL));
	addr = from_ep_addr(&self->rec.info.src);
	self->s.addr = host_addr(variant->family, addr_port(&addr));
	self->s.active = make_active(_metadata, self->fd, &self->s);
	do_ok(try_connect(self->fd, self->s.active, 0, &param, NULL));
	wait_event(_metadata, self->fd, self->s.listener,
		   RDMA_EP_EVENT_CONNECT_REQUEST, &self->rec);
	EXPECT_EQ(RDMA_EP_TRANSPORT_ROCE, self->rec.info.transport);
	EXPECT_EQ(1, self->rec.info.port_num);
	EXPECT_FALSE(is_filled(self->rec.info.sgid, 16, 0));
}

/* The attributes are what a real queue pair wants */
TEST_F(rc, attributes_move_real_queue_pairs)
{
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = 1, .max_recv_wr = 1,
			 .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct rdma_ep_conn_param param[2];
	struct ibv_device **list;
	struct ibv_context *verbs = NULL;
	struct ibv_qp *qp[2];
	struct ibv_cq *cq;
	struct ibv_pd *pd;
	int i, state;

	make_listener(_metadata, self->fd, &self->s, 16);
	self->s.active = make_active(_metadata, self->fd, &self->s);
	do_ok(try_query(self->fd, self->s.active, RDMA_EP_REC_INFO,
			&self->rec));

	list = ibv_get_device_list(NULL);
	ASSERT_NE(NULL, list);
	for (i = 0; list[i] && !verbs; i++)
		if (ibv_get_device_index(list[i]) == self->rec.info.device_index)
			verbs = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	ASSERT_NE(NULL, verbs);
	pd = ibv_alloc_pd(verbs);
	cq = ibv_create_cq(verbs, 4, NULL, NULL, 0);
	ASSERT_NE(NULL, pd);
	ASSERT_NE(NULL, cq);
	init.send_cq = cq;
	init.recv_cq = cq;
	for (i = 0; i < 2; i++) {
		qp[i] = ibv_create_qp(pd, &init);
		ASSERT_NE(NULL, qp[i]);
		param[i] = conn_param(NULL, 0);
		param[i].qp_num = qp[i]->qp_num;
	}

	do_ok(try_connect(self->fd, self->s.active, 0, &param[0], NULL));
	wait_event(_metadata, self->fd, self->s.listener,
		   RDMA_EP_EVENT_CONNECT_REQUEST, &self->rec);
	self->s.passive = self->rec.child;
	for (state = 0; state < RDMA_EP_ATTRS; state++) {
		struct ibv_qp_attr attr = {};

		ibv_copy_qp_attr_from_kern(&attr, &self->rec.attr[state]);
		attr.qp_state = IBV_QPS_INIT + state;	/* it is not copied */
		EXPECT_EQ(0, ibv_modify_qp(qp[1], &attr,
					   self->rec.attr[state].qp_attr_mask))
			TH_LOG("passive, state %d: %s", state, strerror(errno));
	}
	do_ok(try_accept(self->fd, self->s.passive, 0, &param[1], NULL));

	do_ok(try_query(self->fd, self->s.active, RDMA_EP_REC_INIT,
			&self->rec));
	for (state = 0; state < RDMA_EP_ATTRS; state++) {
		struct ibv_qp_attr attr = {};

		if (state == RDMA_EP_ATTR_RTR)
			wait_event(_metadata, self->fd, self->s.active,
				   RDMA_EP_EVENT_CONNECT_RESPONSE, &self->rec);
		ibv_copy_qp_attr_from_kern(&attr, &self->rec.attr[state]);
		attr.qp_state = IBV_QPS_INIT + state;	/* it is not copied */
		EXPECT_EQ(0, ibv_modify_qp(qp[0], &attr,
					   self->rec.attr[state].qp_attr_mask))
			TH_LOG("active, state %d: %s", state, strerror(errno));
	}
	do_ok(try_establish(self->fd, self->s.active));
	wait_event(_metadata, self->fd, self->s.passive,
		   RDMA_EP_EVENT_ESTABLISHED, &self->rec);

	for (i = 0; i < 2; i++)
		EXPECT_EQ(0, ibv_destroy_qp(qp[i]));
	EXPECT_EQ(0, ibv_destroy_cq(cq));
	EXPECT_EQ(0, ibv_dealloc_pd(pd));
	EXPECT_EQ(0, ibv_close_device(verbs));
}

/*
 * Private data: to the last byte, and not one more
 */

TEST_F(rc, longest_data)
{
	struct rdma_ep_conn_param active = conn_param(self->data,
						      RC_CONNECT_DATA);
	struct rdma_ep_conn_param passive = conn_param(self->data + 100,
						       RC_ACCEPT_DATA);

	make_listener(_metadata, self->fd, &self->s, 16);
	self->s.active = make_active(_metadata, self->fd, &self->s);
	do_ok(try_connect(self->fd, self->s.active, 0, &active, NULL));
	wait_event(_metadata, self->fd, self->s.listener,
		   RDMA_EP_EVENT_CONNECT_REQUEST, &self->rec);
	expect_data(_metadata, &self->rec, self->data, RC_CONNECT_DATA,
		    RC_CONNECT_DATA);
	do_ok(try_accept(self->fd, self->rec.child, 0, &passive, NULL));
	wait_event(_metadata, self->fd, self->s.active,
		   RDMA_EP_EVENT_CONNECT_RESPONSE, &self->rec);
	expect_data(_metadata, &self->rec, self->data + 100, RC_ACCEPT_DATA,
		    RC_ACCEPT_DATA);
}

TEST_F(rc, longest_reject_data)
{
	make_request(_metadata, self->fd, &self->s);
	do_ok(try_reject(self->fd, self->s.passive, 0, self->data,
			 RC_REJECT_DATA));
	wait_event(_metadata, self->fd, self->s.active, RDMA_EP_EVENT_REJECTED,
		   &self->rec);
	expect_data(_metadata, &self->rec, self->data, RC_REJECT_DATA,
		    RC_REJECT_DATA);
}

TEST_F(rc, too_much_data)
{
	const uint16_t extra[] = { 1, 2, 64, 255, 256, 65000 };
	struct rdma_ep_conn_param param = conn_param(self->data, 0);
	size_t i;

	make_listener(_metadata, self->fd, &self->s, 16);
	self->s.active = make_active(_metadata, self->fd, &self->s);
	for (i = 0; i < ARRAY_SIZE(extra); i++) {
		param.private_data_len = RC_CONNECT_DATA + extra[i];
		do_err(EINVAL, DATA_TOO_LONG,
		       try_connect(self->fd, self->s.active, 0, &param, NULL));
		/* with the limit in the text */
		EXPECT_NE(NULL, strstr(ep_reason.text, "56"))
			TH_LOG("%s", ep_reason.text);
	}
	/* nothing was sent, and it can still be done right */
	EXPECT_EQ(RDMA_EP_STATE_ROUTE_RESOLVED,
		  ep_state(_metadata, self->fd, self->s.active));
	expect_silence(_metadata, self->fd, self->s.listener, 100);
	param.private_data_len = 0;
	do_ok(try_connect(self->fd, self->s.active, 0, &param, NULL));
	wait_event(_metadata, self->fd, self->s.listener,
		   RDMA_EP_EVENT_CONNECT_REQUEST, &self->rec);
	self->s.passive = self->rec.child;

	param = conn_param(self->data, 0);
	for (i = 0; i < ARRAY_SIZE(extra); i++) {
		param.private_data_len = RC_ACCEPT_DATA + extra[i];
		do_err(EINVAL, DATA_TOO_LONG,
		       try_accept(self->fd, self->s.passive, 0, &param, NULL));
	}
	for (i = 0; i < ARRAY_SIZE(extra); i++)
		do_err(EINVAL, DATA_TOO_LONG,
		       try_reject(self->fd, self->s.passive, 0, self->data,
				  RC_REJECT_DATA + extra[i]));
	EXPECT_EQ(RDMA_EP_STATE_REQUESTED,
		  ep_state(_metadata, self->fd, self->s.passive));
	expect_silence(_metadata, self->fd, self->s.active, 100);
	param.private_data_len = 0;
	do_ok(try_accept(self->fd, self->s.passive, 0, &param, NULL));
	wait_event(_metadata, self->fd, self->s.active,
		   RDMA_EP_EVENT_CONNECT_RESPONSE, &self->rec);
}

/* The wire has three bits for each counter: more counts as 7 */
TEST_F(rc, retry_counts)
{
	struct rdma_ep_conn_param param = conn_param(NULL, 0);

	param.retry_count = 8;
	param.rnr_retry_count = 255;
	make_listener(_metadata, self->fd, &self->s, 16);
	self->s.active = make_active(_metadata, self->fd, &self->s);
	do_ok(try_connect(self->fd, self->s.active, 0, &param, NULL));
	wait_event(_metadata, self->fd, self->s.listener,
		   RDMA_EP_EVENT_CONNECT_REQUEST, &self->rec);
	EXPECT_EQ(7, self->rec.retry_count);
	EXPECT_EQ(7, self->rec.rnr_retry_count);
}

/* Enhanced connection establishment: two numbers each way */
TEST_F(rc, ece)
{
	struct rdma_ep_conn_param active = conn_param(NULL, 0);
	struct rdma_ep_conn_param passive = conn_param(NULL, 0);

	active.ece_vendor_id = 0x15b3;
	active.ece_attr_mod = 0x12345678;
	passive.ece_vendor_id = 0x1077;
	passive.ece_attr_mod = 0x87654321;
	make_listener(_metadata, self->fd, &self->s, 16);
	self->s.active = make_active(_metadata, self->fd, &self->s);
	do_ok(try_connect(self->fd, self->s.active, 0, &active, NULL));
	wait_event(_metadata, self->fd, self->s.listener,
		   RDMA_EP_EVENT_CONNECT_REQUEST, &self->rec);
	EXPECT_EQ(0x15b3, self->rec.ece_vendor_id);
	EXPECT_EQ(0x12345678, self->rec.ece_attr_mod);
	do_ok(try_accept(self->fd, self->rec.child, 0, &passive, NULL));
	wait_event(_metadata, self->fd, self->s.active,
		   RDMA_EP_EVENT_CONNECT_RESPONSE, &self->rec);
	EXPECT_EQ(0x1077, self->rec.ece_vendor_id);
	EXPECT_EQ(0x87654321, self->rec.ece_attr_mod);
}

/*
 * Refusals: one terminal event per attempt
 */

TEST_F(rc, nobody_listens)
{
	struct rdma_ep_conn_param param = conn_param(NULL, 0);
	uint32_t ep[2];
	int wait;

	make_listener(_metadata, self->fd, &self->s, 16);
	do_ok(try_destroy(self->fd, self->s.listener));
	for (wait = 0; wait < 2; wait++) {
		ep[wait] = make_active(_metadata, self->fd, &self->s);
		do_ok(try_connect(self->fd, ep[wait], wait ? RDMA_EP_F_WAIT : 0,
				  &param, wait ? &self->rec : NULL));
		if (!wait)
			wait_event(_metadata, self->fd, ep[wait],
				   RDMA_EP_EVENT_REJECTED, &self->rec);
		EXPECT_GOOD_RECORD(&self->rec);
		EXPECT_EVENT(REJECTED, &self->rec);
		EXPECT_EQ(REJ_INVALID_SERVICE_ID, self->rec.status);
		EXPECT_EQ(RDMA_EP_REASON_REJECTED, ep_reason.code);
		EXPECT_EQ(RDMA_EP_STATE_FAILED,
			  ep_state(_metadata, self->fd, ep[wait]));
		do_err(EINVAL, STATE,
		       try_connect(self->fd, ep[wait], 0, &param, NULL));
	}
	expect_silence(_metadata, self->fd, ep[0], 500);
	expect_silence(_metadata, self->fd, ep[1], 0);
}

TEST_F(rc, reject)
{
	const struct {
		uint32_t reason;
		int status;
	} good[] = {
		{ 0, REJ_CONSUMER_DEFINED },
		{ REJ_CONSUMER_DEFINED, REJ_CONSUMER_DEFINED },
		{ REJ_VENDOR_OPTION, REJ_VENDOR_OPTION },
	};
	const uint32_t bad[] = { 1, 3, 8, 10, 27, 29, 255, 256, 284, UINT32_MAX };
	struct rdma_ep_conn_param param;
	size_t i, j;

	make_listener(_metadata, self->fd, &self->s, 16);
	for (i = 0; i < ARRAY_SIZE(good); i++) {
		self->s.active = make_active(_metadata, self->fd, &self->s);
		param = conn_param(NULL, 0);
		do_ok(try_connect(self->fd, self->s.active, 0, &param, NULL));
		wait_event(_metadata, self->fd, self->s.listener,
			   RDMA_EP_EVENT_CONNECT_REQUEST, &self->rec);
		self->s.passive = self->rec.child;
		for (j = 0; j < ARRAY_SIZE(bad); j++)
			do_err(EINVAL, VALUE,
			       try_reject(self->fd, self->s.passive, bad[j],
					  NULL, 0));
		do_ok(try_reject(self->fd, self->s.passive, good[i].reason,
				 self->data, 33));
		wait_event(_metadata, self->fd, self->s.active,
			   RDMA_EP_EVENT_REJECTED, &self->rec);
		EXPECT_EQ(good[i].status, self->rec.status);
		EXPECT_EQ(RDMA_EP_REASON_REJECTED, ep_reason.code);
		expect_data(_metadata, &self->rec, self->data, 33,
			    RC_REJECT_DATA);
		expect_silence(_metadata, self->fd, self->s.active, 100);
		/* once is enough */
		do_err(EINVAL, STATE, try_reject(self->fd, self->s.passive, 0,
						 NULL, 0));
		do_err(EINVAL, STATE, try_accept(self->fd, self->s.passive, 0,
						 &param, NULL));
		do_ok(try_destroy(self->fd, self->s.passive));
	}
}

/* An endpoint made for a request that is destroyed says no by that */
TEST_F(rc, destroy_rejects)
{
	make_request(_metadata, self->fd, &self->s);
	do_ok(try_destroy(self->fd, self->s.passive));
	wait_event(_metadata, self->fd, self->s.active, RDMA_EP_EVENT_REJECTED,
		   &self->rec);
	expect_silence(_metadata, self->fd, self->s.active, 300);
}

TEST_F(rc, destroyed_listener_rejects_what_was_not_read)
{
	struct rdma_ep_destroy cmd = { .hdr = EP_HDR(cmd, 0) };
	struct rdma_ep_conn_param param;
	uint32_t ep[3];
	size_t i;

	make_listener(_metadata, self->fd, &self->s, 16);
	for (i = 0; i < ARRAY_SIZE(ep); i++) {
		ep[i] = make_active(_metadata, self->fd, &self->s);
		param = conn_param(NULL, 0);
		do_ok(try_connect(self->fd, ep[i], 0, &param, NULL));
	}
	/* until all have come */
	do {
		usleep(10000);
		do_ok(try_query(self->fd, self->s.listener, RDMA_EP_REC_INFO,
				&self->rec));
	} while (self->rec.info.requests < ARRAY_SIZE(ep));
	EXPECT_EQ(7, count_endpoints(_metadata, self->fd));

	cmd.ep = self->s.listener;
	do_ok(ep_ioctl(self->fd, RDMA_EP_DESTROY, &cmd));
	EXPECT_EQ(ARRAY_SIZE(ep), cmd.out_discarded);
	for (i = 0; i < ARRAY_SIZE(ep); i++)
		wait_event(_metadata, self->fd, ep[i], RDMA_EP_EVENT_REJECTED,
			   &self->rec);
	EXPECT_EQ(3, count_endpoints(_metadata, self->fd));
}

/* The incumbent says nothing here, and the peer retries for a minute */
TEST_F(rc, backlog_overflow)
{
	const uint32_t backlog = 2;
	struct rdma_ep_conn_param param;
	uint32_t ep[5], rejected = 0;
	uint64_t start;
	size_t i;

	make_listener(_metadata, self->fd, &self->s, backlog);
	for (i = 0; i < ARRAY_SIZE(ep); i++) {
		ep[i] = make_active(_metadata, self->fd, &self->s);
		param = conn_param(NULL, 0);
		do_ok(try_connect(self->fd, ep[i], 0, &param, NULL));
	}
	start = now_ms();
	while (rejected < ARRAY_SIZE(ep) - backlog) {
		ASSERT_LT(now_ms(), start + 60000);
		usleep(10000);
		for (i = 0; i < ARRAY_SIZE(ep); i++) {
			if (try_wait(self->fd, ep[i], RDMA_EP_WAIT_NOWAIT,
				     &self->rec))
				continue;
			EXPECT_EVENT(REJECTED, &self->rec);
			EXPECT_EQ(REJ_NO_RESOURCES, self->rec.status);
			rejected++;
		}
	}
	/* at once, not with the first retry after 4 seconds */
	EXPECT_GT(4000 * slow(), now_ms() - start);

	do_ok(try_query(self->fd, self->s.listener, RDMA_EP_REC_INFO,
			&self->rec));
	EXPECT_EQ(backlog, self->rec.info.backlog);
	EXPECT_EQ(backlog, self->rec.info.requests);
	EXPECT_EQ(ARRAY_SIZE(ep) - backlog, self->rec.info.overflows);

	/* reading one makes room for one */
	wait_event(_metadata, self->fd, self->s.listener,
		   RDMA_EP_EVENT_CONNECT_REQUEST, &self->rec);
	ep[0] = make_active(_metadata, self->fd, &self->s);
	param = conn_param(NULL, 0);
	do_ok(try_connect(self->fd, ep[0], 0, &param, NULL));
	do {
		usleep(10000);
		do_ok(try_query(self->fd, self->s.listener, RDMA_EP_REC_INFO,
				&self->rec));
	} while (self->rec.info.requests < backlog);
	EXPECT_EQ(ARRAY_SIZE(ep) - backlog, self->rec.info.overflows);
	expect_silence(_metadata, self->fd, ep[0], 0);
}

/* Nobody is at that address: the deadline of the caller holds */
TEST_F(rc, unreachable)
{
	const uint32_t timeout_ms = 500;
	struct rdma_ep_conn_param param = conn_param(NULL, 0);
	uint64_t start;

	self->s.addr = nobody_addr(variant->family, 4711);
	self->s.active = make_active(_metadata, self->fd, &self->s);
	do_ok(try_set_option(self->fd, self->s.active,
			     RDMA_EP_OPT_CONNECT_TIMEOUT, &timeout_ms,
			     sizeof(timeout_ms)));
	start = now_ms();
	do_ok(try_connect(self->fd, self->s.active, RDMA_EP_F_WAIT, &param,
			  &self->rec));
	/* on an emulated machine jiffies lag behind */
	EXPECT_LE(timeout_ms - 50, now_ms() - start);
	EXPECT_GT(20000 * slow(), now_ms() - start);
	EXPECT_GOOD_RECORD(&self->rec);
	EXPECT_EVENT(UNREACHABLE, &self->rec);
	EXPECT_EQ(-ETIMEDOUT, self->rec.status);
	EXPECT_EQ(RDMA_EP_REASON_TIMEOUT, ep_reason.code);
	EXPECT_EQ(RDMA_EP_STATE_FAILED,
		  ep_state(_metadata, self->fd, self->s.active));
	expect_silence(_metadata, self->fd, self->s.active, 300);
}

/* A deadline that is met changes nothing */
TEST_F(rc, connect_in_time)
{
	const uint32_t timeout_ms = 4000 * slow();
	struct rdma_ep_conn_param param = conn_param(NULL, 0);
	struct rdma_ep_conn_param answer = conn_param(NULL, 0);
	uint64_t end;

	make_listener(_metadata, self->fd, &self->s, 16);
	self->s.active = make_active(_metadata, self->fd, &self->s);
	do_ok(try_set_option(self->fd, self->s.active,
			     RDMA_EP_OPT_CONNECT_TIMEOUT, &timeout_ms,
			     sizeof(timeout_ms)));
	end = now_ms() + timeout_ms + 300;
	do_ok(try_connect(self->fd, self->s.active, 0, &param, NULL));
	wait_event(_metadata, self->fd, self->s.listener,
		   RDMA_EP_EVENT_CONNECT_REQUEST, &self->rec);
	self->s.passive = self->rec.child;
	do_ok(try_accept(self->fd, self->s.passive, 0, &answer, NULL));
	wait_event(_metadata, self->fd, self->s.active,
		   RDMA_EP_EVENT_CONNECT_RESPONSE, &self->rec);
	do_ok(try_establish(self->fd, self->s.active));
	expect_silence(_metadata, self->fd, self->s.active,
		       end > now_ms() ? end - now_ms() : 0);
	EXPECT_EQ(RDMA_EP_STATE_CONNECTED,
		  ep_state(_metadata, self->fd, self->s.active));
}

/* A peer that never ends what it has begun: an accept has a deadline as well */
TEST_F(rc, accept_unanswered)
{
	const uint32_t timeout_ms = 500;
	struct rdma_ep_conn_param param = conn_param(NULL, 0);
	struct rdma_ep_conn_param answer = conn_param(NULL, 0);
	uint64_t start;

	make_listener(_metadata, self->fd, &self->s, 16);
	self->s.active = make_active(_metadata, self->fd, &self->s);
	do_ok(try_connect(self->fd, self->s.active, 0, &param, NULL));
	wait_event(_metadata, self->fd, self->s.listener,
		   RDMA_EP_EVENT_CONNECT_REQUEST, &self->rec);
	self->s.passive = self->rec.child;
	do_ok(try_set_option(self->fd, self->s.passive,
			     RDMA_EP_OPT_CONNECT_TIMEOUT, &timeout_ms,
			     sizeof(timeout_ms)));
	start = now_ms();
	do_ok(try_accept(self->fd, self->s.passive, RDMA_EP_F_WAIT, &answer,
			 &self->rec));
	/* on an emulated machine jiffies lag behind */
	EXPECT_LE(timeout_ms - 50, now_ms() - start);
	EXPECT_GT(20000 * slow(), now_ms() - start);
	EXPECT_GOOD_RECORD(&self->rec);
	EXPECT_EVENT(UNREACHABLE, &self->rec);
	EXPECT_EQ(-ETIMEDOUT, self->rec.status);
	EXPECT_EQ(RDMA_EP_STATE_FAILED,
		  ep_state(_metadata, self->fd, self->s.passive));

	/* and the peer hears of it */
	wait_event(_metadata, self->fd, self->s.active,
		   RDMA_EP_EVENT_CONNECT_RESPONSE, &self->rec);
	wait_event(_metadata, self->fd, self->s.active, RDMA_EP_EVENT_REJECTED,
		   &self->rec);
	expect_silence(_metadata, self->fd, self->s.passive, 300);
}

/* Destroying the active end while it connects does not wait for the peer */
TEST_F(rc, destroy_while_connecting)
{
	struct rdma_ep_conn_param param = conn_param(NULL, 0);
	uint64_t start;

	self->s.addr = nobody_addr(variant->family, 4711);
	self->s.active = make_active(_metadata, self->fd, &self->s);
	do_ok(try_connect(self->fd, self->s.active, 0, &param, NULL));
	start = now_ms();
	do_ok(try_destroy(self->fd, self->s.active));
	EXPECT_GT(10000 * slow(), now_ms() - start);
}

/*
 * Calls out of turn
 */

TEST_F(rc, wrong_state)
{
	struct rdma_ep_conn_param param = conn_param(NULL, 0);
	struct situation *s = &self->s;
	int ret;

	make_request(_metadata, self->fd, s);
	/* while connecting */
	ret = try_connect(self->fd, s->active, 0, &param, NULL);
	EXPECT_TRUE(ret == -EINVAL || ret == -EBUSY)
		TH_LOG("%s", strerror(-ret));
	EXPECT_EQ(-EINVAL, try_establish(self->fd, s->active));
	ret = try_resolve_addr(self->fd, s->active, 0, NULL, &s->addr,
			       RESOLVE_MS, NULL);
	EXPECT_TRUE(ret == -EINVAL || ret == -EBUSY);
	EXPECT_EQ(RDMA_EP_STATE_CONNECTING,
		  ep_state(_metadata, self->fd, s->active));
	/* a listener does not connect */
	do_err(EINVAL, STATE, try_accept(self->fd, s->listener, 0, &param, NULL));
	do_err(EINVAL, STATE, try_connect(self->fd, s->listener, 0, &param, NULL));
	do_err(EINVAL, STATE, try_reject(self->fd, s->listener, 0, NULL, 0));
	do_err(EINVAL, STATE, try_disconnect(self->fd, s->listener, 0, NULL));
	do_err(EINVAL, STATE, try_establish(self->fd, s->listener));
	/* nor does what was made for a request do anything but answer */
	do_err(EINVAL, STATE, try_establish(self->fd, s->passive));
	do_err(EINVAL, STATE, try_connect(self->fd, s->passive, 0, &param, NULL));
	do_err(EINVAL, STATE, try_bind(self->fd, s->passive, &s->addr, NULL));
	do_err(EINVAL, STATE, try_listen(self->fd, s->passive, 0, NULL));
	EXPECT_EQ(RDMA_EP_STATE_REQUESTED,
		  ep_state(_metadata, self->fd, s->passive));

	param = conn_param(NULL, 0);
	do_ok(try_accept(self->fd, s->passive, 0, &param, NULL));
	ret = try_accept(self->fd, s->passive, 0, &param, NULL);
	EXPECT_TRUE(ret == -EINVAL || ret == -EBUSY);
	EXPECT_EQ(-EINVAL, try_reject(self->fd, s->passive, 0, NULL, 0));
	wait_event(_metadata, self->fd, s->active,
		   RDMA_EP_EVENT_CONNECT_RESPONSE, &self->rec);
	do_ok(try_establish(self->fd, s->active));
	do_err(EINVAL, STATE, try_establish(self->fd, s->active));
	wait_event(_metadata, self->fd, s->passive, RDMA_EP_EVENT_ESTABLISHED,
		   &self->rec);
	do_err(EINVAL, STATE, try_establish(self->fd, s->passive));
	do_err(EINVAL, STATE, try_accept(self->fd, s->passive, 0, &param, NULL));
	do_err(EINVAL, STATE, try_connect(self->fd, s->active, 0, &param, NULL));
	EXPECT_EQ(RDMA_EP_STATE_CONNECTED,
		  ep_state(_metadata, self->fd, s->passive));
	EXPECT_EQ(RDMA_EP_STATE_CONNECTED,
		  ep_state(_metadata, self->fd, s->active));
}

/* The active end may refuse what the peer has responded */
TEST_F(rc, reject_a_response)
{
	make_responded(_metadata, self->fd, &self->s);
	do_ok(try_reject(self->fd, self->s.active, 0, self->data, 5));
	wait_event(_metadata, self->fd, self->s.passive,
		   RDMA_EP_EVENT_REJECTED, &self->rec);
	expect_data(_metadata, &self->rec, self->data, 5, RC_REJECT_DATA);
	expect_silence(_metadata, self->fd, self->s.passive, 100);
}

/*
 * Disconnecting
 */

TEST_F(rc, disconnect)
{
	uint32_t first[2], i;

	for (i = 0; i < 2; i++) {
		uint32_t other;

		make_connected(_metadata, self->fd, &self->s);
		first[i] = i ? self->s.passive : self->s.active;
		other = i ? self->s.active : self->s.passive;

		do_ok(try_disconnect(self->fd, first[i], 0, NULL));
		wait_event(_metadata, self->fd, other,
			   RDMA_EP_EVENT_DISCONNECTED, &self->rec);
		EXPECT_EQ(RDMA_EP_STATE_DISCONNECTED,
			  ep_state(_metadata, self->fd, other));
		/* the peer went first: not an error, and again not */
		do_ok(try_disconnect(self->fd, other, 0, NULL));
		do_ok(try_disconnect(self->fd, other, 0, NULL));
		wait_event(_metadata, self->fd, first[i],
			   RDMA_EP_EVENT_DISCONNECTED, &self->rec);
		do_ok(try_disconnect(self->fd, first[i], 0, NULL));
		do_ok(try_disconnect(self->fd, first[i], RDMA_EP_F_WAIT,
				     &self->rec));
		do_ok(try_destroy(self->fd, self->s.listener));
	}
}

/* Who waits for the end of what is only being made would wait for something else */
TEST_F(rc, disconnect_of_an_attempt)
{
	struct rdma_ep_conn_param param = conn_param(NULL, 0);
	struct situation *s = &self->s;

	make_request(_metadata, self->fd, s);
	do_ok(try_accept(self->fd, s->passive, 0, &param, NULL));
	do_err(EINVAL, STATE, try_disconnect(self->fd, s->passive,
					     RDMA_EP_F_WAIT, &self->rec));
	wait_event(_metadata, self->fd, s->active,
		   RDMA_EP_EVENT_CONNECT_RESPONSE, &self->rec);
	do_err(EINVAL, STATE, try_disconnect(self->fd, s->active,
					     RDMA_EP_F_WAIT, &self->rec));
	/* and nothing has come of it */
	do_ok(try_establish(self->fd, s->active));
	wait_event(_metadata, self->fd, s->passive, RDMA_EP_EVENT_ESTABLISHED,
		   &self->rec);
	do_ok(try_disconnect(self->fd, s->active, 0, NULL));
}

/* Both at once: each end gets one DISCONNECTED */
TEST_F(rc, disconnect_crossing)
{
	uint32_t end[2];
	int i;

	make_connected(_metadata, self->fd, &self->s);
	end[0] = self->s.active;
	end[1] = self->s.passive;
	for (i = 0; i < 2; i++)
		do_ok(try_disconnect(self->fd, end[i], 0, NULL));
	for (i = 0; i < 2; i++)
		wait_event(_metadata, self->fd, end[i],
			   RDMA_EP_EVENT_DISCONNECTED, &self->rec);
	/* what may follow is the end of timewait, nothing else */
	usleep(300000);
	for (i = 0; i < 2; i++)
		while (!try_wait(self->fd, end[i], RDMA_EP_WAIT_NOWAIT,
				 &self->rec))
			EXPECT_EVENT(TIMEWAIT_EXIT, &self->rec);
}

/* The end of timewait is reported, once, to both ends */
TEST_F(rc, timewait_exit)
{
	make_connected(_metadata, self->fd, &self->s);
	do_ok(try_disconnect(self->fd, self->s.active, 0, NULL));
	wait_event(_metadata, self->fd, self->s.passive,
		   RDMA_EP_EVENT_DISCONNECTED, &self->rec);
	do_ok(try_disconnect(self->fd, self->s.passive, 0, NULL));
	wait_event(_metadata, self->fd, self->s.active,
		   RDMA_EP_EVENT_DISCONNECTED, &self->rec);
	wait_event(_metadata, self->fd, self->s.active,
		   RDMA_EP_EVENT_TIMEWAIT_EXIT, &self->rec);
	wait_event(_metadata, self->fd, self->s.passive,
		   RDMA_EP_EVENT_TIMEWAIT_EXIT, &self->rec);
	expect_silence(_metadata, self->fd, self->s.active, 100);
}

/* Destroying one end is a disconnect for the other */
TEST_F(rc, destroy_disconnects)
{
	make_connected(_metadata, self->fd, &self->s);
	do_ok(try_destroy(self->fd, self->s.active));
	wait_event(_metadata, self->fd, self->s.passive,
		   RDMA_EP_EVENT_DISCONNECTED, &self->rec);
	do_ok(try_disconnect(self->fd, self->s.passive, 0, NULL));
}

TEST_F(rc, notify)
{
	struct rdma_ep_conn_param param = conn_param(NULL, 0);

	make_request(_metadata, self->fd, &self->s);
	do_ok(try_accept(self->fd, self->s.passive, 0, &param, NULL));
	/* the first message came before the peer said that it is ready */
	do_ok(try_notify(self->fd, self->s.passive, IBV_EVENT_COMM_EST));
	wait_event(_metadata, self->fd, self->s.passive,
		   RDMA_EP_EVENT_ESTABLISHED, &self->rec);
	EXPECT_EQ(RDMA_EP_STATE_CONNECTED,
		  ep_state(_metadata, self->fd, self->s.passive));
	/* there is no alternate path that could be in use */
	EXPECT_EQ(-EINVAL, try_notify(self->fd, self->s.passive,
				      IBV_EVENT_PATH_MIG));
	EXPECT_GT(0, try_notify(self->fd, self->s.passive,
				IBV_EVENT_QP_FATAL));
	EXPECT_GT(0, try_notify(self->fd, self->s.passive, 4242));
	EXPECT_EQ(RDMA_EP_STATE_CONNECTED,
		  ep_state(_metadata, self->fd, self->s.passive));
}

/*
 * ib_cm finishes this in a work item, and does not like what comes before
 * that: an endpoint that goes at once would take more than a minute to go.
 */
TEST_F(rc, notify_then_go)
{
	int i;

	make_listener(_metadata, self->fd, &self->s, 16);
	for (i = 0; i < 100; i++) {
		struct rdma_ep_conn_param param = conn_param(NULL, 0);
		uint64_t start;

		self->s.active = make_active(_metadata, self->fd, &self->s);
		do_ok(try_connect(self->fd, self->s.active, 0, &param, NULL));
		wait_event(_metadata, self->fd, self->s.listener,
			   RDMA_EP_EVENT_CONNECT_REQUEST, &self->rec);
		self->s.passive = self->rec.child;
		param = conn_param(NULL, 0);
		do_ok(try_accept(self->fd, self->s.passive, 0, &param, NULL));
		do_ok(try_notify(self->fd, self->s.passive,
				 IBV_EVENT_COMM_EST));
		start = now_ms();
		if (i % 2)
			do_ok(try_disconnect(self->fd, self->s.passive, 0,
					     NULL));
		do_ok(try_destroy(self->fd, self->s.passive));
		ASSERT_GT(5000 * slow(), now_ms() - start);
		do_ok(try_destroy(self->fd, self->s.active));
	}
}

/*
 * Options
 */

TEST_F(rc, options)
{
	const struct {
		uint32_t name;
		uint32_t len;
		uint32_t good;
		uint32_t bad;		/* 0: every value is good */
		const char *shown;	/* in fdinfo */
	} opts[] = {
		{ RDMA_EP_OPT_TOS, 1, 0x48, 0, " tos=72" },
		{ RDMA_EP_OPT_REUSEADDR, 4, 1, 0, " reuseaddr=1" },
		{ RDMA_EP_OPT_AFONLY, 4, 1, 0, " afonly=1" },
		{ RDMA_EP_OPT_ACK_TIMEOUT, 1, 17, 32, " ack_timeout=17" },
		{ RDMA_EP_OPT_MIN_RNR_TIMER, 1, 9, 32, " min_rnr_timer=9" },
		{ RDMA_EP_OPT_CONNECT_TIMEOUT, 4, 123456, 0, " connect_timeout_ms=123456" },
		{ RDMA_EP_OPT_DEVICE, 4, 7, 0, " only_device=7" },
	};
	char path[64];
	uint32_t ep, unknown;
	uint64_t val;
	size_t i;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", self->fd);
	do_ok(try_create(self->fd, PS_TCP, -1, 0, &ep));
	for (i = 0; i < ARRAY_SIZE(opts); i++) {
		uint32_t len;

		for (len = 0; len <= 8; len++) {
			if (len == opts[i].len)
				continue;
			val = 0;
			EXPECT_EQ(-EINVAL, try_set_option(self->fd, ep,
							  opts[i].name, &val,
							  len));
			EXPECT_EQ(-EINVAL, try_get_option(self->fd, ep,
							  opts[i].name, &val,
							  len));
		}
		if (opts[i].bad) {
			val = opts[i].bad;
			do_err(EINVAL, VALUE,
			       try_set_option(self->fd, ep, opts[i].name, &val,
					      opts[i].len));
		}
		EXPECT_EQ(0, file_has(path, opts[i].shown));
		val = opts[i].good;
		do_ok(try_set_option(self->fd, ep, opts[i].name, &val,
				     opts[i].len));
		val = 0xa5a5a5a5a5a5a5a5;
		do_ok(try_get_option(self->fd, ep, opts[i].name, &val,
				     opts[i].len));
		EXPECT_EQ(0, memcmp(&val, &opts[i].good, opts[i].len));
		/* nothing beyond the value is written */
		EXPECT_TRUE(is_filled((char *)&val + opts[i].len,
				      sizeof(val) - opts[i].len, 0xa5));
		EXPECT_EQ(1, file_has(path, opts[i].shown));
	}
	for (unknown = RDMA_EP_OPT_DEVICE + 1; unknown;
	     unknown *= 2) {
		do_err(EOPNOTSUPP, STRUCT,
		       try_set_option(self->fd, ep, unknown, &val, 4));
		do_err(EOPNOTSUPP, STRUCT,
		       try_get_option(self->fd, ep, unknown, &val, 4));
	}
	/* not an array of path records */
	EXPECT_EQ(-EINVAL, try_set_option(self->fd, ep, RDMA_EP_OPT_IB_PATH,
					  &val, 7));
}

/* What options do to the attributes of the connection */
TEST_F(rc, options_take_effect)
{
	const uint8_t tos = 0x60, ack = 15, rnr = 11;
	struct rdma_ep_conn_param param = conn_param(NULL, 0);
	struct rdma_ep_conn_param answer = conn_param(NULL, 0);

	make_listener(_metadata, self->fd, &self->s, 16);
	do_ok(try_create(self->fd, PS_TCP, -1, 0, &self->s.active));
	do_ok(try_set_option(self->fd, self->s.active, RDMA_EP_OPT_TOS, &tos, 1));
	do_ok(try_set_option(self->fd, self->s.active,
			     RDMA_EP_OPT_ACK_TIMEOUT, &ack, 1));
	do_ok(try_set_option(self->fd, self->s.active,
			     RDMA_EP_OPT_MIN_RNR_TIMER, &rnr, 1));
	do_ok(try_resolve_addr(self->fd, self->s.active, RDMA_EP_F_WAIT |
			       RDMA_EP_RESOLVE_THEN_ROUTE, NULL,
			       &self->s.addr, RESOLVE_MS, &self->rec));
	ASSERT_EVENT(ROUTE_RESOLVED, &self->rec);
	EXPECT_EQ(tos, self->rec.info.path[0].traffic_class);
	do_ok(try_connect(self->fd, self->s.active, 0, &param, NULL));
	wait_event(_metadata, self->fd, self->s.listener,
		   RDMA_EP_EVENT_CONNECT_REQUEST, &self->rec);
	do_ok(try_accept(self->fd, self->rec.child, 0, &answer, NULL));
	wait_event(_metadata, self->fd, self->s.active,
		   RDMA_EP_EVENT_CONNECT_RESPONSE, &self->rec);
	EXPECT_EQ(rnr, self->rec.attr[RDMA_EP_ATTR_RTR].min_rnr_timer);
	EXPECT_EQ(ack, self->rec.attr[RDMA_EP_ATTR_RTS].timeout);
}

TEST_F(rc, option_states)
{
	const uint32_t on = 1, other = 12345, any = RDMA_EP_ANY_DEVICE;
	uint8_t node_type = 1;
	struct rdma_ep_get_info info;
	uint32_t ud;

	make_listener(_metadata, self->fd, &self->s, 16);
	EXPECT_EQ(-EINVAL, try_set_option(self->fd, self->s.listener,
					  RDMA_EP_OPT_AFONLY, &on, 4));
	EXPECT_EQ(-EINVAL, try_set_option(self->fd, self->s.listener,
					  RDMA_EP_OPT_REUSEADDR, &on, 4));
	/* it has a device already */
	EXPECT_EQ(-EINVAL, try_set_option(self->fd, self->s.listener,
					  RDMA_EP_OPT_DEVICE, &other, 4));
	do_ok(try_set_option(self->fd, self->s.listener, RDMA_EP_OPT_DEVICE,
			     &any, 4));
	/* timers belong to connected queue pairs */
	do_ok(try_create(self->fd, PS_UDP, -1, 0, &ud));
	EXPECT_EQ(-EINVAL, try_set_option(self->fd, ud,
					  RDMA_EP_OPT_ACK_TIMEOUT, &node_type,
					  1));
	EXPECT_EQ(-EINVAL, try_set_option(self->fd, ud,
					  RDMA_EP_OPT_MIN_RNR_TIMER,
					  &node_type, 1));

	do_ok(try_get_info(self->fd, &info));
	if (!(info.out_features & RDMA_EP_FEATURE_NODE_TYPE)) {
		do_err(EOPNOTSUPP, KERNEL,
		       try_set_option(self->fd, ud, RDMA_EP_OPT_NODE_TYPE,
				      &node_type, 1));
	} else {
		do_ok(try_set_option(self->fd, ud, RDMA_EP_OPT_NODE_TYPE,
				     &node_type, 1));
	}
}

/*
 * Events of one's own
 */

TEST_F(rc, user_events)
{
	struct rdma_ep_write_event cmd = { .hdr = EP_HDR(cmd, 0) };
	uint32_t ep, type;
	int i, ret;

	do_ok(try_create(self->fd, PS_TCP, -1, 77, &ep));
	cmd.ep = ep;
	for (type = 0; type < 300; type++) {
		if (type == RDMA_EP_EVENT_USER)
			continue;
		cmd.event = type;
		ret = ep_ioctl(self->fd, RDMA_EP_WRITE_EVENT, &cmd);
		EXPECT_TRUE(ret == -EINVAL || ret == -EOPNOTSUPP);
	}
	/* in the order in which they were written */
	for (i = 0; i < 100; i++)
		do_ok(try_write_event(self->fd, ep, i - 50, i));
	for (i = 0; i < 100; i++) {
		wait_event(_metadata, self->fd, ep, RDMA_EP_EVENT_USER,
			   &self->rec);
		EXPECT_EQ(i - 50, self->rec.status);
		/* the writer knows what the status means, the module does not */
		EXPECT_EQ(RDMA_EP_REASON_NONE, ep_reason.code);
		EXPECT_EQ(i, self->rec.arg);
	}
	/* there is a limit, and reading makes room */
	for (i = 0; i < 100000; i++) {
		ret = try_write_event(self->fd, ep, 0, i);
		if (ret)
			break;
	}
	EXPECT_EQ(-ENOSPC, ret);
	EXPECT_EQ(RDMA_EP_REASON_LIMIT, ep_reason.code);
	wait_event(_metadata, self->fd, ep, RDMA_EP_EVENT_USER, &self->rec);
	do_ok(try_write_event(self->fd, ep, 0, 0));
	EXPECT_EQ(-ENOSPC, try_write_event(self->fd, ep, 0, 0));
}

/*
 * Datagrams
 */

FIXTURE(ud)
{
	struct test_ctx ctx;
	int fd;
	struct situation s;
	struct rdma_ep_record rec;
	uint8_t data[512];
};

FIXTURE_VARIANT(ud)
{
	int family;
	uint32_t ps;
	const char *group[2];
	bool no_multicast;	/* the kernel's rdma_cm has no MLD on RoCE */
};

FIXTURE_VARIANT_ADD(ud, ipv4)
{
	.family = AF_INET,
	.ps = PS_UDP,
	.group = { "239.1.1.1", "239.1.1.2" },
};

FIXTURE_VARIANT_ADD(ud, ipv6)
{
	.family = AF_INET6,
	.ps = PS_UDP,
	.group = { "ff15::1:1", "ff15::1:2" },
	.no_multicast = true,
};

FIXTURE_SETUP(ud)
{
	size_t i;

	ctx_open(_metadata, &self->ctx);
	self->fd = self->ctx.fd;
	self->s.family = variant->family;
	self->s.ps = variant->ps;
	for (i = 0; i < sizeof(self->data); i++)
		self->data[i] = i * 5 + 2;
}

FIXTURE_TEARDOWN(ud)
{
	ctx_close(_metadata, &self->ctx);
}

TEST_F(ud, connect)
{
	struct rdma_ep_conn_param active = conn_param(self->data,
						      UD_CONNECT_DATA);
	struct rdma_ep_conn_param passive = conn_param(self->data + 200,
						       UD_ACCEPT_DATA);
	struct rdma_ep_record *rec = &self->rec;

	make_listener(_metadata, self->fd, &self->s, 16);
	do_ok(try_query(self->fd, self->s.listener, RDMA_EP_REC_INFO, rec));
	EXPECT_EQ(UD_CONNECT_DATA, rec->info.max_connect_data);
	EXPECT_EQ(UD_ACCEPT_DATA, rec->info.max_accept_data);
	EXPECT_EQ(UD_ACCEPT_DATA, rec->info.max_reject_data);
	self->s.active = make_active(_metadata, self->fd, &self->s);
	do_ok(try_connect(self->fd, self->s.active, 0, &active, NULL));

	wait_event(_metadata, self->fd, self->s.listener,
		   RDMA_EP_EVENT_CONNECT_REQUEST, rec);
	self->s.passive = rec->child;
	EXPECT_EQ(RDMA_EP_STATE_REQUESTED, rec->info.state);
	expect_data(_metadata, rec, self->data, UD_CONNECT_DATA,
		    UD_CONNECT_DATA);
	/* accepting a datagram request has no completion to wait for */
	do_ok(try_accept(self->fd, self->s.passive, RDMA_EP_F_WAIT, &passive,
			 rec));

	wait_event(_metadata, self->fd, self->s.active,
		   RDMA_EP_EVENT_ESTABLISHED, rec);
	EXPECT_EQ(0, rec->status);
	EXPECT_TRUE(rec->flags & RDMA_EP_REC_UD);
	EXPECT_EQ(passive.qp_num, rec->qp_num);
	EXPECT_NE(0, rec->qkey);
	EXPECT_EQ(1, rec->ah.is_global);
	EXPECT_EQ(1, rec->ah.port_num);
	expect_data(_metadata, rec, self->data + 200, UD_ACCEPT_DATA,
		    UD_ACCEPT_DATA);
	EXPECT_EQ(RDMA_EP_STATE_CONNECTED,
		  ep_state(_metadata, self->fd, self->s.active));
	expect_silence(_metadata, self->fd, self->s.passive, 50);
	expect_silence(_metadata, self->fd, self->s.active, 0);
	/* the order of destroying does not matter */
	do_ok(try_destroy(self->fd, self->s.listener));
	do_ok(try_destroy(self->fd, self->s.passive));
}

/* Port spaces of IP have a qkey of their own */
TEST_F(ud, qkey)
{
	struct rdma_ep_conn_param active = conn_param(NULL, 0);
	struct rdma_ep_conn_param passive = conn_param(NULL, 0);

	passive.qkey = 0x11223344;
	make_listener(_metadata, self->fd, &self->s, 16);
	self->s.active = make_active(_metadata, self->fd, &self->s);
	do_ok(try_connect(self->fd, self->s.active, 0, &active, NULL));
	wait_event(_metadata, self->fd, self->s.listener,
		   RDMA_EP_EVENT_CONNECT_REQUEST, &self->rec);
	do_ok(try_accept(self->fd, self->rec.child, 0, &passive, NULL));
	wait_event(_metadata, self->fd, self->s.active,
		   RDMA_EP_EVENT_ESTABLISHED, &self->rec);
	EXPECT_EQ(0x01234567, self->rec.qkey);
}

TEST_F(ud, reject)
{
	make_request(_metadata, self->fd, &self->s);
	do_ok(try_reject(self->fd, self->s.passive, 0, self->data,
			 UD_ACCEPT_DATA));
	wait_event(_metadata, self->fd, self->s.active,
		   RDMA_EP_EVENT_UNREACHABLE, &self->rec);
	EXPECT_LT(0, self->rec.status);
	expect_data(_metadata, &self->rec, self->data, UD_ACCEPT_DATA,
		    UD_ACCEPT_DATA);
	EXPECT_EQ(RDMA_EP_STATE_FAILED,
		  ep_state(_metadata, self->fd, self->s.active));
	expect_silence(_metadata, self->fd, self->s.active, 100);
}

TEST_F(ud, too_much_data)
{
	struct rdma_ep_conn_param param = conn_param(self->data,
						     UD_CONNECT_DATA + 1);

	make_listener(_metadata, self->fd, &self->s, 16);
	self->s.active = make_active(_metadata, self->fd, &self->s);
	do_err(EINVAL, DATA_TOO_LONG,
	       try_connect(self->fd, self->s.active, 0, &param, NULL));
	expect_silence(_metadata, self->fd, self->s.listener, 100);
	param.private_data_len--;
	do_ok(try_connect(self->fd, self->s.active, 0, &param, NULL));
	wait_event(_metadata, self->fd, self->s.listener,
		   RDMA_EP_EVENT_CONNECT_REQUEST, &self->rec);
	self->s.passive = self->rec.child;
	param = conn_param(self->data, UD_ACCEPT_DATA + 1);
	do_err(EINVAL, DATA_TOO_LONG,
	       try_accept(self->fd, self->s.passive, 0, &param, NULL));
	do_err(EINVAL, DATA_TOO_LONG,
	       try_reject(self->fd, self->s.passive, 0, self->data,
			  UD_ACCEPT_DATA + 1));
	expect_silence(_metadata, self->fd, self->s.active, 100);
}

TEST_F(ud, nobody_listens)
{
	struct rdma_ep_conn_param param = conn_param(NULL, 0);

	make_listener(_metadata, self->fd, &self->s, 16);
	do_ok(try_destroy(self->fd, self->s.listener));
	self->s.active = make_active(_metadata, self->fd, &self->s);
	do_ok(try_connect(self->fd, self->s.active, RDMA_EP_F_WAIT, &param,
			  &self->rec));
	EXPECT_GOOD_RECORD(&self->rec);
	EXPECT_EVENT(UNREACHABLE, &self->rec);
	EXPECT_NE(0, self->rec.status);
	expect_silence(_metadata, self->fd, self->s.active, 200);
}

TEST_F(ud, backlog_overflow)
{
	struct rdma_ep_conn_param param;
	uint32_t ep[3];
	size_t i;

	make_listener(_metadata, self->fd, &self->s, 1);
	for (i = 0; i < ARRAY_SIZE(ep); i++) {
		ep[i] = make_active(_metadata, self->fd, &self->s);
		param = conn_param(NULL, 0);
		do_ok(try_connect(self->fd, ep[i], 0, &param, NULL));
	}
	/* one waits to be read, two are refused, whichever they are */
	do {
		usleep(10000);
		do_ok(try_query(self->fd, self->s.listener, RDMA_EP_REC_INFO,
				&self->rec));
	} while (self->rec.info.overflows < 2);
	EXPECT_EQ(1, self->rec.info.requests);
	EXPECT_EQ(2, self->rec.info.overflows);
	for (i = 0; i < ARRAY_SIZE(ep); i++) {
		int ms, ret = -EAGAIN;

		for (ms = 0; ret && ms < 2000; ms += 50) {
			usleep(50000);
			ret = try_wait(self->fd, ep[i], RDMA_EP_WAIT_NOWAIT,
				       &self->rec);
		}
		if (!ret)
			EXPECT_EVENT(UNREACHABLE, &self->rec);
	}
}

/*
 * Multicast
 */

TEST_F(ud, no_multicast)
{
	union test_addr host = host_addr(variant->family, 0);
	union test_addr addr = make_addr(variant->group[0], 0);
	uint32_t group;

	if (!variant->no_multicast)
		return;
	do_ok(try_create(self->fd, variant->ps, -1, 0, &self->s.active));
	do_ok(try_bind(self->fd, self->s.active, &host, NULL));
	do_err(EOPNOTSUPP, KERNEL, try_join(self->fd, self->s.active, 0, &addr,
					    0, &group));
}

static void make_ud(struct __test_metadata *_metadata, FIXTURE_DATA(ud) *self)
{
	union test_addr addr = host_addr(self->s.family, 0);

	do_ok(try_create(self->fd, self->s.ps, -1, 3, &self->s.active));
	do_ok(try_bind(self->fd, self->s.active, &addr, NULL));
}

TEST_F(ud, join_and_leave)
{
	const uint64_t cookie[2] = { 0x1111222233334444, 0x5555666677778888 };
	union test_addr addr;
	uint32_t group[2];
	int i;

	if (variant->no_multicast)
		return;
	make_ud(_metadata, self);
	for (i = 0; i < 2; i++) {
		addr = make_addr(variant->group[i], 0);
		do_ok(try_join(self->fd, self->s.active, i ?
			       RDMA_EP_JOIN_SEND_ONLY :
			       RDMA_EP_JOIN_FULL_MEMBER, &addr, cookie[i],
			       &group[i]));
		EXPECT_NE(0, group[i]);
		wait_event(_metadata, self->fd, self->s.active,
			   RDMA_EP_EVENT_MULTICAST_JOIN, &self->rec);
		EXPECT_EQ(0, self->rec.status);
		EXPECT_EQ(3, self->rec.cookie);
		EXPECT_EQ(cookie[i], self->rec.arg);
		EXPECT_TRUE(self->rec.flags & RDMA_EP_REC_UD);
		EXPECT_EQ(0xffffff, self->rec.qp_num);
		EXPECT_NE(0, self->rec.qkey);
		EXPECT_EQ(1, self->rec.ah.is_global);
		EXPECT_FALSE(is_filled(self->rec.ah.grh.dgid, 16, 0));
	}
	EXPECT_NE(group[0], group[1]);
	do_ok(try_leave(self->fd, self->s.active, group[0], NULL));
	do_err(ENOENT, HANDLE, try_leave(self->fd, self->s.active, group[0],
					 NULL));
	do_ok(try_leave(self->fd, self->s.active, group[1], NULL));
	/* and again in it */
	addr = make_addr(variant->group[0], 0);
	do_ok(try_join(self->fd, self->s.active, 0, &addr, 1, &group[0]));
	wait_event(_metadata, self->fd, self->s.active,
		   RDMA_EP_EVENT_MULTICAST_JOIN, &self->rec);
	/* what is left of them goes with the endpoint */
}

/* An address that is joined twice: "what was joined last is to be left first" */
TEST_F(ud, join_twice)
{
	union test_addr addr = make_addr(variant->group[0], 0);
	uint32_t group[2], seen = 0;
	int i;

	if (variant->no_multicast)
		return;
	make_ud(_metadata, self);
	for (i = 0; i < 2; i++)
		do_ok(try_join(self->fd, self->s.active, i, &addr, i, &group[i]));
	for (i = 0; i < 2; i++) {
		wait_event(_metadata, self->fd, self->s.active,
			   RDMA_EP_EVENT_MULTICAST_JOIN, &self->rec);
		EXPECT_EQ(0, self->rec.status);
		seen |= 1 << self->rec.arg;
	}
	EXPECT_EQ(3, seen);
	do_err(EINVAL, STATE, try_leave(self->fd, self->s.active, group[0], NULL));
	do_ok(try_leave(self->fd, self->s.active, group[1], NULL));
	do_ok(try_leave(self->fd, self->s.active, group[0], NULL));
	/* and joined again, in disorder with the end of the endpoint */
	for (i = 0; i < 2; i++)
		do_ok(try_join(self->fd, self->s.active, 0, &addr, i, &group[i]));
}

/* Leaving takes the group's unread events along */
TEST_F(ud, leave_discards)
{
	union test_addr addr = make_addr(variant->group[0], 0);
	uint32_t group, discarded = 0;

	if (variant->no_multicast)
		return;
	make_ud(_metadata, self);
	do_ok(try_join(self->fd, self->s.active, 0, &addr, 1, &group));
	do_ok(try_write_event(self->fd, self->s.active, 0, 99));
	usleep(200000);
	do_ok(try_leave(self->fd, self->s.active, group, &discarded));
	EXPECT_GE(1, discarded);
	/* only those: the other event is there */
	wait_event(_metadata, self->fd, self->s.active, RDMA_EP_EVENT_USER,
		   &self->rec);
	expect_silence(_metadata, self->fd, self->s.active, 200);
}

/* Leaving, and destroying, while the join is under way */
TEST_F(ud, leave_at_once)
{
	union test_addr addr = make_addr(variant->group[0], 0);
	uint32_t group, discarded;
	int i;

	if (variant->no_multicast)
		return;
	make_ud(_metadata, self);
	for (i = 0; i < 50; i++) {
		do_ok(try_join(self->fd, self->s.active, i % 2, &addr, i,
			       &group));
		do_ok(try_leave(self->fd, self->s.active, group, &discarded));
	}
	expect_silence(_metadata, self->fd, self->s.active, 200);
	for (i = 0; i < 10; i++) {
		do_ok(try_join(self->fd, self->s.active, 0, &addr, i, &group));
		do_ok(try_destroy(self->fd, self->s.active));
		make_ud(_metadata, self);
	}
}

TEST_F(ud, join_errors)
{
	union test_addr addr = make_addr(variant->group[0], 0);
	uint32_t group, ep, flags;

	make_ud(_metadata, self);
	for (flags = 2; flags; flags *= 2) {
		EXPECT_EQ(-EOPNOTSUPP,
			  try_join(self->fd, self->s.active, flags, &addr, 0,
				   &group));
	}
	/* not bound to a device */
	do_ok(try_create(self->fd, variant->ps, -1, 0, &ep));
	do_err(EINVAL, STATE, try_join(self->fd, ep, 0, &addr, 0, &group));
	/* connected endpoints have no groups */
	do_ok(try_create(self->fd, PS_TCP, -1, 0, &ep));
	EXPECT_EQ(-EINVAL, try_join(self->fd, ep, 0, &addr, 0, &group));
	addr = host_addr(variant->family, 0);
	do_ok(try_bind(self->fd, ep, &addr, NULL));
	EXPECT_EQ(-EINVAL, try_join(self->fd, ep, 0, &addr, 0, &group));
	do_err(ENOENT, HANDLE, try_leave(self->fd, self->s.active, 1, NULL));
	do_err(ENOENT, HANDLE, try_leave(self->fd, self->s.active, 0, NULL));
}

TEST_HARNESS_MAIN
