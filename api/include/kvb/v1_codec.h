/*
 * v1_codec.h - native API v1 in any of its forms: one table of functions for each content type.
 *
 * The front and the client choose a codec once for a request and encode and decode through it. All
 * codecs carry the same messages with the same limits and name the same fields in errors; the
 * contracts of the functions are those of kvb/v1_json.h (read "document" for "JSON document"), but:
 * protobuf skips fields that it does not know, takes the last of a scalar that comes twice, and has
 * keys_raw (16 bytes each) where JSON has keys_hex.
 * Constant data, no state; any thread.
 */
#ifndef KVB_V1_CODEC_H
#define KVB_V1_CODEC_H

#include <kvb/v1_json.h>

/* Messages that are only read, only written, or both, by their C struct: X(name, struct). */
#define KVB_V1_READS(X)                                                                            \
	X(storage, kvb_storage_spec)                                                               \
	X(group, kvb_group_spec)                                                                   \
	X(instance, kvb_instance_spec)                                                             \
	X(storage_view, kvb_storage_view)                                                          \
	X(group_view, kvb_group_view)                                                              \
	X(instance_view, kvb_instance_view)                                                        \
	X(match_req, kvb_match_req)                                                                \
	X(lookup_req, kvb_lookup_req)                                                              \
	X(start_req, kvb_start_req)                                                                \
	X(finish_req, kvb_finish_req)                                                              \
	X(abort_req, kvb_abort_req)                                                                \
	X(delete_req, kvb_delete_req)                                                              \
	X(trim_req, kvb_trim_req)                                                                  \
	X(pin_req, kvb_pin_req)                                                                    \
	X(unpin_req, kvb_unpin_req)                                                                \
	X(file_wish, kvb_file_wish)                                                                \
	X(match_res, kvb_match_res)                                                                \
	X(lookup_res, kvb_lookup_res)                                                              \
	X(start_res, kvb_start_res)                                                                \
	X(finish_res, kvb_finish_res)                                                              \
	X(delete_res, kvb_delete_res)                                                              \
	X(trim_res, kvb_trim_res)                                                                  \
	X(pin_res, kvb_pin_res)                                                                    \
	X(unpin_res, kvb_unpin_res)                                                                \
	X(pins_res, kvb_pins_res)
#define KVB_V1_WRITES(X)                                                                           \
	X(storage, kvb_storage_spec)                                                               \
	X(group, kvb_group_spec)                                                                   \
	X(instance, kvb_instance_spec)                                                             \
	X(storage_view, kvb_storage_view)                                                          \
	X(group_view, kvb_group_view)                                                              \
	X(instance_view, kvb_instance_view)                                                        \
	X(finish_req, kvb_finish_req)                                                              \
	X(abort_req, kvb_abort_req)                                                                \
	X(trim_req, kvb_trim_req)                                                                  \
	X(file_wish, kvb_file_wish)                                                                \
	X(match_res, kvb_match_res)                                                                \
	X(lookup_res, kvb_lookup_res)                                                              \
	X(start_res, kvb_start_res)                                                                \
	X(finish_res, kvb_finish_res)                                                              \
	X(delete_res, kvb_delete_res)                                                              \
	X(trim_res, kvb_trim_res)                                                                  \
	X(pin_res, kvb_pin_res)                                                                    \
	X(unpin_res, kvb_unpin_res)                                                                \
	X(pins_res, kvb_pins_res)                                                                  \
	X(block_view, kvb_block_view)                                                              \
	X(stats, kvb_stats)
/* Requests with keys: the writer takes them in the caller's form. */
#define KVB_V1_WRITES_KEYS(X)                                                                      \
	X(match_req, kvb_match_req)                                                                \
	X(lookup_req, kvb_lookup_req)                                                              \
	X(delete_req, kvb_delete_req)                                                              \
	X(pin_req, kvb_pin_req)                                                                    \
	X(unpin_req, kvb_unpin_req)
#define KVB_V1_WRITES_LIST(X)                                                                      \
	X(storage_list, kvb_storage_view)                                                          \
	X(file_list, kvb_file_view)                                                                \
	X(group_list, kvb_group_view)                                                              \
	X(instance_list, kvb_instance_view)

struct kvb_v1_codec {
	const char *name;         /* "json", "protobuf": for options and people */
	const char *content_type; /* of what it writes */
	const char *no_memory;    /* the error answer when there is no memory for one; no NUL inside */
#define KVB_V1_READ_MEMBER(m, type)                                                                \
	int (*read_##m)(const struct kvb_v1_in *in, const char *text, size_t n, struct type *out,  \
			struct kvb_error *err);
#define KVB_V1_WRITE_MEMBER(m, type) void (*write_##m)(struct kvb_buf *out, const struct type *v);
#define KVB_V1_WRITE_KEYS_MEMBER(m, type)                                                          \
	void (*write_##m)(struct kvb_buf *out, const struct type *req,                             \
			  const struct kvb_key_input *keys);
#define KVB_V1_WRITE_LIST_MEMBER(m, type)                                                          \
	void (*write_##m)(struct kvb_buf *out, const struct type *v, uint32_t n);
	KVB_V1_READS(KVB_V1_READ_MEMBER)
	KVB_V1_WRITES(KVB_V1_WRITE_MEMBER)
	KVB_V1_WRITES_KEYS(KVB_V1_WRITE_KEYS_MEMBER)
	KVB_V1_WRITES_LIST(KVB_V1_WRITE_LIST_MEMBER)
#undef KVB_V1_READ_MEMBER
#undef KVB_V1_WRITE_MEMBER
#undef KVB_V1_WRITE_KEYS_MEMBER
#undef KVB_V1_WRITE_LIST_MEMBER
	void (*write_start_req)(struct kvb_buf *out, const struct kvb_start_req *req,
				const struct kvb_key_input *keys,
				const struct kvb_key_input *parent);
	void (*write_error)(struct kvb_buf *out, const struct kvb_error *err, const char *request_id);
	int (*read_error)(const struct kvb_v1_in *in, const char *text, size_t n,
			  struct kvb_error *out);
};

extern const struct kvb_v1_codec kvb_v1_json; /* application/json */
extern const struct kvb_v1_codec kvb_v1_pb;   /* application/x-protobuf, api/v1/kvblock.proto */

/* The codec of a Content-Type header's value, parameters and case aside; NULL: none. What curl and
 * HTML forms say unasked (application/x-www-form-urlencoded), and no header at all (NULL), is JSON. */
const struct kvb_v1_codec *kvb_v1_codec_of_type(const char *content_type);
/* The first type in an Accept header's value that a codec writes; NULL: none, or no header. */
const struct kvb_v1_codec *kvb_v1_codec_of_accept(const char *accept);
/* By `name`; NULL: none. */
const struct kvb_v1_codec *kvb_v1_codec_named(const char *name);
/* The content types that are understood, for people: "application/json, application/x-protobuf". */
const char *kvb_v1_codec_types(void);

#endif
