// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rdmaep: run programs on librdmaep, and find out why that does not work.
 * This file has the table of subcommands; each has a file of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <json-c/json.h>

#include "tool.h"

static const struct tool_command commands[] = {
	{
		.name = "run",
		.args = "[--debug] [--] PROGRAM [ARG]...",
		.help = "run a program on this library instead of librdmacm",
		.details =
			"PROGRAM is one that was linked with librdmacm. It finds this library under\n"
			"that name through LD_LIBRARY_PATH.\n"
			"\n"
			"  -d, --debug   let the library print why calls fail (RDMAEP_DEBUG=1)\n",
		.main = tool_run,
	}, {
		.name = "doctor",
		.args = "[-j]",
		.help = "check this machine, and say what to do about what is missing",
		.details =
			"Looks at the module, its device, the RDMA devices, their ports and network\n"
			"interfaces, permissions, limits and libraries. Changes nothing. Exits with 0\n"
			"if all is well, with 1 if something keeps RDMA connections from working.\n"
			"\n"
			"  -j, --json   a JSON array\n",
		.main = tool_doctor,
	}, {
		.name = "list",
		.args = "[OPTION]... [PID]...",
		.help = "list the endpoints of all processes, or of some",
		.details =
			"For each endpoint: its name (context:handle), process, type of QP, state, RDMA\n"
			"device and port, addresses, age, events not read; for a listener the requests\n"
			"that wait, of how many that may, and how many were refused. Processes of other\n"
			"users need root.\n"
			"\n"
			"  -s, --state STATE[,STATE]...  in one of these states (connected, listening...)\n"
			"  -l, --listening               the same as --state LISTENING\n"
			"  -t, --type TYPE               with a QP of this type: RC, UC, UD, XRC\n"
			"  -P, --port-space PS           TCP, UDP, IPOIB or IB\n"
			"  -d, --device DEVICE[/PORT]    on this RDMA device\n"
			"  -a, --address ADDRESS         with this source or destination address\n"
			"  -p, --port PORT               with this source or destination port\n"
			"  -n, --program NAME            of processes with this name\n"
			"  -u, --user USER               of this user, a name or a number\n"
			"  -H, --no-header               no line of headings\n"
			"  -j, --json                    a JSON array\n",
		.main = tool_list,
	}, {
		.name = "show",
		.args = "[-j] CONTEXT:HANDLE...",
		.help = "show all about an endpoint",
		.details =
			"CONTEXT:HANDLE is its name, as rdmaep list prints it.\n"
			"\n"
			"  -j, --json   a JSON array of those that were found\n",
		.main = tool_show,
	}, {
		.name = "stat",
		.args = "[-a] [-j] [--watch [SECONDS]] [--count N]",
		.help = "show the counters of this network namespace",
		.details =
			"What there is now, and what has happened since the module was loaded: endpoints,\n"
			"connections, failures, events; each type of event and each reason of a failed\n"
			"call that has been seen. Needs no permission.\n"
			"\n"
			"  -w, --watch [SECONDS]  again every SECONDS (1), with the change per second\n"
			"  -c, --count N          end after N looks; --watch is implied\n"
			"  -a, --all              events and reasons that have not been seen too\n"
			"  -g, --global           of all network namespaces together, for root\n"
			"  -j, --json             a JSON object; with --watch one a line\n",
		.main = tool_stat,
	}, {
		.name = "monitor",
		.args = "[OPTION]...",
		.help = "follow what happens to endpoints, live",
		.details =
			"A line for each command that has returned, each change of state, each event when\n"
			"it happens and when it is read: the time, the time since the endpoint's line\n"
			"before, the endpoint, its program, and what it was. Needs root, since it reads\n"
			"the kernel's trace events; those that others trace are left alone.\n"
			"\n"
			"  -P, --pid PID            only of this process\n"
			"  -n, --program NAME       only of programs with this name\n"
			"  -e, --endpoint C:H       only of this endpoint, as rdmaep list names it\n"
			"  -a, --address ADDRESS    only with this source or destination address\n"
			"  -p, --port PORT          only with this source or destination port\n"
			"  -k, --kind KIND[,KIND].. only these: call, state, event, read, refused,\n"
			"                           created, destroyed, path\n"
			"  -f, --failures           only what has gone wrong\n"
			"  -c, --count N            end after N lines\n"
			"  -j, --json               one JSON object a line\n",
		.main = tool_monitor,
	}, {
		.name = "trace",
		.args = "[-j] [-n N] [--svg FILE] PROGRAM [ARG]...",
		.help = "run a program, and show what its connections took their time for",
		.details =
			"PROGRAM is run as by rdmaep run. When it has ended, the timeline of each of its\n"
			"endpoints is printed (resolving, REQ, REP, RTU, what the program reads), how long\n"
			"each phase took, and a histogram of the time to connected. Exits with PROGRAM's\n"
			"code. Needs root, since it reads the kernel's trace events.\n"
			"\n"
			"  -n, --number N   print the first N timelines (10)\n"
			"  -s, --svg FILE   draw the timelines\n"
			"  -j, --json       a JSON object, after what PROGRAM prints\n",
		.main = tool_trace,
	}, {
		.name = "ping",
		.args = "[OPTION]... HOST",
		.help = "check the path to another machine, step by step",
		.details =
			"Connects to rdmaep serve on HOST, sends messages and waits for each to come back.\n"
			"Every step is timed; the first that fails is named, with why and what to do.\n"
			"\n"
			"  -c, --count N           messages (5)\n"
			"  -p, --port PORT         port (7174)\n"
			"  -s, --size BYTES        of a message (64), up to 65536\n"
			"  -i, --interval SECONDS  from one message to the next (0.2)\n"
			"  -W, --timeout SECONDS   for each step (5)\n"
			"  -S, --source ADDRESS    local address to use\n"
			"  -j, --json              a JSON object\n",
		.main = tool_ping,
	}, {
		.name = "serve",
		.args = "[-p PORT] [-a ADDRESS] [-n N]",
		.help = "be the other end of rdmaep ping",
		.details =
			"Runs until it is interrupted.\n"
			"\n"
			"  -p, --port PORT        port (7174)\n"
			"  -a, --address ADDRESS  local address to listen on (all)\n"
			"  -n, --number N         end after N connections\n",
		.main = tool_serve,
	}, {
		.name = "reasons",
		.args = "[-j] [CODE|NAME]...",
		.help = "list the reasons that a failed call can give",
		.details =
			"These are the numbers that rdmaep_last_reason() returns.\n"
			"\n"
			"  -j, --json   a JSON array\n",
		.main = tool_reasons,
	},
};

#define COMMANDS	(sizeof(commands) / sizeof(commands[0]))

/**
 * tool_error() - say on stderr what went wrong
 * @fmt: a sentence without its full stop
 */
void tool_error(const char *fmt, ...)
{
	va_list ap;

	fputs("rdmaep: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

/**
 * tool_usage_error() - complain about a subcommand's arguments
 * @cmd: the subcommand
 * @fmt: what is wrong with them
 *
 * Return: the exit code for it.
 */
int tool_usage_error(const struct tool_command *cmd, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "rdmaep %s: ", cmd->name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "; see rdmaep %s --help\n", cmd->name);
	return TOOL_USAGE;
}

/* @c is what getopt said of it; in "-ab" it is one letter. */
static void complain_of_option(const struct tool_command *cmd, char **argv, int c)
{
	const char *word = argv[optind - 1];

	if (optopt && strncmp(word, "--", 2))
		tool_usage_error(cmd, c == ':' ? "-%c needs a value" : "unknown option -%c",
				 optopt);
	else
		tool_usage_error(cmd, c == ':' ? "%s needs a value" : "unknown option %s", word);
}

int tool_getopt(const struct tool_command *cmd, int argc, char **argv, const char *brief,
		const struct option *options)
{
	char with_colon[64];
	int c;

	/* the colon tells a missing argument from an unknown option */
	if (brief[0] == '+')
		snprintf(with_colon, sizeof(with_colon), "+:%s", brief + 1);
	else
		snprintf(with_colon, sizeof(with_colon), ":%s", brief);
	opterr = 0;
	c = getopt_long(argc, argv, with_colon, options, NULL);
	if (c != ':' && c != '?')
		return c;
	complain_of_option(cmd, argv, c);
	return '?';
}

bool tool_number(const char *text, unsigned long min, unsigned long max, unsigned long *value)
{
	char *end;

	errno = 0;
	*value = strtoul(text, &end, 10);
	return end != text && !*end && !errno && text[0] != '-' && *value >= min &&
	       *value <= max;
}

static int stdout_errno;	/* the first that tool_flush() has met */

bool tool_flush(void)
{
	if (fflush(stdout) && !stdout_errno)
		stdout_errno = errno;
	return !ferror(stdout);
}

/* Both print and free @object. */
void tool_print_json(struct json_object *object)
{
	puts(json_object_to_json_string_ext(object, JSON_C_TO_STRING_PRETTY |
						    JSON_C_TO_STRING_SPACED |
						    JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(object);
}

void tool_print_json_line(struct json_object *object)
{
	puts(json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN |
						    JSON_C_TO_STRING_NOSLASHESCAPE));
	tool_flush();
	json_object_put(object);
}

static void usage(FILE *out)
{
	size_t i;

	fputs("Usage: rdmaep COMMAND [ARG]...\n\nCommands:\n", out);
	for (i = 0; i < COMMANDS; i++)
		fprintf(out, "  %-9s %s\n", commands[i].name, commands[i].help);
	fputs("\n"
	      "  -h, --help     this text; rdmaep help COMMAND or rdmaep COMMAND --help for a\n"
	      "                 command's\n"
	      "  -V, --version  version of this tool\n", out);
}

static void command_usage(const struct tool_command *cmd)
{
	printf("Usage: rdmaep %s%s%s\n\n%c%s.\n", cmd->name,
	       cmd->args[0] ? " " : "", cmd->args,
	       cmd->help[0] - 'a' + 'A', cmd->help + 1);
	if (cmd->details)
		printf("\n%s", cmd->details);
}

/**
 * tool_help() - print what --help says of a subcommand
 * @cmd: the subcommand
 *
 * Return: the exit code for it.
 */
int tool_help(const struct tool_command *cmd)
{
	command_usage(cmd);
	return TOOL_OK;
}

static const struct tool_command *find_command(const char *name)
{
	size_t i;

	for (i = 0; i < COMMANDS; i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

static int complain_of_command(const char *name)
{
	size_t i;

	fprintf(stderr, "rdmaep: no command '%s'; there are ", name);
	for (i = 0; i < COMMANDS; i++)
		fprintf(stderr, "%s%s", i ? "," : "", commands[i].name);
	fputs("; see rdmaep --help\n", stderr);
	return TOOL_USAGE;
}

static int is_option(const char *arg, const char *brief, const char *full)
{
	return !strcmp(arg, brief) || !strcmp(arg, full);
}

static int run_command(int argc, char **argv)
{
	const struct tool_command *cmd;

	if (argc < 2) {
		usage(stderr);
		return TOOL_USAGE;
	}
	if (is_option(argv[1], "-V", "--version")) {
		printf("rdmaep %s\n", RDMAEP_VERSION);
		return TOOL_OK;
	}
	if (is_option(argv[1], "-h", "--help") || !strcmp(argv[1], "help")) {
		cmd = argc > 2 ? find_command(argv[2]) : NULL;
		if (argc > 2 && !cmd)
			return complain_of_command(argv[2]);
		if (cmd)
			command_usage(cmd);
		else
			usage(stdout);
		return TOOL_OK;
	}

	cmd = find_command(argv[1]);
	if (!cmd)
		return complain_of_command(argv[1]);
	/* only the first: what follows may belong to the program that is run */
	if (argc > 2 && is_option(argv[2], "-h", "--help")) {
		command_usage(cmd);
		return TOOL_OK;
	}
	return cmd->main(cmd, argc - 1, argv + 1);
}

/*
 * Where a standard file is closed, the next that is opened would get its number,
 * and what is printed. This one cannot be written, which is an error as well.
 */
static void keep_standard_files(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

/* What was printed is the answer: it has to get out. Who reads no more has had enough. */
static int end_output(int code)
{
	bool written = tool_flush();

	if (fclose(stdout) && !stdout_errno)
		stdout_errno = errno;
	if ((written && !stdout_errno) || stdout_errno == EPIPE)
		return code;
	tool_error("standard output: %s", strerror(stdout_errno ? stdout_errno : EIO));
	return code == TOOL_OK ? TOOL_FAILED : code;
}

int main(int argc, char **argv)
{
	keep_standard_files();
	return end_output(run_command(argc, argv));
}
