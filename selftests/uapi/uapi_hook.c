// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * No event is lost: made-up events for the real handler, in every state, and
 * with every allocation that it makes failing. Needs a module with its test
 * code (kernel/test.h), which also counts what has been left behind.
 *
 * What the handler does without memory is compared with what it does with it:
 * the state must be the same, and what led to it must have been told.
 */
#if HAVE_LIBURING
#include "uring_utils.h"
#else
#include "rdma_ep_utils.h"
#endif

#define FAULT_DIR	"/sys/kernel/debug/fail_rdma_ep/"
#define ALL_FAIL	UINT32_MAX
#define DATA_LEN	8

static int try_test_event(int fd, uint32_t ep, uint32_t type, int status,
			  uint32_t fail_mask, uint32_t *allocs)
{
	struct rdma_ep_test_event cmd = {
		.ep = ep,
		.event = type,
		.status = status,
		.data_len = DATA_LEN,
		.fail_mask = fail_mask,
	};
	int ret = ep_ioctl(fd, RDMA_EP_TEST_EVENT, &cmd);

	if (allocs)
		*allocs = ret ? 0 : cmd.out_allocs;
	return ret;
}

static int try_test_group_event(int fd, uint32_t ep, uint32_t type,
				uint32_t group, uint32_t fail_mask)
{
	struct rdma_ep_test_event cmd = {
		.ep = ep,
		.event = type,
		.status = -ENETRESET,
		.group = group,
		.fail_mask = fail_mask,
	};

	return ep_ioctl(fd, RDMA_EP_TEST_EVENT, &cmd);
}

static int try_test_state(int fd, uint32_t ep, uint32_t op, uint32_t state,
			  bool disconnecting)
{
	struct rdma_ep_test_state cmd = {
		.ep = ep,
		.op = op,
		.state = state,
		.disconnecting = disconnecting,
	};

	return ep_ioctl(fd, RDMA_EP_TEST_STATE, &cmd);
}

/* Where an endpoint can be, and what it may have under way there */
struct place {
	const char *name;
	uint8_t op;
	uint8_t state;
	bool disconnecting;
};

#define PLACE(name, op, state, ...)		\
	{ name, RDMA_EP_TEST_OP_##op, RDMA_EP_STATE_##state, __VA_ARGS__ }

static const struct place places[] = {
	PLACE("bound", NONE, BOUND),
	PLACE("resolving the address", RESOLVE, RESOLVING_ADDR),
	PLACE("resolving a service", SERVICE, RESOLVING_ADDR),
	PLACE("address resolved", NONE, ADDR_RESOLVED),
	PLACE("resolving the route", RESOLVE, RESOLVING_ROUTE),
	PLACE("route resolved", NONE, ROUTE_RESOLVED),
	PLACE("listening", NONE, LISTENING),
	PLACE("requested", NONE, REQUESTED),
	PLACE("connecting", CONNECT, CONNECTING),
	PLACE("responded", NONE, RESPONDED),
	PLACE("accepting", ACCEPT, ACCEPTING),
	PLACE("connected", NONE, CONNECTED),
	PLACE("disconnecting", NONE, CONNECTED, true),
	PLACE("disconnected", NONE, DISCONNECTED),
	PLACE("failed", NONE, FAILED),
};

/*
 * What an event is the end of, where that leads to, and where else it changes
 * something: as the uapi header's commands and states say.
 */
struct meaning {
	uint32_t type;
	int status;
	uint32_t ops;		/* bits of enum rdma_ep_test_op */
	uint8_t state;
	bool unasked;		/* is told whatever the state */
};

#define RESOLVE_BIT	(1 << RDMA_EP_TEST_OP_RESOLVE)
#define SERVICE_BIT	(1 << RDMA_EP_TEST_OP_SERVICE)
#define CONNECT_BIT	(1 << RDMA_EP_TEST_OP_CONNECT)
#define ACCEPT_BIT	(1 << RDMA_EP_TEST_OP_ACCEPT)
#define ANY_STATE	255

#define MEANING(type, status, ops, state, ...)	\
	{ RDMA_EP_EVENT_##type, status, ops, state, __VA_ARGS__ }

static const struct meaning meanings[] = {
	MEANING(ADDR_RESOLVED, 0, RESOLVE_BIT, RDMA_EP_STATE_ADDR_RESOLVED),
	MEANING(ADDR_ERROR, -ENODEV, RESOLVE_BIT | CONNECT_BIT, ANY_STATE),
	MEANING(ROUTE_RESOLVED, 0, RESOLVE_BIT, RDMA_EP_STATE_ROUTE_RESOLVED),
	MEANING(ROUTE_ERROR, -EINVAL, RESOLVE_BIT, RDMA_EP_STATE_ADDR_RESOLVED),
	MEANING(CONNECT_RESPONSE, 0, CONNECT_BIT, RDMA_EP_STATE_RESPONDED),
	MEANING(CONNECT_ERROR, -ENOBUFS, CONNECT_BIT | ACCEPT_BIT,
		RDMA_EP_STATE_FAILED),
	MEANING(UNREACHABLE, -ETIMEDOUT, CONNECT_BIT | ACCEPT_BIT,
		RDMA_EP_STATE_FAILED),
	MEANING(REJECTED, 28, CONNECT_BIT | ACCEPT_BIT, RDMA_EP_STATE_FAILED),
	MEANING(ESTABLISHED, 0, CONNECT_BIT | ACCEPT_BIT,
		RDMA_EP_STATE_CONNECTED),
	MEANING(DISCONNECTED, 0, 0, RDMA_EP_STATE_DISCONNECTED, true),
	MEANING(DEVICE_REMOVAL, 0, 0, RDMA_EP_STATE_REMOVED, true),
	MEANING(ADDR_CHANGE, 0, 0, ANY_STATE, true),
	MEANING(TIMEWAIT_EXIT, 0, 0, ANY_STATE, true),
};

/* What can be observed of an endpoint after events */
struct outcome {
	uint32_t num;
	uint32_t type[8];
	int32_t status[8];
	uint32_t state;
};

FIXTURE(hook)
{
	struct test_ctx ctx;
	int fd;
	uint32_t ep;
};

FIXTURE_SETUP(hook)
{
	struct rdma_ep_test_count count;

	self->ctx.fd = -1;
	ctx_open(_metadata, &self->ctx);
	self->fd = self->ctx.fd;
	if (ioctl(self->fd, RDMA_EP_TEST_COUNT, &count)) {
		close(self->fd);
		self->ctx.fd = -1;
		SKIP(return, "the module was built without its test code");
	}
	ASSERT_EQ(1, count.contexts);
	ASSERT_EQ(0, count.endpoints);
	ASSERT_EQ(0, count.channels);
	ASSERT_EQ(0, count.events);
}

static int set_patience(int fd, uint32_t seconds)
{
	struct rdma_ep_test_patience cmd = { .seconds = seconds };

	return ep_ioctl(fd, RDMA_EP_TEST_PATIENCE, &cmd);
}

static int set_stall(int fd, uint32_t seconds)
{
	struct rdma_ep_test_stall cmd = { .seconds = seconds };

	return ep_ioctl(fd, RDMA_EP_TEST_STALL, &cmd);
}

FIXTURE_TEARDOWN(hook)
{
	if (self->ctx.fd < 0)
		return;
	set_patience(self->fd, 0);
	set_stall(self->fd, 0);
	ctx_close(_metadata, &self->ctx);
}

/* An endpoint that is bound to a device, and seems to be at @place */
static void make_place(struct __test_metadata *_metadata, int fd, uint32_t ps,
		       const struct place *place, uint32_t *ep)
{
	union test_addr addr = host_addr(AF_INET, 0);

	do_ok(try_create(fd, ps, -1, 0, ep));
	do_ok(try_bind(fd, *ep, &addr, NULL));
	if (place->state == RDMA_EP_STATE_LISTENING)
		do_ok(try_listen(fd, *ep, 4, NULL));
	else
		do_ok(try_test_state(fd, *ep, place->op, place->state,
				     place->disconnecting));
}

static void observe(struct __test_metadata *_metadata, int fd, uint32_t ep,
		    struct outcome *out)
{
	struct rdma_ep_record rec;
	int ret;

	memset(out, 0, sizeof(*out));
	while (!(ret = try_wait(fd, ep, RDMA_EP_WAIT_NOWAIT, &rec))) {
		ASSERT_LT(out->num, ARRAY_SIZE(out->type));
		EXPECT_GOOD_RECORD(&rec);
		out->type[out->num] = rec.type;
		out->status[out->num++] = rec.status;
	}
	out->state = ep_state(_metadata, fd, ep);
	/* Why there is no more: there may be later, or never */
	EXPECT_EQ(out->state == RDMA_EP_STATE_REMOVED ? -ENODEV : -EAGAIN, ret);
}

/* Where an event leads to, and whether it is told */
static bool expected(const struct place *place, const struct meaning *m,
		     uint32_t *state)
{
	bool over = place->state == RDMA_EP_STATE_FAILED ||
		    place->state == RDMA_EP_STATE_DISCONNECTED;
	bool completes = m->ops & (1 << place->op);

	*state = place->state;
	if (m->unasked) {
		/* The end of a connection is told once, whoever noticed it first */
		if (m->type == RDMA_EP_EVENT_DISCONNECTED && over)
			return false;
		if (m->state != ANY_STATE)
			*state = m->state;
		return true;
	}
	if (!completes && over)
		return false;
	/* A neighbour has changed, which ends nothing */
	if (!completes && m->type == RDMA_EP_EVENT_UNREACHABLE)
		return true;
	*state = m->state;
	if (m->type == RDMA_EP_EVENT_ADDR_ERROR)
		*state = place->op == RDMA_EP_TEST_OP_RESOLVE ?
				 RDMA_EP_STATE_BOUND : RDMA_EP_STATE_FAILED;
	return true;
}

/*
 * rdma_cm tells of a resolution only who asked for it, and of a connection
 * only who has begun one.
 */
static bool possible(const struct place *place, const struct meaning *m)
{
	switch (m->type) {
	case RDMA_EP_EVENT_ADDR_RESOLVED:
	case RDMA_EP_EVENT_ADDR_ERROR:
	case RDMA_EP_EVENT_ROUTE_RESOLVED:
	case RDMA_EP_EVENT_ROUTE_ERROR:
		return m->ops & (1 << place->op);
	case RDMA_EP_EVENT_DEVICE_REMOVAL:
	case RDMA_EP_EVENT_ADDR_CHANGE:
		return true;
	default:
		return place->state >= RDMA_EP_STATE_REQUESTED;
	}
}

/* One event at one place, with the allocations of @mask failing */
static void one_event(struct __test_metadata *_metadata, int fd, uint32_t ps,
		      const struct place *place, const struct meaning *m,
		      uint32_t mask, uint32_t *allocs)
{
	struct outcome out;
	uint32_t ep, state;
	bool told;

	make_place(_metadata, fd, ps, place, &ep);
	told = expected(place, m, &state);
	do_ok(try_test_event(fd, ep, m->type, m->status, mask, allocs));
	observe(_metadata, fd, ep, &out);
	ASSERT_EQ(told, out.num)
		TH_LOG("%s, %s, faults 0x%x", place->name, event_name(m->type),
		       mask);
	if (told) {
		ASSERT_EQ(m->type, out.type[0]);
		EXPECT_EQ(m->status, out.status[0]);
	}
	ASSERT_EQ(state, out.state)
		TH_LOG("%s, %s, faults 0x%x", place->name, event_name(m->type),
		       mask);
	do_ok(try_destroy(fd, ep));
}

/* Each event in each state, with each allocation failing, and all of them */
TEST_F_TIMEOUT(hook, each_event_in_each_state, 600)
{
	static const uint32_t spaces[] = { PS_TCP, PS_UDP };
	unsigned int trials = 0, faults = 0;
	size_t s, p, m;
	uint32_t allocs, i;

	if (self->ctx.fd < 0)
		return;
	for (s = 0; s < ARRAY_SIZE(spaces); s++)
		for (p = 0; p < ARRAY_SIZE(places); p++)
			for (m = 0; m < ARRAY_SIZE(meanings); m++) {
				if (!possible(&places[p], &meanings[m]))
					continue;
				one_event(_metadata, self->fd, spaces[s],
					  &places[p], &meanings[m], 0, &allocs);
				trials++;
				for (i = 0; i < allocs; i++)
					one_event(_metadata, self->fd,
						  spaces[s], &places[p],
						  &meanings[m], 1 << i, NULL);
				faults += allocs;
			}
	TH_LOG("%u events, %u of them once more without memory", trials,
	       faults);
	EXPECT_LT(0, faults);
}

/*
 * The event that was the last to change the state, or to end an operation: 0,
 * 1, or -1 for none. -ENODATA if the two cannot happen one after the other.
 */
static int last_change(struct __test_metadata *_metadata, int fd,
		       const struct place *place, const struct meaning *first,
		       const struct meaning *second, struct outcome *out)
{
	const struct meaning *events[] = { first, second };
	struct place now = *place;
	uint32_t ep, state;
	int i, last = -1;

	make_place(_metadata, fd, PS_TCP, place, &ep);
	for (i = 0; i < 2; i++) {
		bool completes = events[i]->ops & (1 << now.op);

		if (!possible(&now, events[i])) {
			do_ok(try_destroy(fd, ep));
			return -ENODATA;
		}
		do_ok(try_test_event(fd, ep, events[i]->type, events[i]->status,
				     0, NULL));
		state = ep_state(_metadata, fd, ep);
		if (completes || state != now.state)
			last = i;
		if (completes || events[i]->state == RDMA_EP_STATE_DISCONNECTED)
			now.op = RDMA_EP_TEST_OP_NONE;
		now.state = state;
	}
	observe(_metadata, fd, ep, out);
	do_ok(try_destroy(fd, ep));
	return last;
}

static bool has_event(const struct outcome *out, const struct meaning *m)
{
	uint32_t i;

	for (i = 0; i < out->num; i++)
		if (out->type[i] == m->type && out->status[i] == m->status)
			return true;
	return false;
}

static void two_events(struct __test_metadata *_metadata, int fd,
		       const struct place *place, const struct meaning *first,
		       const struct meaning *second)
{
	const struct meaning *events[] = { first, second };
	struct outcome with, without;
	uint32_t ep;
	int last;

	last = last_change(_metadata, fd, place, first, second, &with);
	if (last == -ENODATA)
		return;
	make_place(_metadata, fd, PS_TCP, place, &ep);
	do_ok(try_test_event(fd, ep, first->type, first->status, ALL_FAIL,
			     NULL));
	do_ok(try_test_event(fd, ep, second->type, second->status, ALL_FAIL,
			     NULL));
	observe(_metadata, fd, ep, &without);
	EXPECT_EQ(with.state, without.state)
		TH_LOG("%s, %s, %s", place->name, event_name(first->type),
		       event_name(second->type));
	if (last >= 0) {
		EXPECT_TRUE(has_event(&with, events[last]));
		EXPECT_TRUE(has_event(&without, events[last]))
			TH_LOG("%s, %s, %s: nobody told of the change to %u",
			       place->name, event_name(first->type),
			       event_name(second->type), without.state);
	}
	do_ok(try_destroy(fd, ep));
}

/*
 * Two events that nobody reads in between, without memory for either: of the
 * last that changed the state the application learns.
 */
TEST_F_TIMEOUT(hook, two_events_without_memory, 600)
{
	size_t p, i, k;

	if (self->ctx.fd < 0)
		return;
	for (p = 0; p < ARRAY_SIZE(places); p++)
		for (i = 0; i < ARRAY_SIZE(meanings); i++)
			for (k = 0; k < ARRAY_SIZE(meanings); k++) {
				/* After that the id is gone */
				if (meanings[i].type ==
				    RDMA_EP_EVENT_DEVICE_REMOVAL)
					continue;
				two_events(_metadata, self->fd, &places[p],
					   &meanings[i], &meanings[k]);
				if (!_metadata->passed)
					return;
			}
}

/* A request that cannot be recorded is refused and counted, and no more */
TEST_F(hook, request_without_memory)
{
	const struct place listening = PLACE("listening", NONE, LISTENING);
	struct rdma_ep_record rec;
	uint64_t refused = 0;
	uint32_t allocs, i;

	if (self->ctx.fd < 0)
		return;
	make_place(_metadata, self->fd, PS_TCP, &listening, &self->ep);
	do_ok(try_test_event(self->fd, self->ep, RDMA_EP_EVENT_CONNECT_REQUEST,
			     0, 0, &allocs));
	ASSERT_LE(2, allocs);
	wait_event(_metadata, self->fd, self->ep,
		   RDMA_EP_EVENT_CONNECT_REQUEST, &rec);
	EXPECT_EQ(DATA_LEN, rec.private_data_len);
	do_ok(try_destroy(self->fd, rec.child));

	for (i = 0; i <= allocs; i++) {
		do_ok(try_test_event(self->fd, self->ep,
				     RDMA_EP_EVENT_CONNECT_REQUEST, 0,
				     i < allocs ? 1u << i : ALL_FAIL, NULL));
		refused++;
		do_ok(try_query(self->fd, self->ep, RDMA_EP_REC_INFO, &rec));
		EXPECT_EQ(refused, rec.info.overflows);
		EXPECT_EQ(0, rec.info.requests);
		EXPECT_EQ(1, count_endpoints(_metadata, self->fd));
		expect_silence(_metadata, self->fd, self->ep, 0);
	}
	/* The next one finds the listener as it was */
	do_ok(try_test_event(self->fd, self->ep, RDMA_EP_EVENT_CONNECT_REQUEST,
			     0, 0, NULL));
	wait_event(_metadata, self->fd, self->ep,
		   RDMA_EP_EVENT_CONNECT_REQUEST, &rec);
}

/* Both events of a group have their memory since it was joined */
TEST_F(hook, group_without_memory)
{
	union test_addr addr = make_addr("239.1.1.7", 0);
	const struct place bound = PLACE("bound", NONE, BOUND);
	struct rdma_ep_record rec;
	uint32_t group;

	if (self->ctx.fd < 0)
		return;
	make_place(_metadata, self->fd, PS_UDP, &bound, &self->ep);
	do_ok(try_join(self->fd, self->ep, 0, &addr, 77, &group));
	wait_event(_metadata, self->fd, self->ep, RDMA_EP_EVENT_MULTICAST_JOIN,
		   &rec);
	do_ok(try_test_group_event(self->fd, self->ep,
				   RDMA_EP_EVENT_MULTICAST_ERROR, group,
				   ALL_FAIL));
	wait_event(_metadata, self->fd, self->ep, RDMA_EP_EVENT_MULTICAST_ERROR,
		   &rec);
	EXPECT_EQ(-ENETRESET, rec.status);
	EXPECT_EQ(77, rec.arg);
	/* A group has one end */
	do_ok(try_test_group_event(self->fd, self->ep,
				   RDMA_EP_EVENT_MULTICAST_ERROR, group,
				   ALL_FAIL));
	expect_silence(_metadata, self->fd, self->ep, 0);
	do_ok(try_leave(self->fd, self->ep, group, NULL));
	do_err(ENOENT, NONE,
	       try_test_group_event(self->fd, self->ep,
				    RDMA_EP_EVENT_MULTICAST_ERROR, group, 0));
}

struct waiter {
	pthread_t thread;
	int fd;
	uint32_t ep;
	int ret;
	struct rdma_ep_record rec;
};

static void *waiter_thread(void *arg)
{
	const struct rdma_ep_conn_param param = {};
	struct waiter *w = arg;

	w->ret = try_connect(w->fd, w->ep, RDMA_EP_F_WAIT | RDMA_EP_F_RESUME,
			     &param, &w->rec);
	return NULL;
}

/* Who waits for the end of a connect is told each end that it can have */
TEST_F(hook, waiter_without_memory)
{
	const struct place connecting = PLACE("connecting", CONNECT, CONNECTING);
	struct waiter w = { .fd = self->fd };
	size_t i;

	if (self->ctx.fd < 0)
		return;
	for (i = 0; i < ARRAY_SIZE(meanings); i++) {
		const struct meaning *m = &meanings[i];

		if (!(m->ops & CONNECT_BIT) &&
		    m->type != RDMA_EP_EVENT_DISCONNECTED &&
		    m->type != RDMA_EP_EVENT_DEVICE_REMOVAL)
			continue;
		make_place(_metadata, self->fd, PS_TCP, &connecting, &w.ep);
		ASSERT_EQ(0, pthread_create(&w.thread, NULL, waiter_thread, &w));
		usleep(10000 * slow());
		do_ok(try_test_event(self->fd, w.ep, m->type, m->status,
				     ALL_FAIL, NULL));
		ASSERT_EQ(0, pthread_join(w.thread, NULL));
		EXPECT_EQ(0, w.ret);
		EXPECT_EQ(m->type, w.rec.type)
			TH_LOG("got %s", event_name(w.rec.type));
		EXPECT_EQ(m->status, w.rec.status);
		do_ok(try_destroy(self->fd, w.ep));
	}
}

/* Everything unread goes with its context: the teardown counts */
TEST_F(hook, nothing_read)
{
	const struct place listening = PLACE("listening", NONE, LISTENING);
	uint32_t ep, refused = 0;
	size_t p, m;
	int i;

	if (self->ctx.fd < 0)
		return;
	for (p = 0; p < ARRAY_SIZE(places); p++) {
		make_place(_metadata, self->fd, PS_TCP, &places[p], &ep);
		for (m = 0; m < ARRAY_SIZE(meanings); m++)
			/* The last ones come when the device is gone */
			refused += !!try_test_event(self->fd, ep,
						    meanings[m].type, 0,
						    m & 1, NULL);
		/* An operation begun, and another request */
		try_test_state(self->fd, ep, RDMA_EP_TEST_OP_CONNECT,
			       RDMA_EP_STATE_CONNECTING, false);
	}
	EXPECT_GE(2 * ARRAY_SIZE(places), refused);
	make_place(_metadata, self->fd, PS_TCP, &listening, &ep);
	for (i = 0; i < 4; i++)
		do_ok(try_test_event(self->fd, ep,
				     RDMA_EP_EVENT_CONNECT_REQUEST, 0, 0, NULL));
	make_place(_metadata, self->fd, PS_TCP, &listening, &ep);
	for (i = 0; i < 4; i++)
		do_ok(try_test_event(self->fd, ep,
				     RDMA_EP_EVENT_CONNECT_REQUEST, 0, 0, NULL));
	do_ok(try_destroy(self->fd, ep));
}

/* rdma_cm says it again and again, whether anybody reads or not */
TEST_F(hook, silent_neighbour)
{
	const struct place connected = PLACE("connected", NONE, CONNECTED);
	struct rdma_ep_test_count before, after;
	struct rdma_ep_record rec;
	int i;

	if (self->ctx.fd < 0)
		return;
	make_place(_metadata, self->fd, PS_TCP, &connected, &self->ep);
	ASSERT_EQ(0, count_objects(&before));
	for (i = 0; i < 3000; i++)
		do_ok(try_test_event(self->fd, self->ep,
				     RDMA_EP_EVENT_UNREACHABLE, -ETIMEDOUT, 0,
				     NULL));
	ASSERT_EQ(0, count_objects(&after));
	EXPECT_EQ(before.events + 1, after.events);
	wait_event(_metadata, self->fd, self->ep, RDMA_EP_EVENT_UNREACHABLE,
		   &rec);
	expect_silence(_metadata, self->fd, self->ep, 0);
	/* one that is read is followed by the next */
	do_ok(try_test_event(self->fd, self->ep, RDMA_EP_EVENT_UNREACHABLE,
			     -ETIMEDOUT, 0, NULL));
	wait_event(_metadata, self->fd, self->ep, RDMA_EP_EVENT_UNREACHABLE,
		   &rec);
}

/* What nobody has read of a warning is not how the connect ended that came after */
TEST_F(hook, old_warning)
{
	struct situation s = { .family = AF_INET, .ps = PS_TCP };
	struct rdma_ep_conn_param param = conn_param(NULL, 0);
	struct rdma_ep_record rec;

	if (self->ctx.fd < 0)
		return;
	make_listener(_metadata, self->fd, &s, 4);
	s.active = make_active(_metadata, self->fd, &s);
	do_ok(try_test_event(self->fd, s.active, RDMA_EP_EVENT_UNREACHABLE, -ETIMEDOUT, 0, NULL));
	do_ok(try_connect(self->fd, s.active, 0, &param, NULL));
	wait_event(_metadata, self->fd, s.listener, RDMA_EP_EVENT_CONNECT_REQUEST, &rec);
	do_ok(try_reject(self->fd, rec.child, 0, NULL, 0));
	do_ok(try_destroy(self->fd, rec.child));
	/* as if the call had waited, and been interrupted */
	do_ok(try_connect(self->fd, s.active, RDMA_EP_F_WAIT | RDMA_EP_F_RESUME, &param, &rec));
	EXPECT_EVENT(REJECTED, &rec);
	wait_event(_metadata, self->fd, s.active, RDMA_EP_EVENT_UNREACHABLE, &rec);
	expect_silence(_metadata, self->fd, s.active, 0);
}

static long waiting_events(void)
{
	FILE *f = fopen("/proc/net/rdma_ep", "re");
	char line[128];
	long n = -1;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "events_waiting %ld", &n) == 1)
			break;
	if (f)
		fclose(f);
	return n;
}

/* Events that take each other's place are not counted for ever */
TEST_F(hook, replaced_events_are_counted)
{
	const struct place connecting = PLACE("connecting", CONNECT, CONNECTING);
	long before;

	if (self->ctx.fd < 0)
		return;
	before = waiting_events();
	ASSERT_LE(0, before);
	make_place(_metadata, self->fd, PS_TCP, &connecting, &self->ep);
	do_ok(try_test_event(self->fd, self->ep, RDMA_EP_EVENT_CONNECT_RESPONSE,
			     0, 0, NULL));
	do_ok(try_test_event(self->fd, self->ep, RDMA_EP_EVENT_ESTABLISHED, 0,
			     ALL_FAIL, NULL));
	do_ok(try_test_event(self->fd, self->ep, RDMA_EP_EVENT_REJECTED, 28,
			     ALL_FAIL, NULL));
	do_ok(try_test_event(self->fd, self->ep, RDMA_EP_EVENT_ADDR_CHANGE, 0, 0,
			     NULL));
	do_ok(try_test_event(self->fd, self->ep, RDMA_EP_EVENT_DEVICE_REMOVAL, 0,
			     0, NULL));
	do_ok(try_destroy(self->fd, self->ep));
	EXPECT_EQ(before, waiting_events());
}

static int write_fault(const char *name, const char *text)
{
	char path[64];
	int fd, ret = -1;

	snprintf(path, sizeof(path), FAULT_DIR "%s", name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) == (ssize_t)strlen(text))
		ret = 0;
	close(fd);
	return ret;
}

/* Allocations of rdma_cm's work queues in our handler: all fail, or none */
static int fail_handler(bool on)
{
	return write_fault("times", "-1") ?:
	       write_fault("probability", on ? "100" : "0");
}

/* Connections made and ended by rdma_cm itself, its every event without memory */
TEST_F(hook, connection_without_memory)
{
	struct rdma_ep_conn_param param = conn_param(NULL, 0);
	struct situation s = { .family = AF_INET, .ps = PS_TCP };
	struct rdma_ep_record rec;

	if (self->ctx.fd < 0)
		return;
	if (fail_handler(true))
		SKIP(return, "the kernel has no fault injection");
	make_listener(_metadata, self->fd, &s, 4);
	s.active = make_active(_metadata, self->fd, &s);
	/* The request is refused at once */
	do_ok(try_connect(self->fd, s.active, RDMA_EP_F_WAIT, &param, &rec));
	EXPECT_EVENT(REJECTED, &rec);
	do_ok(try_query(self->fd, s.listener, RDMA_EP_REC_INFO, &rec));
	EXPECT_EQ(1, rec.info.overflows);
	do_ok(try_destroy(self->fd, s.active));

	ASSERT_EQ(0, fail_handler(false));
	s.active = make_active(_metadata, self->fd, &s);
	param = conn_param(NULL, 0);
	do_ok(try_connect(self->fd, s.active, 0, &param, NULL));
	wait_event(_metadata, self->fd, s.listener,
		   RDMA_EP_EVENT_CONNECT_REQUEST, &rec);
	s.passive = rec.child;
	ASSERT_EQ(0, fail_handler(true));

	param = conn_param(NULL, 0);
	do_ok(try_accept(self->fd, s.passive, 0, &param, NULL));
	wait_event(_metadata, self->fd, s.active,
		   RDMA_EP_EVENT_CONNECT_RESPONSE, &rec);
	do_ok(try_establish(self->fd, s.active));
	wait_event(_metadata, self->fd, s.passive, RDMA_EP_EVENT_ESTABLISHED,
		   &rec);
	do_ok(try_disconnect(self->fd, s.active, 0, NULL));
	wait_event(_metadata, self->fd, s.passive, RDMA_EP_EVENT_DISCONNECTED,
		   &rec);
	do_ok(try_disconnect(self->fd, s.passive, 0, NULL));
	wait_event(_metadata, self->fd, s.active, RDMA_EP_EVENT_DISCONNECTED,
		   &rec);
	wait_event(_metadata, self->fd, s.active, RDMA_EP_EVENT_TIMEWAIT_EXIT,
		   &rec);
	EXPECT_EQ(0, fail_handler(false));
}

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = write(fd, text, strlen(text));
	close(fd);
	return n == (ssize_t)strlen(text) ? 0 : -EIO;
}

static int arm_fault(int fd, unsigned int nth)
{
	char text[16];
	int n = snprintf(text, sizeof(text), "%u", nth);

	return pwrite(fd, text, n, 0) == n ? 0 : -errno;
}

/* An allocation of the call fails, if there are so many: then @met is true */
static int disconnect_without(int fd, uint32_t ep, unsigned int nth, bool *met)
{
	int fail_fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	char text[16] = "";
	int ret;

	if (fail_fd < 0 || arm_fault(fail_fd, nth))
		return -ENOSYS;
	ret = try_disconnect(fd, ep, 0, NULL);
	*met = pread(fail_fd, text, sizeof(text) - 1, 0) > 0 && !atoi(text);
	if (arm_fault(fail_fd, 0))
		*met = false;	/* that one took the fault */
	close(fail_fd);
	return ret;
}

/*
 * rdma_disconnect() reports success when there was no memory for its message,
 * and no event comes: then the module makes one.
 */
TEST_F(hook, disconnect_without_memory)
{
	struct rdma_ep_record rec;
	unsigned int nth, lost = 0;
	bool met = true;

	if (self->ctx.fd < 0)
		return;
	if (write_file("/sys/kernel/debug/failslab/ignore-gfp-wait", "N"))
		SKIP(return, "the kernel has no fault injection");
	write_file("/sys/kernel/debug/failslab/verbose", "0");
	write_file("/sys/kernel/debug/fail_usercopy/verbose", "0");
	for (nth = 1; met && nth < 50; nth++) {
		struct situation s = { .family = AF_INET, .ps = PS_TCP };
		int ret;

		do_ok(set_patience(self->fd, 0));
		make_connected(_metadata, self->fd, &s);
		do_ok(set_patience(self->fd, 1));
		ret = disconnect_without(self->fd, s.active, nth, &met);
		ASSERT_NE(-ENOSYS, ret);
		if (!ret) {
			do_ok(try_disconnect(self->fd, s.passive, 0, NULL));
			wait_event(_metadata, self->fd, s.active,
				   RDMA_EP_EVENT_DISCONNECTED, &rec);
			lost += rec.status == -ETIMEDOUT;
			EXPECT_EQ(RDMA_EP_STATE_DISCONNECTED,
				  ep_state(_metadata, self->fd, s.active));
		}
		do_ok(try_destroy(self->fd, s.active));
		do_ok(try_destroy(self->fd, s.passive));
		do_ok(try_destroy(self->fd, s.listener));
	}
	do_ok(set_patience(self->fd, 0));
	EXPECT_GT(50, nth);
	TH_LOG("%u allocations, without %u of them rdma_cm says nothing",
	       nth - 2, lost);
}

/* Nobody has set a deadline, and the peer never ends what it has begun. */
TEST_F(hook, attempt_for_ever)
{
	struct situation s = { .family = AF_INET, .ps = PS_TCP };
	struct rdma_ep_conn_param param = conn_param(NULL, 0);
	struct rdma_ep_conn_param answer = conn_param(NULL, 0);
	struct rdma_ep_record rec;

	if (self->ctx.fd < 0)
		return;
	do_ok(set_patience(self->fd, 1));
	make_listener(_metadata, self->fd, &s, 16);
	s.active = make_active(_metadata, self->fd, &s);
	do_ok(try_connect(self->fd, s.active, 0, &param, NULL));
	wait_event(_metadata, self->fd, s.listener,
		   RDMA_EP_EVENT_CONNECT_REQUEST, &rec);
	s.passive = rec.child;
	/* The request is not answered, */
	wait_event(_metadata, self->fd, s.active, RDMA_EP_EVENT_UNREACHABLE,
		   &rec);
	EXPECT_EQ(-ETIMEDOUT, rec.status);
	EXPECT_EQ(RDMA_EP_STATE_FAILED, ep_state(_metadata, self->fd, s.active));
	do_ok(try_destroy(self->fd, s.active));
	do_ok(try_destroy(self->fd, s.passive));

	/* or the answer to it is not. */
	s.active = make_active(_metadata, self->fd, &s);
	param = conn_param(NULL, 0);
	do_ok(set_patience(self->fd, 3600));
	do_ok(try_connect(self->fd, s.active, 0, &param, NULL));
	wait_event(_metadata, self->fd, s.listener,
		   RDMA_EP_EVENT_CONNECT_REQUEST, &rec);
	s.passive = rec.child;
	do_ok(set_patience(self->fd, 1));
	do_ok(try_accept(self->fd, s.passive, 0, &answer, NULL));
	wait_event(_metadata, self->fd, s.passive, RDMA_EP_EVENT_UNREACHABLE,
		   &rec);
	EXPECT_EQ(-ETIMEDOUT, rec.status);
	EXPECT_EQ(RDMA_EP_STATE_FAILED,
		  ep_state(_metadata, self->fd, s.passive));
	do_ok(set_patience(self->fd, 0));
	do_ok(try_destroy(self->fd, s.active));
	do_ok(try_destroy(self->fd, s.passive));
	do_ok(try_destroy(self->fd, s.listener));
}

struct churn {
	pthread_t thread;
	int fd;
	volatile bool stop;
};

/* Attempts that begin and go, all the time */
static void *churn(void *arg)
{
	union test_addr nobody = nobody_addr(AF_INET, 4711);
	struct rdma_ep_conn_param param;
	struct churn *c = arg;
	uint32_t ep;

	while (!c->stop) {
		if (try_create_ep(c->fd, 0, PS_TCP, NULL, &nobody, NULL, &ep))
			continue;
		param = conn_param(NULL, 0);
		try_connect(c->fd, ep, 0, &param, NULL);
		try_destroy(c->fd, ep);
	}
	return NULL;
}

/*
 * Attempts become overdue every second, and are looked for among others that
 * begin and go; one that is to last longer does not put off who is not.
 */
TEST_F(hook, overdue_among_many)
{
	union test_addr nobody = nobody_addr(AF_INET, 4711);
	struct rdma_ep_conn_param param = conn_param(NULL, 0);
	struct churn c[3] = {};
	struct rdma_ep_record rec;
	uint32_t lasting, ep;
	uint64_t start;
	size_t i;

	if (self->ctx.fd < 0)
		return;
	do_ok(set_patience(self->fd, 600));
	do_ok(try_create_ep(self->fd, 0, PS_TCP, NULL, &nobody, NULL, &lasting));
	do_ok(try_connect(self->fd, lasting, 0, &param, NULL));
	for (i = 0; i < ARRAY_SIZE(c); i++) {
		c[i].fd = self->fd;
		ASSERT_EQ(0, pthread_create(&c[i].thread, NULL, churn, &c[i]));
	}
	for (i = 0; i < 8; i++) {
		do_ok(set_patience(self->fd, 1));
		do_ok(try_create_ep(self->fd, 0, PS_TCP, NULL, &nobody, NULL,
				    &ep));
		param = conn_param(NULL, 0);
		start = now_ms();
		do_ok(try_connect(self->fd, ep, 0, &param, NULL));
		do_ok(set_patience(self->fd, 600));
		wait_event(_metadata, self->fd, ep, RDMA_EP_EVENT_UNREACHABLE,
			   &rec);
		EXPECT_EQ(-ETIMEDOUT, rec.status);
		EXPECT_GT(5000 * slow(), now_ms() - start);
		do_ok(try_destroy(self->fd, ep));
	}
	for (i = 0; i < ARRAY_SIZE(c); i++) {
		c[i].stop = true;
		ASSERT_EQ(0, pthread_join(c[i].thread, NULL));
	}
	EXPECT_EQ(RDMA_EP_STATE_CONNECTING,
		  ep_state(_metadata, self->fd, lasting));
	do_ok(set_patience(self->fd, 0));
}

/* Until all of it is gone but this context */
static void wait_gone(struct __test_metadata *_metadata, int fd)
{
	const uint64_t start = now_ms();
	struct rdma_ep_test_count count;

	do {
		usleep(10000);
		do_ok(ioctl(fd, RDMA_EP_TEST_COUNT, &count));
	} while ((count.endpoints || count.contexts > 1) && now_ms() - start < 60000 * slow());
	EXPECT_EQ(0, count.endpoints);
	EXPECT_EQ(1, count.contexts);
}

/*
 * A device that keeps what is to be sent holds up rdma_destroy_id(). Nobody waits
 * for that: not who destroys, nor who closes the context.
 */
TEST_F(hook, device_that_keeps_messages)
{
	struct situation s = { .family = AF_INET, .ps = PS_TCP };
	struct situation other = s;
	struct rdma_ep_destroy_many many;
	struct rdma_ep_test_count count;
	uint64_t start;
	int fd;

	if (self->ctx.fd < 0)
		return;
	fd = open_ep();
	ASSERT_LE(0, fd);
	make_connected(_metadata, self->fd, &s);
	make_connected(_metadata, fd, &other);
	do_ok(set_patience(self->fd, 1));
	do_ok(set_stall(self->fd, 600));
	start = now_ms();
	do_ok(try_destroy(self->fd, s.active));
	EXPECT_LT(900, now_ms() - start);
	EXPECT_GT(3000 * slow(), now_ms() - start);
	EXPECT_EQ(-ENOENT, try_destroy(self->fd, s.active));
	many = (struct rdma_ep_destroy_many){
		.hdr = EP_HDR(many, 0), .eps_uptr = UPTR(&s.passive), .count = 1,
	};
	start = now_ms();
	do_ok(ep_ioctl(self->fd, RDMA_EP_DESTROY_MANY, &many));
	EXPECT_EQ(1, many.out_destroyed);
	EXPECT_GT(3000 * slow(), now_ms() - start);
	start = now_ms();
	ASSERT_EQ(0, close(fd));
	EXPECT_GT(3000 * slow(), now_ms() - start);
	do_ok(ioctl(self->fd, RDMA_EP_TEST_COUNT, &count));
	EXPECT_LE(5, count.endpoints);

	/* and then all of it goes */
	do_ok(set_stall(self->fd, 0));
	do_ok(set_patience(self->fd, 0));
	do_ok(try_destroy(self->fd, s.listener));
	wait_gone(_metadata, self->fd);
}

/*
 * More than a work queue takes at once, on any kernel: nobody waits longer for that, whether
 * it is his own or not.
 */
TEST_F(hook, device_that_keeps_very_many)
{
	const struct place connected = PLACE("connected", NONE, CONNECTED);
	struct rdma_ep_test_count count;
	const int many = 1100;
	uint32_t ep[3], more;
	uint64_t start;
	int fd, i;

	if (self->ctx.fd < 0)
		return;
	fd = open_ep();
	ASSERT_LE(0, fd);
	for (i = 0; i < many; i++)
		do_ok(try_create(fd, PS_TCP, -1, 0, &more));
	for (i = 0; i < 3; i++)
		make_place(_metadata, self->fd, PS_TCP, &connected, &ep[i]);
	do_ok(set_patience(self->fd, 1));
	do_ok(set_stall(self->fd, 600));
	start = now_ms();
	ASSERT_EQ(0, close(fd));
	EXPECT_GT(4000 * slow(), now_ms() - start);
	start = now_ms();
	do_ok(try_destroy(self->fd, ep[0]));
	EXPECT_GT(4000 * slow(), now_ms() - start);
	/* the device's removal has begun to destroy the id */
	do_ok(try_test_event(self->fd, ep[1], RDMA_EP_EVENT_DEVICE_REMOVAL, 0, 0, NULL));
	start = now_ms();
	do_ok(try_destroy(self->fd, ep[1]));
	EXPECT_GT(4000 * slow(), now_ms() - start);
#if HAVE_LIBURING
	{
		struct rdma_ep_destroy cmd = { .hdr = EP_HDR(cmd, 0), .ep = ep[2] };
		struct io_uring ring;

		ASSERT_EQ(0, io_uring_queue_init(4, &ring, 0));
		start = now_ms();
		do_ok(call(&ring, self->fd, RDMA_EP_DESTROY, &cmd));
		EXPECT_GT(4000 * slow(), now_ms() - start);
		io_uring_queue_exit(&ring);
	}
#else
	do_ok(try_destroy(self->fd, ep[2]));
#endif
	do_ok(ioctl(self->fd, RDMA_EP_TEST_COUNT, &count));
	EXPECT_LE(many, count.endpoints);

	do_ok(set_stall(self->fd, 0));
	do_ok(set_patience(self->fd, 0));
	wait_gone(_metadata, self->fd);
}

TEST_HARNESS_MAIN
