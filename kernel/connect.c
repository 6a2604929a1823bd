// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Connections: listen, connect, accept, establish, reject, disconnect.
 */
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <rdma/ib_cm.h>

#include "private.h"
#include "trace.h"

static int rdma_ep_listen_locked(struct rdma_ep_call *call, struct rdma_ep *ep, u32 backlog)
{
	struct sockaddr_storage addr;
	u32 limit = READ_ONCE(rdma_ep_max_backlog);
	u8 state = ep->state;
	int ret;

	if (!ep->id)
		return rdma_ep_fail_no_id(call, ep);
	if (state != RDMA_EP_STATE_IDLE && state != RDMA_EP_STATE_BOUND)
		return rdma_ep_fail_state(call, ep, "listen");
	if (!backlog || backlog > limit)
		backlog = limit;

	/* Requests may come before rdma_listen() returns. */
	spin_lock(&ep->ctx->ev_lock);
	ep->backlog = backlog;
	spin_unlock(&ep->ctx->ev_lock);

	ret = rdma_listen(ep->id, backlog);
	addr = ep->id->route.addr.src_addr;
	trace_rdma_ep_path(ep->ctx->number, ep->handle, ep->id);
	if (!ret)
		state = RDMA_EP_STATE_LISTENING;
	else if (state == RDMA_EP_STATE_IDLE)
		state = rdma_ep_settle(ep);

	spin_lock(&ep->ctx->ev_lock);
	if (ret)
		ep->backlog = 0;
	if (ep->state != RDMA_EP_STATE_REMOVED)
		rdma_ep_set_state(ep, state);
	spin_unlock(&ep->ctx->ev_lock);

	return ret ? rdma_ep_fail_bind(call, ep, ret, (struct sockaddr *)&addr) : 0;
}

int rdma_ep_listen(struct rdma_ep_call *call)
{
	struct rdma_ep_listen *cmd = call->cmd;
	struct rdma_ep *ep;
	int ret;

	ret = rdma_ep_record_check(call, cmd->record_uptr, cmd->record_len);
	if (ret)
		return ret;
	ep = rdma_ep_get(call, cmd->ep);
	if (IS_ERR(ep))
		return PTR_ERR(ep);

	mutex_lock(&ep->lock);
	ret = rdma_ep_listen_locked(call, ep, cmd->backlog);
	mutex_unlock(&ep->lock);

	if (!ret)
		ret = rdma_ep_record_answer(call, ep, RDMA_EP_REC_INFO, false, cmd->record_uptr,
					    cmd->record_len);
	rdma_ep_put(ep);
	return ret;
}

/**
 * struct rdma_ep_param - connection parameters as rdma_cm wants them
 * @conn: the parameters; points at @data
 * @ece: enhanced connection establishment
 * @data: private data
 */
struct rdma_ep_param {
	struct rdma_conn_param conn;
	struct rdma_ucm_ece ece;
	u8 data[RDMA_EP_MAX_DATA];
};

static int rdma_ep_get_data(struct rdma_ep_call *call, u8 *data, u64 uptr, u16 len)
{
	/* A longer one is refused before it is sent: no transport carries it. */
	if (copy_from_user(data, u64_to_user_ptr(uptr), min_t(u16, len, RDMA_EP_MAX_DATA)))
		return rdma_ep_fail(call, -EFAULT, RDMA_EP_REASON_NONE,
				    "bad address of private data");
	return 0;
}

static int rdma_ep_get_param(struct rdma_ep_call *call, struct rdma_ep_param *param)
{
	struct rdma_ep_connect *cmd = call->cmd;
	const struct rdma_ep_conn_param *src = &cmd->param;

	param->conn = (struct rdma_conn_param){
		.private_data = param->data,
		.responder_resources = src->responder_resources,
		.initiator_depth = src->initiator_depth,
		.flow_control = src->flow_control,
		.retry_count = src->retry_count,
		.rnr_retry_count = src->rnr_retry_count,
		.srq = src->srq,
		.qp_num = src->qp_num & 0xffffff,
		.qkey = src->qkey,
	};
	param->ece.vendor_id = src->ece_vendor_id;
	param->ece.attr_mod = src->ece_attr_mod;
	return rdma_ep_get_data(call, param->data, src->private_data_uptr, src->private_data_len);
}

static int rdma_ep_check_data(struct rdma_ep_call *call, struct rdma_ep *ep, enum rdma_ep_op op,
			      u16 len)
{
	unsigned int max = U8_MAX;

	/* Without a device the state forbids it, unless one comes meanwhile. */
	if (ep->id->device)
		max = rdma_ep_max_data(ep->id, op);
	if (len > max)
		return rdma_ep_fail(call, -EINVAL, RDMA_EP_REASON_DATA_TOO_LONG,
				    "private data of %u bytes, this transport carries %u", len,
				    max);
	return 0;
}

/* Checks that connect and accept share, and what depends on the id. */
static int rdma_ep_adapt_param(struct rdma_ep_call *call, struct rdma_ep *ep, enum rdma_ep_op op,
			       struct rdma_ep_param *param)
{
	struct rdma_ep_connect *cmd = call->cmd;
	int ret;

	ret = rdma_ep_check_data(call, ep, op, cmd->param.private_data_len);
	if (ret)
		return ret;
	param->conn.private_data_len = cmd->param.private_data_len;
	/* IP port spaces have a qkey of their own. */
	if (ep->id->route.addr.src_addr.ss_family != AF_IB)
		param->conn.qkey = 0;
	return 0;
}

static int rdma_ep_connect_locked(struct rdma_ep_call *call, struct rdma_ep *ep,
				  struct rdma_ep_param *param)
{
	int ret;

	if (!ep->id)
		return rdma_ep_fail_no_id(call, ep);
	ret = rdma_ep_adapt_param(call, ep, RDMA_EP_OP_CONNECT, param);
	if (ret)
		return ret;
	/* iWARP's connection manager waits for TCP. */
	if (call->no_block && ep->id->device && rdma_cap_iw_cm(ep->id->device, ep->id->port_num)) {
		call->blocks = true;
		return -EAGAIN;
	}
	ret = rdma_ep_op_begin(call, ep, RDMA_EP_OP_CONNECT, BIT(RDMA_EP_STATE_ROUTE_RESOLVED),
			       RDMA_EP_STATE_CONNECTING, "connect");
	if (ret)
		return ret;
	ret = rdma_connect_ece(ep->id, &param->conn, &param->ece);
	/* A signal ended that: nothing is under way, so EINTR would be wrong. */
	if (ret == -ERESTARTSYS)
		ret = call->async ? -ECANCELED : -ERESTARTNOINTR;
	if (ret) {
		rdma_ep_op_end(ep, RDMA_EP_STATE_ROUTE_RESOLVED);
		return rdma_ep_fail(call, ret, RDMA_EP_REASON_NONE,
				    "the connection manager could not send the request");
	}
	rdma_ep_watch_attempt(ep);
	return 0;
}

static int rdma_ep_accept_locked(struct rdma_ep_call *call, struct rdma_ep *ep,
				 struct rdma_ep_param *param)
{
	bool ud = ep->qp_type == IB_QPT_UD;
	int ret;

	if (!ep->id)
		return rdma_ep_fail_no_id(call, ep);
	ret = rdma_ep_adapt_param(call, ep, RDMA_EP_OP_ACCEPT, param);
	if (ret)
		return ret;
	ret = rdma_ep_op_begin(call, ep, RDMA_EP_OP_ACCEPT, BIT(RDMA_EP_STATE_REQUESTED),
			       RDMA_EP_STATE_ACCEPTING, "accept");
	if (ret)
		return ret;

	rdma_lock_handler(ep->id);
	ret = rdma_accept_ece(ep->id, &param->conn, &param->ece);
	/* There is no completion for a datagram, and rdma_cm rejects on failure. */
	if (ret)
		rdma_ep_op_end(ep, RDMA_EP_STATE_FAILED);
	else if (ud)
		rdma_ep_op_end(ep, RDMA_EP_STATE_CONNECTED);
	rdma_unlock_handler(ep->id);

	if (ret)
		return rdma_ep_fail(call, ret, RDMA_EP_REASON_NONE,
				    "the connection manager could not send the reply");
	if (!ud)
		rdma_ep_watch_attempt(ep);
	return 0;
}

/* The parameters stay on this function's stack, and off that of who waits. */
static noinline_for_stack int rdma_ep_start(struct rdma_ep_call *call, struct rdma_ep *ep,
					    bool accept)
{
	struct rdma_ep_param param;
	int ret;

	ret = rdma_ep_get_param(call, &param);
	if (ret)
		return ret;
	mutex_lock(&ep->lock);
	ret = accept ? rdma_ep_accept_locked(call, ep, &param) :
		       rdma_ep_connect_locked(call, ep, &param);
	mutex_unlock(&ep->lock);
	return ret;
}

/* What connect and accept have in common: all but the start. */
static int rdma_ep_connect_or_accept(struct rdma_ep_call *call, bool accept)
{
	struct rdma_ep_connect *cmd = call->cmd;
	struct rdma_ep *ep;
	int ret;

	ret = rdma_ep_wait_prepare(call, &ep, cmd->ep, RDMA_EP_COMPLETES_CONNECT, cmd->record_uptr,
				   cmd->record_len);
	if (ret)
		return ret;

	if (!(cmd->hdr.flags & RDMA_EP_F_RESUME))
		ret = rdma_ep_start(call, ep, accept);
	if (!ret && !(accept && ep->qp_type == IB_QPT_UD))
		ret = rdma_ep_wait_report(call, ep, RDMA_EP_COMPLETES_CONNECT);
	rdma_ep_wait_finish(call, ep);
	return ret;
}

int rdma_ep_connect(struct rdma_ep_call *call)
{
	return rdma_ep_connect_or_accept(call, false);
}

int rdma_ep_accept(struct rdma_ep_call *call)
{
	return rdma_ep_connect_or_accept(call, true);
}

/* Change the state, unless an event has changed it meanwhile. */
static void rdma_ep_move_state(struct rdma_ep *ep, u8 from, u8 to)
{
	spin_lock(&ep->ctx->ev_lock);
	if (ep->state == from)
		rdma_ep_set_state(ep, to);
	spin_unlock(&ep->ctx->ev_lock);
}

static int rdma_ep_establish_locked(struct rdma_ep_call *call, struct rdma_ep *ep)
{
	int ret;

	if (!ep->id)
		return rdma_ep_fail_no_id(call, ep);

	rdma_lock_handler(ep->id);
	if (ep->state == RDMA_EP_STATE_RESPONDED) {
		ret = rdma_accept(ep->id, NULL);
		rdma_ep_move_state(ep, RDMA_EP_STATE_RESPONDED,
				   ret ? RDMA_EP_STATE_FAILED : RDMA_EP_STATE_CONNECTED);
	} else {
		ret = rdma_ep_fail_state(call, ep, "establish the connection");
	}
	rdma_unlock_handler(ep->id);
	return ret;
}

int rdma_ep_establish(struct rdma_ep_call *call)
{
	struct rdma_ep_establish *cmd = call->cmd;
	struct rdma_ep *ep;
	int ret;

	ep = rdma_ep_get(call, cmd->ep);
	if (IS_ERR(ep))
		return PTR_ERR(ep);
	mutex_lock(&ep->lock);
	ret = rdma_ep_establish_locked(call, ep);
	mutex_unlock(&ep->lock);
	rdma_ep_put(ep);
	return ret;
}

static int rdma_ep_reject_locked(struct rdma_ep_call *call, struct rdma_ep *ep, const u8 *data)
{
	struct rdma_ep_reject *cmd = call->cmd;
	u8 state;
	int ret;

	if (!ep->id)
		return rdma_ep_fail_no_id(call, ep);
	ret = rdma_ep_check_data(call, ep, RDMA_EP_OP_NONE, cmd->private_data_len);
	if (ret)
		return ret;

	rdma_lock_handler(ep->id);
	state = ep->state;
	if (state == RDMA_EP_STATE_REQUESTED || state == RDMA_EP_STATE_RESPONDED) {
		ret = rdma_reject(ep->id, data, cmd->private_data_len,
				  cmd->reason ?: IB_CM_REJ_CONSUMER_DEFINED);
		if (!ret) {
			rdma_ep_count(ep->ctx, RDMA_EP_COUNT_REJECTS);
			rdma_ep_move_state(ep, state, RDMA_EP_STATE_FAILED);
		}
	} else {
		ret = rdma_ep_fail_state(call, ep, "reject");
	}
	rdma_unlock_handler(ep->id);
	return ret;
}

int rdma_ep_reject(struct rdma_ep_call *call)
{
	struct rdma_ep_reject *cmd = call->cmd;
	u8 data[RDMA_EP_MAX_DATA];
	struct rdma_ep *ep;
	int ret;

	if (cmd->reason && cmd->reason != IB_CM_REJ_CONSUMER_DEFINED &&
	    cmd->reason != IB_CM_REJ_VENDOR_OPTION_NOT_SUPPORTED)
		return rdma_ep_fail(call, -EINVAL, RDMA_EP_REASON_VALUE,
				    "%u is not a reason that a user can give", cmd->reason);
	ret = rdma_ep_get_data(call, data, cmd->private_data_uptr, cmd->private_data_len);
	if (ret)
		return ret;
	ep = rdma_ep_get(call, cmd->ep);
	if (IS_ERR(ep))
		return PTR_ERR(ep);
	mutex_lock(&ep->lock);
	ret = rdma_ep_reject_locked(call, ep, data);
	mutex_unlock(&ep->lock);
	rdma_ep_put(ep);
	return ret;
}

/*
 * What a disconnect means in this state: an error, or 0 and whether to @send it.
 * Only from a connection that stands will an event come. rdma_cm answers a
 * disconnect that is not needed with EINVAL, or not at all.
 */
static int rdma_ep_disconnect_begin(struct rdma_ep *ep, bool wait, bool *send)
{
	lockdep_assert_held(&ep->ctx->ev_lock);

	*send = false;
	switch (ep->state) {
	case RDMA_EP_STATE_CONNECTED:
		*send = !ep->disconnecting;
		/* Set first: the event may come before rdma_disconnect() returns. */
		ep->disconnecting = ep->qp_type != IB_QPT_UD;
		if (*send && ep->disconnecting)
			rdma_ep_watch_disconnect(ep);
		ep->disconnect_called = true;
		return 0;
	case RDMA_EP_STATE_ACCEPTING:
		/* Before a disconnect iw_cm waits for the peer, and no signal ends that. */
		*send = ep->id && !rdma_cap_iw_cm(ep->id->device, ep->id->port_num);
		return wait ? -EINVAL : 0;
	case RDMA_EP_STATE_RESPONDED:
		*send = true;
		return wait ? -EINVAL : 0;
	case RDMA_EP_STATE_DISCONNECTED:
		/* If the peer went first, it waits for the reply that this sends. */
		*send = !ep->disconnect_called;
		ep->disconnect_called = true;
		return 0;
	case RDMA_EP_STATE_CONNECTING:
	case RDMA_EP_STATE_REQUESTED:
		/* No error with rdma_ucm, and nothing is sent: no event would come. */
		return wait ? -EINVAL : 0;
	case RDMA_EP_STATE_FAILED:
		return 0;
	default:
		return -EINVAL;
	}
}

static int rdma_ep_disconnect_locked(struct rdma_ep_call *call, struct rdma_ep *ep)
{
	struct rdma_ep_hdr *hdr = call->cmd;
	bool send;
	int ret;

	spin_lock(&ep->ctx->ev_lock);
	ret = rdma_ep_disconnect_begin(ep, hdr->flags & RDMA_EP_F_WAIT, &send);
	spin_unlock(&ep->ctx->ev_lock);

	if (!ep->id && ep->state == RDMA_EP_STATE_REMOVED)
		return rdma_ep_fail_no_id(call, ep);
	if (ret)
		return rdma_ep_fail_state(call, ep, "disconnect");
	if (!send || !ep->id)
		return 0;

	ret = rdma_disconnect(ep->id);
	if (!ret)
		return 0;
	spin_lock(&ep->ctx->ev_lock);
	ep->disconnecting = false;
	wake_up_all(&ep->wq);
	if (ep->state == RDMA_EP_STATE_DISCONNECTED || ep->qp_type == IB_QPT_UD)
		ret = 0;
	spin_unlock(&ep->ctx->ev_lock);
	return ret;
}

static bool rdma_ep_has_ended(struct rdma_ep *ep)
{
	u8 state = READ_ONCE(ep->state);

	return state == RDMA_EP_STATE_DISCONNECTED || state == RDMA_EP_STATE_FAILED;
}

static int rdma_ep_disconnect_reported(struct rdma_ep_call *call, struct rdma_ep *ep, int ret,
				       struct rdma_ep_taken *t)
{
	struct rdma_ep_hdr *hdr = call->cmd;

	ret = rdma_ep_wait_reported(call, ep, ret, t);
	/* There was no connection to end, or its end was reported before. */
	if (ret == -ENODATA && (!(hdr->flags & RDMA_EP_F_RESUME) || rdma_ep_has_ended(ep))) {
		call->reason.code = RDMA_EP_REASON_NONE;
		ret = rdma_ep_record_answer(call, ep, 0, false, call->record_uptr,
					    call->record_len);
	}
	return ret;
}

int rdma_ep_disconnect(struct rdma_ep_call *call)
{
	struct rdma_ep_disconnect *cmd = call->cmd;
	struct rdma_ep *ep;
	int ret;

	ret = rdma_ep_wait_prepare(call, &ep, cmd->ep, RDMA_EP_COMPLETES_DISCONNECT,
				   cmd->record_uptr, cmd->record_len);
	if (ret)
		return ret;

	if (!(cmd->hdr.flags & RDMA_EP_F_RESUME)) {
		mutex_lock(&ep->lock);
		ret = rdma_ep_disconnect_locked(call, ep);
		mutex_unlock(&ep->lock);
	}
	if (!ret && cmd->hdr.flags & RDMA_EP_F_WAIT)
		ret = rdma_ep_wait_then(call, ep, RDMA_EP_COMPLETES_DISCONNECT,
					rdma_ep_disconnect_reported);
	rdma_ep_wait_finish(call, ep);
	return ret;
}

/*
 * When ib_cm is told that a message has come before the RTU, it leaves to a
 * work item what is due then: to stop sending the REP. If a disconnect or a
 * destroy gets in between, nobody does, and rdma_destroy_id() waits for the
 * REP to have been sent in vain, for more than a minute. So nobody gets in
 * between: the endpoint stays locked until the work has run, and has reported.
 * The peer can, by a reject or a disconnect: rdma_ep::lingers.
 */
static int rdma_ep_notify_locked(struct rdma_ep_call *call, struct rdma_ep *ep, u32 event)
{
	int ret;

	if (!ep->id)
		return rdma_ep_fail_no_id(call, ep);
	if (!ep->id->device)
		return rdma_ep_fail_unbound(call, ep);
	/* ib_cm would migrate to an address that is all zero. */
	if (event == IB_EVENT_PATH_MIG && ep->id->route.num_pri_alt_paths < 2)
		return rdma_ep_fail(call, -EINVAL, RDMA_EP_REASON_STATE,
				    "there is no alternate path to migrate to");

	if (event == IB_EVENT_COMM_EST) {
		spin_lock(&ep->ctx->ev_lock);
		ep->lingers = true;
		spin_unlock(&ep->ctx->ev_lock);
	}
	ret = rdma_notify(ep->id, event);
	if (!ret && event == IB_EVENT_COMM_EST)
		wait_event_timeout(ep->wq, READ_ONCE(ep->op) != RDMA_EP_OP_ACCEPT, HZ);
	return ret;
}

int rdma_ep_notify(struct rdma_ep_call *call)
{
	struct rdma_ep_notify *cmd = call->cmd;
	struct rdma_ep *ep;
	int ret;

	if (cmd->event != IB_EVENT_COMM_EST && cmd->event != IB_EVENT_PATH_MIG)
		return rdma_ep_fail(call, -EINVAL, RDMA_EP_REASON_VALUE,
				    "event %u is of no interest to a connection", cmd->event);
	ep = rdma_ep_get(call, cmd->ep);
	if (IS_ERR(ep))
		return PTR_ERR(ep);
	mutex_lock(&ep->lock);
	ret = rdma_ep_notify_locked(call, ep, cmd->event);
	mutex_unlock(&ep->lock);
	rdma_ep_put(ep);
	return ret;
}
