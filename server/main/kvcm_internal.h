/* kvcm_internal.h - shared by the files that read KVCM's configuration. */
#ifndef SKV_KVCM_INTERNAL_H
#define SKV_KVCM_INTERNAL_H

#include <skv/kvcm_config.h>

#include "params_internal.h"

/* Keys that only make sense together; "" = not given. */
struct kvcm_uris {
	char *coordination;
	char *lock;
	char *registry;
};

struct kvcm_reading {
	struct skv_params *p;
	struct kvcm_notes *notes;
	struct kvcm_uris uris;
};

/* Sets a key to its value from `where` ("-e", "FILE:3"). An unknown key is noted, once. */
int kvcm_key_set(struct kvcm_reading *r, const char *key, const char *value,
		 enum skv_param_source source, const char *where, struct skv_error *err);
/* The i-th key; NULL after the last. */
const char *kvcm_key_name(size_t i);
/* Returns true for a key of KVCM without effect here, also with underscores for dots. */
bool kvcm_key_is_ignored(const char *key);
/* Adds a note, once. */
int kvcm_note(struct kvcm_notes *notes, struct skv_error *err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Derives the store's location from the URIs: sets the parameter `store` unless it was given
 * itself. */
int kvcm_uris_apply(struct skv_params *p, const struct kvcm_uris *u, struct kvcm_notes *notes,
		    struct skv_error *err);

#endif
