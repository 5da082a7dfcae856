#!/usr/bin/env bash
# wheel.sh SLABKVD: builds the wheel and looks at it as a user would: its size and tag, what it needs and exports, the tests of the
# package on every Python that is here, importing it where neither libcurl nor libssl is, and the types.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
package=$here/../../client/python
export SLABKVD=$1 PYTHONDONTWRITEBYTECODE=1
unset SLABKV_LIBRARY PYTHONPATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if ! "$package/make-wheel" "$work/dist" >"$work/log" 2>&1; then
	tail -n 20 "$work/log"
	if grep -qE 'Could not resolve|Failed to fetch|No matching distribution|Temporary failure|Unable to find a source' "$work/log"; then
		echo "skipped: Debian's source packages or PyPI cannot be reached"
		exit 77
	fi
	exit 1
fi
wheel=$(ls "$work"/dist/*.whl)
case $wheel in
*-py3-none-manylinux_2_34_x86_64.whl | *-py3-none-manylinux_2_34_aarch64.whl) ;;
*) echo "tag: $wheel"; exit 1 ;;
esac
size=$(stat -c %s "$wheel")
echo "$(basename "$wheel"): $size bytes"
[ "$size" -lt $((8 << 20)) ]

mkdir "$work/x"
python3 -m zipfile -e "$wheel" "$work/x"
library=$work/x/slabkv/libslabkv.so
needed=$(readelf -d "$library" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | tr '\n' ' ')
echo "needs: $needed"
for name in $needed; do
	case $name in libc.so.6 | ld-linux-*.so.*) ;; *) echo "needs $name"; exit 1 ;; esac
done
if nm -D --defined-only "$library" | awk '{print $3}' | grep -v '^slabkv_\|^SLABKV_'; then
	echo "exports what is not its own"
	exit 1
fi
for file in py.typed libslabkv.so __init__.py; do [ -e "$work/x/slabkv/$file" ]; done
if find "$work/x" -name '*.libs' | grep .; then
	echo "carries other libraries"
	exit 1
fi

# Every Python that there is, once each.
ran=0
for version in 9 10 11 12 13 14; do
	python=
	for candidate in "python3.$version" "$HOME"/.pyenv/versions/3."$version".*/bin/python; do
		"$candidate" -c "import sys; sys.exit(sys.version_info[:2] != (3, $version))" 2>/dev/null && python=$candidate && break
	done
	[ -n "$python" ] || continue
	"$python" -m venv "$work/venv-$version" && "$work/venv-$version/bin/pip" install -q --no-index "$wheel"
	for test in units budget client lmcache; do
		"$work/venv-$version/bin/python" "$here/test_$test.py" >"$work/log" 2>&1 || { tail -n 60 "$work/log"; exit 1; }
	done
	echo "python 3.$version: passed"
	ran=$((ran + 1))
	last=$work/venv-$version/bin/python
done
[ "$ran" -gt 0 ]

"$last" "$here/test_processes.py" 2>&1 | grep -E "^[0-9]+ (processes|buffers)|^OK|FAILED" || exit 1

# Where neither is installed: in a mount namespace whose libcurl and libssl are empty files.
if unshare -m true 2>/dev/null; then
	# shellcheck disable=SC2016
	unshare -m bash -c '
		for f in /usr/lib/*/libcurl*.so* /usr/lib/*/libssl.so* /usr/lib/*/libcrypto.so*; do
			[ -f "$f" ] && mount --bind /dev/null "$(readlink -f "$f")"
		done
		"$1" -c "import slabkv; print(slabkv.library()[0], \"without libcurl and libssl\"); slabkv.Client(\"https://localhost:1\", timeout=0.2).ready()"' \
		_ "$last"
else
	echo "not looked at here (no mount namespaces): importing it without libcurl and libssl"
fi

# Types, where pyright can be had.
cache=${SKV_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/slabkv}/pyright-1
[ -e "$cache/ready" ] || { python3 -m venv "$cache" && "$cache/bin/pip" install -q pyright==1.1.414 && touch "$cache/ready"; } || true
if "$cache/bin/pyright" --version >/dev/null 2>&1; then
	"$cache/bin/pyright" -p "$package"
else
	echo "not looked at here (no pyright): the types"
fi
