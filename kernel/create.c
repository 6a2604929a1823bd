// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Making endpoints: as they are, or bound, or resolved.
 *
 * An endpoint that is made for a call is seen by nobody until the call has been
 * answered, so that a failure has nothing to undo but the endpoint. If a signal
 * ends the wait for its resolution it is published all the same, and the call,
 * when it is restarted, goes on with it (RDMA_EP_F_RESUME).
 */
#include "private.h"
#include "trace.h"

static int rdma_ep_get_qp_type(struct rdma_ep_call *call, u32 port_space, u32 qp_type)
{
	int fixed;

	switch (port_space) {
	case RDMA_PS_TCP:
		fixed = IB_QPT_RC;
		break;
	case RDMA_PS_UDP:
	case RDMA_PS_IPOIB:
		fixed = IB_QPT_UD;
		break;
	case RDMA_PS_IB:
		if (qp_type != IB_QPT_RC && qp_type != IB_QPT_UC && qp_type != IB_QPT_UD &&
		    qp_type != IB_QPT_XRC_INI && qp_type != IB_QPT_XRC_TGT)
			return rdma_ep_fail(call, -EINVAL, RDMA_EP_REASON_VALUE,
					    "QP type %u cannot be connected", qp_type);
		return qp_type;
	default:
		return rdma_ep_fail(call, -EOPNOTSUPP, RDMA_EP_REASON_VALUE,
				    "unknown port space %#x", port_space);
	}
	if (qp_type && qp_type != fixed)
		return rdma_ep_fail(call, -EINVAL, RDMA_EP_REASON_VALUE,
				    "port space %#x connects QPs of type %u, not %u", port_space,
				    fixed, qp_type);
	return fixed;
}

/* An endpoint with its rdma_cm_id, not published. */
static struct rdma_ep *rdma_ep_new(struct rdma_ep_call *call, u64 cookie, u32 port_space,
				   u32 qp_type)
{
	struct rdma_cm_id *id;
	struct rdma_ep *ep;
	int type;

	type = rdma_ep_get_qp_type(call, port_space, qp_type);
	if (type < 0)
		return ERR_PTR(type);

	ep = rdma_ep_alloc(call->ctx, GFP_KERNEL_ACCOUNT);
	if (IS_ERR(ep)) {
		if (PTR_ERR(ep) == -ENOSPC)
			rdma_ep_fail(call, -ENOSPC, RDMA_EP_REASON_LIMIT,
				     "a context may have %u endpoints (max_endpoints)",
				     READ_ONCE(rdma_ep_max_endpoints));
		else if (PTR_ERR(ep) == -EDQUOT)
			rdma_ep_fail_quota(call);
		return ep;
	}
	call->ep = ep->handle;
	ep->cookie = cookie;
	ep->qp_type = type;

	id = rdma_create_user_id(rdma_ep_cm_handler, ep, port_space, type);
	if (IS_ERR(id)) {
		rdma_ep_teardown(ep);
		return ERR_CAST(id);
	}
	ep->id = id;
	trace_rdma_ep_created(call->ctx->number, ep->handle, 0);
	return ep;
}

int rdma_ep_create(struct rdma_ep_call *call)
{
	struct rdma_ep_create *cmd = call->cmd;
	struct rdma_ep_new_channel want;
	struct rdma_ep *ep;
	int ret;

	ret = rdma_ep_want_channel(call, &want, cmd->channel);
	if (ret)
		return ret;
	ep = rdma_ep_new(call, cmd->cookie, cmd->port_space, cmd->qp_type);
	if (IS_ERR(ep)) {
		ret = PTR_ERR(ep);
		goto unwant;
	}

	cmd->channel = want.fd;
	cmd->out_ep = ep->handle;
	cmd->out_serial = ep->serial;
	ret = rdma_ep_respond(call);
	if (ret)
		goto teardown;
	rdma_ep_publish(ep, want.channel);
	rdma_ep_keep_channel(&want);
	return 0;

teardown:
	rdma_ep_teardown(ep);
unwant:
	rdma_ep_unwant_channel(&want);
	return ret;
}

/*
 * Is this the call for an endpoint that was published when a signal came? Others
 * are seen by nobody before the answer: to show one is to publish it, to undo it is
 * to tear it down. This one anybody may have found and destroyed meanwhile: to show
 * it is to point it at its channel, and who undoes it has to win the right to.
 */
static bool rdma_ep_create_resumes(const struct rdma_ep_create_ep *cmd)
{
	return cmd->hdr.flags & RDMA_EP_F_RESUME;
}

static bool rdma_ep_create_show(struct rdma_ep_call *call, struct rdma_ep *ep,
				struct rdma_ep_channel *channel)
{
	if (rdma_ep_create_resumes(call->cmd))
		return rdma_ep_point_at(ep, channel);
	rdma_ep_publish(ep, channel);
	return true;
}

static void rdma_ep_create_undo(struct rdma_ep_call *call, struct rdma_ep *ep)
{
	if (!rdma_ep_create_resumes(call->cmd) || rdma_ep_unpublish(ep))
		rdma_ep_teardown(ep);
}

/* Let the endpoint be seen; or tear it down, if something has failed with @ret. */
static int rdma_ep_create_answer(struct rdma_ep_call *call, struct rdma_ep *ep, int ret)
{
	struct rdma_ep_create_ep *cmd = call->cmd;
	struct rdma_ep_new_channel want;

	if (ret)
		goto undo;
	ret = rdma_ep_want_channel(call, &want, cmd->channel);
	if (ret)
		goto undo;
	cmd->channel = want.fd;
	cmd->out_ep = ep->handle;
	cmd->out_serial = ep->serial;
	ret = rdma_ep_record_answer(call, ep, RDMA_EP_REC_INFO | RDMA_EP_REC_INIT, false,
				    cmd->record_uptr, cmd->record_len);
	if (!ret)
		ret = rdma_ep_respond(call);
	if (!ret && !rdma_ep_create_show(call, ep, want.channel))
		ret = rdma_ep_fail_no_id(call, ep);
	if (ret)
		goto unwant;
	rdma_ep_keep_channel(&want);
	return 0;

unwant:
	rdma_ep_unwant_channel(&want);
undo:
	rdma_ep_create_undo(call, ep);
	return ret;
}

/*
 * A signal: the resolution goes on, and so does the call if it is restarted
 * (SA_RESTART). A caller that gets to see EINTR decides for himself.
 */
static int rdma_ep_create_interrupted(struct rdma_ep_call *call, struct rdma_ep *ep)
{
	struct rdma_ep_create_ep *cmd = call->cmd;

	if (rdma_ep_create_resumes(cmd))
		return -ERESTARTSYS;
	cmd->hdr.flags |= RDMA_EP_F_RESUME;
	cmd->out_ep = ep->handle;
	cmd->out_serial = ep->serial;
	if (rdma_ep_respond(call)) {
		rdma_ep_teardown(ep);
		return -EFAULT;
	}
	rdma_ep_publish(ep, NULL);
	return -ERESTARTSYS;
}

static int rdma_ep_create_resolved(struct rdma_ep_call *call, struct rdma_ep *ep, int ret,
				   struct rdma_ep_taken *t)
{
	if (ret == -ERESTARTSYS)
		return rdma_ep_create_interrupted(call, ep);
	/* There was an event: who else knows the endpoint has got it, or will. */
	if (rdma_ep_create_resumes(call->cmd) && (ret == -ENODATA || ret == -EAGAIN))
		return rdma_ep_fail_wait(call, ep, ret);
	/* Nobody does: the device has gone. */
	if (ret == -ENODATA)
		ret = rdma_ep_fail_no_id(call, ep);
	else if (ret)
		ret = rdma_ep_fail_wait(call, ep, ret);
	if (!ret) {
		if (t->type == RDMA_EP_EVENT_DEVICE_REMOVAL)
			ret = rdma_ep_fail_no_id(call, ep);
		else if (t->status)
			ret = rdma_ep_fail_resolve(call, t->status);
		rdma_ep_event_done(t);
	}
	return rdma_ep_create_answer(call, ep, ret);
}

/* The endpoint can be seen while it is being resolved. */
static int rdma_ep_create_started(struct rdma_ep_call *call, struct rdma_ep *ep,
				  struct sockaddr *src, struct sockaddr *dst)
{
	struct rdma_ep_create_ep *cmd = call->cmd;
	int ret;

	mutex_lock(&ep->lock);
	ret = rdma_ep_resolve_locked(call, ep, src, dst, cmd->timeout_ms,
				     !(cmd->hdr.flags & RDMA_EP_CREATE_EP_NO_ROUTE));
	mutex_unlock(&ep->lock);
	return rdma_ep_create_answer(call, ep, ret);
}

static u32 rdma_ep_create_types(const struct rdma_ep_create_ep *cmd)
{
	return cmd->hdr.flags & RDMA_EP_CREATE_EP_NO_ROUTE ? RDMA_EP_COMPLETES_ADDR :
							     RDMA_EP_COMPLETES_ADDR_AND_ROUTE;
}

/* Wait until it is resolved, unless that has failed with @ret. The reference is ours. */
static int rdma_ep_create_wait(struct rdma_ep_call *call, struct rdma_ep *ep, int ret)
{
	if (!ret)
		ret = rdma_ep_wait_then(call, ep, rdma_ep_create_types(call->cmd),
					rdma_ep_create_resolved);
	if (ret == -EIOCBQUEUED)
		return ret;
	rdma_ep_wait_end(ep);
	rdma_ep_put(ep);
	return ret;
}

/* A signal had ended the wait for an endpoint that is being resolved. */
static int rdma_ep_create_resume(struct rdma_ep_call *call)
{
	struct rdma_ep_create_ep *cmd = call->cmd;
	struct rdma_ep *ep = rdma_ep_get(call, cmd->out_ep);

	if (IS_ERR(ep))
		return PTR_ERR(ep);
	rdma_ep_wait_begin(ep, rdma_ep_create_types(cmd));
	return rdma_ep_create_wait(call, ep, 0);
}

/* Resolve an endpoint that only we know, and go on when it is. */
static int rdma_ep_create_active(struct rdma_ep_call *call, struct rdma_ep *ep,
				 struct sockaddr *src, struct sockaddr *dst)
{
	struct rdma_ep_create_ep *cmd = call->cmd;
	int ret;

	kref_get(&ep->kref); /* it may be gone when the wait ends */
	rdma_ep_wait_begin(ep, rdma_ep_create_types(cmd));
	mutex_lock(&ep->lock);
	ret = rdma_ep_resolve_locked(call, ep, src, dst, cmd->timeout_ms,
				     !(cmd->hdr.flags & RDMA_EP_CREATE_EP_NO_ROUTE));
	mutex_unlock(&ep->lock);
	if (ret)
		rdma_ep_teardown(ep);
	return rdma_ep_create_wait(call, ep, ret);
}

static int rdma_ep_create_passive(struct rdma_ep_call *call, struct rdma_ep *ep,
				  struct sockaddr *src)
{
	int ret;

	mutex_lock(&ep->lock);
	ret = rdma_ep_bind_locked(call, ep, src);
	mutex_unlock(&ep->lock);
	return rdma_ep_create_answer(call, ep, ret);
}

int rdma_ep_create_ep(struct rdma_ep_call *call)
{
	struct rdma_ep_create_ep *cmd = call->cmd;
	bool passive = cmd->hdr.flags & RDMA_EP_CREATE_EP_PASSIVE;
	struct sockaddr *src, *dst;
	struct rdma_ep *ep;
	int ret;

	if (passive && cmd->hdr.flags & (RDMA_EP_CREATE_EP_START | RDMA_EP_F_RESUME))
		return rdma_ep_fail(call, -EINVAL, RDMA_EP_REASON_VALUE,
				    "a passive endpoint is not resolved");
	if (rdma_ep_create_resumes(cmd) && cmd->hdr.flags & RDMA_EP_CREATE_EP_START)
		return rdma_ep_fail(call, -EINVAL, RDMA_EP_REASON_VALUE,
				    "RDMA_EP_F_RESUME for a call that does not wait");
	src = rdma_ep_sockaddr(call, &cmd->src, !passive);
	if (IS_ERR(src))
		return PTR_ERR(src);
	dst = rdma_ep_sockaddr(call, &cmd->dst, passive);
	if (IS_ERR(dst))
		return PTR_ERR(dst);
	ret = rdma_ep_record_check(call, cmd->record_uptr, cmd->record_len);
	if (ret)
		return ret;
	ret = rdma_ep_check_channel(call, cmd->channel);
	if (ret)
		return ret;
	if (rdma_ep_create_resumes(cmd))
		return rdma_ep_create_resume(call);
	ep = rdma_ep_new(call, cmd->cookie, cmd->port_space, cmd->qp_type);
	if (IS_ERR(ep))
		return PTR_ERR(ep);
	if (passive)
		return rdma_ep_create_passive(call, ep, src);
	if (cmd->hdr.flags & RDMA_EP_CREATE_EP_START)
		return rdma_ep_create_started(call, ep, src, dst);
	return rdma_ep_create_active(call, ep, src, dst);
}
