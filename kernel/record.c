// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Records: the one form in which events and answers reach user space. Every
 * record starts zeroed, and ends with its last part.
 */
#include <linux/pagemap.h>
#include <linux/uaccess.h>
#include <rdma/ib.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cm.h>
#include <rdma/ib_marshall.h>

#include "private.h"

/* IBTA annex A11: what rdma_cm puts before the private data of a request. */
#define RDMA_EP_IP_CM_HDR 36
/* struct rdma_conn_param has one byte for the length. */
#define RDMA_EP_IWARP_DATA 255

/**
 * rdma_ep_max_data - how much private data fits
 * @id: the id
 * @op: RDMA_EP_OP_CONNECT, RDMA_EP_OP_ACCEPT, or RDMA_EP_OP_NONE for reject
 *
 * Return: bytes, 0 while the id is not bound to a device.
 */
unsigned int rdma_ep_max_data(struct rdma_cm_id *id, enum rdma_ep_op op)
{
	bool ud = id->qp_type == IB_QPT_UD;
	unsigned int hdr;

	if (!id->device)
		return 0;
	if (!rdma_cap_ib_cm(id->device, id->port_num))
		return RDMA_EP_IWARP_DATA;

	switch (op) {
	case RDMA_EP_OP_CONNECT:
		hdr = id->route.addr.src_addr.ss_family == AF_IB ? 0 : RDMA_EP_IP_CM_HDR;
		return (ud ? IB_CM_SIDR_REQ_PRIVATE_DATA_SIZE : IB_CM_REQ_PRIVATE_DATA_SIZE) - hdr;
	case RDMA_EP_OP_ACCEPT:
		return ud ? IB_CM_SIDR_REP_PRIVATE_DATA_SIZE : IB_CM_REP_PRIVATE_DATA_SIZE;
	default:
		return ud ? IB_CM_SIDR_REP_PRIVATE_DATA_SIZE : IB_CM_REJ_PRIVATE_DATA_SIZE;
	}
}

static void rdma_ep_fill_addr(struct rdma_ep_addr *dst, const struct sockaddr_storage *src)
{
	dst->len = rdma_addr_size((const struct sockaddr *)src);
	memcpy(dst->sa, src, dst->len);
}

static u8 rdma_ep_transport(struct ib_device *device, u32 port_num)
{
	if (rdma_protocol_roce(device, port_num))
		return RDMA_EP_TRANSPORT_ROCE;
	if (rdma_protocol_iwarp(device, port_num))
		return RDMA_EP_TRANSPORT_IWARP;
	return RDMA_EP_TRANSPORT_IB;
}

static void rdma_ep_fill_gids(struct rdma_ep_info *info, struct rdma_cm_id *id)
{
	struct sockaddr_ib *src = (struct sockaddr_ib *)&id->route.addr.src_addr;
	struct sockaddr_ib *dst = (struct sockaddr_ib *)&id->route.addr.dst_addr;

	/* An InfiniBand address has the GID in it; of others rdma_cm knows it. */
	if (src->sib_family == AF_IB) {
		memcpy(info->sgid, &src->sib_addr, sizeof(info->sgid));
		memcpy(info->dgid, &dst->sib_addr, sizeof(info->dgid));
	} else {
		rdma_read_gids(id, (union ib_gid *)info->sgid,
			       info->dst.len ? (union ib_gid *)info->dgid : NULL);
	}
}

static void rdma_ep_fill_device(struct rdma_ep_info *info, struct rdma_cm_id *id)
{
	info->node_guid = id->device->node_guid;
	info->device_index = id->device->index;
	info->port_num = id->port_num;
	info->transport = rdma_ep_transport(id->device, id->port_num);
	info->pkey = cpu_to_be16(ib_addr_get_pkey(&id->route.addr.dev_addr));
	info->max_connect_data = rdma_ep_max_data(id, RDMA_EP_OP_CONNECT);
	info->max_accept_data = rdma_ep_max_data(id, RDMA_EP_OP_ACCEPT);
	info->max_reject_data = rdma_ep_max_data(id, RDMA_EP_OP_NONE);
	rdma_ep_fill_gids(info, id);
}

static void rdma_ep_fill_paths(struct rdma_ep_info *info, struct rdma_cm_id *id)
{
	int i;

	/* While they are looked up, the answer may be written to them. */
	if (info->state == RDMA_EP_STATE_RESOLVING_ROUTE || !id->route.path_rec)
		return;
	info->num_paths = id->route.num_pri_alt_paths;
	for (i = 0; i < min_t(int, info->num_paths, RDMA_EP_MAX_PATHS); i++)
		ib_copy_path_rec_to_user(&info->path[i], &id->route.path_rec[i]);
}

/* What is known even if there is no id any more. */
static void rdma_ep_fill_state(struct rdma_ep_info *info, struct rdma_ep *ep)
{
	spin_lock(&ep->ctx->ev_lock);
	info->state = ep->state;
	info->backlog = ep->backlog;
	info->requests = ep->requests;
	info->overflows = ep->overflows;
	spin_unlock(&ep->ctx->ev_lock);
}

static void rdma_ep_fill_info(struct rdma_ep_info *info, struct rdma_ep *ep, struct rdma_cm_id *id)
{
	struct rdma_addr *addr = &id->route.addr;

	rdma_ep_fill_state(info, ep);
	rdma_ep_fill_addr(&info->src, &addr->src_addr);
	info->src_sid = rdma_get_service_id(id, (struct sockaddr *)&addr->src_addr);
	/* Binding gives the destination a family, but no address. */
	if (info->state != RDMA_EP_STATE_BOUND && info->state != RDMA_EP_STATE_LISTENING) {
		rdma_ep_fill_addr(&info->dst, &addr->dst_addr);
		info->dst_sid = rdma_get_service_id(id, (struct sockaddr *)&addr->dst_addr);
	}
	info->ifindex = addr->dev_addr.bound_dev_if;
	if (id->device)
		rdma_ep_fill_device(info, id);
	rdma_ep_fill_paths(info, id);
}

/* RTR and RTS are about a peer: before it is known rdma_cm answers with INIT's. */
static bool rdma_ep_attr_known(const struct rdma_ep *ep, enum ib_qp_state qp_state)
{
	if (qp_state == IB_QPS_INIT)
		return true;
	if (ep->qp_type == IB_QPT_UD)
		return false;
	switch (READ_ONCE(ep->state)) {
	case RDMA_EP_STATE_REQUESTED:
	case RDMA_EP_STATE_RESPONDED:
	case RDMA_EP_STATE_ACCEPTING:
	case RDMA_EP_STATE_CONNECTED:
		return true;
	default:
		return false;
	}
}

static int rdma_ep_fill_attr(struct ib_uverbs_qp_attr *dst, struct rdma_cm_id *id,
			     enum ib_qp_state state)
{
	struct ib_qp_attr attr = { .qp_state = state };
	int mask = 0;
	int ret;

	if (!id->device)
		return -EINVAL;
	ret = rdma_init_qp_attr(id, &attr, &mask);
	if (ret)
		return ret;
	ib_copy_qp_attr_to_user(id->device, dst, &attr);
	dst->qp_attr_mask = mask;
	return 0;
}

/*
 * Fill the parts that the endpoint's id knows. With @must, one that cannot be
 * had is an error; otherwise it is left out.
 */
static int rdma_ep_fill_parts(struct rdma_ep_record *rec, struct rdma_ep *ep, u32 parts, bool must)
{
	static const enum ib_qp_state states[RDMA_EP_ATTRS] = { IB_QPS_INIT, IB_QPS_RTR,
								IB_QPS_RTS };
	struct rdma_cm_id *id;
	int ret = 0;
	int i;

	mutex_lock(&ep->lock);
	id = ep->id;
	if (!id) {
		/* One who asks for no more is told what became of it. */
		if (must && parts == RDMA_EP_REC_INFO) {
			rdma_ep_fill_state(&rec->info, ep);
			rec->flags |= RDMA_EP_REC_INFO;
		} else {
			ret = -ENODEV;
		}
		goto unlock;
	}

	rdma_lock_handler(id);
	if (parts & RDMA_EP_REC_INFO) {
		rdma_ep_fill_info(&rec->info, ep, id);
		rec->flags |= RDMA_EP_REC_INFO;
	}
	for (i = 0; i < RDMA_EP_ATTRS; i++) {
		if (!(parts & (RDMA_EP_REC_INIT << i)))
			continue;
		ret = -EINVAL;
		if (rdma_ep_attr_known(ep, states[i]))
			ret = rdma_ep_fill_attr(&rec->attr[i], id, states[i]);
		if (!ret)
			rec->flags |= RDMA_EP_REC_INIT << i;
		else if (must)
			break;
		ret = 0;
	}
	rdma_unlock_handler(id);
unlock:
	mutex_unlock(&ep->lock);
	return ret;
}

/* Where a record with these parts ends. */
static size_t rdma_ep_record_size(u32 parts)
{
	if (parts & RDMA_EP_REC_RTS)
		return offsetof(struct rdma_ep_record, attr[RDMA_EP_ATTR_RTS + 1]);
	if (parts & RDMA_EP_REC_RTR)
		return offsetof(struct rdma_ep_record, attr[RDMA_EP_ATTR_RTR + 1]);
	if (parts & RDMA_EP_REC_INIT)
		return offsetof(struct rdma_ep_record, attr[RDMA_EP_ATTR_INIT + 1]);
	if (parts & RDMA_EP_REC_INFO)
		return offsetof(struct rdma_ep_record, attr);
	if (parts & RDMA_EP_REC_DATA)
		return offsetof(struct rdma_ep_record, info);
	return offsetof(struct rdma_ep_record, private_data);
}

/* What the reader of an event would otherwise have to ask for. */
static u32 rdma_ep_event_parts(const struct rdma_ep_taken *t)
{
	u32 attrs = RDMA_EP_REC_RTR | RDMA_EP_REC_RTS;

	/* Datagram QPs go to RTR and RTS without attributes of a connection. */
	if (t->ep->qp_type == IB_QPT_UD)
		attrs = 0;

	switch (t->type) {
	case RDMA_EP_EVENT_ADDR_RESOLVED:
	case RDMA_EP_EVENT_ROUTE_RESOLVED:
		return RDMA_EP_REC_INFO | RDMA_EP_REC_INIT;
	case RDMA_EP_EVENT_CONNECT_REQUEST:
		return RDMA_EP_REC_INFO | RDMA_EP_REC_INIT | attrs;
	case RDMA_EP_EVENT_CONNECT_RESPONSE:
		/* Only now it is known what the peer may do. */
		return attrs ? attrs | RDMA_EP_REC_INIT : 0;
	default:
		return 0;
	}
}

static void rdma_ep_fill_more(struct rdma_ep_record *rec, const struct rdma_ep_event_more *more)
{
	rec->flags = more->flags;
	rec->arg = more->arg;
	rec->qp_num = more->param.qp_num;
	rec->qkey = more->param.qkey;
	rec->responder_resources = more->param.responder_resources;
	rec->initiator_depth = more->param.initiator_depth;
	rec->flow_control = more->param.flow_control;
	rec->retry_count = more->param.retry_count;
	rec->rnr_retry_count = more->param.rnr_retry_count;
	rec->srq = more->param.srq;
	rec->ece_vendor_id = more->ece.vendor_id;
	rec->ece_attr_mod = more->ece.attr_mod;
	rec->ah = more->ah;
	rec->private_data_len = more->param.private_data_len;
	memcpy(rec->private_data, more->data, more->param.private_data_len);
}

/* Which parts besides private data have room, whole, in a record of that length. */
static u32 rdma_ep_parts_within(u32 len)
{
	u32 parts = 0;
	int i;

	if (len >= offsetofend(struct rdma_ep_record, info))
		parts |= RDMA_EP_REC_INFO;
	for (i = 0; i < RDMA_EP_ATTRS; i++)
		if (len >= offsetof(struct rdma_ep_record, attr[i + 1]))
			parts |= RDMA_EP_REC_INIT << i;
	return parts;
}

/**
 * rdma_ep_record_from_event - fill the record of an event
 * @rec: the record, overwritten as far as its size says
 * @t: the event
 * @len: room that the user has for it
 *
 * May sleep, and takes rdma_ep::lock. If the device has gone meanwhile, the
 * record says less.
 */
void rdma_ep_record_from_event(struct rdma_ep_record *rec, struct rdma_ep_taken *t, u32 len)
{
	struct rdma_ep_event_more *more = NULL;
	struct rdma_ep *child = rdma_ep_event_child(t);
	u32 parts = rdma_ep_event_parts(t) & rdma_ep_parts_within(len);

	if (t->ev->more)
		more = container_of(t->ev, struct rdma_ep_event_more, ev);
	/* As far as it can go: zeroing it all is what most events would cost. */
	memset(rec, 0, rdma_ep_record_size(parts | (more ? more->flags : 0)));
	rec->type = t->type;
	rec->ep = t->ep->handle;
	rec->status = t->status;
	rec->cookie = t->ep->cookie;
	rec->serial = t->ep->serial;
	rec->time_ns = t->time_ns;
	if (more)
		rdma_ep_fill_more(rec, more);
	else if (t->ep->conn && t->ev == &t->ep->conn->outcome)
		rec->flags |= RDMA_EP_REC_NO_DATA;
	if (child) {
		rec->child = child->handle;
		rec->child_serial = child->serial;
	}
	if (parts)
		rdma_ep_fill_parts(rec, child ?: t->ep, parts, false);
	rec->size = rdma_ep_record_size(rec->flags);
}

/**
 * rdma_ep_record_check - check where a record is to go
 * @call: the call
 * @uptr: user address, 0 for nowhere
 * @len: bytes there
 *
 * Done before anything is started, so that a bad address changes nothing.
 *
 * Return: 0, -EINVAL or -EFAULT.
 */
int rdma_ep_record_check(struct rdma_ep_call *call, u64 uptr, u32 len)
{
	if (uptr && len < offsetof(struct rdma_ep_record, private_data))
		return rdma_ep_fail(call, -EINVAL, RDMA_EP_REASON_STRUCT,
				    "%u bytes for a record, the shortest has %zu", len,
				    offsetof(struct rdma_ep_record, private_data));
	if (uptr && fault_in_writeable(u64_to_user_ptr(uptr),
				       min_t(u32, len, sizeof(struct rdma_ep_record))))
		return rdma_ep_fail(call, -EFAULT, RDMA_EP_REASON_NONE,
				    "bad address of the record");
	return 0;
}

int rdma_ep_record_to_user(const struct rdma_ep_record *rec, u64 uptr, u32 len)
{
	if (uptr && copy_to_user(u64_to_user_ptr(uptr), rec, min(rec->size, len)))
		return -EFAULT;
	return 0;
}

/**
 * rdma_ep_record_answer - answer a command with a record
 * @call: the call
 * @ep: the endpoint, not locked
 * @parts: RDMA_EP_REC_INFO, _INIT, _RTR, _RTS
 * @must: whether a part that cannot be had is an error
 * @uptr: user address, 0 for nowhere
 * @len: bytes there
 *
 * Return: 0 or a negative errno.
 */
int rdma_ep_record_answer(struct rdma_ep_call *call, struct rdma_ep *ep, u32 parts, bool must,
			  u64 uptr, u32 len)
{
	struct rdma_ep_record rec;
	int ret;

	if (!uptr)
		return 0;
	memset(&rec, 0, rdma_ep_record_size(parts));
	rec.type = RDMA_EP_EVENT_NONE;
	rec.ep = ep->handle;
	rec.cookie = ep->cookie;
	rec.serial = ep->serial;

	ret = parts ? rdma_ep_fill_parts(&rec, ep, parts, must) : 0;
	if (ret == -ENODEV)
		return rdma_ep_fail_no_id(call, ep);
	if (ret)
		return rdma_ep_fail_state(call, ep, "give these attributes");
	rec.size = rdma_ep_record_size(rec.flags);
	return rdma_ep_record_to_user(&rec, uptr, len);
}

int rdma_ep_query(struct rdma_ep_call *call)
{
	struct rdma_ep_query *cmd = call->cmd;
	struct rdma_ep *ep;
	u32 unknown;
	int ret;

	unknown = cmd->parts &
		  ~(RDMA_EP_REC_INFO | RDMA_EP_REC_INIT | RDMA_EP_REC_RTR | RDMA_EP_REC_RTS);
	if (unknown)
		return rdma_ep_fail(call, -EOPNOTSUPP, RDMA_EP_REASON_STRUCT, "unknown parts %#x",
				    unknown);
	ret = rdma_ep_record_check(call, cmd->record_uptr, cmd->record_len);
	if (ret)
		return ret;
	ep = rdma_ep_get(call, cmd->ep);
	if (IS_ERR(ep))
		return PTR_ERR(ep);
	ret = rdma_ep_record_answer(call, ep, cmd->parts, true, cmd->record_uptr, cmd->record_len);
	rdma_ep_put(ep);
	return ret;
}

int rdma_ep_init_qp_attr(struct rdma_ep_call *call)
{
	struct rdma_ep_init_qp_attr *cmd = call->cmd;
	struct ib_uverbs_qp_attr attr = {};
	struct rdma_ep *ep;
	int ret;

	if (cmd->qp_state > IB_QPS_ERR)
		return rdma_ep_fail(call, -EINVAL, RDMA_EP_REASON_VALUE, "there is no QP state %u",
				    cmd->qp_state);
	ep = rdma_ep_get(call, cmd->ep);
	if (IS_ERR(ep))
		return PTR_ERR(ep);

	mutex_lock(&ep->lock);
	if (ep->id) {
		rdma_lock_handler(ep->id);
		ret = rdma_ep_fill_attr(&attr, ep->id, cmd->qp_state);
		rdma_unlock_handler(ep->id);
		if (ret)
			rdma_ep_fail_state(call, ep, "give these attributes");
	} else {
		ret = rdma_ep_fail_no_id(call, ep);
	}
	mutex_unlock(&ep->lock);

	if (!ret && copy_to_user(u64_to_user_ptr(cmd->attr_uptr), &attr, sizeof(attr)))
		ret = -EFAULT;
	rdma_ep_put(ep);
	return ret;
}
