/*
 * ownership.c - the transitions of the ownership state machine.
 *
 * `follows` has the state after each state and event; note() and enter() change the rest. An event
 * that names a fence counts only for the current one: a decision on an earlier load is late.
 * Stateless; the caller serialises.
 */
#include <lock/ownership.h>

#include <assert.h>

/* The state plus 1; 0: the event changes no state. */
#define TO(name) (1 + OWN_##name)
#define ON(name) [OWN_ON_##name]

static const unsigned char follows[OWN_STATE_COUNT][OWN_EVENT_COUNT] = {
	[OWN_STANDBY] = { ON(ACQUIRED) = TO(LOADING), ON(STOP) = TO(STOPPED) },
	[OWN_CLAIMING] = { ON(ACQUIRED) = TO(LOADING), ON(REFUSED) = TO(STANDBY),
			   ON(FENCED) = TO(GIVING_UP), ON(DEMOTE) = TO(GIVING_UP),
			   ON(STOP) = TO(STOPPED) },
	[OWN_LOADING] = { ON(LOADED) = TO(OWNING), ON(LOAD_FAILED) = TO(CLAIMING),
			  ON(TURNED_AWAY) = TO(GIVING_UP), ON(RELOAD) = TO(CLAIMING),
			  ON(FENCED) = TO(GIVING_UP), ON(DEMOTE) = TO(GIVING_UP),
			  ON(STOP) = TO(STOPPED) },
	[OWN_OWNING] = { ON(TURNED_AWAY) = TO(GIVING_UP), ON(RELOAD) = TO(CLAIMING),
			 ON(FENCED) = TO(GIVING_UP), ON(DEMOTE) = TO(GIVING_UP),
			 ON(CLOSE) = TO(CLOSING), ON(STOP) = TO(STOPPED) },
	[OWN_CLOSING] = { ON(RELOAD) = TO(STOPPED), ON(FENCED) = TO(STOPPED),
			  ON(STOP) = TO(STOPPED) },
	[OWN_GIVING_UP] = { ON(GIVEN_UP) = TO(STANDBY), ON(STOP) = TO(STOPPED) },
	[OWN_STOPPED] = { 0 },
};

static bool names_fence(enum own_event e)
{
	return e == OWN_ON_RENEWED || e == OWN_ON_FENCED || e == OWN_ON_LOADED ||
	       e == OWN_ON_LOAD_FAILED || e == OWN_ON_TURNED_AWAY || e == OWN_ON_RELOAD;
}

static bool is_permitted(const struct ownership *o) { return o->may_own && !o->draining; }

bool ownership_is_hopeless(const struct ownership *o)
{
	return o->end == OWN_END_UNLOADABLE || o->end == OWN_END_TURNED_AWAY ||
	       o->end == OWN_END_BARRED;
}

bool ownership_may_claim(const struct ownership *o, uint64_t now)
{
	return is_permitted(o) && now >= o->out_until;
}

/* The table's state, where permissions or the number of failed loads do not decide otherwise. */
static enum own_state state_after(const struct ownership *o, enum own_event e)
{
	const unsigned to = follows[o->state][e];
	const bool holds = o->state == OWN_CLAIMING || o->state == OWN_LOADING ||
			   o->state == OWN_OWNING;

	if ((e == OWN_ON_MAY_OWN || e == OWN_ON_DRAIN) && holds && !is_permitted(o))
		return OWN_GIVING_UP;
	if (e == OWN_ON_ACQUIRED && to && !is_permitted(o))
		return OWN_GIVING_UP;
	if (e == OWN_ON_BARRED && o->barred + 1 >= OWN_BARRED_CLAIMS &&
	    (o->state == OWN_STANDBY || o->state == OWN_CLAIMING))
		return OWN_GIVING_UP;
	if (e == OWN_ON_LOAD_FAILED && to && o->failed_loads + 1 >= OWN_FAILED_LOADS)
		return OWN_GIVING_UP;
	return to ? (enum own_state)(to - 1) : o->state;
}

static enum own_end end_of(enum own_event e)
{
	switch (e) {
	case OWN_ON_FENCED:
	case OWN_ON_REFUSED: return OWN_END_LOST;
	case OWN_ON_LOAD_FAILED: return OWN_END_UNLOADABLE;
	case OWN_ON_TURNED_AWAY: return OWN_END_TURNED_AWAY;
	case OWN_ON_BARRED: return OWN_END_BARRED;
	default: return OWN_END_ASKED;
	}
}

/* Applies the effects of an event besides the state, while `o->state` is still the earlier one. */
static void note(struct ownership *o, const struct own_input *in)
{
	switch (in->event) {
	case OWN_ON_ACQUIRED:
		if (o->state != OWN_STANDBY && o->state != OWN_CLAIMING &&
		    o->state != OWN_GIVING_UP)
			break;
		o->fence = in->fence;
		o->rival = false;
		o->barred = 0;
		o->end = OWN_END_NONE;
		o->owned_until = in->now + in->lease_ms;
		break;
	case OWN_ON_RENEWED:
		if (o->state == OWN_LOADING || o->state == OWN_OWNING || o->state == OWN_CLOSING)
			o->owned_until = in->now + in->lease_ms;
		break;
	case OWN_ON_REFUSED:
		o->rival = true;
		o->barred = 0;
		break;
	case OWN_ON_BARRED: o->barred++; break;
	case OWN_ON_FREE: o->rival = false; break;
	case OWN_ON_LOAD_FAILED: o->failed_loads += o->state == OWN_LOADING; break;
	case OWN_ON_DEMOTE:
		if (follows[o->state][OWN_ON_DEMOTE])
			o->out_until = in->now + in->ms;
		break;
	case OWN_ON_GIVEN_UP:
		if (ownership_is_hopeless(o))
			o->out_until = in->now + 2ull * in->lease_ms;
		break;
	default: break;
	}
}

static void enter(struct ownership *o, enum own_state to, enum own_event e)
{
	if (to == o->state)
		return;
	o->state = to;
	switch (to) {
	case OWN_OWNING: o->failed_loads = 0; break;
	case OWN_CLAIMING: o->given_up++; break;
	case OWN_GIVING_UP:
		o->given_up++;
		o->end = end_of(e);
		if (o->end == OWN_END_LOST)
			o->owned_until = 0;
		break;
	case OWN_STANDBY:
		if (e == OWN_ON_REFUSED)
			o->end = OWN_END_LOST;
		o->failed_loads = 0;
		o->owned_until = 0;
		break;
	case OWN_STOPPED:
		o->given_up++;
		o->owned_until = 0;
		break;
	default: break;
	}
}

static enum own_action action_of(const struct ownership *o, uint64_t now)
{
	switch (o->state) {
	case OWN_STANDBY:
		return ownership_may_claim(o, now) ? OWN_DO_ACQUIRE : OWN_DO_LOOK;
	case OWN_CLAIMING: return OWN_DO_RECLAIM;
	case OWN_LOADING:
	case OWN_OWNING:
	case OWN_CLOSING: return OWN_DO_RENEW;
	case OWN_GIVING_UP: return OWN_DO_GIVE_UP;
	default: return OWN_DO_NOTHING;
	}
}

enum own_action ownership_on(struct ownership *o, const struct own_input *in)
{
	enum own_state to;

	assert(in->event < OWN_EVENT_COUNT && o->state < OWN_STATE_COUNT);
	if (names_fence(in->event) && in->fence != o->fence)
		return action_of(o, in->now);
	if (in->event == OWN_ON_MAY_OWN)
		o->may_own = in->on;
	if (in->event == OWN_ON_DRAIN)
		o->draining = in->on;
	to = state_after(o, in->event);
	note(o, in);
	enter(o, to, in->event);
	return action_of(o, in->now);
}
