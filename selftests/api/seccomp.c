// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A seccomp filter that lets the numbers of Documentation/uapi.rst pass, and
 * no other ioctl, is all that a program needs. The table there is read: a
 * number missing from it fails the test.
 */
#include "api_utils.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define MAX_NUMBERS 64

/* Reads "``NAME``  ``0xed00``" lines; returns how many there are */
static unsigned int documented(uint32_t *number)
{
	const char *top = getenv("TOP");
	char path[PATH_MAX], line[256], name[64];
	unsigned int n = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/Documentation/uapi.rst", top ? top : ".");
	file = fopen(path, "re");
	if (!file)
		return 0;
	while (n < MAX_NUMBERS && fgets(line, sizeof(line), file))
		if (sscanf(line, "``RDMA_%63[A-Z_]`` ``%x``", name, &number[n]) == 2)
			n++;
	fclose(file);
	return n;
}

/* Every ioctl but those is EPERM from now on; @without is not let pass either */
static int filter_ioctls(const uint32_t *number, unsigned int n, uint32_t without)
{
	struct sock_filter code[2 * MAX_NUMBERS + 8];
	struct sock_fprog prog = { .filter = code };
	unsigned int len = 0, i;

	code[len++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
		offsetof(struct seccomp_data, nr));
	code[len++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_ioctl, 1, 0);
	code[len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	/* the lower half: these machines are little-endian */
	code[len++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
		offsetof(struct seccomp_data, args[1]));
	for (i = 0; i < n; i++) {
		if (number[i] == without)
			continue;
		code[len++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
			number[i], 0, 1);
		code[len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	code[len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	prog.len = len;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

/* The filter's own number, and each command's: none is missing, none too many */
TEST(the_table_is_complete)
{
	uint32_t number[MAX_NUMBERS];
	unsigned int n = documented(number), i;
	struct rdma_ep_get_info info = { .hdr.size = sizeof(info) };
	int fd;

	if (!on_stock()) {
		fd = open("/dev/infiniband/rdma_ep", O_RDWR | O_CLOEXEC);
		ASSERT_LE(0, fd);
		ASSERT_EQ(0, ioctl(fd, RDMA_EP_GET_INFO, &info));
		close(fd);
		EXPECT_EQ(info.out_commands + 1, n);
	}
	ASSERT_LT(1, n);
	for (i = 0; i + 1 < n; i++)
		EXPECT_EQ(0xed00 + i, number[i]);
	EXPECT_EQ(RDMA_VERBS_IOCTL, number[n - 1]);
}

TEST(documented_numbers_are_enough)
{
	struct ibv_qp_init_attr attr = qp_attr(IBV_QPT_RC), attr2 = qp_attr(IBV_QPT_RC);
	uint32_t number[MAX_NUMBERS];
	struct server server = {};
	struct rdma_cm_id *id;
	unsigned int n;

	not_on_stock("its protocol is write(2)");
	n = documented(number);
	ASSERT_EQ(0, filter_ioctls(number, n, 0));
	server_start(&server, AF_INET, NULL, &attr, 1);
	id = client_ep(AF_INET, server.port, NULL, &attr2);
	ok(rdma_connect(id, NULL));
	server_join(&server);
	send_message(id, server.conn[0]);
	disconnect_both(id, server.conn[0]);
	rdma_destroy_ep(id);
	server_stop(&server);
}

/* The filter filters: without one number, what needs it is refused */
TEST(one_number_less)
{
	struct rdma_addrinfo *res;
	uint32_t number[MAX_NUMBERS];
	struct rdma_cm_id *id;
	unsigned int n;

	not_on_stock("its protocol is write(2)");
	n = documented(number);
	ASSERT_LT(3, n);
	ASSERT_EQ(0, filter_ioctls(number, n, 0xed03));
	res = my_addrinfo(AF_INET, RAI_PASSIVE, RDMA_PS_TCP, 0);
	ASSERT_NE(NULL, res);
	err(EPERM, rdma_create_ep(&id, res, NULL, NULL));
	rdma_freeaddrinfo(res);
}

TEST_HARNESS_MAIN
