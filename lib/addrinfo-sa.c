// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rdma_getaddrinfo() with RAI_SA: services that InfiniBand's subnet
 * administrators know, asked for on each active InfiniBand port.
 */
#include <errno.h>
#include <string.h>

#include "addrinfo.h"
#include "rdmaep-internal.h"

static int sa_port_is_ib(struct ibv_context *verbs, int port)
{
	struct ibv_port_attr attr;

	if (verbs->device->transport_type != IBV_TRANSPORT_IB ||
	    ibv_query_port(verbs, port, &attr))
		return 0;
	return attr.state == IBV_PORT_ACTIVE &&
	       (attr.link_layer == IBV_LINK_LAYER_INFINIBAND ||
		attr.link_layer == IBV_LINK_LAYER_UNSPECIFIED);
}

/* What the hints ask for, and the port that found it, for rdma_create_ep(). */
static int sa_complete(struct rdma_addrinfo *rai, const struct sockaddr_ib *src,
		       const struct rdma_addrinfo *hints)
{
	for (; rai; rai = rai->ai_next) {
		if (hints->ai_qp_type)
			rai->ai_qp_type = hints->ai_qp_type;
		if (!rai->ai_src_len &&
		    rdmaep_addrinfo_copy_addr(&rai->ai_src_addr,
					      &rai->ai_src_len,
					      (const struct sockaddr *)src,
					      sizeof(*src)))
			return -1;
	}
	return 0;
}

/* Ask on one port. The list that is found ends at *@end, which moves on. */
static int sa_ask(struct ibv_context *verbs, int port, const char *service,
		  const struct rdma_addrinfo *hints, struct rdma_addrinfo ***end)
{
	int ps = hints->ai_port_space ? hints->ai_port_space : RDMA_PS_IB;
	struct sockaddr_ib src = {
		.sib_family = AF_IB,
		.sib_pkey = htobe16(0xffff),
	};
	struct rdma_addrinfo *found;
	struct rdma_cm_id *id;
	union ibv_gid gid;
	int ret = -1, err;

	if (ibv_query_gid(verbs, port, 0, &gid))
		return -1;
	memcpy(&src.sib_addr, &gid, sizeof(gid));
	rdmaep_addrinfo_set_sid(&src, ps, 0);

	if (rdma_create_id(NULL, &id, NULL, ps))
		return -1;
	if (!rdma_bind_addr(id, (struct sockaddr *)&src) &&
	    !rdma_resolve_addrinfo(id, NULL, service, hints) &&
	    !rdma_query_addrinfo(id, &found)) {
		ret = sa_complete(found, &src, hints);
		**end = found;
		while (**end)
			*end = &(**end)->ai_next;
	}
	err = errno;
	rdma_destroy_id(id);
	errno = err;
	return ret;
}

static int sa_ask_all(struct ibv_context **devices, const char *service,
		      const struct rdma_addrinfo *hints,
		      struct rdma_addrinfo **res)
{
	struct rdma_addrinfo **end = res;
	struct ibv_device_attr attr;
	int i, port, err = 0;

	*res = NULL;
	for (i = 0; devices[i]; i++) {
		if (ibv_query_device(devices[i], &attr))
			continue;
		for (port = 1; port <= attr.phys_port_cnt; port++) {
			if (!sa_port_is_ib(devices[i], port))
				continue;
			if (sa_ask(devices[i], port, service, hints, &end) &&
			    !err)
				err = errno;
		}
	}

	/* One port that knows the service is enough. */
	if (*res)
		return 0;
	if (err) {
		errno = err;
		return -1;
	}
	return rdmaep_fail(ENODEV, RDMA_EP_REASON_NO_DEVICE,
			   "services are looked up on InfiniBand ports, and none is active");
}

int rdmaep_addrinfo_sa(const char *node, const char *service,
		       const struct rdma_addrinfo *hints,
		       struct rdma_addrinfo **res)
{
	struct rdma_addrinfo *found;
	struct ibv_context **devices;
	int ret, err;

	if (node || hints->ai_flags & RAI_DNS)
		return rdmaep_fail(EOPNOTSUPP, RDMA_EP_REASON_VALUE,
				   "RAI_SA with a node, or with RAI_DNS");
	if (!service)
		return rdmaep_fail(EINVAL, RDMA_EP_REASON_VALUE,
				   "RAI_SA without a service");

	devices = rdma_get_devices(NULL);
	if (!devices)
		return -1;
	ret = sa_ask_all(devices, service, hints, &found);
	err = errno;
	rdma_free_devices(devices);
	errno = err;
	if (!ret)
		*res = found;
	return ret;
}
