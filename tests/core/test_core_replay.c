/*
 * test_core_replay.c - stored records that are damaged, cut, repeated or made up.
 * Whatever the journal holds, loading answers with a result: never a crash, never a
 * partition that does not add up.
 *
 * Damage is done behind the checksums: the records' own are made right again, so
 * that the decoders see it.
 */
#include "core_env.h"

#include <stdlib.h>
#include <string.h>

#include <model/partition.h>
#include <journal/record.h>
#include <journal/replay.h>
#include <recovery/checkpoint.h>
#include <recovery/load.h>
#include <recovery/recover.h>
#include <admin/check.h>

struct saved {
	struct skv_buf b; /* all slices and batches, one after another */
	size_t at[256];   /* where each record begins */
	uint32_t n;
};

static int keep(void *ctx, uint64_t seq, const void *bytes, size_t n)
{
	struct saved *s = ctx;
	size_t at = 0, len;

	(void)seq;
	while (at < n && (len = record_length((const uint8_t *)bytes + at, n - at)) != 0) {
		assert_true(s->n < 256);
		s->at[s->n++] = s->b.len;
		skv_put_bytes(&s->b, (const uint8_t *)bytes + at, len);
		at += len;
	}
	return SKV_OK;
}

static int keep_slice(void *ctx, uint32_t number, const void *bytes, size_t n)
{
	return keep(ctx, number, bytes, n);
}

/* Pages that are settled in two goes, and some that stay open. */
static void make_pages(struct env *e)
{
	struct skv_storage_spec st = { .name = "p", .type = "external", .root = "", .capacity = 100,
				       .enabled = true };
	struct skv_spec spec = { "page", 1 };
	struct skv_key k[8];
	uint64_t page[8];
	struct skv_start_res s;
	struct skv_partial_req q = { .tenant = "t", .instance = "pages", .keys = k,
				     .offsets = page };
	struct skv_partial_res r;

	assert_int_equal(skv_cluster_storage_put(e->cluster, &st, SKV_PUT_ANY, NULL, &e->err),
			 SKV_OK);
	assert_int_equal(env_group(e, "p", 0, "p"), SKV_OK);
	assert_int_equal(env_instance(e, "pages", "p", &spec, 1), SKV_OK);
	for (uint64_t round = 0; round < 2; round++) {
		env_keys(k, 8, 5 + round, 1);
		assert_int_equal(env_start(e,
					   &(struct env_start){ .instance = "pages", .keys = k,
								.n = 8, .fit = true,
								   .anonymous = true,
								   .grace_ms = 1500 }, &s), SKV_OK);
		for (uint32_t i = 0; i < 8; i++)
			page[i] = s.loc[i].offset;
		q.n_commit = 3;
		q.give_up = page + 3;
		q.n_give_up = 2;
		assert_int_equal(env_partial(e, &q, &r), SKV_OK);
		assert_int_equal(r.committed + r.given_up, 5);
	}
	q.n_commit = 8;
	q.n_give_up = 0;
	assert_int_equal(env_partial(e, &q, &r), SKV_OK);
	assert_int_equal(r.committed, 3);
}

/* Every kind of record that there is. */
static void make_records(struct env *e, struct saved *journal, struct saved *slices)
{
	struct skv_load_sink sink = { keep_slice, keep, journal };
	struct skv_spec specs[2] = { { "a", 4096 }, { "b", 8192 } };
	struct skv_key k[8], parent = { 77, 1 };
	struct skv_start_res s;
	struct skv_finish_res f;
	const uint32_t first[4] = { 1, 2, 3, 1 }, second[4] = { 3, 3, 3, 2 };
	bool mask[8] = { true, false, true, true, true, true, true, true };
	char session[33];
	uint64_t base;
	uint32_t n;

	env_make(e, 4 << 20, 65536, 4096);
	assert_int_equal(env_instance(e, "two", "g", specs, 2), SKV_OK);
	env_keys(k, 8, 1, 1);
	assert_int_equal(env_start(e, &(struct env_start){ .keys = k, .n = 8, .parent = &parent,
							   .request_id = "x" }, &s),
			 SKV_OK);
	memcpy(session, s.session, 33);
	assert_int_equal(env_finish_mask(e, session, mask, 8, false, &f), SKV_OK);
	assert_int_equal(env_delete(e, k + 2, 2, &n), SKV_OK);
	env_keys(k, 8, 2, 1);
	assert_int_equal(env_start(e, &(struct env_start){ .instance = "two", .keys = k, .n = 8 },
				   &s), SKV_OK);
	memcpy(session, s.session, 33);
	assert_int_equal(env_abort(e, session, false), SKV_OK);
	env_keys(k, 8, 3, 1);
	assert_int_equal(env_start(e, &(struct env_start){ .instance = "two", .keys = k, .n = 8 },
				   &s), SKV_OK);
	env_keys(k, 8, 4, 1); /* two writers of one chain */
	assert_int_equal(env_start(e, &(struct env_start){ .instance = "two", .keys = k, .n = 4,
							   .key_specs = first }, &s), SKV_OK);
	assert_int_equal(env_start(e, &(struct env_start){ .instance = "two", .keys = k, .n = 4,
							   .key_specs = second }, &s), SKV_OK);
	memcpy(session, s.session, 33);
	assert_int_equal(env_finish_mask(e, session, mask, s.n_write, true, &f), SKV_OK);
	make_pages(e);
	assert_int_equal(skv_store_load(e->store, 0, &base, &sink, &e->err), SKV_OK);
	assert_int_equal(checkpoint_run(e->core, false, &e->err), SKV_OK);
	sink.ctx = slices;
	assert_int_equal(skv_store_load(e->store, 0, &base, &sink, &e->err), SKV_OK);
	assert_true(journal->n > 5 && slices->n > 5);
}

static void tell(void *ctx, const char *text)
{
	(void)ctx;
	print_error("%s\n", text);
}

static int replay(struct env *e, const void *bytes, size_t n, bool *adds_up)
{
	struct partition *p = loading_make(e->core);
	struct skv_error err = { 0 };
	struct replay r = { .p = p, .now = skv_now_ms(e->core->clock) };
	int rc;

	assert_non_null(p);
	assert_int_equal(registry_load(p, &err), SKV_OK);
	rc = replay_close(&r, replay_records(&r, bytes, n, &err), &err);
	*adds_up = rc != SKV_OK || partition_check(p, tell, NULL) == 0;
	partition_destroy(p);
	return rc;
}

static void seal(uint8_t *record)
{
	struct skv_rd in = skv_rd_make(record, 4);
	uint32_t n = skv_get_u32(&in);
	uint64_t sum = skv_checksum(record + 4, n);

	for (int i = 0; i < 8; i++)
		record[4 + n + i] = (uint8_t)(sum >> (8 * i));
}

static void damage_one_byte(struct env *e, const struct saved *s, unsigned *seed, uint64_t *refused)
{
	uint8_t *copy = malloc(s->b.len);
	uint32_t no = (uint32_t)rand_r(seed) % s->n;
	size_t begin = s->at[no], end = no + 1 < s->n ? s->at[no + 1] : s->b.len;
	size_t at = begin + 8 + (size_t)rand_r(seed) % (end - begin - 16 + 1);
	bool adds_up;
	int rc;

	assert_non_null(copy);
	memcpy(copy, s->b.data, s->b.len);
	if (at < end - 8)
		copy[at] = rand_r(seed) % 3 ? (uint8_t)(copy[at] ^ 1 << rand_r(seed) % 8)
					    : (uint8_t)rand_r(seed);
	seal(copy + begin);
	rc = replay(e, copy, s->b.len, &adds_up);
	assert_true(adds_up);
	*refused += rc != SKV_OK;
	if (rc != SKV_OK && rc != SKV_E_CORRUPT && rc != SKV_E_UNSUPPORTED)
		fail_msg("record %u, byte %zu: %s", no, at - begin, skv_status_name(rc));
	free(copy);
}

static void reorder(struct env *e, const struct saved *s, unsigned *seed, uint64_t *refused)
{
	struct skv_buf b = { 0 };
	bool adds_up;
	int rc;

	for (uint32_t i = 0; i < s->n; i++) {
		uint32_t no = rand_r(seed) % 4 ? i : (uint32_t)rand_r(seed) % s->n;
		size_t end = no + 1 < s->n ? s->at[no + 1] : s->b.len;

		skv_put_bytes(&b, s->b.data + s->at[no], end - s->at[no]);
	}
	rc = replay(e, b.data, b.len, &adds_up);
	assert_true(adds_up);
	*refused += rc != SKV_OK;
	assert_true(rc == SKV_OK || rc == SKV_E_CORRUPT);
	skv_buf_destroy(&b);
}

static void damaged_records(void **state)
{
	struct saved journal = { 0 }, slices = { 0 };
	uint64_t refused = 0;
	unsigned seed = 4711;
	struct env e;
	bool adds_up;

	(void)state;
	env_init(&e);
	e.o.grace_max_ms = 3000;
	env_open(&e);
	make_records(&e, &journal, &slices);
	assert_int_equal(replay(&e, journal.b.data, journal.b.len, &adds_up), SKV_OK);
	assert_true(adds_up);
	assert_int_equal(replay(&e, slices.b.data, slices.b.len, &adds_up), SKV_OK);
	assert_true(adds_up);
	for (int i = 0; i < 3000; i++) {
		damage_one_byte(&e, &journal, &seed, &refused);
		damage_one_byte(&e, &slices, &seed, &refused);
		reorder(&e, &journal, &seed, &refused);
		reorder(&e, &slices, &seed, &refused);
	}
	print_message("%llu of 12000 damaged histories were refused\n",
		      (unsigned long long)refused);
	assert_true(refused > 1000);
	skv_buf_destroy(&journal.b);
	skv_buf_destroy(&slices.b);
	env_destroy(&e);
}

static void cut_records(void **state)
{
	struct saved journal = { 0 }, slices = { 0 };
	struct env e;
	bool adds_up;

	(void)state;
	env_init(&e);
	env_open(&e);
	make_records(&e, &journal, &slices);
	for (size_t n = 0; n < journal.b.len; n++) {
		int rc = replay(&e, journal.b.data, n, &adds_up);
		bool whole = n == 0;

		for (uint32_t i = 0; i < journal.n; i++)
			whole |= journal.at[i] == n;
		assert_int_equal(rc, whole ? SKV_OK : SKV_E_CORRUPT);
		/* any prefix of the journal is a consistent state */
		assert_true(!whole || adds_up);
	}
	skv_buf_destroy(&journal.b);
	skv_buf_destroy(&slices.b);
	env_destroy(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(damaged_records),
		cmocka_unit_test(cut_records),
	};

	env_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
