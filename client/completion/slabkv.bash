# bash completion for slabkv(1). Options and commands come from its own help, so they cannot go stale.
_slabkv()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command='' action='' word words=''
	local commands

	commands=$("${COMP_WORDS[0]}" --help 2>/dev/null | sed -n 's/^  \([a-z][a-z-]*\)  *[^ ].*/\1/p')
	for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
		if [[ -z $command ]]; then
			case " ${commands//$'\n'/ } " in *" $word "*) command=$word ;; esac
		elif [[ -z $action && $word != -* ]]; then
			action=$word
		fi
	done
	case $prev in
	--key-form) mapfile -t COMPREPLY < <(compgen -W 'string int hex' -- "$cur"); return ;;
	--kind) mapfile -t COMPREPLY < <(compgen -W 'chat agents rag scan mix' -- "$cur"); return ;;
	--sort) mapfile -t COMPREPLY < <(compgen -W 'name used share leased pinned open evicted hits' -- "$cur"); return ;;
	--engine) mapfile -t COMPREPLY < <(compgen -W 'auto posix uring usrbio' -- "$cur"); return ;;
	-o|--option) mapfile -t COMPREPLY < <(compgen -S = -W "$("${COMP_WORDS[0]}" -o help 2>/dev/null |
		grep -o '^[a-z][a-z0-9_]*')" -- "$cur"); return ;;
	--object) mapfile -t COMPREPLY < <(compgen -W 'instance group storage' -- "$cur"); return ;;
	--mount) mapfile -t COMPREPLY < <(compgen -d -- "$cur"); return ;;
	--token-file|--out) mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
	esac
	if [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$("${COMP_WORDS[0]}" ${command:+"$command"} --help 2>/dev/null |
			grep -o -- '--[a-z][a-z-]*' | sort -u)" -- "$cur")
		return
	fi
	[[ -z $action ]] && case $command in
	'' | help) words=$commands ;;
	group) words='list set' ;;
	instance) words='list keys rm' ;;
	storage) words='list files drain keep capacity' ;;
	pages) words='list export import clear' ;;
	cluster) words='status drain undrain' ;;
	token) words='add list rotate revoke new hash' ;;
	esac
	if [[ -n $words ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
	else
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
	fi
}
complete -o filenames -F _slabkv slabkv
