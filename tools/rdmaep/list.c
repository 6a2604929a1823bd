// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rdmaep list: the endpoints of all processes, or of those that are asked for.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <json-c/json.h>

#include "endpoints.h"
#include "table.h"
#include "tool.h"

/**
 * struct filter - which endpoints to list; what is NULL matches all
 * @state: states, separated by commas
 * @type: type of the QP
 * @port_space: port space
 * @device: RDMA device, or device and port
 * @address: source or destination, as it was typed
 * @port: likewise
 * @end: both, read
 * @program: the process's name
 * @user: its user, as it was typed
 * @uid: the user's number
 */
struct filter {
	const char *state;
	const char *type;
	const char *port_space;
	const char *device;
	const char *address;
	const char *port;
	struct end end;
	const char *program;
	const char *user;
	uid_t uid;
};

/* Is @word one of the words of @list? Case does not matter. */
static bool in_list(const char *list, const char *word)
{
	size_t len;

	for (; *list; list += len + (list[len] == ',')) {
		len = strcspn(list, ",");
		if (len == strlen(word) && !strncasecmp(list, word, len))
			return true;
	}
	return false;
}

/* A word that nothing can match is a mistake in writing. */
static bool words_known(const struct tool_command *cmd, const char *what, const char *words,
			const char *known)
{
	char *rest = strdupa(words), *word;

	while ((word = strsep(&rest, ","))) {
		if (!*word || in_list(known, word))
			continue;
		tool_usage_error(cmd, "no %s is called %s; there are %s", what, word, known);
		return false;
	}
	return true;
}

static bool states_known(const struct tool_command *cmd, const char *words)
{
	const struct endpoint_state *state;
	char known[512] = "";
	size_t len = 0;

	for (state = endpoint_states; state->name; state++)
		len += snprintf(known + len, sizeof(known) - len, "%s%s", len ? "," : "",
				state->name);
	return words_known(cmd, "state", words, known);
}

static bool device_valid(const struct tool_command *cmd, const char *device)
{
	const char *slash = strchr(device, '/');
	unsigned long port;

	if (device[0] && device != slash && (!slash || tool_number(slash + 1, 1, UINT_MAX, &port)))
		return true;
	tool_usage_error(cmd, "%s is not DEVICE or DEVICE/PORT", device);
	return false;
}

/* Also the number of a user without a name, as those of containers are. */
static bool find_user(const struct tool_command *cmd, struct filter *f)
{
	struct passwd *pw = getpwnam(f->user);
	unsigned long uid;

	if (!pw && !tool_number(f->user, 0, UINT_MAX - 1, &uid)) {
		tool_usage_error(cmd, "there is no user %s", f->user);
		return false;
	}
	f->uid = pw ? pw->pw_uid : uid;
	return true;
}

bool tool_read_end(const struct tool_command *cmd, struct end *end, const char *address,
		   const char *port)
{
	if (address && !end_parse_address(end, address)) {
		tool_usage_error(cmd, "%s is not an IP address", address);
		return false;
	}
	if (port && !tool_number(port, 1, 65535, &end->port)) {
		tool_usage_error(cmd, "%s is not a port number", port);
		return false;
	}
	return true;
}

/* What nothing can match is a mistake, not a question whose answer is nothing. */
static bool filter_valid(const struct tool_command *cmd, struct filter *f)
{
	return (!f->state || states_known(cmd, f->state)) &&
	       (!f->type || words_known(cmd, "type", f->type, "RC,UC,UD,XRC")) &&
	       (!f->port_space ||
		words_known(cmd, "port space", f->port_space, "TCP,UDP,IPOIB,IB")) &&
	       (!f->device || device_valid(cmd, f->device)) &&
	       tool_read_end(cmd, &f->end, f->address, f->port) &&
	       (!f->user || find_user(cmd, f));
}

/* Without a port, a device is matched whatever its port is. */
static bool on_device(const char *device, const char *wanted)
{
	size_t len = strlen(wanted);

	return !strcmp(device, wanted) || (!strncmp(device, wanted, len) && device[len] == '/');
}

static bool matches(const struct endpoint *ep, const struct filter *f)
{
	char value[64];

	if (f->state && !in_list(f->state, ep->state))
		return false;
	if (f->type && !in_list(f->type, ep->type))
		return false;
	if (f->port_space && (!endpoint_value(ep, "ps", value, sizeof(value)) ||
			      !in_list(f->port_space, value)))
		return false;
	if (f->device && !on_device(ep->device, f->device))
		return false;
	if (!end_is_either(&f->end, ep->src, ep->dst))
		return false;
	if (f->program && strcmp(ep->program, f->program))
		return false;
	return !f->user || ep->uid == f->uid;
}

const char *tool_age(unsigned long long s, char *text, size_t size)
{
	if (s < 60)
		snprintf(text, size, "%llus", s);
	else if (s < 3600)
		snprintf(text, size, "%llum%02llus", s / 60, s % 60);
	else if (s < 86400)
		snprintf(text, size, "%lluh%02llum", s / 3600, s / 60 % 60);
	else
		snprintf(text, size, "%llud%02lluh", s / 86400, s / 3600 % 24);
	return text;
}

static void add_header(struct table *table)
{
	static const char *const names[] = {
		"ENDPOINT", "PID", "PROGRAM", "USER", "TYPE", "STATE", "DEVICE", "SOURCE",
		"DESTINATION", "AGE", "EVENTS", "BACKLOG", "REFUSED",
	};
	size_t i;

	table->columns = sizeof(names) / sizeof(names[0]);
	table->right = 1 << 1 | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 12;
	for (i = 0; i < table->columns; i++)
		table_add(table, "%s", names[i]);
}

static void add_row(struct table *table, const struct endpoint *ep)
{
	char text[64];

	table_add(table, "%u:%u", ep->context, ep->handle);
	table_add(table, "%d", ep->pid);
	table_add(table, "%s", ep->program);
	table_add(table, "%s", endpoint_owner(ep, text, sizeof(text)));
	table_add(table, "%s", ep->type);
	table_add(table, "%s", ep->state);
	table_add(table, "%s", ep->device);
	table_add(table, "%s", ep->src);
	table_add(table, "%s", ep->dst);
	table_add(table, "%s", tool_age(endpoint_number(ep, "age_s"), text, sizeof(text)));
	table_add(table, "%llu", endpoint_number(ep, "events"));
	if (endpoint_value(ep, "backlog", text, sizeof(text))) {
		table_add(table, "%llu/%s", endpoint_number(ep, "requests"), text);
		table_add(table, "%llu", endpoint_number(ep, "overflows"));
	} else {
		table_add(table, "-");
		table_add(table, "-");
	}
}

static void print_table(const struct endpoints *all, const struct filter *filter, bool header)
{
	struct table table = {};
	size_t i;
	int rows = 0;

	add_header(&table);
	for (i = 0; i < all->count; i++) {
		if (!matches(&all->list[i], filter))
			continue;
		add_row(&table, &all->list[i]);
		rows++;
	}
	if (!rows)
		fputs(access("/sys/module/rdma_ep", F_OK) ?
		      "No endpoints: the module is not loaded.\n" :
		      "No endpoints.\n", stderr);
	table.skip = !rows || !header;
	table_print(&table);
}

static void print_json(const struct endpoints *all, const struct filter *filter)
{
	struct json_object *array = json_object_new_array();
	size_t i;

	for (i = 0; i < all->count; i++)
		if (matches(&all->list[i], filter))
			json_object_array_add(array, endpoint_json(&all->list[i]));
	tool_print_json(array);
}

/* The processes that are named, or all. */
static int read_endpoints(const struct tool_command *cmd, struct endpoints *all, int argc,
			  char **argv)
{
	int i, ret = TOOL_OK;
	char *end;
	long pid;

	if (!argc && endpoints_of_all(all)) {
		tool_error("/proc: %s", strerror(errno));
		return TOOL_FAILED;
	}
	for (i = 0; i < argc; i++) {
		pid = strtol(argv[i], &end, 10);
		if (pid <= 0 || pid > INT_MAX || *end)
			return tool_usage_error(cmd, "%s is not a process number", argv[i]);
		if (endpoints_of_process(all, pid)) {
			tool_error("process %ld: %s", pid,
				   errno == ENOENT ? "there is none" : strerror(errno));
			ret = TOOL_FAILED;
		}
	}
	return ret;
}

/**
 * tool_list() - rdmaep list
 * @cmd: this subcommand
 * @argc: number of arguments
 * @argv: arguments
 *
 * Return: exit code.
 */
int tool_list(const struct tool_command *cmd, int argc, char **argv)
{
	static const struct option options[] = {
		{ "state", required_argument, NULL, 's' },
		{ "listening", no_argument, NULL, 'l' },
		{ "type", required_argument, NULL, 't' },
		{ "port-space", required_argument, NULL, 'P' },
		{ "device", required_argument, NULL, 'd' },
		{ "address", required_argument, NULL, 'a' },
		{ "port", required_argument, NULL, 'p' },
		{ "program", required_argument, NULL, 'n' },
		{ "user", required_argument, NULL, 'u' },
		{ "no-header", no_argument, NULL, 'H' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	struct endpoints all = {};
	struct filter filter = {};
	bool json = false, header = true;
	int c, ret;

	while ((c = tool_getopt(cmd, argc, argv, "s:lt:P:d:a:p:n:u:Hjh", options)) != -1) {
		switch (c) {
		case 's':
			filter.state = optarg;
			break;
		case 'l':
			filter.state = "LISTENING";
			break;
		case 't':
			filter.type = optarg;
			break;
		case 'P':
			filter.port_space = optarg;
			break;
		case 'd':
			filter.device = optarg;
			break;
		case 'a':
			filter.address = optarg;
			break;
		case 'p':
			filter.port = optarg;
			break;
		case 'n':
			filter.program = optarg;
			break;
		case 'u':
			filter.user = optarg;
			break;
		case 'H':
			header = false;
			break;
		case 'j':
			json = true;
			break;
		case 'h':
			return tool_help(cmd);
		default:
			return TOOL_USAGE;
		}
	}

	if (!filter_valid(cmd, &filter))
		return TOOL_USAGE;
	ret = read_endpoints(cmd, &all, argc - optind, argv + optind);
	if (ret == TOOL_USAGE)
		return ret;
	if (json)
		print_json(&all, &filter);
	else if (all.count || ret == TOOL_OK)
		print_table(&all, &filter, header);
	if (all.unreadable)
		fprintf(stderr, "%d processes of other users could not be looked at.\n",
			all.unreadable);
	endpoints_free(&all);
	return ret;
}
