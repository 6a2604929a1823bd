#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A connection must not cost more instructions than it did: see tools/bench/icount-check.

exec "$(dirname "$0")/../../tools/bench/icount-check"
