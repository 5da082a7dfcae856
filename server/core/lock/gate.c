/*
 * gate.c - may this manager answer: its state, and whether it owns the partition.
 *
 * Only atomics, so any thread may ask at any time. Only owner.c sets the lease; others may report
 * that it is lost, or that the partition must be reloaded.
 */
#include <lock/gate.h>

#include <lock/core.h>

bool owner_valid(const struct skv_core *c)
{
	return skv_now_ms(c->clock) < atomic_load_explicit(&c->owned_until, memory_order_relaxed);
}

int gate_fail(const struct skv_core *c, struct skv_error *err, int status, const char *text)
{
	skv_fail(err, status, NULL, "%s", text);
	if (err)
		err->partition = c->o.partition + 1;
	return status;
}

int gate_recovering(const struct skv_core *c, struct skv_error *err)
{
	return gate_fail(c, err, SKV_E_NOT_READY, "recovering");
}

int core_gate(const struct skv_core *c, struct skv_error *err)
{
	int state = atomic_load_explicit(&c->state, memory_order_acquire);

	if (state == SKV_CORE_STOPPED || atomic_load_explicit(&c->closing, memory_order_relaxed))
		return gate_fail(c, err, SKV_E_NOT_READY, "this manager is shutting down");
	if (state == SKV_CORE_STANDBY || !owner_valid(c))
		return gate_fail(c, err, SKV_E_NOT_OWNER,
				 "this manager is not the owner: ask the owner");
	if (state != SKV_CORE_READY)
		return gate_recovering(c, err);
	return SKV_OK;
}

bool owner_lost(struct skv_core *c, uint64_t fence)
{
	if (atomic_load(&c->fence) != fence)
		return false;
	atomic_store(&c->fenced, true);
	return true;
}

void owner_ask_reload(struct skv_core *c)
{
	int ready = SKV_CORE_READY;

	atomic_store(&c->reload_asked, true);
	atomic_fetch_add(&c->given_up, 1); /* before the state: see one_may_tell */
	atomic_compare_exchange_strong(&c->state, &ready, SKV_CORE_RECOVERING);
}
