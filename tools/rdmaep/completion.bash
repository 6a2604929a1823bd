# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
# bash completion for rdmaep

_rdmaep_commands="run doctor list show stat monitor trace ping serve reasons"

_rdmaep_words() {
	mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur")
}

# Where the program of run or trace stands in the line; that and what follows is its own. Prints
# nothing while there are only options.
_rdmaep_program_at() {
	local i=2
	while [ $i -lt "$COMP_CWORD" ]; do
		case ${COMP_WORDS[i]} in
		--svg | -s | --number | -n) i=$((i + 2)) ;;
		--) echo $((i + 1)) && return ;;
		-*) i=$((i + 1)) ;;
		*) echo "$i" && return ;;
		esac
	done
}

_rdmaep_program() {
	local at
	at=$(_rdmaep_program_at)
	if [ -n "$at" ] && [ "$at" -lt "$COMP_CWORD" ]; then
		return # file names, which are the default
	elif [[ $cur == -* ]]; then
		_rdmaep_words "$1"
	else
		# once, though it be in two folders
		mapfile -t COMPREPLY < <(compgen -c -- "$cur" | sort -u)
	fi
}

# The value of an option: false if the word before is none that takes one.
_rdmaep_value() {
	case $command:$prev in
	list:-s | list:--state)
		_rdmaep_words "$(rdmaep list -s '?' 2>&1 | sed -n 's/.*there are \([A-Z_,]*\).*/\1/p' |
			tr , ' ')"
		;;
	list:-t | list:--type) _rdmaep_words "RC UC UD XRC" ;;
	list:-P | list:--port-space) _rdmaep_words "TCP UDP IPOIB IB" ;;
	list:-d | list:--device) _rdmaep_words "$(ls /sys/class/infiniband 2>/dev/null)" ;;
	list:-u | list:--user) mapfile -t COMPREPLY < <(compgen -u -- "$cur") ;;
	monitor:-P | monitor:--pid) _rdmaep_words "$(rdmaep list -H 2>/dev/null | awk '{ print $2 }')" ;;
	monitor:-k | monitor:--kind)
		_rdmaep_words "call state event read refused created destroyed path"
		;;
	ping:-S | ping:--source | serve:-a | serve:--address)
		_rdmaep_words "$(ip -o addr 2>/dev/null | awk '{ sub("/.*", "", $4); print $4 }')"
		;;
	trace:-s | trace:--svg) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
	*:-n | *:--program | *:--number | *:-p | *:--port | *:-a | *:--address | *:-c | *:--count | \
		*:-i | *:--interval | *:-W | *:--timeout | *:--size | ping:-s | *:-e | *:--endpoint) ;;
	*) return 1 ;;
	esac
}

_rdmaep() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local command=${COMP_WORDS[1]}

	COMPREPLY=()
	if [ "$COMP_CWORD" = 1 ]; then
		_rdmaep_words "$_rdmaep_commands help --help --version"
		return
	fi
	case $command in
	help)
		[ "$COMP_CWORD" != 2 ] || _rdmaep_words "$_rdmaep_commands"
		return
		;;
	run) _rdmaep_program "--debug --help -d -h --" && return ;;
	trace)
		[ -n "$(_rdmaep_program_at)" ] || ! _rdmaep_value || return
		_rdmaep_program "--svg --number --json --help -s -n -j -h" && return
		;;
	esac
	! _rdmaep_value || return
	case $command in
	list)
		_rdmaep_words "--state --listening --type --port-space --device --address --port --program
			--user --no-header --json --help -s -l -t -P -d -a -p -n -u -H -j -h"
		;;
	show)
		# the colon in a name is a word of its own to bash, unless it is left out here
		_rdmaep_words "--json --help -j -h $(rdmaep list -H 2>/dev/null | awk '{ print $1 }')"
		;;
	stat) _rdmaep_words "--watch --count --all --global --json --help -w -c -a -g -j -h" ;;
	monitor)
		_rdmaep_words "--pid --program --endpoint --address --port --kind --failures --count
			--json --help -P -n -e -a -p -k -f -c -j -h"
		;;
	ping)
		if [[ $cur == -* ]]; then
			_rdmaep_words "--count --port --size --interval --timeout --source --json --help
				-c -p -s -i -W -S -j -h"
		else
			mapfile -t COMPREPLY < <(compgen -A hostname -- "$cur")
		fi
		;;
	serve) _rdmaep_words "--port --address --number --help -p -a -n -h" ;;
	reasons) _rdmaep_words "--json --help -j -h $(rdmaep reasons 2>/dev/null | awk '{ print $2 }')" ;;
	doctor) _rdmaep_words "--json --help -j -h" ;;
	esac
}
complete -o bashdefault -o default -F _rdmaep rdmaep
