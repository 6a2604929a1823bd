// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rdmaep list: the endpoints of all processes, or of some, from what the
 * module writes into /proc/PID/fdinfo.
 *
 * A child of fork(2) has its parent's files as well: a context is listed once,
 * for the process with the lowest number that we may look at.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/rdma_ep.h>

#include "rdmaep.h"

/* The contexts that were listed already, by number. */
static struct {
	unsigned int *number;
	size_t count;
} seen;

static int endpoints;
static int unreadable;		/* processes */

static bool seen_before(unsigned int number)
{
	unsigned int *grown;
	size_t i;

	for (i = 0; i < seen.count; i++)
		if (seen.number[i] == number)
			return true;
	grown = realloc(seen.number, (seen.count + 1) * sizeof(*grown));
	if (grown) {
		grown[seen.count++] = number;
		seen.number = grown;
	}
	return false;
}

static void process_name(int pid, char *name, size_t size)
{
	char path[64];
	FILE *f;

	snprintf(name, size, "?");
	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	f = fopen(path, "re");
	if (!f)
		return;
	if (fgets(name, size, f))
		name[strcspn(name, "\n")] = '\0';
	fclose(f);
}

/*
 * One line of fdinfo: handle, QP type, state, device/port, source and
 * destination; then names with their values, which are left as they are.
 */
static void list_endpoint(int pid, const char *comm, char *line)
{
	char *field[6], *rest = line;
	size_t i;

	for (i = 0; i < 6; i++) {
		field[i] = strsep(&rest, " ");
		if (!field[i])
			return;
	}
	if (!endpoints++)
		printf("%7s %-15s %6s %-4s %-15s %-8s %-26s %-26s %s\n", "PID",
		       "PROGRAM", "HANDLE", "TYPE", "STATE", "PORT", "SOURCE",
		       "DESTINATION", "MORE");
	printf("%7d %-15s %6s %-4s %-15s %-8s %-26s %-26s %s\n", pid, comm,
	       field[0], field[1], field[2], field[3], field[4], field[5],
	       rest ? rest : "");
}

static void list_fdinfo(int pid, const char *fd)
{
	static const char context[] = "rdma_ep-context:\t";
	static const char endpoint[] = "rdma_ep-endpoint:\t";
	char path[PATH_MAX], comm[32] = "", line[512];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%s", pid, fd);
	f = fopen(path, "re");
	if (!f)
		return;
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if (!strncmp(line, context, strlen(context)) &&
		    seen_before(atoi(line + strlen(context))))
			break;
		if (strncmp(line, endpoint, strlen(endpoint)))
			continue;
		if (!comm[0])
			process_name(pid, comm, sizeof(comm));
		list_endpoint(pid, comm, line + strlen(endpoint));
	}
	fclose(f);
}

/* The files of a process that are the device. Returns 0, or -1 with errno. */
static int list_process(int pid)
{
	char path[PATH_MAX], target[PATH_MAX];
	struct dirent *entry;
	ssize_t len;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	if (!dir)
		return -1;
	while ((entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%s", pid,
			 entry->d_name);
		len = readlink(path, target, sizeof(target) - 1);
		if (len <= 0)
			continue;
		target[len] = '\0';
		/* a container may have it under another folder */
		if (len >= 8 && !strcmp(target + len - 8, "/rdma_ep"))
			list_fdinfo(pid, entry->d_name);
	}
	closedir(dir);
	return 0;
}

static int is_pid(const struct dirent *entry)
{
	return isdigit((unsigned char)entry->d_name[0]);
}

/* Processes come in the order of their numbers. */
static int by_number(const struct dirent **a, const struct dirent **b)
{
	return atoi((*a)->d_name) - atoi((*b)->d_name);
}

static int list_all(void)
{
	struct dirent **entry;
	int i, n;

	n = scandir("/proc", &entry, is_pid, by_number);
	if (n < 0) {
		tool_error("/proc: %s", strerror(errno));
		return TOOL_FAILED;
	}
	for (i = 0; i < n; i++) {
		if (list_process(atoi(entry[i]->d_name)) && errno == EACCES)
			unreadable++;
		free(entry[i]);
	}
	free(entry);
	return TOOL_OK;
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
	int i, ret = TOOL_OK;
	char *end;
	long pid;

	if (argc == 1)
		ret = list_all();
	for (i = 1; i < argc; i++) {
		pid = strtol(argv[i], &end, 10);
		if (pid <= 0 || pid > INT_MAX || *end)
			return tool_usage_error(cmd, "%s is not a process number",
						argv[i]);
		if (list_process(pid)) {
			tool_error("process %ld: %s", pid,
				   errno == ENOENT ? "there is none" :
				   strerror(errno));
			ret = TOOL_FAILED;
		}
	}

	if (!endpoints && ret == TOOL_OK)
		fputs("No endpoints.\n", stderr);
	if (unreadable)
		fprintf(stderr, "%d processes of other users could not be looked at.\n",
			unreadable);
	free(seen.number);
	return ret;
}
