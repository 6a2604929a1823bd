// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Endpoints that are torn down behind the back of who destroys them.
 *
 * rdma_destroy_id() waits until the device has sent what ib_cm gave it. One whose
 * link has gone may keep it for ever. Nobody waits longer than RDMA_EP_DESTROY_S;
 * a work item does the rest.
 */
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>

#include "private.h"

#define RDMA_EP_DESTROY_S rdma_ep_test_patience(10)

static void rdma_ep_remains_release(struct kref *kref)
{
	kfree(container_of(kref, struct rdma_ep_remains, kref));
}

static void rdma_ep_remains_work(struct work_struct *work)
{
	struct rdma_ep_remains *remains = container_of(work, struct rdma_ep_remains, work);

	remains->discarded = rdma_ep_teardown_all(&remains->eps);
	complete(&remains->done);
	kref_put(&remains->kref, rdma_ep_remains_release);
}

/**
 * rdma_ep_remains_alloc - memory for endpoints that are to go
 *
 * It is not charged to the control group: who destroys gives back more, and must
 * be able to when the group is full.
 *
 * Return: none yet, or NULL. They go with rdma_ep_remains_finish().
 */
struct rdma_ep_remains *rdma_ep_remains_alloc(void)
{
	struct rdma_ep_remains *remains = kmalloc(sizeof(*remains), GFP_KERNEL);

	if (!remains)
		return NULL;
	kref_init(&remains->kref);
	INIT_WORK(&remains->work, rdma_ep_remains_work);
	INIT_LIST_HEAD(&remains->eps);
	init_completion(&remains->done);
	return remains;
}

/* Threads for what would wait in the queue: how many there are, and may be */
static atomic_t rdma_ep_remains_threads;
#define RDMA_EP_REMAINS_THREADS 64

static int rdma_ep_remains_thread(void *arg)
{
	struct rdma_ep_remains *remains = arg;

	rdma_ep_remains_work(&remains->work);
	atomic_dec(&rdma_ep_remains_threads);
	module_put_and_kthread_exit(0);
}

static bool rdma_ep_remains_run(struct rdma_ep_remains *remains)
{
	if (!atomic_add_unless(&rdma_ep_remains_threads, 1, RDMA_EP_REMAINS_THREADS))
		return false;
	__module_get(THIS_MODULE);
	if (!IS_ERR(kthread_run(rdma_ep_remains_thread, remains, "rdma_ep_destroy")))
		return true;
	module_put(THIS_MODULE);
	atomic_dec(&rdma_ep_remains_threads);
	return false;
}

/*
 * The work items of others, who have very many endpoints or a device that keeps
 * all of theirs, may be first: then a thread does it.
 */
static bool rdma_ep_remains_wait(struct rdma_ep_remains *remains)
{
	if (wait_for_completion_timeout(&remains->done, HZ))
		return true;
	if (cancel_work(&remains->work) && !rdma_ep_remains_run(remains))
		queue_work(rdma_ep_destroy_wq, &remains->work);
	return wait_for_completion_timeout(&remains->done, RDMA_EP_DESTROY_S * HZ);
}

/**
 * rdma_ep_remains_finish - tear endpoints down
 * @remains: the endpoints; not the caller's any more
 * @wait: whether to wait for that, but not for ever
 *
 * Return: how many of their events nobody has read, 0 if that is not known yet.
 */
unsigned int rdma_ep_remains_finish(struct rdma_ep_remains *remains, bool wait)
{
	unsigned int discarded = 0;

	if (!list_empty(&remains->eps)) {
		kref_get(&remains->kref); /* the work's */
		queue_work(rdma_ep_destroy_wq, &remains->work);
		if (wait && rdma_ep_remains_wait(remains))
			discarded = remains->discarded;
	}
	kref_put(&remains->kref, rdma_ep_remains_release);
	return discarded;
}

static bool rdma_ep_port_is_down(struct rdma_ep *ep)
{
	enum ib_port_state state = IB_PORT_ACTIVE;

	mutex_lock(&ep->lock);
	if (ep->id && ep->id->device)
		ib_get_cached_port_state(ep->id->device, ep->id->port_num, &state);
	mutex_unlock(&ep->lock);
	return state != IB_PORT_ACTIVE;
}

/**
 * rdma_ep_may_linger - may its rdma_cm_id be long in going?
 * @ep: the endpoint. Once it is dead no attempt and no request makes it true.
 *
 * Return: whether ib_cm may have to wait for the device to send what it was given,
 * or will be.
 */
bool rdma_ep_may_linger(struct rdma_ep *ep)
{
	switch (READ_ONCE(ep->state)) {
	case RDMA_EP_STATE_REQUESTED:
	case RDMA_EP_STATE_CONNECTING:
	case RDMA_EP_STATE_RESPONDED:
	case RDMA_EP_STATE_ACCEPTING:
	case RDMA_EP_STATE_CONNECTED:
	case RDMA_EP_STATE_FAILED:
	case RDMA_EP_STATE_REMOVED: /* the work item may be waiting */
		return true;
	case RDMA_EP_STATE_LISTENING:
		return READ_ONCE(ep->requests);
	case RDMA_EP_STATE_DISCONNECTED:
		return READ_ONCE(ep->lingers) || rdma_ep_port_is_down(ep);
	default:
		return false;
	}
}
