/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * What is counted. Each network namespace has a set of counters, of which each
 * processor has a copy: counting costs an addition, and shares nothing.
 */
#ifndef RDMA_EP_STATS_H
#define RDMA_EP_STATS_H

#include <linux/kref.h>
#include <linux/percpu.h>
#include <rdma/rdma_ep.h>

struct net;
struct rdma_ep_ctx;

enum rdma_ep_counter {
	RDMA_EP_COUNT_CTX_OPENED,
	RDMA_EP_COUNT_CTX_CLOSED,
	RDMA_EP_COUNT_EP_CREATED,
	RDMA_EP_COUNT_EP_DESTROYED,
	RDMA_EP_COUNT_CHANNEL_CREATED,
	RDMA_EP_COUNT_CHANNEL_CLOSED,
	RDMA_EP_COUNT_CONNECTED,
	RDMA_EP_COUNT_ACCEPTED,
	RDMA_EP_COUNT_REJECTS,
	RDMA_EP_COUNT_OVERFLOWS,
	RDMA_EP_COUNT_TIMEOUTS,
	RDMA_EP_COUNT_EVENTS_READ,
	RDMA_EP_COUNT_EVENTS_DISCARDED,
	RDMA_EP_COUNT_EVENT_BYTES,
	RDMA_EP_COUNT_CALLS_FAILED,
	RDMA_EP_COUNTERS
};

#define RDMA_EP_EVENT_TYPES (RDMA_EP_EVENT_USER + 1)
#define RDMA_EP_REASONS	    (RDMA_EP_REASON_DESTROYED + 1)

/**
 * struct rdma_ep_stats - one processor's counters of a namespace
 * @count: by enum rdma_ep_counter
 * @events: events queued, by type
 * @reasons: calls that failed, by reason
 */
struct rdma_ep_stats {
	unsigned long count[RDMA_EP_COUNTERS];
	unsigned long events[RDMA_EP_EVENT_TYPES];
	unsigned long reasons[RDMA_EP_REASONS];
};

/**
 * struct rdma_ep_ns - the counters of a network namespace
 * @kref: held by the namespace and by each context that was opened in it, which
 *	may outlive it
 * @stats: the counters
 * @node: on the list of all
 */
struct rdma_ep_ns {
	struct kref kref;
	struct rdma_ep_stats __percpu *stats;
	struct list_head node;
};

int rdma_ep_stats_init(void);
void rdma_ep_stats_exit(void);
struct rdma_ep_ns *rdma_ep_ns_get_current(void);
void rdma_ep_ns_put(struct rdma_ep_ns *ns);
void rdma_ep_count_failure(struct rdma_ep_ctx *ctx, int err, u32 reason);

#endif /* RDMA_EP_STATS_H */
