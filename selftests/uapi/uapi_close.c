// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The end of a context, however it comes: close, exit, a signal that cannot be
 * caught, in the middle of everything. Nothing stays, and it does not take
 * long, however many endpoints there are.
 */
#include <sys/resource.h>

#include "rdma_ep_utils.h"

#define MANY		1000
#define CONNECTIONS	100
#define PROMPT_MS	(30000 * slow())	/* on a slow machine; one by one takes minutes */

FIXTURE(close)
{
	struct test_ctx ctx;
	int fd;
	struct situation s;
	struct rdma_ep_record rec;
};

FIXTURE_SETUP(close)
{
	ctx_open(_metadata, &self->ctx);
	self->fd = self->ctx.fd;
	self->s.family = AF_INET;
	self->s.ps = PS_TCP;
}

FIXTURE_TEARDOWN(close)
{
	ctx_close(_metadata, &self->ctx);
}

/* One more connection of the listener's: both ends are left to the context */
static void connect_one(struct __test_metadata *_metadata, int fd,
			struct situation *s)
{
	struct rdma_ep_conn_param param = conn_param(NULL, 0);
	struct rdma_ep_conn_param answer = conn_param(NULL, 0);
	struct rdma_ep_record rec;

	s->active = make_active(_metadata, fd, s);
	do_ok(try_connect(fd, s->active, 0, &param, NULL));
	wait_event(_metadata, fd, s->listener, RDMA_EP_EVENT_CONNECT_REQUEST,
		   &rec);
	s->passive = rec.child;
	do_ok(try_accept(fd, s->passive, 0, &answer, NULL));
	wait_event(_metadata, fd, s->active, RDMA_EP_EVENT_CONNECT_RESPONSE,
		   &rec);
	do_ok(try_establish(fd, s->active));
	wait_event(_metadata, fd, s->passive, RDMA_EP_EVENT_ESTABLISHED, &rec);
}

/* The incumbent needs a descriptor for each: 1,000 do not fit in most limits */
TEST_F(close, many_endpoints_few_descriptors)
{
	union test_addr addr = host_addr(AF_INET, 0);
	struct rlimit limit = { 64, 64 };
	uint64_t start;
	uint32_t ep;
	int i;

	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	for (i = 0; i < MANY; i++) {
		do_ok(try_create(self->fd, PS_TCP, -1, i, &ep));
		do_ok(try_bind(self->fd, ep, &addr, NULL));
	}
	EXPECT_EQ(MANY, count_endpoints(_metadata, self->fd));
	start = now_ms();
	ASSERT_EQ(0, close(self->fd));
	self->ctx.fd = -1;
	EXPECT_GT(PROMPT_MS, now_ms() - start);
	TH_LOG("closed %d endpoints in %llu ms", MANY,
	       (unsigned long long)(now_ms() - start));
}

TEST_F(close, many_connections)
{
	uint64_t start;
	int i;

	make_listener(_metadata, self->fd, &self->s, 0);
	for (i = 0; i < CONNECTIONS; i++)
		connect_one(_metadata, self->fd, &self->s);
	start = now_ms();
	ASSERT_EQ(0, close(self->fd));
	self->ctx.fd = -1;
	EXPECT_GT(PROMPT_MS, now_ms() - start);
	TH_LOG("closed %d connections in %llu ms", CONNECTIONS,
	       (unsigned long long)(now_ms() - start));
}

/* Events that nobody has read, requests among them */
TEST_F(close, unread)
{
	struct rdma_ep_conn_param param;
	int i, chan;

	do_ok(try_create_channel(self->fd, 0, &chan));
	make_listener(_metadata, self->fd, &self->s, 0);
	do_ok(try_attach(self->fd, self->s.listener, chan));
	for (i = 0; i < 20; i++) {
		self->s.active = make_active(_metadata, self->fd, &self->s);
		do_ok(try_attach(self->fd, self->s.active, chan));
		param = conn_param(&i, sizeof(i));
		do_ok(try_connect(self->fd, self->s.active, 0, &param, NULL));
		do_ok(try_write_event(self->fd, self->s.active, 0, i));
	}
	do {
		usleep(10000);
		do_ok(try_query(self->fd, self->s.listener, RDMA_EP_REC_INFO,
				&self->rec));
	} while (self->rec.info.requests < 20);
	ASSERT_EQ(0, close(self->fd));
	self->ctx.fd = -1;
	EXPECT_EQ(0, read(chan, &self->rec, sizeof(self->rec)));
	close(chan);
}

/* Operations under way */
TEST_F(close, operations_under_way)
{
	union test_addr nobody = nobody_addr(AF_INET, 4711);
	struct rdma_ep_conn_param param;
	uint64_t start;
	uint32_t ep;
	int i;

	for (i = 0; i < 20; i++) {
		do_ok(try_create_ep(self->fd, 0, PS_TCP, NULL, &nobody, NULL,
				    &ep));
		param = conn_param(NULL, 0);
		do_ok(try_connect(self->fd, ep, 0, &param, NULL));
	}
	ASSERT_EQ(0, host_netdev_arp(true));
	for (i = 0; i < 20; i++) {
		do_ok(try_create(self->fd, PS_TCP, -1, 0, &ep));
		do_ok(try_resolve_addr(self->fd, ep, 0, NULL, &nobody, 600000,
				       NULL));
	}
	start = now_ms();
	EXPECT_EQ(0, close(self->fd));
	self->ctx.fd = -1;
	EXPECT_GT(PROMPT_MS, now_ms() - start);
	EXPECT_EQ(0, host_netdev_arp(false));
}

/* The peer of a closed context is told */
TEST_F(close, peer_is_told)
{
	struct situation s = self->s;
	int fd2 = open_ep();
	struct rdma_ep_conn_param param = conn_param(NULL, 0);
	struct rdma_ep_conn_param answer = conn_param(NULL, 0);

	ASSERT_LE(0, fd2);
	make_listener(_metadata, self->fd, &s, 4);
	s.active = make_active(_metadata, fd2, &s);
	do_ok(try_connect(fd2, s.active, 0, &param, NULL));
	wait_event(_metadata, self->fd, s.listener,
		   RDMA_EP_EVENT_CONNECT_REQUEST, &self->rec);
	s.passive = self->rec.child;
	do_ok(try_accept(self->fd, s.passive, 0, &answer, NULL));
	wait_event(_metadata, fd2, s.active, RDMA_EP_EVENT_CONNECT_RESPONSE,
		   &self->rec);
	do_ok(try_establish(fd2, s.active));
	wait_event(_metadata, self->fd, s.passive, RDMA_EP_EVENT_ESTABLISHED,
		   &self->rec);
	ASSERT_EQ(0, close(fd2));
	wait_event(_metadata, self->fd, s.passive, RDMA_EP_EVENT_DISCONNECTED,
		   &self->rec);
}

/* The descriptor is shared: the context ends with its last holder */
TEST_F(close, inherited)
{
	uint32_t ep;
	int status;
	pid_t pid;

	do_ok(try_create(self->fd, PS_TCP, -1, 7, &ep));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		/* the parent's endpoints are there, and can be used */
		if (try_write_event(self->fd, ep, 0, 3))
			_exit(1);
		close(self->fd);
		_exit(0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	wait_event(_metadata, self->fd, ep, RDMA_EP_EVENT_USER, &self->rec);
	EXPECT_EQ(3, self->rec.arg);
}

/* A child makes a context of its own; the parent is undisturbed */
TEST_F(close, child_with_a_context_of_its_own)
{
	int status;
	pid_t pid;

	make_connected(_metadata, self->fd, &self->s);
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		struct situation s = { .family = AF_INET, .ps = PS_TCP };
		int fd = open_ep();

		make_connected(_metadata, fd, &s);
		_exit(!_metadata->passed);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	expect_silence(_metadata, self->fd, self->s.active, 100);
	do_ok(try_disconnect(self->fd, self->s.active, 0, NULL));
	wait_event(_metadata, self->fd, self->s.passive,
		   RDMA_EP_EVENT_DISCONNECTED, &self->rec);
}

/* What a process does until it is killed */
enum victim {
	HOLDS_CONNECTIONS,
	HOLDS_REQUESTS,
	WAITS,
	READS,
	CONNECTS_AND_WAITS,
	WORKS,
};

FIXTURE(kill)
{
	struct leak_count before;
};

FIXTURE_VARIANT(kill)
{
	enum victim victim;
};

#define VICTIM(name, value)			\
	FIXTURE_VARIANT_ADD(kill, name)		\
	{					\
		.victim = value,		\
	}

VICTIM(holding_connections, HOLDS_CONNECTIONS);
VICTIM(holding_requests, HOLDS_REQUESTS);
VICTIM(waiting, WAITS);
VICTIM(reading, READS);
VICTIM(connecting, CONNECTS_AND_WAITS);
VICTIM(working, WORKS);

FIXTURE_SETUP(kill)
{
	ASSERT_EQ(0, count_resources(&self->before));
}

FIXTURE_TEARDOWN(kill)
{
}

/* Says on @ready that it has got where it shall be killed */
static void be_victim(struct __test_metadata *_metadata, enum victim victim,
		      int ready)
{
	union test_addr nobody = nobody_addr(AF_INET, 4711);
	struct situation s = { .family = AF_INET, .ps = PS_TCP };
	struct rdma_ep_conn_param param = conn_param(NULL, 0);
	struct rdma_ep_record rec;
	int fd = open_ep(), chan, i;
	uint32_t ep = 0;

	do_ok(try_create_channel(fd, 0, &chan));
	make_listener(_metadata, fd, &s, 0);
	switch (victim) {
	case HOLDS_CONNECTIONS:
		for (i = 0; i < CONNECTIONS; i++)
			connect_one(_metadata, fd, &s);
		break;
	case HOLDS_REQUESTS:
		for (i = 0; i < 20; i++) {
			s.active = make_active(_metadata, fd, &s);
			param = conn_param(NULL, 0);
			do_ok(try_connect(fd, s.active, 0, &param, NULL));
		}
		break;
	case CONNECTS_AND_WAITS:
		do_ok(try_create_ep(fd, 0, PS_TCP, NULL, &nobody, NULL, &ep));
		break;
	case WAITS:
	case READS:
	case WORKS:
		break;
	}
	ASSERT_EQ(1, write(ready, "", 1));
	switch (victim) {
	case CONNECTS_AND_WAITS:
		try_connect(fd, ep, RDMA_EP_F_WAIT, &param, &rec);
		break;
	case WAITS:
		try_wait(fd, s.listener, 0, &rec);
		break;
	case READS:
		try_read(chan, &rec);
		break;
	case WORKS:
		while (true)
			connect_one(_metadata, fd, &s);
		break;
	default:
		break;
	}
	while (true)
		pause();
}

TEST_F(kill, leaves_nothing)
{
	struct leak_count now;
	uint64_t start;
	int ready[2], status;
	pid_t pid;
	char byte;

	ASSERT_EQ(0, pipe(ready));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		be_victim(_metadata, variant->victim, ready[1]);
		_exit(1);
	}
	close(ready[1]);
	ASSERT_EQ(1, read(ready[0], &byte, 1));
	close(ready[0]);
	usleep(200000);

	start = now_ms();
	ASSERT_EQ(0, kill(pid, SIGKILL));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_TRUE(WIFSIGNALED(status));
	EXPECT_EQ(SIGKILL, WTERMSIG(status));
	EXPECT_GT(PROMPT_MS, now_ms() - start);
	TH_LOG("gone after %llu ms", (unsigned long long)(now_ms() - start));

	ASSERT_EQ(0, count_resources(&now));
	EXPECT_EQ(self->before.cm_ids, now.cm_ids);
}

TEST_HARNESS_MAIN
