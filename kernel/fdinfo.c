// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * What /proc/PID/fdinfo says of a context: a line for each endpoint. Who may
 * read it is what procfs decides: the owner of the process, and root.
 */
#include <linux/fs.h>
#include <linux/seq_file.h>
#include <linux/timekeeping.h>
#include <rdma/ib.h>

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

static unsigned int rdma_ep_count_events(struct rdma_ep *ep)
{
	unsigned int n;

	spin_lock(&ep->ctx->ev_lock);
	n = rdma_ep_list_len(&ep->events);
	spin_unlock(&ep->ctx->ev_lock);
	return n;
}

/* handle, type, state, device/port, source, destination, then names and values */
static void rdma_ep_show(struct seq_file *m, struct rdma_ep *ep)
{
	struct rdma_cm_id *id;

	seq_printf(m, "rdma_ep-endpoint:\t%u %s %s", ep->handle, rdma_ep_type_name(ep->qp_type),
		   rdma_ep_state_symbol(READ_ONCE(ep->state)));

	mutex_lock(&ep->lock);
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
	mutex_unlock(&ep->lock);

	seq_printf(m, " age_s=%u events=%u", (u32)ktime_get_seconds() - ep->born_s,
		   rdma_ep_count_events(ep));
	if (ep->backlog)
		seq_printf(m, " requests=%u backlog=%u overflows=%llu", READ_ONCE(ep->requests),
			   READ_ONCE(ep->backlog), READ_ONCE(ep->overflows));
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
		if (seq_has_overflowed(m))
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
