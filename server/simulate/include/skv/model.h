/*
 * model.h - bytes of a model's KV cache, from its shape. Pure.
 *
 * Attention over heads (MHA, GQA): 2 (K, V) * layers * KV heads * head size * bytes per number for
 * each token, split over min(TP, KV heads) ranks; with more ranks than heads each head is stored
 * several times. Latent attention (MLA): layers * (rank + rope) * bytes per number, the same on
 * every rank, so stored once. `fp8_ds_mla` is vLLM's packed form of it: 656 bytes per token and
 * layer (512 fp8, 4 fp32 scales, 64 bf16).
 */
#ifndef SKV_MODEL_H
#define SKV_MODEL_H

#include <stdint.h>

#include <skv/status.h>

struct skv_model {
	const char *name; /* NULL: given by its shape */
	uint32_t layers;
	uint32_t kv_heads; /* 0: MLA */
	uint32_t head_dim;
	uint32_t mla_rank; /* MLA only */
	uint32_t rope_dim;
};

struct skv_model_bytes {
	uint64_t rank;  /* per token, one rank */
	uint64_t whole; /* per token, all stored ranks */
	uint32_t ranks; /* stored ranks: TP, or 1 for MLA */
};

/* Models of known shape, a NULL name at the end. The shapes are from the models' published
 * config.json. */
extern const struct skv_model skv_models[];
/* NULL: not in the list. */
const struct skv_model *skv_model_find(const char *name);
/* `tp` 1..1024; `dtype`: "bf16", "fp16", "fp32", "fp8" (scales kept elsewhere), "fp8_ds_mla" (MLA
 * of rank 512 and rope 64 only). SKV_E_INVALID names the option as a field: layers, kv-heads,
 * head-dim, mla-rank, rope-dim, tp, dtype. */
int skv_model_bytes(const struct skv_model *m, const char *dtype, uint32_t tp,
		    struct skv_model_bytes *out, struct skv_error *err);

#endif
