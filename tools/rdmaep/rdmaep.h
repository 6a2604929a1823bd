/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the subcommands of rdmaep share.
 */
#ifndef RDMAEP_TOOL_H
#define RDMAEP_TOOL_H

#include <stddef.h>

/* Exit codes. What "run" runs exits with its own. */
#define TOOL_OK		0
#define TOOL_FAILED	1	/* the answer is no */
#define TOOL_USAGE	2

/**
 * struct tool_command - a subcommand
 * @name: how it is called
 * @args: its arguments, for the usage line
 * @help: what it does, in one line
 * @details: its options and whatever else --help should say, or NULL
 * @main: gets the arguments from the subcommand's name on, returns an exit
 *	code
 */
struct tool_command {
	const char *name;
	const char *args;
	const char *help;
	const char *details;
	int (*main)(const struct tool_command *cmd, int argc, char **argv);
};

int tool_run(const struct tool_command *cmd, int argc, char **argv);
int tool_doctor(const struct tool_command *cmd, int argc, char **argv);
int tool_list(const struct tool_command *cmd, int argc, char **argv);
int tool_reasons(const struct tool_command *cmd, int argc, char **argv);

int tool_usage_error(const struct tool_command *cmd, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void tool_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/**
 * tool_find_library() - find the folder with our librdmacm.so.1
 * @dir: where its path goes
 * @size: bytes there
 *
 * Looks beside this program: in the build tree if it has not been installed,
 * then where it was installed to, then at the same place relative to where it
 * is now.
 *
 * Return: 0, or -1 if there is none.
 */
int tool_find_library(char *dir, size_t size);

#endif /* RDMAEP_TOOL_H */
