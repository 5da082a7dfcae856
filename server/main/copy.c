/*
 * copy.c - copies a store to an empty one: checkpoint and journal of every partition, then the
 * registry.
 *
 * Journal records get numbers of their own. A live source is read like a standby reads it: the
 * journal as of one moment for each partition, the registry before and after it; if a document
 * differs, the copy is thrown away and begun again. One thread.
 */
#include "copy.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <skv/clock.h>
#include <skv/hash.h>
#include <skv/mem.h>

#define LEASE_MS 30000u
#define RENEW_MS 5000u
#define TELL_MS 1000u

struct copy_seen {
	struct skv_key key;
	uint64_t version;
};

static uint64_t now_ms(void) { return skv_now_ms(&skv_clock_system); }

void copy_tell(const struct copy *c, const char *how)
{
	printf("%s: %" PRIu32 " slices, %" PRIu64 " records, %" PRIu64 " documents, %" PRIu64
	       " bytes\n",
	       how, c->slices, c->records, c->documents, c->bytes);
	fflush(stdout);
}

static int renew(const struct copy_end *e, struct skv_error *err)
{
	int rc = SKV_OK;

	for (uint32_t p = 0; rc == SKV_OK && p < SKV_MAX_PARTITIONS; p++)
		if (e->fence[p].number)
			rc = skv_store_renew(e->store, p, e->fence[p].number, LEASE_MS, err);
	return rc;
}

/* Progress, and the leases. */
static int go_on(struct copy *c, size_t bytes)
{
	const uint64_t now = now_ms();
	int rc;

	assert(c->to.fence[0].number);
	c->bytes += bytes;
	if (now - c->told_ms >= TELL_MS) {
		c->told_ms = now;
		copy_tell(c, "copying");
	}
	if (now - c->renewed_ms < RENEW_MS)
		return SKV_OK;
	c->renewed_ms = now;
	rc = renew(&c->from, &c->err);
	return rc == SKV_OK ? renew(&c->to, &c->err) : rc;
}

/* ---- both ends ------------------------------------------------------------------------------- */

static int open_end(struct copy_end *e, const char *text, bool must_exist, struct skv_error *err)
{
	const struct skv_store_options o = { .path = text };

	skv_store_shown(text, e->shown);
	if (must_exist && skv_store_is_file(text) && access(text, R_OK) != 0)
		return skv_fail(err, SKV_E_NOT_FOUND, "from", "cannot read the store %.200s: %s",
				e->shown, strerror(errno));
	return skv_store_open(skv_store_backend(text), &o, &e->store, err);
}

static int own(struct copy_end *e, uint32_t partition, struct skv_error *err)
{
	char holder[192] = "", name[192];
	int rc;

	assert(e->store && partition < SKV_MAX_PARTITIONS && !e->fence[partition].number);
	skv_owner_name(name);
	e->fence[partition].partition = partition;
	rc = skv_store_acquire(e->store, partition, name, LEASE_MS, &e->fence[partition].number,
			       holder, sizeof holder, err);
	if (rc == SKV_E_NOT_OWNER)
		return skv_fail(err, rc, NULL, "a manager runs on %.120s (%.100s): end it first",
				e->shown, holder);
	return rc;
}

static void close_end(struct copy_end *e)
{
	if (!e->store)
		return;
	for (uint32_t p = SKV_MAX_PARTITIONS; p-- > 0;)
		if (e->fence[p].number)
			skv_store_release(e->store, p, e->fence[p].number, NULL);
	skv_store_close(e->store);
	e->store = NULL;
}

static int note_any(void *ctx, const char *key, const void *bytes, size_t n, uint64_t version)
{
	(void)bytes;
	(void)n;
	(void)version;
	(void)key;
	*(bool *)ctx = true;
	return SKV_OK;
}

static int check_empty(struct copy *c)
{
	struct skv_store_stats st = { 0 };
	bool any = false;
	int rc = skv_store_list(c->to.store, "", note_any, &any, &c->err);

	if (rc == SKV_OK)
		rc = skv_store_stats_get(c->to.store, 0, &st, &c->err);
	if (rc != SKV_OK || (!any && st.last_seq == 0))
		return rc;
	return skv_fail(&c->err, SKV_E_CONFLICT, "to",
			"%.120s holds something already: name an empty store (another prefix, "
			"another file)",
			c->to.shown);
}

/* ---- a partition ----------------------------------------------------------------------------- */

static uint64_t fence_of(const struct copy *c)
{
	assert(c->to.fence[c->partition].number);
	return c->to.fence[c->partition].number;
}

static int copy_slice(void *ctx, uint32_t number, const void *bytes, size_t n)
{
	struct copy *c = ctx;
	int rc = SKV_OK;

	assert(c->n_records == 0 && number == c->n_slices);
	if (!c->checkpoint)
		rc = skv_store_checkpoint_begin(c->to.store, c->partition, fence_of(c),
						&c->checkpoint, &c->err);
	if (rc == SKV_OK)
		rc = skv_store_checkpoint_slice(c->to.store, c->partition, fence_of(c),
						c->checkpoint, number, bytes, n, &c->err);
	c->n_slices++;
	c->slices++;
	return rc == SKV_OK ? go_on(c, n) : rc;
}

/* Before the first record, or at the end. */
static int end_checkpoint(struct copy *c)
{
	uint64_t id = c->checkpoint;

	assert(!id || c->n_slices > 0);
	c->checkpoint = 0;
	return id ? skv_store_checkpoint_commit(c->to.store, c->partition, fence_of(c), id,
						c->n_slices, 0, &c->err)
		  : SKV_OK;
}

static int copy_record(void *ctx, uint64_t seq, const void *bytes, size_t n)
{
	struct copy *c = ctx;
	int rc = end_checkpoint(c);

	assert(seq > 0 && n > 0);
	if (rc == SKV_OK)
		rc = skv_store_append(c->to.store, c->partition, fence_of(c), c->n_records + 1,
				      bytes, n, SKV_APPEND_URGENT, &c->err);
	c->n_records++;
	c->records++;
	return rc == SKV_OK ? go_on(c, n) : rc;
}

static int copy_partition(struct copy *c)
{
	const struct skv_load_sink sink = { copy_slice, copy_record, c };
	uint64_t base = 0;
	int rc = SKV_OK;

	if (c->partition && c->from.fence[0].number)
		rc = own(&c->from, c->partition, &c->err);
	if (rc == SKV_OK && c->partition)
		rc = own(&c->to, c->partition, &c->err);
	c->n_slices = 0;
	c->n_records = 0;
	if (rc == SKV_OK)
		rc = skv_store_load(c->from.store, c->partition, &base, &sink, &c->err);
	if (rc == SKV_OK)
		rc = end_checkpoint(c);
	return rc;
}

/* Copies the partitions that were ever used. */
static int copy_partitions(struct copy *c)
{
	int rc = SKV_OK;

	for (c->partition = 0; rc == SKV_OK && c->partition < SKV_MAX_PARTITIONS; c->partition++) {
		struct skv_store_stats st = { 0 };

		rc = skv_store_stats_get(c->from.store, c->partition, &st, &c->err);
		if (rc == SKV_OK && (c->partition == 0 || st.last_seq))
			rc = copy_partition(c);
	}
	return rc;
}

/* ---- the registry ---------------------------------------------------------------------------- */

static int note_seen(void *ctx, const char *key, const void *bytes, size_t n, uint64_t version)
{
	struct copy *c = ctx;
	void *v = c->seen;

	(void)bytes;
	(void)n;
	if (skv_grow(&v, &c->cap_seen, c->n_seen + 1, sizeof *c->seen) != SKV_OK)
		return SKV_E_NOMEM;
	c->seen = v;
	c->seen[c->n_seen++] = (struct copy_seen){ skv_hash128(key, strlen(key)), version };
	return SKV_OK;
}

/* Documents come in one order. */
static int copy_document(void *ctx, const char *key, const void *bytes, size_t n, uint64_t version)
{
	struct copy *c = ctx;
	const struct copy_seen *seen = c->documents < c->n_seen ? &c->seen[c->documents] : NULL;
	int rc;

	assert(!c->checkpoint && c->to.fence[0].number);
	c->changed |= !seen || seen->version != version ||
		      !skv_key_equal(seen->key, skv_hash128(key, strlen(key)));
	rc = skv_store_put(c->to.store, &c->to.fence[0], key, SKV_VERSION_NONE, bytes, n, NULL,
			   &c->err);
	c->documents++;
	return rc == SKV_OK ? go_on(c, n) : rc;
}

static int put_marks(struct copy *c, const char *mark)
{
	int rc = SKV_OK;

	for (uint32_t p = 0; rc == SKV_OK && p < SKV_MAX_PARTITIONS; p++) {
		char key[64];

		if (!c->to.fence[p].number)
			continue;
		snprintf(key, sizeof key, "partition/%u/%s", p, mark);
		rc = skv_store_put(c->to.store, &c->to.fence[0], p ? key : mark, SKV_VERSION_NONE,
				   "1", 1, NULL, &c->err);
		if (rc == SKV_E_CONFLICT) { /* copied from a store that had it */
			skv_error_clear(&c->err);
			rc = SKV_OK;
		}
	}
	return rc;
}

static int run(struct copy *c, const char *mark)
{
	int rc = check_empty(c);

	if (rc == SKV_OK)
		rc = skv_store_put(c->to.store, &c->to.fence[0], SKV_STORE_UNFINISHED,
				   SKV_VERSION_NONE, "1", 1, &c->version, &c->err);
	if (rc == SKV_OK)
		copy_tell(c, "copying");
	if (rc == SKV_OK)
		rc = skv_store_list(c->from.store, "", note_seen, c, &c->err);
	if (rc == SKV_OK)
		rc = copy_partitions(c);
	if (rc == SKV_OK)
		rc = skv_store_list(c->from.store, "", copy_document, c, &c->err);
	c->changed |= rc == SKV_OK && c->documents != c->n_seen;
	if (rc == SKV_OK && c->changed)
		return skv_fail(&c->err, SKV_E_CONFLICT, "from",
				"storages, groups or instances of %.120s changed meanwhile",
				c->from.shown);
	if (rc == SKV_OK && mark)
		rc = put_marks(c, mark);
	if (rc == SKV_OK)
		rc = skv_store_sync(c->to.store, 0, &c->err);
	if (rc == SKV_OK)
		rc = skv_store_del(c->to.store, &c->to.fence[0], SKV_STORE_UNFINISHED, c->version,
				   &c->err);
	return rc;
}

int copy_store(struct copy *c, const char *from, const char *to, bool live, const char *mark)
{
	int rc = open_end(&c->from, from, true, &c->err);

	c->renewed_ms = c->told_ms = now_ms();
	if (rc == SKV_OK)
		rc = open_end(&c->to, to, false, &c->err);
	if (rc == SKV_OK && !live)
		rc = own(&c->from, 0, &c->err);
	if (rc == SKV_OK)
		rc = own(&c->to, 0, &c->err);
	if (rc == SKV_OK)
		rc = run(c, mark);
	close_end(&c->to);
	close_end(&c->from);
	skv_free(c->seen);
	c->seen = NULL;
	return rc;
}
