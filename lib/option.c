// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Options, by the names of rdma_cma.h and by those of rdmaep.h, and limits.
 */
#include <string.h>

#include "rdmaep-internal.h"

_Static_assert((int)RDMAEP_OPT_TOS == RDMA_EP_OPT_TOS &&
	       (int)RDMAEP_OPT_REUSEADDR == RDMA_EP_OPT_REUSEADDR &&
	       (int)RDMAEP_OPT_AFONLY == RDMA_EP_OPT_AFONLY &&
	       (int)RDMAEP_OPT_ACK_TIMEOUT == RDMA_EP_OPT_ACK_TIMEOUT &&
	       (int)RDMAEP_OPT_MIN_RNR_TIMER == RDMA_EP_OPT_MIN_RNR_TIMER &&
	       (int)RDMAEP_OPT_NODE_TYPE == RDMA_EP_OPT_NODE_TYPE &&
	       (int)RDMAEP_OPT_CONNECT_TIMEOUT == RDMA_EP_OPT_CONNECT_TIMEOUT &&
	       (int)RDMAEP_OPT_DEVICE == RDMA_EP_OPT_DEVICE &&
	       RDMAEP_ANY_DEVICE == RDMA_EP_ANY_DEVICE,
	       "rdmaep.h has the numbers of the uapi");

static int option_call(struct rdmaep_id *ep, unsigned int nr, unsigned int name,
		       const void *value, size_t len)
{
	struct rdma_ep_option cmd = {
		.hdr = RDMAEP_HDR(cmd),
		.ep = ep->handle,
		.name = name,
		.value_uptr = (uintptr_t)value,
		.value_len = len,
	};

	if (len != cmd.value_len)
		return rdmaep_fail_plain(EINVAL);
	return rdmaep_call(ep->ctx, nr, &cmd);
}

static int option_set(struct rdmaep_id *ep, unsigned int name,
		      const void *value, size_t len)
{
	/*
	 * What the kernel has told about the QP may change. Before the call: a path
	 * has an event, whose reader may destroy the id.
	 */
	ep->attr_parts &= ~(RDMA_EP_REC_RTR | RDMA_EP_REC_RTS);
	return option_call(ep, RDMA_EP_SET_OPTION, name, value, len);
}

/**
 * rdmaep_option_ib_path() - set the path to the destination
 * @ep: the id
 * @value: array of struct ibv_path_data
 * @len: its size in bytes
 *
 * The event RDMA_CM_EVENT_ROUTE_RESOLVED will follow.
 *
 * Return: 0, or -1 with errno EINVAL.
 */
int rdmaep_option_ib_path(struct rdmaep_id *ep, const void *value, size_t len)
{
	return option_set(ep, RDMA_EP_OPT_IB_PATH, value, len);
}

/**
 * rdma_set_option() - set an option
 * @id: the id
 * @level: RDMA_OPTION_ID or RDMA_OPTION_IB
 * @optname: RDMA_OPTION_ID_* or RDMA_OPTION_IB_*
 * @optval: address of the value
 * @optlen: its size in bytes
 *
 * Follows rdma_set_option(3).
 *
 * Return: 0, or -1 with errno EINVAL or ENOSYS (no such option).
 */
RDMAEP_API int rdma_set_option(struct rdma_cm_id *id, int level, int optname,
			       void *optval, size_t optlen)
{
	struct rdmaep_id *ep = to_rdmaep_id(id);

	/* The options of RDMA_OPTION_ID have the same numbers everywhere. */
	if (level == RDMA_OPTION_ID && optname >= RDMA_OPTION_ID_TOS &&
	    optname <= RDMA_OPTION_ID_ACK_TIMEOUT)
		return option_set(ep, optname, optval, optlen);
	if (level == RDMA_OPTION_IB && optname == RDMA_OPTION_IB_PATH)
		return rdmaep_option_ib_path(ep, optval, optlen);
	/* Not EOPNOTSUPP: it is what programs look for. */
	return rdmaep_fail(ENOSYS, RDMA_EP_REASON_VALUE,
			   "no option %d at level %d", optname, level);
}

/* See rdmaep.h. */
RDMAEP_API int rdmaep_set_option(struct rdma_cm_id *id, enum rdmaep_option name,
				 const void *value, size_t len)
{
	return option_set(to_rdmaep_id(id), name, value, len);
}

/* See rdmaep.h. */
RDMAEP_API int rdmaep_get_option(struct rdma_cm_id *id, enum rdmaep_option name,
				 void *value, size_t len)
{
	if (value)
		memset(value, 0, len);
	return option_call(to_rdmaep_id(id), RDMA_EP_GET_OPTION, name, value,
			   len);
}

/* See rdmaep.h. */
RDMAEP_API int rdmaep_get_limits(struct rdma_cm_id *id,
				 struct rdmaep_limits *limits, size_t size)
{
	struct rdmaep_id *ep = to_rdmaep_id(id);
	struct rdmaep_limits all = {
		.max_connect_data = ep->max_connect_data,
		.max_accept_data = ep->max_accept_data,
		.max_reject_data = ep->max_reject_data,
	};

	/* The struct can grow, but not shrink. */
	if (!limits || size < sizeof(all))
		return rdmaep_fail_plain(EINVAL);
	if (!ep->dev)
		return rdmaep_fail(ENODEV, RDMA_EP_REASON_STATE,
				   "the id is not bound to a device");

	all.max_responder_resources = ep->dev->max_responder_resources;
	all.max_initiator_depth = ep->dev->max_initiator_depth;
	memset(limits, 0, size);
	memcpy(limits, &all, sizeof(all));
	return 0;
}
