/*
 * find.h - where a call belongs: asked once, by the name of its target, before it runs.
 *
 * The directory (places of names, owners of partitions) is a hint; only the owner of a partition
 * answers, and compares its ownership once more before the answer leaves.
 */
#ifndef SKV_FIND_H
#define SKV_FIND_H

#include <stdbool.h>
#include <stdint.h>

struct skv_cluster;
struct skv_core;

enum skv_target_kind {
	SKV_TARGET_NONE, /* no object, or all */
	SKV_TARGET_INSTANCE,
	SKV_TARGET_GROUP,
	SKV_TARGET_STORAGE,
	SKV_TARGET_FAMILY,
	SKV_TARGET_SESSION,
	SKV_TARGET_MOVE,
};

/* Returns true if an object of this kind is whole in one partition, with all data that calls on it
 * use. */
static inline bool skv_target_is_of_one(enum skv_target_kind kind)
{
	return kind == SKV_TARGET_INSTANCE || kind == SKV_TARGET_SESSION || kind == SKV_TARGET_MOVE;
}

struct skv_target {
	enum skv_target_kind kind;
	const char *tenant; /* of an instance */
	const char *name;
	/* Bits of the partitions whose owners answered that it is not there: a place that is
	 * remembered and is among them is read again. All, if another manager sent the call. */
	uint32_t refused;
};

enum skv_where {
	SKV_HERE,    /* this manager owns its partition */
	SKV_THERE,   /* another manager owns it */
	SKV_SOON,    /* not known yet: its partition is being loaded, or `unknown` */
	SKV_NOWHERE, /* no such object */
};

struct skv_door {
	enum skv_where where;
	uint32_t partition;    /* of NOWHERE: one that may say so */
	bool unknown;          /* SOON: only the store knows, and this thread may not wait for it */
	bool alone;            /* HERE: the call is for this partition; else for any, or several */
	struct skv_cluster *part; /* the partition (skv_cluster_part); never NULL */
	struct skv_core *core;    /* core for block operations; never NULL */
	uint64_t given_up;     /* how often it, or not `alone` all, was given up here by then */
};

/* Finds the partition of a target; of NONE the first one that is not READY, or the first. Never
 * waits for other managers, and for the store only on a thread that may wait (skv_thread_waits).
 * Any thread. */
enum skv_where skv_find(struct skv_cluster *c, const struct skv_target *t, struct skv_door *door);
/* Checks whether the result of a call through this door may be returned. SKV_OK while the lease of
 * the door's partition runs and the partition was not given up or reloaded since, so that a manager
 * that was suspended meanwhile does not answer. For a door to all partitions: the lease of each
 * READY partition runs, and none was given up. Else SKV_E_NOT_OWNER. Any thread, never blocks. */
int skv_door_check(const struct skv_door *door);

#endif
