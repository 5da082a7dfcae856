/*
 * test_v1_docs.c - documents of the API are true: the OpenAPI document is sound and complete, the
 * tables of docs/reference/PROTOCOL.md agree with skv/status.h and skv/limits.h, its JSON examples
 * are readable.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_requests.h"

#include <skv/v1_operations.h>

struct operation {
	const char *method;
	const char *path;
};

static const struct operation operations[] = {
#define ROW(name, method, pattern, ...) { #method, pattern },
	SKV_OPERATIONS(ROW, ROW, ROW)
#undef ROW
};
#define N_OPERATIONS (sizeof operations / sizeof operations[0])

static char *protocol; /* the text of docs/reference/PROTOCOL.md */
static struct skv_buf document; /* the OpenAPI document */
static json_t *openapi;

static int setup(void **state)
{
	FILE *f = fopen(PROTOCOL_MD, "r");
	size_t cap = 1 << 20, n;
	json_error_t e;

	(void)state;
	protocol = malloc(cap);
	if (!f || !protocol)
		return -1;
	n = fread(protocol, 1, cap - 1, f);
	protocol[n] = '\0';
	fclose(f);
	skv_v1_write_openapi(&document);
	openapi = json_loadb((const char *)document.data, document.len, JSON_REJECT_DUPLICATES, &e);
	if (!openapi)
		fprintf(stderr, "openapi.json, byte %d: %s\n", e.position, e.text);
	return openapi && n < cap - 1 ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	free(protocol);
	json_decref(openapi);
	skv_buf_destroy(&document);
	return 0;
}

static json_t *at(json_t *o, const char *name)
{
	json_t *v = json_object_get(o, name);

	if (!v)
		fail_msg("openapi: no '%s'", name);
	return v;
}

static const char *lower(const char *method)
{
	return strcmp(method, "GET") == 0 ? "get" : strcmp(method, "PUT") == 0 ? "put"
	       : strcmp(method, "POST") == 0 ? "post" : "delete";
}

static void test_openapi_names_every_operation(void **state)
{
	json_t *paths = at(openapi, "paths"), *methods;
	size_t n = 0;
	const char *path;

	(void)state;
	assert_string_equal(json_string_value(at(openapi, "openapi")), "3.0.3");
	for (size_t i = 0; i < N_OPERATIONS; i++) {
		json_t *op = at(at(paths, operations[i].path), lower(operations[i].method));

		assert_non_null(json_string_value(at(op, "operationId")));
		assert_non_null(json_string_value(at(op, "summary")));
		at(at(op, "responses"), "default");
		if (strcmp(operations[i].method, "PUT") == 0)
			at(op, "requestBody");
	}
	json_object_foreach(paths, path, methods)
		n += json_object_size(methods);
	assert_int_equal(n, N_OPERATIONS); /* and no other */
}

/* Follows "#/a/b/c". */
static json_t *resolve(const char *ref)
{
	char part[64];
	json_t *v = openapi;

	assert_int_equal(strncmp(ref, "#/", 2), 0);
	for (ref += 2; v && *ref; ref += strspn(ref, "/")) {
		size_t n = strcspn(ref, "/");

		assert_true(n < sizeof part);
		snprintf(part, sizeof part, "%.*s", (int)n, ref);
		v = json_object_get(v, part);
		ref += n;
	}
	return v;
}

static unsigned check_references(json_t *v)
{
	unsigned n = 0;
	const char *name;
	json_t *child;
	size_t i;

	if (json_is_object(v))
		json_object_foreach(v, name, child) {
			if (strcmp(name, "$ref") == 0) {
				if (!resolve(json_string_value(child)))
					fail_msg("openapi: nothing at %s",
						 json_string_value(child));
				n++;
			}
			n += check_references(child);
		}
	json_array_foreach(v, i, child)
		n += check_references(child);
	return n;
}

/* Bounds are numbers, also where the API writes large numbers as strings. */
static void check_bounds(const json_t *schema)
{
	static const char *const bound[] = { "minimum", "maximum", "minLength", "maxLength",
					     "minItems", "maxItems" };

	for (size_t i = 0; i < sizeof bound / sizeof bound[0]; i++) {
		const json_t *v = json_object_get(schema, bound[i]);

		/* an object: of a field that has this name */
		assert_true(!v || json_is_integer(v) || json_is_object(v));
	}
}

/* Rejects constructs that generators of clients cannot handle: null allowed for a value without a
 * type, alternatives that say which field is needed but not its form, and bounds that are not
 * numbers. */
static void check_types(json_t *v)
{
	json_t *child, *branch;
	const char *name;
	size_t i, k;

	if (json_is_true(json_object_get(v, "nullable")))
		assert_non_null(json_object_get(v, "type"));
	check_bounds(v);
	json_array_foreach(json_object_get(v, "oneOf"), i, branch)
		json_array_foreach(json_object_get(branch, "required"), k, child)
			assert_non_null(json_object_get(json_object_get(branch, "properties"),
							json_string_value(child)));
	if (json_is_object(v))
		json_object_foreach(v, name, child)
			check_types(child);
	json_array_foreach(v, i, child)
		check_types(child);
}

static void test_openapi_types(void **state)
{
	(void)state;
	check_types(openapi);
}

static void test_openapi_references(void **state)
{
	(void)state;
	assert_true(check_references(openapi) > 100);
	for (size_t i = 0; i < document.len; i++)
		assert_true(document.data[i] < 0x80);
}

/* All fields of what a writer wrote stand in the schema, and what the schema requires was
 * written. */
static void check_schema(const char *schema, const struct skv_buf *text)
{
	json_t *s = at(at(at(openapi, "components"), "schemas"), schema), *part, *value;
	json_t *doc = json_loadb((const char *)text->data, text->len, JSON_REJECT_DUPLICATES, NULL);
	json_t *parts = json_object_get(s, "allOf");
	const char *name;
	size_t i;

	assert_non_null(doc);
	parts = parts ? json_incref(parts) : json_pack("[O]", s);
	json_object_foreach(doc, name, value) {
		bool known = false;

		json_array_foreach(parts, i, part)
			known |= json_object_get(at(part, "properties"), name) != NULL;
		if (!known)
			fail_msg("openapi: %s has no '%s'", schema, name);
	}
	json_array_foreach(parts, i, part) {
		json_t *required = json_object_get(part, "required");
		size_t k;

		json_array_foreach(required, k, value)
			if (!json_object_get(doc, json_string_value(value)))
				fail_msg("openapi: %s requires '%s', which is not written", schema,
					 json_string_value(value));
	}
	json_decref(parts);
	json_decref(doc);
}

#define CHECK_SCHEMA(schema, call)                   \
	do {                                         \
		struct skv_buf b_ = { 0 }, *b = &b_; \
                                                     \
		call;                                \
		check_schema(schema, b);             \
		skv_buf_destroy(b);                  \
	} while (0)
#define CHECK_NAMED(name, ...) CHECK_SCHEMA(name, skv_v1_write_named(name, b, __VA_ARGS__))

static void test_report_schemas(void **state)
{
	const struct skv_report_res reported = { .refused = 1 };

	(void)state;
	CHECK_SCHEMA("ReportResult", skv_v1_write_report_res(b, &reported));
}

static void test_token_schemas(void **state)
{
	struct skv_token_view token = { "ci", "store", "write", "acme", 1, 2, true, true };

	(void)state;
	CHECK_NAMED("TokenView", &token);
	CHECK_NAMED("TokenList", &(struct skv_token_list){ &token, 1, "" });
}

static void test_tenant_schemas(void **state)
{
	static const char *const names[] = { "a", "b" };
	struct skv_tenant_view tenant = { "acme",
					  { names, 2, names, 2, names, 2, names, 2, 3, 2, 9,
					    9, 9, 9, 9, 9, 9, 9 },
					  { 1, 2, 3, 4, 5, 6, 7 } };

	(void)state;
	CHECK_NAMED("TenantView", &tenant);
	CHECK_NAMED("TenantList", &(struct skv_tenant_list){ &tenant, 1, "" });
}

static void test_openapi_schemas(void **state)
{
	struct skv_storage_view storage =
		{ .spec = { .name = "s", .type = "file", .root = "/r", .capacity = 1,
			    .file_size = 2, .unit = 4, .enabled = true, .high_percent = 2,
			    .low_percent = 1, .chunk_size = 8, .any_mount = true,
			    .fs_master = (const char *const[]){ "http://a/b" }, .n_fs_master = 1 },
		  .problem = "", .groups = 1 };
	struct skv_group_view group =
		{ .fast = "f", .spec = { .name = "g", .share = SKV_SHARE_FIXED, .high_percent = 2,
			    .low_percent = 1, .pin_percent = 1 } };
	const struct skv_placement placement = { .storage = "s", .spec = "x", .fit = "whole",
						 .slot_bytes = 1 };
	struct skv_instance_view instance =
		{ .spec = { .tenant = "t", .id = "i", .group = "g", .extra = "", .weight = 1,
			    .capacity = 1 },
		  .layouts = 1, .layouts_left = 1, .warning = "w", .placements = &placement,
		  .n_placements = 1 };
	struct skv_match_res match = { 0 };
	struct skv_lookup_res lookup = { 0 };
	struct skv_start_res start = { .session = "" };
	struct skv_finish_res finish = { 0 };
	struct skv_delete_res deleted = { .pinned = 1 };
	struct skv_file_view file = { .state = "used", .why = "", .waits_for = "" };
	struct skv_trim_res trimmed = { 0 };
	struct skv_pin_res pinned = { 0 };
	struct skv_unpin_res unpinned = { 0 };
	struct skv_pins_res pins = { 0 };
	struct skv_keys_res listed = { 0 };
	struct skv_block_view block = { .children = 0 };
	struct skv_stats stats = { .state = "ready" };
	struct skv_error error = { .status = SKV_E_INVALID };
	struct skv_key key = { 0, 1 };
	struct skv_key_input keys = { .form = SKV_KEYS_INT, .n = 1, .keys = &key };
	const char *const names[] = { "a" };
	uint64_t sum = 1;

	(void)state;
	CHECK_SCHEMA("StorageView", skv_v1_write_storage_view(b, &storage));
	CHECK_SCHEMA("GroupView", skv_v1_write_group_view(b, &group));
	CHECK_SCHEMA("InstanceView", skv_v1_write_instance_view(b, &instance));
	CHECK_NAMED("StorageList", &(struct skv_storage_list){ &storage, 1, "" });
	CHECK_NAMED("GroupList", &(struct skv_group_list){ &group, 1, "" });
	CHECK_NAMED("InstanceList", &(struct skv_instance_list){ &instance, 1, "" });
	CHECK_SCHEMA("MatchRequest", json_match_req(
		b, &(struct skv_match_req){ .instances = names, .n_instances = 1 }, &keys));
	CHECK_SCHEMA("LookupRequest", json_lookup_req(
		b, &(struct skv_lookup_req){ .specs = names, .n_specs = 1, .partial = true,
					     .window = 1, .runs = true }, &keys));
	CHECK_SCHEMA("StartRequest", json_start_req(
		b, &(struct skv_start_req){ .request_id = "r", .specs = names, .n_specs = 1,
					    .deadline_ms = 1, .independent = true, .runs = true },
		&(struct skv_key_input){ .form = SKV_KEYS_INT, .n = 1, .keys = &key,
					 .parent = &keys }));
	CHECK_SCHEMA("FinishRequest", json_finish_req(
		b, &(struct skv_finish_req){ .n_checksums = 1, .checksums = &sum }));
	CHECK_NAMED("FileList", &(struct skv_file_list){ &file, 1, "" });
	CHECK_SCHEMA("MatchResult", skv_v1_write_match_res(b, &match));
	CHECK_SCHEMA("LookupResult", skv_v1_write_lookup_res(b, &lookup));
	CHECK_SCHEMA("StartResult", skv_v1_write_start_res(b, &start));
	lookup.runs = start.runs = true;
	CHECK_SCHEMA("LookupResult", skv_v1_write_lookup_res(b, &lookup));
	CHECK_SCHEMA("StartResult", skv_v1_write_start_res(b, &start));
	CHECK_SCHEMA("FinishResult", skv_v1_write_finish_res(b, &finish));
	CHECK_SCHEMA("DeleteResult", skv_v1_write_delete_res(b, &deleted));
	CHECK_SCHEMA("TrimResult", skv_v1_write_trim_res(b, &trimmed));
	CHECK_SCHEMA("PinResult", skv_v1_write_pin_res(b, &pinned));
	CHECK_SCHEMA("UnpinResult", skv_v1_write_unpin_res(b, &unpinned));
	CHECK_SCHEMA("PinList", skv_v1_write_pins_res(b, &pins));
	CHECK_SCHEMA("KeyList", skv_v1_write_keys_res(b, &listed));
	CHECK_SCHEMA("Block", skv_v1_write_block_view(b, &block));
	CHECK_NAMED("Stats", &stats);
	CHECK_SCHEMA("Error", skv_v1_write_error(b, &error, "r"));
}

/* Checks a line of the golden file: the place in the document, and the value there. */
static void check_golden(FILE *made, const char *where, json_t *v)
{
	char *text =
		json_dumps(v, JSON_SORT_KEYS | JSON_ENSURE_ASCII | JSON_COMPACT | JSON_ENCODE_ANY);

	fprintf(made, "%s\t%s\n", where, text);
	free(text);
}

/* The document is the one that was looked at last, piece by piece: a change of it shows in a
 * review. SKV_WRITE=1 takes the one of now. */
static void test_openapi_golden(void **state)
{
	const bool write = getenv("SKV_WRITE") != NULL;
	char *text = NULL, where[256], line[32768];
	json_t *paths = at(openapi, "paths"), *parts = at(openapi, "components"),
	       *rest = json_copy(openapi), *v, *w;
	const char *name, *method;
	FILE *made, *golden = fopen(GOLDEN_OPENAPI, write ? "w" : "r");
	size_t n;

	(void)state;
	assert_non_null(golden);
	made = open_memstream(&text, &n);
	assert_non_null(made);
	json_object_del(rest, "paths");
	json_object_del(rest, "components");
	check_golden(made, "/", rest);
	json_object_foreach(paths, name, v)
		json_object_foreach(v, method, w) {
			snprintf(where, sizeof where, "%s %s", method, name);
			check_golden(made, where, w);
		}
	json_object_foreach(parts, method, v)
		json_object_foreach(v, name, w) {
			snprintf(where, sizeof where, "%s/%s", method, name);
			check_golden(made, where, w);
		}
	fclose(made);
	if (write)
		fputs(text, golden);
	for (char *p = text, *end; !write && *p; p = end + 1) {
		end = strchr(p, '\n');
		if (!fgets(line, sizeof line, golden) ||
		    strncmp(line, p, (size_t)(end - p) + 1) != 0)
			fail_msg("openapi.json is not the golden one (SKV_WRITE=1 takes it): %.*s",
				 (int)(end - p), p);
	}
	assert_true(write || !fgets(line, sizeof line, golden));
	fclose(golden);
	json_decref(rest);
	free(text);
}

static void need(const char *text)
{
	if (!strstr(protocol, text))
		fail_msg("docs/reference/PROTOCOL.md does not have: %s", text);
}

static unsigned count(const char *haystack, const char *needle)
{
	unsigned n = 0;

	for (const char *p = haystack; (p = strstr(p, needle)); p += strlen(needle))
		n++;
	return n;
}

static void test_error_table(void **state)
{
	json_t *codes = resolve("#/components/schemas/Error/properties/error/properties/code/enum");
	unsigned n = 0;
	char row[256];

	(void)state;
#define ROW(name, number, code, http, grpc, text)                                                 \
	if ((number) != 0) {                                                                      \
		snprintf(row, sizeof row, "\n| `%s` | %d | %d | %s |\n", code, http, grpc, text); \
		need(row);                                                                        \
		assert_string_equal(json_string_value(json_array_get(codes, n)), code);           \
		n++;                                                                              \
	}
	SKV_STATUS_MAP(ROW)
#undef ROW
	assert_int_equal(json_array_size(codes), n);
	/* No row more than that: the table's rows are the only ones with HTTP and gRPC numbers. */
	for (const char *p = protocol; (p = strstr(p, "\n| `")); p++) {
		int http, grpc;

		if (sscanf(p, "\n| `%*[a-z_]` | %d | %d |", &http, &grpc) == 2)
			n--;
	}
	assert_int_equal(n, 0);
}

static void test_limits(void **state)
{
	char row[128];

	(void)state;
#define LIMIT(text, value)                                                   \
	snprintf(row, sizeof row, "\n| " text, (unsigned long long)(value)); \
	need(row)
	LIMIT("keys in one request | %llu |", SKV_MAX_KEYS);
	LIMIT("bytes of a string key | %llu |", SKV_MAX_KEY_STRING);
	LIMIT("instances in one match | %llu |", SKV_MAX_INSTANCES_PER_MATCH);
	LIMIT("specs of an instance | %llu |", SKV_MAX_SPECS);
	LIMIT("bytes of one spec | 1 to %llu |", SKV_MAX_SPEC_SIZE);
	LIMIT("characters of a name | %llu |", SKV_MAX_NAME);
	LIMIT("bytes of a `request_id` | %llu |", SKV_MAX_REQUEST_ID);
	LIMIT("bytes of `root` | %llu |", SKV_MAX_ROOT);
	LIMIT("bytes of `extra` | %llu |", SKV_MAX_EXTRA);
	LIMIT("bytes of a body | %llu (", SKV_MAX_BODY);
	LIMIT("lease | parameter `lease_max_ms`, never over %llu |", SKV_MAX_LEASE_MS);
	LIMIT("deadline of a session | parameter `session_max_ms`, never over %llu |",
	      SKV_MAX_SESSION_MS);
#undef LIMIT
}

/* Returns true if a curl line of the document calls the operation: method and path, with names put
 * back to {parameters}. */
static bool asks(const char *line, const struct operation *op)
{
	const char *url = strstr(line, "$SLABKV_URL"), *p = op->path;
	const char *method = strstr(line, "-X PUT") ? "PUT" : strstr(line, "-X DELETE") ? "DELETE"
			     : strstr(line, " -d '") ? "POST" : "GET";

	if (!url || strcmp(method, op->method) != 0)
		return false;
	for (url += strlen("$SLABKV_URL"); *p; p++) {
		if (*p == '{') {
			url += strcspn(url, "/ \"?\n)");
			p = strchr(p, '}');
		} else if (*url++ != *p) {
			return false;
		}
	}
	return strchr(" \"?\n)", *url) != NULL;
}

/* Every operation has a line in an ```sh block; running them is the end-to-end test's part. */
static void test_curl_lines(void **state)
{
	bool seen[N_OPERATIONS] = { false };
	char *copy = strdup(protocol), *rest = copy, *line;
	bool inside = false;

	(void)state;
	while ((line = strsep(&rest, "\n"))) {
		if (strncmp(line, "```", 3) == 0)
			inside = strcmp(line, "```sh") == 0;
		for (size_t i = 0; inside && strstr(line, "curl ") && i < N_OPERATIONS; i++)
			seen[i] |= asks(line, &operations[i]);
		/* failures must show */
		if (inside && strstr(line, "curl "))
			assert_non_null(strstr(line, "curl -sS --fail-with-body "));
	}
	free(copy);
	for (size_t i = 0; i < N_OPERATIONS; i++)
		if (!seen[i])
			fail_msg("docs/reference/PROTOCOL.md has no curl line for %s %s",
				 operations[i].method, operations[i].path);
}

static void test_examples(void **state)
{
	/* by a field that no answer before it has */
	static const struct { const char *field, *schema; } answers[] = {
		{ "session", "StartResult" },    { "matched", "LookupResult" },
		{ "results", "MatchResult" },    { "committed", "FinishResult" },
		{ "instances", "PurgeResult" },  { "deleted", "TrimResult" },
	};
	static const char zeros[4096];
	struct skv_arena arena;
	struct skv_v1_in in = { .arena = &arena };
	unsigned n = 0;
	char sum[32];

	(void)state;
	skv_arena_init(&arena);
	for (const char *p = protocol; (p = strstr(p, "```json\n"));) {
		const char *end = strstr(p += 8, "\n```"), *schema = NULL;
		json_error_t e;
		json_t *v;
		size_t len;

		assert_non_null(end);
		len = (size_t)(end - p);
		v = json_loadb(p, len, JSON_REJECT_DUPLICATES, &e);
		if (!v)
			fail_msg("example %u: line %d: %s", n, e.line, e.text);
		n++;
		for (size_t i = 0; !schema && i < sizeof answers / sizeof answers[0]; i++)
			if (json_object_get(v, answers[i].field))
				schema = answers[i].schema;
		if (schema) {
			check_schema(schema, &(struct skv_buf){ .data = (uint8_t *)p, .len = len });
		} else {
			struct skv_error r;

			assert_int_equal(skv_v1_read_error(&in, p, len, &r), SKV_E_INVALID);
			assert_string_equal(r.field, "specs[0].size");
		}
		json_decref(v);
	}
	assert_int_equal(n, 8);
	snprintf(sum, sizeof sum, "\"%016llx\"",
		 (unsigned long long)skv_checksum(zeros, sizeof zeros));
	assert_int_equal(count(protocol, sum), 6);
	skv_arena_destroy(&arena);
}

/* With an argument: prints the OpenAPI document. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_openapi_names_every_operation),
		cmocka_unit_test(test_openapi_types), cmocka_unit_test(test_openapi_references),
		cmocka_unit_test(test_openapi_schemas),
		cmocka_unit_test(test_report_schemas),
		cmocka_unit_test(test_token_schemas),
		cmocka_unit_test(test_tenant_schemas),
		cmocka_unit_test(test_openapi_golden),
		cmocka_unit_test(test_error_table),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_curl_lines),
		cmocka_unit_test(test_examples),
	};

	(void)argv;
	if (argc > 1) {
		skv_v1_write_openapi(&document);
		fwrite(document.data, 1, document.len, stdout);
		skv_buf_destroy(&document);
		return 0;
	}
	return cmocka_run_group_tests_name("v1_docs", tests, setup, teardown);
}
