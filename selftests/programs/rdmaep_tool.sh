#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 120
#
# The rdmaep tool where there is something to find: on a machine in order, and with one thing at a
# time out of order. What it does on any machine is tested by tools/rdmaep/test.sh.

# shellcheck disable=SC2317 # ktap_test calls the functions
. "$TOP/selftests/lib/ktap.sh"

RDMAEP=$BUILD/tools/rdmaep/rdmaep
NODE=/dev/infiniband/rdma_ep

# doctor EXPECTED-CODE PATTERN...: the exit code, and lines that must be there.
doctor() {
	local expected=$1 code=0 pattern output
	shift
	output=$("${AS[@]}" "$RDMAEP" doctor) || code=$?
	echo "$output"
	[ "$code" = "$expected" ] || { echo "exit code $code, not $expected" && return 1; }
	for pattern; do
		grep -qE -- "$pattern" <<<"$output" || { echo "no line like: $pattern" && return 1; }
	done
}

AS=()
all_well() {
	doctor 0 '^module +ok ' '^device +ok ' '^interface +ok +ABI 1,' '^rxe0 +ok +port 1, RoCE on d0' \
		"^address +ok +$MY_IP on d0 is port 1 of rxe0" "^address +ok +$MY_IP6 on d0" \
		'^library +ok .*librdmaep\.so' '^All is well'
}

not_in_front() {
	doctor 0 '^programs +note .*not this library' '-> rdmaep run PROGRAM'
}

in_front() {
	AS=("$RDMAEP" run)
	doctor 0 '^programs +ok .*this library$'
	local code=$?
	AS=()
	return "$code"
}

netdev_down() {
	ip link set d0 down
	doctor 1 '^rxe0 +WARN .* is down$' '-> ip link set d0 up' '^devices +FAIL '
	local code=$?
	ip link set d0 up
	# what going down has taken away
	ip addr replace "$MY_IP6/64" dev d0 nodad
	ip route replace 224.0.0.0/4 dev d0
	return "$code"
}

# without_mode MODE FILE ARGS-OF-DOCTOR...: as an ordinary user, when FILE has that mode.
without_mode() {
	local mode=$1 file=$2 old
	shift 2
	old=$(stat -c %a "$file")
	chmod "$mode" "$file"
	AS=(setpriv --reuid 65534 --regid 65534 --clear-groups)
	doctor 1 "$@"
	local code=$?
	AS=()
	chmod "$old" "$file"
	return "$code"
}

ordinary_user() {
	AS=(setpriv --reuid 65534 --regid 65534 --clear-groups)
	doctor 0 '^device +ok ' '^rxe0 +ok '
	local code=$?
	AS=()
	return "$code"
}

little_memory() {
	AS=(bash -c 'ulimit -l 64 && exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@"' sh)
	doctor 1 '^memory +FAIL +64 KiB' '-> ulimit -l unlimited'
	local code=$?
	AS[2]=${AS[2]/64/1024}
	doctor 0 '^memory +WARN +1024 KiB' '^No problem, 1 warning$' || code=1
	AS=()
	return "$code"
}

stale_node() {
	mv "$NODE" "$NODE.real"
	mknod "$NODE" c 1 3
	doctor 1 '^device +FAIL .* is device 1:3, the kernel.s is '
	local code=$?
	mv -f "$NODE.real" "$NODE"
	return "$code"
}

missing_node() {
	mv "$NODE" "$NODE.real"
	doctor 1 "^device +FAIL .*No such file" "-> udev has not made it \(mknod $NODE c [0-9]+ [0-9]+\)"
	local code=$?
	mv "$NODE.real" "$NODE"
	return "$code"
}

# A program that was linked with librdmacm really makes its connection through us.
run_client() {
	local server code=0
	timeout 30 "$RDMAEP" run rdma_server -p 7479 &
	server=$!
	sleep 1
	timeout 30 "$RDMAEP" run strace -f -e trace=openat -o "$OUT/rdmaep_tool.strace" \
		rdma_client -s "$MY_IP" -p 7479 || code=$?
	wait "$server" || code=$?
	[ "$code" = 0 ] || return "$code"
	grep -q "\"$NODE\".*= [0-9]" "$OUT/rdmaep_tool.strace"
}

run_debug() {
	local output
	output=$(timeout 30 "$RDMAEP" run --debug rdma_client -s 198.51.100.1 2>&1)
	echo "$output"
	grep -q "^rdmaep: no route to the destination (errno 101, reason 13)" <<<"$output"
}

# fails CODE MESSAGE ARG...: that is all it says.
fails() {
	local expected=$1 message=$2 output code=0
	shift 2
	output=$("$RDMAEP" "$@" 2>&1) || code=$?
	[ "$code" = "$expected" ] && [ "$output" = "rdmaep: $message" ] ||
		{ echo "$*: exit code $code: $output" && return 1; }
}

not_commands() {
	local known=run,doctor,list,show,stat,monitor,trace,ping,serve,reasons code=0
	fails 2 "no command 'lst'; there are $known; see rdmaep --help" lst || code=1
	fails 2 "no command 'lst'; there are $known; see rdmaep --help" help lst || code=1
	"$RDMAEP" help list | grep -q "^Usage: rdmaep list" || code=1
	"$RDMAEP" help | grep -q "rdmaep help COMMAND" && return "$code"
}

not_programs() {
	local script=$OUT/rdmaep_tool.script code=0
	printf '#!/nonexistent/sh\n' >"$script"
	chmod 755 "$script"
	fails 127 "nosuchprog: not found in PATH" run nosuchprog || code=1
	fails 127 "./nosuchprog: No such file or directory" run ./nosuchprog || code=1
	fails 127 "$script: its interpreter is not there" run "$script" || code=1
	fails 126 "/tmp: is a directory" run /tmp || code=1
	fails 126 "/dev/null: Permission denied" run /dev/null || code=1
	rm "$script"
	return "$code"
}

# complete_line LINE: the words that complete it.
complete_line() {
	# shellcheck disable=SC2016 # the inner shell expands it
	bash -c '
		. "$1"
		rdmaep() { "$RDMAEP" "$@"; }
		read -ra COMP_WORDS <<<"$2"
		[ "${2% }" = "$2" ] || COMP_WORDS+=("")
		COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
		_rdmaep
		echo "${COMPREPLY[@]}"
	' bash "$TOP/tools/rdmaep/completion.bash" "$1"
}

# Each word once; and every option of --help is there.
completion() {
	local command option words code=0 all="run doctor list show stat monitor trace ping serve reasons"
	export RDMAEP
	[ "$(complete_line "rdmaep help ")" = "$all" ] || code=1
	[ "$(complete_line "rdmaep he")" = help ] || code=1
	[ -z "$(complete_line "rdmaep help list ")" ] || code=1
	mkdir -p "$OUT/rdmaep_tool.bin"
	cp /bin/true "$OUT/rdmaep_tool.bin/rdma_client"
	[ "$(PATH=$PATH:$OUT/rdmaep_tool.bin complete_line "rdmaep run rdma_client")" = rdma_client ] || code=1
	rm -r "$OUT/rdmaep_tool.bin"
	for command in $all; do
		words=" $(complete_line "rdmaep $command -") "
		for option in $("$RDMAEP" "$command" --help | grep -oE '^  -[A-Za-z], --[a-z-]+' | tr , ' '); do
			[[ $words == *" $option "* ]] || { echo "$command $option: not in $words" && code=1; }
		done
	done
	return "$code"
}

# A listener, as its owner, as root and as a stranger see it.
list_listener() {
	local server output code=0
	timeout 30 "$RDMAEP" run rdma_server -p 7480 &
	server=$!
	sleep 1
	output=$("$RDMAEP" list) || code=$?
	echo "$output"
	grep -qE "^[0-9]+:1 +[0-9]+ +rdma_server +root +RC +LISTENING +- .*:7480 .* [0-9]+s +0 +0/[0-9]+ +0$" \
		<<<"$output" || code=1
	[ "$(grep -c rdma_server <<<"$output")" = 1 ] || code=1
	output=$(setpriv --reuid 65534 --regid 65534 --clear-groups "$RDMAEP" list 2>&1)
	echo "$output"
	grep -q "No endpoints" <<<"$output" || code=1
	grep -q "other users could not be looked at" <<<"$output" || code=1
	timeout 30 "$RDMAEP" run rdma_client -s "$MY_IP" -p 7480 || code=1
	wait "$server" || code=1
	output=$("$RDMAEP" list 2>&1)
	echo "$output"
	[ "$output" = "No endpoints." ] && return "$code"
}

# full COMMAND...: what cannot be written is an error, and nothing that goes on for ever.
full() {
	local code=0 output
	output=$(timeout $((20 * SLOW)) "$RDMAEP" "$@" 2>&1 >/dev/full) || code=$?
	[ "$code" = 1 ] && [ "$output" = "rdmaep: standard output: No space left on device" ] ||
		{ echo "$*: exit code $code: $output" && return 1; }
}

output_full() {
	local code=0
	full --help || code=1
	full --version || code=1
	full list --help || code=1
	full list -j || code=1
	full doctor || code=1
	full stat || code=1
	full stat -a || code=1
	full stat -aj || code=1
	full stat -j --watch=0.1 || code=1
	full reasons || code=1
	return "$code"
}

output_closed() {
	local code=0 output
	output=$("$RDMAEP" stat 2>&1 >&-) || code=$?
	echo "$output"
	[ "$code" = 1 ] && [ "$output" = "rdmaep: standard output: Bad file descriptor" ] || return 1
	"$RDMAEP" list x >&- 2>"$OUT/rdmaep_tool.err" && return 1
	grep -q "standard output" "$OUT/rdmaep_tool.err" && return 1
	# a program gets its files as they were
	"$RDMAEP" run sh -c '[ ! -e /proc/self/fd/1 ]' >&-
}

# Who reads no more is no error, where no signal ends it either.
output_pipe() {
	local output
	output=$({ (
		trap '' PIPE
		timeout $((10 * SLOW)) "$RDMAEP" stat -j --watch=0.1
		echo "code $?" >&2
	) | head -n 1; } 2>&1)
	echo "$output"
	! grep -q "standard output" <<<"$output" && grep -q "code 0" <<<"$output"
}

ktap_test "doctor: all is well" all_well
ktap_test "output that cannot be written" output_full
ktap_test "output that is closed" output_closed
ktap_test "output that nobody reads" output_pipe
ktap_test "doctor: another librdmacm comes first" not_in_front
ktap_test "doctor: ours comes first" in_front
ktap_test "doctor: ordinary user" ordinary_user
ktap_test "doctor: netdev down" netdev_down
ktap_test "doctor: no permission on uverbs" without_mode 600 /dev/infiniband/uverbs0 \
	'^rxe0 +FAIL .*Permission denied' '-> chmod 666 /dev/infiniband/uverbs0'
ktap_test "doctor: no permission on the device" without_mode 600 "$NODE" \
	'^device +FAIL .*Permission denied' "-> chmod 666 $NODE"
ktap_test "doctor: little memory may be locked" little_memory
ktap_test "doctor: a node of something else" stale_node
ktap_test "doctor: no node" missing_node
ktap_test "run: a program uses our device" run_client
ktap_test "run --debug: the reason is printed" run_debug
ktap_test "run: what cannot be run" not_programs
ktap_test "commands that there are not" not_commands
ktap_test "completion" completion
ktap_test "list: a listener" list_listener
ktap_test "doctor: still all is well" all_well
ktap_end
