/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the subcommands of rdmaep share.
 */
#ifndef RDMAEP_TOOL_H
#define RDMAEP_TOOL_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>

struct end;
struct json_object;

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
int tool_show(const struct tool_command *cmd, int argc, char **argv);
int tool_stat(const struct tool_command *cmd, int argc, char **argv);
int tool_ping(const struct tool_command *cmd, int argc, char **argv);
int tool_serve(const struct tool_command *cmd, int argc, char **argv);
int tool_trace(const struct tool_command *cmd, int argc, char **argv);
int tool_monitor(const struct tool_command *cmd, int argc, char **argv);
int tool_reasons(const struct tool_command *cmd, int argc, char **argv);

int tool_usage_error(const struct tool_command *cmd, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void tool_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

int tool_help(const struct tool_command *cmd);

/**
 * tool_getopt() - getopt_long(3), with our words for what is wrong
 * @cmd: the subcommand
 * @argc: number of arguments
 * @argv: arguments
 * @brief: one-letter options
 * @options: long options
 *
 * Return: as getopt_long(); '?' when an error was printed.
 */
int tool_getopt(const struct tool_command *cmd, int argc, char **argv, const char *brief,
		const struct option *options);

/**
 * tool_number() - read a number from an argument
 * @text: the argument
 * @min: the least it may be
 * @max: the most
 * @value: where it goes
 *
 * Return: whether it is one.
 */
bool tool_number(const char *text, unsigned long min, unsigned long max, unsigned long *value);

/**
 * tool_read_end() - read the values of --address and --port
 * @cmd: the subcommand
 * @end: where they go
 * @address: an address, or NULL
 * @port: a port, or NULL
 *
 * Return: false after complaining that one is none.
 */
bool tool_read_end(const struct tool_command *cmd, struct end *end, const char *address,
		   const char *port);

/**
 * tool_age() - a time in words
 * @s: seconds
 * @text: where it goes
 * @size: bytes there
 *
 * Return: @text.
 */
const char *tool_age(unsigned long long s, char *text, size_t size);

/**
 * tool_reason_text() - what a reason means and what to do about it
 * @code: RDMA_EP_REASON_*
 *
 * Return: a sentence without its full stop, or NULL.
 */
const char *tool_reason_text(unsigned int code);

/**
 * tool_reason_name() - a reason's name
 * @code: RDMA_EP_REASON_*
 *
 * Return: the name without its prefix.
 */
const char *tool_reason_name(unsigned int code);

/**
 * tool_advise() - print the same to stderr, if there is something to say
 * @code: RDMA_EP_REASON_*
 */
void tool_advise(unsigned int code);

/**
 * tool_flush() - let what was printed be seen now
 *
 * main() tells of what could not be written; whoever goes on and on ends.
 *
 * Return: whether all of it could.
 */
bool tool_flush(void);

void tool_print_json(struct json_object *object);
void tool_print_json_line(struct json_object *object);

/**
 * tool_exec() - become a program, on our library
 * @argv: its name and arguments
 * @debug: let the library print why calls fail
 *
 * Return: does not, unless it fails: 127 if there is no such program, 126 if
 * it cannot be run, as the shell has it.
 */
int tool_exec(char **argv, bool debug);

/**
 * tool_load_module() - have the module loaded, as it is for who uses the library
 *
 * For those who need it without using the library. Where it cannot be loaded,
 * what they do next fails, and says so.
 */
void tool_load_module(void);

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
