/*
 * registry.h - documents of the registry, and every write of the core to it.
 */
#ifndef SKV_CORE_REGISTRY_H
#define SKV_CORE_REGISTRY_H

#include "internal.h"

struct storage_doc {
	struct skv_storage_spec spec;
	uint32_t id;
	uint8_t uuid[16];
};
void registry_put_storage(struct skv_buf *out, const struct storage_doc *d);
void registry_put_group(struct skv_buf *out, const struct skv_group_spec *g);
void registry_put_instance(struct skv_buf *out, const struct skv_instance_spec *i, uint32_t id);
/* registry_write.c. `fence`: of the part that the write was decided on. SKV_E_NOT_OWNER, SKV_E_NOT_READY: that part is not
 * the newest any more, and nothing was changed; SKV_E_CONFLICT, SKV_E_NOT_FOUND: another version is there, or none. */
int registry_put(struct skv_core *c, uint64_t fence, const char *key, uint64_t expect, const struct skv_buf *doc,
		 uint64_t *version, struct skv_error *err);
int registry_del(struct skv_core *c, uint64_t fence, const char *key, uint64_t version, struct skv_error *err);
int registry_next_id(struct skv_core *c, uint64_t fence, uint32_t *id, struct skv_error *err);
int registry_secret(struct skv_core *c, uint64_t fence, struct skv_error *err);
void registry_file_key(char out[64], uint32_t storage_id, uint32_t file);
void registry_put_file(struct skv_buf *out, const struct space_file *f);
/* False: malformed, or from a newer version. Fills length, asked, state. */
bool registry_get_file(const void *bytes, size_t n, struct space_file *out);
void registry_instance_key(char out[300], const char *tenant, const char *id);
/* The second half of an instance's deletion, after its record; may be repeated. `doc`: its document, of *version; gets the
 * new one's. */
int registry_move_to_dropped(struct skv_core *c, uint64_t fence, const char *instance_key, uint32_t id,
			     const struct skv_buf *doc, uint64_t *version, struct skv_error *err);
/* The same for all instances of a part that was just loaded and is nobody else's yet. */
int registry_finish_drops(struct partition *p, struct skv_error *err);
int registry_forget_dropped(struct skv_core *c, uint64_t fence, uint32_t id, uint64_t version, struct skv_error *err);

#endif
