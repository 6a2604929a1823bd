// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rdma_create_id(3), rdma_destroy_id(3), rdma_get_devices(3) and
 * rdma_free_devices(3).
 */
#include <sys/resource.h>

#include "api_utils.h"

PAIR_FIXTURE(id)

TEST(create_id)
{
	static enum rdma_port_space ps[] = {
		RDMA_PS_TCP, RDMA_PS_UDP, RDMA_PS_IPOIB, RDMA_PS_IB,
	};
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id;
	unsigned int i;

	ASSERT_NE(NULL, channel);
	for (i = 0; i < ARRAY_SIZE(ps); i++) {
		ok(rdma_create_id(channel, &id, &ps, ps[i]));
		EXPECT_EQ(ps[i], id->ps);
		EXPECT_EQ(channel, id->channel);
		EXPECT_EQ(&ps, id->context);
		EXPECT_EQ(NULL, id->verbs);
		EXPECT_EQ(NULL, id->qp);
		EXPECT_EQ(NULL, id->pd);
		EXPECT_EQ(NULL, id->srq);
		EXPECT_EQ(NULL, id->event);
		EXPECT_EQ(0, id->port_num);
		EXPECT_EQ(ps[i] == RDMA_PS_UDP || ps[i] == RDMA_PS_IPOIB ?
			  IBV_QPT_UD : IBV_QPT_RC, id->qp_type);
		ok(rdma_destroy_id(id));
	}
	rdma_destroy_event_channel(channel);
}

TEST(create_id_bad_port_space)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id;

	ASSERT_NE(NULL, channel);
	err(EINVAL, rdma_create_id(channel, &id, NULL, 0x7777));
	err(EINVAL, rdma_create_id(NULL, &id, NULL, 0x7777));
	rdma_destroy_event_channel(channel);
}

/* "If the channel parameter is NULL ... synchronous operation." */
TEST_F(id, synchronous)
{
	struct pair *p = &self->pair;

	pair_listen(p);
	ok(rdma_create_id(NULL, &p->client, self, RDMA_PS_TCP));
	EXPECT_EQ(self, p->client->context);
	ASSERT_NE(NULL, p->client->channel);
	EXPECT_LE(0, p->client->channel->fd);
	EXPECT_EQ(NULL, p->client->event);

	/* "calls that result in an event will block until the operation completes" */
	ok(rdma_resolve_addr(p->client, NULL, sa(&p->addr), RESOLVE_MS));
	/* "returned to the user through the rdma_cm_id structure" */
	ASSERT_NE(NULL, p->client->event);
	EXPECT_EQ(RDMA_CM_EVENT_ADDR_RESOLVED, p->client->event->event);
	EXPECT_EQ(p->client, p->client->event->id);
	EXPECT_EQ(0, p->client->event->status);
	EXPECT_NE(NULL, p->client->verbs);
	EXPECT_FALSE(event_within(p->client->channel, 0));

	/* "available for access until another rdma_cm call is made" */
	ok(rdma_resolve_route(p->client, RESOLVE_MS));
	ASSERT_NE(NULL, p->client->event);
	EXPECT_EQ(RDMA_CM_EVENT_ROUTE_RESOLVED, p->client->event->event);
	EXPECT_LE(1, p->client->route.num_paths);
}

/* Failed operations: -1, errno, and the event that says so. */
TEST_F(id, synchronous_failure)
{
	struct pair *p = &self->pair;
	struct sockaddr_storage addr;
	struct ibv_qp_init_attr attr = qp_attr(IBV_QPT_RC);

	ok(rdma_create_id(NULL, &p->client, NULL, RDMA_PS_TCP));
	addr = my_addr(variant->family, 9);	/* where nobody listens */
	ok(rdma_resolve_addr(p->client, NULL, sa(&addr), RESOLVE_MS));
	ok(rdma_resolve_route(p->client, RESOLVE_MS));
	ok(rdma_create_qp(p->client, NULL, &attr));
	err(ECONNREFUSED, rdma_connect(p->client, NULL));
	ASSERT_NE(NULL, p->client->event);
	EXPECT_EQ(RDMA_CM_EVENT_REJECTED, p->client->event->event);
	EXPECT_EQ(8, p->client->event->status);	/* invalid service id */
}

/* Destroying releases what the id held; a new id can be made at once. */
TEST_F(id, destroy_frees)
{
	struct sockaddr_storage addr = my_addr(variant->family, 7471);
	struct rdma_cm_id *id;
	struct growth growth = {};
	int i;

	for (i = 0; i < 12; i++) {
		ok(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP));
		ok(rdma_bind_addr(id, sa(&addr)));
		EXPECT_EQ(self->before.cm_id + 1, count_objects().cm_id);
		ok(rdma_listen(id, 1));
		ok(rdma_destroy_id(id));
		EXPECT_EQ(self->before.cm_id, count_objects().cm_id);
		if (i == 3)
			growth = growth_now();
	}
	expect_no_growth(&growth);
}

/* "cancels any outstanding asynchronous operation" */
TEST_F(id, destroy_cancels)
{
	struct pair *p = &self->pair;
	struct sockaddr_storage addr;
	long start;

	pair_listen(p);

	/* an address that nobody answers for */
	ASSERT_EQ(0, system("ip link set d0 arp on"));
	addr = silent_addr(variant->family, 7471);
	ok(rdma_create_id(p->client_channel, &p->client, NULL, RDMA_PS_TCP));
	ok(rdma_resolve_addr(p->client, NULL, sa(&addr), 60000));
	start = now_ms();
	ok(rdma_destroy_id(p->client));
	EXPECT_LT(now_ms() - start, 5000);
	ASSERT_EQ(0, system("ip link set d0 arp off"));

	/* a connection that nobody accepts: the server gets the news */
	pair_resolve(p);
	pair_request(p);
	pair_ack(p);
	rdma_destroy_qp(p->client);
	ok(rdma_destroy_id(p->client));
	p->client = NULL;
	expect_silence(p->client_channel);
}

/* Many endpoints in one process: no fd is needed for one with a channel. */
TEST_F(id, many)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id[200];
	unsigned int i;

	ASSERT_NE(NULL, channel);
	for (i = 0; i < ARRAY_SIZE(id); i++)
		ok(rdma_create_id(channel, &id[i], NULL, RDMA_PS_TCP));
	for (i = 0; i < ARRAY_SIZE(id); i++)
		ok(rdma_destroy_id(id[i]));
	rdma_destroy_event_channel(channel);
}

/* A thousand synchronous endpoints exceed the fds that librdmacm can have. */
TEST_F(id, many_synchronous)
{
	struct rlimit limit = { 256, 256 };
	struct rdma_cm_id *id[400];
	unsigned int i;

	not_on_stock("one fd each: EMFILE");
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	for (i = 0; i < ARRAY_SIZE(id); i++)
		ok(rdma_create_id(NULL, &id[i], NULL, RDMA_PS_TCP));
	/* The program has half of the fds for itself. */
	EXPECT_LE(count_fds(), 140);
	/* One without a channel of its own works, too. */
	EXPECT_EQ(-1, id[ARRAY_SIZE(id) - 1]->channel->fd);
	struct sockaddr_storage addr = my_addr(variant->family, 7471);

	ok(rdma_resolve_addr(id[ARRAY_SIZE(id) - 1], NULL, sa(&addr), RESOLVE_MS));
	ok(rdma_resolve_route(id[ARRAY_SIZE(id) - 1], RESOLVE_MS));
	for (i = 0; i < ARRAY_SIZE(id); i++)
		ok(rdma_destroy_id(id[i]));
}

/* "a NULL-terminated array of opened RDMA devices" */
TEST(get_devices)
{
	struct ibv_context **list, **again;
	struct ibv_device_attr attr;
	int n = -1, i;

	list = rdma_get_devices(&n);
	ASSERT_NE(NULL, list);
	ASSERT_LE(1, n);
	for (i = 0; i < n; i++) {
		ASSERT_NE(NULL, list[i]);
		EXPECT_EQ(0, ibv_query_device(list[i], &attr));
	}
	EXPECT_EQ(NULL, list[n]);

	/* "num_devices: If non-NULL" */
	again = rdma_get_devices(NULL);
	ASSERT_NE(NULL, again);
	for (i = 0; i <= n; i++)
		EXPECT_EQ(list[i], again[i]);
	rdma_free_devices(again);
	rdma_free_devices(list);
}

/* "resources ... that will be shared across multiple rdma_cm_id's" */
TEST_F(id, devices_are_those_of_ids)
{
	struct sockaddr_storage addr = my_addr(variant->family, 0);
	struct ibv_context **list;
	bool found = false;
	int i;

	pair_listen(&self->pair);
	list = rdma_get_devices(NULL);
	ASSERT_NE(NULL, list);
	for (i = 0; list[i]; i++)
		found |= list[i] == self->pair.listen->verbs;
	EXPECT_TRUE(found);
	rdma_free_devices(list);

	/* "Devices remain opened": freeing the list takes nothing from ids. */
	EXPECT_TRUE(same_ip(sa(&addr), rdma_get_local_addr(self->pair.listen)));
	struct ibv_pd *pd = ibv_alloc_pd(self->pair.listen->verbs);

	ASSERT_NE(NULL, pd);
	EXPECT_EQ(0, ibv_dealloc_pd(pd));
}

TEST_HARNESS_MAIN
