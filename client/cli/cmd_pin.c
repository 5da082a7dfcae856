/* cmd_pin.c - kvblock pin, unpin, pins: blocks that eviction leaves alone. No state. */
#include "cli.h"

#include <inttypes.h>
#include <string.h>

#include <kvb/mem.h>

#define MAX_TTL_MS 2592000000u /* 30 days */

static const char *kind_name(enum kvblock_pin_kind kind) { return kind == KVBLOCK_PIN_SOFT ? "soft" : "hard"; }

/* ---- pin ------------------------------------------------------------------------------------- */

static int print_pinned(const struct kvb_cli *cli, const struct kvb_cli_target *t, uint32_t pinned, const bool *missing)
{
	json_t *absent = json_array();

	for (uint32_t i = 0; i < t->n; i++) {
		if (!missing[i])
			continue;
		json_array_append_new(absent, json_string(t->texts[i]));
		if (!cli->json)
			printf("%s  -\n", t->texts[i]);
	}
	if (cli->json)
		return kvb_cli_print_json(json_pack("{sI so}", "pinned", (json_int_t)pinned, "missing", absent));
	json_decref(absent);
	printf("%u of %u keys pinned\n", pinned, t->n);
	return KVB_EXIT_OK;
}

static int do_pin(struct kvb_cli *cli, const struct kvb_cli_target *t, enum kvblock_pin_kind kind, uint64_t ttl_ms)
{
	struct kvblock_keys keys = kvb_args_keys_of(&t->keys);
	bool *missing = kvb_calloc(t->n, sizeof *missing);
	struct kvblock_error err;
	struct kvblock *kv;
	uint32_t pinned = 0;
	int rc = missing ? kvb_cli_open(cli, NULL, &kv) : kvb_cli_usage(cli, "out of memory");

	if (rc == KVB_EXIT_OK) {
		if (kvblock_pin(kv, t->instance, &keys, kind, ttl_ms, &pinned, missing, &err) != KVBLOCK_OK)
			rc = kvb_cli_fail(cli, &err);
		else
			rc = print_pinned(cli, t, pinned, missing);
		if (rc == KVB_EXIT_OK && pinned < t->n)
			rc = KVB_EXIT_MISS;
		kvblock_close(kv);
	}
	kvb_free(missing);
	return rc;
}

int kvb_cmd_pin(struct kvb_cli *cli, int argc, char **argv)
{
	static const struct option options[] = { { "soft", no_argument, NULL, 's' },
						 { "ttl", required_argument, NULL, 't' },
						 KVB_CLI_TARGET_OPTIONS, KVB_CLI_GLOBAL_OPTIONS };
	enum kvblock_pin_kind kind = KVBLOCK_PIN_HARD;
	struct kvb_cli_target t;
	uint64_t ttl_ms = 0;
	int opt, rc = KVB_EXIT_OK;

	kvb_cli_target_init(&t);
	while (rc == KVB_EXIT_OK && (opt = getopt_long(argc, argv, KVB_CLI_SHORT, options, NULL)) != -1) {
		if (opt == 's')
			kind = KVBLOCK_PIN_SOFT;
		else if (opt == 't' && !kvb_args_number(optarg, 0, MAX_TTL_MS, &ttl_ms))
			rc = kvb_cli_usage(cli, "--ttl: milliseconds, 0..%u", MAX_TTL_MS);
		else if (opt != 't')
			rc = kvb_cli_target_option(cli, &t, opt, optarg);
	}
	if (rc == KVB_EXIT_OK && kind == KVBLOCK_PIN_SOFT && ttl_ms == 0)
		rc = kvb_cli_usage(cli, "--soft needs --ttl: a soft pin ends by itself");
	if (rc == KVB_EXIT_OK)
		rc = kvb_cli_target_keys(cli, &t, argc, argv, optind);
	if (rc == KVB_EXIT_OK)
		rc = do_pin(cli, &t, kind, ttl_ms);
	kvb_cli_target_free(&t);
	return rc;
}

/* ---- unpin ----------------------------------------------------------------------------------- */

static int do_unpin(struct kvb_cli *cli, const struct kvb_cli_target *t, bool all)
{
	struct kvblock_keys keys = kvb_args_keys_of(&t->keys);
	struct kvblock_error err;
	struct kvblock *kv;
	uint64_t n = 0;
	int rc = kvb_cli_open(cli, NULL, &kv);

	if (rc != KVB_EXIT_OK)
		return rc;
	if (kvblock_unpin(kv, t->instance, all ? NULL : &keys, &n, &err) != KVBLOCK_OK)
		rc = kvb_cli_fail(cli, &err);
	else if (cli->json)
		rc = kvb_cli_print_json(json_pack("{sI}", "unpinned", (json_int_t)n));
	else
		printf("%" PRIu64 " unpinned\n", n);
	kvblock_close(kv);
	return rc;
}

int kvb_cmd_unpin(struct kvb_cli *cli, int argc, char **argv)
{
	static const struct option options[] = { { "all", no_argument, NULL, 'a' },
						 KVB_CLI_TARGET_OPTIONS, KVB_CLI_GLOBAL_OPTIONS };
	struct kvb_cli_target t;
	bool all = false;
	int opt, rc = KVB_EXIT_OK;

	kvb_cli_target_init(&t);
	while (rc == KVB_EXIT_OK && (opt = getopt_long(argc, argv, KVB_CLI_SHORT, options, NULL)) != -1) {
		if (opt == 'a')
			all = true;
		else
			rc = kvb_cli_target_option(cli, &t, opt, optarg);
	}
	if (rc == KVB_EXIT_OK && all && (t.n || optind < argc))
		rc = kvb_cli_usage(cli, "--all, or keys: not both");
	if (rc == KVB_EXIT_OK && !all)
		rc = kvb_cli_target_keys(cli, &t, argc, argv, optind);
	if (rc == KVB_EXIT_OK)
		rc = do_unpin(cli, &t, all);
	kvb_cli_target_free(&t);
	return rc;
}

/* ---- pins ------------------------------------------------------------------------------------ */

static void print_pin(const struct kvb_cli *cli, const struct kvblock_pin_info *p, json_t *list)
{
	char key[33];

	snprintf(key, sizeof key, "%016" PRIx64 "%016" PRIx64, p->key.hi, p->key.lo);
	if (cli->json)
		json_array_append_new(list, json_pack("{ss ss sI}", "key", key, "kind", kind_name(p->kind), "ttl_ms",
						      (json_int_t)p->ttl_ms));
	else if (p->ttl_ms)
		printf("%s  %s  %" PRIu64 " ms\n", key, kind_name(p->kind), p->ttl_ms);
	else
		printf("%s  %s\n", key, kind_name(p->kind));
}

static int do_pins(struct kvb_cli *cli, const char *instance)
{
	const struct kvblock_pins *pins = NULL;
	struct kvblock_error err;
	struct kvblock *kv;
	json_t *list;
	uint64_t cursor = 0;
	int rc = kvb_cli_open(cli, NULL, &kv);

	if (rc != KVB_EXIT_OK)
		return rc;
	list = json_array();
	do {
		if (kvblock_pins(kv, instance, cursor, &pins, &err) != KVBLOCK_OK) {
			rc = kvb_cli_fail(cli, &err);
			break;
		}
		for (uint32_t i = 0; i < pins->n; i++)
			print_pin(cli, &pins->v[i], list);
		cursor = pins->next;
		kvblock_free(pins);
	} while (cursor);
	kvblock_close(kv);
	if (rc == KVB_EXIT_OK && cli->json)
		return kvb_cli_print_json(json_pack("{so}", "pins", list));
	json_decref(list);
	return rc;
}

int kvb_cmd_pins(struct kvb_cli *cli, int argc, char **argv)
{
	static const struct option options[] = { { "instance", required_argument, NULL, KVB_OPT_INSTANCE },
						 KVB_CLI_GLOBAL_OPTIONS };
	const char *instance = "default";
	int opt, rc = KVB_EXIT_OK;

	while (rc == KVB_EXIT_OK && (opt = getopt_long(argc, argv, KVB_CLI_SHORT, options, NULL)) != -1) {
		if (opt == KVB_OPT_INSTANCE)
			instance = optarg;
		else
			rc = kvb_cli_global_option(cli, opt, optarg);
	}
	if (rc == KVB_EXIT_OK && optind < argc)
		rc = kvb_cli_usage(cli, "takes no arguments");
	return rc == KVB_EXIT_OK ? do_pins(cli, instance) : rc;
}
