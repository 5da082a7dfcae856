/*
 * codec.c - the tables of skv/v1_codec.h, and their content types.
 *
 * Stateless; any thread.
 */
#include <skv/v1_codec.h>
#include <skv/v1_pb.h>

#include <string.h>
#include <strings.h>

#define KEYED REQUEST

#define REQUEST(m, type) .read_##m = skv_v1_read_##m,
#define ANSWER(m, type) .write_##m = skv_v1_write_##m,

const struct skv_v1_codec skv_v1_json = {
	.content_type = "application/json",
	.no_memory = "{\"error\":{\"code\":\"out_of_memory\",\"message\":\"out of memory\","
		     "\"detail\":{}},\"request_id\":\"\"}",
	SKV_V1_MESSAGES
	ANSWER(block_view, skv_block_view)
	.write_named = skv_v1_write_named,
	.write_error = skv_v1_write_error,
};
#undef REQUEST
#undef ANSWER

#define REQUEST(m, type) .read_##m = skv_pb_read_##m,
#define ANSWER(m, type) .write_##m = skv_pb_write_##m,

const struct skv_v1_codec skv_v1_pb = {
	.content_type = "application/x-protobuf",
	.no_memory = "\x0a\x0d" "out_of_memory" "\x12\x0d" "out of memory",
	SKV_V1_MESSAGES
	ANSWER(block_view, skv_block_view)
	.write_named = skv_pb_write_named,
	.write_error = skv_pb_write_error,
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

/* Parses the media type at *s, which moves past it and its parameters. */
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

const char *skv_v1_codec_types(void) { return "application/json, application/x-protobuf"; }
