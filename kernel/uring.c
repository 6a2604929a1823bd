// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Calls through io_uring.
 *
 * A call is served as an ioctl is, in the submitter's context, until it would
 * wait. Then its handler returns, and what it has left in struct rdma_ep_call
 * goes on when the event has come: an entry in rdma_ep::wq, instead of a
 * thread, is woken and lets the rest run as task work of the submitter, whose
 * memory it writes to.
 *
 * A request that waits is armed: its entry is in the wait queue. Who takes it
 * out, under ev_lock, has claimed the request: the waker of an event, who
 * queues the task work, or who has found out that nobody waits for the answer
 * any more. That one queues a work item, which ends the request without an
 * event and writes nothing, for the memory is not the submitter's any more.
 * Newer kernels tell when it is so. On older ones, a pending request keeps the
 * file, and with it the endpoint, so that neither would ever end; there, another
 * work item looks after the requests of each context.
 *
 * Between the waker and the task work the ring may end as well. If the submitter
 * ends, what was its task work runs elsewhere, without its memory and its files.
 */
#include <linux/slab.h>

#include "private.h"

/* How often to look after requests whose ring may have ended. */
#define RDMA_EP_URING_PERIOD (HZ / 2)

/**
 * struct rdma_ep_uring - a request
 * @call: the call
 * @cmd: its argument
 * @ioucmd: the request as io_uring knows it; its pdu points here
 * @wait: in rdma_ep::wq while the request is armed (ev_lock)
 * @node: on rdma_ep_ctx::uring_reqs (uring_lock)
 * @work: destroying: does it; or ends a request for which nobody waits
 * @discarded: destroying: as rdma_ep_teardown() has returned it
 * @executing: so was its task, when it was last looked at (uring_lock)
 */
struct rdma_ep_uring {
	struct rdma_ep_call call;
	union rdma_ep_cmd cmd;
	struct io_uring_cmd *ioucmd;
	struct wait_queue_entry wait;
	struct list_head node;
	struct work_struct work;
	int discarded;
	bool executing;
};

static struct rdma_ep_uring **rdma_ep_uring_pdu(struct io_uring_cmd *ioucmd)
{
	BUILD_BUG_ON(sizeof(struct rdma_ep_uring *) > sizeof(ioucmd->pdu));
	return (struct rdma_ep_uring **)ioucmd->pdu;
}

static void rdma_ep_uring_complete(struct rdma_ep_uring *req, int ret, unsigned int issue_flags)
{
	rdma_ep_uring_done(req->ioucmd, ret, issue_flags);
	/* Until then the kernel could ask to cancel it. */
	kfree(req);
}

static void rdma_ep_uring_watch(struct rdma_ep_uring *req)
{
	struct rdma_ep_ctx *ctx = req->call.ctx;

	if (RDMA_EP_URING_TELLS)
		return;
	spin_lock(&ctx->uring_lock);
	list_add_tail(&req->node, &ctx->uring_reqs);
	spin_unlock(&ctx->uring_lock);
	queue_delayed_work(rdma_ep_timer_wq, &ctx->uring_work, RDMA_EP_URING_PERIOD);
}

static void rdma_ep_uring_unwatch(struct rdma_ep_uring *req)
{
	spin_lock(&req->call.ctx->uring_lock);
	list_del_init(&req->node);
	spin_unlock(&req->call.ctx->uring_lock);
}

/* The wait is over: do what the handler would have gone on with. */
static void rdma_ep_uring_go_on(struct rdma_ep_uring *req, int ret, struct rdma_ep_taken *t,
				unsigned int issue_flags)
{
	struct rdma_ep_call *call = &req->call;
	struct rdma_ep *ep = call->wait_ep;

	if (!RDMA_EP_URING_TELLS)
		rdma_ep_uring_unwatch(req);
	ret = call->done(call, ep, ret, t);
	if (call->wait_types)
		rdma_ep_wait_end(ep);
	rdma_ep_put(ep);
	rdma_ep_uring_complete(req, rdma_ep_finish(call, ret), issue_flags);
}

/* Nobody waits for the answer, and no address of the submitter's is valid any more. */
static void rdma_ep_uring_end(struct rdma_ep_uring *req, unsigned int issue_flags)
{
	req->call.ureason = NULL;
	rdma_ep_uring_go_on(req, -ECANCELED, NULL, issue_flags);
}

static void rdma_ep_uring_end_work(struct work_struct *work)
{
	rdma_ep_uring_end(container_of(work, struct rdma_ep_uring, work), IO_URING_F_UNLOCKED);
}

static void rdma_ep_uring_task_work(struct io_uring_cmd *ioucmd, unsigned int issue_flags)
{
	struct rdma_ep_uring *req = *rdma_ep_uring_pdu(ioucmd);
	struct rdma_ep_call *call = &req->call;
	struct rdma_ep_taken t;
	int ret = req->discarded;

	if (!current->mm || rdma_ep_uring_ring_gone(ioucmd)) {
		rdma_ep_uring_end(req, issue_flags);
		return;
	}
	if (call->wait_types)
		ret = rdma_ep_wait_take(call->wait_ep, call->wait_types, &t, &req->wait);
	if (ret == -EAGAIN) /* another has taken it; the request is armed again */
		return;
	rdma_ep_uring_go_on(req, ret, &t, issue_flags);
}

RDMA_EP_URING_TASK_WORK(rdma_ep_uring_tw, rdma_ep_uring_task_work)

/* Who has claimed the request knows that nobody waits for the answer. */
static void rdma_ep_uring_end_later(struct rdma_ep_uring *req)
{
	INIT_WORK(&req->work, rdma_ep_uring_end_work);
	queue_work(rdma_ep_uring_wq, &req->work);
}

/* Something has happened at the endpoint. Context: ev_lock is held. */
static int rdma_ep_uring_wake(struct wait_queue_entry *wait, unsigned int mode, int sync, void *key)
{
	struct rdma_ep_uring *req = container_of(wait, struct rdma_ep_uring, wait);

	lockdep_assert_held(&req->call.ctx->ev_lock);

	list_del_init(&wait->entry);
	if (rdma_ep_uring_gone(req->ioucmd))
		rdma_ep_uring_end_later(req);
	else
		rdma_ep_uring_in_task(req->ioucmd, rdma_ep_uring_tw);
	return 1;
}

/*
 * Nobody waits for the answer any more. If the request is not armed yet, this
 * will be called again; if it is not any more, it is about to end, and may have
 * given its endpoint back.
 */
static void rdma_ep_uring_cancel(struct rdma_ep_uring *req)
{
	struct rdma_ep_ctx *ctx = req->call.ctx;
	struct wait_queue_head *wq;
	bool claimed;

	spin_lock(&ctx->ev_lock);
	claimed = !list_empty(&req->wait.entry);
	if (claimed) {
		wq = &req->call.wait_ep->wq;
		spin_lock_irq(&wq->lock);
		list_del_init(&req->wait.entry);
		spin_unlock_irq(&wq->lock);
	}
	spin_unlock(&ctx->ev_lock);
	if (claimed)
		rdma_ep_uring_end_later(req);
}

/* End the requests that nobody waits for. Returns whether there are others. */
static bool rdma_ep_uring_look(struct rdma_ep_ctx *ctx)
{
	struct rdma_ep_uring *req;
	bool again, executing;

	spin_lock(&ctx->uring_lock);
	list_for_each_entry(req, &ctx->uring_reqs, node) {
		/* An execve(2) that fails is over by the time of the next look. */
		executing = rdma_ep_uring_executing(req->ioucmd);
		if (rdma_ep_uring_gone(req->ioucmd) || (executing && req->executing))
			rdma_ep_uring_cancel(req);
		req->executing = executing;
	}
	again = !list_empty(&ctx->uring_reqs);
	spin_unlock(&ctx->uring_lock);
	return again;
}

static void rdma_ep_uring_look_work(struct work_struct *work)
{
	struct rdma_ep_ctx *ctx =
		container_of(to_delayed_work(work), struct rdma_ep_ctx, uring_work);

	if (rdma_ep_uring_look(ctx))
		queue_delayed_work(rdma_ep_timer_wq, &ctx->uring_work, RDMA_EP_URING_PERIOD);
}

static void rdma_ep_uring_teardown(struct work_struct *work)
{
	struct rdma_ep_uring *req = container_of(work, struct rdma_ep_uring, work);

	req->discarded = rdma_ep_teardown(req->call.wait_ep);
	rdma_ep_uring_in_task(req->ioucmd, rdma_ep_uring_tw);
}

/* Nothing here may be looked at once the request is armed, or the work queued. */
static void rdma_ep_uring_wait(struct rdma_ep_uring *req, unsigned int issue_flags)
{
	struct rdma_ep_call *call = &req->call;
	struct rdma_ep_taken t;
	int ret;

	if (!call->wait_types) {
		INIT_WORK(&req->work, rdma_ep_uring_teardown);
		queue_work(rdma_ep_uring_wq, &req->work);
		return;
	}

	rdma_ep_uring_mark(req->ioucmd, issue_flags);
	rdma_ep_uring_watch(req);
	ret = rdma_ep_wait_take(call->wait_ep, call->wait_types, &t, &req->wait);
	if (ret != -EAGAIN)
		rdma_ep_uring_go_on(req, ret, &t, issue_flags);
}

/* Commands that may wait long in rdma_cm, where nothing can take that over. */
static bool rdma_ep_uring_is_slow(u32 cmd)
{
	return cmd == RDMA_EP_NOTIFY || cmd == RDMA_EP_LISTEN || cmd == RDMA_EP_LEAVE ||
	       cmd == RDMA_EP_DESTROY_MANY;
}

/**
 * rdma_ep_uring_cmd - serve a request of io_uring
 * @ioucmd: the request
 * @issue_flags: IO_URING_F_*
 *
 * Return: -EIOCBQUEUED, the answer is given otherwise; -EAGAIN for a worker to
 * call again; or another negative errno.
 */
int rdma_ep_uring_cmd(struct io_uring_cmd *ioucmd, unsigned int issue_flags)
{
	struct rdma_ep_uring_cmd area;
	struct rdma_ep_uring *req;
	int ret;

	if (issue_flags & RDMA_EP_URING_F_CANCEL) {
		rdma_ep_uring_cancel(*rdma_ep_uring_pdu(ioucmd));
		return 0;
	}
	if (issue_flags & IO_URING_F_IOPOLL)
		return -EOPNOTSUPP;
	area = rdma_ep_uring_sqe_cmd(ioucmd);
	if (area.flags || area.reserved)
		return -EOPNOTSUPP;
	if (issue_flags & IO_URING_F_NONBLOCK && rdma_ep_uring_is_slow(ioucmd->cmd_op))
		return -EAGAIN;

	req = kzalloc(sizeof(*req), GFP_KERNEL_ACCOUNT);
	if (!req)
		return -ENOMEM;
	req->ioucmd = ioucmd;
	req->call.ctx = ioucmd->file->private_data;
	req->call.cmd = &req->cmd;
	req->call.uarg = u64_to_user_ptr(area.arg_uptr);
	req->call.async = true;
	req->call.no_block = issue_flags & IO_URING_F_NONBLOCK;
	init_waitqueue_func_entry(&req->wait, rdma_ep_uring_wake);
	INIT_LIST_HEAD(&req->wait.entry);
	INIT_LIST_HEAD(&req->node);
	*rdma_ep_uring_pdu(ioucmd) = req;

	ret = rdma_ep_serve(&req->call, ioucmd->cmd_op);
	if (req->call.blocks) {
		kfree(req);
		return -EAGAIN;
	}
	if (ret == -EIOCBQUEUED)
		rdma_ep_uring_wait(req, issue_flags);
	else /* EAGAIN, too, is an answer of the call */
		rdma_ep_uring_complete(req, ret, issue_flags);
	return -EIOCBQUEUED;
}

void rdma_ep_uring_init(struct rdma_ep_ctx *ctx)
{
	spin_lock_init(&ctx->uring_lock);
	INIT_LIST_HEAD(&ctx->uring_reqs);
	INIT_DELAYED_WORK(&ctx->uring_work, rdma_ep_uring_look_work);
}

/* A descriptor is closed. If that is since its process ends, so do its requests. */
void rdma_ep_uring_flush(struct rdma_ep_ctx *ctx)
{
	if (!RDMA_EP_URING_TELLS && current->flags & PF_EXITING)
		rdma_ep_uring_look(ctx);
}

/* The file is closed. A request would have kept it, so there is none. */
void rdma_ep_uring_exit(struct rdma_ep_ctx *ctx)
{
	cancel_delayed_work_sync(&ctx->uring_work);
}
