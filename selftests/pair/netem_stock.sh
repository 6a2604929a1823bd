#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 600 2400
# sides: ours stock
#
# As netem.sh, with librdmacm on one side, as server and as client.

exec "$TOP/selftests/pair/netem.sh"
