/*
 * v1_codec.h - native API v1 in any of its forms: one table of functions for each content type.
 *
 * The transport and the client choose a codec once for a request and encode and decode through it. All
 * codecs carry the same messages with the same limits and name the same fields in errors; the
 * contracts of the functions are those of skv/v1_json.h (read "document" for "JSON document"), but:
 * protobuf skips fields that it does not know, takes the last of a scalar that comes twice, and has
 * keys_raw (16 bytes each) where JSON has keys_hex.
 * Constant data, no state; any thread.
 */
#ifndef SKV_V1_CODEC_H
#define SKV_V1_CODEC_H

#include <skv/v1_json.h>

/* Messages that are only read, only written, or both, by their C struct: X(name, struct). */
#define SKV_V1_READS(X)                                                                            \
	X(storage, skv_storage_spec)                                                               \
	X(group, skv_group_spec)                                                                   \
	X(instance, skv_instance_spec)                                                             \
	X(storage_view, skv_storage_view)                                                          \
	X(group_view, skv_group_view)                                                              \
	X(instance_view, skv_instance_view)                                                        \
	X(match_req, skv_match_req)                                                                \
	X(lookup_req, skv_lookup_req)                                                              \
	X(start_req, skv_start_req)                                                                \
	X(finish_req, skv_finish_req)                                                              \
	X(abort_req, skv_abort_req)                                                                \
	X(delete_req, skv_delete_req)                                                              \
	X(trim_req, skv_trim_req)                                                                  \
	X(pin_req, skv_pin_req)                                                                    \
	X(unpin_req, skv_unpin_req)                                                                \
	X(file_wish, skv_file_wish)                                                                \
	X(match_res, skv_match_res)                                                                \
	X(lookup_res, skv_lookup_res)                                                              \
	X(start_res, skv_start_res)                                                                \
	X(finish_res, skv_finish_res)                                                              \
	X(delete_res, skv_delete_res)                                                              \
	X(trim_res, skv_trim_res)                                                                  \
	X(pin_res, skv_pin_res)                                                                    \
	X(unpin_res, skv_unpin_res)                                                                \
	X(pins_res, skv_pins_res)                                                                  \
	X(keys_res, skv_keys_res)
#define SKV_V1_WRITES(X)                                                                           \
	X(storage, skv_storage_spec)                                                               \
	X(group, skv_group_spec)                                                                   \
	X(instance, skv_instance_spec)                                                             \
	X(storage_view, skv_storage_view)                                                          \
	X(group_view, skv_group_view)                                                              \
	X(instance_view, skv_instance_view)                                                        \
	X(finish_req, skv_finish_req)                                                              \
	X(abort_req, skv_abort_req)                                                                \
	X(trim_req, skv_trim_req)                                                                  \
	X(file_wish, skv_file_wish)                                                                \
	X(match_res, skv_match_res)                                                                \
	X(lookup_res, skv_lookup_res)                                                              \
	X(start_res, skv_start_res)                                                                \
	X(finish_res, skv_finish_res)                                                              \
	X(delete_res, skv_delete_res)                                                              \
	X(trim_res, skv_trim_res)                                                                  \
	X(pin_res, skv_pin_res)                                                                    \
	X(unpin_res, skv_unpin_res)                                                                \
	X(pins_res, skv_pins_res)                                                                  \
	X(keys_res, skv_keys_res)                                                                  \
	X(block_view, skv_block_view)                                                              \
	X(stats, skv_stats)
/* Requests with keys: the writer takes them in the caller's form. */
#define SKV_V1_WRITES_KEYS(X)                                                                      \
	X(match_req, skv_match_req)                                                                \
	X(lookup_req, skv_lookup_req)                                                              \
	X(delete_req, skv_delete_req)                                                              \
	X(pin_req, skv_pin_req)                                                                    \
	X(unpin_req, skv_unpin_req)
#define SKV_V1_WRITES_LIST(X)                                                                      \
	X(storage_list, skv_storage_view)                                                          \
	X(file_list, skv_file_view)                                                                \
	X(group_list, skv_group_view)                                                              \
	X(instance_list, skv_instance_view)

struct skv_v1_codec {
	const char *name;         /* "json", "protobuf": for options and people */
	const char *content_type; /* of what it writes */
	const char *no_memory;    /* the error answer when there is no memory for one; no NUL inside */
#define SKV_V1_READ_MEMBER(m, type)                                                                \
	int (*read_##m)(const struct skv_v1_in *in, const char *text, size_t n, struct type *out,  \
			struct skv_error *err);
#define SKV_V1_WRITE_MEMBER(m, type) void (*write_##m)(struct skv_buf *out, const struct type *v);
#define SKV_V1_WRITE_KEYS_MEMBER(m, type)                                                          \
	void (*write_##m)(struct skv_buf *out, const struct type *req,                             \
			  const struct skv_key_input *keys);
#define SKV_V1_WRITE_LIST_MEMBER(m, type)                                                          \
	void (*write_##m)(struct skv_buf *out, const struct type *v, uint32_t n);
	SKV_V1_READS(SKV_V1_READ_MEMBER)
	SKV_V1_WRITES(SKV_V1_WRITE_MEMBER)
	SKV_V1_WRITES_KEYS(SKV_V1_WRITE_KEYS_MEMBER)
	SKV_V1_WRITES_LIST(SKV_V1_WRITE_LIST_MEMBER)
#undef SKV_V1_READ_MEMBER
#undef SKV_V1_WRITE_MEMBER
#undef SKV_V1_WRITE_KEYS_MEMBER
#undef SKV_V1_WRITE_LIST_MEMBER
	void (*write_start_req)(struct skv_buf *out, const struct skv_start_req *req,
				const struct skv_key_input *keys,
				const struct skv_key_input *parent);
	void (*write_error)(struct skv_buf *out, const struct skv_error *err, const char *request_id);
	int (*read_error)(const struct skv_v1_in *in, const char *text, size_t n,
			  struct skv_error *out);
};

extern const struct skv_v1_codec skv_v1_json; /* application/json */
extern const struct skv_v1_codec skv_v1_pb;   /* application/x-protobuf, api/v1/slabkv.proto */

/* The codec of a Content-Type header's value, parameters and case aside; NULL: none. What curl and
 * HTML forms say unasked (application/x-www-form-urlencoded), and no header at all (NULL), is JSON. */
const struct skv_v1_codec *skv_v1_codec_of_type(const char *content_type);
/* The first type in an Accept header's value that a codec writes; NULL: none, or no header. */
const struct skv_v1_codec *skv_v1_codec_of_accept(const char *accept);
/* By `name`; NULL: none. */
const struct skv_v1_codec *skv_v1_codec_named(const char *name);
/* The content types that are understood, for people: "application/json, application/x-protobuf". */
const char *skv_v1_codec_types(void);

#endif
