/* cmd_block.c - options that the commands on blocks share: instance and keys. No state. */
#include "cli.h"

#include <kvb/mem.h>

void kvb_cli_target_init(struct kvb_cli_target *t)
{
	*t = (struct kvb_cli_target){ .instance = "default", .form = KVBLOCK_KEYS_STRING };
}

void kvb_cli_target_free(struct kvb_cli_target *t)
{
	kvb_args_keys_free(&t->keys);
	kvb_free(t->texts);
	t->texts = NULL;
}

static int add_key(struct kvb_cli *cli, struct kvb_cli_target *t, const char *text)
{
	if (!t->texts)
		t->texts = kvb_calloc(KVBLOCK_MAX_KEYS, sizeof *t->texts);
	if (!t->texts)
		return kvb_cli_usage(cli, "out of memory");
	if (t->n == KVBLOCK_MAX_KEYS)
		return kvb_cli_usage(cli, "at most %u keys", KVBLOCK_MAX_KEYS);
	t->texts[t->n++] = text;
	return KVB_EXIT_OK;
}

int kvb_cli_target_option(struct kvb_cli *cli, struct kvb_cli_target *t, int opt, const char *value)
{
	switch (opt) {
	case KVB_OPT_INSTANCE:
		t->instance = value;
		return KVB_EXIT_OK;
	case KVB_OPT_KEY:
		return add_key(cli, t, value);
	case KVB_OPT_KEY_FORM:
		if (!kvb_args_key_form(value, &t->form))
			return kvb_cli_usage(cli, "--key-form: string, int or hex");
		return KVB_EXIT_OK;
	default:
		return kvb_cli_global_option(cli, opt, value);
	}
}

int kvb_cli_target_keys(struct kvb_cli *cli, struct kvb_cli_target *t, int argc, char **argv,
			int first)
{
	const char *wrong;
	int rc = KVB_EXIT_OK;

	for (int i = first; i < argc && rc == KVB_EXIT_OK; i++)
		rc = add_key(cli, t, argv[i]);
	if (rc != KVB_EXIT_OK)
		return rc;
	wrong = t->n ? kvb_args_keys_parse(&t->keys, t->form, t->texts, t->n) : "no key given";
	return wrong ? kvb_cli_usage(cli, "--key: %s", wrong) : KVB_EXIT_OK;
}
