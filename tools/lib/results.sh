# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# Sourced after common.sh. Results go to the file $RESULTS, a line each: pass, fail or skip, a
# tab, the name, a tab, the reason.

# record STATUS NAME [REASON]
record() {
	printf '%s\t%s\t%s\n' "$1" "$2" "${3-}" >>"$RESULTS"
	[ "$1" != fail ] || echo "FAIL $2${3:+: $3}"
}

# skip_allowed KERNEL NAME: is it on the list?
skip_allowed() {
	local kernel pattern
	while read -r kernel pattern _; do
		# shellcheck disable=SC2053 # they are patterns
		[[ $kernel != \#* && $1 == $kernel && $2 == $pattern ]] && return
	done <"$TOP/selftests/skip-allowed"
	return 1
}

# test_seconds NAME FILE: the timeout of a test, with RDMA_EP_LONG that of its long form.
test_seconds() {
	awk -v name="$1" -v long="${RDMA_EP_LONG-}" '
		$1 == name { s = long && $3 ? $3 : $2 }
		/^# timeout: / { s = long && $4 ? $4 : $3 }
		END { print s ? s : 60 }' \
		"$TOP/selftests/timeouts" <(case $2 in *.sh) sed 20q "$2" ;; esac)
}

# record_ktap KERNEL NAME CODE SECONDS STATE OUTPUT: the results of one program that ran.
# $WHERE, when set, tells it from the same program elsewhere.
record_ktap() {
	local kernel=$1 name=$2 state=$5 output=$6 status test reason failed=0 passed=0
	local label="${WHERE:+$WHERE }$name"
	while IFS=$'\t' read -r status test reason; do
		test=${test#"$name"}
		if [ "$status" = skip ] && ! skip_allowed "$kernel" "$name$test"; then
			status=fail reason="skipped ($reason), and not on selftests/skip-allowed"
		fi
		case $status in
		pass) passed=$((passed + 1)) ;;
		fail) failed=$((failed + 1)) ;;
		esac
		record "$status" "$label$test" "$reason"
	done < <(awk -f "$TOP/tools/ktap" -v program="$name" -v code="$3" "$output")
	case $state in
	complained) record fail "$label" "the kernel complained" ;;
	in-use) record fail "$label" "the module was still in use after it" ;;
	esac
	[ "$failed$state" = 0ok ] || {
		echo "---- output of $label"
		failures "$output"
	}
	echo "$label: $passed passed, $failed failed ($4 s)"
}

# What a reader needs of a program's output: all but the tests that passed.
failures() {
	awk '/^# +RUN / { block = "" }
		{ block = block $0 "\n" }
		/^ok [0-9]/ { block = "" }
		/^not ok [0-9]/ { printf "%s", block; block = "" }
		END { printf "%s", block }' "$1" | tail -n 80
}

# Filter: the first and the last 60 lines. It reads all, so that nobody dies of a broken pipe.
both_ends() {
	awk '{ line[NR] = $0 }
		END { for (i = 1; i <= NR; i++)
			if (i <= 60 || i > NR - 60)
				print line[i]
			else if (i == 61)
				print "[...]"
		}'
}
