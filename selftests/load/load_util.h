/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the load tests measure with, besides what the tests of their kind share.
 * They need no more than /proc.
 */
#ifndef LOAD_UTIL_H
#define LOAD_UTIL_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Processes end in all sorts of ways here, and what they say is wanted. */
static void __attribute__((constructor)) say_at_once(void)
{
	setvbuf(stdout, NULL, _IONBF, 0);
}

static inline int in_long_form(int usual, int at_length)
{
	return is_long() ? at_length : usual;
}

/* The number after a name in a file of names and numbers; -1 if there is none */
static inline long number_in(const char *path, const char *name)
{
	FILE *file = fopen(path, "re");
	char word[64], line[256];
	long val, found = -1;

	if (!file)
		return -1;
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "%63[^: ]%*[: ]%ld", word, &val) == 2 && !strcmp(word, name))
			found = val;
	fclose(file);
	return found;
}

/* KiB of slab that cannot be reclaimed: where the kernel has what is made here */
static inline long slab_kib(void)
{
	return number_in("/proc/meminfo", "SUnreclaim");
}

/*
 * Once what is freed later has been: after RCU, by work items. The debug kernel
 * keeps it back for KASAN to look at; there kmemleak finds what is lost.
 */
static inline long settled_slab_kib(long wanted)
{
	const char *times = getenv("SLOW");
	long now = slab_kib();
	int i;

	if (times && atoi(times) > 1)
		return wanted;
	for (i = 0; i < 100 && now > wanted; i++) {
		usleep(100000);
		now = slab_kib();
	}
	return now;
}

static inline long counter(const char *name)
{
	return number_in("/proc/net/rdma_ep", name);
}

#endif /* LOAD_UTIL_H */
