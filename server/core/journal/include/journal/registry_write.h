/*
 * registry_write.h - all writes of the core to the registry, and its counters and remembered
 * secret.
 */
#ifndef SKV_CORE_JOURNAL_REGISTRY_WRITE_H
#define SKV_CORE_JOURNAL_REGISTRY_WRITE_H

#include <stdint.h>

#include <skv/hash.h>
#include <skv/limits.h>

struct partition;
struct skv_buf;
struct skv_core;
struct skv_error;

/* registry_write.c. `fence`: of the partition that the decision was based on. SKV_E_NOT_OWNER,
 * SKV_E_NOT_READY: that partition is not current any more, nothing was changed; SKV_E_CONFLICT,
 * SKV_E_NOT_FOUND: the document has another version, or does not exist. */
int registry_put(struct skv_core *c, uint64_t fence, const char *key, uint64_t expect,
		 const struct skv_buf *doc, uint64_t *version, struct skv_error *err);
int registry_del(struct skv_core *c, uint64_t fence, const char *key, uint64_t version,
		 struct skv_error *err);
int registry_next_id(struct skv_core *c, uint64_t fence, uint32_t *id, struct skv_error *err);
/* The document that all partitions share (skv_store_partition). */
#define REGISTRY_SECRET "secret"
/* Reads the secret unless it is known, or creates it. By the ticker. */
int registry_secret(struct skv_core *c, uint64_t fence, struct skv_error *err);
/* Only reads it. Any thread. */
int registry_read_secret(struct skv_core *c, struct skv_error *err);
void registry_instance_key(char out[300], const char *tenant, const char *id);
/* The other way round: its id, in `key`, and its tenant; NULL: it is no instance's. */
const char *registry_instance_of(const char *key, char tenant[SKV_MAX_NAME + 1]);
/* Second half of an instance's deletion, after its record; may be repeated. `doc`: its document, of
 * *version; *version is set to the new one. */
int registry_move_to_dropped(struct skv_core *c, uint64_t fence, const char *instance_key,
			     uint32_t id, const struct skv_buf *doc, uint64_t *version,
			     struct skv_error *err);
/* The same for all dropped instances of a partition that was just loaded and is not in use yet. */
int registry_finish_drops(struct partition *p, struct skv_error *err);
int registry_forget_dropped(struct skv_core *c, uint64_t fence, uint32_t id, uint64_t version,
			    struct skv_error *err);

#endif
