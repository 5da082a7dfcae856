/*
 * objects.h - storages, groups and instances as a partition has them in memory: made, found, removed.
 */
#ifndef SKV_CORE_MODEL_OBJECTS_H
#define SKV_CORE_MODEL_OBJECTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#include <skv/ops.h>
#include <skv/policy.h>
#include <skv/pool.h>

#include <model/block.h>
#include <model/index.h>
#include <model/pin.h>
#include <model/rows.h>

struct change;
struct device;
struct evict_queue;
struct group;
struct partition;
struct session;
struct volume;
struct start_op;

#define LEASE_WINDOWS 256u /* a ring; leases of lease_max_ms span half of it */
#define MAX_FILE_STORAGES 256u  /* those with slab files: each has threads */
#define MAX_GROUP_STORAGES 256u /* that a group names */

struct instance {
	struct skv_instance_spec spec; /* strings owned */
	uint32_t id;                   /* durable number, never reused */
	struct group *group;
	uint64_t version; /* of its document, "instance/..." or "dropped/..." */
	bool deleting;   /* a record that drops it is queued or durable: nobody uses it any more */
	struct change *clear; /* CLEAR or DROP on its way: it takes the place of what that leaves as a retired instance */
	/* Of a retired instance (clear.c): */
	bool retired;
	bool cleared; /* its record is durable: it may be swept */
	struct instance *next_retired;

	bool registered; /* while loading: "instance/..." names it */
	bool dropped;    /* "dropped/..." names it: only for records that the journal may still have */
	uint64_t dropped_before; /* newest snapshot that began after that */
	uint64_t block_bytes; /* all specs */
	uint64_t hash;        /* of its name: tells its blocks from others' in what policies remember */
	/* rows.h: of each volume that it has had slots in, the class of each spec there (UINT32_MAX = not found yet) */
	uint32_t *classes; /* [n_classes * (1 + n_specs)] */
	uint32_t n_classes;
	size_t cap_classes;

	struct segment index[INDEX_SEGMENTS];
	uint32_t free_block;  /* list of entries that were used and are free */
	struct chunk *newest; /* the first of its chunks; its fresh entries come next */
	uint64_t entries;    /* in use, linked ones without slots included */
	uint64_t entries_made;
	uint64_t blocks; /* with all specs committed or some committed: at least one slot COMMITTED */
	uint64_t used_bytes;
	uint64_t removing_bytes; /* of these, on their way out */
	uint64_t evicted;        /* blocks, since the partition was loaded */
	uint64_t open_bytes;
	struct pins pins;
	uint64_t open_sessions;
	struct session *open; /* those sessions */
	struct evict_queue **queue;
	size_t n_queue, cap_queue;
	/* Leased bytes, by the window in which the lease ends, and their sum (leases.c) */
	_Atomic int64_t lease_window[LEASE_WINDOWS];
	_Atomic int64_t leased_bytes;
	_Atomic uint64_t lease_window_no; /* those before it are empty */
	/* horizon.c */
	uint64_t horizon;             /* durable: no lease on its blocks ends later (boot time ms) */
	uint64_t horizon_coming;      /* the longest that is on its way, */
	struct change *horizon_change; /* with this; NULL = none is */
	_Atomic uint32_t lease_asked; /* ms: the longest since the ticker looked */
	uint32_t lease_lately[2];     /* ms: the longest of this spell, and of the one before */
	uint64_t reign_lease; /* what was there when the partition was loaded counts as leased until here */
	_Atomic uint64_t hits; /* keys that lookups found, since the partition was loaded */
	_Atomic uint64_t leased_until; /* no lease on its blocks ends later (boot time ms) */
	_Atomic uint64_t found_until;  /* none that keeps more than slots does */
};

/* What a group has in one volume. */
struct group_volume {
	uint32_t volume;
	uint64_t used_bytes; /* those on their way out included */
	uint64_t removing_bytes;
};

struct group {
	struct skv_group_spec spec; /* strings owned */
	uint64_t version;
	uint64_t used_bytes;
	uint64_t removing_bytes;
	struct skv_policy_counts count;
	uint64_t open_blocks; /* of open sessions */
	struct group_volume *in; /* rows.h: each volume that it has had slots in. The detached group keeps none */
	uint32_t n_in;
	size_t cap_in;
	bool falling;        /* it was above its high watermark, and is not below the low one yet */
	uint64_t reclaim_at; /* the next step of eviction in the background: not before */
	uint32_t n_instances;
	uint64_t weights;    /* of its instances that have no capacity of their own (quota_share.c) */
	uint64_t capacities; /* of the others */
	uint64_t room;       /* what parts are taken of, when victims were last looked for */
	uint64_t evicted;    /* blocks, since the partition was loaded */
	struct start_op *wait_head, *wait_tail; /* starts waiting for space, first come first served */
	uint64_t turn; /* newest round of start_serve_waiters that has looked at the line */
	const struct skv_policy_ops *policy;
	void *policy_state;
	uint64_t too_old; /* blocks below this generation go by its ttl_ms; 0 = none */
	uint32_t n_queues; /* heaps that its evict_queues have for candidates */
	uint32_t requeue; /* the policy has changed: chunks from here on are to be queued again; 0 = none */
};
/* The class of each spec of the instance in a volume, NULL: it has had no slot there. */
static inline uint32_t *instance_classes(const struct instance *inst, uint32_t volume)
{
	uint32_t *row = row_find(inst->classes, (1 + inst->spec.n_specs) * sizeof *row, inst->n_classes, volume);

	return row ? row + 1 : NULL;
}
/* The class of a spec in a volume where it has had a slot. */
static inline uint32_t class_of(const struct instance *inst, uint32_t volume, uint32_t spec)
{
	return instance_classes(inst, volume)[spec];
}
/* Adds to the partition; strings are copied. */
int partition_add_volume(struct partition *p, struct device *d, const struct skv_storage_spec *s, uint64_t version);
int partition_add_group(struct partition *p, const struct skv_group_spec *g, uint64_t version);
int partition_add_instance(struct partition *p, const struct skv_instance_spec *i, uint32_t id);
int partition_add_instance_to(struct partition *p, const struct skv_instance_spec *i, uint32_t id, struct group *g);
struct volume *volume_by_id(struct partition *p, uint32_t storage_id);
/* The slots of a `counted` storage: its only file is as long as the capacity says. */
int partition_count_slots(struct volume *s);
/* No start waits in its line any more. */
void partition_remove_group(struct partition *p, const char *name);
struct instance *instance_by_id(const struct partition *p, uint32_t id); /* dropped ones too */
/* Its registration has moved to "dropped/...": only replay of older records may still need it. */
void partition_set_dropped(struct partition *p, uint32_t id);
void partition_remove_instance(struct partition *p, struct instance *inst);
/* An empty one of the same registration, in no list; NULL = out of memory. */
struct instance *instance_again(const struct instance *inst);
void instance_free(struct instance *inst); /* NULL is allowed */
void group_free(struct group *g);
void group_spec_free(struct skv_group_spec *g);
int group_spec_copy(struct skv_group_spec *out, const struct skv_group_spec *g);

#endif
