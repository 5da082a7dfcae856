/*
 * model.h - converts KVCM's storages, groups and registrations to objects of the core, and back.
 *
 * KVCM's message is kept whole, as JSON, in the object's `extra`: fields without a meaning here are
 * returned unchanged. A missing feature that would change results is refused with
 * SKV_E_UNSUPPORTED, naming the field; KVCM.md has the table. Errors name the field in err->field
 * as KVCM's JSON does ("cache_config.data_storage_strategy").
 *
 * No state; any thread. Messages and strings of results live in the arena.
 */
#ifndef KVCM_MODEL_H
#define KVCM_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include <skv/arena.h>
#include <skv/bytes.h>
#include <skv/kvcm_run.h>
#include <skv/ops.h>
#include <skv/status.h>

#include <kvcm/admin.pb-c.h>
#include <kvcm/meta.pb-c.h>

struct skv_cluster;

/* ---- storages -------------------------------------------------------------------------------- */

/* Several managers may use one root: slab files go to the directory <root>/<name>.<id>.
 * SKV_E_INVALID, SKV_E_UNSUPPORTED (a kind of storage we do not have). */
int kvcm_storage_spec(const KvcmAdmin__StorageConfig *m, const struct kvcm_model *o, const char *id,
		      struct skv_arena *a, struct skv_storage_spec *out, struct skv_error *err);
/* Makes the storage, with the last directories of its root, and gives it its place in the groups
 * that wait for it. SKV_E_CONFLICT: it exists (field "name"), or its directory is another's.
 * Blocks; from any thread but the core's. */
int kvcm_storage_create(struct skv_cluster *cluster, const KvcmAdmin__StorageConfig *m,
			const struct kvcm_model *o, struct skv_error *err);
/* Changes what may change of one that exists, which stays enabled or disabled as it is.
 * SKV_E_NOT_FOUND. Blocks, as above. */
int kvcm_storage_change(struct skv_cluster *cluster, const KvcmAdmin__StorageConfig *m,
			const struct kvcm_model *o, struct skv_error *err);
/* As it was given, or made up for a storage that another API made. NULL: out of memory. */
KvcmAdmin__StorageConfig *kvcm_storage_message(const struct skv_storage_spec *s,
					       struct skv_arena *a);
/* The text `storage_configs` of registerInstance: an array with an entry for
 * each candidate that exists. */
void kvcm_storage_configs(const KvcmAdmin__InstanceGroup *g,
			  const struct skv_storage_view *storages, uint32_t n_storages,
			  struct skv_arena *a, struct skv_buf *out);

/* ---- groups ---------------------------------------------------------------------------------- */

/* Path of the first required field that is missing, as the peer's tests name
 * them; NULL when complete. */
const char *kvcm_group_missing(const KvcmAdmin__InstanceGroup *m);
/* `storages` are all that exist: a strategy goes by their types.
 * SKV_E_INVALID, SKV_E_UNSUPPORTED. */
int kvcm_group_spec(const KvcmAdmin__InstanceGroup *m, const struct skv_storage_view *storages,
		    uint32_t n_storages, struct skv_arena *a, struct skv_group_spec *out,
		    struct skv_error *err);
/* As kvcm_storage_message; `version` is the spec's. */
KvcmAdmin__InstanceGroup *kvcm_group_message(const struct skv_group_spec *g, struct skv_arena *a);
/* Orders the candidates of all groups anew by the types of the storages that exist now. Blocks. */
int kvcm_groups_refit(struct skv_cluster *cluster, struct skv_error *err);
/* Lease that a lookup must ask for at least, so that bytes stay for as long as the group's
 * `delay_before_delete_ms` promises; 0 = no promise. */
uint32_t kvcm_group_lease_ms(const KvcmAdmin__InstanceGroup *m);

/* ---- registrations --------------------------------------------------------------------------- */

/* Checks all but the presence of what the peer calls required. `tenant` is borrowed. */
int kvcm_instance_spec(const KvcmMeta__RegisterInstanceRequest *m, const char *tenant,
		       struct skv_arena *a, struct skv_instance_spec *out, struct skv_error *err);
/* The same request in the admin service's own message: both have the same
 * fields. NULL: out of memory. */
KvcmMeta__RegisterInstanceRequest *kvcm_register_from_admin(
	const KvcmAdmin__RegisterInstanceRequest *m, struct skv_arena *a);
/* As it was registered, or made up. NULL: out of memory. */
KvcmMeta__InstanceInfo *kvcm_instance_message(const struct skv_instance_spec *s,
					      struct skv_arena *a);
KvcmAdmin__InstanceInfo *kvcm_instance_for_admin(const KvcmMeta__InstanceInfo *m,
						 struct skv_arena *a);
/* Names of the fields in which a new registration differs from what is there, joined by ", "; ""
 * when a repeated registration is the same. `user_data` and the order of groups do not count. */
const char *kvcm_instance_differs(const KvcmMeta__InstanceInfo *have,
				  const KvcmMeta__InstanceInfo *asked, struct skv_arena *a);

#endif
