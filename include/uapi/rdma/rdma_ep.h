/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR BSD-3-Clause */
/*
 * rdma_ep: an RDMA connection manager for user space, as a character device.
 *
 * Opening /dev/infiniband/rdma_ep makes a context. A context holds endpoints,
 * named by handles that mean nothing outside of it, and channels, which are
 * files of their own that deliver event records by read(2). Queue pairs are
 * made with verbs; this interface carries everything else of a connection.
 *
 * Calls
 * -----
 * Every argument struct starts with &struct rdma_ep_hdr and is extensible: a
 * caller states the size it was built with, a module that knows less refuses
 * a tail that is not zero, a module that knows more reads the missing part as
 * zero. Command numbers are made with _IO(), so that they stay the same when
 * a struct grows.
 *
 * Events that nobody asked for (a disconnect, a removal, ...) have their memory
 * reserved in the endpoint, completions have it reserved when the operation is
 * started, so no event is lost. One of the former that happens again before it
 * was read is reported once.
 *
 * Errors
 * ------
 * One errno means one thing, for every command:
 *
 *  ENOTTY	no such command
 *  E2BIG	the struct has a tail that this module does not know, and it is
 *		not zero
 *  EOPNOTSUPP	a flag, a reserved field or an enum value that this module or
 *		this kernel does not know
 *  EINVAL	understood, but wrong: a value out of range, a struct that is
 *		too short, an operation that the endpoint's state forbids
 *  EFAULT	a pointer does not point at memory of the caller
 *  ENOENT	no endpoint or group of that handle in this context
 *  EBADF	the channel's file descriptor is not open, or not a channel of
 *		this context
 *  EBUSY	an asynchronous operation on the endpoint has not completed yet
 *  ENODEV	no RDMA device for this address, or the device has gone
 *  ENOMEM	out of memory; nothing has changed
 *  ENOSPC	the context's limit on endpoints is reached
 *  EDQUOT	the user's limit on endpoints and groups is reached
 *  EAGAIN	the operation was started, but the channel is non-blocking and
 *		the event is not there yet: it will be readable on the channel
 *  EINTR	a signal came first; a started operation goes on, and its event
 *		will be delivered as if it had not been waited for
 *  ECANCELED	the endpoint was destroyed by another thread meanwhile
 *  ENODATA	waited for an event that will not come: nothing is under way, or
 *		another thread has got it
 *
 * What rdma_cm itself answers (EADDRINUSE, EADDRNOTAVAIL, EACCES, ...) is
 * passed on. Besides, &rdma_ep_hdr.reason_uptr asks for a reason in words.
 *
 * Changes
 * -------
 *  ABI 1: first version.
 */
#ifndef RDMA_EP_H
#define RDMA_EP_H

#include <linux/ioctl.h>
#include <linux/types.h>
#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>

/** RDMA_EP_ABI_VERSION - version of this interface, see rdma_ep_get_info */
#define RDMA_EP_ABI_VERSION	1

/** RDMA_EP_DEVICE - where udev (or devtmpfs) puts the device */
#define RDMA_EP_DEVICE		"/dev/infiniband/rdma_ep"

#define RDMA_EP_IOC_TYPE	0xED

/**
 * struct rdma_ep_hdr - starts the argument of every command
 * @size: In: sizeof() of the struct as the caller knows it, this header
 *	included.
 * @flags: In: flags of the command. A flag that the command does not know
 *	is EOPNOTSUPP.
 * @reason_uptr: In: address of a &struct rdma_ep_reason, or 0. It is written
 *	when the call fails, and when it succeeds with a record whose status
 *	is not 0.
 */
struct rdma_ep_hdr {
	__u32 size;
	__u32 flags;
	__aligned_u64 reason_uptr;
};

/**
 * struct rdma_ep_reason - why a call failed, in the manner of netlink's
 *	extended acknowledgment
 * @code: Out: one of &enum rdma_ep_reason_code.
 * @reserved: Out: 0.
 * @text: Out: a sentence for people, ended by a NUL. Not for parsing.
 */
struct rdma_ep_reason {
	__u32 code;
	__u32 reserved;
	char text[120];
};

/**
 * enum rdma_ep_reason_code - stable numbers for what went wrong
 * @RDMA_EP_REASON_NONE: the errno says it all
 * @RDMA_EP_REASON_STRUCT: size, tail, flags or reserved fields of the argument
 * @RDMA_EP_REASON_HANDLE: no endpoint or group with that handle
 * @RDMA_EP_REASON_CHANNEL: not a channel of this context
 * @RDMA_EP_REASON_STATE: the endpoint's state does not allow the operation
 * @RDMA_EP_REASON_BUSY: an asynchronous operation is still under way
 * @RDMA_EP_REASON_ADDR_FORMAT: address too short or of an unknown family
 * @RDMA_EP_REASON_ADDR_SCOPE: link-local IPv6 address without a scope id
 * @RDMA_EP_REASON_ADDR_NOT_LOCAL: the address belongs to no netdev of this
 *	network namespace
 * @RDMA_EP_REASON_ADDR_IN_USE: the port is taken
 * @RDMA_EP_REASON_ADDR_PRIVILEGED: the port needs CAP_NET_BIND_SERVICE
 * @RDMA_EP_REASON_NO_DEVICE: the netdev has no RDMA device
 * @RDMA_EP_REASON_PORT_DOWN: the RDMA device's port is not active
 * @RDMA_EP_REASON_UNREACHABLE: no route to the destination, or it does not
 *	answer address resolution
 * @RDMA_EP_REASON_TIMEOUT: the peer did not answer in time
 * @RDMA_EP_REASON_REJECTED: the peer refused
 * @RDMA_EP_REASON_DEVICE_REMOVED: the RDMA device went away
 * @RDMA_EP_REASON_DATA_TOO_LONG: more private data than the transport carries
 * @RDMA_EP_REASON_LIMIT: a limit of the module is reached
 * @RDMA_EP_REASON_VALUE: a value is out of range
 * @RDMA_EP_REASON_KERNEL: this kernel's rdma_cm cannot do it
 * @RDMA_EP_REASON_DESTROYED: another thread destroyed the endpoint
 */
enum rdma_ep_reason_code {
	RDMA_EP_REASON_NONE,
	RDMA_EP_REASON_STRUCT,
	RDMA_EP_REASON_HANDLE,
	RDMA_EP_REASON_CHANNEL,
	RDMA_EP_REASON_STATE,
	RDMA_EP_REASON_BUSY,
	RDMA_EP_REASON_ADDR_FORMAT,
	RDMA_EP_REASON_ADDR_SCOPE,
	RDMA_EP_REASON_ADDR_NOT_LOCAL,
	RDMA_EP_REASON_ADDR_IN_USE,
	RDMA_EP_REASON_ADDR_PRIVILEGED,
	RDMA_EP_REASON_NO_DEVICE,
	RDMA_EP_REASON_PORT_DOWN,
	RDMA_EP_REASON_UNREACHABLE,
	RDMA_EP_REASON_TIMEOUT,
	RDMA_EP_REASON_REJECTED,
	RDMA_EP_REASON_DEVICE_REMOVED,
	RDMA_EP_REASON_DATA_TOO_LONG,
	RDMA_EP_REASON_LIMIT,
	RDMA_EP_REASON_VALUE,
	RDMA_EP_REASON_KERNEL,
	RDMA_EP_REASON_DESTROYED,
};

/*
 * Event records
 */

/**
 * enum rdma_ep_event_type - what a record reports
 * @RDMA_EP_EVENT_ADDR_RESOLVED: the destination is resolved, the endpoint is
 *	bound to a device
 * @RDMA_EP_EVENT_ADDR_ERROR: it could not be resolved
 * @RDMA_EP_EVENT_ROUTE_RESOLVED: path records are known
 * @RDMA_EP_EVENT_ROUTE_ERROR: no path was found
 * @RDMA_EP_EVENT_CONNECT_REQUEST: a peer wants to connect; a new endpoint has
 *	been made for it
 * @RDMA_EP_EVENT_CONNECT_RESPONSE: the peer accepted; the queue pair has to be
 *	moved to RTS and RDMA_EP_ESTABLISH be called
 * @RDMA_EP_EVENT_CONNECT_ERROR: the attempt to connect failed
 * @RDMA_EP_EVENT_UNREACHABLE: the peer did not answer
 * @RDMA_EP_EVENT_REJECTED: the peer refused; the status is its reason
 * @RDMA_EP_EVENT_ESTABLISHED: the connection stands
 * @RDMA_EP_EVENT_DISCONNECTED: the connection has ended
 * @RDMA_EP_EVENT_DEVICE_REMOVAL: the device went away; the endpoint can only
 *	be destroyed
 * @RDMA_EP_EVENT_MULTICAST_JOIN: the group is joined
 * @RDMA_EP_EVENT_MULTICAST_ERROR: the group could not be joined, or was lost
 * @RDMA_EP_EVENT_ADDR_CHANGE: the netdev behind the address changed
 * @RDMA_EP_EVENT_TIMEWAIT_EXIT: the queue pair may be used again
 * @RDMA_EP_EVENT_ADDRINFO_RESOLVED: service records are known
 * @RDMA_EP_EVENT_ADDRINFO_ERROR: no service record was found
 * @RDMA_EP_EVENT_USER: written by RDMA_EP_WRITE_EVENT
 * @RDMA_EP_EVENT_NONE: no event: the record answers a command
 *
 * The values are those of enum rdma_cm_event_type in <rdma/rdma_cma.h>.
 */
enum rdma_ep_event_type {
	RDMA_EP_EVENT_ADDR_RESOLVED,
	RDMA_EP_EVENT_ADDR_ERROR,
	RDMA_EP_EVENT_ROUTE_RESOLVED,
	RDMA_EP_EVENT_ROUTE_ERROR,
	RDMA_EP_EVENT_CONNECT_REQUEST,
	RDMA_EP_EVENT_CONNECT_RESPONSE,
	RDMA_EP_EVENT_CONNECT_ERROR,
	RDMA_EP_EVENT_UNREACHABLE,
	RDMA_EP_EVENT_REJECTED,
	RDMA_EP_EVENT_ESTABLISHED,
	RDMA_EP_EVENT_DISCONNECTED,
	RDMA_EP_EVENT_DEVICE_REMOVAL,
	RDMA_EP_EVENT_MULTICAST_JOIN,
	RDMA_EP_EVENT_MULTICAST_ERROR,
	RDMA_EP_EVENT_ADDR_CHANGE,
	RDMA_EP_EVENT_TIMEWAIT_EXIT,
	RDMA_EP_EVENT_ADDRINFO_RESOLVED,
	RDMA_EP_EVENT_ADDRINFO_ERROR,
	RDMA_EP_EVENT_USER,
	RDMA_EP_EVENT_NONE = 255,
};

/**
 * enum rdma_ep_state - where an endpoint stands
 * @RDMA_EP_STATE_IDLE: made
 * @RDMA_EP_STATE_BOUND: has a source address and port
 * @RDMA_EP_STATE_RESOLVING_ADDR: address resolution is under way
 * @RDMA_EP_STATE_ADDR_RESOLVED: destination and device are known
 * @RDMA_EP_STATE_RESOLVING_ROUTE: route resolution is under way
 * @RDMA_EP_STATE_ROUTE_RESOLVED: ready to connect
 * @RDMA_EP_STATE_LISTENING: takes connection requests
 * @RDMA_EP_STATE_REQUESTED: made for a connection request, not answered yet
 * @RDMA_EP_STATE_CONNECTING: connect was called
 * @RDMA_EP_STATE_RESPONDED: the peer's response has come, not established yet
 * @RDMA_EP_STATE_ACCEPTING: accept was called
 * @RDMA_EP_STATE_CONNECTED: established
 * @RDMA_EP_STATE_DISCONNECTED: was connected
 * @RDMA_EP_STATE_FAILED: the attempt to connect has failed or was rejected; or
 *	binding or resolving has led to a device that RDMA_EP_OPT_DEVICE excludes
 * @RDMA_EP_STATE_REMOVED: the device went away
 */
enum rdma_ep_state {
	RDMA_EP_STATE_IDLE,
	RDMA_EP_STATE_BOUND,
	RDMA_EP_STATE_RESOLVING_ADDR,
	RDMA_EP_STATE_ADDR_RESOLVED,
	RDMA_EP_STATE_RESOLVING_ROUTE,
	RDMA_EP_STATE_ROUTE_RESOLVED,
	RDMA_EP_STATE_LISTENING,
	RDMA_EP_STATE_REQUESTED,
	RDMA_EP_STATE_CONNECTING,
	RDMA_EP_STATE_RESPONDED,
	RDMA_EP_STATE_ACCEPTING,
	RDMA_EP_STATE_CONNECTED,
	RDMA_EP_STATE_DISCONNECTED,
	RDMA_EP_STATE_FAILED,
	RDMA_EP_STATE_REMOVED,
};

/**
 * enum rdma_ep_transport - what carries the connection
 * @RDMA_EP_TRANSPORT_NONE: not bound to a device
 * @RDMA_EP_TRANSPORT_IB: InfiniBand
 * @RDMA_EP_TRANSPORT_ROCE: RDMA over Converged Ethernet
 * @RDMA_EP_TRANSPORT_IWARP: iWARP
 */
enum rdma_ep_transport {
	RDMA_EP_TRANSPORT_NONE,
	RDMA_EP_TRANSPORT_IB,
	RDMA_EP_TRANSPORT_ROCE,
	RDMA_EP_TRANSPORT_IWARP,
};

#define RDMA_EP_ADDR_SIZE	60

/**
 * struct rdma_ep_addr - an address
 * @len: length of the address in bytes, 0 for none. As an argument it must be
 *	at least the size of its family's sockaddr.
 * @reserved: must be 0
 * @sa: a struct sockaddr_in, sockaddr_in6 or sockaddr_ib. Bytes after @len
 *	must be 0.
 */
struct rdma_ep_addr {
	__u16 len;
	__u16 reserved;
	__u8 sa[RDMA_EP_ADDR_SIZE];
};

#define RDMA_EP_MAX_PATHS	2

/**
 * struct rdma_ep_info - all there is to know about an endpoint
 * @src: source address, with the port that was picked
 * @dst: destination address
 * @sgid: source GID, zero while not bound to a device
 * @dgid: destination GID
 * @node_guid: the device's node GUID, in network byte order
 * @src_sid: IB service id of @src, in network byte order
 * @dst_sid: IB service id of @dst, in network byte order
 * @device_index: the device's index, as ibv_get_device_index() has it. Valid
 *	when @transport is not RDMA_EP_TRANSPORT_NONE.
 * @ifindex: the netdev's index, 0 if none
 * @port_num: port of the device, 0 while not bound to one
 * @state: one of &enum rdma_ep_state
 * @transport: one of &enum rdma_ep_transport
 * @num_paths: how many path records there are, even if fewer are in @path
 * @reserved: 0
 * @pkey: partition key in network byte order
 * @max_connect_data: bytes of private data that connect can carry
 * @max_accept_data: bytes of private data that accept can carry
 * @max_reject_data: bytes of private data that reject can carry
 * @backlog: listener: how many requests may wait unread
 * @requests: listener: how many requests wait unread
 * @overflows: listener: how many requests were refused since the backlog was
 *	full, or memory was short
 * @path: path records, primary first
 */
struct rdma_ep_info {
	struct rdma_ep_addr src;
	struct rdma_ep_addr dst;
	__u8 sgid[16];
	__u8 dgid[16];
	__be64 node_guid;
	__be64 src_sid;
	__be64 dst_sid;
	__u32 device_index;
	__u32 ifindex;
	__u32 port_num;
	__u8 state;
	__u8 transport;
	__u8 num_paths;
	__u8 reserved;
	__be16 pkey;
	__u16 max_connect_data;
	__u16 max_accept_data;
	__u16 max_reject_data;
	__u32 backlog;
	__u32 requests;
	__aligned_u64 overflows;
	struct ib_user_path_rec path[RDMA_EP_MAX_PATHS];
};

/* Parts of a record, in rdma_ep_record.flags and as the argument of queries */
#define RDMA_EP_REC_PARAM	(1 << 0)  /* connection parameters */
#define RDMA_EP_REC_UD		(1 << 1)  /* datagram parameters: ah, qkey */
#define RDMA_EP_REC_DATA	(1 << 2)  /* private data */
#define RDMA_EP_REC_INFO	(1 << 3)  /* info */
#define RDMA_EP_REC_INIT	(1 << 4)  /* attr[RDMA_EP_ATTR_INIT] */
#define RDMA_EP_REC_RTR		(1 << 5)  /* attr[RDMA_EP_ATTR_RTR] */
#define RDMA_EP_REC_RTS		(1 << 6)  /* attr[RDMA_EP_ATTR_RTS] */
#define RDMA_EP_REC_NO_DATA	(1 << 7)  /* private data was dropped for want of memory */

#define RDMA_EP_MAX_DATA	256

/* Index into rdma_ep_record.attr */
#define RDMA_EP_ATTR_INIT	0
#define RDMA_EP_ATTR_RTR	1
#define RDMA_EP_ATTR_RTS	2
#define RDMA_EP_ATTRS		3

/**
 * struct rdma_ep_record - an event, or the answer to a command
 * @size: bytes of this record, a multiple of 8. A record ends where its last
 *	part ends; parts before that which it lacks are zero. What is written
 *	after it, if anything, means nothing.
 * @type: one of &enum rdma_ep_event_type
 * @ep: handle of the endpoint that the event happened on. For a connection
 *	request, the listener.
 * @status: 0, a negative errno, or (REJECTED) the reason that the peer gave
 * @cookie: that endpoint's cookie
 * @serial: that endpoint's serial number
 * @child: connection request: handle of the endpoint made for it
 * @flags: RDMA_EP_REC_*: which of the parts below are filled
 * @child_serial: connection request: serial number of @child
 * @time_ns: CLOCK_MONOTONIC in ns at which the event happened
 * @arg: multicast: cookie of the group. User event: its argument.
 * @qp_num: peer's QP number
 * @qkey: datagram: the peer's or the group's qkey
 * @responder_resources: RDMA reads and atomics that the peer asks this side to
 *	serve at once
 * @initiator_depth: RDMA reads and atomics that the peer serves at once
 * @flow_control: whether the peer's hardware does flow control
 * @retry_count: connection request: the peer's retry count
 * @rnr_retry_count: the peer's RNR retry count
 * @srq: whether the peer's QP is on an SRQ
 * @private_data_len: bytes of @private_data
 * @reserved: 0
 * @ece_vendor_id: enhanced connection establishment: vendor
 * @ece_attr_mod: enhanced connection establishment: attribute modifier
 * @ah: datagram: how to reach the peer or the group
 * @private_data: what the peer sent along
 * @info: the endpoint. For a connection request, that of @child.
 * @attr: attributes to move the queue pair to INIT, RTR, RTS
 *
 * read(2) on a channel returns as many whole records as fit. The buffer has to
 * hold sizeof(struct rdma_ep_record) bytes at least; one of exactly that size
 * gets one record. A command that waits can have less room for it: @info and
 * each of @attr is left out of an event's record if it does not fit whole.
 */
struct rdma_ep_record {
	__u32 size;
	__u32 type;
	__u32 ep;
	__s32 status;
	__aligned_u64 cookie;
	__aligned_u64 serial;
	__u32 child;
	__u32 flags;
	__aligned_u64 child_serial;
	__aligned_u64 time_ns;
	__aligned_u64 arg;
	__u32 qp_num;
	__u32 qkey;
	__u8 responder_resources;
	__u8 initiator_depth;
	__u8 flow_control;
	__u8 retry_count;
	__u8 rnr_retry_count;
	__u8 srq;
	__u8 private_data_len;
	__u8 reserved;
	__u32 ece_vendor_id;
	__u32 ece_attr_mod;
	struct ib_uverbs_ah_attr ah;
	__u8 private_data[RDMA_EP_MAX_DATA];
	struct rdma_ep_info info;
	struct ib_uverbs_qp_attr attr[RDMA_EP_ATTRS];
};

/**
 * struct rdma_ep_conn_param - parameters of connect and accept
 * @private_data_uptr: address of the private data
 * @private_data_len: bytes of private data
 * @responder_resources: RDMA reads and atomics that this side serves at once
 * @initiator_depth: RDMA reads and atomics that this side starts at once
 * @flow_control: whether hardware flow control is available
 * @retry_count: 0 to 7, more counts as 7. Ignored when accepting.
 * @rnr_retry_count: 0 to 7, more counts as 7
 * @srq: whether the QP is on an SRQ
 * @reserved: must be 0
 * @qp_num: number of the QP, of which the lower 24 bits count
 * @qkey: datagram: the qkey of the QP, 0 for the default. Used with InfiniBand
 *	addresses only: others have the qkey of their port space.
 * @ece_vendor_id: enhanced connection establishment: vendor
 * @ece_attr_mod: enhanced connection establishment: attribute modifier
 *
 * See struct rdma_conn_param in rdma_connect(3) and rdma_accept(3).
 */
struct rdma_ep_conn_param {
	__aligned_u64 private_data_uptr;
	__u16 private_data_len;
	__u8 responder_resources;
	__u8 initiator_depth;
	__u8 flow_control;
	__u8 retry_count;
	__u8 rnr_retry_count;
	__u8 srq;
	__u32 reserved;
	__u32 qp_num;
	__u32 qkey;
	__u32 ece_vendor_id;
	__u32 ece_attr_mod;
};

/*
 * Flags that several commands share.
 *
 * RDMA_EP_F_WAIT: do not return before the operation has completed, unless
 *	the endpoint's channel is non-blocking. The event is returned in the
 *	command's record, and is not put on the channel. The call fails with an
 *	errno only if the operation could not be started or waited for; how it
 *	ended is in the record.
 * RDMA_EP_F_RESUME: the operation was started already: only wait for it. Set
 *	by the kernel in the caller's struct when a signal ends the wait, so that
 *	the restarted system call does not start the operation twice.
 * RDMA_EP_F_NEW_CHANNEL: make a channel for the endpoint, and return its file
 *	descriptor (opened O_CLOEXEC) in the command's channel field.
 */
#define RDMA_EP_F_WAIT		(1 << 0)
#define RDMA_EP_F_RESUME	(1 << 1)
#define RDMA_EP_F_NEW_CHANNEL	(1 << 2)

/*
 * Commands
 */

/* Features, in rdma_ep_get_info.out_features */
#define RDMA_EP_FEATURE_IB_SERVICE	(1 << 0) /* service records */
#define RDMA_EP_FEATURE_NODE_TYPE	(1 << 1) /* restriction to a node type */
/* 1 << 2 is reserved. */
#define RDMA_EP_FEATURE_URING		(1 << 3) /* calls through io_uring */

/**
 * struct rdma_ep_get_info - ioctl(RDMA_EP_GET_INFO)
 * @hdr: no flags
 * @out_abi_version: RDMA_EP_ABI_VERSION of the module
 * @out_commands: number of commands the module knows: they are numbered from 0
 * @out_features: RDMA_EP_FEATURE_*
 * @out_max_endpoints: limit on endpoints in one context
 * @out_endpoints: endpoints now in this context
 * @out_max_backlog: limit on a listener's backlog
 * @out_reserved: 0
 */
struct rdma_ep_get_info {
	struct rdma_ep_hdr hdr;
	__u32 out_abi_version;
	__u32 out_commands;
	__aligned_u64 out_features;
	__u32 out_max_endpoints;
	__u32 out_endpoints;
	__u32 out_max_backlog;
	__u32 out_reserved;
};

/**
 * struct rdma_ep_create_channel - ioctl(RDMA_EP_CREATE_CHANNEL)
 * @hdr: no flags
 * @file_flags: O_NONBLOCK and O_CLOEXEC, as for open(2)
 * @out_fd: the channel's file descriptor
 */
struct rdma_ep_create_channel {
	struct rdma_ep_hdr hdr;
	__u32 file_flags;
	__s32 out_fd;
};

/**
 * struct rdma_ep_create - ioctl(RDMA_EP_CREATE)
 * @hdr: RDMA_EP_F_NEW_CHANNEL
 * @cookie: returned in each event of the endpoint, not interpreted
 * @port_space: RDMA_PS_TCP, RDMA_PS_UDP, RDMA_PS_IPOIB or RDMA_PS_IB
 * @qp_type: IB_QPT_*. For RDMA_PS_IB only; other port spaces decide by
 *	themselves, and it must be 0 or what they decide.
 * @channel: file descriptor of a channel, or -1: events then wait at the
 *	endpoint, for RDMA_EP_F_WAIT or RDMA_EP_WAIT. With
 *	RDMA_EP_F_NEW_CHANNEL it must be -1, and is written.
 * @out_ep: the endpoint's handle, never 0
 * @out_serial: the endpoint's serial number, which is never used twice in the
 *	life of a context
 *
 * Follows rdma_create_id(3).
 */
struct rdma_ep_create {
	struct rdma_ep_hdr hdr;
	__aligned_u64 cookie;
	__u32 port_space;
	__u32 qp_type;
	__s32 channel;
	__u32 out_ep;
	__aligned_u64 out_serial;
};

/* RDMA_EP_CREATE_EP: make a passive endpoint: bound, not resolved */
#define RDMA_EP_CREATE_EP_PASSIVE	(1 << 8)
/* RDMA_EP_CREATE_EP: stop when the address is resolved */
#define RDMA_EP_CREATE_EP_NO_ROUTE	(1 << 9)
/* RDMA_EP_CREATE_EP: return when the resolution has begun */
#define RDMA_EP_CREATE_EP_START		(1 << 10)

/**
 * struct rdma_ep_create_ep - ioctl(RDMA_EP_CREATE_EP)
 * @hdr: RDMA_EP_F_NEW_CHANNEL, RDMA_EP_F_RESUME, RDMA_EP_CREATE_EP_*
 * @cookie: as &rdma_ep_create.cookie
 * @port_space: as &rdma_ep_create.port_space
 * @qp_type: as &rdma_ep_create.qp_type
 * @channel: as &rdma_ep_create.channel
 * @timeout_ms: time for each of address and route resolution, in ms
 * @src: source address. Passive: required. Active: optional.
 * @dst: active: destination address
 * @record_uptr: address for a &struct rdma_ep_record that receives the
 *	endpoint's info and INIT attributes
 * @record_len: bytes there
 * @out_ep: the endpoint's handle
 * @out_serial: the endpoint's serial number
 *
 * One call for the kernel's part of rdma_create_ep(3): create, bind, resolve
 * address, resolve route. It waits, whatever the channel's O_NONBLOCK says,
 * and leaves nothing behind when it fails. A failed resolution fails the call
 * with the errno of the event that reported it.
 *
 * If a signal ends the wait, the endpoint is there, @out_ep and @out_serial
 * say which, and it has no channel. The same call, with RDMA_EP_F_RESUME, which
 * the kernel has set, goes on with it; after EINTR the caller can also destroy
 * it.
 *
 * With RDMA_EP_CREATE_EP_START (EINVAL for a passive endpoint) it does not
 * wait, and completes like RDMA_EP_RESOLVE_ADDR. The endpoint is there whatever
 * becomes of its resolution, for which RDMA_EP_RESOLVE_ADDR with
 * RDMA_EP_F_WAIT | RDMA_EP_F_RESUME waits.
 */
struct rdma_ep_create_ep {
	struct rdma_ep_hdr hdr;
	__aligned_u64 cookie;
	__u32 port_space;
	__u32 qp_type;
	__s32 channel;
	__u32 timeout_ms;
	struct rdma_ep_addr src;
	struct rdma_ep_addr dst;
	__aligned_u64 record_uptr;
	__u32 record_len;
	__u32 out_ep;
	__aligned_u64 out_serial;
};

#define RDMA_EP_DESTROY_FDS	4

/**
 * struct rdma_ep_destroy - ioctl(RDMA_EP_DESTROY)
 * @hdr: no flags
 * @ep: the endpoint
 * @out_discarded: number of its events that were not read and never will be
 * @num_fds: how many of @fd there are
 * @out_idle: bit i is set if the file of @fd[i], now that the endpoint is gone,
 *	could pass for a new one: nothing can be read from it, O_NONBLOCK and
 *	O_ASYNC are off, and nothing but that descriptor refers to it: no other
 *	descriptor, no system call, no epoll set, no endpoint
 * @fd: file descriptors of the caller: channels, or files of any other kind
 *
 * The handle is invalid at once. Requests that nobody has read are rejected.
 * If the device keeps what ib_cm still has to send, as one may whose link has
 * gone, the call returns after some 10 s, and what is left goes when the device
 * lets it; @out_discarded is 0 then. The same holds for the CQE of io_uring, and
 * for closing the context.
 *
 * The files are not touched; a caller that made them for this endpoint learns
 * whether it may keep them for the next. Follows rdma_destroy_id(3).
 */
struct rdma_ep_destroy {
	struct rdma_ep_hdr hdr;
	__u32 ep;
	__u32 out_discarded;
	__u32 num_fds;
	__u32 out_idle;
	__s32 fd[RDMA_EP_DESTROY_FDS];
};

/* RDMA_EP_DESTROY_MANY: handles in one call, at most */
#define RDMA_EP_DESTROY_MAX		(1 << 20)

/* RDMA_EP_DESTROY_MANY: do not wait until they are gone */
#define RDMA_EP_DESTROY_NOWAIT		(1 << 8)

/**
 * struct rdma_ep_destroy_many - ioctl(RDMA_EP_DESTROY_MANY)
 * @hdr: RDMA_EP_DESTROY_NOWAIT
 * @eps_uptr: address of @count handles, a __u32 each
 * @count: how many, up to RDMA_EP_DESTROY_MAX
 * @out_destroyed: how many of them were endpoints of this context, and not
 *	being destroyed already; others are passed over
 * @out_discarded: number of their events that were not read and never will be;
 *	0 with RDMA_EP_DESTROY_NOWAIT
 * @reserved: must be 0
 *
 * What RDMA_EP_DESTROY does, for many at once: what each has on the wire is
 * waited for together, for 10 s. With RDMA_EP_DESTROY_NOWAIT the handles are
 * invalid and no event comes any more when the call returns; ports and device
 * are let go of soon after, even if the context is closed meanwhile. EINVAL for
 * too many, of which none is destroyed then; EFAULT in the midst of the handles
 * comes after those before it were destroyed.
 */
struct rdma_ep_destroy_many {
	struct rdma_ep_hdr hdr;
	__aligned_u64 eps_uptr;
	__u32 count;
	__u32 out_destroyed;
	__u32 out_discarded;
	__u32 reserved;
};

/**
 * struct rdma_ep_bind - ioctl(RDMA_EP_BIND)
 * @hdr: no flags
 * @ep: the endpoint
 * @record_len: bytes at @record_uptr
 * @record_uptr: address for a record that receives info and, when the address
 *	binds to a device, INIT attributes; or 0
 * @addr: local address; wildcards and port 0 are permitted
 *
 * Follows rdma_bind_addr(3).
 */
struct rdma_ep_bind {
	struct rdma_ep_hdr hdr;
	__u32 ep;
	__u32 record_len;
	__aligned_u64 record_uptr;
	struct rdma_ep_addr addr;
};

/* RDMA_EP_RESOLVE_ADDR: go on to the route in the kernel, report only that */
#define RDMA_EP_RESOLVE_THEN_ROUTE	(1 << 8)

/**
 * struct rdma_ep_resolve_addr - ioctl(RDMA_EP_RESOLVE_ADDR)
 * @hdr: RDMA_EP_F_WAIT, RDMA_EP_F_RESUME, RDMA_EP_RESOLVE_THEN_ROUTE
 * @ep: the endpoint
 * @timeout_ms: time to wait for the resolution, in ms
 * @src: source address, optional
 * @dst: destination address
 * @record_uptr: with RDMA_EP_F_WAIT: address for the event's record
 * @record_len: bytes there
 * @reserved: must be 0
 *
 * Completes with ADDR_RESOLVED or ADDR_ERROR (or, with
 * RDMA_EP_RESOLVE_THEN_ROUTE, ROUTE_RESOLVED or ROUTE_ERROR). One that fails
 * may leave an idle endpoint bound, to @src or to a free port.
 * Follows rdma_resolve_addr(3).
 */
struct rdma_ep_resolve_addr {
	struct rdma_ep_hdr hdr;
	__u32 ep;
	__u32 timeout_ms;
	struct rdma_ep_addr src;
	struct rdma_ep_addr dst;
	__aligned_u64 record_uptr;
	__u32 record_len;
	__u32 reserved;
};

/**
 * struct rdma_ep_resolve_route - ioctl(RDMA_EP_RESOLVE_ROUTE)
 * @hdr: RDMA_EP_F_WAIT, RDMA_EP_F_RESUME
 * @ep: the endpoint
 * @timeout_ms: time to wait for the resolution, in ms
 * @record_uptr: with RDMA_EP_F_WAIT: address for the event's record
 * @record_len: bytes there
 * @reserved: must be 0
 *
 * Completes with ROUTE_RESOLVED or ROUTE_ERROR. Follows
 * rdma_resolve_route(3).
 */
struct rdma_ep_resolve_route {
	struct rdma_ep_hdr hdr;
	__u32 ep;
	__u32 timeout_ms;
	__aligned_u64 record_uptr;
	__u32 record_len;
	__u32 reserved;
};

/**
 * struct rdma_ep_listen - ioctl(RDMA_EP_LISTEN)
 * @hdr: no flags
 * @ep: the endpoint. If it is not bound yet, it is bound to a free port.
 * @backlog: how many requests may wait unread; 0 for the largest
 * @record_uptr: address for a record that receives info, or 0
 * @record_len: bytes there
 * @reserved: must be 0
 *
 * A request that comes when @backlog requests wait is rejected at once, with
 * the IBTA reason "no resources", and counted. Follows rdma_listen(3).
 */
struct rdma_ep_listen {
	struct rdma_ep_hdr hdr;
	__u32 ep;
	__u32 backlog;
	__aligned_u64 record_uptr;
	__u32 record_len;
	__u32 reserved;
};

/**
 * struct rdma_ep_connect - ioctl(RDMA_EP_CONNECT) and ioctl(RDMA_EP_ACCEPT)
 * @hdr: RDMA_EP_F_WAIT, RDMA_EP_F_RESUME
 * @ep: the endpoint
 * @record_len: bytes at @record_uptr
 * @record_uptr: with RDMA_EP_F_WAIT: address for the event's record
 * @param: connection parameters
 *
 * Connect completes with CONNECT_RESPONSE (which carries the INIT, RTR and RTS
 * attributes), ESTABLISHED (datagram, iWARP), REJECTED, UNREACHABLE or
 * CONNECT_ERROR; accept completes with ESTABLISHED, CONNECT_ERROR,
 * UNREACHABLE, REJECTED or DISCONNECTED; either with DEVICE_REMOVAL if the
 * device goes meanwhile. Accepting a datagram request has no completion, and
 * RDMA_EP_F_WAIT does not wait then. Follow rdma_connect(3)
 * and rdma_accept(3).
 */
struct rdma_ep_connect {
	struct rdma_ep_hdr hdr;
	__u32 ep;
	__u32 record_len;
	__aligned_u64 record_uptr;
	struct rdma_ep_conn_param param;
};

/**
 * struct rdma_ep_establish - ioctl(RDMA_EP_ESTABLISH)
 * @hdr: no flags
 * @ep: the endpoint
 * @reserved: must be 0
 *
 * Tells the peer, after CONNECT_RESPONSE, that the queue pair is ready to
 * receive. Follows rdma_establish(3).
 */
struct rdma_ep_establish {
	struct rdma_ep_hdr hdr;
	__u32 ep;
	__u32 reserved;
};

/**
 * struct rdma_ep_reject - ioctl(RDMA_EP_REJECT)
 * @hdr: no flags
 * @ep: the endpoint
 * @reason: IBTA reject reason: 0 or 28 for a consumer's, 35 for ECE
 * @private_data_uptr: address of the private data
 * @private_data_len: bytes of private data
 * @reserved: must be 0
 *
 * Follows rdma_reject(3) and rdma_reject_ece(3).
 */
struct rdma_ep_reject {
	struct rdma_ep_hdr hdr;
	__u32 ep;
	__u32 reason;
	__aligned_u64 private_data_uptr;
	__u16 private_data_len;
	__u16 reserved[3];
};

/**
 * struct rdma_ep_disconnect - ioctl(RDMA_EP_DISCONNECT)
 * @hdr: RDMA_EP_F_WAIT, RDMA_EP_F_RESUME
 * @ep: the endpoint
 * @record_len: bytes at @record_uptr
 * @record_uptr: with RDMA_EP_F_WAIT: address for the event's record
 *
 * Idempotent: 0 when the peer, or an earlier call, went first. Of a connection
 * that is only being made, until ESTABLISHED, it is 0 as well, and ends nothing,
 * or EINVAL with RDMA_EP_F_WAIT.
 * Completes with DISCONNECTED or DEVICE_REMOVAL; with DISCONNECTED and the
 * status -ETIMEDOUT after 90 s if nothing was heard. If there is
 * nothing to wait for, RDMA_EP_F_WAIT answers with RDMA_EP_EVENT_NONE. Follows
 * rdma_disconnect(3).
 */
struct rdma_ep_disconnect {
	struct rdma_ep_hdr hdr;
	__u32 ep;
	__u32 record_len;
	__aligned_u64 record_uptr;
};

/**
 * struct rdma_ep_query - ioctl(RDMA_EP_QUERY)
 * @hdr: no flags
 * @ep: the endpoint
 * @parts: any of RDMA_EP_REC_INFO, _INIT, _RTR and _RTS. The call fails if
 *	one of them cannot be had in the endpoint's state. Of an endpoint whose
 *	device was removed, info has the state, and zeroes for the rest.
 * @record_uptr: address for the record
 * @record_len: bytes there
 * @reserved: must be 0
 *
 * Follows rdma_get_local_addr(3), rdma_get_peer_addr(3) and
 * rdma_init_qp_attr(3).
 */
struct rdma_ep_query {
	struct rdma_ep_hdr hdr;
	__u32 ep;
	__u32 parts;
	__aligned_u64 record_uptr;
	__u32 record_len;
	__u32 reserved;
};

/**
 * struct rdma_ep_init_qp_attr - ioctl(RDMA_EP_INIT_QP_ATTR)
 * @hdr: no flags
 * @ep: the endpoint, bound to a device
 * @qp_state: IB_QPS_*: the state to move to
 * @attr_uptr: address for a &struct ib_uverbs_qp_attr
 *
 * For states that RDMA_EP_QUERY has no part for. Follows
 * rdma_init_qp_attr(3).
 */
struct rdma_ep_init_qp_attr {
	struct rdma_ep_hdr hdr;
	__u32 ep;
	__u32 qp_state;
	__aligned_u64 attr_uptr;
};

/**
 * struct rdma_ep_attach - ioctl(RDMA_EP_ATTACH)
 * @hdr: RDMA_EP_F_NEW_CHANNEL
 * @ep: the endpoint
 * @channel: file descriptor of a channel, or -1 for none. With
 *	RDMA_EP_F_NEW_CHANNEL it must be -1, and is written.
 *
 * From now on the endpoint's events go to that channel. Those not read yet
 * move along, in order, and a listener's unread requests with it. Follows
 * rdma_migrate_id(3).
 */
struct rdma_ep_attach {
	struct rdma_ep_hdr hdr;
	__u32 ep;
	__s32 channel;
};

/* RDMA_EP_WAIT: do not block: EAGAIN when there is no event */
#define RDMA_EP_WAIT_NOWAIT		(1 << 8)

/**
 * struct rdma_ep_wait - ioctl(RDMA_EP_WAIT)
 * @hdr: RDMA_EP_WAIT_NOWAIT, RDMA_EP_F_NEW_CHANNEL
 * @ep: the endpoint
 * @record_len: bytes at @record_uptr
 * @record_uptr: address for the event's record
 * @child_cookie: if the event is a connection request: cookie of the new
 *	endpoint
 * @child_channel: likewise its channel, or -1 for none. With
 *	RDMA_EP_F_NEW_CHANNEL it must be -1, and is written if a channel was
 *	made.
 * @reserved: must be 0
 *
 * Takes the next event of this endpoint, whether it has a channel or not, and
 * honours the channel's O_NONBLOCK. ENODEV when the device was removed and no
 * event is left. Follows rdma_get_request(3).
 */
struct rdma_ep_wait {
	struct rdma_ep_hdr hdr;
	__u32 ep;
	__u32 record_len;
	__aligned_u64 record_uptr;
	__aligned_u64 child_cookie;
	__s32 child_channel;
	__u32 reserved;
};

/**
 * struct rdma_ep_notify - ioctl(RDMA_EP_NOTIFY)
 * @hdr: no flags
 * @ep: the endpoint
 * @event: enum ibv_event_type: IBV_EVENT_COMM_EST or IBV_EVENT_PATH_MIG
 *
 * Follows rdma_notify(3).
 */
struct rdma_ep_notify {
	struct rdma_ep_hdr hdr;
	__u32 ep;
	__u32 event;
};

/* rdma_ep_join.join_flags */
#define RDMA_EP_JOIN_FULL_MEMBER	0
#define RDMA_EP_JOIN_SEND_ONLY		1

/**
 * struct rdma_ep_join - ioctl(RDMA_EP_JOIN)
 * @hdr: no flags
 * @ep: the endpoint, bound to a device
 * @join_flags: RDMA_EP_JOIN_*
 * @cookie: returned as &rdma_ep_record.arg in the group's events
 * @addr: the group's address
 * @out_group: the group's handle within the endpoint
 * @reserved: must be 0
 *
 * Completes with MULTICAST_JOIN or MULTICAST_ERROR. An address can be joined
 * several times; what was joined last is to be left first. ENOSPC if the endpoint
 * is in 8,192 groups. Follows rdma_join_multicast_ex(3).
 */
struct rdma_ep_join {
	struct rdma_ep_hdr hdr;
	__u32 ep;
	__u32 join_flags;
	__aligned_u64 cookie;
	struct rdma_ep_addr addr;
	__u32 out_group;
	__u32 reserved;
};

/**
 * struct rdma_ep_leave - ioctl(RDMA_EP_LEAVE)
 * @hdr: no flags
 * @ep: the endpoint
 * @group: the group
 * @out_discarded: number of the group's events that were not read and never
 *	will be
 * @reserved: must be 0
 *
 * EINVAL if the endpoint has joined the same address again since. Follows
 * rdma_leave_multicast(3).
 */
struct rdma_ep_leave {
	struct rdma_ep_hdr hdr;
	__u32 ep;
	__u32 group;
	__u32 out_discarded;
	__u32 reserved;
};

/**
 * enum rdma_ep_option_name - what RDMA_EP_SET_OPTION and _GET_OPTION know
 * @RDMA_EP_OPT_TOS: type of service, __u8
 * @RDMA_EP_OPT_REUSEADDR: let the port be shared while nobody listens, __u32
 * @RDMA_EP_OPT_AFONLY: listen for the bound address family only, __u32
 * @RDMA_EP_OPT_ACK_TIMEOUT: QP's local ACK timeout as IBTA 9.7.6.1.3 encodes
 *	it, 0 to 31, __u8
 * @RDMA_EP_OPT_IB_PATH: set only: an array of struct ib_path_rec_data, of
 *	which the primary is used; completes as RDMA_EP_RESOLVE_ROUTE does
 * @RDMA_EP_OPT_MIN_RNR_TIMER: QP's RNR NAK timer as IBTA table 45 encodes it,
 *	0 to 31, __u8
 * @RDMA_EP_OPT_NODE_TYPE: use devices of this node type only (enum
 *	rdma_node_type), __u8. Where RDMA_EP_FEATURE_NODE_TYPE says so.
 * @RDMA_EP_OPT_CONNECT_TIMEOUT: give up a connect or an accept that has not been
 *	answered after this many ms, __u32. 0, the default, leaves it to the
 *	transport, but for no longer than 25 minutes.
 * @RDMA_EP_OPT_DEVICE: use the device with this index only, __u32;
 *	RDMA_EP_ANY_DEVICE, the default, is no restriction. Binding to an
 *	address of another device is ENODEV, and leaves an endpoint that can
 *	only be destroyed; a destination behind another is ADDR_ERROR with
 *	status -ENODEV; requests that come by another are rejected as if nobody
 *	listened. EINVAL for an endpoint that is bound to another.
 */
enum rdma_ep_option_name {
	RDMA_EP_OPT_TOS,
	RDMA_EP_OPT_REUSEADDR,
	RDMA_EP_OPT_AFONLY,
	RDMA_EP_OPT_ACK_TIMEOUT,
	RDMA_EP_OPT_IB_PATH,
	RDMA_EP_OPT_MIN_RNR_TIMER,
	RDMA_EP_OPT_NODE_TYPE,
	RDMA_EP_OPT_CONNECT_TIMEOUT,
	RDMA_EP_OPT_DEVICE,
};

/* RDMA_EP_OPT_DEVICE: no restriction */
#define RDMA_EP_ANY_DEVICE	0xffffffff

/**
 * struct rdma_ep_option - ioctl(RDMA_EP_SET_OPTION), ioctl(RDMA_EP_GET_OPTION)
 * @hdr: no flags
 * @ep: the endpoint
 * @name: one of &enum rdma_ep_option_name
 * @value_uptr: address of the value
 * @value_len: its size in bytes, exactly
 * @reserved: must be 0
 *
 * Follows rdma_set_option(3).
 */
struct rdma_ep_option {
	struct rdma_ep_hdr hdr;
	__u32 ep;
	__u32 name;
	__aligned_u64 value_uptr;
	__u32 value_len;
	__u32 reserved;
};

/**
 * struct rdma_ep_write_event - ioctl(RDMA_EP_WRITE_EVENT)
 * @hdr: no flags
 * @ep: the endpoint
 * @event: RDMA_EP_EVENT_USER
 * @status: status of the event
 * @reserved: must be 0
 * @arg: argument of the event
 *
 * Queues an event of one's own, which wakes whoever reads the channel.
 * Follows rdma_write_cm_event(3).
 */
struct rdma_ep_write_event {
	struct rdma_ep_hdr hdr;
	__u32 ep;
	__u32 event;
	__s32 status;
	__u32 reserved;
	__aligned_u64 arg;
};

#define RDMA_EP_SERVICE_NAME_SIZE	64

/**
 * struct rdma_ep_service_rec - an IB service record, IBTA 15.2.5.14
 * @id: service id
 * @gid: port GID of who offers it
 * @pkey: partition key
 * @reserved: 0
 * @lease: for how many s it is registered
 * @key: service key
 * @name: service name, ended by a NUL if it is shorter
 * @data_8: service data
 * @data_16: service data
 * @data_32: service data
 * @data_64: service data
 */
struct rdma_ep_service_rec {
	__be64 id;
	__u8 gid[16];
	__be16 pkey;
	__u8 reserved[2];
	__be32 lease;
	__u8 key[16];
	__u8 name[RDMA_EP_SERVICE_NAME_SIZE];
	__u8 data_8[16];
	__be16 data_16[8];
	__be32 data_32[4];
	__be64 data_64[2];
};

/* rdma_ep_resolve_service.by */
#define RDMA_EP_SERVICE_BY_ID	(1 << 0)
#define RDMA_EP_SERVICE_BY_NAME	(1 << 1)

/**
 * struct rdma_ep_resolve_service - ioctl(RDMA_EP_RESOLVE_SERVICE)
 * @hdr: RDMA_EP_F_WAIT, RDMA_EP_F_RESUME
 * @ep: the endpoint, bound to an InfiniBand port
 * @by: RDMA_EP_SERVICE_BY_*: which of the next two to look for, or both
 * @service_id: service id, in host byte order
 * @name: service name, ended by a NUL if it is shorter
 * @record_uptr: with RDMA_EP_F_WAIT: address for the event's record
 * @record_len: bytes there
 * @reserved: must be 0
 *
 * Completes with ADDRINFO_RESOLVED or ADDRINFO_ERROR. EOPNOTSUPP unless
 * RDMA_EP_FEATURE_IB_SERVICE is there. Follows rdma_resolve_addrinfo(3) with
 * RAI_SA.
 */
struct rdma_ep_resolve_service {
	struct rdma_ep_hdr hdr;
	__u32 ep;
	__u32 by;
	__aligned_u64 service_id;
	__u8 name[RDMA_EP_SERVICE_NAME_SIZE];
	__aligned_u64 record_uptr;
	__u32 record_len;
	__u32 reserved;
};

/**
 * struct rdma_ep_query_services - ioctl(RDMA_EP_QUERY_SERVICES)
 * @hdr: no flags
 * @ep: the endpoint
 * @count: how many records there is room for
 * @recs_uptr: address for @count &struct rdma_ep_service_rec
 * @out_count: how many there are, even if fewer fit
 * @reserved: must be 0
 *
 * Follows rdma_query_addrinfo(3).
 */
struct rdma_ep_query_services {
	struct rdma_ep_hdr hdr;
	__u32 ep;
	__u32 count;
	__aligned_u64 recs_uptr;
	__u32 out_count;
	__u32 reserved;
};

#define RDMA_EP_GET_INFO	_IO(RDMA_EP_IOC_TYPE, 0)
#define RDMA_EP_CREATE_CHANNEL	_IO(RDMA_EP_IOC_TYPE, 1)
#define RDMA_EP_CREATE		_IO(RDMA_EP_IOC_TYPE, 2)
#define RDMA_EP_CREATE_EP	_IO(RDMA_EP_IOC_TYPE, 3)
#define RDMA_EP_DESTROY		_IO(RDMA_EP_IOC_TYPE, 4)
#define RDMA_EP_BIND		_IO(RDMA_EP_IOC_TYPE, 5)
#define RDMA_EP_RESOLVE_ADDR	_IO(RDMA_EP_IOC_TYPE, 6)
#define RDMA_EP_RESOLVE_ROUTE	_IO(RDMA_EP_IOC_TYPE, 7)
#define RDMA_EP_LISTEN		_IO(RDMA_EP_IOC_TYPE, 8)
#define RDMA_EP_CONNECT		_IO(RDMA_EP_IOC_TYPE, 9)
#define RDMA_EP_ACCEPT		_IO(RDMA_EP_IOC_TYPE, 10)
#define RDMA_EP_ESTABLISH	_IO(RDMA_EP_IOC_TYPE, 11)
#define RDMA_EP_REJECT		_IO(RDMA_EP_IOC_TYPE, 12)
#define RDMA_EP_DISCONNECT	_IO(RDMA_EP_IOC_TYPE, 13)
#define RDMA_EP_QUERY		_IO(RDMA_EP_IOC_TYPE, 14)
#define RDMA_EP_INIT_QP_ATTR	_IO(RDMA_EP_IOC_TYPE, 15)
#define RDMA_EP_ATTACH		_IO(RDMA_EP_IOC_TYPE, 16)
#define RDMA_EP_WAIT		_IO(RDMA_EP_IOC_TYPE, 17)
#define RDMA_EP_NOTIFY		_IO(RDMA_EP_IOC_TYPE, 18)
#define RDMA_EP_JOIN		_IO(RDMA_EP_IOC_TYPE, 19)
#define RDMA_EP_LEAVE		_IO(RDMA_EP_IOC_TYPE, 20)
#define RDMA_EP_SET_OPTION	_IO(RDMA_EP_IOC_TYPE, 21)
#define RDMA_EP_GET_OPTION	_IO(RDMA_EP_IOC_TYPE, 22)
#define RDMA_EP_WRITE_EVENT	_IO(RDMA_EP_IOC_TYPE, 23)
#define RDMA_EP_RESOLVE_SERVICE	_IO(RDMA_EP_IOC_TYPE, 24)
#define RDMA_EP_QUERY_SERVICES	_IO(RDMA_EP_IOC_TYPE, 25)
#define RDMA_EP_DESTROY_MANY	_IO(RDMA_EP_IOC_TYPE, 26)

/**
 * struct rdma_ep_uring_cmd - the command area of an io_uring SQE
 * @arg_uptr: address of the command's argument struct, the same as for ioctl(2)
 * @flags: must be 0
 * @reserved: must be 0
 *
 * Where RDMA_EP_FEATURE_URING says so, an SQE with the opcode
 * IORING_OP_URING_CMD, a context's file, a command's number in cmd_op and this
 * struct in cmd makes the same call as ioctl(2). The CQE's res is 0 or a
 * negative errno; all results are in the argument struct by then. That struct,
 * and what it points at, must stay where they are until the CQE has come.
 *
 * A call that waits (RDMA_EP_F_WAIT, RDMA_EP_CREATE_EP, RDMA_EP_WAIT,
 * RDMA_EP_DESTROY) occupies no thread: the operation is started, and the CQE
 * comes when it has ended. It waits even if the endpoint's channel is
 * non-blocking, and signals do not end the wait. RDMA_EP_NOTIFY,
 * RDMA_EP_LISTEN, RDMA_EP_LEAVE and RDMA_EP_DESTROY_MANY, which may take
 * long in the kernel, are made by a worker of the ring, and so are
 * RDMA_EP_CONNECT over iWARP and RDMA_EP_DESTROY of what may still have
 * something to send, a connection for instance. A ring made with
 * IORING_SETUP_IOPOLL gets EOPNOTSUPP, where the kernel tells of that.
 *
 * Destroying the endpoint ends the wait, with ECANCELED, and so does the end of
 * the ring or of the task that submitted the call; if the task was one thread of
 * several, from Linux 6.7 on only when the next event comes. From then on nothing
 * is written for the call. The operation goes on, as after EINTR, and its event
 * is on the channel; only an endpoint that RDMA_EP_CREATE_EP was about to make is
 * destroyed. Linux has no way yet for IORING_OP_ASYNC_CANCEL to end it.
 */
struct rdma_ep_uring_cmd {
	__aligned_u64 arg_uptr;
	__u32 flags;
	__u32 reserved;
};

#endif /* RDMA_EP_H */
