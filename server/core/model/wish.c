/*
 * wish.c - blocks that are wanted in a fast tier: a ring, and which were noted lately.
 *
 * `lock` is taken inside core->lock; nothing is called while it is held.
 */
#include <model/wish.h>

#include <assert.h>

#include <skv/lock.h>
#include <skv/mem.h>

#include <lock/core.h>
#include <model/block.h>
#include <model/objects.h>
#include <model/partition.h>

struct lately {
	uint64_t hash; /* of the key and its instance */
	uint64_t until; /* boot time ms; not noted again before */
};

struct wishes {
	struct skv_mutex lock;
	uint64_t noted, taken; /* so many so far */
	struct wish ring[WISHES];
	struct lately lately[WISHES]; /* by hash */
};

struct wishes *wishes_make(void)
{
	struct wishes *w = skv_calloc(1, sizeof *w);

	if (w)
		skv_mutex_init(&w->lock);
	return w;
}

void wishes_free(struct wishes *w)
{
	if (w)
		skv_mutex_destroy(&w->lock);
	skv_free(w);
}

void wish_note(const struct partition *p, const struct block *b, uint64_t now)
{
	const struct wish wish = { b->key, block_instance(b)->id };
	const uint64_t hash = (b->key.hi ^ b->key.lo) + wish.instance;
	struct wishes *w = p->wishes;
	struct lately *l;

	ASSERT_SHARED(p);
	if (!w)
		return;
	l = &w->lately[hash % WISHES];
	skv_mutex_lock(&w->lock);
	if (l->hash != hash || l->until <= now) {
		*l = (struct lately){ hash, now + WISH_REST_MS };
		w->ring[w->noted++ % WISHES] = wish;
		COUNT(p->core, copy_wishes, 1);
	}
	if (w->noted - w->taken > WISHES) { /* the oldest is forgotten */
		w->taken++;
		COUNT(p->core, copy_wishes_ended, 1);
	}
	assert(w->noted - w->taken <= WISHES);
	skv_mutex_unlock(&w->lock);
}

bool wish_next(const struct partition *p, struct wish *out)
{
	struct wishes *w = p->wishes;
	bool some;

	ASSERT_SHARED(p);
	if (!w)
		return false;
	skv_mutex_lock(&w->lock);
	some = w->taken < w->noted;
	if (some)
		*out = w->ring[w->taken % WISHES];
	skv_mutex_unlock(&w->lock);
	return some;
}

void wish_taken(const struct partition *p)
{
	struct wishes *w = p->wishes;

	ASSERT_EXCLUSIVE(p);
	skv_mutex_lock(&w->lock);
	assert(w->taken < w->noted);
	w->taken++;
	COUNT(p->core, copy_wishes_ended, 1);
	skv_mutex_unlock(&w->lock);
}
