/*
 * put.c - slabkv_put: start, write and checksum at once, sync, finish. No state; any thread. A put
 * larger than the manager takes in one session uses several, one after the other.
 *
 * Law: nothing is submitted after the session's deadline (the engine checks before each
 * submission), and finish names exactly the blocks whose every byte was written and synced. Since
 * the engine returns only when all it submitted has completed, finish may report `quiesced`: failed
 * slots can be reused at once. It does not if the engine had to give up a request.
 *
 * If the manager names a copy instance, committed blocks are put there, too: a copy in a fast tier.
 * A failure of the copy is no failure of the put.
 *
 * Blocks that a storage does not take, or not in half of the time, are put once more with a start
 * that avoids this storage. The first session has ended by then: its slots rest where a write may
 * still be under way.
 */
#include "client.h"

#include <string.h>

#include <skv/log.h>

struct put {
	struct slabkv *kv;
	struct slabkv_block *blocks; /* the caller's, block_size apart */
	size_t block_size;
	struct slabkv_io *io;
	struct skv_start_answer answer;
	struct skv_transfer t;
	bool *mask;          /* [n_write] */
	uint64_t *checksums; /* [n_write * n_specs] */
	uint32_t *row;       /* [n_keys]: which of the n_write rows is this block's */
	const uint32_t *deleted; /* [n_deleted] rows, in order, that were deleted meanwhile */
	uint32_t n_deleted;
	/* [n_avoid] storages that did not take blocks of the put. */
	const char *avoid[SKV_MAX_AVOID];
	uint32_t n_avoid;
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
	p->checksums = skv_arena_calloc(a, *pieces, sizeof *p->checksums);
	return p->mask && p->row && p->checksums ? SKV_OK : SKV_E_NOMEM;
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
				skv_transfer_add(&p->t, b, s, location(p, b, s), block(p, b), true,
						 true);
	}
}

static void add_checksums(struct put *p)
{
	for (uint32_t i = 0; i < p->t.n_pieces; i++) {
		struct skv_piece *piece = &p->t.pieces[i];
		uint32_t row = p->row[piece->block];

		if (!SKV_CHECK(row < p->answer.res.n_write && piece->spec < p->answer.res.n_specs))
			continue;
		if (piece->status == SKV_OK && piece->done == piece->length)
			p->checksums[(size_t)row * p->answer.res.n_specs + piece->spec] =
				skv_transfer_sum(piece);
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
		SKV_CHECK(piece->done <= piece->length &&
			  p->row[piece->block] < p->answer.res.n_write);
		p->mask[p->row[piece->block]] = false;
		block(p, piece->block)->why = piece->status ? piece->status : SKV_E_IO;
	}
	for (uint32_t i = 0; i < p->answer.res.n_write; i++)
		whole += p->mask[i];
	SKV_CHECK(whole <= p->answer.res.n_write);
	return whole;
}

static int finish(struct put *p, uint32_t whole, struct skv_arena *a, struct skv_error *err)
{
	const struct skv_start_res *res = &p->answer.res;
	struct skv_finish_req req = {
		.tenant = "",
		.session = res->session,
		.mask_kind = whole == res->n_write ? SKV_MASK_ALL : SKV_MASK_BITS,
		.mask_count = whole == res->n_write ? 0 : res->n_write,
		.mask = p->mask,
		.checksums = p->checksums,
		.n_checksums = res->n_write * res->n_specs,
		.quiesced = !p->t.in_flight,
	};
	struct skv_finish_res done = { 0 };
	struct skv_error e = { 0 };
	int rc = skv_session_finish(p->kv, &req, a, &done, &e);

	p->deleted = done.deleted;
	p->n_deleted = done.n_deleted;
	for (uint32_t i = 0; i < done.n_deleted && done.deleted[i] < res->n_write; i++)
		whole -= p->mask[done.deleted[i]];
	if (rc == SKV_OK && done.committed != whole)
		rc = skv_fail(&e, SKV_E_INTERNAL, NULL, "finish: %u of %u blocks were committed",
			      done.committed, whole);
	*err = rc == SKV_OK ? p->t.first : e; /* single blocks that failed are reported, too */
	return rc;
}

static uint64_t counted(const struct slabkv_io *io)
{
	return io->done + io->exists + io->busy + io->not_admitted + io->failed;
}

/* Results of all blocks; `rc` is how the session ended. */
static void settle_blocks(struct put *p, int rc)
{
	const struct skv_start_res *res = &p->answer.res;
	uint64_t before = counted(p->io);
	uint32_t gone = 0;

	for (uint32_t b = 0; b < res->n_keys; b++) {
		struct slabkv_block *to = block(p, b);

		if (res->outcome[b] == SKV_START_EXISTS) {
			to->result = SLABKV_EXISTS;
			p->io->exists++;
		} else if (res->outcome[b] == SKV_START_BUSY) {
			to->result = SLABKV_BUSY;
			p->io->busy++;
		} else if (res->outcome[b] == SKV_START_NOT_ADMITTED) {
			to->result = SLABKV_NOT_ADMITTED;
			p->io->not_admitted++;
		} else if (gone < p->n_deleted && p->deleted[gone] == p->row[b]) {
			gone++;
			to->result = SLABKV_DELETED;
			p->io->failed++;
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
	SKV_CHECK(counted(p->io) - before == res->n_keys);
	p->io->ios += p->t.ios;
}

/* Half of the time that is left, for another storage may have to be tried, and the session has to
 * end in time. */
static struct skv_io_call deadline(const struct put *p)
{
	struct skv_io_call by = { .clock = p->kv->clock, .at_ms = p->answer.submit_until_ms,
				  .until_ms = skv_share_ends_ms(p->kv, 2) };

	if (by.until_ms > by.at_ms && by.until_ms != UINT64_MAX)
		by.until_ms = by.at_ms;
	return by;
}

/* Ends a session of which nothing was written. That it has expired is no failure of its own. */
static int abort_session(const struct put *p, struct skv_error *err)
{
	struct skv_error why;
	int rc = skv_session_abort(p->kv, p->answer.res.session, !p->t.in_flight, &why);

	*err = p->t.first;
	return rc == SKV_E_SESSION_EXPIRED || rc == SKV_E_SESSION_ENDED ? SKV_OK : rc;
}

/* Everything between start and the end of the session. */
static int write_session(struct put *p, struct skv_arena *a, struct skv_error *err)
{
	struct skv_io_call by = deadline(p);
	uint64_t pieces;
	uint32_t whole;
	int rc = allocate(p, a, &pieces);

	SKV_CHECK(p->answer.res.n_write > 0 && p->answer.res.session[0]);
	if (rc == SKV_OK)
		rc = skv_transfer_begin(&p->t, p->kv, a, &p->answer.res.files, pieces);
	if (rc == SKV_OK) {
		p->t.buffer = p->answer.buffer;
		add_pieces(p);
		rc = skv_transfer_move(&p->t, true, &by);
	}
	if (rc != SKV_OK)
		return skv_fail(err, rc, NULL, "out of memory");
	add_checksums(p);
	/* The written bytes are unknown: nothing is committed, the slots rest. */
	if (skv_is_broken(p->kv, err))
		return SKV_E_INTERNAL;
	whole = settle_pieces(p);
	if (whole > 0)
		return finish(p, whole, a, err);
	return abort_session(p, err);
}

/* Keys from the `at`th on, in the same memory, without a parent. */
static struct slabkv_keys keys_from(const struct slabkv_keys *keys, uint32_t at, uint32_t n)
{
	struct slabkv_keys part = { .size = sizeof part, .form = keys->form, .n = n, .v = keys->v };

	SKV_CHECK(n >= 1 && at + n <= keys->n);
	switch (keys->form) {
	case SLABKV_KEYS_STRING:
		part.v.strings += at;
		break;
	case SLABKV_KEYS_INT:
		part.v.ints += at;
		break;
	case SLABKV_KEYS_WIDE:
		part.v.wide += at;
		break;
	case SLABKV_KEYS_BYTES:
		part.v.bytes += (size_t)16 * at;
		break;
	case SLABKV_KEYS_TEXT:
		part.offsets = keys->offsets + at;
		break;
	}
	return part;
}

static int put_parts(const struct put *whole, const char *instance, const struct slabkv_keys *keys,
		     const struct slabkv_put_options *o, struct skv_arena *a,
		     struct skv_error *err);

/* A run of a put's blocks, to be put once more. */
struct again {
	struct slabkv_keys keys, before;
	struct slabkv_block *blocks;
	struct slabkv_io io;
	struct put p;
};

/* Blocks [at, at + n) with their bytes, without results. False: out of memory. */
static bool begin_again(struct again *g, const struct put *p, const struct slabkv_keys *keys,
			uint32_t at, uint32_t n, const struct slabkv_put_options *o,
			struct skv_arena *a)
{
	bool chain = !o || !SKV_HAS(o, independent) || !o->independent;

	*g = (struct again){ .keys = keys_from(keys, at, n), .io = { .size = sizeof g->io },
			     .blocks = skv_arena_calloc(a, n, sizeof *g->blocks) };
	g->p = (struct put){ .kv = p->kv, .blocks = g->blocks, .block_size = sizeof *g->blocks,
			     .io = &g->io };
	for (uint32_t i = 0; g->blocks && i < n; i++) {
		g->blocks[i].bufs = block(p, at + i)->bufs;
		g->blocks[i].n_bufs = block(p, at + i)->n_bufs;
	}
	if (chain && at > 0)
		g->before = keys_from(keys, at - 1, 1);
	g->keys.parent = !chain ? NULL : at > 0 ? &g->before : keys->parent;
	return g->blocks != NULL;
}

/* A run of `n` blocks that were written, from the `at`th on, into the copy instance. */
static void put_run(struct put *p, const struct slabkv_keys *keys, uint32_t at, uint32_t n,
		    const struct slabkv_put_options *o, struct skv_arena *a)
{
	struct slabkv_put_options same = { 0 };
	struct skv_error err = { 0 };
	struct again copies;

	if (!begin_again(&copies, p, keys, at, n, o, a))
		return;
	if (o)
		memcpy(&same, o, o->size < sizeof same ? o->size : sizeof same);
	same.size = sizeof same;
	same.flags = 0; /* the copies skip admission: the blocks were admitted already */
	if (put_parts(&copies.p, p->answer.res.copy_instance, &copies.keys, &same, a, &err) !=
	    SKV_OK)
		skv_log(SKV_LOG_DEBUG, "client", "no copies in %s: %s",
			p->answer.res.copy_instance, err.message);
	SKV_CHECK(copies.io.done <= n);
	p->io->copies += copies.io.done;
}

/* Puts copies. Only blocks whose bytes are committed have copies. */
static void put_copies(struct put *p, const struct slabkv_keys *keys,
		       const struct slabkv_put_options *o, struct skv_arena *a)
{
	const char *to = p->answer.res.copy_instance;
	struct skv_error ignored;
	uint32_t n;

	if (!to || !*to ||
	    skv_model_name_check(to, "copy_instance", &ignored) != SKV_OK)
		return;
	for (uint32_t at = 0; at < keys->n; at += n + 1) {
		for (n = 0; at + n < keys->n && block(p, at + n)->result == SLABKV_WRITTEN; n++)
			;
		if (n > 0)
			put_run(p, keys, at, n, o, a);
	}
}

/* None of a request is stored: it was deleted, or follows a block that was not admitted. */
static void refuse_all(const struct put *p, uint32_t n, enum slabkv_result result)
{
	for (uint32_t i = 0; i < n; i++)
		skv_block_at(p->blocks, p->block_size, i)->result = result;
	if (result == SLABKV_NOT_ADMITTED)
		p->io->not_admitted += n;
	else
		p->io->failed += n;
}

/* Returns true for a fault of the storage, so that another storage may work. */
static bool is_of_storage(int why)
{
	return why == SKV_E_IO || why == SKV_E_NO_SPACE || why == SKV_E_UNAVAILABLE ||
	       why == SKV_E_FOREIGN || why == SKV_E_CORRUPT || why == SKV_E_TIMEOUT;
}

/* Where a block that is ours to write lies; all slots of a session are in one storage. */
static const char *storage_of(const struct put *p, uint32_t b)
{
	const struct skv_start_res *res = &p->answer.res;
	uint32_t spec = 0;

	while (spec + 1 < res->n_specs && location(p, b, spec)->length == 0)
		spec++;
	SKV_CHECK(res->files.n > 0 && res->outcome[b] == SKV_START_WRITE);
	return res->files.v[location(p, b, spec)->file].storage;
}

/* A block's result from another storage in place of the first one. */
static void replace_result(struct put *p, struct slabkv_block *to, const struct slabkv_block *from)
{
	if ((to->result != SLABKV_FAILED && to->result != SLABKV_BUSY) ||
	    from->result == SLABKV_FAILED)
		return;
	p->io->failed -= to->result == SLABKV_FAILED;
	p->io->busy -= to->result == SLABKV_BUSY;
	to->result = from->result;
	to->why = from->why;
	p->io->failed += to->result == SLABKV_DELETED;
	p->io->busy += to->result == SLABKV_BUSY;
	p->io->done += to->result == SLABKV_WRITTEN;
	p->io->exists += to->result == SLABKV_EXISTS;
	p->io->not_admitted += to->result == SLABKV_NOT_ADMITTED;
}

static int put_blocks(struct put *p, const char *instance, const struct slabkv_keys *keys,
		      const struct slabkv_put_options *o, struct skv_arena *a,
		      struct skv_error *err);

/* Puts blocks that a storage did not take on another one of the group, if time is left. */
static void put_elsewhere(struct put *p, const char *instance, const struct slabkv_keys *keys,
			  const struct slabkv_put_options *o, struct skv_arena *a,
			  struct skv_error *err)
{
	uint32_t at = keys->n, end = 0;
	struct skv_error why = { 0 };
	const char *storage;
	struct again other;

	for (uint32_t i = 0; i < keys->n; i++) {
		if (block(p, i)->result != SLABKV_FAILED || !is_of_storage(block(p, i)->why))
			continue;
		at = i < at ? i : at;
		end = i + 1;
	}
	if (at >= end || p->n_avoid == SKV_MAX_AVOID ||
	    !begin_again(&other, p, keys, at, end - at, o, a))
		return;
	storage = storage_of(p, at);
	memcpy(other.p.avoid, p->avoid, sizeof p->avoid);
	other.p.n_avoid = p->n_avoid + 1;
	other.p.avoid[p->n_avoid] = storage;
	skv_log(SKV_LOG_DEBUG, "client", "put: storage %s did not take it: %s", storage,
		err->message);
	if (put_blocks(&other.p, instance, &other.keys, o, a, &why) != SKV_OK)
		return; /* the result of the first storage counts */
	for (uint32_t i = at; i < end; i++)
		replace_result(p, block(p, i), &other.blocks[i - at]);
	p->io->bytes += other.io.bytes;
	p->io->ios += other.io.ios;
	p->io->copies += other.io.copies;
	*err = p->io->failed ? *err : why;
}

static int put_blocks(struct put *p, const char *instance, const struct slabkv_keys *keys,
		      const struct slabkv_put_options *o, struct skv_arena *a,
		      struct skv_error *err)
{
	const struct skv_session_how how = { .avoid = p->avoid, .n_avoid = p->n_avoid };
	int rc = skv_session_start(p->kv, instance, keys, o, &how, a, &p->answer, err);

	if (rc == SKV_E_SESSION_ENDED) { /* deleted while the start waited for room */
		refuse_all(p, keys->n, SLABKV_DELETED);
		*err = (struct skv_error){ 0 };
		return SKV_OK;
	}
	if (rc != SKV_OK)
		return rc;
	if (p->answer.res.n_write == 0) {
		settle_blocks(p, SKV_OK);
		return SKV_OK;
	}
	rc = write_session(p, a, err);
	/* release the slots now, not at the deadline, except those that a write may still reach */
	if (rc == SKV_E_NOMEM)
		(void)skv_session_abort(p->kv, p->answer.res.session, !p->t.in_flight, NULL);
	settle_blocks(p, rc);
	skv_transfer_end(&p->t);
	if (rc == SKV_OK) {
		put_copies(p, keys, o, a);
		put_elsewhere(p, instance, keys, o, a, err);
	}
	return rc;
}

/* Says why of blocks that failed with the call, not by themselves. */
static void fail_rest(struct slabkv_block *blocks, size_t block_size, uint32_t n, int rc)
{
	for (uint32_t i = 0; rc != SKV_OK && i < n; i++) {
		struct slabkv_block *b = skv_block_at(blocks, block_size, i);

		if (b->result == SLABKV_FAILED && !b->why)
			b->why = rc;
	}
}

/* In one session, or, where that is too much for the manager, in halves: a group allows only so
 * many bytes of its capacity at a time. */
static int put_parts(const struct put *whole, const char *instance, const struct slabkv_keys *keys,
		     const struct slabkv_put_options *o, struct skv_arena *a,
		     struct skv_error *err)
{
	bool chain = !o || !SKV_HAS(o, independent) || !o->independent;
	struct put p = *whole;
	struct skv_error later = { 0 };
	struct slabkv_keys first, rest, last;
	uint32_t half;
	int rc = put_blocks(&p, instance, keys, o, a, err);

	if (rc != SKV_E_TOO_LARGE || keys->n < 2 || keys->n > SLABKV_MAX_KEYS)
		return rc;
	*err = (struct skv_error){ 0 };
	half = keys->n / 2;
	first = keys_from(keys, 0, half);
	first.parent = keys->parent;
	rest = keys_from(keys, half, keys->n - half);
	last = keys_from(keys, half - 1, 1);
	rest.parent = chain ? &last : NULL;
	rc = put_parts(whole, instance, &first, o, a, err);
	if (rc != SKV_OK)
		return rc;
	p = *whole;
	p.blocks = skv_block_at(whole->blocks, whole->block_size, half);
	if (chain && skv_block_at(whole->blocks, whole->block_size, half - 1)->result ==
			     SLABKV_NOT_ADMITTED) {
		refuse_all(&p, rest.n, SLABKV_NOT_ADMITTED);
		return SKV_OK;
	}
	rc = put_parts(&p, instance, &rest, o, a, &later);
	fail_rest(p.blocks, p.block_size, rest.n, rc);
	if (err->status == SKV_OK)
		*err = later;
	return SKV_OK; /* the first blocks were stored */
}

static void fail_all(struct slabkv_block *blocks, size_t block_size, const struct slabkv_keys *keys,
		     int why)
{
	for (uint32_t b = 0; keys && b < keys->n; b++) {
		skv_block_at(blocks, block_size, b)->result = SLABKV_FAILED;
		skv_block_at(blocks, block_size, b)->why = why;
	}
}

int skv_put_blocks(struct slabkv *kv, const char *instance, const struct slabkv_keys *keys,
		   const struct slabkv_put_options *o, struct slabkv_block *blocks,
		   size_t block_size, struct slabkv_io *io, struct skv_error *err)
{
	struct put p = { .kv = kv, .blocks = blocks, .block_size = block_size, .io = io };
	struct skv_arena a;
	struct skv_pins pins;
	int rc;

	fail_all(blocks, block_size, keys, SLABKV_OK);
	skv_arena_init(&a);
	skv_deadline_of_thread(o && kv->io_timeout_ms && o->deadline_ms > kv->io_timeout_ms
				       ? o->deadline_ms
				       : kv->io_timeout_ms);
	rc = skv_pins_take(kv->memory, blocks, block_size, keys ? keys->n : 0, &a, &pins);
	if (rc == SKV_OK)
		rc = put_parts(&p, instance, keys, o, &a, err);
	if (rc == SKV_OK)
		skv_transfer_tell(kv, "put", io->failed, err);
	skv_deadline_of_thread(0);
	skv_pins_drop(kv->memory, &pins);
	skv_arena_destroy(&a);
	fail_rest(blocks, block_size, keys ? keys->n : 0, rc);
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
