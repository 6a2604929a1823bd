#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 400
# sides: ours stock
#
# mckey on two machines: what the one sends to a group, the other receives.

# shellcheck disable=SC2317 # ktap_test calls the functions
# shellcheck source=selftests/pair/lib.sh
. "$TOP/selftests/pair/lib.sh"

# joined GROUP: the kernel of this side is in it
joined() {
	local i
	for ((i = 0; i < 300 * SLOW; i++)); do
		! ip maddr show dev d0 | grep -q "$1" || return 0
		sleep 0.1
	done
	echo "nobody has joined"
	return 1
}

# group RECEIVER-ROLE SENDER-OPTION...
group() {
	local role=$1 code=0 pid
	shift
	if [ "$ROLE" = "$role" ]; then
		program mckey -m 239.1.1.1 -b "$MY_IP" &
		pid=$!
		joined 239.1.1.1 || code=1
		sleep $((2 * SLOW)) # from the group's membership to the QP's attachment
		barrier "${0##*/}-joined-$NUMBER"
		wait "$pid" || code=1
	else
		barrier "${0##*/}-joined-$NUMBER"
		program mckey -m 239.1.1.1 -b "$MY_IP" -s "$@" || code=1
	fi
	barrier "${0##*/}-done-$NUMBER"
	[ "$code" != 0 ] || right_library || code=1
	[ "$code" = 0 ] || cat "$WORK/log"
	rm -f "$WORK"/*
	return "$code"
}

for role in a b; do
	NUMBER=$((NUMBER + 1))
	ktap_test "mckey, receiver on $role" group $role
	NUMBER=$((NUMBER + 1))
	ktap_test "mckey -o, receiver on $role" group $role -o
done
ktap_end
