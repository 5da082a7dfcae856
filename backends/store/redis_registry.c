/*
 * redis_registry.c - registry documents of the store on Redis: compare-and-set by version, fenced
 * in the same script. What an owner writes is acknowledged when its mark is noted beside the
 * partition's journal, too (redis_marks.c).
 *
 * Any thread.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <skv/mem.h>

#include "redis_store.h"

#define LIST_KEYS 256u /* of one answer */
#define LIST_TRIES 100 /* restarts of a listing because of concurrent writes */

static void arg_registry(struct redis_args *a, const struct redis_store *s)
{
	static const char *const names[] = { "meta", "values", "versions", "keys" };

	for (int i = 0; i < 4; i++)
		redis_arg_key(a, s, REDIS_REGISTRY, names[i]);
}

static int no_entry(struct skv_error *err)
{
	return skv_fail(err, SKV_E_NOT_FOUND, NULL, "there is no such entry");
}

/* Runs a script on the registry; a read has no unknown outcome. */
static int run(struct redis_store *s, enum redis_script script, const struct redis_args *a,
	       unsigned flags, redisReply **r, struct skv_error *err)
{
	struct redis_link *l = redis_link_take(s, REDIS_REGISTRY, REDIS_OWNER);
	int rc;

	*r = NULL;
	if (!l)
		return redis_no_memory(err);
	rc = redis_run(l, script, a, flags, r, err);
	redis_link_give(l);
	return rc == SKV_E_UNKNOWN_OUTCOME && !flags
		       ? skv_fail(err, SKV_E_STORE_IO, "store", "no primary answers")
		       : rc;
}

int redis_get(void *self, const char *key, struct skv_buf *value, uint64_t *version,
	      struct skv_error *err)
{
	struct redis_store *s = self;
	struct redis_args a = { .n = 0 };
	redisReply *r;
	int rc;

	arg_registry(&a, s);
	redis_arg_text(&a, key);
	rc = run(s, RUN_GET, &a, 0, &r, err);
	if (rc != SKV_OK)
		return rc;
	if (redis_says(r, "NOT_FOUND")) {
		rc = no_entry(err);
	} else if (!redis_says(r, "OK") || r->elements < 3 ||
		   r->element[2]->type != REDIS_REPLY_STRING) {
		rc = redis_odd(r, err);
	} else {
		skv_put_bytes(value, r->element[2]->str, r->element[2]->len);
		*version = redis_u64(r, 1);
		rc = value->failed ? redis_no_memory(err) : SKV_OK;
	}
	freeReplyObject(r);
	return rc;
}

/* Adds the writer's fence. */
static int arg_fence(struct redis_args *a, struct redis_store *s, const struct skv_fence *fence,
		     char text[64], struct skv_error *err)
{
	char nonce[REDIS_OP + 1];
	int rc;

	if (!fence) {
		redis_arg_text(a, "");
		redis_arg_text(a, "");
		return SKV_OK;
	}
	rc = redis_nonce(s, fence->partition, fence->number, nonce, err);
	if (rc != SKV_OK)
		return rc;
	snprintf(text, 64, "%llu %s", (unsigned long long)fence->number, nonce);
	redis_arg_u64(a, fence->partition);
	redis_arg_text(a, text);
	return SKV_OK;
}

/* Adds the mark that the writer knows. Last but for the document. */
static void arg_mark(struct redis_args *a, struct redis_store *s, const struct skv_fence *fence,
		     char least[SKV_STORE_MARK])
{
	char ignored[SKV_STORE_MARK];

	least[0] = '\0';
	if (fence && !fence->restores)
		redis_marks_known(s, fence->partition, fence->number, least, ignored);
	redis_arg_text(a, least);
	redis_arg_text(a, fence && fence->restores ? "1" : "0");
}

/* Element 2: the mark that the write has. */
static int note(struct redis_store *s, const struct skv_fence *fence, const redisReply *r,
		struct skv_error *err)
{
	int rc;

	if (!fence || fence->restores)
		return SKV_OK;
	redis_mark_learn(s, fence, redis_text(r, 2), false);
	rc = redis_note(s, fence, redis_text(r, 2), err);
	if (rc == SKV_OK)
		redis_mark_learn(s, fence, redis_text(r, 2), true);
	return rc == SKV_OK || rc == SKV_E_FENCED
		       ? rc
		       : skv_fail(err, SKV_E_UNKNOWN_OUTCOME, "store",
				  "the registry has it, but that is not noted at the partition");
}

static int told(const redisReply *r, const struct skv_fence *fence, struct skv_error *err)
{
	if (redis_says(r, "OK"))
		return SKV_OK;
	if (redis_says(r, "FENCED"))
		return redis_fenced(fence ? fence->partition : 0, err);
	if (redis_says(r, "BACK"))
		return skv_fail(err, SKV_E_FENCED, "store", "the registry went back in time");
	if (redis_says(r, "NOT_FOUND"))
		return no_entry(err);
	if (!redis_says(r, "CONFLICT"))
		return redis_odd(r, err);
	return redis_u64(r, 1) ? skv_fail(err, SKV_E_CONFLICT, NULL, "the entry has version %s",
					  redis_text(r, 1))
			       : skv_fail(err, SKV_E_CONFLICT, NULL, "there is no such entry");
}

int redis_put(void *self, const struct skv_fence *fence, const char *key, uint64_t expect,
	      const void *bytes, size_t n, uint64_t *version, struct skv_error *err)
{
	struct redis_store *s = self;
	struct redis_args a = { .n = 0 };
	char op[REDIS_OP + 1], text[64], least[SKV_STORE_MARK];
	redisReply *r;
	int rc;

	arg_registry(&a, s);
	rc = arg_fence(&a, s, fence, text, err);
	if (rc != SKV_OK)
		return rc;
	redis_new_op(op);
	redis_arg_text(&a, key);
	redis_arg_u64(&a, expect);
	redis_arg_text(&a, op);
	arg_mark(&a, s, fence, least);
	redis_arg_bytes(&a, bytes, n);
	rc = run(s, RUN_PUT, &a, REDIS_ACKNOWLEDGED, &r, err);
	if (rc == SKV_OK)
		rc = told(r, fence, err);
	if (rc == SKV_OK)
		rc = note(s, fence, r, err);
	if (rc == SKV_OK)
		*version = redis_u64(r, 1);
	freeReplyObject(r);
	return rc;
}

int redis_del(void *self, const struct skv_fence *fence, const char *key, uint64_t expect,
	      struct skv_error *err)
{
	struct redis_store *s = self;
	struct redis_args a = { .n = 0 };
	char op[REDIS_OP + 1], text[64], least[SKV_STORE_MARK];
	redisReply *r;
	int rc;

	arg_registry(&a, s);
	rc = arg_fence(&a, s, fence, text, err);
	if (rc != SKV_OK)
		return rc;
	redis_new_op(op);
	redis_arg_text(&a, key);
	redis_arg_u64(&a, expect);
	redis_arg_text(&a, op);
	arg_mark(&a, s, fence, least);
	rc = run(s, RUN_DEL, &a, REDIS_ACKNOWLEDGED, &r, err);
	if (rc == SKV_OK)
		rc = told(r, fence, err);
	if (rc == SKV_OK)
		rc = note(s, fence, r, err);
	freeReplyObject(r);
	return rc;
}

/* ---- listing --------------------------------------------------------------------------------- */

/* Adds the entries of one answer; *last is the key of the last one. */
static bool add_entries(const redisReply *r, struct skv_buf *b, char last[SKV_STORE_KEY_MAX + 2])
{
	for (size_t i = 2; i + 2 < r->elements; i += 3) {
		const redisReply *value = r->element[i + 2];

		if (r->element[i]->type != REDIS_REPLY_STRING ||
		    r->element[i]->len > SKV_STORE_KEY_MAX || value->type != REDIS_REPLY_STRING)
			return false;
		listing_add(b, r->element[i]->str, value->str, value->len, redis_u64(r, i + 1));
		snprintf(last, SKV_STORE_KEY_MAX + 2, "(%s", r->element[i]->str);
	}
	return true;
}

/* A consistent listing: SKV_E_CONFLICT if it changed between two answers. */
static int collect(struct redis_store *s, const char *prefix, struct skv_buf *b,
		   struct skv_error *err)
{
	char least[SKV_STORE_KEY_MAX + 2], most[SKV_STORE_KEY_MAX + 3];
	uint64_t changes = UINT64_MAX;
	size_t got;
	int rc = SKV_OK;

	snprintf(least, sizeof least, *prefix ? "[%s" : "-", prefix);
	snprintf(most, sizeof most, *prefix ? "[%s\xff" : "+", prefix);
	do {
		struct redis_args a = { .n = 0 };
		redisReply *r;

		arg_registry(&a, s);
		redis_arg_text(&a, least);
		redis_arg_text(&a, most);
		redis_arg_u64(&a, LIST_KEYS);
		rc = run(s, RUN_LIST, &a, 0, &r, err);
		if (rc != SKV_OK)
			return rc;
		got = r->elements - 2;
		if (!redis_says(r, "OK") || r->elements < 2 || got % 3 != 0)
			rc = redis_odd(r, err);
		else if (changes != UINT64_MAX && changes != redis_u64(r, 1))
			rc = SKV_E_CONFLICT;
		else if (!add_entries(r, b, least))
			rc = redis_odd(r, err);
		else
			changes = redis_u64(r, 1);
		freeReplyObject(r);
	} while (rc == SKV_OK && got == LIST_KEYS * 3);
	return rc;
}

int redis_list(void *self, const char *prefix, skv_registry_fn fn, void *ctx, struct skv_error *err)
{
	struct skv_buf b;
	int rc = SKV_E_CONFLICT;

	skv_buf_init(&b);
	for (int i = 0; rc == SKV_E_CONFLICT && i < LIST_TRIES; i++) {
		skv_buf_clear(&b);
		rc = collect(self, prefix, &b, err);
	}
	if (rc == SKV_OK)
		return listing_deliver(&b, fn, ctx, err);
	skv_buf_destroy(&b);
	return rc == SKV_E_CONFLICT
		       ? skv_fail(err, SKV_E_STORE_IO, "store",
				  "the registry kept changing while it was read: try again")
		       : rc;
}
