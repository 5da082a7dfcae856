/*
 * assign.c - which manager should own which partition. See assign.h.
 *
 * First each member's share is fixed: all get the same, and what is left over goes to those that
 * have most already, so that they keep it. Then members keep what they have, up to their share,
 * and the rest is given out. What is kept and who gets the rest is said by a hash of member and
 * partition, the highest first. No state.
 */
#include <skv/assign.h>

#include <assert.h>
#include <string.h>

#include <skv/hash.h>
#include <skv/mem.h>
#include <skv/status.h>

struct share {
	const struct skv_assign_member *m;
	uint32_t has;   /* now */
	uint32_t gets;  /* at most */
	uint32_t given;
};

static uint64_t score(const char *id, uint32_t partition)
{
	const uint64_t parts[2] = { skv_checksum(id, strlen(id)), partition };

	return skv_checksum(parts, sizeof parts);
}

/* Should `a` have partition `p` rather than `b`? */
static bool is_before(const struct share *a, const struct share *b, uint32_t p)
{
	const uint64_t x = score(a->m->id, p), y = score(b->m->id, p);

	return x != y ? x > y : strcmp(a->m->id, b->m->id) < 0;
}

/* The members that get one more: those that have most. */
static void give_rest(struct share *s, uint32_t n, uint32_t rest)
{
	while (rest--) {
		struct share *most = NULL;

		for (uint32_t i = 0; i < n; i++) {
			struct share *k = &s[i];

			if (k->m->leaves || k->given)
				continue;
			if (!most || k->has > most->has ||
			    (k->has == most->has && is_before(k, most, SKV_NOBODY)))
				most = k;
		}
		assert(most);
		most->given = 1;
		most->gets++;
	}
	for (uint32_t i = 0; i < n; i++)
		s[i].given = 0;
}

/* The partition that member `i` keeps next; SKV_NOBODY: none is left. */
static uint32_t dearest(const struct share *s, uint32_t i, const uint32_t *has,
			const uint32_t *should, uint32_t n_partitions)
{
	uint32_t found = SKV_NOBODY;
	uint64_t best = 0;

	for (uint32_t p = 0; p < n_partitions; p++) {
		const uint64_t v = score(s[i].m->id, p);

		if (has[p] != i || should[p] != SKV_NOBODY || (found != SKV_NOBODY && v <= best))
			continue;
		found = p;
		best = v;
	}
	return found;
}

static void keep(struct share *s, uint32_t n, const uint32_t *has, uint32_t *should,
		 uint32_t n_partitions)
{
	for (uint32_t i = 0; i < n; i++) {
		while (s[i].given < s[i].gets) {
			uint32_t p = dearest(s, i, has, should, n_partitions);

			if (p == SKV_NOBODY)
				break;
			should[p] = i;
			s[i].given++;
		}
	}
}

static void give(struct share *s, uint32_t n, uint32_t *should, uint32_t n_partitions)
{
	for (uint32_t p = 0; p < n_partitions; p++) {
		uint32_t to = SKV_NOBODY;

		if (should[p] != SKV_NOBODY)
			continue;
		for (uint32_t i = 0; i < n; i++)
			if (s[i].given < s[i].gets &&
			    (to == SKV_NOBODY || is_before(&s[i], &s[to], p)))
				to = i;
		assert(to != SKV_NOBODY); /* the shares add up to all */
		should[p] = to;
		s[to].given++;
	}
}

int skv_assign(const struct skv_assign_member *members, uint32_t n_members, const uint32_t *has,
	       uint32_t *should, uint32_t n_partitions)
{
	struct share *s = skv_calloc((size_t)n_members + 1, sizeof *s);
	uint32_t stay = 0;

	if (!s)
		return SKV_E_NOMEM;
	for (uint32_t i = 0; i < n_members; i++) {
		s[i].m = &members[i];
		stay += !members[i].leaves;
	}
	for (uint32_t p = 0; p < n_partitions; p++) {
		assert(has[p] == SKV_NOBODY || has[p] < n_members);
		should[p] = SKV_NOBODY;
		if (has[p] != SKV_NOBODY)
			s[has[p]].has++;
	}
	for (uint32_t i = 0; stay && i < n_members; i++)
		s[i].gets = members[i].leaves ? 0 : n_partitions / stay;
	if (stay) {
		give_rest(s, n_members, n_partitions % stay);
		keep(s, n_members, has, should, n_partitions);
		give(s, n_members, should, n_partitions);
	}
	skv_free(s);
	return SKV_OK;
}
