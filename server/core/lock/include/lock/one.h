/*
 * one.h - the interface between route/ and a single partition's core, beside the operations of
 * skv/core.h: life, state and administration. A function one_NAME does for one partition what
 * skv_cluster_NAME of skv/core.h does for the cluster.
 */
#ifndef SKV_CORE_LOCK_ONE_H
#define SKV_CORE_LOCK_ONE_H

#include <skv/core.h>

struct tenant_rules;

/* Which partition of the cluster a core is. */
struct one_place {
	uint32_t number;
	bool shares;                /* directories of storages with other partitions */
	struct tenant_rules *rules; /* of all; they outlive the core */
};

/* o->store is that partition's view of the store. */
int one_create(const struct skv_core_options *o, const struct one_place *at, struct skv_core **out,
	       struct skv_error *err);
void one_change(struct skv_core *c, const struct skv_core_options *o);
void one_begin_shutdown(struct skv_core *c); /* the part that never waits for the store */
void one_shutdown(struct skv_core *c);
bool one_quiet(struct skv_core *c, uint32_t timeout_ms);
void one_destroy(struct skv_core *c);
enum skv_core_state one_state_get(const struct skv_core *c);
int one_ready(struct skv_core *c, struct skv_error *err);
int one_may_answer(const struct skv_core *c);
/* Checks whether a result found here since `given_up` was read may still be returned. Counts the
 * partition in *ready if it is READY; otherwise it has no say. */
bool one_may_tell(const struct skv_core *c, uint32_t *ready);
void one_tick(struct skv_core *c);
int one_demote(struct skv_core *c, uint32_t stay_out_ms, struct skv_error *err);
int one_check(struct skv_core *c, struct skv_error *err);
void one_counters_get(const struct skv_core *c, struct skv_core_counters *out);
void one_store_counters_get(const struct skv_core *c, struct skv_core_store_counters *out);
int one_stats(struct skv_core *c, const struct skv_page *page, struct skv_arena *a,
	      struct skv_stats *out, struct skv_error *err);

/* NULL: it has read none yet. */
const struct skv_secret *one_secret(const struct skv_core *c);
/* recovery/owner.c */
void one_leader(struct skv_core *c, char self[SKV_OWNER_NAME], char leader[SKV_OWNER_NAME],
		uint64_t *remaining_ms);
uint64_t one_owner_seen_ms(const struct skv_core *c);
bool one_load_fails(const struct skv_core *c);
bool one_owned_elsewhere(struct skv_core *c, uint64_t since_ms);
void one_may_own(struct skv_core *c, bool on);
void one_drain(struct skv_core *c, bool on);
/* A standby: is it about to be acquired here, as far as is known? Could it be, at once? */
bool one_comes(const struct skv_core *c);
bool one_takes(const struct skv_core *c);

/* admin/check.c: the partition of which `store` is a view (skv_cluster_fsck). */
int fsck_one(struct skv_store *store, const struct one_place *at, bool files,
	     const char *fs_master_token_file, void (*say)(void *ctx, const char *text), void *ctx,
	     struct skv_fsck_report *out, struct skv_error *err);

int one_root_allowed(const struct skv_core *c, const char *root, struct skv_error *err);
int one_storage_put(struct skv_core *c, const struct skv_storage_spec *s, enum skv_put how,
		    bool *created, struct skv_error *err);
/* The unit of a new storage that names none. Its type and capacity are known. */
uint64_t one_storage_unit(const struct skv_storage_spec *s);
int one_storage_delete(struct skv_core *c, const char *name, struct skv_error *err);
int one_storage(struct skv_core *c, const char *name, struct skv_arena *a,
		struct skv_storage_view **out, struct skv_error *err);
int one_storage_list(struct skv_core *c, const struct skv_page *page, struct skv_arena *a,
		     struct skv_storage_list *out, struct skv_error *err);
int one_files(struct skv_core *c, const char *storage, struct skv_arena *a,
	      struct skv_file_view **out, uint32_t *n, struct skv_error *err);
int one_file_put(struct skv_core *c, const char *storage, const struct skv_file_wish *wish,
		 struct skv_error *err);
int one_group_put(struct skv_core *c, const struct skv_group_spec *g, enum skv_put how,
		  const uint64_t *expect, bool *created, struct skv_error *err);
int one_group_delete(struct skv_core *c, const char *name, struct skv_error *err);
int one_group(struct skv_core *c, const char *name, struct skv_arena *a,
	      struct skv_group_view **out, struct skv_error *err);
int one_group_list(struct skv_core *c, const struct skv_page *page, struct skv_arena *a,
		   struct skv_group_list *out, struct skv_error *err);
int one_instance_put(struct skv_core *c, const struct skv_instance_spec *i, enum skv_put how,
		     bool *created, struct skv_error *err);
int one_instance_delete(struct skv_core *c, const char *tenant, const char *id,
			const struct skv_unused *unused, struct skv_error *err);
int one_instance(struct skv_core *c, const char *tenant, const char *id, struct skv_arena *a,
		 struct skv_instance_view **out, struct skv_error *err);
int one_instance_list(struct skv_core *c, const struct skv_page *page, struct skv_arena *a,
		      struct skv_instance_list *out, struct skv_error *err);
int one_purge(struct skv_core *c, const struct skv_purge_req *req, struct skv_purge_res *res,
	      struct skv_arena *a, struct skv_error *err);

int one_match(struct skv_core *c, const struct skv_match_req *req, struct skv_match_res *res,
	      struct skv_arena *a, struct skv_error *err);
int one_move_take(struct skv_core *c, const struct skv_move_take_req *req,
		  struct skv_move_take_res *res, struct skv_arena *a, struct skv_error *err,
		  const struct skv_done *done);
/* ops/move.c: may there be something to move, or to check? */
bool one_move_due(struct skv_core *c, const struct skv_move_take_req *req);

#endif
