/*
 * core_env.h - a core without threads on a store and a clock that the test controls.
 *
 * The core runs in manual mode: every call here that must wait ticks it until the answer is there.
 * Storages are of type "null" (addresses only). env_crash + env_open is a kill -9 and a restart.
 */
#ifndef SKV_TESTS_CORE_ENV_H
#define SKV_TESTS_CORE_ENV_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <skv/core.h>
#include <skv/find.h>
#include <skv/lock.h>
#include <skv/log.h>
#include <skv/store.h>

#include "fault_store.h"
#include "memory_store.h"

struct env {
	struct skv_fake_clock clock;
	const struct skv_store_ops *ops;
	struct skv_store_options store_options;
	struct skv_store *store;
	struct skv_cluster *cluster; /* NULL: there is only the core */
	struct skv_core *core;       /* of its first partition */
	struct skv_core_options o;
	struct skv_cluster_options all;
	struct skv_arena arena; /* of the newest call's answer */
	struct skv_error err;
	const char *tenant; /* of instances that are made, starts and finishes; NULL = "t" */
	bool faulty; /* put the fault store on top */
	const struct skv_fault *rule; /* set on it; its `at` counts on over reopenings */
	uint64_t seen;                /* matching calls of stores that are closed by now */
};

/* No log unless SKV_TEST_LOG is set: these tests provoke what it would tell. */
void env_quiet(void);
/* Defaults: a fresh named memory store, grace 1000 ms, leases 10 s at most. Nothing is opened. */
void env_init(struct env *e);
/* Sets e->rule on a store that was just opened. */
void env_arm(struct env *e);
/* The core, on e->o.store. */
void env_create(struct env *e);
/* Opens store and core and ticks until ready. */
void env_open(struct env *e);
/* Store and core go as in a kill -9. */
void env_crash(struct env *e);
/* Orderly end. */
void env_shutdown(struct env *e);
void env_destroy(struct env *e);
void env_advance(struct env *e, uint64_t ms); /* then ticks */

/* A "null" storage, group "g" on it and instance "i" with one spec of `block` bytes. */
void env_make(struct env *e, uint64_t capacity, uint64_t unit, uint64_t block);
/* An external storage "s" of so many pages, group "g" on it and instance "i", of pages. */
void env_make_pages(struct env *e, uint64_t pages);
int env_storage(struct env *e, const char *name, uint64_t capacity, uint64_t unit);
int env_group(struct env *e, const char *name, uint64_t capacity, const char *storage);
/* Calls skv_cluster_file_put with one wish. */
static inline int env_file_drain(struct skv_cluster *c, const char *storage, uint32_t file, bool on,
				 bool move, struct skv_error *err)
{
	const struct skv_file_wish wish = { .file = file, .draining = on, .move = move };

	return skv_cluster_file_put(c, storage, &wish, err);
}
static inline int env_file_forget(struct skv_cluster *c, const char *storage, uint32_t file,
				  struct skv_error *err)
{
	const struct skv_file_wish wish = { .file = file, .forget = true };

	return skv_cluster_file_put(c, storage, &wish, err);
}
int env_instance(struct env *e, const char *id, const char *group, const struct skv_spec *specs,
		 uint32_t n);

/* The core that has an instance. */
struct skv_core *env_at(struct env *e, const char *tenant, const char *instance);

/* Calls that wait. Results are valid until the next call. Statuses as the core's. */
struct env_start {
	const char *instance;   /* "i" */
	const char *request_id; /* "" */
	const struct skv_key *keys;
	uint32_t n;
	const char *const *specs;
	uint32_t n_specs;
	const uint32_t *key_specs;
	uint32_t deadline_ms;
	const struct skv_key *parent;
	const struct skv_bytes *names;
	const uint64_t *offsets;
	uint32_t grace_ms;
	const char *const *avoid;
	uint32_t n_avoid;
	bool fit, whole, independent, anonymous, want_existing, relaxed, selective;
};
int env_start(struct env *e, const struct env_start *s, struct skv_start_res *res);
int env_finish(struct env *e, const char *session, const uint64_t *sums, uint32_t n_sums,
	       struct skv_finish_res *res);
/* Stores keys 0..n-1, at most 64, of one spec, with checksums 1000 + key. */
void env_put_summed(struct env *e, const char *instance, uint32_t n, bool independent);
int env_finish_mask(struct env *e, const char *session, const bool *mask, uint32_t n, bool quiesced,
		    struct skv_finish_res *res);
int env_finish_req(struct env *e, const struct skv_finish_req *req, struct skv_finish_res *res);
int env_abort(struct env *e, const char *session, bool quiesced);
int env_partial(struct env *e, const struct skv_partial_req *req, struct skv_partial_res *res);
int env_lookup_req(struct env *e, const struct skv_lookup_req *req, struct skv_lookup_res *res);
int env_lookup(struct env *e, const struct skv_key *keys, uint32_t n, enum skv_lookup_mode mode,
	       uint32_t lease_ms, struct skv_lookup_res *res);
int env_delete(struct env *e, const struct skv_key *keys, uint32_t n, uint32_t *deleted);
int env_delete_req(struct env *e, const struct skv_delete_req *req, struct skv_delete_res *res);
/* Of instance "i"; what is being written, too. */
int env_delete_told(struct env *e, const struct skv_key *keys, uint32_t n,
		       struct skv_delete_res *res);
/* Of instance "i". */
int env_trim(struct env *e, uint64_t from_ms, uint64_t to_ms, uint64_t *deleted);
/* instance NULL = "i". */
int env_clear(struct env *e, const char *instance, uint64_t *deleted);
/* Of instance "i". *res is valid until the next call. */
int env_pin(struct env *e, const struct skv_key *keys, uint32_t n, enum skv_pin_kind kind,
	    uint64_t ttl_ms, struct skv_pin_res *res);
/* n 0 = all. */
int env_unpin(struct env *e, const struct skv_key *keys, uint32_t n, uint64_t *unpinned);
int env_move_take(struct env *e, uint32_t max, uint32_t deadline_ms, struct skv_move_take_res *res);
int env_move_finish(struct env *e, const char *move, const bool *moved, uint32_t n, bool quiesced,
		    struct skv_move_finish_res *res);
int env_move_take_req(struct env *e, const struct skv_move_take_req *req,
		      struct skv_move_take_res *res);
/* Of a move or a check; damaged[n], NULL = none. */
int env_check_finish(struct env *e, const char *move, const bool *moved, const bool *damaged,
		     uint32_t n, struct skv_move_finish_res *res);
int env_report(struct env *e, const struct skv_report_req *req, struct skv_report_res *res);
uint32_t env_match(struct env *e, const struct skv_key *keys, uint32_t n);
/* start + finish of n blocks of "i", all committed; returns how many were written. */
uint32_t env_put(struct env *e, const struct skv_key *keys, uint32_t n);
void env_stats(struct env *e, struct skv_stats *out);
/* A registry document as it shall be, past the core. */
void env_document(struct env *e, const char *key, const void *bytes, size_t n);
/* Keys {hi, first}, {hi, first + 1}... */
void env_keys(struct skv_key *keys, uint32_t n, uint64_t hi, uint64_t first);
/* Blocks {1, first}..., ENV_PAIRS at most, of an instance of two specs, with checksums sum,
 * sum + 1; 0: without any. */
#define ENV_PAIRS 64u
void env_put_pairs(struct env *e, const char *instance, uint32_t first, uint32_t n, uint64_t sum);
void env_check(struct env *e);

#endif
