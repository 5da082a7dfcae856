/* memory_internal.h - shared by memory_store.c and memory_journal.c. */
#ifndef SKV_TESTS_MEMORY_INTERNAL_H
#define SKV_TESTS_MEMORY_INTERNAL_H

#include <stdatomic.h>

#include <skv/lock.h>

#include <internal.h>

#include "memory_store.h"

/* Immutable bytes that a load may still deliver after the store has let them go. */
struct blob {
	atomic_uint refs;
	size_t n;
	uint8_t bytes[];
};

struct blob *blob_make(const void *bytes, size_t n);
struct blob *blob_ref(struct blob *b);
void blob_unref(struct blob *b); /* NULL is allowed */

struct entry {
	char *key;
	struct blob *value;
	uint64_t version;
};

/* A list of blobs: slices by number, or journal records by seq. Holes are NULL. */
struct blobs {
	struct blob **at;
	size_t n, cap;
};

void blobs_clear(struct blobs *b);

struct part {
	uint32_t number;
	char owner[192]; /* "" = no owner */
	uint64_t fence;
	uint64_t expires_ms;
	uint64_t last_id;  /* of checkpoints */
	uint64_t building; /* the checkpoint being written, 0 = none */
	uint64_t base_seq; /* journal.at[i] is record base_seq + 1 + i */
	uint64_t journal_bytes;
	struct blobs journal;
	struct blobs slices; /* of the newest committed checkpoint */
	struct blobs draft;  /* of `building` */
};

/* A store, perhaps opened several times. `lock` guards everything but name, refs and next, which
 * belong to the list of named stores. */
struct memory {
	struct skv_mutex lock;
	struct entry *entries; /* by key */
	size_t n_entries, cap_entries;
	struct part **parts;
	size_t n_parts, cap_parts;
	char *name; /* "" = private */
	unsigned refs;
	struct memory *next;
};

struct handle {
	struct memory *memory;
	const struct skv_clock *clock;
};

/* The partition, made when it is new; NULL when out of memory. */
struct part *part_find_locked(struct memory *m, uint32_t number);
/* The partition if `fence` is its newest, else SKV_E_FENCED. */
int part_fenced_locked(struct memory *m, uint32_t number, uint64_t fence, struct part **out,
		       struct skv_error *err);

int memory_append(void *self, uint32_t partition, uint64_t fence, uint64_t seq, const void *bytes,
		  size_t n, unsigned flags, struct skv_error *err);
int memory_checkpoint_begin(void *self, uint32_t partition, uint64_t fence, uint64_t *id,
			    struct skv_error *err);
int memory_checkpoint_slice(void *self, uint32_t partition, uint64_t fence, uint64_t id,
			    uint32_t number, const void *bytes, size_t n, struct skv_error *err);
int memory_checkpoint_commit(void *self, uint32_t partition, uint64_t fence, uint64_t id,
			     uint32_t slices, uint64_t upto_seq, struct skv_error *err);
int memory_checkpoint_abort(void *self, uint32_t partition, uint64_t id);
int memory_load(void *self, uint32_t partition, uint64_t *base_seq,
		const struct skv_load_sink *sink, struct skv_error *err);
int memory_follow(void *self, uint32_t partition, struct skv_position *at,
		  const struct skv_load_sink *sink, struct skv_error *err);
int memory_stats(void *self, uint32_t partition, struct skv_store_stats *out,
		 struct skv_error *err);

#endif
