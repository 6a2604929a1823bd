# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Sourced by init, run-tests and what starts the machines: what must hold after a command, whatever its exit code.

DAMAGE='BUG:|WARNING:|Oops|general protection fault|possible circular|inconsistent lock'
DAMAGE+='|suspicious RCU|possible recursive|held lock|KASAN|UBSAN|ODEBUG|kmemleak: [0-9]+ new'
DAMAGE+='|[Ll]eak(ed|s|ing)?[ :]|blocked for more than|refcount_t|list_(add|del) corruption'
DAMAGE+='|Call Trace|scheduling while atomic|sleeping function|[Uu]nbalanced'
# These words are in harmless messages too.
HARMLESS='Kernel memory leak detector|kmemleak: Automatic|RCU restricting|lockdep|Spectre'

# Filter: a kernel log without the reports, stack and all, of control groups that have used up
# their memory. A test does that on purpose; that all memory is used up stays a complaint.
without_full_groups() {
	awk '/invoked oom-killer/ { report = ""; on = 1 }
		!on { print; next }
		{ report = report $0 "\n" }
		/oom-kill:constraint=/ { on = 0; if (!/CONSTRAINT_MEMCG/) printf "%s", report }
		END { if (on) printf "%s", report }'
}

# Filters: the lines of a kernel log that mean damage; the part of a kernel log that is of one
# test, see run-tests.
damage() {
	without_full_groups | grep -E "$DAMAGE" | grep -vE "$HARMLESS"
}

kernel_log_of() {
	awk -v name="$1" '{ sub(/\r$/, "") } /rdma_ep-test: begin / { on = $NF == name } on'
}

scan_kmemleak() {
	local file=/sys/kernel/debug/kmemleak
	[ -w $file ] || return 0
	# What is on a list for RCU, or on a CPU's stack, looks lost at the first scan.
	for _ in 1 2 3; do
		sleep 2
		echo scan >$file
	done
	[ ! -s $file ] && return
	echo "vm: kmemleak reports:"
	cat $file
	return 1
}

unload_module() {
	local name
	[ -n "$VM_MODULE" ] || return 0
	name=$(basename "$VM_MODULE" .ko)
	[ -e "/sys/module/$name" ] || return 0
	rmmod "$name" || { echo "vm: $name cannot be unloaded" && return 1; }
}

find_damage() {
	local bad=0
	unload_module || bad=1
	scan_kmemleak || bad=1
	dmesg >"$OUT/dmesg.log"
	if damage <"$OUT/dmesg.log"; then
		echo "vm: the kernel complained (see above and dmesg.log)"
		bad=1
	fi
	return $bad
}
