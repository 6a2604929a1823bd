// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Many ids in one call: see rdmaep.h.
 *
 * What takes time is started for all of them before any is waited for, so that
 * it overlaps. No thread is needed for that: a call with RDMA_EP_F_RESUME waits
 * for what an earlier one has started.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <rdma/rdma_verbs.h>

#include "rdmaep-internal.h"

/* How many went well, and why the first of the others did not */
struct tally {
	int *errs;
	int good;
	int first;
	int first_err;
};

static void tally_add(struct tally *tally, int i, int err)
{
	if (tally->errs)
		tally->errs[i] = err;
	if (!err) {
		tally->good++;
	} else if (!tally->first_err || i < tally->first) {
		tally->first = i;
		tally->first_err = err;
	}
}

static int tally_result(const struct tally *tally)
{
	if (tally->first_err)
		errno = tally->first_err;
	return tally->good;
}

static bool is_passive(const struct rdmaep_ep_attr *attr)
{
	return attr->res->ai_flags & RAI_PASSIVE;
}

/* Errors are for the time when the id is finished: all are started first. */
static struct rdmaep_id *create_start(const struct rdmaep_ep_attr *attr,
				      int *err)
{
	struct rdmaep_id *ep = NULL;

	*err = EINVAL;
	if (attr->res) {
		ep = rdmaep_ep_create(attr->res, attr->pd, is_passive(attr) ?
				      0 : RDMA_EP_CREATE_EP_START);
		*err = ep ? 0 : errno;
	}
	return ep;
}

/* Wait until an id is resolved. */
static int create_wait(struct rdmaep_id *ep, const struct rdma_addrinfo *res)
{
	struct rdma_ep_record rec = { 0 };
	struct rdma_ep_resolve_addr cmd = {
		.hdr = RDMAEP_HDR(cmd),
		.ep = ep->handle,
		.record_uptr = (uintptr_t)&rec,
		.record_len = sizeof(rec),
	};
	int ret;

	cmd.hdr.flags = RDMA_EP_F_WAIT | RDMA_EP_F_RESUME;
	if (!res->ai_route_len)
		cmd.hdr.flags |= RDMA_EP_RESOLVE_THEN_ROUTE;
	if (rdmaep_addr_set(&cmd.dst, res->ai_dst_addr, "destination"))
		return -1;
	do {
		ret = rdmaep_call(ep->ctx, RDMA_EP_RESOLVE_ADDR, &cmd);
	} while (ret && errno == EINTR);
	if (ret)
		return ret;

	rdmaep_record_read(&rec);
	if (rec.type == RDMA_EP_EVENT_DEVICE_REMOVAL)
		return rdmaep_fail_outcome(ENODEV);
	if (rec.status)
		return rdmaep_fail_outcome(abs(rec.status));
	return rdmaep_id_update(ep, &rec);
}

static int create_finish(struct rdmaep_id *ep,
			 const struct rdmaep_ep_attr *attr)
{
	struct ibv_qp_init_attr qp_attr, *qp_init_attr = NULL;

	if (!is_passive(attr) && create_wait(ep, attr->res))
		return -1;
	/* Several can share one: it is not written to. */
	if (attr->qp_init_attr) {
		qp_attr = *attr->qp_init_attr;
		qp_init_attr = &qp_attr;
	}
	return rdmaep_ep_set(ep, attr->res, attr->pd, qp_init_attr);
}

/* See rdmaep.h. */
RDMAEP_API int rdmaep_create_ep_many(struct rdma_cm_id **ids,
				     const struct rdmaep_ep_attr *attr, int n,
				     int *errs)
{
	struct tally tally = { .errs = errs };
	int i, err;

	if (!ids || !attr || n < 0)
		return rdmaep_fail_plain(EINVAL);

	for (i = 0; i < n; i++) {
		struct rdmaep_id *ep = create_start(&attr[i], &err);

		ids[i] = ep ? &ep->id : NULL;
		if (!ep)
			tally_add(&tally, i, err);
	}
	for (i = 0; i < n; i++) {
		if (!ids[i])
			continue;
		err = create_finish(to_rdmaep_id(ids[i]), &attr[i]) ? errno : 0;
		if (err) {
			rdmaep_id_kill(to_rdmaep_id(ids[i]));
			ids[i] = NULL;
		}
		tally_add(&tally, i, err);
	}
	return tally_result(&tally);
}

/*
 * Connecting. Answers are taken in the order in which they come, since a peer
 * may accept one connection only when another stands: so for the time of the
 * call the ids share a channel.
 */

/* How an id's answer comes */
enum answer {
	ANSWER_NONE,		/* it has come, or is the program's to wait for */
	ANSWER_CHANNEL,		/* by the shared channel */
	ANSWER_ID,		/* at the id: it could not be put on the channel */
};

struct connecting {
	struct rdma_cm_id *const *ids;
	enum answer *answers;
	struct tally tally;
	int pending;		/* answers that come by the channel */
	struct rdmaep_ctx *ctx;	/* whose the channel is */
	int fd;
};

/* If there is no channel to be had, the ids wait one after the other. */
static void open_channel(struct connecting *c, struct rdmaep_ctx *ctx)
{
	struct rdma_ep_create_channel cmd = {
		.hdr = RDMAEP_HDR(cmd),
		.file_flags = O_CLOEXEC,
	};

	c->ctx = ctx;
	c->fd = rdmaep_call(ctx, RDMA_EP_CREATE_CHANNEL, &cmd) ? -1 : cmd.out_fd;
}

static int attach(struct rdmaep_id *ep, int fd)
{
	struct rdma_ep_attach cmd = {
		.hdr = RDMAEP_HDR(cmd),
		.ep = ep->handle,
		.channel = fd,
	};

	return rdmaep_call(ep->ctx, RDMA_EP_ATTACH, &cmd);
}

static void attach_back(struct rdmaep_id *ep)
{
	int err = errno;

	attach(ep, ep->own.ch.fd);
	errno = err;
}

/* Returns an error number. */
static int connect_start(struct connecting *c, int i,
			 const struct rdma_conn_param *param)
{
	struct rdmaep_id *ep = to_rdmaep_id(c->ids[i]);
	enum answer answer = ANSWER_NONE;

	if (!ep)
		return EINVAL;
	if (ep->sync) {
		answer = ANSWER_ID;
		if (!c->ctx)
			open_channel(c, ep->ctx);
		if (c->fd >= 0 && ep->ctx == c->ctx && !attach(ep, c->fd))
			answer = ANSWER_CHANNEL;
		ep->batch = i;
	}
	if (rdmaep_connect_start(ep, param)) {
		if (answer == ANSWER_CHANNEL)
			attach_back(ep);
		return errno;
	}
	/* An asynchronous id can be gone by now. */
	c->answers[i] = answer;
	c->pending += answer == ANSWER_CHANNEL;
	return 0;
}

static bool is_answer(const struct rdma_ep_record *rec)
{
	switch (rec->type) {
	case RDMA_EP_EVENT_ADDR_ERROR:
	case RDMA_EP_EVENT_CONNECT_RESPONSE:
	case RDMA_EP_EVENT_CONNECT_ERROR:
	case RDMA_EP_EVENT_UNREACHABLE:
	case RDMA_EP_EVENT_REJECTED:
	case RDMA_EP_EVENT_ESTABLISHED:
	case RDMA_EP_EVENT_DISCONNECTED:
	case RDMA_EP_EVENT_DEVICE_REMOVAL:
		return true;
	default:
		return false;
	}
}

/*
 * Take one event: the next one of its id is for the id's own channel. Returns
 * the id, or NULL if the event is no answer, or (errno) none could be taken.
 */
static struct rdmaep_id *take_answer(struct connecting *c,
				     struct rdma_ep_record *rec)
{
	struct rdmaep_id *ep = NULL;
	ssize_t len;

	memset(rec, 0, sizeof(*rec));
	do {
		len = read(c->fd, rec, sizeof(*rec));
	} while (len < 0 && errno == EINTR);
	if (len <= 0) {
		errno = len ? errno : ENODATA;
		return NULL;
	}
	errno = 0;
	if (!is_answer(rec))
		return NULL;
	pthread_mutex_lock(&rdmaep_lock);
	ep = rdmaep_id_lookup(c->ctx, rec->serial);
	pthread_mutex_unlock(&rdmaep_lock);
	errno = 0;
	return ep;
}

static void connect_done(struct connecting *c, int i, int err)
{
	if (c->answers[i] == ANSWER_CHANNEL) {
		attach_back(to_rdmaep_id(c->ids[i]));
		c->pending--;
	}
	c->answers[i] = ANSWER_NONE;
	tally_add(&c->tally, i, err);
}

/* Returns an error number if no more can be taken. */
static int take_answers(struct connecting *c)
{
	struct rdma_ep_record rec;
	struct rdmaep_event *evt;
	struct rdmaep_id *ep;

	while (c->pending) {
		ep = take_answer(c, &rec);
		if (!ep && errno)
			return errno;
		if (!ep || c->answers[ep->batch] != ANSWER_CHANNEL)
			continue;
		evt = rdmaep_event_alloc(ep);
		if (!evt)
			connect_done(c, ep->batch, ENOMEM);
		else
			connect_done(c, ep->batch,
				     rdmaep_event_finish(evt, ep, &rec) ?
				     errno : 0);
	}
	return 0;
}

/* See rdmaep.h. */
RDMAEP_API int rdmaep_connect_many(struct rdma_cm_id *const *ids,
				   struct rdma_conn_param *const *params, int n,
				   int *errs)
{
	struct connecting c = { .ids = ids, .tally.errs = errs, .fd = -1 };
	int i, err, lost;

	if (!ids || n < 0)
		return rdmaep_fail_plain(EINVAL);
	c.answers = calloc(n ? n : 1, sizeof(*c.answers));
	if (!c.answers)
		return -1;

	for (i = 0; i < n; i++) {
		err = connect_start(&c, i, params ? params[i] : NULL);
		if (err || c.answers[i] == ANSWER_NONE)
			tally_add(&c.tally, i, err);
	}
	lost = take_answers(&c);
	for (i = 0; i < n; i++) {
		if (c.answers[i] == ANSWER_CHANNEL)
			connect_done(&c, i, lost);
		if (c.answers[i] != ANSWER_ID)
			continue;
		err = rdmaep_connect_wait(to_rdmaep_id(ids[i])) ? errno : 0;
		connect_done(&c, i, err);
	}
	if (c.fd >= 0)
		close(c.fd);
	free(c.answers);
	return tally_result(&c.tally);
}

/* Endpoints that are destroyed in one system call */
#define DESTROY_MAX	1024

/* Destroy the endpoints of the first ids; returns of how many. */
static int destroy_some(struct rdma_cm_id *const *ids, int n, uint32_t flags)
{
	uint32_t handles[DESTROY_MAX], count = 0;
	struct rdmaep_ctx *ctx = NULL;
	struct rdmaep_id *ep;
	int i;

	for (i = 0; i < n && count < DESTROY_MAX; i++) {
		if (!ids[i])
			continue;
		ep = to_rdmaep_id(ids[i]);
		/* After fork(2) there may be ids of two contexts. */
		if (ctx && ep->ctx != ctx)
			break;
		ctx = ep->ctx;
		if (ids[i]->qp)
			rdmaep_qp_destroy(ep, false);
		if (ids[i]->srq)
			rdma_destroy_srq(ids[i]);
		rdmaep_groups_detach(ep);
		handles[count++] = ep->handle;
	}
	if (count)
		rdmaep_kernel_destroy_many(ctx, handles, count, flags);
	return i;
}

/* See rdmaep.h. */
RDMAEP_API int rdmaep_destroy_ep_many(struct rdma_cm_id **ids, int n,
				      unsigned int flags)
{
	bool nowait = flags & RDMAEP_DESTROY_NOWAIT;
	int i, done, end;

	if (!ids || n < 0 || flags & ~RDMAEP_DESTROY_NOWAIT)
		return rdmaep_fail_plain(EINVAL);

	for (done = 0; done < n; done = end) {
		end = done + destroy_some(ids + done, n - done, nowait ?
					  RDMA_EP_DESTROY_NOWAIT : 0);
		for (i = done; i < end; i++) {
			if (ids[i])
				rdmaep_id_release(to_rdmaep_id(ids[i]), nowait);
			ids[i] = NULL;
		}
	}
	return 0;
}

/* Events that are read in one system call */
#define READ_MAX	32

/* The shortest record, and the room for one of any length */
#define REC_MIN		offsetof(struct rdma_ep_record, private_data)
#define REC_MAX		sizeof(struct rdma_ep_record)

static void free_events(struct rdmaep_event **evts, int n)
{
	while (n--)
		rdmaep_event_free(evts[n]);
}

static int alloc_events(struct rdmaep_event **evts, int n)
{
	int i;

	for (i = 0; i < n; i++) {
		evts[i] = rdmaep_event_alloc(NULL);
		if (!evts[i]) {
			free_events(evts, i);
			return -1;
		}
	}
	return 0;
}

/* Make up to @n events of the records in @buf. Returns how many the program sees. */
static int make_events(struct rdmaep_channel *ch, const char *buf, size_t len,
		       struct rdmaep_event **evts, int n, int *used,
		       struct rdma_cm_event **events)
{
	struct rdma_ep_record rec;
	int made = 0;
	uint32_t size;

	for (*used = 0; *used < n && len >= REC_MIN; buf += size, len -= size) {
		memcpy(&size, buf + offsetof(struct rdma_ep_record, size),
		       sizeof(size));
		if (size < REC_MIN || size > len)
			break;
		memset(&rec, 0, sizeof(rec));
		memcpy(&rec, buf, size);
		if (!rdmaep_event_make(evts[*used], ch, &rec))
			events[made++] = &evts[*used]->event;
		++*used;
	}
	return made;
}

/*
 * Read up to @max events. The buffer is such that no more can come, however
 * short they are. With @more, only those that are there.
 */
static int read_events(struct rdmaep_channel *ch, struct rdma_cm_event **events,
		       int max, bool more)
{
	char buf[REC_MAX + (READ_MAX - 1) * REC_MIN];
	struct rdmaep_event *evts[READ_MAX];
	struct iovec iov = { .iov_base = buf };
	int used, made;
	ssize_t len;

	if (max > READ_MAX)
		max = READ_MAX;
	iov.iov_len = REC_MAX + (max - 1) * REC_MIN;
	/* First, so that no event is lost for want of memory. */
	if (alloc_events(evts, max))
		return -1;
	len = preadv2(ch->ch.fd, &iov, 1, -1, more ? RWF_NOWAIT : 0);
	if (len <= 0) {
		free_events(evts, max);
		return len ? -1 : rdmaep_fail_plain(ENODATA);
	}
	rdmaep_ctx_adopt(ch->ctx);
	made = make_events(ch, buf, len, evts, max, &used, events);
	free_events(evts + used, max - used);
	return made;
}

/* See rdmaep.h. */
RDMAEP_API int rdmaep_get_cm_events(struct rdma_event_channel *channel,
				    struct rdma_cm_event **events, int n)
{
	struct rdmaep_channel *ch;
	int got = 0, ret;

	if (!channel || !events || n < 1)
		return rdmaep_fail_plain(EINVAL);
	/* A synchronous id without a file */
	if (channel->fd < 0)
		return rdma_get_cm_event(channel, events) ? -1 : 1;

	ch = rdmaep_channel_of(channel);
	do {
		ret = read_events(ch, events + got, n - got, got);
		if (ret > 0)
			got += ret;
	} while (ret >= 0 && got < n);
	if (got)
		rdmaep_event_taken();
	return got ? got : ret;
}
