/* rules.h - what each tenant may have (skv_core_tenants_set), for all partitions of a manager. */
#ifndef SKV_CORE_MODEL_RULES_H
#define SKV_CORE_MODEL_RULES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <skv/limits.h>

struct skv_tenant_view;
struct tenant_rules;

/* What is counted of a tenant, and bounded; blocks with those being written. */
enum tenant_thing { TENANT_BYTES, TENANT_BLOCKS, TENANT_SESSIONS, TENANT_PINS, TENANT_THINGS };

/* Of one tenant, for as long as the rules; numbers may change at any time. */
struct tenant_rule {
	struct tenant_rule *next;
	char name[SKV_MAX_NAME + 1];
	uint64_t round; /* of the newest rules_set that named it */
	_Atomic uint64_t most[TENANT_THINGS]; /* UINT64_MAX: any number */
	_Atomic uint64_t sum[TENANT_THINGS];  /* what all partitions have, as of when each was
					       * last unlocked (model/tenant.h) */
	_Atomic uint32_t weight;              /* of its share; at least 1 */
	_Atomic uint32_t blocks_per_s;        /* 0: any number */
	_Atomic uint64_t paid_until;          /* us: at that rate its blocks so far last until
					       * then */
};

static inline uint64_t rule_most(const struct tenant_rule *r, enum tenant_thing what)
{
	return atomic_load_explicit(&r->most[what], memory_order_relaxed);
}

static inline uint64_t rule_sum(const struct tenant_rule *r, enum tenant_thing what)
{
	return atomic_load_explicit(&r->sum[what], memory_order_relaxed);
}
/* A partition has so much more, or less. Any thread. */
void rule_add(struct tenant_rule *r, enum tenant_thing what, int64_t by);

struct tenant_rules *rules_make(void);
/* When no partition is left. NULL is allowed. */
void rules_free(struct tenant_rules *r);
/* NULL: nobody has named it. Any thread. */
const struct tenant_rule *rules_find(struct tenant_rules *r, const char *name);
/* Made if need be, without bounds. NULL: out of memory. Any thread. */
struct tenant_rule *rules_need(struct tenant_rules *r, const char *name);
/* These, and no others. SKV_E_NOMEM: some are set. One thread at a time. */
int rules_set(struct tenant_rules *r, const struct skv_tenant_view *v, uint32_t n);
/* n more blocks at `now_us`, of any clock that only grows. A second's pass at once, and what is
 * more than that if nothing is owed: then it is. False: not now. Any thread. */
bool rules_pass(struct tenant_rules *r, const char *name, uint32_t n, uint64_t now_us);
/* Would any number of blocks be refused now? Any thread. */
bool rules_shut(struct tenant_rules *r, const char *name, uint64_t now_us);
/* Until a tenant owes nothing, us. Any thread. */
uint64_t rules_owed(struct tenant_rules *r, const char *name, uint64_t now_us);

#endif
