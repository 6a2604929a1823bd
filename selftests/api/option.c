// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rdma_set_option(3), and rdmaep_get_option(3) where the library is ours.
 */
#include <rdmaep.h>

#include "api_utils.h"

PAIR_FIXTURE(option)

static int set_tos(struct rdma_cm_id *id, uint8_t tos)
{
	return rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos,
			       sizeof(tos));
}

static int set_int(struct rdma_cm_id *id, int name, int value)
{
	return rdma_set_option(id, RDMA_OPTION_ID, name, &value, sizeof(value));
}

typedef int (*get_option_fn)(struct rdma_cm_id *id, enum rdmaep_option name,
			     void *value, size_t len);

/* RDMA_OPTION_ID_TOS: "Specify the quality of service" */
TEST_F(option, tos)
{
	struct pair *p = &self->pair;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	pair_listen(p);
	ok(rdma_create_id(p->client_channel, &p->client, NULL, RDMA_PS_TCP));
	ok(set_tos(p->client, 0x68));
	ok(rdma_resolve_addr(p->client, NULL, sa(&p->addr), RESOLVE_MS));
	expect_event(p->client_channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	ok(rdma_resolve_route(p->client, RESOLVE_MS));
	expect_event(p->client_channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	init = qp_attr(IBV_QPT_RC);
	ok(rdma_create_qp(p->client, NULL, &init));
	pair_request(p);
	pair_accept(p);
	expect_event(p->client_channel, RDMA_CM_EVENT_ESTABLISHED);
	expect_event(p->server_channel, RDMA_CM_EVENT_ESTABLISHED);
	ASSERT_EQ(0, ibv_query_qp(p->client->qp, &attr, IBV_QP_AV, &init));
	EXPECT_EQ(0x68, attr.ah_attr.grh.traffic_class);
}

/* RDMA_OPTION_ID_REUSEADDR: "allow other users to bind to that same address" */
TEST_F(option, reuseaddr)
{
	struct sockaddr_storage addr = my_addr(variant->family, 7471);
	struct pair *p = &self->pair;

	pair_listen(p);
	ok(rdma_create_id(p->client_channel, &p->client, NULL, RDMA_PS_TCP));
	ok(rdma_create_id(p->client_channel, &p->server, NULL, RDMA_PS_TCP));
	ok(set_int(p->client, RDMA_OPTION_ID_REUSEADDR, 1));
	ok(rdma_bind_addr(p->client, sa(&addr)));
	/* Both have to want it. */
	err(EADDRINUSE, rdma_bind_addr(p->server, sa(&addr)));
	ok(set_int(p->server, RDMA_OPTION_ID_REUSEADDR, 1));
	ok(rdma_bind_addr(p->server, sa(&addr)));
	/* To listen, one has to be alone. */
	err(EADDRINUSE, rdma_listen(p->client, 1));
	ok(rdma_destroy_id(p->server));
	p->server = NULL;
	ok(rdma_listen(p->client, 1));
}

/* RDMA_OPTION_ID_AFONLY: the same port for both families */
TEST(afonly)
{
	struct sockaddr_storage any6 = wildcard(AF_INET6, 7471);
	struct sockaddr_storage any4 = wildcard(AF_INET, 7471);
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *a, *b, *c;

	ASSERT_NE(NULL, channel);
	ok(rdma_create_id(channel, &a, NULL, RDMA_PS_TCP));
	ok(rdma_create_id(channel, &b, NULL, RDMA_PS_TCP));
	ok(rdma_create_id(channel, &c, NULL, RDMA_PS_TCP));
	ok(set_int(a, RDMA_OPTION_ID_AFONLY, 1));
	ok(rdma_bind_addr(a, sa(&any6)));
	ok(rdma_bind_addr(b, sa(&any4)));
	ok(rdma_listen(a, 1));
	ok(rdma_listen(b, 1));
	ok(rdma_destroy_id(b));

	/* Without it, the IPv6 wildcard takes the port of both. */
	ok(rdma_destroy_id(a));
	ok(rdma_create_id(channel, &a, NULL, RDMA_PS_TCP));
	ok(set_int(a, RDMA_OPTION_ID_AFONLY, 0));
	ok(rdma_bind_addr(a, sa(&any6)));
	err_or_stock(EADDRINUSE, EADDRNOTAVAIL, rdma_bind_addr(c, sa(&any4)));
	ok(rdma_destroy_id(a));
	ok(rdma_destroy_id(c));
	rdma_destroy_event_channel(channel);
}

/* RDMA_OPTION_ID_ACK_TIMEOUT: "4.096 * 2^(ack_timeout) usec" */
TEST_F(option, ack_timeout)
{
	struct pair *p = &self->pair;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	uint8_t timeout = 17;

	pair_listen(p);
	pair_resolve(p);
	ok(rdma_set_option(p->client, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT,
			   &timeout, sizeof(timeout)));
	pair_request(p);
	pair_accept(p);
	expect_event(p->client_channel, RDMA_CM_EVENT_ESTABLISHED);
	expect_event(p->server_channel, RDMA_CM_EVENT_ESTABLISHED);
	ASSERT_EQ(0, ibv_query_qp(p->client->qp, &attr, IBV_QP_TIMEOUT, &init));
	EXPECT_EQ(17, attr.timeout);
}

/* RDMA_OPTION_IB_PATH is for InfiniBand ports; RoCE has its own routes */
TEST_F(option, ib_path)
{
	struct ibv_path_data path = {
		.flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY |
			 IBV_PATH_FLAG_BIDIRECTIONAL,
	};
	struct pair *p = &self->pair;

	pair_listen(p);
	ok(rdma_create_id(p->client_channel, &p->client, NULL, RDMA_PS_TCP));
	ok(rdma_resolve_addr(p->client, NULL, sa(&p->addr), RESOLVE_MS));
	expect_event(p->client_channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	/* not one whole path */
	err(EINVAL, rdma_set_option(p->client, RDMA_OPTION_IB,
				    RDMA_OPTION_IB_PATH, &path,
				    sizeof(path) - 1));
	err(EINVAL, rdma_set_option(p->client, RDMA_OPTION_IB,
				    RDMA_OPTION_IB_PATH, &path, 0));
}

TEST_F(option, error_length)
{
	struct pair *p = &self->pair;
	uint64_t value = 0;

	pair_listen(p);
	err(EINVAL, rdma_set_option(p->listen, RDMA_OPTION_ID,
				    RDMA_OPTION_ID_TOS, &value, 4));
	err(EINVAL, rdma_set_option(p->listen, RDMA_OPTION_ID,
				    RDMA_OPTION_ID_REUSEADDR, &value, 1));
	err(EINVAL, rdma_set_option(p->listen, RDMA_OPTION_ID,
				    RDMA_OPTION_ID_AFONLY, &value, 8));
	err(EINVAL, rdma_set_option(p->listen, RDMA_OPTION_ID,
				    RDMA_OPTION_ID_ACK_TIMEOUT, &value, 0));
}

TEST_F(option, error_unknown)
{
	struct pair *p = &self->pair;
	int value = 0;

	pair_listen(p);
	err(ENOSYS, rdma_set_option(p->listen, RDMA_OPTION_ID, 99, &value,
				    sizeof(value)));
	err(ENOSYS, rdma_set_option(p->listen, 99, 0, &value, sizeof(value)));
	err(ENOSYS, rdma_set_option(p->listen, RDMA_OPTION_IB, 99, &value,
				    sizeof(value)));
}

/* too late to share a port */
TEST_F(option, error_state)
{
	struct pair *p = &self->pair;

	pair_listen(p);
	err(EINVAL, set_int(p->listen, RDMA_OPTION_ID_AFONLY, 1));
}

/*
 * Ours
 */

TEST_F(option, get)
{
	get_option_fn get;
	struct pair *p = &self->pair;
	uint8_t tos = 0, timeout;
	int on = 0;

	not_on_stock("it has no getter");
	get = own_function(get_option_fn, "rdmaep_get_option");
	ASSERT_NE(NULL, get);
	ok(rdma_create_id(NULL, &p->client, NULL, RDMA_PS_TCP));
	ok(set_tos(p->client, 0x20));
	ok(get(p->client, RDMAEP_OPT_TOS, &tos, sizeof(tos)));
	EXPECT_EQ(0x20, tos);
	ok(get(p->client, RDMAEP_OPT_REUSEADDR, &on, sizeof(on)));
	EXPECT_EQ(0, on);
	ok(set_int(p->client, RDMA_OPTION_ID_REUSEADDR, 1));
	ok(get(p->client, RDMAEP_OPT_REUSEADDR, &on, sizeof(on)));
	EXPECT_EQ(1, on);
	ok(set_int(p->client, RDMA_OPTION_ID_AFONLY, 1));
	on = 0;
	ok(get(p->client, RDMAEP_OPT_AFONLY, &on, sizeof(on)));
	EXPECT_EQ(1, on);
	timeout = 14;
	ok(rdma_set_option(p->client, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT,
			   &timeout, sizeof(timeout)));
	timeout = 0;
	ok(get(p->client, RDMAEP_OPT_ACK_TIMEOUT, &timeout, sizeof(timeout)));
	EXPECT_EQ(14, timeout);
	err(EINVAL, get(p->client, RDMAEP_OPT_TOS, &on, sizeof(on)));
}

/* The peer's QP waits as long as the RNR timer says. */
TEST_F(option, min_rnr_timer)
{
	get_option_fn set;
	struct pair *p = &self->pair;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	uint8_t timer = 20;

	not_on_stock("it has no such option");
	set = own_function(get_option_fn, "rdmaep_set_option");
	ASSERT_NE(NULL, set);
	pair_listen(p);
	pair_resolve(p);
	ok(set(p->client, RDMAEP_OPT_MIN_RNR_TIMER, &timer, sizeof(timer)));
	pair_request(p);
	pair_accept(p);
	expect_event(p->client_channel, RDMA_CM_EVENT_ESTABLISHED);
	expect_event(p->server_channel, RDMA_CM_EVENT_ESTABLISHED);
	ASSERT_EQ(0, ibv_query_qp(p->client->qp, &attr, IBV_QP_MIN_RNR_TIMER,
				  &init));
	EXPECT_EQ(20, attr.min_rnr_timer);
	timer = 32;
	err(EINVAL, set(p->client, RDMAEP_OPT_MIN_RNR_TIMER, &timer,
			sizeof(timer)));
}

/* A connect that nobody answers ends in time. */
TEST_F(option, connect_timeout)
{
	get_option_fn set;
	struct pair *p = &self->pair;
	struct rdma_cm_event *event;
	uint32_t ms = 500;
	long start;

	not_on_stock("it gives up after a minute");
	set = own_function(get_option_fn, "rdmaep_set_option");
	ASSERT_NE(NULL, set);
	pair_listen(p);
	pair_resolve(p);
	ok(set(p->client, RDMAEP_OPT_CONNECT_TIMEOUT, &ms, sizeof(ms)));
	start = now_ms();
	pair_request(p);	/* and no accept */
	event = get_event(p->client_channel, RDMA_CM_EVENT_UNREACHABLE);
	EXPECT_EQ(-ETIMEDOUT, event->status);
	EXPECT_LT(now_ms() - start, 10000);
	EXPECT_GE(now_ms() - start, 400);
	ok(rdma_ack_cm_event(event));
	expect_silence(p->client_channel);
}

/* RDMAEP_OPT_DEVICE: "Use the RDMA device with this index, and no other". */
static uint32_t device_index(int n, uint32_t otherwise)
{
	struct ibv_context **list;
	int num = 0;

	list = rdma_get_devices(&num);
	if (n < num)
		otherwise = ibv_get_device_index(list[n]->device);
	if (list)
		rdma_free_devices(list);
	return otherwise;
}

/* Our address belongs to the first. */
static uint32_t my_device(void)
{
	return device_index(0, 0);
}

/* Another one, or what no device has for an index. */
static uint32_t other_device(void)
{
	return device_index(1, 12345);
}

static int set_device(struct rdma_cm_id *id, uint32_t index)
{
	get_option_fn set = own_function(get_option_fn, "rdmaep_set_option");

	return set(id, RDMAEP_OPT_DEVICE, &index, sizeof(index));
}

TEST_F(option, device)
{
	get_option_fn get;
	struct pair *p = &self->pair;
	uint32_t index = 0;

	not_on_stock("it has no such option");
	get = own_function(get_option_fn, "rdmaep_get_option");
	pair_listen(p);
	pair_resolve(p);
	ok(get(p->client, RDMAEP_OPT_DEVICE, &index, sizeof(index)));
	EXPECT_EQ(RDMAEP_ANY_DEVICE, index);
	err(EINVAL, set_device(p->client, other_device()));
	ok(set_device(p->client, my_device()));
	ok(get(p->client, RDMAEP_OPT_DEVICE, &index, sizeof(index)));
	EXPECT_EQ(my_device(), index);
	ok(set_device(p->listen, my_device()));
	pair_request(p);
	pair_accept(p);
	expect_event(p->client_channel, RDMA_CM_EVENT_ESTABLISHED);
	expect_event(p->server_channel, RDMA_CM_EVENT_ESTABLISHED);
}

TEST_F(option, device_bind)
{
	struct sockaddr_storage addr = my_addr(variant->family, 0);
	struct pair *p = &self->pair;

	not_on_stock("it has no such option");
	ok(rdma_create_id(NULL, &p->client, NULL, RDMA_PS_TCP));
	ok(set_device(p->client, other_device()));
	err(ENODEV, rdma_bind_addr(p->client, sa(&addr)));
	expect_reason(RDMA_EP_REASON_NO_DEVICE);
	/* "can only be destroyed" */
	err(EINVAL, rdma_listen(p->client, 0));
	err(EINVAL, rdma_bind_addr(p->client, sa(&addr)));
}

TEST_F(option, device_resolve)
{
	struct sockaddr_storage addr = my_addr(variant->family, 1);
	struct pair *p = &self->pair;

	not_on_stock("it has no such option");
	ok(rdma_create_id(NULL, &p->client, NULL, RDMA_PS_TCP));
	ok(set_device(p->client, other_device()));
	err(ENODEV, rdma_resolve_addr(p->client, NULL, sa(&addr), RESOLVE_MS));
	EXPECT_EQ(NULL, p->client->verbs);
	EXPECT_EQ(-1, rdma_resolve_route(p->client, RESOLVE_MS));
}

/* "can only be destroyed": the device it has come to is not used */
TEST_F(option, device_multicast)
{
	struct sockaddr_storage addr = my_addr(variant->family, 1);
	struct pair *p = &self->pair;

	not_on_stock("it has no such option");
	ok(rdma_create_id(NULL, &p->client, NULL, RDMA_PS_UDP));
	ok(set_device(p->client, other_device()));
	err(ENODEV, rdma_resolve_addr(p->client, NULL, sa(&addr), RESOLVE_MS));
	addr = parse(variant->family == AF_INET ? "239.1.1.77" : "ff0e::77", 0);
	err(EINVAL, rdma_join_multicast(p->client, sa(&addr), NULL));
}

/* Likewise if the resolution fails after the source has been bound to */
TEST_F(option, device_of_source)
{
	struct sockaddr_storage src = my_addr(variant->family, 0);
	struct sockaddr_storage dst = my_addr(variant->family == AF_INET ? AF_INET6 : AF_INET, 1);
	struct pair *p = &self->pair;

	not_on_stock("it has no such option");
	ok(rdma_create_id(NULL, &p->client, NULL, RDMA_PS_UDP));
	ok(set_device(p->client, other_device()));
	err(EINVAL, rdma_resolve_addr(p->client, sa(&src), sa(&dst), RESOLVE_MS));
	src = parse(variant->family == AF_INET ? "239.1.1.77" : "ff0e::77", 0);
	err(EINVAL, rdma_join_multicast(p->client, sa(&src), NULL));
}

/* "One that listens on a wildcard address rejects requests" */
TEST_F(option, device_listen)
{
	struct sockaddr_storage any = wildcard(variant->family, 0);
	struct pair *p = &self->pair;
	struct rdma_cm_event *event;

	not_on_stock("it has no such option");
	pair_listen(p);
	ok(rdma_create_id(p->server_channel, &p->server, NULL, RDMA_PS_TCP));
	ok(rdma_bind_addr(p->server, sa(&any)));
	ok(set_device(p->server, other_device()));
	ok(rdma_listen(p->server, 8));
	p->addr = my_addr(variant->family, src_port(p->server));
	pair_resolve(p);
	ok(rdma_connect(p->client, &p->connect_param));
	event = get_event(p->client_channel, RDMA_CM_EVENT_REJECTED);
	EXPECT_EQ(8, event->status);	/* as if nobody listened */
	ok(rdma_ack_cm_event(event));
	expect_silence(p->server_channel);
	/* and when it may again */
	ok(set_device(p->server, RDMAEP_ANY_DEVICE));
	_pair_destroy_id(_metadata, &p->client);
	pair_resolve(p);
	ok(rdma_connect(p->client, &p->connect_param));
	event = get_event(p->server_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	ok(rdma_reject(event->id, NULL, 0));
	_pair_destroy_id(_metadata, &p->server);
	p->server = event->id;
	ok(rdma_ack_cm_event(event));
	event = get_event(p->client_channel, RDMA_CM_EVENT_REJECTED);
	ok(rdma_ack_cm_event(event));
}

typedef int (*get_limits_fn)(struct rdma_cm_id *, struct rdmaep_limits *, size_t);

TEST_F(option, limits)
{
	struct rdmaep_limits limits;
	struct pair *p = &self->pair;
	get_limits_fn get;

	not_on_stock("it cannot be asked");
	get = own_function(get_limits_fn, "rdmaep_get_limits");
	ASSERT_NE(NULL, get);
	ok(rdma_create_id(NULL, &p->client, NULL, RDMA_PS_TCP));
	err(ENODEV, get(p->client, &limits, sizeof(limits)));
	pair_listen(p);
	ok(get(p->listen, &limits, sizeof(limits)));
	EXPECT_EQ(56, limits.max_connect_data);
	EXPECT_EQ(196, limits.max_accept_data);
	EXPECT_EQ(148, limits.max_reject_data);
	EXPECT_LT(0, limits.max_responder_resources);
	EXPECT_LT(0, limits.max_initiator_depth);
	err(EINVAL, get(p->listen, &limits, 0));
}

TEST_HARNESS_MAIN
