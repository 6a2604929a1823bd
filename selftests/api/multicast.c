// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rdma_join_multicast(3), rdma_join_multicast_ex(3), rdma_leave_multicast(3).
 */
#include "api_utils.h"

FIXTURE(multicast) {
	struct objects before;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct sockaddr_storage group;
};

static struct sockaddr_storage group_addr(int n)
{
	char text[32];

	snprintf(text, sizeof(text), "239.1.1.%d", n);
	return parse(text, 0);
}

FIXTURE_SETUP(multicast)
{
	struct sockaddr_storage addr = my_addr(AF_INET, 0);

	self->before = count_objects();
	self->group = group_addr(1);
	self->channel = rdma_create_event_channel();
	ASSERT_NE(NULL, self->channel);
	ok(rdma_create_id(self->channel, &self->id, NULL, RDMA_PS_UDP));
	ok(rdma_bind_addr(self->id, sa(&addr)));
}

FIXTURE_TEARDOWN(multicast)
{
	if (!_metadata->passed)
		return;
	if (self->id && self->id->qp)
		rdma_destroy_qp(self->id);
	if (self->id)
		ok(rdma_destroy_id(self->id));
	rdma_destroy_event_channel(self->channel);
	/* librdmacm loses a QP that is destroyed while attached to a group. */
	if (!on_stock())
		expect_no_leak(&self->before);
}

static void create_qp(struct __test_metadata *_metadata,
		      FIXTURE_DATA(multicast) *self)
{
	struct ibv_qp_init_attr attr = qp_attr(IBV_QPT_UD);

	ok(rdma_create_qp(self->id, NULL, &attr));
}

/* Send to the group; whether it comes back is whether the QP is attached. */
static bool hears_itself(struct __test_metadata *_metadata,
			 struct rdma_cm_id *id, struct rdma_ud_param *to)
{
	char out[32] = "to all", in[128] = "";
	struct ibv_mr *mr_out, *mr_in;
	long end = now_ms() + 1000;
	struct ibv_ah *ah;
	struct ibv_wc wc;
	int n = 0;

	mr_out = rdma_reg_msgs(id, out, sizeof(out));
	mr_in = rdma_reg_msgs(id, in, sizeof(in));
	ASSERT_NE(NULL, mr_out);
	ASSERT_NE(NULL, mr_in);
	ah = ibv_create_ah(id->pd, &to->ah_attr);
	ASSERT_NE(NULL, ah);
	ok(rdma_post_recv(id, in, in, sizeof(in), mr_in));
	ok(rdma_post_ud_send(id, NULL, out, sizeof(out), mr_out, 0, ah,
			     to->qp_num));
	ASSERT_EQ(1, rdma_get_send_comp(id, &wc));
	EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
	while (!n && now_ms() < end)
		n = ibv_poll_cq(id->recv_cq, 1, &wc);
	if (n) {
		EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
		EXPECT_STREQ("to all", in + 40);
	}
	EXPECT_EQ(0, ibv_destroy_ah(ah));
	ok(rdma_dereg_mr(mr_out));
	if (!n)
		rdma_destroy_qp(id);	/* takes the receive with it */
	ok(rdma_dereg_mr(mr_in));
	return n;
}

/* "automatically attached to the multicast group when the multicast event is retrieved" */
TEST_F(multicast, join)
{
	struct rdma_cm_event *event;
	int context;

	create_qp(_metadata, self);
	ok(rdma_join_multicast(self->id, sa(&self->group), &context));
	event = get_event(self->channel, RDMA_CM_EVENT_MULTICAST_JOIN);
	EXPECT_EQ(0, event->status);
	EXPECT_EQ(self->id, event->id);
	/* "The join context is returned ... through the private_data field" */
	EXPECT_EQ(&context, event->param.ud.private_data);
	EXPECT_EQ(0xffffff, event->param.ud.qp_num);
	EXPECT_EQ(RDMA_UDP_QKEY, event->param.ud.qkey);
	EXPECT_EQ(1, event->param.ud.ah_attr.is_global);
	EXPECT_TRUE(hears_itself(_metadata, self->id, &event->param.ud));
	ok(rdma_ack_cm_event(event));
	ok(rdma_leave_multicast(self->id, sa(&self->group)));
}

TEST_F(multicast, leave_detaches)
{
	struct rdma_cm_event *event;
	struct rdma_ud_param to;

	create_qp(_metadata, self);
	ok(rdma_join_multicast(self->id, sa(&self->group), NULL));
	event = get_event(self->channel, RDMA_CM_EVENT_MULTICAST_JOIN);
	to = event->param.ud;
	ok(rdma_ack_cm_event(event));
	ok(rdma_leave_multicast(self->id, sa(&self->group)));
	EXPECT_FALSE(hears_itself(_metadata, self->id, &to));
	/* It can be joined again. */
	create_qp(_metadata, self);
	ok(rdma_join_multicast(self->id, sa(&self->group), NULL));
	expect_event(self->channel, RDMA_CM_EVENT_MULTICAST_JOIN);
	EXPECT_TRUE(hears_itself(_metadata, self->id, &to));
}

/* "Otherwise, the user is responsible for calling ibv_attach_mcast" */
TEST_F(multicast, join_without_qp)
{
	struct rdma_cm_event *event;
	struct rdma_ud_param to;

	ok(rdma_join_multicast(self->id, sa(&self->group), NULL));
	event = get_event(self->channel, RDMA_CM_EVENT_MULTICAST_JOIN);
	to = event->param.ud;
	ok(rdma_ack_cm_event(event));
	create_qp(_metadata, self);
	EXPECT_EQ(0, ibv_attach_mcast(self->id->qp, &to.ah_attr.grh.dgid,
				      to.ah_attr.dlid));
	EXPECT_TRUE(hears_itself(_metadata, self->id, &to));
	EXPECT_EQ(0, ibv_detach_mcast(self->id->qp, &to.ah_attr.grh.dgid,
				      to.ah_attr.dlid));
	ok(rdma_leave_multicast(self->id, sa(&self->group)));
}

TEST_F(multicast, several_groups)
{
	struct sockaddr_storage group[4];
	struct rdma_cm_event *event;
	unsigned int i, seen = 0;

	create_qp(_metadata, self);
	for (i = 0; i < 4; i++) {
		group[i] = group_addr(10 + i);
		ok(rdma_join_multicast(self->id, sa(&group[i]), &group[i]));
	}
	for (i = 0; i < 4; i++) {
		const struct sockaddr_storage *which;

		event = get_event(self->channel, RDMA_CM_EVENT_MULTICAST_JOIN);
		which = event->param.ud.private_data;
		ASSERT_TRUE(which >= group && which < group + 4);
		seen |= 1 << (which - group);
		ok(rdma_ack_cm_event(event));
	}
	EXPECT_EQ(0xf, seen);
	ok(rdma_leave_multicast(self->id, sa(&group[2])));
	ok(rdma_leave_multicast(self->id, sa(&group[0])));
	err(EADDRNOTAVAIL, rdma_leave_multicast(self->id, sa(&group[2])));
	ok(rdma_leave_multicast(self->id, sa(&group[1])));
	/* The last one is left when the id goes. */
}

/* A group that was joined twice is left twice, and heard in between. */
TEST_F(multicast, join_twice)
{
	struct rdma_cm_event *event;
	struct rdma_ud_param to;
	int i;

	create_qp(_metadata, self);
	for (i = 0; i < 2; i++) {
		ok(rdma_join_multicast(self->id, sa(&self->group), NULL));
		event = get_event(self->channel, RDMA_CM_EVENT_MULTICAST_JOIN);
		EXPECT_EQ(0, event->status);
		to = event->param.ud;
		ok(rdma_ack_cm_event(event));
	}
	ok(rdma_leave_multicast(self->id, sa(&self->group)));
	if (!on_stock())	/* the QP is detached there */
		EXPECT_TRUE(hears_itself(_metadata, self->id, &to));
	ok(rdma_leave_multicast(self->id, sa(&self->group)));
	err(EADDRNOTAVAIL, rdma_leave_multicast(self->id, sa(&self->group)));
}

/* "before a group has been fully joined results in canceling the join" */
TEST_F(multicast, leave_while_joining)
{
	int i;

	create_qp(_metadata, self);
	for (i = 0; i < 20; i++) {
		ok(rdma_join_multicast(self->id, sa(&self->group), NULL));
		ok(rdma_leave_multicast(self->id, sa(&self->group)));
	}
	expect_silence(self->channel);
}

/* "Destroying an rdma_cm_id will automatically leave all multicast groups." */
TEST_F(multicast, destroy_leaves)
{
	create_qp(_metadata, self);
	ok(rdma_join_multicast(self->id, sa(&self->group), NULL));
	expect_event(self->channel, RDMA_CM_EVENT_MULTICAST_JOIN);
	rdma_destroy_qp(self->id);
	ok(rdma_destroy_id(self->id));
	self->id = NULL;
}

TEST_F(multicast, destroy_while_joining)
{
	ok(rdma_join_multicast(self->id, sa(&self->group), NULL));
	ok(rdma_destroy_id(self->id));
	self->id = NULL;
	expect_silence(self->channel);
}

static void *leave_thread(void *arg)
{
	FIXTURE_DATA(multicast) *self = arg;

	return (void *)(intptr_t)outcome(rdma_leave_multicast(self->id,
							      sa(&self->group)));
}

/* The event has to be acked before the group goes. */
TEST_F(multicast, leave_waits_for_ack)
{
	struct rdma_cm_event *event;
	pthread_t thread;

	ok(rdma_join_multicast(self->id, sa(&self->group), NULL));
	event = get_event(self->channel, RDMA_CM_EVENT_MULTICAST_JOIN);
	ASSERT_EQ(0, pthread_create(&thread, NULL, leave_thread, self));
	EXPECT_FALSE(ended_within(thread, NEVER_MS));
	EXPECT_EQ(RDMA_CM_EVENT_MULTICAST_JOIN, event->event);
	ok(rdma_ack_cm_event(event));
	EXPECT_TRUE(ended_within(thread, SOON_MS));
}

TEST_F(multicast, synchronous)
{
	struct sockaddr_storage addr = my_addr(AF_INET, 0);
	struct ibv_qp_init_attr attr = qp_attr(IBV_QPT_UD);
	struct rdma_cm_id *id;
	int context;

	ok(rdma_create_id(NULL, &id, NULL, RDMA_PS_UDP));
	ok(rdma_bind_addr(id, sa(&addr)));
	ok(rdma_create_qp(id, NULL, &attr));
	ok(rdma_join_multicast(id, sa(&self->group), &context));
	ASSERT_NE(NULL, id->event);
	EXPECT_EQ(RDMA_CM_EVENT_MULTICAST_JOIN, id->event->event);
	EXPECT_EQ(&context, id->event->param.ud.private_data);
	EXPECT_TRUE(hears_itself(_metadata, id, &id->event->param.ud));
	if (!on_stock()) {
		/* librdmacm waits for an ack of id->event that cannot come */
		ok(rdma_leave_multicast(id, sa(&self->group)));
	}
	rdma_destroy_ep(id);
}

/* resolved with the group as destination */
TEST_F(multicast, resolve_addr)
{
	struct sockaddr_storage src = my_addr(AF_INET, 0);
	struct rdma_cm_id *id;

	ok(rdma_create_id(self->channel, &id, NULL, RDMA_PS_UDP));
	ok(rdma_resolve_addr(id, sa(&src), sa(&self->group), RESOLVE_MS));
	expect_event(self->channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	EXPECT_NE(NULL, id->verbs);
	ok(rdma_join_multicast(id, sa(&self->group), NULL));
	expect_event(self->channel, RDMA_CM_EVENT_MULTICAST_JOIN);
	ok(rdma_destroy_id(id));
}

/* "must be bound to an RDMA device"; "wrong state" is what rdma_cm says */
TEST_F(multicast, error_unbound)
{
	struct rdma_cm_id *id;

	ok(rdma_create_id(self->channel, &id, NULL, RDMA_PS_UDP));
	err(EINVAL, rdma_join_multicast(id, sa(&self->group), NULL));
	ok(rdma_destroy_id(id));
}

TEST_F(multicast, error_leave_what_was_not_joined)
{
	err(EADDRNOTAVAIL, rdma_leave_multicast(self->id, sa(&self->group)));
}

TEST_F(multicast, error_address)
{
	struct sockaddr_storage bad = { .ss_family = AF_UNIX };

	err(EINVAL, rdma_join_multicast(self->id, sa(&bad), NULL));
	err(EINVAL, rdma_leave_multicast(self->id, sa(&bad)));
}

/*
 * RoCE has no IPv6 groups in rdma_cm; what it says, 524, is not a number for
 * user space
 */
TEST_F(multicast, error_ipv6)
{
	struct sockaddr_storage addr = my_addr(AF_INET6, 0);
	struct sockaddr_storage group = parse("ff0e::4321:1", 0);
	struct sockaddr_storage of_the_link = parse("ff02::4321:1", 0);
	struct rdma_cm_id *id;

	ok(rdma_create_id(self->channel, &id, NULL, RDMA_PS_UDP));
	ok(rdma_bind_addr(id, sa(&addr)));
	err_or_stock(EOPNOTSUPP, 524, rdma_join_multicast(id, sa(&group), NULL));
	err_or_stock(EOPNOTSUPP, 524,
		     rdma_join_multicast(id, sa(&of_the_link), NULL));
	ok(rdma_destroy_id(id));
}

/*
 * rdma_join_multicast_ex
 */

static struct rdma_cm_join_mc_attr_ex join_attr(struct sockaddr_storage *group,
						uint32_t flags)
{
	return (struct rdma_cm_join_mc_attr_ex){
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS |
			     RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = flags,
		.addr = sa(group),
	};
}

TEST_F(multicast, ex_full_member)
{
	struct rdma_cm_join_mc_attr_ex attr =
		join_attr(&self->group, RDMA_MC_JOIN_FLAG_FULLMEMBER);
	struct rdma_cm_event *event;
	int context;

	create_qp(_metadata, self);
	ok(rdma_join_multicast_ex(self->id, &attr, &context));
	event = get_event(self->channel, RDMA_CM_EVENT_MULTICAST_JOIN);
	EXPECT_EQ(&context, event->param.ud.private_data);
	EXPECT_TRUE(hears_itself(_metadata, self->id, &event->param.ud));
	ok(rdma_ack_cm_event(event));
	ok(rdma_leave_multicast(self->id, sa(&self->group)));
}

/* "When Send Only Full Member is used the QP will not be attached" */
TEST_F(multicast, ex_send_only)
{
	struct rdma_cm_join_mc_attr_ex attr =
		join_attr(&self->group, RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER);
	struct rdma_cm_event *event;

	create_qp(_metadata, self);
	ok(rdma_join_multicast_ex(self->id, &attr, NULL));
	event = get_event(self->channel, RDMA_CM_EVENT_MULTICAST_JOIN);
	EXPECT_FALSE(hears_itself(_metadata, self->id, &event->param.ud));
	ok(rdma_ack_cm_event(event));
	ok(rdma_leave_multicast(self->id, sa(&self->group)));
}

TEST_F(multicast, error_ex)
{
	struct rdma_cm_join_mc_attr_ex attr = join_attr(&self->group, 0);

	attr.comp_mask = RDMA_CM_JOIN_MC_ATTR_RESERVED;
	err(ENOTSUP, rdma_join_multicast_ex(self->id, &attr, NULL));
	attr.comp_mask = RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
	err(EINVAL, rdma_join_multicast_ex(self->id, &attr, NULL));
	attr.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS;
	err(EINVAL, rdma_join_multicast_ex(self->id, &attr, NULL));
	attr = join_attr(&self->group, RDMA_MC_JOIN_FLAG_RESERVED);
	err(EINVAL, rdma_join_multicast_ex(self->id, &attr, NULL));
	expect_silence(self->channel);
}

TEST_HARNESS_MAIN
