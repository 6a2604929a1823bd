// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Programs with many ids, and many programs at one listener. To be compared
 * with librdmacm: tools/vm/run --stock -- selftests/api/on-stock ../load/load_api
 */
#include "../api/api_utils.h"
#include "load_util.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* Of a QP that is not there, never twice the same */
static struct rdma_conn_param fake_param(void)
{
	struct rdma_conn_param param = {
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = 7,
		.rnr_retry_count = 7,
	};

	if (getrandom(&param.qp_num, sizeof(param.qp_num), 0) != sizeof(param.qp_num))
		abort();
	param.qp_num = 0x400000 | (param.qp_num & 0x3fffff);
	return param;
}

/* Takes all requests until it is told to stop by its listener's end */
struct acceptor {
	struct rdma_cm_id *listen;
	struct rdma_cm_id *ids[2048];
	unsigned int taken;
	int wanted;
	int failed;
	pthread_t thread;
};

static void *acceptor_thread(void *arg)
{
	struct acceptor *a = arg;
	struct rdma_conn_param param;
	struct rdma_cm_id *id;

	while (a->taken < a->wanted) {
		if (rdma_get_request(a->listen, &id)) {
			a->failed++;
			break;
		}
		param = fake_param();
		a->ids[a->taken++] = id;
		if (rdma_accept(id, &param))
			a->failed++;
	}
	return NULL;
}

#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 1800

static void report(const char *what, long before, long now, int ids)
{
	printf("# %s: %+ld KiB of slab, %.2f KiB each\n", what, now - before,
	       (double)(now - before) / ids);
}

/*
 * ulimit -n 1024, and ten thousand synchronous ids: made, bound, some resolved
 * and a few connected, destroyed. librdmacm needs a descriptor for each.
 */
TEST(more_ids_than_descriptors)
{
	const int wanted = in_long_form(3000, 10000), connected = wanted / 100;
	struct sockaddr_storage addr = my_addr(AF_INET, 0), dst;
	struct rlimit limit = { 1024, 1024 };
	struct acceptor *a = calloc(1, sizeof(*a));
	struct rdma_cm_id **ids = calloc(wanted, sizeof(*ids));
	struct rdma_conn_param param;
	long before, start, now;
	int i, made;

	ASSERT_NE(NULL, a);
	ASSERT_NE(NULL, ids);
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	ok(rdma_create_id(NULL, &a->listen, NULL, RDMA_PS_TCP));
	ok(rdma_bind_addr(a->listen, sa(&addr)));
	ok(rdma_listen(a->listen, 16));
	dst = my_addr(AF_INET, src_port(a->listen));
	a->wanted = connected;
	ASSERT_EQ(0, pthread_create(&a->thread, NULL, acceptor_thread, a));

	before = slab_kib();
	start = now_ms();
	for (made = 0; made < wanted; made++) {
		if (rdma_create_id(NULL, &ids[made], NULL, RDMA_PS_TCP) ||
		    rdma_bind_addr(ids[made], sa(&addr)))
			break;
	}
	printf("# %d ids made and bound in %ld ms%s%s\n", made, now_ms() - start,
	       made < wanted ? ", then: " : "", made < wanted ? strerror(errno) : "");
	if (on_stock()) {
		EXPECT_GT(1024, made);
		_exit(!_metadata->passed);
	}
	ASSERT_EQ(wanted, made);
	report("bound", before, slab_kib(), made);

	start = now_ms();
	for (i = 0; i < connected; i++) {
		ok(rdma_resolve_addr(ids[i * 100], NULL, sa(&dst), RESOLVE_MS));
		ok(rdma_resolve_route(ids[i * 100], RESOLVE_MS));
		param = fake_param();
		ok(rdma_connect(ids[i * 100], &param));
		ok(rdma_establish(ids[i * 100]));	/* there is no QP to do it for */
	}
	ASSERT_EQ(0, pthread_join(a->thread, NULL));
	EXPECT_EQ(0, a->failed);
	printf("# %d of them connected in %ld ms\n", connected, now_ms() - start);
	EXPECT_GT(1024, count_fds());

	start = now_ms();
	for (i = 0; i < made; i++)
		EXPECT_EQ(0, rdma_destroy_id(ids[i]));
	for (i = 0; i < connected; i++)
		EXPECT_EQ(0, rdma_destroy_id(a->ids[i]));
	ok(rdma_destroy_id(a->listen));
	printf("# destroyed in %ld ms\n", now_ms() - start);
	now = settled_slab_kib(before + made / 20);
	report("left", before, now, made);
	EXPECT_GT(before + made / 10 + 512, now);
	free(ids);
	free(a);
}

/* A process with many queue pairs connected to each other, until it is killed */
static void hold_queue_pairs(struct __test_metadata *_metadata, int count, int ready)
{
	struct ibv_qp_init_attr attr = qp_attr(IBV_QPT_RC);
	struct rlimit limit = { 1 << 16, 1 << 16 };
	struct acceptor *a = calloc(1, sizeof(*a));
	struct rdma_addrinfo *res;
	struct rdma_cm_id *id;
	int i;

	ASSERT_NE(NULL, a);
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	res = my_addrinfo(AF_INET, RAI_PASSIVE, RDMA_PS_TCP, 0);
	ASSERT_NE(NULL, res);
	ok(rdma_create_ep(&a->listen, res, NULL, &attr));
	ok(rdma_listen(a->listen, 16));
	a->wanted = count;
	ASSERT_EQ(0, pthread_create(&a->thread, NULL, acceptor_thread, a));
	for (i = 0; i < count; i++) {
		attr = qp_attr(IBV_QPT_RC);
		id = client_ep(AF_INET, src_port(a->listen), NULL, &attr);
		ok(rdma_connect(id, NULL));
	}
	ASSERT_EQ(0, pthread_join(a->thread, NULL));
	ASSERT_EQ(0, a->failed);
	ASSERT_EQ(1, write(ready, "", 1));
	while (true)
		pause();
}

TEST(killed_with_queue_pairs)
{
	const int count = in_long_form(50, 250);
	struct objects before = count_objects(), held;
	long start = now_ms();
	int ready[2], status;
	pid_t pid;
	char byte;

	ASSERT_EQ(0, pipe(ready));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		close(ready[0]);
		hold_queue_pairs(_metadata, count, ready[1]);
		_exit(1);
	}
	close(ready[1]);
	ASSERT_EQ(1, read(ready[0], &byte, 1));
	close(ready[0]);
	held = count_objects();
	printf("# %d connections with queue pairs in %ld ms\n", count, now_ms() - start);
	EXPECT_EQ(2 * count, held.qp - before.qp);
	start = now_ms();
	ASSERT_EQ(0, kill(pid, SIGKILL));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	printf("# killed, gone after %ld ms\n", now_ms() - start);
	expect_no_leak(&before);
}

/* How each of a crowd of processes has fared */
struct fate {
	int error;	/* of rdma_connect() */
	long ms;
	int waits;	/* resolved, and waits for the start */
	pid_t pid;
};

static void be_one_of_a_crowd(struct fate *fate, volatile int *go, struct sockaddr_storage *dst)
{
	struct rdma_conn_param param = fake_param();
	struct rdma_cm_id *id;
	long start;

	fate->error = -1;
	if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) ||
	    rdma_resolve_addr(id, NULL, sa(dst), 60000) || rdma_resolve_route(id, 60000))
		_exit(1);
	fate->waits = 1;
	while (!*go)
		sleep_ms(10);
	start = now_ms();
	errno = 0;
	fate->error = rdma_connect(id, &param) || rdma_establish(id) ? errno : 0;
	fate->ms = now_ms() - start;
	/* Its connection stays until all have been counted. */
	while (*go < 2)
		sleep_ms(50);
	_exit(0);
}

static unsigned int count_fates(const struct fate *fates, int n, int error)
{
	unsigned int count = 0;
	int i;

	for (i = 0; i < n; i++)
		count += fates[i].error == error;
	return count;
}

#define CROWD	100
#define BACKLOG	8

static const char *const told[] = {
	"connected", "accepted", "rejected_by_peer", "backlog_overflows", "failed", "timeouts",
};

/*
 * A hundred processes connect at once to a listener with a backlog of 8 that
 * takes @accepts of them, and the next one not until all have their answer.
 * librdmacm's wait, and try again every 4.3 s, 15 times.
 */
static void crowd(struct __test_metadata *_metadata, int accepts)
{
	struct sockaddr_storage addr = my_addr(AF_INET, 0), dst;
	struct acceptor *a = calloc(1, sizeof(*a));
	long before[ARRAY_SIZE(told)], grown[ARRAY_SIZE(told)], longest = 0, start;
	unsigned int connected, refused, other;
	struct fate *fates;
	volatile int *go;
	pid_t pid;
	int i, status;

	fates = mmap(NULL, (CROWD + 1) * sizeof(*fates), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, fates);
	ASSERT_NE(NULL, a);
	go = &fates[CROWD].waits;
	ok(rdma_create_id(NULL, &a->listen, NULL, RDMA_PS_TCP));
	ok(rdma_bind_addr(a->listen, sa(&addr)));
	ok(rdma_listen(a->listen, BACKLOG));
	dst = my_addr(AF_INET, src_port(a->listen));
	for (i = 0; i < ARRAY_SIZE(told); i++)
		before[i] = counter(told[i]);

	for (i = 0; i < CROWD; i++) {
		pid = fork();
		if (!pid)
			be_one_of_a_crowd(&fates[i], go, &dst);
		fates[i].pid = pid;
	}
	start = now_ms();
	for (i = 0; i < CROWD; i++)
		while (!fates[i].waits && now_ms() - start < 120000)
			sleep_ms(10);
	*go = 1;
	start = now_ms();
	a->wanted = accepts;
	if (accepts > BACKLOG) {
		/* as fast as it can; who is left is not waited for */
		ASSERT_EQ(0, pthread_create(&a->thread, NULL, acceptor_thread, a));
	} else {
		/* On a slow machine some come late, and would find the backlog empty. */
		while (now_ms() - start < (on_stock() ? 3000 : 60000) &&
		       count_fates(fates, CROWD, ECONNREFUSED) < CROWD - BACKLOG)
			sleep_ms(50);
		acceptor_thread(a);
	}
	while (count_fates(fates, CROWD, -1) && now_ms() - start < 120000)
		sleep_ms(50);

	connected = count_fates(fates, CROWD, 0);
	refused = count_fates(fates, CROWD, ECONNREFUSED);
	other = CROWD - connected - refused;
	for (i = 0; i < CROWD; i++)
		longest = fates[i].ms > longest ? fates[i].ms : longest;
	printf("# connected %u, refused %u, others %u (timed out %u); the longest took %ld ms\n",
	       connected, refused, other, count_fates(fates, CROWD, ETIMEDOUT), longest);
	for (i = 0; i < ARRAY_SIZE(told); i++)
		grown[i] = counter(told[i]) - before[i];
	*go = 2;
	for (i = 0; (on_stock() || other) && i < CROWD; i++)
		kill(fates[i].pid, SIGKILL); /* some would wait for ever */
	for (i = 0; i < CROWD; i++) {
		ASSERT_LT(0, wait(&status));
		EXPECT_TRUE(on_stock() || !status);
	}
	EXPECT_EQ(CROWD, connected + refused + other);
	if (on_stock())
		_exit(!_metadata->passed);

	EXPECT_EQ(0, other);
	EXPECT_EQ(CROWD, connected + refused);
	EXPECT_LE(BACKLOG, connected);
	if (accepts <= BACKLOG)
		EXPECT_EQ(accepts, connected);
	EXPECT_GT(30000, longest);
	EXPECT_EQ(connected, grown[0]);
	EXPECT_EQ(connected, grown[1]);
	EXPECT_EQ(refused, grown[2]);
	EXPECT_EQ(refused, grown[3]);
	EXPECT_EQ(0, grown[4]);
	EXPECT_EQ(0, grown[5]);
	/* The acceptor waits for those that were refused. */
	_exit(!_metadata->passed);
}

TEST(a_crowd_at_a_busy_listener)
{
	crowd(_metadata, BACKLOG);
}

TEST(a_crowd_at_a_quick_listener)
{
	crowd(_metadata, CROWD);
}

TEST_HARNESS_MAIN
