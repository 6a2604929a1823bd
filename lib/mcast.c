// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Multicast groups. The module joins and leaves them; the library attaches the
 * QP and detaches it.
 *
 * The list of an id's groups is guarded by rdmaep_lock. Events name a group by
 * its cookie, a number that is not used twice.
 */
#include <stdlib.h>
#include <string.h>

#include "rdmaep-internal.h"

/**
 * struct rdmaep_group - a group that an id has joined, or is joining
 * @next: next of the id's groups
 * @cookie: its name in events
 * @handle: its handle in the module, 0 while it is being joined
 * @context: what the program wants to find in the events
 * @send_only: the QP is not to receive what is sent to the group
 * @joined: @mgid and @mlid are known
 * @attached: the id's QP is attached
 * @mgid: the group's GID
 * @mlid: the group's LID
 * @addr: the address it was joined by
 */
struct rdmaep_group {
	struct rdmaep_group *next;
	uint64_t cookie;
	uint32_t handle;
	void *context;
	bool send_only;
	bool joined;
	bool attached;
	union ibv_gid mgid;
	uint16_t mlid;
	struct sockaddr_storage addr;
};

static uint64_t last_cookie;

static struct rdmaep_group *group_find(struct rdmaep_id *ep, uint64_t cookie)
{
	struct rdmaep_group *group;

	for (group = ep->groups; group; group = group->next)
		if (group->cookie == cookie)
			return group;
	return NULL;
}

/**
 * rdmaep_group_context() - what the program wants to find in an event
 * @ep: the id
 * @cookie: the group's cookie
 * @found: receives whether there is such a group
 *
 * Return: the context
 */
void *rdmaep_group_context(struct rdmaep_id *ep, uint64_t cookie, bool *found)
{
	struct rdmaep_group *group;
	void *context = NULL;

	pthread_mutex_lock(&rdmaep_lock);
	group = group_find(ep, cookie);
	*found = group != NULL;
	if (group)
		context = group->context;
	pthread_mutex_unlock(&rdmaep_lock);
	return context;
}

/*
 * Attach the QP to, or detach it from, one group that needs it. Returns false
 * when there is none left.
 */
static bool group_change_one(struct rdmaep_id *ep, bool attach, int *ret)
{
	struct rdmaep_group *group;
	union ibv_gid mgid;
	uint16_t mlid;

	pthread_mutex_lock(&rdmaep_lock);
	for (group = ep->groups; group; group = group->next)
		if (group->joined && !group->send_only &&
		    group->attached != attach)
			break;
	if (group) {
		group->attached = attach;
		mgid = group->mgid;
		mlid = group->mlid;
	}
	pthread_mutex_unlock(&rdmaep_lock);
	if (!group)
		return false;

	*ret = attach ? ibv_attach_mcast(ep->id.qp, &mgid, mlid) :
			ibv_detach_mcast(ep->id.qp, &mgid, mlid);
	return true;
}

/**
 * rdmaep_groups_attach() - attach an id's new QP to the groups it has joined
 * @ep: the id
 */
void rdmaep_groups_attach(struct rdmaep_id *ep)
{
	int err = errno, ret;

	while (ep->id.qp && group_change_one(ep, true, &ret))
		;
	errno = err;
}

/**
 * rdmaep_groups_detach() - detach an id's QP from all groups
 * @ep: the id. It stays in the groups: a later QP will be attached.
 */
void rdmaep_groups_detach(struct rdmaep_id *ep)
{
	int err = errno, ret;

	while (ep->id.qp && group_change_one(ep, false, &ret))
		;
	errno = err;
}

/**
 * rdmaep_group_joined() - a group was joined: attach the QP
 * @ep: the id
 * @evt: the event, with the group's address handle attributes
 * @rec: its record
 *
 * Return: 0, or -1 with errno from ibv_attach_mcast(3).
 */
int rdmaep_group_joined(struct rdmaep_id *ep, struct rdmaep_event *evt,
			struct rdma_ep_record *rec)
{
	const struct ibv_ah_attr *ah = &evt->event.param.ud.ah_attr;
	struct rdmaep_group *group;
	int ret = 0;

	pthread_mutex_lock(&rdmaep_lock);
	group = group_find(ep, rec->arg);
	if (group) {
		group->mgid = ah->grh.dgid;
		group->mlid = ah->dlid;
		group->joined = true;
	}
	pthread_mutex_unlock(&rdmaep_lock);

	while (ep->id.qp && !ret && group_change_one(ep, true, &ret))
		;
	return rdmaep_seterrno(ret);
}

/* Take a group off its id's list. Returns false if it is not there any more. */
static bool group_unlink(struct rdmaep_id *ep, struct rdmaep_group *group)
{
	struct rdmaep_group **pos;
	bool found;

	pthread_mutex_lock(&rdmaep_lock);
	for (pos = &ep->groups; *pos && *pos != group; pos = &(*pos)->next)
		;
	found = *pos != NULL;
	if (found)
		*pos = group->next;
	pthread_mutex_unlock(&rdmaep_lock);
	return found;
}

/**
 * rdmaep_groups_free() - forget the groups of an id that has gone
 * @ep: the id
 */
void rdmaep_groups_free(struct rdmaep_id *ep)
{
	struct rdmaep_group *group;

	while ((group = ep->groups)) {
		group_unlink(ep, group);
		free(group);
	}
}

/* The event may have come, and another thread have destroyed the group. */
static void group_set_handle(struct rdmaep_id *ep, uint64_t cookie,
			     uint32_t handle)
{
	struct rdmaep_group *group;

	pthread_mutex_lock(&rdmaep_lock);
	group = group_find(ep, cookie);
	if (group)
		group->handle = handle;
	pthread_cond_broadcast(&rdmaep_acked);
	pthread_mutex_unlock(&rdmaep_lock);
}

static int group_join(struct rdmaep_id *ep, const struct sockaddr *addr,
		      uint32_t join_flags, void *context)
{
	struct rdma_ep_join cmd = {
		.hdr = RDMAEP_HDR(cmd),
		.ep = ep->handle,
		.join_flags = join_flags,
	};
	struct rdma_ep_leave leave = { .hdr = RDMAEP_HDR(leave) };
	struct rdmaep_group *group;
	bool sync = ep->sync;
	uint64_t cookie;

	if (rdmaep_addr_set(&cmd.addr, addr, "group"))
		return -1;

	group = calloc(1, sizeof(*group));
	if (!group)
		return -1;
	group->context = context;
	group->send_only = join_flags == RDMA_EP_JOIN_SEND_ONLY;
	memcpy(&group->addr, addr, cmd.addr.len);
	cookie = __atomic_add_fetch(&last_cookie, 1, __ATOMIC_RELAXED);
	group->cookie = cookie;
	cmd.cookie = cookie;

	/* Before its event can come */
	pthread_mutex_lock(&rdmaep_lock);
	group->next = ep->groups;
	ep->groups = group;
	pthread_mutex_unlock(&rdmaep_lock);

	if (rdmaep_call(ep->ctx, RDMA_EP_JOIN, &cmd))
		goto forget;
	group_set_handle(ep, cookie, cmd.out_group);
	if (!sync)
		return 0;

	if (!rdmaep_wait_next(ep))
		return 0;
	if (errno == EAGAIN || errno == EINTR)
		return -1;	/* it goes on, and its event will come */
	if (errno == ECANCELED)
		return -1;	/* the id is gone, and the group with it */

	leave.ep = ep->handle;
	leave.group = cmd.out_group;
	rdmaep_call_quiet(ep->ctx, RDMA_EP_LEAVE, &leave);
forget:
	if (group_unlink(ep, group))
		free(group);
	group_set_handle(ep, cookie, 0);	/* who waits need not any more */
	return -1;
}

/**
 * rdma_join_multicast() - join a group
 * @id: the id, bound to a device
 * @addr: the group's address
 * @context: is found in the private_data of the group's events
 *
 * Attaches the QP when joined. Follows rdma_join_multicast(3).
 *
 * Return: 0, or -1 with errno EINVAL, ENOMEM, and for a synchronous id what
 * joining failed with.
 */
RDMAEP_API int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr,
				   void *context)
{
	return group_join(to_rdmaep_id(id), addr, RDMA_EP_JOIN_FULL_MEMBER,
			  context);
}

/**
 * rdma_join_multicast_ex() - join a group, in one of several ways
 * @id: the id, bound to a device
 * @mc_join_attr: the group's address, and as what to join
 * @context: is found in the private_data of the group's events
 *
 * Follows rdma_join_multicast_ex(3).
 *
 * Return: 0, or -1 with errno ENOTSUP (comp_mask), EINVAL, ENOMEM, and for a
 * synchronous id what joining failed with.
 */
RDMAEP_API int rdma_join_multicast_ex(struct rdma_cm_id *id,
				      struct rdma_cm_join_mc_attr_ex *mc_join_attr,
				      void *context)
{
	uint32_t need = RDMA_CM_JOIN_MC_ATTR_ADDRESS |
			RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
	uint32_t flags;

	if (mc_join_attr->comp_mask >= RDMA_CM_JOIN_MC_ATTR_RESERVED)
		return rdmaep_fail_plain(ENOTSUP);
	if ((mc_join_attr->comp_mask & need) != need)
		return rdmaep_fail_plain(EINVAL);

	switch (mc_join_attr->join_flags) {
	case RDMA_MC_JOIN_FLAG_FULLMEMBER:
		flags = RDMA_EP_JOIN_FULL_MEMBER;
		break;
	case RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER:
		flags = RDMA_EP_JOIN_SEND_ONLY;
		break;
	default:
		return rdmaep_fail_plain(EINVAL);
	}
	return group_join(to_rdmaep_id(id), mc_join_attr->addr, flags, context);
}

/* The part of an address that tells groups apart: no padding */
static size_t addr_significant(const struct sockaddr *addr)
{
	if (addr && addr->sa_family == AF_INET)
		return offsetof(struct sockaddr_in, sin_zero);
	return rdmaep_addr_size(addr);
}

/* Take a group off its id's list, once the call that joins it has returned. */
static struct rdmaep_group *group_take(struct rdmaep_id *ep,
				       const struct sockaddr *addr, size_t len)
{
	struct rdmaep_group **pos, *group;

	pthread_mutex_lock(&rdmaep_lock);
	for (;;) {
		for (pos = &ep->groups; *pos; pos = &(*pos)->next)
			if (!memcmp(&(*pos)->addr, addr, len))
				break;
		group = *pos;
		if (!group || group->handle)
			break;
		rdmaep_wait_locked(&rdmaep_acked, NULL);
	}
	if (group)
		*pos = group->next;
	pthread_mutex_unlock(&rdmaep_lock);
	return group;
}

/* The QP is attached once, however often the group was joined. */
static bool group_is_shared(struct rdmaep_id *ep,
			    const struct rdmaep_group *group)
{
	const struct rdmaep_group *other;

	pthread_mutex_lock(&rdmaep_lock);
	for (other = ep->groups; other; other = other->next)
		if (other->attached && other->mlid == group->mlid &&
		    !memcmp(&other->mgid, &group->mgid, sizeof(group->mgid)))
			break;
	pthread_mutex_unlock(&rdmaep_lock);
	return other != NULL;
}

/**
 * rdma_leave_multicast() - leave a group
 * @id: the id
 * @addr: the address it was joined by; if it was joined several times, the
 *	last of them is undone
 *
 * Detaches the QP. Waits for the group's events that other threads hold to be
 * acknowledged. Follows rdma_leave_multicast(3).
 *
 * Return: 0, or -1 with errno EINVAL or EADDRNOTAVAIL (not joined).
 */
RDMAEP_API int rdma_leave_multicast(struct rdma_cm_id *id,
				    struct sockaddr *addr)
{
	struct rdmaep_id *ep = to_rdmaep_id(id);
	struct rdma_ep_leave cmd = {
		.hdr = RDMAEP_HDR(cmd),
		.ep = ep->handle,
	};
	size_t len = addr_significant(addr);
	struct rdmaep_group *group;
	int ret;

	if (!len)
		return rdmaep_fail_plain(EINVAL);
	if (rdmaep_ctx_is_parents(ep->ctx))
		return rdmaep_fail_parents();

	group = group_take(ep, addr, len);
	if (!group)
		return rdmaep_fail_plain(EADDRNOTAVAIL);

	/* Who has got the join's event may be about to attach the QP. */
	rdmaep_event_wait_acked(ep, group->cookie, NULL);
	if (group->attached && id->qp && !group_is_shared(ep, group))
		ibv_detach_mcast(id->qp, &group->mgid, group->mlid);
	cmd.group = group->handle;
	ret = rdmaep_call(ep->ctx, RDMA_EP_LEAVE, &cmd);
	free(group);
	return ret;
}
