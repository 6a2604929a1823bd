// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Can a file be given to somebody else?
 *
 * The library makes files that nobody asked for by name: channels, completion
 * channels. Before it hands one on to the next endpoint it must know that the
 * program has not put it into an epoll set, or duplicated it: close(2) would
 * have ended that, and only the kernel can tell.
 */
#include <linux/file.h>
#include <linux/poll.h>

#include "private.h"

static bool rdma_ep_file_watched(struct file *file)
{
#ifdef CONFIG_EPOLL
	return READ_ONCE(file->f_ep);
#else
	return false;
#endif
}

/**
 * rdma_ep_file_idle - could a file pass for a new one?
 * @fd: file descriptor of the caller
 *
 * Return: whether nothing but the descriptor has to do with the file.
 */
bool rdma_ep_file_idle(int fd)
{
	struct file *file = fget(fd);
	bool idle;

	if (!file)
		return false;
	/* One reference is the descriptor's, one is ours. */
	idle = file_count(file) == 2 && !rdma_ep_file_watched(file) &&
	       !(file->f_flags & (O_NONBLOCK | FASYNC)) && !rdma_ep_channel_attached(file) &&
	       file_can_poll(file) && !(vfs_poll(file, NULL) & (EPOLLIN | EPOLLHUP));
	fput(file);
	return idle;
}
