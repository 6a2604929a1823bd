// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Attempts to connect, and disconnects, of which nothing is heard: how long
 * they may take, and how they are given up.
 *
 * An endpoint for which the user has set a time has a timer of its own. For all
 * others one delayed work per context looks for what is overdue.
 */
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "private.h"

/*
 * On the active side ib_cm tries for 100 s to disconnect; it is given up before,
 * and rdma_ep_handle_unasked() does not tell the end a second time. If ib_cm had no
 * memory for the message it never tells.
 */
#define RDMA_EP_DISCONNECT_S rdma_ep_test_patience(90)

/*
 * Who accepts waits as long as the peer has asked for, up to 16 times 2 h 20 min.
 * What rdma_cm's kind asks for is over earlier than this, also when it asks for
 * more by MRA, some 70 s at a time: ib_cm gives up after 16 of them.
 */
#define RDMA_EP_ATTEMPT_S rdma_ep_test_patience(25 * 60)

/**
 * struct rdma_ep_deadline - gives up a connect or an accept that nobody answers
 * @work: runs when the time is over
 * @ep: the endpoint, which waits for the work before it goes
 * @timeout_ms: how long to wait
 */
struct rdma_ep_deadline {
	struct delayed_work work;
	struct rdma_ep *ep;
	u32 timeout_ms;
};

static bool rdma_ep_is_attempting(const struct rdma_ep *ep)
{
	u8 op = READ_ONCE(ep->op);

	return op == RDMA_EP_OP_CONNECT || op == RDMA_EP_OP_ACCEPT;
}

/*
 * A connect or an accept has taken too long. rdma_cm has no call to give it up
 * but to destroy the id. The endpoint stays, to report what happened.
 */
static void rdma_ep_give_up_attempt(struct rdma_ep *ep)
{
	struct rdma_ep_event_more *more = NULL;

	spin_lock(&ep->ctx->ev_lock);
	/* Without its event it is just being completed. */
	if (rdma_ep_is_attempting(ep) && ep->op_event && !ep->dead) {
		swap(more, ep->op_event);
		ep->op = RDMA_EP_OP_NONE;
		rdma_ep_set_state(ep, RDMA_EP_STATE_FAILED);
		rdma_ep_event_queue(&more->ev, RDMA_EP_EVENT_UNREACHABLE, -ETIMEDOUT);
		rdma_ep_close_id_later(ep);
	}
	spin_unlock(&ep->ctx->ev_lock);
}

static void rdma_ep_deadline_work(struct work_struct *work)
{
	struct rdma_ep_deadline *deadline =
		container_of(to_delayed_work(work), struct rdma_ep_deadline, work);

	rdma_ep_give_up_attempt(deadline->ep);
}

/**
 * rdma_ep_deadline_set - how long a connect or an accept of this endpoint may take
 * @ep: the endpoint, locked
 * @timeout_ms: 0 for as long as rdma_cm tries
 *
 * Return: 0 or -ENOMEM.
 */
int rdma_ep_deadline_set(struct rdma_ep *ep, u32 timeout_ms)
{
	lockdep_assert_held(&ep->lock);

	if (!ep->deadline) {
		if (!timeout_ms)
			return 0;
		ep->deadline = kzalloc(sizeof(*ep->deadline), GFP_KERNEL_ACCOUNT);
		if (!ep->deadline)
			return -ENOMEM;
		INIT_DELAYED_WORK(&ep->deadline->work, rdma_ep_deadline_work);
		ep->deadline->ep = ep;
	}
	ep->deadline->timeout_ms = timeout_ms;
	return 0;
}

/* Look for what is overdue in @seconds, or earlier if that was asked for. */
static void rdma_ep_look_in(struct rdma_ep_ctx *ctx, unsigned int seconds)
{
	struct delayed_work *work = &ctx->overdue_work;

	lockdep_assert_held(&ctx->ev_lock);

	/* rdma_ep_is_under_way() is asked without the lock, once that is not pending. */
	smp_mb();
	if (!delayed_work_pending(work) || time_after(work->timer.expires, jiffies + seconds * HZ))
		mod_delayed_work(rdma_ep_timer_wq, work, seconds * HZ);
}

/*
 * Something was begun of which it may be that nothing is ever heard. It is given
 * up in @seconds; 0 if something else sees to that.
 */
static void rdma_ep_watch(struct rdma_ep *ep, unsigned int seconds)
{
	lockdep_assert_held(&ep->ctx->ev_lock);

	ep->conn->since_s = ktime_get_seconds();
	ep->conn->patience_s = seconds;
	if (seconds)
		rdma_ep_look_in(ep->ctx, seconds);
}

/* A disconnect is about to be sent. Context: the caller holds ev_lock. */
void rdma_ep_watch_disconnect(struct rdma_ep *ep)
{
	rdma_ep_watch(ep, RDMA_EP_DISCONNECT_S);
}

/* A connect or an accept has begun. */
void rdma_ep_watch_attempt(struct rdma_ep *ep)
{
	bool own = ep->deadline && ep->deadline->timeout_ms;

	lockdep_assert_held(&ep->lock);

	spin_lock(&ep->ctx->ev_lock);
	rdma_ep_watch(ep, own ? 0 : RDMA_EP_ATTEMPT_S);
	spin_unlock(&ep->ctx->ev_lock);
	if (own)
		mod_delayed_work(rdma_ep_timer_wq, &ep->deadline->work,
				 msecs_to_jiffies(ep->deadline->timeout_ms));
}

/* The endpoint is dead: nothing starts the work any more. */
void rdma_ep_deadline_free(struct rdma_ep *ep)
{
	if (!ep->deadline)
		return;
	cancel_delayed_work_sync(&ep->deadline->work);
	kfree(ep->deadline);
	ep->deadline = NULL;
}

/* The end of the connection does not come: report it in its place. */
static void rdma_ep_give_up_disconnect(struct rdma_ep *ep)
{
	spin_lock(&ep->ctx->ev_lock);
	if (ep->disconnecting && !ep->dead) {
		ep->disconnecting = false;
		ep->lingers = true;
		rdma_ep_set_state(ep, RDMA_EP_STATE_DISCONNECTED);
		rdma_ep_event_queue_slot(ep, RDMA_EP_EVENT_DISCONNECTED, -ETIMEDOUT);
	}
	spin_unlock(&ep->ctx->ev_lock);
}

/* May something be under way of which nothing is ever heard? Needs no lock. */
static bool rdma_ep_is_under_way(const struct rdma_ep *ep)
{
	return READ_ONCE(ep->disconnecting) || rdma_ep_is_attempting(ep);
}

/* Seconds until that is overdue, 0 if it is, INT_MAX if nobody cares. */
static int rdma_ep_seconds_left(struct rdma_ep *ep)
{
	int left = INT_MAX;

	spin_lock(&ep->ctx->ev_lock);
	if (rdma_ep_is_under_way(ep) && ep->conn->patience_s) {
		left = ep->conn->since_s + ep->conn->patience_s - (u32)ktime_get_seconds();
		left = max(left, 0);
	}
	spin_unlock(&ep->ctx->ev_lock);
	return left;
}

/*
 * rdma_disconnect() does not tell when its message could not be sent, and no
 * event comes then. A peer may ask for hours to answer an accept, and never do.
 * A device may keep to itself that it could not send. Nobody may wait for any of
 * that for ever. This is queued for the first of the context that may become
 * overdue.
 */
void rdma_ep_overdue_work(struct work_struct *work)
{
	struct rdma_ep_ctx *ctx =
		container_of(to_delayed_work(work), struct rdma_ep_ctx, overdue_work);
	unsigned long handle;
	int left, next = INT_MAX;
	struct rdma_ep *ep;

	rcu_read_lock();
	xa_for_each(&ctx->eps, handle, ep) {
		if (!rdma_ep_is_under_way(ep) || !kref_get_unless_zero(&ep->kref))
			continue;
		left = rdma_ep_seconds_left(ep);
		if (left) {
			next = min(next, left);
		} else {
			rdma_ep_give_up_disconnect(ep);
			rdma_ep_give_up_attempt(ep);
		}
		rdma_ep_put(ep);
	}
	rcu_read_unlock();

	spin_lock(&ctx->ev_lock);
	if (next != INT_MAX)
		rdma_ep_look_in(ctx, next);
	spin_unlock(&ctx->ev_lock);
}
