// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Ids: the table that finds them by their serial number, their life and their
 * death.
 *
 * An event record names an endpoint by handle and serial number, and it may
 * have been read by one thread while another destroys the id. So a record
 * leads to an id through the table only, and an event counts as a reference to
 * the ids it points at: their memory stays until it is acknowledged, even if
 * the program destroys them before.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rdmaep-internal.h"

pthread_mutex_t rdmaep_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t rdmaep_acked = PTHREAD_COND_INITIALIZER;

/* Guarded by rdmaep_lock. */
static struct rdmaep_id *first_bucket[1];
static struct rdmaep_id **buckets = first_bucket;
static size_t bucket_mask;
static size_t id_count;
static pthread_cond_t id_born = PTHREAD_COND_INITIALIZER;

/*
 * Serial numbers of the ids that died last, to tell an event for a dead id
 * from one for an id that is about to be born: the thread that has read its
 * connection request has not come here yet.
 */
#define GRAVES	1024
static struct {
	struct rdmaep_ctx *ctx;
	uint64_t serial;
} graves[GRAVES];
static unsigned int next_grave;

/**
 * rdmaep_wait_locked() - wait for a condition; called with rdmaep_lock held
 * @cond: the condition
 * @until: when to give up, by CLOCK_REALTIME; NULL for never
 *
 * pthread_cancel(3) has to wait: it would leave things half done.
 *
 * Return: 0 or an errno.
 */
int rdmaep_wait_locked(pthread_cond_t *cond, struct timespec *until)
{
	int ret, state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	ret = until ? pthread_cond_timedwait(cond, &rdmaep_lock, until) :
		      pthread_cond_wait(cond, &rdmaep_lock);
	pthread_setcancelstate(state, &state);
	return ret;
}

/** rdmaep_ids_forget_dead() - a new context may be where an old one was, and count anew */
void rdmaep_ids_forget_dead(void)
{
	pthread_mutex_lock(&rdmaep_lock);
	memset(graves, 0, sizeof(graves));
	pthread_mutex_unlock(&rdmaep_lock);
}

/** rdmaep_id_after_fork() - in the child, nobody waits for anything */
void rdmaep_id_after_fork(void)
{
	/* As above; the lock is held. */
	memset(graves, 0, sizeof(graves));
	/* They remember the threads of the parent that wait. */
	rdmaep_acked = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
	id_born = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
}

static void table_grow(void)
{
	size_t n = 2 * (bucket_mask + 1), i;
	struct rdmaep_id **grown, *ep;

	grown = calloc(n, sizeof(*grown));
	if (!grown)
		return;	/* slower, not wrong */

	for (i = 0; i <= bucket_mask; i++) {
		while ((ep = buckets[i])) {
			buckets[i] = ep->hash_next;
			ep->hash_next = grown[ep->serial & (n - 1)];
			grown[ep->serial & (n - 1)] = ep;
		}
	}
	if (buckets != first_bucket)
		free(buckets);
	buckets = grown;
	bucket_mask = n - 1;
}

/**
 * rdmaep_id_publish() - let events find an id
 * @ep: the id
 * @handle: its endpoint's handle
 * @serial: its endpoint's serial number
 */
void rdmaep_id_publish(struct rdmaep_id *ep, uint32_t handle, uint64_t serial)
{
	struct rdmaep_id **bucket;

	ep->handle = handle;
	ep->serial = serial;

	pthread_mutex_lock(&rdmaep_lock);
	if (id_count > bucket_mask)
		table_grow();
	bucket = &buckets[serial & bucket_mask];
	ep->hash_next = *bucket;
	*bucket = ep;
	id_count++;
	pthread_cond_broadcast(&id_born);
	pthread_mutex_unlock(&rdmaep_lock);
}

/* Called with rdmaep_lock held. */
static void grave_add(struct rdmaep_ctx *ctx, uint64_t serial)
{
	graves[next_grave].ctx = ctx;
	graves[next_grave].serial = serial;
	next_grave = (next_grave + 1) % GRAVES;
	pthread_cond_broadcast(&id_born);
}

static void id_bury(struct rdmaep_id *ep)
{
	struct rdmaep_id **pos;

	pthread_mutex_lock(&rdmaep_lock);
	for (pos = &buckets[ep->serial & bucket_mask]; *pos != ep;
	     pos = &(*pos)->hash_next)
		;
	*pos = ep->hash_next;
	id_count--;
	if (ep->shared)
		ep->shared->ids--;
	ep->shared = NULL;
	grave_add(ep->ctx, ep->serial);
	pthread_mutex_unlock(&rdmaep_lock);
}

static bool id_is_dead(struct rdmaep_ctx *ctx, uint64_t serial)
{
	int i;

	for (i = 0; i < GRAVES; i++)
		if (graves[i].serial == serial && graves[i].ctx == ctx)
			return true;
	return false;
}

/**
 * rdmaep_id_lookup() - find an id; called with rdmaep_lock held
 * @ctx: the context the event came from
 * @serial: serial number of the endpoint
 *
 * Return: the id, or NULL if it has been destroyed.
 */
struct rdmaep_id *rdmaep_id_lookup(struct rdmaep_ctx *ctx, uint64_t serial)
{
	struct timespec until = { 0 };
	struct rdmaep_id *ep;

	for (;;) {
		for (ep = buckets[serial & bucket_mask]; ep; ep = ep->hash_next)
			if (ep->serial == serial && ep->ctx == ctx)
				return ep;
		if (id_is_dead(ctx, serial))
			return NULL;

		/*
		 * Not born yet, which may take opening its device. The limit is
		 * for a thread that slept while GRAVES others died.
		 */
		if (!until.tv_sec) {
			clock_gettime(CLOCK_REALTIME, &until);
			until.tv_sec += 10;
		}
		if (rdmaep_wait_locked(&id_born, &until))
			return NULL;
	}
}

/**
 * rdmaep_id_put_locked() - give a reference back; rdmaep_lock is held
 * @ep: the id, whose resources have been released before the last reference
 */
void rdmaep_id_put_locked(struct rdmaep_id *ep)
{
	if (!--ep->refs)
		free(ep);
}

/**
 * rdmaep_id_alloc() - memory for an id
 * @ctx: its context; the id takes over the caller's reference
 * @context: what the program wants to find in id->context
 * @ps: port space
 * @qp_type: type of its QP
 *
 * Return: the id, not published and without channel, or NULL with ENOMEM.
 */
struct rdmaep_id *rdmaep_id_alloc(struct rdmaep_ctx *ctx, void *context,
				  enum rdma_port_space ps,
				  enum ibv_qp_type qp_type)
{
	struct rdmaep_id *ep = calloc(1, sizeof(*ep));

	if (!ep)
		return NULL;

	ep->id.context = context;
	ep->id.ps = ps;
	ep->id.qp_type = qp_type;
	ep->ctx = ctx;
	ep->refs = 1;
	ep->own.ch.fd = -1;
	return ep;
}

static void id_set_shared(struct rdmaep_id *ep, struct rdmaep_channel *ch)
{
	pthread_mutex_lock(&rdmaep_lock);
	if (ep->shared)
		ep->shared->ids--;
	ep->shared = ch;
	if (ch)
		ch->ids++;
	pthread_mutex_unlock(&rdmaep_lock);
}

/**
 * rdmaep_id_set_own_channel() - make an id synchronous
 * @ep: the id
 * @fd: its own channel's file, or -1
 */
void rdmaep_id_set_own_channel(struct rdmaep_id *ep, int fd)
{
	ep->own.ch.fd = fd;
	ep->own.ctx = ep->ctx;
	ep->own.owner = ep;
	rdmaep_channel_know(fd, &ep->own);
	if (ep->shared)
		id_set_shared(ep, NULL);
	ep->id.channel = &ep->own.ch;
	ep->sync = true;
}

/**
 * rdmaep_id_set_channel() - make an id asynchronous
 * @ep: the id
 * @ch: the program's channel
 */
void rdmaep_id_set_channel(struct rdmaep_id *ep, struct rdma_event_channel *ch)
{
	struct rdmaep_channel *known = rdmaep_channel_of(ch);

	id_set_shared(ep, known->owner ? NULL : known);
	ep->id.channel = ch;
	ep->sync = false;
}

/* What the program has made the listener with may be gone: it is not looked at. */
static void id_share_channel(struct rdmaep_id *ep, const struct rdmaep_id *listener)
{
	pthread_mutex_lock(&rdmaep_lock);
	ep->id.channel = listener->id.channel;
	ep->shared = listener->shared;
	if (ep->shared)
		ep->shared->ids++;
	pthread_mutex_unlock(&rdmaep_lock);
}

/*
 * Returns how many it has found, and where: in @some, or in memory to be freed. An
 * id's handle is 0 then, which the kernel knows none by.
 */
static unsigned int take_handles(struct rdmaep_channel *ch, uint32_t *some,
				 unsigned int max, uint32_t **found)
{
	uint32_t *handles = some;
	unsigned int n = 0;
	struct rdmaep_id *ep;
	size_t i;

	pthread_mutex_lock(&rdmaep_lock);
	if (ch->ids > max) {
		handles = malloc(ch->ids * sizeof(*handles));
		if (handles)
			max = ch->ids;
		else
			handles = some;
	}
	for (i = 0; i <= bucket_mask && n < max && ch->ids; i++) {
		for (ep = buckets[i]; ep && n < max; ep = ep->hash_next) {
			if (ep->shared != ch)
				continue;
			handles[n++] = ep->handle;
			ep->handle = 0;
			ep->shared = NULL;
			ch->ids--;
		}
	}
	pthread_mutex_unlock(&rdmaep_lock);
	*found = handles;
	return n;
}

/**
 * rdmaep_ids_end() - a channel goes, and with it the endpoints of its ids
 * @ch: the channel
 *
 * The ids stay, for the program to destroy.
 */
void rdmaep_ids_end(struct rdmaep_channel *ch)
{
	uint32_t some[256], *handles;
	unsigned int n;

	do {
		n = take_handles(ch, some, 256, &handles);
		if (n)
			rdmaep_kernel_destroy_many(ch->ctx, handles, n, 0);
		if (handles != some)
			free(handles);
	} while (n);
}

static int id_set_device(struct rdmaep_id *ep, const struct rdma_ep_info *info)
{
	struct rdmaep_device *dev;
	struct ibv_pd *pd;

	dev = rdmaep_device_get(info->device_index, info->node_guid);
	if (!dev)
		return -1;

	pd = rdmaep_device_pd(dev);
	if (!pd) {
		rdmaep_device_put(dev);
		return -1;
	}

	ep->dev = dev;
	ep->id.verbs = dev->verbs;
	if (!ep->id.pd)
		ep->id.pd = pd;
	return 0;
}

static int id_set_paths(struct rdmaep_id *ep, const struct rdma_ep_info *info)
{
	struct rdma_route *route = &ep->id.route;
	struct ibv_sa_path_rec *paths = NULL;
	int n = info->num_paths, i;

	if (n > RDMA_EP_MAX_PATHS)
		n = RDMA_EP_MAX_PATHS;
	if (n) {
		paths = calloc(n, sizeof(*paths));
		if (!paths)
			return -1;
	}
	for (i = 0; i < n; i++) {
		struct ib_user_path_rec path = info->path[i];

		ibv_copy_path_rec_from_kern(&paths[i], &path);
	}

	free(route->path_rec);
	route->path_rec = paths;
	route->num_paths = n;
	return 0;
}

static int id_set_info(struct rdmaep_id *ep, const struct rdma_ep_info *info)
{
	struct rdma_addr *addr = &ep->id.route.addr;
	struct rdma_ib_addr *ib = &addr->addr.ibaddr;

	if (info->src.len)
		memcpy(&addr->src_storage, info->src.sa, sizeof(info->src.sa));
	if (info->dst.len)
		memcpy(&addr->dst_storage, info->dst.sa, sizeof(info->dst.sa));
	else	/* programs tell by it what they have bound to */
		addr->dst_addr.sa_family = addr->src_addr.sa_family;
	if (info->transport == RDMA_EP_TRANSPORT_NONE)
		return 0;

	ep->transport = info->transport;
	ep->max_connect_data = info->max_connect_data;
	ep->max_accept_data = info->max_accept_data;
	ep->max_reject_data = info->max_reject_data;
	ep->id.port_num = info->port_num;
	memcpy(ib->sgid.raw, info->sgid, sizeof(ib->sgid.raw));
	memcpy(ib->dgid.raw, info->dgid, sizeof(ib->dgid.raw));
	ib->pkey = info->pkey;

	if (!ep->dev && id_set_device(ep, info))
		return -1;
	return id_set_paths(ep, info);
}

/**
 * rdmaep_id_update() - take over what a record says about an id
 * @ep: the id
 * @rec: the record
 *
 * Opens the device when the id has just been bound to one.
 *
 * Return: 0, or -1 with errno from opening the device, or ENOMEM.
 */
int rdmaep_id_update(struct rdmaep_id *ep, const struct rdma_ep_record *rec)
{
	int i;

	for (i = 0; i < RDMA_EP_ATTRS; i++) {
		uint32_t part = RDMA_EP_REC_INIT << i;

		if (!(rec->flags & part))
			continue;
		ep->attr[i] = rec->attr[i];
		ep->attr_parts |= part;
	}
	if (rec->ece_vendor_id) {
		ep->remote_ece.vendor_id = rec->ece_vendor_id;
		ep->remote_ece.options = rec->ece_attr_mod;
	}
	if (rec->flags & RDMA_EP_REC_INFO)
		return id_set_info(ep, &rec->info);
	return 0;
}

/**
 * rdmaep_kernel_destroy() - destroy an endpoint that has no id
 * @ctx: the context
 * @handle: the endpoint's handle
 *
 * If it stands for a connection request, the peer is told no.
 */
void rdmaep_kernel_destroy(struct rdmaep_ctx *ctx, uint32_t handle)
{
	struct rdma_ep_destroy cmd = {
		.hdr = RDMAEP_HDR(cmd),
		.ep = handle,
	};

	rdmaep_call_quiet(ctx, RDMA_EP_DESTROY, &cmd);
}

/**
 * rdmaep_child_refuse() - refuse a request that the program will never see
 * @ctx: the context
 * @rec: the request's record
 *
 * Another thread may have read its next event already, and looks for its id.
 */
void rdmaep_child_refuse(struct rdmaep_ctx *ctx, const struct rdma_ep_record *rec)
{
	rdmaep_kernel_destroy(ctx, rec->child);
	pthread_mutex_lock(&rdmaep_lock);
	grave_add(ctx, rec->child_serial);
	pthread_mutex_unlock(&rdmaep_lock);
}

/**
 * rdmaep_kernel_destroy_many() - destroy endpoints
 * @ctx: the context
 * @handles: their handles
 * @count: how many
 * @flags: RDMA_EP_DESTROY_NOWAIT
 */
void rdmaep_kernel_destroy_many(struct rdmaep_ctx *ctx, const uint32_t *handles,
				uint32_t count, uint32_t flags)
{
	struct rdma_ep_destroy_many cmd = {
		.hdr = RDMAEP_HDR(cmd),
		.eps_uptr = (uintptr_t)handles,
		.count = count,
	};
	uint32_t i;

	cmd.hdr.flags = flags;
	if (!rdmaep_call(ctx, RDMA_EP_DESTROY_MANY, &cmd))
		return;
	/* Short of memory: one by one it needs none. */
	for (i = 0; i < count; i++)
		rdmaep_kernel_destroy(ctx, handles[i]);
}

/**
 * rdmaep_id_release() - release all that belongs to an id
 * @ep: the id, whose endpoint is gone
 * @nowait: do not wait for other threads to acknowledge its events
 */
void rdmaep_id_release(struct rdmaep_id *ep, bool nowait)
{
	struct rdma_route *route = &ep->id.route;
	struct rdmaep_ctx *ctx = ep->ctx;
	int err = errno;

	id_bury(ep);
	rdmaep_event_drop_current(&ep->id);
	if (!nowait)
		rdmaep_event_wait_acked(ep, 0, NULL);

	rdmaep_channel_close_own(&ep->own);
	if (ep->dev)
		rdmaep_device_put(ep->dev);
	ep->dev = NULL;
	free(route->path_rec);
	route->path_rec = NULL;
	route->num_paths = 0;
	free(ep->connect_data);
	free(ep->qp_init_attr);
	rdmaep_groups_free(ep);
	if (ep->addrinfo)
		rdma_freeaddrinfo(ep->addrinfo);

	pthread_mutex_lock(&rdmaep_lock);
	rdmaep_id_put_locked(ep);
	pthread_mutex_unlock(&rdmaep_lock);
	rdmaep_ctx_put(ctx);
	errno = err;
}

/**
 * rdmaep_id_kill() - destroy an id that the program has never seen
 * @ep: the id
 *
 * Does not change errno.
 */
void rdmaep_id_kill(struct rdmaep_id *ep)
{
	rdmaep_kernel_destroy(ep->ctx, ep->handle);
	rdmaep_id_release(ep, false);
}

/**
 * rdmaep_id_child() - the id of a connection request
 * @listener: the listening id
 * @rec: the connection request
 *
 * It is complete before others can find it: if the peer has left already, a
 * thread may wait for it with the next event, and the program destroy it.
 *
 * Return: the new id, with a reference for the event, or NULL with errno; the
 * request is rejected then.
 */
struct rdmaep_id *rdmaep_id_child(struct rdmaep_id *listener,
				  const struct rdma_ep_record *rec)
{
	struct rdmaep_id *ep;
	int err;

	ep = rdmaep_id_alloc(listener->ctx, listener->id.context,
			     listener->id.ps, listener->id.qp_type);
	if (!ep) {
		rdmaep_child_refuse(listener->ctx, rec);
		return NULL;
	}

	rdmaep_ctx_hold(ep->ctx);
	ep->initiator_depth = rec->initiator_depth;
	ep->responder_resources = rec->responder_resources;
	id_share_channel(ep, listener);
	err = rdmaep_id_update(ep, rec);
	if (!err)
		ep->refs++;
	rdmaep_id_publish(ep, rec->child, rec->child_serial);
	if (err) {
		rdmaep_id_kill(ep);
		return NULL;
	}
	return ep;
}

/**
 * rdmaep_check_port_space() - whether there is such a port space
 * @ps: the port space
 *
 * Return: 0, or -1 with errno EINVAL.
 */
int rdmaep_check_port_space(enum rdma_port_space ps)
{
	switch (ps) {
	case RDMA_PS_IPOIB:
	case RDMA_PS_TCP:
	case RDMA_PS_UDP:
	case RDMA_PS_IB:
		return 0;
	}
	return rdmaep_fail(EINVAL, RDMA_EP_REASON_VALUE, "no port space %#x", ps);
}

/**
 * rdma_create_id() - allocate a communication identifier
 * @channel: where its events go, or NULL for a synchronous id
 * @id: where the id goes
 * @context: is found in id->context
 * @ps: port space
 *
 * Follows rdma_create_id(3).
 *
 * Return: 0, or -1 with errno ENOMEM, ENOSPC and EDQUOT (limits on endpoints of
 * a process and of a user), EINVAL (port space) or as from opening the device.
 */
RDMAEP_API int rdma_create_id(struct rdma_event_channel *channel,
			      struct rdma_cm_id **id, void *context,
			      enum rdma_port_space ps)
{
	struct rdma_ep_create cmd = {
		.hdr = RDMAEP_HDR(cmd),
		.port_space = ps,
	};
	struct rdmaep_ctx *ctx;
	struct rdmaep_id *ep;
	int ret;

	if (!id)
		return rdmaep_fail_plain(EINVAL);
	if (rdmaep_check_port_space(ps))
		return -1;

	ctx = channel ? rdmaep_ctx_hold(rdmaep_channel_of(channel)->ctx) :
			rdmaep_ctx_get();
	if (!ctx)
		return -1;

	ep = rdmaep_id_alloc(ctx, context, ps,
			     ps == RDMA_PS_IPOIB || ps == RDMA_PS_UDP ?
			     IBV_QPT_UD : IBV_QPT_RC);
	if (!ep)
		goto put_ctx;
	if (ps == RDMA_PS_IB)
		cmd.qp_type = ep->id.qp_type;

	if (channel) {
		cmd.channel = channel->fd;
		ret = rdmaep_call(ctx, RDMA_EP_CREATE, &cmd);
	} else {
		ret = rdmaep_call_new_channel(ctx, RDMA_EP_CREATE, &cmd,
					      &cmd.channel);
	}
	if (ret)
		goto free_id;

	if (channel)
		rdmaep_id_set_channel(ep, channel);
	else
		rdmaep_id_set_own_channel(ep, cmd.channel);
	rdmaep_id_publish(ep, cmd.out_ep, cmd.out_serial);
	*id = &ep->id;
	return 0;

free_id:
	free(ep);
put_ctx:
	rdmaep_ctx_put(ctx);
	return -1;
}

/* What could be of use to another id, if the program has left it alone */
enum id_file { ID_CHANNEL, ID_RECV_CQ, ID_SEND_CQ, ID_FILES };

static void id_offer_files(const struct rdmaep_id *ep,
			   struct rdma_ep_destroy *cmd)
{
	if (!rdmaep_cache_max())
		return;
	cmd->num_fds = ID_FILES;
	cmd->fd[ID_CHANNEL] = ep->own.ch.fd;
	cmd->fd[ID_RECV_CQ] = ep->made_recv.parked ?
			      ep->made_recv.cq->channel->fd : -1;
	cmd->fd[ID_SEND_CQ] = ep->made_send.parked ?
			      ep->made_send.cq->channel->fd : -1;
}

static void id_keep_files(struct rdmaep_id *ep, uint32_t idle)
{
	if (idle & 1 << ID_CHANNEL)
		rdmaep_channel_keep_own(&ep->own);
	rdmaep_cq_unpark(ep, &ep->made_recv, idle & 1 << ID_RECV_CQ);
	rdmaep_cq_unpark(ep, &ep->made_send, idle & 1 << ID_SEND_CQ);
}

/**
 * rdma_destroy_id() - destroy a communication identifier
 * @id: the id, whose QP has been destroyed
 *
 * Waits until other threads have acknowledged the id's events. Events that the
 * calling thread itself holds stay readable until it acknowledges them.
 * Follows rdma_destroy_id(3).
 *
 * Return: 0, or -1 with errno EINVAL.
 */
RDMAEP_API int rdma_destroy_id(struct rdma_cm_id *id)
{
	struct rdmaep_id *ep = to_rdmaep_id(id);
	struct rdma_ep_destroy cmd = { .hdr = RDMAEP_HDR(cmd) };

	if (!id)
		return rdmaep_fail_plain(EINVAL);

	/* A QP in a group could not be destroyed later. */
	if (!rdmaep_ctx_is_parents(ep->ctx))
		rdmaep_groups_detach(ep);

	cmd.ep = ep->handle;
	id_offer_files(ep, &cmd);
	/* EACCES: it stays the parent's; what this process has of it goes. */
	if (rdmaep_call(ep->ctx, RDMA_EP_DESTROY, &cmd) && errno != ENOENT &&
	    errno != EACCES)
		return -1;
	id_keep_files(ep, cmd.out_idle);
	rdmaep_id_release(ep, false);
	return 0;
}

/**
 * rdma_migrate_id() - let the events of an id go to another channel
 * @id: the id
 * @channel: the channel, or NULL to make the id synchronous
 *
 * Events that nobody has read move along. Waits for those that other threads
 * hold to be acknowledged. Follows rdma_migrate_id(3).
 *
 * Return: 0, or -1 with errno EINVAL (synchronous already), EBADF (channel of
 * another process) or ENOMEM.
 */
RDMAEP_API int rdma_migrate_id(struct rdma_cm_id *id,
			       struct rdma_event_channel *channel)
{
	struct rdmaep_id *ep = to_rdmaep_id(id);
	struct rdma_ep_attach cmd = { .hdr = RDMAEP_HDR(cmd) };
	int ret;

	if (ep->sync && !channel)
		return rdmaep_fail_plain(EINVAL);

	cmd.ep = ep->handle;
	if (channel) {
		cmd.channel = channel->fd;
		ret = rdmaep_call(ep->ctx, RDMA_EP_ATTACH, &cmd);
	} else {
		ret = rdmaep_call_new_channel(ep->ctx, RDMA_EP_ATTACH, &cmd,
					      &cmd.channel);
	}
	if (ret)
		return -1;

	if (ep->sync) {
		rdmaep_event_drop_current(id);
		rdmaep_channel_close_own(&ep->own);
	}
	if (channel)
		rdmaep_id_set_channel(ep, channel);
	else
		rdmaep_id_set_own_channel(ep, cmd.channel);
	/* A reader of the new channel may have got one already, and keep it. */
	rdmaep_event_wait_acked(ep, 0, channel ? rdmaep_channel_of(channel) : NULL);
	return 0;
}
