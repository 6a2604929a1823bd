// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Calls through io_uring: each kind of call, waits that occupy no thread, and
 * how they end: by their event, by the end of the endpoint, of the ring, of the
 * thread, of the process.
 *
 * What a call does is tested with ioctl(2). Here it is how the answer comes.
 */
#include "uring_utils.h"

#define ENTRIES		256

FIXTURE(uring)
{
	struct test_ctx ctx;
	int fd;
	struct io_uring ring;
	bool ring_open;
	struct situation s;
	struct rdma_ep_record rec;
};

FIXTURE_SETUP(uring)
{
	ctx_open(_metadata, &self->ctx);
	self->fd = self->ctx.fd;
	ASSERT_EQ(0, io_uring_queue_init(ENTRIES, &self->ring, 0));
	self->ring_open = true;
	self->s.family = AF_INET;
	self->s.ps = PS_TCP;
}

static void ring_close(struct io_uring *ring, bool *is_open)
{
	if (*is_open)
		io_uring_queue_exit(ring);
	*is_open = false;
}

FIXTURE_TEARDOWN(uring)
{
	ring_close(&self->ring, &self->ring_open);
	ctx_close(_metadata, &self->ctx);
}

static struct rdma_ep_wait wait_arg(uint32_t ep, struct rdma_ep_record *rec)
{
	return (struct rdma_ep_wait){
		.hdr = EP_HDR(struct rdma_ep_wait, 0),
		.ep = ep,
		.record_len = sizeof(*rec),
		.record_uptr = UPTR(rec),
		.child_channel = -1,
	};
}

static struct rdma_ep_create_ep create_arg(const union test_addr *dst,
					   struct rdma_ep_record *rec)
{
	return (struct rdma_ep_create_ep){
		.hdr = EP_HDR(struct rdma_ep_create_ep, 0),
		.cookie = 0xc00c1e,
		.port_space = PS_TCP,
		.channel = -1,
		.timeout_ms = RESOLVE_MS,
		.dst = ep_addr(dst),
		.record_uptr = UPTR(rec),
		.record_len = rec ? sizeof(*rec) : 0,
	};
}

static struct rdma_ep_connect connect_arg(uint32_t ep,
					  struct rdma_ep_record *rec)
{
	return (struct rdma_ep_connect){
		.hdr = EP_HDR(struct rdma_ep_connect, RDMA_EP_F_WAIT),
		.ep = ep,
		.record_len = sizeof(*rec),
		.record_uptr = UPTR(rec),
		.param = conn_param(NULL, 0),
	};
}

static struct rdma_ep_disconnect disconnect_arg(uint32_t ep,
						struct rdma_ep_record *rec)
{
	return (struct rdma_ep_disconnect){
		.hdr = EP_HDR(struct rdma_ep_disconnect, RDMA_EP_F_WAIT),
		.ep = ep,
		.record_len = sizeof(*rec),
		.record_uptr = UPTR(rec),
	};
}

/* Start to wait at an endpoint, and see that it does */
static void pend(struct __test_metadata *_metadata, struct io_uring *ring,
		 int fd, const struct rdma_ep_wait *arg)
{
	prep(ring, fd, RDMA_EP_WAIT, arg, arg->ep);
	ASSERT_EQ(1, io_uring_submit(ring));
	ASSERT_EQ(-ETIME, reap(ring, NULL, 50));
}

TEST_F(uring, is_announced)
{
	struct rdma_ep_get_info info = { .hdr = EP_HDR(info, 0) };

	do_ok(call(&self->ring, self->fd, RDMA_EP_GET_INFO, &info));
	EXPECT_EQ(RDMA_EP_ABI_VERSION, info.out_abi_version);
	EXPECT_TRUE(info.out_features & RDMA_EP_FEATURE_URING);
}

TEST_F(uring, the_command_area)
{
	struct rdma_ep_get_info info = { .hdr = EP_HDR(info, 0) };
	struct rdma_ep_uring_cmd area = { .arg_uptr = UPTR(&info) };
	struct io_uring_sqe *sqe;

	sqe = prep(&self->ring, self->fd, RDMA_EP_GET_INFO, &info, 0);
	area.flags = 1;
	memcpy(sqe->cmd, &area, sizeof(area));
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	EXPECT_EQ(-EOPNOTSUPP, reap(&self->ring, NULL, END_MS));

	sqe = prep(&self->ring, self->fd, RDMA_EP_GET_INFO, &info, 0);
	area.flags = 0;
	area.reserved = 1;
	memcpy(sqe->cmd, &area, sizeof(area));
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	EXPECT_EQ(-EOPNOTSUPP, reap(&self->ring, NULL, END_MS));

	EXPECT_EQ(-ENOTTY, call(&self->ring, self->fd, 0x12345678, &info));
	EXPECT_EQ(-EFAULT, call(&self->ring, self->fd, RDMA_EP_GET_INFO,
				(void *)8));
	EXPECT_EQ(0, info.out_abi_version);
	do_ok(call(&self->ring, self->fd, RDMA_EP_GET_INFO, &info));
}

TEST_F(uring, a_failure_has_a_reason)
{
	struct rdma_ep_establish cmd = { .hdr = EP_HDR(cmd, 0), .ep = 4711 };
	struct rdma_ep_wait wait = wait_arg(4711, &self->rec);

	do_err(ENOENT, HANDLE,
	       call(&self->ring, self->fd, RDMA_EP_ESTABLISH, &cmd));
	do_err(ENOENT, HANDLE,
	       call(&self->ring, self->fd, RDMA_EP_WAIT, &wait));
	cmd.hdr.flags = 1 << 30;
	do_err(EOPNOTSUPP, STRUCT,
	       call(&self->ring, self->fd, RDMA_EP_ESTABLISH, &cmd));
}

/* Refused; newer kernels do not tell, and the call is served as ever. */
TEST_F(uring, iopoll_does_no_harm)
{
	struct rdma_ep_get_info info = { .hdr = EP_HDR(info, 0) };
	struct io_uring ring;
	int ret;

	ASSERT_EQ(0, io_uring_queue_init(4, &ring, IORING_SETUP_IOPOLL));
	prep(&ring, self->fd, RDMA_EP_GET_INFO, &info, 0);
	ASSERT_EQ(1, io_uring_submit(&ring));
	ret = reap(&ring, NULL, END_MS);
	EXPECT_TRUE(ret == -EOPNOTSUPP || ret == 0)
		TH_LOG("%d", ret);
	if (!ret)
		EXPECT_EQ(RDMA_EP_ABI_VERSION, info.out_abi_version);
	io_uring_queue_exit(&ring);
}

/* Commands that do not wait: all that are left, on one listener and its peers */
TEST_F(uring, calls_that_do_not_wait)
{
	union test_addr addr = host_addr(AF_INET, 0);
	uint8_t tos = 0x20, got = 0;
	struct rdma_ep_create_channel channel = {
		.hdr = EP_HDR(channel, 0), .file_flags = O_CLOEXEC,
	};
	struct rdma_ep_create create = {
		.hdr = EP_HDR(create, 0), .port_space = PS_TCP,
	};
	struct rdma_ep_bind bind = {
		.hdr = EP_HDR(bind, 0), .addr = ep_addr(&addr),
		.record_uptr = UPTR(&self->rec), .record_len = sizeof(self->rec),
	};
	struct rdma_ep_listen listen = { .hdr = EP_HDR(listen, 0) };
	struct rdma_ep_option option = {
		.hdr = EP_HDR(option, 0), .name = RDMA_EP_OPT_TOS,
		.value_uptr = UPTR(&tos), .value_len = 1,
	};
	struct rdma_ep_query query = {
		.hdr = EP_HDR(query, 0), .parts = RDMA_EP_REC_INFO,
		.record_uptr = UPTR(&self->rec), .record_len = sizeof(self->rec),
	};
	struct rdma_ep_init_qp_attr attr = { .hdr = EP_HDR(attr, 0), .qp_state = 1 };
	struct ib_uverbs_qp_attr qp_attr = {};
	struct rdma_ep_write_event event = {
		.hdr = EP_HDR(event, 0), .event = RDMA_EP_EVENT_USER, .arg = 42,
	};
	struct rdma_ep_attach attach = { .hdr = EP_HDR(attach, 0), .channel = -1 };
	struct rdma_ep_query_services services = { .hdr = EP_HDR(services, 0) };
	struct io_uring *ring = &self->ring;
	struct rdma_ep_wait wait;
	uint32_t ep;

	do_ok(call(ring, self->fd, RDMA_EP_CREATE_CHANNEL, &channel));
	create.channel = channel.out_fd;
	do_ok(call(ring, self->fd, RDMA_EP_CREATE, &create));
	ep = create.out_ep;

	option.ep = ep;
	do_ok(call(ring, self->fd, RDMA_EP_SET_OPTION, &option));
	option.value_uptr = UPTR(&got);
	do_ok(call(ring, self->fd, RDMA_EP_GET_OPTION, &option));
	EXPECT_EQ(tos, got);

	bind.ep = ep;
	do_ok(call(ring, self->fd, RDMA_EP_BIND, &bind));
	EXPECT_NE(0, self->rec.info.src.len);
	attr.ep = ep;
	attr.attr_uptr = UPTR(&qp_attr);
	do_ok(call(ring, self->fd, RDMA_EP_INIT_QP_ATTR, &attr));
	EXPECT_NE(0, qp_attr.qp_attr_mask);
	listen.ep = ep;
	do_ok(call(ring, self->fd, RDMA_EP_LISTEN, &listen));
	query.ep = ep;
	do_ok(call(ring, self->fd, RDMA_EP_QUERY, &query));
	EXPECT_EQ(RDMA_EP_STATE_LISTENING, self->rec.info.state);
	services.ep = ep;
	do_ok(call(ring, self->fd, RDMA_EP_QUERY_SERVICES, &services));
	EXPECT_EQ(0, services.out_count);

	event.ep = ep;
	do_ok(call(ring, self->fd, RDMA_EP_WRITE_EVENT, &event));
	EXPECT_TRUE(is_readable(channel.out_fd, 0));
	attach.ep = ep;
	do_ok(call(ring, self->fd, RDMA_EP_ATTACH, &attach));
	EXPECT_FALSE(is_readable(channel.out_fd, 0));
	wait = wait_arg(ep, &self->rec);
	do_ok(call(ring, self->fd, RDMA_EP_WAIT, &wait));
	EXPECT_EVENT(USER, &self->rec);
	EXPECT_EQ(42, self->rec.arg);

	/* an EAGAIN of the call is its answer, not one to try again */
	wait.hdr.flags = RDMA_EP_WAIT_NOWAIT;
	EXPECT_EQ(-EAGAIN, call(ring, self->fd, RDMA_EP_WAIT, &wait));
	close(channel.out_fd);
}

TEST_F(uring, groups_are_joined_and_left)
{
	union test_addr mc = make_addr("239.77.1.1", 0);
	union test_addr addr = host_addr(AF_INET, 0);
	struct rdma_ep_join join = {
		.hdr = EP_HDR(join, 0), .cookie = 7, .addr = ep_addr(&mc),
	};
	struct rdma_ep_leave leave = { .hdr = EP_HDR(leave, 0) };
	struct rdma_ep_wait wait;
	uint32_t ep;

	do_ok(try_create(self->fd, PS_UDP, -1, 0, &ep));
	do_ok(try_bind(self->fd, ep, &addr, NULL));
	join.ep = ep;
	do_ok(call(&self->ring, self->fd, RDMA_EP_JOIN, &join));
	wait = wait_arg(ep, &self->rec);
	do_ok(call(&self->ring, self->fd, RDMA_EP_WAIT, &wait));
	EXPECT_EVENT(MULTICAST_JOIN, &self->rec);
	EXPECT_EQ(7, self->rec.arg);
	leave.ep = ep;
	leave.group = join.out_group;
	do_ok(call(&self->ring, self->fd, RDMA_EP_LEAVE, &leave));
	do_err(ENOENT, HANDLE,
	       call(&self->ring, self->fd, RDMA_EP_LEAVE, &leave));
}

/* A connection from its beginning to its end, all waits pending at once */
TEST_F(uring, a_connection)
{
	struct rdma_ep_record req = {}, active = {}, passive = {};
	struct rdma_ep_establish establish = { .hdr = EP_HDR(establish, 0) };
	struct rdma_ep_destroy destroy = { .hdr = EP_HDR(destroy, 0) };
	struct rdma_ep_disconnect bye;
	struct rdma_ep_create_ep create;
	struct rdma_ep_connect connect, accept;
	struct io_uring *ring = &self->ring;
	struct rdma_ep_wait wait;
	uint64_t tag = 0;

	make_listener(_metadata, self->fd, &self->s, 16);
	wait = wait_arg(self->s.listener, &req);
	pend(_metadata, ring, self->fd, &wait);

	create = create_arg(&self->s.addr, &active);
	prep(ring, self->fd, RDMA_EP_CREATE_EP, &create, 1);
	ASSERT_EQ(1, io_uring_submit(ring));
	do_ok(reap(ring, &tag, END_MS));
	ASSERT_EQ(1, tag);
	EXPECT_EQ(0xc00c1e, active.cookie);
	EXPECT_EQ(create.out_ep, active.ep);
	EXPECT_EQ(RDMA_EP_STATE_ROUTE_RESOLVED, active.info.state);
	EXPECT_TRUE(active.flags & RDMA_EP_REC_INIT);
	EXPECT_GOOD_RECORD(&active);

	connect = connect_arg(create.out_ep, &active);
	prep(ring, self->fd, RDMA_EP_CONNECT, &connect, 2);
	ASSERT_EQ(1, io_uring_submit(ring));
	do_ok(reap(ring, &tag, END_MS));
	ASSERT_EQ(self->s.listener, tag);
	ASSERT_EVENT(CONNECT_REQUEST, &req);
	EXPECT_EQ(-ETIME, reap(ring, NULL, 50));

	accept = connect_arg(req.child, &passive);
	prep(ring, self->fd, RDMA_EP_ACCEPT, &accept, 3);
	ASSERT_EQ(1, io_uring_submit(ring));
	do_ok(reap(ring, &tag, END_MS));
	ASSERT_EQ(2, tag);
	ASSERT_EVENT(CONNECT_RESPONSE, &active);
	EXPECT_EQ(RDMA_EP_REC_RTR | RDMA_EP_REC_RTS,
		  active.flags & (RDMA_EP_REC_RTR | RDMA_EP_REC_RTS));
	EXPECT_GOOD_RECORD(&active);

	establish.ep = create.out_ep;
	prep(ring, self->fd, RDMA_EP_ESTABLISH, &establish, 4);
	ASSERT_EQ(1, io_uring_submit(ring));
	do_ok(reap(ring, &tag, END_MS));
	ASSERT_EQ(4, tag);
	do_ok(reap(ring, &tag, END_MS));
	ASSERT_EQ(3, tag);
	EXPECT_EVENT(ESTABLISHED, &passive);

	/* the peer's end is what each of them waits for */
	wait = wait_arg(req.child, &passive);
	pend(_metadata, ring, self->fd, &wait);
	bye = disconnect_arg(create.out_ep, &active);
	prep(ring, self->fd, RDMA_EP_DISCONNECT, &bye, 5);
	ASSERT_EQ(1, io_uring_submit(ring));
	do_ok(reap(ring, &tag, END_MS));
	ASSERT_EQ(req.child, tag);
	EXPECT_EVENT(DISCONNECTED, &passive);
	do_ok(try_disconnect(self->fd, req.child, 0, NULL));
	do_ok(reap(ring, &tag, END_MS));
	ASSERT_EQ(5, tag);
	EXPECT_EVENT(DISCONNECTED, &active);

	/* nothing is left to wait for */
	bye = disconnect_arg(create.out_ep, &active);
	do_ok(call(ring, self->fd, RDMA_EP_DISCONNECT, &bye));
	EXPECT_EVENT(NONE, &active);

	destroy.ep = create.out_ep;
	do_ok(call(ring, self->fd, RDMA_EP_DESTROY, &destroy));
	do_err(ENOENT, HANDLE,
	       call(ring, self->fd, RDMA_EP_DESTROY, &destroy));
}

TEST_F(uring, single_steps)
{
	struct rdma_ep_resolve_addr addr = {
		.hdr = EP_HDR(addr, RDMA_EP_F_WAIT), .timeout_ms = RESOLVE_MS,
		.record_uptr = UPTR(&self->rec), .record_len = sizeof(self->rec),
	};
	struct rdma_ep_resolve_route route = {
		.hdr = EP_HDR(route, RDMA_EP_F_WAIT), .timeout_ms = RESOLVE_MS,
		.record_uptr = UPTR(&self->rec), .record_len = sizeof(self->rec),
	};
	struct rdma_ep_reject reject = { .hdr = EP_HDR(reject, 0) };
	struct rdma_ep_notify notify = { .hdr = EP_HDR(notify, 0), .event = 4 };
	struct io_uring *ring = &self->ring;
	struct rdma_ep_record req = {};
	struct rdma_ep_connect connect;
	uint32_t ep;

	make_listener(_metadata, self->fd, &self->s, 16);
	do_ok(try_create(self->fd, PS_TCP, -1, 0, &ep));
	addr.ep = ep;
	addr.dst = ep_addr(&self->s.addr);
	do_ok(call(ring, self->fd, RDMA_EP_RESOLVE_ADDR, &addr));
	EXPECT_EVENT(ADDR_RESOLVED, &self->rec);
	route.ep = ep;
	do_ok(call(ring, self->fd, RDMA_EP_RESOLVE_ROUTE, &route));
	EXPECT_EVENT(ROUTE_RESOLVED, &self->rec);

	/* nothing is sent over connections that are none */
	notify.ep = ep;
	do_err(EINVAL, NONE,
	       call(ring, self->fd, RDMA_EP_NOTIFY, &notify));

	connect = connect_arg(ep, &self->rec);
	prep(ring, self->fd, RDMA_EP_CONNECT, &connect, 1);
	ASSERT_EQ(1, io_uring_submit(ring));
	wait_event(_metadata, self->fd, self->s.listener,
		   RDMA_EP_EVENT_CONNECT_REQUEST, &req);
	reject.ep = req.child;
	prep(ring, self->fd, RDMA_EP_REJECT, &reject, 2);
	ASSERT_EQ(1, io_uring_submit(ring));
	do_ok(reap(ring, NULL, END_MS));
	do_ok(reap(ring, NULL, END_MS));
	EXPECT_EVENT(REJECTED, &self->rec);
	EXPECT_EQ(28, self->rec.status);
	EXPECT_EQ(RDMA_EP_REASON_REJECTED, ep_reason.code);
}

/* A wait for what was started by ioctl(2) */
TEST_F(uring, resume)
{
	struct rdma_ep_conn_param param = conn_param(NULL, 0);
	struct rdma_ep_connect connect;
	struct rdma_ep_record req;

	make_listener(_metadata, self->fd, &self->s, 16);
	self->s.active = make_active(_metadata, self->fd, &self->s);
	do_ok(try_connect(self->fd, self->s.active, 0, &param, NULL));
	connect = connect_arg(self->s.active, &self->rec);
	connect.hdr.flags |= RDMA_EP_F_RESUME;
	prep(&self->ring, self->fd, RDMA_EP_CONNECT, &connect, 1);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	wait_event(_metadata, self->fd, self->s.listener,
		   RDMA_EP_EVENT_CONNECT_REQUEST, &req);
	do_ok(try_destroy(self->fd, req.child));
	do_ok(reap(&self->ring, NULL, END_MS));
	EXPECT_EVENT(REJECTED, &self->rec);
	do_err(ENODATA, STATE,
	       call(&self->ring, self->fd, RDMA_EP_CONNECT, &connect));
}

TEST_F(uring, new_channels)
{
	struct rdma_ep_record req = {};
	struct rdma_ep_create_ep create;
	struct rdma_ep_connect connect;
	struct rdma_ep_wait wait;
	uint64_t tag;

	make_listener(_metadata, self->fd, &self->s, 16);
	create = create_arg(&self->s.addr, NULL);
	create.hdr.flags = RDMA_EP_F_NEW_CHANNEL;
	do_ok(call(&self->ring, self->fd, RDMA_EP_CREATE_EP, &create));
	ASSERT_LE(0, create.channel);
	do_ok(try_write_event(self->fd, create.out_ep, 0, 5));
	read_event(_metadata, create.channel, RDMA_EP_EVENT_USER, &self->rec);

	wait = wait_arg(self->s.listener, &req);
	wait.hdr.flags = RDMA_EP_F_NEW_CHANNEL;
	pend(_metadata, &self->ring, self->fd, &wait);
	connect = connect_arg(create.out_ep, &self->rec);
	prep(&self->ring, self->fd, RDMA_EP_CONNECT, &connect, 1);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	do_ok(reap(&self->ring, &tag, END_MS));
	ASSERT_EQ(self->s.listener, tag);
	ASSERT_LE(0, wait.child_channel);
	do_ok(try_write_event(self->fd, req.child, 0, 6));
	read_event(_metadata, wait.child_channel, RDMA_EP_EVENT_USER,
		   &self->rec);
	do_ok(try_destroy(self->fd, req.child));
	do_ok(reap(&self->ring, &tag, END_MS));
	EXPECT_EVENT(REJECTED, &self->rec);

	close(wait.child_channel);
	close(create.channel);

	/* a channel that is none is told before anything is made */
	create = create_arg(&self->s.addr, NULL);
	create.channel = self->ring.ring_fd;
	do_err(EBADF, CHANNEL,
	       call(&self->ring, self->fd, RDMA_EP_CREATE_EP, &create));
	EXPECT_EQ(2, count_endpoints(_metadata, self->fd));
}

/* O_NONBLOCK is about threads: here none would wait */
TEST_F(uring, nonblocking_channels)
{
	struct rdma_ep_wait wait;
	uint32_t ep;
	int chan;

	do_ok(try_create_channel(self->fd, O_NONBLOCK | O_CLOEXEC, &chan));
	do_ok(try_create(self->fd, PS_TCP, chan, 0, &ep));
	wait = wait_arg(ep, &self->rec);
	pend(_metadata, &self->ring, self->fd, &wait);
	do_ok(try_write_event(self->fd, ep, 0, 9));
	do_ok(reap(&self->ring, NULL, END_MS));
	EXPECT_EVENT(USER, &self->rec);
	EXPECT_FALSE(is_readable(chan, 0));
	close(chan);
}

/* One event for two: the other goes on waiting */
TEST_F(uring, one_event_for_two)
{
	struct rdma_ep_record rec[2] = {};
	struct rdma_ep_wait wait[2];
	uint32_t ep;
	int i;

	do_ok(try_create(self->fd, PS_TCP, -1, 0, &ep));
	for (i = 0; i < 2; i++) {
		wait[i] = wait_arg(ep, &rec[i]);
		pend(_metadata, &self->ring, self->fd, &wait[i]);
	}
	for (i = 0; i < 2; i++) {
		do_ok(try_write_event(self->fd, ep, 0, 1));
		do_ok(reap(&self->ring, NULL, END_MS));
		EXPECT_EQ(-ETIME, reap(&self->ring, NULL, 50));
	}
	EXPECT_EVENT(USER, &rec[0]);
	EXPECT_EVENT(USER, &rec[1]);
}

/* What cannot be written is not lost */
TEST_F(uring, a_record_that_cannot_be_written)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rdma_ep_wait wait;
	uint32_t ep;

	ASSERT_NE(MAP_FAILED, page);
	do_ok(try_create(self->fd, PS_TCP, -1, 0, &ep));
	wait = wait_arg(ep, page);
	pend(_metadata, &self->ring, self->fd, &wait);
	ASSERT_EQ(0, mprotect(page, 4096, PROT_READ));
	do_ok(try_write_event(self->fd, ep, 0, 3));
	EXPECT_EQ(-EFAULT, reap(&self->ring, NULL, END_MS));
	wait_event(_metadata, self->fd, ep, RDMA_EP_EVENT_USER, &self->rec);
	EXPECT_EQ(3, self->rec.arg);
	munmap(page, 4096);
}

TEST_F(uring, a_failed_resolution_leaves_nothing)
{
	union test_addr nobody = nobody_addr(AF_INET, 7);
	struct rdma_ep_create_ep create = create_arg(&nobody, NULL);

	create.timeout_ms = 100;
	ASSERT_EQ(0, host_netdev_arp(true));
	EXPECT_NE(0, call(&self->ring, self->fd, RDMA_EP_CREATE_EP, &create));
	EXPECT_EQ(RDMA_EP_REASON_TIMEOUT, ep_reason.code)
		TH_LOG("%s", ep_reason.text);
	host_netdev_arp(false);
	EXPECT_EQ(0, count_endpoints(_metadata, self->fd));
}

TEST_F(uring, destroying_ends_the_wait)
{
	struct rdma_ep_destroy destroy = { .hdr = EP_HDR(destroy, 0) };
	struct rdma_ep_wait wait;
	uint64_t tag[2];
	uint32_t ep;
	int i, ret;

	do_ok(try_create(self->fd, PS_TCP, -1, 0, &ep));
	wait = wait_arg(ep, &self->rec);
	pend(_metadata, &self->ring, self->fd, &wait);
	do_ok(try_destroy(self->fd, ep));
	do_err(ECANCELED, DESTROYED, reap(&self->ring, NULL, END_MS));

	/* through the ring as well */
	do_ok(try_create(self->fd, PS_TCP, -1, 0, &ep));
	wait = wait_arg(ep, &self->rec);
	pend(_metadata, &self->ring, self->fd, &wait);
	destroy.ep = ep;
	prep(&self->ring, self->fd, RDMA_EP_DESTROY, &destroy, 0xd);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	for (i = 0; i < 2; i++) {
		ret = reap(&self->ring, &tag[i], END_MS);
		EXPECT_EQ(tag[i] == 0xd ? 0 : -ECANCELED, ret);
	}
	EXPECT_NE(tag[0], tag[1]);
}

/* Linux does not pass IORING_OP_ASYNC_CANCEL on to the file: the wait goes on. */
TEST_F(uring, async_cancel_does_nothing)
{
	struct io_uring_sqe *sqe;
	struct rdma_ep_wait wait;
	uint64_t tag = 0;
	uint32_t ep;

	do_ok(try_create(self->fd, PS_TCP, -1, 0, &ep));
	wait = wait_arg(ep, &self->rec);
	pend(_metadata, &self->ring, self->fd, &wait);
	sqe = io_uring_get_sqe(&self->ring);
	io_uring_prep_cancel64(sqe, ep, 0);
	sqe->user_data = 0xca;
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	EXPECT_EQ(-ENOENT, reap(&self->ring, &tag, END_MS));
	EXPECT_EQ(0xca, tag);
	do_ok(try_write_event(self->fd, ep, 0, 1));
	do_ok(reap(&self->ring, &tag, END_MS));
	EXPECT_EQ(ep, tag);
}

/* Files that can serve again are told, as by ioctl(2) */
TEST_F(uring, destroy_looks_at_files)
{
	struct rdma_ep_destroy destroy = {
		.hdr = EP_HDR(destroy, 0), .num_fds = 2,
	};
	int chan, used;

	do_ok(try_create_channel(self->fd, O_CLOEXEC, &chan));
	used = dup(chan);
	do_ok(try_create(self->fd, PS_TCP, chan, 0, &destroy.ep));
	destroy.fd[0] = chan;
	destroy.fd[1] = -1;
	do_ok(try_write_event(self->fd, destroy.ep, 0, 3));
	do_ok(call(&self->ring, self->fd, RDMA_EP_DESTROY, &destroy));
	EXPECT_EQ(1, destroy.out_discarded);
	EXPECT_EQ(0, destroy.out_idle);

	close(used);
	do_ok(try_create(self->fd, PS_TCP, chan, 0, &destroy.ep));
	do_ok(call(&self->ring, self->fd, RDMA_EP_DESTROY, &destroy));
	EXPECT_EQ(0, destroy.out_discarded);
	EXPECT_EQ(1, destroy.out_idle);
	close(chan);
}

/* Nobody waits at @ep any more: its next event, and be it the first, is on its channel */
static bool wait_has_ended(int fd, uint32_t ep, int chan)
{
	return !try_write_event(fd, ep, 0, 1) && is_readable(chan, END_MS);
}

static void make_waiting(struct __test_metadata *_metadata, int fd, int *chan,
			 uint32_t *ep)
{
	do_ok(try_create_channel(fd, O_CLOEXEC, chan));
	do_ok(try_create(fd, PS_TCP, *chan, 0, ep));
}

/* Whose ring has ended has no use for an answer, and may have none for the memory */
static void make_untouched(void *buf, size_t size)
{
	memset(buf, 0x5a, size);
}

static bool is_untouched(const void *buf, size_t size)
{
	const unsigned char *p = buf;

	while (size && *p == 0x5a)
		p++, size--;
	return !size;
}

TEST_F(uring, the_ring_ends)
{
	union test_addr nobody = nobody_addr(AF_INET, 7);
	struct rdma_ep_create_ep create = create_arg(&nobody, NULL);
	uint64_t until = now_ms() + END_MS;
	struct rdma_ep_wait wait;
	uint32_t ep;
	int chan;

	self->ctx.closed_later = true;
	make_waiting(_metadata, self->fd, &chan, &ep);
	wait = wait_arg(ep, &self->rec);
	pend(_metadata, &self->ring, self->fd, &wait);
	ASSERT_EQ(0, host_netdev_arp(true));
	create.timeout_ms = 120000;
	prep(&self->ring, self->fd, RDMA_EP_CREATE_EP, &create, 0);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	make_untouched(&self->rec, sizeof(self->rec));
	ring_close(&self->ring, &self->ring_open);

	EXPECT_TRUE(wait_has_ended(self->fd, ep, chan));
	while (count_endpoints(_metadata, self->fd) > 1 && now_ms() < until)
		usleep(100000);
	EXPECT_EQ(1, count_endpoints(_metadata, self->fd));
	EXPECT_TRUE(is_untouched(&self->rec, sizeof(self->rec)));
	host_netdev_arp(false);
	close(chan);
}

/* Its answer comes when it is asked for, and that was not to be */
TEST_F(uring, the_ring_ends_with_an_event)
{
	struct rdma_ep_wait wait;
	struct io_uring ring;
	uint32_t ep;
	int chan;

	ASSERT_EQ(0, io_uring_queue_init(4, &ring, IORING_SETUP_SINGLE_ISSUER |
						   IORING_SETUP_DEFER_TASKRUN));
	self->ctx.closed_later = true;
	make_waiting(_metadata, self->fd, &chan, &ep);
	wait = wait_arg(ep, &self->rec);
	pend(_metadata, &ring, self->fd, &wait);
	do_ok(try_write_event(self->fd, ep, 0, 1));
	EXPECT_FALSE(is_readable(chan, 100));
	make_untouched(&self->rec, sizeof(self->rec));
	make_untouched(&ep_reason, sizeof(ep_reason));
	io_uring_queue_exit(&ring);

	EXPECT_TRUE(is_readable(chan, END_MS));
	EXPECT_TRUE(is_untouched(&self->rec, sizeof(self->rec)));
	EXPECT_TRUE(is_untouched(&ep_reason, sizeof(ep_reason)));
	close(chan);
}

struct waiter {
	struct io_uring ring;
	struct rdma_ep_record rec;
	struct rdma_ep_wait wait;
	unsigned int flags;
	int fd;
	int ret;
};

static void *start_waiting(void *arg)
{
	struct waiter *w = arg;

	w->ret = io_uring_queue_init(4, &w->ring, w->flags);
	if (w->ret)
		return NULL;
	prep(&w->ring, w->fd, RDMA_EP_WAIT, &w->wait, 1);
	w->ret = io_uring_submit(&w->ring);
	return NULL;
}

static void thread_ends(struct __test_metadata *_metadata, struct test_ctx *ctx,
			unsigned int flags)
{
	struct waiter w = { .fd = ctx->fd, .flags = flags };
	pthread_t thread;
	uint32_t ep;
	int chan;

	ctx->closed_later = true;
	make_waiting(_metadata, ctx->fd, &chan, &ep);
	w.wait = wait_arg(ep, &w.rec);
	ASSERT_EQ(0, pthread_create(&thread, NULL, start_waiting, &w));
	ASSERT_EQ(0, pthread_join(thread, NULL));
	ASSERT_EQ(1, w.ret);
	make_untouched(&w.rec, sizeof(w.rec));
	EXPECT_TRUE(wait_has_ended(ctx->fd, ep, chan));
	EXPECT_TRUE(is_untouched(&w.rec, sizeof(w.rec)));
	io_uring_queue_exit(&w.ring);
	close(chan);
}

TEST_F(uring, the_thread_ends)
{
	thread_ends(_metadata, &self->ctx, 0);
}

/* Nobody is left who could ask for its answers */
TEST_F(uring, the_thread_of_a_deferred_ring_ends)
{
	thread_ends(_metadata, &self->ctx, IORING_SETUP_SINGLE_ISSUER |
					   IORING_SETUP_DEFER_TASKRUN);
}

/* A process with waits of all kinds; does not return */
static void child_waits(int fd, const struct situation *s, int ready)
{
	static struct rdma_ep_record rec[ENTRIES];
	static struct rdma_ep_create_ep create[ENTRIES];
	static struct rdma_ep_connect connect[ENTRIES];
	union test_addr nobody = nobody_addr(AF_INET, 7);
	struct rdma_ep_wait wait = wait_arg(s->active, &rec[0]);
	struct io_uring ring;
	int i, n = 32;

	if (io_uring_queue_init(ENTRIES, &ring, 0))
		_exit(2);
	for (i = 0; i < n; i++) {
		create[i] = create_arg(&s->addr, NULL);
		prep(&ring, fd, RDMA_EP_CREATE_EP, &create[i], i);
	}
	if (io_uring_submit(&ring) != n)
		_exit(3);
	for (i = 0; i < n; i++)
		if (reap(&ring, NULL, END_MS))
			_exit(4);
	for (i = 0; i < n; i++) {
		connect[i] = connect_arg(create[i].out_ep, &rec[i + 1]);
		prep(&ring, fd, RDMA_EP_CONNECT, &connect[i], i);
		create[n + i] = create_arg(&nobody, NULL);
		create[n + i].timeout_ms = 120000;
		prep(&ring, fd, RDMA_EP_CREATE_EP, &create[n + i], i);
	}
	prep(&ring, fd, RDMA_EP_WAIT, &wait, 99);
	if (io_uring_submit(&ring) != 2 * n + 1)
		_exit(5);
	if (reap(&ring, NULL, 100) != -ETIME)
		_exit(6);
	if (write(ready, "", 1) != 1)
		_exit(7);
	pause();
	_exit(8);
}

/* Nothing is left of a process that is killed, though its context lives on */
TEST_F(uring, kill_9)
{
	uint64_t until;
	int ready[2], chan, status;
	char byte;
	pid_t pid;

	self->ctx.closed_later = true;
	make_listener(_metadata, self->fd, &self->s, 1024);
	make_waiting(_metadata, self->fd, &chan, &self->s.active);
	ASSERT_EQ(0, host_netdev_arp(true));
	ASSERT_EQ(0, pipe(ready));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		child_waits(self->fd, &self->s, ready[1]);
	close(ready[1]);
	EXPECT_EQ(1, read(ready[0], &byte, 1));
	EXPECT_EQ(0, kill(pid, SIGKILL));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status))
		TH_LOG("exit code %d", WEXITSTATUS(status));

	EXPECT_TRUE(wait_has_ended(self->fd, self->s.active, chan));
	/* the listener with 32 requests, the one that waited, 32 that connect */
	until = now_ms() + END_MS;
	while (count_endpoints(_metadata, self->fd) != 66 && now_ms() < until)
		usleep(100000);
	EXPECT_EQ(66, count_endpoints(_metadata, self->fd));
	host_netdev_arp(false);
	close(ready[0]);
	close(chan);
}

/* A process with a ring that waits, and becomes another program */
static void child_execs(int fd, struct rdma_ep_wait *wait, unsigned int flags)
{
	struct io_uring ring;

	if (io_uring_queue_init(4, &ring, flags))
		_exit(2);
	prep(&ring, fd, RDMA_EP_WAIT, wait, 1);
	if (io_uring_submit(&ring) != 1)
		_exit(3);
	/* with SQPOLL its thread submits, when it comes to it */
	while (io_uring_sq_ready(&ring))
		usleep(1000);
	usleep(flags ? 100000 * slow() : 0);
	execl("/bin/true", "true", NULL);
	_exit(4);
}

/* Old kernels wait in execve(2) for what the ring has under way */
static void exec_ends_waits(struct __test_metadata *_metadata,
			    struct test_ctx *ctx, struct rdma_ep_record *rec,
			    unsigned int flags)
{
	struct rdma_ep_wait wait;
	int chan, status, i;
	uint32_t ep;
	pid_t pid, ended = 0;

	ctx->closed_later = true;
	make_waiting(_metadata, ctx->fd, &chan, &ep);
	wait = wait_arg(ep, rec);
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		child_execs(ctx->fd, &wait, flags);
	for (i = 0; !ended && i < END_MS / 10; i++) {
		usleep(10000);
		ended = waitpid(pid, &status, WNOHANG);
	}
	EXPECT_EQ(pid, ended);
	if (!ended)
		kill(pid, SIGKILL);
	else
		EXPECT_EQ(0, status);
	EXPECT_TRUE(wait_has_ended(ctx->fd, ep, chan));
	close(chan);
}

TEST_F(uring, exec)
{
	exec_ends_waits(_metadata, &self->ctx, &self->rec, 0);
}

/* The thread that has submitted belongs to the ring, and ends with it */
TEST_F(uring, exec_with_sqpoll)
{
	exec_ends_waits(_metadata, &self->ctx, &self->rec, IORING_SETUP_SQPOLL);
}

/* The request keeps the context; when the ring ends, both go */
TEST_F(uring, the_context_is_closed)
{
	uint64_t until = now_ms() + END_MS;
	struct leak_count now;
	struct rdma_ep_wait wait;
	uint64_t tag;
	uint32_t ep, other;

	do_ok(try_create(self->fd, PS_TCP, -1, 0, &ep));
	do_ok(try_create(self->fd, PS_TCP, -1, 0, &other));
	do_ok(try_write_event(self->fd, other, 0, 8));
	wait = wait_arg(ep, &self->rec);
	pend(_metadata, &self->ring, self->fd, &wait);
	ASSERT_EQ(0, close(self->fd));
	self->ctx.fd = -1;
	EXPECT_EQ(-ETIME, reap(&self->ring, &tag, 100));
	ring_close(&self->ring, &self->ring_open);
	do {
		ASSERT_EQ(0, count_resources(&now));
		usleep(50000);
	} while (now.cm_ids != self->ctx.before.cm_ids && now_ms() < until);
	EXPECT_EQ(self->ctx.before.cm_ids, now.cm_ids);
}

TEST_F(uring, registered_files)
{
	struct io_uring_sqe *sqe;
	struct rdma_ep_wait wait;
	uint32_t ep;

	do_ok(try_create(self->fd, PS_TCP, -1, 0, &ep));
	ASSERT_EQ(0, io_uring_register_files(&self->ring, &self->fd, 1));
	wait = wait_arg(ep, &self->rec);
	sqe = prep(&self->ring, 0, RDMA_EP_WAIT, &wait, 1);
	sqe->flags |= IOSQE_FIXED_FILE;
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	EXPECT_EQ(-ETIME, reap(&self->ring, NULL, 50));
	do_ok(try_write_event(self->fd, ep, 0, 8));
	do_ok(reap(&self->ring, NULL, END_MS));
	EXPECT_EVENT(USER, &self->rec);
	ASSERT_EQ(0, io_uring_unregister_files(&self->ring));
}

/* In a worker of the ring from the start: the answer still comes to us */
TEST_F(uring, forced_to_a_worker)
{
	struct io_uring_sqe *sqe;
	struct rdma_ep_wait wait;
	uint32_t ep;
	int i;

	do_ok(try_create(self->fd, PS_TCP, -1, 0, &ep));
	for (i = 0; i < 50; i++) {
		wait = wait_arg(ep, &self->rec);
		sqe = prep(&self->ring, self->fd, RDMA_EP_WAIT, &wait, 1);
		sqe->flags |= IOSQE_ASYNC;
		ASSERT_EQ(1, io_uring_submit(&self->ring));
		do_ok(try_write_event(self->fd, ep, 0, i));
		do_ok(reap(&self->ring, NULL, END_MS));
		ASSERT_EVENT(USER, &self->rec);
		ASSERT_EQ(i, self->rec.arg);
	}
}

/*
 * Connect @n at once, from one thread, to a listener in the same ring. (What
 * io_uring_submit() counts is another matter when a thread of the kernel does it.)
 */
static void connect_many(struct __test_metadata *_metadata, int fd,
			 struct io_uring *ring, struct situation *s, int n)
{
	struct rdma_ep_record *active = calloc(n, sizeof(*active)), req;
	struct rdma_ep_create_ep *create = calloc(n, sizeof(*create));
	struct rdma_ep_connect *connect = calloc(n, sizeof(*connect));
	struct rdma_ep_destroy *destroy = calloc(n, sizeof(*destroy));
	struct rdma_ep_conn_param param;
	struct rdma_ep_wait wait;
	int i, done = 0, accepted = 0;
	uint64_t tag;

	ASSERT_TRUE(active && create && connect && destroy);
	make_listener(_metadata, fd, s, 1024);
	for (i = 0; i < n; i++) {
		create[i] = create_arg(&s->addr, NULL);
		prep(ring, fd, RDMA_EP_CREATE_EP, &create[i], i);
	}
	ASSERT_LT(0, io_uring_submit_and_wait(ring, n));
	for (i = 0; i < n; i++)
		do_ok(reap(ring, NULL, END_MS));
	for (i = 0; i < n; i++) {
		connect[i] = connect_arg(create[i].out_ep, &active[i]);
		prep(ring, fd, RDMA_EP_CONNECT, &connect[i], i);
	}
	wait = wait_arg(s->listener, &req);
	ASSERT_LT(0, io_uring_submit(ring));
	prep(ring, fd, RDMA_EP_WAIT, &wait, n);
	ASSERT_LT(0, io_uring_submit(ring));
	while (done < n || accepted < n) {
		do_ok(reap(ring, &tag, END_MS));
		if (tag < (uint64_t)n) {
			ASSERT_EVENT(CONNECT_RESPONSE, &active[tag]);
			ASSERT_EQ(create[tag].out_ep, active[tag].ep);
			do_ok(try_establish(fd, active[tag].ep));
			done++;
			continue;
		}
		ASSERT_EVENT(CONNECT_REQUEST, &req);
		param = conn_param(NULL, 0);
		do_ok(try_accept(fd, req.child, 0, &param, NULL));
		if (++accepted == n)
			break;
		prep(ring, fd, RDMA_EP_WAIT, &wait, n);
		ASSERT_LT(0, io_uring_submit(ring));
	}
	for (; done < n; done++) {
		do_ok(reap(ring, &tag, END_MS));
		do_ok(try_establish(fd, active[tag].ep));
	}
	for (i = 0; i < n; i++) {
		destroy[i] = (struct rdma_ep_destroy){
			.hdr = EP_HDR(destroy[i], 0), .ep = create[i].out_ep,
		};
		prep(ring, fd, RDMA_EP_DESTROY, &destroy[i], i);
	}
	ASSERT_LT(0, io_uring_submit_and_wait(ring, n));
	for (i = 0; i < n; i++)
		do_ok(reap(ring, NULL, END_MS));
	free(active);
	free(create);
	free(connect);
	free(destroy);
}

/*
 * On a slow kernel fewer are many: who waits for a minute to be accepted, or
 * established, has failed by then.
 */
static int many(int n)
{
	return slow() > 1 ? 20 : n;
}

TEST_F(uring, many)
{
	connect_many(_metadata, self->fd, &self->ring, &self->s, many(200));
}

/* Completions come when they are asked for */
TEST_F(uring, many_deferred)
{
	ring_close(&self->ring, &self->ring_open);
	ASSERT_EQ(0, io_uring_queue_init(ENTRIES, &self->ring,
					 IORING_SETUP_SINGLE_ISSUER |
					 IORING_SETUP_DEFER_TASKRUN));
	self->ring_open = true;
	connect_many(_metadata, self->fd, &self->ring, &self->s, many(100));
}

/* A thread of the kernel submits */
TEST_F(uring, many_from_sqpoll)
{
	struct io_uring_params params = {
		.flags = IORING_SETUP_SQPOLL, .sq_thread_idle = 100,
	};

	ring_close(&self->ring, &self->ring_open);
	ASSERT_EQ(0, io_uring_queue_init_params(ENTRIES, &self->ring, &params));
	self->ring_open = true;
	self->ctx.closed_later = true;
	connect_many(_metadata, self->fd, &self->ring, &self->s, many(50));
}

/*
 * Races: an event, the end of the endpoint and the end of the ring, all at the
 * same time
 */

struct racer {
	pthread_barrier_t *barrier;
	int fd;
	uint32_t ep;
	int what;
	int rounds;
};

static void *race(void *arg)
{
	struct racer *r = arg;
	int i;

	for (i = 0; i < r->rounds; i++) {
		pthread_barrier_wait(r->barrier);
		if (r->what)
			try_destroy(r->fd, r->ep);
		else
			try_write_event(r->fd, r->ep, 0, 1);
		pthread_barrier_wait(r->barrier);
	}
	return NULL;
}

TEST_F(uring, races)
{
	int rounds = slow() > 1 ? 60 : 300, i, ret, seen[2] = {};
	struct rdma_ep_record rec;
	struct rdma_ep_wait wait;
	pthread_barrier_t barrier;
	struct racer racer[2];
	pthread_t thread[2];
	struct io_uring ring;

	pthread_barrier_init(&barrier, NULL, 3);
	for (i = 0; i < 2; i++) {
		racer[i] = (struct racer){ &barrier, self->fd, 0, i, rounds };
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, race, &racer[i]));
	}
	for (i = 0; i < rounds; i++) {
		do_ok(try_create(self->fd, PS_TCP, -1, 0, &racer[0].ep));
		racer[1].ep = racer[0].ep;
		wait = wait_arg(racer[0].ep, &rec);
		ASSERT_EQ(0, io_uring_queue_init(4, &ring, 0));
		prep(&ring, self->fd, RDMA_EP_WAIT, &wait, 1)->flags |=
			i & 1 ? IOSQE_ASYNC : 0;
		ASSERT_EQ(1, io_uring_submit(&ring));
		pthread_barrier_wait(&barrier);
		if (i % 3) {
			/* one of the two ends it, or both were too early */
			ret = reap(&ring, NULL, END_MS);
			ASSERT_TRUE(ret == 0 || ret == -ECANCELED || ret == -ENOENT)
				TH_LOG("%s", strerror(-ret));
			seen[!ret]++;
		}
		io_uring_queue_exit(&ring);
		pthread_barrier_wait(&barrier);
	}
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_join(thread[i], NULL));
	pthread_barrier_destroy(&barrier);
	EXPECT_LT(0, seen[0] + seen[1]);
	EXPECT_EQ(0, count_endpoints(_metadata, self->fd));
}

TEST_HARNESS_MAIN
