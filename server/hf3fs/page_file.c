/*
 * page_file.c - a space's page file: its path, its known state, and what a check of it means.
 * Stateless.
 */
#include "page_file.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TENANT "{tenant}"

/* ---- path ------------------------------------------------------------------------------------ */

/* The pattern with the tenant filled in, followed by `end`. */
static bool expand(const char *pattern, const char *tenant, const char *end,
		   char out[SKV_FILE_PATH_MAX + 1])
{
	struct skv_buf b = { 0 };
	const char *at;
	bool fits;

	for (; (at = strstr(pattern, TENANT)) != NULL; pattern = at + sizeof TENANT - 1) {
		skv_put_bytes(&b, pattern, (size_t)(at - pattern));
		skv_put_bytes(&b, tenant, strlen(tenant));
	}
	skv_buf_printf(&b, "%s%s", pattern, end);
	fits = !b.failed && b.len <= SKV_FILE_PATH_MAX;
	if (fits)
		snprintf(out, SKV_FILE_PATH_MAX + 1, "%.*s", (int)b.len, (const char *)b.data);
	skv_buf_destroy(&b);
	return fits;
}

/* Length of the pattern up to the last slash before any client input; below an fs-master's
 * directory 0. */
static size_t fixed_part(const char *pattern)
{
	const char *tenant = strstr(pattern, TENANT);
	size_t n = *pattern != '/' ? 0 : tenant ? (size_t)(tenant - pattern) : strlen(pattern);

	while (n > 0 && pattern[n - 1] != '/')
		n--;
	return n;
}

static void split(const char *pattern, const char *whole, struct page_file *out)
{
	size_t n = fixed_part(pattern), length = n;

	assert(strncmp(pattern, whole, n) == 0);
	while (length > 1 && whole[length - 1] == '/')
		length--;
	snprintf(out->dir, sizeof out->dir, "%.*s", (int)length, whole);
	snprintf(out->path, sizeof out->path, "%s", whole + n);
}

static bool is_vllm(const struct space *s)
{
	return s->n_ns == sizeof SPACE_NS_VLLM - 1 && memcmp(s->ns, SPACE_NS_VLLM, s->n_ns) == 0;
}

bool page_file_of(const struct skv_hf3fs_api_files *o, const struct space *s, struct page_file *out)
{
	char pattern[SKV_FILE_PATH_MAX + 1], whole[SKV_FILE_PATH_MAX + 1], end[SPACE_NS_MAX + 64];

	if (!*(is_vllm(s) ? o->vllm_path : o->prefix) || s->n_ns > SPACE_NS_MAX ||
	    memchr(s->ns, '/', s->n_ns) || memchr(s->ns, '\0', s->n_ns))
		return false;
	if (is_vllm(s)) {
		snprintf(pattern, sizeof pattern, "%s/", o->vllm_path);
		snprintf(end, sizeof end, "hf3fs_vllm_data_file_%" PRId64, s->rank);
	} else {
		snprintf(pattern, sizeof pattern, "%s", o->prefix);
		snprintf(end, sizeof end, ".%" PRId64 ".bin%s%.*s", s->rank,
			 space_is_main(s) ? "" : ".", space_is_main(s) ? 0 : (int)s->n_ns, s->ns);
	}
	if (!expand(pattern, s->tenant, end, whole))
		return false;
	split(pattern, whole, out);
	return true;
}

/* ---- the known state ------------------------------------------------------------------------- */

void page_file_put(const struct skv_file_look *known, const char *path, struct skv_buf *out)
{
	assert(known->inode != 0);
	skv_buf_printf(out, "1 %s %" PRIx64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %s",
		       known->fs, known->fs_id, known->dir, known->inode, known->born_ns,
		       known->length, path);
	skv_put_u8(out, 0);
}

bool page_file_get(const char *text, const char *path, struct skv_file_look *known)
{
	struct skv_file_look k = { .inode = 0 };
	int n = 0;

	if (sscanf(text, "1 %31s %" SCNx64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 "%n",
		   k.fs, &k.fs_id, &k.dir, &k.inode, &k.born_ns, &k.length, &n) != 6 ||
	    n == 0 || text[n] != ' ' || strcmp(text + n + 1, path) != 0)
		return false;
	*known = k;
	return true;
}

/* ---- the meaning of a look ------------------------------------------------------------------- */

static bool same_fs(const struct skv_file_look *a, const struct skv_file_look *b)
{
	return strcmp(a->fs, b->fs) == 0 && a->fs_id == b->fs_id;
}

/* Inode numbers are reused, so the creation time counts too if the file system has it. */
static bool same_file(const struct skv_file_look *a, const struct skv_file_look *b)
{
	return a->inode == b->inode && (!a->born_ns || !b->born_ns || a->born_ns == b->born_ns);
}

enum page_file_news page_file_settle(enum page_file_news news, uint64_t *since, uint64_t now_ms)
{
	assert(now_ms >= *since);
	if (news == PAGE_FILE_ELSEWHERE && !*since)
		*since = now_ms;
	if (news == PAGE_FILE_ELSEWHERE && now_ms - *since < PAGE_FILE_AWAY_MS)
		return news;
	*since = 0;
	return news == PAGE_FILE_ELSEWHERE ? PAGE_FILE_REPLACED : news;
}

enum page_file_news page_file_judge(const struct skv_file_look *known,
				    const struct skv_file_look *seen)
{
	if (!seen->inode)
		return known->inode && same_fs(known, seen) && known->dir == seen->dir
			       ? PAGE_FILE_GONE
			       : PAGE_FILE_ABSENT;
	if (!known->inode)
		return PAGE_FILE_LEARN;
	if (!same_file(known, seen))
		return same_fs(known, seen) ? PAGE_FILE_REPLACED : PAGE_FILE_ELSEWHERE;
	if (seen->length < known->length)
		return PAGE_FILE_SHRANK;
	return seen->length == known->length && seen->dir == known->dir && same_fs(known, seen)
		       ? PAGE_FILE_SAME
		       : PAGE_FILE_LEARN;
}
