// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What librdmacm has got since: rdma_write_cm_event(3),
 * rdma_resolve_addrinfo(3), rdma_query_addrinfo(3). They are looked up, since
 * neither the header nor the librdmacm of a distribution need have them; the
 * tests skip on a librdmacm without.
 */
#include "api_utils.h"

/* RDMACM_1.4's values, whichever header there is */
#define EVENT_ADDRINFO_RESOLVED	16
#define EVENT_ADDRINFO_ERROR	17
#define EVENT_USER		18
#define FLAG_SA			0x10
#define FLAG_DNS		0x20

typedef int (*write_event_fn)(struct rdma_cm_id *, enum rdma_cm_event_type, int,
			      uint64_t);
typedef int (*resolve_addrinfo_fn)(struct rdma_cm_id *, const char *,
				   const char *, const struct rdma_addrinfo *);
typedef int (*query_addrinfo_fn)(struct rdma_cm_id *, struct rdma_addrinfo **);

FIXTURE(newer) {
	struct objects before;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	write_event_fn write_event;
	resolve_addrinfo_fn resolve_addrinfo;
	query_addrinfo_fn query_addrinfo;
};

FIXTURE_SETUP(newer)
{
	self->before = count_objects();
	self->write_event = own_function(write_event_fn, "rdma_write_cm_event");
	self->resolve_addrinfo = own_function(resolve_addrinfo_fn,
					      "rdma_resolve_addrinfo");
	self->query_addrinfo = own_function(query_addrinfo_fn,
					    "rdma_query_addrinfo");
	self->channel = rdma_create_event_channel();
	ASSERT_NE(NULL, self->channel);
	ok(rdma_create_id(self->channel, &self->id, NULL, RDMA_PS_TCP));
}

FIXTURE_TEARDOWN(newer)
{
	if (!_metadata->passed)
		return;
	if (self->id)
		ok(rdma_destroy_id(self->id));
	rdma_destroy_event_channel(self->channel);
	expect_no_leak(&self->before);
}

#define needs(function)							\
	do {								\
		if (on_stock() && !self->function)			\
			SKIP(return, "this librdmacm has no " #function); \
		ASSERT_NE(NULL, self->function);			\
	} while (0)

/* get_event() for what rdma_event_str() of a librdmacm may not know */
#define get_event_number(channel, number)				\
	({								\
		struct rdma_cm_event *__e = next_event(channel);	\
									\
		ASSERT_NE(NULL, __e);					\
		ASSERT_EQ(number, (int)__e->event);			\
		__e;							\
	})

/* param.arg, which older headers do not have in the union */
static uint64_t event_arg(struct rdma_cm_event *event)
{
	uint64_t arg;

	memcpy(&arg, &event->param, sizeof(arg));
	return arg;
}

TEST_F(newer, write_event)
{
	struct rdma_cm_event *event;

	needs(write_event);
	ok(self->write_event(self->id, EVENT_USER, -5, 0x123456789abcdef0ULL));
	event = get_event_number(self->channel, EVENT_USER);
	EXPECT_EQ(self->id, event->id);
	EXPECT_EQ(-5, event->status);
	EXPECT_EQ(0x123456789abcdef0ULL, event_arg(event));
	EXPECT_STREQ("RDMA_CM_EVENT_USER", rdma_event_str(EVENT_USER));
	ok(rdma_ack_cm_event(event));
}

/* in the order they were written, between others */
TEST_F(newer, write_event_order)
{
	struct sockaddr_storage addr = my_addr(AF_INET, 7471);
	struct rdma_cm_event *event;
	uint64_t i;

	needs(write_event);
	for (i = 0; i < 5; i++)
		ok(self->write_event(self->id, EVENT_USER, 0, i));
	ok(rdma_resolve_addr(self->id, NULL, sa(&addr), RESOLVE_MS));
	for (i = 0; i < 5; i++) {
		event = get_event_number(self->channel, EVENT_USER);
		EXPECT_EQ(i, event_arg(event));
		ok(rdma_ack_cm_event(event));
	}
	expect_event(self->channel, RDMA_CM_EVENT_ADDR_RESOLVED);
}

static void *get_one(void *channel)
{
	struct rdma_cm_event *event;

	return rdma_get_cm_event(channel, &event) ? NULL : event;
}

/* what it is for: to wake a thread that sleeps in rdma_get_cm_event */
TEST_F(newer, write_event_wakes)
{
	pthread_t thread;
	void *event;

	needs(write_event);
	ASSERT_EQ(0, pthread_create(&thread, NULL, get_one, self->channel));
	sleep_ms(NEVER_MS);
	ASSERT_EQ(EBUSY, pthread_tryjoin_np(thread, &event));
	ok(self->write_event(self->id, EVENT_USER, 0, 77));
	ASSERT_EQ(0, pthread_join(thread, &event));
	ASSERT_NE(NULL, event);
	EXPECT_EQ(77, event_arg(event));
	ok(rdma_ack_cm_event(event));
}

/* They go with their id. */
TEST_F(newer, write_event_destroyed)
{
	needs(write_event);
	ok(self->write_event(self->id, EVENT_USER, 0, 1));
	ok(rdma_destroy_id(self->id));
	self->id = NULL;
	expect_silence(self->channel);
}

/* Only this kind may be made up. */
TEST_F(newer, error_write_event)
{
	needs(write_event);
	err(EINVAL, self->write_event(self->id, RDMA_CM_EVENT_ESTABLISHED, 0, 0));
	err(EINVAL, self->write_event(self->id, 99, 0, 0));
	expect_silence(self->channel);
}

TEST_F(newer, resolve_addrinfo)
{
	struct rdma_addrinfo hints = {
		.ai_flags = FLAG_DNS, .ai_port_space = RDMA_PS_TCP,
	}, *info;
	struct sockaddr_storage addr = my_addr(AF_INET, 7471);

	needs(resolve_addrinfo);
	needs(query_addrinfo);
	ok(self->resolve_addrinfo(self->id, my_ip(AF_INET), "7471", &hints));
	ok(rdma_ack_cm_event(get_event_number(self->channel,
					      EVENT_ADDRINFO_RESOLVED)));
	ok(self->query_addrinfo(self->id, &info));
	ASSERT_NE(NULL, info);
	EXPECT_TRUE(same_ip(sa(&addr), info->ai_dst_addr));
	EXPECT_EQ(7471, port_of(info->ai_dst_addr));
	EXPECT_EQ(RDMA_PS_TCP, info->ai_port_space);

	/* which is what rdma_resolve_addr wants */
	ok(rdma_resolve_addr(self->id, NULL, info->ai_dst_addr, RESOLVE_MS));
	expect_event(self->channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	rdma_freeaddrinfo(info);
}

TEST_F(newer, resolve_addrinfo_error)
{
	struct rdma_addrinfo hints = {
		.ai_flags = FLAG_DNS | RAI_NUMERICHOST,
		.ai_port_space = RDMA_PS_TCP,
	}, *info;
	struct rdma_cm_event *event;

	needs(resolve_addrinfo);
	needs(query_addrinfo);
	ok(self->resolve_addrinfo(self->id, "not-a-number", "7471", &hints));
	event = get_event_number(self->channel, EVENT_ADDRINFO_ERROR);
	EXPECT_GT(0, event->status);
	ok(rdma_ack_cm_event(event));
	EXPECT_EQ(-1, self->query_addrinfo(self->id, &info));
}

TEST_F(newer, resolve_addrinfo_synchronous)
{
	struct rdma_addrinfo hints = {
		.ai_flags = FLAG_DNS, .ai_port_space = RDMA_PS_TCP,
	}, *info;
	struct rdma_cm_id *id;

	needs(resolve_addrinfo);
	needs(query_addrinfo);
	ok(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP));
	ok(self->resolve_addrinfo(id, my_ip(AF_INET), "7471", &hints));
	ok(self->query_addrinfo(id, &info));
	EXPECT_EQ(7471, port_of(info->ai_dst_addr));
	rdma_freeaddrinfo(info);
	ok(rdma_destroy_id(id));
}

/* not both ways at once */
TEST_F(newer, error_resolve_addrinfo)
{
	struct rdma_addrinfo hints = { .ai_flags = FLAG_DNS | FLAG_SA }, *info;

	needs(resolve_addrinfo);
	needs(query_addrinfo);
	err(EINVAL, self->resolve_addrinfo(self->id, "10.77.0.1", "1", &hints));
	EXPECT_EQ(-1, self->query_addrinfo(self->id, &info));
}

TEST_HARNESS_MAIN
