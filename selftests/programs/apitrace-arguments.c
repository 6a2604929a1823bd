// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Arguments at and beyond their limits: private data of all lengths, port
 * spaces and QP types that do and do not go together, options, addresses,
 * queues of the caller's and of the library's.
 */
#include <fcntl.h>

#include "apitrace.h"

/*
 * Private data
 */

static const uint8_t lengths[] = { 0, 1, 36, 55, 56, 57, 92, 93, 135, 136, 137, 148, 149, 179, 180,
				   181, 196, 197, 224, 225, 255 };

struct data_kind {
	enum rdma_port_space ps;
	int step;	/* 0 connect, 1 accept, 2 reject */
	uint8_t len;
};

static void run_data(const void *arg)
{
	const struct data_kind *kind = arg;
	uint8_t data[256];
	struct rdma_conn_param param = { .private_data = data, .private_data_len = kind->len };
	struct world w = { 0 };
	int ret;

	memset(data, 0x5a, sizeof(data));
	world_open(&w, kind->ps);
	world_listen(&w);
	world_resolve(&w);
	if (!kind->step) {
		errno = 0;
		ret = rdma_connect(w.client, &param);
		say_result("connect", ret);
		say_events("server", w.server_channel, ret ? 0 : 300);
	} else {
		world_request(&w, NULL);
		errno = 0;
		if (kind->step == 1)
			ret = rdma_accept(w.server, &param);
		else
			ret = rdma_reject(w.server, data, kind->len);
		say_result(kind->step == 1 ? "accept" : "reject", ret);
		say_events("client", w.client_channel, ret ? 0 : 300);
	}
	/* Ids of requests that were not answered go with the process. */
}

static void trace_data(void)
{
	static const enum rdma_port_space spaces[] = { RDMA_PS_TCP, RDMA_PS_UDP };
	static const char * const steps[] = { "connect", "accept", "reject" };
	struct data_kind kind;
	size_t i, j;

	for (i = 0; i < 2; i++) {
		kind.ps = spaces[i];
		for (kind.step = 0; kind.step < 3; kind.step++) {
			for (j = 0; j < sizeof(lengths); j++) {
				kind.len = lengths[j];
				scenario(run_data, &kind, "data %x %s %u", kind.ps,
					 steps[kind.step], kind.len);
			}
		}
	}
}

/*
 * Endpoints
 */

static const enum rdma_port_space spaces[] = { 0, RDMA_PS_IPOIB, RDMA_PS_TCP, RDMA_PS_UDP,
					       RDMA_PS_IB };
static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_SEND,
					  IBV_QPT_XRC_RECV };
static const int flags[] = { 0, RAI_PASSIVE, RAI_NOROUTE, RAI_PASSIVE | RAI_NOROUTE };

static void try_ep(struct rdma_addrinfo *info, struct ibv_qp_init_attr *attr, const char *what)
{
	struct rdma_cm_id *id = NULL;
	int ret;

	errno = 0;
	ret = rdma_create_ep(&id, info, NULL, attr);
	say_result(what, ret);
	if (ret)
		return;
	forget_names();
	name_it(id->channel, "its channel");
	say_fields(what, id);
	say_result("listen", rdma_listen(id, 2));
	rdma_destroy_ep(id);
}

/* What an info could say that nobody checks before rdma_create_ep(). */
static void run_create_ep(const void *arg)
{
	const int *at = arg;
	struct sockaddr_in addr = my_address(SERVER_PORT);
	struct rdma_addrinfo info = {
		.ai_flags = flags[at[0]], .ai_family = AF_INET,
		.ai_port_space = spaces[at[1]], .ai_qp_type = types[at[2]],
	};
	struct ibv_qp_init_attr attr = queue_attr(RDMA_PS_TCP);

	if (info.ai_flags & RAI_PASSIVE) {
		info.ai_src_addr = (struct sockaddr *)&addr;
		info.ai_src_len = sizeof(addr);
	} else {
		info.ai_dst_addr = (struct sockaddr *)&addr;
		info.ai_dst_len = sizeof(addr);
	}
	try_ep(&info, NULL, "without attributes");
	attr.qp_type = types[at[2]];
	try_ep(&info, &attr, "with attributes");
	attr = queue_attr(RDMA_PS_TCP);
	attr.qp_type = IBV_QPT_UC;
	try_ep(&info, &attr, "with UC");
}

static void trace_create_ep(void)
{
	int at[3];

	for (at[0] = 0; at[0] < 4; at[0]++)
		for (at[1] = 0; at[1] < 5; at[1]++)
			for (at[2] = 0; at[2] < 5; at[2]++)
				scenario(run_create_ep, at, "create_ep flags %x ps %x type %d",
					 flags[at[0]], spaces[at[1]], types[at[2]]);
}

/* An info without addresses, or with odd ones. */
static void run_odd_infos(const void *arg)
{
	struct sockaddr_in addr = my_address(SERVER_PORT), any = address("0.0.0.0", 0);
	struct rdma_addrinfo info = { .ai_family = AF_INET, .ai_port_space = RDMA_PS_TCP,
				      .ai_qp_type = IBV_QPT_RC };
	struct rdma_addrinfo passive = info;

	passive.ai_flags = RAI_PASSIVE;
	try_ep(&passive, NULL, "passive, nowhere");
	passive.ai_src_addr = (struct sockaddr *)&any;
	passive.ai_src_len = sizeof(any);
	try_ep(&passive, NULL, "passive, anywhere");
	passive.ai_src_len = 0;
	try_ep(&passive, NULL, "passive, no length");
	info.ai_dst_addr = (struct sockaddr *)&addr;
	info.ai_dst_len = sizeof(addr);
	info.ai_src_addr = (struct sockaddr *)&any;
	info.ai_src_len = sizeof(any);
	try_ep(&info, NULL, "active, from anywhere");
	addr.sin_family = AF_UNIX;
	try_ep(&info, NULL, "active, a file");
	addr = address("127.0.0.1", SERVER_PORT);
	info.ai_src_addr = NULL;
	info.ai_src_len = 0;
	try_ep(&info, NULL, "active, loopback");
	addr = address("0.0.0.0", SERVER_PORT);
	try_ep(&info, NULL, "active, to anywhere");
	addr = address("255.255.255.255", SERVER_PORT);
	try_ep(&info, NULL, "active, to everybody");
	addr = address("239.77.0.1", SERVER_PORT);
	try_ep(&info, NULL, "active, to a group");
}

static void run_create_id(const void *arg)
{
	static const int odd[] = { 0, 1, RDMA_PS_IPOIB, RDMA_PS_TCP, RDMA_PS_UDP, RDMA_PS_IB,
				   0x10000, -1 };
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id;
	size_t i;
	int sync;

	name_it(channel, "channel");
	for (i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		for (sync = 0; sync < 2; sync++) {
			id = NULL;
			errno = 0;
			say_result(sync ? "synchronous" : "asynchronous",
				   rdma_create_id(sync ? NULL : channel, &id, NULL, odd[i]));
			if (!id)
				continue;
			if (sync)
				name_it(id->channel, "its channel");
			say_fields("created", id);
			RESULT(rdma_listen(id, 0));
			say_fields("listening", id);
			RESULT(rdma_destroy_id(id));
		}
	}
	say("channel %d %d", !!(fcntl(channel->fd, F_GETFD) & FD_CLOEXEC),
	    fcntl(channel->fd, F_GETFL) & O_NONBLOCK);
	rdma_destroy_event_channel(channel);
}

/*
 * Options
 */

static void run_options(const void *arg)
{
	static const size_t sizes[] = { 0, 1, 2, 4, 8 };
	struct rdma_event_channel *channel = rdma_create_event_channel();
	char value[16] = "", text[32];
	int level, name;
	struct rdma_cm_id *id;
	size_t i;

	for (level = 0; level < 3; level++) {
		for (name = 0; name < 6; name++) {
			for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
				NEED(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
				say("level %d name %d size %zu", level, name, sizes[i]);
				RESULT(rdma_set_option(id, level, name, value, sizes[i]));
				rdma_destroy_id(id);
			}
		}
	}
	NEED(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	for (i = 0; i < 256; i += 15) {
		value[0] = i;
		snprintf(text, sizeof(text), "timeout %zu", i);
		errno = 0;
		say_result(text, rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT,
						 value, 1));
		RESULT(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, value, 1));
	}
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
}

/*
 * Addresses
 */

static void run_bind(const void *arg)
{
	static const char * const ips[] = { "10.77.0.1", "0.0.0.0", "127.0.0.1", "192.0.2.9",
					    "255.255.255.255", "239.77.0.1", "10.77.0.2",
					    "10.77.0.255" };
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct sockaddr_storage other;
	struct sockaddr_in addr;
	struct rdma_cm_id *id;
	size_t i;
	int ps;

	name_it(channel, "channel");
	for (i = 0; i < sizeof(ips) / sizeof(ips[0]); i++) {
		for (ps = 0; ps < 2; ps++) {
			NEED(!rdma_create_id(channel, &id, NULL, ps ? RDMA_PS_UDP : RDMA_PS_TCP));
			addr = address(ips[i], CLIENT_PORT);
			say("%s", ips[i]);
			RESULT(rdma_bind_addr(id, (struct sockaddr *)&addr));
			say_fields("bound", id);
			RESULT(rdma_listen(id, -1));
			rdma_destroy_id(id);
		}
	}
	for (i = 0; i < 50; i++) {
		if (i == AF_INET || i == AF_INET6)
			continue;
		memset(&other, 0, sizeof(other));
		other.ss_family = i;
		NEED(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
		say("family %zu", i);
		RESULT(rdma_bind_addr(id, (struct sockaddr *)&other));
		RESULT(rdma_resolve_addr(id, NULL, (struct sockaddr *)&other, 100));
		rdma_destroy_id(id);
	}
	rdma_destroy_event_channel(channel);
}

/*
 * Queues
 */

static void say_queues(const char *what, struct rdma_cm_id *id, const struct ibv_qp_init_attr *attr)
{
	say_fields(what, id);
	/* With librdmacm a failure leaves CQs in @attr that are gone. */
	if (!id->qp)
		return;
	say("%s attr send_cq %s recv_cq %s srq %s context %s type %d wr %d %d sge %d %d inline %d",
	    what, name_of(attr->send_cq), name_of(attr->recv_cq), name_of(attr->srq),
	    name_of(attr->qp_context), attr->qp_type, attr->cap.max_send_wr, attr->cap.max_recv_wr,
	    attr->cap.max_send_sge, attr->cap.max_recv_sge, attr->cap.max_inline_data);
	say("%s qp context %s send_cq %d recv_cq %d srq %s pd %s type %d state %d", what,
	    name_of(id->qp->qp_context), id->qp->send_cq == id->send_cq,
	    id->qp->recv_cq == id->recv_cq, name_of(id->qp->srq), name_of(id->qp->pd),
	    id->qp->qp_type, id->qp->state);
	if (id->send_cq)
		say("%s cq context %s %s cqe %d %d", what, name_of(id->send_cq->cq_context),
		    name_of(id->recv_cq ? id->recv_cq->cq_context : NULL), id->send_cq->cqe,
		    id->recv_cq ? id->recv_cq->cqe : -1);
}

static void try_queues(struct world *w, const char *what, struct ibv_pd *pd,
		       struct ibv_qp_init_attr attr)
{
	char text[64];
	int ret;

	errno = 0;
	ret = rdma_create_qp(w->client, pd, &attr);
	say_result(what, ret);
	say_queues(what, w->client, &attr);
	if (!ret)
		rdma_destroy_qp(w->client);
	snprintf(text, sizeof(text), "%s, destroyed:", what);
	say_fields(text, w->client);
}

static void run_queues(const void *arg)
{
	const struct world *kind = arg;
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_qp_init_attr attr = queue_attr(kind->ps), odd;
	struct world w = { .bare = true };
	struct ibv_cq *cq, *cq2;
	struct ibv_pd *pd;

	world_open(&w, kind->ps);
	world_resolve(&w);
	NEED((pd = ibv_alloc_pd(w.client->verbs)));
	NEED((cq = ibv_create_cq(w.client->verbs, 8, NULL, NULL, 0)));
	NEED((cq2 = ibv_create_cq(w.client->verbs, 8, NULL, NULL, 0)));
	name_it(pd, "own pd");
	name_it(cq, "own cq");
	name_it(cq2, "own cq 2");
	try_queues(&w, "default", NULL, attr);
	try_queues(&w, "pd", pd, attr);
	odd = attr;
	odd.send_cq = cq;
	try_queues(&w, "send_cq", pd, odd);
	odd.recv_cq = cq2;
	try_queues(&w, "both cqs", pd, odd);
	odd.send_cq = NULL;
	try_queues(&w, "recv_cq", pd, odd);
	odd = attr;
	odd.qp_context = pd;
	try_queues(&w, "context", pd, odd);
	/* without sends, or receives, librdmacm crashes */
	odd = attr;
	odd.cap.max_recv_wr = 1 << 30;
	try_queues(&w, "too many", NULL, odd);
	odd = attr;
	odd.qp_type = IBV_QPT_UC;
	try_queues(&w, "UC", NULL, odd);
	odd.qp_type = 0;
	try_queues(&w, "no type", NULL, odd);
	odd.qp_type = IBV_QPT_RAW_PACKET;
	try_queues(&w, "raw", NULL, odd);

	say("--- srq");
	RESULT(rdma_create_srq(w.client, NULL, &srq_attr));
	name_it(w.client->srq, "srq");
	say_fields("srq", w.client);
	try_queues(&w, "with id's srq", NULL, attr);
	rdma_destroy_srq(w.client);
	say_fields("srq gone", w.client);
	RESULT(rdma_create_srq(w.client, pd, &srq_attr));
	name_it(w.client->srq, "srq on own pd");
	say_fields("srq on own pd", w.client);
	try_queues(&w, "with id's srq, default pd", NULL, attr);
	try_queues(&w, "with id's srq, own pd", pd, attr);
	rdma_destroy_srq(w.client);

	say("--- twice");
	RESULT(rdma_create_qp(w.client, NULL, &attr));
	RESULT(rdma_create_qp(w.client, NULL, &attr));
	rdma_destroy_qp(w.client);
	say_result("destroy cq", -ibv_destroy_cq(cq));
	say_result("destroy cq", -ibv_destroy_cq(cq2));
	say_result("dealloc pd", -ibv_dealloc_pd(pd));
	world_close(&w);
}

static void run_devices(const void *arg)
{
	struct ibv_context **list;
	int n = -1;

	list = rdma_get_devices(&n);
	say("devices %d %s", n, list ? ibv_get_device_name(list[0]->device) : "NULL");
	say("last %s", list && !list[n] ? "NULL" : "some");
	rdma_free_devices(list);
}

void trace_devices(void)
{
	scenario(run_devices, NULL, "devices");
}

static void run_strings(const void *arg)
{
	int i;

	for (i = -1; i <= RDMA_CM_EVENT_TIMEWAIT_EXIT; i++)
		say("%d %s", i, rdma_event_str(i));
	RESULT(rdma_ack_cm_event(NULL));
	RESULT(rdma_get_cm_event(NULL, NULL));
}

void trace_arguments(void)
{
	static const struct world tcp = { .ps = RDMA_PS_TCP }, udp = { .ps = RDMA_PS_UDP };

	trace_data();
	trace_create_ep();
	scenario(run_odd_infos, NULL, "odd infos");
	scenario(run_create_id, NULL, "create_id");
	scenario(run_options, NULL, "options");
	scenario(run_bind, NULL, "bind");
	scenario(run_queues, &tcp, "queues TCP");
	scenario(run_queues, &udp, "queues UDP");
	scenario(run_strings, NULL, "strings");
}
