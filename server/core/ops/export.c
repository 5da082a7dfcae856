/*
 * export.c - lists the committed blocks of an instance in portions.
 *
 * Each portion continues where the previous one ended; entries never move, so a block that stays is
 * listed once. A cursor is the id of the next entry combined with a number that changes with each
 * load, because ids mean nothing after a reload. Runs under the read lock and writes nothing.
 */
#include <string.h>

#include <lock/core.h>
#include <lock/gate.h>
#include <model/block.h>
#include <model/find.h>
#include <model/mark.h>
#include <model/names.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/volume.h>
#include <model/table.h>

#define PORTION_ENTRIES 32768u /* visited per portion */
#define OTHER_CHUNK 8u         /* cost of a chunk of another instance, in entries */

struct export {
	struct partition *p;
	const struct instance *inst;
	struct skv_export_res *res;
	struct skv_arena *arena;
	struct file_table files;
	uint32_t max;
	uint32_t looked;
};

/* Below 2^53, which JSON numbers can represent. */
static uint64_t cursor_at(const struct partition *p, uint32_t id)
{
	return (skv_key_mix((struct skv_key){ 0, 0 }, p->mix_seed) & 0x1fffff) << 32 | id;
}

static int copy_name(struct export *x, const struct block *b)
{
	struct skv_bytes name = block_name(b);
	void *copy = skv_arena_alloc(x->arena, name.n + 1);

	if (!copy)
		return SKV_E_NOMEM;
	memcpy(copy, name.p, name.n);
	x->res->name[x->res->n] = (struct skv_bytes){ copy, name.n };
	return SKV_OK;
}

static int tell(struct export *x, const struct block *b)
{
	struct skv_export_res *res = x->res;

	res->key[res->n] = b->key;
	res->use[res->n] = mark_use(atomic_load_explicit(&b->mark, memory_order_relaxed));
	for (uint32_t s = 0; s < res->n_specs; s++)
		if (b->slot[s].state == SLOT_COMMITTED &&
		    location_fill(&x->files, x->p, x->inst, b, s,
				  &res->loc[(size_t)res->n * res->n_specs + s]) != SKV_OK)
			return SKV_E_NOMEM;
	if (res->name && copy_name(x, b) != SKV_OK)
		return SKV_E_NOMEM;
	res->n++;
	return SKV_OK;
}

/* Lists from this position of the chunk on; *place is where it stopped. */
static int tell_chunk(struct export *x, const struct chunk *c, uint32_t *place)
{
	for (; *place < c->fresh && x->res->n < x->max; ++*place) {
		const struct block *b = chunk_place(c, *place);

		if (b->used && block_has_committed(x->inst, b) && tell(x, b) != SKV_OK)
			return SKV_E_NOMEM;
	}
	return SKV_OK;
}

static int tell_portion(struct export *x, uint32_t id)
{
	uint32_t no = id >> CHUNK_SHIFT, place = id & (CHUNK_CAPACITY - 1);

	while (no < x->p->n_chunk && x->res->n < x->max && x->looked < PORTION_ENTRIES) {
		const struct chunk *c = x->p->chunk[no];
		bool ours = c->inst == x->inst;

		x->looked += ours ? c->fresh : OTHER_CHUNK;
		if (ours && tell_chunk(x, c, &place) != SKV_OK)
			return SKV_E_NOMEM;
		if (ours && place < c->fresh)
			break;
		no++;
		place = 0;
	}
	x->res->next = no < x->p->n_chunk ? cursor_at(x->p, no << CHUNK_SHIFT | place) : 0;
	return SKV_OK;
}

static int export_locked(struct partition *p, const struct skv_export_req *req,
			 struct skv_export_res *res, struct skv_arena *a, struct skv_error *err)
{
	struct export x = { .p = p, .res = res, .arena = a,
			    .files = { .arena = a, .files = &res->files }, .max = req->max };
	uint32_t id = req->cursor ? (uint32_t)req->cursor : 1u << CHUNK_SHIFT;
	struct instance *inst;
	int rc = instance_need(p, req->tenant, req->instance, "instance", &inst, err);

	ASSERT_SHARED(p);
	if (rc != SKV_OK)
		return rc;
	if (req->cursor && (req->cursor != cursor_at(p, id) || id >> CHUNK_SHIFT == 0))
		return skv_fail(err, SKV_E_INVALID, "cursor",
				"not of an export since the last start: begin again");
	if (x.max > inst->entries)
		x.max = inst->entries ? (uint32_t)inst->entries : 1;
	x.inst = inst;
	*res = (struct skv_export_res){ .n_specs = req->keys_only ? 0 : inst->spec.n_specs };
	res->key = skv_arena_alloc(a, x.max * sizeof *res->key);
	res->use = skv_arena_alloc(a, x.max * sizeof *res->use);
	if (!req->keys_only) {
		res->name = skv_arena_alloc(a, x.max * sizeof *res->name);
		res->loc = skv_arena_calloc(a, (size_t)x.max * res->n_specs, sizeof *res->loc);
	}
	if (!res->key || !res->use || (!req->keys_only && (!res->name || !res->loc)))
		return SKV_E_NOMEM;
	return tell_portion(&x, id);
}

int skv_core_export(struct skv_core *c, const struct skv_export_req *req,
		    struct skv_export_res *res, struct skv_arena *a, struct skv_error *err)
{
	int rc = core_gate(c, err);

	if (rc != SKV_OK)
		return rc;
	if (req->max == 0 || req->max > SKV_MAX_KEYS)
		return skv_fail(err, SKV_E_INVALID, "max", "1..%u", SKV_MAX_KEYS);
	skv_rwlock_read(&c->lock);
	rc = c->partition ? export_locked(c->partition, req, res, a, err)
			  : gate_recovering(err);
	skv_rwlock_read_unlock(&c->lock);
	return rc;
}
