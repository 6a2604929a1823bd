// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * IB service records, where the kernel's rdma_cm resolves them.
 */
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "private.h"

static int rdma_ep_resolve_service_locked(struct rdma_ep_call *call, struct rdma_ep *ep)
{
	int ret;

	if (!ep->id)
		return rdma_ep_fail_no_id(call, ep);
	if (!ep->id->device)
		return rdma_ep_fail_unbound(call, ep);
	ret = rdma_ep_op_begin(call, ep, RDMA_EP_OP_SERVICE, BIT(RDMA_EP_STATE_BOUND),
			       RDMA_EP_STATE_RESOLVING_ADDR, "resolve a service");
	if (ret)
		return ret;
	ret = rdma_ep_cm_resolve_service(ep->id, call->cmd);
	if (ret) {
		rdma_ep_op_end(ep, RDMA_EP_STATE_BOUND);
		rdma_ep_fail(call, ret, RDMA_EP_REASON_KERNEL,
			     "services cannot be resolved on this port");
	}
	return ret;
}

int rdma_ep_resolve_service(struct rdma_ep_call *call)
{
	struct rdma_ep_resolve_service *cmd = call->cmd;
	struct rdma_ep *ep;
	int ret;

	if (!RDMA_EP_CM_HAS_SERVICE)
		return rdma_ep_fail(call, -EOPNOTSUPP, RDMA_EP_REASON_KERNEL,
				    "this kernel's rdma_cm does not resolve services");
	if (cmd->by & ~(RDMA_EP_SERVICE_BY_ID | RDMA_EP_SERVICE_BY_NAME))
		return rdma_ep_fail(call, -EOPNOTSUPP, RDMA_EP_REASON_STRUCT, "unknown search %#x",
				    cmd->by);
	if (!cmd->by)
		return rdma_ep_fail(call, -EINVAL, RDMA_EP_REASON_VALUE,
				    "neither a service id nor a name to look for");
	ret = rdma_ep_wait_prepare(call, &ep, cmd->ep, RDMA_EP_COMPLETES_SERVICE, cmd->record_uptr,
				   cmd->record_len);
	if (ret)
		return ret;

	if (!(cmd->hdr.flags & RDMA_EP_F_RESUME)) {
		mutex_lock(&ep->lock);
		ret = rdma_ep_resolve_service_locked(call, ep);
		mutex_unlock(&ep->lock);
	}
	if (!ret)
		ret = rdma_ep_wait_report(call, ep, RDMA_EP_COMPLETES_SERVICE);
	rdma_ep_wait_finish(call, ep);
	return ret;
}

/* More than anybody registers; the answer is copied with no lock held. */
#define RDMA_EP_MAX_SERVICES 256

static struct rdma_ep_service_rec *rdma_ep_get_services(struct rdma_ep *ep, u32 room, u32 *count)
{
	struct rdma_ep_service_rec *recs;
	u32 i;

	/* While they are looked up, the answer may be written to them. */
	*count = ep->op == RDMA_EP_OP_SERVICE || ep->state == RDMA_EP_STATE_REMOVED ?
			 0 :
			 rdma_ep_cm_num_services(ep->id);
	room = min3(room, *count, (u32)RDMA_EP_MAX_SERVICES);
	if (!room)
		return NULL;
	recs = kcalloc(room, sizeof(*recs), GFP_KERNEL_ACCOUNT);
	if (!recs)
		return ERR_PTR(-ENOMEM);
	for (i = 0; i < room; i++)
		rdma_ep_cm_get_service(ep->id, i, &recs[i]);
	return recs;
}

int rdma_ep_query_services(struct rdma_ep_call *call)
{
	struct rdma_ep_query_services *cmd = call->cmd;
	struct rdma_ep_service_rec *recs;
	struct rdma_ep *ep;
	int ret = 0;

	ep = rdma_ep_get(call, cmd->ep);
	if (IS_ERR(ep))
		return PTR_ERR(ep);

	mutex_lock(&ep->lock);
	if (ep->id) {
		/* They were written before the handler was called. */
		rdma_lock_handler(ep->id);
		recs = rdma_ep_get_services(ep, cmd->count, &cmd->out_count);
		rdma_unlock_handler(ep->id);
	} else {
		recs = ERR_PTR(rdma_ep_fail_no_id(call, ep));
	}
	mutex_unlock(&ep->lock);
	rdma_ep_put(ep);
	if (IS_ERR(recs))
		return PTR_ERR(recs);

	if (recs && copy_to_user(u64_to_user_ptr(cmd->recs_uptr), recs,
				 min3(cmd->count, cmd->out_count, (u32)RDMA_EP_MAX_SERVICES) *
					 sizeof(*recs)))
		ret = -EFAULT;
	kfree(recs);
	return ret ?: rdma_ep_respond(call);
}
