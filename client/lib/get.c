/*
 * get.c - kvblock_get: lookup, read, judge. No state; any thread.
 *
 * What counts as a hit. A lease promises that a located slot is not reused until it ends, counted
 * from before the request was sent. So bytes that arrived inside the lease are the block's; bytes
 * with the right checksum are the block's whenever they arrived; everything else is a miss. A wrong
 * checksum inside the lease is damage and reported; after it the slot may simply have been reused.
 */
#include "client.h"

#include <string.h>

#include <kvb/hash.h>

struct get {
	struct kvblock *kv;
	const char *instance;
	const struct kvblock_keys *keys;
	struct kvblock_block *blocks;
	struct kvblock_io *io;
	struct kvb_lookup_answer answer;
	struct kvb_transfer t;
};

static const struct kvb_location *location(const struct get *g, uint32_t block, uint32_t spec)
{
	return &g->answer.res.loc[(size_t)block * g->answer.res.n_specs + spec];
}

/* Only bytes with a checksum that we look at may arrive after the lease. */
static bool provable(const struct get *g, const struct kvb_location *loc)
{
	return g->kv->verify && loc->has_checksum;
}

static void add_pieces(struct get *g)
{
	const struct kvb_lookup_res *res = &g->answer.res;

	for (uint32_t b = 0; b < res->n_keys; b++)
		for (uint32_t s = 0; res->hit[b] && s < res->n_specs; s++)
			kvb_transfer_add(&g->t, b, s, location(g, b, s), &g->blocks[b], false);
}

/* When to stop submitting: at the end of the lease, unless each piece can prove itself. */
static struct kvb_deadline deadline(const struct get *g)
{
	struct kvb_deadline by = { g->kv->clock, UINT64_MAX };

	for (uint32_t i = 0; i < g->t.n_pieces; i++)
		if (!provable(g, location(g, g->t.pieces[i].block, g->t.pieces[i].spec)))
			by.at_ms = g->answer.valid_until_ms;
	return by;
}

static void report(const struct get *g, const struct kvb_piece *p)
{
	const struct kvb_location *loc = location(g, p->block, p->spec);
	const struct kvb_file_ref *file = &g->answer.res.files.v[loc->file];
	const struct kvblock_mismatch m = {
		.instance = g->instance,
		.key = p->block,
		.spec = g->answer.res.specs[p->spec],
		.storage = file->storage,
		.path = file->path,
		.offset = loc->offset,
		.length = loc->length,
		.generation = loc->generation,
	};

	if (g->kv->on_mismatch)
		g->kv->on_mismatch(g->kv->on_mismatch_ctx, &m);
}

static enum kvblock_result judge(const struct get *g, const struct kvb_piece *p)
{
	const struct kvb_location *loc = location(g, p->block, p->spec);
	bool in_time = p->ended_ms < g->answer.valid_until_ms;

	if (p->status == KVB_E_TIMEOUT)
		return KVBLOCK_MISS; /* the lease ended before it could be read */
	if (p->status != KVB_OK)
		return KVBLOCK_ERROR;
	if (p->done < p->length)
		return KVBLOCK_MISS;
	if (!provable(g, loc))
		return in_time ? KVBLOCK_HIT : KVBLOCK_MISS;
	if (kvb_checksum(p->data, p->length) == loc->checksum)
		return KVBLOCK_HIT;
	return in_time ? KVBLOCK_MISMATCH : KVBLOCK_MISS;
}

/* The worst of its pieces is the block's result. */
static void settle_piece(struct get *g, const struct kvb_piece *p)
{
	struct kvblock_block *b = &g->blocks[p->block];
	enum kvblock_result r = judge(g, p);

	if (r == KVBLOCK_MISMATCH)
		report(g, p);
	if (r == KVBLOCK_HIT || b->result == KVBLOCK_ERROR || b->result == KVBLOCK_MISMATCH)
		return;
	b->result = r;
	b->why = r == KVBLOCK_ERROR ? p->status : KVB_OK;
}

static void settle(struct get *g)
{
	const struct kvb_lookup_res *res = &g->answer.res;

	for (uint32_t b = 0; b < res->n_keys; b++)
		if (res->hit[b])
			g->blocks[b].result = KVBLOCK_HIT;
	for (uint32_t i = 0; i < g->t.n_pieces; i++)
		settle_piece(g, &g->t.pieces[i]);
	for (uint32_t b = 0; b < res->n_keys; b++) {
		enum kvblock_result r = g->blocks[b].result;

		g->io->done += r == KVBLOCK_HIT;
		g->io->mismatches += r == KVBLOCK_MISMATCH;
		g->io->failed += r == KVBLOCK_ERROR;
		for (uint32_t s = 0; r == KVBLOCK_HIT && s < res->n_specs; s++)
			g->io->bytes += location(g, b, s)->length;
	}
	g->io->matched = res->matched;
	g->io->ios = g->t.ios;
}

static int get_blocks(struct get *g, const struct kvblock_lookup_options *o, struct kvb_arena *a,
		      struct kvb_error *err)
{
	struct kvb_deadline by;
	uint64_t pieces = 0;
	int rc = kvb_query_lookup(g->kv, g->instance, g->keys, o, a, &g->answer, err);

	if (rc != KVB_OK)
		return rc;
	for (uint32_t b = 0; b < g->answer.res.n_keys; b++)
		pieces += g->answer.res.hit[b] ? g->answer.res.n_specs : 0;
	rc = kvb_transfer_begin(&g->t, g->kv, a, &g->answer.res.files, pieces);
	if (rc == KVB_OK) {
		add_pieces(g);
		rc = kvb_transfer_plan(&g->t, false);
	}
	if (rc == KVB_OK) {
		by = deadline(g);
		kvb_transfer_run(&g->t, false, &by);
		settle(g);
		*err = g->t.first; /* for information: the call itself did its work */
	}
	kvb_transfer_end(&g->t);
	return rc;
}

int kvblock_get(struct kvblock *kv, const char *instance, const struct kvblock_keys *keys,
		const struct kvblock_lookup_options *o, struct kvblock_block *blocks,
		struct kvblock_io *io, struct kvblock_error *err)
{
	struct kvblock_io unused;
	struct get g = { .kv = kv, .instance = instance, .keys = keys, .blocks = blocks,
			 .io = io ? io : &unused };
	struct kvb_error e = { 0 };
	struct kvb_arena a;
	int rc;

	memset(g.io, 0, sizeof *g.io);
	for (uint32_t b = 0; keys && b < keys->n; b++) {
		blocks[b].result = KVBLOCK_MISS;
		blocks[b].why = KVBLOCK_OK;
	}
	kvb_arena_init(&a);
	rc = get_blocks(&g, o, &a, &e);
	kvb_arena_destroy(&a);
	return kvb_result_finish(err, &e, rc);
}
