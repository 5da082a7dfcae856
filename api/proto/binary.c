/*
 * binary.c - the two codecs, and writing the binary form with protobuf-c.
 *
 * A splice comes after the other fields: order does not matter to readers. Stateless; any thread.
 */
#include "message.h"

static void write_binary(const ProtobufCMessage *m, const struct skv_proto_splice *s,
			 struct skv_buf *out)
{
	size_t n = protobuf_c_message_get_packed_size(m);

	if (skv_buf_reserve(out, n + 1))
		out->len += protobuf_c_message_pack(m, out->data + out->len);
	for (; s; s = s->next)
		if (s->field)
			s->binary(s->ctx, out);
}

const struct skv_proto_codec skv_proto_json = {
	.content_type = "application/json",
	.read = skv_proto_read_json,
	.write = skv_proto_write_json,
};

const struct skv_proto_codec skv_proto_binary = {
	.content_type = "application/x-protobuf",
	.read = skv_proto_read_binary,
	.write = write_binary,
};
