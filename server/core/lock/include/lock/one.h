/*
 * one.h - what skv/core.h offers, of a single partition's core. The functions of skv/core.h find
 * the core (route/), and are told there; these have their types and results.
 */
#ifndef SKV_CORE_LOCK_ONE_H
#define SKV_CORE_LOCK_ONE_H

#include <skv/core.h>

__typeof__(skv_core_create) one_create;
__typeof__(skv_core_change) one_change;
__typeof__(skv_core_shutdown) one_begin_shutdown; /* the part that never waits for the store */
__typeof__(skv_core_shutdown) one_shutdown;
__typeof__(skv_core_quiet) one_quiet;
__typeof__(skv_core_destroy) one_destroy;
__typeof__(skv_core_state_get) one_state_get;
__typeof__(skv_core_ready) one_ready;
__typeof__(skv_core_may_answer) one_may_answer;
/* May what was found out here since `given_up` was read still be told? Counts in *ready if it is
 * READY: one that is not says nothing. */
bool one_may_tell(const struct skv_core *c, uint32_t *ready);
__typeof__(skv_core_wait_ready) one_wait_ready;
__typeof__(skv_core_tick) one_tick;
__typeof__(skv_core_demote) one_demote;
__typeof__(skv_core_check) one_check;
__typeof__(skv_core_counters_get) one_counters_get;
__typeof__(skv_core_stats) one_stats;

/* NULL: it has read none yet. */
const struct skv_secret *one_secret(const struct skv_core *c);
/* recovery/owner.c: of this partition */
__typeof__(skv_core_leader) one_leader;
bool one_owned_elsewhere(struct skv_core *c, uint64_t since_ms);
void one_may_own(struct skv_core *c, bool on);
void one_drain(struct skv_core *c, bool on);
/* A standby: is it about to be acquired here, as far as is known? Could it be, at once? */
bool one_comes(const struct skv_core *c);
bool one_takes(const struct skv_core *c);

/* admin/check.c: partition `number`, of which `store` is a view (skv_core_fsck). */
int fsck_one(struct skv_store *store, uint32_t number, bool files, const char *fs_master_token_file,
	     void (*say)(void *ctx, const char *text), void *ctx, struct skv_fsck_report *out,
	     struct skv_error *err);

__typeof__(skv_core_storage_put) one_storage_put;
__typeof__(skv_core_storage_create) one_storage_create;
__typeof__(skv_core_storage_change) one_storage_change;
__typeof__(skv_core_storage_delete) one_storage_delete;
__typeof__(skv_core_storages) one_storages;
__typeof__(skv_core_files) one_files;
__typeof__(skv_core_file_drain) one_file_drain;
__typeof__(skv_core_file_forget) one_file_forget;
__typeof__(skv_core_group_put) one_group_put;
__typeof__(skv_core_group_create) one_group_create;
__typeof__(skv_core_group_delete) one_group_delete;
__typeof__(skv_core_groups) one_groups;
__typeof__(skv_core_instance_put) one_instance_put;
__typeof__(skv_core_instance_create) one_instance_create;
__typeof__(skv_core_instance_delete) one_instance_delete;
__typeof__(skv_core_instance_delete_unused) one_instance_delete_unused;
__typeof__(skv_core_instances) one_instances;
__typeof__(skv_core_purge) one_purge;

__typeof__(skv_core_match) one_match;
__typeof__(skv_core_lookup) one_lookup;
__typeof__(skv_core_lookup_length) one_lookup_length;
__typeof__(skv_core_start) one_start;
__typeof__(skv_core_finish) one_finish;
__typeof__(skv_core_written) one_written;
__typeof__(skv_core_abort) one_abort;
__typeof__(skv_core_delete) one_delete;
__typeof__(skv_core_trim) one_trim;
__typeof__(skv_core_clear) one_clear;
__typeof__(skv_core_pin) one_pin;
__typeof__(skv_core_unpin) one_unpin;
__typeof__(skv_core_pins) one_pins;
__typeof__(skv_core_finish_partial) one_finish_partial;
__typeof__(skv_core_export) one_export;
__typeof__(skv_core_states) one_states;
__typeof__(skv_core_want) one_want;
__typeof__(skv_core_block) one_block;
__typeof__(skv_core_report) one_report;
__typeof__(skv_core_move_take) one_move_take;
__typeof__(skv_core_move_finish) one_move_finish;
/* ops/move.c: may there be something to move, or to check? */
bool one_move_due(struct skv_core *c, const struct skv_move_take_req *req);

#endif
