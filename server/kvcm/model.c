/*
 * model.c - messages of the peer as text and as other messages: what storages, groups and registrations share.
 *
 * No state. Any thread.
 */
#include "model_internal.h"

#include <string.h>

#include <kvb/mem.h>
#include <kvb/proto_codec.h>

int kvcm_model_nomem(struct kvb_error *err)
{
	return kvb_fail(err, KVB_E_NOMEM, NULL, "out of memory");
}

int kvcm_model_name(const char *name, const char *field, struct kvb_error *err)
{
	if (kvb_name_valid(name, strlen(name)))
		return KVB_OK;
	return kvb_fail(err, KVB_E_INVALID, field,
			"%s: '%.64s' is not 1 to %u of A-Z a-z 0-9 . _ - : = @ + , that begins with a letter, digit or _", field,
			name, KVB_MAX_NAME);
}

const char *kvcm_model_text(const ProtobufCMessage *m, struct kvb_arena *a)
{
	struct kvb_buf b;
	char *text = NULL;

	kvb_buf_init(&b);
	kvb_proto_json.write(m, NULL, &b);
	if (!b.failed)
		text = kvb_arena_strndup(a, (const char *)b.data, b.len);
	kvb_buf_destroy(&b);
	return text;
}

ProtobufCMessage *kvcm_model_message(const ProtobufCMessageDescriptor *d, const char *extra,
				     struct kvb_arena *a)
{
	ProtobufCMessage *m;
	struct kvb_error err;

	if (!extra || *extra != '{' || kvb_proto_json.read(d, extra, strlen(extra), a, &m, &err) != KVB_OK)
		return NULL;
	return m;
}

ProtobufCMessage *kvcm_model_convert(const ProtobufCMessage *m, const ProtobufCMessageDescriptor *d,
				     struct kvb_arena *a)
{
	ProtobufCMessage *out;
	struct kvb_error err;
	struct kvb_buf b;
	int rc = KVB_E_NOMEM;

	kvb_buf_init(&b);
	kvb_proto_binary.write(m, NULL, &b);
	if (!b.failed)
		rc = kvb_proto_binary.read(d, b.data, b.len, a, &out, &err);
	kvb_buf_destroy(&b);
	return rc == KVB_OK ? out : NULL;
}
