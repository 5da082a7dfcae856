/*
 * op_keys.c - exists, get_page_indices: which keys are there, and on which page.
 *
 * What they tell is leased, so that no page of it is reused before the client has read it: all reads stop at the first
 * miss, so only the keys before that are. No state.
 */
#include "pages.h"

int pages_lookup_ask(struct pages_call *k)
{
	const struct pages *p = pages_of(k);

	k->u.lookup.req = (struct kvb_lookup_req){
		.tenant = k->space.tenant,
		.instance = k->space.id,
		.mode = p->o.strict_upstream ? KVB_LOOKUP_BATCH : KVB_LOOKUP_PREFIX,
		.keys = k->keys + k->at,
		.n_keys = k->n,
		.lease_ms = p->o.lease_ms,
		.only_leased = true,
	};
	return kvb_core_lookup(pages_core(k), &k->u.lookup.req, &k->u.lookup.res, &k->c->arena, &k->c->err, &k->done);
}

bool pages_exists_tell(struct pages_call *k)
{
	const struct kvb_lookup_res *res = &k->u.lookup.res;
	char *p = kvb_jraw_begin(&k->c->out, 6 * (size_t)res->n_keys);

	if (!p)
		return false;
	for (uint32_t i = 0; i < res->n_keys; i++)
		p = res->hit[i] ? kvb_jraw_text(p, "true,") : kvb_jraw_text(p, "false,");
	kvb_jraw_end(&k->c->out, p);
	k->told += res->n_keys;
	return pages_strict(k) || res->matched == res->n_keys;
}
