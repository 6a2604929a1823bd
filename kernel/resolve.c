// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * Addresses: from user space to rdma_cm, binding, resolving.
 */
#include <net/ipv6.h>
#include <rdma/ib_addr.h>

#include "private.h"

/**
 * rdma_ep_sockaddr - check an address that came from user space
 * @call: the call
 * @addr: the address, in kernel memory
 * @optional: whether there may be none
 *
 * Return: the address, NULL for none, or ERR_PTR() of -EINVAL or -EOPNOTSUPP.
 */
struct sockaddr *rdma_ep_sockaddr(struct rdma_ep_call *call, struct rdma_ep_addr *addr,
				  bool optional)
{
	struct sockaddr *sa = (struct sockaddr *)addr->sa;
	int need;

	if (addr->len > sizeof(addr->sa))
		return ERR_PTR(rdma_ep_fail(call, -EINVAL, RDMA_EP_REASON_ADDR_FORMAT,
					    "address of %u bytes, the longest has %u", addr->len,
					    RDMA_EP_ADDR_SIZE));
	if (addr->reserved || memchr_inv(addr->sa + addr->len, 0, sizeof(addr->sa) - addr->len))
		return ERR_PTR(rdma_ep_fail(call, -EOPNOTSUPP, RDMA_EP_REASON_STRUCT,
					    "bytes after the address's %u are not 0", addr->len));
	if (!addr->len && optional)
		return NULL;

	need = rdma_addr_size(sa);
	if (addr->len < sizeof(sa->sa_family) || !need)
		return ERR_PTR(rdma_ep_fail(call, -EINVAL, RDMA_EP_REASON_ADDR_FORMAT,
					    "address family %u is not IPv4, IPv6 or InfiniBand",
					    addr->len ? sa->sa_family : 0));
	if (addr->len < need)
		return ERR_PTR(rdma_ep_fail(call, -EINVAL, RDMA_EP_REASON_ADDR_FORMAT,
					    "address of %u bytes, its family needs %d", addr->len,
					    need));
	return sa;
}

/* Is it of some link, without saying which? That of a group is the device's. */
static bool rdma_ep_lacks_scope(const struct sockaddr *sa)
{
	const struct sockaddr_in6 *sin6 = (const struct sockaddr_in6 *)sa;
	int type;

	if (sa->sa_family != AF_INET6 || sin6->sin6_scope_id)
		return false;
	type = ipv6_addr_type(&sin6->sin6_addr);
	return type & IPV6_ADDR_LINKLOCAL && !(type & IPV6_ADDR_MULTICAST);
}

static int rdma_ep_fail_scope(struct rdma_ep_call *call)
{
	return rdma_ep_fail(call, -EINVAL, RDMA_EP_REASON_ADDR_SCOPE,
			    "a link-local address needs a scope id");
}

/**
 * rdma_ep_settle - find out how far a failed call has bound an idle endpoint
 * @ep: the endpoint, locked, with an id
 *
 * rdma_cm may have bound the id before it failed. If it has not, it has left
 * behind the address that it could not bind to, and would take that up again.
 *
 * Return: the endpoint's state: idle or bound.
 */
u8 rdma_ep_settle(struct rdma_ep *ep)
{
	struct rdma_addr *addr = &ep->id->route.addr;

	lockdep_assert_held(&ep->lock);

	/* Only of an idle id can the port be made exclusive. */
	if (rdma_set_reuseaddr(ep->id, false))
		return RDMA_EP_STATE_BOUND;
	if (ep->options.reuseaddr)
		rdma_set_reuseaddr(ep->id, true);
	memset(&addr->src_addr, 0, sizeof(addr->src_addr));
	memset(&addr->dst_addr, 0, sizeof(addr->dst_addr));
	addr->dev_addr.bound_dev_if = 0;
	return RDMA_EP_STATE_IDLE;
}

/**
 * rdma_ep_bind_locked - bind to a source address
 * @call: the call
 * @ep: the endpoint, locked, with an id
 * @addr: the address
 *
 * Return: 0 or a negative errno.
 */
int rdma_ep_bind_locked(struct rdma_ep_call *call, struct rdma_ep *ep, struct sockaddr *addr)
{
	bool ok;
	int ret;

	lockdep_assert_held(&ep->lock);

	if (ep->state != RDMA_EP_STATE_IDLE)
		return rdma_ep_fail_state(call, ep, "bind");
	if (rdma_ep_lacks_scope(addr))
		return rdma_ep_fail_scope(call);
	ret = rdma_bind_addr(ep->id, addr);
	if (ret) {
		rdma_ep_settle(ep);
		return rdma_ep_fail_bind(call, ep, ret, addr);
	}

	/* rdma_cm cannot undo it. */
	ok = rdma_ep_device_ok(ep, ep->id);
	spin_lock(&ep->ctx->ev_lock);
	if (ep->state == RDMA_EP_STATE_IDLE) /* the device may be gone again */
		rdma_ep_set_state(ep, ok ? RDMA_EP_STATE_BOUND : RDMA_EP_STATE_FAILED);
	spin_unlock(&ep->ctx->ev_lock);
	if (!ok)
		return rdma_ep_fail(call, -ENODEV, RDMA_EP_REASON_NO_DEVICE,
				    "the address is that of another device, %s",
				    dev_name(&ep->id->device->dev));
	return 0;
}

int rdma_ep_bind(struct rdma_ep_call *call)
{
	struct rdma_ep_bind *cmd = call->cmd;
	struct sockaddr *addr;
	struct rdma_ep *ep;
	int ret;

	addr = rdma_ep_sockaddr(call, &cmd->addr, false);
	if (IS_ERR(addr))
		return PTR_ERR(addr);
	ret = rdma_ep_record_check(call, cmd->record_uptr, cmd->record_len);
	if (ret)
		return ret;
	ep = rdma_ep_get(call, cmd->ep);
	if (IS_ERR(ep))
		return PTR_ERR(ep);

	mutex_lock(&ep->lock);
	if (ep->id)
		ret = rdma_ep_bind_locked(call, ep, addr);
	else
		ret = rdma_ep_fail_no_id(call, ep);
	mutex_unlock(&ep->lock);

	if (!ret)
		ret = rdma_ep_record_answer(call, ep, RDMA_EP_REC_INFO | RDMA_EP_REC_INIT, false,
					    cmd->record_uptr, cmd->record_len);
	rdma_ep_put(ep);
	return ret;
}

/**
 * rdma_ep_resolve_locked - begin to resolve a destination
 * @call: the call
 * @ep: the endpoint, locked, with an id
 * @src: source address, or NULL
 * @dst: destination address
 * @timeout_ms: time for the address, and again for the route
 * @then_route: go on to the route
 *
 * Return: 0 or a negative errno.
 */
int rdma_ep_resolve_locked(struct rdma_ep_call *call, struct rdma_ep *ep, struct sockaddr *src,
			   struct sockaddr *dst, u32 timeout_ms, bool then_route)
{
	u8 old_state = ep->state;
	int ret;

	lockdep_assert_held(&ep->lock);

	/* Bound to a link already, or being bound, the destination is there. */
	if (src ? rdma_ep_lacks_scope(src) :
		  !ep->id->route.addr.dev_addr.bound_dev_if && rdma_ep_lacks_scope(dst))
		return rdma_ep_fail_scope(call);
	ret = rdma_ep_op_begin(call, ep, RDMA_EP_OP_RESOLVE,
			       BIT(RDMA_EP_STATE_IDLE) | BIT(RDMA_EP_STATE_BOUND),
			       RDMA_EP_STATE_RESOLVING_ADDR, "resolve an address");
	if (ret)
		return ret;

	/* No handler looks at these before the operation has started. */
	ep->then_route = then_route;
	ep->route_timeout_ms = timeout_ms;
	ret = rdma_resolve_addr(ep->id, src, dst, timeout_ms);
	if (ret) {
		if (old_state == RDMA_EP_STATE_IDLE)
			old_state = rdma_ep_settle(ep);
		/* The source address is bound to by the way. */
		if (!rdma_ep_device_ok(ep, ep->id))
			old_state = RDMA_EP_STATE_FAILED;
		ep->then_route = false;
		rdma_ep_op_end(ep, old_state);
		if (src && (ret == -EADDRNOTAVAIL || ret == -EADDRINUSE || ret == -EACCES))
			return rdma_ep_fail_bind(call, ep, ret, src);
		rdma_ep_fail_resolve(call, ret);
	}
	return ret;
}

int rdma_ep_resolve_addr(struct rdma_ep_call *call)
{
	struct rdma_ep_resolve_addr *cmd = call->cmd;
	bool then_route = cmd->hdr.flags & RDMA_EP_RESOLVE_THEN_ROUTE;
	u32 types = then_route ? RDMA_EP_COMPLETES_ADDR_AND_ROUTE : RDMA_EP_COMPLETES_ADDR;
	struct sockaddr *src, *dst;
	struct rdma_ep *ep;
	int ret;

	src = rdma_ep_sockaddr(call, &cmd->src, true);
	if (IS_ERR(src))
		return PTR_ERR(src);
	dst = rdma_ep_sockaddr(call, &cmd->dst, false);
	if (IS_ERR(dst))
		return PTR_ERR(dst);
	ret = rdma_ep_wait_prepare(call, &ep, cmd->ep, types, cmd->record_uptr, cmd->record_len);
	if (ret)
		return ret;

	if (!(cmd->hdr.flags & RDMA_EP_F_RESUME)) {
		mutex_lock(&ep->lock);
		if (ep->id)
			ret = rdma_ep_resolve_locked(call, ep, src, dst, cmd->timeout_ms,
						     then_route);
		else
			ret = rdma_ep_fail_no_id(call, ep);
		mutex_unlock(&ep->lock);
	}
	if (!ret)
		ret = rdma_ep_wait_report(call, ep, types);
	rdma_ep_wait_finish(call, ep);
	return ret;
}

static int rdma_ep_route_locked(struct rdma_ep_call *call, struct rdma_ep *ep, u32 timeout_ms)
{
	int ret;

	if (!ep->id)
		return rdma_ep_fail_no_id(call, ep);
	ret = rdma_ep_op_begin(call, ep, RDMA_EP_OP_RESOLVE, BIT(RDMA_EP_STATE_ADDR_RESOLVED),
			       RDMA_EP_STATE_RESOLVING_ROUTE, "resolve a route");
	if (ret)
		return ret;
	ret = rdma_resolve_route(ep->id, timeout_ms);
	if (ret) {
		rdma_ep_op_end(ep, RDMA_EP_STATE_ADDR_RESOLVED);
		rdma_ep_fail_resolve(call, ret);
	}
	return ret;
}

int rdma_ep_resolve_route(struct rdma_ep_call *call)
{
	struct rdma_ep_resolve_route *cmd = call->cmd;
	struct rdma_ep *ep;
	int ret;

	ret = rdma_ep_wait_prepare(call, &ep, cmd->ep, RDMA_EP_COMPLETES_ROUTE, cmd->record_uptr,
				   cmd->record_len);
	if (ret)
		return ret;

	if (!(cmd->hdr.flags & RDMA_EP_F_RESUME)) {
		mutex_lock(&ep->lock);
		ret = rdma_ep_route_locked(call, ep, cmd->timeout_ms);
		mutex_unlock(&ep->lock);
	}
	if (!ret)
		ret = rdma_ep_wait_report(call, ep, RDMA_EP_COMPLETES_ROUTE);
	rdma_ep_wait_finish(call, ep);
	return ret;
}
