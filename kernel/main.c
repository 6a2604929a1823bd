// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * The module, its device, and the context that each open of it makes.
 */
#include <linux/fs.h>
#include <linux/memcontrol.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <rdma/rdma_netlink.h>

#include "private.h"

MODULE_AUTHOR("The rdma_ep authors");
MODULE_DESCRIPTION("RDMA connection manager for user space");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION(RDMA_EP_VERSION);
/*
 * The device's number is not fixed, so no alias of its node can load the module
 * when it is opened. Asking ib_core for the device does it, see lib/autoload.c.
 */
MODULE_ALIAS_RDMA_CLIENT("rdma_ep");

unsigned int rdma_ep_max_endpoints = 131072;
module_param_named(max_endpoints, rdma_ep_max_endpoints, uint, 0644);
MODULE_PARM_DESC(max_endpoints, "Endpoints in one context, at most");

unsigned int rdma_ep_max_user_ids = 1048576;
module_param_named(max_user_ids, rdma_ep_max_user_ids, uint, 0644);
MODULE_PARM_DESC(max_user_ids, "Endpoints and multicast groups of one user, at most");

unsigned int rdma_ep_max_backlog = 1024;
module_param_named(max_backlog, rdma_ep_max_backlog, uint, 0644);
MODULE_PARM_DESC(max_backlog, "Unread connection requests of one listener, at most");

/*
 * Destroys the ids of removed devices: the removal waits for them. Nothing else is
 * on it, since a device that is there may keep ids for ever and would fill it.
 */
struct workqueue_struct *rdma_ep_removal_wq;

/* Destroys endpoints, and ids given up; who waits for one can do without it. */
struct workqueue_struct *rdma_ep_destroy_wq;

/* Destroys the endpoint of a request of io_uring that need not wait long for it. */
struct workqueue_struct *rdma_ep_uring_wq;

/* What is to be done at a certain time, and is done at once. */
struct workqueue_struct *rdma_ep_timer_wq;

static int rdma_ep_open(struct inode *inode, struct file *file)
{
	static atomic_t last_number;
	struct rdma_ep_ctx *ctx;

	ctx = kzalloc(sizeof(*ctx), GFP_KERNEL_ACCOUNT);
	if (!ctx)
		return -ENOMEM;
	ctx->user = rdma_ep_user_get_current();
	if (!ctx->user) {
		kfree(ctx);
		return -ENOMEM;
	}

	rdma_ep_test_add(RDMA_EP_TEST_CONTEXT, 1);
	kref_init(&ctx->kref);
	ctx->number = atomic_inc_return(&last_number);
	ctx->ns = rdma_ep_ns_get_current();
	ctx->stats = ctx->ns->stats;
	ctx->memcg = get_mem_cgroup_from_mm(current->mm);
	xa_init_flags(&ctx->eps, XA_FLAGS_ALLOC1 | XA_FLAGS_ACCOUNT);
	spin_lock_init(&ctx->ev_lock);
	INIT_LIST_HEAD(&ctx->channels);
	INIT_DELAYED_WORK(&ctx->overdue_work, rdma_ep_overdue_work);
	rdma_ep_uring_init(ctx);
	file->private_data = ctx;
	rdma_ep_count(ctx, RDMA_EP_COUNT_CTX_OPENED);
	return stream_open(inode, file);
}

void rdma_ep_ctx_release(struct kref *kref)
{
	struct rdma_ep_ctx *ctx = container_of(kref, struct rdma_ep_ctx, kref);

	WARN_ON(!xa_empty(&ctx->eps));
	xa_destroy(&ctx->eps);
	mem_cgroup_put(ctx->memcg);
	rdma_ep_ns_put(ctx->ns);
	rdma_ep_user_put(ctx->user);
	rdma_ep_test_add(RDMA_EP_TEST_CONTEXT, -1);
	kfree(ctx);
}

static int rdma_ep_close(struct inode *inode, struct file *file)
{
	struct rdma_ep_ctx *ctx = file->private_data;

	rdma_ep_uring_exit(ctx);
	rdma_ep_close_all(ctx);
	cancel_delayed_work_sync(&ctx->overdue_work);
	rdma_ep_count(ctx, RDMA_EP_COUNT_CTX_CLOSED);
	rdma_ep_ctx_put(ctx);
	return 0;
}

static int rdma_ep_flush(struct file *file, fl_owner_t owner)
{
	rdma_ep_uring_flush(file->private_data);
	return 0;
}

static const struct file_operations rdma_ep_fops = {
	.owner = THIS_MODULE,
	.open = rdma_ep_open,
	.flush = rdma_ep_flush,
	.release = rdma_ep_close,
	.unlocked_ioctl = rdma_ep_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.show_fdinfo = rdma_ep_show_fdinfo,
	.uring_cmd = rdma_ep_uring_cmd,
};

static struct miscdevice rdma_ep_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "rdma_ep",
	.nodename = "infiniband/rdma_ep",
	.mode = 0666,
	.fops = &rdma_ep_fops,
};

/*
 * In this order: only endpoints have work on the last two, and none is left once
 * the first two have run empty.
 */
static struct workqueue_struct **const rdma_ep_wqs[] = {
	&rdma_ep_uring_wq,
	&rdma_ep_destroy_wq,
	&rdma_ep_removal_wq,
	&rdma_ep_timer_wq,
};

static void rdma_ep_destroy_wqs(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rdma_ep_wqs); i++)
		if (*rdma_ep_wqs[i])
			destroy_workqueue(*rdma_ep_wqs[i]);
}

static void rdma_ep_flush_wqs(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rdma_ep_wqs); i++)
		flush_workqueue(*rdma_ep_wqs[i]);
}

static int rdma_ep_alloc_wqs(void)
{
	rdma_ep_uring_wq = alloc_workqueue("rdma_ep_uring", WQ_UNBOUND, 0);
	rdma_ep_destroy_wq = alloc_workqueue("rdma_ep_destroy", WQ_UNBOUND, 0);
	rdma_ep_removal_wq = alloc_workqueue("rdma_ep_removal", WQ_UNBOUND, 0);
	rdma_ep_timer_wq = alloc_workqueue("rdma_ep_timer", WQ_UNBOUND, 0);
	if (rdma_ep_uring_wq && rdma_ep_destroy_wq && rdma_ep_removal_wq && rdma_ep_timer_wq)
		return 0;
	rdma_ep_destroy_wqs();
	return -ENOMEM;
}

static int __init rdma_ep_init(void)
{
	int ret;

	ret = rdma_ep_cache_init();
	if (ret)
		return ret;
	ret = rdma_ep_alloc_wqs();
	if (ret)
		goto cache_exit;
	ret = rdma_ep_stats_init();
	if (ret)
		goto destroy_wqs;
	ret = misc_register(&rdma_ep_misc);
	if (ret)
		goto stats_exit;
	rdma_ep_test_init();
	return 0;

stats_exit:
	rdma_ep_stats_exit();
destroy_wqs:
	rdma_ep_destroy_wqs();
cache_exit:
	rdma_ep_cache_exit();
	return ret;
}

static void __exit rdma_ep_exit(void)
{
	rdma_ep_test_exit();
	misc_deregister(&rdma_ep_misc);
	/* While endpoints are left, a device's removal may queue work for them. */
	rdma_ep_flush_wqs();
	rdma_ep_stats_exit();
	rdma_ep_destroy_wqs();
	rdma_ep_cache_exit();
}

module_init(rdma_ep_init);
module_exit(rdma_ep_exit);
