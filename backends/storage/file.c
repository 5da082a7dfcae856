/*
 * file.c - the `file` storage: slab files in one directory of any POSIX mount; and `hf3fs`: the
 * same on a mount of 3FS, whose files have chunks and no space in advance. A slab file is synced
 * when it is made, there too: that settles its length.
 *
 * Owns the opened storage (struct file_storage); the directory is root.c's subject, the files in it
 * slab.c's. Every operation enters the root anew, so that each answer is about the file system
 * mounted at that moment. Called from any thread, blocks with the file system; takes the storage's
 * lock only inside root.c, never across I/O. It never reads or writes block bytes.
 *
 * A full file system is not a failure here: slab files of `file` are allocated in advance, so
 * blocks in them stay good and writable. The probe then reports no free bytes, and no new file is
 * made. On 3FS any write may fail for lack of space, and each needs a free block: so a sixteenth of
 * the space stays free.
 */
#include "file.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "fs.h"
#include <skv/mem.h>

#define SLACK_MIN ((uint64_t)64 << 20)
#define GRACE_3FS_MS 60000u /* the retry budget of 3FS's client */

static void file_close(void *self)
{
	struct file_storage *s = self;

	skv_mutex_destroy(&s->lock);
	skv_free(s->name);
	skv_free(s->root);
	skv_free(s);
}

static struct file_storage *make(const struct skv_storage_config *c)
{
	struct file_storage *s = skv_calloc(1, sizeof *s);

	if (!s)
		return NULL;
	skv_mutex_init(&s->lock);
	s->name = skv_strdup(c->name);
	s->root = skv_strdup(c->root);
	s->below = c->below ? *c->below : -1;
	s->unit = c->unit;
	s->chunk = c->chunk;
	s->edge = c->chunk ? c->chunk : FILE_EDGE;
	s->any_mount = c->any_mount;
	memcpy(s->uuid, c->uuid, sizeof s->uuid);
	if (s->name && s->root)
		return s;
	file_close(s);
	return NULL;
}

/* Proves that the root exists and belongs to the storage, and, if it may be new, is writable (or
 * merely full). Writes wait for a slow storage node; existing files can be read meanwhile. */
static int prove(struct file_storage *s, const struct skv_storage_config *c, struct skv_error *err)
{
	int dir, rc = SKV_OK;

	if (s->chunked && !s->chunk && c->read_chunk)
		rc = skv_root_measure(s, err);
	if (rc == SKV_OK && s->chunk > s->unit)
		rc = skv_fail(err, SKV_E_INVALID, "unit",
			      "the slab unit must be at least one chunk (%llu bytes)",
			      (unsigned long long)s->chunk);
	assert(rc != SKV_OK || (s->edge >= FILE_EDGE && s->chunk <= s->unit));
	if (rc == SKV_OK && c->may_create)
		rc = skv_root_claim(s, err);
	if (rc == SKV_OK)
		rc = skv_root_enter(s, &dir, err);
	if (rc != SKV_OK)
		return rc;
	if (c->may_create)
		rc = skv_probe_write(s, dir, 0, err);
	if (rc == SKV_E_NO_SPACE)
		rc = SKV_OK;
	if (rc == SKV_OK && c->may_create)
		skv_fs_sweep(dir);
	close(dir);
	return rc;
}

static int open_root(const struct skv_storage_config *c, bool chunked, void **self,
		     struct skv_error *err)
{
	struct file_storage *s;
	int rc;

	if (!c->root || (!c->below && c->root[0] != '/') ||
	    (c->below && !skv_fs_is_component(c->root)))
		return skv_fail(err, SKV_E_INVALID, "root", "the root must be %s",
				c->below ? "one component" : "an absolute path");
	s = make(c);
	if (!s)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	s->chunked = chunked;
	rc = prove(s, c, err);
	if (rc != SKV_OK) {
		file_close(s);
		return rc;
	}
	skv_error_clear(err);
	*self = s;
	return SKV_OK;
}

static int file_open(const struct skv_storage_config *c, void **self, struct skv_error *err)
{
	return open_root(c, false, self, err);
}

static int hf3fs_open(const struct skv_storage_config *c, void **self, struct skv_error *err)
{
	return open_root(c, true, self, err);
}

static int file_create(void *self, uint32_t file, uint64_t length, struct skv_error *err)
{
	int dir;
	int rc = skv_root_enter(self, &dir, err);

	if (rc != SKV_OK)
		return rc;
	rc = skv_slab_create(self, dir, file, length, err);
	close(dir);
	return rc;
}

static int file_check(void *self, uint32_t file, uint64_t length, struct skv_error *err)
{
	int dir;
	int rc = skv_root_enter(self, &dir, err);

	if (rc != SKV_OK)
		return rc;
	rc = skv_slab_check(self, dir, file, length, err);
	close(dir);
	return rc;
}

static int file_mend(void *self, uint32_t file, uint64_t length, struct skv_error *err)
{
	int dir;
	int rc = skv_root_enter(self, &dir, err);

	if (rc != SKV_OK)
		return rc;
	rc = skv_slab_mend(self, dir, file, length, err);
	close(dir);
	return rc;
}

static int file_remove(void *self, uint32_t file, struct skv_error *err)
{
	int dir;
	int rc = skv_root_enter(self, &dir, err);

	if (rc != SKV_OK)
		return rc;
	rc = skv_slab_remove(self, dir, file, err);
	close(dir);
	return rc;
}

static int file_punch(void *self, uint32_t file, uint64_t length, const struct skv_storage_range *v,
		      uint32_t n, struct skv_error *err)
{
	int dir;
	int rc = skv_root_enter(self, &dir, err);

	if (rc != SKV_OK)
		return rc;
	rc = skv_slab_punch(self, dir, file, length, v, n, err);
	close(dir);
	return rc;
}

static int file_owners(void *self, const struct skv_storage_owner *mine,
		       struct skv_storage_owner v[SKV_STORAGE_OWNERS], uint32_t *n,
		       struct skv_error *err)
{
	int dir;
	int rc = skv_root_enter(self, &dir, err);

	if (rc != SKV_OK)
		return rc;
	rc = skv_owner_list(self, dir, mine, v, n, err);
	close(dir);
	return rc;
}

static int file_claim(void *self, const struct skv_storage_owner *o, struct skv_error *err)
{
	int dir;
	int rc = skv_root_enter(self, &dir, err);

	if (rc != SKV_OK)
		return rc;
	rc = skv_owner_claim(self, dir, o, err);
	close(dir);
	return rc;
}

static int file_disown(void *self, const struct skv_storage_owner *o, struct skv_error *err)
{
	int dir;
	int rc = skv_root_enter(self, &dir, err);

	if (rc != SKV_OK)
		return rc;
	rc = skv_owner_disown(self, dir, o, err);
	close(dir);
	return rc;
}

static int file_leave(void *self, struct skv_error *err)
{
	int dir;
	int rc = skv_root_enter(self, &dir, err);

	if (rc != SKV_OK)
		return rc;
	rc = skv_root_leave(self, dir, err);
	close(dir);
	return rc;
}

static uint64_t file_chunk(void *self) { return ((const struct file_storage *)self)->chunk; }

static uint64_t blocks_to_bytes(uint64_t blocks, uint64_t size)
{
	return size && blocks > UINT64_MAX / size ? UINT64_MAX : blocks * size;
}

/* The last bytes of a file system are slow to get and shared with others: we leave 1 %, at least
 * 64 MiB, but never more than a sixteenth, so that tiny ones stay usable. On 3FS a sixteenth. */
static uint64_t slack_of(const struct file_storage *s, uint64_t total)
{
	uint64_t slack = total / 100 > SLACK_MIN ? total / 100 : SLACK_MIN;

	slack = slack < total / 16 && !s->chunked ? slack : total / 16;
	assert(slack <= total);
	return slack;
}

static int measure(const struct file_storage *s, int dir, bool full, struct skv_storage_health *out,
		   struct skv_error *err)
{
	struct statvfs v;
	uint64_t free_bytes, slack;

	if (fstatvfs(dir, &v) != 0)
		return skv_fs_fail(err, errno, "cannot read the free space of the file system",
				   s->root);
	if (v.f_blocks == 0) { /* file systems without a bound, such as ramfs */
		*out = (struct skv_storage_health){ .free_bytes = full ? 0 : UINT64_MAX,
						    .total_bytes = UINT64_MAX };
		return SKV_OK;
	}
	out->total_bytes = blocks_to_bytes(v.f_blocks, v.f_frsize);
	free_bytes = full ? 0 : blocks_to_bytes(v.f_bavail, v.f_frsize);
	slack = slack_of(s, out->total_bytes);
	out->free_bytes = free_bytes > slack ? free_bytes - slack : 0;
	return SKV_OK;
}

/* The first one of a handle also removes what crashes have left. */
static int probe_write(struct file_storage *s, int dir, struct skv_error *err)
{
	unsigned turn;
	int rc;

	skv_mutex_lock(&s->lock);
	turn = s->write_turn++;
	skv_mutex_unlock(&s->lock);
	rc = skv_probe_write(s, dir, turn, err);
	if (rc == SKV_OK && turn == 0)
		skv_fs_sweep(dir);
	return rc;
}

static int file_probe(void *self, enum skv_probe what, struct skv_storage_health *out,
		      struct skv_error *err)
{
	struct file_storage *s = self;
	struct skv_storage_health health;
	int dir;
	int rc = what == SKV_PROBE_READ ? skv_probe_read(s, &dir, err)
					: skv_root_enter(s, &dir, err);

	if (rc != SKV_OK)
		return rc;
	if (what == SKV_PROBE_WRITE)
		rc = probe_write(s, dir, err);
	if (rc == SKV_OK || rc == SKV_E_NO_SPACE)
		rc = measure(s, dir, rc == SKV_E_NO_SPACE, &health, err);
	close(dir);
	if (rc != SKV_OK)
		return rc;
	skv_error_clear(err);
	*out = health;
	return SKV_OK;
}

#define STORAGE(name, open_fn)                                                                    \
	.size = sizeof(struct skv_storage_ops), .type = name, .edge = FILE_EDGE, .open = open_fn, \
	.close = file_close, .create_file = file_create, .check_file = file_check,                \
	.remove_file = file_remove, .probe = file_probe, .owners = file_owners,                   \
	.claim = file_claim,                                                                      \
	.disown = file_disown, .mend_file = file_mend, .leave = file_leave

const struct skv_storage_ops skv_storage_file = { STORAGE("file", file_open) };
const struct skv_storage_ops skv_storage_hf3fs = { STORAGE("hf3fs", hf3fs_open), .chunked = true,
						   .chunk = file_chunk,
						   .least_grace_ms = GRACE_3FS_MS,
						   .punch_file = file_punch };
