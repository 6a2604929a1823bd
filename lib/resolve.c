// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Addresses: binding, resolving the destination and the route, ports.
 */
#include <stdlib.h>
#include <string.h>

#include "addrinfo.h"
#include "rdmaep-internal.h"

/**
 * rdmaep_addr_size() - size of an address
 * @addr: the address, or NULL
 *
 * Return: bytes, 0 for NULL or an unknown family.
 */
size_t rdmaep_addr_size(const struct sockaddr *addr)
{
	if (!addr)
		return 0;

	switch (addr->sa_family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	case AF_IB:
		return sizeof(struct sockaddr_ib);
	default:
		return 0;
	}
}

/**
 * rdmaep_addr_set() - put an address into a call's argument
 * @dst: where it goes; zeroed by the caller
 * @src: the address
 * @which: what it is called in the reason of a failure
 *
 * Return: 0, or -1 with errno EINVAL: no address, or an unknown family.
 */
int rdmaep_addr_set(struct rdma_ep_addr *dst, const struct sockaddr *src,
		    const char *which)
{
	size_t len = rdmaep_addr_size(src);

	if (!len)
		return rdmaep_fail(EINVAL, RDMA_EP_REASON_ADDR_FORMAT,
				   src ? "%s address is of unknown family %d" :
					 "%s address is missing",
				   which, src ? src->sa_family : 0);
	dst->len = len;
	memcpy(dst->sa, src, len);
	return 0;
}

/**
 * rdma_bind_addr() - associate a source address with an id
 * @id: the id
 * @addr: local address; a wildcard, and port 0, are permitted
 *
 * A specific address also binds the id to its device. Follows
 * rdma_bind_addr(3).
 *
 * Return: 0, or -1 with errno EADDRINUSE, EADDRNOTAVAIL (not local), EACCES
 * (privileged port), EINVAL (bound already, family unknown, link-local without
 * scope id) or ENODEV.
 */
RDMAEP_API int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	struct rdma_ep_record rec = { 0 };
	struct rdma_ep_bind cmd = {
		.hdr = RDMAEP_HDR(cmd),
		.ep = to_rdmaep_id(id)->handle,
		.record_uptr = (uintptr_t)&rec,
		.record_len = sizeof(rec),
	};
	struct rdmaep_id *ep = to_rdmaep_id(id);

	if (rdmaep_addr_set(&cmd.addr, addr, "source"))
		return -1;
	if (rdmaep_call(ep->ctx, RDMA_EP_BIND, &cmd))
		return -1;

	rdmaep_record_read(&rec);
	return rdmaep_id_update(ep, &rec);
}

/**
 * rdma_resolve_addr() - resolve destination and source address
 * @id: the id
 * @src_addr: source address, or NULL
 * @dst_addr: destination address
 * @timeout_ms: time to wait for the resolution, in ms
 *
 * Binds the id to a device. Follows rdma_resolve_addr(3).
 *
 * Return: 0, or -1 with errno EINVAL, EBUSY (a resolution is under way), and
 * for a synchronous id what the resolution failed with.
 */
RDMAEP_API int rdma_resolve_addr(struct rdma_cm_id *id,
				 struct sockaddr *src_addr,
				 struct sockaddr *dst_addr, int timeout_ms)
{
	struct rdmaep_id *ep = to_rdmaep_id(id);
	struct rdma_ep_resolve_addr cmd = {
		.hdr = RDMAEP_HDR(cmd),
		.ep = ep->handle,
		.timeout_ms = timeout_ms,
	};
	struct sockaddr_storage old = id->route.addr.dst_storage;
	struct rdmaep_wait wait;
	int ret;

	if (rdmaep_addr_set(&cmd.dst, dst_addr, "destination"))
		return -1;
	if (src_addr && rdmaep_addr_set(&cmd.src, src_addr, "source"))
		return -1;

	if (rdmaep_wait_begin(&wait, ep, &cmd.hdr, &cmd.record_uptr,
			      &cmd.record_len))
		return -1;

	/* Programs look at it before the event comes; later is too late. */
	memcpy(&id->route.addr.dst_storage, cmd.dst.sa, cmd.dst.len);
	ret = rdmaep_call(ep->ctx, RDMA_EP_RESOLVE_ADDR, &cmd);
	if (ret && errno != EAGAIN && errno != EINTR)
		id->route.addr.dst_storage = old;
	return rdmaep_wait_end(&wait, ep, ret);
}

/*
 * On InfiniBand, a running ibacm may know the path, which spares the subnet
 * manager a query. Returns whether it did; the event is on its way then.
 */
static bool route_from_acm(struct rdmaep_id *ep)
{
	const struct rdma_addr *addr = &ep->id.route.addr;
	struct rdma_addrinfo hints = { 0 }, *rai, *entry;
	int err = errno;
	bool found = false;

	rai = calloc(1, sizeof(*rai));
	if (!rai)
		return false;

	rai->ai_family = addr->dst_addr.sa_family;
	if (!rdmaep_addrinfo_copy_addr(&rai->ai_src_addr, &rai->ai_src_len,
				       &addr->src_addr,
				       rdmaep_addr_size(&addr->src_addr)) &&
	    !rdmaep_addrinfo_copy_addr(&rai->ai_dst_addr, &rai->ai_dst_len,
				       &addr->dst_addr,
				       rdmaep_addr_size(&addr->dst_addr)))
		rdmaep_acm_resolve(&rai, &hints);

	for (entry = rai; entry && !found; entry = entry->ai_next)
		found = entry->ai_route_len &&
			!rdmaep_option_ib_path(ep, entry->ai_route,
					       entry->ai_route_len);
	rdma_freeaddrinfo(rai);
	errno = err;
	return found;
}

/**
 * rdma_resolve_route() - find a path to the destination
 * @id: the id, whose address is resolved
 * @timeout_ms: time to wait for the resolution, in ms
 *
 * Follows rdma_resolve_route(3).
 *
 * Return: 0, or -1 with errno EINVAL, EBUSY, and for a synchronous id what the
 * resolution failed with.
 */
RDMAEP_API int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	struct rdmaep_id *ep = to_rdmaep_id(id);
	struct rdma_ep_resolve_route cmd = {
		.hdr = RDMAEP_HDR(cmd),
		.ep = ep->handle,
		.timeout_ms = timeout_ms,
	};
	struct rdmaep_wait wait;
	bool sync = ep->sync;	/* an event's reader may destroy the id */

	if (ep->transport == RDMA_EP_TRANSPORT_IB && route_from_acm(ep))
		return sync ? rdmaep_wait_next(ep) : 0;

	if (rdmaep_wait_begin(&wait, ep, &cmd.hdr, &cmd.record_uptr,
			      &cmd.record_len))
		return -1;
	return rdmaep_wait_end(&wait, ep,
			       rdmaep_call(ep->ctx, RDMA_EP_RESOLVE_ROUTE,
					   &cmd));
}

static __be16 addr_port(const void *storage)
{
	const struct sockaddr *addr = storage;
	struct sockaddr_ib sib;

	switch (addr->sa_family) {
	case AF_INET:
		return ((const struct sockaddr_in *)addr)->sin_port;
	case AF_INET6:
		return ((const struct sockaddr_in6 *)addr)->sin6_port;
	case AF_IB:
		memcpy(&sib, addr, sizeof(sib));
		return htobe16(be64toh(sib.sib_sid) & RDMA_IB_IP_PORT_MASK);
	default:
		return 0;
	}
}

/**
 * rdma_get_src_port() - local port
 * @id: the id
 *
 * Follows rdma_get_src_port(3).
 *
 * Return: the port in network byte order, 0 if not bound.
 */
RDMAEP_API __be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	return addr_port(&id->route.addr.src_storage);
}

/**
 * rdma_get_dst_port() - port of the peer
 * @id: the id
 *
 * Follows rdma_get_dst_port(3).
 *
 * Return: the port in network byte order, 0 if there is no peer.
 */
RDMAEP_API __be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
	return addr_port(&id->route.addr.dst_storage);
}
