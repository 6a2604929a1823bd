// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Connections, one after the other: a client and a server, each a thread or a
 * process, with synchronous ids from rdma_create_ep().
 *
 * The server waits for the client's disconnect and then destroys its id, which
 * answers it. That is the shortest way that works on librdmacm as well.
 *
 * Without queue pairs, the numbers are made up. They must differ between the
 * two ends and from those of earlier connections: ib_cm refuses a number that
 * it knows as a stale connection.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdmaep.h>

#include "cmbench.h"

enum client_step { CREATE, CONNECT, DISCONNECT, DESTROY, CLIENT_STEPS };

enum server_step { REQUEST, ACCEPT, HANGUP, RELEASE, SERVER_STEPS };

static const char *const client_names[] = {
	"create", "connect", "disconnect", "destroy"
};
static const char *const server_names[] = {
	"request", "accept", "hangup", "release"
};

/**
 * struct pair - a client and its server
 * @b: the benchmark
 * @index: of the pair
 * @listening: the server is ready; shared memory
 * @client: times of the client's steps
 * @server: times of the server's steps
 * @total_ns: time of the connections that count
 */
struct pair {
	const struct bench *b;
	int index;
	sem_t *listening;
	struct step client[CLIENT_STEPS];
	struct step server[SERVER_STEPS];
	uint64_t total_ns;
};

/**
 * struct res - verbs objects of our own
 * @pd: protection domain
 * @cq: completion queue, for sends and receives
 */
struct res {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
};

static void qp_attr_init(const struct bench *b, struct ibv_qp_init_attr *attr,
			 const struct res *res)
{
	memset(attr, 0, sizeof(*attr));
	attr->cap.max_send_wr = 1;
	attr->cap.max_recv_wr = 1;
	attr->cap.max_send_sge = 1;
	attr->cap.max_recv_sge = 1;
	attr->cap.max_inline_data = 16;
	attr->sq_sig_all = 1;
	attr->qp_type = IBV_QPT_RC;
	if (b->own) {
		attr->send_cq = res->cq;
		attr->recv_cq = res->cq;
	}
}

static void res_create(const struct bench *b, struct res *res)
{
	struct ibv_context **devs;

	if (!b->own)
		return;
	devs = rdma_get_devices(NULL);
	check(devs && devs[0], "rdma_get_devices");
	res->pd = ibv_alloc_pd(devs[0]);
	check(res->pd, "ibv_alloc_pd");
	res->cq = ibv_create_cq(devs[0], 16, NULL, NULL, 0);
	check(res->cq, "ibv_create_cq");
	rdma_free_devices(devs);
}

static struct rdma_addrinfo *address(const struct bench *b, int port, int flags)
{
	struct rdma_addrinfo hints = {
		.ai_flags = flags | RAI_NUMERICHOST,
		.ai_port_space = RDMA_PS_TCP,
	};
	struct rdma_addrinfo *ai;
	char service[16];

	snprintf(service, sizeof(service), "%d", port);
	check(!rdma_getaddrinfo((char *)b->addr, service, &hints, &ai),
	      "rdma_getaddrinfo");
	return ai;
}

static uint32_t made_up_qp_num(void)
{
	static uint32_t last;

	if (!last)
		__atomic_store_n(&last, (getpid() << 12) ^ now_ns(),
				 __ATOMIC_RELAXED);
	return __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED) & 0x7fffff;
}

static struct rdma_cm_id *server_listen(struct pair *p, struct res *res)
{
	struct ibv_qp_init_attr attr;
	struct rdma_addrinfo *ai;
	struct rdma_cm_id *id;

	res_create(p->b, res);
	qp_attr_init(p->b, &attr, res);
	ai = address(p->b, p->b->port + p->index, RAI_PASSIVE);
	check(!rdma_create_ep(&id, ai, res->pd, p->b->qp ? &attr : NULL),
	      "rdma_create_ep (passive)");
	rdma_freeaddrinfo(ai);
	check(!rdma_listen(id, p->b->batch > 16 ? p->b->batch : 16),
	      "rdma_listen");
	return id;
}

static void wait_for_hangup(struct rdma_cm_id *id)
{
	struct rdma_cm_event *event;

	check(!rdma_get_cm_event(id->channel, &event), "rdma_get_cm_event");
	check(event->event == RDMA_CM_EVENT_DISCONNECTED, "not disconnected");
	rdma_ack_cm_event(event);
}

static void serve_one(struct pair *p, struct rdma_cm_id *listener, bool counts)
{
	struct rdma_conn_param param = {
		.responder_resources = 1,
		.initiator_depth = 1,
		/* The client's have this bit clear. */
		.qp_num = 0x800000 | made_up_qp_num(),
	};
	uint64_t t = now_ns(), end[SERVER_STEPS];
	struct rdma_cm_id *id;
	int i;

	check(!rdma_get_request(listener, &id), "rdma_get_request");
	end[REQUEST] = now_ns();
	check(!rdma_accept(id, &param), "rdma_accept");
	end[ACCEPT] = now_ns();
	wait_for_hangup(id);
	end[HANGUP] = now_ns();
	rdma_destroy_ep(id);
	end[RELEASE] = now_ns();

	for (i = 0; counts && i < SERVER_STEPS; t = end[i++])
		p->server[i].ns[p->server[i].n++] = end[i] - t;
}

/* Accept as many as come together, then see them go. */
static void serve_batch(struct pair *p, struct rdma_cm_id *listener)
{
	struct rdma_conn_param param = {
		.responder_resources = 1, .initiator_depth = 1,
	};
	struct rdma_cm_id **ids = zalloc(p->b->batch * sizeof(*ids));
	int i;

	for (i = 0; i < p->b->batch; i++) {
		check(!rdma_get_request(listener, &ids[i]), "rdma_get_request");
		check(!rdma_accept(ids[i], &param), "rdma_accept");
	}
	for (i = 0; i < p->b->batch; i++) {
		wait_for_hangup(ids[i]);
		rdma_destroy_ep(ids[i]);
	}
	free(ids);
}

static void *serve(void *arg)
{
	struct pair *p = arg;
	struct res res = { 0 };
	struct rdma_cm_id *listener = server_listen(p, &res);
	int i;

	sem_post(p->listening);
	for (i = 0; p->b->batch && i < p->b->warmup + p->b->count;
	     i += p->b->batch)
		serve_batch(p, listener);
	for (; i < p->b->warmup + p->b->count; i++)
		serve_one(p, listener, i >= p->b->warmup);
	rdma_destroy_ep(listener);
	return NULL;
}

static void connect_id(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = {
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = 7,
		.rnr_retry_count = 7,
		.qp_num = made_up_qp_num(),
	};

	check(!rdma_connect(id, &param), "rdma_connect");
	if (!id->qp)
		check(!rdma_establish(id), "rdma_establish");
}

static void call_one(struct pair *p, struct rdma_addrinfo *ai, struct res *res)
{
	struct ibv_qp_init_attr attr;
	uint64_t t = now_ns();
	struct rdma_cm_id *id;

	qp_attr_init(p->b, &attr, res);
	check(!rdma_create_ep(&id, ai, res->pd, p->b->qp ? &attr : NULL),
	      "rdma_create_ep");
	t = step_end(&p->client[CREATE], t);
	connect_id(id);
	t = step_end(&p->client[CONNECT], t);
	check(!rdma_disconnect(id), "rdma_disconnect");
	t = step_end(&p->client[DISCONNECT], t);
	rdma_destroy_ep(id);
	step_end(&p->client[DESTROY], t);
}

/* The functions of <rdmaep.h>, which librdmacm does not have */
struct many {
	typeof(rdmaep_create_ep_many) *create;
	typeof(rdmaep_connect_many) *connect;
	typeof(rdmaep_destroy_ep_many) *destroy;
};

static void many_load(struct many *many)
{
	*(void **)&many->create = dlsym(RTLD_DEFAULT, "rdmaep_create_ep_many");
	*(void **)&many->connect = dlsym(RTLD_DEFAULT, "rdmaep_connect_many");
	*(void **)&many->destroy = dlsym(RTLD_DEFAULT, "rdmaep_destroy_ep_many");
	check(many->create && many->connect && many->destroy,
	      "the calls of <rdmaep.h>");
}

static void call_batch(struct pair *p, struct rdma_addrinfo *ai,
		       struct res *res)
{
	int n = p->b->batch, i;
	struct rdmaep_ep_attr *attr = zalloc(n * sizeof(*attr));
	struct rdma_cm_id **ids = zalloc(n * sizeof(*ids));
	struct ibv_qp_init_attr qp;
	uint64_t t = now_ns();
	struct many many;

	many_load(&many);
	qp_attr_init(p->b, &qp, res);
	for (i = 0; i < n; i++)
		attr[i] = (struct rdmaep_ep_attr){ ai, res->pd, &qp };
	check(many.create(ids, attr, n, NULL) == n, "rdmaep_create_ep_many");
	t = step_end(&p->client[CREATE], t);
	check(many.connect(ids, NULL, n, NULL) == n, "rdmaep_connect_many");
	t = step_end(&p->client[CONNECT], t);
	check(!many.destroy(ids, n, 0), "rdmaep_destroy_ep_many");
	step_end(&p->client[DESTROY], t);
	free(attr);
	free(ids);
}

/* Make @n connections, or as many more as make the last batch full. */
static void call_all(struct pair *p, struct rdma_addrinfo *ai, struct res *res,
		     int n)
{
	int i;

	for (i = 0; p->b->batch && i < n; i += p->b->batch)
		call_batch(p, ai, res);
	for (; i < n; i++)
		call_one(p, ai, res);
}

static void *call(void *arg)
{
	struct pair *p = arg;
	struct res res = { 0 };
	struct rdma_addrinfo *ai;
	uint64_t start;
	int i;

	sem_wait(p->listening);
	res_create(p->b, &res);
	ai = address(p->b, p->b->port + p->index, 0);
	call_all(p, ai, &res, p->b->warmup);
	for (i = 0; i < CLIENT_STEPS; i++)
		p->client[i].n = 0;

	start = now_ns();
	call_all(p, ai, &res, p->b->count);
	p->total_ns = now_ns() - start;
	rdma_freeaddrinfo(ai);
	return NULL;
}

static void pair_init(struct pair *p, const struct bench *b, int index)
{
	int i;

	p->b = b;
	p->index = index;
	p->listening = mmap(NULL, sizeof(*p->listening), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(p->listening != MAP_FAILED, "mmap");
	sem_init(p->listening, 1, 0);
	for (i = 0; i < CLIENT_STEPS; i++)
		step_init(&p->client[i], client_names[i],
			  b->warmup + b->count);
	for (i = 0; i < SERVER_STEPS; i++)
		step_init(&p->server[i], server_names[i], b->count);
}

static void start(pthread_t *thread, void *(*fn)(void *), struct pair *p)
{
	check(!pthread_create(thread, NULL, fn, p), "pthread_create");
}

static void report(const struct bench *b, struct pair *pairs)
{
	struct step all[CLIENT_STEPS + SERVER_STEPS] = { 0 };
	uint64_t longest = 0;
	int i, j;

	for (i = 0; i < b->threads; i++) {
		if (pairs[i].total_ns > longest)
			longest = pairs[i].total_ns;
		for (j = 0; j < CLIENT_STEPS; j++)
			step_merge(&all[j], &pairs[i].client[j]);
		for (j = 0; j < SERVER_STEPS; j++)
			step_merge(&all[CLIENT_STEPS + j],
				   &pairs[i].server[j]);
	}
	result_begin(b, b->batch ? "ep-batch" : !b->qp ? "cm" : b->own ? "ep-own" : "ep");
	result_number("threads", b->threads);
	result_number("procs", b->procs ? 2 : 1);
	result_number("ns_per_conn", (double)longest / b->count / b->threads);
	result_number("conn_per_s",
		      1e9 * b->count * b->threads / (double)longest);
	result_steps(all, CLIENT_STEPS + SERVER_STEPS);
	result_end();
}

/**
 * bench_conn() - time of connections, with or without queue pairs
 * @b: what the command line says
 */
void bench_conn(const struct bench *b)
{
	struct pair *pairs = zalloc(b->threads * sizeof(*pairs));
	pthread_t *servers = zalloc(b->threads * sizeof(*servers));
	pthread_t *clients = zalloc(b->threads * sizeof(*clients));
	pid_t child = -1;
	int i;

	for (i = 0; i < b->threads; i++)
		pair_init(&pairs[i], b, i);
	/* Nothing of the library has been used: both begin anew. */
	if (b->procs) {
		child = fork();
		check(child >= 0, "fork");
	}
	for (i = 0; i < b->threads; i++) {
		if (!b->procs || !child)
			start(&servers[i], serve, &pairs[i]);
		if (!b->procs || child)
			start(&clients[i], call, &pairs[i]);
	}
	for (i = 0; i < b->threads; i++) {
		if (!b->procs || !child)
			pthread_join(servers[i], NULL);
		if (!b->procs || child)
			pthread_join(clients[i], NULL);
	}
	if (!child)
		_exit(0);
	if (child > 0)
		waitpid(child, NULL, 0);
	report(b, pairs);
}

/*
 * Connections that stay
 */

struct holder {
	struct rdma_cm_id *listener;
	int count;
};

static void *accept_all(void *arg)
{
	struct rdma_conn_param param = {
		.responder_resources = 1, .initiator_depth = 1,
	};
	struct holder *h = arg;
	struct rdma_cm_id *id;
	int i;

	for (i = 0; i < h->count; i++) {
		check(!rdma_get_request(h->listener, &id), "rdma_get_request");
		param.qp_num = 0x800000 | made_up_qp_num();
		check(!rdma_accept(id, &param), "rdma_accept");
	}
	return NULL;
}

/**
 * hold_connections() - make connections, both ends in this process
 * @b: what the command line says
 * @count: how many
 */
void hold_connections(const struct bench *b, int count)
{
	struct pair p = { .b = b };
	struct res res = { 0 };
	struct holder h = { server_listen(&p, &res), count };
	struct rdma_addrinfo *ai = address(b, b->port, 0);
	struct rdma_cm_id *id;
	pthread_t thread;
	int i;

	check(!pthread_create(&thread, NULL, accept_all, &h), "pthread_create");
	for (i = 0; i < count; i++) {
		check(!rdma_create_ep(&id, ai, NULL, NULL), "rdma_create_ep");
		connect_id(id);
	}
	pthread_join(thread, NULL);
	rdma_freeaddrinfo(ai);
}
