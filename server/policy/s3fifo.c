/*
 * s3fifo.c - S3-FIFO (Yang et al., SOSP 2023): newcomers pass a small queue of a tenth of all
 * blocks, by birth; a block used twice there moves to the main queue; another is evicted, and
 * remembered as a ghost. There are as many ghosts as the main queue should have blocks. A block
 * that comes back while it is a ghost enters the main queue at once. In the main queue used blocks
 * are requeued, up to three times.
 */
#include "exact_ghosts.h"
#include "policies.h"

#include <skv/mem.h>

enum { SMALL, MAIN }; /* queues, and tags */

#define SMALL_SHARE 10u /* a tenth of the blocks */
#define PROMOTE_AT 2u   /* uses */
#define MOST_ROUNDS 3u

struct s3fifo {
	const struct skv_policy_counts *n;
	uint64_t entered; /* the main queue */
	struct exact_ghosts ghosts;
};

static void *create(const struct skv_policy_counts *n)
{
	struct s3fifo *s = skv_calloc(1, sizeof *s);

	if (s)
		s->n = n;
	return s;
}

static void destroy(void *state)
{
	struct s3fifo *s = state;

	exact_ghosts_destroy(&s->ghosts);
	skv_free(s);
}

static void born(void *state, struct skv_policy_block *b, bool last)
{
	struct s3fifo *s = state;

	(void)last;
	b->tag = exact_ghosts_take(&s->ghosts, b->hash) ? MAIN : SMALL;
}

static void adopt(void *state, struct skv_policy_block *b, bool own)
{
	(void)state;
	if (!own)
		b->tag = b->freq >= PROMOTE_AT ? MAIN : SMALL;
}

static struct skv_policy_place place(void *state, struct skv_policy_block *b)
{
	struct s3fifo *s = state;

	if (b->tag & MAIN)
		return (struct skv_policy_place){ MAIN, ++s->entered };
	return (struct skv_policy_place){ SMALL, b->born };
}

static bool look(void *state, struct skv_policy_block *b, struct skv_policy_place at)
{
	(void)state;
	if (at.queue != (b->tag & MAIN))
		return false;
	if (at.queue == SMALL) {
		if (b->freq < PROMOTE_AT)
			return at.key == b->born;
		b->tag = MAIN;
		b->freq = 0;
		return false;
	}
	if (b->freq == 0)
		return true;
	b->freq = (b->freq < MOST_ROUNDS ? b->freq : MOST_ROUNDS) - 1;
	return false;
}

static uint64_t rank(void *state, struct skv_policy_place at)
{
	const struct s3fifo *s = state;
	bool small_first =
		s->n->queued[SMALL] * SMALL_SHARE >= s->n->queued[SMALL] + s->n->queued[MAIN];

	return (at.queue == SMALL) != small_first;
}

static void evicted(void *state, const struct skv_policy_block *b, struct skv_policy_place at)
{
	struct s3fifo *s = state;
	uint64_t blocks = s->n->blocks + 1; /* with this one */

	if (at.queue == SMALL)
		exact_ghosts_add(&s->ghosts, b->hash, blocks - blocks / SMALL_SHARE);
}

const struct skv_policy_ops skv_policy_s3fifo = {
	.name = "s3fifo", .n_queues = 2, .create = create, .destroy = destroy, .born = born,
	.adopt = adopt,
	.place = place, .look = look, .rank = rank, .evicted = evicted,
};
