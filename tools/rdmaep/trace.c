// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rdmaep trace: run a program on our library, and show what its connections
 * spent their time on.
 *
 * Two instances of tracefs: one follows the program and its children, and tells
 * which contexts are theirs; the other has what happens to those contexts in
 * whoever's name, since the connection manager works in the kernel's threads.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <json-c/json.h>

#include "table.h"
#include "timeline.h"
#include "tool.h"
#include "tracefs.h"

/**
 * struct trace - a run
 * @own: follows the program
 * @all: has everything
 * @ctxs: contexts of the program
 * @num_ctxs: how many
 * @events: everything
 * @num_events: how many
 * @room: how many fit into @events
 * @shown: endpoints of which to print the timeline, at most
 */
struct trace {
	struct tracer own;
	struct tracer all;
	unsigned int *ctxs;
	size_t num_ctxs;
	struct trace_event *events;
	size_t num_events;
	size_t room;
	unsigned long shown;
};

static void on_own(const struct trace_event *event, void *arg)
{
	struct trace *trace = arg;
	unsigned int *grown;
	size_t i;

	/* a handler may run in the program's thread, for somebody else's context */
	if (event->kind != TRACE_CALL)
		return;
	for (i = 0; i < trace->num_ctxs; i++)
		if (trace->ctxs[i] == event->ctx)
			return;
	grown = realloc(trace->ctxs, (trace->num_ctxs + 1) * sizeof(*grown));
	if (!grown)
		abort();
	trace->ctxs = grown;
	trace->ctxs[trace->num_ctxs++] = event->ctx;
}

static void on_any(const struct trace_event *event, void *arg)
{
	struct trace *trace = arg;

	if (trace->num_events == trace->room) {
		trace->room = trace->room ? 2 * trace->room : 1024;
		trace->events = realloc(trace->events, trace->room * sizeof(*trace->events));
		if (!trace->events)
			abort();
	}
	trace->events[trace->num_events] = *event;
	trace->events[trace->num_events].order = trace->num_events;
	trace->num_events++;
}

/* Take what both instances have. */
static void drain(struct trace *trace)
{
	while (tracer_read(&trace->own, on_own, trace) > 0)
		;
	while (tracer_read(&trace->all, on_any, trace) > 0)
		;
}

/* The child waits for a byte from @go: by then it is being traced. */
static pid_t start(char **argv, int go[2])
{
	pid_t pid = fork();
	char byte;

	if (pid)
		return pid;
	close(go[1]);
	if (read(go[0], &byte, 1) != 1)
		_exit(126);
	close(go[0]);
	_exit(tool_exec(argv, false));
}

static volatile pid_t program;

/* Who tells us to end means the program; we go on to what it has done. */
static void pass_on(int sig)
{
	kill(program, sig);
}

/* Returns what waitpid() said of the program. */
static int follow(struct trace *trace, pid_t pid)
{
	struct pollfd fd[2] = {
		{ .fd = trace->own.fd, .events = POLLIN },
		{ .fd = trace->all.fd, .events = POLLIN },
	};
	int status;

	while (!waitpid(pid, &status, WNOHANG)) {
		poll(fd, 2, 50);
		drain(trace);
	}
	/* what the kernel still does about the connections of one that has ended */
	usleep(100000);
	drain(trace);
	return status;
}

static int run(struct trace *trace, char **argv)
{
	struct sigaction action = { .sa_handler = pass_on };
	int go[2], status;
	pid_t pid;

	tool_load_module();
	if (pipe(go)) {
		tool_error("pipe: %s", strerror(errno));
		return -1;
	}
	pid = start(argv, go);
	if (pid < 0) {
		tool_error("fork: %s", strerror(errno));
		return -1;
	}
	close(go[0]);
	if (tracer_open(&trace->own, "own", pid) || tracer_open(&trace->all, "all", 0)) {
		/* the child reads the end of the file, and does not start */
		close(go[1]);
		waitpid(pid, &status, 0);
		return -1;
	}
	program = pid;
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	/* from the terminal the program gets these itself */
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	if (write(go[1], "", 1) != 1)
		tool_error("pipe: %s", strerror(errno));
	close(go[1]);
	return follow(trace, pid);
}

static bool is_own(const struct trace *trace, unsigned int ctx)
{
	size_t i;

	for (i = 0; i < trace->num_ctxs; i++)
		if (trace->ctxs[i] == ctx)
			return true;
	return false;
}

static void print_life(const struct life *life, uint64_t start)
{
	uint64_t before = life->steps[0].us;
	const struct step *step;
	size_t i;

	printf("Endpoint %u:%u, %s", life->ctx, life->ep,
	       life->listening ? "listener" : life->passive ? "passive" : "active");
	if (life->src[0])
		printf(", %s", life->src);
	if (life->src[0] && !life->listening)
		printf(" -> %s", life->dst);
	if (life->device[0] && life->device[0] != '-')
		printf(" on %s", life->device);
	printf(", at %.3f ms\n", (life->steps[0].us - start) / 1e3);
	for (i = 0; i < life->count; i++) {
		step = &life->steps[i];
		printf("  %12.3f ms %+12.3f  %s%s\n", (step->us - life->steps[0].us) / 1e3,
		       (step->us - before) / 1e3, step->failed ? "! " : "", step->text);
		before = step->us;
	}
	putchar('\n');
}

static int by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/**
 * struct sample - times of one kind
 * @us: the times, sorted by sample_done()
 * @count: how many
 */
struct sample {
	double *us;
	size_t count;
};

static void sample_add(struct sample *sample, double us)
{
	double *grown = realloc(sample->us, (sample->count + 1) * sizeof(*grown));

	if (!grown)
		abort();
	sample->us = grown;
	sample->us[sample->count++] = us;
}

static double percentile(const struct sample *sample, int percent)
{
	return sample->us[(sample->count - 1) * percent / 100];
}

/* How long each phase took; "set-up" is all of them. Indexed by enum phase. */
static void collect(const struct timeline *t, struct sample *phases, struct sample *set_up)
{
	const struct life *life;
	const struct step *step;
	uint64_t since;
	size_t i, k;
	int p;

	for (i = 0; i < t->count; i++) {
		life = &t->lives[i];
		since = life->steps[0].us;
		for (k = 0; k < life->count; k++) {
			step = &life->steps[k];
			if (step->phase != PHASE_NONE)
				sample_add(&phases[step->phase], step->us - since);
			if (!step->aside)
				since = step->us;
		}
		if (life->connected_us)
			sample_add(set_up, life->connected_us - life->steps[0].us);
	}
	for (p = 0; p < PHASES; p++)
		if (phases[p].count)
			qsort(phases[p].us, phases[p].count, sizeof(double), by_size);
	if (set_up->count)
		qsort(set_up->us, set_up->count, sizeof(double), by_size);
}

static void add_sample_row(struct table *table, const char *name, const struct sample *sample)
{
	if (!sample->count)
		return;
	table_add(table, "%s", name);
	table_add(table, "%zu", sample->count);
	table_add(table, "%.3f", percentile(sample, 0) / 1e3);
	table_add(table, "%.3f", percentile(sample, 50) / 1e3);
	table_add(table, "%.3f", percentile(sample, 99) / 1e3);
	table_add(table, "%.3f", percentile(sample, 100) / 1e3);
}

static const char *phase_label(int phase)
{
	return phase == PHASE_ACCEPT ? "REP to RTU, passive" : phase_names[phase];
}

static void print_phases(const struct sample *phases, const struct sample *set_up)
{
	struct table table = { .columns = 6, .right = 0x3e };
	int p;

	table_add(&table, "PHASE, ms");
	table_add(&table, "COUNT");
	table_add(&table, "MIN");
	table_add(&table, "MEDIAN");
	table_add(&table, "99%%");
	table_add(&table, "MAX");
	for (p = 1; p < PHASES; p++)
		add_sample_row(&table, phase_label(p), &phases[p]);
	add_sample_row(&table, "set-up as a whole", set_up);
	table_print(&table);
}

#define BUCKETS	40	/* powers of two, in us */

static int bucket_of(double us)
{
	int b = 0;

	while (us >= 2 && b < BUCKETS - 1) {
		us /= 2;
		b++;
	}
	return b;
}

static void fill_buckets(const struct sample *sample, unsigned long *bucket, int *first, int *last)
{
	size_t i;

	for (i = 0; i < sample->count; i++)
		bucket[bucket_of(sample->us[i])]++;
	*first = bucket_of(sample->us[0]);
	*last = bucket_of(sample->us[sample->count - 1]);
}

static void print_histogram(const struct sample *sample)
{
	unsigned long bucket[BUCKETS] = {}, most = 1;
	int b, first, last, stars;

	if (!sample->count)
		return;
	fill_buckets(sample, bucket, &first, &last);
	for (b = first; b <= last; b++)
		if (bucket[b] > most)
			most = bucket[b];
	printf("\nTime to connected, us:\n");
	for (b = first; b <= last; b++) {
		printf("%12llu .. %-12llu %7lu ", b ? 1ull << b : 0, (2ull << b) - 1, bucket[b]);
		for (stars = bucket[b] * 40 / most; stars > 0; stars--)
			putchar('*');
		putchar('\n');
	}
}

static void print_text(const struct timeline *t, const struct trace *trace)
{
	struct sample phases[PHASES] = {}, set_up = {};
	size_t i, connected = 0, failed = 0;

	for (i = 0; i < t->count; i++) {
		if (i < trace->shown)
			print_life(&t->lives[i], t->lives[0].steps[0].us);
		connected += t->lives[i].connected_us != 0;
		failed += t->lives[i].failed && !t->lives[i].connected_us;
	}
	if (t->count > trace->shown)
		printf("... and %zu more (--number)\n\n", t->count - trace->shown);
	printf("%zu endpoint%s, %zu connected, %zu failed\n", t->count,
	       t->count == 1 ? "" : "s", connected, failed);
	collect(t, phases, &set_up);
	if (set_up.count || failed) {
		putchar('\n');
		print_phases(phases, &set_up);
	}
	print_histogram(&set_up);
	for (i = 0; i < PHASES; i++)
		free(phases[i].us);
	free(set_up.us);
}

static struct json_object *life_json(const struct life *life)
{
	struct json_object *object = json_object_new_object(), *steps = json_object_new_array();
	struct json_object *step;
	size_t i;

	json_object_object_add(object, "context", json_object_new_int64(life->ctx));
	json_object_object_add(object, "handle", json_object_new_int64(life->ep));
	json_object_object_add(object, "passive", json_object_new_boolean(life->passive));
	json_object_object_add(object, "listening", json_object_new_boolean(life->listening));
	json_object_object_add(object, "device", json_object_new_string(life->device));
	json_object_object_add(object, "source", json_object_new_string(life->src));
	json_object_object_add(object, "destination", json_object_new_string(life->dst));
	json_object_object_add(object, "start_us", json_object_new_int64(life->steps[0].us));
	if (life->connected_us)
		json_object_object_add(object, "connected_after_us",
				       json_object_new_int64(life->connected_us -
							     life->steps[0].us));
	for (i = 0; i < life->count; i++) {
		step = json_object_new_object();
		json_object_object_add(step, "at_us",
				       json_object_new_int64(life->steps[i].us -
							     life->steps[0].us));
		json_object_object_add(step, "what", json_object_new_string(life->steps[i].text));
		json_object_object_add(step, "failed",
				       json_object_new_boolean(life->steps[i].failed));
		json_object_array_add(steps, step);
	}
	json_object_object_add(object, "steps", steps);
	return object;
}

static void add_sample_json(struct json_object *to, const char *name, const struct sample *sample)
{
	struct json_object *object;

	if (!sample->count)
		return;
	object = json_object_new_object();
	json_object_object_add(object, "count", json_object_new_int64(sample->count));
	json_object_object_add(object, "min_us", json_object_new_int64(percentile(sample, 0)));
	json_object_object_add(object, "median_us", json_object_new_int64(percentile(sample, 50)));
	json_object_object_add(object, "p99_us", json_object_new_int64(percentile(sample, 99)));
	json_object_object_add(object, "max_us", json_object_new_int64(percentile(sample, 100)));
	json_object_object_add(to, name, object);
}

static struct json_object *histogram_json(const struct sample *sample)
{
	struct json_object *array = json_object_new_array(), *object;
	unsigned long bucket[BUCKETS] = {};
	int b, first, last;

	if (!sample->count)
		return array;
	fill_buckets(sample, bucket, &first, &last);
	for (b = first; b <= last; b++) {
		object = json_object_new_object();
		json_object_object_add(object, "below_us", json_object_new_int64(2ll << b));
		json_object_object_add(object, "count", json_object_new_int64(bucket[b]));
		json_object_array_add(array, object);
	}
	return array;
}

static void print_json(const struct timeline *t, int status)
{
	struct json_object *object = json_object_new_object(), *lives = json_object_new_array();
	struct json_object *times = json_object_new_object();
	struct sample phases[PHASES] = {}, set_up = {};
	size_t i;

	for (i = 0; i < t->count; i++)
		json_object_array_add(lives, life_json(&t->lives[i]));
	collect(t, phases, &set_up);
	for (i = 1; i < PHASES; i++)
		add_sample_json(times, phase_label(i), &phases[i]);
	add_sample_json(times, "set-up", &set_up);
	json_object_object_add(object, "exit", json_object_new_int(status));
	json_object_object_add(object, "endpoints", lives);
	json_object_object_add(object, "phases", times);
	json_object_object_add(object, "histogram", histogram_json(&set_up));
	tool_print_json(object);
	for (i = 0; i < PHASES; i++)
		free(phases[i].us);
	free(set_up.us);
}

/* As the shell has it. */
static int exit_code(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Of the same microsecond, what was read first stays first. */
static int by_time(const void *a, const void *b)
{
	const struct trace_event *x = a, *y = b;

	if (x->us != y->us)
		return x->us > y->us ? 1 : -1;
	return (x->order > y->order) - (x->order < y->order);
}

static int report(struct trace *trace, const char *program, const char *svg, bool json, int code)
{
	struct timeline t = {};
	size_t i;

	qsort(trace->events, trace->num_events, sizeof(*trace->events), by_time);
	for (i = 0; i < trace->num_events; i++)
		if (is_own(trace, trace->events[i].ctx))
			timeline_add(&t, &trace->events[i]);
	if (json)
		print_json(&t, code);
	else if (t.count)
		print_text(&t, trace);
	else if (code != 126 && code != 127)
		tool_error("%s has made no endpoint: does it use librdmacm? See rdmaep doctor",
			   program);
	if (trace->all.lost || trace->own.lost)
		tool_error("%lu trace events were lost: they came too fast",
			   trace->all.lost + trace->own.lost);
	if (svg && t.count && timeline_svg(&t, svg, program)) {
		tool_error("%s: %s", svg, strerror(errno));
		code = code ? code : TOOL_FAILED;
	}
	timeline_free(&t);
	return code;
}

/*
 * Whether it can be written is known before the program has run for long. What is
 * there already is not opened: it may be a pipe.
 */
static int try_picture(const char *svg, bool *made)
{
	int fd = open(svg, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	struct stat st;

	*made = fd >= 0;
	if (fd >= 0)
		return close(fd);
	if (errno == EEXIST && !access(svg, W_OK) && !stat(svg, &st)) {
		if (!S_ISDIR(st.st_mode))
			return 0;
		errno = EISDIR;
	}
	tool_error("%s: %s", svg, strerror(errno));
	return -1;
}

static void remove_empty(const char *svg)
{
	struct stat st;

	if (!stat(svg, &st) && !st.st_size)
		unlink(svg);
}

/**
 * tool_trace() - rdmaep trace
 * @cmd: this subcommand
 * @argc: number of arguments
 * @argv: arguments
 *
 * Return: the program's exit code.
 */
int tool_trace(const struct tool_command *cmd, int argc, char **argv)
{
	static const struct option options[] = {
		{ "svg", required_argument, NULL, 's' },
		{ "number", required_argument, NULL, 'n' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	static struct trace trace = { .shown = 10 };
	const char *svg = NULL;
	bool json = false, made = false;
	int c, status;

	/* "+": what follows the program belongs to it */
	while ((c = tool_getopt(cmd, argc, argv, "+s:n:jh", options)) != -1) {
		switch (c) {
		case 's':
			svg = optarg;
			break;
		case 'n':
			if (!tool_number(optarg, 0, 1000000000, &trace.shown))
				return tool_usage_error(cmd, "%s is not a count", optarg);
			break;
		case 'j':
			json = true;
			break;
		case 'h':
			return tool_help(cmd);
		default:
			return TOOL_USAGE;
		}
	}
	if (optind == argc)
		return tool_usage_error(cmd, "no program");

	if (svg && try_picture(svg, &made))
		return TOOL_FAILED;
	status = run(&trace, argv + optind);
	tracer_close(&trace.own);
	tracer_close(&trace.all);
	status = status < 0 ? TOOL_FAILED :
			      report(&trace, argv[optind], svg, json, exit_code(status));
	if (made)
		remove_empty(svg);
	free(trace.ctxs);
	free(trace.events);
	return status;
}
