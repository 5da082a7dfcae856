/*
 * late.c - the part of a transfer whose file system may hang, on a thread of its own.
 *
 * A thread that waits for a file system of the network can be neither woken nor ended, and the
 * kernel keeps the buffers of its request. So such a thread owns everything it uses: its pieces,
 * the bytes that they move, references to the open files, and the handle, which stays until the
 * last of them has ended. The caller copies its bytes in and out, and leaves the thread behind at
 * the deadline.
 *
 * Applies to storages that are not known to be on a local file system. The first use of a storage
 * opens its directory on such a thread, which also determines the type of file system.
 *
 * Lock: late.lock, of one part. It protects `done` and `left`; all else belongs to the thread until
 * `done`, then to the caller, or, if the caller has `left`, to the thread again.
 */
#include "client.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

#include <skv/log.h>
#include <skv/mem.h>

#define ALIGN UINT64_C(4096)      /* of the bytes of a piece, for O_DIRECT */
#define MOST (UINT64_C(256) << 20) /* bytes of one part; a larger transfer uses several parts */

struct skv_late {
	struct slabkv *kv; /* with a reference */
	struct skv_arena arena;
	struct skv_transfer t;
	struct skv_io_call by;
	struct skv_files files;
	uint8_t uuid[16]; /* of its storage */
	bool write;
	uint32_t *of; /* [t.n_pieces]: which of the caller's; in the caller's memory */
	uint8_t *bytes;   /* of all pieces */
	int rc;
	pthread_t thread;
	struct skv_mutex lock;
	struct skv_cond ended;
	bool done, left;
};

static void release(struct skv_late *l)
{
	struct slabkv *kv = l->kv;

	skv_transfer_end(&l->t);
	skv_arena_destroy(&l->arena);
	skv_free(l->bytes);
	skv_cond_destroy(&l->ended);
	skv_mutex_destroy(&l->lock);
	skv_free(l);
	skv_handle_drop(kv);
}

/* Opens the storage's directory, or moves its pieces. */
static void work(struct skv_late *l)
{
	struct skv_mount *mount;

	SKV_CHECK(l->files.n > 0);
	if (l->t.n_pieces == 0) {
		l->rc = skv_transfer_mount(l->kv, l->files.v[0].storage, l->uuid, &mount,
					   &l->t.first);
		if (l->rc == SKV_OK) {
			skv_error_clear(&l->t.first); /* the last directory was the right one */
			skv_mount_release(l->kv->mounts, mount);
		}
		return;
	}
	l->rc = skv_transfer_plan(&l->t, l->write);
	if (l->rc != SKV_OK)
		return;
	skv_transfer_run(&l->t, &l->by);
	if (l->write)
		skv_transfer_sync(&l->t);
}

static void *run(void *late)
{
	struct skv_late *l = late;
	bool left;

	skv_handle_of_thread(l->kv);
	work(l);
	skv_mutex_lock(&l->lock);
	l->done = true;
	left = l->left;
	skv_cond_signal(&l->ended);
	skv_mutex_unlock(&l->lock);
	if (left)
		release(l);
	return NULL;
}

static char *copy_text(struct skv_late *l, const char *s)
{
	return s ? skv_arena_strndup(&l->arena, s, strlen(s)) : NULL;
}

/* The caller's table of files, in memory of its own. */
static int copy_files(struct skv_late *l, const struct skv_files *from)
{
	struct skv_file_ref *v = skv_arena_calloc(&l->arena, from->n, sizeof *v);

	l->files = (struct skv_files){ v, from->n };
	for (uint32_t i = 0; v && i < from->n; i++) {
		v[i] = from->v[i];
		v[i].client_root = NULL;
		v[i].storage = copy_text(l, from->v[i].storage);
		v[i].type = copy_text(l, from->v[i].type);
		if (!v[i].storage || (from->v[i].type && !v[i].type))
			return SKV_E_NOMEM;
	}
	return v ? SKV_OK : SKV_E_NOMEM;
}

static bool is_of(const struct skv_transfer *t, const struct skv_piece *p, uint32_t file)
{
	return p->status == SKV_PENDING &&
	       strcmp(t->files->v[p->file_index].uuid, t->files->v[file].uuid) == 0;
}

/* Takes the pieces of the storage, as many as one part may have, and what they write. */
static int take_pieces(struct skv_late *l, const struct skv_transfer *t, uint32_t file)
{
	uint64_t room = 0;
	uint32_t n = 0, end = 0;

	for (; end < t->n_pieces && room < MOST; end++) {
		if (!is_of(t, &t->pieces[end], file))
			continue;
		room += (t->pieces[end].length + ALIGN - 1) / ALIGN * ALIGN;
		n++;
	}
	l->of = skv_arena_calloc(t->arena, n + 1, sizeof *l->of);
	l->bytes = skv_malloc(room + ALIGN);
	if (!l->of || !l->bytes ||
	    skv_transfer_begin(&l->t, l->kv, &l->arena, &l->files, n) != SKV_OK)
		return SKV_E_NOMEM;
	room = (ALIGN - (uintptr_t)l->bytes % ALIGN) % ALIGN;
	for (uint32_t i = 0; i < end; i++) {
		struct skv_piece *p = &l->t.pieces[l->t.n_pieces];

		if (!is_of(t, &t->pieces[i], file))
			continue;
		l->of[l->t.n_pieces++] = i;
		*p = t->pieces[i];
		p->status = SKV_OK;
		p->data = l->bytes + room;
		if (t->write)
			memcpy(p->data, t->pieces[i].data, p->length);
		room += (p->length + ALIGN - 1) / ALIGN * ALIGN;
	}
	SKV_CHECK(l->t.n_pieces == n);
	return SKV_OK;
}

static int begin_thread(struct skv_late *l)
{
	sigset_t all, before;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&l->thread, NULL, run, l);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error ? SKV_E_NOMEM : SKV_OK;
}

/* Starts a thread for the storage of a file: for its pieces that wait for one, or (no `bytes`) for
 * its directory. SKV_E_NOMEM. */
static int begin(const struct skv_transfer *t, uint32_t file, bool bytes,
		 const struct skv_io_call *by, struct skv_late **out)
{
	struct skv_late *l = skv_calloc(1, sizeof *l);
	int rc;

	*out = NULL;
	if (!l)
		return SKV_E_NOMEM;
	skv_handle_keep(t->kv);
	l->kv = t->kv;
	l->by = (struct skv_io_call){ .clock = by->clock, .at_ms = by->at_ms };
	if (by->until_ms < l->by.at_ms)
		l->by.at_ms = by->until_ms; /* nothing is submitted once the caller has left */
	l->write = t->write;
	skv_arena_init(&l->arena);
	skv_mutex_init(&l->lock);
	skv_cond_init(&l->ended);
	rc = skv_uuid_from_text(t->files->v[file].uuid, l->uuid);
	if (rc == SKV_OK)
		rc = copy_files(l, t->files);
	if (rc == SKV_OK && bytes)
		rc = take_pieces(l, t, file);
	if (rc == SKV_OK) {
		if (!bytes) /* the file's storage is what work() opens */
			l->files.v[0] = l->files.v[file];
		rc = begin_thread(l);
	}
	if (rc != SKV_OK)
		release(l);
	else
		*out = l;
	return rc;
}

/* Waits until it is over. False: the deadline came first, the thread is on its own. */
static bool wait_for(struct skv_late *l, const struct skv_io_call *by)
{
	bool done;

	skv_mutex_lock(&l->lock);
	while (!l->done) {
		const uint64_t now = skv_now_ms(by->clock);

		if (now >= by->until_ms ||
		    !skv_cond_wait_ms(&l->ended, &l->lock, by->until_ms - now))
			break;
	}
	done = l->done;
	l->left = !done;
	skv_mutex_unlock(&l->lock);
	if (done)
		pthread_join(l->thread, NULL);
	else
		pthread_detach(l->thread);
	return done;
}

/* Results and bytes of its pieces, into the caller's. */
static void settle(struct skv_late *l, struct skv_transfer *t)
{
	for (uint32_t i = 0; i < l->t.n_pieces; i++) {
		const struct skv_piece *from = &l->t.pieces[i];
		struct skv_piece *to = &t->pieces[l->of[i]];

		SKV_CHECK(l->of[i] < t->n_pieces && to->status == SKV_PENDING);
		to->status = l->rc == SKV_OK ? from->status : l->rc;
		to->done = from->done;
		to->ended_ms = from->ended_ms;
		to->summed = from->summed;
		to->sum = from->sum;
		if (!t->write && from->done <= to->length)
			memcpy(to->data, from->data, from->done);
	}
	t->ios += l->t.ios;
	t->in_flight |= l->t.in_flight;
	if (t->first.status == SKV_OK)
		t->first = l->t.first;
}

/* Of `n` pieces nothing is known: their thread was left behind. */
static void give_up(struct skv_transfer *t, const uint32_t *of, uint32_t n, uint32_t file)
{
	const struct skv_file_ref *f = &t->files->v[n > 0 ? t->pieces[of[0]].file_index : file];
	struct skv_error e = { 0 };

	for (uint32_t i = 0; i < n; i++) {
		t->pieces[of[i]].status = SKV_E_TIMEOUT;
		t->pieces[of[i]].late = true;
	}
	t->in_flight |= t->write && n > 0;
	skv_fail(&e, SKV_E_TIMEOUT, NULL, "storage %s: its file system did not answer in time (%s)",
		 f->storage, f->path);
	if (t->first.status == SKV_OK)
		t->first = e;
}

/* Ends one part. SKV_E_TIMEOUT: the thread was left behind. */
static int end(struct skv_late *l, struct skv_transfer *t, uint32_t file,
	       const struct skv_io_call *by)
{
	const uint32_t *of = l->of, n = l->t.n_pieces; /* `l` may go with its thread */
	int rc;

	if (!wait_for(l, by)) {
		give_up(t, of, n, file);
		return SKV_E_TIMEOUT;
	}
	rc = l->rc;
	settle(l, t);
	release(l);
	return rc;
}

/* Gives pieces of a storage that wait for a thread a result. */
static void fail_rest(struct skv_transfer *t, uint32_t file, int rc)
{
	for (uint32_t i = 0; i < t->n_pieces; i++) {
		if (!is_of(t, &t->pieces[i], file))
			continue;
		t->pieces[i].status = rc;
		t->pieces[i].late = rc == SKV_E_TIMEOUT;
	}
}

static bool is_first_of_storage(const struct skv_transfer *t, uint32_t file)
{
	for (uint32_t i = 0; i < file; i++)
		if (strcmp(t->files->v[i].uuid, t->files->v[file].uuid) == 0)
			return false;
	return true;
}

static enum skv_mount_place place_of(const struct skv_transfer *t, uint32_t file)
{
	uint8_t uuid[16];

	return skv_uuid_from_text(t->files->v[file].uuid, uuid) == SKV_OK
		       ? skv_mounts_place(t->kv->mounts, uuid)
		       : SKV_MOUNT_LOCAL; /* refused where it is opened */
}

/* Returns true if usrbio moves the bytes; it gives up requests itself. */
static bool is_native(const struct slabkv *kv)
{
	const char *why;

	return kv->engine->ops->told &&
	       strcmp(kv->engine->ops->told(kv->engine, &why), "usrbio") == 0;
}

/* Marks the pieces of a storage that may hang as waiting for a thread. Opens its directory first if
 * nobody has yet. False: none of its pieces are left to move. */
static bool claim(struct skv_transfer *t, uint32_t file, const struct skv_io_call *by)
{
	enum skv_mount_place place = place_of(t, file);
	struct skv_late *l;
	bool any = false;
	int rc = SKV_OK;

	if (place == SKV_MOUNT_LOCAL || is_native(t->kv))
		return false;
	for (uint32_t i = 0; i < t->n_pieces; i++) {
		if (t->pieces[i].status != SKV_OK ||
		    strcmp(t->files->v[t->pieces[i].file_index].uuid, t->files->v[file].uuid) != 0)
			continue;
		t->pieces[i].status = SKV_PENDING;
		any = true;
	}
	if (any && place == SKV_MOUNT_UNKNOWN) {
		rc = begin(t, file, false, by, &l);
		if (rc == SKV_OK)
			rc = end(l, t, file, by);
		place = place_of(t, file);
	}
	if (rc != SKV_OK || place == SKV_MOUNT_LOCAL)
		fail_rest(t, file, rc); /* SKV_OK: they are moved here */
	return any && rc == SKV_OK && place != SKV_MOUNT_LOCAL;
}

/* Moves what a storage has more than one part may have. */
static void end_all(struct skv_late *l, struct skv_transfer *t, uint32_t file,
		    const struct skv_io_call *by)
{
	int rc = SKV_OK;

	while (l && rc != SKV_E_TIMEOUT) {
		rc = end(l, t, file, by);
		l = NULL;
		for (uint32_t i = 0; i < t->n_pieces && !l && rc != SKV_E_TIMEOUT; i++)
			if (is_of(t, &t->pieces[i], file))
				rc = begin(t, file, true, by, &l);
	}
	fail_rest(t, file, rc == SKV_OK ? SKV_E_INTERNAL : rc);
}

/* Moves the other pieces on the caller's thread. */
static int move_here(struct skv_transfer *t, const struct skv_io_call *by)
{
	const uint64_t ends = skv_share_ends_ms(t->kv, 1);
	struct skv_io_call here = *by;
	int rc = skv_transfer_plan(t, t->write);

	if (rc != SKV_OK)
		return rc;
	if (ends < here.at_ms)
		here.at_ms = ends;
	skv_transfer_run(t, &here);
	if (t->write)
		skv_transfer_sync(t);
	for (uint32_t i = 0; i < t->n_pieces && here.at_ms != by->at_ms; i++)
		t->pieces[i].late |= t->pieces[i].status == SKV_E_TIMEOUT;
	return SKV_OK;
}

int skv_transfer_move(struct skv_transfer *t, bool write, const struct skv_io_call *by)
{
	const bool threads = by->until_ms && by->until_ms != UINT64_MAX;
	struct skv_late **part = skv_arena_calloc(t->arena, t->files->n + 1, sizeof *part);
	int rc;

	if (!part)
		return SKV_E_NOMEM;
	t->write = write;
	for (uint32_t i = 0; i < t->files->n && threads; i++) {
		if (!is_first_of_storage(t, i) || !claim(t, i, by))
			continue;
		rc = begin(t, i, true, by, &part[i]);
		if (rc != SKV_OK)
			fail_rest(t, i, rc);
	}
	rc = move_here(t, by);
	for (uint32_t i = 0; i < t->files->n; i++)
		if (part[i])
			end_all(part[i], t, i, by);
	return rc;
}
