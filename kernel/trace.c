// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/* Where the trace events are defined. */
#include <linux/module.h>

#ifndef __CHECKER__
#define CREATE_TRACE_POINTS
#include "trace.h"
#endif
