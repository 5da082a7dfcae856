/*
 * objects.c - storages, groups and instances: put, get, delete. No state; any thread.
 *
 * The three kinds differ only in their path and in the codec that reads or writes them.
 */
#include "client.h"
#include "paths.h"

#include <stdio.h>
#include <string.h>

/* What a PUT carries: one of them. */
struct body {
	const struct skv_storage_spec *storage;
	const struct skv_group_spec *group;
	const struct skv_instance_spec *instance;
};

static int object_call(struct slabkv *kv, const char *op, const char *method, const char *format,
		       const char *name, const struct body *body, struct skv_answer *a,
		       struct skv_error *err) __attribute__((format(printf, 4, 0)));

static void write_body(const struct skv_v1_codec *codec, const struct body *body, struct skv_buf *out)
{
	if (body->storage)
		codec->write_storage(out, body->storage);
	else if (body->group)
		codec->write_group(out, body->group);
	else
		codec->write_instance(out, body->instance);
}

/* The name has been checked. */
static int object_call(struct slabkv *kv, const char *op, const char *method, const char *format,
		       const char *name, const struct body *body, struct skv_answer *a,
		       struct skv_error *err)
{
	struct skv_buf text = { 0 };
	char path[SKV_PATH_MAX];
	struct skv_call c = {
		.op = op, .method = method, .path = path, .body = body ? &text : NULL
	};
	int rc;

	snprintf(path, sizeof path, format, skv_path_name(name, (char[SKV_PATH_NAME]){ 0 }));
	do {
		c.codec = kv->codec;
		skv_buf_clear(&text);
		if (body)
			write_body(c.codec, body, &text);
		rc = skv_call_do(kv, &c, a, err);
	} while (skv_call_again(kv, a));
	skv_buf_destroy(&text);
	return rc;
}

static int put(struct slabkv *kv, const char *op, const char *format, const char *name,
	       const struct body *body, struct slabkv_error *err)
{
	struct skv_error e = { 0 };
	struct skv_answer a = { 0 };
	int rc = object_call(kv, op, "PUT", format, name, body, &a, &e);

	skv_buf_destroy(&a.body);
	return skv_result_fail(err, &e, rc);
}

static int delete(struct slabkv *kv, const char *op, const char *format, const char *name,
		  struct slabkv_error *err)
{
	struct skv_error e = { 0 };
	struct skv_answer a = { 0 };
	int rc = skv_name_check(name, "name", &e);

	if (rc == SKV_OK) {
		rc = object_call(kv, op, "DELETE", format, name, NULL, &a, &e);
		skv_buf_destroy(&a.body);
	}
	return skv_result_fail(err, &e, rc == SKV_E_NOT_FOUND ? SKV_OK : rc);
}

int slabkv_storage_delete(struct slabkv *kv, const char *name, struct slabkv_error *err)
{
	return delete(kv, "storage_delete", SKV_PATH_STORAGE, name, err);
}

int slabkv_group_delete(struct slabkv *kv, const char *name, struct slabkv_error *err)
{
	return delete(kv, "group_delete", SKV_PATH_GROUP, name, err);
}

int slabkv_instance_delete(struct slabkv *kv, const char *id, struct slabkv_error *err)
{
	return delete(kv, "instance_delete", SKV_PATH_INSTANCE, id, err);
}

/* ---- storages -------------------------------------------------------------------------------- */

int slabkv_storage_put(struct slabkv *kv, const struct slabkv_storage *s,
			struct slabkv_error *err)
{
	struct skv_storage_spec spec = { .name = s->name,
					 .type = s->type ? s->type : "file",
					 .root = s->root ? s->root : "",
					 .capacity = s->capacity,
					 .file_size = s->file_size,
					 .unit = s->unit,
					 .enabled = s->enabled,
					 .chunk_size = s->chunk_size,
					 .any_mount = s->any_mount,
					 .fs_master = s->fs_master,
					 .n_fs_master = s->n_fs_master };
	struct skv_error e = { 0 };
	int rc = skv_name_check(s->name, "name", &e);

	if (rc != SKV_OK)
		return skv_result_fail(err, &e, rc);
	return put(kv, "storage_put", SKV_PATH_STORAGE, s->name, &(struct body){ .storage = &spec },
		   err);
}

static int read_storage(struct slabkv_storage_info *info, const struct skv_answer *a,
			const char *name, struct skv_error *err)
{
	struct skv_v1_in in = { .arena = skv_result_arena(info) };
	struct skv_storage_view v = { 0 };
	int rc = a->codec->read_storage_view(&in, (const char *)a->body.data, a->body.len, &v, err);

	if (rc != SKV_OK)
		return rc;
	*info = (struct slabkv_storage_info){
		.spec = { .name = v.spec.name, .type = v.spec.type, .root = v.spec.root,
			  .capacity = v.spec.capacity, .file_size = v.spec.file_size,
			  .unit = v.spec.unit, .enabled = v.spec.enabled, .chunk_size = v.spec.chunk_size,
			  .any_mount = v.spec.any_mount, .fs_master = v.spec.fs_master,
			  .n_fs_master = v.spec.n_fs_master },
		.healthy = v.healthy,
		.problem = v.problem ? v.problem : "",
		.files = v.files,
		.file_bytes = v.file_bytes,
		.assigned_bytes = v.assigned_bytes,
		.used_bytes = v.used_bytes,
		.quarantined_bytes = v.quarantined_bytes,
		.free_bytes = v.free_bytes,
	};
	memcpy(info->uuid, v.uuid, sizeof info->uuid);
	if (!info->spec.name)
		info->spec.name = skv_arena_strndup(in.arena, name, strlen(name));
	return info->spec.name ? SKV_OK : SKV_E_NOMEM;
}

int skv_object_storage(struct slabkv *kv, const char *name, struct slabkv_storage_info **out,
		       struct skv_error *err)
{
	struct slabkv_storage_info *info = NULL;
	struct skv_answer a = { 0 };
	int rc = skv_name_check(name, "name", err);

	if (rc != SKV_OK)
		return rc;
	info = skv_result_new(sizeof *info);
	if (!info)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	rc = object_call(kv, "storage_get", "GET", SKV_PATH_STORAGE, name, NULL, &a, err);
	if (rc == SKV_OK)
		rc = read_storage(info, &a, name, err);
	skv_buf_destroy(&a.body);
	if (rc == SKV_OK)
		*out = info;
	else
		slabkv_free(info);
	return rc;
}

int slabkv_storage_get(struct slabkv *kv, const char *name,
			const struct slabkv_storage_info **out, struct slabkv_error *err)
{
	struct slabkv_storage_info *info = NULL;
	struct skv_error e = { 0 };
	int rc = skv_object_storage(kv, name, &info, &e);

	if (rc == SKV_OK)
		*out = info;
	return skv_result_fail(err, &e, rc);
}

/* ---- groups ---------------------------------------------------------------------------------- */

int slabkv_group_put(struct slabkv *kv, const struct slabkv_group *g, struct slabkv_error *err)
{
	struct skv_group_spec spec = { .name = g->name,
				       .capacity = g->capacity,
				       .storages = g->storages,
				       .n_storages = g->n_storages,
				       .policy = g->policy ? g->policy : "",
				       .ttl_ms = g->ttl_ms };
	struct skv_error e = { 0 };
	int rc = skv_name_check(g->name, "name", &e);

	for (uint32_t i = 0; i < g->n_storages && rc == SKV_OK; i++)
		rc = skv_name_check(g->storages[i], "storages", &e);
	if (rc != SKV_OK)
		return skv_result_fail(err, &e, rc);
	return put(kv, "group_put", SKV_PATH_GROUP, g->name, &(struct body){ .group = &spec },
		   err);
}

static int read_group(struct slabkv_group_info *info, const struct skv_answer *a,
			const char *name,
		      struct skv_error *err)
{
	struct skv_v1_in in = { .arena = skv_result_arena(info) };
	struct skv_group_view v = { 0 };
	int rc = a->codec->read_group_view(&in, (const char *)a->body.data, a->body.len, &v, err);

	if (rc != SKV_OK)
		return rc;
	*info = (struct slabkv_group_info){
		.spec = { .name = v.spec.name,
			  .capacity = v.spec.capacity,
			  .storages = v.spec.storages,
			  .n_storages = v.spec.n_storages,
			  .policy = v.spec.policy,
			  .ttl_ms = v.spec.ttl_ms },
		.used_bytes = v.used_bytes,
		.blocks = v.blocks,
	};
	if (!info->spec.name)
		info->spec.name = skv_arena_strndup(in.arena, name, strlen(name));
	return info->spec.name ? SKV_OK : SKV_E_NOMEM;
}

int slabkv_group_get(struct slabkv *kv, const char *name, const struct slabkv_group_info **out,
		      struct slabkv_error *err)
{
	struct slabkv_group_info *info = skv_result_new(sizeof *info);
	struct skv_answer a = { 0 };
	struct skv_error e = { 0 };
	int rc = info ? skv_name_check(name, "name", &e) : SKV_E_NOMEM;

	if (rc == SKV_OK) {
		rc = object_call(kv, "group_get", "GET", SKV_PATH_GROUP, name, NULL, &a, &e);
		if (rc == SKV_OK)
			rc = read_group(info, &a, name, &e);
		skv_buf_destroy(&a.body);
	}
	if (rc == SKV_OK)
		*out = info;
	else
		slabkv_free(info);
	return skv_result_fail(err, &e, rc);
}

/* ---- instances ------------------------------------------------------------------------------- */

static int check_instance(const struct slabkv_instance *i, struct skv_error *err)
{
	int rc = skv_model_name_check(i->id, "id", err);

	if (rc == SKV_OK)
		rc = skv_name_check(i->group, "group", err);
	if (rc == SKV_OK && (i->n_specs < 1 || i->n_specs > SKV_MAX_SPECS))
		rc = skv_fail(err, SKV_E_INVALID, "specs", "1..%u specs", SKV_MAX_SPECS);
	for (uint32_t s = 0; rc == SKV_OK && s < i->n_specs; s++)
		rc = skv_name_check(i->specs[s].name, "specs.name", err);
	return rc;
}

int slabkv_instance_put(struct slabkv *kv, const struct slabkv_instance *i,
			 struct slabkv_error *err)
{
	struct skv_spec specs[SKV_MAX_SPECS];
	struct skv_instance_spec spec = { .tenant = "",
					  .id = i->id,
					  .group = i->group,
					  .block_tokens = i->block_tokens,
					  .specs = specs,
					  .n_specs = i->n_specs,
					  .extra = i->extra ? i->extra : "" };
	struct skv_error e = { 0 };
	int rc = check_instance(i, &e);

	if (rc != SKV_OK)
		return skv_result_fail(err, &e, rc);
	for (uint32_t s = 0; s < i->n_specs; s++)
		specs[s] = (struct skv_spec){ i->specs[s].name, i->specs[s].size };
	return put(kv, "instance_put", SKV_PATH_INSTANCE, i->id, &(struct body){ .instance = &spec },
		   err);
}

static int read_instance(struct slabkv_instance_info *info, const struct skv_answer *a,
			const char *id, struct skv_error *err)
{
	struct skv_v1_in in = { .arena = skv_result_arena(info) };
	struct skv_instance_view v = { 0 };
	struct slabkv_placement *placements;
	struct slabkv_spec *specs;
	int rc = a->codec->read_instance_view(&in, (const char *)a->body.data, a->body.len, &v, err);

	if (rc != SKV_OK)
		return rc;
	specs = skv_arena_calloc(in.arena, v.spec.n_specs, sizeof *specs);
	placements = skv_arena_calloc(in.arena, v.n_placements + 1, sizeof *placements);
	if (!specs || !placements)
		return SKV_E_NOMEM;
	for (uint32_t i = 0; i < v.n_placements; i++) {
		const struct skv_placement *p = &v.placements[i];

		placements[i] = (struct slabkv_placement){ p->storage, p->spec, p->fit, p->slot_bytes, p->wasted_bytes,
							    p->copied_bytes };
	}
	for (uint32_t s = 0; s < v.spec.n_specs; s++)
		specs[s] = (struct slabkv_spec){ v.spec.specs[s].name, v.spec.specs[s].size };
	*info = (struct slabkv_instance_info){
		.spec = { .id = v.spec.id,
			  .group = v.spec.group,
			  .block_tokens = v.spec.block_tokens,
			  .specs = specs,
			  .n_specs = v.spec.n_specs,
			  .extra = v.spec.extra },
		.blocks = v.blocks,
		.used_bytes = v.used_bytes,
		.open_sessions = v.open_sessions,
		.open_bytes = v.open_bytes,
		.leased_bytes = v.leased_bytes,
		.placements = placements,
		.n_placements = v.n_placements,
	};
	if (!info->spec.id)
		info->spec.id = skv_arena_strndup(in.arena, id, strlen(id));
	return info->spec.id ? SKV_OK : SKV_E_NOMEM;
}

int slabkv_instance_get(struct slabkv *kv, const char *id,
			 const struct slabkv_instance_info **out, struct slabkv_error *err)
{
	struct slabkv_instance_info *info = skv_result_new(sizeof *info);
	struct skv_answer a = { 0 };
	struct skv_error e = { 0 };
	int rc = info ? skv_model_name_check(id, "id", &e) : SKV_E_NOMEM;

	if (rc == SKV_OK) {
		rc = object_call(kv, "instance_get", "GET", SKV_PATH_INSTANCE, id, NULL, &a, &e);
		if (rc == SKV_OK)
			rc = read_instance(info, &a, id, &e);
		skv_buf_destroy(&a.body);
	}
	if (rc == SKV_OK)
		*out = info;
	else
		slabkv_free(info);
	return skv_result_fail(err, &e, rc);
}
