/*
 * ownership.h - the ownership of a partition as a state machine: states, events, actions.
 *
 * Pure: no I/O, no clock, no lock. gate.c keeps the machine of a core and feeds it events from any
 * thread; the owner thread (recovery/owner.c) alone performs the actions.
 *
 * Laws, each checked by tests/core/test_core_ownership.c:
 * - a manager answers only before `owned_until`, which is counted from before the call that
 *   obtained or renewed the lease; what it appends later the store takes only under the newest
 *   fence;
 * - no two loads have the same fence: a reload and a repeated load acquire first;
 * - after a loss nothing is answered until the next acquire.
 */
#ifndef SKV_CORE_LOCK_OWNERSHIP_H
#define SKV_CORE_LOCK_OWNERSHIP_H

#include <stdbool.h>
#include <stdint.h>

#define OWN_FAILED_LOADS 10u /* in a row, before another manager may try */
#define OWN_BARRED_CLAIMS 10u /* in a row, before the manager ends */

/* clang-format off */
#define OWN_STATES(X)                                                                              \
	X(STANDBY,   "another manager owns the partition, nobody does, or this one must not")      \
	X(CLAIMING,  "memory does not match the store: drop it and acquire again")                 \
	X(LOADING,   "acquired; the ticker loads")                                                 \
	X(OWNING,    "loaded: calls are answered")                                                 \
	X(CLOSING,   "shutting down: changes in progress end, new calls are refused")              \
	X(GIVING_UP, "the partition is to be dropped")                                             \
	X(STOPPED,   "the core has ended, or lost the partition while it was closing")

#define OWN_EVENTS(X)                                                                              \
	X(TICK)        /* time passes: changes nothing, returns the action that is due */          \
	X(ACQUIRED)    /* fence, now: from before the call */                                      \
	X(REFUSED)     /* another manager owns it */                                               \
	X(BARRED)      /* the store refuses the acquire until somebody repairs something */        \
	X(FREE)        /* nobody owns it; it was only looked at */                                 \
	X(RENEWED)     /* fence, now: from before the call */                                      \
	X(FENCED)      /* fence: the store rejected it */                                          \
	X(LOADED)      /* fence */                                                                 \
	X(LOAD_FAILED) /* fence */                                                                 \
	X(TURNED_AWAY) /* fence: another copy of the store uses a slab directory */                \
	X(RELOAD)      /* fence: memory no longer matches the store */                             \
	X(DEMOTE)      /* now, ms: stay out so long */                                             \
	X(MAY_OWN)     /* on: it may be acquired here */                                           \
	X(DRAIN)       /* on: it must not be acquired here until this is taken back */             \
	X(GIVEN_UP)    /* now: dropped, and released unless it was lost */                         \
	X(CLOSE)                                                                                   \
	X(STOP)
/* clang-format on */

enum own_state {
#define OWN_STATE_ENUM(name, help) OWN_##name,
	OWN_STATES(OWN_STATE_ENUM)
#undef OWN_STATE_ENUM
	OWN_STATE_COUNT
};

enum own_event {
#define OWN_EVENT_ENUM(name) OWN_ON_##name,
	OWN_EVENTS(OWN_EVENT_ENUM)
#undef OWN_EVENT_ENUM
	OWN_EVENT_COUNT
};

/* Why the newest ownership ended. */
enum own_end {
	OWN_END_NONE,        /* the ownership has not ended */
	OWN_END_LOST,        /* another manager has acquired the partition */
	OWN_END_ASKED,       /* demoted, drained, or no longer permitted */
	OWN_END_UNLOADABLE,  /* OWN_FAILED_LOADS loads failed */
	OWN_END_TURNED_AWAY, /* another copy of the store uses a slab directory */
	OWN_END_BARRED,      /* OWN_BARRED_CLAIMS claims failed: nothing was acquired */
};

enum own_action {
	OWN_DO_NOTHING,
	OWN_DO_LOOK,    /* look up the owner; the partition must not be acquired now */
	OWN_DO_ACQUIRE,
	OWN_DO_RECLAIM, /* drop it, then acquire it again */
	OWN_DO_RENEW,
	OWN_DO_GIVE_UP, /* drop it; release it unless `end` is LOST */
};

struct ownership {
	enum own_state state;
	enum own_end end;
	uint64_t fence;       /* of the newest acquire */
	uint64_t owned_until; /* end of the lease, boot time ms; 0: none */
	uint64_t out_until;   /* no claim before this boot time ms */
	uint64_t given_up;    /* how often it stopped to be loaded or OWNING */
	uint32_t failed_loads; /* in a row */
	uint32_t barred;       /* claims, since the store last answered who owns the partition */
	bool may_own, draining; /* permissions: claims need the first and not the second */
	bool rival;           /* another manager owned the partition at the last look */
};

struct own_input {
	enum own_event event;
	uint64_t now;   /* boot time ms */
	uint64_t fence; /* an event of another fence than the current one changes nothing */
	uint64_t ms;
	uint32_t lease_ms;
	bool on;
};

/* Returns true if the partition may be acquired now. */
bool ownership_may_claim(const struct ownership *o, uint64_t now);
/* Did the newest ownership end for a reason that another try here does not change? */
bool ownership_is_hopeless(const struct ownership *o);
/* Applies an event and returns what the owner thread is to do next. */
enum own_action ownership_on(struct ownership *o, const struct own_input *in);

#endif
