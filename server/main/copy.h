/*
 * copy.h - copies a store to an empty one: checkpoint and journal of every partition, then the
 * registry. Used by `slabkvd migrate`, `backup` and `restore`. One thread.
 */
#ifndef SKV_COPY_H
#define SKV_COPY_H

#include <stdbool.h>
#include <stdint.h>

#include <skv/core.h>
#include <skv/store.h>

struct copy_end {
	struct skv_store *store;
	char shown[SKV_STORE_SHOWN_MAX];
	struct skv_fence fence[SKV_MAX_PARTITIONS]; /* number 0: not owned */
};

struct copy_seen;

struct copy {
	struct copy_end from, to;
	struct skv_error err;
	uint64_t renewed_ms, told_ms;
	uint32_t partition;  /* the one that is being copied, */
	uint64_t checkpoint; /* id of its checkpoint; 0 = none begun */
	uint32_t n_slices;   /* slices of this partition */
	uint64_t n_records;
	uint32_t slices; /* of all */
	uint64_t records, documents, bytes, version;
	struct copy_seen *seen; /* documents before the journal was read, of a live source */
	size_t n_seen, cap_seen;
	bool changed; /* a document has changed since */
};

/* Copies. `from` must exist. Both are owned meanwhile, or (`live`) the target alone: others run on
 * the source, and it is read as a standby reads it. `mark` (NULL: none) is a document that each
 * partition of the target gets. Until the last step the target is SKV_STORE_UNFINISHED.
 * SKV_E_NOT_OWNER: a manager runs on what is to be owned. SKV_E_CONFLICT: the target is not empty;
 * or, of a live source, the registry changed meanwhile (c->changed): begin again. */
int copy_store(struct copy *c, const char *from, const char *to, bool live, const char *mark);
void copy_tell(const struct copy *c, const char *how);

#endif
