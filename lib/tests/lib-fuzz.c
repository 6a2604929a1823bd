// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A libFuzzer target for what the library takes from others: the kernel's
 * records, answers and reasons, ibacm's replies, names and hints.
 *
 * System calls are wrapped by the linker (see fuzz-library): a kernel and an
 * ibacm are played with the bytes of the input. A record is right where the
 * input does not say otherwise, so that most reach the code behind the checks.
 * When the input is used up every call fails, and so the run ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../rdmaep-internal.h"
#include "../addrinfo.h"

#define MAX_IDS		8
#define MAX_CHANNELS	3
#define NOBODY		UINT64_MAX	/* a serial number that no endpoint has */

static const uint8_t *input;
static size_t left;

static uint8_t take(void)
{
	if (!left)
		return 0;
	left--;
	return *input++;
}

static void take_bytes(void *dst, size_t len)
{
	size_t n = len < left ? len : left;

	memset(dst, 0, len);
	memcpy(dst, input, n);
	input += n;
	left -= n;
}

/*
 * The kernel
 */

static int device_fd = -1;
static uint64_t last_serial;
static uint64_t first_serial;		/* of this run, less one */
static uint64_t listening[16];
static size_t num_listening;

/* Handles are serial numbers, so that one leads to the other. */

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __real_ioctl(int fd, unsigned long nr, void *arg);
int __wrap_ioctl(int fd, unsigned long nr, void *arg);
ssize_t __real_read(int fd, void *buf, size_t len);
ssize_t __wrap_read(int fd, void *buf, size_t len);
int __real_getaddrinfo(const char *node, const char *service,
		       const struct addrinfo *hints, struct addrinfo **res);
int __wrap_getaddrinfo(const char *node, const char *service,
		       const struct addrinfo *hints, struct addrinfo **res);
int __wrap_connect(int fd, const struct sockaddr *addr, socklen_t len);
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
				  const struct timespec *until);
ssize_t __wrap_send(int fd, const void *buf, size_t len, int flags);
ssize_t __wrap_recv(int fd, void *buf, size_t len, int flags);
int __wrap_rdmaep_device_scan(void);

/* As if there were a device, which nothing ever comes to */
int __wrap_rdmaep_device_scan(void)
{
	return 0;
}

int __wrap_open(const char *path, int flags, ...)
{
	va_list ap;
	int mode;

	if (!strcmp(path, RDMA_EP_DEVICE)) {
		device_fd = __real_open("/dev/null", O_RDWR | O_CLOEXEC);
		return device_fd;
	}
	va_start(ap, flags);
	mode = flags & O_CREAT ? va_arg(ap, int) : 0;
	va_end(ap);
	return __real_open(path, flags, mode);
}

static bool is_listening(uint64_t serial)
{
	size_t i;

	for (i = 0; i < num_listening; i++)
		if (listening[i] == serial)
			return true;
	return false;
}

/*
 * A request comes only to a listener, and no serial number comes twice.
 * @serial: of the endpoint that was asked for an event, 0 for any
 */
static size_t fill_record(struct rdma_ep_record *rec, uint64_t serial)
{
	uint64_t made = last_serial - first_serial;
	uint8_t how = take();

	memset(rec, 0, sizeof(*rec));
	if (how & 0x80)		/* anything at all */
		take_bytes(rec, how & 0x40 ? sizeof(*rec) : 400);
	else if (how & 0x40) {
		take_bytes(&rec->qp_num, 40);
		take_bytes(rec->private_data, 32);
		rec->private_data_len = take();
	}
	rec->type = how & 0x20 ? take() : how % 19;
	rec->size = how & 0x10 ? take() * 8 : sizeof(*rec);
	rec->status = take() & 3 ? 0 : -(int)take();
	rec->serial = first_serial + 1 + take() % (made ?: 1);
	if (serial)
		rec->serial = serial;
	else if (how & 8)
		rec->serial += 1000;	/* nobody's */
	if (rec->type == RDMA_EP_EVENT_CONNECT_REQUEST &&
	    !is_listening(rec->serial))
		rec->type = RDMA_EP_EVENT_CONNECT_ERROR;
	if (!(how & 0x80))
		rec->flags = take();
	if (rec->type == RDMA_EP_EVENT_CONNECT_REQUEST) {
		rec->child = last_serial + 1;
		rec->child_serial = ++last_serial;
	}
	return rec->size < sizeof(*rec) ? rec->size : sizeof(*rec);
}

static int new_fd(void)
{
	return __real_open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* Where the record of a call goes, 0 if it has none */
static uint64_t record_of(unsigned long nr, void *arg)
{
	switch (nr) {
	case RDMA_EP_CREATE_EP:
		return ((struct rdma_ep_create_ep *)arg)->record_uptr;
	case RDMA_EP_BIND:
		return ((struct rdma_ep_bind *)arg)->record_uptr;
	case RDMA_EP_RESOLVE_ADDR:
		return ((struct rdma_ep_resolve_addr *)arg)->record_uptr;
	case RDMA_EP_RESOLVE_ROUTE:
		return ((struct rdma_ep_resolve_route *)arg)->record_uptr;
	case RDMA_EP_LISTEN:
		return ((struct rdma_ep_listen *)arg)->record_uptr;
	case RDMA_EP_CONNECT:
	case RDMA_EP_ACCEPT:
		return ((struct rdma_ep_connect *)arg)->record_uptr;
	case RDMA_EP_DISCONNECT:
		return ((struct rdma_ep_disconnect *)arg)->record_uptr;
	case RDMA_EP_QUERY:
		return ((struct rdma_ep_query *)arg)->record_uptr;
	case RDMA_EP_WAIT:
		return ((struct rdma_ep_wait *)arg)->record_uptr;
	case RDMA_EP_RESOLVE_SERVICE:
		return ((struct rdma_ep_resolve_service *)arg)->record_uptr;
	default:
		return 0;
	}
}

static void answer(unsigned long nr, void *arg)
{
	struct rdma_ep_hdr *hdr = arg;
	bool new_channel = hdr->flags & RDMA_EP_F_NEW_CHANNEL;

	switch (nr) {
	case RDMA_EP_CREATE_CHANNEL:
		((struct rdma_ep_create_channel *)arg)->out_fd = new_fd();
		break;
	case RDMA_EP_CREATE:
		((struct rdma_ep_create *)arg)->out_ep = last_serial + 1;
		((struct rdma_ep_create *)arg)->out_serial = ++last_serial;
		if (new_channel)
			((struct rdma_ep_create *)arg)->channel = new_fd();
		break;
	case RDMA_EP_CREATE_EP:
		((struct rdma_ep_create_ep *)arg)->out_ep = last_serial + 1;
		((struct rdma_ep_create_ep *)arg)->out_serial = ++last_serial;
		if (new_channel)
			((struct rdma_ep_create_ep *)arg)->channel = new_fd();
		break;
	case RDMA_EP_LISTEN:
		if (num_listening < sizeof(listening) / sizeof(listening[0]))
			listening[num_listening++] =
				((struct rdma_ep_listen *)arg)->ep;
		break;
	case RDMA_EP_ATTACH:
		if (new_channel)
			((struct rdma_ep_attach *)arg)->channel = new_fd();
		break;
	case RDMA_EP_WAIT:
		if (new_channel)
			((struct rdma_ep_wait *)arg)->child_channel = new_fd();
		break;
	case RDMA_EP_DESTROY:
		((struct rdma_ep_destroy *)arg)->out_idle = take();
		break;
	case RDMA_EP_JOIN:
		((struct rdma_ep_join *)arg)->out_group = 1 + take();
		break;
	case RDMA_EP_GET_INFO:
		((struct rdma_ep_get_info *)arg)->out_features = take();
		break;
	case RDMA_EP_QUERY_SERVICES: {
		struct rdma_ep_query_services *cmd = arg;
		uint32_t n = take() & 7;

		cmd->out_count = n;
		take_bytes((void *)(uintptr_t)cmd->recs_uptr,
			   (n < cmd->count ? n : cmd->count) *
			   sizeof(struct rdma_ep_service_rec));
		break;
	}
	}
}

int __wrap_ioctl(int fd, unsigned long nr, void *arg)
{
	static const int errors[] = { EINVAL, ENOMEM, ENODEV, EAGAIN, EINTR,
				      EFAULT, EOPNOTSUPP, EMFILE };
	struct rdma_ep_hdr *hdr = arg;
	uint64_t record;
	uint8_t how;

	if (fd != device_fd || device_fd < 0)
		return __real_ioctl(fd, nr, arg);
	how = take();
	if (!left && nr != RDMA_EP_DESTROY) {
		errno = ENOMEM;
		return -1;
	}
	if (how >= 0xe0 && nr != RDMA_EP_DESTROY) {
		/* a text that no NUL ends */
		if (hdr->reason_uptr && how & 8)
			memset((void *)(uintptr_t)hdr->reason_uptr, how,
			       sizeof(struct rdma_ep_reason));
		errno = errors[how & 7];
		return how == 0xe8 ? 1 : -1;
	}
	answer(nr, arg);
	record = record_of(nr, arg);
	if (record)
		fill_record((struct rdma_ep_record *)(uintptr_t)record,
			    nr == RDMA_EP_WAIT ?
			    ((struct rdma_ep_wait *)arg)->ep : NOBODY);
	return 0;
}

static int channel_fd[MAX_CHANNELS + MAX_IDS];

ssize_t __wrap_read(int fd, void *buf, size_t len)
{
	size_t i, n;

	for (i = 0; i < sizeof(channel_fd) / sizeof(channel_fd[0]); i++)
		if (fd == channel_fd[i])
			break;
	if (i == sizeof(channel_fd) / sizeof(channel_fd[0]) ||
	    len != sizeof(struct rdma_ep_record))
		return __real_read(fd, buf, len);
	if (!left) {
		errno = EAGAIN;
		return -1;
	}
	n = fill_record(buf, 0);
	return n;
}

/* The wait for an id that another thread makes: there is no other */
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
				  const struct timespec *until)
{
	(void)cond;
	(void)mutex;
	(void)until;
	return ETIMEDOUT;
}

/*
 * ibacm, and the name service, which knows no names
 */

static uint64_t asked_tid;

int __wrap_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	(void)fd;
	(void)addr;
	(void)len;
	if (left)
		return 0;
	errno = ECONNREFUSED;
	return -1;
}

ssize_t __wrap_send(int fd, const void *buf, size_t len, int flags)
{
	(void)fd;
	(void)flags;
	/* the question's number, for an answer that fits it */
	if (len >= 16)
		memcpy(&asked_tid, (const char *)buf + 8, sizeof(asked_tid));
	return len;
}

ssize_t __wrap_recv(int fd, void *buf, size_t len, int flags)
{
	static const uint8_t good[] = { 1, 0x81, 0, 0, 0, 0 };
	static const uint8_t types[] = { 2, 3, 0x10, 0x10 };
	uint8_t how = take();
	uint8_t *p = buf;
	size_t i;

	(void)fd;
	(void)flags;
	if (!left)
		return 0;
	if (how & 1 && len > 1)
		len = 1 + how % len;
	take_bytes(buf, len);
	if (len == 16 && how & 0x80) {
		memcpy(p, good, sizeof(good));
		memcpy(p + 8, &asked_tid, sizeof(asked_tid));
		if (how & 0x40)	/* of whole entries */
			p[6] = 16 + 72 * (how >> 2 & 3), p[7] = 0;
	}
	/* addresses and paths, which is what an entry is mostly about */
	for (i = 0; len % 72 == 0 && how & 0x20 && i < len; i += 72) {
		p[i + 4] = types[p[i + 4] & 3];
		p[i + 5] = 0;
	}
	return len;
}

int __wrap_getaddrinfo(const char *node, const char *service,
		       const struct addrinfo *hints, struct addrinfo **res)
{
	struct addrinfo ask = hints ? *hints : (struct addrinfo){};

	ask.ai_flags |= AI_NUMERICHOST | AI_NUMERICSERV;
	return __real_getaddrinfo(node, service, &ask, res);
}

/*
 * A program
 */

static struct rdma_cm_id *ids[MAX_IDS];
static struct rdma_event_channel *channels[MAX_CHANNELS];

static void add_id(struct rdma_cm_id *id)
{
	int i;

	for (i = 0; i < MAX_IDS; i++) {
		if (ids[i])
			continue;
		ids[i] = id;
		channel_fd[MAX_CHANNELS + i] = id->channel ? id->channel->fd : -1;
		return;
	}
	rdma_destroy_id(id);
}

static void forget_id(struct rdma_cm_id *id)
{
	int i;

	for (i = 0; i < MAX_IDS; i++) {
		if (ids[i] != id)
			continue;
		ids[i] = NULL;
		channel_fd[MAX_CHANNELS + i] = -1;
	}
}

static void take_event(struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *child = NULL;

	if (!channel || rdma_get_cm_event(channel, &event))
		return;
	rdma_event_str(event->event);
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		child = event->id;
	rdma_ack_cm_event(event);
	if (child)
		add_id(child);
}

static void text(char *dst, size_t size)
{
	size_t len = take() % size;

	take_bytes(dst, len);
	dst[len] = 0;
}

static void get_addrinfo(void)
{
	struct sockaddr_storage src = {}, dst = {};
	struct rdma_addrinfo hints = {}, *res;
	uint8_t how = take();
	char node[40], service[12], route[72 * 2];

	text(node, sizeof(node));
	text(service, sizeof(service));
	hints.ai_flags = take();
	hints.ai_family = take() & 1 ? AF_INET : take();
	hints.ai_qp_type = take() & 1 ? IBV_QPT_RC : take();
	hints.ai_port_space = take() & 1 ? RDMA_PS_TCP : RDMA_PS_UDP;
	if (how & 1) {
		take_bytes(&src, 48);
		src.ss_family = how & 2 ? AF_INET : how & 4 ? AF_INET6 : AF_IB;
		hints.ai_src_addr = (struct sockaddr *)&src;
		hints.ai_src_len = how & 8 ? take() : 48;
	}
	if (how & 16) {
		take_bytes(&dst, 48);
		dst.ss_family = how & 2 ? AF_INET : how & 4 ? AF_INET6 : AF_IB;
		hints.ai_dst_addr = (struct sockaddr *)&dst;
		hints.ai_dst_len = how & 8 ? take() : 48;
	}
	/* what the caller gives has the length that it says */
	if (hints.ai_src_len > sizeof(src))
		hints.ai_src_len = sizeof(src);
	if (hints.ai_dst_len > sizeof(dst))
		hints.ai_dst_len = sizeof(dst);
	if (how & 32) {
		take_bytes(route, sizeof(route));
		hints.ai_route = route;
		hints.ai_route_len = take() % (sizeof(route) + 1);
	}
	if (!rdma_getaddrinfo(how & 64 ? NULL : strdupa(node),
			      how & 128 ? NULL : service, &hints, &res)) {
		struct rdma_cm_id *id;

		if (!rdma_create_ep(&id, res, NULL, NULL))
			add_id(id);
		rdma_freeaddrinfo(res);
	}
}

static void one_call(uint8_t call)
{
	struct rdma_cm_id *id = ids[take() % MAX_IDS];
	struct rdma_event_channel *channel = channels[take() % MAX_CHANNELS];
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = 1 };
	struct rdma_conn_param param = {};
	struct rdma_addrinfo *info;
	struct rdma_cm_id *other;
	int i;

	if (call % 24 > 4 && !id)
		call = 1;
	switch (call % 24) {
	case 0:
		for (i = 0; i < MAX_CHANNELS && channels[i]; i++)
			;
		if (i < MAX_CHANNELS) {
			channels[i] = rdma_create_event_channel();
			if (channels[i])
				channel_fd[i] = channels[i]->fd;
		}
		break;
	case 1:
		if (!rdma_create_id(channel, &other, NULL,
				    take() & 1 ? RDMA_PS_UDP : RDMA_PS_TCP))
			add_id(other);
		break;
	case 2:
		get_addrinfo();
		break;
	case 3:
		take_event(channel);
		break;
	case 4:
		rdma_event_str((enum rdma_cm_event_type)(take() * 0x1000003u));
		rdmaep_strerror();
		break;
	case 5:
		rdma_bind_addr(id, (struct sockaddr *)&sin);
		break;
	case 6:
		rdma_resolve_addr(id, NULL, (struct sockaddr *)&sin, 100);
		break;
	case 7:
		rdma_resolve_route(id, 100);
		break;
	case 8:
		rdma_listen(id, take());
		break;
	case 9:
		rdma_connect(id, take() & 1 ? NULL : &param);
		break;
	case 10:
		rdma_accept(id, take() & 1 ? NULL : &param);
		break;
	case 11:
		if (!rdma_get_request(id, &other))
			add_id(other);
		break;
	case 12:
		rdma_disconnect(id);
		break;
	case 13:
		rdma_reject(id, NULL, 0);
		break;
	case 14:
		rdma_join_multicast(id, (struct sockaddr *)&sin, NULL);
		break;
	case 15:
		rdma_leave_multicast(id, (struct sockaddr *)&sin);
		break;
	case 16:
		rdma_migrate_id(id, channel);
		break;
	case 17:
		rdma_resolve_addrinfo(id, NULL, "0x1", NULL);
		break;
	case 18:
		if (!rdma_query_addrinfo(id, &info))
			rdma_freeaddrinfo(info);
		break;
	case 19:
		rdma_establish(id);
		break;
	case 20:
		rdma_get_src_port(id);
		rdma_get_dst_port(id);
		break;
	case 21:
		rdma_set_option(id, RDMA_OPTION_ID, take() & 3, &param, 4);
		break;
	case 22:
		take_event(id->channel);
		break;
	case 23:
		forget_id(id);
		rdma_destroy_id(id);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int i;

	input = data;
	left = size;
	first_serial = last_serial;
	num_listening = 0;
	memset(channel_fd, 0xff, sizeof(channel_fd));
	while (left)
		one_call(take());

	for (i = 0; i < MAX_IDS; i++) {
		if (!ids[i])
			continue;
		rdma_destroy_id(ids[i]);
		ids[i] = NULL;
	}
	for (i = 0; i < MAX_CHANNELS; i++) {
		if (!channels[i])
			continue;
		rdma_destroy_event_channel(channels[i]);
		channels[i] = NULL;
	}
	return 0;
}
