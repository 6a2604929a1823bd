/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the tests of the ioctls share.
 *
 * Three layers: try_x() makes one call and returns 0 or a negative errno;
 * do_ok(try_x()) asserts that it succeeded, do_err(errno, reason, try_x())
 * asserts the exact failure; functions that take _metadata put several of
 * these together into a situation that tests start from.
 */
#ifndef RDMA_EP_UTILS_H
#define RDMA_EP_UTILS_H

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/netlink.h>
#include <rdma/rdma_ep.h>
#include <rdma/rdma_netlink.h>

#include "../../kernel/test.h"
#include "kselftest_harness.h"

/* An emulated machine with a debug kernel is slow: a test that hangs still ends */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	180

/* enum rdma_port_space, without librdmacm's header */
#define PS_IPOIB	0x0002
#define PS_TCP		0x0106
#define PS_UDP		0x0111
#define PS_IB		0x013f

/* For what takes no time at all, unless something is wrong */
#define RESOLVE_MS	20000

/* What the private data of each message may be on InfiniBand and RoCE */
#define RC_CONNECT_DATA	56
#define RC_ACCEPT_DATA	196
#define RC_REJECT_DATA	148
#define UD_CONNECT_DATA	180
#define UD_ACCEPT_DATA	136

/* Why the last call failed: thread-local, since some tests have threads */
static __thread struct rdma_ep_reason ep_reason;

#define EP_HDR(cmd, f)							\
	{ .size = sizeof(cmd), .flags = (f),				\
	  .reason_uptr = (uintptr_t)&ep_reason }

#define UPTR(p)		((uintptr_t)(p))

#define do_ok(call)							\
	do {								\
		int ret_ = (call);					\
									\
		ASSERT_EQ(0, ret_)					\
			TH_LOG(#call ": %s: reason %u: %s",		\
			       strerror(-ret_), ep_reason.code,		\
			       ep_reason.text);				\
	} while (0)

/* @why: the end of a name in enum rdma_ep_reason_code */
#define do_err(err, why, call)						\
	do {								\
		int ret_ = (call);					\
									\
		ASSERT_EQ(-(err), ret_)					\
			TH_LOG(#call ": %s instead of %s: reason %u: %s", \
			       strerror(-ret_), strerror(err),		\
			       ep_reason.code, ep_reason.text);		\
		EXPECT_EQ(RDMA_EP_REASON_##why, ep_reason.code)		\
			TH_LOG(#call ": text: %s", ep_reason.text);	\
	} while (0)

/* One door to the module: 0 or a negative errno, like inside the kernel */
static inline int ep_ioctl(int fd, unsigned long cmd, void *arg)
{
	int ret;

	memset(&ep_reason, 0, sizeof(ep_reason));
	ret = ioctl(fd, cmd, arg);
	if (ret > 0)
		return -EPROTO;	/* the uapi never returns a positive value */
	return ret ? -errno : 0;
}

/* Does a file have that text? -1: it cannot be read */
static inline int file_has(const char *path, const char *text)
{
	char buf[8192];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = read(fd, buf, sizeof(buf) - 1);
	close(fd);
	if (n < 0)
		return -1;
	buf[n] = 0;
	return !!strstr(buf, text);
}

/* How much slower than usual this kernel is: what the runner says */
static inline unsigned int slow(void)
{
	const char *val = getenv("SLOW");

	return val && atoi(val) > 0 ? atoi(val) : 1;
}

static inline uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ULL + ts.tv_nsec / 1000000;
}

/*
 * Addresses
 */

union test_addr {
	struct sockaddr sa;
	struct sockaddr_in sin;
	struct sockaddr_in6 sin6;
	struct sockaddr_storage ss;
};

static inline socklen_t addr_len(const union test_addr *a)
{
	switch (a->sa.sa_family) {
	case AF_INET:
		return sizeof(a->sin);
	case AF_INET6:
		return sizeof(a->sin6);
	default:
		return sizeof(a->sa);
	}
}

static inline uint16_t addr_port(const union test_addr *a)
{
	return ntohs(a->sa.sa_family == AF_INET6 ? a->sin6.sin6_port :
						   a->sin.sin_port);
}

static inline union test_addr make_addr(const char *text, uint16_t port)
{
	union test_addr a = {};

	if (inet_pton(AF_INET, text, &a.sin.sin_addr) == 1) {
		a.sin.sin_family = AF_INET;
		a.sin.sin_port = htons(port);
	} else if (inet_pton(AF_INET6, text, &a.sin6.sin6_addr) == 1) {
		a.sin6.sin6_family = AF_INET6;
		a.sin6.sin6_port = htons(port);
	}
	return a;
}

static inline const char *env_or(const char *name, const char *other)
{
	const char *val = getenv(name);

	return val && *val ? val : other;
}

/* Has the long form been asked for (tools/check --long)? */
static inline bool is_long(void)
{
	return *env_or("RDMA_EP_LONG", "");
}

/*
 * How long races go on, in seconds. The debug kernel is where they find most,
 * so there they get more than a moment.
 */
static inline unsigned int race_seconds(void)
{
	const char *val = env_or("RDMA_EP_RACE_SECONDS", "");
	bool debug = !strcmp(env_or("KERNEL", ""), "debug");

	if (*val)
		return atoi(val);
	if (is_long())
		return debug ? 600 : 60;
	return debug ? 60 : 5;
}

/* An address of this machine with an RDMA device behind it */
static inline union test_addr host_addr(int family, uint16_t port)
{
	return family == AF_INET6 ?
		make_addr(env_or("MY_IP6", "fd77::1"), port) :
		make_addr(env_or("MY_IP", "10.77.0.1"), port);
}

/* An address in the same network that nobody has */
static inline union test_addr nobody_addr(int family, uint16_t port)
{
	union test_addr a = host_addr(family, port);

	if (family == AF_INET6)
		a.sin6.sin6_addr.s6_addr[15] = 0xee;
	else
		a.sin.sin_addr.s_addr = (a.sin.sin_addr.s_addr &
					 htonl(0xffffff00)) | htonl(0xee);
	return a;
}

static inline union test_addr any_addr(int family, uint16_t port)
{
	return make_addr(family == AF_INET6 ? "::" : "0.0.0.0", port);
}

/* Name of the netdev that has host_addr(AF_INET), or NULL */
static inline const char *host_netdev(void)
{
	union test_addr host = host_addr(AF_INET, 0);
	static char name[IF_NAMESIZE];
	struct ifaddrs *list, *i;

	if (getifaddrs(&list))
		return NULL;
	name[0] = 0;
	for (i = list; i; i = i->ifa_next) {
		struct sockaddr_in *sin = (void *)i->ifa_addr;

		if (sin && sin->sin_family == AF_INET &&
		    sin->sin_addr.s_addr == host.sin.sin_addr.s_addr)
			strncpy(name, i->ifa_name, sizeof(name) - 1);
	}
	freeifaddrs(list);
	return name[0] ? name : NULL;
}

/*
 * Let that netdev ask for neighbours, or not. A dummy device does not by
 * itself; when it does, an address that nobody has stays unresolved.
 */
static inline int host_netdev_arp(bool on)
{
	int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	const char *name = host_netdev();
	struct ifreq ifr = {};
	int ret = -1;

	if (sock < 0 || !name)
		goto out;
	memccpy(ifr.ifr_name, name, 0, sizeof(ifr.ifr_name) - 1);
	if (ioctl(sock, SIOCGIFFLAGS, &ifr))
		goto out;
	ifr.ifr_flags = on ? ifr.ifr_flags & ~IFF_NOARP :
			     ifr.ifr_flags | IFF_NOARP;
	ret = ioctl(sock, SIOCSIFFLAGS, &ifr);
out:
	if (sock >= 0)
		close(sock);
	return ret;
}

/* The link-local address of that netdev, with its scope id; false if none */
static inline bool link_local_addr(union test_addr *a)
{
	const char *netdev = host_netdev();
	struct ifaddrs *list, *i;
	bool found = false;

	if (!netdev || getifaddrs(&list))
		return false;
	for (i = list; i && !found; i = i->ifa_next) {
		struct sockaddr_in6 *sin6 = (void *)i->ifa_addr;

		if (!sin6 || sin6->sin6_family != AF_INET6 ||
		    strcmp(i->ifa_name, netdev) ||
		    !IN6_IS_ADDR_LINKLOCAL(&sin6->sin6_addr))
			continue;
		memset(a, 0, sizeof(*a));
		a->sin6 = *sin6;
		found = true;
	}
	freeifaddrs(list);
	return found;
}

static inline struct rdma_ep_addr ep_addr(const union test_addr *a)
{
	struct rdma_ep_addr out = {};

	if (a) {
		out.len = addr_len(a);
		memcpy(out.sa, a, out.len);
	}
	return out;
}

static inline union test_addr from_ep_addr(const struct rdma_ep_addr *a)
{
	union test_addr out = {};

	memcpy(&out, a->sa, a->len < sizeof(a->sa) ? a->len : sizeof(a->sa));
	return out;
}

/*
 * One function per command
 */

static inline int try_get_info(int fd, struct rdma_ep_get_info *cmd)
{
	*cmd = (struct rdma_ep_get_info){ .hdr = EP_HDR(*cmd, 0) };
	return ep_ioctl(fd, RDMA_EP_GET_INFO, cmd);
}

static inline int try_create_channel(int fd, int file_flags, int *channel)
{
	struct rdma_ep_create_channel cmd = {
		.hdr = EP_HDR(cmd, 0),
		.file_flags = file_flags,
	};
	int ret = ep_ioctl(fd, RDMA_EP_CREATE_CHANNEL, &cmd);

	*channel = ret ? -1 : cmd.out_fd;
	return ret;
}

static inline int try_create(int fd, uint32_t ps, int channel, uint64_t cookie,
			     uint32_t *ep)
{
	struct rdma_ep_create cmd = {
		.hdr = EP_HDR(cmd, 0),
		.cookie = cookie,
		.port_space = ps,
		.channel = channel,
	};
	int ret = ep_ioctl(fd, RDMA_EP_CREATE, &cmd);

	*ep = ret ? 0 : cmd.out_ep;
	return ret;
}

static inline int try_create_ep(int fd, uint32_t flags, uint32_t ps,
				const union test_addr *src,
				const union test_addr *dst,
				struct rdma_ep_record *rec, uint32_t *ep)
{
	struct rdma_ep_create_ep cmd = {
		.hdr = EP_HDR(cmd, flags),
		.port_space = ps,
		.channel = -1,
		.timeout_ms = RESOLVE_MS,
		.src = ep_addr(src),
		.dst = ep_addr(dst),
		.record_uptr = UPTR(rec),
		.record_len = rec ? sizeof(*rec) : 0,
	};
	int ret = ep_ioctl(fd, RDMA_EP_CREATE_EP, &cmd);

	*ep = ret ? 0 : cmd.out_ep;
	return ret;
}

static inline int try_destroy(int fd, uint32_t ep)
{
	struct rdma_ep_destroy cmd = { .hdr = EP_HDR(cmd, 0), .ep = ep };

	return ep_ioctl(fd, RDMA_EP_DESTROY, &cmd);
}

static inline int try_bind(int fd, uint32_t ep, const union test_addr *addr,
			   struct rdma_ep_record *rec)
{
	struct rdma_ep_bind cmd = {
		.hdr = EP_HDR(cmd, 0),
		.ep = ep,
		.record_len = rec ? sizeof(*rec) : 0,
		.record_uptr = UPTR(rec),
		.addr = ep_addr(addr),
	};

	return ep_ioctl(fd, RDMA_EP_BIND, &cmd);
}

static inline int try_resolve_addr(int fd, uint32_t ep, uint32_t flags,
				   const union test_addr *src,
				   const union test_addr *dst,
				   uint32_t timeout_ms,
				   struct rdma_ep_record *rec)
{
	struct rdma_ep_resolve_addr cmd = {
		.hdr = EP_HDR(cmd, flags),
		.ep = ep,
		.timeout_ms = timeout_ms,
		.src = ep_addr(src),
		.dst = ep_addr(dst),
		.record_uptr = UPTR(rec),
		.record_len = rec ? sizeof(*rec) : 0,
	};

	return ep_ioctl(fd, RDMA_EP_RESOLVE_ADDR, &cmd);
}

static inline int try_resolve_route(int fd, uint32_t ep, uint32_t flags,
				    struct rdma_ep_record *rec)
{
	struct rdma_ep_resolve_route cmd = {
		.hdr = EP_HDR(cmd, flags),
		.ep = ep,
		.timeout_ms = RESOLVE_MS,
		.record_uptr = UPTR(rec),
		.record_len = rec ? sizeof(*rec) : 0,
	};

	return ep_ioctl(fd, RDMA_EP_RESOLVE_ROUTE, &cmd);
}

static inline int try_listen(int fd, uint32_t ep, uint32_t backlog,
			     struct rdma_ep_record *rec)
{
	struct rdma_ep_listen cmd = {
		.hdr = EP_HDR(cmd, 0),
		.ep = ep,
		.backlog = backlog,
		.record_uptr = UPTR(rec),
		.record_len = rec ? sizeof(*rec) : 0,
	};

	return ep_ioctl(fd, RDMA_EP_LISTEN, &cmd);
}

static inline int try_connect_or_accept(int fd, unsigned long nr, uint32_t ep,
					uint32_t flags,
					const struct rdma_ep_conn_param *param,
					struct rdma_ep_record *rec)
{
	struct rdma_ep_connect cmd = {
		.hdr = EP_HDR(cmd, flags),
		.ep = ep,
		.record_len = rec ? sizeof(*rec) : 0,
		.record_uptr = UPTR(rec),
		.param = *param,
	};

	return ep_ioctl(fd, nr, &cmd);
}

static inline int try_connect(int fd, uint32_t ep, uint32_t flags,
			      const struct rdma_ep_conn_param *param,
			      struct rdma_ep_record *rec)
{
	return try_connect_or_accept(fd, RDMA_EP_CONNECT, ep, flags, param, rec);
}

static inline int try_accept(int fd, uint32_t ep, uint32_t flags,
			     const struct rdma_ep_conn_param *param,
			     struct rdma_ep_record *rec)
{
	return try_connect_or_accept(fd, RDMA_EP_ACCEPT, ep, flags, param, rec);
}

static inline int try_establish(int fd, uint32_t ep)
{
	struct rdma_ep_establish cmd = { .hdr = EP_HDR(cmd, 0), .ep = ep };

	return ep_ioctl(fd, RDMA_EP_ESTABLISH, &cmd);
}

static inline int try_reject(int fd, uint32_t ep, uint32_t reason,
			     const void *data, size_t len)
{
	struct rdma_ep_reject cmd = {
		.hdr = EP_HDR(cmd, 0),
		.ep = ep,
		.reason = reason,
		.private_data_uptr = UPTR(data),
		.private_data_len = len,
	};

	return ep_ioctl(fd, RDMA_EP_REJECT, &cmd);
}

static inline int try_disconnect(int fd, uint32_t ep, uint32_t flags,
				 struct rdma_ep_record *rec)
{
	struct rdma_ep_disconnect cmd = {
		.hdr = EP_HDR(cmd, flags),
		.ep = ep,
		.record_len = rec ? sizeof(*rec) : 0,
		.record_uptr = UPTR(rec),
	};

	return ep_ioctl(fd, RDMA_EP_DISCONNECT, &cmd);
}

static inline int try_query(int fd, uint32_t ep, uint32_t parts,
			    struct rdma_ep_record *rec)
{
	struct rdma_ep_query cmd = {
		.hdr = EP_HDR(cmd, 0),
		.ep = ep,
		.parts = parts,
		.record_uptr = UPTR(rec),
		.record_len = sizeof(*rec),
	};

	return ep_ioctl(fd, RDMA_EP_QUERY, &cmd);
}

static inline int try_init_qp_attr(int fd, uint32_t ep, uint32_t qp_state,
				   struct ib_uverbs_qp_attr *attr)
{
	struct rdma_ep_init_qp_attr cmd = {
		.hdr = EP_HDR(cmd, 0),
		.ep = ep,
		.qp_state = qp_state,
		.attr_uptr = UPTR(attr),
	};

	return ep_ioctl(fd, RDMA_EP_INIT_QP_ATTR, &cmd);
}

static inline int try_attach(int fd, uint32_t ep, int channel)
{
	struct rdma_ep_attach cmd = {
		.hdr = EP_HDR(cmd, 0),
		.ep = ep,
		.channel = channel,
	};

	return ep_ioctl(fd, RDMA_EP_ATTACH, &cmd);
}

static inline int try_wait(int fd, uint32_t ep, uint32_t flags,
			   struct rdma_ep_record *rec)
{
	struct rdma_ep_wait cmd = {
		.hdr = EP_HDR(cmd, flags),
		.ep = ep,
		.record_len = sizeof(*rec),
		.record_uptr = UPTR(rec),
		.child_channel = -1,
	};

	return ep_ioctl(fd, RDMA_EP_WAIT, &cmd);
}

static inline int try_notify(int fd, uint32_t ep, uint32_t event)
{
	struct rdma_ep_notify cmd = {
		.hdr = EP_HDR(cmd, 0),
		.ep = ep,
		.event = event,
	};

	return ep_ioctl(fd, RDMA_EP_NOTIFY, &cmd);
}

static inline int try_join(int fd, uint32_t ep, uint32_t join_flags,
			   const union test_addr *addr, uint64_t cookie,
			   uint32_t *group)
{
	struct rdma_ep_join cmd = {
		.hdr = EP_HDR(cmd, 0),
		.ep = ep,
		.join_flags = join_flags,
		.cookie = cookie,
		.addr = ep_addr(addr),
	};
	int ret = ep_ioctl(fd, RDMA_EP_JOIN, &cmd);

	*group = ret ? 0 : cmd.out_group;
	return ret;
}

static inline int try_leave(int fd, uint32_t ep, uint32_t group,
			    uint32_t *discarded)
{
	struct rdma_ep_leave cmd = {
		.hdr = EP_HDR(cmd, 0),
		.ep = ep,
		.group = group,
	};
	int ret = ep_ioctl(fd, RDMA_EP_LEAVE, &cmd);

	if (!ret && discarded)
		*discarded = cmd.out_discarded;
	return ret;
}

static inline int try_set_option(int fd, uint32_t ep, uint32_t name,
				 const void *val, uint32_t len)
{
	struct rdma_ep_option cmd = {
		.hdr = EP_HDR(cmd, 0),
		.ep = ep,
		.name = name,
		.value_uptr = UPTR(val),
		.value_len = len,
	};

	return ep_ioctl(fd, RDMA_EP_SET_OPTION, &cmd);
}

static inline int try_get_option(int fd, uint32_t ep, uint32_t name,
				 void *val, uint32_t len)
{
	struct rdma_ep_option cmd = {
		.hdr = EP_HDR(cmd, 0),
		.ep = ep,
		.name = name,
		.value_uptr = UPTR(val),
		.value_len = len,
	};

	return ep_ioctl(fd, RDMA_EP_GET_OPTION, &cmd);
}

static inline int try_write_event(int fd, uint32_t ep, int32_t status,
				  uint64_t arg)
{
	struct rdma_ep_write_event cmd = {
		.hdr = EP_HDR(cmd, 0),
		.ep = ep,
		.event = RDMA_EP_EVENT_USER,
		.status = status,
		.arg = arg,
	};

	return ep_ioctl(fd, RDMA_EP_WRITE_EVENT, &cmd);
}

/*
 * Records
 */

static inline const char *event_name(uint32_t type)
{
	static const char *const name[] = {
		[RDMA_EP_EVENT_ADDR_RESOLVED]	 = "ADDR_RESOLVED",
		[RDMA_EP_EVENT_ADDR_ERROR]	 = "ADDR_ERROR",
		[RDMA_EP_EVENT_ROUTE_RESOLVED]	 = "ROUTE_RESOLVED",
		[RDMA_EP_EVENT_ROUTE_ERROR]	 = "ROUTE_ERROR",
		[RDMA_EP_EVENT_CONNECT_REQUEST]	 = "CONNECT_REQUEST",
		[RDMA_EP_EVENT_CONNECT_RESPONSE] = "CONNECT_RESPONSE",
		[RDMA_EP_EVENT_CONNECT_ERROR]	 = "CONNECT_ERROR",
		[RDMA_EP_EVENT_UNREACHABLE]	 = "UNREACHABLE",
		[RDMA_EP_EVENT_REJECTED]	 = "REJECTED",
		[RDMA_EP_EVENT_ESTABLISHED]	 = "ESTABLISHED",
		[RDMA_EP_EVENT_DISCONNECTED]	 = "DISCONNECTED",
		[RDMA_EP_EVENT_DEVICE_REMOVAL]	 = "DEVICE_REMOVAL",
		[RDMA_EP_EVENT_MULTICAST_JOIN]	 = "MULTICAST_JOIN",
		[RDMA_EP_EVENT_MULTICAST_ERROR]	 = "MULTICAST_ERROR",
		[RDMA_EP_EVENT_ADDR_CHANGE]	 = "ADDR_CHANGE",
		[RDMA_EP_EVENT_TIMEWAIT_EXIT]	 = "TIMEWAIT_EXIT",
		[RDMA_EP_EVENT_ADDRINFO_RESOLVED] = "ADDRINFO_RESOLVED",
		[RDMA_EP_EVENT_ADDRINFO_ERROR]	 = "ADDRINFO_ERROR",
		[RDMA_EP_EVENT_USER]		 = "USER",
		[RDMA_EP_EVENT_NONE]		 = "NONE",
	};

	return type < ARRAY_SIZE(name) && name[type] ? name[type] : "?";
}

#define EXPECT_EVENT(event, rec)					\
	EXPECT_EQ(RDMA_EP_EVENT_##event, (rec)->type)			\
		TH_LOG("got %s, status %d", event_name((rec)->type),	\
		       (rec)->status)

#define ASSERT_EVENT(event, rec)					\
	ASSERT_EQ(RDMA_EP_EVENT_##event, (rec)->type)			\
		TH_LOG("got %s, status %d", event_name((rec)->type),	\
		       (rec)->status)

static inline bool is_filled(const void *mem, size_t len, uint8_t byte)
{
	const uint8_t *p = mem;

	while (len--)
		if (*p++ != byte)
			return false;
	return true;
}

/* Where a record with these parts ends: the shortest has parameters and ah */
static inline size_t record_end(const struct rdma_ep_record *rec)
{
	if (rec->flags & RDMA_EP_REC_RTS)
		return sizeof(*rec);
	if (rec->flags & RDMA_EP_REC_RTR)
		return offsetof(struct rdma_ep_record, attr[RDMA_EP_ATTR_RTS]);
	if (rec->flags & RDMA_EP_REC_INIT)
		return offsetof(struct rdma_ep_record, attr[RDMA_EP_ATTR_RTR]);
	if (rec->flags & RDMA_EP_REC_INFO)
		return offsetof(struct rdma_ep_record, attr[RDMA_EP_ATTR_INIT]);
	if (rec->flags & RDMA_EP_REC_DATA)
		return offsetof(struct rdma_ep_record, info);
	return offsetof(struct rdma_ep_record, private_data);
}

/*
 * What must hold for every record, whatever it reports. Returns what does
 * not, or NULL.
 */
static inline const char *record_fault(const struct rdma_ep_record *rec)
{
	const uint32_t known = RDMA_EP_REC_PARAM | RDMA_EP_REC_UD |
			       RDMA_EP_REC_DATA | RDMA_EP_REC_INFO |
			       RDMA_EP_REC_INIT | RDMA_EP_REC_RTR |
			       RDMA_EP_REC_RTS | RDMA_EP_REC_NO_DATA;
	const struct {
		uint32_t flag;
		size_t off;
		size_t end;
		const char *fault;
	} parts[] = {
#define PART(flag, first, next, name)					\
		{ RDMA_EP_REC_##flag,					\
		  offsetof(struct rdma_ep_record, first),		\
		  offsetof(struct rdma_ep_record, next),		\
		  name " is there without its flag" }
		PART(DATA, private_data, info, "private_data"),
		PART(INFO, info, attr[0], "info"),
		PART(INIT, attr[0], attr[1], "attr[INIT]"),
		PART(RTR, attr[1], attr[2], "attr[RTR]"),
		PART(RTS, attr[2], attr[3], "attr[RTS]"),
#undef PART
	};
	const uint8_t *bytes = (const void *)rec;
	size_t i;

	if (rec->size % 8 || rec->size > sizeof(*rec))
		return "size is not a multiple of 8 within the struct";
	if (rec->size != record_end(rec))
		return "size is not where the last part ends";
	if (rec->flags & ~known)
		return "unknown flags";
	if (rec->reserved)
		return "reserved is not 0";
	if (!rec->private_data_len != !(rec->flags & RDMA_EP_REC_DATA) &&
	    !(rec->flags & RDMA_EP_REC_NO_DATA))
		return "private_data_len and its flag disagree";
	for (i = 0; i < ARRAY_SIZE(parts); i++) {
		size_t end = parts[i].end < rec->size ? parts[i].end : rec->size;

		if (!(rec->flags & parts[i].flag) && parts[i].off < end &&
		    !is_filled(bytes + parts[i].off, end - parts[i].off, 0))
			return parts[i].fault;
	}
	if ((rec->flags & RDMA_EP_REC_DATA) &&
	    !is_filled(rec->private_data + rec->private_data_len,
		       sizeof(rec->private_data) - rec->private_data_len, 0))
		return "bytes after private_data_len are not 0";
	if (!(rec->flags & RDMA_EP_REC_PARAM) &&
	    !is_filled(&rec->qp_num, offsetof(struct rdma_ep_record, private_data_len) -
		       offsetof(struct rdma_ep_record, qp_num), 0))
		return "parameters are there without their flag";
	if (!(rec->flags & RDMA_EP_REC_UD) &&
	    !is_filled(&rec->ah, sizeof(rec->ah), 0))
		return "ah is there without its flag";
	for (i = 0; i < RDMA_EP_ATTRS; i++)
		if ((rec->flags & (RDMA_EP_REC_INIT << i)) &&
		    (!is_filled(rec->attr[i].reserved,
				sizeof(rec->attr[i].reserved), 0) ||
		     rec->attr[i].ah_attr.reserved ||
		     rec->attr[i].alt_ah_attr.reserved))
			return "reserved bytes of attr are not 0";
	if ((rec->flags & RDMA_EP_REC_INFO) &&
	    (rec->info.src.reserved || rec->info.dst.reserved ||
	     rec->info.reserved))
		return "reserved bytes of info are not 0";
	return NULL;
}

#define EXPECT_GOOD_RECORD(rec)						\
	do {								\
		const char *fault_ = record_fault(rec);			\
									\
		EXPECT_EQ(NULL, fault_)					\
			TH_LOG("%s, size %u, flags 0x%x: %s",		\
			       event_name((rec)->type), (rec)->size,	\
			       (rec)->flags, fault_);			\
	} while (0)

/* Take the next event of an endpoint, which must be @type */
static inline void wait_event(struct __test_metadata *_metadata, int fd,
			      uint32_t ep, uint32_t type,
			      struct rdma_ep_record *rec)
{
	memset(rec, 0, sizeof(*rec));
	do_ok(try_wait(fd, ep, 0, rec));
	ASSERT_EQ(type, rec->type)
		TH_LOG("expected %s, got %s with status %d", event_name(type),
		       event_name(rec->type), rec->status);
	EXPECT_GOOD_RECORD(rec);
}

/* Nothing is, and after @ms nothing has become, readable at the endpoint */
static inline void expect_silence(struct __test_metadata *_metadata, int fd,
				  uint32_t ep, int ms)
{
	struct rdma_ep_record rec = {};
	int ret;

	usleep(ms * 1000);
	ret = try_wait(fd, ep, RDMA_EP_WAIT_NOWAIT, &rec);
	EXPECT_EQ(-EAGAIN, ret)
		TH_LOG("unexpected event %s", event_name(rec.type));
}

/* Read one record from a channel */
static inline int try_read(int channel, struct rdma_ep_record *rec)
{
	ssize_t n;

	memset(rec, 0, sizeof(*rec));
	n = read(channel, rec, sizeof(*rec));
	if (n < 0)
		return -errno;
	return n == rec->size ? 0 : -EPROTO;
}

static inline void read_event(struct __test_metadata *_metadata, int channel,
			      uint32_t type, struct rdma_ep_record *rec)
{
	do_ok(try_read(channel, rec));
	ASSERT_EQ(type, rec->type)
		TH_LOG("expected %s, got %s with status %d", event_name(type),
		       event_name(rec->type), rec->status);
	EXPECT_GOOD_RECORD(rec);
}

static inline bool is_readable(int fd, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, timeout_ms) == 1 && (p.revents & POLLIN);
}

/*
 * Has anything leaked? Open files of this process, and what the RDMA core
 * counts of all devices.
 */

struct leak_count {
	int fds;
	unsigned long cm_ids;
	unsigned long qps;
	unsigned long pds;
};

static inline int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	if (!dir)
		return -1;
	while (readdir(dir))
		count++;
	closedir(dir);
	return count - 3;	/* ".", ".." and the directory itself */
}

static inline void add_summary(const char *attrs, size_t len,
			       struct leak_count *count)
{
	const char *name = "";
	uint64_t curr = 0;

	while (len >= NLA_HDRLEN) {
		const struct nlattr *nla = (const void *)attrs;
		size_t step = NLA_ALIGN(nla->nla_len);
		const char *data = attrs + NLA_HDRLEN;

		if (nla->nla_len < NLA_HDRLEN || step > len)
			break;
		switch (nla->nla_type & NLA_TYPE_MASK) {
		case RDMA_NLDEV_ATTR_RES_SUMMARY:
		case RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY:
			add_summary(data, nla->nla_len - NLA_HDRLEN, count);
			break;
		case RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME:
			name = data;
			break;
		case RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR:
			memcpy(&curr, data, sizeof(curr));
			break;
		}
		attrs += step;
		len -= step;
	}
	if (!strcmp(name, "cm_id"))
		count->cm_ids += curr;
	else if (!strcmp(name, "qp"))
		count->qps += curr;
	else if (!strcmp(name, "pd"))
		count->pds += curr;
}

static inline int count_resources(struct leak_count *count)
{
	struct nlmsghdr req = {
		.nlmsg_len = NLMSG_LENGTH(0),
		.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV,
					       RDMA_NLDEV_CMD_RES_GET),
		.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
	};
	char buf[16384] __attribute__((aligned(NLMSG_ALIGNTO)));
	int sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
	bool done = false;
	int ret = -1;

	memset(count, 0, sizeof(*count));
	count->fds = count_fds() - (sock >= 0);
	if (sock < 0)
		return -1;
	if (send(sock, &req, req.nlmsg_len, 0) != (ssize_t)req.nlmsg_len)
		goto out;
	while (!done) {
		ssize_t n = recv(sock, buf, sizeof(buf), 0);
		struct nlmsghdr *nlh = (void *)buf;

		if (n <= 0)
			goto out;
		for (; NLMSG_OK(nlh, n); nlh = NLMSG_NEXT(nlh, n)) {
			if (nlh->nlmsg_type == NLMSG_ERROR)
				goto out;
			if (nlh->nlmsg_type == NLMSG_DONE) {
				done = true;
				break;
			}
			add_summary(NLMSG_DATA(nlh),
				    NLMSG_PAYLOAD(nlh, 0), count);
		}
	}
	ret = 0;
out:
	close(sock);
	return ret;
}

/*
 * A context and what there was before it
 */

struct test_ctx {
	int fd;
	struct leak_count before;
	struct rdma_ep_test_count objects;
	unsigned int kept;	/* ib_cm_kept() */
	/*
	 * A ring that ends with requests gives back what they have kept, the file
	 * too, when it comes to it: close() may not be the last.
	 */
	bool closed_later;
};

static inline int open_ep(void)
{
	return open(RDMA_EP_DEVICE, O_RDWR | O_CLOEXEC);
}

/* Was the module built with its test code, which has commands of its own? */
static inline bool has_test_code(int fd)
{
	struct rdma_ep_test_count count;

	return !ioctl(fd, RDMA_EP_TEST_COUNT, &count);
}

/* Objects of the module, where it was built with its test code */
static inline int count_objects(struct rdma_ep_test_count *count)
{
	int fd = open_ep();
	int ret;

	memset(count, 0, sizeof(*count));
	if (fd < 0)
		return -errno;
	ret = ioctl(fd, RDMA_EP_TEST_COUNT, count) ? -errno : 0;
	count->contexts -= !ret;
	close(fd);
	return ret == -ENOTTY ? 0 : ret;
}

/*
 * ib_cm may keep an id for some 66 s when a notify and a reject or disconnect of
 * the peer's meet, and with it what comes after that in the same close, or the
 * device's removal: see Documentation/reliability.rst. Kernels from 6.10 on, and
 * some before, tell.
 */
static inline unsigned int ib_cm_kept(void)
{
	static char log[1 << 20];
	int len = klogctl(3, log, sizeof(log) - 1);
	const char *pos = log;
	unsigned int n = 0;

	log[len > 0 ? len : 0] = 0;
	while ((pos = strstr(pos, "cm_destroy_id_wait_timeout: cm_id="))) {
		pos++;
		n++;
	}
	return n;
}

static inline void ctx_open(struct __test_metadata *_metadata,
			    struct test_ctx *ctx)
{
	ASSERT_EQ(0, count_resources(&ctx->before))
		TH_LOG("NETLINK_RDMA: %s", strerror(errno));
	ASSERT_EQ(0, count_objects(&ctx->objects));
	ctx->kept = ib_cm_kept();
	ctx->fd = open_ep();
	ASSERT_LE(0, ctx->fd)
		TH_LOG("%s: %s", RDMA_EP_DEVICE, strerror(errno));
}

/*
 * Close the context, with whatever the test has left in it, and ask whether
 * all has gone. Channels are files of their own: the test closes them.
 *
 * For teardown, which the harness repeats when an assertion fails in it: so
 * there is none.
 */
static inline void ctx_close(struct __test_metadata *_metadata,
			     struct test_ctx *ctx)
{
	struct rdma_ep_test_count objects;
	struct leak_count now = {};
	int i;

	if (ctx->fd >= 0) {
		EXPECT_EQ(0, close(ctx->fd));
	}
	if (!_metadata->passed)
		return;		/* it has said what is wrong */
	for (i = 0; i < 50; i++) {
		EXPECT_EQ(0, count_resources(&now));
		if (now.cm_ids == ctx->before.cm_ids)
			break;
		usleep(100000);
	}
	EXPECT_EQ(ctx->before.cm_ids, now.cm_ids);
	EXPECT_TRUE(!i || ctx->closed_later)
		TH_LOG("cm_ids went only after the close had returned");
	EXPECT_EQ(ctx->before.qps, now.qps);
	EXPECT_EQ(ctx->before.pds, now.pds);
	EXPECT_EQ(ctx->before.fds, now.fds);
	EXPECT_EQ(0, count_objects(&objects));
	for (i = 0; memcmp(&objects, &ctx->objects, sizeof(objects)); i++) {
		if (i == 80 * slow() || (ib_cm_kept() == ctx->kept && !ctx->closed_later))
			break;
		sleep(1);
		EXPECT_EQ(0, count_objects(&objects));
	}
	if (i)
		printf("# %s for %d s\n", ctx->closed_later ? "the file was kept" :
							      "ib_cm kept an id", i);
	EXPECT_EQ(ctx->objects.contexts, objects.contexts);
	EXPECT_EQ(ctx->objects.endpoints, objects.endpoints);
	EXPECT_EQ(ctx->objects.channels, objects.channels);
	EXPECT_EQ(ctx->objects.events, objects.events);
}

static inline uint32_t count_endpoints(struct __test_metadata *_metadata,
				       int fd)
{
	struct rdma_ep_get_info info;

	do_ok(try_get_info(fd, &info));
	return info.out_endpoints;
}

static inline uint32_t ep_state(struct __test_metadata *_metadata, int fd,
				uint32_t ep)
{
	struct rdma_ep_record rec = {};

	do_ok(try_query(fd, ep, RDMA_EP_REC_INFO, &rec));
	return rec.info.state;
}

/*
 * Situations
 */

/*
 * QP numbers that no QP has. The two ends must have different ones, and one
 * that is in timewait must not come again, or ib_cm rejects with STALE_CONN.
 */
static atomic_uint *next_fake_qpn;

/* One counter for this process and its children: chosen by chance, two of 4,000 would be equal */
__attribute__((constructor)) static void fake_qpn_init(void)
{
	unsigned int first;

	next_fake_qpn = mmap(NULL, sizeof(*next_fake_qpn), PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (next_fake_qpn == MAP_FAILED || getrandom(&first, sizeof(first), 0) != sizeof(first))
		abort();
	*next_fake_qpn = first;
}

static inline uint32_t fake_qpn(void)
{
	return 0x400000 | (atomic_fetch_add(next_fake_qpn, 1) & 0x3fffff);
}

static inline struct rdma_ep_conn_param conn_param(const void *data, size_t len)
{
	return (struct rdma_ep_conn_param){
		.private_data_uptr = UPTR(data),
		.private_data_len = len,
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = 7,
		.rnr_retry_count = 7,
		.qp_num = fake_qpn(),
	};
}

struct situation {
	int family;
	uint32_t ps;
	uint32_t listener;
	uint32_t active;
	uint32_t passive;
	union test_addr addr;	/* of the listener */
};

/* A listener on a free port of the host's address */
static inline void make_listener(struct __test_metadata *_metadata, int fd,
				 struct situation *s, uint32_t backlog)
{
	union test_addr addr = host_addr(s->family, 0);
	struct rdma_ep_record rec = {};

	do_ok(try_create(fd, s->ps, -1, 0x11, &s->listener));
	do_ok(try_bind(fd, s->listener, &addr, &rec));
	do_ok(try_listen(fd, s->listener, backlog, NULL));
	s->addr = from_ep_addr(&rec.info.src);
	ASSERT_NE(0, addr_port(&s->addr));
}

/* A resolved active endpoint whose destination is s->addr */
static inline uint32_t make_active(struct __test_metadata *_metadata, int fd,
				   struct situation *s)
{
	uint32_t ep = 0;

	do_ok(try_create_ep(fd, 0, s->ps, NULL, &s->addr, NULL, &ep));
	return ep;
}

static inline void make_request(struct __test_metadata *_metadata, int fd,
				struct situation *s)
{
	struct rdma_ep_conn_param param = conn_param(NULL, 0);
	struct rdma_ep_record rec;

	make_listener(_metadata, fd, s, 16);
	s->active = make_active(_metadata, fd, s);
	do_ok(try_connect(fd, s->active, 0, &param, NULL));
	wait_event(_metadata, fd, s->listener, RDMA_EP_EVENT_CONNECT_REQUEST,
		   &rec);
	s->passive = rec.child;
	ASSERT_NE(0, s->passive);
}

static inline void make_responded(struct __test_metadata *_metadata, int fd,
				  struct situation *s)
{
	struct rdma_ep_conn_param param = conn_param(NULL, 0);
	struct rdma_ep_record rec;

	make_request(_metadata, fd, s);
	do_ok(try_accept(fd, s->passive, 0, &param, NULL));
	wait_event(_metadata, fd, s->active, RDMA_EP_EVENT_CONNECT_RESPONSE,
		   &rec);
}

static inline void make_connected(struct __test_metadata *_metadata, int fd,
				  struct situation *s)
{
	struct rdma_ep_record rec;

	make_responded(_metadata, fd, s);
	do_ok(try_establish(fd, s->active));
	wait_event(_metadata, fd, s->passive, RDMA_EP_EVENT_ESTABLISHED, &rec);
}

/*
 * The other end, as a well-behaved program: answers a response by
 * establishing, a disconnect by disconnecting. Ends when its endpoint is
 * destroyed.
 */
struct peer {
	pthread_t thread;
	int fd;
	uint32_t ep;
	int ret;
};

static inline void *peer_thread(void *arg)
{
	struct peer *p = arg;
	struct rdma_ep_record rec;

	while (!(p->ret = try_wait(p->fd, p->ep, 0, &rec))) {
		if (rec.type == RDMA_EP_EVENT_CONNECT_RESPONSE)
			try_establish(p->fd, p->ep);
		else if (rec.type == RDMA_EP_EVENT_DISCONNECTED)
			try_disconnect(p->fd, p->ep, 0, NULL);
	}
	return NULL;
}

static inline void peer_start(struct __test_metadata *_metadata, struct peer *p,
			      int fd, uint32_t ep)
{
	p->fd = fd;
	p->ep = ep;
	ASSERT_EQ(0, pthread_create(&p->thread, NULL, peer_thread, p));
}

/* Destroys the peer's endpoint, which ends its wait */
static inline void peer_stop(struct __test_metadata *_metadata, struct peer *p)
{
	EXPECT_EQ(0, try_destroy(p->fd, p->ep));
	EXPECT_EQ(0, pthread_join(p->thread, NULL));
	/* the wait was cut short, or the thread was not waiting just then */
	EXPECT_TRUE(p->ret == -ECANCELED || p->ret == -ENOENT)
		TH_LOG("peer: %s", strerror(-p->ret));
}

#endif /* RDMA_EP_UTILS_H */
