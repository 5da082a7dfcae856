/*
 * pin.c - pins: set, remove, list. Stateless; any thread.
 */
#include "client.h"

#include <inttypes.h>
#include <string.h>

_Static_assert((int)SLABKV_PIN_SOFT == (int)SKV_PIN_SOFT &&
		       (int)SLABKV_PIN_HARD == (int)SKV_PIN_HARD,
	       "kinds");

/* Enters the handle and checks what the caller names. `keys` may be NULL. */
static int begin(struct skv_arena *a, struct slabkv *kv, const char *instance,
		 const struct slabkv_keys *keys, struct skv_key_input *input, struct skv_error *err)
{
	int rc = skv_enter(kv, err);

	skv_arena_init(a);
	*input = (struct skv_key_input){ .n = 0 };
	if (rc == SKV_OK)
		rc = skv_model_name_check(instance, "instance", err);
	return rc == SKV_OK && keys ? skv_keys_input(keys, "keys", a, input, err) : rc;
}

static int pin(struct slabkv *kv, const char *instance, const struct skv_pin_req *req,
	       const struct skv_key_input *keys, struct skv_arena *a, struct skv_pin_res *res,
	       struct skv_error *err)
{
	const struct skv_v1_in in = { .arena = a };
	struct skv_exchange x;
	int rc;

	skv_exchange_begin(&x, "pin", "POST", "/v1/instances/%s/pin", SKV_SEGMENT(instance));
	skv_pb_write_pin_req(&x.body, req, keys);
	rc = skv_exchange_do(kv, &x, err);
	if (rc == SKV_OK)
		rc = skv_pb_read_pin_res(&in, SKV_ANSWER(x), res, err);
	if (rc == SKV_OK && (res->n_keys != keys->n || res->pinned > keys->n))
		rc = skv_bad_answer(&x, err);
	skv_exchange_end(&x);
	return rc;
}

int slabkv_pin(struct slabkv *kv, const char *instance, const struct slabkv_keys *keys,
	       enum slabkv_pin_kind kind, uint64_t ttl_ms, uint32_t *pinned, bool *missing,
	       struct slabkv_error *err)
{
	const struct skv_pin_req req = { .hard = kind == SLABKV_PIN_HARD, .ttl_ms = ttl_ms };
	struct skv_pin_res res = { 0 };
	struct skv_error e = { 0 };
	struct skv_key_input input;
	struct skv_arena a;
	int rc = begin(&a, kv, instance, keys, &input, &e);

	if (rc == SKV_OK && kind != SLABKV_PIN_SOFT && kind != SLABKV_PIN_HARD)
		rc = skv_fail(&e, SKV_E_INVALID, "kind", "soft or hard");
	if (rc == SKV_OK)
		rc = pin(kv, instance, &req, &input, &a, &res, &e);
	if (rc == SKV_OK && pinned)
		*pinned = res.pinned;
	if (rc == SKV_OK && missing)
		memcpy(missing, res.missing, keys->n * sizeof *missing);
	skv_arena_destroy(&a);
	return skv_result_fail(err, &e, rc);
}

static int unpin(struct slabkv *kv, const char *instance, const struct skv_unpin_req *req,
		 const struct skv_key_input *keys, struct skv_arena *a, struct skv_unpin_res *res,
		 struct skv_error *err)
{
	const struct skv_v1_in in = { .arena = a };
	struct skv_exchange x;
	int rc;

	skv_exchange_begin(&x, "unpin", "POST", "/v1/instances/%s/unpin", SKV_SEGMENT(instance));
	skv_pb_write_unpin_req(&x.body, req, keys);
	rc = skv_exchange_do(kv, &x, err);
	if (rc == SKV_OK)
		rc = skv_pb_read_unpin_res(&in, SKV_ANSWER(x), res, err);
	skv_exchange_end(&x);
	return rc;
}

int slabkv_unpin(struct slabkv *kv, const char *instance, const struct slabkv_keys *keys,
		 uint64_t *unpinned, struct slabkv_error *err)
{
	const struct skv_unpin_req req = { .all = !keys };
	struct skv_unpin_res res = { 0 };
	struct skv_error e = { 0 };
	struct skv_key_input input;
	struct skv_arena a;
	int rc = begin(&a, kv, instance, keys, &input, &e);

	if (rc == SKV_OK)
		rc = unpin(kv, instance, &req, &input, &a, &res, &e);
	if (rc == SKV_OK && unpinned)
		*unpinned = res.unpinned;
	skv_arena_destroy(&a);
	return skv_result_fail(err, &e, rc);
}

/* ---- the list -------------------------------------------------------------------------------- */

static int read_pins(struct slabkv_pins *out, const struct skv_exchange *x, struct skv_error *err)
{
	const struct skv_v1_in in = { .arena = skv_result_arena(out) };
	struct slabkv_pin_info *v;
	struct skv_pins_res res = { 0 };
	int rc = skv_pb_read_pins_res(&in, SKV_ANSWER(*x), &res, err);

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
	struct skv_exchange x = { 0 };
	struct skv_error e = { 0 };
	int rc = pins ? skv_enter(kv, &e) : SKV_E_NOMEM;

	if (rc == SKV_OK)
		rc = skv_model_name_check(instance, "instance", &e);
	if (rc == SKV_OK) {
		skv_exchange_begin(&x, "pins", "GET", "/v1/instances/%s/pins?cursor=%" PRIu64,
				   SKV_SEGMENT(instance), cursor);
		rc = skv_exchange_do(kv, &x, &e);
	}
	if (rc == SKV_OK)
		rc = read_pins(pins, &x, &e);
	skv_exchange_end(&x);
	if (rc == SKV_OK)
		*out = pins;
	else
		slabkv_free(pins);
	return skv_result_fail(err, &e, rc);
}
