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
#define FAMILY "family/"

/* ---- keys ------------------------------------------------------------------------------------ */

void place_group_key(char out[PLACE_KEY], const char *name)
{
	snprintf(out, PLACE_KEY, "group/%s", name);
}

void place_storage_key(char out[PLACE_KEY], const char *name)
{
	snprintf(out, PLACE_KEY, STORAGE "%s", name);
}

void place_family_key(char out[PLACE_KEY], const char *family)
{
	snprintf(out, PLACE_KEY, FAMILY "%s", family);
}

bool place_is_family(const char *key) { return strncmp(key, FAMILY, sizeof FAMILY - 1) == 0; }

bool places_family(skv_family_fn *of, const char *key, char family[PLACE_KEY])
{
	char tenant[SKV_MAX_NAME + 1], name[SKV_MAX_NAME + 1];
	const size_t n = sizeof STORAGE - 1;
	const char *id;
	bool is = false;

	if (of && strncmp(key, STORAGE, n) == 0)
		is = of(NULL, key + n, name);
	else if (of && (id = registry_instance_of(key, tenant)))
		is = of(tenant, id, name);
	if (is)
		place_family_key(family, name);
	return is;
}

static struct skv_key name_of(const char *key) { return skv_hash128(key, strlen(key)); }

/* ---- cells ----------------------------------------------------------------------------------- */

void places_clear(struct places *t)
{
	for (uint32_t i = 0; i < t->size; i++)
		skv_free(t->v[i].key);
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

static int make_room(struct places *t)
{
	struct places more = { .size = t->size ? 2 * t->size : 64 };

	if (2 * (t->n + 1) <= t->size)
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

bool places_has_family(const struct places *t, const char *family)
{
	const struct skv_key name = name_of(family);
	uint32_t i = 0;

	assert(place_is_family(family));
	for (; i < t->size; i++)
		if (t->v[i].used && !t->v[i].gone && skv_key_equal(t->v[i].family, name))
			break;
	return i < t->size;
}

/* ---- changes --------------------------------------------------------------------------------- */

int places_set_name(struct places *t, struct skv_key name, uint32_t partition)
{
	struct place *p;

	assert(partition < SKV_MAX_PARTITIONS);
	if (make_room(t) != SKV_OK)
		return SKV_E_NOMEM;
	p = take_cell(t, name);
	p->partition = (uint8_t)partition;
	p->missing_ms = 0;
	p->gone = false;
	return SKV_OK;
}

int places_set(struct places *t, const char *key, uint32_t partition)
{
	char *copy = skv_strdup(key), family[PLACE_KEY];
	struct place *p;

	if (!copy || places_set_name(t, name_of(key), partition) != SKV_OK) {
		skv_free(copy);
		return SKV_E_NOMEM;
	}
	p = cell(t, name_of(key));
	skv_free(p->key);
	p->key = copy;
	if (places_family(t->family, key, family))
		p->family = name_of(family);
	return SKV_OK;
}

void places_note(struct places *t, struct skv_key name, uint64_t missing_ms, bool gone)
{
	struct place *p = t->size ? cell(t, name) : NULL;

	if (!p || !p->used)
		return;
	assert(gone || !p->gone);
	p->missing_ms = missing_ms;
	p->gone = gone;
}
