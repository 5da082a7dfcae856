/*
 * pool.h - slab allocator of one storage: hands out slots inside slab files.
 *
 * Pure: no I/O, clock, lock or threads; the caller serialises calls and passes the time.
 *
 * A *file* is a byte range [0, length) cut into *units* (unit u begins at u * unit; the last one
 * may be short). A *slab* is an aligned power-of-two number of units given to one *class*; its
 * slots of `stride` bytes begin at multiples of `align` and avoid the file's header and trailer:
 *
 *	    first = round_up(max(slab begin, header), align)
 *	    slots = (min(slab end, length - trailer) - first) / stride
 *
 * With align = stride a slot's number in the file is offset / stride (what KVCM clients need). A
 * storage of unknown slot size (`external`) uses stride = align = 1, no header or trailer, and a
 * small unit such as 4096: its "bytes" are then slots, which are merely counted.
 *
 * The full slab length of a class is the smallest power of two of units that wastes at most 1 %,
 * wherever in a file the slab is (header and trailer not counted). Example, units of 64 MiB: slots
 * of 4,497,408 B at multiples of 4096 get slabs of 512 MiB (119 slots), at multiples of their own
 * size slabs of 1 GiB. A class reaches this length in steps: its first slab is the shortest with a
 * slot, and each new slab is at most as long as all slabs of the class together. So a class with
 * few slots takes little room. If no window of the length is free, and no slab of the class has a
 * free slot, the longest shorter window with a slot becomes the slab: progress beats waste. That is
 * also how a file shorter than the slab length serves the class.
 *
 * A class may be *segmented*, for file systems on which appending a slot to a chunk is free but
 * overwriting one copies the whole chunk (3FS). A segment is an aligned power of two of bytes; its
 * slots are packed from its start and handed out in order. A freed one is *dead*: not handed out
 * again before every slot of its segment is dead or free; then all of them are free.
 *
 * A slot is free, used, dead, or held (quarantined until a time, then free or dead). Each used slot
 * carries a 32-bit `owner` chosen by the caller, by which the caller finds the slot's block. A slab
 * whose last slot becomes free returns to the common units at once, so classes exchange space.
 *
 * Handles, class ids, runs and slots passed to these functions must be valid; a wrong one is a bug
 * of the caller and aborts. Only skv_pool_take is fed from durable records and checks its
 * arguments.
 *
 * Sizes in bytes, times in milliseconds of the caller's clock.
 */
#ifndef SKV_POOL_H
#define SKV_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <skv/status.h>

struct skv_pool;

/* Open slabs at a time: handles are below it, and one more is SKV_E_NOMEM. */
#define SKV_POOL_SLABS (UINT32_C(1) << 26)
#define SKV_SLAB_SLOTS (UINT32_C(1) << 30) /* slots per slab: their numbers are below it */

struct skv_pool_options {
	uint64_t unit;    /* power of two */
	uint64_t header;  /* bytes at the start of each file that are never a slot */
	uint64_t trailer; /* bytes at the end of each file that are never a slot */
};

/* Slots first..first+count-1 of one slab. `slab` is a handle, valid while the slab has a used or
 * held slot; not durable (see skv_slab_place). */
struct skv_run {
	uint32_t slab;
	uint32_t first;
	uint32_t count;
};

/* The durable name of a slab: its position. */
struct skv_slab_place {
	uint32_t file;
	uint32_t unit;  /* first unit */
	uint32_t units; /* power of two */
};

struct skv_slab_info {
	struct skv_slab_place place;
	uint32_t class_id;
	uint64_t stride;
	uint64_t align;        /* of a segmented class: bytes of a segment */
	uint64_t first_offset; /* of slot 0 in the file; for others see skv_slot_offset */
	uint32_t per_segment;  /* slots; 0 = the class is not segmented */
	uint32_t slots;
	uint32_t used;
	uint32_t held;
	uint32_t dead;
	bool draining;
};

/* The slot's offset in its file. */
static inline uint64_t skv_slot_offset(const struct skv_slab_info *s, uint32_t slot)
{
	if (!s->per_segment)
		return s->first_offset + slot * s->stride;
	return s->first_offset + slot / s->per_segment * s->align +
	       slot % s->per_segment * s->stride;
}

/* NULL if out of memory or options are invalid (`unit` not a power of two, a size above 2^60). */
struct skv_pool *skv_pool_create(const struct skv_pool_options *options);
void skv_pool_destroy(struct skv_pool *p);

/* Adds a file, or grows it if longer; the same length again changes nothing. SKV_E_INVALID if
 * nothing is left between header and trailer, if it shrinks, or has 2^32 - 1 units or more;
 * SKV_E_NOMEM. Open slabs at its old end get the slots that growth makes room for. */
int skv_pool_add_file(struct skv_pool *p, uint32_t file, uint64_t length);
/* While set, allocates nothing new in the file: no slots of its slabs, no slabs in its free units;
 * both count as unavailable. skv_pool_take still takes. Existing slots are unaffected.
 * SKV_E_NOT_FOUND. */
int skv_pool_drain_file(struct skv_pool *p, uint32_t file, bool on);
/* Removes a file without used or held slots or frozen units: else SKV_E_IN_USE. SKV_E_NOT_FOUND.
 * The number may be added again. */
int skv_pool_remove_file(struct skv_pool *p, uint32_t file);
struct skv_file_info {
	uint32_t file;
	bool draining;
	uint64_t length;
	uint64_t assigned_bytes; /* in open slabs */
	uint64_t used_bytes;
	uint64_t held_bytes;
	uint64_t frozen_bytes;
};
/* Returns false without such a file. O(units of the file). */
bool skv_pool_file(const struct skv_pool *p, uint32_t file, struct skv_file_info *out);
/* Returns true if the file has no slab and no frozen unit, or does not exist. O(log files). */
bool skv_pool_file_is_empty(const struct skv_pool *p, uint32_t file);
/* Returns the file's used_bytes, or 0 if the file does not exist. O(log files). */
uint64_t skv_pool_file_used(const struct skv_pool *p, uint32_t file);
/* The first open slab of the file at or after *unit, which is set to the unit after it; false:
 * none. */
bool skv_pool_next_slab(const struct skv_pool *p, uint32_t file, uint32_t *unit, uint32_t *slab);
/* Finds or creates the class for exact (stride, align). SKV_E_INVALID for zero values, a stride
 * that is not a multiple of align (round it up), or more than 2^30 slots in a slab; SKV_E_NOMEM.
 * Classes live as long as the pool. */
int skv_pool_class(struct skv_pool *p, uint64_t stride, uint64_t align, uint32_t *class_id);
/* The segmented class of this stride, with segments of `segment` bytes: a power of two, at most the
 * unit, at least one stride: else SKV_E_INVALID. The rest of a segment, segment % stride bytes, is
 * waste. Its slabs are single units. */
int skv_pool_class_segmented(struct skv_pool *p, uint64_t stride, uint64_t segment,
			     uint32_t *class_id);
/* Slots of this class in an empty file of `length` bytes, in slabs of the length that the class
 * opens next: tells whether a file is long enough for the class (0 = not a single slot). */
uint64_t skv_pool_slots_in_file(const struct skv_pool *p, uint32_t class_id, uint64_t length);

/* Takes `count` free slots. runs[] must have room for `count` entries (the worst case); *n_runs is
 * set. Prefers one run, then few, in the fullest slabs; opens new slabs last, and only as many as
 * needed. All or nothing: SKV_E_NO_SPACE, SKV_E_NOMEM change nothing. Owners are 0 until set. count
 * 0 gives no run. */
int skv_pool_alloc(struct skv_pool *p, uint32_t class_id, uint32_t count, struct skv_run *runs,
		   uint32_t *n_runs);
/* How many slots skv_pool_alloc could hand out now: free slots, except in draining slabs and files,
 * plus those of slabs that fit the free units. Exact. O(1). */
uint64_t skv_pool_available(const struct skv_pool *p, uint32_t class_id);

/* Takes exactly the slot at this offset of the file, if free, opening a slab if need be.
 * SKV_E_NO_SPACE: the class is segmented, or the slot is used, held or frozen, in a slab of another
 * class or a draining one (or file), or not at a possible offset; SKV_E_NOMEM. Either changes
 * nothing. The owner is 0 until set. */
int skv_pool_alloc_at(struct skv_pool *p, uint32_t class_id, uint32_t file, uint64_t offset,
		      struct skv_run *run);
/* The slot of an open slab that begins at this offset of the file; it may be used, held or free. */
bool skv_pool_at(const struct skv_pool *p, uint32_t file, uint64_t offset, uint32_t *slab,
		 uint32_t *slot);

/* Takes exactly these slots, for recovery, opening the slab if need be. Held slots among them (and
 * slabs of other classes with only held or free slots) are overridden: the journal has handed these
 * slots out, so their hold had ended. Frozen units are overridden too, but only for these slots:
 * the others of the slab stay held while the freeze lasts. Dead slots are overridden, and free ones
 * of the segment before them become dead; so slots dead after the last used one are free after a
 * recovery, at the cost of one more copy of their chunk. SKV_E_CORRUPT if a slot is used, a slab
 * with used slots is in the way, or the place does not fit the file; SKV_E_NOMEM. Either changes
 * nothing. *run is set. Owners are 0 until set. */
int skv_pool_take(struct skv_pool *p, uint32_t class_id, struct skv_slab_place place,
		  uint32_t first, uint32_t count, struct skv_run *run);

/* Frees used slots (dead, in a segmented class). Never fails; freeing an unused slot aborts (a
 * bug). */
void skv_pool_free(struct skv_pool *p, struct skv_run run);
/* Holds used slots until `until_ms`. Never fails (out of memory only makes it coarser: such slots
 * are held as long as the longest hold made without memory). */
void skv_pool_hold(struct skv_pool *p, struct skv_run run, uint64_t until_ms);
/* Frees held slots, and frozen units in portions, whose time has passed. Returns how many, a unit
 * counting as one: above 0 an allocation may succeed now. */
uint64_t skv_pool_release_due(struct skv_pool *p, uint64_t now_ms);
/* Time of the next due hold or freeze, UINT64_MAX if none. May be early for a hold emptied by
 * skv_pool_take. */
uint64_t skv_pool_next_due(const struct skv_pool *p);
/* After an unclean boot: hands out nothing that is free or held now before `until_ms` (whole pool),
 * because slots may have been freed and given away in lost records. Slots freed and files added
 * later are not affected. Never fails. Free slots become held; free units are frozen, which
 * skv_pool_each_hold does not report: after a restart, freeze again. In a segmented class such
 * slots are dead afterwards. */
void skv_pool_freeze_free(struct skv_pool *p, uint64_t until_ms);

/* Owner of a used slot. */
void skv_pool_set_owner(struct skv_pool *p, uint32_t slab, uint32_t slot, uint32_t owner);
uint32_t skv_pool_owner(const struct skv_pool *p, uint32_t slab, uint32_t slot);
/* Also false for an invalid slab or slot. */
bool skv_pool_is_used(const struct skv_pool *p, uint32_t slab, uint32_t slot);
/* Returns the slots that become free together with this one: the slots of its segment, or only
 * itself. */
void skv_pool_segment(const struct skv_pool *p, uint32_t slab, uint32_t slot, uint32_t *first,
		      uint32_t *count);
/* Returns false if the handle is not an open slab's. */
bool skv_pool_slab(const struct skv_pool *p, uint32_t slab, struct skv_slab_info *out);
/* Calls fn for every open slab, in no particular order. fn must not change the pool. */
void skv_pool_each_slab(const struct skv_pool *p, void (*fn)(void *ctx, uint32_t slab), void *ctx);
/* Calls fn for every held run with its time (for checkpoints). fn must not change the pool. */
void skv_pool_each_hold(const struct skv_pool *p,
			void (*fn)(void *ctx, struct skv_run run, uint64_t until_ms), void *ctx);

/* While set, hands out no slots of this slab; it closes when empty. skv_pool_take still takes. */
void skv_pool_drain(struct skv_pool *p, uint32_t slab, bool on);

/* Bytes of all slabs of the class, short last units of files as whole ones. */
uint64_t skv_pool_class_bytes(const struct skv_pool *p, uint32_t class_id);
/* Returns the size of the slab that the class opens next, if such a window exists. */
uint64_t skv_pool_slab_bytes(const struct skv_pool *p, uint32_t class_id);
/* Bytes of the first slab of a class, and of the full length into which it grows. `segment`: of a
 * segmented class; else 0. */
struct skv_slab_lengths {
	uint64_t first;
	uint64_t full;
};
struct skv_slab_lengths skv_pool_slab_lengths(const struct skv_pool *p, uint64_t stride,
					      uint64_t align, uint64_t segment);

#define SKV_UNIT_MIN (UINT64_C(1) << 20)
#define SKV_UNIT_MAX (UINT64_C(64) << 20)
/* The unit of a storage of `capacity` bytes by default: each size of blocks has slabs of its own,
 * so that a storage has 1,024 units, of SKV_UNIT_MIN to SKV_UNIT_MAX bytes. */
uint64_t skv_pool_default_unit(uint64_t capacity);

#define SKV_SLAB_STAYS UINT32_MAX
/* The caller's view of slabs as victims. */
struct skv_victims {
	/* How long it takes until all slots are free, ms (0: all of it may go now);
	 * SKV_SLAB_STAYS: some never are. */
	uint32_t (*waits)(void *ctx, uint32_t slab);
	/* Cost of emptying it, in the caller's measure; called for a few candidates only. NULL: all
	 * equal. */
	uint64_t (*cost)(void *ctx, uint32_t slab);
	void *ctx;
};
/* Chooses slabs of other classes to empty so that one slab of `class_id` can be opened: an aligned
 * window of units, of the class's slab length if possible, else shorter. The windows are ordered by
 * used bytes, fewest first (different ones at each call if many are equal), the first 16 of them by
 * cost. Of the first windows that may be emptied, with 8192 used slots in all, returns the one that
 * becomes free first. Draining files are not considered. Free windows and closed slabs without used
 * slots do not count, so at least one slab is returned. Sets slabs[] (caller frees with skv_free)
 * and returns SKV_OK, SKV_E_NO_SPACE, or SKV_E_NOMEM. O(units): call it after an allocation has
 * failed. */
int skv_pool_find_victims(struct skv_pool *p, uint32_t class_id, const struct skv_victims *v,
			  uint32_t **slabs, size_t *n_slabs);

struct skv_pool_stats {
	uint32_t files;
	uint64_t file_bytes;
	uint64_t assigned_bytes; /* in open slabs */
	uint64_t slot_bytes;     /* slots of open slabs * stride */
	uint64_t used_bytes;
	uint64_t held_bytes;
	uint64_t dead_bytes;
	/* In no slab; includes frozen units and units of draining files. */
	uint64_t free_unit_bytes;
	uint64_t draining_bytes;  /* lengths of draining files */
	uint32_t slabs;
	uint64_t largest_free_run; /* slots, in open slabs of all classes */
};
/* O(slabs), and a search in the slabs with the longest runs. */
void skv_pool_stats(const struct skv_pool *p, struct skv_pool_stats *out);

/* Verifies every invariant (bitmaps, counts, lists, no overlap). SKV_OK or SKV_E_CORRUPT with a
 * text. Allocates nothing; O(units + slots). */
int skv_pool_check(const struct skv_pool *p, struct skv_error *err);

#endif
