/*
 * snapshot.h - the manager's configuration as one JSON text, and back.
 *
 * {"format":"slabkvd.config","version":1,
 *  "storages":[{"name":N,"spec":{...}}], "groups":[{"name":N,"spec":{...}}],
 *  "instances":[{"tenant":T,"id":N,"spec":{...}}],
 *  "accounts":[{"user_name":N,"role":R,"password":HASH}]}
 *
 * A `spec` is the body of the native API's PUT of that object, so nothing is lost of what either
 * API keeps. Blocks, and what a storage holds, are no configuration.
 */
#ifndef KVCM_SNAPSHOT_H
#define KVCM_SNAPSHOT_H

#include <stddef.h>
#include <stdint.h>

#include <skv/arena.h>
#include <skv/bytes.h>
#include <skv/core.h>
#include <skv/ops.h>

#include "account.h"
#include "model.h"

struct kvcm_snapshot {
	struct skv_storage_spec *storages;
	struct skv_group_spec *groups;
	struct skv_instance_spec *instances;
	struct kvcm_account *accounts;
	uint32_t n_storages, n_groups, n_instances, n_accounts;
};

/* ---- snapshot.c: the text -------------------------------------------------------------------- */

/* What `core` holds, of all tenants; accounts included. Blocks. */
int kvcm_snapshot_take(struct skv_core *core, struct skv_arena *a, struct kvcm_snapshot *out,
		       struct skv_error *err);
void kvcm_snapshot_write(const struct kvcm_snapshot *s, struct skv_buf *out);
/* SKV_E_INVALID naming the field, as "storages[1].spec.capacity". Results
 * live in `a` and in `text`. */
int kvcm_snapshot_read(const char *text, size_t n, struct skv_arena *a, struct kvcm_snapshot *out,
		       struct skv_error *err);

/* ---- snapshot_load.c: the manager ------------------------------------------------------------ */

/* Makes and changes what `s` names; what it does not name stays. All of it is checked against
 * what `core` has before the first change, and storages that could not be opened undo those
 * made before them. Blocks. */
int kvcm_snapshot_load(struct skv_core *core, const struct kvcm_model *model,
		       const struct kvcm_snapshot *s, struct skv_arena *a, struct skv_error *err);

#endif
