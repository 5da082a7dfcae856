/*
 * redis_scripts.h - the scripts that run inside Redis, one Lua function per operation
 * (redis_store.h documents the keys). An answer is an array that begins with a word. Numbers are
 * decimal text up to 2^47, exact in Lua.
 *
 * FENCE_CHECK: KEYS[1] is the owner's hash, ARGV[1] the fence, ARGV[2] its nonce. AGAIN: a
 * repetition still writes something, so that WAIT on its connection covers what it repeats.
 */
#ifndef SKV_STORE_REDIS_SCRIPTS_H
#define SKV_STORE_REDIS_SCRIPTS_H

#define FENCE_CHECK                                                           \
	"local o = redis.call('HMGET', KEYS[1], 'fence', 'nonce', 'owner')\n" \
	"if o[1] ~= ARGV[1] or o[2] ~= ARGV[2] or (o[3] or '') == '' then return {'FENCED'} end\n"
#define AGAIN(key) "redis.call('HINCRBY', " key ", 'again', 1)\n"
/* Before all else: an engine that is full does not take the store from its owner. */
#define EVEN_FULL "#!lua flags=allow-oom\n"
#define NUMBER "local function number(x) return string.format('%.0f', x) end\n"
/* As skv_mark_older. */
#define OLDER                                                                              \
	"local function count(m) return tonumber(string.match(m, '^%d+') or '0') end\n"    \
	"local function older(a, b) return a ~= b and count(a) <= count(b) end\n"
/* Of a document's write: KEYS[1] is meta, ARGV[1] the partition, `least` the mark that the writer
 * knows, `keep` '1' if it restores. The new mark is m. */
#define MARK_CHECK(least)                                                          \
	"local m = redis.call('HGET', KEYS[1], 'm' .. ARGV[1]) or ''\n"            \
	"if " least " ~= '' and older(m, " least ") then return {'BACK', m} end\n"
#define MARK_RAISE(keep)                                                                    \
	"if ARGV[1] ~= '' and " keep " ~= '1' then m = number(count(m) + 1) .. ' ' .. "      \
	"ARGV[5]\n"                                                                         \
	"redis.call('HSET', KEYS[1], 'm' .. ARGV[1], m) end\n"

#define REDIS_SCRIPTS                                                                              \
	/* owner head garbage; seen fence, nonce, beats; owner nonce ttl boot expires; the         \
	 * greatest fence that is known */                                                         \
	REDIS_SCRIPT(ACQUIRE, EVEN_FULL NUMBER                                                     \
		"local o = redis.call('HMGET', KEYS[1], 'fence', 'nonce', 'beats', 'owner')\n"     \
		"if o[2] == ARGV[5] and o[4] == ARGV[4] then\n"                                    \
		AGAIN("KEYS[1]") "return {'OK', o[1]} end\n"                                       \
		"if (o[1] or '0') ~= ARGV[1] or (o[2] or '') ~= ARGV[2] or (o[3] or '0') ~= "      \
		"ARGV[3] then\n"                                                                   \
		"  return {'CHANGED'} end\n"                                                       \
		"local f = number(math.max(tonumber(ARGV[1]), tonumber(ARGV[9])) + 1)\n"           \
		"redis.call('HSET', KEYS[1], 'fence', f, 'nonce', ARGV[5], 'beats', '0', "         \
		"'owner', ARGV[4],\n"                                                              \
		"  'ttl', ARGV[6], 'boot', ARGV[7], 'expires', ARGV[8])\n"                         \
		"local b = redis.call('HGET', KEYS[2], 'building')\n"                              \
		"if b and b ~= '0' then redis.call('SADD', KEYS[3], b) redis.call('HSET', "        \
		"KEYS[2], 'building', '0') end\n"                                                  \
		"return {'OK', f}\n")                                                              \
	/* owner */                                                                                \
	REDIS_SCRIPT(LOOK,                                                                         \
		"local o = redis.call('HMGET', KEYS[1], 'fence', 'nonce', 'beats', 'owner', "      \
		"'ttl', 'boot', 'expires')\n"                                                      \
		"return {'OK', o[1] or '0', o[2] or '', o[3] or '0', o[4] or '', o[5] or '0', "    \
		"o[6] or '', o[7] or '0'}\n")                                                      \
	/* owner; fence nonce ttl boot expires */                                                  \
	REDIS_SCRIPT(RENEW, EVEN_FULL FENCE_CHECK                                                  \
		"redis.call('HINCRBY', KEYS[1], 'beats', 1)\n"                                     \
		"redis.call('HSET', KEYS[1], 'ttl', ARGV[3], 'boot', ARGV[4], "                    \
		"'expires', ARGV[5])\n"                                                            \
		"return {'OK'}\n")                                                                 \
	/* owner; fence nonce engine: the processes that have what is acknowledged */              \
	REDIS_SCRIPT(VOUCH, EVEN_FULL FENCE_CHECK                                                  \
		"redis.call('HSET', KEYS[1], 'engine', ARGV[3])\n"                                 \
		"return {'OK'}\n")                                                                 \
	/* owner */                                                                                \
	REDIS_SCRIPT(VOUCHED,                                                                      \
		"return {'OK', redis.call('HGET', KEYS[1], 'engine') or ''}\n")                    \
	/* owner; fence nonce op */                                                                \
	REDIS_SCRIPT(RELEASE, EVEN_FULL NUMBER                                                     \
		"if redis.call('HGET', KEYS[1], 'release_op') == ARGV[3] then\n"                   \
		AGAIN("KEYS[1]") "return {'OK'} end\n"                                             \
		FENCE_CHECK                                                                        \
		"redis.call('HSET', KEYS[1], 'owner', '', 'fence', number(tonumber(ARGV[1]) + "    \
		"1), 'release_op', ARGV[3])\n"                                                     \
		"return {'OK'}\n")                                                                 \
	/* meta; partition fence nonce: whoever acquires a partition writes                        \
	 * the registry from here on */                                                            \
	REDIS_SCRIPT(MIRROR, EVEN_FULL                                                             \
		"local now = redis.call('HGET', KEYS[1], 'f' .. ARGV[1])\n"                        \
		"local f = now and tonumber(string.match(now, '^%d+')) or 0\n" AGAIN("KEYS[1]")    \
		"if tonumber(ARGV[2]) >= f then redis.call('HSET', KEYS[1], 'f' .. ARGV[1], "      \
		"ARGV[2] .. ' ' .. ARGV[3]) end\n"                                                 \
		"return {'OK', redis.call('HGET', KEYS[1], 'm' .. ARGV[1]) or ''}\n")              \
	/* meta; partition: its mark */                                                            \
	REDIS_SCRIPT(MARK,                                                                         \
		"return {'OK', redis.call('HGET', KEYS[1], 'm' .. ARGV[1]) or ''}\n")              \
	/* owner: the mark that was acknowledged */                                                \
	REDIS_SCRIPT(NOTED,                                                                        \
		"return {'OK', redis.call('HGET', KEYS[1], 'mark') or ''}\n")                      \
	/* owner; fence nonce mark: it is in the registry */                                       \
	REDIS_SCRIPT(NOTE, EVEN_FULL FENCE_CHECK OLDER AGAIN("KEYS[1]")                            \
		"if older(redis.call('HGET', KEYS[1], 'mark') or '', ARGV[3]) then "               \
		"redis.call('HSET', KEYS[1], 'mark', ARGV[3]) end\n"                               \
		"return {'OK'}\n")                                                                 \
	/* meta; partition 'fence nonce' past op: the registry is whole again, and newer than      \
	 * all that anybody knows */                                                               \
	REDIS_SCRIPT(RESTORED, EVEN_FULL NUMBER OLDER                                              \
		"if redis.call('HGET', KEYS[1], 'f' .. ARGV[1]) ~= ARGV[2] then return "           \
		"{'FENCED'} end\n" AGAIN("KEYS[1]")                                                \
		"local m = redis.call('HGET', KEYS[1], 'm' .. ARGV[1]) or ''\n"                    \
		"if string.match(m, ' (.*)$') ~= ARGV[4] then\n"                                   \
		"  m = number(math.max(count(m), count(ARGV[3])) + 1048576) .. ' ' .. ARGV[4]\n"   \
		"  redis.call('HSET', KEYS[1], 'm' .. ARGV[1], m) end\n"                           \
		"return {'OK', m}\n")                                                              \
	/* meta; format: the first who comes says what this is */                                  \
	REDIS_SCRIPT(FORMAT,                                                                       \
		"redis.call('HSETNX', KEYS[1], 'format', ARGV[1])\n"                               \
		"return {'OK', redis.call('HGET', KEYS[1], 'format')}\n")                          \
	/* nodes; id before after ('' = no record): of a silent replica */                         \
	REDIS_SCRIPT(SILENT, EVEN_FULL                                                             \
		"local is = redis.call('HGET', KEYS[1], ARGV[1]) or ''\n"                          \
		"if is ~= ARGV[2] and is ~= ARGV[3] then return {'CHANGED'} end\n"                 \
		AGAIN("KEYS[1]")                                                                   \
		"if ARGV[3] == '' then redis.call('HDEL', KEYS[1], ARGV[1])\n"                     \
		"else redis.call('HSET', KEYS[1], ARGV[1], ARGV[3]) end\n"                         \
		"return {'OK'}\n")                                                                 \
	/* meta values versions; key */                                                            \
	REDIS_SCRIPT(GET,                                                                          \
		"local v = redis.call('HGET', KEYS[3], ARGV[1])\n"                                 \
		"if not v then return {'NOT_FOUND'} end\n"                                         \
		"return {'OK', string.match(v, '^%d+'), redis.call('HGET', KEYS[2], ARGV[1])}\n")  \
	/* meta values versions keys; partition ('' = nobody's) 'fence                             \
	 * nonce' key expect op least keep bytes */                                                \
	REDIS_SCRIPT(PUT, NUMBER OLDER                                                             \
		"if ARGV[1] ~= '' and redis.call('HGET', KEYS[1], 'f' .. ARGV[1]) ~= ARGV[2] "     \
		"then return {'FENCED'} end\n"                                                     \
		"local v, is, op = redis.call('HGET', KEYS[3], ARGV[3]), '0', ''\n"                \
		"if v then is, op = string.match(v, '^(%d+) (.*)$') end\n"                         \
		MARK_CHECK("ARGV[6]")                                                              \
		"if op == ARGV[5] then\n" AGAIN("KEYS[1]") "return {'OK', is, m} end\n"            \
		"if is ~= ARGV[4] then return {'CONFLICT', is} end\n"                              \
		"is = number(tonumber(is) + 1)\n"                                                  \
		"redis.call('HSET', KEYS[2], ARGV[3], ARGV[8])\n"                                  \
		"redis.call('HSET', KEYS[3], ARGV[3], is .. ' ' .. ARGV[5])\n"                     \
		"redis.call('ZADD', KEYS[4], 0, ARGV[3])\n"                                        \
		"redis.call('HINCRBY', KEYS[1], 'changes', 1)\n" MARK_RAISE("ARGV[7]")             \
		"return {'OK', is, m}\n")                                                          \
	/* meta values versions keys; partition 'fence nonce' key expect op least keep */          \
	REDIS_SCRIPT(DEL, NUMBER OLDER                                                             \
		"if ARGV[1] ~= '' and redis.call('HGET', KEYS[1], 'f' .. ARGV[1]) ~= ARGV[2] "     \
		"then return {'FENCED'} end\n"                                                     \
		MARK_CHECK("ARGV[6]")                                                              \
		"if redis.call('HGET', KEYS[1], 'del_op') == ARGV[5] then\n"                       \
		AGAIN("KEYS[1]") "return {'OK', '0', m} end\n"                                     \
		"local v = redis.call('HGET', KEYS[3], ARGV[3])\n"                                 \
		"if not v then return {'NOT_FOUND'} end\n"                                         \
		"local is = string.match(v, '^%d+')\n"                                             \
		"if is ~= ARGV[4] then return {'CONFLICT', is} end\n"                              \
		"redis.call('HDEL', KEYS[2], ARGV[3])\n"                                           \
		"redis.call('HDEL', KEYS[3], ARGV[3])\n"                                           \
		"redis.call('ZREM', KEYS[4], ARGV[3])\n"                                           \
		"redis.call('HSET', KEYS[1], 'del_op', ARGV[5])\n"                                 \
		"redis.call('HINCRBY', KEYS[1], 'changes', 1)\n" MARK_RAISE("ARGV[7]")             \
		"return {'OK', '0', m}\n")                                                         \
	/* meta values versions keys; least, most, count: key version                              \
	 * value, key version value ... */                                                         \
	REDIS_SCRIPT(LIST,                                                                         \
		"local out = {'OK', redis.call('HGET', KEYS[1], 'changes') or '0'}\n"              \
		"local keys = redis.call('ZRANGEBYLEX', KEYS[4], ARGV[1], ARGV[2], 'LIMIT', "      \
		"0, ARGV[3])\n"                                                                    \
		"for _, k in ipairs(keys) do\n"                                                    \
		"  out[#out + 1] = k\n"                                                            \
		"  out[#out + 1] = string.match(redis.call('HGET', KEYS[3], k), '^%d+')\n"         \
		"  out[#out + 1] = redis.call('HGET', KEYS[2], k)\n"                               \
		"end\n"                                                                            \
		"return out\n")                                                                    \
	/* owner head journal; fence nonce seq op chain-before chain bytes */                      \
	REDIS_SCRIPT(APPEND, NUMBER FENCE_CHECK                                                    \
		"local h = redis.call('HMGET', KEYS[2], 'last', 'append_op', 'chain', 'total')\n"  \
		"local last = h[1] or '0'\n"                                                       \
		"if last == ARGV[3] and h[2] == ARGV[4] then\n"                                    \
		AGAIN("KEYS[1]") "return {'OK'} end\n"                                             \
		"if tonumber(last) + 1 ~= tonumber(ARGV[3]) then return {'CONFLICT', last} end\n"  \
		"if (h[3] or '') ~= ARGV[5] then return {'CHAIN', h[3] or ''} end\n"               \
		"local total = number(tonumber(h[4] or '0') + #ARGV[7])\n"                         \
		"redis.call('XADD', KEYS[3], ARGV[3] .. '-1', 'f', ARGV[1], 'c', ARGV[6], 't', "   \
		"total, 'b', ARGV[7])\n"                                                           \
		"redis.call('HSET', KEYS[2], 'last', ARGV[3], 'append_op', ARGV[4], 'chain', "     \
		"ARGV[6], 'total', total)\n"                                                       \
		"return {'OK'}\n")                                                                 \
	/* owner head; chain: the newest record is still this one. Writes something, so that       \
	 * WAIT covers all before it */                                                            \
	REDIS_SCRIPT(CONFIRM,                                                                      \
		"if redis.call('HGET', KEYS[2], 'chain') ~= ARGV[1] then return {'CHAIN'} end\n"   \
		AGAIN("KEYS[1]")                                                                   \
		"return {'OK'}\n")                                                                 \
	/* head */                                                                                 \
	REDIS_SCRIPT(HEAD,                                                                         \
		"local h = redis.call('HMGET', KEYS[1], 'last', 'chain', 'total', 'base', "        \
		"'base_total')\n"                                                                  \
		"return {'OK', h[1] or '0', h[2] or '', h[3] or '0', h[4] or '0', h[5] or '0'}\n") \
	/* owner head garbage; fence nonce op */                                                   \
	REDIS_SCRIPT(BEGIN, NUMBER FENCE_CHECK                                                     \
		"local h = redis.call('HMGET', KEYS[2], 'begin_op', 'building', 'ids')\n"          \
		"if h[1] == ARGV[3] then\n" AGAIN("KEYS[1]") "return {'OK', h[3]} end\n"           \
		"if h[2] and h[2] ~= '0' then redis.call('SADD', KEYS[3], h[2]) end\n"             \
		"local id = number(tonumber(h[3] or '0') + 1)\n"                                   \
		"redis.call('HSET', KEYS[2], 'begin_op', ARGV[3], 'building', id, 'ids', id)\n"    \
		"return {'OK', id}\n")                                                             \
	/* owner head slices slice; fence nonce id number chunk chunks                             \
	 * checksum bytes chunk's bytes */                                                         \
	REDIS_SCRIPT(CHUNK, FENCE_CHECK                                                            \
		"if redis.call('HGET', KEYS[2], 'building') ~= ARGV[3] then return "               \
		"{'CONFLICT'} end\n"                                                               \
		"if ARGV[5] == '0' then redis.call('UNLINK', KEYS[4]) redis.call('HSET', "         \
		"KEYS[3], ARGV[4], '') end\n"                                                      \
		"redis.call('HSET', KEYS[4], ARGV[5], ARGV[9])\n"                                  \
		"if tonumber(ARGV[5]) + 1 == tonumber(ARGV[6]) then\n"                             \
		"  redis.call('HSET', KEYS[3], ARGV[4], ARGV[7] .. ' ' .. ARGV[8] .. ' ' .. "      \
		"ARGV[6]) end\n"                                                                   \
		"return {'OK'}\n")                                                                 \
	/* owner head slices journal garbage; fence nonce id slices upto op */                     \
	REDIS_SCRIPT(COMMIT, FENCE_CHECK                                                           \
		"local h = redis.call('HMGET', KEYS[2], 'commit_op', 'building', 'base', 'last', " \
		"'checkpoint',\n"                                                                  \
		"  'base_total', 'base_chain')\n"                                                  \
		"if h[1] == ARGV[6] then\n" AGAIN("KEYS[1]") "return {'OK'} end\n"                 \
		"if h[2] ~= ARGV[3] then return {'CONFLICT'} end\n"                                \
		"for i = 0, tonumber(ARGV[4]) - 1 do\n"                                            \
		"  if (redis.call('HGET', KEYS[3], i) or '') == '' then return {'MISSING', "       \
		"tostring(i)} end end\n"                                                           \
		"local base, last, upto = tonumber(h[3] or '0'), tonumber(h[4] or '0'), "          \
		"tonumber(ARGV[5])\n"                                                              \
		"if upto < base or upto > last then return {'RANGE', h[3] or '0', h[4] "           \
		"or '0'} end\n"                                                                    \
		"local total, chain = h[6] or '0', h[7] or ''\n"                                   \
		"if upto > base then\n"                                                            \
		"  local e = redis.call('XRANGE', KEYS[4], ARGV[5] .. '-1', ARGV[5] .. '-1')[1]\n" \
		"  if not e then return {'LOST'} end\n"                                            \
		"  for i = 1, #e[2], 2 do\n"                                                       \
		"    if e[2][i] == 't' then total = e[2][i + 1] elseif e[2][i] == 'c' then chain " \
		"= e[2][i + 1] end end end\n"                                                      \
		"redis.call('HSET', KEYS[2], 'commit_op', ARGV[6], 'building', '0', "              \
		"'checkpoint', ARGV[3], 'slices', ARGV[4],\n"                                      \
		"  'base', ARGV[5], 'base_total', total, 'base_chain', chain)\n"                   \
		"if h[5] then redis.call('SADD', KEYS[5], h[5]) end\n"                             \
		"return {'OK'}\n")                                                                 \
	/* owner head slices journal garbage; fence nonce id slices upto op chain: the             \
	 * checkpoint is all there is */                                                           \
	REDIS_SCRIPT(RESTORE, FENCE_CHECK                                                          \
		"local h = redis.call('HMGET', KEYS[2], 'commit_op', 'building', 'last', 'total', "\
		"'checkpoint')\n"                                                                  \
		"if h[1] == ARGV[6] then\n" AGAIN("KEYS[1]") "return {'OK'} end\n"                 \
		"if h[2] ~= ARGV[3] then return {'CONFLICT'} end\n"                                \
		"for i = 0, tonumber(ARGV[4]) - 1 do\n"                                            \
		"  if (redis.call('HGET', KEYS[3], i) or '') == '' then return {'MISSING', "       \
		"tostring(i)} end end\n"                                                           \
		"if tonumber(ARGV[5]) < tonumber(h[3] or '0') then return {'RANGE', '0', h[3]} "   \
		"end\n"                                                                            \
		"redis.call('UNLINK', KEYS[4])\n"                                                  \
		"local total = h[4] or '0'\n"                                                      \
		"redis.call('HSET', KEYS[2], 'commit_op', ARGV[6], 'building', '0', "              \
		"'checkpoint', ARGV[3], 'slices', ARGV[4],\n"                                      \
		"  'base', ARGV[5], 'base_total', total, 'base_chain', ARGV[7], 'last', ARGV[5], " \
		"'total', total, 'chain', ARGV[7])\n"                                              \
		"if h[5] then redis.call('SADD', KEYS[5], h[5]) end\n"                             \
		"return {'OK'}\n")                                                                 \
	/* head garbage; id */                                                                     \
	REDIS_SCRIPT(ABORT,                                                                        \
		"if redis.call('HGET', KEYS[1], 'building') == ARGV[1] then\n"                     \
		"  redis.call('HSET', KEYS[1], 'building', '0') redis.call('SADD', KEYS[2], "      \
		"ARGV[1]) end\n"                                                                   \
		"return {'OK'}\n")                                                                 \
	/* head loads; nonce: nothing that it reads is removed for a minute. The                   \
	 * clock is the primary's own. */                                                          \
	REDIS_SCRIPT(LOAD,                                                                         \
		"local now = tonumber(redis.call('TIME')[1])\n"                                    \
		"redis.call('ZADD', KEYS[2], now + 60, ARGV[1])\n"                                 \
		"local h = redis.call('HMGET', KEYS[1], 'checkpoint', 'slices', 'base', "          \
		"'base_chain', 'last', 'chain')\n"                                                 \
		"return {'OK', h[1] or '0', h[2] or '0', h[3] or '0', h[4] or '', h[5] or '0', "   \
		"h[6] or ''}\n")                                                                   \
	/* loads; nonce */                                                                         \
	REDIS_SCRIPT(LOADED, "redis.call('ZREM', KEYS[1], ARGV[1])\nreturn {'OK'}\n")              \
	/* slices; number */                                                                       \
	REDIS_SCRIPT(SLICE, "return {'OK', redis.call('HGET', KEYS[1], ARGV[1]) or ''}\n")         \
	/* slice; first chunk, after the last */                                                   \
	REDIS_SCRIPT(CHUNKS,                                                                       \
		"local out = {'OK'}\n"                                                             \
		"for i = tonumber(ARGV[1]), tonumber(ARGV[2]) - 1 do\n"                            \
		"  out[#out + 1] = redis.call('HGET', KEYS[1], i) or false end\n"                  \
		"return out\n")                                                                    \
	/* journal; first, last, most: seq fence chain bytes, seq fence chain bytes ... */         \
	REDIS_SCRIPT(RECORDS,                                                                      \
		"local out, size = {'OK'}, 0\n"                                                    \
		"local at = ARGV[1]\n"                                                             \
		"for n = 1, tonumber(ARGV[3]) do\n"                                                \
		"  local e = redis.call('XRANGE', KEYS[1], at, ARGV[2] .. '-1', 'COUNT', 1)[1]\n"  \
		"  if not e then break end\n"                                                      \
		"  local f = {}\n"                                                                 \
		"  for i = 1, #e[2], 2 do f[e[2][i]] = e[2][i + 1] end\n"                          \
		"  out[#out + 1] = string.match(e[1], '^%d+')\n"                                   \
		"  out[#out + 1] = f['f'] or ''\n"                                                 \
		"  out[#out + 1] = f['c'] or ''\n"                                                 \
		"  out[#out + 1] = f['b'] or ''\n"                                                 \
		"  at = '(' .. e[1]\n"                                                             \
		"  size = size + #(f['b'] or '')\n"                                                \
		"  if size >= 1048576 then break end\n"                                            \
		"end\n"                                                                            \
		"return out\n")                                                                    \
	/* head garbage loads journal; most rows: a portion of what nobody needs: an id whose      \
	 * slices may go, 0 = none; more? */                                                       \
	REDIS_SCRIPT(SWEEP,                                                                        \
		"local now = tonumber(redis.call('TIME')[1])\n"                                    \
		"redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', now)\n"                           \
		"if redis.call('ZCARD', KEYS[3]) > 0 then return {'OK', '0', '0'} end\n"           \
		"local base = tonumber(redis.call('HGET', KEYS[1], 'base') or '0')\n"              \
		"local gone = redis.call('XTRIM', KEYS[4], 'MINID', '~', string.format('%.0f', "   \
		"base + 1), 'LIMIT', ARGV[1])\n"                                                   \
		"return {'OK', redis.call('SRANDMEMBER', KEYS[2]) or '0', gone > 0 and "           \
		"'1' or '0'}\n")                                                                   \
	/* slices loads garbage; id: numbers of some of its slices */                              \
	REDIS_SCRIPT(DOOMED,                                                                       \
		"if redis.call('ZCARD', KEYS[2]) > 0 then return {'BUSY'} end\n"                   \
		"local out = {'OK'}\n"                                                             \
		"for _, n in ipairs(redis.call('HRANDFIELD', KEYS[1], 64)) do out[#out "           \
		"+ 1] = n end\n"                                                                   \
		"if #out == 1 then redis.call('UNLINK', KEYS[1]) redis.call('SREM', KEYS[3], "     \
		"ARGV[1]) end\n"                                                                   \
		"return out\n")                                                                    \
	/* slices slice; number */                                                                 \
	REDIS_SCRIPT(DROP,                                                                         \
		"redis.call('UNLINK', KEYS[2])\nredis.call('HDEL', KEYS[1], ARGV[1])\n"            \
		"return {'OK'}\n")

#endif
