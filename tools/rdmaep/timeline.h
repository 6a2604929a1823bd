/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Trace events put together to the life of each endpoint.
 */
#ifndef RDMAEP_TIMELINE_H
#define RDMAEP_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracefs.h"

/* What a step of a connection is, for colours and for the table of phases. */
enum phase {
	PHASE_NONE,	/* no phase of its own: it is told, and not counted */
	PHASE_ADDRESS,	/* from the start of resolving to the address */
	PHASE_ROUTE,	/* to the route */
	PHASE_PREPARE,	/* the program gets ready: the QP, most of all */
	PHASE_REQUEST,	/* REQ sent, to the REP's coming */
	PHASE_CONFIRM,	/* REP come, to the RTU's sending */
	PHASE_ANSWER,	/* passive: REQ come, to the REP's sending */
	PHASE_ACCEPT,	/* passive: REP sent, to the RTU's coming */
	PHASE_CONNECTED,
	PHASE_END,
	PHASES
};

extern const char *const phase_names[PHASES];

/**
 * struct step - something that has happened to an endpoint
 * @us: when
 * @phase: the phase that has ended with it
 * @failed: it went wrong
 * @aside: told by the way: the phase goes on
 * @text: what it was
 */
struct step {
	uint64_t us;
	enum phase phase;
	bool failed;
	bool aside;
	char text[100];
};

/**
 * struct life - an endpoint from its making to its end
 * @ctx: its context
 * @ep: its handle
 * @passive: it was made for a request
 * @listening: it listened
 * @device: RDMA device and port, or empty
 * @src: source, or empty
 * @dst: destination, or empty
 * @state: the last state seen
 * @connected_us: when it was connected, or 0
 * @failed: its making, or its attempt to connect, failed
 * @ended: it was destroyed: what comes with its name is another
 * @steps: what has happened
 * @count: how many
 */
struct life {
	unsigned int ctx;
	unsigned int ep;
	bool passive;
	bool listening;
	char device[80];
	char src[64];
	char dst[64];
	char state[24];
	uint64_t connected_us;
	bool failed;
	bool ended;
	struct step *steps;
	size_t count;
};

/**
 * struct timeline - all of them, in the order of their making
 * @lives: endpoints
 * @count: how many
 */
struct timeline {
	struct life *lives;
	size_t count;
};

/**
 * call_has_failed() - has this TRACE_CALL failed?
 * @event: the event
 *
 * To wait in vain, or until a signal comes, is no failure.
 *
 * Return: whether it has.
 */
bool call_has_failed(const struct trace_event *event);

/**
 * timeline_add() - add what has happened
 * @t: the timeline
 * @event: in the order of time
 */
void timeline_add(struct timeline *t, const struct trace_event *event);

void timeline_free(struct timeline *t);

/**
 * timeline_svg() - draw it
 * @t: the timeline
 * @file: where to
 * @title: above it
 *
 * Return: 0, or -1 with errno.
 */
int timeline_svg(const struct timeline *t, const char *file, const char *title);

#endif /* RDMAEP_TIMELINE_H */
