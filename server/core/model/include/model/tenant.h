/*
 * tenant.h - a tenant in a partition: the usage of its instances, in each storage and in all.
 *
 * A tenant's limits apply to all partitions of the process together: its rule has the sums
 * (model/rules.h). A function that changes a tenant's usage calls tenant_touch; when the
 * partition's lock is released the sums are updated (tenants_tell).
 */
#ifndef SKV_CORE_MODEL_TENANT_H
#define SKV_CORE_MODEL_TENANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <model/rules.h>

struct partition;
struct group;
struct instance;

/* A tenant's usage of a volume. */
struct tenant_volume {
	uint32_t volume;
	uint64_t used_bytes; /* including blocks being removed */
	uint64_t removing_bytes;
};

struct tenant {
	char *name; /* owned */
	struct tenant_volume *in; /* rows.h: each volume that it has had slots in */
	uint32_t n_in;
	size_t cap_in;
	struct partition *partition;
	struct tenant_rule *rule; /* limits of the tenant */
	uint64_t told[TENANT_THINGS]; /* usage already included in the rule's sums */
	bool touched;
	struct tenant *touched_next;
	uint64_t used_bytes, removing_bytes; /* as in all volumes */
	uint64_t blocks;      /* as `blocks` of its instances, retired ones not counted */
	uint64_t open_blocks; /* being written by its sessions */
	uint64_t open_sessions;
	uint64_t instances, spaces; /* registered: of page spaces, and the others */
	uint64_t pins; /* as `pins` of its instances, retired ones not counted */
	/* Newest round of start_serve_waiters in which one of its starts waits for room in its own
	 * limit. */
	uint64_t turn;
	/* Of a search for victims (evict/tenant_share.c), or of tenant_part: */
	/* bytes in the searched storages, without removed ones; decreases with each victim */
	uint64_t used;
	uint64_t share; /* of its room */
};

/* The partition's tenant of that name, made if need be; it stays as long as the partition. NULL:
 * out of memory. */
struct tenant *tenant_need(struct partition *p, const char *name);
/* NULL: it never had slots there. */
struct tenant_volume *tenant_in(const struct tenant *t, uint32_t volume);
/* Prepares the tenant for slots in the volume. SKV_E_NOMEM. */
int tenant_enters(struct tenant *t, uint32_t volume);
void tenant_used_add(struct tenant *t, uint32_t volume, int64_t bytes);
void tenant_removing_add(struct tenant *t, uint32_t volume, int64_t bytes);
/* Counts an instance that is registered (1), or is not any more (-1). */
void tenant_count(const struct instance *inst, int sign);
/* Called after a change of the tenant's usage. */
void tenant_touch(struct tenant *t);
/* Updates the sums with the current usage of all tenants of the partition. */
void tenants_tell(struct partition *p);
/* Return the tenant's usage here, and its usage in other partitions. */
uint64_t tenant_has(const struct tenant *t, enum tenant_thing what);
uint64_t tenant_elsewhere(const struct tenant *t, enum tenant_thing what);
/* Returns the tenant's part, by weights, of `bytes` that the tenants with instances in the group
 * share permanently: no tenant may use what another leaves. Under the write lock. */
uint64_t tenant_part(struct partition *p, const struct group *g, const struct tenant *t,
		     uint64_t bytes);
void tenants_free(struct partition *p);

#endif
