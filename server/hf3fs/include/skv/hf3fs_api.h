/*
 * hf3fs_api.h - the metadata service of SGLang's and vLLM's hf3fs backends, as an API for the
 * transports.
 *
 * A page space is (tenant, rank, namespace): a number of pages in a file that the clients create.
 * In the core it is an `external` storage, a group and an instance of one name (see space.h); a
 * page is a block, its number the offset of its slot.
 */
#ifndef SKV_HF3FS_API_H
#define SKV_HF3FS_API_H

#include <stdbool.h>
#include <stdint.h>

#include <skv/api.h>
#include <skv/limits.h>
#include <skv/fs_master.h>

struct skv_cluster;

/* Where the clients' page files are and how to stat them, so that a space whose file is lost loses
 * its keys. */
struct skv_hf3fs_api_files {
	/* SGLang's file_path_prefix with {tenant}; "" = its files are not watched. */
	const char *prefix;
	const char *vllm_path; /* vLLM's hf3fs_storage_path, the same */
	uint32_t look_ms;      /* between two looks */
	/* Stats `path` below `dir`, a path without client input; may block like the file system.
	 * Also SKV_OK if the directory has no such file. Called by the API's own thread. */
	int (*look)(void *ctx, const char *dir, const char *path, struct skv_file_look *out,
		    struct skv_error *err);
	void *ctx;
};

struct skv_hf3fs_api_options {
	bool strict_upstream; /* answer exactly like upstream's server, errors included */
	/* Lease of pages returned by exists and get_page_indices: 0..SKV_MAX_LEASE_MS. */
	uint32_t lease_ms;
	uint32_t reserve_ms;  /* time to confirm a reserved page */
	uint32_t grace_ms;    /* after that, until it may be reserved again */
	uint32_t retry_ms;    /* how long a call waits while ownership or the store moves */
	struct skv_hf3fs_api_files files;
};

/* For skv_core_options.family, of every manager, whether it has this API or not: the vLLM spaces of
 * a tenant are one. */
bool skv_hf3fs_family(const char *tenant, const char *name, char out[SKV_MAX_NAME + 1]);

/* Creates the API, which must outlive every transport and service that uses it. SKV_E_NOMEM. */
int skv_hf3fs_api_create(const struct skv_hf3fs_api_options *o, struct skv_api **out,
			 struct skv_error *err);
void skv_hf3fs_api_destroy(struct skv_api *api); /* NULL is allowed */

/* Starts watching page files, if there are any to watch. SKV_E_NOMEM. */
int skv_hf3fs_api_start(struct skv_api *api, struct skv_cluster *cluster, struct skv_error *err);
/* Stops watching; before the core is destroyed. False: a stat hangs in a file system, and the API
 * cannot be destroyed. api NULL is allowed. */
bool skv_hf3fs_api_quiet(struct skv_api *api, uint32_t timeout_ms);

#endif
