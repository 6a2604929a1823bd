#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# As packages.sh, with the RPM packages.

exec "$(dirname "$0")/packages.sh" rpm
