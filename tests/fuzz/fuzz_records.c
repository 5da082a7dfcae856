/*
 * fuzz_records.c - any records into recovery: what the journal's batches and the
 * checkpoint's slices consist of.
 *
 * The input is a sequence of (u8 type, u16 length, payload). Each is framed and sealed as a record,
 * so that the decoders behind the checksum are reached, and all are replayed into a fresh part of a
 * partition that has a storage and two instances. Whatever they say, replay answers with a status,
 * and a partition that it accepts adds up.
 *
 * With SKV_CORPUS=DIR in the environment it writes the records of a small partition there first:
 * that is how corpus/records was made.
 */
#include "../core/core_env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <journal/record.h>
#include <journal/replay.h>
#include <recovery/checkpoint.h>
#include <recovery/load.h>
#include <recovery/recover.h>
#include <admin/check.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct env env;

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

/* ---- corpus ---------------------------------------------------------------------------------- */

struct corpus {
	const char *dir;
	unsigned n;
};

static void save(struct corpus *c, const uint8_t *input, size_t n)
{
	char path[400];
	FILE *f;

	snprintf(path, sizeof path, "%s/%03u", c->dir, c->n++);
	f = fopen(path, "wb");
	must(f && fwrite(input, 1, n, f) == n, "cannot write the corpus");
	fclose(f);
}

/* A batch or a slice as one input, if it is short. */
static int save_records(void *ctx, uint64_t seq, const void *bytes, size_t n)
{
	const uint8_t *at = bytes;
	uint8_t input[4096];
	size_t used = 0, len;

	(void)seq;
	for (; n > 0 && (len = record_length(at, n)) != 0; at += len, n -= len) {
		size_t payload = len - 16;

		if (used + 3 + payload > sizeof input)
			break;
		input[used] = at[4];
		input[used + 1] = (uint8_t)payload;
		input[used + 2] = (uint8_t)(payload >> 8);
		memcpy(input + used + 3, at + 8, payload);
		used += 3 + payload;
	}
	if (used)
		save(ctx, input, used);
	return SKV_OK;
}

static int save_slice(void *ctx, uint32_t number, const void *bytes, size_t n)
{
	return save_records(ctx, number, bytes, n);
}

static void write_corpus(const char *dir)
{
	struct corpus c = { .dir = dir };
	struct skv_load_sink sink = { save_slice, save_records, &c };
	struct skv_key k[6], parent = { 77, 1 };
	struct skv_start_res s;
	struct skv_finish_res f;
	struct skv_pin_res pinned;
	bool mask[6] = { true, false, true, true, true, true };
	uint64_t sums[6] = { 1, 2, 3, 4, 5, 6 }, base;
	char session[33];
	uint32_t n;

	env_keys(k, 6, 1, 1);
	must(env_start(&env, &(struct env_start){ .keys = k, .n = 6, .parent = &parent,
						  .request_id = "x" }, &s) == 0, "");
	memcpy(session, s.session, sizeof session);
	must(env_finish_mask(&env, session, mask, 6, false, &f) == SKV_OK, "");
	must(env_delete(&env, k + 2, 2, &n) == SKV_OK, "");
	env_keys(k, 6, 2, 1);
	must(env_start(&env, &(struct env_start){ .keys = k, .n = 6 }, &s) == SKV_OK, "");
	memcpy(session, s.session, sizeof session);
	must(env_finish(&env, session, sums, 6, &f) == SKV_OK, "");
	must(env_pin(&env, k, 3, SKV_PIN_HARD, 0, &pinned) == SKV_OK &&
		     env_pin(&env, k + 2, 3, SKV_PIN_SOFT, 9000, &pinned) == SKV_OK,
	     "");
	env_keys(k, 6, 3, 1);
	must(env_start(&env, &(struct env_start){ .instance = "two", .keys = k, .n = 6 }, &s) ==
	  SKV_OK, "");
	memcpy(session, s.session, sizeof session);
	must(env_abort(&env, session, false) == SKV_OK, "");
	must(env_start(&env, &(struct env_start){ .instance = "two", .keys = k, .n = 6 }, &s) ==
	  SKV_OK, "");
	must(skv_store_load(env.store, 0, &base, &sink, &env.err) == SKV_OK, "");
	must(checkpoint_run(env.core, false, &env.err) == SKV_OK, "");
	must(skv_store_load(env.store, 0, &base, &sink, &env.err) == SKV_OK, "");
}

/* ---- one input ------------------------------------------------------------------------------- */

static void begin(void)
{
	struct skv_spec specs[2] = { { "a", 4096 }, { "b", 8192 } };
	const char *dir = getenv("SKV_CORPUS");

	env_quiet();
	env_init(&env);
	env_open(&env);
	env_make(&env, 1 << 20, 65536, 4096);
	must(env_instance(&env, "two", "g", specs, 2) == SKV_OK, "no instance");
	if (dir)
		write_corpus(dir);
}

static void frame(struct skv_buf *out, uint8_t type, const uint8_t *payload, size_t n)
{
	size_t at = out->len;

	skv_put_u32(out, (uint32_t)n + 4);
	skv_put_u8(out, type);
	skv_put_u8(out, 1);
	skv_put_u16(out, 0);
	skv_put_bytes(out, payload, n);
	skv_put_u64(out, skv_checksum(out->data + at + 4, n + 4));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct skv_buf records = { 0 };
	struct skv_error err = { 0 };
	struct replay r;
	int rc;

	if (!env.core)
		begin();
	while (size >= 3) {
		size_t n = data[1] | (size_t)data[2] << 8;

		n = n < size - 3 ? n : size - 3;
		frame(&records, data[0], data + 3, n);
		data += 3 + n;
		size -= 3 + n;
	}
	r = (struct replay){ .p = loading_make(env.core), .now = skv_now_ms(env.core->clock) };
	must(r.p && !records.failed && registry_load(r.p, &err) == SKV_OK, "no part");
	rc = replay_records(&r, records.data, records.len, &err);
	rc = replay_close(&r, rc, &err);
	must(rc != SKV_OK || partition_check(r.p, NULL, NULL) == 0,
	     "a part that was accepted does not add up");
	must(rc == SKV_OK || rc == SKV_E_CORRUPT || rc == SKV_E_NOMEM || rc == SKV_E_UNSUPPORTED,
	     "an odd status");
	partition_destroy(r.p);
	skv_buf_destroy(&records);
	return 0;
}
