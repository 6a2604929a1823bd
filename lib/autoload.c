// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Has the kernel load the module when its device is not there.
 *
 * The device has no fixed number, so there is no node to open before the
 * module is loaded. But whoever asks ib_core for the character device of a
 * client that it does not know makes it load the module of that alias
 * (rdma-client-rdma_ep), and no privilege is needed for it: it is how
 * rdma_ucm is loaded, too.
 */
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/rdma_netlink.h>

#include "rdmaep-internal.h"

/**
 * rdmaep_autoload() - ask for the module
 *
 * The kernel works on the question in the sender's context: when this returns,
 * the device is there, or it will not come.
 */
void rdmaep_autoload(void)
{
	static const char client[] = "rdma_ep";
	struct {
		struct nlmsghdr hdr;
		struct nlattr attr;
		char name[NLA_ALIGN(sizeof(client))];
	} req = {
		.hdr.nlmsg_len = sizeof(req),
		.hdr.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV,
						   RDMA_NLDEV_CMD_GET_CHARDEV),
		.hdr.nlmsg_flags = NLM_F_REQUEST,
		.attr.nla_len = sizeof(req.attr) + sizeof(client),
		.attr.nla_type = RDMA_NLDEV_ATTR_CHARDEV_TYPE,
	};
	int fd;

	memcpy(req.name, client, sizeof(client));
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
	if (fd < 0)
		return;
	/* The answer tells nothing that opening the device does not tell. */
	(void)!send(fd, &req, sizeof(req), 0);
	close(fd);
}
