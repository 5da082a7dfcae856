/*
 * test_kvcm.c - keys from tokens, masks, names of places, and locations: what is written from the
 * core's arrays is what the generic codec writes of the same locations as messages.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <skv/kvcm.h>
#include <skv/mem.h>
#include <kvcm/admin.pb-c.h>
#include <kvcm/meta.pb-c.h>

#include "proto_tools.h"
#include "random_message.h"

/* ---- keys ------------------------------------------------------------------------------------ */

static void test_token_keys(void **state)
{
	(void)state;
	static const int64_t one_to_five[] = { 1, 2, 3, 4, 5 };
	static const int64_t of_two[] = { -8366447769517741626, 455111481605203084 };
	static const int64_t of_four[] = { 455133539818735372, -2006179887927315835,
					   792400745231118672, 6878879441880428884 };
	int64_t tokens[16], keys[5] = { 7, 7, 7, 7, 7 };

	kvcm_token_keys(one_to_five, 5, 2, keys);
	assert_memory_equal(keys, of_two, sizeof of_two);
	assert_int_equal(keys[2], 7); /* the fifth token is no block */
	for (int i = 0; i < 16; i++)
		tokens[i] = 100 + i;
	kvcm_token_keys(tokens, 16, 4, keys);
	assert_memory_equal(keys, of_four, sizeof of_four);
	assert_int_equal(keys[4], 7);
	keys[0] = 7;
	kvcm_token_keys(tokens, 3, 4, keys);
	assert_int_equal(keys[0], 7);
	assert_true(kvcm_core_key(-1).hi == 0 && kvcm_core_key(-1).lo == UINT64_MAX);
}

/* ---- masks ----------------------------------------------------------------------------------- */

/* The mask of a request as JSON, of either service. */
static struct kvcm_mask read_mask(struct tools *t, const char *json, bool admin)
{
	ProtobufCMessage *m = tools_read_json(t, admin ? &kvcm_admin__block_mask__descriptor :
							  &kvcm_meta__block_mask__descriptor, json);

	assert_non_null(m);
	return kvcm_mask_of(m);
}

static void test_query_masks(void **state)
{
	(void)state;
	static const struct {
		const char *json;
		const char *skipped; /* of four keys; NULL: refused */
		bool exact_ok;
	} cases[] = {
		{ "{}", "0000", true },
		{ "{\"offset\":0}", "0000", true },
		{ "{\"offset\":1}", "1000", true },
		{ "{\"offset\":4}", "1111", true },
		{ "{\"offset\":5}", "1111", false },
		{ "{\"offset\":2147483647}", "1111", false },
		{ "{\"offset\":-1}", NULL, false },
		{ "{\"offset\":-2147483648}", NULL, false },
		{ "{\"bool_masks\":{\"values\":[true,false,true,false]}}", "1010", true },
		{ "{\"bool_masks\":{\"values\":[false,true]}}", "0100", false },
		{ "{\"bool_masks\":{\"values\":[true,true,true,true,true]}}", "1111", false },
		{ "{\"bool_masks\":{}}", "0000", false },
	};
	struct skv_error err;

	for (size_t i = 0; i < 2 * sizeof cases / sizeof cases[0]; i++) {
		struct tools t;
		struct kvcm_mask m;
		int status;

		tools_open(&t);
		m = read_mask(&t, cases[i / 2].json, i & 1);
		status = kvcm_mask_check(&m, 4, false, &err);
		assert_int_equal(status, cases[i / 2].skipped ? SKV_OK : SKV_E_INVALID);
		assert_int_equal(kvcm_mask_check(&m, 4, true, &err) == SKV_OK,
				 cases[i / 2].exact_ok);
		for (size_t k = 0; status == SKV_OK && k < 4; k++)
			assert_int_equal(kvcm_mask_skips(&m, k), cases[i / 2].skipped[k] == '1');
		tools_close(&t);
	}
	assert_int_equal(kvcm_mask_of(NULL).kind, KVCM_MASK_UNSET);
	assert_int_equal(skv_fail(NULL,
				  kvcm_mask_check(&(struct kvcm_mask){ .kind = KVCM_MASK_OFFSET,
									     .offset = -3 }, 4,
									     false, &err),
				  NULL, "x"), SKV_E_INVALID);
	assert_string_equal(err.field, "block_mask.offset");
}

static void test_finish_masks(void **state)
{
	(void)state;
	struct skv_finish_req req;
	struct skv_error err;
	struct kvcm_mask m;
	struct tools t;

	tools_open(&t);
	m = read_mask(&t, "{\"offset\":3}", false);
	assert_int_equal(kvcm_mask_finish(&m, &t.arena, &req, &err), SKV_OK);
	assert_true(req.mask_kind == SKV_MASK_COUNT && req.mask_count == 3);
	m = read_mask(&t, "{\"offset\":-1}", false);
	assert_int_equal(kvcm_mask_finish(&m, &t.arena, &req, &err), SKV_E_INVALID);
	assert_string_equal(err.field, "success_blocks.offset");
	m = read_mask(&t, "{\"bool_masks\":{\"values\":[true,false,true]}}", false);
	assert_int_equal(kvcm_mask_finish(&m, &t.arena, &req, &err), SKV_OK);
	assert_true(req.mask_kind == SKV_MASK_BITS && req.mask_count == 3);
	assert_true(req.mask[0] && !req.mask[1] && req.mask[2]);
	/* The body that finishes an empty session; and an empty body. */
	m = read_mask(&t, "{\"bool_masks\":{\"offset\":0}}", false);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(kvcm_mask_finish(&m, &t.arena, &req, &err), SKV_OK);
		assert_true(req.mask_kind == SKV_MASK_BITS && req.mask_count == 0);
		m = kvcm_mask_of(NULL);
	}
	tools_close(&t);
}

static void test_answered_masks(void **state)
{
	(void)state;
	/* w: write, e: there already, b: somebody else writes it */
	static const struct {
		const char *outcome, *json;
	} cases[] = {
		{ "", "{\"offset\":0}" },
		{ "www", "{\"offset\":0}" },
		{ "eww", "{\"offset\":1}" },
		{ "ebw", "{\"offset\":2}" },
		{ "eee", "{\"offset\":3}" },
		{ "wee", "{\"bool_masks\":{\"values\":[false,true,true]}}" },
		{ "ewe", "{\"bool_masks\":{\"values\":[true,false,true]}}" },
		{ "wbw", "{\"bool_masks\":{\"values\":[false,true,false]}}" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		uint8_t outcome[8];
		uint32_t n = (uint32_t)strlen(cases[i].outcome);
		struct tools t;

		tools_open(&t);
		for (uint32_t k = 0; k < n; k++)
			outcome[k] = cases[i].outcome[k] == 'w' ? SKV_START_WRITE :
				     cases[i].outcome[k] == 'e' ? SKV_START_EXISTS : SKV_START_BUSY;
		assert_string_equal(
			tools_write_json(&t, kvcm_mask_answer(outcome, n, &t.arena), NULL),
			cases[i].json);
		tools_close(&t);
	}
}

/* ---- names ----------------------------------------------------------------------------------- */

static void test_names(void **state)
{
	(void)state;
	static const char *const specs[] = { "tp0", "tp1", "state" };
	static const char *const want[] = { "state", "tp0", "none", "tp0" };
	char id[KVCM_LOCATION_ID], before[KVCM_LOCATION_ID];

	assert_int_equal(kvcm_storage_type("file"), 4);
	assert_int_equal(kvcm_storage_type("hf3fs"), 1);
	assert_int_equal(kvcm_storage_type("null"), 6);
	assert_int_equal(kvcm_storage_type("other"), 0);
	assert_string_equal(kvcm_scheme("hf3fs"), "hf3fs");
	assert_string_equal(kvcm_core_type(4), "file");
	assert_null(kvcm_core_type(2));
	assert_null(kvcm_core_type(263));
	assert_string_equal(kvcm_status_name(KVCM_SERVING), "CLS_SERVING");
	assert_int_equal(kvcm_columns(NULL, 0, specs, 3), KVCM_ALL_COLUMNS);
	assert_int_equal(kvcm_columns(want, 4, specs, 3), 5);
	assert_int_equal(kvcm_columns(want + 2, 1, specs, 3), 0);
	memset(before, 0, sizeof before);
	for (uint64_t i = 0; i < 1000; i++) {
		kvcm_location_id(i, id);
		for (int k = 0; k < KVCM_LOCATION_ID; k++)
			assert_true((id[k] >= 'a' && id[k] <= 'z') ||
				    (id[k] >= '0' && id[k] <= '9'));
		assert_memory_not_equal(id, before, sizeof id);
		memcpy(before, id, sizeof id);
	}
}

/* ---- locations ------------------------------------------------------------------------------- */

#define FIELD 2

static const char *const spec_names[] = { "tp0", "tp1", "full:g=0", "state \"x\"" };
static struct skv_file_ref refs[] = {
	{ .storage = "nfs_01", .type = "file", .path = "skv-1/000001.slab" },
	{ .storage = "st3", .type = "hf3fs", .path = "skv-2/000001.slab" },
	{ .storage = "st3", .type = "hf3fs", .path = "skv-2/000002.slab" },
	{ .storage = "zero", .type = "null", .path = "x" },
};
static const char *roots[] = { "/tmp/nfs/", "/mnt/3fs/kv", "/mnt/3fs/kv", "" };
static struct skv_files files = { refs, 4 };

/* Computes the expected header, in the slow way. */
static KvcmMeta__CacheLocation *expected(struct tools *t, const struct kvcm_locations *l,
					 uint32_t i)
{
	uint32_t row = l->rows ? l->rows[i] : i,
		 columns = l->row_columns ? l->row_columns[row] : l->columns;
	KvcmMeta__CacheLocation *to =
		skv_proto_make(&kvcm_meta__cache_location__descriptor, &t->arena);
	const struct skv_location *loc = l->loc + row * l->n_specs, *first = NULL;
	char text[512];

	to->location_specs = skv_arena_calloc(&t->arena, l->n_specs, sizeof *to->location_specs);
	for (uint32_t s = 0; s < l->n_specs && !first; s++)
		first = loc[s].length ? &loc[s] : NULL;
	if (l->hit && !l->hit[row])
		first = NULL;
	for (uint32_t s = 0; s < l->n_specs; s++) {
		KvcmMeta__LocationSpec *spec =
			skv_proto_make(&kvcm_meta__location_spec__descriptor, &t->arena);

		if (!(columns >> s & 1) ||
		    (first ? loc[s].length == 0 : l->miss == KVCM_MISS_EMPTY))
			continue;
		spec->name = (char *)l->specs[s];
		if (first) {
			const struct skv_file_ref *f = &refs[loc[s].file];

			snprintf(text, sizeof text, "%s://%s%s%s/%s?blkid=%llu&size=%llu",
				 strcmp(f->type, "null") == 0 ? "dummy" : f->type, f->storage,
				 loc[s].file == 0 ? "/tmp/nfs" : roots[loc[s].file], "", f->path,
				 (unsigned long long)(loc[s].offset / loc[s].length),
				 (unsigned long long)loc[s].length);
			spec->uri = skv_arena_strndup(&t->arena, text, strlen(text));
		}
		to->location_specs[to->n_location_specs++] = spec;
	}
	to->spec_size = (int32_t)to->n_location_specs;
	if (first) {
		to->type = (KvcmMeta__StorageType)kvcm_storage_type(refs[first->file].type);
		to->id = skv_arena_calloc(&t->arena, 1, KVCM_LOCATION_ID + 1);
		kvcm_location_id(first->generation, to->id);
		to->status =
			(char *)kvcm_status_name(l->row_status ? l->row_status[row] : l->status);
		to->create_time =
			(int64_t)(l->row_created_ms ? l->row_created_ms[row] : l->created_ms) *
			1000;
	}
	return to;
}

/* The messages that the splice stands for. */
static ProtobufCMessage *expected_all(struct tools *t, const struct kvcm_locations *l)
{
	KvcmMeta__GetCacheLocationResponse *plain =
		skv_proto_make(&kvcm_meta__get_cache_location_response__descriptor, &t->arena);
	KvcmMeta__GetCacheLocationsByBackendResponse *vectors = skv_proto_make(
		&kvcm_meta__get_cache_locations_by_backend_response__descriptor, &t->arena);

	plain->locations = skv_arena_calloc(&t->arena, l->n + 1, sizeof *plain->locations);
	vectors->key_locations =
		skv_arena_calloc(&t->arena, l->n + 1, sizeof *vectors->key_locations);
	plain->n_locations = vectors->n_key_locations = l->n;
	for (uint32_t i = 0; i < l->n; i++) {
		KvcmMeta__CacheLocationVector *v =
			skv_proto_make(&kvcm_meta__cache_location_vector__descriptor, &t->arena);

		plain->locations[i] = expected(t, l, i);
		v->locations = &plain->locations[i];
		v->n_locations = plain->locations[i]->id[0] != '\0';
		vectors->key_locations[i] = v;
	}
	return l->vectors ? &vectors->base : &plain->base;
}

static void compare(struct tools *t, const struct kvcm_locations *l)
{
	ProtobufCMessage *want = expected_all(t, l),
			 *empty = skv_proto_make(want->descriptor, &t->arena), *read;
	struct skv_proto_splice splice = { FIELD, kvcm_locations_json, kvcm_locations_binary, l,
					   NULL };
	char *text = strdup(tools_write_json(t, want, NULL));
	size_t n, n_spliced;
	uint8_t *bytes;

	assert_string_equal(tools_write_json(t, empty, &splice), text);
	bytes = (uint8_t *)tools_write_binary(t, want, &n);
	bytes = memcpy(malloc(n + 1), bytes, n);
	skv_buf_clear(&t->out);
	skv_proto_binary.write(empty, &splice, &t->out);
	n_spliced = t->out.len;
	assert_int_equal(n, n_spliced);
	assert_memory_equal(bytes, t->out.data, n);
	memcpy(bytes, t->out.data, n);
	read = tools_read(t, &skv_proto_binary, want->descriptor, bytes, n);
	assert_string_equal(tools_write_json(t, read, NULL), text);
	free(bytes);
	free(text);
}

static void test_one_location(void **state)
{
	(void)state;
	struct skv_location loc[] =
		{ { .file = 0, .offset = 3 << 21, .length = 1 << 21, .generation = 5 },
				      { .file = 1, .offset = 7 * 512, .length = 512,
					.generation = 6 } };
	struct kvcm_locations l = { .field = FIELD, .files = &files, .roots = roots, .n_specs = 2,
				    .specs = spec_names, .loc = loc, .columns = KVCM_ALL_COLUMNS,
				    .n = 1,
				    .status = KVCM_SERVING, .created_ms = 1760000000123 };
	char id[KVCM_LOCATION_ID + 1] = "", want[1024];
	struct tools t;

	tools_open(&t);
	kvcm_location_id(5, id);
	snprintf(
		want, sizeof want,
		"[{\"type\":\"ST_NFS\",\"spec_size\":2,\"location_specs\":[{\"name\":\"tp0\","
		"\"uri\":\"file://nfs_01/tmp/nfs/skv-1/000001.slab?blkid=3&size=2097152\","
		"\"node_id\":\"\"},{\"name\":\"tp1\",\"uri\":\"hf3fs://st3/mnt/3fs/kv/skv-2/"
		"000001.slab?blkid=7&size=512\",\"node_id\":\"\"}],\"id\":\"%s\","
		"\"status\":\"CLS_SERVING\",\"create_time\":\"1760000000123000\"}]",
		id);
	kvcm_locations_json(&l, &t.out);
	skv_put_u8(&t.out, 0);
	assert_string_equal((char *)t.out.data, want);
	tools_close(&t);
}

static void test_random_locations(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 2000; seed++) {
		struct tools t;
		struct dice d = { seed, &t.arena };
		uint32_t n_specs = 1 + dice_below(&d, 4), rows = dice_below(&d, 6);
		struct skv_location loc[24] = { { 0 } };
		uint32_t row_columns[6], picked[6];
		uint64_t created[6];
		uint8_t status[6];
		bool hit[6];
		struct kvcm_locations l = { .field = FIELD, .vectors = dice_below(&d, 2),
					    .miss = dice_below(&d, 2) ? KVCM_MISS_EMPTY
						    : KVCM_MISS_PLACEHOLDER,
					    .files = &files, .roots = roots, .n_specs = n_specs,
					    .specs = spec_names, .loc = loc, .n = rows,
					    .columns = dice_below(&d, 2) ? KVCM_ALL_COLUMNS
						    : dice_below(&d, 16),
					    .status = KVCM_WRITING,
					    .created_ms = dice_below(&d, 2) };

		tools_open(&t);
		for (uint32_t i = 0; i < rows * n_specs; i++) {
			uint64_t length = dice_below(&d, 4) ? 4096 : 1 + dice_below(&d, 1 << 20);

			loc[i] = (struct skv_location){
				.file = dice_below(&d, 4),
				.offset = length * (dice_roll(&d) >> dice_below(&d, 24) >> 40),
				.length = dice_below(&d, 5) ? length : 0,
				.generation = dice_roll(&d),
			};
		}
		for (uint32_t i = 0; i < rows; i++) {
			row_columns[i] = dice_below(&d, 16);
			picked[i] = dice_below(&d, rows);
			created[i] = dice_roll(&d) >> 20;
			status[i] = (uint8_t)dice_below(&d, 5);
			hit[i] = dice_below(&d, 3);
		}
		l.row_columns = dice_below(&d, 3) ? NULL : row_columns;
		l.rows = dice_below(&d, 2) ? NULL : picked;
		l.row_created_ms = dice_below(&d, 2) ? NULL : created;
		l.row_status = dice_below(&d, 2) ? NULL : status;
		l.hit = dice_below(&d, 2) ? NULL : hit;
		compare(&t, &l);
		tools_close(&t);
	}
}

/* Without memory the buffer has failed, in both forms, at whatever allocation. */
static void test_no_memory(void **state)
{
	(void)state;
	struct skv_location loc[] = { { .file = 0, .offset = 0, .length = 512, .generation = 5 },
				      { .length = 0 } };
	struct kvcm_locations l = { .field = FIELD, .files = &files, .roots = roots, .n_specs = 1,
				    .specs = spec_names, .loc = loc, .columns = KVCM_ALL_COLUMNS,
				    .n = 2 };

	for (int json = 0; json < 2; json++) {
		bool failed = true;

		for (unsigned long n = 1; failed; n++) {
			struct skv_buf out = { 0 };

			skv_mem_fail_at(n);
			if (json)
				kvcm_locations_json(&l, &out);
			else
				kvcm_locations_binary(&l, &out);
			failed = skv_mem_count() >= n;
			skv_mem_fail_at(0);
			assert_int_equal(out.failed, failed);
			skv_buf_destroy(&out);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_token_keys),	cmocka_unit_test(test_query_masks),
		cmocka_unit_test(test_finish_masks),	cmocka_unit_test(test_answered_masks),
		cmocka_unit_test(test_names),		cmocka_unit_test(test_one_location),
		cmocka_unit_test(test_random_locations), cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
