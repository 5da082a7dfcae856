/*
 * wish.c - blocks that are wanted elsewhere: two rings, and which were wanted lately.
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

struct ring {
	uint64_t in, out; /* numbers so far */
	struct wish v[WISHES];
};

struct lately {
	uint64_t hash; /* of the wish */
	uint64_t until; /* boot time ms: not wanted again before; of asked wishes: until taken */
};

struct wishes {
	struct skv_mutex lock;
	struct ring ring[WISH_KINDS];
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

static uint32_t waiting(const struct ring *r)
{
	assert(r->out <= r->in && r->in - r->out <= WISHES);
	return (uint32_t)(r->in - r->out);
}

/* A noted wish must not replace an asked one, because it may be forgotten. */
static struct lately *lately_of(struct wishes *w, enum wish_kind kind, const struct wish *wish,
				uint64_t *hash)
{
	const uint64_t to = kind == WISH_ASKED ? (uint64_t)wish->to << 2 | wish->moves << 1 | 1 : 0;

	*hash = skv_key_mix(wish->key, skv_key_mix((struct skv_key){ wish->instance, to }, 0));
	return &w->lately[*hash % WISHES];
}

static void take(const struct partition *p, enum wish_kind kind)
{
	struct wishes *w = p->wishes;
	struct ring *r = &w->ring[kind];
	uint64_t hash;
	struct lately *l = lately_of(w, kind, &r->v[r->out % WISHES], &hash);

	assert(waiting(r) > 0);
	if (kind == WISH_ASKED && l->hash == hash)
		*l = (struct lately){ 0 };
	r->out++;
	COUNT(p->core, copy_wishes_ended, 1);
}

static bool add(const struct partition *p, enum wish_kind kind, const struct wish *wish,
		uint64_t now)
{
	struct wishes *w = p->wishes;
	struct ring *r = &w->ring[kind];
	uint64_t hash;
	struct lately *l = lately_of(w, kind, wish, &hash);
	bool again, full;

	ASSERT_SHARED(p);
	skv_mutex_lock(&w->lock);
	again = l->hash == hash && l->until > now;
	full = waiting(r) == WISHES;
	if (!again && full && kind == WISH_NOTED)
		take(p, kind); /* the oldest is forgotten */
	if (!again && (!full || kind == WISH_NOTED)) {
		*l = (struct lately){ hash, kind == WISH_ASKED ? UINT64_MAX : now + WISH_REST_MS };
		r->v[r->in++ % WISHES] = *wish;
		COUNT(p->core, copy_wishes, 1);
	}
	skv_mutex_unlock(&w->lock);
	return again || !full || kind == WISH_NOTED;
}

void wish_note(const struct partition *p, const struct block *b, uint64_t now)
{
	add(p, WISH_NOTED,
	    &(struct wish){ .key = b->key, .instance = block_instance(b)->id, .to = WISH_ANYWHERE },
	    now);
}

bool wish_ask(const struct partition *p, const struct wish *wish, uint64_t now)
{
	assert(!wish->moves || wish->to != WISH_ANYWHERE);
	return add(p, WISH_ASKED, wish, now);
}

uint32_t wishes_waiting(const struct partition *p, enum wish_kind kind)
{
	struct wishes *w = p->wishes;
	uint32_t n;

	ASSERT_SHARED(p);
	skv_mutex_lock(&w->lock);
	n = waiting(&w->ring[kind]);
	skv_mutex_unlock(&w->lock);
	return n;
}

bool wish_next(const struct partition *p, enum wish_kind kind, struct wish *out)
{
	struct wishes *w = p->wishes;
	struct ring *r = &w->ring[kind];
	bool some;

	ASSERT_SHARED(p);
	skv_mutex_lock(&w->lock);
	some = waiting(r) > 0;
	if (some)
		*out = r->v[r->out % WISHES];
	skv_mutex_unlock(&w->lock);
	return some;
}

void wish_taken(const struct partition *p, enum wish_kind kind)
{
	struct wishes *w = p->wishes;

	ASSERT_EXCLUSIVE(p);
	skv_mutex_lock(&w->lock);
	take(p, kind);
	skv_mutex_unlock(&w->lock);
}

void wish_again(const struct partition *p, const struct wish *wish)
{
	struct wishes *w = p->wishes;
	struct ring *r = &w->ring[WISH_ASKED];

	ASSERT_EXCLUSIVE(p);
	skv_mutex_lock(&w->lock);
	assert(waiting(r) > 0);
	r->out++;
	r->v[r->in++ % WISHES] = *wish;
	skv_mutex_unlock(&w->lock);
}
