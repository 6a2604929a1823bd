/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * Trace events, for perf, bpftrace and trace-cmd. An endpoint is named by its
 * context (a number) and its handle, and never by an address in the kernel.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM rdma_ep

#if !defined(RDMA_EP_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define RDMA_EP_TRACE_H

#include <linux/in6.h>
#include <linux/tracepoint.h>
#include <rdma/rdma_cm.h>
#include <rdma/rdma_ep.h>

/* clang-format off */
#define RDMA_EP_TRACE_EVENTS                            \
	EM(RDMA_EP_EVENT_ADDR_RESOLVED, "ADDR_RESOLVED") \
	EM(RDMA_EP_EVENT_ADDR_ERROR, "ADDR_ERROR") \
	EM(RDMA_EP_EVENT_ROUTE_RESOLVED, "ROUTE_RESOLVED") \
	EM(RDMA_EP_EVENT_ROUTE_ERROR, "ROUTE_ERROR") \
	EM(RDMA_EP_EVENT_CONNECT_REQUEST, "CONNECT_REQUEST") \
	EM(RDMA_EP_EVENT_CONNECT_RESPONSE, "CONNECT_RESPONSE") \
	EM(RDMA_EP_EVENT_CONNECT_ERROR, "CONNECT_ERROR") \
	EM(RDMA_EP_EVENT_UNREACHABLE, "UNREACHABLE") \
	EM(RDMA_EP_EVENT_REJECTED, "REJECTED") \
	EM(RDMA_EP_EVENT_ESTABLISHED, "ESTABLISHED") \
	EM(RDMA_EP_EVENT_DISCONNECTED, "DISCONNECTED") \
	EM(RDMA_EP_EVENT_DEVICE_REMOVAL, "DEVICE_REMOVAL") \
	EM(RDMA_EP_EVENT_MULTICAST_JOIN, "MULTICAST_JOIN") \
	EM(RDMA_EP_EVENT_MULTICAST_ERROR, "MULTICAST_ERROR") \
	EM(RDMA_EP_EVENT_ADDR_CHANGE, "ADDR_CHANGE") \
	EM(RDMA_EP_EVENT_TIMEWAIT_EXIT, "TIMEWAIT_EXIT") \
	EM(RDMA_EP_EVENT_ADDRINFO_RESOLVED, "ADDRINFO_RESOLVED") \
	EM(RDMA_EP_EVENT_ADDRINFO_ERROR, "ADDRINFO_ERROR") \
	EMe(RDMA_EP_EVENT_USER, "USER")

#define RDMA_EP_TRACE_STATES                            \
	EM(RDMA_EP_STATE_IDLE, "IDLE") \
	EM(RDMA_EP_STATE_BOUND, "BOUND") \
	EM(RDMA_EP_STATE_RESOLVING_ADDR, "RESOLVING_ADDR") \
	EM(RDMA_EP_STATE_ADDR_RESOLVED, "ADDR_RESOLVED") \
	EM(RDMA_EP_STATE_RESOLVING_ROUTE, "RESOLVING_ROUTE") \
	EM(RDMA_EP_STATE_ROUTE_RESOLVED, "ROUTE_RESOLVED") \
	EM(RDMA_EP_STATE_LISTENING, "LISTENING") \
	EM(RDMA_EP_STATE_REQUESTED, "REQUESTED") \
	EM(RDMA_EP_STATE_CONNECTING, "CONNECTING") \
	EM(RDMA_EP_STATE_RESPONDED, "RESPONDED") \
	EM(RDMA_EP_STATE_ACCEPTING, "ACCEPTING") \
	EM(RDMA_EP_STATE_CONNECTED, "CONNECTED") \
	EM(RDMA_EP_STATE_DISCONNECTED, "DISCONNECTED") \
	EM(RDMA_EP_STATE_FAILED, "FAILED") \
	EMe(RDMA_EP_STATE_REMOVED, "REMOVED")

/* Let user space know the values behind the names. */
#undef EM
#undef EMe
#define EM(value, name) TRACE_DEFINE_ENUM(value);
#define EMe(value, name) TRACE_DEFINE_ENUM(value);
RDMA_EP_TRACE_EVENTS
RDMA_EP_TRACE_STATES

#undef EM
#undef EMe
#define EM(value, name) { value, name },
#define EMe(value, name) { value, name }

TRACE_EVENT(rdma_ep_call,
	TP_PROTO(u32 ctx, u32 nr, u32 ep, int ret),
	TP_ARGS(ctx, nr, ep, ret),
	TP_STRUCT__entry(
		__field(u32, ctx)
		__field(u32, nr)
		__field(u32, ep)
		__field(int, ret)
	),
	TP_fast_assign(
		__entry->ctx = ctx;
		__entry->nr = nr;
		__entry->ep = ep;
		__entry->ret = ret;
	),
	TP_printk("ctx=%u ep=%u command=%u ret=%d", __entry->ctx, __entry->ep, __entry->nr,
		  __entry->ret)
);

TRACE_EVENT(rdma_ep_state,
	TP_PROTO(u32 ctx, u32 ep, u8 from, u8 to),
	TP_ARGS(ctx, ep, from, to),
	TP_STRUCT__entry(
		__field(u32, ctx)
		__field(u32, ep)
		__field(u8, from)
		__field(u8, to)
	),
	TP_fast_assign(
		__entry->ctx = ctx;
		__entry->ep = ep;
		__entry->from = from;
		__entry->to = to;
	),
	TP_printk("ctx=%u ep=%u %s -> %s", __entry->ctx, __entry->ep,
		  __print_symbolic(__entry->from, RDMA_EP_TRACE_STATES),
		  __print_symbolic(__entry->to, RDMA_EP_TRACE_STATES))
);

DECLARE_EVENT_CLASS(rdma_ep_event_class,
	TP_PROTO(u32 ctx, u32 ep, u8 type, int status),
	TP_ARGS(ctx, ep, type, status),
	TP_STRUCT__entry(
		__field(u32, ctx)
		__field(u32, ep)
		__field(u8, type)
		__field(int, status)
	),
	TP_fast_assign(
		__entry->ctx = ctx;
		__entry->ep = ep;
		__entry->type = type;
		__entry->status = status;
	),
	TP_printk("ctx=%u ep=%u %s status=%d", __entry->ctx, __entry->ep,
		  __print_symbolic(__entry->type, RDMA_EP_TRACE_EVENTS), __entry->status)
);

/* Made by a command, or (listener is not 0) for a request that has come. */
TRACE_EVENT(rdma_ep_created,
	TP_PROTO(u32 ctx, u32 ep, u32 listener),
	TP_ARGS(ctx, ep, listener),
	TP_STRUCT__entry(
		__field(u32, ctx)
		__field(u32, ep)
		__field(u32, listener)
	),
	TP_fast_assign(
		__entry->ctx = ctx;
		__entry->ep = ep;
		__entry->listener = listener;
	),
	TP_printk("ctx=%u ep=%u listener=%u", __entry->ctx, __entry->ep, __entry->listener)
);

TRACE_EVENT(rdma_ep_destroyed,
	TP_PROTO(u32 ctx, u32 ep),
	TP_ARGS(ctx, ep),
	TP_STRUCT__entry(
		__field(u32, ctx)
		__field(u32, ep)
	),
	TP_fast_assign(
		__entry->ctx = ctx;
		__entry->ep = ep;
	),
	TP_printk("ctx=%u ep=%u", __entry->ctx, __entry->ep)
);

/* Its addresses, and the device and port behind the source, if there is one. */
TRACE_EVENT(rdma_ep_path,
	TP_PROTO(u32 ctx, u32 ep, const struct rdma_cm_id *id),
	TP_ARGS(ctx, ep, id),
	TP_STRUCT__entry(
		__field(u32, ctx)
		__field(u32, ep)
		__field(u32, port)
		__array(char, dev, IB_DEVICE_NAME_MAX)
		__array(u8, src, sizeof(struct sockaddr_in6))
		__array(u8, dst, sizeof(struct sockaddr_in6))
	),
	TP_fast_assign(
		__entry->ctx = ctx;
		__entry->ep = ep;
		__entry->port = id->port_num;
		strscpy_pad(__entry->dev, id->device ? dev_name(&id->device->dev) : "-",
			    IB_DEVICE_NAME_MAX);
		memcpy(__entry->src, &id->route.addr.src_addr, sizeof(struct sockaddr_in6));
		memcpy(__entry->dst, &id->route.addr.dst_addr, sizeof(struct sockaddr_in6));
	),
	TP_printk("ctx=%u ep=%u dev=%s/%u src=%pISpc dst=%pISpc", __entry->ctx, __entry->ep,
		  __entry->dev, __entry->port, __entry->src, __entry->dst)
);

/* It has happened, and waits to be read. */
DEFINE_EVENT(rdma_ep_event_class, rdma_ep_event_queued,
	TP_PROTO(u32 ctx, u32 ep, u8 type, int status),
	TP_ARGS(ctx, ep, type, status));

/* Somebody has read it. */
DEFINE_EVENT(rdma_ep_event_class, rdma_ep_event_read,
	TP_PROTO(u32 ctx, u32 ep, u8 type, int status),
	TP_ARGS(ctx, ep, type, status));

/* A connection request was rejected: backlog full, no memory, or no listener. */
TRACE_EVENT(rdma_ep_refused,
	TP_PROTO(u32 ctx, u32 ep, u32 requests, u32 backlog),
	TP_ARGS(ctx, ep, requests, backlog),
	TP_STRUCT__entry(
		__field(u32, ctx)
		__field(u32, ep)
		__field(u32, requests)
		__field(u32, backlog)
	),
	TP_fast_assign(
		__entry->ctx = ctx;
		__entry->ep = ep;
		__entry->requests = requests;
		__entry->backlog = backlog;
	),
	TP_printk("ctx=%u ep=%u requests=%u backlog=%u", __entry->ctx, __entry->ep,
		  __entry->requests, __entry->backlog)
);

#endif /* RDMA_EP_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>

/* For tables of the names, by value. */
#undef EM
#undef EMe
#define EM(value, name) [value] = name,
#define EMe(value, name) [value] = name
