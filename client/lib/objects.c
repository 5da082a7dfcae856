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
	const struct kvb_storage_spec *storage;
	const struct kvb_group_spec *group;
	const struct kvb_instance_spec *instance;
};

static int object_call(struct kvblock *kv, const char *op, const char *method, const char *format,
		       const char *name, const struct body *body, struct kvb_answer *a,
		       struct kvb_error *err) __attribute__((format(printf, 4, 0)));

static void write_body(const struct kvb_v1_codec *codec, const struct body *body, struct kvb_buf *out)
{
	if (body->storage)
		codec->write_storage(out, body->storage);
	else if (body->group)
		codec->write_group(out, body->group);
	else
		codec->write_instance(out, body->instance);
}

/* The name has been checked. */
static int object_call(struct kvblock *kv, const char *op, const char *method, const char *format,
		       const char *name, const struct body *body, struct kvb_answer *a,
		       struct kvb_error *err)
{
	struct kvb_buf text = { 0 };
	char path[KVB_PATH_MAX];
	struct kvb_call c = {
		.op = op, .method = method, .path = path, .body = body ? &text : NULL
	};
	int rc;

	snprintf(path, sizeof path, format, name);
	do {
		c.codec = kv->codec;
		kvb_buf_clear(&text);
		if (body)
			write_body(c.codec, body, &text);
		rc = kvb_call_do(kv, &c, a, err);
	} while (kvb_call_again(kv, a));
	kvb_buf_destroy(&text);
	return rc;
}

static int put(struct kvblock *kv, const char *op, const char *format, const char *name,
	       const struct body *body, struct kvblock_error *err)
{
	struct kvb_error e = { 0 };
	struct kvb_answer a = { 0 };
	int rc = object_call(kv, op, "PUT", format, name, body, &a, &e);

	kvb_buf_destroy(&a.body);
	return kvb_result_fail(err, &e, rc);
}

static int delete(struct kvblock *kv, const char *op, const char *format, const char *name,
		  struct kvblock_error *err)
{
	struct kvb_error e = { 0 };
	struct kvb_answer a = { 0 };
	int rc = kvb_name_check(name, "name", &e);

	if (rc == KVB_OK) {
		rc = object_call(kv, op, "DELETE", format, name, NULL, &a, &e);
		kvb_buf_destroy(&a.body);
	}
	return kvb_result_fail(err, &e, rc == KVB_E_NOT_FOUND ? KVB_OK : rc);
}

int kvblock_storage_delete(struct kvblock *kv, const char *name, struct kvblock_error *err)
{
	return delete(kv, "storage_delete", KVB_PATH_STORAGE, name, err);
}

int kvblock_group_delete(struct kvblock *kv, const char *name, struct kvblock_error *err)
{
	return delete(kv, "group_delete", KVB_PATH_GROUP, name, err);
}

int kvblock_instance_delete(struct kvblock *kv, const char *id, struct kvblock_error *err)
{
	return delete(kv, "instance_delete", KVB_PATH_INSTANCE, id, err);
}

/* ---- storages -------------------------------------------------------------------------------- */

int kvblock_storage_put(struct kvblock *kv, const struct kvblock_storage *s,
			struct kvblock_error *err)
{
	struct kvb_storage_spec spec = { .name = s->name,
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
	struct kvb_error e = { 0 };
	int rc = kvb_name_check(s->name, "name", &e);

	if (rc != KVB_OK)
		return kvb_result_fail(err, &e, rc);
	return put(kv, "storage_put", KVB_PATH_STORAGE, s->name, &(struct body){ .storage = &spec },
		   err);
}

static int read_storage(struct kvblock_storage_info *info, const struct kvb_answer *a,
			const char *name, struct kvb_error *err)
{
	struct kvb_v1_in in = { .arena = kvb_result_arena(info) };
	struct kvb_storage_view v = { 0 };
	int rc = a->codec->read_storage_view(&in, (const char *)a->body.data, a->body.len, &v, err);

	if (rc != KVB_OK)
		return rc;
	*info = (struct kvblock_storage_info){
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
		info->spec.name = kvb_arena_strndup(in.arena, name, strlen(name));
	return info->spec.name ? KVB_OK : KVB_E_NOMEM;
}

int kvb_object_storage(struct kvblock *kv, const char *name, struct kvblock_storage_info **out,
		       struct kvb_error *err)
{
	struct kvblock_storage_info *info = NULL;
	struct kvb_answer a = { 0 };
	int rc = kvb_name_check(name, "name", err);

	if (rc != KVB_OK)
		return rc;
	info = kvb_result_new(sizeof *info);
	if (!info)
		return kvb_fail(err, KVB_E_NOMEM, NULL, "out of memory");
	rc = object_call(kv, "storage_get", "GET", KVB_PATH_STORAGE, name, NULL, &a, err);
	if (rc == KVB_OK)
		rc = read_storage(info, &a, name, err);
	kvb_buf_destroy(&a.body);
	if (rc == KVB_OK)
		*out = info;
	else
		kvblock_free(info);
	return rc;
}

int kvblock_storage_get(struct kvblock *kv, const char *name,
			const struct kvblock_storage_info **out, struct kvblock_error *err)
{
	struct kvblock_storage_info *info = NULL;
	struct kvb_error e = { 0 };
	int rc = kvb_object_storage(kv, name, &info, &e);

	if (rc == KVB_OK)
		*out = info;
	return kvb_result_fail(err, &e, rc);
}

/* ---- groups ---------------------------------------------------------------------------------- */

int kvblock_group_put(struct kvblock *kv, const struct kvblock_group *g, struct kvblock_error *err)
{
	struct kvb_group_spec spec = { .name = g->name,
				       .capacity = g->capacity,
				       .storages = g->storages,
				       .n_storages = g->n_storages,
				       .policy = g->policy ? g->policy : "",
				       .ttl_ms = g->ttl_ms };
	struct kvb_error e = { 0 };
	int rc = kvb_name_check(g->name, "name", &e);

	for (uint32_t i = 0; i < g->n_storages && rc == KVB_OK; i++)
		rc = kvb_name_check(g->storages[i], "storages", &e);
	if (rc != KVB_OK)
		return kvb_result_fail(err, &e, rc);
	return put(kv, "group_put", KVB_PATH_GROUP, g->name, &(struct body){ .group = &spec },
		   err);
}

static int read_group(struct kvblock_group_info *info, const struct kvb_answer *a,
			const char *name,
		      struct kvb_error *err)
{
	struct kvb_v1_in in = { .arena = kvb_result_arena(info) };
	struct kvb_group_view v = { 0 };
	int rc = a->codec->read_group_view(&in, (const char *)a->body.data, a->body.len, &v, err);

	if (rc != KVB_OK)
		return rc;
	*info = (struct kvblock_group_info){
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
		info->spec.name = kvb_arena_strndup(in.arena, name, strlen(name));
	return info->spec.name ? KVB_OK : KVB_E_NOMEM;
}

int kvblock_group_get(struct kvblock *kv, const char *name, const struct kvblock_group_info **out,
		      struct kvblock_error *err)
{
	struct kvblock_group_info *info = kvb_result_new(sizeof *info);
	struct kvb_answer a = { 0 };
	struct kvb_error e = { 0 };
	int rc = info ? kvb_name_check(name, "name", &e) : KVB_E_NOMEM;

	if (rc == KVB_OK) {
		rc = object_call(kv, "group_get", "GET", KVB_PATH_GROUP, name, NULL, &a, &e);
		if (rc == KVB_OK)
			rc = read_group(info, &a, name, &e);
		kvb_buf_destroy(&a.body);
	}
	if (rc == KVB_OK)
		*out = info;
	else
		kvblock_free(info);
	return kvb_result_fail(err, &e, rc);
}

/* ---- instances ------------------------------------------------------------------------------- */

static int check_instance(const struct kvblock_instance *i, struct kvb_error *err)
{
	int rc = kvb_name_check(i->id, "id", err);

	if (rc == KVB_OK)
		rc = kvb_name_check(i->group, "group", err);
	if (rc == KVB_OK && (i->n_specs < 1 || i->n_specs > KVB_MAX_SPECS))
		rc = kvb_fail(err, KVB_E_INVALID, "specs", "1..%u specs", KVB_MAX_SPECS);
	for (uint32_t s = 0; rc == KVB_OK && s < i->n_specs; s++)
		rc = kvb_name_check(i->specs[s].name, "specs.name", err);
	return rc;
}

int kvblock_instance_put(struct kvblock *kv, const struct kvblock_instance *i,
			 struct kvblock_error *err)
{
	struct kvb_spec specs[KVB_MAX_SPECS];
	struct kvb_instance_spec spec = { .tenant = "",
					  .id = i->id,
					  .group = i->group,
					  .block_tokens = i->block_tokens,
					  .specs = specs,
					  .n_specs = i->n_specs,
					  .extra = i->extra ? i->extra : "" };
	struct kvb_error e = { 0 };
	int rc = check_instance(i, &e);

	if (rc != KVB_OK)
		return kvb_result_fail(err, &e, rc);
	for (uint32_t s = 0; s < i->n_specs; s++)
		specs[s] = (struct kvb_spec){ i->specs[s].name, i->specs[s].size };
	return put(kv, "instance_put", KVB_PATH_INSTANCE, i->id, &(struct body){ .instance = &spec },
		   err);
}

static int read_instance(struct kvblock_instance_info *info, const struct kvb_answer *a,
			const char *id, struct kvb_error *err)
{
	struct kvb_v1_in in = { .arena = kvb_result_arena(info) };
	struct kvb_instance_view v = { 0 };
	struct kvblock_placement *placements;
	struct kvblock_spec *specs;
	int rc = a->codec->read_instance_view(&in, (const char *)a->body.data, a->body.len, &v, err);

	if (rc != KVB_OK)
		return rc;
	specs = kvb_arena_calloc(in.arena, v.spec.n_specs, sizeof *specs);
	placements = kvb_arena_calloc(in.arena, v.n_placements + 1, sizeof *placements);
	if (!specs || !placements)
		return KVB_E_NOMEM;
	for (uint32_t i = 0; i < v.n_placements; i++) {
		const struct kvb_placement *p = &v.placements[i];

		placements[i] = (struct kvblock_placement){ p->storage, p->spec, p->fit, p->slot_bytes, p->wasted_bytes,
							    p->copied_bytes };
	}
	for (uint32_t s = 0; s < v.spec.n_specs; s++)
		specs[s] = (struct kvblock_spec){ v.spec.specs[s].name, v.spec.specs[s].size };
	*info = (struct kvblock_instance_info){
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
		info->spec.id = kvb_arena_strndup(in.arena, id, strlen(id));
	return info->spec.id ? KVB_OK : KVB_E_NOMEM;
}

int kvblock_instance_get(struct kvblock *kv, const char *id,
			 const struct kvblock_instance_info **out, struct kvblock_error *err)
{
	struct kvblock_instance_info *info = kvb_result_new(sizeof *info);
	struct kvb_answer a = { 0 };
	struct kvb_error e = { 0 };
	int rc = info ? kvb_name_check(id, "id", &e) : KVB_E_NOMEM;

	if (rc == KVB_OK) {
		rc = object_call(kv, "instance_get", "GET", KVB_PATH_INSTANCE, id, NULL, &a, &e);
		if (rc == KVB_OK)
			rc = read_instance(info, &a, id, &e);
		kvb_buf_destroy(&a.body);
	}
	if (rc == KVB_OK)
		*out = info;
	else
		kvblock_free(info);
	return kvb_result_fail(err, &e, rc);
}
