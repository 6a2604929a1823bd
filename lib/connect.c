// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Connections: connect, listen, accept, establish, reject, disconnect, notify,
 * and enhanced connection establishment (ECE).
 */
#include <stdlib.h>
#include <string.h>

#include "rdmaep-internal.h"

/* Private data of a call, with the memory to put two pieces together */
struct conn_data {
	uint8_t buf[RDMA_EP_MAX_DATA];
};

static uint8_t min_u8(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

static int data_too_long(size_t len, size_t limit)
{
	return rdmaep_fail(EINVAL, RDMA_EP_REASON_DATA_TOO_LONG,
			   "private data of %zu bytes, but %zu fit", len, limit);
}

/*
 * What rdma_getaddrinfo() wants to go first (connecting only), then what the
 * program gives. Nothing has been sent yet when it turns out to be too long.
 */
static int set_data(struct rdmaep_id *ep, struct rdma_ep_conn_param *dst,
		    const struct rdma_conn_param *src, size_t limit,
		    struct conn_data *data)
{
	size_t len = src && src->private_data ? src->private_data_len : 0;
	size_t first = ep->connect_data ? ep->connect_len : 0;
	size_t total = first + len;

	if (!limit)	/* the device is not known: the module will tell */
		limit = UINT8_MAX;
	if (total > limit || total > sizeof(data->buf))
		return data_too_long(total, limit);
	if (!total)
		return 0;

	if (first)
		memcpy(data->buf, ep->connect_data, first);
	if (len)
		memcpy(data->buf + first, src->private_data, len);
	dst->private_data_uptr = (uintptr_t)data->buf;
	dst->private_data_len = total;
	return 0;
}

static void set_ece(struct rdmaep_id *ep, struct rdma_ep_conn_param *dst)
{
	dst->ece_vendor_id = ep->local_ece.vendor_id;
	dst->ece_attr_mod = ep->local_ece.options;
}

static int set_param(struct rdmaep_id *ep, struct rdma_ep_conn_param *dst,
		     const struct rdma_conn_param *src, size_t limit,
		     struct conn_data *data)
{
	const struct ibv_qp *qp = ep->id.qp;

	dst->responder_resources = ep->responder_resources;
	dst->initiator_depth = ep->initiator_depth;
	dst->retry_count = src ? min_u8(src->retry_count, 7) : 7;
	dst->rnr_retry_count = src ? min_u8(src->rnr_retry_count, 7) : 7;
	dst->flow_control = src ? src->flow_control : 0;
	if (qp) {
		dst->qp_num = qp->qp_num;
		dst->srq = !!qp->srq;
	} else {
		/* What the peer may do to a QP that is made later depends on these. */
		ep->attr_parts &= ~RDMA_EP_REC_INIT;
		if (src) {
			dst->qp_num = src->qp_num;
			dst->srq = src->srq;
		}
	}
	set_ece(ep, dst);
	return set_data(ep, dst, src, limit, data);
}

static int check_param(struct rdmaep_id *ep, const struct rdma_conn_param *param,
		       bool connecting)
{
	if (rdmaep_need_device(ep))
		return -1;
	if (!ep->id.qp && !param && !(rdmaep_is_ud(ep) && connecting))
		return rdmaep_fail(EINVAL, RDMA_EP_REASON_VALUE,
				   "neither a QP nor connection parameters");
	if (ep->id.ps != RDMA_PS_TCP || !param)
		return 0;
	if (param->responder_resources != RDMA_MAX_RESP_RES &&
	    param->responder_resources > ep->dev->max_responder_resources)
		return rdmaep_fail(EINVAL, RDMA_EP_REASON_VALUE,
				   "responder_resources %u, the device's limit is %u",
				   param->responder_resources,
				   ep->dev->max_responder_resources);
	if (param->initiator_depth != RDMA_MAX_INIT_DEPTH &&
	    param->initiator_depth > ep->dev->max_initiator_depth)
		return rdmaep_fail(EINVAL, RDMA_EP_REASON_VALUE,
				   "initiator_depth %u, the device's limit is %u",
				   param->initiator_depth,
				   ep->dev->max_initiator_depth);
	return 0;
}

static int connect_set(struct rdmaep_id *ep, struct rdma_ep_connect *cmd,
		       const struct rdma_conn_param *param,
		       struct conn_data *data)
{
	if (check_param(ep, param, true))
		return -1;

	ep->initiator_depth = ep->dev->max_initiator_depth;
	if (param && param->initiator_depth != RDMA_MAX_INIT_DEPTH)
		ep->initiator_depth = param->initiator_depth;
	ep->responder_resources = ep->dev->max_responder_resources;
	if (param && param->responder_resources != RDMA_MAX_RESP_RES)
		ep->responder_resources = param->responder_resources;
	return set_param(ep, &cmd->param, param, ep->max_connect_data, data);
}

/*
 * Once it is sent, the event can come, and another thread destroy an
 * asynchronous id.
 */
static int connect_send(struct rdmaep_id *ep, struct rdma_ep_connect *cmd)
{
	void *sent = ep->connect_data;
	int ret, err;

	ep->connect_error = false;
	ep->connect_data = NULL;
	ret = rdmaep_call(ep->ctx, RDMA_EP_CONNECT, cmd);
	err = errno;
	if (!ret || err == EAGAIN || err == EINTR)
		free(sent);	/* it is not sent twice */
	else
		ep->connect_data = sent;
	errno = err;
	return ret;
}

/**
 * rdmaep_connect_start() - begin to connect, and wait for nothing
 * @ep: the id
 * @param: as for rdma_connect()
 *
 * Return: 0, or -1 with errno.
 */
int rdmaep_connect_start(struct rdmaep_id *ep,
			 const struct rdma_conn_param *param)
{
	struct rdma_ep_connect cmd = {
		.hdr = RDMAEP_HDR(cmd),
		.ep = ep->handle,
	};
	struct conn_data data;

	if (connect_set(ep, &cmd, param, &data))
		return -1;
	return connect_send(ep, &cmd);
}

/**
 * rdmaep_connect_wait() - wait for what rdmaep_connect_start() has begun
 * @ep: the id, which is synchronous
 *
 * Return: as rdma_connect(), but that signals do not end it.
 */
int rdmaep_connect_wait(struct rdmaep_id *ep)
{
	struct rdma_ep_connect cmd = {
		.hdr = RDMAEP_HDR(cmd),
		.ep = ep->handle,
	};
	struct rdmaep_wait wait;
	int ret;

	if (rdmaep_wait_begin(&wait, ep, &cmd.hdr, &cmd.record_uptr,
			      &cmd.record_len))
		return -1;
	cmd.hdr.flags |= RDMA_EP_F_RESUME;
	do {
		ret = rdmaep_call(ep->ctx, RDMA_EP_CONNECT, &cmd);
	} while (ret && errno == EINTR);
	return rdmaep_wait_end(&wait, ep, ret);
}

/**
 * rdma_connect() - begin to connect to the resolved destination
 * @id: the id, whose route is resolved
 * @conn_param: parameters and private data, or NULL for the device's limits
 *
 * A synchronous id waits for the connection to be established. Follows
 * rdma_connect(3).
 *
 * Return: 0, or -1 with errno EINVAL (state, parameters, private data too
 * long: nothing was sent), and for a synchronous id ECONNREFUSED, ETIMEDOUT or
 * what else the attempt failed with.
 */
RDMAEP_API int rdma_connect(struct rdma_cm_id *id,
			    struct rdma_conn_param *conn_param)
{
	struct rdmaep_id *ep = to_rdmaep_id(id);
	struct rdma_ep_connect cmd = {
		.hdr = RDMAEP_HDR(cmd),
		.ep = ep->handle,
	};
	struct rdmaep_wait wait;
	struct conn_data data;

	if (connect_set(ep, &cmd, conn_param, &data))
		return -1;
	if (rdmaep_wait_begin(&wait, ep, &cmd.hdr, &cmd.record_uptr,
			      &cmd.record_len))
		return -1;

	/* Without a QP nobody wants its attributes. */
	if (!id->qp && cmd.record_len)
		cmd.record_len = offsetof(struct rdma_ep_record, info);
	return rdmaep_wait_end(&wait, ep, connect_send(ep, &cmd));
}

/**
 * rdma_listen() - listen for connection requests
 * @id: the id
 * @backlog: how many requests may wait; 0 or less for the largest
 *
 * Follows rdma_listen(3).
 *
 * Return: 0, or -1 with errno EINVAL, EADDRINUSE or ENOMEM.
 */
RDMAEP_API int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	struct rdmaep_id *ep = to_rdmaep_id(id);
	struct rdma_ep_record rec = { 0 };
	struct rdma_ep_listen cmd = {
		.hdr = RDMAEP_HDR(cmd),
		.ep = ep->handle,
		.backlog = backlog > 0 ? backlog : 0,
		.record_uptr = (uintptr_t)&rec,
		.record_len = sizeof(rec),
	};

	if (rdmaep_call(ep->ctx, RDMA_EP_LISTEN, &cmd))
		return -1;
	ep->listening = true;
	rdmaep_record_read(&rec);
	return rdmaep_id_update(ep, &rec);
}

static int qp_to_connected(struct rdmaep_id *ep)
{
	if (rdmaep_is_ud(ep) || !ep->id.qp)
		return 0;
	if (rdmaep_qp_to_rtr(ep, ep->responder_resources))
		return -1;
	return rdmaep_qp_to_rts(ep, ep->initiator_depth);
}

/**
 * rdma_accept() - accept a connection request
 * @id: the id that came with the request
 * @conn_param: parameters and private data; NULL, if the id has a QP, for what
 *	the peer asked and the device permits
 *
 * A synchronous id waits for the connection to be established. Follows
 * rdma_accept(3).
 *
 * Return: 0, or -1 with errno EINVAL, and for a synchronous id what the
 * attempt failed with.
 */
RDMAEP_API int rdma_accept(struct rdma_cm_id *id,
			   struct rdma_conn_param *conn_param)
{
	struct rdmaep_id *ep = to_rdmaep_id(id);
	struct rdma_ep_connect cmd = {
		.hdr = RDMAEP_HDR(cmd),
		.ep = ep->handle,
	};
	struct rdmaep_wait wait;
	struct conn_data data;
	int ret;

	if (check_param(ep, conn_param, false))
		return -1;

	if (!conn_param || conn_param->initiator_depth == RDMA_MAX_INIT_DEPTH)
		ep->initiator_depth = min_u8(ep->initiator_depth,
					     ep->dev->max_initiator_depth);
	else
		ep->initiator_depth = conn_param->initiator_depth;
	if (!conn_param || conn_param->responder_resources == RDMA_MAX_RESP_RES)
		ep->responder_resources =
			min_u8(ep->responder_resources,
			       ep->dev->max_responder_resources);
	else
		ep->responder_resources = conn_param->responder_resources;

	/* Before the QP changes */
	if (set_param(ep, &cmd.param, conn_param, ep->max_accept_data, &data))
		return -1;
	if (qp_to_connected(ep))
		return -1;
	set_ece(ep, &cmd.param);	/* the QP may have agreed to less */
	if (rdmaep_wait_begin(&wait, ep, &cmd.hdr, &cmd.record_uptr,
			      &cmd.record_len))
		return -1;

	ret = rdmaep_call(ep->ctx, RDMA_EP_ACCEPT, &cmd);
	if (ret && errno != EAGAIN && errno != EINTR)
		rdmaep_qp_to_err(ep);
	return rdmaep_wait_end(&wait, ep, ret);
}

static int call_establish(struct rdmaep_id *ep)
{
	struct rdma_ep_establish cmd = {
		.hdr = RDMAEP_HDR(cmd),
		.ep = ep->handle,
	};

	return rdmaep_call(ep->ctx, RDMA_EP_ESTABLISH, &cmd);
}

/**
 * rdmaep_establish_qp() - answer a connection response
 * @ep: the id, which has a QP
 *
 * If the QP cannot follow, the peer is told so.
 *
 * Return: 0, or -1 with errno from the QP's transitions or the call.
 */
int rdmaep_establish_qp(struct rdmaep_id *ep)
{
	struct rdma_ep_reject reject = {
		.hdr = RDMAEP_HDR(reject),
		.ep = ep->handle,
	};

	if (!rdmaep_qp_to_rtr(ep, -1) && !rdmaep_qp_to_rts(ep, -1) &&
	    !call_establish(ep))
		return 0;

	rdmaep_call_quiet(ep->ctx, RDMA_EP_REJECT, &reject);
	rdmaep_qp_to_err(ep);
	return -1;
}

/**
 * rdma_establish() - complete a connection whose QP the library does not have
 * @id: the id, after RDMA_CM_EVENT_CONNECT_RESPONSE
 *
 * Follows rdma_establish(3).
 *
 * Return: 0, or -1 with errno EINVAL (the id has a QP, or the state).
 */
RDMAEP_API int rdma_establish(struct rdma_cm_id *id)
{
	if (id->qp)
		return rdmaep_fail(EINVAL, RDMA_EP_REASON_STATE,
				   "the id has a QP: the library establishes the connection");
	return call_establish(to_rdmaep_id(id));
}

static int reject(struct rdma_cm_id *id, const void *private_data,
		  uint8_t private_data_len, uint32_t reason)
{
	struct rdmaep_id *ep = to_rdmaep_id(id);
	struct rdma_ep_reject cmd = {
		.hdr = RDMAEP_HDR(cmd),
		.ep = ep->handle,
		.reason = reason,
	};

	if (private_data && private_data_len) {
		if (ep->max_reject_data &&
		    private_data_len > ep->max_reject_data)
			return data_too_long(private_data_len,
					     ep->max_reject_data);
		cmd.private_data_uptr = (uintptr_t)private_data;
		cmd.private_data_len = private_data_len;
	}
	return rdmaep_call(ep->ctx, RDMA_EP_REJECT, &cmd);
}

/**
 * rdma_reject() - refuse a connection request
 * @id: the id that came with the request
 * @private_data: data for the peer, or NULL
 * @private_data_len: its length in bytes
 *
 * Follows rdma_reject(3).
 *
 * Return: 0, or -1 with errno EINVAL.
 */
RDMAEP_API int rdma_reject(struct rdma_cm_id *id, const void *private_data,
			   uint8_t private_data_len)
{
	return reject(id, private_data, private_data_len, 0);
}

/* IBTA reject reason: vendor option not supported */
#define REASON_ECE	35

/**
 * rdma_reject_ece() - refuse a connection request for its ECE options
 * @id: the id that came with the request
 * @private_data: data for the peer, or NULL
 * @private_data_len: its length in bytes
 *
 * Follows rdma_reject_ece(3).
 *
 * Return: 0, or -1 with errno EINVAL.
 */
RDMAEP_API int rdma_reject_ece(struct rdma_cm_id *id, const void *private_data,
			       uint8_t private_data_len)
{
	return reject(id, private_data, private_data_len, REASON_ECE);
}

/**
 * rdma_disconnect() - end a connection
 * @id: the id
 *
 * Moves the QP to the error state. Works as well if the peer went first. A
 * synchronous id waits for the end. Follows rdma_disconnect(3).
 *
 * Return: 0, or -1 with errno EINVAL if there never was a connection, nor an
 * attempt at one that is still under way; a synchronous id fails in that case, too.
 */
RDMAEP_API int rdma_disconnect(struct rdma_cm_id *id)
{
	struct rdmaep_id *ep = to_rdmaep_id(id);
	struct rdma_ep_disconnect cmd = {
		.hdr = RDMAEP_HDR(cmd),
		.ep = ep->handle,
	};
	struct rdmaep_wait wait;
	int ret;

	if (rdmaep_need_device(ep))
		return -1;
	if (rdmaep_ctx_is_parents(ep->ctx))
		return rdmaep_fail_parents();

	/* iWARP ends a stream by draining it. */
	if (ep->transport == RDMA_EP_TRANSPORT_IWARP)
		rdmaep_qp_to_sqd(ep);
	else
		rdmaep_qp_to_err(ep);

	if (rdmaep_wait_begin(&wait, ep, &cmd.hdr, &cmd.record_uptr,
			      &cmd.record_len))
		return -1;
	ret = rdmaep_wait_end(&wait, ep,
			      rdmaep_call(ep->ctx, RDMA_EP_DISCONNECT, &cmd));
	/* The removal of the device has ended the connection as well. */
	if (ret && errno == ENODEV && wait.evt && id->event &&
	    id->event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		return 0;
	return ret;
}

/**
 * rdma_notify() - pass on an asynchronous event of the QP
 * @id: the id
 * @event: IBV_EVENT_COMM_EST or IBV_EVENT_PATH_MIG
 *
 * Follows rdma_notify(3).
 *
 * Return: 0, or -1 with errno EINVAL.
 */
RDMAEP_API int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
	struct rdma_ep_notify cmd = {
		.hdr = RDMAEP_HDR(cmd),
		.ep = to_rdmaep_id(id)->handle,
		.event = event,
	};

	return rdmaep_call(to_rdmaep_id(id)->ctx, RDMA_EP_NOTIFY, &cmd);
}

/**
 * rdma_set_local_ece() - ECE options to send
 * @id: an id without QP
 * @ece: the options
 *
 * Follows rdma_set_local_ece(3).
 *
 * Return: 0, or -1 with errno EINVAL.
 */
RDMAEP_API int rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	if (!id || id->qp || !ece || !ece->vendor_id || ece->comp_mask)
		return rdmaep_fail_plain(EINVAL);

	to_rdmaep_id(id)->local_ece.vendor_id = ece->vendor_id;
	to_rdmaep_id(id)->local_ece.options = ece->options;
	return 0;
}

/**
 * rdma_get_remote_ece() - ECE options that the peer has sent
 * @id: an id without QP
 * @ece: where they go; zero if it has sent none
 *
 * Follows rdma_get_remote_ece(3).
 *
 * Return: 0, or -1 with errno EINVAL.
 */
RDMAEP_API int rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	if (!id || id->qp || !ece)
		return rdmaep_fail_plain(EINVAL);

	ece->vendor_id = to_rdmaep_id(id)->remote_ece.vendor_id;
	ece->options = to_rdmaep_id(id)->remote_ece.options;
	ece->comp_mask = 0;
	return 0;
}
