/*
 * assign.c - computes the manager that should own each partition. See assign.h.
 *
 * First partitions go to their homes. Then each member's share of the others is fixed as evenly as
 * possible; a remainder goes to the members that have most already, so that they keep it. Then
 * members keep their partitions, up to their share, and the others are assigned. A hash of member
 * and partition, the highest first, decides which are kept and who gets the others. No state.
 */
#include <skv/assign.h>

#include <assert.h>
#include <string.h>

#include <skv/hash.h>
#include <skv/mem.h>
#include <skv/status.h>

struct share {
	const struct skv_assign_member *m;
	/* Partitions whose home it is; the following members are about other partitions. */
	uint32_t homes;
	uint32_t has;   /* now */
	uint32_t gets;  /* at most */
	uint32_t given;
};

static uint64_t score(const char *id, uint32_t partition)
{
	const uint64_t parts[2] = { skv_checksum(id, strlen(id)), partition };

	return skv_checksum(parts, sizeof parts);
}

/* Returns true if `a` should have partition `p` rather than `b`. */
static bool is_before(const struct share *a, const struct share *b, uint32_t p)
{
	const uint64_t x = score(a->m->id, p), y = score(b->m->id, p);

	return x != y ? x > y : strcmp(a->m->id, b->m->id) < 0;
}

/* Prefers the member with fewer partitions; breaks ties in favour of the current owner. */
static bool gets_next(const struct share *a, const struct share *b)
{
	const uint32_t x = a->homes + a->gets, y = b->homes + b->gets;

	if (x != y)
		return x < y;
	if (a->has + b->gets != b->has + a->gets)
		return a->has + b->gets > b->has + a->gets;
	return is_before(a, b, SKV_NOBODY);
}

/* Shares of the partitions without a home. */
static void share_out(struct share *s, uint32_t n, uint32_t partitions)
{
	while (partitions--) {
		struct share *next = NULL;

		for (uint32_t i = 0; i < n; i++)
			if (!s[i].m->leaves && (!next || gets_next(&s[i], next)))
				next = &s[i];
		assert(next);
		next->gets++;
	}
}

/* The partition that member `i` keeps next; SKV_NOBODY: none is left. */
static uint32_t dearest(const struct share *s, uint32_t i,
			const struct skv_assign_partition *partitions, const uint32_t *should,
			uint32_t n_partitions)
{
	uint32_t found = SKV_NOBODY;
	uint64_t best = 0;

	for (uint32_t p = 0; p < n_partitions; p++) {
		const uint64_t v = score(s[i].m->id, p);

		if (partitions[p].has != i || should[p] != SKV_NOBODY ||
		    (found != SKV_NOBODY && v <= best))
			continue;
		found = p;
		best = v;
	}
	return found;
}

static void keep(struct share *s, uint32_t n, const struct skv_assign_partition *partitions,
		 uint32_t *should, uint32_t n_partitions)
{
	for (uint32_t i = 0; i < n; i++) {
		while (s[i].given < s[i].gets) {
			uint32_t p = dearest(s, i, partitions, should, n_partitions);

			if (p == SKV_NOBODY)
				break;
			should[p] = i;
			s[i].given++;
		}
	}
}

/* Returns the member with room for partition `p`; SKV_NOBODY: only the one that shuns it has
 * room. */
static uint32_t roomy(const struct share *s, uint32_t n, uint32_t shuns, uint32_t p)
{
	uint32_t to = SKV_NOBODY;

	for (uint32_t i = 0; i < n; i++)
		if (i != shuns && s[i].given < s[i].gets &&
		    (to == SKV_NOBODY || is_before(&s[i], &s[to], p)))
			to = i;
	return to;
}

static bool has_less(const struct share *a, const struct share *b, uint32_t p)
{
	const uint32_t x = a->homes + a->given, y = b->homes + b->given;

	return x != y ? x < y : is_before(a, b, p);
}

/* The other one that has least, though it has its share. */
static uint32_t least(const struct share *s, uint32_t n, uint32_t shuns, uint32_t p)
{
	uint32_t to = SKV_NOBODY;

	for (uint32_t i = 0; i < n; i++)
		if (i != shuns && !s[i].m->leaves &&
		    (to == SKV_NOBODY || has_less(&s[i], &s[to], p)))
			to = i;
	return to;
}

static void give(struct share *s, uint32_t n, const struct skv_assign_partition *partitions,
		 uint32_t *should, uint32_t n_partitions)
{
	for (uint32_t p = 0; p < n_partitions; p++) {
		const uint32_t shuns = partitions[p].shuns;
		uint32_t to;

		if (should[p] != SKV_NOBODY)
			continue;
		to = roomy(s, n, shuns, p);
		if (to == SKV_NOBODY)
			to = least(s, n, shuns, p);
		if (to == SKV_NOBODY)
			to = shuns; /* the shunning member is the only one that stays */
		assert(to != SKV_NOBODY && !s[to].m->leaves); /* the shares add up to all */
		should[p] = to;
		s[to].given++;
	}
}

/* Returns true if the member is the partition's home. A member that has just lost the partition, or
 * releases it, may be gone. */
static bool is_home(const struct skv_assign_partition *p, const struct share *s)
{
	return p->home != SKV_NOBODY && p->home != p->shuns && !s[p->home].m->leaves;
}

/* Assigns the partitions that have a home; returns how many have none. */
static uint32_t go_home(struct share *s, const struct skv_assign_partition *partitions,
			uint32_t *should, uint32_t n_partitions)
{
	uint32_t others = 0;

	for (uint32_t i = 0; i < n_partitions; i++) {
		const struct skv_assign_partition *p = &partitions[i];

		should[i] = is_home(p, s) ? p->home : SKV_NOBODY;
		if (should[i] != SKV_NOBODY)
			s[should[i]].homes++;
		else if (p->has != SKV_NOBODY)
			s[p->has].has++;
		others += should[i] == SKV_NOBODY;
	}
	return others;
}

int skv_assign(const struct skv_assign_member *members, uint32_t n_members,
	       const struct skv_assign_partition *partitions, uint32_t *should,
	       uint32_t n_partitions)
{
	struct share *s = skv_calloc((size_t)n_members + 1, sizeof *s);
	uint32_t stay = 0, others;

	if (!s)
		return SKV_E_NOMEM;
	for (uint32_t i = 0; i < n_members; i++) {
		s[i].m = &members[i];
		stay += !members[i].leaves;
	}
	for (uint32_t i = 0; i < n_partitions; i++) {
		assert(partitions[i].has == SKV_NOBODY || partitions[i].has < n_members);
		assert(partitions[i].home == SKV_NOBODY || partitions[i].home < n_members);
	}
	others = go_home(s, partitions, should, n_partitions);
	if (stay) {
		share_out(s, n_members, others);
		keep(s, n_members, partitions, should, n_partitions);
		give(s, n_members, partitions, should, n_partitions);
	}
	skv_free(s);
	return SKV_OK;
}
