// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rdma_create_ep(3) and rdma_destroy_ep(3), sentence by sentence.
 */
#include "api_utils.h"

FIXTURE(create_ep) {
	struct objects before;
	struct ibv_qp_init_attr attr;
	struct server server;
	struct rdma_cm_id *id;
};

FIXTURE_VARIANT(create_ep) {
	int family;
};

FIXTURE_VARIANT_ADD(create_ep, ipv4) {
	.family = AF_INET,
};

FIXTURE_VARIANT_ADD(create_ep, ipv6) {
	.family = AF_INET6,
};

FIXTURE_SETUP(create_ep)
{
	self->before = count_objects();
	self->attr = qp_attr(IBV_QPT_RC);
}

FIXTURE_TEARDOWN(create_ep)
{
	if (!_metadata->passed)
		return;
	if (self->id)
		rdma_destroy_ep(self->id);
	if (self->server.listen)
		server_stop(&self->server);
	expect_no_leak(&self->before);
}

/* "Creates an identifier": 0, and an id bound to a device and resolved. */
TEST_F(create_ep, allocates_id)
{
	struct sockaddr_storage dst = my_addr(variant->family, 7777);

	self->id = client_ep(variant->family, 7777, NULL, &self->attr);
	ASSERT_NE(NULL, self->id);
	EXPECT_NE(NULL, self->id->verbs);
	EXPECT_EQ(RDMA_PS_TCP, self->id->ps);
	EXPECT_EQ(IBV_QPT_RC, self->id->qp_type);
	EXPECT_EQ(1, self->id->port_num);
	EXPECT_LE(1, self->id->route.num_paths);
	EXPECT_NE(NULL, self->id->route.path_rec);
	EXPECT_TRUE(same_ip(sa(&dst), rdma_get_peer_addr(self->id)));
	EXPECT_TRUE(same_ip(sa(&dst), rdma_get_local_addr(self->id)));
	EXPECT_EQ(7777, ntohs(rdma_get_dst_port(self->id)));
	EXPECT_NE(0, src_port(self->id));
}

/* "returns 0 on success, or -1 on error" with errno, and nothing leaks. */

static int try_create(int family, int flags, struct sockaddr_storage *addr,
		      socklen_t len, struct ibv_qp_init_attr *attr)
{
	struct rdma_addrinfo res = {
		.ai_flags = flags,
		.ai_family = family,
		.ai_qp_type = IBV_QPT_RC,
		.ai_port_space = RDMA_PS_TCP,
	};
	struct rdma_cm_id *id;
	int ret;

	if (flags & RAI_PASSIVE) {
		res.ai_src_addr = sa(addr);
		res.ai_src_len = len;
	} else {
		res.ai_dst_addr = sa(addr);
		res.ai_dst_len = len;
	}
	errno = 0;
	ret = outcome(rdma_create_ep(&id, &res, NULL, attr));
	if (!ret)
		rdma_destroy_ep(id);
	return ret;
}

/* The same failure many times. */
#define fails_without_leak(code, family, flags, addr, len, attr)		\
	do {									\
		struct growth __growth = {};					\
		int __i;							\
										\
		for (__i = 0; __i < 12; __i++) {				\
			ASSERT_EQ(code, try_create(family, flags, addr, len,	\
						   attr));			\
			if (__i == 3)						\
				__growth = growth_now();			\
		}								\
		expect_no_growth(&__growth);					\
		expect_no_leak(&self->before);					\
	} while (0)

TEST_F(create_ep, fails_unreachable)
{
	struct sockaddr_storage addr = foreign_addr(variant->family, 7777);

	fails_without_leak(ENETUNREACH, variant->family, 0, &addr,
			   sa_len(&addr), &self->attr);
}

TEST_F(create_ep, fails_silent_neighbour)
{
	struct sockaddr_storage addr = silent_addr(variant->family, 7777);
	long start = now_ms();
	int code;

	/* Nobody answers on a dummy netdev, which does not ask by default. */
	ASSERT_EQ(0, system("ip link set d0 arp on"));
	code = try_create(variant->family, 0, &addr, sa_len(&addr), &self->attr);
	EXPECT_TRUE(code == ETIMEDOUT || code == EHOSTUNREACH) {
		TH_LOG("errno %d", code);
	}
	EXPECT_LT(now_ms() - start, 60000);
	ASSERT_EQ(0, system("ip link set d0 arp off"));
}

TEST_F(create_ep, fails_bad_qp_attributes)
{
	struct sockaddr_storage addr = my_addr(variant->family, 7777);

	self->attr.cap.max_send_wr = 1 << 30;
	fails_without_leak(EINVAL, variant->family, 0, &addr, sa_len(&addr),
			   &self->attr);
}

TEST_F(create_ep, fails_passive_address_not_local)
{
	struct sockaddr_storage addr = foreign_addr(variant->family, 7777);

	fails_without_leak(EADDRNOTAVAIL, variant->family, RAI_PASSIVE, &addr,
			   sa_len(&addr), NULL);
}

TEST_F(create_ep, fails_passive_port_in_use)
{
	struct sockaddr_storage addr = my_addr(variant->family, 0);

	server_start(&self->server, variant->family, NULL, NULL, 0);
	self->before = count_objects();
	addr = my_addr(variant->family, self->server.port);
	fails_without_leak(EADDRINUSE, variant->family, RAI_PASSIVE, &addr,
			   sa_len(&addr), NULL);
}

TEST_F(create_ep, fails_address_too_short)
{
	struct sockaddr_storage addr = my_addr(variant->family, 7777);

	fails_without_leak(EINVAL, variant->family, RAI_PASSIVE, &addr, 4, NULL);
	fails_without_leak(EINVAL, variant->family, 0, &addr, 4, NULL);
}

/* "will automatically create a QP": on the given protection domain ... */
TEST_F(create_ep, active_qp_on_given_pd)
{
	struct ibv_pd *pd = ibv_alloc_pd(my_verbs());

	ASSERT_NE(NULL, pd);
	self->id = client_ep(variant->family, 7777, pd, &self->attr);
	ASSERT_NE(NULL, self->id->qp);
	EXPECT_EQ(pd, self->id->qp->pd);
	EXPECT_EQ(pd, self->id->pd);
	EXPECT_EQ(IBV_QPT_RC, self->id->qp->qp_type);
	/* In use: so it is this one that the QP is on. */
	EXPECT_EQ(EBUSY, ibv_dealloc_pd(pd));
	rdma_destroy_ep(self->id);
	self->id = NULL;
	EXPECT_EQ(0, ibv_dealloc_pd(pd));
}

/* ... "or a default protection domain if not" */
TEST_F(create_ep, active_qp_on_default_pd)
{
	struct rdma_cm_id *other;

	self->id = client_ep(variant->family, 7777, NULL, &self->attr);
	ASSERT_NE(NULL, self->id->qp);
	ASSERT_NE(NULL, self->id->pd);
	EXPECT_EQ(self->id->pd, self->id->qp->pd);

	/* rdma_create_qp(3): one default protection domain for each device */
	other = client_ep(variant->family, 7777, NULL, &self->attr);
	EXPECT_EQ(self->id->pd, other->pd);
	rdma_destroy_ep(other);
}

/* Default CQs and their channels come along, in the id's fields. */
TEST_F(create_ep, active_default_cqs)
{
	self->id = client_ep(variant->family, 7777, NULL, &self->attr);
	ASSERT_NE(NULL, self->id->qp);
	ASSERT_NE(NULL, self->id->send_cq);
	ASSERT_NE(NULL, self->id->recv_cq);
	EXPECT_EQ(self->id->send_cq, self->id->qp->send_cq);
	EXPECT_EQ(self->id->recv_cq, self->id->qp->recv_cq);
	EXPECT_NE(NULL, self->id->send_cq_channel);
	EXPECT_NE(NULL, self->id->recv_cq_channel);
	EXPECT_EQ(NULL, self->id->srq);
	/* the actual capabilities are returned */
	EXPECT_LE(4, self->attr.cap.max_send_wr);
	EXPECT_EQ(IBV_QPS_INIT, qp_state(self->id->qp));
}

/* qp_init_attr NULL: no QP, and "pd is ignored" */
TEST_F(create_ep, active_without_qp)
{
	struct ibv_pd *pd = ibv_alloc_pd(my_verbs());

	ASSERT_NE(NULL, pd);
	self->id = client_ep(variant->family, 7777, pd, NULL);
	EXPECT_EQ(NULL, self->id->qp);
	EXPECT_NE(pd, self->id->pd);
	EXPECT_EQ(NULL, self->id->send_cq);
	EXPECT_EQ(0, ibv_dealloc_pd(pd));
}

/* "may be connected by calling rdma_connect", with nothing in between */
TEST_F(create_ep, active_connects_at_once)
{
	server_start(&self->server, variant->family, NULL, &self->attr, 1);
	self->id = client_ep(variant->family, self->server.port, NULL,
			     &self->attr);
	ok(rdma_connect(self->id, NULL));
	EXPECT_EQ(IBV_QPS_RTS, qp_state(self->id->qp));
	server_join(&self->server);
	send_message(self->id, self->server.conn[0]);
	send_message(self->server.conn[0], self->id);
}

/* a source address in the result is used */
TEST_F(create_ep, active_uses_source_address)
{
	struct sockaddr_storage src = my_addr(variant->family, 23456);
	struct rdma_addrinfo *res;

	res = my_addrinfo(variant->family, 0, RDMA_PS_TCP, 7777);
	ASSERT_NE(NULL, res);
	free(res->ai_src_addr);
	res->ai_src_addr = malloc(sizeof(src));
	ASSERT_NE(NULL, res->ai_src_addr);
	memcpy(res->ai_src_addr, &src, sizeof(src));
	res->ai_src_len = sa_len(&src);
	ok(rdma_create_ep(&self->id, res, NULL, NULL));
	rdma_freeaddrinfo(res);
	EXPECT_EQ(23456, src_port(self->id));
}

/*
 * Passive: pd and qp_init_attr are saved, and each new id has a QP made with
 * them.
 */
TEST_F(create_ep, passive_requests_have_qp)
{
	struct rdma_cm_id *id;
	int i;

	self->attr.cap.max_recv_sge = 2;
	server_start(&self->server, variant->family, NULL, &self->attr, 3);
	/* It is a copy: what becomes of the caller's does not matter. */
	memset(&self->attr, 0xff, sizeof(self->attr));
	self->attr = qp_attr(IBV_QPT_RC);
	for (i = 0; i < 3; i++) {
		struct ibv_qp_init_attr attr = qp_attr(IBV_QPT_RC);

		id = client_ep(variant->family, self->server.port, NULL, &attr);
		ok(rdma_connect(id, NULL));
		/* ESTABLISHED here is no proof that accept returned there */
		while (__atomic_load_n(&self->server.taken, __ATOMIC_ACQUIRE) <= i)
			sleep_ms(1);
		if (i == 2)
			server_join(&self->server);
		ASSERT_NE(NULL, self->server.conn[i]->qp);
		EXPECT_NE(NULL, self->server.conn[i]->send_cq);
		EXPECT_NE(NULL, self->server.conn[i]->recv_cq_channel);
		EXPECT_NE(NULL, self->server.conn[i]->verbs);
		EXPECT_EQ(NULL, self->server.listen->qp);
		send_message(id, self->server.conn[i]);
		rdma_destroy_ep(id);
	}
	/* A QP each, not one and the same */
	EXPECT_NE(self->server.conn[0]->qp, self->server.conn[1]->qp);
	EXPECT_NE(self->server.conn[1]->qp, self->server.conn[2]->qp);
}

TEST_F(create_ep, passive_requests_on_callers_pd)
{
	struct ibv_pd *pd = ibv_alloc_pd(my_verbs());
	struct rdma_cm_id *id;
	int i;

	ASSERT_NE(NULL, pd);
	server_start(&self->server, variant->family, pd, &self->attr, 3);
	for (i = 0; i < 3; i++) {
		struct ibv_qp_init_attr attr = qp_attr(IBV_QPT_RC);

		id = client_ep(variant->family, self->server.port, NULL, &attr);
		ok(rdma_connect(id, NULL));
		rdma_destroy_ep(id);
	}
	server_join(&self->server);
	for (i = 0; i < 3; i++) {
		ASSERT_NE(NULL, self->server.conn[i]->qp);
		EXPECT_EQ(pd, self->server.conn[i]->qp->pd);
		EXPECT_EQ(pd, self->server.conn[i]->pd);
	}
	server_stop(&self->server);
	self->server.listen = NULL;
	EXPECT_EQ(0, ibv_dealloc_pd(pd));
}

TEST_F(create_ep, passive_without_attributes_no_qp)
{
	struct rdma_conn_param param = { .qp_num = 0x1234 };
	struct rdma_cm_id *id, *request;

	server_start(&self->server, variant->family, NULL, NULL, 0);
	server_join(&self->server);

	/* Asynchronous, so that one thread can do both ends. */
	id = client_ep(variant->family, self->server.port, NULL, NULL);
	struct rdma_event_channel *channel = rdma_create_event_channel();
	ASSERT_NE(NULL, channel);
	ok(rdma_migrate_id(id, channel));
	ok(rdma_connect(id, &param));
	ok(rdma_get_request(self->server.listen, &request));
	EXPECT_EQ(NULL, request->qp);
	EXPECT_NE(NULL, request->verbs);
	ok(rdma_reject(request, NULL, 0));
	rdma_destroy_ep(request);
	ok(rdma_ack_cm_event(get_event(channel, RDMA_CM_EVENT_REJECTED)));
	rdma_destroy_ep(id);
	rdma_destroy_event_channel(channel);
}

/* "may be placed into a listening state by immediately calling rdma_listen" */
TEST_F(create_ep, passive_listens_at_once)
{
	struct sockaddr_storage addr = my_addr(variant->family, 0);
	struct rdma_addrinfo *res;

	res = my_addrinfo(variant->family, RAI_PASSIVE, RDMA_PS_TCP, 7471);
	ASSERT_NE(NULL, res);
	ok(rdma_create_ep(&self->id, res, NULL, &self->attr));
	rdma_freeaddrinfo(res);
	EXPECT_EQ(7471, src_port(self->id));
	EXPECT_TRUE(same_ip(sa(&addr), rdma_get_local_addr(self->id)));
	EXPECT_EQ(NULL, self->id->qp);
	ok(rdma_listen(self->id, 4));
}

/* "set to use synchronous operation" */
TEST_F(create_ep, is_synchronous)
{
	server_start(&self->server, variant->family, NULL, &self->attr, 1);
	self->id = client_ep(variant->family, self->server.port, NULL,
			     &self->attr);
	/* What rdma_connect waited for is in the id. */
	ok(rdma_connect(self->id, NULL));
	ASSERT_NE(NULL, self->id->event);
	EXPECT_EQ(RDMA_CM_EVENT_ESTABLISHED, self->id->event->event);
	EXPECT_EQ(self->id, self->id->event->id);
	server_join(&self->server);
	disconnect_both(self->id, self->server.conn[0]);
	ASSERT_NE(NULL, self->id->event);
	EXPECT_EQ(RDMA_CM_EVENT_DISCONNECTED, self->id->event->event);
}

/* A passive one keeps it, with or without QPs; and a later id->pd counts. */
TEST_F(create_ep, passive_pd)
{
	struct ibv_pd *pd = ibv_alloc_pd(my_verbs());
	struct rdma_addrinfo *res;

	ASSERT_NE(NULL, pd);
	res = my_addrinfo(variant->family, RAI_PASSIVE, RDMA_PS_TCP, 7777);
	ASSERT_NE(NULL, res);
	ok(rdma_create_ep(&self->id, res, pd, NULL));
	EXPECT_EQ(pd, self->id->pd);
	rdma_destroy_ep(self->id);
	rdma_freeaddrinfo(res);

	server_start(&self->server, variant->family, NULL, &self->attr, 1);
	self->server.listen->pd = pd;
	self->id = client_ep(variant->family, self->server.port, NULL,
			     &self->attr);
	ok(rdma_connect(self->id, NULL));
	server_join(&self->server);
	EXPECT_EQ(pd, self->server.conn[0]->qp->pd);
	EXPECT_EQ(pd, self->server.conn[0]->pd);
	rdma_destroy_ep(self->server.conn[0]);
	self->server.taken = self->server.wanted = 0;
	self->server.listen->pd = NULL;
	EXPECT_EQ(0, ibv_dealloc_pd(pd));
}

/* "Users that wish asynchronous operation must migrate the rdma_cm_id" */
TEST_F(create_ep, migrated_is_asynchronous)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *request;

	ASSERT_NE(NULL, channel);
	server_start(&self->server, variant->family, NULL, &self->attr, 0);
	self->id = client_ep(variant->family, self->server.port, NULL,
			     &self->attr);
	ok(rdma_migrate_id(self->id, channel));
	EXPECT_EQ(channel, self->id->channel);

	/* Nobody has accepted, and it returns all the same. */
	ok(rdma_connect(self->id, NULL));
	server_join(&self->server);
	self->server.wanted = 1;
	ok(rdma_get_request(self->server.listen, &request));
	self->server.conn[self->server.taken++] = request;
	ok(rdma_migrate_id(request, channel));
	ok(rdma_accept(request, NULL));
	/* Both ends are on the channel now, in either order. */
	expect_event(channel, RDMA_CM_EVENT_ESTABLISHED);
	expect_event(channel, RDMA_CM_EVENT_ESTABLISHED);

	/* "and back with NULL": a call that waits again */
	ok(rdma_migrate_id(self->id, NULL));
	EXPECT_NE(channel, self->id->channel);
	EXPECT_NE(NULL, self->id->channel);
	disconnect_both(self->id, request);
	ASSERT_NE(NULL, self->id->event);
	EXPECT_EQ(RDMA_CM_EVENT_DISCONNECTED, self->id->event->event);
	expect_event(channel, RDMA_CM_EVENT_DISCONNECTED);

	rdma_destroy_ep(request);
	self->server.taken = self->server.wanted = 0;
	rdma_destroy_event_channel(channel);
}

/* "Users must release the created rdma_cm_id by calling rdma_destroy_ep." */
TEST_F(create_ep, destroy_releases_all)
{
	struct growth growth = {};
	struct objects with;
	int i;

	for (i = 0; i < 10; i++) {
		self->attr = qp_attr(IBV_QPT_RC);
		self->id = client_ep(variant->family, 7777, NULL, &self->attr);
		with = count_objects();
		EXPECT_EQ(self->before.qp + 1, with.qp);
		EXPECT_EQ(self->before.cq + 2, with.cq);
		EXPECT_EQ(self->before.cm_id + 1, with.cm_id);
		rdma_destroy_ep(self->id);
		self->id = NULL;
		expect_no_leak(&self->before);
		if (i == 3)
			growth = growth_now();
	}
	expect_no_growth(&growth);
}

/* Connected, with events nobody looked at, and requests nobody took. */
TEST_F(create_ep, destroy_at_any_moment)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct ibv_qp_init_attr attr = self->attr;

	ASSERT_NE(NULL, channel);
	server_start(&self->server, variant->family, NULL, &self->attr, 1);
	self->id = client_ep(variant->family, self->server.port, NULL,
			     &self->attr);
	ok(rdma_connect(self->id, NULL));
	server_stop(&self->server);
	self->server = (struct server){};
	/* A DISCONNECTED is on its way to it. */
	rdma_destroy_ep(self->id);
	self->id = NULL;
	expect_no_leak(&self->before);

	server_start(&self->server, variant->family, NULL, &self->attr, 0);
	self->id = client_ep(variant->family, self->server.port, NULL, &attr);
	ok(rdma_migrate_id(self->id, channel));
	ok(rdma_connect(self->id, NULL));
	/* The request is there, or is not: the listener goes. */
	event_within(self->server.listen->channel, SOON_MS);
	server_stop(&self->server);
	self->server = (struct server){};
	rdma_destroy_ep(self->id);
	self->id = NULL;
	rdma_destroy_event_channel(channel);
}

TEST_HARNESS_MAIN
