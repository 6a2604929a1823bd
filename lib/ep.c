// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Endpoints, ids that come with all they need: rdma_create_ep() and what
 * belongs to it.
 */
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_verbs.h>

#include "rdmaep-internal.h"

/* For each of address and route */
#define RESOLVE_TIMEOUT_MS	2000

static int set_res_addr(struct rdma_ep_addr *dst, const struct sockaddr *addr,
			socklen_t len, const char *which)
{
	if (addr && len < rdmaep_addr_size(addr))
		return rdmaep_fail(EINVAL, RDMA_EP_REASON_ADDR_FORMAT,
				   "%s address of %u bytes is too short",
				   which, len);
	return rdmaep_addr_set(dst, addr, which);
}

static enum ibv_qp_type res_qp_type(const struct rdma_addrinfo *res)
{
	if (res->ai_qp_type)
		return res->ai_qp_type;
	return res->ai_port_space == RDMA_PS_UDP ||
	       res->ai_port_space == RDMA_PS_IPOIB ? IBV_QPT_UD : IBV_QPT_RC;
}

static int set_res(struct rdma_ep_create_ep *cmd,
		   const struct rdma_addrinfo *res)
{
	if (rdmaep_check_port_space(res->ai_port_space))
		return -1;
	cmd->port_space = res->ai_port_space;
	if (res->ai_port_space == RDMA_PS_IB)
		cmd->qp_type = res_qp_type(res);

	if (res->ai_flags & RAI_PASSIVE) {
		cmd->hdr.flags |= RDMA_EP_CREATE_EP_PASSIVE;
		return set_res_addr(&cmd->src, res->ai_src_addr,
				    res->ai_src_len, "source");
	}

	cmd->timeout_ms = RESOLVE_TIMEOUT_MS;
	if (res->ai_route_len)
		cmd->hdr.flags |= RDMA_EP_CREATE_EP_NO_ROUTE;
	if (res->ai_src_addr && res->ai_src_len &&
	    set_res_addr(&cmd->src, res->ai_src_addr, res->ai_src_len,
			 "source"))
		return -1;
	return set_res_addr(&cmd->dst, res->ai_dst_addr, res->ai_dst_len,
			    "destination");
}

/**
 * rdmaep_ep_create() - the kernel's part of rdma_create_ep(), in one call
 * @res: what rdma_getaddrinfo() has found
 * @pd: protection domain of a passive one, or NULL
 * @flags: RDMA_EP_CREATE_EP_START, or 0 to wait until it is resolved
 *
 * Return: the id, or NULL with errno.
 */
struct rdmaep_id *rdmaep_ep_create(const struct rdma_addrinfo *res,
				   struct ibv_pd *pd, uint32_t flags)
{
	struct rdma_ep_record rec = { 0 };
	struct rdma_ep_create_ep cmd = {
		.hdr = RDMAEP_HDR(cmd),
		.record_uptr = (uintptr_t)&rec,
		.record_len = sizeof(rec),
	};
	struct rdmaep_ctx *ctx;
	struct rdmaep_id *ep;

	cmd.hdr.flags = flags;
	if (set_res(&cmd, res))
		return NULL;

	ctx = rdmaep_ctx_get();
	if (!ctx)
		return NULL;
	ep = rdmaep_id_alloc(ctx, NULL, res->ai_port_space, res_qp_type(res));
	if (!ep)
		goto put_ctx;
	if (rdmaep_call_new_channel(ctx, RDMA_EP_CREATE_EP, &cmd,
				    &cmd.channel)) {
		if (errno == EINTR && cmd.hdr.flags & RDMA_EP_F_RESUME)
			rdmaep_kernel_destroy(ctx, cmd.out_ep);
		goto free_id;
	}

	rdmaep_record_read(&rec);
	rdmaep_id_set_own_channel(ep, cmd.channel);
	rdmaep_id_publish(ep, cmd.out_ep, cmd.out_serial);
	if (res->ai_flags & RAI_PASSIVE)
		ep->id.pd = pd;
	if (rdmaep_id_update(ep, &rec)) {
		rdmaep_id_kill(ep);
		return NULL;
	}
	return ep;

free_id:
	free(ep);
put_ctx:
	rdmaep_ctx_put(ctx);
	return NULL;
}

static int ep_set_active(struct rdmaep_id *ep, const struct rdma_addrinfo *res,
			 struct ibv_pd *pd,
			 struct ibv_qp_init_attr *qp_init_attr)
{
	if (res->ai_route_len &&
	    (rdmaep_option_ib_path(ep, res->ai_route, res->ai_route_len) ||
	     rdmaep_wait_next(ep)))
		return -1;

	if (res->ai_connect_len) {
		ep->connect_data = malloc(res->ai_connect_len);
		if (!ep->connect_data)
			return -1;
		memcpy(ep->connect_data, res->ai_connect, res->ai_connect_len);
		ep->connect_len = res->ai_connect_len;
	}

	if (!qp_init_attr)
		return 0;
	qp_init_attr->qp_type = ep->id.qp_type;
	return rdma_create_qp(&ep->id, pd, qp_init_attr);
}

static int ep_set_passive(struct rdmaep_id *ep,
			  const struct ibv_qp_init_attr *qp_init_attr)
{
	if (!qp_init_attr)
		return 0;
	ep->qp_init_attr = malloc(sizeof(*qp_init_attr));
	if (!ep->qp_init_attr)
		return -1;
	*ep->qp_init_attr = *qp_init_attr;
	ep->qp_init_attr->qp_type = ep->id.qp_type;
	return 0;
}

/**
 * rdmaep_ep_set() - the rest of rdma_create_ep()
 * @ep: the id
 * @res: what it was made of
 * @pd: protection domain for the QP, or NULL
 * @qp_init_attr: attributes of the QP, or NULL
 *
 * Return: 0, or -1 with errno; the id is the caller's to destroy.
 */
int rdmaep_ep_set(struct rdmaep_id *ep, const struct rdma_addrinfo *res,
		  struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr)
{
	if (res->ai_flags & RAI_PASSIVE)
		return ep_set_passive(ep, qp_init_attr);
	return ep_set_active(ep, res, pd, qp_init_attr);
}

/**
 * rdma_create_ep() - make an id and, optionally, its QP
 * @id: where the id goes
 * @res: what rdma_getaddrinfo() has found
 * @pd: protection domain for the QP, or NULL for the device's default. Passive
 *	side: becomes id->pd, in which rdma_get_request() makes the QPs.
 * @qp_init_attr: attributes of the QP, or NULL for none. Passive side:
 *	remembered for the ids that rdma_get_request() returns.
 *
 * The id is synchronous, and ready for rdma_connect() or rdma_listen().
 * Follows rdma_create_ep(3).
 *
 * Return: 0, or -1 with errno: EINVAL, those of rdma_bind_addr() (passive),
 * those that resolving can fail with (active), or from libibverbs.
 */
RDMAEP_API int rdma_create_ep(struct rdma_cm_id **id,
			      struct rdma_addrinfo *res, struct ibv_pd *pd,
			      struct ibv_qp_init_attr *qp_init_attr)
{
	struct rdmaep_id *ep;

	if (!id || !res)
		return rdmaep_fail_plain(EINVAL);

	ep = rdmaep_ep_create(res, pd, 0);
	if (!ep)
		return -1;
	if (rdmaep_ep_set(ep, res, pd, qp_init_attr)) {
		rdmaep_id_kill(ep);
		return -1;
	}
	*id = &ep->id;
	return 0;
}

/**
 * rdma_destroy_ep() - destroy an id and what belongs to it
 * @id: the id. Its QP and SRQ are destroyed, its groups are left.
 *
 * Follows rdma_destroy_ep(3).
 */
RDMAEP_API void rdma_destroy_ep(struct rdma_cm_id *id)
{
	if (id->qp)
		rdmaep_qp_destroy(to_rdmaep_id(id), true);
	if (id->srq)
		rdma_destroy_srq(id);
	rdma_destroy_id(id);
}

/*
 * Make the new id of a request. Without one, all that came with the request is
 * released.
 */
static int request_finish(struct rdmaep_id *listener, struct rdmaep_event *evt,
			  int fd)
{
	struct rdmaep_id *child = evt->child;
	struct ibv_qp_init_attr attr;

	rdmaep_id_set_own_channel(child, fd);
	child->id.event = &evt->event;
	if (!listener->qp_init_attr)
		return 0;

	attr = *listener->qp_init_attr;
	if (!rdma_create_qp(&child->id, listener->id.pd, &attr))
		return 0;
	rdmaep_id_kill(child);
	return -1;
}

static void free_event(void *evt)
{
	rdmaep_event_free(evt);
}

static void drop_fd(int fd)
{
	struct rdmaep_channel ch = { .ch.fd = fd };

	rdmaep_channel_close_own(&ch);
}

/* What was waited for, but is no request */
static int request_other(struct rdmaep_id *listener, struct rdmaep_event *evt,
			 struct rdma_ep_record *rec)
{
	if (rdmaep_event_fill(evt, listener, rec)) {
		rdmaep_event_free(evt);
		return rdmaep_fail_plain(ECONNABORTED);
	}
	listener->id.event = &evt->event;
	return rdmaep_fail_outcome(evt->event.status ? abs(evt->event.status) : EINVAL);
}

/**
 * rdma_get_request() - take the next connection request
 * @listen: a listening, synchronous id
 * @id: where the new id goes. It is synchronous, its id->event is the request,
 *	and it has a QP if @listen was made with attributes for one.
 *
 * Waits for a request, unless the file of listen->channel is non-blocking.
 * Follows rdma_get_request(3).
 *
 * Return: 0, or -1 with errno EINVAL (asynchronous, not listening, or another event
 * came: see listen->event), EAGAIN, EINTR, or from libibverbs; the request is rejected
 * then.
 */
RDMAEP_API int rdma_get_request(struct rdma_cm_id *listen,
				struct rdma_cm_id **id)
{
	struct rdmaep_id *listener = to_rdmaep_id(listen);
	struct rdma_ep_wait cmd = { .hdr.flags = RDMA_EP_F_NEW_CHANNEL };
	struct rdma_ep_record rec;
	struct rdmaep_event *evt;
	int ret;

	if (!listener->sync)
		return rdmaep_fail(EINVAL, RDMA_EP_REASON_STATE,
				   "the id is asynchronous");

	if (!listener->listening)
		return rdmaep_fail(EINVAL, RDMA_EP_REASON_STATE,
				   "the id does not listen");

	rdmaep_event_drop_current(listen);
	evt = rdmaep_event_alloc(listener);
	if (!evt)
		return -1;
	pthread_cleanup_push(free_event, evt);
	ret = rdmaep_ep_wait(listener, &cmd, &rec);
	pthread_cleanup_pop(ret != 0);
	if (ret)
		return -1;
	if (rec.type != RDMA_EP_EVENT_CONNECT_REQUEST)
		return request_other(listener, evt, &rec);

	if (rdmaep_event_fill(evt, listener, &rec)) {
		int err = errno;

		drop_fd(cmd.child_channel);
		rdmaep_event_free(evt);
		errno = err;
		return -1;
	}
	if (request_finish(listener, evt, cmd.child_channel))
		return -1;
	*id = &evt->child->id;
	return 0;
}
