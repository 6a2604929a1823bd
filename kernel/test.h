/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * Test code of the module: there only in a build with RDMA_EP_TEST=y, and
 * dangerous, since any user may use it. The first half of this file is what
 * selftests include.
 */
#ifndef RDMA_EP_TEST_H
#define RDMA_EP_TEST_H

#include <linux/ioctl.h>
#include <linux/types.h>
#include <rdma/rdma_ep.h>

/* The operation that an endpoint has under way: enum rdma_ep_op. */
enum rdma_ep_test_op {
	RDMA_EP_TEST_OP_NONE,
	RDMA_EP_TEST_OP_RESOLVE,
	RDMA_EP_TEST_OP_SERVICE,
	RDMA_EP_TEST_OP_CONNECT,
	RDMA_EP_TEST_OP_ACCEPT,
};

/**
 * struct rdma_ep_test_event - ioctl(RDMA_EP_TEST_EVENT)
 * @ep: the endpoint
 * @event: enum rdma_ep_event_type
 * @status: as rdma_cm would give it
 * @group: for events of a multicast group: its handle
 * @data_len: bytes of private data, up to 255; byte i is i
 * @fail_mask: bit i makes the handler's allocation i fail
 * @out_allocs: how many allocations the handler has tried
 * @reserved: 0
 *
 * Hands a made-up event to the real handler. A connection request comes with
 * an id of its own, bound as the endpoint is.
 */
struct rdma_ep_test_event {
	__u32 ep;
	__u32 event;
	__s32 status;
	__u32 group;
	__u32 data_len;
	__u32 fail_mask;
	__u32 out_allocs;
	__u32 reserved;
};

/**
 * struct rdma_ep_test_state - ioctl(RDMA_EP_TEST_STATE)
 * @ep: the endpoint
 * @op: enum rdma_ep_test_op: the operation to begin
 * @state: enum rdma_ep_state
 * @disconnecting: a disconnect has been sent
 *
 * Puts the endpoint where a sequence of calls could have brought it, without
 * telling rdma_cm.
 */
struct rdma_ep_test_state {
	__u32 ep;
	__u32 op;
	__u32 state;
	__u32 disconnecting;
};

/**
 * struct rdma_ep_test_count - ioctl(RDMA_EP_TEST_COUNT)
 * @contexts: that live, in the whole module
 * @endpoints: likewise
 * @channels: likewise
 * @events: likewise, those that are part of an endpoint not counted
 */
struct rdma_ep_test_count {
	__u32 contexts;
	__u32 endpoints;
	__u32 channels;
	__u32 events;
};

/**
 * struct rdma_ep_test_patience - ioctl(RDMA_EP_TEST_PATIENCE)
 * @seconds: how long attempts to connect, and disconnects, may take, 0 for
 *	as long as in any other build of the module
 */
struct rdma_ep_test_patience {
	__u32 seconds;
};

/**
 * struct rdma_ep_test_stall - ioctl(RDMA_EP_TEST_STALL)
 * @seconds: how long the ids destroyed from now on wait for their device, 0 for
 *	not at all, which ends the wait of others, too
 */
struct rdma_ep_test_stall {
	__u32 seconds;
};

#define RDMA_EP_TEST_EVENT    _IO(RDMA_EP_IOC_TYPE, 0xf0)
#define RDMA_EP_TEST_STATE    _IO(RDMA_EP_IOC_TYPE, 0xf1)
#define RDMA_EP_TEST_COUNT    _IO(RDMA_EP_IOC_TYPE, 0xf2)
#define RDMA_EP_TEST_PATIENCE _IO(RDMA_EP_IOC_TYPE, 0xf3)
#define RDMA_EP_TEST_STALL    _IO(RDMA_EP_IOC_TYPE, 0xf4)

#ifdef __KERNEL__

struct rdma_ep_ctx;

enum rdma_ep_test_object {
	RDMA_EP_TEST_CONTEXT,
	RDMA_EP_TEST_ENDPOINT,
	RDMA_EP_TEST_CHANNEL,
	RDMA_EP_TEST_EVENT_MORE,
	RDMA_EP_TEST_OBJECTS
};

#ifdef RDMA_EP_TEST

void rdma_ep_test_init(void);
void rdma_ep_test_exit(void);
bool rdma_ep_test_should_fail(void);
unsigned int rdma_ep_test_patience(unsigned int seconds);
void rdma_ep_test_stall(void);
void rdma_ep_test_add(enum rdma_ep_test_object object, int n);
long rdma_ep_test_ioctl(struct rdma_ep_ctx *ctx, unsigned int cmd, void __user *uarg);

#else

static inline void rdma_ep_test_init(void)
{
}

static inline void rdma_ep_test_exit(void)
{
}

static inline bool rdma_ep_test_should_fail(void)
{
	return false;
}

static inline unsigned int rdma_ep_test_patience(unsigned int seconds)
{
	return seconds;
}

static inline void rdma_ep_test_stall(void)
{
}

static inline void rdma_ep_test_add(enum rdma_ep_test_object object, int n)
{
}

static inline long rdma_ep_test_ioctl(struct rdma_ep_ctx *ctx, unsigned int cmd, void __user *uarg)
{
	return -ENOTTY;
}

#endif /* RDMA_EP_TEST */
#endif /* __KERNEL__ */
#endif /* RDMA_EP_TEST_H */
