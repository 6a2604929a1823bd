// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Much of everything, through the ioctls: what it costs, that it ends, that all
 * of it is given back, and that one who takes too much harms nobody else.
 */
#include "../uapi/rdma_ep_utils.h"
#include "load_util.h"

#include <sys/resource.h>

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 3600

FIXTURE(load)
{
	struct test_ctx ctx;
	struct situation s;
	struct rdma_ep_record rec;
	int fd;
};

FIXTURE_SETUP(load)
{
	ctx_open(_metadata, &self->ctx);
	self->fd = self->ctx.fd;
	self->s = (struct situation){ .family = AF_INET, .ps = PS_TCP };
}

FIXTURE_TEARDOWN(load)
{
	ctx_close(_metadata, &self->ctx);
}

static void say(const char *what, long before, long now, long count)
{
	printf("# %s: %+ld KiB of slab, %.2f KiB each\n", what, now - before,
	       (double)(now - before) / count);
}

/* Made and destroyed again and again: the slab does not grow */
TEST_F(load, create_and_destroy)
{
	const long count = in_long_form(20000, 1000000);
	long before = 0, now, i;
	uint64_t start = 0;
	uint32_t ep;

	for (i = -5000; i < count; i++) {
		if (!i) { /* caches are warm */
			sleep(1);
			before = slab_kib();
			start = now_ms();
		}
		do_ok(try_create(self->fd, PS_TCP, -1, 0, &ep));
		do_ok(try_destroy(self->fd, ep));
	}
	printf("# %ld times in %llu ms\n", count, (unsigned long long)(now_ms() - start));
	now = settled_slab_kib(before);
	say("left", before, now, count);
	EXPECT_GT(before + 1024, now);
}

/* What a channel holds that nobody reads: bounded, and given back */
TEST_F(load, events_that_nobody_reads)
{
	const int endpoints = in_long_form(20, 200);
	long before = slab_kib(), full, events = 0;
	uint32_t eps[200];
	int chan, i, ret;

	do_ok(try_create_channel(self->fd, 0, &chan));
	for (i = 0; i < endpoints; i++) {
		do_ok(try_create(self->fd, PS_TCP, chan, 0, &eps[i]));
		while (!(ret = try_write_event(self->fd, eps[i], 0, i)))
			events++;
		ASSERT_EQ(-ENOSPC, ret);
	}
	full = slab_kib();
	say("events written", before, full, events);
	EXPECT_EQ(1024 * endpoints, events);
	EXPECT_EQ(events, counter("events_waiting"));
	/* there is no way to have more */
	for (i = 0; i < 10000; i++)
		ASSERT_EQ(-ENOSPC, try_write_event(self->fd, eps[i % endpoints], 0, i));
	EXPECT_GT(full + 1024, settled_slab_kib(full));
	close(chan);
	for (i = 0; i < endpoints; i++)
		do_ok(try_destroy(self->fd, eps[i]));
	EXPECT_GT(before + 1024, settled_slab_kib(before + 512));
	EXPECT_EQ(0, counter("events_waiting"));
}

/* More requests than the backlog takes, while nobody reads: so many, and no more */
TEST_F(load, requests_that_nobody_reads)
{
	const int requests = in_long_form(100, 1000);
	struct rdma_ep_conn_param param;
	struct rdma_ep_record rec;
	int refused = 0, i;
	uint32_t ep;

	make_listener(_metadata, self->fd, &self->s, 16);
	for (i = 0; i < 16; i++) {
		ep = make_active(_metadata, self->fd, &self->s);
		param = conn_param(NULL, 0);
		do_ok(try_connect(self->fd, ep, 0, &param, NULL));
	}
	/* ib_cm has a worker per processor: the next may come before the last of these */
	do {
		usleep(10000);
		do_ok(try_query(self->fd, self->s.listener, RDMA_EP_REC_INFO, &rec));
	} while (rec.info.requests < 16);
	for (i = 16; i < requests; i++) {
		ep = make_active(_metadata, self->fd, &self->s);
		param = conn_param(NULL, 0);
		do_ok(try_connect(self->fd, ep, RDMA_EP_F_WAIT, &param, &rec));
		if (rec.type == RDMA_EP_EVENT_REJECTED)
			refused++;
		do_ok(try_destroy(self->fd, ep));
	}
	do_ok(try_query(self->fd, self->s.listener, RDMA_EP_REC_INFO, &rec));
	EXPECT_EQ(16, rec.info.requests);
	EXPECT_EQ(requests - 16, refused);
	EXPECT_EQ(refused, rec.info.overflows);
	EXPECT_EQ(1 + 16 + 16, count_endpoints(_metadata, self->fd));
}

/* Answers every request of the listener, as its process does */
static void *accept_all(void *arg)
{
	struct rdma_ep_conn_param param;
	struct peer *p = arg;
	struct rdma_ep_record rec;

	while (!(p->ret = try_wait(p->fd, p->ep, 0, &rec))) {
		if (rec.type != RDMA_EP_EVENT_CONNECT_REQUEST)
			continue;
		param = conn_param(NULL, 0);
		try_accept(p->fd, rec.child, 0, &param, NULL);
	}
	return NULL;
}

/* A process that holds many connections is killed: their peers are told, all goes */
TEST_F(load, killed_with_many_connections)
{
	const int connections = in_long_form(300, 2000);
	struct rdma_ep_conn_param param;
	struct peer acceptor = {};
	long before, held, told = 0;
	uint64_t start;
	int ready[2], status, chan, i;
	uint32_t ep = 0;
	pid_t pid;
	char byte;

	make_listener(_metadata, self->fd, &self->s, 64);
	before = slab_kib();
	do_ok(try_create_channel(self->fd, 0, &chan));
	ASSERT_EQ(0, pipe(ready));
	start = now_ms();
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		int fd = open_ep();

		close(self->fd);
		for (i = 0; i < connections; i++) {
			if (try_create_ep(fd, 0, PS_TCP, NULL, &self->s.addr, NULL, &ep))
				_exit(1);
			param = conn_param(NULL, 0);
			if (try_connect(fd, ep, RDMA_EP_F_WAIT, &param, &self->rec) ||
			    self->rec.type != RDMA_EP_EVENT_CONNECT_RESPONSE ||
			    try_establish(fd, ep)) {
				dprintf(STDOUT_FILENO, "# connection %d: event %u, status %d\n", i,
					self->rec.type, self->rec.status);
				_exit(2);
			}
		}
		if (write(ready[1], "", 1) != 1)
			_exit(3);
		while (true)
			pause();
	}
	acceptor.fd = self->fd;
	acceptor.ep = self->s.listener;
	ASSERT_EQ(0, pthread_create(&acceptor.thread, NULL, accept_all, &acceptor));
	close(ready[1]);
	ASSERT_EQ(1, read(ready[0], &byte, 1)) TH_LOG("the other process has given up");
	held = slab_kib();
	printf("# %d connections in %llu ms\n", connections,
	       (unsigned long long)(now_ms() - start));
	say("held", before, held, connections);
	EXPECT_EQ(connections * 2 + 1, counter("endpoints"));
	for (i = 0; i < 100 && ep_state(_metadata, self->fd, connections + 1) !=
	     RDMA_EP_STATE_CONNECTED; i++)
		usleep(10000);

	start = now_ms();
	ASSERT_EQ(0, kill(pid, SIGKILL));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	printf("# killed, gone after %llu ms\n", (unsigned long long)(now_ms() - start));
	EXPECT_GT(60000 * slow(), now_ms() - start);
	EXPECT_EQ(connections + 1, counter("endpoints"));

	/* Each that is left has been told, or is about to be */
	for (i = 2; i < connections + 2; i++) {
		uint64_t since = now_ms();

		while (ep_state(_metadata, self->fd, i) != RDMA_EP_STATE_DISCONNECTED &&
		       now_ms() - since < 20000 * slow())
			usleep(20000);
		told += ep_state(_metadata, self->fd, i) == RDMA_EP_STATE_DISCONNECTED;
	}
	EXPECT_EQ(connections, told);
	printf("# all were told after %llu ms\n", (unsigned long long)(now_ms() - start));
	do_ok(try_destroy(self->fd, self->s.listener));
	ASSERT_EQ(0, pthread_join(acceptor.thread, NULL));
	for (i = 2; i < connections + 2; i++)
		do_ok(try_destroy(self->fd, i));
	close(chan);
	close(ready[0]);
	/* ib_cm keeps what is in timewait for some seconds */
	held = settled_slab_kib(before + 1024);
	say("left", before, held, connections);
	EXPECT_GT(before + 2048, held);
	EXPECT_EQ(1, counter("contexts"));
	EXPECT_EQ(0, counter("endpoints"));
}

/*
 * Memory control groups
 */

#define GROUP "/sys/fs/cgroup/rdma_ep-load"

static bool write_group(const char *file, const char *text)
{
	char path[128];
	int fd, ok;

	snprintf(path, sizeof(path), "%s/%s", GROUP, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ok = write(fd, text, strlen(text)) == strlen(text);
	close(fd);
	return ok;
}

static long read_group(const char *file)
{
	char path[128];
	FILE *f;
	long val;

	snprintf(path, sizeof(path), "%s/%s", GROUP, file);
	f = fopen(path, "re");
	if (!f)
		return -1;
	if (fscanf(f, "%ld", &val) != 1)
		val = -1;
	fclose(f);
	return val;
}

FIXTURE(group)
{
	struct test_ctx ctx;
	struct situation s;
	struct rdma_ep_record rec;
	int fd;
	int ready[2];
	int go[2];
};

FIXTURE_SETUP(group)
{
	int fd = open("/sys/fs/cgroup/cgroup.subtree_control", O_WRONLY | O_CLOEXEC);

	ASSERT_LE(0, fd);
	ASSERT_EQ(7, write(fd, "+memory", 7));
	close(fd);
	ASSERT_EQ(0, mkdir(GROUP, 0755));
	ctx_open(_metadata, &self->ctx);
	self->fd = self->ctx.fd;
	self->s = (struct situation){ .family = AF_INET, .ps = PS_TCP };
	ASSERT_EQ(0, pipe2(self->ready, O_CLOEXEC));
	ASSERT_EQ(0, pipe2(self->go, O_CLOEXEC));
}

FIXTURE_TEARDOWN(group)
{
	int i;

	for (i = 0; i < 2; i++) {
		close(self->ready[i]);
		close(self->go[i]);
	}
	ctx_close(_metadata, &self->ctx);
	for (i = 0; i < 100 && rmdir(GROUP); i++)
		usleep(100000);
	EXPECT_GT(100, i) TH_LOG("the group is still in use");
}

static void enter_group(void)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", getpid());
	if (!write_group("cgroup.procs", pid))
		_exit(10);
}

static void tell(int fd)
{
	if (write(fd, "", 1) != 1)
		_exit(11);
}

static void hear(int fd)
{
	char byte;

	if (read(fd, &byte, 1) != 1)
		_exit(12);
}

/* What a process makes is charged to its group, and the charge goes with it */
TEST_F(group, charges)
{
	const int count = 4000;
	long charged, slab, left;
	int status, i;
	uint32_t ep;
	pid_t pid;

	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		int fd;

		close(self->go[1]);
		enter_group();
		fd = open_ep();
		for (i = 0; i < 100; i++)
			try_create(fd, PS_TCP, -1, 0, &ep);
		tell(self->ready[1]);
		hear(self->go[0]);
		for (i = 0; i < count; i++)
			if (try_create(fd, PS_TCP, -1, 0, &ep))
				_exit(1);
		tell(self->ready[1]);
		hear(self->go[0]);
		_exit(0);
	}
	hear(self->ready[0]);
	charged = number_in(GROUP "/memory.stat", "slab_unreclaimable");
	slab = slab_kib();
	tell(self->go[1]);
	hear(self->ready[0]);
	charged = number_in(GROUP "/memory.stat", "slab_unreclaimable") - charged;
	slab = slab_kib() - slab;
	printf("# an endpoint: %ld bytes of slab, of which %ld are charged\n",
	       slab * 1024 / count, charged / count);
	tell(self->go[1]);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	/* the endpoint itself, its handle; what rdma_cm takes is not */
	EXPECT_LE(300, charged / count);
	for (i = 0; i < 100; i++) {
		left = number_in(GROUP "/memory.stat", "slab_unreclaimable");
		if (left < charged / 8)
			break;
		usleep(100000);
	}
	EXPECT_GT(100, i) TH_LOG("%ld bytes are still charged", left);
}

/*
 * What a peer's request takes is charged to who listens. With a full group the
 * peer is refused at once, and the listener lives on. Who has been refused cannot
 * be said by the counter: where a message is lost the peer asks, and is refused,
 * once more.
 */
TEST_F(group, requests)
{
	const long before = counter("backlog_overflows");
	const int all = 1000, first = 200;	/* of them with room enough */
	struct rdma_ep_conn_param param;
	int told[2], refused = 0, status, i;
	long charged, requests = 0;
	char most[32];
	uint32_t eps[all];
	pid_t pid;

	ASSERT_EQ(0, pipe2(told, O_CLOEXEC));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		struct situation s = self->s;
		int fd;

		close(self->go[1]);
		enter_group();
		fd = open_ep();
		make_listener(_metadata, fd, &s, all);
		if (write(told[1], &s, sizeof(s)) != sizeof(s))
			_exit(1);
		hear(self->go[0]);
		if (try_query(fd, s.listener, RDMA_EP_REC_INFO, &self->rec))
			_exit(2);
		requests = self->rec.info.requests;
		_exit(write(told[1], &requests, sizeof(requests)) != sizeof(requests));
	}
	ASSERT_EQ((ssize_t)sizeof(self->s), read(told[0], &self->s, sizeof(self->s)));
	charged = number_in(GROUP "/memory.stat", "slab_unreclaimable");
	for (i = 0; i < all; i++) {
		eps[i] = make_active(_metadata, self->fd, &self->s);
		param = conn_param(NULL, 0);
		do_ok(try_connect(self->fd, eps[i], 0, &param, NULL));
		if (i != first - 1)
			continue;
		/* the listener, the peers, and an endpoint for each request */
		while (counter("endpoints") < 1 + 2 * first)
			usleep(10000);
		charged = number_in(GROUP "/memory.stat", "slab_unreclaimable") - charged;
		printf("# a request: %ld bytes are charged\n", charged / first);
		EXPECT_LE(600, charged / first);
		/*
		 * Else the kernel would find room in what can be reclaimed. It also has
		 * a stock of a quarter of a MiB for each processor.
		 */
		write_group("memory.reclaim", "4M");
		snprintf(most, sizeof(most), "%ld", read_group("memory.current") + (64 << 10));
		ASSERT_TRUE(write_group("memory.max", most));
	}
	/* A lost message is sent again after some 6 s. */
	for (i = 0; i < 400 * (int)slow() && refused + requests < all; i++) {
		int k;

		usleep(100000);
		requests = counter("endpoints") - 1 - all;
		for (refused = 0, k = 0; k < all; k++)
			refused += ep_state(_metadata, self->fd, eps[k]) == RDMA_EP_STATE_FAILED;
	}
	printf("# %d of %d refused, %ld times\n", refused, all - first,
	       counter("backlog_overflows") - before);
	EXPECT_LT(0, refused);
	EXPECT_LE(refused, counter("backlog_overflows") - before);
	EXPECT_EQ(0, number_in(GROUP "/memory.events", "oom_kill"));
	ASSERT_TRUE(write_group("memory.max", "max"));
	tell(self->go[1]);
	ASSERT_EQ((ssize_t)sizeof(requests), read(told[0], &requests, sizeof(requests)));
	EXPECT_LE(first, requests);
	EXPECT_EQ(all, refused + requests);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	close(told[0]);
	close(told[1]);
}

/* Who takes more than the group may have gets ENOMEM or is killed, and he alone */
FIXTURE(offender)
{
	FIXTURE_DATA(group) g;
};

enum offence { ENDPOINTS, EVENTS, CHANNELS, GROUPS };

FIXTURE_VARIANT(offender)
{
	enum offence offence;
};

FIXTURE_VARIANT_ADD(offender, endpoints) { .offence = ENDPOINTS };
FIXTURE_VARIANT_ADD(offender, events) { .offence = EVENTS };
FIXTURE_VARIANT_ADD(offender, channels) { .offence = CHANNELS };
FIXTURE_VARIANT_ADD(offender, multicast) { .offence = GROUPS };

FIXTURE_SETUP(offender)
{
	group_setup(_metadata, &self->g, NULL);
	ASSERT_TRUE(write_group("memory.max", "12M"));
	write_group("memory.swap.max", "0");
}

FIXTURE_TEARDOWN(offender)
{
	group_teardown(_metadata, &self->g, NULL);
}

/* Goes on until it is refused. Returns the errno. */
static int offend(enum offence offence, long *made)
{
	union test_addr host = host_addr(AF_INET, 0), addr = make_addr("239.7.7.7", 0);
	struct rlimit limit = { 1 << 20, 1 << 20 };
	uint32_t ep = 0, group;
	int fd = -1, chan, ret = 0;

	setrlimit(RLIMIT_NOFILE, &limit);
	for (*made = 0; !ret; ++*made) {
		if (*made % 100000 == 0)
			fd = open_ep();
		if (fd < 0)
			return -errno;
		switch (offence) {
		case ENDPOINTS:
			ret = try_create(fd, PS_TCP, -1, 0, &ep);
			break;
		case EVENTS:
			if (*made % 1024 == 0)
				ret = try_create(fd, PS_TCP, -1, 0, &ep);
			if (!ret)
				ret = try_write_event(fd, ep, 0, 0);
			break;
		case CHANNELS:
			ret = try_create_channel(fd, 0, &chan);
			break;
		case GROUPS:
			if (*made % 8192 == 0)	/* it may be in no more */
				ret = try_create(fd, PS_UDP, -1, 0, &ep) ?:
				      try_bind(fd, ep, &host, NULL);
			if (!ret)
				ret = try_join(fd, ep, 0, &addr, 0, &group);
			break;
		}
	}
	return ret;
}

TEST_F(offender, harms_nobody_else)
{
	FIXTURE_DATA(group) *g = &self->g;
	long before = slab_kib(), worst = before, made = 0;
	int status, others = 0, i;
	pid_t pid;

	make_listener(_metadata, g->fd, &g->s, 4);
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		int ret;

		close(g->fd);
		enter_group();
		ret = offend(variant->offence, &made);
		printf("# refused after %ld: %s\n", made, strerror(-ret));
			_exit(ret == -ENOMEM ? 0 : 1);
	}
	/* Meanwhile others connect */
	while (!waitpid(pid, &status, WNOHANG)) {
		struct situation s = { .family = AF_INET, .ps = PS_TCP };

		make_connected(_metadata, g->fd, &s);
		do_ok(try_destroy(g->fd, s.active));
		do_ok(try_destroy(g->fd, s.passive));
		do_ok(try_destroy(g->fd, s.listener));
		others++;
		worst = slab_kib() > worst ? slab_kib() : worst;
	}
	printf("# %s; %d connections of others meanwhile, %ld KiB more slab at worst\n",
	       WIFSIGNALED(status) ? "killed" : "ENOMEM", others, worst - before);
	if (WIFSIGNALED(status)) {
		EXPECT_EQ(SIGKILL, WTERMSIG(status));
		EXPECT_LT(0, number_in(GROUP "/memory.events", "oom_kill"));
	} else {
		EXPECT_EQ(0, WEXITSTATUS(status));
	}
	EXPECT_LT(0, others);
	/* and all that he had is given back */
	EXPECT_EQ(1, counter("contexts"));
	EXPECT_EQ(1, counter("endpoints"));
	EXPECT_EQ(0, counter("channels"));
	EXPECT_EQ(0, counter("events_waiting"));
	EXPECT_GT(before + 3072, settled_slab_kib(before + 2048));
	for (i = 0; i < 100 && read_group("memory.current") > 2 << 20; i++)
		usleep(100000);
	EXPECT_GT(100, i) TH_LOG("%ld bytes are still charged", read_group("memory.current"));
}

/* An endpoint is in so many groups, and may leave one to join another */
TEST(groups_of_an_endpoint)
{
	union test_addr host = host_addr(AF_INET, 0), addr = make_addr("239.7.7.7", 0);
	struct test_ctx ctx;
	uint32_t ep, group, last = 0;
	int n = 0, ret;

	ctx_open(_metadata, &ctx);
	do_ok(try_create(ctx.fd, PS_UDP, -1, 0, &ep));
	do_ok(try_bind(ctx.fd, ep, &host, NULL));
	while (!(ret = try_join(ctx.fd, ep, 0, &addr, 0, &group))) {
		last = group;
		n++;
	}
	EXPECT_EQ(-ENOSPC, ret);
	EXPECT_EQ(RDMA_EP_REASON_LIMIT, ep_reason.code);
	EXPECT_EQ(8192, n);
	do_ok(try_leave(ctx.fd, ep, last, NULL));
	do_ok(try_join(ctx.fd, ep, 0, &addr, 0, &group));
	ctx_close(_metadata, &ctx);
}

TEST_HARNESS_MAIN
