/*
 * op_write.c - reserve_and_allocate_page_indices, confirm_write, clear.
 *
 * A reservation is a session that only confirm_write or its deadline ends, because its answer has
 * nothing but pages. The core takes each key once: repeated keys, and keys too long to store, are
 * left out of the request to it.
 *
 * A key that another client is writing is reported as existing, without a page: SGLang's client
 * then ignores the page and goes on. [false,-1] would abort the whole backup, most of which is
 * usually being written by a replica with the same prompt. If that writer dies, the key is a miss
 * until its deadline and grace have passed. Stateless.
 */
#include "key.h"
#include "hf3fs.h"

#include <assert.h>
#include <string.h>

/* ---- reserve --------------------------------------------------------------------------------- */

#define NOWHERE UINT32_MAX
#define AGAIN (1u << 31) /* flag beside the number: an earlier key of the portion is equal */

/* Moves the keys to be requested to the start of the portion; *out: how many. */
static bool take_once(struct hf3fs_request *k, uint32_t *out)
{
	struct skv_key *keys = k->keys + k->part.at;
	struct skv_bytes *names = k->u.reserve.names + k->part.at;
	uint32_t *where = skv_arena_alloc(&k->c->arena, k->part.n * sizeof *where), n = 0;
	struct skv_key_set set;

	if (!where || !hf3fs_key_set(&set, &k->c->arena, k->part.n))
		return false;
	for (uint32_t i = 0; i < k->part.n; i++) {
		uint32_t *at;

		where[i] = NOWHERE;
		if (names[i].n == 0)
			continue;
		at = skv_key_set_find(&set, keys, keys[i]);
		if (*at) {
			where[i] = (*at - 1) | AGAIN;
			continue;
		}
		where[i] = n;
		keys[n] = keys[i];
		names[n] = names[i];
		*at = ++n;
	}
	k->u.reserve.where = n < k->part.n ? where : NULL;
	*out = n;
	return true;
}

int hf3fs_ask_reserve(struct hf3fs_request *k)
{
	const struct pages *p = pages_of(k);
	const bool main = space_is_main(&k->space);
	uint32_t n;

	if (!take_once(k, &n))
		return hf3fs_nomem(k);
	k->u.reserve.req = (struct skv_start_req){
		.tenant = k->space.tenant,
		.instance = k->space.id,
		.request_id = skv_request_start_id(k->c, k->part.at),
		.keys = k->keys + k->part.at,
		.n_keys = n,
		.has_parent = main && k->u.reserve.has_parent,
		.parent = k->u.reserve.parent,
		.names = k->u.reserve.names + k->part.at,
		.deadline_ms = p->o.reserve_ms,
		.grace_ms = p->o.grace_ms,
		.fit = true,
		.selective = true, /* without a page a client skips the key */
		.independent = !main, /* a tail without its head is wanted there */
		.relaxed = true,
		.anonymous = true,
		.want_existing = true,
	};
	if (n == 0)
		return hf3fs_find(k);
	k->u.reserve.has_parent = true; /* for the portion after this one */
	k->u.reserve.parent = k->keys[k->part.at + n - 1];
	return skv_core_start(hf3fs_core(k), &k->u.reserve.req, &k->u.reserve.res, &k->c->arena,
			      &k->c->err, &k->part.done);
}

/* Appends a key's answer and counts it. */
static char *put_reserved(struct hf3fs_request *k, char *p, uint32_t i,
			  uint32_t count[HF3FS_COUNTERS])
{
	const uint32_t where = k->u.reserve.where ? k->u.reserve.where[i] : i;
	const struct skv_start_res *res = &k->u.reserve.res;
	const uint32_t at = where & ~AGAIN;
	unsigned outcome = where == NOWHERE ? SKV_START_NO_ROOM : res->outcome[at];

	assert(where == NOWHERE || at <= i);
	if (outcome == SKV_START_WRITE && where != at)
		outcome = SKV_START_BUSY;
	switch (outcome) {
	case SKV_START_WRITE:
		count[HF3FS_reserved]++;
		p = skv_jraw_digits(skv_jraw_text(p, "[false,"), res->loc[at].offset);
		return skv_jraw_text(p, "],");
	case SKV_START_EXISTS:
		count[HF3FS_reserved_existing]++;
		p = skv_jraw_digits(skv_jraw_text(p, "[true,"), res->loc[at].offset);
		return skv_jraw_text(p, "],");
	case SKV_START_BUSY:
		count[HF3FS_in_flight]++;
		return skv_jraw_text(p, "[true,-1],");
	case SKV_START_NOT_ADMITTED:
		count[HF3FS_not_admitted]++;
		break;
	default:
		count[HF3FS_refused_full]++;
		break;
	}
	return skv_jraw_text(p, "[false,-1],");
}

/* Upstream's server raises if there is neither a free page nor an evictable key: all are
 * reserved. */
static bool is_all_reserved(struct hf3fs_request *k)
{
	struct skv_instance_view *i;
	struct skv_storage_view *s;
	struct skv_error ignored;
	char name[SKV_MAX_NAME + 1];

	space_name(&k->space, name);
	return skv_cluster_instance(hf3fs_cluster(k), k->space.tenant, k->space.id, &k->c->arena,
				    &i, &ignored) == SKV_OK &&
	       skv_cluster_storage(hf3fs_cluster(k), name, &k->c->arena, &s, &ignored) ==
		       SKV_OK &&
	       i[0].open_bytes >= s[0].spec.capacity;
}

bool hf3fs_tell_reserve(struct hf3fs_request *k)
{
	static const enum hf3fs_counter counters[] = { HF3FS_reserved, HF3FS_reserved_existing,
						       HF3FS_refused_full, HF3FS_in_flight,
						       HF3FS_not_admitted };
	uint32_t count[HF3FS_COUNTERS] = { 0 };
	char *p = skv_jraw_begin(&k->c->out,
				 (sizeof "[false,]," + SKV_JRAW_U64) * (size_t)k->part.n);

	if (!p)
		return false;
	for (uint32_t i = 0; i < k->part.n; i++)
		p = put_reserved(k, p, i, count);
	skv_jraw_end(&k->c->out, p);
	k->told += k->part.n;
	for (size_t i = 0; i < sizeof counters / sizeof counters[0]; i++)
		if (count[counters[i]])
			hf3fs_count(k, counters[i], count[counters[i]]);
	k->raised |= hf3fs_strict(k) && count[HF3FS_refused_full] && is_all_reserved(k);
	return true;
}

/* ---- confirm_write --------------------------------------------------------------------------- */

/* How many of a list of n are in the portion. */
static uint32_t part_of(const struct hf3fs_request *k, uint32_t n)
{
	return k->part.at >= n ? 0 : n - k->part.at < k->part.n ? n - k->part.at : k->part.n;
}

int hf3fs_ask_confirm(struct hf3fs_request *k)
{
	k->u.confirm.req = (struct skv_partial_req){
		.tenant = k->space.tenant,
		.instance = k->space.id,
		.n_commit = part_of(k, k->n_keys),
		.n_give_up = part_of(k, k->u.confirm.n_released),
		.relaxed = true,
	};
	assert(k->u.confirm.req.n_commit > 0 || k->u.confirm.req.n_give_up > 0);
	if (k->u.confirm.req.n_commit > 0) {
		k->u.confirm.req.keys = k->keys + k->part.at;
		k->u.confirm.req.offsets = k->u.confirm.pages + k->part.at;
	}
	if (k->u.confirm.req.n_give_up > 0)
		k->u.confirm.req.give_up = k->u.confirm.released + k->part.at;
	return skv_core_finish_partial(hf3fs_core(k), &k->u.confirm.req, &k->u.confirm.res,
				       &k->c->arena, &k->c->err, &k->part.done);
}

bool hf3fs_tell_confirm(struct hf3fs_request *k)
{
	const struct skv_partial_res *res = &k->u.confirm.res;

	hf3fs_count(k, HF3FS_confirmed, res->committed);
	hf3fs_count(k, HF3FS_released, res->given_up);
	if (res->ignored_commits)
		hf3fs_count(k, HF3FS_ignored_confirms, res->ignored_commits);
	if (res->ignored_give_ups)
		hf3fs_count(k, HF3FS_ignored_releases, res->ignored_give_ups);
	return true;
}

/* ---- clear ----------------------------------------------------------------------------------- */

int hf3fs_ask_clear(struct hf3fs_request *k)
{
	k->u.clear.req = (struct skv_clear_req){ k->space.tenant, k->space.id };
	return skv_core_clear(hf3fs_core(k), &k->u.clear.req, &k->u.clear.res, &k->c->arena,
			      &k->c->err, &k->part.done);
}
