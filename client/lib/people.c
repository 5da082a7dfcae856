/*
 * people.c - what the manager tells people: its numbers, one block, readiness, and where a storage
 * is mounted here. Texts are handed on as they come. No state; any thread.
 */
#include "client.h"
#include "paths.h"

#include <stdio.h>
#include <string.h>

#include <skv/superblock.h>

/* The answer's text as a result. */
static int call_text(struct slabkv *kv, const struct skv_call *c, const char **text, struct skv_error *err)
{
	struct skv_answer answer = { 0 };
	int rc = skv_call_do(kv, c, &answer, err);
	char *copy = rc == SKV_OK ? skv_result_new(answer.body.len + 1) : NULL;

	if (copy) {
		if (answer.body.len)
			memcpy(copy, answer.body.data, answer.body.len);
		*text = copy;
	} else if (rc == SKV_OK) {
		rc = skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	}
	skv_buf_destroy(&answer.body);
	return rc;
}

static int get_text(struct slabkv *kv, const char *op, const char *path, const char **text, struct skv_error *err)
{
	return call_text(kv, &(struct skv_call){ .op = op, .method = "GET", .path = path }, text, err);
}

int slabkv_call(struct slabkv *kv, const char *method, const char *path, const char *body, const char **json,
		 struct slabkv_error *err)
{
	struct skv_buf bytes = { 0 };
	struct skv_call c = { .op = "call", .method = method, .path = path, .body = body ? &bytes : NULL };
	struct skv_error e = { 0 };
	int rc = SKV_OK;

	if (path[0] != '/')
		rc = skv_fail(&e, SKV_E_INVALID, "path", "begins with /");
	if (body)
		skv_put_bytes(&bytes, body, strlen(body));
	if (rc == SKV_OK)
		rc = call_text(kv, &c, json, &e);
	skv_buf_destroy(&bytes);
	return skv_result_fail(err, &e, rc);
}

int slabkv_stats(struct slabkv *kv, const char **json, struct slabkv_error *err)
{
	struct skv_error e = { 0 };

	return skv_result_fail(err, &e, get_text(kv, "stats", SKV_PATH_STATS, json, &e));
}

/* String keys are hashed by the manager: they travel percent-encoded in the query. */
static int block_path(const char *instance, const struct skv_key_input *key, struct skv_buf *path)
{
	char hex[SKV_KEY_HEX + 1];

	if (key->form != SKV_KEYS_STRING) {
		skv_key_to_hex(key->keys[0], hex);
		skv_buf_printf(path, SKV_PATH_BLOCK, skv_path_name(instance, (char[SKV_PATH_NAME]){ 0 }), hex);
	} else {
		skv_buf_printf(path, SKV_PATH_BLOCK_FIND, skv_path_name(instance, (char[SKV_PATH_NAME]){ 0 }), "");
		for (const char *s = key->strings[0]; *s; s++)
			skv_buf_printf(path, "%%%02X", (unsigned char)*s);
	}
	skv_put_u8(path, 0);
	return path->failed ? SKV_E_NOMEM : SKV_OK;
}

int slabkv_block_info(struct slabkv *kv, const char *instance, const struct slabkv_keys *keys,
		       const char **json, struct slabkv_error *err)
{
	struct skv_key_input input;
	struct skv_buf path = { 0 };
	struct skv_error e = { 0 };
	struct skv_arena a;
	int rc = skv_model_name_check(instance, "instance", &e);

	skv_arena_init(&a);
	if (rc == SKV_OK)
		rc = skv_keys_input(keys, "keys", &a, &input, &e);
	if (rc == SKV_OK && input.n != 1)
		rc = skv_fail(&e, SKV_E_INVALID, "keys", "exactly one key");
	if (rc == SKV_OK)
		rc = block_path(instance, &input, &path);
	if (rc == SKV_OK)
		rc = get_text(kv, "block_info", (const char *)path.data, json, &e);
	skv_buf_destroy(&path);
	skv_arena_destroy(&a);
	return skv_result_fail(err, &e, rc);
}

int slabkv_ready(struct slabkv *kv, struct slabkv_error *err)
{
	struct skv_call c = { .op = "ready", .method = "GET", .path = SKV_PATH_READY, .rounds = 1 };
	struct skv_answer answer = { 0 };
	struct skv_error e = { 0 };
	int rc = skv_call_do(kv, &c, &answer, &e);

	skv_buf_destroy(&answer.body);
	return skv_result_fail(err, &e, rc);
}

static int find_mount(struct slabkv *kv, const char *name, const char **path,
		      struct skv_error *err)
{
	struct slabkv_storage_info *info = NULL;
	struct skv_mount *mount;
	uint8_t uuid[16];
	char *copy;
	int rc = skv_object_storage(kv, name, &info, err);

	if (rc != SKV_OK)
		return rc;
	if (skv_uuid_from_text(info->uuid, uuid) != SKV_OK)
		rc = skv_fail(err, SKV_E_INTERNAL, "uuid",
			      "the manager named a storage without a uuid");
	slabkv_free(info);
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

	return skv_result_fail(err, &e, find_mount(kv, name, path, &e));
}
