/*
 * key_file.c - keys from a file: one a line, or prompts as token ids, hashed as an engine does.
 *
 * SGLang's page hash is the SHA-256 of the hash of the page before (32 bytes; of the first one,
 * nothing) and of the page's token ids, 4 bytes each, little-endian. A key is its first 16 bytes.
 * Stateless.
 */
#include "key_file.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <skv/bytes.h>
#include <skv/hash.h>
#include <skv/mem.h>
#include <skv/status.h>

#include "cli.h"

#define HASH 32u

static int add(const struct skv_cli *cli, struct key_file *f, const char *text)
{
	void *v = f->text;
	char *copy = skv_strdup(text);

	if (!copy || skv_grow(&v, &f->cap, f->n + 1, sizeof *f->text) != SKV_OK) {
		skv_free(copy);
		return skv_cli_usage(cli, "out of memory");
	}
	f->text = v;
	assert(f->n < f->cap);
	f->text[f->n++] = copy;
	return SKV_EXIT_OK;
}

void key_file_free(struct key_file *f)
{
	for (size_t i = 0; i < f->n; i++)
		skv_free(f->text[i]);
	skv_free(f->text);
	*f = (struct key_file){ .n = 0 };
}

/* ---- prompts --------------------------------------------------------------------------------- */

/* Pages of one prompt. */
struct pages {
	const struct skv_cli *cli;
	struct key_file *out;
	uint32_t page, filled; /* tokens */
	uint8_t *room;         /* the hash before, then the tokens */
	bool first;
};

static int end_page(struct pages *p)
{
	const size_t skip = p->first ? HASH : 0, n = HASH + 4 * (size_t)p->page;
	uint8_t hash[HASH];
	char text[33];

	assert(p->filled == p->page);
	skv_sha256(p->room + skip, n - skip, hash);
	memcpy(p->room, hash, HASH);
	p->first = false;
	p->filled = 0;
	for (size_t i = 0; i < 16; i++)
		snprintf(text + 2 * i, 3, "%02x", hash[i]);
	return add(p->cli, p->out, text);
}

/* Of one line; NULL when fine, else what is no token. */
static const char *take_tokens(struct pages *p, const char *line, int *rc)
{
	*rc = SKV_EXIT_OK;
	assert(p->filled == 0 && p->first);
	for (line += strspn(line, " \t,[]\r"); *line; line += strspn(line, " \t,[]\r")) {
		char *end;
		unsigned long id = strtoul(line, &end, 10);

		if (*line < '0' || *line > '9' || id > UINT32_MAX)
			return line;
		for (int i = 0; i < 4; i++)
			p->room[HASH + 4 * (size_t)p->filled + (size_t)i] =
				(uint8_t)(id >> (8 * i));
		if (++p->filled == p->page && (*rc = end_page(p)) != SKV_EXIT_OK)
			return NULL;
		line = end;
	}
	return NULL;
}

static int take_prompt(const struct skv_cli *cli, const char *line, uint32_t page,
		       struct key_file *out)
{
	struct pages p = { .cli = cli, .out = out, .page = page, .first = true };
	const char *bad;
	int rc;

	p.room = skv_malloc(HASH + 4 * (size_t)page);
	if (!p.room)
		return skv_cli_usage(cli, "out of memory");
	bad = take_tokens(&p, line, &rc);
	skv_free(p.room);
	return bad ? skv_cli_usage(cli, "'%.20s' is no token id: a prompt is a line of numbers",
				   bad)
		   : rc;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static int take_line(const struct skv_cli *cli, char *line, uint32_t page, struct key_file *out)
{
	line[strcspn(line, "\r\n")] = '\0';
	if (!*line)
		return SKV_EXIT_OK;
	return page ? take_prompt(cli, line, page, out) : add(cli, out, line);
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Prompts share prefixes, and a call takes each key once. */
static void drop_doubles(struct key_file *f)
{
	size_t n = 0;

	if (f->n)
		qsort(f->text, f->n, sizeof *f->text, compare);
	for (size_t i = 0; i < f->n; i++) {
		if (n && strcmp(f->text[n - 1], f->text[i]) == 0)
			skv_free(f->text[i]);
		else
			f->text[n++] = f->text[i];
	}
	f->n = n;
}

static int read_lines(const struct skv_cli *cli, const char *path, uint32_t page,
		      struct key_file *out)
{
	FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
	int rc = SKV_EXIT_OK;
	char *line = NULL;
	size_t room = 0;

	assert(page <= UINT32_MAX / 8);
	*out = (struct key_file){ .n = 0 };
	if (!f)
		return skv_cli_usage(cli, "cannot read %s: %s", path, strerror(errno));
	while (rc == SKV_EXIT_OK && getline(&line, &room, f) >= 0)
		rc = take_line(cli, line, page, out);
	if (rc == SKV_EXIT_OK && ferror(f))
		rc = skv_cli_usage(cli, "cannot read %s: %s", path, strerror(errno));
	free(line);
	if (f != stdin)
		fclose(f);
	drop_doubles(out);
	if (rc == SKV_EXIT_OK && !out->n)
		rc = skv_cli_usage(cli, page ? "%s: no prompt has a whole page" : "%s: no key",
				   path);
	return rc;
}

int key_file_read(const struct skv_cli *cli, const char *path, struct key_file *out)
{
	return read_lines(cli, path, 0, out);
}

int key_file_read_prompts(const struct skv_cli *cli, const char *path, uint32_t page,
			  struct key_file *out)
{
	assert(page > 0);
	return read_lines(cli, path, page, out);
}
