/* objects.h - storages, groups and instances in a partition: added, found, removed. */
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
struct tenant;

#define LEASE_WINDOWS 256u /* a ring; leases of lease_max_ms span half of it */
#define MAX_FILE_STORAGES 256u  /* storages with slab files: each has threads */
#define MAX_GROUP_STORAGES 256u /* storages of a group */

struct instance {
	struct skv_instance_spec spec; /* strings owned */
	uint32_t id;                   /* durable number, never reused */
	struct instance *next_of_id;
	struct group *group;
	struct instance *next_member;  /* of the group's members, and the pointer to this one: */
	struct instance **member_link;
	struct tenant *tenant;
	uint64_t version; /* of its document, "instance/..." or "dropped/..." */
	bool deleting;   /* a record that drops it is queued or durable: not usable any more */
	/* CLEAR or DROP in flight: this instance replaces the retired one that it leaves. */
	struct change *clear;
	/* Of a retired instance (clear.c): */
	bool retired;
	struct change *retiring; /* the record of retiring; */
	bool cleared; /* NULL and true: that is durable, it may be swept */
	struct instance *next_retired;

	bool registered; /* while loading: "instance/..." refers to it */
	/* "dropped/..." refers to it: only for records that the journal may still hold. */
	bool dropped;
	uint64_t dropped_before; /* newest snapshot begun after that */
	uint64_t empty_at; /* newest snapshot begun before its clear was durable */
	uint64_t block_bytes; /* all specs */
	uint64_t hash;        /* of its name: tells its blocks from others' in a policy's memory */
	/* rows.h: for each volume that it has had slots in, the class of each spec there
	 * (UINT32_MAX = not known yet) */
	uint32_t *classes; /* [n_classes * (1 + n_specs)] */
	uint32_t n_classes;
	size_t cap_classes;

	struct segment index[INDEX_SEGMENTS];
	uint32_t free_block;  /* free list of used entries */
	struct chunk *newest; /* the first of its chunks; its unused entries are taken next */
	uint64_t entries;    /* in use, including linked ones without slots */
	uint64_t entries_made;
	uint64_t blocks; /* with at least one COMMITTED slot */
	uint64_t used_bytes;
	uint64_t removing_bytes; /* of these, being removed */
	uint64_t evicted;        /* blocks evicted since the partition was loaded */
	uint64_t open_bytes;
	struct pins pins;
	uint64_t open_sessions;
	struct session *open; /* these sessions */
	struct evict_queue **queue;
	size_t n_queue, cap_queue;
	/* Leased bytes by the window in which the lease ends, and their sum (leases.c) */
	_Atomic int64_t lease_window[LEASE_WINDOWS];
	_Atomic int64_t leased_bytes;
	_Atomic uint64_t lease_window_no; /* windows before it are empty */
	/* horizon.c */
	uint64_t horizon; /* durable: no lease on its blocks ends later (boot time ms) */
	uint64_t horizon_coming;      /* the longest in flight, */
	struct change *horizon_change; /* in this change; NULL = none */
	_Atomic uint32_t lease_asked; /* ms: the longest since the ticker's last look */
	uint32_t lease_lately[2];     /* ms: the longest of this period and the previous one */
	uint64_t loaded_lease; /* blocks loaded with the partition count as leased until here */
	/* idle.c */
	_Atomic bool used;     /* by a lookup or start, since the ticker's last look */
	uint64_t used_at;      /* boot time ms; 0 = not since the partition was loaded */
	uint64_t unused_before; /* ms: time unused until then */
	_Atomic uint64_t hits; /* keys found by lookups since the partition was loaded */
	_Atomic uint64_t leased_until; /* no lease on its blocks ends later (boot time ms) */
	_Atomic uint64_t found_until;  /* no lease ends later, `slots_only` ones not counted */
};

/* By a call; under the read lock, too. */
static inline void instance_use(struct instance *inst)
{
	if (!atomic_load_explicit(&inst->used, memory_order_relaxed))
		atomic_store_explicit(&inst->used, true, memory_order_relaxed);
}

/* A group's usage of one volume. */
struct group_volume {
	uint32_t volume;
	uint64_t used_bytes; /* including blocks being removed */
	uint64_t removing_bytes;
};

struct group {
	struct skv_group_spec spec; /* strings owned */
	uint64_t version;
	uint64_t used_bytes;
	uint64_t removing_bytes;
	struct skv_policy_counts count;
	uint64_t open_blocks; /* of open sessions */
	/* rows.h: each volume that it has had slots in. Unused by the detached group. */
	struct group_volume *in;
	uint32_t n_in;
	size_t cap_in;
	bool falling;        /* went above its high watermark and is not below the low one yet */
	uint64_t reclaim_at; /* time of the next step of background eviction */
	struct group *fast;     /* fast tier of the group, NULL = none */
	struct instance *members; /* instances of the group, without retired ones */
	uint32_t n_instances;
	uint64_t weights;    /* of its instances without a capacity of their own (quota_share.c) */
	uint64_t capacities; /* sum of the other instances */
	uint64_t room; /* capacity that shares were computed from, in the last search for victims */
	uint64_t evicted;    /* blocks evicted since the partition was loaded */
	/* starts waiting for slots, first come first served */
	struct start_op *wait_head, *wait_tail;
	uint64_t turn; /* newest round of start_serve_waiters that has visited this queue */
	const struct skv_policy_ops *policy;
	void *policy_state;
	uint64_t too_old; /* blocks of older generations exceed its ttl_ms; 0 = none */
	uint32_t n_queues; /* policy queues in its evict_queues */
	/* After a policy change: chunks from here on are still to be requeued; 0 = none. */
	uint32_t requeue;
};
/* The class of each spec of the instance in a volume, NULL: it has never had a slot there. */
static inline uint32_t *instance_classes(const struct instance *inst, uint32_t volume)
{
	uint32_t *row = row_find(inst->classes, (1 + inst->spec.n_specs) * sizeof *row,
				 inst->n_classes, volume);

	return row ? row + 1 : NULL;
}
/* The class of a spec in a volume where the instance has had a slot. */
static inline uint32_t class_of(const struct instance *inst, uint32_t volume, uint32_t spec)
{
	return instance_classes(inst, volume)[spec];
}
/* Adds to the partition; strings are copied. */
int partition_add_volume(struct partition *p, struct device *d, const struct skv_storage_spec *s,
			 uint64_t version);
int partition_add_group(struct partition *p, const struct skv_group_spec *g, uint64_t version);
int partition_add_instance(struct partition *p, const struct skv_instance_spec *i, uint32_t id);
/* The same in this group; NULL: in none. */
int partition_add_instance_to(struct partition *p, const struct skv_instance_spec *i, uint32_t id,
			      struct group *g);
/* The volume is about to go: its name is free, and its place. */
void partition_forget_name(struct partition *p, uint32_t volume);
struct volume *volume_by_id(struct partition *p, uint32_t storage_id);
/* Creates the slots of a `counted` storage: its single file has the length of the capacity. */
int partition_count_slots(struct volume *s);
/* No start is in its queue. */
void partition_remove_group(struct partition *p, const char *name);
/* including dropped ones */
struct instance *instance_by_id(const struct partition *p, uint32_t id);
/* Marks the instance as dropped: its registration has moved to "dropped/...", and only replay of
 * older records may still need it. */
void partition_set_dropped(struct partition *p, uint32_t id);
void partition_remove_instance(struct partition *p, struct instance *inst);
/* Frees all, with the partition, whose devices may be gone. */
void instances_free(struct partition *p);
/* `by`, of the same registration and not linked, takes the place of `of`. */
void partition_replace_instance(struct partition *p, struct instance *of, struct instance *by);
/* A new empty instance with the same registration, not linked; NULL = out of memory. */
struct instance *instance_again(const struct instance *inst);
void instance_free(struct instance *inst); /* NULL is allowed */
void group_free(struct group *g);
void group_spec_free(struct skv_group_spec *g);
int group_spec_copy(struct skv_group_spec *out, const struct skv_group_spec *g);
/* Replaces what may change of the group. SKV_E_NOMEM: nothing has changed. */
int partition_change_group(struct partition *p, struct group *have, const struct skv_group_spec *g);

#endif
