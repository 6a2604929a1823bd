// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rdmaep: run programs on librdmaep, and find out why that does not work.
 * This file has the table of subcommands; each has a file of its own.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rdmaep.h"

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
		.args = "",
		.help = "check this machine, and say what to do about what is missing",
		.details =
			"Looks at the module, its device, the RDMA devices, their ports and network\n"
			"interfaces, permissions, limits and libraries. Changes nothing. Exits with 0\n"
			"if all is well, with 1 if something keeps RDMA connections from working.\n",
		.main = tool_doctor,
	}, {
		.name = "list",
		.args = "[PID]...",
		.help = "list the endpoints of all processes, or of some",
		.details =
			"For each endpoint: the process, its handle, the type of its QP, its state, RDMA\n"
			"device and port, source and destination address; its age in s, how many events\n"
			"have not been read, and for a listener how many requests wait, may wait, and\n"
			"were refused. Processes of other users need root.\n",
		.main = tool_list,
	}, {
		.name = "reasons",
		.args = "[CODE|NAME]...",
		.help = "list the reasons that a failed call can give",
		.details =
			"These are the numbers that rdmaep_last_reason() returns.\n",
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

static void usage(FILE *out)
{
	size_t i;

	fputs("Usage: rdmaep COMMAND [ARG]...\n\nCommands:\n", out);
	for (i = 0; i < COMMANDS; i++)
		fprintf(out, "  %-9s %s\n", commands[i].name, commands[i].help);
	fputs("\n"
	      "  -h, --help     this text; rdmaep COMMAND --help for a command's\n"
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

static const struct tool_command *find_command(const char *name)
{
	size_t i;

	for (i = 0; i < COMMANDS; i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

static int is_option(const char *arg, const char *brief, const char *full)
{
	return !strcmp(arg, brief) || !strcmp(arg, full);
}

int main(int argc, char **argv)
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
		if (cmd)
			command_usage(cmd);
		else
			usage(stdout);
		return TOOL_OK;
	}

	cmd = find_command(argv[1]);
	if (!cmd) {
		tool_error("no command '%s'; see rdmaep --help", argv[1]);
		return TOOL_USAGE;
	}
	/* only the first: what follows may belong to the program that is run */
	if (argc > 2 && is_option(argv[2], "-h", "--help")) {
		command_usage(cmd);
		return TOOL_OK;
	}
	return cmd->main(cmd, argc - 1, argv + 1);
}
