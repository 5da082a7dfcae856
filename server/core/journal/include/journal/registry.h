/*
 * registry.h - documents of the metadata store's registry.
 */
#ifndef SKV_CORE_JOURNAL_REGISTRY_H
#define SKV_CORE_JOURNAL_REGISTRY_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#include <skv/ops.h>

struct skv_arena;
struct skv_buf;
struct skv_error;
struct volume_file;

/* Registry documents (registry.c), used by recovery and administration. */
struct storage_doc {
	struct skv_storage_spec spec;
	uint32_t id;
	uint8_t uuid[16];
};
/* SKV_E_CORRUPT: the document is none of ours. */
int doc_bad(struct skv_error *err, const char *key);
void registry_put_storage(struct skv_buf *out, const struct storage_doc *d);
void registry_put_group(struct skv_buf *out, const struct skv_group_spec *g);
void registry_put_instance(struct skv_buf *out, const struct skv_instance_spec *i, uint32_t id);
/* The following functions read documents that the above wrote; texts are in `a`. SKV_E_NOMEM;
 * SKV_E_CORRUPT, naming `key`. */
int registry_get_storage(struct skv_arena *a, const char *key, const void *bytes, size_t n,
			 struct storage_doc *out, struct skv_error *err);
int registry_get_group(struct skv_arena *a, const char *key, const void *bytes, size_t n,
		       struct skv_group_spec *out, struct skv_error *err);
int registry_get_instance(struct skv_arena *a, const char *key, const void *bytes, size_t n,
			  struct skv_instance_spec *out, uint32_t *id, struct skv_error *err);
void registry_file_key(char out[64], uint32_t storage_id, uint32_t file);
void registry_put_file(struct skv_buf *out, const struct volume_file *f);
/* Returns false for a malformed document, or one from a newer version. Fills length, asked,
 * state. */
bool registry_get_file(const void *bytes, size_t n, struct volume_file *out);

#endif
