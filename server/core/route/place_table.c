/*
 * place_table.c - the table of places. See place_table.h. No locks: its callers hold the route's.
 */
#include "place_table.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <skv/mem.h>

#include <journal/registry_write.h>

#define STORAGE "storage/"

static const struct skv_key none;

/* ---- keys ------------------------------------------------------------------------------------ */

void place_group_key(char out[PLACE_KEY], const char *name)
{
	snprintf(out, PLACE_KEY, "group/%s", name);
}

void place_storage_key(char out[PLACE_KEY], const char *name)
{
	snprintf(out, PLACE_KEY, STORAGE "%s", name);
}

/* No object's document begins like this. */
struct skv_key place_family_name(const char *family)
{
	char key[PLACE_KEY];
	int n = snprintf(key, sizeof key, "family/%s", family);

	assert(n > 0 && (size_t)n < sizeof key);
	return skv_hash128(key, (size_t)n);
}

/* The family of the object whose document has this key; zero: none. */
static struct skv_key family_of(const struct places *t, const char *key)
{
	char tenant[SKV_MAX_NAME + 1], family[SKV_MAX_NAME + 1];
	const size_t n = sizeof STORAGE - 1;
	const char *id;
	bool is = false;

	if (t->family && strncmp(key, STORAGE, n) == 0)
		is = t->family(NULL, key + n, family);
	else if (t->family && (id = registry_instance_of(key, tenant)))
		is = t->family(tenant, id, family);
	return is ? place_family_name(family) : none;
}

/* ---- cells ----------------------------------------------------------------------------------- */

void places_clear(struct places *t)
{
	for (uint32_t i = 0; i < t->size; i++) {
		skv_free(t->v[i].key);
		skv_free(t->v[i].members);
	}
	skv_free(t->v);
	t->v = NULL;
	t->n = t->size = 0;
}

/* The cell of `name`, or the free one where it would be. */
static struct place *cell(const struct places *t, struct skv_key name)
{
	uint32_t at = (uint32_t)name.lo & (t->size - 1);

	assert(t->n < t->size);
	while (t->v[at].used && !skv_key_equal(t->v[at].name, name))
		at = (at + 1) & (t->size - 1);
	return &t->v[at];
}

const struct place *places_find(const struct places *t, struct skv_key name)
{
	const struct place *p = t->size ? cell(t, name) : NULL;

	return p && p->used && !p->gone ? p : NULL;
}

/* For an object and its family. */
static int make_room(struct places *t)
{
	struct places more = { .size = t->size ? 2 * t->size : 64 };

	if (2 * (t->n + 2) <= t->size)
		return SKV_OK;
	more.v = skv_calloc(more.size, sizeof *more.v);
	if (!more.v)
		return SKV_E_NOMEM;
	for (uint32_t i = 0; i < t->size; i++) {
		if (!t->v[i].used)
			continue;
		*cell(&more, t->v[i].name) = t->v[i];
		more.n++;
	}
	assert(more.n == t->n);
	skv_free(t->v);
	t->v = more.v;
	t->size = more.size;
	return SKV_OK;
}

static struct place *take_cell(struct places *t, struct skv_key name)
{
	struct place *p = cell(t, name);

	t->n += !p->used;
	p->used = true;
	p->name = name;
	return p;
}

/* ---- families -------------------------------------------------------------------------------- */

/* One that another manager told is not counted. */
static int join(struct places *t, struct skv_key family, uint32_t partition)
{
	struct place *f = cell(t, family);

	if (f->used && !f->members)
		return SKV_OK;
	if (!f->used) {
		uint32_t *members = skv_calloc(SKV_MAX_PARTITIONS, sizeof *members);

		if (!members)
			return SKV_E_NOMEM;
		f = take_cell(t, family);
		f->members = members;
	}
	f->members[partition]++;
	return SKV_OK;
}

static void leave(struct places *t, struct skv_key family, uint32_t partition)
{
	struct place *f = cell(t, family);

	if (!f->used || !f->members)
		return;
	assert(f->members[partition] > 0);
	f->members[partition]--;
}

/* Does it count in its family? */
static bool counts(const struct place *p)
{
	return p->used && !p->gone && p->key && !skv_key_equal(p->family, none);
}

uint32_t places_family(const struct places *t, struct skv_key family)
{
	const struct place *f = places_find(t, family);
	uint32_t at = PLACE_NONE;

	for (uint32_t i = 0; f && f->members && i < SKV_MAX_PARTITIONS; i++)
		if (f->members[i])
			at = at == PLACE_NONE ? i : PLACE_SEVERAL;
	return at;
}

uint32_t places_beside(const struct places *t, const char *key)
{
	const struct skv_key family = family_of(t, key);

	return skv_key_equal(family, none) ? PLACE_NONE : places_family(t, family);
}

/* ---- changes --------------------------------------------------------------------------------- */

int places_set(struct places *t, const char *key, uint32_t partition)
{
	const struct skv_key name = skv_hash128(key, strlen(key)), family = family_of(t, key);
	const bool has = !skv_key_equal(family, none);
	struct place *p;
	char *copy = NULL;

	assert(partition < SKV_MAX_PARTITIONS);
	if (make_room(t) != SKV_OK)
		return SKV_E_NOMEM;
	p = cell(t, name);
	if (!p->key && !(copy = skv_strdup(key)))
		return SKV_E_NOMEM;
	if (has && join(t, family, partition) != SKV_OK) {
		skv_free(copy);
		return SKV_E_NOMEM;
	}
	if (counts(p))
		leave(t, p->family, p->partition);
	p = take_cell(t, name);
	*p = (struct place){ .used = true,
			     .name = name,
			     .partition = (uint8_t)partition,
			     .key = copy ? copy : p->key,
			     .family = family };
	return SKV_OK;
}

int places_set_told(struct places *t, struct skv_key name, uint32_t partition, uint64_t teller)
{
	struct place *p;

	assert(partition < SKV_MAX_PARTITIONS);
	if (make_room(t) != SKV_OK)
		return SKV_E_NOMEM;
	p = take_cell(t, name);
	if (counts(p))
		leave(t, p->family, p->partition);
	skv_free(p->members);
	p->members = NULL;
	p->partition = (uint8_t)partition;
	p->teller = teller;
	p->missing_ms = 0;
	p->gone = false;
	if (counts(p) && join(t, p->family, partition) != SKV_OK)
		p->family = none;
	return SKV_OK;
}

void places_note(struct places *t, struct skv_key name, uint64_t missing_ms, bool gone)
{
	struct place *p = t->size ? cell(t, name) : NULL;

	if (!p || !p->used)
		return;
	if (gone && counts(p))
		leave(t, p->family, p->partition);
	assert(gone || !p->gone);
	p->missing_ms = missing_ms;
	p->gone = gone;
}
