// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rdma_create_qp(3), rdma_destroy_qp(3), rdma_create_srq(3) and
 * rdma_destroy_srq(3), with their _ex forms.
 */
#include "api_utils.h"

FIXTURE(create_qp) {
	struct objects before;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_qp_init_attr attr;
};

FIXTURE_VARIANT(create_qp) {
	enum rdma_port_space ps;
	enum ibv_qp_type type;
};

FIXTURE_VARIANT_ADD(create_qp, rc) {
	.ps = RDMA_PS_TCP,
	.type = IBV_QPT_RC,
};

FIXTURE_VARIANT_ADD(create_qp, ud) {
	.ps = RDMA_PS_UDP,
	.type = IBV_QPT_UD,
};

FIXTURE_SETUP(create_qp)
{
	struct sockaddr_storage addr = my_addr(AF_INET, 0);

	self->before = count_objects();
	self->attr = qp_attr(variant->type);
	self->channel = rdma_create_event_channel();
	ASSERT_NE(NULL, self->channel);
	ok(rdma_create_id(self->channel, &self->id, NULL, variant->ps));
	ok(rdma_bind_addr(self->id, sa(&addr)));
}

FIXTURE_TEARDOWN(create_qp)
{
	if (!_metadata->passed)
		return;
	if (self->id->qp)
		rdma_destroy_qp(self->id);
	if (self->id->srq)
		rdma_destroy_srq(self->id);
	ok(rdma_destroy_id(self->id));
	rdma_destroy_event_channel(self->channel);
	expect_no_leak(&self->before);
}

TEST_F(create_qp, default_pd)
{
	ok(rdma_create_qp(self->id, NULL, &self->attr));
	ASSERT_NE(NULL, self->id->qp);
	EXPECT_EQ(variant->type, self->id->qp->qp_type);
	EXPECT_EQ(self->id->verbs, self->id->qp->context);
	ASSERT_NE(NULL, self->id->pd);
	EXPECT_EQ(self->id->pd, self->id->qp->pd);
}

TEST_F(create_qp, given_pd)
{
	struct ibv_pd *pd = ibv_alloc_pd(self->id->verbs);

	ASSERT_NE(NULL, pd);
	ok(rdma_create_qp(self->id, pd, &self->attr));
	EXPECT_EQ(pd, self->id->qp->pd);
	EXPECT_EQ(pd, self->id->pd);
	rdma_destroy_qp(self->id);
	EXPECT_EQ(0, ibv_dealloc_pd(pd));
}

/* "ready to handle posting of receives. If the QP is unconnected ... sends" */
TEST_F(create_qp, state)
{
	char buf[64];
	struct ibv_mr *mr;

	ok(rdma_create_qp(self->id, NULL, &self->attr));
	EXPECT_EQ(variant->type == IBV_QPT_UD ? IBV_QPS_RTS : IBV_QPS_INIT,
		  qp_state(self->id->qp));
	mr = rdma_reg_msgs(self->id, buf, sizeof(buf));
	ASSERT_NE(NULL, mr);
	ok(rdma_post_recv(self->id, NULL, buf, sizeof(buf), mr));
	rdma_destroy_qp(self->id);
	ok(rdma_dereg_mr(mr));
}

/* "a CQ will be allocated by the rdma_cm ... along with completion channels" */
TEST_F(create_qp, default_cqs)
{
	ok(rdma_create_qp(self->id, NULL, &self->attr));
	ASSERT_NE(NULL, self->id->send_cq);
	ASSERT_NE(NULL, self->id->recv_cq);
	ASSERT_NE(NULL, self->id->send_cq_channel);
	ASSERT_NE(NULL, self->id->recv_cq_channel);
	EXPECT_EQ(self->id->send_cq, self->id->qp->send_cq);
	EXPECT_EQ(self->id->recv_cq, self->id->qp->recv_cq);
	EXPECT_EQ(self->id->send_cq_channel, self->id->send_cq->channel);
	EXPECT_EQ(self->id->recv_cq_channel, self->id->recv_cq->channel);
	/* rdma_get_recv_comp relies on it */
	EXPECT_EQ(self->id, self->id->send_cq->cq_context);
	EXPECT_EQ(self->id, self->id->recv_cq->cq_context);
	EXPECT_LE(4, self->id->send_cq->cqe);
	EXPECT_LE(4, self->id->recv_cq->cqe);
}

/* "optional": the caller's are used, and stay the caller's */
TEST_F(create_qp, given_cqs)
{
	struct ibv_cq *cq = ibv_create_cq(self->id->verbs, 16, NULL, NULL, 0);

	ASSERT_NE(NULL, cq);
	self->attr.send_cq = self->attr.recv_cq = cq;
	ok(rdma_create_qp(self->id, NULL, &self->attr));
	EXPECT_EQ(cq, self->id->qp->send_cq);
	EXPECT_EQ(cq, self->id->qp->recv_cq);
	EXPECT_EQ(NULL, self->id->send_cq_channel);
	EXPECT_EQ(NULL, self->id->recv_cq_channel);
	EXPECT_EQ(self->before.cq + 1, count_objects().cq);
	rdma_destroy_qp(self->id);
	EXPECT_EQ(0, ibv_destroy_cq(cq));
}

TEST_F(create_qp, given_send_cq_only)
{
	struct ibv_cq *cq = ibv_create_cq(self->id->verbs, 16, NULL, NULL, 0);

	ASSERT_NE(NULL, cq);
	self->attr.send_cq = cq;
	ok(rdma_create_qp(self->id, NULL, &self->attr));
	EXPECT_EQ(cq, self->id->qp->send_cq);
	EXPECT_NE(cq, self->id->qp->recv_cq);
	EXPECT_EQ(self->id->recv_cq, self->id->qp->recv_cq);
	EXPECT_EQ(self->before.cq + 2, count_objects().cq);
	rdma_destroy_qp(self->id);
	EXPECT_EQ(0, ibv_destroy_cq(cq));
}

/* "The actual capabilities and properties of the created QP will be returned" */
TEST_F(create_qp, capabilities_returned)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	self->attr.cap.max_send_wr = 5;
	self->attr.cap.max_recv_wr = 6;
	ok(rdma_create_qp(self->id, NULL, &self->attr));
	/* The provider may know later that it is even more. */
	ASSERT_EQ(0, ibv_query_qp(self->id->qp, &attr, IBV_QP_CAP, &init));
	EXPECT_GE(init.cap.max_send_wr, self->attr.cap.max_send_wr);
	EXPECT_GE(init.cap.max_recv_wr, self->attr.cap.max_recv_wr);
	EXPECT_EQ(init.cap.max_send_sge, self->attr.cap.max_send_sge);
	EXPECT_EQ(init.cap.max_inline_data, self->attr.cap.max_inline_data);
	EXPECT_LE(5, self->attr.cap.max_send_wr);
	EXPECT_LE(6, self->attr.cap.max_recv_wr);
}

/* "An rdma_cm_id may only be associated with a single QP." */
TEST_F(create_qp, error_twice)
{
	struct ibv_qp_init_attr again = qp_attr(variant->type);
	struct ibv_qp *qp;

	ok(rdma_create_qp(self->id, NULL, &self->attr));
	qp = self->id->qp;
	err(EINVAL, rdma_create_qp(self->id, NULL, &again));
	EXPECT_EQ(qp, self->id->qp);
}

/* "must be bound to a local RDMA device before" */
TEST_F(create_qp, error_unbound)
{
	struct sockaddr_storage any = wildcard(AF_INET, 0);
	struct rdma_cm_id *id;

	not_on_stock("it follows a NULL pointer");
	ok(rdma_create_id(self->channel, &id, NULL, variant->ps));
	err(EINVAL, rdma_create_qp(id, NULL, &self->attr));
	ok(rdma_bind_addr(id, sa(&any)));
	err(EINVAL, rdma_create_qp(id, NULL, &self->attr));
	EXPECT_EQ(NULL, id->qp);
	ok(rdma_destroy_id(id));
}

/* What cannot be had fails, leaves nothing, and can be tried again. */
TEST_F(create_qp, error_attributes)
{
	struct objects bound = count_objects();

	self->attr.cap.max_send_wr = 1 << 30;
	errno = 0;
	EXPECT_EQ(-1, rdma_create_qp(self->id, NULL, &self->attr));
	EXPECT_LT(0, errno);
	EXPECT_EQ(NULL, self->id->qp);
	EXPECT_EQ(NULL, self->id->send_cq);
	EXPECT_EQ(NULL, self->id->recv_cq_channel);
	EXPECT_EQ(bound.cq, count_objects().cq);
	self->attr = qp_attr(variant->type);
	ok(rdma_create_qp(self->id, NULL, &self->attr));
}

TEST_F(create_qp, destroy)
{
	struct objects bound = count_objects();
	int i;

	for (i = 0; i < 5; i++) {
		self->attr = qp_attr(variant->type);
		ok(rdma_create_qp(self->id, NULL, &self->attr));
		EXPECT_EQ(bound.qp + 1, count_objects().qp);
		EXPECT_EQ(bound.cq + 2, count_objects().cq);
		rdma_destroy_qp(self->id);
		EXPECT_EQ(NULL, self->id->qp);
		EXPECT_EQ(NULL, self->id->send_cq);
		EXPECT_EQ(NULL, self->id->recv_cq);
		EXPECT_EQ(NULL, self->id->send_cq_channel);
		EXPECT_EQ(NULL, self->id->recv_cq_channel);
		expect_no_leak(&bound);
	}
}

TEST_F(create_qp, ex)
{
	struct ibv_pd *pd = ibv_alloc_pd(self->id->verbs);
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = variant->type,
		.cap = self->attr.cap,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};

	ASSERT_NE(NULL, pd);
	ok(rdma_create_qp_ex(self->id, &attr));
	ASSERT_NE(NULL, self->id->qp);
	EXPECT_EQ(pd, self->id->qp->pd);
	rdma_destroy_qp(self->id);
	EXPECT_EQ(0, ibv_dealloc_pd(pd));
}

TEST_F(create_qp, ex_default_pd)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = variant->type,
		.cap = self->attr.cap,
	};

	ok(rdma_create_qp_ex(self->id, &attr));
	ASSERT_NE(NULL, self->id->qp);
	EXPECT_EQ(self->id->pd, self->id->qp->pd);
}

/*
 * Shared receive queues
 */

static struct ibv_srq_init_attr srq_attr(void)
{
	return (struct ibv_srq_init_attr){
		.attr = { .max_wr = 16, .max_sge = 1 },
	};
}

TEST_F(create_qp, srq)
{
	struct ibv_srq_init_attr attr = srq_attr();
	struct ibv_srq_attr now;
	char buf[64];
	struct ibv_mr *mr;
	struct ibv_sge sge;
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	ok(rdma_create_srq(self->id, NULL, &attr));
	ASSERT_NE(NULL, self->id->srq);
	ASSERT_NE(NULL, self->id->pd);
	EXPECT_EQ(self->id->pd, self->id->srq->pd);
	EXPECT_EQ(self->before.srq + 1, count_objects().srq);
	/* "actual capabilities ... returned" */
	ASSERT_EQ(0, ibv_query_srq(self->id->srq, &now));
	EXPECT_GE(now.max_wr, attr.attr.max_wr);
	EXPECT_LE(16, attr.attr.max_wr);

	/* "ready to handle posting of receives" */
	mr = rdma_reg_msgs(self->id, buf, sizeof(buf));
	ASSERT_NE(NULL, mr);
	sge = (struct ibv_sge){ (uintptr_t)buf, sizeof(buf), mr->lkey };
	EXPECT_EQ(0, ibv_post_srq_recv(self->id->srq, &wr, &bad));

	rdma_destroy_srq(self->id);
	EXPECT_EQ(NULL, self->id->srq);
	EXPECT_EQ(self->before.srq, count_objects().srq);
	ok(rdma_dereg_mr(mr));
}

TEST_F(create_qp, srq_given_pd)
{
	struct ibv_pd *pd = ibv_alloc_pd(self->id->verbs);
	struct ibv_srq_init_attr attr = srq_attr();

	ASSERT_NE(NULL, pd);
	ok(rdma_create_srq(self->id, pd, &attr));
	EXPECT_EQ(pd, self->id->srq->pd);
	rdma_destroy_srq(self->id);
	EXPECT_EQ(0, ibv_dealloc_pd(pd));
}

/* The id's QP is on it. */
TEST_F(create_qp, srq_serves_qp)
{
	struct ibv_srq_init_attr attr = srq_attr();

	ok(rdma_create_srq(self->id, NULL, &attr));
	ok(rdma_create_qp(self->id, NULL, &self->attr));
	EXPECT_EQ(self->id->srq, self->id->qp->srq);
}

/* "may only be associated with a single SRQ"; librdmacm loses the first */
TEST_F(create_qp, error_srq_twice)
{
	struct ibv_srq_init_attr attr = srq_attr(), again = srq_attr();
	struct ibv_srq *srq;

	not_on_stock("it loses the first one");
	ok(rdma_create_srq(self->id, NULL, &attr));
	srq = self->id->srq;
	err(EINVAL, rdma_create_srq(self->id, NULL, &again));
	EXPECT_EQ(srq, self->id->srq);
}

TEST_F(create_qp, error_srq_unbound)
{
	struct ibv_srq_init_attr attr = srq_attr();
	struct rdma_cm_id *id;

	not_on_stock("it follows a NULL pointer");
	ok(rdma_create_id(self->channel, &id, NULL, variant->ps));
	err(EINVAL, rdma_create_srq(id, NULL, &attr));
	ok(rdma_destroy_id(id));
}

TEST_F(create_qp, error_srq_attributes)
{
	struct ibv_srq_init_attr attr = srq_attr();

	attr.attr.max_wr = 1 << 30;
	errno = 0;
	EXPECT_EQ(-1, rdma_create_srq(self->id, NULL, &attr));
	EXPECT_LT(0, errno);
	EXPECT_EQ(NULL, self->id->srq);
}

TEST_F(create_qp, srq_ex)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 16, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE,
		.srq_type = IBV_SRQT_BASIC,
	};

	ok(rdma_create_srq_ex(self->id, &attr));
	ASSERT_NE(NULL, self->id->srq);
	EXPECT_EQ(self->id->pd, self->id->srq->pd);
}

TEST_F(create_qp, error_srq_ex_without_type)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 16, .max_sge = 1 },
	};

	err(EINVAL, rdma_create_srq_ex(self->id, &attr));
}

/*
 * XRC: soft-RoCE has none, so it is the verbs call that fails, and nothing
 * stays behind.
 */
TEST_F(create_qp, error_xrc)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 16, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE,
		.srq_type = IBV_SRQT_XRC,
	};

	errno = 0;
	EXPECT_EQ(-1, rdma_create_srq_ex(self->id, &attr));
	EXPECT_TRUE(errno == EOPNOTSUPP || errno == ENOSYS) {
		TH_LOG("errno %d", errno);
	}
	EXPECT_EQ(NULL, self->id->srq);
	EXPECT_EQ(self->before.cq, count_objects().cq);
}

TEST_HARNESS_MAIN
