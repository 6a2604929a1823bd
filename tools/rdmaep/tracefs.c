// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Reading the module's trace events as text: what the kernel prints of them is
 * the same on all kernels, which the layout of its buffers is not.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rdma/rdma_ep.h>

#include "tool.h"
#include "tracefs.h"

#define PREFIX	"rdmaep-"	/* of our instances */

const char *trace_command(unsigned int number)
{
	switch (number) {
#define COMMAND(code, text) case _IOC_NR(code): return text
	COMMAND(RDMA_EP_GET_INFO, "get info");
	COMMAND(RDMA_EP_CREATE_CHANNEL, "create channel");
	COMMAND(RDMA_EP_CREATE, "create");
	COMMAND(RDMA_EP_CREATE_EP, "create ep");
	COMMAND(RDMA_EP_DESTROY, "destroy");
	COMMAND(RDMA_EP_BIND, "bind");
	COMMAND(RDMA_EP_RESOLVE_ADDR, "resolve address");
	COMMAND(RDMA_EP_RESOLVE_ROUTE, "resolve route");
	COMMAND(RDMA_EP_LISTEN, "listen");
	COMMAND(RDMA_EP_CONNECT, "connect");
	COMMAND(RDMA_EP_ACCEPT, "accept");
	COMMAND(RDMA_EP_ESTABLISH, "establish");
	COMMAND(RDMA_EP_REJECT, "reject");
	COMMAND(RDMA_EP_DISCONNECT, "disconnect");
	COMMAND(RDMA_EP_QUERY, "query");
	COMMAND(RDMA_EP_INIT_QP_ATTR, "QP attributes");
	COMMAND(RDMA_EP_ATTACH, "attach");
	COMMAND(RDMA_EP_WAIT, "wait");
	COMMAND(RDMA_EP_NOTIFY, "notify");
	COMMAND(RDMA_EP_JOIN, "join");
	COMMAND(RDMA_EP_LEAVE, "leave");
	COMMAND(RDMA_EP_SET_OPTION, "set option");
	COMMAND(RDMA_EP_GET_OPTION, "get option");
	COMMAND(RDMA_EP_WRITE_EVENT, "write event");
	COMMAND(RDMA_EP_RESOLVE_SERVICE, "resolve service");
	COMMAND(RDMA_EP_QUERY_SERVICES, "query services");
	COMMAND(RDMA_EP_DESTROY_MANY, "destroy many");
#undef COMMAND
	}
	return NULL;
}

static int write_file(const char *dir, const char *name, const char *text)
{
	char path[PATH_MAX + 64];
	ssize_t len = strlen(text);
	int fd, ret;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	ret = write(fd, text, len) == len ? 0 : -1;
	close(fd);
	return ret;
}

/* Where tracefs is, or NULL after an error message. */
static const char *find_tracefs(void)
{
	static const char *const dirs[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };
	char path[PATH_MAX];
	size_t i;

	for (i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		snprintf(path, sizeof(path), "%s/instances", dirs[i]);
		if (!access(path, W_OK | X_OK))
			return dirs[i];
		if (errno == EACCES) {
			tool_error("%s: %s; tracing needs root", dirs[i], strerror(errno));
			return NULL;
		}
	}
	tool_error("tracefs is not mounted: mount -t tracefs none /sys/kernel/tracing");
	return NULL;
}

static void remove_instance(const char *dir)
{
	/* an instance goes only when nothing of it is in use */
	write_file(dir, "events/rdma_ep/enable", "0");
	rmdir(dir);
}

/* Instances of processes that were killed before they could clean up. */
static void remove_stale(const char *tracefs)
{
	char dir[PATH_MAX], path[2 * PATH_MAX];
	struct dirent *entry;
	const char *pid;
	DIR *all;

	snprintf(dir, sizeof(dir), "%s/instances", tracefs);
	all = opendir(dir);
	if (!all)
		return;
	while ((entry = readdir(all))) {
		pid = strrchr(entry->d_name, '-');
		if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) || atoi(pid + 1) <= 0)
			continue;
		if (!kill(atoi(pid + 1), 0) || errno != ESRCH)
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
		remove_instance(path);
	}
	closedir(all);
}

static int follow_process(const char *dir, int pid)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", pid);
	return write_file(dir, "set_event_pid", text) ||
	       write_file(dir, "options/event-fork", "1") ? -1 : 0;
}

/* The instance is there: what it traces. Returns 0, or -1 after a message. */
static int set_up(struct tracer *tracer, int pid)
{
	char path[PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/events/rdma_ep", tracer->dir);
	if (access(path, F_OK)) {
		tool_error("the kernel knows no trace events of rdma_ep: is the module loaded? "
			   "See rdmaep doctor");
		return -1;
	}
	/* not an error if it cannot be had: only absolute times suffer */
	write_file(tracer->dir, "trace_clock", "mono");
	snprintf(path, sizeof(path), "%s/trace_pipe", tracer->dir);
	tracer->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (tracer->fd < 0 || (pid && follow_process(tracer->dir, pid)) ||
	    write_file(tracer->dir, "events/rdma_ep/enable", "1")) {
		tool_error("%s: %s", tracer->dir, strerror(errno));
		return -1;
	}
	return 0;
}

int tracer_open(struct tracer *tracer, const char *what, int pid)
{
	const char *tracefs = find_tracefs();

	tracer->fd = -1;
	tracer->dir[0] = '\0';
	if (!tracefs)
		return -1;
	remove_stale(tracefs);
	snprintf(tracer->dir, sizeof(tracer->dir), "%s/instances/" PREFIX "%s-%d", tracefs, what,
		 getpid());
	if (mkdir(tracer->dir, 0700)) {
		tool_error("%s: %s", tracer->dir, strerror(errno));
		tracer->dir[0] = '\0';
		return -1;
	}
	if (!set_up(tracer, pid))
		return 0;
	tracer_close(tracer);
	return -1;
}

void tracer_close(struct tracer *tracer)
{
	if (!tracer->dir[0])
		return;
	if (tracer->fd >= 0)
		close(tracer->fd);
	remove_instance(tracer->dir);
	tracer->fd = -1;
	tracer->dir[0] = '\0';
}

static void note_lost(struct tracer *tracer, const char *line)
{
	const char *lost = strstr(line, "[LOST ");

	if (lost)
		tracer->lost += strtoul(lost + strlen("[LOST "), NULL, 10);
}

int tracer_read(struct tracer *tracer,
		void (*event)(const struct trace_event *event, void *arg), void *arg)
{
	char *line = tracer->buf, *end;
	struct trace_event e;
	ssize_t len;

	len = read(tracer->fd, tracer->buf + tracer->len,
		   sizeof(tracer->buf) - 1 - tracer->len);
	if (len <= 0)
		return len;
	tracer->len += len;
	tracer->buf[tracer->len] = '\0';
	while ((end = strchr(line, '\n'))) {
		*end = '\0';
		note_lost(tracer, line);
		if (trace_parse(line, &e))
			event(&e, arg);
		line = end + 1;
	}
	tracer->len -= line - tracer->buf;
	memmove(tracer->buf, line, tracer->len);
	/* a line that does not fit is none of ours */
	if (tracer->len == sizeof(tracer->buf) - 1)
		tracer->len = 0;
	return len;
}

/*
 * "  comm-123  [000] .....  12.345678: rdma_ep_call: ..."; comm may have
 * anything in it, so it is read from behind.
 */
static bool parse_head(char *head, struct trace_event *event)
{
	unsigned long long s, us;
	char *stamp, *cpu, *dash;

	stamp = strrchr(head, ' ');
	if (!stamp || sscanf(stamp, " %llu.%6llu", &s, &us) != 2)
		return false;
	event->us = s * 1000000 + us;
	*stamp = '\0';
	cpu = strrchr(head, '[');
	if (!cpu)
		return false;
	*cpu = '\0';
	dash = strrchr(head, '-');
	if (!dash)
		return false;
	event->thread = atoi(dash + 1);
	*dash = '\0';
	snprintf(event->comm, sizeof(event->comm), "%s", head + strspn(head, " "));
	return true;
}

static bool parse_tail(const char *tail, struct trace_event *event)
{
	unsigned int *ctx = &event->ctx, *ep = &event->ep;

	switch (event->kind) {
	case TRACE_CALL:
		return sscanf(tail, "ctx=%u ep=%u command=%u ret=%d", ctx, ep, &event->command,
			      &event->status) == 4;
	case TRACE_STATE:
		return sscanf(tail, "ctx=%u ep=%u %23s -> %23s", ctx, ep, event->from,
			      event->name) == 4;
	case TRACE_QUEUED:
	case TRACE_READ:
		return sscanf(tail, "ctx=%u ep=%u %23s status=%d", ctx, ep, event->name,
			      &event->status) == 4;
	case TRACE_REFUSED:
		return sscanf(tail, "ctx=%u ep=%u requests=%u backlog=%u", ctx, ep,
			      &event->requests, &event->backlog) == 4;
	case TRACE_CREATED:
		return sscanf(tail, "ctx=%u ep=%u listener=%u", ctx, ep, &event->listener) == 3;
	case TRACE_DESTROYED:
		return sscanf(tail, "ctx=%u ep=%u", ctx, ep) == 2;
	case TRACE_PATH:
		return sscanf(tail, "ctx=%u ep=%u dev=%79s src=%63s dst=%63s", ctx, ep,
			      event->device, event->src, event->dst) == 5;
	default:
		return false;
	}
}

bool trace_parse(char *line, struct trace_event *event)
{
	static const char *const names[TRACE_KINDS] = {
		[TRACE_CALL] = "call",
		[TRACE_STATE] = "state",
		[TRACE_QUEUED] = "event_queued",
		[TRACE_READ] = "event_read",
		[TRACE_REFUSED] = "refused",
		[TRACE_CREATED] = "created",
		[TRACE_DESTROYED] = "destroyed",
		[TRACE_PATH] = "path",
	};
	static const char prefix[] = ": rdma_ep_";
	char *mark = strstr(line, prefix), *name, *colon;
	int kind;

	if (!mark)
		return false;
	name = mark + strlen(prefix);
	colon = strstr(name, ": ");
	if (!colon)
		return false;
	*mark = '\0';
	*colon = '\0';

	*event = (struct trace_event){};
	for (kind = 0; kind < TRACE_KINDS; kind++)
		if (!strcmp(name, names[kind]))
			break;
	event->kind = kind;
	return parse_head(line, event) && parse_tail(colon + 2, event);
}
