// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Why a call failed, in words. A reason goes with the errno of the call that
 * it belongs to; nothing here changes an endpoint.
 */
#include <linux/inet.h>
#include <linux/netdevice.h>
#include <net/ipv6.h>
#include <rdma/ib.h>
#include <rdma/ib_addr.h>

#include "private.h"
#include "trace.h"

/**
 * rdma_ep_fail - note why a call fails
 * @call: the call
 * @err: the errno, negative
 * @code: RDMA_EP_REASON_*
 * @fmt: a sentence, without a full stop
 *
 * Return: @err.
 */
int rdma_ep_fail(struct rdma_ep_call *call, int err, u32 code, const char *fmt, ...)
{
	va_list args;

	call->reason.code = code;
	va_start(args, fmt);
	vsnprintf(call->reason.text, sizeof(call->reason.text), fmt, args);
	va_end(args);
	return err;
}

const char *rdma_ep_state_name(unsigned int state)
{
	static const char *const names[] = {
		[RDMA_EP_STATE_IDLE] = "idle",
		[RDMA_EP_STATE_BOUND] = "bound",
		[RDMA_EP_STATE_RESOLVING_ADDR] = "resolving its address",
		[RDMA_EP_STATE_ADDR_RESOLVED] = "resolved to an address",
		[RDMA_EP_STATE_RESOLVING_ROUTE] = "resolving its route",
		[RDMA_EP_STATE_ROUTE_RESOLVED] = "resolved to a route",
		[RDMA_EP_STATE_LISTENING] = "listening",
		[RDMA_EP_STATE_REQUESTED] = "a request not answered yet",
		[RDMA_EP_STATE_CONNECTING] = "connecting",
		[RDMA_EP_STATE_RESPONDED] = "responded to",
		[RDMA_EP_STATE_ACCEPTING] = "accepting",
		[RDMA_EP_STATE_CONNECTED] = "connected",
		[RDMA_EP_STATE_DISCONNECTED] = "disconnected",
		[RDMA_EP_STATE_FAILED] = "one that failed to connect",
		[RDMA_EP_STATE_REMOVED] = "without a device",
	};

	return state < ARRAY_SIZE(names) ? names[state] : "in an unknown state";
}

/* The state as the uapi has it, for tools to parse. */
const char *rdma_ep_state_symbol(unsigned int state)
{
	static const char *const symbols[] = { RDMA_EP_TRACE_STATES };

	return state < ARRAY_SIZE(symbols) ? symbols[state] : "?";
}

/* An event's type, likewise. */
const char *rdma_ep_event_symbol(unsigned int type)
{
	static const char *const symbols[] = { RDMA_EP_TRACE_EVENTS };

	return type < ARRAY_SIZE(symbols) ? symbols[type] : "?";
}

int rdma_ep_fail_state(struct rdma_ep_call *call, struct rdma_ep *ep, const char *what)
{
	u8 state = READ_ONCE(ep->state);

	/* Its id may not have been destroyed yet. */
	if (state == RDMA_EP_STATE_REMOVED)
		return rdma_ep_fail_no_id(call, ep);
	return rdma_ep_fail(call, -EINVAL, RDMA_EP_REASON_STATE, "cannot %s: the endpoint is %s",
			    what, rdma_ep_state_name(state));
}

/* The endpoint has an rdma_cm_id, but that has no device. */
int rdma_ep_fail_unbound(struct rdma_ep_call *call, struct rdma_ep *ep)
{
	if (READ_ONCE(ep->state) == RDMA_EP_STATE_REMOVED)
		return rdma_ep_fail_no_id(call, ep);
	return rdma_ep_fail(call, -EINVAL, RDMA_EP_REASON_STATE,
			    "the endpoint is not bound to a device");
}

/* There is no event to wait for, or none yet: say why. */
int rdma_ep_fail_wait(struct rdma_ep_call *call, struct rdma_ep *ep, int err)
{
	switch (err) {
	case -ECANCELED:
		/* Not the endpoint has gone, but who waited. */
		if (!READ_ONCE(ep->dead))
			return err;
		fallthrough;
	case -ENODEV:
		return rdma_ep_fail_no_id(call, ep);
	case -ENODATA:
		return rdma_ep_fail(call, err, RDMA_EP_REASON_STATE,
				    "nothing is under way, or another thread has got its event");
	default:
		return err;
	}
}

/* The endpoint has no rdma_cm_id any more: say why. */
int rdma_ep_fail_no_id(struct rdma_ep_call *call, struct rdma_ep *ep)
{
	if (READ_ONCE(ep->dead))
		return rdma_ep_fail(call, -ECANCELED, RDMA_EP_REASON_DESTROYED,
				    "another thread destroyed the endpoint");
	if (READ_ONCE(ep->state) == RDMA_EP_STATE_FAILED)
		return rdma_ep_fail_state(call, ep, "go on");
	return rdma_ep_fail(call, -ENODEV, RDMA_EP_REASON_DEVICE_REMOVED,
			    "the RDMA device was removed; the endpoint can only be destroyed");
}

/* The port; of an InfiniBand service id, its last two bytes. */
static u16 rdma_ep_port(const struct sockaddr *addr)
{
	switch (addr->sa_family) {
	case AF_INET:
		return be16_to_cpu(((const struct sockaddr_in *)addr)->sin_port);
	case AF_INET6:
		return be16_to_cpu(((const struct sockaddr_in6 *)addr)->sin6_port);
	case AF_IB:
		return be64_to_cpu(((const struct sockaddr_ib *)addr)->sib_sid);
	default:
		return 0;
	}
}

/* The netdev that has the address, with a reference, or NULL. */
static struct net_device *rdma_ep_netdev_of(struct rdma_ep *ep, const struct sockaddr *addr)
{
	struct rdma_dev_addr dev_addr = {
		.net = ep->id->route.addr.dev_addr.net,
	};

	if (addr->sa_family == AF_INET6 &&
	    ipv6_addr_type(&((struct sockaddr_in6 *)addr)->sin6_addr) & IPV6_ADDR_LINKLOCAL)
		dev_addr.bound_dev_if = ((struct sockaddr_in6 *)addr)->sin6_scope_id;
	if (rdma_translate_ip(addr, &dev_addr))
		return NULL;
	return dev_get_by_index(dev_addr.net, dev_addr.bound_dev_if);
}

static bool rdma_ep_is_local(struct rdma_ep *ep, const struct sockaddr *addr)
{
	struct net_device *dev = rdma_ep_netdev_of(ep, addr);

	dev_put(dev);
	return dev;
}

static int rdma_ep_fail_no_device(struct rdma_ep_call *call, struct rdma_ep *ep,
				  const struct sockaddr *addr)
{
	struct net_device *dev = rdma_ep_netdev_of(ep, addr);
	struct ib_device *device;

	if (!dev)
		return rdma_ep_fail(call, -ENODEV, RDMA_EP_REASON_NO_DEVICE,
				    "no RDMA device for the address in this network namespace");
	device = ib_device_get_by_netdev(dev, RDMA_DRIVER_UNKNOWN);
	if (device) {
		rdma_ep_fail(call, -ENODEV, RDMA_EP_REASON_PORT_DOWN,
			     "RDMA device %s on netdev %s is not active", dev_name(&device->dev),
			     dev->name);
		ib_device_put(device);
	} else {
		rdma_ep_fail(call, -ENODEV, RDMA_EP_REASON_NO_DEVICE, "no RDMA device on netdev %s",
			     dev->name);
	}
	dev_put(dev);
	return -ENODEV;
}

static bool rdma_ep_any_addr(const struct sockaddr *addr)
{
	switch (addr->sa_family) {
	case AF_INET:
		return ipv4_is_zeronet(((const struct sockaddr_in *)addr)->sin_addr.s_addr);
	case AF_INET6:
		return ipv6_addr_any(&((const struct sockaddr_in6 *)addr)->sin6_addr);
	default:
		return false;
	}
}

/**
 * rdma_ep_fail_bind - why rdma_bind_addr() failed
 * @call: the call
 * @ep: the endpoint, locked, with an id
 * @err: what rdma_bind_addr() returned
 * @addr: the address
 *
 * rdma_cm says EADDRNOTAVAIL both for an address that is not here and for a
 * port that a wildcard (or a user of the wildcard's port) holds. The latter
 * is EADDRINUSE for our callers.
 *
 * Return: the errno for the caller.
 */
int rdma_ep_fail_bind(struct rdma_ep_call *call, struct rdma_ep *ep, int err,
		      const struct sockaddr *addr)
{
	u16 port = rdma_ep_port(addr);

	switch (err) {
	case -EADDRNOTAVAIL:
		if (addr->sa_family != AF_IB && !rdma_ep_any_addr(addr) &&
		    !rdma_ep_is_local(ep, addr))
			return rdma_ep_fail(call, err, RDMA_EP_REASON_ADDR_NOT_LOCAL,
					    "no netdev in this network namespace has the address");
		if (!port)
			return rdma_ep_fail(call, err, RDMA_EP_REASON_ADDR_IN_USE,
					    "no port is free");
		fallthrough;
	case -EADDRINUSE:
		return rdma_ep_fail(call, -EADDRINUSE, RDMA_EP_REASON_ADDR_IN_USE,
				    "port %u is in use, maybe by a kernel user of rdma_cm", port);
	case -EACCES:
		return rdma_ep_fail(call, err, RDMA_EP_REASON_ADDR_PRIVILEGED,
				    "port %u needs CAP_NET_BIND_SERVICE", port);
	case -ENODEV:
		return rdma_ep_fail_no_device(call, ep, addr);
	case -EAFNOSUPPORT:
		return rdma_ep_fail(call, -EINVAL, RDMA_EP_REASON_ADDR_FORMAT,
				    "address family %u is not supported", addr->sa_family);
	default:
		return rdma_ep_fail(call, err, RDMA_EP_REASON_NONE, "binding the address failed");
	}
}

/**
 * rdma_ep_fail_resolve - why a resolution failed
 * @call: the call
 * @err: what rdma_cm returned, or the negative status of its event
 *
 * Return: @err.
 */
int rdma_ep_fail_resolve(struct rdma_ep_call *call, int err)
{
	switch (err) {
	case -ENODEV:
		return rdma_ep_fail(call, err, RDMA_EP_REASON_NO_DEVICE,
				    "the way to the destination leads over no active RDMA device");
	case -ENETUNREACH:
		return rdma_ep_fail(call, err, RDMA_EP_REASON_UNREACHABLE,
				    "no route to the destination");
	case -EHOSTUNREACH:
		return rdma_ep_fail(call, err, RDMA_EP_REASON_UNREACHABLE,
				    "the destination does not answer on its link");
	case -ETIMEDOUT:
		return rdma_ep_fail(call, err, RDMA_EP_REASON_TIMEOUT,
				    "the destination could not be resolved in time");
	case -EADDRNOTAVAIL:
		return rdma_ep_fail(call, err, RDMA_EP_REASON_ADDR_NOT_LOCAL,
				    "no netdev in this network namespace has the source address");
	case -EINVAL:
		return rdma_ep_fail(call, err, RDMA_EP_REASON_VALUE,
				    "source and destination do not fit each other");
	default:
		return rdma_ep_fail(call, err, RDMA_EP_REASON_NONE,
				    "the destination could not be resolved");
	}
}

/**
 * rdma_ep_explain - say what the status of an event means, if it is a failure
 * @call: the call that reports the event
 * @ep: the endpoint
 * @t: the event
 */
void rdma_ep_explain(struct rdma_ep_call *call, struct rdma_ep *ep, const struct rdma_ep_taken *t)
{
	const char *text = "refused";

	if (!t->status && t->type != RDMA_EP_EVENT_DEVICE_REMOVAL)
		return;
	switch (t->type) {
	case RDMA_EP_EVENT_DEVICE_REMOVAL:
		rdma_ep_fail_no_id(call, ep);
		return;
	case RDMA_EP_EVENT_ADDR_ERROR:
	case RDMA_EP_EVENT_ROUTE_ERROR:
		rdma_ep_fail_resolve(call, t->status);
		return;
	case RDMA_EP_EVENT_REJECTED:
		mutex_lock(&ep->lock);
		if (ep->id)
			text = rdma_reject_msg(ep->id, t->status);
		mutex_unlock(&ep->lock);
		rdma_ep_fail(call, 0, RDMA_EP_REASON_REJECTED, "the peer rejected: %s", text);
		return;
	case RDMA_EP_EVENT_USER:
		return; /* its status means what the writer wants it to */
	default:
		break;
	}
	if (t->status == -ETIMEDOUT)
		rdma_ep_fail(call, 0, RDMA_EP_REASON_TIMEOUT, "the peer did not answer in time");
	else
		rdma_ep_fail(call, 0, RDMA_EP_REASON_UNREACHABLE,
			     "the peer could not be reached (%d)", t->status);
}
