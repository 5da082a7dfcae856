/*
 * redis_script.c - runs a script on the primary, and again on another one if need be.
 *
 * A script may be sent more than once per call: repeated, it gives the first answer again
 * (redis_store.h). So broken connections, a primary that became a replica and an election cost only
 * time. When the time is over, a script sent without an answer has an unknown outcome.
 *
 * On the caller's thread, which holds the link.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <skv/clock.h>
#include <skv/mem.h>

#include "redis_store.h"

static const char *const texts[] = {
#define REDIS_SCRIPT(name, text) text,
	REDIS_SCRIPTS
#undef REDIS_SCRIPT
};
#define N_SCRIPTS (sizeof texts / sizeof texts[0])

#define ANSWER_MS 500u
#define LOAD_MS 2000u      /* of a load: a record may be SKV_STORE_BATCH_MAX */
#define BYTES_PER_MS 5000u /* anything slower counts as dead */
#define PAUSE_MS 10
#define RECORD_MS 500u /* of a silent replica: a write waits for it, and other shards are tried */

/* ---- arguments ------------------------------------------------------------------------------- */

static void add(struct redis_args *a, const void *v, size_t n)
{
	assert(a->n < sizeof a->v / sizeof a->v[0]);
	a->v[a->n] = v;
	a->len[a->n++] = n;
}

void redis_arg_key(struct redis_args *a, const struct redis_store *s, uint32_t tag,
		   const char *name)
{
	assert(a->keys == a->n && a->keys < 6); /* keys first */
	redis_key(s, tag, a->key[a->keys], "%s", name);
	add(a, a->key[a->keys], strlen(a->key[a->keys]));
	a->keys++;
}

void redis_arg_text(struct redis_args *a, const char *text) { add(a, text, strlen(text)); }

void redis_arg_bytes(struct redis_args *a, const void *bytes, size_t n)
{
	add(a, n ? bytes : "", n);
}

void redis_arg_u64(struct redis_args *a, uint64_t v)
{
	char *text = a->text[a->n];

	assert(a->n < sizeof a->text / sizeof a->text[0]);
	snprintf(text, sizeof a->text[0], "%" PRIu64, v);
	add(a, text, strlen(text));
}

/* ---- answers --------------------------------------------------------------------------------- */

const char *redis_text(const redisReply *r, size_t i)
{
	return i < r->elements && r->element[i]->type == REDIS_REPLY_STRING ? r->element[i]->str
									    : "";
}

uint64_t redis_u64(const redisReply *r, size_t i) { return strtoull(redis_text(r, i), NULL, 10); }

bool redis_says(const redisReply *r, const char *word)
{
	return strcmp(redis_text(r, 0), word) == 0;
}

int redis_odd(const redisReply *r, struct skv_error *err)
{
	return skv_fail(err, SKV_E_CORRUPT, "store",
			"the store holds data that slabkv did not write ('%.60s')",
			redis_text(r, 0));
}

/* ---- one try --------------------------------------------------------------------------------- */

/* EVALSHA, or EVAL where the script is not known yet. NULL: the connection is broken. */
static redisReply *ask(struct redis_link *l, enum redis_script script, const struct redis_args *a,
		       bool whole)
{
	const bool loads = l->use == REDIS_LOAD;
	const char *v[3 + 24];
	size_t len[3 + 24], bytes = 0;
	char keys[8];

	assert(script < N_SCRIPTS && a->keys <= a->n && a->n <= 24);
	v[0] = whole ? "EVAL" : "EVALSHA";
	v[1] = whole ? texts[script] : l->store->sha[script];
	snprintf(keys, sizeof keys, "%u", a->keys);
	v[2] = keys;
	for (int i = 0; i < 3; i++)
		len[i] = strlen(v[i]);
	for (uint32_t i = 0; i < a->n; i++) {
		v[3 + i] = a->v[i];
		len[3 + i] = a->len[i];
		bytes += a->len[i];
	}
	redis_conn_limit(l->c, (uint32_t)(loads ? LOAD_MS : ANSWER_MS + bytes / BYTES_PER_MS));
	return redis_command_argv(l->c, (int)(3 + a->n), v, len);
}

static bool begins(const char *text, const char *word)
{
	return strncmp(text, word, strlen(word)) == 0;
}

/* The script's SHA, once per store handle: any node gives it. Links of several partitions may be at
 * it at once: the first one's stays, all are the same. */
static int learn_sha(struct redis_link *l, enum redis_script script, struct skv_error *err)
{
	redisReply *r = redis_command(l->c, "SCRIPT LOAD %s", texts[script]);
	int rc = SKV_E_STORE_IO;

	assert(skv_mutex_held(&l->lock));
	if (r && r->type == REDIS_REPLY_STRING && r->len == 40) {
		skv_mutex_lock(&l->store->lock);
		if (!atomic_load(&l->store->has_sha[script]))
			memcpy(l->store->sha[script], r->str, 41);
		assert(memcmp(l->store->sha[script], r->str, 41) == 0);
		atomic_store(&l->store->has_sha[script], true);
		skv_mutex_unlock(&l->store->lock);
		rc = SKV_OK;
	} else {
		skv_fail(err, rc, "store", "SCRIPT LOAD: %.160s",
			 r && r->type == REDIS_REPLY_ERROR ? r->str : redis_conn_error(l->c));
	}
	freeReplyObject(r);
	return rc;
}

/* MOVED SLOT HOST:PORT. A node that does not know its own name omits the host: then it is the node
 * that was asked. */
static void note_moved(struct redis_link *l, const char *text)
{
	const char *at = strrchr(text, ' ');

	l->moved.port = 0;
	if (!at || !redis_node_parse(at + 1, strlen(at + 1), &l->moved)) {
		if (at && at[1] == ':') {
			l->moved = l->at;
			l->moved.port = (uint16_t)atoi(at + 2);
		}
	}
	l->store->cluster = true;
}

enum verdict { DONE, AGAIN, AGAIN_WHOLE, OVER };

/* Classifies an error: retry here, retry elsewhere, or fail. */
static enum verdict judge(struct redis_link *l, const char *text, struct skv_error *err)
{
	static const char *const passing[] = { "LOADING",    "READONLY", "CLUSTERDOWN",
					       "MASTERDOWN", "TRYAGAIN", "ASK",
					       "NOREPLICAS", "BUSY ",    "UNBLOCKED" };

	assert(skv_mutex_held(&l->lock));
	if (begins(text, "NOSCRIPT"))
		return AGAIN_WHOLE;
	if (begins(text, "MOVED")) {
		note_moved(l, text);
		redis_link_drop(l);
		skv_fail(err, SKV_E_STORE_IO, "store", "%.200s", text);
		return AGAIN;
	}
	for (size_t i = 0; i < sizeof passing / sizeof passing[0]; i++) {
		if (!begins(text, passing[i]))
			continue;
		redis_link_drop(l);
		skv_fail(err, SKV_E_STORE_IO, "store", "%.120s:%u%s: %.100s", l->at.host,
			 l->at.port,
			 begins(text, "CLUSTERDOWN")
				 ? ": a part of the cluster has no primary (see CLUSTER INFO)"
				 : "",
			 text);
		return AGAIN;
	}
	if (begins(text, "OOM") || strstr(text, "OOM command not allowed"))
		skv_fail(err, SKV_E_STORE_FULL, "store",
			 "%.120s:%u is out of memory: raise maxmemory", l->at.host, l->at.port);
	else if (begins(text, "NOAUTH") || begins(text, "NOPERM") || begins(text, "WRONGPASS"))
		redis_refused(l, text, err);
	else if (strstr(text, "WRONGTYPE"))
		skv_fail(err, SKV_E_CORRUPT, "store",
			 "prefix '%s' is used by something else: name another one in the URL",
			 l->store->url.prefix);
	else if (begins(text, "MISCONF"))
		skv_fail(err, SKV_E_STORE_IO, "store", "%.120s:%u cannot save: %.120s", l->at.host,
			 l->at.port, text);
	else
		skv_fail(err, SKV_E_STORE_IO, "store", "%.120s:%u: %.160s", l->at.host, l->at.port,
			 text);
	return OVER;
}

static enum verdict try_once(struct redis_link *l, enum redis_script script,
			     const struct redis_args *a, bool whole, bool *sent, redisReply **out,
			     struct skv_error *err)
{
	enum verdict v;
	redisReply *r;

	if (!atomic_load(&l->store->has_sha[script]) && learn_sha(l, script, err) != SKV_OK) {
		redis_link_drop(l);
		return AGAIN;
	}
	*sent = true;
	r = ask(l, script, a, whole);
	if (!r) {
		skv_fail(err, SKV_E_STORE_IO, "store", "%.120s:%u: %.100s", l->at.host, l->at.port,
			 redis_conn_error(l->c));
		redis_link_mute(l);
		redis_link_drop(l);
		return AGAIN;
	}
	if (r->type == REDIS_REPLY_ARRAY && r->elements > 0) {
		*out = r;
		l->home = l->at;
		return DONE;
	}
	*sent = false; /* it said that it did not run it */
	v = r->type == REDIS_REPLY_ERROR ? judge(l, r->str, err) : OVER;
	if (r->type != REDIS_REPLY_ERROR)
		redis_odd(r, err);
	freeReplyObject(r);
	return v;
}

/* With silent_ms: it ran on a primary that may lack what others acknowledged. Others are tried. */
static bool is_doubtful(struct redis_link *l, struct skv_error *err)
{
	int rc = redis_silent_vet(l, err);

	if (rc == SKV_OK)
		return false;
	if (rc == SKV_E_UNSUPPORTED)
		redis_link_mute(l);
	redis_link_drop(l);
	return true;
}

static uint32_t limit_of(const struct redis_link *l)
{
	return l->tag >= REDIS_SILENT_TAG && l->tag != REDIS_REGISTRY ? RECORD_MS
								      : l->store->url.timeout_ms;
}

int redis_run(struct redis_link *l, enum redis_script script, const struct redis_args *a,
	      unsigned flags, redisReply **out, struct skv_error *err)
{
	const uint64_t deadline = skv_now_us() + limit_of(l) * UINT64_C(1000);
	char doubt[SKV_MESSAGE_MAX] = "";
	bool whole = false, sent = false, ever = false;
	enum verdict v;
	int rc;

	assert(skv_mutex_held(&l->lock));
	*out = NULL;
	do {
		rc = redis_link_connect(l, deadline, err);
		if (rc == SKV_E_STORE_IO && ever)
			return skv_fail(err, SKV_E_UNKNOWN_OUTCOME, "store",
					"no primary answers any more");
		if (rc != SKV_OK && doubt[0])
			return skv_fail(err, rc, "store", "%s", doubt);
		if (rc != SKV_OK)
			return rc;
		v = try_once(l, script, a, whole, &sent, out, err);
		whole = v == AGAIN_WHOLE;
		if (v == DONE && is_doubtful(l, err)) {
			freeReplyObject(*out);
			*out = NULL;
			sent = false; /* what that one has does not count */
			v = AGAIN;
			memcpy(doubt, err->message, sizeof doubt);
		}
		ever |= sent;
		if (v == DONE && (flags & REDIS_ACKNOWLEDGED) && redis_says(*out, "OK") &&
		    redis_acknowledge(l, deadline, err) != SKV_OK) {
			freeReplyObject(*out);
			*out = NULL;
			v = AGAIN;
		}
		if (v == AGAIN && !l->c)
			redis_failover(l); /* it may be stopped, and still take connections */
		if (v == AGAIN && !l->moved.port)
			nanosleep(&(struct timespec){ .tv_nsec = PAUSE_MS * 1000000l }, NULL);
	} while ((v == AGAIN || v == AGAIN_WHOLE) && skv_now_us() < deadline);
	assert((v == DONE) == (*out != NULL));
	if (v == DONE)
		return SKV_OK;
	if (v != OVER || ever) /* the newest problem is reported */
		return skv_fail(err, ever ? SKV_E_UNKNOWN_OUTCOME : SKV_E_STORE_IO, "store",
				"within %u ms: %.200s", limit_of(l),
				doubt[0] ? doubt : strdupa(err->message));
	return err->status;
}
