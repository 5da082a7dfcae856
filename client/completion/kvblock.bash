# bash completion for kvblock(1). Options come from each command's own help, so they cannot go stale.
_kvblock()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command='' word
	local commands='put get lookup match delete stat top replay bench doctor gen-trace'

	for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
		case " $commands " in *" $word "*) command=$word; break ;; esac
	done
	case $prev in
	--key-form) COMPREPLY=($(compgen -W 'string int hex' -- "$cur")); return ;;
	--object) COMPREPLY=($(compgen -W 'instance group storage' -- "$cur")); return ;;
	--mount) COMPREPLY=($(compgen -d -- "$cur")); return ;;
	--token-file|--out) COMPREPLY=($(compgen -f -- "$cur")); return ;;
	esac
	if [[ $cur == -* ]]; then
		COMPREPLY=($(compgen -W "$("${COMP_WORDS[0]}" $command --help 2>/dev/null |
			grep -o -- '--[a-z][a-z-]*' | sort -u)" -- "$cur"))
	elif [[ -z $command ]]; then
		COMPREPLY=($(compgen -W "$commands" -- "$cur"))
	else
		COMPREPLY=($(compgen -f -- "$cur"))
	fi
}
complete -o filenames -F _kvblock kvblock
