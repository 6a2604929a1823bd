// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Event channels: files of their own, made by the module.
 *
 * A synchronous id has one that nobody asked for, since programs poll it, or
 * make it non-blocking. So that a program which never looks can have more such
 * ids than half its limit on files, the library stops making them there: ids
 * beyond have the fd -1, and wait inside the calls.
 *
 * When its id is destroyed, a channel is kept for the next id if the module says
 * that nothing but its descriptor refers to it. Otherwise it is closed: a
 * program may have put it into an epoll set, and relies on close(2) to take it
 * out.
 *
 * struct rdma_event_channel is public, and has nothing but the descriptor: a
 * program may copy one, or make one where it knows only that. So channels are
 * known by their descriptors.
 */
#include <stdlib.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "rdmaep-internal.h"

/* Channels by their descriptors, as many as there may be on most systems */
#define KNOWN_PAGE	512
#define KNOWN_PAGES	2048
static struct rdmaep_channel **known[KNOWN_PAGES];

static struct rdmaep_channel **known_slot(int fd, bool make)
{
	struct rdmaep_channel **page, **other = NULL;
	unsigned int i = (unsigned int)fd / KNOWN_PAGE;

	if (fd < 0 || i >= KNOWN_PAGES)
		return NULL;
	page = __atomic_load_n(&known[i], __ATOMIC_ACQUIRE);
	if (!page && make) {
		page = calloc(KNOWN_PAGE, sizeof(struct rdmaep_channel *));
		if (page && !__atomic_compare_exchange_n(&known[i], &other, page, false,
							 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
			free(page);
			page = other;
		}
	}
	return page ? &page[fd % KNOWN_PAGE] : NULL;
}

/**
 * rdmaep_channel_know() - let a channel be found by its descriptor
 * @fd: the descriptor
 * @ch: the channel. Without memory for that only copies of it do not work.
 */
void rdmaep_channel_know(int fd, struct rdmaep_channel *ch)
{
	struct rdmaep_channel **slot = known_slot(fd, true), *old;

	if (!slot)
		return;
	ch->slot = slot;
	old = __atomic_exchange_n(slot, ch, __ATOMIC_ACQ_REL);
	/* The program has closed it; what has its number now is another. */
	if (old && old != ch && old->ch.fd == fd)
		old->ch.fd = -1;
}

static void channel_forget(struct rdmaep_channel *ch)
{
	struct rdmaep_channel *found = ch;

	if (ch->slot)
		__atomic_compare_exchange_n(ch->slot, &found, NULL, false, __ATOMIC_ACQ_REL,
					    __ATOMIC_ACQUIRE);
	ch->slot = NULL;
}

/**
 * rdmaep_channel_of() - the channel that a program means
 * @channel: what it has passed
 *
 * Return: the channel, which may be another than that of which @channel is part.
 */
struct rdmaep_channel *rdmaep_channel_of(struct rdma_event_channel *channel)
{
	struct rdmaep_channel **slot = known_slot(channel->fd, false);
	struct rdmaep_channel *found = NULL;

	if (slot)
		found = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
	if (found)
		return found;
	/* One whose descriptor the program has moved, or that has none */
	return (struct rdmaep_channel *)((char *)channel -
					 offsetof(struct rdmaep_channel, ch));
}

/* Channels of synchronous ids that are open, and how many there may be. */
static unsigned int own_channels;
static unsigned int own_limit;

/**
 * rdmaep_channel_reserve() - may the library open one more file?
 *
 * Return: whether it may; then rdmaep_channel_unreserve() gives it back.
 */
bool rdmaep_channel_reserve(void)
{
	unsigned int n = __atomic_add_fetch(&own_channels, 1, __ATOMIC_RELAXED);
	struct rlimit lim;

	if (n <= __atomic_load_n(&own_limit, __ATOMIC_RELAXED))
		return true;

	/* The program may have raised the limit since. */
	if (!getrlimit(RLIMIT_NOFILE, &lim)) {
		unsigned int half = lim.rlim_cur / 2 > UINT32_MAX / 2 ?
				    UINT32_MAX / 2 : lim.rlim_cur / 2;

		__atomic_store_n(&own_limit, half, __ATOMIC_RELAXED);
		if (n <= half)
			return true;
	}

	rdmaep_channel_unreserve();
	return false;
}

/** rdmaep_channel_unreserve() - undo rdmaep_channel_reserve() */
void rdmaep_channel_unreserve(void)
{
	__atomic_sub_fetch(&own_channels, 1, __ATOMIC_RELAXED);
}

/* The call may have been over when the thread was cancelled, and the channel used. */
static void cancelled(void *channel)
{
	struct rdmaep_channel *used = channel;

	if (used->ch.fd >= 0)
		rdmaep_channel_close_own(used);
	else
		rdmaep_channel_unreserve();
}

static int call_with(struct rdmaep_channel *channel, unsigned int nr, void *cmd)
{
	int ret;

	pthread_cleanup_push(cancelled, channel);
	ret = rdmaep_call(channel->ctx, nr, cmd);
	pthread_cleanup_pop(0);
	return ret;
}

/* Return: 1 if there is none that will do. */
static int call_idle_channel(struct rdmaep_ctx *ctx, unsigned int nr, void *cmd,
			     __s32 *fd)
{
	struct rdmaep_channel idle = { .ctx = ctx };
	int ret;

	*fd = idle.ch.fd = rdmaep_ctx_take_channel(ctx);
	if (*fd < 0)
		return 1;
	ret = call_with(&idle, nr, cmd);
	if (!ret)
		return 0;

	if (errno == EBADF) {
		/* The program has closed it behind our back. */
		rdmaep_channel_unreserve();
		ret = 1;
	} else {
		int err = errno;

		rdmaep_channel_keep_own(&idle);
		errno = err;
	}
	*fd = -1;
	return ret;
}

/**
 * rdmaep_call_new_channel() - make a call with a channel for a synchronous id
 * @ctx: the context
 * @nr: RDMA_EP_*, a command that knows RDMA_EP_F_NEW_CHANNEL
 * @cmd: its argument struct
 * @fd: the field of @cmd that receives the channel's file descriptor, -1 if
 *	there is none. The call works without.
 *
 * Return: as rdmaep_call().
 */
int rdmaep_call_new_channel(struct rdmaep_ctx *ctx, unsigned int nr, void *cmd,
			    __s32 *fd)
{
	struct rdmaep_channel none = { .ch.fd = -1, .ctx = ctx };
	struct rdma_ep_hdr *hdr = cmd;
	int ret;

	ret = call_idle_channel(ctx, nr, cmd, fd);
	if (ret <= 0)
		return ret;
	if (rdmaep_channel_reserve()) {
		hdr->flags |= RDMA_EP_F_NEW_CHANNEL;
		ret = call_with(&none, nr, cmd);
		if (ret || *fd < 0)
			rdmaep_channel_unreserve();
		if (!ret || (errno != EMFILE && errno != ENFILE))
			return ret;
		/* What a signal had let be begun has failed as well. */
		hdr->flags &= ~(RDMA_EP_F_NEW_CHANNEL | RDMA_EP_F_RESUME);
		*fd = -1;
	}
	return rdmaep_call(ctx, nr, cmd);
}

/**
 * rdmaep_channel_close_own() - close the channel of a synchronous id
 * @ch: the channel; nothing happens if it has none
 */
void rdmaep_channel_close_own(struct rdmaep_channel *ch)
{
	int err = errno;

	if (ch->ch.fd < 0)
		return;
	channel_forget(ch);
	close(ch->ch.fd);
	ch->ch.fd = -1;
	rdmaep_channel_unreserve();
	errno = err;
}

/**
 * rdmaep_channel_keep_own() - keep the channel of a synchronous id for another
 * @ch: the channel, of which the module says that it is as good as new, or
 *	which was never used. It is closed if enough are kept.
 */
void rdmaep_channel_keep_own(struct rdmaep_channel *ch)
{
	channel_forget(ch);
	if (rdmaep_ctx_keep_channel(ch->ctx, ch->ch.fd))
		ch->ch.fd = -1;
	else
		rdmaep_channel_close_own(ch);
}

/**
 * rdma_create_event_channel() - open a channel for events
 *
 * Follows rdma_create_event_channel(3).
 *
 * Return: the channel, or NULL with errno EMFILE, ENOMEM, ENODEV (there is no
 * RDMA device), or as from opening the module's (ENOENT: it is not loaded).
 */
RDMAEP_API struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct rdma_ep_create_channel cmd = {
		.hdr = RDMAEP_HDR(cmd),
		.file_flags = O_CLOEXEC,
	};
	struct rdmaep_channel *ch;

	ch = calloc(1, sizeof(*ch));
	if (!ch)
		return NULL;

	ch->ctx = rdmaep_ctx_get();
	if (!ch->ctx)
		goto free_channel;
	if (rdmaep_call(ch->ctx, RDMA_EP_CREATE_CHANNEL, &cmd))
		goto put_ctx;

	ch->ch.fd = cmd.out_fd;
	rdmaep_channel_know(cmd.out_fd, ch);
	return &ch->ch;

put_ctx:
	rdmaep_ctx_put(ch->ctx);
free_channel:
	free(ch);
	return NULL;
}

/**
 * rdma_destroy_event_channel() - close a channel
 * @channel: a channel from rdma_create_event_channel(), which no id uses any
 *	more and whose events are all acknowledged
 *
 * Ids that do use it are ended: their connections are closed, their ports free,
 * and all that is left is to destroy them. Follows rdma_destroy_event_channel(3).
 */
RDMAEP_API void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	struct rdmaep_channel *ch;

	if (!channel)
		return;

	ch = rdmaep_channel_of(channel);
	if (ch->owner)	/* goes with its id */
		return;
	rdmaep_ids_end(ch);
	channel_forget(ch);
	close(channel->fd);
	rdmaep_ctx_put(ch->ctx);
	free(ch);
}
