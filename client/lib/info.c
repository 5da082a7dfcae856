/*
 * info.c - any call of the manager's API, readiness, and where a storage is mounted here. Texts are
 * passed on unchanged. Stateless; any thread.
 */
#include "client.h"

#include <string.h>

#include <skv/superblock.h>

int slabkv_call(struct slabkv *kv, const char *method, const char *path, const char *body,
		const char **json, struct slabkv_error *err)
{
	struct skv_buf bytes = { 0 };
	struct skv_call c = { .op = "call", .method = method, .path = path, .json = true,
			      .body = body ? &bytes : NULL };
	struct skv_answer answer = { 0 };
	struct skv_error e = { 0 };
	int rc = skv_enter(kv, &e);

	if (rc == SKV_OK && path[0] != '/')
		rc = skv_fail(&e, SKV_E_INVALID, "path", "begins with /");
	if (body)
		skv_put_bytes(&bytes, body, strlen(body));
	if (rc == SKV_OK)
		rc = skv_call_do(kv, &c, &answer, &e);
	if (rc == SKV_OK)
		rc = skv_result_text(&answer.body, json, &e);
	skv_buf_destroy(&answer.body);
	skv_buf_destroy(&bytes);
	return skv_result_fail(err, &e, rc);
}

int slabkv_ready(struct slabkv *kv, struct slabkv_error *err)
{
	struct skv_error e = { 0 };
	struct skv_exchange x;
	int rc = skv_enter(kv, &e);

	skv_exchange_begin(&x, "ready", "GET", "/readyz");
	x.call.rounds = 1;
	if (rc == SKV_OK)
		rc = skv_exchange_do(kv, &x, &e);
	skv_exchange_end(&x);
	return skv_result_fail(err, &e, rc);
}

static int find_mount(struct slabkv *kv, const char *name, const char **path,
		      struct skv_error *err)
{
	struct skv_storage_view view;
	struct skv_arena arena;
	struct skv_mount *mount;
	uint8_t uuid[16];
	char *copy;
	int rc;

	skv_arena_init(&arena);
	rc = skv_object_storage(kv, name, &arena, &view, err);
	skv_arena_destroy(&arena);
	if (rc != SKV_OK)
		return rc;
	if (skv_uuid_from_text(view.uuid, uuid) != SKV_OK)
		rc = skv_fail(err, SKV_E_INTERNAL, "uuid",
			      "the manager named a storage without a uuid");
	if (rc == SKV_OK)
		rc = skv_transfer_mount(kv, name, uuid, &mount, err);
	if (rc != SKV_OK)
		return rc;
	copy = skv_result_new(strlen(mount->path) + 1);
	if (copy)
		memcpy(copy, mount->path, strlen(mount->path));
	skv_mount_release(kv->mounts, mount);
	*path = copy;
	return copy ? SKV_OK : skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
}

int slabkv_mount_find(struct slabkv *kv, const char *name, const char **path,
		       struct slabkv_error *err)
{
	struct skv_error e = { 0 };

	int rc = skv_enter(kv, &e);

	return skv_result_fail(err, &e, rc == SKV_OK ? find_mount(kv, name, path, &e) : rc);
}
