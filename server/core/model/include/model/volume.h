/* volume.h - slots of a storage: classes, release, locations. */
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
struct layout;
struct partition;
struct slot;
struct skv_arena;
struct skv_files;
struct skv_instance_spec;
struct skv_location;
struct skv_pool;

/* Accounting of a size class of a volume. */
struct volume_class {
	uint64_t stride;
	uint64_t removing; /* slots that queued removals will free */
	uint64_t wanted_ms; /* time of the last request for slots: some are kept free */
	uint64_t taken;     /* slots taken since the volume's demand_at */
	uint64_t demand;    /* slots taken in about the last eight intervals */
	/* Slots freed by its own evictions since it last took from other classes (rebalance.c). */
	uint64_t evicted;
	uint64_t idle_ms;   /* mean idle time of recently evicted blocks */
};

/* A storage as the partition sees it. */
struct volume {
	struct device *dev;
	uint64_t version; /* of the registry document */
	uint32_t n_groups; /* groups that name the storage */
	uint64_t capacity;
	bool enabled;
	uint32_t high_percent, low_percent;
	bool falling; /* as a group's */
	struct skv_pool *pool;
	uint64_t used_bytes; /* of all groups, including blocks being removed */
	uint64_t removing_bytes;
	uint64_t demand_at; /* when demand was last counted (evict.c) */
	/* Newest round of start_serve_waiters in which the head of a queue waits for slots here. */
	uint64_t wait_turn;
	/* Boot time ms: cannot be read since then, as far as movers' calls have seen; 0 = can be
	 * read. */
	uint64_t unread_since;
	bool draining; /* takes no new blocks, and all files drain: */
	bool moving;   /* blocks are moved by movers, not evicted */
	struct volume_file *file; /* by number */
	size_t n_file, cap_file;
	uint32_t n_bad; /* of them, not gone */
	/* Numbers of those that drain and are not GOING yet; has room for all files. */
	uint32_t *drain;
	size_t n_drain, cap_drain;
	size_t drain_at;    /* of these: where the ticker continues */
	uint64_t stays;     /* bytes of files that do not drain */
	uint32_t n_ending;  /* GOING or GONE */
	bool fit_due;       /* capacity or files have changed: check which files should drain */
	size_t fit_at;      /* of `drain`: where that check continues */
	size_t fit_turn;    /* rounds of looking for the cheapest */
	uint32_t next_file; /* greater than every number ever used */
	uint64_t file_bytes;     /* of existing files, including draining ones */
	uint64_t vanished_bytes; /* of these: of lost files in memory, whose room is free again */
	/* A registered file that may not have been created; length 0 = none. */
	struct volume_file claim;
	bool growing;
	uint64_t growing_since;
	uint64_t grow_again_at; /* after a failure: do not retry before */
	bool grow_full;         /* because the file system is full */
	uint64_t grow_failing_since; /* 0 = the last growth succeeded */
	struct evict_set *sets; /* of all groups */
	struct volume_class *class; /* by class id of the pool */
	struct layout *layout; /* of registered instances, in order (layouts.c) */
	size_t n_layout, cap_layout;
	uint64_t layout_bytes; /* of their first slabs */
	/* Slabs that were closed for other classes, with slots that wait for leases (rebalance.c):
	 * their bytes, and boot time ms when the last of these leases ends. */
	uint64_t waiting_bytes, waiting_until;
	/* Units [from, end) of a file, closed for another class, whose pinned blocks movers must
	 * copy elsewhere; end 0: none. The movers' search continues at `unit`, `slot`, not before
	 * again_at. Without success by that time the slabs are opened again. */
	struct {
		uint32_t file, from, end, unit, slot;
		uint64_t again_at, until;
	} vacated;
	size_t n_class, cap_class;
};

int volume_class(struct partition *p, struct instance *inst, uint32_t spec, uint32_t volume,
		 uint32_t *class_id);
/* Holds until then are over: now, or the time before which no write is open any more, where the
 * storage knows that and time alone proves nothing. */
uint64_t slots_free_by(const struct volume *s, uint64_t now);
/* Marks a slot ABSENT and frees it, or holds it until hold_until. Does the accounting. */
/* The slab of a place, if any of its slots is in use. */
bool place_slab(const struct partition *p, uint32_t volume, struct skv_slab_place at,
		uint32_t *slab);
/* The entry whose slot that is; NULL: none, or the number is too great. */
struct block *slot_block(const struct partition *p, uint32_t volume, uint32_t slab, uint64_t index);
void slot_release(struct partition *p, struct block *b, uint32_t spec, uint64_t hold_until);
/* Returns the storage of an instance whose clients name slots by offset: one spec, on one counted
 * storage. -1: not such an instance. */
int volume_of_offsets(const struct partition *p, const struct instance *inst);
/* The files that the locations of one answer refer to. */
struct file_table {
	struct skv_arena *arena;
	struct skv_files *files;
	uint64_t *seen; /* volume << 32 | file, per entry */
	uint32_t cap;
	/* The slab of the previous location; the next is usually in the same. */
	bool any;
	uint32_t volume, handle;
	uint32_t file; /* entry of its file */
	struct skv_slab_info slab;
};
/* Fills a location from a slot, and adds its file. */
int location_fill(struct file_table *t, const struct partition *p, const struct instance *inst,
		  const struct block *b, uint32_t spec, struct skv_location *out);
int location_of_slot(struct file_table *t, const struct partition *p, const struct slot *s,
		     uint64_t length, struct skv_location *out);
/* The slot has been written. Its block is counted elsewhere (evict_born, blocks_count). */
void commit_slot(struct partition *p, struct block *b, uint32_t spec, const uint64_t *sum);
/* Layout of an instance's spec in the storage's files. */
struct geometry volume_geometry(const struct volume *sp, const struct skv_instance_spec *i,
				uint32_t spec);
/* Returns the alignment of slots whose instance is unknown (holds), in a storage without chunks. */
uint64_t stride_align(uint64_t stride, bool numbered);
/* Returns true if a slot of the spec fits into the storage's slab files, alignment included. */
bool volume_fits(const struct volume *sp, const struct skv_instance_spec *i, uint32_t spec);
/* The group's row for the volume, NULL: never used. */
struct group_volume *group_in(const struct group *g, uint32_t volume);
/* Adds bytes of a slot given (negative: released) to instance, group and volume. */
void used_add(struct partition *p, struct instance *inst, uint32_t volume, int64_t bytes);
/* The same for blocks being removed, which remain used. */
void removing_add(struct partition *p, struct instance *inst, uint32_t volume, int64_t bytes);

#endif
