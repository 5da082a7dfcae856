/* batch.h - an operation on many blocks, for slabkv_batch and for the asynchronous queue. */
#ifndef SKV_CLIENT_BATCH_H
#define SKV_CLIENT_BATCH_H

#include "client.h"

/* SKV_E_INVALID or SKV_E_TOO_LARGE, naming the member. */
int skv_batch_check(const struct slabkv_batch *b, struct skv_error *err);
/* Sets the result of all its blocks. */
void skv_batch_tell(const struct slabkv_batch *b, enum slabkv_result result, int why);
/* Runs a checked batch, with the handle entered. All results are set, whatever is returned. */
int skv_batch_do(struct slabkv *kv, const struct slabkv_batch *b, struct skv_error *err);

/* Checked copies in the arena: keys with their parent; all that a batch points to
 * but buffers and results. */
int skv_keys_copy(const struct slabkv_keys *from, struct skv_arena *a, struct slabkv_keys *to,
		  struct skv_error *err);
int skv_batch_copy(const struct slabkv_batch *from, struct skv_arena *a, struct slabkv_batch *to,
		   struct skv_error *err);

#endif
