/*
 * params_print.c - prints the parameter table: --help, --dump-config, --man.
 *
 * Reads the table and, for the dump, the values; owns nothing. One thread.
 */
#include "params_internal.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

/* Prints `text` in lines of at most `width`, each after `indent`. */
static void wrap(FILE *out, const char *indent, size_t width, const char *text)
{
	size_t column = 0;

	while (*text) {
		size_t n = strcspn(text, " ");

		if (column > 0 && column + 1 + n > width) {
			fputc('\n', out);
			column = 0;
		}
		fputs(column == 0 ? indent : " ", out);
		column += n + (column > 0);
		fprintf(out, "%.*s", (int)n, text);
		text += n + (text[n] == ' ');
	}
	fputc('\n', out);
}

static void dashed(const char *name, char out[64])
{
	size_t i = 0;

	for (; name[i] && i < 63; i++)
		out[i] = name[i] == '_' ? '-' : name[i];
	assert(name[i] == '\0');
	out[i] = '\0';
}

void skv_params_help(FILE *out)
{
	fputs("Usage: slabkvd [--name value | --name=value]...\n"
	      "       slabkvd check-config FILE [--running] [--name value]...\n"
	      "       slabkvd fsck [--files] [--json] [--store PATH]\n"
	      "       slabkvd migrate --from STORE --to STORE\n"
	      "       slabkvd backup --store STORE --to FILE\n"
	      "       slabkvd restore --from FILE --store STORE\n"
	      "       slabkvd simulate [options] TRACE...\n\n"
	      "The manager of KV-cache blocks. Needs no arguments: it listens on 127.0.0.1:7333\n"
	      "and keeps its state in ./slabkv.db and its blocks below ./slabkv-data.\n\n"
	      "  --help, -h       this text\n"
	      "  --version, -V    the version\n"
	      "  --dump-config    the current parameters, as a file for --config\n"
	      "  --man            the manual page, as roff\n\n"
	      "Parameters, from the file named by --config ('name = value' lines), the\n"
	      "environment (SLABKV_NAME) and the command line; later ones win:\n",
	      out);
	for (size_t i = 0; i < SKV_PARAM_COUNT; i++) {
		const struct param *row = &skv_param_rows[i];
		char range[128], name[64];

		skv_param_range(row, range);
		dashed(row->name, name);
		fprintf(out, "\n  --%s (%s; default %s)\n", name, range,
			*row->initial ? row->initial : "none");
		wrap(out, "      ", 88, row->help);
	}
}

void skv_params_dump(const struct skv_params *p, FILE *out)
{
	static const char *const from[] = { "", ", from a file", ", from the environment",
					    ", from the command line" };

	fputs("# Parameters of slabkvd. Lines are 'name = value'; # begins a comment line.\n",
	      out);
	for (size_t i = 0; i < SKV_PARAM_COUNT; i++) {
		const struct param *row = &skv_param_rows[i];
		char range[128], value[PARAM_VALUE_MAX];

		if (i == SKV_PARAM_config)
			continue; /* a file cannot name another file */
		assert((size_t)p->source[i] < sizeof from / sizeof from[0]);
		skv_param_range(row, range);
		skv_param_render(p, (enum skv_param)i, value);
		fputc('\n', out);
		wrap(out, "# ", 90, row->help);
		fprintf(out, "# %s; default %s%s\n", range, *row->initial ? row->initial : "none",
			from[p->source[i]]);
		fprintf(out, "%s =%s%s\n", row->name, *value ? " " : "", value);
	}
}

/* Text for roff: '-' stays a minus, a backslash a backslash, a leading dot is no request. */
static void roff(FILE *out, const char *s)
{
	if (*s == '.' || *s == '\'')
		fputs("\\&", out);
	for (; *s; s++) {
		if (*s == '-')
			fputs("\\-", out);
		else if (*s == '\\')
			fputs("\\e", out);
		else
			fputc(*s, out);
	}
}

static void man_head(FILE *out)
{
	fputs(".TH SLABKVD 8 \"\" \"slabkvd " SKV_VERSION "\" \"System Administration\"\n"
	      ".SH NAME\nslabkvd \\- manager of KV\\-cache blocks\n"
	      ".SH SYNOPSIS\n.B slabkvd\n[\\fB\\-\\-\\fIname value\\fR]...\n.br\n"
	      ".B slabkvd fsck\n[\\fB\\-\\-files\\fR] [\\fB\\-\\-json\\fR] "
	      "[\\fB\\-\\-store\\fR \\fIpath\\fR]\n.br\n"
	      ".B slabkvd check\\-config\n\\fIfile\\fR [\\fB\\-\\-running\\fR]\n.br\n"
	      ".B slabkvd simulate\n[\\fIoption\\fR]... \\fItrace\\fR...\n"
	      ".SH DESCRIPTION\n"
	      "Knows where every KV\\-cache block of a fleet of language\\-model servers lies\n"
	      "inside a few slab files. Clients ask it over HTTP and move the bytes themselves.\n"
	      "A second slabkvd on the same store waits as standby and takes over when the\n"
	      "first one dies.\n.PP\n"
	      ".B slabkvd fsck\n"
	      "checks a store that no manager runs on: exit status 0 when clean, 1 with problems,\n"
	      "2 when it could not check. \\fB\\-\\-files\\fR checks the slab files too.\n.PP\n"
	      ".B slabkvd check\\-config\n"
	      "tells all that is wrong with a file of parameters, and what a start with it would "
	      "refuse here.\n.PP\n"
	      ".B slabkvd simulate\n"
	      "tells what eviction policies and capacities would have made of a trace of requests, "
	      "with the optimum\n"
	      "beside; \\fB\\-\\-full\\fR runs the whole manager, and \\fB\\-\\-model\\fR turns "
	      "blocks into bytes and hits into tokens.\nIt opens no store and no port. \\fBslabkvd "
	      "simulate \\-\\-help\\fR tells its options.\n.PP\n"
	      "Called\n.BR kv_cache_manager_bin ,\nit takes the flags, configuration keys and "
	      "ports of Tair KVCache Manager instead:\n\\fB\\-c\\fR \\fIfile\\fR, \\fB\\-e\\fR "
	      "\\fIkey\\fR=\\fIvalue\\fR, \\fB\\-d\\fR (into the background), \\fB\\-h\\fR (all "
	      "keys), \\fB\\-v\\fR.\n"
	      ".SH OPTIONS\n"
	      "Each parameter may stand in the file named by \\fB\\-\\-config\\fR as \\fIname\\fR "
	      "= \\fIvalue\\fR, in\nthe environment as \\fBSLABKV_\\fINAME\\fR, or on the "
	      "command line; later ones win.\n",
	      out);
}

void skv_params_man(FILE *out)
{
	man_head(out);
	for (size_t i = 0; i < SKV_PARAM_COUNT; i++) {
		const struct param *row = &skv_param_rows[i];
		char range[128], name[64];

		skv_param_range(row, range);
		dashed(row->name, name);
		fputs(".TP\n\\fB\\-\\-", out);
		roff(out, name);
		fputs("\\fR (", out);
		roff(out, range);
		fputs("; default ", out);
		roff(out, *row->initial ? row->initial : "none");
		fputs(")\n", out);
		roff(out, row->help);
		fputc('\n', out);
	}
	fputs(".SH SIGNALS\n.TP\n.B SIGTERM, SIGINT\nRunning requests end, the state is "
	      "checkpointed, exit status 0. A second one exits at once.\n.TP\n.B SIGHUP\nReads "
	      "tokens_file again, and opens log_file and audit_file again.\n"
	      ".SH SEE ALSO\n.BR slabkv (1)\n",
	      out);
}
