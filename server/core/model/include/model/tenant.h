/* tenant.h - a tenant in a partition: what its instances use of each storage. */
#ifndef SKV_CORE_MODEL_TENANT_H
#define SKV_CORE_MODEL_TENANT_H

#include <stddef.h>
#include <stdint.h>

struct partition;
struct tenant_rule;

/* Its usage of one volume. */
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
	struct tenant_rule *rule; /* what it may have */
	uint64_t used_bytes, removing_bytes; /* as in all volumes */
	uint64_t blocks;      /* as `blocks` of its instances, retired ones not counted */
	uint64_t open_blocks; /* being written by its sessions */
	uint64_t open_sessions;
	uint64_t turn; /* newest round of start_serve_waiters in which one of its starts waits for
			* room in its own limit */
	/* Of one search for victims (evict/tenant_share.c): */
	uint64_t used;  /* bytes in what is searched, removed ones not counted; goes down with each
			 * victim */
	uint64_t share; /* of its room */
};

/* The partition's tenant of that name, made if need be; it stays as long as the partition. NULL:
 * out of memory. */
struct tenant *tenant_need(struct partition *p, const char *name);
/* NULL: it never had slots there. */
struct tenant_volume *tenant_in(const struct tenant *t, uint32_t volume);
/* It will have slots there. SKV_E_NOMEM. */
int tenant_enters(struct tenant *t, uint32_t volume);
void tenant_used_add(struct tenant *t, uint32_t volume, int64_t bytes);
void tenant_removing_add(struct tenant *t, uint32_t volume, int64_t bytes);
/* Its pinned blocks; costs a look at each instance. */
uint64_t tenant_pins(const struct partition *p, const struct tenant *t);
void tenants_free(struct partition *p);

#endif
