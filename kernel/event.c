// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Events between the moment they happen and the moment they are reported.
 *
 * An event is queued on its endpoint and, unless somebody waits for it in an
 * ioctl, on the endpoint's channel. Whoever reports it takes it off both,
 * copies it out without a lock, and either is done with it or puts it back
 * where it was. Everything here is guarded by rdma_ep_ctx::ev_lock.
 */
#include <linux/ktime.h>
#include <linux/poll.h>
#include <linux/slab.h>

#include "private.h"
#include "trace.h"

/* RDMA_EP_EVENT_USER events that may wait at one endpoint. */
#define RDMA_EP_MAX_USER 1024

void rdma_ep_event_init(struct rdma_ep_event *ev, struct rdma_ep *ep)
{
	INIT_LIST_HEAD(&ev->channel_node);
	INIT_LIST_HEAD(&ev->ep_node);
	ev->ep = ep;
}

/**
 * rdma_ep_event_alloc - memory for an event that carries something
 * @ep: the endpoint it will happen on
 * @room: bytes of private data that it can take
 * @gfp: how to allocate
 *
 * Return: the event, for rdma_ep_event_queue() or rdma_ep_event_unalloc(), or
 * NULL.
 */
struct rdma_ep_event_more *rdma_ep_event_alloc(struct rdma_ep *ep, u8 room, gfp_t gfp)
{
	struct rdma_ep_event_more *more;

	if (rdma_ep_test_should_fail())
		return NULL;
	more = kzalloc(struct_size(more, data, room), gfp);
	if (more) {
		rdma_ep_test_add(RDMA_EP_TEST_EVENT_MORE, 1);
		rdma_ep_event_init(&more->ev, ep);
		more->ev.more = true;
		more->room = room;
		this_cpu_add(ep->ctx->stats->count[RDMA_EP_COUNT_EVENT_BYTES],
			     struct_size(more, data, room));
	}
	return more;
}

/* Frees the memory of an event that was never queued, or NULL. */
void rdma_ep_event_unalloc(struct rdma_ep_event_more *more)
{
	if (more) {
		this_cpu_sub(more->ev.ep->ctx->stats->count[RDMA_EP_COUNT_EVENT_BYTES],
			     struct_size(more, data, more->room));
		rdma_ep_test_add(RDMA_EP_TEST_EVENT_MORE, -1);
	}
	kfree(more);
}

/* Frees an event that is on no list. A request takes its endpoint with it. */
void rdma_ep_event_free(struct rdma_ep_event *ev)
{
	struct rdma_ep_event_more *more;

	if (!ev->more)
		return;
	more = container_of(ev, struct rdma_ep_event_more, ev);
	if (more->child)
		rdma_ep_teardown(more->child);
	rdma_ep_event_unalloc(more);
}

/* Put it on its endpoint's channel, after @prev. */
static void rdma_ep_event_on_channel(struct rdma_ep_event *ev, struct list_head *prev)
{
	struct rdma_ep_channel *channel = ev->ep->channel;

	list_add(&ev->channel_node, prev);
	WRITE_ONCE(channel->num_events, channel->num_events + 1);
}

static void rdma_ep_event_wake_channel(struct rdma_ep_channel *channel)
{
	wake_up_interruptible_poll(&channel->wq, EPOLLIN | EPOLLRDNORM);
}

/* Take it off the channel again, if it is there. Context: the caller holds ev_lock. */
void rdma_ep_event_off_channel(struct rdma_ep_event *ev)
{
	struct rdma_ep_channel *channel = ev->ep->channel;

	if (list_empty(&ev->channel_node))
		return;
	list_del_init(&ev->channel_node);
	WRITE_ONCE(channel->num_events, channel->num_events - 1);
}

/* Put it on the channel, unless a waiter at the endpoint will take it: was it put there? */
static bool rdma_ep_event_to_channel(struct rdma_ep_event *ev)
{
	struct rdma_ep_channel *channel = ev->ep->channel;

	if (!channel || ev->ep->wanted & BIT(ev->type))
		return false;
	rdma_ep_event_on_channel(ev, channel->events.prev);
	return true;
}

/**
 * rdma_ep_event_queue - let an event be seen
 * @ev: the event. If it is one of the endpoint's slots and still waits to be
 *	read, it is reported once, as it was first; except that the removal of a
 *	device takes the place of what happened to it before.
 * @type: what happened
 * @status: how
 *
 * Context: the caller holds ev_lock and has checked that the endpoint is not
 * dead.
 */
void rdma_ep_event_queue(struct rdma_ep_event *ev, u8 type, int status)
{
	struct rdma_ep *ep = ev->ep;

	lockdep_assert_held(&ep->ctx->ev_lock);

	if (!list_empty(&ev->ep_node)) {
		if (type == RDMA_EP_EVENT_DEVICE_REMOVAL) {
			this_cpu_dec(ep->ctx->stats->events[ev->type]);
			this_cpu_inc(ep->ctx->stats->events[type]);
			ev->type = type;
			ev->stale = false;
			ev->time_ns = ktime_get_ns();
			trace_rdma_ep_event_queued(ep->ctx->number, ep->handle, type, ev->status);
		}
		/* Nobody is told, but what was under way may have ended. */
		wake_up_all(&ep->wq);
		return;
	}
	ev->type = type;
	ev->status = status;
	ev->stale = false;
	ev->time_ns = ktime_get_ns();
	list_add_tail(&ev->ep_node, &ep->events);
	this_cpu_inc(ep->ctx->stats->events[type]);
	if (status == -ETIMEDOUT)
		rdma_ep_count(ep->ctx, RDMA_EP_COUNT_TIMEOUTS);
	trace_rdma_ep_event_queued(ep->ctx->number, ep->handle, type, status);
	if (ep->waiters)
		wake_up_all(&ep->wq);
	if (rdma_ep_event_to_channel(ev))
		rdma_ep_event_wake_channel(ep->channel);
}

/* Context: the caller holds ev_lock. */
bool rdma_ep_event_is_waiting(struct rdma_ep *ep, u8 type)
{
	struct rdma_ep_event *ev;

	lockdep_assert_held(&ep->ctx->ev_lock);

	list_for_each_entry(ev, &ep->events, ep_node)
		if (ev->type == type)
			return true;
	return false;
}

/* Where an event waits to be read that nothing was allocated for, or NULL. */
static struct rdma_ep_event *rdma_ep_event_slot(struct rdma_ep *ep, u8 type)
{
	switch (type) {
	case RDMA_EP_EVENT_ADDR_CHANGE:
	case RDMA_EP_EVENT_DEVICE_REMOVAL:
		return &ep->device;
	case RDMA_EP_EVENT_DISCONNECTED:
		return ep->conn ? &ep->conn->disconnected : NULL;
	case RDMA_EP_EVENT_TIMEWAIT_EXIT:
		return ep->conn ? &ep->conn->timewait : NULL;
	default:
		return ep->conn ? &ep->conn->outcome : NULL;
	}
}

/**
 * rdma_ep_event_queue_slot - let an event be seen that nothing was allocated for
 * @ep: the endpoint. One that was never part of a connection hears of none.
 * @type: what happened
 * @status: how
 *
 * Context: as rdma_ep_event_queue().
 */
void rdma_ep_event_queue_slot(struct rdma_ep *ep, u8 type, int status)
{
	struct rdma_ep_event *ev = rdma_ep_event_slot(ep, type);

	if (!ev)
		return;
	/* All outcomes share a slot: the last one counts, if it is more than a warning. */
	if (ep->conn && ev == &ep->conn->outcome && type != RDMA_EP_EVENT_UNREACHABLE &&
	    !list_empty(&ev->ep_node)) {
		rdma_ep_event_off_channel(ev);
		list_del_init(&ev->ep_node);
		rdma_ep_count(ep->ctx, RDMA_EP_COUNT_EVENTS_DISCARDED);
	}
	rdma_ep_event_queue(ev, type, status);
}

/**
 * rdma_ep_event_expose - put on the channel what is only at the endpoint
 * @ep: the endpoint. What its waiters want stays there.
 *
 * Context: the caller holds ev_lock.
 */
void rdma_ep_event_expose(struct rdma_ep *ep)
{
	struct rdma_ep_event *ev;
	bool any = false;

	lockdep_assert_held(&ep->ctx->ev_lock);

	list_for_each_entry(ev, &ep->events, ep_node)
		if (list_empty(&ev->channel_node))
			any |= rdma_ep_event_to_channel(ev);
	/* Once for all of them: there may be many, and many who watch. */
	if (any)
		rdma_ep_event_wake_channel(ep->channel);
}

static struct rdma_ep_event_more *rdma_ep_event_request(struct rdma_ep_event *ev)
{
	if (!ev->more || ev->type != RDMA_EP_EVENT_CONNECT_REQUEST)
		return NULL;
	return container_of(ev, struct rdma_ep_event_more, ev);
}

/**
 * rdma_ep_event_take - take an event off its lists, to report it
 * @ev: the event
 * @t: receives it
 *
 * Context: the caller holds ev_lock.
 */
void rdma_ep_event_take(struct rdma_ep_event *ev, struct rdma_ep_taken *t)
{
	lockdep_assert_held(&ev->ep->ctx->ev_lock);

	rdma_ep_event_off_channel(ev);
	list_del_init(&ev->ep_node);
	if (rdma_ep_event_request(ev))
		ev->ep->requests--;
	if (ev->type == RDMA_EP_EVENT_USER)
		ev->ep->num_user--;
	kref_get(&ev->ep->kref);
	t->ep = ev->ep;
	t->ev = ev;
	t->type = ev->type;
	t->status = ev->status;
	t->time_ns = ev->time_ns;
}

/**
 * rdma_ep_event_untake - put an event back: it could not be reported
 * @t: the event
 *
 * It will be the next one read. If the endpoint has died meanwhile, so does
 * the event.
 */
void rdma_ep_event_untake(struct rdma_ep_taken *t)
{
	struct rdma_ep_event *ev = t->ev;
	struct rdma_ep *ep = t->ep;
	bool dead;

	spin_lock(&ep->ctx->ev_lock);
	dead = ep->dead;
	/* A slot may have been filled anew; then that is what will be read. */
	if (!dead && list_empty(&ev->ep_node)) {
		ev->type = t->type;
		ev->status = t->status;
		ev->time_ns = t->time_ns;
		if (rdma_ep_event_request(ev))
			ep->requests++;
		if (ev->type == RDMA_EP_EVENT_USER)
			ep->num_user++;
		list_add(&ev->ep_node, &ep->events);
		if (ep->waiters)
			wake_up_all(&ep->wq);
		/* Also if others wait for it: put there later, it would not be the next. */
		if (ep->channel) {
			rdma_ep_event_on_channel(ev, &ep->channel->events);
			rdma_ep_event_wake_channel(ep->channel);
		}
	} else {
		rdma_ep_count(ep->ctx, RDMA_EP_COUNT_EVENTS_DISCARDED);
	}
	spin_unlock(&ep->ctx->ev_lock);

	if (dead)
		rdma_ep_event_free(ev);
	rdma_ep_put(ep);
}

/* The endpoint that a connection request brings along, or NULL. */
struct rdma_ep *rdma_ep_event_child(struct rdma_ep_taken *t)
{
	struct rdma_ep_event_more *more = rdma_ep_event_request(t->ev);

	return more ? more->child : NULL;
}

/**
 * rdma_ep_event_publish - hand over what an event owns to its reader
 * @t: the event, copied out
 * @channel: where the new endpoint's events go, or NULL
 */
void rdma_ep_event_publish(struct rdma_ep_taken *t, struct rdma_ep_channel *channel)
{
	struct rdma_ep_event_more *more = rdma_ep_event_request(t->ev);

	if (!more)
		return;
	rdma_ep_publish(more->child, channel);
	more->child = NULL;
}

/* The event was reported. What it owned is its reader's now. */
void rdma_ep_event_done(struct rdma_ep_taken *t)
{
	rdma_ep_count(t->ep->ctx, RDMA_EP_COUNT_EVENTS_READ);
	trace_rdma_ep_event_read(t->ep->ctx->number, t->ep->handle, t->type, t->status);
	rdma_ep_event_free(t->ev);
	rdma_ep_put(t->ep);
}

/**
 * rdma_ep_group_discard - drop the events of a multicast group
 * @ep: the endpoint
 * @group: the group's handle
 *
 * Return: how many nobody has read.
 */
unsigned int rdma_ep_group_discard(struct rdma_ep *ep, u32 group)
{
	struct rdma_ep_event_more *more;
	struct rdma_ep_event *ev, *next;
	unsigned int discarded = 0;

	spin_lock(&ep->ctx->ev_lock);
	list_for_each_entry_safe(ev, next, &ep->events, ep_node) {
		if (!ev->more)
			continue;
		more = container_of(ev, struct rdma_ep_event_more, ev);
		if (more->group != group)
			continue;
		rdma_ep_event_off_channel(ev);
		list_del(&ev->ep_node);
		rdma_ep_event_unalloc(more);
		rdma_ep_count(ep->ctx, RDMA_EP_COUNT_EVENTS_DISCARDED);
		discarded++;
	}
	spin_unlock(&ep->ctx->ev_lock);
	return discarded;
}

int rdma_ep_write_event(struct rdma_ep_call *call)
{
	struct rdma_ep_write_event *cmd = call->cmd;
	struct rdma_ep_event_more *more;
	struct rdma_ep *ep;
	int ret = 0;

	if (cmd->event != RDMA_EP_EVENT_USER)
		return rdma_ep_fail(call, -EINVAL, RDMA_EP_REASON_VALUE,
				    "only user events can be written, not type %u", cmd->event);
	ep = rdma_ep_get(call, cmd->ep);
	if (IS_ERR(ep))
		return PTR_ERR(ep);

	more = rdma_ep_event_alloc(ep, 0, GFP_KERNEL_ACCOUNT);
	if (!more) {
		rdma_ep_put(ep);
		return -ENOMEM;
	}
	more->arg = cmd->arg;

	spin_lock(&ep->ctx->ev_lock);
	if (ep->dead) {
		ret = rdma_ep_fail_no_id(call, ep);
	} else if (ep->num_user >= RDMA_EP_MAX_USER) {
		ret = rdma_ep_fail(call, -ENOSPC, RDMA_EP_REASON_LIMIT,
				   "%u user events wait to be read already", ep->num_user);
	} else {
		ep->num_user++;
		rdma_ep_event_queue(&more->ev, RDMA_EP_EVENT_USER, cmd->status);
	}
	spin_unlock(&ep->ctx->ev_lock);

	if (ret)
		rdma_ep_event_unalloc(more);
	rdma_ep_put(ep);
	return ret;
}
