/*
 * proto_tools.h - reading and writing messages in tests: one arena and buffer, texts compared.
 *
 * A failed step ends the test through cmocka; include its headers first.
 */
#ifndef TESTS_API_PROTO_TOOLS_H
#define TESTS_API_PROTO_TOOLS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <skv/proto_codec.h>

struct tools {
	struct skv_arena arena;
	struct skv_buf out;
	struct skv_error err;
};

static inline void tools_open(struct tools *t)
{
	skv_arena_init(&t->arena);
	skv_buf_init(&t->out);
	skv_error_clear(&t->err);
}

static inline void tools_close(struct tools *t)
{
	skv_arena_destroy(&t->arena);
	skv_buf_destroy(&t->out);
}

/* Reads from memory of exactly that size, so that a sanitizer sees the byte
 * behind it; NULL: refused. */
static inline ProtobufCMessage *tools_read(struct tools *t, const struct skv_proto_codec *codec,
					   const ProtobufCMessageDescriptor *d, const void *bytes,
					   size_t n)
{
	char *copy = malloc(n ? n : 1);
	ProtobufCMessage *m = NULL;
	int status;

	assert_non_null(copy);
	if (n > 0)
		memcpy(copy, bytes, n);
	skv_error_clear(&t->err);
	status = codec->read(d, copy, n, &t->arena, &m, &t->err);
	memset(copy, 'x', n);
	free(copy);
	assert_int_equal(status, t->err.status);
	assert_true((status == SKV_OK) == (m != NULL));
	return m;
}

static inline ProtobufCMessage *tools_read_json(struct tools *t,
						const ProtobufCMessageDescriptor *d,
						const char *text)
{
	return tools_read(t, &skv_proto_json, d, text, strlen(text));
}

/* Valid until the next one. */
static inline const char *tools_write_json(struct tools *t, const ProtobufCMessage *m,
					   const struct skv_proto_splice *s)
{
	skv_buf_clear(&t->out);
	skv_proto_json.write(m, s, &t->out);
	skv_put_u8(&t->out, 0);
	assert_false(t->out.failed);
	return (const char *)t->out.data;
}

static inline const uint8_t *tools_write_binary(struct tools *t, const ProtobufCMessage *m,
						size_t *n)
{
	skv_buf_clear(&t->out);
	skv_proto_binary.write(m, NULL, &t->out);
	assert_false(t->out.failed);
	*n = t->out.len;
	return t->out.data;
}

#endif
