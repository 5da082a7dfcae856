/*
 * model.c - helpers for storages, groups and registrations: KVCM's messages as text and as other
 * messages.
 *
 * No state. Any thread.
 */
#include "model_internal.h"

#include <string.h>

#include <skv/mem.h>
#include <skv/proto_codec.h>

int kvcm_model_nomem(struct skv_error *err)
{
	return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
}

int kvcm_model_name(const char *name, const char *field, struct skv_error *err)
{
	if (skv_name_valid(name, strlen(name)))
		return SKV_OK;
	return skv_fail(
		err, SKV_E_INVALID, field,
		"%s: '%.64s' is not 1 to %u of A-Z a-z 0-9 . _ - : = @ + , that begins with a "
		"letter, digit or _",
		field, name, SKV_MAX_NAME);
}

int kvcm_model_id(const char *id, struct skv_error *err)
{
	if (skv_model_name_valid(id, strlen(id)))
		return SKV_OK;
	return skv_fail(
		err, SKV_E_INVALID, "instance_id",
		"instance_id: '%.64s' is not 1 to %u of A-Z a-z 0-9 . _ - : = @ + , in parts with "
		"a / between them that begin with a letter, digit or _",
		id, SKV_MAX_NAME);
}

const char *kvcm_model_text(const ProtobufCMessage *m, struct skv_arena *a)
{
	struct skv_buf b;
	char *text = NULL;

	skv_buf_init(&b);
	skv_proto_json.write(m, NULL, &b);
	if (!b.failed)
		text = skv_arena_strndup(a, (const char *)b.data, b.len);
	skv_buf_destroy(&b);
	return text;
}

ProtobufCMessage *kvcm_model_message(const ProtobufCMessageDescriptor *d, const char *extra,
				     struct skv_arena *a)
{
	ProtobufCMessage *m;
	struct skv_error err;

	if (!extra || *extra != '{' ||
	    skv_proto_json.read(d, extra, strlen(extra), a, &m, &err) != SKV_OK)
		return NULL;
	return m;
}

ProtobufCMessage *kvcm_model_convert(const ProtobufCMessage *m, const ProtobufCMessageDescriptor *d,
				     struct skv_arena *a)
{
	ProtobufCMessage *out;
	struct skv_error err;
	struct skv_buf b;
	int rc = SKV_E_NOMEM;

	skv_buf_init(&b);
	skv_proto_binary.write(m, NULL, &b);
	if (!b.failed)
		rc = skv_proto_binary.read(d, b.data, b.len, a, &out, &err);
	skv_buf_destroy(&b);
	return rc == SKV_OK ? out : NULL;
}
