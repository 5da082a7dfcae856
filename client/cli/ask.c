/* ask.c - confirmation prompts, and suggestions for mistyped words. Stateless. */
#include "cli.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

int skv_cli_confirm(const struct skv_cli *cli, const char *fmt, ...)
{
	char what[1024], answer[16];
	va_list ap;

	if (cli->yes)
		return SKV_EXIT_OK;
	va_start(ap, fmt);
	vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
		return skv_cli_usage(cli, "this %s; if that is meant, say --yes", what);
	fprintf(stderr, "This %s. Go on? [y/N] ", what);
	if (fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y'))
		return SKV_EXIT_OK;
	return skv_cli_usage(cli, "nothing was done");
}

#define LONGEST 32u

/* Letters to insert, remove, change, or swap with a neighbour (Damerau and Levenshtein). */
static unsigned distance(const char *a, const char *b)
{
	unsigned d[LONGEST + 1][LONGEST + 1];
	size_t n = strlen(a), m = strlen(b);

	if (n > LONGEST || m > LONGEST)
		return LONGEST;
	for (size_t i = 0; i <= n; i++)
		d[i][0] = (unsigned)i;
	for (size_t k = 0; k <= m; k++)
		d[0][k] = (unsigned)k;
	for (size_t i = 1; i <= n; i++) {
		for (size_t k = 1; k <= m; k++) {
			unsigned least = d[i - 1][k - 1] + (a[i - 1] != b[k - 1]);

			if (d[i - 1][k] + 1 < least)
				least = d[i - 1][k] + 1;
			if (d[i][k - 1] + 1 < least)
				least = d[i][k - 1] + 1;
			if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1] &&
			    d[i - 2][k - 2] + 1 < least)
				least = d[i - 2][k - 2] + 1;
			d[i][k] = least;
		}
	}
	assert(d[n][m] <= (n > m ? n : m)); /* changing each letter would do */
	return d[n][m];
}

void skv_cli_nearest(const char *word, const char *candidate, struct skv_nearest *best)
{
	unsigned d = distance(word, candidate), most = strlen(word) < 4 ? 1 : 2;

	assert(!best->word || best->distance <= most); /* the same input word every time */
	if (d <= most && (!best->word || d < best->distance))
		*best = (struct skv_nearest){ candidate, d };
}

int skv_cli_unknown(const struct skv_cli *cli, const char *what, const char *word,
		    const char *const *known)
{
	struct skv_nearest best = { 0 };
	char list[256] = "";

	for (size_t i = 0, n = 0; known[i]; i++) {
		skv_cli_nearest(word, known[i], &best);
		n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", i ? ", " : "", known[i]);
		assert(n < sizeof list); /* our own tables are short */
	}
	if (best.word)
		return skv_cli_usage(cli, "there is no %s '%s'; did you mean %s?", what, word,
				     best.word);
	return skv_cli_usage(cli, "there is no %s '%s': %s", what, word, list);
}
