// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * All that this library has is its name, its version nodes and its need of
 * librdmaep.so.1: see meson.build here. The linker keeps a need only where
 * something is used.
 */
#include <rdmaep.h>

static const void *need __attribute__((used)) = rdmaep_strerror;
