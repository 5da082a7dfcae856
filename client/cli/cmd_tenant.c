/*
 * cmd_tenant.c - slabkv tenant: what each tenant may and has; single settings are changed, named as
 * in the API. Stateless; one thread.
 */
#include "cli.h"

#include <assert.h>
#include <string.h>

#define USAGE "list, get NAME, set NAME FIELD=VALUE..., isolate NAME root=DIR..., or forget NAME?"
#define NAME_ROOM 300 /* "/v1/tenants/" and a name */

/* Of a view, not of what was said. */
static const char *const use[] = { "bytes", "blocks", "sessions", "pins", "instances", "spaces",
				   "held_bytes" };

static void print_value(const char *field, const json_t *value)
{
	const json_t *v;
	size_t i;

	assert(field && value);
	printf(" %s=", field);
	if (!json_is_array(value)) {
		printf("%" JSON_INTEGER_FORMAT, json_integer_value(value));
		return;
	}
	json_array_foreach(value, i, v)
		printf("%s%s", i ? "," : "", json_string_value(v));
}

/* What it has beside what it may have: "blocks=7/100". */
static void print_use(const json_t *t, const char *field, const json_t *value)
{
	char name[40];
	const json_t *most;

	assert(strlen(field) < sizeof name - strlen("max_"));
	snprintf(name, sizeof name, "max_%s", field);
	most = json_object_get(t, name);
	print_value(field, value);
	if (json_integer_value(most))
		printf("/%" JSON_INTEGER_FORMAT, json_integer_value(most));
}

static bool is_use(const char *field)
{
	for (size_t i = 0; i < sizeof use / sizeof use[0]; i++)
		if (strcmp(use[i], field) == 0)
			return true;
	return false;
}

/* Limits without use are told as they are. */
static bool is_beside(const char *field)
{
	return strncmp(field, "max_", 4) == 0 && is_use(field + 4);
}

static void print_tenant(const json_t *t)
{
	const char *field;
	json_t *v;

	printf("%-24s", skv_cli_text(t, "name"));
	json_object_foreach((json_t *)t, field, v)
		if (is_use(field))
			print_use(t, field, v);
		else if (strcmp(field, "name") != 0 && !is_beside(field))
			print_value(field, v);
	printf("\n");
}

static int get(const struct skv_cli *cli, struct slabkv *kv, const char *name)
{
	char path[NAME_ROOM];
	json_t *t;
	int rc;

	snprintf(path, sizeof path, "/v1/tenants/%s", name);
	rc = skv_cli_call(cli, kv, "GET", path, NULL, &t);
	if (rc != SKV_EXIT_OK)
		return rc;
	if (cli->json)
		return skv_cli_print_json(t);
	print_tenant(t);
	json_decref(t);
	return SKV_EXIT_OK;
}

static int list(const struct skv_cli *cli, struct slabkv *kv)
{
	json_t *doc, *t;
	size_t i;
	int rc = skv_cli_call(cli, kv, "GET", "/v1/tenants", NULL, &doc);

	if (rc != SKV_EXIT_OK)
		return rc;
	if (cli->json)
		return skv_cli_print_json(doc);
	json_array_foreach(json_object_get(doc, "tenants"), i, t)
		print_tenant(t);
	json_decref(doc);
	return SKV_EXIT_OK;
}

static int get_spec(const struct skv_cli *cli, struct slabkv *kv, const char *name, json_t **out)
{
	char path[NAME_ROOM];
	int rc;

	snprintf(path, sizeof path, "/v1/tenants/%s", name);
	rc = skv_cli_call(cli, kv, "GET", path, NULL, out);
	if (rc != SKV_EXIT_OK)
		return rc;
	json_object_del(*out, "name");
	for (size_t i = 0; i < sizeof use / sizeof use[0]; i++)
		json_object_del(*out, use[i]);
	return SKV_EXIT_OK;
}

/* `spec` is taken. */
static int put_spec(const struct skv_cli *cli, struct slabkv *kv, const char *name, json_t *spec)
{
	char path[NAME_ROOM];
	json_t *now;
	int rc;

	assert(json_is_object(spec));
	snprintf(path, sizeof path, "/v1/tenants/%s", name);
	rc = skv_cli_call(cli, kv, "PUT", path, spec, &now);
	if (rc == SKV_EXIT_OK && cli->json)
		return skv_cli_print_json(now);
	if (rc == SKV_EXIT_OK)
		json_decref(now);
	return rc;
}

static int set(const struct skv_cli *cli, struct slabkv *kv, const char *name, char **words, int n)
{
	static const char *const lists[] = { "groups", "storages", "own_groups", "own_storages",
					     NULL };
	json_t *spec;
	int rc = get_spec(cli, kv, name, &spec);

	if (rc != SKV_EXIT_OK)
		return rc;
	if (!skv_cli_set_fields(cli, spec, words, n, lists)) {
		json_decref(spec);
		return SKV_EXIT_USAGE;
	}
	return put_spec(cli, kv, name, spec);
}

static int forget(const struct skv_cli *cli, struct slabkv *kv, const char *name)
{
	char path[NAME_ROOM];
	int rc = skv_cli_confirm(cli, "lifts what bounds tenant '%s', and frees what it owns",
				 name);

	snprintf(path, sizeof path, "/v1/tenants/%s", name);
	return rc == SKV_EXIT_OK ? skv_cli_call(cli, kv, "DELETE", path, NULL, NULL) : rc;
}

static bool is_in(const json_t *names, const char *name)
{
	const json_t *v;
	size_t i;

	json_array_foreach(names, i, v)
		if (strcmp(json_string_value(v), name) == 0)
			return true;
	return false;
}

static void add_name(json_t *spec, const char *field, const char *name)
{
	json_t *names = json_object_get(spec, field);

	assert(json_is_object(spec) && *name);
	if (!names) {
		names = json_array();
		json_object_set_new(spec, field, names);
	}
	if (!is_in(names, name))
		json_array_append_new(names, json_string(name));
}

static int own(const struct skv_cli *cli, struct slabkv *kv, const char *name)
{
	json_t *spec;
	int rc = get_spec(cli, kv, name, &spec);

	if (rc != SKV_EXIT_OK)
		return rc;
	add_name(spec, "own_groups", name);
	add_name(spec, "own_storages", name);
	return put_spec(cli, kv, name, spec);
}

static int run(struct skv_cli *cli, struct slabkv *kv, int argc, char **argv)
{
	assert(argc > 0);
	if (argc == 1 && strcmp(argv[0], "list") == 0)
		return list(cli, kv);
	if (argc == 2 && strcmp(argv[0], "get") == 0)
		return get(cli, kv, argv[1]);
	if (argc >= 2 && strcmp(argv[0], "set") == 0)
		return set(cli, kv, argv[1], argv + 2, argc - 2);
	if (argc >= 2 && strcmp(argv[0], "isolate") == 0)
		return skv_cli_isolate(cli, kv, argv[1], argv + 2, argc - 2, own);
	if (argc == 2 && strcmp(argv[0], "forget") == 0)
		return forget(cli, kv, argv[1]);
	return skv_cli_usage(cli, "%s", USAGE);
}

int skv_cmd_tenant(struct skv_cli *cli, int argc, char **argv)
{
	return skv_cli_actions(cli, argc, argv, USAGE, run);
}
