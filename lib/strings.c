// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Names of events.
 */
#include "rdmaep-internal.h"

#define EVENT_NAME(x)	[RDMA_EP_EVENT_##x] = "RDMA_CM_EVENT_" #x

/* By their numbers in the uapi: headers of older rdma-core lack the last. */
static const char *const event_names[] = {
	EVENT_NAME(ADDR_RESOLVED),
	EVENT_NAME(ADDR_ERROR),
	EVENT_NAME(ROUTE_RESOLVED),
	EVENT_NAME(ROUTE_ERROR),
	EVENT_NAME(CONNECT_REQUEST),
	EVENT_NAME(CONNECT_RESPONSE),
	EVENT_NAME(CONNECT_ERROR),
	EVENT_NAME(UNREACHABLE),
	EVENT_NAME(REJECTED),
	EVENT_NAME(ESTABLISHED),
	EVENT_NAME(DISCONNECTED),
	EVENT_NAME(DEVICE_REMOVAL),
	EVENT_NAME(MULTICAST_JOIN),
	EVENT_NAME(MULTICAST_ERROR),
	EVENT_NAME(ADDR_CHANGE),
	EVENT_NAME(TIMEWAIT_EXIT),
	EVENT_NAME(ADDRINFO_RESOLVED),
	EVENT_NAME(ADDRINFO_ERROR),
	EVENT_NAME(USER),
};

/**
 * rdma_event_str() - name of an event
 * @event: the event
 *
 * Follows rdma_event_str(3).
 *
 * Return: the enumerator's name, or "UNKNOWN EVENT".
 */
RDMAEP_API const char *rdma_event_str(enum rdma_cm_event_type event)
{
	unsigned int i = event;

	if (i >= sizeof(event_names) / sizeof(event_names[0]))
		return "UNKNOWN EVENT";
	return event_names[i];
}
