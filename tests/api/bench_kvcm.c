/*
 * bench_kvcm.c - nanoseconds of KVCM's hot messages in both forms. Not a test: it prints.
 *
 *	bench_kvcm [KEYS [ROUNDS]]
 *
 * What is measured: reading a getCacheLocation request of KEYS keys; writing its answer with
 * KEYS locations of one and of two specs; keys from KEYS * 64 tokens; the same answer by the
 * generic writer, for comparison.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <skv/json_out.h>
#include <skv/kvcm.h>

#include <kvcm/meta.pb-c.h>

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

struct bench {
	unsigned keys, rounds;
	struct skv_arena arena;
	struct skv_buf buf;
	int64_t *key;
};

static void print(const char *what, const struct bench *b, double us, size_t bytes)
{
	printf("%-44s %9.1f us %8.1f ns/key %9zu bytes\n", what, us / b->rounds,
	       us * 1000 / b->rounds / b->keys, bytes);
}

static void read_request(struct bench *b, const struct skv_proto_codec *codec, const char *what)
{
	KvcmMeta__GetCacheLocationRequest req = KVCM_META__GET_CACHE_LOCATION_REQUEST__INIT;
	ProtobufCMessage *m;
	double start;

	req.trace_id = "trace_1760000000";
	req.instance_id = "qwen-72b-fp8";
	req.query_type = KVCM_META__QUERY_TYPE__QT_PREFIX_MATCH;
	req.n_block_keys = b->keys;
	req.block_keys = b->key;
	skv_buf_clear(&b->buf);
	codec->write(&req.base, NULL, &b->buf);
	if (codec == &skv_proto_json) { /* clients send numbers */
		size_t n = 0;
		bool quoted = false;

		for (size_t i = 0; i < b->buf.len; i++) {
			quoted = quoted || b->buf.data[i] == '[';
			if (!quoted || b->buf.data[i] != '"')
				b->buf.data[n++] = b->buf.data[i];
			quoted = quoted && b->buf.data[i] != ']';
		}
		b->buf.len = n;
	}
	start = now_us();
	for (unsigned i = 0; i < b->rounds; i++) {
		skv_arena_reset(&b->arena);
		if (codec->read(req.base.descriptor, b->buf.data, b->buf.len, &b->arena, &m,
				NULL) != SKV_OK ||
		    ((KvcmMeta__GetCacheLocationRequest *)(void *)m)->n_block_keys != b->keys)
			abort();
	}
	print(what, b, now_us() - start, b->buf.len);
}

static void write_answer(struct bench *b, const struct skv_proto_codec *codec, uint32_t n_specs,
			 const char *what)
{
	static const char *const specs[] = { "tp0", "tp1" };
	const char *roots[] = { "/mnt/3fs/kv", "/mnt/3fs/kv" };
	struct skv_file_ref refs[] = {
		{ .storage = "st_3fs_01", .type = "hf3fs", .path = "skv-0f3a9c42/000001.slab" },
		{ .storage = "st_3fs_01", .type = "hf3fs", .path = "skv-0f3a9c42/000002.slab" },
	};
	struct skv_files files = { refs, 2 };
	struct skv_location *loc = calloc((size_t)b->keys * n_specs, sizeof *loc);
	KvcmMeta__GetCacheLocationResponse res = KVCM_META__GET_CACHE_LOCATION_RESPONSE__INIT;
	KvcmMeta__CommonResponseHeader header = KVCM_META__COMMON_RESPONSE_HEADER__INIT;
	KvcmMeta__Status status = KVCM_META__STATUS__INIT;
	struct kvcm_locations l = {
		.field = 2, .files = &files, .roots = roots, .n_specs = n_specs, .specs = specs,
		.loc = loc,
		.columns = KVCM_ALL_COLUMNS, .n = b->keys, .status = KVCM_SERVING,
		.created_ms = 1760000000123,
	};
	struct skv_proto_splice splice = { 2, kvcm_locations_json, kvcm_locations_binary, &l,
					   NULL };
	ProtobufCMessage *m;
	char name[128];
	double start;

	for (uint32_t i = 0; i < b->keys * n_specs; i++)
		loc[i] = (struct skv_location){ .file = i & 1, .offset = (uint64_t)i << 21,
						.length = 1 << 21,
						.generation = 1 + i };
	status.code = KVCM_META__ERROR_CODE__OK;
	status.message = "Cache locations retrieved successfully";
	header.status = &status;
	header.request_id = "trace_1760000000_1760000000000001";
	res.header = &header;
	start = now_us();
	for (unsigned i = 0; i < b->rounds; i++) {
		skv_buf_clear(&b->buf);
		codec->write(&res.base, &splice, &b->buf);
	}
	print(what, b, now_us() - start, b->buf.len);
	skv_arena_reset(&b->arena);
	if (codec->read(res.base.descriptor, b->buf.data, b->buf.len, &b->arena, &m, NULL) !=
	    SKV_OK)
		abort();
	start = now_us();
	for (unsigned i = 0; i < b->rounds; i++) {
		skv_buf_clear(&b->buf);
		codec->write(m, NULL, &b->buf);
	}
	snprintf(name, sizeof name, "  the same, generic");
	print(name, b, now_us() - start, b->buf.len);
	free(loc);
}

int main(int argc, char **argv)
{
	struct bench b = { .keys = argc > 1 ? (unsigned)atoi(argv[1]) : 1000,
			   .rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 2000 };
	size_t n_tokens = (size_t)b.keys * 64;
	int64_t *tokens = calloc(n_tokens, sizeof *tokens);
	double start;

	b.key = calloc(b.keys, sizeof *b.key);
	for (size_t i = 0; i < n_tokens; i++)
		tokens[i] = (int64_t)(i * 7919 % 151643);
	skv_arena_init(&b.arena);
	start = now_us();
	for (unsigned i = 0; i < b.rounds / 10 + 1; i++)
		kvcm_token_keys(tokens, n_tokens, 64, b.key);
	print("keys from 64 tokens each", &b, (now_us() - start) / (b.rounds / 10 + 1) * b.rounds,
	      n_tokens * 8);
	read_request(&b, &skv_proto_json, "getCacheLocation request, JSON");
	read_request(&b, &skv_proto_binary, "getCacheLocation request, binary");
	write_answer(&b, &skv_proto_json, 1, "answer, one spec, JSON");
	write_answer(&b, &skv_proto_binary, 1, "answer, one spec, binary");
	write_answer(&b, &skv_proto_json, 2, "answer, two specs, JSON");
	write_answer(&b, &skv_proto_binary, 2, "answer, two specs, binary");
	skv_buf_destroy(&b.buf);
	skv_arena_destroy(&b.arena);
	free(tokens);
	free(b.key);
	return 0;
}
