/*
 * assign.h - which manager should own which partition of a store.
 *
 * A pure function of who is there and who has what now: managers that see the same come to the same
 * result, in whatever order they list the members. Any thread.
 */
#ifndef SKV_ASSIGN_H
#define SKV_ASSIGN_H

#include <stdbool.h>
#include <stdint.h>

#define SKV_NOBODY UINT32_MAX

struct skv_assign_member {
	const char *id; /* no two are the same */
	bool leaves;    /* it gets none, and gives up what it has */
};

/* has[i]: index of the member that owns partition i now, SKV_NOBODY = none of them. should[i]: of
 * the one that should. Each member that stays gets n_partitions / members of them, or one more. No
 * fewer could move. SKV_NOBODY everywhere if none stays. `has` and `should` have n_partitions
 * entries. SKV_E_NOMEM. */
int skv_assign(const struct skv_assign_member *members, uint32_t n_members, const uint32_t *has,
	       uint32_t *should, uint32_t n_partitions);

#endif
