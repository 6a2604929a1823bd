// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Multicast groups of an endpoint.
 *
 * The group is rdma_cm's context for a join, so it lives until rdma_cm has
 * left: rdma_leave_multicast() and rdma_destroy_id() both wait for a handler
 * that is still at it. Both events that a group can have are allocated with it.
 */
#include <linux/slab.h>
#include <rdma/ib_addr.h>

#include "private.h"

/**
 * struct rdma_ep_group - a group joined
 * @node: on rdma_ep::groups
 * @handle: its name within the endpoint
 * @addr: its address
 * @join_event: for the join's completion; NULL once it has happened
 * @error_event: for the group's loss after that; NULL once it has happened
 */
struct rdma_ep_group {
	struct list_head node;
	u32 handle;
	struct sockaddr_storage addr;
	struct rdma_ep_event_more *join_event;
	struct rdma_ep_event_more *error_event;
};

/* An endpoint's events are moved, and its groups looked for, one by one under a lock. */
#define RDMA_EP_MAX_GROUPS 8192

static void rdma_ep_group_free(struct rdma_ep *ep, struct rdma_ep_group *group)
{
	rdma_ep_user_uncharge(ep->ctx->user);
	rdma_ep_event_unalloc(group->join_event);
	rdma_ep_event_unalloc(group->error_event);
	kfree(group);
}

static struct rdma_ep_group *rdma_ep_group_alloc(struct rdma_ep *ep, u64 cookie,
						 const struct sockaddr *addr)
{
	struct rdma_ep_group *group;
	int ret;

	ret = rdma_ep_user_charge(ep->ctx->user);
	if (ret)
		return ERR_PTR(ret);
	group = kzalloc(sizeof(*group), GFP_KERNEL_ACCOUNT);
	if (!group) {
		rdma_ep_user_uncharge(ep->ctx->user);
		return ERR_PTR(-ENOMEM);
	}
	group->join_event = rdma_ep_event_alloc(ep, 0, GFP_KERNEL_ACCOUNT);
	group->error_event = rdma_ep_event_alloc(ep, 0, GFP_KERNEL_ACCOUNT);
	if (!group->join_event || !group->error_event) {
		rdma_ep_group_free(ep, group);
		return ERR_PTR(-ENOMEM);
	}
	memcpy(&group->addr, addr, rdma_addr_size(addr));
	group->handle = ++ep->last_group;
	group->join_event->arg = cookie;
	group->join_event->group = group->handle;
	group->error_event->arg = cookie;
	group->error_event->group = group->handle;
	return group;
}

/**
 * rdma_ep_group_event - the event to report what happened to a group
 * @event: what rdma_cm says
 *
 * Context: in rdma_cm's handler, so one at a time for each group.
 *
 * Return: the event, the caller's now, or NULL if the group's end was reported
 * before.
 */
struct rdma_ep_event_more *rdma_ep_group_event(struct rdma_cm_event *event)
{
	struct rdma_ep_group *group = (void *)event->param.ud.private_data;
	struct rdma_ep_event_more *more = NULL;

	swap(more, group->join_event);
	if (!more)
		swap(more, group->error_event);
	return more;
}

/* The endpoint's id is gone, and rdma_cm has left all groups with it. */
void rdma_ep_group_free_all(struct rdma_ep *ep)
{
	struct rdma_ep_group *group, *next;
	LIST_HEAD(groups);

	/* A concurrent leave sees that the id is gone, and stops. */
	mutex_lock(&ep->lock);
	list_splice_init(&ep->groups, &groups);
	mutex_unlock(&ep->lock);
	list_for_each_entry_safe(group, next, &groups, node)
		rdma_ep_group_free(ep, group);
}

static int rdma_ep_join_state(struct rdma_ep_call *call, u32 join_flags)
{
	switch (join_flags) {
	case RDMA_EP_JOIN_FULL_MEMBER:
		return BIT(FULLMEMBER_JOIN);
	case RDMA_EP_JOIN_SEND_ONLY:
		return BIT(SENDONLY_FULLMEMBER_JOIN);
	default:
		return rdma_ep_fail(call, -EOPNOTSUPP, RDMA_EP_REASON_VALUE,
				    "unknown join flags %#x", join_flags);
	}
}

static int rdma_ep_join_locked(struct rdma_ep_call *call, struct rdma_ep *ep, u8 join_state,
			       struct sockaddr *addr)
{
	struct rdma_ep_join *cmd = call->cmd;
	struct rdma_ep_group *group;
	int ret;

	if (!ep->id)
		return rdma_ep_fail_no_id(call, ep);
	if (!ep->id->device)
		return rdma_ep_fail_unbound(call, ep);
	/* Its id may have a device that it may not use: see rdma_ep_device_ok(). */
	if (ep->state == RDMA_EP_STATE_FAILED)
		return rdma_ep_fail_state(call, ep, "join a group");
	if (ep->last_group == U32_MAX)
		return rdma_ep_fail(call, -ENOSPC, RDMA_EP_REASON_LIMIT,
				    "the endpoint has used up the handles of its groups");
	if (ep->num_groups == RDMA_EP_MAX_GROUPS)
		return rdma_ep_fail(call, -ENOSPC, RDMA_EP_REASON_LIMIT,
				    "the endpoint is in %u groups, and may be in no more",
				    RDMA_EP_MAX_GROUPS);

	group = rdma_ep_group_alloc(ep, cmd->cookie, addr);
	if (IS_ERR(group))
		return PTR_ERR(group) == -EDQUOT ? rdma_ep_fail_quota(call) : PTR_ERR(group);
	ret = rdma_join_multicast(ep->id, (struct sockaddr *)&group->addr, join_state, group);
	if (ret) {
		rdma_ep_fail(call, ret,
			     ret == -ENOTSUPP ? RDMA_EP_REASON_KERNEL : RDMA_EP_REASON_NONE,
			     "this group cannot be joined over this transport");
		rdma_ep_group_free(ep, group);
		return ret;
	}
	cmd->out_group = group->handle;
	list_add(&group->node, &ep->groups);
	ep->num_groups++;
	return 0;
}

/* Context: the caller holds the endpoint's lock. */
struct rdma_ep_group *rdma_ep_group_find(struct rdma_ep *ep, u32 handle)
{
	struct rdma_ep_group *group;

	list_for_each_entry(group, &ep->groups, node)
		if (group->handle == handle)
			return group;
	return NULL;
}

/* rdma_cm leaves by address: of several alike it takes the one that was joined last. */
static bool rdma_ep_group_is_last(struct rdma_ep *ep, struct rdma_ep_group *group)
{
	struct sockaddr *addr = (struct sockaddr *)&group->addr;
	struct rdma_ep_group *last;

	list_for_each_entry(last, &ep->groups, node)
		if (!memcmp(&last->addr, addr, rdma_addr_size(addr)))
			return last == group;
	return false;
}

static int rdma_ep_leave_locked(struct rdma_ep_call *call, struct rdma_ep *ep, u32 handle,
				u32 *discarded)
{
	struct rdma_ep_group *group;

	/* What destroys the id leaves for us. */
	if (!ep->id)
		return rdma_ep_fail_no_id(call, ep);
	group = rdma_ep_group_find(ep, handle);
	if (!group)
		return rdma_ep_fail(call, -ENOENT, RDMA_EP_REASON_HANDLE,
				    "the endpoint has joined no group %u", handle);
	if (!rdma_ep_group_is_last(ep, group))
		return rdma_ep_fail(call, -EINVAL, RDMA_EP_REASON_STATE,
				    "the same address was joined again: leave that first");
	rdma_leave_multicast(ep->id, (struct sockaddr *)&group->addr);
	list_del(&group->node);
	ep->num_groups--;
	*discarded = rdma_ep_group_discard(ep, handle);
	rdma_ep_group_free(ep, group);
	return 0;
}

int rdma_ep_join(struct rdma_ep_call *call)
{
	struct rdma_ep_join *cmd = call->cmd;
	struct sockaddr *addr;
	struct rdma_ep *ep;
	u32 discarded;
	int join_state;
	int ret;

	join_state = rdma_ep_join_state(call, cmd->join_flags);
	if (join_state < 0)
		return join_state;
	addr = rdma_ep_sockaddr(call, &cmd->addr, false);
	if (IS_ERR(addr))
		return PTR_ERR(addr);
	ep = rdma_ep_get(call, cmd->ep);
	if (IS_ERR(ep))
		return PTR_ERR(ep);
	mutex_lock(&ep->lock);
	ret = rdma_ep_join_locked(call, ep, join_state, addr);
	mutex_unlock(&ep->lock);

	/* The handle is known to nobody yet, so this undoes it. */
	if (!ret && rdma_ep_respond(call)) {
		mutex_lock(&ep->lock);
		rdma_ep_leave_locked(call, ep, cmd->out_group, &discarded);
		mutex_unlock(&ep->lock);
		ret = -EFAULT;
	}
	rdma_ep_put(ep);
	return ret;
}

int rdma_ep_leave(struct rdma_ep_call *call)
{
	struct rdma_ep_leave *cmd = call->cmd;
	struct rdma_ep *ep;
	int ret;

	ep = rdma_ep_get(call, cmd->ep);
	if (IS_ERR(ep))
		return PTR_ERR(ep);
	mutex_lock(&ep->lock);
	ret = rdma_ep_leave_locked(call, ep, cmd->group, &cmd->out_discarded);
	mutex_unlock(&ep->lock);
	rdma_ep_put(ep);
	return ret ?: rdma_ep_respond(call);
}
