/*
 * output.c - helpers of the commands: opening the library, errors with remedies, JSON, creating an
 * instance. Stateless.
 */
#include "cli.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <skv/mem.h>

void skv_cli_options(const struct skv_cli *cli, struct slabkv_options *o)
{
	assert(cli->n_urls <= sizeof cli->urls / sizeof cli->urls[0] &&
	       cli->n_mounts <= SKV_CLI_LIST_MAX);
	assert(cli->timeout_ms >= 1 && cli->timeout_ms <= 3600000);
	*o = cli->library;
	o->urls = cli->urls;
	o->n_urls = cli->n_urls;
	o->mounts = cli->mounts;
	o->n_mounts = cli->n_mounts;
	o->token = cli->token;
	o->timeout_ms = cli->timeout_ms;
	o->engine = cli->engine;
	/* An interactive user does not want to wait long for a manager that is down. */
	o->rounds = 4;
}

int skv_cli_open(const struct skv_cli *cli, const struct slabkv_options *o, struct slabkv **out)
{
	struct slabkv_options own;
	struct slabkv_error err;

	if (!o) {
		skv_cli_options(cli, &own);
		o = &own;
	}
	if (slabkv_open(o, out, &err) == SLABKV_OK)
		return SKV_EXIT_OK;
	return skv_cli_fail(cli, &err);
}

int skv_cli_exit_of(int status)
{
	switch (status) {
	case SLABKV_OK:
		return SKV_EXIT_OK;
	case SLABKV_E_NOT_FOUND:
		return SKV_EXIT_MISS;
	case SLABKV_E_NETWORK:
	case SLABKV_E_TIMEOUT:
	case SLABKV_E_NOT_READY:
	case SLABKV_E_NOT_OWNER:
		return SKV_EXIT_UNREACHABLE;
	case SLABKV_E_MISMATCH:
		return SKV_EXIT_MISMATCH;
	default:
		return SKV_EXIT_REFUSED;
	}
}

static const char *remedy(int status)
{
	switch (status) {
	case SLABKV_E_NETWORK:
		return "is slabkvd running? name it with --url or SLABKV_URL";
	case SLABKV_E_UNAUTHENTICATED:
		return "give a token with --token-file or SLABKV_TOKEN";
	case SLABKV_E_UNAVAILABLE:
	case SLABKV_E_FOREIGN:
		return "name the directory where the storage is mounted here with --mount; see "
		       "slabkv doctor";
	case SLABKV_E_NOT_READY:
	case SLABKV_E_NOT_OWNER:
		return "the manager is starting or a standby; try again, or name the others with "
		       "--url";
	default:
		return NULL;
	}
}

/* Prints a line on stderr; stdout has results only. Takes the reference. */
static void put_error(json_t *doc)
{
	if (doc && json_dumpf(doc, stderr, JSON_COMPACT) == 0)
		fputc('\n', stderr);
	json_decref(doc);
}

void skv_cli_tell(const struct skv_cli *cli, const char *code, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (cli->json)
		put_error(json_pack("{s{ss ss ss}}", "error", "code", code, "command",
				    cli->command ? cli->command : "", "message", text));
	else
		fprintf(stderr, "slabkv%s%s: %s\n", cli->command ? " " : "",
			cli->command ? cli->command : "", text);
}

/* The answer of a call that ended with `rc`; it is released. */
static int take_answer(const struct skv_cli *cli, int rc, const char *answer, json_t **out,
		       const struct slabkv_error *err)
{
	json_error_t e;

	if (rc != SLABKV_OK)
		return skv_cli_fail(cli, err);
	if (out)
		*out = json_loads(answer, 0, &e);
	slabkv_free(answer);
	if (!out || *out)
		return SKV_EXIT_OK;
	skv_cli_tell(cli, "internal", "the manager's answer is no JSON");
	return SKV_EXIT_REFUSED;
}

int skv_cli_call(const struct skv_cli *cli, struct slabkv *kv, const char *method, const char *path,
		 json_t *body, json_t **out)
{
	char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	struct slabkv_error err;
	const char *answer = NULL;
	int rc;

	if (body && !text) {
		json_decref(body);
		return skv_cli_usage(cli, "out of memory");
	}
	rc = slabkv_call(kv, method, path, text, &answer, &err);
	free(text);
	json_decref(body);
	return take_answer(cli, rc, answer, out, &err);
}

int skv_cli_object_set(struct slabkv *kv, enum slabkv_object kind, const char *name, json_t *fields,
		       const char **json, struct slabkv_error *err)
{
	char *text = fields ? json_dumps(fields, JSON_COMPACT) : NULL;
	int rc = SLABKV_E_NOMEM;

	assert(name && kind <= SLABKV_TENANT);
	memset(err, 0, sizeof *err);
	err->code = rc;
	if (text)
		rc = slabkv_object_set(kv, kind, name, text, json, err);
	free(text);
	json_decref(fields);
	return rc;
}

int skv_cli_change(const struct skv_cli *cli, struct slabkv *kv, enum slabkv_object kind,
		   const char *name, json_t *fields, json_t **out)
{
	struct slabkv_error err;
	const char *answer = NULL;
	int rc = skv_cli_object_set(kv, kind, name, fields, &answer, &err);

	return take_answer(cli, rc, answer, out, &err);
}

int skv_cli_print(const struct skv_cli *cli, json_t *doc, void (*print)(const json_t *doc))
{
	if (cli->json)
		return skv_cli_print_json(doc);
	if (print)
		print(doc);
	json_decref(doc);
	return SKV_EXIT_OK;
}

/* ---- lists ----------------------------------------------------------------------------------- */

#define QUERY_ROOM 1200 /* a path, and a name of which each character is escaped */

static int get_page(const struct skv_cli *cli, struct slabkv *kv, const char *path,
		    const char *limit, const char *after, json_t **out)
{
	char query[QUERY_ROOM];
	int n = snprintf(query, sizeof query, "%s?%s%s%safter=", path, limit ? "limit=" : "",
			 limit ? limit : "", limit ? "&" : "");

	assert(path[0] == '/' && n > 0);
	if (n + 3 * strlen(after) >= sizeof query)
		return skv_cli_usage(cli, "after=: that is no name");
	for (; *after; after++)
		n += snprintf(query + n, sizeof query - (size_t)n, "%%%02X",
			      (unsigned char)*after);
	return skv_cli_call(cli, kv, "GET", query, NULL, out);
}

/* Adds the lists of a page to those of the pages before, and takes it. */
static json_t *join(json_t *all, json_t *page)
{
	const char *name;
	json_t *list;

	if (!all)
		return page;
	json_object_foreach(page, name, list)
		if (json_is_array(list))
			json_array_extend(json_object_get(all, name), list);
	json_decref(page);
	return all;
}

int skv_cli_list(const struct skv_cli *cli, struct slabkv *kv, const char *path, char **words,
		 int n, json_t **out)
{
	const char *limit = NULL, *after = "";
	char next[QUERY_ROOM] = "";
	json_t *page;
	int rc = SKV_EXIT_OK;

	*out = NULL;
	for (int i = 0; i < n; i++) {
		if (strncmp(words[i], "limit=", 6) == 0)
			limit = words[i] + 6;
		else if (strncmp(words[i], "after=", 6) == 0)
			after = words[i] + 6;
		else
			return skv_cli_usage(cli, "list takes limit=N and after=NAME, not '%s'",
					     words[i]);
	}
	do {
		rc = get_page(cli, kv, path, limit, after, &page);
		if (rc != SKV_EXIT_OK)
			break;
		snprintf(next, sizeof next, "%s", skv_cli_text(page, "next"));
		after = next;
		if (!limit)
			json_object_del(page, "next");
		*out = join(*out, page);
	} while (!limit && *next);
	if (rc == SKV_EXIT_OK)
		return rc;
	json_decref(*out);
	*out = NULL;
	return rc;
}

int skv_cli_show_list(const struct skv_cli *cli, struct slabkv *kv, const char *path, char **words,
		      int n, void (*print)(const json_t *doc))
{
	json_t *doc;
	int rc = skv_cli_list(cli, kv, path, words, n, &doc);

	if (rc == SKV_EXIT_OK && *skv_cli_text(doc, "next") && !cli->json)
		fprintf(stderr, "more follow: after=%s\n", skv_cli_text(doc, "next"));
	return rc == SKV_EXIT_OK ? skv_cli_print(cli, doc, print) : rc;
}

int skv_cli_fail(const struct skv_cli *cli, const struct slabkv_error *err)
{
	const char *help = remedy(err->code);

	if (cli->json) {
		put_error(json_pack("{s{ss ss ss ss ss}}", "error", "code", slabkv_code(err->code),
				    "command", cli->command ? cli->command : "", "field",
				    err->field, "message",
				    err->message[0] ? err->message : slabkv_text(err->code),
				    "remedy", help ? help : ""));
		return skv_cli_exit_of(err->code);
	}
	fprintf(stderr, "slabkv %s: %s%s%s%s\n", cli->command, err->field,
		err->field[0] ? ": " : "", err->message,
		err->message[0] ? "" : slabkv_text(err->code));
	if (help)
		fprintf(stderr, "  (%s)\n", help);
	return skv_cli_exit_of(err->code);
}

int skv_cli_stats(const struct skv_cli *cli, struct slabkv *kv, json_t **out)
{
	int rc = skv_cli_call(cli, kv, "GET", "/v1/stats", NULL, out);

	if (rc != SKV_EXIT_OK || json_is_object(*out))
		return rc;
	json_decref(*out);
	skv_cli_tell(cli, "internal", "the manager's stats are no JSON object");
	return SKV_EXIT_REFUSED;
}

int skv_cli_print_json(json_t *doc)
{
	if (!doc || json_dumpf(doc, stdout, JSON_INDENT(2)) != 0) {
		fprintf(stderr, "slabkv: out of memory, or stdout cannot be written\n");
		json_decref(doc);
		return SKV_EXIT_USAGE;
	}
	putchar('\n');
	json_decref(doc);
	return SKV_EXIT_OK;
}

uint64_t skv_cli_u64(const json_t *object, const char *name)
{
	const json_t *v = json_object_get(object, name);

	return json_is_integer(v) && json_integer_value(v) > 0 ? (uint64_t)json_integer_value(v)
							       : 0;
}

const char *skv_cli_text(const json_t *object, const char *name)
{
	const char *s = json_string_value(json_object_get(object, name));

	return s ? s : "";
}

void skv_cli_limit(const json_t *object, const char *name, char out[24])
{
	uint64_t n = skv_cli_u64(object, name);

	if (n)
		skv_args_print_size(n, out);
	else
		snprintf(out, 24, "unlimited");
}

void skv_cli_storage_size(const json_t *storage, const char *name, char out[24])
{
	uint64_t n = skv_cli_u64(storage, name);

	if (strcmp(skv_cli_text(storage, "type"), "external") == 0)
		snprintf(out, 24, "%llu pages", (unsigned long long)n);
	else
		skv_args_print_size(n, out);
}

static int same_specs(const struct slabkv_instance *want, const struct slabkv_instance *have,
		      struct slabkv_error *err)
{
	bool same = want->n_specs == have->n_specs;

	for (uint32_t i = 0; same && i < want->n_specs; i++)
		same = strcmp(want->specs[i].name, have->specs[i].name) == 0 &&
		       want->specs[i].size == have->specs[i].size;
	if (same)
		return SLABKV_OK;
	memset(err, 0, sizeof *err);
	err->code = SLABKV_E_CONFLICT;
	snprintf(err->field, sizeof err->field, "specs");
	snprintf(err->message, sizeof err->message,
		 "instance %s has blocks of another layout (spec %s of %llu bytes): use another "
		 "--instance",
		 have->id, have->specs[0].name, (unsigned long long)have->specs[0].size);
	return err->code;
}

/* On standard error: output may be a block's bytes. Nothing where it costs nothing. */
static void tell_placements(struct slabkv *kv, const char *id)
{
	const char *text = NULL;
	json_t *instance, *p;
	size_t i;

	if (slabkv_object_get(kv, SLABKV_INSTANCE, id, &text, NULL) != SLABKV_OK)
		return;
	instance = json_loads(text, 0, NULL);
	if (*skv_cli_text(instance, "warning"))
		fprintf(stderr, "instance %s: %s\n", id, skv_cli_text(instance, "warning"));
	json_array_foreach(json_object_get(instance, "placements"), i, p)
		if (skv_cli_u64(p, "wasted_bytes") || skv_cli_u64(p, "copied_bytes"))
			fprintf(stderr,
				"instance %s: spec %s on storage %s is %s: slots of %" PRIu64
				" bytes, %" PRIu64 " of them wasted, %" PRIu64
				" more copied by each write\n",
				id, skv_cli_text(p, "spec"), skv_cli_text(p, "storage"),
				skv_cli_text(p, "fit"), skv_cli_u64(p, "slot_bytes"),
				skv_cli_u64(p, "wasted_bytes"), skv_cli_u64(p, "copied_bytes"));
	json_decref(instance);
	slabkv_free(text);
}

/* An existing group stays unchanged. */
static int make_group(struct slabkv *kv, const char *name, const char *storage,
		      struct slabkv_error *err)
{
	int rc = slabkv_object_get(kv, SLABKV_GROUP, name, NULL, err);

	if (rc != SLABKV_E_NOT_FOUND)
		return rc;
	return skv_cli_object_set(kv, SLABKV_GROUP, name, json_pack("{s:[s]}", "storages", storage),
				  NULL, err);
}

int skv_cli_make_instance(struct slabkv *kv, const struct slabkv_instance *i, const char *storage,
			  struct slabkv_error *err)
{
	const struct slabkv_instance *have;
	int rc = slabkv_instance_get(kv, i->id, &have, err);

	assert(i->n_specs >= 1 && i->n_specs <= SLABKV_MAX_SPECS &&
	       i->spec_size == sizeof *i->specs);
	if (rc == SLABKV_OK) {
		rc = same_specs(i, have, err);
		slabkv_free(have);
		return rc;
	}
	if (rc != SLABKV_E_NOT_FOUND)
		return rc;
	rc = make_group(kv, i->group, storage, err);
	if (rc == SLABKV_OK)
		rc = slabkv_instance_put(kv, i, err);
	if (rc == SLABKV_OK)
		tell_placements(kv, i->id);
	return rc;
}
