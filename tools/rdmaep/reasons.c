// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rdmaep reasons: the reason codes, in words, with what to do about each.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <json-c/json.h>
#include <rdma/rdma_ep.h>

#include "tool.h"

struct reason {
	const char *name;
	const char *text;
};

#define REASON(code, words) \
	case RDMA_EP_REASON_##code: return (struct reason){ #code, words }

/* No default: the compiler then tells of a code that is missing here. */
static struct reason reason(enum rdma_ep_reason_code code)
{
	switch (code) {
	REASON(NONE, "the errno says it all");
	REASON(STRUCT,
	       "a malformed argument: library and module do not fit");
	REASON(HANDLE,
	       "no such endpoint or group: it was destroyed, or is another process's");
	REASON(CHANNEL,
	       "the file descriptor is not an event channel of this process");
	REASON(STATE, "the endpoint's state does not allow the operation");
	REASON(BUSY,
	       "an operation has not completed yet: wait for its event");
	REASON(ADDR_FORMAT,
	       "the address is too short, or its family is unknown");
	REASON(ADDR_SCOPE,
	       "a link-local IPv6 address needs its interface: fe80::1%eth0");
	REASON(ADDR_NOT_LOCAL,
	       "no network interface here has that address: see ip addr");
	REASON(ADDR_IN_USE,
	       "the port is taken, by a program or by a user in the kernel");
	REASON(ADDR_PRIVILEGED,
	       "the port needs CAP_NET_BIND_SERVICE (net.ipv4.ip_unprivileged_port_start)");
	REASON(NO_DEVICE,
	       "no RDMA device there, or none that this user may open: see rdmaep doctor");
	REASON(PORT_DOWN,
	       "the RDMA device's port is not active: see rdmaep doctor");
	REASON(UNREACHABLE,
	       "no route to the destination, or nobody answers: see ip route get");
	REASON(TIMEOUT, "the peer did not answer in time");
	REASON(REJECTED,
	       "the peer refused: nobody listens on that port, or the program there said no");
	REASON(DEVICE_REMOVED,
	       "the RDMA device went away: destroy the endpoint");
	REASON(DATA_TOO_LONG,
	       "more private data than the transport carries: see rdmaep_get_limits(3)");
	REASON(LIMIT, "a limit of the module is reached: see rdma_ep(4)");
	REASON(VALUE, "a value is out of range");
	REASON(KERNEL, "this kernel's rdma_cm cannot do it");
	REASON(DESTROYED, "another thread destroyed the endpoint meanwhile");
	}
	return (struct reason){};
}

const char *tool_reason_text(unsigned int code)
{
	return reason(code).text;
}

const char *tool_reason_name(unsigned int code)
{
	return reason(code).name ? reason(code).name : "of a newer module";
}

void tool_advise(unsigned int code)
{
	const char *text = code ? tool_reason_text(code) : NULL;

	if (text)
		fprintf(stderr, "-> %s\n", text);
}

static int count_reasons(void)
{
	int n = 0;

	while (reason(n).name)
		n++;
	return n;
}

/* To stdout, or (@array is not NULL) to a JSON array. */
static void print_reason(int code, struct json_object *array)
{
	struct reason r = reason(code);
	struct json_object *object;

	if (!array) {
		printf("%3d  %-15s %s\n", code, r.name, r.text);
		return;
	}
	object = json_object_new_object();
	json_object_object_add(object, "code", json_object_new_int(code));
	json_object_object_add(object, "name", json_object_new_string(r.name));
	json_object_object_add(object, "text", json_object_new_string(r.text));
	json_object_array_add(array, object);
}

/* By number, or by name with or without its prefix. */
static int find_reason(const char *arg)
{
	static const char prefix[] = "RDMA_EP_REASON_";
	char *end;
	long n;
	int i;

	errno = 0;
	n = strtol(arg, &end, 10);
	if (arg[0] && !*end)
		return !errno && n >= 0 && n < count_reasons() ? n : -1;

	if (!strncasecmp(arg, prefix, strlen(prefix)))
		arg += strlen(prefix);
	for (i = 0; i < count_reasons(); i++)
		if (!strcasecmp(arg, reason(i).name))
			return i;
	return -1;
}

/**
 * tool_reasons() - rdmaep reasons
 * @cmd: this subcommand
 * @argc: number of arguments
 * @argv: arguments
 *
 * Return: exit code.
 */
int tool_reasons(const struct tool_command *cmd, int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	struct json_object *array = NULL;
	int i, c, code, ret = TOOL_OK;

	while ((c = tool_getopt(cmd, argc, argv, "jh", options)) != -1) {
		if (c == 'h')
			return tool_help(cmd);
		if (c != 'j')
			return TOOL_USAGE;
		if (!array)
			array = json_object_new_array();
	}

	if (optind == argc)
		for (i = 0; i < count_reasons(); i++)
			print_reason(i, array);

	for (i = optind; i < argc; i++) {
		code = find_reason(argv[i]);
		if (code < 0) {
			tool_error("no reason '%s'", argv[i]);
			ret = TOOL_FAILED;
		} else {
			print_reason(code, array);
		}
	}
	if (array)
		tool_print_json(array);
	return ret;
}
