/* find.h - finds storages, groups, instances and specs by name. */
#ifndef SKV_CORE_MODEL_FIND_H
#define SKV_CORE_MODEL_FIND_H

#include <stddef.h>
#include <stdint.h>

struct group;
struct instance;
struct partition;
struct skv_arena;
struct skv_error;

/* Looks an instance up; fails with SKV_E_NOT_FOUND naming `field`. */
struct instance *instance_find(const struct partition *p, const char *tenant, const char *id);
int instance_need(const struct partition *p, const char *tenant, const char *id, const char *field,
		  struct instance **out, struct skv_error *err);
int specs_resolve(const struct instance *inst, const char *const *names, uint32_t n, uint32_t *mask,
		  struct skv_error *err);
/* Names of the specs in `mask`, in the instance's order, copied into the arena. */
int specs_names(const struct instance *inst, uint32_t mask, struct skv_arena *a,
		const char *const **names, uint32_t *n);
/* `more` may be "". */
uint32_t name_hash(const char *name, const char *more);
struct group *group_find(const struct partition *p, const char *name);
int volume_find(const struct partition *p, const char *name); /* index or -1 */

/* Return the position that a name has, or would have, in the partition's sorted arrays: in `group`,
 * `volume_order` and `inst`. Instances are sorted by tenant, id and number; the registered instance
 * of a name has the greatest number, earlier ones are dropped. */
size_t group_place(const struct partition *p, const char *name);
size_t volume_place(const struct partition *p, const char *name);
size_t instance_place(const struct partition *p, const char *tenant, const char *id,
		      uint32_t number);

#endif
