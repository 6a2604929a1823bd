// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The structs that existing programs share with the library, as they were laid
 * out when those programs were compiled for a 64-bit machine. rdma-core's own
 * header must agree, or we were built for other programs than those we run.
 */
#include <stddef.h>
#include <rdma/rdma_cma.h>

#define SIZE(type, size) \
	_Static_assert(sizeof(struct type) == (size), #type)
#define OFFSET(type, field, offset) \
	_Static_assert(offsetof(struct type, field) == (offset), #type "." #field)

OFFSET(rdma_cm_id, verbs, 0);
OFFSET(rdma_cm_id, channel, 8);
OFFSET(rdma_cm_id, context, 16);
OFFSET(rdma_cm_id, qp, 24);
OFFSET(rdma_cm_id, route, 32);
OFFSET(rdma_cm_id, ps, 344);
OFFSET(rdma_cm_id, port_num, 348);
OFFSET(rdma_cm_id, event, 352);
OFFSET(rdma_cm_id, send_cq_channel, 360);
OFFSET(rdma_cm_id, send_cq, 368);
OFFSET(rdma_cm_id, recv_cq_channel, 376);
OFFSET(rdma_cm_id, recv_cq, 384);
OFFSET(rdma_cm_id, srq, 392);
OFFSET(rdma_cm_id, pd, 400);
OFFSET(rdma_cm_id, qp_type, 408);
SIZE(rdma_cm_id, 416);
OFFSET(rdma_route, addr, 0);
OFFSET(rdma_route, path_rec, 296);
OFFSET(rdma_route, num_paths, 304);
OFFSET(rdma_addr, src_addr, 0);
OFFSET(rdma_addr, dst_addr, 128);
OFFSET(rdma_addr, addr, 256);
OFFSET(rdma_ib_addr, dgid, 16);
OFFSET(rdma_ib_addr, pkey, 32);
SIZE(rdma_route, 312);
OFFSET(rdma_event_channel, fd, 0);
SIZE(rdma_event_channel, 4);
OFFSET(rdma_conn_param, private_data, 0);
OFFSET(rdma_conn_param, private_data_len, 8);
OFFSET(rdma_conn_param, responder_resources, 9);
OFFSET(rdma_conn_param, rnr_retry_count, 13);
OFFSET(rdma_conn_param, srq, 14);
OFFSET(rdma_conn_param, qp_num, 16);
SIZE(rdma_conn_param, 24);
OFFSET(rdma_ud_param, ah_attr, 16);
OFFSET(rdma_ud_param, qp_num, 48);
OFFSET(rdma_ud_param, qkey, 52);
SIZE(rdma_ud_param, 56);
OFFSET(rdma_cm_event, id, 0);
OFFSET(rdma_cm_event, listen_id, 8);
OFFSET(rdma_cm_event, event, 16);
OFFSET(rdma_cm_event, status, 20);
OFFSET(rdma_cm_event, param, 24);
SIZE(rdma_cm_event, 80);
OFFSET(rdma_addrinfo, ai_flags, 0);
OFFSET(rdma_addrinfo, ai_port_space, 12);
OFFSET(rdma_addrinfo, ai_src_len, 16);
OFFSET(rdma_addrinfo, ai_src_addr, 24);
OFFSET(rdma_addrinfo, ai_dst_canonname, 48);
OFFSET(rdma_addrinfo, ai_route_len, 56);
OFFSET(rdma_addrinfo, ai_route, 64);
OFFSET(rdma_addrinfo, ai_connect, 80);
OFFSET(rdma_addrinfo, ai_next, 88);
SIZE(rdma_addrinfo, 96);
OFFSET(rdma_cm_join_mc_attr_ex, addr, 8);
SIZE(rdma_cm_join_mc_attr_ex, 16);
