// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Channels, and waiting at an endpoint: whole records in order, none lost and
 * none twice, whoever reads, moves, closes or interrupts.
 */
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/uio.h>
#ifdef HAVE_LIBURING
#include <liburing.h>
#endif

#include "rdma_ep_utils.h"

#define REC	sizeof(struct rdma_ep_record)

static void *const volatile nowhere;	/* the compiler shall not know */

FIXTURE(channel)
{
	struct test_ctx ctx;
	int fd;
	int chan;
	int other;		/* a second channel */
	uint32_t ep;		/* whose events go to chan */
	struct rdma_ep_record rec;
};

FIXTURE_SETUP(channel)
{
	ctx_open(_metadata, &self->ctx);
	self->fd = self->ctx.fd;
	do_ok(try_create_channel(self->fd, O_CLOEXEC, &self->chan));
	do_ok(try_create_channel(self->fd, O_CLOEXEC, &self->other));
	do_ok(try_create(self->fd, PS_TCP, self->chan, 0, &self->ep));
}

FIXTURE_TEARDOWN(channel)
{
	close(self->chan);
	close(self->other);
	ctx_close(_metadata, &self->ctx);
}

static void write_events(struct __test_metadata *_metadata, int fd,
			 uint32_t ep, int first, int count)
{
	int i;

	for (i = first; i < first + count; i++)
		do_ok(try_write_event(fd, ep, 0, i));
}

static void read_events(struct __test_metadata *_metadata, int chan, int first,
			int count)
{
	struct rdma_ep_record rec;
	int i;

	for (i = first; i < first + count; i++) {
		read_event(_metadata, chan, RDMA_EP_EVENT_USER, &rec);
		ASSERT_EQ(i, rec.arg);
	}
}

static int set_nonblock(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);

	return fcntl(fd, F_SETFL, on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK);
}

/* @ep is the listener of @s: a second endpoint connects to it */
static void make_pending_request(struct __test_metadata *_metadata, int fd,
				 struct situation *s)
{
	struct rdma_ep_conn_param param = conn_param(NULL, 0);
	struct rdma_ep_record rec;
	uint32_t had;

	do_ok(try_query(fd, s->listener, RDMA_EP_REC_INFO, &rec));
	had = rec.info.requests;
	s->active = make_active(_metadata, fd, s);
	do_ok(try_connect(fd, s->active, 0, &param, NULL));
	do {
		usleep(5000);
		do_ok(try_query(fd, s->listener, RDMA_EP_REC_INFO, &rec));
	} while (rec.info.requests == had);
}

/*
 * read(2)
 */

TEST_F(channel, exact_buffer_gets_one_record)
{
	uint8_t buf[REC + 64];

	write_events(_metadata, self->fd, self->ep, 0, 3);
	memset(buf, 0xa5, sizeof(buf));
	EXPECT_GT(REC, read(self->chan, buf, REC));
	memcpy(&self->rec, buf, sizeof(self->rec));
	EXPECT_EQ(0, self->rec.arg);
	/* nothing is written beyond the record */
	EXPECT_TRUE(is_filled(buf + self->rec.size,
			      sizeof(buf) - self->rec.size, 0xa5));
	read_events(_metadata, self->chan, 1, 2);
}

TEST_F(channel, small_buffer)
{
	size_t len;

	write_events(_metadata, self->fd, self->ep, 7, 1);
	for (len = 0; len < REC; len++) {
		EXPECT_EQ(-1, read(self->chan, &self->rec, len));
		EXPECT_EQ(EINVAL, errno);
	}
	read_events(_metadata, self->chan, 7, 1);
	/* the length is looked at before anything blocks */
	EXPECT_EQ(-1, read(self->chan, &self->rec, REC - 1));
	EXPECT_EQ(EINVAL, errno);
}

/* As many whole records as fit, one after the other */
TEST_F(channel, several_records)
{
	uint8_t *buf = malloc(100 * REC);
	int next = 0, reads = 0;

	ASSERT_NE(NULL, buf);
	write_events(_metadata, self->fd, self->ep, 0, 100);
	while (next < 100) {
		ssize_t n = read(self->chan, buf, 4 * REC);
		ssize_t off;

		ASSERT_LT(0, n);
		ASSERT_GE(4 * REC, n);
		for (off = 0; off < n; off += self->rec.size) {
			memset(&self->rec, 0, sizeof(self->rec));
			memcpy(&self->rec, buf + off, REC < (size_t)(n - off) ?
			       REC : (size_t)(n - off));
			ASSERT_LE(off + self->rec.size, n);
			EXPECT_EVENT(USER, &self->rec);
			EXPECT_EQ(next, self->rec.arg);
			next++;
		}
		reads++;
	}
	EXPECT_EQ(100, next);
	EXPECT_GT(50, reads);
	free(buf);
	EXPECT_FALSE(is_readable(self->chan, 0));
}

TEST_F(channel, vectors)
{
	struct iovec iov[3];
	uint8_t buf[REC + 1];
	ssize_t n;

	write_events(_metadata, self->fd, self->ep, 3, 1);
	iov[0] = (struct iovec){ buf, 10 };
	iov[1] = (struct iovec){ buf + 10, 1 };
	iov[2] = (struct iovec){ buf + 11, REC - 11 };
	n = readv(self->chan, iov, 3);
	ASSERT_LT(0, n);
	memset(&self->rec, 0, sizeof(self->rec));
	memcpy(&self->rec, buf, n);
	EXPECT_EQ(n, self->rec.size);
	EXPECT_EQ(3, self->rec.arg);
	EXPECT_GOOD_RECORD(&self->rec);
}

/* A record that could not be written is the next one to be read */
TEST_F(channel, fault_puts_the_record_back)
{
	const size_t page = sysconf(_SC_PAGESIZE);
	uint8_t *map = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ssize_t n;

	ASSERT_NE(MAP_FAILED, map);
	ASSERT_EQ(0, mprotect(map + page, page, PROT_NONE));
	write_events(_metadata, self->fd, self->ep, 0, 4);

	EXPECT_EQ(-1, read(self->chan, nowhere, REC));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(-1, read(self->chan, map + page, REC));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(-1, read(self->chan, map + page - 64, REC));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_TRUE(is_readable(self->chan, 0));

	/* what was copied is returned; what was not is still there */
	n = read(self->chan, map + page - 130, 4 * REC);
	EXPECT_EQ(120, n);
	memset(&self->rec, 0, sizeof(self->rec));
	memcpy(&self->rec, map + page - 130, 120);
	EXPECT_EQ(0, self->rec.arg);
	read_events(_metadata, self->chan, 1, 3);
	munmap(map, 3 * page);
}

/* The same for a request, whose endpoint must not be lost */
TEST_F(channel, fault_puts_the_request_back)
{
	struct situation s = { .family = AF_INET, .ps = PS_TCP };

	make_listener(_metadata, self->fd, &s, 4);
	do_ok(try_attach(self->fd, s.listener, self->chan));
	make_pending_request(_metadata, self->fd, &s);
	EXPECT_EQ(-1, read(self->chan, nowhere, REC));
	EXPECT_EQ(EFAULT, errno);
	do_ok(try_query(self->fd, s.listener, RDMA_EP_REC_INFO, &self->rec));
	EXPECT_EQ(1, self->rec.info.requests);
	read_event(_metadata, self->chan, RDMA_EP_EVENT_CONNECT_REQUEST,
		   &self->rec);
	do_ok(try_reject(self->fd, self->rec.child, 0, NULL, 0));
	do_ok(try_query(self->fd, s.listener, RDMA_EP_REC_INFO, &self->rec));
	EXPECT_EQ(0, self->rec.info.requests);
}

TEST_F(channel, only_reads)
{
	char byte = 0;

	EXPECT_EQ(-1, write(self->chan, &byte, 1));
	EXPECT_EQ(-1, pread(self->chan, &self->rec, REC, 1));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, 4096, PROT_READ, MAP_SHARED,
				   self->chan, 0));
	EXPECT_EQ(-1, read(self->fd, &self->rec, REC));
	EXPECT_EQ(-1, write(self->fd, &byte, 1));
}

TEST_F(channel, file_flags)
{
	struct rdma_ep_create_channel cmd = { .hdr = EP_HDR(cmd, 0) };
	const int good[] = { 0, O_NONBLOCK, O_CLOEXEC, O_NONBLOCK | O_CLOEXEC };
	const int bad[] = { O_RDWR, O_WRONLY, O_DIRECT, O_APPEND, 1 << 30,
			    O_CLOEXEC | O_CREAT };
	size_t i;
	int fd;

	for (i = 0; i < ARRAY_SIZE(good); i++) {
		do_ok(try_create_channel(self->fd, good[i], &fd));
		EXPECT_EQ(good[i] & O_NONBLOCK,
			  fcntl(fd, F_GETFL) & O_NONBLOCK);
		EXPECT_EQ(!!(good[i] & O_CLOEXEC),
			  !!(fcntl(fd, F_GETFD) & FD_CLOEXEC));
		EXPECT_EQ(O_RDONLY, fcntl(fd, F_GETFL) & O_ACCMODE);
		close(fd);
	}
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		do_err(EOPNOTSUPP, STRUCT,
		       try_create_channel(self->fd, bad[i], &fd));
}

TEST_F(channel, nonblock)
{

	ASSERT_EQ(0, set_nonblock(self->chan, true));
	EXPECT_EQ(-EAGAIN, try_read(self->chan, &self->rec));
	write_events(_metadata, self->fd, self->ep, 5, 1);
	read_events(_metadata, self->chan, 5, 1);
	EXPECT_EQ(-EAGAIN, try_read(self->chan, &self->rec));
}

/*
 * poll(2) and epoll(7)
 */

TEST_F(channel, poll)
{
	struct pollfd p = { .fd = self->chan, .events = POLLIN | POLLOUT };

	EXPECT_EQ(0, poll(&p, 1, 0));
	write_events(_metadata, self->fd, self->ep, 0, 2);
	EXPECT_EQ(1, poll(&p, 1, 0));
	EXPECT_EQ(POLLIN, p.revents);
	read_events(_metadata, self->chan, 0, 1);
	EXPECT_EQ(1, poll(&p, 1, 0));
	read_events(_metadata, self->chan, 1, 1);
	EXPECT_EQ(0, poll(&p, 1, 0));
}

static int epoll_on(int fd, uint32_t events)
{
	struct epoll_event ev = { .events = events };
	int epfd = epoll_create1(EPOLL_CLOEXEC);

	if (epfd >= 0 && epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &ev))
		return -1;
	return epfd;
}

TEST_F(channel, epoll_level)
{
	int epfd = epoll_on(self->chan, EPOLLIN);
	struct epoll_event ev;

	ASSERT_LE(0, epfd);
	EXPECT_EQ(0, epoll_wait(epfd, &ev, 1, 0));
	write_events(_metadata, self->fd, self->ep, 0, 1);
	EXPECT_EQ(1, epoll_wait(epfd, &ev, 1, 0));
	EXPECT_EQ(1, epoll_wait(epfd, &ev, 1, 0));
	EXPECT_EQ(EPOLLIN, ev.events);
	read_events(_metadata, self->chan, 0, 1);
	EXPECT_EQ(0, epoll_wait(epfd, &ev, 1, 0));
	close(epfd);
}

/* Every event is an edge, whether earlier ones were read or not */
TEST_F(channel, epoll_edge)
{
	int epfd = epoll_on(self->chan, EPOLLIN | EPOLLET);
	struct epoll_event ev;
	int i;

	ASSERT_LE(0, epfd);
	for (i = 0; i < 3; i++) {
		write_events(_metadata, self->fd, self->ep, i, 1);
		EXPECT_EQ(1, epoll_wait(epfd, &ev, 1, 0));
		EXPECT_EQ(0, epoll_wait(epfd, &ev, 1, 0));
	}
	/* so is an endpoint that brings events along */
	read_events(_metadata, self->chan, 0, 3);
	do_ok(try_attach(self->fd, self->ep, -1));
	write_events(_metadata, self->fd, self->ep, 3, 1);
	EXPECT_EQ(0, epoll_wait(epfd, &ev, 1, 0));
	do_ok(try_attach(self->fd, self->ep, self->chan));
	EXPECT_EQ(1, epoll_wait(epfd, &ev, 1, 0));
	close(epfd);
}

/*
 * Readers that sleep
 */

struct reader {
	pthread_t thread;
	int chan;
	int ret;
	struct rdma_ep_record rec;
	ssize_t n;
};

static void *reader_thread(void *arg)
{
	struct reader *r = arg;

	r->n = read(r->chan, &r->rec, sizeof(r->rec));
	r->ret = r->n < 0 ? -errno : 0;
	return NULL;
}

static bool thread_sleeps(void)
{
	char path[300], state = 0;
	struct dirent *ent;
	bool sleeps = true;
	DIR *dir = opendir("/proc/self/task");

	while (dir && (ent = readdir(dir))) {
		FILE *f;

		if (ent->d_name[0] == '.' || atoi(ent->d_name) == getpid())
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%s/stat",
			 ent->d_name);
		f = fopen(path, "r");
		if (!f)
			continue;
		if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1 || state != 'S')
			sleeps = false;
		fclose(f);
	}
	if (dir)
		closedir(dir);
	return sleeps;
}

/* Until every other thread of this process sleeps */
static void wait_for_sleep(void)
{
	int i;

	for (i = 0; i < 3; i++) {
		do
			usleep(20000);
		while (!thread_sleeps());
	}
}

static void reader_start(struct __test_metadata *_metadata, struct reader *r,
			 int chan)
{
	memset(r, 0, sizeof(*r));
	r->chan = chan;
	ASSERT_EQ(0, pthread_create(&r->thread, NULL, reader_thread, r));
	wait_for_sleep();
}

TEST_F(channel, reader_woken_by_an_event)
{
	struct reader r;

	reader_start(_metadata, &r, self->chan);
	write_events(_metadata, self->fd, self->ep, 42, 1);
	ASSERT_EQ(0, pthread_join(r.thread, NULL));
	ASSERT_EQ(0, r.ret);
	EXPECT_EQ(42, r.rec.arg);
}

/* The incumbent lets the new channel's reader sleep on */
TEST_F(channel, reader_woken_by_migration)
{
	struct reader r;

	write_events(_metadata, self->fd, self->ep, 42, 2);
	reader_start(_metadata, &r, self->other);
	do_ok(try_attach(self->fd, self->ep, self->other));
	ASSERT_EQ(0, pthread_join(r.thread, NULL));
	ASSERT_EQ(0, r.ret);
	EXPECT_EQ(42, r.rec.arg);
	read_events(_metadata, self->other, 43, 1);
}

/* A reader of the old channel is not disturbed, and sees later events of others */
TEST_F(channel, reader_of_the_old_channel)
{
	struct reader r;
	uint32_t ep;

	do_ok(try_create(self->fd, PS_TCP, self->chan, 0, &ep));
	reader_start(_metadata, &r, self->chan);
	do_ok(try_attach(self->fd, self->ep, self->other));
	write_events(_metadata, self->fd, self->ep, 1, 1);
	wait_for_sleep();
	write_events(_metadata, self->fd, ep, 2, 1);
	ASSERT_EQ(0, pthread_join(r.thread, NULL));
	EXPECT_EQ(2, r.rec.arg);
	read_events(_metadata, self->other, 1, 1);
}

TEST_F(channel, reader_woken_by_the_end_of_the_context)
{
	struct reader r;

	reader_start(_metadata, &r, self->chan);
	ASSERT_EQ(0, close(self->fd));
	self->ctx.fd = -1;
	ASSERT_EQ(0, pthread_join(r.thread, NULL));
	EXPECT_EQ(0, r.ret);
	EXPECT_EQ(0, r.n);
}

struct counting_reader {
	pthread_t thread;
	int chan;
	uint8_t seen[1000];
	int count;
};

static void *counting_thread(void *arg)
{
	struct counting_reader *r = arg;
	struct rdma_ep_record rec;

	while (read(r->chan, &rec, sizeof(rec)) > 0) {
		if (rec.arg >= sizeof(r->seen))
			break;
		r->seen[rec.arg]++;
		r->count++;
	}
	return NULL;
}

/* Two readers of one channel: every event once */
TEST_F(channel, two_readers)
{
	static struct counting_reader r[2];
	int i;

	for (i = 0; i < 2; i++) {
		r[i].chan = self->chan;
		ASSERT_EQ(0, pthread_create(&r[i].thread, NULL,
					    counting_thread, &r[i]));
	}
	for (i = 0; i < 1000; i++)
		while (try_write_event(self->fd, self->ep, 0, i))
			sched_yield();
	for (i = 0; i < 2; i++)
		while (try_write_event(self->fd, self->ep, 0, 5000))
			sched_yield();
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_join(r[i].thread, NULL));
	EXPECT_EQ(1000, r[0].count + r[1].count);
	for (i = 0; i < 1000; i++)
		ASSERT_EQ(1, r[0].seen[i] + r[1].seen[i]);
}

/* A channel is a file: a child process may read from it */
TEST_F(channel, read_by_a_child)
{
	int status;
	pid_t pid;

	write_events(_metadata, self->fd, self->ep, 9, 2);
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		_exit(try_read(self->chan, &self->rec) || self->rec.arg != 9);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	read_events(_metadata, self->chan, 10, 1);
}

/*
 * Moving between channels
 */

TEST_F(channel, attach_moves_events_in_order)
{
	uint32_t ep;
	int i;

	/* two endpoints, their events interleaved */
	do_ok(try_create(self->fd, PS_TCP, self->chan, 1, &ep));
	for (i = 0; i < 10; i++) {
		write_events(_metadata, self->fd, self->ep, i, 1);
		write_events(_metadata, self->fd, ep, 100 + i, 1);
	}
	do_ok(try_attach(self->fd, self->ep, self->other));
	read_events(_metadata, self->chan, 100, 10);
	EXPECT_FALSE(is_readable(self->chan, 0));
	read_events(_metadata, self->other, 0, 5);
	write_events(_metadata, self->fd, self->ep, 10, 1);
	/* and back, to behind what is there */
	write_events(_metadata, self->fd, ep, 110, 1);
	do_ok(try_attach(self->fd, self->ep, self->chan));
	EXPECT_FALSE(is_readable(self->other, 0));
	read_events(_metadata, self->chan, 110, 1);
	read_events(_metadata, self->chan, 5, 6);
	EXPECT_FALSE(is_readable(self->chan, 0));
}

TEST_F(channel, attach_to_none)
{
	write_events(_metadata, self->fd, self->ep, 0, 2);
	do_ok(try_attach(self->fd, self->ep, -1));
	EXPECT_FALSE(is_readable(self->chan, 0));
	wait_event(_metadata, self->fd, self->ep, RDMA_EP_EVENT_USER,
		   &self->rec);
	EXPECT_EQ(0, self->rec.arg);
	do_ok(try_attach(self->fd, self->ep, self->chan));
	read_events(_metadata, self->chan, 1, 1);
}

TEST_F(channel, attach_to_the_same)
{
	write_events(_metadata, self->fd, self->ep, 0, 3);
	do_ok(try_attach(self->fd, self->ep, self->chan));
	do_ok(try_attach(self->fd, self->ep, self->chan));
	read_events(_metadata, self->chan, 0, 3);
	EXPECT_FALSE(is_readable(self->chan, 0));
}

/* A listener's unread requests move with it (the incumbent leaves them behind) */
TEST_F(channel, attach_moves_requests)
{
	struct situation s = { .family = AF_INET, .ps = PS_TCP };
	struct rdma_ep_conn_param param = conn_param(NULL, 0);
	int i;

	make_listener(_metadata, self->fd, &s, 8);
	do_ok(try_attach(self->fd, s.listener, self->chan));
	for (i = 0; i < 3; i++)
		make_pending_request(_metadata, self->fd, &s);
	EXPECT_TRUE(is_readable(self->chan, 0));
	do_ok(try_attach(self->fd, s.listener, self->other));
	EXPECT_FALSE(is_readable(self->chan, 0));
	for (i = 0; i < 3; i++)
		read_event(_metadata, self->other,
			   RDMA_EP_EVENT_CONNECT_REQUEST, &self->rec);
	/* the last one's events go to where its request was read */
	s.passive = self->rec.child;
	do_ok(try_accept(self->fd, s.passive, 0, &param, NULL));
	wait_event(_metadata, self->fd, s.active,
		   RDMA_EP_EVENT_CONNECT_RESPONSE, &self->rec);
	do_ok(try_establish(self->fd, s.active));
	read_event(_metadata, self->other, RDMA_EP_EVENT_ESTABLISHED,
		   &self->rec);
	EXPECT_EQ(s.passive, self->rec.ep);
}

TEST_F(channel, new_channel)
{
	union test_addr src = host_addr(AF_INET, 0);
	struct rdma_ep_create create = {
		.hdr = EP_HDR(create, RDMA_EP_F_NEW_CHANNEL),
		.port_space = PS_TCP,
		.channel = -1,
	};
	struct rdma_ep_create_ep create_ep = {
		.hdr = EP_HDR(create_ep, RDMA_EP_F_NEW_CHANNEL |
			      RDMA_EP_CREATE_EP_PASSIVE),
		.port_space = PS_TCP,
		.channel = -1,
		.src = ep_addr(&src),
	};
	struct rdma_ep_attach attach = {
		.hdr = EP_HDR(attach, RDMA_EP_F_NEW_CHANNEL),
		.ep = self->ep,
		.channel = -1,
	};
	int fd[3], i;
	uint32_t ep[3];

	do_ok(ep_ioctl(self->fd, RDMA_EP_CREATE, &create));
	do_ok(ep_ioctl(self->fd, RDMA_EP_CREATE_EP, &create_ep));
	write_events(_metadata, self->fd, self->ep, 0, 1);
	do_ok(ep_ioctl(self->fd, RDMA_EP_ATTACH, &attach));
	EXPECT_FALSE(is_readable(self->chan, 0));
	fd[0] = create.channel;
	fd[1] = create_ep.channel;
	fd[2] = attach.channel;
	ep[0] = create.out_ep;
	ep[1] = create_ep.out_ep;
	ep[2] = self->ep;
	for (i = 0; i < 3; i++) {
		ASSERT_LE(0, fd[i]);
		EXPECT_EQ(FD_CLOEXEC, fcntl(fd[i], F_GETFD));
		EXPECT_FALSE(fcntl(fd[i], F_GETFL) & O_NONBLOCK);
		if (i < 2)
			write_events(_metadata, self->fd, ep[i], 0, 1);
		read_events(_metadata, fd[i], 0, 1);
		close(fd[i]);
	}
}

/* Out of file descriptors: EMFILE, not ENOMEM, and nothing is made */
TEST_F(channel, no_more_descriptors)
{
	struct rdma_ep_create create = {
		.hdr = EP_HDR(create, RDMA_EP_F_NEW_CHANNEL),
		.port_space = PS_TCP,
		.channel = -1,
	};
	struct rdma_ep_attach attach = {
		.hdr = EP_HDR(attach, RDMA_EP_F_NEW_CHANNEL),
		.ep = self->ep,
		.channel = -1,
	};
	struct rlimit limit, low;
	int fd;

	write_events(_metadata, self->fd, self->ep, 0, 1);
	ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &limit));
	low = limit;
	fd = dup(0);		/* the next free one */
	ASSERT_LE(0, fd);
	close(fd);
	low.rlim_cur = fd;
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &low));
	EXPECT_EQ(-EMFILE, try_create_channel(self->fd, 0, &fd));
	EXPECT_EQ(-EMFILE, ep_ioctl(self->fd, RDMA_EP_CREATE, &create));
	EXPECT_EQ(-EMFILE, ep_ioctl(self->fd, RDMA_EP_ATTACH, &attach));
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	EXPECT_EQ(1, count_endpoints(_metadata, self->fd));
	read_events(_metadata, self->chan, 0, 1);
}

/*
 * Closing and destroying
 */

/* Events stay at the endpoint when its channel is closed */
TEST_F(channel, closed_channel)
{
	int chan;

	do_ok(try_create_channel(self->fd, 0, &chan));
	do_ok(try_attach(self->fd, self->ep, chan));
	write_events(_metadata, self->fd, self->ep, 0, 2);
	close(chan);
	write_events(_metadata, self->fd, self->ep, 2, 1);
	wait_event(_metadata, self->fd, self->ep, RDMA_EP_EVENT_USER,
		   &self->rec);
	EXPECT_EQ(0, self->rec.arg);
	/* and move on to another one */
	do_ok(try_attach(self->fd, self->ep, self->chan));
	read_events(_metadata, self->chan, 1, 2);
}

TEST_F(channel, closed_context)
{
	struct pollfd p = { .fd = self->chan, .events = POLLIN };
	int epfd = epoll_on(self->chan, EPOLLIN);
	struct epoll_event ev;

	ASSERT_LE(0, epfd);
	write_events(_metadata, self->fd, self->ep, 0, 2);
	ASSERT_EQ(0, close(self->fd));
	self->ctx.fd = -1;
	EXPECT_EQ(1, poll(&p, 1, 0));
	EXPECT_TRUE(p.revents & POLLHUP);
	EXPECT_EQ(1, epoll_wait(epfd, &ev, 1, 0));
	EXPECT_TRUE(ev.events & EPOLLHUP);
	EXPECT_EQ(0, read(self->chan, &self->rec, REC));
	EXPECT_EQ(0, read(self->other, &self->rec, REC));
	close(epfd);
}

/* An endpoint takes its unread events along, and only those */
TEST_F(channel, destroyed_endpoint)
{
	uint32_t ep;
	int i;

	do_ok(try_create(self->fd, PS_TCP, self->chan, 1, &ep));
	for (i = 0; i < 3; i++) {
		write_events(_metadata, self->fd, self->ep, i, 1);
		write_events(_metadata, self->fd, ep, 10 + i, 1);
	}
	do_ok(try_destroy(self->fd, self->ep));
	read_events(_metadata, self->chan, 10, 3);
	EXPECT_FALSE(is_readable(self->chan, 0));
	do_ok(try_destroy(self->fd, ep));
	EXPECT_FALSE(is_readable(self->chan, 0));
}

/*
 * Files that can be kept for the next endpoint: DESTROY says which
 */

/* Destroy an endpoint of @chan's, and ask whether @fd is idle then */
static bool idle_after_destroy(struct __test_metadata *_metadata, int ctx,
			       int chan, int fd)
{
	struct rdma_ep_destroy cmd = {
		.hdr = EP_HDR(cmd, 0),
		.num_fds = 2,
		.fd = { -1, fd },
	};

	do_ok(try_create(ctx, PS_TCP, chan, 0, &cmd.ep));
	do_ok(ep_ioctl(ctx, RDMA_EP_DESTROY, &cmd));
	EXPECT_EQ(0, cmd.out_idle & ~2);
	return cmd.out_idle & 2;
}

#define IS_IDLE(file) \
	idle_after_destroy(_metadata, self->fd, self->other, file)

TEST_F(channel, idle_channel)
{
	struct reader r;
	int fd, epfd;

	EXPECT_TRUE(IS_IDLE(self->other));
	/* this one has an endpoint */
	EXPECT_FALSE(IS_IDLE(self->chan));
	do_ok(try_destroy(self->fd, self->ep));
	EXPECT_TRUE(IS_IDLE(self->chan));

	/* an event of somebody else's */
	do_ok(try_create(self->fd, PS_TCP, self->other, 0, &self->ep));
	write_events(_metadata, self->fd, self->ep, 0, 1);
	EXPECT_FALSE(IS_IDLE(self->other));
	do_ok(try_destroy(self->fd, self->ep));
	EXPECT_TRUE(IS_IDLE(self->other));

	/* what the program has done to it */
	ASSERT_EQ(0, set_nonblock(self->other, true));
	EXPECT_FALSE(IS_IDLE(self->other));
	ASSERT_EQ(0, set_nonblock(self->other, false));
	fd = dup(self->other);
	EXPECT_FALSE(IS_IDLE(self->other));
	close(fd);
	epfd = epoll_on(self->other, EPOLLIN);
	EXPECT_FALSE(IS_IDLE(self->other));
	close(epfd);
	EXPECT_TRUE(IS_IDLE(self->other));

	/* a thread reads from it */
	reader_start(_metadata, &r, self->other);
	EXPECT_FALSE(IS_IDLE(self->other));
	do_ok(try_create(self->fd, PS_TCP, self->other, 0, &self->ep));
	write_events(_metadata, self->fd, self->ep, 0, 1);
	ASSERT_EQ(0, pthread_join(r.thread, NULL));
}

/* A completion channel of verbs is such a file; here a pipe stands for it */
TEST_F(channel, idle_files_of_other_kinds)
{
	int p[2], dir = open("/", O_RDONLY | O_CLOEXEC);

	ASSERT_EQ(0, pipe(p));
	EXPECT_TRUE(IS_IDLE(p[0]));
	ASSERT_EQ(1, write(p[1], "", 1));
	EXPECT_FALSE(IS_IDLE(p[0]));
	close(p[0]);
	close(p[1]);
	/* not one that can be read from, closed, the context itself */
	EXPECT_FALSE(IS_IDLE(dir));
	close(dir);
	EXPECT_FALSE(IS_IDLE(dir));
	EXPECT_FALSE(IS_IDLE(1000000));
	EXPECT_FALSE(IS_IDLE(self->fd));
}

TEST_F(channel, too_many_files)
{
	struct rdma_ep_destroy cmd = {
		.hdr = EP_HDR(cmd, 0),
		.ep = self->ep,
		.num_fds = RDMA_EP_DESTROY_FDS + 1,
	};

	do_err(EINVAL, VALUE, ep_ioctl(self->fd, RDMA_EP_DESTROY, &cmd));
	cmd.num_fds = UINT32_MAX;
	do_err(EINVAL, VALUE, ep_ioctl(self->fd, RDMA_EP_DESTROY, &cmd));
	cmd.num_fds = RDMA_EP_DESTROY_FDS;
	do_ok(ep_ioctl(self->fd, RDMA_EP_DESTROY, &cmd));
}

/*
 * Waiting at an endpoint
 */

TEST_F(channel, wait_takes_from_the_channel)
{
	write_events(_metadata, self->fd, self->ep, 0, 3);
	wait_event(_metadata, self->fd, self->ep, RDMA_EP_EVENT_USER,
		   &self->rec);
	EXPECT_EQ(0, self->rec.arg);
	do_ok(try_wait(self->fd, self->ep, RDMA_EP_WAIT_NOWAIT, &self->rec));
	EXPECT_EQ(1, self->rec.arg);
	read_events(_metadata, self->chan, 2, 1);
	EXPECT_EQ(-EAGAIN, try_wait(self->fd, self->ep, RDMA_EP_WAIT_NOWAIT,
				    &self->rec));
}

/* O_NONBLOCK of the channel is what decides, at the time of the call */
TEST_F(channel, wait_honours_nonblock)
{
	ASSERT_EQ(0, set_nonblock(self->chan, true));
	EXPECT_EQ(-EAGAIN, try_wait(self->fd, self->ep, 0, &self->rec));
	write_events(_metadata, self->fd, self->ep, 0, 1);
	do_ok(try_wait(self->fd, self->ep, 0, &self->rec));
	EXPECT_EQ(-EAGAIN, try_wait(self->fd, self->ep, 0, &self->rec));
}

/* The operation is started, and its event comes by the channel */
TEST_F(channel, operation_honours_nonblock)
{
	union test_addr dst = host_addr(AF_INET, 7);
	struct rdma_ep_conn_param param = conn_param(NULL, 0);

	ASSERT_EQ(0, set_nonblock(self->chan, true));
	EXPECT_EQ(-EAGAIN,
		  try_resolve_addr(self->fd, self->ep, RDMA_EP_F_WAIT |
				   RDMA_EP_RESOLVE_THEN_ROUTE, NULL, &dst,
				   RESOLVE_MS, &self->rec));
	ASSERT_TRUE(is_readable(self->chan, 30000));
	read_event(_metadata, self->chan, RDMA_EP_EVENT_ROUTE_RESOLVED,
		   &self->rec);
	EXPECT_EQ(-EAGAIN, try_connect(self->fd, self->ep, RDMA_EP_F_WAIT,
				       &param, &self->rec));
	ASSERT_TRUE(is_readable(self->chan, 30000));
	read_event(_metadata, self->chan, RDMA_EP_EVENT_REJECTED, &self->rec);
	EXPECT_EQ(-EAGAIN, try_read(self->chan, &self->rec));

	/* CREATE_EP waits whatever the channel says */
	{
		struct rdma_ep_create_ep cmd = {
			.hdr = EP_HDR(cmd, 0),
			.port_space = PS_TCP,
			.channel = self->chan,
			.timeout_ms = RESOLVE_MS,
			.dst = ep_addr(&dst),
		};

		do_ok(ep_ioctl(self->fd, RDMA_EP_CREATE_EP, &cmd));
		EXPECT_EQ(RDMA_EP_STATE_ROUTE_RESOLVED,
			  ep_state(_metadata, self->fd, cmd.out_ep));
	}
	EXPECT_EQ(-EAGAIN, try_read(self->chan, &self->rec));
}

struct waiter {
	pthread_t thread;
	int fd;
	uint32_t ep;
	int ret;
	uint32_t reason;
	struct rdma_ep_record rec;
};

static void *waiter_thread(void *arg)
{
	struct waiter *w = arg;

	w->ret = try_wait(w->fd, w->ep, 0, &w->rec);
	w->reason = ep_reason.code;
	return NULL;
}

static void waiter_start(struct __test_metadata *_metadata, struct waiter *w,
			 int fd, uint32_t ep)
{
	memset(w, 0, sizeof(*w));
	w->fd = fd;
	w->ep = ep;
	ASSERT_EQ(0, pthread_create(&w->thread, NULL, waiter_thread, w));
	wait_for_sleep();
}

TEST_F(channel, waiter_woken_by_an_event)
{
	struct waiter w;

	waiter_start(_metadata, &w, self->fd, self->ep);
	write_events(_metadata, self->fd, self->ep, 11, 1);
	ASSERT_EQ(0, pthread_join(w.thread, NULL));
	EXPECT_EQ(0, w.ret);
	EXPECT_EQ(11, w.rec.arg);
	EXPECT_FALSE(is_readable(self->chan, 0));
	/* what comes when nobody waits goes to the channel again */
	write_events(_metadata, self->fd, self->ep, 12, 1);
	read_events(_metadata, self->chan, 12, 1);
}

TEST_F(channel, waiter_woken_by_destroy)
{
	struct waiter w;

	waiter_start(_metadata, &w, self->fd, self->ep);
	do_ok(try_destroy(self->fd, self->ep));
	ASSERT_EQ(0, pthread_join(w.thread, NULL));
	EXPECT_EQ(-ECANCELED, w.ret);
	EXPECT_EQ(RDMA_EP_REASON_DESTROYED, w.reason);
}

/* Two threads, one event each; the rest is the channel's */
TEST_F(channel, two_waiters)
{
	struct waiter w[2];

	waiter_start(_metadata, &w[0], self->fd, self->ep);
	waiter_start(_metadata, &w[1], self->fd, self->ep);
	write_events(_metadata, self->fd, self->ep, 0, 3);
	ASSERT_EQ(0, pthread_join(w[0].thread, NULL));
	ASSERT_EQ(0, pthread_join(w[1].thread, NULL));
	EXPECT_EQ(0, w[0].ret);
	EXPECT_EQ(0, w[1].ret);
	EXPECT_NE(w[0].rec.arg, w[1].rec.arg);
	EXPECT_GE(1, w[0].rec.arg);
	EXPECT_GE(1, w[1].rec.arg);
	read_events(_metadata, self->chan, 2, 1);
}

/* Where a request's endpoint sends its events is said by who takes the request */
TEST_F(channel, wait_for_requests)
{
	struct situation s = { .family = AF_INET, .ps = PS_TCP };
	struct rdma_ep_wait cmd;
	int made = -1, i;

	make_listener(_metadata, self->fd, &s, 8);
	for (i = 0; i < 3; i++) {
		struct rdma_ep_conn_param param = conn_param(NULL, 0);
		uint32_t child;
		int chan;

		make_pending_request(_metadata, self->fd, &s);
		cmd = (struct rdma_ep_wait){
			.hdr = EP_HDR(cmd, i == 2 ? RDMA_EP_F_NEW_CHANNEL : 0),
			.ep = s.listener,
			.record_len = REC,
			.record_uptr = UPTR(&self->rec),
			.child_cookie = 0x1000 + i,
			.child_channel = i == 1 ? self->other : -1,
		};
		if (i == 1) {
			/* a bad one leaves the request where it is */
			cmd.child_channel = self->fd;
			do_err(EBADF, CHANNEL,
			       ep_ioctl(self->fd, RDMA_EP_WAIT, &cmd));
			cmd.child_channel = self->other;
		}
		do_ok(ep_ioctl(self->fd, RDMA_EP_WAIT, &cmd));
		EXPECT_EVENT(CONNECT_REQUEST, &self->rec);
		EXPECT_EQ(0x11, self->rec.cookie);
		if (i == 2)
			made = cmd.child_channel;
		chan = i == 1 ? self->other : made;
		child = self->rec.child;
		do_ok(try_accept(self->fd, child, 0, &param, NULL));
		wait_event(_metadata, self->fd, s.active,
			   RDMA_EP_EVENT_CONNECT_RESPONSE, &self->rec);
		do_ok(try_establish(self->fd, s.active));
		if (i == 0)
			wait_event(_metadata, self->fd, child,
				   RDMA_EP_EVENT_ESTABLISHED, &self->rec);
		else
			read_event(_metadata, chan, RDMA_EP_EVENT_ESTABLISHED,
				   &self->rec);
		EXPECT_EQ(child, self->rec.ep);
		EXPECT_EQ(0x1000 + i, self->rec.cookie);
	}
	ASSERT_LE(0, made);
	EXPECT_EQ(FD_CLOEXEC, fcntl(made, F_GETFD));
	close(made);

	/* not a request: no channel is made */
	cmd = (struct rdma_ep_wait){
		.hdr = EP_HDR(cmd, RDMA_EP_F_NEW_CHANNEL),
		.ep = self->ep,
		.record_len = REC,
		.record_uptr = UPTR(&self->rec),
		.child_channel = -1,
	};
	write_events(_metadata, self->fd, self->ep, 0, 1);
	do_ok(ep_ioctl(self->fd, RDMA_EP_WAIT, &cmd));
	EXPECT_EQ(-1, cmd.child_channel);
}

/* A wait that fails puts the request back where it was: before the next one */
TEST_F(channel, failed_wait_keeps_the_order)
{
	struct situation s = { .family = AF_INET, .ps = PS_TCP };
	struct rdma_ep_wait cmd = {
		.hdr = EP_HDR(cmd, 0),
		.record_len = REC,
		.record_uptr = UPTR(&self->rec),
		.child_channel = self->fd,
	};
	struct sockaddr_in *dst = (void *)&self->rec.info.dst.sa;
	uint16_t port[2];
	int i;

	make_listener(_metadata, self->fd, &s, 8);
	do_ok(try_attach(self->fd, s.listener, self->chan));
	for (i = 0; i < 2; i++) {
		make_pending_request(_metadata, self->fd, &s);
		do_ok(try_query(self->fd, s.active, RDMA_EP_REC_INFO, &self->rec));
		port[i] = ((struct sockaddr_in *)&self->rec.info.src.sa)->sin_port;
	}
	cmd.ep = s.listener;
	do_err(EBADF, CHANNEL, ep_ioctl(self->fd, RDMA_EP_WAIT, &cmd));
	for (i = 0; i < 2; i++) {
		read_event(_metadata, self->chan, RDMA_EP_EVENT_CONNECT_REQUEST,
			   &self->rec);
		EXPECT_EQ(port[i], dst->sin_port);
	}
}

/*
 * Signals
 */

static volatile sig_atomic_t signals;

static void count_signal(int sig)
{
	(void)sig;
	signals++;
}

/* A signal in a moment; @flags are those of sigaction() */
static void signal_soon(struct __test_metadata *_metadata, int flags)
{
	struct sigaction action = {
		.sa_handler = count_signal,
		.sa_flags = flags,
	};
	struct itimerval timer = { .it_value.tv_usec = 300000 };

	signals = 0;
	ASSERT_EQ(0, sigaction(SIGALRM, &action, NULL));
	ASSERT_EQ(0, setitimer(ITIMER_REAL, &timer, NULL));
}

struct late_event {
	pthread_t thread;
	int fd;
	uint32_t ep;
};

/* Writes an event once the signal has been handled */
static void *late_thread(void *arg)
{
	struct late_event *l = arg;

	while (!signals)
		usleep(10000);
	usleep(200000);
	try_write_event(l->fd, l->ep, 0, 77);
	return NULL;
}

static void late_event_start(struct __test_metadata *_metadata,
			     struct late_event *l, int fd, uint32_t ep)
{
	sigset_t set;

	l->fd = fd;
	l->ep = ep;
	/* the signal is for the thread that sleeps */
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	ASSERT_EQ(0, pthread_sigmask(SIG_BLOCK, &set, NULL));
	signals = 0;
	ASSERT_EQ(0, pthread_create(&l->thread, NULL, late_thread, l));
	ASSERT_EQ(0, pthread_sigmask(SIG_UNBLOCK, &set, NULL));
}

TEST_F(channel, read_interrupted)
{
	struct late_event l;

	signal_soon(_metadata, 0);
	EXPECT_EQ(-EINTR, try_read(self->chan, &self->rec));
	EXPECT_EQ(1, signals);

	late_event_start(_metadata, &l, self->fd, self->ep);
	signal_soon(_metadata, SA_RESTART);
	read_event(_metadata, self->chan, RDMA_EP_EVENT_USER, &self->rec);
	EXPECT_EQ(77, self->rec.arg);
	EXPECT_EQ(1, signals);
	ASSERT_EQ(0, pthread_join(l.thread, NULL));
}

TEST_F(channel, wait_interrupted)
{
	struct late_event l;

	signal_soon(_metadata, 0);
	EXPECT_EQ(-EINTR, try_wait(self->fd, self->ep, 0, &self->rec));
	EXPECT_EQ(1, signals);

	late_event_start(_metadata, &l, self->fd, self->ep);
	signal_soon(_metadata, SA_RESTART);
	wait_event(_metadata, self->fd, self->ep, RDMA_EP_EVENT_USER,
		   &self->rec);
	EXPECT_EQ(77, self->rec.arg);
	EXPECT_EQ(1, signals);
	ASSERT_EQ(0, pthread_join(l.thread, NULL));
}

/*
 * A connect that takes 1.5 s, and a signal in between: the call ends, the
 * operation does not; it is not started twice, and its event comes once.
 */
static void slow_connect(struct __test_metadata *_metadata,
			 FIXTURE_DATA(channel) *self)
{
	const uint32_t timeout_ms = 1500;
	union test_addr dst = nobody_addr(AF_INET, 4711);

	do_ok(try_set_option(self->fd, self->ep, RDMA_EP_OPT_CONNECT_TIMEOUT,
			     &timeout_ms, sizeof(timeout_ms)));
	do_ok(try_resolve_addr(self->fd, self->ep, RDMA_EP_F_WAIT |
			       RDMA_EP_RESOLVE_THEN_ROUTE, NULL, &dst,
			       RESOLVE_MS, &self->rec));
	ASSERT_EVENT(ROUTE_RESOLVED, &self->rec);
}

TEST_F(channel, connect_interrupted)
{
	struct rdma_ep_connect cmd = {
		.hdr = EP_HDR(cmd, RDMA_EP_F_WAIT),
		.ep = self->ep,
		.record_len = REC,
		.record_uptr = UPTR(&self->rec),
		.param = conn_param(NULL, 0),
	};

	slow_connect(_metadata, self);
	signal_soon(_metadata, 0);
	EXPECT_EQ(-EINTR, ep_ioctl(self->fd, RDMA_EP_CONNECT, &cmd));
	EXPECT_EQ(1, signals);
	/* the endpoint is usable, and busy */
	EXPECT_EQ(RDMA_EP_STATE_CONNECTING,
		  ep_state(_metadata, self->fd, self->ep));
	/* as if it had not been waited for */
	read_event(_metadata, self->chan, RDMA_EP_EVENT_UNREACHABLE,
		   &self->rec);
	EXPECT_EQ(-ETIMEDOUT, self->rec.status);
	expect_silence(_metadata, self->fd, self->ep, 300);
}

/* The caller restarts it by itself */
TEST_F(channel, connect_resumed)
{
	struct rdma_ep_connect cmd = {
		.hdr = EP_HDR(cmd, RDMA_EP_F_WAIT),
		.ep = self->ep,
		.record_len = REC,
		.record_uptr = UPTR(&self->rec),
		.param = conn_param(NULL, 0),
	};

	slow_connect(_metadata, self);
	signal_soon(_metadata, 0);
	EXPECT_EQ(-EINTR, ep_ioctl(self->fd, RDMA_EP_CONNECT, &cmd));
	EXPECT_TRUE(cmd.hdr.flags & RDMA_EP_F_RESUME);
	cmd.hdr.flags |= RDMA_EP_F_RESUME;
	do_ok(ep_ioctl(self->fd, RDMA_EP_CONNECT, &cmd));
	EXPECT_EVENT(UNREACHABLE, &self->rec);
	expect_silence(_metadata, self->fd, self->ep, 100);
}

TEST_F(channel, connect_restarted)
{
	struct rdma_ep_connect cmd = {
		.hdr = EP_HDR(cmd, RDMA_EP_F_WAIT),
		.ep = self->ep,
		.record_len = REC,
		.record_uptr = UPTR(&self->rec),
		.param = conn_param(NULL, 0),
	};

	slow_connect(_metadata, self);
	signal_soon(_metadata, SA_RESTART);
	do_ok(ep_ioctl(self->fd, RDMA_EP_CONNECT, &cmd));
	EXPECT_EQ(1, signals);
	EXPECT_GOOD_RECORD(&self->rec);
	EXPECT_EVENT(UNREACHABLE, &self->rec);
	EXPECT_FALSE(is_readable(self->chan, 300));
}

/* The endpoint is there when a signal came, and the call can go on with it */
TEST_F(channel, create_ep_interrupted)
{
	union test_addr dst = nobody_addr(AF_INET, 4711);
	struct rdma_ep_create_ep cmd = {
		.hdr = EP_HDR(cmd, 0),
		.port_space = PS_TCP,
		.channel = -1,
		.timeout_ms = 60000,
		.dst = ep_addr(&dst),
	};
	int ret, resumed, restarted, wrong;
	uint32_t ep;

	ASSERT_EQ(0, host_netdev_arp(true));
	signal_soon(_metadata, 0);
	ret = ep_ioctl(self->fd, RDMA_EP_CREATE_EP, &cmd);
	ep = cmd.out_ep;
	EXPECT_TRUE(cmd.hdr.flags & RDMA_EP_F_RESUME);
	EXPECT_EQ(RDMA_EP_STATE_RESOLVING_ADDR,
		  ep_state(_metadata, self->fd, ep));
	/* one of which nothing is under way stays as it is */
	cmd.out_ep = self->ep;
	wrong = ep_ioctl(self->fd, RDMA_EP_CREATE_EP, &cmd);
	do_ok(try_destroy(self->fd, ep));

	cmd.timeout_ms = 1000;
	cmd.hdr.flags = 0;
	signal_soon(_metadata, 0);
	EXPECT_EQ(-EINTR, ep_ioctl(self->fd, RDMA_EP_CREATE_EP, &cmd));
	EXPECT_EQ(2, count_endpoints(_metadata, self->fd));
	resumed = ep_ioctl(self->fd, RDMA_EP_CREATE_EP, &cmd);
	EXPECT_EQ(1, count_endpoints(_metadata, self->fd));

	cmd.hdr.flags = 0;
	signal_soon(_metadata, SA_RESTART);
	restarted = ep_ioctl(self->fd, RDMA_EP_CREATE_EP, &cmd);
	EXPECT_EQ(0, host_netdev_arp(false));
	EXPECT_EQ(-EINTR, ret);
	EXPECT_EQ(-ENODATA, wrong);
	EXPECT_TRUE(resumed == -ETIMEDOUT || resumed == -EHOSTUNREACH)
		TH_LOG("%s", strerror(-resumed));
	EXPECT_TRUE(restarted == -ETIMEDOUT || restarted == -EHOSTUNREACH)
		TH_LOG("%s", strerror(-restarted));
	EXPECT_EQ(1, signals);
	EXPECT_EQ(1, count_endpoints(_metadata, self->fd));
}

/* A process that is killed while it waits does go */
TEST_F(channel, killed_while_waiting)
{
	int status;
	pid_t pid;

	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		try_wait(self->fd, self->ep, 0, &self->rec);
		_exit(0);
	}
	usleep(300000);
	ASSERT_EQ(0, kill(pid, SIGKILL));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));
	write_events(_metadata, self->fd, self->ep, 1, 1);
	read_events(_metadata, self->chan, 1, 1);
}

/*
 * io_uring
 */

#ifdef HAVE_LIBURING
static int uring_result(struct io_uring *ring)
{
	struct __kernel_timespec ts = { .tv_sec = 60 };
	struct io_uring_cqe *cqe;
	int ret = io_uring_wait_cqe_timeout(ring, &cqe, &ts);

	if (ret)
		return ret;
	ret = cqe->res;
	io_uring_cqe_seen(ring, cqe);
	return ret;
}

TEST_F(channel, io_uring)
{
	struct io_uring_cqe *cqe;
	struct io_uring_sqe *sqe;
	struct io_uring ring;
	int ret = io_uring_queue_init(8, &ring, 0);

	if (ret == -ENOSYS || ret == -EPERM)
		SKIP(return, "this kernel has no io_uring");
	ASSERT_EQ(0, ret);

	/* a read that has to wait */
	sqe = io_uring_get_sqe(&ring);
	io_uring_prep_read(sqe, self->chan, &self->rec, REC, 0);
	ASSERT_EQ(1, io_uring_submit(&ring));
	EXPECT_EQ(-EAGAIN, io_uring_peek_cqe(&ring, &cqe));
	write_events(_metadata, self->fd, self->ep, 1, 1);
	EXPECT_LT(0, uring_result(&ring));
	EXPECT_EQ(1, self->rec.arg);

	/* one that does not */
	write_events(_metadata, self->fd, self->ep, 2, 1);
	sqe = io_uring_get_sqe(&ring);
	io_uring_prep_read(sqe, self->chan, &self->rec, REC, 0);
	ASSERT_EQ(1, io_uring_submit(&ring));
	EXPECT_LT(0, uring_result(&ring));
	EXPECT_EQ(2, self->rec.arg);

	/* poll */
	sqe = io_uring_get_sqe(&ring);
	io_uring_prep_poll_add(sqe, self->chan, POLLIN);
	ASSERT_EQ(1, io_uring_submit(&ring));
	EXPECT_EQ(-EAGAIN, io_uring_peek_cqe(&ring, &cqe));
	write_events(_metadata, self->fd, self->ep, 3, 1);
	EXPECT_EQ(POLLIN, uring_result(&ring) & POLLIN);
	read_events(_metadata, self->chan, 3, 1);

	/* a read that is under way when the context ends */
	sqe = io_uring_get_sqe(&ring);
	io_uring_prep_read(sqe, self->chan, &self->rec, REC, 0);
	ASSERT_EQ(1, io_uring_submit(&ring));
	EXPECT_EQ(-EAGAIN, io_uring_peek_cqe(&ring, &cqe));
	ASSERT_EQ(0, close(self->fd));
	self->ctx.fd = -1;
	EXPECT_EQ(0, uring_result(&ring));
	io_uring_queue_exit(&ring);
}
#endif

TEST_HARNESS_MAIN
