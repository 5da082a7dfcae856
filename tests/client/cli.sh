#!/bin/bash
# The command slabkv against a real slabkvd: every subcommand, its exit status, its output.
# usage: cli.sh SLABKVD SLABKV STANDIN (of 3FS's client library, tests/usrbio)
set -u
slabkvd=$1
slabkv=$2
standin=$3
completion=$(realpath "$(dirname "$0")/../../client/completion/slabkv.bash")
unset SLABKV_URL SLABKV_TOKEN SLABKV_ENGINE HF3FS_LIB
dir=$(mktemp -d /tmp/skv-cli-XXXXXX)
pid=
trap 'test -n "$pid" && kill -9 $pid 2>/dev/null; test -s "$dir/pid" && kill -9 "$(cat "$dir/pid")" 2>/dev/null; wait 2>/dev/null; rm -rf "$dir"' EXIT
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
for c in put get lookup match delete pin unpin pins stat top replay bench doctor group storage instance ls pages plan gen-trace; do
	run 0 $c --help
	says "slabkv $c"
	run 2 $c --no-such-option
	complains "slabkv $c --help"
done
run 2; complains 'no command'
run 2 fly; complains "no command 'fly'"
run 2 lokup a; complains 'did you mean lookup'
run 2 stat --jsno; complains 'did you mean --json'
run 2 stat --timeout; complains "'--timeout' needs a value"
run 2 group lits; complains 'did you mean list'
run 2 storage drian default; complains 'did you mean drain'
run 2 pages clare; complains 'did you mean clear'
run 2 instance kyes default; complains 'did you mean keys'
run 0 help; says 'gen-trace'
run 0 help put; says 'slabkv put'
run 2 help putt; complains 'did you mean put'
run 2 get; complains 'exactly one --key'
run 2 lookup --key-form int abc; complains 'decimal'
run 2 put --key a /nonexistent; complains '/nonexistent'
run 2 put --key a /dev/null; complains 'empty'
run 2 --token-file /nonexistent stat; complains 'cannot read'
run 3 --url http://127.0.0.1:1 stat; complains 'slabkvd running'
run 4 --url ftp://x stat
run 0 --url "${SLABKV_URL#http://}" stat; says ' ready,'

# errors for programs: one JSON object on stderr, nothing else there, nothing on stdout
is_error() {
	[ -s out ] && fail 'something on stdout'
	[ "$(wc -l <err)" = 1 ] || fail 'not one line'
	python3 -c 'import json, sys; e = json.load(open("err"))["error"]; sys.exit(e["code"] != sys.argv[1] or not e["message"])' "$1" ||
		fail "no error $1 in JSON"
}
run 2 --json fly; is_error usage
run 2 stat --nonsense --json; is_error usage
run 1 get --json --key nothing b; is_error not_found
run 1 --json group set third storages=nowhere; is_error not_found
run 3 --json --url 127.0.0.1:1 stat; is_error network

# groups: fields as the API names them, what is not named stays
run 0 group list; says '^default  *reuse  *unlimited '
run 0 group set default policy=lru capacity=1G
run 0 group list; says '^default  *lru  *1.00 GiB '
run 4 group set default policy=sieve; complains 'policy.*s3fifo'
run 4 group set default policy=ttl; complains 'ttl_ms'
run 0 --json group set default policy=ttl ttl_ms=3600000; says '"ttl_ms": 3600000'; says '"capacity": 1073741824'
run 0 group set second storages=default policy=s3fifo
run 0 --json group list; says '"s3fifo"'
run 1 group set third storages=nowhere; complains 'nowhere'
run 2 group
run 2 group set second
run 2 group set second policy; complains 'FIELD=VALUE'
run 2 group set default "$(printf 'policy=\xff')"; complains 'policy: not UTF-8'
run 2 group set default "$(printf 'storages=default,\xff')"; complains 'storages: not UTF-8'
run 0 group set default 'policy=' ttl_ms=0 capacity=0
run 0 group list; says '^default  *reuse '

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
for key in w8 w9; do run 0 put --instance windows --independent --key $key a; done
run 0 --json lookup --instance windows --window 2 w7 w8 w9 w10; says '"matched": 2'; says 'slab-'
run 1 lookup --instance windows --window 3 w7 w8 w9 w10; says '0 of 4'
run 1 lookup --instance windows --trailing w7 w8 w9 w10; says '2 of 4'
run 2 lookup --instance windows --window 0 w9; complains '1..16384'
run 4 lookup --instance windows --window 2 w9; complains 'number of keys'
run 0 put --instance parts --independent --block-bytes 32K --key w a; says '4 written'
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
# from files: keys, and prompts hashed as SGLang does (its get_hash_str(range(1, 13), page_size=4), the first two pages)
pages='cf97adeedb59e05bfd73a2b4c2a88857 4ebfa8a1f3c341517621838c6e1b9aa3'
printf x >x
printf 'a\nb\n\n' >keys
run 1 pin --keys keys; says 'b  -'; says '1 of 2 keys pinned'
for key in $pages; do run 0 put --instance pages --independent --key-form hex --key "$key" x; done
printf '[1, 2, 3, 4, 5, 6, 7, 8, 9]\n1 2 3 4 5 6 7\n1 2 3\n' >prompts
run 0 pin --instance pages --prompts prompts --hash sglang --page 4; says '2 of 2 keys pinned'
run 0 pins --instance pages; for key in $pages; do says "$key"; done
seq 1 200000 | paste -sd, >prompts
run 1 pin --instance pages --prompts prompts --hash sglang --page 4; says '^2 of 50000 keys pinned'
printf '1 2 x 4\n' >prompts
run 2 pin --prompts prompts --hash sglang --page 4; complains "'x 4' is no token id"
run 2 pin --prompts prompts --page 4; complains 'needs --hash sglang'
run 2 pin --prompts prompts --hash vllm --page 4; complains 'give --keys'
run 2 pin --keys keys a; complains 'one of them'
run 2 pin --keys /nonexistent; complains 'cannot read'
run 0 unpin --instance pages --all
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
run 0 ls; says '^default  *default  *1  *97.7 KiB  *1 '
run 0 instance list; says '^default '
run 0 --json instance list; says '"instances"'
run 0 ls default; [ "$(grep -cx '[0-9a-f]\{32\}' out)" = 1 ] || fail 'not one key'
key=$(cat out)
run 0 get --key-form hex --key "$key" b; cmp a b || fail 'other bytes by the key that was listed'
# instances that nobody uses
printf x >x
run 0 put --instance keeps --key a x
run 0 put --instance team/v1 --key a x; run 0 delete --instance team/v1 --key a
run 2 instance rm; complains 'older-than'
run 2 instance rm --older-than 3; complains 'like 30d'
run 2 instance list --dry-run; complains "rm's"
run 0 instance rm --older-than 1d --dry-run; says '^0 would be removed'
for _ in $(seq 200); do
	run 0 instance rm --older-than 1s --with-blocks --dry-run
	if grep -q '^keeps ' out && grep -q '^team/v1 ' out; then break; fi
	sleep 0.05
done
says '^keeps .* 1 blocks'; says '^team/v1 .* 0 blocks'
run 0 instance rm --older-than 1s --group nowhere --yes; says '^0 removed'
run 2 instance rm --older-than 1s; complains 'yes'
run 0 --json instance rm --older-than 1s --yes; says 'team/v1'; says '"dry_run": false'
run 1 ls team/v1
run 0 ls keeps
run 0 put --instance keeps --key a x # a use
run 0 instance rm --older-than 1h --with-blocks --yes; says '^0 removed'
run 0 --json instance keys default; says "\"$key\""
run 1 ls nobody; complains 'nobody'
run 0 delete a; says '1 of 1 deleted'
run 0 ls default; [ -s out ] && fail 'a key that is gone'
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
run 2 get --instance chain --key doc --block-bytes 16K b; complains 'have 8192 bytes'
run 2 get --instance two --key doc --block-bytes 4000 b; complains '2 specs'
# what a command does not get leaves the file as it was, and nothing beside it
echo precious >b; chmod 640 b
run 1 get --key nothing b; grep -qx precious b || fail 'a miss changed the file'
run 1 get --instance chain --key nothing --block-bytes 8K b; grep -qx precious b || fail 'a miss changed the file'
run 0 delete --instance chain doc/5
run 1 get --instance chain --key doc --block-bytes 8K b; complains 'doc/5: not there, but doc/6 is'
grep -qx precious b || fail 'half a chain took the place of the file'
[ "$(find . -name 'b.*')" = '' ] || fail 'something is left beside the file'
run 0 get --key-form int --instance two --key 7 --spec tp1 b; [ "$(stat -c %a b)" = 640 ] || fail 'another mode'
run 0 get --key-form int --instance two --key 7 --spec tp1 /dev/null
ln -s b link; run 0 get --key-form int --instance two --key 7 --spec tp0 link; [ -L link ] || fail 'the link is gone'
cmp b p0 || fail 'not what the link leads to'
# nobody can lay a link in its way: the name of the file beside it is told neither by its own nor by the process
echo precious >theirs
# shellcheck disable=SC2016 # of the inner shell, whose number is the command's
sh -c 'for n in tmp new part "$$" "$$.tmp" "tmp.$$"; do ln -s theirs "b.$n"; done
	exec "$0" get --key-form int --instance two --key 7 --spec tp1 b' "$slabkv" || fail 'get with links in its way'
grep -qx precious theirs || fail 'written through a link that lay in wait'
find . -name 'b.*' -type l -delete
cmp b p1 || fail 'not the bytes'
[ ! -L b ] || fail 'a link took the place'
# a size that no block has is refused before anything is counted with it; so is a name that no path has room for
for n in 18446744073709551615 4294967297 0; do
	run 2 put --instance chain --key doc --block-bytes $n a; complains 'up to 4G'
	run 2 get --instance chain --key doc --block-bytes $n b; complains 'up to 4G'
done
run 2 stat --instance "$(printf '%04070d' 0)" --key a; complains 'at most 127 characters'
# keys that differ behind their 1000th byte are two keys; one with no room for a number is refused
long=$(printf '%01002d' 0)
head -c 8192 /dev/zero >zeros; head -c 8192 /dev/urandom >noise
run 0 put --instance chain --key "${long}1" --block-bytes 8K zeros; run 0 put --instance chain --key "${long}2" --block-bytes 8K noise
run 0 get --instance chain --key "${long}1" --block-bytes 8K b; cmp b zeros || fail 'the bytes of another key'
run 0 get --instance chain --key "${long}2" --block-bytes 8K b; cmp b noise || fail 'the bytes of another key'
run 2 put --instance chain --key "${long}11" --block-bytes 8K zeros; complains 'at most 1003 bytes'
run 2 get --instance chain --key "${long}11" --block-bytes 8K b; complains 'at most 1003 bytes'

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
run 0 --json bench --seconds 0.1 --clients 1 --keys 8 --ops lookup,match; says '"p999_us"'; says '"commit"'
grep -q '"success": 1.0' out || fail 'bench did not find its own blocks'
run 0 --json bench --seconds 0.1 --keys 16 --ops lookup,match --batch --scatter --hits 0.25; says '"success": 1.0'
run 0 --json bench --seconds 0.1 --keys 16 --ops lookup,match,start,delete --text --checksums
! grep '"success"' out | grep -qv ': 1.0' || fail 'bench did not find blocks by their texts'
run 4 bench --seconds 0.1 --ops start --policy nosuch; complains "policy: no policy 'nosuch'"
run 0 --json bench --seconds 0.1 --keys 16 --ops start --policy lru --independent; says '"success": 1.0'
run 0 --json bench --seconds 0.1 --clients 4 --keys 64 --ops start --full --capacity 64M; says '"success": 1.0'
run 0 --json bench --seconds 0.1 --clients 2 --keys 4 --data 4K,70000 --data-bytes 4M --in-flight 3
says '"operation": "get"'; says '"block_bytes": 70000'; ! grep '"success"' out | grep -qv ': 1.0' || fail 'not all bytes came back'
run 0 stat; ! grep -q 'bench-' out || fail 'bench left its objects'
run 2 bench --manager-pid 999999999
run 2 bench --keys 1,16385; complains '16384'
run 2 bench --ops lookup,fly; complains 'ops'
run 2 bench --hits 1.5; complains 'hits'
run 2 bench --data 4K --in-flight 17; complains 'in-flight: 1..16'
run 0 doctor; says '^ok *read'
run 0 --json doctor --no-write; says '"bad": 0'
run 3 --url http://127.0.0.1:1 doctor; says '^bad *manager'
mkdir empty
run 1 --url "$SLABKV_URL" --mount "$dir/empty" doctor; says '^bad *mount'; says '-> mount the storage'
run 0 --url "$SLABKV_URL" --mount "$dir/data" doctor; says '^ok *round trip'; says '^ok *manager'
run 0 --mount "$dir/data" doctor; says '^ok *round trip'; grep -q manager out && fail 'doctor --mount asked a manager'

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
run 0 pages list; says '^default  *0 kv  *4  *2  *2  *-$'
run 0 --json pages list --tenant other; says '"pages": \[\]'
run 0 pages export out.json; says '0:kv: 2 keys of 4 pages'
run 0 pages import out.json --tenant other; says '0:kv: 2 imported'
run 0 pages export - --space 0; grep -q '"b", 2' out || fail 'no key in the export'
run 0 stat; says 'capacity  *4 pages'
run 0 top --once; says '4 pages'
run 2 pages clear --space 0:kv; complains 'deletes all keys of the page space 0:kv; .* --yes'
run 0 --yes pages clear --space 0:kv; says '2 keys deleted'
run 1 pages clear --yes --space 7:kv; complains 'no instance'
run 2 pages; complains 'list, export, import or clear'
run 2 pages import; run 2 pages list more; run 2 pages clear
run 2 pages import t.jsonl; complains 'line'
run 0 doctor; says '^ok *storage *pages:default:0:kv is healthy'

# objects go away
run 2 delete --object instance two; complains 'deletes instance two with its 1 blocks; .* --yes'
run 1 delete --object instance nobody; complains 'nobody'
run 1 --yes delete --object instance two nobody
run 0 get --instance two --key-form int --key 7 b
run 0 --yes delete --object instance two
run 1 delete --object instance two
run 1 get --instance two --key-form int --key 7
run 2 delete --object house x

# what would be destroyed is named; nothing is without a yes
run 1 storage drain nowhere
run 1 storage files nowhere
run 2 storage drain default; complains 'retires storage default: .* slab file.*--yes'
run 2 storage drain default 0; complains 'evicts the blocks in 1 slab file of storage default'
run 2 storage capacity default 32M; complains 'lowers storage default from 64.0 MiB to 32.0 MiB'
run 0 storage files default; says '^0  *used '
run 2 storage forget default 0; complains 'gives up 1 slab file of storage default.*--yes'
run 4 storage forget default 0 --yes; complains 'whole'
run 0 storage capacity default 64M
# a terminal is asked, and no is the default
python3 - "$slabkv" <<'EOF' >out 2>&1 || fail 'a terminal is not asked as it should be'
import os, pty, sys
for word, want in (b"\n", 2), (b"n\n", 2), (b"y\n", 0):
    pid, fd = pty.fork()
    if pid == 0:
        os.execv(sys.argv[1], [sys.argv[1], "delete", "--object", "group", "second"])
    told = b""
    while b"[y/N]" not in told:
        told += os.read(fd, 1000)
    assert b"deletes group second" in told, told
    os.write(fd, word)
    try:
        while os.read(fd, 1000):
            pass
    except OSError:
        pass
    got = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert got == want, (word, got)
EOF

# top on a terminal of 80 columns: no line is longer, it outlives a manager that restarts, q ends it
cat >top.py <<'EOF'
import fcntl, os, pty, re, struct, subprocess, sys, termios
pid, fd = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
    os.execv(sys.argv[1], [sys.argv[1], "top", "--interval", "1", "--timeout", "300"])
told = b""
def until(text):
    global told
    while text not in told:
        told += os.read(fd, 10000)
until(b"INSTANCE")
screen = re.sub(rb"\x1b\[[0-9;]*[A-Za-z]", b"", told).replace(b"\r", b"")
assert max(map(len, screen.split(b"\n"))) <= 80, screen
subprocess.run([sys.argv[2], "stop"], check=True)
until(b"slabkvd running?")
told = b""
subprocess.run([sys.argv[2], "start"], check=True)
until(b"INSTANCE")
os.write(fd, b"q")
try:
    while os.read(fd, 10000):
        pass
except OSError:
    pass
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
EOF
port=$(cat port)
cat >manager <<EOF
#!/bin/bash
cd "$dir" || exit 1
if [ "\$1" = stop ]; then
	kill -TERM \$(cat pid)
	while kill -0 \$(cat pid) 2>/dev/null; do sleep 0.05; done
else
	setsid "$slabkvd" --http-port $port --grpc-port 0 --store s.db --storage-root "$dir/data" \\
		--storage-capacity 64M --storage-unit 1M >>log 2>&1 </dev/null &
	echo \$! >pid
fi
EOF
chmod +x manager
kill -TERM $pid; wait $pid || fail "slabkvd ended with $?"
./manager start; pid=$(cat pid)
for _ in $(seq 200); do
	"$slabkv" stat >out 2>err && grep -q ' ready,' out && break
	sleep 0.05
done
timeout 60 python3 top.py "$slabkv" ./manager >out 2>&1 || fail 'top on a terminal'
pid=$(cat pid)

# completion knows actions, and commands from the help itself
complete_words() { # WORDS...: what bash offers for the last of them
	bash -c 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _slabkv; echo "${COMPREPLY[*]}"' _ "$completion" "$@"
}
[ "$(complete_words "$slabkv" storage dr)" = drain ] || fail 'completion of storage'
[ "$(complete_words "$slabkv" group '')" = 'list set' ] || fail 'completion of group'
[ "$(complete_words "$slabkv" --json instance k)" = keys ] || fail 'completion of instance'
[ "$(complete_words "$slabkv" pages cl)" = clear ] || fail 'completion of pages'
[ "$(complete_words "$slabkv" inst)" = instance ] || fail 'completion of commands'
[ "$(complete_words "$slabkv" help gen)" = gen-trace ] || fail 'completion of help'

kill -TERM "$pid"
while kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
pid=
rm pid
grep -c 'main: stopped' log >out; says '^3$'
grep -E ' error ' log >out && fail 'the manager logged an error'
echo 'all as it should be'
