// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * From the kernel's event records to struct rdma_cm_event, and how operations
 * of synchronous ids wait for one.
 *
 * rdma_cma.h has it that getting an event also does what the event calls for:
 * a connection response moves the QP to RTS, a joined group gets the QP
 * attached. rdmaep_event_fill() does that for both ways in which records come,
 * read(2) on a channel and the answer of a waiting call.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "rdmaep-internal.h"

#ifdef HAVE_SINGLE_THREADED
#include <sys/single_threaded.h>
#else
#define __libc_single_threaded	0
#endif

/* Once a thread has acknowledged what another has taken. Under rdmaep_lock. */
static bool handed_on;

/* How many calls have brought this thread events */
static __thread uint64_t num_taken;

/**
 * rdmaep_event_alloc() - memory for an event
 * @owner: the id it belongs to, if known; the event holds it
 *
 * Return: the event, or NULL with errno ENOMEM.
 */
struct rdmaep_event *rdmaep_event_alloc(struct rdmaep_id *owner)
{
	struct rdmaep_event *evt = calloc(1, sizeof(*evt));

	if (!evt || !owner)
		return evt;

	pthread_mutex_lock(&rdmaep_lock);
	owner->refs++;
	pthread_mutex_unlock(&rdmaep_lock);
	evt->owner = owner;
	return evt;
}

static void event_forget(struct rdmaep_event *evt, struct rdmaep_id *ep)
{
	if (!ep)
		return;
	if (ep->id.event == &evt->event)
		ep->id.event = NULL;
	rdmaep_id_put_locked(ep);
}

/**
 * rdmaep_event_free() - let go of an event
 * @evt: the event
 *
 * Wakes those who wait for it to be acknowledged. Does not change errno.
 */
void rdmaep_event_free(struct rdmaep_event *evt)
{
	struct rdmaep_event **pos;
	int err = errno;

	pthread_mutex_lock(&rdmaep_lock);
	if (evt->listed) {
		for (pos = &evt->owner->events; *pos != evt;
		     pos = &(*pos)->next)
			;
		*pos = evt->next;
		if (!pthread_equal(evt->taker, pthread_self()))
			handed_on = true;
		pthread_cond_broadcast(&rdmaep_acked);
	}
	event_forget(evt, evt->child);
	event_forget(evt, evt->owner);
	pthread_mutex_unlock(&rdmaep_lock);
	free(evt);
	errno = err;
}

/**
 * rdmaep_event_drop_current() - acknowledge id->event
 * @id: the id
 */
void rdmaep_event_drop_current(struct rdma_cm_id *id)
{
	struct rdma_cm_event *event = id->event;

	if (!event)
		return;
	id->event = NULL;
	rdma_ack_cm_event(event);
}

enum holder {
	NOBODY,
	PERHAPS_OTHERS,	/* the calling thread, unless it has handed them on */
	OTHERS,
};

/*
 * Who holds an id's events that are not acknowledged? Those that a thread's last
 * call has brought it may be working on; of those before it cannot be said in
 * a program that hands events on.
 */
static enum holder event_holder(struct rdmaep_id *ep, uint64_t group,
				const struct rdmaep_channel *except)
{
	enum holder holder = NOBODY;
	struct rdmaep_event *evt;

	for (evt = ep->events; evt; evt = evt->next) {
		if ((group && evt->group != group) || (except && evt->from == except))
			continue;
		if (evt->fork_count != rdmaep_fork_count)
			continue;	/* a thread of the parent */
		if (!pthread_equal(evt->taker, pthread_self()) ||
		    (handed_on && evt->nth != num_taken))
			return OTHERS;
		if (!__libc_single_threaded)
			holder = PERHAPS_OTHERS;
	}
	return holder;
}

/* How long to wait for an event that may have been handed to another thread */
#define HANDED_ON_S	30

/**
 * rdmaep_event_wait_acked() - wait for events to be acknowledged
 * @ep: the id whose events they are
 * @group: cookie of a multicast group: its events only; 0 for all
 * @except: a channel whose events are not waited for, or NULL
 *
 * Waits for those that other threads hold. What the calling thread holds it
 * could never acknowledge while it waits here.
 */
void rdmaep_event_wait_acked(struct rdmaep_id *ep, uint64_t group,
			     const struct rdmaep_channel *except)
{
	struct timespec until = { 0 };
	enum holder holder;

	pthread_mutex_lock(&rdmaep_lock);
	while ((holder = event_holder(ep, group, except)) != NOBODY) {
		if (holder == OTHERS) {
			rdmaep_wait_locked(&rdmaep_acked, NULL);
			continue;
		}
		if (!until.tv_sec) {
			clock_gettime(CLOCK_REALTIME, &until);
			until.tv_sec += HANDED_ON_S;
		}
		if (rdmaep_wait_locked(&rdmaep_acked, &until))
			break;
	}
	pthread_mutex_unlock(&rdmaep_lock);
}

/* Private data and connection parameters */
static void fill_conn(struct rdmaep_event *evt,
		      const struct rdma_ep_record *rec)
{
	struct rdma_conn_param *conn = &evt->event.param.conn;

	conn->responder_resources = rec->responder_resources;
	conn->initiator_depth = rec->initiator_depth;
	conn->flow_control = rec->flow_control;
	conn->retry_count = rec->retry_count;
	conn->rnr_retry_count = rec->rnr_retry_count;
	conn->srq = rec->srq;
	conn->qp_num = rec->qp_num;
	if (rec->private_data_len) {
		conn->private_data = evt->private_data;
		conn->private_data_len = rec->private_data_len;
	}
}

static void fill_ud(struct rdmaep_event *evt, struct rdma_ep_record *rec)
{
	struct rdma_ud_param *ud = &evt->event.param.ud;

	ibv_copy_ah_attr_from_kern(&ud->ah_attr, &rec->ah);
	ud->qp_num = rec->qp_num;
	ud->qkey = rec->qkey;
	if (rec->private_data_len) {
		ud->private_data = evt->private_data;
		ud->private_data_len = rec->private_data_len;
	}
}

static void fill_param(struct rdmaep_event *evt, struct rdmaep_id *ep,
		       struct rdma_ep_record *rec)
{
	if (!(rec->flags & RDMA_EP_REC_DATA))
		rec->private_data_len = 0;
	memcpy(evt->private_data, rec->private_data, rec->private_data_len);

	if (rec->flags & RDMA_EP_REC_UD || rdmaep_is_ud(ep))
		fill_ud(evt, rec);
	else
		fill_conn(evt, rec);
}

static void fill_failure(struct rdmaep_event *evt,
			 enum rdma_cm_event_type type)
{
	evt->event.event = type;
	evt->event.status = -errno;
}

/* Return: 1 if the program is not to see this event, else 0. */
static int fill_request(struct rdmaep_event *evt, struct rdmaep_id *ep,
			struct rdma_ep_record *rec)
{
	struct rdmaep_id *child = rdmaep_id_child(ep, rec);

	if (!child)
		return 1;

	evt->child = child;
	evt->event.listen_id = &ep->id;
	evt->event.id = &child->id;
	return 0;
}

static void fill_response(struct rdmaep_event *evt, struct rdmaep_id *ep)
{
	if (!ep->id.qp)
		return;	/* the program will call rdma_establish() */

	if (!rdmaep_establish_qp(ep)) {
		evt->event.event = RDMA_CM_EVENT_ESTABLISHED;
	} else {
		fill_failure(evt, RDMA_CM_EVENT_CONNECT_ERROR);
		ep->connect_error = true;
	}
}

static int fill_group(struct rdmaep_event *evt, struct rdmaep_id *ep,
		      struct rdma_ep_record *rec)
{
	bool found;
	void *context = rdmaep_group_context(ep, rec->arg, &found);

	if (!found)
		return 1;	/* left meanwhile */

	if (rec->type == RDMA_EP_EVENT_MULTICAST_JOIN &&
	    rdmaep_group_joined(ep, evt, rec))
		fill_failure(evt, RDMA_CM_EVENT_MULTICAST_ERROR);
	evt->event.param.ud.private_data = context;
	evt->event.param.ud.private_data_len = 0;
	return 0;
}

static void fill_user(struct rdmaep_event *evt, struct rdmaep_id *ep,
		      const struct rdma_ep_record *rec)
{
	unsigned int type = RDMA_EP_EVENT_USER;

	if (ep->addrinfo_cookie && rec->arg == ep->addrinfo_cookie) {
		/* rdma_resolve_addrinfo() has written it. */
		ep->addrinfo_cookie = 0;
		type = evt->event.status ? RDMA_EP_EVENT_ADDRINFO_ERROR :
					   RDMA_EP_EVENT_ADDRINFO_RESOLVED;
	} else {
		/* param.arg, which older headers do not have */
		memcpy(&evt->event.param, &rec->arg, sizeof(rec->arg));
	}
	evt->event.event = (enum rdma_cm_event_type)type;
}

/**
 * rdmaep_event_fill() - make an event of a record, and do what it calls for
 * @evt: the event, zeroed but for its owner
 * @ep: the id on which it happened
 * @rec: the record
 *
 * For a connection request, the new id is on the listener's channel.
 *
 * Return: 0, or 1 if the program must not see the event.
 */
int rdmaep_event_fill(struct rdmaep_event *evt, struct rdmaep_id *ep,
		      struct rdma_ep_record *rec)
{
	bool is_request = rec->type == RDMA_EP_EVENT_CONNECT_REQUEST;

	evt->event.id = &ep->id;
	evt->event.event = (enum rdma_cm_event_type)rec->type;
	evt->event.status = rec->status;
	fill_param(evt, ep, rec);

	if (is_request)
		return fill_request(evt, ep, rec);

	if (rdmaep_id_update(ep, rec)) {
		switch (rec->type) {
		case RDMA_EP_EVENT_ADDR_RESOLVED:
			fill_failure(evt, RDMA_CM_EVENT_ADDR_ERROR);
			return 0;
		case RDMA_EP_EVENT_ROUTE_RESOLVED:
			fill_failure(evt, RDMA_CM_EVENT_ROUTE_ERROR);
			return 0;
		}
	}

	switch (rec->type) {
	case RDMA_EP_EVENT_CONNECT_RESPONSE:
		fill_response(evt, ep);
		break;
	case RDMA_EP_EVENT_REJECTED:
		if (ep->connect_error)
			return 1;
		rdmaep_qp_to_err(ep);
		break;
	case RDMA_EP_EVENT_CONNECT_ERROR:
	case RDMA_EP_EVENT_UNREACHABLE:
	case RDMA_EP_EVENT_DISCONNECTED:
		if (ep->connect_error)
			return 1;
		break;
	case RDMA_EP_EVENT_DEVICE_REMOVAL:
		if (ep->dev)
			rdmaep_device_gone(ep->dev);
		break;
	case RDMA_EP_EVENT_MULTICAST_JOIN:
	case RDMA_EP_EVENT_MULTICAST_ERROR:
		evt->group = rec->arg;
		return fill_group(evt, ep, rec);
	case RDMA_EP_EVENT_USER:
		fill_user(evt, ep, rec);
		break;
	}
	return 0;
}

/* Find the id of a record, and note that the calling thread has its event. */
static struct rdmaep_id *event_claim(struct rdmaep_event *evt,
				     struct rdmaep_ctx *ctx,
				     const struct rdma_ep_record *rec)
{
	struct rdmaep_id *ep;

	pthread_mutex_lock(&rdmaep_lock);
	ep = rdmaep_id_lookup(ctx, rec->serial);
	if (ep) {
		ep->refs++;
		evt->owner = ep;
		evt->listed = true;
		evt->taker = pthread_self();
		evt->nth = num_taken + 1;
		evt->fork_count = rdmaep_fork_count;
		evt->group = rec->type == RDMA_EP_EVENT_MULTICAST_JOIN ||
			     rec->type == RDMA_EP_EVENT_MULTICAST_ERROR ?
			     rec->arg : 0;
		evt->next = ep->events;
		ep->events = evt;
	}
	pthread_mutex_unlock(&rdmaep_lock);
	return ep;
}

/**
 * rdmaep_ep_wait() - take the next event of one id, and wait for it
 * @ep: the id
 * @cmd: the call, whose channel fields the caller has set
 * @rec: where the record goes
 *
 * Return: 0, or -1 with errno EAGAIN (channel is non-blocking), EINTR, or
 * another that the call failed with.
 */
int rdmaep_ep_wait(struct rdmaep_id *ep, struct rdma_ep_wait *cmd,
		   struct rdma_ep_record *rec)
{
	int ret;

	memset(rec, 0, sizeof(*rec));
	cmd->hdr.size = sizeof(*cmd);
	cmd->ep = ep->handle;
	cmd->record_uptr = (uintptr_t)rec;
	cmd->record_len = sizeof(*rec);
	if (cmd->hdr.flags & RDMA_EP_F_NEW_CHANNEL) {
		cmd->hdr.flags &= ~RDMA_EP_F_NEW_CHANNEL;
		ret = rdmaep_call_new_channel(ep->ctx, RDMA_EP_WAIT, cmd,
					      &cmd->child_channel);
	} else {
		cmd->child_channel = -1;
		ret = rdmaep_call(ep->ctx, RDMA_EP_WAIT, cmd);
	}
	if (ret)
		return ret;
	rdmaep_record_read(rec);
	if (rec->type != RDMA_EP_EVENT_CONNECT_REQUEST &&
	    cmd->child_channel >= 0) {
		struct rdmaep_channel unused = {
			.ch.fd = cmd->child_channel,
			.ctx = ep->ctx,
		};

		rdmaep_channel_keep_own(&unused);
		cmd->child_channel = -1;
	}
	return 0;
}

/*
 * Read one record. The count says how many: a read of exactly one full-sized
 * record returns at most one, however short it is, so that poll(2) on the
 * channel tells the truth about what is left.
 */
static int channel_read(struct rdmaep_channel *ch, struct rdma_ep_record *rec)
{
	struct rdma_ep_wait cmd = { .child_channel = -1 };
	ssize_t n;

	/* A synchronous id without a file */
	if (ch->ch.fd < 0 && ch->owner)
		return rdmaep_ep_wait(ch->owner, &cmd, rec);

	memset(rec, 0, sizeof(*rec));
	n = read(ch->ch.fd, rec, sizeof(*rec));
	if (n < 0)
		return -1;
	if (n < offsetof(struct rdma_ep_record, time_ns))
		return rdmaep_fail_plain(ENODATA);
	rdmaep_ctx_adopt(ch->ctx);
	return 0;
}

/*
 * Without a channel of its own the new id would be left with its listener's,
 * which goes when the listener does.
 */
static void refuse_request(struct rdmaep_event *evt)
{
	struct rdma_cm_id *id = &evt->child->id;

	rdmaep_event_free(evt);
	rdma_destroy_id(id);
}

/**
 * rdmaep_event_make() - make an event of what was read from a channel
 * @evt: memory for the event, without owner
 * @ch: the channel
 * @rec: the record
 *
 * Return: 0, or 1 if the program must not see the event, which is freed then.
 */
int rdmaep_event_make(struct rdmaep_event *evt, struct rdmaep_channel *ch,
		      struct rdma_ep_record *rec)
{
	struct rdmaep_ctx *ctx = ch->ctx;
	struct rdmaep_id *ep;

	evt->from = ch;
	ep = event_claim(evt, ctx, rec);

	if (!ep || rdmaep_event_fill(evt, ep, rec)) {
		if (!ep && rec->type == RDMA_EP_EVENT_CONNECT_REQUEST)
			rdmaep_child_refuse(ctx, rec);
		rdmaep_event_free(evt);
		return 1;
	}
	/* The ids that a synchronous listener begets are synchronous. */
	if (evt->child && ep->sync && rdma_migrate_id(&evt->child->id, NULL)) {
		refuse_request(evt);
		return 1;
	}
	return 0;
}

/** rdmaep_event_taken() - a call has brought the calling thread events */
void rdmaep_event_taken(void)
{
	num_taken++;
}

/**
 * rdma_get_cm_event() - take the next event of a channel
 * @channel: the channel
 * @event: where the event goes; rdma_ack_cm_event() releases it
 *
 * Waits for one, unless the channel's file is non-blocking. Follows
 * rdma_get_cm_event(3).
 *
 * Return: 0, or -1 with errno EAGAIN, EINTR, EINVAL or ENOMEM.
 */
RDMAEP_API int rdma_get_cm_event(struct rdma_event_channel *channel,
				 struct rdma_cm_event **event)
{
	struct rdma_ep_record rec;
	struct rdmaep_channel *ch;
	struct rdmaep_event *evt;

	if (!channel || !event)
		return rdmaep_fail_plain(EINVAL);

	ch = rdmaep_channel_of(channel);
	do {
		/* First, so that no event is lost for want of memory. */
		evt = rdmaep_event_alloc(NULL);
		if (!evt)
			return -1;
		if (channel_read(ch, &rec)) {
			rdmaep_event_free(evt);
			return -1;
		}
	} while (rdmaep_event_make(evt, ch, &rec));
	rdmaep_event_taken();
	*event = &evt->event;
	return 0;
}

/**
 * rdma_ack_cm_event() - release an event
 * @event: the event
 *
 * Follows rdma_ack_cm_event(3).
 *
 * Return: 0, or -1 with errno EINVAL if @event is NULL.
 */
RDMAEP_API int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	if (!event)
		return rdmaep_fail_plain(EINVAL);
	rdmaep_event_free((struct rdmaep_event *)event);
	return 0;
}

/*
 * Synchronous operations
 */

/* What the event says, as errno */
static int event_result(const struct rdma_cm_event *event)
{
	if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		return rdmaep_fail_outcome(ENODEV);
	if (!event->status)
		return 0;
	if (event->event == RDMA_CM_EVENT_REJECTED)
		return rdmaep_fail(ECONNREFUSED, RDMA_EP_REASON_REJECTED,
				   "the peer refused, reason %d",
				   event->status);
	/* Of datagrams: a status of the IBTA's, which librdmacm passes on as errno */
	if (event->event == RDMA_CM_EVENT_UNREACHABLE && event->status > 0)
		return rdmaep_fail(event->status, RDMA_EP_REASON_REJECTED,
				   "the peer refused, or nobody listens there (SIDR status %d)",
				   event->status);
	return rdmaep_fail_outcome(abs(event->status));
}

/**
 * rdmaep_event_finish() - end an operation of a synchronous id
 * @evt: memory for the event, whose owner is @ep
 * @ep: the id; its id->event becomes the event
 * @rec: the event's record, or what answers the operation in its place
 *
 * Return: as rdmaep_wait_end()
 */
int rdmaep_event_finish(struct rdmaep_event *evt, struct rdmaep_id *ep,
			struct rdma_ep_record *rec)
{
	rdmaep_event_drop_current(&ep->id);
	/* Accepting a datagram request, for one, ends with nothing to report. */
	if (!rec->size || rec->type == RDMA_EP_EVENT_NONE) {
		rdmaep_id_update(ep, rec);
		rdmaep_event_free(evt);
		return 0;
	}
	if (rdmaep_event_fill(evt, ep, rec)) {
		rdmaep_event_free(evt);
		return 0;
	}
	ep->id.event = &evt->event;
	return event_result(&evt->event);
}

/*
 * No event has come. If the operation goes on, what the one before has ended with
 * is over, as with librdmacm.
 */
static int wait_fail(struct rdmaep_event *evt, struct rdmaep_id *ep)
{
	if (errno == EAGAIN || errno == EINTR)
		rdmaep_event_drop_current(&ep->id);
	rdmaep_event_free(evt);
	return -1;
}

/**
 * rdmaep_wait_begin() - prepare an operation that may wait
 * @wait: what the operation needs until rdmaep_wait_end()
 * @ep: the id; if it is asynchronous, nothing is waited for
 * @hdr: header of the call
 * @record_uptr: its field for the record's address
 * @record_len: its field for the record's length
 *
 * Return: 0, or -1 with errno ENOMEM.
 */
int rdmaep_wait_begin(struct rdmaep_wait *wait, struct rdmaep_id *ep,
		      struct rdma_ep_hdr *hdr, __u64 *record_uptr,
		      __u32 *record_len)
{
	wait->evt = NULL;
	if (!ep->sync)
		return 0;

	wait->evt = rdmaep_event_alloc(ep);
	if (!wait->evt)
		return -1;
	memset(&wait->rec, 0, sizeof(wait->rec));
	hdr->flags |= RDMA_EP_F_WAIT;
	*record_uptr = (uintptr_t)&wait->rec;
	*record_len = sizeof(wait->rec);
	return 0;
}

/**
 * rdmaep_wait_end() - take the event that an operation has ended with
 * @wait: as rdmaep_wait_begin() left it
 * @ep: the id; its id->event becomes the event
 * @ret: what rdmaep_call() returned
 *
 * Return: 0, or -1 with errno: ECONNREFUSED if the peer rejected, else the
 * event's status, or that of the call.
 */
int rdmaep_wait_end(struct rdmaep_wait *wait, struct rdmaep_id *ep, int ret)
{
	if (!wait->evt)
		return ret;
	if (ret)
		return wait_fail(wait->evt, ep);

	rdmaep_record_read(&wait->rec);
	return rdmaep_event_finish(wait->evt, ep, &wait->rec);
}

/**
 * rdmaep_wait_next() - wait for the next event of a synchronous id
 * @ep: the id; its id->event becomes the event
 *
 * For operations that were started by a call that cannot wait.
 *
 * Return: as rdmaep_wait_end()
 */
int rdmaep_wait_next(struct rdmaep_id *ep)
{
	struct rdma_ep_wait cmd = { .child_channel = -1 };
	struct rdma_ep_record rec;
	struct rdmaep_event *evt;

	evt = rdmaep_event_alloc(ep);
	if (!evt)
		return -1;
	if (rdmaep_ep_wait(ep, &cmd, &rec))
		return wait_fail(evt, ep);
	return rdmaep_event_finish(evt, ep, &rec);
}
