// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rdmaep monitor: what happens to endpoints, while it happens. Each line has
 * the time since the endpoint's line before.
 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <json-c/json.h>

#include "endpoints.h"
#include "timeline.h"
#include "tool.h"
#include "tracefs.h"

/**
 * struct owner - whose a context is
 * @ctx: the context
 * @pid: the process
 * @program: its name
 */
struct owner {
	unsigned int ctx;
	int pid;
	char program[32];
};

/**
 * struct known - an endpoint that was seen
 * @ctx: its context
 * @ep: its handle
 * @us: when its last line was, 0: it had none yet
 * @src: its source, empty if not known
 * @dst: its destination, likewise
 */
struct known {
	unsigned int ctx;
	unsigned int ep;
	uint64_t us;
	char src[64];
	char dst[64];
};

/**
 * struct monitor - what is asked for and what is known
 * @pid: only this process's; 0: all
 * @program: only of programs with this name, or NULL
 * @ep: only the endpoint with this handle, 0: all
 * @ctx: the context of @ep
 * @end: only with this source or destination
 * @kinds: kinds of trace events, as bits
 * @failures: only what has gone wrong
 * @json: one JSON object a line
 * @colour: for people at a terminal
 * @left: lines to print; 0: no limit
 * @full: that many were printed
 * @start_us: time of the first line
 * @owners: contexts
 * @num_owners: how many
 * @eps: endpoints
 * @num_eps: how many
 */
struct monitor {
	unsigned long pid;
	const char *program;
	unsigned int ep;
	unsigned int ctx;
	struct end end;
	unsigned int kinds;
	bool failures;
	bool json;
	bool colour;
	unsigned long left;
	bool full;
	uint64_t start_us;
	struct owner *owners;
	size_t num_owners;
	struct known *eps;
	size_t num_eps;
};

static const char *const kind_names[TRACE_KINDS] = {
	[TRACE_CALL] = "call",
	[TRACE_STATE] = "state",
	[TRACE_QUEUED] = "event",
	[TRACE_READ] = "read",
	[TRACE_REFUSED] = "refused",
	[TRACE_CREATED] = "created",
	[TRACE_DESTROYED] = "destroyed",
	[TRACE_PATH] = "path",
};

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

/* One more element of an array. There is no going on without memory. */
static void *grow(void *array, size_t *count, size_t size)
{
	char *grown = realloc(array, (*count + 1) * size);

	if (!grown)
		abort();
	memset(grown + *count * size, 0, size);
	(*count)++;
	return grown;
}

static struct owner *find_owner(struct monitor *m, unsigned int ctx)
{
	size_t i;

	for (i = m->num_owners; i-- > 0;)
		if (m->owners[i].ctx == ctx)
			return &m->owners[i];
	return NULL;
}

static void add_owner(struct monitor *m, unsigned int ctx, int pid, const char *program)
{
	struct owner *owner;

	m->owners = grow(m->owners, &m->num_owners, sizeof(*owner));
	owner = &m->owners[m->num_owners - 1];
	owner->ctx = ctx;
	owner->pid = pid;
	snprintf(owner->program, sizeof(owner->program), "%s", program);
}

static struct known *find_ep(struct monitor *m, unsigned int ctx, unsigned int ep)
{
	size_t i;

	for (i = m->num_eps; i-- > 0;)
		if (m->eps[i].ctx == ctx && m->eps[i].ep == ep)
			return &m->eps[i];
	return NULL;
}

static struct known *add_ep(struct monitor *m, unsigned int ctx, unsigned int ep)
{
	m->eps = grow(m->eps, &m->num_eps, sizeof(*m->eps));
	m->eps[m->num_eps - 1].ctx = ctx;
	m->eps[m->num_eps - 1].ep = ep;
	return &m->eps[m->num_eps - 1];
}

static void forget_ep(struct monitor *m, struct known *ep)
{
	*ep = m->eps[--m->num_eps];
}

/* The process that a thread belongs to, if it still lives. */
static int process_of(int thread)
{
	char path[64], line[128];
	int pid = thread;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", thread);
	f = fopen(path, "re");
	if (!f)
		return thread;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "Tgid: %d", &pid) == 1)
			break;
	fclose(f);
	return pid;
}

/* Its name as /proc has it: the trace calls some "<...>". False if it has ended. */
static bool name_process(int pid, char *name, size_t size)
{
	char path[64];
	bool found;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	found = fgets(name, size, f);
	if (found)
		name[strcspn(name, "\n")] = '\0';
	fclose(f);
	return found;
}

/* Only a call is made by the context's own process. */
static void learn_owner(struct monitor *m, const struct trace_event *e)
{
	bool own = e->kind == TRACE_CALL || (e->kind == TRACE_CREATED && !e->listener);
	char name[32];
	int pid;

	if (!own || find_owner(m, e->ctx))
		return;
	pid = process_of(e->thread);
	add_owner(m, e->ctx, pid, name_process(pid, name, sizeof(name)) ? name : e->comm);
}

static void learn_existing(struct monitor *m)
{
	struct endpoints all = {};
	const struct endpoint *ep;
	struct known *known;
	size_t i;

	endpoints_of_all(&all);
	for (i = 0; i < all.count; i++) {
		ep = &all.list[i];
		if (!find_owner(m, ep->context))
			add_owner(m, ep->context, ep->pid, ep->program);
		known = add_ep(m, ep->context, ep->handle);
		snprintf(known->src, sizeof(known->src), "%s", ep->src);
		snprintf(known->dst, sizeof(known->dst), "%s", ep->dst);
	}
	endpoints_free(&all);
}

static bool has_failed(const struct trace_event *e)
{
	switch (e->kind) {
	case TRACE_CALL:
		return call_has_failed(e);
	case TRACE_STATE:
		return !strcmp(e->name, "FAILED") || !strcmp(e->name, "REMOVED");
	case TRACE_QUEUED:
	case TRACE_READ:
		return e->status || !strcmp(e->name, "REJECTED") ||
		       !strcmp(e->name, "DEVICE_REMOVAL");
	case TRACE_REFUSED:
		return true;
	default:
		return false;
	}
}

/* "context:handle", or the context alone. */
static const char *name_ep(const struct trace_event *e, char *name, size_t size)
{
	snprintf(name, size, e->ep ? "%u:%u" : "%u", e->ctx, e->ep);
	return name;
}

static bool wanted(struct monitor *m, const struct trace_event *e, const struct known *ep)
{
	const struct owner *owner = find_owner(m, e->ctx);

	if (!(m->kinds & 1u << e->kind) || (m->failures && !has_failed(e)))
		return false;
	if (m->pid && (!owner || owner->pid != (int)m->pid))
		return false;
	if (m->program && (!owner || strcmp(owner->program, m->program)))
		return false;
	if (m->ep && (m->ctx != e->ctx || m->ep != e->ep))
		return false;
	return end_is_either(&m->end, ep->src, ep->dst);
}

/* What has happened, in words. */
static void describe(const struct trace_event *e, char *text, size_t size)
{
	const char *command = trace_command(e->command);
	int len;

	switch (e->kind) {
	case TRACE_CALL:
		len = command ? snprintf(text, size, "%s", command) :
				snprintf(text, size, "command %u", e->command);
		if (e->status < 0)
			snprintf(text + len, size - len, ": %s", strerror(-e->status));
		break;
	case TRACE_STATE:
		snprintf(text, size, "%s -> %s", e->from, e->name);
		break;
	case TRACE_QUEUED:
	case TRACE_READ:
		if (e->status < 0)
			snprintf(text, size, "%s: %s", e->name, strerror(-e->status));
		else if (e->status)
			snprintf(text, size, "%s: status %d", e->name, e->status);
		else
			snprintf(text, size, "%s", e->name);
		break;
	case TRACE_REFUSED:
		snprintf(text, size, "a request: %u wait, of %u that may", e->requests,
			 e->backlog);
		break;
	case TRACE_CREATED:
		if (e->listener)
			snprintf(text, size, "for a request to %u:%u", e->ctx, e->listener);
		else
			text[0] = '\0';
		break;
	case TRACE_PATH:
		snprintf(text, size, "%s, %s -> %s", e->device, e->src, e->dst);
		break;
	default:
		text[0] = '\0';
	}
}

static const char *colour_of(const struct trace_event *e)
{
	static const char *const colours[TRACE_KINDS] = {
		[TRACE_CALL] = "\033[2m",	/* faint */
		[TRACE_STATE] = "\033[36m",	/* cyan */
		[TRACE_QUEUED] = "\033[32m",	/* green */
		[TRACE_READ] = "\033[34m",	/* blue */
		[TRACE_REFUSED] = "\033[31m",	/* red */
		[TRACE_CREATED] = "\033[33m",	/* yellow */
		[TRACE_DESTROYED] = "\033[33m",
		[TRACE_PATH] = "\033[35m",	/* magenta */
	};

	return has_failed(e) ? "\033[1;31m" : colours[e->kind];
}

static void print_line(struct monitor *m, const struct trace_event *e, const struct known *ep)
{
	const struct owner *owner = find_owner(m, e->ctx);
	char text[256], since[32] = "", name[32];

	describe(e, text, sizeof(text));
	if (ep->us)
		snprintf(since, sizeof(since), "+%.6f", (e->us - ep->us) / 1e6);
	printf("%12.6f %12s  %-9s %-15s %s%-*s%s%s\n", (e->us - m->start_us) / 1e6, since,
	       name_ep(e, name, sizeof(name)), owner ? owner->program : "?",
	       m->colour ? colour_of(e) : "", text[0] ? 10 : 0, kind_names[e->kind], text,
	       m->colour ? "\033[0m" : "");
}

static void print_object(struct monitor *m, const struct trace_event *e, const struct known *ep)
{
	struct json_object *object = json_object_new_object();
	const struct owner *owner = find_owner(m, e->ctx);
	char text[256];

	describe(e, text, sizeof(text));
	json_object_object_add(object, "time_us", json_object_new_int64(e->us));
	if (ep->us)
		json_object_object_add(object, "since_us", json_object_new_int64(e->us - ep->us));
	json_object_object_add(object, "context", json_object_new_int64(e->ctx));
	json_object_object_add(object, "handle", json_object_new_int64(e->ep));
	if (owner) {
		json_object_object_add(object, "pid", json_object_new_int(owner->pid));
		json_object_object_add(object, "program", json_object_new_string(owner->program));
	}
	json_object_object_add(object, "kind", json_object_new_string(kind_names[e->kind]));
	json_object_object_add(object, "text", json_object_new_string(text));
	if (e->kind == TRACE_CALL || e->kind == TRACE_QUEUED || e->kind == TRACE_READ)
		json_object_object_add(object, "status", json_object_new_int(e->status));
	tool_print_json_line(object);
}

static void on_event(const struct trace_event *e, void *arg)
{
	struct known none = {}, *ep;
	struct monitor *m = arg;

	if (m->full)
		return;
	learn_owner(m, e);
	ep = find_ep(m, e->ctx, e->ep);
	/* the call that destroys it comes last, and is not the beginning of another */
	if (!ep)
		ep = e->kind == TRACE_CALL ? &none : add_ep(m, e->ctx, e->ep);
	if (e->kind == TRACE_PATH) {
		snprintf(ep->src, sizeof(ep->src), "%s", e->src);
		snprintf(ep->dst, sizeof(ep->dst), "%s", e->dst);
	}
	if (wanted(m, e, ep)) {
		if (!m->start_us)
			m->start_us = e->us;
		if (m->json)
			print_object(m, e, ep);
		else
			print_line(m, e, ep);
		m->full = m->left && !--m->left;
	}
	ep->us = e->us;
	if (e->kind == TRACE_DESTROYED)
		forget_ep(m, ep);
}

/* Until interrupted, or the limit is reached. */
static int follow(struct monitor *m, struct tracer *tracer)
{
	struct pollfd fd = { .fd = tracer->fd, .events = POLLIN };
	int n;

	while (!stop && !m->full) {
		n = tracer_read(tracer, on_event, m);
		if (!tool_flush())
			break; /* nobody reads it any more, or it cannot be written */
		if (n > 0)
			continue;
		if (n < 0 && errno != EAGAIN && errno != EINTR) {
			tool_error("%s: %s", tracer->dir, strerror(errno));
			return TOOL_FAILED;
		}
		poll(&fd, 1, 200);
	}
	if (tracer->lost)
		tool_error("%lu trace events were lost: they came too fast", tracer->lost);
	return TOOL_OK;
}

static int run(struct monitor *m)
{
	struct sigaction action = { .sa_handler = on_signal };
	static struct tracer tracer;
	int ret;

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	tool_load_module();
	if (tracer_open(&tracer, "monitor", 0))
		return TOOL_FAILED;
	learn_existing(m);
	ret = follow(m, &tracer);
	tracer_close(&tracer);
	free(m->owners);
	free(m->eps);
	return ret;
}

static int complain_of_kind(const struct tool_command *cmd, const char *word)
{
	char known[256] = "";
	size_t len = 0;
	int kind;

	for (kind = 0; kind < TRACE_KINDS; kind++)
		len += snprintf(known + len, sizeof(known) - len, "%s%s", len ? "," : "",
				kind_names[kind]);
	return tool_usage_error(cmd, "the kind %s is unknown; there are %s", word, known);
}

/* "state,event": bits. Returns an exit code. */
static int parse_kinds(const struct tool_command *cmd, char *list, unsigned int *kinds)
{
	char *word;
	int kind;

	*kinds = 0;
	while ((word = strsep(&list, ","))) {
		for (kind = 0; kind < TRACE_KINDS; kind++)
			if (!strcmp(word, kind_names[kind]))
				break;
		if (kind == TRACE_KINDS)
			return complain_of_kind(cmd, word);
		*kinds |= 1u << kind;
	}
	return TOOL_OK;
}

static bool process_exists(const struct tool_command *cmd, unsigned long pid)
{
	if (!kill(pid, 0) || errno != ESRCH)
		return true;
	tool_usage_error(cmd, "there is no process %lu", pid);
	return false;
}

/**
 * tool_monitor() - rdmaep monitor
 * @cmd: this subcommand
 * @argc: number of arguments
 * @argv: arguments
 *
 * Return: exit code.
 */
int tool_monitor(const struct tool_command *cmd, int argc, char **argv)
{
	static const struct option options[] = {
		{ "pid", required_argument, NULL, 'P' },
		{ "program", required_argument, NULL, 'n' },
		{ "endpoint", required_argument, NULL, 'e' },
		{ "address", required_argument, NULL, 'a' },
		{ "port", required_argument, NULL, 'p' },
		{ "kind", required_argument, NULL, 'k' },
		{ "failures", no_argument, NULL, 'f' },
		{ "count", required_argument, NULL, 'c' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	struct monitor m = { .kinds = (1u << TRACE_KINDS) - 1 };
	const char *address = NULL, *port = NULL;
	int c;

	while ((c = tool_getopt(cmd, argc, argv, "P:n:e:a:p:k:fc:jh", options)) != -1) {
		switch (c) {
		case 'P':
			if (!tool_number(optarg, 1, INT_MAX, &m.pid))
				return tool_usage_error(cmd, "%s is not a process number", optarg);
			break;
		case 'n':
			m.program = optarg;
			break;
		case 'e':
			if (!endpoint_parse_name(optarg, &m.ctx, &m.ep) || !m.ep)
				return tool_usage_error(cmd, "%s is not CONTEXT:HANDLE", optarg);
			break;
		case 'a':
			address = optarg;
			break;
		case 'p':
			port = optarg;
			break;
		case 'k':
			if (parse_kinds(cmd, optarg, &m.kinds))
				return TOOL_USAGE;
			break;
		case 'f':
			m.failures = true;
			break;
		case 'c':
			if (!tool_number(optarg, 1, 1000000000, &m.left))
				return tool_usage_error(cmd, "%s is not a count", optarg);
			break;
		case 'j':
			m.json = true;
			break;
		case 'h':
			return tool_help(cmd);
		default:
			return TOOL_USAGE;
		}
	}
	if (optind < argc)
		return tool_usage_error(cmd, "what is %s?", argv[optind]);
	if (!tool_read_end(cmd, &m.end, address, port) ||
	    (m.pid && !process_exists(cmd, m.pid)))
		return TOOL_USAGE;
	m.colour = isatty(STDOUT_FILENO);
	return run(&m);
}
