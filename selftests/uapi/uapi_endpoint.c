// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Endpoints before they connect: handles and serial numbers, limits, binding,
 * listening, resolving, and what the queries say of them.
 */
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "rdma_ep_utils.h"

#define QPT_RC	2
#define QPT_UD	4

#define PARAMETER	"/sys/module/rdma_ep/parameters/"

static long get_parameter(const char *path)
{
	FILE *f = fopen(path, "r");
	long val = -1;

	if (f) {
		if (fscanf(f, "%ld", &val) != 1)
			val = -1;
		fclose(f);
	}
	return val;
}

static int set_parameter(const char *path, long val)
{
	FILE *f = fopen(path, "w");

	if (!f)
		return -1;
	fprintf(f, "%ld", val);
	return fclose(f);
}

FIXTURE(endpoint)
{
	struct test_ctx ctx;
	int fd;
	long max_endpoints;
	long max_user_ids;
};

FIXTURE_SETUP(endpoint)
{
	ctx_open(_metadata, &self->ctx);
	self->fd = self->ctx.fd;
	self->max_endpoints = get_parameter(PARAMETER "max_endpoints");
	self->max_user_ids = get_parameter(PARAMETER "max_user_ids");
	ASSERT_LT(0, self->max_endpoints);
	ASSERT_LT(0, self->max_user_ids);
}

FIXTURE_TEARDOWN(endpoint)
{
	EXPECT_EQ(0, set_parameter(PARAMETER "max_endpoints", self->max_endpoints));
	EXPECT_EQ(0, set_parameter(PARAMETER "max_user_ids", self->max_user_ids));
	ctx_close(_metadata, &self->ctx);
}

static int try_destroy_many(int fd, uint32_t flags, const uint32_t *eps,
			    uint32_t count, struct rdma_ep_destroy_many *cmd)
{
	*cmd = (struct rdma_ep_destroy_many){
		.hdr = EP_HDR(*cmd, flags),
		.eps_uptr = UPTR(eps),
		.count = count,
	};
	return ep_ioctl(fd, RDMA_EP_DESTROY_MANY, cmd);
}

/* Handles that name nothing, or are there twice, are passed over */
TEST_F(endpoint, destroy_many)
{
	struct rdma_ep_destroy_many cmd;
	uint32_t ep[300];
	int i;

	for (i = 0; i < 300; i++)
		do_ok(try_create(self->fd, PS_TCP, -1, 0, &ep[i]));
	do_ok(try_write_event(self->fd, ep[7], 0, 1));
	do_ok(try_write_event(self->fd, ep[8], 0, 1));
	ep[0] = 0;
	ep[1] = ep[2];
	do_ok(try_destroy_many(self->fd, 0, ep, 300, &cmd));
	EXPECT_EQ(298, cmd.out_destroyed);
	EXPECT_EQ(2, cmd.out_discarded);
	EXPECT_EQ(2, count_endpoints(_metadata, self->fd));
	do_ok(try_destroy_many(self->fd, 0, ep, 300, &cmd));
	EXPECT_EQ(0, cmd.out_destroyed);
	do_ok(try_destroy_many(self->fd, 0, NULL, 0, &cmd));
	do_err(EINVAL, VALUE, try_destroy_many(self->fd, 0, ep, RDMA_EP_DESTROY_MAX + 1, &cmd));
	EXPECT_EQ(0, cmd.out_destroyed);
}

TEST_F(endpoint, destroy_many_without_waiting)
{
	uint64_t until = now_ms() + 20000 * slow();
	struct rdma_ep_destroy_many cmd;
	struct rdma_ep_record rec;
	uint32_t ep[100];
	int i;

	for (i = 0; i < 100; i++)
		do_ok(try_create(self->fd, PS_TCP, -1, 0, &ep[i]));
	do_ok(try_destroy_many(self->fd, RDMA_EP_DESTROY_NOWAIT, ep, 100, &cmd));
	EXPECT_EQ(100, cmd.out_destroyed);
	for (i = 0; i < 100; i++)
		do_err(ENOENT, HANDLE,
		       try_query(self->fd, ep[i], RDMA_EP_REC_INFO, &rec));
	while (count_endpoints(_metadata, self->fd) && now_ms() < until)
		usleep(10000);
	EXPECT_EQ(0, count_endpoints(_metadata, self->fd));
}

/* Half of the handles can be read: the rest stays as it is */
TEST_F(endpoint, destroy_many_at_a_bad_address)
{
	long page = sysconf(_SC_PAGESIZE);
	struct rdma_ep_destroy_many cmd;
	uint32_t *eps;
	char *mem;

	mem = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, mem);
	ASSERT_EQ(0, munmap(mem + page, page));
	eps = (uint32_t *)(mem + page) - 2;
	do_ok(try_create(self->fd, PS_TCP, -1, 0, &eps[0]));
	do_ok(try_create(self->fd, PS_TCP, -1, 0, &eps[1]));
	EXPECT_EQ(-EFAULT, try_destroy_many(self->fd, 0, eps, 3, &cmd));
	EXPECT_EQ(0, count_endpoints(_metadata, self->fd));
	munmap(mem, page);
}

TEST_F(endpoint, create_and_destroy)
{
	const struct {
		uint32_t ps;
		uint32_t qp_type;
	} good[] = {
		{ PS_TCP, 0 }, { PS_TCP, QPT_RC }, { PS_UDP, 0 },
		{ PS_UDP, QPT_UD }, { PS_IPOIB, 0 }, { PS_IPOIB, QPT_UD },
		{ PS_IB, QPT_RC }, { PS_IB, QPT_UD },
	};
	uint32_t ep[ARRAY_SIZE(good)];
	uint64_t serial[ARRAY_SIZE(good)];
	struct rdma_ep_record rec;
	size_t i, j;

	for (i = 0; i < ARRAY_SIZE(good); i++) {
		struct rdma_ep_create cmd = {
			.hdr = EP_HDR(cmd, 0),
			.port_space = good[i].ps,
			.qp_type = good[i].qp_type,
			.channel = -1,
		};

		do_ok(ep_ioctl(self->fd, RDMA_EP_CREATE, &cmd));
		ep[i] = cmd.out_ep;
		serial[i] = cmd.out_serial;
		EXPECT_NE(0, ep[i]);
		EXPECT_EQ(-1, cmd.channel);
		for (j = 0; j < i; j++) {
			EXPECT_NE(ep[j], ep[i]);
			EXPECT_NE(serial[j], serial[i]);
		}
		EXPECT_EQ(i + 1, count_endpoints(_metadata, self->fd));
	}
	for (i = 0; i < ARRAY_SIZE(good); i++) {
		do_ok(try_query(self->fd, ep[i], RDMA_EP_REC_INFO, &rec));
		EXPECT_GOOD_RECORD(&rec);
		EXPECT_EVENT(NONE, &rec);
		EXPECT_EQ(ep[i], rec.ep);
		EXPECT_EQ(serial[i], rec.serial);
		EXPECT_EQ(RDMA_EP_STATE_IDLE, rec.info.state);
		EXPECT_EQ(RDMA_EP_TRANSPORT_NONE, rec.info.transport);
		do_ok(try_destroy(self->fd, ep[i]));
		do_err(ENOENT, HANDLE, try_destroy(self->fd, ep[i]));
		do_err(ENOENT, HANDLE, try_query(self->fd, ep[i],
						 RDMA_EP_REC_INFO, &rec));
	}
	EXPECT_EQ(0, count_endpoints(_metadata, self->fd));
}

TEST_F(endpoint, create_errors)
{
	struct rdma_ep_create cmd = { .hdr = EP_HDR(cmd, 0), .channel = -1 };
	const uint32_t unknown[] = { 0, 1, 0x0107, 0xffff, UINT32_MAX };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(unknown); i++) {
		cmd.port_space = unknown[i];
		do_err(EOPNOTSUPP, VALUE,
		       ep_ioctl(self->fd, RDMA_EP_CREATE, &cmd));
	}
	/* a type that the port space does not have */
	cmd.port_space = PS_TCP;
	cmd.qp_type = QPT_UD;
	do_err(EINVAL, VALUE, ep_ioctl(self->fd, RDMA_EP_CREATE, &cmd));
	cmd.port_space = PS_UDP;
	cmd.qp_type = QPT_RC;
	do_err(EINVAL, VALUE, ep_ioctl(self->fd, RDMA_EP_CREATE, &cmd));
	EXPECT_EQ(0, count_endpoints(_metadata, self->fd));
}

/* A serial number names one endpoint for ever, though its handle comes back */
TEST_F(endpoint, serials_are_never_reused)
{
	uint64_t last = 0;
	int i;

	for (i = 0; i < 200; i++) {
		struct rdma_ep_create cmd = {
			.hdr = EP_HDR(cmd, 0),
			.port_space = PS_TCP,
			.channel = -1,
		};

		do_ok(ep_ioctl(self->fd, RDMA_EP_CREATE, &cmd));
		EXPECT_LT(last, cmd.out_serial);
		last = cmd.out_serial;
		do_ok(try_destroy(self->fd, cmd.out_ep));
	}
}

TEST_F(endpoint, cookie_comes_back)
{
	const uint64_t cookie = 0xfedcba9876543210;
	struct rdma_ep_record rec;
	uint32_t ep;

	do_ok(try_create(self->fd, PS_TCP, -1, cookie, &ep));
	do_ok(try_query(self->fd, ep, RDMA_EP_REC_INFO, &rec));
	EXPECT_EQ(cookie, rec.cookie);
	do_ok(try_write_event(self->fd, ep, -7, 0x123456789abcdef0));
	wait_event(_metadata, self->fd, ep, RDMA_EP_EVENT_USER, &rec);
	EXPECT_EQ(cookie, rec.cookie);
	EXPECT_EQ(ep, rec.ep);
	EXPECT_EQ(-7, rec.status);
	EXPECT_EQ(0x123456789abcdef0, rec.arg);
	EXPECT_NE(0, rec.time_ns);
}

TEST_F(endpoint, destroy_counts_what_was_not_read)
{
	struct rdma_ep_destroy cmd = { .hdr = EP_HDR(cmd, 0) };
	int i;

	do_ok(try_create(self->fd, PS_TCP, -1, 0, &cmd.ep));
	for (i = 0; i < 5; i++)
		do_ok(try_write_event(self->fd, cmd.ep, 0, i));
	do_ok(ep_ioctl(self->fd, RDMA_EP_DESTROY, &cmd));
	EXPECT_EQ(5, cmd.out_discarded);
}

TEST_F(endpoint, limit_on_endpoints)
{
	struct rdma_ep_get_info info;
	uint32_t ep[8], other;
	int fd2 = open_ep();
	size_t i;

	ASSERT_LE(0, fd2);
	do_ok(try_get_info(self->fd, &info));
	EXPECT_EQ(self->max_endpoints, info.out_max_endpoints);

	ASSERT_EQ(0, set_parameter(PARAMETER "max_endpoints", ARRAY_SIZE(ep)));
	for (i = 0; i < ARRAY_SIZE(ep); i++)
		EXPECT_EQ(0, try_create(self->fd, PS_TCP, -1, 0, &ep[i]));
	EXPECT_EQ(-ENOSPC, try_create(self->fd, PS_TCP, -1, 0, &other));
	EXPECT_EQ(RDMA_EP_REASON_LIMIT, ep_reason.code);
	/* another context has a limit of its own */
	EXPECT_EQ(0, try_create(fd2, PS_TCP, -1, 0, &other));
	EXPECT_EQ(0, try_destroy(self->fd, ep[3]));
	EXPECT_EQ(0, try_create(self->fd, PS_TCP, -1, 0, &ep[3]));
	EXPECT_EQ(-ENOSPC, try_create(self->fd, PS_TCP, -1, 0, &other));
	EXPECT_EQ(ARRAY_SIZE(ep), count_endpoints(_metadata, self->fd));
	close(fd2);
}

static int end_as_nobody(int code)
{
	uint32_t ep;
	int fd;

	if (setgid(65534) || setuid(65534))
		return 1;
	fd = open_ep();
	return fd < 0 || try_create(fd, PS_TCP, -1, 0, &ep) != code;
}

/* Over all his contexts a user has so many endpoints and groups; others do not count */
TEST_F(endpoint, limit_of_a_user)
{
	union test_addr group = make_addr("239.1.1.5", 0);
	union test_addr host = host_addr(AF_INET, 0);
	uint32_t ep[4], other, joined;
	int fd2 = open_ep();
	size_t i;
	int status;
	pid_t pid;

	ASSERT_LE(0, fd2);
	ASSERT_EQ(0, set_parameter(PARAMETER "max_user_ids", ARRAY_SIZE(ep)));
	for (i = 0; i < ARRAY_SIZE(ep); i++)
		EXPECT_EQ(0, try_create(i % 2 ? fd2 : self->fd, PS_UDP, -1, 0, &ep[i]));
	EXPECT_EQ(-EDQUOT, try_create(self->fd, PS_TCP, -1, 0, &other));
	EXPECT_EQ(RDMA_EP_REASON_LIMIT, ep_reason.code);
	pid = fork();
	if (!pid)
		_exit(end_as_nobody(0));
	EXPECT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);

	/* a group takes the place of an endpoint, until it is left */
	EXPECT_EQ(0, try_bind(self->fd, ep[0], &host, NULL));
	EXPECT_EQ(-EDQUOT, try_join(self->fd, ep[0], 0, &group, 0, &joined));
	EXPECT_EQ(RDMA_EP_REASON_LIMIT, ep_reason.code);
	EXPECT_EQ(0, try_destroy(fd2, ep[1]));
	EXPECT_EQ(0, try_join(self->fd, ep[0], 0, &group, 0, &joined));
	EXPECT_EQ(-EDQUOT, try_create(fd2, PS_TCP, -1, 0, &other));
	EXPECT_EQ(0, try_leave(self->fd, ep[0], joined, NULL));
	EXPECT_EQ(0, try_create(fd2, PS_TCP, -1, 0, &other));

	/* what a context had is free again when it is closed */
	close(fd2);
	EXPECT_EQ(0, try_create(self->fd, PS_TCP, -1, 0, &other));
	EXPECT_EQ(0, try_create(self->fd, PS_TCP, -1, 0, &other));
	EXPECT_EQ(-EDQUOT, try_create(self->fd, PS_TCP, -1, 0, &other));
}

TEST_F(endpoint, query_parts)
{
	struct rdma_ep_query cmd = { .hdr = EP_HDR(cmd, 0) };
	union test_addr dst = host_addr(AF_INET, 7);
	struct rdma_ep_record rec;
	uint32_t ep, bit;

	do_ok(try_create(self->fd, PS_TCP, -1, 0, &ep));
	for (bit = 0; bit < 32; bit++) {
		if ((1U << bit) & (RDMA_EP_REC_INFO | RDMA_EP_REC_INIT |
				   RDMA_EP_REC_RTR | RDMA_EP_REC_RTS))
			continue;
		do_err(EOPNOTSUPP, STRUCT,
		       try_query(self->fd, ep, 1U << bit, &rec));
	}
	/* not bound to a device: no attributes */
	do_err(EINVAL, STATE, try_query(self->fd, ep, RDMA_EP_REC_INIT, &rec));
	do_err(EINVAL, STATE, try_query(self->fd, ep, RDMA_EP_REC_INFO |
					RDMA_EP_REC_INIT, &rec));
	do_ok(try_destroy(self->fd, ep));

	do_ok(try_create_ep(self->fd, 0, PS_TCP, NULL, &dst, NULL, &ep));
	memset(&rec, 0, sizeof(rec));
	do_ok(try_query(self->fd, ep, RDMA_EP_REC_INIT, &rec));
	EXPECT_GOOD_RECORD(&rec);
	EXPECT_EQ(RDMA_EP_REC_INIT, rec.flags);
	EXPECT_EQ(1, rec.attr[RDMA_EP_ATTR_INIT].qp_state);
	EXPECT_NE(0, rec.attr[RDMA_EP_ATTR_INIT].qp_attr_mask);
	EXPECT_EQ(1, rec.attr[RDMA_EP_ATTR_INIT].port_num);
	/* and no way to RTR without a peer */
	EXPECT_GT(0, try_query(self->fd, ep, RDMA_EP_REC_RTR, &rec));
	EXPECT_GT(0, try_query(self->fd, ep, RDMA_EP_REC_INFO |
			       RDMA_EP_REC_RTS, &rec));
}

/*
 * Binding, IPv4 and IPv6
 */

FIXTURE(bind)
{
	struct test_ctx ctx;
	int fd;
	uint32_t ep;
	struct rdma_ep_record rec;
};

FIXTURE_VARIANT(bind)
{
	int family;
	const char *elsewhere;		/* an address nobody here has */
};

FIXTURE_VARIANT_ADD(bind, ipv4)
{
	.family = AF_INET,
	.elsewhere = "198.51.100.7",
};

FIXTURE_VARIANT_ADD(bind, ipv6)
{
	.family = AF_INET6,
	.elsewhere = "2001:db8::7",
};

FIXTURE_SETUP(bind)
{
	ctx_open(_metadata, &self->ctx);
	self->fd = self->ctx.fd;
	do_ok(try_create(self->fd, PS_TCP, -1, 0, &self->ep));
}

FIXTURE_TEARDOWN(bind)
{
	ctx_close(_metadata, &self->ctx);
}

/* After a bind that failed, another one can succeed */
static void still_idle(struct __test_metadata *_metadata,
		       FIXTURE_DATA(bind) *self, int family)
{
	union test_addr addr = host_addr(family, 0);

	EXPECT_EQ(RDMA_EP_STATE_IDLE, ep_state(_metadata, self->fd, self->ep));
	do_ok(try_bind(self->fd, self->ep, &addr, &self->rec));
	EXPECT_EQ(RDMA_EP_STATE_BOUND, self->rec.info.state);
}

TEST_F(bind, specific_address_is_a_device)
{
	union test_addr addr = host_addr(variant->family, 0), src;
	struct rdma_ep_record again;
	struct rdma_ep_info *info = &self->rec.info;

	do_ok(try_bind(self->fd, self->ep, &addr, &self->rec));
	EXPECT_GOOD_RECORD(&self->rec);
	EXPECT_EVENT(NONE, &self->rec);
	ASSERT_EQ(RDMA_EP_REC_INFO | RDMA_EP_REC_INIT, self->rec.flags);
	EXPECT_EQ(RDMA_EP_STATE_BOUND, info->state);
	EXPECT_EQ(RDMA_EP_TRANSPORT_ROCE, info->transport);
	EXPECT_EQ(1, info->port_num);
	EXPECT_FALSE(is_filled(info->sgid, sizeof(info->sgid), 0));
	EXPECT_TRUE(is_filled(info->dgid, sizeof(info->dgid), 0));
	EXPECT_NE(0, info->node_guid);
	EXPECT_EQ(if_nametoindex(host_netdev()), info->ifindex);
	EXPECT_EQ(RC_CONNECT_DATA, info->max_connect_data);
	EXPECT_EQ(RC_ACCEPT_DATA, info->max_accept_data);
	EXPECT_EQ(RC_REJECT_DATA, info->max_reject_data);
	EXPECT_EQ(0, info->num_paths);
	EXPECT_EQ(0, info->dst.len);

	src = from_ep_addr(&info->src);
	EXPECT_EQ(addr_len(&addr), info->src.len);
	EXPECT_NE(0, addr_port(&src));
	if (variant->family == AF_INET) {
		EXPECT_EQ(addr.sin.sin_addr.s_addr, src.sin.sin_addr.s_addr);
	} else {
		EXPECT_EQ(0, memcmp(&addr.sin6.sin6_addr, &src.sin6.sin6_addr,
				    sizeof(src.sin6.sin6_addr)));
	}
	/* its service id is that of RDMA_PS_TCP and the port */
	EXPECT_EQ((0x0000000001060000ULL | addr_port(&src)),
		  be64toh(info->src_sid));

	do_ok(try_query(self->fd, self->ep, RDMA_EP_REC_INFO |
			RDMA_EP_REC_INIT, &again));
	EXPECT_EQ(0, memcmp(&again.info, info, sizeof(*info)));
	EXPECT_EQ(0, memcmp(&again.attr[0], &self->rec.attr[0],
			    sizeof(again.attr[0])));
}

TEST_F(bind, wildcard_is_no_device)
{
	union test_addr addr = any_addr(variant->family, 0), src;
	struct rdma_ep_info *info = &self->rec.info;

	do_ok(try_bind(self->fd, self->ep, &addr, &self->rec));
	EXPECT_GOOD_RECORD(&self->rec);
	ASSERT_EQ(RDMA_EP_REC_INFO, self->rec.flags);
	EXPECT_EQ(RDMA_EP_STATE_BOUND, info->state);
	EXPECT_EQ(RDMA_EP_TRANSPORT_NONE, info->transport);
	EXPECT_EQ(0, info->port_num);
	EXPECT_EQ(0, info->node_guid);
	EXPECT_TRUE(is_filled(info->sgid, sizeof(info->sgid), 0));
	src = from_ep_addr(&info->src);
	EXPECT_EQ(variant->family, src.sa.sa_family);
	EXPECT_NE(0, addr_port(&src));
}

TEST_F(bind, without_record)
{
	union test_addr addr = host_addr(variant->family, 0);

	do_ok(try_bind(self->fd, self->ep, &addr, NULL));
}

TEST_F(bind, port_0_picks_different_ports)
{
	uint16_t ports[32];
	size_t i, j;

	for (i = 0; i < ARRAY_SIZE(ports); i++) {
		union test_addr addr = i % 2 ?
			any_addr(variant->family, 0) :
			host_addr(variant->family, 0);
		uint32_t ep;

		do_ok(try_create(self->fd, PS_TCP, -1, 0, &ep));
		do_ok(try_bind(self->fd, ep, &addr, &self->rec));
		addr = from_ep_addr(&self->rec.info.src);
		ports[i] = addr_port(&addr);
		EXPECT_NE(0, ports[i]);
		for (j = 0; j < i; j++)
			EXPECT_NE(ports[j], ports[i]);
	}
}

TEST_F(bind, chosen_port)
{
	union test_addr addr = host_addr(variant->family, 0), src;
	uint16_t port;

	/* a port that is surely free: one that was just picked, and given back */
	do_ok(try_bind(self->fd, self->ep, &addr, &self->rec));
	src = from_ep_addr(&self->rec.info.src);
	port = addr_port(&src);
	do_ok(try_destroy(self->fd, self->ep));

	addr = host_addr(variant->family, port);
	do_ok(try_create(self->fd, PS_TCP, -1, 0, &self->ep));
	do_ok(try_bind(self->fd, self->ep, &addr, &self->rec));
	src = from_ep_addr(&self->rec.info.src);
	EXPECT_EQ(port, addr_port(&src));
}

TEST_F(bind, not_local)
{
	union test_addr addr = make_addr(variant->elsewhere, 0);

	do_err(EADDRNOTAVAIL, ADDR_NOT_LOCAL,
	       try_bind(self->fd, self->ep, &addr, NULL));
	still_idle(_metadata, self, variant->family);
}

TEST_F(bind, no_device)
{
	bool v6 = variant->family == AF_INET6;
	union test_addr addr = make_addr(v6 ? "fd79::1" : "10.79.0.1", 0);

	/* a netdev without an RDMA device on it */
	ASSERT_EQ(0, system("ip link add plain0 type dummy && "
			    "ip link set plain0 up && "
			    "ip addr add 10.79.0.1/24 dev plain0 && "
			    "ip addr add fd79::1/64 dev plain0 nodad"));
	do_err(ENODEV, NO_DEVICE, try_bind(self->fd, self->ep, &addr, NULL));
	/* the text says which */
	EXPECT_NE(NULL, strstr(ep_reason.text, "plain0"))
		TH_LOG("%s", ep_reason.text);
	EXPECT_EQ(0, system("ip link delete plain0"));
	still_idle(_metadata, self, variant->family);
}

/* To rdma_cm the loopback address is a wildcard that stays on this machine */
TEST_F(bind, loopback)
{
	union test_addr addr = make_addr(variant->family == AF_INET6 ?
					 "::1" : "127.0.0.1", 0);

	do_ok(try_bind(self->fd, self->ep, &addr, &self->rec));
	EXPECT_EQ(RDMA_EP_TRANSPORT_NONE, self->rec.info.transport);
}

TEST_F(bind, unknown_family)
{
	struct rdma_ep_bind cmd = {
		.hdr = EP_HDR(cmd, 0),
		.ep = self->ep,
		.addr.len = sizeof(struct sockaddr_in),
	};
	const uint16_t families[] = { AF_UNSPEC, AF_UNIX, AF_PACKET, 0xffff };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(families); i++) {
		memcpy(cmd.addr.sa, &families[i], sizeof(families[i]));
		do_err(EINVAL, ADDR_FORMAT,
		       ep_ioctl(self->fd, RDMA_EP_BIND, &cmd));
	}
	still_idle(_metadata, self, variant->family);
}

TEST_F(bind, address_too_short)
{
	union test_addr addr = host_addr(variant->family, 0);
	struct rdma_ep_bind cmd = {
		.hdr = EP_HDR(cmd, 0),
		.ep = self->ep,
	};
	uint16_t len;

	for (len = 0; len < addr_len(&addr); len++) {
		cmd.addr = (struct rdma_ep_addr){ .len = len };
		memcpy(cmd.addr.sa, &addr, len);
		do_err(EINVAL, ADDR_FORMAT,
		       ep_ioctl(self->fd, RDMA_EP_BIND, &cmd));
	}
	still_idle(_metadata, self, variant->family);
}

TEST_F(bind, twice)
{
	union test_addr addr = host_addr(variant->family, 0);
	union test_addr any = any_addr(variant->family, 0);

	do_ok(try_bind(self->fd, self->ep, &addr, NULL));
	do_err(EINVAL, STATE, try_bind(self->fd, self->ep, &addr, NULL));
	do_err(EINVAL, STATE, try_bind(self->fd, self->ep, &any, NULL));
	EXPECT_EQ(RDMA_EP_STATE_BOUND, ep_state(_metadata, self->fd, self->ep));
}

/* Wildcard or not, here or there: the port is taken, and EADDRINUSE says so */
TEST_F(bind, port_in_use)
{
	union test_addr host = host_addr(variant->family, 0);
	union test_addr addr[2];
	uint16_t port;
	int first, second;

	for (first = 0; first < 2; first++) {
		do_ok(try_bind(self->fd, self->ep, first ? &host :
			       (union test_addr[]){ any_addr(variant->family, 0) },
			       &self->rec));
		addr[0] = from_ep_addr(&self->rec.info.src);
		port = addr_port(&addr[0]);
		addr[0] = any_addr(variant->family, port);
		addr[1] = host_addr(variant->family, port);
		for (second = 0; second < 2; second++) {
			uint32_t ep;

			do_ok(try_create(self->fd, PS_TCP, -1, 0, &ep));
			do_err(EADDRINUSE, ADDR_IN_USE,
			       try_bind(self->fd, ep, &addr[second], NULL));
			/* the text says which port */
			EXPECT_NE(NULL, strpbrk(ep_reason.text, "0123456789"));
			/* another port space has ports of its own */
			do_ok(try_destroy(self->fd, ep));
			do_ok(try_create(self->fd, PS_UDP, -1, 0, &ep));
			do_ok(try_bind(self->fd, ep, &addr[second], NULL));
			do_ok(try_destroy(self->fd, ep));
		}
		do_ok(try_destroy(self->fd, self->ep));
		/* given back with the endpoint */
		do_ok(try_create(self->fd, PS_TCP, -1, 0, &self->ep));
		do_ok(try_bind(self->fd, self->ep, &addr[first], NULL));
		do_ok(try_destroy(self->fd, self->ep));
		do_ok(try_create(self->fd, PS_TCP, -1, 0, &self->ep));
	}
}

/* A process that may not bind to privileged ports is told which right it lacks */
TEST_F(bind, privileged_port)
{
	union test_addr addr = host_addr(variant->family, 1);
	uint16_t port;
	int status;
	pid_t pid;

	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		struct __user_cap_header_struct hdr = {
			.version = _LINUX_CAPABILITY_VERSION_3,
		};
		struct __user_cap_data_struct data[2];

		if (syscall(SYS_capget, &hdr, data))
			_exit(10);
		data[0].effective &= ~(1U << CAP_NET_BIND_SERVICE);
		data[0].permitted &= ~(1U << CAP_NET_BIND_SERVICE);
		if (syscall(SYS_capset, &hdr, data))
			_exit(11);
		if (try_bind(self->fd, self->ep, &addr, NULL) != -EACCES)
			_exit(12);
		if (ep_reason.code != RDMA_EP_REASON_ADDR_PRIVILEGED)
			_exit(13);
		addr = host_addr(variant->family, 0);
		if (try_bind(self->fd, self->ep, &addr, NULL))
			_exit(14);
		_exit(0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_TRUE(WIFEXITED(status));
	EXPECT_EQ(0, WEXITSTATUS(status));

	/* with the right, some privileged port can be had */
	do_ok(try_destroy(self->fd, self->ep));
	do_ok(try_create(self->fd, PS_TCP, -1, 0, &self->ep));
	for (port = 1; port < 1024; port++) {
		int ret;

		addr = host_addr(variant->family, port);
		ret = try_bind(self->fd, self->ep, &addr, NULL);
		if (!ret)
			break;
		ASSERT_EQ(-EADDRINUSE, ret);
	}
	EXPECT_GT(1024, port);
}

TEST_F(bind, link_local)
{
	union test_addr addr, src;

	if (variant->family != AF_INET6)
		return;
	ASSERT_TRUE(link_local_addr(&addr));
	addr.sin6.sin6_scope_id = 0;
	do_err(EINVAL, ADDR_SCOPE, try_bind(self->fd, self->ep, &addr, NULL));
	ASSERT_TRUE(link_local_addr(&addr));
	ASSERT_NE(0, addr.sin6.sin6_scope_id);
	do_ok(try_bind(self->fd, self->ep, &addr, &self->rec));
	EXPECT_EQ(1, self->rec.info.port_num);
	src = from_ep_addr(&self->rec.info.src);
	EXPECT_EQ(addr.sin6.sin6_scope_id, src.sin6.sin6_scope_id);
}

/* A wildcard of IPv6 takes IPv4 too, unless AFONLY is set on both */
TEST_F(bind, both_families)
{
	const uint32_t on = 1;
	union test_addr addr = any_addr(AF_INET6, 0);
	uint16_t port;
	uint32_t ep;

	do_ok(try_set_option(self->fd, self->ep, RDMA_EP_OPT_AFONLY, &on,
			     sizeof(on)));
	do_ok(try_bind(self->fd, self->ep, &addr, &self->rec));
	addr = from_ep_addr(&self->rec.info.src);
	port = addr_port(&addr);
	addr = any_addr(AF_INET, port);
	do_ok(try_create(self->fd, PS_TCP, -1, 0, &ep));
	do_ok(try_set_option(self->fd, ep, RDMA_EP_OPT_AFONLY, &on,
			     sizeof(on)));
	do_ok(try_bind(self->fd, ep, &addr, NULL));
}

TEST_F(bind, shared_port)
{
	const uint32_t on = 1;
	union test_addr addr = host_addr(variant->family, 0);
	uint32_t second;

	do_ok(try_set_option(self->fd, self->ep, RDMA_EP_OPT_REUSEADDR, &on,
			     sizeof(on)));
	do_ok(try_bind(self->fd, self->ep, &addr, &self->rec));
	addr = from_ep_addr(&self->rec.info.src);
	do_ok(try_create(self->fd, PS_TCP, -1, 0, &second));
	do_ok(try_set_option(self->fd, second, RDMA_EP_OPT_REUSEADDR, &on,
			     sizeof(on)));
	do_ok(try_bind(self->fd, second, &addr, NULL));
	/* but only one may listen, and only while it is alone */
	EXPECT_EQ(-EADDRINUSE, try_listen(self->fd, second, 0, NULL));
	EXPECT_EQ(RDMA_EP_STATE_BOUND, ep_state(_metadata, self->fd, second));
	do_ok(try_destroy(self->fd, self->ep));
	do_ok(try_listen(self->fd, second, 0, NULL));
}

/*
 * Listening
 */

TEST_F(bind, listen)
{
	union test_addr addr = host_addr(variant->family, 0);
	struct rdma_ep_get_info info;

	do_ok(try_get_info(self->fd, &info));
	do_ok(try_bind(self->fd, self->ep, &addr, NULL));
	do_ok(try_listen(self->fd, self->ep, 5, &self->rec));
	EXPECT_GOOD_RECORD(&self->rec);
	EXPECT_EQ(RDMA_EP_STATE_LISTENING, self->rec.info.state);
	EXPECT_EQ(5, self->rec.info.backlog);
	EXPECT_EQ(0, self->rec.info.requests);
	EXPECT_EQ(0, self->rec.info.overflows);

	do_err(EINVAL, STATE, try_listen(self->fd, self->ep, 5, NULL));
	do_err(EINVAL, STATE, try_bind(self->fd, self->ep, &addr, NULL));
	do_err(EINVAL, STATE, try_resolve_addr(self->fd, self->ep, 0, NULL,
					       &addr, RESOLVE_MS, NULL));
}

TEST_F(bind, listen_backlog)
{
	const uint32_t backlogs[] = { 0, UINT32_MAX, 0x80000000 };
	union test_addr addr = any_addr(variant->family, 0);
	struct rdma_ep_get_info info;
	size_t i;

	do_ok(try_get_info(self->fd, &info));
	for (i = 0; i < ARRAY_SIZE(backlogs); i++) {
		uint32_t ep;

		do_ok(try_create(self->fd, PS_TCP, -1, 0, &ep));
		do_ok(try_bind(self->fd, ep, &addr, NULL));
		do_ok(try_listen(self->fd, ep, backlogs[i], &self->rec));
		EXPECT_EQ(info.out_max_backlog, self->rec.info.backlog);
	}
}

TEST_F(bind, listen_without_bind)
{
	union test_addr src;

	do_ok(try_listen(self->fd, self->ep, 0, &self->rec));
	src = from_ep_addr(&self->rec.info.src);
	EXPECT_NE(0, addr_port(&src));
	EXPECT_EQ(RDMA_EP_STATE_LISTENING, self->rec.info.state);
	EXPECT_EQ(RDMA_EP_TRANSPORT_NONE, self->rec.info.transport);
}

TEST_F(bind, create_ep_passive)
{
	union test_addr addr = host_addr(variant->family, 0), src;
	uint32_t ep, other;

	do_ok(try_create_ep(self->fd, RDMA_EP_CREATE_EP_PASSIVE, PS_TCP, &addr,
			    NULL, &self->rec, &ep));
	EXPECT_GOOD_RECORD(&self->rec);
	EXPECT_EQ(RDMA_EP_REC_INFO | RDMA_EP_REC_INIT, self->rec.flags);
	EXPECT_EQ(RDMA_EP_STATE_BOUND, self->rec.info.state);
	src = from_ep_addr(&self->rec.info.src);
	do_ok(try_listen(self->fd, ep, 0, NULL));

	/* each failure leaves nothing behind */
	do_err(EADDRINUSE, ADDR_IN_USE,
	       try_create_ep(self->fd, RDMA_EP_CREATE_EP_PASSIVE, PS_TCP, &src,
			     NULL, NULL, &other));
	do_err(EINVAL, ADDR_FORMAT,
	       try_create_ep(self->fd, RDMA_EP_CREATE_EP_PASSIVE, PS_TCP, NULL,
			     NULL, NULL, &other));
	addr = make_addr(variant->elsewhere, 0);
	do_err(EADDRNOTAVAIL, ADDR_NOT_LOCAL,
	       try_create_ep(self->fd, RDMA_EP_CREATE_EP_PASSIVE, PS_TCP, &addr,
			     NULL, NULL, &other));
	EXPECT_EQ(2, count_endpoints(_metadata, self->fd));
}

/*
 * Resolving
 */

TEST_F(bind, create_ep_active)
{
	union test_addr dst = host_addr(variant->family, 4711), src;
	struct rdma_ep_info *info = &self->rec.info;
	uint32_t ep;

	do_ok(try_create_ep(self->fd, 0, PS_TCP, NULL, &dst, &self->rec, &ep));
	EXPECT_GOOD_RECORD(&self->rec);
	EXPECT_EVENT(NONE, &self->rec);
	ASSERT_EQ(RDMA_EP_REC_INFO | RDMA_EP_REC_INIT, self->rec.flags);
	EXPECT_EQ(RDMA_EP_STATE_ROUTE_RESOLVED, info->state);
	EXPECT_EQ(1, info->port_num);
	EXPECT_EQ(1, info->num_paths);
	EXPECT_EQ(0, memcmp(info->path[0].sgid, info->sgid, 16));
	EXPECT_EQ(0, memcmp(info->path[0].dgid, info->dgid, 16));
	EXPECT_TRUE(is_filled(&info->path[1], sizeof(info->path[1]), 0));
	EXPECT_EQ(0xffff, ntohs(info->path[0].pkey));
	EXPECT_EQ(0, memcmp(info->dst.sa, &dst, info->dst.len));
	src = from_ep_addr(&info->src);
	EXPECT_NE(0, addr_port(&src));
	EXPECT_EQ((0x0000000001060000ULL | 4711), be64toh(info->dst_sid));
}

TEST_F(bind, create_ep_no_route)
{
	union test_addr dst = host_addr(variant->family, 4711);
	uint32_t ep;

	do_ok(try_create_ep(self->fd, RDMA_EP_CREATE_EP_NO_ROUTE, PS_TCP, NULL,
			    &dst, &self->rec, &ep));
	EXPECT_EQ(RDMA_EP_STATE_ADDR_RESOLVED, self->rec.info.state);
	EXPECT_EQ(0, self->rec.info.num_paths);
	do_ok(try_resolve_route(self->fd, ep, RDMA_EP_F_WAIT, &self->rec));
	EXPECT_EVENT(ROUTE_RESOLVED, &self->rec);
	EXPECT_EQ(0, self->rec.status);
	EXPECT_EQ(RDMA_EP_STATE_ROUTE_RESOLVED, self->rec.info.state);
	EXPECT_EQ(1, self->rec.info.num_paths);
}

/* Begun only: what waits for it resumes */
TEST_F(bind, create_ep_start)
{
	union test_addr dst = host_addr(variant->family, 4711);
	union test_addr nobody = make_addr(variant->elsewhere, 4711);
	uint32_t ep;

	do_err(EINVAL, VALUE,
	       try_create_ep(self->fd, RDMA_EP_CREATE_EP_START |
			     RDMA_EP_CREATE_EP_PASSIVE, PS_TCP, &dst, NULL,
			     NULL, &ep));
	do_err(ENETUNREACH, UNREACHABLE,
	       try_create_ep(self->fd, RDMA_EP_CREATE_EP_START, PS_TCP, NULL,
			     &nobody, NULL, &ep));
	EXPECT_EQ(1, count_endpoints(_metadata, self->fd));

	do_ok(try_create_ep(self->fd, RDMA_EP_CREATE_EP_START, PS_TCP, NULL,
			    &dst, &self->rec, &ep));
	EXPECT_GOOD_RECORD(&self->rec);
	EXPECT_EVENT(NONE, &self->rec);
	do_ok(try_resolve_addr(self->fd, ep, RDMA_EP_F_WAIT | RDMA_EP_F_RESUME |
			       RDMA_EP_RESOLVE_THEN_ROUTE, NULL, &dst,
			       RESOLVE_MS, &self->rec));
	EXPECT_EVENT(ROUTE_RESOLVED, &self->rec);
	EXPECT_EQ(0, self->rec.status);
	EXPECT_EQ(1, self->rec.info.num_paths);

	do_ok(try_create_ep(self->fd, RDMA_EP_CREATE_EP_START |
			    RDMA_EP_CREATE_EP_NO_ROUTE, PS_TCP, NULL,
			    &dst, NULL, &ep));
	wait_event(_metadata, self->fd, ep, RDMA_EP_EVENT_ADDR_RESOLVED,
		   &self->rec);
}

TEST_F(bind, create_ep_unresolvable)
{
	union test_addr dst = make_addr(variant->elsewhere, 4711);
	union test_addr src = host_addr(variant->family, 0);
	uint32_t ep;

	do_err(ENETUNREACH, UNREACHABLE,
	       try_create_ep(self->fd, 0, PS_TCP, NULL, &dst, NULL, &ep));
	do_err(EINVAL, ADDR_FORMAT,
	       try_create_ep(self->fd, 0, PS_TCP, &src, NULL, NULL, &ep));
	/* source and destination of different families */
	dst = host_addr(variant->family == AF_INET ? AF_INET6 : AF_INET, 1);
	EXPECT_EQ(-EINVAL, try_create_ep(self->fd, 0, PS_TCP, &src, &dst, NULL,
					 &ep));
	EXPECT_EQ(1, count_endpoints(_metadata, self->fd));
}

/* Address and route one after the other, without waiting and with */
TEST_F(bind, resolve_step_by_step)
{
	union test_addr dst = host_addr(variant->family, 4711);
	uint32_t ep;

	do_err(EINVAL, STATE, try_resolve_route(self->fd, self->ep, 0, NULL));
	do_ok(try_resolve_addr(self->fd, self->ep, 0, NULL, &dst, RESOLVE_MS,
			       NULL));
	wait_event(_metadata, self->fd, self->ep, RDMA_EP_EVENT_ADDR_RESOLVED,
		   &self->rec);
	EXPECT_EQ(0, self->rec.status);
	EXPECT_TRUE(self->rec.flags & RDMA_EP_REC_INFO);
	EXPECT_EQ(1, self->rec.info.port_num);
	do_err(EINVAL, STATE, try_resolve_addr(self->fd, self->ep, 0, NULL,
					       &dst, RESOLVE_MS, NULL));
	do_ok(try_resolve_route(self->fd, self->ep, 0, NULL));
	wait_event(_metadata, self->fd, self->ep, RDMA_EP_EVENT_ROUTE_RESOLVED,
		   &self->rec);
	EXPECT_EQ(0, self->rec.status);
	EXPECT_TRUE(self->rec.flags & RDMA_EP_REC_INFO);
	EXPECT_EQ(1, self->rec.info.num_paths);
	/* and no third event */
	expect_silence(_metadata, self->fd, self->ep, 50);

	do_ok(try_create(self->fd, PS_TCP, -1, 0, &ep));
	do_ok(try_resolve_addr(self->fd, ep, RDMA_EP_F_WAIT, NULL, &dst,
			       RESOLVE_MS, &self->rec));
	EXPECT_GOOD_RECORD(&self->rec);
	EXPECT_EVENT(ADDR_RESOLVED, &self->rec);
	do_ok(try_resolve_route(self->fd, ep, RDMA_EP_F_WAIT, &self->rec));
	EXPECT_EVENT(ROUTE_RESOLVED, &self->rec);
	/* what was waited for is not reported again */
	expect_silence(_metadata, self->fd, ep, 50);
}

TEST_F(bind, resolve_fused)
{
	union test_addr dst = host_addr(variant->family, 4711);
	uint32_t ep;

	do_ok(try_resolve_addr(self->fd, self->ep, RDMA_EP_RESOLVE_THEN_ROUTE,
			       NULL, &dst, RESOLVE_MS, NULL));
	wait_event(_metadata, self->fd, self->ep, RDMA_EP_EVENT_ROUTE_RESOLVED,
		   &self->rec);
	expect_silence(_metadata, self->fd, self->ep, 50);

	do_ok(try_create(self->fd, PS_TCP, -1, 0, &ep));
	do_ok(try_resolve_addr(self->fd, ep, RDMA_EP_RESOLVE_THEN_ROUTE |
			       RDMA_EP_F_WAIT, NULL, &dst, RESOLVE_MS,
			       &self->rec));
	EXPECT_EVENT(ROUTE_RESOLVED, &self->rec);
	EXPECT_EQ(RDMA_EP_STATE_ROUTE_RESOLVED, self->rec.info.state);
	expect_silence(_metadata, self->fd, ep, 50);
}

/* The source that was bound is the source that is used */
TEST_F(bind, resolve_from_a_bound_source)
{
	union test_addr src = host_addr(variant->family, 0);
	union test_addr dst = host_addr(variant->family, 4711), now;
	uint16_t port;

	do_ok(try_bind(self->fd, self->ep, &src, &self->rec));
	now = from_ep_addr(&self->rec.info.src);
	port = addr_port(&now);
	do_ok(try_resolve_addr(self->fd, self->ep, RDMA_EP_F_WAIT, NULL, &dst,
			       RESOLVE_MS, &self->rec));
	EXPECT_EVENT(ADDR_RESOLVED, &self->rec);
	now = from_ep_addr(&self->rec.info.src);
	EXPECT_EQ(port, addr_port(&now));
}

/* A destination without a route is known at once; another may be tried */
TEST_F(bind, no_route)
{
	union test_addr bad = make_addr(variant->elsewhere, 4711);
	union test_addr dst = host_addr(variant->family, 4711);

	do_err(ENETUNREACH, UNREACHABLE,
	       try_resolve_addr(self->fd, self->ep, RDMA_EP_F_WAIT, NULL, &bad,
				RESOLVE_MS, &self->rec));
	do_err(ENETUNREACH, UNREACHABLE,
	       try_resolve_addr(self->fd, self->ep, RDMA_EP_RESOLVE_THEN_ROUTE,
				NULL, &bad, RESOLVE_MS, NULL));
	expect_silence(_metadata, self->fd, self->ep, 50);
	do_ok(try_resolve_addr(self->fd, self->ep, RDMA_EP_F_WAIT, NULL, &dst,
			       RESOLVE_MS, &self->rec));
	EXPECT_EVENT(ADDR_RESOLVED, &self->rec);
}

/*
 * Resolutions that take their time: the netdev asks for neighbours, and the
 * one asked for is not there.
 */

FIXTURE(slow)
{
	struct test_ctx ctx;
	int fd;
	uint32_t ep;
	union test_addr nobody;
	union test_addr host;
	struct rdma_ep_record rec;
};

FIXTURE_VARIANT(slow)
{
	int family;
};

FIXTURE_VARIANT_ADD(slow, ipv4)
{
	.family = AF_INET,
};

FIXTURE_VARIANT_ADD(slow, ipv6)
{
	.family = AF_INET6,
};

FIXTURE_SETUP(slow)
{
	ctx_open(_metadata, &self->ctx);
	self->fd = self->ctx.fd;
	self->nobody = nobody_addr(variant->family, 4711);
	self->host = host_addr(variant->family, 4711);
	do_ok(try_create(self->fd, PS_TCP, -1, 0, &self->ep));
	ASSERT_EQ(0, host_netdev_arp(true));
}

FIXTURE_TEARDOWN(slow)
{
	EXPECT_EQ(0, host_netdev_arp(false));
	ctx_close(_metadata, &self->ctx);
}

/* One event, with a status and a reason; then another try is possible */
TEST_F(slow, address_error)
{
	do_ok(try_resolve_addr(self->fd, self->ep, RDMA_EP_F_WAIT, NULL,
			       &self->nobody, 500, &self->rec));
	EXPECT_GOOD_RECORD(&self->rec);
	ASSERT_EVENT(ADDR_ERROR, &self->rec);
	EXPECT_GT(0, self->rec.status);
	/* how it ended has a reason although the call succeeded */
	EXPECT_TRUE(ep_reason.code == RDMA_EP_REASON_TIMEOUT ||
		    ep_reason.code == RDMA_EP_REASON_UNREACHABLE)
		TH_LOG("%s", ep_reason.text);
	expect_silence(_metadata, self->fd, self->ep, 300);

	do_ok(try_resolve_addr(self->fd, self->ep, RDMA_EP_RESOLVE_THEN_ROUTE,
			       NULL, &self->nobody, 500, NULL));
	do_ok(try_wait(self->fd, self->ep, 0, &self->rec));
	EXPECT_TRUE(self->rec.type == RDMA_EP_EVENT_ADDR_ERROR ||
		    self->rec.type == RDMA_EP_EVENT_ROUTE_ERROR)
		TH_LOG("got %s", event_name(self->rec.type));
	EXPECT_GT(0, self->rec.status);
	expect_silence(_metadata, self->fd, self->ep, 300);

	do_ok(try_resolve_addr(self->fd, self->ep, RDMA_EP_F_WAIT |
			       RDMA_EP_RESOLVE_THEN_ROUTE, NULL, &self->host,
			       RESOLVE_MS, &self->rec));
	EXPECT_EVENT(ROUTE_RESOLVED, &self->rec);
}

/* The fused call fails with the event's errno, and leaves nothing */
TEST_F(slow, create_ep_error)
{
	struct rdma_ep_create_ep cmd = {
		.hdr = EP_HDR(cmd, 0),
		.port_space = PS_TCP,
		.channel = -1,
		.timeout_ms = 500,
		.dst = ep_addr(&self->nobody),
	};
	int ret = ep_ioctl(self->fd, RDMA_EP_CREATE_EP, &cmd);

	EXPECT_TRUE(ret == -ETIMEDOUT || ret == -EHOSTUNREACH)
		TH_LOG("%s", strerror(-ret));
	EXPECT_TRUE(ep_reason.code == RDMA_EP_REASON_TIMEOUT ||
		    ep_reason.code == RDMA_EP_REASON_UNREACHABLE)
		TH_LOG("%s", ep_reason.text);
	EXPECT_EQ(1, count_endpoints(_metadata, self->fd));
}

/* One operation at a time */
TEST_F(slow, busy)
{
	struct rdma_ep_conn_param param = conn_param(NULL, 0);
	int ret;

	do_ok(try_resolve_addr(self->fd, self->ep, 0, NULL, &self->nobody,
			       60000, NULL));
	EXPECT_EQ(RDMA_EP_STATE_RESOLVING_ADDR,
		  ep_state(_metadata, self->fd, self->ep));
	do_err(EBUSY, BUSY, try_resolve_addr(self->fd, self->ep, 0, NULL,
					     &self->host, 500, NULL));
	do_err(EBUSY, BUSY, try_resolve_route(self->fd, self->ep, 0, NULL));
	/* what the state forbids anyway may be said either way */
	ret = try_connect(self->fd, self->ep, 0, &param, NULL);
	EXPECT_TRUE(ret == -EBUSY || ret == -EINVAL);
	ret = try_bind(self->fd, self->ep, &self->host, NULL);
	EXPECT_TRUE(ret == -EBUSY || ret == -EINVAL);
	ret = try_listen(self->fd, self->ep, 0, NULL);
	EXPECT_TRUE(ret == -EBUSY || ret == -EINVAL);
	EXPECT_EQ(RDMA_EP_STATE_RESOLVING_ADDR,
		  ep_state(_metadata, self->fd, self->ep));
	/* destroying does not wait for the minute to pass */
	do_ok(try_destroy(self->fd, self->ep));
}

/* RDMA_EP_F_RESUME waits for what was started; nothing was */
TEST_F(bind, resume_nothing)
{
	union test_addr dst = host_addr(variant->family, 4711);
	struct rdma_ep_conn_param param = conn_param(NULL, 0);
	const uint32_t flags = RDMA_EP_F_WAIT | RDMA_EP_F_RESUME;

	do_err(ENODATA, STATE,
	       try_resolve_addr(self->fd, self->ep, flags, NULL, &dst,
				RESOLVE_MS, &self->rec));
	do_err(ENODATA, STATE,
	       try_resolve_route(self->fd, self->ep, flags, &self->rec));
	do_err(ENODATA, STATE,
	       try_connect(self->fd, self->ep, flags, &param, &self->rec));
	do_err(ENODATA, STATE,
	       try_accept(self->fd, self->ep, flags, &param, &self->rec));
	do_err(ENODATA, STATE,
	       try_disconnect(self->fd, self->ep, flags, &self->rec));
	still_idle(_metadata, self, variant->family);
}

/* Calls that make no sense yet */
TEST_F(bind, wrong_state)
{
	struct rdma_ep_conn_param param = conn_param(NULL, 0);
	struct ib_uverbs_qp_attr attr;

	do_err(EINVAL, STATE, try_connect(self->fd, self->ep, 0, &param, NULL));
	do_err(EINVAL, STATE, try_accept(self->fd, self->ep, 0, &param, NULL));
	do_err(EINVAL, STATE, try_establish(self->fd, self->ep));
	do_err(EINVAL, STATE, try_reject(self->fd, self->ep, 0, NULL, 0));
	do_err(EINVAL, STATE, try_disconnect(self->fd, self->ep, 0, NULL));
	do_err(EINVAL, STATE, try_notify(self->fd, self->ep, 4));
	do_err(EINVAL, STATE, try_init_qp_attr(self->fd, self->ep, 1, &attr));
	still_idle(_metadata, self, variant->family);
	do_err(EINVAL, STATE, try_connect(self->fd, self->ep, 0, &param, NULL));
	do_err(EINVAL, STATE, try_accept(self->fd, self->ep, 0, &param, NULL));
	do_err(EINVAL, STATE, try_establish(self->fd, self->ep));
	do_err(EINVAL, STATE, try_reject(self->fd, self->ep, 0, NULL, 0));
	do_err(EINVAL, STATE, try_disconnect(self->fd, self->ep, 0, NULL));
	EXPECT_EQ(RDMA_EP_STATE_BOUND, ep_state(_metadata, self->fd, self->ep));
}

TEST_HARNESS_MAIN
