/*
 * call.c - sends one operation to the managers until one answers it.
 *
 * The owner of the call's object is tried first, if known (owners.c), else the URL that answered
 * last. A manager that cannot be reached, is not ready or does not own the partition costs one try;
 * then the call tries the owner that it named, or the next. After a round over all of them the call
 * waits (50 ms doubling to 250 ms, after a second 1 s, with jitter so that many clients do not come
 * back at once). Bounded by the handle's rounds and timeout. After hedge_ms without an answer the
 * call no longer waits for one manager alone: the next one gets the same request, and the first
 * good answer counts. Others may reach an owner that this host cannot reach. So that request lets
 * its manager forward the call, and so does the last one of a round in which a manager could not be
 * reached; where that helped, calls whose owner is not known are forwarded for FORWARD_MS.
 * Everything sent here may be repeated harmlessly: the manager's operations are idempotent, start
 * by its request id.
 *
 * State: kv->current, kv->owners and kv->forward_until_us only. Any thread. Sleeps between rounds,
 * holds no lock.
 */
#include "client.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <skv/hash.h>
#include <skv/mem.h>

#define FIRST_WAIT_MS 50u
#define SHORT_WAIT_MS 250u /* in the first SHORT_ROUNDS, some 1.2 s: a failover ends within one */
#define SHORT_ROUNDS 8u
#define LAST_WAIT_MS 1000u
#define FORWARD_MS 5000u
#define MOST_TIPS 3u /* in a round: managers that know little tell of one that knows more */

/* Returns true if another manager, or the same one a little later, may give a better answer. */
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

/* The error in the response body, if the HTTP status says that it is one. A manager that cannot
 * tell what was asked answers in JSON; no protobuf message begins with '{' (that would be a group).
 * Without a manager's error in it, a proxy has answered: the manager was not reached. */
static int read_status(long http_status, const struct skv_buf *body, struct skv_error *err)
{
	const bool json = body->len && body->data[0] == '{';
	struct skv_error told;
	struct skv_arena arena;
	struct skv_v1_in in = { .arena = &arena };

	if (http_status >= 200 && http_status < 300)
		return SKV_OK;
	skv_error_clear(&told);
	skv_arena_init(&arena);
	(json ? skv_v1_read_error : skv_pb_read_error)(&in, (const char *)body->data, body->len,
						       &told);
	skv_arena_destroy(&arena);
	if (told.status == SKV_E_NETWORK)
		return skv_fail(err, told.status, NULL, "HTTP status %ld: %s", http_status,
				told.message);
	if (err)
		*err = told;
	return told.status;
}

static void put_url(struct skv_buf *url, const char *base, const char *path)
{
	skv_put_bytes(url, base, strlen(base));
	skv_put_bytes(url, path, strlen(path) + 1);
}

/* A round of tries: the owner, if it is known, then the managers that the caller named, and owners
 * that one of those tells of. */
struct round {
	uint32_t first, named;    /* of the named ones: where it begins, how many had a try */
	uint32_t tips;            /* number of reported owners that had a try */
	char owner[SKV_NOTE_URL]; /* url of an owner that is not in kv->urls; "" = none yet */
	const char *at; /* url of the manager that is asked, and then of the one that answered */
	const char *answered;     /* a named one that has answered; NULL: none yet */
	bool unreached;           /* a named manager was not reached */
	bool forwards;            /* the manager that is asked may forward the call */
	bool noted;
	struct skv_owner_note note; /* of the answer, if noted */
};

/* The next named one; NULL: all had their try. */
static const char *next_named(const struct slabkv *kv, struct round *r)
{
	while (r->named < kv->n_urls) {
		const char *url = kv->urls[(r->first + r->named++) % kv->n_urls];

		if (strcmp(url, r->owner) != 0)
			return url;
	}
	return NULL;
}

/* Returns the manager that also gets the request if r->at is slow, or NULL. */
static const char *hedge_of(const struct slabkv *kv, const struct round *r)
{
	for (uint32_t i = 0; i < 2; i++) {
		const char *url = kv->urls[(r->first + r->named + i) % kv->n_urls];

		if (strcmp(url, r->at) != 0)
			return url;
	}
	return NULL;
}

static void forward_for_some_time(struct slabkv *kv)
{
	atomic_store_explicit(&kv->forward_until_us, skv_now_us() + FORWARD_MS * 1000ull,
			      memory_order_relaxed);
}

/* Sends it to r->at. */
static int try_one(struct slabkv *kv, const struct skv_call *c, struct round *r,
		   uint64_t timeout_ms, struct skv_answer *a, struct skv_error *err)
{
	const bool hedges = kv->hedge_ms > 0 && kv->hedge_ms < timeout_ms;
	const char *hedge = hedges ? hedge_of(kv, r) : NULL;
	char note[SKV_HTTP_WANTED_MAX] = "";
	struct skv_http_request q = { .method = c->method,
				      .timeout_ms = timeout_ms,
				      .connect_ms = kv->connect_ms,
				      .hedge_ms = kv->hedge_ms,
				      .plain = r->forwards,
				      .trace = skv_trace_of_thread(),
				      .form = c->json ? SKV_HTTP_JSON : SKV_HTTP_PROTOBUF,
				      .wanted = kv->owners ? SKV_OWNER_NOTE : NULL,
				      .got = note };
	struct skv_buf url = { 0 }, other = { 0 };
	long http_status = 0;
	bool hedged = false;
	int rc;

	put_url(&url, r->at, c->path);
	if (hedge)
		put_url(&other, hedge, c->path);
	if (url.failed || other.failed) {
		skv_buf_destroy(&url);
		skv_buf_destroy(&other);
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	}
	q.url = (const char *)url.data;
	q.hedge_url = (const char *)other.data;
	q.hedged = &hedged;
	SKV_CHECK(url.len > 1 && url.data[url.len - 1] == 0);
	if (c->body) {
		q.body = c->body->data;
		q.body_len = c->body->len;
	}
	skv_buf_clear(&a->body);
	a->sent_ms = skv_now_ms(kv->clock);
	rc = skv_http_do(kv->http, &q, &a->body, &http_status, err);
	if (hedged && kv->owners) { /* only an owner's answer counts: the hedged one hangs */
		skv_owners_forget(kv->owners, NULL, r->at);
		forward_for_some_time(kv);
	}
	r->at = hedged ? hedge : r->at;
	r->noted = rc == SKV_OK && skv_owner_note_read(note, &r->note);
	if (rc == SKV_OK)
		rc = read_status(http_status, &a->body, err);
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
	uint64_t wait = round < SHORT_ROUNDS ? SHORT_WAIT_MS : LAST_WAIT_MS;
	uint32_t dice;

	if (round < 3)
		wait = (uint64_t)FIRST_WAIT_MS << round;
	skv_random(&dice, sizeof dice);
	return wait / 2 + dice % (wait / 2 + 1);
}

/* ---- a round --------------------------------------------------------------------------------- */

/* Stores the ownership that the answer reports. */
static void note_owner(struct slabkv *kv, const struct skv_call *c, const struct round *r, int rc)
{
	const char *about = c->about ? c->about : c->path;

	if (!kv->owners)
		return;
	if (r->noted)
		skv_owners_learn(kv->owners, about, &r->note, r->at);
	if (rc == SKV_E_NOT_OWNER)
		skv_owners_forget(kv->owners, about, r->at);
	else if (rc == SKV_E_NETWORK || rc == SKV_E_TIMEOUT)
		skv_owners_forget(kv->owners, NULL, r->at);
}

/* Returns true if the reported owner may be asked. The token goes with the call: so only over https
 * if the caller named only such URLs, and not elsewhere if they differ. */
static bool is_tip(const struct slabkv *kv, const struct round *r)
{
	const char *url = r->note.url;
	const size_t scheme = strcspn(url, ":") + 3;

	if (!r->noted || r->note.epoch || r->tips == MOST_TIPS || strcmp(url, r->at) == 0)
		return false;
	for (uint32_t i = 0; i < kv->n_urls; i++)
		if (strncmp(kv->urls[i], url, scheme) != 0)
			return false;
	return true;
}

/* Returns the manager to ask after a failure, or NULL if none is left. */
static const char *next_of(const struct slabkv *kv, struct round *r)
{
	if (!is_tip(kv, r))
		return next_named(kv, r);
	r->tips++;
	memcpy(r->owner, r->note.url, sizeof r->owner);
	return r->owner;
}

/* A named manager has answered: it is asked first from now on, where the owner is not known. */
static void remember(struct slabkv *kv, const char *at)
{
	for (uint32_t i = 0; i < kv->n_urls; i++)
		if (kv->urls[i] == at)
			atomic_store_explicit(&kv->current, i, memory_order_relaxed);
}

static void note_reached(struct round *r, int rc)
{
	if (rc == SKV_E_NETWORK || rc == SKV_E_TIMEOUT)
		r->unreached = true;
	else if (r->at != r->owner)
		r->answered = r->at;
}

/* The last resort of a round that ended with `rc`: one that has answered forwards the call, if the
 * owner may be one that this host cannot reach. Leaves time for another round. */
static int let_forward(struct slabkv *kv, const struct skv_call *c, uint64_t end_us,
		       struct round *r, int rc, struct skv_answer *a, struct skv_error *err)
{
	const uint64_t now = skv_now_us();

	if (!kv->owners || !r->unreached || !r->answered || r->forwards || now >= end_us)
		return rc;
	r->at = r->answered;
	r->forwards = true;
	rc = try_one(kv, c, r, (end_us - now) / 2000 + 1, a, err);
	if (!worth_retry(rc)) {
		forward_for_some_time(kv);
		remember(kv, r->at);
	}
	return rc;
}

/* Returns the manager to ask first: the owner, if known. */
static const char *first_of(const struct slabkv *kv, const struct skv_call *c, struct round *r)
{
	if (kv->owners && skv_owners_find(kv->owners, c->about ? c->about : c->path, r->owner))
		return r->owner;
	r->forwards = kv->owners && skv_now_us() < atomic_load_explicit(&kv->forward_until_us,
									memory_order_relaxed);
	return next_named(kv, r);
}

static int round_of(struct slabkv *kv, const struct skv_call *c, uint64_t end_us,
		    struct skv_answer *a, struct skv_error *err)
{
	struct round r = { .first = atomic_load_explicit(&kv->current, memory_order_relaxed) };
	int rc = SKV_E_TIMEOUT;

	SKV_CHECK(kv->n_urls > 0 && r.first < kv->n_urls);
	r.at = first_of(kv, c, &r);
	while (r.at) {
		uint64_t now = skv_now_us();
		uint64_t left_ms = now < end_us ? (end_us - now) / 1000 : 0;

		if (left_ms == 0)
			return rc;
		/* Limits the time of a manager that hangs, so that others can be asked. */
		rc = try_one(kv, c, &r, left_ms / (kv->n_urls - r.named + 1) + 1, a, err);
		note_owner(kv, c, &r, rc);
		note_reached(&r, rc);
		if (!worth_retry(rc)) {
			remember(kv, r.at);
			return rc;
		}
		r.at = next_of(kv, &r);
	}
	return let_forward(kv, c, end_us, &r, rc, a, err);
}

/* Makes a single try of slabkv_try_for. Failures that another try might avoid are SKV_E_TIMEOUT. */
static int try_once(struct slabkv *kv, const struct skv_call *c, uint32_t ms, struct skv_answer *a,
		    struct skv_error *err)
{
	struct round r = { .first = atomic_load_explicit(&kv->current, memory_order_relaxed) };
	int rc;

	r.at = first_of(kv, c, &r);
	rc = try_one(kv, c, &r, ms, a, err);
	if (rc != SKV_E_TIMEOUT) /* a manager that was given so little time is not to blame */
		note_owner(kv, c, &r, rc);
	return worth_retry(rc) ? skv_fail(err, SKV_E_TIMEOUT, NULL, "%s: no answer in %u ms",
					  c->op, ms)
			       : rc;
}

int skv_call_do(struct slabkv *kv, const struct skv_call *c, struct skv_answer *a,
		struct skv_error *err)
{
	uint32_t rounds = c->rounds ? c->rounds : kv->rounds, once_ms = skv_take_try_for();
	uint64_t begin_us = skv_now_us();
	const bool sooner = c->timeout_ms && c->timeout_ms < kv->timeout_ms;
	uint64_t end_us = begin_us + (sooner ? c->timeout_ms : kv->timeout_ms) * 1000ull;
	const uint64_t ends_us = skv_thread_ends_us();
	int rc;

	SKV_CHECK(c->op && c->method && c->path[0] == '/' && rounds > 0);
	end_us = ends_us < end_us ? ends_us : end_us;
	SKV_CHECK(skv_thread_locks == 0); /* never wait for a manager with a lock held */
	*a = (struct skv_answer){ 0 };
	if (c->body && c->body->failed)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	skv_fail(err, SKV_E_TIMEOUT, NULL, "%s: no time left", c->op);
	rc = once_ms ? try_once(kv, c, once_ms, a, err) : SKV_OK;
	for (uint32_t round = 0; !once_ms; round++) {
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

/* ---- an operation in protobuf ---------------------------------------------------------------- */

void skv_exchange_begin(struct skv_exchange *x, const char *op, const char *method,
			const char *format, ...)
{
	va_list ap;
	int n;

	memset(x, 0, sizeof *x);
	va_start(ap, format);
	n = vsnprintf(x->path, sizeof x->path, format, ap);
	va_end(ap);
	SKV_CHECK(n > 0 && (size_t)n < sizeof x->path);
	x->call = (struct skv_call){ .op = op, .method = method, .path = x->path };
	if (strcmp(method, "GET") != 0)
		x->call.body = &x->body;
}

int skv_exchange_do(struct slabkv *kv, struct skv_exchange *x, struct skv_error *err)
{
	SKV_CHECK(x->call.path == x->path);
	return skv_call_do(kv, &x->call, &x->answer, err);
}

void skv_exchange_end(struct skv_exchange *x)
{
	skv_buf_destroy(&x->body);
	skv_buf_destroy(&x->answer.body);
}

int skv_bad_answer(const struct skv_exchange *x, struct skv_error *err)
{
	return skv_fail(err, SKV_E_INTERNAL, NULL,
			"%s: the manager's answer does not match the request", x->call.op);
}
