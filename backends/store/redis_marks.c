/*
 * redis_marks.c - is the registry what a partition's owners wrote?
 *
 * It lies in one shard of a cluster, each partition's journal in some other, and one may go back in
 * time without the other. So each write of an owner gives the registry a mark of that partition, in
 * the same script, and is acknowledged when that mark is noted beside the journal. Who writes says
 * which mark it knows, and changes nothing where the registry has an older one.
 *
 * Any thread.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "redis_store.h"

/* The first element behind the answer's word, as text. */
static int read_text(struct redis_store *s, uint32_t tag, enum redis_script script,
		     const struct redis_args *a, char out[SKV_STORE_MARK], struct skv_error *err)
{
	struct redis_link *l = redis_link_take(s, tag, REDIS_OWNER);
	redisReply *r = NULL;
	int rc;

	if (!l)
		return redis_no_memory(err);
	rc = redis_run(l, script, a, 0, &r, err);
	redis_link_give(l);
	if (rc == SKV_E_UNKNOWN_OUTCOME)
		rc = skv_fail(err, SKV_E_STORE_IO, "store", "no primary answers");
	if (rc == SKV_OK)
		snprintf(out, SKV_STORE_MARK, "%s", redis_text(r, 1));
	freeReplyObject(r);
	return rc;
}

int redis_marks(void *self, uint32_t partition, struct skv_registry_marks *out,
		struct skv_error *err)
{
	struct redis_store *s = self;
	struct redis_args noted = { .n = 0 }, mark = { .n = 0 };
	char ignored[SKV_STORE_MARK];
	int rc;

	redis_marks_known(s, partition, 0, ignored, out->mine);
	redis_arg_key(&noted, s, partition, "owner");
	rc = read_text(s, partition, RUN_NOTED, &noted, out->least, err);
	redis_arg_key(&mark, s, REDIS_REGISTRY, "meta");
	redis_arg_u64(&mark, partition);
	if (rc == SKV_OK)
		rc = read_text(s, REDIS_REGISTRY, RUN_MARK, &mark, out->is, err);
	return rc;
}

/* A script of the owner's, acknowledged. */
static int write(struct redis_store *s, uint32_t tag, enum redis_script script,
		 const struct redis_args *a, uint32_t partition, char out[SKV_STORE_MARK],
		 struct skv_error *err)
{
	struct redis_link *l = redis_link_take(s, tag, REDIS_OWNER);
	redisReply *r = NULL;
	int rc;

	if (!l)
		return redis_no_memory(err);
	rc = redis_run(l, script, a, REDIS_ACKNOWLEDGED, &r, err);
	redis_link_give(l);
	if (rc == SKV_OK && !redis_says(r, "OK"))
		rc = redis_says(r, "FENCED") ? redis_fenced(partition, err) : redis_odd(r, err);
	if (rc == SKV_OK)
		snprintf(out, SKV_STORE_MARK, "%s", redis_text(r, 1));
	freeReplyObject(r);
	return rc;
}

int redis_note(struct redis_store *s, const struct skv_fence *fence, const char *mark,
	       struct skv_error *err)
{
	struct redis_args a = { .n = 0 };
	char nonce[REDIS_OP + 1], ignored[SKV_STORE_MARK];
	int rc = redis_nonce(s, fence->partition, fence->number, nonce, err);

	assert(mark[0] && strlen(mark) < SKV_STORE_MARK);
	if (rc != SKV_OK)
		return rc;
	redis_arg_key(&a, s, fence->partition, "owner");
	redis_arg_u64(&a, fence->number);
	redis_arg_text(&a, nonce);
	redis_arg_text(&a, mark);
	return write(s, fence->partition, RUN_NOTE, &a, fence->partition, ignored, err);
}

int redis_restored(void *self, uint32_t partition, uint64_t fence, const char *past,
		   struct skv_error *err)
{
	const struct skv_fence by = { partition, fence, true };
	struct redis_store *s = self;
	struct redis_args a = { .n = 0 };
	char nonce[REDIS_OP + 1], op[REDIS_OP + 1], text[64], mark[SKV_STORE_MARK];
	int rc = redis_nonce(s, partition, fence, nonce, err);

	if (rc != SKV_OK)
		return rc;
	snprintf(text, sizeof text, "%llu %s", (unsigned long long)fence, nonce);
	redis_new_op(op);
	redis_arg_key(&a, s, REDIS_REGISTRY, "meta");
	redis_arg_u64(&a, partition);
	redis_arg_text(&a, text);
	redis_arg_text(&a, past);
	redis_arg_text(&a, op);
	rc = write(s, REDIS_REGISTRY, RUN_RESTORED, &a, partition, mark, err);
	if (rc == SKV_OK)
		rc = redis_note(s, &by, mark, err);
	if (rc == SKV_OK)
		redis_mark_learn(s, &by, mark, true);
	return rc;
}
