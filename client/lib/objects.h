/* objects.h - internals of storages, groups and instances: objects.c calls the manager,
 * object_views.c makes the results. */
#ifndef SKV_CLIENT_OBJECTS_H
#define SKV_CLIENT_OBJECTS_H

#include "client.h"

/* Converts views to public results in the arena; texts are borrowed. NULL: out of memory. */
const struct slabkv_storage_info *skv_storage_info(struct skv_arena *a,
						   const struct skv_storage_view *v);
const struct slabkv_group_info *skv_group_info(struct skv_arena *a, const struct skv_group_view *v);
const struct slabkv_instance_info *skv_instance_info(struct skv_arena *a,
						     const struct skv_instance_view *v);

#endif
