/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the files of the library share.
 *
 * Locks, outermost first: that of context.c is held while the module's device
 * is opened and the module loaded; that of device.c while a device is opened
 * or closed, and its default PD and XRC domain are made; that of cqcache.c
 * guards what is kept. rdmaep_lock (id.c) guards the table of ids, their
 * reference counts and the lists of unacknowledged events. Nothing else that
 * may wait is done under any of them. fork(2) takes them all.
 */
#ifndef RDMAEP_INTERNAL_H
#define RDMAEP_INTERNAL_H

#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/ib.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_ep.h>
#include <rdmaep.h>

#include "rdmaep-config.h"

/* On the definition of each exported function */
#define RDMAEP_API	__attribute__((visibility("default")))

#define RDMAEP_HDR(cmd)	{ .size = sizeof(cmd) }

/**
 * struct rdmaep_guard - a mutex whose holder cannot be cancelled
 * @mutex: the mutex
 * @cancel_state: of its holder, before
 *
 * For what has cancellation points in it: pthread_cancel(3) would leave the
 * mutex locked for ever.
 */
struct rdmaep_guard {
	pthread_mutex_t mutex;
	int cancel_state;
};

#define RDMAEP_GUARD_INITIALIZER	{ .mutex = PTHREAD_MUTEX_INITIALIZER }

static inline void rdmaep_guard_enter(struct rdmaep_guard *guard)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_mutex_lock(&guard->mutex);
	guard->cancel_state = state;
}

static inline void rdmaep_guard_leave(struct rdmaep_guard *guard)
{
	int state = guard->cancel_state;

	pthread_mutex_unlock(&guard->mutex);
	pthread_setcancelstate(state, &state);
}

/*
 * What older rdma-core headers lack
 */

#ifdef HAVE_MARSHALL_H
#include <infiniband/marshall.h>
#else
/* libibverbs exports these; not every distribution ships their header. */
void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *dst,
				struct ib_uverbs_qp_attr *src);
void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *dst,
				struct ib_uverbs_ah_attr *src);
void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *dst,
				 struct ib_user_path_rec *src);
#endif

#ifndef RAI_SA
#define RAI_SA		0x00000010
#endif
#ifndef RAI_DNS
#define RAI_DNS		0x00000020
#endif

#ifndef HAVE_RDMA_RESOLVE_ADDRINFO
int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node,
			  const char *service,
			  const struct rdma_addrinfo *hints);
#endif
#ifndef HAVE_RDMA_QUERY_ADDRINFO
int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info);
#endif
#ifndef HAVE_RDMA_WRITE_CM_EVENT
int rdma_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event,
			int status, uint64_t arg);
#endif

/*
 * autoload.c
 */

void rdmaep_autoload(void);

/*
 * context.c
 */

#define RDMAEP_IDLE_CHANNELS	16

/**
 * struct rdmaep_ctx - an open file of the device
 * @fd: the file
 * @owner: rdmaep_fork_count of the process that has opened it, or has gone on with
 *	what it has inherited
 * @next: next of those that were not closed yet
 * @refs: ids and channels in it, and 1 while new ones go here
 * @idle: channels of synchronous ids that are gone, for new ones
 * @num_idle: how many
 *
 * A process has one. After fork(2) the child makes its own for what it
 * creates, while ids it inherited stay usable in the one they were made in.
 */
struct rdmaep_ctx {
	int fd;
	unsigned int owner;
	struct rdmaep_ctx *next;
	unsigned int refs;
	int idle[RDMAEP_IDLE_CHANNELS];
	unsigned int num_idle;
};

/* Counts forks, so that events held by threads that are gone can be told. */
extern unsigned int rdmaep_fork_count;

struct rdmaep_ctx *rdmaep_ctx_get(void);
struct rdmaep_ctx *rdmaep_ctx_hold(struct rdmaep_ctx *ctx);
void rdmaep_ctx_put(struct rdmaep_ctx *ctx);
bool rdmaep_ctx_is_parents(struct rdmaep_ctx *ctx);
void rdmaep_ctx_adopt(struct rdmaep_ctx *ctx);
int rdmaep_ctx_take_channel(struct rdmaep_ctx *ctx);
bool rdmaep_ctx_keep_channel(struct rdmaep_ctx *ctx, int fd);
int rdmaep_call(struct rdmaep_ctx *ctx, unsigned int nr, void *cmd);
void rdmaep_call_quiet(struct rdmaep_ctx *ctx, unsigned int nr, void *cmd);
void rdmaep_record_read(struct rdma_ep_record *rec);
int rdmaep_fail(int err, enum rdma_ep_reason_code code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int rdmaep_fail_parents(void);
int rdmaep_fail_plain(int err);
int rdmaep_fail_outcome(int err);
void rdmaep_forget_reason(void);

/* verbs calls that return an errno */
static inline int rdmaep_seterrno(int err)
{
	return err ? rdmaep_fail_plain(err > 0 ? err : -err) : 0;
}

/*
 * channel.c
 */

/**
 * struct rdmaep_channel - an event channel
 * @ch: what the program sees
 * @ctx: where it lives
 * @owner: the synchronous id it was made for, NULL for a program's own
 * @ids: how many ids use a program's own. Under rdmaep_lock.
 * @slot: where it is known by its descriptor, or NULL
 */
struct rdmaep_channel {
	struct rdma_event_channel ch;
	struct rdmaep_ctx *ctx;
	struct rdmaep_id *owner;
	unsigned int ids;
	struct rdmaep_channel **slot;
};

struct rdmaep_channel *rdmaep_channel_of(struct rdma_event_channel *channel);
void rdmaep_channel_know(int fd, struct rdmaep_channel *ch);
bool rdmaep_channel_reserve(void);
void rdmaep_channel_unreserve(void);
int rdmaep_call_new_channel(struct rdmaep_ctx *ctx, unsigned int nr, void *cmd,
			    __s32 *fd);
void rdmaep_channel_close_own(struct rdmaep_channel *ch);
void rdmaep_channel_keep_own(struct rdmaep_channel *ch);

/*
 * device.c
 */

/**
 * struct rdmaep_device - an RDMA device that has been opened
 * @next: next in the list
 * @index: as the kernel numbers it
 * @guid: node GUID, for kernels that do not number devices
 * @verbs: the open device
 * @pd: the default protection domain, or NULL
 * @xrcd: the XRC domain, or NULL
 * @refs: ids and device lists that use it
 * @in_sysfs: it was in sysfs when it was opened
 * @sysfs_fd: a file of its there, or -1
 * @gone: removed: closed when nothing uses it any more
 * @max_responder_resources: limit of the device
 * @max_initiator_depth: limit of the device
 * @cqs: completion queues that are kept, see cqcache.c
 * @num_cqs: how many
 * @num_cqes: entries of all of them
 */
struct rdmaep_device {
	struct rdmaep_device *next;
	int index;
	__be64 guid;
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ibv_xrcd *xrcd;
	unsigned int refs;
	bool in_sysfs;
	int sysfs_fd;
	bool gone;
	uint8_t max_responder_resources;
	uint8_t max_initiator_depth;
	struct rdmaep_cached_cq *cqs;
	unsigned int num_cqs;
	unsigned int num_cqes;
};

void rdmaep_device_lock(bool lock);
struct rdmaep_device *rdmaep_device_get(uint32_t index, __be64 guid);
void rdmaep_device_put(struct rdmaep_device *dev);
void rdmaep_device_gone(struct rdmaep_device *dev);
int rdmaep_device_scan(void);
struct ibv_pd *rdmaep_device_pd(struct rdmaep_device *dev);
struct ibv_xrcd *rdmaep_device_xrcd(struct rdmaep_device *dev);

/*
 * cqcache.c
 */

/**
 * struct rdmaep_made_cq - a completion queue that the library has made
 * @cq: the queue, or NULL if it cannot be kept
 * @size: how many entries were asked for
 * @parked: the id has let go of it, and is being destroyed
 */
struct rdmaep_made_cq {
	struct ibv_cq *cq;
	uint32_t size;
	bool parked;
};

unsigned int rdmaep_cache_max(void);
void rdmaep_cq_lock(bool lock);
void rdmaep_cq_share(const struct ibv_cq *cq);
struct ibv_cq *rdmaep_cq_take(struct rdmaep_device *dev, uint32_t size,
			      void *context);
void rdmaep_cqs_park(struct rdmaep_id *ep);
void rdmaep_cq_unpark(struct rdmaep_id *ep, struct rdmaep_made_cq *made,
		      bool idle);
bool rdmaep_cqs_flush(struct rdmaep_device *dev);

/*
 * id.c
 */

/**
 * struct rdmaep_id - a communication identifier
 * @id: what the program sees; comes first
 * @ctx: where the endpoint lives
 * @handle: its handle
 * @serial: its serial number, by which events find it
 * @hash_next: next in the table's bucket
 * @refs: the program, and each event that points here. Under rdmaep_lock.
 * @events: events that rdma_get_cm_event() has delivered for this id, not
 *	acknowledged yet. Under rdmaep_lock.
 * @sync: operations wait
 * @listening: rdma_listen() was called
 * @own: the channel of a synchronous id
 * @shared: the program's channel, until that is destroyed. Under rdmaep_lock.
 * @dev: the device, once known
 * @transport: RDMA_EP_TRANSPORT_*
 * @max_connect_data: limit on private data, 0 while not known
 * @max_accept_data: likewise
 * @max_reject_data: likewise
 * @attr_parts: which of @attr are valid, as RDMA_EP_REC_*
 * @attr: attributes to move the QP to INIT, RTR, RTS
 * @made_qp_num: number of the QP that the library has made, 0 if it has not. A
 *	program may put another one into id->qp.
 * @init_access: qp_access_flags that the QP went to INIT with
 * @made_recv: the CQ made for its receives
 * @made_send: the CQ made for its sends
 * @initiator_depth: negotiated initiator depth
 * @responder_resources: negotiated responder resources
 * @connect_error: CONNECT_ERROR was reported: nothing else may follow
 * @local_ece: ECE to send
 * @remote_ece: ECE that came
 * @connect_data: rdma_addrinfo.ai_connect: goes before other private data
 * @connect_len: its length
 * @qp_init_attr: passive endpoint: attributes for the QPs of the connections
 * @groups: multicast groups. Under rdmaep_lock.
 * @addrinfo: result of rdma_resolve_addrinfo(). Under rdmaep_lock.
 * @addrinfo_cookie: argument of the event that announces it
 * @batch: its place in the call that connects many
 * @by_service: the last rdma_resolve_addrinfo() asked for service records,
 *	which the kernel keeps
 */
struct rdmaep_id {
	struct rdma_cm_id id;
	struct rdmaep_ctx *ctx;
	uint32_t handle;
	uint64_t serial;
	struct rdmaep_id *hash_next;
	unsigned int refs;
	struct rdmaep_event *events;
	bool sync;
	bool listening;
	struct rdmaep_channel own;
	struct rdmaep_channel *shared;
	struct rdmaep_device *dev;
	uint8_t transport;
	uint16_t max_connect_data;
	uint16_t max_accept_data;
	uint16_t max_reject_data;
	uint32_t attr_parts;
	struct ib_uverbs_qp_attr attr[RDMA_EP_ATTRS];
	uint32_t made_qp_num;
	uint32_t init_access;
	struct rdmaep_made_cq made_recv;
	struct rdmaep_made_cq made_send;
	uint8_t initiator_depth;
	uint8_t responder_resources;
	bool connect_error;
	struct ibv_ece local_ece;
	struct ibv_ece remote_ece;
	void *connect_data;
	size_t connect_len;
	struct ibv_qp_init_attr *qp_init_attr;
	struct rdmaep_group *groups;
	struct rdma_addrinfo *addrinfo;
	uint64_t addrinfo_cookie;
	int batch;
	bool by_service;
};

static inline struct rdmaep_id *to_rdmaep_id(struct rdma_cm_id *id)
{
	return (struct rdmaep_id *)id;
}

static inline bool rdmaep_is_ud(const struct rdmaep_id *ep)
{
	return ep->id.qp_type == IBV_QPT_UD;
}

/* Return: 0, or -1 with errno EINVAL. */
static inline int rdmaep_need_device(const struct rdmaep_id *ep)
{
	if (ep->dev)
		return 0;
	return rdmaep_fail(EINVAL, RDMA_EP_REASON_STATE,
			   "the id is not bound to a device");
}

extern pthread_mutex_t rdmaep_lock;
extern pthread_cond_t rdmaep_acked;

int rdmaep_wait_locked(pthread_cond_t *cond, struct timespec *until);

void rdmaep_id_after_fork(void);
int rdmaep_check_port_space(enum rdma_port_space ps);
struct rdmaep_id *rdmaep_id_alloc(struct rdmaep_ctx *ctx, void *context,
				  enum rdma_port_space ps,
				  enum ibv_qp_type qp_type);
void rdmaep_id_publish(struct rdmaep_id *ep, uint32_t handle, uint64_t serial);
void rdmaep_id_set_own_channel(struct rdmaep_id *ep, int fd);
void rdmaep_ids_end(struct rdmaep_channel *ch);
void rdmaep_ids_forget_dead(void);
void rdmaep_id_set_channel(struct rdmaep_id *ep, struct rdma_event_channel *ch);
struct rdmaep_id *rdmaep_id_lookup(struct rdmaep_ctx *ctx, uint64_t serial);
void rdmaep_id_put_locked(struct rdmaep_id *ep);
int rdmaep_id_update(struct rdmaep_id *ep, const struct rdma_ep_record *rec);
struct rdmaep_id *rdmaep_id_child(struct rdmaep_id *listener,
				  const struct rdma_ep_record *rec);
void rdmaep_kernel_destroy(struct rdmaep_ctx *ctx, uint32_t handle);
void rdmaep_child_refuse(struct rdmaep_ctx *ctx, const struct rdma_ep_record *rec);
void rdmaep_kernel_destroy_many(struct rdmaep_ctx *ctx, const uint32_t *handles,
				uint32_t count, uint32_t flags);
void rdmaep_id_release(struct rdmaep_id *ep, bool nowait);
void rdmaep_id_kill(struct rdmaep_id *ep);

/*
 * event.c
 */

/**
 * struct rdmaep_event - an event and what goes with it
 * @event: what the program sees
 * @owner: the id whose destruction waits for this event to be acknowledged
 * @child: connection request: the new id
 * @next: next in the owner's list
 * @from: the channel it was read from
 * @listed: it is in the owner's list: rdma_get_cm_event() has delivered it
 * @taker: the thread that took it
 * @nth: by which of that thread's calls that brought any
 * @fork_count: in which process it was taken
 * @group: multicast: cookie of the group, 0 otherwise
 * @private_data: what the peer sent along
 */
struct rdmaep_event {
	struct rdma_cm_event event;
	struct rdmaep_id *owner;
	struct rdmaep_id *child;
	struct rdmaep_event *next;
	const struct rdmaep_channel *from;
	bool listed;
	pthread_t taker;
	uint64_t nth;
	unsigned int fork_count;
	uint64_t group;
	uint8_t private_data[RDMA_EP_MAX_DATA];
};

struct rdmaep_event *rdmaep_event_alloc(struct rdmaep_id *owner);
void rdmaep_event_free(struct rdmaep_event *evt);
int rdmaep_event_fill(struct rdmaep_event *evt, struct rdmaep_id *ep,
		      struct rdma_ep_record *rec);
int rdmaep_event_make(struct rdmaep_event *evt, struct rdmaep_channel *ch,
		      struct rdma_ep_record *rec);
int rdmaep_event_finish(struct rdmaep_event *evt, struct rdmaep_id *ep,
			struct rdma_ep_record *rec);
void rdmaep_event_wait_acked(struct rdmaep_id *ep, uint64_t group,
			     const struct rdmaep_channel *except);
void rdmaep_event_drop_current(struct rdma_cm_id *id);
void rdmaep_event_taken(void);

/**
 * struct rdmaep_wait - a synchronous operation on its way
 * @evt: the event it will end with, NULL for an asynchronous id
 * @rec: the record for the kernel to fill
 */
struct rdmaep_wait {
	struct rdmaep_event *evt;
	struct rdma_ep_record rec;
};

int rdmaep_wait_begin(struct rdmaep_wait *wait, struct rdmaep_id *ep,
		      struct rdma_ep_hdr *hdr, __u64 *record_uptr,
		      __u32 *record_len);
int rdmaep_wait_end(struct rdmaep_wait *wait, struct rdmaep_id *ep, int ret);
int rdmaep_wait_next(struct rdmaep_id *ep);
int rdmaep_ep_wait(struct rdmaep_id *ep, struct rdma_ep_wait *cmd,
		   struct rdma_ep_record *rec);

/*
 * resolve.c
 */

int rdmaep_addr_set(struct rdma_ep_addr *dst, const struct sockaddr *src,
		    const char *which);
size_t rdmaep_addr_size(const struct sockaddr *addr);

/*
 * connect.c
 */

int rdmaep_establish_qp(struct rdmaep_id *ep);
int rdmaep_connect_start(struct rdmaep_id *ep,
			 const struct rdma_conn_param *param);
int rdmaep_connect_wait(struct rdmaep_id *ep);

/*
 * ep.c
 */

struct rdmaep_id *rdmaep_ep_create(const struct rdma_addrinfo *res,
				   struct ibv_pd *pd, uint32_t flags);
int rdmaep_ep_set(struct rdmaep_id *ep, const struct rdma_addrinfo *res,
		  struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr);

/*
 * qp.c
 */

int rdmaep_qp_to_rtr(struct rdmaep_id *ep, int responder_resources);
int rdmaep_qp_to_rts(struct rdmaep_id *ep, int initiator_depth);
void rdmaep_qp_to_err(struct rdmaep_id *ep);
void rdmaep_qp_to_sqd(struct rdmaep_id *ep);
void rdmaep_qp_destroy(struct rdmaep_id *ep, bool last);
int rdmaep_cqs_create(struct rdma_cm_id *id, uint32_t send, uint32_t recv);
void rdmaep_cqs_destroy(struct rdma_cm_id *id);

/*
 * mcast.c
 */

int rdmaep_group_joined(struct rdmaep_id *ep, struct rdmaep_event *evt,
			struct rdma_ep_record *rec);
void *rdmaep_group_context(struct rdmaep_id *ep, uint64_t cookie, bool *found);
void rdmaep_groups_attach(struct rdmaep_id *ep);
void rdmaep_groups_detach(struct rdmaep_id *ep);
void rdmaep_groups_free(struct rdmaep_id *ep);

/*
 * option.c
 */

int rdmaep_option_ib_path(struct rdmaep_id *ep, const void *value, size_t len);

#endif /* RDMAEP_INTERNAL_H */
