/*
 * pin.c - pins: set, remove, list. Stateless; any thread.
 */
#include "client.h"
#include "paths.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

_Static_assert((int)SLABKV_PIN_SOFT == (int)SKV_PIN_SOFT &&
		       (int)SLABKV_PIN_HARD == (int)SKV_PIN_HARD,
	       "kinds");

/* One call on an instance: its request and its answer. */
struct exchange {
	struct skv_arena arena;
	struct skv_key_input keys;
	struct skv_pin_req pin;
	struct skv_unpin_req unpin;
	struct skv_answer answer;
};

static int bad_answer(struct skv_error *err, const char *op)
{
	return skv_fail(err, SKV_E_INTERNAL, NULL,
			"%s: the manager's answer does not match the request", op);
}

/* `write` puts the body for the codec of the moment. */
static int post(struct slabkv *kv, const char *op, const char *format, const char *instance,
		struct exchange *x,
		void (*write)(const struct skv_v1_codec *codec, struct skv_buf *out,
			      const struct exchange *x),
		struct skv_error *err) __attribute__((format(printf, 3, 0)));

static int post(struct slabkv *kv, const char *op, const char *format, const char *instance,
		struct exchange *x,
		void (*write)(const struct skv_v1_codec *codec, struct skv_buf *out,
			      const struct exchange *x),
		struct skv_error *err)
{
	char path[SKV_PATH_MAX];
	struct skv_buf body = { 0 };
	struct skv_call c = { .op = op, .method = "POST", .path = path, .body = &body };
	int rc;

	snprintf(path, sizeof path, format, skv_path_name(instance, (char[SKV_PATH_NAME]){ 0 }));
	c.codec = kv->codec;
	write(c.codec, &body, x);
	rc = skv_call_do(kv, &c, &x->answer, err);
	skv_buf_destroy(&body);
	return rc;
}

static int begin(struct exchange *x, struct slabkv *kv, const char *instance,
		 const struct slabkv_keys *keys, struct skv_error *err)
{
	int rc = skv_enter(kv, err);

	if (rc == SKV_OK)
		rc = skv_model_name_check(instance, "instance", err);

	memset(x, 0, sizeof *x);
	skv_arena_init(&x->arena);
	return rc == SKV_OK && keys ? skv_keys_input(keys, "keys", &x->arena, &x->keys, err) : rc;
}

static int end(struct exchange *x, struct slabkv_error *err, const struct skv_error *e, int rc)
{
	skv_buf_destroy(&x->answer.body);
	skv_arena_destroy(&x->arena);
	return skv_result_fail(err, e, rc);
}

static void write_pin(const struct skv_v1_codec *codec, struct skv_buf *out,
		      const struct exchange *x)
{
	codec->write_pin_req(out, &x->pin, &x->keys);
}

int slabkv_pin(struct slabkv *kv, const char *instance, const struct slabkv_keys *keys,
	       enum slabkv_pin_kind kind, uint64_t ttl_ms, uint32_t *pinned, bool *missing,
	       struct slabkv_error *err)
{
	struct skv_pin_res res = { 0 };
	struct skv_error e = { 0 };
	struct exchange x;
	int rc = begin(&x, kv, instance, keys, &e);

	x.pin = (struct skv_pin_req){ .hard = kind == SLABKV_PIN_HARD, .ttl_ms = ttl_ms };
	if (rc == SKV_OK && kind != SLABKV_PIN_SOFT && kind != SLABKV_PIN_HARD)
		rc = skv_fail(&e, SKV_E_INVALID, "kind", "soft or hard");
	if (rc == SKV_OK)
		rc = post(kv, "pin", SKV_PATH_PIN, instance, &x, write_pin, &e);
	if (rc == SKV_OK)
		rc = x.answer.codec->read_pin_res(&(struct skv_v1_in){ .arena = &x.arena },
						  (const char *)x.answer.body.data,
						  x.answer.body.len, &res, &e);
	if (rc == SKV_OK && (res.n_keys != keys->n || res.pinned > keys->n))
		rc = bad_answer(&e, "pin");
	if (rc == SKV_OK && pinned)
		*pinned = res.pinned;
	if (rc == SKV_OK && missing)
		memcpy(missing, res.missing, keys->n * sizeof *missing);
	return end(&x, err, &e, rc);
}

static void write_unpin(const struct skv_v1_codec *codec, struct skv_buf *out,
			const struct exchange *x)
{
	codec->write_unpin_req(out, &x->unpin, &x->keys);
}

int slabkv_unpin(struct slabkv *kv, const char *instance, const struct slabkv_keys *keys,
		 uint64_t *unpinned, struct slabkv_error *err)
{
	struct skv_unpin_res res = { 0 };
	struct skv_error e = { 0 };
	struct exchange x;
	int rc = begin(&x, kv, instance, keys, &e);

	x.unpin.all = !keys;
	if (rc == SKV_OK)
		rc = post(kv, "unpin", SKV_PATH_UNPIN, instance, &x, write_unpin, &e);
	if (rc == SKV_OK)
		rc = x.answer.codec->read_unpin_res(&(struct skv_v1_in){ .arena = &x.arena },
						    (const char *)x.answer.body.data,
						    x.answer.body.len, &res, &e);
	if (rc == SKV_OK && unpinned)
		*unpinned = res.unpinned;
	return end(&x, err, &e, rc);
}

/* ---- the list -------------------------------------------------------------------------------- */

static int read_pins(struct slabkv_pins *out, const struct skv_answer *answer,
		     struct skv_error *err)
{
	struct skv_v1_in in = { .arena = skv_result_arena(out) };
	struct slabkv_pin_info *v;
	struct skv_pins_res res = { 0 };
	int rc = answer->codec->read_pins_res(&in, (const char *)answer->body.data,
					      answer->body.len, &res, err);

	if (rc != SKV_OK)
		return rc;
	v = skv_arena_calloc(in.arena, res.n + 1, sizeof *v);
	if (!v)
		return SKV_E_NOMEM;
	for (uint32_t i = 0; i < res.n; i++)
		v[i] = (struct slabkv_pin_info){ { res.key[i].hi, res.key[i].lo },
						 (enum slabkv_pin_kind)res.kind[i],
						 res.ttl_ms[i] };
	*out = (struct slabkv_pins){ .n = res.n, .v = v, .v_size = sizeof *v, .next = res.next };
	return SKV_OK;
}

int slabkv_pins(struct slabkv *kv, const char *instance, uint64_t cursor,
		const struct slabkv_pins **out, struct slabkv_error *err)
{
	struct slabkv_pins *pins = skv_result_new(sizeof *pins);
	struct skv_answer answer = { 0 };
	struct skv_error e = { 0 };
	char path[SKV_PATH_MAX];
	struct skv_call c = { .op = "pins", .method = "GET", .path = path };
	int rc = pins ? skv_enter(kv, &e) : SKV_E_NOMEM;

	if (rc == SKV_OK)
		rc = skv_model_name_check(instance, "instance", &e);

	if (rc == SKV_OK) {
		snprintf(path, sizeof path, SKV_PATH_PINS,
			 skv_path_name(instance, (char[SKV_PATH_NAME]){ 0 }), cursor);
		c.codec = kv->codec;
		rc = skv_call_do(kv, &c, &answer, &e);
	}
	if (rc == SKV_OK)
		rc = read_pins(pins, &answer, &e);
	skv_buf_destroy(&answer.body);
	if (rc == SKV_OK)
		*out = pins;
	else
		slabkv_free(pins);
	return skv_result_fail(err, &e, rc);
}
