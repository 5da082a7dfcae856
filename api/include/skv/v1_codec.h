/*
 * v1_codec.h - the native API v1 as a manager serves it: one table of functions per content type.
 *
 * The transport chooses a codec once per request: it reads requests and writes answers through it.
 * Both codecs carry the same messages with the same limits and name the same fields in errors; the
 * functions are those of skv/v1_json.h and skv/v1_pb.h. Constant data, stateless; any thread.
 */
#ifndef SKV_V1_CODEC_H
#define SKV_V1_CODEC_H

#include <skv/v1_json.h>

struct skv_v1_codec {
	const char *content_type; /* of the written text */
	const char *no_memory;    /* the error answer when out of memory; no NUL inside */
#define REQUEST(m, type)                                                                           \
	int (*read_##m)(const struct skv_v1_in *in, const char *text, size_t n, struct type *out,  \
			struct skv_error *err);
#define KEYED REQUEST
#define ANSWER(m, type) void (*write_##m)(struct skv_buf *out, const struct type *v);
	SKV_V1_MESSAGES
	ANSWER(block_view, skv_block_view)
#undef REQUEST
#undef KEYED
#undef ANSWER
	void (*write_named)(const char *schema, struct skv_buf *out, const void *message);
	void (*write_error)(struct skv_buf *out, const struct skv_error *err,
			    const char *request_id);
};

extern const struct skv_v1_codec skv_v1_json; /* application/json */
extern const struct skv_v1_codec skv_v1_pb;   /* application/x-protobuf, api/v1/slabkv.proto */

/* The codec for a Content-Type header, ignoring parameters and case; NULL: none. What curl and
 * HTML forms send by default (application/x-www-form-urlencoded), and no header at all (NULL),
 * is JSON. */
const struct skv_v1_codec *skv_v1_codec_of_type(const char *content_type);
/* The first type in an Accept header that a codec writes; NULL: none, or no header. */
const struct skv_v1_codec *skv_v1_codec_of_accept(const char *accept);
/* The supported content types, for messages: "application/json, application/x-protobuf". */
const char *skv_v1_codec_types(void);

#endif
