/* model.c - known model shapes, and the size of their KV caches. See skv/model.h. Stateless. */
#include <skv/model.h>

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <skv/limits.h>

#define MAX_SHAPE (1u << 20) /* of any number of a shape */
#define DS_MLA_BYTES 656u

const struct skv_model skv_models[] = {
	{ .name = "llama-3.1-8b", .layers = 32, .kv_heads = 8, .head_dim = 128 },
	{ .name = "llama-3.1-70b", .layers = 80, .kv_heads = 8, .head_dim = 128 },
	{ .name = "qwen2.5-14b", .layers = 48, .kv_heads = 8, .head_dim = 128 },
	{ .name = "qwq-32b", .layers = 64, .kv_heads = 8, .head_dim = 128 },
	{ .name = "qwen3-32b", .layers = 64, .kv_heads = 8, .head_dim = 128 },
	{ .name = "deepseek-v3", .layers = 61, .mla_rank = 512, .rope_dim = 64 },
	{ .name = "deepseek-r1", .layers = 61, .mla_rank = 512, .rope_dim = 64 },
	{ .name = NULL },
};

const struct skv_model *skv_model_find(const char *name)
{
	for (const struct skv_model *m = skv_models; m->name; m++)
		if (strcmp(m->name, name) == 0)
			return m;
	return NULL;
}

/* Of one number; 0: no such type. */
static uint32_t dtype_bytes(const char *dtype)
{
	if (strcmp(dtype, "bf16") == 0 || strcmp(dtype, "fp16") == 0)
		return 2;
	if (strcmp(dtype, "fp32") == 0)
		return 4;
	return strcmp(dtype, "fp8") == 0 ? 1 : 0;
}

static int check_shape(const struct skv_model *m, struct skv_error *err)
{
	if (m->layers < 1 || m->layers > MAX_SHAPE)
		return skv_fail(err, SKV_E_INVALID, "layers", "layers of the model, 1..%u",
				MAX_SHAPE);
	if (m->kv_heads && (m->mla_rank || m->rope_dim))
		return skv_fail(err, SKV_E_INVALID, "kv-heads",
				"a model has KV heads, or a latent rank, not both");
	if (!m->kv_heads && !m->mla_rank)
		return skv_fail(err, SKV_E_INVALID, "kv-heads",
				"give --kv-heads and --head-dim, or --mla-rank and --rope-dim");
	if (m->kv_heads > MAX_SHAPE)
		return skv_fail(err, SKV_E_INVALID, "kv-heads", "1..%u", MAX_SHAPE);
	if (m->kv_heads && (m->head_dim < 1 || m->head_dim > MAX_SHAPE))
		return skv_fail(err, SKV_E_INVALID, "head-dim", "size of a head, 1..%u", MAX_SHAPE);
	if (m->mla_rank > MAX_SHAPE)
		return skv_fail(err, SKV_E_INVALID, "mla-rank", "1..%u", MAX_SHAPE);
	if (m->rope_dim > MAX_SHAPE)
		return skv_fail(err, SKV_E_INVALID, "rope-dim", "0..%u", MAX_SHAPE);
	return SKV_OK;
}

static int heads_bytes(const struct skv_model *m, uint32_t number, uint32_t tp,
		       struct skv_model_bytes *out, struct skv_error *err)
{
	uint32_t split;

	assert(m->kv_heads > 0 && tp > 0);
	split = tp < m->kv_heads ? tp : m->kv_heads;
	if (m->kv_heads % split || tp % split)
		return skv_fail(err, SKV_E_INVALID, "tp",
				"%u KV heads cannot be shared evenly by %u ranks", m->kv_heads, tp);
	/* At most 2 * 2^60 * 4 = 2^63: check_shape. */
	out->rank = 2ull * m->layers * (m->kv_heads / split) * m->head_dim * number;
	out->ranks = tp;
	return SKV_OK;
}

int skv_model_bytes(const struct skv_model *m, const char *dtype, uint32_t tp,
		    struct skv_model_bytes *out, struct skv_error *err)
{
	bool packed = strcmp(dtype, "fp8_ds_mla") == 0;
	uint32_t number = dtype_bytes(dtype);
	int rc = check_shape(m, err);

	if (rc != SKV_OK)
		return rc;
	if (tp < 1 || tp > 1024)
		return skv_fail(err, SKV_E_INVALID, "tp", "ranks of tensor parallelism, 1..1024");
	if (!number && !packed)
		return skv_fail(err, SKV_E_INVALID, "dtype", "bf16, fp16, fp32, fp8 or fp8_ds_mla");
	if (packed && (m->mla_rank != 512 || m->rope_dim != 64))
		return skv_fail(err, SKV_E_INVALID, "dtype",
				"fp8_ds_mla is for MLA of rank 512 and rope 64 only");
	out->rank = (uint64_t)m->layers *
		    (packed ? DS_MLA_BYTES : (m->mla_rank + m->rope_dim) * (uint64_t)number);
	out->ranks = 1;
	if (m->kv_heads)
		rc = heads_bytes(m, number, tp, out, err);
	if (rc == SKV_OK && out->rank > SKV_MAX_SPEC_SIZE)
		rc = skv_fail(
			err, SKV_E_INVALID, m->kv_heads ? "kv-heads" : "mla-rank",
			"a token takes %llu bytes of a rank, more than the %llu that a "
			"block may have",
			(unsigned long long)out->rank, (unsigned long long)SKV_MAX_SPEC_SIZE);
	assert(rc != SKV_OK || out->rank <= UINT64_MAX / out->ranks);
	out->whole = out->rank * out->ranks;
	return rc;
}
