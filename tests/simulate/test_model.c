/* test_model.c - bytes of KV caches against a table that was worked out for
 * the same models by others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <skv/model.h>

#define MIB (1ull << 20)

static struct skv_model_bytes bytes(const char *model, const char *dtype, uint32_t tp)
{
	const struct skv_model *m = skv_model_find(model);
	struct skv_model_bytes b = { 0 };
	struct skv_error err = { 0 };

	assert_non_null(m);
	assert_int_equal(skv_model_bytes(m, dtype, tp, &b, &err), SKV_OK);
	return b;
}

static void whole_models(void **state)
{
	static const struct {
		const char *model, *dtype;
		uint64_t token, tokens16, tokens64, tokens128, tokens256;
	} rows[] = {
		{ "llama-3.1-8b", "bf16", 131072, 2 * MIB, 8 * MIB, 16 * MIB, 32 * MIB },
		{ "llama-3.1-70b", "bf16", 327680, 5 * MIB, 20 * MIB, 40 * MIB, 80 * MIB },
		{ "qwen2.5-14b", "bf16", 196608, 3 * MIB, 12 * MIB, 24 * MIB, 48 * MIB },
		{ "qwq-32b", "bf16", 262144, 4 * MIB, 16 * MIB, 32 * MIB, 64 * MIB },
		{ "qwen3-32b", "fp16", 262144, 4 * MIB, 16 * MIB, 32 * MIB, 64 * MIB },
		{ "llama-3.1-70b", "fp8", 163840, 5 * MIB / 2, 10 * MIB, 20 * MIB, 40 * MIB },
		{ "llama-3.1-8b", "fp8", 65536, MIB, 4 * MIB, 8 * MIB, 16 * MIB },
		{ "deepseek-v3", "bf16", 70272, 1124352, 4497408, 8994816, 17989632 },
		{ "deepseek-r1", "fp8", 35136, 562176, 2248704, 4497408, 8994816 },
		{ "deepseek-v3", "fp8_ds_mla", 40016, 640256, 2561024, 5122048, 10244096 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct skv_model_bytes b = bytes(rows[i].model, rows[i].dtype, 1);

		assert_int_equal(b.rank, rows[i].token);
		assert_int_equal(b.whole, rows[i].token);
		assert_int_equal(b.rank * 16, rows[i].tokens16);
		assert_int_equal(b.rank * 64, rows[i].tokens64);
		assert_int_equal(b.rank * 128, rows[i].tokens128);
		assert_int_equal(b.rank * 256, rows[i].tokens256);
	}
}

static void ranks_share_heads_but_not_latents(void **state)
{
	static const struct {
		const char *model;
		uint64_t rank[3]; /* of 2, 4 and 8 */
	} rows[] = {
		{ "llama-3.1-8b", { 65536, 32768, 16384 } },
		{ "llama-3.1-70b", { 163840, 81920, 40960 } },
		{ "qwen2.5-14b", { 98304, 49152, 24576 } },
		{ "qwq-32b", { 131072, 65536, 32768 } },
		{ "qwen3-32b", { 131072, 65536, 32768 } },
		{ "deepseek-v3", { 70272, 70272, 70272 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		for (uint32_t k = 0; k < 3; k++) {
			struct skv_model_bytes b = bytes(rows[i].model, "bf16", 2u << k);

			assert_int_equal(b.rank, rows[i].rank[k]);
			assert_int_equal(b.whole, bytes(rows[i].model, "bf16", 1).whole);
			assert_int_equal(b.ranks,
					 strncmp(rows[i].model, "deepseek", 8) == 0 ? 1 : 2u << k);
		}
	/* More ranks than heads: each head is there twice. */
	assert_int_equal(bytes("llama-3.1-70b", "bf16", 16).rank, 40960);
	assert_int_equal(bytes("llama-3.1-70b", "bf16", 16).whole, 2 * 327680);
}

static void wrong_shapes_name_the_option(void **state)
{
	static const struct {
		struct skv_model m;
		const char *dtype;
		uint32_t tp;
		const char *field;
	} bad[] = {
		{ { .kv_heads = 8, .head_dim = 128 }, "bf16", 1, "layers" },
		{ { .layers = 2 }, "bf16", 1, "kv-heads" },
		{ { .layers = 2, .kv_heads = 8 }, "bf16", 1, "head-dim" },
		{ { .layers = 2, .kv_heads = 8, .head_dim = 4, .mla_rank = 3 }, "bf16", 1,
		  "kv-heads" },
		{ { .layers = 2, .kv_heads = 8, .head_dim = 128 }, "int4", 1, "dtype" },
		{ { .layers = 2, .kv_heads = 8, .head_dim = 128 }, "fp8_ds_mla", 1, "dtype" },
		{ { .layers = 2, .mla_rank = 512, .rope_dim = 32 }, "fp8_ds_mla", 1, "dtype" },
		{ { .layers = 2, .kv_heads = 6, .head_dim = 128 }, "bf16", 4, "tp" },
		{ { .layers = 2, .kv_heads = 8, .head_dim = 128 }, "bf16", 12, "tp" },
		{ { .layers = 2, .kv_heads = 8, .head_dim = 128 }, "bf16", 0, "tp" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct skv_model_bytes b;
		struct skv_error err = { 0 };

		assert_int_equal(skv_model_bytes(&bad[i].m, bad[i].dtype, bad[i].tp, &b, &err),
				 SKV_E_INVALID);
		assert_string_equal(err.field, bad[i].field);
	}
	assert_null(skv_model_find("llama"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_models),
		cmocka_unit_test(ranks_share_heads_but_not_latents),
		cmocka_unit_test(wrong_shapes_name_the_option),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
