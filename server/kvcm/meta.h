/*
 * meta.h - what the meta operations share: keys of a request, what is known of its instance.
 */
#ifndef KVCM_META_H
#define KVCM_META_H

#include <kvb/kvcm.h>

#include "op_list.h"

/* The keys that a request means. */
struct kvcm_keys {
	struct kvb_key *v;
	uint32_t n;
};

/* block_keys, or without them those of token_ids in blocks of the instance. KVB_E_INVALID as kvcm_missing when
 * both are empty. */
int kvcm_take_keys(struct kvcm_call *k, const char *instance, const int64_t *block_keys, size_t n_block_keys,
		   const int64_t *token_ids, size_t n_token_ids, struct kvcm_keys *out);
/* Those that the mask leaves, in their order. KVB_E_INVALID, KVB_E_NOMEM. */
int kvcm_take_unmasked(struct kvcm_call *k, const ProtobufCMessage *block_mask, struct kvcm_keys *keys);
/* The instance of the request; *out lives in the call's arena. KVB_E_NOT_FOUND. */
int kvcm_take_instance(struct kvcm_call *k, const char *instance, const struct kvb_instance_spec **out);

#endif
