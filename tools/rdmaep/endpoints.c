// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Reading /proc/PID/fdinfo.
 *
 * A child of fork(2) has its parent's files as well: a context is taken once,
 * for the process with the lowest number that we may look at.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <json-c/json.h>
#include <rdma/rdma_ep.h>

#include "endpoints.h"

#define LEN(text)	(sizeof(text) - 1)

#define STATE(name, text)	[RDMA_EP_STATE_##name] = { #name, text }

const struct endpoint_state endpoint_states[] = {
	STATE(IDLE, "made, neither bound nor resolved yet"),
	STATE(BOUND, "has a source address; next is to listen or to resolve"),
	STATE(RESOLVING_ADDR, "waits for the address of the next hop (ARP, ND)"),
	STATE(ADDR_RESOLVED, "knows its device; next is the route"),
	STATE(RESOLVING_ROUTE, "waits for the path"),
	STATE(ROUTE_RESOLVED, "ready to connect"),
	STATE(LISTENING, "takes connection requests"),
	STATE(REQUESTED, "a peer asks to connect; next is to accept or to reject"),
	STATE(CONNECTING, "has sent its request, waits for the peer's answer"),
	STATE(RESPONDED, "the peer has accepted; next is to establish the connection"),
	STATE(ACCEPTING, "has accepted, waits for the peer to confirm"),
	STATE(CONNECTED, "connected"),
	STATE(DISCONNECTED, "the connection has ended"),
	STATE(FAILED, "the attempt to connect has failed, or it came to a device it may not use"),
	STATE(REMOVED, "its RDMA device has gone; it can only be destroyed"),
	{ NULL, NULL }
};

static bool seen_before(const struct endpoints *all, unsigned int context)
{
	size_t i;

	for (i = 0; i < all->count; i++)
		if (all->list[i].context == context)
			return true;
	return false;
}

static void describe_process(struct endpoint *ep)
{
	char path[64];
	struct stat st;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d", ep->pid);
	if (!stat(path, &st))
		ep->uid = st.st_uid;

	snprintf(ep->program, sizeof(ep->program), "?");
	snprintf(path, sizeof(path), "/proc/%d/comm", ep->pid);
	f = fopen(path, "re");
	if (!f)
		return;
	if (fgets(ep->program, sizeof(ep->program), f))
		ep->program[strcspn(ep->program, "\n")] = '\0';
	fclose(f);
}

/*
 * The line's fields: handle, QP type, state, device/port, source and
 * destination; then names with their values.
 */
static void add_endpoint(struct endpoints *all, int pid, unsigned int context, const char *text)
{
	struct endpoint ep = { .pid = pid, .context = context }, *grown;
	char *field[6], *rest;
	size_t i;

	ep.line = strdup(text);
	rest = ep.line;
	for (i = 0; i < 6; i++) {
		field[i] = rest ? strsep(&rest, " ") : NULL;
		if (!field[i])
			goto free;
	}
	ep.handle = strtoul(field[0], NULL, 10);
	ep.type = field[1];
	ep.state = field[2];
	ep.device = field[3];
	ep.src = field[4];
	ep.dst = field[5];
	ep.values = rest ? rest : "";
	describe_process(&ep);

	grown = realloc(all->list, (all->count + 1) * sizeof(*grown));
	if (!grown)
		goto free;
	all->list = grown;
	all->list[all->count++] = ep;
	return;
free:
	free(ep.line);
}

static void read_fdinfo(struct endpoints *all, int pid, const char *fd)
{
	static const char context[] = "rdma_ep-context:\t";
	static const char endpoint[] = "rdma_ep-endpoint:\t";
	unsigned int number = 0;
	char path[PATH_MAX], *line = NULL;
	size_t size = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%s", pid, fd);
	f = fopen(path, "re");
	if (!f)
		return;
	while (getline(&line, &size, f) > 0) {
		line[strcspn(line, "\n")] = '\0';
		if (!strncmp(line, context, LEN(context))) {
			number = strtoul(line + LEN(context), NULL, 10);
			if (seen_before(all, number))
				break;
		}
		if (!strncmp(line, endpoint, LEN(endpoint)))
			add_endpoint(all, pid, number, line + LEN(endpoint));
	}
	free(line);
	fclose(f);
}

int endpoints_of_process(struct endpoints *all, int pid)
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
		snprintf(path, sizeof(path), "/proc/%d/fd/%s", pid, entry->d_name);
		len = readlink(path, target, sizeof(target) - 1);
		if (len <= 0)
			continue;
		target[len] = '\0';
		/* a container may have it under another folder */
		if (len >= 8 && !strcmp(target + len - 8, "/rdma_ep"))
			read_fdinfo(all, pid, entry->d_name);
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

int endpoints_of_all(struct endpoints *all)
{
	struct dirent **entry;
	int i, n;

	n = scandir("/proc", &entry, is_pid, by_number);
	if (n < 0)
		return -1;
	for (i = 0; i < n; i++) {
		if (endpoints_of_process(all, atoi(entry[i]->d_name)) && errno == EACCES)
			all->unreadable++;
		free(entry[i]);
	}
	free(entry);
	return 0;
}

void endpoints_free(struct endpoints *all)
{
	size_t i;

	for (i = 0; i < all->count; i++)
		free(all->list[i].line);
	free(all->list);
	*all = (struct endpoints){};
}

/* The next "name=value" of @text, or NULL. */
static const char *next_value(const char *text, const char **equals, const char **end)
{
	text += strspn(text, " ");
	*end = text + strcspn(text, " ");
	*equals = memchr(text, '=', *end - text);
	return *equals ? text : NULL;
}

bool endpoint_value(const struct endpoint *ep, const char *name, char *value, size_t size)
{
	const char *text = ep->values, *equals, *end;

	for (; (text = next_value(text, &equals, &end)); text = end) {
		if (strlen(name) != (size_t)(equals - text) ||
		    strncmp(text, name, equals - text))
			continue;
		snprintf(value, size, "%.*s", (int)(end - equals - 1), equals + 1);
		return true;
	}
	return false;
}

unsigned long long endpoint_number(const struct endpoint *ep, const char *name)
{
	char value[32];

	return endpoint_value(ep, name, value, sizeof(value)) ? strtoull(value, NULL, 10) : 0;
}

static struct json_object *json_value(const char *name, const char *value)
{
	struct json_object *array;
	char *copy, *rest, *item;

	if (!strcmp(name, "pending")) {
		array = json_object_new_array();
		copy = strdup(value);
		for (rest = copy; (item = strsep(&rest, ","));)
			json_object_array_add(array, json_object_new_string(item));
		free(copy);
		return array;
	}
	if (value[0] && strspn(value, "0123456789") == strlen(value))
		return json_object_new_int64(strtoll(value, NULL, 10));
	return json_object_new_string(value);
}

static void json_text(struct json_object *object, const char *name, const char *text)
{
	if (strcmp(text, "-"))
		json_object_object_add(object, name, json_object_new_string(text));
}

struct json_object *endpoint_json(const struct endpoint *ep)
{
	struct json_object *object = json_object_new_object();
	const char *text = ep->values, *equals, *end;
	char owner[64], name[64], value[256];

	json_object_object_add(object, "context", json_object_new_int64(ep->context));
	json_object_object_add(object, "handle", json_object_new_int64(ep->handle));
	json_object_object_add(object, "pid", json_object_new_int(ep->pid));
	json_text(object, "program", ep->program);
	json_object_object_add(object, "uid", json_object_new_int64(ep->uid));
	json_text(object, "user", endpoint_owner(ep, owner, sizeof(owner)));
	json_text(object, "type", ep->type);
	json_text(object, "state", ep->state);
	json_text(object, "device", ep->device);
	json_text(object, "source", ep->src);
	json_text(object, "destination", ep->dst);
	for (; (text = next_value(text, &equals, &end)); text = end) {
		snprintf(name, sizeof(name), "%.*s", (int)(equals - text), text);
		snprintf(value, sizeof(value), "%.*s", (int)(end - equals - 1), equals + 1);
		json_object_object_add(object, name, json_value(name, value));
	}
	return object;
}

const char *endpoint_owner(const struct endpoint *ep, char *name, size_t size)
{
	struct passwd *pw = getpwuid(ep->uid);

	if (pw)
		snprintf(name, size, "%s", pw->pw_name);
	else
		snprintf(name, size, "%u", ep->uid);
	return name;
}

bool endpoint_parse_name(const char *name, unsigned int *context, unsigned int *handle)
{
	char junk;

	/* %u takes blanks and signs */
	return !name[strspn(name, "0123456789:")] &&
	       sscanf(name, "%u:%u%c", context, handle, &junk) == 2;
}

bool end_parse_address(struct end *end, const char *text)
{
	unsigned char raw[sizeof(struct in6_addr)];
	char copy[sizeof(end->address) + LEN("[]")];
	size_t len;
	int family;

	len = snprintf(copy, sizeof(copy), "%s", text);
	if (len >= sizeof(copy))
		return false;
	text = copy;
	family = strchr(text, ':') ? AF_INET6 : AF_INET;
	if (family == AF_INET6 && copy[0] == '[' && copy[len - 1] == ']') {
		copy[len - 1] = '\0';
		text++;
	}
	return inet_pton(family, text, raw) == 1 &&
	       inet_ntop(family, raw, end->address, sizeof(end->address));
}

/* Is this the address in front of the port? */
static bool address_is(const char *text, const char *address)
{
	const char *end = strrchr(text, ':');
	size_t len = end ? (size_t)(end - text) : strlen(text);

	if (len == strlen(address) && !strncmp(text, address, len))
		return true;
	return text[0] == '[' && len == strlen(address) + 2 &&
	       !strncmp(text + 1, address, len - 2);
}

static bool port_is(const char *text, unsigned long port)
{
	const char *end = strrchr(text, ':');
	char number[24];

	snprintf(number, sizeof(number), "%lu", port);
	return end && !strcmp(end + 1, number);
}

bool end_is_either(const struct end *end, const char *src, const char *dst)
{
	if (end->address[0] && !address_is(src, end->address) && !address_is(dst, end->address))
		return false;
	return !end->port || port_is(src, end->port) || port_is(dst, end->port);
}
