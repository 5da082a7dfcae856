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
#include <skv/store.h>

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
	char mark[SKV_STORE_MARK]; /* the registry's when it was read; "": it was not */
};

struct registry_copy *registry_copy_make(void); /* NULL: out of memory */
void registry_copy_destroy(struct registry_copy *r); /* may be NULL */
/* One document, as it is now. An older version than is known changes nothing. */
void registry_copy_put(struct registry_copy *r, const char *key, const void *bytes, size_t n,
		       uint64_t version);
void registry_copy_del(struct registry_copy *r, const char *key, uint64_t version);
bool registry_copy_has(struct registry_copy *r, const char *key);
/* Forgets what it has, and reads all of the partition's registry. On failure it is as before.
 * SKV_E_STORE_IO: the store does not answer, or the registry went back in time. */
int registry_copy_read(struct registry_copy *r, struct skv_core *c, struct skv_error *err);
/* What of the registry can be known from its marks. */
enum registry_state {
	REGISTRY_WHOLE, /* or nobody here knows better */
	REGISTRY_NEWER, /* it has what the copy has not */
	REGISTRY_LOST,  /* it went back in time; the copy has all */
	REGISTRY_GONE,  /* it went back in time; the copy lacks something, too */
};
enum registry_state registry_copy_judge(struct registry_copy *r,
					const struct skv_registry_marks *m);
/* Makes the registry what the copy says, under this fence, with a mark that is newer than all that
 * anybody knows. Documents of kinds that managers publish about themselves stay where they are
 * newer. */
int registry_copy_write(struct registry_copy *r, struct skv_core *c, uint64_t fence,
			const struct skv_registry_marks *m, struct skv_error *err);
/* The registry counts as it is: it gets such a mark. */
int registry_copy_settle(struct registry_copy *r, struct skv_core *c, uint64_t fence,
			  const struct skv_registry_marks *m, struct skv_error *err);
/* Puts those of this manager's own documents that the registry has not. */
int registry_copy_publish(struct registry_copy *r, struct skv_core *c, struct skv_error *err);

#endif
