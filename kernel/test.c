// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Test code: made-up events for the real handler, allocations that fail, and
 * how many objects there are. Only in a build with RDMA_EP_TEST=y.
 */
#include <linux/debugfs.h>
#include <linux/fault-inject.h>
#include <linux/sched.h>
#include <linux/uaccess.h>
#include <linux/wait.h>

#include "private.h"

static atomic_t rdma_ep_test_counts[RDMA_EP_TEST_OBJECTS];

/* A task whose allocations are to fail, and which of them. */
static DEFINE_MUTEX(rdma_ep_test_lock);
static struct task_struct *rdma_ep_test_task;
static u32 rdma_ep_test_mask;
static u32 rdma_ep_test_allocs;

#ifdef CONFIG_FAULT_INJECTION_DEBUG_FS

/*
 * fail-nth reaches only the task of a call. This one is for rdma_cm's work
 * queues, from where the handler is called.
 */
static DECLARE_FAULT_ATTR(rdma_ep_test_fault);
static struct dentry *rdma_ep_test_dir;

static bool rdma_ep_test_kthread_fails(void)
{
	return current->flags & PF_KTHREAD && should_fail(&rdma_ep_test_fault, 1);
}

void rdma_ep_test_init(void)
{
	rdma_ep_test_fault.verbose = 0;
	rdma_ep_test_dir = fault_create_debugfs_attr("fail_rdma_ep", NULL, &rdma_ep_test_fault);
}

void rdma_ep_test_exit(void)
{
	debugfs_remove_recursive(rdma_ep_test_dir);
}

#else

static bool rdma_ep_test_kthread_fails(void)
{
	return false;
}

void rdma_ep_test_init(void)
{
}

void rdma_ep_test_exit(void)
{
}

#endif /* CONFIG_FAULT_INJECTION_DEBUG_FS */

/**
 * rdma_ep_test_should_fail - is this allocation to fail?
 *
 * Return: true if so.
 */
bool rdma_ep_test_should_fail(void)
{
	if (READ_ONCE(rdma_ep_test_task) != current)
		return rdma_ep_test_kthread_fails();
	return rdma_ep_test_allocs < 32 && rdma_ep_test_mask & BIT(rdma_ep_test_allocs++);
}

static u32 rdma_ep_test_seconds;

/**
 * rdma_ep_test_patience - how long to wait for something
 * @seconds: usually
 *
 * Return: that, or what a test has set.
 */
unsigned int rdma_ep_test_patience(unsigned int seconds)
{
	return READ_ONCE(rdma_ep_test_seconds) ?: seconds;
}

static unsigned long rdma_ep_test_stalled_until; /* in jiffies, 0 for never */
static DECLARE_WAIT_QUEUE_HEAD(rdma_ep_test_stalled_wq);

/* As if the device kept what is still to be sent. */
void rdma_ep_test_stall(void)
{
	unsigned long until = READ_ONCE(rdma_ep_test_stalled_until);

	if (until && time_before(jiffies, until))
		wait_event_idle_timeout(rdma_ep_test_stalled_wq,
					!READ_ONCE(rdma_ep_test_stalled_until), until - jiffies);
}

static int rdma_ep_test_set_stall(u32 __user *useconds)
{
	u32 seconds;

	if (get_user(seconds, useconds))
		return -EFAULT;
	WRITE_ONCE(rdma_ep_test_stalled_until, seconds ? jiffies + seconds * HZ : 0);
	wake_up_all(&rdma_ep_test_stalled_wq);
	return 0;
}

/**
 * rdma_ep_test_add - objects have come or gone
 * @object: of which kind
 * @n: how many more
 */
void rdma_ep_test_add(enum rdma_ep_test_object object, int n)
{
	atomic_add(n, &rdma_ep_test_counts[object]);
}

static int rdma_ep_test_call_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	int ret;

	rdma_lock_handler(id);
	ret = rdma_ep_cm_handler(id, event);
	rdma_unlock_handler(id);
	return ret;
}

/* As rdma_cm does: the new id has the listener's context until the handler changes that. */
static int rdma_ep_test_request(struct rdma_ep *ep, struct rdma_cm_event *event)
{
	struct sockaddr_storage addr = ep->id->route.addr.src_addr;
	struct rdma_cm_id *id;
	int ret;

	if (addr.ss_family != AF_INET && addr.ss_family != AF_INET6)
		return -EINVAL;
	id = rdma_create_user_id(rdma_ep_cm_handler, ep, ep->id->ps, ep->id->qp_type);
	if (IS_ERR(id))
		return PTR_ERR(id);
	/* The port is at the same place in both families. */
	((struct sockaddr_in *)&addr)->sin_port = 0;
	ret = rdma_bind_addr(id, (struct sockaddr *)&addr);
	if (!ret && !id->device)
		ret = -EINVAL;
	if (ret) {
		rdma_destroy_id(id);
		return ret;
	}
	if (rdma_ep_test_call_handler(id, event))
		rdma_destroy_id(id);
	return 0;
}

static int rdma_ep_test_feed(struct rdma_ep *ep, struct rdma_ep_test_event *cmd)
{
	struct rdma_cm_event event = { .event = cmd->event, .status = cmd->status };
	u8 data[U8_MAX];
	int i;

	if (!ep->id)
		return -ENODEV;
	/* rdma_cm has no event with addresses of a peer for an id without a device. */
	if (!ep->id->device && cmd->event != RDMA_EP_EVENT_ADDR_ERROR)
		return -EINVAL;

	for (i = 0; i < ARRAY_SIZE(data); i++)
		data[i] = i;
	if (cmd->event == RDMA_EP_EVENT_MULTICAST_JOIN ||
	    cmd->event == RDMA_EP_EVENT_MULTICAST_ERROR) {
		event.param.ud.private_data = rdma_ep_group_find(ep, cmd->group);
		if (!event.param.ud.private_data)
			return -ENOENT;
	} else if (ep->id->qp_type == IB_QPT_UD) {
		event.param.ud.private_data = data;
		event.param.ud.private_data_len = cmd->data_len;
	} else {
		event.param.conn.private_data = data;
		event.param.conn.private_data_len = cmd->data_len;
	}
	if (cmd->event == RDMA_EP_EVENT_CONNECT_REQUEST)
		return rdma_ep_test_request(ep, &event);
	return rdma_ep_test_call_handler(ep->id, &event);
}

static int rdma_ep_test_event(struct rdma_ep *ep, struct rdma_ep_test_event *cmd)
{
	int ret;

	if (cmd->data_len > U8_MAX || cmd->reserved)
		return -EINVAL;

	mutex_lock(&rdma_ep_test_lock);
	mutex_lock(&ep->lock);
	rdma_ep_test_mask = cmd->fail_mask;
	rdma_ep_test_allocs = 0;
	WRITE_ONCE(rdma_ep_test_task, current);
	ret = rdma_ep_test_feed(ep, cmd);
	WRITE_ONCE(rdma_ep_test_task, NULL);
	cmd->out_allocs = rdma_ep_test_allocs;
	mutex_unlock(&ep->lock);
	mutex_unlock(&rdma_ep_test_lock);
	return ret;
}

static int rdma_ep_test_state(struct rdma_ep_call *call, struct rdma_ep *ep,
			      struct rdma_ep_test_state *cmd)
{
	int ret = 0;

	BUILD_BUG_ON((int)RDMA_EP_TEST_OP_ACCEPT != (int)RDMA_EP_OP_ACCEPT);
	if (cmd->op > RDMA_EP_OP_ACCEPT || cmd->state > RDMA_EP_STATE_REMOVED)
		return -EINVAL;
	if (cmd->disconnecting && cmd->state < RDMA_EP_STATE_REQUESTED)
		return -EINVAL;

	mutex_lock(&ep->lock);
	/* Once connected, always with what a connection needs. */
	if (cmd->state >= RDMA_EP_STATE_REQUESTED)
		ret = rdma_ep_op_begin(call, ep, RDMA_EP_OP_CONNECT, U32_MAX, cmd->state,
				       "be tested");
	rdma_ep_op_end(ep, cmd->state);
	if (!ret && cmd->op != RDMA_EP_OP_NONE)
		ret = rdma_ep_op_begin(call, ep, cmd->op, U32_MAX, cmd->state, "be tested");
	if (!ret) {
		spin_lock(&ep->ctx->ev_lock);
		rdma_ep_set_state(ep, cmd->state);
		ep->disconnecting = cmd->disconnecting;
		spin_unlock(&ep->ctx->ev_lock);
	}
	mutex_unlock(&ep->lock);
	return ret;
}

static long rdma_ep_test_count(void __user *uarg)
{
	struct rdma_ep_test_count count = {
		.contexts = atomic_read(&rdma_ep_test_counts[RDMA_EP_TEST_CONTEXT]),
		.endpoints = atomic_read(&rdma_ep_test_counts[RDMA_EP_TEST_ENDPOINT]),
		.channels = atomic_read(&rdma_ep_test_counts[RDMA_EP_TEST_CHANNEL]),
		.events = atomic_read(&rdma_ep_test_counts[RDMA_EP_TEST_EVENT_MORE]),
	};

	return copy_to_user(uarg, &count, sizeof(count)) ? -EFAULT : 0;
}

/**
 * rdma_ep_test_ioctl - the commands of the test code
 * @ctx: the context
 * @cmd: its number, not one of the others
 * @uarg: its argument
 *
 * Return: 0 or a negative errno, -ENOTTY if it is none of these either.
 */
long rdma_ep_test_ioctl(struct rdma_ep_ctx *ctx, unsigned int cmd, void __user *uarg)
{
	struct rdma_ep_hdr hdr = {}; /* of a command that does not wait */
	struct rdma_ep_call call = { .ctx = ctx, .cmd = &hdr };
	union {
		u32 ep;
		struct rdma_ep_test_event event;
		struct rdma_ep_test_state state;
	} buf;
	size_t size;
	struct rdma_ep *ep;
	long ret;

	switch (cmd) {
	case RDMA_EP_TEST_EVENT:
		size = sizeof(buf.event);
		break;
	case RDMA_EP_TEST_STATE:
		size = sizeof(buf.state);
		break;
	case RDMA_EP_TEST_COUNT:
		return rdma_ep_test_count(uarg);
	case RDMA_EP_TEST_PATIENCE:
		return get_user(rdma_ep_test_seconds, (u32 __user *)uarg);
	case RDMA_EP_TEST_STALL:
		return rdma_ep_test_set_stall(uarg);
	default:
		return -ENOTTY;
	}
	if (copy_from_user(&buf, uarg, size))
		return -EFAULT;
	ep = rdma_ep_get(&call, buf.ep);
	if (IS_ERR(ep))
		return PTR_ERR(ep);
	if (cmd == RDMA_EP_TEST_EVENT)
		ret = rdma_ep_test_event(ep, &buf.event);
	else
		ret = rdma_ep_test_state(&call, ep, &buf.state);
	rdma_ep_put(ep);
	if (!ret && copy_to_user(uarg, &buf, size))
		ret = -EFAULT;
	return ret;
}
