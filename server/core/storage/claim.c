/*
 * claim.c - ownership of slab directories: owner files, by which copies of one store detect each
 * other.
 *
 * The store's lease keeps managers of one store apart. A store that was copied, or restored from a
 * backup, has its own lease, so directories must record their user. A new owner takes the next
 * incarnation and a nonce, stores both durably, and exclusively creates `owner.<incarnation>` with
 * both in each slab directory. A name with a nonce unknown to the store belongs to another copy:
 * the storage is refused, and a starting manager gives up. A running one checks again every second
 * and before a file is created; one that could not check for LATE_MS grants nothing.
 *
 * Of two that claim a directory at once, with whatever incarnations, at most one grants slots: each
 * reads all names after its own is durable, and the later read sees the other's. Names of earlier
 * owners are removed once ours exists, and the store's memory of them once that is so in every
 * directory.
 *
 * A store that was put back from an older copy of the same incarnation knows the names. So each
 * owner file also has a horizon: the journal's position when the file was last written, within a
 * second of every acknowledged batch. A manager that finds a position beyond its store's journal
 * refuses.
 *
 * Each partition of a store claims the directory for itself: an incarnation names its partition,
 * and only those of the same one are compared, since no other hands out the slots of its files.
 *
 * On the device's thread, or that of its creator. d->lock guards `claim`, turn_lock the core's
 * incarnation. No lock is held while store or file system are called.
 */
#include <storage/claim.h>

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <skv/log.h>
#include <skv/store.h>

#include <lock/core.h>
#include <lock/gate.h>
#include <lock/lock.h>
#include <lock/turn.h>
#include <model/device.h>
#include <model/partition.h>
#include <journal/registry_write.h>
#include <storage/device.h>

#define LATE_MS 5000u /* a check overdue by this stops granting */
#define CLAIM_TRIES 8
#define KEPT 16u       /* earlier incarnations that the store still knows */
#define FORGET_MAX 256u /* documents in one go */
#define PARTITION_SHIFT 56
#define NOTE_MS 1000u /* between two notes of the journal's end, while it moves */
#define UNSEEN_GENERATIONS (1ull << 30) /* more than are given between two notes */

static uint64_t least_incarnation(const struct skv_core *c)
{
	return (uint64_t)c->number << PARTITION_SHIFT;
}

/* Lists this partition's owner files in the directory. */
static int list_owners(const struct device *d, struct skv_storage *s,
		       const struct skv_storage_owner *mine,
		       struct skv_storage_owner v[SKV_STORAGE_OWNERS], uint32_t *n,
		       struct skv_error *err)
{
	uint32_t all = 0;
	int rc = skv_storage_owners(s, mine, v, &all, err);

	*n = 0;
	for (uint32_t i = 0; rc == SKV_OK && i < all; i++)
		if (v[i].incarnation >> PARTITION_SHIFT == d->core->number)
			v[(*n)++] = v[i];
	return rc;
}

/* ---- incarnations known to the store --------------------------------------------------------- */

static void doc_key(char out[40], uint64_t incarnation)
{
	snprintf(out, 40, "incarnation/%016" PRIx64, incarnation);
}

struct seen {
	uint64_t newest;
	uint64_t below; /* collect those, FORGET_MAX at most, in ascending order */
	uint64_t *old;
	size_t n_old;
};

static int see_doc(void *ctx, const char *key, const void *bytes, size_t n, uint64_t version)
{
	struct seen *s = ctx;
	uint64_t incarnation;

	(void)bytes;
	(void)n;
	(void)version;
	if (sscanf(key, "incarnation/%16" SCNx64, &incarnation) != 1)
		return SKV_OK;
	if (incarnation > s->newest)
		s->newest = incarnation;
	if (incarnation < s->below && s->n_old < FORGET_MAX)
		s->old[s->n_old++] = incarnation;
	return SKV_OK;
}

/* Stores it durably: greater than all before, and than `above`. */
static int new_incarnation(struct skv_core *c, uint64_t fence, uint64_t above,
			   struct skv_storage_owner *out, struct skv_error *err)
{
	int rc = SKV_E_CONFLICT;

	while (rc == SKV_E_CONFLICT) {
		struct seen s = { .newest = above ? above : least_incarnation(c) };
		struct skv_buf doc = { 0 };
		char key[40];

		rc = skv_store_list(c->store, "incarnation/", see_doc, &s, err);
		if (rc != SKV_OK)
			break;
		out->incarnation = s.newest + 1;
		skv_random(out->nonce, sizeof out->nonce);
		doc_key(key, out->incarnation);
		skv_put_u8(&doc, 1);
		skv_put_bytes(&doc, out->nonce, sizeof out->nonce);
		skv_put_u64(&doc, skv_wall_ms(c->clock));
		rc = registry_put(c, fence, key, SKV_VERSION_NONE, &doc, NULL, err);
		skv_buf_destroy(&doc);
	}
	return rc;
}

/* SKV_E_NOT_FOUND: unknown to the store. */
static int find_owner(struct skv_core *c, const struct skv_storage_owner *o, struct skv_error *err)
{
	struct skv_buf b = { 0 };
	char key[40];
	int rc;

	doc_key(key, o->incarnation);
	rc = skv_store_get(c->store, key, &b, NULL, err);
	if (rc == SKV_OK && (b.len < 1 + sizeof o->nonce ||
			     memcmp((const uint8_t *)b.data + 1, o->nonce, sizeof o->nonce) != 0))
		rc = SKV_E_NOT_FOUND;
	skv_buf_destroy(&b);
	return rc;
}

/* ---- this ownership's incarnation ------------------------------------------------------------ */

static bool incarnation_now(struct skv_core *c, struct skv_storage_owner *out)
{
	uint64_t fence = owner_fence(c);
	bool known;

	skv_mutex_lock(&c->turn_lock);
	known = c->incarnation.incarnation != 0 && c->incarnation_fence == fence;
	*out = c->incarnation;
	skv_mutex_unlock(&c->turn_lock);
	return known;
}

static int take_incarnation(struct skv_core *c, uint64_t above, struct skv_storage_owner *out,
			    struct skv_error *err)
{
	uint64_t fence = owner_fence(c);
	int rc = new_incarnation(c, fence, above, out, err);

	if (rc != SKV_OK)
		return rc;
	skv_mutex_lock(&c->turn_lock);
	if (c->incarnation_fence != fence || c->incarnation.incarnation < out->incarnation)
		c->incarnation = *out;
	c->incarnation_fence = fence;
	skv_mutex_unlock(&c->turn_lock);
	return SKV_OK;
}

int claims_begin(struct skv_core *c, struct skv_error *err)
{
	struct skv_storage_owner o;

	if (incarnation_now(c, &o))
		return SKV_OK;
	return take_incarnation(c, 0, &o, err);
}

bool claims_roll_back(struct skv_core *c) { return c->o.adopt && !c->rolled_back; }

/* Takes one greater than `above`. */
static int incarnation_above(struct skv_core *c, uint64_t above, struct skv_storage_owner *out,
			     struct skv_error *err)
{
	return incarnation_now(c, out) && out->incarnation > above ? SKV_OK
							     : take_incarnation(c, above, out, err);
}

/* ---- one directory --------------------------------------------------------------------------- */

static bool same_owner(const struct skv_storage_owner *a, const struct skv_storage_owner *b)
{
	return a->incarnation == b->incarnation && memcmp(a->nonce, b->nonce, sizeof a->nonce) == 0;
}

static bool claimed_locked(const struct device *d) SKV_REQUIRES(d->lock)
{
	assert(skv_mutex_held(&d->lock));
	return d->claim.incarnation != 0 && d->claim_fence == owner_fence(d->core);
}

static bool claim_get(struct device *d, struct skv_storage_owner *out)
{
	bool claimed;

	skv_mutex_lock(&d->lock);
	claimed = claimed_locked(d);
	*out = d->claim;
	skv_mutex_unlock(&d->lock);
	return claimed;
}

/* A directory is adopted once, by the first claim of this process; then it is checked like any
 * other. */
static bool claim_adopts(struct device *d)
{
	struct skv_storage_owner o;

	claim_get(d, &o);
	return d->core->o.adopt && o.incarnation == 0;
}

/* `least`: the lowest that the directory may still have. */
static void claim_set(struct device *d, const struct skv_storage_owner *o, uint64_t least)
{
	assert(least > 0 && least <= o->incarnation);
	skv_mutex_lock(&d->lock);
	d->claim = *o;
	d->claim_least = least;
	d->claim_fence = owner_fence(d->core);
	skv_mutex_unlock(&d->lock);
}

static void set_refused(struct device *d, enum refusal why)
{
	COUNT(d->core, store_refusals, 1);
	atomic_store(&d->refused, why);
}

static int refuse(struct device *d, const struct skv_storage_owner *o, struct skv_error *err)
{
	const bool damaged = skv_storage_owner_is_damaged(o);

	set_refused(d, damaged ? REFUSED_DAMAGED : REFUSED_COPY);
	if (damaged)
		return skv_fail(err, SKV_E_FOREIGN, "root",
				"owner.%" PRIu64 " in the directory of storage '%s' is damaged, so "
				"it does not say whether another copy of this store runs there: "
				"make sure that none does, and start this one once with --adopt",
				o->incarnation, d->name);
	return skv_fail(err, SKV_E_FOREIGN, "root",
			"another copy of this store has run in the directory of storage '%s' "
			"(owner.%" PRIu64
			"): use that one; or stop it for good, and start this one "
			"once with --adopt",
			d->name, o->incarnation);
}

/* ---- how far the journal had come ------------------------------------------------------------ */

/* Returns the horizon that is durable now; `loaded`: as of when this ownership began. False: the
 * partition is not owned. */
static bool horizon_now(struct skv_core *c, bool loaded, struct skv_storage_horizon *out)
{
	const struct partition *p;
	bool owned;

	skv_rwlock_read(&c->lock);
	p = c->partition;
	owned = p && p->fence == owner_fence(c);
	if (owned) {
		const struct journal_end *end = loaded ? &p->loaded : &p->durable;

		*out = (struct skv_storage_horizon){ end->epoch, end->number, p->next_generation };
	}
	skv_rwlock_read_unlock(&c->lock);
	return owned;
}

/* Checks whether the directory proves that the journal was further than the store now is. */
static int judge_horizon(struct device *d, const struct skv_storage_owner *o,
			 const struct skv_storage_horizon *store, struct skv_error *err)
{
	const struct skv_storage_horizon *h = &o->horizon;

	if (h->number <= store->number)
		return SKV_OK;
	set_refused(d, REFUSED_BACK);
	return skv_fail(err, SKV_E_FOREIGN, "root",
			"the store went back in time: storage '%s' has seen batch %" PRIu64
			" (owner.%" PRIu64 "), the store ends at %" PRIu64
			": bring the newest data back; or, if no manager goes on with it, start "
			"this one once with --adopt",
			d->name, h->number, o->incarnation, store->number);
}

static int judge_horizons(struct device *d, const struct skv_storage_owner *v, uint32_t n,
			  const struct skv_storage_horizon *store, struct skv_error *err)
{
	int rc = SKV_OK;

	for (uint32_t i = 0; rc == SKV_OK && i < n; i++)
		rc = judge_horizon(d, &v[i], store, err);
	return rc;
}

static void see_generations(struct device *d, const struct skv_storage_owner *v, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (v[i].horizon.generation > atomic_load(&d->seen_generation))
			atomic_store(&d->seen_generation, v[i].horizon.generation);
}

/* Computes the next content of the claim. Returns false if nothing is to be noted. */
static bool next_note(struct device *d, struct skv_storage_owner *mine)
{
	return claim_get(d, mine) && horizon_now(d->core, false, &mine->horizon) &&
	       mine->horizon.number > atomic_load(&d->noted);
}

/* Our own file is missing, damaged or incomplete. Nobody else makes one of that name: the names of
 * other copies that saw ours are greater. */
static int claim_again(struct device *d, struct skv_storage *s,
		       const struct skv_storage_owner *mine, struct skv_error *err)
{
	const struct skv_storage_owner damaged = { .incarnation = mine->incarnation };
	int rc;

	skv_log(SKV_LOG_WARN, "storage",
		"'%s' has lost its owner.%" PRIu64 ", or it is damaged: making it again", d->name,
		mine->incarnation);
	rc = skv_storage_disown(s, &damaged, err);
	if (rc == SKV_OK)
		rc = skv_storage_claim(s, mine, err);
	return rc == SKV_E_CONFLICT ? refuse(d, mine, err) : rc;
}

/* Keeps the file. Its bytes may wait for a lost node, so claim_look does not read them. */
static int keep_file(struct device *d, struct skv_storage *s, const struct skv_storage_owner *mine,
		     struct skv_error *err)
{
	struct skv_storage_owner v[SKV_STORAGE_OWNERS], now;
	uint32_t n = 0;
	int rc = list_owners(d, s, NULL, v, &n, err);

	for (uint32_t i = 0; rc == SKV_OK && i < n; i++)
		if (same_owner(&v[i], mine))
			return SKV_OK;
	return rc == SKV_OK && claim_get(d, &now) && same_owner(&now, mine)
		       ? claim_again(d, s, mine, err)
		       : rc;
}

int claim_keep(struct device *d, struct skv_storage *s, struct skv_error *err)
{
	struct skv_storage_owner mine;
	int rc;

	if (!skv_storage_has_owners(d->ops) || !claim_get(d, &mine))
		return SKV_OK;
	rc = keep_file(d, s, &mine, err);
	if (rc != SKV_OK || !next_note(d, &mine))
		return rc;
	rc = skv_storage_claim(s, &mine, err);
	if (rc == SKV_OK)
		atomic_store(&d->noted, mine.horizon.number);
	return rc == SKV_E_CONFLICT ? refuse(d, &mine, err) : rc;
}

void claims_ask(struct skv_core *c)
{
	core_lock(c);
	for (uint32_t i = 0; i < c->n_device; i++)
		device_ask(c->device[i]);
	core_unlock(c);
}

void claims_keep(struct partition *p, uint64_t now)
{
	struct skv_core *c = p->core;

	if (p->noted == p->durable.number || now < p->note_at)
		return;
	p->noted = p->durable.number;
	p->note_at = now + NOTE_MS;
	for (uint32_t i = 0; i < c->n_device; i++)
		if (skv_storage_has_owners(c->device[i]->ops))
			device_ask(c->device[i]);
}

bool claims_noted(struct skv_core *c)
{
	bool noted = true;

	skv_rwlock_read(&c->lock);
	for (uint32_t i = 0; c->partition && i < c->n_device; i++) {
		struct device *d = c->device[i];

		noted &= !skv_storage_has_owners(d->ops) || !device_healthy(d) ||
			 atomic_load(&d->noted) >= c->partition->durable.number;
	}
	skv_rwlock_read_unlock(&c->lock);
	return noted;
}

void claims_skip_generations(struct skv_core *c)
{
	uint64_t seen = 0;
	bool skips;

	core_lock(c);
	for (uint32_t i = 0; i < c->n_device; i++)
		if (atomic_load(&c->device[i]->seen_generation) > seen)
			seen = atomic_load(&c->device[i]->seen_generation);
	skips = c->partition && c->partition->rolled_back && seen >= c->partition->next_generation;
	if (skips)
		generation_least(c->partition, seen + UNSEEN_GENERATIONS);
	core_unlock(c);
	if (skips)
		checkpoint_ask(c); /* which records it */
}

static int outdated(struct device *d, struct skv_error *err)
{
	return skv_fail(err, SKV_E_UNAVAILABLE, NULL,
			"a newer manager of this store claims the directory of '%s': looking again",
			d->name);
}

/* A name that the store does not know. SKV_E_FOREIGN: another copy's. SKV_E_UNAVAILABLE: it is
 * gone, so a newer owner has removed it; that one's own name is in the next listing. */
static int judge_unknown(struct device *d, const struct skv_storage_owner *o, struct skv_error *err)
{
	struct skv_storage_owner v[SKV_STORAGE_OWNERS];
	uint32_t n = 0;
	int rc = list_owners(d, d->storage, NULL, v, &n, err);

	for (uint32_t i = 0; rc == SKV_OK && i < n; i++)
		if (same_owner(&v[i], o))
			return refuse(d, o, err);
	return rc == SKV_OK ? outdated(d, err) : rc;
}

static int judge_owner(struct device *d, const struct skv_storage_owner *o, struct skv_error *err)
{
	int rc = find_owner(d->core, o, err);

	return rc == SKV_E_NOT_FOUND ? judge_unknown(d, o, err) : rc;
}

/* Judges all but our own; of an adopted directory, only those above ours. */
static int judge_all(struct device *d, const struct skv_storage_owner *v, uint32_t n,
		     const struct skv_storage_owner *mine, bool adopting, struct skv_error *err)
{
	int rc = SKV_OK;

	for (uint32_t i = 0; rc == SKV_OK && i < n; i++)
		if (!(mine && same_owner(&v[i], mine)) &&
		    !(adopting && (!mine || v[i].incarnation < mine->incarnation)))
			rc = judge_owner(d, &v[i], err);
	return rc;
}

/* Removes older owner files. Files that cannot be removed now are left to the next owner: returns
 * the lowest incarnation left. */
static uint64_t sweep(struct device *d, const struct skv_storage_owner *v, uint32_t n,
		      const struct skv_storage_owner *mine)
{
	uint64_t least = mine->incarnation;
	struct skv_error why;

	for (uint32_t i = 0; i < n; i++) {
		if (v[i].incarnation >= mine->incarnation ||
		    skv_storage_disown(d->storage, &v[i], &why) == SKV_OK)
			continue;
		skv_log(SKV_LOG_WARN, "storage", "'%s': owner.%" PRIu64 " stays behind: %s",
			d->name, v[i].incarnation, why.message);
		if (v[i].incarnation < least)
			least = v[i].incarnation;
	}
	return least;
}

/* Our own name, or a newer one if it is taken. A full file system has room for it where an older
 * one was removed. */
static int make_claim(struct device *d, const struct skv_storage_owner *v, uint32_t n,
		      bool adopting, struct skv_storage_owner *mine, struct skv_error *err)
{
	int rc = incarnation_above(d->core, n ? v[0].incarnation : 0, mine, err);

	for (int i = 0; rc == SKV_OK && i < CLAIM_TRIES; i++) {
		rc = skv_storage_claim(d->storage, mine, err);
		if (rc == SKV_OK)
			return rc;
		if (rc == SKV_E_NO_SPACE && i == 0) {
			sweep(d, v, n, mine);
			rc = SKV_OK;
		/* the file's creator died meanwhile, or left it */
		} else if (rc == SKV_E_IN_USE || (rc == SKV_E_CONFLICT && adopting)) {
			rc = incarnation_above(d->core, mine->incarnation, mine, err);
		} else if (rc == SKV_E_CONFLICT) {
			return refuse(d, mine, err);
		}
	}
	return rc;
}

static int first_look(struct device *d, struct skv_error *err)
{
	struct skv_storage_owner v[SKV_STORAGE_OWNERS], mine;
	struct skv_storage_horizon loaded;
	struct skv_error why;
	const bool adopting = claim_adopts(d);
	uint32_t n;
	int rc = list_owners(d, d->storage, NULL, v, &n, err);

	if (rc == SKV_OK && !horizon_now(d->core, true, &loaded))
		return skv_fail(err, SKV_E_NOT_READY, NULL, "the partition is not loaded yet");
	if (rc == SKV_OK)
		rc = judge_all(d, v, n, NULL, adopting, err);
	if (rc == SKV_OK && !adopting)
		rc = judge_horizons(d, v, n, &loaded, err);
	if (rc == SKV_OK && adopting)
		see_generations(d, v, n);
	if (rc == SKV_OK)
		rc = make_claim(d, v, n, adopting, &mine, err);
	if (rc != SKV_OK)
		return rc;
	rc = list_owners(d, d->storage, NULL, v, &n, err);
	if (rc == SKV_OK)
		rc = judge_all(d, v, n, &mine, adopting, err);
	if (rc == SKV_OK) {
		rc = find_owner(d->core, &mine, err);
		if (rc == SKV_E_NOT_FOUND) /* creating the file took too long */
			rc = outdated(d, err);
	}
	if (rc != SKV_OK) {
		skv_storage_disown(d->storage, &mine, &why);
		return rc;
	}
	mine.horizon = loaded; /* before the proof in the earlier files is removed */
	rc = loaded.number ? skv_storage_claim(d->storage, &mine, err) : SKV_OK;
	if (rc != SKV_OK)
		return rc;
	atomic_store(&d->noted, loaded.number);
	claim_set(d, &mine, sweep(d, v, n, &mine));
	if (adopting && n > 1)
		skv_log(SKV_LOG_WARN, "storage", "'%s' is adopted, as asked: owner.%" PRIu64,
			d->name, mine.incarnation);
	return SKV_OK;
}

static int look_again(struct device *d, const struct skv_storage_owner *mine, struct skv_error *err)
{
	struct skv_storage_owner v[SKV_STORAGE_OWNERS];
	uint32_t n = 0;
	int rc = list_owners(d, d->storage, mine, v, &n, err);

	for (uint32_t i = 0; rc == SKV_OK && i < n && v[i].incarnation >= mine->incarnation; i++) {
		if (same_owner(&v[i], mine) || (v[i].incarnation == mine->incarnation &&
						skv_storage_owner_is_damaged(&v[i])))
			continue;
		rc = judge_owner(d, &v[i], err);
		if (rc == SKV_OK)
			rc = skv_fail(
				err, SKV_E_UNAVAILABLE, NULL,
				"a newer manager of this store runs in the directory of '%s'",
				d->name);
	}
	return rc;
}

/* ---- names no longer needed ------------------------------------------------------------------ */

static uint64_t least_of(struct device *d)
{
	uint64_t least = 0;

	if (!skv_storage_has_owners(d->ops))
		return UINT64_MAX;
	skv_mutex_lock(&d->lock);
	if (claimed_locked(d))
		least = d->claim_least;
	skv_mutex_unlock(&d->lock);
	return least;
}

/* The lowest incarnation that a directory may still have; 0: some directory was not checked yet. */
static uint64_t least_claim(struct skv_core *c)
{
	uint64_t least = UINT64_MAX;

	skv_rwlock_read(&c->lock);
	for (uint32_t i = 0; i < c->n_device; i++) {
		uint64_t of = least_of(c->device[i]);

		if (of < least)
			least = of;
	}
	skv_rwlock_read_unlock(&c->lock);
	return least == UINT64_MAX ? 0 : least;
}

static void forget_old(struct skv_core *c)
{
	const uint64_t fence = owner_fence(c);
	uint64_t old[FORGET_MAX];
	struct seen s = { .below = least_claim(c), .old = old };

	if (s.below == 0 || skv_store_list(c->store, "incarnation/", see_doc, &s, NULL) != SKV_OK)
		return;
	for (size_t i = 0; i + KEPT < s.n_old; i++) {
		char key[40];

		doc_key(key, old[i]);
		registry_del(c, fence, key, 1, NULL); /* each is written once */
	}
}

/* ---- for the device -------------------------------------------------------------------------- */

int claim_look(struct device *d, struct skv_error *err)
{
	uint64_t now = skv_now_ms(d->core->clock);
	struct skv_storage_owner mine;
	bool claimed;
	int rc;

	if (!skv_storage_has_owners(d->ops))
		return SKV_OK;
	claimed = claim_get(d, &mine);
	rc = claimed ? look_again(d, &mine, err) : first_look(d, err);
	if (rc != SKV_OK)
		return rc;
	atomic_store(&d->refused, REFUSED_NOT);
	atomic_store(&d->looked_at, now);
	if (!claimed)
		forget_old(d->core);
	return SKV_OK;
}

bool claim_overdue(const struct device *d)
{
	return skv_storage_has_owners(d->ops) &&
	       skv_now_ms(d->core->clock) -
			       atomic_load_explicit(&d->looked_at, memory_order_relaxed) >=
		       LATE_MS;
}

void claim_give_back(struct device *d)
{
	struct skv_storage_owner mine;
	struct skv_error why;

	if (d->storage && skv_storage_has_owners(d->ops) && claim_get(d, &mine))
		skv_storage_disown(d->storage, &mine, &why);
}

bool claims_refused(struct skv_core *c)
{
	bool refused = false;

	skv_rwlock_read(&c->lock);
	for (uint32_t i = 0; i < c->n_device; i++)
		refused |= atomic_load(&c->device[i]->refused) != REFUSED_NOT;
	skv_rwlock_read_unlock(&c->lock);
	return refused;
}

int claim_check(struct device *d, const struct journal_end *end, struct skv_error *err)
{
	const struct skv_storage_horizon store = { end->epoch, end->number, 0 };
	struct skv_storage_owner v[SKV_STORAGE_OWNERS];
	uint32_t n = 0;
	int rc = skv_storage_has_owners(d->ops) ? list_owners(d, d->storage, NULL, v, &n, err)
						: SKV_OK;

	if (rc == SKV_OK)
		rc = judge_all(d, v, n, NULL, false, err);
	return rc == SKV_OK ? judge_horizons(d, v, n, &store, err) : rc;
}
