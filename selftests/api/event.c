// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rdma_create_event_channel(3), rdma_destroy_event_channel(3),
 * rdma_get_cm_event(3), rdma_ack_cm_event(3), rdma_event_str(3) and
 * rdma_migrate_id(3).
 */
#include <sys/epoll.h>
#include <sys/resource.h>

#include "api_utils.h"

TEST(event_str)
{
	static const char *const names[] = {
		[RDMA_CM_EVENT_ADDR_RESOLVED] = "RDMA_CM_EVENT_ADDR_RESOLVED",
		[RDMA_CM_EVENT_ADDR_ERROR] = "RDMA_CM_EVENT_ADDR_ERROR",
		[RDMA_CM_EVENT_ROUTE_RESOLVED] = "RDMA_CM_EVENT_ROUTE_RESOLVED",
		[RDMA_CM_EVENT_ROUTE_ERROR] = "RDMA_CM_EVENT_ROUTE_ERROR",
		[RDMA_CM_EVENT_CONNECT_REQUEST] = "RDMA_CM_EVENT_CONNECT_REQUEST",
		[RDMA_CM_EVENT_CONNECT_RESPONSE] = "RDMA_CM_EVENT_CONNECT_RESPONSE",
		[RDMA_CM_EVENT_CONNECT_ERROR] = "RDMA_CM_EVENT_CONNECT_ERROR",
		[RDMA_CM_EVENT_UNREACHABLE] = "RDMA_CM_EVENT_UNREACHABLE",
		[RDMA_CM_EVENT_REJECTED] = "RDMA_CM_EVENT_REJECTED",
		[RDMA_CM_EVENT_ESTABLISHED] = "RDMA_CM_EVENT_ESTABLISHED",
		[RDMA_CM_EVENT_DISCONNECTED] = "RDMA_CM_EVENT_DISCONNECTED",
		[RDMA_CM_EVENT_DEVICE_REMOVAL] = "RDMA_CM_EVENT_DEVICE_REMOVAL",
		[RDMA_CM_EVENT_MULTICAST_JOIN] = "RDMA_CM_EVENT_MULTICAST_JOIN",
		[RDMA_CM_EVENT_MULTICAST_ERROR] = "RDMA_CM_EVENT_MULTICAST_ERROR",
		[RDMA_CM_EVENT_ADDR_CHANGE] = "RDMA_CM_EVENT_ADDR_CHANGE",
		[RDMA_CM_EVENT_TIMEWAIT_EXIT] = "RDMA_CM_EVENT_TIMEWAIT_EXIT",
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(names); i++)
		EXPECT_STREQ(names[i], rdma_event_str(i));
	EXPECT_STREQ("UNKNOWN EVENT", rdma_event_str(12345));
}

TEST(channel_create)
{
	struct rdma_event_channel *a, *b;

	a = rdma_create_event_channel();
	ASSERT_NE(NULL, a);
	b = rdma_create_event_channel();
	ASSERT_NE(NULL, b);
	EXPECT_NE(a->fd, b->fd);
	/* not inherited by programs that are started */
	EXPECT_NE(0, fcntl(a->fd, F_GETFD) & FD_CLOEXEC);
	EXPECT_EQ(0, fcntl(a->fd, F_GETFL) & O_NONBLOCK);
	EXPECT_FALSE(event_within(a, 0));
	rdma_destroy_event_channel(a);
	rdma_destroy_event_channel(b);
}

TEST(channel_destroy_closes)
{
	struct rdma_event_channel *channel;
	struct growth growth = {};
	int i;

	for (i = 0; i < 20; i++) {
		channel = rdma_create_event_channel();
		ASSERT_NE(NULL, channel);
		rdma_destroy_event_channel(channel);
		if (i == 3)
			growth = growth_now();
	}
	expect_no_growth(&growth);
}

/* "NULL if the request fails. On failure, errno" */
TEST(channel_out_of_fds)
{
	struct rdma_event_channel *channel;
	struct rlimit limit;

	/* Whatever the library opens once is open after this. */
	channel = rdma_create_event_channel();
	ASSERT_NE(NULL, channel);
	limit.rlim_cur = limit.rlim_max = channel->fd + 1;
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	errno = 0;
	EXPECT_EQ(NULL, rdma_create_event_channel());
	EXPECT_EQ(EMFILE, errno);
	rdma_destroy_event_channel(channel);
	channel = rdma_create_event_channel();
	EXPECT_NE(NULL, channel);
	rdma_destroy_event_channel(channel);
}

PAIR_FIXTURE(event)

/* "Users may make the fd non-blocking" */
TEST_F(event, nonblocking)
{
	struct rdma_cm_event *event;

	pair_listen(&self->pair);
	ASSERT_EQ(0, fcntl(self->pair.client_channel->fd, F_SETFL, O_NONBLOCK));
	err(EAGAIN, rdma_get_cm_event(self->pair.client_channel, &event));
	pair_resolve(&self->pair);
	err(EAGAIN, rdma_get_cm_event(self->pair.client_channel, &event));
}

/* "poll or select the fd, etc." */
TEST_F(event, epoll)
{
	struct epoll_event want = { .events = EPOLLIN }, got;
	struct pair *p = &self->pair;
	int epfd = epoll_create1(0);

	pair_listen(p);
	ASSERT_EQ(0, epoll_ctl(epfd, EPOLL_CTL_ADD, p->client_channel->fd, &want));
	ASSERT_EQ(0, epoll_wait(epfd, &got, 1, 0));
	ok(rdma_create_id(p->client_channel, &p->client, NULL, RDMA_PS_TCP));
	ok(rdma_resolve_addr(p->client, NULL, sa(&p->addr), RESOLVE_MS));
	ASSERT_EQ(1, epoll_wait(epfd, &got, 1, SOON_MS));
	EXPECT_EQ(EPOLLIN, got.events & EPOLLIN);
	expect_event(p->client_channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	EXPECT_EQ(0, epoll_wait(epfd, &got, 1, 0));
	close(epfd);
}

static void *get_one(void *channel)
{
	struct rdma_cm_event *event;

	return rdma_get_cm_event(channel, &event) ? NULL : event;
}

/* "by default, the call will block until an event is received" */
TEST_F(event, blocks_until_event)
{
	struct pair *p = &self->pair;
	struct timespec soon;
	pthread_t thread;
	void *event;

	pair_listen(p);
	ok(rdma_create_id(p->client_channel, &p->client, NULL, RDMA_PS_TCP));
	ASSERT_EQ(0, pthread_create(&thread, NULL, get_one, p->client_channel));
	clock_gettime(CLOCK_REALTIME, &soon);
	soon.tv_sec += 1;
	EXPECT_EQ(ETIMEDOUT, pthread_timedjoin_np(thread, &event, &soon));
	ok(rdma_resolve_addr(p->client, NULL, sa(&p->addr), RESOLVE_MS));
	ASSERT_EQ(0, pthread_join(thread, &event));
	ASSERT_NE(NULL, event);
	EXPECT_EQ(RDMA_CM_EVENT_ADDR_RESOLVED,
		  ((struct rdma_cm_event *)event)->event);
	ok(rdma_ack_cm_event(event));
}

/* id, status, event; listen_id for connection requests only */
TEST_F(event, fields)
{
	struct pair *p = &self->pair;
	struct rdma_cm_event *event;

	pair_listen(p);
	ok(rdma_create_id(p->client_channel, &p->client, p, RDMA_PS_TCP));
	ok(rdma_resolve_addr(p->client, NULL, sa(&p->addr), RESOLVE_MS));
	event = get_event(p->client_channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	EXPECT_EQ(p->client, event->id);
	EXPECT_EQ(NULL, event->listen_id);
	EXPECT_EQ(0, event->status);
	EXPECT_EQ(NULL, event->param.conn.private_data);
	EXPECT_EQ(0, event->param.conn.private_data_len);
	ok(rdma_ack_cm_event(event));
}

TEST_F(event, connect_request)
{
	struct pair *p = &self->pair;
	struct rdma_conn_param *got;
	const char *data;
	int i;

	p->connect_param = (struct rdma_conn_param){
		.private_data = "private",
		.private_data_len = 7,
		.responder_resources = 2,
		.initiator_depth = 3,
		.flow_control = 1,
		.retry_count = 5,
		.rnr_retry_count = 4,
	};
	pair_listen(p);
	pair_resolve(p);
	pair_request(p);
	EXPECT_EQ(0, p->request->status);
	EXPECT_NE(p->listen, p->request->id);
	/* A new id takes after its listener. */
	EXPECT_EQ(p->listen->context, p->server->context);
	EXPECT_EQ(p->server_channel, p->server->channel);
	EXPECT_EQ(RDMA_PS_TCP, p->server->ps);
	EXPECT_NE(NULL, p->server->verbs);
	EXPECT_EQ(1, p->server->port_num);

	got = &p->request->param.conn;
	/* may be longer than what was sent, and is zero then */
	ASSERT_LE(7, got->private_data_len);
	data = got->private_data;
	ASSERT_NE(NULL, data);
	EXPECT_EQ(0, memcmp(data, "private", 7));
	for (i = 7; i < got->private_data_len; i++)
		EXPECT_EQ(0, data[i]);
	/* "matches the initiator depth specified by the remote node" */
	EXPECT_EQ(3, got->responder_resources);
	EXPECT_EQ(2, got->initiator_depth);
	EXPECT_EQ(1, got->flow_control);
	EXPECT_EQ(5, got->retry_count);
	EXPECT_EQ(4, got->rnr_retry_count);
	EXPECT_EQ(0, got->srq);
	EXPECT_EQ(p->client->qp->qp_num, got->qp_num);
	/* addresses */
	EXPECT_TRUE(same_ip(sa(&p->addr), rdma_get_local_addr(p->server)));
	EXPECT_TRUE(same_ip(rdma_get_local_addr(p->client),
			    rdma_get_peer_addr(p->server)));
	EXPECT_EQ(rdma_get_src_port(p->client), rdma_get_dst_port(p->server));
	EXPECT_EQ(rdma_get_src_port(p->listen), rdma_get_src_port(p->server));
	EXPECT_LE(1, p->server->route.num_paths);

	/* Destroying a request refuses it. */
	pair_ack(p);
	rdma_destroy_qp(p->server);
	ok(rdma_destroy_id(p->server));
	p->server = NULL;
	ok(rdma_ack_cm_event(get_event(p->client_channel,
				       RDMA_CM_EVENT_REJECTED)));
}

TEST_F(event, established_carries_data)
{
	struct pair *p = &self->pair;
	struct rdma_cm_event *event;

	p->connect_param = (struct rdma_conn_param){
		.responder_resources = 4, .initiator_depth = 4,
	};
	p->accept_param = (struct rdma_conn_param){
		.private_data = "answer",
		.private_data_len = 6,
		.responder_resources = 2,
		.initiator_depth = 1,
		.rnr_retry_count = 3,
		.flow_control = 1,
	};
	pair_listen(p);
	pair_resolve(p);
	pair_request(p);
	pair_accept(p);
	event = get_event(p->client_channel, RDMA_CM_EVENT_ESTABLISHED);
	ASSERT_LE(6, event->param.conn.private_data_len);
	EXPECT_EQ(0, memcmp(event->param.conn.private_data, "answer", 6));
	EXPECT_EQ(1, event->param.conn.responder_resources);
	EXPECT_EQ(2, event->param.conn.initiator_depth);
	EXPECT_EQ(3, event->param.conn.rnr_retry_count);
	EXPECT_EQ(p->server->qp->qp_num, event->param.conn.qp_num);
	ok(rdma_ack_cm_event(event));
	expect_event(p->server_channel, RDMA_CM_EVENT_ESTABLISHED);
}

TEST(null_arguments)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();

	ASSERT_NE(NULL, channel);
	err(EINVAL, rdma_ack_cm_event(NULL));
	err(EINVAL, rdma_get_cm_event(channel, NULL));
	rdma_destroy_event_channel(channel);
}

/* Several ids on one channel: each event names its own. */
TEST_F(event, many_ids_one_channel)
{
	struct rdma_cm_id *id[4], *seen[4];
	struct pair *p = &self->pair;
	struct rdma_cm_event *event;
	unsigned int i, j;

	pair_listen(p);
	for (i = 0; i < ARRAY_SIZE(id); i++) {
		ok(rdma_create_id(p->client_channel, &id[i], &id[i], RDMA_PS_TCP));
		ok(rdma_resolve_addr(id[i], NULL, sa(&p->addr), RESOLVE_MS));
	}
	for (i = 0; i < ARRAY_SIZE(id); i++) {
		event = get_event(p->client_channel, RDMA_CM_EVENT_ADDR_RESOLVED);
		seen[i] = event->id;
		for (j = 0; j < i; j++)
			EXPECT_NE(seen[j], event->id);
		EXPECT_EQ(event->id, *(struct rdma_cm_id **)event->id->context);
		ok(rdma_ack_cm_event(event));
	}
	for (i = 0; i < ARRAY_SIZE(id); i++)
		ok(rdma_destroy_id(id[i]));
}

/* Events of an id that is destroyed are not seen any more. */
TEST_F(event, destroy_takes_events)
{
	struct pair *p = &self->pair;

	pair_listen(p);
	ok(rdma_create_id(p->client_channel, &p->client, NULL, RDMA_PS_TCP));
	ok(rdma_resolve_addr(p->client, NULL, sa(&p->addr), RESOLVE_MS));
	ASSERT_TRUE(event_within(p->client_channel, SOON_MS));
	ok(rdma_destroy_id(p->client));
	p->client = NULL;
	expect_silence(p->client_channel);
}

static void *destroy_thread(void *id)
{
	return (void *)(intptr_t)outcome(rdma_destroy_id(id));
}

/* "Destruction of an rdma_cm_id will block until related events have been acknowledged." */
TEST_F(event, destroy_waits_for_ack)
{
	struct pair *p = &self->pair;
	struct rdma_cm_event *event;
	pthread_t thread;

	pair_listen(p);
	ok(rdma_create_id(p->client_channel, &p->client, NULL, RDMA_PS_TCP));
	ok(rdma_resolve_addr(p->client, NULL, sa(&p->addr), RESOLVE_MS));
	event = get_event(p->client_channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	ASSERT_EQ(0, pthread_create(&thread, NULL, destroy_thread, p->client));
	EXPECT_FALSE(ended_within(thread, NEVER_MS));
	/* still there to be read */
	EXPECT_EQ(p->client, event->id);
	EXPECT_EQ(RDMA_CM_EVENT_ADDR_RESOLVED, event->event);
	ok(rdma_ack_cm_event(event));
	EXPECT_TRUE(ended_within(thread, SOON_MS));
	p->client = NULL;
}

struct late_ack {
	struct rdma_cm_event *event;
	int ms;
	bool done;
};

static void *ack_thread(void *arg)
{
	struct late_ack *late = arg;

	sleep_ms(late->ms);
	__atomic_store_n(&late->done, true, __ATOMIC_RELEASE);
	rdma_ack_cm_event(late->event);
	return NULL;
}

static struct rdma_cm_event *_resolved(struct __test_metadata *_metadata,
				       struct pair *p, struct rdma_cm_id **id)
{
	ok(rdma_create_id(p->client_channel, id, NULL, RDMA_PS_TCP));
	ok(rdma_resolve_addr(*id, NULL, sa(&p->addr), RESOLVE_MS));
	return get_event(p->client_channel, RDMA_CM_EVENT_ADDR_RESOLVED);
}

/*
 * The same if the thread that destroys has got the event, and handed it to
 * another: its last one, and then, for as long as it takes, one before it.
 */
TEST_F(event, destroy_waits_for_ack_of_handed_on)
{
	struct pair *p = &self->pair;
	struct late_ack late = { .ms = NEVER_MS };
	struct rdma_cm_event *event;
	struct rdma_cm_id *other;
	pthread_t thread;

	pair_listen(p);
	late.event = _resolved(_metadata, p, &p->client);
	ASSERT_EQ(0, pthread_create(&thread, NULL, ack_thread, &late));
	ok(rdma_destroy_id(p->client));
	EXPECT_TRUE(__atomic_load_n(&late.done, __ATOMIC_ACQUIRE));
	ASSERT_EQ(0, pthread_join(thread, NULL));

	late = (struct late_ack){ .ms = 3000 };
	late.event = _resolved(_metadata, p, &p->client);
	event = _resolved(_metadata, p, &other);
	ASSERT_EQ(0, pthread_create(&thread, NULL, ack_thread, &late));
	ok(rdma_destroy_id(p->client));
	p->client = NULL;
	EXPECT_TRUE(__atomic_load_n(&late.done, __ATOMIC_ACQUIRE));
	ASSERT_EQ(0, pthread_join(thread, NULL));
	ok(rdma_ack_cm_event(event));
	ok(rdma_destroy_id(other));
}

/*
 * pthread_cancel(3)
 */

static void *get_event_thread(void *channel)
{
	struct rdma_cm_event *event;

	rdma_get_cm_event(channel, &event);
	return NULL;
}

static void *get_request_thread(void *listen)
{
	struct rdma_cm_id *id;

	rdma_get_request(listen, &id);
	return NULL;
}

static void cancel(struct __test_metadata *_metadata, void *(*start)(void *),
		   void *arg)
{
	pthread_t thread;
	void *result;

	ASSERT_EQ(0, pthread_create(&thread, NULL, start, arg));
	sleep_ms(NEVER_MS);
	ASSERT_EQ(0, pthread_cancel(thread));
	ASSERT_EQ(0, pthread_join(thread, &result));
	EXPECT_EQ(PTHREAD_CANCELED, result);
}

/* Calls that wait can be cancelled, and nothing stays locked. */
TEST_F(event, cancelled)
{
	struct sockaddr_storage addr = my_addr(variant->family, 0);
	struct pair *p = &self->pair;
	struct rdma_cm_id *listen;

	pair_listen(p);
	ok(rdma_create_id(NULL, &listen, NULL, RDMA_PS_TCP));
	ok(rdma_bind_addr(listen, sa(&addr)));
	ok(rdma_listen(listen, 1));
	cancel(_metadata, get_event_thread, p->server_channel);
	cancel(_metadata, get_request_thread, listen);
	ok(rdma_destroy_id(listen));
	pair_connect(p);
}

/*
 * rdma_migrate_id
 */

/* "moves any pending events associated with the rdma_cm_id to the new channel" */
TEST_F(event, migrate_moves_pending)
{
	struct rdma_event_channel *other = rdma_create_event_channel();
	struct pair *p = &self->pair;
	struct rdma_cm_event *event;

	ASSERT_NE(NULL, other);
	pair_listen(p);
	ok(rdma_create_id(p->client_channel, &p->client, NULL, RDMA_PS_TCP));
	ok(rdma_resolve_addr(p->client, NULL, sa(&p->addr), RESOLVE_MS));
	ASSERT_TRUE(event_within(p->client_channel, SOON_MS));
	ok(rdma_migrate_id(p->client, other));
	EXPECT_EQ(other, p->client->channel);
	EXPECT_FALSE(event_within(p->client_channel, 0));
	event = get_event(other, RDMA_CM_EVENT_ADDR_RESOLVED);
	EXPECT_EQ(p->client, event->id);
	EXPECT_EQ(p->client->verbs != NULL, true);
	ok(rdma_ack_cm_event(event));

	/* and so with what comes after */
	ok(rdma_resolve_route(p->client, RESOLVE_MS));
	expect_event(other, RDMA_CM_EVENT_ROUTE_RESOLVED);
	expect_silence(p->client_channel);
	ok(rdma_destroy_id(p->client));
	p->client = NULL;
	rdma_destroy_event_channel(other);
}

/* Others' events stay where they are. */
TEST_F(event, migrate_leaves_others)
{
	struct rdma_event_channel *other = rdma_create_event_channel();
	struct pair *p = &self->pair;
	struct rdma_cm_event *event;
	struct rdma_cm_id *id[3];
	int i;

	ASSERT_NE(NULL, other);
	pair_listen(p);
	for (i = 0; i < 3; i++) {
		ok(rdma_create_id(p->client_channel, &id[i], NULL, RDMA_PS_TCP));
		ok(rdma_resolve_addr(id[i], NULL, sa(&p->addr), RESOLVE_MS));
		/* there, before the next one's */
		ASSERT_TRUE(event_within(p->client_channel, SOON_MS));
		sleep_ms(NEVER_MS);
	}
	ok(rdma_migrate_id(id[1], other));
	event = get_event(p->client_channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	EXPECT_EQ(id[0], event->id);
	ok(rdma_ack_cm_event(event));
	event = get_event(p->client_channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	EXPECT_EQ(id[2], event->id);
	ok(rdma_ack_cm_event(event));
	EXPECT_FALSE(event_within(p->client_channel, 0));
	event = get_event(other, RDMA_CM_EVENT_ADDR_RESOLVED);
	EXPECT_EQ(id[1], event->id);
	ok(rdma_ack_cm_event(event));
	for (i = 0; i < 3; i++)
		ok(rdma_destroy_id(id[i]));
	rdma_destroy_event_channel(other);
}

struct migrate {
	struct rdma_cm_id *id;
	struct rdma_event_channel *channel;
};

static void *migrate_thread(void *arg)
{
	struct migrate *m = arg;

	return (void *)(intptr_t)outcome(rdma_migrate_id(m->id, m->channel));
}

/* "This call will block while there are any unacknowledged events" */
TEST_F(event, migrate_waits_for_ack)
{
	struct rdma_event_channel *other = rdma_create_event_channel();
	struct pair *p = &self->pair;
	struct rdma_cm_event *event;
	struct migrate m;
	pthread_t thread;

	ASSERT_NE(NULL, other);
	pair_listen(p);
	ok(rdma_create_id(p->client_channel, &p->client, NULL, RDMA_PS_TCP));
	ok(rdma_resolve_addr(p->client, NULL, sa(&p->addr), RESOLVE_MS));
	event = get_event(p->client_channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	m = (struct migrate){ p->client, other };
	ASSERT_EQ(0, pthread_create(&thread, NULL, migrate_thread, &m));
	EXPECT_FALSE(ended_within(thread, NEVER_MS));
	ok(rdma_ack_cm_event(event));
	EXPECT_TRUE(ended_within(thread, SOON_MS));
	EXPECT_EQ(other, p->client->channel);
	ok(rdma_destroy_id(p->client));
	p->client = NULL;
	rdma_destroy_event_channel(other);
}

/* "If the channel parameter is NULL ... synchronous operation mode" */
TEST_F(event, migrate_to_synchronous)
{
	struct pair *p = &self->pair;

	pair_listen(p);
	ok(rdma_create_id(p->client_channel, &p->client, NULL, RDMA_PS_TCP));
	ok(rdma_migrate_id(p->client, NULL));
	ASSERT_NE(NULL, p->client->channel);
	EXPECT_NE(p->client_channel, p->client->channel);
	ok(rdma_resolve_addr(p->client, NULL, sa(&p->addr), RESOLVE_MS));
	ASSERT_NE(NULL, p->client->event);
	EXPECT_EQ(RDMA_CM_EVENT_ADDR_RESOLVED, p->client->event->event);
	ok(rdma_resolve_route(p->client, RESOLVE_MS));
	EXPECT_EQ(RDMA_CM_EVENT_ROUTE_RESOLVED, p->client->event->event);

	/* and back: what it held in id->event is released by that */
	ok(rdma_migrate_id(p->client, p->client_channel));
	EXPECT_EQ(p->client_channel, p->client->channel);
	EXPECT_EQ(NULL, p->client->event);
}

/* synchronous already */
TEST_F(event, error_migrate_synchronous)
{
	struct pair *p = &self->pair;

	ok(rdma_create_id(NULL, &p->client, NULL, RDMA_PS_TCP));
	err(EINVAL, rdma_migrate_id(p->client, NULL));
}

/* A listener's requests come on its new channel, those made there too. */
TEST_F(event, migrate_listener)
{
	struct rdma_event_channel *other = rdma_create_event_channel();
	struct pair *p = &self->pair;

	ASSERT_NE(NULL, other);
	pair_listen(p);
	ok(rdma_migrate_id(p->listen, other));
	pair_resolve(p);
	ok(rdma_connect(p->client, &p->connect_param));
	p->request = get_event(other, RDMA_CM_EVENT_CONNECT_REQUEST);
	p->server = p->request->id;
	EXPECT_EQ(other, p->server->channel);
	EXPECT_EQ(p->listen, p->request->listen_id);
	pair_destroy(p);
	rdma_destroy_event_channel(other);
}

/*
 * A request that nobody has read moves along. rdma_ucm moves the event but
 * leaves its id on the old file.
 */
TEST_F(event, migrate_listener_with_request)
{
	struct rdma_event_channel *other = rdma_create_event_channel();
	struct ibv_qp_init_attr attr = qp_attr(IBV_QPT_RC);
	struct pair *p = &self->pair;

	not_on_stock("a request's id stays on the old channel");
	ASSERT_NE(NULL, other);
	pair_listen(p);
	pair_resolve(p);
	ok(rdma_connect(p->client, &p->connect_param));
	ASSERT_TRUE(event_within(p->server_channel, SOON_MS));
	ok(rdma_migrate_id(p->listen, other));
	p->request = get_event(other, RDMA_CM_EVENT_CONNECT_REQUEST);
	p->server = p->request->id;
	EXPECT_EQ(other, p->server->channel);
	ok(rdma_create_qp(p->server, NULL, &attr));
	pair_accept(p);
	expect_event(p->client_channel, RDMA_CM_EVENT_ESTABLISHED);
	expect_event(other, RDMA_CM_EVENT_ESTABLISHED);
	send_message(p->client, p->server);
	pair_destroy(p);
	rdma_destroy_event_channel(other);
}

/* A connection goes on while its ids move. */
TEST_F(event, migrate_connected)
{
	struct rdma_event_channel *other = rdma_create_event_channel();
	struct pair *p = &self->pair;

	ASSERT_NE(NULL, other);
	pair_connect(p);
	ok(rdma_migrate_id(p->server, other));
	send_message(p->client, p->server);
	ok(rdma_disconnect(p->client));
	expect_event(other, RDMA_CM_EVENT_DISCONNECTED);
	EXPECT_FALSE(event_within(p->server_channel, 0));
	ok(rdma_disconnect(p->server));
	expect_event(p->client_channel, RDMA_CM_EVENT_DISCONNECTED);
	pair_destroy(p);
	rdma_destroy_event_channel(other);
}

/* Somebody asleep on the new channel is woken by what moves there. */
TEST_F(event, migrate_wakes_reader)
{
	struct rdma_event_channel *other = rdma_create_event_channel();
	struct pair *p = &self->pair;
	pthread_t thread;
	void *event;

	not_on_stock("its reader sleeps on");
	ASSERT_NE(NULL, other);
	pair_listen(p);
	ok(rdma_create_id(p->client_channel, &p->client, NULL, RDMA_PS_TCP));
	ok(rdma_resolve_addr(p->client, NULL, sa(&p->addr), RESOLVE_MS));
	ASSERT_TRUE(event_within(p->client_channel, SOON_MS));
	ASSERT_EQ(0, pthread_create(&thread, NULL, get_one, other));
	sleep_ms(NEVER_MS);	/* until it sleeps */
	ok(rdma_migrate_id(p->client, other));
	ASSERT_EQ(0, pthread_join(thread, &event));
	ASSERT_NE(NULL, event);
	ok(rdma_ack_cm_event(event));
	ok(rdma_destroy_id(p->client));
	p->client = NULL;
	rdma_destroy_event_channel(other);
}

TEST_HARNESS_MAIN
