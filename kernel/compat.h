/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * What differs between kernels. Kbuild has looked into rdma_cm.h for what it
 * offers (HAVE_*); elsewhere nobody asks for a version.
 */
#ifndef RDMA_EP_COMPAT_H
#define RDMA_EP_COMPAT_H

#include <linux/io_uring.h>
#include <linux/io_uring_types.h>
#ifdef HAVE_URING_CMD_H
#include <linux/io_uring/cmd.h>
#endif
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/version.h>
#include <rdma/rdma_cm.h>
#include <rdma/rdma_ep.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0)
#error "rdma_ep supports Linux 6.1 and later"
#endif

#ifdef HAVE_RDMA_RESOLVE_IB_SERVICE

static inline int rdma_ep_cm_resolve_service(struct rdma_cm_id *id,
					     struct rdma_ep_resolve_service *cmd)
{
	struct rdma_ucm_ib_service service = {
		.service_id = cmd->service_id,
		.flags = cmd->by,
	};

	BUILD_BUG_ON(RDMA_EP_SERVICE_BY_ID != RDMA_USER_CM_IB_SERVICE_FLAG_ID);
	BUILD_BUG_ON(RDMA_EP_SERVICE_BY_NAME != RDMA_USER_CM_IB_SERVICE_FLAG_NAME);
	BUILD_BUG_ON(sizeof(cmd->name) != sizeof(service.service_name));
	memcpy(service.service_name, cmd->name, sizeof(cmd->name));
	return rdma_resolve_ib_service(id, &service);
}

static inline u32 rdma_ep_cm_num_services(struct rdma_cm_id *id)
{
	return id->route.num_service_recs;
}

static inline void rdma_ep_cm_get_service(struct rdma_cm_id *id, u32 i,
					  struct rdma_ep_service_rec *rec)
{
	const struct sa_service_rec *src = &id->route.service_recs[i];

	rec->id = src->id;
	rec->pkey = src->pkey;
	rec->lease = src->lease;
	memcpy(rec->gid, src->gid, sizeof(rec->gid));
	memcpy(rec->key, src->key, sizeof(rec->key));
	memcpy(rec->name, src->name, sizeof(rec->name));
	memcpy(rec->data_8, src->data_8, sizeof(rec->data_8));
	memcpy(rec->data_16, src->data_16, sizeof(rec->data_16));
	memcpy(rec->data_32, src->data_32, sizeof(rec->data_32));
	memcpy(rec->data_64, src->data_64, sizeof(rec->data_64));
}

#define RDMA_EP_CM_HAS_SERVICE		   RDMA_EP_FEATURE_IB_SERVICE
#define RDMA_EP_CM_EVENT_ADDRINFO_RESOLVED RDMA_CM_EVENT_ADDRINFO_RESOLVED
#define RDMA_EP_CM_EVENT_ADDRINFO_ERROR	   RDMA_CM_EVENT_ADDRINFO_ERROR

#else

static inline int rdma_ep_cm_resolve_service(struct rdma_cm_id *id,
					     struct rdma_ep_resolve_service *cmd)
{
	return -EOPNOTSUPP;
}

static inline u32 rdma_ep_cm_num_services(struct rdma_cm_id *id)
{
	return 0;
}

static inline void rdma_ep_cm_get_service(struct rdma_cm_id *id, u32 i,
					  struct rdma_ep_service_rec *rec)
{
}

#define RDMA_EP_CM_HAS_SERVICE		   0
/* Values that rdma_cm never has */
#define RDMA_EP_CM_EVENT_ADDRINFO_RESOLVED RDMA_EP_EVENT_ADDRINFO_RESOLVED
#define RDMA_EP_CM_EVENT_ADDRINFO_ERROR	   RDMA_EP_EVENT_ADDRINFO_ERROR

#endif /* HAVE_RDMA_RESOLVE_IB_SERVICE */

#ifdef HAVE_RDMA_RESTRICT_NODE_TYPE

#define RDMA_EP_CM_HAS_NODE_TYPE RDMA_EP_FEATURE_NODE_TYPE

static inline int rdma_ep_cm_restrict_node_type(struct rdma_cm_id *id, u8 node_type)
{
	return rdma_restrict_node_type(id, node_type);
}

#else

#define RDMA_EP_CM_HAS_NODE_TYPE 0

static inline int rdma_ep_cm_restrict_node_type(struct rdma_cm_id *id, u8 node_type)
{
	return -EOPNOTSUPP;
}

#endif /* HAVE_RDMA_RESTRICT_NODE_TYPE */

/*
 * io_uring
 */

#ifdef CONFIG_IO_URING
#define RDMA_EP_HAS_URING RDMA_EP_FEATURE_URING
#else
#define RDMA_EP_HAS_URING 0
#endif

static inline struct rdma_ep_uring_cmd rdma_ep_uring_sqe_cmd(const struct io_uring_cmd *ioucmd)
{
#ifdef HAVE_URING_SQE
	const struct rdma_ep_uring_cmd *cmd = (const void *)ioucmd->sqe->cmd;
#else
	const struct rdma_ep_uring_cmd *cmd = ioucmd->cmd;
#endif

	/* In memory that the submitter can write to meanwhile. */
	return (struct rdma_ep_uring_cmd){
		.arg_uptr = READ_ONCE(cmd->arg_uptr),
		.flags = READ_ONCE(cmd->flags),
		.reserved = READ_ONCE(cmd->reserved),
	};
}

static inline void rdma_ep_uring_done(struct io_uring_cmd *ioucmd, int ret,
				      unsigned int issue_flags)
{
#ifdef HAVE_URING_DONE32
	io_uring_cmd_done(ioucmd, ret, issue_flags);
#else
	io_uring_cmd_done(ioucmd, ret, 0, issue_flags);
#endif
}

/* Defines a function for rdma_ep_uring_in_task() that calls @_fn. */
#ifdef HAVE_URING_TW_REQ
#define RDMA_EP_URING_TASK_WORK(_name, _fn)                                            \
	static void _name(struct io_tw_req tw_req, io_tw_token_t tw)                   \
	{                                                                              \
		_fn(io_uring_cmd_from_tw(tw_req), IO_URING_CMD_TASK_WORK_ISSUE_FLAGS); \
	}
#else
#define RDMA_EP_URING_TASK_WORK(_name, _fn)                                      \
	static void _name(struct io_uring_cmd *ioucmd, unsigned int issue_flags) \
	{                                                                        \
		_fn(ioucmd, issue_flags);                                        \
	}
#endif

/* One that waits for many completions need not be woken for each. */
#ifdef HAVE_URING_LAZY
#define rdma_ep_uring_in_task io_uring_cmd_do_in_task_lazy
#else
#define rdma_ep_uring_in_task io_uring_cmd_complete_in_task
#endif

/* Has the ring been closed? */
static inline bool rdma_ep_uring_ring_gone(struct io_uring_cmd *ioucmd)
{
#ifdef CONFIG_IO_URING
	return percpu_ref_is_dying(&cmd_to_io_kiocb(ioucmd)->ctx->refs);
#else
	return false;
#endif
}

#ifdef HAVE_URING_CANCEL

/* The kernel tells when the ring or the process ends. */
#define RDMA_EP_URING_TELLS    true
#define RDMA_EP_URING_F_CANCEL IO_URING_F_CANCEL

static inline void rdma_ep_uring_mark(struct io_uring_cmd *ioucmd, unsigned int issue_flags)
{
	io_uring_cmd_mark_cancelable(ioucmd, issue_flags);
}

static inline bool rdma_ep_uring_gone(struct io_uring_cmd *ioucmd)
{
#ifdef CONFIG_IO_URING
	/* Of a thread the kernel does not tell. */
	return rdma_ep_uring_ring_gone(ioucmd) ||
	       READ_ONCE(io_uring_cmd_get_task(ioucmd)->flags) & PF_EXITING;
#else
	return false;
#endif
}

static inline bool rdma_ep_uring_executing(struct io_uring_cmd *ioucmd)
{
	return false;
}

#else

/* It does not, and waits: one has to look. */
#define RDMA_EP_URING_TELLS    false
#define RDMA_EP_URING_F_CANCEL 0

static inline void rdma_ep_uring_mark(struct io_uring_cmd *ioucmd, unsigned int issue_flags)
{
}

/* Is the task in execve(2), which waits for its requests, or may fail yet? */
static inline bool rdma_ep_uring_executing(struct io_uring_cmd *ioucmd)
{
#ifdef CONFIG_IO_URING
	return cmd_to_io_kiocb(ioucmd)->task->in_execve;
#else
	return false;
#endif
}

static inline bool rdma_ep_uring_gone(struct io_uring_cmd *ioucmd)
{
#ifdef CONFIG_IO_URING
	struct task_struct *task = cmd_to_io_kiocb(ioucmd)->task;

	/* A ring's own thread (SQPOLL) neither exits nor executes: its process does. */
	return rdma_ep_uring_ring_gone(ioucmd) || READ_ONCE(task->flags) & PF_EXITING ||
	       READ_ONCE(task->signal->flags) & SIGNAL_GROUP_EXIT ||
	       READ_ONCE(task->signal->group_exec_task);
#else
	return false;
#endif
}

#endif /* HAVE_URING_CANCEL */

#endif /* RDMA_EP_COMPAT_H */
