/*
 * policy.c - policy mode: the policies of the core (skv/policy.h) over a trace, called as full mode
 * calls the core; or, to compare with published simulations, one insertion at a time.
 *
 * Holds blocks and queues as the core does (server/core/evict/evict.c): a use changes a block's
 * stamp and count, the queues learn of it when the block comes to a top. Under a policy with
 * `leaf_first` blocks with children are evicted only when no leaf is left.
 *
 * With tiers (docs/decisions/0051) the fast one is a cache of its own: its blocks are hits only if
 * the other has them too.
 */
#include "run.h"

#include <assert.h>
#include <string.h>

#include <skv/heap.h>
#include <skv/mem.h>
#include <skv/policy.h>

#include "textbook.h"

struct cell {
	struct skv_policy_block b;
	uint32_t place; /* skv/heap.h; 0 = the block is not there, or kept */
	uint32_t below; /* children of the block in the cache */
	bool linked;    /* the parent counts this block */
	/* Number of the request that found it last, counted from 1; of a fast tier: was it found
	 * below by the current one? */
	uint32_t found;
	/* Of the request that makes room: not evicted, and in no queue once it has come to a
	 * top. */
	bool kept;
};

struct cache {
	struct run *r;
	const struct refs *t;
	const struct skv_policy_ops *ops;
	void *state;
	uint64_t space; /* skv_policy_space() */
	struct skv_heaps heaps;
	struct cell *cell; /* [n_blocks] */
	struct skv_policy_counts n;
	uint64_t uses;
	uint64_t births;
	uint32_t *absent; /* [longest request] */
	uint64_t capacity;
	struct counts *counts;
	const struct cache *slow; /* of a fast tier: what it has copies of; else NULL */
};

static uint32_t *place_of(void *ctx, uint32_t id)
{
	struct cache *c = ctx;

	return &c->cell[id].place;
}

/* As the core: of the same key and instance (full.c). */
static uint64_t hash_of(const struct cache *c, uint32_t id)
{
	return skv_policy_hash(c->space, (struct skv_key){ 0, c->t->id[id] });
}

/* ---- queues ---------------------------------------------------------------------------------- */

static uint64_t inner_bit(const struct cache *c, uint32_t id)
{
	return c->ops->leaf_first && c->cell[id].below ? SKV_POLICY_INNER : 0;
}

static void enqueue(struct cache *c, uint32_t id)
{
	struct skv_policy_place at = c->ops->place(c->state, &c->cell[id].b);

	assert(at.queue < c->ops->n_queues && !(at.key & SKV_POLICY_INNER));
	c->n.queued[at.queue]++;
	skv_heap_push(&c->heaps, at.queue, at.key | inner_bit(c, id), id);
}

static void dequeue(struct cache *c, uint32_t id)
{
	assert(c->cell[id].place != 0 && c->n.queued[skv_heap_which(c->cell[id].place)] > 0);
	c->n.queued[skv_heap_which(c->cell[id].place)]--;
	skv_heap_remove(&c->heaps, id);
}

/* The top of a queue as recorded; if it was used since, it looks older than it is. */
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

/* Whether it is evicted. If not, it is placed again, or hidden while its request makes room. */
static bool may_go(struct cache *c, const struct top *t)
{
	c->counts->examined++;
	if (c->cell[t->id].kept) {
		dequeue(c, t->id);
		return false;
	}
	if (t->inner == (inner_bit(c, t->id) != 0) &&
	    c->ops->look(c->state, &c->cell[t->id].b, t->at))
		return true;
	dequeue(c, t->id);
	enqueue(c, t->id);
	return false;
}

static void remove_block(struct cache *c, uint32_t id)
{
	uint32_t parent = c->t->parent[id];
	bool linked = c->cell[id].linked;

	assert(c->n.blocks > 0 && (!linked || c->cell[parent].below > 0));
	dequeue(c, id);
	c->n.blocks--;
	c->counts->evicted++;
	c->cell[id].linked &= c->cell[id].below > 0;
	if (!linked || --c->cell[parent].below || !c->cell[parent].place || !c->ops->leaf_first)
		return;
	dequeue(c, parent); /* a leaf now: its key is above the right one */
	enqueue(c, parent);
}

/* Evicts a block. Returns false if the policy would rather keep the next victim than admit `in`
 * (NULL = not asked). */
static bool evict_one(struct cache *c, const struct skv_policy_block *in, bool last)
{
	struct top t = first_top(c);

	assert(t.id != NO_BLOCK);
	while (!may_go(c, &t)) {
		t = first_top(c);
		assert(t.id != NO_BLOCK);
	}
	if (in && c->ops->admit && !c->ops->admit(c->state, in, last, t.at))
		return false;
	remove_block(c, t.id);
	if (c->ops->evicted)
		c->ops->evicted(c->state, &c->cell[t.id].b, t.at);
	return true;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Returns a stamp for all blocks of a call, as in the core. One by one with `leaf_first` uses the
 * same: a head must not look older than its tail. */
static uint64_t next_use(struct cache *c)
{
	return c->ops->leaf_first || !c->r->one_by_one ? c->uses : ++c->uses;
}

static void use(struct cache *c, uint32_t id)
{
	struct skv_policy_block *b = &c->cell[id].b;

	b->use = next_use(c);
	b->freq += b->freq < SKV_POLICY_FREQ;
}

/* Links a new block below its parent. A block that already has children stays unlinked, as in the
 * core, where it might be an ancestor of its own parent. */
static void link_up(struct cache *c, uint32_t id)
{
	struct cell *cell = &c->cell[id];

	assert(cell->place == 0);
	if (!cell->below)
		cell->linked = c->t->parent[id] != NO_BLOCK;
	if (cell->linked)
		c->cell[c->t->parent[id]].below++;
}

static void create(struct cache *c, uint32_t id, uint64_t born, bool last)
{
	struct cell *cell = &c->cell[id];

	assert(cell->place == 0 && c->n.blocks < c->capacity);
	c->n.blocks++;
	cell->b = (struct skv_policy_block){ .hash = hash_of(c, id), .use = next_use(c),
					     .born = born };
	if (c->ops->born)
		c->ops->born(c->state, &cell->b, last);
}

static void insert(struct cache *c, uint32_t id)
{
	const struct cell *cell = &c->cell[id];

	assert(!c->slow || c->slow->cell[id].place);
	if (c->slow) {
		c->r->tier.promoted += cell->found;
		c->r->tier.written += !cell->found;
	}
	enqueue(c, id);
}

/* Returns true if the block at position `i` of request `q` was found there, so that the lookup used
 * it. */
static bool was_used(const struct cache *c, uint32_t q, uint32_t i, const struct request_hits *h)
{
	return i < c->t->first[q] + h->prefix ||
	       (c->r->one_by_one && c->cell[c->t->ref[i]].found == q + 1);
}

/* Returns true if a fast tier takes the block in: written just now, or used often enough below. */
static bool comes_up(const struct cache *c, uint32_t q, uint32_t i, const struct request_hits *h)
{
	const struct cell *below = &c->slow->cell[c->t->ref[i]];

	assert(c->slow && !c->slow->slow);
	if (!below->place)
		return false; /* evicted since, or never taken in */
	if (was_used(c->slow, q, i, h))
		return c->r->promote_after && below->b.freq >= c->r->promote_after;
	return c->r->write_through && below->found != q + 1;
}

/* Returns true if the block at position `i` of request `q` must be written. */
static bool is_wanted(const struct cache *c, uint32_t q, uint32_t i, const struct request_hits *h)
{
	if (c->slow)
		return !c->cell[c->t->ref[i]].place && comes_up(c, q, i, h);
	return !(c->r->one_by_one ? c->cell[c->t->ref[i]].found == q + 1
				  : c->cell[c->t->ref[i]].place != 0);
}

/* Each block makes room for itself as it comes. Blocks found stay out, also if they have been
 * evicted to make room for others. */
static void write_one_by_one(struct cache *c, uint32_t q, uint32_t first, uint32_t end,
			     struct request_hits *h)
{
	const uint32_t *ref = c->t->ref;
	uint32_t last = end;

	for (uint32_t i = first; i < end; i++)
		if (is_wanted(c, q, i, h))
			last = i;
	for (uint32_t i = first; i < end; i++) {
		if (!is_wanted(c, q, i, h))
			continue;
		if (c->n.blocks == c->capacity)
			evict_one(c, NULL, false);
		link_up(c, ref[i]);
		create(c, ref[i], ++c->births, i == last);
		insert(c, ref[i]);
		h->written++;
	}
}

static uint32_t list_absent(struct cache *c, uint32_t q, uint32_t first, uint32_t end,
			    const struct request_hits *h)
{
	uint32_t n = 0;

	for (uint32_t i = first; i < end; i++)
		if (is_wanted(c, q, i, h))
			c->absent[n++] = c->t->ref[i];
	return n;
}

/* The absent blocks of a request, head first. */
struct newcomers {
	const uint32_t *v;
	uint32_t n;
};

static struct skv_policy_block facts_of(const struct cache *c, const struct newcomers *in,
					uint32_t i)
{
	return (struct skv_policy_block){ .hash = hash_of(c, in->v[i]), .use = c->uses };
}

/* Makes room for those from `at` on. Returns for how many; fewer than all: the policy does not
 * admit the next. */
static uint32_t make_room(struct cache *c, const struct newcomers *in, uint32_t at)
{
	uint32_t got = 0;

	assert(at < in->n && c->n.blocks == c->capacity - at);
	while (at + got < in->n) {
		struct skv_policy_block b = facts_of(c, in, at + got);

		if (!evict_one(c, &b, at + got + 1 == in->n))
			break;
		got++;
	}
	return got;
}

static void refuse(struct cache *c, const struct newcomers *in, uint32_t from)
{
	assert(c->ops->refused && from < in->n);
	for (uint32_t i = from; i < in->n; i++) {
		struct skv_policy_block b = facts_of(c, in, i);

		c->ops->refused(c->state, &b, i + 1 == in->n);
	}
}

/* Protects the present ones of these blocks from eviction. */
static void keep(struct cache *c, uint32_t first, uint32_t end)
{
	for (uint32_t i = first; i < end; i++)
		c->cell[c->t->ref[i]].kept = c->cell[c->t->ref[i]].place != 0;
}

/* Makes the blocks evictable again; blocks that came to a top are queued again. */
static void let_go(struct cache *c, uint32_t first, uint32_t end)
{
	for (uint32_t i = end; i-- > first;) {
		struct cell *cell = &c->cell[c->t->ref[i]];

		if (cell->kept && !cell->place)
			enqueue(c, c->t->ref[i]);
		cell->kept = false;
	}
}

/* As the core does: room is made for all of them first, by others than the request's own; they
 * are born head first and come in tail first; what the policy does not admit stays out, and what is
 * behind as many blocks as the capacity. */
static void write_together(struct cache *c, uint32_t q, uint32_t first, uint32_t end,
			   struct request_hits *h)
{
	struct newcomers in = { .v = c->absent };
	const uint32_t begin = c->t->first[q];
	uint64_t room = c->capacity - c->n.blocks;

	end = end - begin > c->capacity ? begin + (uint32_t)c->capacity : end;
	in.n = list_absent(c, q, first, end, h);
	if (in.n > room) {
		keep(c, begin, end);
		room += make_room(c, &in, (uint32_t)room);
		let_go(c, begin, end);
	}
	if (in.n > room)
		refuse(c, &in, (uint32_t)room);
	in.n = in.n > room ? (uint32_t)room : in.n;
	assert(c->n.blocks + in.n <= c->capacity);
	h->written = in.n;
	for (uint32_t i = 0; i < in.n; i++)
		link_up(c, in.v[i]);
	for (uint32_t i = 0; i < in.n; i++)
		create(c, in.v[i], ++c->births, i + 1 == in.n);
	for (uint32_t i = in.n; i-- > 0;)
		insert(c, in.v[i]);
}

static void write_absent(struct cache *c, uint32_t q, uint32_t first, uint32_t end,
			 struct request_hits *h)
{
	if (c->r->one_by_one)
		write_one_by_one(c, q, first, end, h);
	else
		write_together(c, q, first, end, h);
}

/* Serves a request from the fast tier: copies of blocks found below, and copies to make of these
 * and of blocks that came in there. */
static void request_fast(struct cache *f, uint32_t q, const struct request_hits *below)
{
	const struct refs *t = f->t;
	uint32_t first = t->first[q], end = t->first[q + 1];
	struct request_hits h = { .prefix = below->prefix };

	assert(f->slow && h.prefix <= end - first);
	f->uses++;
	for (uint32_t i = first; i < end; i++) {
		struct cell *cell = &f->cell[t->ref[i]];

		cell->found = was_used(f->slow, q, i, below);
		if (!cell->found || !cell->place)
			continue;
		use(f, t->ref[i]);
		f->r->tier.hits += i < first + below->prefix;
	}
	f->uses++;
	write_absent(f, q, first, end, &h);
}

static struct request_hits request(struct cache *c, uint32_t q)
{
	const struct refs *t = c->t;
	uint32_t first = t->first[q], end = t->first[q + 1];
	struct request_hits h = { 0 };
	bool leading = true;

	c->uses++;
	for (uint32_t i = first; i < end; i++) {
		if (!c->cell[t->ref[i]].place) {
			leading = false;
			continue;
		}
		h.prefix += leading;
		h.behind += !leading;
		c->cell[t->ref[i]].found = q + 1;
		if (leading || c->r->one_by_one)
			use(c, t->ref[i]);
	}
	c->uses++;
	write_absent(c, q, first + h.prefix, end, &h);
	run_note(c->r, q, h);
	return h;
}

static uint32_t longest(const struct refs *t)
{
	uint32_t most = 1;

	for (uint32_t q = 0; q < t->n_requests; q++)
		most = t->first[q + 1] - t->first[q] > most ? t->first[q + 1] - t->first[q] : most;
	return most;
}

static int open_cache(struct cache *c, struct run *r, uint64_t capacity, struct counts *counts)
{
	char instance[SKV_MAX_NAME + 1];
	uint64_t most;

	run_instance(r, instance);
	*c = (struct cache){ .r = r, .t = r->refs, .ops = simulated_policy(r->policy),
			     .space = skv_policy_space(RUN_TENANT, instance),
			     .capacity = capacity, .counts = counts };
	if (!c->ops)
		return skv_fail(&r->err, SKV_E_INVALID, "policy",
				"there is no policy '%s': one of %s, " TEXTBOOK_NAMES ", belady",
				r->policy, skv_policy_names());
	most = capacity < c->t->n_blocks ? capacity : c->t->n_blocks;
	if (most >= SKV_HEAP_IDS)
		return skv_fail(&r->err, SKV_E_TOO_LARGE, NULL,
				"%s: a capacity of over 2^27 blocks", c->t->name);
	skv_heaps_init(&c->heaps, c->ops->n_queues, place_of, c);
	c->cell = skv_calloc(c->t->n_blocks, sizeof *c->cell);
	c->absent = skv_calloc(longest(c->t), sizeof *c->absent);
	if (!c->cell || !c->absent || skv_heaps_reserve(&c->heaps, most) != SKV_OK)
		return skv_fail(&r->err, SKV_E_NOMEM, NULL, "%s: out of memory", c->t->name);
	if (c->ops->create && !(c->state = c->ops->create(&c->n)))
		return skv_fail(&r->err, SKV_E_NOMEM, NULL, "%s: out of memory", c->t->name);
	return SKV_OK;
}

static void close_cache(struct cache *c)
{
	if (c->state)
		c->ops->destroy(c->state);
	skv_heaps_destroy(&c->heaps);
	skv_free(c->cell);
	skv_free(c->absent);
}

int run_policy(struct run *r)
{
	struct cache c, fast = { 0 };
	struct counts of_fast = { 0 };
	int rc = open_cache(&c, r, r->blocks, &r->counts);

	assert(r->fast_blocks < r->blocks && r->promote_after <= SKV_POLICY_FREQ);
	if (rc == SKV_OK && r->fast_blocks) {
		rc = open_cache(&fast, r, r->fast_blocks, &of_fast);
		fast.slow = &c;
	}
	for (uint32_t q = 0; rc == SKV_OK && q < r->refs->n_requests; q++) {
		struct request_hits h = request(&c, q);

		if (r->fast_blocks)
			request_fast(&fast, q, &h);
		rc = run_goes_on(r) ? SKV_OK : r->err.status;
	}
	r->tier.evicted = of_fast.evicted;
	if (r->fast_blocks && fast.slow)
		close_cache(&fast);
	close_cache(&c);
	return rc;
}
