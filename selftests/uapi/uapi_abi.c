// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The binary interface: what holds for every ioctl because it goes through
 * the same table, and what its struct looks like.
 *
 * One ABI_ROW per command says how to make a correct call. Every test then
 * breaks one thing of that call, checks the exact errno and reason, and that
 * nothing has changed: the state of the endpoint, the number of endpoints,
 * and that the correct call still works afterwards.
 */
#include "rdma_ep_utils.h"

#define MAX_STRUCT	4096	/* PAGE_SIZE: no argument may be larger */
#define POISON		0xa5

/* Which situation the correct call needs; its endpoint is self->ep */
enum need {
	NEED_NOTHING,
	NEED_IDLE,
	NEED_BOUND,
	NEED_ADDR,		/* destination resolved */
	NEED_ROUTE,		/* and the route; nobody listens there */
	NEED_REQUEST,		/* a request to answer; the peer is alive */
	NEED_RESPONSE,		/* a response to act on */
	NEED_ACCEPTING,		/* accepted, not established */
	NEED_CONNECTED,		/* the peer is alive */
	NEED_EVENT,		/* an event waits at the endpoint */
	NEED_UD,		/* datagram endpoint, bound */
	NEED_GROUP,		/* that has joined self->group */
	NEED_TOS,		/* endpoint whose TOS was set */
};

struct range {
	size_t off;
	size_t len;
};

union arg {
	struct rdma_ep_hdr hdr;
	struct rdma_ep_get_info get_info;
	struct rdma_ep_create_channel create_channel;
	struct rdma_ep_create create;
	struct rdma_ep_create_ep create_ep;
	struct rdma_ep_destroy destroy;
	struct rdma_ep_bind bind;
	struct rdma_ep_resolve_addr resolve_addr;
	struct rdma_ep_resolve_route resolve_route;
	struct rdma_ep_listen listen;
	struct rdma_ep_connect connect;
	struct rdma_ep_establish establish;
	struct rdma_ep_reject reject;
	struct rdma_ep_disconnect disconnect;
	struct rdma_ep_query query;
	struct rdma_ep_init_qp_attr init_qp_attr;
	struct rdma_ep_attach attach;
	struct rdma_ep_wait wait;
	struct rdma_ep_notify notify;
	struct rdma_ep_join join;
	struct rdma_ep_leave leave;
	struct rdma_ep_option option;
	struct rdma_ep_write_event write_event;
	struct rdma_ep_resolve_service resolve_service;
	struct rdma_ep_query_services query_services;
	struct rdma_ep_destroy_many destroy_many;
	uint8_t bytes[2 * MAX_STRUCT];
};

FIXTURE(abi)
{
	struct test_ctx ctx;
	struct situation s;
	struct peer peer;
	bool has_peer;
	uint32_t ep;
	uint32_t group;
	uint32_t state;
	uint32_t endpoints;
	int channel;
	/* what pointers of the correct call point at */
	struct rdma_ep_record rec;
	struct ib_uverbs_qp_attr attr;
	uint8_t tos;
	char data[16];
	union arg arg;
};

FIXTURE_VARIANT(abi)
{
	unsigned long cmd;
	size_t size;		/* of the struct in ABI 1 */
	uint32_t flags;		/* that the command knows */
	enum need need;
	void (*fill)(union arg *arg, FIXTURE_DATA(abi) *self);
	size_t ep;		/* offset of the endpoint's handle, or 0 */
	size_t group;
	size_t fd;		/* offset of a channel's descriptor */
	size_t out_ptr;		/* offset of a pointer that is written through */
	size_t out_size;	/* and how much is written there at most */
	size_t in_ptr;		/* offset of a pointer that is read through */
	size_t addr[2];		/* offsets of addresses */
	struct range reserved[2];
	struct range out[3];	/* what the command writes */
	/* there is no device here that can do it: EOPNOTSUPP is correct */
	bool refused;
};

/* Every command of the table must have a row: the rows are counted */
static unsigned int abi_rows;

#define ABI_ROW(name, nr, str)						\
	static void fill_##name(union arg *arg, FIXTURE_DATA(abi) *self); \
	static void __attribute__((constructor)) count_##name(void)	\
	{								\
		abi_rows++;						\
	}								\
	FIXTURE_VARIANT_ADD(abi, name) {				\
		.cmd = nr,						\
		.size = sizeof(struct str),				\
		.fill = fill_##name,

#define ABI_FILL(name)	\
	};		\
	static void fill_##name(union arg *arg, FIXTURE_DATA(abi) *self)

#define OFF(str, field)		offsetof(struct str, field)
#define RANGE(str, field)	\
	{ offsetof(struct str, field), sizeof(((struct str *)0)->field) }
#define RECORD(str)						\
	.out_ptr = offsetof(struct str, record_uptr),		\
	.out_size = sizeof(struct rdma_ep_record)

static void use_record(uint64_t *uptr, uint32_t *len, FIXTURE_DATA(abi) *self)
{
	*uptr = UPTR(&self->rec);
	*len = sizeof(self->rec);
}

#define USE_RECORD(field) \
	use_record((uint64_t *)&arg->field.record_uptr, \
		   &arg->field.record_len, self)

ABI_ROW(get_info, RDMA_EP_GET_INFO, rdma_ep_get_info)
	.out = { { OFF(rdma_ep_get_info, out_abi_version),
		   sizeof(struct rdma_ep_get_info) -
		   OFF(rdma_ep_get_info, out_abi_version) } },
ABI_FILL(get_info)
{
	(void)arg;
	(void)self;
}

ABI_ROW(create_channel, RDMA_EP_CREATE_CHANNEL, rdma_ep_create_channel)
	.out = { RANGE(rdma_ep_create_channel, out_fd) },
ABI_FILL(create_channel)
{
	(void)self;
	arg->create_channel.file_flags = O_CLOEXEC;
}

ABI_ROW(create, RDMA_EP_CREATE, rdma_ep_create)
	.flags = RDMA_EP_F_NEW_CHANNEL,
	.fd = OFF(rdma_ep_create, channel),
	.out = { RANGE(rdma_ep_create, out_ep),
		 RANGE(rdma_ep_create, out_serial) },
ABI_FILL(create)
{
	(void)self;
	arg->create.port_space = PS_TCP;
	arg->create.channel = -1;
}

ABI_ROW(create_ep, RDMA_EP_CREATE_EP, rdma_ep_create_ep)
	.flags = RDMA_EP_F_NEW_CHANNEL | RDMA_EP_F_RESUME |
		 RDMA_EP_CREATE_EP_PASSIVE |
		 RDMA_EP_CREATE_EP_NO_ROUTE | RDMA_EP_CREATE_EP_START,
	.fd = OFF(rdma_ep_create_ep, channel),
	.addr = { OFF(rdma_ep_create_ep, src), OFF(rdma_ep_create_ep, dst) },
	RECORD(rdma_ep_create_ep),
	.out = { RANGE(rdma_ep_create_ep, out_ep),
		 RANGE(rdma_ep_create_ep, out_serial) },
ABI_FILL(create_ep)
{
	union test_addr src = host_addr(AF_INET, 0);
	union test_addr dst = host_addr(AF_INET, 7);

	arg->create_ep.port_space = PS_TCP;
	arg->create_ep.channel = -1;
	arg->create_ep.timeout_ms = RESOLVE_MS;
	arg->create_ep.src = ep_addr(&src);
	arg->create_ep.dst = ep_addr(&dst);
	USE_RECORD(create_ep);
}

ABI_ROW(destroy, RDMA_EP_DESTROY, rdma_ep_destroy)
	.need = NEED_IDLE,
	.ep = OFF(rdma_ep_destroy, ep),
	.out = { RANGE(rdma_ep_destroy, out_discarded), RANGE(rdma_ep_destroy, out_idle) },
ABI_FILL(destroy)
{
	arg->destroy.ep = self->ep;
}

ABI_ROW(bind, RDMA_EP_BIND, rdma_ep_bind)
	.need = NEED_IDLE,
	.ep = OFF(rdma_ep_bind, ep),
	.addr = { OFF(rdma_ep_bind, addr) },
	RECORD(rdma_ep_bind),
ABI_FILL(bind)
{
	union test_addr addr = host_addr(AF_INET, 0);

	arg->bind.ep = self->ep;
	arg->bind.addr = ep_addr(&addr);
	USE_RECORD(bind);
}

ABI_ROW(resolve_addr, RDMA_EP_RESOLVE_ADDR, rdma_ep_resolve_addr)
	.need = NEED_IDLE,
	.flags = RDMA_EP_F_WAIT | RDMA_EP_F_RESUME | RDMA_EP_RESOLVE_THEN_ROUTE,
	.ep = OFF(rdma_ep_resolve_addr, ep),
	.addr = { OFF(rdma_ep_resolve_addr, src),
		  OFF(rdma_ep_resolve_addr, dst) },
	.reserved = { RANGE(rdma_ep_resolve_addr, reserved) },
	RECORD(rdma_ep_resolve_addr),
ABI_FILL(resolve_addr)
{
	union test_addr src = host_addr(AF_INET, 0);
	union test_addr dst = host_addr(AF_INET, 7);

	arg->hdr.flags = RDMA_EP_F_WAIT;
	arg->resolve_addr.ep = self->ep;
	arg->resolve_addr.timeout_ms = RESOLVE_MS;
	arg->resolve_addr.src = ep_addr(&src);
	arg->resolve_addr.dst = ep_addr(&dst);
	USE_RECORD(resolve_addr);
}

ABI_ROW(resolve_route, RDMA_EP_RESOLVE_ROUTE, rdma_ep_resolve_route)
	.need = NEED_ADDR,
	.flags = RDMA_EP_F_WAIT | RDMA_EP_F_RESUME,
	.ep = OFF(rdma_ep_resolve_route, ep),
	.reserved = { RANGE(rdma_ep_resolve_route, reserved) },
	RECORD(rdma_ep_resolve_route),
ABI_FILL(resolve_route)
{
	arg->hdr.flags = RDMA_EP_F_WAIT;
	arg->resolve_route.ep = self->ep;
	arg->resolve_route.timeout_ms = RESOLVE_MS;
	USE_RECORD(resolve_route);
}

ABI_ROW(listen, RDMA_EP_LISTEN, rdma_ep_listen)
	.need = NEED_BOUND,
	.ep = OFF(rdma_ep_listen, ep),
	.reserved = { RANGE(rdma_ep_listen, reserved) },
	RECORD(rdma_ep_listen),
ABI_FILL(listen)
{
	arg->listen.ep = self->ep;
	USE_RECORD(listen);
}

/* Nobody listens: the waiting call comes back with REJECTED */
ABI_ROW(connect, RDMA_EP_CONNECT, rdma_ep_connect)
	.need = NEED_ROUTE,
	.flags = RDMA_EP_F_WAIT | RDMA_EP_F_RESUME,
	.ep = OFF(rdma_ep_connect, ep),
	.in_ptr = OFF(rdma_ep_connect, param.private_data_uptr),
	.reserved = { RANGE(rdma_ep_connect, param.reserved) },
	RECORD(rdma_ep_connect),
ABI_FILL(connect)
{
	arg->hdr.flags = RDMA_EP_F_WAIT;
	arg->connect.ep = self->ep;
	arg->connect.param = conn_param(self->data, sizeof(self->data));
	USE_RECORD(connect);
}

/* The peer establishes */
ABI_ROW(accept, RDMA_EP_ACCEPT, rdma_ep_connect)
	.need = NEED_REQUEST,
	.flags = RDMA_EP_F_WAIT | RDMA_EP_F_RESUME,
	.ep = OFF(rdma_ep_connect, ep),
	.in_ptr = OFF(rdma_ep_connect, param.private_data_uptr),
	.reserved = { RANGE(rdma_ep_connect, param.reserved) },
	RECORD(rdma_ep_connect),
ABI_FILL(accept)
{
	fill_connect(arg, self);
}

ABI_ROW(establish, RDMA_EP_ESTABLISH, rdma_ep_establish)
	.need = NEED_RESPONSE,
	.ep = OFF(rdma_ep_establish, ep),
	.reserved = { RANGE(rdma_ep_establish, reserved) },
ABI_FILL(establish)
{
	arg->establish.ep = self->ep;
}

ABI_ROW(reject, RDMA_EP_REJECT, rdma_ep_reject)
	.need = NEED_REQUEST,
	.ep = OFF(rdma_ep_reject, ep),
	.in_ptr = OFF(rdma_ep_reject, private_data_uptr),
	.reserved = { RANGE(rdma_ep_reject, reserved) },
ABI_FILL(reject)
{
	arg->reject.ep = self->ep;
	arg->reject.private_data_uptr = UPTR(self->data);
	arg->reject.private_data_len = sizeof(self->data);
}

ABI_ROW(disconnect, RDMA_EP_DISCONNECT, rdma_ep_disconnect)
	.need = NEED_CONNECTED,
	.flags = RDMA_EP_F_WAIT | RDMA_EP_F_RESUME,
	.ep = OFF(rdma_ep_disconnect, ep),
	RECORD(rdma_ep_disconnect),
ABI_FILL(disconnect)
{
	arg->hdr.flags = RDMA_EP_F_WAIT;
	arg->disconnect.ep = self->ep;
	USE_RECORD(disconnect);
}

ABI_ROW(query, RDMA_EP_QUERY, rdma_ep_query)
	.need = NEED_ROUTE,
	.ep = OFF(rdma_ep_query, ep),
	.reserved = { RANGE(rdma_ep_query, reserved) },
	RECORD(rdma_ep_query),
ABI_FILL(query)
{
	arg->query.ep = self->ep;
	arg->query.parts = RDMA_EP_REC_INFO | RDMA_EP_REC_INIT;
	USE_RECORD(query);
}

ABI_ROW(init_qp_attr, RDMA_EP_INIT_QP_ATTR, rdma_ep_init_qp_attr)
	.need = NEED_ROUTE,
	.ep = OFF(rdma_ep_init_qp_attr, ep),
	.out_ptr = OFF(rdma_ep_init_qp_attr, attr_uptr),
	.out_size = sizeof(struct ib_uverbs_qp_attr),
ABI_FILL(init_qp_attr)
{
	arg->init_qp_attr.ep = self->ep;
	arg->init_qp_attr.qp_state = 1;		/* IB_QPS_INIT */
	arg->init_qp_attr.attr_uptr = UPTR(&self->attr);
}

ABI_ROW(attach, RDMA_EP_ATTACH, rdma_ep_attach)
	.need = NEED_EVENT,
	.flags = RDMA_EP_F_NEW_CHANNEL,
	.ep = OFF(rdma_ep_attach, ep),
	.fd = OFF(rdma_ep_attach, channel),
ABI_FILL(attach)
{
	arg->attach.ep = self->ep;
	arg->attach.channel = self->channel;
}

ABI_ROW(wait, RDMA_EP_WAIT, rdma_ep_wait)
	.need = NEED_EVENT,
	.flags = RDMA_EP_WAIT_NOWAIT | RDMA_EP_F_NEW_CHANNEL,
	.ep = OFF(rdma_ep_wait, ep),
	.fd = OFF(rdma_ep_wait, child_channel),
	.reserved = { RANGE(rdma_ep_wait, reserved) },
	RECORD(rdma_ep_wait),
ABI_FILL(wait)
{
	arg->wait.ep = self->ep;
	arg->wait.child_channel = -1;
	USE_RECORD(wait);
}

ABI_ROW(notify, RDMA_EP_NOTIFY, rdma_ep_notify)
	.need = NEED_ACCEPTING,
	.ep = OFF(rdma_ep_notify, ep),
ABI_FILL(notify)
{
	arg->notify.ep = self->ep;
	arg->notify.event = 4;		/* IBV_EVENT_COMM_EST */
}

ABI_ROW(join, RDMA_EP_JOIN, rdma_ep_join)
	.need = NEED_UD,
	.ep = OFF(rdma_ep_join, ep),
	.addr = { OFF(rdma_ep_join, addr) },
	.reserved = { RANGE(rdma_ep_join, reserved) },
	.out = { RANGE(rdma_ep_join, out_group) },
ABI_FILL(join)
{
	union test_addr addr = make_addr("239.1.1.1", 0);

	arg->join.ep = self->ep;
	arg->join.addr = ep_addr(&addr);
}

ABI_ROW(leave, RDMA_EP_LEAVE, rdma_ep_leave)
	.need = NEED_GROUP,
	.ep = OFF(rdma_ep_leave, ep),
	.group = OFF(rdma_ep_leave, group),
	.reserved = { RANGE(rdma_ep_leave, reserved) },
	.out = { RANGE(rdma_ep_leave, out_discarded) },
ABI_FILL(leave)
{
	arg->leave.ep = self->ep;
	arg->leave.group = self->group;
}

ABI_ROW(set_option, RDMA_EP_SET_OPTION, rdma_ep_option)
	.need = NEED_IDLE,
	.ep = OFF(rdma_ep_option, ep),
	.in_ptr = OFF(rdma_ep_option, value_uptr),
	.reserved = { RANGE(rdma_ep_option, reserved) },
ABI_FILL(set_option)
{
	arg->option.ep = self->ep;
	arg->option.name = RDMA_EP_OPT_TOS;
	arg->option.value_uptr = UPTR(&self->tos);
	arg->option.value_len = sizeof(self->tos);
}

ABI_ROW(get_option, RDMA_EP_GET_OPTION, rdma_ep_option)
	.need = NEED_TOS,
	.ep = OFF(rdma_ep_option, ep),
	.out_ptr = OFF(rdma_ep_option, value_uptr),
	.out_size = 1,
	.reserved = { RANGE(rdma_ep_option, reserved) },
ABI_FILL(get_option)
{
	fill_set_option(arg, self);
}

ABI_ROW(write_event, RDMA_EP_WRITE_EVENT, rdma_ep_write_event)
	.need = NEED_IDLE,
	.ep = OFF(rdma_ep_write_event, ep),
	.reserved = { RANGE(rdma_ep_write_event, reserved) },
ABI_FILL(write_event)
{
	arg->write_event.ep = self->ep;
	arg->write_event.event = RDMA_EP_EVENT_USER;
	arg->write_event.arg = 5;
}

ABI_ROW(resolve_service, RDMA_EP_RESOLVE_SERVICE, rdma_ep_resolve_service)
	.need = NEED_BOUND,
	.flags = RDMA_EP_F_WAIT | RDMA_EP_F_RESUME,
	.refused = true,
ABI_FILL(resolve_service)
{
	arg->resolve_service.ep = self->ep;
	arg->resolve_service.by = RDMA_EP_SERVICE_BY_ID;
	USE_RECORD(resolve_service);
}

ABI_ROW(destroy_many, RDMA_EP_DESTROY_MANY, rdma_ep_destroy_many)
	.need = NEED_IDLE,
	.flags = RDMA_EP_DESTROY_NOWAIT,
	.reserved = { RANGE(rdma_ep_destroy_many, reserved) },
	.out = { RANGE(rdma_ep_destroy_many, out_destroyed),
		 RANGE(rdma_ep_destroy_many, out_discarded) },
ABI_FILL(destroy_many)
{
	arg->destroy_many.eps_uptr = UPTR(&self->ep);
	arg->destroy_many.count = 1;
}

ABI_ROW(query_services, RDMA_EP_QUERY_SERVICES, rdma_ep_query_services)
	.need = NEED_IDLE,
	.ep = OFF(rdma_ep_query_services, ep),
	.reserved = { RANGE(rdma_ep_query_services, reserved) },
	.out = { RANGE(rdma_ep_query_services, out_count) },
ABI_FILL(query_services)
{
	arg->query_services.ep = self->ep;
}

/* The situation that the row asks for */
static void prepare(struct __test_metadata *_metadata,
		    FIXTURE_DATA(abi) *self, enum need need)
{
	struct rdma_ep_conn_param param = conn_param(NULL, 0);
	union test_addr host = host_addr(AF_INET, 0);
	union test_addr nobody = host_addr(AF_INET, 7);
	union test_addr group = make_addr("239.1.1.2", 0);
	struct situation *s = &self->s;
	int fd = self->ctx.fd;
	struct rdma_ep_record rec;
	uint8_t tos = 0x20;

	s->family = AF_INET;
	s->ps = PS_TCP;
	switch (need) {
	case NEED_NOTHING:
		return;
	case NEED_IDLE:
	case NEED_BOUND:
	case NEED_EVENT:
	case NEED_TOS:
		do_ok(try_create(fd, PS_TCP, -1, 1, &self->ep));
		if (need == NEED_BOUND)
			do_ok(try_bind(fd, self->ep, &host, NULL));
		if (need == NEED_EVENT)
			do_ok(try_write_event(fd, self->ep, 0, 4));
		if (need == NEED_TOS)
			do_ok(try_set_option(fd, self->ep, RDMA_EP_OPT_TOS,
					     &tos, sizeof(tos)));
		break;
	case NEED_ADDR:
		do_ok(try_create_ep(fd, RDMA_EP_CREATE_EP_NO_ROUTE, PS_TCP,
				    NULL, &nobody, NULL, &self->ep));
		break;
	case NEED_ROUTE:
		do_ok(try_create_ep(fd, 0, PS_TCP, NULL, &nobody, NULL,
				    &self->ep));
		break;
	case NEED_REQUEST:
		make_request(_metadata, fd, s);
		self->ep = s->passive;
		peer_start(_metadata, &self->peer, fd, s->active);
		self->has_peer = true;
		break;
	case NEED_ACCEPTING:
		make_request(_metadata, fd, s);
		self->ep = s->passive;
		do_ok(try_accept(fd, self->ep, 0, &param, NULL));
		break;
	case NEED_RESPONSE:
		make_responded(_metadata, fd, s);
		self->ep = s->active;
		break;
	case NEED_CONNECTED:
		make_connected(_metadata, fd, s);
		self->ep = s->active;
		peer_start(_metadata, &self->peer, fd, s->passive);
		self->has_peer = true;
		break;
	case NEED_UD:
	case NEED_GROUP:
		do_ok(try_create(fd, PS_UDP, -1, 1, &self->ep));
		do_ok(try_bind(fd, self->ep, &host, NULL));
		if (need == NEED_UD)
			break;
		do_ok(try_join(fd, self->ep, RDMA_EP_JOIN_FULL_MEMBER, &group,
			       0, &self->group));
		wait_event(_metadata, fd, self->ep,
			   RDMA_EP_EVENT_MULTICAST_JOIN, &rec);
		break;
	}
}

FIXTURE_SETUP(abi)
{
	ctx_open(_metadata, &self->ctx);
	do_ok(try_create_channel(self->ctx.fd, O_CLOEXEC, &self->channel));
	prepare(_metadata, self, variant->need);
	if (self->ep)
		self->state = ep_state(_metadata, self->ctx.fd, self->ep);
	self->endpoints = count_endpoints(_metadata, self->ctx.fd);
}

FIXTURE_TEARDOWN(abi)
{
	if (self->has_peer)
		peer_stop(_metadata, &self->peer);
	close(self->channel);
	ctx_close(_metadata, &self->ctx);
}

/* A correct call in self->arg, which tests then break */
static union arg *correct(FIXTURE_DATA(abi) *self,
			  const FIXTURE_VARIANT(abi) *variant)
{
	memset(&self->arg, 0, sizeof(self->arg));
	self->arg.hdr.size = variant->size;
	self->arg.hdr.reason_uptr = UPTR(&ep_reason);
	variant->fill(&self->arg, self);
	return &self->arg;
}

/* The correct call; what it makes is closed and destroyed */
static void call_correct(struct __test_metadata *_metadata,
			 FIXTURE_DATA(abi) *self,
			 const FIXTURE_VARIANT(abi) *variant)
{
	int fd = self->ctx.fd;

	if (variant->refused) {
		do_err(EOPNOTSUPP, KERNEL,
		       ep_ioctl(fd, variant->cmd, &self->arg));
		return;
	}
	do_ok(ep_ioctl(fd, variant->cmd, &self->arg));
	switch (variant->cmd) {
	case RDMA_EP_CREATE_CHANNEL:
		close(self->arg.create_channel.out_fd);
		break;
	case RDMA_EP_CREATE:
		do_ok(try_destroy(fd, self->arg.create.out_ep));
		break;
	case RDMA_EP_CREATE_EP:
		do_ok(try_destroy(fd, self->arg.create_ep.out_ep));
		break;
	}
}

/* After failed calls: all is as it was, and the correct call works */
static void nothing_changed(struct __test_metadata *_metadata,
			    FIXTURE_DATA(abi) *self,
			    const FIXTURE_VARIANT(abi) *variant)
{
	EXPECT_EQ(self->endpoints, count_endpoints(_metadata, self->ctx.fd));
	if (self->ep) {
		EXPECT_EQ(self->state,
			  ep_state(_metadata, self->ctx.fd, self->ep));
	}
	correct(self, variant);
	call_correct(_metadata, self, variant);
}

TEST(every_command_has_a_row)
{
	struct rdma_ep_get_info info;
	int fd = open_ep();

	ASSERT_LE(0, fd);
	do_ok(try_get_info(fd, &info));
	EXPECT_EQ(info.out_commands, abi_rows);
	EXPECT_EQ(RDMA_EP_ABI_VERSION, info.out_abi_version);
	EXPECT_EQ(0, info.out_endpoints);
	EXPECT_LT(0, info.out_max_endpoints);
	EXPECT_LT(0, info.out_max_backlog);
	EXPECT_EQ(0, info.out_reserved);
	close(fd);
}

TEST(unknown_commands)
{
	union arg arg = { .hdr = EP_HDR(arg.get_info, 0) };
	struct rdma_ep_get_info info;
	unsigned int nr;
	int fd = open_ep();
	bool test_code;

	ASSERT_LE(0, fd);
	do_ok(try_get_info(fd, &info));
	test_code = has_test_code(fd);
	for (nr = info.out_commands; nr <= _IOC_NRMASK; nr++) {
		if (test_code && nr >= _IOC_NR(RDMA_EP_TEST_EVENT) &&
		    nr <= _IOC_NR(RDMA_EP_TEST_STALL))
			continue;
		EXPECT_EQ(-ENOTTY, ep_ioctl(fd, _IO(RDMA_EP_IOC_TYPE, nr), &arg))
			TH_LOG("command %u", nr);
	}
	for (nr = 0; nr < info.out_commands; nr++) {
		EXPECT_EQ(-ENOTTY, ep_ioctl(fd, _IO(0xec, nr), &arg));
		EXPECT_EQ(-ENOTTY, ep_ioctl(fd, _IO(0x1b, nr), &arg));
		EXPECT_EQ(-ENOTTY, ep_ioctl(fd, _IOWR(RDMA_EP_IOC_TYPE, nr, arg.hdr),
					    &arg));
	}
	/* the number is looked at first: a pointer to nowhere is not */
	EXPECT_EQ(-ENOTTY, ep_ioctl(fd, _IO(RDMA_EP_IOC_TYPE, 0xff), NULL));
	close(fd);
}

/* Commands go to the context, not to a channel */
TEST_F(abi, channel_takes_no_commands)
{
	correct(self, variant);
	EXPECT_EQ(-ENOTTY, ep_ioctl(self->channel, variant->cmd, &self->arg));
	nothing_changed(_metadata, self, variant);
}

TEST_F(abi, too_short)
{
	const size_t sizes[] = {
		0, 1, sizeof(__u32), sizeof(struct rdma_ep_hdr) - 1,
		sizeof(struct rdma_ep_hdr), variant->size - 8,
		variant->size - 1,
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		correct(self, variant)->hdr.size = sizes[i];
		EXPECT_EQ(-EINVAL,
			  ep_ioctl(self->ctx.fd, variant->cmd, &self->arg))
			TH_LOG("size %zu of %zu", sizes[i], variant->size);
		if (sizes[i] >= sizeof(struct rdma_ep_hdr)) {
			EXPECT_EQ(RDMA_EP_REASON_STRUCT, ep_reason.code);
		}
	}
	nothing_changed(_metadata, self, variant);
}

TEST_F(abi, dirty_tail)
{
	const size_t dirty[] = { 0, 1, 7, 8, 100 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(dirty); i++) {
		correct(self, variant)->hdr.size = variant->size + dirty[i] + 1;
		self->arg.bytes[variant->size + dirty[i]] = 1;
		do_err(E2BIG, STRUCT,
		       ep_ioctl(self->ctx.fd, variant->cmd, &self->arg));
	}
	/* up to the last byte that can be there */
	correct(self, variant)->hdr.size = MAX_STRUCT;
	self->arg.bytes[MAX_STRUCT - 1] = 0x80;
	do_err(E2BIG, STRUCT,
	       ep_ioctl(self->ctx.fd, variant->cmd, &self->arg));
	nothing_changed(_metadata, self, variant);
}

TEST_F(abi, clean_tail)
{
	correct(self, variant)->hdr.size = variant->size + 64;
	/* beyond the stated size nobody looks */
	memset(self->arg.bytes + variant->size + 64, POISON, 64);
	call_correct(_metadata, self, variant);
	EXPECT_TRUE(is_filled(self->arg.bytes + variant->size, 64, 0));
	EXPECT_TRUE(is_filled(self->arg.bytes + variant->size + 64, 64, POISON));
}

TEST_F(abi, clean_tail_of_a_page)
{
	correct(self, variant)->hdr.size = MAX_STRUCT;
	call_correct(_metadata, self, variant);
}

TEST_F(abi, larger_than_a_page)
{
	correct(self, variant)->hdr.size = MAX_STRUCT + 1;
	do_err(E2BIG, STRUCT,
	       ep_ioctl(self->ctx.fd, variant->cmd, &self->arg));
	correct(self, variant)->hdr.size = UINT32_MAX;
	do_err(E2BIG, STRUCT,
	       ep_ioctl(self->ctx.fd, variant->cmd, &self->arg));
	nothing_changed(_metadata, self, variant);
}

TEST_F(abi, unknown_flag)
{
	unsigned int bit;

	for (bit = 0; bit < 32; bit++) {
		if (variant->flags & (1U << bit))
			continue;
		correct(self, variant)->hdr.flags |= 1U << bit;
		do_err(EOPNOTSUPP, STRUCT,
		       ep_ioctl(self->ctx.fd, variant->cmd, &self->arg));
	}
	nothing_changed(_metadata, self, variant);
}

TEST_F(abi, reserved_field)
{
	size_t i, byte;

	for (i = 0; i < ARRAY_SIZE(variant->reserved); i++) {
		const struct range *r = &variant->reserved[i];

		for (byte = 0; byte < r->len; byte++) {
			correct(self, variant)->bytes[r->off + byte] = 0x80;
			do_err(EOPNOTSUPP, STRUCT,
			       ep_ioctl(self->ctx.fd, variant->cmd,
					&self->arg));
		}
	}
	nothing_changed(_metadata, self, variant);
}

/* Addresses have reserved bytes of their own */
TEST_F(abi, address)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(variant->addr) && variant->addr[i]; i++) {
		struct rdma_ep_addr *a =
			(void *)(self->arg.bytes + variant->addr[i]);

		correct(self, variant);
		a->reserved = 1;
		do_err(EOPNOTSUPP, STRUCT,
		       ep_ioctl(self->ctx.fd, variant->cmd, &self->arg));
		correct(self, variant);
		a->sa[a->len] = 1;
		do_err(EOPNOTSUPP, STRUCT,
		       ep_ioctl(self->ctx.fd, variant->cmd, &self->arg));
		correct(self, variant);
		a->len = RDMA_EP_ADDR_SIZE + 1;
		do_err(EINVAL, ADDR_FORMAT,
		       ep_ioctl(self->ctx.fd, variant->cmd, &self->arg));
		correct(self, variant);
		a->len = sizeof(struct sockaddr_in) - 1;
		a->sa[a->len] = 0;
		do_err(EINVAL, ADDR_FORMAT,
		       ep_ioctl(self->ctx.fd, variant->cmd, &self->arg));
		correct(self, variant);
		a->len = 1;
		memset(a->sa + 1, 0, sizeof(a->sa) - 1);
		do_err(EINVAL, ADDR_FORMAT,
		       ep_ioctl(self->ctx.fd, variant->cmd, &self->arg));
	}
	nothing_changed(_metadata, self, variant);
}

TEST_F(abi, bad_handle)
{
	const uint32_t bad[] = {
		0, self->ep + 1000, 0x7fffffff, 0x80000000, UINT32_MAX,
	};
	int other = open_ep();
	uint32_t foreign = 0;
	size_t i;

	ASSERT_LE(0, other);
	for (i = 0; variant->ep && i < ARRAY_SIZE(bad); i++) {
		correct(self, variant);
		memcpy(self->arg.bytes + variant->ep, &bad[i], sizeof(bad[i]));
		do_err(ENOENT, HANDLE,
		       ep_ioctl(self->ctx.fd, variant->cmd, &self->arg));
	}
	/* an endpoint of another context has no name here */
	for (i = 0; variant->ep && i < 8; i++)
		do_ok(try_create(other, PS_TCP, -1, 0, &foreign));
	if (variant->ep) {
		correct(self, variant);
		memcpy(self->arg.bytes + variant->ep, &foreign, sizeof(foreign));
		EXPECT_EQ(-ENOENT,
			  ep_ioctl(self->ctx.fd, variant->cmd, &self->arg));
	}
	close(other);
	for (i = 0; variant->group && i < ARRAY_SIZE(bad); i++) {
		uint32_t group = bad[i] == self->group ? 4242 : bad[i];

		correct(self, variant);
		memcpy(self->arg.bytes + variant->group, &group, sizeof(group));
		do_err(ENOENT, HANDLE,
		       ep_ioctl(self->ctx.fd, variant->cmd, &self->arg));
	}
	nothing_changed(_metadata, self, variant);
}

TEST_F(abi, bad_channel)
{
	int other = open_ep();
	int foreign = -1;
	int null = open("/dev/null", O_RDONLY);
	int bad[5];
	size_t i;

	ASSERT_LE(0, other);
	ASSERT_LE(0, null);
	do_ok(try_create_channel(other, 0, &foreign));
	bad[0] = 1000;			/* not open */
	bad[1] = null;			/* of another kind */
	bad[2] = self->ctx.fd;		/* the context itself */
	bad[3] = foreign;		/* a channel, but of another context */
	bad[4] = -2;
	/* one for a child is looked at when there is a child */
	for (i = 0; variant->fd && variant->cmd != RDMA_EP_WAIT &&
	     i < ARRAY_SIZE(bad); i++) {
		correct(self, variant);
		memcpy(self->arg.bytes + variant->fd, &bad[i], sizeof(bad[i]));
		do_err(EBADF, CHANNEL,
		       ep_ioctl(self->ctx.fd, variant->cmd, &self->arg));
	}
	/* asked to make one, but given one */
	if (variant->fd) {
		correct(self, variant)->hdr.flags |= RDMA_EP_F_NEW_CHANNEL;
		memcpy(self->arg.bytes + variant->fd, &self->channel,
		       sizeof(self->channel));
		EXPECT_EQ(-EINVAL,
			  ep_ioctl(self->ctx.fd, variant->cmd, &self->arg));
	}
	close(foreign);
	close(null);
	close(other);
	nothing_changed(_metadata, self, variant);
}

struct bad_memory {
	uint8_t *unmapped;
	uint8_t *unreadable;	/* preceded by good memory */
	uint8_t *readonly;	/* preceded by good memory */
	uint8_t *kernel;
	uint8_t *low;
	uint8_t *map;
};

static void bad_memory_get(struct __test_metadata *_metadata,
			   struct bad_memory *bad)
{
	const size_t page = sysconf(_SC_PAGESIZE);
	uint8_t *map = mmap(NULL, 5 * page, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, map);
	bad->map = map;
	bad->unreadable = map + page;
	ASSERT_EQ(0, mprotect(bad->unreadable, page, PROT_NONE));
	bad->readonly = map + 3 * page;
	ASSERT_EQ(0, mprotect(bad->readonly, page, PROT_READ));
	bad->unmapped = map + 4 * page;
	ASSERT_EQ(0, munmap(bad->unmapped, page));
	bad->low = (uint8_t *)8;
	bad->kernel = (uint8_t *)(uintptr_t)(sizeof(long) == 8 ?
					     0xffff888000000000ULL :
					     0xfffff000U);
}

static void bad_memory_put(struct bad_memory *bad)
{
	munmap(bad->map, 4 * sysconf(_SC_PAGESIZE));
}

TEST_F(abi, bad_struct_pointer)
{
	struct bad_memory bad;
	uint8_t *edge;

	bad_memory_get(_metadata, &bad);
	EXPECT_EQ(-EFAULT, ep_ioctl(self->ctx.fd, variant->cmd, NULL));
	EXPECT_EQ(-EFAULT, ep_ioctl(self->ctx.fd, variant->cmd, bad.low));
	EXPECT_EQ(-EFAULT, ep_ioctl(self->ctx.fd, variant->cmd, bad.unmapped));
	EXPECT_EQ(-EFAULT, ep_ioctl(self->ctx.fd, variant->cmd, bad.unreadable));
	EXPECT_EQ(-EFAULT, ep_ioctl(self->ctx.fd, variant->cmd, bad.kernel));
	/* the size can be read, the struct cannot */
	edge = bad.unreadable - sizeof(struct rdma_ep_hdr) / 2;
	memcpy(edge, correct(self, variant), sizeof(struct rdma_ep_hdr) / 2);
	EXPECT_EQ(-EFAULT, ep_ioctl(self->ctx.fd, variant->cmd, edge));
	bad_memory_put(&bad);
	nothing_changed(_metadata, self, variant);
}

/* A reply that cannot be written must undo what was done */
TEST_F(abi, readonly_struct)
{
	const size_t page = sysconf(_SC_PAGESIZE);
	int fds = count_fds();
	union arg *map;

	if (!variant->out[0].len)
		return;		/* has no reply of its own */
	map = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, map);
	memcpy(map, correct(self, variant), variant->size);
	ASSERT_EQ(0, mprotect(map, 2 * page, PROT_READ));
	EXPECT_EQ(-EFAULT, ep_ioctl(self->ctx.fd, variant->cmd, map));
	EXPECT_EQ(fds, count_fds());
	munmap(map, 2 * page);
	if (variant->cmd == RDMA_EP_DESTROY || variant->cmd == RDMA_EP_LEAVE ||
	    variant->cmd == RDMA_EP_DESTROY_MANY)
		return;		/* cannot be undone: what is gone is gone */
	nothing_changed(_metadata, self, variant);
}

static void bad_pointer(struct __test_metadata *_metadata,
			FIXTURE_DATA(abi) *self,
			const FIXTURE_VARIANT(abi) *variant,
			size_t off, void *ptr)
{
	const uint64_t uptr = UPTR(ptr);

	correct(self, variant);
	memcpy(self->arg.bytes + off, &uptr, sizeof(uptr));
	EXPECT_EQ(-EFAULT, ep_ioctl(self->ctx.fd, variant->cmd, &self->arg))
		TH_LOG("pointer %p", ptr);
	EXPECT_EQ(self->endpoints, count_endpoints(_metadata, self->ctx.fd));
	if (self->ep) {
		EXPECT_EQ(self->state,
			  ep_state(_metadata, self->ctx.fd, self->ep));
	}
}

TEST_F(abi, bad_output_pointer)
{
	struct bad_memory bad;
	int fds;

	if (!variant->out_ptr)
		return;
	bad_memory_get(_metadata, &bad);
	fds = count_fds();
	bad_pointer(_metadata, self, variant, variant->out_ptr, bad.low);
	bad_pointer(_metadata, self, variant, variant->out_ptr, bad.unmapped);
	bad_pointer(_metadata, self, variant, variant->out_ptr, bad.unreadable);
	bad_pointer(_metadata, self, variant, variant->out_ptr, bad.readonly);
	bad_pointer(_metadata, self, variant, variant->out_ptr, bad.kernel);
	/* begins in good memory, ends in bad */
	if (variant->out_size > 1) {
		bad_pointer(_metadata, self, variant, variant->out_ptr,
			    bad.unreadable - 8);
		bad_pointer(_metadata, self, variant, variant->out_ptr,
			    bad.readonly - 8);
	}
	EXPECT_EQ(fds, count_fds());
	bad_memory_put(&bad);
	nothing_changed(_metadata, self, variant);
}

TEST_F(abi, bad_input_pointer)
{
	struct bad_memory bad;

	if (!variant->in_ptr)
		return;
	bad_memory_get(_metadata, &bad);
	bad_pointer(_metadata, self, variant, variant->in_ptr, NULL);
	bad_pointer(_metadata, self, variant, variant->in_ptr, bad.low);
	bad_pointer(_metadata, self, variant, variant->in_ptr, bad.unmapped);
	bad_pointer(_metadata, self, variant, variant->in_ptr, bad.unreadable);
	bad_pointer(_metadata, self, variant, variant->in_ptr, bad.kernel);
	if (variant->cmd != RDMA_EP_SET_OPTION)	/* reads a single byte */
		bad_pointer(_metadata, self, variant, variant->in_ptr,
			    bad.unreadable - 8);
	bad_memory_put(&bad);
	nothing_changed(_metadata, self, variant);
}

/* A record that does not fit */
TEST_F(abi, short_record)
{
	const uint32_t lens[] = { 1, 8, offsetof(struct rdma_ep_record, private_data) - 1 };
	size_t off = variant->out_ptr;
	size_t i;

	if (variant->out_size != sizeof(struct rdma_ep_record))
		return;
	/* the length follows the pointer, or precedes it */
	switch (variant->cmd) {
	case RDMA_EP_BIND:
	case RDMA_EP_CONNECT:
	case RDMA_EP_ACCEPT:
	case RDMA_EP_DISCONNECT:
	case RDMA_EP_WAIT:
		off -= sizeof(__u32);
		break;
	default:
		off += sizeof(__u64);
	}
	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		correct(self, variant);
		memcpy(self->arg.bytes + off, &lens[i], sizeof(lens[i]));
		EXPECT_EQ(-EINVAL,
			  ep_ioctl(self->ctx.fd, variant->cmd, &self->arg))
			TH_LOG("record of %u bytes", lens[i]);
	}
	nothing_changed(_metadata, self, variant);
}

/* The reason is an extra: if it cannot be written, the errno still says it */
TEST_F(abi, bad_reason_pointer)
{
	struct bad_memory bad;
	void *ptrs[6];
	size_t i;

	bad_memory_get(_metadata, &bad);
	ptrs[0] = bad.low;
	ptrs[1] = bad.unmapped;
	ptrs[2] = bad.unreadable;
	ptrs[3] = bad.readonly;
	ptrs[4] = bad.kernel;
	ptrs[5] = bad.unreadable - 8;
	for (i = 0; i < ARRAY_SIZE(ptrs); i++) {
		correct(self, variant)->hdr.flags = 1U << 31;
		self->arg.hdr.reason_uptr = UPTR(ptrs[i]);
		EXPECT_EQ(-EOPNOTSUPP,
			  ep_ioctl(self->ctx.fd, variant->cmd, &self->arg))
			TH_LOG("pointer %p", ptrs[i]);
	}
	/* nobody asked for it */
	correct(self, variant)->hdr.flags = 1U << 31;
	self->arg.hdr.reason_uptr = 0;
	EXPECT_EQ(-EOPNOTSUPP,
		  ep_ioctl(self->ctx.fd, variant->cmd, &self->arg));
	bad_memory_put(&bad);
	nothing_changed(_metadata, self, variant);
}

/* A reason is written whole: no byte is left from before, the text ends */
TEST_F(abi, reason_bytes)
{
	struct {
		struct rdma_ep_reason reason;
		uint8_t after[64];
	} out;
	size_t len;

	memset(&out, POISON, sizeof(out));
	correct(self, variant)->hdr.flags = 1U << 31;
	self->arg.hdr.reason_uptr = UPTR(&out.reason);
	EXPECT_EQ(-EOPNOTSUPP,
		  ep_ioctl(self->ctx.fd, variant->cmd, &self->arg));
	EXPECT_EQ(RDMA_EP_REASON_STRUCT, out.reason.code);
	EXPECT_EQ(0, out.reason.reserved);
	len = strnlen(out.reason.text, sizeof(out.reason.text));
	ASSERT_LT(len, sizeof(out.reason.text));
	EXPECT_LT(0, len);
	EXPECT_TRUE(is_filled(out.reason.text + len,
			      sizeof(out.reason.text) - len, 0));
	EXPECT_TRUE(is_filled(out.after, sizeof(out.after), POISON));

	/* and not at all when nothing fails */
	if (variant->refused)
		return;
	memset(&out, POISON, sizeof(out));
	correct(self, variant)->hdr.reason_uptr = UPTR(&out.reason);
	call_correct(_metadata, self, variant);
	if (variant->cmd == RDMA_EP_CONNECT) {	/* is rejected */
		EXPECT_EQ(RDMA_EP_REASON_REJECTED, out.reason.code);
	} else {
		EXPECT_TRUE(is_filled(&out, sizeof(out), POISON));
	}
}

/*
 * The reply: what is an output is written, what is an input is left alone,
 * no byte beyond what was asked for is touched.
 */
TEST_F(abi, reply_bytes)
{
	struct {
		union {
			struct rdma_ep_record rec;
			struct ib_uverbs_qp_attr attr;
			uint8_t bytes[sizeof(struct rdma_ep_record)];
		};
		uint8_t after[64];
	} out;
	const uint64_t uptr = UPTR(&out);
	union arg before;
	size_t i, end;

	memset(&out, POISON, sizeof(out));
	correct(self, variant);
	memset(self->arg.bytes + variant->size, POISON, 64);
	for (i = 0; i < ARRAY_SIZE(variant->out); i++)
		memset(self->arg.bytes + variant->out[i].off, POISON,
		       variant->out[i].len);
	if (variant->out_ptr)
		memcpy(self->arg.bytes + variant->out_ptr, &uptr, sizeof(uptr));
	before = self->arg;
	call_correct(_metadata, self, variant);

	EXPECT_TRUE(is_filled(self->arg.bytes + variant->size, 64, POISON));
	for (i = 0; i < ARRAY_SIZE(variant->out); i++) {
		const struct range *r = &variant->out[i];

		if (!r->len)
			continue;
		EXPECT_FALSE(is_filled(self->arg.bytes + r->off, r->len, POISON))
			TH_LOG("output at offset %zu is not written", r->off);
		memcpy(self->arg.bytes + r->off, before.bytes + r->off, r->len);
	}
	EXPECT_EQ(0, memcmp(&before, &self->arg, sizeof(before)))
		TH_LOG("an input was changed");

	if (!variant->out_ptr)
		return;
	EXPECT_TRUE(is_filled(out.after, sizeof(out.after), POISON));
	EXPECT_TRUE(is_filled(out.bytes + variant->out_size,
			      sizeof(out.bytes) - variant->out_size, POISON));
	if (variant->cmd == RDMA_EP_INIT_QP_ATTR) {
		EXPECT_TRUE(is_filled(out.attr.reserved,
				      sizeof(out.attr.reserved), 0));
		EXPECT_EQ(0, out.attr.ah_attr.reserved);
		EXPECT_EQ(0, out.attr.alt_ah_attr.reserved);
		/* no path is part of INIT: not a byte of it may be there */
		EXPECT_TRUE(is_filled(&out.attr.alt_ah_attr,
				      sizeof(out.attr.alt_ah_attr), 0));
	}
	if (variant->out_size != sizeof(struct rdma_ep_record))
		return;
	EXPECT_GOOD_RECORD(&out.rec);
	/* each byte of what is not there is untouched, or zero */
	end = out.rec.size < sizeof(out.bytes) ? out.rec.size : sizeof(out.bytes);
	for (; end < sizeof(out.bytes); end++)
		if (out.bytes[end] && out.bytes[end] != POISON)
			break;
	EXPECT_EQ(sizeof(out.bytes), end);
}

TEST_HARNESS_MAIN
