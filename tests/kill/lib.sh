# shellcheck shell=bash disable=SC2154
# lib.sh - for scripts that run real managers: a directory that goes away, processes that go with it.
# usage: slabkvd=... slabkv=...; . lib.sh; the script's directory of work is then the current one.

dir=$(mktemp -d /tmp/skv-kill-XXXXXX)
pids=()
mounts=()
cleanup() {
	for p in "${pids[@]}"; do
		kill -CONT "$p" 2>/dev/null || true
		kill -KILL "$p" 2>/dev/null || true
		wait "$p" 2>/dev/null || true
	done
	for m in "${mounts[@]}"; do
		umount "$m" || true
	done
	cd /
	rm -rf "$dir"
}
trap cleanup EXIT
cd "$dir" || exit 1

fail() {
	echo "FAILED: $*" >&2
	for l in "$dir"/*.log; do
		echo "--- $l" >&2
		tail -n 15 "$l" >&2
	done
	exit 1
}

# until_true SECONDS COMMAND...: polls; fails when the time is over. Counts its own pauses: the clock on the wall
# jumps where a virtual machine was stopped in between.
until_true() {
	local left=$(($1 * 20))
	shift
	until "$@" >/dev/null 2>&1; do
		[ $((left--)) -gt 0 ] || return 1
		read -r -t 0.05 <> <(:) || true
	done
}

# manager NAME ARGUMENTS...: starts one; its port is in NAME.port, its pid in $last. Whoever comes after a killed one of this
# host takes over at once; lease_ms is for scripts where one lives on, or the store is a copy. On a busy machine a manager
# with a short lease that has no rival is not the owner now and then.
lease_ms=10000
manager() {
	local name=$1
	shift
	rm -f "$name.port"
	"$slabkvd" --http-port 0 --grpc-port 0 --port-file "$name.port" --owner-lease-ms "$lease_ms" --grace-ms 300 \
		--storage-capacity 64M --storage-unit 1M --storage-file-size 8M "$@" >>"$name.log" 2>&1 &
	last=$!
	pids+=("$last")
	until_true 20 test -s "$name.port" || fail "$name did not start"
}
url() { echo "http://127.0.0.1:$(cat "$1.port")"; }
ready() { curl -sf -m 10 "$(url "$1")/readyz"; }

# call NAME PATH [BODY]: prints the status, then the answer
call() {
	if [ $# -gt 2 ]; then
		curl -s -m 30 -o answer -w '%{http_code} ' "$(url "$1")$2" -d "$3" || true
	else
		curl -s -m 30 -o answer -w '%{http_code} ' "$(url "$1")$2" || true
	fi
	cat answer 2>/dev/null || true
}
