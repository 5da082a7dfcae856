/* load.h - turns documents of the registry into objects of a partition. */
#ifndef SKV_CORE_RECOVERY_LOAD_H
#define SKV_CORE_RECOVERY_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <skv/hash.h>

struct partition;
struct skv_error;

/* The loaded documents, so that later changes can be detected. Zeros: none. */
struct registry_view {
	struct registry_seen {
		struct skv_key key;     /* hash of the document's */
		uint64_t fingerprint;   /* of its version and bytes */
		uint32_t storage, file; /* of a slab file's document */
		uint32_t pass;          /* the newest that had it */
		bool is_file;
		bool known; /* the document is in this place of the table, */
		bool there; /* and was not removed since */
	} *v;
	size_t n, cap; /* a power of 2 */
	uint32_t pass; /* counts calls of registry_load_more */
	uint64_t at;   /* of skv_store_changes; 0: the next call lists all */
};
void registry_view_free(struct registry_view *view);

int registry_load(struct partition *p, struct skv_error *err);
/* Loads the documents added since the previous call, and notes them in *view. SKV_E_CONFLICT: a
 * document was changed or removed: load the partition again. */
int registry_load_more(struct partition *p, struct registry_view *view, struct skv_error *err);

#endif
