/*
 * kvcm_run.h - what the program that runs KVCM's API does for it: first objects, where it is found, the end.
 */
#ifndef SKV_KVCM_RUN_H
#define SKV_KVCM_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <skv/arena.h>
#include <skv/status.h>

struct skv_core;
struct KvcmAdmin__NodeEndpoint;

/* What the parameters say about storages that the peer's API makes; set once by main. */
struct kvcm_model {
	uint64_t storage_capacity;  /* bytes of slab files, each storage */
	uint64_t storage_file_size; /* 0 = default; never above KVCM_MAX_FILE_SIZE */
	uint64_t storage_unit;
	bool any_mount; /* a threefs storage may lie on a mount that is not 3FS */
	const char *mounts; /* "client path=path here,...": where a client's directory is on this host */
	/* NULL: directories are called by the store's secret. Else the store ends with this process: they are
	 * called by `id`, and `owner` (skv_owner_name) lies beside them, so that another one may sweep. */
	const char *id;
	const char *owner;
};

/* Is a text such as `mounts`: absolute paths, each with its own? SKV_E_INVALID ("kvcm_mounts"). */
int kvcm_mounts_check(const char *mounts, struct skv_error *err);

/* The peer's local SDK maps whole files: they must not be longer. */
#define KVCM_MAX_FILE_SIZE (1ull << 30)
/* First letter of such an `id`; those of stores that last are hex digits. */
#define KVCM_PRIVATE_FIRST 'p'

/* The storages and groups to begin with. */
struct kvcm_startup_storage {
	const void *config; /* KvcmAdmin__StorageConfig */
	const char *name;
	bool enabled;
};
struct kvcm_startup_group {
	const void *group; /* KvcmAdmin__InstanceGroup */
	const char *name;
};
struct kvcm_startup {
	struct kvcm_startup_storage *storages;
	size_t n_storages;
	struct kvcm_startup_group *groups;
	size_t n_groups;
};

/* From the JSON of the admin service. `file` is for messages. The result lies in `a`. SKV_E_INVALID,
 * SKV_E_UNSUPPORTED: they name the field. */
int kvcm_startup_storage(const char *file, const char *json, bool enabled, const struct kvcm_model *model,
			 struct skv_arena *a, struct kvcm_startup_storage *out, struct skv_error *err);
int kvcm_startup_group(const char *file, const char *json, struct skv_arena *a, struct kvcm_startup_group *out,
		       struct skv_error *err);
/* Makes those that are not there; what is there stays as it is. Blocks. SKV_E_NOT_READY, SKV_E_NOT_OWNER: try
 * again when the core is ready. */
int kvcm_startup_make(const struct kvcm_startup *s, const struct kvcm_model *model, struct skv_core *core,
		      struct skv_error *err);

/* Publishes `own` as this manager's endpoint, for the others to tell, and removes those of dead processes. Blocks; when it
 * fails it may be tried again. */
int kvcm_node_publish(struct skv_core *core, const struct KvcmAdmin__NodeEndpoint *own, struct skv_error *err);
/* Removes it: at its end. Blocks. */
void kvcm_node_retire(struct skv_core *core);

/* Leaves the mark of a process beside the storage's directory `root`, after sweeping what dead ones left there.
 * Blocks. */
int kvcm_private_mark(const char *root, const char *id, const char *owner, struct skv_error *err);
/* Removes the storage's directory and the mark beside it; what cannot be removed stays. Blocks. */
void kvcm_private_remove(const char *root, const char *id);

#endif
