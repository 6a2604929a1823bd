// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The names of librdmacm's sockets over RDMA, which this library does not
 * have. Programs that never call them refer to them all the same: rping and
 * the other examples of rdma-core are linked with a common file that does, and
 * ld.so wants every name when lazy binding is off.
 *
 * rsocket() fails, so there is no descriptor for the others to work on. As in
 * librdmacm, rpoll(), rselect() and repoll_wait() take descriptors of other
 * kinds.
 */
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include <rdma/rsocket.h>

#include "rdmaep-internal.h"

/* Headers before rdma-core 65 lack these. */
int repoll_create(int flags);
int repoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
int repoll_wait(int epfd, struct epoll_event *events, int maxevents,
		int timeout);

/* None of them looks at what it was given. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

static int no_rsocket(void)
{
	errno = EBADF;
	return -1;
}

RDMAEP_API int rsocket(int domain, int type, int protocol)
{
	return rdmaep_fail(EAFNOSUPPORT, RDMA_EP_REASON_NONE,
			   "librdmaep has no rsockets");
}

RDMAEP_API int rpoll(struct pollfd *fds, nfds_t nfds, int timeout)
{
	return poll(fds, nfds, timeout);
}

RDMAEP_API int rselect(int nfds, fd_set *readfds, fd_set *writefds,
		       fd_set *exceptfds, struct timeval *timeout)
{
	return select(nfds, readfds, writefds, exceptfds, timeout);
}

RDMAEP_API int repoll_create(int flags)
{
	/* Callers with a size, as for epoll_create(2), are served too. */
	return epoll_create1(flags & EPOLL_CLOEXEC);
}

RDMAEP_API int repoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	return epoll_ctl(epfd, op, fd, event);
}

RDMAEP_API int repoll_wait(int epfd, struct epoll_event *events, int maxevents,
			   int timeout)
{
	return epoll_wait(epfd, events, maxevents, timeout);
}

RDMAEP_API int rbind(int socket, const struct sockaddr *addr, socklen_t addrlen)
{
	return no_rsocket();
}

RDMAEP_API int rlisten(int socket, int backlog)
{
	return no_rsocket();
}

RDMAEP_API int raccept(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	return no_rsocket();
}

RDMAEP_API int rconnect(int socket, const struct sockaddr *addr,
			socklen_t addrlen)
{
	return no_rsocket();
}

RDMAEP_API int rshutdown(int socket, int how)
{
	return no_rsocket();
}

RDMAEP_API int rclose(int socket)
{
	return no_rsocket();
}

RDMAEP_API ssize_t rrecv(int socket, void *buf, size_t len, int flags)
{
	return no_rsocket();
}

RDMAEP_API ssize_t rrecvfrom(int socket, void *buf, size_t len, int flags,
			     struct sockaddr *src_addr, socklen_t *addrlen)
{
	return no_rsocket();
}

RDMAEP_API ssize_t rrecvmsg(int socket, struct msghdr *msg, int flags)
{
	return no_rsocket();
}

RDMAEP_API ssize_t rsend(int socket, const void *buf, size_t len, int flags)
{
	return no_rsocket();
}

RDMAEP_API ssize_t rsendto(int socket, const void *buf, size_t len, int flags,
			   const struct sockaddr *dest_addr, socklen_t addrlen)
{
	return no_rsocket();
}

RDMAEP_API ssize_t rsendmsg(int socket, const struct msghdr *msg, int flags)
{
	return no_rsocket();
}

RDMAEP_API ssize_t rread(int socket, void *buf, size_t count)
{
	return no_rsocket();
}

RDMAEP_API ssize_t rreadv(int socket, const struct iovec *iov, int iovcnt)
{
	return no_rsocket();
}

RDMAEP_API ssize_t rwrite(int socket, const void *buf, size_t count)
{
	return no_rsocket();
}

RDMAEP_API ssize_t rwritev(int socket, const struct iovec *iov, int iovcnt)
{
	return no_rsocket();
}

RDMAEP_API int rgetpeername(int socket, struct sockaddr *addr,
			    socklen_t *addrlen)
{
	return no_rsocket();
}

RDMAEP_API int rgetsockname(int socket, struct sockaddr *addr,
			    socklen_t *addrlen)
{
	return no_rsocket();
}

RDMAEP_API int rsetsockopt(int socket, int level, int optname,
			   const void *optval, socklen_t optlen)
{
	return no_rsocket();
}

RDMAEP_API int rgetsockopt(int socket, int level, int optname, void *optval,
			   socklen_t *optlen)
{
	return no_rsocket();
}

RDMAEP_API int rfcntl(int socket, int cmd, ...)
{
	return no_rsocket();
}

RDMAEP_API off_t riomap(int socket, void *buf, size_t len, int prot, int flags,
			off_t offset)
{
	return no_rsocket();
}

RDMAEP_API int riounmap(int socket, void *buf, size_t len)
{
	return no_rsocket();
}

RDMAEP_API size_t riowrite(int socket, const void *buf, size_t count,
			   off_t offset, int flags)
{
	return no_rsocket();
}
