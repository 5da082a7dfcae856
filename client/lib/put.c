/*
 * put.c - slabkv_put: start, checksum, write, sync, finish. No state; any thread.
 *
 * Law: nothing is submitted after the session's deadline (the engine checks before each
 * submission), and finish names exactly the blocks whose every byte was written and synced. Since
 * the engine returns only when all it submitted has completed, finish may say `quiesced`: slots
 * that failed can be used again at once. It does not when the engine had to give up a request.
 */
#include "client.h"

#include <string.h>

#include <skv/hash.h>

struct put {
	struct slabkv *kv;
	struct slabkv_block *blocks; /* the caller's, block_size apart */
	size_t block_size;
	struct slabkv_io *io;
	struct skv_start_answer answer;
	struct skv_transfer t;
	bool *mask;          /* [n_write] */
	uint64_t *checksums; /* [n_write * n_specs] or NULL */
	uint32_t *row;       /* [n_keys]: which of the n_write rows is this block's */
};

static const struct skv_location *location(const struct put *p, uint32_t block, uint32_t spec)
{
	return &p->answer.res.loc[(size_t)block * p->answer.res.n_specs + spec];
}

static struct slabkv_block *block(const struct put *p, uint32_t i)
{
	return skv_block_at(p->blocks, p->block_size, i);
}

static int allocate(struct put *p, struct skv_arena *a, uint64_t *pieces)
{
	const struct skv_start_res *res = &p->answer.res;

	*pieces = (uint64_t)res->n_write * res->n_specs;
	p->mask = skv_arena_calloc(a, res->n_write, sizeof *p->mask);
	p->row = skv_arena_calloc(a, res->n_keys, sizeof *p->row);
	if (!p->mask || !p->row)
		return SKV_E_NOMEM;
	if (!p->kv->checksum)
		return SKV_OK;
	p->checksums = skv_arena_calloc(a, *pieces, sizeof *p->checksums);
	return p->checksums ? SKV_OK : SKV_E_NOMEM;
}

/* Pieces of the blocks that are ours to write. */
static void add_pieces(struct put *p)
{
	const struct skv_start_res *res = &p->answer.res;
	uint32_t row = 0;

	for (uint32_t b = 0; b < res->n_keys; b++) {
		if (res->outcome[b] != SKV_START_WRITE)
			continue;
		p->row[b] = row;
		if (!SKV_CHECK(row < res->n_write))
			break;
		p->mask[row++] = true;
		for (uint32_t s = 0; s < res->n_specs; s++)
			if (location(p, b, s)->length > 0)
				skv_transfer_add(&p->t, b, s, location(p, b, s), block(p, b), true);
	}
}

static void add_checksums(struct put *p)
{
	for (uint32_t i = 0; p->checksums && i < p->t.n_pieces; i++) {
		const struct skv_piece *piece = &p->t.pieces[i];

		if (!SKV_CHECK(p->row[piece->block] < p->answer.res.n_write && piece->spec < p->answer.res.n_specs))
			continue;
		if (piece->status == SKV_OK)
			p->checksums[(size_t)p->row[piece->block] * p->answer.res.n_specs +
				     piece->spec] = skv_checksum(piece->data, piece->length);
	}
}

/* After the I/O: which blocks are whole. */
static uint32_t settle_pieces(struct put *p)
{
	uint32_t whole = 0;

	for (uint32_t i = 0; i < p->t.n_pieces; i++) {
		const struct skv_piece *piece = &p->t.pieces[i];

		if (piece->status == SKV_OK && piece->done == piece->length)
			continue;
		SKV_CHECK(piece->done <= piece->length && p->row[piece->block] < p->answer.res.n_write);
		p->mask[p->row[piece->block]] = false;
		block(p, piece->block)->why = piece->status ? piece->status : SKV_E_IO;
	}
	for (uint32_t i = 0; i < p->answer.res.n_write; i++)
		whole += p->mask[i];
	SKV_CHECK(whole <= p->answer.res.n_write);
	return whole;
}

static int finish(struct put *p, uint32_t whole, struct skv_error *err)
{
	const struct skv_start_res *res = &p->answer.res;
	struct skv_finish_req req = {
		.tenant = "",
		.session = res->session,
		.mask_kind = whole == res->n_write ? SKV_MASK_ALL : SKV_MASK_BITS,
		.mask_count = whole == res->n_write ? 0 : res->n_write,
		.mask = p->mask,
		.checksums = p->checksums,
		.n_checksums = p->checksums ? res->n_write * res->n_specs : 0,
		.quiesced = !p->t.in_flight,
	};
	struct skv_finish_res done = { 0 };
	struct skv_error e = { 0 };
	int rc = skv_session_finish(p->kv, &req, &done, &e);

	if (rc == SKV_OK && done.committed != whole)
		rc = skv_fail(&e, SKV_E_INTERNAL, NULL, "finish: %u of %u blocks were committed",
			      done.committed, whole);
	*err = rc == SKV_OK ? p->t.first : e; /* single blocks that failed are told, too */
	return rc;
}

/* Results of all blocks; `rc` is how the session ended. */
static void settle_blocks(struct put *p, int rc)
{
	const struct skv_start_res *res = &p->answer.res;

	for (uint32_t b = 0; b < res->n_keys; b++) {
		struct slabkv_block *to = block(p, b);

		if (res->outcome[b] == SKV_START_EXISTS) {
			to->result = SLABKV_EXISTS;
			p->io->exists++;
		} else if (res->outcome[b] == SKV_START_BUSY) {
			to->result = SLABKV_BUSY;
			p->io->busy++;
		} else if (rc == SKV_OK && p->mask[p->row[b]]) {
			to->result = SLABKV_WRITTEN;
			p->io->done++;
			for (uint32_t s = 0; s < res->n_specs; s++)
				p->io->bytes += location(p, b, s)->length;
		} else {
			to->result = SLABKV_FAILED;
			to->why = to->why ? to->why : rc;
			p->io->failed++;
		}
	}
	SKV_CHECK(p->io->done + p->io->exists + p->io->busy + p->io->failed == res->n_keys);
	p->io->ios = p->t.ios;
}

/* Everything between start and the end of the session. */
static int write_session(struct put *p, struct skv_arena *a, struct skv_error *err)
{
	struct skv_deadline by = { p->kv->clock, p->answer.submit_until_ms };
	uint64_t pieces;
	uint32_t whole;
	int rc = allocate(p, a, &pieces);

	SKV_CHECK(p->answer.res.n_write > 0 && p->answer.res.session[0]);
	if (rc == SKV_OK)
		rc = skv_transfer_begin(&p->t, p->kv, a, &p->answer.res.files, pieces);
	if (rc == SKV_OK) {
		p->t.buffer = p->answer.buffer;
		add_pieces(p);
		rc = skv_transfer_plan(&p->t, true);
	}
	if (rc != SKV_OK)
		return skv_fail(err, rc, NULL, "out of memory");
	add_checksums(p);
	skv_transfer_run(&p->t, true, &by);
	skv_transfer_sync(&p->t);
	if (skv_is_broken(p->kv, err)) /* nobody knows what was written: nothing is committed, the slots rest */
		return SKV_E_INTERNAL;
	whole = settle_pieces(p);
	if (whole > 0)
		return finish(p, whole, err);
	*err = p->t.first;
	return skv_session_abort(p->kv, p->answer.res.session, !p->t.in_flight, NULL);
}

static int put_blocks(struct put *p, const char *instance, const struct slabkv_keys *keys,
		      const struct slabkv_put_options *o, struct skv_arena *a,
		      struct skv_error *err)
{
	int rc = skv_session_start(p->kv, instance, keys, o, NULL, a, &p->answer, err);

	if (rc != SKV_OK)
		return rc;
	if (p->answer.res.n_write == 0) {
		settle_blocks(p, SKV_OK);
		return SKV_OK;
	}
	rc = write_session(p, a, err);
	if (rc == SKV_E_NOMEM) /* the slots come back now, not at the deadline; but not those that a write may still reach */
		(void)skv_session_abort(p->kv, p->answer.res.session, !p->t.in_flight, NULL);
	settle_blocks(p, rc);
	skv_transfer_end(&p->t);
	return rc;
}

static void fail_all(struct slabkv_block *blocks, size_t block_size, const struct slabkv_keys *keys, int why)
{
	for (uint32_t b = 0; keys && b < keys->n; b++) {
		skv_block_at(blocks, block_size, b)->result = SLABKV_FAILED;
		skv_block_at(blocks, block_size, b)->why = why;
	}
}

int skv_put_blocks(struct slabkv *kv, const char *instance, const struct slabkv_keys *keys,
		   const struct slabkv_put_options *o, struct slabkv_block *blocks, size_t block_size,
		   struct slabkv_io *io, struct skv_error *err)
{
	struct put p = { .kv = kv, .blocks = blocks, .block_size = block_size, .io = io };
	struct skv_arena a;
	struct skv_pins pins;
	int rc;

	fail_all(blocks, block_size, keys, SLABKV_OK);
	skv_arena_init(&a);
	rc = skv_pins_take(kv->memory, blocks, block_size, keys ? keys->n : 0, &a, &pins);
	if (rc == SKV_OK)
		rc = put_blocks(&p, instance, keys, o, &a, err);
	skv_pins_drop(kv->memory, &pins);
	skv_arena_destroy(&a);
	for (uint32_t b = 0; rc != SKV_OK && keys && b < keys->n; b++)
		if (block(&p, b)->result == SLABKV_FAILED && !block(&p, b)->why)
			block(&p, b)->why = rc;
	return rc;
}

int slabkv_put(struct slabkv *kv, const char *instance, const struct slabkv_keys *keys,
		const struct slabkv_put_options *o, struct slabkv_block *blocks, size_t block_size,
		struct slabkv_io *io, struct slabkv_error *err)
{
	struct slabkv_io counts = { .size = sizeof counts };
	struct skv_error e = { 0 };
	int rc = skv_blocks_check(blocks, block_size, io, &e);

	if (rc == SKV_OK) {
		rc = skv_enter(kv, &e);
		fail_all(blocks, block_size, keys, rc);
	}
	if (rc == SKV_OK)
		rc = skv_put_blocks(kv, instance, keys, o, blocks, block_size, &counts, &e);
	skv_io_tell(io, &counts);
	return skv_result_finish(err, &e, rc);
}
