# shellcheck shell=bash
# node.sh BUILD: for guest and measure: a memory node that answers at all addresses, and the engine's hand on it (moves.c).
build=$(cd "$1" && pwd)
uuid=00000000-0000-0000-0000-000000000001
token=0123456789abcdef-admin
length=$((32 << 20))
url=http://$RDMA_ADDRESS:7340
dir=$(mktemp -d)
(umask 077 && echo "admin default $token" >"$dir/tokens")
node='' code=0 others=()
trap 'code=$?; kill "$node" "${others[@]}" 2>/dev/null || true; [ $code = 0 ] || cat "$dir"/*log; rm -rf "$dir"' EXIT

said() { printf '%s, %s s\n' "$1" "$SECONDS"; }

ask()
{
	curl -sS --fail-with-body --max-time 120 -H "Authorization: Bearer $token" -H "Content-Type: application/json" "$url$1" -d \
		"{\"storage\":\"s\",\"type\":\"memory\",\"uuid\":\"$uuid\",\"unit\":65536$2}" >/dev/null
}

# node_process NAME PORT [OPTION...]: becomes the process, so call it in a subshell; its API is at PORT, its data port 4 before.
node_process()
{
	exec "$build/server/main/slabkvd" --role memory-node --memory 64M --memory-name "$1" --memory-pages normal --memory-port $(($2 - 4)) \
		--http-listen 0.0.0.0 --http-port "$2" --tokens-file "$dir/tokens" "${@:3}"
}

# answers PROCESS URL: waits for it
answers()
{
	until curl -s -o /dev/null --max-time 60 "$2"; do
		kill -0 "$1" || return 1
		sleep 0.2
	done
}

# start_node: m0, with a slab of $length bytes
start_node()
{
	node_process m0 7340 >>"$dir/log" 2>&1 &
	node=$!
	answers $node "$url/healthz"
	ask /fs/m0/open ',"may_create":true'
	ask /fs/m0/create ",\"file\":1,\"length\":$length"
}

# moves_at URL TEST...
moves_at() { SLABKV_MEMORY_TRANSPORT=rdma "$build/tests/rdma/rdma_moves" "$1/m0" "$uuid" 1 "$length" "$token" "${@:2}"; }
moves() { moves_at "$url" "$@"; }

# told FIELD: a number of the node's GET /
told() { curl -sS --max-time 60 "$url/" | sed 's/.*"'"$1"'": *\([0-9]*\).*/\1/'; }
