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
 * No state; any thread. Field names and shapes: docs/PROTOCOL.md.
 */
#ifndef SKV_V1_JSON_H
#define SKV_V1_JSON_H

#include <skv/arena.h>
#include <skv/bytes.h>
#include <skv/ops.h>
#include <skv/status.h>

struct skv_v1_in {
	struct skv_arena *arena;
	/* Hashes `keys` (strings). NULL: string keys are refused (a client never hashes). */
	const struct skv_secret *secret;
	/* Caller's tenant, put into requests. Borrowed. */
	const char *tenant;
};

/* Keys of a request as the caller wrote them. A writer uses exactly one of the three forms. */
enum skv_key_form { SKV_KEYS_STRING, SKV_KEYS_INT, SKV_KEYS_HEX };
struct skv_key_input {
	enum skv_key_form form;
	uint32_t n;
	const char *const *strings; /* SKV_KEYS_STRING */
	const struct skv_key *keys; /* SKV_KEYS_INT (lo only), SKV_KEYS_HEX */
};

/* ---- objects. `name`/`id` come from the path, not the body: readers leave them NULL ---------- */
int skv_v1_read_storage(const struct skv_v1_in *in, const char *text, size_t n,
			struct skv_storage_spec *out, struct skv_error *err);
int skv_v1_read_group(const struct skv_v1_in *in, const char *text, size_t n,
		      struct skv_group_spec *out, struct skv_error *err);
int skv_v1_read_instance(const struct skv_v1_in *in, const char *text, size_t n,
			 struct skv_instance_spec *out, struct skv_error *err);
/* Bodies of PUT as a client sends them. */
void skv_v1_write_storage(struct skv_buf *out, const struct skv_storage_spec *s);
void skv_v1_write_group(struct skv_buf *out, const struct skv_group_spec *g);
void skv_v1_write_instance(struct skv_buf *out, const struct skv_instance_spec *i);
/* Views: {"name":...,spec fields...,"used_bytes":...}; lists: {"storages":[view,...]}. */
void skv_v1_write_storage_view(struct skv_buf *out, const struct skv_storage_view *v);
void skv_v1_write_group_view(struct skv_buf *out, const struct skv_group_view *v);
void skv_v1_write_instance_view(struct skv_buf *out, const struct skv_instance_view *v);
void skv_v1_write_storage_list(struct skv_buf *out, const struct skv_storage_view *v, uint32_t n);
void skv_v1_write_group_list(struct skv_buf *out, const struct skv_group_view *v, uint32_t n);
void skv_v1_write_instance_list(struct skv_buf *out, const struct skv_instance_view *v, uint32_t n);
/* Slab files: {"files":[view,...]}; the wish is {"file":N,"draining":BOOL}, both required. */
void skv_v1_write_file_list(struct skv_buf *out, const struct skv_file_view *v, uint32_t n);
void skv_v1_write_file_wish(struct skv_buf *out, const struct skv_file_wish *w);
int skv_v1_read_file_wish(const struct skv_v1_in *in, const char *text, size_t n, struct skv_file_wish *out,
			  struct skv_error *err);
int skv_v1_read_storage_view(const struct skv_v1_in *in, const char *text, size_t n,
			     struct skv_storage_view *out, struct skv_error *err);
int skv_v1_read_group_view(const struct skv_v1_in *in, const char *text, size_t n,
			   struct skv_group_view *out, struct skv_error *err);
int skv_v1_read_instance_view(const struct skv_v1_in *in, const char *text, size_t n,
			      struct skv_instance_view *out, struct skv_error *err);

/* ---- block operations: instance or session come from the path -------------------------------- */
int skv_v1_read_match_req(const struct skv_v1_in *in, const char *text, size_t n,
			  struct skv_match_req *out, struct skv_error *err);
int skv_v1_read_lookup_req(const struct skv_v1_in *in, const char *text, size_t n,
			   struct skv_lookup_req *out, struct skv_error *err);
int skv_v1_read_start_req(const struct skv_v1_in *in, const char *text, size_t n,
			  struct skv_start_req *out, struct skv_error *err);
int skv_v1_read_finish_req(const struct skv_v1_in *in, const char *text, size_t n,
			   struct skv_finish_req *out, struct skv_error *err);
int skv_v1_read_abort_req(const struct skv_v1_in *in, const char *text, size_t n,
			  struct skv_abort_req *out, struct skv_error *err);
int skv_v1_read_delete_req(const struct skv_v1_in *in, const char *text, size_t n,
			   struct skv_delete_req *out, struct skv_error *err);
int skv_v1_read_trim_req(const struct skv_v1_in *in, const char *text, size_t n,
			 struct skv_trim_req *out, struct skv_error *err);
int skv_v1_read_pin_req(const struct skv_v1_in *in, const char *text, size_t n, struct skv_pin_req *out,
			struct skv_error *err);
int skv_v1_read_unpin_req(const struct skv_v1_in *in, const char *text, size_t n, struct skv_unpin_req *out,
			  struct skv_error *err);

/* Answers of the server. */
void skv_v1_write_match_res(struct skv_buf *out, const struct skv_match_res *r);
void skv_v1_write_lookup_res(struct skv_buf *out, const struct skv_lookup_res *r);
void skv_v1_write_start_res(struct skv_buf *out, const struct skv_start_res *r);
void skv_v1_write_finish_res(struct skv_buf *out, const struct skv_finish_res *r);
void skv_v1_write_delete_res(struct skv_buf *out, const struct skv_delete_res *r);
void skv_v1_write_trim_res(struct skv_buf *out, const struct skv_trim_res *r);
void skv_v1_write_pin_res(struct skv_buf *out, const struct skv_pin_res *r);
void skv_v1_write_unpin_res(struct skv_buf *out, const struct skv_unpin_res *r);
void skv_v1_write_pins_res(struct skv_buf *out, const struct skv_pins_res *r);
void skv_v1_write_keys_res(struct skv_buf *out, const struct skv_keys_res *r);
void skv_v1_write_block_view(struct skv_buf *out, const struct skv_block_view *v);
void skv_v1_write_stats(struct skv_buf *out, const struct skv_stats *s);
void skv_v1_write_error(struct skv_buf *out, const struct skv_error *err, const char *request_id);

/* The client's side. `req->keys` is ignored in favour of `keys` (the form the caller has). */
void skv_v1_write_match_req(struct skv_buf *out, const struct skv_match_req *req,
			    const struct skv_key_input *keys);
void skv_v1_write_lookup_req(struct skv_buf *out, const struct skv_lookup_req *req,
			     const struct skv_key_input *keys);
/* `parent` NULL = none; else one key in the same form as `keys`. */
void skv_v1_write_start_req(struct skv_buf *out, const struct skv_start_req *req,
			    const struct skv_key_input *keys, const struct skv_key_input *parent);
void skv_v1_write_finish_req(struct skv_buf *out, const struct skv_finish_req *req);
void skv_v1_write_abort_req(struct skv_buf *out, const struct skv_abort_req *req);
void skv_v1_write_trim_req(struct skv_buf *out, const struct skv_trim_req *req);
void skv_v1_write_delete_req(struct skv_buf *out, const struct skv_delete_req *req,
			     const struct skv_key_input *keys);
void skv_v1_write_pin_req(struct skv_buf *out, const struct skv_pin_req *req, const struct skv_key_input *keys);
/* keys->n 0 = all. */
void skv_v1_write_unpin_req(struct skv_buf *out, const struct skv_unpin_req *req, const struct skv_key_input *keys);
int skv_v1_read_match_res(const struct skv_v1_in *in, const char *text, size_t n,
			  struct skv_match_res *out, struct skv_error *err);
int skv_v1_read_lookup_res(const struct skv_v1_in *in, const char *text, size_t n,
			   struct skv_lookup_res *out, struct skv_error *err);
int skv_v1_read_start_res(const struct skv_v1_in *in, const char *text, size_t n,
			  struct skv_start_res *out, struct skv_error *err);
int skv_v1_read_finish_res(const struct skv_v1_in *in, const char *text, size_t n,
			   struct skv_finish_res *out, struct skv_error *err);
int skv_v1_read_delete_res(const struct skv_v1_in *in, const char *text, size_t n,
			   struct skv_delete_res *out, struct skv_error *err);
int skv_v1_read_trim_res(const struct skv_v1_in *in, const char *text, size_t n,
			 struct skv_trim_res *out, struct skv_error *err);
int skv_v1_read_pin_res(const struct skv_v1_in *in, const char *text, size_t n, struct skv_pin_res *out,
			struct skv_error *err);
int skv_v1_read_unpin_res(const struct skv_v1_in *in, const char *text, size_t n, struct skv_unpin_res *out,
			  struct skv_error *err);
int skv_v1_read_pins_res(const struct skv_v1_in *in, const char *text, size_t n, struct skv_pins_res *out,
			 struct skv_error *err);
int skv_v1_read_keys_res(const struct skv_v1_in *in, const char *text, size_t n, struct skv_keys_res *out,
			 struct skv_error *err);
/* Fills *out from {error:{code,message,detail},...}; returns out->status, or SKV_E_INVALID. */
int skv_v1_read_error(const struct skv_v1_in *in, const char *text, size_t n, struct skv_error *out);

/* The OpenAPI 3.0 document of the native API. Static, NUL-terminated. */
const char *skv_v1_openapi(void);

#endif
