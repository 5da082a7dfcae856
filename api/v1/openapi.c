/*
 * openapi.c - writes the OpenAPI document: the constant parts (openapi_base.json), the schemas of
 * the messages that are tables, and the paths of all operations.
 *
 * No state; any thread.
 */
#include "table.h"

#include <skv/check.h>
#include <stdio.h>

#include <skv/json_out.h>
#include <skv/v1_operations.h>

struct operation {
	const char *name, *method, *pattern, *role, *tag, *request, *answer, *summary, *text;
};

static const struct operation operations[] = {
#define ROW(name, method, pattern, role, flags, grpc, target, body, tag, request, answer, summary, \
	    text)                                                                                  \
	{ #name, #method, pattern, #role, tag, request, answer, summary, text },
	SKV_OPERATIONS(ROW, ROW, ROW)
#undef ROW
};

/* Parameters besides those of the path that many have. */
#define PORTION                                                                                    \
	"{\"name\":\"cursor\",\"in\":\"query\",\"schema\":"                                        \
	"{\"type\":\"integer\",\"format\":\"int64\",\"minimum\":0,\"default\":0}},"                \
	"{\"name\":\"max\",\"in\":\"query\",\"schema\":"                                           \
	"{\"type\":\"integer\",\"minimum\":1,\"maximum\":16384,\"default\":1024}}"
#define ONLY                                                                                       \
	"{\"name\":\"only\",\"in\":\"query\",\"schema\":{\"type\":\"string\","                    \
	"\"enum\":[\"new\",\"existing\"]},\"description\":\"new: conflict if it exists; existing: "\
	"not_found if it does not.\"}"
#define PAGE                                                                                       \
	"{\"name\":\"limit\",\"in\":\"query\",\"schema\":{\"type\":\"integer\","                   \
	"\"minimum\":1,\"maximum\":1000,\"default\":1000},"                                        \
	"\"description\":\"Objects at most; a page may have fewer.\"},"                            \
	"{\"name\":\"after\",\"in\":\"query\",\"schema\":{\"type\":\"string\","                    \
	"\"default\":\"\"},\"description\":\"`next` of the page before.\"}"
#define SCHEMA(name) "\"schema\":{\"$ref\":\"#/components/schemas/" name "\"}"

static const struct {
	const char *operation, *json;
} more_parameters[] = {
	{ "storage_put", ONLY },
	{ "instance_put", ONLY },
	{ "group_put", ONLY
	  ",{\"name\":\"version\",\"in\":\"query\",\"schema\":{\"type\":\"integer\","
	  "\"format\":\"int64\",\"minimum\":0},\"description\":\"Conflict, unless the group "
	  "has this version; one that does not exist has 0.\"}" },
	{ "storage_list", PAGE },
	{ "file_list", PAGE },
	{ "group_list", PAGE },
	{ "instance_list", PAGE },
	{ "token_list", PAGE },
	{ "tenant_list", PAGE },
	{ "pins", PORTION },
	{ "keys", PORTION },
	{ "block_get", "{\"name\":\"key\",\"in\":\"path\",\"required\":true,"
	  SCHEMA("KeyHex") "}" },
	{ "instance_delete",
	  "{\"name\":\"unused_s\",\"in\":\"query\",\"schema\":{\"type\":\"integer\","
	  "\"minimum\":0,\"maximum\":4000000000},\"description\":\"Only if no registration, "
	  "lookup or start has named it for so many seconds, and it holds no block, pin or "
	  "session; else in_use.\"},{\"name\":\"with_blocks\",\"in\":\"query\",\"schema\":"
	  "{\"type\":\"boolean\",\"default\":false},\"description\":\"With unused_s: also if "
	  "it holds some.\"}" },
	{ "block_find",
	  "{\"name\":\"key\",\"in\":\"query\"," SCHEMA("KeyString") ",\"description\":\"A string "
								    "key.\"},{\"name\":\"key_int\","
								    "\"in\":\"query\","
								    SCHEMA("KeyInt")
	  ",\"description\":\"An integer key.\"}" },
};

/* ---- paths ----------------------------------------------------------------------------------- */

static void put_ref(struct skv_buf *b, const char *folder, const char *name)
{
	char ref[128];
	int n = snprintf(ref, sizeof ref, "#/components/%s/%s", folder, name);

	SKV_CHECK(n > 0 && (size_t)n < sizeof ref);
	skv_jout_field_string(b, "$ref", ref);
}

/* The shared parameter that a segment in braces is; NULL: none is. */
static const char *parameter_of(const char *segment)
{
	static const char *const shared[][2] = {
		{ "{name}", "Name" },
		{ "{id}", "Instance" },
		{ "{tenant}", "Tenant" },
		{ "{session}", "Session" },
		{ "{move}", "Move" },
	};

	for (size_t i = 0; i < sizeof shared / sizeof shared[0]; i++)
		if (strncmp(segment, shared[i][0], strlen(shared[i][0])) == 0)
			return shared[i][1];
	return NULL;
}

static bool has_more(const struct operation *o)
{
	for (size_t i = 0; i < sizeof more_parameters / sizeof more_parameters[0]; i++)
		if (strcmp(more_parameters[i].operation, o->name) == 0)
			return true;
	return false;
}

static void put_parameters(struct skv_buf *b, const struct operation *o)
{
	const char *open = strchr(o->pattern, '{'), *shared = open ? parameter_of(open) : NULL;

	if (!shared && !has_more(o))
		return;
	skv_jout_name(b, "parameters");
	skv_jout_open(b, '[');
	if (shared) {
		skv_jout_open(b, '{');
		put_ref(b, "parameters", shared);
		skv_jout_close(b, '}');
	}
	for (size_t i = 0; i < sizeof more_parameters / sizeof more_parameters[0]; i++)
		if (strcmp(more_parameters[i].operation, o->name) == 0)
			skv_jout_plain(b, more_parameters[i].json, strlen(more_parameters[i].json));
	skv_jout_close(b, ']');
}

static void put_media(struct skv_buf *b, const char *type, const char *schema)
{
	skv_jout_name(b, type);
	skv_jout_open(b, '{');
	skv_jout_name(b, "schema");
	skv_jout_open(b, '{');
	if (schema)
		put_ref(b, "schemas", schema);
	else
		skv_jout_field_string(b, "type",
				      strcmp(type, "text/plain") == 0 ? "string" : "object");
	skv_jout_close(b, '}');
	skv_jout_close(b, '}');
}

/* `what` is a schema or a media type. Everything below /v1 is available as protobuf, too. */
static void put_content(struct skv_buf *b, const struct operation *o, const char *what)
{
	static const char protobuf[] = "{\"schema\":{\"type\":\"string\",\"format\":\"binary\","
				       "\"description\":\"A message of api/v1/slabkv.proto.\"}}";

	skv_jout_name(b, "content");
	skv_jout_open(b, '{');
	if (strchr(what, '/'))
		put_media(b, what, NULL);
	else
		put_media(b, "application/json", what);
	if (strncmp(o->pattern, "/v1/", 4) == 0) {
		skv_jout_name(b, "application/x-protobuf");
		skv_jout_plain(b, protobuf, sizeof protobuf - 1);
	}
	skv_jout_close(b, '}');
}

static void put_response(struct skv_buf *b, const struct operation *o, const char *status,
			 const char *text)
{
	skv_jout_name(b, status);
	skv_jout_open(b, '{');
	skv_jout_field_string(b, "description", text);
	if (o->answer)
		put_content(b, o, o->answer);
	skv_jout_close(b, '}');
}

static void put_responses(struct skv_buf *b, const struct operation *o)
{
	skv_jout_name(b, "responses");
	skv_jout_open(b, '{');
	if (o->answer)
		put_response(b, o, "200", "Success");
	else
		put_response(b, o, "204", "Gone");
	/* A PUT to an object's own path creates it. */
	if (strcmp(o->method, "PUT") == 0 && o->pattern[strlen(o->pattern) - 1] == '}')
		put_response(b, o, "201", "Made");
	skv_jout_name(b, "default");
	skv_jout_open(b, '{');
	put_ref(b, "responses", "Error");
	skv_jout_close(b, '}');
	skv_jout_close(b, '}');
}

static void put_request(struct skv_buf *b, const struct operation *o)
{
	const struct skv_table *t = skv_table_named(o->request);

	skv_jout_name(b, "requestBody");
	skv_jout_open(b, '{');
	skv_jout_field_bool(b, "required", !t || !t->no_body);
	put_content(b, o, o->request);
	skv_jout_close(b, '}');
}

/* In lower case. */
static const char *lower(const char *s, char out[16])
{
	size_t n = strlen(s);

	SKV_CHECK(n < 16);
	for (size_t i = 0; i <= n; i++)
		out[i] = s[i] >= 'A' && s[i] <= 'Z' ? (char)(s[i] - 'A' + 'a') : s[i];
	return out;
}

static void put_operation(struct skv_buf *b, const struct operation *o)
{
	const bool open = strcmp(o->role, "OPEN") == 0;
	char word[16], description[640];
	int n = snprintf(description, sizeof description, "%s%sRole: %s.", o->text,
			 *o->text ? " " : "", open ? "none" : lower(o->role, word));

	SKV_CHECK(n > 0 && (size_t)n < sizeof description);
	skv_jout_name(b, lower(o->method, word));
	skv_jout_open(b, '{');
	skv_jout_field_string(b, "operationId", o->name);
	skv_jout_field_string(b, "summary", o->summary);
	skv_jout_field_strings(b, "tags", &o->tag, 1);
	skv_jout_field_string(b, "description", description);
	if (open)
		skv_jout_field_strings(b, "security", NULL, 0);
	put_parameters(b, o);
	if (o->request)
		put_request(b, o);
	put_responses(b, o);
	skv_jout_close(b, '}');
}

/* Methods of one path are in adjacent rows. */
static void put_paths(struct skv_buf *b)
{
	const size_t n = sizeof operations / sizeof operations[0];

	skv_jout_name(b, "paths");
	skv_jout_open(b, '{');
	for (size_t i = 0; i < n; i++) {
		const struct operation *o = &operations[i];

		if (i == 0 || strcmp(o->pattern, o[-1].pattern) != 0) {
			skv_jout_name(b, o->pattern);
			skv_jout_open(b, '{');
		}
		put_operation(b, o);
		if (i + 1 == n || strcmp(o->pattern, o[1].pattern) != 0)
			skv_jout_close(b, '}');
	}
	skv_jout_close(b, '}');
}

/* ---- the document ---------------------------------------------------------------------------- */

void skv_v1_write_openapi(struct skv_buf *out)
{
	const char *base = skv_v1_openapi_base();
	size_t n = strlen(base);

	/* The document's last member is components, whose last member is schemas. */
	for (int braces = 0; braces < 3 && n > 0; braces += base[--n] == '}')
		SKV_CHECK(strchr(" \n}", base[n - 1]));
	skv_put_bytes(out, base, n);
	while (out->len > 0 && strchr(" \n", out->data[out->len - 1]))
		out->len--; /* a comma takes care of itself behind a value */
	skv_table_write_schemas(out);
	skv_jout_close(out, '}');
	skv_jout_close(out, '}');
	put_paths(out);
	skv_jout_close(out, '}');
}
