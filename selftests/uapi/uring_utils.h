/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Calls through io_uring, for the tests.
 */
#ifndef URING_UTILS_H
#define URING_UTILS_H

#include <liburing.h>

#include "rdma_ep_utils.h"

/* Long enough for whatever ends a wait, short enough to tell that nothing does */
#define END_MS		(20000 * slow())

static inline struct io_uring_sqe *prep(struct io_uring *ring, int fd, uint32_t nr,
					const void *arg, uint64_t tag)
{
	struct rdma_ep_uring_cmd area = { .arg_uptr = UPTR(arg) };
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	if (!sqe)
		abort();
	io_uring_prep_rw(IORING_OP_URING_CMD, sqe, fd, NULL, 0, 0);
	sqe->cmd_op = nr;
	memcpy(sqe->cmd, &area, sizeof(area));
	sqe->user_data = tag;
	return sqe;
}

/* The next completion: 0 or a negative errno; -ETIME if none comes */
static inline int reap(struct io_uring *ring, uint64_t *tag, unsigned int ms)
{
	struct __kernel_timespec ts = {
		.tv_sec = ms / 1000,
		.tv_nsec = ms % 1000 * 1000000,
	};
	struct io_uring_cqe *cqe;
	int ret;

	do {
		ret = io_uring_wait_cqe_timeout(ring, &cqe, &ts);
	} while (ret == -EINTR);
	if (ret)
		return ret;
	ret = cqe->res;
	if (tag)
		*tag = cqe->user_data;
	io_uring_cqe_seen(ring, cqe);
	return ret;
}

/* One call, from submission to completion */
static inline int call(struct io_uring *ring, int fd, uint32_t nr, void *arg)
{
	uint64_t tag = 0;
	int ret;

	memset(&ep_reason, 0, sizeof(ep_reason));
	prep(ring, fd, nr, arg, 0x77);
	if (io_uring_submit(ring) != 1)
		return -EPROTO;
	ret = reap(ring, &tag, END_MS);
	return ret == -ETIME || tag == 0x77 ? ret : -EPROTO;
}

#endif /* URING_UTILS_H */
