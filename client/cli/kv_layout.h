/*
 * kv_layout.h - the KV cache that a model keeps for each token, from its Hugging Face config.json.
 */
#ifndef SKV_CLI_KV_LAYOUT_H
#define SKV_CLI_KV_LAYOUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct kv_layout {
	char model_type[64];
	bool latent; /* MLA: one latent vector for all heads, the same on every rank */
	uint32_t layers;
	/* Of these: attention over all tokens, over a window, and layers whose state does not grow
	 * with the tokens (linear attention, Mamba, convolutions). */
	uint32_t full, sliding, linear;
	uint32_t window;    /* tokens; 0: none, or unknown */
	uint32_t kv_heads;  /* MLA: 1 */
	uint32_t head_dim;  /* MLA: kv_lora_rank + qk_rope_head_dim */
	uint32_t indexer;   /* sparse attention keeps keys of so many elements besides; 0: none */
	double dtype_bytes; /* of an element */
	char dtype[16];
};

/* `config` is the parsed file, `dtype` overrides what it says (NULL: it decides). NULL when fine,
 * else a sentence on what is missing, in `why`. */
const char *kv_layout_read(const json_t *config, const char *dtype, struct kv_layout *out,
			   char why[200]);
/* Bytes of a token: of the whole model, and of one of `tp` ranks. */
uint64_t kv_layout_token_bytes(const struct kv_layout *l);
/* Returns 0 if the heads cannot be divided among that many ranks. */
uint64_t kv_layout_rank_bytes(const struct kv_layout *l, uint32_t tp);

#endif
