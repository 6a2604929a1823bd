// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * From trace events to lives of endpoints. A change of state is what has been
 * sent or has come: CONNECTING is the REQ, RESPONDED the REP, and so on.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_ep.h>

#include "timeline.h"

#define RESTARTED	512	/* the kernel's ERESTARTSYS: after a signal, the call goes on */

const char *const phase_names[PHASES] = {
	[PHASE_NONE] = "between",
	[PHASE_ADDRESS] = "address",
	[PHASE_ROUTE] = "route",
	[PHASE_PREPARE] = "prepare",
	[PHASE_REQUEST] = "REQ to REP",
	[PHASE_CONFIRM] = "REP to RTU",
	[PHASE_ANSWER] = "REQ to accept",
	[PHASE_ACCEPT] = "REP to RTU",
	[PHASE_CONNECTED] = "connected",
	[PHASE_END] = "end",
};

/* What it means that an endpoint has got from one state to another. */
static const struct {
	const char *from;	/* NULL: any */
	const char *to;
	enum phase phase;
	const char *text;
} transitions[] = {
	{ NULL, "BOUND", PHASE_NONE, "bound" },
	{ NULL, "RESOLVING_ADDR", PHASE_NONE, "starts to resolve" },
	{ "RESOLVING_ADDR", "ADDR_RESOLVED", PHASE_ADDRESS, "address resolved" },
	{ "RESOLVING_ADDR", "RESOLVING_ROUTE", PHASE_ADDRESS, "address resolved" },
	{ NULL, "RESOLVING_ROUTE", PHASE_NONE, "asks for the route" },
	{ "RESOLVING_ROUTE", "ROUTE_RESOLVED", PHASE_ROUTE, "route resolved" },
	{ NULL, "LISTENING", PHASE_NONE, "listens" },
	{ NULL, "CONNECTING", PHASE_PREPARE, "REQ sent" },
	{ "CONNECTING", "RESPONDED", PHASE_REQUEST, "REP has come" },
	{ "CONNECTING", "CONNECTED", PHASE_REQUEST, "reply has come: connected" },
	{ "RESPONDED", "CONNECTED", PHASE_CONFIRM, "RTU sent: connected" },
	{ NULL, "ACCEPTING", PHASE_ANSWER, "REP sent" },
	{ "ACCEPTING", "CONNECTED", PHASE_ACCEPT, "RTU has come: connected" },
	{ "CONNECTED", "DISCONNECTED", PHASE_CONNECTED, "disconnected" },
	{ NULL, "DISCONNECTED", PHASE_NONE, "disconnected" },
	{ NULL, "FAILED", PHASE_NONE, "failed" },
	{ NULL, "REMOVED", PHASE_NONE, "the device has gone" },
};

static struct life *find_life(struct timeline *t, unsigned int ctx, unsigned int ep)
{
	size_t i;

	for (i = t->count; i-- > 0;)
		if (t->lives[i].ctx == ctx && t->lives[i].ep == ep)
			return t->lives[i].ended ? NULL : &t->lives[i];
	return NULL;
}

/* An endpoint that cannot be made has gone when the call that was to make it returns. */
static struct life *find_unmade(struct timeline *t, const struct trace_event *e)
{
	size_t i;

	if (e->kind != TRACE_CALL || e->command != _IOC_NR(RDMA_EP_CREATE_EP))
		return NULL;
	for (i = t->count; i-- > 0;)
		if (t->lives[i].ctx == e->ctx && t->lives[i].ep == e->ep)
			return &t->lives[i];
	return NULL;
}

static struct life *new_life(struct timeline *t, unsigned int ctx, unsigned int ep)
{
	struct life *grown = realloc(t->lives, (t->count + 1) * sizeof(*grown));

	if (!grown)
		abort();
	t->lives = grown;
	t->lives[t->count] = (struct life){ .ctx = ctx, .ep = ep };
	return &t->lives[t->count++];
}

__attribute__((format(printf, 4, 5)))
static struct step *add_step(struct life *life, uint64_t us, enum phase phase, const char *fmt,
			     ...)
{
	struct step *grown = realloc(life->steps, (life->count + 1) * sizeof(*grown)), *step;
	va_list ap;

	if (!grown)
		abort();
	life->steps = grown;
	step = &life->steps[life->count++];
	*step = (struct step){ .us = us, .phase = phase };
	va_start(ap, fmt);
	vsnprintf(step->text, sizeof(step->text), fmt, ap);
	va_end(ap);
	return step;
}

static void add_state(struct life *life, const struct trace_event *e)
{
	enum phase phase = PHASE_NONE;
	const char *text = e->name;
	struct step *step;
	size_t i;

	for (i = 0; i < sizeof(transitions) / sizeof(transitions[0]); i++) {
		if (strcmp(e->name, transitions[i].to) ||
		    (transitions[i].from && strcmp(e->from, transitions[i].from)))
			continue;
		phase = transitions[i].phase;
		text = transitions[i].text;
		break;
	}
	step = add_step(life, e->us, phase, "%s", text);
	if (!strcmp(e->name, "FAILED") || !strcmp(e->name, "REMOVED"))
		step->failed = true;
	if (!strcmp(e->name, "FAILED"))
		life->failed = true;
	if (!strcmp(e->name, "CONNECTED") && !life->connected_us)
		life->connected_us = e->us;
	if (!strcmp(e->name, "LISTENING"))
		life->listening = true;
	snprintf(life->state, sizeof(life->state), "%s", e->name);
}

/* Good events go with a change of state, which is told already. */
static void add_queued(struct life *life, const struct trace_event *e)
{
	struct step *step;

	if (e->status) {
		step = add_step(life, e->us, PHASE_NONE, "event %s: %s", e->name,
				e->status < 0 ? strerror(-e->status) : "refused by the peer");
		step->failed = true;
		step->aside = true;
	} else if (!strcmp(e->name, "TIMEWAIT_EXIT") || !strncmp(e->name, "MULTICAST", 9) ||
		   !strcmp(e->name, "CONNECT_REQUEST") || !strcmp(e->name, "ADDR_CHANGE")) {
		add_step(life, e->us, PHASE_NONE, "event %s", e->name)->aside = true;
	}
}

bool call_has_failed(const struct trace_event *e)
{
	return e->status < 0 && e->status != -EAGAIN && e->status != -EINTR &&
	       e->status != -RESTARTED;
}

/* Is it one that takes an endpoint on the way to its connection? */
static bool is_attempt(unsigned int command)
{
	switch (command) {
	case _IOC_NR(RDMA_EP_CREATE_EP):
	case _IOC_NR(RDMA_EP_RESOLVE_ADDR):
	case _IOC_NR(RDMA_EP_RESOLVE_SERVICE):
	case _IOC_NR(RDMA_EP_RESOLVE_ROUTE):
	case _IOC_NR(RDMA_EP_CONNECT):
	case _IOC_NR(RDMA_EP_ACCEPT):
	case _IOC_NR(RDMA_EP_ESTABLISH):
		return true;
	default:
		return false;
	}
}

static void add_call(struct life *life, const struct trace_event *e)
{
	const char *name = trace_command(e->command);
	struct step *step;

	/* success shows in states */
	if (!call_has_failed(e))
		return;
	step = add_step(life, e->us, PHASE_NONE, "%s: %s", name ? name : "a call",
			strerror(-e->status));
	step->failed = true;
	step->aside = true;
	if (is_attempt(e->command))
		life->failed = true;
}

static void add_path(struct life *life, const struct trace_event *e)
{
	snprintf(life->device, sizeof(life->device), "%s", e->device);
	snprintf(life->src, sizeof(life->src), "%s", e->src);
	snprintf(life->dst, sizeof(life->dst), "%s", e->dst);
}

void timeline_add(struct timeline *t, const struct trace_event *e)
{
	struct life *life;

	if (!e->ep)
		return;
	life = find_life(t, e->ctx, e->ep);
	if (!life)
		life = find_unmade(t, e);
	if (!life) {
		/* of one whose beginning is not known there is nothing to tell */
		if (e->kind != TRACE_CREATED)
			return;
		life = new_life(t, e->ctx, e->ep);
	}
	switch (e->kind) {
	case TRACE_CREATED:
		life->passive = e->listener;
		add_step(life, e->us, PHASE_NONE, e->listener ? "REQ has come" : "created");
		break;
	case TRACE_PATH:
		add_path(life, e);
		break;
	case TRACE_STATE:
		add_state(life, e);
		break;
	case TRACE_QUEUED:
		add_queued(life, e);
		break;
	case TRACE_READ:
		add_step(life, e->us, PHASE_NONE, "program reads %s", e->name)->aside = true;
		break;
	case TRACE_REFUSED:
		add_step(life, e->us, PHASE_NONE, "refuses a request: %u wait, of %u that may",
			 e->requests, e->backlog)->failed = true;
		break;
	case TRACE_CALL:
		add_call(life, e);
		break;
	case TRACE_DESTROYED:
		add_step(life, e->us, strcmp(life->state, "CONNECTED") ? PHASE_END :
									 PHASE_CONNECTED,
			 "destroyed");
		life->ended = true;
		break;
	default:
		break;
	}
}

void timeline_free(struct timeline *t)
{
	size_t i;

	for (i = 0; i < t->count; i++)
		free(t->lives[i].steps);
	free(t->lives);
	*t = (struct timeline){};
}
