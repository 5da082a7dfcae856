/*
 * codec.c - the tables of skv/v1_codec.h, and which of them a content type means.
 *
 * No state; any thread.
 */
#include <skv/v1_codec.h>

#include <string.h>
#include <strings.h>

#include "pb.h"

#define JSON_READ(m, type) .read_##m = skv_v1_read_##m,
#define JSON_WRITE(m, type) .write_##m = skv_v1_write_##m,

const struct skv_v1_codec skv_v1_json = {
	.name = "json",
	.content_type = "application/json",
	.no_memory = "{\"error\":{\"code\":\"out_of_memory\",\"message\":\"out of memory\","
		     "\"detail\":{}},\"request_id\":\"\"}",
	SKV_V1_READS(JSON_READ)
	SKV_V1_WRITES(JSON_WRITE)
	SKV_V1_WRITES_KEYS(JSON_WRITE)
	SKV_V1_WRITES_LIST(JSON_WRITE)
	.write_start_req = skv_v1_write_start_req,
	.write_error = skv_v1_write_error,
	.read_error = skv_v1_read_error,
};

#define PB_READ(m, type) .read_##m = skv_pb_read_##m,
#define PB_WRITE(m, type) .write_##m = skv_pb_write_##m,

const struct skv_v1_codec skv_v1_pb = {
	.name = "protobuf",
	.content_type = "application/x-protobuf",
	.no_memory = "\x0a\x0d" "out_of_memory" "\x12\x0d" "out of memory",
	SKV_V1_READS(PB_READ)
	SKV_V1_WRITES(PB_WRITE)
	SKV_V1_WRITES_KEYS(PB_WRITE)
	SKV_V1_WRITES_LIST(PB_WRITE)
	.write_start_req = skv_pb_write_start_req,
	.write_error = skv_pb_write_error,
	.read_error = skv_pb_read_error,
};

static const struct {
	const char *type;
	const struct skv_v1_codec *codec;
} types[] = {
	{ "application/json", &skv_v1_json },
	{ "application/x-www-form-urlencoded", &skv_v1_json },
	{ "application/x-protobuf", &skv_v1_pb },
	{ "application/protobuf", &skv_v1_pb },
};

/* The media type at *s, which moves behind it and its parameters. */
static const struct skv_v1_codec *type_at(const char **s)
{
	const char *at = *s + strspn(*s, " \t,");
	size_t n = strcspn(at, " \t;,");

	*s = at + strcspn(at, ",");
	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
		if (strlen(types[i].type) == n && strncasecmp(types[i].type, at, n) == 0)
			return types[i].codec;
	return NULL;
}

const struct skv_v1_codec *skv_v1_codec_of_type(const char *content_type)
{
	return content_type && *content_type ? type_at(&content_type) : &skv_v1_json;
}

const struct skv_v1_codec *skv_v1_codec_of_accept(const char *accept)
{
	const struct skv_v1_codec *codec = NULL;

	while (accept && *accept && !codec)
		codec = type_at(&accept);
	return codec;
}

const struct skv_v1_codec *skv_v1_codec_named(const char *name)
{
	if (strcmp(name, skv_v1_json.name) == 0)
		return &skv_v1_json;
	return strcmp(name, skv_v1_pb.name) == 0 ? &skv_v1_pb : NULL;
}

const char *skv_v1_codec_types(void) { return "application/json, application/x-protobuf"; }
