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
for command in run doctor list reasons; do
	check "$command --help" 0 "^Usage: rdmaep $command" "$rdmaep" $command --help
	check "$command, unknown option" 2 "--help" "$rdmaep" $command --nope
done

check "list" 0 "" "$rdmaep" list
check "list, no such process" 1 "there is none" "$rdmaep" list 999999999
check "list, not a process" 2 "is not a process number" "$rdmaep" list x

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

"$rdmaep" doctor >/dev/null 2>&1
case $? in
0 | 1) echo "ok   doctor" ;;
*) echo "FAIL doctor" && failed=1 ;;
esac
check "doctor finds the library" "$("$rdmaep" doctor >/dev/null; echo $?)" \
	"^library *ok .*librdmaep.so" "$rdmaep" doctor

exit $failed
