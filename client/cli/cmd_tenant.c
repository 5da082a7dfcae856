/*
 * cmd_tenant.c - slabkv tenant: what each tenant may and has; single settings are changed, named as
 * in the API. Stateless; one thread.
 */
#include "cli.h"

#include <assert.h>
#include <string.h>

#define USAGE "list, get NAME, set NAME FIELD=VALUE..., isolate NAME root=DIR..., or forget NAME?"
#define NAME_ROOM 300 /* "/v1/tenants/" and a name */

/* Fields of a view, not of the stored object. */
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

/* Prints the usage beside the limit: "blocks=7/100". */
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

/* Prints limits without a usage unchanged. */
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

static void print_tenants(const json_t *doc)
{
	const json_t *t;
	size_t i;

	json_array_foreach(json_object_get(doc, "tenants"), i, t)
		print_tenant(t);
}

static int get(const struct skv_cli *cli, struct slabkv *kv, const char *name)
{
	char path[NAME_ROOM];
	json_t *doc;
	int rc;

	snprintf(path, sizeof path, "/v1/tenants/%s", name);
	rc = skv_cli_call(cli, kv, "GET", path, NULL, &doc);
	return rc == SKV_EXIT_OK ? skv_cli_print(cli, doc, print_tenant) : rc;
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
	char path[NAME_ROOM];
	json_t *t, *now;
	int rc;

	snprintf(path, sizeof path, "/v1/tenants/%s", name);
	rc = skv_cli_call(cli, kv, "GET", path, NULL, &t);
	if (rc != SKV_EXIT_OK)
		return rc;
	add_name(t, "own_groups", name);
	add_name(t, "own_storages", name);
	rc = skv_cli_change(cli, kv, SLABKV_TENANT, name,
			    json_pack("{sO sO}", "own_groups", json_object_get(t, "own_groups"),
				      "own_storages", json_object_get(t, "own_storages")),
			    &now);
	json_decref(t);
	return rc == SKV_EXIT_OK ? skv_cli_print(cli, now, NULL) : rc;
}

static int run(struct skv_cli *cli, struct slabkv *kv, int argc, char **argv)
{
	static const char *const lists[] = { "groups", "storages", "own_groups", "own_storages",
					     NULL };

	assert(argc > 0);
	if (strcmp(argv[0], "list") == 0)
		return skv_cli_show_list(cli, kv, "/v1/tenants", argv + 1, argc - 1,
					 print_tenants);
	if (argc == 2 && strcmp(argv[0], "get") == 0)
		return get(cli, kv, argv[1]);
	if (argc >= 2 && strcmp(argv[0], "set") == 0)
		return skv_cli_set_words(cli, kv, SLABKV_TENANT, argv[1], argv + 2, argc - 2,
					 lists);
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
