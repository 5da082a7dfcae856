/*
 * volume.h - slots of a storage as the core uses them: classes, release, locations.
 */
#ifndef SKV_CORE_MODEL_VOLUME_H
#define SKV_CORE_MODEL_VOLUME_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#include <skv/pool.h>

#include <model/files.h>
#include <model/geometry.h>
#include <model/objects.h>

struct device;
struct evict_set;
struct partition;
struct skv_arena;
struct skv_files;
struct skv_instance_spec;
struct skv_location;
struct skv_pool;

/* What the core keeps for each size class of a volume. */
struct volume_class {
	uint64_t stride;
	uint64_t removing; /* slots that queued removals will free */
	uint64_t wanted_ms; /* when somebody last asked for slots: keep some free ahead of need */
	uint64_t taken;     /* slots, since the volume's demand_at */
	uint64_t demand;    /* slots taken in the last eight looks, or so */
	uint64_t evicted;   /* slots for its own sake, since it last looked at others' (rebalance.c) */
	uint64_t idle_ms;   /* what the blocks had been that it evicted lately */
};

/* A storage as the partition sees it. */
struct volume {
	struct device *dev;
	uint64_t version; /* of the registry document */
	uint64_t capacity;
	bool enabled;
	uint32_t high_percent, low_percent;
	bool falling; /* as a group's */
	struct skv_pool *pool;
	uint64_t used_bytes; /* of all groups, those on their way out included */
	uint64_t removing_bytes;
	uint64_t demand_at; /* when what was taken was last counted (evict.c) */
	uint64_t wait_turn; /* newest round of start_serve_waiters in which the first of some line waits for slots here */
	bool draining; /* no new blocks go there, and all files drain */
	struct volume_file *file; /* by number */
	size_t n_file, cap_file;
	uint32_t n_bad; /* of them, not gone */
	uint32_t *drain; /* numbers of those that drain and are not GOING yet; room for all files */
	size_t n_drain, cap_drain;
	size_t drain_at;    /* of these: where the ticker goes on */
	uint64_t stays;     /* bytes of those that do not drain */
	uint32_t n_ending;  /* GOING or GONE */
	bool fit_due;       /* capacity or files have changed: perhaps some should go, or may stay after all */
	size_t fit_at;      /* of `drain`: where that look goes on */
	size_t fit_turn;    /* of looks for the cheapest */
	uint32_t next_file; /* greater than all numbers ever given */
	uint64_t file_bytes;     /* of files that are there, draining ones included */
	struct volume_file claim; /* a registered file that may not have been made; length 0 = none */
	bool growing;
	uint64_t growing_since;
	uint64_t grow_again_at; /* after a failure: not before this time */
	bool grow_full;         /* it failed because the file system is full */
	uint64_t grow_failing_since; /* 0 = the newest growth was well */
	struct evict_set *sets; /* of all groups */
	struct volume_class *class; /* by class id of the pool */
	uint64_t rebalanced_until; /* boot time ms: leases on what evict_rebalance_leased took end by then */
	size_t n_class, cap_class;
};

int volume_class(struct partition *p, struct instance *inst, uint32_t spec, uint32_t volume, uint32_t *class_id);
/* Marks a slot ABSENT and frees it, or holds it until hold_until. Counts bytes. */
void slot_release(struct partition *p, struct block *b, uint32_t spec, uint64_t hold_until);
/* The storage of an instance whose clients name slots by their offsets: of one spec, on one counted storage. -1: it is
 * no such instance. */
int volume_of_offsets(const struct partition *p, const struct instance *inst);
/* Table of files of one answer: what its locations refer to. */
struct file_table {
	struct skv_arena *arena;
	struct skv_files *files;
	uint32_t *seen; /* space << 24 | file, per entry */
	uint32_t cap;
	/* The slab that the last location was in: the next one mostly is, too. */
	bool any;
	uint32_t volume, handle;
	uint32_t file; /* entry of its file */
	struct skv_slab_info slab;
};
/* Fills a location from a slot, and adds its file. */
int location_fill(struct file_table *t, const struct partition *p, const struct instance *inst,
		  const struct block *b, uint32_t spec, struct skv_location *out);
void commit_slot(struct partition *p, struct block *b, uint32_t spec, const uint64_t *sum);
/* How the slots of an instance's spec lie in the storage's files. */
struct geometry volume_geometry(const struct volume *sp, const struct skv_instance_spec *i, uint32_t spec);
/* What slots whose instance is not known (holds) begin at multiples of, where there are no chunks. */
uint64_t stride_align(uint64_t stride, bool numbered);
/* Does a slot of the spec fit into the storage's slab files, with what its alignment may cost? */
bool volume_fits(const struct volume *sp, const struct skv_instance_spec *i, uint32_t spec);
/* What the group has there, NULL: nothing ever. */
struct group_volume *group_in(const struct group *g, uint32_t volume);
/* Bytes of a slot that is given (or, negative, released): counted for instance, group and space. */
void used_add(struct partition *p, struct instance *inst, uint32_t volume, int64_t bytes);
/* The same of those on their way out, which stay used. */
void removing_add(struct partition *p, struct instance *inst, uint32_t volume, int64_t bytes);

#endif
