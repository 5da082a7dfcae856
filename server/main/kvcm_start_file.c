/*
 * kvcm_start_file.c - converts KVCM's start-up file to requests of its admin service.
 *
 * Only names and values that differ are changed; the service's codec reads the rest, so that
 * unknown fields, enums and numbers are treated as there. Stateless. One thread, at start.
 */
#include <skv/kvcm_config.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#define BUILT_IN "the built-in start-up configuration"

static const char built_in[] =
	"{\"storage_config\":{\"type\":\"file\",\"global_unique_name\":\"nfs_01\","
	"\"storage_spec\":{\"key_count_per_file\":8}},"
	"\"instance_group\":{\"name\":\"default\",\"storage_candidates\":[\"nfs_01\"],"
	"\"global_quota_group_name\":\"default_quota_group\",\"max_instance_count\":100,"
	"\"quota\":{\"capacity\":30000000000,\"quota_config\":["
	"{\"storage_type\":\"file\",\"capacity\":10000000000},"
	"{\"storage_type\":\"hf3fs\",\"capacity\":10000000000},"
	"{\"storage_type\":\"pace\",\"capacity\":10000000000}]},"
	"\"cache_config\":{\"cache_prefer_strategy\":2,"
	"\"reclaim_strategy\":{\"storage_unique_name\":\"nfs_01\",\"reclaim_policy\":1,"
	"\"trigger_strategy\":{\"used_percentage\":0.8},\"delay_before_delete_ms\":1000},"
	"\"meta_indexer_config\":{\"max_key_count\":1000000,\"mutex_shard_num\":16,"
	"\"batch_key_size\":16,\"meta_storage_backend_config\":{\"storage_type\":\"local\","
	"\"storage_uri\":\"\"},\"meta_cache_policy_config\":{\"type\":\"LRU\","
	"\"capacity\":10000}}},\"version\":1}}";

/* The file's word for a type of storage, the admin service's field, its StorageType. */
static const struct kind {
	const char *type;
	const char *field;
	int number;
} kinds[] = {
	{ "file", "nfs", 4 },
	{ "hf3fs", "threefs", 1 },
	{ "vcns_hf3fs", "vcnsthreefs", 5 },
	{ "mooncake", "mooncake", 2 },
	{ "pace", "tair_mem_pool", 3 },
	{ "pace_ssd", "tair_mem_pool", 9 },
	{ "dummy", "dummy", 6 },
	{ "event_report_l1p5", "event_report", 7 },
	{ "event_report_l2", "event_report", 8 },
};

static const struct kind *find_kind(const json_t *type)
{
	for (size_t i = 0; json_is_string(type) && i < sizeof kinds / sizeof kinds[0]; i++)
		if (strcmp(kinds[i].type, json_string_value(type)) == 0)
			return &kinds[i];
	return NULL;
}

/* A misread member must not count as absent: a member of an unexpected type is an error. */
static int wrong_type(const char *file, const char *member, const char *expected,
		      struct skv_error *err)
{
	return skv_fail(err, SKV_E_INVALID, "kvcm_startup_config", "%.120s: %s: %s is expected",
			file, member, expected);
}

static int check_object(const char *file, const json_t *parent, const char *name, const char *path,
			struct skv_error *err)
{
	const json_t *v = json_object_get(parent, name);

	return !v || json_is_object(v) ? SKV_OK : wrong_type(file, path, "an object", err);
}

static void rename_member(json_t *object, const char *from, const char *to)
{
	json_t *v = json_object_get(object, from);

	if (!v)
		return;
	if (!json_object_get(object, to))
		json_object_set(object, to, v);
	json_object_del(object, from);
}

static int unknown_type(const char *file, const json_t *type, struct skv_error *err)
{
	return skv_fail(err, SKV_E_INVALID, "kvcm_startup_config",
			"%.160s: there is no storage type '%.32s'", file,
			json_is_string(type) ? json_string_value(type) : "");
}

/* ---- names and values that differ ------------------------------------------------------------ */

static int rename_storage(const char *file, json_t *s, struct skv_error *err)
{
	json_t *type = json_object_get(s, "type"), *available = json_object_get(s, "is_available");
	const struct kind *kind = find_kind(type);
	int rc;

	if (type && !json_is_string(type))
		return wrong_type(file, "storage_config.type", "a string", err);
	if (!kind)
		return unknown_type(file, type, err);
	if (available && !json_is_boolean(available))
		return wrong_type(file, "storage_config.is_available", "true or false", err);
	rc = check_object(file, s, "storage_spec", "storage_config.storage_spec", err);
	if (rc != SKV_OK)
		return rc;
	rename_member(s, "storage_spec", kind->field);
	if (strcmp(kind->type, "mooncake") == 0)
		rename_member(json_object_get(s, kind->field), "master_server_entry",
			      "master_service_entry");
	json_object_set_new(s, "storage_type", json_integer(kind->number));
	return SKV_OK;
}

static int rename_group(const char *file, json_t *g, struct skv_error *err)
{
	json_t *list = json_object_get(json_object_get(g, "quota"), "quota_config");
	json_t *quota;
	size_t i;
	int rc = check_object(file, g, "quota", "instance_group.quota", err);

	if (rc == SKV_OK)
		rc = check_object(file, g, "cache_config", "instance_group.cache_config", err);
	if (rc != SKV_OK)
		return rc;
	if (list && !json_is_array(list))
		return wrong_type(file, "instance_group.quota.quota_config", "an array", err);
	rename_member(json_object_get(g, "cache_config"), "cache_prefer_strategy",
		      "data_storage_strategy");
	rename_member(g, "event_reporting_storage_candidates", "event_report_storage_candidates");
	json_array_foreach(list, i, quota) {
		json_t *type = json_object_get(quota, "storage_type");
		const struct kind *kind = find_kind(type);

		if (json_is_string(type) && !kind)
			return unknown_type(file, type, err);
		if (kind)
			json_object_set_new(quota, "storage_type", json_integer(kind->number));
	}
	return SKV_OK;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The member as a list: the file may have one object, an array, or none. */
static int listed(const char *file, json_t *root, const char *name, json_t **out,
		  struct skv_error *err)
{
	json_t *v = json_object_get(root, name), *j;
	size_t i;

	*out = json_is_array(v) ? json_incref(v) : json_array();
	if (!*out)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	if (json_is_object(v))
		json_array_append(*out, v);
	else if (v && !json_is_array(v))
		return wrong_type(file, name, "an object, or an array of objects,", err);
	json_array_foreach(*out, i, j)
		if (!json_is_object(j))
			return wrong_type(file, name, "an object, or an array of objects,", err);
	return SKV_OK;
}

static int keep(const json_t *j, struct skv_arena *a, const char **out, struct skv_error *err)
{
	char *text = json_dumps(j, JSON_COMPACT);

	*out = text ? skv_arena_strndup(a, text, strlen(text)) : NULL;
	free(text); /* jansson's own */
	return *out ? SKV_OK : skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
}

static int read_root(json_t *root, struct skv_arena *a, struct kvcm_start_file *out,
		     struct skv_error *err)
{
	json_t *storages = NULL, *groups = NULL, *j;
	size_t i;
	int rc = listed(out->name, root, "storage_config", &storages, err);

	if (rc == SKV_OK)
		rc = listed(out->name, root, "instance_group", &groups, err);
	out->storages = skv_arena_calloc(a, json_array_size(storages) + 1, sizeof *out->storages);
	out->groups = skv_arena_calloc(a, json_array_size(groups) + 1, sizeof *out->groups);
	if (rc == SKV_OK && (!out->storages || !out->groups))
		rc = skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	json_array_foreach(storages, i, j) {
		if (rc == SKV_OK)
			rc = rename_storage(out->name, j, err);
		if (rc == SKV_OK)
			rc = keep(j, a, &out->storages[out->n_storages].json, err);
		if (rc == SKV_OK)
			out->storages[out->n_storages++].enabled =
				!json_is_false(json_object_get(j, "is_available"));
	}
	json_array_foreach(groups, i, j) {
		if (rc == SKV_OK)
			rc = rename_group(out->name, j, err);
		if (rc == SKV_OK)
			rc = keep(j, a, &out->groups[out->n_groups++], err);
	}
	assert(rc != SKV_OK || (out->n_storages == json_array_size(storages) &&
				out->n_groups == json_array_size(groups)));
	json_decref(storages);
	json_decref(groups);
	return rc;
}

static json_t *make_built_in(const char *directory, json_error_t *cause)
{
	json_t *root = json_loads(built_in, JSON_REJECT_DUPLICATES, cause);
	json_t *spec = json_object_get(json_object_get(root, "storage_config"), "storage_spec");

	json_object_set_new(spec, "root_path", json_string(directory));
	return root;
}

int kvcm_start_file_read(const char *path, const char *directory, struct skv_arena *a,
			 struct kvcm_start_file *out, struct skv_error *err)
{
	json_error_t cause;
	json_t *root = *path ? json_load_file(path, JSON_REJECT_DUPLICATES, &cause)
			     : make_built_in(directory, &cause);
	int rc;

	*out = (struct kvcm_start_file){ .name = *path ? path : BUILT_IN };
	if (!root)
		return skv_fail(err, SKV_E_INVALID, "kvcm_startup_config",
				"%.120s: line %d: %.150s", out->name, cause.line, cause.text);
	rc = json_is_object(root) ? read_root(root, a, out, err)
				  : skv_fail(err, SKV_E_INVALID, "kvcm_startup_config",
					     "%.120s: an object is expected", out->name);
	json_decref(root);
	return rc;
}
