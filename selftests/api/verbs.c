// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The inline functions of <rdma/rdma_verbs.h> on our ids: rdma_reg_msgs(3),
 * rdma_reg_read(3), rdma_reg_write(3), rdma_dereg_mr(3), rdma_post_recv(3) and
 * its relatives, rdma_get_send_comp(3), rdma_get_recv_comp(3).
 */
#include "api_utils.h"

#define SIZE 4096

FIXTURE(verbs) {
	struct objects before;
	struct pair pair;
	char a[SIZE];		/* of the client */
	char b[SIZE];		/* of the server */
};

FIXTURE_SETUP(verbs)
{
	int i;

	self->before = count_objects();
	self->pair.family = AF_INET;
	self->pair.ps = RDMA_PS_TCP;
	self->pair.connect_param.responder_resources = 4;
	self->pair.connect_param.initiator_depth = 4;
	self->pair.accept_param = self->pair.connect_param;
	pair_connect(&self->pair);
	for (i = 0; i < SIZE; i++) {
		self->a[i] = i * 7;
		self->b[i] = 0;
	}
}

FIXTURE_TEARDOWN(verbs)
{
	if (!_metadata->passed)
		return;
	pair_destroy(&self->pair);
	expect_no_leak(&self->before);
}

#define completed(id, which, context)						\
	do {									\
		struct ibv_wc __wc;						\
										\
		ASSERT_EQ(1, rdma_get_##which##_comp(id, &__wc));		\
		EXPECT_EQ(IBV_WC_SUCCESS, __wc.status);				\
		EXPECT_EQ((uintptr_t)(context), __wc.wr_id);			\
	} while (0)

TEST_F(verbs, register)
{
	struct rdma_cm_id *id = self->pair.client;
	struct ibv_mr *mr[3];
	int i;

	mr[0] = rdma_reg_msgs(id, self->a, SIZE);
	mr[1] = rdma_reg_read(id, self->a, SIZE);
	mr[2] = rdma_reg_write(id, self->a, SIZE);
	for (i = 0; i < 3; i++) {
		ASSERT_NE(NULL, mr[i]);
		EXPECT_EQ(id->pd, mr[i]->pd);
		EXPECT_EQ(&self->a[0], mr[i]->addr);
		ok(rdma_dereg_mr(mr[i]));
	}
	errno = 0;
	EXPECT_EQ(NULL, rdma_reg_msgs(id, (void *)0x10, SIZE));
	EXPECT_LT(0, errno);
}

TEST_F(verbs, send)
{
	struct rdma_cm_id *client = self->pair.client, *server = self->pair.server;
	struct ibv_mr *a = rdma_reg_msgs(client, self->a, SIZE);
	struct ibv_mr *b = rdma_reg_msgs(server, self->b, SIZE);

	ASSERT_NE(NULL, a);
	ASSERT_NE(NULL, b);
	ok(rdma_post_recv(server, &self->b, self->b, SIZE, b));
	ok(rdma_post_send(client, &self->a, self->a, SIZE, a, 0));
	completed(client, send, &self->a);
	completed(server, recv, &self->b);
	EXPECT_EQ(0, memcmp(self->a, self->b, SIZE));
	ok(rdma_dereg_mr(a));
	ok(rdma_dereg_mr(b));
}

/* gather and scatter */
TEST_F(verbs, sendv)
{
	struct rdma_cm_id *client = self->pair.client, *server = self->pair.server;
	struct ibv_mr *a = rdma_reg_msgs(client, self->a, SIZE);
	struct ibv_mr *b = rdma_reg_msgs(server, self->b, SIZE);
	struct ibv_sge out[2], in[2];

	ASSERT_NE(NULL, a);
	ASSERT_NE(NULL, b);
	out[0] = (struct ibv_sge){ (uintptr_t)self->a + 100, 50, a->lkey };
	out[1] = (struct ibv_sge){ (uintptr_t)self->a + 1000, 70, a->lkey };
	in[0] = (struct ibv_sge){ (uintptr_t)self->b, 20, b->lkey };
	in[1] = (struct ibv_sge){ (uintptr_t)self->b + 2000, 100, b->lkey };
	ok(rdma_post_recvv(server, in, in, 2));
	ok(rdma_post_sendv(client, out, out, 2, 0));
	completed(client, send, out);
	completed(server, recv, in);
	EXPECT_EQ(0, memcmp(self->b, self->a + 100, 20));
	EXPECT_EQ(0, memcmp(self->b + 2000, self->a + 120, 30));
	EXPECT_EQ(0, memcmp(self->b + 2030, self->a + 1000, 70));
	ok(rdma_dereg_mr(a));
	ok(rdma_dereg_mr(b));
}

TEST_F(verbs, write)
{
	struct rdma_cm_id *client = self->pair.client;
	struct ibv_mr *a = rdma_reg_msgs(client, self->a, SIZE);
	struct ibv_mr *b = rdma_reg_write(self->pair.server, self->b, SIZE);
	struct ibv_sge sge[2];

	ASSERT_NE(NULL, a);
	ASSERT_NE(NULL, b);
	ok(rdma_post_write(client, self, self->a, 100, a, 0,
			   (uintptr_t)self->b, b->rkey));
	completed(client, send, self);
	EXPECT_EQ(0, memcmp(self->a, self->b, 100));
	sge[0] = (struct ibv_sge){ (uintptr_t)self->a + 300, 10, a->lkey };
	sge[1] = (struct ibv_sge){ (uintptr_t)self->a + 400, 10, a->lkey };
	ok(rdma_post_writev(client, self, sge, 2, 0, (uintptr_t)self->b + 200,
			    b->rkey));
	completed(client, send, self);
	EXPECT_EQ(0, memcmp(self->a + 300, self->b + 200, 10));
	EXPECT_EQ(0, memcmp(self->a + 400, self->b + 210, 10));
	ok(rdma_dereg_mr(a));
	ok(rdma_dereg_mr(b));
}

TEST_F(verbs, read)
{
	struct rdma_cm_id *server = self->pair.server;
	struct ibv_mr *a = rdma_reg_read(self->pair.client, self->a, SIZE);
	struct ibv_mr *b = rdma_reg_msgs(server, self->b, SIZE);
	struct ibv_sge sge[2];

	ASSERT_NE(NULL, a);
	ASSERT_NE(NULL, b);
	ok(rdma_post_read(server, self, self->b, 100, b, 0, (uintptr_t)self->a,
			  a->rkey));
	completed(server, send, self);
	EXPECT_EQ(0, memcmp(self->a, self->b, 100));
	sge[0] = (struct ibv_sge){ (uintptr_t)self->b + 300, 10, b->lkey };
	sge[1] = (struct ibv_sge){ (uintptr_t)self->b + 400, 10, b->lkey };
	ok(rdma_post_readv(server, self, sge, 2, 0, (uintptr_t)self->a + 200,
			   a->rkey));
	completed(server, send, self);
	EXPECT_EQ(0, memcmp(self->a + 200, self->b + 300, 10));
	EXPECT_EQ(0, memcmp(self->a + 210, self->b + 400, 10));
	ok(rdma_dereg_mr(a));
	ok(rdma_dereg_mr(b));
}

static void *recv_comp_thread(void *id)
{
	struct ibv_wc wc;

	return (void *)(intptr_t)rdma_get_recv_comp(id, &wc);
}

/* "If a completion is not found, the call blocks until a request completes." */
TEST_F(verbs, comp_blocks)
{
	struct rdma_cm_id *client = self->pair.client, *server = self->pair.server;
	struct ibv_mr *a = rdma_reg_msgs(client, self->a, SIZE);
	struct ibv_mr *b = rdma_reg_msgs(server, self->b, SIZE);
	pthread_t thread;
	void *got;

	ASSERT_NE(NULL, a);
	ASSERT_NE(NULL, b);
	ok(rdma_post_recv(server, NULL, self->b, SIZE, b));
	ASSERT_EQ(0, pthread_create(&thread, NULL, recv_comp_thread, server));
	EXPECT_EQ(EBUSY, pthread_tryjoin_np(thread, &got));
	sleep_ms(NEVER_MS);
	EXPECT_EQ(EBUSY, pthread_tryjoin_np(thread, &got));
	ok(rdma_post_send(client, NULL, self->a, 16, a, 0));
	ASSERT_EQ(0, pthread_join(thread, &got));
	EXPECT_EQ(1, (intptr_t)got);
	completed(client, send, NULL);
	ok(rdma_dereg_mr(a));
	ok(rdma_dereg_mr(b));
}

/* More than the queue holds: -1 and errno, as the pages say. */
TEST_F(verbs, error_queue_full)
{
	struct rdma_cm_id *server = self->pair.server;
	struct ibv_mr *b = rdma_reg_msgs(server, self->b, SIZE);
	int i, ret = 0;

	ASSERT_NE(NULL, b);
	for (i = 0; i < 10000 && !ret; i++) {
		errno = 0;
		ret = outcome(rdma_post_recv(server, NULL, self->b, 16, b));
	}
	EXPECT_EQ(ENOMEM, ret);
	rdma_destroy_qp(server);
	ok(rdma_dereg_mr(b));
}

TEST_HARNESS_MAIN
