// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rdmaep run: run a program on our library.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#include "tool.h"

static int has_library(const char *dir)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/librdmacm.so.1", dir) >=
	    (int)sizeof(path))
		return 0;
	return !access(path, R_OK);
}

/* @rel, as seen from the folder this program is in */
static int beside_program(const char *rel, char *dir, size_t size)
{
	char exe[PATH_MAX], path[PATH_MAX], *slash;
	ssize_t len;

	len = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	if (len <= 0)
		return -1;
	exe[len] = '\0';
	slash = strrchr(exe, '/');
	if (!slash)
		return -1;
	*slash = '\0';

	if (snprintf(path, sizeof(path), "%s/%s", exe, rel) >= (int)sizeof(path))
		return -1;
	if (!realpath(path, exe) || !has_library(exe))
		return -1;
	return snprintf(dir, size, "%s", exe) < (int)size ? 0 : -1;
}

int tool_find_library(char *dir, size_t size)
{
	if (!beside_program("../../lib/compat", dir, size))
		return 0;
	if (has_library(RDMAEP_COMPAT_DIR))
		return snprintf(dir, size, "%s", RDMAEP_COMPAT_DIR) < (int)size ?
		       0 : -1;
	return beside_program(RDMAEP_COMPAT_REL, dir, size);
}

static int put_in_front(const char *dir)
{
	const char *old = getenv("LD_LIBRARY_PATH");
	char *path;
	int ret;

	/* an empty entry would mean the current folder */
	if (!old || !old[0])
		return setenv("LD_LIBRARY_PATH", dir, 1);

	if (asprintf(&path, "%s:%s", dir, old) < 0)
		return -1;
	ret = setenv("LD_LIBRARY_PATH", path, 1);
	free(path);
	return ret;
}

/* More than errno says, where it says little. */
static const char *why_not_run(const char *program, int err)
{
	bool path = strchr(program, '/');
	struct stat st;

	if (err == ENOENT && !path)
		return "not found in PATH";
	if (err == ENOENT && !access(program, F_OK))
		return "its interpreter is not there";
	if (err == EACCES && path && !stat(program, &st) && S_ISDIR(st.st_mode))
		return "is a directory";
	return strerror(err);
}

int tool_exec(char **argv, bool debug)
{
	char dir[PATH_MAX];
	int err;

	if (tool_find_library(dir, sizeof(dir))) {
		tool_error("librdmacm.so.1 is neither in %s nor beside this program",
			   RDMAEP_COMPAT_DIR);
		return 126;
	}
	if (put_in_front(dir) || (debug && setenv("RDMAEP_DEBUG", "1", 1))) {
		tool_error("environment: %s", strerror(errno));
		return 126;
	}

	execvp(argv[0], argv);
	err = errno;
	tool_error("%s: %s", argv[0], why_not_run(argv[0], err));
	return err == ENOENT ? 127 : 126;
}

void tool_load_module(void)
{
	pid_t pid;

	if (!access("/sys/module/rdma_ep", F_OK))
		return;
	/* the library asks for it; in a child, as we are not to count among its users */
	pid = fork();
	if (!pid) {
		rdma_create_event_channel();
		_exit(0);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

/**
 * tool_run() - rdmaep run
 * @cmd: this subcommand
 * @argc: number of arguments
 * @argv: arguments
 *
 * Return: see tool_exec().
 */
int tool_run(const struct tool_command *cmd, int argc, char **argv)
{
	bool debug = false;
	int i;

	for (i = 1; i < argc && argv[i][0] == '-'; i++) {
		if (!strcmp(argv[i], "--")) {
			i++;
			break;
		}
		if (strcmp(argv[i], "-d") && strcmp(argv[i], "--debug"))
			return tool_usage_error(cmd, "unknown option %s",
						argv[i]);
		debug = true;
	}
	if (i >= argc)
		return tool_usage_error(cmd, "no program");
	return tool_exec(argv + i, debug);
}
