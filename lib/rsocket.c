// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Sockets over RDMA, of which this library has only the names: librdmacm's own
 * serve them. The first rsocket() or repoll_create() loads that library, which
 * has rdma_ucm for its device, and calls are passed on to it. Programs that merely refer to
 * these functions, as all the examples of rdma-core do, never load it.
 *
 * Until there is an rsocket no descriptor is one: the calls fail with EBADF,
 * while rpoll(), rselect() and the repoll functions take descriptors of other
 * kinds, as librdmacm's do.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include <rdma/rsocket.h>

#include "rdmaep-internal.h"

/* Headers before rdma-core 65 lack these. */
int repoll_create(int flags);
int repoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
int repoll_wait(int epfd, struct epoll_event *events, int maxevents, int timeout);

#define FUNCTIONS(F)      \
	F(rsocket);       \
	F(rbind);         \
	F(rlisten);       \
	F(raccept);       \
	F(rconnect);      \
	F(rshutdown);     \
	F(rclose);        \
	F(rrecv);         \
	F(rrecvfrom);     \
	F(rrecvmsg);      \
	F(rsend);         \
	F(rsendto);       \
	F(rsendmsg);      \
	F(rread);         \
	F(rreadv);        \
	F(rwrite);        \
	F(rwritev);       \
	F(rpoll);         \
	F(rselect);       \
	F(repoll_create); \
	F(repoll_ctl);    \
	F(repoll_wait);   \
	F(rgetpeername);  \
	F(rgetsockname);  \
	F(rsetsockopt);   \
	F(rgetsockopt);   \
	F(rfcntl);        \
	F(riomap);        \
	F(riounmap);      \
	F(riowrite)

/* Those that librdmacm does not have are NULL. */
struct incumbent {
#define MEMBER(name) __typeof__(name) *name
	FUNCTIONS(MEMBER);
};

static _Atomic(const struct incumbent *) incumbent;

/*
 * Does the program, or something preloaded, have a malloc() of its own? Then
 * libc allocates with that what librdmacm, see below, would give to libc's
 * free().
 */
static bool has_other_malloc(void)
{
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);

	return !libc || dlsym(libc, "malloc") != dlsym(RTLD_DEFAULT, "malloc");
}

/*
 * librdmacm lies beside libibverbs: rdma-core installs both. With
 * RTLD_DEEPBIND it calls its own rdma_create_id() and not ours, which comes
 * first in this process.
 */
static void *load_librdmacm(void)
{
	void *verbs = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD);
	char path[PATH_MAX];
	void *handle, *call;

	if (has_other_malloc() || !verbs || dlinfo(verbs, RTLD_DI_ORIGIN, path) ||
	    strlen(path) + sizeof("/librdmacm.so.1") > sizeof(path))
		return NULL;
	strcat(path, "/librdmacm.so.1");
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
	if (!handle)
		return NULL;
	/* This library may have been put into its place. */
	call = dlsym(handle, "rsocket");
	if (!call || call == (void *)(uintptr_t)rsocket) {
		dlclose(handle);
		return NULL;
	}
	return handle;
}

static void find_incumbent(void)
{
	static struct incumbent found;
	void *handle = load_librdmacm();

	if (!handle)
		return;
#define FIND(name) *(void **)&found.name = dlsym(handle, #name)
	FUNCTIONS(FIND);
	atomic_store(&incumbent, &found);
}

static const struct incumbent *get_incumbent(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, find_incumbent);
	return atomic_load(&incumbent);
}

static int no_rsocket(void)
{
	errno = EBADF;
	return -1;
}

/* What @name says in librdmacm, or else @without. */
#define PASS_ON(name, arguments, without)                             \
	({                                                            \
		const struct incumbent *to = atomic_load(&incumbent); \
		to && to->name ? to->name arguments : (without);      \
	})

RDMAEP_API int rsocket(int domain, int type, int protocol)
{
	const struct incumbent *to = get_incumbent();

	if (!to)
		return rdmaep_fail(EAFNOSUPPORT, RDMA_EP_REASON_NONE,
				   has_other_malloc() ?
					   "rsockets are librdmacm's, which does not go with "
					   "another malloc()" :
					   "rsockets are librdmacm's, which is not there");
	return to->rsocket(domain, type, protocol);
}

RDMAEP_API int rpoll(struct pollfd *fds, nfds_t nfds, int timeout)
{
	return PASS_ON(rpoll, (fds, nfds, timeout), poll(fds, nfds, timeout));
}

RDMAEP_API int rselect(int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds,
		       struct timeval *timeout)
{
	return PASS_ON(rselect, (nfds, readfds, writefds, exceptfds, timeout),
		       select(nfds, readfds, writefds, exceptfds, timeout));
}

/* What it makes is to hold rsockets, so it is librdmacm's from the start. */
RDMAEP_API int repoll_create(int flags)
{
	get_incumbent();
	/* Callers with a size, as for epoll_create(2), are served too. */
	return PASS_ON(repoll_create, (flags), epoll_create1(flags & EPOLL_CLOEXEC));
}

RDMAEP_API int repoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	return PASS_ON(repoll_ctl, (epfd, op, fd, event), epoll_ctl(epfd, op, fd, event));
}

RDMAEP_API int repoll_wait(int epfd, struct epoll_event *events, int maxevents, int timeout)
{
	return PASS_ON(repoll_wait, (epfd, events, maxevents, timeout),
		       epoll_wait(epfd, events, maxevents, timeout));
}

RDMAEP_API int rfcntl(int socket, int cmd, ...)
{
	va_list args;
	int flags;

	if (cmd != F_SETFL)
		return PASS_ON(rfcntl, (socket, cmd), no_rsocket());
	va_start(args, cmd);
	flags = va_arg(args, int);
	va_end(args);
	return PASS_ON(rfcntl, (socket, cmd, flags), no_rsocket());
}

RDMAEP_API int rbind(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	return PASS_ON(rbind, (socket, addr, addrlen), no_rsocket());
}

RDMAEP_API int rlisten(int socket, int backlog)
{
	return PASS_ON(rlisten, (socket, backlog), no_rsocket());
}

RDMAEP_API int raccept(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	return PASS_ON(raccept, (socket, addr, addrlen), no_rsocket());
}

RDMAEP_API int rconnect(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	return PASS_ON(rconnect, (socket, addr, addrlen), no_rsocket());
}

RDMAEP_API int rshutdown(int socket, int how)
{
	return PASS_ON(rshutdown, (socket, how), no_rsocket());
}

RDMAEP_API int rclose(int socket)
{
	return PASS_ON(rclose, (socket), no_rsocket());
}

RDMAEP_API ssize_t rrecv(int socket, void *buf, size_t len, int flags)
{
	return PASS_ON(rrecv, (socket, buf, len, flags), no_rsocket());
}

RDMAEP_API ssize_t rrecvfrom(int socket, void *buf, size_t len, int flags,
			     struct sockaddr *src_addr, socklen_t *addrlen)
{
	return PASS_ON(rrecvfrom, (socket, buf, len, flags, src_addr, addrlen), no_rsocket());
}

RDMAEP_API ssize_t rrecvmsg(int socket, struct msghdr *msg, int flags)
{
	return PASS_ON(rrecvmsg, (socket, msg, flags), no_rsocket());
}

RDMAEP_API ssize_t rsend(int socket, const void *buf, size_t len, int flags)
{
	return PASS_ON(rsend, (socket, buf, len, flags), no_rsocket());
}

RDMAEP_API ssize_t rsendto(int socket, const void *buf, size_t len, int flags,
			   const struct sockaddr *dest_addr, socklen_t addrlen)
{
	return PASS_ON(rsendto, (socket, buf, len, flags, dest_addr, addrlen), no_rsocket());
}

RDMAEP_API ssize_t rsendmsg(int socket, const struct msghdr *msg, int flags)
{
	return PASS_ON(rsendmsg, (socket, msg, flags), no_rsocket());
}

RDMAEP_API ssize_t rread(int socket, void *buf, size_t count)
{
	return PASS_ON(rread, (socket, buf, count), no_rsocket());
}

RDMAEP_API ssize_t rreadv(int socket, const struct iovec *iov, int iovcnt)
{
	return PASS_ON(rreadv, (socket, iov, iovcnt), no_rsocket());
}

RDMAEP_API ssize_t rwrite(int socket, const void *buf, size_t count)
{
	return PASS_ON(rwrite, (socket, buf, count), no_rsocket());
}

RDMAEP_API ssize_t rwritev(int socket, const struct iovec *iov, int iovcnt)
{
	return PASS_ON(rwritev, (socket, iov, iovcnt), no_rsocket());
}

RDMAEP_API int rgetpeername(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	return PASS_ON(rgetpeername, (socket, addr, addrlen), no_rsocket());
}

RDMAEP_API int rgetsockname(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	return PASS_ON(rgetsockname, (socket, addr, addrlen), no_rsocket());
}

RDMAEP_API int rsetsockopt(int socket, int level, int optname, const void *optval, socklen_t optlen)
{
	return PASS_ON(rsetsockopt, (socket, level, optname, optval, optlen), no_rsocket());
}

RDMAEP_API int rgetsockopt(int socket, int level, int optname, void *optval, socklen_t *optlen)
{
	return PASS_ON(rgetsockopt, (socket, level, optname, optval, optlen), no_rsocket());
}

RDMAEP_API off_t riomap(int socket, void *buf, size_t len, int prot, int flags, off_t offset)
{
	return PASS_ON(riomap, (socket, buf, len, prot, flags, offset), no_rsocket());
}

RDMAEP_API int riounmap(int socket, void *buf, size_t len)
{
	return PASS_ON(riounmap, (socket, buf, len), no_rsocket());
}

RDMAEP_API size_t riowrite(int socket, const void *buf, size_t count, off_t offset, int flags)
{
	return PASS_ON(riowrite, (socket, buf, count, offset, flags), no_rsocket());
}
