// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rdmaep stat: the module's counters for this network namespace, from
 * /proc/net/rdma_ep: once, or again and again with what has changed.
 */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <json-c/json.h>

#include "table.h"
#include "tool.h"

#define COUNTERS_FILE	"/proc/net/rdma_ep"
#define GLOBAL_FILE	"/proc/net/rdma_ep_all"
#define MAX_COUNTERS	256

/**
 * struct counter - a line of the file
 * @name: the counter's name
 * @value: what it says
 */
struct counter {
	char name[48];
	unsigned long long value;
};

/**
 * struct counters - the file at one time
 * @counter: its lines
 * @count: how many
 * @at: when, in s of CLOCK_MONOTONIC
 */
struct counters {
	struct counter counter[MAX_COUNTERS];
	size_t count;
	double at;
};

/* What the names mean. One that is missing here is printed as it is. */
static const struct {
	const char *name;
	const char *text;
} words[] = {
	{ "contexts", "open contexts" },
	{ "endpoints", "endpoints" },
	{ "channels", "event channels" },
	{ "events_waiting", "events not read yet" },
	{ "memory_bytes", "bytes of kernel memory in these" },
	{ "contexts_opened", "contexts opened" },
	{ "endpoints_created", "endpoints created" },
	{ "endpoints_destroyed", "endpoints destroyed" },
	{ "connected", "connections made, active side" },
	{ "accepted", "connections made, passive side" },
	{ "disconnected", "connections ended" },
	{ "rejected_by_us", "requests rejected by programs here" },
	{ "rejected_by_peer", "requests rejected by the peer" },
	{ "failed", "resolutions and connects that failed" },
	{ "timeouts", "of all events, timeouts" },
	{ "backlog_overflows", "requests refused, backlog full" },
	{ "events_queued", "events queued" },
	{ "events_read", "events read" },
	{ "events_discarded", "events that nobody read" },
	{ "calls_failed", "calls that failed" },
};

static const char *in_words(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(words[i].name, name))
			return words[i].text;
	return name;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static const char *counters_file = COUNTERS_FILE;

static int read_counters(struct counters *c)
{
	FILE *f = fopen(counters_file, "re");

	if (!f)
		return -1;
	c->count = 0;
	c->at = now();
	while (c->count < MAX_COUNTERS &&
	       fscanf(f, "%47s %llu", c->counter[c->count].name,
		      &c->counter[c->count].value) == 2)
		c->count++;
	fclose(f);
	return 0;
}

/* Events and reasons one by one: of interest if there were any. */
static bool is_detail(const struct counter *counter)
{
	return strchr(counter->name, '.');
}

/* The module's lines keep their order, so the same index is the same counter. */
static double per_second(const struct counters *c, const struct counters *before, size_t i)
{
	if (i >= before->count || c->at <= before->at)
		return 0;
	return ((double)c->counter[i].value - (double)before->counter[i].value) /
	       (c->at - before->at);
}

static void print_text(const struct counters *c, const struct counters *before, bool all)
{
	struct table table = { .columns = before ? 3 : 2, .right = 1 << 1 | 1 << 2 };
	const struct counter *counter;
	size_t i;

	if (before) {
		table_add(&table, "COUNTER");
		table_add(&table, "TOTAL");
		table_add(&table, "PER SECOND");
	}
	for (i = 0; i < c->count; i++) {
		counter = &c->counter[i];
		if (is_detail(counter) && !counter->value && !all)
			continue;
		table_add(&table, "%s", in_words(counter->name));
		table_add(&table, "%llu", counter->value);
		if (before)
			table_add(&table, "%.1f", per_second(c, before, i));
	}
	table_print(&table);
}

/* Totals by name; events and reasons are objects of their own. */
static void print_json(const struct counters *c, const struct counters *before, bool line)
{
	struct json_object *object = json_object_new_object(), *inner, *to;
	const char *name, *dot;
	char group[48];
	size_t i;

	if (before)
		json_object_object_add(object, "seconds",
				       json_object_new_double(c->at - before->at));
	for (i = 0; i < c->count; i++) {
		name = c->counter[i].name;
		dot = strchr(name, '.');
		to = object;
		if (dot) {
			snprintf(group, sizeof(group), "%.*s", (int)(dot - name), name);
			if (!json_object_object_get_ex(object, group, &inner)) {
				inner = json_object_new_object();
				json_object_object_add(object, group, inner);
			}
			to = inner;
			name = dot + 1;
		}
		json_object_object_add(to, name, json_object_new_int64(c->counter[i].value));
	}
	if (line)
		tool_print_json_line(object);
	else
		tool_print_json(object);
}

/**
 * struct stat_options - what was asked for
 * @json: JSON instead of text
 * @all: details that are zero too
 * @interval: s between two looks; 0: one look
 * @looks: how many, 0: until interrupted
 */
struct stat_options {
	bool json;
	bool all;
	double interval;
	unsigned long looks;
};

static void print(const struct counters *c, const struct counters *before,
		  const struct stat_options *o)
{
	if (o->json)
		print_json(c, before, o->interval > 0);
	else
		print_text(c, before, o->all);
	tool_flush();
}

static void sleep_s(double s)
{
	struct timespec ts = { .tv_sec = s, .tv_nsec = (s - (time_t)s) * 1e9 };

	nanosleep(&ts, NULL);
}

static int watch(struct counters *c, const struct stat_options *o)
{
	static struct counters before;
	unsigned long look;

	for (look = 1; tool_flush() && (!o->looks || look < o->looks); look++) {
		before = *c;
		sleep_s(o->interval);
		if (read_counters(c)) {
			tool_error("%s: %s", counters_file, strerror(errno));
			return TOOL_FAILED;
		}
		if (!o->json)
			fputs(isatty(STDOUT_FILENO) ? "\033[H\033[J" : "\n", stdout);
		print(c, &before, o);
	}
	return TOOL_OK;
}

static bool parse_interval(const char *text, double *interval)
{
	char *end;

	*interval = strtod(text, &end);
	return end != text && !*end && *interval > 0 && *interval <= 86400;
}

static int complain_of_interval(const struct tool_command *cmd, const char *text)
{
	return tool_usage_error(cmd, "%s is not a number of seconds, above 0 and up to 86400",
				text);
}

/**
 * tool_stat() - rdmaep stat
 * @cmd: this subcommand
 * @argc: number of arguments
 * @argv: arguments
 *
 * Return: exit code.
 */
int tool_stat(const struct tool_command *cmd, int argc, char **argv)
{
	static const struct option options[] = {
		{ "watch", optional_argument, NULL, 'w' },
		{ "count", required_argument, NULL, 'c' },
		{ "all", no_argument, NULL, 'a' },
		{ "global", no_argument, NULL, 'g' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	static struct counters counters;
	struct stat_options o = {};
	bool next = false; /* the interval may be the word after --watch */
	int c, err;

	while ((c = tool_getopt(cmd, argc, argv, "w::c:agjh", options)) != -1) {
		switch (c) {
		case 'w':
			o.interval = 1;
			next = !optarg;
			if (optarg && !parse_interval(optarg, &o.interval))
				return complain_of_interval(cmd, optarg);
			break;
		case 'c':
			if (!tool_number(optarg, 1, 1000000000, &o.looks))
				return tool_usage_error(cmd, "%s is not a count", optarg);
			break;
		case 'a':
			o.all = true;
			break;
		case 'g':
			counters_file = GLOBAL_FILE;
			break;
		case 'j':
			o.json = true;
			break;
		case 'h':
			return tool_help(cmd);
		default:
			return TOOL_USAGE;
		}
	}
	/* "--watch 5": getopt takes an optional argument only after "=" */
	if (optind < argc && next && !parse_interval(argv[optind++], &o.interval))
		return complain_of_interval(cmd, argv[optind - 1]);
	if (optind < argc)
		return tool_usage_error(cmd, "what is %s?", argv[optind]);
	if (o.looks && !o.interval)
		o.interval = 1;

	if (read_counters(&counters)) {
		err = errno;
		tool_error("%s: %s; %s", counters_file, strerror(err),
			   access(COUNTERS_FILE, F_OK) ?
			   "is the module loaded? See rdmaep doctor" :
			   "it is for root, in the initial network namespace");
		return TOOL_FAILED;
	}
	print(&counters, NULL, &o);
	return o.interval > 0 ? watch(&counters, &o) : TOOL_OK;
}
