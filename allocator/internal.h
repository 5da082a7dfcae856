/*
 * internal.h - the allocator's internal structures.
 *
 * Three layers, each in one file:
 *   units.c  which units of which file are free: a buddy system over all files of the pool;
 *   files.c  files as a whole: drained, removed, looked at;
 *   slab.c   one slab: bitmaps, owners, and its place in the lists of its class;
 *   alloc.c, at.c, hold.c, take.c, victims.c: the operations on slots.
 *
 * No locks anywhere: the caller serialises all calls on one pool.
 */
#ifndef SKV_ALLOCATOR_INTERNAL_H
#define SKV_ALLOCATOR_INTERNAL_H

#include <skv/pool.h>

#include "bits.h"

#include <assert.h>

#define NO_SLAB UINT32_MAX
#define NO_HOLD UINT32_MAX       /* as an owner: held by the overflow */
#define ORDERS 32                /* windows have 2^0 .. 2^31 units */
#define NOT_FREE_HEAD UINT8_MAX  /* no free block begins at this unit */
#define FILL_BUCKETS 64
#define MAX_SLAB_SLOTS SKV_SLAB_SLOTS
#define MAX_BYTES (UINT64_C(1) << 60) /* bound of lengths and sizes, so that sums cannot overflow */

/* A unit of a file. The links and `order` mean something only in the first unit of a free block: an
 * aligned 2^order units, maximal (its buddy is not free in one piece). */
struct pool_unit {
	struct pool_unit *prev;
	struct pool_unit *next;
	struct pool_file *file;
	uint32_t slab; /* handle of the slab that has it, or NO_SLAB */
	uint8_t order; /* or NOT_FREE_HEAD */
	bool frozen;   /* in no slab, yet not to be handed out before frozen_until */
};

struct pool_file {
	uint32_t id;
	uint32_t n_units;
	uint64_t length;
	uint32_t n_slabs;
	uint32_t n_frozen;   /* units */
	uint64_t used_bytes; /* of used slots */
	bool draining; /* free blocks are parked; slabs are in no list of their class */
	struct pool_unit *units;
};

/* Aligned power-of-two range of units of one file. */
struct window {
	struct pool_file *file;
	uint32_t first;
	uint32_t units;
};

struct pool_class {
	uint32_t id;
	/* Slab lengths, 2^x units: the shortest with a slot, the shortest that wastes at most 1 %,
	 * and the next one's, in between (skv_class_resize). */
	uint32_t least, most, order;
	uint64_t units; /* of its slabs */
	uint64_t stride;
	uint64_t align;       /* bytes of a segment, 0 if not segmented */
	uint32_t per_segment; /* slots; 0 = none */
	uint64_t free; /* free slots in listed slabs */
	/* Slots that slabs of this class would have in the free blocks; updated in units.c. */
	uint64_t unit_slots;
	/* Slabs with free slots, not draining, by [log2 of `longest`][how full, fullest first]. The
	 * masks tell which lists have a member. */
	struct slab *lists[ORDERS][FILL_BUCKETS];
	uint64_t fill_mask[ORDERS];
	uint32_t run_mask;
};

/* An open slab: it has a used or held slot whenever no call is in progress. */
struct slab {
	struct pool_class *class;
	struct window at;
	struct slab *prev; /* list of its class, when listed */
	struct slab *next;
	struct slab *opened; /* slabs that the running call has opened, or made */
	uint64_t first_offset;
	uint32_t handle;
	uint32_t slots;
	uint32_t used;
	uint32_t held;
	uint32_t dead;
	uint32_t longest; /* upper bound of the longest free run */
	uint8_t run_bucket;
	uint8_t fill_bucket;
	bool listed;
	bool draining;
	uint64_t *busy;      /* slot is used, held or dead */
	uint64_t *held_bits; /* slot is held; a subset of busy */
	uint64_t *dead_bits; /* slot is dead; another one. NULL in a class that is not segmented */
	uint32_t *owner;     /* used: the caller's; held: index of its hold, or NO_HOLD */
};

/* Slots held together. Those of first..first+count-1 are meant that are held and still carry this
 * hold's index as owner: a slot that skv_pool_take gave away drops out by losing it. An unused
 * entry has slab NO_SLAB and its successor in the list of unused ones in `first`. */
struct hold {
	uint64_t until;
	uint32_t slab;
	uint32_t first;
	uint32_t count;
	uint32_t live; /* slots that still carry its index */
};

struct skv_pool {
	struct skv_pool_options options;

	struct pool_file **files; /* ascending by id */
	size_t n_files;
	size_t cap_files;
	struct pool_unit *free_blocks[ORDERS];
	/* The same of draining files: nothing is cut from them. */
	struct pool_unit *parked_blocks[ORDERS];
	uint64_t frozen_units;
	uint64_t frozen_until;
	size_t thaw_at; /* position in files[] where thawing continues */
	/* File whose blocks are left out of every class's unit_slots for now. */
	const struct pool_file *moving;

	struct pool_class **classes; /* by id */
	size_t n_classes;
	size_t cap_classes;

	struct slab **slabs; /* by handle; NULL = unused */
	size_t n_slabs;      /* handles ever given */
	size_t cap_slabs;
	uint32_t *spare; /* unused handles; as long as slabs[], so that closing needs no memory */
	size_t n_spare;
	size_t cap_spare;

	uint32_t victim_turn; /* calls of skv_pool_find_victims */

	struct hold *holds;
	size_t n_holds;
	size_t cap_holds;
	uint32_t spare_hold; /* first of the unused entries, or NO_HOLD */
	uint32_t last_hold;  /* newest entry, which a neighbour may extend; or NO_HOLD */
	uint32_t *heap;      /* indices of holds, the earliest first */
	size_t n_heap;
	size_t cap_heap;
	uint64_t overflow_slots; /* held without an entry, for lack of memory */
	uint64_t overflow_until;
};

static inline uint64_t u64_min(uint64_t a, uint64_t b) { return a < b ? a : b; }
static inline uint64_t u64_max(uint64_t a, uint64_t b) { return a > b ? a : b; }
static inline uint32_t log2_floor(uint32_t v)
{
	assert(v > 0);
	return 31 - (uint32_t)__builtin_clz(v);
}

/* ---- units.c --------------------------------------------------------------------------------- */

/* Place of the first file with this number or a greater one in files[]. */
size_t skv_file_position(const struct skv_pool *p, uint32_t id);
struct pool_file *skv_file_find(const struct skv_pool *p, uint32_t id);
int skv_file_add(struct skv_pool *p, uint32_t id, uint64_t length);
void skv_files_destroy(struct skv_pool *p);
/* Parks the file's free blocks, or (`on` false) returns them to the others. */
void skv_file_park(struct skv_pool *p, struct pool_file *f, bool on);
/* Forgets a file without used units. */
void skv_file_forget(struct skv_pool *p, struct pool_file *f);
/* The slab of the first unit from *unit on that is in one, and *unit behind it;
 * NULL: none before `end`. */
struct slab *skv_file_next_slab(const struct skv_pool *p, const struct pool_file *f, uint32_t end,
				uint32_t *unit);
/* Slots of a class in so many bytes from an aligned offset on. */
static inline uint64_t skv_class_slots(const struct pool_class *c, uint64_t bytes)
{
	return c->per_segment ? bytes / c->align * c->per_segment : bytes / c->stride;
}
/* Slots of a class in units first..first+units-1 of a file of `length` bytes; *first_offset (may be
 * NULL) gets the offset of slot 0 and means something only when there is a slot. */
uint64_t skv_window_slots(const struct skv_pool *p, const struct pool_class *c, uint64_t length,
			  uint32_t first, uint32_t units, uint64_t *first_offset);
/* Bytes of the window that the file has: its last unit may be short. */
static inline uint64_t skv_window_bytes(const struct skv_pool *p, struct window w)
{
	uint64_t begin = w.first * p->options.unit;

	return u64_min(begin + w.units * p->options.unit, w.file->length) - begin;
}
/* Free window of 2^order units with a slot for the class, cut from the smallest free block that has
 * one, so that long blocks survive. */
bool skv_units_find(const struct skv_pool *p, const struct pool_class *c, uint32_t order,
		    struct window *out);
/* All slots that slabs of the class would have in the free blocks, counted one by one:
 * what unit_slots must be. */
uint64_t skv_units_slots(const struct skv_pool *p, const struct pool_class *c);
/* The same for an aligned block of 2^order units, cut into windows of the class's length. */
uint64_t skv_block_slots(const struct skv_pool *p, const struct pool_class *c, uint64_t length,
			 uint32_t first, uint32_t order);
/* The class has so many units more (fewer) in slabs, and new slabs of fitting length. */
void skv_class_resize(const struct skv_pool *p, struct pool_class *c, int64_t units);
/* A wholly free window becomes the slab's. */
void skv_units_claim(struct skv_pool *p, struct window w, uint32_t slab);
void skv_units_release(struct skv_pool *p, struct window w);
void skv_units_freeze(struct skv_pool *p, uint64_t until);
/* Frozen units of the window become free. Returns how many. */
uint64_t skv_units_thaw(struct skv_pool *p, struct window w);
/* A portion of all of them; again, until frozen_units is 0. */
uint64_t skv_units_thaw_some(struct skv_pool *p);

/* ---- slab.c ---------------------------------------------------------------------------------- */

/* Asserts that the handle names an open slab. */
struct slab *skv_slab_get(const struct skv_pool *p, uint32_t handle);

static inline uint32_t slab_free(const struct slab *s)
{
	return s->slots - s->used - s->held - s->dead;
}

static inline bool slot_dead(const struct slab *s, uint32_t i)
{
	return s->dead_bits && skv_bits_test(s->dead_bits, i);
}

static inline bool slot_used(const struct slab *s, uint32_t i)
{
	return skv_bits_test(s->busy, i) && !skv_bits_test(s->held_bits, i) && !slot_dead(s, i);
}
/* Memory and a handle for a slab; the window need not be free yet. SKV_E_NOMEM. */
int skv_slab_new(struct skv_pool *p, struct pool_class *c, struct window w, struct slab **out);
/* Computes the slabs that get more slots when the file grows to this length, linked by `opened`.
 * The caller then replaces the old slabs with them, which cannot fail, or drops them.
 * SKV_E_NOMEM. */
int skv_slabs_longer(const struct skv_pool *p, const struct pool_file *f, uint64_t length,
		     struct slab **list);
void skv_slabs_replace(struct skv_pool *p, struct slab *list);
void skv_slabs_forget(struct slab *list);
/* Claims the window and lists the slab. Cannot fail. */
void skv_slab_open(struct skv_pool *p, struct slab *s);
/* Gives units and memory back; holds in it are the caller's concern. */
void skv_slab_close(struct skv_pool *p, struct slab *s);
/* Closes it if no slot is used or held. */
void skv_slab_settle(struct skv_pool *p, struct slab *s);
/* Every change of counts, `longest` or `draining` (its own, its file's)
 * happens between these two. */
void skv_slab_unlist(struct slab *s);
void skv_slab_list(struct slab *s);
uint32_t skv_slab_fill_bucket(const struct slab *s);
/* Free slots become used with owner 0. */
void skv_slab_use(struct slab *s, uint32_t first, uint32_t count);
/* Dead slots of the range become free, and free ones of its first segment below it
 * dead: it is about to be used. */
void skv_slab_make_way(struct slab *s, uint32_t first, uint32_t count);
/* Used (or held: `held` tells) slots become free, or dead. Does not close the slab. */
void skv_slab_unuse(struct slab *s, uint32_t first, uint32_t count, bool held);
/* First free run at or after `from`: sets *first and returns its length, 0 if there is none. */
uint32_t skv_slab_next_free(const struct slab *s, uint32_t from, uint32_t *first);
uint32_t skv_slab_longest(const struct slab *s); /* exact */

/* ---- hold.c ---------------------------------------------------------------------------------- */

/* Held slots of the range become free, before their time. Does not close the slab. */
void skv_hold_drop(struct skv_pool *p, struct slab *s, uint32_t first, uint32_t count);
/* All free slots of the slab become held. */
void skv_hold_free_slots(struct skv_pool *p, struct slab *s, uint64_t until);

#endif
