// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * What /proc/PID/fdinfo says of a context: a line for each endpoint. Who may
 * read it is what procfs decides: the owner of the process, and root.
 */
#include <linux/fs.h>
#include <linux/netdevice.h>
#include <linux/seq_file.h>
#include <linux/timekeeping.h>
#include <rdma/ib.h>
#include <rdma/ib_addr.h>

#include "private.h"

static const char *rdma_ep_type_name(u8 qp_type)
{
	switch (qp_type) {
	case IB_QPT_RC:
		return "RC";
	case IB_QPT_UC:
		return "UC";
	case IB_QPT_UD:
		return "UD";
	default:
		return "XRC";
	}
}

static void rdma_ep_show_addr(struct seq_file *m, const struct sockaddr_storage *addr)
{
	const struct sockaddr_ib *ib = (const struct sockaddr_ib *)addr;

	switch (addr->ss_family) {
	case AF_INET:
	case AF_INET6:
		seq_printf(m, " %pISpc", addr);
		break;
	case AF_IB:
		seq_printf(m, " [%pI6c]:%llx", &ib->sib_addr, be64_to_cpu(ib->sib_sid));
		break;
	default:
		seq_puts(m, " -");
	}
}

static const char *rdma_ep_ps_name(struct rdma_cm_id *id)
{
	switch (id->ps) {
	case RDMA_PS_TCP:
		return "TCP";
	case RDMA_PS_UDP:
		return "UDP";
	case RDMA_PS_IPOIB:
		return "IPOIB";
	default:
		return "IB";
	}
}

/* What else there is to say of an id: "rdmaep show" wants to know. */
static void rdma_ep_show_id(struct seq_file *m, struct rdma_cm_id *id)
{
	struct rdma_dev_addr *dev_addr = &id->route.addr.dev_addr;
	struct net_device *netdev;
	union ib_gid sgid = {}, dgid = {};

	seq_printf(m, " ps=%s", rdma_ep_ps_name(id));
	rcu_read_lock();
	netdev = dev_get_by_index_rcu(dev_addr->net, dev_addr->bound_dev_if);
	if (netdev)
		seq_printf(m, " netdev=%s", netdev->name);
	rcu_read_unlock();
	if (!id->device)
		return;
	rdma_read_gids(id, &sgid, &dgid);
	seq_printf(m, " sgid=%pI6c", sgid.raw);
	if (id->route.addr.dst_addr.ss_family)
		seq_printf(m, " dgid=%pI6c", dgid.raw);
	/* Of a netdev over Ethernet that is no partition's key. */
	if (id->port_num && rdma_protocol_ib(id->device, id->port_num))
		seq_printf(m, " pkey=%#06x", ib_addr_get_pkey(dev_addr));
}

/* Those that differ from the default, which is 0. */
static void rdma_ep_show_options(struct seq_file *m, const struct rdma_ep_options *options)
{
	if (options->tos)
		seq_printf(m, " tos=%u", options->tos);
	if (options->reuseaddr)
		seq_puts(m, " reuseaddr=1");
	if (options->afonly)
		seq_puts(m, " afonly=1");
	if (options->ack_timeout)
		seq_printf(m, " ack_timeout=%u", options->ack_timeout);
	if (options->min_rnr_timer)
		seq_printf(m, " min_rnr_timer=%u", options->min_rnr_timer);
	if (options->node_type)
		seq_printf(m, " node_type=%u", options->node_type);
	if (options->connect_timeout_ms)
		seq_printf(m, " connect_timeout_ms=%u", options->connect_timeout_ms);
	if (options->device)
		seq_printf(m, " only_device=%u", options->device - 1);
}

/* Types of events that are listed one by one. */
#define RDMA_EP_SHOW_PENDING 8

/**
 * struct rdma_ep_peek - what ev_lock guards of an endpoint, to be shown
 * @type: the first events that wait to be read
 * @events: how many there are
 * @waiters: threads that wait in a call
 * @channel: number of its channel; 0: it has none
 */
struct rdma_ep_peek {
	u8 type[RDMA_EP_SHOW_PENDING];
	unsigned int events;
	unsigned int waiters;
	unsigned int channel;
};

static void rdma_ep_peek(struct rdma_ep *ep, struct rdma_ep_peek *peek)
{
	struct rdma_ep_event *ev;

	peek->events = 0;
	spin_lock(&ep->ctx->ev_lock);
	list_for_each_entry(ev, &ep->events, ep_node) {
		if (peek->events < RDMA_EP_SHOW_PENDING)
			peek->type[peek->events] = ev->type;
		peek->events++;
	}
	peek->waiters = ep->waiters;
	peek->channel = ep->channel ? ep->channel->number : 0;
	spin_unlock(&ep->ctx->ev_lock);
}

static void rdma_ep_show_pending(struct seq_file *m, const struct rdma_ep_peek *peek)
{
	unsigned int i;

	for (i = 0; i < min_t(unsigned int, peek->events, RDMA_EP_SHOW_PENDING); i++)
		seq_printf(m, "%s%s", i ? "," : " pending=", rdma_ep_event_symbol(peek->type[i]));
}

/* handle, type, state, device/port, source, destination, then names and values */
static void rdma_ep_show(struct seq_file *m, struct rdma_ep *ep)
{
	struct rdma_ep_options options;
	struct rdma_ep_peek peek;
	struct rdma_cm_id *id;

	/* Over iWARP a call may have it for minutes. */
	if (mutex_lock_killable(&ep->lock))
		return;
	rdma_ep_peek(ep, &peek);
	seq_printf(m, "rdma_ep-endpoint:\t%u %s %s", ep->handle, rdma_ep_type_name(ep->qp_type),
		   rdma_ep_state_symbol(READ_ONCE(ep->state)));

	id = ep->id;
	if (id) {
		rdma_lock_handler(id);
		if (id->device)
			seq_printf(m, " %s/%u", dev_name(&id->device->dev), id->port_num);
		else
			seq_puts(m, " -");
		rdma_ep_show_addr(m, &id->route.addr.src_addr);
		rdma_ep_show_addr(m, &id->route.addr.dst_addr);
		rdma_unlock_handler(id);
	} else {
		seq_puts(m, " - - -");
	}

	seq_printf(m, " age_s=%u events=%u", (u32)ktime_get_seconds() - ep->born_s, peek.events);
	if (ep->backlog)
		seq_printf(m, " requests=%u backlog=%u overflows=%llu", READ_ONCE(ep->requests),
			   READ_ONCE(ep->backlog), READ_ONCE(ep->overflows));
	if (id) {
		rdma_lock_handler(id);
		rdma_ep_show_id(m, id);
		rdma_unlock_handler(id);
	}
	options = ep->options;
	mutex_unlock(&ep->lock);

	seq_printf(m, " channel=%u waiters=%u serial=%llu", peek.channel, peek.waiters, ep->serial);
	rdma_ep_show_options(m, &options);
	rdma_ep_show_pending(m, &peek);
	seq_puts(m, "\n");
}

void rdma_ep_show_fdinfo(struct seq_file *m, struct file *file)
{
	struct rdma_ep_ctx *ctx = file->private_data;
	unsigned long handle;
	struct rdma_ep *ep;

	seq_printf(m, "rdma_ep-context:\t%u\n", ctx->number);
	seq_printf(m, "rdma_ep-endpoints:\t%d\n", atomic_read(&ctx->num_eps));

	rcu_read_lock();
	xa_for_each(&ctx->eps, handle, ep) {
		/* What does not fit is shown again, into a larger buffer. */
		if (seq_has_overflowed(m) || fatal_signal_pending(current))
			break;
		if (!kref_get_unless_zero(&ep->kref))
			continue;
		rcu_read_unlock();
		rdma_ep_show(m, ep);
		rdma_ep_put(ep);
		rcu_read_lock();
	}
	rcu_read_unlock();
}
