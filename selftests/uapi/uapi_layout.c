// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The layout of every struct of ABI 1, which may be added to at the end but
 * never changed. Compiled for 64 and for 32 bits, since both kinds of program
 * use the same structs; there is nothing to run.
 */
#include <stddef.h>
#include <rdma/rdma_ep.h>

#define SIZE_IS(str, n)							\
	_Static_assert(sizeof(struct str) == (n), "size of " #str)
#define OFF_IS(str, field, n)						\
	_Static_assert(offsetof(struct str, field) == (n),		\
		       "offset of " #str "." #field)

SIZE_IS(rdma_ep_hdr, 16);
OFF_IS(rdma_ep_hdr, flags, 4);
OFF_IS(rdma_ep_hdr, reason_uptr, 8);
SIZE_IS(rdma_ep_reason, 128);
OFF_IS(rdma_ep_reason, text, 8);
SIZE_IS(rdma_ep_addr, 64);
OFF_IS(rdma_ep_addr, sa, 4);

SIZE_IS(rdma_ep_info, 352);
OFF_IS(rdma_ep_info, dst, 64);
OFF_IS(rdma_ep_info, sgid, 128);
OFF_IS(rdma_ep_info, dgid, 144);
OFF_IS(rdma_ep_info, node_guid, 160);
OFF_IS(rdma_ep_info, src_sid, 168);
OFF_IS(rdma_ep_info, dst_sid, 176);
OFF_IS(rdma_ep_info, device_index, 184);
OFF_IS(rdma_ep_info, ifindex, 188);
OFF_IS(rdma_ep_info, port_num, 192);
OFF_IS(rdma_ep_info, state, 196);
OFF_IS(rdma_ep_info, transport, 197);
OFF_IS(rdma_ep_info, num_paths, 198);
OFF_IS(rdma_ep_info, pkey, 200);
OFF_IS(rdma_ep_info, max_connect_data, 202);
OFF_IS(rdma_ep_info, max_accept_data, 204);
OFF_IS(rdma_ep_info, max_reject_data, 206);
OFF_IS(rdma_ep_info, backlog, 208);
OFF_IS(rdma_ep_info, requests, 212);
OFF_IS(rdma_ep_info, overflows, 216);
OFF_IS(rdma_ep_info, path, 224);

SIZE_IS(rdma_ep_record, 1160);
OFF_IS(rdma_ep_record, type, 4);
OFF_IS(rdma_ep_record, ep, 8);
OFF_IS(rdma_ep_record, status, 12);
OFF_IS(rdma_ep_record, cookie, 16);
OFF_IS(rdma_ep_record, serial, 24);
OFF_IS(rdma_ep_record, child, 32);
OFF_IS(rdma_ep_record, flags, 36);
OFF_IS(rdma_ep_record, child_serial, 40);
OFF_IS(rdma_ep_record, time_ns, 48);
OFF_IS(rdma_ep_record, arg, 56);
OFF_IS(rdma_ep_record, qp_num, 64);
OFF_IS(rdma_ep_record, qkey, 68);
OFF_IS(rdma_ep_record, responder_resources, 72);
OFF_IS(rdma_ep_record, private_data_len, 78);
OFF_IS(rdma_ep_record, ece_vendor_id, 80);
OFF_IS(rdma_ep_record, ece_attr_mod, 84);
OFF_IS(rdma_ep_record, ah, 88);
OFF_IS(rdma_ep_record, private_data, 120);
OFF_IS(rdma_ep_record, info, 376);
OFF_IS(rdma_ep_record, attr, 728);

SIZE_IS(rdma_ep_conn_param, 40);
OFF_IS(rdma_ep_conn_param, private_data_len, 8);
OFF_IS(rdma_ep_conn_param, responder_resources, 10);
OFF_IS(rdma_ep_conn_param, reserved, 16);
OFF_IS(rdma_ep_conn_param, qp_num, 20);
OFF_IS(rdma_ep_conn_param, qkey, 24);
OFF_IS(rdma_ep_conn_param, ece_vendor_id, 28);
OFF_IS(rdma_ep_conn_param, ece_attr_mod, 32);

SIZE_IS(rdma_ep_get_info, 48);
OFF_IS(rdma_ep_get_info, out_features, 24);
OFF_IS(rdma_ep_get_info, out_max_endpoints, 32);
OFF_IS(rdma_ep_get_info, out_endpoints, 36);
OFF_IS(rdma_ep_get_info, out_max_backlog, 40);

SIZE_IS(rdma_ep_create_channel, 24);
OFF_IS(rdma_ep_create_channel, file_flags, 16);
OFF_IS(rdma_ep_create_channel, out_fd, 20);

SIZE_IS(rdma_ep_create, 48);
OFF_IS(rdma_ep_create, cookie, 16);
OFF_IS(rdma_ep_create, port_space, 24);
OFF_IS(rdma_ep_create, qp_type, 28);
OFF_IS(rdma_ep_create, channel, 32);
OFF_IS(rdma_ep_create, out_ep, 36);
OFF_IS(rdma_ep_create, out_serial, 40);

SIZE_IS(rdma_ep_create_ep, 192);
OFF_IS(rdma_ep_create_ep, cookie, 16);
OFF_IS(rdma_ep_create_ep, port_space, 24);
OFF_IS(rdma_ep_create_ep, qp_type, 28);
OFF_IS(rdma_ep_create_ep, channel, 32);
OFF_IS(rdma_ep_create_ep, timeout_ms, 36);
OFF_IS(rdma_ep_create_ep, src, 40);
OFF_IS(rdma_ep_create_ep, dst, 104);
OFF_IS(rdma_ep_create_ep, record_uptr, 168);
OFF_IS(rdma_ep_create_ep, record_len, 176);
OFF_IS(rdma_ep_create_ep, out_ep, 180);
OFF_IS(rdma_ep_create_ep, out_serial, 184);

SIZE_IS(rdma_ep_destroy, 48);
OFF_IS(rdma_ep_destroy, ep, 16);
OFF_IS(rdma_ep_destroy, out_discarded, 20);
OFF_IS(rdma_ep_destroy, num_fds, 24);
OFF_IS(rdma_ep_destroy, out_idle, 28);
OFF_IS(rdma_ep_destroy, fd, 32);

SIZE_IS(rdma_ep_bind, 96);
OFF_IS(rdma_ep_bind, ep, 16);
OFF_IS(rdma_ep_bind, record_len, 20);
OFF_IS(rdma_ep_bind, record_uptr, 24);
OFF_IS(rdma_ep_bind, addr, 32);

SIZE_IS(rdma_ep_resolve_addr, 168);
OFF_IS(rdma_ep_resolve_addr, ep, 16);
OFF_IS(rdma_ep_resolve_addr, timeout_ms, 20);
OFF_IS(rdma_ep_resolve_addr, src, 24);
OFF_IS(rdma_ep_resolve_addr, dst, 88);
OFF_IS(rdma_ep_resolve_addr, record_uptr, 152);
OFF_IS(rdma_ep_resolve_addr, record_len, 160);

SIZE_IS(rdma_ep_resolve_route, 40);
OFF_IS(rdma_ep_resolve_route, record_uptr, 24);
OFF_IS(rdma_ep_resolve_route, record_len, 32);

SIZE_IS(rdma_ep_listen, 40);
OFF_IS(rdma_ep_listen, backlog, 20);
OFF_IS(rdma_ep_listen, record_uptr, 24);
OFF_IS(rdma_ep_listen, record_len, 32);

SIZE_IS(rdma_ep_connect, 72);
OFF_IS(rdma_ep_connect, record_len, 20);
OFF_IS(rdma_ep_connect, record_uptr, 24);
OFF_IS(rdma_ep_connect, param, 32);

SIZE_IS(rdma_ep_establish, 24);

SIZE_IS(rdma_ep_reject, 40);
OFF_IS(rdma_ep_reject, reason, 20);
OFF_IS(rdma_ep_reject, private_data_uptr, 24);
OFF_IS(rdma_ep_reject, private_data_len, 32);

SIZE_IS(rdma_ep_disconnect, 32);
OFF_IS(rdma_ep_disconnect, record_len, 20);
OFF_IS(rdma_ep_disconnect, record_uptr, 24);

SIZE_IS(rdma_ep_query, 40);
OFF_IS(rdma_ep_query, parts, 20);
OFF_IS(rdma_ep_query, record_uptr, 24);
OFF_IS(rdma_ep_query, record_len, 32);

SIZE_IS(rdma_ep_init_qp_attr, 32);
OFF_IS(rdma_ep_init_qp_attr, qp_state, 20);
OFF_IS(rdma_ep_init_qp_attr, attr_uptr, 24);

SIZE_IS(rdma_ep_attach, 24);
OFF_IS(rdma_ep_attach, channel, 20);

SIZE_IS(rdma_ep_wait, 48);
OFF_IS(rdma_ep_wait, record_len, 20);
OFF_IS(rdma_ep_wait, record_uptr, 24);
OFF_IS(rdma_ep_wait, child_cookie, 32);
OFF_IS(rdma_ep_wait, child_channel, 40);

SIZE_IS(rdma_ep_notify, 24);
OFF_IS(rdma_ep_notify, event, 20);

SIZE_IS(rdma_ep_join, 104);
OFF_IS(rdma_ep_join, join_flags, 20);
OFF_IS(rdma_ep_join, cookie, 24);
OFF_IS(rdma_ep_join, addr, 32);
OFF_IS(rdma_ep_join, out_group, 96);

SIZE_IS(rdma_ep_leave, 32);
OFF_IS(rdma_ep_leave, group, 20);
OFF_IS(rdma_ep_leave, out_discarded, 24);

SIZE_IS(rdma_ep_option, 40);
OFF_IS(rdma_ep_option, name, 20);
OFF_IS(rdma_ep_option, value_uptr, 24);
OFF_IS(rdma_ep_option, value_len, 32);

SIZE_IS(rdma_ep_write_event, 40);
OFF_IS(rdma_ep_write_event, event, 20);
OFF_IS(rdma_ep_write_event, status, 24);
OFF_IS(rdma_ep_write_event, arg, 32);

SIZE_IS(rdma_ep_service_rec, 176);
OFF_IS(rdma_ep_service_rec, gid, 8);
OFF_IS(rdma_ep_service_rec, pkey, 24);
OFF_IS(rdma_ep_service_rec, lease, 28);
OFF_IS(rdma_ep_service_rec, key, 32);
OFF_IS(rdma_ep_service_rec, name, 48);
OFF_IS(rdma_ep_service_rec, data_8, 112);
OFF_IS(rdma_ep_service_rec, data_16, 128);
OFF_IS(rdma_ep_service_rec, data_32, 144);
OFF_IS(rdma_ep_service_rec, data_64, 160);

SIZE_IS(rdma_ep_resolve_service, 112);
OFF_IS(rdma_ep_resolve_service, ep, 16);
OFF_IS(rdma_ep_resolve_service, by, 20);
OFF_IS(rdma_ep_resolve_service, service_id, 24);
OFF_IS(rdma_ep_resolve_service, name, 32);
OFF_IS(rdma_ep_resolve_service, record_uptr, 96);
OFF_IS(rdma_ep_resolve_service, record_len, 104);

SIZE_IS(rdma_ep_destroy_many, 40);
OFF_IS(rdma_ep_destroy_many, eps_uptr, 16);
OFF_IS(rdma_ep_destroy_many, count, 24);
OFF_IS(rdma_ep_destroy_many, out_destroyed, 28);
OFF_IS(rdma_ep_destroy_many, out_discarded, 32);
OFF_IS(rdma_ep_destroy_many, reserved, 36);

SIZE_IS(rdma_ep_uring_cmd, 16);
OFF_IS(rdma_ep_uring_cmd, flags, 8);
OFF_IS(rdma_ep_uring_cmd, reserved, 12);

SIZE_IS(rdma_ep_query_services, 40);
OFF_IS(rdma_ep_query_services, ep, 16);
OFF_IS(rdma_ep_query_services, count, 20);
OFF_IS(rdma_ep_query_services, recs_uptr, 24);
OFF_IS(rdma_ep_query_services, out_count, 32);
