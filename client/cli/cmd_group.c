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

static void print_groups(const json_t *doc)
{
	const json_t *g;
	size_t i;

	printf("%-24s %-10s %12s %12s %12s\n", "GROUP", "POLICY", "CAPACITY", "USED", "BLOCKS");
	json_array_foreach(json_object_get(doc, "groups"), i, g)
		print_group(g);
}

static int run(struct skv_cli *cli, struct slabkv *kv, int argc, char **argv)
{
	static const char *const actions[] = { "list", "set", NULL };
	static const char *const lists[] = { "storages", NULL };

	if (strcmp(argv[0], "list") == 0)
		return skv_cli_show_list(cli, kv, "/v1/groups", argv + 1, argc - 1, print_groups);
	if (strcmp(argv[0], "set") != 0)
		return skv_cli_unknown(cli, "action", argv[0], actions);
	if (argc < 3)
		return skv_cli_usage(cli, "list, or set NAME FIELD=VALUE...?");
	return skv_cli_set_words(cli, kv, SLABKV_GROUP, argv[1], argv + 2, argc - 2, lists);
}

int skv_cmd_group(struct skv_cli *cli, int argc, char **argv)
{
	return skv_cli_actions(cli, argc, argv, "list, or set NAME FIELD=VALUE...?", run);
}
