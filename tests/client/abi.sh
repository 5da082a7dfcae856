#!/usr/bin/env bash
# The library's binary interface may only grow: abidiff against libslabkv.abi, and the symbols against slabkv.h. The header
# compiles alone, as C99, C11 and C++, without a warning.
#	abi.sh LIBRARY SOURCE      the test
#	abi.sh LIBRARY SOURCE --write	writes libslabkv.abi anew (while the soname is 0 a break may be meant: say it in CHANGES)
set -euo pipefail
library=$1 source=$2
dump=$source/tests/client/libslabkv.abi
header=$source/client/include/slabkv.h
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for language in c:c99 c:c11 c++:c++11 c++:c++17; do
	printf '#include <slabkv.h>\nint main(void) { struct slabkv_options o; struct slabkv_keys k = slabkv_keys_ints(NULL, 0); %s }\n' \
		'slabkv_options_init(&o, sizeof o); (void)SLABKV_AT(struct slabkv_location, NULL, sizeof o, 0); return (int)k.n;' >"$work/it"
	gcc -x "${language%:*}" -std="${language#*:}" -Wall -Wextra -pedantic -Werror -I"$source/client/include" -c -o "$work/it.o" "$work/it"
done

nm -D --defined-only "$library" | awk '{print $3}' | grep -v '^SLABKV_[0-9]*$' | grep -v '^SLABKV_[0-9]*@' | sort >"$work/has"
grep -v '@@SLABKV_[0-9]' "$work/has" && { echo "symbols without a version"; exit 1; }
sed 's/@.*//' "$work/has" >"$work/names"
tr '\n' ' ' <"$header" | grep -oE 'SLABKV_API [^;(]*\b(slabkv_[a-z_0-9]+)\(' | grep -oE 'slabkv_[a-z_0-9]+\($' | tr -d '(' | sort >"$work/told"
diff "$work/told" "$work/names" || { echo "slabkv.h and the library do not name the same functions"; exit 1; }
if nm -D --undefined-only "$library" | grep -E ' (abort|__assert_fail|exit|_exit|raise)(@|$)'; then
	echo "the library can end the process"
	exit 1
fi

if ! command -v abidw >/dev/null; then
	echo "abigail-tools is not here: the dump was not compared"
	exit 77
fi
# What slabkv.h does not define is ours to change.
abidw --headers-dir "$source/client/include" --drop-private-types --drop-undefined-syms --no-elf-needed --no-corpus-path \
	--no-comp-dir-path --no-parameter-names --out-file "$work/now.abi" "$library"
sed -i "s#path='[^']*/\(client\|api\)/#path='\1/#" "$work/now.abi" # wherever it was built
if [ "${3:-}" = --write ]; then
	cp "$work/now.abi" "$dump"
	exit 0
fi
# Statuses: 1 error, 2 usage, 4 a change, 8 one that breaks. Members that a struct got at its end move nothing and remove nothing; the
# suppression of abidiff for them (2.2) passes any insertion, so what it prints is looked at.
rc=0
abidiff --no-added-syms --drop-private-types "$dump" "$work/now.abi" >"$work/said" || rc=$?
breaks='offset changed|deletion|[1-9][0-9]* Removed|type name changed|entity changed|return type changed|from value|parameter [0-9]+ .*(added|removed)'
if [ $((rc & ~4)) -ne 0 ] || grep -qE "$breaks" "$work/said"; then
	cat "$work/said"
	exit 1
fi
