/*
 * meta_start.c - startWriteCache, and startEvictWriteCache.
 *
 * The latter is called by an engine that is about to evict blocks, which has one replica itself: by
 * default two are wanted, so one is kept here. More than one kept here is only requested from
 * movers: then no slot is handed out.
 *
 * The core names one writer for each key and spec; a key that exists, is being written or being
 * removed is masked. A key that is repeated in one request is masked after the first, for the core
 * takes each once.
 *
 * Keys beyond the core's limit are started in portions, each a session of the core (sessions.c). If
 * a portion is refused after an earlier one has blocks to write, its keys and all later ones are
 * masked: the client may request them again. No state.
 */
#include "meta.h"

#include <assert.h>
#include <string.h>

#include <skv/clock.h>

#define TIMEOUT_MAX_S 1800
#define MAX_PLACES         \
	(KVCM_MAX_PLACES / \
	 4) /* in one answer: too long a one would be refused when its sessions are open */

/* A portion with blocks to write. */
struct portion {
	struct skv_start_res res;
	uint32_t at; /* index of its first key */
};

struct start {
	struct skv_start_req req;
	struct skv_start_res res; /* of the last portion requested */
	uint32_t n;           /* keys of the request, repeated ones included */
	struct kvcm_keys keys; /* none of them twice */
	const uint32_t *columns; /* [keys.n] specs of each; NULL: all */
	struct skv_portions list;
	uint8_t *outcome;     /* [keys.n] */
	struct portion portion[KVCM_MAX_PORTIONS];
	uint32_t n_portions;
	uint32_t n_write; /* blocks in them */
	const uint32_t *once; /* [n] which key of req each one is; NULL: none is repeated */
	const bool *again;    /* [n] repeated */
	struct kvcm_locations locations;
};

/* ---- keys ------------------------------------------------------------------------------------ */

/* Takes repeated keys out of `keys`; own->once then tells which one each was. */
static int take_once(struct kvcm_request *k, struct start *own, struct kvcm_keys *keys)
{
	uint32_t *once = skv_arena_alloc(&k->c->arena, (keys->n + 1) * sizeof *once);
	bool *again = skv_arena_calloc(&k->c->arena, keys->n + 1, sizeof *again);
	int rc;

	if (!once || !again)
		return kvcm_nomem(k);
	own->n = keys->n;
	rc = kvcm_keys_once(k, keys, once, again);
	if (rc == SKV_OK && keys->n < own->n) {
		own->once = once;
		own->again = again;
	}
	return rc;
}

/* ---- groups ---------------------------------------------------------------------------------- */

static const KvcmMeta__LocationSpecGroup *find_group(const KvcmMeta__InstanceInfo *info,
						     const char *name)
{
	for (size_t i = 0; i < info->n_location_spec_groups; i++)
		if (strcmp(info->location_spec_groups[i]->name, name) == 0)
			return info->location_spec_groups[i];
	return NULL;
}

/* Specs of each key that is written; of a repeated one those that it has first. */
static int take_groups(struct kvcm_request *k, const KvcmMeta__StartWriteCacheRequest *req,
		       struct start *own)
{
	const KvcmMeta__LocationSpecGroup *last = NULL;
	const KvcmMeta__InstanceInfo *info;
	uint32_t *columns, found = 0;
	int rc;

	if (req->n_location_spec_group_names == 0)
		return SKV_OK;
	if (req->n_location_spec_group_names != own->n)
		return skv_fail(&k->c->err, SKV_E_INVALID, "location_spec_group_names",
				"location_spec_group_names: %zu names for %u blocks",
				req->n_location_spec_group_names, own->n);
	rc = kvcm_take_info(k, req->instance_id, &info);
	if (rc != SKV_OK)
		return rc;
	columns = skv_arena_calloc(&k->c->arena, own->keys.n + 1u, sizeof *columns);
	if (!columns)
		return kvcm_nomem(k);
	for (uint32_t i = 0; i < own->n; i++) {
		const char *name = req->location_spec_group_names[i];

		if (!last || strcmp(last->name, name) != 0) {
			last = find_group(info, name);
			found = last ? kvcm_group_columns(info, last) : 0;
		}
		if (found == 0)
			return skv_fail(
				&k->c->err, SKV_E_INVALID, "location_spec_group_names",
				"location_spec_group_names: the instance has no group '%.64s'",
				name);
		assert((own->once ? own->once[i] : i) < own->keys.n);
		if (!own->again || !own->again[i])
			columns[own->once ? own->once[i] : i] = found;
	}
	own->columns = columns;
	return SKV_OK;
}

/* ---- the operation --------------------------------------------------------------------------- */

/* Checks the wanted replicas. `elsewhere`: replicas that the caller has itself. *here: number
 * wanted beside these. */
static int check_replicas(struct kvcm_request *k, const KvcmMeta__StartWriteCacheRequest *req,
			  int32_t elsewhere, int32_t *here)
{
	if (req->min_replica_count < 0)
		return kvcm_missing(k, "min_replica_count");
	*here = req->min_replica_count > 1 + elsewhere ? req->min_replica_count - elsewhere : 1;
	if (*here > 2)
		return skv_fail(&k->c->err, SKV_E_UNSUPPORTED, "min_replica_count",
				"min_replica_count: a block has two places at most, its own and "
				"one in the fast tier of its group");
	if (req->is_replication && !*req->replication_target_node_id)
		return kvcm_missing(k, "replication_target_node_id");
	if (req->is_replication)
		return skv_fail(&k->c->err, SKV_E_UNSUPPORTED, "is_replication",
				"is_replication: clients write no replicas, for what they write "
				"has no checksum: ask for them by replicateCache");
	return SKV_OK;
}

/* Blocks written here never get a second copy, for they have no checksum. So each block must exist
 * and have its copy, or get one from a mover; then nothing is to be written. */
static int want_two(struct kvcm_request *k, struct start *own)
{
	struct skv_want_req req = { .tenant = own->req.tenant, .instance = own->req.instance,
				    .from = "", .to = "" };
	uint32_t count[SKV_WANT_OUTCOMES] = { 0 }, good;
	int rc = SKV_OK;

	for (uint32_t at = 0; rc == SKV_OK && at < own->keys.n; at += req.n_keys) {
		struct skv_want_res res;

		req.keys = own->keys.v + at;
		req.n_keys = skv_portion(own->keys.n - at);
		rc = kvcm_want(k, &req, "", "min_replica_count", &res);
		for (uint32_t i = 0; rc == SKV_OK && i < SKV_WANT_OUTCOMES; i++)
			count[i] += res.count[i];
	}
	good = count[SKV_WANT_ASKED] + count[SKV_WANT_THERE];
	assert(good <= own->keys.n);
	if (rc != SKV_OK || good == own->keys.n)
		return rc;
	return skv_fail(&k->c->err, SKV_E_UNSUPPORTED, "min_replica_count",
			"min_replica_count: only movers make second replicas, of blocks with "
			"checksums: %s; ask for 1, or write by libslabkv",
			kvcm_want_words(k, count));
}

/* KVCM's values <= 0 expire immediately. */
static uint32_t deadline_of(int32_t seconds)
{
	return seconds <= 0 ? 1
			    : 1000u * (uint32_t)(seconds < TIMEOUT_MAX_S ? seconds : TIMEOUT_MAX_S);
}

/* Returns the number of keys at the begin of a long request that exist already, in any group. */
static int skip_leading(struct kvcm_request *k, const char *instance, const struct kvcm_keys *keys,
			uint32_t *at)
{
	struct skv_lookup_req req = { .tenant = k->c->caller.tenant, .instance = instance,
				      .mode = SKV_LOOKUP_PREFIX };
	int rc = SKV_OK;

	if (keys->n > SKV_MAX_KEYS)
		rc = kvcm_lengths(k, keys, &req, at);
	assert(*at <= keys->n);
	return rc;
}

/* Keeps the blocks to write of a portion. Refused blocks after such blocks are masked. */
static bool take_portion(void *ctx, int *status)
{
	struct kvcm_request *k = ctx;
	struct start *own = k->own;
	uint32_t next = own->list.at + own->list.n;

	if (*status != SKV_OK) {
		if (own->n_portions > 0)
			*status = SKV_OK;
		return false;
	}
	assert(next <= own->keys.n && own->res.n_keys == own->req.n_keys &&
	       own->res.n_write <= own->res.n_keys);
	memcpy(own->outcome + own->list.at, own->res.outcome, own->req.n_keys);
	if (own->res.n_write > 0) {
		assert(own->n_portions < KVCM_MAX_PORTIONS);
		own->portion[own->n_portions++] = (struct portion){ own->res, own->list.at };
		own->n_write += own->res.n_write;
	}
	return (uint64_t)(own->n_write + skv_portion(own->keys.n - next)) * own->res.n_specs <=
	       MAX_PLACES;
}

static int start_portion(void *ctx)
{
	struct kvcm_request *k = ctx;
	struct start *own = k->own;
	const uint32_t at = own->list.at;

	own->req.request_id = skv_request_start_id(k->c, at);
	own->req.keys = own->keys.v + at;
	own->req.n_keys = own->list.n;
	own->req.key_specs = own->columns ? own->columns + at : NULL;
	own->req.has_parent = at > 0 && !own->req.independent;
	if (own->req.has_parent)
		own->req.parent = own->keys.v[at - 1];
	own->res = (struct skv_start_res){ 0 };
	return skv_core_start(kvcm_core(k), &own->req, &own->res, &k->c->arena, &k->c->err,
			      &own->list.done);
}

static int run(struct kvcm_request *k, int32_t elsewhere)
{
	const KvcmMeta__StartWriteCacheRequest *req = k->req;
	struct start *own = k->own = skv_arena_calloc(&k->c->arena, 1, sizeof *own);
	uint32_t at = 0;
	int32_t here = 1;
	int rc;

	if (!own)
		return kvcm_nomem(k);
	rc = kvcm_take_keys(k, req->instance_id, req->block_keys, req->n_block_keys, req->token_ids,
			    req->n_token_ids, KVCM_MAX_KEYS, &own->keys);
	if (rc == SKV_OK)
		rc = check_replicas(k, req, elsewhere, &here);
	if (rc == SKV_OK)
		rc = take_once(k, own, &own->keys);
	if (rc != SKV_OK)
		return rc;
	own->req = (struct skv_start_req){
		.tenant = k->c->caller.tenant,
		.instance = req->instance_id,
		.deadline_ms = deadline_of(req->write_timeout_seconds),
		.grace_ms = kvcm_of(k)->transfer_ms, /* writers do not look at the deadline */
		.selective = true, /* a masked block is one that they need not write */
		.unsummed = true,
	};
	own->req.independent = kvcm_has_windows(k, req->instance_id);
	rc = take_groups(k, req, own);
	if (rc == SKV_OK)
		rc = skip_leading(k, req->instance_id, &own->keys, &at);
	if (rc != SKV_OK)
		return rc;
	own->outcome = skv_arena_alloc(&k->c->arena, own->keys.n + 1u);
	if (!own->outcome)
		return kvcm_nomem(k);
	memset(own->outcome, SKV_START_EXISTS, own->keys.n + 1u);
	assert(own->keys.n <= KVCM_MAX_KEYS && at <= own->keys.n);
	if (own->keys.n == 0) { /* fewer tokens than a block */
		const struct skv_instance_spec *spec;

		return kvcm_take_instance(k, req->instance_id, &spec);
	}
	if (here > 1)
		return want_two(k, own);
	own->list = (struct skv_portions){ .total = own->keys.n,
					   .at = at,
					   .ask = start_portion,
					   .take = take_portion,
					   .ctx = k,
					   .end = &k->c->done };
	return at < own->keys.n ? skv_portions_run(&own->list) : SKV_OK;
}

int kvcm_run_meta_startWriteCache(struct kvcm_request *k) { return run(k, 0); }

int kvcm_run_meta_startEvictWriteCache(struct kvcm_request *k) { return run(k, 1); }

/* The outcome for each key of the request. */
static const uint8_t *outcomes(struct kvcm_request *k, const struct start *own)
{
	uint8_t *all;

	if (!own->once)
		return own->outcome;
	all = skv_arena_alloc(&k->c->arena, own->n);
	for (uint32_t i = 0; all && i < own->n; i++)
		all[i] = own->again[i] ? SKV_START_EXISTS : own->outcome[own->once[i]];
	return all;
}

static char *session_of(struct kvcm_request *k, const struct start *own, const char *instance)
{
	struct kvcm_session v[KVCM_MAX_PORTIONS];
	char *empty = skv_arena_alloc(&k->c->arena, SKV_SESSION_ID_HEX + 1);

	for (uint32_t i = 0; i < own->n_portions; i++) {
		memcpy(v[i].id, own->portion[i].res.session, sizeof v[i].id);
		v[i].n_blocks = own->portion[i].res.n_write;
	}
	if (own->n_portions > 0)
		return kvcm_sessions_text(k, v, own->n_portions);
	if (empty)
		kvcm_empty_make(k, instance, empty);
	return empty;
}

/* Rows to write, in the order of the request: of all portions together. */
static int take_rows(struct kvcm_request *k, const struct start *own, struct skv_files *files,
		     struct skv_location *loc)
{
	const uint32_t n_specs = own->portion[0].res.n_specs;

	for (uint32_t p = 0; p < own->n_portions; p++) {
		const struct skv_start_res *res = &own->portion[p].res;

		if (res->n_specs != n_specs) /* registered again meanwhile */
			return skv_fail(&k->c->err, SKV_E_CONFLICT, NULL,
					"the instance was registered again meanwhile");
		for (uint32_t i = 0; i < res->n_keys; i++) {
			if (res->outcome[i] != SKV_START_WRITE)
				continue;
			memcpy(loc, res->loc + (size_t)i * n_specs, n_specs * sizeof *loc);
			for (uint32_t s = 0; s < n_specs; s++)
				loc[s].file += files->n;
			loc += n_specs;
		}
		memcpy(files->v + files->n, res->files.v, res->files.n * sizeof *files->v);
		files->n += res->files.n;
	}
	return SKV_OK;
}

static int take_locations(struct kvcm_request *k, struct start *own)
{
	const struct skv_start_res *first = &own->portion[0].res;
	struct skv_location *loc =
		skv_arena_alloc(&k->c->arena, (size_t)own->n_write * first->n_specs * sizeof *loc);
	struct skv_files *files = skv_arena_calloc(&k->c->arena, 1, sizeof *files);
	uint32_t n_files = 0;
	int rc;

	for (uint32_t p = 0; p < own->n_portions; p++)
		n_files += own->portion[p].res.files.n;
	if (files)
		files->v = skv_arena_alloc(&k->c->arena, (n_files + 1u) * sizeof *files->v);
	if (!loc || !files || !files->v)
		return kvcm_nomem(k);
	rc = take_rows(k, own, files, loc);
	if (rc != SKV_OK)
		return rc;
	assert(files->n == n_files);
	own->locations = (struct kvcm_locations){
		.field = 4,
		.miss = KVCM_MISS_EMPTY,
		.files = files,
		.roots = kvcm_roots(k, files, false),
		.n_specs = first->n_specs,
		.specs = first->specs,
		.loc = loc,
		.n = own->n_write,
		.columns = KVCM_ALL_COLUMNS,
		.status = KVCM_WRITING,
		.created_ms = skv_wall_ms(&skv_clock_system),
	};
	return own->locations.roots ? SKV_OK : kvcm_nomem(k);
}

int kvcm_write_start(struct kvcm_request *k)
{
	const KvcmMeta__StartWriteCacheRequest *req = k->req;
	KvcmMeta__StartWriteCacheResponse *out = k->res;
	struct start *own = k->own;
	const uint8_t *outcome = outcomes(k, own);
	int rc;

	out->write_session_id = session_of(k, own, req->instance_id);
	if (!out->write_session_id || !outcome)
		return kvcm_nomem(k);
	out->block_mask = kvcm_mask_answer(outcome, own->n, &k->c->arena);
	if (!out->block_mask)
		return kvcm_nomem(k);
	if (own->n_write == 0)
		return SKV_OK;
	rc = take_locations(k, own);
	if (rc == SKV_OK)
		kvcm_splice(k, 0, &own->locations);
	return rc;
}
