/*
 * kv_layout.c - reads the Hugging Face config.json of a model: layers, heads, types.
 *
 * Grouped-query attention keeps two vectors (key, value) of each KV head, multi-head latent
 * attention (DeepSeek) one of kv_lora_rank and one of qk_rope_head_dim elements for all heads.
 * Hybrid models list the type of each layer, in one of several ways. Stateless.
 */
#include "kv_layout.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const json_t *first_of(const json_t *config, const char *const *names)
{
	for (; *names; names++) {
		const json_t *v = json_object_get(config, *names);

		if (v && !json_is_null(v))
			return v;
	}
	return NULL;
}

/* 0: it is not there, or no number of its kind. */
static uint32_t number_of(const json_t *config, const char *const *names)
{
	const json_t *v = first_of(config, names);
	json_int_t n = json_is_integer(v) ? json_integer_value(v) : 0;

	return n > 0 && n <= 1 << 24 ? (uint32_t)n : 0;
}
#define NUMBER(config, ...) number_of(config, (const char *const[]){ __VA_ARGS__, NULL })

static bool is_true(const json_t *config, const char *name)
{
	return json_is_true(json_object_get(config, name));
}

/* ---- the element ----------------------------------------------------------------------------- */

static bool take_dtype(struct kv_layout *l, const char *name)
{
	static const struct {
		const char *name;
		double bytes;
	} types[] = { { "float32", 4 }, { "fp32", 4 },	{ "float16", 2 },	{ "half", 2 },
		      { "fp16", 2 },	{ "bfloat16", 2 }, { "bf16", 2 },
		      { "fp8", 1 },	{ "fp8_e4m3", 1 }, { "fp8_e5m2", 1 },
		      { "float8_e4m3fn", 1 },		   { "int8", 1 },
		      { "fp4", 0.5 } };

	if (strncmp(name, "torch.", 6) == 0)
		name += 6;
	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
		if (strcmp(types[i].name, name) != 0)
			continue;
		l->dtype_bytes = types[i].bytes;
		snprintf(l->dtype, sizeof l->dtype, "%s", name);
		return true;
	}
	return false;
}

/* ---- the layers ------------------------------------------------------------------------------ */

/* Counts a word of layer_types, layers_block_type, or a letter of hybrid_override_pattern. */
static void count_layer(struct kv_layout *l, const char *word)
{
	if (strstr(word, "sliding") || strstr(word, "local") || strstr(word, "chunked"))
		l->sliding++;
	else if (strstr(word, "linear") || strstr(word, "mamba") || strstr(word, "conv") ||
		 strstr(word, "recurrent"))
		l->linear++;
	else
		l->full++;
}

static bool count_words(struct kv_layout *l, const json_t *words)
{
	const json_t *word;
	size_t i;

	if (!json_is_array(words) || !json_array_size(words))
		return false;
	json_array_foreach(words, i, word)
		if (json_is_string(word))
			count_layer(l, json_string_value(word));
	return true;
}

/* Nemotron-H: M a Mamba layer, * attention, - and E no mixer at all. */
static bool count_letters(struct kv_layout *l, const char *letters)
{
	if (!letters)
		return false;
	for (; *letters; letters++) {
		l->full += *letters == '*';
		l->linear += *letters == 'M';
	}
	return true;
}

/* Every `period`-th layer, from `offset` on, is of one kind. */
static uint32_t every(uint32_t layers, uint32_t period, uint32_t offset)
{
	assert(period > 0);
	return offset < layers ? (layers - offset + period - 1) / period : 0;
}

static void count_by_period(const json_t *config, struct kv_layout *l)
{
	const json_t *offset = json_object_get(config, "attn_layer_offset");
	uint32_t period = NUMBER(config, "attn_layer_period"),
		 linear = NUMBER(config, "full_attention_interval"),
		 pattern = NUMBER(config, "sliding_window_pattern", "_sliding_window_pattern");

	if (period) { /* Jamba */
		l->full = every(l->layers, period,
				json_is_integer(offset) ? (uint32_t)json_integer_value(offset) : 0);
		l->linear = l->layers - l->full;
	} else if (linear) { /* Qwen3-Next: the last of each four */
		l->full = l->layers / linear;
		assert(l->full <= l->layers);
		l->linear = l->layers - l->full;
	} else if (pattern && l->window) { /* Gemma 3: the last of each six */
		l->full = l->layers / pattern;
		l->sliding = l->layers - l->full;
	} else if (l->window) { /* Mistral 7B: all of them */
		l->sliding = l->layers;
	} else {
		l->full = l->layers;
	}
}

static void count_layers(const json_t *config, struct kv_layout *l)
{
	const json_t *window_used = json_object_get(config, "use_sliding_window");
	const char *letters = json_string_value(json_object_get(config, "hybrid_override_pattern"));

	if (!json_is_false(window_used)) /* Qwen 2.5 has a window that it does not use */
		l->window = NUMBER(config, "sliding_window");
	if (!count_words(l, json_object_get(config, "layer_types")) &&
	    !count_words(l, json_object_get(config, "layers_block_type")) &&
	    !count_letters(l, letters))
		count_by_period(config, l);
	if (!l->sliding)
		l->window = 0;
	assert(l->full <= UINT32_MAX - l->sliding);
}

/* ---- the heads ------------------------------------------------------------------------------- */

static void count_heads(const json_t *config, struct kv_layout *l)
{
	uint32_t heads = NUMBER(config, "num_attention_heads", "n_head", "n_heads"),
		 hidden = NUMBER(config, "hidden_size", "n_embd", "d_model"),
		 lora = NUMBER(config, "kv_lora_rank"), rope = NUMBER(config, "qk_rope_head_dim");

	l->latent = lora && rope;
	if (l->latent) {
		l->kv_heads = 1;
		l->head_dim = lora + rope;
		l->indexer = NUMBER(config, "index_head_dim");
		return;
	}
	l->kv_heads = NUMBER(config, "num_key_value_heads", "num_kv_heads",
			     "multi_query_group_num");
	if (is_true(config, "multi_query") && !is_true(config, "new_decoder_architecture"))
		l->kv_heads = 1; /* Falcon 7B, regardless of other fields */
	if (!l->kv_heads)
		l->kv_heads = heads;
	l->head_dim = NUMBER(config, "head_dim", "kv_channels", "attention_head_dim");
	if (!l->head_dim && heads)
		l->head_dim = hidden / heads;
}

const char *kv_layout_read(const json_t *config, const char *dtype, struct kv_layout *out,
			   char why[200])
{
	const json_t *text = json_object_get(config, "text_config"), *named;
	const char *type = json_string_value(json_object_get(config, "model_type"));

	*out = (struct kv_layout){ .layers = 0 };
	snprintf(out->model_type, sizeof out->model_type, "%s", type ? type : "unknown");
	named = first_of(config, (const char *const[]){ "torch_dtype", "dtype", NULL });
	if (json_is_object(text)) { /* models that see: the language part has the cache */
		config = text;
		if (!named)
			named = first_of(config,
					 (const char *const[]){ "torch_dtype", "dtype", NULL });
	}
	out->layers = NUMBER(config, "num_hidden_layers", "n_layer", "n_layers", "num_layers");
	if (!out->layers)
		return "no num_hidden_layers: is it the config.json of a language model?";
	count_heads(config, out);
	if (!out->kv_heads || !out->head_dim)
		return "neither num_attention_heads and hidden_size, nor kv_lora_rank";
	count_layers(config, out);
	if (!dtype)
		dtype = json_string_value(named);
	if (!dtype)
		return "no torch_dtype: give --dtype";
	if (take_dtype(out, dtype))
		return NULL;
	snprintf(why, 200, "no type '%.40s' known: give --dtype, like bfloat16 or fp8", dtype);
	return why;
}

static uint64_t bytes_of(const struct kv_layout *l, uint32_t heads)
{
	const uint64_t elements = (uint64_t)(l->full + l->sliding) * heads * l->head_dim *
				  (l->latent ? 1 : 2);

	assert(heads > 0 && l->head_dim > 0 && l->dtype_bytes > 0);
	return (uint64_t)((double)elements * l->dtype_bytes);
}

uint64_t kv_layout_token_bytes(const struct kv_layout *l) { return bytes_of(l, l->kv_heads); }

uint64_t kv_layout_rank_bytes(const struct kv_layout *l, uint32_t tp)
{
	assert(tp > 0);
	if (l->latent || tp == 1)
		return bytes_of(l, l->kv_heads);
	if (l->kv_heads % tp == 0)
		return bytes_of(l, l->kv_heads / tp);
	return tp % l->kv_heads == 0 ? bytes_of(l, 1) : 0; /* heads are copied to several ranks */
}
