// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Many ids: what each costs in time, memory and file descriptors as they grow
 * in number, how fast the kernel gets rid of them, and a storm of events.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmbench.h"

static struct rdma_event_channel *channel_create(const struct bench *b)
{
	struct rdma_event_channel *ch;

	if (b->sync)
		return NULL;
	ch = rdma_create_event_channel();
	check(ch, "rdma_create_event_channel");
	return ch;
}

static void id_bind(const struct bench *b, struct rdma_cm_id *id)
{
	struct sockaddr_in sin = b->sin;

	check(!rdma_bind_addr(id, (struct sockaddr *)&sin), "rdma_bind_addr");
}

/*
 * The first use of the library opens the device, which is not to count: an id
 * that stays.
 */
static struct rdma_cm_id *first_id(const struct bench *b,
				   struct rdma_event_channel *ch)
{
	struct rdma_cm_id *id;

	check(!rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
	id_bind(b, id);
	return id;
}

/**
 * bench_grow() - create, bind and destroy ids
 * @b: what the command line says
 */
void bench_grow(const struct bench *b)
{
	struct rdma_cm_id **ids = zalloc(b->count * sizeof(*ids)), *first;
	struct rdma_event_channel *ch = channel_create(b);
	struct step steps[3];
	uint64_t begin, t;
	int i;

	step_init(&steps[0], "create", b->count);
	step_init(&steps[1], "bind", b->count);
	step_init(&steps[2], "destroy", b->count);
	first = first_id(b, ch);

	begin = now_ns();
	for (i = 0; i < b->count; i++) {
		t = now_ns();
		check(!rdma_create_id(ch, &ids[i], NULL, RDMA_PS_TCP),
		      "rdma_create_id");
		t = step_end(&steps[0], t);
		if (!b->bind)
			continue;
		id_bind(b, ids[i]);
		step_end(&steps[1], t);
	}
	result_begin(b, b->sync ? "grow-sync" : "grow");
	result_number("create_ns", (double)(now_ns() - begin) / b->count);

	begin = now_ns();
	for (i = 0; i < b->count; i++) {
		t = now_ns();
		rdma_destroy_id(ids[i]);
		step_end(&steps[2], t);
	}
	result_number("destroy_ns", (double)(now_ns() - begin) / b->count);
	result_steps(steps, 3);
	result_end();
	rdma_destroy_id(first);
}

/**
 * bench_limit() - how many synchronous ids are possible
 * @b: what the command line says
 */
void bench_limit(const struct bench *b)
{
	struct rdma_cm_id **ids = zalloc(b->count * sizeof(*ids));
	int n, i;

	for (n = 0; n < b->count; n++)
		if (rdma_create_id(NULL, &ids[n], NULL, RDMA_PS_TCP))
			break;
	result_begin(b, "limit");
	result_number("sync_ids", n);
	result_number("errno", n < b->count ? errno : 0);
	for (i = 0; i < n; i++)
		rdma_destroy_id(ids[i]);
	result_end();
}

static long meminfo(const char *key)
{
	FILE *f = fopen("/proc/meminfo", "r");
	char line[128];
	long kib = -1;

	check(f, "/proc/meminfo");
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, key, strlen(key)))
			kib = atol(line + strlen(key));
	fclose(f);
	check(kib >= 0, key);
	return kib;
}

/**
 * bench_memory() - kernel memory per bound id
 * @b: what the command line says
 *
 * The growth of the slabs, over the ids after the first tenth: before that
 * slabs and lists fill that are there anyhow.
 */
void bench_memory(const struct bench *b)
{
	struct rdma_cm_id **ids = zalloc(b->count * sizeof(*ids));
	struct rdma_event_channel *ch = channel_create(b);
	int skip = b->count / 10, i;
	long before = 0;

	for (i = 0; i < b->count; i++) {
		if (i == skip)
			before = meminfo("Slab:");
		check(!rdma_create_id(ch, &ids[i], NULL, RDMA_PS_TCP),
		      "rdma_create_id");
		id_bind(b, ids[i]);
	}
	result_begin(b, "memory");
	result_number("slab_bytes",
		      1024.0 * (meminfo("Slab:") - before) / (b->count - skip));
	result_end();
	for (i = 0; i < b->count; i++)
		rdma_destroy_id(ids[i]);
}

/**
 * bench_kill() - from SIGKILL to the end of a process with connections
 * @b: what the command line says; COUNT connections are twice as many ids
 */
void bench_kill(const struct bench *b)
{
	uint64_t begin;
	int fds[2];
	pid_t pid;
	char c;

	check(!pipe(fds), "pipe");
	pid = fork();
	check(pid >= 0, "fork");
	if (!pid) {
		hold_connections(b, b->count);
		check(write(fds[1], "", 1) == 1, "write");
		pause();
		_exit(1);
	}
	close(fds[1]);
	check(read(fds[0], &c, 1) == 1, "the process to be killed");

	begin = now_ns();
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	result_begin(b, "kill");
	result_number("ids", 2 * b->count);
	result_number("ns", now_ns() - begin);
	result_end();
}

/**
 * bench_storm() - read events that are there already
 * @b: what the command line says
 *
 * They are resolved addresses, one per id.
 */
void bench_storm(const struct bench *b)
{
	struct rdma_cm_id **ids = zalloc(b->count * sizeof(*ids)), *first;
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct sockaddr_in dst = b->sin;
	struct rdma_cm_event *event;
	uint64_t begin;
	int i;

	check(ch, "rdma_create_event_channel");
	dst.sin_port = htons(b->port);
	first = first_id(b, ch);
	for (i = 0; i < b->count; i++) {
		check(!rdma_create_id(ch, &ids[i], NULL, RDMA_PS_TCP),
		      "rdma_create_id");
		check(!rdma_resolve_addr(ids[i], NULL, (struct sockaddr *)&dst,
					 2000), "rdma_resolve_addr");
	}
	sleep(1);

	begin = now_ns();
	for (i = 0; i < b->count; i++) {
		check(!rdma_get_cm_event(ch, &event), "rdma_get_cm_event");
		check(event->event == RDMA_CM_EVENT_ADDR_RESOLVED,
		      "address not resolved");
		rdma_ack_cm_event(event);
	}
	result_begin(b, "storm");
	result_number("ns_per_event", (double)(now_ns() - begin) / b->count);
	result_end();
	for (i = 0; i < b->count; i++)
		rdma_destroy_id(ids[i]);
	rdma_destroy_id(first);
}
