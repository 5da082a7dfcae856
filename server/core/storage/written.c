/*
 * written.c - checks whether blocks that a client reports as written have arrived on the file
 * system of this manager.
 *
 * The local SDK of KVCM's clients creates a slab file that is missing. On a host without the shared
 * mount it therefore writes into a file of its own, and reports success. The manager looks at the
 * slots before it commits them. Two observations prove that nothing arrived:
 *
 * - The slot holds only zeros: it was never written. KV data are not zeros.
 * - The slab file was not changed since before the session was started. An earlier look must have
 *   seen the same time of change; if its clock was read long enough before the start, then a later
 *   change has another time, whatever the granularity of the file system and the two clocks.
 *
 * Nothing is refused on suspicion. So two cases pass: a slot that was used before, in a file that
 * others wrote meanwhile; and file systems that do not tell (FUSE, fs-masters).
 *
 * On file systems of this machine a non-blocking check on the calling thread mostly suffices; only
 * slots that it does not prove are checked on a thread that may block.
 *
 * Owns the times of change seen, a table indexed by a hash of the path; an entry may be replaced by
 * that of another file, which costs an observation. Any thread that may block; `lock` is held only
 * for the table.
 */
#include <storage/written.h>

#include <assert.h>
#include <string.h>

#include <skv/core.h>
#include <skv/hash.h>
#include <skv/mem.h>
#include <skv/storage.h>

#include <lock/core.h>
#include <lock/lock.h>

#define FILES 1024u
#define NS 1000000000u
#define TICK_MS 20u     /* at least one tick of a kernel's clock, which gives times of change */
#define SECONDS_MS 2000u /* the same for a file system that counts seconds */

struct seen {
	uint64_t file; /* hash of its path */
	uint64_t changed_ns;
	uint64_t seen_ms; /* boot time of the first look that saw this time of change */
	bool local;       /* a look found the file on this machine's own file system */
};

struct written {
	struct skv_mutex lock;
	struct seen seen[FILES];
};

struct written *written_create(void)
{
	struct written *w = skv_calloc(1, sizeof *w);

	if (w)
		skv_mutex_init(&w->lock);
	return w;
}

void written_destroy(struct written *w)
{
	if (w)
		skv_mutex_destroy(&w->lock);
	skv_free(w);
}

/* Records the look, which ended at now_ms. Returns true if the file was as old before since_ms. */
static bool was_seen_before(struct written *w, uint64_t file, const struct skv_file_bytes *bytes,
			    uint64_t now_ms, uint64_t since_ms)
{
	const uint64_t margin = bytes->changed_ns % NS ? TICK_MS : SECONDS_MS;
	struct seen *s = &w->seen[file % FILES];
	bool before;

	skv_mutex_lock(&w->lock);
	before = s->file == file && s->changed_ns == bytes->changed_ns;
	if (!before)
		*s = (struct seen){ file, bytes->changed_ns, now_ms, bytes->local };
	before = before && s->seen_ms + margin <= since_ms;
	skv_mutex_unlock(&w->lock);
	return before;
}

static bool was_local(struct written *w, uint64_t file)
{
	const struct seen *s = &w->seen[file % FILES];
	bool local;

	skv_mutex_lock(&w->lock);
	local = s->file == file && s->local;
	skv_mutex_unlock(&w->lock);
	return local;
}

static uint64_t hash_path(const struct skv_written_place *at)
{
	return skv_checksum(at->root, strlen(at->root)) ^ skv_checksum(at->path, strlen(at->path));
}

/* Returns true unless it is certain that something has not arrived. */
static bool may_have_arrived(struct skv_core *c, const struct skv_written_res *r,
			     const struct skv_written_place *at, const struct skv_file_bytes *bytes)
{
	return !was_seen_before(c->written, hash_path(at), bytes, skv_now_ms(c->clock),
				r->since_ms) &&
	       !bytes->zero;
}

bool skv_core_written_glance(struct skv_core *c, const struct skv_written_res *r)
{
	for (uint32_t i = 0; i < r->n; i++) {
		const struct skv_written_place *at = &r->v[i];
		struct skv_file_bytes bytes;
		struct skv_error ignored;

		if (!was_local(c->written, hash_path(at)) ||
		    skv_file_glance_at(at->root, at->path, at->offset, at->length, &bytes,
				       &ignored) != SKV_OK ||
		    !may_have_arrived(c, r, at, &bytes))
			return false;
	}
	return true;
}

int skv_core_written_check(struct skv_core *c, const struct skv_written_res *r,
			   struct skv_error *err)
{
	for (uint32_t i = 0; i < r->n; i++) {
		const struct skv_written_place *at = &r->v[i];
		struct skv_file_bytes bytes;
		struct skv_error ignored;

		if (skv_file_look_at(at->root, at->path, at->offset, at->length, &bytes,
				     &ignored) == SKV_OK &&
		    !may_have_arrived(c, r, at, &bytes))
			return skv_fail(
				err, SKV_E_IO, NULL,
				"nothing was written into %s/%s, as this manager sees it (%s): is "
				"the storage mounted on the writer's host? Nothing is stored",
				at->root, at->path,
				bytes.zero ? "the block's bytes are all zero"
					   : "the file was not changed since the start");
	}
	return SKV_OK;
}
