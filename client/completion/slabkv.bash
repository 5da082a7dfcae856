# bash completion for slabkv(1). Options come from each command's own help, so they cannot go stale.
_slabkv()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command='' word
	local commands='put get lookup match delete pin unpin pins stat top replay bench doctor group storage pages gen-trace'

	for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
		case " $commands " in *" $word "*) command=$word; break ;; esac
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
	elif [[ -z $command ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$cur")
	else
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
	fi
}
complete -o filenames -F _slabkv slabkv
