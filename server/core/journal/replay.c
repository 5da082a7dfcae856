/*
 * replay.c - replays a sequence of durable records, each by the operations of its type.
 *
 * Records may repeat what a checkpoint already has (a start queued while the snapshot was taken),
 * so a known session's start is skipped. Records of an unknown instance are skipped too; that does
 * not happen as long as registrations outlive the records, and recover.c then distrusts all free
 * slots.
 */
#include <journal/replay.h>

#include <assert.h>
#include <string.h>

#include <skv/mem.h>

#include <model/device.h>
#include <model/files.h>
#include <model/index.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/queue.h>
#include <model/session.h>
#include <journal/change.h>
#include <journal/format.h>
#include <journal/record.h>

/* ---- objects that records refer to ----------------------------------------------------------- */

int replay_get_place(struct replay *r, struct skv_rd *in, struct place *out, struct skv_error *err)
{
	uint64_t storage = skv_get_varint(in), file = skv_get_varint(in), unit = skv_get_varint(in);
	uint8_t log2 = skv_get_u8(in);

	if (in->failed || log2 > 31 || file > UINT32_MAX || unit > UINT32_MAX)
		return corrupt(err, "malformed slab place");
	for (out->volume = 0; out->volume < r->p->n_volume; out->volume++)
		if (r->p->volume[out->volume].dev->id == storage)
			break;
	if (out->volume == r->p->n_volume)
		return SKV_E_NOT_FOUND;
	if (file == r->p->volume[out->volume].claim.number &&
	    file_add_claim(&r->p->volume[out->volume]) != SKV_OK)
		return corrupt(err, "a file that cannot be");
	out->slab = (struct skv_slab_place){ (uint32_t)file, (uint32_t)unit, 1u << log2 };
	return SKV_OK;
}

/* Checks that the file is known. A file is claimed before it is made, and made before its slots are
 * handed out. */
static bool file_known(const struct volume *v, uint32_t file)
{
	return v->dev->ops->counted || file_find(v, file);
}

int replay_place(struct replay *r, struct skv_rd *in, struct place *out, struct skv_error *err)
{
	int rc = replay_get_place(r, in, out, err);

	if (rc == SKV_OK && r->follows && !file_known(&r->p->volume[out->volume], out->slab.file))
		return SKV_E_NOT_FOUND;
	return rc == SKV_E_NOT_FOUND && !r->follows ? corrupt(err, "unknown storage") : rc;
}

int replay_orphan(struct replay *r)
{
	if (r->follows)
		return SKV_E_NOT_FOUND;
	r->orphans = true;
	return SKV_OK;
}

int replay_take(struct replay *r, struct instance *inst, uint32_t spec, const struct place *pl,
		struct skv_run *run, struct skv_error *err)
{
	uint32_t class_id, first = run->first, count = run->count;
	int rc = volume_class(r->p, inst, spec, pl->volume, &class_id);

	if (rc == SKV_OK)
		rc = evict_reserve(r->p, inst, pl->volume, class_id);
	if (rc == SKV_OK)
		rc = skv_pool_take(r->p->volume[pl->volume].pool, class_id, pl->slab, first, count,
				   run);
	if (rc == SKV_E_CORRUPT || rc == SKV_E_INVALID)
		return corrupt(err, "a slot is taken twice, or lies outside its file");
	return rc;
}

int replay_session(struct replay *r, struct skv_key id, struct session **out, struct skv_error *err)
{
	*out = session_find(r->p, id);
	if (*out && (*out)->state == SKV_SESSION_DELETED)
		*out = NULL; /* the instance was dropped first, and the session with it */
	else if (*out && (*out)->state != SKV_SESSION_OPEN)
		return corrupt(err, "a session ends twice");
	else if (!*out && !r->orphans)
		return corrupt(err, "the end of an unknown session");
	return SKV_OK;
}

/* Nothing is leased for longer than the longest lease. */
uint64_t replay_get_end(const struct replay *r, struct skv_rd *in)
{
	uint64_t until = skv_get_u64(in), left = skv_get_varint(in);

	if (left > SKV_MAX_LEASE_MS + HORIZON_AHEAD_MS)
		left = SKV_MAX_LEASE_MS + HORIZON_AHEAD_MS;
	if (strcmp(r->boot_id, r->p->core->boot_id) != 0 || until > r->now + left)
		until = r->now + left;
	return until;
}

/* ---- the sequence ---------------------------------------------------------------------------- */

static int settle(struct replay *r, struct skv_error *err)
{
	int (*what)(struct replay *r, struct skv_error *err) = r->settle;

	r->settle = NULL;
	return what ? what(r, err) : SKV_OK;
}

int replay_close(struct replay *r, int rc, struct skv_error *err)
{
	if (rc == SKV_OK)
		rc = settle(r, err);
	index_fit(r->p);
	skv_free(r->chunk);
	r->chunk = NULL;
	r->n_chunk = r->cap_chunk = 0;
	return rc;
}

static int replay_one(struct replay *r, const uint8_t *at, size_t len, struct skv_error *err)
{
	struct skv_rd in, sum;
	uint8_t type, version;
	int rc;

	if (len == 0)
		return corrupt(err, "malformed length");
	in = skv_rd_make(at + 4, len - 12);
	sum = skv_rd_make(at + len - 8, 8);
	if (skv_get_u64(&sum) != skv_checksum(at + 4, len - 12))
		return corrupt(err, "wrong checksum");
	type = skv_get_u8(&in);
	version = skv_get_u8(&in);
	skv_get_u16(&in);
	if (version != RECORD_VERSION)
		return skv_fail(err, SKV_E_UNSUPPORTED, NULL,
				"record version %u: use a newer slabkvd", version);
	if (type >= RECORD_TYPES || !r->p->core->records[type])
		return corrupt(err, "unknown type: written by a newer version?");
	rc = type == r->settles ? SKV_OK : settle(r, err);
	return rc == SKV_OK ? r->p->core->records[type]->replay(r, &in, err) : rc;
}

int replay_records_from(struct replay *r, const void *bytes, size_t n, size_t *at,
			struct skv_error *err)
{
	int rc = SKV_OK;

	assert(*at <= n);
	while (rc == SKV_OK && *at < n) {
		size_t len = record_length((const uint8_t *)bytes + *at, n - *at);

		rc = replay_one(r, (const uint8_t *)bytes + *at, len, err);
		*at += rc == SKV_OK ? len : 0;
	}
	return rc;
}

int replay_records(struct replay *r, const void *bytes, size_t n, struct skv_error *err)
{
	size_t at = 0;

	return replay_records_from(r, bytes, n, &at, err);
}
