/*
 * registry_copy.h - what a partition's registry says, kept in memory beside a store that may lose
 * what it has acknowledged
 * (skv_store_may_go_back).
 */
#ifndef SKV_CORE_JOURNAL_REGISTRY_COPY_H
#define SKV_CORE_JOURNAL_REGISTRY_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <skv/lock.h>

struct skv_core;
struct skv_error;

/* Any thread. */
struct registry_copy {
	struct skv_mutex lock;
	struct copied {
		char *key;
		void *bytes;
		size_t n;
		uint64_t version;
	} *v; /* by key */
	size_t n, cap;
	bool incomplete; /* memory was short */
};

struct registry_copy *registry_copy_make(void); /* NULL: out of memory */
void registry_copy_destroy(struct registry_copy *r); /* may be NULL */
/* One document, as it is now. An older version than is known changes nothing. */
void registry_copy_put(struct registry_copy *r, const char *key, const void *bytes, size_t n,
		       uint64_t version);
void registry_copy_del(struct registry_copy *r, const char *key, uint64_t version);
bool registry_copy_has(struct registry_copy *r, const char *key);
/* Forgets what it has, and reads all of the partition's registry. On failure it is as before. */
int registry_copy_read(struct registry_copy *r, struct skv_core *c, struct skv_error *err);
/* Makes the registry what the copy says, under this fence. Documents of kinds that managers publish
 * about themselves stay where they are newer. */
int registry_copy_write(struct registry_copy *r, struct skv_core *c, uint64_t fence,
			struct skv_error *err);
/* Puts those of this manager's own documents that the registry has not. */
int registry_copy_publish(struct registry_copy *r, struct skv_core *c, struct skv_error *err);

#endif
