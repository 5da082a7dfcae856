/*
 * cmd_instance.c - slabkv instance and slabkv ls: which instances there are, and the keys of one. No state; one thread.
 */
#include "cli.h"

#include <inttypes.h>
#include <string.h>

static void print_instance(const json_t *i)
{
	const json_t *specs = json_object_get(i, "specs"), *s;
	uint64_t bytes = 0;
	char block[24], used[24];
	size_t k;

	json_array_foreach(specs, k, s)
		bytes += skv_cli_u64(s, "size");
	skv_args_print_size(bytes, block);
	skv_args_print_size(skv_cli_u64(i, "used_bytes"), used);
	printf("%-32s %-16s %5zu %12s %12" PRIu64 " %12s\n", skv_cli_text(i, "id"), skv_cli_text(i, "group"),
	       json_array_size(specs), block, skv_cli_u64(i, "blocks"), used);
}

static int list(const struct skv_cli *cli, struct slabkv *kv)
{
	const json_t *one;
	json_t *doc;
	size_t i;
	int rc = skv_cli_call(cli, kv, "GET", "/v1/instances", NULL, &doc);

	if (rc != SKV_EXIT_OK)
		return rc;
	if (cli->json)
		return skv_cli_print_json(doc);
	printf("%-32s %-16s %5s %12s %12s %12s\n", "INSTANCE", "GROUP", "SPECS", "BLOCK", "BLOCKS", "USED");
	json_array_foreach(json_object_get(doc, "instances"), i, one)
		print_instance(one);
	json_decref(doc);
	return SKV_EXIT_OK;
}

/* One a line, as they come; with --json one document of all. */
static int keys(const struct skv_cli *cli, struct slabkv *kv, const char *id)
{
	json_t *all = cli->json ? json_array() : NULL;
	const struct slabkv_key_list *part;
	struct slabkv_error err;
	uint64_t cursor = 0;
	char text[33];

	do {
		if (slabkv_list(kv, id, cursor, &part, &err) != SLABKV_OK) {
			json_decref(all);
			return skv_cli_fail(cli, &err);
		}
		for (uint32_t i = 0; i < part->n; i++) {
			snprintf(text, sizeof text, "%016" PRIx64 "%016" PRIx64, part->keys[i].hi, part->keys[i].lo);
			if (all)
				json_array_append_new(all, json_string(text));
			else
				puts(text);
		}
		cursor = part->next;
		slabkv_free(part);
	} while (cursor);
	return all ? skv_cli_print_json(json_pack("{so}", "keys", all)) : SKV_EXIT_OK;
}

static int parse(struct skv_cli *cli, int argc, char **argv)
{
	static const struct option options[] = { SKV_CLI_GLOBAL_OPTIONS };
	int opt, rc = SKV_EXIT_OK;

	while (rc == SKV_EXIT_OK && (opt = getopt_long(argc, argv, SKV_CLI_SHORT, options, NULL)) != -1)
		rc = skv_cli_global_option(cli, opt, optarg);
	return rc;
}

/* `id` NULL: the instances. */
static int run(const struct skv_cli *cli, const char *id)
{
	struct slabkv *kv;
	int rc = skv_cli_open(cli, NULL, &kv);

	if (rc != SKV_EXIT_OK)
		return rc;
	rc = id ? keys(cli, kv, id) : list(cli, kv);
	slabkv_close(kv);
	return rc;
}

int skv_cmd_instance(struct skv_cli *cli, int argc, char **argv)
{
	static const char *const actions[] = { "list", "keys", NULL };
	int rc = parse(cli, argc, argv), n = argc - optind;
	bool wants_keys;

	if (rc != SKV_EXIT_OK)
		return rc;
	argv += optind;
	if (n == 0)
		return skv_cli_usage(cli, "list, or keys ID?");
	wants_keys = strcmp(argv[0], "keys") == 0;
	if (!wants_keys && strcmp(argv[0], "list") != 0)
		return skv_cli_unknown(cli, "action", argv[0], actions);
	if (n != 1 + wants_keys)
		return skv_cli_usage(cli, wants_keys ? "keys: of which instance?" : "list takes no arguments");
	return run(cli, wants_keys ? argv[1] : NULL);
}

int skv_cmd_ls(struct skv_cli *cli, int argc, char **argv)
{
	int rc = parse(cli, argc, argv);

	if (rc != SKV_EXIT_OK)
		return rc;
	if (argc - optind > 1)
		return skv_cli_usage(cli, "one instance");
	return run(cli, argc > optind ? argv[optind] : NULL);
}
