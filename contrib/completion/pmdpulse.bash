# SPDX-License-Identifier: Apache-2.0
# Completion of pmdpulse(1) for bash. Commands and options come from the program, instances from the
# run directory, ports and settings from the running switch, which gets a second to answer.
# shellcheck shell=bash

# The run directory by the program's own rule; $1 is what --rundir gave.
_pmdpulse_rundir() {
	if [[ $1 ]]; then
		echo "$1"
	elif [[ ${PMDPULSE_RUNDIR-} ]]; then
		echo "$PMDPULSE_RUNDIR"
	elif ((EUID == 0)); then
		echo /run/pmdpulse
	elif [[ ${XDG_RUNTIME_DIR-} ]]; then
		echo "$XDG_RUNTIME_DIR/pmdpulse"
	else
		echo "/dev/shm/pmdpulse-$EUID"
	fi
}

_pmdpulse_instances() {
	local file name
	for file in "$1"/*.ring "$1"/*.incidents "$1"/*.ctl; do
		name=${file##*/}
		name=${name%.*}
		[[ -e $file && $name != *.agent ]] && echo "$name"
	done | sort -u
}

# $1 beginning, the rest: words. Words that end in = or : want something after them.
_pmdpulse_offer() {
	local beginning=$1 word
	shift
	for word; do
		[[ $word == "$beginning"* ]] || continue
		COMPREPLY+=("$word")
		[[ $word == *[=:] ]] && compopt -o nospace 2> /dev/null
	done
}

# First column of one of the switch's tables. $1 the command, the rest as typed before it.
_pmdpulse_column() {
	local table=$1
	shift
	timeout 2 "$@" -T 1 "$table" 2> /dev/null < /dev/null | awk 'NR > 1 { print $1 }'
}

# Those that the CPU of the running switch can use.
_pmdpulse_implementations() {
	timeout 2 "$@" -T 1 dpif-impl-get 2> /dev/null < /dev/null |
		awk 'NF == 1 || /\(active\)$/ { print $1 }'
}

_pmdpulse() {
	local cur=${COMP_WORDS[COMP_CWORD]} program=${COMP_WORDS[0]/#\~/$HOME}
	local rundir='' instance='' command='' option='' value='' word i
	local -a args=()
	COMPREPLY=()

	# bash takes --option=value and key=value apart at the =.
	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		[[ $word == = ]] && continue
		if [[ $option ]]; then
			value=$word
		elif [[ $command ]]; then
			args+=("$word")
			continue
		else
			case $word in
			-i | --instance | --rundir | --publisher-user | -T | --timeout) option=$word && continue ;;
			-i?*) option=-i value=${word#-i} ;;
			-*) continue ;;
			*) command=$word && continue ;;
			esac
		fi
		case $option in
		-i | --instance) instance=$value ;;
		--rundir) rundir=${value/#\~/$HOME} ;;
		esac
		option=''
	done
	local -a ask=("$program")
	[[ $rundir ]] && ask+=(--rundir "$rundir")
	[[ $instance ]] && ask+=(-i "$instance")
	local before=${COMP_WORDS[COMP_CWORD - 1]} key=''
	[[ $cur == = ]] && before='=' cur=''
	[[ $before == = && ${#args[@]} -gt 0 ]] && key=${args[-1]}

	local -a words=()
	case $option in
	-i | --instance)
		mapfile -t words < <(_pmdpulse_instances "$(_pmdpulse_rundir "$rundir")")
		_pmdpulse_offer "$cur" "${words[@]}"
		return
		;;
	--rundir)
		compopt -o dirnames 2> /dev/null
		return
		;;
	--publisher-user)
		mapfile -t words < <(compgen -u)
		_pmdpulse_offer "$cur" "${words[@]}"
		return
		;;
	-T | --timeout) return ;;
	esac
	if [[ -z $command ]]; then
		if [[ $cur == -* ]]; then
			mapfile -t words < <("$program" --help 2> /dev/null |
				sed -n 's/^ \{2,6\}\(-.*\)/\1/p' | grep -oE -- '--?[a-zA-Z][a-zA-Z-]*')
		else
			mapfile -t words < <("$program" --help 2> /dev/null |
				sed -n '/^commands:/,$ s/^  \([a-z][a-z-]*\).*/\1/p')
		fi
		_pmdpulse_offer "$cur" "${words[@]}"
		return
	fi
	_pmdpulse_arguments "$command" "$cur" "$key" "${#args[@]}" "${args[@]: -1}"
}

# $1 command, $2 what is typed of this word, $3 key before a =, $4 number of arguments before, $5 the
# last of them. Uses ask of the caller.
_pmdpulse_arguments() {
	local command=$1 cur=$2 key=$3 n=$4 last=${5-} value
	local -a words=()

	case $command in
	events)
		if [[ $last == --since ]]; then
			words=(90s 10m 1h 1d)
		else
			words=(-f --follow --since)
		fi
		;;
	top) [[ $last == -[dn] ]] || words=(-d -n) ;;
	del-port | fdb-flush) ((n == 0)) && mapfile -t words < <(_pmdpulse_column show "${ask[@]}") ;;
	add-port)
		if ((n == 1)); then
			words=(net_af_packet net_af_xdp net_memif net_null net_pcap net_ring net_tap
				net_vhost net_virtio_user)
		elif ((n > 1)) && [[ -z $key ]]; then
			words=(ofport= n_rxq= n_txq= n_rxq_desc= n_txq_desc= mtu= tx-retries=
				emc-insert-inv-prob= mbufs=)
		fi
		;;
	add-flows | replace-flows)
		((n == 0)) && compopt -o default 2> /dev/null && return
		;;
	get) ((n == 0)) && mapfile -t words < <(_pmdpulse_column get "${ask[@]}") ;;
	set)
		if [[ $key ]]; then
			value=$(timeout 2 "${ask[@]}" -T 1 get "$key" 2> /dev/null < /dev/null)
			words=("$value")
			[[ $value == true || $value == false ]] && words=(true false)
		else
			mapfile -t words < <(_pmdpulse_column get "${ask[@]}")
			words=("${words[@]/%/=}")
		fi
		;;
	mod-flows | del-flows | dump-flows | add-flow | trace)
		if [[ $key == in_port ]]; then
			mapfile -t words < <(_pmdpulse_column show "${ask[@]}")
		elif ((n == 0)) || [[ $last == -* ]]; then
			words=(in_port=)
			[[ $command == del-flows && $n == 0 ]] && words+=(--strict)
			[[ $command == dump-flows && $n == 0 ]] && words+=(-m)
		fi
		[[ $command == mod-flows && $last != --strict ]] && words+=(--strict)
		;;
	dpif-impl-set) ((n == 0)) && mapfile -t words < <(_pmdpulse_implementations "${ask[@]}") ;;
	pmd-perf-show)
		[[ $last == -it || $last == -ms || $last == -pmd ]] || words=(-nh -it -ms -pmd)
		;;
	pmd-stats-show | pmd-stats-clear | pmd-perf-log)
		[[ $last == -pmd ]] || words=(-pmd)
		;;
	pmd-rxq-show) [[ $last == -pmd || $last == -secs ]] || words=(-pmd -secs) ;;
	pmd-perf-log-set)
		if ((n == 0)); then
			words=(on off)
		elif [[ $last != -[ba] && $last != -us ]]; then
			words=(-b -a -us -e -ne)
		fi
		;;
	esac
	[[ $cur == -* && -z $key ]] && words+=(-j)
	_pmdpulse_offer "$cur" "${words[@]}"
}

complete -F _pmdpulse pmdpulse
