// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rdmaep show: all there is to know about one endpoint.
 */
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <json-c/json.h>

#include "endpoints.h"
#include "tool.h"

static const char *explain_state(const char *name)
{
	const struct endpoint_state *state;

	for (state = endpoint_states; state->name; state++)
		if (!strcmp(name, state->name))
			return state->text;
	return "a state that this tool does not know";
}

__attribute__((format(printf, 2, 3)))
static void line(const char *name, const char *fmt, ...)
{
	va_list ap;

	printf("  %-12s ", name);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

/* A value as it is, if the endpoint has it. */
static void value_line(const struct endpoint *ep, const char *name, const char *what)
{
	char value[256];

	if (endpoint_value(ep, name, value, sizeof(value)))
		line(what, "%s", value);
}

/* Does this file of the process hold that channel of that context? */
static bool is_channel(int pid, const char *fd, unsigned long long channel, unsigned int context)
{
	unsigned long long number, of_channel = 0, of_context = 0;
	char path[PATH_MAX], text[256];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%s", pid, fd);
	f = fopen(path, "re");
	if (!f)
		return false;
	while (fgets(text, sizeof(text), f)) {
		if (sscanf(text, "rdma_ep-channel: %llu", &number) == 1)
			of_channel = number;
		if (sscanf(text, "rdma_ep-channel-context: %llu", &number) == 1)
			of_context = number;
	}
	fclose(f);
	return of_channel == channel && of_context == context;
}

/* Its channel's file descriptor in the process, or -1. */
static int find_channel(const struct endpoint *ep)
{
	unsigned long long channel = endpoint_number(ep, "channel");
	struct dirent *entry;
	char path[64];
	int fd = -1;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", ep->pid);
	dir = channel ? opendir(path) : NULL;
	if (!dir)
		return -1;
	while (fd < 0 && (entry = readdir(dir)))
		if (is_channel(ep->pid, entry->d_name, channel, ep->context))
			fd = atoi(entry->d_name);
	closedir(dir);
	return fd;
}

static void show_channel(const struct endpoint *ep)
{
	unsigned long long waiters = endpoint_number(ep, "waiters");
	int fd = find_channel(ep);

	if (fd >= 0)
		line("channel", "file descriptor %d", fd);
	else if (endpoint_number(ep, "channel"))
		line("channel", "number %llu, whose file is in no table of this process",
		     endpoint_number(ep, "channel"));
	else
		line("channel", "none: its events wait until somebody asks for them");
	if (waiters)
		line("waiting", "%llu thread%s in a call", waiters, waiters == 1 ? "" : "s");
}

static void show_events(const struct endpoint *ep)
{
	char value[256];

	if (endpoint_value(ep, "pending", value, sizeof(value)))
		line("events", "%llu that nobody has read: %s", endpoint_number(ep, "events"),
		     value);
	else
		line("events", "none that has not been read");
}

static void show_backlog(const struct endpoint *ep)
{
	unsigned long long refused = endpoint_number(ep, "overflows");
	char backlog[32];

	if (!endpoint_value(ep, "backlog", backlog, sizeof(backlog)))
		return;
	line("backlog", "%llu requests wait, of %s that may", endpoint_number(ep, "requests"),
	     backlog);
	line("refused", "%llu%s", refused,
	     refused ? ": the backlog was full; read requests faster, or listen with more" : "");
}

static void show(const struct endpoint *ep)
{
	char text[64];

	printf("Endpoint %u:%u\n", ep->context, ep->handle);
	line("process", "%d, %s of user %s", ep->pid, ep->program,
	     endpoint_owner(ep, text, sizeof(text)));
	line("state", "%s: %s", ep->state, explain_state(ep->state));
	line("type", "%s", ep->type);
	value_line(ep, "ps", "port space");
	line("age", "%s", tool_age(endpoint_number(ep, "age_s"), text, sizeof(text)));
	line("device", "%s", ep->device);
	value_line(ep, "netdev", "interface");
	line("source", "%s", ep->src);
	line("destination", "%s", ep->dst);
	value_line(ep, "sgid", "source GID");
	value_line(ep, "dgid", "dest. GID");
	value_line(ep, "pkey", "pkey");
	show_channel(ep);
	show_events(ep);
	show_backlog(ep);
	value_line(ep, "tos", "type of svc");
	value_line(ep, "reuseaddr", "reuse addr");
	value_line(ep, "afonly", "AF only");
	value_line(ep, "ack_timeout", "ACK timeout");
	value_line(ep, "min_rnr_timer", "RNR timer");
	value_line(ep, "node_type", "node type");
	value_line(ep, "connect_timeout_ms", "timeout/ms");
	value_line(ep, "only_device", "only device");
	value_line(ep, "serial", "serial");
}

static const struct endpoint *find(const struct endpoints *all, const char *name)
{
	unsigned int context, handle;
	size_t i;

	if (!endpoint_parse_name(name, &context, &handle))
		return NULL;
	for (i = 0; i < all->count; i++)
		if (all->list[i].context == context && all->list[i].handle == handle)
			return &all->list[i];
	return NULL;
}

/* Returns an exit code. */
static int show_all(const struct endpoints *all, int argc, char **argv, bool json)
{
	struct json_object *array = json ? json_object_new_array() : NULL;
	const struct endpoint *ep;
	int i, ret = TOOL_OK;

	for (i = 0; i < argc; i++) {
		ep = find(all, argv[i]);
		if (!ep) {
			tool_error("no endpoint %s%s", argv[i],
				   all->unreadable ? " in processes that you may look at" : "");
			ret = TOOL_FAILED;
		} else if (json) {
			json_object_array_add(array, endpoint_json(ep));
		} else {
			show(ep);
		}
	}
	if (json)
		tool_print_json(array);
	return ret;
}

/**
 * tool_show() - rdmaep show
 * @cmd: this subcommand
 * @argc: number of arguments
 * @argv: arguments
 *
 * Return: exit code.
 */
int tool_show(const struct tool_command *cmd, int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	struct endpoints all = {};
	unsigned int context, handle;
	bool json = false;
	int c, i, ret;

	while ((c = tool_getopt(cmd, argc, argv, "jh", options)) != -1) {
		if (c == 'h')
			return tool_help(cmd);
		if (c != 'j')
			return TOOL_USAGE;
		json = true;
	}
	if (optind == argc)
		return tool_usage_error(cmd, "which endpoint? rdmaep list names them");
	for (i = optind; i < argc; i++)
		if (!endpoint_parse_name(argv[i], &context, &handle))
			return tool_usage_error(cmd, "%s is not CONTEXT:HANDLE", argv[i]);

	if (endpoints_of_all(&all)) {
		tool_error("/proc: %s", strerror(errno));
		return TOOL_FAILED;
	}
	ret = show_all(&all, argc - optind, argv + optind, json);
	endpoints_free(&all);
	return ret;
}
