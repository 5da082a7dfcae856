/*
 * cmd_instance.c - slabkv instance and slabkv ls: lists instances, and the keys of one; removes
 * unused instances. Stateless; one thread.
 */
#include "cli.h"

#include <assert.h>
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
	printf("%-32s %-16s %5zu %12s %12" PRIu64 " %12s\n", skv_cli_text(i, "id"),
	       skv_cli_text(i, "group"), json_array_size(specs), block, skv_cli_u64(i, "blocks"),
	       used);
}

static void print_instances(const json_t *doc)
{
	const json_t *one;
	size_t i;

	printf("%-32s %-16s %5s %12s %12s %12s\n", "INSTANCE", "GROUP", "SPECS", "BLOCK", "BLOCKS",
	       "USED");
	json_array_foreach(json_object_get(doc, "instances"), i, one)
		print_instance(one);
}

/* Prints each key on a line as it arrives; with --json prints a document of all. */
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
			snprintf(text, sizeof text, "%016" PRIx64 "%016" PRIx64, part->keys[i].hi,
				 part->keys[i].lo);
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

/* ---- rm -------------------------------------------------------------------------------------- */

struct removal {
	bool with_blocks, dry_run;
	uint64_t age_s; /* 0: not given */
	const char *group; /* NULL: of all */
};

static bool is_old(const struct removal *o, const json_t *i)
{
	const bool holds = skv_cli_u64(i, "blocks") || skv_cli_u64(i, "open_sessions") ||
			   skv_cli_u64(i, "used_bytes");

	if (o->group && strcmp(skv_cli_text(i, "group"), o->group) != 0)
		return false;
	return skv_cli_u64(i, "unused_ms") / 1000 >= o->age_s && (o->with_blocks || !holds);
}

/* Returns the instances that the manager reports as old; *blocks gets the number of blocks they
 * hold. */
static json_t *find_old(const struct removal *o, const json_t *doc, uint64_t *blocks)
{
	json_t *found = json_array(), *i;
	size_t at;

	assert(o->age_s); /* else all of them would be old */
	*blocks = 0;
	json_array_foreach(json_object_get(doc, "instances"), at, i)
		if (is_old(o, i)) {
			json_array_append(found, i);
			*blocks += skv_cli_u64(i, "blocks");
		}
	return found;
}

static int remove_one(const struct skv_cli *cli, struct slabkv *kv, const struct removal *o,
		      const char *id)
{
	char path[3 * 256 + 80];
	int n = snprintf(path, sizeof path, "/v1/instances/");

	assert(!o->dry_run && strlen(id) <= 256);
	for (; *id; id++)
		n += snprintf(path + n, sizeof path - (size_t)n, *id == '/' ? "%%2F" : "%c", *id);
	/* asked again by the manager: it may have been used since the list */
	snprintf(path + n, sizeof path - (size_t)n, "?unused_s=%" PRIu64 "&with_blocks=%s",
		 o->age_s, o->with_blocks ? "true" : "false");
	return skv_cli_call(cli, kv, "DELETE", path, NULL, NULL);
}

static void print_old(const json_t *i)
{
	printf("%-32s %-16s unused %" PRIu64 " days, %" PRIu64 " blocks\n", skv_cli_text(i, "id"),
	       skv_cli_text(i, "group"), skv_cli_u64(i, "unused_ms") / 86400000,
	       skv_cli_u64(i, "blocks"));
}

static int remove_found(const struct skv_cli *cli, struct slabkv *kv, const struct removal *o,
			const json_t *found)
{
	json_t *removed = json_array(), *i;
	int rc = SKV_EXIT_OK;
	size_t at;

	json_array_foreach(found, at, i) {
		int one = o->dry_run ? SKV_EXIT_OK : remove_one(cli, kv, o, skv_cli_text(i, "id"));

		if (one != SKV_EXIT_OK) {
			rc = one;
			if (one == SKV_EXIT_UNREACHABLE)
				break;
			continue;
		}
		json_array_append(removed, json_object_get(i, "id"));
		if (!cli->json)
			print_old(i);
	}
	if (cli->json) {
		json_t *doc = json_pack("{sO sb}", "instances", removed, "dry_run", o->dry_run);
		int printed = skv_cli_print_json(doc);

		rc = rc == SKV_EXIT_OK ? printed : rc;
	} else {
		printf("%zu %s\n", json_array_size(removed),
		       o->dry_run ? "would be removed" : "removed");
	}
	json_decref(removed);
	return rc;
}

static int remove_old(const struct skv_cli *cli, struct slabkv *kv, const struct removal *o)
{
	json_t *doc, *found;
	uint64_t blocks;
	int rc = skv_cli_list(cli, kv, "/v1/instances", NULL, 0, &doc);

	if (rc != SKV_EXIT_OK)
		return rc;
	found = find_old(o, doc, &blocks);
	json_decref(doc);
	if (json_array_size(found) && !o->dry_run)
		rc = skv_cli_confirm(cli, "removes %zu instances with %" PRIu64 " blocks",
				     json_array_size(found), blocks);
	if (rc == SKV_EXIT_OK)
		rc = remove_found(cli, kv, o, found);
	json_decref(found);
	return rc;
}

/* ---- the commands ---------------------------------------------------------------------------- */

/* `id` NULL: the instances, of the page that the n words say. */
static int run(const struct skv_cli *cli, const char *id, const struct removal *o, char **words,
	       int n)
{
	struct slabkv *kv;
	int rc = skv_cli_open(cli, NULL, &kv);

	assert(!o || !id);
	if (rc != SKV_EXIT_OK)
		return rc;
	rc = o	  ? remove_old(cli, kv, o)
	     : id ? keys(cli, kv, id)
		  : skv_cli_show_list(cli, kv, "/v1/instances", words, n, print_instances);
	slabkv_close(kv);
	return rc;
}

static int act(struct skv_cli *cli, int n, char **argv, const struct removal *o)
{
	static const char *const actions[] = { "list", "keys", "rm", NULL };
	const bool wants_keys = strcmp(argv[0], "keys") == 0, rm = strcmp(argv[0], "rm") == 0;

	if (!rm && !wants_keys && strcmp(argv[0], "list") != 0)
		return skv_cli_unknown(cli, "action", argv[0], actions);
	if (!rm && (o->age_s || o->group || o->with_blocks || o->dry_run))
		return skv_cli_usage(cli,
				     "--older-than, --group, --with-blocks and --dry-run are rm's");
	if (rm && !o->age_s)
		return skv_cli_usage(cli, "rm --older-than AGE, like 30d?");
	if (wants_keys ? n != 2 : rm && n != 1)
		return skv_cli_usage(cli, wants_keys ? "keys: of which instance?"
						     : "%s takes no arguments", argv[0]);
	return run(cli, wants_keys ? argv[1] : NULL, rm ? o : NULL, argv + 1, n - 1);
}

int skv_cmd_instance(struct skv_cli *cli, int argc, char **argv)
{
	struct removal o = { .age_s = 0 };
	const struct skv_cli_option options[] = {
		{ "older-than", SKV_CLI_TIME, &o.age_s, 0, 0, "like 30d or 12h", NULL },
		{ "with-blocks", SKV_CLI_FLAG, &o.with_blocks, 0, 0, NULL, NULL },
		{ "dry-run", SKV_CLI_FLAG, &o.dry_run, 0, 0, NULL, NULL },
		{ "group", SKV_CLI_TEXT, &o.group, 0, 0, NULL, NULL },
		SKV_CLI_OPTIONS_END
	};
	int rc = skv_cli_parse(cli, argc, argv, options, NULL);

	if (rc != SKV_EXIT_OK)
		return rc;
	if (optind == argc)
		return skv_cli_usage(cli, "list, keys ID, or rm --older-than AGE?");
	return act(cli, argc - optind, argv + optind, &o);
}

int skv_cmd_ls(struct skv_cli *cli, int argc, char **argv)
{
	int rc = skv_cli_parse(cli, argc, argv, NULL, NULL);

	if (rc != SKV_EXIT_OK)
		return rc;
	if (argc - optind > 1)
		return skv_cli_usage(cli, "one instance");
	return run(cli, argc > optind ? argv[optind] : NULL, NULL, NULL, 0);
}
