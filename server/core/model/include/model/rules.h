/* rules.h - the limits of each tenant (skv_cluster_tenants_set), for all partitions of a
 * manager. */
#ifndef SKV_CORE_MODEL_RULES_H
#define SKV_CORE_MODEL_RULES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <skv/limits.h>

struct skv_core;
struct skv_error;
struct skv_tenant_spec;
struct skv_tenant_view;
struct tenant_rules;

/* The quantities of a tenant that are counted and bounded; blocks include those being written. */
enum tenant_thing {
	TENANT_BYTES,
	TENANT_BLOCKS,
	TENANT_SESSIONS,
	TENANT_PINS,
	TENANT_INSTANCES, /* without page spaces */
	TENANT_SPACES,
	TENANT_THINGS
};

/* Of one tenant, for as long as the rules; numbers may change at any time. */
struct tenant_rule {
	struct tenant_rule *next;
	char name[SKV_MAX_NAME + 1];
	uint64_t round; /* of the newest rules_set that named it */
	_Atomic uint64_t most[TENANT_THINGS]; /* UINT64_MAX: any number */
	/* Usage in all partitions, as of when each was last unlocked (model/tenant.h). */
	_Atomic uint64_t sum[TENANT_THINGS];
	_Atomic uint32_t weight;              /* of its share; at least 1 */
	_Atomic uint32_t blocks_per_s;        /* 0: any number */
	_Atomic uint64_t paid_until; /* us: at that rate its blocks so far last until then */
};

static inline uint64_t rule_most(const struct tenant_rule *r, enum tenant_thing what)
{
	return atomic_load_explicit(&r->most[what], memory_order_relaxed);
}

static inline uint64_t rule_sum(const struct tenant_rule *r, enum tenant_thing what)
{
	return atomic_load_explicit(&r->sum[what], memory_order_relaxed);
}
static inline uint64_t rule_weight(const struct tenant_rule *r)
{
	return atomic_load_explicit(&r->weight, memory_order_relaxed);
}

/* A part of `of`, by weights. */
static inline uint64_t rule_part(uint64_t of, uint64_t weight, uint64_t weights)
{
	return (uint64_t)((unsigned __int128)of * weight / weights);
}

/* Adds to (or subtracts from) a partition's usage. Any thread. */
void rule_add(struct tenant_rule *r, enum tenant_thing what, int64_t by);

struct tenant_rules *rules_make(void);
/* When no partition is left. NULL is allowed. */
void rules_free(struct tenant_rules *r);
/* Returns NULL for a tenant that was never named. Any thread. */
const struct tenant_rule *rules_find(struct tenant_rules *r, const char *name);
/* Made if need be, without bounds. NULL: out of memory. Any thread. */
struct tenant_rule *rules_need(struct tenant_rules *r, const char *name);
/* These; of other tenants `others`. SKV_E_NOMEM: some are set. One thread at a time. */
int rules_set(struct tenant_rules *r, const struct skv_tenant_view *v, uint32_t n,
	      const struct skv_tenant_spec *others);
/* Checks whether the tenant may have another instance, or page space. SKV_E_QUOTA, field
 * "max_instances" or "max_spaces". Any thread. */
int rules_room(struct tenant_rules *r, const char *tenant, bool space, struct skv_error *err);
/* Charges n blocks at `now_us`, of any clock that only grows. A second's worth passes at once; a
 * larger call passes if nothing is owed, and the excess is then owed. Returns false if the call
 * must wait. Any thread. */
bool rules_pass(struct tenant_rules *r, const char *name, uint32_t n, uint64_t now_us);
/* Before a call on n blocks: SKV_E_TOO_MANY, which is counted, if they may not pass now. Any
 * thread. */
int rules_pace(struct skv_core *c, const char *tenant, uint64_t n, struct skv_error *err);
/* core_gate, and then rules_pace. */
int rules_gate(struct skv_core *c, const char *tenant, uint64_t n, struct skv_error *err);
/* Would any number of blocks be refused now? Statuses and threads as above. */
int rules_check(struct skv_core *c, const char *tenant, struct skv_error *err);
/* Until a tenant owes nothing, us. Any thread. */
uint64_t rules_owed(struct tenant_rules *r, const char *name, uint64_t now_us);

#endif
