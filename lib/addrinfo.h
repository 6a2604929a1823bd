/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What addrinfo.c, addrinfo-sa.c and acm.c share. rdma_getaddrinfo() needs no
 * device: addresses can be resolved on a machine without RDMA.
 */
#ifndef RDMAEP_ADDRINFO_H
#define RDMAEP_ADDRINFO_H

#include <rdma/rdma_cma.h>
#include <infiniband/ib.h>

/**
 * rdmaep_addrinfo_copy_addr() - give a rdma_addrinfo its own copy of an address
 * @dst: where the copy's address goes; written only on success
 * @dst_len: where its length goes
 * @src: the address
 * @len: its length in bytes
 *
 * Return: 0, or -1 with errno EINVAL (no address, or a length that no address
 * family has) or ENOMEM.
 */
int rdmaep_addrinfo_copy_addr(struct sockaddr **dst, socklen_t *dst_len,
			      const struct sockaddr *src, socklen_t len);

/**
 * rdmaep_addrinfo_set_sid() - the IB service id of a port
 * @sib: address whose sib_sid and sib_sid_mask are set
 * @ps: port space, or 0
 * @port: port in network byte order, or 0
 *
 * The mask covers what is known: port space, port, both or neither.
 */
void rdmaep_addrinfo_set_sid(struct sockaddr_ib *sib, int ps, __be16 port);

/**
 * rdmaep_addrinfo_port() - the port in an address
 * @sa: an IPv4 or IPv6 address, or NULL
 *
 * Return: the port in network byte order, 0 for other families and NULL.
 */
__be16 rdmaep_addrinfo_port(const struct sockaddr *sa);

/**
 * rdmaep_acm_resolve() - ask a running ibacm for the route
 * @rai: the addresses so far. Receives routing data and the source address,
 *	if ibacm knows them. If there is routing data, an entry with the same
 *	endpoints as AF_IB addresses is put in front of the list.
 * @hints: flags and route that the caller asked for
 *
 * Never fails: without ibacm, or when it does not answer in time, nothing
 * changes. Takes 2 seconds at most.
 */
void rdmaep_acm_resolve(struct rdma_addrinfo **rai,
			const struct rdma_addrinfo *hints);

/**
 * rdmaep_addrinfo_sa() - rdma_getaddrinfo() with RAI_SA
 * @node: must be NULL
 * @service: id or name of an InfiniBand service
 * @hints: flags, port space and QP type
 * @res: where the list goes
 *
 * Return: 0, or -1 with errno EINVAL, EOPNOTSUPP (node or RAI_DNS given, or
 * the kernel has no service records), ENODEV (no active InfiniBand port),
 * ENODATA (nobody offers the service) or ENOMEM.
 */
int rdmaep_addrinfo_sa(const char *node, const char *service,
		       const struct rdma_addrinfo *hints,
		       struct rdma_addrinfo **res);

#endif /* RDMAEP_ADDRINFO_H */
