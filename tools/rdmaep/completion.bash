# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
# bash completion for rdmaep

_rdmaep() {
	local cur=${COMP_WORDS[COMP_CWORD]}

	if [ "$COMP_CWORD" = 1 ]; then
		mapfile -t COMPREPLY < <(compgen -W "run doctor list reasons --help --version" -- "$cur")
		return
	fi
	case ${COMP_WORDS[1]} in
	run)
		if [[ $cur == -* ]]; then
			mapfile -t COMPREPLY < <(compgen -W "--debug --help --" -- "$cur")
		else
			mapfile -t COMPREPLY < <(compgen -c -- "$cur")
		fi
		;;
	reasons)
		mapfile -t COMPREPLY < <(compgen -W "$(rdmaep reasons 2>/dev/null | awk '{ print $2 }')" -- "$cur")
		;;
	esac
}
complete -o bashdefault -o default -F _rdmaep rdmaep
