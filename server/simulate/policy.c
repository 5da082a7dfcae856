/*
 * policy.c - policy mode: the policies of the core (skv/policy.h) over a trace, one insertion at a time.
 *
 * Holds blocks and queues as the core does (server/core/evict.c): a use changes a block's stamp and count, the queues
 * learn of it when the block comes to a top. Blocks of a policy with `leaf_first` go only when no other hangs below
 * them, as long as there is a choice. The uses of a request count in its order; with `leaf_first` they are one use, as
 * in the core, which keeps a head from looking older than its tail.
 */
#include "run.h"

#include <string.h>

#include <skv/heap.h>
#include <skv/mem.h>
#include <skv/policy.h>

struct cell {
	struct skv_policy_block b;
	uint32_t place; /* skv/heap.h; 0 = the block is not there */
	uint32_t below; /* blocks there whose parent it is */
	uint32_t found; /* number of the request that found it last, counted from 1 */
};

struct cache {
	struct run *r;
	const struct refs *t;
	const struct skv_policy_ops *ops;
	void *state;
	struct skv_heaps heaps;
	struct cell *cell; /* [n_blocks] */
	struct skv_policy_counts n;
	uint64_t uses;
	uint64_t births;
};

static uint32_t *place_of(void *ctx, uint32_t id)
{
	struct cache *c = ctx;

	return &c->cell[id].place;
}

static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

/* ---- queues -------------------------------------------------------------------------------------------- */

static uint64_t inner_bit(const struct cache *c, uint32_t id)
{
	return c->ops->leaf_first && c->cell[id].below ? SKV_POLICY_INNER : 0;
}

static void enqueue(struct cache *c, uint32_t id)
{
	struct skv_policy_place at = c->ops->place(c->state, &c->cell[id].b);

	c->n.queued[at.queue]++;
	skv_heap_push(&c->heaps, at.queue, at.key | inner_bit(c, id), id);
}

static void dequeue(struct cache *c, uint32_t id)
{
	c->n.queued[skv_heap_which(c->cell[id].place)]--;
	skv_heap_remove(&c->heaps, id);
}

/* The top of a queue as it stands; a use since then makes it look older than it is. */
struct top {
	uint32_t id;
	bool inner;
	uint64_t rank;
	uint64_t use;
	struct skv_policy_place at;
};

static bool goes_before(const struct top *a, const struct top *b)
{
	if (a->inner != b->inner)
		return b->inner;
	return a->rank != b->rank ? a->rank < b->rank : a->use < b->use;
}

static struct top first_top(const struct cache *c)
{
	struct top best = { .id = NO_BLOCK };

	for (uint32_t q = 0; q < c->ops->n_queues; q++) {
		struct top t = { .at.queue = q };
		uint64_t key;

		if (!skv_heap_top(&c->heaps, q, &key, &t.id))
			continue;
		t.inner = (key & SKV_POLICY_INNER) != 0;
		t.at.key = key & ~SKV_POLICY_INNER;
		t.rank = c->ops->rank(c->state, t.at);
		t.use = c->cell[t.id].b.use;
		if (best.id == NO_BLOCK || goes_before(&t, &best))
			best = t;
	}
	return best;
}

/* Whether it goes, or is placed again. */
static bool may_go(struct cache *c, const struct top *t)
{
	c->r->counts.examined++;
	return t->inner == (inner_bit(c, t->id) != 0) && c->ops->look(c->state, &c->cell[t->id].b, t->at);
}

static void remove_block(struct cache *c, uint32_t id)
{
	uint32_t parent = c->t->parent[id];

	dequeue(c, id);
	c->n.blocks--;
	c->r->counts.evicted++;
	if (parent == NO_BLOCK || --c->cell[parent].below || !c->cell[parent].place || !c->ops->leaf_first)
		return;
	dequeue(c, parent); /* a leaf now: its key is above the right one */
	enqueue(c, parent);
}

static void evict_one(struct cache *c)
{
	struct top t = first_top(c);

	for (; !may_go(c, &t); t = first_top(c)) {
		dequeue(c, t.id);
		enqueue(c, t.id);
	}
	remove_block(c, t.id);
	if (c->ops->evicted)
		c->ops->evicted(c->state, &c->cell[t.id].b, t.at);
}

/* ---- requests ------------------------------------------------------------------------------------------ */

static uint64_t next_use(struct cache *c) { return c->ops->leaf_first ? c->uses : ++c->uses; }

static void use(struct cache *c, uint32_t id)
{
	struct skv_policy_block *b = &c->cell[id].b;

	b->use = next_use(c);
	b->freq += b->freq < SKV_POLICY_FREQ;
}

static void insert(struct cache *c, uint32_t id, uint32_t how)
{
	struct cell *cell = &c->cell[id];
	uint32_t parent = c->t->parent[id];

	if (c->n.blocks == c->r->blocks)
		evict_one(c);
	c->n.blocks++;
	cell->b = (struct skv_policy_block){ .hash = mix(c->t->id[id] + 1), .use = next_use(c), .born = ++c->births };
	if (c->ops->born)
		c->ops->born(c->state, &cell->b, how);
	enqueue(c, id);
	if (parent != NO_BLOCK)
		c->cell[parent].below++;
}

static void request(struct cache *c, uint32_t q)
{
	const struct refs *t = c->t;
	uint32_t first = t->first[q], end = t->first[q + 1], last = end;
	struct request_hits h = { 0 };
	bool leading = true;

	c->uses++;
	for (uint32_t i = first; i < end; i++) {
		if (!c->cell[t->ref[i]].place) {
			leading = false;
			last = i;
			continue;
		}
		h.prefix += leading;
		h.behind += !leading;
		c->cell[t->ref[i]].found = q + 1;
		use(c, t->ref[i]);
	}
	c->uses++;
	for (uint32_t i = first + h.prefix; i < end; i++) {
		if (c->cell[t->ref[i]].found == q + 1)
			continue; /* also if it has made room for others of this request */
		insert(c, t->ref[i], (i == last ? SKV_BORN_LAST : 0) | (h.prefix ? SKV_BORN_BELOW : 0));
		h.written++;
	}
	run_note(c->r, q, h);
}

static int open_cache(struct cache *c, struct run *r)
{
	uint64_t most;

	*c = (struct cache){ .r = r, .t = r->refs, .ops = skv_policy_find(r->policy) };
	if (!c->ops)
		return skv_fail(&r->err, SKV_E_INVALID, "policy", "there is no policy '%s': one of %s, belady", r->policy,
				skv_policy_names());
	most = r->blocks < c->t->n_blocks ? r->blocks : c->t->n_blocks;
	if (most >= SKV_HEAP_IDS)
		return skv_fail(&r->err, SKV_E_TOO_LARGE, NULL, "%s: a capacity of over 2^27 blocks", c->t->name);
	skv_heaps_init(&c->heaps, c->ops->n_queues, place_of, c);
	c->cell = skv_calloc(c->t->n_blocks, sizeof *c->cell);
	if (!c->cell || skv_heaps_reserve(&c->heaps, most) != SKV_OK)
		return skv_fail(&r->err, SKV_E_NOMEM, NULL, "%s: out of memory", c->t->name);
	if (c->ops->create && !(c->state = c->ops->create(&c->n)))
		return skv_fail(&r->err, SKV_E_NOMEM, NULL, "%s: out of memory", c->t->name);
	return SKV_OK;
}

int run_policy(struct run *r)
{
	struct cache c;
	int rc = open_cache(&c, r);

	for (uint32_t q = 0; rc == SKV_OK && q < r->refs->n_requests; q++) {
		request(&c, q);
		rc = run_goes_on(r) ? SKV_OK : r->err.status;
	}
	if (c.state)
		c.ops->destroy(c.state);
	skv_heaps_destroy(&c.heaps);
	skv_free(c.cell);
	return rc;
}
