/*
 * assign.h - computes the manager that should own each partition of a store.
 *
 * A pure function of the present members and the current owners: managers with the same input
 * compute the same result, in any order of members. Any thread.
 */
#ifndef SKV_ASSIGN_H
#define SKV_ASSIGN_H

#include <stdbool.h>
#include <stdint.h>

#define SKV_NOBODY UINT32_MAX

struct skv_assign_member {
	const char *id; /* no two are the same */
	bool leaves;    /* the member gets no partition, and gives up those it has */
};

/* Indexes of members, or SKV_NOBODY. */
struct skv_assign_partition {
	uint32_t has;   /* owns it now */
	/* Gives it up just now, or has just lost it: is given it only if no other one is there, so
	 * others may get more than their share. */
	uint32_t shuns;
	/* An administrator has moved it there: gets it, unless it leaves or shuns it. */
	uint32_t home;
};

/* should[i]: index of the member that should own partition i; SKV_NOBODY everywhere if none stays.
 * Without homes each member that stays gets n_partitions / members of them, or one more; a member
 * with more homes gets these alone, and the others share the rest evenly. The number of moves is
 * minimal. SKV_E_NOMEM. */
int skv_assign(const struct skv_assign_member *members, uint32_t n_members,
	       const struct skv_assign_partition *partitions, uint32_t *should,
	       uint32_t n_partitions);

#endif
