#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# test.sh RDMAEP
#
# The rdmaep tool as its user sees it, on any machine. RDMAEP_COMPAT is the
# folder in which it has to find the library.

rdmaep=$1
failed=0

# check NAME EXPECTED-CODE EXPECTED-TEXT COMMAND...: the text is a pattern for
# grep that some line of the output must match; empty matches all.
check() {
	name=$1 code=$2 text=$3
	shift 3
	out=$("$@" 2>&1)
	got=$?
	if [ "$got" != "$code" ]; then
		echo "FAIL $name: exit code $got, expected $code: $out"
		failed=1
	elif ! printf '%s\n' "$out" | grep -q -- "$text"; then
		echo "FAIL $name: no '$text' in: $out"
		failed=1
	else
		echo "ok   $name"
	fi
}

check "no command" 2 "^Usage:" "$rdmaep"
check "unknown command" 2 "no command 'nope'" "$rdmaep" nope
check "help" 0 "^  doctor" "$rdmaep" --help
check "version" 0 "^rdmaep [0-9]" "$rdmaep" --version
for command in run doctor list show stat monitor trace ping serve reasons; do
	check "$command --help" 0 "^Usage: rdmaep $command" "$rdmaep" $command --help
	check "$command, unknown option" 2 "--help" "$rdmaep" $command --nope
done

check "list" 0 "" "$rdmaep" list
check "list, no such state" 2 "no state is called LISTEN;" "$rdmaep" list -s bound,LISTEN
check "list, no such type" 2 "no type is called" "$rdmaep" list -t RCU
check "list, no such port space" 2 "no port space is called" "$rdmaep" list -P SDP
check "list, no such process" 1 "there is none" "$rdmaep" list 999999999
check "list, not a process" 2 "is not a process number" "$rdmaep" list x

# what getopt finds wrong, and what the commands do
check "option without a value" 2 "^rdmaep list: --state needs a value" "$rdmaep" list --state
check "the same, brief" 2 "^rdmaep ping: -c needs a value" "$rdmaep" ping -c
check "unknown among brief ones" 2 "^rdmaep list: unknown option -Z" "$rdmaep" list -jZ
check "help after options" 0 "^Usage: rdmaep list" "$rdmaep" list -j --help
check "list, nothing matches" 0 "^No endpoints" "$rdmaep" list -s removed
check "show, no endpoint" 2 "which endpoint" "$rdmaep" show
check "show, not a name" 2 "12 is not CONTEXT:HANDLE" "$rdmaep" show 12
check "show, not quite a name" 2 "is not CONTEXT:HANDLE" "$rdmaep" show 1:2x
check "stat, not a time" 2 "x is not a number of seconds" "$rdmaep" stat --watch=x
check "stat, not a count" 2 "0 is not a count" "$rdmaep" stat -w -c 0
check "stat, too much" 2 "what is x" "$rdmaep" stat x
check "monitor, unknown kind" 2 "unknown" "$rdmaep" monitor -k nosuch
check "monitor, not a process" 2 "x is not a process" "$rdmaep" monitor -P x
check "trace, no program" 2 "no program" "$rdmaep" trace --svg x
check "ping, no host" 2 "no host" "$rdmaep" ping
check "ping, two hosts" 2 "one host" "$rdmaep" ping a b
check "ping, size" 2 "65537 is not a number of bytes" "$rdmaep" ping -s 65537 a
check "ping, time" 2 "x is not a number of seconds" "$rdmaep" ping -W x a
check "serve, count" 2 "is not a count" "$rdmaep" serve -n -1

# The words of the completion, after a line that ends with a space or a word begun.
# shellcheck disable=SC2016,SC2317 # it is bash that expands it, and check that calls it
complete_line() {
	bash -c '
		. "$1"
		rdmaep() { "$TOOL" "$@"; }
		COMP_LINE=$2
		read -ra COMP_WORDS <<<"$2"
		[ "${2% }" = "$2" ] || COMP_WORDS+=("")
		COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
		_rdmaep
		echo "${COMPREPLY[@]}"
	' bash "$(dirname "$0")/completion.bash" "$1"
}
TOOL=$rdmaep
export TOOL
check "completion of commands" 0 "^run doctor list show stat monitor trace ping serve reasons" \
	complete_line "rdmaep "
check "completion of a command" 0 "^stat\$" complete_line "rdmaep st"
check "completion of options" 0 "^--listening\$" complete_line "rdmaep list --l"
check "completion of a value" 0 "^LISTENING\$" complete_line "rdmaep list --state LI"
check "completion of a kind" 0 "^refused\$" complete_line "rdmaep monitor -k ref"
check "completion of a reason" 0 "^ADDR_IN_USE\$" complete_line "rdmaep reasons ADDR_IN"
check "completion of a program's arguments" 0 "^\$" complete_line "rdmaep trace true --s"
check "completion of trace's" 0 "^--svg\$" complete_line "rdmaep trace -j --s"

check "reasons" 0 "^ *0  NONE " "$rdmaep" reasons
check "reasons, by number" 0 "^ *9  ADDR_IN_USE " "$rdmaep" reasons 9
check "reasons, by name" 0 "^ *9  ADDR_IN_USE " "$rdmaep" reasons RDMA_EP_REASON_ADDR_IN_USE
check "reasons, unknown" 1 "no reason '999'" "$rdmaep" reasons 999

# shellcheck disable=SC2016 # it is the inner shell that expands it
{
	unset LD_LIBRARY_PATH
	check "run" 0 "^$RDMAEP_COMPAT\$" "$rdmaep" run sh -c 'echo "$LD_LIBRARY_PATH"'
	check "run --" 0 "^$RDMAEP_COMPAT\$" "$rdmaep" run -- sh -c 'echo "$LD_LIBRARY_PATH"'
	check "run --debug" 0 '^1$' "$rdmaep" run --debug sh -c 'echo "$RDMAEP_DEBUG"'
	check "run, path kept" 0 "^$RDMAEP_COMPAT:/nonexistent\$" \
		env LD_LIBRARY_PATH=/nonexistent "$rdmaep" run sh -c 'echo "$LD_LIBRARY_PATH"'
}
check "run, exit code" 42 "" "$rdmaep" run sh -c 'exit 42'
check "run, its --help is the program's" 0 '^--help$' "$rdmaep" run printf '%s\n' --help
check "run, no program" 2 "no program" "$rdmaep" run
check "run, not found" 127 "/nonexistent: No such file" "$rdmaep" run /nonexistent
check "run, not a program" 126 "Permission denied" "$rdmaep" run /dev/null

# What it prints, in one line without spaces
# shellcheck disable=SC2317 # check calls it
compact() {
	"$rdmaep" "$@" | tr -d ' \n'
}
check "reasons, JSON" 0 '^\[{"code":9,"name":"ADDR_IN_USE"' compact reasons -j 9
check "doctor, JSON" 0 '"what":"library","verdict":"ok","found":' compact doctor -j
"$rdmaep" doctor >/dev/null 2>&1
case $? in
0 | 1) echo "ok   doctor" ;;
*) echo "FAIL doctor" && failed=1 ;;
esac
check "doctor finds the library" "$("$rdmaep" doctor >/dev/null; echo $?)" \
	"^library *ok .*librdmaep.so" "$rdmaep" doctor

exit $failed
