/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What "rdmaep ping" and "rdmaep serve" say to each other. Both put a hello
 * into the private data of connect and accept. After that each message that
 * the server receives is sent back as it came.
 */
#ifndef RDMAEP_PATH_H
#define RDMAEP_PATH_H

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PATH_PORT	"7174"
#define PATH_MAX_SIZE	65536	/* bytes in a message */

/**
 * struct path_hello - private data of connect and accept
 * @magic: PATH_MAGIC: the other end is this program
 * @max_size: bytes that a message may have, big endian
 */
struct path_hello {
	char magic[12];
	uint32_t max_size;
};

#define PATH_MAGIC	"rdmaep-ping"

static inline struct path_hello path_hello(void)
{
	struct path_hello hello = { .max_size = htonl(PATH_MAX_SIZE) };

	memcpy(hello.magic, PATH_MAGIC, sizeof(hello.magic));
	return hello;
}

/* Was it this program that sent the private data? It may be padded. */
static inline bool path_is_hello(const void *data, size_t len)
{
	return data && len >= sizeof(struct path_hello) &&
	       !memcmp(data, PATH_MAGIC, sizeof(PATH_MAGIC));
}

/* A number has to be one of a port, which getaddrinfo(3) does not look at. */
static inline bool path_is_port(const char *text)
{
	unsigned long port;
	char *end;

	port = strtoul(text, &end, 10);
	return *end || (end != text && port >= 1 && port <= 65535);
}

#endif /* RDMAEP_PATH_H */
