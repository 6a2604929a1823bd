#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# rdmaep ping and rdmaep serve: a path that works, and one thing at a time that does not, with what
# is said about it.

# shellcheck disable=SC2317 # ktap_test calls the functions
# shellcheck source=selftests/programs/tool.sh
. "$TOP/selftests/programs/tool.sh"

NODE=/dev/infiniband/rdma_ep

# start ARGS-OF-SERVE...: in the background, until it listens.
start() {
	serve timeout $((60 * SLOW)) "$RDMAEP" serve "$@"
}

# ended: the exit code of what start has started.
ended() {
	local code=0
	wait "$SERVER" || code=$?
	SERVER=
	return "$code"
}

stop() {
	[ -n "$SERVER" ] || return 0
	kill "$SERVER"
	wait "$SERVER"
	SERVER=
}

# ping EXPECTED-CODE ARGS...: the output goes to $WORK/ping.
ping() {
	local expected=$1 code=0
	shift
	"${AS[@]}" timeout $((60 * SLOW)) "$RDMAEP" ping "$@" >"$WORK/ping" 2>&1 || code=$?
	[ "$code" = "$expected" ] ||
		{ cat "$WORK/ping" && echo "exit code $code, not $expected" && return 1; }
}
AS=()

# fails ARGS-OF-PING... -- PATTERN...
fails() {
	local -a args=()
	while [ "$1" != -- ]; do
		args+=("$1")
		shift
	done
	shift
	ping 1 "${args[@]}" && says "$WORK/ping" "$@"
}

every_step() {
	start -n 1 && ping 0 -c 3 -i 0 "$MY_IP" && ended || return
	says "$WORK/ping" "^name +[0-9.]+ ms +$MY_IP is $MY_IP:7174$" '^device +[0-9.]+ ms ' \
		"^address +[0-9.]+ ms +rxe0 port 1, from $MY_IP:[0-9]+$" \
		'^route +[0-9.]+ ms +1 path, MTU [0-9]+$' '^queue pair +[0-9.]+ ms ' \
		"^connect +[0-9.]+ ms +$MY_IP:7174 has accepted$" \
		'^message +[0-9.]+ ms +3 of 3, 64 bytes$' '^disconnect .*all is well$' \
		'^3 sent, 3 came back; min/avg/max [0-9.]+/[0-9.]+/[0-9.]+ ms$' &&
		says "$WORK/serve" "$MY_IP:[0-9]+ connected$" ' gone after 3 messages$' \
			' 1 connection served$'
}

ipv6() {
	start -n 1 -a "$MY_IP6" -p 7175 && ping 0 -c 1 -p 7175 -S "$MY_IP6" "$MY_IP6" && ended &&
		says "$WORK/ping" "has accepted" "from \[$MY_IP6\]:"
}

largest() {
	start -n 1 && ping 0 -c 2 -i 0 -s 65536 "$MY_IP" && ended &&
		says "$WORK/ping" '2 of 2, 65536 bytes$'
}

json() {
	start -n 1 && ping 0 -j -c 2 -i 0 "$MY_IP" && ended || return
	python3 - "$WORK/ping" <<-'END'
		import json, sys
		answer = json.load(open(sys.argv[1]))
		assert [s["step"] for s in answer["steps"]] == \
			["name", "device", "address", "route", "queue pair", "connect", "disconnect"]
		assert all(s["ok"] and s["us"] >= 0 for s in answer["steps"])
		assert answer["sent"] == answer["received"] == len(answer["replies_us"]) == 2
		assert answer["min_us"] <= answer["avg_us"] <= answer["max_us"]
	END
}

json_failure() {
	ping 1 -j -p 7199 "$MY_IP" || return
	python3 - "$WORK/ping" <<-'END'
		import json, sys
		answer = json.load(open(sys.argv[1]))
		last = answer["steps"][-1]
		assert last["step"] == "connect" and not last["ok"]
		assert "REJECTED" in last["why"] and "rdmaep serve -p 7199" in last["todo"]
		assert answer["sent"] == 0
	END
}

# Four at once, and all of them get their own messages back.
many() {
	local i code=0
	local -a clients=()
	start -n 4 || return
	for i in 1 2 3 4; do
		"$RDMAEP" ping -c 5 -s "$((i * 1000))" -i 0.05 "$MY_IP" >"$WORK/ping.$i" 2>&1 &
		clients+=($!)
	done
	for i in "${clients[@]}"; do
		wait "$i" || code=1
	done
	ended || code=1
	for i in 1 2 3 4; do
		says "$WORK/ping.$i" '^5 sent, 5 came back' || code=1
	done
	says "$WORK/serve" '4 connections served$' || code=1
	return "$code"
}

nobody_listens() {
	fails -p 7198 "$MY_IP" -- '^connect .* FAILED: Connection refused.* \(REJECTED\)$' \
		"-> nobody listens there: run rdmaep serve -p 7198 on $MY_IP"
}

# Something else listens there, and takes the connection.
other_server() {
	local server code=0
	timeout $((30 * SLOW)) "$RDMAEP" run rdma_server -p 7197 >/dev/null 2>&1 &
	server=$!
	sleep 1
	fails -p 7197 "$MY_IP" -- '^connect .* FAILED: the program on port 7197 is not rdmaep serve' \
		'-> it took the connection, so the path is fine' || code=1
	wait "$server"
	return "$code"
}

other_client() {
	start -p 7196 || return
	! timeout $((30 * SLOW)) "$RDMAEP" run rdma_client -s "$MY_IP" -p 7196 || return 1
	stop
	says "$WORK/serve" ' is not rdmaep ping: rejected$'
}

nobody_answers() {
	fails -W 1 "${MY_IP%.*}.99" -- '^(address|connect) .* FAILED: .*\((TIMEOUT|UNREACHABLE)\)$'
}

peer_dies() {
	local client code=0
	start || return
	timeout $((60 * SLOW)) "$RDMAEP" ping -c 100000 -i 0.01 -W 3 "$MY_IP" >"$WORK/ping" 2>&1 &
	client=$!
	sleep 2
	kill -9 "$(pgrep -P "$SERVER")"
	wait "$SERVER"
	SERVER=
	wait "$client" || code=$?
	[ "$code" = 1 ] || { echo "exit code $code" && return 1; }
	says "$WORK/ping" '^message .* FAILED: ' '^ +-> ' '^[0-9]+ sent, [0-9]+ came back'
}

# ping_beside ARGS...: for as long as the next lines take; its process is $CLIENT.
ping_beside() {
	timeout $((60 * SLOW)) "$RDMAEP" ping -c 100000 -i 0.01 "$@" "$MY_IP" >"$WORK/ping" 2>&1 &
	CLIENT=$!
	sleep 2
}

peer_stops() {
	local code=0
	start || return
	ping_beside -W 2
	pkill -STOP -P "$SERVER"
	wait "$CLIENT" || code=$?
	pkill -CONT -P "$SERVER"
	stop
	[ "$code" = 1 ] || { echo "exit code $code" && return 1; }
	says "$WORK/ping" '^message .* FAILED: reply: nothing for 2000 ms$' '-> it worked before: '
}

peer_ends() {
	local code=0
	start || return
	ping_beside
	stop
	wait "$CLIENT" || code=$?
	[ "$code" = 1 ] || { echo "exit code $code" && return 1; }
	says "$WORK/ping" '^message .* FAILED: (send|reply): the peer has ended the connection$'
}

interface_down() {
	local code=0
	ip link set d0 down
	fails "$MY_IP" -- '^address .* FAILED: port 1 of rxe0 is not active$' '-> .*see rdmaep doctor' ||
		code=1
	link_up || code=1
	return "$code"
}

no_port() {
	local port code=0
	for port in 0 65536 70000 -1 ""; do
		ping 2 -p "$port" "$MY_IP" || code=1
		"$RDMAEP" serve -p "$port" 2>/dev/null
		[ $? = 2 ] || { echo "serve -p '$port'" && code=1; }
	done
	fails -p nosuch "$MY_IP" -- '^name .* FAILED: nosuch is no port$' || code=1
	return "$code"
}

no_permission() {
	local code=0
	chmod 600 "$NODE"
	AS=(setpriv --reuid 65534 --regid 65534 --clear-groups)
	fails "$MY_IP" -- '^device .* FAILED: .*Permission denied' '-> see rdmaep doctor' || code=1
	AS=()
	chmod 666 "$NODE"
	return "$code"
}

ordinary_user() {
	local code=0
	start -n 1 || return
	AS=(setpriv --reuid 65534 --regid 65534 --clear-groups)
	ping 0 -c 1 "$MY_IP" || code=1
	AS=()
	ended && return "$code"
}

port_taken() {
	local output code=0
	start -p 7195 || return
	output=$("$RDMAEP" serve -p 7195 2>&1) || code=$?
	stop
	echo "$output"
	[ "$code" = 1 ] && grep -q '^rdmaep: .*Address already in use' <<<"$output" &&
		grep -q '^-> the port is taken' <<<"$output"
}

interrupted() {
	start && stop && says "$WORK/serve" ' 0 connections served$' && ! "$RDMAEP" list -l | grep -q .
}

ktap_test "ping: every step is there" every_step
ktap_test "ping: IPv6, from a given source" ipv6
ktap_test "ping: the largest message" largest
ktap_test "ping: JSON" json
ktap_test "ping: JSON of a failure" json_failure
ktap_test "serve: four at once" many
ktap_test "ping, serve: as an ordinary user" ordinary_user
ktap_test "ping: nobody listens" nobody_listens
ktap_test "ping: another program listens" other_server
ktap_test "serve: another program connects" other_client
ktap_test "ping: nobody answers" nobody_answers
ktap_test "ping: no route" fails 198.51.100.1 -- '^address .* FAILED: Network is unreachable' '-> '
ktap_test "ping: source is not ours" fails -S 192.0.2.1 "$MY_IP" -- \
	'^address .* FAILED: .* \(ADDR_NOT_LOCAL\)$' '-> no network interface here has that address'
ktap_test "ping: no such name" fails nosuch.invalid -- '^name .* FAILED: nosuch.invalid: ' '-> '
ktap_test "ping: no permission on the device" no_permission
ktap_test "ping: the peer dies" peer_dies
ktap_test "ping: the peer stops" peer_stops
ktap_test "ping: the peer ends" peer_ends
ktap_test "ping, serve: no port" no_port
ktap_test "serve: the port is taken" port_taken
ktap_test "serve: ends when it is told to" interrupted
ktap_test "ping: the interface is down" interface_down
ktap_end
