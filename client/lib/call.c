/*
 * call.c - sends one operation to the managers until one answers it.
 *
 * The URL that answered last is tried first. A manager that cannot be reached, is not ready or does
 * not own the partition costs one try; then the next. After a round over all of them the call waits
 * (50 ms doubling to 1 s, with jitter so that many clients do not come back at once). Bounded by
 * the handle's rounds and timeout. A manager that has not answered after hedge_ms is not waited for
 * alone: the next one gets the same request, and the first good answer counts. Everything sent here
 * may be repeated harmlessly: the manager's operations are idempotent, start by its request id.
 *
 * State: kv->current and kv->codec only. Any thread. Sleeps between rounds, holds no lock.
 */
#include "client.h"

#include <string.h>
#include <time.h>

#include <skv/hash.h>
#include <skv/mem.h>

#define FIRST_WAIT_MS 50u
#define LAST_WAIT_MS 1000u

/* Can another manager, or the same one a little later, give a better answer? */
static bool worth_retry(int status)
{
	switch (status) {
	case SKV_E_NETWORK:
	case SKV_E_TIMEOUT:
	case SKV_E_NOT_READY:
	case SKV_E_NOT_OWNER:
	case SKV_E_FENCED:
	case SKV_E_UNKNOWN_OUTCOME:
		return true;
	default:
		return false;
	}
}

/* What the answer is written in. No protobuf message begins with '{': that would be a group. */
static const struct skv_v1_codec *codec_of(const struct skv_call *c, const struct skv_buf *body)
{
	return !c->codec || (body->len && body->data[0] == '{') ? &skv_v1_json : c->codec;
}

/* Would the manager understand JSON? 415 says so; one that knows only JSON says 400, in JSON. */
static bool is_refused(const struct skv_call *c, const struct skv_answer *a, long http_status)
{
	return c->body && c->codec && c->codec != &skv_v1_json &&
	       (http_status == 415 || (http_status == 400 && a->codec == &skv_v1_json));
}

/* The error in the response body, if the HTTP status says that it is one. */
static int read_status(long http_status, const struct skv_answer *a, struct skv_error *err)
{
	struct skv_error told;
	struct skv_arena arena;
	struct skv_v1_in in = { .arena = &arena };
	int rc;

	if (http_status >= 200 && http_status < 300)
		return SKV_OK;
	skv_error_clear(&told);
	skv_arena_init(&arena);
	rc = a->codec->read_error(&in, (const char *)a->body.data, a->body.len, &told);
	skv_arena_destroy(&arena);
	if (rc != SKV_OK && told.status == rc) {
		if (err)
			*err = told;
		return rc;
	}
	if (http_status == 404)
		return skv_fail(err, SKV_E_UNSUPPORTED, NULL,
				"the server has no such path: is it a slabkv manager?");
	if (http_status == 503 || http_status == 502 || http_status == 504)
		return skv_fail(err, SKV_E_NOT_READY, NULL, "HTTP status %ld", http_status);
	return skv_fail(err, SKV_E_INTERNAL, NULL,
			"HTTP status %ld without a slabkv error in its body: check the URL",
			http_status);
}

static void put_url(struct skv_buf *url, const char *base, const char *path)
{
	skv_put_bytes(url, base, strlen(base));
	skv_put_bytes(url, path, strlen(path) + 1);
}

/* Sends it to manager *at; *at is then whose answer it is. */
static int try_one(struct slabkv *kv, const struct skv_call *c, uint32_t *at, uint64_t timeout_ms,
		   struct skv_answer *a, struct skv_error *err)
{
	const uint32_t next = (*at + 1) % kv->n_urls;
	const bool hedges = kv->hedge_ms > 0 && next != *at && kv->hedge_ms < timeout_ms;
	struct skv_http_request r = { .method = c->method,
				      .timeout_ms = timeout_ms,
				      .connect_ms = kv->connect_ms,
				      .hedge_ms = kv->hedge_ms,
				      .trace = skv_trace_of_thread(),
				      .form = c->codec == &skv_v1_pb ? SKV_HTTP_PROTOBUF
					      : SKV_HTTP_JSON };
	struct skv_buf url = { 0 }, other = { 0 };
	long http_status = 0;
	bool hedged = false;
	int rc;

	put_url(&url, kv->urls[*at], c->path);
	if (hedges)
		put_url(&other, kv->urls[next], c->path);
	if (url.failed || other.failed) {
		skv_buf_destroy(&url);
		skv_buf_destroy(&other);
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	}
	r.url = (const char *)url.data;
	r.hedge_url = (const char *)other.data;
	r.hedged = &hedged;
	SKV_CHECK(url.len > 1 && url.data[url.len - 1] == 0 && a->codec);
	if (c->body) {
		r.body = c->body->data;
		r.body_len = c->body->len;
	}
	skv_buf_clear(&a->body);
	a->sent_ms = skv_now_ms(kv->clock);
	rc = skv_http_do(kv->http, &r, &a->body, &http_status, err);
	*at = hedged ? next : *at;
	a->codec = codec_of(c, &a->body);
	a->refused = rc == SKV_OK && is_refused(c, a, http_status);
	if (rc == SKV_OK)
		rc = read_status(http_status, a, err);
	skv_buf_destroy(&url);
	skv_buf_destroy(&other);
	return rc;
}

static void sleep_ms(uint64_t ms)
{
	struct timespec t = { .tv_sec = (time_t)(ms / 1000),
			      .tv_nsec = (long)(ms % 1000) * 1000000 };

	nanosleep(&t, NULL);
}

/* Half of the wait is random. */
static uint64_t wait_of(uint32_t round)
{
	uint64_t wait = round < 5 ? (uint64_t)FIRST_WAIT_MS << round : LAST_WAIT_MS;
	uint32_t dice;

	skv_random(&dice, sizeof dice);
	return wait / 2 + dice % (wait / 2 + 1);
}

/* One try at each manager, the one that answered last first. */
static int round_of(struct slabkv *kv, const struct skv_call *c, uint64_t end_us,
		    struct skv_answer *a, struct skv_error *err)
{
	uint32_t first = atomic_load_explicit(&kv->current, memory_order_relaxed);
	int rc = SKV_E_TIMEOUT;

	SKV_CHECK(kv->n_urls > 0 && first < kv->n_urls);
	for (uint32_t i = 0; i < kv->n_urls; i++) {
		uint32_t at = (first + i) % kv->n_urls;
		uint64_t now = skv_now_us();
		uint64_t left_ms = now < end_us ? (end_us - now) / 1000 : 0;

		if (left_ms == 0)
			return rc;
		/* A manager that hangs must leave time for the others. */
		rc = try_one(kv, c, &at, left_ms / (kv->n_urls - i) + 1, a, err);
		if (!worth_retry(rc)) {
			atomic_store_explicit(&kv->current, at, memory_order_relaxed);
			return rc;
		}
	}
	return rc;
}

int skv_call_do(struct slabkv *kv, const struct skv_call *c, struct skv_answer *a,
		struct skv_error *err)
{
	uint32_t rounds = c->rounds ? c->rounds : kv->rounds;
	uint64_t begin_us = skv_now_us();
	uint64_t end_us = begin_us + (uint64_t)kv->timeout_ms * 1000;
	int rc;

	SKV_CHECK(c->op && c->method && c->path[0] == '/' && rounds > 0);
	SKV_CHECK(skv_thread_locks == 0); /* never wait for a manager with a lock held */
	*a = (struct skv_answer){ .codec = &skv_v1_json };
	if (c->body && c->body->failed)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	skv_fail(err, SKV_E_TIMEOUT, NULL, "%s: no time left", c->op);
	for (uint32_t round = 0;; round++) {
		uint64_t wait_us = wait_of(round) * 1000;

		rc = round_of(kv, c, end_us, a, err);
		if (!worth_retry(rc) || round + 1 >= rounds || skv_now_us() + wait_us >= end_us ||
		    atomic_load_explicit(&kv->closing, memory_order_relaxed))
			break;
		sleep_ms(wait_us / 1000);
	}
	if (rc == SKV_OK)
		skv_error_clear(err);
	if (kv->on_call)
		kv->on_call(kv->on_call_ctx, c->op, skv_now_us() - begin_us, rc);
	return rc;
}

bool skv_call_again(struct slabkv *kv, struct skv_answer *a)
{
	if (!a->refused)
		return false;
	kv->codec = &skv_v1_json;
	skv_buf_destroy(&a->body);
	return true;
}
