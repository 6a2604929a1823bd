// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rdma_getaddrinfo() and rdma_freeaddrinfo(): names, services and hints to
 * addresses, in terms of getaddrinfo(3).
 *
 * Error convention, the incumbent's: a code of getaddrinfo() is returned as it
 * is (EAI_SYSTEM: see errno); everything else is -1 with errno set. That -1 is
 * also the value of EAI_BADFLAGS cannot be helped.
 *
 * Flags that are not known are ignored, as they always have been: programs
 * pass hints that they have not cleared whole.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "addrinfo.h"
#include "rdmaep-internal.h"

int rdmaep_addrinfo_copy_addr(struct sockaddr **dst, socklen_t *dst_len,
			      const struct sockaddr *src, socklen_t len)
{
	struct sockaddr *copy;

	if (!src || len < sizeof(src->sa_family) ||
	    len > sizeof(struct sockaddr_storage))
		return rdmaep_fail(EINVAL, RDMA_EP_REASON_ADDR_FORMAT,
				   "an address of %u bytes%s", len,
				   src ? "" : " that is NULL");

	copy = malloc(len);
	if (!copy)
		return -1;

	memcpy(copy, src, len);
	*dst = copy;
	*dst_len = len;
	return 0;
}

void rdmaep_addrinfo_set_sid(struct sockaddr_ib *sib, int ps, __be16 port)
{
	uint64_t mask = 0;

	if (ps)
		mask |= RDMA_IB_IP_PS_MASK;
	if (port)
		mask |= RDMA_IB_IP_PORT_MASK;
	sib->sib_sid = htobe64(((uint64_t)ps << 16) | be16toh(port));
	sib->sib_sid_mask = htobe64(mask);
}

__be16 rdmaep_addrinfo_port(const struct sockaddr *sa)
{
	if (!sa)
		return 0;

	switch (sa->sa_family) {
	case AF_INET:
		return ((const struct sockaddr_in *)sa)->sin_port;
	case AF_INET6:
		return ((const struct sockaddr_in6 *)sa)->sin6_port;
	default:
		return 0;
	}
}

/* The socket type that finds services for a QP type, 0 for any. */
static int addrinfo_socktype(int qp_type)
{
	switch (qp_type) {
	case IBV_QPT_RC:
	case IBV_QPT_UC:
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		return SOCK_STREAM;
	case IBV_QPT_UD:
		return SOCK_DGRAM;
	default:
		return 0;
	}
}

/* The protocol of a port space, 0 for those that take any. */
static int addrinfo_protocol(int ps, int socktype)
{
	switch (ps) {
	case RDMA_PS_TCP:
		return IPPROTO_TCP;
	case RDMA_PS_UDP:
	case RDMA_PS_IPOIB:
		return IPPROTO_UDP;
	case RDMA_PS_IB:
		if (socktype == SOCK_STREAM)
			return IPPROTO_TCP;
		if (socktype == SOCK_DGRAM)
			return IPPROTO_UDP;
		return 0;
	default:
		return 0;
	}
}

/* Fill in what the caller left open of QP type and port space. */
static void addrinfo_set_service(struct rdma_addrinfo *rai,
				 const struct rdma_addrinfo *hints, int dgram)
{
	rai->ai_qp_type = hints->ai_qp_type;
	if (!rai->ai_qp_type)
		rai->ai_qp_type = dgram ? IBV_QPT_UD : IBV_QPT_RC;
	rai->ai_port_space = hints->ai_port_space;
	if (!rai->ai_port_space)
		rai->ai_port_space = dgram ? RDMA_PS_UDP : RDMA_PS_TCP;
}

/* Does the caller write GIDs, in the notation of IPv6? */
static int addrinfo_is_gid(const struct rdma_addrinfo *hints)
{
	return hints->ai_family == AF_IB &&
	       (hints->ai_flags & RAI_FAMILY) &&
	       (hints->ai_flags & RAI_NUMERICHOST);
}

static void addrinfo_ask(struct addrinfo *ask, const char *node,
			 const struct rdma_addrinfo *hints)
{
	memset(ask, 0, sizeof(*ask));

	if (hints->ai_flags & RAI_PASSIVE)
		ask->ai_flags |= AI_PASSIVE;
	if (hints->ai_flags & RAI_NUMERICHOST)
		ask->ai_flags |= AI_NUMERICHOST;
	if (node)
		ask->ai_flags |= AI_CANONNAME;

	if (addrinfo_is_gid(hints))
		ask->ai_family = AF_INET6;
	else if (hints->ai_family != AF_IB)
		ask->ai_family = hints->ai_family;

	ask->ai_socktype = addrinfo_socktype(hints->ai_qp_type);
	ask->ai_protocol = addrinfo_protocol(hints->ai_port_space,
					     ask->ai_socktype);
}

static int addrinfo_gid_addr(struct sockaddr **dst, socklen_t *dst_len, int ps,
			     const struct addrinfo *ai)
{
	const struct sockaddr_in6 *sin6 = (const void *)ai->ai_addr;
	struct sockaddr_ib sib = {
		.sib_family = AF_IB,
		.sib_pkey = htobe16(0xffff),
		.sib_flowinfo = sin6->sin6_flowinfo,
		.sib_scope_id = sin6->sin6_scope_id,
	};

	memcpy(sib.sib_addr.sib_raw, &sin6->sin6_addr, sizeof(sib.sib_addr));
	rdmaep_addrinfo_set_sid(&sib, ps, sin6->sin6_port);
	return rdmaep_addrinfo_copy_addr(dst, dst_len, (struct sockaddr *)&sib,
					 sizeof(sib));
}

static int addrinfo_take(struct rdma_addrinfo *rai,
			 const struct rdma_addrinfo *hints,
			 const struct addrinfo *ai)
{
	int passive = hints->ai_flags & RAI_PASSIVE;
	struct sockaddr **addr = passive ? &rai->ai_src_addr : &rai->ai_dst_addr;
	socklen_t *len = passive ? &rai->ai_src_len : &rai->ai_dst_len;
	char **name = passive ? &rai->ai_src_canonname : &rai->ai_dst_canonname;

	rai->ai_flags = passive;
	addrinfo_set_service(rai, hints, ai->ai_socktype == SOCK_DGRAM);

	if (ai->ai_canonname) {
		*name = strdup(ai->ai_canonname);
		if (!*name)
			return -1;
	}

	if (addrinfo_is_gid(hints)) {
		rai->ai_family = AF_IB;
		return addrinfo_gid_addr(addr, len, rai->ai_port_space, ai);
	}
	rai->ai_family = ai->ai_family;
	return rdmaep_addrinfo_copy_addr(addr, len, ai->ai_addr, ai->ai_addrlen);
}

static int addrinfo_lookup(const char *node, const char *service,
			   const struct rdma_addrinfo *hints, int have_hints,
			   struct rdma_addrinfo *rai)
{
	struct addrinfo ask, *ai;
	int flags, ret;

	addrinfo_ask(&ask, node, hints);
	/* what getaddrinfo() takes when it is given no hints */
	if (!have_hints)
		ask.ai_flags |= AI_V4MAPPED | AI_ADDRCONFIG;

	/* An address in digits must never wait for a name server. */
	flags = ask.ai_flags;
	if (node)
		ask.ai_flags |= AI_NUMERICHOST;
	ret = getaddrinfo(node, service, &ask, &ai);
	if (ret == EAI_NONAME && ask.ai_flags != flags) {
		ask.ai_flags = flags;
		ret = getaddrinfo(node, service, &ask, &ai);
	}
	if (ret)
		return ret;

	ret = addrinfo_take(rai, hints, ai);
	freeaddrinfo(ai);
	return ret;
}

/* Neither node nor service: the hints are all there is. */
static int addrinfo_from_hints(const struct rdma_addrinfo *hints,
			       struct rdma_addrinfo *rai)
{
	int socktype = addrinfo_socktype(hints->ai_qp_type);
	int protocol = addrinfo_protocol(hints->ai_port_space, socktype);
	int dgram = socktype == SOCK_DGRAM || protocol == IPPROTO_UDP;

	if ((socktype == SOCK_STREAM && protocol == IPPROTO_UDP) ||
	    (socktype == SOCK_DGRAM && protocol == IPPROTO_TCP))
		return EAI_SOCKTYPE;

	rai->ai_flags = hints->ai_flags;
	rai->ai_family = hints->ai_family;
	addrinfo_set_service(rai, hints, dgram);
	if (!hints->ai_dst_len)
		return 0;
	return rdmaep_addrinfo_copy_addr(&rai->ai_dst_addr, &rai->ai_dst_len,
					 hints->ai_dst_addr, hints->ai_dst_len);
}

/**
 * rdma_getaddrinfo() - translate names and services to RDMA addresses
 * @node: host name, or address in the notation of IPv4 or IPv6 (with a scope
 *	as in fe80::1%eth0), or NULL
 * @service: service name or port number, or NULL
 * @hints: what is wanted, or NULL. Its source address, if there is one, is
 *	returned as the source unless RAI_PASSIVE finds another.
 * @res: where the list of results goes, for rdma_freeaddrinfo()
 *
 * Numeric addresses are never looked up anywhere. A name takes as long as
 * getaddrinfo(3) takes. On the active side a running ibacm is asked for the
 * route, for 2 seconds at most, unless RAI_NOROUTE is set. No RDMA device is
 * needed, but for RAI_SA.
 *
 * Return: 0, a nonzero code for gai_strerror(3) (EAI_SOCKTYPE if QP type and
 * port space do not go together), or -1 with errno EINVAL, ENOMEM, or those of
 * rdmaep_addrinfo_sa(). Follows rdma_getaddrinfo(3).
 */
RDMAEP_API int rdma_getaddrinfo(const char *node, const char *service,
				const struct rdma_addrinfo *hints,
				struct rdma_addrinfo **res)
{
	static const struct rdma_addrinfo none;
	int have_hints = !!hints;
	struct rdma_addrinfo *rai;
	int ret, err;

	if ((!node && !service && !hints) || !res)
		return rdmaep_fail(EINVAL, RDMA_EP_REASON_VALUE,
				   "neither node nor service nor hints, or nowhere to put the result");
	/* What getaddrinfo(3) returns says all. */
	rdmaep_forget_reason();
	if (!hints)
		hints = &none;
	if (hints->ai_flags & RAI_SA)
		return rdmaep_addrinfo_sa(node, service, hints, res);

	rai = calloc(1, sizeof(*rai));
	if (!rai)
		return -1;

	if (node || service)
		ret = addrinfo_lookup(node, service, hints, have_hints, rai);
	else
		ret = addrinfo_from_hints(hints, rai);
	if (!ret && !rai->ai_src_len && hints->ai_src_len)
		ret = rdmaep_addrinfo_copy_addr(&rai->ai_src_addr,
						&rai->ai_src_len,
						hints->ai_src_addr,
						hints->ai_src_len);
	if (ret) {
		err = errno;
		rdma_freeaddrinfo(rai);
		errno = err;
		return ret;
	}

	if (!rai->ai_family && rai->ai_dst_len)
		rai->ai_family = rai->ai_dst_addr->sa_family;
	else if (!rai->ai_family && rai->ai_src_len)
		rai->ai_family = rai->ai_src_addr->sa_family;

	if (!(rai->ai_flags & RAI_PASSIVE) && !(hints->ai_flags & RAI_NOROUTE))
		rdmaep_acm_resolve(&rai, hints);

	*res = rai;
	return 0;
}

/**
 * rdma_freeaddrinfo() - free what rdma_getaddrinfo() returned
 * @res: the list, or NULL
 */
RDMAEP_API void rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
	struct rdma_addrinfo *next;

	for (; res; res = next) {
		next = res->ai_next;
		free(res->ai_src_addr);
		free(res->ai_dst_addr);
		free(res->ai_src_canonname);
		free(res->ai_dst_canonname);
		free(res->ai_route);
		free(res->ai_connect);
		free(res);
	}
}
