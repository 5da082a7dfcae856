/*
 * snapshot.c - the text of a configuration snapshot.
 *
 * The objects are written and read by the native API's JSON codec, so a field that is added there is in the
 * snapshot too, with the same checks. A reader takes the text apart (kvb/json.h) and hands each spec, written
 * anew, to the codec. No state; any thread.
 */
#include "snapshot.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <kvb/json.h>
#include <kvb/json_out.h>
#include <kvb/v1_codec.h>

#define FORMAT "kvblockd.config"
#define VERSION 1
#define MAX_VALUES 1000000u /* of a snapshot's JSON */
#define MAX_DEPTH 16u

/* ---- taking ------------------------------------------------------------------------------------ */

int kvcm_snapshot_take(struct kvb_core *core, struct kvb_arena *a, struct kvcm_snapshot *out, struct kvb_error *err)
{
	struct kvb_stats stats;
	int rc = kvb_core_stats(core, a, &stats, err);

	*out = (struct kvcm_snapshot){ 0 };
	if (rc == KVB_OK)
		rc = kvcm_account_list(core, a, &out->accounts, &out->n_accounts, err);
	if (rc != KVB_OK)
		return rc;
	out->storages = kvb_arena_calloc(a, stats.n_storages + 1, sizeof *out->storages);
	out->groups = kvb_arena_calloc(a, stats.n_groups + 1, sizeof *out->groups);
	out->instances = kvb_arena_calloc(a, stats.n_instances + 1, sizeof *out->instances);
	if (!out->storages || !out->groups || !out->instances)
		return kvb_fail(err, KVB_E_NOMEM, NULL, "out of memory");
	for (; out->n_storages < stats.n_storages; out->n_storages++)
		out->storages[out->n_storages] = stats.storages[out->n_storages].spec;
	for (; out->n_groups < stats.n_groups; out->n_groups++)
		out->groups[out->n_groups] = stats.groups[out->n_groups].spec;
	for (; out->n_instances < stats.n_instances; out->n_instances++)
		out->instances[out->n_instances] = stats.instances[out->n_instances].spec;
	return KVB_OK;
}

/* ---- writing ----------------------------------------------------------------------------------- */

static void write_list_of_storages(const struct kvcm_snapshot *s, struct kvb_buf *out)
{
	kvb_jout_name(out, "storages");
	kvb_jout_open(out, '[');
	for (uint32_t i = 0; i < s->n_storages; i++) {
		kvb_jout_open(out, '{');
		kvb_jout_field_string(out, "name", s->storages[i].name);
		kvb_jout_name(out, "spec");
		kvb_v1_json.write_storage(out, &s->storages[i]);
		kvb_jout_close(out, '}');
	}
	kvb_jout_close(out, ']');
}

static void write_list_of_groups(const struct kvcm_snapshot *s, struct kvb_buf *out)
{
	kvb_jout_name(out, "groups");
	kvb_jout_open(out, '[');
	for (uint32_t i = 0; i < s->n_groups; i++) {
		kvb_jout_open(out, '{');
		kvb_jout_field_string(out, "name", s->groups[i].name);
		kvb_jout_name(out, "spec");
		kvb_v1_json.write_group(out, &s->groups[i]);
		kvb_jout_close(out, '}');
	}
	kvb_jout_close(out, ']');
}

static void write_list_of_instances(const struct kvcm_snapshot *s, struct kvb_buf *out)
{
	kvb_jout_name(out, "instances");
	kvb_jout_open(out, '[');
	for (uint32_t i = 0; i < s->n_instances; i++) {
		kvb_jout_open(out, '{');
		kvb_jout_field_string(out, "tenant", s->instances[i].tenant);
		kvb_jout_field_string(out, "id", s->instances[i].id);
		kvb_jout_name(out, "spec");
		kvb_v1_json.write_instance(out, &s->instances[i]);
		kvb_jout_close(out, '}');
	}
	kvb_jout_close(out, ']');
}

static void write_list_of_accounts(const struct kvcm_snapshot *s, struct kvb_buf *out)
{
	kvb_jout_name(out, "accounts");
	kvb_jout_open(out, '[');
	for (uint32_t i = 0; i < s->n_accounts; i++) {
		kvb_jout_open(out, '{');
		kvb_jout_field_string(out, "user_name", s->accounts[i].name);
		kvb_jout_field_u64(out, "role", (uint64_t)s->accounts[i].role);
		kvb_jout_field_string(out, "password", s->accounts[i].hash);
		kvb_jout_close(out, '}');
	}
	kvb_jout_close(out, ']');
}

void kvcm_snapshot_write(const struct kvcm_snapshot *s, struct kvb_buf *out)
{
	kvb_jout_begin(out);
	kvb_jout_field_string(out, "format", FORMAT);
	kvb_jout_field_u64(out, "version", VERSION);
	write_list_of_storages(s, out);
	write_list_of_groups(s, out);
	write_list_of_instances(s, out);
	write_list_of_accounts(s, out);
	kvb_jout_close(out, '}');
}

/* ---- reading ----------------------------------------------------------------------------------- */

/* One element of one list, and how it is named in errors. */
struct entry {
	struct kvb_arena *a;
	const char *list;
	uint32_t i;
	const struct kvb_json_node *v;
	struct kvb_error *err;
};

/* Adds list and position to the field that `err` names. */
static int at_entry(const struct entry *e, const char *part)
{
	char field[KVB_FIELD_MAX];

	snprintf(field, sizeof field, "%s[%" PRIu32 "]%s%s%.60s", e->list, e->i, part, *e->err->field ? "." : "",
		 e->err->field);
	return kvb_fail(e->err, e->err->status, field, "%s", e->err->message);
}

static int bad_field(const struct entry *e, const char *name, const char *what)
{
	kvb_fail(e->err, KVB_E_INVALID, name, "%s", what);
	return at_entry(e, "");
}

/* A string field, NUL-terminated; `names` if it must be a valid name. */
static int read_string(const struct entry *e, const char *name, bool names, const char **out)
{
	const struct kvb_json_node *v = kvb_json_get(e->v, name, strlen(name));

	if (!v || v->type != KVB_JSON_STRING)
		return bad_field(e, name, "a string is expected");
	if (names && !kvb_name_valid(v->s, v->n))
		return bad_field(e, name, "1..127 of A-Z a-z 0-9 . _ - : = @ + , are expected, beginning with a letter, digit or _");
	*out = kvb_arena_strndup(e->a, v->s, v->n);
	return *out ? KVB_OK : kvb_fail(e->err, KVB_E_NOMEM, NULL, "out of memory");
}

/* The text of a value again: nodes do not remember where they stood. */
static void write_value(struct kvb_arena *a, const struct kvb_json_node *v, struct kvb_buf *out);

static void write_text(struct kvb_arena *a, const struct kvb_json_node *v, struct kvb_buf *out)
{
	const char *s = kvb_arena_strndup(a, v->s, v->n);

	if (s)
		kvb_jout_string(out, s);
	else
		out->failed = true;
}

static void write_parts(struct kvb_arena *a, const struct kvb_json_node *v, struct kvb_buf *out)
{
	bool object = v->type == KVB_JSON_OBJECT;
	const struct kvb_json_node *e = v->n ? kvb_json_first(v) : NULL;

	kvb_jout_open(out, object ? '{' : '[');
	for (uint32_t i = 0; i < v->n; i++) {
		if (object) {
			write_text(a, e, out);
			kvb_put_u8(out, ':');
			e = kvb_json_next(e);
		}
		write_value(a, e, out);
		e = kvb_json_next(e);
	}
	kvb_jout_close(out, object ? '}' : ']');
}

static void write_value(struct kvb_arena *a, const struct kvb_json_node *v, struct kvb_buf *out)
{
	char number[32];

	switch ((enum kvb_json_type)v->type) {
	case KVB_JSON_OBJECT:
	case KVB_JSON_ARRAY:
		write_parts(a, v, out);
		return;
	case KVB_JSON_STRING:
		write_text(a, v, out);
		return;
	case KVB_JSON_INTEGER:
		if (v->i >= 0) {
			kvb_jout_u64(out, (uint64_t)v->i);
			return;
		}
		snprintf(number, sizeof number, "%" PRId64, v->i);
		break;
	case KVB_JSON_TRUE:
	case KVB_JSON_FALSE:
		kvb_jout_bool(out, v->type == KVB_JSON_TRUE);
		return;
	case KVB_JSON_NULL:
	case KVB_JSON_REAL: /* no spec has fractions: whatever it is, the codec names the field */
	case KVB_JSON_UNSIGNED:
		kvb_jout_null(out);
		return;
	}
	if (out->len > 0 && strchr("{[,:", out->data[out->len - 1]) == NULL)
		kvb_put_u8(out, ',');
	kvb_put_bytes(out, number, strlen(number));
}

/* The bytes of the field "spec", in the arena. */
static int spec_text(const struct entry *e, const char **text, size_t *n)
{
	const struct kvb_json_node *v = kvb_json_get(e->v, "spec", 4);
	struct kvb_buf b;

	if (!v || v->type != KVB_JSON_OBJECT)
		return bad_field(e, "spec", "an object is expected");
	kvb_buf_init(&b);
	write_value(e->a, v, &b);
	*n = b.len;
	*text = b.failed ? NULL : kvb_arena_strndup(e->a, (const char *)b.data, b.len);
	kvb_buf_destroy(&b);
	return *text ? KVB_OK : kvb_fail(e->err, KVB_E_NOMEM, NULL, "out of memory");
}

static int read_storage(const struct entry *e, void *out)
{
	struct kvb_v1_in in = { .arena = e->a, .tenant = "default" };
	struct kvb_storage_spec *s = out;
	const char *name, *text;
	size_t n;
	int rc = read_string(e, "name", true, &name);

	if (rc == KVB_OK)
		rc = spec_text(e, &text, &n);
	if (rc != KVB_OK)
		return rc;
	rc = kvb_v1_json.read_storage(&in, text, n, s, e->err);
	s->name = name;
	return rc == KVB_OK ? KVB_OK : at_entry(e, ".spec");
}

static int read_group(const struct entry *e, void *out)
{
	struct kvb_v1_in in = { .arena = e->a, .tenant = "default" };
	struct kvb_group_spec *g = out;
	const char *name, *text;
	size_t n;
	int rc = read_string(e, "name", true, &name);

	if (rc == KVB_OK)
		rc = spec_text(e, &text, &n);
	if (rc != KVB_OK)
		return rc;
	rc = kvb_v1_json.read_group(&in, text, n, g, e->err);
	g->name = name;
	return rc == KVB_OK ? KVB_OK : at_entry(e, ".spec");
}

static int read_instance(const struct entry *e, void *out)
{
	struct kvb_v1_in in = { .arena = e->a };
	struct kvb_instance_spec *s = out;
	const char *id, *text;
	size_t n;
	int rc = read_string(e, "tenant", true, &in.tenant);

	if (rc == KVB_OK)
		rc = read_string(e, "id", true, &id);
	if (rc == KVB_OK)
		rc = spec_text(e, &text, &n);
	if (rc != KVB_OK)
		return rc;
	rc = kvb_v1_json.read_instance(&in, text, n, s, e->err);
	s->tenant = in.tenant;
	s->id = id;
	return rc == KVB_OK ? KVB_OK : at_entry(e, ".spec");
}

static int read_account(const struct entry *e, void *out)
{
	const struct kvb_json_node *role = kvb_json_get(e->v, "role", 4);
	struct kvcm_account *account = out;
	int rc = read_string(e, "user_name", true, &account->name);

	if (rc == KVB_OK)
		rc = read_string(e, "password", false, &account->hash);
	if (rc != KVB_OK)
		return rc;
	if (!role || role->type != KVB_JSON_INTEGER || role->i < 0 || role->i > INT16_MAX)
		return bad_field(e, "role", "a number is expected");
	account->role = (int)role->i;
	rc = kvcm_account_check(account, e->err);
	return rc == KVB_OK ? KVB_OK : at_entry(e, "");
}

/* An absent list is an empty one. */
static int read_list(const struct kvb_json_node *root, const char *name, size_t size,
		     int (*read)(const struct entry *e, void *out), struct kvb_arena *a, void *out, uint32_t *n,
		     struct kvb_error *err)
{
	const struct kvb_json_node *list = kvb_json_get(root, name, strlen(name));
	struct entry e = { .a = a, .list = name, .err = err };
	char *v;
	int rc = KVB_OK;

	if (!list)
		return KVB_OK;
	if (list->type != KVB_JSON_ARRAY)
		return kvb_fail(err, KVB_E_INVALID, name, "an array is expected");
	v = kvb_arena_calloc(a, list->n + 1, size);
	if (!v)
		return kvb_fail(err, KVB_E_NOMEM, NULL, "out of memory");
	e.v = list->n ? kvb_json_first(list) : NULL;
	for (; e.i < list->n && rc == KVB_OK; e.i++, e.v = kvb_json_next(e.v)) {
		if (e.v->type != KVB_JSON_OBJECT) {
			kvb_fail(err, KVB_E_INVALID, NULL, "an object is expected");
			return at_entry(&e, "");
		}
		rc = read(&e, v + e.i * size);
	}
	memcpy(out, &v, sizeof v);
	*n = list->n;
	return rc;
}

static int check_head(const struct kvb_json_node *root, struct kvb_error *err)
{
	const struct kvb_json_node *format = kvb_json_get(root, "format", 6);
	const struct kvb_json_node *version = kvb_json_get(root, "version", 7);

	if (!format || format->type != KVB_JSON_STRING || !kvb_json_is(format, FORMAT, sizeof FORMAT - 1))
		return kvb_fail(err, KVB_E_INVALID, "format", "\"" FORMAT "\" is expected");
	if (!version || version->type != KVB_JSON_INTEGER || version->i != VERSION)
		return kvb_fail(err, KVB_E_INVALID, "version", "%d is expected: the text comes from another version",
				VERSION);
	return KVB_OK;
}

int kvcm_snapshot_read(const char *text, size_t n, struct kvb_arena *a, struct kvcm_snapshot *out,
		       struct kvb_error *err)
{
	const struct kvb_json_limits limits = { .depth = MAX_DEPTH, .values = MAX_VALUES };
	struct kvb_json_doc doc;
	unsigned line, column;
	int rc;

	*out = (struct kvcm_snapshot){ 0 };
	if (!kvb_json_parse(&doc, a, text, n, &limits)) {
		if (doc.fault == KVB_JSON_NOMEM)
			return kvb_fail(err, KVB_E_NOMEM, NULL, "out of memory");
		kvb_json_line(text, doc.at, &line, &column);
		return kvb_fail(err, KVB_E_INVALID, NULL, "it is no JSON, line %u, column %u", line, column);
	}
	rc = check_head(doc.root, err);
	if (rc == KVB_OK)
		rc = read_list(doc.root, "storages", sizeof *out->storages, read_storage, a, &out->storages,
			       &out->n_storages, err);
	if (rc == KVB_OK)
		rc = read_list(doc.root, "groups", sizeof *out->groups, read_group, a, &out->groups, &out->n_groups, err);
	if (rc == KVB_OK)
		rc = read_list(doc.root, "instances", sizeof *out->instances, read_instance, a, &out->instances,
			       &out->n_instances, err);
	if (rc == KVB_OK)
		rc = read_list(doc.root, "accounts", sizeof *out->accounts, read_account, a, &out->accounts,
			       &out->n_accounts, err);
	return rc;
}
