// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * cmbench: how fast is a connection manager?
 *
 * It needs nothing but the public API of <rdma/rdma_cma.h>, so one binary runs
 * on librdmacm and, with LD_LIBRARY_PATH, on this project's library. What it
 * uses of <rdmaep.h> it looks for at run time.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "cmbench.h"

static const char help[] =
"cmbench BENCHMARK [OPTION]...\n"
"\n"
"  cm        connections without queue pairs, one after the other\n"
"  ep        connections with queue pairs, from rdma_create_ep() to\n"
"            rdma_destroy_ep()\n"
"  grow      create, bind and destroy COUNT ids\n"
"  limit     how many synchronous ids can there be, up to COUNT\n"
"  memory    kernel memory of COUNT bound ids\n"
"  kill      kill a process that holds COUNT connections\n"
"  storm     read COUNT events that are there\n"
"\n"
"  -B N      ep: N connections at a time, by the calls of <rdmaep.h>\n"
"  -a ADDR   local address of an RDMA device (10.77.0.1)\n"
"  -c COUNT  (200)\n"
"  -l LABEL  to print with the result\n"
"  -n        grow: do not bind\n"
"  -o        ep: with PD and CQs of our own, kept over all connections\n"
"  -p PORT   first port to listen on (7470)\n"
"  -P        two processes, not two threads\n"
"  -s        grow: synchronous ids\n"
"  -t N      N pairs of threads (1)\n"
"  -w N      connections that do not count, before (20)\n";

/** now_ns() - current time in ns */
uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * UINT64_C(1000000000) + ts.tv_nsec;
}

/**
 * check() - end the program unless all is well
 * @ok: is it?
 * @what: what was tried; errno says why it failed
 */
void check(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "cmbench: %s: %s\n", what, strerror(errno));
	exit(1);
}

/** zalloc() - @size bytes of zeroes; cannot fail */
void *zalloc(size_t size)
{
	void *p = calloc(1, size);

	check(p, "memory");
	return p;
}

/**
 * step_init() - prepare to measure a step
 * @step: the step
 * @name: its name
 * @max: how often it will be done at most
 */
void step_init(struct step *step, const char *name, int max)
{
	step->name = name;
	step->max = max;
	step->n = 0;
	step->ns = zalloc(max * sizeof(*step->ns));
}

/**
 * step_end() - a step is over
 * @step: the step
 * @start: when it began
 *
 * Return: now, when the next begins
 */
uint64_t step_end(struct step *step, uint64_t start)
{
	uint64_t now = now_ns();

	if (step->n < step->max)
		step->ns[step->n++] = now - start;
	return now;
}

/** step_merge() - add the times of @src to @dst, which is made big enough */
void step_merge(struct step *dst, const struct step *src)
{
	dst->name = src->name;
	dst->max = dst->n + src->n;
	dst->ns = realloc(dst->ns, dst->max * sizeof(*dst->ns));
	check(dst->ns || !dst->max, "memory");
	memcpy(dst->ns + dst->n, src->ns, src->n * sizeof(*src->ns));
	dst->n = dst->max;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/** result_begin() - start a line of JSON for benchmark @name */
void result_begin(const struct bench *b, const char *name)
{
	printf("{\"bench\":\"%s\",\"lib\":\"%s\",\"count\":%d", name, b->label,
	       b->count);
}

/** result_number() - add a number to the line */
void result_number(const char *name, double value)
{
	printf(",\"%s\":%.6g", name, value);
}

/**
 * result_steps() - add medians, 99th percentiles and maxima in ns
 * @steps: the steps, whose times are sorted by this
 * @n: how many
 */
void result_steps(struct step *steps, int n)
{
	const char *comma = "";
	int i;

	printf(",\"steps\":{");
	for (i = 0; i < n; i++) {
		struct step *s = &steps[i];

		if (!s->n)
			continue;
		qsort(s->ns, s->n, sizeof(*s->ns), compare);
		printf("%s\"%s\":[%ju,%ju,%ju]", comma, s->name,
		       (uintmax_t)s->ns[s->n / 2],
		       (uintmax_t)s->ns[(s->n - 1) * 99 / 100],
		       (uintmax_t)s->ns[s->n - 1]);
		comma = ",";
	}
	printf("}");
}

/** result_end() - finish the line */
void result_end(void)
{
	printf("}\n");
	fflush(stdout);
}

static void raise_limits(void)
{
	/* librdmacm wants a file for each synchronous id. Root may have them. */
	struct rlimit lim = { 1 << 20, 1 << 20 };

	if (!setrlimit(RLIMIT_NOFILE, &lim) || getrlimit(RLIMIT_NOFILE, &lim))
		return;
	lim.rlim_cur = lim.rlim_max;
	setrlimit(RLIMIT_NOFILE, &lim);
}

static void parse(struct bench *b, int argc, char **argv)
{
	int opt;

	while ((opt = getopt(argc, argv, "B:a:c:l:nop:Pst:w:")) != -1) {
		switch (opt) {
		case 'B':
			b->batch = atoi(optarg);
			break;
		case 'a':
			b->addr = optarg;
			break;
		case 'c':
			b->count = atoi(optarg);
			break;
		case 'l':
			b->label = optarg;
			break;
		case 'n':
			b->bind = false;
			break;
		case 'o':
			b->own = true;
			break;
		case 'p':
			b->port = atoi(optarg);
			break;
		case 'P':
			b->procs = true;
			break;
		case 's':
			b->sync = true;
			break;
		case 't':
			b->threads = atoi(optarg);
			break;
		case 'w':
			b->warmup = atoi(optarg);
			break;
		default:
			fputs(help, stderr);
			exit(2);
		}
	}
	b->sin.sin_family = AF_INET;
	if (inet_pton(AF_INET, b->addr, &b->sin.sin_addr) != 1 ||
	    b->count < 1 || b->threads < 1 || b->warmup < 0 || b->batch < 0) {
		fputs(help, stderr);
		exit(2);
	}
}

static int round_up(int n, int to)
{
	return (n + to - 1) / to * to;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(const struct bench *b);
	} benches[] = {
		{ "cm", bench_conn },	   { "ep", bench_conn },
		{ "grow", bench_grow },	   { "limit", bench_limit },
		{ "memory", bench_memory }, { "kill", bench_kill },
		{ "storm", bench_storm },
	};
	struct bench b = {
		.label = "?", .addr = "10.77.0.1", .port = 7470, .count = 200,
		.warmup = 20, .threads = 1, .bind = true,
	};
	const char *name = argc > 1 ? argv[1] : "";
	size_t i;

	if (!strcmp(name, "--help")) {
		fputs(help, stdout);
		return 0;
	}
	for (i = 0; i < sizeof(benches) / sizeof(benches[0]); i++) {
		if (strcmp(name, benches[i].name))
			continue;
		parse(&b, argc - 1, argv + 1);
		b.qp = !strcmp(name, "ep");
		/* Whole batches, so that the two ends count alike. */
		if (b.batch) {
			b.count = round_up(b.count, b.batch);
			b.warmup = round_up(b.warmup, b.batch);
		}
		/* That benchmark is about the limit. */
		if (benches[i].run != bench_limit)
			raise_limits();
		benches[i].run(&b);
		return 0;
	}
	fputs(help, stderr);
	return 2;
}
