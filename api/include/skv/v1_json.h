/*
 * v1_json.h - native API v1: JSON text <-> the structs of skv/ops.h, both ways for every message
 * (the server reads requests and writes results, the client library the other way round).
 *
 * read_*: `text`,`n` is one JSON document. Results borrow from `in->arena`. Unknown fields, wrong
 *   types, missing fields, values out of range, a duplicate key in `keys*` or JSON keys given twice
 *   are SKV_E_INVALID with err->field naming the place ("keys_hex[3]", "specs[0].size");
 *   more than SKV_MAX_KEYS keys SKV_E_TOO_LARGE. Answers (read_*_res) skip unknown fields, so that
 *   an older client understands a newer server.
 * write_*: appends one JSON document (no newline) to `out`; out->failed tells lack of memory.
 *   64-bit values that may pass 2^53 (generation, checksum) travel as strings: generation decimal,
 *   checksum 16 hex digits. Sizes and offsets are JSON integers.
 * `name` and `id` of objects, `instance` and `session` of requests come from the path, not the
 * body: readers leave them NULL. A view is {"name":...,spec fields...,"used_bytes":...}, a list
 * {"storages":[view,...]}. No state; any thread. Field names and shapes: docs/PROTOCOL.md.
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
	/* Hashes `keys` (strings). NULL: string keys are refused (a client never hashes). */
	const struct skv_secret *secret;
	/* Caller's tenant, copied into requests. Borrowed. */
	const char *tenant;
	/* The document was written here, not sent: protobuf of a table is read without a judgement
	 * on its values, and may be as long as answers. */
	bool stored;
};

/* Keys of a request in the caller's form. A writer uses exactly one of the three. */
enum skv_key_form { SKV_KEYS_STRING, SKV_KEYS_INT, SKV_KEYS_HEX };
struct skv_key_input {
	enum skv_key_form form;
	uint32_t n;
	const char *const *strings; /* SKV_KEYS_STRING */
	const struct skv_key *keys; /* SKV_KEYS_INT (lo only), SKV_KEYS_HEX */
	const struct skv_key_input *parent; /* of a start: one key, the parent of the
					       first; NULL = none */
};

/* Every message with a C struct of its own, by what there is of it: R(name, struct) a reader, W a
 * writer, KEYS the writer of a request with keys, which takes them in the caller's form. Whoever
 * expands it defines these three. */
#define SKV_V1_MESSAGES                                                                            \
	SKV_OPERATIONS(SKV_NOTHING, SKV_NOTHING, SKV_V1_CALL) \
	SKV_V1_RW(storage, skv_storage_spec) \
	SKV_V1_RW(group, skv_group_spec) \
	SKV_V1_RW(instance, skv_instance_spec) \
	SKV_V1_RW(storage_view, skv_storage_view) \
	SKV_V1_RW(group_view, skv_group_view) \
	SKV_V1_RW(instance_view, skv_instance_view) \
	SKV_V1_RW(file_wish, skv_file_wish) \
	SKV_V1_RW(token, skv_token_spec) \
	SKV_V1_RW(tenant, skv_tenant_spec) \
	SKV_V1_RW(drain, skv_drain_spec) \
	SKV_V1_RW(home, skv_home_spec) \
	SKV_V1_RW(move_take, skv_move_take_req) \
	SKV_V1_RW(move_view, skv_move_view) \
	SKV_V1_RW(move_finish_req, skv_move_finish_req) \
	SKV_V1_RW(move_finish_res, skv_move_finish_res) \
	R(match_req, skv_match_req) \
	KEYS(match_req, skv_match_req) \
	SKV_V1_RW(match_res, skv_match_res) \
	SKV_V1_RW(finish_req, skv_finish_req) \
	SKV_V1_RW(abort_req, skv_abort_req) \
	SKV_V1_RW(finish_res, skv_finish_res) \
	SKV_V1_RW(pins_res, skv_pins_res) \
	SKV_V1_RW(keys_res, skv_keys_res) \
	W(block_view, skv_block_view) \
	SKV_V1_RW(purge_req, skv_purge_req) \
	SKV_V1_RW(purge_res, skv_purge_res)
#define SKV_V1_CALL(name, ...)                                                                     \
	R(name##_req, skv_##name##_req) \
	KEYS(name##_req, skv_##name##_req) \
	SKV_V1_RW(name##_res, skv_##name##_res)
#define SKV_V1_RW(name, type) R(name, type) W(name, type)

#define R(name, type)                                                                  \
	int skv_v1_read_##name(const struct skv_v1_in *in, const char *text, size_t n, \
			       struct type *out,                                       \
			       struct skv_error *err);
#define W(name, type) void skv_v1_write_##name(struct skv_buf *out, const struct type *v);
#define KEYS(name, type)                                                                           \
	void skv_v1_write_##name(struct skv_buf *out, const struct type *req,                      \
				 const struct skv_key_input *keys);
SKV_V1_MESSAGES
#undef R
#undef W
#undef KEYS

/* The same by the name of a schema that is a table (the columns request and answer of
 * SKV_OPERATIONS): `message` and `out` are the struct of that message. */
void skv_v1_write_named(const char *schema, struct skv_buf *out, const void *message);
int skv_v1_read_named(const char *schema, const struct skv_v1_in *in, const char *text, size_t n,
		      void *out, struct skv_error *err);

/* Changes an object: appends to `out` the JSON of its spec (`schema`: "StorageSpec", "GroupSpec",
 * "InstanceSpec", "TenantSpec") with the values of `view`, the JSON of its view, where the JSON
 * object `fields` does not name others. `view` NULL: a new object, which has the defaults. Fields
 * that the spec does not have are SKV_E_INVALID. */
int skv_v1_change(const struct skv_v1_in *in, const char *schema, const struct skv_buf *view,
		  const char *fields, struct skv_buf *out, struct skv_error *err);

void skv_v1_write_error(struct skv_buf *out, const struct skv_error *err, const char *request_id);
/* Fills *out from {error:{code,message,detail},...}; returns out->status, or SKV_E_INVALID. */
int skv_v1_read_error(const struct skv_v1_in *in, const char *text, size_t n,
		      struct skv_error *out);

/* The OpenAPI 3.0 document of the native API. */
void skv_v1_write_openapi(struct skv_buf *out);

#endif
