// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The RDMA devices that ids are bound to, opened when first needed.
 *
 * A device stays open for the life of the process, as programs keep
 * id->verbs; so does its default protection domain. Once it has been removed
 * it is closed with the last id or device list that uses it: the kernel can
 * then finish the removal. An event tells of the removal; since nobody need have
 * read it, the device's place in sysfs is looked at as well.
 *
 * Devices are told apart by the kernel's index, which a device that comes back
 * does not share with its former self.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "rdmaep-internal.h"

/* Guards the list and all that is in it but max_*, which never change. */
static struct rdmaep_guard device_lock = RDMAEP_GUARD_INITIALIZER;
static struct rdmaep_device *devices;

/**
 * rdmaep_device_lock() - hold the list still while the process forks
 * @lock: take it, or else release it
 */
void rdmaep_device_lock(bool lock)
{
	if (lock)
		rdmaep_guard_enter(&device_lock);
	else
		rdmaep_guard_leave(&device_lock);
}

static uint8_t clamp_u8(int value)
{
	return value < 0 ? 0 : value > UINT8_MAX ? UINT8_MAX : value;
}

/*
 * Looking for a path costs as much as an endpoint, and this is done whenever
 * the last one goes. An attribute that is kept open tells for less: once its
 * device is removed, poll(2) says so.
 */
static void device_watch(struct rdmaep_device *dev)
{
	char path[IBV_SYSFS_PATH_MAX + 8], c;

	snprintf(path, sizeof(path), "%s/ibdev", dev->verbs->device->dev_path);
	dev->sysfs_fd = open(path, O_RDONLY | O_CLOEXEC);
	/* There is news until it is read once. */
	if (dev->sysfs_fd >= 0 && read(dev->sysfs_fd, &c, 1) != 1) {
		close(dev->sysfs_fd);
		dev->sysfs_fd = -1;
	}
}

static bool device_may_be_gone(const struct rdmaep_device *dev)
{
	struct pollfd pfd = { .fd = dev->sysfs_fd, .events = POLLPRI };

	return dev->sysfs_fd < 0 || poll(&pfd, 1, 0);
}

/* Gone as soon as the removal begins, though the removal waits for us. */
static bool device_in_sysfs(const struct rdmaep_device *dev)
{
	int err = errno;
	bool found = !access(dev->verbs->device->dev_path, F_OK);

	errno = err;
	return found;
}

/*
 * Where it may not open the device's node, libibverbs tries others, which may not
 * be there.
 */
static int open_error(struct ibv_device *ibdev)
{
	char node[sizeof("/dev/infiniband/") + IBV_SYSFS_NAME_MAX];
	int err = errno ? errno : ENODEV;

	snprintf(node, sizeof(node), "/dev/infiniband/%s", ibdev->dev_name);
	if (err == ENOENT && access(node, R_OK | W_OK) && errno != ENOENT)
		err = errno;
	return err;
}

static struct rdmaep_device *device_open(struct ibv_device *ibdev)
{
	struct rdmaep_device *dev, **pos;
	struct ibv_device_attr attr;

	dev = calloc(1, sizeof(*dev));
	if (!dev)
		return NULL;

	/* libibverbs does not always say why. */
	errno = 0;
	dev->verbs = ibv_open_device(ibdev);
	if (!dev->verbs) {
		int err = open_error(ibdev);

		rdmaep_fail(err, RDMA_EP_REASON_NO_DEVICE,
			    "cannot open the verbs device of %s%s",
			    ibv_get_device_name(ibdev),
			    err == EACCES || err == EPERM ?
			    ": no permission on /dev/infiniband/uverbs*" : "");
		goto free_device;
	}
	if (rdmaep_seterrno(ibv_query_device(dev->verbs, &attr)))
		goto close_device;

	dev->in_sysfs = device_in_sysfs(dev);
	device_watch(dev);
	dev->index = ibv_get_device_index(ibdev);
	dev->guid = ibv_get_device_guid(ibdev);
	dev->max_responder_resources = clamp_u8(attr.max_qp_rd_atom);
	dev->max_initiator_depth = clamp_u8(attr.max_qp_init_rd_atom);

	/* Programs that take the first of a list expect the kernel's order. */
	for (pos = &devices; *pos && (*pos)->index < dev->index;
	     pos = &(*pos)->next)
		;
	dev->next = *pos;
	*pos = dev;
	return dev;

close_device:
	ibv_close_device(dev->verbs);
free_device:
	free(dev);
	return NULL;
}

/*
 * Has the kernel taken the device out of the open file? Then the removal does not
 * wait for it to be closed.
 */
static bool device_is_detached(const struct rdmaep_device *dev)
{
	struct ibv_device_attr attr;

	return ibv_query_device(dev->verbs, &attr) == EIO;
}

static void device_close(struct rdmaep_device *dev)
{
	struct rdmaep_device **pos;
	int err = errno;

	for (pos = &devices; *pos != dev; pos = &(*pos)->next)
		;
	*pos = dev->next;

	rdmaep_cqs_flush(dev);
	if (dev->pd)
		ibv_dealloc_pd(dev->pd);
	if (dev->xrcd)
		ibv_close_xrcd(dev->xrcd);
	/* What the program has made there itself is not gone yet. */
	if (!device_is_detached(dev))
		ibv_close_device(dev->verbs);
	if (dev->sysfs_fd >= 0)
		close(dev->sysfs_fd);
	free(dev);
	errno = err;
}

static void device_unref(struct rdmaep_device *dev)
{
	if (--dev->refs)
		return;
	if (dev->in_sysfs && device_may_be_gone(dev) && !device_in_sysfs(dev))
		dev->gone = true;
	if (dev->gone)
		device_close(dev);
}

static bool device_match(int have_index, __be64 have_guid, uint32_t index,
			 __be64 guid)
{
	/* libibverbs has no index on kernels older than 4.20. */
	if (have_index < 0)
		return have_guid == guid;
	return have_index == index;
}

static struct rdmaep_device *device_find(uint32_t index, __be64 guid)
{
	struct rdmaep_device *dev;

	for (dev = devices; dev; dev = dev->next)
		if (!dev->gone && device_match(dev->index, dev->guid, index,
					       guid))
			return dev;
	return NULL;
}

static struct rdmaep_device *device_scan(uint32_t index, __be64 guid)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct rdmaep_device *dev = NULL;
	bool found = false;
	int i;

	for (i = 0; list && list[i] && !found; i++) {
		if (!device_match(ibv_get_device_index(list[i]),
				  ibv_get_device_guid(list[i]), index, guid))
			continue;
		found = true;
		dev = device_open(list[i]);
	}
	if (list)
		ibv_free_device_list(list);
	if (!found)
		rdmaep_fail(ENODEV, RDMA_EP_REASON_NO_DEVICE,
			    "libibverbs does not know RDMA device %u: is its provider installed?",
			    index);
	return dev;
}

/**
 * rdmaep_device_scan() - let libibverbs look for devices and load providers
 *
 * Until it has found one; better before a connection waits for it.
 *
 * Return: 0 if it has found one, now or before; -1 with errno ENODEV, also where
 * there is no InfiniBand in the kernel, or from libibverbs.
 */
int rdmaep_device_scan(void)
{
	static bool found;
	struct ibv_device **list;
	int ret = 0;

	rdmaep_guard_enter(&device_lock);
	if (!found) {
		list = ibv_get_device_list(NULL);
		found = list && list[0];
		if (!list && errno != ENOSYS)
			ret = rdmaep_fail_plain(errno);
		else if (!found)
			ret = rdmaep_fail(ENODEV, RDMA_EP_REASON_NO_DEVICE,
					  "libibverbs finds no RDMA device: is there one, and its provider installed?");
		if (list)
			ibv_free_device_list(list);
	}
	rdmaep_guard_leave(&device_lock);
	return ret;
}

/**
 * rdmaep_device_get() - open a device
 * @index: its index
 * @guid: its node GUID, for where there is no index
 *
 * Return: the device with a reference, or NULL with errno ENODEV, EACCES,
 * ENOMEM or what libibverbs has set.
 */
struct rdmaep_device *rdmaep_device_get(uint32_t index, __be64 guid)
{
	struct rdmaep_device *dev;

	rdmaep_guard_enter(&device_lock);
	dev = device_find(index, guid);
	if (!dev)
		dev = device_scan(index, guid);
	if (dev)
		dev->refs++;
	rdmaep_guard_leave(&device_lock);
	return dev;
}

/**
 * rdmaep_device_put() - give a reference back
 * @dev: the device
 */
void rdmaep_device_put(struct rdmaep_device *dev)
{
	rdmaep_guard_enter(&device_lock);
	device_unref(dev);
	rdmaep_guard_leave(&device_lock);
}

/**
 * rdmaep_device_gone() - a device was removed
 * @dev: the device, to which the caller has a reference
 */
void rdmaep_device_gone(struct rdmaep_device *dev)
{
	rdmaep_guard_enter(&device_lock);
	dev->gone = true;
	rdmaep_guard_leave(&device_lock);
}

/**
 * rdmaep_device_pd() - the default protection domain
 * @dev: the device
 *
 * Return: the PD, or NULL with errno from libibverbs.
 */
struct ibv_pd *rdmaep_device_pd(struct rdmaep_device *dev)
{
	struct ibv_pd *pd;

	rdmaep_guard_enter(&device_lock);
	if (!dev->pd)
		dev->pd = ibv_alloc_pd(dev->verbs);
	if (!dev->pd)
		rdmaep_fail_plain(errno);
	pd = dev->pd;
	rdmaep_guard_leave(&device_lock);
	return pd;
}

/**
 * rdmaep_device_xrcd() - the XRC domain
 * @dev: the device
 *
 * Return: the domain, or NULL with errno from libibverbs.
 */
struct ibv_xrcd *rdmaep_device_xrcd(struct rdmaep_device *dev)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_xrcd *xrcd;

	rdmaep_guard_enter(&device_lock);
	if (!dev->xrcd) {
		dev->xrcd = ibv_open_xrcd(dev->verbs, &attr);
		if (!dev->xrcd)
			rdmaep_fail(errno ? errno : EOPNOTSUPP,
				    RDMA_EP_REASON_NO_DEVICE,
				    "%s has no extended reliable connections (XRC)",
				    ibv_get_device_name(dev->verbs->device));
	}
	xrcd = dev->xrcd;
	rdmaep_guard_leave(&device_lock);
	return xrcd;
}

/* Open what is there and not open yet; what cannot be opened is skipped. */
static void device_open_all(struct ibv_device **list)
{
	struct rdmaep_device *dev, *next;
	int i;

	for (dev = devices; dev; dev = next) {
		next = dev->next;
		for (i = 0; list[i]; i++)
			if (list[i] == dev->verbs->device)
				break;
		/* libibverbs keeps a device's struct while it is there. */
		if (list[i])
			continue;
		dev->gone = true;
		if (!dev->refs)
			device_close(dev);
	}
	for (i = 0; list[i]; i++)
		if (!device_find(ibv_get_device_index(list[i]),
				 ibv_get_device_guid(list[i])))
			device_open(list[i]);
}

/**
 * rdma_get_devices() - list of all RDMA devices, opened
 * @num_devices: where their number goes, or NULL
 *
 * Follows rdma_get_devices(3). A device that cannot be opened is left out.
 *
 * Return: array that ends with NULL, for rdma_free_devices(); NULL with errno
 * ENODEV if there is no device, or ENOMEM.
 */
RDMAEP_API struct ibv_context **rdma_get_devices(int *num_devices)
{
	struct ibv_device **list;
	struct ibv_context **devs = NULL;
	struct rdmaep_device *dev;
	int n = 0;

	if (num_devices)
		*num_devices = 0;

	/* With the lock, or a device that another thread opens now would seem gone. */
	rdmaep_guard_enter(&device_lock);
	list = ibv_get_device_list(NULL);
	if (!list)
		goto unlock;

	device_open_all(list);
	for (dev = devices; dev; dev = dev->next)
		n += !dev->gone;
	if (!n) {
		errno = ENODEV;
		goto unlock;
	}

	devs = calloc(n + 1, sizeof(*devs));
	if (!devs)
		goto unlock;

	for (dev = devices, n = 0; dev; dev = dev->next) {
		if (dev->gone)
			continue;
		dev->refs++;
		devs[n++] = dev->verbs;
	}
	if (num_devices)
		*num_devices = n;
unlock:
	rdmaep_guard_leave(&device_lock);
	if (list)
		ibv_free_device_list(list);
	return devs;
}

/**
 * rdma_free_devices() - release a list from rdma_get_devices()
 * @list: the list
 *
 * Follows rdma_free_devices(3). The devices stay open, unless removed.
 */
RDMAEP_API void rdma_free_devices(struct ibv_context **list)
{
	struct rdmaep_device *dev;
	int i;

	if (!list)
		return;

	rdmaep_guard_enter(&device_lock);
	for (i = 0; list[i]; i++) {
		for (dev = devices; dev; dev = dev->next)
			if (dev->verbs == list[i])
				break;
		if (dev)
			device_unref(dev);
	}
	rdmaep_guard_leave(&device_lock);
	free(list);
}
