/* load.h - turns documents of the registry into objects of a partition. */
#ifndef SKV_CORE_RECOVERY_LOAD_H
#define SKV_CORE_RECOVERY_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <skv/hash.h>

struct partition;
struct skv_error;

#define REGISTRY_KINDS 5u

/* What was loaded, so that what has changed since can be told. Zeros: nothing. */
struct registry_view {
	struct registry_seen {
		struct skv_key key; /* hash of the document's */
		uint64_t fingerprint; /* of its version and bytes */
		uint32_t storage, file; /* of a slab file's document */
		bool is_file, is_new;
	} *v; /* in the order of the documents */
	size_t n, cap;
	uint64_t known[REGISTRY_KINDS]; /* of skv_store_changed, for each kind of document */
};
void registry_view_free(struct registry_view *view);

int registry_load(struct partition *p, struct skv_error *err);
/* May there be anything that registry_load_more would find? Asks no server. */
bool registry_may_differ(struct partition *p, struct registry_view *view);
/* Loads what is not in *view yet, and notes it there. SKV_E_CONFLICT: something was changed, or has
 * gone: the partition is to be loaded again. */
int registry_load_more(struct partition *p, struct registry_view *view, struct skv_error *err);

#endif
