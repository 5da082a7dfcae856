/*
 * pin.c - pins: blocks protected from eviction.
 *
 * An instance's pins are a table by block id; each block's entry has a bit that tells whether it is
 * pinned, so that lookups and evictions of other blocks do not touch pins. A hard-pinned block is
 * in no eviction queue, a soft-pinned one in a queue that is used last (evict.c). A pin goes with
 * its block's last committed slot. Under the write lock.
 */
#include <model/pin.h>

#include <skv/mem.h>

#include <model/block.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/queue.h>
#include <model/tenant.h>

static uint32_t home(const struct pins *pins, uint32_t block)
{
	return (block * 2654435761u) & (pins->cells - 1);
}

/* Returns the block's cell, or the empty cell where the block would be. The table must have an
 * empty cell. */
static struct pin *cell_of(const struct pins *pins, uint32_t block)
{
	uint32_t i = home(pins, block);

	while (pins->cell[i].block != NO_BLOCK && pins->cell[i].block != block)
		i = (i + 1) & (pins->cells - 1);
	return &pins->cell[i];
}

void pins_count(struct instance *inst, int64_t by)
{
	if (inst->retired || by == 0)
		return;
	inst->tenant->pins += (uint64_t)by;
	tenant_touch(inst->tenant);
}

static void count(struct instance *inst, const struct pin *pin, int sign)
{
	struct pins *pins = &inst->pins;

	pins_count(inst, sign);
	pins->n += (uint32_t)sign;
	pins->hard += pin->kind == SKV_PIN_HARD ? (uint32_t)sign : 0;
	pins->timed += pin->until ? (uint32_t)sign : 0;
}

int pins_reserve(struct pins *pins, uint32_t n)
{
	struct pins more = { .cells = pins->cells ? pins->cells : 64 };

	while (more.cells / 2 < pins->n + n)
		more.cells *= 2;
	if (more.cells == pins->cells)
		return SKV_OK;
	more.cell = skv_calloc(more.cells, sizeof *more.cell);
	if (!more.cell)
		return SKV_E_NOMEM;
	for (uint32_t i = 0; i < pins->cells; i++)
		if (pins->cell[i].block != NO_BLOCK)
			*cell_of(&more, pins->cell[i].block) = pins->cell[i];
	skv_free(pins->cell);
	pins->cell = more.cell;
	pins->cells = more.cells;
	return SKV_OK;
}

/* Empties the cell; later cells of the run move up. */
static void take_out(struct instance *inst, struct pin *pin)
{
	struct pins *pins = &inst->pins;
	uint32_t mask = pins->cells - 1, hole = (uint32_t)(pin - pins->cell), i = hole;

	count(inst, pin, -1);
	for (;;) {
		i = (i + 1) & mask;
		if (pins->cell[i].block == NO_BLOCK)
			break;
		if (((i - home(pins, pins->cell[i].block)) & mask) < ((i - hole) & mask))
			continue;
		pins->cell[hole] = pins->cell[i];
		hole = i;
	}
	pins->cell[hole] = (struct pin){ .block = NO_BLOCK };
}

struct pin pin_get(const struct block *b)
{
	static const struct pin none = { .block = NO_BLOCK };

	return b->pinned ? *cell_of(&block_instance(b)->pins, block_id(b)) : none;
}

void pin_set(struct partition *p, struct block *b, struct pin to)
{
	struct instance *inst = block_instance(b);
	struct pins *pins = &inst->pins;
	struct pin *cell;

	ASSERT_EXCLUSIVE(p);
	if (b->pinned)
		take_out(inst, cell_of(pins, block_id(b)));
	b->pinned = to.kind != SKV_PIN_NONE;
	if (b->pinned) {
		to.block = block_id(b);
		cell = cell_of(pins, to.block);
		*cell = to;
		count(inst, cell, 1);
	}
	evict_consider(p, b);
}

enum skv_pin_kind pin_kind(const struct block *b) { return pin_get(b).kind; }

bool pin_keeps_bytes(const struct instance *inst, const struct block *b)
{
	for (uint32_t s = 0; s < inst->spec.n_specs; s++)
		if (b->slot[s].state == SLOT_COMMITTED || b->slot[s].state == SLOT_REMOVING)
			return true;
	return false;
}

void pin_of_slot_gone(struct block *b)
{
	struct instance *inst = block_instance(b);

	if (pin_keeps_bytes(inst, b))
		return;
	take_out(inst, cell_of(&inst->pins, block_id(b)));
	b->pinned = 0;
}

uint64_t pinned_bytes(const struct instance *inst, bool hard)
{
	return (hard ? inst->pins.hard : inst->pins.n - inst->pins.hard) * inst->block_bytes;
}

void pins_destroy(struct instance *inst)
{
	pins_count(inst, -(int64_t)inst->pins.n);
	skv_free(inst->pins.cell);
	inst->pins = (struct pins){ 0 };
}
