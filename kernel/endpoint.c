// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * An endpoint's life: made in private, answered for, published; then found by
 * handle until one thread wins the right to tear it down. A handle is free
 * again only when nothing of its endpoint is left in the context.
 */
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>

#include "private.h"
#include "trace.h"

/* Not a kmalloc size: there may be very many of them. */
static struct kmem_cache *rdma_ep_cache;

int rdma_ep_cache_init(void)
{
	rdma_ep_cache = KMEM_CACHE(rdma_ep, SLAB_ACCOUNT);
	return rdma_ep_cache ? 0 : -ENOMEM;
}

/* No endpoint is left; some may still be on their way through RCU. */
void rdma_ep_cache_exit(void)
{
	rcu_barrier();
	kmem_cache_destroy(rdma_ep_cache);
}

static void rdma_ep_close_work(struct work_struct *work)
{
	struct rdma_ep *ep = container_of(work, struct rdma_ep, close_work);

	rdma_ep_close_id(ep);
	rdma_ep_put(ep);
}

static void rdma_ep_close_id_on(struct workqueue_struct *wq, struct rdma_ep *ep)
{
	kref_get(&ep->kref);
	if (!queue_work(wq, &ep->close_work))
		rdma_ep_put(ep);
}

/* Destroy its rdma_cm_id in the background. */
void rdma_ep_close_id_later(struct rdma_ep *ep)
{
	rdma_ep_close_id_on(rdma_ep_destroy_wq, ep);
}

/* Likewise, but a device's removal waits for it: it does not stand behind others. */
void rdma_ep_close_id_removed(struct rdma_ep *ep)
{
	if (cancel_work(&ep->close_work))
		rdma_ep_put(ep);
	rdma_ep_close_id_on(rdma_ep_removal_wq, ep);
}

/**
 * rdma_ep_alloc - make an endpoint that nobody can see
 * @ctx: the context
 * @gfp: how to allocate
 *
 * Its handle is reserved. rdma_ep_publish() lets it be found; until then
 * rdma_ep_teardown() undoes it, or, in rdma_cm's handler, rdma_ep_unalloc().
 *
 * Return: the endpoint, or ERR_PTR(-ENOSPC, -EDQUOT or -ENOMEM).
 */
struct rdma_ep *rdma_ep_alloc(struct rdma_ep_ctx *ctx, gfp_t gfp)
{
	struct rdma_ep *ep;
	int ret;

	if (atomic_inc_return(&ctx->num_eps) > READ_ONCE(rdma_ep_max_endpoints)) {
		ret = -ENOSPC;
		goto uncount;
	}
	ret = rdma_ep_user_charge(ctx->user);
	if (ret)
		goto uncount;
	ep = rdma_ep_test_should_fail() ? NULL : kmem_cache_zalloc(rdma_ep_cache, gfp);
	if (!ep) {
		ret = -ENOMEM;
		goto uncharge;
	}
	kref_init(&ep->kref);
	mutex_init(&ep->lock);
	INIT_WORK(&ep->close_work, rdma_ep_close_work);
	INIT_LIST_HEAD(&ep->groups);
	INIT_LIST_HEAD(&ep->channel_node);
	INIT_LIST_HEAD(&ep->events);
	init_waitqueue_head(&ep->wq);
	rdma_ep_event_init(&ep->device, ep);

	ret = xa_alloc_cyclic(&ctx->eps, &ep->handle, NULL, XA_LIMIT(1, INT_MAX), &ctx->next_handle,
			      gfp);
	if (ret < 0)
		goto free;
	ep->serial = atomic64_inc_return(&ctx->last_serial);
	ep->born_s = ktime_get_seconds();
	kref_get(&ctx->kref);
	ep->ctx = ctx;
	rdma_ep_count(ctx, RDMA_EP_COUNT_EP_CREATED);
	rdma_ep_test_add(RDMA_EP_TEST_ENDPOINT, 1);
	return ep;

free:
	kmem_cache_free(rdma_ep_cache, ep);
uncharge:
	rdma_ep_user_uncharge(ctx->user);
uncount:
	atomic_dec(&ctx->num_eps);
	return ERR_PTR(ret);
}

/* Undo rdma_ep_alloc(), and no more. Unlike teardown it takes no mutex. */
void rdma_ep_unalloc(struct rdma_ep *ep)
{
	trace_rdma_ep_destroyed(ep->ctx->number, ep->handle);
	rdma_ep_count(ep->ctx, RDMA_EP_COUNT_EP_DESTROYED);
	xa_erase(&ep->ctx->eps, ep->handle);
	rdma_ep_user_uncharge(ep->ctx->user);
	atomic_dec(&ep->ctx->num_eps);
	rdma_ep_put(ep);
}

static void rdma_ep_free_rcu(struct rcu_head *rcu)
{
	kmem_cache_free(rdma_ep_cache, container_of(rcu, struct rdma_ep, rcu));
}

void rdma_ep_release(struct kref *kref)
{
	struct rdma_ep *ep = container_of(kref, struct rdma_ep, kref);

	kfree(ep->conn);
	rdma_ep_test_add(RDMA_EP_TEST_ENDPOINT, -1);
	rdma_ep_ctx_put(ep->ctx);
	call_rcu(&ep->rcu, rdma_ep_free_rcu);
}

/* What an endpoint needs before it is part of a connection, for rdma_ep::conn. */
struct rdma_ep_conn *rdma_ep_conn_alloc(struct rdma_ep *ep, gfp_t gfp)
{
	struct rdma_ep_conn *conn;

	if (rdma_ep_test_should_fail())
		return NULL;
	conn = kzalloc(sizeof(*conn), gfp);
	if (conn) {
		rdma_ep_event_init(&conn->outcome, ep);
		rdma_ep_event_init(&conn->disconnected, ep);
		rdma_ep_event_init(&conn->timewait, ep);
	}
	return conn;
}

/* Context: the caller holds ev_lock. */
void rdma_ep_set_state(struct rdma_ep *ep, u8 state)
{
	lockdep_assert_held(&ep->ctx->ev_lock);

	if (state == RDMA_EP_STATE_CONNECTED && state != ep->state)
		rdma_ep_count(ep->ctx, ep->state == RDMA_EP_STATE_ACCEPTING ?
					       RDMA_EP_COUNT_ACCEPTED :
					       RDMA_EP_COUNT_CONNECTED);
	if (state != ep->state)
		trace_rdma_ep_state(ep->ctx->number, ep->handle, ep->state, state);
	WRITE_ONCE(ep->state, state);
}

/**
 * rdma_ep_get - find an endpoint
 * @call: the call
 * @handle: its handle
 *
 * Return: the endpoint with a reference, or ERR_PTR(-ENOENT).
 */
struct rdma_ep *rdma_ep_get(struct rdma_ep_call *call, u32 handle)
{
	struct rdma_ep *ep;

	call->ep = handle;
	rcu_read_lock();
	ep = xa_load(&call->ctx->eps, handle);
	if (ep && !kref_get_unless_zero(&ep->kref))
		ep = NULL;
	rcu_read_unlock();
	if (ep)
		return ep;
	return ERR_PTR(rdma_ep_fail(call, -ENOENT, RDMA_EP_REASON_HANDLE,
				    "no endpoint %u in this context", handle));
}

/**
 * rdma_ep_publish - let an endpoint be found
 * @ep: the endpoint. The reference of its maker goes to the context.
 * @channel: the channel it points at, or NULL
 *
 * Cannot fail. If the context has been closed meanwhile, the endpoint is torn
 * down.
 */
void rdma_ep_publish(struct rdma_ep *ep, struct rdma_ep_channel *channel)
{
	struct rdma_ep_ctx *ctx = ep->ctx;
	bool dead;

	spin_lock(&ctx->ev_lock);
	dead = ctx->dead;
	if (!dead) {
		rdma_ep_set_channel(ep, channel);
		/* Needs no memory: the entry is reserved. */
		xa_store(&ctx->eps, ep->handle, ep, 0);
	}
	spin_unlock(&ctx->ev_lock);

	if (dead)
		rdma_ep_teardown(ep);
}

/* Win the right to tear down: only one caller gets true. */
bool rdma_ep_unpublish(struct rdma_ep *ep)
{
	return xa_cmpxchg(&ep->ctx->eps, ep->handle, ep, XA_ZERO_ENTRY, 0) == ep;
}

/* Until every task has slept since. Those who wait together share a grace period. */
static void rdma_ep_await_tasks(void)
{
	static DEFINE_MUTEX(lock);
	static unsigned long begun, ended;
	unsigned long before = READ_ONCE(begun);

	mutex_lock(&lock);
	if (ended == before) {
		WRITE_ONCE(begun, begun + 1);
		synchronize_rcu_tasks();
		ended = begun;
	}
	mutex_unlock(&lock);
}

/*
 * rdma_cm tells of a removal, drops the id's handler lock, and only then gives up
 * its query for a route, for which it looks at the id's device. A destroyed id has
 * none. In between it does not sleep. (It may be preempted; without
 * CONFIG_TASKS_RCU that would go unnoticed.)
 */
static void rdma_ep_await_removal(struct rdma_ep *ep, struct rdma_cm_id *id)
{
	bool query;

	rdma_lock_handler(id);
	spin_lock(&ep->ctx->ev_lock);
	query = ep->query_removed;
	spin_unlock(&ep->ctx->ev_lock);
	rdma_unlock_handler(id);
	if (query)
		rdma_ep_await_tasks();
}

/* Destroy the rdma_cm_id, with no lock held that its handler might wait for. */
void rdma_ep_close_id(struct rdma_ep *ep)
{
	struct rdma_cm_id *id;
	u8 state;

	mutex_lock(&ep->lock);
	id = ep->id;
	ep->id = NULL;
	mutex_unlock(&ep->lock);
	if (!id)
		return;
	rdma_ep_test_stall();
	state = READ_ONCE(ep->state);
	if (state == RDMA_EP_STATE_REMOVED || state == RDMA_EP_STATE_RESOLVING_ROUTE)
		rdma_ep_await_removal(ep, id);
	rdma_destroy_id(id);
}

/* It is to go: no more events, and threads that wait at it are woken. */
static void rdma_ep_mute_locked(struct rdma_ep *ep)
{
	lockdep_assert_held(&ep->ctx->ev_lock);

	ep->dead = true;
	rdma_ep_set_channel(ep, NULL);
	wake_up_all(&ep->wq);
}

/**
 * rdma_ep_teardown - undo an endpoint
 * @ep: the endpoint, not to be found any more; the reference of its maker is
 *	dropped
 *
 * Requests that nobody has read are rejected by the way. When it returns, the
 * rdma_cm_id is gone, and with it what rdma_cm did for it; after the removal of
 * its device it may be about to go in rdma_ep_removal_wq, and tells nothing more.
 *
 * Return: how many events nobody has read.
 */
unsigned int rdma_ep_teardown(struct rdma_ep *ep)
{
	struct rdma_ep_event *ev, *next;
	unsigned int discarded = 0;
	LIST_HEAD(events);

	spin_lock(&ep->ctx->ev_lock);
	if (!ep->dead)
		rdma_ep_mute_locked(ep);
	list_splice_init(&ep->events, &events);
	spin_unlock(&ep->ctx->ev_lock);

	rdma_ep_close_id(ep);
	rdma_ep_deadline_free(ep);
	if (cancel_work_sync(&ep->close_work))
		rdma_ep_put(ep);

	list_for_each_entry_safe(ev, next, &events, ep_node) {
		list_del_init(&ev->ep_node);
		rdma_ep_event_free(ev);
		rdma_ep_count(ep->ctx, RDMA_EP_COUNT_EVENTS_DISCARDED);
		discarded++;
	}
	rdma_ep_group_free_all(ep);
	rdma_ep_event_unalloc(ep->op_event);
	ep->op_event = NULL;

	rdma_ep_unalloc(ep);
	return discarded;
}

/*
 * Take an endpoint from where it can be found; who waits at it learns that it
 * goes. What is left is for the caller to do: rdma_ep_teardown(), or, for some on
 * a list by their channel_node, rdma_ep_teardown_all(). False if another thread
 * destroys the endpoint already.
 */
static bool rdma_ep_claim(struct rdma_ep *ep)
{
	if (!rdma_ep_unpublish(ep))
		return false;
	spin_lock(&ep->ctx->ev_lock);
	rdma_ep_mute_locked(ep);
	spin_unlock(&ep->ctx->ev_lock);
	return true;
}

/*
 * One of many. rdma_destroy_id() sleeps for what is on the wire, so it is done for
 * all of them at once.
 */
static bool rdma_ep_claim_one(struct rdma_ep *ep, struct list_head *list)
{
	if (!rdma_ep_claim(ep))
		return false;
	list_add_tail(&ep->channel_node, list);
	rdma_ep_close_id_later(ep);
	return true;
}

/* Returns how many of their events nobody has read. */
unsigned int rdma_ep_teardown_all(struct list_head *list)
{
	struct rdma_ep *ep, *next;
	unsigned int discarded = 0;

	list_for_each_entry_safe(ep, next, list, channel_node) {
		list_del_init(&ep->channel_node);
		discarded += rdma_ep_teardown(ep);
	}
	return discarded;
}

/**
 * rdma_ep_close_all - tear down what a context holds
 * @ctx: the context, whose file is closed
 */
void rdma_ep_close_all(struct rdma_ep_ctx *ctx)
{
	struct rdma_ep_remains *remains = rdma_ep_remains_alloc();
	struct rdma_ep_channel *channel;
	unsigned long handle;
	struct rdma_ep *ep;
	LIST_HEAD(eps);

	spin_lock(&ctx->ev_lock);
	ctx->dead = true;
	list_for_each_entry(channel, &ctx->channels, node)
		wake_up_interruptible_all(&channel->wq);
	spin_unlock(&ctx->ev_lock);

	xa_for_each(&ctx->eps, handle, ep) {
		rdma_ep_claim_one(ep, &eps);
		cond_resched();
	}
	if (remains) {
		list_splice(&eps, &remains->eps);
		/* One of the kernel's threads has other files to close. */
		rdma_ep_remains_finish(remains, !(current->flags & PF_KTHREAD));
	} else {
		rdma_ep_teardown_all(&eps);
	}
}

/* The endpoint is gone. @discarded is below 0 if nobody is there to be told. */
static int rdma_ep_destroyed(struct rdma_ep_call *call, struct rdma_ep *ep, int discarded,
			     struct rdma_ep_taken *t)
{
	struct rdma_ep_destroy *cmd = call->cmd;
	u32 i;

	if (discarded < 0)
		return discarded;
	cmd->out_discarded = discarded;
	cmd->out_idle = 0;
	for (i = 0; i < cmd->num_fds; i++)
		if (rdma_ep_file_idle(cmd->fd[i]))
			cmd->out_idle |= 1 << i;

	/* A bad address can only cost the count. */
	return rdma_ep_respond(call);
}

/* Returns how many of its events nobody has read, 0 if that is not known yet. */
static unsigned int rdma_ep_destroy_lingering(struct rdma_ep *ep, bool wait)
{
	struct rdma_ep_remains *remains = rdma_ep_remains_alloc();

	if (!remains)
		return rdma_ep_teardown(ep);
	list_add(&ep->channel_node, &remains->eps);
	return rdma_ep_remains_finish(remains, wait);
}

int rdma_ep_destroy(struct rdma_ep_call *call)
{
	struct rdma_ep_destroy *cmd = call->cmd;
	struct rdma_ep *ep;
	bool lingered, linger;
	int discarded, ret;

	if (cmd->num_fds > RDMA_EP_DESTROY_FDS)
		return rdma_ep_fail(call, -EINVAL, RDMA_EP_REASON_VALUE,
				    "%u file descriptors, there is room for %u", cmd->num_fds,
				    RDMA_EP_DESTROY_FDS);
	ep = rdma_ep_get(call, cmd->ep);
	if (IS_ERR(ep))
		return PTR_ERR(ep);
	lingered = rdma_ep_may_linger(ep);
	if (lingered && call->no_block) {
		call->blocks = true;
		ret = -EAGAIN;
		goto put;
	}
	if (!rdma_ep_claim(ep)) {
		ret = rdma_ep_fail(call, -ENOENT, RDMA_EP_REASON_HANDLE,
				   "endpoint %u is being destroyed already", cmd->ep);
		goto put;
	}
	/* A connect may have begun just before. From now on none can. */
	linger = rdma_ep_may_linger(ep);
	if (call->async && !linger) {
		call->wait_ep = ep;
		call->done = rdma_ep_destroyed;
		return -EIOCBQUEUED;
	}
	/* io_uring would have given it to a worker if that had been seen in time. */
	discarded = linger ? rdma_ep_destroy_lingering(ep, lingered || !call->async) :
			     rdma_ep_teardown(ep);
	ret = rdma_ep_destroyed(call, ep, discarded, NULL);
put:
	rdma_ep_put(ep);
	return ret;
}

static int rdma_ep_claim_many(struct rdma_ep_call *call, struct list_head *list)
{
	struct rdma_ep_destroy_many *cmd = call->cmd;
	u32 __user *handles = u64_to_user_ptr(cmd->eps_uptr);
	struct rdma_ep *ep;
	u32 handle, i;

	for (i = 0; i < cmd->count; i++) {
		/* There may be a million of them, and none an endpoint. */
		cond_resched();
		if (fatal_signal_pending(current))
			return -EINTR;
		if (get_user(handle, &handles[i]))
			return -EFAULT;
		ep = rdma_ep_get(call, handle);
		if (IS_ERR(ep))
			continue;
		if (rdma_ep_claim_one(ep, list))
			cmd->out_destroyed++;
		rdma_ep_put(ep);
	}
	return 0;
}

int rdma_ep_destroy_many(struct rdma_ep_call *call)
{
	struct rdma_ep_destroy_many *cmd = call->cmd;
	struct rdma_ep_remains *remains;
	int ret;

	if (cmd->count > RDMA_EP_DESTROY_MAX)
		return rdma_ep_fail(call, -EINVAL, RDMA_EP_REASON_VALUE,
				    "%u endpoints, one call takes %u", cmd->count,
				    RDMA_EP_DESTROY_MAX);
	remains = rdma_ep_remains_alloc();
	if (!remains)
		return -ENOMEM;

	cmd->out_destroyed = 0;
	cmd->out_discarded = 0;
	ret = rdma_ep_claim_many(call, &remains->eps);
	cmd->out_discarded =
		rdma_ep_remains_finish(remains, !(cmd->hdr.flags & RDMA_EP_DESTROY_NOWAIT));
	/* Handles that name nothing are no failure of the call. */
	call->reason.code = RDMA_EP_REASON_NONE;
	return ret ?: rdma_ep_respond(call);
}

/* Let the events of a published endpoint go to @channel. False if it is dead. */
bool rdma_ep_point_at(struct rdma_ep *ep, struct rdma_ep_channel *channel)
{
	bool alive;

	spin_lock(&ep->ctx->ev_lock);
	alive = !ep->dead;
	if (alive)
		rdma_ep_set_channel(ep, channel);
	spin_unlock(&ep->ctx->ev_lock);
	return alive;
}

int rdma_ep_attach(struct rdma_ep_call *call)
{
	struct rdma_ep_attach *cmd = call->cmd;
	struct rdma_ep_new_channel want;
	struct rdma_ep *ep;
	int ret;

	ep = rdma_ep_get(call, cmd->ep);
	if (IS_ERR(ep))
		return PTR_ERR(ep);
	ret = rdma_ep_want_channel(call, &want, cmd->channel);
	if (ret)
		goto put;
	if (want.file) {
		cmd->channel = want.fd;
		ret = rdma_ep_respond(call);
		if (ret)
			goto unwant;
	}

	if (!rdma_ep_point_at(ep, want.channel)) {
		ret = rdma_ep_fail_no_id(call, ep);
		goto unwant;
	}
	rdma_ep_keep_channel(&want);
	rdma_ep_put(ep);
	return 0;

unwant:
	rdma_ep_unwant_channel(&want);
put:
	rdma_ep_put(ep);
	return ret;
}
