/*
 * options.c - options that all commands of `slabkv` share, and the errors of invalid ones. The
 * values are in struct skv_cli. Stateless.
 */
#include "cli.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <skv/mem.h>

int skv_cli_usage(const struct skv_cli *cli, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	skv_cli_tell(cli, "usage", "%s", text);
	if (!cli->json)
		fprintf(stderr, "Try: slabkv%s%s --help\n", cli->command ? " " : "",
			cli->command ? cli->command : "");
	return SKV_EXIT_USAGE;
}

/* getopt has refused an option; it prints nothing, so that all errors look alike. */
static int refuse_option(const struct skv_cli *cli)
{
	static const struct option known[] = { SKV_CLI_GLOBAL_OPTIONS };
	const char *word = optind > 0 && cli->argv ? cli->argv[optind - 1] : "";
	struct skv_nearest best = { 0 };

	for (size_t i = 0; strncmp(word, "--", 2) == 0 && known[i].name; i++) {
		if (strcmp(word + 2, known[i].name) == 0)
			return skv_cli_usage(cli, "option '%s' needs a value", word);
		skv_cli_nearest(word + 2, known[i].name, &best);
	}
	if (best.word)
		return skv_cli_usage(cli, "unknown option '%s'; did you mean --%s?", word,
				     best.word);
	return skv_cli_usage(cli, "unknown option, or one without its value: '%s'", word);
}

int skv_cli_set_token(struct skv_cli *cli, const char *value)
{
	skv_free(cli->token);
	cli->token = skv_strdup(value);
	return cli->token ? SKV_EXIT_OK : skv_cli_usage(cli, "out of memory");
}

static int read_token(struct skv_cli *cli, const char *path)
{
	char line[4200];
	FILE *f = fopen(path, "re");
	bool ok = f && fgets(line, sizeof line, f);

	if (f)
		fclose(f);
	if (!ok)
		return skv_cli_usage(cli, "--token-file: cannot read %s", path);
	line[strcspn(line, "\r\n")] = '\0';
	return line[0] ? skv_cli_set_token(cli, line)
		       : skv_cli_usage(cli, "--token-file: %s is empty", path);
}

static void list_options(void)
{
	const struct slabkv_option *o;

	printf("%-24s %-8s %s\n", "NAME", "DEFAULT", "RANGE");
	for (uint32_t i = 0; (o = slabkv_option(i)) != NULL; i++)
		printf("%-24s %-8s %s\n        %s\n", o->name, o->value[0] ? o->value : "-",
		       o->range, o->meaning);
}

/* NAME=VALUE; the library knows names and ranges. */
static int set_option(struct skv_cli *cli, const char *text)
{
	const char *equals = strchr(text, '=');
	struct slabkv_error err;
	char name[64];

	if (strcmp(text, "help") == 0) {
		list_options();
		return -1;
	}
	if (!equals || (size_t)(equals - text) >= sizeof name)
		return skv_cli_usage(cli, "-o: NAME=VALUE; -o help lists them");
	memcpy(name, text, (size_t)(equals - text));
	name[equals - text] = '\0';
	if (slabkv_options_set(&cli->library, name, equals + 1, &err) != SLABKV_OK)
		return skv_cli_usage(cli, "-o %s: %s", name, err.message);
	return SKV_EXIT_OK;
}

int skv_cli_global_option(struct skv_cli *cli, int opt, const char *value)
{
	uint64_t n;

	_Static_assert(sizeof cli->urls / sizeof cli->urls[0] == 16, "as --url tells");
	switch (opt) {
	case SKV_OPT_URL:
		if (cli->n_urls == sizeof cli->urls / sizeof cli->urls[0])
			return skv_cli_usage(cli, "--url: at most 16");
		cli->urls[cli->n_urls++] = value;
		assert(cli->n_urls <= sizeof cli->urls / sizeof cli->urls[0]);
		return SKV_EXIT_OK;
	case SKV_OPT_MOUNT:
		if (cli->n_mounts == SKV_CLI_LIST_MAX)
			return skv_cli_usage(cli, "--mount: at most %d", SKV_CLI_LIST_MAX);
		cli->mounts[cli->n_mounts++] = value;
		assert(cli->n_mounts <= SKV_CLI_LIST_MAX);
		return SKV_EXIT_OK;
	case SKV_OPT_TOKEN:
		return skv_cli_set_token(cli, value);
	case SKV_OPT_TOKEN_FILE:
		return read_token(cli, value);
	case SKV_OPT_TIMEOUT:
		if (!skv_args_number(value, 1, 3600000, &n))
			return skv_cli_usage(cli, "--timeout: milliseconds, 1..3600000");
		assert(n >= 1 && n <= 3600000);
		cli->timeout_ms = (uint32_t)n;
		return SKV_EXIT_OK;
	case SKV_OPT_ENGINE:
		cli->engine = value; /* the library knows the engines */
		return SKV_EXIT_OK;
	case 'o':
		return set_option(cli, value);
	case SKV_OPT_JSON:
		cli->json = true;
		return SKV_EXIT_OK;
	case SKV_OPT_YES:
		cli->yes = true;
		return SKV_EXIT_OK;
	case SKV_OPT_HELP:
		cli->help(cli->command);
		return -1;
	default:
		return refuse_option(cli);
	}
}
