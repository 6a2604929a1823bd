/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The module's trace events, read through an instance of tracefs that nobody
 * else uses, so that what others trace is left alone.
 */
#ifndef RDMAEP_TRACEFS_H
#define RDMAEP_TRACEFS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * struct tracer - an instance
 * @dir: its folder; empty: none
 * @fd: its trace_pipe
 * @lost: events that came too fast
 * @buf: text that was read and not taken apart yet
 * @len: bytes there
 */
struct tracer {
	char dir[PATH_MAX];
	int fd;
	unsigned long lost;
	char buf[65536];
	size_t len;
};

/* What a line of the trace tells, by the name of the trace event. */
enum trace_kind {
	TRACE_CALL,
	TRACE_STATE,
	TRACE_QUEUED,
	TRACE_READ,
	TRACE_REFUSED,
	TRACE_CREATED,
	TRACE_DESTROYED,
	TRACE_PATH,
	TRACE_KINDS
};

/**
 * struct trace_event - a line of the trace
 * @us: when, in us of CLOCK_MONOTONIC
 * @thread: the thread that was running; for what a handler reports any one
 * @comm: its name
 * @kind: what has happened
 * @ctx: the context
 * @ep: the endpoint, 0 if it is about none
 * @command: TRACE_CALL: number of the command
 * @status: TRACE_CALL: what it returned; TRACE_QUEUED, TRACE_READ: the event's
 * @name: TRACE_QUEUED, TRACE_READ: the event; TRACE_STATE: the new state
 * @from: TRACE_STATE: the old one
 * @listener: TRACE_CREATED: the listener, for a request
 * @requests: TRACE_REFUSED: how many waited
 * @backlog: TRACE_REFUSED: of how many that may
 * @device: TRACE_PATH: RDMA device and port
 * @src: TRACE_PATH: source
 * @dst: TRACE_PATH: destination
 * @order: for who sorts them
 */
struct trace_event {
	uint64_t us;
	int thread;
	char comm[32];
	enum trace_kind kind;
	unsigned int ctx;
	unsigned int ep;
	unsigned int command;
	int status;
	char name[24];
	char from[24];
	unsigned int listener;
	unsigned int requests;
	unsigned int backlog;
	char device[80];
	char src[64];
	char dst[64];
	size_t order;
};

/**
 * tracer_open() - make an instance in which the module's trace events are on
 * @tracer: the instance, with @dir and @len 0
 * @what: a word for its name
 * @pid: if not 0: only what this process, its threads and its children do
 *
 * Instances that dead processes have left behind are removed.
 *
 * Return: 0, or -1 after an error message that says what to do.
 */
int tracer_open(struct tracer *tracer, const char *what, int pid);

/**
 * tracer_close() - remove the instance
 * @tracer: the instance
 */
void tracer_close(struct tracer *tracer);

/**
 * tracer_read() - read what there is
 * @tracer: the instance
 * @event: called for each trace event
 * @arg: passed on to it
 *
 * Return: bytes read, 0 if there was nothing, -1 with errno.
 */
int tracer_read(struct tracer *tracer,
		void (*event)(const struct trace_event *event, void *arg), void *arg);

/**
 * trace_parse() - take a line apart
 * @line: the line, which is changed
 * @event: receives it
 *
 * Return: whether it is one of ours.
 */
bool trace_parse(char *line, struct trace_event *event);

/**
 * trace_command() - the name of a command
 * @number: its number
 *
 * Return: the name, or NULL.
 */
const char *trace_command(unsigned int number);

#endif /* RDMAEP_TRACEFS_H */
