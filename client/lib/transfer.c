/*
 * transfer.c - the bytes of one get or put: opens the files, merges the pieces, moves them, syncs.
 *
 * A `struct skv_transfer` belongs to one call on one thread; what is shared (mounts, open files)
 * has its own locks. Nothing here fails the whole call but lack of memory: a file that is not
 * there, a location outside of it or an I/O error becomes the status of the pieces concerned.
 */
#include "client.h"
#include "node.h"

#include <string.h>

#include <skv/hash.h>
#include <skv/log.h>

#define TELL_MS 10000u /* between two lines of the log about failed blocks */

int skv_transfer_begin(struct skv_transfer *t, struct slabkv *kv, struct skv_arena *a,
		       const struct skv_files *files, uint64_t max)
{
	*t = (struct skv_transfer){ .kv = kv, .arena = a, .files = files, .max_pieces = max };
	t->open = skv_arena_calloc(a, (size_t)files->n + 1, sizeof(struct skv_slab_file *));
	t->dropped = skv_arena_calloc(a, (size_t)files->n + 1, sizeof(struct skv_slab_file *));
	t->why = skv_arena_calloc(a, (size_t)files->n + 1, sizeof *t->why);
	t->pieces = skv_arena_calloc(a, max + 1, sizeof *t->pieces);
	return t->open && t->dropped && t->why && t->pieces ? SKV_OK : SKV_E_NOMEM;
}

/* Records the first error. */
static int note(struct skv_transfer *t, const struct skv_error *err, int status)
{
	if (t->first.status == SKV_OK) {
		t->first = *err;
		t->first.status = status;
	}
	return status;
}

void skv_transfer_add(struct skv_transfer *t, uint32_t block, uint32_t spec,
		      const struct skv_location *loc, const struct slabkv_block *to, bool exact,
		      bool prove)
{
	static const struct slabkv_buf none;
	uint32_t at = t->buffer ? t->buffer[spec] : spec;
	const struct slabkv_buf *buf = to->bufs && at < to->n_bufs ? &to->bufs[at] : &none;
	struct skv_piece *p = &t->pieces[t->n_pieces];
	struct skv_error e = { 0 };

	if (!SKV_CHECK(t->n_pieces < t->max_pieces) || !SKV_CHECK(loc->file < t->files->n))
		return; /* the handle is out of use: no block is a hit, none is committed */
	t->n_pieces++;

	*p = (struct skv_piece){ .block = block,
				 .spec = spec,
				 .file_index = loc->file,
				 .offset = loc->offset,
				 .length = loc->length,
				 .data = buf->data,
				 .prove = prove,
				 .checksum = loc->checksum };
	if (!buf->data || buf->size < loc->length || (exact && buf->size != loc->length)) {
		skv_fail(&e, SKV_E_INVALID, "bufs",
			 "block %u, spec %u: a buffer of %llu bytes, not %llu", block, at,
			 (unsigned long long)loc->length,
			 buf->data ? (unsigned long long)buf->size : 0ull);
		p->status = note(t, &e, SKV_E_INVALID);
	} else if (loc->length == 0) {
		p->status = SKV_E_INTERNAL;
	}
}

/* Where the manager says that the storage is; `named` is the status of the directories that the
 * caller named. */
static int mount_told(struct slabkv *kv, const struct skv_storage_spec *s, const uint8_t uuid[16],
		      int named, struct skv_mount **out, struct skv_error *err)
{
	if (strcmp(s->type, "memory") == 0 && s->n_fs_master > 0) {
		const struct skv_node_at at = { s->fs_master[0], kv->token, kv->http, kv->rdma };

		return skv_mount_acquire_node(kv->mounts, uuid, &at, out, err);
	}
	if (skv_mounts_named(kv->mounts)) {
		skv_log(SKV_LOG_DEBUG, "client", "%s: in none of the named directories", s->name);
		return named;
	}
	if (s->root[0] == '/')
		return skv_mount_acquire(kv->mounts, uuid, s->root, out, err);
	return skv_fail(err, SKV_E_UNAVAILABLE, NULL, "storage %s has no directory", s->name);
}

int skv_transfer_mount(struct slabkv *kv, const char *name, const uint8_t uuid[16],
		       struct skv_mount **out, struct skv_error *err)
{
	int rc = skv_mount_acquire(kv->mounts, uuid, NULL, out, err);
	struct skv_storage_view view;
	struct skv_arena arena;
	struct skv_error why;

	if (rc == SKV_OK)
		return rc;
	skv_arena_init(&arena);
	if (skv_object_storage(kv, name, &arena, &view, &why) == SKV_OK) {
		rc = mount_told(kv, &view.spec, uuid, rc, out, err);
	} else if (!skv_mounts_named(kv->mounts)) { /* named directories need no manager */
		*err = why;
		rc = why.status;
	}
	skv_arena_destroy(&arena);
	return rc;
}

/* Opens file i again in the directory where its storage is now. The known directory may be a mount
 * that is gone: the first failure drops it. */
static int prove_file(struct skv_transfer *t, uint32_t i, const uint8_t uuid[16], bool write,
		      struct skv_error *err)
{
	const struct skv_file_ref *ref = &t->files->v[i];
	struct slabkv *kv = t->kv;
	struct skv_mount *mount;
	int rc = SKV_OK;

	for (int tries = 0; tries < 2; tries++) {
		rc = skv_transfer_mount(kv, ref->storage, uuid, &mount, err);
		if (rc != SKV_OK)
			return rc;
		rc = skv_files_open(kv->files, mount, ref->path, write, &t->open[i], err);
		skv_mount_release(kv->mounts, mount);
		if (rc != SKV_E_IO && rc != SKV_E_UNAVAILABLE)
			break;
	}
	return rc;
}

static int open_file(struct skv_transfer *t, uint32_t i, bool write)
{
	const struct skv_file_ref *ref = &t->files->v[i];
	struct slabkv *kv = t->kv;
	struct skv_error e = { 0 };
	uint8_t uuid[16];
	int rc;

	if (skv_uuid_from_text(ref->uuid, uuid) != SKV_OK) {
		skv_fail(&e, SKV_E_INTERNAL, "files", "the manager named a storage without a uuid");
		return note(t, &e, SKV_E_INTERNAL);
	}
	t->open[i] = skv_files_find(kv->files, uuid, ref->path, write);
	if (t->open[i])
		return SKV_OK;
	/* The directory of this storage was just not found: do not ask again for each file. */
	for (uint32_t j = 0; j < i; j++)
		if (t->why[j] != SKV_OK && t->why[j] != SKV_PENDING &&
		    strcmp(t->files->v[j].uuid, ref->uuid) == 0)
			return t->why[j];
	rc = prove_file(t, i, uuid, write, &e);
	if (rc != SKV_OK)
		return note(t, &e, rc);
	SKV_CHECK(t->open[i] && t->open[i]->write == write &&
		  memcmp(t->open[i]->uuid, uuid, 16) == 0);
	return SKV_OK;
}

/* Gives a piece its open file, or the error why there is none. */
static void resolve(struct skv_transfer *t, struct skv_piece *p)
{
	const struct skv_slab_file *f = t->open[p->file_index];
	struct skv_error e = { 0 };

	SKV_CHECK(p->file_index < t->files->n && !p->file);

	if (!f) {
		p->status = t->why[p->file_index];
	} else if (!skv_files_in_bounds(f, p->offset, p->length)) {
		skv_fail(&e, SKV_E_CORRUPT, "offset",
			 "the manager named an offset outside slab file %s", f->path);
		p->status = note(t, &e, SKV_E_CORRUPT);
	} else {
		p->file = f->file;
	}
}

int skv_transfer_plan(struct skv_transfer *t, bool write)
{
	t->write = write;
	for (uint32_t i = 0; i < t->files->n; i++)
		t->why[i] = SKV_PENDING; /* no piece needs it so far */
	for (uint32_t i = 0; i < t->n_pieces; i++) {
		struct skv_piece *p = &t->pieces[i];

		if (p->status != SKV_OK)
			continue;
		if (t->why[p->file_index] == SKV_PENDING)
			t->why[p->file_index] = open_file(t, p->file_index, write);
		resolve(t, p);
	}
	return skv_plan_make(t->pieces, t->n_pieces, t->arena, &t->plan);
}

uint64_t skv_transfer_sum(struct skv_piece *p)
{
	if (!p->summed)
		p->sum = skv_checksum(p->data, p->length);
	p->summed = true;
	return p->sum;
}

/* Uses the engine's waiting time for the checksum of the next piece, as soon as its bytes are
 * there. */
static bool sum_next(void *ctx)
{
	struct skv_transfer *t = ctx;

	while (t->next_sum < t->plan.n_order && !t->plan.order[t->next_sum]->prove)
		t->next_sum++;
	if (t->next_sum == t->plan.n_order)
		return false;

	struct skv_piece *p = t->plan.order[t->next_sum];

	SKV_CHECK(p->run < t->plan.n_runs && p->status == SKV_OK);
	if (!t->write && t->plan.runs[p->run].arrived < p->run_at + p->length)
		return false;
	skv_transfer_sum(p);
	t->next_sum++;
	return true;
}

/* Where the page cache may be stale, it is not asked for what no checksum proves, and a part of a
 * page is not written over old bytes. A scrub reads the storage, not this machine's memory. */
static void drop_stale(struct skv_transfer *t)
{
	for (uint32_t i = 0; i < t->plan.n_runs && t->past_cache; i++) {
		const struct skv_io_run *r = &t->plan.runs[i];

		if (!r->file->engine)
			skv_engine_drop_cache(r->file, r->offset, r->length);
	}
	for (uint32_t i = 0; i < t->plan.n_order; i++) {
		const struct skv_piece *p = t->plan.order[i];

		if (p->file->stale && (t->write || !p->prove))
			skv_engine_drop_cache(p->file, p->offset, p->length);
	}
}

/* Makes a pass over the plan; the pieces get their results. */
static void move(struct skv_transfer *t, const struct skv_io_call *until)
{
	struct skv_io_call by = { until->clock, until->at_ms, until->until_ms, sum_next, t };

	SKV_CHECK(t->plan.n_order <= t->n_pieces && t->plan.n_runs <= t->plan.n_order);
	if (t->plan.n_runs == 0)
		return;
	drop_stale(t);
	t->next_sum = 0;
	if (t->write)
		skv_engine_write(t->kv->engine, t->plan.runs, t->plan.n_runs, &by);
	else
		skv_engine_read(t->kv->engine, t->plan.runs, t->plan.n_runs, &by);
	skv_plan_settle(&t->plan);
	for (uint32_t i = 0; i < t->plan.n_runs; i++) {
		t->ios += t->plan.runs[i].ios ? t->plan.runs[i].ios : 1;
		t->in_flight |= t->plan.runs[i].in_flight;
	}
}

/* Opens the files anew of runs that may be tried once more. False: there are none. */
static bool prepare_again(struct skv_transfer *t)
{
	bool any = false;

	for (uint32_t i = 0; i < t->plan.n_order; i++) {
		struct skv_piece *p = t->plan.order[i];
		uint32_t f = p->file_index;

		if (!SKV_CHECK(p->run < t->plan.n_runs) || !t->plan.runs[p->run].again ||
		    p->done == p->length)
			continue;
		if (t->open[f] && t->open[f]->file == p->file) {
			skv_files_forget(t->kv->files, t->open[f]);
			t->dropped[f] = t->open[f];
			t->open[f] = NULL;
			t->why[f] = open_file(t, f, t->write);
		}
		p->status = SKV_OK;
		p->done = 0;
		p->summed &= t->write; /* the checksum of bytes that are read again starts anew */
		p->file = NULL;
		resolve(t, p);
		any |= p->status == SKV_OK;
	}
	return any && skv_plan_make(t->pieces, t->n_pieces, t->arena, &t->plan) == SKV_OK;
}

/* Drops the cached pages of pieces that were read with a wrong checksum, and plans to read these
 * once more: another host may have written their slots since this one cached them. Not while an
 * abandoned request may still bring bytes. False: there are none. */
static bool prepare_past_cache(struct skv_transfer *t)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->n_pieces && !t->write && !t->in_flight; i++) {
		struct skv_piece *p = &t->pieces[i];

		if (!p->prove || p->status != SKV_OK || p->done < p->length || !p->file ||
		    p->file->engine || skv_transfer_proves(p))
			continue;
		skv_engine_drop_cache(p->file, p->offset, p->length);
		p->done = 0;
		p->summed = false;
		n++;
	}
	if (n == 0)
		return false;
	skv_log(SKV_LOG_DEBUG, "client", "pieces read again, past the page cache: %u", n);
	return skv_plan_make(t->pieces, t->n_pieces, t->arena, &t->plan) == SKV_OK;
}

/* The one that the piece was read from or written to. When others of the file were tried once more,
 * that is the dropped one, already forgotten; there may be no other. */
static struct skv_slab_file *file_of(const struct skv_transfer *t, const struct skv_piece *p)
{
	struct skv_slab_file *now = t->open[p->file_index];
	struct skv_slab_file *f = now && now->file == p->file ? now : t->dropped[p->file_index];

	SKV_CHECK(f && f->file == p->file);
	return f;
}

void skv_transfer_run(struct skv_transfer *t, const struct skv_io_call *by)
{
	struct skv_slab_file *f;
	struct skv_error e = { 0 };

	move(t, by);
	if (prepare_again(t))
		move(t, by);
	if (prepare_past_cache(t))
		move(t, by);
	for (uint32_t i = 0; i < t->n_pieces; i++) {
		struct skv_piece *p = &t->pieces[i];

		SKV_CHECK(p->done <= p->length);
		if (!p->file || p->done == p->length)
			continue;
		/* Short or failed: prove the file anew before it is used again. */
		f = file_of(t, p);
		if (f == t->open[p->file_index])
			skv_files_forget(t->kv->files, f);
		if (p->status != SKV_OK && t->first.status == SKV_OK) {
			skv_fail(&e, p->status, NULL, "%s %s at %llu: %s",
				 t->write ? "writing" : "reading", f->path,
				 (unsigned long long)p->offset, skv_status_text(p->status));
			note(t, &e, p->status);
		}
	}
}

void skv_transfer_sync(struct skv_transfer *t)
{
	for (uint32_t i = 0; i < t->files->n; i++) {
		struct skv_error e = { 0 };
		bool touched = false;
		int rc;

		for (uint32_t k = 0; k < t->n_pieces && !touched; k++)
			touched = t->pieces[k].file_index == i && t->pieces[k].status == SKV_OK;
		if (!t->open[i] || !touched)
			continue;
		rc = skv_engine_sync(t->kv->engine, t->open[i]->file);
		if (rc == SKV_OK)
			continue;
		skv_fail(&e, rc, NULL, "syncing %s: %s", t->open[i]->path, skv_status_text(rc));
		note(t, &e, rc);
		skv_files_forget(t->kv->files, t->open[i]);
		for (uint32_t k = 0; k < t->n_pieces; k++)
			if (t->pieces[k].file_index == i && t->pieces[k].status == SKV_OK)
				t->pieces[k].status = rc;
	}
}

void skv_transfer_end(struct skv_transfer *t)
{
	for (uint32_t i = 0; t->open && t->dropped && i < t->files->n; i++) {
		if (t->open[i])
			skv_files_release(t->kv->files, t->open[i]);
		if (t->dropped[i])
			skv_files_release(t->kv->files, t->dropped[i]);
	}
}

void skv_transfer_tell(struct slabkv *kv, const char *call, uint32_t n,
		       const struct skv_error *first)
{
	const uint64_t now = skv_now_ms(kv->clock);
	uint64_t again = atomic_load_explicit(&kv->failed_again_ms, memory_order_relaxed);
	uint64_t untold;

	if (n == 0 || first->status == SKV_OK)
		return;
	untold = atomic_fetch_add_explicit(&kv->failed_untold, n, memory_order_relaxed) + n;
	SKV_CHECK(untold >= n);
	if (now < again || !atomic_compare_exchange_strong_explicit(
				   &kv->failed_again_ms, &again, now + TELL_MS,
				   memory_order_relaxed, memory_order_relaxed))
		return;
	atomic_fetch_sub_explicit(&kv->failed_untold, untold, memory_order_relaxed);
	skv_log(SKV_LOG_WARN, "client", "%s: blocks failed: %llu, the last because: %s", call,
		(unsigned long long)untold,
		first->message[0] ? first->message : skv_status_text(first->status));
}
