// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The RDMA device goes away (rdma link delete) while endpoints are in every
 * state. Each is told, once; the device does not wait for the endpoint's owner;
 * what is left can only be destroyed; and when the device is back, the same
 * context uses it again.
 */
#include "rdma_ep_utils.h"
#include "rdma_link.h"

/* on a slow machine; a hang takes for ever, and an id that ib_cm keeps a minute */
#define PROMPT_MS	(15000 * slow() + (ib_cm_kept() != self->ctx.kept ? 70000 : 0))

/* Until the new device can be used */
static int add_device(struct rdma_link *dev)
{
	int ret, i;

	ret = rdma_link_add(dev);
	/* its GIDs come a little later */
	for (i = 0; !ret && i < 100; i++) {
		union test_addr addr[2] = { host_addr(AF_INET, 0),
					    host_addr(AF_INET6, 0) };
		int fd = open_ep(), bound = 0, j;

		for (j = 0; j < 2; j++) {
			uint32_t ep;

			try_create(fd, PS_TCP, -1, 0, &ep);
			bound += !try_bind(fd, ep, &addr[j], NULL);
		}
		close(fd);
		if (bound == 2)
			break;
		usleep(50000);
	}
	return ret;
}

/* The last one makes the netdev ask for neighbours, which others are not to wait for */
enum stage {
	BOUND,
	ADDR_RESOLVED,
	ROUTE_RESOLVED,
	LISTENING,
	CONNECTING,
	REQUESTED,
	RESPONDED,
	ACCEPTING,
	CONNECTED,
	DISCONNECTED,
	FAILED,
	UD_BOUND,
	UD_CONNECTED,
	JOINED,
	RESOLVING,
	STAGES
};

/*
 * An endpoint in every stage. One removal is for all of them: it takes soft-RoCE
 * half a minute on a slow machine, a thousand GIDs having three files in sysfs
 * each.
 */
FIXTURE(removal)
{
	struct test_ctx ctx;
	int fd;
	struct rdma_link dev;
	struct situation s[STAGES];
	uint32_t ep[STAGES];
	struct rdma_ep_record rec;
};

static uint32_t put_into(struct __test_metadata *_metadata, int fd,
			 enum stage stage, struct situation *s)
{
	struct rdma_ep_conn_param param = conn_param(NULL, 0);
	union test_addr host = host_addr(AF_INET, 0);
	union test_addr nobody = nobody_addr(AF_INET, 4711);
	union test_addr refused = host_addr(AF_INET, 7);
	union test_addr group = make_addr("239.1.1.3", 0);
	struct rdma_ep_record rec;
	uint32_t ep = 0, out;

	s->family = AF_INET;
	s->ps = stage == UD_BOUND || stage == UD_CONNECTED || stage == JOINED ?
		PS_UDP : PS_TCP;
	switch (stage) {
	case BOUND:
	case UD_BOUND:
	case JOINED:
		do_ok(try_create(fd, s->ps, -1, 0, &ep));
		do_ok(try_bind(fd, ep, &host, NULL));
		if (stage != JOINED)
			break;
		do_ok(try_join(fd, ep, 0, &group, 0, &out));
		wait_event(_metadata, fd, ep, RDMA_EP_EVENT_MULTICAST_JOIN, &rec);
		break;
	case RESOLVING:
		do_ok(try_create(fd, PS_TCP, -1, 0, &ep));
		do_ok(try_bind(fd, ep, &host, NULL));
		EXPECT_EQ(0, host_netdev_arp(true));
		do_ok(try_resolve_addr(fd, ep, 0, NULL, &nobody, 600000, NULL));
		break;
	case ADDR_RESOLVED:
	case ROUTE_RESOLVED:
	case CONNECTING:
		do_ok(try_create_ep(fd, stage == ADDR_RESOLVED ?
				    RDMA_EP_CREATE_EP_NO_ROUTE : 0, PS_TCP,
				    NULL, &nobody, NULL, &ep));
		if (stage == CONNECTING)
			do_ok(try_connect(fd, ep, 0, &param, NULL));
		break;
	case FAILED:
		do_ok(try_create_ep(fd, 0, PS_TCP, NULL, &refused, NULL, &ep));
		do_ok(try_connect(fd, ep, RDMA_EP_F_WAIT, &param, &rec));
		EXPECT_EVENT(REJECTED, &rec);
		break;
	case LISTENING:
		make_listener(_metadata, fd, s, 4);
		ep = s->listener;
		break;
	case REQUESTED:
	case ACCEPTING:
		make_request(_metadata, fd, s);
		ep = s->passive;
		if (stage == ACCEPTING)
			do_ok(try_accept(fd, ep, 0, &param, NULL));
		break;
	case RESPONDED:
		make_responded(_metadata, fd, s);
		ep = s->active;
		break;
	case CONNECTED:
		make_connected(_metadata, fd, s);
		ep = s->active;
		break;
	case DISCONNECTED:
		make_connected(_metadata, fd, s);
		ep = s->active;
		do_ok(try_disconnect(fd, s->passive, 0, NULL));
		wait_event(_metadata, fd, ep, RDMA_EP_EVENT_DISCONNECTED, &rec);
		do_ok(try_disconnect(fd, ep, 0, NULL));
		break;
	case UD_CONNECTED:
		make_request(_metadata, fd, s);
		ep = s->active;
		do_ok(try_accept(fd, s->passive, 0, &param, NULL));
		wait_event(_metadata, fd, ep, RDMA_EP_EVENT_ESTABLISHED, &rec);
		break;
	case STAGES:
		break;
	}
	return ep;
}

FIXTURE_SETUP(removal)
{
	enum stage stage;

	ASSERT_TRUE(rdma_link_find(&self->dev, host_netdev()));
	ctx_open(_metadata, &self->ctx);
	self->fd = self->ctx.fd;
	for (stage = 0; stage < STAGES; stage++) {
		self->ep[stage] = put_into(_metadata, self->fd, stage, &self->s[stage]);
		ASSERT_NE(0, self->ep[stage]) TH_LOG("stage %u", stage);
	}
}

FIXTURE_TEARDOWN(removal)
{
	struct rdma_link dev;

	EXPECT_EQ(0, host_netdev_arp(false));
	if (!rdma_link_find(&dev, host_netdev()))
		EXPECT_EQ(0, add_device(&self->dev));
	ctx_close(_metadata, &self->ctx);
}

/* Nothing but this is possible with what is left */
static void is_tombstone(struct __test_metadata *_metadata, int fd, uint32_t ep)
{
	struct rdma_ep_conn_param param = conn_param(NULL, 0);
	union test_addr host = host_addr(AF_INET, 0);
	union test_addr group = make_addr("239.1.1.4", 0);
	struct ib_uverbs_qp_attr attr;
	struct rdma_ep_record rec;
	uint32_t out;
	uint8_t tos = 1;

	EXPECT_EQ(RDMA_EP_STATE_REMOVED, ep_state(_metadata, fd, ep));
	do_err(ENODEV, DEVICE_REMOVED, try_bind(fd, ep, &host, NULL));
	do_err(ENODEV, DEVICE_REMOVED, try_listen(fd, ep, 0, NULL));
	do_err(ENODEV, DEVICE_REMOVED,
	       try_resolve_addr(fd, ep, 0, NULL, &host, 100, NULL));
	do_err(ENODEV, DEVICE_REMOVED, try_resolve_route(fd, ep, 0, NULL));
	do_err(ENODEV, DEVICE_REMOVED, try_connect(fd, ep, 0, &param, NULL));
	do_err(ENODEV, DEVICE_REMOVED, try_accept(fd, ep, 0, &param, NULL));
	do_err(ENODEV, DEVICE_REMOVED, try_establish(fd, ep));
	do_err(ENODEV, DEVICE_REMOVED, try_reject(fd, ep, 0, NULL, 0));
	do_err(ENODEV, DEVICE_REMOVED, try_disconnect(fd, ep, 0, NULL));
	do_err(ENODEV, DEVICE_REMOVED, try_notify(fd, ep, 4));
	do_err(ENODEV, DEVICE_REMOVED, try_init_qp_attr(fd, ep, 1, &attr));
	do_err(ENODEV, DEVICE_REMOVED, try_join(fd, ep, 0, &group, 0, &out));
	do_err(ENODEV, DEVICE_REMOVED,
	       try_query(fd, ep, RDMA_EP_REC_INIT, &rec));
	do_err(ENODEV, DEVICE_REMOVED,
	       try_set_option(fd, ep, RDMA_EP_OPT_TOS, &tos, 1));
	/* events of one's own still come */
	do_ok(try_write_event(fd, ep, 0, 5));
	wait_event(_metadata, fd, ep, RDMA_EP_EVENT_USER, &rec);
}

static void is_told_once(struct __test_metadata *_metadata, int fd, uint32_t ep)
{
	struct rdma_ep_record rec;
	bool told = false;
	int ret;

	/* others may have come before: the end of timewait, a reject */
	while (!told) {
		do_ok(try_wait(fd, ep, 0, &rec));
		EXPECT_GOOD_RECORD(&rec);
		told = rec.type == RDMA_EP_EVENT_DEVICE_REMOVAL;
	}
	EXPECT_EQ(RDMA_EP_REASON_DEVICE_REMOVED, ep_reason.code);
	usleep(200000);
	while (!(ret = try_wait(fd, ep, RDMA_EP_WAIT_NOWAIT, &rec)))
		EXPECT_NE(RDMA_EP_EVENT_DEVICE_REMOVAL, rec.type);
	/* and nothing can come that is worth waiting for */
	EXPECT_EQ(-ENODEV, ret);

	is_tombstone(_metadata, fd, ep);
	do_ok(try_destroy(fd, ep));
}

TEST_F(removal, is_told_once)
{
	uint64_t start = now_ms();
	enum stage stage;

	ASSERT_EQ(0, rdma_link_delete(&self->dev));
	EXPECT_GT(PROMPT_MS, now_ms() - start);
	for (stage = 0; stage < STAGES; stage++) {
		is_told_once(_metadata, self->fd, self->ep[stage]);
		ASSERT_TRUE(_metadata->passed) TH_LOG("stage %u", stage);
	}
}

/* The same context goes on with the device when it is back */
TEST_F(removal, device_comes_back)
{
	struct situation s = { .family = AF_INET6, .ps = PS_TCP };
	enum stage stage;

	ASSERT_EQ(0, rdma_link_delete(&self->dev));
	ASSERT_EQ(0, add_device(&self->dev));
	make_connected(_metadata, self->fd, &s);
	/* with a tombstone still around, and then without */
	for (stage = 0; stage < STAGES; stage++) {
		EXPECT_EQ(RDMA_EP_STATE_REMOVED,
			  ep_state(_metadata, self->fd, self->ep[stage]));
		do_ok(try_destroy(self->fd, self->ep[stage]));
	}
}

/* Closing with the tombstones in it, nothing read */
TEST_F(removal, close)
{
	uint64_t start;

	ASSERT_EQ(0, rdma_link_delete(&self->dev));
	start = now_ms();
	ASSERT_EQ(0, close(self->fd));
	self->ctx.fd = -1;
	EXPECT_GT(PROMPT_MS, now_ms() - start);
}

/*
 * Situations that are not those of a single endpoint
 */

FIXTURE(device)
{
	struct test_ctx ctx;
	int fd;
	struct rdma_link dev;
	struct situation s;
	struct rdma_ep_record rec;
};

FIXTURE_SETUP(device)
{
	ASSERT_TRUE(rdma_link_find(&self->dev, host_netdev()));
	ctx_open(_metadata, &self->ctx);
	self->fd = self->ctx.fd;
	self->s.family = AF_INET;
	self->s.ps = PS_TCP;
}

FIXTURE_TEARDOWN(device)
{
	struct rdma_link dev;

	if (!rdma_link_find(&dev, host_netdev()))
		EXPECT_EQ(0, add_device(&self->dev));
	ctx_close(_metadata, &self->ctx);
}

/* A wildcard listener belongs to no device: it takes the new one's requests */
TEST_F(device, wildcard_listener_goes_on)
{
	struct rdma_ep_conn_param param = conn_param(NULL, 0);
	union test_addr addr = any_addr(AF_INET, 0);

	do_ok(try_create(self->fd, PS_TCP, -1, 0, &self->s.listener));
	do_ok(try_bind(self->fd, self->s.listener, &addr, &self->rec));
	do_ok(try_listen(self->fd, self->s.listener, 0, NULL));
	addr = from_ep_addr(&self->rec.info.src);
	self->s.addr = host_addr(AF_INET, addr_port(&addr));

	ASSERT_EQ(0, rdma_link_delete(&self->dev));
	EXPECT_EQ(RDMA_EP_STATE_LISTENING,
		  ep_state(_metadata, self->fd, self->s.listener));
	expect_silence(_metadata, self->fd, self->s.listener, 100);
	ASSERT_EQ(0, add_device(&self->dev));
	self->s.active = make_active(_metadata, self->fd, &self->s);
	do_ok(try_connect(self->fd, self->s.active, 0, &param, NULL));
	wait_event(_metadata, self->fd, self->s.listener,
		   RDMA_EP_EVENT_CONNECT_REQUEST, &self->rec);
}

/* Requests that nobody has read do not keep the device */
TEST_F(device, unread_requests)
{
	struct rdma_ep_conn_param param;
	uint64_t start;
	uint32_t child;
	int i;

	make_listener(_metadata, self->fd, &self->s, 8);
	for (i = 0; i < 3; i++) {
		self->s.active = make_active(_metadata, self->fd, &self->s);
		param = conn_param(NULL, 0);
		do_ok(try_connect(self->fd, self->s.active, 0, &param, NULL));
	}
	do {
		usleep(10000);
		do_ok(try_query(self->fd, self->s.listener, RDMA_EP_REC_INFO,
				&self->rec));
	} while (self->rec.info.requests < 3);

	start = now_ms();
	ASSERT_EQ(0, rdma_link_delete(&self->dev));
	EXPECT_GT(PROMPT_MS, now_ms() - start);
	/* one that is read now is a tombstone from the start */
	wait_event(_metadata, self->fd, self->s.listener,
		   RDMA_EP_EVENT_CONNECT_REQUEST, &self->rec);
	child = self->rec.child;
	EXPECT_EQ(RDMA_EP_STATE_REMOVED, ep_state(_metadata, self->fd, child));
	/* its peer's id may have gone first, and have told it */
	do_ok(try_wait(self->fd, child, 0, &self->rec));
	if (self->rec.type == RDMA_EP_EVENT_REJECTED)
		do_ok(try_wait(self->fd, child, 0, &self->rec));
	EXPECT_EQ(RDMA_EP_EVENT_DEVICE_REMOVAL, self->rec.type);
	EXPECT_GOOD_RECORD(&self->rec);
	do_err(ENODEV, DEVICE_REMOVED, try_accept(self->fd, child, 0, &param,
						  NULL));
	do_ok(try_destroy(self->fd, child));
	/* the others go with the listener */
	do_ok(try_destroy(self->fd, self->s.listener));
}

struct waiting {
	pthread_t thread;
	int fd;
	uint32_t ep;
	int ret;
	struct rdma_ep_record rec;
};

static void *waiting_connect(void *arg)
{
	struct rdma_ep_conn_param param = conn_param(NULL, 0);
	struct waiting *w = arg;

	w->ret = try_connect(w->fd, w->ep, RDMA_EP_F_WAIT, &param, &w->rec);
	return NULL;
}

static void *waiting_wait(void *arg)
{
	struct waiting *w = arg;

	w->ret = try_wait(w->fd, w->ep, 0, &w->rec);
	return NULL;
}

/* Threads that wait are told, and come back */
TEST_F(device, waiters)
{
	union test_addr nobody = nobody_addr(AF_INET, 4711);
	struct waiting w[2];
	int i;

	for (i = 0; i < 2; i++) {
		w[i].fd = self->fd;
		do_ok(try_create_ep(self->fd, 0, PS_TCP, NULL, &nobody, NULL,
				    &w[i].ep));
		ASSERT_EQ(0, pthread_create(&w[i].thread, NULL, i ?
					    waiting_wait : waiting_connect,
					    &w[i]));
	}
	usleep(300000);
	ASSERT_EQ(0, rdma_link_delete(&self->dev));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, pthread_join(w[i].thread, NULL));
		EXPECT_EQ(0, w[i].ret);
		EXPECT_EVENT(DEVICE_REMOVAL, &w[i].rec);
		EXPECT_EQ(-ENODEV, try_wait(self->fd, w[i].ep,
					    RDMA_EP_WAIT_NOWAIT, &self->rec));
	}
}

/* A channel tells of all its endpoints */
TEST_F(device, channel)
{
	union test_addr host = host_addr(AF_INET, 0);
	uint32_t ep[20];
	int chan;
	size_t i, j;

	do_ok(try_create_channel(self->fd, O_NONBLOCK, &chan));
	for (i = 0; i < ARRAY_SIZE(ep); i++) {
		do_ok(try_create(self->fd, PS_TCP, chan, i, &ep[i]));
		do_ok(try_bind(self->fd, ep[i], &host, NULL));
	}
	ASSERT_EQ(0, rdma_link_delete(&self->dev));
	for (i = 0; i < ARRAY_SIZE(ep); i++) {
		ASSERT_TRUE(is_readable(chan, 10000));
		read_event(_metadata, chan, RDMA_EP_EVENT_DEVICE_REMOVAL,
			   &self->rec);
		ASSERT_GT(ARRAY_SIZE(ep), self->rec.cookie);
		ASSERT_EQ(ep[self->rec.cookie], self->rec.ep);
		ep[self->rec.cookie] = 0;
	}
	for (j = 0; j < ARRAY_SIZE(ep); j++)
		EXPECT_EQ(0, ep[j]);
	EXPECT_EQ(-EAGAIN, try_read(chan, &self->rec));
	close(chan);
}

/*
 * Under load
 */

struct load {
	pthread_t thread;
	int fd;
	volatile bool *stop;
	unsigned int seed;
};

/* One end's whole life, over and over, whatever the device does */
static void *load_thread(void *arg)
{
	struct load *l = arg;
	uint16_t port = 20000 + l->seed;

	while (!*l->stop) {
		struct rdma_ep_conn_param param = conn_param(NULL, 0);
		union test_addr addr = host_addr(AF_INET, port);
		uint32_t listener, active, child = 0;
		struct rdma_ep_record rec;
		int i;

		try_create_ep(l->fd, RDMA_EP_CREATE_EP_PASSIVE, PS_TCP, &addr,
			      NULL, NULL, &listener);
		try_listen(l->fd, listener, 0, NULL);
		try_create_ep(l->fd, 0, PS_TCP, NULL, &addr, NULL, &active);
		try_connect(l->fd, active, 0, &param, NULL);
		for (i = 0; i < 20; i++) {
			param = conn_param(NULL, 0);
			if (!child && !try_wait(l->fd, listener,
						RDMA_EP_WAIT_NOWAIT, &rec) &&
			    rec.type == RDMA_EP_EVENT_CONNECT_REQUEST) {
				child = rec.child;
				try_accept(l->fd, child, 0, &param, NULL);
			}
			if (!try_wait(l->fd, active, RDMA_EP_WAIT_NOWAIT,
				      &rec) &&
			    rec.type == RDMA_EP_EVENT_CONNECT_RESPONSE)
				try_establish(l->fd, active);
			usleep(rand_r(&l->seed) % 1000);
		}
		try_disconnect(l->fd, active, 0, NULL);
		try_destroy(l->fd, active);
		try_destroy(l->fd, child);
		try_destroy(l->fd, listener);
	}
	return NULL;
}

/* Again and again, for RDMA_EP_RACE_SECONDS, else race_seconds() */
TEST_F_TIMEOUT(device, under_load, 3600)
{
	uint64_t end = now_ms() + race_seconds() * 1000;
	volatile bool stop = false;
	struct load load[4];
	struct situation s = self->s;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(load); i++) {
		load[i] = (struct load){ .fd = self->fd, .stop = &stop,
					 .seed = i };
		ASSERT_EQ(0, pthread_create(&load[i].thread, NULL, load_thread,
					    &load[i]));
	}
	for (i = 0; i < 5 || now_ms() < end; i++) {
		uint64_t start;

		usleep(200000);
		start = now_ms();
		EXPECT_EQ(0, rdma_link_delete(&self->dev));
		EXPECT_GT(PROMPT_MS, now_ms() - start);
		EXPECT_EQ(0, add_device(&self->dev));
	}
	TH_LOG("removed %zu times", i);
	stop = true;
	for (i = 0; i < ARRAY_SIZE(load); i++)
		ASSERT_EQ(0, pthread_join(load[i].thread, NULL));
	EXPECT_EQ(0, count_endpoints(_metadata, self->fd));
	make_connected(_metadata, self->fd, &s);
}

TEST_HARNESS_MAIN
