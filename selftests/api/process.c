// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What programs do to the process that the library lives in: they close files
 * that are not theirs, fork and exit, copy channels, leave ids behind.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "api_utils.h"

FIXTURE(process) {
	struct objects before;
	struct pair pair;
};

FIXTURE_SETUP(process)
{
	self->before = count_objects();
	self->pair = (struct pair){ .family = AF_INET, .ps = RDMA_PS_TCP };
}

FIXTURE_TEARDOWN(process)
{
	pair_destroy(&self->pair);
	expect_no_leak(&self->before);
}

/* Run in a child; its exit code, which says what failed */
static int in_child(int (*run)(void))
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(run());
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

static int try_channel(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id;

	if (!channel)
		return 1;
	if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP))
		return 2;
	if (rdma_destroy_id(id))
		return 3;
	rdma_destroy_event_channel(channel);
	return 0;
}

static void _expect_rejected(struct __test_metadata *_metadata,
			     struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event = next_event(channel);

	ASSERT_NE(NULL, event);
	EXPECT_EQ(RDMA_CM_EVENT_REJECTED, event->event);
	ok(rdma_ack_cm_event(event));
}

#define expect_rejected(channel) _expect_rejected(_metadata, channel)

static void close_all(void)
{
	int fd;

	for (fd = 3; fd < 1024; fd++)
		close(fd);
}

static int grandchild(void)
{
	return fcntl(3, F_GETFD) < 0 ? 1 : try_channel();
}

/* It looks whether there is RDMA, closes all files, and opens a log. */
static int daemon_with_log(void)
{
	if (try_channel())
		return 10;
	close_all();
	if (open("/dev/null", O_WRONLY | O_CLOEXEC) != 3)
		return 20;
	if (in_child(grandchild))
		return 30;
	if (fcntl(3, F_GETFD) < 0)
		return 40;
	if (try_channel())
		return 50;
	return fcntl(3, F_GETFD) < 0 ? 60 : try_channel();
}

static int daemon_without_log(void)
{
	if (try_channel())
		return 10;
	close_all();
	if (in_child(try_channel))
		return 20;
	return try_channel();
}

/* A channel that was kept goes with the rest. */
static int daemon_after_endpoint(void)
{
	struct rdma_cm_id *id;

	if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) || rdma_destroy_id(id))
		return 10;
	close_all();
	if (open("/dev/null", O_WRONLY) != 3 || open("/dev/null", O_WRONLY) != 4)
		return 20;
	if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) || rdma_destroy_id(id))
		return 30;
	return fcntl(3, F_GETFD) < 0 || fcntl(4, F_GETFD) < 0 ? 40 : try_channel();
}

TEST_F(process, files_closed)
{
	EXPECT_EQ(0, in_child(daemon_with_log));
	EXPECT_EQ(0, in_child(daemon_without_log));
	EXPECT_EQ(0, in_child(daemon_after_endpoint));
}

static int without_stdin(void)
{
	close(STDIN_FILENO);
	if (try_channel())
		return 10;
	if (open("/dev/null", O_RDONLY) != STDIN_FILENO)
		return 20;
	return try_channel();
}

TEST_F(process, standard_files)
{
	EXPECT_EQ(0, in_child(without_stdin));
}

static struct rdma_cm_id *inherited;

/* As exit(3) has handlers do that were meant for the parent */
static int ends_all(void)
{
	if (!rdma_disconnect(inherited) || errno != EACCES)
		return 1;
	rdma_destroy_ep(inherited);
	return 0;
}

TEST_F(process, child_that_exits)
{
	struct pair *p = &self->pair;

	not_on_stock("the child's QP is the parent's");
	pair_connect(p);
	inherited = p->client;
	EXPECT_EQ(0, in_child(ends_all));
	inherited = p->server;
	EXPECT_EQ(0, in_child(ends_all));
	expect_silence(p->client_channel);
	expect_silence(p->server_channel);
	send_message(p->client, p->server);
}

/* A daemon that serves has a child that only exits. */
static int serves_and_forks(void)
{
	struct sockaddr_storage addr = my_addr(AF_INET, 0);
	uint8_t tos = 8;

	if (rdma_bind_addr(inherited, sa(&addr)) || rdma_listen(inherited, 1))
		return 1;
	if (in_child(ends_all) != 0)
		return 2;
	/* It is still there. */
	if (rdma_set_option(inherited, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 1))
		return 3;
	return rdma_destroy_id(inherited) ? 4 : 0;
}

TEST_F(process, child_of_a_daemon)
{
	not_on_stock("a child cannot use what it has inherited");
	self->pair.client_channel = rdma_create_event_channel();
	ASSERT_NE(NULL, self->pair.client_channel);
	ok(rdma_create_id(self->pair.client_channel, &inherited, NULL, RDMA_PS_TCP));
	EXPECT_EQ(0, in_child(serves_and_forks));
	err(ENOENT, rdma_listen(inherited, 1));
	ok(rdma_destroy_id(inherited));
}

/* Reading an event is going on, too: the child refuses a request. */
static struct rdma_event_channel *listening;

static int refuses(void)
{
	struct rdma_cm_event *event;
	int ret;

	if (rdma_get_cm_event(listening, &event))
		return 1;
	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return 2;
	ret = rdma_destroy_id(event->id);
	return rdma_ack_cm_event(event) || ret ? 3 : 0;
}

TEST_F(process, child_that_reads)
{
	struct pair *p = &self->pair;

	not_on_stock("a child cannot use what it has inherited");
	p->no_qp = true;
	pair_listen(p);
	pair_resolve(p);
	ok(rdma_connect(p->client, &p->connect_param));
	listening = p->server_channel;
	EXPECT_EQ(0, in_child(refuses));
	expect_rejected(p->client_channel);
}

static int goes_on(void)
{
	struct sockaddr_storage addr = my_addr(AF_INET, 0);

	if (rdma_bind_addr(inherited, sa(&addr)))
		return 1;
	return rdma_destroy_id(inherited) ? 2 : 0;
}

/* One that makes use of an id may end it. */
TEST_F(process, child_that_goes_on)
{
	struct pair *p = &self->pair;

	not_on_stock("a child cannot use what it has inherited");
	p->client_channel = rdma_create_event_channel();
	ASSERT_NE(NULL, p->client_channel);
	ok(rdma_create_id(p->client_channel, &inherited, NULL, RDMA_PS_TCP));
	EXPECT_EQ(0, in_child(goes_on));
	err(ENOENT, rdma_listen(inherited, 1));
	ok(rdma_destroy_id(inherited));
}

/* A channel has nothing but its descriptor. */
TEST_F(process, channel_copied)
{
	struct rdma_event_channel copy[3], *first = copy, *last = copy + 2;
	struct pair *p = &self->pair;
	struct rdma_cm_event *event;

	pair_listen(p);
	memset(copy, 0xa5, sizeof(copy));
	first->fd = p->client_channel->fd;
	last->fd = p->server_channel->fd;
	ok(rdma_create_id(first, &p->client, NULL, RDMA_PS_TCP));
	ok(rdma_resolve_addr(p->client, NULL, sa(&p->addr), RESOLVE_MS));
	expect_event(first, RDMA_CM_EVENT_ADDR_RESOLVED);
	ok(rdma_resolve_route(p->client, RESOLVE_MS));
	expect_event(p->client_channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	ok(rdma_connect(p->client, &p->connect_param));
	event = get_event(last, RDMA_CM_EVENT_CONNECT_REQUEST);
	ok(rdma_reject(event->id, NULL, 0));
	ok(rdma_destroy_id(event->id));
	ok(rdma_ack_cm_event(event));
	expect_rejected(first);
	ok(rdma_migrate_id(p->client, last));
	ok(rdma_migrate_id(p->client, p->client_channel));
}

/* The descriptor may be moved, which its channel need not know. */
TEST_F(process, channel_moved)
{
	struct pair *p = &self->pair;
	int fd, low;

	pair_listen(p);
	low = p->client_channel->fd;
	fd = fcntl(low, F_DUPFD_CLOEXEC, 200);
	ASSERT_LE(200, fd);
	close(low);
	p->client_channel->fd = fd;
	pair_connect(p);
}

static struct rdma_event_channel *before_fork;

/* The number of a channel that was closed belongs to another. */
static int reuses_number(void)
{
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	int fd = before_fork->fd;

	close_all();
	channel = rdma_create_event_channel();
	if (!channel)
		return 1;
	if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP))
		return 2;
	while (channel->fd != fd) {
		channel = rdma_create_event_channel();
		if (!channel || channel->fd > fd)
			return 3;
	}
	rdma_destroy_event_channel(before_fork);
	if (fcntl(fd, F_GETFD) < 0)
		return 4;
	rdma_destroy_event_channel(channel);
	return rdma_destroy_id(id) ? 5 : try_channel();
}

TEST_F(process, number_reused)
{
	not_on_stock("it closes by the number");
	before_fork = rdma_create_event_channel();
	ASSERT_NE(NULL, before_fork);
	EXPECT_EQ(0, in_child(reuses_number));
	rdma_destroy_event_channel(before_fork);
}

/* With its channel an id ends; then it can be destroyed. */
TEST_F(process, channel_destroyed)
{
	struct pair *p = &self->pair;
	struct rdma_cm_id *id;

	pair_connect(p);
	rdma_destroy_event_channel(p->client_channel);
	p->client_channel = NULL;
	expect_event(p->server_channel, RDMA_CM_EVENT_DISCONNECTED);
	if (!on_stock())
		err(ENOENT, rdma_disconnect(p->client));

	/* One more has asked, which nobody has read. */
	p->client_channel = rdma_create_event_channel();
	ASSERT_NE(NULL, p->client_channel);
	id = p->client;
	p->no_qp = true;
	pair_resolve(p);
	ok(rdma_connect(p->client, &p->connect_param));
	EXPECT_TRUE(event_within(p->server_channel, SOON_MS));
	rdma_destroy_event_channel(p->server_channel);
	p->server_channel = NULL;
	expect_rejected(p->client_channel);

	/* The port is free. */
	p->server_channel = rdma_create_event_channel();
	ASSERT_NE(NULL, p->server_channel);
	if (!on_stock()) {
		if (id->qp)
			rdma_destroy_qp(id);
		ok(rdma_destroy_id(id));
		rdma_destroy_qp(p->server);
		ok(rdma_destroy_id(p->server));
		ok(rdma_destroy_id(p->listen));
	}
	p->server = NULL;
	if (on_stock())	/* what could not be destroyed */
		self->before = count_objects();
	ok(rdma_create_id(p->server_channel, &p->listen, NULL, RDMA_PS_TCP));
	ok(rdma_bind_addr(p->listen, sa(&p->addr)));
	ok(rdma_listen(p->listen, 1));
}

static int without_permission(void)
{
	struct sockaddr_storage addr = my_addr(AF_INET, 0);
	struct rdma_cm_id *id;

	if (setgid(65534) || setuid(65534))
		return 10;
	if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP))
		return 20;
	return rdma_bind_addr(id, sa(&addr)) ? errno : 30;
}

/* Of the verbs device; libibverbs says ENOENT where there is no /dev/char. */
TEST_F(process, no_permission)
{
	static const char node[] = "/dev/infiniband/uverbs0";
	struct stat st;

	ASSERT_EQ(0, stat(node, &st));
	ASSERT_EQ(0, chmod(node, 0600));
	EXPECT_EQ(on_stock() ? ENODEV : EACCES, in_child(without_permission));
	ASSERT_EQ(0, chmod(node, st.st_mode & 0777));
}

TEST_HARNESS_MAIN
