/*
 * v1_json.h - native API v1 in JSON, for people: the manager reads requests and writes answers.
 * slabkv's own programs use protobuf (skv/v1_pb.h).
 *
 * read_*: `text`,`n` is one JSON document. Results borrow from `in->arena`. Unknown fields, wrong
 *   types, missing fields, values out of range, a duplicate key in `keys*` or JSON keys given twice
 *   are SKV_E_INVALID with err->field naming the place ("keys_hex[3]", "specs[0].size");
 *   more than SKV_MAX_KEYS keys SKV_E_TOO_LARGE.
 * write_*: appends one JSON document (no newline) to `out`; out->failed reports lack of memory.
 *   64-bit values that may pass 2^53 (generation, checksum) travel as strings: generation decimal,
 *   checksum 16 hex digits. Sizes and offsets are JSON integers.
 * `name` and `id` of objects, `instance` and `session` of requests come from the path, not the
 * body: readers leave them NULL. A view is {"name":...,spec fields...,"used_bytes":...}, a list
 * {"storages":[view,...]}. No state; any thread. Field names and shapes: PROTOCOL.md.
 */
#ifndef SKV_V1_JSON_H
#define SKV_V1_JSON_H

#include <skv/arena.h>
#include <skv/bytes.h>
#include <skv/ops.h>
#include <skv/status.h>
#include <skv/v1_operations.h>

struct skv_v1_in {
	struct skv_arena *arena;
	/* Hashes `keys` (strings). NULL: string keys are refused. */
	const struct skv_secret *secret;
	/* Caller's tenant, copied into requests. Borrowed. */
	const char *tenant;
	/* The document was written here, not sent: protobuf of a table is read without a judgement
	 * on its values, and may be as long as answers. */
	bool stored;
};

/* Every message with a C struct of its own, by what it is: REQUEST(name, struct) and ANSWER, and
 * KEYED, a request whose writer takes its keys in the caller's form. Whoever expands it defines
 * these three. */
#define SKV_V1_MESSAGES                                                                            \
	SKV_OPERATIONS(SKV_NOTHING, SKV_NOTHING, SKV_V1_CALL) \
	REQUEST(storage, skv_storage_spec) \
	REQUEST(group, skv_group_spec) \
	REQUEST(instance, skv_instance_spec) \
	REQUEST(file_wish, skv_file_wish) \
	REQUEST(token, skv_token_spec) \
	REQUEST(tenant, skv_tenant_spec) \
	REQUEST(drain, skv_drain_spec) \
	REQUEST(home, skv_home_spec) \
	REQUEST(move_take, skv_move_take_req) \
	REQUEST(move_finish_req, skv_move_finish_req) \
	KEYED(match_req, skv_match_req) \
	REQUEST(finish_req, skv_finish_req) \
	REQUEST(abort_req, skv_abort_req) \
	REQUEST(purge_req, skv_purge_req) \
	ANSWER(storage_view, skv_storage_view) \
	ANSWER(group_view, skv_group_view) \
	ANSWER(instance_view, skv_instance_view) \
	ANSWER(move_view, skv_move_view) \
	ANSWER(move_finish_res, skv_move_finish_res) \
	ANSWER(match_res, skv_match_res) \
	ANSWER(finish_res, skv_finish_res) \
	ANSWER(pins_res, skv_pins_res) \
	ANSWER(keys_res, skv_keys_res) \
	ANSWER(purge_res, skv_purge_res)
#define SKV_V1_CALL(name, ...)                                                                     \
	KEYED(name##_req, skv_##name##_req) \
	ANSWER(name##_res, skv_##name##_res)

#define REQUEST(name, type)                                                            \
	int skv_v1_read_##name(const struct skv_v1_in *in, const char *text, size_t n, \
			       struct type *out, struct skv_error *err);
#define KEYED REQUEST
#define ANSWER(name, type) void skv_v1_write_##name(struct skv_buf *out, const struct type *v);
SKV_V1_MESSAGES
#undef REQUEST
#undef KEYED
#undef ANSWER
/* Writes the view of one block, for human readers. */
void skv_v1_write_block_view(struct skv_buf *out, const struct skv_block_view *v);

/* Writes the answer `message` by the name of its schema, which is a table (the column answer of
 * SKV_OPERATIONS). */
void skv_v1_write_named(const char *schema, struct skv_buf *out, const void *message);

/* Changes an object: appends to `out` the JSON of its spec with the values of `view`, the protobuf
 * of its view (`schema`: "StorageView", "GroupView", "InstanceView", "TenantView"), where the JSON
 * object `fields` does not name others. `view` NULL: a new object, which has the defaults. Fields
 * that the spec does not have are SKV_E_INVALID. */
int skv_v1_change(const struct skv_v1_in *in, const char *schema, const struct skv_buf *view,
		  const char *fields, struct skv_buf *out, struct skv_error *err);

void skv_v1_write_error(struct skv_buf *out, const struct skv_error *err, const char *request_id);
/* Fills *out from {error:{code,message,detail},...}; returns out->status. Anything else is
 * SKV_E_NETWORK: what answered, such as a proxy, is not a manager, which so was not reached. */
#define SKV_NOT_AN_ERROR "no slabkv error in the body: a proxy, or not slabkv: check the URL"
int skv_v1_read_error(const struct skv_v1_in *in, const char *text, size_t n,
		      struct skv_error *out);

/* The OpenAPI 3.0 document of the native API. */
void skv_v1_write_openapi(struct skv_buf *out);

#endif
