/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Software RDMA devices that go and come, as rdma-link(8) does it. Starting a
 * process for it takes seconds on an emulated machine with KASAN.
 */
#ifndef RDMA_LINK_H
#define RDMA_LINK_H

#include <net/if.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <rdma/rdma_netlink.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An RDMA device on a netdev, and its driver's name for rdma link add */
struct rdma_link {
	uint32_t index;
	char name[64];
	char type[8];
	char netdev[IF_NAMESIZE];
};

static struct nl_msg *rdma_link_msg(int cmd, int flags)
{
	struct nl_msg *msg = nlmsg_alloc_simple(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, cmd), flags);

	if (!msg)
		abort();
	return msg;
}

/*
 * Sends a message and frees it. What comes back goes to @found, the kernel's
 * answer, a negative number of libnl's if it refuses, is returned.
 */
static int rdma_link_talk(struct nl_msg *msg, nl_recvmsg_msg_cb_t found, void *arg)
{
	struct nl_sock *sock = nl_socket_alloc();
	int ret;

	ret = nl_connect(sock, NETLINK_RDMA);
	if (!ret && found)
		ret = nl_socket_modify_cb(sock, NL_CB_VALID, NL_CB_CUSTOM, found, arg);
	if (!ret)
		ret = nl_send_auto(sock, msg);
	if (ret >= 0)
		ret = found ? nl_recvmsgs_default(sock) : nl_wait_for_ack(sock);
	nlmsg_free(msg);
	nl_socket_free(sock);
	return ret;
}

/* The devices that there are */
struct rdma_link_list {
	struct rdma_link link[16];
	unsigned int count;
};

static int rdma_link_found(struct nl_msg *msg, void *arg)
{
	struct nlattr *index = nlmsg_find_attr(nlmsg_hdr(msg), 0, RDMA_NLDEV_ATTR_DEV_INDEX);
	struct nlattr *name = nlmsg_find_attr(nlmsg_hdr(msg), 0, RDMA_NLDEV_ATTR_DEV_NAME);
	struct rdma_link_list *list = arg;
	struct rdma_link *link = &list->link[list->count];

	if (!index || !name || list->count == 16)
		return NL_SKIP;
	link->index = nla_get_u32(index);
	nla_strlcpy(link->name, name, sizeof(link->name));
	/* rxe0, siw0 */
	memcpy(link->type, link->name, 3);
	list->count++;
	return NL_OK;
}

static int rdma_link_netdev(struct nl_msg *msg, void *arg)
{
	struct nlattr *name = nlmsg_find_attr(nlmsg_hdr(msg), 0, RDMA_NLDEV_ATTR_NDEV_NAME);
	struct rdma_link *link = arg;

	if (name)
		nla_strlcpy(link->netdev, name, sizeof(link->netdev));
	return NL_OK;
}

/**
 * rdma_link_find() - find the RDMA device on a netdev
 * @link: receives it
 * @netdev: the netdev
 *
 * Return: whether there is one.
 */
static inline bool rdma_link_find(struct rdma_link *link, const char *netdev)
{
	struct rdma_link_list list = {};
	struct nl_msg *msg;
	unsigned int i;

	msg = rdma_link_msg(RDMA_NLDEV_CMD_GET, NLM_F_DUMP);
	if (rdma_link_talk(msg, rdma_link_found, &list) < 0)
		return false;
	for (i = 0; i < list.count; i++) {
		msg = rdma_link_msg(RDMA_NLDEV_CMD_PORT_GET, NLM_F_ACK);
		nla_put_u32(msg, RDMA_NLDEV_ATTR_DEV_INDEX, list.link[i].index);
		nla_put_u32(msg, RDMA_NLDEV_ATTR_PORT_INDEX, 1);
		if (rdma_link_talk(msg, rdma_link_netdev, &list.link[i]) >= 0 &&
		    !strcmp(list.link[i].netdev, netdev)) {
			*link = list.link[i];
			return true;
		}
	}
	return false;
}

/**
 * rdma_link_delete() - rdma link delete
 * @link: as it was found
 *
 * Return: 0 or below.
 */
static inline int rdma_link_delete(const struct rdma_link *link)
{
	struct nl_msg *msg = rdma_link_msg(RDMA_NLDEV_CMD_DELLINK, NLM_F_ACK);

	nla_put_u32(msg, RDMA_NLDEV_ATTR_DEV_INDEX, link->index);
	return rdma_link_talk(msg, NULL, NULL);
}

/**
 * rdma_link_add() - rdma link add; the new device's GIDs come a little later
 * @link: as it was found; gets the index of the new one
 *
 * Return: 0 or below.
 */
static inline int rdma_link_add(struct rdma_link *link)
{
	struct nl_msg *msg = rdma_link_msg(RDMA_NLDEV_CMD_NEWLINK, NLM_F_ACK);
	int ret;

	nla_put_string(msg, RDMA_NLDEV_ATTR_DEV_NAME, link->name);
	nla_put_string(msg, RDMA_NLDEV_ATTR_LINK_TYPE, link->type);
	nla_put_string(msg, RDMA_NLDEV_ATTR_NDEV_NAME, link->netdev);
	ret = rdma_link_talk(msg, NULL, NULL);
	if (!ret && !rdma_link_find(link, link->netdev))
		ret = -1;
	return ret;
}

#endif /* RDMA_LINK_H */
