/* cmd_block.c - options shared by the commands on blocks: instance and keys. Stateless. */
#include "cli.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include <skv/mem.h>

#define NUMBER 21u /* of a slash and the largest number of a block */

void skv_cli_target_init(struct skv_cli_target *t)
{
	*t = (struct skv_cli_target){ .instance = "default", .form = SLABKV_KEYS_STRING };
}

void skv_cli_target_free(struct skv_cli_target *t)
{
	skv_args_keys_free(&t->keys);
	skv_free(t->texts);
	t->texts = NULL;
}

static int add_key(struct skv_cli *cli, struct skv_cli_target *t, const char *text)
{
	if (!t->texts)
		t->texts = skv_calloc(SLABKV_MAX_KEYS, sizeof *t->texts);
	if (!t->texts)
		return skv_cli_usage(cli, "out of memory");
	if (t->n == SLABKV_MAX_KEYS)
		return skv_cli_usage(cli, "at most %u keys", SLABKV_MAX_KEYS);
	t->texts[t->n++] = text;
	return SKV_EXIT_OK;
}

int skv_cli_target_option(struct skv_cli *cli, struct skv_cli_target *t, int opt, const char *value)
{
	switch (opt) {
	case SKV_OPT_INSTANCE:
		t->instance = value;
		return SKV_EXIT_OK;
	case SKV_OPT_KEY:
		return add_key(cli, t, value);
	case SKV_OPT_KEY_FORM:
		if (!skv_args_key_form(value, &t->form))
			return skv_cli_usage(cli, "--key-form: string, int or hex");
		return SKV_EXIT_OK;
	default:
		return skv_cli_global_option(cli, opt, value);
	}
}

int skv_cli_target_keys(struct skv_cli *cli, struct skv_cli_target *t, int argc, char **argv,
			int first)
{
	const char *wrong;
	int rc = SKV_EXIT_OK;

	for (int i = first; i < argc && rc == SKV_EXIT_OK; i++)
		rc = add_key(cli, t, argv[i]);
	if (rc != SKV_EXIT_OK)
		return rc;
	wrong = t->n ? skv_args_keys_parse(&t->keys, t->form, t->texts, t->n) : "no key given";
	assert(wrong || (t->keys.n == t->n && t->keys.form == t->form));
	return wrong ? skv_cli_usage(cli, "--key: %s", wrong) : SKV_EXIT_OK;
}

int skv_cli_chain_check(const struct skv_cli *cli, const char *key)
{
	_Static_assert(NUMBER == sizeof "/18446744073709551615" - 1, "the longest there is");
	if (strlen(key) + NUMBER < SKV_CLI_CHAIN_KEY)
		return SKV_EXIT_OK;
	return skv_cli_usage(
		cli, "--key: at most %u bytes with --block-bytes, for /NUMBER is added to it",
		SKV_CLI_CHAIN_KEY - NUMBER - 1);
}

void skv_cli_chain_key(const char *key, uint64_t block, char out[SKV_CLI_CHAIN_KEY])
{
	int n = snprintf(out, SKV_CLI_CHAIN_KEY, "%s/%" PRIu64, key, block);

	assert(n > 0 && n < SKV_CLI_CHAIN_KEY);
}
