// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * uring-connect -l [-n COUNT] ADDRESS PORT
 * uring-connect [-1] [-n COUNT] [-f IN_FLIGHT] ADDRESS PORT
 *
 * Connects COUNT times from one thread, with up to IN_FLIGHT connections under
 * way, and ends each as soon as it stands. With -l, accepts as many. With -1,
 * the same calls are made one after the other by ioctl(2), to compare.
 *
 * It uses the device without the library, through io_uring: a request for each
 * step, whose completion starts the next, and one system call for whatever has
 * come together. There are no queue pairs: only the connection manager works.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <rdma/rdma_ep.h>

#define PS_TCP		0x0106	/* RDMA_PS_TCP of <rdma/rdma_cma.h> */
#define WAITING		64	/* calls that wait for a request, at once */

/* Without a queue pair nobody wants its attributes. */
#define RECORD_LEN	offsetof(struct rdma_ep_record, private_data)

#define HDR(cmd, f)	{ .size = sizeof(cmd), .flags = (f) }

/* The two ends must have numbers that differ, and that do not come again. */
static uint32_t next_qpn;

/* The step that a connection is at, which is also the number of its call */
struct conn {
	uint32_t step;
	uint32_t ep;
	union {
		struct rdma_ep_create_ep create;
		struct rdma_ep_connect connect;
		struct rdma_ep_establish establish;
		struct rdma_ep_wait wait;
		struct rdma_ep_destroy destroy;
	};
	struct rdma_ep_record rec;
};

static struct sockaddr_in addr;
static struct io_uring ring;
static int dev;
static bool one_by_one;
static unsigned int started, count = 1000, failed;

static void die(const char *what, int err)
{
	fprintf(stderr, "%s: %s\n", what, strerror(err));
	exit(1);
}

static struct rdma_ep_addr ep_addr(void)
{
	struct rdma_ep_addr a = { .len = sizeof(addr) };

	memcpy(a.sa, &addr, sizeof(addr));
	return a;
}

/* Fill in the argument of a step. */
static void set_step(struct conn *c, uint32_t step)
{
	c->step = step;
	switch (step) {
	case RDMA_EP_CREATE_EP:
		c->create = (struct rdma_ep_create_ep){
			.hdr = HDR(c->create, 0),
			.port_space = PS_TCP,
			.channel = -1,
			.timeout_ms = 5000,
			.dst = ep_addr(),
		};
		break;
	case RDMA_EP_CONNECT:
	case RDMA_EP_ACCEPT:
		c->connect = (struct rdma_ep_connect){
			.hdr = HDR(c->connect, RDMA_EP_F_WAIT),
			.ep = c->ep,
			.record_len = RECORD_LEN,
			.record_uptr = (uintptr_t)&c->rec,
			.param = {
				.retry_count = 7,
				.rnr_retry_count = 7,
				.qp_num = next_qpn++,
			},
		};
		break;
	case RDMA_EP_ESTABLISH:
		c->establish = (struct rdma_ep_establish){
			.hdr = HDR(c->establish, 0),
			.ep = c->ep,
		};
		break;
	case RDMA_EP_WAIT:
		c->wait = (struct rdma_ep_wait){
			.hdr = HDR(c->wait, 0),
			.ep = c->ep,
			.record_len = RECORD_LEN,
			.record_uptr = (uintptr_t)&c->rec,
			.child_channel = -1,
		};
		break;
	case RDMA_EP_DESTROY:
		c->destroy = (struct rdma_ep_destroy){
			.hdr = HDR(c->destroy, 0),
			.ep = c->ep,
		};
		break;
	}
}

/* Start a step. Only when the ring is full does this make a system call. */
static void start(struct conn *c, uint32_t step)
{
	struct rdma_ep_uring_cmd cmd = { .arg_uptr = (uintptr_t)&c->create };
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

	while (!sqe) {
		io_uring_submit(&ring);
		sqe = io_uring_get_sqe(&ring);
	}
	set_step(c, step);
	io_uring_prep_rw(IORING_OP_URING_CMD, sqe, dev, NULL, 0, 0);
	sqe->cmd_op = step;
	memcpy(sqe->cmd, &cmd, sizeof(cmd));
	io_uring_sqe_set_data(sqe, c);
}

/* What comes after a step that went well, or 0 */
static uint32_t next_step(struct conn *c)
{
	switch (c->step) {
	case RDMA_EP_CREATE_EP:
		c->ep = c->create.out_ep;
		return RDMA_EP_CONNECT;
	case RDMA_EP_CONNECT:
		if (c->rec.type == RDMA_EP_EVENT_CONNECT_RESPONSE)
			return RDMA_EP_ESTABLISH;
		failed++;
		return RDMA_EP_DESTROY;
	case RDMA_EP_ACCEPT:
		/* The client may be gone again by now. */
		if (c->rec.type != RDMA_EP_EVENT_ESTABLISHED &&
		    c->rec.type != RDMA_EP_EVENT_DISCONNECTED)
			failed++;
		return RDMA_EP_DESTROY;
	case RDMA_EP_ESTABLISH:
		return RDMA_EP_DESTROY;
	default:
		return 0;
	}
}

/* Likewise if it failed with @err. An endpoint that is there is destroyed. */
static uint32_t give_up(struct conn *c, int err)
{
	fprintf(stderr, "command %u: %s\n", c->step & 0xff, strerror(err));
	failed++;
	if (c->step == RDMA_EP_CREATE_EP || c->step == RDMA_EP_DESTROY)
		return 0;
	return RDMA_EP_DESTROY;
}

static struct conn *new_conn(void)
{
	struct conn *c = calloc(1, sizeof(*c));

	if (!c)
		die("out of memory", ENOMEM);
	started++;
	return c;
}

/* All steps of one connection, in calls that wait */
static void connect_one(void)
{
	struct conn *c = new_conn();
	uint32_t step = RDMA_EP_CREATE_EP;

	while (step) {
		set_step(c, step);
		step = ioctl(dev, step, &c->create) ? give_up(c, errno) :
						      next_step(c);
	}
	free(c);
}

/* A request has come: accept it, and wait for the next one in its place. */
static struct conn *take_request(struct conn *waiter)
{
	struct conn *c = new_conn();

	if (waiter->rec.type != RDMA_EP_EVENT_CONNECT_REQUEST)
		die("the listener", ENODEV);
	c->ep = waiter->rec.child;
	start(c, RDMA_EP_ACCEPT);
	start(waiter, RDMA_EP_WAIT);
	return c;
}

/* Take whatever has completed, and go on with it. Returns how many are done. */
static unsigned int go_on(void)
{
	struct io_uring_cqe *cqe;
	unsigned int head, seen = 0, done = 0;

	io_uring_for_each_cqe(&ring, head, cqe) {
		struct conn *c = io_uring_cqe_get_data(cqe);
		uint32_t step;

		seen++;
		if (c->step == RDMA_EP_WAIT) {
			if (cqe->res)
				die("waiting for a request", -cqe->res);
			take_request(c);
			continue;
		}
		step = cqe->res ? give_up(c, -cqe->res) : next_step(c);
		if (step) {
			start(c, step);
		} else {
			free(c);
			done++;
		}
	}
	io_uring_cq_advance(&ring, seen);
	return done;
}

static void serve(void)
{
	struct rdma_ep_create_ep create = {
		.hdr = HDR(create, RDMA_EP_CREATE_EP_PASSIVE),
		.port_space = PS_TCP,
		.channel = -1,
		.src = ep_addr(),
	};
	struct rdma_ep_listen listen = { .hdr = HDR(listen, 0) };
	static struct conn waiter[WAITING];
	unsigned int done = 0;
	int i;

	if (ioctl(dev, RDMA_EP_CREATE_EP, &create))
		die("RDMA_EP_CREATE_EP", errno);
	listen.ep = create.out_ep;
	if (ioctl(dev, RDMA_EP_LISTEN, &listen))
		die("RDMA_EP_LISTEN", errno);
	for (i = 0; i < WAITING; i++) {
		waiter[i].ep = create.out_ep;
		start(&waiter[i], RDMA_EP_WAIT);
	}
	while (done < count) {
		io_uring_submit_and_wait(&ring, 1);
		done += go_on();
	}
}

static void connect_all(unsigned int in_flight)
{
	unsigned int done = 0;

	while (one_by_one && started < count)
		connect_one();
	while (!one_by_one && done < count) {
		while (started < count && started - done < in_flight)
			start(new_conn(), RDMA_EP_CREATE_EP);
		io_uring_submit_and_wait(&ring, 1);
		done += go_on();
	}
}

int main(int argc, char **argv)
{
	unsigned int in_flight = 1000;
	struct timespec from, to;
	bool listening = false;
	double s;
	int opt;

	while ((opt = getopt(argc, argv, "l1n:f:")) != -1) {
		if (opt == 'l')
			listening = true;
		else if (opt == '1')
			one_by_one = true;
		else if (opt == 'n')
			count = atoi(optarg);
		else if (opt == 'f')
			in_flight = atoi(optarg);
		else
			return 2;
	}
	if (argc - optind != 2 || !in_flight ||
	    inet_pton(AF_INET, argv[optind], &addr.sin_addr) != 1) {
		fprintf(stderr, "see the beginning of uring-connect.c\n");
		return 2;
	}
	addr.sin_family = AF_INET;
	addr.sin_port = htons(atoi(argv[optind + 1]));
	next_qpn = (listening ? 0x800000 : 0) + (getpid() & 0x7f) * 0x10000 + 2;

	dev = open(RDMA_EP_DEVICE, O_RDWR | O_CLOEXEC);
	if (dev < 0)
		die(RDMA_EP_DEVICE, errno);
	opt = io_uring_queue_init(1024, &ring, 0);
	if (opt)
		die("io_uring", -opt);

	clock_gettime(CLOCK_MONOTONIC, &from);
	if (listening)
		serve();
	else
		connect_all(in_flight);
	clock_gettime(CLOCK_MONOTONIC, &to);
	s = to.tv_sec - from.tv_sec + (to.tv_nsec - from.tv_nsec) / 1e9;
	printf("%u connections in %.3f s, %.0f per second, %u failed\n", count,
	       s, count / s, failed);
	return failed ? 1 : 0;
}
