// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * /proc/net/rdma_ep: what is there now and what has happened, in the network
 * namespace of who looks. A context counts where it was opened. In the initial
 * namespace, /proc/net/rdma_ep_all has all of them together, for root.
 *
 * A line has a name and a number. User space reads it by name: lines may be
 * added, and none is taken away.
 */
#include <linux/nsproxy.h>
#include <linux/proc_fs.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>

#include "private.h"

/* What net_generic() has for us. */
struct rdma_ep_net {
	struct rdma_ep_ns *ns;
};

static unsigned int rdma_ep_net_id;

/* All namespaces, and the counters of those that are gone. */
static DEFINE_MUTEX(rdma_ep_all_lock);
static LIST_HEAD(rdma_ep_all);
static struct rdma_ep_stats rdma_ep_past;

static const char *const rdma_ep_reason_symbols[RDMA_EP_REASONS] = {
	[RDMA_EP_REASON_NONE] = "NONE",
	[RDMA_EP_REASON_STRUCT] = "STRUCT",
	[RDMA_EP_REASON_HANDLE] = "HANDLE",
	[RDMA_EP_REASON_CHANNEL] = "CHANNEL",
	[RDMA_EP_REASON_STATE] = "STATE",
	[RDMA_EP_REASON_BUSY] = "BUSY",
	[RDMA_EP_REASON_ADDR_FORMAT] = "ADDR_FORMAT",
	[RDMA_EP_REASON_ADDR_SCOPE] = "ADDR_SCOPE",
	[RDMA_EP_REASON_ADDR_NOT_LOCAL] = "ADDR_NOT_LOCAL",
	[RDMA_EP_REASON_ADDR_IN_USE] = "ADDR_IN_USE",
	[RDMA_EP_REASON_ADDR_PRIVILEGED] = "ADDR_PRIVILEGED",
	[RDMA_EP_REASON_NO_DEVICE] = "NO_DEVICE",
	[RDMA_EP_REASON_PORT_DOWN] = "PORT_DOWN",
	[RDMA_EP_REASON_UNREACHABLE] = "UNREACHABLE",
	[RDMA_EP_REASON_TIMEOUT] = "TIMEOUT",
	[RDMA_EP_REASON_REJECTED] = "REJECTED",
	[RDMA_EP_REASON_DEVICE_REMOVED] = "DEVICE_REMOVED",
	[RDMA_EP_REASON_DATA_TOO_LONG] = "DATA_TOO_LONG",
	[RDMA_EP_REASON_LIMIT] = "LIMIT",
	[RDMA_EP_REASON_VALUE] = "VALUE",
	[RDMA_EP_REASON_KERNEL] = "KERNEL",
	[RDMA_EP_REASON_DESTROYED] = "DESTROYED",
};

/* Adds the processors' counters to @sum, each of which is an array of longs. */
static void rdma_ep_stats_add(const struct rdma_ep_ns *ns, struct rdma_ep_stats *sum)
{
	unsigned long *to = (unsigned long *)sum;
	const unsigned long *from;
	unsigned int i;
	int cpu;

	for_each_possible_cpu(cpu) {
		from = (const unsigned long *)per_cpu_ptr(ns->stats, cpu);
		for (i = 0; i < sizeof(*sum) / sizeof(*to); i++)
			to[i] += READ_ONCE(from[i]);
	}
}

static void rdma_ep_ns_release(struct kref *kref)
{
	struct rdma_ep_ns *ns = container_of(kref, struct rdma_ep_ns, kref);

	mutex_lock(&rdma_ep_all_lock);
	rdma_ep_stats_add(ns, &rdma_ep_past);
	list_del(&ns->node);
	mutex_unlock(&rdma_ep_all_lock);

	free_percpu(ns->stats);
	kfree(ns);
}

void rdma_ep_ns_put(struct rdma_ep_ns *ns)
{
	kref_put(&ns->kref, rdma_ep_ns_release);
}

static void rdma_ep_stats_add_all(struct rdma_ep_stats *sum)
{
	struct rdma_ep_ns *ns;

	mutex_lock(&rdma_ep_all_lock);
	*sum = rdma_ep_past;
	list_for_each_entry(ns, &rdma_ep_all, node) {
		rdma_ep_stats_add(ns, sum);
		cond_resched();
	}
	mutex_unlock(&rdma_ep_all_lock);
}

/* The counters of the caller's namespace, with a reference. */
struct rdma_ep_ns *rdma_ep_ns_get_current(void)
{
	struct rdma_ep_net *rn = net_generic(current->nsproxy->net_ns, rdma_ep_net_id);

	kref_get(&rn->ns->kref);
	return rn->ns;
}

/* That there is no event yet, or that a signal came, is no failure. */
void rdma_ep_count_failure(struct rdma_ep_ctx *ctx, int err, u32 reason)
{
	if (err == -EAGAIN || err == -EINTR || err == -ERESTARTSYS || err == -ERESTARTNOINTR)
		return;
	this_cpu_inc(ctx->stats->count[RDMA_EP_COUNT_CALLS_FAILED]);
	if (reason < RDMA_EP_REASONS)
		this_cpu_inc(ctx->stats->reasons[reason]);
}

/* While one processor is read others go on: a difference may come out negative. */
static unsigned long rdma_ep_left(unsigned long made, unsigned long gone)
{
	return max_t(long, made - gone, 0);
}

static void rdma_ep_show_live(struct seq_file *m, const struct rdma_ep_stats *s,
			      unsigned long queued)
{
	const unsigned long *n = s->count;
	unsigned long ctxs = rdma_ep_left(n[RDMA_EP_COUNT_CTX_OPENED], n[RDMA_EP_COUNT_CTX_CLOSED]);
	unsigned long eps =
		rdma_ep_left(n[RDMA_EP_COUNT_EP_CREATED], n[RDMA_EP_COUNT_EP_DESTROYED]);
	unsigned long channels =
		rdma_ep_left(n[RDMA_EP_COUNT_CHANNEL_CREATED], n[RDMA_EP_COUNT_CHANNEL_CLOSED]);

	seq_printf(m, "contexts %lu\n", ctxs);
	seq_printf(m, "endpoints %lu\n", eps);
	seq_printf(m, "channels %lu\n", channels);
	seq_printf(m, "events_waiting %lu\n",
		   rdma_ep_left(queued,
				n[RDMA_EP_COUNT_EVENTS_READ] + n[RDMA_EP_COUNT_EVENTS_DISCARDED]));
	seq_printf(m, "memory_bytes %lu\n",
		   ctxs * sizeof(struct rdma_ep_ctx) + eps * sizeof(struct rdma_ep) +
			   channels * sizeof(struct rdma_ep_channel) +
			   rdma_ep_left(n[RDMA_EP_COUNT_EVENT_BYTES], 0));
}

static void rdma_ep_show_totals(struct seq_file *m, const struct rdma_ep_stats *s,
				unsigned long queued)
{
	const unsigned long *n = s->count;
	const unsigned long *events = s->events;

	seq_printf(m, "contexts_opened %lu\n", n[RDMA_EP_COUNT_CTX_OPENED]);
	seq_printf(m, "endpoints_created %lu\n", n[RDMA_EP_COUNT_EP_CREATED]);
	seq_printf(m, "endpoints_destroyed %lu\n", n[RDMA_EP_COUNT_EP_DESTROYED]);
	seq_printf(m, "connected %lu\n", n[RDMA_EP_COUNT_CONNECTED]);
	seq_printf(m, "accepted %lu\n", n[RDMA_EP_COUNT_ACCEPTED]);
	seq_printf(m, "disconnected %lu\n", events[RDMA_EP_EVENT_DISCONNECTED]);
	seq_printf(m, "rejected_by_us %lu\n", n[RDMA_EP_COUNT_REJECTS]);
	seq_printf(m, "rejected_by_peer %lu\n", events[RDMA_EP_EVENT_REJECTED]);
	seq_printf(m, "failed %lu\n",
		   events[RDMA_EP_EVENT_ADDR_ERROR] + events[RDMA_EP_EVENT_ROUTE_ERROR] +
			   events[RDMA_EP_EVENT_CONNECT_ERROR] + events[RDMA_EP_EVENT_UNREACHABLE]);
	seq_printf(m, "timeouts %lu\n", n[RDMA_EP_COUNT_TIMEOUTS]);
	seq_printf(m, "backlog_overflows %lu\n", n[RDMA_EP_COUNT_OVERFLOWS]);
	seq_printf(m, "events_queued %lu\n", queued);
	seq_printf(m, "events_read %lu\n", n[RDMA_EP_COUNT_EVENTS_READ]);
	seq_printf(m, "events_discarded %lu\n", n[RDMA_EP_COUNT_EVENTS_DISCARDED]);
	seq_printf(m, "calls_failed %lu\n", n[RDMA_EP_COUNT_CALLS_FAILED]);
}

static int rdma_ep_stats_print(struct seq_file *m, const struct rdma_ep_ns *ns)
{
	struct rdma_ep_stats *sum;
	unsigned long queued = 0;
	unsigned int i;

	sum = kzalloc(sizeof(*sum), GFP_KERNEL);
	if (!sum)
		return -ENOMEM;
	if (ns)
		rdma_ep_stats_add(ns, sum);
	else
		rdma_ep_stats_add_all(sum);
	for (i = 0; i < RDMA_EP_EVENT_TYPES; i++)
		queued += sum->events[i];

	rdma_ep_show_live(m, sum, queued);
	rdma_ep_show_totals(m, sum, queued);
	for (i = 0; i < RDMA_EP_EVENT_TYPES; i++)
		seq_printf(m, "event.%s %lu\n", rdma_ep_event_symbol(i), sum->events[i]);
	for (i = 0; i < RDMA_EP_REASONS; i++)
		seq_printf(m, "reason.%s %lu\n", rdma_ep_reason_symbols[i], sum->reasons[i]);
	kfree(sum);
	return 0;
}

static int rdma_ep_stats_show(struct seq_file *m, void *v)
{
	struct rdma_ep_net *rn = net_generic(seq_file_single_net(m), rdma_ep_net_id);

	return rdma_ep_stats_print(m, rn->ns);
}

static int rdma_ep_stats_show_all(struct seq_file *m, void *v)
{
	return rdma_ep_stats_print(m, NULL);
}

static int __net_init rdma_ep_net_init(struct net *net)
{
	struct rdma_ep_net *rn = net_generic(net, rdma_ep_net_id);
	struct rdma_ep_ns *ns;

	ns = kzalloc(sizeof(*ns), GFP_KERNEL);
	if (!ns)
		return -ENOMEM;
	kref_init(&ns->kref);
	ns->stats = alloc_percpu(struct rdma_ep_stats);
	if (!ns->stats) {
		kfree(ns);
		return -ENOMEM;
	}
	mutex_lock(&rdma_ep_all_lock);
	list_add_tail(&ns->node, &rdma_ep_all);
	mutex_unlock(&rdma_ep_all_lock);
	/* It may be read at once. */
	rn->ns = ns;
	if (proc_create_net_single("rdma_ep", 0444, net->proc_net, rdma_ep_stats_show, NULL))
		return 0;
	rdma_ep_ns_put(ns);
	return -ENOMEM;
}

static void __net_exit rdma_ep_net_exit(struct net *net)
{
	struct rdma_ep_net *rn = net_generic(net, rdma_ep_net_id);

	remove_proc_entry("rdma_ep", net->proc_net);
	rdma_ep_ns_put(rn->ns);
}

static struct pernet_operations rdma_ep_net_ops = {
	.init = rdma_ep_net_init,
	.exit = rdma_ep_net_exit,
	.id = &rdma_ep_net_id,
	.size = sizeof(struct rdma_ep_net),
};

#define RDMA_EP_ALL "rdma_ep_all"

int rdma_ep_stats_init(void)
{
	int ret = register_pernet_subsys(&rdma_ep_net_ops);

	if (ret)
		return ret;
	if (proc_create_single(RDMA_EP_ALL, 0400, init_net.proc_net, rdma_ep_stats_show_all))
		return 0;
	unregister_pernet_subsys(&rdma_ep_net_ops);
	return -ENOMEM;
}

/* The files are closed: no context counts any more. */
void rdma_ep_stats_exit(void)
{
	remove_proc_entry(RDMA_EP_ALL, init_net.proc_net);
	unregister_pernet_subsys(&rdma_ep_net_ops);
}
