// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What RDMACM_1.4 has brought: names resolved with an event, and events of the
 * program's own.
 */
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "rdmaep-internal.h"

/* Both halves of the cookie make it unlikely that a program uses it. */
#define ADDRINFO_MAGIC	0x72646d6100000000ULL
static uint32_t last_addrinfo;

static int write_event(struct rdmaep_id *ep, int status, uint64_t arg)
{
	struct rdma_ep_write_event cmd = {
		.hdr = RDMAEP_HDR(cmd),
		.ep = ep->handle,
		.event = RDMA_EP_EVENT_USER,
		.status = status,
		.arg = arg,
	};

	return rdmaep_call(ep->ctx, RDMA_EP_WRITE_EVENT, &cmd);
}

/* rdma_getaddrinfo() returns what getaddrinfo() does, or -1. */
static int addrinfo_errno(int ret)
{
	switch (ret) {
	case 0:
		return 0;
	case -1:
	case EAI_SYSTEM:
		return errno ? errno : EIO;
	case EAI_MEMORY:
		return ENOMEM;
	case EAI_AGAIN:
		return EAGAIN;
	default:
		return EADDRNOTAVAIL;
	}
}

static int resolve_service(struct rdmaep_id *ep, const char *node,
			   const char *service)
{
	struct rdma_ep_resolve_service cmd = {
		.hdr = RDMAEP_HDR(cmd),
		.ep = ep->handle,
	};
	struct rdmaep_wait wait;
	char *end;

	if (node || !service || !*service)
		return rdmaep_fail(EINVAL, RDMA_EP_REASON_VALUE,
				   "a service is looked up by its id or name, without a node");

	cmd.service_id = strtoull(service, &end, 0);
	if (!*end) {
		cmd.by = RDMA_EP_SERVICE_BY_ID;
	} else {
		cmd.by = RDMA_EP_SERVICE_BY_NAME;
		cmd.service_id = 0;
		if (strlen(service) > sizeof(cmd.name))
			return rdmaep_fail(EINVAL, RDMA_EP_REASON_VALUE,
					   "a service name of more than %zu bytes",
					   sizeof(cmd.name));
		memcpy(cmd.name, service, strlen(service));
	}

	if (rdmaep_wait_begin(&wait, ep, &cmd.hdr, &cmd.record_uptr,
			      &cmd.record_len))
		return -1;
	ep->by_service = true;
	return rdmaep_wait_end(&wait, ep,
			       rdmaep_call(ep->ctx, RDMA_EP_RESOLVE_SERVICE,
					   &cmd));
}

static struct rdma_addrinfo *service_info(struct rdmaep_id *ep,
					  const struct rdma_ep_service_rec *rec)
{
	struct rdma_addrinfo *info = calloc(1, sizeof(*info));
	struct sockaddr_ib *sib = calloc(1, sizeof(*sib));

	if (!info || !sib)
		goto free;

	sib->sib_family = AF_IB;
	sib->sib_pkey = rec->pkey;
	memcpy(sib->sib_addr.sib_raw, rec->gid, sizeof(rec->gid));
	sib->sib_sid = rec->id;
	sib->sib_sid_mask = htobe64(UINT64_MAX);

	info->ai_flags = RAI_SA;
	info->ai_family = AF_IB;
	info->ai_qp_type = ep->id.qp_type;
	info->ai_port_space = ep->id.ps;
	info->ai_dst_canonname = strndup((const char *)rec->name,
					 sizeof(rec->name));
	if (!info->ai_dst_canonname)
		goto free;
	info->ai_dst_addr = (struct sockaddr *)sib;
	info->ai_dst_len = sizeof(*sib);
	return info;

free:
	free(sib);
	free(info);
	return NULL;
}

static int query_services(struct rdmaep_id *ep, struct rdma_addrinfo **list)
{
	struct rdma_ep_query_services cmd = { .hdr = RDMAEP_HDR(cmd) };
	struct rdma_ep_service_rec *recs = NULL;
	struct rdma_addrinfo **last = list;
	uint32_t i;

	*list = NULL;
	cmd.ep = ep->handle;
	cmd.out_count = 8;	/* enough for most */
	while (cmd.count < cmd.out_count) {
		cmd.count = cmd.out_count;
		free(recs);
		recs = calloc(cmd.count, sizeof(*recs));
		cmd.recs_uptr = (uintptr_t)recs;
		if (!recs || rdmaep_call(ep->ctx, RDMA_EP_QUERY_SERVICES, &cmd))
			goto free;
	}

	for (i = 0; i < cmd.out_count; i++) {
		*last = service_info(ep, &recs[i]);
		if (!*last)
			goto free;
		last = &(*last)->ai_next;
	}
	free(recs);
	return *list ? 0 : rdmaep_fail_plain(ENODATA);

free:
	i = errno;
	free(recs);
	rdma_freeaddrinfo(*list);
	*list = NULL;
	errno = i;
	return -1;
}

/**
 * rdma_resolve_addrinfo() - resolve a name and report it as an event
 * @id: the id
 * @node: name or address, or NULL
 * @service: service or port, or NULL
 * @hints: as for rdma_getaddrinfo(3); RAI_DNS, the default, or RAI_SA
 *
 * RDMA_CM_EVENT_ADDRINFO_RESOLVED or _ERROR follows; a synchronous id returns
 * the result instead. Names are looked up before the call returns: the library
 * has no threads of its own. With RAI_SA, @service is the id or the name of a
 * service that the subnet administrator knows. Follows
 * rdma_resolve_addrinfo(3).
 *
 * Return: 0, or -1 with errno EINVAL, EBUSY (one is under way) or EOPNOTSUPP
 * (RAI_SA: the kernel's rdma_cm has no service records).
 */
RDMAEP_API int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node,
				     const char *service,
				     const struct rdma_addrinfo *hints)
{
	struct rdmaep_id *ep = to_rdmaep_id(id);
	int flags = hints ? hints->ai_flags & (RAI_DNS | RAI_SA) : 0;
	struct rdma_addrinfo *info = NULL, *old;
	int err;

	if (flags == (RAI_DNS | RAI_SA))
		return rdmaep_fail_plain(EINVAL);
	if (ep->addrinfo_cookie)
		return rdmaep_fail_plain(EBUSY);
	if (flags == RAI_SA)
		return resolve_service(ep, node, service);

	ep->by_service = false;
	errno = 0;
	err = addrinfo_errno(rdma_getaddrinfo(node, service, hints, &info));
	if (err)
		info = NULL;

	pthread_mutex_lock(&rdmaep_lock);
	old = ep->addrinfo;
	ep->addrinfo = info;
	pthread_mutex_unlock(&rdmaep_lock);
	if (old)
		rdma_freeaddrinfo(old);
	if (ep->sync)
		return rdmaep_seterrno(err);

	ep->addrinfo_cookie = ADDRINFO_MAGIC |
		__atomic_add_fetch(&last_addrinfo, 1, __ATOMIC_RELAXED);
	if (!write_event(ep, -err, ep->addrinfo_cookie))
		return 0;
	ep->addrinfo_cookie = 0;
	return -1;
}

/**
 * rdma_query_addrinfo() - take the result of rdma_resolve_addrinfo()
 * @id: the id
 * @info: where the list goes; rdma_freeaddrinfo() releases it
 *
 * Follows rdma_query_addrinfo(3). What a name was resolved to can be taken once.
 *
 * Return: 0, or -1 with errno EINVAL or ENODATA.
 */
RDMAEP_API int rdma_query_addrinfo(struct rdma_cm_id *id,
				   struct rdma_addrinfo **info)
{
	struct rdmaep_id *ep = to_rdmaep_id(id);

	if (!info)
		return rdmaep_fail_plain(EINVAL);
	if (ep->by_service)
		return query_services(ep, info);

	pthread_mutex_lock(&rdmaep_lock);
	*info = ep->addrinfo;
	ep->addrinfo = NULL;
	pthread_mutex_unlock(&rdmaep_lock);
	return *info ? 0 : rdmaep_fail_plain(ENODATA);
}

/**
 * rdma_write_cm_event() - put an event of one's own on an id's channel
 * @id: the id
 * @event: RDMA_CM_EVENT_USER
 * @status: status of the event
 * @arg: is found in the event's param.arg
 *
 * Wakes whoever waits for events there. Follows rdma_write_cm_event(3).
 *
 * Return: 0, or -1 with errno EINVAL or ENOMEM.
 */
RDMAEP_API int rdma_write_cm_event(struct rdma_cm_id *id,
				   enum rdma_cm_event_type event, int status,
				   uint64_t arg)
{
	if ((unsigned int)event != RDMA_EP_EVENT_USER)
		return rdmaep_fail_plain(EINVAL);
	return write_event(to_rdmaep_id(id), status, arg);
}
