/* cmd_pin.c - slabkv pin, unpin, pins: protects blocks from eviction. Stateless. */
#include "cli.h"
#include "key_file.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include <skv/mem.h>

#define MAX_TTL_MS 2592000000u /* 30 days */
_Static_assert(MAX_TTL_MS == 30u * 24 * 3600 * 1000, "30 days");

static const char *kind_name(enum slabkv_pin_kind kind)
{
	return kind == SLABKV_PIN_SOFT ? "soft" : "hard";
}

/* ---- pin ------------------------------------------------------------------------------------- */

struct pinning {
	bool soft;
	uint64_t ttl_ms;
	const char *keys, *prompts; /* files, or NULL */
	bool sglang;
	uint64_t page;
	uint64_t asked, pinned;
	json_t *absent;
};

static void tell_missing(const struct skv_cli *cli, struct pinning *p,
			 const struct skv_args_keys *k, const bool *missing)
{
	for (uint32_t i = 0; i < k->n; i++) {
		if (!missing[i])
			continue;
		json_array_append_new(p->absent, json_string(k->strings[i]));
		if (!cli->json)
			printf("%s  -\n", k->strings[i]);
	}
}

/* Of one call. */
static int pin_keys(const struct skv_cli *cli, struct slabkv *kv, const char *instance,
		    const struct skv_args_keys *k, struct pinning *p)
{
	struct slabkv_keys keys = skv_args_keys_of(k);
	bool *missing = skv_calloc(k->n, sizeof *missing);
	struct slabkv_error err;
	uint32_t pinned = 0;
	int rc = missing ? SKV_EXIT_OK : skv_cli_usage(cli, "out of memory");

	assert(!p->soft || p->ttl_ms > 0); /* a soft pin expires */
	if (rc == SKV_EXIT_OK &&
	    slabkv_pin(kv, instance, &keys, p->soft ? SLABKV_PIN_SOFT : SLABKV_PIN_HARD, p->ttl_ms,
		       &pinned, missing, &err) != SLABKV_OK)
		rc = skv_cli_fail(cli, &err);
	if (rc == SKV_EXIT_OK)
		tell_missing(cli, p, k, missing);
	p->asked += k->n;
	p->pinned += pinned;
	skv_free(missing);
	return rc;
}

/* In as many calls as it takes. */
static int pin_file(const struct skv_cli *cli, struct slabkv *kv, const struct skv_cli_target *t,
		    const struct key_file *f, struct pinning *p)
{
	const enum slabkv_key_form form = p->prompts ? SLABKV_KEYS_WIDE : t->form;
	int rc = SKV_EXIT_OK;

	for (size_t at = 0; rc == SKV_EXIT_OK && at < f->n; at += SLABKV_MAX_KEYS) {
		const size_t n = f->n - at < SLABKV_MAX_KEYS ? f->n - at : SLABKV_MAX_KEYS;
		struct skv_args_keys k;
		const char *wrong = skv_args_keys_parse(&k, form, (const char **)f->text + at,
							(uint32_t)n);

		rc = wrong ? skv_cli_usage(cli, "%s: %s", p->keys, wrong)
			   : pin_keys(cli, kv, t->instance, &k, p);
		skv_args_keys_free(&k);
	}
	return rc;
}

static int print_pinned(const struct skv_cli *cli, const struct pinning *p)
{
	int rc = SKV_EXIT_OK;

	assert(p->pinned <= p->asked);
	if (cli->json)
		rc = skv_cli_print_json(json_pack("{sI sO}", "pinned", (json_int_t)p->pinned,
						  "missing", p->absent));
	else
		printf("%" PRIu64 " of %" PRIu64 " keys pinned\n", p->pinned, p->asked);
	return rc == SKV_EXIT_OK && p->pinned < p->asked ? SKV_EXIT_MISS : rc;
}

static int do_pin(struct skv_cli *cli, const struct skv_cli_target *t, struct pinning *p)
{
	struct key_file f = { .n = 0 };
	struct slabkv *kv;
	int rc = SKV_EXIT_OK;

	assert(!p->keys || !p->prompts);
	if (p->keys)
		rc = key_file_read(cli, p->keys, &f);
	else if (p->prompts)
		rc = key_file_read_prompts(cli, p->prompts, (uint32_t)p->page, &f);
	if (rc == SKV_EXIT_OK)
		rc = skv_cli_open(cli, NULL, &kv);
	if (rc == SKV_EXIT_OK) {
		p->absent = json_array();
		rc = f.n ? pin_file(cli, kv, t, &f, p)
			 : pin_keys(cli, kv, t->instance, &t->keys, p);
		if (rc == SKV_EXIT_OK)
			rc = print_pinned(cli, p);
		json_decref(p->absent);
		slabkv_close(kv);
	}
	key_file_free(&f);
	return rc;
}

static int check_pinning(struct skv_cli *cli, const struct skv_cli_target *t,
			 const struct pinning *p, bool more)
{
	if (p->soft && p->ttl_ms == 0)
		return skv_cli_usage(cli, "--soft needs --ttl: a soft pin ends by itself");
	if ((p->keys || p->prompts) && (t->n || more || (p->keys && p->prompts)))
		return skv_cli_usage(cli, "keys, --keys or --prompts: one of them");
	if (p->prompts && (!p->sglang || !p->page))
		return skv_cli_usage(cli, "--prompts needs --hash sglang and --page TOKENS");
	if (!p->prompts && (p->sglang || p->page))
		return skv_cli_usage(cli, "--hash and --page are for --prompts");
	return SKV_EXIT_OK;
}

static bool take_hash(const char *text, void *sglang)
{
	*(bool *)sglang = strcmp(text, "sglang") == 0;
	return *(bool *)sglang;
}

int skv_cmd_pin(struct skv_cli *cli, int argc, char **argv)
{
	struct pinning p = { .soft = false };
	const struct skv_cli_option options[] = {
		{ "soft", SKV_CLI_FLAG, &p.soft, 0, 0, NULL, NULL },
		{ "ttl", SKV_CLI_COUNT, &p.ttl_ms, 0, MAX_TTL_MS, "milliseconds, 0..2592000000",
		  NULL },
		{ "keys", SKV_CLI_TEXT, &p.keys, 0, 0, NULL, NULL },
		{ "prompts", SKV_CLI_TEXT, &p.prompts, 0, 0, NULL, NULL },
		{ "hash", SKV_CLI_PARSED, &p.sglang, 0, 0,
		  "sglang; of other engines' keys give --keys", take_hash },
		{ "page", SKV_CLI_COUNT, &p.page, 1, 65536, "tokens, 1..65536", NULL },
		SKV_CLI_OPTIONS_END
	};
	struct skv_cli_target t;
	int rc;

	skv_cli_target_init(&t);
	rc = skv_cli_parse(cli, argc, argv, options, &t);
	if (rc == SKV_EXIT_OK)
		rc = check_pinning(cli, &t, &p, optind < argc);
	if (rc == SKV_EXIT_OK && !p.keys && !p.prompts)
		rc = skv_cli_target_keys(cli, &t, argc, argv, optind);
	if (rc == SKV_EXIT_OK)
		rc = do_pin(cli, &t, &p);
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

	assert(all == (t->n == 0)); /* an accidentally empty key list must not mean all */
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
	bool all = false;
	const struct skv_cli_option options[] = { { "all", SKV_CLI_FLAG, &all, 0, 0, NULL, NULL },
						  SKV_CLI_OPTIONS_END };
	struct skv_cli_target t;
	int rc;

	skv_cli_target_init(&t);
	rc = skv_cli_parse(cli, argc, argv, options, &t);
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
		json_array_append_new(list, json_pack("{ss ss sI}", "key", key, "kind",
						      kind_name(p->kind), "ttl_ms",
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
	const char *instance = "default";
	const struct skv_cli_option options[] = {
		{ "instance", SKV_CLI_TEXT, &instance, 0, 0, NULL, NULL },
		SKV_CLI_OPTIONS_END
	};
	int rc = skv_cli_parse(cli, argc, argv, options, NULL);

	if (rc == SKV_EXIT_OK && optind < argc)
		rc = skv_cli_usage(cli, "takes no arguments");
	return rc == SKV_EXIT_OK ? do_pins(cli, instance) : rc;
}
