#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What of rdmaep looks at others: list, show, stat, monitor, trace. A server that is stopped reads
# no events, so there is something to see.

# shellcheck disable=SC2317 # ktap_test calls the functions
# shellcheck source=selftests/programs/tool.sh
. "$TOP/selftests/programs/tool.sh"
# Where the module under test is
# shellcheck disable=SC1091
. "$OUT/vm.conf"

INSTANCES=/sys/kernel/tracing/instances
NOBODY=(setpriv --reuid 65534 --regid 65534 --clear-groups)
[ -d "$INSTANCES" ] || mount -t tracefs none /sys/kernel/tracing

# start_server ARGS-OF-SERVE...: until it listens. Its process is not a child of timeout's, so that
# it can be stopped by its number.
start_server() {
	serve "$RDMAEP" serve "$@"
}

stop_server() {
	kill -CONT "$SERVER"
	kill "$SERVER"
	wait "$SERVER"
}

ping() {
	timeout $((30 * SLOW)) "$RDMAEP" ping -i 0 "$@" >"$WORK/ping" 2>&1
}

# has_one NAME ARGS-OF-LIST...: these filters let it through; has_none: they do not.
has_one() {
	[ "$("$RDMAEP" list -H "$@" 2>/dev/null | wc -l)" = 1 ] ||
		{ "$RDMAEP" list "$@"; echo "not one line: list $*" && return 1; }
}

has_none() {
	[ -z "$("$RDMAEP" list -H "$@" 2>/dev/null)" ] || { echo "lines: list $*" && return 1; }
}

filters() {
	local yes no code=0
	start_server -a "$MY_IP" -p 7280 || return
	for yes in -l "-s listening" "-s bound,LISTENING" "-t RC" "-P tcp" "-d rxe0" "-d rxe0/1" \
		"-a $MY_IP" "-p 7280" "-p 07280" "-n rdmaep" "-u root" "-u 0" "-l -p 7280 -a $MY_IP" "$SERVER"; do
		# shellcheck disable=SC2086 # they are words
		has_one $yes || code=1
	done
	for no in "-s connected" "-t UD" "-P UDP" "-d rxe" "-d rxe0/2" "-a 192.0.2.1" "-a ::1" "-p 728" \
		"-n rdma" "-u nobody" "-u 4000000000" "-l -p 7281" "$$"; do
		# shellcheck disable=SC2086
		has_none $no || code=1
	done
	stop_server
	start_server -a "$MY_IP6" -p 7280 || return
	for yes in "-a $MY_IP6" "-a [$MY_IP6]" "-a FD77:0:0:0:0:0:0:1"; do
		# shellcheck disable=SC2086
		has_one $yes || code=1
	done
	stop_server
	return "$code"
}

# wrong PATTERN COMMAND...: wrong usage, and said so.
wrong() {
	local pattern=$1 output code=0
	shift
	output=$(timeout $((10 * SLOW)) "$RDMAEP" "$@" 2>&1) || code=$?
	[ "$code" = 2 ] && grep -qE -- "^rdmaep $1: $pattern; see rdmaep $1 --help$" <<<"$output" ||
		{ echo "$*: exit code $code: $output" && return 1; }
}

# What nothing can match is not looked or waited for.
impossible_filters() {
	local value code=0
	for value in 99999 0 7280x ""; do
		wrong "$value is not a port number" list -p "$value" || code=1
	done
	for value in 10.77.0 fd77::1/64 10.77.0.1:7280 "fd77::1]" ""; do
		wrong ".* is not an IP address" list -a "$value" || code=1
	done
	for value in rxe0/x rxe0/0 /1; do
		wrong "$value is not DEVICE or DEVICE/PORT" list -d "$value" || code=1
	done
	for value in 77 1:0 1:2:3 +1:2; do
		wrong ".* is not CONTEXT:HANDLE" monitor -e "$value" || code=1
	done
	wrong "99999 is not a port number" monitor -p 99999 || code=1
	wrong "foo is not an IP address" monitor -a foo || code=1
	wrong "there is no user nosuch" list -u nosuch || code=1
	wrong "there is no user -1" list -u -1 || code=1
	wrong "there is no process 999999999" monitor -P 999999999 || code=1
	wrong "the kind foo is unknown; there are call,state,.*,path" monitor -k call,foo || code=1
	return "$code"
}

list_json() {
	local code=0
	start_server -p 7281 || return
	"$RDMAEP" list -lj >"$WORK/json"
	stop_server
	python3 - "$WORK/json" "$SERVER" <<-'END' || code=1
		import json, sys
		(ep,) = json.load(open(sys.argv[1]))
		assert ep["pid"] == int(sys.argv[2]) and ep["program"] == "rdmaep" and ep["user"] == "root"
		assert ep["state"] == "LISTENING" and ep["type"] == "RC" and ep["ps"] == "TCP"
		assert ep["source"].endswith(":7281") and "device" not in ep
		assert ep["backlog"] > 0 and ep["requests"] == ep["overflows"] == ep["events"] == 0
	END
	"$RDMAEP" list -j | tr -d ' \n' | grep -qx '\[\]' || code=1
	return "$code"
}

# A server that is stopped has requests that nobody reads.
show_pending() {
	local name code=0
	start_server -p 7282 || return
	name=$("$RDMAEP" list -H -l | awk '{ print $1 }')
	"$RDMAEP" show "$name" >"$WORK/show" || code=1
	says "$WORK/show" "^Endpoint $name$" "^  process +$SERVER, rdmaep of user root$" \
		'^  state +LISTENING: ' '^  port space +TCP$' '^  source +.*:7282$' \
		'^  channel +file descriptor [0-9]+$' '^  events +none' \
		'^  backlog +0 requests wait, of [0-9]+ that may$' '^  refused +0$' || code=1
	kill -STOP "$SERVER"
	ping -W 1 -p 7282 "$MY_IP"
	"$RDMAEP" show "$name" >"$WORK/show" || code=1
	says "$WORK/show" '^  events +1 that nobody has read: CONNECT_REQUEST$' \
		'^  backlog +1 requests wait' || code=1
	"$RDMAEP" list -H -l | grep -qE ' 1 +1/[0-9]+ +0$' || code=1
	"$RDMAEP" show -j "$name" >"$WORK/json" || code=1
	python3 - "$WORK/json" <<-'END' || code=1
		import json, sys
		(ep,) = json.load(open(sys.argv[1]))
		assert ep["events"] == 1 and ep["pending"] == ["CONNECT_REQUEST"] and ep["requests"] == 1
	END
	stop_server
	return "$code"
}

show_none() {
	local output
	output=$("$RDMAEP" show 4000000:1 2>&1) && return 1
	echo "$output"
	[ "$output" = "rdmaep: no endpoint 4000000:1" ] || return
	# who reads JSON gets JSON
	output=$("$RDMAEP" show -j 4000000:1 2>/dev/null) && return 1
	[ "${output//[[:space:]]/}" = "[]" ]
}

# counter NAME: as /proc/net/rdma_ep has it.
counter() {
	awk -v name="$1" '$1 == name { print $2 }' /proc/net/rdma_ep
}

# rping's backlog is 3: of five, two are refused, and counted everywhere.
overflow() {
	local i server refused before code=0
	local -a clients=()
	timeout $((60 * SLOW)) "$RDMAEP" run rping -s -a "$MY_IP" -p 7283 >/dev/null 2>&1 &
	server=$!
	sleep 1
	before=$(counter backlog_overflows)
	kill -STOP "$(pgrep -x rping)"
	for i in 1 2 3 4 5; do
		timeout $((30 * SLOW)) "$RDMAEP" ping -W 2 -p 7283 "$MY_IP" >"$WORK/ping.$i" 2>&1 &
		clients+=($!)
	done
	wait "${clients[@]}"
	"$RDMAEP" list -l
	"$RDMAEP" list -H -l | grep -qE ' 3/3 +2$' || code=1
	"$RDMAEP" show "$("$RDMAEP" list -H -l | awk '{ print $1 }')" >"$WORK/show"
	says "$WORK/show" '^  refused +2: the backlog was full' || code=1
	refused=$(($(counter backlog_overflows) - before))
	[ "$refused" = 2 ] || { echo "$refused counted" && code=1; }
	kill -9 "$(pgrep -x rping)"
	wait "$server"
	return "$code"
}

# What a connection with one message adds to the counters.
stat_counts() {
	local name code=0
	local -A before
	for name in connected accepted disconnected endpoints_created endpoints_destroyed \
		contexts_opened event.CONNECT_REQUEST event.ESTABLISHED; do
		before[$name]=$(counter "$name")
	done
	start_server -p 7284 -n 1 || return
	[ "$(counter contexts) $(counter endpoints) $(counter channels)" = "1 1 1" ] || code=1
	[ "$(counter memory_bytes)" -gt 500 ] || code=1
	ping -c 1 -p 7284 "$MY_IP" || code=1
	wait "$SERVER" || code=1
	cat /proc/net/rdma_ep
	# a listener and a connection's two ends; both ends hear of the end
	while read -r name add; do
		[ $(($(counter "$name") - before[$name])) = "$add" ] ||
			{ echo "$name: ${before[$name]} + $add is not $(counter "$name")" && code=1; }
	done <<-'END'
		connected 1
		accepted 1
		disconnected 2
		endpoints_created 3
		endpoints_destroyed 3
		contexts_opened 2
		event.CONNECT_REQUEST 1
		event.ESTABLISHED 1
	END
	for name in contexts endpoints channels events_waiting memory_bytes; do
		[ "$(counter "$name")" = 0 ] || { echo "$name is left" && code=1; }
	done
	[ "$(counter events_queued)" = $(($(counter events_read) + $(counter events_discarded))) ] &&
		return "$code"
}

stat_failures() {
	local calls reasons rejected
	calls=$(counter calls_failed)
	reasons=$(counter reason.ADDR_NOT_LOCAL)
	rejected=$(counter rejected_by_peer)
	ping -S 192.0.2.1 "$MY_IP"
	ping -p 7299 "$MY_IP"
	"$RDMAEP" stat >"$WORK/stat"
	[ "$(counter reason.ADDR_NOT_LOCAL)" = $((reasons + 1)) ] &&
		[ "$(counter calls_failed)" -ge $((calls + 1)) ] &&
		[ "$(counter rejected_by_peer)" = $((rejected + 1)) ] &&
		says "$WORK/stat" '^reason.ADDR_NOT_LOCAL +[1-9]' "^requests rejected by the peer +[1-9]"
}

# Everybody may look, and nobody sees another namespace.
stat_others() {
	"${NOBODY[@]}" "$RDMAEP" stat >"$WORK/stat" && says "$WORK/stat" '^contexts opened +[1-9]' &&
		unshare -n "$RDMAEP" stat >"$WORK/stat" && says "$WORK/stat" '^contexts opened +0$' &&
		"$RDMAEP" stat -g >"$WORK/stat" && says "$WORK/stat" '^contexts opened +[1-9]' &&
		! "${NOBODY[@]}" "$RDMAEP" stat --global 2>"$WORK/stat" &&
		says "$WORK/stat" 'Permission denied; it is for root, in the initial network namespace$' &&
		! unshare -n "$RDMAEP" stat --global 2>"$WORK/stat" &&
		says "$WORK/stat" 'No such file or directory; it is for root'
}

# A context counts where it was opened, and its namespace may go before it.
stat_namespace() {
	local code=0
	ip netns add stat
	ip netns exec stat python3 - <<-'END' &
		import os, time
		fd = os.open("/dev/infiniband/rdma_ep", os.O_RDWR)
		open("/tmp/rdmaep_watch.open", "w").close()
		time.sleep(5)
	END
	local holder=$!
	while [ ! -e /tmp/rdmaep_watch.open ]; do
		sleep 0.1
	done
	rm /tmp/rdmaep_watch.open
	ip netns exec stat grep -x "contexts 1" /proc/self/net/rdma_ep || code=1
	[ "$(counter contexts)" = 0 ] || code=1
	ip netns delete stat
	wait "$holder" || code=1
	return "$code"
}

stat_watch() {
	"$RDMAEP" stat --watch 0.2 -c 3 >"$WORK/stat" &&
		[ "$(grep -c '^COUNTER +TOTAL +PER SECOND$' -E "$WORK/stat")" = 2 ] &&
		"$RDMAEP" stat --watch=0.2 -c 3 -j >"$WORK/json" && python3 - "$WORK/json" <<-'END'
			import json, sys
			lines = [json.loads(line) for line in open(sys.argv[1])]
			assert len(lines) == 3
			assert "seconds" not in lines[0] and lines[1]["seconds"] > 0.1
			assert set(lines[0]["event"]) >= {"ADDR_RESOLVED", "ESTABLISHED", "USER"}
			assert lines[2]["endpoints"] == 0 and "REJECTED" in lines[2]["reason"]
		END
}

stat_usage() {
	local code=0 value
	for value in 0 -1 abc 1e99; do
		wrong "$value is not a number of seconds, above 0 and up to 86400" stat -c 1 \
			"--watch=$value" || code=1
	done
	for value in 0 abc 1e99; do
		wrong "$value is not a number of seconds, above 0 and up to 86400" stat -c 1 \
			--watch "$value" || code=1
	done
	wrong "what is 7\?" stat -c 1 --watch=1 7 || code=1
	wrong "what is 7\?" stat -c 1 7 || code=1
	timeout $((30 * SLOW)) "$RDMAEP" stat -jc 2 >"$WORK/json" || code=1
	[ "$(wc -l <"$WORK/json")" = 2 ] && return "$code"
}

# monitor ARGS...: in the background, until it traces; settle ends it.
monitor() {
	local i
	"$RDMAEP" monitor "$@" >"$WORK/monitor" 2>&1 &
	MONITOR=$!
	for ((i = 0; i < 100 * SLOW; i++)); do
		! grep -qs 1 "$INSTANCES/rdmaep-monitor-$MONITOR/events/rdma_ep/enable" || break
		sleep 0.1
	done
	sleep 0.5
}

settle() {
	sleep 1
	kill -INT "$MONITOR"
	wait "$MONITOR" || { cat "$WORK/monitor" && return 1; }
	[ ! -e "$INSTANCES/rdmaep-monitor-$MONITOR" ] || { echo "its instance is left" && return 1; }
}

# Of both ends of a connection, in order, with times since the line before.
monitor_connection() {
	local code=0
	start_server -p 7285 -n 1 || return
	monitor
	ping -c 1 -p 7285 "$MY_IP" || code=1
	wait "$SERVER" || code=1
	settle || code=1
	cat "$WORK/monitor"
	says "$WORK/monitor" '^ +0\.000000 ' \
		'^ +[0-9.]+ +\+0\.[0-9]+ +[0-9]+:1 +rdmaep +state +IDLE -> RESOLVING_ADDR$' \
		" path +rxe0/1, $MY_IP:[0-9]+ -> $MY_IP:7285$" ' created +for a request to [0-9]+:1$' \
		' event +CONNECT_REQUEST$' ' read +CONNECT_REQUEST$' ' call +accept$' \
		' state +CONNECTING -> RESPONDED$' ' state +ACCEPTING -> CONNECTED$' \
		' call +disconnect$' ' destroyed$' || code=1
	# the three of the active side, in this order
	[ "$(grep -oE 'IDLE -> RESOLVING_ADDR|ROUTE_RESOLVED -> CONNECTING|RESPONDED -> CONNECTED' \
		"$WORK/monitor" | tr '\n' ,)" = \
		"IDLE -> RESOLVING_ADDR,ROUTE_RESOLVED -> CONNECTING,RESPONDED -> CONNECTED," ] || code=1
	! grep -q $'\033' "$WORK/monitor" && return "$code"
}

monitor_filters() {
	local code=0
	monitor -f -k call,event -n rdmaep
	ping -p 7299 "$MY_IP"
	timeout $((30 * SLOW)) "$RDMAEP" run rdma_client -s "$MY_IP" -p 7299 >/dev/null
	settle || code=1
	cat "$WORK/monitor"
	says "$WORK/monitor" ' rdmaep +event +REJECTED: status [0-9]+$' || code=1
	! grep -vE ' (event|call) ' "$WORK/monitor" | grep -q . || code=1
	! grep -q rdma_client "$WORK/monitor" || code=1
	! grep -q ADDR_RESOLVED "$WORK/monitor" || code=1
	return "$code"
}

# Only what happens to a listener.
monitor_endpoint() {
	local name code=0
	start_server -p 7289 -n 1 || return
	name=$("$RDMAEP" list -H -l | awk '{ print $1 }')
	monitor -e "$name" -p 07289 -P "$SERVER"
	ping -c 1 -p 7289 "$MY_IP" || code=1
	wait "$SERVER" || code=1
	settle || code=1
	cat "$WORK/monitor"
	says "$WORK/monitor" " $name +rdmaep +event +CONNECT_REQUEST$" || code=1
	! grep -vE " $name +rdmaep " "$WORK/monitor" | grep -q . || code=1
	return "$code"
}

monitor_json() {
	monitor -j -c 5
	ping -p 7299 "$MY_IP"
	wait "$MONITOR" || return
	python3 - "$WORK/monitor" <<-'END'
		import json, sys
		lines = [json.loads(line) for line in open(sys.argv[1])]
		assert len(lines) == 5
		assert all(a["time_us"] <= b["time_us"] for a, b in zip(lines, lines[1:]))
		assert all(line["program"] == "rdmaep" for line in lines)
		assert lines[0]["kind"] == "created" and "since_us" in lines[1]
	END
}

# What it cannot write ends it, and is told.
monitor_full() {
	local code=0
	timeout $((30 * SLOW)) "$RDMAEP" monitor >/dev/full 2>"$WORK/monitor" &
	MONITOR=$!
	sleep 2
	ping -p 7299 "$MY_IP"
	wait "$MONITOR" || code=$?
	cat "$WORK/monitor"
	[ "$code" = 1 ] && says "$WORK/monitor" '^rdmaep: standard output: No space left on device$' &&
		[ -z "$(ls "$INSTANCES")" ]
}

# refused COMMAND...: an ordinary user is told why, and nothing is left.
refused() {
	local output code=0
	output=$("${NOBODY[@]}" "$RDMAEP" "$@" 2>&1) || code=$?
	echo "$output"
	[ "$code" = 1 ] && grep -q "^rdmaep: .*tracing.*: Permission denied; tracing needs root$" \
		<<<"$output" && [ -z "$(ls "$INSTANCES")" ]
}

# One that was killed leaves its instance; the next removes it.
monitor_killed() {
	monitor
	kill -9 "$MONITOR"
	wait "$MONITOR"
	local killed=$MONITOR
	[ -d "$INSTANCES/rdmaep-monitor-$killed" ] || return
	monitor
	settle && [ ! -e "$INSTANCES/rdmaep-monitor-$killed" ]
}

trace_client() {
	local code=0
	start_server -p 7286 -n 1 || return
	timeout $((60 * SLOW)) "$RDMAEP" trace --svg "$OUT/rdmaep_watch.svg" \
		"$RDMAEP" ping -c 2 -p 7286 "$MY_IP" >"$WORK/trace" 2>&1 || code=1
	wait "$SERVER" || code=1
	cat "$WORK/trace"
	says "$WORK/trace" "^Endpoint [0-9]+:1, active, $MY_IP:[0-9]+ -> $MY_IP:7286 on rxe0/1, " \
		' ms +\+[0-9.]+  address resolved$' '  route resolved$' '  REQ sent$' \
		'  REP has come$' '  RTU sent: connected$' '  program reads CONNECT_RESPONSE$' \
		'  disconnected$' '  destroyed$' '^1 endpoint, 1 connected, 0 failed' \
		'^REQ to REP +1 ' '^set-up as a whole +1 ' '^Time to connected, us:$' \
		' +1 \*{40}$' || code=1
	# only the program's own: the server is not among them
	[ "$(grep -c ^Endpoint "$WORK/trace")" = 1 ] || code=1
	python3 - "$OUT/rdmaep_watch.svg" <<-'END' || code=1
		import sys
		import xml.etree.ElementTree as tree
		bars = [rect for rect in tree.parse(sys.argv[1]).iter("{http://www.w3.org/2000/svg}title")]
		assert any(bar.text.startswith("REP has come") for bar in bars), len(bars)
	END
	[ -z "$(ls "$INSTANCES")" ] && return "$code"
}

# The other side, and a process that the program starts.
trace_server() {
	local i code=0
	rm -f "$WORK/serve"
	timeout $((60 * SLOW)) "$RDMAEP" trace -j sh -c "'$RDMAEP' serve -n 1 -p 7287 >'$WORK/serve'; exit 3" \
		>"$WORK/json" 2>&1 &
	local trace=$!
	for ((i = 0; i < 100 * SLOW; i++)); do
		! grep -qs "listening on" "$WORK/serve" || break
		sleep 0.1
	done
	ping -c 1 -p 7287 "$MY_IP" || code=1
	wait "$trace"
	[ $? = 3 ] || code=1
	python3 - "$WORK/json" <<-'END' || { cat "$WORK/json" && code=1; }
		import json, sys
		answer = json.load(open(sys.argv[1]))
		listener, passive = answer["endpoints"]
		assert answer["exit"] == 3 and listener["listening"] and passive["passive"]
		steps = [step["what"] for step in passive["steps"]]
		assert set(steps) >= {"REQ has come", "REP sent", "RTU has come: connected",
				      "disconnected", "destroyed"}, steps
		times = [step["at_us"] for step in passive["steps"]]
		assert times == sorted(times)
		assert answer["phases"]["REQ to accept"]["count"] == 1
		assert sum(bucket["count"] for bucket in answer["histogram"]) == 1
	END
	return "$code"
}

# Told to end, it tells the program, and reports.
trace_terminated() {
	local i trace code=0
	rm -f "$WORK/serve"
	"$RDMAEP" trace "$RDMAEP" serve -p 7288 >"$WORK/serve" 2>&1 &
	trace=$!
	for ((i = 0; i < 100 * SLOW; i++)); do
		! grep -qs "listening on" "$WORK/serve" || break
		sleep 0.1
	done
	kill "$trace"
	wait "$trace" || code=$?
	cat "$WORK/serve"
	[ "$code" = 0 ] && says "$WORK/serve" ' 0 connections served$' '^Endpoint [0-9]+:1, listener, ' \
		'  listens$' '  destroyed$' && [ -z "$(ls "$INSTANCES")" ]
}

trace_failure() {
	local code=0
	timeout $((60 * SLOW)) "$RDMAEP" trace "$RDMAEP" ping -p 7299 "$MY_IP" >"$WORK/trace" 2>&1 || code=$?
	cat "$WORK/trace"
	[ "$code" = 1 ] && says "$WORK/trace" '  ! event REJECTED: ' '  ! failed$' \
		'^1 endpoint, 0 connected, 1 failed'
}

# trace_failed_call PATTERN PROGRAM...: the call failed and says why, and its endpoint counts.
trace_failed_call() {
	local pattern=$1
	shift
	timeout $((60 * SLOW)) "$RDMAEP" trace "$@" >"$WORK/trace" 2>&1
	cat "$WORK/trace"
	says "$WORK/trace" "  ! $pattern" '^1 endpoint, 0 connected, 1 failed$'
}

# A picture that cannot be drawn is known before the program runs; an empty one is none.
trace_picture() {
	local output code=0
	output=$("$RDMAEP" trace --svg "$WORK/nosuch/x.svg" sh -c "touch $WORK/ran; exit 3" 2>&1) || code=$?
	echo "$output"
	[ "$code" = 1 ] && [ ! -e "$WORK/ran" ] &&
		[ "$output" = "rdmaep: $WORK/nosuch/x.svg: No such file or directory" ] || return 1
	"$RDMAEP" trace --svg "$WORK/none.svg" sh -c "[ -e $WORK/none.svg ] && exit 3"
	[ $? = 3 ] && [ ! -e "$WORK/none.svg" ] || return 1
	# what was there stays
	touch "$WORK/none.svg"
	"$RDMAEP" trace --svg "$WORK/none.svg" true && [ -e "$WORK/none.svg" ] || return
	code=0
	output=$("$RDMAEP" trace --svg "$WORK" touch "$WORK/ran" 2>&1) || code=$?
	[ "$code" = 1 ] && [ ! -e "$WORK/ran" ] && [ "$output" = "rdmaep: $WORK: Is a directory" ] ||
		{ echo "$output" && return 1; }
	code=0
	"$RDMAEP" trace --svg /dev/full rdma_client -s 198.51.100.1 >"$WORK/trace" 2>&1 || code=$?
	says "$WORK/trace" '^rdmaep: /dev/full: No space left on device$' && [ "$code" != 0 ]
}

trace_nothing() {
	local output code=0
	output=$("$RDMAEP" trace true 2>&1) || code=$?
	echo "$output"
	[ "$code" = 0 ] && grep -q "true has made no endpoint" <<<"$output" || return 1
	"$RDMAEP" trace /nonexistent || code=$?
	[ "$code" = 127 ] && [ -z "$(ls "$INSTANCES")" ]
}

# with_module_away COMMAND...: the module is not loaded, but may be, from where no depmod has to
# know of it.
with_module_away() {
	local config=/etc/modprobe.d/rdmaep_watch.conf code=0
	rmmod rdma_ep || return
	printf '%s\n' "alias rdma-client-rdma_ep rdma_ep" "install rdma_ep insmod $VM_MODULE" >"$config"
	"$@" || code=$?
	rm "$config"
	[ -e /sys/module/rdma_ep ] || { echo "the module is not loaded" && code=1; }
	[ -e /sys/module/rdma_ep ] || insmod "$VM_MODULE"
	return "$code"
}

trace_loads() {
	timeout $((60 * SLOW)) "$RDMAEP" trace rdma_client -s "$MY_IP" -p 7299 >"$WORK/trace" 2>&1
	cat "$WORK/trace"
	says "$WORK/trace" '^1 endpoint, 0 connected, 1 failed'
}

monitor_loads() {
	local code=0
	monitor -c 1
	ping -p 7299 "$MY_IP"
	wait "$MONITOR" || code=1
	cat "$WORK/monitor"
	says "$WORK/monitor" ' rdmaep +created' && return "$code"
}

ktap_test "list: filters" filters
ktap_test "list, monitor: filters that nothing can match" impossible_filters
ktap_test "list: JSON" list_json
ktap_test "show: events that nobody reads" show_pending
ktap_test "show: no such endpoint" show_none
ktap_test "list, show, stat: the backlog is full" overflow
ktap_test "stat: what a connection counts" stat_counts
ktap_test "stat: failures, by reason" stat_failures
ktap_test "stat: for everybody, of one's own namespace" stat_others
ktap_test "stat: a namespace goes before its context" stat_namespace
ktap_test "stat: again and again" stat_watch
ktap_test "stat: intervals and counts" stat_usage
ktap_test "monitor: both ends of a connection" monitor_connection
ktap_test "monitor: filters" monitor_filters
ktap_test "monitor: one endpoint" monitor_endpoint
ktap_test "monitor: JSON" monitor_json
ktap_test "monitor: output that cannot be written" monitor_full
ktap_test "monitor: no permission" refused monitor
ktap_test "monitor: what a killed one has left" monitor_killed
ktap_test "trace: a client, and its picture" trace_client
ktap_test "trace: a server that a shell starts" trace_server
ktap_test "trace: is told to end" trace_terminated
ktap_test "trace: a failure" trace_failure
ktap_test "trace: an endpoint that cannot be made" trace_failed_call \
	"create ep: Network is unreachable$" rdma_client -s 198.51.100.1
ktap_test "trace: an address that is not resolved" trace_failed_call \
	"resolve address: " "$RDMAEP" ping 198.51.100.1
ktap_test "trace: a picture that cannot be drawn" trace_picture
ktap_test "trace: nothing to trace" trace_nothing
ktap_test "trace: no permission" refused trace true
ktap_test "trace: has the module loaded" with_module_away trace_loads
ktap_test "monitor: has the module loaded" with_module_away monitor_loads
ktap_end
