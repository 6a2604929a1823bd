// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The process's open file of the device, and the only door to it.
 *
 * The file is opened when it is first needed. A child of fork(2) shares the
 * open file with its parent, so what it creates itself goes to a file of its
 * own: neither sees the other's new ids. What it has inherited keeps working
 * in the shared file, for daemons that fork after they have begun to listen. A
 * child that has made no use of it may not end it, though: it may only be on its
 * way to exit(3), whose handlers destroy what the parent needs.
 *
 * The program may close the file without knowing, as daemons close all they have
 * inherited, and have another by its number.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "rdmaep-internal.h"

#ifdef HAVE_VALGRIND
#include <valgrind/memcheck.h>
#else
#define VALGRIND_MAKE_MEM_DEFINED(addr, len)	((void)(addr), (void)(len))
#endif

/* Guards current_ctx and all reference counts of contexts. */
static struct rdmaep_guard ctx_lock = RDMAEP_GUARD_INITIALIZER;
static struct rdmaep_ctx *current_ctx;
static struct rdmaep_ctx *all_ctxs;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

unsigned int rdmaep_fork_count;
static pid_t fork_parent_pid;

static __thread struct rdma_ep_reason last_reason;

/* Is its number still that of a file of the device? */
static bool ctx_is_open(const struct rdmaep_ctx *ctx)
{
	struct rdma_ep_get_info info = { .hdr = RDMAEP_HDR(info) };
	int err = errno;
	bool open = !ioctl(ctx->fd, RDMA_EP_GET_INFO, &info);

	errno = err;
	return open;
}

/* Who closes the device's file closes those of channels as well. */
static void close_idle(struct rdmaep_ctx *ctx)
{
	bool open = ctx->num_idle && ctx_is_open(ctx);

	while (ctx->num_idle) {
		ctx->num_idle--;
		if (open)
			close(ctx->idle[ctx->num_idle]);
		rdmaep_channel_unreserve();
	}
}

static void ctx_put_locked(struct rdmaep_ctx *ctx)
{
	struct rdmaep_ctx **pos;

	if (--ctx->refs)
		return;
	close_idle(ctx);
	if (ctx_is_open(ctx))
		close(ctx->fd);
	for (pos = &all_ctxs; *pos != ctx; pos = &(*pos)->next)
		;
	*pos = ctx->next;
	free(ctx);
}

static void fork_prepare(void)
{
	rdmaep_guard_enter(&ctx_lock);
	rdmaep_device_lock(true);
	rdmaep_cq_lock(true);
	pthread_mutex_lock(&rdmaep_lock);
	fork_parent_pid = getpid();
}

static void fork_parent(void)
{
	pthread_mutex_unlock(&rdmaep_lock);
	rdmaep_cq_lock(false);
	rdmaep_device_lock(false);
	rdmaep_guard_leave(&ctx_lock);
}

static void fork_child(void)
{
	rdmaep_fork_count++;
	rdmaep_id_after_fork();
	if (current_ctx) {
		/* The parent will use these. */
		close_idle(current_ctx);
		ctx_put_locked(current_ctx);
		current_ctx = NULL;
	}
	fork_parent();
}

static void fork_register(void)
{
	pthread_atfork(fork_prepare, fork_parent, fork_child);
}

/* Where the program has closed its standard files, they are not for us. */
static int open_above_std(void)
{
	int high, fd = open(RDMA_EP_DEVICE, O_RDWR | O_CLOEXEC);

	if (fd < 0 || fd > STDERR_FILENO)
		return fd;
	high = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (high < 0)
		return fd;
	close(fd);
	return high;
}

/* Asks for the module once: a machine without it must not pay for each try. */
static int open_device(void)
{
	static bool asked;
	int fd = open_above_std();

	if (fd >= 0 || errno != ENOENT || asked)
		return fd;
	asked = true;
	rdmaep_autoload();
	return open_above_std();
}

/* Another that had this number was closed by the program. */
static void own_number(const struct rdmaep_ctx *ctx)
{
	struct rdmaep_ctx *other;

	for (other = all_ctxs; other; other = other->next)
		if (other != ctx && other->fd == ctx->fd)
			other->fd = -1;
}

static struct rdmaep_ctx *ctx_open(void)
{
	struct rdmaep_ctx *ctx = calloc(1, sizeof(*ctx));

	if (!ctx)
		return NULL;

	ctx->fd = open_device();
	if (ctx->fd < 0) {
		int err = errno;

		free(ctx);
		rdmaep_fail(err, RDMA_EP_REASON_NONE, "cannot open %s: %s",
			    RDMA_EP_DEVICE, strerror(err));
		return NULL;
	}
	/* A program that can do without RDMA looks out for that. */
	if (rdmaep_device_scan()) {
		int err = errno;

		close(ctx->fd);
		free(ctx);
		errno = err;
		return NULL;
	}
	ctx->refs = 1;
	ctx->owner = rdmaep_fork_count;
	own_number(ctx);
	ctx->next = all_ctxs;
	all_ctxs = ctx;
	return ctx;
}

/**
 * rdmaep_ctx_get() - the context for what is created now
 *
 * Opens the device if need be.
 *
 * Return: the context with a reference for the caller, or NULL with errno as
 * from open(2), or ENODEV: no RDMA device has ever been seen.
 */
struct rdmaep_ctx *rdmaep_ctx_get(void)
{
	struct rdmaep_ctx *ctx;

	pthread_once(&fork_once, fork_register);
	rdmaep_guard_enter(&ctx_lock);
	if (!current_ctx)
		current_ctx = ctx_open();
	ctx = current_ctx;
	if (ctx)
		ctx->refs++;
	rdmaep_guard_leave(&ctx_lock);
	return ctx;
}

/**
 * rdmaep_ctx_hold() - one more reference
 * @ctx: the context
 *
 * Return: @ctx
 */
struct rdmaep_ctx *rdmaep_ctx_hold(struct rdmaep_ctx *ctx)
{
	rdmaep_guard_enter(&ctx_lock);
	ctx->refs++;
	rdmaep_guard_leave(&ctx_lock);
	return ctx;
}

/**
 * rdmaep_ctx_put() - give a reference back
 * @ctx: the context. It is closed with the last reference, which happens only
 *	to one that a fork has left behind.
 */
void rdmaep_ctx_put(struct rdmaep_ctx *ctx)
{
	rdmaep_guard_enter(&ctx_lock);
	ctx_put_locked(ctx);
	rdmaep_guard_leave(&ctx_lock);
}

/**
 * rdmaep_ctx_take_channel() - a channel that was kept
 * @ctx: the context. One that was inherited has none: the parent uses them.
 *
 * Return: its file descriptor, or -1.
 */
int rdmaep_ctx_take_channel(struct rdmaep_ctx *ctx)
{
	int fd = -1;

	rdmaep_guard_enter(&ctx_lock);
	if (ctx == current_ctx && ctx->num_idle)
		fd = ctx->idle[--ctx->num_idle];
	rdmaep_guard_leave(&ctx_lock);
	return fd;
}

/**
 * rdmaep_ctx_keep_channel() - keep a channel for another id
 * @ctx: the context
 * @fd: its file descriptor
 *
 * Return: whether there was room for it.
 */
bool rdmaep_ctx_keep_channel(struct rdmaep_ctx *ctx, int fd)
{
	bool room;

	rdmaep_guard_enter(&ctx_lock);
	room = ctx == current_ctx && ctx->num_idle < RDMAEP_IDLE_CHANNELS &&
	       ctx->num_idle < rdmaep_cache_max();
	if (room)
		ctx->idle[ctx->num_idle++] = fd;
	rdmaep_guard_leave(&ctx_lock);
	return room;
}

static void debug_reason(int err)
{
	if (secure_getenv("RDMAEP_DEBUG"))
		fprintf(stderr, "rdmaep: %s (errno %d, reason %u)\n",
			last_reason.text[0] ? last_reason.text : strerror(err),
			err, last_reason.code);
}

static void keep_reason(const struct rdma_ep_reason *reason)
{
	last_reason = *reason;
	last_reason.text[sizeof(last_reason.text) - 1] = '\0';
}

static bool waits(unsigned int nr, const struct rdma_ep_hdr *hdr)
{
	return nr == RDMA_EP_WAIT || hdr->flags & RDMA_EP_F_WAIT;
}

/*
 * A call that waits is a cancellation point, as read(2) is; ioctl(2) is not. But
 * for RDMA_EP_CREATE_EP, whose endpoint nobody would know then.
 */
static int call_device(struct rdmaep_ctx *ctx, unsigned int nr,
		       struct rdma_ep_hdr *hdr)
{
	int ret, type;

	if (!waits(nr, hdr))
		return ioctl(ctx->fd, nr, hdr);

	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	ret = ioctl(ctx->fd, nr, hdr);
	pthread_setcanceltype(type, &type);
	return ret;
}

static bool ends_something(unsigned int nr)
{
	return nr == RDMA_EP_DESTROY || nr == RDMA_EP_DESTROY_MANY ||
	       nr == RDMA_EP_DISCONNECT || nr == RDMA_EP_LEAVE;
}

/**
 * rdmaep_ctx_is_parents() - does what is there belong to the parent process?
 * @ctx: the context
 *
 * Return: whether it was inherited, and neither used since nor left by the parent.
 */
bool rdmaep_ctx_is_parents(struct rdmaep_ctx *ctx)
{
	if (__atomic_load_n(&ctx->owner, __ATOMIC_RELAXED) == rdmaep_fork_count)
		return false;
	/* A daemon's parent has gone. */
	if (getppid() != fork_parent_pid)
		rdmaep_ctx_adopt(ctx);
	return __atomic_load_n(&ctx->owner, __ATOMIC_RELAXED) != rdmaep_fork_count;
}

/**
 * rdmaep_ctx_adopt() - the process goes on with what it may have inherited
 * @ctx: the context
 */
void rdmaep_ctx_adopt(struct rdmaep_ctx *ctx)
{
	if (__atomic_load_n(&ctx->owner, __ATOMIC_RELAXED) != rdmaep_fork_count)
		__atomic_store_n(&ctx->owner, rdmaep_fork_count, __ATOMIC_RELAXED);
}

static bool may_call(struct rdmaep_ctx *ctx, unsigned int nr)
{
	if (ends_something(nr))
		return !rdmaep_ctx_is_parents(ctx);
	rdmaep_ctx_adopt(ctx);
	return true;
}

static bool makes_something(unsigned int nr)
{
	return nr == RDMA_EP_CREATE || nr == RDMA_EP_CREATE_EP ||
	       nr == RDMA_EP_CREATE_CHANNEL;
}

/*
 * A call has failed with which the program begins anew: the caller has the only
 * reference. If the program has closed the file, it is opened again. Does not
 * change errno, unless it returns true.
 */
static bool ctx_reopen(struct rdmaep_ctx *ctx)
{
	bool reopened = false;
	int err = errno, fd;

	rdmaep_guard_enter(&ctx_lock);
	if (ctx == current_ctx && ctx->refs <= 2 && !ctx_is_open(ctx)) {
		close_idle(ctx);
		fd = open_device();
		if (fd >= 0) {
			ctx->fd = fd;
			own_number(ctx);
			rdmaep_ids_forget_dead();
			reopened = true;
		}
	}
	rdmaep_guard_leave(&ctx_lock);
	errno = err;
	return reopened;
}

/**
 * rdmaep_call() - make a call to the module
 * @ctx: the context
 * @nr: RDMA_EP_*
 * @cmd: its argument struct, which starts with a &struct rdma_ep_hdr
 *
 * Keeps the reason of a failure for rdmaep_strerror().
 *
 * Return: 0, or -1 with errno as the uapi header lists them.
 */
int rdmaep_call(struct rdmaep_ctx *ctx, unsigned int nr, void *cmd)
{
	struct rdma_ep_hdr *hdr = cmd;
	struct rdma_ep_reason reason;
	int ret;

	if (!may_call(ctx, nr))
		return rdmaep_fail_parents();

	memset(&reason, 0, sizeof(reason));
	hdr->reason_uptr = (uintptr_t)&reason;
	ret = call_device(ctx, nr, hdr);
	if (ret < 0 && makes_something(nr) && ctx_reopen(ctx))
		ret = call_device(ctx, nr, hdr);
	VALGRIND_MAKE_MEM_DEFINED(cmd, hdr->size);
	VALGRIND_MAKE_MEM_DEFINED(&reason, sizeof(reason));
	if (!ret) {
		/* The call went well; the operation that it waited for may not have. */
		if (reason.code || waits(nr, hdr))
			keep_reason(&reason);
		return 0;
	}
	if (ret > 0) {	/* the module never returns a positive value */
		errno = EPROTO;
		ret = -1;
	}

	/* These two are no failure: the operation goes on. */
	if (errno == EAGAIN || errno == EINTR) {
		rdmaep_forget_reason();
		return ret;
	}

	keep_reason(&reason);
	debug_reason(errno);
	return ret;
}

/**
 * rdmaep_call_quiet() - make a call whose result does not matter
 * @ctx: the context
 * @nr: RDMA_EP_*
 * @cmd: its argument struct
 *
 * For cleaning up: changes neither errno nor the reason.
 */
void rdmaep_call_quiet(struct rdmaep_ctx *ctx, unsigned int nr, void *cmd)
{
	int err = errno;

	if (may_call(ctx, nr) && ioctl(ctx->fd, nr, cmd))
		errno = err;
}

/**
 * rdmaep_fail() - fail for a reason that the library has found itself
 * @err: errno
 * @code: the reason
 * @fmt: its text, as for printf(3)
 *
 * Return: -1
 */
int rdmaep_fail(int err, enum rdma_ep_reason_code code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(last_reason.text, sizeof(last_reason.text), fmt, ap);
	va_end(ap);
	last_reason.code = code;
	debug_reason(err);
	errno = err;
	return -1;
}

/**
 * rdmaep_fail_parents() - fail since rdmaep_ctx_is_parents()
 *
 * Return: -1
 */
int rdmaep_fail_parents(void)
{
	return rdmaep_fail(EACCES, RDMA_EP_REASON_NONE,
			   "the parent process made it, and this one has not used it yet");
}

/**
 * rdmaep_fail_plain() - fail for a reason that errno says all of
 * @err: errno
 *
 * Return: -1
 */
int rdmaep_fail_plain(int err)
{
	rdmaep_forget_reason();
	return rdmaep_fail_outcome(err);
}

/**
 * rdmaep_fail_outcome() - fail since the operation that was waited for has
 * @err: errno. The reason is what rdmaep_call() was told, if anything.
 *
 * Return: -1
 */
int rdmaep_fail_outcome(int err)
{
	if (err != EAGAIN)
		debug_reason(err);
	errno = err;
	return -1;
}

/* What fails next says itself why, or nobody knows. */
void rdmaep_forget_reason(void)
{
	memset(&last_reason, 0, sizeof(last_reason));
}

/**
 * rdmaep_record_read() - make a record that the kernel has written usable
 * @rec: the record, of which the kernel writes only what it has to say
 *
 * What the kernel left out keeps the zeroes of the caller.
 */
void rdmaep_record_read(struct rdma_ep_record *rec)
{
	VALGRIND_MAKE_MEM_DEFINED(rec, sizeof(*rec));
}

/* See rdmaep.h. */
RDMAEP_API unsigned int rdmaep_last_reason(void)
{
	return last_reason.code;
}

/* See rdmaep.h. */
RDMAEP_API const char *rdmaep_strerror(void)
{
	return last_reason.text;
}
