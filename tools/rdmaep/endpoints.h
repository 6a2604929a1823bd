/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The endpoints of processes, as the module writes them into /proc/PID/fdinfo.
 */
#ifndef RDMAEP_ENDPOINTS_H
#define RDMAEP_ENDPOINTS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct json_object;

/**
 * struct endpoint - an endpoint of some process
 * @context: number of its context; with @handle its name
 * @handle: its handle there
 * @pid: the process
 * @uid: the process's user
 * @program: the process's name
 * @type: type of its QP
 * @state: where it stands
 * @device: RDMA device and port, or "-"
 * @src: source address and port, or "-"
 * @dst: destination address and port, or "-"
 * @values: the rest of the line: names and values, separated by spaces
 * @line: memory for all these texts
 */
struct endpoint {
	unsigned int context;
	unsigned int handle;
	int pid;
	uid_t uid;
	char program[32];
	const char *type;
	const char *state;
	const char *device;
	const char *src;
	const char *dst;
	const char *values;
	char *line;
};

/**
 * struct endpoint_state - a state that an endpoint can be in
 * @name: as in fdinfo
 * @text: what it means to a user who wonders why nothing goes on
 */
struct endpoint_state {
	const char *name;
	const char *text;
};

/* All of them; ends with one without a name. */
extern const struct endpoint_state endpoint_states[];

/**
 * struct endpoints - what was found
 * @list: the endpoints
 * @count: how many
 * @unreadable: processes that could not be looked at
 */
struct endpoints {
	struct endpoint *list;
	size_t count;
	int unreadable;
};

/**
 * endpoints_of_process() - add the endpoints of a process
 * @all: where they go
 * @pid: the process
 *
 * A context that is there already, since a process shares it with its parent,
 * is left out.
 *
 * Return: 0, or -1 with errno.
 */
int endpoints_of_process(struct endpoints *all, int pid);

/**
 * endpoints_of_all() - add the endpoints of every process
 * @all: where they go
 *
 * Return: 0, or -1 with errno.
 */
int endpoints_of_all(struct endpoints *all);

void endpoints_free(struct endpoints *all);

/**
 * endpoint_value() - find one of the values
 * @ep: the endpoint
 * @name: its name
 * @value: where it goes
 * @size: bytes there
 *
 * Return: whether the endpoint has it.
 */
bool endpoint_value(const struct endpoint *ep, const char *name, char *value, size_t size);

/**
 * endpoint_number() - the same for a number
 * @ep: the endpoint
 * @name: its name
 *
 * Return: the number, 0 if it has none.
 */
unsigned long long endpoint_number(const struct endpoint *ep, const char *name);

/**
 * endpoint_json() - all of it
 * @ep: the endpoint
 *
 * Return: a JSON object.
 */
struct json_object *endpoint_json(const struct endpoint *ep);

/**
 * endpoint_owner() - the name of the process's user, or its number
 * @ep: the endpoint
 * @name: where it goes
 * @size: bytes there
 *
 * Return: @name.
 */
const char *endpoint_owner(const struct endpoint *ep, char *name, size_t size);

/**
 * endpoint_parse_name() - read CONTEXT:HANDLE, as "rdmaep list" prints it
 * @name: the text
 * @context: where the number of the context goes
 * @handle: where the handle goes
 *
 * Return: whether it is that.
 */
bool endpoint_parse_name(const char *name, unsigned int *context, unsigned int *handle);

/**
 * struct end - what either end of an endpoint's path may be asked to be
 * @address: the address, in the words of the module; empty: any
 * @port: the port, 0: any
 */
struct end {
	char address[INET6_ADDRSTRLEN];
	unsigned long port;
};

/**
 * end_parse_address() - read an address from an argument
 * @end: where it goes
 * @text: the argument; IPv6 may have its brackets
 *
 * Return: whether it is one.
 */
bool end_parse_address(struct end *end, const char *text);

/**
 * end_is_either() - is it the source or the destination?
 * @end: the end
 * @src: "10.0.0.1:7471" or "[fe80::1]:7471"
 * @dst: likewise
 *
 * Address and port may be of different ends.
 *
 * Return: whether it is.
 */
bool end_is_either(const struct end *end, const char *src, const char *dst);

#endif /* RDMAEP_ENDPOINTS_H */
