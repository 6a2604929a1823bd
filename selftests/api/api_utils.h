/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the tests of the rdma_cma.h API share.
 *
 * The tests use nothing but the public headers, so that one binary runs on our
 * library and on librdmacm alike: what a test expects has been seen to hold
 * for the library that programs were written for. Where ours is meant to
 * differ the test says so with on_stock().
 *
 * Calls of the API come in three forms: bare, when the test looks at the
 * result itself; ok(call), which ends the test unless the call succeeds; and
 * err(errno, call), which wants that very errno.
 */
#ifndef API_UTILS_H
#define API_UTILS_H

#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/netlink.h>
#include <malloc.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_netlink.h>
#include <rdma/rdma_verbs.h>
#include <rdma/rdma_ep.h>

#include "kselftest_harness.h"

/* An emulated machine is slow, and one with a debug kernel slower still. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 120

/* How long to wait for what must come, and for what must not. */
#define SOON_MS		30000
#define NEVER_MS	300

#define RESOLVE_MS	5000

/* Has the long form been asked for (tools/check --long)? */
static inline bool is_long(void)
{
	const char *val = getenv("RDMA_EP_LONG");

	return val && *val;
}

/* Whether the tests run on librdmacm and rdma_ucm. */
static inline bool on_stock(void)
{
	return access(RDMA_EP_DEVICE, F_OK);
}

/*
 * What a call answered: 0, or errno. No manual page allows a result other than
 * 0 and -1, or an errno that is not positive: those are reported as -1.
 */
static inline int outcome(int ret)
{
	if (!ret)
		return 0;
	return ret == -1 && errno > 0 ? errno : -1;
}

/* What our library says of a failure. */
static inline void log_reason(void)
{
	const char *(*reason)(void);

	reason = (const char *(*)(void))dlsym(RTLD_DEFAULT, "rdmaep_strerror");
	if (reason)
		fprintf(stderr, "# the library says: %s\n", reason());
}

#define ok(call)	ASSERT_EQ(0, outcome(call)) log_reason()
#define err(code, call)				\
	do {					\
		errno = 0;			\
		EXPECT_EQ(code, outcome(call));	\
	} while (0)

/* For what librdmacm cannot do without crashing, or hanging for ever. */
#define not_on_stock(why)			\
	do {					\
		if (on_stock())			\
			SKIP(return, why);	\
	} while (0)

/* err() where librdmacm is known to answer something else. */
#define err_or_stock(code, stock, call)	err(on_stock() ? (stock) : (code), call)

/*
 * Addresses
 */

static inline struct sockaddr *sa(struct sockaddr_storage *addr)
{
	return (struct sockaddr *)addr;
}

static inline socklen_t sa_len(const struct sockaddr_storage *addr)
{
	return addr->ss_family == AF_INET ? sizeof(struct sockaddr_in) :
					    sizeof(struct sockaddr_in6);
}

/* An address from its text; port in host byte order. */
static inline struct sockaddr_storage parse(const char *text, uint16_t port)
{
	struct sockaddr_storage addr = {};
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)&addr;
	struct sockaddr_in *sin = (struct sockaddr_in *)&addr;

	if (inet_pton(AF_INET, text, &sin->sin_addr) == 1) {
		sin->sin_family = AF_INET;
		sin->sin_port = htons(port);
	} else if (inet_pton(AF_INET6, text, &sin6->sin6_addr) == 1) {
		sin6->sin6_family = AF_INET6;
		sin6->sin6_port = htons(port);
	}
	return addr;
}

static inline const char *my_ip(int family)
{
	const char *ip = getenv(family == AF_INET ? "MY_IP" : "MY_IP6");

	if (ip && *ip)
		return ip;
	return family == AF_INET ? "10.77.0.1" : "fd77::1";
}

/* The address of the netdev under the RDMA device. */
static inline struct sockaddr_storage my_addr(int family, uint16_t port)
{
	return parse(my_ip(family), port);
}

static inline struct sockaddr_storage wildcard(int family, uint16_t port)
{
	return parse(family == AF_INET ? "0.0.0.0" : "::", port);
}

/* An address that no netdev has and no route leads to. */
static inline struct sockaddr_storage foreign_addr(int family, uint16_t port)
{
	return parse(family == AF_INET ? "192.0.2.9" : "2001:db8::9", port);
}

/* An address on our net that nobody has. */
static inline struct sockaddr_storage silent_addr(int family, uint16_t port)
{
	return parse(family == AF_INET ? "10.77.0.99" : "fd77::99", port);
}

static inline uint16_t port_of(const struct sockaddr *addr)
{
	/* sin_port and sin6_port are at the same place. */
	return ntohs(((const struct sockaddr_in *)addr)->sin_port);
}

static inline bool same_ip(const struct sockaddr *a, const struct sockaddr *b)
{
	if (a->sa_family != b->sa_family)
		return false;
	if (a->sa_family == AF_INET)
		return ((struct sockaddr_in *)a)->sin_addr.s_addr ==
		       ((struct sockaddr_in *)b)->sin_addr.s_addr;
	return !memcmp(&((struct sockaddr_in6 *)a)->sin6_addr,
		       &((struct sockaddr_in6 *)b)->sin6_addr, 16);
}

/* The link-local address of the netdev that has our addresses. */
static inline bool link_local(struct sockaddr_storage *addr, uint16_t port)
{
	struct sockaddr_storage mine = my_addr(AF_INET, 0);
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)addr;
	struct ifaddrs *list, *i, *netdev = NULL;
	bool found = false;

	if (getifaddrs(&list))
		return false;
	for (i = list; i; i = i->ifa_next)
		if (i->ifa_addr && same_ip(i->ifa_addr, sa(&mine)))
			netdev = i;
	for (i = list; netdev && i && !found; i = i->ifa_next) {
		if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET6 ||
		    strcmp(i->ifa_name, netdev->ifa_name))
			continue;
		memset(addr, 0, sizeof(*addr));
		memcpy(sin6, i->ifa_addr, sizeof(*sin6));
		found = IN6_IS_ADDR_LINKLOCAL(&sin6->sin6_addr);
		sin6->sin6_scope_id = if_nametoindex(i->ifa_name);
		sin6->sin6_port = htons(port);
	}
	freeifaddrs(list);
	return found;
}

/*
 * Counting what is alive
 */

struct objects {
	int qp, cq, pd, mr, srq, cm_id;		/* of the kernel's RDMA core */
	int endpoints;				/* of our module; 0 on stock */
};

static inline void count_summary(struct objects *n, struct nlattr *entry)
{
	struct nlattr *name = (void *)((char *)entry + NLA_HDRLEN);
	struct nlattr *curr = (void *)((char *)name + NLA_ALIGN(name->nla_len));
	const char *text = (char *)name + NLA_HDRLEN;
	uint64_t value;

	memcpy(&value, (char *)curr + NLA_HDRLEN, sizeof(value));
#define COUNT(field) (n->field += strcmp(text, #field) ? 0 : (int)value)
	COUNT(qp);
	COUNT(cq);
	COUNT(pd);
	COUNT(mr);
	COUNT(srq);
	COUNT(cm_id);
#undef COUNT
}

/* for each attribute in len bytes at first */
#define for_each_nlattr(a, first, len)						\
	for (a = (void *)(first);						\
	     (char *)a < (char *)(first) + (len) && a->nla_len >= NLA_HDRLEN;	\
	     a = (void *)((char *)a + NLA_ALIGN(a->nla_len)))

static inline bool count_message(struct objects *n, struct nlmsghdr *msg)
{
	struct nlattr *attr, *entry;

	if (msg->nlmsg_type == NLMSG_DONE || msg->nlmsg_type == NLMSG_ERROR)
		return false;
	for_each_nlattr(attr, NLMSG_DATA(msg), NLMSG_PAYLOAD(msg, 0)) {
		if ((attr->nla_type & NLA_TYPE_MASK) !=
		    RDMA_NLDEV_ATTR_RES_SUMMARY)
			continue;
		for_each_nlattr(entry, (char *)attr + NLA_HDRLEN,
				attr->nla_len - NLA_HDRLEN)
			count_summary(n, entry);
	}
	return true;
}

static inline int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = -3;	/* itself, "." and ".." */

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* Endpoints that the module still has for this process. */
static inline int count_endpoints(void)
{
	int fd, n = 0;

	for (fd = 0; fd < 1024; fd++) {
		struct rdma_ep_get_info info = { .hdr.size = sizeof(info) };
		char path[64], target[64] = "";

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (readlink(path, target, sizeof(target) - 1) < 0 ||
		    strcmp(target, RDMA_EP_DEVICE))
			continue;
		if (!ioctl(fd, RDMA_EP_GET_INFO, &info))
			n += info.out_endpoints;
	}
	return n;
}

/* Objects of all RDMA devices, as "rdma resource" counts them, and endpoints. */
static inline struct objects count_objects(void)
{
	struct nlmsghdr request = {
		.nlmsg_len = NLMSG_LENGTH(0),
		.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV,
					       RDMA_NLDEV_CMD_RES_GET),
		.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_DUMP,
	};
	struct objects n = {};
	bool more = true;
	char buf[16384];
	ssize_t len;
	int fd;

	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
	if (send(fd, &request, sizeof(request), 0) != sizeof(request))
		more = false;
	while (more && (len = recv(fd, buf, sizeof(buf), 0)) > 0) {
		struct nlmsghdr *msg = (void *)buf;

		for (; more && NLMSG_OK(msg, len); msg = NLMSG_NEXT(msg, len))
			more = count_message(&n, msg);
	}
	close(fd);
	n.endpoints = count_endpoints();
	return n;
}

/*
 * What a process has more of each time it does something is a leak, also where
 * no kernel object shows it: file descriptors and heap. The first rounds pay
 * for what is kept: devices, caches.
 */
struct growth {
	int fds;
	size_t heap;
};

static inline struct growth growth_now(void)
{
	return (struct growth){ count_fds(), mallinfo2().uordblks };
}

static inline void _expect_no_growth(struct __test_metadata *_metadata,
				     const struct growth *before, int line)
{
	struct growth now = growth_now();

	EXPECT_EQ(before->fds, now.fds) {
		TH_LOG("line %d: file descriptors", line);
	}
	/* Tables grow now and then; eight lost ids or events are more. */
	EXPECT_GT(before->heap + 4096, now.heap) {
		TH_LOG("line %d: bytes of heap", line);
	}
}

#define expect_no_growth(before) _expect_no_growth(_metadata, before, __LINE__)

static inline void sleep_ms(int ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000L };

	nanosleep(&t, NULL);
}

static inline long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/*
 * Nothing that a test made may be alive when it ends. The library may keep one
 * default PD for each device. Drivers free some objects a little later than
 * the call returns: hence the patience.
 */
static inline void _expect_no_leak(struct __test_metadata *_metadata,
				   const struct objects *before, int line)
{
	long end = now_ms() + 3000;
	struct objects now;

	do {
		now = count_objects();
		if (now.qp <= before->qp && now.cq <= before->cq &&
		    now.mr <= before->mr && now.srq <= before->srq &&
		    now.cm_id <= before->cm_id && now.pd <= before->pd + 1 &&
		    now.endpoints <= before->endpoints)
			return;
		sleep_ms(10);
	} while (now_ms() < end);
	TH_LOG("line %d: left behind: %d qp, %d cq, %d mr, %d srq, %d cm_id, %d pd, %d endpoints",
	       line, now.qp - before->qp, now.cq - before->cq,
	       now.mr - before->mr, now.srq - before->srq,
	       now.cm_id - before->cm_id, now.pd - before->pd,
	       now.endpoints - before->endpoints);
	EXPECT_TRUE(false);
}

#define expect_no_leak(before) _expect_no_leak(_metadata, before, __LINE__)

/*
 * Events
 */

/* Whether an event is readable on the channel within ms. */
static inline bool event_within(struct rdma_event_channel *channel, int ms)
{
	struct pollfd pfd = { .fd = channel->fd, .events = POLLIN };

	return poll(&pfd, 1, ms) == 1 && (pfd.revents & POLLIN);
}

/* The next event, or NULL when none comes in time. */
static inline struct rdma_cm_event *next_event(struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event;

	if (!event_within(channel, SOON_MS) ||
	    rdma_get_cm_event(channel, &event))
		return NULL;
	return event;
}

/* The next event, which must be of that type; not acked. */
#define get_event(channel, type)					\
	({								\
		struct rdma_cm_event *__e = next_event(channel);	\
									\
		ASSERT_NE(NULL, __e);					\
		ASSERT_STREQ(rdma_event_str(type),			\
			     rdma_event_str(__e->event));		\
		__e;							\
	})

/* The same, status 0 expected, and acked. */
#define expect_event(channel, type)			\
	do {						\
		struct rdma_cm_event *__o;		\
							\
		__o = get_event(channel, type);		\
		EXPECT_EQ(0, __o->status);		\
		ok(rdma_ack_cm_event(__o));		\
	} while (0)

#define expect_silence(channel)	EXPECT_FALSE(event_within(channel, NEVER_MS))

/*
 * Most tests count what is left when they are done: nothing is kept for the
 * next endpoint, unless a test is about that.
 */
#ifndef API_CACHE
#define API_CACHE "0"
#endif

static void __attribute__((constructor)) set_cache(void)
{
	setenv("RDMAEP_CACHE", API_CACHE, 1);
}

/*
 * Ids, queue pairs
 */

static inline struct ibv_qp_init_attr qp_attr(enum ibv_qp_type type)
{
	return (struct ibv_qp_init_attr){
		.cap = {
			.max_send_wr = 4,
			.max_recv_wr = 4,
			.max_send_sge = 2,
			.max_recv_sge = 2,
		},
		.qp_type = type,
		.sq_sig_all = 1,
	};
}

static inline enum ibv_qp_state qp_state(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (ibv_query_qp(qp, &attr, IBV_QP_STATE, &init))
		return IBV_QPS_UNKNOWN;
	return attr.qp_state;
}

/* The id's port, host byte order. */
static inline uint16_t src_port(struct rdma_cm_id *id)
{
	return ntohs(rdma_get_src_port(id));
}

/*
 * A pair of asynchronous ids with a channel for each side, driven by one
 * thread.
 */
struct pair {
	int family;
	enum rdma_port_space ps;
	struct rdma_event_channel *server_channel;
	struct rdma_event_channel *client_channel;
	struct rdma_cm_id *listen;
	struct rdma_cm_id *server;
	struct rdma_cm_id *client;
	struct rdma_cm_event *request;	/* until it is acked */
	struct sockaddr_storage addr;	/* of the listener */
	struct rdma_conn_param connect_param;
	struct rdma_conn_param accept_param;
	bool no_qp;			/* leave QPs to the test */
};

static inline enum ibv_qp_type pair_qp_type(struct pair *p)
{
	return p->ps == RDMA_PS_TCP ? IBV_QPT_RC : IBV_QPT_UD;
}

/* The listener listens; the other ids do not exist yet. */
static inline void _pair_listen(struct __test_metadata *_metadata,
				struct pair *p)
{
	p->addr = my_addr(p->family, 0);
	p->server_channel = rdma_create_event_channel();
	ASSERT_NE(NULL, p->server_channel);
	p->client_channel = rdma_create_event_channel();
	ASSERT_NE(NULL, p->client_channel);
	ok(rdma_create_id(p->server_channel, &p->listen, p, p->ps));
	ok(rdma_bind_addr(p->listen, sa(&p->addr)));
	ok(rdma_listen(p->listen, 8));
	p->addr = my_addr(p->family, src_port(p->listen));
}

/* A new client id, in the state after rdma_resolve_route, and with a QP. */
static inline void _pair_resolve(struct __test_metadata *_metadata,
				 struct pair *p)
{
	struct ibv_qp_init_attr attr = qp_attr(pair_qp_type(p));

	ok(rdma_create_id(p->client_channel, &p->client, p, p->ps));
	ok(rdma_resolve_addr(p->client, NULL, sa(&p->addr), RESOLVE_MS));
	expect_event(p->client_channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	ok(rdma_resolve_route(p->client, RESOLVE_MS));
	expect_event(p->client_channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	if (!p->no_qp)
		ok(rdma_create_qp(p->client, NULL, &attr));
}

/* The client asks, the server knows, but has not answered. */
static inline void _pair_request(struct __test_metadata *_metadata,
				 struct pair *p)
{
	struct ibv_qp_init_attr attr = qp_attr(pair_qp_type(p));

	ok(rdma_connect(p->client, &p->connect_param));
	p->request = get_event(p->server_channel,
			       RDMA_CM_EVENT_CONNECT_REQUEST);
	EXPECT_EQ(p->listen, p->request->listen_id);
	p->server = p->request->id;
	ASSERT_NE(NULL, p->server);
	if (!p->no_qp)
		ok(rdma_create_qp(p->server, NULL, &attr));
}

static inline void _pair_ack(struct __test_metadata *_metadata, struct pair *p)
{
	if (p->request)
		ok(rdma_ack_cm_event(p->request));
	p->request = NULL;
}

/* The server answers; nobody has looked for ESTABLISHED. */
static inline void _pair_accept(struct __test_metadata *_metadata,
				struct pair *p)
{
	ok(rdma_accept(p->server, &p->accept_param));
	_pair_ack(_metadata, p);
}

/* From nothing to connected. */
static inline void _pair_connect(struct __test_metadata *_metadata,
				 struct pair *p)
{
	if (!p->listen)
		_pair_listen(_metadata, p);
	_pair_resolve(_metadata, p);
	_pair_request(_metadata, p);
	_pair_accept(_metadata, p);
	expect_event(p->client_channel, RDMA_CM_EVENT_ESTABLISHED);
	if (p->ps == RDMA_PS_TCP)
		expect_event(p->server_channel, RDMA_CM_EVENT_ESTABLISHED);
}

static inline void _pair_destroy_id(struct __test_metadata *_metadata,
				    struct rdma_cm_id **id)
{
	if (*id && (*id)->qp)
		rdma_destroy_qp(*id);
	if (*id)
		ok(rdma_destroy_id(*id));
	*id = NULL;
}

/* Everything goes that there is. All events must be acked but the request's. */
static inline void _pair_destroy(struct __test_metadata *_metadata,
				 struct pair *p)
{
	_pair_ack(_metadata, p);
	_pair_destroy_id(_metadata, &p->client);
	_pair_destroy_id(_metadata, &p->server);
	_pair_destroy_id(_metadata, &p->listen);
	if (p->client_channel)
		rdma_destroy_event_channel(p->client_channel);
	if (p->server_channel)
		rdma_destroy_event_channel(p->server_channel);
	p->client_channel = p->server_channel = NULL;
}

#define pair_listen(p)	_pair_listen(_metadata, p)
#define pair_resolve(p)	_pair_resolve(_metadata, p)
#define pair_request(p)	_pair_request(_metadata, p)
#define pair_ack(p)	_pair_ack(_metadata, p)
#define pair_accept(p)	_pair_accept(_metadata, p)
#define pair_connect(p)	_pair_connect(_metadata, p)
#define pair_destroy(p)	_pair_destroy(_metadata, p)

/*
 * A server in a thread of its own, for tests of synchronous ids. It takes
 * connections one after the other and keeps them until server_stop().
 */
#define SERVER_MAX 8

struct server {
	struct rdma_cm_id *listen;
	struct rdma_cm_id *conn[SERVER_MAX];
	struct rdma_conn_param *param;	/* for rdma_accept */
	int wanted;			/* connections to take */
	int taken;
	int error;			/* first errno */
	bool reject;
	uint16_t port;
	pthread_t thread;
};

static inline void *server_thread(void *arg)
{
	struct server *s = arg;
	struct rdma_cm_id *id;

	while (s->taken < s->wanted) {
		if (rdma_get_request(s->listen, &id))
			goto failed;
		s->conn[s->taken++] = id;
		if (s->reject ? rdma_reject(id, "no", 2) :
				rdma_accept(id, s->param))
			goto failed;
	}
	return NULL;
failed:
	s->error = errno ?: -1;
	return NULL;
}

/* rdma_getaddrinfo's result for our own address. */
static inline struct rdma_addrinfo *my_addrinfo(int family, int flags,
						enum rdma_port_space ps,
						uint16_t port)
{
	struct rdma_addrinfo hints = {
		.ai_flags = flags | RAI_NUMERICHOST,
		.ai_port_space = ps,
		.ai_qp_type = ps == RDMA_PS_TCP ? IBV_QPT_RC : IBV_QPT_UD,
	}, *res = NULL;
	char service[8];

	snprintf(service, sizeof(service), "%u", port);
	if (rdma_getaddrinfo(my_ip(family), service, &hints, &res))
		return NULL;
	return res;
}

static inline void _server_start(struct __test_metadata *_metadata,
				 struct server *s, int family, struct ibv_pd *pd,
				 struct ibv_qp_init_attr *attr, int wanted)
{
	struct rdma_addrinfo *res;

	res = my_addrinfo(family, RAI_PASSIVE, RDMA_PS_TCP, 0);
	ASSERT_NE(NULL, res);
	ok(rdma_create_ep(&s->listen, res, pd, attr));
	rdma_freeaddrinfo(res);
	ok(rdma_listen(s->listen, 8));
	s->port = src_port(s->listen);
	ASSERT_NE(0, s->port);
	s->wanted = wanted;
	ASSERT_EQ(0, pthread_create(&s->thread, NULL, server_thread, s));
}

static inline void _server_join(struct __test_metadata *_metadata,
				struct server *s)
{
	if (s->thread)
		ASSERT_EQ(0, pthread_join(s->thread, NULL));
	s->thread = 0;
	EXPECT_EQ(0, s->error);
	EXPECT_EQ(s->wanted, s->taken);
}

static inline void _server_stop(struct __test_metadata *_metadata,
				struct server *s)
{
	int i;

	_server_join(_metadata, s);
	for (i = 0; i < s->taken; i++)
		rdma_destroy_ep(s->conn[i]);
	rdma_destroy_ep(s->listen);
}

#define server_start(s, family, pd, attr, wanted) \
	_server_start(_metadata, s, family, pd, attr, wanted)
#define server_join(s)	_server_join(_metadata, s)
#define server_stop(s)	_server_stop(_metadata, s)

/* An active synchronous endpoint for that port of ours. */
static inline struct rdma_cm_id *_client_ep(struct __test_metadata *_metadata,
					    int family, uint16_t port,
					    struct ibv_pd *pd,
					    struct ibv_qp_init_attr *attr)
{
	struct rdma_addrinfo *res;
	struct rdma_cm_id *id;

	res = my_addrinfo(family, 0, RDMA_PS_TCP, port);
	ASSERT_NE(NULL, res);
	ok(rdma_create_ep(&id, res, pd, attr));
	rdma_freeaddrinfo(res);
	return id;
}

#define client_ep(family, port, pd, attr) \
	_client_ep(_metadata, family, port, pd, attr)

/* An open RDMA device context that our address belongs to. */
static inline struct ibv_context *my_verbs(void)
{
	struct ibv_context **list = rdma_get_devices(NULL), *verbs;

	if (!list)
		return NULL;
	verbs = list[0];
	rdma_free_devices(list);
	return verbs;
}

/*
 * Send one message from a to b, both connected and with CQs of the library's.
 */
static inline void _send_message(struct __test_metadata *_metadata,
				 struct rdma_cm_id *a, struct rdma_cm_id *b)
{
	char out[32] = "a message", in[32] = "";
	struct ibv_mr *mr_out, *mr_in;
	struct ibv_wc wc;

	mr_out = rdma_reg_msgs(a, out, sizeof(out));
	ASSERT_NE(NULL, mr_out);
	mr_in = rdma_reg_msgs(b, in, sizeof(in));
	ASSERT_NE(NULL, mr_in);
	ok(rdma_post_recv(b, in, in, sizeof(in), mr_in));
	ok(rdma_post_send(a, out, out, sizeof(out), mr_out, 0));
	ASSERT_EQ(1, rdma_get_send_comp(a, &wc));
	EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
	EXPECT_EQ((uintptr_t)out, wc.wr_id);
	ASSERT_EQ(1, rdma_get_recv_comp(b, &wc));
	EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
	EXPECT_EQ((uintptr_t)in, wc.wr_id);
	EXPECT_EQ(sizeof(out), wc.byte_len);
	EXPECT_STREQ(out, in);
	ok(rdma_dereg_mr(mr_in));
	ok(rdma_dereg_mr(mr_out));
}

#define send_message(a, b) _send_message(_metadata, a, b)

/*
 * Threads that may block
 */

/* Whether the thread ended within ms; then it is joined. */
static inline bool ended_within(pthread_t thread, int ms)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_sec += ms / 1000;
	t.tv_nsec += ms % 1000 * 1000000L;
	if (t.tv_nsec >= 1000000000L) {
		t.tv_sec++;
		t.tv_nsec -= 1000000000L;
	}
	return !pthread_timedjoin_np(thread, NULL, &t);
}

static inline void *disconnect_thread(void *id)
{
	return (void *)(intptr_t)outcome(rdma_disconnect(id));
}

/*
 * Both ends call rdma_disconnect(), as they should: the answer to the one's
 * request is the other's call. With synchronous ids that takes two threads.
 */
static inline void _disconnect_both(struct __test_metadata *_metadata,
				    struct rdma_cm_id *a, struct rdma_cm_id *b)
{
	pthread_t thread;
	void *code;

	ASSERT_EQ(0, pthread_create(&thread, NULL, disconnect_thread, b));
	ok(rdma_disconnect(a));
	ASSERT_EQ(0, pthread_join(thread, &code));
	EXPECT_EQ(0, (intptr_t)code);
}

#define disconnect_both(a, b) _disconnect_both(_metadata, a, b)

/*
 * Our library's additions, which are looked up since librdmacm has none
 */

/* A function of the library, or NULL. */
#define own_function(type, name) ((type)dlsym(RTLD_DEFAULT, name))

/* The calling thread's last failure had that reason, and says so in words. */
static inline void _expect_reason(struct __test_metadata *_metadata, int line,
				  enum rdma_ep_reason_code code)
{
	const char *(*strerror_fn)(void);
	unsigned int (*reason_fn)(void);

	strerror_fn = own_function(const char *(*)(void), "rdmaep_strerror");
	reason_fn = own_function(unsigned int (*)(void), "rdmaep_last_reason");
	if (on_stock())
		return;
	ASSERT_NE(NULL, strerror_fn);
	ASSERT_NE(NULL, reason_fn);
	EXPECT_EQ(code, reason_fn()) {
		TH_LOG("line %d: reason is \"%s\"", line, strerror_fn());
	}
	EXPECT_LT(0, strlen(strerror_fn()));
}

#define expect_reason(code) _expect_reason(_metadata, __LINE__, code)

/*
 * The fixture nearly everything uses: an address family, a pair, and a count
 * of objects that must be the same again in the end.
 */
#define PAIR_FIXTURE(name)						\
	FIXTURE(name) {							\
		struct objects before;					\
		struct pair pair;					\
	};								\
	FIXTURE_VARIANT(name) { int family; };				\
	FIXTURE_VARIANT_ADD(name, ipv4) { .family = AF_INET };		\
	FIXTURE_VARIANT_ADD(name, ipv6) { .family = AF_INET6 };		\
	FIXTURE_SETUP(name)						\
	{								\
		self->before = count_objects();				\
		self->pair.family = variant->family;			\
		self->pair.ps = RDMA_PS_TCP;				\
	}								\
	FIXTURE_TEARDOWN(name)						\
	{								\
		if (!_metadata->passed)					\
			return;						\
		pair_destroy(&self->pair);				\
		expect_no_leak(&self->before);				\
	}

#endif /* API_UTILS_H */
