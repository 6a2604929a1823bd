// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Memory runs out: every allocation of every command fails once.
 *
 * For each command there is a situation in which it succeeds. It is made anew,
 * the first allocation of the call is made to fail, then the second, and so on
 * until the call needs no more than are allowed. A call that fails must have
 * changed nothing: the state is as before, the number of endpoints too, no
 * file descriptor is lost, and the same call succeeds afterwards. Splats are
 * for the runner to see.
 *
 * Only allocations in the task of the call are reached: what rdma_cm does in
 * its work queues is not.
 */
#include <rdma/ib_user_sa.h>
#include <sys/epoll.h>

#include "rdma_ep_utils.h"

#define FAIL_NTH	"/proc/thread-self/fail-nth"
#define DEBUGFS		"/sys/kernel/debug/"
#define MAX_ALLOCATIONS	2000

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = write(fd, text, strlen(text));
	close(fd);
	return n == (ssize_t)strlen(text) ? 0 : -1;
}

/* Allocations that may sleep fail too; without a line in the log for each */
static bool setup_faults(void)
{
	if (access(FAIL_NTH, W_OK) ||
	    write_file(DEBUGFS "failslab/ignore-gfp-wait", "N"))
		return false;
	write_file(DEBUGFS "fail_page_alloc/ignore-gfp-wait", "N");
	write_file(DEBUGFS "fail_page_alloc/ignore-gfp-highmem", "N");
	write_file(DEBUGFS "failslab/verbose", "0");
	write_file(DEBUGFS "fail_page_alloc/verbose", "0");
	write_file(DEBUGFS "fail_usercopy/verbose", "0");
	return true;
}

static int fail_fd = -1;

static void fault_arm(unsigned int nth)
{
	char text[16];
	int n = snprintf(text, sizeof(text), "%u", nth);

	if (pwrite(fail_fd, text, n, 0) != n)
		abort();
}

/*
 * Whether the fault was met by the call. These calls copy from and to user
 * space, which can be made to fail as well: then it was not.
 */
static bool fault_disarm(void)
{
	char text[16] = "";
	bool met = pread(fail_fd, text, sizeof(text) - 1, 0) > 0 &&
		   atoi(text) == 0;

	if (pwrite(fail_fd, "0", 1, 0) != 1) {
		met = false;
		if (pwrite(fail_fd, "0", 1, 0) != 1)
			abort();
	}
	return met;
}

struct trial {
	int fd;
	int channel;
	struct situation s;
	struct peer peer;
	bool has_peer;
	uint32_t ep;		/* what the command is for */
	uint32_t out;		/* what it made */
	uint32_t group;
	struct rdma_ep_record rec;
	struct rdma_ep_conn_param param;
	char data[8];
};

#define RUN(name) \
	static int name(struct trial *t)

RUN(run_get_info)
{
	struct rdma_ep_get_info info;

	return try_get_info(t->fd, &info);
}

RUN(run_create_channel)
{
	int chan, ret = try_create_channel(t->fd, 0, &chan);

	if (!ret)
		close(chan);
	return ret;
}

RUN(run_create)
{
	return try_create(t->fd, PS_TCP, t->channel, 0, &t->out);
}

RUN(run_create_with_channel)
{
	struct rdma_ep_create cmd = {
		.hdr = EP_HDR(cmd, RDMA_EP_F_NEW_CHANNEL),
		.port_space = PS_TCP,
		.channel = -1,
	};
	int ret = ep_ioctl(t->fd, RDMA_EP_CREATE, &cmd);

	if (!ret) {
		t->out = cmd.out_ep;
		close(cmd.channel);
	}
	return ret;
}

RUN(run_create_ep_passive)
{
	union test_addr src = host_addr(AF_INET, 0);

	return try_create_ep(t->fd, RDMA_EP_CREATE_EP_PASSIVE, PS_TCP, &src,
			     NULL, &t->rec, &t->out);
}

RUN(run_create_ep_active)
{
	union test_addr dst = host_addr(AF_INET, 7);

	return try_create_ep(t->fd, 0, PS_TCP, NULL, &dst, &t->rec, &t->out);
}

RUN(run_destroy)
{
	return try_destroy(t->fd, t->ep);
}

RUN(run_bind)
{
	union test_addr addr = host_addr(AF_INET, 0);

	return try_bind(t->fd, t->ep, &addr, &t->rec);
}

RUN(run_bind_any)
{
	union test_addr addr = any_addr(AF_INET6, 0);

	return try_bind(t->fd, t->ep, &addr, &t->rec);
}

RUN(run_resolve_addr)
{
	union test_addr dst = host_addr(AF_INET, 7);

	return try_resolve_addr(t->fd, t->ep, RDMA_EP_F_WAIT, NULL, &dst,
				RESOLVE_MS, &t->rec);
}

RUN(run_resolve_route)
{
	return try_resolve_route(t->fd, t->ep, RDMA_EP_F_WAIT, &t->rec);
}

RUN(run_listen)
{
	return try_listen(t->fd, t->ep, 0, &t->rec);
}

RUN(run_connect)
{
	return try_connect(t->fd, t->ep, RDMA_EP_F_WAIT, &t->param, &t->rec);
}

RUN(run_accept)
{
	return try_accept(t->fd, t->ep, RDMA_EP_F_WAIT, &t->param, &t->rec);
}

RUN(run_establish)
{
	return try_establish(t->fd, t->ep);
}

RUN(run_reject)
{
	return try_reject(t->fd, t->ep, 0, t->data, sizeof(t->data));
}

/*
 * That ib_cm had no memory for the message, rdma_disconnect() keeps to itself:
 * who waits here learns of it after 90 s.
 */
RUN(run_disconnect)
{
	return try_disconnect(t->fd, t->ep, 0, NULL);
}

RUN(run_disconnect_wait)
{
	return try_disconnect(t->fd, t->ep, RDMA_EP_F_WAIT, &t->rec);
}

RUN(run_query)
{
	return try_query(t->fd, t->ep, RDMA_EP_REC_INFO | RDMA_EP_REC_INIT |
			 RDMA_EP_REC_RTR | RDMA_EP_REC_RTS, &t->rec);
}

RUN(run_init_qp_attr)
{
	return try_init_qp_attr(t->fd, t->ep, 1, &t->rec.attr[0]);
}

RUN(run_attach)
{
	return try_attach(t->fd, t->ep, t->channel);
}

RUN(run_attach_new)
{
	struct rdma_ep_attach cmd = {
		.hdr = EP_HDR(cmd, RDMA_EP_F_NEW_CHANNEL),
		.ep = t->ep,
		.channel = -1,
	};
	int ret = ep_ioctl(t->fd, RDMA_EP_ATTACH, &cmd);

	if (!ret)
		close(cmd.channel);
	return ret;
}

/* For the request that is there, with a channel for its endpoint */
RUN(run_wait)
{
	struct rdma_ep_wait cmd = {
		.hdr = EP_HDR(cmd, RDMA_EP_F_NEW_CHANNEL),
		.ep = t->ep,
		.record_len = sizeof(t->rec),
		.record_uptr = UPTR(&t->rec),
		.child_channel = -1,
	};
	int ret = ep_ioctl(t->fd, RDMA_EP_WAIT, &cmd);

	if (!ret)
		close(cmd.child_channel);
	return ret;
}

RUN(run_read)
{
	return try_read(t->channel, &t->rec);
}

RUN(run_notify)
{
	return try_notify(t->fd, t->ep, 4 /* IBV_EVENT_COMM_EST */);
}

RUN(run_join)
{
	union test_addr addr = make_addr("239.1.1.5", 0);

	return try_join(t->fd, t->ep, 0, &addr, 0, &t->out);
}

RUN(run_set_option)
{
	const uint32_t timeout_ms = 1000;

	return try_set_option(t->fd, t->ep, RDMA_EP_OPT_CONNECT_TIMEOUT,
			      &timeout_ms, sizeof(timeout_ms));
}

RUN(run_write_event)
{
	return try_write_event(t->fd, t->ep, 0, 1);
}

RUN(run_get_option)
{
	uint8_t tos;

	return try_get_option(t->fd, t->ep, RDMA_EP_OPT_TOS, &tos, sizeof(tos));
}

RUN(run_set_path)
{
	struct ib_path_rec_data path = {
		.flags = IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL,
	};

	return try_set_option(t->fd, t->ep, RDMA_EP_OPT_IB_PATH, &path,
			      sizeof(path));
}

RUN(run_leave)
{
	return try_leave(t->fd, t->ep, t->group, NULL);
}

RUN(run_open)
{
	int fd = open_ep();

	return fd < 0 ? -errno : close(fd);
}

RUN(run_poll)
{
	struct pollfd p = { .fd = t->channel, .events = POLLIN };

	return poll(&p, 1, 0) < 0 ? -errno : 0;
}

RUN(run_epoll)
{
	struct epoll_event event = { .events = EPOLLIN };
	int fd = epoll_create1(EPOLL_CLOEXEC), ret;

	if (fd < 0)
		return -errno;
	ret = epoll_ctl(fd, EPOLL_CTL_ADD, t->channel, &event) ? -errno : 0;
	close(fd);
	return ret;
}

/* There is always another descriptor for the trial's end to close */
RUN(run_close)
{
	int fd = dup(t->channel), ret;

	if (fd < 0)
		return -errno;
	ret = close(t->channel) ? -errno : 0;
	t->channel = fd;
	return ret;
}

RUN(run_close_channel)
{
	int chan, ret = try_create_channel(t->fd, 0, &chan);

	if (ret)
		return ret;
	ret = try_attach(t->fd, t->ep, chan);
	return close(chan) ? -errno : ret;
}

enum need {
	NEED_NOTHING,
	NEED_IDLE,
	NEED_BOUND,
	NEED_ADDR,
	NEED_ROUTE,
	NEED_PENDING,		/* a listener with a request to be read */
	NEED_REQUEST,
	NEED_RESPONSE,
	NEED_ACCEPTING,
	NEED_CONNECTED,
	NEED_DISCONNECTED,	/* and nobody has read of it */
	NEED_EVENT,		/* an event in the channel */
	NEED_UD,
	NEED_GROUP,
};

FIXTURE(fault)
{
	struct leak_count before;
	struct trial t;
};

FIXTURE_VARIANT(fault)
{
	int (*run)(struct trial *t);
	enum need need;
	bool final;		/* there is no second try */
	bool binds;		/* a failed try may have bound the endpoint */
};

#define FAULT(name, what, ...)			\
	FIXTURE_VARIANT_ADD(fault, name)	\
	{					\
		.run = run_##name,		\
		.need = what,			\
		__VA_ARGS__			\
	}

FAULT(get_info, NEED_NOTHING);
FAULT(create_channel, NEED_NOTHING);
FAULT(create, NEED_NOTHING);
FAULT(create_with_channel, NEED_NOTHING);
FAULT(create_ep_passive, NEED_NOTHING);
FAULT(create_ep_active, NEED_NOTHING);
FAULT(destroy, NEED_BOUND, .final = true);
FAULT(bind, NEED_IDLE);
FAULT(bind_any, NEED_IDLE);
FAULT(resolve_addr, NEED_IDLE, .binds = true);
FAULT(resolve_route, NEED_ADDR);
FAULT(listen, NEED_BOUND);
FAULT(connect, NEED_ROUTE);
/* rdma_cm gives the attempt up when it cannot answer */
FAULT(accept, NEED_REQUEST, .final = true);
FAULT(establish, NEED_RESPONSE, .final = true);
FAULT(reject, NEED_REQUEST, .final = true);
FAULT(disconnect, NEED_CONNECTED);
FAULT(disconnect_wait, NEED_DISCONNECTED);
FAULT(query, NEED_RESPONSE);
FAULT(init_qp_attr, NEED_ROUTE);
FAULT(attach, NEED_IDLE);
FAULT(attach_new, NEED_EVENT);
FAULT(wait, NEED_PENDING);
FAULT(read, NEED_EVENT);
FAULT(notify, NEED_ACCEPTING);
FAULT(join, NEED_UD);
FAULT(set_option, NEED_IDLE);
FAULT(write_event, NEED_IDLE);
FAULT(get_option, NEED_IDLE);
FAULT(set_path, NEED_ADDR);
FAULT(leave, NEED_GROUP, .final = true);
FAULT(open, NEED_NOTHING);
FAULT(poll, NEED_EVENT);
FAULT(epoll, NEED_EVENT);
FAULT(close, NEED_EVENT);
FAULT(close_channel, NEED_IDLE);

static void trial_begin(struct __test_metadata *_metadata, struct trial *t,
			enum need need)
{
	struct rdma_ep_conn_param param = conn_param(NULL, 0);
	union test_addr host = host_addr(AF_INET, 0);
	union test_addr dst = host_addr(AF_INET, 7);

	memset(t, 0, sizeof(*t));
	t->param = conn_param(t->data, sizeof(t->data));
	t->s.family = AF_INET;
	t->s.ps = PS_TCP;
	t->fd = open_ep();
	ASSERT_LE(0, t->fd);
	do_ok(try_create_channel(t->fd, O_NONBLOCK, &t->channel));
	switch (need) {
	case NEED_NOTHING:
		break;
	case NEED_IDLE:
	case NEED_BOUND:
		do_ok(try_create(t->fd, PS_TCP, -1, 0, &t->ep));
		if (need == NEED_BOUND)
			do_ok(try_bind(t->fd, t->ep, &host, NULL));
		break;
	case NEED_EVENT:
		do_ok(try_create(t->fd, PS_TCP, t->channel, 0, &t->ep));
		do_ok(try_write_event(t->fd, t->ep, 0, 0));
		break;
	case NEED_ADDR:
	case NEED_ROUTE:
		do_ok(try_create_ep(t->fd, need == NEED_ADDR ?
				    RDMA_EP_CREATE_EP_NO_ROUTE : 0, PS_TCP,
				    NULL, &dst, NULL, &t->ep));
		break;
	case NEED_PENDING:
		make_listener(_metadata, t->fd, &t->s, 4);
		t->ep = t->s.listener;
		t->s.active = make_active(_metadata, t->fd, &t->s);
		do_ok(try_connect(t->fd, t->s.active, 0, &param, NULL));
		do {
			usleep(2000);
			do_ok(try_query(t->fd, t->ep, RDMA_EP_REC_INFO,
					&t->rec));
		} while (!t->rec.info.requests);
		break;
	case NEED_REQUEST:
		make_request(_metadata, t->fd, &t->s);
		t->ep = t->s.passive;
		peer_start(_metadata, &t->peer, t->fd, t->s.active);
		t->has_peer = true;
		break;
	case NEED_RESPONSE:
		make_responded(_metadata, t->fd, &t->s);
		t->ep = t->s.active;
		break;
	case NEED_ACCEPTING:
		make_request(_metadata, t->fd, &t->s);
		t->ep = t->s.passive;
		do_ok(try_accept(t->fd, t->ep, 0, &param, NULL));
		break;
	case NEED_CONNECTED:
	case NEED_DISCONNECTED:
		make_connected(_metadata, t->fd, &t->s);
		t->ep = t->s.active;
		peer_start(_metadata, &t->peer, t->fd, t->s.passive);
		t->has_peer = true;
		if (need == NEED_CONNECTED)
			break;
		do_ok(try_disconnect(t->fd, t->ep, 0, NULL));
		while (ep_state(_metadata, t->fd, t->ep) !=
		       RDMA_EP_STATE_DISCONNECTED)
			usleep(2000);
		break;
	case NEED_UD:
	case NEED_GROUP:
		do_ok(try_create(t->fd, PS_UDP, -1, 0, &t->ep));
		do_ok(try_bind(t->fd, t->ep, &host, NULL));
		if (need == NEED_UD)
			break;
		dst = make_addr("239.1.1.5", 0);
		do_ok(try_join(t->fd, t->ep, 0, &dst, 0, &t->group));
		wait_event(_metadata, t->fd, t->ep,
			   RDMA_EP_EVENT_MULTICAST_JOIN, &t->rec);
		break;
	}
}

static void trial_end(struct __test_metadata *_metadata, struct trial *t)
{
	if (t->has_peer)
		peer_stop(_metadata, &t->peer);
	close(t->channel);
	close(t->fd);
}

FIXTURE_SETUP(fault)
{
	if (!setup_faults())
		SKIP(return, "the kernel has no fault injection");
	ASSERT_EQ(0, count_resources(&self->before));
	fail_fd = open(FAIL_NTH, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, fail_fd);
}

FIXTURE_TEARDOWN(fault)
{
	struct leak_count now;

	if (fail_fd < 0)
		return;
	close(fail_fd);
	EXPECT_EQ(0, count_resources(&now));
	EXPECT_EQ(self->before.cm_ids, now.cm_ids);
	EXPECT_EQ(self->before.fds, now.fds);
}

TEST_F_TIMEOUT(fault, each_allocation, 600)
{
	struct trial *t = &self->t;
	unsigned int nth, failed = 0;
	bool met = true;

	if (fail_fd < 0)
		return;
	for (nth = 1; met && nth < MAX_ALLOCATIONS; nth++) {
		uint32_t state = 0, endpoints;
		int ret, fds;

		trial_begin(_metadata, t, variant->need);
		if (t->ep)
			state = ep_state(_metadata, t->fd, t->ep);
		endpoints = count_endpoints(_metadata, t->fd);
		fds = count_fds();

		fault_arm(nth);
		ret = variant->run(t);
		met = fault_disarm();

		if (ret) {
			/* what cannot be reported may have happened */
			bool strict = !variant->final && ret != -EFAULT;

			failed++;
			EXPECT_EQ(true, met);
			EXPECT_TRUE(ret == -ENOMEM || ret == -EFAULT ||
				    ret == -ENOBUFS || variant->final)
				TH_LOG("allocation %u: %s", nth, strerror(-ret));
			if (variant->run != run_destroy) {
				EXPECT_EQ(endpoints,
					  count_endpoints(_metadata, t->fd))
					TH_LOG("allocation %u", nth);
			}
			EXPECT_EQ(fds, count_fds())
				TH_LOG("allocation %u", nth);
			if (t->ep && strict) {
				uint32_t now = ep_state(_metadata, t->fd,
							t->ep);

				EXPECT_TRUE(now == state ||
					    (variant->binds &&
					     now == RDMA_EP_STATE_BOUND))
					TH_LOG("allocation %u: state %u", nth,
					       now);
			}
			if (strict) {
				ret = variant->run(t);
				EXPECT_EQ(0, ret)
					TH_LOG("after allocation %u: %s", nth,
					       ep_reason.text);
			}
		}
		trial_end(_metadata, t);
		if (!_metadata->passed)
			break;
	}
	EXPECT_GT(MAX_ALLOCATIONS, nth);
	TH_LOG("%u allocations, %u of them cannot be done without", nth - 2,
	       failed);
}

TEST_HARNESS_MAIN
