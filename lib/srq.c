// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Shared receive queues of ids, plain and of extended reliable connections.
 */
#include <string.h>

#include <rdma/rdma_verbs.h>

#include "rdmaep-internal.h"

static int srq_set_xrc(struct rdmaep_id *ep, struct ibv_srq_init_attr_ex *attr)
{
	struct rdma_cm_id *id = &ep->id;

	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_XRCD) || !attr->xrcd) {
		attr->xrcd = rdmaep_device_xrcd(ep->dev);
		if (!attr->xrcd)
			return -1;
	}
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ) || !attr->cq) {
		if (rdmaep_cqs_create(id, 0, attr->attr.max_wr))
			return -1;
		attr->cq = id->recv_cq;
	} else {
		rdmaep_cq_share(attr->cq);
	}
	attr->comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	return 0;
}

/**
 * rdma_create_srq_ex() - make a shared receive queue for an id
 * @id: the id, bound to a device
 * @attr: attributes; the id's own PD, XRC domain and CQ stand in for what it
 *	leaves out
 *
 * Follows rdma_create_srq(3).
 *
 * Return: 0, or -1 with errno EINVAL or from libibverbs.
 */
RDMAEP_API int rdma_create_srq_ex(struct rdma_cm_id *id,
				  struct ibv_srq_init_attr_ex *attr)
{
	struct rdmaep_id *ep = to_rdmaep_id(id);
	struct ibv_srq *srq;

	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) || id->srq)
		return rdmaep_fail_plain(EINVAL);
	if (rdmaep_need_device(ep))
		return -1;

	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd) {
		attr->pd = id->pd;
		attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
	}
	if (attr->srq_type == IBV_SRQT_XRC && srq_set_xrc(ep, attr))
		return -1;

	srq = ibv_create_srq_ex(id->verbs, attr);
	if (!srq) {
		rdmaep_fail_plain(errno);
		if (attr->srq_type == IBV_SRQT_XRC)
			rdmaep_cqs_destroy(id);
		return -1;
	}
	if (!id->pd)
		id->pd = attr->pd;
	id->srq = srq;
	return 0;
}

/**
 * rdma_create_srq() - make a shared receive queue for an id
 * @id: the id, bound to a device
 * @pd: protection domain, or NULL for the device's default
 * @attr: attributes; receives those that were chosen
 *
 * Follows rdma_create_srq(3).
 *
 * Return: 0, or -1 with errno EINVAL or from libibverbs.
 */
RDMAEP_API int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd,
			       struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex attr_ex;
	int ret;

	/* The one is the beginning of the other. */
	memset(&attr_ex, 0, sizeof(attr_ex));
	memcpy(&attr_ex, attr, sizeof(*attr));
	attr_ex.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
	attr_ex.srq_type = id->qp_type == IBV_QPT_XRC_RECV ? IBV_SRQT_XRC :
							     IBV_SRQT_BASIC;
	attr_ex.pd = pd;
	ret = rdma_create_srq_ex(id, &attr_ex);
	memcpy(attr, &attr_ex, sizeof(*attr));
	return ret;
}

/**
 * rdma_destroy_srq() - destroy the shared receive queue of an id
 * @id: the id
 *
 * Follows rdma_destroy_srq(3).
 */
RDMAEP_API void rdma_destroy_srq(struct rdma_cm_id *id)
{
	struct ibv_srq *srq = id->srq;

	if (!srq)
		return;
	id->srq = NULL;
	if (rdmaep_ctx_is_parents(to_rdmaep_id(id)->ctx))
		return;
	ibv_destroy_srq(srq);
	if (!id->qp)
		rdmaep_cqs_destroy(id);
}
