/*
 * index.c - key -> block entry, for one instance.
 *
 * INDEX_SEGMENTS open-addressing tables per instance, chosen by the hash's top bits, each growing
 * on its own by a quarter, so that growth neither stalls the partition nor doubles its memory. A
 * cell is (32-bit tag, 32-bit id). A tag's home is its proportional position in the table, and
 * cells are sorted by tag: a miss ends at the first larger tag, growing is one sequential pass that
 * touches no entry, and tables may be nine tenths full. Removal shifts cells back; there are no
 * tombstones. Readers hold the partition's lock for reading, writers for writing.
 */
#include <model/index.h>

#include <assert.h>
#include <string.h>

#include <skv/mem.h>

#include <model/block.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/table.h>

#define SLACK 64u /* cells after the last home, so that no run wraps around */

static uint64_t hash_of(const struct partition *p, struct skv_key key)
{
	return skv_key_mix(key, p->mix_seed);
}

static uint32_t segment_no(uint64_t h) { return h >> 58 & (INDEX_SEGMENTS - 1); }

static struct segment *segment_of(const struct instance *inst, uint64_t h)
{
	return (struct segment *)&inst->index[segment_no(h)];
}

static uint32_t cell_tag(uint64_t cell) { return (uint32_t)(cell >> 32); }
static uint32_t cell_id(uint64_t cell) { return (uint32_t)cell; }

static uint32_t home(const struct segment *s, uint32_t tag)
{
	return (uint32_t)((uint64_t)tag * s->homes >> 32);
}

uint64_t index_hash(const struct partition *p, struct skv_key key) { return hash_of(p, key); }

struct block *index_find_hashed(const struct partition *p, const struct instance *inst, uint64_t h,
				struct skv_key key)
{
	const struct segment *s = segment_of(inst, h);
	uint32_t tag = (uint32_t)h;

	if (!s->cells)
		return NULL;
	for (uint32_t i = home(s, tag); s->cells[i] && cell_tag(s->cells[i]) <= tag; i++) {
		if (cell_tag(s->cells[i]) == tag) {
			struct block *b = block_get(p, cell_id(s->cells[i]));

			if (skv_key_equal(b->key, key))
				return b;
		}
	}
	return NULL;
}

struct block *index_find(const struct partition *p, const struct instance *inst, struct skv_key key)
{
	return index_find_hashed(p, inst, hash_of(p, key), key);
}

void index_prefetch(const struct instance *inst, uint64_t h)
{
	const struct segment *s = segment_of(inst, h);

	if (s->cells)
		__builtin_prefetch(&s->cells[home(s, (uint32_t)h)]);
}

struct block *index_fetch_entry(const struct partition *p, const struct instance *inst, uint64_t h)
{
	const struct segment *s = segment_of(inst, h);
	uint32_t tag = (uint32_t)h, i;
	struct block *b;

	if (!s->cells)
		return NULL;
	for (i = home(s, tag); s->cells[i] && cell_tag(s->cells[i]) < tag; i++)
		;
	if (cell_tag(s->cells[i]) != tag || !s->cells[i])
		return NULL;
	b = block_get(p, cell_id(s->cells[i]));
	__builtin_prefetch(b, 1);
	return b;
}

void index_expect(const struct partition *p, const struct instance *inst,
		  const struct skv_key *keys, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		index_prefetch(inst, hash_of(p, keys[i]));
	for (uint32_t i = 0; i < n; i++)
		index_fetch_entry(p, inst, hash_of(p, keys[i]));
}

/* The last cell stays empty: it ends every run. */
static uint32_t n_cells(const struct segment *s) { return s->homes + SLACK; }

/* Copies all cells, in order, into a table with more homes. False if the slack is too small. */
static bool copy(struct segment *to, const struct segment *from)
{
	uint32_t at = 0;

	for (uint32_t i = 0; from->cells && i < n_cells(from); i++) {
		uint32_t h;

		if (!from->cells[i])
			continue;
		h = home(to, cell_tag(from->cells[i]));
		at = at > h ? at : h;
		if (at + 1 >= n_cells(to))
			return false;
		to->cells[at++] = from->cells[i];
	}
	return true;
}

/* Memory that is full has no room for tables that are half empty. */
static bool is_roomy(const struct partition *p)
{
	return p->roomy && skv_mem_level() == SKV_MEM_FREE && !skv_mem_is_small();
}

static int grow(const struct partition *p, struct segment *s)
{
	struct segment next = { .homes = s->homes, .count = s->count };

	do {
		next.homes += (is_roomy(p) ? next.homes : next.homes / 4) + 8;
		skv_free(next.cells);
		next.cells = skv_calloc(n_cells(&next), sizeof(uint64_t));
		if (!next.cells)
			return SKV_E_NOMEM;
	} while (!copy(&next, s));
	skv_free(s->cells);
	*s = next;
	return SKV_OK;
}

/* Returns false if the cell's run reaches the end of the table. */
static bool place(struct segment *s, uint64_t cell)
{
	uint32_t i = home(s, cell_tag(cell)), end;

	while (s->cells[i] && cell_tag(s->cells[i]) <= cell_tag(cell))
		i++;
	for (end = i; s->cells[end]; end++)
		;
	if (end + 1 >= n_cells(s))
		return false;
	memmove(&s->cells[i + 1], &s->cells[i], (end - i) * sizeof(uint64_t));
	s->cells[i] = cell;
	return true;
}

int index_insert(struct partition *p, struct instance *inst, const struct block *b)
{
	uint64_t h = hash_of(p, b->key);
	struct segment *s = segment_of(inst, h);
	uint64_t cell = (uint64_t)(uint32_t)h << 32 | block_id(b);

	ASSERT_EXCLUSIVE(p);
	if (!s->cells || s->count + 1 > (uint64_t)s->homes * 9 / 10)
		if (grow(p, s) != SKV_OK)
			return SKV_E_NOMEM;
	while (!place(s, cell))
		if (grow(p, s) != SKV_OK)
			return SKV_E_NOMEM;
	s->count++;
	return SKV_OK;
}

/* ---- many at once ---------------------------------------------------------------------------- */

/* Cells in the order of their segments; at[i] is where the next of segment i goes. */
struct build {
	const struct partition *p;
	uint64_t *cells;
	size_t at[INDEX_SEGMENTS + 1];
};

static void build_each(struct build *b, const struct instance *inst,
		       void (*fn)(struct build *b, uint64_t hash, uint32_t id))
{
	for (const struct chunk *c = inst->newest; c; c = c->next)
		for (uint32_t i = 0; i < c->fresh; i++) {
			const struct block *block = chunk_place(c, i);

			if (block->used)
				fn(b, hash_of(b->p, block->key), c->number << CHUNK_SHIFT | i);
		}
}

static void count_cell(struct build *b, uint64_t h, uint32_t id)
{
	(void)id;
	b->at[segment_no(h) + 1]++;
}

static void sort_cell(struct build *b, uint64_t h, uint32_t id)
{
	b->cells[b->at[segment_no(h)]++] = (uint64_t)(uint32_t)h << 32 | id;
}

/* Returns true if the key of this cell is in the table already. */
static bool is_there(const struct partition *p, const struct segment *s, uint64_t cell)
{
	const uint32_t tag = cell_tag(cell);

	for (uint32_t i = home(s, tag); s->cells[i] && cell_tag(s->cells[i]) <= tag; i++)
		if (cell_tag(s->cells[i]) == tag &&
		    skv_key_equal(block_get(p, cell_id(s->cells[i]))->key,
				  block_get(p, cell_id(cell))->key))
			return true;
	return false;
}

/* Six sevenths full. */
static uint32_t homes_for(uint32_t n) { return n + n / 6 + 8; }

static int build_segment(const struct partition *p, struct segment *s, const uint64_t *cells,
			 size_t n)
{
	if (n > UINT32_MAX / 2)
		return SKV_E_TOO_MANY;
	*s = (struct segment){ .homes = homes_for((uint32_t)n) };
	if (is_roomy(p))
		s->homes += s->homes / 2;
	s->cells = skv_calloc(n_cells(s), sizeof(uint64_t));
	if (!s->cells)
		return SKV_E_NOMEM;
	for (size_t i = 0; i < n; i++) {
		if (is_there(p, s, cells[i]))
			return SKV_E_CONFLICT;
		while (!place(s, cells[i]))
			if (grow(p, s) != SKV_OK)
				return SKV_E_NOMEM;
		s->count++;
	}
	return SKV_OK;
}

int index_build(struct partition *p, struct instance *inst)
{
	struct build b = { .p = p };
	int rc = SKV_OK;

	ASSERT_EXCLUSIVE(p);
	index_destroy(inst);
	b.cells = skv_malloc(inst->entries * sizeof *b.cells);
	if (!b.cells)
		return SKV_E_NOMEM;
	build_each(&b, inst, count_cell);
	for (uint32_t i = 0; i < INDEX_SEGMENTS; i++)
		b.at[i + 1] += b.at[i];
	assert(b.at[INDEX_SEGMENTS] == inst->entries);
	build_each(&b, inst, sort_cell); /* after it, at[i] is the end of segment i */
	for (uint32_t i = 0; i < INDEX_SEGMENTS && rc == SKV_OK; i++) {
		const size_t from = i ? b.at[i - 1] : 0;

		if (b.at[i] > from)
			rc = build_segment(p, &inst->index[i], b.cells + from, b.at[i] - from);
	}
	skv_free(b.cells);
	if (rc != SKV_OK)
		index_destroy(inst);
	return rc;
}

static void fit(struct segment *s)
{
	struct segment next = { .homes = homes_for(s->count), .count = s->count };

	if (next.homes >= s->homes)
		return;
	next.cells = s->count ? skv_calloc(n_cells(&next), sizeof(uint64_t)) : NULL;
	if (s->count && (!next.cells || !copy(&next, s))) {
		skv_free(next.cells);
		return;
	}
	skv_free(s->cells);
	*s = s->count ? next : (struct segment){ 0 };
}

void index_fit(struct partition *p)
{
	ASSERT_EXCLUSIVE(p);
	for (size_t i = 0; p->roomy && i < p->n_inst; i++)
		for (uint32_t s = 0; s < INDEX_SEGMENTS; s++)
			fit(&p->inst[i]->index[s]);
	p->roomy = false;
}

void index_remove(struct partition *p, struct instance *inst, const struct block *b)
{
	uint64_t h = hash_of(p, b->key);
	struct segment *s = segment_of(inst, h);
	uint64_t cell = (uint64_t)(uint32_t)h << 32 | block_id(b);
	uint32_t i = home(s, (uint32_t)h), end;

	ASSERT_EXCLUSIVE(p);
	while (s->cells[i] != cell) {
		assert(s->cells[i] != 0); /* every entry in use is indexed */
		i++;
	}
	/* Shifts back later cells of the run that are not at home. */
	for (end = i + 1; s->cells[end] && home(s, cell_tag(s->cells[end])) < end; end++)
		;
	memmove(&s->cells[i], &s->cells[i + 1], (end - i - 1) * sizeof(uint64_t));
	s->cells[end - 1] = 0;
	s->count--;
}

void index_destroy(struct instance *inst)
{
	for (uint32_t i = 0; i < INDEX_SEGMENTS; i++)
		skv_free(inst->index[i].cells);
	memset(inst->index, 0, sizeof inst->index);
}
