/* cmd_stat.c - slabkv stat: the manager's counters, or one block, as text or JSON. Stateless. */
#include "cli.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

static void print_size(const char *what, uint64_t bytes)
{
	char text[24];

	skv_args_print_size(bytes, text);
	printf("  %-14s %s\n", what, text);
}

/* How slots are placed on 3FS chunks, where a storage has any. */
static void print_placements(const json_t *list)
{
	const json_t *p;
	size_t i;

	json_array_foreach(list, i, p)
		printf("  %s on %s: %s, slots of %" PRIu64 " bytes, %" PRIu64 " wasted, %" PRIu64
		       " copied by each write\n",
		       skv_cli_text(p, "spec"), skv_cli_text(p, "storage"), skv_cli_text(p, "fit"),
		       skv_cli_u64(p, "slot_bytes"), skv_cli_u64(p, "wasted_bytes"),
		       skv_cli_u64(p, "copied_bytes"));
}

static void print_stats(const json_t *s)
{
	static const char *const sizes[] = { "capacity",       "available_bytes", "file_bytes",
					     "assigned_bytes", "used_bytes", "quarantined_bytes",
					     "free_bytes" };
	const json_t *one;
	char text[24];
	size_t i;

	printf("slabkvd %s, %s, up %" PRIu64 " s\n", skv_cli_text(s, "version"),
	       skv_cli_text(s, "state"), skv_cli_u64(s, "uptime_ms") / 1000);
	printf("%" PRIu64 " blocks, %" PRIu64 " open sessions, %" PRIu64 " evicted, %" PRIu64
	       " sessions expired, journal %" PRIu64 " of %" PRIu64 " bytes\n",
	       skv_cli_u64(s, "blocks"), skv_cli_u64(s, "sessions"),
	       skv_cli_u64(s, "evicted_blocks"), skv_cli_u64(s, "expired_sessions"),
	       skv_cli_u64(s, "journal_bytes"), skv_cli_u64(s, "journal_limit"));
	json_array_foreach(json_object_get(s, "storages"), i, one) {
		const char *problem = skv_cli_text(one, "problem");

		printf("storage %s (%s): %s%s%s\n", skv_cli_text(one, "name"),
		       skv_cli_text(one, "type"),
		       json_is_true(json_object_get(one, "healthy")) ? "healthy" : "NOT healthy",
		       problem[0] ? ": " : "", problem);
		for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
			skv_cli_storage_size(one, sizes[k], text);
			printf("  %-14s %s\n", sizes[k], text);
		}
	}
	json_array_foreach(json_object_get(s, "groups"), i, one) {
		printf("group %s: %" PRIu64 " blocks\n", skv_cli_text(one, "name"),
		       skv_cli_u64(one, "blocks"));
		print_size("used_bytes", skv_cli_u64(one, "used_bytes"));
	}
	json_array_foreach(json_object_get(s, "instances"), i, one) {
		printf("instance %s: %" PRIu64 " blocks, %" PRIu64 " open sessions\n",
		       skv_cli_text(one, "id"), skv_cli_u64(one, "blocks"),
		       skv_cli_u64(one, "open_sessions"));
		print_size("used_bytes", skv_cli_u64(one, "used_bytes"));
		print_placements(json_object_get(one, "placements"));
	}
}

static int stat_manager(struct skv_cli *cli, struct slabkv *kv)
{
	json_t *s;
	int rc = skv_cli_stats(cli, kv, &s);

	if (rc != SKV_EXIT_OK)
		return rc;
	if (cli->json)
		return skv_cli_print_json(s);
	print_stats(s);
	json_decref(s);
	return SKV_EXIT_OK;
}

/* Appends `text` to `path`, all but letters and digits as %XX. False: it does not fit. */
static bool append(char *path, size_t size, const char *text)
{
	size_t n = strlen(path);

	for (; *text && n + 4 <= size; text++)
		n += (size_t)snprintf(path + n, size - n,
				      isalnum((unsigned char)*text) ? "%c" : "%%%02X",
				      (unsigned char)*text);
	assert(n < size);
	return !*text;
}

/* The manager's own JSON is readable as it is. */
static int stat_block(struct skv_cli *cli, struct slabkv *kv, const struct skv_cli_target *t)
{
	char path[4096] = "/v1/instances/";
	struct slabkv_keys key = skv_args_keys_of(&t->keys);
	bool strings = key.form == SLABKV_KEYS_STRING;
	struct slabkv_key k = { 0, 0 };
	size_t n;
	json_t *doc;
	int rc;

	if (key.n != 1)
		return skv_cli_usage(cli, "one key at a time");
	if (strlen(t->instance) > 127)
		return skv_cli_usage(cli, "an instance has at most 127 characters");
	append(path, sizeof path, t->instance);
	n = strlen(path);
	if (key.form == SLABKV_KEYS_INT)
		k.lo = key.v.ints[0];
	else if (!strings)
		k = key.v.wide[0];
	if (strings)
		snprintf(path + n, sizeof path - n, "/blocks?key=");
	else
		snprintf(path + n, sizeof path - n, "/blocks/%016" PRIx64 "%016" PRIx64, k.hi,
			 k.lo);
	if (strings && !append(path, sizeof path, key.v.strings[0]))
		return skv_cli_usage(cli, "a key has at most 1024 bytes");
	rc = skv_cli_call(cli, kv, "GET", path, NULL, &doc);
	return rc == SKV_EXIT_OK ? skv_cli_print_json(doc) : rc;
}

int skv_cmd_stat(struct skv_cli *cli, int argc, char **argv)
{
	struct skv_cli_target t;
	struct slabkv *kv;
	int rc;

	skv_cli_target_init(&t);
	rc = skv_cli_parse(cli, argc, argv, NULL, &t);
	if (rc == SKV_EXIT_OK && (t.n || optind < argc))
		rc = skv_cli_target_keys(cli, &t, argc, argv, optind);
	if (rc == SKV_EXIT_OK)
		rc = skv_cli_open(cli, NULL, &kv);
	if (rc == SKV_EXIT_OK) {
		rc = t.n ? stat_block(cli, kv, &t) : stat_manager(cli, kv);
		slabkv_close(kv);
	}
	skv_cli_target_free(&t);
	return rc;
}
