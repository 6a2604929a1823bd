// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * IB service records, where the kernel's rdma_cm resolves them.
 */
#include <linux/uaccess.h>

#include "private.h"

static int rdma_ep_resolve_service_locked(struct rdma_ep_call *call, struct rdma_ep *ep)
{
	int ret;

	if (!ep->id)
		return rdma_ep_fail_no_id(call, ep);
	if (ep->op == RDMA_EP_OP_NONE && ep->state != RDMA_EP_STATE_ADDR_RESOLVED &&
	    ep->state != RDMA_EP_STATE_BOUND)
		return rdma_ep_fail_state(call, ep, "resolve a service");
	if (!ep->id->device)
		return rdma_ep_fail(call, -EINVAL, RDMA_EP_REASON_STATE,
				    "the endpoint is not bound to a device");
	ret = rdma_ep_op_begin(call, ep, RDMA_EP_OP_SERVICE, ep->state);
	if (ret)
		return ret;
	ret = rdma_ep_cm_resolve_service(ep->id, call->cmd);
	if (ret) {
		rdma_ep_op_abort(ep, ep->state);
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
	if (cmd->reserved || cmd->by & ~(RDMA_EP_SERVICE_BY_ID | RDMA_EP_SERVICE_BY_NAME))
		return rdma_ep_fail(
			call, -EOPNOTSUPP, RDMA_EP_REASON_STRUCT,
			"unknown way to look for a service, or reserved field is not 0");
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
	if (!ret && cmd->hdr.flags & RDMA_EP_F_WAIT)
		ret = rdma_ep_wait_report(call, ep, RDMA_EP_COMPLETES_SERVICE, cmd->record_uptr,
					  cmd->record_len);
	rdma_ep_wait_finish(call, ep);
	return ret;
}

/* The records, each copied out on its own: they are few. */
static int rdma_ep_copy_services(struct rdma_ep *ep, struct rdma_ep_query_services *cmd)
{
	struct rdma_ep_service_rec __user *to = u64_to_user_ptr(cmd->recs_uptr);
	u32 i;

	/* While they are looked up, the answer may be written to them. */
	if (ep->op == RDMA_EP_OP_SERVICE)
		return 0;
	cmd->out_count = rdma_ep_cm_num_services(ep->id);
	for (i = 0; i < min(cmd->count, cmd->out_count); i++) {
		struct rdma_ep_service_rec rec = {};

		rdma_ep_cm_get_service(ep->id, i, &rec);
		if (copy_to_user(to + i, &rec, sizeof(rec)))
			return -EFAULT;
	}
	return 0;
}

int rdma_ep_query_services(struct rdma_ep_call *call)
{
	struct rdma_ep_query_services *cmd = call->cmd;
	struct rdma_ep *ep;
	int ret;

	if (cmd->reserved)
		return rdma_ep_fail(call, -EOPNOTSUPP, RDMA_EP_REASON_STRUCT,
				    "reserved field is not 0");
	ep = rdma_ep_get(call, cmd->ep);
	if (IS_ERR(ep))
		return PTR_ERR(ep);

	cmd->out_count = 0;
	mutex_lock(&ep->lock);
	ret = ep->id ? rdma_ep_copy_services(ep, cmd) : rdma_ep_fail_no_id(call, ep);
	mutex_unlock(&ep->lock);

	rdma_ep_put(ep);
	return ret ?: rdma_ep_respond(call);
}
