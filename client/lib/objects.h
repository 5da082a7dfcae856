/* objects.h - inside of storages, groups and instances: objects.c asks the manager, object_views.c makes the results.
 */
#ifndef SKV_CLIENT_OBJECTS_H
#define SKV_CLIENT_OBJECTS_H

#include "client.h"

/* Views as public results in the arena, whose texts are borrowed. NULL: no memory. */
const struct slabkv_storage_info *skv_storage_info(struct skv_arena *a, const struct skv_storage_view *v);
const struct slabkv_group_info *skv_group_info(struct skv_arena *a, const struct skv_group_view *v);
const struct slabkv_instance_info *skv_instance_info(struct skv_arena *a, const struct skv_instance_view *v);

#endif
