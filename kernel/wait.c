// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Starting an asynchronous operation, and waiting at an endpoint for an event.
 *
 * An endpoint has one operation under way at most. Memory for its completion
 * is taken when it begins. While threads wait at an endpoint, its new events
 * stay off its channel; what they leave is put there when the last one goes.
 */
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "private.h"

/**
 * rdma_ep_op_begin - begin an operation
 * @call: the call
 * @ep: the endpoint, locked
 * @op: the operation
 * @from: bits of the states in which it can begin
 * @to: state while it is under way
 * @what: what the caller is about to do, in words
 *
 * Return: 0, -EBUSY, -EINVAL, -ENODEV, -ECANCELED or -ENOMEM.
 */
int rdma_ep_op_begin(struct rdma_ep_call *call, struct rdma_ep *ep, enum rdma_ep_op op, u32 from,
		     u8 to, const char *what)
{
	bool connects = op == RDMA_EP_OP_CONNECT || op == RDMA_EP_OP_ACCEPT;
	struct rdma_ep_event_more *more;
	struct rdma_ep_conn *conn = NULL;
	struct rdma_ep_hdr *hdr = call->cmd;
	struct rdma_ep_event *ev;
	int ret = 0;
	bool alone;

	lockdep_assert_held(&ep->lock);

	more = rdma_ep_event_alloc(ep, connects ? RDMA_EP_EVENT_ROOM : 0, GFP_KERNEL_ACCOUNT);
	if (!more)
		return -ENOMEM;
	if (connects && !ep->conn) {
		conn = rdma_ep_conn_alloc(ep, GFP_KERNEL_ACCOUNT);
		if (!conn) {
			rdma_ep_event_unalloc(more);
			return -ENOMEM;
		}
	}

	spin_lock(&ep->ctx->ev_lock);
	if (ep->dead) {
		ret = rdma_ep_fail_no_id(call, ep);
	} else if (ep->op != RDMA_EP_OP_NONE) {
		ret = rdma_ep_fail(call, -EBUSY, RDMA_EP_REASON_BUSY, "the endpoint is still %s",
				   rdma_ep_state_name(ep->state));
	} else if (!(from & BIT(ep->state))) {
		ret = rdma_ep_fail_state(call, ep, what);
	} else {
		/* What others wait for may have come, and they not have taken it yet. */
		alone = ep->waiters == !!(hdr->flags & RDMA_EP_F_WAIT);
		ep->op = op;
		swap(more, ep->op_event);
		if (conn)
			swap(conn, ep->conn);
		rdma_ep_set_state(ep, to);
		list_for_each_entry(ev, &ep->events, ep_node)
			ev->stale |= alone;
	}
	spin_unlock(&ep->ctx->ev_lock);
	rdma_ep_event_unalloc(more);
	kfree(conn);
	return ret;
}

/* No event will end the operation: it was not started, or needs none. */
void rdma_ep_op_end(struct rdma_ep *ep, u8 state)
{
	struct rdma_ep_event_more *more = NULL;

	lockdep_assert_held(&ep->lock);

	spin_lock(&ep->ctx->ev_lock);
	if (ep->op != RDMA_EP_OP_NONE) {
		ep->op = RDMA_EP_OP_NONE;
		swap(more, ep->op_event);
		rdma_ep_set_state(ep, state);
		wake_up_all(&ep->wq);
	}
	spin_unlock(&ep->ctx->ev_lock);
	rdma_ep_event_unalloc(more);
}

/* From now on a thread, or a request of io_uring, waits at the endpoint for @types. */
void rdma_ep_wait_begin(struct rdma_ep *ep, u32 types)
{
	spin_lock(&ep->ctx->ev_lock);
	ep->waiters++;
	ep->wanted |= types;
	spin_unlock(&ep->ctx->ev_lock);
}

void rdma_ep_wait_end(struct rdma_ep *ep)
{
	spin_lock(&ep->ctx->ev_lock);
	if (!--ep->waiters) {
		ep->wanted = 0;
		rdma_ep_event_expose(ep);
	}
	spin_unlock(&ep->ctx->ev_lock);
}

/* Why there is no event: it may yet come, or never. */
static int rdma_ep_wait_none(struct rdma_ep *ep, u32 types)
{
	lockdep_assert_held(&ep->ctx->ev_lock);

	if (ep->dead)
		return -ECANCELED;
	if (types == RDMA_EP_COMPLETES_ANY)
		return ep->state == RDMA_EP_STATE_REMOVED ? -ENODEV : -EAGAIN;
	/* Another thread may have taken what ended the operation. */
	if (ep->op == RDMA_EP_OP_NONE && !ep->disconnecting)
		return -ENODATA;
	return -EAGAIN;
}

/**
 * rdma_ep_wait_take - take an event, if there is one
 * @ep: the endpoint
 * @types: bits of enum rdma_ep_event_type. Of all but RDMA_EP_COMPLETES_ANY only
 *	those count that have come since the last operation was begun.
 * @t: receives the first event of @types; NULL only to see whether there is one
 * @wait: if the event may yet come, is added to rdma_ep::wq; or NULL. Who
 *	wakes it holds ev_lock, so nothing is missed.
 *
 * Return: 0, -EAGAIN, or why no such event will come, as rdma_ep_wait_for().
 */
int rdma_ep_wait_take(struct rdma_ep *ep, u32 types, struct rdma_ep_taken *t,
		      struct wait_queue_entry *wait)
{
	struct rdma_ep_event *ev;
	int ret;

	spin_lock(&ep->ctx->ev_lock);
	ret = rdma_ep_wait_none(ep, types);
	list_for_each_entry(ev, &ep->events, ep_node) {
		if (!(types & BIT(ev->type)) || (ev->stale && types != RDMA_EP_COMPLETES_ANY))
			continue;
		if (t)
			rdma_ep_event_take(ev, t);
		ret = 0;
		break;
	}
	if (ret == -EAGAIN && wait)
		add_wait_queue(&ep->wq, wait);
	spin_unlock(&ep->ctx->ev_lock);
	return ret;
}

static bool rdma_ep_wait_over(struct rdma_ep *ep, u32 types, struct rdma_ep_taken *t, int *ret)
{
	*ret = rdma_ep_wait_take(ep, types, t, NULL);
	return *ret != -EAGAIN;
}

/**
 * rdma_ep_wait_for - wait for an event at an endpoint
 * @ep: the endpoint, for which rdma_ep_wait_begin() was called
 * @types: bits of enum rdma_ep_event_type
 * @t: receives the event
 *
 * Return: 0, -ERESTARTSYS, or why no such event will come: -ECANCELED
 * (destroyed), -ENODEV (removed), -ENODATA (nothing is under way).
 */
static int rdma_ep_wait_for(struct rdma_ep *ep, u32 types, struct rdma_ep_taken *t)
{
	int interrupted, ret;

	if (rdma_ep_wait_over(ep, types, t, &ret))
		return ret;
	/* Not wait_event_interruptible(): that offers to reschedule before it looks. */
	interrupted = __wait_event_interruptible(ep->wq, rdma_ep_wait_over(ep, types, t, &ret));
	return interrupted ?: ret;
}

/**
 * rdma_ep_wait_prepare - find the endpoint of a call that may wait
 * @call: the call
 * @ep: receives the endpoint, with a reference
 * @handle: its handle
 * @types: bits of the events that it may wait for
 * @record_uptr: where the record goes
 * @record_len: bytes there
 *
 * If the call waits, it does so from here on, so that it cannot miss the event
 * of the operation that it starts. rdma_ep_wait_finish() undoes all this.
 *
 * Return: 0 or a negative errno.
 */
int rdma_ep_wait_prepare(struct rdma_ep_call *call, struct rdma_ep **ep, u32 handle, u32 types,
			 u64 record_uptr, u32 record_len)
{
	struct rdma_ep_hdr *hdr = call->cmd;
	int ret;

	call->record_uptr = record_uptr;
	call->record_len = record_len;
	ret = rdma_ep_record_check(call, record_uptr, record_len);
	if (ret)
		return ret;
	if ((hdr->flags & (RDMA_EP_F_WAIT | RDMA_EP_F_RESUME)) == RDMA_EP_F_RESUME)
		return rdma_ep_fail(call, -EINVAL, RDMA_EP_REASON_VALUE,
				    "RDMA_EP_F_RESUME without RDMA_EP_F_WAIT");
	*ep = rdma_ep_get(call, handle);
	if (IS_ERR(*ep))
		return PTR_ERR(*ep);
	if (hdr->flags & RDMA_EP_F_WAIT)
		rdma_ep_wait_begin(*ep, types);
	return 0;
}

void rdma_ep_wait_finish(struct rdma_ep_call *call, struct rdma_ep *ep)
{
	struct rdma_ep_hdr *hdr = call->cmd;

	if (call->wait_ep) /* the wait has only begun */
		return;
	if (hdr->flags & RDMA_EP_F_WAIT)
		rdma_ep_wait_end(ep);
	rdma_ep_put(ep);
}

/*
 * A signal ends the wait, not the operation. Mark the caller's struct, so that
 * the call waits only if it is restarted (SA_RESTART); a caller that gets to
 * see EINTR decides for itself.
 */
static int rdma_ep_wait_interrupted(struct rdma_ep_call *call)
{
	struct rdma_ep_hdr *hdr = call->cmd;
	struct rdma_ep_hdr __user *uhdr = call->uarg;

	if (put_user(hdr->flags | RDMA_EP_F_RESUME, &uhdr->flags))
		return -EINTR;
	return -ERESTARTSYS;
}

/**
 * rdma_ep_wait_then - wait for an event, and go on with it
 * @call: the call
 * @ep: the endpoint, for which rdma_ep_wait_begin() was called
 * @types: bits of enum rdma_ep_event_type
 * @done: what to do then
 *
 * Return: what @done returns, or -EIOCBQUEUED: it is called later, and the
 * endpoint's reference and the wait are left to who calls it.
 */
int rdma_ep_wait_then(struct rdma_ep_call *call, struct rdma_ep *ep, u32 types,
		      rdma_ep_done_fn *done)
{
	struct rdma_ep_taken t;
	int ret;

	if (call->async) {
		call->wait_ep = ep;
		call->wait_types = types;
		call->done = done;
		return -EIOCBQUEUED;
	}
	/* It will be on the channel: now, or when it has happened. */
	if (rdma_ep_nonblock(ep))
		ret = rdma_ep_wait_take(ep, types, NULL, NULL) ?: -EAGAIN;
	else
		ret = rdma_ep_wait_for(ep, types, &t);
	return done(call, ep, ret, &t);
}

/* Reports how an operation has ended. Of type rdma_ep_done_fn. */
int rdma_ep_wait_reported(struct rdma_ep_call *call, struct rdma_ep *ep, int ret,
			  struct rdma_ep_taken *t)
{
	struct rdma_ep_record rec;

	if (ret == -ERESTARTSYS)
		return rdma_ep_wait_interrupted(call);
	if (ret)
		return rdma_ep_fail_wait(call, ep, ret);

	rdma_ep_record_from_event(&rec, t, call->record_len);
	ret = rdma_ep_record_to_user(&rec, call->record_uptr, call->record_len);
	if (ret) {
		rdma_ep_event_untake(t);
		return ret;
	}
	rdma_ep_explain(call, ep, t);
	rdma_ep_event_done(t);
	return 0;
}

/**
 * rdma_ep_wait_report - wait for what completes an operation, and report it,
 *	if that is what the caller has asked for
 * @call: the call, for which rdma_ep_wait_prepare() was called
 * @ep: the endpoint
 * @types: bits of enum rdma_ep_event_type
 *
 * Return: 0 or a negative errno; -ENODATA as rdma_ep_wait_for().
 */
int rdma_ep_wait_report(struct rdma_ep_call *call, struct rdma_ep *ep, u32 types)
{
	struct rdma_ep_hdr *hdr = call->cmd;

	if (!(hdr->flags & RDMA_EP_F_WAIT))
		return 0;
	return rdma_ep_wait_then(call, ep, types, rdma_ep_wait_reported);
}

/* Report an event that was taken, with the new endpoint that it may bring. */
static int rdma_ep_wait_deliver(struct rdma_ep_call *call, struct rdma_ep_taken *t)
{
	struct rdma_ep_wait *cmd = call->cmd;
	struct rdma_ep_new_channel want = {};
	struct rdma_ep *child = rdma_ep_event_child(t);
	struct rdma_ep_record rec;
	int ret;

	if (child) {
		ret = rdma_ep_want_channel(call, &want, cmd->child_channel);
		if (ret)
			goto untake;
		cmd->child_channel = want.fd;
		child->cookie = cmd->child_cookie;
	}
	rdma_ep_record_from_event(&rec, t, cmd->record_len);
	ret = rdma_ep_record_to_user(&rec, cmd->record_uptr, cmd->record_len);
	if (!ret && want.file)
		ret = rdma_ep_respond(call);
	if (ret)
		goto unwant;

	if (child) {
		rdma_ep_event_publish(t, want.channel);
		rdma_ep_keep_channel(&want);
	}
	rdma_ep_explain(call, t->ep, t);
	rdma_ep_event_done(t);
	return 0;

unwant:
	rdma_ep_unwant_channel(&want);
untake:
	rdma_ep_event_untake(t);
	return ret;
}

static int rdma_ep_wait_delivered(struct rdma_ep_call *call, struct rdma_ep *ep, int ret,
				  struct rdma_ep_taken *t)
{
	return ret ? rdma_ep_fail_wait(call, ep, ret) : rdma_ep_wait_deliver(call, t);
}

int rdma_ep_wait(struct rdma_ep_call *call)
{
	struct rdma_ep_wait *cmd = call->cmd;
	struct rdma_ep_taken t;
	struct rdma_ep *ep;
	int ret;

	ret = rdma_ep_check_new_channel(call, cmd->child_channel);
	if (ret)
		return ret;
	ret = rdma_ep_record_check(call, cmd->record_uptr, cmd->record_len);
	if (ret)
		return ret;
	ep = rdma_ep_get(call, cmd->ep);
	if (IS_ERR(ep))
		return PTR_ERR(ep);

	if (cmd->hdr.flags & RDMA_EP_WAIT_NOWAIT || (!call->async && rdma_ep_nonblock(ep))) {
		ret = rdma_ep_wait_take(ep, RDMA_EP_COMPLETES_ANY, &t, NULL);
		ret = rdma_ep_wait_delivered(call, ep, ret, &t);
	} else {
		rdma_ep_wait_begin(ep, RDMA_EP_COMPLETES_ANY);
		ret = rdma_ep_wait_then(call, ep, RDMA_EP_COMPLETES_ANY, rdma_ep_wait_delivered);
		if (ret == -EIOCBQUEUED)
			return ret;
		rdma_ep_wait_end(ep);
	}
	rdma_ep_put(ep);
	return ret;
}
