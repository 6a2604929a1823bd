// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The client of ibacm, the InfiniBand address cache: rdma_getaddrinfo() asks
 * it for path records, so that the kernel need not ask the subnet manager.
 *
 * ibacm is a help, never a need. One connection is made for each question and
 * closed after it, which keeps threads and forked children out of each
 * other's way. One deadline covers the whole exchange; an ibacm that has
 * missed it is left alone for a minute, one that is not there for a second:
 * most machines have none, and programs look up an address for each connection.
 *
 * What comes back is not trusted: it is accepted only if its header answers
 * our question and its length is that of whole entries.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/sa.h>

#include "addrinfo.h"

/*
 * The wire format. Fields are in host byte order (both ends are on one host),
 * addresses and path records in network byte order. The header file that
 * declares it belongs to the ibacm package, which need not be there.
 */
#define ACM_VERSION		1
#define ACM_OP_RESOLVE		0x01
#define ACM_OP_ACK		0x80
#define ACM_TYPE_IP4		0x0002
#define ACM_TYPE_IP6		0x0003
#define ACM_TYPE_PATH		0x0010
#define ACM_FLAG_SOURCE		(1U << 0)
#define ACM_FLAG_DEST		(1U << 1)
#define ACM_FLAG_NODELAY	(1U << 30)	/* answer from the cache only */
#define ACM_MAX_ENTRIES		8

struct acm_header {
	uint8_t version;
	uint8_t opcode;
	uint8_t status;
	uint8_t data[3];
	uint16_t length;	/* of the message, header included */
	uint64_t tid;
};

struct acm_entry {
	uint32_t flags;
	uint16_t type;
	uint16_t reserved;
	union {
		uint8_t addr[64];
		struct ibv_path_record path;
	};
};

struct acm_message {
	struct acm_header hdr;
	struct acm_entry entry[ACM_MAX_ENTRIES];
};

static_assert(sizeof(struct acm_header) == 16, "ibacm's wire format");
static_assert(sizeof(struct acm_entry) == 72, "ibacm's wire format");

/*
 * What precedes the private data of a connection request between IP
 * addresses. The kernel writes it itself unless the addresses are AF_IB ones.
 */
struct acm_ip_header {
	uint8_t version;	/* 0 */
	uint8_t ip_version;	/* in the upper half */
	__be16 port;		/* source port */
	uint8_t src[16];	/* an IPv4 address is in the last four bytes */
	uint8_t dst[16];
};

static_assert(sizeof(struct acm_ip_header) == 36, "the CM's IP header");

#define ACM_TIMEOUT_MS		2000
#define ACM_BACKOFF_MS		60000
#define ACM_ABSENT_MS		1000

/* Not constant: the unit test plays ibacm elsewhere. */
static const char *acm_socket_path = "/run/ibacm.sock";
static const char *acm_port_path = "/run/ibacm.port";
static int acm_timeout_ms = ACM_TIMEOUT_MS;

static _Atomic uint64_t acm_last_tid;
static _Atomic int64_t acm_not_before;	/* ms, see acm_now() */

static int64_t acm_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Another thread may have found a reason to wait longer. */
static void acm_leave_alone(int ms)
{
	int64_t until = acm_now() + ms, old = atomic_load(&acm_not_before);

	while (old < until &&
	       !atomic_compare_exchange_weak(&acm_not_before, &old, until))
		;
}

/* Wait until @fd is ready for @events. 0, or -1 when the time is over. */
static int acm_poll(int fd, short events, int64_t deadline)
{
	struct pollfd pfd = { .fd = fd, .events = events };
	int64_t left;
	int ret;

	do {
		left = deadline - acm_now();
		if (left <= 0)
			return -1;
		ret = poll(&pfd, 1, (int)left);
	} while (ret < 0 && errno == EINTR);

	return ret > 0 ? 0 : -1;
}

static int acm_connect(int family, const void *addr, socklen_t len,
		       int64_t deadline)
{
	socklen_t err_len = sizeof(int);
	int fd, err;

	fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;

	if (!connect(fd, addr, len))
		return fd;

	if (errno != EINPROGRESS || acm_poll(fd, POLLOUT, deadline))
		goto close_fd;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &err_len))
		goto close_fd;
	if (!err)
		return fd;
	errno = err;

close_fd:
	close(fd);
	return -1;
}

/* The TCP port that ibacm listens on in place of its socket, or 0. */
static uint16_t acm_port(void)
{
	char text[16];
	unsigned long port;
	ssize_t len;
	int fd;

	fd = open(acm_port_path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return 0;
	len = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (len <= 0)
		return 0;

	text[len] = '\0';
	port = strtoul(text, NULL, 10);
	return port <= UINT16_MAX ? port : 0;
}

static int acm_open(int64_t deadline)
{
	struct sockaddr_in sin = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htobe32(INADDR_LOOPBACK),
		.sin_port = htobe16(acm_port()),
	};
	struct sockaddr_un sun = { .sun_family = AF_UNIX };

	if (sin.sin_port)
		return acm_connect(AF_INET, &sin, sizeof(sin), deadline);

	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", acm_socket_path);
	return acm_connect(AF_UNIX, &sun, sizeof(sun), deadline);
}

static int acm_send(int fd, const void *buf, size_t len, int64_t deadline)
{
	const char *p = buf;
	ssize_t n;

	while (len) {
		n = send(fd, p, len, MSG_NOSIGNAL);
		if (n > 0) {
			p += n;
			len -= n;
		} else if (n < 0 && errno == EAGAIN) {
			if (acm_poll(fd, POLLOUT, deadline))
				return -1;
		} else if (n == 0 || errno != EINTR) {
			return -1;
		}
	}
	return 0;
}

static int acm_recv(int fd, void *buf, size_t len, int64_t deadline)
{
	char *p = buf;
	ssize_t n;

	while (len) {
		n = recv(fd, p, len, 0);
		if (n > 0) {
			p += n;
			len -= n;
		} else if (n < 0 && errno == EAGAIN) {
			if (acm_poll(fd, POLLIN, deadline))
				return -1;
		} else if (n == 0 || errno != EINTR) {
			return -1;
		}
	}
	return 0;
}

/* How many entries follow a reply's header; -1 if it is not our answer. */
static int acm_reply_entries(const struct acm_header *hdr, uint64_t tid)
{
	size_t body;

	if (hdr->version != ACM_VERSION ||
	    hdr->opcode != (ACM_OP_RESOLVE | ACM_OP_ACK) ||
	    hdr->status || hdr->tid != tid || hdr->length < sizeof(*hdr))
		return -1;

	body = hdr->length - sizeof(*hdr);
	if (body % sizeof(struct acm_entry) ||
	    body / sizeof(struct acm_entry) > ACM_MAX_ENTRIES)
		return -1;
	return body / sizeof(struct acm_entry);
}

/*
 * Send @msg, replace it by the reply. Returns the number of the reply's
 * entries, or -1.
 */
static int acm_exchange(struct acm_message *msg)
{
	int64_t now = acm_now(), deadline = now + acm_timeout_ms;
	uint64_t tid = msg->hdr.tid;
	int fd, entries = -1;

	if (now < atomic_load(&acm_not_before))
		return -1;

	fd = acm_open(deadline);
	if (fd < 0) {
		if (errno == ENOENT || errno == ECONNREFUSED)
			acm_leave_alone(ACM_ABSENT_MS);
		goto check_time;
	}

	if (acm_send(fd, msg, msg->hdr.length, deadline) ||
	    acm_recv(fd, &msg->hdr, sizeof(msg->hdr), deadline))
		goto close_fd;

	entries = acm_reply_entries(&msg->hdr, tid);
	if (entries > 0 && acm_recv(fd, msg->entry,
				    entries * sizeof(msg->entry[0]), deadline))
		entries = -1;
close_fd:
	close(fd);
check_time:
	if (entries < 0 && acm_now() >= deadline)
		acm_leave_alone(ACM_BACKOFF_MS);
	return entries;
}

static int acm_is_ip(const struct sockaddr *sa, socklen_t len)
{
	if (!sa)
		return 0;

	return (len >= sizeof(struct sockaddr_in) && sa->sa_family == AF_INET) ||
	       (len >= sizeof(struct sockaddr_in6) && sa->sa_family == AF_INET6);
}

static int acm_is_ib(const struct sockaddr *sa, socklen_t len)
{
	return sa && len >= sizeof(struct sockaddr_ib) && sa->sa_family == AF_IB;
}

static void acm_put_ip(struct acm_message *msg, int *n,
		       const struct sockaddr *sa, uint32_t flags)
{
	struct acm_entry *entry = &msg->entry[(*n)++];

	entry->flags = flags;
	if (sa->sa_family == AF_INET) {
		entry->type = ACM_TYPE_IP4;
		memcpy(entry->addr,
		       &((const struct sockaddr_in *)sa)->sin_addr, 4);
	} else {
		entry->type = ACM_TYPE_IP6;
		memcpy(entry->addr,
		       &((const struct sockaddr_in6 *)sa)->sin6_addr, 16);
	}
}

static void acm_put_gid(union ibv_gid *gid, const struct sockaddr *sa)
{
	memcpy(gid, &((const struct sockaddr_ib *)sa)->sib_addr, sizeof(*gid));
}

/* Ask for a path between GIDs, or for one like the one the caller has. */
static void acm_put_path(struct acm_message *msg, int *n,
			 const struct rdma_addrinfo *rai,
			 const struct rdma_addrinfo *hints)
{
	int src_ib = acm_is_ib(rai->ai_src_addr, rai->ai_src_len);
	int dst_ib = acm_is_ib(rai->ai_dst_addr, rai->ai_dst_len);
	const struct ibv_path_data *data = hints->ai_route;
	struct acm_entry *entry = &msg->entry[*n];

	if (!src_ib && !dst_ib && !hints->ai_route_len)
		return;

	entry->type = ACM_TYPE_PATH;
	if (hints->ai_route && hints->ai_route_len == sizeof(entry->path))
		memcpy(&entry->path, hints->ai_route, sizeof(entry->path));
	else if (data && hints->ai_route_len >= sizeof(*data) &&
		 hints->ai_route_len % sizeof(*data) == 0)
		memcpy(&entry->path, &data->path, sizeof(entry->path));
	if (src_ib)
		acm_put_gid(&entry->path.sgid, rai->ai_src_addr);
	if (dst_ib)
		acm_put_gid(&entry->path.dgid, rai->ai_dst_addr);
	(*n)++;
}

static int acm_question(struct acm_message *msg, const struct rdma_addrinfo *rai,
			const struct rdma_addrinfo *hints)
{
	uint32_t dest = ACM_FLAG_DEST;
	int n = 0;

	if (hints->ai_flags & RAI_NUMERICHOST)
		dest |= ACM_FLAG_NODELAY;

	memset(msg, 0, sizeof(*msg));
	if (acm_is_ip(rai->ai_src_addr, rai->ai_src_len))
		acm_put_ip(msg, &n, rai->ai_src_addr, ACM_FLAG_SOURCE);
	if (acm_is_ip(rai->ai_dst_addr, rai->ai_dst_len))
		acm_put_ip(msg, &n, rai->ai_dst_addr, dest);
	acm_put_path(msg, &n, rai, hints);

	msg->hdr.version = ACM_VERSION;
	msg->hdr.opcode = ACM_OP_RESOLVE;
	msg->hdr.length = sizeof(msg->hdr) + n * sizeof(msg->entry[0]);
	msg->hdr.tid = atomic_fetch_add(&acm_last_tid, 1) + 1;
	return n;
}

static void acm_take_source(struct rdma_addrinfo *rai,
			    const struct acm_entry *entry)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	struct sockaddr_in6 sin6 = { .sin6_family = AF_INET6 };

	if (rai->ai_src_len || !(entry->flags & ACM_FLAG_SOURCE))
		return;

	/* failing for want of memory leaves the source open, which is fine */
	if (entry->type == ACM_TYPE_IP4) {
		memcpy(&sin.sin_addr, entry->addr, 4);
		rdmaep_addrinfo_copy_addr(&rai->ai_src_addr, &rai->ai_src_len,
					  (struct sockaddr *)&sin, sizeof(sin));
	} else {
		memcpy(&sin6.sin6_addr, entry->addr, 16);
		rdmaep_addrinfo_copy_addr(&rai->ai_src_addr, &rai->ai_src_len,
					  (struct sockaddr *)&sin6,
					  sizeof(sin6));
	}
}

static void acm_take_reply(struct rdma_addrinfo *rai,
			   const struct acm_message *msg, int entries)
{
	struct ibv_path_data *path;
	int i, paths = 0;

	path = calloc(ACM_MAX_ENTRIES, sizeof(*path));
	if (!path)
		return;

	for (i = 0; i < entries; i++) {
		const struct acm_entry *entry = &msg->entry[i];

		switch (entry->type) {
		case ACM_TYPE_PATH:
			path[paths].flags = entry->flags;
			path[paths].path = entry->path;
			paths++;
			break;
		case ACM_TYPE_IP4:
		case ACM_TYPE_IP6:
			acm_take_source(rai, entry);
			break;
		}
	}

	if (!paths) {
		free(path);
		return;
	}
	rai->ai_route = path;
	rai->ai_route_len = paths * sizeof(*path);
}

static int acm_ib_addr(struct sockaddr **dst, socklen_t *dst_len,
		       const struct ibv_path_record *path,
		       const union ibv_gid *gid, int ps, __be16 port)
{
	struct sockaddr_ib sib = {
		.sib_family = AF_IB,
		.sib_pkey = path->pkey,
		/* the flow label's 20 bits: drop the hop limit */
		.sib_flowinfo = htobe32((be32toh(path->flowlabel_hoplimit) >> 8) &
					0xfffff),
	};

	memcpy(&sib.sib_addr, gid, sizeof(sib.sib_addr));
	rdmaep_addrinfo_set_sid(&sib, ps, port);
	return rdmaep_addrinfo_copy_addr(dst, dst_len, (struct sockaddr *)&sib,
					 sizeof(sib));
}

/*
 * Between AF_IB addresses the kernel does not tell the peer any IP addresses,
 * though the peer's listener expects them: they go in front of the caller's
 * private data.
 */
static int acm_ib_connect(struct rdma_addrinfo *ib,
			  const struct rdma_addrinfo *rai)
{
	struct acm_ip_header *hdr;

	hdr = calloc(1, sizeof(*hdr));
	if (!hdr)
		return -1;

	hdr->port = rdmaep_addrinfo_port(rai->ai_src_addr);
	if (rai->ai_dst_addr->sa_family == AF_INET) {
		hdr->ip_version = 4 << 4;
		memcpy(&hdr->src[12],
		       &((struct sockaddr_in *)rai->ai_src_addr)->sin_addr, 4);
		memcpy(&hdr->dst[12],
		       &((struct sockaddr_in *)rai->ai_dst_addr)->sin_addr, 4);
	} else {
		hdr->ip_version = 6 << 4;
		memcpy(hdr->src,
		       &((struct sockaddr_in6 *)rai->ai_src_addr)->sin6_addr, 16);
		memcpy(hdr->dst,
		       &((struct sockaddr_in6 *)rai->ai_dst_addr)->sin6_addr, 16);
	}
	ib->ai_connect = hdr;
	ib->ai_connect_len = sizeof(*hdr);
	return 0;
}

static int acm_dup(void **dst, const void *src, size_t len)
{
	if (!src)
		return 0;
	*dst = malloc(len);
	if (!*dst)
		return -1;
	memcpy(*dst, src, len);
	return 0;
}

static int acm_dup_name(char **dst, const char *src)
{
	return acm_dup((void **)dst, src, src ? strlen(src) + 1 : 0);
}

/*
 * An entry with the same ends as AF_IB addresses. NULL if there is no memory,
 * or if the IP addresses of both ends are not known: then the entry without
 * AF_IB, which has the route all the same, has to do.
 */
static struct rdma_addrinfo *acm_ib_entry(const struct rdma_addrinfo *rai)
{
	const struct ibv_path_data *data = rai->ai_route;
	struct rdma_addrinfo *ib;

	if (!acm_is_ip(rai->ai_src_addr, rai->ai_src_len) ||
	    !acm_is_ip(rai->ai_dst_addr, rai->ai_dst_len) ||
	    rai->ai_src_addr->sa_family != rai->ai_dst_addr->sa_family)
		return NULL;

	ib = calloc(1, sizeof(*ib));
	if (!ib)
		return NULL;

	ib->ai_flags = rai->ai_flags;
	ib->ai_family = AF_IB;
	ib->ai_qp_type = rai->ai_qp_type;
	ib->ai_port_space = rai->ai_port_space;
	if (acm_dup(&ib->ai_route, rai->ai_route, rai->ai_route_len) ||
	    acm_dup_name(&ib->ai_src_canonname, rai->ai_src_canonname) ||
	    acm_dup_name(&ib->ai_dst_canonname, rai->ai_dst_canonname) ||
	    acm_ib_connect(ib, rai) ||
	    acm_ib_addr(&ib->ai_src_addr, &ib->ai_src_len, &data->path,
			&data->path.sgid, rai->ai_port_space,
			rdmaep_addrinfo_port(rai->ai_src_addr)) ||
	    acm_ib_addr(&ib->ai_dst_addr, &ib->ai_dst_len, &data->path,
			&data->path.dgid, rai->ai_port_space,
			rdmaep_addrinfo_port(rai->ai_dst_addr))) {
		rdma_freeaddrinfo(ib);
		return NULL;
	}
	ib->ai_route_len = rai->ai_route_len;
	return ib;
}

void rdmaep_acm_resolve(struct rdma_addrinfo **rai,
			const struct rdma_addrinfo *hints)
{
	struct acm_message msg;
	struct rdma_addrinfo *ib;
	int entries, err = errno;

	if (acm_question(&msg, *rai, hints)) {
		entries = acm_exchange(&msg);
		if (entries > 0)
			acm_take_reply(*rai, &msg, entries);
	}

	if ((*rai)->ai_route_len) {
		ib = acm_ib_entry(*rai);
		if (ib) {
			ib->ai_next = *rai;
			*rai = ib;
		}
	}
	errno = err;
}
