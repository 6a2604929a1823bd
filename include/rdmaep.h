/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What librdmaep offers besides the functions of <rdma/rdma_cma.h>.
 */
#ifndef RDMAEP_H
#define RDMAEP_H

#include <stddef.h>
#include <stdint.h>
#include <rdma/rdma_cma.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * rdmaep_last_reason() - why the calling thread's last failed call failed
 *
 * Return: one of enum rdma_ep_reason_code of <rdma/rdma_ep.h>: numbers that do
 * not change. 0 (RDMA_EP_REASON_NONE) when errno says it all. A call that
 * succeeds does not change it.
 */
unsigned int rdmaep_last_reason(void);

/**
 * rdmaep_strerror() - the same as a sentence for people
 *
 * Return: a text that is valid until the thread's next call; empty if nothing is
 * known beyond errno. Never NULL.
 */
const char *rdmaep_strerror(void);

/**
 * enum rdmaep_option - names for rdmaep_set_option() and rdmaep_get_option()
 * @RDMAEP_OPT_TOS: type of service, uint8_t
 * @RDMAEP_OPT_REUSEADDR: let the port be shared while nobody listens, int
 * @RDMAEP_OPT_AFONLY: listen for the bound address family only, int
 * @RDMAEP_OPT_ACK_TIMEOUT: QP's local ACK timeout, 4.096 us * 2^value, 0 to
 *	31, uint8_t
 * @RDMAEP_OPT_MIN_RNR_TIMER: QP's minimum RNR NAK timer as IBTA table 45
 *	encodes it, 0 to 31, uint8_t
 * @RDMAEP_OPT_NODE_TYPE: use devices of this node type only, uint8_t
 * @RDMAEP_OPT_CONNECT_TIMEOUT: give up a connect or an accept that has not been
 *	answered after so many ms, uint32_t. 0, the default, leaves it to the
 *	transport, but for no longer than 25 minutes.
 * @RDMAEP_OPT_DEVICE: use the device with this index, as
 *	ibv_get_device_index(3) tells it, and no other; RDMAEP_ANY_DEVICE, the
 *	default, lifts that; uint32_t
 */
enum rdmaep_option {
	RDMAEP_OPT_TOS = 0,
	RDMAEP_OPT_REUSEADDR = 1,
	RDMAEP_OPT_AFONLY = 2,
	RDMAEP_OPT_ACK_TIMEOUT = 3,
	RDMAEP_OPT_MIN_RNR_TIMER = 5,
	RDMAEP_OPT_NODE_TYPE = 6,
	RDMAEP_OPT_CONNECT_TIMEOUT = 7,
	RDMAEP_OPT_DEVICE = 8,
};

/* RDMAEP_OPT_DEVICE: no restriction */
#define RDMAEP_ANY_DEVICE	0xffffffffu

/**
 * rdmaep_set_option() - set an option by its name here
 * @id: the id
 * @name: one of enum rdmaep_option
 * @value: address of the value
 * @len: its size in bytes, exactly that of the option's type
 *
 * Takes what rdma_set_option(3) takes at level RDMA_OPTION_ID, and more.
 *
 * Return: 0, or -1 with errno EINVAL (value, size or the id's state do not
 * permit it) or EOPNOTSUPP (module or kernel do not know the option).
 */
int rdmaep_set_option(struct rdma_cm_id *id, enum rdmaep_option name,
		      const void *value, size_t len);

/**
 * rdmaep_get_option() - read an option back
 * @id: the id
 * @name: one of enum rdmaep_option
 * @value: where the value goes
 * @len: its size in bytes, exactly that of the option's type
 *
 * Return: 0, or -1 with errno as for rdmaep_set_option().
 */
int rdmaep_get_option(struct rdma_cm_id *id, enum rdmaep_option name,
		      void *value, size_t len);

/**
 * struct rdmaep_limits - what an id can carry
 * @max_connect_data: bytes of private data in rdma_connect(), those of
 *	rdma_addrinfo.ai_connect included
 * @max_accept_data: bytes of private data in rdma_accept()
 * @max_reject_data: bytes of private data in rdma_reject()
 * @max_responder_resources: largest responder_resources of the device
 * @max_initiator_depth: largest initiator_depth of the device
 */
struct rdmaep_limits {
	uint16_t max_connect_data;
	uint16_t max_accept_data;
	uint16_t max_reject_data;
	uint8_t max_responder_resources;
	uint8_t max_initiator_depth;
};

/**
 * rdmaep_get_limits() - ask for the limits of an id
 * @id: an id that is bound to a device
 * @limits: where they go
 * @size: the size of that struct, so that it can grow
 *
 * Return: 0, or -1 with errno EINVAL (size) or ENODEV (not bound to a device).
 */
int rdmaep_get_limits(struct rdma_cm_id *id, struct rdmaep_limits *limits,
		      size_t size);

/*
 * Many at once. These start all that they are given before they wait, so that
 * what takes time overlaps, in one thread.
 */

/**
 * struct rdmaep_ep_attr - one of the ids that rdmaep_create_ep_many() makes
 * @res: as for rdma_create_ep(3)
 * @pd: as for rdma_create_ep(3)
 * @qp_init_attr: as for rdma_create_ep(3), but not written to, so that ids can
 *	share it
 */
struct rdmaep_ep_attr {
	const struct rdma_addrinfo *res;
	struct ibv_pd *pd;
	const struct ibv_qp_init_attr *qp_init_attr;
};

/**
 * rdmaep_create_ep_many() - rdma_create_ep() for many ids
 * @ids: where the @n ids go; NULL for those that fail
 * @attr: what they are made of
 * @n: how many
 * @errs: where @n error numbers go, 0 for success; or NULL
 *
 * A signal does not end it.
 *
 * Return: how many were made; if that is less than @n, errno is that of the
 * first that failed. -1 with errno EINVAL if an argument is wrong.
 */
int rdmaep_create_ep_many(struct rdma_cm_id **ids,
			  const struct rdmaep_ep_attr *attr, int n, int *errs);

/**
 * rdmaep_connect_many() - rdma_connect() for many ids
 * @ids: the ids. NULL among them counts as failed, with EINVAL.
 * @params: parameters for each, of which any can be NULL; or NULL for none
 * @n: how many
 * @errs: where @n error numbers go, 0 for success; or NULL
 *
 * Of an asynchronous id the connection is only begun, and its events come by
 * its channel. Synchronous ids are waited for, in the order in which the peers
 * answer; signals do not end that, and O_NONBLOCK does not prevent it.
 *
 * Return: how many went well; if that is less than @n, errno is that of the
 * first that failed. -1 with errno EINVAL or ENOMEM if nothing was begun.
 */
int rdmaep_connect_many(struct rdma_cm_id *const *ids,
			struct rdma_conn_param *const *params, int n,
			int *errs);

/**
 * enum rdmaep_destroy_flags - how rdmaep_destroy_ep_many() is to go about it
 * @RDMAEP_DESTROY_NOWAIT: do not wait for what is on the wire, nor for other
 *	threads to acknowledge events. The ids are gone when the call returns,
 *	and no event of theirs comes any more; ports and connections follow soon.
 */
enum rdmaep_destroy_flags {
	RDMAEP_DESTROY_NOWAIT = 1,
};

/**
 * rdmaep_destroy_ep_many() - rdma_destroy_ep() for many ids
 * @ids: the ids; NULL among them are passed over. All are set to NULL.
 * @n: how many
 * @flags: 0 or RDMAEP_DESTROY_NOWAIT
 *
 * Return: 0, or -1 with errno EINVAL if an argument is wrong.
 */
int rdmaep_destroy_ep_many(struct rdma_cm_id **ids, int n, unsigned int flags);

/**
 * rdmaep_get_cm_events() - take several events of a channel
 * @channel: the channel
 * @events: where they go; rdma_ack_cm_event(3) releases each
 * @n: how many, at most
 *
 * Waits for the first as rdma_get_cm_event(3) does; the others are those that
 * are there.
 *
 * Return: how many, at least 1; or -1 with errno as from rdma_get_cm_event(3).
 */
int rdmaep_get_cm_events(struct rdma_event_channel *channel,
			 struct rdma_cm_event **events, int n);

#ifdef __cplusplus
}
#endif

#endif /* RDMAEP_H */
