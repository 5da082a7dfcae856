/*
 * cmd_group.c - slabkv group: lists groups, and changes single settings of one, named as in the
 * API. Stateless; one thread.
 */
#include "cli.h"

#include <inttypes.h>
#include <string.h>

static void print_group(const json_t *g)
{
	const char *policy = skv_cli_text(g, "policy");
	char capacity[24], used[24];

	skv_cli_limit(g, "capacity", capacity);
	skv_args_print_size(skv_cli_u64(g, "used_bytes"), used);
	printf("%-24s %-10s %12s %12s %12" PRIu64 "\n", skv_cli_text(g, "name"),
	       *policy ? policy : "reuse", capacity, used, skv_cli_u64(g, "blocks"));
}

static int list(struct skv_cli *cli, struct slabkv *kv)
{
	const json_t *g;
	json_t *doc;
	size_t i;
	int rc = skv_cli_call(cli, kv, "GET", "/v1/groups", NULL, &doc);

	if (rc != SKV_EXIT_OK)
		return rc;
	if (cli->json)
		return skv_cli_print_json(doc);
	printf("%-24s %-10s %12s %12s %12s\n", "GROUP", "POLICY", "CAPACITY", "USED", "BLOCKS");
	json_array_foreach(json_object_get(doc, "groups"), i, g)
		print_group(g);
	json_decref(doc);
	return SKV_EXIT_OK;
}

/* Applies FIELD=VALUE... to the group as it is, or to an empty one. */
static int set(struct skv_cli *cli, struct slabkv *kv, const char *name, char **fields, int n)
{
	static const char *const told[] = { "name",         "blocks",       "used_bytes",
					    "room_bytes",   "pinned_bytes", "soft_pinned_bytes",
					    "leased_bytes", "open_bytes",   "evicted_blocks",
					    "hits" };
	static const char *const lists[] = { "storages", NULL };
	const struct slabkv_group_info *have;
	struct slabkv_error err;
	char path[300];
	json_t *spec = NULL;
	int rc = slabkv_group_get(kv, name, &have, &err);

	if (rc != SLABKV_OK && rc != SLABKV_E_NOT_FOUND)
		return skv_cli_fail(cli, &err);
	snprintf(path, sizeof path, "/v1/groups/%s", name);
	if (rc == SLABKV_OK) {
		slabkv_free(have);
		rc = skv_cli_call(cli, kv, "GET", path, NULL, &spec);
		if (rc != SKV_EXIT_OK)
			return rc;
	} else {
		spec = json_object();
	}
	for (size_t i = 0; i < sizeof told / sizeof told[0]; i++)
		json_object_del(spec, told[i]);
	if (!skv_cli_set_fields(cli, spec, fields, n, lists)) {
		json_decref(spec);
		return SKV_EXIT_USAGE;
	}
	rc = skv_cli_call(cli, kv, "PUT", path, spec, &spec);
	if (rc == SKV_EXIT_OK && cli->json)
		return skv_cli_print_json(spec);
	if (rc == SKV_EXIT_OK)
		json_decref(spec);
	return rc;
}

static int run(struct skv_cli *cli, struct slabkv *kv, int argc, char **argv)
{
	static const char *const actions[] = { "list", "set", NULL };

	if (argc == 1 && strcmp(argv[0], "list") == 0)
		return list(cli, kv);
	if (strcmp(argv[0], "list") != 0 && strcmp(argv[0], "set") != 0)
		return skv_cli_unknown(cli, "action", argv[0], actions);
	if (argc < 3 || strcmp(argv[0], "set") != 0)
		return skv_cli_usage(cli, "list, or set NAME FIELD=VALUE...?");
	return set(cli, kv, argv[1], argv + 2, argc - 2);
}

int skv_cmd_group(struct skv_cli *cli, int argc, char **argv)
{
	return skv_cli_actions(cli, argc, argv, "list, or set NAME FIELD=VALUE...?", run);
}
