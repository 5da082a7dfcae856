/*
 * startup.c - the peer's start-up file as messages of its admin service.
 *
 * Only names and values that differ are changed in the JSON; the codec of the service reads the rest, so that
 * unknown fields, enums and numbers are taken as there. No state. One thread.
 */
#include <kvb/kvcm_run.h>

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <kvb/core.h>
#include <kvb/proto_codec.h>

#include "model.h"

#define BUILT_IN "the built-in start-up configuration"

static const char built_in[] =
	"{\"storage_config\":{\"type\":\"file\",\"global_unique_name\":\"nfs_01\","
	"\"storage_spec\":{\"root_path\":\"/tmp/nfs/\",\"key_count_per_file\":8}},"
	"\"instance_group\":{\"name\":\"default\",\"storage_candidates\":[\"nfs_01\"],"
	"\"global_quota_group_name\":\"default_quota_group\",\"max_instance_count\":100,"
	"\"quota\":{\"capacity\":30000000000,\"quota_config\":["
	"{\"storage_type\":\"file\",\"capacity\":10000000000},"
	"{\"storage_type\":\"hf3fs\",\"capacity\":10000000000},"
	"{\"storage_type\":\"pace\",\"capacity\":10000000000}]},"
	"\"cache_config\":{\"cache_prefer_strategy\":2,"
	"\"reclaim_strategy\":{\"storage_unique_name\":\"nfs_01\",\"reclaim_policy\":1,"
	"\"trigger_strategy\":{\"used_percentage\":0.8},\"delay_before_delete_ms\":1000},"
	"\"meta_indexer_config\":{\"max_key_count\":1000000,\"mutex_shard_num\":16,\"batch_key_size\":16,"
	"\"meta_storage_backend_config\":{\"storage_type\":\"local\",\"storage_uri\":\"\"},"
	"\"meta_cache_policy_config\":{\"type\":\"LRU\",\"capacity\":10000}}},"
	"\"version\":1}}";

/* The file's word for a storage's type, the admin service's field, its StorageType. */
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

static void rename_member(json_t *object, const char *from, const char *to)
{
	json_t *v = json_object_get(object, from);

	if (!v)
		return;
	if (!json_object_get(object, to))
		json_object_set(object, to, v);
	json_object_del(object, from);
}

static int unknown_type(const char *file, const json_t *type, struct kvb_error *err)
{
	return kvb_fail(err, KVB_E_INVALID, "kvcm_startup_config", "%.160s: there is no storage type '%.32s'", file,
			json_is_string(type) ? json_string_value(type) : "");
}

/* ---- names and values that differ ------------------------------------------------------------ */

static int rename_storage(const char *file, json_t *s, struct kvb_error *err)
{
	json_t *type = json_object_get(s, "type");
	const struct kind *kind = find_kind(type);

	if (!kind)
		return unknown_type(file, type, err);
	rename_member(s, "storage_spec", kind->field);
	if (strcmp(kind->type, "mooncake") == 0)
		rename_member(json_object_get(s, kind->field), "master_server_entry", "master_service_entry");
	json_object_set_new(s, "storage_type", json_integer(kind->number));
	return KVB_OK;
}

static int rename_group(const char *file, json_t *g, struct kvb_error *err)
{
	json_t *list = json_object_get(json_object_get(g, "quota"), "quota_config");
	json_t *quota;
	size_t i;

	rename_member(json_object_get(g, "cache_config"), "cache_prefer_strategy", "data_storage_strategy");
	rename_member(g, "event_reporting_storage_candidates", "event_report_storage_candidates");
	json_array_foreach(list, i, quota) {
		json_t *type = json_object_get(quota, "storage_type");
		const struct kind *kind = find_kind(type);

		if (json_is_string(type) && !kind)
			return unknown_type(file, type, err);
		if (kind)
			json_object_set_new(quota, "storage_type", json_integer(kind->number));
	}
	return KVB_OK;
}

/* ---- reading --------------------------------------------------------------------------------- */

static int read_message(const char *file, const json_t *j, const ProtobufCMessageDescriptor *d,
			struct kvb_arena *a, ProtobufCMessage **out, struct kvb_error *err)
{
	char *text = json_dumps(j, JSON_COMPACT);
	struct kvb_error cause;
	int rc;

	if (!text)
		return kvb_fail(err, KVB_E_NOMEM, NULL, "out of memory");
	rc = kvb_proto_json.read(d, text, strlen(text), a, out, &cause);
	free(text);
	return rc == KVB_OK ? rc
			    : kvb_fail(err, rc, "kvcm_startup_config", "%.120s: %.180s", file, cause.message);
}

static int add_storage(const char *file, json_t *j, const struct kvcm_model *model, struct kvb_arena *a,
		       struct kvcm_startup *out, struct kvb_error *err)
{
	struct kvcm_startup_storage *at = &out->storages[out->n_storages];
	const json_t *available = json_object_get(j, "is_available");
	struct kvb_storage_spec checked;
	struct kvb_error cause;
	ProtobufCMessage *m;
	int rc = rename_storage(file, j, err);

	if (rc == KVB_OK)
		rc = read_message(file, j, &kvcm_admin__storage_config__descriptor, a, &m, err);
	if (rc != KVB_OK)
		return rc;
	rc = kvcm_storage_spec((KvcmAdmin__StorageConfig *)m, model, "", a, &checked, &cause);
	if (rc != KVB_OK)
		return kvb_fail(err, rc, "kvcm_startup_config", "%.100s: storage_config: %.180s", file,
				cause.message);
	at->config = m;
	at->name = checked.name;
	at->enabled = !json_is_false(available);
	out->n_storages++;
	return KVB_OK;
}

static int add_group(const char *file, json_t *j, struct kvb_arena *a, struct kvcm_startup *out,
		     struct kvb_error *err)
{
	struct kvcm_startup_group *at = &out->groups[out->n_groups];
	struct kvb_group_spec checked;
	struct kvb_error cause;
	ProtobufCMessage *m;
	int rc = rename_group(file, j, err);

	if (rc == KVB_OK)
		rc = read_message(file, j, &kvcm_admin__instance_group__descriptor, a, &m, err);
	if (rc != KVB_OK)
		return rc;
	rc = kvcm_group_spec((KvcmAdmin__InstanceGroup *)m, NULL, 0, a, &checked, &cause);
	if (rc != KVB_OK)
		return kvb_fail(err, rc, "kvcm_startup_config", "%.100s: instance_group: %.180s", file,
				cause.message);
	at->group = m;
	at->name = checked.name;
	out->n_groups++;
	return KVB_OK;
}

/* The member as a list: the file has one object, or several in an array. */
static json_t *listed(json_t *root, const char *name)
{
	json_t *v = json_object_get(root, name);
	json_t *list;

	if (json_is_array(v))
		return json_incref(v);
	list = json_array();
	if (json_is_object(v))
		json_array_append(list, v);
	return list;
}

static int read_root(const char *file, json_t *root, const struct kvcm_model *model, struct kvb_arena *a,
		     struct kvcm_startup *out, struct kvb_error *err)
{
	json_t *storages = listed(root, "storage_config");
	json_t *groups = listed(root, "instance_group");
	json_t *j;
	size_t i;
	int rc = KVB_OK;

	memset(out, 0, sizeof *out);
	out->storages = kvb_arena_calloc(a, json_array_size(storages) + 1, sizeof *out->storages);
	out->groups = kvb_arena_calloc(a, json_array_size(groups) + 1, sizeof *out->groups);
	if (!out->storages || !out->groups)
		rc = kvb_fail(err, KVB_E_NOMEM, NULL, "out of memory");
	json_array_foreach(storages, i, j)
		if (rc == KVB_OK)
			rc = add_storage(file, j, model, a, out, err);
	json_array_foreach(groups, i, j)
		if (rc == KVB_OK)
			rc = add_group(file, j, a, out, err);
	json_decref(storages);
	json_decref(groups);
	return rc;
}

int kvcm_startup_load(const char *path, const struct kvcm_model *model, struct kvb_arena *a,
		      struct kvcm_startup *out, struct kvb_error *err)
{
	const char *file = *path ? path : BUILT_IN;
	json_error_t cause;
	json_t *root = *path ? json_load_file(path, JSON_REJECT_DUPLICATES, &cause)
			     : json_loads(built_in, JSON_REJECT_DUPLICATES, &cause);
	int rc;

	if (!root)
		return kvb_fail(err, KVB_E_INVALID, "kvcm_startup_config", "%.120s: line %d: %.150s", file, cause.line,
				cause.text);
	rc = json_is_object(root) ? read_root(file, root, model, a, out, err)
				  : kvb_fail(err, KVB_E_INVALID, "kvcm_startup_config", "%.120s: an object is expected", file);
	json_decref(root);
	return rc;
}

/* ---- making ---------------------------------------------------------------------------------- */

static int make_storage(const struct kvcm_startup_storage *s, const struct kvcm_model *model,
			struct kvb_core *core, struct kvb_arena *a, struct kvb_error *err)
{
	struct kvb_storage_view *v;
	uint32_t n;
	int rc = kvb_core_storages(core, s->name, a, &v, &n, err);

	if (rc != KVB_E_NOT_FOUND)
		return rc;
	rc = kvcm_storage_put(core, s->config, model, NULL, err);
	if (rc != KVB_OK || s->enabled)
		return rc;
	rc = kvb_core_storages(core, s->name, a, &v, &n, err);
	if (rc != KVB_OK)
		return rc;
	v[0].spec.enabled = false;
	return kvb_core_storage_put(core, &v[0].spec, NULL, err);
}

static int make_group(const struct kvcm_startup_group *g, struct kvb_core *core, struct kvb_arena *a,
		      struct kvb_error *err)
{
	struct kvb_storage_view *storages;
	struct kvb_group_view *v;
	struct kvb_group_spec spec;
	uint32_t n;
	int rc = kvb_core_groups(core, g->name, a, &v, &n, err);

	if (rc != KVB_E_NOT_FOUND)
		return rc;
	rc = kvb_core_storages(core, NULL, a, &storages, &n, err);
	if (rc == KVB_OK)
		rc = kvcm_group_spec(g->group, storages, n, a, &spec, err);
	return rc == KVB_OK ? kvb_core_group_put(core, &spec, NULL, NULL, err) : rc;
}

int kvcm_startup_make(const struct kvcm_startup *s, const struct kvcm_model *model, struct kvb_core *core,
		      struct kvb_error *err)
{
	struct kvb_arena a;
	int rc = KVB_OK;

	kvb_arena_init(&a);
	for (size_t i = 0; rc == KVB_OK && i < s->n_storages; i++)
		rc = make_storage(&s->storages[i], model, core, &a, err);
	for (size_t i = 0; rc == KVB_OK && i < s->n_groups; i++)
		rc = make_group(&s->groups[i], core, &a, err);
	kvb_arena_destroy(&a);
	return rc;
}
