// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rdma_getaddrinfo() without RDMA: addresses, services, hints, errors, every
 * failing allocation, and an ibacm played by a thread of this program, which
 * answers, hangs, drips, lies and sends garbage. Output is TAP.
 *
 * The files under test are included, so that their allocations and name
 * lookups can be counted and made to fail.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static long live;		/* allocations not freed yet */
static long allocs;		/* allocations made */
static long fail_at;		/* the one to fail, counted from 1; 0: none */
static int slow_lookups;	/* lookups that may ask a name server */

static int test_alloc_fails(void)
{
	if (++allocs == fail_at) {
		errno = ENOMEM;
		return 1;
	}
	live++;
	return 0;
}

static void *test_malloc(size_t size)
{
	return test_alloc_fails() ? NULL : malloc(size);
}

static void *test_calloc(size_t n, size_t size)
{
	return test_alloc_fails() ? NULL : calloc(n, size);
}

static char *test_strdup(const char *s)
{
	return test_alloc_fails() ? NULL : strdup(s);
}

static void test_free(void *p)
{
	if (p)
		live--;
	free(p);
}

static int test_getaddrinfo(const char *node, const char *service,
			    const struct addrinfo *hints, struct addrinfo **res)
{
	if (node && !(hints->ai_flags & AI_NUMERICHOST))
		slow_lookups++;
	return getaddrinfo(node, service, hints, res);
}

#include "../rdmaep-internal.h"

void rdmaep_forget_reason(void)
{
}

/* The library's, without its memory of reasons. */
int rdmaep_fail(int err, enum rdma_ep_reason_code code, const char *fmt, ...)
{
	(void)fmt;
	if (code == RDMA_EP_REASON_NONE)
		abort();
	errno = err;
	return -1;
}

/*
 * RDMA devices for RAI_SA, and what the library answers for ids on them
 */
static struct {
	int devices;		/* how many there are */
	int active_port;	/* of the last one, which is InfiniBand */
	int resolve_errno;
	int records;		/* that the service has */
	int ids;		/* that exist */
	int asked;
	struct sockaddr_ib bound;
	struct ibv_device device[2];
	struct ibv_context verbs[2];
	struct ibv_context *list[3];
} sa;

static int test_query_device(struct ibv_context *verbs,
			     struct ibv_device_attr *attr)
{
	(void)verbs;
	memset(attr, 0, sizeof(*attr));
	attr->phys_port_cnt = 2;
	return 0;
}

static int test_query_port(struct ibv_context *verbs, int port,
			   struct ibv_port_attr *attr)
{
	int ib = verbs == &sa.verbs[sa.devices - 1];

	memset(attr, 0, sizeof(*attr));
	attr->link_layer = ib ? IBV_LINK_LAYER_INFINIBAND :
				IBV_LINK_LAYER_ETHERNET;
	attr->state = !ib || port == sa.active_port ? IBV_PORT_ACTIVE :
						      IBV_PORT_DOWN;
	return 0;
}

static int test_query_gid(struct ibv_context *verbs, int port, int index,
			  union ibv_gid *gid)
{
	(void)verbs;
	(void)index;
	memset(gid, 0, sizeof(*gid));
	gid->raw[15] = port;
	return 0;
}

#define ibv_query_device(v, a)		test_query_device(v, a)
#undef ibv_query_port
#define ibv_query_port(v, p, a)		test_query_port(v, p, a)
#define ibv_query_gid(v, p, i, g)	test_query_gid(v, p, i, g)

#define malloc(size)		test_malloc(size)
#define calloc(n, size)		test_calloc(n, size)
#define strdup(s)		test_strdup(s)
#define free(p)			test_free(p)
#define getaddrinfo(n, s, h, r)	test_getaddrinfo(n, s, h, r)
#include "../addrinfo.c"
#include "../acm.c"
#include "../addrinfo-sa.c"

struct ibv_context **rdma_get_devices(int *num_devices)
{
	int i;

	(void)num_devices;
	if (!sa.devices) {
		errno = ENODEV;
		return NULL;
	}
	for (i = 0; i < sa.devices; i++) {
		sa.device[i].transport_type = IBV_TRANSPORT_IB;
		sa.verbs[i].device = &sa.device[i];
		sa.list[i] = &sa.verbs[i];
	}
	sa.list[i] = NULL;
	return sa.list;
}

void rdma_free_devices(struct ibv_context **list)
{
	if (list != sa.list)
		abort();
	errno = 0;
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id,
		   void *context, enum rdma_port_space ps)
{
	*id = calloc(1, sizeof(**id));
	if (!*id)
		return -1;
	(*id)->channel = channel;
	(*id)->context = context;
	(*id)->ps = ps;
	sa.ids++;
	return 0;
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
	free(id);
	sa.ids--;
	errno = 0;
	return 0;
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	(void)id;
	memcpy(&sa.bound, addr, sizeof(sa.bound));
	return 0;
}

int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node,
			  const char *service, const struct rdma_addrinfo *hints)
{
	if (node || strcmp(service, "svc") || !(hints->ai_flags & RAI_SA) ||
	    (id->ps != RDMA_PS_IB && id->ps != RDMA_PS_TCP))
		abort();
	sa.asked++;
	errno = sa.resolve_errno;
	return sa.resolve_errno ? -1 : 0;
}

int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info)
{
	int i;

	*info = NULL;
	for (i = 0; i < sa.records; i++) {
		struct rdma_addrinfo *rai = calloc(1, sizeof(*rai));

		if (!rai)
			abort();
		rai->ai_flags = RAI_SA;
		rai->ai_family = AF_IB;
		rai->ai_qp_type = IBV_QPT_RC;
		rai->ai_port_space = id->ps;
		rai->ai_next = *info;
		*info = rai;
	}
	errno = ENODATA;
	return *info ? 0 : -1;
}

#undef malloc
#undef calloc
#undef strdup
#undef free
#undef getaddrinfo

static int failures;

#define COUNT(array)	(sizeof(array) / sizeof((array)[0]))

#define CHECK(cond) do {						\
	if (!(cond)) {							\
		printf("# %s:%d: %s\n", __func__, __LINE__, #cond);	\
		failures++;						\
	}								\
} while (0)

#define CHECK_EQ(a, b) do {						\
	long long a_ = (a), b_ = (b);					\
	if (a_ != b_) {							\
		printf("# %s:%d: %s is %lld, not %s (%lld)\n",		\
		       __func__, __LINE__, #a, a_, #b, b_);		\
		failures++;						\
	}								\
} while (0)

static const struct sockaddr_in *sin_of(const struct sockaddr *sa)
{
	return (const struct sockaddr_in *)sa;
}

static const struct sockaddr_in6 *sin6_of(const struct sockaddr *sa)
{
	return (const struct sockaddr_in6 *)sa;
}

static const struct sockaddr_ib *sib_of(const struct sockaddr *sa)
{
	return (const struct sockaddr_ib *)sa;
}

static int is_ip4(const struct sockaddr *sa, socklen_t len, const char *addr,
		  int port)
{
	struct in_addr in;

	inet_pton(AF_INET, addr, &in);
	return sa && len == sizeof(struct sockaddr_in) &&
	       sa->sa_family == AF_INET &&
	       sin_of(sa)->sin_addr.s_addr == in.s_addr &&
	       sin_of(sa)->sin_port == htons(port);
}

static int is_ip6(const struct sockaddr *sa, socklen_t len, const char *addr,
		  int port, unsigned int scope)
{
	struct in6_addr in6;

	inet_pton(AF_INET6, addr, &in6);
	return sa && len == sizeof(struct sockaddr_in6) &&
	       sa->sa_family == AF_INET6 &&
	       !memcmp(&sin6_of(sa)->sin6_addr, &in6, sizeof(in6)) &&
	       sin6_of(sa)->sin6_port == htons(port) &&
	       sin6_of(sa)->sin6_scope_id == scope;
}

static struct sockaddr_in ip4(const char *addr, int port)
{
	struct sockaddr_in sin = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
	};

	inet_pton(AF_INET, addr, &sin.sin_addr);
	return sin;
}

static void arguments(void)
{
	struct rdma_addrinfo hints = {}, *res = (void *)1;

	errno = 0;
	CHECK_EQ(rdma_getaddrinfo(NULL, NULL, NULL, &res), -1);
	CHECK_EQ(errno, EINVAL);
	CHECK(res == (void *)1);

	errno = 0;
	CHECK_EQ(rdma_getaddrinfo("127.0.0.1", NULL, NULL, NULL), -1);
	CHECK_EQ(errno, EINVAL);

	/* a length without an address */
	hints = (struct rdma_addrinfo){ .ai_src_len = 16 };
	errno = 0;
	CHECK_EQ(rdma_getaddrinfo("127.0.0.1", "1", &hints, &res), -1);
	CHECK_EQ(errno, EINVAL);

	/* an address longer than any */
	hints.ai_src_addr = (struct sockaddr *)&hints;
	hints.ai_src_len = sizeof(struct sockaddr_storage) + 1;
	errno = 0;
	CHECK_EQ(rdma_getaddrinfo("127.0.0.1", "1", &hints, &res), -1);
	CHECK_EQ(errno, EINVAL);

	rdma_freeaddrinfo(NULL);
}

static void ipv4(void)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *res;

	CHECK_EQ(rdma_getaddrinfo("192.0.2.7", "7471", &hints, &res), 0);
	CHECK_EQ(res->ai_flags, 0);
	CHECK_EQ(res->ai_family, AF_INET);
	CHECK_EQ(res->ai_qp_type, IBV_QPT_RC);
	CHECK_EQ(res->ai_port_space, RDMA_PS_TCP);
	CHECK(is_ip4(res->ai_dst_addr, res->ai_dst_len, "192.0.2.7", 7471));
	CHECK(!res->ai_src_addr && !res->ai_src_len);
	CHECK(res->ai_dst_canonname &&
	      !strcmp(res->ai_dst_canonname, "192.0.2.7"));
	CHECK(!res->ai_src_canonname && !res->ai_route_len &&
	      !res->ai_connect_len && !res->ai_next);
	rdma_freeaddrinfo(res);

	hints.ai_flags = RAI_PASSIVE;
	CHECK_EQ(rdma_getaddrinfo("192.0.2.7", "7471", &hints, &res), 0);
	CHECK_EQ(res->ai_flags, RAI_PASSIVE);
	CHECK(is_ip4(res->ai_src_addr, res->ai_src_len, "192.0.2.7", 7471));
	CHECK(!res->ai_dst_addr && !res->ai_dst_len);
	CHECK(res->ai_src_canonname && !res->ai_dst_canonname);
	rdma_freeaddrinfo(res);

	/* no node: any address here, loopback there */
	hints.ai_family = AF_INET;
	CHECK_EQ(rdma_getaddrinfo(NULL, "7471", &hints, &res), 0);
	CHECK(is_ip4(res->ai_src_addr, res->ai_src_len, "0.0.0.0", 7471));
	rdma_freeaddrinfo(res);

	hints.ai_flags = 0;
	CHECK_EQ(rdma_getaddrinfo(NULL, "7471", &hints, &res), 0);
	CHECK(is_ip4(res->ai_dst_addr, res->ai_dst_len, "127.0.0.1", 7471));
	rdma_freeaddrinfo(res);

	/* no service: port 0 */
	CHECK_EQ(rdma_getaddrinfo("192.0.2.7", NULL, &hints, &res), 0);
	CHECK(is_ip4(res->ai_dst_addr, res->ai_dst_len, "192.0.2.7", 0));
	rdma_freeaddrinfo(res);

	CHECK_EQ(slow_lookups, 0);
}

static void ipv6(void)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *res;
	unsigned int lo = if_nametoindex("lo");

	CHECK_EQ(rdma_getaddrinfo("2001:db8::1", "1", &hints, &res), 0);
	CHECK_EQ(res->ai_family, AF_INET6);
	CHECK(is_ip6(res->ai_dst_addr, res->ai_dst_len, "2001:db8::1", 1, 0));
	rdma_freeaddrinfo(res);

	CHECK_EQ(rdma_getaddrinfo("fe80::1%lo", "1", &hints, &res), 0);
	CHECK(is_ip6(res->ai_dst_addr, res->ai_dst_len, "fe80::1", 1, lo));
	rdma_freeaddrinfo(res);

	CHECK_EQ(rdma_getaddrinfo("fe80::1%7", "1", &hints, &res), 0);
	CHECK(is_ip6(res->ai_dst_addr, res->ai_dst_len, "fe80::1", 1, 7));
	rdma_freeaddrinfo(res);

	hints.ai_flags = RAI_PASSIVE;
	hints.ai_family = AF_INET6;
	CHECK_EQ(rdma_getaddrinfo(NULL, "1", &hints, &res), 0);
	CHECK(is_ip6(res->ai_src_addr, res->ai_src_len, "::", 1, 0));
	rdma_freeaddrinfo(res);

	hints.ai_flags = RAI_FAMILY;
	CHECK(rdma_getaddrinfo("192.0.2.7", "1", &hints, &res) != 0);
	CHECK_EQ(slow_lookups, 0);
}

static void no_hints(void)
{
	struct rdma_addrinfo *res;

	CHECK_EQ(rdma_getaddrinfo("127.0.0.1", "7471", NULL, &res), 0);
	CHECK_EQ(res->ai_flags, 0);
	CHECK_EQ(res->ai_qp_type, IBV_QPT_RC);
	CHECK_EQ(res->ai_port_space, RDMA_PS_TCP);
	CHECK(is_ip4(res->ai_dst_addr, res->ai_dst_len, "127.0.0.1", 7471));
	rdma_freeaddrinfo(res);
	CHECK_EQ(slow_lookups, 0);
}

static void names(void)
{
	struct rdma_addrinfo hints = { .ai_family = AF_INET }, *res;
	struct addrinfo *ai;

	/* a name when only digits will do: refused without asking anybody */
	hints.ai_flags = RAI_NUMERICHOST;
	CHECK_EQ(rdma_getaddrinfo("localhost", "1", &hints, &res), EAI_NONAME);
	CHECK_EQ(slow_lookups, 0);

	if (getaddrinfo("localhost", NULL, NULL, &ai)) {
		printf("# no localhost here\n");
		return;
	}
	freeaddrinfo(ai);
	hints.ai_flags = 0;
	CHECK_EQ(rdma_getaddrinfo("localhost", "1", &hints, &res), 0);
	CHECK(is_ip4(res->ai_dst_addr, res->ai_dst_len, "127.0.0.1", 1));
	CHECK(res->ai_dst_canonname &&
	      !strcmp(res->ai_dst_canonname, "localhost"));
	rdma_freeaddrinfo(res);
	CHECK_EQ(slow_lookups, 1);
}

static void service_names(void)
{
	struct rdma_addrinfo hints = {}, *res;
	int ret;

	ret = rdma_getaddrinfo("192.0.2.7", "no-such-service", &hints, &res);
	CHECK(ret == EAI_SERVICE || ret == EAI_NONAME);

	if (!getservbyname("ssh", "tcp")) {
		printf("# nothing in /etc here\n");
		return;
	}
	hints.ai_port_space = RDMA_PS_TCP;
	CHECK_EQ(rdma_getaddrinfo("192.0.2.7", "ssh", &hints, &res), 0);
	CHECK(is_ip4(res->ai_dst_addr, res->ai_dst_len, "192.0.2.7", 22));
	rdma_freeaddrinfo(res);
	endservent();
}

/* What comes of a QP type and a port space in the hints. */
static void types(void)
{
	static const struct {
		int qp_type, ps, ret, out_qp_type, out_ps;
	} row[] = {
		{ 0, 0, 0, IBV_QPT_RC, RDMA_PS_TCP },
		{ 0, RDMA_PS_TCP, 0, IBV_QPT_RC, RDMA_PS_TCP },
		{ 0, RDMA_PS_UDP, 0, IBV_QPT_UD, RDMA_PS_UDP },
		{ 0, RDMA_PS_IPOIB, 0, IBV_QPT_UD, RDMA_PS_IPOIB },
		{ 0, RDMA_PS_IB, 0, IBV_QPT_RC, RDMA_PS_IB },
		{ IBV_QPT_RC, 0, 0, IBV_QPT_RC, RDMA_PS_TCP },
		{ IBV_QPT_UC, 0, 0, IBV_QPT_UC, RDMA_PS_TCP },
		{ IBV_QPT_UD, 0, 0, IBV_QPT_UD, RDMA_PS_UDP },
		{ IBV_QPT_XRC_SEND, 0, 0, IBV_QPT_XRC_SEND, RDMA_PS_TCP },
		{ IBV_QPT_XRC_RECV, RDMA_PS_TCP, 0, IBV_QPT_XRC_RECV, RDMA_PS_TCP },
		{ IBV_QPT_RC, RDMA_PS_IB, 0, IBV_QPT_RC, RDMA_PS_IB },
		{ IBV_QPT_UD, RDMA_PS_IB, 0, IBV_QPT_UD, RDMA_PS_IB },
		{ IBV_QPT_XRC_RECV, RDMA_PS_IB, 0, IBV_QPT_XRC_RECV, RDMA_PS_IB },
		{ IBV_QPT_UD, RDMA_PS_IPOIB, 0, IBV_QPT_UD, RDMA_PS_IPOIB },
		{ IBV_QPT_UD, RDMA_PS_TCP, EAI_SOCKTYPE, 0, 0 },
		{ IBV_QPT_RC, RDMA_PS_UDP, EAI_SOCKTYPE, 0, 0 },
		{ IBV_QPT_UC, RDMA_PS_IPOIB, EAI_SOCKTYPE, 0, 0 },
		{ IBV_QPT_XRC_SEND, RDMA_PS_UDP, EAI_SOCKTYPE, 0, 0 },
	};
	struct sockaddr_in dst = ip4("192.0.2.7", 7471);
	struct rdma_addrinfo *res;
	size_t i;
	int node;

	for (i = 0; i < COUNT(row); i++) {
		/* with a node to look up, and from hints alone */
		for (node = 0; node < 2; node++) {
			struct rdma_addrinfo hints = {
				.ai_qp_type = row[i].qp_type,
				.ai_port_space = row[i].ps,
			};
			int ret;

			if (!node) {
				hints.ai_dst_addr = (struct sockaddr *)&dst;
				hints.ai_dst_len = sizeof(dst);
			}
			ret = rdma_getaddrinfo(node ? "192.0.2.7" : NULL,
					       node ? "7471" : NULL, &hints,
					       &res);
			if (ret != row[i].ret)
				printf("# row %zu, node %d\n", i, node);
			CHECK_EQ(ret, row[i].ret);
			if (ret)
				continue;
			CHECK_EQ(res->ai_family, AF_INET);
			CHECK_EQ(res->ai_qp_type, row[i].out_qp_type);
			CHECK_EQ(res->ai_port_space, row[i].out_ps);
			CHECK(is_ip4(res->ai_dst_addr, res->ai_dst_len,
				     "192.0.2.7", 7471));
			rdma_freeaddrinfo(res);
		}
	}
}

static void hint_addresses(void)
{
	struct sockaddr_in src = ip4("192.0.2.1", 17), dst = ip4("192.0.2.2", 18);
	struct rdma_addrinfo hints = {
		.ai_flags = RAI_NUMERICHOST,
		.ai_src_addr = (struct sockaddr *)&src,
		.ai_src_len = sizeof(src),
		.ai_dst_addr = (struct sockaddr *)&dst,
		.ai_dst_len = sizeof(dst),
	};
	struct rdma_addrinfo *res;

	/* the node decides on the destination, the hint on the source */
	CHECK_EQ(rdma_getaddrinfo("192.0.2.7", "1", &hints, &res), 0);
	CHECK(is_ip4(res->ai_src_addr, res->ai_src_len, "192.0.2.1", 17));
	CHECK(is_ip4(res->ai_dst_addr, res->ai_dst_len, "192.0.2.7", 1));
	CHECK(res->ai_src_addr != (struct sockaddr *)&src);
	rdma_freeaddrinfo(res);

	/* hints alone: both are copied, and the flags with them */
	CHECK_EQ(rdma_getaddrinfo(NULL, NULL, &hints, &res), 0);
	CHECK_EQ(res->ai_flags, RAI_NUMERICHOST);
	CHECK_EQ(res->ai_family, AF_INET);
	CHECK(is_ip4(res->ai_src_addr, res->ai_src_len, "192.0.2.1", 17));
	CHECK(is_ip4(res->ai_dst_addr, res->ai_dst_len, "192.0.2.2", 18));
	CHECK(res->ai_dst_addr != (struct sockaddr *)&dst);
	rdma_freeaddrinfo(res);

	/* passive, from a source address */
	hints.ai_flags = RAI_PASSIVE;
	hints.ai_dst_len = 0;
	CHECK_EQ(rdma_getaddrinfo(NULL, NULL, &hints, &res), 0);
	CHECK_EQ(res->ai_flags, RAI_PASSIVE);
	CHECK(is_ip4(res->ai_src_addr, res->ai_src_len, "192.0.2.1", 17));
	rdma_freeaddrinfo(res);

	/* passive, with a service: the wildcard, not the hint */
	hints.ai_family = AF_INET;
	CHECK_EQ(rdma_getaddrinfo(NULL, "7471", &hints, &res), 0);
	CHECK(is_ip4(res->ai_src_addr, res->ai_src_len, "0.0.0.0", 7471));
	rdma_freeaddrinfo(res);
}

static void af_ib(void)
{
	struct rdma_addrinfo hints = {
		.ai_flags = RAI_NUMERICHOST | RAI_FAMILY,
		.ai_family = AF_IB,
		.ai_port_space = RDMA_PS_TCP,
	};
	const struct sockaddr_ib *sib;
	struct rdma_addrinfo *res;
	struct in6_addr gid;

	inet_pton(AF_INET6, "fe80::2:c903:4:5", &gid);
	CHECK_EQ(rdma_getaddrinfo("fe80::2:c903:4:5", "7471", &hints, &res), 0);
	CHECK_EQ(res->ai_family, AF_IB);
	CHECK_EQ(res->ai_dst_len, sizeof(*sib));
	sib = sib_of(res->ai_dst_addr);
	CHECK_EQ(sib->sib_family, AF_IB);
	CHECK_EQ(be16toh(sib->sib_pkey), 0xffff);
	CHECK(!memcmp(&sib->sib_addr, &gid, sizeof(gid)));
	CHECK_EQ(be64toh(sib->sib_sid), RDMA_IB_IP_PS_TCP + 7471);
	CHECK(be64toh(sib->sib_sid_mask) == UINT64_MAX);
	rdma_freeaddrinfo(res);

	/* no port: the mask leaves it open */
	hints.ai_flags |= RAI_PASSIVE;
	hints.ai_port_space = RDMA_PS_UDP;
	CHECK_EQ(rdma_getaddrinfo("::", NULL, &hints, &res), 0);
	CHECK_EQ(res->ai_flags, RAI_PASSIVE);
	CHECK_EQ(res->ai_src_len, sizeof(*sib));
	sib = sib_of(res->ai_src_addr);
	CHECK_EQ(be64toh(sib->sib_sid), RDMA_IB_IP_PS_UDP);
	CHECK(be64toh(sib->sib_sid_mask) == RDMA_IB_IP_PS_MASK);
	CHECK(ib_addr_any(&sib->sib_addr));
	rdma_freeaddrinfo(res);

	/* a GID is not written in dots */
	CHECK(rdma_getaddrinfo("192.0.2.7", "1", &hints, &res) != 0);

	/* without RAI_NUMERICHOST the node is a host, whose family is open */
	hints.ai_flags = RAI_FAMILY;
	CHECK_EQ(rdma_getaddrinfo("192.0.2.7", "1", &hints, &res), 0);
	CHECK_EQ(res->ai_family, AF_INET);
	rdma_freeaddrinfo(res);
}

/* InfiniBand services: which ports are asked, and what comes of the answers. */
static void services(void)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_SA }, *res = NULL;

	CHECK_EQ(rdma_getaddrinfo("10.0.0.1", "svc", &hints, &res), -1);
	CHECK_EQ(errno, EOPNOTSUPP);
	hints.ai_flags = RAI_SA | RAI_DNS;
	CHECK_EQ(rdma_getaddrinfo(NULL, "svc", &hints, &res), -1);
	CHECK_EQ(errno, EOPNOTSUPP);
	hints.ai_flags = RAI_SA;
	CHECK_EQ(rdma_getaddrinfo(NULL, NULL, &hints, &res), -1);
	CHECK_EQ(errno, EINVAL);

	/* no device; devices, but no active InfiniBand port */
	CHECK_EQ(rdma_getaddrinfo(NULL, "svc", &hints, &res), -1);
	CHECK_EQ(errno, ENODEV);
	sa.devices = 2;
	CHECK_EQ(rdma_getaddrinfo(NULL, "svc", &hints, &res), -1);
	CHECK_EQ(errno, ENODEV);
	CHECK_EQ(sa.asked, 0);

	/* one port, a service with two records */
	sa.active_port = 2;
	sa.records = 2;
	CHECK_EQ(rdma_getaddrinfo(NULL, "svc", &hints, &res), 0);
	CHECK_EQ(sa.asked, 1);
	CHECK_EQ(sa.bound.sib_addr.sib_raw[15], 2);
	CHECK_EQ(res->ai_port_space, RDMA_PS_IB);
	CHECK_EQ(res->ai_qp_type, IBV_QPT_RC);
	CHECK_EQ(res->ai_src_len, sizeof(struct sockaddr_ib));
	CHECK_EQ(sib_of(res->ai_src_addr)->sib_addr.sib_raw[15], 2);
	CHECK(res->ai_next && res->ai_next->ai_src_len && !res->ai_next->ai_next);
	rdma_freeaddrinfo(res);

	hints.ai_qp_type = IBV_QPT_UC;
	hints.ai_port_space = RDMA_PS_TCP;
	CHECK_EQ(rdma_getaddrinfo(NULL, "svc", &hints, &res), 0);
	CHECK_EQ(res->ai_qp_type, IBV_QPT_UC);
	CHECK_EQ(res->ai_port_space, RDMA_PS_TCP);
	rdma_freeaddrinfo(res);

	/* the first error counts, not what cleaning up leaves in errno */
	sa.resolve_errno = EOPNOTSUPP;
	CHECK_EQ(rdma_getaddrinfo(NULL, "svc", &hints, &res), -1);
	CHECK_EQ(errno, EOPNOTSUPP);
	sa.resolve_errno = 0;
	sa.records = 0;
	CHECK_EQ(rdma_getaddrinfo(NULL, "svc", &hints, &res), -1);
	CHECK_EQ(errno, ENODATA);
	CHECK_EQ(sa.ids, 0);
}

/* Fail each allocation in turn: ENOMEM, and nothing stays behind. */
static void no_memory(void)
{
	struct sockaddr_in src = ip4("192.0.2.1", 0);
	struct rdma_addrinfo hints = {
		.ai_src_addr = (struct sockaddr *)&src,
		.ai_src_len = sizeof(src),
	}, *res;
	int ret = -1, n;

	for (n = 1; ret && n < 20; n++) {
		long before = live;

		allocs = 0;
		fail_at = n;
		errno = 0;
		ret = rdma_getaddrinfo("192.0.2.7", "1", &hints, &res);
		fail_at = 0;
		if (!ret)
			break;
		CHECK_EQ(ret, -1);
		CHECK_EQ(errno, ENOMEM);
		CHECK_EQ(live, before);
	}
	/* the entry, two addresses, a name */
	CHECK_EQ(n, 5);
	CHECK_EQ(ret, 0);
	rdma_freeaddrinfo(res);
}

/*
 * ibacm, played by a thread
 */
enum acm_mode {
	ACM_ANSWER,		/* two paths and the source address */
	ACM_NO_SOURCE,		/* two paths */
	ACM_NO_DATA,		/* status ENODATA */
	ACM_EMPTY,		/* success, without entries */
	ACM_HANG,		/* takes the question, never answers */
	ACM_DRIP,		/* a byte now and then */
	ACM_CLOSE,		/* closes at once */
	ACM_SHORT,		/* closes in mid-answer */
	ACM_OTHER_TID,		/* the answer to another question */
	ACM_TOO_LONG,		/* claims more entries than there can be */
	ACM_ODD_LENGTH,		/* not a whole number of entries */
	ACM_GARBAGE,		/* random bytes */
};

static struct {
	enum acm_mode mode;
	int fd;			/* listening socket */
	atomic_int stop;
	atomic_int connections;
	struct acm_message question;
	ssize_t question_len;
	pthread_t thread;
	char dir[64];
	char path[80];
	char port_path[80];
} fake;

static uint64_t random_state = 88172645463325252ULL;

/* Pseudo-random, the same in every run (xorshift). */
static uint64_t rnd(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static void fake_path(struct acm_entry *entry, int n)
{
	entry->flags = 1 << n;
	entry->type = ACM_TYPE_PATH;
	entry->reserved = 0;
	memset(&entry->path, 0, sizeof(entry->path));
	entry->path.sgid.raw[15] = 1;
	entry->path.dgid.raw[15] = 2;
	entry->path.pkey = htobe16(0x8001);
	entry->path.flowlabel_hoplimit = htobe32(0x12345 << 8 | 0x40);
	entry->path.dlid = htobe16(n);
}

static void fake_answer(int fd, const struct acm_message *question)
{
	struct acm_message msg = { .hdr = question->hdr };
	size_t i, len;
	int n = 0;

	fake_path(&msg.entry[n++], 0);
	if (fake.mode != ACM_NO_SOURCE) {
		msg.entry[n].flags = ACM_FLAG_SOURCE;
		msg.entry[n].type = ACM_TYPE_IP4;
		inet_pton(AF_INET, "192.0.2.1", msg.entry[n].addr);
		n++;
	}
	fake_path(&msg.entry[n++], 1);
	if (fake.mode == ACM_EMPTY)
		n = 0;

	len = sizeof(msg.hdr) + n * sizeof(msg.entry[0]);
	msg.hdr.opcode |= ACM_OP_ACK;
	msg.hdr.length = len;

	switch (fake.mode) {
	case ACM_NO_DATA:
		msg.hdr.status = 3;
		len = sizeof(msg.hdr);
		msg.hdr.length = len;
		break;
	case ACM_SHORT:
		len -= 10;
		break;
	case ACM_OTHER_TID:
		msg.hdr.tid++;
		break;
	case ACM_TOO_LONG:
		msg.hdr.length = sizeof(msg.hdr) +
				 (ACM_MAX_ENTRIES + 1) * sizeof(msg.entry[0]);
		len = sizeof(msg);
		break;
	case ACM_ODD_LENGTH:
		msg.hdr.length -= 7;
		break;
	case ACM_GARBAGE:
		for (i = 0; i < sizeof(msg); i++)
			((uint8_t *)&msg)[i] = rnd();
		/* now and then a header that passes */
		if (rnd() & 1) {
			msg.hdr = question->hdr;
			msg.hdr.opcode |= ACM_OP_ACK;
			msg.hdr.length = sizeof(msg.hdr) +
				rnd() % (ACM_MAX_ENTRIES + 1) * sizeof(msg.entry[0]);
		}
		len = rnd() % (sizeof(msg) + 1);
		break;
	default:
		break;
	}

	if (fake.mode == ACM_DRIP) {
		for (i = 0; i < len; i++) {
			if (send(fd, (char *)&msg + i, 1, MSG_NOSIGNAL) != 1)
				return;
			usleep(20000);
		}
		return;
	}
	if (send(fd, &msg, len, MSG_NOSIGNAL) < 0)
		return;
}

static void *fake_main(void *arg)
{
	char byte;
	int fd;

	(void)arg;
	while ((fd = accept(fake.fd, NULL, NULL)) >= 0) {
		if (fake.stop) {
			close(fd);
			break;
		}
		fake.connections++;
		if (fake.mode != ACM_CLOSE) {
			fake.question_len = recv(fd, &fake.question,
						 sizeof(fake.question), 0);
			if (fake.mode != ACM_HANG)
				fake_answer(fd, &fake.question);
			/* hang: until the other side gives up */
			else if (recv(fd, &byte, 1, 0))
				fake.question_len = -1;
		}
		close(fd);
	}
	return NULL;
}

static void fake_start(enum acm_mode mode, int tcp)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	struct sockaddr_in sin = ip4("127.0.0.1", 0);
	socklen_t len = sizeof(sin);
	FILE *f;

	memset(&fake, 0, sizeof(fake));
	fake.mode = mode;
	strcpy(fake.dir, "/tmp/rdmaep-acm-XXXXXX");
	if (!mkdtemp(fake.dir))
		abort();
	snprintf(fake.path, sizeof(fake.path), "%s/sock", fake.dir);
	snprintf(fake.port_path, sizeof(fake.port_path), "%s/port", fake.dir);
	acm_socket_path = fake.path;
	acm_port_path = fake.port_path;
	acm_not_before = 0;
	/* far more than an answer takes, on whatever machine */
	acm_timeout_ms = 20000;

	if (tcp) {
		fake.fd = socket(AF_INET, SOCK_STREAM, 0);
		if (bind(fake.fd, (struct sockaddr *)&sin, sizeof(sin)) ||
		    getsockname(fake.fd, (struct sockaddr *)&sin, &len))
			abort();
		f = fopen(fake.port_path, "w");
		if (!f)
			abort();
		fprintf(f, "%u\n", ntohs(sin.sin_port));
		fclose(f);
	} else {
		fake.fd = socket(AF_UNIX, SOCK_STREAM, 0);
		strcpy(sun.sun_path, fake.path);
		if (bind(fake.fd, (struct sockaddr *)&sun, sizeof(sun)))
			abort();
	}
	if (listen(fake.fd, 5) ||
	    pthread_create(&fake.thread, NULL, fake_main, NULL))
		abort();
}

static void fake_stop(void)
{
	fake.stop = 1;
	shutdown(fake.fd, SHUT_RDWR);
	pthread_join(fake.thread, NULL);
	close(fake.fd);
	unlink(fake.path);
	unlink(fake.port_path);
	rmdir(fake.dir);
}

static void check_routed(struct rdma_addrinfo *res)
{
	const struct ibv_path_data *path = res->ai_route;
	const struct acm_ip_header *hdr = res->ai_connect;
	const struct sockaddr_ib *sib;
	struct rdma_addrinfo *ip = res->ai_next;

	/* first the entry with AF_IB addresses ... */
	CHECK_EQ(res->ai_family, AF_IB);
	CHECK_EQ(res->ai_port_space, RDMA_PS_TCP);
	CHECK_EQ(res->ai_qp_type, IBV_QPT_RC);
	CHECK_EQ(res->ai_route_len, 2 * sizeof(*path));
	CHECK_EQ(path[0].flags, 1);
	CHECK_EQ(path[1].flags, 2);
	CHECK_EQ(path[0].reserved, 0);
	CHECK_EQ(be16toh(path[1].path.dlid), 1);
	CHECK_EQ(res->ai_src_len, sizeof(*sib));
	sib = sib_of(res->ai_src_addr);
	CHECK_EQ(sib->sib_addr.sib_raw[15], 1);
	CHECK_EQ(be64toh(sib->sib_sid), RDMA_IB_IP_PS_TCP);
	CHECK_EQ(res->ai_dst_len, sizeof(*sib));
	sib = sib_of(res->ai_dst_addr);
	CHECK_EQ(sib->sib_addr.sib_raw[15], 2);
	CHECK_EQ(be16toh(sib->sib_pkey), 0x8001);
	CHECK_EQ(be32toh(sib->sib_flowinfo), 0x12345);
	CHECK_EQ(be64toh(sib->sib_sid), RDMA_IB_IP_PS_TCP + 7471);
	CHECK(res->ai_dst_canonname &&
	      !strcmp(res->ai_dst_canonname, "192.0.2.7"));
	CHECK_EQ(res->ai_connect_len, 36);
	CHECK_EQ(hdr->ip_version, 0x40);
	CHECK(!memcmp(&hdr->src[12], &sin_of(ip->ai_src_addr)->sin_addr, 4));
	CHECK(!memcmp(&hdr->dst[12], &sin_of(ip->ai_dst_addr)->sin_addr, 4));

	/* ... then the one that was asked for */
	CHECK_EQ(ip->ai_family, AF_INET);
	CHECK(is_ip4(ip->ai_src_addr, ip->ai_src_len, "192.0.2.1", 0));
	CHECK(is_ip4(ip->ai_dst_addr, ip->ai_dst_len, "192.0.2.7", 7471));
	CHECK_EQ(ip->ai_route_len, 2 * sizeof(*path));
	CHECK(!ip->ai_connect_len && !ip->ai_next);
}

static void acm_answers(void)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *res;
	const struct acm_entry *entry = &fake.question.entry[0];
	int tcp;

	for (tcp = 0; tcp < 2; tcp++) {
		fake_start(ACM_ANSWER, tcp);
		CHECK_EQ(rdma_getaddrinfo("192.0.2.7", "7471", &hints, &res), 0);
		check_routed(res);
		rdma_freeaddrinfo(res);

		/* the question: one entry, the destination */
		CHECK_EQ(fake.question_len, 16 + 72);
		CHECK_EQ(fake.question.hdr.version, 1);
		CHECK_EQ(fake.question.hdr.opcode, 1);
		CHECK_EQ(fake.question.hdr.length, 16 + 72);
		CHECK_EQ(entry->flags, ACM_FLAG_DEST);
		CHECK_EQ(entry->type, ACM_TYPE_IP4);
		CHECK_EQ(entry->addr[3], 7);

		/* digits only: from the cache */
		hints.ai_flags = RAI_NUMERICHOST;
		CHECK_EQ(rdma_getaddrinfo("192.0.2.7", "7471", &hints, &res), 0);
		CHECK_EQ(entry->flags, ACM_FLAG_DEST | ACM_FLAG_NODELAY);
		rdma_freeaddrinfo(res);
		CHECK_EQ(fake.connections, 2);

		/* neither of these asks */
		hints.ai_flags = RAI_NOROUTE;
		CHECK_EQ(rdma_getaddrinfo("192.0.2.7", "7471", &hints, &res), 0);
		CHECK(!res->ai_next && !res->ai_route_len);
		rdma_freeaddrinfo(res);
		hints.ai_flags = RAI_PASSIVE;
		CHECK_EQ(rdma_getaddrinfo("192.0.2.7", "7471", &hints, &res), 0);
		CHECK(!res->ai_next && !res->ai_route_len);
		rdma_freeaddrinfo(res);
		CHECK_EQ(fake.connections, 2);

		hints.ai_flags = 0;
		fake_stop();
	}
}

static void acm_no_source(void)
{
	struct sockaddr_in src = ip4("192.0.2.1", 99);
	struct rdma_addrinfo hints = {}, *res;
	struct ibv_path_record path = { .pkey = htobe16(0x1234) };

	/* no source address anywhere: the route, without an AF_IB entry */
	fake_start(ACM_NO_SOURCE, 0);
	CHECK_EQ(rdma_getaddrinfo("192.0.2.7", "7471", &hints, &res), 0);
	CHECK_EQ(res->ai_family, AF_INET);
	CHECK_EQ(res->ai_route_len, 2 * sizeof(struct ibv_path_data));
	CHECK(!res->ai_src_len && !res->ai_next);
	rdma_freeaddrinfo(res);

	/* the caller's source and path are part of the question */
	hints.ai_src_addr = (struct sockaddr *)&src;
	hints.ai_src_len = sizeof(src);
	hints.ai_route = &path;
	hints.ai_route_len = sizeof(path);
	CHECK_EQ(rdma_getaddrinfo("192.0.2.7", "7471", &hints, &res), 0);
	CHECK_EQ(fake.question_len, 16 + 3 * 72);
	CHECK_EQ(fake.question.entry[0].flags, ACM_FLAG_SOURCE);
	CHECK_EQ(fake.question.entry[0].addr[3], 1);
	CHECK_EQ(fake.question.entry[1].flags, ACM_FLAG_DEST);
	CHECK_EQ(fake.question.entry[2].type, ACM_TYPE_PATH);
	CHECK_EQ(be16toh(fake.question.entry[2].path.pkey), 0x1234);
	CHECK_EQ(res->ai_family, AF_IB);
	CHECK_EQ(be64toh(sib_of(res->ai_src_addr)->sib_sid),
		 RDMA_IB_IP_PS_TCP + 99);
	rdma_freeaddrinfo(res);
	fake_stop();
}

/* GIDs are asked for as a path. */
static void acm_gids(void)
{
	struct rdma_addrinfo hints = {
		.ai_flags = RAI_NUMERICHOST | RAI_FAMILY,
		.ai_family = AF_IB,
	}, *res;

	fake_start(ACM_NO_SOURCE, 0);
	CHECK_EQ(rdma_getaddrinfo("fe80::7", "7471", &hints, &res), 0);
	CHECK_EQ(fake.question_len, 16 + 72);
	CHECK_EQ(fake.question.entry[0].type, ACM_TYPE_PATH);
	CHECK_EQ(fake.question.entry[0].path.dgid.raw[15], 7);
	CHECK_EQ(res->ai_family, AF_IB);
	CHECK_EQ(res->ai_route_len, 2 * sizeof(struct ibv_path_data));
	CHECK(!res->ai_connect_len && !res->ai_next);
	rdma_freeaddrinfo(res);
	fake_stop();
}

/* Whatever ibacm does, the addresses come back, soon and without a route. */
static void acm_misbehaves(void)
{
	static const enum acm_mode modes[] = {
		ACM_NO_DATA, ACM_EMPTY, ACM_HANG, ACM_DRIP, ACM_CLOSE,
		ACM_SHORT, ACM_OTHER_TID, ACM_TOO_LONG, ACM_ODD_LENGTH,
	};
	struct rdma_addrinfo hints = {}, *res;
	int64_t start, took;
	size_t i;

	for (i = 0; i < COUNT(modes); i++) {
		int slow = modes[i] == ACM_HANG || modes[i] == ACM_DRIP;

		fake_start(modes[i], 0);
		if (slow)
			acm_timeout_ms = 500;
		start = acm_now();
		CHECK_EQ(rdma_getaddrinfo("192.0.2.7", "7471", &hints, &res), 0);
		took = acm_now() - start;
		if (took > 10000 || res->ai_next || res->ai_route_len)
			printf("# mode %d\n", modes[i]);
		CHECK(took < 10000);
		CHECK(!slow || took >= 500);
		CHECK(!res->ai_next && !res->ai_route_len && !res->ai_src_len);
		CHECK(is_ip4(res->ai_dst_addr, res->ai_dst_len, "192.0.2.7",
			     7471));
		rdma_freeaddrinfo(res);

		/* one that is too slow is not waited for again */
		CHECK_EQ(rdma_getaddrinfo("192.0.2.7", "7471", &hints, &res), 0);
		rdma_freeaddrinfo(res);
		CHECK_EQ(fake.connections, slow ? 1 : 2);
		fake_stop();
	}
}

static void acm_absent(void)
{
	struct rdma_addrinfo hints = {}, *res;

	acm_not_before = 0;
	acm_socket_path = "/nonexistent/sock";
	acm_port_path = "/nonexistent/port";
	errno = 1234;
	CHECK_EQ(rdma_getaddrinfo("192.0.2.7", "7471", &hints, &res), 0);
	CHECK(!res->ai_next && !res->ai_route_len);
	rdma_freeaddrinfo(res);
	/* it is looked for again, a little later */
	CHECK(acm_not_before > acm_now() && acm_not_before <= acm_now() + ACM_ABSENT_MS);
}

/* Each allocation that serves ibacm alone fails without anybody noticing. */
static void acm_no_memory(void)
{
	struct rdma_addrinfo hints = {}, *res;
	long before = live;
	int n;

	fake_start(ACM_ANSWER, 0);
	for (n = 4; n < 16; n++) {
		allocs = 0;
		fail_at = n;
		CHECK_EQ(rdma_getaddrinfo("192.0.2.7", "7471", &hints, &res), 0);
		fail_at = 0;
		CHECK(is_ip4(res->ai_family == AF_IB ? res->ai_next->ai_dst_addr :
						       res->ai_dst_addr,
			     sizeof(struct sockaddr_in), "192.0.2.7", 7471));
		rdma_freeaddrinfo(res);
		CHECK_EQ(live, before);
	}
	fake_stop();
}

/* Random answers, first over the socket, then many more to the parser. */
static void acm_fuzz(void)
{
	struct rdma_addrinfo hints = {}, *res, *ib;
	struct acm_message msg;
	int i, n, accepted = 0;
	size_t k;

	fake_start(ACM_GARBAGE, 0);
	for (i = 0; i < 300; i++) {
		CHECK_EQ(rdma_getaddrinfo("192.0.2.7", "7471", &hints, &res), 0);
		rdma_freeaddrinfo(res);
		acm_not_before = 0;
	}
	fake_stop();

	acm_socket_path = "/nonexistent/sock";
	for (i = 0; i < 100000; i++) {
		struct rdma_addrinfo rai = { .ai_family = AF_INET };
		uint64_t tid = 1;

		for (k = 0; k < sizeof(msg); k += 8) {
			uint64_t r = rnd();

			memcpy((char *)&msg + k, &r, 8);
		}
		/* mostly right headers and types, or nothing would pass */
		if (rnd() % 8)
			msg.hdr.version = ACM_VERSION;
		if (rnd() % 8)
			msg.hdr.opcode = ACM_OP_RESOLVE | ACM_OP_ACK;
		if (rnd() % 8)
			msg.hdr.status = 0;
		if (rnd() % 8)
			msg.hdr.tid = tid;
		if (rnd() % 8)
			msg.hdr.length = 16 + rnd() % 10 * 72;
		for (n = 0; n < ACM_MAX_ENTRIES; n++)
			if (rnd() % 4)
				msg.entry[n].type = rnd() % 3 ? ACM_TYPE_PATH :
					ACM_TYPE_IP4 + rnd() % 2;

		n = acm_reply_entries(&msg.hdr, tid);
		CHECK(n >= -1 && n <= ACM_MAX_ENTRIES);
		if (n < 0)
			continue;
		CHECK_EQ(msg.hdr.length, 16 + n * 72);
		accepted++;
		if (rnd() & 1) {
			struct sockaddr_in dst = ip4("192.0.2.7", 1);

			rdmaep_addrinfo_copy_addr(&rai.ai_dst_addr,
						  &rai.ai_dst_len,
						  (struct sockaddr *)&dst,
						  sizeof(dst));
		}
		acm_take_reply(&rai, &msg, n);
		CHECK(rai.ai_route_len <= n * sizeof(struct ibv_path_data));
		CHECK(!rai.ai_route == !rai.ai_route_len);
		ib = rai.ai_route_len ? acm_ib_entry(&rai) : NULL;
		rdma_freeaddrinfo(ib);
		test_free(rai.ai_src_addr);
		test_free(rai.ai_dst_addr);
		test_free(rai.ai_route);
	}
	CHECK(accepted > 10000);
}

#define TEST(name) { #name, name }

int main(void)
{
	static const struct {
		const char *name;
		void (*fn)(void);
	} tests[] = {
		TEST(arguments), TEST(ipv4), TEST(ipv6), TEST(no_hints),
		TEST(names), TEST(service_names), TEST(types), TEST(hint_addresses),
		TEST(af_ib), TEST(services), TEST(no_memory), TEST(acm_answers),
		TEST(acm_no_source), TEST(acm_gids), TEST(acm_misbehaves),
		TEST(acm_absent), TEST(acm_no_memory), TEST(acm_fuzz),
	};
	size_t i, n = COUNT(tests);
	int failed = 0;

	/* the tests of the first part are about this machine's ibacm, if any */
	acm_socket_path = "/nonexistent/sock";
	acm_port_path = "/nonexistent/port";

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("1..%zu\n", n);
	for (i = 0; i < n; i++) {
		failures = 0;
		slow_lookups = 0;
		tests[i].fn();
		if (live) {
			printf("# %ld allocations left\n", live);
			failures++;
			live = 0;
		}
		printf("%sok %zu - %s\n", failures ? "not " : "", i + 1,
		       tests[i].name);
		failed += !!failures;
	}
	return failed ? 1 : 0;
}
