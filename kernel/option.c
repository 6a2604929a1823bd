// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Options of an endpoint. rdma_cm cannot be asked for them, so they are kept.
 */
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <rdma/ib_sa.h>
#include <rdma/opa_addr.h>
#include <rdma/rdma_cm_ib.h>

#include "private.h"

/* Path records that one call may bring. */
#define RDMA_EP_MAX_PATH_DATA 16

static int rdma_ep_option_size(struct rdma_ep_call *call, u32 name)
{
	switch (name) {
	case RDMA_EP_OPT_TOS:
	case RDMA_EP_OPT_ACK_TIMEOUT:
	case RDMA_EP_OPT_MIN_RNR_TIMER:
		return sizeof(u8);
	case RDMA_EP_OPT_REUSEADDR:
	case RDMA_EP_OPT_AFONLY:
	case RDMA_EP_OPT_CONNECT_TIMEOUT:
	case RDMA_EP_OPT_DEVICE:
		return sizeof(u32);
	case RDMA_EP_OPT_NODE_TYPE:
		if (RDMA_EP_CM_HAS_NODE_TYPE)
			return sizeof(u8);
		return rdma_ep_fail(call, -EOPNOTSUPP, RDMA_EP_REASON_KERNEL,
				    "this kernel's rdma_cm cannot restrict the node type");
	default:
		return rdma_ep_fail(call, -EOPNOTSUPP, RDMA_EP_REASON_STRUCT, "unknown option %u",
				    name);
	}
}

static int rdma_ep_option_check(struct rdma_ep_call *call, struct rdma_ep_option *cmd)
{
	int size = rdma_ep_option_size(call, cmd->name);

	if (size < 0)
		return size;
	if (cmd->value_len != size)
		return rdma_ep_fail(call, -EINVAL, RDMA_EP_REASON_STRUCT,
				    "option %u has %d bytes, not %u", cmd->name, size,
				    cmd->value_len);
	return 0;
}

/**
 * rdma_ep_device_ok - whether an endpoint may use the device it has come to
 * @ep: the endpoint
 * @id: its id, or that of a request to it
 *
 * Context: with the endpoint's lock or in rdma_cm's handler.
 *
 * Return: whether it may.
 */
bool rdma_ep_device_ok(const struct rdma_ep *ep, const struct rdma_cm_id *id)
{
	u32 device = READ_ONCE(ep->options.device);

	return !device || !id->device || id->device->index == device - 1;
}

static int rdma_ep_check_device(struct rdma_ep *ep, u32 index)
{
	if (index != RDMA_EP_ANY_DEVICE && ep->id->device && ep->id->device->index != index)
		return -EINVAL;
	return 0;
}

static int rdma_ep_apply_option(struct rdma_ep *ep, u32 name, u32 value)
{
	switch (name) {
	case RDMA_EP_OPT_TOS:
		rdma_set_service_type(ep->id, value);
		return 0;
	case RDMA_EP_OPT_REUSEADDR:
		return rdma_set_reuseaddr(ep->id, !!value);
	case RDMA_EP_OPT_AFONLY:
		return rdma_set_afonly(ep->id, !!value);
	case RDMA_EP_OPT_ACK_TIMEOUT:
		return value > 31 ? -EINVAL : rdma_set_ack_timeout(ep->id, value);
	case RDMA_EP_OPT_MIN_RNR_TIMER:
		/* rdma_cm warns of a user who asks it for others. */
		if (ep->qp_type != IB_QPT_RC && ep->qp_type != IB_QPT_XRC_TGT)
			return -EINVAL;
		return rdma_set_min_rnr_timer(ep->id, value);
	case RDMA_EP_OPT_NODE_TYPE:
		return rdma_ep_cm_restrict_node_type(ep->id, value);
	case RDMA_EP_OPT_DEVICE:
		return rdma_ep_check_device(ep, value);
	default:
		return rdma_ep_deadline_set(ep, value);
	}
}

static void rdma_ep_keep_option(struct rdma_ep_options *options, u32 name, u32 value)
{
	switch (name) {
	case RDMA_EP_OPT_TOS:
		options->tos = value;
		break;
	case RDMA_EP_OPT_REUSEADDR:
		options->reuseaddr = value;
		break;
	case RDMA_EP_OPT_AFONLY:
		options->afonly = value;
		break;
	case RDMA_EP_OPT_ACK_TIMEOUT:
		options->ack_timeout = value;
		break;
	case RDMA_EP_OPT_MIN_RNR_TIMER:
		options->min_rnr_timer = value;
		break;
	case RDMA_EP_OPT_NODE_TYPE:
		options->node_type = value;
		break;
	case RDMA_EP_OPT_DEVICE:
		/* One more than the index, so that 0 is any device. */
		WRITE_ONCE(options->device, value + 1);
		break;
	default:
		options->connect_timeout_ms = value;
		break;
	}
}

static u32 rdma_ep_kept_option(const struct rdma_ep_options *options, u32 name)
{
	switch (name) {
	case RDMA_EP_OPT_TOS:
		return options->tos;
	case RDMA_EP_OPT_REUSEADDR:
		return options->reuseaddr;
	case RDMA_EP_OPT_AFONLY:
		return options->afonly;
	case RDMA_EP_OPT_ACK_TIMEOUT:
		return options->ack_timeout;
	case RDMA_EP_OPT_MIN_RNR_TIMER:
		return options->min_rnr_timer;
	case RDMA_EP_OPT_NODE_TYPE:
		return options->node_type;
	case RDMA_EP_OPT_DEVICE:
		return options->device - 1;
	default:
		return options->connect_timeout_ms;
	}
}

static int rdma_ep_set_option_locked(struct rdma_ep_call *call, struct rdma_ep *ep, u32 value)
{
	struct rdma_ep_option *cmd = call->cmd;
	int ret;

	if (!ep->id)
		return rdma_ep_fail_no_id(call, ep);

	rdma_lock_handler(ep->id);
	ret = rdma_ep_apply_option(ep, cmd->name, value);
	/* Before a handler can look at it. */
	if (!ret)
		rdma_ep_keep_option(&ep->options, cmd->name, value);
	rdma_unlock_handler(ep->id);
	if (ret == -EINVAL)
		return rdma_ep_fail(call, ret, RDMA_EP_REASON_VALUE,
				    "option %u cannot be %u for an endpoint that is %s", cmd->name,
				    value, rdma_ep_state_name(ep->state));
	return ret;
}

/* The record to use among those that the user brings, as rdma_cm wants it. */
static int rdma_ep_pick_path(struct rdma_ep_call *call, const struct ib_path_rec_data *data,
			     unsigned int n, struct sa_path_rec *path)
{
	for (; n; n--, data++) {
		if (data->flags != (IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL))
			continue;
		memset(path, 0, sizeof(*path));
		path->rec_type = SA_PATH_REC_TYPE_IB;
		ib_sa_unpack_path((void *)data->path_rec, path);
		return 0;
	}
	return rdma_ep_fail(call, -EINVAL, RDMA_EP_REASON_VALUE,
			    "no record is that of a primary, bidirectional path");
}

static int rdma_ep_set_path_locked(struct rdma_ep_call *call, struct rdma_ep *ep,
				   struct sa_path_rec *path)
{
	struct rdma_cm_event event = { .event = RDMA_CM_EVENT_ROUTE_RESOLVED };
	struct sa_path_rec opa;
	int ret;

	if (!ep->id)
		return rdma_ep_fail_no_id(call, ep);
	if (!ep->id->device)
		return rdma_ep_fail_unbound(call, ep);
	if (rdma_cap_opa_ah(ep->id->device, ep->id->port_num)) {
		sa_convert_path_ib_to_opa(&opa, path);
		path = &opa;
	}
	ret = rdma_ep_op_begin(call, ep, RDMA_EP_OP_RESOLVE, BIT(RDMA_EP_STATE_ADDR_RESOLVED),
			       RDMA_EP_STATE_RESOLVING_ROUTE, "be given a path");
	if (ret)
		return ret;
	ret = rdma_set_ib_path(ep->id, path);
	if (ret) {
		rdma_ep_op_end(ep, RDMA_EP_STATE_ADDR_RESOLVED);
		return rdma_ep_fail(call, ret, RDMA_EP_REASON_VALUE, "the path cannot be used");
	}
	rdma_lock_handler(ep->id);
	rdma_ep_cm_handler(ep->id, &event);
	rdma_unlock_handler(ep->id);
	return 0;
}

static int rdma_ep_set_path(struct rdma_ep_call *call, struct rdma_ep *ep)
{
	struct rdma_ep_option *cmd = call->cmd;
	struct ib_path_rec_data *data;
	struct sa_path_rec path;
	unsigned int n;
	int ret;

	n = cmd->value_len / sizeof(*data);
	if (!n || n > RDMA_EP_MAX_PATH_DATA || cmd->value_len % sizeof(*data))
		return rdma_ep_fail(call, -EINVAL, RDMA_EP_REASON_STRUCT,
				    "%u bytes are not 1 to %u path records", cmd->value_len,
				    RDMA_EP_MAX_PATH_DATA);
	data = memdup_user(u64_to_user_ptr(cmd->value_uptr), cmd->value_len);
	if (IS_ERR(data))
		return PTR_ERR(data);

	ret = rdma_ep_pick_path(call, data, n, &path);
	if (!ret) {
		mutex_lock(&ep->lock);
		ret = rdma_ep_set_path_locked(call, ep, &path);
		mutex_unlock(&ep->lock);
	}
	kfree(data);
	return ret;
}

int rdma_ep_set_option(struct rdma_ep_call *call)
{
	struct rdma_ep_option *cmd = call->cmd;
	bool is_path = cmd->name == RDMA_EP_OPT_IB_PATH;
	void __user *uvalue = u64_to_user_ptr(cmd->value_uptr);
	struct rdma_ep *ep;
	u32 value = 0;
	u8 byte = 0;
	int ret;

	if (!is_path) {
		ret = rdma_ep_option_check(call, cmd);
		if (ret)
			return ret;
		if (cmd->value_len == sizeof(byte))
			ret = copy_from_user(&byte, uvalue, sizeof(byte));
		else
			ret = copy_from_user(&value, uvalue, sizeof(value));
		if (ret)
			return -EFAULT;
		value |= byte;
	}
	ep = rdma_ep_get(call, cmd->ep);
	if (IS_ERR(ep))
		return PTR_ERR(ep);

	if (is_path) {
		ret = rdma_ep_set_path(call, ep);
	} else {
		mutex_lock(&ep->lock);
		ret = rdma_ep_set_option_locked(call, ep, value);
		mutex_unlock(&ep->lock);
	}
	rdma_ep_put(ep);
	return ret;
}

int rdma_ep_get_option(struct rdma_ep_call *call)
{
	struct rdma_ep_option *cmd = call->cmd;
	void __user *uvalue = u64_to_user_ptr(cmd->value_uptr);
	struct rdma_ep *ep;
	u32 value;
	u8 byte;
	int ret;

	ret = rdma_ep_option_check(call, cmd);
	if (ret)
		return ret;
	ep = rdma_ep_get(call, cmd->ep);
	if (IS_ERR(ep))
		return PTR_ERR(ep);
	mutex_lock(&ep->lock);
	value = rdma_ep_kept_option(&ep->options, cmd->name);
	mutex_unlock(&ep->lock);
	rdma_ep_put(ep);

	byte = value;
	if (cmd->value_len == sizeof(byte))
		ret = copy_to_user(uvalue, &byte, sizeof(byte));
	else
		ret = copy_to_user(uvalue, &value, sizeof(value));
	return ret ? -EFAULT : 0;
}
