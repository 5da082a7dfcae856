/*
 * v1_pb.h - native API v1 in protobuf (api/v1/slabkv.proto), both ways: the client library and
 * other managers write requests and read answers.
 *
 * The contracts are those of skv/v1_json.h (read "document" for "JSON document"), except that
 * unknown fields are skipped, the last of a repeated scalar counts, and raw keys (16 bytes each)
 * are in the place of keys_hex. Error fields have the names of JSON. No state; any thread.
 */
#ifndef SKV_V1_PB_H
#define SKV_V1_PB_H

#include <skv/v1_json.h>

/* Keys of a request in the caller's form. A writer uses exactly one of the three. */
enum skv_key_form { SKV_KEYS_STRING, SKV_KEYS_INT, SKV_KEYS_HEX };
struct skv_key_input {
	enum skv_key_form form;
	uint32_t n;
	const char *const *strings; /* SKV_KEYS_STRING */
	const struct skv_key *keys; /* SKV_KEYS_INT (lo only), SKV_KEYS_HEX */
	/* Of a start: one key, the parent of the first; NULL = none. */
	const struct skv_key_input *parent;
};

#define REQUEST(name, type)                                                            \
	int skv_pb_read_##name(const struct skv_v1_in *in, const char *text, size_t n, \
			       struct type *out, struct skv_error *err);               \
	void skv_pb_write_##name(struct skv_buf *out, const struct type *v);
#define KEYED(name, type)                                                              \
	int skv_pb_read_##name(const struct skv_v1_in *in, const char *text, size_t n, \
			       struct type *out, struct skv_error *err);               \
	void skv_pb_write_##name(struct skv_buf *out, const struct type *req,          \
				 const struct skv_key_input *keys);
#define ANSWER REQUEST
SKV_V1_MESSAGES
#undef REQUEST
#undef KEYED
#undef ANSWER
/* The view of one block. */
void skv_pb_write_block_view(struct skv_buf *out, const struct skv_block_view *v);

/* By the name of a schema that is a table (the columns request and answer of SKV_OPERATIONS):
 * `message` and `out` are the struct of that message. */
void skv_pb_write_named(const char *schema, struct skv_buf *out, const void *message);
int skv_pb_read_named(const char *schema, const struct skv_v1_in *in, const char *text, size_t n,
		      void *out, struct skv_error *err);

void skv_pb_write_error(struct skv_buf *out, const struct skv_error *err, const char *request_id);
/* Fills *out from an error answer; returns out->status. Anything else is SKV_E_NETWORK. */
int skv_pb_read_error(const struct skv_v1_in *in, const char *text, size_t n,
		      struct skv_error *out);

#endif
