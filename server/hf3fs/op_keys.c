/*
 * op_keys.c - exists, get_page_indices, delete_keys.
 *
 * Pages returned by the first two are leased, so that none is reused before the client has read it.
 * In the main pool clients read up to the first miss, so exists reports only the keys before that.
 * A null in an answer of get_page_indices makes SGLang's data client close itself, so a single miss
 * makes all of them null and nothing is leased, unless configured otherwise.
 *
 * In the other pools each key stands for itself, since they may hold only the last pages of a
 * prompt. Only the client knows which of them it will read, usually the last ones; so exists does
 * not count as use there, get does. Stateless.
 */
#include "hf3fs.h"

#include <assert.h>

static int ask(struct hf3fs_request *k, enum skv_lookup_mode mode)
{
	k->u.lookup.req = (struct skv_lookup_req){
		.tenant = k->space.tenant,
		.instance = k->space.id,
		.mode = mode,
		.keys = k->keys + k->part.at,
		.n_keys = k->part.n,
		.window = k->part.n,
		.lease_ms = pages_of(k)->o.lease_ms,
		.only_leased = true,
	};
	return skv_core_lookup(hf3fs_core(k), &k->u.lookup.req, &k->u.lookup.res, &k->c->arena,
			       &k->c->err, &k->part.done);
}

/* ---- exists ---------------------------------------------------------------------------------- */

int hf3fs_ask_exists(struct hf3fs_request *k)
{
	if (hf3fs_strict(k))
		return ask(k, SKV_LOOKUP_BATCH);
	return ask(k, space_is_main(&k->space) ? SKV_LOOKUP_PREFIX : SKV_LOOKUP_TRAILING);
}

bool hf3fs_tell_exists(struct hf3fs_request *k)
{
	const struct skv_lookup_res *res = &k->u.lookup.res;
	char *p = skv_jraw_begin(&k->c->out, 6 * (size_t)k->part.n);

	if (!p)
		return false;
	assert(res->matched <= k->part.n);
	for (uint32_t i = 0; i < k->part.n; i++)
		p = res->hit[i] ? skv_jraw_text(p, "true,") : skv_jraw_text(p, "false,");
	skv_jraw_end(&k->c->out, p);
	k->told += k->part.n;
	return k->u.lookup.req.mode != SKV_LOOKUP_PREFIX || res->matched == k->part.n;
}

/* ---- get_page_indices ------------------------------------------------------------------------ */

static bool is_partial(const struct hf3fs_request *k)
{
	return hf3fs_strict(k) || !space_is_main(&k->space);
}

/* A window of all keys is all or nothing. */
int hf3fs_ask_get(struct hf3fs_request *k)
{
	return ask(k, is_partial(k) ? SKV_LOOKUP_BATCH : SKV_LOOKUP_WINDOW);
}

bool hf3fs_tell_get(struct hf3fs_request *k)
{
	const struct skv_lookup_res *res = &k->u.lookup.res;
	char *p;

	assert(res->matched <= k->part.n);
	if (!is_partial(k) && res->matched < k->part.n) {
		hf3fs_count(k, HF3FS_get_all_null, 1);
		hf3fs_untell(k);
		return false;
	}
	p = skv_jraw_begin(&k->c->out, (SKV_JRAW_U64 + 1) * (size_t)k->part.n);
	if (!p)
		return false;
	for (uint32_t i = 0; i < k->part.n; i++) {
		p = res->hit[i] ? skv_jraw_digits(p, res->loc[i].offset) : skv_jraw_text(p, "null");
		*p++ = ',';
	}
	skv_jraw_end(&k->c->out, p);
	k->told += k->part.n;
	return true;
}

/* ---- delete_keys ----------------------------------------------------------------------------- */

int hf3fs_ask_delete(struct hf3fs_request *k)
{
	k->u.del.req = (struct skv_delete_req){
		.tenant = k->space.tenant,
		.instance = k->space.id,
		.keys = k->keys + k->part.at,
		.n_keys = k->part.n,
	};
	return skv_core_delete(hf3fs_core(k), &k->u.del.req, &k->u.del.res, &k->c->arena,
			       &k->c->err, &k->part.done);
}
