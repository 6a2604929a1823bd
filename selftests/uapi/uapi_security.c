// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Who may do what, and who gets to know what: the sentences of
 * Documentation/security.rst that a test can hold.
 *
 * Every ioctl of this program goes through watched_ioctl(), which looks at each
 * byte that comes back. In an ordinary machine that finds little, since its
 * kernel clears memory before use; selftests/host/poison.sh runs the program
 * where what was not written is full of known bytes.
 */
#include <sys/ioctl.h>

static int watched_ioctl(int fd, unsigned long cmd, void *arg);

#define ioctl(fd, cmd, arg) watched_ioctl(fd, cmd, arg)
#include "rdma_ep_utils.h"
#undef ioctl

#include <ctype.h>
#include <sched.h>
#include <stdio.h>
#include <sys/prctl.h>

#define NOBODY		65534
#define COMMANDS	27

/* Which commands were made, and which of them brought something to look at */
static bool seen[COMMANDS];
static unsigned int leaks;
static unsigned long looked_at;

/*
 * What memory that nobody wrote to is full of: SLUB's poison, its end and its
 * red zones (slub_debug=FZP), pages (page_poison=1), and what a compiler puts
 * into variables (-ftrivial-auto-var-init=pattern).
 */
static bool is_poison(uint8_t byte)
{
	return byte == 0x5a || byte == 0x6b || byte == 0xa5 || byte == 0xbb ||
	       byte == 0xcc || byte == 0xaa || byte == 0xfe;
}

static void look_at(const char *what, unsigned int nr, const void *mem, size_t len)
{
	const uint8_t *p = mem;
	size_t i;

	looked_at += len;
	for (i = 0; i < len; i++) {
		if (!is_poison(p[i]))
			continue;
		leaks++;
		printf("# command %u: %s: byte %zu is %#x\n", nr, what, i, p[i]);
	}
}

static void mask_port(struct rdma_ep_addr *addr)
{
	memset(addr->sa + 2, 0, 2);
}

static void mask_attr(struct ib_uverbs_qp_attr *attr)
{
	attr->rq_psn = 0;
	attr->sq_psn = 0;
	attr->dest_qp_num = 0;
	attr->ah_attr.grh.flow_label = 0;
}

/* Without what may be any number: time, ports, random numbers, the MAC address */
static void look_at_record(unsigned int nr, const struct rdma_ep_record *rec)
{
	struct rdma_ep_record copy = *rec;
	int i;

	if (copy.size > sizeof(copy)) {
		leaks++;
		return;
	}
	copy.time_ns = 0;
	copy.qp_num = 0;
	copy.ah.grh.flow_label = 0;
	mask_port(&copy.info.src);
	mask_port(&copy.info.dst);
	copy.info.src_sid = 0;
	copy.info.dst_sid = 0;
	copy.info.node_guid = 0;
	for (i = 0; i < RDMA_EP_MAX_PATHS; i++)
		copy.info.path[i].flow_label = 0;
	for (i = 0; i < RDMA_EP_ATTRS; i++)
		mask_attr(&copy.attr[i]);
	look_at("record", nr, &copy, copy.size);
}

/* A sentence, a NUL, and nothing after it */
static void look_at_reason(unsigned int nr, const struct rdma_ep_reason *reason)
{
	size_t len = strnlen(reason->text, sizeof(reason->text));
	size_t i;

	looked_at += sizeof(*reason);
	if (reason->reserved || len == sizeof(reason->text) ||
	    !is_filled(reason->text + len, sizeof(reason->text) - len, 0))
		leaks++;
	for (i = 0; i < len; i++)
		if (!isprint((unsigned char)reason->text[i]))
			leaks++;
}

/* Where a command's struct has the address of a record, or 0 */
static size_t record_offset(unsigned int nr)
{
#define AT(cmd, str)	case _IOC_NR(cmd): return offsetof(struct str, record_uptr)
	switch (nr) {
	AT(RDMA_EP_CREATE_EP, rdma_ep_create_ep);
	AT(RDMA_EP_BIND, rdma_ep_bind);
	AT(RDMA_EP_RESOLVE_ADDR, rdma_ep_resolve_addr);
	AT(RDMA_EP_RESOLVE_ROUTE, rdma_ep_resolve_route);
	AT(RDMA_EP_LISTEN, rdma_ep_listen);
	AT(RDMA_EP_CONNECT, rdma_ep_connect);
	AT(RDMA_EP_ACCEPT, rdma_ep_connect);
	AT(RDMA_EP_DISCONNECT, rdma_ep_disconnect);
	AT(RDMA_EP_QUERY, rdma_ep_query);
	AT(RDMA_EP_WAIT, rdma_ep_wait);
	AT(RDMA_EP_RESOLVE_SERVICE, rdma_ep_resolve_service);
	}
#undef AT
	return 0;
}

/*
 * Leave something on the kernel's stack that the next call must not find there:
 * poll(2) copies its argument to it, and so does a reject its private data.
 */
static void dirty_stack(int fd)
{
	struct pollfd fds[30];
	uint8_t data[RDMA_EP_MAX_DATA];
	struct rdma_ep_reject cmd = {
		.hdr.size = sizeof(cmd),
		.private_data_uptr = UPTR(data),
		.private_data_len = sizeof(data),
	};

	memset(fds, 0x5a, sizeof(fds));
	memset(data, 0x5a, sizeof(data));
	poll(fds, ARRAY_SIZE(fds), 0);
	ioctl(fd, RDMA_EP_REJECT, &cmd);
}

static int watched_ioctl(int fd, unsigned long cmd, void *arg)
{
	unsigned int nr = _IOC_NR(cmd);
	struct rdma_ep_hdr *hdr = arg;
	uint8_t before[PATH_MAX];
	struct rdma_ep_record *rec = NULL;
	uint32_t size = hdr->size, i;
	int ret, err;

	if (nr >= COMMANDS || size > sizeof(before))
		return ioctl(fd, cmd, arg);
	seen[nr] = true;
	if (record_offset(nr))
		memcpy(&rec, arg + record_offset(nr), sizeof(rec));
	dirty_stack(fd);
	if (rec)
		memset(rec, 0, sizeof(*rec));
	memcpy(before, arg, size);

	ret = ioctl(fd, cmd, arg);
	err = errno;
	/* What the kernel has changed is an answer. */
	for (i = 0; i < size; i++)
		if (((uint8_t *)arg)[i] != before[i])
			look_at("argument", nr, arg + i, 1);
	if (!ret && rec && rec->size)
		look_at_record(nr, rec);
	if (!ret && cmd == RDMA_EP_INIT_QP_ATTR) {
		struct rdma_ep_init_qp_attr *init = arg;
		struct ib_uverbs_qp_attr attr;

		memcpy(&attr, (void *)(uintptr_t)init->attr_uptr, sizeof(attr));
		mask_attr(&attr);
		look_at("attr", nr, &attr, sizeof(attr));
	}
	if (!ret && cmd == RDMA_EP_GET_OPTION) {
		struct rdma_ep_option *option = arg;

		look_at("option", nr, (void *)(uintptr_t)option->value_uptr,
			option->value_len);
	}
	if (ret && hdr->reason_uptr)
		look_at_reason(nr, (void *)(uintptr_t)hdr->reason_uptr);
	errno = err;
	return ret;
}

/*
 * What the kernel tells in words
 */

/* Anything that looks like an address in the kernel, plain or hashed */
static bool has_pointer(const char *text)
{
	const char *p = text;

	while (*p) {
		size_t digits = strspn(p, "0123456789abcdef");

		if (digits == 16 && !isalnum((unsigned char)p[digits]) &&
		    (!strncmp(p, "ffff", 4) || !strncmp(p, "00000000", 8)) &&
		    !(p > text && p[-1] == ':'))
			return true;
		p += digits ? digits : 1;
	}
	return false;
}

/* How many lines of a file have one; -1: it cannot be read */
static int lines_with_pointers(const char *path, const char *only)
{
	FILE *file = fopen(path, "re");
	char line[4096];
	int found = 0;

	if (!file)
		return -1;
	while (fgets(line, sizeof(line), file)) {
		if (only && !strstr(line, only))
			continue;
		if (has_pointer(line)) {
			printf("# %s: %s", path, line);
			found++;
		}
	}
	fclose(file);
	return found;
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, text, strlen(text)) < 0)
		printf("# %s: %s\n", path, strerror(errno));
	close(fd);
}

/* A counter, -1 if there is none of the name, or no such file */
static long counter_in(const char *path, const char *name)
{
	FILE *file = fopen(path, "re");
	char word[64];
	long val, found = -1;

	if (!file)
		return -1;
	while (fscanf(file, "%63s %ld", word, &val) == 2)
		if (!strcmp(word, name))
			found = val;
	fclose(file);
	return found;
}

/* One of this network namespace */
static long counter(const char *name)
{
	return counter_in("/proc/net/rdma_ep", name);
}

FIXTURE(security)
{
	struct test_ctx ctx;
	struct situation s;
	struct rdma_ep_record rec;
	int fd;
};

FIXTURE_SETUP(security)
{
	ctx_open(_metadata, &self->ctx);
	self->fd = self->ctx.fd;
	self->s = (struct situation){ .family = AF_INET, .ps = PS_TCP };
}

FIXTURE_TEARDOWN(security)
{
	ctx_close(_metadata, &self->ctx);
}

/*
 * Nothing that the kernel had in memory
 */

FIXTURE(bytes)
{
	struct test_ctx ctx;
	struct situation s;
	struct rdma_ep_record rec;
	int fd;
};

FIXTURE_VARIANT(bytes)
{
	int family;
};

FIXTURE_VARIANT_ADD(bytes, ipv4) { .family = AF_INET };
FIXTURE_VARIANT_ADD(bytes, ipv6) { .family = AF_INET6 };

FIXTURE_SETUP(bytes)
{
	leaks = 0;
	looked_at = 0;
	ctx_open(_metadata, &self->ctx);
	self->fd = self->ctx.fd;
	self->s = (struct situation){ .family = variant->family, .ps = PS_TCP };
}

FIXTURE_TEARDOWN(bytes)
{
	EXPECT_LT(0, looked_at);
	EXPECT_EQ(0, leaks)
		TH_LOG("%u bytes that nobody wrote have come back", leaks);
	TH_LOG("looked at %lu bytes", looked_at);
	ctx_close(_metadata, &self->ctx);
}

static void look_by_reading(struct __test_metadata *_metadata, int channel, uint32_t type,
			    struct rdma_ep_record *rec)
{
	read_event(_metadata, channel, type, rec);
	look_at_record(COMMANDS, rec);
}

/* All parts of a record, whether they can be had or not */
static void query_all(int fd, uint32_t ep)
{
	struct ib_uverbs_qp_attr attr;
	struct rdma_ep_record rec;
	uint32_t state, part;

	for (part = RDMA_EP_REC_INFO; part <= RDMA_EP_REC_RTS; part <<= 1) {
		try_query(fd, ep, part, &rec);
		try_query(fd, ep, RDMA_EP_REC_INFO | part, &rec);
	}
	for (state = 0; state <= 6; state++)
		try_init_qp_attr(fd, ep, state, &attr);
}

/* A connection, its events by all ways, and every part of every answer */
TEST_F(bytes, connection)
{
	struct rdma_ep_conn_param param = conn_param("abc", 3);
	struct rdma_ep_conn_param answer = conn_param("defgh", 5);
	struct rdma_ep_record *rec = &self->rec;
	struct situation *s = &self->s;
	uint32_t ep, passive;
	int chan;

	do_ok(try_create_channel(self->fd, 0, &chan));
	make_listener(_metadata, self->fd, s, 4);
	query_all(self->fd, s->listener);
	do_ok(try_attach(self->fd, s->listener, chan));

	/* step by step, events by read(2) */
	do_ok(try_create(self->fd, PS_TCP, chan, 0x1234, &ep));
	query_all(self->fd, ep);
	do_ok(try_resolve_addr(self->fd, ep, 0, NULL, &s->addr, RESOLVE_MS, NULL));
	look_by_reading(_metadata, chan, RDMA_EP_EVENT_ADDR_RESOLVED, rec);
	query_all(self->fd, ep);
	do_ok(try_resolve_route(self->fd, ep, 0, NULL));
	look_by_reading(_metadata, chan, RDMA_EP_EVENT_ROUTE_RESOLVED, rec);
	query_all(self->fd, ep);
	do_ok(try_connect(self->fd, ep, 0, &param, NULL));
	look_by_reading(_metadata, chan, RDMA_EP_EVENT_CONNECT_REQUEST, rec);
	passive = rec->child;
	query_all(self->fd, passive);
	do_ok(try_accept(self->fd, passive, 0, &answer, NULL));
	look_by_reading(_metadata, chan, RDMA_EP_EVENT_CONNECT_RESPONSE, rec);
	query_all(self->fd, ep);
	do_ok(try_establish(self->fd, ep));
	look_by_reading(_metadata, chan, RDMA_EP_EVENT_ESTABLISHED, rec);
	query_all(self->fd, ep);
	query_all(self->fd, passive);
	try_notify(self->fd, passive, 4 /* IBV_EVENT_COMM_EST */);
	do_ok(try_write_event(self->fd, ep, -1, 0x77));
	look_by_reading(_metadata, chan, RDMA_EP_EVENT_USER, rec);
	do_ok(try_disconnect(self->fd, ep, 0, NULL));
	look_by_reading(_metadata, chan, RDMA_EP_EVENT_DISCONNECTED, rec);
	do_ok(try_disconnect(self->fd, passive, 0, NULL));
	query_all(self->fd, ep);
	do_ok(try_destroy(self->fd, ep));
	do_ok(try_destroy(self->fd, passive));
	do_ok(try_attach(self->fd, s->listener, -1));

	/* fused, events as answers */
	do_ok(try_create_ep(self->fd, 0, PS_TCP, NULL, &s->addr, rec, &ep));
	do_ok(try_connect(self->fd, ep, 0, &param, NULL));
	wait_event(_metadata, self->fd, s->listener, RDMA_EP_EVENT_CONNECT_REQUEST, rec);
	passive = rec->child;
	do_ok(try_reject(self->fd, passive, 0, "no", 2));
	wait_event(_metadata, self->fd, ep, RDMA_EP_EVENT_REJECTED, rec);
	query_all(self->fd, ep);
	do_ok(try_destroy(self->fd, ep));
	do_ok(try_destroy(self->fd, passive));
	close(chan);
}

TEST_F(bytes, datagrams_and_groups)
{
	const char *group = variant->family == AF_INET ? "239.7.7.7" : "ff0e::7:7";
	union test_addr host = host_addr(variant->family, 0);
	union test_addr addr = make_addr(group, 0);
	struct rdma_ep_conn_param param = conn_param("abc", 3);
	struct rdma_ep_record *rec = &self->rec;
	uint32_t ep, handle;

	self->s.ps = PS_UDP;
	make_listener(_metadata, self->fd, &self->s, 4);
	ep = make_active(_metadata, self->fd, &self->s);
	do_ok(try_connect(self->fd, ep, 0, &param, NULL));
	wait_event(_metadata, self->fd, self->s.listener, RDMA_EP_EVENT_CONNECT_REQUEST, rec);
	query_all(self->fd, rec->child);
	param = conn_param("xyz", 3);
	do_ok(try_accept(self->fd, rec->child, 0, &param, NULL));
	wait_event(_metadata, self->fd, ep, RDMA_EP_EVENT_ESTABLISHED, rec);
	query_all(self->fd, ep);

	do_ok(try_create(self->fd, PS_UDP, -1, 0, &ep));
	do_ok(try_bind(self->fd, ep, &host, rec));
	if (variant->family == AF_INET6) { /* soft-RoCE cannot */
		EXPECT_NE(0, try_join(self->fd, ep, 0, &addr, 0x99, &handle));
		return;
	}
	do_ok(try_join(self->fd, ep, 0, &addr, 0x99, &handle));
	wait_event(_metadata, self->fd, ep, RDMA_EP_EVENT_MULTICAST_JOIN, rec);
	query_all(self->fd, ep);
	do_ok(try_leave(self->fd, ep, handle, NULL));
}

static int try_destroy_many(int fd, const uint32_t *eps, uint32_t count)
{
	struct rdma_ep_destroy_many cmd = {
		.hdr = EP_HDR(cmd, 0),
		.eps_uptr = UPTR(eps),
		.count = count,
	};

	return ep_ioctl(fd, RDMA_EP_DESTROY_MANY, &cmd);
}

/* What is left, so that there is no command whose answer was not looked at */
TEST_F(bytes, other_commands)
{
	struct rdma_ep_resolve_service resolve = { .hdr = EP_HDR(resolve, 0), .by = 1 };
	struct rdma_ep_query_services query = { .hdr = EP_HDR(query, 0) };
	union test_addr host = host_addr(variant->family, 0);
	struct rdma_ep_get_info info;
	uint32_t name, ep;
	uint8_t byte = 3;
	uint32_t word;

	do_ok(try_get_info(self->fd, &info));
	do_ok(try_create(self->fd, PS_TCP, -1, 0, &ep));
	for (name = 0; name <= RDMA_EP_OPT_DEVICE + 1; name++) {
		word = 0;
		try_get_option(self->fd, ep, name, &word, sizeof(word));
		word = 0;
		try_get_option(self->fd, ep, name, &word, sizeof(byte));
	}
	do_ok(try_set_option(self->fd, ep, RDMA_EP_OPT_TOS, &byte, sizeof(byte)));
	do_ok(try_bind(self->fd, ep, &host, &self->rec));
	resolve.ep = ep;
	query.ep = ep;
	EXPECT_NE(0, ep_ioctl(self->fd, RDMA_EP_RESOLVE_SERVICE, &resolve));
	ep_ioctl(self->fd, RDMA_EP_QUERY_SERVICES, &query);
	do_ok(try_destroy_many(self->fd, &ep, 1));
	/* reasons */
	EXPECT_NE(0, try_bind(self->fd, ep, &host, NULL));
	EXPECT_NE(0, try_create(self->fd, 0x999, -1, 0, &ep));
	EXPECT_NE(0, try_create(self->fd, PS_TCP, 0, 0, &ep));
	EXPECT_EQ(COMMANDS, info.out_commands);
}

/* Is the memory of this machine what selftests/host/poison.sh wants it to be? */
TEST(poison_is_there)
{
	if (!getenv("POISONED"))
		return;
	EXPECT_EQ(1, file_has("/sys/kernel/slab/rdma_ep/poison", "1"));
	EXPECT_EQ(1, file_has("/proc/cmdline", "init_on_alloc=0"));
	EXPECT_EQ(1, file_has("/proc/cmdline", "randomize_kstack_offset=off"));
}

/* Neither trace events nor files nor the log tell where something is */
TEST_F(security, no_addresses_of_the_kernel)
{
	static const char *const events[] = {
		"rdma_ep_call", "rdma_ep_state", "rdma_ep_created", "rdma_ep_destroyed",
		"rdma_ep_path", "rdma_ep_event_queued", "rdma_ep_event_read", "rdma_ep_refused",
	};
	const char *tracing = "/sys/kernel/tracing";
	char path[256];
	size_t i;
	int chan;

	EXPECT_TRUE(has_pointer("at ffff888012345678 "));
	EXPECT_TRUE(has_pointer("at 0x00000000deadbeef"));
	for (i = 0; i < ARRAY_SIZE(events); i++) {
		snprintf(path, sizeof(path), "%s/events/rdma_ep/%s/format", tracing, events[i]);
		EXPECT_EQ(0, file_has(path, "void *"));
		EXPECT_EQ(0, file_has(path, "%px"));
		EXPECT_EQ(0, file_has(path, "0x%"));
	}
	snprintf(path, sizeof(path), "%s/trace", tracing);
	truncate(path, 0);
	write_file("/sys/kernel/tracing/events/rdma_ep/enable", "1");
	do_ok(try_create_channel(self->fd, 0, &chan));
	make_connected(_metadata, self->fd, &self->s);
	do_ok(try_attach(self->fd, self->s.active, chan));
	do_ok(try_write_event(self->fd, self->s.active, 0, 0));
	write_file("/sys/kernel/tracing/events/rdma_ep/enable", "0");
	EXPECT_EQ(1, file_has(path, "rdma_ep_call"));
	EXPECT_EQ(0, lines_with_pointers(path, "rdma_ep"));

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", self->fd);
	EXPECT_EQ(1, file_has(path, "CONNECTED"));
	EXPECT_EQ(0, lines_with_pointers(path, NULL));
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", chan);
	EXPECT_EQ(1, file_has(path, "rdma_ep-events"));
	EXPECT_EQ(0, lines_with_pointers(path, NULL));
	EXPECT_EQ(0, lines_with_pointers("/proc/net/rdma_ep", NULL));
	close(chan);
}

/*
 * Who may do what
 */

/* A child whose exit code says which of its expectations failed first; 0 for none */
static int child_code(struct __test_metadata *_metadata, pid_t pid)
{
	int status = 0;

	EXPECT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFEXITED(status));
	return WEXITSTATUS(status);
}

#define WANT(exit_code, cond)						\
	do {								\
		if (!(cond)) {						\
			printf("# child: " #cond ": errno %d, reason %u: %s\n", \
			       errno, ep_reason.code, ep_reason.text);	\
			fflush(stdout);					\
			_exit(exit_code);				\
		}							\
	} while (0)

static int become_nobody(void)
{
	return setresgid(NOBODY, NOBODY, NOBODY) ?: setresuid(NOBODY, NOBODY, NOBODY);
}

static int send_fd(int sock, int fd)
{
	char control[CMSG_SPACE(sizeof(fd))] = {};
	char byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	return sendmsg(sock, &msg, 0) == 1 ? 0 : -1;
}

static int receive_fd(int sock)
{
	char control[CMSG_SPACE(sizeof(int))];
	char byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	int fd = -1;

	if (recvmsg(sock, &msg, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&msg))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}

/* Handles mean nothing outside of their context, be it in the same process */
TEST_F(security, handles_of_another_context)
{
	union test_addr addr = host_addr(AF_INET, 0);
	int fd2 = open_ep();
	uint32_t ep, i;

	ASSERT_LE(0, fd2);
	for (i = 0; i < 8; i++)
		do_ok(try_create(self->fd, PS_TCP, -1, 0, &ep));
	for (i = 1; i <= ep; i++) {
		do_err(ENOENT, HANDLE, try_bind(fd2, i, &addr, NULL));
		do_err(ENOENT, HANDLE, try_query(fd2, i, RDMA_EP_REC_INFO, &self->rec));
		do_err(ENOENT, HANDLE, try_destroy(fd2, i));
		do_ok(try_destroy_many(fd2, &i, 1));
	}
	EXPECT_EQ(8, count_endpoints(_metadata, self->fd));
	close(fd2);
}

/* Addresses, ports, listeners and counters are those of one's namespace */
TEST_F(security, network_namespace)
{
	union test_addr host = host_addr(AF_INET, 0), any;
	pid_t pid;

	make_listener(_metadata, self->fd, &self->s, 4);
	any = any_addr(AF_INET, addr_port(&self->s.addr));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		uint32_t ep, ep2;
		int fd;

		WANT(1, !unshare(CLONE_NEWNET));
		WANT(2, counter("contexts") == 0 && counter("endpoints") == 0);
		fd = open_ep();
		WANT(3, fd >= 0);
		WANT(4, !try_create(fd, PS_TCP, -1, 0, &ep));
		WANT(5, try_bind(fd, ep, &host, NULL) == -EADDRNOTAVAIL);
		WANT(6, ep_reason.code == RDMA_EP_REASON_ADDR_NOT_LOCAL);
		/* the listener there cannot be reached from here */
		WANT(7, try_create_ep(fd, 0, PS_TCP, NULL, &self->s.addr, NULL, &ep2));
		/* its port is free here */
		WANT(8, !try_bind(fd, ep, &any, NULL));
		WANT(9, counter("contexts") == 1 && counter("endpoints") == 1);
		_exit(0);
	}
	EXPECT_EQ(0, child_code(_metadata, pid));
	EXPECT_EQ(1, counter("contexts"));
}

/* Root sees the sum of all network namespaces, also of those that are gone */
TEST_F(security, counters_of_all)
{
	static const char all[] = "/proc/net/rdma_ep_all";
	const long created = counter_in(all, "endpoints_created");
	const long here = counter("endpoints_created");
	int go[2];
	pid_t pid;

	ASSERT_LE(0, created);
	ASSERT_EQ(0, pipe2(go, O_CLOEXEC));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		uint32_t ep;
		char byte;
		int fd, i;

		WANT(1, !unshare(CLONE_NEWNET));
		fd = open_ep();
		WANT(2, fd >= 0);
		for (i = 0; i < 3; i++)
			WANT(3, !try_create(fd, PS_TCP, -1, 0, &ep));
		WANT(4, counter_in(all, "endpoints") == -1);
		close(go[1]);
		_exit(read(go[0], &byte, 1) != 0);
	}
	close(go[0]);
	while (counter_in(all, "endpoints_created") < created + 3 && !waitpid(pid, NULL, WNOHANG))
		usleep(1000);
	EXPECT_EQ(3, counter_in(all, "endpoints") - counter("endpoints"));
	close(go[1]);
	EXPECT_EQ(0, child_code(_metadata, pid));
	EXPECT_EQ(here, counter("endpoints_created"));
	EXPECT_EQ(created + 3, counter_in(all, "endpoints_created"));
	EXPECT_EQ(counter("endpoints"), counter_in(all, "endpoints"));

	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		WANT(1, !become_nobody());
		WANT(2, counter_in(all, "endpoints") == -1 && errno == EACCES);
		_exit(0);
	}
	EXPECT_EQ(0, child_code(_metadata, pid));
}

/* Being root in a user namespace of one's own gives no right outside of it */
TEST_F(security, user_namespace)
{
	union test_addr any = any_addr(AF_INET, 1);
	pid_t pid;

	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		uint32_t ep;
		int fd;

		WANT(1, !become_nobody());
		WANT(2, !unshare(CLONE_NEWUSER | CLONE_NEWNET));
		fd = open_ep();
		WANT(3, fd >= 0);
		WANT(4, !try_create(fd, PS_TCP, -1, 0, &ep));
		WANT(5, try_bind(fd, ep, &any, NULL) == -EACCES);
		WANT(6, ep_reason.code == RDMA_EP_REASON_ADDR_PRIVILEGED);
		any = any_addr(AF_INET, 2000);
		WANT(7, !try_bind(fd, ep, &any, NULL));
		WANT(8, !try_listen(fd, ep, 0, NULL));
		_exit(0);
	}
	EXPECT_EQ(0, child_code(_metadata, pid));
}

/*
 * A context that was passed on: all that is in it can be used, whoever made it;
 * what is made new belongs where its maker is, and needs the maker's rights,
 * not those of who has opened the file. It counts where it was opened.
 */
TEST_F(security, passed_context)
{
	union test_addr host = host_addr(AF_INET, 0), port1 = any_addr(AF_INET, 1);
	int socks[2], chan;
	uint32_t ep;
	pid_t pid;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks));
	do_ok(try_create_channel(self->fd, 0, &chan));
	do_ok(try_create(self->fd, PS_TCP, chan, 7, &ep));
	do_ok(try_bind(self->fd, ep, &host, NULL));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		struct rdma_ep_record rec;
		uint32_t mine;
		int fd;

		close(self->fd);
		close(chan);
		WANT(1, !unshare(CLONE_NEWNET) && !become_nobody());
		fd = receive_fd(socks[1]);
		WANT(2, fd >= 0);
		WANT(3, !try_query(fd, ep, RDMA_EP_REC_INFO, &rec) && rec.cookie == 7);
		WANT(4, !try_listen(fd, ep, 1, NULL));
		WANT(5, !try_write_event(fd, ep, 0, 8));
		WANT(6, !try_create(fd, PS_TCP, -1, 0, &mine));
		WANT(7, try_bind(fd, mine, &host, NULL) == -EADDRNOTAVAIL);
		WANT(8, try_bind(fd, mine, &port1, NULL) == -EACCES);
		WANT(9, counter("endpoints") == 0);
		/* its descriptors are not the other's */
		WANT(10, try_attach(fd, ep, chan) == -EBADF);
		_exit(0);
	}
	EXPECT_EQ(0, send_fd(socks[0], self->fd));
	EXPECT_EQ(0, child_code(_metadata, pid));
	EXPECT_EQ(2, counter("endpoints"));
	read_event(_metadata, chan, RDMA_EP_EVENT_USER, &self->rec);
	EXPECT_EQ(8, self->rec.arg);
	close(chan);
	close(socks[0]);
	close(socks[1]);
}

/* A channel that was passed on: its events can be read, and no call be made */
TEST_F(security, passed_channel)
{
	int socks[2], chan;
	uint32_t ep;
	pid_t pid;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks));
	do_ok(try_create_channel(self->fd, 0, &chan));
	do_ok(try_create(self->fd, PS_TCP, chan, 7, &ep));
	do_ok(try_write_event(self->fd, ep, 0, 8));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		struct rdma_ep_record rec;
		struct rdma_ep_get_info info;
		int fd;

		close(self->fd);
		close(chan);
		WANT(1, !become_nobody());
		fd = receive_fd(socks[1]);
		WANT(2, fd >= 0);
		WANT(3, !try_read(fd, &rec) && rec.arg == 8 && rec.cookie == 7);
		WANT(4, try_get_info(fd, &info) == -ENOTTY);
		WANT(5, try_destroy(fd, rec.ep) == -ENOTTY);
		WANT(6, write(fd, &rec, sizeof(rec)) < 0);
		_exit(0);
	}
	EXPECT_EQ(0, send_fd(socks[0], chan));
	EXPECT_EQ(0, child_code(_metadata, pid));
	EXPECT_EQ(1, count_endpoints(_metadata, self->fd));
	close(chan);
	close(socks[0]);
	close(socks[1]);
}

/* A right given up after the open is gone for what comes after it */
TEST_F(security, rights_are_those_of_the_moment)
{
	union test_addr port1 = any_addr(AF_INET, 1), any = any_addr(AF_INET, 0);
	pid_t pid;

	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		int fd = open_ep();
		uint32_t ep;

		WANT(1, fd >= 0 && !become_nobody());
		WANT(2, !try_create(fd, PS_TCP, -1, 0, &ep));
		WANT(3, try_bind(fd, ep, &port1, NULL) == -EACCES);
		WANT(4, !try_bind(fd, ep, &any, NULL));
		_exit(0);
	}
	EXPECT_EQ(0, child_code(_metadata, pid));
}

/* What a context holds is shown to its owner and to root only */
TEST_F(security, fdinfo_of_others)
{
	pid_t pid, parent = getpid();

	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		char path[64];

		snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", parent, self->fd);
		WANT(1, file_has(path, "rdma_ep-context") == 1);
		WANT(2, !become_nobody());
		WANT(3, file_has(path, "") < 0 && errno == EACCES);
		_exit(0);
	}
	EXPECT_EQ(0, child_code(_metadata, pid));
}

/* The longest list takes seconds, none of them uninterruptible */
TEST_F(security, longest_list)
{
	const uint32_t count = RDMA_EP_DESTROY_MAX;
	uint64_t start = now_ms();
	void *eps;
	int status;
	pid_t pid;

	eps = mmap(NULL, count * 4ULL, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		   -1, 0);
	ASSERT_NE(MAP_FAILED, eps);
	do_ok(try_destroy_many(self->fd, eps, count));
	EXPECT_GT(20000 * slow(), now_ms() - start);
	do_err(EINVAL, VALUE, try_destroy_many(self->fd, eps, count + 1));

	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		for (;;)
			try_destroy_many(self->fd, eps, count);
	usleep(300000);
	start = now_ms();
	ASSERT_EQ(0, kill(pid, SIGKILL));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_GT(5000 * slow(), now_ms() - start);
	munmap(eps, count * 4ULL);
}

TEST_HARNESS_MAIN
