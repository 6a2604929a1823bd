// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Where our library is meant to behave better than librdmacm while it stays
 * compatible. Each test says what librdmacm does, and is not run there when
 * that is to hang or to crash.
 */
#include <sys/time.h>
#include <sys/resource.h>

#include <rdmaep.h>

#include "api_utils.h"

PAIR_FIXTURE(better)

/*
 * Destroying an id while its own thread holds an event of it: librdmacm waits
 * for an ack that cannot come. Here the event is the program's until it acks
 * it, and the id goes.
 */
TEST_F(better, destroy_holding_event)
{
	struct pair *p = &self->pair;
	struct rdma_cm_event *event;

	not_on_stock("it hangs");
	pair_listen(p);
	ok(rdma_create_id(p->client_channel, &p->client, NULL, RDMA_PS_TCP));
	ok(rdma_resolve_addr(p->client, NULL, sa(&p->addr), RESOLVE_MS));
	event = get_event(p->client_channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	ok(rdma_destroy_id(p->client));
	p->client = NULL;
	EXPECT_EQ(RDMA_CM_EVENT_ADDR_RESOLVED, event->event);
	EXPECT_EQ(0, event->status);
	ok(rdma_ack_cm_event(event));
}

/* The same with private data, which is read after the id has gone. */
TEST_F(better, destroy_holding_request)
{
	struct pair *p = &self->pair;
	struct rdma_cm_event *event;

	not_on_stock("it hangs");
	p->connect_param.private_data = "keep me";
	p->connect_param.private_data_len = 7;
	pair_listen(p);
	pair_resolve(p);
	pair_request(p);
	event = p->request;
	rdma_destroy_qp(p->server);
	/* listener and request both have the event */
	ok(rdma_destroy_id(p->server));
	ok(rdma_destroy_id(p->listen));
	p->server = p->listen = NULL;
	EXPECT_EQ(0, memcmp(event->param.conn.private_data, "keep me", 7));
	pair_ack(p);
	ok(rdma_ack_cm_event(get_event(p->client_channel,
				       RDMA_CM_EVENT_REJECTED)));
}

/* The reason of a failure is not that of an older one, and a QP can be tried again. */
TEST_F(better, reason_of_the_last_failure)
{
	struct rdma_addrinfo *res;
	struct pair *p = &self->pair;
	struct ibv_qp_init_attr attr;

	not_on_stock("it has no reasons");
	pair_listen(p);
	pair_resolve(p);
	rdma_destroy_qp(p->client);
	err(EINVAL, rdma_bind_addr(p->client, sa(&p->addr)));
	EXPECT_EQ(RDMA_EP_REASON_STATE, rdmaep_last_reason());
	attr = qp_attr(IBV_QPT_RC);
	attr.cap.max_send_wr = 1 << 30;
	ASSERT_NE(0, rdma_create_qp(p->client, NULL, &attr));
	EXPECT_EQ(RDMA_EP_REASON_NONE, rdmaep_last_reason());
	EXPECT_STREQ("", rdmaep_strerror());
	attr.cap.max_send_wr = 4;
	ok(rdma_create_qp(p->client, NULL, &attr));

	err(EINVAL, rdma_bind_addr(p->client, sa(&p->addr)));
	ASSERT_NE(0, rdma_getaddrinfo("192.0.2.1", "no such service", NULL, &res));
	EXPECT_EQ(RDMA_EP_REASON_NONE, rdmaep_last_reason());
}

/* A QP whose queues have no length: without a CQ the drivers crash. */
TEST_F(better, queues_of_no_length)
{
	struct pair *p = &self->pair;
	struct ibv_qp_init_attr attr;
	int i;

	not_on_stock("it crashes");
	pair_listen(p);
	pair_resolve(p);
	for (i = 0; i < 4; i++) {
		rdma_destroy_qp(p->client);
		attr = qp_attr(IBV_QPT_RC);
		attr.cap.max_send_wr = i & 1 ? 4 : 0;
		attr.cap.max_recv_wr = i & 2 ? 4 : 0;
		ok(rdma_create_qp(p->client, NULL, &attr));
		ASSERT_NE(NULL, p->client->qp->send_cq);
		ASSERT_NE(NULL, p->client->qp->recv_cq);
		EXPECT_EQ(i == 3, p->client->qp->send_cq != p->client->qp->recv_cq);
	}
}

TEST_F(better, migrate_holding_event)
{
	struct rdma_event_channel *other = rdma_create_event_channel();
	struct pair *p = &self->pair;
	struct rdma_cm_event *event;

	not_on_stock("it hangs");
	ASSERT_NE(NULL, other);
	pair_listen(p);
	ok(rdma_create_id(p->client_channel, &p->client, NULL, RDMA_PS_TCP));
	ok(rdma_resolve_addr(p->client, NULL, sa(&p->addr), RESOLVE_MS));
	event = get_event(p->client_channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	ok(rdma_migrate_id(p->client, other));
	EXPECT_EQ(other, p->client->channel);
	ok(rdma_ack_cm_event(event));
	ok(rdma_resolve_route(p->client, RESOLVE_MS));
	expect_event(other, RDMA_CM_EVENT_ROUTE_RESOLVED);
	ok(rdma_destroy_id(p->client));
	p->client = NULL;
	rdma_destroy_event_channel(other);
}

/*
 * Ids are destroyed while another thread reads their events: what it reads is
 * never of an id that has gone. (Run it under AddressSanitizer, too.)
 */
struct churn {
	struct rdma_event_channel *channel;
	bool stop;
	int events;
	int strangers;
};

static void *churn_reader(void *arg)
{
	struct churn *churn = arg;
	struct rdma_cm_event *event;

	while (!__atomic_load_n(&churn->stop, __ATOMIC_ACQUIRE)) {
		if (!event_within(churn->channel, 10) ||
		    rdma_get_cm_event(churn->channel, &event))
			continue;
		churn->events++;
		if (event->id->context != churn)
			churn->strangers++;
		rdma_ack_cm_event(event);
	}
	return NULL;
}

TEST_F(better, destroy_while_read)
{
	struct pair *p = &self->pair;
	struct churn churn = {};
	struct rdma_cm_id *id;
	pthread_t thread;
	int i;

	pair_listen(p);
	churn.channel = p->client_channel;
	/* A reader may find that the event it was woken for has gone. */
	ASSERT_EQ(0, fcntl(churn.channel->fd, F_SETFL, O_NONBLOCK));
	ASSERT_EQ(0, pthread_create(&thread, NULL, churn_reader, &churn));
	for (i = 0; i < 200; i++) {
		ok(rdma_create_id(churn.channel, &id, &churn, RDMA_PS_TCP));
		ok(rdma_resolve_addr(id, NULL, sa(&p->addr), RESOLVE_MS));
		if (i % 3)
			sleep_ms(i % 7);
		ok(rdma_destroy_id(id));
	}
	__atomic_store_n(&churn.stop, true, __ATOMIC_RELEASE);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_LT(0, churn.events);
	EXPECT_EQ(0, churn.strangers);
}

/*
 * One terminal event for one attempt: a QP that cannot be connected any more
 * makes CONNECT_ERROR and no more of it.
 */
TEST_F(better, one_terminal_event)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct pair *p = &self->pair;
	struct rdma_cm_event *event;

	pair_listen(p);
	pair_resolve(p);
	pair_request(p);
	ASSERT_EQ(0, ibv_modify_qp(p->client->qp, &attr, IBV_QP_STATE));
	pair_accept(p);
	event = get_event(p->client_channel, RDMA_CM_EVENT_CONNECT_ERROR);
	EXPECT_EQ(on_stock() ? -1 : -EINVAL, event->status);
	ok(rdma_ack_cm_event(event));
	expect_silence(p->client_channel);
	if (on_stock())
		return;
	/* The peer learns it as well. */
	event = get_event(p->server_channel, RDMA_CM_EVENT_REJECTED);
	EXPECT_EQ(p->server, event->id);
	ok(rdma_ack_cm_event(event));
}

/* What fails leaves no netdev in the id, over which the next attempt would go. */
TEST_F(better, failed_bind)
{
	struct sockaddr_storage dst = foreign_addr(variant->family, 7471);
	struct pair *p = &self->pair;

	not_on_stock("it resolves");
	pair_listen(p);
	ok(rdma_create_id(NULL, &p->client, NULL, RDMA_PS_TCP));
	err(EADDRINUSE, rdma_bind_addr(p->client, sa(&p->addr)));
	err(ENETUNREACH, rdma_resolve_addr(p->client, NULL, sa(&dst), RESOLVE_MS));
	EXPECT_EQ(NULL, p->client->verbs);
}

/* There is no connection. */
TEST_F(better, disconnect_listener)
{
	not_on_stock("it returns 0");
	pair_listen(&self->pair);
	err(EINVAL, rdma_disconnect(self->pair.listen));
}

/* A datagram id has nothing to wait for. */
TEST_F(better, disconnect_datagrams)
{
	struct ibv_qp_init_attr attr = qp_attr(IBV_QPT_UD);
	struct pair *p = &self->pair;

	not_on_stock("it waits for ever");
	p->ps = RDMA_PS_UDP;
	pair_listen(p);
	ok(rdma_create_id(NULL, &p->client, NULL, RDMA_PS_UDP));
	ok(rdma_resolve_addr(p->client, NULL, sa(&p->addr), RESOLVE_MS));
	ok(rdma_resolve_route(p->client, RESOLVE_MS));
	ok(rdma_create_qp(p->client, NULL, &attr));
	ASSERT_EQ(0, fcntl(p->client->channel->fd, F_SETFL, O_NONBLOCK));
	err(EAGAIN, rdma_connect(p->client, NULL));
	p->request = get_event(p->server_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	p->server = p->request->id;
	attr = qp_attr(IBV_QPT_UD);
	ok(rdma_create_qp(p->server, NULL, &attr));
	pair_accept(p);
	expect_event(p->client->channel, RDMA_CM_EVENT_ESTABLISHED);
	ASSERT_EQ(0, fcntl(p->client->channel->fd, F_SETFL, 0));
	ok(rdma_disconnect(p->client));
}

/* 0, whether the peer or oneself went first, and however often */
TEST_F(better, disconnect_idempotent)
{
	struct pair *p = &self->pair;

	pair_connect(p);
	ok(rdma_disconnect(p->client));
	ok(rdma_disconnect(p->client));
	expect_event(p->server_channel, RDMA_CM_EVENT_DISCONNECTED);
	ok(rdma_disconnect(p->server));
	ok(rdma_disconnect(p->server));
	expect_event(p->client_channel, RDMA_CM_EVENT_DISCONNECTED);
	ok(rdma_disconnect(p->client));
	ok(rdma_disconnect(p->server));
	/* and no second event */
	if (event_within(p->client_channel, NEVER_MS)) {
		expect_event(p->client_channel, RDMA_CM_EVENT_TIMEWAIT_EXIT);
	}
}

/*
 * Private data of rdma_addrinfo comes first, the caller's follows, and both
 * together have to fit. librdmacm copies them into a buffer without looking.
 */
static void with_connect_data(struct __test_metadata *_metadata, struct pair *p,
			      const void *data, size_t len)
{
	struct ibv_qp_init_attr attr = qp_attr(IBV_QPT_RC);
	struct rdma_addrinfo *res;

	res = my_addrinfo(p->family, 0, RDMA_PS_TCP, port_of(sa(&p->addr)));
	ASSERT_NE(NULL, res);
	free(res->ai_connect);
	res->ai_connect = malloc(len);
	ASSERT_NE(NULL, res->ai_connect);
	memcpy(res->ai_connect, data, len);
	res->ai_connect_len = len;
	ok(rdma_create_ep(&p->client, res, NULL, &attr));
	rdma_freeaddrinfo(res);
	ok(rdma_migrate_id(p->client, p->client_channel));
}

TEST_F(better, connect_data)
{
	static const char first[] = "0123456789012345678901234567890123456789";
	struct pair *p = &self->pair;
	struct ibv_qp_init_attr attr = qp_attr(IBV_QPT_RC);
	struct rdma_conn_param param = {
		.private_data = "abcdefghijklmnopqrstuvwxyz",
		.private_data_len = 17,
	};

	pair_listen(p);
	with_connect_data(_metadata, p, first, 40);
	err(EINVAL, rdma_connect(p->client, &param));
	expect_reason(RDMA_EP_REASON_DATA_TOO_LONG);
	EXPECT_FALSE(event_within(p->server_channel, NEVER_MS));
	param.private_data_len = 16;
	ok(rdma_connect(p->client, &param));
	p->request = get_event(p->server_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	p->server = p->request->id;
	ASSERT_EQ(56, p->request->param.conn.private_data_len);
	EXPECT_EQ(0, memcmp(p->request->param.conn.private_data, first, 40));
	EXPECT_EQ(0, memcmp((char *)p->request->param.conn.private_data + 40,
			    param.private_data, 16));
	ok(rdma_create_qp(p->server, NULL, &attr));
}

TEST_F(better, connect_data_far_too_long)
{
	struct rdma_conn_param param = { .private_data_len = 255 };
	struct pair *p = &self->pair;
	char big[1000] = "";

	not_on_stock("it writes past the end of a buffer");
	param.private_data = big;
	pair_listen(p);
	with_connect_data(_metadata, p, big, 1000);
	err(EINVAL, rdma_connect(p->client, &param));
	expect_reason(RDMA_EP_REASON_DATA_TOO_LONG);
	err(EINVAL, rdma_connect(p->client, NULL));
	EXPECT_FALSE(event_within(p->server_channel, NEVER_MS));
}

/*
 * A request that cannot get its QP: librdmacm loses the new id. Here it goes,
 * the client hears of it, and the listener works on.
 */
TEST_F(better, get_request_failure_frees)
{
	struct ibv_qp_init_attr bad = qp_attr(IBV_QPT_RC);
	struct rdma_cm_event *event;
	struct rdma_cm_id *request;
	struct pair *p = &self->pair;
	struct rdma_addrinfo *res;
	struct objects before;

	not_on_stock("it loses the id, and listens no more");
	bad.cap.max_send_wr = 1 << 30;
	pair_listen(p);
	ok(rdma_destroy_id(p->listen));
	res = my_addrinfo(variant->family, RAI_PASSIVE, RDMA_PS_TCP, 0);
	ASSERT_NE(NULL, res);
	ok(rdma_create_ep(&p->listen, res, NULL, &bad));
	rdma_freeaddrinfo(res);
	ok(rdma_listen(p->listen, 4));
	p->addr = my_addr(variant->family, src_port(p->listen));
	pair_resolve(p);
	before = count_objects();
	ok(rdma_connect(p->client, NULL));
	err(EINVAL, rdma_get_request(p->listen, &request));
	event = get_event(p->client_channel, RDMA_CM_EVENT_REJECTED);
	ok(rdma_ack_cm_event(event));
	expect_no_leak(&before);
	rdma_destroy_ep(p->listen);
	p->listen = NULL;
}

/*
 * Requests beyond the backlog are refused at once. rdma_ucm drops them, and
 * the client tries again for more than a minute.
 */
TEST_F(better, backlog_overflow)
{
	struct rdma_cm_id *client[4];
	struct pair *p = &self->pair;
	struct rdma_cm_event *event;
	int i, requests = 0;

	not_on_stock("it leaves the client waiting");
	pair_listen(p);
	ok(rdma_destroy_id(p->listen));
	ok(rdma_create_id(p->server_channel, &p->listen, NULL, RDMA_PS_TCP));
	p->addr = my_addr(variant->family, 0);
	ok(rdma_bind_addr(p->listen, sa(&p->addr)));
	ok(rdma_listen(p->listen, 2));
	p->addr = my_addr(variant->family, src_port(p->listen));
	for (i = 0; i < 4; i++) {
		pair_resolve(p);
		client[i] = p->client;
	}
	p->client = NULL;
	for (i = 0; i < 4; i++)
		ok(rdma_connect(client[i], NULL));
	for (i = 0; i < 2; i++) {
		event = get_event(p->client_channel, RDMA_CM_EVENT_REJECTED);
		EXPECT_EQ(3, event->status);	/* no resources */
		ok(rdma_ack_cm_event(event));
	}
	EXPECT_FALSE(event_within(p->client_channel, NEVER_MS));
	while (event_within(p->server_channel, 0)) {
		event = get_event(p->server_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
		p->server = event->id;
		ok(rdma_ack_cm_event(event));
		ok(rdma_destroy_id(p->server));
		requests++;
	}
	p->server = NULL;
	EXPECT_EQ(2, requests);
	for (i = 0; i < 4; i++) {
		rdma_destroy_qp(client[i]);
		ok(rdma_destroy_id(client[i]));
	}
}

/*
 * Devices that come and go
 */

static int extra_device(const char *command)
{
	char script[512];

	snprintf(script, sizeof(script),
		 "ip link add x0 type dummy 2>/dev/null; ip link set x0 up;"
		 "ip addr replace 10.99.0.1/24 dev x0; %s", command);
	return system(script);
}

/* A node that leads nowhere in place of the device's */
#define LEAD_NODE_NOWHERE						    \
	"u=$(ls /sys/class/infiniband/xrxe/device/infiniband_verbs 2>/dev/null ||" \
	" for d in /sys/class/infiniband_verbs/uverbs*; do"		    \
	" [ \"$(cat $d/ibdev)\" != xrxe ] || basename $d; done);"	    \
	"rm /dev/infiniband/$u && mknod /dev/infiniband/$u c 231 999"

/* A device that cannot be opened: librdmacm returns none at all. */
TEST_F(better, unusable_device_is_skipped)
{
	struct ibv_context **list;
	int n = 0, i;

	not_on_stock("it returns no device");
	if (variant->family != AF_INET)
		return;
	ASSERT_EQ(0, extra_device("rdma link add xrxe type rxe netdev x0"));
	ASSERT_EQ(0, system(LEAD_NODE_NOWHERE));
	list = rdma_get_devices(&n);
	ASSERT_NE(NULL, list);
	EXPECT_LE(1, n);
	for (i = 0; i < n; i++)
		EXPECT_STRNE("xrxe", ibv_get_device_name(list[i]->device));
	EXPECT_EQ(NULL, list[n]);
	rdma_free_devices(list);
	/* and the others work */
	pair_connect(&self->pair);
	/* The kernel would not remove a node that it did not make. */
	ASSERT_EQ(0, system("for f in /dev/infiniband/uverbs*; do"
			    " [ $(stat -c %T $f) != 3e7 ] || rm $f; done;"
			    "rdma link del xrxe; ip link del x0"));
}

static bool detached;

/* As if the driver did not wait for user space; soft-RoCE's does */
int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	__typeof__(&ibv_query_device) real = dlsym(RTLD_NEXT, "ibv_query_device");

	return detached ? EIO : real(context, attr);
}

static struct rdma_cm_id *_extra_id(struct __test_metadata *_metadata,
				    struct rdma_event_channel *channel)
{
	struct sockaddr_storage addr = parse("10.99.0.1", 0);
	long end = now_ms() + SOON_MS;
	struct rdma_cm_id *id;

	ASSERT_EQ(0, extra_device("rdma link add xrxe type rxe netdev x0"));
	ok(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	/* Its GIDs appear a little later. */
	while (rdma_bind_addr(id, sa(&addr))) {
		ASSERT_LT(now_ms(), end) {
			TH_LOG("errno %d", errno);
		}
		sleep_ms(50);
		ok(rdma_destroy_id(id));
		ok(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	}
	ASSERT_NE(NULL, id->verbs);
	EXPECT_STREQ("xrxe", ibv_get_device_name(id->verbs->device));
	return id;
}

#define extra_id(channel)	_extra_id(_metadata, channel)

static void _extra_id_goes(struct __test_metadata *_metadata,
			   struct rdma_event_channel *channel,
			   struct rdma_cm_id *id)
{
	struct rdma_cm_event *event;

	ASSERT_EQ(0, system("rdma link del xrxe & :"));
	event = get_event(channel, RDMA_CM_EVENT_DEVICE_REMOVAL);
	EXPECT_EQ(id, event->id);
	ok(rdma_ack_cm_event(event));
	if (id->qp)
		rdma_destroy_qp(id);
	ok(rdma_destroy_id(id));
}

#define extra_id_goes(channel, id)	_extra_id_goes(_metadata, channel, id)

static void _extra_device_is_gone(struct __test_metadata *_metadata)
{
	long end = now_ms() + SOON_MS;

	while (!access("/sys/class/infiniband/xrxe", F_OK)) {
		ASSERT_LT(now_ms(), end);
		sleep_ms(50);
	}
}

#define extra_device_is_gone()	_extra_device_is_gone(_metadata)

/*
 * librdmacm keeps a device open for the life of the process: "rdma link del"
 * does not return, and a new device of the same name cannot be used.
 */
TEST_F(better, removed_device_comes_back)
{
	struct ibv_qp_init_attr attr;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	int i;

	not_on_stock("the device is dead for ever");
	if (variant->family != AF_INET)
		return;
	channel = rdma_create_event_channel();
	ASSERT_NE(NULL, channel);
	for (i = 0; i < 2; i++) {
		id = extra_id(channel);
		attr = qp_attr(IBV_QPT_RC);
		ok(rdma_create_qp(id, NULL, &attr));
		extra_id_goes(channel, id);
		extra_device_is_gone();
	}
	rdma_destroy_event_channel(channel);
	ASSERT_EQ(0, system("ip link del x0"));
	/* The other device has not noticed. */
	pair_connect(&self->pair);
}

/* What a program has made by itself in id->verbs it may destroy after the id */
TEST_F(better, removed_device_with_own_objects)
{
	struct rdma_event_channel *channel;
	struct ibv_context *verbs;
	static char buf[4096];
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_mr *mr;

	not_on_stock("the device is open for ever");
	if (variant->family != AF_INET)
		return;
	channel = rdma_create_event_channel();
	ASSERT_NE(NULL, channel);
	id = extra_id(channel);
	verbs = id->verbs;
	pd = ibv_alloc_pd(verbs);
	ASSERT_NE(NULL, pd);
	mr = ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
	ASSERT_NE(NULL, mr);

	detached = true;
	extra_id_goes(channel, id);
	detached = false;
	EXPECT_EQ(0, ibv_dereg_mr(mr));
	EXPECT_EQ(0, ibv_dealloc_pd(pd));
	/* which soft-RoCE's removal waits for */
	EXPECT_EQ(0, ibv_close_device(verbs));
	extra_device_is_gone();
	rdma_destroy_event_channel(channel);
	ASSERT_EQ(0, system("ip link del x0"));
}

/*
 * fork
 */

static int in_child(int family)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct sockaddr_storage addr = my_addr(family, 0);
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	if (!channel)
		return 1;
	if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP))
		return 2;
	if (rdma_resolve_addr(id, NULL, sa(&addr), RESOLVE_MS))
		return 3;
	event = next_event(channel);
	if (!event || event->event != RDMA_CM_EVENT_ADDR_RESOLVED)
		return 4;
	rdma_ack_cm_event(event);
	if (rdma_destroy_id(id))
		return 5;
	rdma_destroy_event_channel(channel);
	return 0;
}

TEST_F(better, fork)
{
	struct pair *p = &self->pair;
	int status = -1;
	pid_t pid;

	pair_connect(p);
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		_exit(in_child(variant->family));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status) {
		TH_LOG("the child failed at step %d", WEXITSTATUS(status));
	}
	/* The parent's connection stands, and its ids have all their events. */
	EXPECT_FALSE(event_within(p->client_channel, NEVER_MS));
	send_message(p->client, p->server);
	ok(rdma_disconnect(p->client));
	expect_event(p->server_channel, RDMA_CM_EVENT_DISCONNECTED);
	ok(rdma_disconnect(p->server));
	expect_event(p->client_channel, RDMA_CM_EVENT_DISCONNECTED);
}

/*
 * Signals
 */

static void on_alarm(int sig)
{
	(void)sig;
}

/* SIGALRM after 0.3 s, again and again */
static void start_alarm_flags(int flags)
{
	struct sigaction action = { .sa_handler = on_alarm, .sa_flags = flags };
	struct itimerval timer = { { 0, 300000 }, { 0, 300000 } };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
}

/* Without SA_RESTART */
static void start_alarm(void)
{
	start_alarm_flags(0);
}

static void stop_alarm(void)
{
	setitimer(ITIMER_REAL, &(struct itimerval){}, NULL);
}

TEST_F(better, signal_get_event)
{
	struct pair *p = &self->pair;
	struct rdma_cm_event *event;

	pair_listen(p);
	start_alarm();
	err(EINTR, rdma_get_cm_event(p->client_channel, &event));
	stop_alarm();
	pair_connect(p);
}

TEST_F(better, signal_get_request)
{
	struct rdma_cm_id *request;
	struct rdma_addrinfo *res;
	struct pair *p = &self->pair;

	pair_listen(p);
	ok(rdma_destroy_id(p->listen));
	res = my_addrinfo(variant->family, RAI_PASSIVE, RDMA_PS_TCP, 0);
	ASSERT_NE(NULL, res);
	ok(rdma_create_ep(&p->listen, res, NULL, NULL));
	rdma_freeaddrinfo(res);
	ok(rdma_listen(p->listen, 4));
	start_alarm();
	err(EINTR, rdma_get_request(p->listen, &request));
	stop_alarm();

	/* It listens still. */
	p->addr = my_addr(variant->family, src_port(p->listen));
	pair_resolve(p);
	ok(rdma_connect(p->client, NULL));
	ok(rdma_get_request(p->listen, &request));
	rdma_destroy_ep(request);
	ok(rdma_ack_cm_event(get_event(p->client_channel,
				       RDMA_CM_EVENT_REJECTED)));
	rdma_destroy_ep(p->listen);
	p->listen = NULL;
}

/* The operation goes on, and its event is on the channel. */
TEST_F(better, signal_connect)
{
	struct ibv_qp_init_attr attr = qp_attr(IBV_QPT_RC);
	struct pair *p = &self->pair;

	pair_listen(p);
	p->client = client_ep(variant->family, port_of(sa(&p->addr)), NULL, &attr);
	start_alarm();
	err(EINTR, rdma_connect(p->client, NULL));
	stop_alarm();
	p->request = get_event(p->server_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	p->server = p->request->id;
	attr = qp_attr(IBV_QPT_RC);
	ok(rdma_create_qp(p->server, NULL, &attr));
	pair_accept(p);
	expect_event(p->client->channel, RDMA_CM_EVENT_ESTABLISHED);
	expect_event(p->server_channel, RDMA_CM_EVENT_ESTABLISHED);
	send_message(p->client, p->server);
	rdma_destroy_ep(p->client);
	p->client = NULL;
}

TEST_F(better, signal_resolve)
{
	struct sockaddr_storage dst = silent_addr(variant->family, 7471);
	struct rdma_cm_id *id;

	ASSERT_EQ(0, system("ip link set d0 arp on"));
	ok(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP));
	start_alarm();
	err(EINTR, rdma_resolve_addr(id, NULL, sa(&dst), 60000));
	stop_alarm();
	ok(rdma_destroy_id(id));
	ASSERT_EQ(0, system("ip link set d0 arp off"));
}

/* Resolving in rdma_create_ep() goes on where a signal came in between. */
TEST_F(better, signal_create_ep)
{
	struct sockaddr_storage dst = silent_addr(variant->family, 7471);
	struct rdma_addrinfo *res;
	struct rdma_cm_id *id;
	long begin;

	res = my_addrinfo(variant->family, 0, RDMA_PS_TCP, 7471);
	ASSERT_NE(NULL, res);
	memcpy(res->ai_dst_addr, &dst, res->ai_dst_len);
	ASSERT_EQ(0, system("ip link set d0 arp on"));
	start_alarm();
	err(EINTR, rdma_create_ep(&id, res, NULL, NULL));
	stop_alarm();
	start_alarm_flags(SA_RESTART);
	begin = now_ms();
	EXPECT_EQ(-1, rdma_create_ep(&id, res, NULL, NULL));
	EXPECT_NE(EINTR, errno);
	EXPECT_GT(8000, now_ms() - begin);
	stop_alarm();
	ASSERT_EQ(0, system("ip link set d0 arp off"));
	rdma_freeaddrinfo(res);
}

/* With SA_RESTART nobody notices. */
TEST_F(better, signal_restart)
{
	struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	struct itimerval timer = { { 0, 20000 }, { 0, 20000 } };
	struct ibv_qp_init_attr attr = qp_attr(IBV_QPT_RC), attr2 = attr;
	struct server server = {};
	struct rdma_cm_id *id;
	int i;

	server_start(&server, variant->family, NULL, &attr, 3);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	for (i = 0; i < 3; i++) {
		attr2 = qp_attr(IBV_QPT_RC);
		id = client_ep(variant->family, server.port, NULL, &attr2);
		ok(rdma_connect(id, NULL));
		rdma_destroy_ep(id);
	}
	stop_alarm();
	server_stop(&server);
}

/*
 * An fd that was opened with other credentials: rdma_ucm's write(2) protocol
 * has to refuse it.
 */
TEST(setuid_after_open)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct sockaddr_storage addr = my_addr(AF_INET, 7471);
	struct rdma_cm_id *id;

	ASSERT_NE(NULL, channel);
	ASSERT_EQ(0, setresuid(65534, 65534, 65534));
	if (on_stock()) {
		err(EACCES, rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
		return;
	}
	ok(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	ok(rdma_bind_addr(id, sa(&addr)));
	ok(rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

/*
 * What is kept for the next endpoint is not more with each endpoint: CQs and
 * their channels, and the endpoint's own channel.
 */
TEST_F(better, kept_objects_are_bounded)
{
	struct ibv_qp_init_attr attr;
	struct growth growth = {};
	struct objects kept = {};
	struct rdma_cm_id *id;
	int i;

	not_on_stock("it keeps nothing");
	unsetenv("RDMAEP_CACHE");
	for (i = 0; i < 12; i++) {
		attr = qp_attr(IBV_QPT_RC);
		id = client_ep(variant->family, 7777, NULL, &attr);
		ASSERT_NE(NULL, id->qp);
		EXPECT_EQ(id, id->send_cq->cq_context);
		EXPECT_EQ(id, id->recv_cq->cq_context);
		rdma_destroy_ep(id);
		if (i == 3) {
			growth = growth_now();
			kept = count_objects();
		}
	}
	expect_no_growth(&growth);
	expect_no_leak(&kept);
	/* The fixture's count is of the time before. */
	self->before = kept;
}

/*
 * Reasons
 */

TEST_F(better, reasons)
{
	struct sockaddr_storage addr = foreign_addr(variant->family, 7471);
	const char *(*text)(void);
	struct rdma_cm_id *id;

	not_on_stock("errno is all it has");
	ok(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP));
	err(EADDRNOTAVAIL, rdma_bind_addr(id, sa(&addr)));
	expect_reason(RDMA_EP_REASON_ADDR_NOT_LOCAL);
	/* A call that succeeds leaves it alone. */
	addr = my_addr(variant->family, 7471);
	ok(rdma_bind_addr(id, sa(&addr)));
	expect_reason(RDMA_EP_REASON_ADDR_NOT_LOCAL);
	err(EINVAL, rdma_bind_addr(id, sa(&addr)));
	expect_reason(RDMA_EP_REASON_STATE);
	text = own_function(const char *(*)(void), "rdmaep_strerror");
	ASSERT_NE(NULL, text);
	EXPECT_NE(0, strlen(text()));
	/* One of which errno says all is not explained by what failed before. */
	err(EINVAL, rdma_leave_multicast(id, NULL));
	EXPECT_STREQ("", text());
	ok(rdma_destroy_id(id));
}

/* RDMAEP_DEBUG=1 has them on stderr. */
TEST(reasons_debug)
{
	struct sockaddr_storage addr = foreign_addr(AF_INET, 7471);
	char out[1024] = "";
	int status, fds[2];
	ssize_t len;
	pid_t pid;

	not_on_stock("it has no such thing");
	ASSERT_EQ(0, pipe(fds));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		struct rdma_cm_id *id;

		setenv("RDMAEP_DEBUG", "1", 1);
		dup2(fds[1], STDERR_FILENO);
		if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP))
			_exit(1);
		_exit(rdma_bind_addr(id, sa(&addr)) != -1);
	}
	close(fds[1]);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	len = read(fds[0], out, sizeof(out) - 1);
	EXPECT_LT(0, len);
	EXPECT_EQ(0, strncmp(out, "rdmaep: ", 8)) {
		TH_LOG("stderr: %s", out);
	}
	close(fds[0]);
}

/* Each thread has its own. */
static void *other_thread(void *arg)
{
	unsigned int (*reason)(void);

	(void)arg;
	reason = own_function(unsigned int (*)(void), "rdmaep_last_reason");
	return (void *)(uintptr_t)reason();
}

TEST(reasons_per_thread)
{
	struct sockaddr_storage addr = foreign_addr(AF_INET, 7471);
	struct rdma_cm_id *id;
	pthread_t thread;
	void *code;

	not_on_stock("it has no such thing");
	ok(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP));
	err(EADDRNOTAVAIL, rdma_bind_addr(id, sa(&addr)));
	ASSERT_EQ(0, pthread_create(&thread, NULL, other_thread, NULL));
	ASSERT_EQ(0, pthread_join(thread, &code));
	EXPECT_EQ(RDMA_EP_REASON_NONE, (uintptr_t)code);
	expect_reason(RDMA_EP_REASON_ADDR_NOT_LOCAL);
	ok(rdma_destroy_id(id));
}

TEST_HARNESS_MAIN
