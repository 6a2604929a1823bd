#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 600 2400
# sides: ours ours
#
# Many connections at once over a network that loses, delays, doubles, reorders and damages
# packets: our side against ours, and against librdmacm. See storm.c for what each end checks. In its
# long form one after the other, more of it, and more connections.

# shellcheck disable=SC2317 # ktap_test calls the functions
# shellcheck source=selftests/pair/lib.sh
. "$TOP/selftests/pair/lib.sh"
# shellcheck source=selftests/pair/storm.sh
. "$TOP/selftests/pair/storm.sh"
trap 'network calm; rm -rf "$WORK"' EXIT

WORST="loss 10% delay 20ms 15ms duplicate 10% reorder 25% corrupt 2%"

# through NETEM-OPTIONS SERVER-ROLE STORM-CLIENT-OPTION...
through() {
	local options=$1 code=0
	shift
	# shellcheck disable=SC2086 # several words
	network $options || return
	storm "$@" || code=1
	network calm
	return "$code"
}

# netem SERVER-ROLE NETEM-OPTIONS STORM-CLIENT-OPTION...
netem() {
	NUMBER=$((NUMBER + 1))
	ktap_test "$2, server on $1, client ${*:3}" through "$2" "$1" "${@:3}"
}

if ! is_long; then
	netem a "$WORST" -n 48 -w 48
	if both_ours; then
		netem a "loss 10%" -s -n 16 -w 16
	else
		netem b "$WORST" -n 48 -w 48
	fi
	ktap_end
fi
for role in a b; do
	netem $role "loss 10%" -n 200 -w 100
	netem $role "loss 30%" -n 200 -w 100
	netem $role "loss 30%" -s -n 32 -w 32
	netem $role "delay 100ms 80ms" -n 200 -w 100
	netem $role "duplicate 50%" -n 200 -w 100
	netem $role "delay 20ms reorder 50% gap 3" -n 200 -w 100
	netem $role "corrupt 10%" -n 200 -w 100
	netem $role "$WORST" -n 200 -w 100
	netem $role "$WORST" -s -n 32 -w 32
done
ktap_end
