// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Channels: files that deliver event records.
 *
 * A channel belongs to a context, but is a file of its own: it can be closed
 * before its context and after it, passed on, polled. Endpoints that point at
 * a channel when it is closed keep their events, and point at none.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/poll.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uio.h>

#include "private.h"

static void rdma_ep_channel_release(struct kref *kref)
{
	struct rdma_ep_channel *channel = container_of(kref, struct rdma_ep_channel, kref);

	rdma_ep_test_add(RDMA_EP_TEST_CHANNEL, -1);
	rdma_ep_ctx_put(channel->ctx);
	kfree(channel);
}

static void rdma_ep_channel_put(struct rdma_ep_channel *channel)
{
	kref_put(&channel->kref, rdma_ep_channel_release);
}

/**
 * rdma_ep_set_channel - let an endpoint's events go elsewhere
 * @ep: the endpoint
 * @channel: its new channel, or NULL. One that is closed counts as NULL.
 *
 * What was not read yet moves along, in order.
 *
 * Context: the caller holds ev_lock.
 */
void rdma_ep_set_channel(struct rdma_ep *ep, struct rdma_ep_channel *channel)
{
	struct rdma_ep_event *ev;

	lockdep_assert_held(&ep->ctx->ev_lock);

	if (ep->channel) {
		list_for_each_entry(ev, &ep->events, ep_node)
			rdma_ep_event_off_channel(ev);
		list_del_init(&ep->channel_node);
		WRITE_ONCE(ep->channel->num_eps, ep->channel->num_eps - 1);
	}
	ep->channel = channel && channel->file ? channel : NULL;
	if (ep->channel) {
		list_add_tail(&ep->channel_node, &channel->eps);
		WRITE_ONCE(channel->num_eps, channel->num_eps + 1);
		rdma_ep_event_expose(ep);
	}
}

/* Does the endpoint's channel ask not to block? */
bool rdma_ep_nonblock(struct rdma_ep *ep)
{
	bool nonblock;

	spin_lock(&ep->ctx->ev_lock);
	nonblock = ep->channel && ep->channel->file && ep->channel->file->f_flags & O_NONBLOCK;
	spin_unlock(&ep->ctx->ev_lock);
	return nonblock;
}

static bool rdma_ep_channel_ready(struct rdma_ep_channel *channel)
{
	return !list_empty_careful(&channel->events) || READ_ONCE(channel->ctx->dead);
}

static bool rdma_ep_channel_take(struct rdma_ep_channel *channel, struct rdma_ep_taken *t)
{
	struct rdma_ep_event *ev;

	spin_lock(&channel->ctx->ev_lock);
	ev = list_first_entry_or_null(&channel->events, struct rdma_ep_event, channel_node);
	if (ev)
		rdma_ep_event_take(ev, t);
	spin_unlock(&channel->ctx->ev_lock);
	return ev;
}

/* Report one event. On failure it is the next one to be read again. */
static int rdma_ep_channel_deliver(struct rdma_ep_channel *channel, struct rdma_ep_taken *t,
				   struct iov_iter *to)
{
	struct rdma_ep_record rec;
	size_t copied;

	rdma_ep_record_from_event(&rec, t, sizeof(rec));
	copied = copy_to_iter(&rec, rec.size, to);
	if (copied != rec.size) {
		iov_iter_revert(to, copied);
		rdma_ep_event_untake(t);
		return -EFAULT;
	}
	rdma_ep_event_publish(t, channel);
	rdma_ep_event_done(t);
	return 0;
}

/*
 * Whole records only, as many as are there and fit. A buffer holds one if any
 * record would fit in what is left of it.
 */
static ssize_t rdma_ep_channel_read(struct kiocb *iocb, struct iov_iter *to)
{
	struct rdma_ep_channel *channel = iocb->ki_filp->private_data;
	bool nonblock = iocb->ki_flags & IOCB_NOWAIT || iocb->ki_filp->f_flags & O_NONBLOCK;
	size_t len = iov_iter_count(to);
	struct rdma_ep_taken t;
	ssize_t ret = 0;

	if (len < sizeof(struct rdma_ep_record))
		return -EINVAL;

	while (!rdma_ep_channel_take(channel, &t)) {
		if (READ_ONCE(channel->ctx->dead))
			return 0;
		if (nonblock)
			return -EAGAIN;
		ret = wait_event_interruptible(channel->wq, rdma_ep_channel_ready(channel));
		if (ret)
			return ret;
	}

	do {
		ret = rdma_ep_channel_deliver(channel, &t, to);
	} while (!ret && iov_iter_count(to) >= sizeof(struct rdma_ep_record) &&
		 rdma_ep_channel_take(channel, &t));

	return len - iov_iter_count(to) ?: ret;
}

static __poll_t rdma_ep_channel_poll(struct file *file, struct poll_table_struct *wait)
{
	struct rdma_ep_channel *channel = file->private_data;
	__poll_t mask = 0;

	poll_wait(file, &channel->wq, wait);

	spin_lock(&channel->ctx->ev_lock);
	if (!list_empty(&channel->events))
		mask |= EPOLLIN | EPOLLRDNORM;
	if (channel->ctx->dead)
		mask |= EPOLLHUP;
	spin_unlock(&channel->ctx->ev_lock);
	return mask;
}

static int rdma_ep_channel_close(struct inode *inode, struct file *file)
{
	struct rdma_ep_channel *channel = file->private_data;
	struct rdma_ep_ctx *ctx = channel->ctx;
	struct rdma_ep *ep;

	spin_lock(&ctx->ev_lock);
	channel->file = NULL; /* nobody comes to it any more */
	list_del(&channel->node);
	while ((ep = list_first_entry_or_null(&channel->eps, struct rdma_ep, channel_node))) {
		rdma_ep_set_channel(ep, NULL);
		cond_resched_lock(&ctx->ev_lock);
	}
	spin_unlock(&ctx->ev_lock);

	rdma_ep_count(ctx, RDMA_EP_COUNT_CHANNEL_CLOSED);
	rdma_ep_channel_put(channel);
	return 0;
}

static void rdma_ep_channel_show_fdinfo(struct seq_file *m, struct file *file)
{
	struct rdma_ep_channel *channel = file->private_data;

	seq_printf(m, "rdma_ep-channel:\t%u\n", channel->number);
	seq_printf(m, "rdma_ep-channel-context:\t%u\n", channel->ctx->number);
	seq_printf(m, "rdma_ep-endpoints:\t%u\n", READ_ONCE(channel->num_eps));
	seq_printf(m, "rdma_ep-events:\t%u\n", READ_ONCE(channel->num_events));
}

static const struct file_operations rdma_ep_channel_fops = {
	.owner = THIS_MODULE,
	.release = rdma_ep_channel_close,
	.read_iter = rdma_ep_channel_read,
	.poll = rdma_ep_channel_poll,
	.show_fdinfo = rdma_ep_channel_show_fdinfo,
};

/*
 * Make a channel and its file, which is not installed yet. @want gets a
 * reference of its own.
 */
static int rdma_ep_channel_open(struct rdma_ep_ctx *ctx, unsigned int file_flags,
				struct rdma_ep_new_channel *want)
{
	struct rdma_ep_channel *channel;
	struct file *file;
	int fd, ret;

	channel = kzalloc(sizeof(*channel), GFP_KERNEL_ACCOUNT);
	if (!channel)
		return -ENOMEM;
	kref_init(&channel->kref);
	INIT_LIST_HEAD(&channel->events);
	INIT_LIST_HEAD(&channel->eps);
	init_waitqueue_head(&channel->wq);

	fd = get_unused_fd_flags(file_flags);
	if (fd < 0) {
		ret = fd;
		goto free;
	}
	file = anon_inode_getfile("[rdma_ep]", &rdma_ep_channel_fops, channel,
				  O_RDONLY | (file_flags & O_NONBLOCK));
	if (IS_ERR(file)) {
		ret = PTR_ERR(file);
		goto put_fd;
	}
	file->f_mode |= FMODE_NOWAIT;

	/* From here on closing the file undoes it all. */
	rdma_ep_test_add(RDMA_EP_TEST_CHANNEL, 1);
	kref_get(&ctx->kref);
	channel->ctx = ctx;
	kref_get(&channel->kref);
	rdma_ep_count(ctx, RDMA_EP_COUNT_CHANNEL_CREATED);
	spin_lock(&ctx->ev_lock);
	channel->file = file;
	channel->number = ++ctx->last_channel;
	list_add_tail(&channel->node, &ctx->channels);
	spin_unlock(&ctx->ev_lock);

	want->channel = channel;
	want->file = file;
	want->fd = fd;
	return 0;

put_fd:
	put_unused_fd(fd);
free:
	kfree(channel);
	return ret;
}

static int rdma_ep_channel_find(struct rdma_ep_call *call, struct rdma_ep_new_channel *want, int fd)
{
	struct file *file = fget(fd);
	int ret = 0;

	if (!file)
		return rdma_ep_fail(call, -EBADF, RDMA_EP_REASON_CHANNEL,
				    "file descriptor %d is not open", fd);

	/* Only then is private_data what we think it is. */
	if (file->f_op != &rdma_ep_channel_fops) {
		ret = rdma_ep_fail(call, -EBADF, RDMA_EP_REASON_CHANNEL,
				   "file descriptor %d is not a channel", fd);
		goto put;
	}
	want->channel = file->private_data;
	if (want->channel->ctx != call->ctx) {
		want->channel = NULL;
		ret = rdma_ep_fail(call, -EBADF, RDMA_EP_REASON_CHANNEL,
				   "file descriptor %d is a channel of another context", fd);
		goto put;
	}
	kref_get(&want->channel->kref);
put:
	fput(file);
	return ret;
}

/* Is the file a channel that endpoints point at? */
bool rdma_ep_channel_attached(struct file *file)
{
	struct rdma_ep_channel *channel = file->private_data;

	if (file->f_op != &rdma_ep_channel_fops)
		return false;
	return READ_ONCE(channel->num_eps);
}

/* RDMA_EP_F_NEW_CHANNEL goes without a channel. */
int rdma_ep_check_new_channel(struct rdma_ep_call *call, int fd)
{
	struct rdma_ep_hdr *hdr = call->cmd;

	if (hdr->flags & RDMA_EP_F_NEW_CHANNEL && fd != -1)
		return rdma_ep_fail(call, -EINVAL, RDMA_EP_REASON_CHANNEL,
				    "a channel is given, and a new one asked for");
	return 0;
}

/**
 * rdma_ep_want_channel - find, or make, the channel that a call asks for
 * @call: the call; RDMA_EP_F_NEW_CHANNEL among its flags asks for a new one
 * @want: receives it. rdma_ep_keep_channel() or rdma_ep_unwant_channel()
 *	settles what becomes of it.
 * @fd: the call's file descriptor, or -1
 *
 * Return: 0 or a negative errno.
 */
int rdma_ep_want_channel(struct rdma_ep_call *call, struct rdma_ep_new_channel *want, int fd)
{
	struct rdma_ep_hdr *hdr = call->cmd;
	int ret;

	*want = (struct rdma_ep_new_channel){ .fd = fd };
	ret = rdma_ep_check_new_channel(call, fd);
	if (ret)
		return ret;
	if (hdr->flags & RDMA_EP_F_NEW_CHANNEL)
		return rdma_ep_channel_open(call->ctx, O_CLOEXEC, want);
	if (fd == -1)
		return 0;
	return rdma_ep_channel_find(call, want, fd);
}

/* The call fails: what was made for it goes. */
void rdma_ep_unwant_channel(struct rdma_ep_new_channel *want)
{
	if (want->file) {
		put_unused_fd(want->fd);
		fput(want->file);
	}
	if (want->channel)
		rdma_ep_channel_put(want->channel);
}

/* Will the channel that a call names be found when its work is done? */
int rdma_ep_check_channel(struct rdma_ep_call *call, int fd)
{
	struct rdma_ep_new_channel want;
	int ret;

	if (fd == -1)
		return 0;
	ret = rdma_ep_want_channel(call, &want, fd);
	if (!ret)
		rdma_ep_unwant_channel(&want);
	return ret;
}

/* The call has succeeded: a new channel gets to be a file of the process. */
void rdma_ep_keep_channel(struct rdma_ep_new_channel *want)
{
	if (want->file)
		fd_install(want->fd, want->file);
	if (want->channel)
		rdma_ep_channel_put(want->channel);
}

int rdma_ep_create_channel(struct rdma_ep_call *call)
{
	struct rdma_ep_create_channel *cmd = call->cmd;
	struct rdma_ep_new_channel want = {};
	int ret;

	if (cmd->file_flags & ~(O_NONBLOCK | O_CLOEXEC))
		return rdma_ep_fail(call, -EOPNOTSUPP, RDMA_EP_REASON_STRUCT,
				    "file flags %#x besides O_NONBLOCK and O_CLOEXEC",
				    cmd->file_flags);
	ret = rdma_ep_channel_open(call->ctx, cmd->file_flags, &want);
	if (ret)
		return ret;
	cmd->out_fd = want.fd;
	ret = rdma_ep_respond(call);
	if (ret)
		rdma_ep_unwant_channel(&want);
	else
		rdma_ep_keep_channel(&want);
	return ret;
}
