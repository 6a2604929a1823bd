// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Threads that do not agree: every command on endpoints that other threads
 * destroy, move, connect and disconnect meanwhile.
 *
 * Results are not looked at, since any may be right (only own_endpoints, whose
 * threads have nothing in common but the context, wants success). What is asked is that the
 * kernel has nothing to complain of (the runner looks), that every thread
 * comes back, that nothing is left behind, and that a new context works.
 *
 * RDMA_EP_RACE_SECONDS says how long all of it may take; else race_seconds().
 */
#include "rdma_ep_utils.h"

#define MAX_THREADS	8
#define HANDLES		12
#define CHANNELS	3

/* As many as there are tests below: each gets its share of the time */
#define RACES		8

static unsigned int race_ms(void)
{
	return race_seconds() * 1000 / RACES;
}

/* What the threads share. Fields are read and written without any order. */
struct world {
	volatile int fd;
	volatile bool stop;
	uint16_t port;			/* where a listener is, most of the time */
	volatile uint32_t handle[HANDLES];
	volatile int channel[CHANNELS];
	unsigned long calls;
};

struct racer {
	pthread_t thread;
	struct world *w;
	unsigned int seed;
	unsigned int index;
	unsigned long calls;
};

static unsigned int roll(struct racer *r, unsigned int n)
{
	return rand_r(&r->seed) % n;
}

static uint32_t pick(struct racer *r)
{
	return r->w->handle[roll(r, HANDLES)];
}

static int pick_channel(struct racer *r)
{
	return roll(r, CHANNELS + 1) ? r->w->channel[roll(r, CHANNELS)] : -1;
}

/* A new endpoint of any kind, in a slot whose former one is destroyed */
static void replace(struct racer *r)
{
	volatile uint32_t *slot = &r->w->handle[roll(r, HANDLES)];
	union test_addr host = host_addr(AF_INET, 0);
	union test_addr dst = host_addr(AF_INET, r->w->port);
	uint32_t old = *slot, ep = 0;
	int fd = r->w->fd;

	switch (roll(r, 5)) {
	case 0:
		try_create(fd, PS_TCP, pick_channel(r), 0, &ep);
		break;
	case 1:
		try_create(fd, PS_UDP, pick_channel(r), 0, &ep);
		try_bind(fd, ep, &host, NULL);
		break;
	case 2:
		try_create_ep(fd, 0, PS_TCP, NULL, &dst, NULL, &ep);
		break;
	case 3:
		try_create_ep(fd, RDMA_EP_CREATE_EP_NO_ROUTE, PS_UDP, NULL,
			      &dst, NULL, &ep);
		break;
	case 4:
		try_create_ep(fd, RDMA_EP_CREATE_EP_PASSIVE, PS_TCP, &host,
			      NULL, NULL, &ep);
		break;
	}
	*slot = ep;
	try_destroy(fd, old);
}

/* Any command on any endpoint; what it brings is kept or destroyed */
static void any_call(struct racer *r)
{
	struct rdma_ep_conn_param param = conn_param(&r->seed, 4);
	union test_addr dst = host_addr(AF_INET, r->w->port);
	union test_addr any = any_addr(AF_INET, 0);
	union test_addr group = make_addr("239.1.1.9", 0);
	struct ib_uverbs_qp_attr attr;
	struct rdma_ep_get_info info;
	struct rdma_ep_record rec;
	uint32_t ep = pick(r), out;
	uint32_t val = roll(r, 32);
	int fd = r->w->fd;

	r->calls++;
	switch (roll(r, 24)) {
	case 0:
		try_get_info(fd, &info);
		break;
	case 1:
		try_bind(fd, ep, &dst, &rec);
		break;
	case 2:
		try_bind(fd, ep, &any, &rec);
		break;
	case 3:
		try_resolve_addr(fd, ep, 0, NULL, &dst, 500, NULL);
		break;
	case 4:
		try_resolve_addr(fd, ep, RDMA_EP_F_WAIT |
				 RDMA_EP_RESOLVE_THEN_ROUTE, NULL, &dst, 500,
				 &rec);
		break;
	case 5:
		try_resolve_route(fd, ep, 0, NULL);
		break;
	case 6:
		try_listen(fd, ep, 2, &rec);
		break;
	case 7:
	case 8:
		try_connect(fd, ep, 0, &param, NULL);
		break;
	case 9:
		try_accept(fd, ep, 0, &param, NULL);
		break;
	case 10:
		try_establish(fd, ep);
		break;
	case 11:
		try_reject(fd, ep, 0, &r->seed, 4);
		break;
	case 12:
		try_disconnect(fd, ep, 0, NULL);
		break;
	case 13:
		try_query(fd, ep, RDMA_EP_REC_INFO | (roll(r, 2) ?
			  RDMA_EP_REC_INIT | RDMA_EP_REC_RTR : 0), &rec);
		break;
	case 14:
		try_init_qp_attr(fd, ep, roll(r, 4), &attr);
		break;
	case 15:
		try_attach(fd, ep, pick_channel(r));
		break;
	case 16:
	case 17:
		if (!try_wait(fd, ep, RDMA_EP_WAIT_NOWAIT, &rec) &&
		    rec.type == RDMA_EP_EVENT_CONNECT_REQUEST) {
			volatile uint32_t *slot =
				&r->w->handle[roll(r, HANDLES)];

			out = *slot;
			*slot = rec.child;
			try_destroy(fd, out);
		}
		break;
	case 18:
		try_notify(fd, ep, 4 /* IBV_EVENT_COMM_EST */);
		break;
	case 19:
		try_join(fd, ep, roll(r, 2), &group, 0, &out);
		break;
	case 20:
		try_leave(fd, ep, 1 + roll(r, 4), &out);
		break;
	case 21:
		try_set_option(fd, ep, roll(r, 4), &val, roll(r, 2) ? 1 : 4);
		break;
	case 22:
		val = 1 + roll(r, 20);
		try_set_option(fd, ep, RDMA_EP_OPT_CONNECT_TIMEOUT, &val, 4);
		break;
	case 23:
		try_write_event(fd, ep, 0, 0);
		break;
	}
}

static void world_open(struct __test_metadata *_metadata, struct world *w,
		       int fd)
{
	int i;

	memset(w, 0, sizeof(*w));
	w->fd = fd;
	for (i = 0; i < CHANNELS; i++) {
		int channel;

		do_ok(try_create_channel(fd, O_NONBLOCK | O_CLOEXEC, &channel));
		w->channel[i] = channel;
	}
}

static void world_close(struct world *w)
{
	int i;

	for (i = 0; i < CHANNELS; i++)
		close(w->channel[i]);
}

/* Threads of the given kinds, for this test's share of the time */
static void race(struct __test_metadata *_metadata, struct world *w,
		 void *(*const *kind)(void *), unsigned int count)
{
	static struct racer racers[MAX_THREADS];
	uint64_t end = now_ms() + race_ms();
	unsigned int i;

	ASSERT_GE(MAX_THREADS, count);
	for (i = 0; i < count; i++) {
		racers[i] = (struct racer){
			.w = w, .seed = i + getpid(), .index = i,
		};
		ASSERT_EQ(0, pthread_create(&racers[i].thread, NULL, kind[i],
					    &racers[i]));
	}
	while (now_ms() < end)
		usleep(10000);
	w->stop = true;
	for (i = 0; i < count; i++) {
		ASSERT_EQ(0, pthread_join(racers[i].thread, NULL));
		w->calls += racers[i].calls;
	}
	/* otherwise nothing was raced */
	EXPECT_LT(count, w->calls);
	TH_LOG("%lu calls", w->calls);
}

static void *caller(void *arg)
{
	struct racer *r = arg;

	while (!r->w->stop)
		any_call(r);
	return NULL;
}

static void *replacer(void *arg)
{
	struct racer *r = arg;

	while (!r->w->stop) {
		replace(r);
		r->calls++;
	}
	return NULL;
}

static void *mover(void *arg)
{
	struct racer *r = arg;

	while (!r->w->stop) {
		try_attach(r->w->fd, pick(r), pick_channel(r));
		r->calls++;
	}
	return NULL;
}

/* Reads what comes, and takes the endpoints that requests bring */
static void *reader(void *arg)
{
	struct racer *r = arg;
	struct rdma_ep_record rec;

	while (!r->w->stop) {
		volatile uint32_t *slot = &r->w->handle[roll(r, HANDLES)];
		uint32_t old = *slot;

		r->calls++;
		if (try_read(r->w->channel[roll(r, CHANNELS)], &rec)) {
			sched_yield();
			continue;
		}
		if (rec.type == RDMA_EP_EVENT_CONNECT_REQUEST) {
			*slot = rec.child;
			try_destroy(r->w->fd, old);
		}
	}
	return NULL;
}

/* Channels that come and go */
static void *channel_replacer(void *arg)
{
	struct racer *r = arg;

	while (!r->w->stop) {
		volatile int *slot = &r->w->channel[r->index % CHANNELS];
		int old = *slot, made;

		r->calls++;
		if (!try_create_channel(r->w->fd, O_NONBLOCK | O_CLOEXEC,
					&made)) {
			*slot = made;
			close(old);
		}
	}
	return NULL;
}

static void *writer(void *arg)
{
	struct racer *r = arg;

	while (!r->w->stop) {
		try_write_event(r->w->fd, pick(r), 0, 0);
		r->calls++;
	}
	return NULL;
}

/* Blocks at an endpoint; only the end of the endpoint is sure to wake it */
static void *waiter(void *arg)
{
	struct racer *r = arg;
	struct rdma_ep_record rec;

	while (!r->w->stop) {
		uint32_t ep = 0;

		try_create(r->w->fd, PS_TCP, -1, 0, &ep);
		r->w->handle[r->index % HANDLES] = ep;
		while (!r->w->stop && !try_wait(r->w->fd, ep, 0, &rec))
			;
		r->calls++;
		try_destroy(r->w->fd, ep);
	}
	return NULL;
}

static void *waiters_end(void *arg)
{
	struct racer *r = arg;
	unsigned int i;

	/* goes on until the others are through: they are asleep when it stops */
	while (!r->w->stop) {
		for (i = 0; i < HANDLES; i++) {
			if (roll(r, 2))
				try_write_event(r->w->fd, r->w->handle[i], 0, 0);
			else
				try_destroy(r->w->fd, r->w->handle[i]);
		}
		r->calls++;
	}
	for (i = 0; i < 200; i++) {
		unsigned int j;

		for (j = 0; j < HANDLES; j++)
			try_destroy(r->w->fd, r->w->handle[j]);
		usleep(5000);
	}
	return NULL;
}

FIXTURE(race)
{
	struct test_ctx ctx;
	struct situation s;
	struct world w;
};

FIXTURE_SETUP(race)
{
	ctx_open(_metadata, &self->ctx);
	self->s.family = AF_INET;
	self->s.ps = PS_TCP;
	make_listener(_metadata, self->ctx.fd, &self->s, 8);
	world_open(_metadata, &self->w, self->ctx.fd);
	self->w.port = addr_port(&self->s.addr);
}

FIXTURE_TEARDOWN(race)
{
	world_close(&self->w);
	ctx_close(_metadata, &self->ctx);
}

TEST_F_TIMEOUT(race, calls_against_destroy, 3600)
{
	void *(*const kind[])(void *) = {
		caller, caller, caller, caller, replacer, replacer,
	};

	/* the listener's requests are taken by the callers, too */
	self->w.handle[0] = self->s.listener;
	race(_metadata, &self->w, kind, ARRAY_SIZE(kind));
}

TEST_F_TIMEOUT(race, calls_against_attach, 3600)
{
	void *(*const kind[])(void *) = {
		caller, caller, mover, mover, reader, writer, replacer,
	};

	self->w.handle[0] = self->s.listener;
	race(_metadata, &self->w, kind, ARRAY_SIZE(kind));
}

/* A channel's number may be another file's when it is used: that is allowed */
TEST_F_TIMEOUT(race, channels_come_and_go, 3600)
{
	void *(*const kind[])(void *) = {
		channel_replacer, channel_replacer, mover, writer, reader,
		reader, replacer,
	};

	self->w.handle[0] = self->s.listener;
	race(_metadata, &self->w, kind, ARRAY_SIZE(kind));
}

TEST_F_TIMEOUT(race, waiters_against_destroy, 3600)
{
	void *(*const kind[])(void *) = {
		waiter, waiter, waiter, waiter, waiters_end,
	};

	race(_metadata, &self->w, kind, ARRAY_SIZE(kind));
}

/* Connects, and gives up at any moment */
static void *connector(void *arg)
{
	struct racer *r = arg;
	union test_addr dst = host_addr(AF_INET, r->w->port);
	int fd = r->w->fd;

	while (!r->w->stop) {
		struct rdma_ep_conn_param param = conn_param(NULL, 0);
		struct rdma_ep_record rec;
		uint32_t ep;
		int i;

		if (try_create_ep(fd, 0, PS_TCP, NULL, &dst, NULL, &ep))
			continue;
		try_connect(fd, ep, 0, &param, NULL);
		for (i = roll(r, 20); i; i--) {
			if (!try_wait(fd, ep, RDMA_EP_WAIT_NOWAIT, &rec) &&
			    rec.type == RDMA_EP_EVENT_CONNECT_RESPONSE)
				try_establish(fd, ep);
			usleep(200);
		}
		if (roll(r, 2))
			try_disconnect(fd, ep, 0, NULL);
		try_destroy(fd, ep);
		r->calls++;
	}
	return NULL;
}

/* Listens on that port, answers some, and goes while requests come */
static void *listener(void *arg)
{
	struct racer *r = arg;
	union test_addr addr = host_addr(AF_INET, r->w->port);
	int fd = r->w->fd;

	while (!r->w->stop) {
		struct rdma_ep_record rec;
		uint32_t ep;
		int i;

		try_create(fd, PS_TCP, -1, 0, &ep);
		try_bind(fd, ep, &addr, NULL);
		try_listen(fd, ep, 1 + roll(r, 3), NULL);
		for (i = roll(r, 50); i; i--) {
			struct rdma_ep_conn_param param = conn_param(NULL, 0);

			usleep(200);
			if (try_wait(fd, ep, RDMA_EP_WAIT_NOWAIT, &rec) ||
			    rec.type != RDMA_EP_EVENT_CONNECT_REQUEST)
				continue;
			switch (roll(r, 4)) {
			case 0:
				try_reject(fd, rec.child, 0, NULL, 0);
				break;
			case 1:
				try_accept(fd, rec.child, 0, &param, NULL);
				break;
			case 2:
				try_accept(fd, rec.child, 0, &param, NULL);
				try_disconnect(fd, rec.child, 0, NULL);
				break;
			}
			if (roll(r, 2))
				try_destroy(fd, rec.child);
			else
				r->w->handle[roll(r, HANDLES)] = rec.child;
		}
		try_destroy(fd, ep);
		r->calls++;
	}
	return NULL;
}

TEST_F_TIMEOUT(race, listeners_against_requests, 3600)
{
	void *(*const kind[])(void *) = {
		connector, connector, connector, connector, listener, caller,
	};

	do_ok(try_destroy(self->ctx.fd, self->s.listener));
	race(_metadata, &self->w, kind, ARRAY_SIZE(kind));
}

/* Joins, leaves and destroys of one endpoint */
static void *joiner(void *arg)
{
	struct racer *r = arg;
	union test_addr group = make_addr("239.1.1.9", 0);
	uint32_t out;

	while (!r->w->stop) {
		uint32_t ep = r->w->handle[0];

		if (!try_join(r->w->fd, ep, roll(r, 2), &group, 0, &out) &&
		    roll(r, 2))
			try_leave(r->w->fd, ep, out, NULL);
		try_leave(r->w->fd, ep, roll(r, 8), NULL);
		r->calls++;
	}
	return NULL;
}

static void *ud_replacer(void *arg)
{
	struct racer *r = arg;
	union test_addr host = host_addr(AF_INET, 0);

	while (!r->w->stop) {
		uint32_t old = r->w->handle[0], ep;

		try_create(r->w->fd, PS_UDP, pick_channel(r), 0, &ep);
		try_bind(r->w->fd, ep, &host, NULL);
		r->w->handle[0] = ep;
		usleep(roll(r, 2000));
		try_destroy(r->w->fd, old);
		r->calls++;
	}
	return NULL;
}

TEST_F_TIMEOUT(race, groups, 3600)
{
	void *(*const kind[])(void *) = {
		joiner, joiner, joiner, ud_replacer, reader, mover,
	};

	race(_metadata, &self->w, kind, ARRAY_SIZE(kind));
}

/* Blocked and polling readers of a channel, and callers, while the context ends */
static void *blocked_reader(void *arg)
{
	struct racer *r = arg;
	struct rdma_ep_record rec;
	struct pollfd p = { .fd = r->w->channel[r->index % CHANNELS],
			    .events = POLLIN };

	while (!r->w->stop) {
		if (r->index & 1)
			poll(&p, 1, 1000);
		if (read(p.fd, &rec, sizeof(rec)) == 0)
			break;		/* the context has ended */
		r->calls++;
	}
	return NULL;
}

static void *until_closed(void *arg)
{
	struct racer *r = arg;
	struct rdma_ep_get_info info;

	while (!r->w->stop && !try_get_info(r->w->fd, &info)) {
		replace(r);
		any_call(r);
	}
	return NULL;
}

TEST_F_TIMEOUT(race, close_of_the_context, 3600)
{
	void *(*const kind[])(void *) = {
		until_closed, until_closed, until_closed, blocked_reader,
		blocked_reader,
	};
	static struct racer racers[MAX_THREADS];
	uint64_t end = now_ms() + race_ms();
	unsigned int round = 0;

	do {
		struct world w;
		unsigned int i;
		int fd = open_ep();

		ASSERT_LE(0, fd);
		world_open(_metadata, &w, fd);
		for (i = 0; i < CHANNELS; i++)
			fcntl(w.channel[i], F_SETFL, 0);
		w.port = self->w.port;
		for (i = 0; i < ARRAY_SIZE(kind); i++) {
			racers[i] = (struct racer){
				.w = &w, .seed = i + round, .index = i,
			};
			ASSERT_EQ(0, pthread_create(&racers[i].thread, NULL,
						    kind[i], &racers[i]));
		}
		usleep(rand() % 50000);
		/*
		 * No other file may get this number while threads use it, so
		 * something that is no context takes its place.
		 */
		ASSERT_EQ(fd, dup2(w.channel[0], fd));
		for (i = 0; i < ARRAY_SIZE(kind); i++)
			ASSERT_EQ(0, pthread_join(racers[i].thread, NULL));
		close(fd);
		world_close(&w);
		round++;
	} while (now_ms() < end);
	TH_LOG("%u rounds", round);
}

/* Nobody else knows these endpoints: whoever waits at one gets its event */
static void *resolver(void *arg)
{
	struct racer *r = arg;
	union test_addr dst = host_addr(AF_INET, r->w->port);
	int fd = r->w->fd;

	while (!r->w->stop) {
		struct rdma_ep_record rec;
		uint32_t ep;
		int ret;

		ret = try_create_ep(fd, 0, PS_TCP, NULL, &dst, NULL, &ep);
		if (!ret)
			ret = try_destroy(fd, ep);
		if (!ret)
			ret = try_create(fd, PS_TCP, -1, 0, &ep);
		if (!ret)
			ret = try_resolve_addr(fd, ep, RDMA_EP_F_WAIT, NULL,
					       &dst, 2000, &rec);
		if (!ret)
			ret = try_resolve_route(fd, ep, RDMA_EP_F_WAIT, &rec);
		if (!ret)
			ret = try_destroy(fd, ep);
		if (ret)
			return (void *)(long)-ret;
		r->calls++;
	}
	return NULL;
}

TEST_F_TIMEOUT(race, own_endpoints, 3600)
{
	struct racer racers[MAX_THREADS];
	unsigned int i;

	for (i = 0; i < MAX_THREADS; i++) {
		racers[i] = (struct racer){ .w = &self->w, .index = i };
		ASSERT_EQ(0, pthread_create(&racers[i].thread, NULL, resolver,
					    &racers[i]));
	}
	usleep(race_ms() * 1000);
	self->w.stop = true;
	for (i = 0; i < MAX_THREADS; i++) {
		void *err;

		ASSERT_EQ(0, pthread_join(racers[i].thread, &err));
		EXPECT_EQ(0, (long)err)
			TH_LOG("after %lu rounds: %s", racers[i].calls,
			       strerror((long)err));
	}
}

/* After all that, a new context is as good as ever */
TEST(still_works)
{
	struct situation s = { .family = AF_INET, .ps = PS_TCP };
	struct test_ctx ctx;

	ctx_open(_metadata, &ctx);
	make_connected(_metadata, ctx.fd, &s);
	ctx_close(_metadata, &ctx);
}

TEST_HARNESS_MAIN
