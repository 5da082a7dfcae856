/*
 * snapshot.c - reads and writes the text of a configuration snapshot.
 *
 * The objects are written and read by the native API's JSON codec, so a field that is added there
 * is in the snapshot too, with the same checks. A reader takes the text apart (skv/json.h) and
 * hands each spec, written anew, to the codec. No state; any thread.
 */
#include "snapshot.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <skv/json.h>
#include <skv/json_out.h>
#include <skv/v1_codec.h>

#define FORMAT "slabkvd.config"
#define VERSION 1
#define MAX_VALUES 1000000u /* of a snapshot's JSON */
#define MAX_DEPTH 16u

/* ---- taking ---------------------------------------------------------------------------------- */

int kvcm_snapshot_take(struct skv_core *core, struct skv_arena *a, struct kvcm_snapshot *out,
		       struct skv_error *err)
{
	struct skv_stats stats;
	int rc = skv_core_stats(core, a, &stats, err);

	*out = (struct kvcm_snapshot){ 0 };
	if (rc == SKV_OK)
		rc = kvcm_account_list(core, a, &out->accounts, &out->n_accounts, err);
	if (rc != SKV_OK)
		return rc;
	out->storages = skv_arena_calloc(a, stats.n_storages + 1, sizeof *out->storages);
	out->groups = skv_arena_calloc(a, stats.n_groups + 1, sizeof *out->groups);
	out->instances = skv_arena_calloc(a, stats.n_instances + 1, sizeof *out->instances);
	if (!out->storages || !out->groups || !out->instances)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	for (; out->n_storages < stats.n_storages; out->n_storages++)
		out->storages[out->n_storages] = stats.storages[out->n_storages].spec;
	for (; out->n_groups < stats.n_groups; out->n_groups++)
		out->groups[out->n_groups] = stats.groups[out->n_groups].spec;
	for (; out->n_instances < stats.n_instances; out->n_instances++)
		out->instances[out->n_instances] = stats.instances[out->n_instances].spec;
	assert(out->n_groups == stats.n_groups && out->n_instances == stats.n_instances);
	return SKV_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void write_list_of_storages(const struct kvcm_snapshot *s, struct skv_buf *out)
{
	skv_jout_name(out, "storages");
	skv_jout_open(out, '[');
	for (uint32_t i = 0; i < s->n_storages; i++) {
		skv_jout_open(out, '{');
		skv_jout_field_string(out, "name", s->storages[i].name);
		skv_jout_name(out, "spec");
		skv_v1_json.write_storage(out, &s->storages[i]);
		skv_jout_close(out, '}');
	}
	skv_jout_close(out, ']');
}

static void write_list_of_groups(const struct kvcm_snapshot *s, struct skv_buf *out)
{
	skv_jout_name(out, "groups");
	skv_jout_open(out, '[');
	for (uint32_t i = 0; i < s->n_groups; i++) {
		skv_jout_open(out, '{');
		skv_jout_field_string(out, "name", s->groups[i].name);
		skv_jout_name(out, "spec");
		skv_v1_json.write_group(out, &s->groups[i]);
		skv_jout_close(out, '}');
	}
	skv_jout_close(out, ']');
}

static void write_list_of_instances(const struct kvcm_snapshot *s, struct skv_buf *out)
{
	skv_jout_name(out, "instances");
	skv_jout_open(out, '[');
	for (uint32_t i = 0; i < s->n_instances; i++) {
		skv_jout_open(out, '{');
		skv_jout_field_string(out, "tenant", s->instances[i].tenant);
		skv_jout_field_string(out, "id", s->instances[i].id);
		skv_jout_name(out, "spec");
		skv_v1_json.write_instance(out, &s->instances[i]);
		skv_jout_close(out, '}');
	}
	skv_jout_close(out, ']');
}

static void write_list_of_accounts(const struct kvcm_snapshot *s, struct skv_buf *out)
{
	skv_jout_name(out, "accounts");
	skv_jout_open(out, '[');
	for (uint32_t i = 0; i < s->n_accounts; i++) {
		skv_jout_open(out, '{');
		skv_jout_field_string(out, "user_name", s->accounts[i].name);
		skv_jout_field_u64(out, "role", (uint64_t)s->accounts[i].role);
		skv_jout_field_string(out, "password", s->accounts[i].hash);
		skv_jout_close(out, '}');
	}
	skv_jout_close(out, ']');
}

void kvcm_snapshot_write(const struct kvcm_snapshot *s, struct skv_buf *out)
{
	skv_jout_begin(out);
	skv_jout_field_string(out, "format", FORMAT);
	skv_jout_field_u64(out, "version", VERSION);
	write_list_of_storages(s, out);
	write_list_of_groups(s, out);
	write_list_of_instances(s, out);
	write_list_of_accounts(s, out);
	skv_jout_close(out, '}');
}

/* ---- reading --------------------------------------------------------------------------------- */

/* One element of one list, and how it is named in errors. */
struct entry {
	struct skv_arena *a;
	const char *list;
	uint32_t i;
	const struct skv_json_node *v;
	struct skv_error *err;
};

/* Adds list and position to the field that `err` names. */
static int at_entry(const struct entry *e, const char *part)
{
	char field[SKV_FIELD_MAX];

	snprintf(field, sizeof field, "%s[%" PRIu32 "]%s%s%.60s", e->list, e->i, part,
		 *e->err->field ? "." : "", e->err->field);
	return skv_fail(e->err, e->err->status, field, "%s", e->err->message);
}

static int bad_field(const struct entry *e, const char *name, const char *what)
{
	skv_fail(e->err, SKV_E_INVALID, name, "%s", what);
	return at_entry(e, "");
}

typedef bool name_rule(const char *s, size_t n);

/* A string field, NUL-terminated; `rule` if it must be a name: skv_name_valid,
 * skv_model_name_valid; NULL: any text. */
static int read_string(const struct entry *e, const char *name, name_rule *rule, const char **out)
{
	const struct skv_json_node *v = skv_json_get(e->v, name, strlen(name));

	if (!v || v->type != SKV_JSON_STRING)
		return bad_field(e, name, "a string is expected");
	if (rule && !rule(v->s, v->n))
		return bad_field(
			e, name,
			"1..127 of A-Z a-z 0-9 . _ - : = @ + , are expected, beginning with a "
			"letter, digit or _");
	*out = skv_arena_strndup(e->a, v->s, v->n);
	return *out ? SKV_OK : skv_fail(e->err, SKV_E_NOMEM, NULL, "out of memory");
}

/* The text of a value again: nodes do not remember where they stood. */
static void write_value(struct skv_arena *a, const struct skv_json_node *v, struct skv_buf *out);

static void write_text(struct skv_arena *a, const struct skv_json_node *v, struct skv_buf *out)
{
	const char *s = skv_arena_strndup(a, v->s, v->n);

	if (s)
		skv_jout_string(out, s);
	else
		out->failed = true;
}

static void write_parts(struct skv_arena *a, const struct skv_json_node *v, struct skv_buf *out)
{
	bool object = v->type == SKV_JSON_OBJECT;
	const struct skv_json_node *e = v->n ? skv_json_first(v) : NULL;

	skv_jout_open(out, object ? '{' : '[');
	for (uint32_t i = 0; i < v->n; i++) {
		if (object) {
			write_text(a, e, out);
			skv_put_u8(out, ':');
			e = skv_json_next(e);
		}
		write_value(a, e, out);
		e = skv_json_next(e);
	}
	skv_jout_close(out, object ? '}' : ']');
}

static void write_value(struct skv_arena *a, const struct skv_json_node *v, struct skv_buf *out)
{
	char number[32];

	switch ((enum skv_json_type)v->type) {
	case SKV_JSON_OBJECT:
	case SKV_JSON_ARRAY:
		write_parts(a, v, out);
		return;
	case SKV_JSON_STRING:
		write_text(a, v, out);
		return;
	case SKV_JSON_INTEGER:
		if (v->i >= 0) {
			skv_jout_u64(out, (uint64_t)v->i);
			return;
		}
		snprintf(number, sizeof number, "%" PRId64, v->i);
		break;
	case SKV_JSON_TRUE:
	case SKV_JSON_FALSE:
		skv_jout_bool(out, v->type == SKV_JSON_TRUE);
		return;
	case SKV_JSON_NULL:
	case SKV_JSON_REAL: /* no spec has fractions: whatever it is, the codec names the field */
	case SKV_JSON_UNSIGNED:
		skv_jout_null(out);
		return;
	}
	if (out->len > 0 && strchr("{[,:", out->data[out->len - 1]) == NULL)
		skv_put_u8(out, ',');
	skv_put_bytes(out, number, strlen(number));
}

/* The bytes of the field "spec", in the arena. */
static int spec_text(const struct entry *e, const char **text, size_t *n)
{
	const struct skv_json_node *v = skv_json_get(e->v, "spec", 4);
	struct skv_buf b;

	if (!v || v->type != SKV_JSON_OBJECT)
		return bad_field(e, "spec", "an object is expected");
	skv_buf_init(&b);
	write_value(e->a, v, &b);
	*n = b.len;
	*text = b.failed ? NULL : skv_arena_strndup(e->a, (const char *)b.data, b.len);
	skv_buf_destroy(&b);
	return *text ? SKV_OK : skv_fail(e->err, SKV_E_NOMEM, NULL, "out of memory");
}

static int read_storage(const struct entry *e, void *out)
{
	struct skv_v1_in in = { .arena = e->a, .tenant = "default" };
	struct skv_storage_spec *s = out;
	const char *name, *text;
	size_t n;
	int rc = read_string(e, "name", skv_name_valid, &name);

	if (rc == SKV_OK)
		rc = spec_text(e, &text, &n);
	if (rc != SKV_OK)
		return rc;
	rc = skv_v1_json.read_storage(&in, text, n, s, e->err);
	s->name = name;
	return rc == SKV_OK ? SKV_OK : at_entry(e, ".spec");
}

static int read_group(const struct entry *e, void *out)
{
	struct skv_v1_in in = { .arena = e->a, .tenant = "default" };
	struct skv_group_spec *g = out;
	const char *name, *text;
	size_t n;
	int rc = read_string(e, "name", skv_name_valid, &name);

	if (rc == SKV_OK)
		rc = spec_text(e, &text, &n);
	if (rc != SKV_OK)
		return rc;
	rc = skv_v1_json.read_group(&in, text, n, g, e->err);
	g->name = name;
	return rc == SKV_OK ? SKV_OK : at_entry(e, ".spec");
}

static int read_instance(const struct entry *e, void *out)
{
	struct skv_v1_in in = { .arena = e->a };
	struct skv_instance_spec *s = out;
	const char *id, *text;
	size_t n;
	int rc = read_string(e, "tenant", skv_model_name_valid, &in.tenant);

	if (rc == SKV_OK)
		rc = read_string(e, "id", skv_model_name_valid, &id);
	if (rc == SKV_OK)
		rc = spec_text(e, &text, &n);
	if (rc != SKV_OK)
		return rc;
	rc = skv_v1_json.read_instance(&in, text, n, s, e->err);
	s->tenant = in.tenant;
	s->id = id;
	return rc == SKV_OK ? SKV_OK : at_entry(e, ".spec");
}

static int read_account(const struct entry *e, void *out)
{
	const struct skv_json_node *role = skv_json_get(e->v, "role", 4);
	struct kvcm_account *account = out;
	int rc = read_string(e, "user_name", skv_name_valid, &account->name);

	if (rc == SKV_OK)
		rc = read_string(e, "password", NULL, &account->hash);
	if (rc != SKV_OK)
		return rc;
	if (!role || role->type != SKV_JSON_INTEGER || role->i < 0 || role->i > INT16_MAX)
		return bad_field(e, "role", "a number is expected");
	account->role = (int)role->i;
	rc = kvcm_account_check(account, e->err);
	return rc == SKV_OK ? SKV_OK : at_entry(e, "");
}

/* An absent list is an empty one. */
static int read_list(const struct skv_json_node *root, const char *name, size_t size,
		     int (*read)(const struct entry *e, void *out), struct skv_arena *a, void *out,
		     uint32_t *n, struct skv_error *err)
{
	const struct skv_json_node *list = skv_json_get(root, name, strlen(name));
	struct entry e = { .a = a, .list = name, .err = err };
	char *v;
	int rc = SKV_OK;

	if (!list)
		return SKV_OK;
	if (list->type != SKV_JSON_ARRAY)
		return skv_fail(err, SKV_E_INVALID, name, "an array is expected");
	v = skv_arena_calloc(a, list->n + 1, size);
	if (!v)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	e.v = list->n ? skv_json_first(list) : NULL;
	for (; e.i < list->n && rc == SKV_OK; e.i++, e.v = skv_json_next(e.v)) {
		if (e.v->type != SKV_JSON_OBJECT) {
			skv_fail(err, SKV_E_INVALID, NULL, "an object is expected");
			return at_entry(&e, "");
		}
		rc = read(&e, v + e.i * size);
	}
	memcpy(out, &v, sizeof v);
	*n = list->n;
	return rc;
}

static int check_head(const struct skv_json_node *root, struct skv_error *err)
{
	const struct skv_json_node *format = skv_json_get(root, "format", 6);
	const struct skv_json_node *version = skv_json_get(root, "version", 7);

	if (!format || format->type != SKV_JSON_STRING ||
	    !skv_json_is(format, FORMAT, sizeof FORMAT - 1))
		return skv_fail(err, SKV_E_INVALID, "format", "\"" FORMAT "\" is expected");
	if (!version || version->type != SKV_JSON_INTEGER || version->i != VERSION)
		return skv_fail(err, SKV_E_INVALID, "version",
				"%d is expected: the text comes from another version", VERSION);
	return SKV_OK;
}

int kvcm_snapshot_read(const char *text, size_t n, struct skv_arena *a, struct kvcm_snapshot *out,
		       struct skv_error *err)
{
	const struct skv_json_limits limits = { .depth = MAX_DEPTH, .values = MAX_VALUES };
	struct skv_json_doc doc;
	unsigned line, column;
	int rc;

	*out = (struct kvcm_snapshot){ 0 };
	if (!skv_json_parse(&doc, a, text, n, &limits)) {
		if (doc.fault == SKV_JSON_NOMEM)
			return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
		skv_json_line(text, doc.at, &line, &column);
		return skv_fail(err, SKV_E_INVALID, NULL, "it is not JSON: line %u, column %u",
				line, column);
	}
	rc = check_head(doc.root, err);
	if (rc == SKV_OK)
		rc = read_list(doc.root, "storages", sizeof *out->storages, read_storage, a,
			       &out->storages, &out->n_storages, err);
	if (rc == SKV_OK)
		rc = read_list(doc.root, "groups", sizeof *out->groups, read_group, a, &out->groups,
			       &out->n_groups, err);
	if (rc == SKV_OK)
		rc = read_list(doc.root, "instances", sizeof *out->instances, read_instance, a,
			       &out->instances, &out->n_instances, err);
	if (rc == SKV_OK)
		rc = read_list(doc.root, "accounts", sizeof *out->accounts, read_account, a,
			       &out->accounts, &out->n_accounts, err);
	return rc;
}
