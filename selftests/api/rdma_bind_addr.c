// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rdma_bind_addr(3), sentence by sentence.
 */
#include <linux/capability.h>
#include <sys/syscall.h>

#include "api_utils.h"

FIXTURE(bind_addr) {
	struct objects before;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct rdma_cm_id *other;
};

FIXTURE_VARIANT(bind_addr) {
	int family;
};

FIXTURE_VARIANT_ADD(bind_addr, ipv4) {
	.family = AF_INET,
};

FIXTURE_VARIANT_ADD(bind_addr, ipv6) {
	.family = AF_INET6,
};

FIXTURE_SETUP(bind_addr)
{
	self->before = count_objects();
	self->channel = rdma_create_event_channel();
	ASSERT_NE(NULL, self->channel);
	ok(rdma_create_id(self->channel, &self->id, NULL, RDMA_PS_TCP));
	ok(rdma_create_id(self->channel, &self->other, NULL, RDMA_PS_TCP));
}

FIXTURE_TEARDOWN(bind_addr)
{
	if (!_metadata->passed)
		return;
	if (self->id)
		ok(rdma_destroy_id(self->id));
	if (self->other)
		ok(rdma_destroy_id(self->other));
	rdma_destroy_event_channel(self->channel);
	expect_no_leak(&self->before);
}

/* "Associates a source address with an rdma_cm_id." */
TEST_F(bind_addr, associates_source_address)
{
	struct sockaddr_storage addr = my_addr(variant->family, 7471);

	ok(rdma_bind_addr(self->id, sa(&addr)));
	EXPECT_TRUE(same_ip(sa(&addr), rdma_get_local_addr(self->id)));
	EXPECT_EQ(7471, src_port(self->id));
	EXPECT_EQ(7471, port_of(rdma_get_local_addr(self->id)));
}

/* "The address may be wildcarded." */
TEST_F(bind_addr, wildcard)
{
	struct sockaddr_storage addr = wildcard(variant->family, 7471);

	ok(rdma_bind_addr(self->id, sa(&addr)));
	EXPECT_EQ(7471, src_port(self->id));
	/* not bound to a device */
	EXPECT_EQ(NULL, self->id->verbs);
	EXPECT_EQ(NULL, self->id->pd);
	EXPECT_EQ(0, self->id->port_num);
	EXPECT_EQ(self->before.cm_id, count_objects().cm_id);
}

/* The peer's address is of the same family, and nobody's yet. */
TEST_F(bind_addr, peer_address_has_family)
{
	struct sockaddr_storage addr = my_addr(variant->family, 0);
	struct sockaddr_storage none = wildcard(variant->family, 0);

	ok(rdma_bind_addr(self->id, sa(&addr)));
	EXPECT_EQ(0, memcmp(&none, rdma_get_peer_addr(self->id), sa_len(&none)));
}

/* "binding to a specific local address ... bound to a local RDMA device" */
TEST_F(bind_addr, specific_binds_to_device)
{
	struct sockaddr_storage addr = my_addr(variant->family, 7471);
	union ibv_gid zero = {}, gid;
	struct ibv_port_attr port;
	bool found = false;
	int i;

	ok(rdma_bind_addr(self->id, sa(&addr)));
	ASSERT_NE(NULL, self->id->verbs);
	EXPECT_EQ(1, self->id->port_num);
	EXPECT_NE(NULL, self->id->pd);
	EXPECT_EQ(self->before.cm_id + 1, count_objects().cm_id);

	/* The GID is one of the device's. */
	EXPECT_NE(0, memcmp(&zero, &self->id->route.addr.addr.ibaddr.sgid, 16));
	ASSERT_EQ(0, ibv_query_port(self->id->verbs, 1, &port));
	for (i = 0; i < port.gid_tbl_len; i++)
		if (!ibv_query_gid(self->id->verbs, 1, i, &gid) &&
		    !memcmp(&gid, &self->id->route.addr.addr.ibaddr.sgid, 16))
			found = true;
	EXPECT_TRUE(found);
}

/* "called before calling rdma_listen to bind to a specific port number" */
TEST_F(bind_addr, selects_port_to_listen)
{
	struct sockaddr_storage addr = wildcard(variant->family, 7471);
	struct sockaddr_storage dst = my_addr(variant->family, 7471);
	struct rdma_conn_param param = { .qp_num = 0x1234 };
	struct rdma_cm_event *event;

	ok(rdma_bind_addr(self->id, sa(&addr)));
	ok(rdma_listen(self->id, 4));
	ok(rdma_resolve_addr(self->other, NULL, sa(&dst), RESOLVE_MS));
	expect_event(self->channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	ok(rdma_resolve_route(self->other, RESOLVE_MS));
	expect_event(self->channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	ok(rdma_connect(self->other, &param));
	event = get_event(self->channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	EXPECT_EQ(self->id, event->listen_id);
	EXPECT_EQ(7471, src_port(event->id));
	EXPECT_TRUE(same_ip(sa(&dst), rdma_get_local_addr(event->id)));
	ok(rdma_destroy_id(self->other));
	self->other = event->id;
	ok(rdma_ack_cm_event(event));
}

/*
 * "on the active side of a connection before calling rdma_resolve_addr to bind
 * to a specific address": a second address of the netdev, which resolution
 * would not pick by itself
 */
TEST_F(bind_addr, selects_source_of_connection)
{
	struct sockaddr_storage dst = my_addr(variant->family, 0);
	struct sockaddr_storage src = variant->family == AF_INET ?
		parse("10.77.0.2", 20001) : parse("fd77::2", 20001);
	struct rdma_conn_param param = { .qp_num = 0x1234 };
	struct rdma_cm_event *event;
	long end = now_ms() + SOON_MS;

	ASSERT_EQ(0, system(variant->family == AF_INET ?
			    "ip addr add 10.77.0.2/24 dev d0" :
			    "ip addr add fd77::2/64 dev d0 nodad"));
	ok(rdma_bind_addr(self->id, sa(&dst)));
	ok(rdma_listen(self->id, 4));
	dst = my_addr(variant->family, src_port(self->id));

	/* The device's GID table follows the netdev a little later. */
	while (rdma_bind_addr(self->other, sa(&src))) {
		ASSERT_LT(now_ms(), end);
		sleep_ms(20);
	}
	ok(rdma_resolve_addr(self->other, NULL, sa(&dst), RESOLVE_MS));
	expect_event(self->channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	EXPECT_TRUE(same_ip(sa(&src), rdma_get_local_addr(self->other)));
	ok(rdma_resolve_route(self->other, RESOLVE_MS));
	expect_event(self->channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	ok(rdma_connect(self->other, &param));
	event = get_event(self->channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	EXPECT_TRUE(same_ip(sa(&src), rdma_get_peer_addr(event->id)));
	EXPECT_EQ(20001, ntohs(rdma_get_dst_port(event->id)));
	ok(rdma_destroy_id(self->other));
	self->other = event->id;
	ok(rdma_ack_cm_event(event));
	ASSERT_EQ(0, system(variant->family == AF_INET ?
			    "ip addr del 10.77.0.2/24 dev d0" :
			    "ip addr del fd77::2/64 dev d0"));
}

/* "If used to bind to port 0, the rdma_cm will select an available port" */
TEST_F(bind_addr, port_0)
{
	struct sockaddr_storage addr = my_addr(variant->family, 0);

	EXPECT_EQ(0, src_port(self->id));
	ok(rdma_bind_addr(self->id, sa(&addr)));
	EXPECT_NE(0, src_port(self->id));
	ok(rdma_bind_addr(self->other, sa(&addr)));
	EXPECT_NE(0, src_port(self->other));
	EXPECT_NE(src_port(self->id), src_port(self->other));
}

TEST_F(bind_addr, wildcard_port_0)
{
	struct sockaddr_storage addr = wildcard(variant->family, 0);

	ok(rdma_bind_addr(self->id, sa(&addr)));
	EXPECT_NE(0, src_port(self->id));
	EXPECT_EQ(NULL, self->id->verbs);
}

/*
 * Errors, with the reason in words where the library is ours
 */

TEST_F(bind_addr, error_not_local)
{
	struct sockaddr_storage addr = foreign_addr(variant->family, 7471);

	err(EADDRNOTAVAIL, rdma_bind_addr(self->id, sa(&addr)));
	expect_reason(RDMA_EP_REASON_ADDR_NOT_LOCAL);

	/* and the id is as good as new */
	addr = my_addr(variant->family, 7471);
	ok(rdma_bind_addr(self->id, sa(&addr)));
}

/* a local address, but of a netdev without RDMA: lo is d0's by rdma_cm's rule */
TEST_F(bind_addr, error_no_device)
{
	struct sockaddr_storage addr = variant->family == AF_INET ?
		parse("198.51.100.7", 7471) : parse("2001:db8:1::7", 7471);
	int code;

	ASSERT_EQ(0, system("ip link add bare0 type dummy && ip link set bare0 up"));
	ASSERT_EQ(0, system(variant->family == AF_INET ?
			    "ip addr add 198.51.100.7/24 dev bare0" :
			    "ip addr add 2001:db8:1::7/64 dev bare0 nodad"));
	errno = 0;
	code = outcome(rdma_bind_addr(self->id, sa(&addr)));
	EXPECT_EQ(ENODEV, code);
	expect_reason(RDMA_EP_REASON_NO_DEVICE);
	ASSERT_EQ(0, system("ip link del bare0"));
}

TEST_F(bind_addr, error_port_in_use)
{
	struct sockaddr_storage addr = my_addr(variant->family, 7471);

	ok(rdma_bind_addr(self->id, sa(&addr)));
	err(EADDRINUSE, rdma_bind_addr(self->other, sa(&addr)));
	expect_reason(RDMA_EP_REASON_ADDR_IN_USE);

	/* It is free again when its owner goes. */
	ok(rdma_destroy_id(self->id));
	self->id = NULL;
	ok(rdma_bind_addr(self->other, sa(&addr)));
}

/* librdmacm says that the address is not available, which it is. */
TEST_F(bind_addr, error_wildcard_against_specific)
{
	struct sockaddr_storage specific = my_addr(variant->family, 7471);
	struct sockaddr_storage any = wildcard(variant->family, 7471);

	ok(rdma_bind_addr(self->id, sa(&specific)));
	err_or_stock(EADDRINUSE, EADDRNOTAVAIL,
		     rdma_bind_addr(self->other, sa(&any)));
	expect_reason(RDMA_EP_REASON_ADDR_IN_USE);
}

TEST_F(bind_addr, error_specific_against_wildcard)
{
	struct sockaddr_storage specific = my_addr(variant->family, 7471);
	struct sockaddr_storage any = wildcard(variant->family, 7471);

	ok(rdma_bind_addr(self->id, sa(&any)));
	err_or_stock(EADDRINUSE, EADDRNOTAVAIL,
		     rdma_bind_addr(self->other, sa(&specific)));
	expect_reason(RDMA_EP_REASON_ADDR_IN_USE);
}

/*
 * A kernel user of rdma_cm: the NVMe target listens on an address and port
 * that are told to it.
 */
static int nvme_target(int family, int port, bool up)
{
	char command[1024];

	if (up)
		snprintf(command, sizeof(command),
			 "set -e; modprobe nvmet-rdma;"
			 "mountpoint -q /sys/kernel/config ||"
			 "  mount -t configfs none /sys/kernel/config;"
			 "cd /sys/kernel/config/nvmet; mkdir subsystems/t ports/1;"
			 "echo rdma >ports/1/addr_trtype;"
			 "echo %s >ports/1/addr_adrfam;"
			 "echo %s >ports/1/addr_traddr;"
			 "echo %d >ports/1/addr_trsvcid;"
			 "ln -s \"$PWD/subsystems/t\" ports/1/subsystems/t",
			 family == AF_INET ? "ipv4" : "ipv6", my_ip(family), port);
	else
		snprintf(command, sizeof(command),
			 "cd /sys/kernel/config/nvmet; rm ports/1/subsystems/t;"
			 "rmdir ports/1 subsystems/t; modprobe -r nvmet-rdma");
	return system(command);
}

TEST_F(bind_addr, error_port_in_use_by_kernel)
{
	struct sockaddr_storage addr = my_addr(variant->family, 4420);

	if (system("modprobe -qn nvmet-rdma"))
		SKIP(return, "this kernel has no nvmet-rdma");
	ASSERT_EQ(0, nvme_target(variant->family, 4420, true));
	err(EADDRINUSE, rdma_bind_addr(self->id, sa(&addr)));
	expect_reason(RDMA_EP_REASON_ADDR_IN_USE);
	ASSERT_EQ(0, nvme_target(variant->family, 4420, false));
	ok(rdma_bind_addr(self->id, sa(&addr)));
}

TEST_F(bind_addr, error_unknown_family)
{
	struct sockaddr_storage addr = { .ss_family = AF_UNIX };

	err(EINVAL, rdma_bind_addr(self->id, sa(&addr)));
	addr.ss_family = AF_UNSPEC;
	err(EINVAL, rdma_bind_addr(self->id, sa(&addr)));
	expect_reason(RDMA_EP_REASON_ADDR_FORMAT);
}

/* The length is in a struct rdma_addrinfo only. */
TEST_F(bind_addr, error_address_too_short)
{
	struct sockaddr_storage addr = my_addr(variant->family, 7471);
	struct rdma_addrinfo res = {
		.ai_flags = RAI_PASSIVE,
		.ai_family = variant->family,
		.ai_qp_type = IBV_QPT_RC,
		.ai_port_space = RDMA_PS_TCP,
		.ai_src_addr = sa(&addr),
		.ai_src_len = sa_len(&addr) - 1,
	};
	struct rdma_cm_id *id;

	err(EINVAL, rdma_create_ep(&id, &res, NULL, NULL));
	expect_reason(RDMA_EP_REASON_ADDR_FORMAT);
}

TEST_F(bind_addr, error_bound_twice)
{
	struct sockaddr_storage addr = my_addr(variant->family, 7471);

	ok(rdma_bind_addr(self->id, sa(&addr)));
	err(EINVAL, rdma_bind_addr(self->id, sa(&addr)));
	addr = my_addr(variant->family, 7472);
	err(EINVAL, rdma_bind_addr(self->id, sa(&addr)));
	expect_reason(RDMA_EP_REASON_STATE);
	EXPECT_EQ(7471, src_port(self->id));
}

static int drop_capability(int cap)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		return -1;
	data[cap / 32].effective &= ~(1u << cap % 32);
	return syscall(SYS_capset, &header, data);
}

/*
 * Without the fixture: rdma_ucm refuses the fd of a channel that was opened
 * with more capabilities than the caller has now.
 */
static void privileged_port(struct __test_metadata *_metadata, int family)
{
	struct sockaddr_storage addr = my_addr(family, 80);
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;

	channel = rdma_create_event_channel();
	ASSERT_NE(NULL, channel);
	ok(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	err(EACCES, rdma_bind_addr(id, sa(&addr)));
	expect_reason(RDMA_EP_REASON_ADDR_PRIVILEGED);
	addr = my_addr(family, 1024);
	ok(rdma_bind_addr(id, sa(&addr)));
	ok(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

TEST(error_privileged_port)
{
	ASSERT_EQ(0, drop_capability(CAP_NET_BIND_SERVICE));
	privileged_port(_metadata, AF_INET);
	privileged_port(_metadata, AF_INET6);
}

TEST_F(bind_addr, privileged_port_with_capability)
{
	struct sockaddr_storage addr = my_addr(variant->family, 80);

	ok(rdma_bind_addr(self->id, sa(&addr)));
}

TEST_F(bind_addr, error_link_local_without_scope)
{
	struct sockaddr_in6 *sin6;
	struct sockaddr_storage addr;

	if (variant->family != AF_INET6)
		return;
	ASSERT_TRUE(link_local(&addr, 7471));
	sin6 = (struct sockaddr_in6 *)&addr;
	sin6->sin6_scope_id = 0;
	err(EINVAL, rdma_bind_addr(self->id, sa(&addr)));
	expect_reason(RDMA_EP_REASON_ADDR_SCOPE);

	/* With one it works, and the scope is kept. */
	ASSERT_TRUE(link_local(&addr, 7471));
	ok(rdma_bind_addr(self->other, sa(&addr)));
	EXPECT_NE(NULL, self->other->verbs);
	EXPECT_EQ(sin6->sin6_scope_id, ((struct sockaddr_in6 *)
		  rdma_get_local_addr(self->other))->sin6_scope_id);
}

TEST_F(bind_addr, error_listening)
{
	struct sockaddr_storage addr = my_addr(variant->family, 7471);

	ok(rdma_bind_addr(self->id, sa(&addr)));
	ok(rdma_listen(self->id, 1));
	err(EINVAL, rdma_bind_addr(self->id, sa(&addr)));
}

TEST_HARNESS_MAIN
