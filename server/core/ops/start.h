/*
 * start.h - what the files of a start call of each other: its plan, the room for it, its session, its answer.
 */
#ifndef SKV_CORE_START_H
#define SKV_CORE_START_H

#include "change.h"

/* One slot handed to a session's block. */
struct grant {
	uint32_t space;
	uint32_t slab;
	uint32_t index;
};
/* v[spec][i] belongs to the i-th written block that takes this spec. */
struct grants {
	struct grant *v[SKV_MAX_SPECS];
	uint32_t n[SKV_MAX_SPECS];
};
void grants_free(struct partition *p, struct grants *g); /* the slots, not the arrays */

/* ---- plan.c ----------------------------------------------------------------------------------------- */

enum { TRY_WAIT = 2, TRY_WAIT_QUOTA }; /* not now: slots are on their way, or room in the group's quota */

/* What one try finds out. */
struct plan {
	struct instance *inst;
	uint32_t specs;                      /* asked for, of any key */
	uint32_t n_keys;
	struct block **have;                 /* [n_keys] entries, NULL = none */
	uint8_t *outcome;                    /* [n_keys] */
	uint32_t *missing;                   /* [n_keys] specs to write */
	uint32_t n_write;
	uint32_t need[SKV_MAX_SPECS];        /* slots per spec */
	uint64_t bytes;
	uint64_t since; /* when the start came (boot time ms) */
	bool keeps;     /* what exists already is not evicted for the rest */
	bool hasty;     /* takes what there is, rather than wait for leases and grace times to end */
	struct grants grants;
};

/* Fills what the request asks of plan->inst and what is left to write. SKV_E_INVALID, SKV_E_TOO_LARGE,
 * SKV_E_TOO_MANY, SKV_E_NOMEM. */
int plan_make(const struct partition *p, const struct skv_start_req *req, struct skv_arena *a, struct plan *plan,
	      struct skv_error *err);
/* Leaves the first n writes; the others have no room. `whole`: n or none, and none where a key is BUSY. */
void plan_cut(struct plan *plan, uint64_t n, bool whole);
/* n_write, need and bytes by the outcomes. */
void plan_count(struct plan *plan);

/* ---- room.c ----------------------------------------------------------------------------------------- */

/* What open sessions may hold: SKV_OK, SKV_E_TOO_LARGE, SKV_E_TOO_MANY. */
int room_limits(const struct partition *p, const struct plan *plan, struct skv_error *err);
/* The group's quota, the instance's part of it, and how many blocks one instance holds: SKV_OK, TRY_WAIT_QUOTA (eviction within
 * the group is on its way), SKV_E_QUOTA. */
int room_quota(struct partition *p, const struct plan *plan, struct skv_error *err);
/* Takes the plan's slots, all in one storage. SKV_OK, TRY_WAIT, SKV_E_NO_SPACE, SKV_E_UNAVAILABLE,
 * SKV_E_NOMEM. */
int room_take(struct partition *p, struct plan *plan, struct skv_arena *a, struct skv_error *err);
/* The slots that the request names, of those that are free; the other keys have no room. As room_take. */
int room_take_places(struct partition *p, const struct skv_start_req *req, struct plan *plan, struct skv_arena *a,
		     struct skv_error *err);
/* For plans of one spec. How many of its blocks the bounds of open sessions and blocks allow: */
uint64_t room_bound(const struct partition *p, const struct plan *plan);
/* how many could be taken at once, without any eviction. */
uint64_t room_now(struct partition *p, const struct plan *plan);

/* ---- start.c, start_answer.c, start_replay.c -------------------------------------------------------- */

/* The answer of a session as it is now; of a start that has nothing to write. SKV_E_NOMEM. */
int start_fill(struct waiter *w, struct partition *p, const struct session *s);
int start_fill_none(const struct partition *p, struct waiter *w, const struct plan *plan);
/* Makes the session's entries and gives them their slots, and names[i] to the block of keys[i] (NULL = none). On
 * SKV_E_NOMEM all slots granted are free again and nothing is linked. Used by start and by replay.
 * `have`: the entries of all keys, NULL = to be looked for. */
int start_link(struct partition *p, struct session *s, struct grants *g, const struct skv_bytes *names,
	       struct block *const *have);
/* SKV_E_CONFLICT: keys[*at] is the same as keys[*first]. SKV_E_NOMEM. */
int keys_duplicate(const struct skv_key *keys, uint32_t n, uint32_t *at, uint32_t *first);
int replay_start(struct replay *r, struct skv_rd *in, struct skv_error *err);

#endif
