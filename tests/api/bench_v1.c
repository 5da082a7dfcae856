/*
 * bench_v1.c - measures a lookup of 512 keys in protobuf: bytes and nanoseconds for the request and
 * the answer, all hits, in four slabs, consecutive and scattered. Not a test: run it by hand. JSON:
 * bench_json.c.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <skv/v1_pb.h>

#define KEYS 512u
#define BATCHES 40u /* the fastest counts: the machine may be shared */
#define ROUNDS 100u

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void must(int rc, const struct skv_error *err)
{
	if (rc == SKV_OK)
		return;
	fprintf(stderr, "%s at %s\n", err->message, err->field);
	exit(1);
}

static struct skv_key keys[KEYS];
static bool hit[KEYS];
static struct skv_location loc[KEYS];
static struct skv_file_ref files[4];

/* Four slabs of 128 neighbours each, or every block elsewhere. */
static void fill(bool scattered)
{
	for (uint32_t f = 0; f < 4; f++) {
		files[f].storage = "default";
		files[f].type = "file";
		snprintf(files[f].uuid, sizeof files[f].uuid,
			 "00112233-4455-6677-8899-aabbccddeeff");
		snprintf(files[f].path, sizeof files[f].path, "slab-%08x.kvs", f);
	}
	for (uint32_t i = 0; i < KEYS; i++) {
		uint64_t slot = scattered ? i * 7919u % 16384u : i % 128;

		skv_random(&keys[i], sizeof keys[i]);
		hit[i] = true;
		loc[i] = (struct skv_location){ .file = i / 128,
						.offset = (64 << 20) + slot * 1310720,
						.length = 1310720, .generation = 123456 + i,
						.has_checksum = true };
		if (scattered)
			loc[i].generation += slot * slot;
		skv_random(&loc[i].checksum, sizeof loc[i].checksum);
	}
}

struct numbers {
	size_t req_bytes, res_bytes;
	double read_req, write_res, write_req, read_res; /* ns of one message */
};

static struct numbers measure(void)
{
	static const char *const specs[] = { "kv" };
	const struct skv_key_input input = { .form = SKV_KEYS_HEX, .n = KEYS, .keys = keys };
	struct skv_lookup_req req = { .tenant = "default", .lease_ms = SKV_LEASE_DEFAULT }, got;
	struct skv_lookup_res res = { .n_keys = KEYS, .matched = KEYS, .n_specs = 1, .specs = specs,
				      .hit = hit, .loc = loc, .lease_ms = 10000,
				      .files = { files, 4 } }, got_res;
	struct skv_arena arena;
	struct skv_v1_in in = { .arena = &arena, .tenant = "default" };
	struct skv_buf text = { 0 };
	struct skv_error err;
	struct numbers n;
	uint64_t begin;
	double took;

	skv_arena_init(&arena);
#define TIME(out, once)                                     \
	out = 1e18;                                         \
	for (uint32_t b = 0; b < BATCHES; b++) {            \
		begin = now_ns();                           \
		for (uint32_t r = 0; r < ROUNDS; r++) {     \
			once;                               \
			skv_arena_reset(&arena);            \
		}                                           \
		took = (double)(now_ns() - begin) / ROUNDS; \
		out = took < out ? took : out;              \
	}
	TIME(n.write_req, (skv_buf_clear(&text), skv_pb_write_lookup_req(&text, &req, &input)))
	n.req_bytes = text.len;
	TIME(n.read_req,
	     must(skv_pb_read_lookup_req(&in, (char *)text.data, text.len, &got, &err), &err))
	TIME(n.write_res, (skv_buf_clear(&text), skv_pb_write_lookup_res(&text, &res)))
	n.res_bytes = text.len;
	TIME(n.read_res,
	     must(skv_pb_read_lookup_res(&in, (char *)text.data, text.len, &got_res, &err), &err))
	skv_buf_destroy(&text);
	skv_arena_destroy(&arena);
	return n;
}

int main(void)
{
	printf("%-10s %9s %9s %12s %12s %12s %12s\n", "blocks", "request B", "answer B",
	       "req read ns", "ans write ns", "req write ns", "ans read ns");
	for (int scattered = 0; scattered < 2; scattered++) {
		struct numbers n;

		fill(scattered);
		n = measure();
		printf("%-10s %9zu %9zu %12.0f %12.0f %12.0f %12.0f\n",
		       scattered ? "scattered" : "in runs", n.req_bytes, n.res_bytes, n.read_req,
		       n.write_res, n.write_req, n.read_res);
	}
	return 0;
}
