// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * AF_IB addresses and RDMA_PS_IB, as far as they go without an InfiniBand
 * fabric: names and numbers are converted, and a RoCE device is refused.
 */
#include <endian.h>

#include <infiniband/ib.h>

#include "api_utils.h"

#define GID_TEXT "fe80::2:c903:1:1234"

static struct sockaddr_ib *sib(struct sockaddr *addr)
{
	return (struct sockaddr_ib *)addr;
}

FIXTURE(af_ib) {
	struct rdma_addrinfo hints;
	struct rdma_addrinfo *res;
	uint8_t gid[16];
};

FIXTURE_SETUP(af_ib)
{
	ASSERT_EQ(1, inet_pton(AF_INET6, GID_TEXT, self->gid));
	self->hints.ai_flags = RAI_NUMERICHOST | RAI_FAMILY | RAI_NOROUTE;
	self->hints.ai_family = AF_IB;
	self->hints.ai_port_space = RDMA_PS_TCP;
}

FIXTURE_TEARDOWN(af_ib)
{
	if (self->res)
		rdma_freeaddrinfo(self->res);
}

/* a GID is written as an IPv6 address is; the port is in the service id */
TEST_F(af_ib, getaddrinfo_active)
{
	struct sockaddr_ib *dst;

	ok(rdma_getaddrinfo(GID_TEXT, "7471", &self->hints, &self->res));
	ASSERT_NE(NULL, self->res->ai_dst_addr);
	EXPECT_EQ(AF_IB, self->res->ai_family);
	EXPECT_EQ(sizeof(struct sockaddr_ib), self->res->ai_dst_len);
	dst = sib(self->res->ai_dst_addr);
	EXPECT_EQ(AF_IB, dst->sib_family);
	EXPECT_EQ(0, memcmp(self->gid, &dst->sib_addr, 16));
	EXPECT_EQ(RDMA_IB_IP_PS_TCP | 7471, be64toh(dst->sib_sid));
}

TEST_F(af_ib, getaddrinfo_passive)
{
	struct sockaddr_ib *src;

	self->hints.ai_flags |= RAI_PASSIVE;
	ok(rdma_getaddrinfo(GID_TEXT, "7471", &self->hints, &self->res));
	ASSERT_NE(NULL, self->res->ai_src_addr);
	EXPECT_EQ(NULL, self->res->ai_dst_addr);
	src = sib(self->res->ai_src_addr);
	EXPECT_EQ(AF_IB, src->sib_family);
	EXPECT_EQ(0, memcmp(self->gid, &src->sib_addr, 16));
	EXPECT_EQ(RDMA_IB_IP_PS_TCP | 7471, be64toh(src->sib_sid));
}

TEST_F(af_ib, getaddrinfo_udp)
{
	self->hints.ai_port_space = RDMA_PS_UDP;
	ok(rdma_getaddrinfo(GID_TEXT, "80", &self->hints, &self->res));
	EXPECT_EQ(IBV_QPT_UD, self->res->ai_qp_type);
	EXPECT_EQ(RDMA_IB_IP_PS_UDP | 80,
		  be64toh(sib(self->res->ai_dst_addr)->sib_sid));
}

/* A wildcard binds no device, and so works with RoCE only, too. */
static struct sockaddr_ib ib_wildcard(uint64_t ps, uint16_t port)
{
	return (struct sockaddr_ib){
		.sib_family = AF_IB,
		.sib_pkey = htons(0xffff),
		.sib_sid = htobe64(ps | port),
		.sib_sid_mask = htobe64(~0ULL),
	};
}

TEST(bind_wildcard)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct sockaddr_ib addr = ib_wildcard(RDMA_IB_IP_PS_TCP, 7471);
	struct rdma_cm_id *id, *other;

	ASSERT_NE(NULL, channel);
	ok(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	ok(rdma_bind_addr(id, (struct sockaddr *)&addr));
	EXPECT_EQ(AF_IB, rdma_get_local_addr(id)->sa_family);
	EXPECT_EQ(7471, src_port(id));
	EXPECT_EQ(NULL, id->verbs);

	/* The port is that of IP addresses. */
	struct sockaddr_storage ip = my_addr(AF_INET, 7471);

	ok(rdma_create_id(channel, &other, NULL, RDMA_PS_TCP));
	err_or_stock(EADDRINUSE, EADDRNOTAVAIL, rdma_bind_addr(other, sa(&ip)));
	ok(rdma_destroy_id(id));
	ok(rdma_destroy_id(other));
	rdma_destroy_event_channel(channel);
}

TEST(error_bind_roce_device)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct sockaddr_ib addr = ib_wildcard(RDMA_IB_IP_PS_TCP, 7471);
	struct sockaddr_storage ip = my_addr(AF_INET, 0);
	struct rdma_cm_id *id;

	ASSERT_NE(NULL, channel);
	/* a GID that is there, but of a RoCE port */
	ok(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	ok(rdma_bind_addr(id, sa(&ip)));
	memcpy(&addr.sib_addr, &id->route.addr.addr.ibaddr.sgid, 16);
	ok(rdma_destroy_id(id));
	ok(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	err(ENODEV, rdma_bind_addr(id, (struct sockaddr *)&addr));
	expect_reason(RDMA_EP_REASON_NO_DEVICE);
	ok(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

/* a GID that no port shares its prefix with */
TEST(error_resolve)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct sockaddr_ib addr = ib_wildcard(RDMA_IB_IP_PS_TCP, 7471);
	struct rdma_cm_id *id;

	ASSERT_NE(NULL, channel);
	ok(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	ASSERT_EQ(1, inet_pton(AF_INET6, "2001:db8::1", &addr.sib_addr));
	err(ENODEV, rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr,
				      RESOLVE_MS));
	ok(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

/*
 * A RoCE port takes InfiniBand addresses of its own prefix, too. There is no
 * subnet manager to ask for a path, so this is as far as it goes.
 */
TEST(resolve)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct sockaddr_ib addr = ib_wildcard(RDMA_IB_IP_PS_TCP, 7471);
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	ASSERT_NE(NULL, channel);
	ok(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	ASSERT_EQ(1, inet_pton(AF_INET6, GID_TEXT, &addr.sib_addr));
	ok(rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr, RESOLVE_MS));
	ok(rdma_get_cm_event(channel, &event));
	EXPECT_EQ(RDMA_CM_EVENT_ADDR_RESOLVED, event->event);
	EXPECT_EQ(0, event->status);
	ok(rdma_ack_cm_event(event));
	EXPECT_NE(NULL, id->verbs);
	EXPECT_EQ(1, id->port_num);
	EXPECT_EQ(AF_IB, rdma_get_local_addr(id)->sa_family);
	EXPECT_EQ(0, memcmp(&addr.sib_addr, &sib(rdma_get_peer_addr(id))->sib_addr, 16));
	EXPECT_EQ(0, memcmp(&addr.sib_addr, &id->route.addr.addr.ibaddr.dgid, 16));
	ok(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

/* RDMA_PS_IB: any service id, any QP type */
TEST(ps_ib)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct sockaddr_ib addr = ib_wildcard(RDMA_IB_PS_IB, 0x1234);
	struct rdma_cm_id *id;

	ASSERT_NE(NULL, channel);
	ok(rdma_create_id(channel, &id, NULL, RDMA_PS_IB));
	EXPECT_EQ(RDMA_PS_IB, id->ps);
	ok(rdma_bind_addr(id, (struct sockaddr *)&addr));
	EXPECT_EQ(AF_IB, rdma_get_local_addr(id)->sa_family);
	ok(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

TEST_HARNESS_MAIN
