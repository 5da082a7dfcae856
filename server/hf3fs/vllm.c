/*
 * vllm.c - vLLM's metadata service: allocate, exists, locations, clear.
 *
 * Each rank of a tenant has its own space, named "vllm". A key exists when every rank has it;
 * returned locations are leased.
 *
 * vLLM's client drops a whole batch if one key gets no page, and returns nothing, so a batch gets
 * pages for all keys or for none. It rewrites existing keys, on their page, which is leased for as
 * long as a writer may take. For a key that another client is writing the client gets a *spare*: a
 * page reserved under a key that nobody can request, so that its bytes are never found, and the
 * page is freed like one that was not confirmed.
 */
#include "hf3fs.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include <skv/hash.h>

#include "key.h"

#define NO_PAGE UINT64_MAX
#define ROUNDS 4u /* of a batch whose keys others start writing meanwhile */

/* ---- batch_allocate -------------------------------------------------------------------------- */

static bool needs_page(const struct hf3fs_request *k, uint32_t i)
{
	const struct skv_json_node *v = &k->u.allocate.node[i];

	assert(i < k->part.total);
	return k->u.allocate.page[i] == NO_PAGE &&
	       !(v->type == SKV_JSON_STRING && v->n > HF3FS_KEY_MAX);
}

static bool is_spare(const struct hf3fs_request *k, uint32_t i)
{
	assert(i >= k->part.at && i - k->part.at < k->part.n);
	return k->u.allocate.spare[i - k->part.at];
}

/* Keys to be requested, with their indices in the request. */
struct gathering {
	struct skv_key *keys;
	struct skv_bytes *names;
	uint32_t *where;
	uint32_t n;
};

static bool gather_key(struct hf3fs_request *k, struct gathering *g, uint32_t i)
{
	const struct skv_json_node *v = &k->u.allocate.node[i];
	uint8_t *text = skv_arena_alloc(&k->c->arena, v->n + (size_t)32);

	if (!text)
		return false;
	g->keys[g->n] = k->keys[i];
	g->names[g->n] = (struct skv_bytes){ text, hf3fs_name(v, text) };
	g->where[g->n++] = i;
	return true;
}

static void gather_spare(struct gathering *g, uint32_t i)
{
	skv_random(&g->keys[g->n], sizeof g->keys[g->n]);
	g->names[g->n] = (struct skv_bytes){ "", 0 };
	g->where[g->n++] = i;
}

/* Collects the portion's keys without a page: in order, each the parent of the next. The spares
 * follow, as nobody's parent. */
static bool gather(struct hf3fs_request *k, struct skv_start_req *req)
{
	const size_t n = k->part.n + (size_t)1;
	struct gathering g = { .keys = skv_arena_alloc(&k->c->arena, n * sizeof *g.keys),
			       .names = skv_arena_alloc(&k->c->arena, n * sizeof *g.names),
			       .where = skv_arena_alloc(&k->c->arena, n * sizeof *g.where) };

	if (!g.keys || !g.names || !g.where)
		return false;
	req->has_parent = k->u.allocate.has_parent;
	req->parent = k->u.allocate.parent;
	for (uint32_t i = k->part.at; i < k->part.at + k->part.n; i++) {
		if (!needs_page(k, i) || is_spare(k, i))
			continue;
		if (g.n == 0 && i > 0) {
			req->has_parent = true;
			req->parent = k->keys[i - 1];
		}
		if (!gather_key(k, &g, i))
			return false;
	}
	for (uint32_t i = k->part.at; i < k->part.at + k->part.n; i++)
		if (needs_page(k, i) && is_spare(k, i))
			gather_spare(&g, i);
	assert(g.n <= k->part.n);
	req->keys = g.keys;
	req->names = g.names;
	req->n_keys = g.n;
	k->u.allocate.where = g.where;
	return true;
}

/* Returns true if others are writing some of the pages, so that nothing was reserved: retry with
 * spares for these. */
static bool on_started(struct hf3fs_request *k)
{
	const struct skv_start_res *res = &k->u.allocate.start_res;
	uint32_t busy = 0, spares = 0;

	for (uint32_t i = 0; i < res->n_keys; i++) {
		const uint32_t at = k->u.allocate.where[i];

		if (res->outcome[i] == SKV_START_WRITE) {
			k->u.allocate.page[at] = res->loc[i].offset;
			spares += is_spare(k, at);
		}
		if (res->outcome[i] == SKV_START_BUSY) {
			k->u.allocate.spare[at - k->part.at] = true;
			busy++;
		}
	}
	assert(res->n_write >= spares && res->n_keys >= res->n_write + busy);
	hf3fs_count(k, HF3FS_in_flight, busy);
	if (busy && ++k->u.allocate.rounds < ROUNDS)
		return true;
	hf3fs_count(k, HF3FS_spare, spares);
	hf3fs_count(k, HF3FS_reserved, res->n_write - spares);
	hf3fs_count(k, HF3FS_refused_full, res->n_keys - res->n_write - busy);
	return false;
}

static int start(struct hf3fs_request *k);

static void on_start_done(void *ctx, int status)
{
	struct hf3fs_request *k = ctx;

	if (status == SKV_OK && on_started(k))
		status = start(k);
	if (status != SKV_PENDING)
		k->part.done.fn(k->part.done.ctx, status);
}

static int start_once(struct hf3fs_request *k)
{
	const struct pages *p = pages_of(k);
	struct skv_start_req *req = &k->u.allocate.start_req;
	const struct skv_done done = { on_start_done, k };

	*req = (struct skv_start_req){
		.tenant = k->space.tenant,
		.instance = k->space.id,
		/* other keys would be in other hands at the next try */
		.request_id = k->u.allocate.rounds ? "" : skv_request_start_id(k->c, k->part.at),
		.deadline_ms = p->o.reserve_ms,
		.grace_ms = p->o.grace_ms,
		.fit = true,
		.whole = true,
		.relaxed = true,
		.anonymous = true,
	};
	k->u.allocate.start_res = (struct skv_start_res){ 0 };
	if (!gather(k, req))
		return hf3fs_nomem(k);
	if (req->n_keys == 0)
		return SKV_OK;
	return skv_core_start(hf3fs_core(k), req, &k->u.allocate.start_res, &k->c->arena,
			      &k->c->err, &done);
}

static int start(struct hf3fs_request *k)
{
	int rc;

	do
		rc = start_once(k);
	while (rc == SKV_OK && on_started(k));
	return rc;
}

static int on_found(struct hf3fs_request *k)
{
	const struct skv_lookup_res *res = &k->u.allocate.found;

	for (uint32_t i = 0; i < k->part.n; i++)
		k->u.allocate.page[k->part.at + i] = res->hit[i] ? res->loc[i].offset : NO_PAGE;
	hf3fs_count(k, HF3FS_reserved_existing, res->matched);
	k->u.allocate.rounds = 0;
	k->u.allocate.spare =
		skv_arena_calloc(&k->c->arena, k->part.n, sizeof *k->u.allocate.spare);
	return k->u.allocate.spare ? start(k) : hf3fs_nomem(k);
}

static void on_find_done(void *ctx, int status)
{
	struct hf3fs_request *k = ctx;

	if (status == SKV_OK)
		status = on_found(k);
	if (status != SKV_PENDING)
		k->part.done.fn(k->part.done.ctx, status);
}

int vllm_ask_allocate(struct hf3fs_request *k)
{
	const struct pages *p = pages_of(k);
	const struct skv_done done = { on_find_done, k };
	uint64_t writing_ms = (uint64_t)p->o.reserve_ms + p->o.grace_ms;
	int rc;

	if (!k->u.allocate.page)
		k->u.allocate.page =
			skv_arena_alloc(&k->c->arena, k->part.total * sizeof *k->u.allocate.page);
	if (!k->u.allocate.page)
		return hf3fs_nomem(k);
	k->u.allocate.find = (struct skv_lookup_req){
		.tenant = k->space.tenant,
		.instance = k->space.id,
		.mode = SKV_LOOKUP_BATCH,
		.keys = k->keys + k->part.at,
		.n_keys = k->part.n,
		.lease_ms = writing_ms < SKV_MAX_LEASE_MS ? (uint32_t)writing_ms : SKV_MAX_LEASE_MS,
		.only_leased = true,
	};
	rc = skv_core_lookup(hf3fs_core(k), &k->u.allocate.find, &k->u.allocate.found, &k->c->arena,
			     &k->c->err, &done);
	return rc == SKV_OK ? on_found(k) : rc;
}

static void put_key(struct skv_buf *out, const struct skv_json_node *v)
{
	uint8_t text[64];
	struct skv_bytes name = { text, 0 };

	if (v->type == SKV_JSON_STRING) {
		skv_jout_string_n(out, v->s, v->n);
	} else if (v->type == SKV_JSON_REAL) {
		skv_jout_plain(out, v->s, v->n);
	} else {
		name.n = hf3fs_name(v, text);
		hf3fs_name_put(out, &name);
	}
}

static void put_row(struct hf3fs_request *k, uint32_t i, uint64_t page)
{
	struct skv_buf *out = &k->c->out;

	skv_put_u8(out, '[');
	put_key(out, &k->u.allocate.node[i]);
	if (page == NO_PAGE)
		skv_put_bytes(out, ",-1],", 5);
	else
		skv_buf_printf(out, ",%" PRIu64 "],", page);
}

bool vllm_tell_allocate(struct hf3fs_request *k)
{
	for (uint32_t i = k->part.at; i < k->part.at + k->part.n; i++)
		put_row(k, i, k->u.allocate.page[i]);
	k->told += k->part.n;
	return true;
}

void vllm_rest_allocate(struct hf3fs_request *k)
{
	for (; k->told < k->part.total; k->told++)
		put_row(k, k->told, NO_PAGE);
}

/* ---- batch_exists, get_locations: one lookup for each rank ----------------------------------- */

/* Merges a rank's answer: only keys on all ranks so far stay hits. */
static bool take_rank(void *ctx, int *status)
{
	struct hf3fs_request *k = ctx;
	const struct skv_lookup_res *res = &k->u.ranks.res;

	if (*status != SKV_OK)
		return false;
	assert(res->matched <= k->u.ranks.req.n_keys && k->u.ranks.req.n_keys <= k->part.n);
	for (uint32_t i = 0; i < k->part.n; i++) {
		bool hit = i < k->u.ranks.req.n_keys && res->hit[i];

		if (k->u.ranks.each.at == 0)
			k->u.ranks.page[i] = hit ? res->loc[i].offset : NO_PAGE;
		else if (!hit)
			k->u.ranks.page[i] = NO_PAGE;
	}
	if (k->u.ranks.prefix)
		k->u.ranks.matched = res->matched;
	return k->u.ranks.matched > 0;
}

static int ask_rank(void *ctx)
{
	struct hf3fs_request *k = ctx;
	const uint32_t turn = k->u.ranks.each.at;

	space_init(&k->u.ranks.space, k->space.tenant, k->u.ranks.v[turn], SPACE_NS_VLLM,
		   sizeof SPACE_NS_VLLM - 1);
	k->u.ranks.req = (struct skv_lookup_req){
		.tenant = k->space.tenant,
		.instance = k->u.ranks.space.id,
		.mode = k->u.ranks.prefix ? SKV_LOOKUP_PREFIX : SKV_LOOKUP_BATCH,
		.keys = k->keys + k->part.at,
		.n_keys = k->u.ranks.matched,
		.lease_ms = pages_of(k)->o.lease_ms,
		.only_leased = true,
	};
	if (k->u.ranks.only_first && turn > 0) {
		k->u.ranks.req.peek = true;
		k->u.ranks.req.lease_ms = 0;
		k->u.ranks.req.only_leased = false;
	}
	return skv_core_lookup(hf3fs_core(k), &k->u.ranks.req, &k->u.ranks.res, &k->c->arena,
			       &k->c->err, &k->u.ranks.each.done);
}

static int ask_ranks(struct hf3fs_request *k)
{
	assert(k->part.n > 0);
	k->u.ranks.matched = k->part.n;
	k->u.ranks.page = skv_arena_alloc(&k->c->arena, k->part.n * sizeof *k->u.ranks.page);
	if (!k->u.ranks.page)
		return hf3fs_nomem(k);
	memset(k->u.ranks.page, 0xff, k->part.n * sizeof *k->u.ranks.page);
	k->u.ranks.each = (struct skv_portions){ .total = k->u.ranks.n,
						 .most = 1,
						 .ask = ask_rank,
						 .take = take_rank,
						 .ctx = k,
						 .end = &k->part.done };
	return k->u.ranks.n > 0 ? skv_portions_run(&k->u.ranks.each) : SKV_OK;
}

int vllm_ask_exists(struct hf3fs_request *k)
{
	int rc = k->u.ranks.v ? SKV_OK : hf3fs_ranks(k, &k->u.ranks.v, &k->u.ranks.n);

	k->u.ranks.prefix = !hf3fs_strict(k);
	return rc == SKV_OK ? ask_ranks(k) : rc;
}

bool vllm_tell_exists(struct hf3fs_request *k)
{
	char *p = skv_jraw_begin(&k->c->out, 6 * (size_t)k->part.n);
	bool all = true;

	if (!p)
		return false;
	for (uint32_t i = 0; i < k->part.n; i++) {
		bool hit = k->u.ranks.page[i] != NO_PAGE;

		p = hit ? skv_jraw_text(p, "true,") : skv_jraw_text(p, "false,");
		all &= hit;
	}
	skv_jraw_end(&k->c->out, p);
	k->told += k->part.n;
	return all || hf3fs_strict(k);
}

/* Asks for the client's own rank first, whose locations are returned and leased. */
int vllm_ask_locations(struct hf3fs_request *k)
{
	const int64_t *all;
	int64_t *v;
	uint32_t n;
	int rc;

	if (k->u.ranks.v)
		return ask_ranks(k);
	rc = hf3fs_ranks(k, &all, &n);
	if (rc != SKV_OK)
		return rc;
	v = skv_arena_alloc(&k->c->arena, (n + (size_t)1) * sizeof *v);
	if (!v)
		return hf3fs_nomem(k);
	v[0] = k->space.rank;
	k->u.ranks.n = 1;
	k->u.ranks.only_first = true;
	for (uint32_t i = 0; i < n; i++)
		if (all[i] != v[0])
			v[k->u.ranks.n++] = all[i];
	k->u.ranks.v = v;
	return ask_ranks(k);
}

bool vllm_tell_locations(struct hf3fs_request *k)
{
	char *p = skv_jraw_begin(&k->c->out, (SKV_JRAW_U64 + 1) * (size_t)k->part.n);

	if (!p)
		return false;
	for (uint32_t i = 0; i < k->part.n; i++) {
		uint64_t page = k->u.ranks.page[i];

		p = page == NO_PAGE ? skv_jraw_text(p, "null") : skv_jraw_digits(p, page);
		*p++ = ',';
	}
	skv_jraw_end(&k->c->out, p);
	k->told += k->part.n;
	return true;
}

/* ---- initialize ------------------------------------------------------------------------------ */

void vllm_say_initialize(struct hf3fs_request *k)
{
	struct skv_buf *out = &k->c->out;

	k->c->type = "application/json";
	if (k->u.num_pages == VLLM_SCHEDULER)
		skv_buf_printf(out,
			       "{\"message\":\"Scheduler role does not require initialization\"}");
	else
		skv_buf_printf(out,
			       "{\"message\":\"Rank %" PRId64 " initialized with %" PRIu64
			       " pages\"}",
			       k->space.rank, k->u.num_pages);
}

/* ---- clear ----------------------------------------------------------------------------------- */

/* Removes all ranks, which are registered again when they initialize or write. Runs on a worker:
 * the registry is written. */
static int drop_ranks(struct hf3fs_request *k)
{
	const int64_t *v;
	uint32_t n;
	int rc;

	assert(skv_thread_locks == 0);
	rc = hf3fs_ranks_find(k); /* the call may have waited for long */
	if (rc == SKV_OK)
		rc = hf3fs_ranks(k, &v, &n);
	for (uint32_t i = 0; rc == SKV_OK && i < n; i++) {
		space_init(&k->space, k->space.tenant, v[i], SPACE_NS_VLLM,
			   sizeof SPACE_NS_VLLM - 1);
		rc = hf3fs_drop(k);
	}
	return rc;
}

static void on_worker(struct job *job, bool expired)
{
	struct hf3fs_request *k =
		(struct hf3fs_request *)((char *)job - offsetof(struct hf3fs_request, job));

	k->c->done.fn(k->c->done.ctx, expired ? SKV_E_TIMEOUT : drop_ranks(k));
}

int vllm_ask_clear(struct hf3fs_request *k)
{
	return hf3fs_on_worker(k, on_worker);
}
