/*
 * get.c - slabkv_get: lookup, read, judge. No state; any thread.
 *
 * What counts as a hit. A lease promises that a located slot is not reused until it ends, counted
 * from before the request was sent. So bytes that arrived inside the lease are the block's; bytes
 * with the right checksum are the block's whenever they arrived; everything else is a miss. A wrong
 * checksum inside the lease is damage and reported; after it the slot may simply have been reused.
 *
 * If a spec has a copy in a fast tier, the copy is read first. Blocks that are no hits then are
 * read once more, from their own locations, under the same lease: no second lookup is made.
 *
 * Damage is reported to the manager (damage.c), once per call, after all reads.
 */
#include "client.h"

#include <string.h>

#include <skv/log.h>

struct get {
	struct slabkv *kv;
	const char *instance;
	const struct slabkv_keys *keys;
	struct slabkv_block *blocks; /* the caller's, block_size apart */
	size_t block_size;
	struct slabkv_io *io;
	struct skv_lookup_answer answer;
	struct skv_transfer t;
	bool copies; /* the transfer reads existing copies */
	struct skv_damage_list *damaged;
};

static const struct skv_location *copy_of(const struct get *g, uint32_t block, uint32_t spec)
{
	const struct skv_lookup_res *res = &g->answer.res;
	size_t at = (size_t)block * res->n_specs + spec;

	return res->copy && res->copy[at].length ? &res->copy[at] : NULL;
}

/* Where the transfer reads it. */
static const struct skv_location *location(const struct get *g, uint32_t block, uint32_t spec)
{
	const struct skv_location *copy = g->copies ? copy_of(g, block, spec) : NULL;

	return copy ? copy : &g->answer.res.loc[(size_t)block * g->answer.res.n_specs + spec];
}

static bool has_copy(const struct get *g, uint32_t block)
{
	for (uint32_t s = 0; s < g->answer.res.n_specs; s++)
		if (copy_of(g, block, s))
			return true;
	return false;
}

static struct slabkv_block *block(const struct get *g, uint32_t i)
{
	return skv_block_at(g->blocks, g->block_size, i);
}

/* Only bytes whose checksum we verify may arrive after the lease has ended. */
static bool provable(const struct get *g, const struct skv_location *loc)
{
	return g->kv->verify && loc->has_checksum;
}

/* Returns true if the block is part of the transfer: the first one, or the second, because its copy
 * failed. */
static bool is_read(const struct get *g, uint32_t b)
{
	return g->answer.res.hit[b] &&
	       (g->copies || (has_copy(g, b) && block(g, b)->result != SLABKV_HIT));
}

static void add_pieces(struct get *g)
{
	const struct skv_lookup_res *res = &g->answer.res;

	for (uint32_t b = 0; b < res->n_keys; b++)
		for (uint32_t s = 0; is_read(g, b) && s < res->n_specs; s++)
			skv_transfer_add(&g->t, b, s, location(g, b, s), block(g, b), false,
					 provable(g, location(g, b, s)));
}

/* When to stop submitting: at the end of the lease, unless each piece can prove itself. */
static struct skv_io_call deadline(const struct get *g)
{
	/* with copies, a part of the time is left to read the blocks that they did not bring */
	struct skv_io_call by = { .clock = g->kv->clock, .at_ms = UINT64_MAX,
				  .until_ms = skv_share_ends_ms(
					  g->kv, g->copies && g->answer.res.copy ? 2 : 1) };

	for (uint32_t i = 0; i < g->t.n_pieces; i++)
		if (!provable(g, location(g, g->t.pieces[i].block, g->t.pieces[i].spec)))
			by.at_ms = g->answer.valid_until_ms;
	return by;
}

static void report(const struct get *g, const struct skv_piece *p)
{
	const struct skv_location *loc = location(g, p->block, p->spec);
	const struct skv_file_ref *file = &g->answer.res.files.v[loc->file];
	const struct slabkv_mismatch m = {
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
	skv_damage_note(g->damaged, m.key, m.spec, m.generation);
}

static enum slabkv_result judge(const struct get *g, struct skv_piece *p)
{
	const struct skv_location *loc = location(g, p->block, p->spec);
	bool in_time = p->ended_ms < g->answer.valid_until_ms;

	SKV_CHECK(p->length == loc->length && p->done <= p->length);

	if (p->status == SKV_E_TIMEOUT && !p->late)
		return SLABKV_MISS; /* the lease ended before it could be read */
	if (p->status != SKV_OK)
		return SLABKV_ERROR;
	if (p->done < p->length)
		return SLABKV_MISS;
	if (!provable(g, loc))
		return in_time ? SLABKV_HIT : SLABKV_MISS;
	if (skv_transfer_proves(p))
		return SLABKV_HIT;
	return in_time ? SLABKV_MISMATCH : SLABKV_MISS;
}

/* The worst of its pieces is the block's result. */
static void settle_piece(struct get *g, struct skv_piece *p)
{
	struct slabkv_block *b = block(g, p->block);
	enum slabkv_result r = judge(g, p);

	SKV_CHECK(g->answer.res.hit[p->block] && p->spec < g->answer.res.n_specs);

	if (r == SLABKV_MISMATCH)
		report(g, p);
	if (r == SLABKV_HIT || b->result == SLABKV_ERROR || b->result == SLABKV_MISMATCH)
		return;
	b->result = r;
	b->why = r == SLABKV_ERROR ? p->status : SKV_OK;
}

/* The results of the transfer's blocks. */
static void settle(struct get *g)
{
	const struct skv_piece *last = NULL;

	for (uint32_t i = 0; i < g->t.n_pieces; i++) {
		struct skv_piece *p = &g->t.pieces[i];

		if (!last || last->block != p->block) {
			block(g, p->block)->result = SLABKV_HIT;
			block(g, p->block)->why = SLABKV_OK;
		}
		settle_piece(g, p);
		last = p;
	}
	g->io->ios += g->t.ios;
}

/* Once all transfers are done; `again`: what the second one read. */
static void count(struct get *g, const bool *again)
{
	const struct skv_lookup_res *res = &g->answer.res;

	for (uint32_t b = 0; b < res->n_keys; b++) {
		enum slabkv_result r = block(g, b)->result;

		g->io->done += r == SLABKV_HIT;
		g->io->mismatches += r == SLABKV_MISMATCH;
		g->io->failed += r == SLABKV_ERROR;
		g->io->copies += r == SLABKV_HIT && !again[b] && has_copy(g, b);
		for (uint32_t s = 0; r == SLABKV_HIT && s < res->n_specs; s++)
			g->io->bytes += location(g, b, s)->length;
	}
	SKV_CHECK(g->io->done + g->io->mismatches + g->io->failed <= res->n_keys);
	SKV_CHECK(g->io->copies <= g->io->done);
	g->io->matched = res->matched;
}

/* Transfers the blocks that is_read() names. */
static int transfer(struct get *g, struct skv_arena *a)
{
	struct skv_io_call by;
	uint64_t pieces = 0;
	int rc;

	for (uint32_t b = 0; b < g->answer.res.n_keys; b++)
		pieces += is_read(g, b) ? g->answer.res.n_specs : 0;
	rc = skv_transfer_begin(&g->t, g->kv, a, &g->answer.res.files, pieces);
	if (rc == SKV_OK) {
		g->t.buffer = g->answer.buffer;
		add_pieces(g);
		SKV_CHECK(g->t.n_pieces == pieces);
		by = deadline(g);
		rc = skv_transfer_move(&g->t, false, &by);
	}
	if (rc == SKV_OK)
		settle(g);
	skv_transfer_end(&g->t);
	return rc;
}

/* Reads the blocks that the copies did not bring from their own locations, except where a request
 * was given up: its bytes may still arrive in the buffers. */
static void read_again(struct get *g, struct skv_arena *a, bool *again)
{
	uint32_t n = 0;

	if (!g->answer.res.copy || g->t.in_flight)
		return;
	g->copies = false;
	for (uint32_t b = 0; b < g->answer.res.n_keys; b++)
		n += again[b] = is_read(g, b);
	if (n == 0)
		return;
	skv_log(SKV_LOG_DEBUG, "client", "blocks not read from the fast tier: %u%s%s", n,
		g->t.first.message[0] ? ": " : "", g->t.first.message);
	if (transfer(g, a) != SKV_OK)
		memset(again, 0, g->answer.res.n_keys * sizeof *again); /* out of memory */
}

static int get_blocks(struct get *g, const struct slabkv_lookup_options *o, struct skv_arena *a,
		      struct skv_error *err)
{
	bool *again;
	int rc = skv_query_lookup(g->kv, g->instance, g->keys, o, a, &g->answer, err);

	if (rc != SKV_OK)
		return rc;
	SKV_CHECK(g->answer.res.n_keys == g->keys->n && g->answer.res.matched <= g->keys->n);
	again = skv_arena_calloc(a, g->keys->n, sizeof *again);
	g->damaged = skv_arena_calloc(a, 1, sizeof *g->damaged);
	if (!again || !g->damaged)
		return SKV_E_NOMEM;
	g->copies = true;
	rc = transfer(g, a);
	if (rc == SKV_OK) {
		read_again(g, a, again);
		count(g, again);
		skv_damage_report(g->kv, g->instance, g->keys, g->damaged, a);
		*err = g->t.first; /* for information: the call itself did its work */
	}
	return rc;
}

static void miss_all(struct slabkv_block *blocks, size_t block_size, const struct slabkv_keys *keys)
{
	for (uint32_t b = 0; keys && b < keys->n; b++) {
		skv_block_at(blocks, block_size, b)->result = SLABKV_MISS;
		skv_block_at(blocks, block_size, b)->why = SLABKV_OK;
	}
}

int skv_get_blocks(struct slabkv *kv, const char *instance, const struct slabkv_keys *keys,
		   const struct slabkv_lookup_options *o, struct slabkv_block *blocks,
		   size_t block_size, struct slabkv_io *io, struct skv_error *err)
{
	struct get g = { .kv = kv, .instance = instance, .keys = keys, .blocks = blocks,
			 .block_size = block_size, .io = io };
	struct skv_arena a;
	struct skv_pins pins;
	int rc;

	miss_all(blocks, block_size, keys);
	skv_arena_init(&a);
	skv_deadline_of_thread(kv->io_timeout_ms);
	rc = skv_pins_take(kv->memory, blocks, block_size, keys ? keys->n : 0, &a, &pins);
	if (rc == SKV_OK)
		rc = get_blocks(&g, o, &a, err);
	if (rc == SKV_OK)
		skv_transfer_tell(kv, "get", io->failed, err);
	skv_deadline_of_thread(0);
	skv_pins_drop(kv->memory, &pins);
	skv_arena_destroy(&a);
	if (skv_is_broken(kv, err)) { /* discard all bytes that were read */
		miss_all(blocks, block_size, keys);
		memset(io, 0, sizeof *io);
		rc = SKV_E_INTERNAL;
	}
	return rc;
}

int slabkv_get(struct slabkv *kv, const char *instance, const struct slabkv_keys *keys,
	       const struct slabkv_lookup_options *o, struct slabkv_block *blocks,
	       size_t block_size, struct slabkv_io *io, struct slabkv_error *err)
{
	struct slabkv_io counts = { .size = sizeof counts };
	struct skv_error e = { 0 };
	int rc = skv_blocks_check(blocks, block_size, io, &e);

	if (rc == SKV_OK) {
		miss_all(blocks, block_size, keys);
		rc = skv_enter(kv, &e);
	}
	if (rc == SKV_OK)
		rc = skv_get_blocks(kv, instance, keys, o, blocks, block_size, &counts, &e);
	skv_io_tell(io, &counts);
	return skv_result_finish(err, &e, rc);
}
