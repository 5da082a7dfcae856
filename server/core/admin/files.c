/*
 * files.c - administration of slab files: list, drain, keep, forget.
 *
 * A request is stored in the file's document, so it survives a restart; drain.c carries it out.
 */
#include <stdio.h>
#include <string.h>

#include <lock/core.h>
#include <lock/gate.h>
#include <lock/lock.h>
#include <lock/one.h>
#include <model/device.h>
#include <model/files.h>
#include <model/find.h>
#include <model/partition.h>
#include <model/volume.h>
#include <journal/registry.h>
#include <journal/registry_write.h>
#include <storage/device.h>
#include <evict/drain.h>
#include "admin.h"

static int no_file(struct skv_error *err, const char *storage, uint32_t number)
{
	return skv_fail(err, SKV_E_NOT_FOUND, "file", "storage '%s' has no slab file %u", storage,
			number);
}

static const char *state_text(const struct volume *s, const struct volume_file *f)
{
	if (f->state == FILE_GOING)
		return "removing";
	if (f->bad && !f->lost)
		return "bad";
	return file_drains(s, f) ? "draining" : "used";
}

static const char *why_text(const struct volume *s, const struct volume_file *f)
{
	if (f->lost)
		return "lost";
	if (f->bad)
		return f->bad;
	if (f->asked)
		return "asked";
	if (s->draining)
		return "storage";
	return f->shrink ? "capacity" : "";
}

static void view_file(const struct volume *s, const struct volume_file *f,
		      struct skv_file_view *out)
{
	struct skv_file_info info;

	skv_pool_file(s->pool, f->number, &info);
	*out = (struct skv_file_view){ .file = f->number, .length = f->length,
				       .state = state_text(s, f), .why = why_text(s, f),
				       .waits_for = drain_waits_for(s, f, &info),
				       .assigned_bytes = info.assigned_bytes,
				       .used_bytes = info.used_bytes,
				       .quarantined_bytes = info.held_bytes };
}

static int list_locked(const struct partition *p, const char *storage, struct skv_arena *a,
		       struct skv_file_view **out, uint32_t *n, struct skv_error *err)
{
	int at = volume_find(p, storage);
	const struct volume *s = at < 0 ? NULL : &p->volume[at];

	ASSERT_SHARED(p);
	if (!s)
		return skv_fail(err, SKV_E_NOT_FOUND, "name", "no storage '%s'", storage);
	*n = 0;
	*out = skv_arena_alloc(a, (s->n_file + 1) * sizeof **out);
	if (!*out)
		return SKV_E_NOMEM;
	for (const struct volume_file *f = file_next(s, 0); f; f = file_next(s, f->number + 1))
		view_file(s, f, &(*out)[(*n)++]);
	return SKV_OK;
}

int one_files(struct skv_core *c, const char *storage, struct skv_arena *a,
	      struct skv_file_view **out, uint32_t *n, struct skv_error *err)
{
	int rc = core_gate(c, err);

	if (rc != SKV_OK)
		return rc;
	skv_rwlock_read(&c->lock);
	rc = c->partition ? list_locked(c->partition, storage, a, out, n, err)
			  : gate_recovering(err);
	skv_rwlock_read_unlock(&c->lock);
	return rc;
}

/* Changes a copy of the file as wished. SKV_PENDING: nothing to change. */
static int judge_wish(const struct volume *s, const struct volume_file *have,
		      const struct skv_file_wish *wish, struct volume_file *f,
		      struct skv_error *err)
{
	const bool going = have->state == FILE_GOING;

	*f = *have;
	if (wish->forget && going)
		return SKV_PENDING;
	if (wish->forget) {
		if (!have->lost && !have->bad && device_healthy(s->dev))
			return skv_fail(err, SKV_E_CONFLICT, "forget",
					"slab file %u is whole: drain it instead", have->number);
		f->lost = true;
		return have->lost ? SKV_PENDING : SKV_OK;
	}
	if (going && !wish->draining)
		return skv_fail(err, SKV_E_CONFLICT, "draining",
				"slab file %u is empty and being removed: it is too late",
				have->number);
	f->asked = wish->draining;
	f->asked_move = wish->move;
	return going || (have->asked == f->asked && have->asked_move == f->asked_move)
		       ? SKV_PENDING
		       : SKV_OK;
}

/* Copies the file out, changed as wished. */
static int look_at_file(struct skv_core *c, const char *storage, const struct skv_file_wish *wish,
			struct volume_file *f, char key[64], struct skv_error *err)
{
	const struct volume_file *have = NULL;
	int at, rc = SKV_OK;
	struct partition *p = admin_lock(c, &rc, err);

	if (!p)
		return rc;
	at = volume_find(p, storage);
	if (at >= 0)
		have = file_find(&p->volume[at], wish->file);
	if (at < 0)
		rc = skv_fail(err, SKV_E_NOT_FOUND, "name", "no storage '%s'", storage);
	else if (!have || have->state == FILE_GONE)
		rc = no_file(err, storage, wish->file);
	else
		rc = judge_wish(&p->volume[at], have, wish, f, err);
	if (rc == SKV_OK)
		registry_file_key(key, p->volume[at].dev->id, wish->file);
	core_unlock(c);
	return rc;
}

static void adopt_file(struct skv_core *c, const char *storage, const struct volume_file *f)
{
	struct partition *p = admin_follow(c);
	int at = p ? volume_find(p, storage) : -1;
	struct volume_file *have = at < 0 ? NULL : file_find(&p->volume[at], f->number);

	if (have) {
		if (have->asked_move != f->asked_move)
			file_scan_again(have);
		have->asked = f->asked;
		have->asked_move = f->asked_move;
		have->version = f->version;
		if (f->lost)
			file_lose(&p->volume[at], have);
		file_settle(&p->volume[at], have);
	}
	if (p)
		core_unlock(c);
}

int one_file_put(struct skv_core *c, const char *storage, const struct skv_file_wish *wish,
		 struct skv_error *err)
{
	struct volume_file f = { 0 };
	struct skv_buf doc = { 0 };
	char key[64];
	int rc;

	if (wish->move && !wish->draining && !wish->forget)
		return skv_fail(err, SKV_E_INVALID, "move", "only of a file that is to drain");
	rc = admin_enter(c, err);
	if (rc != SKV_OK)
		return rc;
	rc = look_at_file(c, storage, wish, &f, key, err);
	if (rc != SKV_OK)
		return admin_leave(c, rc == SKV_PENDING ? SKV_OK : rc);
	registry_put_file(&doc, &f);
	rc = registry_put(c, c->turn_fence, key, f.version, &doc, &f.version, err);
	skv_buf_destroy(&doc);
	if (rc == SKV_E_CONFLICT) /* the file was removed meanwhile */
		rc = !wish->draining && !wish->forget
			     ? skv_fail(err, rc, "draining",
					"slab file %u is empty and being removed: it is too late",
					wish->file)
			     : SKV_OK;
	else
		rc = admin_written(c, rc);
	if (rc == SKV_OK)
		adopt_file(c, storage, &f);
	return admin_leave(c, rc);
}
