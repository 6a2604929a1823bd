// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * What rdma_cm tells us.
 *
 * rdma_cm calls rdma_ep_cm_handler() with the id's handler lock held. So it
 * may not take rdma_ep::lock (see the order in private.h) and may not call
 * rdma_destroy_id(). Returning non-zero makes rdma_cm destroy the id; that is
 * done for one case only: a connection request that we refuse, whose id no
 * endpoint refers to. A device's removal queues work that destroys the id.
 *
 * What a completion needs was allocated when the operation was started. An
 * endpoint has slots for the rest.
 */
#include <linux/memcontrol.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <rdma/ib_cm.h>
#include <rdma/ib_marshall.h>

#include "private.h"
#include "trace.h"

/*
 * What a peer makes us allocate is charged to who listens. If his control group
 * is full the peer is refused; he is not killed for it.
 */
#define RDMA_EP_HANDLER_GFP (GFP_KERNEL_ACCOUNT | __GFP_NORETRY | __GFP_NOWARN)

static u8 rdma_ep_data_len(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	return id->qp_type == IB_QPT_UD ? event->param.ud.private_data_len :
					  event->param.conn.private_data_len;
}

static void rdma_ep_fill_data(struct rdma_ep_event_more *more, const void *data, u8 len)
{
	if (!data || !len)
		return;
	if (len > more->room) {
		more->flags |= RDMA_EP_REC_NO_DATA;
		return;
	}
	memcpy(more->data, data, len);
	more->param.private_data_len = len;
	more->flags |= RDMA_EP_REC_DATA;
}

static void rdma_ep_fill_ud(struct rdma_ep_event_more *more, struct rdma_cm_id *id,
			    struct rdma_ud_param *ud)
{
	more->param.qp_num = ud->qp_num;
	more->param.qkey = ud->qkey;
	ib_copy_ah_attr_to_user(id->device, &more->ah, &ud->ah_attr);
	more->flags |= RDMA_EP_REC_PARAM | RDMA_EP_REC_UD;
}

/* Keep what an event carries. Drivers leave junk in what it does not carry. */
static void rdma_ep_fill(struct rdma_ep_event_more *more, struct rdma_cm_id *id,
			 struct rdma_cm_event *event)
{
	bool ud = id->qp_type == IB_QPT_UD;

	switch (event->event) {
	case RDMA_CM_EVENT_MULTICAST_JOIN:
		rdma_ep_fill_ud(more, id, &event->param.ud);
		return;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (ud)
			rdma_ep_fill_ud(more, id, &event->param.ud);
		break;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
	case RDMA_CM_EVENT_REJECTED:
		break;
	case RDMA_CM_EVENT_UNREACHABLE:
		if (ud && event->status > 0) /* a negative SIDR reply */
			break;
		return;
	default:
		return;
	}

	if (ud) {
		rdma_ep_fill_data(more, event->param.ud.private_data,
				  event->param.ud.private_data_len);
	} else {
		more->param = event->param.conn;
		more->param.private_data = NULL;
		more->param.private_data_len = 0;
		more->flags |= RDMA_EP_REC_PARAM;
		rdma_ep_fill_data(more, event->param.conn.private_data,
				  event->param.conn.private_data_len);
	}
	more->ece = event->ece;
}

/*
 * A request that cannot be recorded is answered at once: the peer would retry
 * for more than a minute otherwise. (It is why -ENOMEM is not returned: ib_cm
 * takes that for "do not reject".) For iWARP the return value rejects.
 */
static int rdma_ep_refuse_for(struct rdma_cm_id *id, int reason)
{
	if (rdma_cap_ib_cm(id->device, id->port_num))
		rdma_reject(id, NULL, 0, reason);
	return -ECONNREFUSED;
}

static int rdma_ep_refuse(struct rdma_ep *listener, struct rdma_cm_id *id)
{
	spin_lock(&listener->ctx->ev_lock);
	listener->overflows++;
	rdma_ep_count(listener->ctx, RDMA_EP_COUNT_OVERFLOWS);
	trace_rdma_ep_refused(listener->ctx->number, listener->handle, listener->requests,
			      listener->backlog);
	spin_unlock(&listener->ctx->ev_lock);

	return rdma_ep_refuse_for(id, IB_CM_REJ_NO_RESOURCES);
}

static int rdma_ep_handle_request(struct rdma_ep *listener, struct rdma_cm_id *id,
				  struct rdma_cm_event *event)
{
	struct rdma_ep_ctx *ctx = listener->ctx;
	struct rdma_ep_event_more *more;
	struct rdma_ep *child;
	bool queued = false;

	/* To this device nobody listens. */
	if (!rdma_ep_device_ok(listener, id))
		return rdma_ep_refuse_for(id, IB_CM_REJ_INVALID_SERVICE_ID);

	/* Cheap, and exact when checked again below. */
	if (READ_ONCE(listener->requests) >= READ_ONCE(listener->backlog))
		return rdma_ep_refuse(listener, id);

	child = rdma_ep_alloc(ctx, RDMA_EP_HANDLER_GFP);
	if (IS_ERR(child))
		return rdma_ep_refuse(listener, id);
	child->conn = rdma_ep_conn_alloc(child, RDMA_EP_HANDLER_GFP);
	if (!child->conn)
		goto no_event;
	more = rdma_ep_event_alloc(listener, rdma_ep_data_len(id, event), RDMA_EP_HANDLER_GFP);
	if (!more)
		goto no_event;

	rdma_ep_fill(more, id, event);
	more->child = child;
	child->qp_type = id->qp_type;
	child->state = RDMA_EP_STATE_REQUESTED;
	child->id = id;
	id->context = child;

	spin_lock(&ctx->ev_lock);
	if (!listener->dead && listener->requests < listener->backlog) {
		listener->requests++;
		trace_rdma_ep_created(ctx->number, child->handle, listener->handle);
		trace_rdma_ep_path(ctx->number, child->handle, id);
		rdma_ep_event_queue(&more->ev, RDMA_EP_EVENT_CONNECT_REQUEST, event->status);
		queued = true;
	}
	spin_unlock(&ctx->ev_lock);
	if (queued)
		return 0;

	/* The id is rdma_cm's to destroy, by what we return. */
	id->context = listener;
	child->id = NULL;
	rdma_ep_event_unalloc(more);
no_event:
	rdma_ep_unalloc(child);
	return rdma_ep_refuse(listener, id);
}

/* Which operation an event completes, and what state it leads to. */
static bool rdma_ep_completes(u8 op, u8 type, u8 *state)
{
	switch (type) {
	case RDMA_EP_EVENT_ADDR_RESOLVED:
		*state = RDMA_EP_STATE_ADDR_RESOLVED;
		return op == RDMA_EP_OP_RESOLVE;
	case RDMA_EP_EVENT_ADDR_ERROR:
		*state = op == RDMA_EP_OP_RESOLVE ? RDMA_EP_STATE_BOUND : RDMA_EP_STATE_FAILED;
		return op == RDMA_EP_OP_RESOLVE || op == RDMA_EP_OP_CONNECT;
	case RDMA_EP_EVENT_ROUTE_RESOLVED:
		*state = RDMA_EP_STATE_ROUTE_RESOLVED;
		return op == RDMA_EP_OP_RESOLVE;
	case RDMA_EP_EVENT_ROUTE_ERROR:
		*state = RDMA_EP_STATE_ADDR_RESOLVED;
		return op == RDMA_EP_OP_RESOLVE;
	case RDMA_EP_EVENT_ADDRINFO_RESOLVED:
		*state = RDMA_EP_STATE_ADDR_RESOLVED;
		return op == RDMA_EP_OP_SERVICE;
	case RDMA_EP_EVENT_ADDRINFO_ERROR:
		*state = RDMA_EP_STATE_BOUND;
		return op == RDMA_EP_OP_SERVICE;
	case RDMA_EP_EVENT_CONNECT_RESPONSE:
		*state = RDMA_EP_STATE_RESPONDED;
		return op == RDMA_EP_OP_CONNECT;
	case RDMA_EP_EVENT_ESTABLISHED:
		*state = RDMA_EP_STATE_CONNECTED;
		return op == RDMA_EP_OP_CONNECT || op == RDMA_EP_OP_ACCEPT;
	default:
		*state = RDMA_EP_STATE_FAILED;
		return op == RDMA_EP_OP_CONNECT || op == RDMA_EP_OP_ACCEPT;
	}
}

/* Has what an event could be about ended before, with an event of its own? */
static bool rdma_ep_is_over(const struct rdma_ep *ep)
{
	return ep->state == RDMA_EP_STATE_FAILED || ep->state == RDMA_EP_STATE_DISCONNECTED ||
	       ep->state == RDMA_EP_STATE_REMOVED;
}

/*
 * Note what an event means for the endpoint. False if there is nothing to
 * report: each attempt to connect has one end.
 */
static bool rdma_ep_note(struct rdma_ep *ep, struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	u8 state = ep->state;

	if (rdma_ep_completes(ep->op, event->event, &state)) {
		ep->op = RDMA_EP_OP_NONE;
		/* To rdma_cm it is resolved, and on the wrong device: of no more use. */
		if (event->event == RDMA_CM_EVENT_ADDR_ERROR && !rdma_ep_device_ok(ep, id))
			state = RDMA_EP_STATE_FAILED;
	} else if (rdma_ep_is_over(ep)) {
		return false;
	} else if (event->event == RDMA_CM_EVENT_UNREACHABLE) {
		/*
		 * A neighbour has changed its address, or is silent: the connection may
		 * live on. It is said again and again; one that nobody has read will do.
		 */
		return !rdma_ep_event_is_waiting(ep, RDMA_EP_EVENT_UNREACHABLE);
	}
	rdma_ep_set_state(ep, state);
	if (state == RDMA_EP_STATE_FAILED)
		ep->disconnecting = false;
	return true;
}

/* Memory for an event: what was reserved for it, or whatever can be had. */
static struct rdma_ep_event_more *rdma_ep_completion_event(struct rdma_ep *ep, u8 type)
{
	struct rdma_ep_event_more *more = NULL;
	u8 state;

	spin_lock(&ep->ctx->ev_lock);
	if (rdma_ep_completes(ep->op, type, &state))
		swap(more, ep->op_event);
	spin_unlock(&ep->ctx->ev_lock);

	return more ?: rdma_ep_event_alloc(ep, RDMA_EP_EVENT_ROOM, RDMA_EP_HANDLER_GFP);
}

/*
 * An event that completes an operation, or that tells how an attempt to
 * connect went on after its operation had completed. The operation ends in the
 * moment that its event can be seen: a waiter never finds neither.
 */
static void rdma_ep_handle_completion(struct rdma_ep *ep, struct rdma_cm_id *id,
				      struct rdma_cm_event *event)
{
	struct rdma_ep_event_more *more = rdma_ep_completion_event(ep, event->event);

	/* Without the lock: a driver may have a say in it, and sleep. */
	if (more)
		rdma_ep_fill(more, id, event);

	spin_lock(&ep->ctx->ev_lock);
	if (rdma_ep_note(ep, id, event) && !ep->dead) {
		if (more)
			rdma_ep_event_queue(&more->ev, event->event, event->status);
		else
			rdma_ep_event_queue_slot(ep, event->event, event->status);
		more = NULL;
	}
	/* Also when dead: see rdma_ep_notify_locked(). */
	wake_up_all(&ep->wq);
	spin_unlock(&ep->ctx->ev_lock);
	rdma_ep_event_unalloc(more);
}

static void rdma_ep_handle_unasked(struct rdma_ep *ep, struct rdma_cm_event *event)
{
	bool removed = event->event == RDMA_CM_EVENT_DEVICE_REMOVAL;
	struct rdma_ep_event_more *op_event = NULL;
	bool told = false;

	spin_lock(&ep->ctx->ev_lock);
	if (removed || event->event == RDMA_CM_EVENT_DISCONNECTED) {
		/* ib_cm may try longer than overdue.c waits for it. */
		told = !removed && rdma_ep_is_over(ep);
		ep->disconnecting = false;
		ep->query_removed = removed && ep->state == RDMA_EP_STATE_RESOLVING_ROUTE;
		if (!told)
			rdma_ep_set_state(ep, removed ? RDMA_EP_STATE_REMOVED :
							RDMA_EP_STATE_DISCONNECTED);
		/* Whatever was under way has ended with this. */
		swap(op_event, ep->op_event);
		ep->op = RDMA_EP_OP_NONE;
	}
	if (removed)
		rdma_ep_close_id_removed(ep);
	if (!ep->dead && !told)
		rdma_ep_event_queue_slot(ep, event->event, event->status);
	spin_unlock(&ep->ctx->ev_lock);
	rdma_ep_event_unalloc(op_event);
}

static void rdma_ep_handle_group(struct rdma_ep *ep, struct rdma_cm_id *id,
				 struct rdma_cm_event *event)
{
	struct rdma_ep_event_more *more = rdma_ep_group_event(event);

	if (!more)
		return;
	rdma_ep_fill(more, id, event);
	spin_lock(&ep->ctx->ev_lock);
	if (!ep->dead) {
		rdma_ep_event_queue(&more->ev, event->event, event->status);
		more = NULL;
	}
	spin_unlock(&ep->ctx->ev_lock);
	rdma_ep_event_unalloc(more);
}

/* Go on to the route at once, instead of waking user space for the request. */
static bool rdma_ep_continue(struct rdma_ep *ep, struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	int ret;

	if (!ep->then_route)
		return false;
	ep->then_route = false;

	spin_lock(&ep->ctx->ev_lock);
	rdma_ep_set_state(ep, RDMA_EP_STATE_RESOLVING_ROUTE);
	spin_unlock(&ep->ctx->ev_lock);

	ret = rdma_resolve_route(id, ep->route_timeout_ms);
	if (!ret)
		return true;
	event->event = RDMA_CM_EVENT_ROUTE_ERROR;
	event->status = ret;
	return false;
}

static int rdma_ep_handle(struct rdma_ep *ep, struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	switch ((u32)event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return rdma_ep_handle_request(ep, id, event);
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		trace_rdma_ep_path(ep->ctx->number, ep->handle, id);
		if (!rdma_ep_device_ok(ep, id)) {
			event->event = RDMA_CM_EVENT_ADDR_ERROR;
			event->status = -ENODEV;
		} else if (rdma_ep_continue(ep, id, event)) {
			return 0;
		}
		fallthrough;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
	case RDMA_CM_EVENT_ESTABLISHED:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_EP_CM_EVENT_ADDRINFO_RESOLVED:
	case RDMA_EP_CM_EVENT_ADDRINFO_ERROR:
		rdma_ep_handle_completion(ep, id, event);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
	case RDMA_CM_EVENT_ADDR_CHANGE:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		rdma_ep_handle_unasked(ep, event);
		break;
	case RDMA_CM_EVENT_MULTICAST_JOIN:
	case RDMA_CM_EVENT_MULTICAST_ERROR:
		rdma_ep_handle_group(ep, id, event);
		break;
	default:
		break;
	}
	return 0;
}

int rdma_ep_cm_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct rdma_ep *ep = id->context;
	struct mem_cgroup *memcg;
	int ret;

	memcg = set_active_memcg(ep->ctx->memcg);
	ret = rdma_ep_handle(ep, id, event);
	set_active_memcg(memcg);
	return ret;
}
