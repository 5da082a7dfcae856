/*
 * place_table.h - the places that a manager knows, in memory: by name, and by family.
 *
 * A *family* (skv_core_options.family) is a set of external storages and instances that lie in one
 * partition. Its place is as an object's; nothing else has a key that begins as its key does.
 */
#ifndef SKV_CORE_ROUTE_PLACE_TABLE_H
#define SKV_CORE_ROUTE_PLACE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include <skv/core.h>
#include <skv/hash.h>

#define PLACE_KEY 300u

/* Of an object, or of a family. */
struct place {
	bool used, gone;
	uint8_t partition;
	struct skv_key name;
	/* Of the object's document; NULL: it was looked up by a manager that does not lead. */
	char *key;
	uint64_t missing_ms;   /* since when its object has not been there; 0: it was */
	struct skv_key family; /* name of the place of its family; zero: none */
};

struct places {
	struct place *v;  /* open addressing */
	uint32_t n, size; /* a power of two, or 0 */
	uint32_t turn;    /* of the sweep */
	uint64_t fence;   /* of partition 0, when they were read; 0: they were learned */
	bool complete;    /* every object of the store has one */
	bool filled;      /* the objects of all partitions were entered, under this fence */
	skv_family_fn *family; /* NULL: there are none */
};

void place_group_key(char out[PLACE_KEY], const char *name);
void place_storage_key(char out[PLACE_KEY], const char *name);
void place_family_key(char out[PLACE_KEY], const char *family);
bool place_is_family(const char *key);

/* Returns the place of an object; NULL: not known. */
const struct place *places_find(const struct places *t, struct skv_key name);
/* An object's. SKV_E_NOMEM. */
int places_set(struct places *t, const char *key, uint32_t partition);
/* The same, by its name alone. */
int places_set_name(struct places *t, struct skv_key name, uint32_t partition);
/* Since when the object has not been there (0: it is); `gone`: its place was removed. */
void places_note(struct places *t, struct skv_key name, uint64_t missing_ms, bool gone);
/* The key of the family of the object with this key, which may be new; false: it has none. */
bool places_family(skv_family_fn *of, const char *key, char family[PLACE_KEY]);
/* Returns true if any object of the family with this key has a place. */
bool places_has_family(const struct places *t, const char *family);
/* Of the names, not of what else is in *t. */
void places_clear(struct places *t);

#endif
