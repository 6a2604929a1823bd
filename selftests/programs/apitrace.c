// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * apitrace [PART]...: says how the rdma_cma.h API answers
 *
 * It is linked with librdmacm like any program. What it says on librdmacm and
 * rdma_ucm and what it says on ours are compared by apitrace.sh, line by line.
 *
 * In its environment: APITRACE_ONLY, the one scenario to run; APITRACE_S, after
 * how many s one that does not end is taken to hang.
 */
#include <signal.h>
#include <stdarg.h>
#include <sys/wait.h>

#include "apitrace.h"

#define SCENARIO_S	30
#define NAMES		64

static char scenario_name[96];
static struct {
	const void *object;
	const char *name;
} names[NAMES];
static int num_names;

void say(const char *fmt, ...)
{
	va_list args;

	printf("%s: ", scenario_name);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
}

void say_result(const char *what, long ret)
{
	int err = errno;

	if (ret < 0)
		say("%s = %ld %s", what, ret, err > 0 ? strerrorname_np(err) : "errno?");
	else
		say("%s = %ld", what, ret);
}

void name_it(const void *object, const char *name)
{
	if (!object || num_names == NAMES)
		return;
	names[num_names].object = object;
	names[num_names++].name = name;
}

void forget_names(void)
{
	num_names = 0;
}

/* The last name: memory is used again. */
const char *name_of(const void *object)
{
	int i;

	if (!object)
		return "NULL";
	for (i = num_names - 1; i >= 0; i--)
		if (names[i].object == object)
			return names[i].name;
	return "some";
}

void need(bool works, const char *what)
{
	if (works)
		return;
	say("needs %s: %s", what, strerrorname_np(errno));
	fflush(stdout);
	_exit(1);
}

void expect_end(void)
{
	const char *seconds = getenv("APITRACE_S");

	alarm(seconds ? atoi(seconds) : SCENARIO_S);
}

bool scenario(void (*run)(const void *arg), const void *arg, const char *fmt, ...)
{
	const char *only = getenv("APITRACE_ONLY");
	int status = 0;
	va_list args;
	pid_t pid;

	va_start(args, fmt);
	vsnprintf(scenario_name, sizeof(scenario_name), fmt, args);
	va_end(args);
	if (only && strcmp(only, scenario_name))
		return true;
	fflush(stdout);
	pid = fork();
	if (!pid) {
		expect_end();
		run(arg);
		fflush(stdout);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		exit(2);
	if (!WIFSIGNALED(status))
		return true;
	say("%s", WTERMSIG(status) == SIGALRM ? "hangs" : strsignal(WTERMSIG(status)));
	return false;
}

/*
 * What the API's structs say
 */

static void say_bytes(const char *what, const void *data, size_t len)
{
	const uint8_t *byte = data;
	char text[3 * 160 + 1] = "";
	size_t i;

	for (i = 0; i < len && i < 160; i++)
		sprintf(text + 2 * i, "%02x", byte[i]);
	say("%s %s", what, text);
}

static void say_address(const char *what, const struct sockaddr *sa)
{
	const struct sockaddr_in *sin = (const void *)sa;
	const struct sockaddr_in6 *sin6 = (const void *)sa;
	char text[INET6_ADDRSTRLEN] = "";
	const void *addr = &sin->sin_addr;
	int port;

	if (sa->sa_family != AF_INET && sa->sa_family != AF_INET6) {
		say("%s family %d", what, sa->sa_family);
		return;
	}
	if (sa->sa_family == AF_INET6)
		addr = &sin6->sin6_addr;
	inet_ntop(sa->sa_family, addr, text, sizeof(text));
	port = ntohs(sin->sin_port);
	/* Those of our choice are below the ephemeral ones. */
	if (port > 32767)
		say("%s %s port ephemeral", what, text);
	else
		say("%s %s port %d", what, text, port);
}

static void say_path(const char *what, const struct ibv_sa_path_rec *path)
{
	say_bytes(what, &path->dgid, sizeof(path->dgid) + sizeof(path->sgid));
	/*
	 * A flow label is a hash of ports that are not ours to choose; and librdmacm finds
	 * parts of a MAC address where InfiniBand has LIDs.
	 */
	say("%s hop %u class %u reversible %d pkey %x sl %u mtu %u %u rate %u %u life %u %u", what,
	    path->hop_limit, path->traffic_class, path->reversible, path->pkey, path->sl,
	    path->mtu_selector, path->mtu, path->rate_selector, path->rate,
	    path->packet_life_time_selector, path->packet_life_time);
}

void say_fields(const char *what, const struct rdma_cm_id *id)
{
	const struct rdma_ib_addr *ib = &id->route.addr.addr.ibaddr;
	char text[64];
	int i;

	say("%s verbs %s channel %s context %s qp %s ps %x port_num %u event %s", what,
	    id->verbs ? "some" : "NULL", name_of(id->channel), name_of(id->context),
	    id->qp ? "some" : "NULL", id->ps, id->port_num,
	    id->event ? rdma_event_str(id->event->event) : "NULL");
	say("%s send_cq_channel %s send_cq %s recv_cq_channel %s recv_cq %s", what,
	    name_of(id->send_cq_channel), name_of(id->send_cq),
	    name_of(id->recv_cq_channel), name_of(id->recv_cq));
	say("%s srq %s pd %s qp_type %d", what, name_of(id->srq), name_of(id->pd), id->qp_type);
	snprintf(text, sizeof(text), "%s src", what);
	say_address(text, &id->route.addr.src_addr);
	snprintf(text, sizeof(text), "%s dst", what);
	say_address(text, &id->route.addr.dst_addr);
	snprintf(text, sizeof(text), "%s gids", what);
	/* An address of nobody has no GID, or that of the IPv4 address 0. */
	say_bytes(text, &ib->sgid, (id->route.path_rec ? 2 : 1) * sizeof(ib->sgid));
	say("%s pkey %x num_paths %d path_rec %s", what, ib->pkey, id->route.num_paths,
	    id->route.path_rec ? "some" : "NULL");
	for (i = 0; id->route.path_rec && i < id->route.num_paths; i++) {
		snprintf(text, sizeof(text), "%s path %d", what, i);
		say_path(text, &id->route.path_rec[i]);
	}
}

static void say_conn(const char *what, const struct rdma_conn_param *param)
{
	say("%s data %s len %u resources %u depth %u flow %u retry %u rnr %u srq %u qp_num %s",
	    what, param->private_data ? "some" : "NULL", param->private_data_len,
	    param->responder_resources, param->initiator_depth, param->flow_control,
	    param->retry_count, param->rnr_retry_count, param->srq,
	    param->qp_num ? "some" : "0");
	if (param->private_data)
		say_bytes(what, param->private_data, param->private_data_len);
}

static void say_ud(const char *what, const struct rdma_ud_param *param)
{
	const struct ibv_ah_attr *ah = &param->ah_attr;

	say("%s data %s len %u qp_num %s qkey %x dlid %u sl %u bits %u rate %u global %u port %u",
	    what, param->private_data ? "some" : "NULL", param->private_data_len,
	    param->qp_num == 0xffffff ? "all" : param->qp_num ? "some" : "0", param->qkey,
	    ah->dlid, ah->sl, ah->src_path_bits, ah->static_rate, ah->is_global, ah->port_num);
	say("%s index %u hop %u class %u", what, ah->grh.sgid_index, ah->grh.hop_limit,
	    ah->grh.traffic_class);
	say_bytes(what, &ah->grh.dgid, sizeof(ah->grh.dgid));
	if (param->private_data)
		say_bytes(what, param->private_data, param->private_data_len);
}

void say_event(const char *what, const struct rdma_cm_event *event)
{
	enum rdma_port_space ps = event->id ? event->id->ps : RDMA_PS_TCP;
	char text[64];

	say("%s %s status %d id %s listen_id %s", what, rdma_event_str(event->event),
	    event->status, name_of(event->id), name_of(event->listen_id));
	snprintf(text, sizeof(text), "%s %s", what, rdma_event_str(event->event));
	if (ps == RDMA_PS_TCP)
		say_conn(text, &event->param.conn);
	else
		say_ud(text, &event->param.ud);
}

/*
 * Events
 */

struct rdma_cm_event *take_event(struct rdma_event_channel *channel, int ms)
{
	struct pollfd pfd = { .fd = channel->fd, .events = POLLIN };
	struct rdma_cm_event *event;

	if (poll(&pfd, 1, ms) != 1 || rdma_get_cm_event(channel, &event))
		return NULL;
	return event;
}

void say_events(const char *what, struct rdma_event_channel *channel, int ms)
{
	struct rdma_cm_event *event;

	while ((event = take_event(channel, ms))) {
		say_event(what, event);
		rdma_ack_cm_event(event);
	}
}

void expect(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event = take_event(channel, SOON_MS);

	need(event, rdma_event_str(type));
	if (event->event != type || event->status)
		say("%s with status %d, not %s", rdma_event_str(event->event), event->status,
		    rdma_event_str(type));
	need(event->event == type, rdma_event_str(type));
	rdma_ack_cm_event(event);
}

/*
 * A connection, step by step
 */

struct sockaddr_in address(const char *ip, uint16_t port)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(port) };

	inet_pton(AF_INET, ip, &sin.sin_addr);
	return sin;
}

struct sockaddr_in my_address(uint16_t port)
{
	const char *ip = getenv("MY_IP");

	return address(ip && *ip ? ip : "10.77.0.1", port);
}

struct ibv_qp_init_attr queue_attr(enum rdma_port_space ps)
{
	return (struct ibv_qp_init_attr){
		.cap = { .max_send_wr = 4, .max_recv_wr = 4,
			 .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = ps == RDMA_PS_TCP ? IBV_QPT_RC : IBV_QPT_UD,
		.sq_sig_all = 1,
	};
}

void world_open(struct world *w, enum rdma_port_space ps)
{
	w->ps = ps;
	NEED((w->server_channel = rdma_create_event_channel()));
	NEED((w->client_channel = rdma_create_event_channel()));
	name_it(w->server_channel, "server's channel");
	name_it(w->client_channel, "client's channel");
	NEED(!rdma_create_id(w->client_channel, &w->client, w, ps));
	name_it(w->client, "client");
	name_it(w, "context");
}

void world_listen(struct world *w)
{
	struct sockaddr_in addr = my_address(SERVER_PORT);

	NEED(!rdma_create_id(w->server_channel, &w->listen, w, w->ps));
	name_it(w->listen, "listener");
	NEED(!rdma_bind_addr(w->listen, (struct sockaddr *)&addr));
	NEED(!rdma_listen(w->listen, 8));
}

void world_resolve_addr(struct world *w)
{
	struct sockaddr_in src = my_address(CLIENT_PORT), dst = my_address(SERVER_PORT);

	NEED(!rdma_resolve_addr(w->client, (struct sockaddr *)&src, (struct sockaddr *)&dst,
				RESOLVE_MS));
	expect(w->client_channel, RDMA_CM_EVENT_ADDR_RESOLVED);
}

void world_resolve(struct world *w)
{
	struct ibv_qp_init_attr attr = queue_attr(w->ps);

	world_resolve_addr(w);
	NEED(!rdma_resolve_route(w->client, RESOLVE_MS));
	expect(w->client_channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	if (!w->bare)
		NEED(!rdma_create_qp(w->client, NULL, &attr));
}

/* ib_cm knows connections by their QP numbers: without QPs, two that differ. */
static struct rdma_conn_param some_param(const struct world *w, const struct rdma_conn_param *param,
					 uint32_t qp_num)
{
	struct rdma_conn_param some = { .responder_resources = 1, .initiator_depth = 1,
					.retry_count = 5, .rnr_retry_count = 6 };

	if (param)
		some = *param;
	if (w->bare)
		some.qp_num = qp_num;
	return some;
}

void world_request(struct world *w, const struct rdma_conn_param *param)
{
	struct rdma_conn_param some = some_param(w, param, 77);
	struct ibv_qp_init_attr attr = queue_attr(w->ps);

	NEED(!rdma_connect(w->client, &some));
	w->request = take_event(w->server_channel, SOON_MS);
	NEED(w->request && w->request->event == RDMA_CM_EVENT_CONNECT_REQUEST);
	w->server = w->request->id;
	name_it(w->server, "server");
	if (!w->bare)
		NEED(!rdma_create_qp(w->server, NULL, &attr));
}

void world_accept(struct world *w, const struct rdma_conn_param *param)
{
	struct rdma_conn_param some = some_param(w, param, 78);

	NEED(!rdma_accept(w->server, &some));
	rdma_ack_cm_event(w->request);
	w->request = NULL;
}

void world_connect(struct world *w)
{
	world_listen(w);
	world_resolve(w);
	world_request(w, NULL);
	world_accept(w, NULL);
	if (w->bare && w->ps == RDMA_PS_TCP) {
		expect(w->client_channel, RDMA_CM_EVENT_CONNECT_RESPONSE);
		NEED(!rdma_establish(w->client));
	} else {
		expect(w->client_channel, RDMA_CM_EVENT_ESTABLISHED);
	}
	if (w->ps == RDMA_PS_TCP)
		expect(w->server_channel, RDMA_CM_EVENT_ESTABLISHED);
}

static void close_id(struct rdma_cm_id *id, const char *what)
{
	if (!id)
		return;
	if (id->qp)
		rdma_destroy_qp(id);
	if (rdma_destroy_id(id))
		say_result(what, -1);
}

void world_close(struct world *w)
{
	if (w->request)
		rdma_ack_cm_event(w->request);
	close_id(w->client, "destroy client");
	close_id(w->server, "destroy server");
	close_id(w->listen, "destroy listener");
	rdma_destroy_event_channel(w->server_channel);
	rdma_destroy_event_channel(w->client_channel);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*trace)(void);
	} parts[] = {
		{ "states", trace_states },
		{ "fields", trace_fields },
		{ "arguments", trace_arguments },
		{ "devices", trace_devices },
		{ "programs", trace_programs },
		{ "sync", trace_sync },
	};
	size_t i;
	int j;

	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		for (j = 1; j < argc && strcmp(argv[j], parts[i].name); j++)
			;
		if (argc == 1 || j < argc)
			parts[i].trace();
	}
	return 0;
}
