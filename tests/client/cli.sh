#!/bin/bash
# The command slabkv against a real slabkvd: every subcommand, its exit status, its output.
# usage: cli.sh SLABKVD SLABKV STANDIN (of 3FS's client library, tests/usrbio)
set -u
slabkvd=$1
slabkv=$2
standin=$3
unset SLABKV_URL SLABKV_TOKEN SLABKV_ENGINE HF3FS_LIB
dir=$(mktemp -d /tmp/skv-cli-XXXXXX)
pid=
trap 'test -n "$pid" && kill -9 $pid 2>/dev/null; wait 2>/dev/null; rm -rf "$dir"' EXIT
cd "$dir" || exit 1

fail() { echo "FAILED: $*" >&2; echo "--- output:" >&2; cat out err >&2; echo "--- log:" >&2; tail -20 log >&2; exit 1; }
# run EXIT ARGS...: runs slabkv, wants that exit status, leaves out and err.
run() {
	local want=$1 got
	shift
	"$slabkv" "$@" >out 2>err </dev/null
	got=$?
	[ "$got" = "$want" ] || fail "slabkv $* ended with $got instead of $want"
}
says() { grep -q -- "$1" out || fail "no '$1' in the output"; }
complains() { grep -q -- "$1" err || fail "no '$1' among the errors"; }

touch log out err
"$slabkvd" --http-port 0 --grpc-port 0 --port-file port --store s.db --storage-root "$dir/data" \
	--storage-capacity 64M --storage-unit 1M >log 2>&1 &
pid=$!
for _ in $(seq 200); do
	if [ -s port ] && "$slabkv" --url "http://127.0.0.1:$(cat port)" stat >out 2>err &&
		grep -q ' ready,' out; then break; fi
	kill -0 $pid 2>/dev/null || fail "slabkvd ended"
	sleep 0.05
done
SLABKV_URL=http://127.0.0.1:$(cat port)
export SLABKV_URL

# help, version, usage
run 0 --version; says 'slabkv [0-9]'
run 0 --help; says 'gen-trace'
for c in put get lookup match delete pin unpin pins stat top replay bench doctor group pages gen-trace; do
	run 0 $c --help
	says "slabkv $c"
	run 2 $c --no-such-option
	complains "slabkv $c --help"
done
run 2; complains 'no command'
run 2 fly; complains "no command 'fly'"
run 2 get; complains 'exactly one --key'
run 2 lookup --key-form int abc; complains 'decimal'
run 2 put --key a /nonexistent; complains '/nonexistent'
run 2 put --key a /dev/null; complains 'empty'
run 2 --token-file /nonexistent stat; complains 'cannot read'
run 3 --url http://127.0.0.1:1 stat; complains 'slabkvd running'
run 4 --url ftp://x stat

# groups: fields as the API names them, what is not named stays
run 0 group list; says '^default  *odds '
run 0 group set default policy=lfu capacity=1G
run 0 group list; says '^default  *lfu  *1.00 GiB '
run 4 group set default policy=mru; complains 'policy.*s3fifo'
run 4 group set default policy=ttl; complains 'ttl_ms'
run 0 --json group set default policy=ttl ttl_ms=3600000; says '"ttl_ms": 3600000'; says '"capacity": 1073741824'
run 0 group set second storages=default policy=sieve
run 0 --json group list; says '"sieve"'
run 1 group set third storages=nowhere; complains 'nowhere'
run 2 group
run 2 group set second
run 2 group set second policy; complains 'FIELD=VALUE'
run 0 group set default 'policy=' ttl_ms=0 capacity=0
run 0 group list; says '^default  *odds '

# a block there and back
head -c 100000 /dev/urandom >a
run 0 put --key a a; says '1 written'
run 0 put --key a a; says '1 there already'
run 0 get --key a b; cmp a b || fail 'other bytes'
"$slabkv" get --key a | cmp - a || fail 'other bytes on stdout'
for engine in posix auto uring; do # uring: or posix in its place
	run 0 --engine $engine get --key a b; cmp a b || fail "other bytes with $engine"
done
run 4 --engine warp get --key a b; complains 'no engine of that name'
run 0 --engine posix doctor --no-write; says 'posix'
run 1 get --key b; complains 'not there'
run 1 get --instance other --key a
run 4 put --key c log; complains 'another layout'
run 0 --json lookup a; says '"matched": 1'; says 'slab-'
run 1 lookup a b; says '1 of 2'
run 0 match a b; says '1 of 2'
run 1 match b
run 0 --json stat; says '"storages"'
run 0 stat --key a; says '"committed"'
run 1 stat --key b
run 1 pin a b; says 'b  -'; says '1 of 2 keys pinned'
run 0 --json pin --soft --ttl 60000 a; says '"pinned": 1'
run 0 pins; says ' hard$'
run 0 --json pins; says '"kind": "hard"'; says '"ttl_ms": 0'
run 2 pin --soft a; complains 'ttl'
run 2 pin --ttl x a; complains 'ttl'
run 2 pin; complains 'no key'
run 2 unpin --all a; complains 'not both'
run 2 unpin
run 2 pins x
run 1 pins --instance nobody
run 0 top --once; says 'STORAGE'; says 'INSTANCE'; says 'PINNED'; says '^default '
run 0 top --once --sort pinned --lines 1; says 'HITS'
run 0 --json top --once; says '"pinned_bytes": [1-9]'; says '"room_bytes"'
run 2 top --sort taste; complains 'sort'
run 2 top --lines 0; complains 'lines'
run 0 unpin a b; says '1 unpinned'
run 0 unpin --all; says '0 unpinned'
run 0 delete a; says '1 of 1 deleted'
run 1 delete a
run 1 get --key a

# several specs, other key forms
head -c 1000 a >p0; head -c 3000 a >p1
run 0 put --instance two --key-form int --key 7 --spec tp0=p0 --spec tp1=p1
cat p0 p1 >both
run 0 get --instance two --key-form hex --key 00000000000000000000000000000007 b; cmp both b || fail 'specs'
run 0 get --instance two --key-form int --key 7 --spec tp1 b; cmp p1 b || fail 'one spec'

# a chain, whose last block is filled up
run 0 put --instance chain --key doc --block-bytes 8K a; says '13 written'; says '6496 zero bytes'
run 0 get --instance chain --key doc --block-bytes 8K --length 100000 b; cmp a b || fail 'chain'
run 0 --json get --instance chain --key doc --block-bytes 8K b; says '"blocks": 13'
run 0 match --instance chain doc/0 doc/1 doc/2; says '3 of 3'

# replay: everything verified; a second time everything is a hit
run 0 gen-trace --conversations 20 --turns 4 --seed 5 --out t.jsonl
run 0 --json replay --block-bytes 16K --clients 3 --spec-count 2 t.jsonl
says '"mismatches": 0'; says '"failed": 0'
run 0 --json replay --block-bytes 16K --clients 3 --spec-count 2 t.jsonl
says '"prefix_hit_rate": 1.0'; says '"written": 0'
run 0 replay --block-bytes 16K --requests 5 --speed 1000 t.jsonl; says 'read and verified'
"$slabkv" gen-trace --conversations 3 | "$slabkv" replay --block-bytes 4K - >out 2>err || fail 'from stdin'
echo rubbish >>t.jsonl
run 2 replay t.jsonl; complains 'line [0-9]*:'
run 2 replay --block-bytes 5 --spec-count 2 t.jsonl; complains 'multiple'
run 2 replay --lease x t.jsonl; complains 'milliseconds'
head -1 t.jsonl >one.jsonl
run 2 replay --hits /nonexistent/hits one.jsonl; complains 'No such file'
run 0 replay --lease 0 --clients 1 --instance hits --block-bytes 4K --hits hits one.jsonl
[ "$(head -1 hits)" = request,blocks,prefix_hits,hits_behind,written ] || fail 'the head of the hits'
[ "$(wc -l <hits)" = 2 ] || fail 'a line for each request'
run 2 replay /dev/null; complains 'no request'

# a flipped byte is found, told and has its own exit status
run 0 replay --instance flip --block-bytes 4K one.jsonl
offset=$("$slabkv" --json lookup --instance flip --key-form int \
	"$(sed 's/.*\[\([0-9]*\).*/\1/' one.jsonl)" | sed -n 's/.*"offset": \([0-9]*\).*/\1/p')
printf '\xff\x00\xff\x00' | dd of=data/slab-00000000.kvs bs=1 seek=$((offset + 100)) conv=notrunc 2>/dev/null
run 5 replay --instance flip --block-bytes 4K one.jsonl; says 'mismatches *1'

# bench and doctor
run 0 bench --seconds 0.1 --clients 2 --keys 1,32 --manager-pid $pid; says 'start+finish'; says '^delete  *32 '
run 0 --json bench --prepare --seconds 0.1 --clients 1 --keys 8 --ops lookup,match; says '"p999_us"'; says '"commit"'
grep -q '"success": 1.0' out || fail 'bench did not find its own blocks'
run 0 --json bench --seconds 0.1 --keys 16 --ops lookup,match --batch --scatter --hits 0.25; says '"success": 1.0'
run 0 --json bench --seconds 0.1 --clients 4 --keys 64 --ops start --full --capacity 64M; says '"success": 1.0'
run 0 --json bench --seconds 0.1 --clients 2 --keys 4 --data 4K,70000 --data-bytes 4M
says '"operation": "get"'; says '"block_bytes": 70000'; ! grep '"success"' out | grep -qv ': 1.0' || fail 'not all bytes came back'
run 0 stat; ! grep -q 'bench-' out || fail 'bench left its objects'
run 2 bench --manager-pid 999999999
run 2 bench --keys 1,16385; complains '16384'
run 2 bench --ops lookup,fly; complains 'ops'
run 2 bench --hits 1.5; complains 'hits'
run 0 doctor; says '^ok *read'
run 0 --json doctor --no-write; says '"bad": 0'
run 3 --url http://127.0.0.1:1 doctor; says '^bad *manager'
mkdir empty
run 1 --mount "$dir/empty" doctor; says '^bad *mount'; says '-> mount the storage'
run 0 --mount "$dir/data" doctor; says '^ok *round trip'

# options by name, and a mount on its own: no manager is needed
run 0 -o help; says '^hf3fs_io_depth  *-8  *-128..128'
run 2 stat -o hf3fs_io_depth=300; complains 'hf3fs_io_depth: -128..128'
run 2 -o hf3fs_io_deep=3 stat; complains 'no option of that name'
run 2 -o hf3fs_io_depth stat; complains 'NAME=VALUE'
url=$SLABKV_URL
unset SLABKV_URL
mkdir 3fs
export HF3FS_STANDIN_ROOT=$dir/3fs
small=(-o threefs_read_iov_size=8M -o threefs_write_iov_size=8M)
run 0 --mount "$dir/3fs" "${small[@]}" -o "hf3fs_lib=$standin" doctor
says '^ok *library .*libhf3fs_api_shared.so'; says '^ok */dev/shm *a process needs'; says '^ok *rings'
says '^ok *round trip'; says '^ok *hole'
[ "$(find 3fs -name '.slabkv-doctor*')" = "" ] || fail "doctor left its file"
run 1 --mount "$dir/empty" -o "hf3fs_lib=$standin" -o "hf3fs_mount_point=$dir/3fs" doctor; says '^bad *3fs .*does not answer as 3FS'
run 1 --mount "$dir/nowhere" doctor; says '^bad *directory .*No such file'
run 1 --mount "$dir/3fs" -o "hf3fs_lib=$standin" -o threefs_read_iov_size=64G -o threefs_write_iov_size=64G doctor
says '^bad */dev/shm *a process needs 1310'; says 'MiB free: make it larger'
rm 3fs/3fs-virt/iovs/submit-ios
run 1 --mount "$dir/3fs" "${small[@]}" -o "hf3fs_lib=$standin" --json doctor; says 'does the FUSE daemon of this 3FS run'
export SLABKV_URL=$url
run 4 --mount "$dir/empty" get --instance two --key-form int --key 7 b; complains "--mount"

# page spaces, to and from upstream's file
echo '{"0:kv": {"num_pages": 4, "free_pages": [0, 1], "key_to_index": [["a", 3], ["b", 2]]}, "1": {"num_pages": 1,
 "free_pages": [0], "key_to_index": []}}' >state.json
run 0 pages import state.json; says '0:kv: 2 imported, 0 skipped'; says '1:kv: 0 imported'
run 0 pages import state.json; says '2 of them already there'
run 0 pages list; says '^default  *0 kv  *4  *2  *2$'
run 0 --json pages list --tenant other; says '"pages": \[\]'
run 0 pages export out.json; says '0:kv: 2 keys of 4 pages'
run 0 pages import out.json --tenant other; says '0:kv: 2 imported'
run 0 pages export - --space 0; grep -q '"b", 2' out || fail 'no key in the export'
run 0 stat; says 'capacity  *4 pages'
run 0 top --once; says '4 pages'
run 0 pages clear --space 0:kv; says '2 keys deleted'
run 1 pages clear --space 7:kv; complains 'no instance'
run 2 pages; complains 'list, export, import or clear'
run 2 pages import; run 2 pages list more; run 2 pages clear
run 2 pages import t.jsonl; complains 'line'
run 0 doctor; says '^ok *storage *pages:default:0:kv is healthy'

# objects go away
run 0 delete --object instance two
run 1 get --instance two --key-form int --key 7
run 2 delete --object house x

kill -TERM $pid
wait $pid || fail "slabkvd ended with $?"
pid=
grep -E ' error ' log >out && fail 'the manager logged an error'
echo 'all as it should be'
