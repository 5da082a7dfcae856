/*
 * v1_json.h - native API v1: JSON text <-> the structs of kvb/ops.h, both ways for every message
 * (the server reads requests and writes results, the client library the other way round).
 *
 * read_*: `text`,`n` is one JSON document. Results borrow from `in->arena`. Unknown fields, wrong
 *   types, missing fields, values out of range, a duplicate key in `keys*` or JSON keys given twice
 *   are KVB_E_INVALID with err->field naming the place ("keys_hex[3]", "specs[0].size");
 *   more than KVB_MAX_KEYS keys KVB_E_TOO_LARGE. Answers (read_*_res) skip unknown fields, so that
 *   an older client understands a newer server.
 * write_*: appends one JSON document (no newline) to `out`; out->failed tells lack of memory.
 *   64-bit values that may pass 2^53 (generation, checksum) travel as strings: generation decimal,
 *   checksum 16 hex digits. Sizes and offsets are JSON integers.
 * No state; any thread. Field names and shapes: docs/PROTOCOL.md.
 */
#ifndef KVB_V1_JSON_H
#define KVB_V1_JSON_H

#include <kvb/arena.h>
#include <kvb/bytes.h>
#include <kvb/ops.h>
#include <kvb/status.h>

struct kvb_v1_in {
	struct kvb_arena *arena;
	/* Hashes `keys` (strings). NULL: string keys are refused (a client never hashes). */
	const struct kvb_secret *secret;
	/* Caller's tenant, put into requests. Borrowed. */
	const char *tenant;
};

/* Keys of a request as the caller wrote them. A writer uses exactly one of the three forms. */
enum kvb_key_form { KVB_KEYS_STRING, KVB_KEYS_INT, KVB_KEYS_HEX };
struct kvb_key_input {
	enum kvb_key_form form;
	uint32_t n;
	const char *const *strings; /* KVB_KEYS_STRING */
	const struct kvb_key *keys; /* KVB_KEYS_INT (lo only), KVB_KEYS_HEX */
};

/* ---- objects. `name`/`id` come from the path, not the body: readers leave them NULL ---------- */
int kvb_v1_read_storage(const struct kvb_v1_in *in, const char *text, size_t n,
			struct kvb_storage_spec *out, struct kvb_error *err);
int kvb_v1_read_group(const struct kvb_v1_in *in, const char *text, size_t n,
		      struct kvb_group_spec *out, struct kvb_error *err);
int kvb_v1_read_instance(const struct kvb_v1_in *in, const char *text, size_t n,
			 struct kvb_instance_spec *out, struct kvb_error *err);
/* Bodies of PUT as a client sends them. */
void kvb_v1_write_storage(struct kvb_buf *out, const struct kvb_storage_spec *s);
void kvb_v1_write_group(struct kvb_buf *out, const struct kvb_group_spec *g);
void kvb_v1_write_instance(struct kvb_buf *out, const struct kvb_instance_spec *i);
/* Views: {"name":...,spec fields...,"used_bytes":...}; lists: {"storages":[view,...]}. */
void kvb_v1_write_storage_view(struct kvb_buf *out, const struct kvb_storage_view *v);
void kvb_v1_write_group_view(struct kvb_buf *out, const struct kvb_group_view *v);
void kvb_v1_write_instance_view(struct kvb_buf *out, const struct kvb_instance_view *v);
void kvb_v1_write_storage_list(struct kvb_buf *out, const struct kvb_storage_view *v, uint32_t n);
void kvb_v1_write_group_list(struct kvb_buf *out, const struct kvb_group_view *v, uint32_t n);
void kvb_v1_write_instance_list(struct kvb_buf *out, const struct kvb_instance_view *v, uint32_t n);
/* Slab files: {"files":[view,...]}; the wish is {"file":N,"draining":BOOL}, both required. */
void kvb_v1_write_file_list(struct kvb_buf *out, const struct kvb_file_view *v, uint32_t n);
void kvb_v1_write_file_wish(struct kvb_buf *out, const struct kvb_file_wish *w);
int kvb_v1_read_file_wish(const struct kvb_v1_in *in, const char *text, size_t n, struct kvb_file_wish *out,
			  struct kvb_error *err);
int kvb_v1_read_storage_view(const struct kvb_v1_in *in, const char *text, size_t n,
			     struct kvb_storage_view *out, struct kvb_error *err);
int kvb_v1_read_group_view(const struct kvb_v1_in *in, const char *text, size_t n,
			   struct kvb_group_view *out, struct kvb_error *err);
int kvb_v1_read_instance_view(const struct kvb_v1_in *in, const char *text, size_t n,
			      struct kvb_instance_view *out, struct kvb_error *err);

/* ---- block operations: instance or session come from the path -------------------------------- */
int kvb_v1_read_match_req(const struct kvb_v1_in *in, const char *text, size_t n,
			  struct kvb_match_req *out, struct kvb_error *err);
int kvb_v1_read_lookup_req(const struct kvb_v1_in *in, const char *text, size_t n,
			   struct kvb_lookup_req *out, struct kvb_error *err);
int kvb_v1_read_start_req(const struct kvb_v1_in *in, const char *text, size_t n,
			  struct kvb_start_req *out, struct kvb_error *err);
int kvb_v1_read_finish_req(const struct kvb_v1_in *in, const char *text, size_t n,
			   struct kvb_finish_req *out, struct kvb_error *err);
int kvb_v1_read_abort_req(const struct kvb_v1_in *in, const char *text, size_t n,
			  struct kvb_abort_req *out, struct kvb_error *err);
int kvb_v1_read_delete_req(const struct kvb_v1_in *in, const char *text, size_t n,
			   struct kvb_delete_req *out, struct kvb_error *err);
int kvb_v1_read_trim_req(const struct kvb_v1_in *in, const char *text, size_t n,
			 struct kvb_trim_req *out, struct kvb_error *err);
int kvb_v1_read_pin_req(const struct kvb_v1_in *in, const char *text, size_t n, struct kvb_pin_req *out,
			struct kvb_error *err);
int kvb_v1_read_unpin_req(const struct kvb_v1_in *in, const char *text, size_t n, struct kvb_unpin_req *out,
			  struct kvb_error *err);

/* Answers of the server. */
void kvb_v1_write_match_res(struct kvb_buf *out, const struct kvb_match_res *r);
void kvb_v1_write_lookup_res(struct kvb_buf *out, const struct kvb_lookup_res *r);
void kvb_v1_write_start_res(struct kvb_buf *out, const struct kvb_start_res *r);
void kvb_v1_write_finish_res(struct kvb_buf *out, const struct kvb_finish_res *r);
void kvb_v1_write_delete_res(struct kvb_buf *out, const struct kvb_delete_res *r);
void kvb_v1_write_trim_res(struct kvb_buf *out, const struct kvb_trim_res *r);
void kvb_v1_write_pin_res(struct kvb_buf *out, const struct kvb_pin_res *r);
void kvb_v1_write_unpin_res(struct kvb_buf *out, const struct kvb_unpin_res *r);
void kvb_v1_write_pins_res(struct kvb_buf *out, const struct kvb_pins_res *r);
void kvb_v1_write_block_view(struct kvb_buf *out, const struct kvb_block_view *v);
void kvb_v1_write_stats(struct kvb_buf *out, const struct kvb_stats *s);
void kvb_v1_write_error(struct kvb_buf *out, const struct kvb_error *err, const char *request_id);

/* The client's side. `req->keys` is ignored in favour of `keys` (the form the caller has). */
void kvb_v1_write_match_req(struct kvb_buf *out, const struct kvb_match_req *req,
			    const struct kvb_key_input *keys);
void kvb_v1_write_lookup_req(struct kvb_buf *out, const struct kvb_lookup_req *req,
			     const struct kvb_key_input *keys);
/* `parent` NULL = none; else one key in the same form as `keys`. */
void kvb_v1_write_start_req(struct kvb_buf *out, const struct kvb_start_req *req,
			    const struct kvb_key_input *keys, const struct kvb_key_input *parent);
void kvb_v1_write_finish_req(struct kvb_buf *out, const struct kvb_finish_req *req);
void kvb_v1_write_abort_req(struct kvb_buf *out, const struct kvb_abort_req *req);
void kvb_v1_write_trim_req(struct kvb_buf *out, const struct kvb_trim_req *req);
void kvb_v1_write_delete_req(struct kvb_buf *out, const struct kvb_delete_req *req,
			     const struct kvb_key_input *keys);
void kvb_v1_write_pin_req(struct kvb_buf *out, const struct kvb_pin_req *req, const struct kvb_key_input *keys);
/* keys->n 0 = all. */
void kvb_v1_write_unpin_req(struct kvb_buf *out, const struct kvb_unpin_req *req, const struct kvb_key_input *keys);
int kvb_v1_read_match_res(const struct kvb_v1_in *in, const char *text, size_t n,
			  struct kvb_match_res *out, struct kvb_error *err);
int kvb_v1_read_lookup_res(const struct kvb_v1_in *in, const char *text, size_t n,
			   struct kvb_lookup_res *out, struct kvb_error *err);
int kvb_v1_read_start_res(const struct kvb_v1_in *in, const char *text, size_t n,
			  struct kvb_start_res *out, struct kvb_error *err);
int kvb_v1_read_finish_res(const struct kvb_v1_in *in, const char *text, size_t n,
			   struct kvb_finish_res *out, struct kvb_error *err);
int kvb_v1_read_delete_res(const struct kvb_v1_in *in, const char *text, size_t n,
			   struct kvb_delete_res *out, struct kvb_error *err);
int kvb_v1_read_trim_res(const struct kvb_v1_in *in, const char *text, size_t n,
			 struct kvb_trim_res *out, struct kvb_error *err);
int kvb_v1_read_pin_res(const struct kvb_v1_in *in, const char *text, size_t n, struct kvb_pin_res *out,
			struct kvb_error *err);
int kvb_v1_read_unpin_res(const struct kvb_v1_in *in, const char *text, size_t n, struct kvb_unpin_res *out,
			  struct kvb_error *err);
int kvb_v1_read_pins_res(const struct kvb_v1_in *in, const char *text, size_t n, struct kvb_pins_res *out,
			 struct kvb_error *err);
/* Fills *out from {error:{code,message,detail},...}; returns out->status, or KVB_E_INVALID. */
int kvb_v1_read_error(const struct kvb_v1_in *in, const char *text, size_t n, struct kvb_error *out);

/* The OpenAPI 3.0 document of the native API. Static, NUL-terminated. */
const char *kvb_v1_openapi(void);

#endif
