/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the files of cmbench share.
 *
 * Each benchmark prints one line of JSON. Times are in ns of CLOCK_MONOTONIC:
 * in a virtual machine that counts instructions, one ns is one instruction.
 */
#ifndef CMBENCH_H
#define CMBENCH_H

#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * struct bench - what the command line says
 * @label: which library this is, printed with each result
 * @addr: local IPv4 address of an RDMA device, as text
 * @sin: the same as an address; its port is 0
 * @port: first port to listen on
 * @count: connections, endpoints or events
 * @warmup: connections before those that count
 * @threads: pairs of threads, or of processes
 * @procs: the two ends are processes, not threads
 * @batch: connections: so many at a time, by the calls of <rdmaep.h>; 0: one
 *	at a time, by those of librdmacm
 * @own: connections: PD and CQs of our own, kept
 * @qp: connections: with queue pairs
 * @sync: endpoints: without channel
 * @bind: endpoints: bound
 */
struct bench {
	const char *label;
	const char *addr;
	struct sockaddr_in sin;
	int port;
	int count;
	int warmup;
	int threads;
	int batch;
	bool procs;
	bool own;
	bool qp;
	bool sync;
	bool bind;
};

/**
 * struct step - times of one step of a benchmark
 * @name: of the step
 * @ns: how long it took, each time
 * @n: how often
 * @max: room in @ns
 */
struct step {
	const char *name;
	uint64_t *ns;
	int n;
	int max;
};

/* main.c */
uint64_t now_ns(void);
void check(bool ok, const char *what);
void *zalloc(size_t size);
void step_init(struct step *step, const char *name, int max);
uint64_t step_end(struct step *step, uint64_t start);
void step_merge(struct step *dst, const struct step *src);
void result_begin(const struct bench *b, const char *name);
void result_number(const char *name, double value);
void result_steps(struct step *steps, int n);
void result_end(void);

/* conn.c */
void bench_conn(const struct bench *b);
void hold_connections(const struct bench *b, int count);

/* many.c */
void bench_grow(const struct bench *b);
void bench_limit(const struct bench *b);
void bench_memory(const struct bench *b);
void bench_kill(const struct bench *b);
void bench_storm(const struct bench *b);

#endif /* CMBENCH_H */
