/*
 * transfer.c - the bytes of one get or put: opens the files, merges the pieces, moves them, syncs.
 *
 * A `struct kvb_transfer` belongs to one call on one thread; what is shared (mounts, open files)
 * has its own locks. Nothing here fails the whole call but lack of memory: a file that is not
 * there, a location outside of it or an I/O error becomes the status of the pieces concerned.
 */
#include "client.h"

#include <string.h>

int kvb_transfer_begin(struct kvb_transfer *t, struct kvblock *kv, struct kvb_arena *a,
		       const struct kvb_files *files, uint64_t max)
{
	*t = (struct kvb_transfer){ .kv = kv, .arena = a, .files = files };
	t->open = kvb_arena_calloc(a, (size_t)files->n + 1, sizeof(struct kvb_slab_file *));
	t->dropped = kvb_arena_calloc(a, (size_t)files->n + 1, sizeof(struct kvb_slab_file *));
	t->why = kvb_arena_calloc(a, (size_t)files->n + 1, sizeof *t->why);
	t->pieces = kvb_arena_calloc(a, max + 1, sizeof *t->pieces);
	return t->open && t->dropped && t->why && t->pieces ? KVB_OK : KVB_E_NOMEM;
}

/* Remembers the first thing that went wrong. */
static int note(struct kvb_transfer *t, const struct kvb_error *err, int status)
{
	if (t->first.status == KVB_OK) {
		t->first = *err;
		t->first.status = status;
	}
	return status;
}

void kvb_transfer_add(struct kvb_transfer *t, uint32_t block, uint32_t spec,
		      const struct kvb_location *loc, const struct kvblock_block *to, bool exact)
{
	static const struct kvblock_buf none;
	const struct kvblock_buf *buf = to->bufs && spec < to->n_bufs ? &to->bufs[spec] : &none;
	struct kvb_piece *p = &t->pieces[t->n_pieces++];
	struct kvb_error e = { 0 };

	*p = (struct kvb_piece){ .block = block,
				 .spec = spec,
				 .file_index = loc->file,
				 .offset = loc->offset,
				 .length = loc->length,
				 .data = buf->data };
	if (!buf->data || buf->size < loc->length || (exact && buf->size != loc->length)) {
		kvb_fail(&e, KVB_E_INVALID, "bufs",
			 "block %u, spec %u: a buffer of %llu bytes, not %llu", block, spec,
			 (unsigned long long)loc->length,
			 buf->data ? (unsigned long long)buf->size : 0ull);
		p->status = note(t, &e, KVB_E_INVALID);
	} else if (loc->length == 0) {
		p->status = KVB_E_INTERNAL;
	}
}

int kvb_transfer_mount(struct kvblock *kv, const char *name, const uint8_t uuid[16],
		       struct kvb_mount **out, struct kvb_error *err)
{
	struct kvblock_storage_info *info = NULL;
	int rc = kvb_mount_acquire(kv->mounts, uuid, NULL, out, err);

	if (rc == KVB_OK || kvb_mounts_named(kv->mounts))
		return rc;
	rc = kvb_object_storage(kv, name, &info, err);
	if (rc != KVB_OK)
		return rc;
	if (info->spec.root && info->spec.root[0] == '/')
		rc = kvb_mount_acquire(kv->mounts, uuid, info->spec.root, out, err);
	else
		rc = kvb_fail(err, KVB_E_UNAVAILABLE, NULL, "storage %s has no directory", name);
	kvblock_free(info);
	return rc;
}

/* Opens file i anew on the directory where its storage is now. The
 * directory that was known may be a mount that is gone: the first failure makes that forgotten. */
static int prove_file(struct kvb_transfer *t, uint32_t i, const uint8_t uuid[16], bool write, struct kvb_error *err)
{
	const struct kvb_file_ref *ref = &t->files->v[i];
	struct kvblock *kv = t->kv;
	struct kvb_mount *mount;
	int rc = KVB_OK;

	for (int tries = 0; tries < 2; tries++) {
		rc = kvb_transfer_mount(kv, ref->storage, uuid, &mount, err);
		if (rc != KVB_OK)
			return rc;
		rc = kvb_files_open(kv->files, mount, ref->path, write, &t->open[i], err);
		kvb_mount_release(kv->mounts, mount);
		if (rc != KVB_E_IO && rc != KVB_E_UNAVAILABLE)
			break;
	}
	return rc;
}

static int open_file(struct kvb_transfer *t, uint32_t i, bool write)
{
	const struct kvb_file_ref *ref = &t->files->v[i];
	struct kvblock *kv = t->kv;
	struct kvb_error e = { 0 };
	uint8_t uuid[16];
	int rc;

	if (kvb_uuid_from_text(ref->uuid, uuid) != KVB_OK) {
		kvb_fail(&e, KVB_E_INTERNAL, "files", "the manager named a storage without a uuid");
		return note(t, &e, KVB_E_INTERNAL);
	}
	t->open[i] = kvb_files_find(kv->files, uuid, ref->path, write);
	if (t->open[i])
		return KVB_OK;
	/* The directory of this storage was not found a moment ago: do not ask once per file. */
	for (uint32_t j = 0; j < i; j++)
		if (t->why[j] != KVB_OK && t->why[j] != KVB_PENDING &&
		    strcmp(t->files->v[j].uuid, ref->uuid) == 0)
			return t->why[j];
	rc = prove_file(t, i, uuid, write, &e);
	if (rc != KVB_OK)
		return note(t, &e, rc);
	return KVB_OK;
}

/* Gives a piece its open file, or the reason why it has none. */
static void resolve(struct kvb_transfer *t, struct kvb_piece *p)
{
	const struct kvb_slab_file *f = t->open[p->file_index];
	struct kvb_error e = { 0 };

	if (!f) {
		p->status = t->why[p->file_index];
	} else if (!kvb_files_in_bounds(f, p->offset, p->length)) {
		kvb_fail(&e, KVB_E_CORRUPT, "offset",
			 "the manager named a place outside of slab file %s", f->path);
		p->status = note(t, &e, KVB_E_CORRUPT);
	} else {
		p->file = f->file;
	}
}

int kvb_transfer_plan(struct kvb_transfer *t, bool write)
{
	for (uint32_t i = 0; i < t->files->n; i++)
		t->why[i] = KVB_PENDING; /* no piece needs it so far */
	for (uint32_t i = 0; i < t->n_pieces; i++) {
		struct kvb_piece *p = &t->pieces[i];

		if (p->status != KVB_OK)
			continue;
		if (t->why[p->file_index] == KVB_PENDING)
			t->why[p->file_index] = open_file(t, p->file_index, write);
		resolve(t, p);
	}
	return kvb_plan_make(t->pieces, t->n_pieces, t->arena, &t->plan);
}

/* Buffers of a pool that somebody gives back meanwhile stay away until the engine is done. */
static void pin(struct kvb_transfer *t)
{
	for (uint32_t i = 0; i < t->n_pieces; i++)
		t->pieces[i].pinned = kvb_memory_pin(t->kv->memory, t->pieces[i].data,
						     t->pieces[i].length);
}

static void unpin(struct kvb_transfer *t)
{
	for (uint32_t i = 0; i < t->n_pieces; i++)
		kvb_memory_unpin(t->kv->memory, t->pieces[i].pinned, t->pieces[i].data,
				 t->pieces[i].length);
}

/* One pass over the plan; the pieces get their results. */
static void move(struct kvb_transfer *t, bool write, const struct kvb_deadline *by)
{
	if (t->plan.n_runs == 0)
		return;
	if (write)
		kvb_engine_write(t->kv->engine, t->plan.runs, t->plan.n_runs, by);
	else
		kvb_engine_read(t->kv->engine, t->plan.runs, t->plan.n_runs, by);
	kvb_plan_settle(&t->plan);
	for (uint32_t i = 0; i < t->plan.n_runs; i++) {
		t->ios += t->plan.runs[i].ios ? t->plan.runs[i].ios : 1;
		t->loose |= t->plan.runs[i].loose;
	}
}

/* Opens the files anew of runs that may be tried once more. False: there are none. */
static bool prepare_again(struct kvb_transfer *t, bool write)
{
	bool any = false;

	for (uint32_t i = 0; i < t->plan.n_order; i++) {
		struct kvb_piece *p = t->plan.order[i];
		uint32_t f = p->file_index;

		if (!t->plan.runs[p->run].again || p->done == p->length)
			continue;
		if (t->open[f] && t->open[f]->file == p->file) {
			kvb_files_forget(t->kv->files, t->open[f]);
			t->dropped[f] = t->open[f];
			t->open[f] = NULL;
			t->why[f] = open_file(t, f, write);
		}
		p->status = KVB_OK;
		p->done = 0;
		p->file = NULL;
		resolve(t, p);
		any |= p->status == KVB_OK;
	}
	return any && kvb_plan_make(t->pieces, t->n_pieces, t->arena, &t->plan) == KVB_OK;
}

void kvb_transfer_run(struct kvb_transfer *t, bool write, const struct kvb_deadline *by)
{
	struct kvb_error e = { 0 };

	pin(t);
	move(t, write, by);
	if (prepare_again(t, write))
		move(t, write, by);
	unpin(t);
	for (uint32_t i = 0; i < t->n_pieces; i++) {
		struct kvb_piece *p = &t->pieces[i];

		if (!p->file || p->done == p->length)
			continue;
		/* Short or failed: prove the file anew before it is used again. */
		kvb_files_forget(t->kv->files, t->open[p->file_index]);
		if (p->status != KVB_OK && t->first.status == KVB_OK) {
			kvb_fail(&e, p->status, NULL, "%s %s at %llu: %s",
				 write ? "writing" : "reading", t->open[p->file_index]->path,
				 (unsigned long long)p->offset, kvb_status_text(p->status));
			note(t, &e, p->status);
		}
	}
}

void kvb_transfer_sync(struct kvb_transfer *t)
{
	for (uint32_t i = 0; i < t->files->n; i++) {
		struct kvb_error e = { 0 };
		bool touched = false;
		int rc;

		for (uint32_t k = 0; k < t->n_pieces && !touched; k++)
			touched = t->pieces[k].file_index == i && t->pieces[k].status == KVB_OK;
		if (!t->open[i] || !touched)
			continue;
		rc = kvb_engine_sync(t->kv->engine, t->open[i]->file);
		if (rc == KVB_OK)
			continue;
		kvb_fail(&e, rc, NULL, "syncing %s: %s", t->open[i]->path, kvb_status_text(rc));
		note(t, &e, rc);
		kvb_files_forget(t->kv->files, t->open[i]);
		for (uint32_t k = 0; k < t->n_pieces; k++)
			if (t->pieces[k].file_index == i && t->pieces[k].status == KVB_OK)
				t->pieces[k].status = rc;
	}
}

void kvb_transfer_end(struct kvb_transfer *t)
{
	for (uint32_t i = 0; t->open && t->dropped && i < t->files->n; i++) {
		if (t->open[i])
			kvb_files_release(t->kv->files, t->open[i]);
		if (t->dropped[i])
			kvb_files_release(t->kv->files, t->dropped[i]);
	}
}
