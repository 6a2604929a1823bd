# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash disable=SC2034 # variables are used by the scripts that source this
#
# Sourced by the tests of rdmaep's subcommands.

# shellcheck source=selftests/lib/ktap.sh
. "$TOP/selftests/lib/ktap.sh"

RDMAEP=$BUILD/tools/rdmaep/rdmaep
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
SERVER=

# serve COMMAND...: rdmaep serve in the background, until it listens. It is $SERVER, and what it
# says is in $WORK/serve.
serve() {
	local i
	rm -f "$WORK/serve"
	"$@" >"$WORK/serve" 2>&1 &
	SERVER=$!
	for ((i = 0; i < 100 * SLOW; i++)); do
		! grep -qs "listening on" "$WORK/serve" || return 0
		sleep 0.1
	done
	cat "$WORK/serve"
	return 1
}

# link_up: the interface, with what going down has taken away
link_up() {
	ip link set d0 up
	ip addr replace "$MY_IP6/64" dev d0 nodad
	ip route replace 224.0.0.0/4 dev d0
}

# says FILE PATTERN...: lines that must be there.
says() {
	local file=$1 pattern
	shift
	for pattern; do
		grep -qE -- "$pattern" "$file" ||
			{ cat "$file" && echo "no line like: $pattern" && return 1; }
	done
}
