/* kvcm_run.h - the program's part of KVCM's API: first objects, published address, clean-up. */
#ifndef SKV_KVCM_RUN_H
#define SKV_KVCM_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <skv/arena.h>
#include <skv/status.h>

struct skv_cluster;
struct KvcmAdmin__NodeEndpoint;

/* Parameters for storages that KVCM's API creates; set once by main. */
struct kvcm_model {
	uint64_t storage_capacity;  /* capacity of each storage, bytes */
	uint64_t storage_file_size; /* 0 = default; never above KVCM_MAX_FILE_SIZE */
	uint64_t storage_unit;
	bool any_mount; /* a threefs storage may be on a mount that is not 3FS */
	/* "client path=path here,...": maps clients' directories to this host's. */
	const char *mounts;
	/* NULL: directories are named by the store's secret. Else the store ends with this process:
	 * they are named by `id`, and `owner` (skv_owner_name) is stored beside them, so that
	 * another process may remove them. */
	const char *id;
	const char *owner;
};

/* Checks a text such as `mounts`: absolute paths, each with its counterpart. SKV_E_INVALID
 * ("kvcm_mounts"). */
int kvcm_mounts_check(const char *mounts, struct skv_error *err);

/* KVCM's local SDK maps whole files: they must not be larger. */
#define KVCM_MAX_FILE_SIZE (1ull << 30)
/* First letter of such an `id`; ids of durable stores are hex digits. */
#define KVCM_PRIVATE_FIRST 'p'

/* The initial storages and groups. */
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

/* Parses JSON of the admin service. `file` is for messages. The result is allocated in `a`.
 * SKV_E_INVALID, SKV_E_UNSUPPORTED: they name the field. */
int kvcm_startup_storage(const char *file, const char *json, bool enabled,
			 const struct kvcm_model *model, struct skv_arena *a,
			 struct kvcm_startup_storage *out, struct skv_error *err);
int kvcm_startup_group(const char *file, const char *json, struct skv_arena *a,
		       struct kvcm_startup_group *out, struct skv_error *err);
/* Creates missing objects; existing ones stay unchanged. Blocks. SKV_E_NOT_READY, SKV_E_NOT_OWNER:
 * retry when the core is ready. */
int kvcm_startup_make(const struct kvcm_startup *s, const struct kvcm_model *model,
		      struct skv_cluster *cluster, struct skv_error *err);

/* Publishes `own` as this manager's endpoint for other managers, and removes endpoints of dead
 * processes. Blocks; may be retried. */
int kvcm_node_publish(struct skv_cluster *cluster, const struct KvcmAdmin__NodeEndpoint *own,
		      struct skv_error *err);
/* Removes the endpoint, at exit. Blocks. */
void kvcm_node_retire(struct skv_cluster *cluster);

/* Creates the process's mark beside the storage's directory `root`, after removing marks and
 * directories of dead processes. Blocks. */
int kvcm_private_mark(const char *root, const char *id, const char *owner, struct skv_error *err);
/* Removes the storage's directory and the mark beside it, as far as possible. Blocks. */
void kvcm_private_remove(const char *root, const char *id);

#endif
