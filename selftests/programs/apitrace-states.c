// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Every call in every state of an id: what it answers, and what events follow.
 */
#include <sys/mman.h>

#include "apitrace.h"

/* Long enough for what comes, also on a slow machine. */
#define QUIET_MS	100

struct state {
	const char *name;
	struct rdma_cm_id *(*reach)(struct world *w);
};

struct call {
	const char *name;
	int (*call)(struct rdma_cm_id *id, struct world *w);
};

/*
 * States
 */

static struct rdma_cm_id *reach_idle(struct world *w)
{
	return w->client;
}

static struct rdma_cm_id *reach_bound(struct world *w)
{
	struct sockaddr_in addr = my_address(CLIENT_PORT);

	NEED(!rdma_bind_addr(w->client, (struct sockaddr *)&addr));
	return w->client;
}

static struct rdma_cm_id *reach_wildcard(struct world *w)
{
	struct sockaddr_in addr = address("0.0.0.0", CLIENT_PORT);

	NEED(!rdma_bind_addr(w->client, (struct sockaddr *)&addr));
	return w->client;
}

static struct rdma_cm_id *reach_listening(struct world *w)
{
	world_listen(w);
	return w->listen;
}

static struct rdma_cm_id *reach_addr_resolved(struct world *w)
{
	world_resolve_addr(w);
	return w->client;
}

static struct rdma_cm_id *reach_resolved(struct world *w)
{
	world_resolve(w);
	return w->client;
}

static struct rdma_cm_id *reach_connecting(struct world *w)
{
	world_listen(w);
	world_resolve(w);
	world_request(w, NULL);
	return w->client;
}

static struct rdma_cm_id *reach_requested(struct world *w)
{
	reach_connecting(w);
	rdma_ack_cm_event(w->request);
	w->request = NULL;
	return w->server;
}

static struct rdma_cm_id *reach_connected(struct world *w)
{
	world_connect(w);
	return w->client;
}

static struct rdma_cm_id *reach_served(struct world *w)
{
	world_connect(w);
	return w->server;
}

static struct rdma_cm_id *reach_disconnected(struct world *w)
{
	world_connect(w);
	if (w->ps != RDMA_PS_TCP)
		return w->client;
	NEED(!rdma_disconnect(w->client));
	expect(w->server_channel, RDMA_CM_EVENT_DISCONNECTED);
	NEED(!rdma_disconnect(w->server));
	expect(w->client_channel, RDMA_CM_EVENT_DISCONNECTED);
	return w->client;
}

static struct rdma_cm_id *reach_left(struct world *w)
{
	world_connect(w);
	if (w->ps != RDMA_PS_TCP)
		return w->server;
	NEED(!rdma_disconnect(w->client));
	expect(w->server_channel, RDMA_CM_EVENT_DISCONNECTED);
	return w->server;
}

static struct rdma_cm_id *reach_refused(struct world *w)
{
	struct rdma_cm_event *event;

	reach_requested(w);
	NEED(!rdma_reject(w->server, NULL, 0));
	event = take_event(w->client_channel, SOON_MS);
	NEED(event);
	say_event("refused", event);
	rdma_ack_cm_event(event);
	return w->client;
}

static struct rdma_cm_id *reach_rejected(struct world *w)
{
	reach_refused(w);
	return w->server;
}

static const struct state states[] = {
	{ "idle", reach_idle },
	{ "bound", reach_bound },
	{ "wildcard", reach_wildcard },
	{ "listening", reach_listening },
	{ "addr resolved", reach_addr_resolved },
	{ "resolved", reach_resolved },
	{ "connecting", reach_connecting },
	{ "requested", reach_requested },
	{ "connected", reach_connected },
	{ "served", reach_served },
	{ "disconnected", reach_disconnected },
	{ "left", reach_left },
	{ "refused", reach_refused },
	{ "rejected", reach_rejected },
};

/*
 * Calls
 */

static int do_bind(struct rdma_cm_id *id, struct world *w)
{
	struct sockaddr_in addr = my_address(CLIENT_PORT + 1);

	return rdma_bind_addr(id, (struct sockaddr *)&addr);
}

static int do_resolve_addr(struct rdma_cm_id *id, struct world *w)
{
	struct sockaddr_in addr = my_address(SERVER_PORT);

	return rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr, RESOLVE_MS);
}

static int do_resolve_addr_far(struct rdma_cm_id *id, struct world *w)
{
	struct sockaddr_in addr = address("192.0.2.9", SERVER_PORT);

	return rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr, RESOLVE_MS);
}

static int do_resolve_addr_from(struct rdma_cm_id *id, struct world *w)
{
	struct sockaddr_in src = address("192.0.2.9", 0), dst = my_address(SERVER_PORT);

	return rdma_resolve_addr(id, (struct sockaddr *)&src, (struct sockaddr *)&dst, RESOLVE_MS);
}

static int do_resolve_route(struct rdma_cm_id *id, struct world *w)
{
	return rdma_resolve_route(id, RESOLVE_MS);
}

static int do_create_qp(struct rdma_cm_id *id, struct world *w)
{
	struct ibv_qp_init_attr attr = queue_attr(w->ps);

	return rdma_create_qp(id, NULL, &attr);
}

static int do_create_qp_type(struct rdma_cm_id *id, struct world *w)
{
	struct ibv_qp_init_attr attr = queue_attr(w->ps);

	attr.qp_type = attr.qp_type == IBV_QPT_RC ? IBV_QPT_UD : IBV_QPT_RC;
	return rdma_create_qp(id, NULL, &attr);
}

static int do_create_srq(struct rdma_cm_id *id, struct world *w)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	int ret = rdma_create_srq(id, NULL, &attr);

	if (!ret && id->srq)
		rdma_destroy_srq(id);
	return ret;
}

static int do_listen(struct rdma_cm_id *id, struct world *w)
{
	return rdma_listen(id, 4);
}

static int do_connect_null(struct rdma_cm_id *id, struct world *w)
{
	return rdma_connect(id, NULL);
}

static int do_connect(struct rdma_cm_id *id, struct world *w)
{
	struct rdma_conn_param param = { .retry_count = 3 };

	return rdma_connect(id, &param);
}

static int do_accept_null(struct rdma_cm_id *id, struct world *w)
{
	return rdma_accept(id, NULL);
}

static int do_accept(struct rdma_cm_id *id, struct world *w)
{
	struct rdma_conn_param param = { .retry_count = 3 };

	return rdma_accept(id, &param);
}

static int do_reject(struct rdma_cm_id *id, struct world *w)
{
	return rdma_reject(id, "no", 2);
}

static int do_disconnect(struct rdma_cm_id *id, struct world *w)
{
	return rdma_disconnect(id);
}

static int do_notify(struct rdma_cm_id *id, struct world *w)
{
	return rdma_notify(id, IBV_EVENT_COMM_EST);
}

static int do_notify_other(struct rdma_cm_id *id, struct world *w)
{
	return rdma_notify(id, IBV_EVENT_QP_FATAL);
}

static int do_establish(struct rdma_cm_id *id, struct world *w)
{
	return rdma_establish(id);
}

static int do_join(struct rdma_cm_id *id, struct world *w)
{
	struct sockaddr_in addr = address("239.77.0.9", 0);

	return rdma_join_multicast(id, (struct sockaddr *)&addr, w);
}

static int do_leave(struct rdma_cm_id *id, struct world *w)
{
	struct sockaddr_in addr = address("239.77.0.9", 0);

	return rdma_leave_multicast(id, (struct sockaddr *)&addr);
}

static int do_migrate(struct rdma_cm_id *id, struct world *w)
{
	int ret = rdma_migrate_id(id, id->channel == w->client_channel ? w->server_channel :
									 w->client_channel);

	say_fields("migrated", id);
	return ret;
}

static int set_byte(struct rdma_cm_id *id, int name, uint8_t value)
{
	return rdma_set_option(id, RDMA_OPTION_ID, name, &value, sizeof(value));
}

static int set_int(struct rdma_cm_id *id, int name, int value)
{
	return rdma_set_option(id, RDMA_OPTION_ID, name, &value, sizeof(value));
}

static int do_tos(struct rdma_cm_id *id, struct world *w)
{
	return set_byte(id, RDMA_OPTION_ID_TOS, 8);
}

static int do_reuseaddr(struct rdma_cm_id *id, struct world *w)
{
	return set_int(id, RDMA_OPTION_ID_REUSEADDR, 1);
}

static int do_reuseaddr_off(struct rdma_cm_id *id, struct world *w)
{
	return set_int(id, RDMA_OPTION_ID_REUSEADDR, 0);
}

static int do_afonly(struct rdma_cm_id *id, struct world *w)
{
	return set_int(id, RDMA_OPTION_ID_AFONLY, 1);
}

static int do_ack_timeout(struct rdma_cm_id *id, struct world *w)
{
	return set_byte(id, RDMA_OPTION_ID_ACK_TIMEOUT, 14);
}

static int do_ib_path(struct rdma_cm_id *id, struct world *w)
{
	char data[80] = "";

	return rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, data, sizeof(data));
}

static int do_get_request(struct rdma_cm_id *id, struct world *w)
{
	struct rdma_cm_id *child = NULL;

	return rdma_get_request(id, &child);
}

static int init_attr(struct rdma_cm_id *id, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int ret, mask = 0;

	ret = rdma_init_qp_attr(id, &attr, &mask);
	if (ret)
		return ret;
	say("mask %x state %d mtu %d access %x pkey %u port %u", mask, attr.qp_state,
	    attr.path_mtu, attr.qp_access_flags, attr.pkey_index, attr.port_num);
	say("timeout %u retry %u rnr %u timer %u rd %u dest %u", attr.timeout, attr.retry_cnt,
	    attr.rnr_retry, attr.min_rnr_timer, attr.max_rd_atomic, attr.max_dest_rd_atomic);
	say("qkey %x dest_qp_num %s global %u dlid %u sl %u hop %u class %u index %u rate %u",
	    attr.qkey, attr.dest_qp_num ? "some" : "0", attr.ah_attr.is_global,
	    attr.ah_attr.dlid, attr.ah_attr.sl, attr.ah_attr.grh.hop_limit,
	    attr.ah_attr.grh.traffic_class, attr.ah_attr.grh.sgid_index,
	    attr.ah_attr.static_rate);
	return ret;
}

static int do_init_attr(struct rdma_cm_id *id, struct world *w)
{
	return init_attr(id, IBV_QPS_INIT);
}

static int do_rtr_attr(struct rdma_cm_id *id, struct world *w)
{
	return init_attr(id, IBV_QPS_RTR);
}

static int do_rts_attr(struct rdma_cm_id *id, struct world *w)
{
	return init_attr(id, IBV_QPS_RTS);
}

static int do_ece(struct rdma_cm_id *id, struct world *w)
{
	struct ibv_ece ece = { .vendor_id = 1, .options = 2 };

	return rdma_set_local_ece(id, &ece);
}

static int do_remote_ece(struct rdma_cm_id *id, struct world *w)
{
	struct ibv_ece ece = { .vendor_id = 1, .options = 2, .comp_mask = 3 };
	int ret = rdma_get_remote_ece(id, &ece);

	say("ece %u %u %u", ece.vendor_id, ece.options, ece.comp_mask);
	return ret;
}

/* Has no call but looks at the id. */
static int do_nothing(struct rdma_cm_id *id, struct world *w)
{
	say_fields("id", id);
	say("ports %d %d", rdma_get_src_port(id) != 0, rdma_get_dst_port(id) != 0);
	say("addresses %d %d", rdma_get_local_addr(id) == &id->route.addr.src_addr,
	    rdma_get_peer_addr(id) == &id->route.addr.dst_addr);
	return 0;
}

static const struct call calls[] = {
	{ "nothing", do_nothing },
	{ "bind", do_bind },
	{ "resolve_addr", do_resolve_addr },
	{ "resolve_addr far", do_resolve_addr_far },
	{ "resolve_addr from elsewhere", do_resolve_addr_from },
	{ "resolve_route", do_resolve_route },
	{ "create_qp", do_create_qp },
	{ "create_qp of another type", do_create_qp_type },
	{ "create_srq", do_create_srq },
	{ "listen", do_listen },
	{ "connect NULL", do_connect_null },
	{ "connect", do_connect },
	{ "accept NULL", do_accept_null },
	{ "accept", do_accept },
	{ "reject", do_reject },
	{ "disconnect", do_disconnect },
	{ "notify", do_notify },
	{ "notify QP_FATAL", do_notify_other },
	{ "establish", do_establish },
	{ "join", do_join },
	{ "leave", do_leave },
	{ "migrate", do_migrate },
	{ "TOS", do_tos },
	{ "REUSEADDR", do_reuseaddr },
	{ "REUSEADDR off", do_reuseaddr_off },
	{ "AFONLY", do_afonly },
	{ "ACK_TIMEOUT", do_ack_timeout },
	{ "IB_PATH", do_ib_path },
	{ "get_request", do_get_request },
	{ "INIT", do_init_attr },
	{ "RTR", do_rtr_attr },
	{ "RTS", do_rts_attr },
	{ "set ECE", do_ece },
	{ "get ECE", do_remote_ece },
};

/**
 * struct row - all calls in one state
 * @ps: port space
 * @bare: no queue pairs
 * @state: the state
 * @at: the call that is tried, in memory that outlives a crash
 */
struct row {
	enum rdma_port_space ps;
	bool bare;
	const struct state *state;
	size_t *at;
};

#define NUM_CALLS	(sizeof(calls) / sizeof(calls[0]))

/* Until nothing has come for a while. Nothing is taken before: the order on one channel counts. */
static void quiet(struct world *w)
{
	struct pollfd pfd[2] = { { .fd = w->client_channel->fd, .events = POLLIN },
				 { .fd = w->server_channel->fd, .events = POLLIN } };

	if (poll(pfd, 2, QUIET_MS) > 0)
		usleep(QUIET_MS * 1000);
}

/* What has come of a call. */
static void say_effects(struct world *w, struct rdma_cm_id *id, const struct call *call, int ret)
{
	say("%s: qp %s verbs %d port %u", call->name, id->qp ? "some" : "NULL", !!id->verbs,
	    id->port_num);
	if (!ret)
		quiet(w);
	say_events(call->name, w->client_channel, 0);
	say_events(call->name, w->server_channel, 0);
}

/* Calls that fail leave the id as it was: the next one is tried on the same. */
static void run_row(const void *arg)
{
	const struct row *row = arg;
	const struct call *call;
	struct rdma_cm_id *id;
	int ret;

	while (*row->at < NUM_CALLS) {
		struct world w = { .bare = row->bare };

		expect_end();
		world_open(&w, row->ps);
		id = row->state->reach(&w);
		do {
			call = &calls[*row->at];
			errno = 0;
			ret = call->call(id, &w);
			say_result(call->name, ret);
			say_effects(&w, id, call, ret);
			if (call->call == do_join)
				do_leave(id, &w);
		} while (ret && ++*row->at < NUM_CALLS);
		world_close(&w);
		if (!ret)
			++*row->at;
	}
}

static void trace_rows(enum rdma_port_space ps, bool bare, const char *name, size_t *at)
{
	struct row row = { .ps = ps, .bare = bare, .at = at };
	size_t i;

	for (i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		row.state = &states[i];
		*at = 0;
		/* What a crash or a hang ends is the call; the others have their turn. */
		while (!scenario(run_row, &row, "%s %s", name, row.state->name)) {
			say("that was %s", calls[*at].name);
			++*at;
		}
	}
}

void trace_states(void)
{
	size_t *at = mmap(NULL, sizeof(*at), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			  -1, 0);

	if (at == MAP_FAILED)
		exit(2);
	trace_rows(RDMA_PS_TCP, false, "TCP", at);
	trace_rows(RDMA_PS_TCP, true, "TCP, no QP,", at);
	trace_rows(RDMA_PS_UDP, false, "UDP", at);
}
