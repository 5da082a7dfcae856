/*
 * test_v1_objects.c - storages, groups, instances and errors: what is written is read back the
 * same, defaults are as documented, and the views for people are JSON with the right fields.
 */
#include "trip.h"

#include <skv/v1_pb.h>

/* The JSON of an object's spec, as the client makes it of the protobuf of its view. */
static void write_spec(struct trip *t, const char *schema, const void *view)
{
	struct skv_buf pb = { 0 };

	skv_pb_write_named(schema, &pb, view);
	assert_int_equal(skv_v1_change(&t->in, schema, &pb, "{}", &t->text, &t->err), SKV_OK);
	skv_buf_destroy(&pb);
}

static struct skv_storage_spec any_storage(struct trip *t)
{
	struct skv_storage_spec s = { .name = any_name(t, 0), .type = below(t, 2) ? "file" : "null",
				      .root = "", .enabled = below(t, 2), .draining = below(t, 2) };
	char *root = made(t, 1, SKV_MAX_ROOT + 1);

	root[0] = '/';
	snprintf(root + 1, SKV_MAX_ROOT, "%s", any_text(t, below(t, 2) ? 40 : SKV_MAX_ROOT - 1));
	if (strcmp(s.type, "file") == 0 || below(t, 2))
		s.root = root;
	s.unit = below(t, 2) ? 0 : 1ull << below(t, 64);
	s.capacity = s.unit ? s.unit * (1 + below(t, 2)) : any64(t);
	if (s.capacity == 0) /* also 2^63 twice */
		s.capacity = s.unit ? s.unit : 1;
	s.file_size = any64(t);
	s.client_root = any_text(t, below(t, 2) ? 0 : SKV_MAX_ROOT);
	s.client_mount = any_text(t, below(t, 2) ? 0 : 40);
	s.extra = any_text(t, below(t, 2) ? 0 : SKV_MAX_EXTRA);
	s.chunk_size = any64(t);
	s.any_mount = below(t, 2);
	s.n_fs_master = below(t, SKV_MAX_FS_MASTERS + 1);
	s.fs_master = made(t, s.n_fs_master + 1, sizeof *s.fs_master);
	for (uint32_t i = 0; i < s.n_fs_master; i++) {
		char *url = made(t, 1, SKV_MAX_URL + 1);

		snprintf(url, SKV_MAX_URL + 1, "u%s", any_text(t, 40));
		((const char **)s.fs_master)[i] = url;
	}
	return s;
}

static void same_storage(const struct skv_storage_spec *a, const struct skv_storage_spec *b)
{
	assert_string_equal(a->type, b->type);
	assert_string_equal(a->root, b->root);
	same(a->capacity, b->capacity);
	same(a->file_size, b->file_size);
	same(a->unit, b->unit);
	same(a->enabled, b->enabled);
	same(a->draining, b->draining);
	assert_string_equal(a->client_root, b->client_root);
	assert_string_equal(a->client_mount, b->client_mount);
	assert_string_equal(a->extra, b->extra);
	same(a->chunk_size, b->chunk_size);
	same(a->any_mount, b->any_mount);
	same(a->n_fs_master, b->n_fs_master);
	for (uint32_t i = 0; i < a->n_fs_master; i++)
		assert_string_equal(a->fs_master[i], b->fs_master[i]);
}

static void test_storage(void **state)
{
	(void)state;
	for (uint64_t round = 0; round < ROUNDS; round++) {
		struct skv_storage_view v = { .problem = "" };
		struct skv_storage_spec got;
		struct trip t;

		trip_begin(&t, round);
		v.spec = any_storage(&t);
		any_uuid(&t, v.uuid);
		write_spec(&t, "StorageView", &v);
		read_back(&t, skv_v1_read_storage, &got);
		same_storage(&v.spec, &got);
		assert_null(got.name);
		trip_end(&t);
	}
}

static void test_storage_view(void **state)
{
	(void)state;
	for (uint64_t round = 0; round < ROUNDS; round++) {
		struct skv_storage_view v = { .problem = "" }, got;
		struct trip t;

		trip_begin(&t, round);
		v.spec = any_storage(&t);
		any_uuid(&t, v.uuid);
		v.healthy = below(&t, 2);
		v.problem = any_text(&t, 200);
		v.files = any32(&t);
		v.draining_files = any32(&t);
		v.bad_files = any32(&t);
		v.file_bytes = any64(&t);
		v.assigned_bytes = any64(&t);
		v.used_bytes = any64(&t);
		v.quarantined_bytes = any64(&t);
		v.free_bytes = any64(&t);
		v.available_bytes = any64(&t);
		v.fs_free_bytes = any64(&t);
		skv_pb_write_storage_view(&t.text, &v);
		read_back(&t, skv_pb_read_storage_view, &got);
		same_storage(&v.spec, &got.spec);
		assert_string_equal(v.spec.name, got.spec.name);
		assert_string_equal(v.uuid, got.uuid);
		same(v.healthy, got.healthy);
		assert_string_equal(v.problem, got.problem);
		same(v.files, got.files);
		same(v.draining_files, got.draining_files);
		same(v.bad_files, got.bad_files);
		same(v.file_bytes, got.file_bytes);
		same(v.assigned_bytes, got.assigned_bytes);
		same(v.used_bytes, got.used_bytes);
		same(v.quarantined_bytes, got.quarantined_bytes);
		same(v.free_bytes, got.free_bytes);
		same(v.available_bytes, got.available_bytes);
		same(v.fs_free_bytes, got.fs_free_bytes);
		trip_end(&t);
	}
}

static struct skv_group_spec any_group(struct trip *t)
{
	bool loose = below(t, 2);
	struct skv_group_spec g = { .name = any_name(t, 0), .capacity = any64(t),
				    .n_storages = !loose + below(t, 9),
				    .loose_storages = loose,
				    .n_quotas = below(t, SKV_MAX_QUOTAS + 1) };
	struct skv_type_quota *quotas = made(t, g.n_quotas + 1, sizeof *quotas);

	g.storages = any_names(t, g.n_storages);
	for (uint32_t i = 0; i < g.n_quotas; i++)
		quotas[i] = (struct skv_type_quota){ any_name(t, i), any64(t), any64(t) };
	g.quotas = quotas;
	g.max_blocks = any64(t);
	g.max_instances = any32(t);
	g.reclaim_bytes = any64(t);
	g.reclaim_blocks = any64(t);
	g.reclaim_step_bytes = any64(t);
	g.reclaim_step_percent = below(t, 101);
	g.reclaim_period_ms = any32(t);
	g.max_idle_ms = any64(t);
	g.policy = below(t, 2) ? "" : any_name(t, 0);
	g.ttl_ms = any64(t);
	g.version = any64(t);
	g.tier_of = below(t, 2) ? "" : any_name(t, 0);
	g.write_through = below(t, 2);
	g.promote_after = below(t, SKV_MAX_PROMOTE + 1);
	g.replicate = below(t, 2);
	g.extra = any_text(t, below(t, 2) ? 0 : SKV_MAX_EXTRA);
	return g;
}

static void same_group(const struct skv_group_spec *a, const struct skv_group_spec *b)
{
	same(a->capacity, b->capacity);
	same_names(a->storages, a->n_storages, b->storages, b->n_storages);
	same(a->loose_storages, b->loose_storages);
	same(a->n_quotas, b->n_quotas);
	for (uint32_t i = 0; i < a->n_quotas; i++) {
		assert_string_equal(a->quotas[i].type, b->quotas[i].type);
		same(a->quotas[i].capacity, b->quotas[i].capacity);
		same(a->quotas[i].reclaim, b->quotas[i].reclaim);
	}
	same(a->max_blocks, b->max_blocks);
	same(a->max_instances, b->max_instances);
	same(a->reclaim_bytes, b->reclaim_bytes);
	same(a->reclaim_blocks, b->reclaim_blocks);
	same(a->reclaim_step_bytes, b->reclaim_step_bytes);
	same(a->reclaim_step_percent, b->reclaim_step_percent);
	same(a->reclaim_period_ms, b->reclaim_period_ms);
	same(a->max_idle_ms, b->max_idle_ms);
	assert_string_equal(a->policy, b->policy);
	same(a->ttl_ms, b->ttl_ms);
	same(a->version, b->version);
	assert_string_equal(a->extra, b->extra);
	assert_string_equal(a->tier_of, b->tier_of);
	same(a->write_through, b->write_through);
	same(a->promote_after, b->promote_after);
	same(a->replicate, b->replicate);
}

/* Through the codec that is not JSON, too. */
static void test_objects_in_protobuf(void **state)
{
	(void)state;
	for (uint64_t round = 0; round < ROUNDS; round++) {
		struct skv_storage_spec s, got_s;
		struct skv_group_spec g, got_g;
		struct trip t;

		trip_begin(&t, round);
		s = any_storage(&t);
		skv_pb_write_storage(&t.text, &s);
		read_back(&t, skv_pb_read_storage, &got_s);
		same_storage(&s, &got_s);
		skv_buf_clear(&t.text);
		g = any_group(&t);
		skv_pb_write_group(&t.text, &g);
		read_back(&t, skv_pb_read_group, &got_g);
		same_group(&g, &got_g);
		trip_end(&t);
	}
}

static void test_group(void **state)
{
	(void)state;
	for (uint64_t round = 0; round < ROUNDS; round++) {
		struct skv_group_spec got;
		struct skv_group_view v, seen;
		struct trip t;

		trip_begin(&t, round);
		v.spec = any_group(&t);
		v.fast = any_name(&t, 0);
		v.used_bytes = any64(&t);
		v.blocks = any64(&t);
		write_spec(&t, "GroupView", &v);
		read_back(&t, skv_v1_read_group, &got);
		assert_null(got.name);
		same_group(&v.spec, &got);

		skv_buf_clear(&t.text);
		skv_pb_write_group_view(&t.text, &v);
		read_back(&t, skv_pb_read_group_view, &seen);
		assert_string_equal(v.spec.name, seen.spec.name);
		same_group(&v.spec, &seen.spec);
		same(v.used_bytes, seen.used_bytes);
		same(v.blocks, seen.blocks);
		assert_string_equal(v.fast, seen.fast);
		trip_end(&t);
	}
}

static struct skv_instance_spec any_instance(struct trip *t)
{
	uint32_t n = below(t, 4) ? 1 + below(t, 3) : SKV_MAX_SPECS;
	struct skv_spec *specs = made(t, n, sizeof *specs);

	for (uint32_t i = 0; i < n; i++) {
		specs[i].name = any_name(t, i);
		specs[i].size = below(t, 2)   ? 1 + any32(t)
				: below(t, 2) ? SKV_MIN_SPEC_SIZE
					      : SKV_MAX_SPEC_SIZE;
		if (specs[i].size == 0)
			specs[i].size = 1;
	}
	return (struct skv_instance_spec){ .tenant = "default", .id = any_name(t, 0),
					   .group = any_name(t, 1),
					   .block_tokens = any32(t), .specs = specs, .n_specs = n,
					   .extra = any_text(t, below(t, 2) ? 0 : SKV_MAX_EXTRA),
					   .numbered = below(t, 2), .named = below(t, 2),
					   .weight = below(t, SKV_MAX_WEIGHT + 1),
					   .capacity = below(t, 2) ? any64(t) : 0 };
}

static void same_instance(const struct skv_instance_spec *a, const struct skv_instance_spec *b)
{
	assert_string_equal(a->tenant, b->tenant);
	assert_string_equal(a->group, b->group);
	assert_string_equal(a->extra, b->extra);
	same(a->block_tokens, b->block_tokens);
	same(a->numbered, b->numbered);
	same(a->named, b->named);
	same(a->weight, b->weight);
	same(a->capacity, b->capacity);
	assert_int_equal(a->n_specs, b->n_specs);
	for (uint32_t i = 0; i < a->n_specs; i++) {
		assert_string_equal(a->specs[i].name, b->specs[i].name);
		same(a->specs[i].size, b->specs[i].size);
	}
}

static void test_instance(void **state)
{
	(void)state;
	for (uint64_t round = 0; round < ROUNDS; round++) {
		struct skv_instance_view v, seen;
		struct skv_placement p;
		struct skv_instance_spec got;
		struct trip t;

		trip_begin(&t, round);
		v = (struct skv_instance_view){ .spec = any_instance(&t), .blocks = any64(&t),
						.used_bytes = any64(&t),
						.open_sessions = any64(&t), .open_bytes = any64(&t),
						.leased_bytes = any64(&t), .share_bytes = any64(&t),
						.pinned_bytes = any64(&t),
						.soft_pinned_bytes = any64(&t),
						.evicted_blocks = any64(&t), .hits = any64(&t),
						.layouts = any64(&t), .layouts_left = any64(&t),
						.warning = any_text(&t, below(&t, 2) * 64),
						.placements = &p, .n_placements = below(&t, 2) };
		p = (struct skv_placement){ any_name(&t, 0), any_name(&t, 0), "rounded",
					    any64(&t),       any64(&t),       any64(&t) };
		write_spec(&t, "InstanceView", &v);
		read_back(&t, skv_v1_read_instance, &got);
		same_instance(&v.spec, &got);
		assert_null(got.id);

		skv_buf_clear(&t.text);
		skv_pb_write_instance_view(&t.text, &v);
		read_back(&t, skv_pb_read_instance_view, &seen);
		same_instance(&v.spec, &seen.spec);
		assert_string_equal(v.spec.id, seen.spec.id);
		same(v.blocks, seen.blocks);
		same(v.used_bytes, seen.used_bytes);
		same(v.open_sessions, seen.open_sessions);
		same(v.open_bytes, seen.open_bytes);
		same(v.leased_bytes, seen.leased_bytes);
		same(v.share_bytes, seen.share_bytes);
		same(v.pinned_bytes, seen.pinned_bytes);
		same(v.soft_pinned_bytes, seen.soft_pinned_bytes);
		same(v.evicted_blocks, seen.evicted_blocks);
		same(v.hits, seen.hits);
		same(v.layouts, seen.layouts);
		same(v.layouts_left, seen.layouts_left);
		assert_string_equal(v.warning, seen.warning);
		same(v.n_placements, seen.n_placements);
		if (v.n_placements) {
			assert_string_equal(p.storage, seen.placements[0].storage);
			assert_string_equal(p.spec, seen.placements[0].spec);
			assert_string_equal(p.fit, seen.placements[0].fit);
			same(p.slot_bytes, seen.placements[0].slot_bytes);
			same(p.wasted_bytes, seen.placements[0].wasted_bytes);
			same(p.copied_bytes, seen.placements[0].copied_bytes);
		}
		trip_end(&t);
	}
}

static void test_error(void **state)
{
	(void)state;
#define STATUS(name, number, code, http, grpc, text) SKV_##name,
	static const int all[] = { SKV_STATUS_MAP(STATUS) };
#undef STATUS
	for (uint64_t round = 0; round < ROUNDS; round++) {
		struct skv_error e, got;
		struct trip t;

		trip_begin(&t, round);
		e.status = all[1 + below(&t, sizeof all / sizeof all[0] - 1)];
		snprintf(e.field, sizeof e.field, "%s", any_text(&t, 40));
		snprintf(e.message, sizeof e.message, "%s.", any_text(&t, 200));
		skv_v1_write_error(&t.text, &e, "req-1");
		assert_int_equal(skv_v1_read_error(&t.in, trip_text(&t), t.text.len, &got),
				 e.status);
		assert_int_equal(got.status, e.status);
		assert_string_equal(got.field, e.field);
		assert_string_equal(got.message, e.message);
		trip_end(&t);
	}
}

/* A message that was cut inside a character, or that quotes a stranger's bytes, is still UTF-8. */
static void test_error_mends_text(void **state)
{
	static const char *const broken[] = { "cut \xe6\xbc", "\xff\xfe",         "\xc0\xaf",
					      "\xed\xa0\x80", "\xf5\x80\x80\x80", "a\xe2\x28\xa1z",
					      "\x80" };
	static const char *const mended[] = { "cut ??", "??", "??", "???", "????", "a?(?z", "?" };

	(void)state;
	for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
		struct skv_error e = { .status = SKV_E_INVALID }, got;
		struct trip t;

		trip_begin(&t, 1);
		snprintf(e.message, sizeof e.message, "%s", broken[i]);
		snprintf(e.field, sizeof e.field, "%s", broken[i]);
		skv_v1_write_error(&t.text, &e, broken[i]);
		skv_v1_read_error(&t.in, trip_text(&t), t.text.len, &got);
		assert_string_equal(got.message, mended[i]);
		assert_string_equal(got.field, mended[i]);
		trip_end(&t);
	}
}

static void expect_text(struct trip *t, const char *text)
{
	skv_put_u8(&t->text, 0);
	assert_string_equal(trip_text(t), text);
	skv_buf_clear(&t->text);
}

/* The shapes of docs/reference/PROTOCOL.md, to the byte. */
static void test_shapes(void **state)
{
	struct skv_error e = { .status = SKV_E_NOT_FOUND, .field = "instance",
			       .message = "no instance 'x'" };
	struct skv_stats stats = { .version = "1", .owner = "o", .state = "ready", .uptime_ms = 1,
				   .blocks = 2,
				   .sessions = 3, .journal_bytes = 4, .journal_limit = 5,
				   .evicted_blocks = 6,
				   .expired_sessions = 7 };
	struct skv_group_view group =
		{ .spec = { .name = "g", .capacity = 9, .storages = (const char *const[]){ "s" },
						  .n_storages = 1 }, .used_bytes = 8, .blocks = 7,
						  .room_bytes = 9,
					.pinned_bytes = 1, .soft_pinned_bytes = 2,
					.leased_bytes = 3, .open_bytes = 4,
					.evicted_blocks = 5, .hits = 6 };
	struct trip t;

	(void)state;
	trip_begin(&t, 0);
	skv_v1_write_error(&t.text, &e, "7-1");
	expect_text(&t, "{\"error\":{\"code\":\"not_found\",\"message\":\"no instance 'x'\","
			"\"detail\":{\"field\":\"instance\"}},\"request_id\":\"7-1\"}");
	skv_v1_write_error(&t.text, &(struct skv_error){ .status = SKV_E_NO_SPACE }, NULL);
	expect_text(
		&t,
		"{\"error\":{\"code\":\"no_space\",\"message\":\"no room, and nothing that may be "
		"evicted\",\"detail\":{}},\"request_id\":\"\"}");
	skv_v1_write_named("StorageList", &t.text, &(struct skv_storage_list){ NULL, 0, "" });
	expect_text(&t, "{\"storages\":[]}");
	skv_v1_write_named("InstanceList", &t.text, &(struct skv_instance_list){ NULL, 0, "" });
	expect_text(&t, "{\"instances\":[]}");
	skv_v1_write_named("GroupList", &t.text, &(struct skv_group_list){
						 (struct skv_group_view[]){ group, group }, 2,
						 "more" });
#define GROUP "{\"name\":\"g\",\"capacity\":9,\"storages\":[\"s\"],\"blocks\":7,\"used_bytes\":8," \
	      "\"room_bytes\":9,\"pinned_bytes\":1,\"soft_pinned_bytes\":2,\"leased_bytes\":3,"    \
	      "\"open_bytes\":4,\"evicted_blocks\":5,\"hits\":6}"
	expect_text(&t, "{\"groups\":[" GROUP "," GROUP "],\"next\":\"more\"}");
	stats.groups = &group;
	stats.n_groups = 1;
	skv_v1_write_named("Stats", &t.text, &stats);
	expect_text(&t,
		    "{\"version\":\"1\",\"state\":\"ready\",\"owner\":\"o\",\"uptime_ms\":1,"
		    "\"blocks\":2,\"sessions\":3,\"journal_bytes\":4,\"journal_limit\":5,"
		    "\"evicted_blocks\":6,\"expired_sessions\":7,\"storages\":[],\"groups\":[" GROUP
		    "],\"instances\":[],\"storage_count\":0,\"group_count\":0,"
		    "\"instance_count\":0}");
	trip_end(&t);
}

/* Answers contain the fields that managers read of each other's answers. */
static void test_answers_by_name(void **state)
{
	struct skv_group_view group = { .spec = { .name = "g",
						  .storages = (const char *const[]){ "s" },
						  .n_storages = 1 },
					.fast = "f", .blocks = 7 };
	struct skv_storage_view storage = { .spec = { .name = "s", .type = "file", .root = "/r",
						      .capacity = 1 },
					    .uuid = "00112233-4455-6677-8899-aabbccddeeff",
					    .problem = "", .groups = 3,
					    .fs_free_bytes = UINT64_MAX };
	struct skv_file_view file = { .file = 3, .state = "used" };
	struct skv_stats stats = { .version = "1", .owner = "o", .state = "ready", .blocks = 2,
				   .groups = &group, .n_groups = 1, .storages = &storage,
				   .n_storages = 1 };
	struct skv_file_list files = { &file, 1, "3" };
	struct skv_stats got;
	struct skv_error err = { .field = "" };
	struct trip t;

	(void)state;
	trip_begin(&t, 0);
	skv_pb_write_named("Stats", &t.text, &stats);
	skv_pb_read_named("Stats", &t.in, trip_text(&t), t.text.len, &got, &err);
	assert_string_equal(err.field, "");
	assert_string_equal(got.version, "1");
	assert_string_equal(got.owner, "o");
	assert_int_equal(got.blocks, 2);
	assert_int_equal(got.n_groups, 1);
	assert_string_equal(got.groups->spec.name, "g");
	assert_string_equal(got.groups->fast, "f");
	assert_int_equal(got.storages->groups, 3);
	assert_true(got.storages->fs_free_bytes == UINT64_MAX);
	skv_buf_clear(&t.text);
	skv_pb_write_named("FileList", &t.text, &files);
	files.n_files = 0;
	assert_int_equal(skv_pb_read_named("FileList", &t.in, trip_text(&t), t.text.len, &files,
					   &err),
			 SKV_OK);
	assert_int_equal(files.n_files, 1);
	assert_int_equal(files.files->file, 3);
	assert_int_equal(skv_pb_read_named("GroupList", &t.in, "\x0a\x00", 2, &files,
					   &err),
			 SKV_E_INVALID);
	assert_string_equal(err.field, "groups[0].spec.storages");
	trip_end(&t);
}

static void test_block_view(void **state)
{
	const char *states[] = { "committed", "absent" };
	struct skv_location loc[2] =
		{ { .length = 5, .offset = 4096, .generation = UINT64_MAX, .has_checksum = true,
					 .checksum = 0xabc } };
	struct skv_block_view v = { .key = { 0, 1 }, .has_parent = true, .parent = { 1, 0 },
				    .children = 2,
				    .created_ms = 3, .idle_ms = 4, .lease_ms = 5, .n_specs = 2,
				    .specs = (const char *const[]){ "a", "b" }, .state = states,
				    .loc = loc };
	struct trip t;

	(void)state;
	trip_begin(&t, 0);
	skv_v1_write_block_view(&t.text, &v);
	expect_text(
		&t,
		"{\"key\":\"00000000000000000000000000000001\","
		"\"parent\":\"00000000000000010000000000000000\",\"children\":2,\"created_ms\":3,"
		"\"idle_ms\":4,\"lease_ms\":5,\"specs\":[{\"name\":\"a\",\"state\":\"committed\","
		"\"location\":{\"file\":0,\"offset\":4096,\"length\":5,"
		"\"generation\":\"18446744073709551615\",\"checksum\":\"0000000000000abc\"}},"
		"{\"name\":\"b\",\"state\":\"absent\",\"location\":null}],\"files\":[]}");
	v.has_parent = false;
	v.n_specs = 0;
	skv_v1_write_block_view(&t.text, &v);
	expect_text(
		&t,
		"{\"key\":\"00000000000000000000000000000001\",\"parent\":null,\"children\":2,"
		"\"created_ms\":3,\"idle_ms\":4,\"lease_ms\":5,\"specs\":[],\"files\":[]}");
	trip_end(&t);
}

static void read_text(struct trip *t, const char *text)
{
	skv_buf_clear(&t->text);
	skv_put_bytes(&t->text, text, strlen(text));
}

static void test_defaults(void **state)
{
	struct skv_storage_spec s;
	struct skv_group_spec g;
	struct skv_instance_spec i;
	struct trip t;

	(void)state;
	trip_begin(&t, 0);
	read_text(&t, "{\"root\":\"/data\",\"capacity\":\"100G\"}");
	read_back(&t, skv_v1_read_storage, &s);
	assert_string_equal(s.type, "file");
	same(s.capacity, 100ull << 30);
	same(s.file_size, 0);
	same(s.unit, 0);
	assert_true(s.enabled);
	read_text(&t,
		  "{\"type\":\"null\",\"capacity\":\"3K\",\"file_size\":\"2M\",\"unit\":\"1\"}");
	read_back(&t, skv_v1_read_storage, &s);
	assert_string_equal(s.root, "");
	same(s.capacity, 3072);
	same(s.file_size, 2 << 20);
	same(s.unit, 1);
	read_text(&t, "{\"root\":\"/\",\"capacity\":\"16777215T\"}");
	read_back(&t, skv_v1_read_storage, &s);
	same(s.capacity, 16777215ull << 40);
	read_text(&t, "{\"storages\":[\"default\"]}");
	read_back(&t, skv_v1_read_group, &g);
	same_group(&(struct skv_group_spec){ .storages = (const char *const[]){ "default" },
					     .n_storages = 1, .policy = "", .tier_of = "",
					     .extra = "" }, &g);
	read_text(&t, "{\"specs\":[{\"name\":\"kv\",\"size\":\"4G\"}]}");
	read_back(&t, skv_v1_read_instance, &i);
	assert_string_equal(i.group, "default");
	assert_string_equal(i.extra, "");
	same(i.block_tokens, 0);
	assert_false(i.numbered);
	assert_false(i.named);
	same(i.specs[0].size, SKV_MAX_SPEC_SIZE);
	trip_end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_storage),	   cmocka_unit_test(test_storage_view),
		cmocka_unit_test(test_group),	   cmocka_unit_test(test_instance),
		cmocka_unit_test(test_objects_in_protobuf),
		cmocka_unit_test(test_error),	   cmocka_unit_test(test_error_mends_text),
		cmocka_unit_test(test_shapes),	   cmocka_unit_test(test_answers_by_name),
		cmocka_unit_test(test_block_view),
		cmocka_unit_test(test_defaults),
	};

	return cmocka_run_group_tests_name("v1_objects", tests, NULL, NULL);
}
