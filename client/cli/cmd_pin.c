/* cmd_pin.c - slabkv pin, unpin, pins: blocks that eviction leaves alone. No state. */
#include "cli.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include <skv/mem.h>

#define MAX_TTL_MS 2592000000u /* 30 days */
_Static_assert(MAX_TTL_MS == 30u * 24 * 3600 * 1000, "30 days");

static const char *kind_name(enum slabkv_pin_kind kind) { return kind == SLABKV_PIN_SOFT ? "soft" : "hard"; }

/* ---- pin ------------------------------------------------------------------------------------- */

static int print_pinned(const struct skv_cli *cli, const struct skv_cli_target *t, uint32_t pinned, const bool *missing)
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
		return skv_cli_print_json(json_pack("{sI so}", "pinned", (json_int_t)pinned, "missing", absent));
	json_decref(absent);
	printf("%u of %u keys pinned\n", pinned, t->n);
	return SKV_EXIT_OK;
}

static int do_pin(struct skv_cli *cli, const struct skv_cli_target *t, enum slabkv_pin_kind kind, uint64_t ttl_ms)
{
	struct slabkv_keys keys = skv_args_keys_of(&t->keys);
	bool *missing = skv_calloc(t->n, sizeof *missing);
	struct slabkv_error err;
	struct slabkv *kv;
	uint32_t pinned = 0;
	int rc = missing ? skv_cli_open(cli, NULL, &kv) : skv_cli_usage(cli, "out of memory");

	assert(kind == SLABKV_PIN_HARD || ttl_ms > 0); /* a soft pin ends by itself */
	if (rc == SKV_EXIT_OK) {
		if (slabkv_pin(kv, t->instance, &keys, kind, ttl_ms, &pinned, missing, &err) != SLABKV_OK)
			rc = skv_cli_fail(cli, &err);
		else
			rc = print_pinned(cli, t, pinned, missing);
		if (rc == SKV_EXIT_OK && pinned < t->n)
			rc = SKV_EXIT_MISS;
		slabkv_close(kv);
	}
	skv_free(missing);
	return rc;
}

int skv_cmd_pin(struct skv_cli *cli, int argc, char **argv)
{
	static const struct option options[] = { { "soft", no_argument, NULL, 's' },
						 { "ttl", required_argument, NULL, 't' },
						 SKV_CLI_TARGET_OPTIONS, SKV_CLI_GLOBAL_OPTIONS };
	enum slabkv_pin_kind kind = SLABKV_PIN_HARD;
	struct skv_cli_target t;
	uint64_t ttl_ms = 0;
	int opt, rc = SKV_EXIT_OK;

	skv_cli_target_init(&t);
	while (rc == SKV_EXIT_OK && (opt = getopt_long(argc, argv, SKV_CLI_SHORT, options, NULL)) != -1) {
		if (opt == 's')
			kind = SLABKV_PIN_SOFT;
		else if (opt == 't' && !skv_args_number(optarg, 0, MAX_TTL_MS, &ttl_ms))
			rc = skv_cli_usage(cli, "--ttl: milliseconds, 0..%u", MAX_TTL_MS);
		else if (opt != 't')
			rc = skv_cli_target_option(cli, &t, opt, optarg);
	}
	if (rc == SKV_EXIT_OK && kind == SLABKV_PIN_SOFT && ttl_ms == 0)
		rc = skv_cli_usage(cli, "--soft needs --ttl: a soft pin ends by itself");
	if (rc == SKV_EXIT_OK)
		rc = skv_cli_target_keys(cli, &t, argc, argv, optind);
	if (rc == SKV_EXIT_OK)
		rc = do_pin(cli, &t, kind, ttl_ms);
	skv_cli_target_free(&t);
	return rc;
}

/* ---- unpin ----------------------------------------------------------------------------------- */

static int do_unpin(struct skv_cli *cli, const struct skv_cli_target *t, bool all)
{
	struct slabkv_keys keys = skv_args_keys_of(&t->keys);
	struct slabkv_error err;
	struct slabkv *kv;
	uint64_t n = 0;
	int rc = skv_cli_open(cli, NULL, &kv);

	assert(all == (t->n == 0)); /* no keys given by mistake are no wish for all */
	if (rc != SKV_EXIT_OK)
		return rc;
	if (slabkv_unpin(kv, t->instance, all ? NULL : &keys, &n, &err) != SLABKV_OK)
		rc = skv_cli_fail(cli, &err);
	else if (cli->json)
		rc = skv_cli_print_json(json_pack("{sI}", "unpinned", (json_int_t)n));
	else
		printf("%" PRIu64 " unpinned\n", n);
	slabkv_close(kv);
	return rc;
}

int skv_cmd_unpin(struct skv_cli *cli, int argc, char **argv)
{
	static const struct option options[] = { { "all", no_argument, NULL, 'a' },
						 SKV_CLI_TARGET_OPTIONS, SKV_CLI_GLOBAL_OPTIONS };
	struct skv_cli_target t;
	bool all = false;
	int opt, rc = SKV_EXIT_OK;

	skv_cli_target_init(&t);
	while (rc == SKV_EXIT_OK && (opt = getopt_long(argc, argv, SKV_CLI_SHORT, options, NULL)) != -1) {
		if (opt == 'a')
			all = true;
		else
			rc = skv_cli_target_option(cli, &t, opt, optarg);
	}
	if (rc == SKV_EXIT_OK && all && (t.n || optind < argc))
		rc = skv_cli_usage(cli, "--all, or keys: not both");
	if (rc == SKV_EXIT_OK && !all)
		rc = skv_cli_target_keys(cli, &t, argc, argv, optind);
	if (rc == SKV_EXIT_OK)
		rc = do_unpin(cli, &t, all);
	skv_cli_target_free(&t);
	return rc;
}

/* ---- pins ------------------------------------------------------------------------------------ */

static void print_pin(const struct skv_cli *cli, const struct slabkv_pin_info *p, json_t *list)
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

static int do_pins(struct skv_cli *cli, const char *instance)
{
	const struct slabkv_pins *pins = NULL;
	struct slabkv_error err;
	struct slabkv *kv;
	json_t *list;
	uint64_t cursor = 0;
	int rc = skv_cli_open(cli, NULL, &kv);

	if (rc != SKV_EXIT_OK)
		return rc;
	list = json_array();
	do {
		if (slabkv_pins(kv, instance, cursor, &pins, &err) != SLABKV_OK) {
			rc = skv_cli_fail(cli, &err);
			break;
		}
		for (uint32_t i = 0; i < pins->n; i++)
			print_pin(cli, &pins->v[i], list);
		cursor = pins->next;
		slabkv_free(pins);
	} while (cursor);
	slabkv_close(kv);
	if (rc == SKV_EXIT_OK && cli->json)
		return skv_cli_print_json(json_pack("{so}", "pins", list));
	json_decref(list);
	return rc;
}

int skv_cmd_pins(struct skv_cli *cli, int argc, char **argv)
{
	static const struct option options[] = { { "instance", required_argument, NULL, SKV_OPT_INSTANCE },
						 SKV_CLI_GLOBAL_OPTIONS };
	const char *instance = "default";
	int opt, rc = SKV_EXIT_OK;

	while (rc == SKV_EXIT_OK && (opt = getopt_long(argc, argv, SKV_CLI_SHORT, options, NULL)) != -1) {
		if (opt == SKV_OPT_INSTANCE)
			instance = optarg;
		else
			rc = skv_cli_global_option(cli, opt, optarg);
	}
	if (rc == SKV_EXIT_OK && optind < argc)
		rc = skv_cli_usage(cli, "takes no arguments");
	return rc == SKV_EXIT_OK ? do_pins(cli, instance) : rc;
}
