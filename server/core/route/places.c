/*
 * places.c - finds the partition of a group, an instance or an external storage that is in no
 * partition here.
 *
 * The truth is in the partitions. If several managers share them, a manager with only some of them
 * cannot distinguish an object elsewhere from one that does not exist. So each object has a
 * *place*, a document of partition 0's registry, "place/<key of its own document>": written under
 * partition 0's fence before the object is made, so it is made in one partition only, even if
 * several managers try. The owner of partition 0 keeps all places in memory; other managers ask the
 * store and remember its answer.
 *
 * A place whose object does not exist (deleted, or never made) is harmless: calls are sent to its
 * partition, which reports that the object does not exist. Such a place is removed after a while.
 * Objects that are older than places get one when a single manager owns all partitions.
 *
 * A family (place_table.h) has a place, too, which is taken before that of any member, and removed
 * when no member has a place.
 *
 * State: route->places, under route->lock. Writes are in the administrators' turn.
 */
#include "route.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <skv/bytes.h>
#include <skv/log.h>
#include <skv/mem.h>
#include <skv/store.h>

#include <journal/registry_write.h>
#include <lock/gate.h>
#include <lock/lock.h>
#include <model/device.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/volume.h>

#define PREFIX "place/"
#define DOC_KEY (sizeof PREFIX + PLACE_KEY)
#define COMPLETE "placed" /* document: all objects of the store have a place */
#define AT_A_TIME 64u     /* places written in one step */
#define LEARNED_MAX 65536u
#define GONE_MS 300000u /* much longer than a call is on its way */

static bool is_ready(const struct skv_core *one) { return one_state_get(one) == SKV_CORE_READY; }

static int remember(struct route *r, const char *key, uint32_t partition)
{
	int rc;

	skv_mutex_lock(&r->lock);
	rc = places_set(&r->places, key, partition);
	skv_mutex_unlock(&r->lock);
	return rc;
}

/* Enters the store's answer on a manager that does not lead. */
static void learn(struct route *r, struct skv_key name, uint32_t partition)
{
	assert(partition < r->n);
	skv_mutex_lock(&r->lock);
	if (r->places.n >= LEARNED_MAX)
		places_clear(&r->places);
	r->places.fence = 0;
	places_set_name(&r->places, name, partition);
	skv_mutex_unlock(&r->lock);
}

static int get_doc(struct route *r, const char *key, uint32_t *partition, uint64_t *version,
		   struct skv_error *err);

/* ---- finding the partition ------------------------------------------------------------------- */

bool place_elsewhere(const struct route *r)
{
	uint32_t i = 0;

	while (i < r->n && one_state_get(r->core[i]) != SKV_CORE_STANDBY)
		i++;
	return i < r->n;
}

/* Returns true if the lead's table is complete. *at: the partition; r->n: nowhere, or not known. */
static bool ask_table(struct route *r, struct skv_key name, uint32_t *at)
{
	const uint64_t fence = owner_fence(r->core[0]);
	const struct place *p;
	bool known;

	skv_mutex_lock(&r->lock);
	known = r->places.complete && r->places.fence == fence && is_ready(r->core[0]);
	p = places_find(&r->places, name);
	*at = p ? p->partition : r->n;
	skv_mutex_unlock(&r->lock);
	return known;
}

/* Returns a partition that is READY here and can answer that an object does not exist; NULL: this
 * manager has none. */
static struct skv_cluster *any_ready(struct route *r)
{
	for (uint32_t i = 0; i < r->n; i++)
		if (is_ready(r->core[i]))
			return &r->part[i];
	return NULL;
}

/* Every object has a place, so one without a place is nowhere. Once true, it stays true. */
static bool all_have_places(struct route *r)
{
	struct skv_error ignored = { 0 };
	struct skv_buf b = { 0 };

	if (!atomic_load(&r->all_placed) &&
	    skv_store_get(r->core[0]->store, COMPLETE, &b, NULL, &ignored) == SKV_OK)
		atomic_store(&r->all_placed, true);
	skv_buf_destroy(&b);
	return atomic_load(&r->all_placed);
}

/* Asks the store where the object is, as a manager that does not lead: so no other manager has to
 * answer. A thread that may not wait leaves it to one that may (*unknown). If the store
 * does not answer, the lead is asked. */
static struct skv_cluster *ask_store(struct route *r, const char *key, bool *unknown)
{
	const struct skv_key name = skv_hash128(key, strlen(key));
	struct skv_error ignored = { 0 };
	struct skv_cluster *here;
	uint64_t version;
	uint32_t at;

	assert(!skv_thread_waits || skv_thread_locks == 0);
	if (!skv_thread_waits) {
		if (unknown)
			*unknown = true;
		return &r->part[0];
	}
	if (get_doc(r, key, &at, &version, &ignored) != SKV_OK)
		return &r->part[0];
	if (at < r->n) {
		learn(r, name, at);
		return &r->part[at];
	}
	here = any_ready(r);
	return here && all_have_places(r) ? here : &r->part[0];
}

struct skv_cluster *place_look(struct route *r, const char *key, uint32_t refused, bool *unknown)
{
	const struct skv_key name = skv_hash128(key, strlen(key));
	const bool leads = is_ready(r->core[0]);
	uint32_t at;
	bool known;

	if (!place_elsewhere(r))
		return route_missing(r);
	known = ask_table(r, name, &at);
	if (leads && !known)
		return route_missing(r);
	/* unknown, or not there any more */
	if (!leads && (at == r->n || is_ready(r->core[at]) || refused >> at & 1))
		return ask_store(r, key, unknown);
	return &r->part[at < r->n ? at : 0];
}

/* Storages with slab files are in all alike. */
static size_t objects_here(struct skv_core *one)
{
	size_t n = 0;

	skv_rwlock_read(&one->lock);
	if (one->partition)
		n = one->partition->n_group;
	for (uint32_t i = 0; one->partition && i < one->partition->n_volume; i++)
		n += one->partition->volume[i].pool &&
		     one->partition->volume[i].dev->ops->counted;
	skv_rwlock_read_unlock(&one->lock);
	return n;
}

/* Returns the number of objects of a partition that is elsewhere, by their places. */
static size_t objects_there(struct route *r, uint32_t partition)
{
	size_t n = 0;

	skv_mutex_lock(&r->lock);
	for (uint32_t i = 0; i < r->places.size; i++) {
		const struct place *p = &r->places.v[i];

		n += p->used && !p->gone && p->partition == partition && p->key &&
		     strncmp(p->key, "instance/", 9) != 0 && !place_is_family(p->key);
	}
	skv_mutex_unlock(&r->lock);
	return n;
}

/* Where there is most room for an object that belongs to one partition. */
static uint32_t least(struct route *r)
{
	size_t fewest = SIZE_MAX;
	uint32_t at = 0;

	for (uint32_t i = 0; i < r->n; i++) {
		size_t n = is_ready(r->core[i]) ? objects_here(r->core[i]) : objects_there(r, i);

		if (n < fewest) {
			fewest = n;
			at = i;
		}
	}
	return at;
}

/* ---- documents ------------------------------------------------------------------------------- */

static void doc_key(char out[DOC_KEY], const char *key)
{
	snprintf(out, DOC_KEY, PREFIX "%s", key);
}

static bool read_doc(const struct route *r, const void *bytes, size_t n, uint32_t *partition)
{
	struct skv_rd in = skv_rd_make(bytes, n);
	unsigned format = skv_get_u8(&in);

	*partition = skv_get_u8(&in);
	return format == 1 && !in.failed && *partition < r->n;
}

static int get_doc(struct route *r, const char *key, uint32_t *partition, uint64_t *version,
		   struct skv_error *err)
{
	struct skv_buf b = { 0 };
	char name[DOC_KEY];
	int rc;

	doc_key(name, key);
	rc = skv_store_get(r->core[0]->store, name, &b, version, err);
	if (rc == SKV_OK && !read_doc(r, b.data, b.len, partition))
		rc = skv_fail(err, SKV_E_CORRUPT, NULL, "registry: %s is malformed", name);
	if (rc == SKV_E_NOT_FOUND) {
		skv_error_clear(err);
		*version = SKV_VERSION_NONE;
		*partition = r->n;
		rc = SKV_OK;
	}
	skv_buf_destroy(&b);
	return rc;
}

static int put_doc(struct route *r, uint64_t fence, const char *key, uint32_t partition,
		   uint64_t version, struct skv_error *err)
{
	struct skv_buf b = { 0 };
	char name[DOC_KEY];
	int rc;

	doc_key(name, key);
	skv_put_u8(&b, 1);
	skv_put_u8(&b, (uint8_t)partition);
	rc = registry_put(r->core[0], fence, name, version, &b, NULL, err);
	skv_buf_destroy(&b);
	return rc;
}

/* Checks whether the object exists, by its own document; of a family, whether a member has a
 * place. */
static int is_there(struct route *r, uint32_t partition, const char *key, bool *is,
		    struct skv_error *err)
{
	struct skv_buf ignored = { 0 };
	int rc;

	if (place_is_family(key)) {
		skv_mutex_lock(&r->lock);
		*is = places_has_family(&r->places, key);
		skv_mutex_unlock(&r->lock);
		return SKV_OK;
	}
	rc = skv_store_get(r->core[partition]->store, key, &ignored, NULL, err);
	*is = rc == SKV_OK;
	if (rc == SKV_E_NOT_FOUND) {
		skv_error_clear(err);
		rc = SKV_OK;
	}
	skv_buf_destroy(&ignored);
	return rc;
}

/* `*at`, where it is said to be, or r->n, becomes where it is made; a manager that does not lead
 * leaves that to the lead: r->n. */
static int settle(struct route *r, const char *key, const struct skv_cluster *wanted, uint32_t *at,
		  uint64_t version, struct skv_error *err)
{
	const uint64_t fence = owner_fence(r->core[0]);
	const bool leads = is_ready(r->core[0]);
	bool stays = *at < r->n && (!wanted || *at == wanted->core->number);
	int rc = SKV_OK;

	if (!stays && *at < r->n)
		rc = is_there(r, *at, key, &stays, err);
	if (rc != SKV_OK || stays)
		return rc;
	*at = !leads ? r->n : wanted ? wanted->core->number : least(r);
	if (!leads)
		return SKV_OK;
	return put_doc(r, fence, key, *at, version, err);
}

static int take(struct route *r, const char *key, struct skv_cluster *wanted,
		struct skv_cluster **at, struct skv_error *err)
{
	uint32_t number;
	uint64_t version;
	int rc = get_doc(r, key, &number, &version, err);

	if (rc == SKV_OK)
		rc = settle(r, key, wanted, &number, version, err);
	if (rc == SKV_OK && number < r->n)
		rc = remember(r, key, number);
	if (rc != SKV_OK)
		return rc;
	*at = &r->part[number < r->n ? number : 0];
	return SKV_OK;
}

/* A family's place first: *wanted becomes that. */
static int take_family(struct route *r, const char *key, struct skv_cluster **wanted,
		       struct skv_error *err)
{
	struct skv_cluster *at = NULL;
	char family[PLACE_KEY];
	int rc;

	if (!is_ready(r->core[0]) || !places_family(r->family_of, key, family))
		return SKV_OK;
	rc = take(r, family, *wanted, &at, err);
	if (rc == SKV_OK && *wanted && *wanted != at)
		rc = skv_fail(err, SKV_E_CONFLICT, "group",
			      "it is in partition %u, and what belongs together with this instance "
			      "is in partition %u: put the group on a storage there",
			      (unsigned)(*wanted)->core->number, (unsigned)at->core->number);
	*wanted = at;
	return rc;
}

int place_take(struct route *r, const char *key, struct skv_cluster *wanted,
	       struct skv_cluster **at, struct skv_error *err)
{
	uint32_t ignored;
	int rc;

	*at = route_missing(r);
	if (is_ready(r->core[0]) && place_elsewhere(r) &&
	    !ask_table(r, skv_hash128(key, strlen(key)), &ignored))
		return SKV_OK; /* the object may exist elsewhere */
	rc = take_family(r, key, &wanted, err);
	return rc == SKV_OK ? take(r, key, wanted, at, err) : rc;
}

/* ---- all of them, when partition 0 is taken over --------------------------------------------- */

struct loading_places {
	const struct route *r;
	struct places t;
};

static int load_one(void *ctx, const char *name, const void *bytes, size_t n, uint64_t version)
{
	const char *key = name + sizeof PREFIX - 1;
	struct loading_places *l = ctx;
	uint32_t partition;

	(void)version;
	if (!read_doc(l->r, bytes, n, &partition) || strlen(key) >= PLACE_KEY)
		return SKV_OK; /* of a later version */
	return places_set(&l->t, key, partition);
}

static int load(struct route *r, uint64_t fence, struct skv_error *err)
{
	struct loading_places l = { .r = r,
				    .t = { .fence = fence, .family = r->family_of } };
	struct skv_store *store = r->core[0]->store;
	struct skv_buf b = { 0 };
	int rc = skv_store_list(store, PREFIX, load_one, &l, err);

	if (rc == SKV_OK)
		rc = skv_store_get(store, COMPLETE, &b, NULL, err);
	skv_buf_destroy(&b);
	l.t.complete = rc == SKV_OK;
	if (rc == SKV_E_NOT_FOUND) {
		skv_error_clear(err);
		rc = SKV_OK;
	}
	if (rc == SKV_OK) {
		skv_mutex_lock(&r->lock);
		places_clear(&r->places);
		r->places = l.t;
		skv_mutex_unlock(&r->lock);
	} else {
		places_clear(&l.t);
	}
	return rc;
}

/* ---- objects without a place ----------------------------------------------------------------- */

struct missing {
	struct route *r;
	uint32_t partition, n;
	char key[AT_A_TIME][PLACE_KEY];
	uint32_t of[AT_A_TIME];
};

static void need(struct missing *m, const char *key)
{
	bool has;

	if (m->n == AT_A_TIME)
		return;
	skv_mutex_lock(&m->r->lock);
	has = places_find(&m->r->places, skv_hash128(key, strlen(key))) != NULL;
	skv_mutex_unlock(&m->r->lock);
	if (has)
		return;
	memcpy(m->key[m->n], key, strlen(key) + 1);
	m->of[m->n++] = m->partition;
}

static void need_all(struct missing *m, const struct partition *p)
{
	char key[PLACE_KEY];

	ASSERT_SHARED(p);
	for (size_t i = 0; i < p->n_group; i++) {
		place_group_key(key, p->group[i]->spec.name);
		need(m, key);
	}
	for (size_t i = 0; i < p->n_inst; i++) {
		if (p->inst[i]->deleting || !p->inst[i]->registered)
			continue;
		registry_instance_key(key, p->inst[i]->spec.tenant, p->inst[i]->spec.id);
		need(m, key);
	}
	for (uint32_t i = 0; i < p->n_volume; i++) {
		if (!p->volume[i].pool || !p->volume[i].dev->ops->counted)
			continue;
		place_storage_key(key, p->volume[i].dev->name);
		need(m, key);
	}
}

/* Returns true if all objects have a place. */
static bool fill(struct route *r, struct skv_error *err)
{
	struct missing *m = skv_calloc(1, sizeof *m);
	bool all = m != NULL;

	for (uint32_t i = 0; m && i < r->n; i++) {
		struct skv_core *one = r->core[i];

		m->r = r;
		m->partition = i;
		skv_rwlock_read(&one->lock);
		if (one->partition)
			need_all(m, one->partition);
		all &= one->partition != NULL;
		skv_rwlock_read_unlock(&one->lock);
	}
	for (uint32_t i = 0; m && i < m->n; i++) {
		struct skv_cluster *at;

		all = false; /* more may follow */
		if (place_take(r, m->key[i], &r->part[m->of[i]], &at, err) != SKV_OK)
			break;
	}
	skv_free(m);
	return all;
}

static void finish(struct route *r, uint64_t fence, bool complete, struct skv_error *err)
{
	struct skv_buf b = { 0 };
	int rc = SKV_OK;

	skv_put_u8(&b, 1);
	if (!complete)
		rc = registry_put(r->core[0], fence, COMPLETE, SKV_VERSION_NONE, &b, NULL, err);
	skv_buf_destroy(&b);
	if (rc != SKV_OK && rc != SKV_E_CONFLICT)
		return;
	skv_mutex_lock(&r->lock);
	r->places.complete = r->places.filled = true;
	skv_mutex_unlock(&r->lock);
}

/* ---- places without an object ---------------------------------------------------------------- */

/* The next one: its key, in `key`. False: there is none in this cell. */
static bool next(struct route *r, char key[PLACE_KEY], struct place *out)
{
	struct places *t = &r->places;
	bool is;

	skv_mutex_lock(&r->lock);
	t->turn = t->size ? (t->turn + 1) & (t->size - 1) : 0;
	is = t->size && t->v[t->turn].used && !t->v[t->turn].gone && t->v[t->turn].key;
	if (is) {
		*out = t->v[t->turn];
		snprintf(key, PLACE_KEY, "%s", out->key);
	}
	skv_mutex_unlock(&r->lock);
	return is;
}

static void note(struct route *r, struct skv_key name, uint64_t missing_ms, bool gone)
{
	skv_mutex_lock(&r->lock);
	places_note(&r->places, name, missing_ms, gone);
	skv_mutex_unlock(&r->lock);
}

static void sweep(struct route *r, uint64_t fence, struct skv_error *err)
{
	const uint64_t now = skv_now_ms(r->core[0]->clock);
	char key[PLACE_KEY], name[DOC_KEY];
	uint32_t partition;
	uint64_t version;
	struct place p;
	bool there;

	if (!next(r, key, &p) || is_there(r, p.partition, key, &there, err) != SKV_OK)
		return;
	if (there || !p.missing_ms) {
		note(r, p.name, there ? 0 : now, false);
		return;
	}
	if (now - p.missing_ms < GONE_MS || get_doc(r, key, &partition, &version, err) != SKV_OK)
		return;
	doc_key(name, key);
	if (version == SKV_VERSION_NONE ||
	    registry_del(r->core[0], fence, name, version, err) == SKV_OK)
		note(r, p.name, p.missing_ms, true);
}

/* ---- a step ---------------------------------------------------------------------------------- */

/* Of the table, as of now; only this thread changes them. */
static void state(struct route *r, uint64_t *fence, bool *complete, bool *filled)
{
	skv_mutex_lock(&r->lock);
	*fence = r->places.fence;
	*complete = r->places.complete;
	*filled = r->places.filled;
	skv_mutex_unlock(&r->lock);
}

int places_know(struct route *r, struct skv_error *err)
{
	const uint64_t fence = owner_fence(r->core[0]);
	bool complete, filled;
	uint64_t loaded;

	if (!is_ready(r->core[0]))
		return SKV_OK;
	state(r, &loaded, &complete, &filled);
	return loaded == fence ? SKV_OK : load(r, fence, err);
}

static void step(struct route *r, uint64_t fence, struct skv_error *err)
{
	bool complete, filled;
	uint64_t loaded;

	state(r, &loaded, &complete, &filled);
	if (loaded != fence) {
		if (load(r, fence, err) != SKV_OK)
			return;
		state(r, &loaded, &complete, &filled);
	}
	if (!filled && is_ready(route_missing(r)->core) && fill(r, err))
		finish(r, fence, complete, err);
	if (complete)
		sweep(r, fence, err);
}

int skv_cluster_placed(struct skv_cluster *c, bool *placed, struct skv_error *err)
{
	struct skv_buf b = { 0 };
	int rc = skv_store_get(c->route->core[0]->store, COMPLETE, &b, NULL, err);

	*placed = rc == SKV_OK;
	if (rc == SKV_E_NOT_FOUND) {
		skv_error_clear(err);
		rc = SKV_OK;
	}
	skv_buf_destroy(&b);
	return rc;
}

void places_step(struct route *r)
{
	const uint64_t fence = owner_fence(r->core[0]);
	struct skv_error err = { 0 };

	if (!is_ready(r->core[0]) || !route_turn_try(r))
		return;
	step(r, fence, &err);
	route_turn_leave(r);
	if (err.status != SKV_OK)
		skv_log(SKV_LOG_DEBUG, "core", "places: %s", err.message);
}
