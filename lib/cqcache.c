// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Completion queues that the library has made, kept for the next id that wants
 * one of the same size.
 *
 * A completion queue with a channel of its own costs as much to make and
 * destroy as the whole rest of a connection. So rdma_destroy_ep() parks it in
 * the id. When the endpoint is destroyed, the module says whether the channel's
 * file is known to its descriptor alone: a program may have put it into an
 * epoll set, or duplicated the descriptor, and relies on close(2) to end that.
 * If nothing of the kind was done, the next id gets the queue for its own.
 *
 * A queue that had an error, was resized, or is used by queue pairs of other
 * ids is destroyed as ever. So is every one if RDMAEP_CACHE=0 is in the
 * environment.
 *
 * Events that were read but not acknowledged need no care: libibverbs counts
 * them over the whole life of the queue, and waits when it is destroyed. A
 * queue may still be armed: then its first completion wakes the new owner
 * before it has asked for that, which whoever uses events must expect anyhow.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "rdmaep-internal.h"

/* For each device: files, and the entries of queues, that nobody uses. */
#define CACHE_MAX	64
#define CACHE_MAX_CQES	16384

/**
 * struct rdmaep_cached_cq - a completion queue that waits to be used
 * @next: next of the device
 * @channel: its completion channel
 * @cq: the queue
 * @size: how many entries were asked for
 * @fork_count: in which process it was made: its memory is not shared
 */
struct rdmaep_cached_cq {
	struct rdmaep_cached_cq *next;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	uint32_t size;
	unsigned int fork_count;
};

/* Guards the lists of all devices. */
static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t cache_once = PTHREAD_ONCE_INIT;
static unsigned int cache_max;

/*
 * Queues that a program has passed to rdma_create_qp() itself. If one of them
 * is the library's, made for another id, it has more users than that id. A bit
 * for each hash of an address: it may say yes for no reason, which only costs
 * time.
 */
#define SHARED_BITS	65536
static uint8_t shared[SHARED_BITS / 8];

static void cache_init(void)
{
	const char *env = secure_getenv("RDMAEP_CACHE");
	struct rlimit lim;

	if (env && !strcmp(env, "0"))
		return;
	cache_max = CACHE_MAX;
	if (!getrlimit(RLIMIT_NOFILE, &lim) && lim.rlim_cur / 16 < CACHE_MAX)
		cache_max = lim.rlim_cur / 16;
}

/**
 * rdmaep_cache_max() - how many things of a kind are kept at most
 *
 * Return: 0 if nothing is to be kept.
 */
unsigned int rdmaep_cache_max(void)
{
	pthread_once(&cache_once, cache_init);
	return cache_max;
}

static size_t shared_bit(const struct ibv_cq *cq)
{
	uint64_t hash = (uintptr_t)cq * UINT64_C(0x9e3779b97f4a7c15);

	return hash >> 48;
}

/**
 * rdmaep_cq_share() - a program uses a completion queue for what it likes
 * @cq: the queue, perhaps one that the library has made; or NULL
 */
void rdmaep_cq_share(const struct ibv_cq *cq)
{
	size_t bit = shared_bit(cq);

	if (cq)
		__atomic_or_fetch(&shared[bit / 8], 1 << bit % 8,
				  __ATOMIC_RELAXED);
}

static bool cq_is_shared(const struct ibv_cq *cq)
{
	size_t bit = shared_bit(cq);

	return __atomic_load_n(&shared[bit / 8], __ATOMIC_RELAXED) &
	       1 << bit % 8;
}

/**
 * rdmaep_cq_take() - a completion queue that was kept
 * @dev: the device
 * @size: how many entries it needs
 * @context: its context from now on
 *
 * Return: the queue, empty and with a channel of its own, or NULL.
 */
struct ibv_cq *rdmaep_cq_take(struct rdmaep_device *dev, uint32_t size,
			      void *context)
{
	struct rdmaep_cached_cq **pos, *entry;
	struct ibv_cq *cq;

	pthread_mutex_lock(&cache_lock);
	for (pos = &dev->cqs; (entry = *pos); pos = &entry->next)
		if (entry->size == size &&
		    entry->fork_count == rdmaep_fork_count)
			break;
	if (entry) {
		*pos = entry->next;
		dev->num_cqs--;
		dev->num_cqes -= entry->cq->cqe;
	}
	pthread_mutex_unlock(&cache_lock);
	if (!entry)
		return NULL;

	cq = entry->cq;
	cq->cq_context = context;
	free(entry);
	return cq;
}

/* Completions of a QP that is gone */
static bool cq_drain(struct ibv_cq *cq)
{
	struct ibv_wc wc[8];
	int left = cq->cqe + 1, n;

	do {
		n = ibv_poll_cq(cq, 8, wc);
		left -= n;
	} while (n > 0 && left > 0);
	return !n;
}

static bool cq_is_fit(struct ibv_cq *cq, uint32_t size)
{
	/* An error has been reported, or the program has resized it. */
	if (cq->async_events_completed || cq->cqe < size)
		return false;
	return !cq_is_shared(cq) && cq_drain(cq);
}

static bool cache_add(struct rdmaep_device *dev, struct ibv_cq *cq,
		      uint32_t size)
{
	struct rdmaep_cached_cq *entry = malloc(sizeof(*entry));
	bool room;

	if (!entry)
		return false;
	entry->channel = cq->channel;
	entry->cq = cq;
	entry->size = size;
	entry->fork_count = rdmaep_fork_count;

	pthread_mutex_lock(&cache_lock);
	room = dev->num_cqs < cache_max &&
	       dev->num_cqes + cq->cqe <= CACHE_MAX_CQES;
	if (room) {
		entry->next = dev->cqs;
		dev->cqs = entry;
		dev->num_cqs++;
		dev->num_cqes += cq->cqe;
	}
	pthread_mutex_unlock(&cache_lock);
	if (!room)
		free(entry);
	return room;
}

static void cq_park(struct rdmaep_made_cq *made, struct ibv_cq **cq,
		    struct ibv_comp_channel **channel)
{
	if (!*cq || *cq != made->cq || (*cq)->channel != *channel ||
	    !cq_is_fit(*cq, made->size))
		return;
	made->parked = true;
	*cq = NULL;
	*channel = NULL;
}

/**
 * rdmaep_cqs_park() - set completion queues aside until the id is destroyed
 * @ep: the id, whose QP is destroyed. It loses hold of those that were made by
 *	the library and are as good as new.
 *
 * Does not change errno.
 */
void rdmaep_cqs_park(struct rdmaep_id *ep)
{
	struct rdma_cm_id *id = &ep->id;
	int err = errno;

	if (!rdmaep_cache_max() || !ep->dev || ep->dev->gone)
		return;
	/* It belongs to the SRQ, which others may still fill. */
	if (id->qp_type == IBV_QPT_XRC_RECV && id->srq)
		return;
	cq_park(&ep->made_recv, &id->recv_cq, &id->recv_cq_channel);
	cq_park(&ep->made_send, &id->send_cq, &id->send_cq_channel);
	errno = err;
}

/**
 * rdmaep_cq_unpark() - the id is destroyed: what becomes of a parked queue?
 * @ep: the id
 * @made: the queue; nothing happens if it is not parked
 * @idle: its channel's file is known to its descriptor alone
 *
 * Does not change errno.
 */
void rdmaep_cq_unpark(struct rdmaep_id *ep, struct rdmaep_made_cq *made,
		      bool idle)
{
	struct ibv_comp_channel *channel;
	int err = errno;

	if (!made->parked)
		return;
	made->parked = false;
	if (idle && !ep->dev->gone && cache_add(ep->dev, made->cq, made->size))
		return;

	channel = made->cq->channel;
	ibv_destroy_cq(made->cq);
	ibv_destroy_comp_channel(channel);
	errno = err;
}

/**
 * rdmaep_cqs_flush() - destroy what is kept
 * @dev: the device
 *
 * Return: whether there was anything.
 */
bool rdmaep_cqs_flush(struct rdmaep_device *dev)
{
	struct rdmaep_cached_cq *list, *entry;
	bool any;

	pthread_mutex_lock(&cache_lock);
	list = dev->cqs;
	dev->cqs = NULL;
	dev->num_cqs = 0;
	dev->num_cqes = 0;
	pthread_mutex_unlock(&cache_lock);

	any = list;
	while ((entry = list)) {
		list = entry->next;
		/* The parent's are not this process's to destroy. */
		if (entry->fork_count == rdmaep_fork_count) {
			ibv_destroy_cq(entry->cq);
			ibv_destroy_comp_channel(entry->channel);
		}
		free(entry);
	}
	return any;
}

/**
 * rdmaep_cq_lock() - hold what is kept still while the process forks
 * @lock: take the lock, or else release it
 */
void rdmaep_cq_lock(bool lock)
{
	if (lock)
		pthread_mutex_lock(&cache_lock);
	else
		pthread_mutex_unlock(&cache_lock);
}
