// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Many ids in one call: what overlaps, what each of them reports when some
 * fail, several events at once.
 */
#include <rdmaep.h>

#include "api_utils.h"

#define N	24
#define PORT	"7431"

FIXTURE(batch)
{
	struct objects before;
	struct rdma_cm_id *listen;
	struct rdma_cm_id *server[N];
	pthread_t thread;
	int accepted;
	struct rdma_addrinfo *res;
	struct ibv_qp_init_attr qp;
	struct rdmaep_ep_attr attr[N];
	struct rdma_cm_id *id[N];
	int errs[N];
};

static struct rdma_addrinfo *lookup(const char *ip, const char *port, int flags)
{
	struct rdma_addrinfo hints = {
		.ai_flags = RAI_NUMERICHOST | flags,
		.ai_port_space = RDMA_PS_TCP,
	}, *res = NULL;

	return rdma_getaddrinfo(ip, port, &hints, &res) ? NULL : res;
}

static struct ibv_qp_init_attr small_qp(void)
{
	return (struct ibv_qp_init_attr){
		.cap = {
			.max_send_wr = 1, .max_recv_wr = 1,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
	};
}

FIXTURE_SETUP(batch)
{
	int i;

	not_on_stock("it has no such calls");
	self->before = count_objects();
	self->res = lookup(my_ip(AF_INET), PORT, 0);
	ASSERT_NE(NULL, self->res);
	self->qp = small_qp();
	for (i = 0; i < N; i++) {
		self->attr[i].res = self->res;
		self->attr[i].qp_init_attr = &self->qp;
		self->errs[i] = -1;
	}
}

FIXTURE_TEARDOWN(batch)
{
	if (!self->res)
		return;
	rdmaep_destroy_ep_many(self->id, N, 0);
	rdmaep_destroy_ep_many(self->server, N, 0);
	rdmaep_destroy_ep_many(&self->listen, 1, 0);
	rdma_freeaddrinfo(self->res);
	expect_no_leak(&self->before);
}

static void start_listening(struct __test_metadata *_metadata,
			    FIXTURE_DATA(batch) *self)
{
	struct rdma_addrinfo *res = lookup(my_ip(AF_INET), PORT, RAI_PASSIVE);
	struct ibv_qp_init_attr qp = small_qp();
	struct rdmaep_ep_attr attr = { .res = res, .qp_init_attr = &qp };
	int err = -1;

	ASSERT_NE(NULL, res);
	ASSERT_EQ(1, rdmaep_create_ep_many(&self->listen, &attr, 1, &err))
		log_reason();
	ASSERT_EQ(0, err);
	ok(rdma_listen(self->listen, 2 * N));
	rdma_freeaddrinfo(res);
}

/*
 * Nobody is accepted before all have asked, and then the last first, each when
 * the one before it stands: who connects one by one, or takes the answers in
 * order, waits long.
 */
static void *accept_all(void *arg)
{
	FIXTURE_DATA(batch) *self = arg;
	int i;

	for (i = 0; i < N; i++)
		if (rdma_get_request(self->listen, &self->server[i]))
			return NULL;
	for (i = N; i--;)
		if (!rdma_accept(self->server[i], NULL))
			self->accepted++;
	return NULL;
}

TEST_F(batch, connections_overlap)
{
	struct rdma_conn_param param = { .private_data = "hello",
					 .private_data_len = 5,
					 .retry_count = 7 };
	struct rdma_conn_param *params[N] = { &param };
	int i;

	start_listening(_metadata, self);
	ASSERT_EQ(N, rdmaep_create_ep_many(self->id, self->attr, N, self->errs))
		log_reason();
	for (i = 0; i < N; i++) {
		ASSERT_NE(NULL, self->id[i]);
		EXPECT_EQ(0, self->errs[i]);
		EXPECT_NE(NULL, self->id[i]->qp);
		EXPECT_EQ(1, self->id[i]->route.num_paths);
		EXPECT_EQ(IBV_QPS_INIT, qp_state(self->id[i]->qp));
		self->errs[i] = -1;
	}
	ASSERT_EQ(0, pthread_create(&self->thread, NULL, accept_all, self));
	ASSERT_EQ(N, rdmaep_connect_many(self->id, params, N, self->errs))
		log_reason();
	ASSERT_EQ(0, pthread_join(self->thread, NULL));
	EXPECT_EQ(N, self->accepted);
	for (i = 0; i < N; i++) {
		EXPECT_EQ(0, self->errs[i]);
		EXPECT_EQ(IBV_QPS_RTS, qp_state(self->id[i]->qp));
		ASSERT_NE(NULL, self->id[i]->event);
		EXPECT_EQ(RDMA_CM_EVENT_ESTABLISHED, self->id[i]->event->event);
	}
	ok(rdmaep_destroy_ep_many(self->id, N, 0));
	for (i = 0; i < N; i++)
		EXPECT_EQ(NULL, self->id[i]);
}

/* Some fail: the others do not suffer, and each says why. */
TEST_F(batch, some_cannot_be_made)
{
	struct rdma_addrinfo *foreign = lookup("192.0.2.9", PORT, 0);
	int i;

	ASSERT_NE(NULL, foreign);
	self->attr[2].res = foreign;
	self->attr[5].res = NULL;
	self->attr[7].qp_init_attr = NULL;
	self->qp.cap.max_recv_wr = 1;
	EXPECT_EQ(N - 2, rdmaep_create_ep_many(self->id, self->attr, N,
					       self->errs));
	EXPECT_EQ(self->errs[2], errno);
	EXPECT_TRUE(self->errs[2] == ENETUNREACH || self->errs[2] == ENODEV)
		TH_LOG("%s", strerror(self->errs[2]));
	EXPECT_EQ(EINVAL, self->errs[5]);
	for (i = 0; i < N; i++) {
		bool fails = i == 2 || i == 5;

		EXPECT_EQ(fails, !self->id[i]);
		if (!fails)
			EXPECT_EQ(0, self->errs[i]);
	}
	EXPECT_EQ(NULL, self->id[7]->qp);
	rdma_freeaddrinfo(foreign);
}

/* Nobody listens; what was not made does not connect either. */
TEST_F(batch, all_are_refused)
{
	int i;

	self->attr[3].res = NULL;
	ASSERT_EQ(N - 1, rdmaep_create_ep_many(self->id, self->attr, N, NULL));
	EXPECT_EQ(0, rdmaep_connect_many(self->id, NULL, N, self->errs));
	EXPECT_EQ(ECONNREFUSED, errno);
	for (i = 0; i < N; i++)
		EXPECT_EQ(i == 3 ? EINVAL : ECONNREFUSED, self->errs[i]);
}

TEST_F(batch, wrong_arguments)
{
	struct rdma_cm_event *event;

	err(EINVAL, rdmaep_create_ep_many(NULL, self->attr, 1, NULL));
	err(EINVAL, rdmaep_create_ep_many(self->id, NULL, 1, NULL));
	err(EINVAL, rdmaep_create_ep_many(self->id, self->attr, -1, NULL));
	err(EINVAL, rdmaep_connect_many(NULL, NULL, 1, NULL));
	err(EINVAL, rdmaep_destroy_ep_many(NULL, 1, 0));
	err(EINVAL, rdmaep_destroy_ep_many(self->id, 1, 2));
	err(EINVAL, rdmaep_get_cm_events(NULL, &event, 1));
	ok(rdmaep_create_ep_many(self->id, self->attr, 0, NULL));
	ok(rdmaep_connect_many(self->id, NULL, 0, NULL));
	ok(rdmaep_destroy_ep_many(self->id, 0, 0));
}

TEST_F(batch, destroyed_without_waiting)
{
	ASSERT_EQ(N, rdmaep_create_ep_many(self->id, self->attr, N, NULL))
		log_reason();
	ok(rdmaep_destroy_ep_many(self->id, N, RDMAEP_DESTROY_NOWAIT));
	/* the teardown sees that nothing is left */
}

/* Another thread holds an event: that is not waited for. */
static void *hold_event(void *arg)
{
	struct rdma_event_channel *channel = arg;

	return next_event(channel);
}

TEST_F(batch, an_event_is_held)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	pthread_t thread;
	void *event;

	ASSERT_NE(NULL, channel);
	ok(rdma_create_id(channel, &self->id[0], NULL, RDMA_PS_TCP));
	ok(rdma_resolve_addr(self->id[0], NULL, self->res->ai_dst_addr,
			     RESOLVE_MS));
	ASSERT_EQ(0, pthread_create(&thread, NULL, hold_event, channel));
	ASSERT_EQ(0, pthread_join(thread, &event));
	ASSERT_NE(NULL, event);
	ok(rdmaep_destroy_ep_many(self->id, 1, RDMAEP_DESTROY_NOWAIT));
	EXPECT_EQ(RDMA_CM_EVENT_ADDR_RESOLVED,
		  ((struct rdma_cm_event *)event)->event);
	ok(rdma_ack_cm_event(event));
	rdma_destroy_event_channel(channel);
}

/* Asynchronous ids: connecting is begun, all the rest comes by the channel. */
TEST_F(batch, several_events)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_conn_param param = { .qp_num = 1, .retry_count = 7 };
	struct rdma_conn_param *params[N];
	struct rdma_cm_event *events[100];
	int i, n, got, reads, want;

	ASSERT_NE(NULL, channel);
	for (i = 0; i < N; i++) {
		params[i] = &param;
		ok(rdma_create_id(channel, &self->id[i], NULL, RDMA_PS_TCP));
		ok(rdma_resolve_addr(self->id[i], NULL, self->res->ai_dst_addr,
				     RESOLVE_MS));
	}
	/* never more than asked for */
	for (got = 0; got < N; got += n) {
		want = N - got < 3 ? N - got : 3;
		ASSERT_TRUE(event_within(channel, SOON_MS));
		n = rdmaep_get_cm_events(channel, events, want);
		ASSERT_TRUE(n >= 1 && n <= want);
		for (i = 0; i < n; i++) {
			EXPECT_EQ(RDMA_CM_EVENT_ADDR_RESOLVED,
				  events[i]->event);
			ok(rdma_ack_cm_event(events[i]));
		}
	}
	for (i = 0; i < N; i++)
		ok(rdma_resolve_route(self->id[i], RESOLVE_MS));
	for (got = 0; got < N; got += n) {
		ASSERT_TRUE(event_within(channel, SOON_MS));
		n = rdmaep_get_cm_events(channel, events, 100);
		ASSERT_LE(1, n);
		for (i = 0; i < n; i++) {
			EXPECT_EQ(RDMA_CM_EVENT_ROUTE_RESOLVED,
				  events[i]->event);
			ok(rdma_ack_cm_event(events[i]));
		}
	}
	ASSERT_EQ(N, got);

	/* Refused. When all have come, one call has them all. */
	EXPECT_EQ(N, rdmaep_connect_many(self->id, params, N, self->errs));
	sleep_ms(2000);
	for (got = reads = 0; got < N; got += n, reads++) {
		ASSERT_TRUE(event_within(channel, SOON_MS));
		n = rdmaep_get_cm_events(channel, events, 100);
		ASSERT_LE(1, n);
		for (i = 0; i < n; i++) {
			EXPECT_EQ(RDMA_CM_EVENT_REJECTED, events[i]->event);
			ok(rdma_ack_cm_event(events[i]));
		}
	}
	EXPECT_EQ(N, got);
	EXPECT_GT(N, reads);

	ASSERT_EQ(0, fcntl(channel->fd, F_SETFL, O_NONBLOCK));
	err(EAGAIN, rdmaep_get_cm_events(channel, events, 100));
	ok(rdmaep_destroy_ep_many(self->id, N, 0));
	rdma_destroy_event_channel(channel);
}

TEST_HARNESS_MAIN
