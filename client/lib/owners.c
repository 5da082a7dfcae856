/*
 * owners.c - a map of instances to partitions, and of partitions to their owners. See owners.h.
 *
 * Bounded: an entry for each partition that can be, and INSTANCES places for hashes of names, where
 * a newer one takes the older one's. One lock, held for a copy of a URL.
 */
#include "owners.h"

#include <stdint.h>
#include <string.h>

#include <skv/check.h>
#include <skv/hash.h>
#include <skv/lock.h>
#include <skv/mem.h>
#include <skv/ops.h>

#define INSTANCES 1024u /* a power of two */
#define NOWHERE UINT32_MAX

struct owner {
	uint64_t epoch;
	char *url; /* NULL: not known */
};

struct skv_owners {
	struct skv_mutex lock; /* of all */
	struct owner of[SKV_NOTE_PARTITIONS];
	uint64_t place[INSTANCES]; /* hash of a name, with the partition as its last byte */
};

struct skv_owners *skv_owners_create(void)
{
	struct skv_owners *o = skv_calloc(1, sizeof *o);

	if (o)
		skv_mutex_init(&o->lock);
	return o;
}

void skv_owners_destroy(struct skv_owners *o)
{
	if (!o)
		return;
	for (uint32_t i = 0; i < SKV_NOTE_PARTITIONS; i++)
		skv_free(o->of[i].url);
	skv_mutex_destroy(&o->lock);
	skv_free(o);
}

/* ---- the object of a path -------------------------------------------------------------------- */

/* Returns the name after `prefix`; NULL: another path. */
static const char *name_in(const char *path, const char *prefix, size_t *n)
{
	const size_t skip = strlen(prefix);

	if (strncmp(path, prefix, skip) != 0)
		return NULL;
	*n = strcspn(path + skip, "/?");
	return *n ? path + skip : NULL;
}

/* Ids of sessions and moves begin with their partition. */
static uint32_t partition_of_id(const char *path)
{
	struct skv_key key;
	size_t n;
	const char *id = name_in(path, "/v1/sessions/", &n);

	if (!id)
		id = name_in(path, "/v1/moves/", &n);
	return id && skv_key_from_hex(id, n, &key) ? (uint32_t)(key.hi >> 56) : NOWHERE;
}

/* NULL: it is about no instance. */
static uint64_t *place_of(struct skv_owners *o, const char *path, uint64_t *hash)
{
	size_t n;
	const char *name = name_in(path, "/v1/instances/", &n);

	if (!name)
		return NULL;
	*hash = skv_checksum(name, n);
	return &o->place[*hash / SKV_NOTE_PARTITIONS % INSTANCES];
}

static uint32_t partition_of_locked(struct skv_owners *o, const char *path) SKV_REQUIRES(o->lock)
{
	uint64_t hash;
	const uint64_t *place = place_of(o, path, &hash);

	SKV_CHECK(skv_mutex_held(&o->lock));
	if (!place)
		return partition_of_id(path);
	return *place / SKV_NOTE_PARTITIONS == hash / SKV_NOTE_PARTITIONS
		       ? (uint32_t)(*place % SKV_NOTE_PARTITIONS)
		       : NOWHERE;
}

/* ---- the map --------------------------------------------------------------------------------- */

bool skv_owners_find(struct skv_owners *o, const char *path, char url[SKV_NOTE_URL])
{
	uint32_t at;
	bool known;

	skv_mutex_lock(&o->lock);
	at = partition_of_locked(o, path);
	known = at < SKV_NOTE_PARTITIONS && o->of[at].url;
	if (known)
		memcpy(url, o->of[at].url, strlen(o->of[at].url) + 1);
	skv_mutex_unlock(&o->lock);
	return known;
}

static void forget_locked(struct owner *w)
{
	skv_free(w->url);
	*w = (struct owner){ .url = NULL };
}

/* Stores an owner's report unless a newer one is known: answers may arrive in another order. */
static void take_locked(struct owner *w, uint64_t epoch, const char *url)
{
	if (w->url && epoch <= w->epoch)
		return;
	if (!w->url || strcmp(w->url, url) != 0) {
		forget_locked(w);
		w->url = skv_strdup(url);
	}
	w->epoch = epoch;
}

void skv_owners_learn(struct skv_owners *o, const char *path, const struct skv_owner_note *note,
		      const char *url)
{
	uint64_t *place, hash;

	SKV_CHECK(note->partition < SKV_NOTE_PARTITIONS);
	skv_mutex_lock(&o->lock);
	place = place_of(o, path, &hash);
	if (place)
		*place = hash - hash % SKV_NOTE_PARTITIONS + note->partition;
	if (note->epoch && strlen(url) < SKV_NOTE_URL)
		take_locked(&o->of[note->partition], note->epoch, url);
	skv_mutex_unlock(&o->lock);
}

void skv_owners_forget(struct skv_owners *o, const char *path, const char *url)
{
	uint32_t only;

	skv_mutex_lock(&o->lock);
	only = path ? partition_of_locked(o, path) : NOWHERE;
	for (uint32_t i = 0; i < SKV_NOTE_PARTITIONS; i++)
		if ((!path || i == only) && o->of[i].url && strcmp(o->of[i].url, url) == 0)
			forget_locked(&o->of[i]);
	skv_mutex_unlock(&o->lock);
}
