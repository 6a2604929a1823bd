// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the library keeps of an endpoint for the next one: completion queues
 * and channels that it has made, as long as the program has left them alone.
 */
#define API_CACHE "1"
#include "api_utils.h"

#include <sys/epoll.h>
#include <sys/syscall.h>

/* From <linux/kcmp.h>: are two descriptors of one file? */
#define KCMP_FILE 0

FIXTURE(cache) {
	struct ibv_qp_init_attr attr;
	struct rdma_cm_id *id;
};

static struct rdma_cm_id *_make(struct __test_metadata *_metadata,
				FIXTURE_DATA(cache) *self)
{
	struct ibv_qp_init_attr attr = self->attr;

	/* Nobody needs to listen there: it is only resolved. */
	return client_ep(AF_INET, 7, NULL, &attr);
}

#define make()	_make(_metadata, self)

FIXTURE_SETUP(cache)
{
	self->attr = qp_attr(IBV_QPT_RC);
	self->id = make();
	ASSERT_NE(NULL, self->id->recv_cq);
}

FIXTURE_TEARDOWN(cache)
{
}

static bool same_file(int a, int b)
{
	return !syscall(SYS_kcmp, getpid(), getpid(), KCMP_FILE, a, b);
}

TEST_F(cache, next_endpoint_gets_them)
{
	struct ibv_cq *recv = self->id->recv_cq, *send = self->id->send_cq;
	struct rdma_cm_id *next;

	rdma_destroy_ep(self->id);
	next = make();
	EXPECT_TRUE(next->recv_cq == recv || next->recv_cq == send);
	EXPECT_TRUE(next->send_cq == recv || next->send_cq == send);
	EXPECT_NE(next->recv_cq, next->send_cq);
	EXPECT_EQ(next, next->recv_cq->cq_context);
	EXPECT_EQ(next, next->send_cq->cq_context);
	EXPECT_EQ(next->recv_cq->channel, next->recv_cq_channel);
	EXPECT_EQ(next->send_cq->channel, next->send_cq_channel);
	rdma_destroy_ep(next);
}

TEST_F(cache, number_of_files_stays)
{
	int files, i;

	rdma_destroy_ep(self->id);
	files = count_fds();
	for (i = 0; i < 10; i++)
		rdma_destroy_ep(make());
	EXPECT_EQ(files, count_fds());
}

TEST_F(cache, is_bounded)
{
	struct rdma_cm_id *ids[100];
	int files, i;

	rdma_destroy_ep(self->id);
	files = count_fds();
	for (i = 0; i < 100; i++)
		ids[i] = make();
	for (i = 0; i < 100; i++)
		rdma_destroy_ep(ids[i]);
	EXPECT_GE(files + 80, count_fds());
}

/* Long ones lock memory that the program may need itself */
TEST_F(cache, is_bounded_in_entries)
{
	struct rdma_cm_id *ids[20];
	int files, i;

	rdma_destroy_ep(self->id);
	files = count_fds();
	self->attr.cap.max_send_wr = self->attr.cap.max_recv_wr = 4000;
	for (i = 0; i < 20; i++)
		ids[i] = make();
	for (i = 0; i < 20; i++)
		rdma_destroy_ep(ids[i]);
	/* a channel each of the ids, and of at most four queues */
	EXPECT_GE(files + 20 + 4, count_fds());
}

TEST_F(cache, other_size)
{
	struct ibv_cq *recv = self->id->recv_cq;
	struct rdma_cm_id *next;

	rdma_destroy_ep(self->id);
	self->attr.cap.max_recv_wr = 100;
	next = make();
	EXPECT_NE(recv, next->recv_cq);
	EXPECT_LE(100, next->recv_cq->cqe);
	rdma_destroy_ep(next);
}

/* What comes from an SRQ may be more than the queue holds. */
TEST_F(cache, srq)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 16, .max_sge = 1 } };
	struct rdma_cm_id *id, *next;
	struct ibv_cq *recv;

	self->attr.srq = ibv_create_srq(self->id->pd, &srq);
	ASSERT_NE(NULL, self->attr.srq);
	id = make();
	recv = id->recv_cq;
	rdma_destroy_ep(id);
	ok(ibv_destroy_srq(self->attr.srq));
	self->attr.srq = NULL;
	next = make();
	EXPECT_NE(recv, next->recv_cq);
	EXPECT_NE(recv, next->send_cq);
	rdma_destroy_ep(next);
	rdma_destroy_ep(self->id);
}

/* A QP that cannot be destroyed goes on filling its queues. */
TEST_F(cache, qp_that_lives_on)
{
	struct ibv_qp_init_attr attr = qp_attr(IBV_QPT_UD);
	struct sockaddr_storage addr = my_addr(AF_INET, 0);
	union ibv_gid gid = { .raw = { [10] = 0xff, 0xff, 239, 1, 1, 9 } };
	struct ibv_cq *recv, *send;
	struct rdma_cm_id *id, *next;

	ok(rdma_create_id(NULL, &id, NULL, RDMA_PS_UDP));
	ok(rdma_bind_addr(id, sa(&addr)));
	ok(rdma_create_qp(id, NULL, &attr));
	recv = id->recv_cq;
	send = id->send_cq;
	ok(ibv_attach_mcast(id->qp, &gid, 0));
	rdma_destroy_ep(id);
	next = make();
	EXPECT_NE(recv, next->recv_cq);
	EXPECT_NE(recv, next->send_cq);
	EXPECT_NE(send, next->recv_cq);
	EXPECT_NE(send, next->send_cq);
	rdma_destroy_ep(next);
	rdma_destroy_ep(self->id);
}

/* close(2) would have taken it out of the set. */
TEST_F(cache, epoll)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int files[3] = {
		self->id->recv_cq_channel->fd,
		self->id->send_cq_channel->fd,
		self->id->channel->fd,
	};
	int set = epoll_create1(0), i;
	struct rdma_cm_id *next;

	for (i = 0; i < 3; i++)
		ok(epoll_ctl(set, EPOLL_CTL_ADD, files[i], &ev));
	rdma_destroy_ep(self->id);
	next = make();
	ok(epoll_ctl(set, EPOLL_CTL_ADD, next->recv_cq_channel->fd, &ev));
	ok(epoll_ctl(set, EPOLL_CTL_ADD, next->send_cq_channel->fd, &ev));
	ok(epoll_ctl(set, EPOLL_CTL_ADD, next->channel->fd, &ev));
	rdma_destroy_ep(next);
	close(set);
}

/* Out of the set again, it is as good as new. */
TEST_F(cache, epoll_no_more)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int set = epoll_create1(0), fd = self->id->recv_cq_channel->fd;
	struct ibv_cq *recv = self->id->recv_cq;
	struct rdma_cm_id *next;

	ok(epoll_ctl(set, EPOLL_CTL_ADD, fd, &ev));
	ok(epoll_ctl(set, EPOLL_CTL_DEL, fd, &ev));
	rdma_destroy_ep(self->id);
	next = make();
	EXPECT_TRUE(next->recv_cq == recv || next->send_cq == recv);
	rdma_destroy_ep(next);
	close(set);
}

TEST_F(cache, duplicates)
{
	int copies[3] = {
		dup(self->id->recv_cq_channel->fd),
		dup(self->id->send_cq_channel->fd),
		dup(self->id->channel->fd),
	};
	struct rdma_cm_id *next;
	int i;

	ASSERT_TRUE(same_file(copies[0], self->id->recv_cq_channel->fd));
	ASSERT_TRUE(same_file(copies[1], self->id->send_cq_channel->fd));
	ASSERT_TRUE(same_file(copies[2], self->id->channel->fd));
	rdma_destroy_ep(self->id);
	next = make();
	for (i = 0; i < 3; i++) {
		EXPECT_FALSE(same_file(copies[i], next->recv_cq_channel->fd));
		EXPECT_FALSE(same_file(copies[i], next->send_cq_channel->fd));
		EXPECT_FALSE(same_file(copies[i], next->channel->fd));
	}
	rdma_destroy_ep(next);
}

TEST_F(cache, nonblocking)
{
	struct rdma_cm_id *next;

	ok(fcntl(self->id->recv_cq_channel->fd, F_SETFL, O_NONBLOCK));
	ok(fcntl(self->id->channel->fd, F_SETFL, O_NONBLOCK));
	rdma_destroy_ep(self->id);
	next = make();
	EXPECT_FALSE(fcntl(next->recv_cq_channel->fd, F_GETFL) & O_NONBLOCK);
	EXPECT_FALSE(fcntl(next->send_cq_channel->fd, F_GETFL) & O_NONBLOCK);
	EXPECT_FALSE(fcntl(next->channel->fd, F_GETFL) & O_NONBLOCK);
	rdma_destroy_ep(next);
}

/* A queue with another user stays that user's. */
TEST_F(cache, shared)
{
	struct ibv_qp_init_attr attr = self->attr;
	struct ibv_cq *cq = self->id->recv_cq;
	struct rdma_cm_id *other, *next;

	attr.recv_cq = cq;
	attr.send_cq = cq;
	other = client_ep(AF_INET, 7, NULL, &attr);
	EXPECT_EQ(cq, other->qp->recv_cq);
	rdma_destroy_ep(self->id);
	next = make();
	EXPECT_NE(cq, next->recv_cq);
	EXPECT_NE(cq, next->send_cq);
	rdma_destroy_ep(next);
	rdma_destroy_ep(other);
}

/* Connections that use the same queues in turn, with completions left over. */
TEST_F(cache, connections)
{
	struct rdma_cm_id *client, *server;
	struct ibv_qp_init_attr attr;
	struct server s;
	struct ibv_mr *mr;
	struct ibv_wc wc;
	char buf[16];
	int i;

	rdma_destroy_ep(self->id);
	for (i = 0; i < 4; i++) {
		s = (struct server){};
		attr = self->attr;
		server_start(&s, AF_INET, NULL, &attr, 1);
		attr = self->attr;
		client = client_ep(AF_INET, s.port, NULL, &attr);
		EXPECT_EQ(0, ibv_poll_cq(client->recv_cq, 1, &wc));
		EXPECT_EQ(0, ibv_poll_cq(client->send_cq, 1, &wc));
		ok(rdma_connect(client, NULL));
		server_join(&s);
		server = s.conn[0];
		send_message(client, server);
		send_message(server, client);

		/* Flushed by the disconnect, and never asked for */
		mr = rdma_reg_msgs(server, buf, sizeof(buf));
		ASSERT_NE(NULL, mr);
		ok(rdma_post_recv(server, NULL, buf, sizeof(buf), mr));
		disconnect_both(client, server);
		ok(rdma_dereg_mr(mr));
		rdma_destroy_ep(client);
		server_stop(&s);
	}
}

TEST_HARNESS_MAIN
