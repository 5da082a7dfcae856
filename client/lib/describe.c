/*
 * describe.c - the manager's counters, one block, and a storage's slab files, as structs. Parsed
 * from JSON, the form that every manager has. Stateless; any thread.
 */
#include "client.h"
#include "paths.h"

#include <stdio.h>
#include <string.h>

#include <skv/json.h>

static int no_memory(struct skv_error *err)
{
	return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
}

static int bad_answer(struct skv_error *err, const char *op)
{
	return skv_fail(err, SKV_E_INTERNAL, NULL,
			"%s: the manager's answer does not match the request", op);
}

/* The root of an answer to a GET, which lives in the arena. */
static int ask(struct slabkv *kv, const char *op, const char *path, struct skv_arena *a,
	       const struct skv_json_node **root, struct skv_error *err)
{
	const struct skv_json_limits limits = { .depth = 16, .values = 1u << 22, .wide = true };
	const struct skv_call c = { .op = op, .method = "GET", .path = path };
	struct skv_answer answer = { 0 };
	struct skv_json_doc doc;
	const char *body = NULL; /* texts of the document stay in it */
	int rc = skv_call_do(kv, &c, &answer, err);

	if (rc == SKV_OK)
		body = skv_arena_strndup(a, answer.body.len ? (const char *)answer.body.data : "",
					 answer.body.len);
	if (rc == SKV_OK && !body)
		rc = no_memory(err);
	if (rc == SKV_OK && !skv_json_parse(&doc, a, body, answer.body.len, &limits))
		rc = doc.fault == SKV_JSON_NOMEM ? no_memory(err) : bad_answer(err, op);
	if (rc == SKV_OK && doc.root->type != SKV_JSON_OBJECT)
		rc = bad_answer(err, op);
	skv_buf_destroy(&answer.body);
	if (rc == SKV_OK)
		*root = doc.root;
	return rc;
}

static const struct skv_json_node *field(const struct skv_json_node *o, const char *name)
{
	return skv_json_get(o, name, strlen(name));
}

/* Fields that are missing or of another type are 0 or "": managers of other versions send more or
 * fewer. */
static uint64_t number(const struct skv_json_node *o, const char *name)
{
	const struct skv_json_node *v = field(o, name);

	if (v && v->type == SKV_JSON_UNSIGNED)
		return v->u;
	return v && v->type == SKV_JSON_INTEGER && v->i > 0 ? (uint64_t)v->i : 0;
}

/* NULL: no memory. */
static const char *text(struct skv_arena *a, const struct skv_json_node *o, const char *name)
{
	const struct skv_json_node *v = field(o, name);

	return v && v->type == SKV_JSON_STRING ? skv_arena_strndup(a, v->s, v->n) : "";
}

static const struct skv_json_node *elements(const struct skv_json_node *o, const char *name,
					    uint32_t *n)
{
	const struct skv_json_node *v = field(o, name);

	*n = v && v->type == SKV_JSON_ARRAY ? v->n : 0;
	return *n ? skv_json_first(v) : NULL;
}

/* Ends a public function whose result is `r`. */
static int tell(void *r, int rc, const void **out, struct slabkv_error *err,
		const struct skv_error *e)
{
	if (rc == SKV_OK)
		*out = r;
	else
		slabkv_free(r);
	return skv_result_fail(err, e, rc);
}

/* ---- the manager's numbers ------------------------------------------------------------------- */

static int get_stats(struct slabkv *kv, struct slabkv_stats *out, struct skv_error *err)
{
	struct skv_arena *a = skv_result_arena(out);
	const struct skv_json_node *o;
	int rc = ask(kv, "stats", SKV_PATH_STATS, a, &o, err);

	if (rc != SKV_OK)
		return rc;
	*out = (struct slabkv_stats){ .version = text(a, o, "version"),
				      .owner = text(a, o, "owner"),
				      .state = text(a, o, "state"),
				      .uptime_ms = number(o, "uptime_ms"),
				      .blocks = number(o, "blocks"),
				      .sessions = number(o, "sessions"),
				      .journal_bytes = number(o, "journal_bytes"),
				      .journal_limit = number(o, "journal_limit"),
				      .evicted_blocks = number(o, "evicted_blocks"),
				      .expired_sessions = number(o, "expired_sessions") };
	return out->version && out->owner && out->state ? SKV_OK : no_memory(err);
}

int slabkv_stats(struct slabkv *kv, const struct slabkv_stats **out, struct slabkv_error *err)
{
	struct slabkv_stats *r = skv_result_new(sizeof *r);
	struct skv_error e = { 0 };
	const void *told = NULL;
	int rc = r ? skv_enter(kv, &e) : SKV_E_NOMEM;

	if (rc == SKV_OK)
		rc = get_stats(kv, r, &e);
	rc = tell(r, rc, &told, err, &e);
	if (told)
		*out = told;
	return rc;
}

/* ---- slab files ------------------------------------------------------------------------------ */

static int get_files(struct slabkv *kv, const char *storage, struct slabkv_slab_files *out,
		     struct skv_error *err)
{
	struct skv_arena *a = skv_result_arena(out);
	const struct skv_json_node *o, *f;
	char path[SKV_PATH_MAX];
	struct slabkv_slab_file *v;
	uint32_t n;
	int rc = skv_name_check(storage, "storage", err);

	if (rc != SKV_OK)
		return rc;
	snprintf(path, sizeof path, SKV_PATH_STORAGE_FILES, storage);
	rc = ask(kv, "storage_files", path, a, &o, err);
	if (rc != SKV_OK)
		return rc;
	f = elements(o, "files", &n);
	v = skv_arena_calloc(a, (size_t)n + 1, sizeof *v);
	if (!v)
		return no_memory(err);
	for (uint32_t i = 0; i < n; i++, f = skv_json_next(f)) {
		v[i] = (struct slabkv_slab_file){ .file = (uint32_t)number(f, "file"),
						  .length = number(f, "length"),
						  .state = text(a, f, "state"),
						  .why = text(a, f, "why"),
						  .waits_for = text(a, f, "waits_for"),
						  .assigned_bytes = number(f, "assigned_bytes"),
						  .used_bytes = number(f, "used_bytes"),
						  .quarantined_bytes =
							  number(f, "quarantined_bytes") };
		if (!v[i].state || !v[i].why || !v[i].waits_for)
			return no_memory(err);
	}
	*out = (struct slabkv_slab_files){ .n = n, .v = v, .v_size = sizeof *v };
	return SKV_OK;
}

int slabkv_storage_files(struct slabkv *kv, const char *storage,
			 const struct slabkv_slab_files **out, struct slabkv_error *err)
{
	struct slabkv_slab_files *r = skv_result_new(sizeof *r);
	struct skv_error e = { 0 };
	const void *told = NULL;
	int rc = r ? skv_enter(kv, &e) : SKV_E_NOMEM;

	if (rc == SKV_OK)
		rc = get_files(kv, storage, r, &e);
	rc = tell(r, rc, &told, err, &e);
	if (told)
		*out = told;
	return rc;
}

int slabkv_storage_file_set(struct slabkv *kv, const char *storage, uint32_t file,
			    enum slabkv_file_wish wish, struct slabkv_error *err)
{
	const struct skv_file_wish w = { .file = file,
					 .draining = wish != SLABKV_FILE_KEEP,
					 .forget = wish == SLABKV_FILE_FORGET };
	struct skv_buf body = { 0 };
	char path[SKV_PATH_MAX];
	struct skv_call c = { .op = "storage_file_set", .method = "PUT", .path = path,
			      .body = &body };
	struct skv_answer answer = { 0 };
	struct skv_error e = { 0 };
	int rc = skv_enter(kv, &e);

	if (rc == SKV_OK)
		rc = skv_name_check(storage, "storage", &e);
	if (rc == SKV_OK && (wish < SLABKV_FILE_KEEP || wish > SLABKV_FILE_FORGET))
		rc = skv_fail(&e, SKV_E_INVALID, "wish", "keep, drain or forget");
	if (rc == SKV_OK) {
		snprintf(path, sizeof path, SKV_PATH_STORAGE_FILES, storage);
		skv_v1_json.write_file_wish(&body, &w);
		rc = skv_call_do(kv, &c, &answer, &e);
	}
	skv_buf_destroy(&answer.body);
	skv_buf_destroy(&body);
	return skv_result_fail(err, &e, rc);
}

/* ---- one block ------------------------------------------------------------------------------- */

/* String keys are hashed by the manager: they travel percent-encoded in the query. */
static int block_path(const char *instance, const struct skv_key_input *key, struct skv_buf *path)
{
	char hex[SKV_KEY_HEX + 1];

	if (key->form != SKV_KEYS_STRING) {
		skv_key_to_hex(key->keys[0], hex);
		skv_buf_printf(path, SKV_PATH_BLOCK,
			       skv_path_name(instance, (char[SKV_PATH_NAME]){ 0 }), hex);
	} else {
		skv_buf_printf(path, SKV_PATH_BLOCK_FIND,
			       skv_path_name(instance, (char[SKV_PATH_NAME]){ 0 }), "");
		for (const char *s = key->strings[0]; *s; s++)
			skv_buf_printf(path, "%%%02X", (unsigned char)*s);
	}
	skv_put_u8(path, 0);
	return path->failed ? SKV_E_NOMEM : SKV_OK;
}

static bool read_key(const struct skv_json_node *o, const char *name, struct slabkv_key *out)
{
	const struct skv_json_node *v = field(o, name);
	struct skv_key k;

	if (!v || v->type != SKV_JSON_STRING || !skv_key_from_hex(v->s, v->n, &k))
		return false;
	*out = (struct slabkv_key){ k.hi, k.lo };
	return true;
}

/* The digits of a text: numbers that JSON readers of others may round travel as texts. */
static uint64_t digits(const struct skv_json_node *o, const char *name, unsigned base)
{
	static const char all[] = "0123456789abcdef";
	const struct skv_json_node *v = field(o, name);
	uint64_t n = 0;

	for (uint32_t i = 0; v && v->type == SKV_JSON_STRING && i < v->n; i++) {
		const char *at = memchr(all, v->s[i], base);

		n = n * base + (at ? (uint64_t)(at - all) : 0);
	}
	return n;
}

static int read_part(struct skv_arena *a, const struct skv_json_node *o,
		     const struct skv_json_node *files, uint32_t n_files,
		     struct slabkv_part_info *out, struct skv_error *err)
{
	const struct skv_json_node *loc = field(o, "location"), *f = files;

	*out = (struct slabkv_part_info){
		.spec = text(a, o, "name"), .state = text(a, o, "state"), .storage = "", .path = ""
	};
	if (loc && loc->type == SKV_JSON_OBJECT && number(loc, "file") < n_files) {
		for (uint64_t i = number(loc, "file"); i > 0; i--)
			f = skv_json_next(f);
		out->storage = text(a, f, "storage");
		out->path = text(a, f, "path");
		out->offset = number(loc, "offset");
		out->length = number(loc, "length");
		out->generation = digits(loc, "generation", 10);
		out->has_checksum = field(loc, "checksum") != NULL;
		out->checksum = digits(loc, "checksum", 16);
	}
	return out->spec && out->state && out->storage && out->path ? SKV_OK : no_memory(err);
}

static int read_block(struct slabkv_block_info *out, const struct skv_json_node *o,
		      struct skv_error *err)
{
	struct skv_arena *a = skv_result_arena(out);
	const struct skv_json_node *files, *part;
	struct slabkv_part_info *parts;
	uint32_t n_files, n;
	int rc = SKV_OK;

	if (!read_key(o, "key", &out->key))
		return skv_fail(err, SKV_E_INTERNAL, "key",
				"block_get: the manager's answer does not match the request");
	out->has_parent = read_key(o, "parent", &out->parent);
	out->children = (uint32_t)number(o, "children");
	out->created_ms = number(o, "created_ms");
	out->idle_ms = number(o, "idle_ms");
	out->lease_ms = number(o, "lease_ms");
	files = elements(o, "files", &n_files);
	part = elements(o, "specs", &n);
	parts = skv_arena_calloc(a, (size_t)n + 1, sizeof *parts);
	if (!parts)
		return no_memory(err);
	for (uint32_t i = 0; rc == SKV_OK && i < n; i++, part = skv_json_next(part))
		rc = read_part(a, part, files, n_files, &parts[i], err);
	out->n_parts = n;
	out->parts = parts;
	out->part_size = sizeof *parts;
	return rc;
}

static int get_block(struct slabkv *kv, const char *instance, const struct slabkv_keys *keys,
		     struct slabkv_block_info *out, struct skv_error *err)
{
	struct skv_arena *a = skv_result_arena(out);
	const struct skv_json_node *root;
	struct skv_key_input input;
	struct skv_buf path = { 0 };
	int rc = skv_model_name_check(instance, "instance", err);

	if (rc == SKV_OK)
		rc = skv_keys_input(keys, "keys", a, &input, err);
	if (rc == SKV_OK && input.n != 1)
		rc = skv_fail(err, SKV_E_INVALID, "keys", "exactly one key");
	if (rc == SKV_OK && block_path(instance, &input, &path) != SKV_OK)
		rc = no_memory(err);
	if (rc == SKV_OK)
		rc = ask(kv, "block_get", (const char *)path.data, a, &root, err);
	if (rc == SKV_OK)
		rc = read_block(out, root, err);
	skv_buf_destroy(&path);
	return rc;
}

int slabkv_block_get(struct slabkv *kv, const char *instance, const struct slabkv_keys *keys,
		     const struct slabkv_block_info **out, struct slabkv_error *err)
{
	struct slabkv_block_info *r = skv_result_new(sizeof *r);
	struct skv_error e = { 0 };
	const void *told = NULL;
	int rc = r ? skv_enter(kv, &e) : SKV_E_NOMEM;

	if (rc == SKV_OK)
		rc = get_block(kv, instance, keys, r, &e);
	rc = tell(r, rc, &told, err, &e);
	if (told)
		*out = told;
	return rc;
}
