// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * From an ioctl number to its handler. What every command needs checked is
 * checked here: the number, the struct's size and tail, the flags, the
 * reserved field. Handlers start with their own work, and find their struct in
 * rdma_ep_call::cmd.
 */
#include <linux/fs.h>
#include <linux/nospec.h>
#include <linux/uaccess.h>

#include "private.h"
#include "trace.h"

/**
 * struct rdma_ep_op_row - what the dispatcher knows of a command
 * @cmd: the ioctl number
 * @flags: flags that it knows
 * @size: size of its argument struct
 * @min_size: end of the struct's last member in ABI 1
 * @reserved: offset of its reserved field
 * @reserved_size: size of that field; 0 if there is none
 * @fn: the handler
 */
struct rdma_ep_op_row {
	u32 cmd;
	u32 flags;
	u16 size;
	u16 min_size;
	u16 reserved;
	u16 reserved_size;
	int (*fn)(struct rdma_ep_call *call);
};

/* clang-format off */
#define RDMA_EP_ROW(_cmd, _struct, _last, _flags, _fn, ...)                                    \
	[_IOC_NR(_cmd)] = {                                                                    \
		.cmd = _cmd,                                                                   \
		.flags = _flags,                                                               \
		.size = sizeof(struct _struct) +                                               \
			BUILD_BUG_ON_ZERO(sizeof(struct _struct) > sizeof(union rdma_ep_cmd)), \
		.min_size = offsetofend(struct _struct, _last),                                \
		.fn = _fn,                                                                     \
		__VA_ARGS__                                                                    \
	}
/* clang-format on */

/* A field that must be 0. */
#define RDMA_EP_RESERVED(_struct, _field)             \
	.reserved = offsetof(struct _struct, _field), \
	.reserved_size = sizeof_field(struct _struct, _field)

#define RDMA_EP_ROW_RESERVED(_cmd, _struct, _last, _flags, _fn) \
	RDMA_EP_ROW(_cmd, _struct, _last, _flags, _fn, RDMA_EP_RESERVED(_struct, reserved))

static int rdma_ep_get_info(struct rdma_ep_call *call);

#define WAIT_FLAGS (RDMA_EP_F_WAIT | RDMA_EP_F_RESUME)

static const struct rdma_ep_op_row rdma_ep_ops[] = {
	RDMA_EP_ROW(RDMA_EP_GET_INFO, rdma_ep_get_info, out_reserved, 0, rdma_ep_get_info),
	RDMA_EP_ROW(RDMA_EP_CREATE_CHANNEL, rdma_ep_create_channel, out_fd, 0,
		    rdma_ep_create_channel),
	RDMA_EP_ROW(RDMA_EP_CREATE, rdma_ep_create, out_serial, RDMA_EP_F_NEW_CHANNEL,
		    rdma_ep_create),
	RDMA_EP_ROW(RDMA_EP_CREATE_EP, rdma_ep_create_ep, out_serial,
		    RDMA_EP_F_NEW_CHANNEL | RDMA_EP_CREATE_EP_PASSIVE | RDMA_EP_CREATE_EP_NO_ROUTE |
			    RDMA_EP_CREATE_EP_START | RDMA_EP_F_RESUME,
		    rdma_ep_create_ep),
	RDMA_EP_ROW(RDMA_EP_DESTROY, rdma_ep_destroy, fd, 0, rdma_ep_destroy),
	RDMA_EP_ROW(RDMA_EP_BIND, rdma_ep_bind, addr, 0, rdma_ep_bind),
	RDMA_EP_ROW_RESERVED(RDMA_EP_RESOLVE_ADDR, rdma_ep_resolve_addr, reserved,
			     WAIT_FLAGS | RDMA_EP_RESOLVE_THEN_ROUTE, rdma_ep_resolve_addr),
	RDMA_EP_ROW_RESERVED(RDMA_EP_RESOLVE_ROUTE, rdma_ep_resolve_route, reserved, WAIT_FLAGS,
			     rdma_ep_resolve_route),
	RDMA_EP_ROW_RESERVED(RDMA_EP_LISTEN, rdma_ep_listen, reserved, 0, rdma_ep_listen),
	RDMA_EP_ROW(RDMA_EP_CONNECT, rdma_ep_connect, param, WAIT_FLAGS, rdma_ep_connect,
		    RDMA_EP_RESERVED(rdma_ep_connect, param.reserved)),
	RDMA_EP_ROW(RDMA_EP_ACCEPT, rdma_ep_connect, param, WAIT_FLAGS, rdma_ep_accept,
		    RDMA_EP_RESERVED(rdma_ep_connect, param.reserved)),
	RDMA_EP_ROW_RESERVED(RDMA_EP_ESTABLISH, rdma_ep_establish, reserved, 0, rdma_ep_establish),
	RDMA_EP_ROW_RESERVED(RDMA_EP_REJECT, rdma_ep_reject, reserved, 0, rdma_ep_reject),
	RDMA_EP_ROW(RDMA_EP_DISCONNECT, rdma_ep_disconnect, record_uptr, WAIT_FLAGS,
		    rdma_ep_disconnect),
	RDMA_EP_ROW_RESERVED(RDMA_EP_QUERY, rdma_ep_query, reserved, 0, rdma_ep_query),
	RDMA_EP_ROW(RDMA_EP_INIT_QP_ATTR, rdma_ep_init_qp_attr, attr_uptr, 0, rdma_ep_init_qp_attr),
	RDMA_EP_ROW(RDMA_EP_ATTACH, rdma_ep_attach, channel, RDMA_EP_F_NEW_CHANNEL, rdma_ep_attach),
	RDMA_EP_ROW_RESERVED(RDMA_EP_WAIT, rdma_ep_wait, reserved,
			     RDMA_EP_WAIT_NOWAIT | RDMA_EP_F_NEW_CHANNEL, rdma_ep_wait),
	RDMA_EP_ROW(RDMA_EP_NOTIFY, rdma_ep_notify, event, 0, rdma_ep_notify),
	RDMA_EP_ROW_RESERVED(RDMA_EP_JOIN, rdma_ep_join, reserved, 0, rdma_ep_join),
	RDMA_EP_ROW_RESERVED(RDMA_EP_LEAVE, rdma_ep_leave, reserved, 0, rdma_ep_leave),
	RDMA_EP_ROW_RESERVED(RDMA_EP_SET_OPTION, rdma_ep_option, reserved, 0, rdma_ep_set_option),
	RDMA_EP_ROW_RESERVED(RDMA_EP_GET_OPTION, rdma_ep_option, reserved, 0, rdma_ep_get_option),
	RDMA_EP_ROW_RESERVED(RDMA_EP_WRITE_EVENT, rdma_ep_write_event, arg, 0, rdma_ep_write_event),
	RDMA_EP_ROW_RESERVED(RDMA_EP_RESOLVE_SERVICE, rdma_ep_resolve_service, reserved, WAIT_FLAGS,
			     rdma_ep_resolve_service),
	RDMA_EP_ROW_RESERVED(RDMA_EP_QUERY_SERVICES, rdma_ep_query_services, reserved, 0,
			     rdma_ep_query_services),
	RDMA_EP_ROW_RESERVED(RDMA_EP_DESTROY_MANY, rdma_ep_destroy_many, reserved,
			     RDMA_EP_DESTROY_NOWAIT, rdma_ep_destroy_many),
};

static int rdma_ep_get_info(struct rdma_ep_call *call)
{
	struct rdma_ep_get_info *cmd = call->cmd;

	cmd->out_abi_version = RDMA_EP_ABI_VERSION;
	cmd->out_commands = ARRAY_SIZE(rdma_ep_ops);
	cmd->out_features = RDMA_EP_CM_HAS_SERVICE | RDMA_EP_CM_HAS_NODE_TYPE | RDMA_EP_HAS_URING;
	cmd->out_max_endpoints = READ_ONCE(rdma_ep_max_endpoints);
	cmd->out_endpoints = atomic_read(&call->ctx->num_eps);
	cmd->out_max_backlog = READ_ONCE(rdma_ep_max_backlog);
	cmd->out_reserved = 0;
	return rdma_ep_respond(call);
}

/**
 * rdma_ep_respond - write the argument struct back to the caller
 * @call: the call
 *
 * Never writes past the size that the caller stated. Handlers call it while
 * they can still undo what they did.
 *
 * Return: 0 or -EFAULT.
 */
int rdma_ep_respond(struct rdma_ep_call *call)
{
	if (copy_to_user(call->uarg, call->cmd, min(call->usize, call->op_size)))
		return -EFAULT;
	return 0;
}

static int rdma_ep_dispatch(struct rdma_ep_call *call, const struct rdma_ep_op_row *op)
{
	struct rdma_ep_hdr *hdr = call->cmd;
	int ret = -E2BIG;

	if (call->usize <= PAGE_SIZE)
		ret = copy_struct_from_user(call->cmd, op->size, call->uarg, call->usize);
	if (ret == -E2BIG)
		return rdma_ep_fail(call, ret, RDMA_EP_REASON_STRUCT,
				    "argument of %zu bytes, this module knows %u", call->usize,
				    op->size);
	if (ret)
		return ret;
	if (call->usize < op->min_size)
		return rdma_ep_fail(call, -EINVAL, RDMA_EP_REASON_STRUCT,
				    "argument of %zu bytes, the command needs %u", call->usize,
				    op->min_size);
	if (hdr->flags & ~op->flags)
		return rdma_ep_fail(call, -EOPNOTSUPP, RDMA_EP_REASON_STRUCT, "unknown flags %#x",
				    hdr->flags & ~op->flags);
	if (memchr_inv(call->cmd + op->reserved, 0, op->reserved_size))
		return rdma_ep_fail(call, -EOPNOTSUPP, RDMA_EP_REASON_STRUCT,
				    "reserved field is not 0");
	return op->fn(call);
}

/**
 * rdma_ep_finish - what every call ends with
 * @call: the call
 * @ret: what its handler returned
 *
 * Return: what the caller gets to see.
 */
int rdma_ep_finish(struct rdma_ep_call *call, int ret)
{
	/* Errnos that are internal to the kernel. */
	if (ret == -ENOTSUPP || ret == -ENOSYS)
		ret = -EOPNOTSUPP;

	if (ret)
		rdma_ep_count_failure(call->ctx, ret, call->reason.code);
	trace_rdma_ep_call(call->ctx->number, call->nr, call->ep, ret);

	/* A bad address costs the caller the reason, not what the call did. */
	if (call->ureason && (ret || call->reason.code) &&
	    copy_to_user(call->ureason, &call->reason, sizeof(call->reason)))
		pr_debug("rdma_ep: no reason for command %u: bad address\n", call->nr);
	return ret;
}

/**
 * rdma_ep_serve - serve a call
 * @call: the call: context, address of the argument, and memory for it
 * @cmd: the ioctl number
 *
 * Return: 0, a negative errno, or -EIOCBQUEUED: see rdma_ep_call::async.
 */
int rdma_ep_serve(struct rdma_ep_call *call, unsigned int cmd)
{
	struct rdma_ep_hdr *hdr = call->cmd;
	const struct rdma_ep_op_row *op;
	int ret;

	call->nr = _IOC_NR(cmd);
	if (call->nr >= ARRAY_SIZE(rdma_ep_ops))
		return rdma_ep_test_ioctl(call->ctx, cmd, call->uarg);
	op = &rdma_ep_ops[array_index_nospec(call->nr, ARRAY_SIZE(rdma_ep_ops))];
	if (op->cmd != cmd)
		return -ENOTTY;

	if (get_user(call->usize, &((struct rdma_ep_hdr __user *)call->uarg)->size))
		return -EFAULT;
	/* Without a header there is nowhere to put a reason. */
	if (call->usize < sizeof(*hdr))
		return -EINVAL;
	if (copy_from_user(hdr, call->uarg, sizeof(*hdr)))
		return -EFAULT;
	call->ureason = u64_to_user_ptr(hdr->reason_uptr);
	call->op_size = op->size;
	ret = rdma_ep_dispatch(call, op);
	return ret == -EIOCBQUEUED ? ret : rdma_ep_finish(call, ret);
}

long rdma_ep_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	union rdma_ep_cmd buf;
	struct rdma_ep_call call = {
		.ctx = file->private_data,
		.uarg = (void __user *)arg,
		.cmd = &buf,
	};

	return rdma_ep_serve(&call, cmd);
}
