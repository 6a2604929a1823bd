// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * What a user has, whatever the number of his processes and files. rdma_cm
 * allocates memory for each id and each group that is charged to nobody, so
 * they are counted here.
 */
#include <linux/cred.h>
#include <linux/hashtable.h>
#include <linux/slab.h>

#include "private.h"

/**
 * struct rdma_ep_user - a user who has contexts
 * @kref: held by each of them
 * @node: in rdma_ep_users
 * @uid: who
 * @num_ids: endpoints and multicast groups
 */
struct rdma_ep_user {
	struct kref kref;
	struct hlist_node node;
	kuid_t uid;
	atomic_t num_ids;
};

static DEFINE_HASHTABLE(rdma_ep_users, 6);
static DEFINE_MUTEX(rdma_ep_users_lock);

/**
 * rdma_ep_user_get_current - the user whom new contexts of the caller count for
 *
 * Return: the user, with a reference, or NULL without memory.
 */
struct rdma_ep_user *rdma_ep_user_get_current(void)
{
	kuid_t uid = current_euid();
	struct rdma_ep_user *user;

	mutex_lock(&rdma_ep_users_lock);
	hash_for_each_possible(rdma_ep_users, user, node, __kuid_val(uid)) {
		if (uid_eq(user->uid, uid)) {
			kref_get(&user->kref);
			goto unlock;
		}
	}
	user = kzalloc(sizeof(*user), GFP_KERNEL_ACCOUNT);
	if (user) {
		kref_init(&user->kref);
		user->uid = uid;
		hash_add(rdma_ep_users, &user->node, __kuid_val(uid));
	}
unlock:
	mutex_unlock(&rdma_ep_users_lock);
	return user;
}

static void rdma_ep_user_release(struct kref *kref)
{
	struct rdma_ep_user *user = container_of(kref, struct rdma_ep_user, kref);

	hash_del(&user->node);
	mutex_unlock(&rdma_ep_users_lock);
	kfree(user);
}

void rdma_ep_user_put(struct rdma_ep_user *user)
{
	kref_put_mutex(&user->kref, rdma_ep_user_release, &rdma_ep_users_lock);
}

/**
 * rdma_ep_user_charge - count one more endpoint or group
 * @user: whose
 *
 * Return: 0, or -EDQUOT if he has as many as he may.
 */
int rdma_ep_user_charge(struct rdma_ep_user *user)
{
	if (atomic_inc_return(&user->num_ids) <= READ_ONCE(rdma_ep_max_user_ids))
		return 0;
	atomic_dec(&user->num_ids);
	return -EDQUOT;
}

void rdma_ep_user_uncharge(struct rdma_ep_user *user)
{
	atomic_dec(&user->num_ids);
}

int rdma_ep_fail_quota(struct rdma_ep_call *call)
{
	return rdma_ep_fail(call, -EDQUOT, RDMA_EP_REASON_LIMIT,
			    "a user may have %u endpoints and groups (max_user_ids)",
			    READ_ONCE(rdma_ep_max_user_ids));
}
