# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Sourced by the scripts under tools/: where things are, and how to stop with a sentence.

set -euo pipefail
export LC_ALL=C.UTF-8 PATH=$PATH:/usr/sbin:/sbin

TOP=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
BUILD=${RDMA_EP_BUILD:-$TOP/build}
CACHE=${RDMA_EP_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rdma_ep}
export TOP BUILD CACHE

PROG=${0#"$TOP"/}

die() {
	printf '%s: %s\n' "$PROG" "$*" >&2
	exit 2
}

say() {
	printf '%s: %s\n' "$PROG" "$*" >&2
}

# The help of a script is the comment block under its SPDX line.
usage() {
	awk 'NR > 2 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"
}

# One holder at a time; the lock goes when the shell that took it ends.
lock() {
	mkdir -p "$(dirname "$1")"
	exec {LOCK_FD}>"$1"
	flock "$LOCK_FD"
}

# quietly LOG COMMAND...: quiet when it works, the whole log when it does not.
quietly() {
	local log=$1
	shift
	"$@" >"$log" 2>&1 || {
		cat "$log" >&2
		die "failed: $*"
	}
}
