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

struct skv_core;

enum skv_target_kind {
	SKV_TARGET_NONE, /* no object, or all */
	SKV_TARGET_INSTANCE,
	SKV_TARGET_GROUP,
	SKV_TARGET_STORAGE,
	SKV_TARGET_SESSION,
	SKV_TARGET_MOVE,
};

struct skv_target {
	enum skv_target_kind kind;
	const char *tenant; /* of an instance */
	const char *name;
	/* Bits of the partitions whose owners answered that it is not there: a place that was
	 * remembered and is among them is looked up again. */
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
	struct skv_core *core; /* the partition's; never NULL, owned by the cluster */
	uint32_t given_up;     /* how often the partition was given up here, when it was found */
};

/* Finds the partition of a target whose kind is not NONE. Never waits for other managers, and for
 * the store only on a thread that may wait (skv_thread_waits). Any thread. */
enum skv_where skv_find(struct skv_core *cluster, const struct skv_target *t,
			struct skv_door *door);

#endif
