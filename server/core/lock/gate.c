/*
 * gate.c - decides whether this manager may answer: the ownership of a core's partition.
 *
 * Owns the core's state machine (ownership.c) under `gate.lock`, a leaf: any thread reports events.
 * Copies of the values that every call reads are atomics. They are written in an order such that a
 * reader that sees a partition given up has seen the earlier count (one_may_tell).
 */
#include <lock/gate.h>

#include <stdio.h>

#include <skv/lock.h>
#include <skv/mem.h>

#include <lock/core.h>

struct gate {
	struct skv_mutex lock;
	struct ownership own;        /* lock */
	char holder[SKV_OWNER_NAME]; /* lock: the partition's other owner; "" unknown, or none */
	_Atomic uint64_t owned_until, fence, given_up;
	_Atomic int state;
};

struct gate *gate_create(bool may_own)
{
	struct gate *g = skv_calloc(1, sizeof *g);

	if (!g)
		return NULL;
	skv_mutex_init(&g->lock);
	g->own.may_own = may_own;
	atomic_init(&g->state, g->own.state);
	return g;
}

void gate_destroy(struct gate *g)
{
	if (!g)
		return;
	skv_mutex_destroy(&g->lock);
	skv_free(g);
}

/* ---- events ---------------------------------------------------------------------------------- */

static enum own_action apply(struct skv_core *c, struct own_input *in)
{
	struct gate *g = c->gate;
	enum own_action action;

	in->lease_ms = c->o.owner_lease_ms;
	skv_mutex_lock(&g->lock);
	action = ownership_on(&g->own, in);
	atomic_store(&g->given_up, g->own.given_up);
	atomic_store(&g->fence, g->own.fence);
	atomic_store(&g->owned_until, g->own.owned_until);
	atomic_store(&g->state, g->own.state);
	skv_mutex_unlock(&g->lock);
	return action;
}

enum own_action owner_event(struct skv_core *c, enum own_event event, uint64_t fence)
{
	struct own_input in = { .event = event, .fence = fence, .now = skv_now_ms(c->clock) };

	return apply(c, &in);
}

void owner_leased(struct skv_core *c, enum own_event event, uint64_t fence, uint64_t since)
{
	struct own_input in = { .event = event, .fence = fence, .now = since };

	apply(c, &in);
}

bool owner_demote(struct skv_core *c, uint64_t ms)
{
	struct own_input in = { .event = OWN_ON_DEMOTE, .ms = ms, .now = skv_now_ms(c->clock) };
	struct ownership before = owner_view(c);

	return before.state != OWN_GIVING_UP && before.state != OWN_STANDBY &&
	       apply(c, &in) == OWN_DO_GIVE_UP;
}

void owner_switch(struct skv_core *c, enum own_event event, bool on)
{
	struct own_input in = { .event = event, .on = on, .now = skv_now_ms(c->clock) };

	apply(c, &in);
}

bool owner_lost(struct skv_core *c, uint64_t fence)
{
	owner_event(c, OWN_ON_FENCED, fence);
	return owner_fence(c) == fence;
}

void owner_ask_reload(struct skv_core *c, uint64_t fence)
{
	owner_event(c, OWN_ON_RELOAD, fence);
}

/* ---- questions ------------------------------------------------------------------------------- */

struct ownership owner_view(const struct skv_core *c)
{
	struct gate *g = c->gate;
	struct ownership o;

	skv_mutex_lock(&g->lock);
	o = g->own;
	skv_mutex_unlock(&g->lock);
	return o;
}

void owner_set_holder(struct skv_core *c, const char *name)
{
	skv_mutex_lock(&c->gate->lock);
	snprintf(c->gate->holder, sizeof c->gate->holder, "%s", name);
	skv_mutex_unlock(&c->gate->lock);
}

void owner_holder(const struct skv_core *c, char out[SKV_OWNER_NAME])
{
	skv_mutex_lock(&c->gate->lock);
	snprintf(out, SKV_OWNER_NAME, "%s", c->gate->holder);
	skv_mutex_unlock(&c->gate->lock);
}

enum own_state owner_state(const struct skv_core *c)
{
	return (enum own_state)atomic_load_explicit(&c->gate->state, memory_order_acquire);
}

uint64_t owner_fence(const struct skv_core *c) { return atomic_load(&c->gate->fence); }

uint64_t owner_given_up(const struct skv_core *c) { return atomic_load(&c->gate->given_up); }

bool owner_ready(const struct skv_core *c)
{
	enum own_state s = owner_state(c);

	return s == OWN_OWNING || s == OWN_CLOSING;
}

bool owner_valid(const struct skv_core *c)
{
	return skv_now_ms(c->clock) <
	       atomic_load_explicit(&c->gate->owned_until, memory_order_relaxed);
}

/* ---- calls ----------------------------------------------------------------------------------- */

int gate_recovering(struct skv_error *err)
{
	return skv_fail(err, SKV_E_NOT_READY, NULL, "recovering");
}

int core_gate(const struct skv_core *c, struct skv_error *err)
{
	enum own_state s = owner_state(c);

	if (s == OWN_OWNING && owner_valid(c))
		return SKV_OK;
	if (owner_view(c).barred)
		return skv_fail(err, SKV_E_NOT_READY, NULL,
				"the metadata store cannot be used: the manager's log says why");
	if (s == OWN_STOPPED || s == OWN_CLOSING)
		return skv_fail(err, SKV_E_NOT_READY, NULL, "this manager is shutting down");
	if (s == OWN_STANDBY || s == OWN_GIVING_UP || !owner_valid(c))
		return skv_fail(err, SKV_E_NOT_OWNER, NULL,
				"this manager is not the owner: ask the owner");
	return gate_recovering(err);
}
