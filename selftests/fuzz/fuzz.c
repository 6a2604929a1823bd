// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * fuzz [OPTION]... CORPUS...
 * fuzz --replay FILE
 *
 * A coverage-guided fuzzer of the ioctls. It runs in the guest; the module was
 * built with RDMA_EP_TEST=y RDMA_EP_KCOV=y.
 *
 * A program is a list of calls on endpoints, channels and groups that it names
 * by slot, so that handles are mostly good, addresses mostly resolve, and a
 * connection can come about; and now and then they are not. A call may be made
 * by a second thread, while the first goes on, and one of its allocations may
 * fail. Commands go through ioctl(2) or through a ring of the thread's own,
 * where they may stay in flight, be linked to the next, run in a worker, and
 * end with the ring or with a process. Programs that reach a branch that none
 * has reached before are kept, and new ones are made from them.
 *
 * With --blind there is no KCOV, and no programs are kept: what is given is
 * mutated. Other kernels than the debug kernel can do that, and faster.
 *
 * After each program no object of the module may be left. Programs are in the
 * file "recent" before they run, 16 at once, and those before them stay there:
 * when the machine dies, that file is what reproduces it.
 */
#include <getopt.h>
#include <liburing.h>
#include <linux/kcov.h>
#include <rdma/ib_user_sa.h>

#include "../uapi/rdma_ep_utils.h"

#define MAX_OPS		32
#define ARGS		12
#define EPS		8
#define CHANNELS	4
#define GROUPS		4
#define THREADS		2
#define COVER		(64 << 10)	/* PCs of one program and thread */
#define EDGES		(1 << 20)
#define BLOCKS		(1 << 14)
#define MAX_CORPUS	4096
#define BATCH		16	/* programs that are written down at once */
#define FILE_PROGRAMS	1024
#define SLOT_SIZE	4096
#define FLIGHTS		64		/* calls in flight, of one thread */

/*
 * After that a call gets a signal. Most waits are for something that never
 * comes, so it is short; but one program in so many has the time for a connection.
 */
#define STUCK_MS	3
#define PATIENT_MS	40
#define PATIENT_ONE_IN	4

/*
 * Random numbers: the same ones for the same seed
 */

static uint64_t rng_state = 88172645463325252ULL;

static uint32_t rnd(void)
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 7;
	rng_state ^= rng_state << 17;
	return rng_state >> 16;
}

static uint32_t rnd_below(uint32_t n)
{
	return rnd() % n;
}

/*
 * Programs
 */

struct op {
	uint8_t call;		/* index into calls[] */
	uint8_t thread;		/* 1: the second thread makes it */
	uint8_t fail;		/* 0, or which allocation fails */
	uint8_t how;		/* through a ring or not: HOW_* */
	uint8_t arg[ARGS];
};

struct program {
	uint32_t num;
	struct op op[MAX_OPS];
};

/* How a command is given to the module: one of four, and a flag */
#define HOW_IOCTL	0
#define HOW_LEAVE	1	/* a ring: its completion is taken if it is there */
#define HOW_WAIT	2	/* a ring: its completion is waited for a while */
#define HOW_LINK	3	/* a ring: linked to the next, and submitted with it */
#define HOW_MASK	3
#define HOW_WORKER	4	/* a ring: IOSQE_ASYNC */

/* What the bytes of op.arg are about */
enum {
	A_EP,			/* slot of an endpoint */
	A_FLAGS,
	A_SIZE,			/* size of the argument struct */
	A_ADDR,
	A_PORT,
	A_POINTER,
	A_LEN,			/* of a record, data, an array */
	A_CHANNEL,		/* slot of a channel, or none */
	A_VALUE,
	A_VALUE2,
	A_VALUE3,
	A_SRC,
};

/* The state of a run: what the slots stand for */
struct run {
	int fd;
	uint32_t ep[EPS];
	int channel[CHANNELS];
	uint32_t group[GROUPS];
	uint16_t port;
	uint32_t num_eps;
	uint32_t num_channels;
};

static struct run run;
static uint8_t *unmapped;
static uint8_t *read_only;
static uint8_t *page_end;	/* 64 bytes before something unmapped */

/*
 * From bytes to arguments
 */

static uint32_t pick_ep(const struct op *op)
{
	uint8_t v = op->arg[A_EP];

	if (v >= 0xf8)
		return v == 0xff ? 0 : v * 0x01010101u;
	return run.ep[v % EPS];
}

static int pick_channel(const struct op *op)
{
	uint8_t v = op->arg[A_CHANNEL];

	if (v >= 0xfc)
		return v == 0xfc ? run.fd : v == 0xfd ? 0 : -(v & 0xf);
	return v & 0x80 ? -1 : run.channel[v % CHANNELS];
}

static uint32_t pick_flags(const struct op *op)
{
	uint8_t v = op->arg[A_FLAGS];
	uint32_t flags = v & 7;

	flags |= (v >> 3 & 7) << 8;
	if (v >= 0xe0)
		flags |= 1u << (v & 0x1f);
	/* No signal must come: its frame could be what fails, and end us */
	if (op->fail)
		flags &= ~(RDMA_EP_F_WAIT | RDMA_EP_F_RESUME);
	return flags;
}

static uint32_t pick_size(const struct op *op, uint32_t size)
{
	uint8_t v = op->arg[A_SIZE];

	if (v < 0xe0)
		return size;
	if (v < 0xe8)
		return size + 8 * (v & 7) + 8;
	if (v < 0xf8)
		return size - 4 * (v & 0xf);
	return v == 0xff ? UINT32_MAX : v == 0xfe ? 4096 : v & 7;
}

static uint64_t pick_pointer(const struct op *op, void *good)
{
	uint8_t v = op->arg[A_POINTER];

	if (v < 0xc0)
		return UPTR(good);
	switch (v & 7) {
	case 0:
		return UPTR(unmapped);
	case 1:
		return UPTR(read_only);
	case 2:
		return UPTR(page_end);
	case 3:
		return ~0ULL << (v >> 3 & 7) * 8;
	default:
		return 0;
	}
}

static uint32_t pick_value(uint8_t v)
{
	static const uint32_t odd[] = {
		0x80000000, 0x7fffffff, 0xffffffff, 0xfffffffe, 0x10000, 0xffff,
		1000, 4096, 0xffffff, 65, 0x111, 0x106, 0x13f, 2, 0x400000, 600,
	};

	return v < 0xf0 ? v : odd[v & 0xf];
}

static struct rdma_ep_addr pick_addr(uint8_t which, uint8_t port_byte)
{
	static const char *const text[] = {
		"10.77.0.1", "fd77::1", "0.0.0.0", "::", "10.77.0.238",
		"fd77::ee", "127.0.0.1", "::1", "239.1.1.1", "ff0e::77",
		"192.0.2.1", "fe80::1", "255.255.255.255", "::ffff:10.77.0.1",
	};
	uint16_t port = port_byte < 0xc0 ? run.port :
			port_byte < 0xe0 ? 0 : 7000 + (port_byte & 3);
	struct rdma_ep_addr a;
	union test_addr t;

	/* Half of all are one that works */
	t = make_addr(text[which & 0x80 ? which % ARRAY_SIZE(text) : which & 1],
		      port);
	a = ep_addr(&t);
	switch (which) {
	case 0xf0:
		a.len = 0;
		break;
	case 0xf1:
		a.len = 60;
		break;
	case 0xf2:
		a.len = 61;
		break;
	case 0xf3:
		a.len = 15;
		break;
	case 0xf4:
		a.sa[59] = 1;
		break;
	case 0xf5:
		a.reserved = 1;
		break;
	case 0xf6:
		a.sa[0] = AF_UNIX;
		break;
	case 0xf7:
		memset(&a, 0, sizeof(a));
		a.len = 48;	/* struct sockaddr_ib */
		a.sa[0] = 27;	/* AF_IB */
		break;
	default:
		break;
	}
	return a;
}

static uint32_t pick_space(uint8_t v)
{
	static const uint32_t spaces[] = { PS_TCP, PS_UDP, PS_IPOIB, PS_IB };

	return v < 0xa0 ? PS_TCP : v < 0xd0 ? PS_UDP :
	       v < 0xf0 ? spaces[v & 3] : v;
}

/*
 * What comes back
 */

static void keep_ep(const struct op *op, uint32_t ep)
{
	uint32_t i = __atomic_fetch_add(&run.num_eps, 1, __ATOMIC_RELAXED);

	if (ep)
		run.ep[i < EPS ? i : op->arg[A_VALUE3] % EPS] = ep;
}

static void keep_channel(const struct op *op, int channel)
{
	uint32_t i = __atomic_fetch_add(&run.num_channels, 1, __ATOMIC_RELAXED);
	int old;

	i = i < CHANNELS ? i : op->arg[A_VALUE3] % CHANNELS;
	old = __atomic_exchange_n(&run.channel[i], channel, __ATOMIC_RELAXED);
	if (old > 2)
		close(old);
}

static void keep_port(const struct rdma_ep_record *rec)
{
	union test_addr a = from_ep_addr(&rec->info.src);

	if (rec->flags & RDMA_EP_REC_INFO && addr_port(&a))
		run.port = addr_port(&a);
}

static void die(const char *why)
{
	fprintf(stderr, "FAULT: %s\n", why);
	exit(1);
}

/* A record that came whole keeps to the rules, whatever led to it */
static void check_record(const struct op *op, const struct rdma_ep_record *rec)
{
	const char *fault;

	if (!rec->size)
		return;
	fault = record_fault(rec);
	if (fault)
		die(fault);
	if (rec->child)
		keep_ep(op, rec->child);
}

/*
 * Calls. Each makes the struct of one command out of an op.
 */

/*
 * An allocation is to fail in the system call that comes next, and nowhere
 * else: without memory for a page of its stack the process would die.
 */
static __thread int fail_fd = -1;
static __thread uint32_t no_wait;	/* a flag for the next command */

static void set_fail(unsigned int nth)
{
	char text[16];
	int n = snprintf(text, sizeof(text), "%u", nth);

	if (fail_fd >= 0 && pwrite(fail_fd, text, n, 0) != n &&
	    pwrite(fail_fd, text, n, 0) != n)	/* the first took the fault */
		die("fail-nth cannot be set");
}

/* A signal that was sent to end the call before must not come now. */
static void block_signals(int how)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(how, &set, NULL);
}

static void fail_begin(const struct op *op)
{
	if (!op->fail)
		return;
	block_signals(SIG_BLOCK);
	set_fail(op->fail);
}

static void fail_end(const struct op *op)
{
	if (!op->fail)
		return;
	set_fail(0);
	block_signals(SIG_UNBLOCK);
}

struct buffer {
	union {
		struct rdma_ep_hdr hdr;
		struct rdma_ep_create_channel create_channel;
		struct rdma_ep_create create;
		struct rdma_ep_create_ep create_ep;
		struct rdma_ep_attach attach;
		struct rdma_ep_wait wait;
		struct rdma_ep_join join;
		uint8_t bytes[5000];	/* for sizes that are too long */
	};
};

/*
 * A call and what it points to, which must stay where it is until the call is
 * over. It is busy from its submission until its completion has been seen, or
 * until the program ends.
 */
struct flight {
	bool busy;
	unsigned long cmd;
	struct op op;
	struct buffer buf;
	struct rdma_ep_record rec;
	uint8_t bytes[4096];	/* arrays, options, attributes */
};

/* The two threads that make the calls */
struct worker {
	pthread_t thread;
	int index;
	uint64_t *cover;
	const struct op *op;	/* to do, NULL when it is done */
	uint64_t until_ms;	/* when the call gets a signal, 0 for never */
	bool armed;		/* an allocation of it is to fail */
	const char *doing;	/* the call, or NULL */
	struct io_uring ring;
	bool ring_open;
	unsigned int ring_flags;
	unsigned int in_flight;	/* on the ring, or prepared for it */
	struct flight flight[FLIGHTS];
	unsigned int last;
};

static struct worker workers[THREADS];
static unsigned int stuck_ms = PATIENT_MS;	/* of this program */
static __thread struct worker *self;
static __thread struct flight *cur;	/* of the call that is being made */

/* One that nothing is in, the one that was used longest ago; or none */
static struct flight *new_flight(struct worker *w)
{
	unsigned int i;

	for (i = 0; i < FLIGHTS; i++) {
		struct flight *f = &w->flight[++w->last % FLIGHTS];

		if (!f->busy) {
			memset(&f->rec, 0, sizeof(f->rec));
			return f;
		}
	}
	return NULL;
}

static bool whole(const struct op *op);

/* What a call has brought is used by those to come */
static void finished(struct flight *f)
{
	const struct op *op = &f->op;
	bool new_channel = f->buf.hdr.flags & RDMA_EP_F_NEW_CHANNEL;

	switch (f->cmd) {
	case RDMA_EP_CREATE_CHANNEL:
		keep_channel(op, f->buf.create_channel.out_fd);
		return;
	case RDMA_EP_CREATE:
		keep_ep(op, f->buf.create.out_ep);
		if (new_channel)
			keep_channel(op, f->buf.create.channel);
		return;
	case RDMA_EP_ATTACH:
		if (new_channel)
			keep_channel(op, f->buf.attach.channel);
		return;
	case RDMA_EP_JOIN:
		run.group[op->arg[A_VALUE2] % GROUPS] = f->buf.join.out_group;
		return;
	case RDMA_EP_CREATE_EP:
		keep_ep(op, f->buf.create_ep.out_ep);
		if (new_channel)
			keep_channel(op, f->buf.create_ep.channel);
		break;
	case RDMA_EP_WAIT:
		if (new_channel && f->rec.child)
			keep_channel(op, f->buf.wait.child_channel);
		break;
	default:
		break;
	}
	if (!whole(op))
		return;
	check_record(op, &f->rec);
	if (f->cmd == RDMA_EP_BIND || f->cmd == RDMA_EP_LISTEN ||
	    (f->cmd == RDMA_EP_CREATE_EP &&
	     f->buf.hdr.flags & RDMA_EP_CREATE_EP_PASSIVE))
		keep_port(&f->rec);
}

/* Take the completions that are there, the first of them after up to @ms */
static void reap(struct worker *w, unsigned int ms)
{
	struct __kernel_timespec ts = { .tv_nsec = ms * 1000000 };
	struct io_uring_cqe *cqe;

	if (ms && w->in_flight)
		io_uring_wait_cqe_timeout(&w->ring, &cqe, &ts);
	while (!io_uring_peek_cqe(&w->ring, &cqe)) {
		struct flight *f = io_uring_cqe_get_data(cqe);
		int ret = cqe->res;

		io_uring_cqe_seen(&w->ring, cqe);
		if (!f)
			continue;
		w->in_flight--;
		f->busy = false;
		if (!ret)
			finished(f);
	}
}

static bool ring_is_open(struct worker *w)
{
	if (!w->ring_open)
		w->ring_open = !io_uring_queue_init(FLIGHTS, &w->ring,
						    w->ring_flags);
	return w->ring_open;
}

/* What is in flight ends; what it points to stays, until the program's end */
static void ring_close(struct worker *w)
{
	if (w->ring_open)
		io_uring_queue_exit(&w->ring);
	w->ring_open = false;
	w->in_flight = 0;
}

static struct io_uring_sqe *new_sqe(struct worker *w)
{
	struct io_uring_sqe *sqe;

	if (!ring_is_open(w))
		return NULL;
	sqe = io_uring_get_sqe(&w->ring);
	if (sqe)
		return sqe;
	io_uring_submit(&w->ring);
	return io_uring_get_sqe(&w->ring);
}

static void submit(const struct op *op)
{
	struct rdma_ep_uring_cmd area = { .arg_uptr = UPTR(&cur->buf) };
	struct io_uring_sqe *sqe = new_sqe(self);
	uint8_t how = op->how & HOW_MASK;

	if (!sqe)
		return;
	if (op->arg[A_POINTER] == 0xfc)
		area.flags = 1;
	io_uring_prep_rw(IORING_OP_URING_CMD, sqe, run.fd, NULL, 0, 0);
	sqe->cmd_op = cur->cmd;
	memcpy(sqe->cmd, &area, sizeof(area));
	io_uring_sqe_set_data(sqe, cur);
	if (op->how & HOW_WORKER)
		sqe->flags |= IOSQE_ASYNC;
	cur->busy = true;
	self->in_flight++;
	if (how == HOW_LINK) {
		sqe->flags |= op->arg[A_VALUE3] & 1 ? IOSQE_IO_HARDLINK :
						      IOSQE_IO_LINK;
		return;
	}
	fail_begin(op);
	io_uring_submit(&self->ring);
	fail_end(op);
	reap(self, how == HOW_WAIT && !op->fail ? stuck_ms : 0);
}

static void call_ioctl(const struct op *op, unsigned long cmd, void *arg,
		       size_t size)
{
	struct rdma_ep_hdr *hdr = arg;
	int ret;

	hdr->size = pick_size(op, size);
	hdr->flags = pick_flags(op) | no_wait;
	no_wait = 0;
	hdr->reason_uptr = op->arg[A_POINTER] == 0xfe ? UPTR(unmapped) :
							UPTR(&ep_reason);
	cur->cmd = cmd;
	cur->op = *op;
	memset(&cur->buf, op->arg[A_SIZE] & 1 && hdr->size > size ? 0xff : 0,
	       sizeof(cur->buf));
	memcpy(&cur->buf, arg, size);
	if (op->how & HOW_MASK) {
		submit(op);
		return;
	}
	fail_begin(op);
	ret = ioctl(run.fd, cmd, &cur->buf);
	fail_end(op);
	if (!ret)
		finished(cur);
}

#define CALL_IOCTL(cmd, arg) call_ioctl(op, cmd, arg, sizeof(*(arg)))
#define REC_LEN(op)							\
	((op)->arg[A_LEN] < 0x80 ? sizeof(struct rdma_ep_record) :	\
	 (op)->arg[A_LEN] < 0xf0 ? ((op)->arg[A_LEN] & 0x7f) * 10u :	\
	 pick_value((op)->arg[A_LEN]))

/* Only then does a record come whole, and where it can be looked at */
static bool whole(const struct op *op)
{
	return op->arg[A_POINTER] < 0xc0 && op->arg[A_LEN] < 0x80;
}

#define CALL(name) static void name(const struct op *op)

CALL(call_get_info)
{
	struct rdma_ep_get_info cmd = {};

	CALL_IOCTL(RDMA_EP_GET_INFO, &cmd);
}

CALL(call_create_channel)
{
	struct rdma_ep_create_channel cmd = {
		.file_flags = op->arg[A_VALUE] & 1 ? O_NONBLOCK :
			      op->arg[A_VALUE] > 0xf0 ? op->arg[A_VALUE] : 0,
	};

	CALL_IOCTL(RDMA_EP_CREATE_CHANNEL, &cmd);
}

CALL(call_create)
{
	struct rdma_ep_create cmd = {
		.cookie = op->arg[A_VALUE],
		.port_space = pick_space(op->arg[A_VALUE]),
		.qp_type = op->arg[A_VALUE2] < 0x80 ? 0 :
						op->arg[A_VALUE2] & 0xf,
		.channel = op->arg[A_FLAGS] & RDMA_EP_F_NEW_CHANNEL ?
				   -1 : pick_channel(op),
	};

	CALL_IOCTL(RDMA_EP_CREATE, &cmd);
}

CALL(call_create_ep)
{
	struct rdma_ep_record *rec = &cur->rec;
	struct rdma_ep_create_ep cmd = {
		.port_space = pick_space(op->arg[A_VALUE]),
		.channel = op->arg[A_FLAGS] & RDMA_EP_F_NEW_CHANNEL ?
				   -1 : pick_channel(op),
		.timeout_ms = op->arg[A_VALUE2] < 0xc0 ? 1000 : 1,
		.record_uptr = pick_pointer(op, rec),
		.record_len = REC_LEN(op),
	};

	if (op->arg[A_FLAGS] & 8)	/* passive */
		cmd.src = pick_addr(op->arg[A_ADDR], 0xc0);
	else
		cmd.dst = pick_addr(op->arg[A_ADDR], op->arg[A_PORT]);
	if (op->arg[A_SRC] >= 0xe0)
		cmd.src = pick_addr(op->arg[A_SRC], 0xc0);
	CALL_IOCTL(RDMA_EP_CREATE_EP, &cmd);
}

CALL(call_destroy)
{
	struct rdma_ep_destroy cmd = {
		.ep = pick_ep(op),
		.num_fds = op->arg[A_LEN] % 6,
		.fd = { pick_channel(op), run.fd, run.channel[0],
			op->arg[A_VALUE] },
	};

	CALL_IOCTL(RDMA_EP_DESTROY, &cmd);
}

CALL(call_destroy_many)
{
	uint32_t eps[] = { pick_ep(op), run.ep[1], run.ep[2], 0, run.ep[1] };
	struct rdma_ep_destroy_many cmd = {
		.eps_uptr = pick_pointer(op, cur->bytes),
		.count = op->arg[A_LEN] < 0xf0 ?
			 op->arg[A_LEN] % 6 : pick_value(op->arg[A_VALUE]),
		.reserved = op->arg[A_VALUE3] == 0xff,
	};

	memcpy(cur->bytes, eps, sizeof(eps));
	CALL_IOCTL(RDMA_EP_DESTROY_MANY, &cmd);
}

CALL(call_bind)
{
	struct rdma_ep_record *rec = &cur->rec;
	struct rdma_ep_bind cmd = {
		.ep = pick_ep(op),
		.record_uptr = pick_pointer(op, rec),
		.record_len = REC_LEN(op),
		.addr = pick_addr(op->arg[A_ADDR],
				  op->arg[A_PORT] < 0x80 ? 0xc0 : op->arg[A_PORT]),
	};

	CALL_IOCTL(RDMA_EP_BIND, &cmd);
}

CALL(call_resolve_addr)
{
	struct rdma_ep_record *rec = &cur->rec;
	struct rdma_ep_resolve_addr cmd = {
		.ep = pick_ep(op),
		.timeout_ms = op->arg[A_VALUE2] < 0xc0 ? 1000 : 1,
		.dst = pick_addr(op->arg[A_ADDR], op->arg[A_PORT]),
		.record_uptr = pick_pointer(op, rec),
		.record_len = REC_LEN(op),
		.reserved = op->arg[A_VALUE3] == 0xff,
	};

	if (op->arg[A_SRC] >= 0x80)
		cmd.src = pick_addr(op->arg[A_SRC], 0xc0);
	CALL_IOCTL(RDMA_EP_RESOLVE_ADDR, &cmd);
}

CALL(call_resolve_route)
{
	struct rdma_ep_record *rec = &cur->rec;
	struct rdma_ep_resolve_route cmd = {
		.ep = pick_ep(op),
		.timeout_ms = op->arg[A_VALUE2] < 0xc0 ? 1000 : 1,
		.record_uptr = pick_pointer(op, rec),
		.record_len = REC_LEN(op),
		.reserved = op->arg[A_VALUE3] == 0xff,
	};

	CALL_IOCTL(RDMA_EP_RESOLVE_ROUTE, &cmd);
}

CALL(call_listen)
{
	struct rdma_ep_record *rec = &cur->rec;
	struct rdma_ep_listen cmd = {
		.ep = pick_ep(op),
		.backlog = pick_value(op->arg[A_VALUE]),
		.record_uptr = pick_pointer(op, rec),
		.record_len = REC_LEN(op),
		.reserved = op->arg[A_VALUE3] == 0xff,
	};

	CALL_IOCTL(RDMA_EP_LISTEN, &cmd);
}

/* Not conn_param(): an allocation that fails must be one of the module's. */
static struct rdma_ep_conn_param fuzz_param(const void *data, size_t len)
{
	return (struct rdma_ep_conn_param){
		.private_data_uptr = UPTR(data),
		.private_data_len = len,
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = 7,
		.rnr_retry_count = 7,
		.qp_num = 0x400000 | (rnd() & 0x3fffff),
	};
}

static void connect_or_accept(const struct op *op, unsigned long nr)
{
	static const uint8_t data[65536];
	struct rdma_ep_record *rec = &cur->rec;
	struct rdma_ep_connect cmd = {
		.ep = pick_ep(op),
		.record_uptr = pick_pointer(op, rec),
		.record_len = REC_LEN(op),
		.param = fuzz_param(data, pick_value(op->arg[A_VALUE])),
	};

	if (op->arg[A_VALUE2] >= 0x80) {
		cmd.param.responder_resources = op->arg[A_VALUE2];
		cmd.param.initiator_depth = op->arg[A_VALUE3];
		cmd.param.qp_num = op->arg[A_VALUE2];
		cmd.param.srq = 1;
		cmd.param.qkey = op->arg[A_VALUE3];
		cmd.param.ece_vendor_id = op->arg[A_VALUE2] & 3;
		cmd.param.reserved = op->arg[A_VALUE2] == 0xff;
	}
	if (op->arg[A_POINTER] == 0xfd)
		cmd.param.private_data_uptr = UPTR(unmapped);
	CALL_IOCTL(nr, &cmd);
}

CALL(call_connect)
{
	connect_or_accept(op, RDMA_EP_CONNECT);
}

CALL(call_accept)
{
	connect_or_accept(op, RDMA_EP_ACCEPT);
}

CALL(call_establish)
{
	struct rdma_ep_establish cmd = {
		.ep = pick_ep(op),
		.reserved = op->arg[A_VALUE3] == 0xff,
	};

	CALL_IOCTL(RDMA_EP_ESTABLISH, &cmd);
}

CALL(call_reject)
{
	static const uint8_t data[65536];
	struct rdma_ep_reject cmd = {
		.ep = pick_ep(op),
		.reason = op->arg[A_VALUE2] < 0xc0 ? 0 :
			  op->arg[A_VALUE2] < 0xe0 ? 28 : op->arg[A_VALUE2] & 63,
		.private_data_uptr = pick_pointer(op, (void *)data),
		.private_data_len = pick_value(op->arg[A_VALUE]),
		.reserved = { op->arg[A_VALUE3] == 0xff },
	};

	CALL_IOCTL(RDMA_EP_REJECT, &cmd);
}

CALL(call_disconnect)
{
	struct rdma_ep_record *rec = &cur->rec;
	struct rdma_ep_disconnect cmd = {
		.ep = pick_ep(op),
		.record_uptr = pick_pointer(op, rec),
		.record_len = REC_LEN(op),
	};

	CALL_IOCTL(RDMA_EP_DISCONNECT, &cmd);
}

CALL(call_query)
{
	static const uint32_t parts[] = {
		RDMA_EP_REC_INFO, RDMA_EP_REC_INIT, RDMA_EP_REC_RTR,
		RDMA_EP_REC_RTS,
	};
	struct rdma_ep_record *rec = &cur->rec;
	struct rdma_ep_query cmd = {
		.ep = pick_ep(op),
		.record_uptr = pick_pointer(op, rec),
		.record_len = REC_LEN(op),
		.reserved = op->arg[A_VALUE3] == 0xff,
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(parts); i++)
		if (op->arg[A_VALUE] & 1 << i)
			cmd.parts |= parts[i];
	if (op->arg[A_VALUE] >= 0xf0)
		cmd.parts |= 1u << (op->arg[A_VALUE2] & 31);
	CALL_IOCTL(RDMA_EP_QUERY, &cmd);
}

CALL(call_init_qp_attr)
{
	struct rdma_ep_init_qp_attr cmd = {
		.ep = pick_ep(op),
		.qp_state = op->arg[A_VALUE] < 0xf0 ? op->arg[A_VALUE] & 7 :
						      op->arg[A_VALUE],
		.attr_uptr = pick_pointer(op, cur->bytes),
	};

	CALL_IOCTL(RDMA_EP_INIT_QP_ATTR, &cmd);
}

CALL(call_attach)
{
	struct rdma_ep_attach cmd = {
		.ep = pick_ep(op),
		.channel = op->arg[A_FLAGS] & RDMA_EP_F_NEW_CHANNEL ?
				   -1 : pick_channel(op),
	};

	CALL_IOCTL(RDMA_EP_ATTACH, &cmd);
}

CALL(call_wait)
{
	struct rdma_ep_record *rec = &cur->rec;
	struct rdma_ep_wait cmd = {
		.ep = pick_ep(op),
		.record_uptr = pick_pointer(op, rec),
		.record_len = REC_LEN(op),
		.child_channel = op->arg[A_FLAGS] & RDMA_EP_F_NEW_CHANNEL ?
					 -1 : pick_channel(op),
		.reserved = op->arg[A_VALUE3] == 0xff,
	};

	no_wait = op->fail ? RDMA_EP_WAIT_NOWAIT : 0;
	CALL_IOCTL(RDMA_EP_WAIT, &cmd);
}

CALL(call_notify)
{
	struct rdma_ep_notify cmd = {
		.ep = pick_ep(op),
		.event = op->arg[A_VALUE] < 0x80 ? 4 :
			 op->arg[A_VALUE] < 0xe0 ? 7 : op->arg[A_VALUE],
	};

	CALL_IOCTL(RDMA_EP_NOTIFY, &cmd);
}

CALL(call_join)
{
	static const char *const text[] = { "239.1.1.1", "239.1.1.2",
					    "ff0e::77", "10.77.0.1" };
	union test_addr t = make_addr(text[op->arg[A_ADDR] & 3], 0);
	struct rdma_ep_join cmd = {
		.ep = pick_ep(op),
		.join_flags = op->arg[A_VALUE] < 0xf0 ? op->arg[A_VALUE] & 1 : 2,
		.addr = op->arg[A_ADDR] < 0xf0 ?
			ep_addr(&t) : pick_addr(op->arg[A_ADDR], 0),
		.reserved = op->arg[A_VALUE3] == 0xff,
	};

	CALL_IOCTL(RDMA_EP_JOIN, &cmd);
}

CALL(call_leave)
{
	struct rdma_ep_leave cmd = {
		.ep = pick_ep(op),
		.group = run.group[op->arg[A_VALUE2] % GROUPS],
		.reserved = op->arg[A_VALUE3] == 0xff,
	};

	CALL_IOCTL(RDMA_EP_LEAVE, &cmd);
}

static void option(const struct op *op, unsigned long nr)
{
	static const uint32_t sizes[] = { 1, 4, 4, 1, 0, 1, 1, 4 };
	uint8_t *value = cur->bytes;
	uint8_t name = op->arg[A_VALUE] < 0xf8 ? op->arg[A_VALUE] & 7 : 9;
	struct rdma_ep_option cmd = {
		.ep = pick_ep(op),
		.name = name,
		.value_uptr = pick_pointer(op, value),
		.value_len = name > 7 ? 4 : name == RDMA_EP_OPT_IB_PATH ?
			     72 * (op->arg[A_LEN] % 20) : sizes[name],
		.reserved = op->arg[A_VALUE3] == 0xff,
	};

	if (op->arg[A_LEN] >= 0xf0)
		cmd.value_len = op->arg[A_LEN] & 0xf;
	memset(value, op->arg[A_VALUE2], sizeof(cur->bytes));
	if (name == RDMA_EP_OPT_CONNECT_TIMEOUT)
		memset(value + 1, 0, 3);	/* some ms */
	if (name == RDMA_EP_OPT_IB_PATH)
		*(uint32_t *)value = op->arg[A_VALUE2] < 0xc0 ?
				     IB_PATH_GMP | IB_PATH_PRIMARY |
				     IB_PATH_BIDIRECTIONAL : 0;
	CALL_IOCTL(nr, &cmd);
}

CALL(call_set_option)
{
	option(op, RDMA_EP_SET_OPTION);
}

CALL(call_get_option)
{
	option(op, RDMA_EP_GET_OPTION);
}

CALL(call_write_event)
{
	struct rdma_ep_write_event cmd = {
		.ep = pick_ep(op),
		.event = op->arg[A_VALUE] < 0xe0 ? RDMA_EP_EVENT_USER :
						   op->arg[A_VALUE] & 31,
		.status = op->arg[A_VALUE2],
		.reserved = op->arg[A_VALUE3] == 0xff,
	};
	int i, n = op->arg[A_LEN] == 0xff && !op->how ? 1030 : 1;

	for (i = 0; i < n; i++)
		CALL_IOCTL(RDMA_EP_WRITE_EVENT, &cmd);
}

CALL(call_resolve_service)
{
	struct rdma_ep_record *rec = &cur->rec;
	struct rdma_ep_resolve_service cmd = {
		.ep = pick_ep(op),
		.by = op->arg[A_VALUE] & 7,
		.record_uptr = pick_pointer(op, rec),
		.record_len = REC_LEN(op),
		.reserved = op->arg[A_VALUE3] == 0xff,
	};

	CALL_IOCTL(RDMA_EP_RESOLVE_SERVICE, &cmd);
}

CALL(call_query_services)
{
	struct rdma_ep_query_services cmd = {
		.ep = pick_ep(op),
		.count = op->arg[A_LEN] & 3,
		.recs_uptr = pick_pointer(op, cur->bytes),
		.reserved = op->arg[A_VALUE3] == 0xff,
	};

	CALL_IOCTL(RDMA_EP_QUERY_SERVICES, &cmd);
}

CALL(call_read)
{
	static __thread struct rdma_ep_record rec[3];
	uint8_t len = op->arg[A_LEN];
	int channel = run.channel[op->arg[A_CHANNEL] % CHANNELS];
	const uint8_t *at = (void *)rec;
	void *to;
	ssize_t n;

	if (channel < 3)
		return;
	if (op->fail)
		fcntl(channel, F_SETFL, O_NONBLOCK);
	memset(rec, 0, sizeof(rec));
	to = (void *)(uintptr_t)pick_pointer(op, rec);
	fail_begin(op);
	n = read(channel, to, len < 0x80 ? sizeof(rec) :
			      len < 0xf0 ? sizeof(rec[0]) : len);
	fail_end(op);
	if (op->arg[A_POINTER] >= 0xc0)
		return;
	while (n > 0) {
		const struct rdma_ep_record *r = (const void *)at;

		if (r->size < 8 || r->size > n)
			die("read() returned less than a record");
		check_record(op, r);
		n -= r->size;
		at += r->size;
	}
}

CALL(call_poll)
{
	struct pollfd p[] = {
		{ .fd = run.channel[op->arg[A_CHANNEL] % CHANNELS],
		  .events = POLLIN },
		{ .fd = run.fd, .events = POLLIN | POLLOUT },
	};

	poll(p, 1 + (op->arg[A_VALUE] & 1), op->arg[A_VALUE2] & 7);
}

CALL(call_fcntl)
{
	int channel = run.channel[op->arg[A_CHANNEL] % CHANNELS];

	if (channel > 2)
		fcntl(channel, F_SETFL, op->arg[A_VALUE] & 1 ? O_NONBLOCK : 0);
}

CALL(call_close_channel)
{
	int *slot = &run.channel[op->arg[A_CHANNEL] % CHANNELS];
	int fd = __atomic_exchange_n(slot, -1, __ATOMIC_RELAXED);

	if (fd > 2)
		close(fd);
}

/* The context is closed with calls under way; the rest of the program has a new one */
CALL(call_reopen)
{
	int fd;

	fail_begin(op);
	fd = open_ep();
	fail_end(op);
	if (fd < 0)
		return;
	dup2(fd, run.fd);
	close(fd);
}

CALL(call_fdinfo)
{
	int of = op->arg[A_VALUE] & 1 ? run.fd :
		 run.channel[op->arg[A_CHANNEL] % CHANNELS];
	char path[64], text[2048];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", of);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	while (read(fd, text, sizeof(text)) > 0)
		;
	close(fd);
}

CALL(call_stats)
{
	char text[4096];
	int fd = open("/proc/net/rdma_ep", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	while (read(fd, text, sizeof(text)) > 0)
		;
	close(fd);
}

CALL(call_sleep)
{
	usleep(op->arg[A_VALUE] * 40);
}

/* As the hardware's would be, but at any time */
CALL(call_event)
{
	struct rdma_ep_test_event cmd = {
		.ep = pick_ep(op),
		.event = op->arg[A_VALUE] % 20,
		.status = op->arg[A_VALUE2] < 0x80 ? 0 :
			  op->arg[A_VALUE2] < 0xc0 ? -ETIMEDOUT : 28,
		.group = run.group[op->arg[A_VALUE2] % GROUPS],
		.data_len = pick_value(op->arg[A_LEN]),
		.fail_mask = op->arg[A_VALUE3] < 0xc0 ? 0 : op->arg[A_VALUE3],
	};

	fail_begin(op);
	ioctl(run.fd, RDMA_EP_TEST_EVENT, &cmd);
	fail_end(op);
}

CALL(call_raw)
{
	static __thread uint8_t bytes[512];
	size_t i;

	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = op->arg[i % ARGS];
	if (op->arg[A_FLAGS] & 1)
		memset(bytes, 0, 16);
	ioctl(run.fd, _IO(op->arg[A_EP] & 0x80 ? RDMA_EP_IOC_TYPE :
						 op->arg[A_EP],
			  op->arg[A_VALUE]),
	      op->arg[A_POINTER] & 1 ? bytes : unmapped);
}

/*
 * Rings
 */

/* Submits what is linked to nothing that came, and takes what is there */
CALL(call_reap)
{
	if (!self->ring_open)
		return;
	fail_begin(op);
	io_uring_submit(&self->ring);
	fail_end(op);
	reap(self, op->fail ? 0 : op->arg[A_VALUE] & 7);
}

/* The ring ends with what is in flight; the next is of another kind */
CALL(call_ring)
{
	static const unsigned int flags[] = {
		0, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
		IORING_SETUP_COOP_TASKRUN, IORING_SETUP_SQPOLL,
	};
	uint8_t v = op->arg[A_VALUE];

	self->ring_flags = flags[v >= 0xe0 ? 3 : v % 3];
	ring_close(self);
}

CALL(call_cancel)
{
	struct io_uring_sqe *sqe = new_sqe(self);

	if (!sqe)
		return;
	io_uring_prep_cancel(sqe, NULL, IORING_ASYNC_CANCEL_ANY |
			     IORING_ASYNC_CANCEL_ALL);
	io_uring_sqe_set_data(sqe, NULL);
	io_uring_submit(&self->ring);
	reap(self, op->arg[A_VALUE] & 1);
}

/* Does not wait: nobody would send it a signal */
static void child(const struct op *op)
{
	static void (*const fn[])(const struct op *op) = {
		call_wait, call_connect, call_create_ep, call_disconnect,
		call_resolve_addr, call_destroy, call_accept, call_listen,
	};
	struct op sub = *op;
	int i;

	/* The file would be about another task, the ring is the parent's */
	fail_fd = -1;
	self->ring_open = false;
	self->in_flight = 0;
	sub.how = HOW_LEAVE | (op->how & HOW_WORKER);
	sub.arg[A_FLAGS] |= RDMA_EP_F_WAIT;
	for (i = 0; i < 3; i++) {
		cur = new_flight(self);
		if (cur)
			fn[sub.arg[A_LEN + i] % ARRAY_SIZE(fn)](&sub);
		sub.arg[A_EP]++;
	}
	if (op->arg[A_VALUE2] & 1)
		kill(getpid(), SIGKILL);
	_exit(0);
}

/* A process ends with calls in flight, on endpoints that go on */
CALL(call_child)
{
	pid_t pid = fork();
	int status = 0;

	if (!pid)
		child(op);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status))
		die("in a child");
}

static const struct call {
	const char *name;
	void (*fn)(const struct op *op);
	uint8_t weight;
} calls[] = {
	{ "get_info", call_get_info, 1 },
	{ "create_channel", call_create_channel, 3 },
	{ "create", call_create, 5 },
	{ "create_ep", call_create_ep, 6 },
	{ "destroy", call_destroy, 4 },
	{ "destroy_many", call_destroy_many, 1 },
	{ "bind", call_bind, 4 },
	{ "resolve_addr", call_resolve_addr, 4 },
	{ "resolve_route", call_resolve_route, 3 },
	{ "listen", call_listen, 4 },
	{ "connect", call_connect, 6 },
	{ "accept", call_accept, 6 },
	{ "establish", call_establish, 4 },
	{ "reject", call_reject, 3 },
	{ "disconnect", call_disconnect, 4 },
	{ "query", call_query, 4 },
	{ "init_qp_attr", call_init_qp_attr, 2 },
	{ "attach", call_attach, 4 },
	{ "wait", call_wait, 8 },
	{ "notify", call_notify, 2 },
	{ "join", call_join, 3 },
	{ "leave", call_leave, 2 },
	{ "set_option", call_set_option, 3 },
	{ "get_option", call_get_option, 2 },
	{ "write_event", call_write_event, 3 },
	{ "resolve_service", call_resolve_service, 1 },
	{ "query_services", call_query_services, 1 },
	{ "read", call_read, 6 },
	{ "poll", call_poll, 2 },
	{ "fcntl", call_fcntl, 1 },
	{ "close_channel", call_close_channel, 2 },
	{ "reopen", call_reopen, 1 },
	{ "fdinfo", call_fdinfo, 1 },
	{ "stats", call_stats, 1 },
	{ "sleep", call_sleep, 2 },
	{ "event", call_event, 8 },
	{ "raw", call_raw, 1 },
	{ "reap", call_reap, 5 },
	{ "ring", call_ring, 1 },
	{ "cancel", call_cancel, 1 },
	{ "child", call_child, 1 },
};

/*
 * Programs as text: a line per call, its name, the thread and how (in the bits
 * from 1), what fails, and the other bytes. "program N" starts one.
 */

static int print_program(char *text, size_t size, const struct program *p)
{
	size_t n = 0;
	uint32_t i;
	int k;

	for (i = 0; i < p->num; i++) {
		const struct op *op = &p->op[i];

		n += snprintf(text + n, size - n, "%s %u %u", calls[op->call].name,
			      op->thread | op->how << 1, op->fail);
		for (k = 0; k < ARGS; k++)
			n += snprintf(text + n, size - n, " %02x", op->arg[k]);
		n += snprintf(text + n, size - n, "\n");
	}
	return n;
}

/* Lines that are no call are comments. */
static void parse_line(const char *line, struct program *p)
{
	struct op *op = &p->op[p->num];
	char name[32];
	unsigned int thread, fail, byte;
	int i, at, more;

	if (p->num == MAX_OPS ||
	    sscanf(line, "%31s %u %u%n", name, &thread, &fail, &at) != 3)
		return;
	memset(op, 0, sizeof(*op));
	for (i = 0; i < (int)ARRAY_SIZE(calls); i++)
		if (!strcmp(calls[i].name, name))
			break;
	if (i == (int)ARRAY_SIZE(calls))
		return;
	op->call = i;
	op->thread = thread & 1;
	op->how = thread >> 1 & 7;
	op->fail = fail;
	for (i = 0; i < ARGS; i++, at += more) {
		if (sscanf(line + at, "%2x%n", &byte, &more) != 1)
			break;
		op->arg[i] = byte;
	}
	p->num++;
}

/* Programs of a file go to @fn in the order of their numbers */
static int parse_file(const char *path, void (*fn)(const struct program *p))
{
	static struct program p[FILE_PROGRAMS];
	static long number[FILE_PROGRAMS];
	char line[256];
	int num = 0, i, k;
	FILE *file = fopen(path, "r");

	if (!file)
		return -1;
	memset(p, 0, sizeof(p));
	memset(number, 0, sizeof(number));
	while (fgets(line, sizeof(line), file)) {
		if (!strncmp(line, "program ", 8) && num < FILE_PROGRAMS)
			number[num++] = atol(line + 8);
		else
			parse_line(line, &p[num ? num - 1 : 0]);
	}
	fclose(file);
	if (!num)
		num = 1;
	for (k = 0; k < num; k++) {
		int first = 0;

		for (i = 1; i < num; i++)
			if (number[i] < number[first])
				first = i;
		if (p[first].num)
			fn(&p[first]);
		number[first] = LONG_MAX;
	}
	return 0;
}

/*
 * Coverage
 */

static uint8_t edge_seen[EDGES / 8];
static uint64_t block_seen[BLOCKS];	/* a hash table of PCs */
static uint32_t num_edges, num_blocks;

static bool add_block(uint64_t pc)
{
	uint32_t i = (pc * 0x9e3779b97f4a7c15ULL) >> 50;

	while (block_seen[i % BLOCKS] && block_seen[i % BLOCKS] != pc)
		i++;
	if (block_seen[i % BLOCKS])
		return false;
	if (num_blocks == BLOCKS - 1)
		die("more blocks than there can be");
	block_seen[i % BLOCKS] = pc;
	num_blocks++;
	return true;
}

static bool add_edge(uint64_t from, uint64_t to)
{
	uint32_t i = ((from * 31 + to) * 0x9e3779b97f4a7c15ULL) >> 44;

	if (edge_seen[i / 8] & 1 << i % 8)
		return false;
	edge_seen[i / 8] |= 1 << i % 8;
	num_edges++;
	return true;
}

/* How much in these PCs is new */
static uint32_t add_coverage(const uint64_t *cover)
{
	uint64_t n = cover[0] < COVER - 1 ? cover[0] : COVER - 1;
	uint32_t news = 0;
	uint64_t i;

	for (i = 1; i <= n; i++) {
		news += add_block(cover[i]);
		news += add_edge(i > 1 ? cover[i - 1] : 0, cover[i]);
	}
	return news;
}

/*
 * Making the calls
 */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void make_call(struct worker *w, const struct op *op)
{
	cur = new_flight(w);
	if (!cur)
		return;
	__atomic_store_n(&w->armed, op->fail, __ATOMIC_RELAXED);
	__atomic_store_n(&w->until_ms, now_ms() + stuck_ms, __ATOMIC_RELAXED);
	w->doing = calls[op->call].name;
	calls[op->call].fn(op);
	w->doing = NULL;
	__atomic_store_n(&w->until_ms, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&w->armed, false, __ATOMIC_RELAXED);
}

static void worker_init(struct worker *w, bool cover)
{
	int fd;

	self = w;
	memset(w->flight, 0, sizeof(w->flight));
	fail_fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	if (!cover)
		return;
	fd = open("/sys/kernel/debug/kcov", O_RDWR | O_CLOEXEC);
	if (fd < 0 || ioctl(fd, KCOV_INIT_TRACE, COVER))
		die("no KCOV in this kernel");
	w->cover = mmap(NULL, COVER * sizeof(uint64_t), PROT_READ | PROT_WRITE,
			MAP_SHARED, fd, 0);
	if (w->cover == MAP_FAILED || ioctl(fd, KCOV_ENABLE, KCOV_TRACE_PC))
		die("KCOV cannot be enabled");
}

static bool use_cover = true;

static void *second_thread(void *arg)
{
	struct worker *w = arg;

	worker_init(w, use_cover);
	pthread_mutex_lock(&lock);
	w->index = 1;
	pthread_cond_broadcast(&changed);
	for (;;) {
		const struct op *op = w->op;

		if (!op) {
			pthread_cond_wait(&changed, &lock);
			continue;
		}
		pthread_mutex_unlock(&lock);
		make_call(w, op);
		pthread_mutex_lock(&lock);
		w->op = NULL;
		pthread_cond_broadcast(&changed);
	}
	return NULL;
}

/* Hand a call to the second thread, once it is done with the last; NULL waits for that */
static void hand_over(const struct op *op)
{
	struct worker *w = &workers[1];

	pthread_mutex_lock(&lock);
	while (w->op)
		pthread_cond_wait(&changed, &lock);
	w->op = op;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static uint64_t program_since_ms;
static unsigned long executions, stuck_calls;

/* Calls that wait get a signal after a while; one that ignores it is a fault */
static void *watchdog(void *arg)
{
	(void)arg;
	for (;;) {
		uint64_t now, since, until;
		int i;

		usleep(1000);
		now = now_ms();
		for (i = 0; i < THREADS; i++) {
			until = __atomic_load_n(&workers[i].until_ms,
						__ATOMIC_RELAXED);
			if (!until || now < until ||
			    __atomic_load_n(&workers[i].armed, __ATOMIC_RELAXED))
				continue;
			stuck_calls++;
			pthread_kill(workers[i].thread, SIGUSR1);
		}
		since = __atomic_load_n(&program_since_ms, __ATOMIC_RELAXED);
		if (!since || now < since + 30000 * slow())
			continue;
		for (i = 0; i < THREADS; i++)
			fprintf(stderr, "thread %d: %s, %u in flight\n", i,
				workers[i].doing ? workers[i].doing : "no call",
				workers[i].in_flight);
		die("a program takes longer than 30 s");
	}
	return NULL;
}

static void on_signal(int sig)
{
	(void)sig;
}

static void start_threads(void)
{
	struct sigaction act = { .sa_handler = on_signal };
	pthread_t dog;

	sigaction(SIGUSR1, &act, NULL);
	workers[0].thread = pthread_self();
	worker_init(&workers[0], use_cover);
	pthread_create(&workers[1].thread, NULL, second_thread, &workers[1]);
	pthread_mutex_lock(&lock);
	while (!workers[1].index)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	pthread_create(&dog, NULL, watchdog, NULL);
}

/*
 * Where the time goes: the first thread's calls, the second's when the first is
 * through, the end of rings and files, coverage, what is left, and writing down.
 */

enum phase { P_CALLS, P_SECOND, P_CLOSE, P_COVER, P_LEFT, P_SAVE, PHASES };

static uint64_t spent_us[PHASES];

static uint64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000ULL + ts.tv_nsec / 1000;
}

/* All since *@since was for that */
static void lap(enum phase phase, uint64_t *since)
{
	uint64_t now = now_us();

	spent_us[phase] += now - *since;
	*since = now;
}

static void print_spent(void)
{
	static const char *const names[] = {
		"calls", "second thread", "close", "coverage", "what is left",
		"writing down",
	};
	int i;

	for (i = 0; i < PHASES; i++)
		printf("%s %llu ms%s", names[i],
		       (unsigned long long)(spent_us[i] / 1000),
		       i < PHASES - 1 ? ", " : "\n");
}

/*
 * Running a program
 */

static int first_fd;	/* that a program can get */

/* A call may have made a channel, and the ring ended before it could be told */
static void close_unseen(void)
{
	int fd, i;

	for (fd = first_fd; fd < first_fd + 2 * FLIGHTS; fd++) {
		for (i = 0; i < THREADS; i++)
			if (workers[i].ring_open && workers[i].ring.ring_fd == fd)
				break;
		if (i == THREADS)
			close(fd);
	}
}

static void expect_nothing_left(void)
{
	struct rdma_ep_test_count count;
	int i;

	/* What another thread was about to drop may take a moment */
	for (i = 0; i < 2000; i++) {
		if (count_objects(&count))
			die("objects cannot be counted");
		if (!count.contexts && !count.endpoints && !count.channels &&
		    !count.events)
			return;
		close_unseen();
		usleep(i < 1000 ? 500 : 10000);
	}
	fprintf(stderr, "left: contexts %u, endpoints %u, channels %u, events %u\n",
		count.contexts, count.endpoints, count.channels, count.events);
	die("objects are left");
}

/* With its trace events on, what they print is made as well */
static void trace_all(void)
{
	int fd = open("/sys/kernel/tracing/events/rdma_ep/enable",
		      O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, "1", 1) != 1)
		fprintf(stderr, "trace events: %s\n", strerror(errno));
	close(fd);
}

/* Returns how much coverage was new */
static uint32_t execute(const struct program *p)
{
	uint64_t since = now_us();
	uint32_t i, k, news = 0;

	__atomic_store_n(&program_since_ms, now_ms(), __ATOMIC_RELAXED);
	memset(&run, 0, sizeof(run));
	memset(run.channel, 0xff, sizeof(run.channel));
	run.fd = open_ep();
	if (run.fd < 0)
		die("the device cannot be opened");
	for (i = 0; use_cover && i < THREADS; i++)
		workers[i].cover[0] = 0;

	for (i = 0; i < p->num; i++)
		if (p->op[i].thread)
			hand_over(&p->op[i]);
		else
			make_call(&workers[0], &p->op[i]);
	lap(P_CALLS, &since);
	hand_over(NULL);
	lap(P_SECOND, &since);

	/* A ring that nothing is on serves again: it takes a while to end one */
	for (i = 0; i < THREADS; i++) {
		if (workers[i].in_flight || workers[i].ring_flags)
			ring_close(&workers[i]);
		workers[i].ring_flags = 0;
	}
	for (i = 0; i < CHANNELS; i++)
		if (run.channel[i] > 2)
			close(run.channel[i]);
	close(run.fd);
	lap(P_CLOSE, &since);
	for (i = 0; use_cover && i < THREADS; i++)
		news += add_coverage(workers[i].cover);
	lap(P_COVER, &since);
	expect_nothing_left();
	for (i = 0; i < THREADS; i++)
		for (k = 0; k < FLIGHTS; k++)
			workers[i].flight[k].busy = false;
	lap(P_LEFT, &since);
	executions++;
	__atomic_store_n(&program_since_ms, 0, __ATOMIC_RELAXED);
	return news;
}

/*
 * The corpus, and new programs from it
 */

static struct program corpus[MAX_CORPUS];
static uint32_t num_corpus;
static const char *out_dir = ".";
static int recent_fd = -1;

/* Before they run, where they are found after the machine has died */
static void save_recent(const struct program *p, int num)
{
	static char text[BATCH * SLOT_SIZE];
	static unsigned long number, batch;
	char *slot = text;
	int i, n;

	memset(text, '\n', sizeof(text));
	for (i = 0; i < num; i++, slot += SLOT_SIZE) {
		n = snprintf(slot, SLOT_SIZE, "program %lu\n", number + i);
		n += print_program(slot + n, SLOT_SIZE - n, &p[i]);
		slot[n] = '\n';
	}
	number += num;
	if (pwrite(recent_fd, text, sizeof(text),
		   batch++ % 2 * sizeof(text)) != sizeof(text))
		die("cannot write the file of recent programs");
}

static void save_corpus(const struct program *p, uint32_t number)
{
	char path[PATH_MAX], text[SLOT_SIZE];
	FILE *file;

	print_program(text, sizeof(text), p);
	snprintf(path, sizeof(path), "%s/corpus/%05u", out_dir, number);
	file = fopen(path, "w");
	if (!file)
		die("cannot write to the corpus");
	fprintf(file, "# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause\n%s",
		text);
	fclose(file);
}

static void try_program(const struct program *p)
{
	bool is_new = execute(p);

	if (!is_new || num_corpus == MAX_CORPUS)
		return;
	corpus[num_corpus] = *p;
	save_corpus(p, num_corpus);
	num_corpus++;
}

/* One of those given */
static void try_given(const struct program *p)
{
	if (!use_cover && num_corpus < MAX_CORPUS)
		corpus[num_corpus++] = *p;
	save_recent(p, 1);
	try_program(p);
}

static uint8_t random_call(void)
{
	static uint32_t total;
	uint32_t i, r;

	if (!total)
		for (i = 0; i < ARRAY_SIZE(calls); i++)
			total += calls[i].weight;
	r = rnd_below(total);
	for (i = 0; r >= calls[i].weight; i++)
		r -= calls[i].weight;
	return i;
}

static void random_op(struct op *op)
{
	int i;

	op->call = random_call();
	op->thread = !rnd_below(5);
	op->fail = rnd_below(12) ? 0 : 1 + rnd_below(24);
	op->how = rnd_below(3) ? HOW_IOCTL : rnd_below(8);
	for (i = 0; i < ARGS; i++)
		op->arg[i] = rnd_below(4) ? rnd_below(8) : rnd();
}

static void insert_op(struct program *p, uint32_t at, const struct op *op)
{
	if (p->num == MAX_OPS)
		return;
	memmove(&p->op[at + 1], &p->op[at], (p->num - at) * sizeof(*op));
	p->op[at] = *op;
	p->num++;
}

/* The head of one program, the tail of another */
static void cross_over(struct program *p)
{
	const struct program *q = &corpus[rnd_below(num_corpus)];
	uint32_t head = rnd_below(p->num + 1), from = rnd_below(q->num + 1);

	for (p->num = head; from < q->num && p->num < MAX_OPS; from++)
		p->op[p->num++] = q->op[from];
}

static void mutate(struct program *p)
{
	struct op op;
	uint32_t at;

	if (!p->num) {
		random_op(&p->op[p->num++]);
		return;
	}
	at = rnd_below(p->num);
	switch (rnd_below(11)) {
	case 0:
	case 1:
		random_op(&op);
		insert_op(p, rnd_below(p->num + 1), &op);
		break;
	case 2:
		memmove(&p->op[at], &p->op[at + 1],
			(--p->num - at) * sizeof(op));
		break;
	case 3:
		op = p->op[at];
		insert_op(p, rnd_below(p->num + 1), &op);
		break;
	case 4:
		p->op[at].thread ^= 1;
		break;
	case 5:
		p->op[at].fail = rnd_below(3) ? 1 + rnd_below(24) : 0;
		break;
	case 6:
		p->op[at].how = rnd_below(8);
		break;
	case 7:
		cross_over(p);
		break;
	default:
		p->op[at].arg[rnd_below(ARGS)] = rnd_below(3) ? rnd_below(8) :
								rnd();
		break;
	}
}

static void new_program(struct program *p)
{
	int n = 1 + rnd_below(4);

	/* Those found last lead on more often */
	if (num_corpus > 32 && rnd_below(2))
		*p = corpus[num_corpus - 1 - rnd_below(32)];
	else if (num_corpus)
		*p = corpus[rnd_below(num_corpus)];
	else
		p->num = 0;
	while (n--)
		mutate(p);
}

/*
 * What was covered: addresses within the module's sections
 */

static uint64_t section_start(const char *name)
{
	char path[128], text[32] = "";
	int fd;

	snprintf(path, sizeof(path), "/sys/module/rdma_ep/sections/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	if (read(fd, text, sizeof(text) - 1) < 0)
		text[0] = 0;
	close(fd);
	return strtoull(text, NULL, 16);
}

static void write_covered(void)
{
	static const char *const names[] = { ".text", ".text.unlikely" };
	char path[PATH_MAX];
	FILE *file;
	uint32_t i;

	if (!use_cover)
		return;
	snprintf(path, sizeof(path), "%s/covered", out_dir);
	file = fopen(path, "w");
	if (!file)
		die("cannot write what was covered");
	for (i = 0; i < ARRAY_SIZE(names); i++)
		fprintf(file, "section %s %llx\n", names[i],
			(unsigned long long)section_start(names[i]));
	for (i = 0; i < BLOCKS; i++)
		if (block_seen[i])
			fprintf(file, "%llx\n",
				(unsigned long long)block_seen[i]);
	fclose(file);
}

static void report(uint64_t started)
{
	printf("%5llu s: %lu executions, %u blocks, %u edges, corpus %u, %lu signals\n",
	       (unsigned long long)(now_ms() - started) / 1000, executions,
	       num_blocks, num_edges, num_corpus, stuck_calls);
	fflush(stdout);
}

static void fuzz(uint64_t seconds)
{
	uint64_t started = now_ms(), reported = 0;
	static struct program p[BATCH];
	unsigned int i = BATCH;

	while (now_ms() - started < seconds * 1000) {
		if (i == BATCH) {
			uint64_t since = now_us();

			for (i = 0; i < BATCH; i++)
				new_program(&p[i]);
			save_recent(p, BATCH);
			lap(P_SAVE, &since);
			i = 0;
		}
		stuck_ms = rnd_below(PATIENT_ONE_IN) ? STUCK_MS : PATIENT_MS;
		try_program(&p[i++]);
		if (now_ms() - started > reported + 30000) {
			reported = now_ms() - started;
			report(started);
			write_covered();
		}
	}
	report(started);
	print_spent();
	write_covered();
}

/* What gives up after a minute or two does so while it is looked at */
static void be_impatient(void)
{
	struct rdma_ep_test_patience cmd = { .seconds = 1 };
	int fd = open_ep();

	if (fd < 0 || ioctl(fd, RDMA_EP_TEST_PATIENCE, &cmd))
		die("the module has no test code");
	close(fd);
}

static void replay(const struct program *p)
{
	char text[SLOT_SIZE];

	print_program(text, sizeof(text), p);
	printf("program %lu\n%s", executions, text);
	fflush(stdout);
	execute(p);
}

static int usage(void)
{
	fprintf(stderr,
		"usage: fuzz [--blind] [--seconds N] [--seed N] [--out DIR] FILE...\n"
		"       fuzz --replay FILE\n");
	return 2;
}

static void quiet_faults(void)
{
	static const char *const names[] = { "failslab", "fail_page_alloc",
					     "fail_usercopy" };
	char path[96];
	size_t i;
	int fd;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s/verbose",
			 names[i]);
		fd = open(path, O_WRONLY | O_CLOEXEC);
		if (fd >= 0 && write(fd, "0", 1) != 1)
			fprintf(stderr, "%s: %s\n", path, strerror(errno));
		if (fd >= 0)
			close(fd);
	}
	fd = open("/sys/kernel/debug/failslab/ignore-gfp-wait",
		  O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		if (write(fd, "N", 1) != 1)
			fprintf(stderr, "failslab: %s\n", strerror(errno));
		close(fd);
	}
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seconds", required_argument, NULL, 's' },
		{ "seed", required_argument, NULL, 'e' },
		{ "out", required_argument, NULL, 'o' },
		{ "blind", no_argument, NULL, 'b' },
		{ "replay", required_argument, NULL, 'r' },
		{}
	};
	const char *replay_file = NULL;
	uint64_t seconds = 60;
	char path[PATH_MAX];
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (opt) {
		case 's':
			seconds = strtoull(optarg, NULL, 0);
			break;
		case 'e':
			rng_state ^= strtoull(optarg, NULL, 0) << 8;
			break;
		case 'o':
			out_dir = optarg;
			break;
		case 'b':
			use_cover = false;
			break;
		case 'r':
			replay_file = optarg;
			use_cover = false;
			break;
		default:
			return usage();
		}
	}

	unmapped = mmap(NULL, 4 * 4096, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	read_only = unmapped + 4096;
	page_end = unmapped + 3 * 4096 - 64;
	mprotect(unmapped, 4096, PROT_NONE);
	mprotect(read_only, 4096, PROT_READ);
	mprotect(unmapped + 3 * 4096, 4096, PROT_NONE);
	quiet_faults();
	trace_all();
	be_impatient();
	start_threads();

	first_fd = dup(0) + 1;
	if (replay_file)
		return parse_file(replay_file, replay) ? 1 : 0;

	snprintf(path, sizeof(path), "%s/corpus", out_dir);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/recent", out_dir);
	recent_fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (recent_fd < 0)
		die("cannot write to the folder given");
	first_fd = dup(0) + 1;
	for (; optind < argc; optind++)
		if (parse_file(argv[optind], try_given))
			die(argv[optind]);
	printf("%u programs to begin with\n", num_corpus);
	fuzz(seconds);
	return 0;
}
