/* cmd_top.c - kvblock top: storages, groups and instances in one table, refreshed until
 * interrupted. No state; one thread. On a terminal the screen is redrawn in place, else tables
 * follow each other. */
#include "cli.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void size_of(const json_t *o, const char *name, char out[24])
{
	kvb_args_print_size(kvb_cli_u64(o, name), out);
}

static void print_storages(const json_t *list)
{
	char capacity[24], used[24], held[24], room[24];
	const json_t *s;
	size_t i;

	printf("\n%-24s %-8s %12s %12s %12s %12s\n", "STORAGE", "STATE", "CAPACITY", "USED",
	       "QUARANTINE", "FREE");
	json_array_foreach(list, i, s) {
		kvb_cli_storage_size(s, "capacity", capacity);
		kvb_cli_storage_size(s, "used_bytes", used);
		kvb_cli_storage_size(s, "quarantined_bytes", held);
		kvb_cli_storage_size(s, "free_bytes", room);
		printf("%-24.24s %-8s %12s %12s %12s %12s\n", kvb_cli_text(s, "name"),
		       json_is_true(json_object_get(s, "healthy")) ? "ok" : "BAD", capacity, used,
		       held, room);
	}
}

static void print_table(const json_t *stats)
{
	char used[24], leased[24];
	const json_t *o;
	size_t i;

	printf("kvblockd %s  %s  %" PRIu64 " blocks  %" PRIu64 " sessions  %" PRIu64 " evicted\n",
	       kvb_cli_text(stats, "version"), kvb_cli_text(stats, "state"),
	       kvb_cli_u64(stats, "blocks"), kvb_cli_u64(stats, "sessions"),
	       kvb_cli_u64(stats, "evicted_blocks"));
	print_storages(json_object_get(stats, "storages"));
	printf("\n%-24s %12s %12s\n", "GROUP", "BLOCKS", "USED");
	json_array_foreach(json_object_get(stats, "groups"), i, o) {
		size_of(o, "used_bytes", used);
		printf("%-24.24s %12" PRIu64 " %12s\n", kvb_cli_text(o, "name"),
		       kvb_cli_u64(o, "blocks"), used);
	}
	printf("\n%-24s %12s %12s %12s %10s\n", "INSTANCE", "BLOCKS", "USED", "LEASED", "SESSIONS");
	json_array_foreach(json_object_get(stats, "instances"), i, o) {
		size_of(o, "used_bytes", used);
		size_of(o, "leased_bytes", leased);
		printf("%-24.24s %12" PRIu64 " %12s %12s %10" PRIu64 "\n", kvb_cli_text(o, "id"),
		       kvb_cli_u64(o, "blocks"), used, leased, kvb_cli_u64(o, "open_sessions"));
	}
	fflush(stdout);
}

static int watch(struct kvb_cli *cli, struct kvblock *kv, uint32_t interval, bool once)
{
	const struct timespec pause = { .tv_sec = interval };
	bool terminal = isatty(STDOUT_FILENO) && !once && !cli->json;
	json_t *stats;
	int rc;

	for (;;) {
		rc = kvb_cli_stats(cli, kv, &stats);
		if (rc != KVB_EXIT_OK)
			return rc;
		if (terminal)
			fputs("\033[H\033[2J", stdout);
		if (cli->json)
			rc = kvb_cli_print_json(json_incref(stats));
		else
			print_table(stats);
		json_decref(stats);
		if (once || rc != KVB_EXIT_OK || fflush(stdout) != 0)
			return rc;
		nanosleep(&pause, NULL);
	}
}

int kvb_cmd_top(struct kvb_cli *cli, int argc, char **argv)
{
	static const struct option options[] = { { "interval", required_argument, NULL, 'i' },
						 { "once", no_argument, NULL, 'o' },
						 KVB_CLI_GLOBAL_OPTIONS };
	struct kvblock *kv;
	uint64_t interval = 2;
	bool once = false;
	int opt, rc = KVB_EXIT_OK;

	while (rc == KVB_EXIT_OK && (opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 'o')
			once = true;
		else if (opt == 'i' && !kvb_args_number(optarg, 1, 86400, &interval))
			rc = kvb_cli_usage(cli, "--interval: seconds, 1..86400");
		else if (opt != 'i')
			rc = kvb_cli_global_option(cli, opt, optarg);
	}
	if (rc == KVB_EXIT_OK && optind < argc)
		rc = kvb_cli_usage(cli, "takes no arguments");
	if (rc == KVB_EXIT_OK)
		rc = kvb_cli_open(cli, NULL, &kv);
	if (rc == KVB_EXIT_OK) {
		rc = watch(cli, kv, (uint32_t)interval, once);
		kvblock_close(kv);
	}
	return rc;
}
