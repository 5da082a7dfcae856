/* test_kvcm_model.c - the peer's storages, groups and registrations as specs of the core, and
 * back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <skv/proto_codec.h>

#include "model.h"

#define GIB (1ull << 30)

struct box {
	struct skv_arena a;
	struct skv_error err;
	struct kvcm_model model;
};

static int setup(void **state)
{
	struct box *b = calloc(1, sizeof *b);

	assert_non_null(b);
	skv_arena_init(&b->a);
	b->model = (struct kvcm_model){ .storage_capacity = 4 * GIB + 5, .storage_unit = 64 << 20,
					.mounts = "" };
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct box *b = *state;

	skv_arena_destroy(&b->a);
	free(b);
	return 0;
}

static void *message(struct box *b, const ProtobufCMessageDescriptor *d, const char *json)
{
	ProtobufCMessage *m;

	if (skv_proto_json.read(d, json, strlen(json), &b->a, &m, &b->err) != SKV_OK)
		fail_msg("%s: %s", json, b->err.message);
	return m;
}

static const char *text(struct box *b, const ProtobufCMessage *m)
{
	struct skv_buf out;
	char *s;

	skv_buf_init(&out);
	skv_proto_json.write(m, NULL, &out);
	assert_false(out.failed);
	s = skv_arena_strndup(&b->a, (const char *)out.data, out.len);
	skv_buf_destroy(&out);
	return s;
}

/* ---- storages -------------------------------------------------------------------------------- */

static int storage(struct box *b, const char *json, struct skv_storage_spec *s)
{
	return kvcm_storage_spec(message(b, &kvcm_admin__storage_config__descriptor, json),
				 &b->model, "0a1b2c3d", &b->a, s, &b->err);
}

static void test_nfs(void **state)
{
	struct box *b = *state;
	struct skv_storage_spec s;

	assert_int_equal(
		storage(b,
			"{\"global_unique_name\":\"st1\",\"nfs\":{\"root_path\":\"/data/kv//\"}}",
			&s),
		SKV_OK);
	assert_string_equal(s.name, "st1");
	assert_string_equal(s.type, "file");
	assert_string_equal(s.root, "/data/kv/st1.0a1b2c3d");
	assert_string_equal(s.client_root, s.root);
	assert_string_equal(s.client_mount, "");
	assert_int_equal(s.capacity, 4 * GIB + 5); /* the core takes whole units */
	assert_int_equal(s.file_size, GIB);
	assert_int_equal(s.unit, 64 << 20);
	assert_true(s.enabled);
	assert_non_null(strstr(s.extra, "\"root_path\":\"/data/kv//\""));
}

static void test_3fs_elsewhere(void **state)
{
	struct box *b = *state;
	struct skv_storage_spec s;

	b->model.mounts = "/3fs=/none,/3fs/stage/=/mnt/a/,/3fs/st=/no";
	b->model.storage_file_size = 2 * GIB;
	assert_int_equal(
		storage(b,
			"{\"globalUniqueName\":\"t\",\"threefs\":{\"mountpoint\":\"/3fs/stage/\","
			"\"root_dir\":\"/kv/a/\"}}",
			&s),
		SKV_OK);
	assert_string_equal(s.type, "hf3fs");
	assert_string_equal(s.client_mount, "/3fs/stage");
	assert_string_equal(s.client_root, "/3fs/stage/kv/a/t.0a1b2c3d");
	assert_string_equal(s.root, "/mnt/a/kv/a/t.0a1b2c3d");
	assert_int_equal(s.file_size, GIB); /* the peer's SDK maps whole files */
	b->model.storage_file_size = 128 << 20;
	assert_int_equal(
		storage(b, "{\"global_unique_name\":\"t\",\"nfs\":{\"root_path\":\"/3fsx\"}}", &s),
		SKV_OK);
	assert_string_equal(s.root, "/3fsx/t.0a1b2c3d");
	assert_int_equal(s.file_size, 128 << 20);
}

/* All that clients have, below a directory here; and the other way round. */
static void test_mount_of_the_root(void **state)
{
	struct box *b = *state;
	struct skv_storage_spec s;

	b->model.mounts = "/=/host,/3fs=/";
	assert_int_equal(
		storage(b, "{\"global_unique_name\":\"t\",\"nfs\":{\"root_path\":\"/data/kv\"}}",
			&s),
		SKV_OK);
	assert_string_equal(s.client_root, "/data/kv/t.0a1b2c3d");
	assert_string_equal(s.root, "/host/data/kv/t.0a1b2c3d");
	assert_int_equal(
		storage(b, "{\"global_unique_name\":\"t\",\"nfs\":{\"root_path\":\"/3fs/kv\"}}",
			&s),
		SKV_OK);
	assert_string_equal(s.root, "/kv/t.0a1b2c3d");
}

static void test_mounts_checked(void **state)
{
	static const char *const bad[] = { "x", "/a", "/a=b", "a=/b", "=/b", "/a=", "/a=/b,/c" };
	struct box *b = *state;

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		assert_int_equal(kvcm_mounts_check(bad[i], &b->err), SKV_E_INVALID);
		assert_string_equal(b->err.field, "kvcm_mounts");
	}
	assert_int_equal(kvcm_mounts_check("", &b->err), SKV_OK);
	assert_int_equal(kvcm_mounts_check("/=/b,/a/=/c,", &b->err), SKV_OK);
}

static void test_dummy(void **state)
{
	struct box *b = *state;
	struct skv_storage_spec s;

	assert_int_equal(
		storage(b, "{\"global_unique_name\":\"d\",\"dummy\":{\"root_path\":\"/x\"}}", &s),
		SKV_OK);
	assert_string_equal(s.type, "null");
	assert_string_equal(s.root, "");
	assert_string_equal(s.client_root, "");
	assert_string_equal(kvcm_storage_message(&s, &b->a)->dummy->root_path, "/x");
}

static void test_storages_refused(void **state)
{
	static const struct {
		const char *json;
		int status;
		const char *field;
	} cases[] = {
		{ "{\"nfs\":{\"root_path\":\"/a\"}}", SKV_E_INVALID, "global_unique_name" },
		{ "{\"global_unique_name\":\"a/b\",\"nfs\":{\"root_path\":\"/a\"}}", SKV_E_INVALID,
		  "global_unique_name" },
		{ "{\"global_unique_name\":\"a\"}", SKV_E_INVALID, "storage_spec" },
		{ "{\"global_unique_name\":\"a\",\"nfs\":{}}", SKV_E_INVALID, "nfs.root_path" },
		{ "{\"global_unique_name\":\"a\",\"nfs\":{\"root_path\":\"rel\"}}", SKV_E_INVALID,
		  "nfs.root_path" },
		{ "{\"global_unique_name\":\"a\",\"threefs\":{\"root_dir\":\"d\"}}", SKV_E_INVALID,
		  "threefs.mountpoint" },
		{ "{\"global_unique_name\":\"a\",\"threefs\":{\"mountpoint\":\"/3fs\","
		  "\"root_dir\":\"//\"}}",
		  SKV_E_INVALID, "threefs.root_dir" },
		{ "{\"global_unique_name\":\"a\",\"nfs\":{\"root_path\":\"/a\"},"
		  "\"storage_type\":\"ST_3FS\"}",
		  SKV_E_INVALID, "storage_type" },
		{ "{\"global_unique_name\":\"a\",\"local\":{}}", SKV_E_UNSUPPORTED, "local" },
		{ "{\"global_unique_name\":\"a\",\"mooncake\":{}}", SKV_E_UNSUPPORTED, "mooncake" },
		{ "{\"global_unique_name\":\"a\",\"tair_mem_pool\":{}}", SKV_E_UNSUPPORTED,
		  "tair_mem_pool" },
		{ "{\"global_unique_name\":\"a\",\"vcnsthreefs\":{}}", SKV_E_UNSUPPORTED,
		  "vcnsthreefs" },
		{ "{\"global_unique_name\":\"a\",\"event_report\":{}}", SKV_E_UNSUPPORTED,
		  "event_report" },
	};
	struct box *b = *state;
	struct skv_storage_spec s;

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		assert_int_equal(storage(b, cases[i].json, &s), cases[i].status);
		assert_string_equal(b->err.field, cases[i].field);
	}
}

static void test_storage_and_back(void **state)
{
	static const char json[] =
		"{\"global_unique_name\":\"t\",\"threefs\":{\"cluster_name\":\"c\",\"mountpoint\":"
		"\"/3fs\",\"root_dir\":\"d\",\"key_count_per_file\":4,"
		"\"touch_file_when_create\":true}}";
	struct box *b = *state;
	struct skv_storage_spec s;
	KvcmAdmin__StorageConfig *m,
		*given = message(b, &kvcm_admin__storage_config__descriptor, json);

	assert_int_equal(storage(b, json, &s), SKV_OK);
	m = kvcm_storage_message(&s, &b->a);
	/* told, though it was left to the kind of the spec */
	given->storage_type = KVCM_ADMIN__STORAGE_TYPE__ST_3FS;
	assert_string_equal(text(b, &m->base), text(b, &given->base));
	s.extra = "";
	m = kvcm_storage_message(&s, &b->a);
	assert_int_equal(m->storage_spec_case, KVCM_ADMIN__STORAGE_CONFIG__STORAGE_SPEC_THREEFS);
	assert_string_equal(m->threefs->mountpoint, "/3fs");
	assert_string_equal(m->threefs->root_dir, "d/t.0a1b2c3d");
	s.type = "file";
	s.client_root = "";
	m = kvcm_storage_message(&s, &b->a);
	assert_string_equal(m->nfs->root_path, s.root);
	s.type = "null";
	assert_int_equal(kvcm_storage_message(&s, &b->a)->storage_type,
			 KVCM_ADMIN__STORAGE_TYPE__ST_DUMMY);
}

static void test_storage_configs(void **state)
{
	struct box *b = *state;
	struct skv_storage_view v[2] = { 0 };
	KvcmAdmin__InstanceGroup *g = message(b, &kvcm_admin__instance_group__descriptor,
					      "{\"storage_candidates\":[\"t\",\"absent\",\"n\"]}");
	struct skv_buf out;

	assert_int_equal(
		storage(b,
			"{\"global_unique_name\":\"n\",\"nfs\":{\"root_path\":\"/a\\\"b\\\\/\","
			"\"key_count_per_file\":8}}",
			&v[0].spec),
		SKV_OK);
	v[0].spec.enabled = false;
	assert_int_equal(
		storage(b,
			"{\"global_unique_name\":\"t\",\"threefs\":{\"mountpoint\":\"/3fs/\","
			"\"root_dir\":\"d\"}}",
			&v[1].spec),
		SKV_OK);
	skv_buf_init(&out);
	kvcm_storage_configs(g, v, 2, &b->a, &out);
	skv_put_u8(&out, 0);
	assert_string_equal(
		(char *)out.data,
		"[{\"type\":\"hf3fs\",\"is_available\":true,\"global_unique_name\":\"t\","
		"\"storage_spec\":{\"cluster_name\":\"\",\"mountpoint\":\"/3fs/\","
		"\"root_dir\":\"d\",\"key_count_per_file\":0}},{\"type\":\"file\","
		"\"is_available\":false,\"global_unique_name\":\"n\","
		"\"storage_spec\":{\"root_path\":\"/a\\\"b\\\\/\",\"key_count_per_file\":8}}]");
	skv_buf_destroy(&out);
}

/* ---- groups ---------------------------------------------------------------------------------- */

/* A complete group. `reclaim` and `more` begin with a comma or are empty;
 * `more` may give a member anew. */
static const char *group_json(struct box *b, const char *strategy, const char *reclaim,
			      const char *more)
{
	static const struct {
		const char *name;
		const char *value;
	} members[] = {
		{ "\"name\"", "\"g\"" },
		{ "\"version\"", "\"3\"" },
		{ "\"max_instance_count\"", "7" },
		{ "\"quota\"", "{\"capacity\":1000,\"quota_config\":[{\"storage_type\":4,"
			       "\"capacity\":500},"
			       "{\"storage_type\":3,\"capacity\":9},"
			       "{\"storage_type\":\"ST_3FS\"}]}" },
	};
	char *s = skv_arena_alloc(&b->a, 2048);
	size_t n;

	n = (size_t)snprintf(
		s, 2048,
		"{\"storage_candidates\":[\"n1\",\"t1\",\"n1\",\"later\",\"t2\"],"
		"\"global_quota_group_name\":\"q\",\"cache_config\":{\"data_storage_strategy\":%s,"
		"\"meta_indexer_config\":{\"max_key_count\":16},"
		"\"reclaim_strategy\":{\"storage_unique_name\":\"n1\"%s}}%s",
		strategy, reclaim, more);
	for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
		if (!strstr(more, members[i].name))
			n += (size_t)snprintf(s + n, 2048 - n, ",%s:%s", members[i].name,
					      members[i].value);
	snprintf(s + n, 2048 - n, "}");
	return s;
}

static const struct skv_storage_view storages[] = {
	{ .spec = { .name = "n1", .type = "file" } },
	{ .spec = { .name = "t1", .type = "hf3fs" } },
	{ .spec = { .name = "t2", .type = "hf3fs" } },
	{ .spec = { .name = "other", .type = "hf3fs" } },
};

static int group(struct box *b, const char *json, struct skv_group_spec *s)
{
	return kvcm_group_spec(message(b, &kvcm_admin__instance_group__descriptor, json), storages,
			       4, &b->a, s, &b->err);
}

static void assert_order(const struct skv_group_spec *s, const char *names)
{
	char list[256] = "";

	for (uint32_t i = 0; i < s->n_storages; i++)
		snprintf(list + strlen(list), sizeof list - strlen(list), "%s ", s->storages[i]);
	assert_string_equal(list, names);
}

static void test_group(void **state)
{
	struct box *b = *state;
	struct skv_group_spec s;

	assert_int_equal(
		group(b,
		      group_json(b, "4",
				 ",\"reclaim_policy\":1,\"trigger_strategy\":{\"used_size\":300,"
				 "\"used_percentage\":0.5},\"delay_before_delete_ms\":1500",
				 ""),
		      &s),
		SKV_OK);
	assert_string_equal(s.name, "g");
	assert_true(s.loose_storages);
	assert_order(&s, "n1 t1 later t2 ");
	assert_int_equal(s.version, 3);
	assert_int_equal(s.max_instances, 7);
	assert_int_equal(s.capacity, 1000);
	assert_int_equal(s.max_blocks, 16);
	assert_int_equal(s.reclaim_bytes, 300); /* the lower of 300 and half of 1000 */
	assert_int_equal(s.reclaim_blocks, 8);
	assert_int_equal(s.n_quotas, 2);
	assert_string_equal(s.quotas[0].type, "file");
	assert_int_equal(s.quotas[0].capacity, 500);
	assert_int_equal(s.quotas[0].reclaim, 250);
	assert_string_equal(s.quotas[1].type, "hf3fs");
	assert_int_equal(s.quotas[1].capacity, 1); /* 0 lets nothing in */
	assert_int_equal(s.reclaim_period_ms, 0);
	assert_int_equal(s.max_idle_ms, 0);
	assert_int_equal(kvcm_group_lease_ms(kvcm_group_message(&s, &b->a)), 1500);
}

static void test_order_of_storages(void **state)
{
	struct box *b = *state;
	struct skv_group_spec s;

	assert_int_equal(group(b, group_json(b, "2", "", ""), &s), SKV_OK);
	assert_order(&s, "t1 t2 n1 later ");
	assert_int_equal(group(b, group_json(b, "\"CPS_ALWAYS_3FS\"", "", ""), &s), SKV_OK);
	assert_order(&s, "t1 t2 ");
	assert_int_equal(kvcm_group_spec(message(b, &kvcm_admin__instance_group__descriptor,
						 group_json(b, "1", "", "")),
					 storages, 1, &b->a, &s, &b->err),
			 SKV_OK);
	assert_int_equal(s.n_storages, 0); /* none yet */
}

static void test_lines_that_are_none(void **state)
{
	static const char *const shares[] = { "0", "1", "3.2" };
	struct box *b = *state;
	struct skv_group_spec s;

	for (size_t i = 0; i < 3; i++) {
		char reclaim[80];

		snprintf(reclaim, sizeof reclaim, ",\"trigger_strategy\":{\"used_percentage\":%s}",
			 shares[i]);
		assert_int_equal(group(b, group_json(b, "2", reclaim, ""), &s), SKV_OK);
		assert_int_equal(s.reclaim_bytes, 0);
		assert_int_equal(s.reclaim_blocks, 0);
		assert_int_equal(s.quotas[0].reclaim, 0);
	}
	assert_int_equal(
		group(b, group_json(b, "2", ",\"trigger_strategy\":{\"used_percentage\":0.01}", ""),
		      &s),
		SKV_OK);
	assert_int_equal(s.reclaim_blocks, 1); /* 0.16 of a block */
}

static void test_steps_and_ttl(void **state)
{
	struct box *b = *state;
	struct skv_group_spec s;

	assert_int_equal(
		group(b,
		      group_json(b, "2",
				 ",\"trigger_period_seconds\":60,\"reclaim_step_size\":4096,"
				 "\"reclaim_step_percentage\":5",
				 ""),
		      &s),
		SKV_OK);
	assert_int_equal(s.reclaim_period_ms, 60000);
	assert_int_equal(s.reclaim_step_bytes, 4096);
	assert_int_equal(s.reclaim_step_percent, 5);
	assert_int_equal(group(b, group_json(b, "2", ",\"trigger_period_seconds\":60", ""), &s),
			 SKV_OK);
	assert_int_equal(s.reclaim_period_ms, 0);
	assert_int_equal(
		group(b,
		      group_json(b, "2",
				 ",\"reclaim_policy\":\"POLICY_TTL\",\"trigger_period_seconds\":90",
				 ""),
		      &s),
		SKV_OK);
	assert_int_equal(s.max_idle_ms, 90000);
	assert_int_equal(s.reclaim_period_ms, 0);
	assert_string_equal(s.policy, "");
	assert_int_equal(group(b, group_json(b, "2", ",\"reclaim_policy\":\"POLICY_LFU\"", ""), &s),
			 SKV_OK);
	assert_string_equal(s.policy, "");
	assert_int_equal(group(b, group_json(b, "2", ",\"reclaim_policy\":\"POLICY_LRU\"", ""), &s),
			 SKV_OK);
	assert_string_equal(s.policy, "lru");
	assert_int_equal(group(b, group_json(b, "2", "", ""), &s), SKV_OK);
	assert_string_equal(s.policy, "");
}

static void test_groups_refused(void **state)
{
	static const struct {
		const char *strategy, *reclaim, *more;
		int status;
		const char *field;
	} cases[] = {
		{ "0", "", "", SKV_E_INVALID, "cache_config.data_storage_strategy" },
		{ "77", "", "", SKV_E_INVALID, "cache_config.data_storage_strategy" },
		{ "3", "", "", SKV_E_UNSUPPORTED, "cache_config.data_storage_strategy" },
		{ "5", "", "", SKV_E_UNSUPPORTED, "cache_config.data_storage_strategy" },
		{ "7", "", "", SKV_E_UNSUPPORTED, "cache_config.data_storage_strategy" },
		{ "9", "", "", SKV_E_UNSUPPORTED, "cache_config.data_storage_strategy" },
		{ "2", ",\"reclaim_policy\":9", "", SKV_E_INVALID,
		  "reclaim_strategy.reclaim_policy" },
		{ "2", ",\"reclaim_policy\":-1", "", SKV_E_INVALID,
		  "reclaim_strategy.reclaim_policy" },
		{ "2", ",\"reclaim_policy\":3", "", SKV_E_INVALID,
		  "reclaim_strategy.trigger_period_seconds" },
		{ "2", ",\"trigger_period_seconds\":-1", "", SKV_E_INVALID,
		  "reclaim_strategy.trigger_period_seconds" },
		{ "2", ",\"reclaim_step_size\":-1", "", SKV_E_INVALID,
		  "reclaim_strategy.reclaim_step_size" },
		{ "2", ",\"reclaim_step_percentage\":101", "", SKV_E_INVALID,
		  "reclaim_strategy.reclaim_step_percentage" },
		{ "2", ",\"delay_before_delete_ms\":-1", "", SKV_E_INVALID,
		  "reclaim_strategy.delay_before_delete_ms" },
		{ "2", ",\"instance_reclaim_budget_policy\":0", "", SKV_E_UNSUPPORTED,
		  "reclaim_strategy.instance_reclaim_budget_policy" },
		{ "2", ",\"instance_reclaim_budget_policy\":1", "", SKV_E_UNSUPPORTED,
		  "reclaim_strategy.instance_reclaim_budget_policy" },
		{ "2", ",\"trigger_strategy\":{\"used_size\":-1}", "", SKV_E_INVALID,
		  "reclaim_strategy.trigger_strategy.used_size" },
		{ "2", ",\"trigger_strategy\":{\"used_percentage\":-0.1}", "", SKV_E_INVALID,
		  "reclaim_strategy.trigger_strategy.used_percentage" },
		{ "2", ",\"trigger_strategy\":{\"used_percentage\":\"NaN\"}", "", SKV_E_INVALID,
		  "reclaim_strategy.trigger_strategy.used_percentage" },
		{ "2", "", ",\"event_report_storage_candidates\":[\"e\"]", SKV_E_UNSUPPORTED,
		  "event_report_storage_candidates" },
		{ "2", "", ",\"affinity_strategy_json\":\"{}\"", SKV_E_UNSUPPORTED,
		  "affinity_strategy_json" },
		{ "2", "", ",\"version\":-1", SKV_E_INVALID, "version" },
		{ "2", "", ",\"max_instance_count\":-1", SKV_E_INVALID, "max_instance_count" },
		{ "2", "", ",\"name\":\"a b\"", SKV_E_INVALID, "name" },
		{ "2", "", ",\"quota\":{\"capacity\":-1}", SKV_E_INVALID, "quota.capacity" },
		{ "2", "", ",\"quota\":{\"quota_config\":[{\"storage_type\":4,\"capacity\":-1}]}",
		  SKV_E_INVALID,
		  "quota.quota_config.capacity" },
	};
	struct box *b = *state;
	struct skv_group_spec s;

	assert_int_equal(
		group(b,
		      group_json(b, "2", ",\"instance_reclaim_budget_policy\":\"GROUP_LRU\"", ""),
		      &s),
		SKV_OK);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		int rc = group(b, group_json(b, cases[i].strategy, cases[i].reclaim, cases[i].more),
			       &s);

		if (rc != cases[i].status || strcmp(b->err.field, cases[i].field) != 0)
			fail_msg("case %zu: %s, field '%s'", i, skv_status_name(rc), b->err.field);
	}
}

static void test_missing_fields(void **state)
{
	static const struct {
		const char *json;
		const char *missing;
	} cases[] = {
		{ "{}", "name" },
		{ "{\"name\":\"g\"}", "storage_candidates" },
		{ "{\"name\":\"g\",\"storage_candidates\":[\"a\"]}", "global_quota_group_name" },
		{ "{\"name\":\"g\",\"storage_candidates\":[\"a\"],"
		  "\"global_quota_group_name\":\"q\"}", "cache_config" },
		{ "{\"name\":\"g\",\"storage_candidates\":[\"a\"],"
		  "\"global_quota_group_name\":\"q\",\"cache_config\":{}}",
		  "reclaim_strategy" },
	};
	struct box *b = *state;

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		assert_string_equal(
			kvcm_group_missing(
				message(b, &kvcm_admin__instance_group__descriptor, cases[i].json)),
			cases[i].missing);
	assert_null(kvcm_group_missing(message(b, &kvcm_admin__instance_group__descriptor,
					       group_json(b, "2", "", ""))));
}

static void test_group_and_back(void **state)
{
	struct box *b = *state;
	const char *json = group_json(b, "2", ",\"delay_before_delete_ms\":7",
				      ",\"user_data\":\"u\",\"extra_info\":\"e\"");
	KvcmAdmin__InstanceGroup *m = message(b, &kvcm_admin__instance_group__descriptor, json);
	struct skv_group_spec s;

	assert_int_equal(group(b, json, &s), SKV_OK);
	assert_string_equal(text(b, &kvcm_group_message(&s, &b->a)->base), text(b, &m->base));
	s.version = 9; /* the core's number counts */
	assert_int_equal(kvcm_group_message(&s, &b->a)->version, 9);
	s.extra = "";
	m = kvcm_group_message(&s, &b->a);
	assert_string_equal(m->name, "g");
	assert_int_equal(m->n_storage_candidates, 4);
	assert_int_equal(m->quota->capacity, 1000);
	assert_int_equal(m->cache_config->meta_indexer_config->max_key_count, 16);
	assert_null(kvcm_group_missing(m));
}

/* ---- registrations --------------------------------------------------------------------------- */

#define MODEL                                                                         \
	"\"model_deployment\":{\"model_name\":\"m\",\"dtype\":\"fp8\",\"tp_size\":2," \
	"\"user_data\":\"u1\"}"
#define SPECS                                                                          \
	"\"location_spec_infos\":[{\"name\":\"tp0\",\"size\":4096},{\"name\":\"tp1\"," \
	"\"size\":\"1000\"}]"
#define GROUPS                                                                            \
	"\"location_spec_groups\":[{\"name\":\"full\",\"spec_names\":[\"tp0\",\"tp1\"]}," \
	"{\"name\":\"half\",\"spec_names\":[\"tp1\"]}]"
#define HEAD "{\"instance_group\":\"g\",\"instance_id\":\"i\",\"block_size\":64,"
#define WHOLE HEAD SPECS "," MODEL "," GROUPS "}"

static int instance(struct box *b, const char *json, struct skv_instance_spec *s)
{
	return kvcm_instance_spec(
		message(b, &kvcm_meta__register_instance_request__descriptor, json), "default",
		&b->a, s, &b->err);
}

static void test_instance(void **state)
{
	struct box *b = *state;
	struct skv_instance_spec s;
	KvcmMeta__InstanceInfo *i;

	assert_int_equal(instance(b, WHOLE, &s), SKV_OK);
	assert_string_equal(s.tenant, "default");
	assert_string_equal(s.id, "i");
	assert_string_equal(s.group, "g");
	assert_int_equal(s.block_tokens, 64);
	assert_int_equal(s.n_specs, 2);
	assert_string_equal(s.specs[1].name, "tp1");
	assert_int_equal(s.specs[1].size, 1000);
	assert_true(s.numbered);
	i = kvcm_instance_message(&s, &b->a);
	assert_string_equal(i->quota_group_name, "default_quota_group");
	assert_string_equal(i->model_deployment->user_data, "u1");
	assert_int_equal(i->n_location_spec_groups, 2);
	assert_string_equal(kvcm_instance_for_admin(i, &b->a)->model_deployment->dtype, "fp8");
	s.extra = "{"; /* another API's text */
	i = kvcm_instance_message(&s, &b->a);
	assert_string_equal(i->instance_id, "i");
	assert_int_equal(i->location_spec_infos[0]->size, 4096);
	assert_non_null(i->model_deployment);
}

static void test_admin_registers_the_same(void **state)
{
	struct box *b = *state;
	KvcmAdmin__RegisterInstanceRequest *m =
		message(b, &kvcm_admin__register_instance_request__descriptor, WHOLE);
	struct skv_instance_spec one, two;

	assert_int_equal(kvcm_instance_spec(kvcm_register_from_admin(m, &b->a), "default", &b->a,
					    &one, &b->err),
			 SKV_OK);
	assert_int_equal(instance(b, WHOLE, &two), SKV_OK);
	assert_string_equal(one.extra, two.extra);
}

static void test_instances_refused(void **state)
{
	static const struct {
		const char *json;
		const char *field;
	} cases[] = {
		{ "{\"instance_group\":\"g\",\"instance_id\":\"a//b\",\"block_size\":1," SPECS "}",
		  "instance_id" },
		{ "{\"instance_group\":\"\",\"instance_id\":\"i\",\"block_size\":1," SPECS "}",
		  "instance_group" },
		{ "{\"instance_group\":\"g\",\"instance_id\":\"i\",\"block_size\":0," SPECS "}",
		  "block_size" },
		{ "{\"instance_group\":\"g\",\"instance_id\":\"i\",\"block_size\":-4," SPECS "}",
		  "block_size" },
		{ HEAD "\"location_spec_infos\":[]}", "location_spec_infos" },
		{ HEAD "\"location_spec_infos\":[{\"name\":\"a\",\"size\":0}]}",
		  "location_spec_infos" },
		{ HEAD "\"location_spec_infos\":[{\"name\":\"a\",\"size\":-1}]}",
		  "location_spec_infos" },
		{ HEAD "\"location_spec_infos\":[{\"name\":\"a\",\"size\":\"4294967297\"}]}",
		  "location_spec_infos" },
		{ HEAD "\"location_spec_infos\":[{\"name\":\"\",\"size\":1}]}",
		  "location_spec_infos" },
		{ HEAD "\"location_spec_infos\":[{\"name\":\"a\",\"size\":1},{\"name\":\"a\","
		  "\"size\":1}]}",
		  "location_spec_infos" },
		{ HEAD SPECS
			  ",\"location_spec_groups\":[{\"name\":\"\",\"spec_names\":[\"tp0\"]}]}",
		  "location_spec_groups" },
		{ HEAD SPECS ",\"location_spec_groups\":[{\"name\":\"g\"}]}",
		  "location_spec_groups" },
		{ HEAD SPECS
			  ",\"location_spec_groups\":[{\"name\":\"g\",\"spec_names\":[\"tp9\"]}]}",
		  "location_spec_groups" },
		{ HEAD SPECS ",\"location_spec_groups\":[{\"name\":\"g\",\"spec_names\":[\"tp0\"]},"
		  "{\"name\":\"g\",\"spec_names\":[\"tp1\"]}]}", "location_spec_groups" },
		{ HEAD SPECS ",\"default_query_type\":9}", "default_query_type" },
		{ HEAD SPECS ",\"affinity_strategy_json\":\"{}\"}", "affinity_strategy_json" },
	};
	struct box *b = *state;
	struct skv_instance_spec s;

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		int rc = instance(b, cases[i].json, &s);

		if (rc == SKV_OK || strcmp(b->err.field, cases[i].field) != 0)
			fail_msg("case %zu: %s, field '%s'", i, skv_status_name(rc), b->err.field);
	}
}

static void differs(struct box *b, const char *json, const char *fields)
{
	struct skv_instance_spec have, asked;

	assert_int_equal(instance(b, WHOLE, &have), SKV_OK);
	assert_int_equal(instance(b, json, &asked), SKV_OK);
	assert_string_equal(kvcm_instance_differs(kvcm_instance_message(&have, &b->a),
						  kvcm_instance_message(&asked, &b->a), &b->a),
			    fields);
}

static void test_registered_again(void **state)
{
	struct box *b = *state;

	differs(b, WHOLE, "");
	differs(b,
		HEAD SPECS
		"," GROUPS
		",\"model_deployment\":{\"model_name\":\"m\",\"dtype\":\"fp8\",\"tp_size\":2,"
		"\"user_data\":\"other\"}}",
		"");
	differs(b,
		HEAD SPECS
		"," MODEL ",\"location_spec_groups\":[{\"name\":\"half\",\"spec_names\":[\"tp1\"]},"
		"{\"name\":\"full\",\"spec_names\":[\"tp1\",\"tp0\"]}]}",
		"");
	differs(b, HEAD SPECS "," MODEL "}", "location_spec_groups");
	differs(b,
		HEAD SPECS
		"," MODEL ",\"location_spec_groups\":[{\"name\":\"half\",\"spec_names\":[\"tp1\"]},"
		"{\"name\":\"full\",\"spec_names\":[\"tp1\"]}]}",
		"location_spec_groups");
	differs(b,
		"{\"instance_group\":\"h\",\"instance_id\":\"i\",\"block_size\":32," MODEL
		"," GROUPS
		",\"location_spec_infos\":[{\"name\":\"tp1\",\"size\":1000},{\"name\":\"tp0\","
		"\"size\":4096}],\"default_query_type\":2}",
		"instance_group, block_size, location_spec_infos, default_query_type");
	differs(b,
		HEAD SPECS
		"," GROUPS
		",\"model_deployment\":{\"model_name\":\"m\",\"dtype\":\"fp8\",\"tp_size\":2,"
		"\"use_eagle_pop\":true}}",
		"model_deployment");
	differs(b, HEAD SPECS "," GROUPS "}", "model_deployment");
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_nfs),
		CASE(test_3fs_elsewhere),
		CASE(test_mount_of_the_root),
		CASE(test_mounts_checked),
		CASE(test_dummy),
		CASE(test_storages_refused),
		CASE(test_storage_and_back),
		CASE(test_storage_configs),
		CASE(test_group),
		CASE(test_order_of_storages),
		CASE(test_lines_that_are_none),
		CASE(test_steps_and_ttl),
		CASE(test_groups_refused),
		CASE(test_missing_fields),
		CASE(test_group_and_back),
		CASE(test_instance),
		CASE(test_admin_registers_the_same),
		CASE(test_instances_refused),
		CASE(test_registered_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
