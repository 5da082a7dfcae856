/*
 * place_table.h - the places that a manager knows, in memory: by name, and by family.
 *
 * A *family* (skv_core_options.family) is a set of external storages and instances that lie in one
 * partition. It has no place of its own: where it is, is where its members' places are. So the
 * table counts these, by family and partition.
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
	char *key;             /* of the object's document; NULL: another manager told it, or it is
				* a family's */
	uint64_t missing_ms;   /* since when its object has not been there; 0: it was */
	struct skv_key family; /* that the object is of; zero: none */
	uint64_t teller;       /* key NULL: who told it (place_lead) */
	uint32_t *members;     /* [SKV_MAX_PARTITIONS] of a family whose members are in the table:
				* how many places each partition has; else NULL */
};

struct places {
	struct place *v;  /* open addressing */
	uint32_t n, size; /* a power of two, or 0 */
	uint32_t turn;    /* of the sweep */
	uint64_t fence;   /* of partition 0, when they were read; 0: they were learned */
	bool complete;    /* every object of the store has one */
	bool filled;      /* those of all partitions were looked at, under this fence */
	skv_family_fn *family; /* NULL: there are none */
};

void place_group_key(char out[PLACE_KEY], const char *name);
void place_storage_key(char out[PLACE_KEY], const char *name);
struct skv_key place_family_name(const char *family);

/* Where it is said to be; NULL: not known. */
const struct place *places_find(const struct places *t, struct skv_key name);
/* An object's. SKV_E_NOMEM. */
int places_set(struct places *t, const char *key, uint32_t partition);
/* What another manager told, of an object or a family. SKV_E_NOMEM. */
int places_set_told(struct places *t, struct skv_key name, uint32_t partition, uint64_t teller);
/* Since when the object has not been there (0: it is); `gone`: its place was removed. */
void places_note(struct places *t, struct skv_key name, uint64_t missing_ms, bool gone);
/* The one partition that all members of a family are in; PLACE_NONE: there are none; PLACE_SEVERAL.
 */
enum { PLACE_NONE = SKV_MAX_PARTITIONS, PLACE_SEVERAL };
uint32_t places_family(const struct places *t, struct skv_key family);
/* The same, of the family of the object with this key, which may be new; PLACE_NONE if it has none.
 */
uint32_t places_beside(const struct places *t, const char *key);
/* Of the names, not of what else is in *t. */
void places_clear(struct places *t);

#endif
