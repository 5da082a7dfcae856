/*
 * pin.c - pins: set, ended, listed. No state; any thread.
 */
#include "client.h"
#include "paths.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

_Static_assert((int)KVBLOCK_PIN_SOFT == (int)KVB_PIN_SOFT && (int)KVBLOCK_PIN_HARD == (int)KVB_PIN_HARD, "kinds");

/* One call below an instance: what it asks, and its answer. */
struct exchange {
	struct kvb_arena arena;
	struct kvb_key_input keys;
	struct kvb_pin_req pin;
	struct kvb_unpin_req unpin;
	struct kvb_answer answer;
};

static int bad_answer(struct kvb_error *err, const char *op)
{
	return kvb_fail(err, KVB_E_INTERNAL, NULL, "%s: the manager's answer does not fit the question", op);
}

/* `write` puts the body for the codec of the moment. */
static int post(struct kvblock *kv, const char *op, const char *format, const char *instance, struct exchange *x,
		void (*write)(const struct kvb_v1_codec *codec, struct kvb_buf *out, const struct exchange *x),
		struct kvb_error *err) __attribute__((format(printf, 3, 0)));

static int post(struct kvblock *kv, const char *op, const char *format, const char *instance, struct exchange *x,
		void (*write)(const struct kvb_v1_codec *codec, struct kvb_buf *out, const struct exchange *x),
		struct kvb_error *err)
{
	char path[KVB_PATH_MAX];
	struct kvb_buf body = { 0 };
	struct kvb_call c = { .op = op, .method = "POST", .path = path, .body = &body };
	int rc;

	snprintf(path, sizeof path, format, instance);
	do {
		c.codec = kv->codec;
		kvb_buf_clear(&body);
		write(c.codec, &body, x);
		rc = kvb_call_do(kv, &c, &x->answer, err);
	} while (kvb_call_again(kv, &x->answer));
	kvb_buf_destroy(&body);
	return rc;
}

static int begin(struct exchange *x, const char *instance, const struct kvblock_keys *keys, struct kvb_error *err)
{
	int rc = kvb_name_check(instance, "instance", err);

	memset(x, 0, sizeof *x);
	kvb_arena_init(&x->arena);
	return rc == KVB_OK && keys ? kvb_keys_input(keys, "keys", &x->arena, &x->keys, err) : rc;
}

static int end(struct exchange *x, struct kvblock_error *err, const struct kvb_error *e, int rc)
{
	kvb_buf_destroy(&x->answer.body);
	kvb_arena_destroy(&x->arena);
	return kvb_result_fail(err, e, rc);
}

static void write_pin(const struct kvb_v1_codec *codec, struct kvb_buf *out, const struct exchange *x)
{
	codec->write_pin_req(out, &x->pin, &x->keys);
}

int kvblock_pin(struct kvblock *kv, const char *instance, const struct kvblock_keys *keys, enum kvblock_pin_kind kind,
		uint64_t ttl_ms, uint32_t *pinned, bool *missing, struct kvblock_error *err)
{
	struct kvb_pin_res res = { 0 };
	struct kvb_error e = { 0 };
	struct exchange x;
	int rc = begin(&x, instance, keys, &e);

	x.pin = (struct kvb_pin_req){ .kind = (enum kvb_pin_kind)kind, .ttl_ms = ttl_ms };
	if (rc == KVB_OK && kind != KVBLOCK_PIN_SOFT && kind != KVBLOCK_PIN_HARD)
		rc = kvb_fail(&e, KVB_E_INVALID, "kind", "soft or hard");
	if (rc == KVB_OK)
		rc = post(kv, "pin", KVB_PATH_PIN, instance, &x, write_pin, &e);
	if (rc == KVB_OK)
		rc = x.answer.codec->read_pin_res(&(struct kvb_v1_in){ .arena = &x.arena }, (const char *)x.answer.body.data,
						  x.answer.body.len, &res, &e);
	if (rc == KVB_OK && (res.n_keys != keys->n || res.pinned > keys->n))
		rc = bad_answer(&e, "pin");
	if (rc == KVB_OK && pinned)
		*pinned = res.pinned;
	if (rc == KVB_OK && missing)
		memcpy(missing, res.missing, keys->n * sizeof *missing);
	return end(&x, err, &e, rc);
}

static void write_unpin(const struct kvb_v1_codec *codec, struct kvb_buf *out, const struct exchange *x)
{
	codec->write_unpin_req(out, &x->unpin, &x->keys);
}

int kvblock_unpin(struct kvblock *kv, const char *instance, const struct kvblock_keys *keys, uint64_t *unpinned,
		  struct kvblock_error *err)
{
	struct kvb_unpin_res res = { 0 };
	struct kvb_error e = { 0 };
	struct exchange x;
	int rc = begin(&x, instance, keys, &e);

	if (rc == KVB_OK)
		rc = post(kv, "unpin", KVB_PATH_UNPIN, instance, &x, write_unpin, &e);
	if (rc == KVB_OK)
		rc = x.answer.codec->read_unpin_res(&(struct kvb_v1_in){ .arena = &x.arena }, (const char *)x.answer.body.data,
						    x.answer.body.len, &res, &e);
	if (rc == KVB_OK && unpinned)
		*unpinned = res.unpinned;
	return end(&x, err, &e, rc);
}

/* ---- the list ------------------------------------------------------------------------------------ */

static int read_pins(struct kvblock_pins *out, const struct kvb_answer *answer, struct kvb_error *err)
{
	struct kvb_v1_in in = { .arena = kvb_result_arena(out) };
	struct kvblock_pin_info *v;
	struct kvb_pins_res res = { 0 };
	int rc = answer->codec->read_pins_res(&in, (const char *)answer->body.data, answer->body.len, &res, err);

	if (rc != KVB_OK)
		return rc;
	v = kvb_arena_calloc(in.arena, res.n + 1, sizeof *v);
	if (!v)
		return KVB_E_NOMEM;
	for (uint32_t i = 0; i < res.n; i++)
		v[i] = (struct kvblock_pin_info){ { res.key[i].hi, res.key[i].lo }, (enum kvblock_pin_kind)res.kind[i],
						  res.ttl_ms[i] };
	*out = (struct kvblock_pins){ .n = res.n, .v = v, .next = res.next };
	return KVB_OK;
}

int kvblock_pins(struct kvblock *kv, const char *instance, uint64_t cursor, const struct kvblock_pins **out,
		 struct kvblock_error *err)
{
	struct kvblock_pins *pins = kvb_result_new(sizeof *pins);
	struct kvb_answer answer = { 0 };
	struct kvb_error e = { 0 };
	char path[KVB_PATH_MAX];
	struct kvb_call c = { .op = "pins", .method = "GET", .path = path };
	int rc = pins ? kvb_name_check(instance, "instance", &e) : KVB_E_NOMEM;

	if (rc == KVB_OK) {
		snprintf(path, sizeof path, KVB_PATH_PINS, instance, cursor);
		do {
			c.codec = kv->codec;
			rc = kvb_call_do(kv, &c, &answer, &e);
		} while (kvb_call_again(kv, &answer));
	}
	if (rc == KVB_OK)
		rc = read_pins(pins, &answer, &e);
	kvb_buf_destroy(&answer.body);
	if (rc == KVB_OK)
		*out = pins;
	else
		kvblock_free(pins);
	return kvb_result_fail(err, &e, rc);
}
