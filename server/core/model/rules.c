/*
 * rules.c - the limits of each tenant: set as a whole, read by all partitions without a lock.
 *
 * Each tenant that was named here or has had an instance has a rule. Rules stay until the end, so
 * that partitions may refer to them. New rules are inserted at the head of their chain, under the
 * lock; readers need no lock. While no tenant has a rate, a call costs one read of `paced`.
 *
 * A rule also adds up what the partitions of the process have of its tenant. Each partition adds
 * its changes when its lock is released, so that the sums are exact when nothing runs, and starts
 * of several partitions at the same moment may each pass.
 */
#include <model/rules.h>

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <skv/clock.h>
#include <skv/hash.h>
#include <skv/lock.h>
#include <skv/mem.h>
#include <skv/ops.h>
#include <skv/status.h>

#include <lock/core.h>
#include <lock/gate.h>

#define CHAINS 256u
#define SECOND 1000000u

struct tenant_rules {
	struct skv_mutex lock; /* held while a rule is made */
	_Atomic(struct tenant_rule *) chain[CHAINS];
	struct skv_tenant_spec others; /* limits of tenants that no rules_set has named */
	uint64_t round;     /* of rules_set */
	_Atomic bool paced; /* a tenant has a blocks_per_s */
};

struct tenant_rules *rules_make(void)
{
	struct tenant_rules *r = skv_calloc(1, sizeof *r);

	if (r)
		skv_mutex_init(&r->lock);
	return r;
}

void rules_free(struct tenant_rules *r)
{
	if (!r)
		return;
	for (uint32_t i = 0; i < CHAINS; i++)
		for (struct tenant_rule *one = atomic_load(&r->chain[i]), *next; one; one = next) {
			next = one->next;
			for (int t = 0; t < TENANT_THINGS; t++)
				assert(rule_sum(one, t) == 0);
			skv_free(one);
		}
	skv_mutex_destroy(&r->lock);
	skv_free(r);
}

static _Atomic(struct tenant_rule *) *chain_of(struct tenant_rules *r, const char *name)
{
	return &r->chain[skv_checksum(name, strlen(name)) % CHAINS];
}

static struct tenant_rule *find(struct tenant_rules *r, const char *name)
{
	struct tenant_rule *one = atomic_load_explicit(chain_of(r, name), memory_order_acquire);

	while (one && strcmp(one->name, name) != 0)
		one = one->next;
	return one;
}

const struct tenant_rule *rules_find(struct tenant_rules *r, const char *name)
{
	return find(r, name);
}

void rule_add(struct tenant_rule *r, enum tenant_thing what, int64_t by)
{
	const uint64_t had =
		atomic_fetch_add_explicit(&r->sum[what], (uint64_t)by, memory_order_relaxed);

	assert(by >= 0 || had >= (uint64_t)-by);
}

static uint64_t any_if_0(uint64_t n) { return n ? n : UINT64_MAX; }

static void set(struct tenant_rule *one, const struct skv_tenant_spec *s)
{
	atomic_store(&one->most[TENANT_BYTES], any_if_0(s->max_bytes));
	atomic_store(&one->most[TENANT_BLOCKS], any_if_0(s->max_blocks));
	atomic_store(&one->most[TENANT_SESSIONS], any_if_0(s->max_sessions));
	atomic_store(&one->most[TENANT_PINS], any_if_0(s->max_pins));
	atomic_store(&one->most[TENANT_INSTANCES], any_if_0(s->max_instances));
	atomic_store(&one->most[TENANT_SPACES], any_if_0(s->max_spaces));
	atomic_store(&one->weight, s->weight ? s->weight : 1);
	if (!s->blocks_per_s)
		atomic_store(&one->paid_until, 0);
	atomic_store(&one->blocks_per_s, s->blocks_per_s);
}

static struct tenant_rule *make_locked(struct tenant_rules *r, const char *name)
	SKV_REQUIRES(r->lock)
{
	struct tenant_rule *one = skv_calloc(1, sizeof *one);

	assert(skv_mutex_held(&r->lock) && strlen(name) < sizeof one->name);
	if (!one)
		return NULL;
	snprintf(one->name, sizeof one->name, "%s", name);
	set(one, &r->others);
	one->next = atomic_load(chain_of(r, name));
	atomic_store_explicit(chain_of(r, name), one, memory_order_release);
	return one;
}

struct tenant_rule *rules_need(struct tenant_rules *r, const char *name)
{
	struct tenant_rule *one = find(r, name);

	if (one)
		return one;
	skv_mutex_lock(&r->lock);
	one = find(r, name);
	if (!one)
		one = make_locked(r, name);
	skv_mutex_unlock(&r->lock);
	return one;
}

int rules_set(struct tenant_rules *r, const struct skv_tenant_view *v, uint32_t n,
	      const struct skv_tenant_spec *others)
{
	bool paced = false, all = true;

	skv_mutex_lock(&r->lock);
	r->others = *others;
	skv_mutex_unlock(&r->lock);
	r->round++;
	for (uint32_t i = 0; i < n; i++) {
		struct tenant_rule *one = rules_need(r, v[i].name);

		if (one) {
			set(one, &v[i].spec);
			one->round = r->round;
		}
		all &= one != NULL;
		paced |= v[i].spec.blocks_per_s > 0;
	}
	for (uint32_t i = 0; i < CHAINS; i++)
		for (struct tenant_rule *one = atomic_load(&r->chain[i]); one; one = one->next)
			if (one->round != r->round)
				set(one, others);
	atomic_store(&r->paced, paced);
	return all ? SKV_OK : SKV_E_NOMEM;
}

int rules_room(struct tenant_rules *r, const char *tenant, bool space, struct skv_error *err)
{
	const enum tenant_thing what = space ? TENANT_SPACES : TENANT_INSTANCES;
	const struct tenant_rule *one = rules_need(r, tenant);
	const uint64_t has = one ? rule_sum(one, what) : 0;

	if (!one)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	if (has < rule_most(one, what))
		return SKV_OK;
	return skv_fail(err, SKV_E_QUOTA, space ? "max_spaces" : "max_instances",
			"tenant '%s' has %llu %s, the most", tenant, (unsigned long long)has,
			space ? "page spaces" : "instances");
}

/* Returns the time that n blocks take at that rate, in us. */
static uint64_t last(uint32_t n, uint32_t per_s)
{
	assert(per_s > 0);
	return ((uint64_t)n * SECOND + per_s - 1) / per_s;
}

/* Not now: it owes, and would owe more than a second's. */
static bool is_over(uint64_t was, uint64_t until, uint64_t now_us)
{
	return was > now_us && until > now_us + SECOND;
}

bool rules_pass(struct tenant_rules *r, const char *name, uint32_t n, uint64_t now_us)
{
	struct tenant_rule *one;
	uint64_t was, until;
	uint32_t per_s;

	if (!atomic_load_explicit(&r->paced, memory_order_relaxed))
		return true;
	one = find(r, name);
	per_s = one ? atomic_load_explicit(&one->blocks_per_s, memory_order_relaxed) : 0;
	if (!per_s || !n)
		return true;
	was = atomic_load_explicit(&one->paid_until, memory_order_relaxed);
	do {
		until = (was > now_us ? was : now_us) + last(n, per_s);
		if (is_over(was, until, now_us))
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&one->paid_until, &was, until,
							memory_order_relaxed,
							memory_order_relaxed));
	return true;
}

static bool is_shut(struct tenant_rules *r, const char *name, uint64_t now_us)
{
	const struct tenant_rule *one;
	uint64_t was;
	uint32_t per_s;

	if (!atomic_load_explicit(&r->paced, memory_order_relaxed))
		return false;
	one = find(r, name);
	per_s = one ? atomic_load_explicit(&one->blocks_per_s, memory_order_relaxed) : 0;
	was = one ? atomic_load_explicit(&one->paid_until, memory_order_relaxed) : 0;
	return per_s && is_over(was, was + last(1, per_s), now_us);
}

static int over_rate(struct skv_core *c, const char *tenant, struct skv_error *err)
{
	COUNT(c, tenant_over_rate, 1);
	return skv_fail(err, SKV_E_TOO_MANY, SKV_BLOCKS_PER_S,
			"tenant '%s' is over its blocks_per_s: retry later", tenant);
}

int rules_pace(struct skv_core *c, const char *tenant, uint64_t n, struct skv_error *err)
{
	const uint32_t blocks = n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;

	return rules_pass(c->rules, tenant, blocks, skv_now_us()) ? SKV_OK
								  : over_rate(c, tenant, err);
}

int rules_gate(struct skv_core *c, const char *tenant, uint64_t n, struct skv_error *err)
{
	const int rc = core_gate(c, err);

	return rc == SKV_OK ? rules_pace(c, tenant, n, err) : rc;
}

int rules_check(struct skv_core *c, const char *tenant, struct skv_error *err)
{
	return is_shut(c->rules, tenant, skv_now_us()) ? over_rate(c, tenant, err) : SKV_OK;
}

uint64_t rules_owed(struct tenant_rules *r, const char *name, uint64_t now_us)
{
	const struct tenant_rule *one = find(r, name);
	const uint64_t until =
		one ? atomic_load_explicit(&one->paid_until, memory_order_relaxed) : 0;

	return until > now_us ? until - now_us : 0;
}
