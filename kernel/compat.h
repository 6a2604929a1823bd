/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * The only place that knows kernel versions.
 */
#ifndef RDMA_EP_COMPAT_H
#define RDMA_EP_COMPAT_H

#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0)
#error "rdma_ep supports Linux 6.1 and later"
#endif

#endif /* RDMA_EP_COMPAT_H */
