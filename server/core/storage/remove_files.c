/*
 * remove_files.c - removes drained slab files from registry, pool and file system: an errand
 * (errand.c).
 *
 * A file that is GOING (evict/drain.c) is final: its document is updated, the pool drops the file,
 * its name is removed. The document stays until a greater number was used, so that none is used
 * twice. Each step may be repeated after a crash.
 */
#include "remove_files.h"

#include <assert.h>

#include <skv/log.h>

#include <lock/core.h>
#include <lock/gate.h>
#include <lock/lock.h>
#include <model/device.h>
#include <model/files.h>
#include <model/partition.h>
#include <model/volume.h>
#include <journal/registry.h>
#include <journal/registry_write.h>
#include <storage/device.h>

static const struct volume_file *first_step(const struct volume *s)
{
	for (size_t i = 0; s->n_ending && i < s->n_file; i++) {
		const struct volume_file *f = &s->file[i];

		if (f->state == FILE_GOING ||
		    (f->state == FILE_GONE && (!f->removed || f->number + 1 < s->next_file)))
			return f;
	}
	return NULL;
}

bool files_to_remove(const struct volume *s) { return first_step(s) != NULL; }

/* The next file with a step to take, and the fence of the partition that says so. */
static bool next_step(struct device *d, struct volume_file *out, uint64_t *fence)
{
	const struct volume_file *f;
	const struct volume *s;

	skv_rwlock_read(&d->core->lock);
	s = device_volume(d->core->partition, d);
	f = s ? first_step(s) : NULL;
	if (f) {
		*out = *f;
		*fence = d->core->partition->fence;
	}
	skv_rwlock_read_unlock(&d->core->lock);
	return f != NULL;
}

/* The step counts if the partition is still the same. */
static void took_step(struct device *d, uint64_t fence, const struct volume_file *was,
		      const struct volume_file *is)
{
	struct skv_core *c = d->core;
	struct volume *s;
	struct volume_file *f;

	core_lock(c);
	s = c->partition && c->partition->fence == fence ? device_volume(c->partition, d) : NULL;
	f = s ? file_find(s, was->number) : NULL;
	if (f && f->state == was->state && f->version == was->version) {
		if (!is)
			file_forget(s, f);
		else if (was->state == FILE_GOING)
			file_gone(s, f);
		if (is) {
			f->version = is->version;
			f->removed = is->removed;
		}
		c->events->volume_freed(c->partition); /* another file may fit now */
	}
	core_unlock(c);
}

/* Writes to its document that it is gone, so that later loads do not know it. Uses of the file do
 * not change the version; but any later load has another fence. */
static int tell_gone(struct device *d, uint64_t fence, const struct volume_file *f)
{
	struct skv_core *c = d->core;
	struct volume_file gone = *f;
	struct skv_buf doc = { 0 };
	char key[64];
	int rc;

	assert(f->state == FILE_GOING);
	gone.state = FILE_GONE;
	registry_file_key(key, d->id, f->number);
	registry_put_file(&doc, &gone);
	rc = registry_put(c, fence, key, f->version, &doc, &gone.version, NULL);
	skv_buf_destroy(&doc);
	if (rc == SKV_OK) {
		took_step(d, fence, f, &gone);
		skv_log(SKV_LOG_INFO, "storage", "'%s': slab file %u is drained: removing it",
			d->name, f->number);
	} else if (rc == SKV_E_CONFLICT || rc == SKV_E_NOT_FOUND || rc == SKV_E_UNKNOWN_OUTCOME) {
		owner_ask_reload(c, fence); /* changed by another manager, or unknown */
	}
	return rc;
}

/* Removes its name, then its document, except the greatest number's. */
static int remove_gone(struct device *d, uint64_t fence, const struct volume_file *f)
{
	struct skv_error err = { 0 };
	struct volume_file is = *f;
	char key[64];
	int rc;

	assert(f->state == FILE_GONE);
	if (!f->removed) {
		rc = device_remove_file(d, f->number, &err);
		if (f->lost &&
		    (rc == SKV_E_FOREIGN || rc == SKV_E_CORRUPT || rc == SKV_E_UNSUPPORTED)) {
			skv_log(SKV_LOG_WARN, "storage",
				"'%s': the rest of slab file %u stays, because its owner "
				"is unknown: %s",
				d->name, f->number, err.message);
			rc = SKV_OK;
		}
		if (rc == SKV_OK) {
			is.removed = true;
			took_step(d, fence, f, &is);
		} else if (d->stuck_file != f->number + 1) {
			d->stuck_file = f->number + 1;
			skv_log(SKV_LOG_WARN, "storage",
				"'%s': slab file %u stays behind for now: %s", d->name, f->number,
				err.message[0] ? err.message : skv_status_text(rc));
		}
		return rc;
	}
	registry_file_key(key, d->id, f->number);
	rc = registry_del(d->core, fence, key, f->version, NULL);
	if (rc == SKV_OK || rc == SKV_E_NOT_FOUND)
		took_step(d, fence, f, NULL);
	return rc == SKV_E_NOT_FOUND ? SKV_OK : rc;
}

void remove_files(struct device *d)
{
	struct volume_file f;
	uint64_t fence = 0;
	int rc = SKV_OK;

	while (rc == SKV_OK && owner_valid(d->core) && next_step(d, &f, &fence))
		rc = f.state == FILE_GOING ? tell_gone(d, fence, &f) : remove_gone(d, fence, &f);
}
