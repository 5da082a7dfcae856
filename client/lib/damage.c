/*
 * damage.c - reports slots with a wrong checksum to the manager, which hides them, or has them
 * checked, so that their keys can be written again.
 *
 * One call for each get that met any, within REPORT_MS, and none for REPORT_REST_MS after one that
 * failed: a reader is not slowed down by a manager that hangs. What is not reported is met again.
 * State: kv->report_again_ms. Any thread.
 */
#include "client.h"

#include <stdlib.h>

#include <skv/log.h>

#define REPORT_MS 1000u
#define REPORT_REST_MS 1000u

bool skv_damage_note(struct skv_damage_list *l, uint32_t key, const char *spec,
		     uint64_t generation)
{
	if (l->n == SKV_MAX_DAMAGED)
		return false;
	l->v[l->n++] = (struct skv_damage){ .key = key, .spec = spec, .generation = generation };
	return true;
}

static int by_key(const void *a, const void *b)
{
	const struct skv_damage *x = a, *y = b;

	return (x->key > y->key) - (x->key < y->key);
}

/* Only the keys that are named, each once: a call may have had many more. */
static bool pick_keys(struct skv_damage_list *l, const struct skv_key_input *all,
		      struct skv_arena *a, struct skv_key_input *out)
{
	const char **strings = skv_arena_calloc(a, l->n, sizeof *strings);
	struct skv_key *keys = skv_arena_calloc(a, l->n, sizeof *keys);
	uint32_t n = 0, last = UINT32_MAX;

	if (!strings || !keys)
		return false;
	qsort(l->v, l->n, sizeof *l->v, by_key);
	for (uint32_t i = 0; i < l->n; i++) {
		const uint32_t at = l->v[i].key;

		SKV_CHECK(at < all->n);
		if (at != last && all->strings)
			strings[n] = all->strings[at];
		if (at != last && all->keys)
			keys[n] = all->keys[at];
		n += at != last;
		last = at;
		l->v[i].key = n - 1;
	}
	*out = (struct skv_key_input){ .form = all->form, .n = n,
				       .strings = all->strings ? strings : NULL,
				       .keys = all->keys ? keys : NULL };
	return true;
}

static void post(struct slabkv *kv, const char *instance, const struct skv_key_input *keys,
		 const struct skv_damage_list *l)
{
	const struct skv_report_req req = { .n_damaged = l->n, .damaged = l->v };
	struct skv_error err = { 0 };
	struct skv_exchange x;

	skv_exchange_begin(&x, "report", "POST", "/v1/instances/%s/report", SKV_SEGMENT(instance));
	x.call.rounds = 1;
	x.call.timeout_ms = REPORT_MS;
	skv_pb_write_report_req(&x.body, &req, keys);
	if (skv_exchange_do(kv, &x, &err) != SKV_OK) {
		atomic_store_explicit(&kv->report_again_ms, skv_now_ms(kv->clock) + REPORT_REST_MS,
				      memory_order_relaxed);
		skv_log(SKV_LOG_WARN, "client", "damaged slots that could not be reported: %u: %s",
			l->n, err.message);
	}
	skv_exchange_end(&x);
}

void skv_damage_report(struct slabkv *kv, const char *instance, const struct slabkv_keys *keys,
		       struct skv_damage_list *l, struct skv_arena *a)
{
	struct skv_key_input all, named;
	struct skv_error ignored;

	if (l->n == 0 || !kv->report ||
	    skv_now_ms(kv->clock) <
		    atomic_load_explicit(&kv->report_again_ms, memory_order_relaxed))
		return;
	if (skv_keys_input(keys, "keys", a, &all, &ignored) == SKV_OK &&
	    pick_keys(l, &all, a, &named))
		post(kv, instance, &named, l);
}
