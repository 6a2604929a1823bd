// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * cmfloor - what the kernel's own rdma_cm costs, with no user space above it
 *
 * Two users of rdma_cm in the kernel connect, disconnect and destroy, one
 * connection after the other, without queue pairs: no connection manager that
 * is built on rdma_cm can be faster. Steps that follow from an event are taken
 * in the handler, as kernel users do. Loading runs the benchmark, prints
 * ns=TOTAL count=N, and fails with EAGAIN, so that nothing stays loaded.
 */
#include <linux/completion.h>
#include <linux/inet.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <rdma/rdma_cm.h>

static char *addr = "10.77.0.1";
module_param(addr, charp, 0444);
MODULE_PARM_DESC(addr, "local IPv4 address of an RDMA device");
static int count = 200;
module_param(count, int, 0444);
MODULE_PARM_DESC(count, "connections");
static int warmup = 20;
module_param(warmup, int, 0444);
MODULE_PARM_DESC(warmup, "connections that do not count, before");
static int port = 7460;
module_param(port, int, 0444);
MODULE_PARM_DESC(port, "port to listen on");

static struct workqueue_struct *cmfloor_wq;

/* ib_cm refuses a QP number that it knows: they are never used twice. */
static u32 next_qp_num;

/**
 * struct cmfloor_end - one end of a connection
 * @id: the id
 * @done: the active end's step is over
 * @status: how it ended
 * @release: the passive end destroys itself
 */
struct cmfloor_end {
	struct rdma_cm_id *id;
	struct completion done;
	int status;
	struct work_struct release;
};

static void cmfloor_release(struct work_struct *work)
{
	struct cmfloor_end *end = container_of(work, struct cmfloor_end, release);

	rdma_destroy_id(end->id);
	kfree(end);
}

static int cmfloor_accept(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = {
		.responder_resources = 1,
		.initiator_depth = 1,
		.qp_num = 0x800000 | next_qp_num++,
	};
	struct cmfloor_end *end = kzalloc(sizeof(*end), GFP_KERNEL);
	int ret;

	if (!end)
		return -ENOMEM;
	end->id = id;
	INIT_WORK(&end->release, cmfloor_release);
	id->context = end;
	ret = rdma_accept(id, &param);
	if (ret)	/* the caller has the id destroyed */
		kfree(end);
	return ret;
}

static int cmfloor_passive(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct cmfloor_end *end = id->context;

	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return cmfloor_accept(id);
	case RDMA_CM_EVENT_DISCONNECTED:
		rdma_disconnect(id);
		queue_work(cmfloor_wq, &end->release);
		return 0;
	default:
		return 0;
	}
}

static int cmfloor_connect(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = {
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = 7,
		.rnr_retry_count = 7,
		.qp_num = next_qp_num++ & 0x7fffff,
	};

	return rdma_connect_locked(id, &param);
}

static int cmfloor_active(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct cmfloor_end *end = id->context;
	int ret = event->status;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		ret = rdma_resolve_route(id, 2000);
		if (!ret)
			return 0;
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		ret = cmfloor_connect(id);
		if (!ret)
			return 0;
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		ret = rdma_accept(id, NULL);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		return 0;
	default:
		ret = ret ?: -EPROTO;
	}
	end->status = ret;
	complete(&end->done);
	return 0;
}

static int cmfloor_one(struct sockaddr_in *dst)
{
	struct cmfloor_end end = {};
	int ret;

	init_completion(&end.done);
	end.id = rdma_create_id(&init_net, cmfloor_active, &end, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(end.id))
		return PTR_ERR(end.id);

	ret = rdma_resolve_addr(end.id, NULL, (struct sockaddr *)dst, 2000);
	if (ret)
		goto destroy;
	wait_for_completion(&end.done);
	ret = end.status;
	if (ret)
		goto destroy;

	reinit_completion(&end.done);
	ret = rdma_disconnect(end.id);
	if (ret)
		goto destroy;
	wait_for_completion(&end.done);
	ret = end.status;
destroy:
	rdma_destroy_id(end.id);
	return ret;
}

static int cmfloor_run(struct sockaddr_in *dst)
{
	u64 start = 0;
	int ret = 0;
	int i;

	for (i = 0; !ret && i < warmup + count; i++) {
		if (i == warmup)
			start = ktime_get_ns();
		ret = cmfloor_one(dst);
	}
	if (!ret)
		pr_info("cmfloor: ns=%llu count=%d\n", ktime_get_ns() - start, count);
	return ret;
}

static int __init cmfloor_init(void)
{
	struct sockaddr_in dst = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct rdma_cm_id *listener;
	int ret;

	if (!in4_pton(addr, -1, (u8 *)&dst.sin_addr.s_addr, -1, NULL))
		return -EINVAL;
	next_qp_num = (u32)ktime_get_ns() & 0x3fffff;

	cmfloor_wq = alloc_workqueue("cmfloor", WQ_UNBOUND, 0);
	if (!cmfloor_wq)
		return -ENOMEM;
	listener = rdma_create_id(&init_net, cmfloor_passive, NULL, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(listener)) {
		destroy_workqueue(cmfloor_wq);
		return PTR_ERR(listener);
	}
	ret = rdma_bind_addr(listener, (struct sockaddr *)&dst);
	if (!ret)
		ret = rdma_listen(listener, 16);
	if (!ret)
		ret = cmfloor_run(&dst);
	rdma_destroy_id(listener);
	destroy_workqueue(cmfloor_wq);
	if (ret)
		pr_err("cmfloor: error %d\n", ret);
	return ret ?: -EAGAIN;
}
module_init(cmfloor_init);

MODULE_DESCRIPTION("The floor under connection managers: rdma_cm with nothing above it");
MODULE_LICENSE("Dual BSD/GPL");
