// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Queue pairs of ids: making them, with completion queues if the program gives
 * none, and moving them through their states.
 *
 * The attributes for INIT, RTR and RTS come along with the event records and
 * are kept in the id; the kernel is asked only for what did not come.
 */
#include <string.h>

#include "rdmaep-internal.h"

/*
 * Attributes
 */

static struct ib_uverbs_qp_attr *get_attr(struct rdmaep_id *ep, int which)
{
	uint32_t part = RDMA_EP_REC_INIT << which;
	struct rdma_ep_record rec = { 0 };
	struct rdma_ep_query cmd = {
		.hdr = RDMAEP_HDR(cmd),
		.ep = ep->handle,
		.parts = part,
		.record_uptr = (uintptr_t)&rec,
		.record_len = sizeof(rec),
	};

	if (ep->attr_parts & part)
		return &ep->attr[which];
	if (rdmaep_call(ep->ctx, RDMA_EP_QUERY, &cmd))
		return NULL;
	rdmaep_record_read(&rec);
	rdmaep_id_update(ep, &rec);
	return &ep->attr[which];
}

static int modify(struct ibv_qp *qp, struct ib_uverbs_qp_attr *kern)
{
	struct ibv_qp_attr attr;

	if (!kern)
		return -1;
	if (!kern->qp_attr_mask)	/* iWARP moves the QP by itself */
		return 0;
	memset(&attr, 0, sizeof(attr));
	ibv_copy_qp_attr_from_kern(&attr, kern);
	attr.qp_state = kern->qp_state;	/* which libibverbs leaves alone */
	return rdmaep_seterrno(ibv_modify_qp(qp, &attr, kern->qp_attr_mask));
}

static void modify_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int err = errno;

	/* It is on its way out; what can go wrong does not matter. */
	if (qp)
		ibv_modify_qp(qp, &attr, IBV_QP_STATE);
	errno = err;
}

static int qp_to_init(struct rdmaep_id *ep, struct ibv_qp *qp)
{
	struct ib_uverbs_qp_attr *init = get_attr(ep, RDMA_EP_ATTR_INIT);

	if (modify(qp, init))
		return -1;
	ep->init_access = init->qp_access_flags;
	return 0;
}

/**
 * rdmaep_qp_to_rtr() - make an id's QP ready to receive
 * @ep: the id, which has a QP
 * @responder_resources: to use instead of what was negotiated, or -1
 *
 * Return: 0, or -1 with errno.
 */
int rdmaep_qp_to_rtr(struct rdmaep_id *ep, int responder_resources)
{
	struct ib_uverbs_qp_attr *rtr = get_attr(ep, RDMA_EP_ATTR_RTR);
	struct ibv_qp *qp = ep->id.qp;
	struct ib_uverbs_qp_attr attr;
	uint32_t access;

	if (!rtr)
		return -1;
	/* One that the program has made by itself, and put into id->qp */
	if (qp->qp_num != ep->made_qp_num && qp_to_init(ep, qp))
		return -1;
	attr = *rtr;
	if (responder_resources >= 0)
		attr.max_dest_rd_atomic = responder_resources;

	/*
	 * What the peer may do depends on the parameters of the connection,
	 * which were not known when the QP went to INIT.
	 */
	access = ep->attr[RDMA_EP_ATTR_INIT].qp_access_flags;
	if (!(attr.qp_attr_mask & IBV_QP_ACCESS_FLAGS) &&
	    access != ep->init_access) {
		attr.qp_access_flags = access;
		attr.qp_attr_mask |= IBV_QP_ACCESS_FLAGS;
	}

	if (ep->remote_ece.vendor_id) {
		/* EOPNOTSUPP: then the QP goes without. */
		if (!ibv_set_ece(qp, &ep->remote_ece))
			ibv_query_ece(qp, &ep->local_ece);
	}
	return modify(qp, &attr);
}

/**
 * rdmaep_qp_to_rts() - make an id's QP ready to send
 * @ep: the id, which has a QP
 * @initiator_depth: to use instead of what was negotiated, or -1
 *
 * Return: 0, or -1 with errno.
 */
int rdmaep_qp_to_rts(struct rdmaep_id *ep, int initiator_depth)
{
	struct ib_uverbs_qp_attr *rts = get_attr(ep, RDMA_EP_ATTR_RTS);
	struct ib_uverbs_qp_attr attr;

	if (!rts)
		return -1;
	attr = *rts;
	if (initiator_depth >= 0)
		attr.max_rd_atomic = initiator_depth;
	return modify(ep->id.qp, &attr);
}

/**
 * rdmaep_qp_to_err() - flush an id's QP, if it has one
 * @ep: the id
 */
void rdmaep_qp_to_err(struct rdmaep_id *ep)
{
	modify_state(ep->id.qp, IBV_QPS_ERR);
}

/**
 * rdmaep_qp_to_sqd() - drain an id's QP, if it has one
 * @ep: the id
 */
void rdmaep_qp_to_sqd(struct rdmaep_id *ep)
{
	modify_state(ep->id.qp, IBV_QPS_SQD);
}

/**
 * rdma_init_qp_attr() - attributes for moving a QP that the library has not
 * @id: the id
 * @qp_attr: qp_state says to which state; receives the attributes
 * @qp_attr_mask: receives which of them to pass to ibv_modify_qp(3)
 *
 * Follows rdma_init_qp_attr(3).
 *
 * Return: 0, or -1 with errno EINVAL if the id's state does not permit it.
 */
RDMAEP_API int rdma_init_qp_attr(struct rdma_cm_id *id,
				 struct ibv_qp_attr *qp_attr,
				 int *qp_attr_mask)
{
	struct ib_uverbs_qp_attr attr;
	struct rdma_ep_init_qp_attr cmd = {
		.hdr = RDMAEP_HDR(cmd),
		.ep = to_rdmaep_id(id)->handle,
		.attr_uptr = (uintptr_t)&attr,
	};

	if (!qp_attr || !qp_attr_mask)
		return rdmaep_fail_plain(EINVAL);

	memset(&attr, 0, sizeof(attr));
	cmd.qp_state = qp_attr->qp_state;
	if (rdmaep_call(to_rdmaep_id(id)->ctx, RDMA_EP_INIT_QP_ATTR, &cmd))
		return -1;
	ibv_copy_qp_attr_from_kern(qp_attr, &attr);
	*qp_attr_mask = attr.qp_attr_mask;
	return 0;
}

/*
 * Completion queues
 */

/*
 * Descriptors and locked memory of queues that nobody uses must not be what is
 * missing.
 */

static struct ibv_comp_channel *comp_channel_create(struct rdmaep_id *ep)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(ep->id.verbs);

	if (!channel && rdmaep_cqs_flush(ep->dev))
		channel = ibv_create_comp_channel(ep->id.verbs);
	return channel;
}

static struct ibv_cq *cq_new(struct rdmaep_id *ep, uint32_t size,
			     struct ibv_comp_channel *channel)
{
	struct ibv_cq *cq = ibv_create_cq(ep->id.verbs, size, &ep->id, channel, 0);

	if (!cq && rdmaep_cqs_flush(ep->dev))
		cq = ibv_create_cq(ep->id.verbs, size, &ep->id, channel, 0);
	return cq;
}

static struct ibv_qp *qp_new(struct rdmaep_id *ep,
			     struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp *qp = ibv_create_qp_ex(ep->id.verbs, attr);

	if (!qp && rdmaep_cqs_flush(ep->dev))
		qp = ibv_create_qp_ex(ep->id.verbs, attr);
	return qp;
}

/* One completion queue with a completion channel of its own */
static int cq_create(struct rdmaep_id *ep, uint32_t size,
		     struct ibv_comp_channel **channel, struct ibv_cq **cq,
		     struct rdmaep_made_cq *made)
{
	*cq = rdmaep_cq_take(ep->dev, size, &ep->id);
	if (*cq) {
		*channel = (*cq)->channel;
	} else {
		*channel = comp_channel_create(ep);
		if (!*channel)
			return rdmaep_fail_plain(errno);
		*cq = cq_new(ep, size, *channel);
	}
	made->cq = *cq;
	made->size = size;
	return *cq ? 0 : rdmaep_fail_plain(errno);
}

/* What the id has now is not for the next one; what is parked is still. */
static void cqs_not_kept(struct rdmaep_id *ep)
{
	if (!ep->made_send.parked)
		ep->made_send.cq = NULL;
	if (!ep->made_recv.parked)
		ep->made_recv.cq = NULL;
}

/**
 * rdmaep_cqs_create() - make completion queues for an id
 * @id: the id, bound to a device
 * @send: entries of the send CQ, 0 for none
 * @recv: entries of the receive CQ, 0 for none
 *
 * Return: 0, or -1 with errno; nothing is left behind then.
 */
int rdmaep_cqs_create(struct rdma_cm_id *id, uint32_t send, uint32_t recv)
{
	struct rdmaep_id *ep = to_rdmaep_id(id);

	if (recv && cq_create(ep, recv, &id->recv_cq_channel, &id->recv_cq,
			      &ep->made_recv))
		goto err;
	if (send && cq_create(ep, send, &id->send_cq_channel, &id->send_cq,
			      &ep->made_send))
		goto err;
	return 0;
err:
	rdmaep_cqs_destroy(id);
	return -1;
}

/**
 * rdmaep_cqs_destroy() - destroy the completion queues of an id
 * @id: the id
 *
 * Does not change errno.
 */
void rdmaep_cqs_destroy(struct rdma_cm_id *id)
{
	struct rdmaep_id *ep = to_rdmaep_id(id);
	int err = errno;

	/* They belong to the SRQ. */
	if (id->qp_type == IBV_QPT_XRC_RECV && id->srq)
		return;

	if (id->send_cq && id->send_cq != id->recv_cq)
		ibv_destroy_cq(id->send_cq);
	if (id->recv_cq)
		ibv_destroy_cq(id->recv_cq);
	id->send_cq = NULL;
	id->recv_cq = NULL;
	cqs_not_kept(ep);

	if (id->send_cq_channel && id->send_cq_channel != id->recv_cq_channel)
		ibv_destroy_comp_channel(id->send_cq_channel);
	if (id->recv_cq_channel)
		ibv_destroy_comp_channel(id->recv_cq_channel);
	id->send_cq_channel = NULL;
	id->recv_cq_channel = NULL;
	errno = err;
}

/*
 * Queue pairs
 */

/* A datagram QP is ready at once, a connected one when it is connected. */
static int qp_init(struct rdmaep_id *ep, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR };

	if (qp_to_init(ep, qp))
		return -1;
	if (!rdmaep_is_ud(ep))
		return 0;

	if (rdmaep_seterrno(ibv_modify_qp(qp, &attr, IBV_QP_STATE)))
		return -1;
	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = 0;
	return rdmaep_seterrno(ibv_modify_qp(qp, &attr,
					     IBV_QP_STATE | IBV_QP_SQ_PSN));
}

/*
 * Only a queue that no QP can overflow is as good as new afterwards. What comes
 * from an SRQ has no limit of the QP's.
 */
static void cqs_check(struct rdmaep_id *ep, const struct ibv_qp_cap *cap,
		      const struct ibv_srq *srq)
{
	if (ep->made_send.cq && cap->max_send_wr > ep->made_send.cq->cqe)
		ep->made_send.cq = NULL;
	if (ep->made_recv.cq && (srq || cap->max_recv_wr > ep->made_recv.cq->cqe))
		ep->made_recv.cq = NULL;
}

static int qp_check(struct rdmaep_id *ep, struct ibv_qp_init_attr_ex *attr)
{
	struct rdma_cm_id *id = &ep->id;

	if (id->qp)
		return rdmaep_fail(EINVAL, RDMA_EP_REASON_STATE,
				   "the id has a QP already");
	if (rdmaep_need_device(ep))
		return -1;
	if (!attr->pd || attr->pd->context != id->verbs)
		return rdmaep_fail(EINVAL, RDMA_EP_REASON_VALUE,
				   "the protection domain is of another device");
	if ((id->recv_cq && attr->recv_cq && id->recv_cq != attr->recv_cq) ||
	    (id->send_cq && attr->send_cq && id->send_cq != attr->send_cq))
		return rdmaep_fail(EINVAL, RDMA_EP_REASON_VALUE,
				   "the id has other completion queues already");
	return 0;
}

static void use_cqs_of_id(struct ibv_qp_init_attr_ex *attr, const struct rdma_cm_id *id)
{
	if (!attr->send_cq)
		attr->send_cq = id->send_cq;
	if (!attr->recv_cq)
		attr->recv_cq = id->recv_cq;
}

/*
 * A queue of no length gets the CQ of the other: libibverbs and its drivers look
 * at both. XRC QPs have but one, or none.
 */
static int qp_give_cqs(struct rdmaep_id *ep, struct ibv_qp_init_attr_ex *attr)
{
	struct rdma_cm_id *id = &ep->id;
	bool xrc = id->qp_type == IBV_QPT_XRC_SEND ||
		   id->qp_type == IBV_QPT_XRC_RECV;
	uint32_t send, recv;

	rdmaep_cq_share(attr->send_cq);
	rdmaep_cq_share(attr->recv_cq);
	use_cqs_of_id(attr, id);
	send = attr->send_cq ? 0 : attr->cap.max_send_wr;
	recv = attr->recv_cq ? 0 : attr->cap.max_recv_wr;
	if (!xrc && !attr->send_cq && !send && !attr->recv_cq && !recv)
		recv = 1;
	if (rdmaep_cqs_create(id, send, recv))
		return -1;
	use_cqs_of_id(attr, id);
	if (xrc || (attr->send_cq && attr->recv_cq))
		return 0;
	/* One that serves both is not kept for the next id. */
	cqs_not_kept(ep);
	if (!attr->send_cq)
		attr->send_cq = attr->recv_cq;
	else
		attr->recv_cq = attr->send_cq;
	return 0;
}

/**
 * rdma_create_qp_ex() - make a QP for an id
 * @id: the id, bound to a device
 * @attr: attributes; receives those that were chosen. The id's own PD, CQs,
 *	SRQ and XRC domain stand in for what it leaves out.
 *
 * Follows rdma_create_qp(3).
 *
 * Return: 0, or -1 with errno EINVAL or from libibverbs.
 */
RDMAEP_API int rdma_create_qp_ex(struct rdma_cm_id *id,
				 struct ibv_qp_init_attr_ex *attr)
{
	struct rdmaep_id *ep = to_rdmaep_id(id);
	struct ibv_cq *send_cq = attr->send_cq, *recv_cq = attr->recv_cq;
	struct ibv_ece ece = { 0 };
	struct ibv_qp *qp;

	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd) {
		attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
		attr->pd = id->pd;
	}
	if (qp_check(ep, attr))
		return -1;

	if (id->qp_type == IBV_QPT_XRC_RECV &&
	    (!(attr->comp_mask & IBV_QP_INIT_ATTR_XRCD) || !attr->xrcd)) {
		attr->xrcd = rdmaep_device_xrcd(ep->dev);
		if (!attr->xrcd)
			return -1;
		attr->comp_mask |= IBV_QP_INIT_ATTR_XRCD;
	}

	if (qp_give_cqs(ep, attr))
		goto give_back;
	if (id->srq && !attr->srq)
		attr->srq = id->srq;

	qp = qp_new(ep, attr);
	if (!qp) {
		rdmaep_fail_plain(errno);
		goto destroy_cqs;
	}
	cqs_check(ep, &attr->cap, attr->srq);
	if (qp_init(ep, qp))
		goto destroy_qp;
	if (!ibv_query_ece(qp, &ece)) {
		ep->local_ece.vendor_id = ece.vendor_id;
		ep->local_ece.options = ece.options;
	}

	id->pd = qp->pd;
	id->qp = qp;
	ep->made_qp_num = qp->qp_num;
	rdmaep_groups_attach(ep);
	return 0;

destroy_qp:
	{
		int err = errno;

		ibv_destroy_qp(qp);
		errno = err;
	}
destroy_cqs:
	rdmaep_cqs_destroy(id);
give_back:
	/* Whoever tries again with less gets new ones. */
	attr->send_cq = send_cq;
	attr->recv_cq = recv_cq;
	return -1;
}

/**
 * rdma_create_qp() - make a QP for an id
 * @id: the id, bound to a device
 * @pd: protection domain, or NULL for the device's default
 * @qp_init_attr: attributes; receives those that were chosen
 *
 * Follows rdma_create_qp(3).
 *
 * Return: 0, or -1 with errno EINVAL or from libibverbs.
 */
RDMAEP_API int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd,
			      struct ibv_qp_init_attr *qp_init_attr)
{
	struct ibv_qp_init_attr_ex attr;
	int ret;

	/* The one is the beginning of the other. */
	memset(&attr, 0, sizeof(attr));
	memcpy(&attr, qp_init_attr, sizeof(*qp_init_attr));
	attr.comp_mask = IBV_QP_INIT_ATTR_PD;
	attr.pd = pd ? pd : id->pd;
	ret = rdma_create_qp_ex(id, &attr);
	memcpy(qp_init_attr, &attr, sizeof(*qp_init_attr));
	return ret;
}

/**
 * rdmaep_qp_destroy() - destroy the QP of an id
 * @ep: the id, which has a QP
 * @last: the id is destroyed next: its completion queues are parked in it
 */
void rdmaep_qp_destroy(struct rdmaep_id *ep, bool last)
{
	int err;

	if (rdmaep_ctx_is_parents(ep->ctx)) {
		ep->id.qp = NULL;
		return;
	}
	rdmaep_groups_detach(ep);
	err = ibv_destroy_qp(ep->id.qp);
	ep->id.qp = NULL;
	ep->made_qp_num = 0;
	/* EBUSY if the program has attached it to a group by itself: it lives on. */
	if (last && !err)
		rdmaep_cqs_park(ep);
	rdmaep_cqs_destroy(&ep->id);
}

/**
 * rdma_destroy_qp() - destroy the QP of an id
 * @id: the id
 *
 * Detaches it from the groups it is in before. Follows rdma_destroy_qp(3).
 */
RDMAEP_API void rdma_destroy_qp(struct rdma_cm_id *id)
{
	if (id->qp)
		rdmaep_qp_destroy(to_rdmaep_id(id), false);
}
