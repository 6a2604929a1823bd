// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rdma_getaddrinfo(3) and rdma_freeaddrinfo().
 */
#include <netdb.h>

#include "api_utils.h"

FIXTURE(addrinfo) {
	struct rdma_addrinfo hints;
	struct rdma_addrinfo *res;
	const char *ip;
	struct sockaddr_storage addr;
};

FIXTURE_VARIANT(addrinfo) {
	int family;
};

FIXTURE_VARIANT_ADD(addrinfo, ipv4) {
	.family = AF_INET,
};

FIXTURE_VARIANT_ADD(addrinfo, ipv6) {
	.family = AF_INET6,
};

FIXTURE_SETUP(addrinfo)
{
	self->ip = my_ip(variant->family);
	self->addr = my_addr(variant->family, 7471);
}

FIXTURE_TEARDOWN(addrinfo)
{
	if (self->res)
		rdma_freeaddrinfo(self->res);
}

TEST_F(addrinfo, active)
{
	struct rdma_addrinfo *res;

	self->hints.ai_port_space = RDMA_PS_TCP;
	ok(rdma_getaddrinfo(self->ip, "7471", &self->hints, &self->res));
	res = self->res;
	ASSERT_NE(NULL, res);
	EXPECT_EQ(0, res->ai_flags & RAI_PASSIVE);
	EXPECT_EQ(variant->family, res->ai_family);
	EXPECT_EQ(IBV_QPT_RC, res->ai_qp_type);
	EXPECT_EQ(RDMA_PS_TCP, res->ai_port_space);
	ASSERT_NE(NULL, res->ai_dst_addr);
	EXPECT_EQ(sa_len(&self->addr), res->ai_dst_len);
	EXPECT_TRUE(same_ip(sa(&self->addr), res->ai_dst_addr));
	EXPECT_EQ(7471, port_of(res->ai_dst_addr));
	/* no source: resolving picks it, here as with librdmacm */
	EXPECT_EQ(0, res->ai_src_len);
	EXPECT_EQ(NULL, res->ai_src_addr);
	EXPECT_EQ(NULL, res->ai_next);
}

/* "resolve address information for use on the passive side" */
TEST_F(addrinfo, passive)
{
	struct rdma_addrinfo *res;

	self->hints.ai_flags = RAI_PASSIVE;
	self->hints.ai_port_space = RDMA_PS_TCP;
	ok(rdma_getaddrinfo(self->ip, "7471", &self->hints, &self->res));
	res = self->res;
	EXPECT_EQ(RAI_PASSIVE, res->ai_flags & RAI_PASSIVE);
	ASSERT_NE(NULL, res->ai_src_addr);
	EXPECT_TRUE(same_ip(sa(&self->addr), res->ai_src_addr));
	EXPECT_EQ(7471, port_of(res->ai_src_addr));
	/* "0 if the RAI_PASSIVE flag was specified" */
	EXPECT_EQ(0, res->ai_dst_len);
	EXPECT_EQ(NULL, res->ai_dst_addr);
}

/* no node: any local address */
TEST_F(addrinfo, passive_without_node)
{
	struct sockaddr_storage any = wildcard(variant->family, 7471);

	self->hints.ai_flags = RAI_PASSIVE | RAI_FAMILY;
	self->hints.ai_family = variant->family;
	self->hints.ai_port_space = RDMA_PS_TCP;
	ok(rdma_getaddrinfo(NULL, "7471", &self->hints, &self->res));
	ASSERT_NE(NULL, self->res->ai_src_addr);
	EXPECT_TRUE(same_ip(sa(&any), self->res->ai_src_addr));
	EXPECT_EQ(7471, port_of(self->res->ai_src_addr));
}

TEST_F(addrinfo, without_hints)
{
	ok(rdma_getaddrinfo(self->ip, "7471", NULL, &self->res));
	ASSERT_NE(NULL, self->res->ai_dst_addr);
	EXPECT_TRUE(same_ip(sa(&self->addr), self->res->ai_dst_addr));
	EXPECT_EQ(7471, port_of(self->res->ai_dst_addr));
}

TEST_F(addrinfo, without_service)
{
	self->hints.ai_port_space = RDMA_PS_TCP;
	ok(rdma_getaddrinfo(self->ip, NULL, &self->hints, &self->res));
	EXPECT_EQ(0, port_of(self->res->ai_dst_addr));
}

/* "interpreting the node parameter": names that have both kinds of address */
TEST_F(addrinfo, names)
{
	self->hints.ai_flags = RAI_FAMILY;
	self->hints.ai_family = variant->family;
	self->hints.ai_port_space = RDMA_PS_TCP;
	ok(rdma_getaddrinfo("localhost", "7471", &self->hints, &self->res));
	EXPECT_EQ(variant->family, self->res->ai_family);
	EXPECT_EQ(variant->family, self->res->ai_dst_addr->sa_family);
}

TEST_F(addrinfo, service_names)
{
	self->hints.ai_port_space = RDMA_PS_TCP;
	ok(rdma_getaddrinfo(self->ip, "http", &self->hints, &self->res));
	EXPECT_EQ(80, port_of(self->res->ai_dst_addr));
}

/* RAI_NUMERICHOST: "the node parameter ... must be a numerical network address" */
TEST_F(addrinfo, numeric_host)
{
	self->hints.ai_flags = RAI_NUMERICHOST;
	self->hints.ai_port_space = RDMA_PS_TCP;
	ok(rdma_getaddrinfo(self->ip, "7471", &self->hints, &self->res));
	rdma_freeaddrinfo(self->res);
	self->res = NULL;
	EXPECT_EQ(EAI_NONAME, rdma_getaddrinfo("localhost", "7471",
					       &self->hints, &self->res));
}

TEST_F(addrinfo, no_route)
{
	self->hints.ai_flags = RAI_NOROUTE;
	self->hints.ai_port_space = RDMA_PS_TCP;
	ok(rdma_getaddrinfo(self->ip, "7471", &self->hints, &self->res));
	EXPECT_EQ(0, self->res->ai_route_len);
	EXPECT_EQ(NULL, self->res->ai_route);
	EXPECT_TRUE(same_ip(sa(&self->addr), self->res->ai_dst_addr));
}

/* QP types and port spaces follow from each other. */
TEST_F(addrinfo, port_spaces)
{
	static const struct {
		int ps, type, out_ps, out_type;
	} row[] = {
		{ RDMA_PS_TCP, 0, RDMA_PS_TCP, IBV_QPT_RC },
		{ RDMA_PS_UDP, 0, RDMA_PS_UDP, IBV_QPT_UD },
		{ RDMA_PS_IPOIB, 0, RDMA_PS_IPOIB, IBV_QPT_UD },
		{ 0, IBV_QPT_RC, RDMA_PS_TCP, IBV_QPT_RC },
		{ 0, IBV_QPT_UD, RDMA_PS_UDP, IBV_QPT_UD },
		{ RDMA_PS_TCP, IBV_QPT_RC, RDMA_PS_TCP, IBV_QPT_RC },
		{ RDMA_PS_UDP, IBV_QPT_UD, RDMA_PS_UDP, IBV_QPT_UD },
		{ RDMA_PS_IB, IBV_QPT_RC, RDMA_PS_IB, IBV_QPT_RC },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(row); i++) {
		self->hints.ai_port_space = row[i].ps;
		self->hints.ai_qp_type = row[i].type;
		ok(rdma_getaddrinfo(self->ip, "7471", &self->hints, &self->res));
		EXPECT_EQ(row[i].out_ps, self->res->ai_port_space) {
			TH_LOG("row %u", i);
		}
		EXPECT_EQ(row[i].out_type, self->res->ai_qp_type) {
			TH_LOG("row %u", i);
		}
		rdma_freeaddrinfo(self->res);
		self->res = NULL;
	}
}

/* "based on the hints.ai_src_addr, hints.ai_dst_addr" */
TEST_F(addrinfo, hints_with_addresses)
{
	self->hints.ai_port_space = RDMA_PS_TCP;
	self->hints.ai_dst_addr = sa(&self->addr);
	self->hints.ai_dst_len = sa_len(&self->addr);
	ok(rdma_getaddrinfo(NULL, NULL, &self->hints, &self->res));
	ASSERT_NE(NULL, self->res->ai_dst_addr);
	EXPECT_NE(sa(&self->addr), self->res->ai_dst_addr);
	EXPECT_TRUE(same_ip(sa(&self->addr), self->res->ai_dst_addr));
	EXPECT_EQ(7471, port_of(self->res->ai_dst_addr));
}

TEST_F(addrinfo, hints_with_source)
{
	struct sockaddr_storage src = my_addr(variant->family, 1234);

	self->hints.ai_port_space = RDMA_PS_TCP;
	self->hints.ai_src_addr = sa(&src);
	self->hints.ai_src_len = sa_len(&src);
	ok(rdma_getaddrinfo(self->ip, "7471", &self->hints, &self->res));
	ASSERT_NE(NULL, self->res->ai_src_addr);
	EXPECT_TRUE(same_ip(sa(&src), self->res->ai_src_addr));
	EXPECT_EQ(1234, port_of(self->res->ai_src_addr));
}

TEST_F(addrinfo, hints_passive_source)
{
	self->hints.ai_flags = RAI_PASSIVE;
	self->hints.ai_port_space = RDMA_PS_TCP;
	self->hints.ai_src_addr = sa(&self->addr);
	self->hints.ai_src_len = sa_len(&self->addr);
	ok(rdma_getaddrinfo(NULL, NULL, &self->hints, &self->res));
	ASSERT_NE(NULL, self->res->ai_src_addr);
	EXPECT_TRUE(same_ip(sa(&self->addr), self->res->ai_src_addr));
	EXPECT_EQ(7471, port_of(self->res->ai_src_addr));
}

TEST_F(addrinfo, link_local)
{
	struct sockaddr_storage addr;
	char text[64], node[96];

	if (variant->family != AF_INET6)
		return;
	ASSERT_TRUE(link_local(&addr, 0));
	inet_ntop(AF_INET6, &((struct sockaddr_in6 *)&addr)->sin6_addr, text,
		  sizeof(text));
	snprintf(node, sizeof(node), "%s%%d0", text);
	self->hints.ai_port_space = RDMA_PS_TCP;
	ok(rdma_getaddrinfo(node, "7471", &self->hints, &self->res));
	EXPECT_EQ(if_nametoindex("d0"), ((struct sockaddr_in6 *)
		  self->res->ai_dst_addr)->sin6_scope_id);
	EXPECT_TRUE(same_ip(sa(&addr), self->res->ai_dst_addr));
}

/* The result is good for rdma_create_ep, for both sides. */
TEST_F(addrinfo, result_makes_endpoints)
{
	struct rdma_cm_id *id;

	self->hints.ai_port_space = RDMA_PS_TCP;
	ok(rdma_getaddrinfo(self->ip, "7471", &self->hints, &self->res));
	ok(rdma_create_ep(&id, self->res, NULL, NULL));
	rdma_destroy_ep(id);
	rdma_freeaddrinfo(self->res);
	self->hints.ai_flags = RAI_PASSIVE;
	ok(rdma_getaddrinfo(self->ip, "7471", &self->hints, &self->res));
	ok(rdma_create_ep(&id, self->res, NULL, NULL));
	ok(rdma_listen(id, 1));
	rdma_destroy_ep(id);
}

/* Errors are EAI_ codes, or -1 and errno. */

TEST(error_nothing_asked)
{
	struct rdma_addrinfo *res;

	err(EINVAL, rdma_getaddrinfo(NULL, NULL, NULL, &res));
}

TEST_F(addrinfo, error_unknown_name)
{
	struct rdma_addrinfo *res;
	int ret;

	self->hints.ai_port_space = RDMA_PS_TCP;
	ret = rdma_getaddrinfo("no-such-host.invalid", "7471", &self->hints,
			       &res);
	EXPECT_TRUE(ret == EAI_NONAME || ret == EAI_AGAIN || ret == EAI_FAIL) {
		TH_LOG("%d", ret);
	}
}

TEST_F(addrinfo, error_unknown_service)
{
	struct rdma_addrinfo *res;
	int ret;

	self->hints.ai_port_space = RDMA_PS_TCP;
	ret = rdma_getaddrinfo(self->ip, "no-such-service", &self->hints, &res);
	EXPECT_TRUE(ret == EAI_SERVICE || ret == EAI_NONAME) {
		TH_LOG("%d", ret);
	}
}

/* many times, under whatever leak checker there is */
TEST_F(addrinfo, free)
{
	struct growth growth = {};
	int i;

	for (i = 0; i < 50; i++) {
		ok(rdma_getaddrinfo(self->ip, "7471", NULL, &self->res));
		rdma_freeaddrinfo(self->res);
		if (i == 3)
			growth = growth_now();
	}
	self->res = NULL;
	expect_no_growth(&growth);
}

TEST_HARNESS_MAIN
