/*
 * fuzz_proto.h - any bytes into a reader of protobuf messages, for both of its fuzz targets.
 *
 * First byte chooses the type, the rest is the message. What is accepted is written in both
 * forms; each must be read again, unless it is refused for its depth or size, and then be
 * written the same as JSON.
 */
#ifndef TESTS_FUZZ_PROTO_H
#define TESTS_FUZZ_PROTO_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <skv/proto_codec.h>
#include <kvcm/admin.pb-c.h>
#include <kvcm/debug.pb-c.h>
#include <kvcm/meta.pb-c.h>

#include "all_types.pb-c.h"

static const ProtobufCMessageDescriptor *const fuzz_types[] = {
	&skv__test__all__descriptor,
	&skv__test__sparse__descriptor,
	&skv__test__empty__descriptor,
	&kvcm_meta__register_instance_request__descriptor,
	&kvcm_meta__get_cache_location_request__descriptor,
	&kvcm_meta__get_cache_locations_by_backend_request__descriptor,
	&kvcm_meta__start_write_cache_request__descriptor,
	&kvcm_meta__finish_write_cache_request__descriptor,
	&kvcm_meta__remove_cache_request__descriptor,
	&kvcm_meta__trim_cache_request__descriptor,
	&kvcm_meta__report_event_request__descriptor,
	&kvcm_meta__get_host_cache_state_request__descriptor,
	&kvcm_meta__get_cache_meta_response__descriptor,
	&kvcm_admin__add_storage_request__descriptor,
	&kvcm_admin__update_instance_group_request__descriptor,
	&kvcm_admin__get_metrics_response__descriptor,
	&kvcm_debug__inject_fault_request__descriptor,
};

static inline void must(bool ok, const char *what, const ProtobufCMessageDescriptor *type)
{
	if (ok)
		return;
	fprintf(stderr, "%s: %s\n", type->name, what);
	abort();
}

static inline void read_again(const ProtobufCMessage *m, const struct skv_proto_codec *codec,
			      const struct skv_buf *json)
{
	const ProtobufCMessageDescriptor *type = m->descriptor;
	struct skv_buf written = { 0 }, twice = { 0 };
	ProtobufCMessage *again = NULL;
	struct skv_arena arena;
	struct skv_error err;
	int status;

	skv_arena_init(&arena);
	codec->write(m, NULL, &written);
	status = codec->read(type, written.data, written.len, &arena, &again, &err);
	if (status == SKV_OK) {
		skv_proto_json.write(again, NULL, &twice);
		must(twice.len == json->len && memcmp(twice.data, json->data, json->len) == 0,
		     "written differently the second time", type);
	} else {
		must(status == SKV_E_TOO_LARGE || strstr(err.message, "nested"),
		     "written, but not read again", type);
	}
	skv_buf_destroy(&written);
	skv_buf_destroy(&twice);
	skv_arena_destroy(&arena);
}

static inline void fuzz_proto(const struct skv_proto_codec *codec, const uint8_t *data, size_t size)
{
	const ProtobufCMessageDescriptor *type;
	struct skv_buf json = { 0 };
	ProtobufCMessage *m = NULL;
	struct skv_arena arena;
	struct skv_error err;

	if (size == 0)
		return;
	type = fuzz_types[data[0] % (sizeof fuzz_types / sizeof fuzz_types[0])];
	skv_arena_init(&arena);
	skv_error_clear(&err);
	if (codec->read(type, data + 1, size - 1, &arena, &m, &err) == SKV_OK) {
		skv_proto_json.write(m, NULL, &json);
		read_again(m, &skv_proto_json, &json);
		read_again(m, &skv_proto_binary, &json);
	} else {
		must(err.status != SKV_OK && err.message[0] != '\0', "an error without a message",
		     type);
	}
	skv_buf_destroy(&json);
	skv_arena_destroy(&arena);
}

#endif
