/*
 * hf3fs_api.h - the metadata service that SGLang's and vLLM's hf3fs backends ask, as an API of the transports.
 *
 * A page space is (tenant, rank, namespace): so many pages of a file that the clients make themselves. In the core it
 * is an `external` storage, a group and an instance of one name (see space.h); a page is a block, its number the
 * offset of its slot.
 */
#ifndef SKV_HF3FS_API_H
#define SKV_HF3FS_API_H

#include <stdbool.h>
#include <stdint.h>

#include <skv/api.h>
#include <skv/fs_master.h>

struct skv_core;

/* Where the clients' page files lie, and who looks at them: so that a space whose file is lost loses its keys. */
struct skv_hf3fs_api_files {
	const char *prefix;    /* SGLang's file_path_prefix, {tenant} in it; "" = its files are not looked at */
	const char *vllm_path; /* vLLM's hf3fs_storage_path, the same */
	uint32_t look_ms;      /* between two looks */
	/* Looks at `path` below `dir`, in which no client's word is; may block for as long as a file system does. SKV_OK, too,
	 * when there is no file in that directory. By the API's own thread. */
	int (*look)(void *ctx, const char *dir, const char *path, struct skv_file_look *out, struct skv_error *err);
	void *ctx;
};

struct skv_hf3fs_api_options {
	bool strict_upstream; /* answers as upstream's own server does, its errors included */
	bool partial_get;     /* get_page_indices answers null for what is missing, not for all */
	uint32_t lease_ms;    /* of what exists and get_page_indices tell: 0..SKV_MAX_LEASE_MS */
	uint32_t reserve_ms;  /* until a reserved page must be confirmed */
	uint32_t grace_ms;    /* after that, until it may be reserved again */
	bool relaxed;         /* reserve and confirm are answered before a sync: struct skv_start_req */
	uint32_t retry_ms;    /* while nobody answers for the partition, clients are told so long to come again */
	struct skv_hf3fs_api_files files;
};

/* The API; lives until skv_hf3fs_api_destroy, which no front or service must outlive. SKV_E_NOMEM. */
int skv_hf3fs_api_create(const struct skv_hf3fs_api_options *o, struct skv_api **out, struct skv_error *err);
void skv_hf3fs_api_destroy(struct skv_api *api); /* NULL is allowed */

/* Begins to look at page files, if there is something to look at. SKV_E_NOMEM. */
int skv_hf3fs_api_start(struct skv_api *api, struct skv_core *core, struct skv_error *err);
/* Ends that, before the core goes. False: a look hangs in a file system, the API cannot be destroyed. api NULL is allowed. */
bool skv_hf3fs_api_quiet(struct skv_api *api, uint32_t timeout_ms);

#endif
