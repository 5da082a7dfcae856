/*
 * people.c - what the manager tells people: its numbers, one block, readiness, and where a storage
 * is mounted here. Texts are handed on as they come. No state; any thread.
 */
#include "client.h"
#include "paths.h"

#include <stdio.h>
#include <string.h>

#include <kvb/superblock.h>

/* The answer's text as a result. */
static int call_text(struct kvblock *kv, const struct kvb_call *c, const char **text, struct kvb_error *err)
{
	struct kvb_answer answer = { 0 };
	int rc = kvb_call_do(kv, c, &answer, err);
	char *copy = rc == KVB_OK ? kvb_result_new(answer.body.len + 1) : NULL;

	if (copy) {
		if (answer.body.len)
			memcpy(copy, answer.body.data, answer.body.len);
		*text = copy;
	} else if (rc == KVB_OK) {
		rc = kvb_fail(err, KVB_E_NOMEM, NULL, "out of memory");
	}
	kvb_buf_destroy(&answer.body);
	return rc;
}

static int get_text(struct kvblock *kv, const char *op, const char *path, const char **text, struct kvb_error *err)
{
	return call_text(kv, &(struct kvb_call){ .op = op, .method = "GET", .path = path }, text, err);
}

int kvblock_call(struct kvblock *kv, const char *method, const char *path, const char *body, const char **json,
		 struct kvblock_error *err)
{
	struct kvb_buf bytes = { 0 };
	struct kvb_call c = { .op = "call", .method = method, .path = path, .body = body ? &bytes : NULL };
	struct kvb_error e = { 0 };
	int rc = KVB_OK;

	if (path[0] != '/')
		rc = kvb_fail(&e, KVB_E_INVALID, "path", "begins with /");
	if (body)
		kvb_put_bytes(&bytes, body, strlen(body));
	if (rc == KVB_OK)
		rc = call_text(kv, &c, json, &e);
	kvb_buf_destroy(&bytes);
	return kvb_result_fail(err, &e, rc);
}

int kvblock_stats(struct kvblock *kv, const char **json, struct kvblock_error *err)
{
	struct kvb_error e = { 0 };

	return kvb_result_fail(err, &e, get_text(kv, "stats", KVB_PATH_STATS, json, &e));
}

/* String keys are hashed by the manager: they travel percent-encoded in the query. */
static int block_path(const char *instance, const struct kvb_key_input *key, struct kvb_buf *path)
{
	char hex[KVB_KEY_HEX + 1];

	if (key->form != KVB_KEYS_STRING) {
		kvb_key_to_hex(key->keys[0], hex);
		kvb_buf_printf(path, KVB_PATH_BLOCK, instance, hex);
	} else {
		kvb_buf_printf(path, KVB_PATH_BLOCK_FIND, instance, "");
		for (const char *s = key->strings[0]; *s; s++)
			kvb_buf_printf(path, "%%%02X", (unsigned char)*s);
	}
	kvb_put_u8(path, 0);
	return path->failed ? KVB_E_NOMEM : KVB_OK;
}

int kvblock_block_info(struct kvblock *kv, const char *instance, const struct kvblock_keys *keys,
		       const char **json, struct kvblock_error *err)
{
	struct kvb_key_input input;
	struct kvb_buf path = { 0 };
	struct kvb_error e = { 0 };
	struct kvb_arena a;
	int rc = kvb_name_check(instance, "instance", &e);

	kvb_arena_init(&a);
	if (rc == KVB_OK)
		rc = kvb_keys_input(keys, "keys", &a, &input, &e);
	if (rc == KVB_OK && input.n != 1)
		rc = kvb_fail(&e, KVB_E_INVALID, "keys", "exactly one key");
	if (rc == KVB_OK)
		rc = block_path(instance, &input, &path);
	if (rc == KVB_OK)
		rc = get_text(kv, "block_info", (const char *)path.data, json, &e);
	kvb_buf_destroy(&path);
	kvb_arena_destroy(&a);
	return kvb_result_fail(err, &e, rc);
}

int kvblock_ready(struct kvblock *kv, struct kvblock_error *err)
{
	struct kvb_call c = { .op = "ready", .method = "GET", .path = KVB_PATH_READY, .rounds = 1 };
	struct kvb_answer answer = { 0 };
	struct kvb_error e = { 0 };
	int rc = kvb_call_do(kv, &c, &answer, &e);

	kvb_buf_destroy(&answer.body);
	return kvb_result_fail(err, &e, rc);
}

static int find_mount(struct kvblock *kv, const char *name, const char **path,
		      struct kvb_error *err)
{
	struct kvblock_storage_info *info = NULL;
	struct kvb_mount *mount;
	uint8_t uuid[16];
	char *copy;
	int rc = kvb_object_storage(kv, name, &info, err);

	if (rc != KVB_OK)
		return rc;
	if (kvb_uuid_from_text(info->uuid, uuid) != KVB_OK)
		rc = kvb_fail(err, KVB_E_INTERNAL, "uuid",
			      "the manager named a storage without a uuid");
	kvblock_free(info);
	if (rc == KVB_OK)
		rc = kvb_transfer_mount(kv, name, uuid, &mount, err);
	if (rc != KVB_OK)
		return rc;
	copy = kvb_result_new(strlen(mount->path) + 1);
	if (copy)
		memcpy(copy, mount->path, strlen(mount->path));
	kvb_mount_release(kv->mounts, mount);
	*path = copy;
	return copy ? KVB_OK : kvb_fail(err, KVB_E_NOMEM, NULL, "out of memory");
}

int kvblock_mount_find(struct kvblock *kv, const char *name, const char **path,
		       struct kvblock_error *err)
{
	struct kvb_error e = { 0 };

	return kvb_result_fail(err, &e, find_mount(kv, name, path, &e));
}
