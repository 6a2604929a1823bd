/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * Objects of rdma_ep, and what its files know of each other.
 *
 * A context (one per open file) names endpoints by handle. An endpoint drives
 * one rdma_cm_id. Its events sit in two lists: its own, and the FIFO of the
 * channel that it points at, if any, so that destroying and re-attaching an
 * endpoint costs what that endpoint has pending.
 *
 * Lock order:
 *
 *	rdma_ep::lock
 *	  the cm_id's handler lock (rdma_lock_handler())
 *	    rdma_ep_ctx::ev_lock
 *	      the xarray's lock, wait queue locks
 *
 * rdma_cm calls our handler with the handler lock held. The handler therefore
 * never takes rdma_ep::lock, and rdma_destroy_id(), which takes the handler
 * lock, is called with neither held.
 *
 * All event lists of a context share one spinlock. So an endpoint moves
 * between channels, with its events, in one critical section, and nothing
 * that is done under the lock depends on how many endpoints there are.
 */
#ifndef RDMA_EP_PRIVATE_H
#define RDMA_EP_PRIVATE_H

#include <linux/completion.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/rdma_cm.h>
#include <rdma/rdma_ep.h>

#include "compat.h"
#include "stats.h"
#include "test.h"

struct file;
struct seq_file;
struct rdma_ep;
struct rdma_ep_deadline;
struct rdma_ep_group;
struct rdma_ep_user;

/**
 * struct rdma_ep_ctx - what one open of the device holds
 * @number: its name in traces and in fdinfo
 * @stats: where to count: those of @ns
 * @ns: the counters of the network namespace it was opened in
 * @user: who opened it
 * @memcg: his memory control group, for what is allocated in a work queue
 * @kref: held by the file, by each endpoint and by each channel
 * @eps: handle to endpoint. An entry is reserved before the endpoint is
 *	complete, and stored when nothing can fail any more.
 * @next_handle: where the search for a free handle starts (xarray's lock)
 * @num_eps: endpoints that exist, published or not
 * @last_serial: serial number given out last
 * @ev_lock: guards every event list of the context, the links between
 *	endpoints and channels, and what struct rdma_ep says it guards
 * @channels: its channels that are open (@ev_lock)
 * @last_channel: number given out last to a channel (@ev_lock)
 * @overdue_work: gives up attempts and disconnects of which nothing is heard
 * @dead: the file is closed (@ev_lock)
 * @uring_lock: guards @uring_reqs; outside of @ev_lock
 * @uring_reqs: calls through io_uring that wait, where the kernel does not
 *	tell when their ring ends
 * @uring_work: looks after them
 */
struct rdma_ep_ctx {
	struct kref kref;
	u32 number;
	struct rdma_ep_stats __percpu *stats;
	struct rdma_ep_ns *ns;
	struct rdma_ep_user *user;
	struct mem_cgroup *memcg;
	struct xarray eps;
	u32 next_handle;
	atomic_t num_eps;
	atomic64_t last_serial;
	spinlock_t ev_lock; /* innermost but for the xarray's */
	struct list_head channels;
	u32 last_channel;
	struct delayed_work overdue_work;
	bool dead;
	spinlock_t uring_lock; /* outside of ev_lock */
	struct list_head uring_reqs;
	struct delayed_work uring_work;
};

/**
 * struct rdma_ep_channel - a file that delivers events
 * @kref: held by the file, and by who uses the channel outside of @ctx's
 *	ev_lock
 * @number: its name in fdinfo, within its context
 * @ctx: the context it belongs to
 * @file: the file, for its O_NONBLOCK. NULL once it is closed. (ev_lock)
 * @node: on rdma_ep_ctx::channels (ev_lock)
 * @events: FIFO of events (ev_lock)
 * @num_events: how many (ev_lock)
 * @eps: endpoints that point at this channel (ev_lock)
 * @num_eps: how many (ev_lock)
 * @wq: readers and pollers
 */
struct rdma_ep_channel {
	struct kref kref;
	u32 number;
	struct rdma_ep_ctx *ctx;
	struct file *file;
	struct list_head node;
	struct list_head events;
	unsigned int num_events;
	struct list_head eps;
	unsigned int num_eps;
	wait_queue_head_t wq;
};

/**
 * struct rdma_ep_event - something that happened, not read yet
 * @channel_node: on rdma_ep_channel::events, or empty (ev_lock)
 * @ep_node: on rdma_ep::events, or empty (ev_lock)
 * @ep: the endpoint it happened on. While the event is listed the endpoint
 *	lives, since teardown empties the list.
 * @time_ns: when
 * @status: as in &struct rdma_ep_record
 * @type: as in &struct rdma_ep_record
 * @more: this is a struct rdma_ep_event_more, to be freed when it is read.
 *	Otherwise it is one of an endpoint's slots: see rdma_ep_event_slot().
 * @stale: it happened before the operation that was begun last (ev_lock)
 */
struct rdma_ep_event {
	struct list_head channel_node;
	struct list_head ep_node;
	struct rdma_ep *ep;
	u64 time_ns;
	s32 status;
	u8 type;
	bool more;
	bool stale;
};

/**
 * struct rdma_ep_event_more - an event that carries more than its status
 * @ev: the event
 * @child: connection request: the endpoint made for it. The event owns it.
 * @arg: as in &struct rdma_ep_record
 * @group: multicast: handle of the group
 * @flags: RDMA_EP_REC_PARAM, _UD, _DATA, _NO_DATA: what of the rest is filled
 * @param: parameters, private data left out
 * @ah: datagram: address handle attributes
 * @ece: enhanced connection establishment
 * @room: size of @data
 * @data: private data
 */
struct rdma_ep_event_more {
	struct rdma_ep_event ev;
	struct rdma_ep *child;
	u64 arg;
	u32 group;
	u32 flags;
	struct rdma_conn_param param;
	struct ib_uverbs_ah_attr ah;
	struct rdma_ucm_ece ece;
	u8 room;
	u8 data[];
};

/* What rdma_cm's one byte for the length of private data can say. */
#define RDMA_EP_EVENT_ROOM U8_MAX

/**
 * struct rdma_ep_conn - places for the events of a connection that come unasked
 * @outcome: how the attempt went, if there was no memory to say more
 * @disconnected: it ended
 * @timewait: its queue pair may be used again
 * @since_s: when an attempt or a disconnect began, in s of CLOCK_MONOTONIC (ev_lock)
 * @patience_s: how long it may take; 0: as long as it likes (ev_lock)
 */
struct rdma_ep_conn {
	struct rdma_ep_event outcome;
	struct rdma_ep_event disconnected;
	struct rdma_ep_event timewait;
	u32 since_s;
	u32 patience_s;
};

/* Events that end the wait for an operation, as bits. */
#define RDMA_EP_COMPLETES_ADDR                                              \
	(BIT(RDMA_EP_EVENT_ADDR_RESOLVED) | BIT(RDMA_EP_EVENT_ADDR_ERROR) | \
	 BIT(RDMA_EP_EVENT_DEVICE_REMOVAL))
#define RDMA_EP_COMPLETES_ROUTE                                               \
	(BIT(RDMA_EP_EVENT_ROUTE_RESOLVED) | BIT(RDMA_EP_EVENT_ROUTE_ERROR) | \
	 BIT(RDMA_EP_EVENT_DEVICE_REMOVAL))
#define RDMA_EP_COMPLETES_ADDR_AND_ROUTE (RDMA_EP_COMPLETES_ROUTE | BIT(RDMA_EP_EVENT_ADDR_ERROR))
#define RDMA_EP_COMPLETES_CONNECT                                               \
	(BIT(RDMA_EP_EVENT_CONNECT_RESPONSE) | BIT(RDMA_EP_EVENT_ESTABLISHED) | \
	 BIT(RDMA_EP_EVENT_REJECTED) | BIT(RDMA_EP_EVENT_UNREACHABLE) |         \
	 BIT(RDMA_EP_EVENT_CONNECT_ERROR) | BIT(RDMA_EP_EVENT_ADDR_ERROR) |     \
	 BIT(RDMA_EP_EVENT_DISCONNECTED) | BIT(RDMA_EP_EVENT_DEVICE_REMOVAL))
#define RDMA_EP_COMPLETES_DISCONNECT \
	(BIT(RDMA_EP_EVENT_DISCONNECTED) | BIT(RDMA_EP_EVENT_DEVICE_REMOVAL))
#define RDMA_EP_COMPLETES_SERVICE                                                   \
	(BIT(RDMA_EP_EVENT_ADDRINFO_RESOLVED) | BIT(RDMA_EP_EVENT_ADDRINFO_ERROR) | \
	 BIT(RDMA_EP_EVENT_DEVICE_REMOVAL))
#define RDMA_EP_COMPLETES_ANY U32_MAX

/* The asynchronous operation that an endpoint has under way. */
enum rdma_ep_op {
	RDMA_EP_OP_NONE,
	RDMA_EP_OP_RESOLVE,
	RDMA_EP_OP_SERVICE,
	RDMA_EP_OP_CONNECT,
	RDMA_EP_OP_ACCEPT,
};

/* Options, kept to be read back. */
struct rdma_ep_options {
	u32 connect_timeout_ms;
	u32 device;
	u8 tos;
	u8 ack_timeout;
	u8 min_rnr_timer;
	u8 node_type;
	bool reuseaddr;
	bool afonly;
};

/**
 * struct rdma_ep - an endpoint
 * @kref: held by the context's table, by who uses it, by queued work
 * @rcu: for lookups without a lock, when nothing else refers to it
 * @ctx: the context
 * @lock: taken around every call into rdma_cm, which is not made for
 *	concurrent calls on one id
 * @id: the rdma_cm_id; NULL once the device is removed or the endpoint is
 *	being destroyed (@lock)
 * @handle: its name in the context
 * @qp_type: type of QP that it connects
 * @serial: serial number
 * @cookie: the user's
 * @close_work: destroys @id after a device removal, or an attempt given up
 * @deadline: gives up a connect or an accept, if the user asked for it (@lock)
 * @groups: multicast groups joined (@lock)
 * @last_group: handle given out last (@lock)
 * @num_groups: how many are in @groups (@lock)
 * @options: what the user has set (@lock)
 * @channel: where events go, or NULL (ev_lock)
 * @channel_node: on rdma_ep_channel::eps (ev_lock)
 * @events: all events not read yet (ev_lock)
 * @wq: who waits in an ioctl
 * @waiters: how many (ev_lock)
 * @wanted: the events that they wait for, as bits (ev_lock). When they happen
 *	those are not put on the channel, since a waiter will take them.
 * @num_user: RDMA_EP_EVENT_USER events not read yet (ev_lock)
 * @state: enum rdma_ep_state (ev_lock to write)
 * @op: enum rdma_ep_op (ev_lock)
 * @dead: being destroyed: no more events (ev_lock)
 * @then_route: go on to route resolution by ourselves. Set before the
 *	operation starts, and the handler's from then on.
 * @disconnecting: a disconnect was sent, its event has not come (ev_lock)
 * @disconnect_called: rdma_disconnect() was called (ev_lock)
 * @lingers: ib_cm may still be sending when the connection has ended: the
 *	disconnect of which nothing was heard, or the REP in spite of a notify (ev_lock)
 * @query_removed: its device was removed while a route was asked for (ev_lock);
 *	it and its neighbour are bits, since the rest just fits
 * @route_timeout_ms: for @then_route, likewise
 * @born_s: when it was made, in s of CLOCK_MONOTONIC
 * @op_event: reserved for the completion of @op (ev_lock)
 * @backlog: how many requests may wait (ev_lock)
 * @requests: how many do (ev_lock)
 * @overflows: requests refused (ev_lock)
 * @conn: NULL until a connection is begun. It stays then. (ev_lock)
 * @device: place for what happens to the device: ADDR_CHANGE or DEVICE_REMOVAL
 */
struct rdma_ep {
	struct kref kref;
	u32 handle;
	struct rdma_ep_ctx *ctx;
	struct mutex lock; /* outermost */
	struct rdma_cm_id *id;
	u64 serial;
	u64 cookie;
	union {
		struct work_struct close_work;
		struct rcu_head rcu;
	};
	struct rdma_ep_deadline *deadline;
	struct list_head groups;
	u32 last_group;
	u32 num_groups;
	struct rdma_ep_options options;

	struct rdma_ep_channel *channel;
	struct list_head channel_node;
	struct list_head events;
	wait_queue_head_t wq;
	u32 waiters;
	u32 wanted;
	u32 num_user;
	u8 qp_type;
	u8 state;
	u8 op;
	bool dead;
	bool then_route;
	bool disconnecting;
	bool disconnect_called : 1;
	bool query_removed : 1;
	bool lingers;
	u32 route_timeout_ms;
	u32 born_s;
	struct rdma_ep_event_more *op_event;
	u32 backlog;
	u32 requests;
	u64 overflows;
	struct rdma_ep_conn *conn;
	struct rdma_ep_event device;
};

/**
 * struct rdma_ep_taken - an event that was taken off its lists to be reported
 * @ep: the endpoint, with a reference
 * @ev: the event, for putting it back
 * @time_ns: as in the event: one that is part of an endpoint may be queued
 *	anew once it is off the lists
 * @status: likewise
 * @type: likewise
 */
struct rdma_ep_taken {
	struct rdma_ep *ep;
	struct rdma_ep_event *ev;
	u64 time_ns;
	s32 status;
	u8 type;
};

struct rdma_ep_call;

/**
 * typedef rdma_ep_done_fn - what is left of a call when its wait is over
 * @call: the call
 * @ep: the endpoint that it waited at
 * @ret: as from rdma_ep_wait_for(); below 0 there is no event
 * @t: the event
 *
 * Return: the result of the call.
 */
typedef int rdma_ep_done_fn(struct rdma_ep_call *call, struct rdma_ep *ep, int ret,
			    struct rdma_ep_taken *t);

/**
 * struct rdma_ep_call - one ioctl being served, or its like from io_uring
 * @ctx: the context
 * @cmd: the argument struct, in kernel memory
 * @uarg: where it came from
 * @usize: the caller's idea of its size
 * @op_size: ours
 * @ureason: where @reason goes, or NULL
 * @nr: number of the command
 * @ep: handle of the endpoint it is about, once known
 * @async: do not wait: return -EIOCBQUEUED and leave the next three behind
 * @no_block: what may take long in the kernel is not to be begun: return -EAGAIN
 * @blocks: that is why
 * @wait_ep: the endpoint to wait at, with a reference and, unless @wait_types
 *	is 0, rdma_ep_wait_begin() called
 * @wait_types: the events to wait for; 0 to destroy the endpoint
 * @done: what is left to do then
 * @record_len: for @done: bytes at @record_uptr
 * @record_uptr: for @done: where the record goes
 * @reason: why it fails
 */
struct rdma_ep_call {
	struct rdma_ep_ctx *ctx;
	void *cmd;
	void __user *uarg;
	size_t usize;
	size_t op_size;
	void __user *ureason;
	u32 nr;
	u32 ep;
	bool async;
	bool no_block;
	bool blocks;
	struct rdma_ep *wait_ep;
	u32 wait_types;
	u32 record_len;
	u64 record_uptr;
	rdma_ep_done_fn *done;
	struct rdma_ep_reason reason;
};

/* The longest argument struct decides how much memory a call takes. */
union rdma_ep_cmd {
	struct rdma_ep_hdr hdr;
	struct rdma_ep_get_info get_info;
	struct rdma_ep_create_channel create_channel;
	struct rdma_ep_create create;
	struct rdma_ep_create_ep create_ep;
	struct rdma_ep_destroy destroy;
	struct rdma_ep_destroy_many destroy_many;
	struct rdma_ep_bind bind;
	struct rdma_ep_resolve_addr resolve_addr;
	struct rdma_ep_resolve_route resolve_route;
	struct rdma_ep_listen listen;
	struct rdma_ep_connect connect;
	struct rdma_ep_establish establish;
	struct rdma_ep_reject reject;
	struct rdma_ep_disconnect disconnect;
	struct rdma_ep_query query;
	struct rdma_ep_init_qp_attr init_qp_attr;
	struct rdma_ep_attach attach;
	struct rdma_ep_wait wait;
	struct rdma_ep_notify notify;
	struct rdma_ep_join join;
	struct rdma_ep_leave leave;
	struct rdma_ep_option option;
	struct rdma_ep_write_event write_event;
	struct rdma_ep_resolve_service resolve_service;
	struct rdma_ep_query_services query_services;
};

/**
 * struct rdma_ep_new_channel - the channel that a call finds or makes
 * @channel: with a reference, or NULL
 * @file: if it was made: its file, not installed yet
 * @fd: if it was made: its file descriptor; otherwise the caller's, or -1
 */
struct rdma_ep_new_channel {
	struct rdma_ep_channel *channel;
	struct file *file;
	int fd;
};

/**
 * struct rdma_ep_remains - endpoints that are torn down by a work item
 * @kref: held by the work, and by who waits for it
 * @work: tears them down
 * @eps: as rdma_ep_claim() has left them, by their channel_node
 * @discarded: how many of their events nobody has read, once it is @done
 * @done: they are gone
 */
struct rdma_ep_remains {
	struct kref kref;
	struct work_struct work;
	struct list_head eps;
	unsigned int discarded;
	struct completion done;
};

extern struct workqueue_struct *rdma_ep_removal_wq;
extern struct workqueue_struct *rdma_ep_destroy_wq;
extern struct workqueue_struct *rdma_ep_uring_wq;
extern struct workqueue_struct *rdma_ep_timer_wq;
extern unsigned int rdma_ep_max_endpoints;
extern unsigned int rdma_ep_max_user_ids;
extern unsigned int rdma_ep_max_backlog;

/* main.c */
void rdma_ep_ctx_release(struct kref *kref);

static inline void rdma_ep_ctx_put(struct rdma_ep_ctx *ctx)
{
	kref_put(&ctx->kref, rdma_ep_ctx_release);
}

static inline void rdma_ep_count(struct rdma_ep_ctx *ctx, enum rdma_ep_counter counter)
{
	this_cpu_inc(ctx->stats->count[counter]);
}

/* ioctl.c */
int rdma_ep_serve(struct rdma_ep_call *call, unsigned int cmd);
int rdma_ep_finish(struct rdma_ep_call *call, int ret);
long rdma_ep_ioctl(struct file *file, unsigned int cmd, unsigned long arg);
int rdma_ep_respond(struct rdma_ep_call *call);

/* reason.c */
__printf(4, 5) int rdma_ep_fail(struct rdma_ep_call *call, int err, u32 code, const char *fmt, ...);
const char *rdma_ep_state_name(unsigned int state);
const char *rdma_ep_state_symbol(unsigned int state);
const char *rdma_ep_event_symbol(unsigned int type);
int rdma_ep_fail_state(struct rdma_ep_call *call, struct rdma_ep *ep, const char *what);
int rdma_ep_fail_no_id(struct rdma_ep_call *call, struct rdma_ep *ep);
int rdma_ep_fail_unbound(struct rdma_ep_call *call, struct rdma_ep *ep);
int rdma_ep_fail_wait(struct rdma_ep_call *call, struct rdma_ep *ep, int err);
int rdma_ep_fail_bind(struct rdma_ep_call *call, struct rdma_ep *ep, int err,
		      const struct sockaddr *addr);
int rdma_ep_fail_resolve(struct rdma_ep_call *call, int err);
void rdma_ep_explain(struct rdma_ep_call *call, struct rdma_ep *ep, const struct rdma_ep_taken *t);

/* create.c */
int rdma_ep_create(struct rdma_ep_call *call);
int rdma_ep_create_ep(struct rdma_ep_call *call);

/* endpoint.c */
int rdma_ep_cache_init(void);
void rdma_ep_cache_exit(void);
struct rdma_ep *rdma_ep_alloc(struct rdma_ep_ctx *ctx, gfp_t gfp);
void rdma_ep_unalloc(struct rdma_ep *ep);
struct rdma_ep_conn *rdma_ep_conn_alloc(struct rdma_ep *ep, gfp_t gfp);
void rdma_ep_set_state(struct rdma_ep *ep, u8 state);
struct rdma_ep *rdma_ep_get(struct rdma_ep_call *call, u32 handle);
void rdma_ep_release(struct kref *kref);
void rdma_ep_publish(struct rdma_ep *ep, struct rdma_ep_channel *channel);
bool rdma_ep_unpublish(struct rdma_ep *ep);
bool rdma_ep_point_at(struct rdma_ep *ep, struct rdma_ep_channel *channel);
unsigned int rdma_ep_teardown(struct rdma_ep *ep);
void rdma_ep_close_all(struct rdma_ep_ctx *ctx);
void rdma_ep_close_id(struct rdma_ep *ep);
void rdma_ep_close_id_later(struct rdma_ep *ep);
void rdma_ep_close_id_removed(struct rdma_ep *ep);
unsigned int rdma_ep_teardown_all(struct list_head *list);
int rdma_ep_destroy(struct rdma_ep_call *call);
int rdma_ep_destroy_many(struct rdma_ep_call *call);
int rdma_ep_attach(struct rdma_ep_call *call);

static inline void rdma_ep_put(struct rdma_ep *ep)
{
	kref_put(&ep->kref, rdma_ep_release);
}

/* fdinfo.c */
void rdma_ep_show_fdinfo(struct seq_file *m, struct file *file);

/* channel.c */
int rdma_ep_check_channel(struct rdma_ep_call *call, int fd);
int rdma_ep_check_new_channel(struct rdma_ep_call *call, int fd);
int rdma_ep_want_channel(struct rdma_ep_call *call, struct rdma_ep_new_channel *want, int fd);
void rdma_ep_unwant_channel(struct rdma_ep_new_channel *want);
void rdma_ep_keep_channel(struct rdma_ep_new_channel *want);
void rdma_ep_set_channel(struct rdma_ep *ep, struct rdma_ep_channel *channel);
bool rdma_ep_channel_attached(struct file *file);
bool rdma_ep_nonblock(struct rdma_ep *ep);
int rdma_ep_create_channel(struct rdma_ep_call *call);

/* event.c */
struct rdma_ep_event_more *rdma_ep_event_alloc(struct rdma_ep *ep, u8 room, gfp_t gfp);
void rdma_ep_event_init(struct rdma_ep_event *ev, struct rdma_ep *ep);
void rdma_ep_event_queue(struct rdma_ep_event *ev, u8 type, int status);
void rdma_ep_event_queue_slot(struct rdma_ep *ep, u8 type, int status);
void rdma_ep_event_expose(struct rdma_ep *ep);
void rdma_ep_event_off_channel(struct rdma_ep_event *ev);
bool rdma_ep_event_is_waiting(struct rdma_ep *ep, u8 type);
void rdma_ep_event_take(struct rdma_ep_event *ev, struct rdma_ep_taken *t);
void rdma_ep_event_untake(struct rdma_ep_taken *t);
struct rdma_ep *rdma_ep_event_child(struct rdma_ep_taken *t);
void rdma_ep_event_publish(struct rdma_ep_taken *t, struct rdma_ep_channel *channel);
void rdma_ep_event_done(struct rdma_ep_taken *t);
void rdma_ep_event_unalloc(struct rdma_ep_event_more *more);
void rdma_ep_event_free(struct rdma_ep_event *ev);
unsigned int rdma_ep_group_discard(struct rdma_ep *ep, u32 group);
int rdma_ep_write_event(struct rdma_ep_call *call);

/* handler.c */
int rdma_ep_cm_handler(struct rdma_cm_id *id, struct rdma_cm_event *event);

/* wait.c */
int rdma_ep_wait_prepare(struct rdma_ep_call *call, struct rdma_ep **ep, u32 handle, u32 types,
			 u64 record_uptr, u32 record_len);
void rdma_ep_wait_finish(struct rdma_ep_call *call, struct rdma_ep *ep);
int rdma_ep_op_begin(struct rdma_ep_call *call, struct rdma_ep *ep, enum rdma_ep_op op, u32 from,
		     u8 to, const char *what);
void rdma_ep_op_end(struct rdma_ep *ep, u8 state);
void rdma_ep_wait_begin(struct rdma_ep *ep, u32 types);
void rdma_ep_wait_end(struct rdma_ep *ep);
int rdma_ep_wait_take(struct rdma_ep *ep, u32 types, struct rdma_ep_taken *t,
		      struct wait_queue_entry *wait);
int rdma_ep_wait_then(struct rdma_ep_call *call, struct rdma_ep *ep, u32 types,
		      rdma_ep_done_fn *done);
int rdma_ep_wait_reported(struct rdma_ep_call *call, struct rdma_ep *ep, int ret,
			  struct rdma_ep_taken *t);
int rdma_ep_wait_report(struct rdma_ep_call *call, struct rdma_ep *ep, u32 types);
int rdma_ep_wait(struct rdma_ep_call *call);

/* record.c */
int rdma_ep_record_check(struct rdma_ep_call *call, u64 uptr, u32 len);
void rdma_ep_record_from_event(struct rdma_ep_record *rec, struct rdma_ep_taken *t, u32 len);
int rdma_ep_record_to_user(const struct rdma_ep_record *rec, u64 uptr, u32 len);
int rdma_ep_record_answer(struct rdma_ep_call *call, struct rdma_ep *ep, u32 parts, bool must,
			  u64 uptr, u32 len);
unsigned int rdma_ep_max_data(struct rdma_cm_id *id, enum rdma_ep_op op);
int rdma_ep_query(struct rdma_ep_call *call);
int rdma_ep_init_qp_attr(struct rdma_ep_call *call);

/* remains.c */
struct rdma_ep_remains *rdma_ep_remains_alloc(void);
unsigned int rdma_ep_remains_finish(struct rdma_ep_remains *remains, bool wait);
bool rdma_ep_may_linger(struct rdma_ep *ep);

/* resolve.c */
struct sockaddr *rdma_ep_sockaddr(struct rdma_ep_call *call, struct rdma_ep_addr *addr,
				  bool optional);
u8 rdma_ep_settle(struct rdma_ep *ep);
int rdma_ep_bind_locked(struct rdma_ep_call *call, struct rdma_ep *ep, struct sockaddr *addr);
int rdma_ep_resolve_locked(struct rdma_ep_call *call, struct rdma_ep *ep, struct sockaddr *src,
			   struct sockaddr *dst, u32 timeout_ms, bool then_route);
int rdma_ep_bind(struct rdma_ep_call *call);
int rdma_ep_resolve_addr(struct rdma_ep_call *call);
int rdma_ep_resolve_route(struct rdma_ep_call *call);

/* connect.c */
int rdma_ep_listen(struct rdma_ep_call *call);
int rdma_ep_connect(struct rdma_ep_call *call);
int rdma_ep_accept(struct rdma_ep_call *call);
int rdma_ep_establish(struct rdma_ep_call *call);
int rdma_ep_reject(struct rdma_ep_call *call);
int rdma_ep_disconnect(struct rdma_ep_call *call);
int rdma_ep_notify(struct rdma_ep_call *call);

/* overdue.c */
int rdma_ep_deadline_set(struct rdma_ep *ep, u32 timeout_ms);
void rdma_ep_deadline_free(struct rdma_ep *ep);
void rdma_ep_watch_attempt(struct rdma_ep *ep);
void rdma_ep_watch_disconnect(struct rdma_ep *ep);
void rdma_ep_overdue_work(struct work_struct *work);

/* mcast.c */
struct rdma_ep_group *rdma_ep_group_find(struct rdma_ep *ep, u32 handle);
struct rdma_ep_event_more *rdma_ep_group_event(struct rdma_cm_event *event);
void rdma_ep_group_free_all(struct rdma_ep *ep);
int rdma_ep_join(struct rdma_ep_call *call);
int rdma_ep_leave(struct rdma_ep_call *call);

/* option.c */
int rdma_ep_set_option(struct rdma_ep_call *call);
int rdma_ep_get_option(struct rdma_ep_call *call);
bool rdma_ep_device_ok(const struct rdma_ep *ep, const struct rdma_cm_id *id);

/* service.c */
int rdma_ep_resolve_service(struct rdma_ep_call *call);
int rdma_ep_query_services(struct rdma_ep_call *call);

/* files.c */
bool rdma_ep_file_idle(int fd);

/* user.c */
struct rdma_ep_user *rdma_ep_user_get_current(void);
void rdma_ep_user_put(struct rdma_ep_user *user);
int rdma_ep_user_charge(struct rdma_ep_user *user);
void rdma_ep_user_uncharge(struct rdma_ep_user *user);
int rdma_ep_fail_quota(struct rdma_ep_call *call);

/* uring.c */
void rdma_ep_uring_init(struct rdma_ep_ctx *ctx);
void rdma_ep_uring_flush(struct rdma_ep_ctx *ctx);
void rdma_ep_uring_exit(struct rdma_ep_ctx *ctx);
int rdma_ep_uring_cmd(struct io_uring_cmd *ioucmd, unsigned int issue_flags);

#endif /* RDMA_EP_PRIVATE_H */
