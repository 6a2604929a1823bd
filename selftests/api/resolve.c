// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rdma_resolve_addr(3), rdma_resolve_route(3), rdma_get_local_addr(3),
 * rdma_get_peer_addr(3), rdma_get_src_port(3) and rdma_get_dst_port(3).
 */
#include "api_utils.h"

FIXTURE(resolve) {
	struct objects before;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct sockaddr_storage dst;
};

FIXTURE_VARIANT(resolve) {
	int family;
	bool sync;
};

FIXTURE_VARIANT_ADD(resolve, ipv4) {
	.family = AF_INET,
};

FIXTURE_VARIANT_ADD(resolve, ipv6) {
	.family = AF_INET6,
};

FIXTURE_VARIANT_ADD(resolve, ipv4_sync) {
	.family = AF_INET,
	.sync = true,
};

FIXTURE_VARIANT_ADD(resolve, ipv6_sync) {
	.family = AF_INET6,
	.sync = true,
};

FIXTURE_SETUP(resolve)
{
	self->before = count_objects();
	self->dst = my_addr(variant->family, 7471);
	if (!variant->sync) {
		self->channel = rdma_create_event_channel();
		ASSERT_NE(NULL, self->channel);
	}
	ok(rdma_create_id(self->channel, &self->id, NULL, RDMA_PS_TCP));
}

FIXTURE_TEARDOWN(resolve)
{
	if (!_metadata->passed)
		return;
	ok(rdma_destroy_id(self->id));
	if (self->channel)
		rdma_destroy_event_channel(self->channel);
	expect_no_leak(&self->before);
}

/* The event of the call before, wherever it is, and its status. */
#define completes(type)								\
	do {									\
		if (self->channel) {						\
			expect_event(self->channel, type);			\
		} else {							\
			ASSERT_NE(NULL, self->id->event);			\
			EXPECT_EQ(type, self->id->event->event);		\
			EXPECT_EQ(0, self->id->event->status);			\
		}								\
	} while (0)

/* The errno with which the call before it ended: from the call, or the event. */
static int resolve_outcome(struct rdma_cm_id *id,
			   struct rdma_event_channel *channel,
			   struct sockaddr_storage *src,
			   struct sockaddr_storage *dst)
{
	struct rdma_cm_event *event;
	int code;

	code = outcome(rdma_resolve_addr(id, src ? sa(src) : NULL, sa(dst), 2000));
	if (code || !channel)
		return code;
	event = next_event(channel);
	if (!event || (event->event != RDMA_CM_EVENT_ADDR_ERROR) ==
		      !!event->status)
		return -1;
	code = -event->status;
	rdma_ack_cm_event(event);
	return code;
}

/* "If successful, the specified rdma_cm_id will be bound to a local device." */
TEST_F(resolve, binds_to_device)
{
	EXPECT_EQ(NULL, self->id->verbs);
	ok(rdma_resolve_addr(self->id, NULL, sa(&self->dst), RESOLVE_MS));
	completes(RDMA_CM_EVENT_ADDR_RESOLVED);
	ASSERT_NE(NULL, self->id->verbs);
	EXPECT_EQ(1, self->id->port_num);
	EXPECT_NE(NULL, self->id->pd);
}

/* "will be bound to a source address based on the local routing tables" */
TEST_F(resolve, picks_source)
{
	struct sockaddr_storage mine = my_addr(variant->family, 0);

	ok(rdma_resolve_addr(self->id, NULL, sa(&self->dst), RESOLVE_MS));
	completes(RDMA_CM_EVENT_ADDR_RESOLVED);
	EXPECT_TRUE(same_ip(sa(&mine), rdma_get_local_addr(self->id)));
	EXPECT_NE(0, src_port(self->id));
	EXPECT_TRUE(same_ip(sa(&self->dst), rdma_get_peer_addr(self->id)));
	EXPECT_EQ(7471, ntohs(rdma_get_dst_port(self->id)));
	EXPECT_EQ(7471, port_of(rdma_get_peer_addr(self->id)));
}

/* "If a source address is given, the rdma_cm_id is bound to that address" */
TEST_F(resolve, given_source)
{
	struct sockaddr_storage src = my_addr(variant->family, 12345);

	ok(rdma_resolve_addr(self->id, sa(&src), sa(&self->dst), RESOLVE_MS));
	completes(RDMA_CM_EVENT_ADDR_RESOLVED);
	EXPECT_TRUE(same_ip(sa(&src), rdma_get_local_addr(self->id)));
	EXPECT_EQ(12345, src_port(self->id));
}

TEST_F(resolve, bound_before)
{
	struct sockaddr_storage src = my_addr(variant->family, 12345);

	ok(rdma_bind_addr(self->id, sa(&src)));
	ok(rdma_resolve_addr(self->id, NULL, sa(&self->dst), RESOLVE_MS));
	completes(RDMA_CM_EVENT_ADDR_RESOLVED);
	EXPECT_EQ(12345, src_port(self->id));
	EXPECT_NE(NULL, self->id->verbs);
}

/* bound to a wildcard: the port stays, the address is filled in */
TEST_F(resolve, bound_to_wildcard)
{
	struct sockaddr_storage src = wildcard(variant->family, 12345);
	struct sockaddr_storage mine = my_addr(variant->family, 0);

	ok(rdma_bind_addr(self->id, sa(&src)));
	EXPECT_EQ(NULL, self->id->verbs);
	ok(rdma_resolve_addr(self->id, NULL, sa(&self->dst), RESOLVE_MS));
	completes(RDMA_CM_EVENT_ADDR_RESOLVED);
	EXPECT_EQ(12345, src_port(self->id));
	EXPECT_TRUE(same_ip(sa(&mine), rdma_get_local_addr(self->id)));
	EXPECT_NE(NULL, self->id->verbs);
}

/* a wildcard as destination means this machine */
TEST_F(resolve, to_wildcard)
{
	struct sockaddr_storage dst = wildcard(variant->family, 7471);

	ok(rdma_resolve_addr(self->id, NULL, sa(&dst), RESOLVE_MS));
	completes(RDMA_CM_EVENT_ADDR_RESOLVED);
	EXPECT_NE(NULL, self->id->verbs);
}

TEST_F(resolve, link_local)
{
	struct sockaddr_storage dst;
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)&dst;

	if (variant->family != AF_INET6)
		return;
	ASSERT_TRUE(link_local(&dst, 7471));
	ok(rdma_resolve_addr(self->id, NULL, sa(&dst), RESOLVE_MS));
	completes(RDMA_CM_EVENT_ADDR_RESOLVED);
	EXPECT_NE(NULL, self->id->verbs);
	EXPECT_EQ(sin6->sin6_scope_id, ((struct sockaddr_in6 *)
		  rdma_get_peer_addr(self->id))->sin6_scope_id);
}

/*
 * Two hosts give their links different names: an address that was sent has no
 * scope. The source tells the link, bound to before or given with it.
 */
static void without_scope(struct __test_metadata *_metadata,
			  FIXTURE_DATA(resolve) *self, bool bind)
{
	struct sockaddr_storage src, dst;

	ASSERT_TRUE(link_local(&src, 0));
	ASSERT_TRUE(link_local(&dst, 7471));
	((struct sockaddr_in6 *)&dst)->sin6_scope_id = 0;
	if (bind)
		ok(rdma_bind_addr(self->id, sa(&src)));
	ok(rdma_resolve_addr(self->id, bind ? NULL : sa(&src), sa(&dst),
			     RESOLVE_MS));
	completes(RDMA_CM_EVENT_ADDR_RESOLVED);
}

TEST_F(resolve, link_local_from_a_bound_id)
{
	if (variant->family == AF_INET6)
		without_scope(_metadata, self, true);
}

TEST_F(resolve, link_local_with_a_source)
{
	if (variant->family == AF_INET6)
		without_scope(_metadata, self, false);
}

TEST_F(resolve, error_no_route)
{
	struct sockaddr_storage dst = foreign_addr(variant->family, 7471);

	EXPECT_EQ(ENETUNREACH,
		  resolve_outcome(self->id, self->channel, NULL, &dst));
	EXPECT_EQ(NULL, self->id->verbs);
}

/* "Time to wait for resolution to complete" */
TEST_F(resolve, error_no_answer)
{
	struct sockaddr_storage dst = silent_addr(variant->family, 7471);
	long start = now_ms();
	int code;

	ASSERT_EQ(0, system("ip link set d0 arp on"));
	code = resolve_outcome(self->id, self->channel, NULL, &dst);
	EXPECT_TRUE(code == ETIMEDOUT || code == EHOSTUNREACH) {
		TH_LOG("%d", code);
	}
	EXPECT_LT(now_ms() - start, SOON_MS);
	ASSERT_EQ(0, system("ip link set d0 arp off"));
}

TEST_F(resolve, error_source_not_local)
{
	struct sockaddr_storage src = foreign_addr(variant->family, 0);

	EXPECT_EQ(EADDRNOTAVAIL, resolve_outcome(self->id, self->channel, &src,
						 &self->dst));
	/* It can be tried again. */
	ok(rdma_resolve_addr(self->id, NULL, sa(&self->dst), RESOLVE_MS));
	completes(RDMA_CM_EVENT_ADDR_RESOLVED);
}

TEST_F(resolve, error_families_differ)
{
	struct sockaddr_storage src = my_addr(variant->family == AF_INET ?
					      AF_INET6 : AF_INET, 0);

	ok(rdma_bind_addr(self->id, sa(&src)));
	EXPECT_EQ(EINVAL, resolve_outcome(self->id, self->channel, NULL,
					  &self->dst));
}

TEST_F(resolve, error_unknown_family)
{
	struct sockaddr_storage bad = { .ss_family = AF_UNIX };

	err(EINVAL, rdma_resolve_addr(self->id, NULL, sa(&bad), RESOLVE_MS));
	err(EINVAL, rdma_resolve_addr(self->id, sa(&bad), sa(&self->dst),
				      RESOLVE_MS));
	expect_reason(RDMA_EP_REASON_ADDR_FORMAT);
}

TEST_F(resolve, error_twice)
{
	ok(rdma_resolve_addr(self->id, NULL, sa(&self->dst), RESOLVE_MS));
	completes(RDMA_CM_EVENT_ADDR_RESOLVED);
	err(EINVAL, rdma_resolve_addr(self->id, NULL, sa(&self->dst),
				      RESOLVE_MS));
	expect_reason(RDMA_EP_REASON_STATE);
}

TEST_F(resolve, error_listening)
{
	ok(rdma_bind_addr(self->id, sa(&self->dst)));
	ok(rdma_listen(self->id, 1));
	err(EINVAL, rdma_resolve_addr(self->id, NULL, sa(&self->dst),
				      RESOLVE_MS));
}

/*
 * The route
 */

TEST_F(resolve, route)
{
	struct ibv_sa_path_rec *path;

	ok(rdma_resolve_addr(self->id, NULL, sa(&self->dst), RESOLVE_MS));
	completes(RDMA_CM_EVENT_ADDR_RESOLVED);
	ok(rdma_resolve_route(self->id, RESOLVE_MS));
	completes(RDMA_CM_EVENT_ROUTE_RESOLVED);
	ASSERT_LE(1, self->id->route.num_paths);
	path = self->id->route.path_rec;
	ASSERT_NE(NULL, path);
	EXPECT_EQ(0, memcmp(&path->sgid, &self->id->route.addr.addr.ibaddr.sgid,
			    16));
	EXPECT_EQ(0, memcmp(&path->dgid, &self->id->route.addr.addr.ibaddr.dgid,
			    16));
	EXPECT_EQ(htons(0xffff), path->pkey);
	EXPECT_LE(IBV_MTU_256, path->mtu);
	EXPECT_GE(IBV_MTU_4096, path->mtu);
}

/* "must have already been resolved by calling rdma_resolve_addr" */
TEST_F(resolve, error_route_first)
{
	not_on_stock("it follows a NULL pointer");
	err(EINVAL, rdma_resolve_route(self->id, RESOLVE_MS));
	expect_reason(RDMA_EP_REASON_STATE);
	ok(rdma_bind_addr(self->id, sa(&self->dst)));
	err(EINVAL, rdma_resolve_route(self->id, RESOLVE_MS));
}

TEST_F(resolve, error_route_twice)
{
	ok(rdma_resolve_addr(self->id, NULL, sa(&self->dst), RESOLVE_MS));
	completes(RDMA_CM_EVENT_ADDR_RESOLVED);
	ok(rdma_resolve_route(self->id, RESOLVE_MS));
	completes(RDMA_CM_EVENT_ROUTE_RESOLVED);
	err(EINVAL, rdma_resolve_route(self->id, RESOLVE_MS));
	EXPECT_LE(1, self->id->route.num_paths);
}

/*
 * Addresses and ports of an id that has none
 */

TEST_F(resolve, nothing_yet)
{
	struct sockaddr_storage zero = {};

	EXPECT_EQ(0, rdma_get_src_port(self->id));
	EXPECT_EQ(0, rdma_get_dst_port(self->id));
	EXPECT_EQ(0, memcmp(&zero, rdma_get_local_addr(self->id), sizeof(zero)));
	EXPECT_EQ(0, memcmp(&zero, rdma_get_peer_addr(self->id), sizeof(zero)));
}

/* bound only: no peer */
TEST_F(resolve, no_peer_yet)
{
	ok(rdma_bind_addr(self->id, sa(&self->dst)));
	EXPECT_EQ(7471, src_port(self->id));
	EXPECT_EQ(0, rdma_get_dst_port(self->id));
}

TEST_HARNESS_MAIN
