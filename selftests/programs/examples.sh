#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 180
#
# The programs of examples/ do what they are there to show.

# shellcheck disable=SC2317 # ktap_test calls the functions
# shellcheck source=selftests/programs/lib.sh
. "$TOP/selftests/programs/lib.sh"

PATH=$BUILD/examples:$PATH
GROUP=239.1.1.2

# They are linked with the library by its own name.
used_library() {
	local file n=0
	for file in "$WORK"/ld.*; do
		! grep -q 'calling init: .*/librdmacm\.so' "$file" || { echo "librdmacm in $file" && return 1; }
		! grep -q 'calling init: .*/librdmaep\.so\.1' "$file" || n=$((n + 1))
	done
	[ "$n" -gt 1 ] || { echo "$n programs have used the library" && return 1; }
}

# says LOG LINE...: exactly these lines.
says() {
	local log=$WORK/$1.log
	shift
	diff <(printf '%s\n' "$@") "$log"
}

# hello SERVER CLIENT: one message each way
hello() {
	local code=0
	start_server "$1" "$MY_IP" && client "$2" "$MY_IP" && wait_server &&
		says server "the client says: hello, server" &&
		says client "the server says: hello, client" || code=1
	finish "$code"
}

event_loop() {
	local code=0 pid
	local -a clients=()
	start_server epoll-server "$MY_IP" || code=1
	for _ in 1 2 3; do
		client epoll-client "$MY_IP" 2 &
		clients+=($!)
	done
	for pid in "${clients[@]}"; do
		wait "$pid" || code=1
	done
	[ "$(grep -c '^back came: message 2' "$WORK/client.log")" = 3 ] || code=1
	kill "$SERVER_PID" && wait_server || code=1
	finish "$code"
}

nobody_listens() {
	local code=0
	! client epoll-client "$MY_IP" &&
		grep -q "epoll-client: RDMA_CM_EVENT_REJECTED: the other side refuses" \
			"$WORK/client.log" || code=1
	[ "$code" = 0 ] || cat "$WORK/client.log"
	rm -f "$WORK"/*
	return "$code"
}

multicast() {
	local code=0 i
	(with_library multicast-receiver "$GROUP") >"$WORK/server.log" 2>&1 &
	SERVER_PID=$!
	for ((i = 0; i < 300 * SLOW; i++)); do
		! ip maddr show dev d0 | grep -q "$GROUP" || break
		sleep 0.1
	done
	sleep $((2 * SLOW)) # from the group's membership to the QP's attachment
	client multicast-sender "$GROUP" "hello, all" && wait_server &&
		says server "to the group: hello, all" || code=1
	finish "$code"
}

ktap_test "server, client" hello server client
ktap_test "epoll-server, three epoll-clients" event_loop
ktap_test "epoll-client, and nobody listens" nobody_listens
ktap_test "ud-server, ud-client" hello ud-server ud-client
ktap_test "multicast-sender, multicast-receiver" multicast
ktap_end
