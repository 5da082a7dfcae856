/*
 * bad_files.c - lost or damaged slab files: each costs only its own blocks.
 *
 * Once the storage's marker is found good, each errand checks one file in turn and one of the bad
 * ones; the first ones check all. From the first check that finds a file missing, truncated,
 * unreadable or foreign, its blocks are misses and nothing is placed in it; when it is good again,
 * so are they. A check that does not return is no finding about its file: other bytes of the file
 * lie on other nodes. Damage that the file's other superblock can repair is repaired first.
 *
 * Memory that a node does not have is lost: such a file is given up at once. Any other file is
 * given up when a check a minute later finds the same for certain - there is no such file, or
 * neither superblock is good - while the marker and another file are good and the storage was
 * healthy all the time: an unmount never retires files. An administrator may give it up at once.
 * Then its blocks are removed, and the file like a drained one (drain.c).
 *
 * On threads of errands (errand.c); takes core->lock briefly, never across a call into the file
 * system.
 */
#include <storage/bad_files.h>

#include <stdio.h>

#include <skv/log.h>

#include <lock/core.h>
#include <lock/lock.h>
#include <model/device.h>
#include <model/files.h>
#include <model/partition.h>
#include <model/volume.h>
#include <journal/registry.h>
#include <journal/registry_write.h>
#include <storage/device.h>
#include "files_look.h"
#include "health.h"

#define GIVE_UP_MS 60000u

/* Result of one check of a file. */
struct verdict {
	int rc;          /* about the storage as a whole; SKV_OK: about the file only */
	const char *bad; /* NULL: it is whole */
	bool certain;
	struct skv_error why;
};

static int check_one(struct skv_storage *s, const struct volume_file *f, struct skv_error *err)
{
	return skv_storage_check_file(s, f->number, f->length, err);
}

/* SKV_OK: one superblock was good, and now both are. */
static int mend(struct device *d, struct skv_storage *s, const struct volume_file *f)
{
	struct skv_error err = { 0 };
	int rc = skv_storage_mend_file(s, f->number, f->length, &err);

	if (rc == SKV_OK)
		skv_log(SKV_LOG_WARN, "storage",
			"'%s': slab file %u had a damaged superblock: mended from its copy",
			d->name, f->number);
	return rc;
}

/* ---- the partition --------------------------------------------------------------------------- */

/* The first file of this number or above that is (`which` 1) or is not (0) bad; any if `which`
 * < 0. */
static bool next_file(struct device *d, uint32_t from, int which, struct volume_file *out,
		      uint64_t *fence)
{
	const struct volume_file *f = NULL;
	const struct volume *s;

	skv_rwlock_read(&d->core->lock);
	s = device_volume(d->core->partition, d);
	*fence = s ? d->core->partition->fence : 0;
	if (s && (which <= 0 || s->n_bad))
		f = file_next(s, from);
	while (f && which >= 0 && (f->bad != NULL) != (which > 0))
		f = file_next(s, f->number + 1);
	if (f)
		*out = *f;
	skv_rwlock_read_unlock(&d->core->lock);
	return f != NULL;
}

static void tell(struct device *d, const struct volume_file *f, const struct verdict *v,
		 uint64_t fence)
{
	struct skv_core *c = d->core;
	struct volume *s;
	struct volume_file *have;
	bool news = false;

	core_lock(c);
	s = c->partition && c->partition->fence == fence ? device_volume(c->partition, d) : NULL;
	have = s ? file_find(s, f->number) : NULL;
	if (have && have->state != FILE_GONE) {
		news = (have->bad == NULL) != (v->bad == NULL);
		file_found(s, have, v->bad, v->certain, skv_now_ms(c->clock));
		if (news)
			c->events->volume_freed(c->partition);
	}
	core_unlock(c);
	if (news && v->bad)
		skv_log(SKV_LOG_ERROR, "storage",
			"'%s': slab file %u is bad, its blocks are misses: %s", d->name, f->number,
			v->why.message);
	else if (news)
		skv_log(SKV_LOG_INFO, "storage", "'%s': slab file %u is whole again", d->name,
			f->number);
}

/* Returns true if another file is good, as of now. */
static bool has_witness(struct device *d, struct skv_storage *s)
{
	struct volume_file other;
	struct skv_error why;
	uint64_t fence;

	for (uint32_t from = 0; next_file(d, from, 0, &other, &fence); from = other.number + 1)
		if (other.state == FILE_IN_USE && check_one(s, &other, &why) == SKV_OK)
			return true;
	return false;
}

/* Returns true if anything but this file can be read. */
static bool still_well(struct device *d, struct skv_storage *s, const struct volume_file *f)
{
	struct skv_storage_health h;
	struct volume_file other;
	struct skv_error why;
	uint64_t fence;

	if (skv_storage_probe(s, SKV_PROBE_READ, &h, &why) == SKV_OK)
		return true;
	return next_file(d, atomic_load(&d->witness), 0, &other, &fence) &&
	       other.number != f->number && check_one(s, &other, &why) == SKV_OK;
}

static struct verdict look_at(struct device *d, struct skv_storage *s, const struct volume_file *f)
{
	struct verdict v = { .rc = SKV_OK };
	int rc = check_one(s, f, &v.why);

	switch (rc) {
	case SKV_OK:
		return v;
	case SKV_E_NOT_FOUND:
		v.bad = "missing";
		v.certain = true;
		break;
	case SKV_E_CORRUPT:
	case SKV_E_FOREIGN:
		v.bad = "damaged";
		rc = mend(d, s, f);
		if (rc == SKV_OK)
			v.bad = NULL;
		v.certain = rc == SKV_E_CORRUPT; /* neither superblock is good */
		break;
	case SKV_E_UNSUPPORTED:
	case SKV_E_IO:
	case SKV_E_UNAVAILABLE:
		v.bad = "unreadable";
		break;
	default:
		v.rc = rc;
		return v;
	}
	if (v.bad && !still_well(d, s, f)) { /* the file may not be at fault */
		v.rc = SKV_E_UNAVAILABLE;
		v.bad = NULL;
	}
	return v;
}

static void give_up(struct device *d, const struct volume_file *f, const char *why, uint64_t fence)
{
	struct skv_core *c = d->core;
	struct volume_file lost = *f, *have;
	struct skv_buf doc = { 0 };
	struct skv_error err = { 0 };
	struct volume *s;
	char key[64];
	int rc;

	lost.lost = true;
	registry_file_key(key, d->id, f->number);
	registry_put_file(&doc, &lost);
	rc = registry_put(c, fence, key, f->version, &doc, &lost.version, &err);
	skv_buf_destroy(&doc);
	if (rc != SKV_OK) {
		skv_log(SKV_LOG_WARN, "storage", "'%s': slab file %u cannot be given up now: %s",
			d->name, f->number, err.message);
		return;
	}
	core_lock(c);
	s = c->partition && c->partition->fence == fence ? device_volume(c->partition, d) : NULL;
	have = s ? file_find(s, f->number) : NULL;
	if (have) {
		have->version = lost.version;
		file_lose(s, have);
	}
	core_unlock(c);
	skv_log(SKV_LOG_ERROR, "storage",
		"'%s': slab file %u is given up, and its blocks: %s", d->name, f->number, why);
}

static int look_once(struct device *d, struct skv_storage *s, const struct volume_file *f,
		     uint64_t fence)
{
	const uint64_t now = skv_now_ms(d->core->clock);
	struct verdict v = look_at(d, s, f);

	if (v.rc != SKV_OK)
		return v.rc;
	tell(d, f, &v, fence);
	if (!v.bad)
		atomic_store(&d->witness, f->number);
	if (!v.bad || !v.certain || f->lost || f->state != FILE_IN_USE)
		return SKV_OK;
	if (d->ops->forgetful)
		give_up(d, f, "in the node's new epoch there is none", fence);
	else if (f->bad && f->bad_since && now - f->bad_since >= GIVE_UP_MS && has_witness(d, s))
		give_up(d, f, "found bad twice, a minute apart", fence);
	return SKV_OK;
}

/* ---- for the device -------------------------------------------------------------------------- */

void files_doubt_all(struct device *d)
{
	struct volume *s;

	core_lock(d->core);
	s = device_volume(d->core->partition, d);
	if (s)
		files_doubt(s);
	core_unlock(d->core);
}

/* The file, NULL: a small one. What it finds of the storage as a whole is noted (health.c); without
 * an answer of an fs-master it is nothing. */
static int check(struct device *d, struct skv_storage *s, const struct volume_file *f,
		 uint64_t fence)
{
	struct skv_storage_health h;
	char why[SKV_MESSAGE_MAX];
	int rc;

	skv_mutex_lock(&d->lock);
	d->reading++;
	if (!atomic_load(&d->remote))
		health_begin(d, CALL_READ);
	skv_mutex_unlock(&d->lock);
	rc = f ? look_once(d, s, f, fence) : skv_storage_probe(s, SKV_PROBE_READ, &h, NULL);
	snprintf(why, sizeof why, "cannot check its slab files: %s", skv_status_text(rc));
	if (rc != SKV_E_NETWORK)
		health_note(d, CALL_READ, rc, why);
	if (rc != SKV_OK)
		files_doubt_all(d);
	skv_mutex_lock(&d->lock);
	health_end(d, CALL_READ, rc == SKV_OK, --d->reading > 0);
	d->returned++;
	skv_cond_signal(&d->wake);
	skv_mutex_unlock(&d->lock);
	return rc;
}

/* Checks the next file from *at on, which other threads move on, too. SKV_E_NOT_FOUND: there is
 * none. */
static int check_next(struct device *d, struct skv_storage *s, _Atomic uint32_t *at, int which,
		      bool wraps)
{
	uint32_t from = atomic_load(at);
	struct volume_file f;
	uint64_t fence;

	do {
		if (!next_file(d, from, which, &f, &fence) &&
		    !(wraps && next_file(d, 0, which, &f, &fence)))
			return SKV_E_NOT_FOUND;
	} while (!atomic_compare_exchange_weak(at, &from, f.number + 1));
	return check(d, s, &f, fence);
}

static void check_all(struct device *d, struct skv_storage *s)
{
	int rc;

	do
		rc = check_next(d, s, &d->next_first, -1, false);
	while (rc == SKV_OK);
	if (rc == SKV_E_NOT_FOUND)
		atomic_store(&d->files_checked, true);
	else
		atomic_store(&d->next_first, 0);
}

void files_look(struct device *d, struct skv_storage *s, bool small)
{
	if (small) {
		check(d, s, NULL, 0);
	} else if (!atomic_load(&d->files_checked)) {
		check_all(d, s);
	} else {
		check_next(d, s, &d->next_check, 0, true);
		check_next(d, s, &d->next_bad, 1, true);
	}
}

int device_check_files(struct device *d, const struct volume *s, struct skv_error *err)
{
	const struct volume_file *f;
	int rc = SKV_OK;

	for (uint32_t from = 0; rc == SKV_OK && (f = file_next(s, from)) != NULL;
	     from = f->number + 1)
		rc = f->lost ? SKV_OK : check_one(d->storage, f, err);
	return rc;
}
