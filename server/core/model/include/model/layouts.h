/*
 * layouts.h - counts the layouts (sizes of slots) of all instances of a storage's groups, and how
 * many more layouts would get a slab there.
 *
 * Each layout needs a slab of its own. Counts registered instances only; refuses nothing.
 */
#ifndef SKV_CORE_MODEL_LAYOUTS_H
#define SKV_CORE_MODEL_LAYOUTS_H

#include <stdint.h>

#include <skv/status.h>

struct group;
struct instance;
struct partition;
struct volume;

/* A layout of a volume, in order of its first three members. */
struct layout {
	uint64_t stride, align, segment; /* struct geometry */
	uint64_t slab_bytes; /* of its first slab */
	uint64_t specs;      /* of instances that have it */
};

/* Counts (or, sign -1, uncounts) the instance's layouts on the storages of its group. Without
 * memory for it a layout is not counted. Exclusive lock. */
void layouts_count(struct partition *p, const struct instance *inst, int sign);
/* The same for all instances of a group, when its storages change. */
void layouts_count_group(struct partition *p, const struct group *g, int sign);
/* A volume that the group has named already is made. */
void layouts_enter(struct partition *p, const struct group *g, struct volume *s);
void layouts_free(struct volume *s);

/* Where the layout of an instance that finds least room has most. */
struct layouts_room {
	const struct volume *volume; /* NULL: on no storage with slabs */
	uint64_t layouts; /* of the volume */
	uint64_t needed; /* bytes of their first slabs */
	uint64_t left;   /* number of further layouts like this one that find a slab */
};
struct layouts_room layouts_room_of(const struct partition *p, const struct instance *inst);
/* A sentence where several layouts may find no slab: they need more than the storage has, or more
 * than half of it. Else "". */
void layouts_warn(const struct layouts_room *room, char text[SKV_MESSAGE_MAX]);

#endif
