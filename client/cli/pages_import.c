/*
 * pages_import.c - slabkv pages import: loads upstream's persistence file into page spaces.
 *
 * The file is one object: "rank:namespace" (or "rank", which means kv) -> num_pages, free_pages,
 * key_to_index, a list of [key, page] in order of use, the oldest first. The whole file is read and
 * checked before anything is sent. Upstream's server saves while it works, so a page may stand
 * there free and mapped at a time, or on two keys: the owner of its bytes is unknown, so such keys
 * are left out. One thread.
 */
#include "pages.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <skv/json_out.h>
#include <skv/mem.h>

#define PAGES_MAX (1ull << 32) /* of a space: more is no file of upstream's */
#define SKIPS(X)                                                          \
	X(there, "already there")                                         \
	X(taken, "of pages that others have")                             \
	X(outside, "of pages outside")                                    \
	X(ambiguous, "of pages that are free, or another key's, as well") \
	X(unfit, "with keys that are too long")

enum { PAGE_FREE = 1, PAGE_MAPPED = 2, PAGE_TWICE = 4 };

struct result {
	uint64_t imported;
#define SKIP_FIELD(name, text) uint64_t name;
	SKIPS(SKIP_FIELD)
#undef SKIP_FIELD
};

/* A space of the file. */
struct entry {
	struct skv_pages_space space;
	uint64_t num_pages;
	const struct skv_json_node *pairs; /* array of pairs, or an object (the oldest releases) */
	const struct skv_json_node *free;  /* array, or NULL */
	uint8_t *page;                     /* [num_pages] PAGE_* */
	struct result got;
};

/* ---- the file -------------------------------------------------------------------------------- */

static int read_all(struct skv_pages *p, const char *path, struct skv_buf *out)
{
	FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
	int rc = SKV_EXIT_OK;
	size_t n = 1;

	if (!f)
		return skv_cli_usage(p->cli, "%s: %s", path, strerror(errno));
	while (n > 0 && skv_buf_reserve(out, 1u << 20)) {
		n = fread(out->data + out->len, 1, 1u << 20, f);
		out->len += n;
	}
	if (out->failed || ferror(f))
		rc = skv_cli_usage(p->cli, "%s: %s", path,
				   out->failed ? "out of memory" : strerror(errno));
	if (f != stdin)
		fclose(f);
	return rc;
}

/* The i-th pair after `before` (NULL: the first). False: it is none. */
static bool pair(const struct skv_json_node *list, const struct skv_json_node **at,
		 const struct skv_json_node **key, const struct skv_json_node **page)
{
	const struct skv_json_node *v = *at ? *at : skv_json_first(list);

	assert(list->n > 0 && (list->type == SKV_JSON_ARRAY || list->type == SKV_JSON_OBJECT));
	*at = skv_json_next(v);
	if (list->type == SKV_JSON_OBJECT) {
		*key = v;
		*page = *at;
		*at = skv_json_next(*at);
		return true;
	}
	if (v->type != SKV_JSON_ARRAY || v->n != 2)
		return false;
	*key = skv_json_first(v);
	*page = skv_json_next(*key);
	return (*key)->type != SKV_JSON_ARRAY && (*key)->type != SKV_JSON_OBJECT;
}

static uint8_t *page_of(const struct entry *e, const struct skv_json_node *v)
{
	return v->type == SKV_JSON_INTEGER && v->i >= 0 && (uint64_t)v->i < e->num_pages
		       ? &e->page[v->i]
		       : NULL;
}

/* Looks through it. */
static int mark_pages(struct skv_pages *p, struct entry *e)
{
	const struct skv_json_node *at = NULL, *key, *page;
	uint8_t *m;

	assert(e->num_pages <= PAGES_MAX);
	e->page = skv_calloc(e->num_pages + 1, 1);
	if (!e->page)
		return skv_cli_usage(p->cli, "out of memory");
	for (uint32_t i = 0; i < e->pairs->n; i++) {
		if (!pair(e->pairs, &at, &key, &page))
			return skv_cli_usage(p->cli,
					     "%" PRId64
					     ":%s: key_to_index[%u] is not a pair of key and page",
					     e->space.rank, e->space.ns, i);
		m = page_of(e, page);
		if (m)
			*m = (uint8_t)(*m & PAGE_MAPPED ? *m | PAGE_TWICE : *m | PAGE_MAPPED);
	}
	for (uint32_t i = 0; e->free && i < e->free->n; i++) {
		page = i ? skv_json_next(page) : skv_json_first(e->free);
		m = page_of(e, page);
		if (m)
			*m |= PAGE_FREE;
	}
	return SKV_EXIT_OK;
}

static int read_entry(struct skv_pages *p, const struct skv_json_node *name, struct skv_arena *a,
		      struct entry *e)
{
	const struct skv_json_node *v = skv_json_next(name), *n = skv_json_get(v, "num_pages", 9);
	const char *text = skv_arena_strndup(a, name->s, name->n);

	if (!text)
		return skv_cli_usage(p->cli, "out of memory");
	if (!skv_pages_space_parse(text, &e->space))
		return skv_cli_usage(
			p->cli, "'%s' is not rank:namespace: is this a metadata server's file?",
			text);
	e->pairs = skv_json_get(v, "key_to_index", 12);
	e->free = skv_json_get(v, "free_pages", 10);
	if (e->free && e->free->type != SKV_JSON_ARRAY)
		e->free = NULL;
	if (!n || n->type != SKV_JSON_INTEGER || n->i > (int64_t)PAGES_MAX || !e->pairs ||
	    (e->pairs->type != SKV_JSON_ARRAY && e->pairs->type != SKV_JSON_OBJECT))
		return skv_cli_usage(p->cli, "'%s': num_pages and key_to_index are needed", text);
	e->num_pages = n->i > 0 ? (uint64_t)n->i : 0;
	return skv_pages_wanted(p, &e->space) ? mark_pages(p, e) : SKV_EXIT_OK;
}

/* ---- sending --------------------------------------------------------------------------------- */

static int send_portion(struct skv_pages *p, struct entry *e, struct skv_buf *body)
{
	const struct skv_json_node *answer;
	int rc;

	skv_jout_close(body, ']');
	rc = skv_pages_call(p, "/v1/pages/import", body, &answer);
	if (rc != SKV_EXIT_OK)
		return rc;
	e->got.imported += skv_pages_u64(answer, "imported");
#define ADD(name, text) e->got.name += skv_pages_u64(answer, #name);
	SKIPS(ADD)
#undef ADD
	return SKV_EXIT_OK;
}

static void begin_portion(const struct skv_pages *p, const struct entry *e, struct skv_buf *body)
{
	skv_pages_body(p, &e->space, body);
	skv_jout_field_u64(body, "num_pages", e->num_pages);
	skv_jout_name(body, "keys");
	skv_jout_open(body, '[');
}

/* Counts rows that cannot be sent. */
static bool sendable(struct entry *e, const struct skv_json_node *page)
{
	const uint8_t *m = page_of(e, page);

	assert(!m || *m & PAGE_MAPPED); /* mark_pages has been here */
	e->got.outside += !m;
	e->got.ambiguous += m && *m != PAGE_MAPPED;
	return m && *m == PAGE_MAPPED;
}

/* An empty space is made, too. */
static int send_entry(struct skv_pages *p, struct entry *e, struct skv_buf *body)
{
	const struct skv_json_node *at = NULL, *key = NULL, *page = NULL;
	int rc = SKV_EXIT_OK;
	uint32_t n = 0;

	assert(p->portion >= 1 && p->portion <= SLABKV_MAX_KEYS);
	begin_portion(p, e, body);
	for (uint32_t i = 0; rc == SKV_EXIT_OK && i < e->pairs->n; i++) {
		pair(e->pairs, &at, &key, &page);
		if (!sendable(e, page))
			continue;
		skv_jout_open(body, '[');
		skv_pages_put_scalar(body, key);
		skv_jout_i64(body, page->i);
		skv_jout_close(body, ']');
		if (++n < p->portion)
			continue;
		rc = send_portion(p, e, body);
		begin_portion(p, e, body);
		n = 0;
		skv_pages_progress(p, "sent", &e->space, i + 1, e->pairs->n);
	}
	return rc == SKV_EXIT_OK && (n > 0 || e->pairs->n == 0) ? send_portion(p, e, body) : rc;
}

/* ---- results --------------------------------------------------------------------------------- */

static uint64_t skipped(const struct result *r)
{
	uint64_t n = 0;

#define SUM(name, text) n += r->name;
	SKIPS(SUM)
#undef SUM
	return n;
}

static void print_entry(const struct entry *e)
{
	const struct result *r = &e->got;

	printf("%" PRId64 ":%s: %" PRIu64 " imported, %" PRIu64 " skipped", e->space.rank,
	       e->space.ns, r->imported, skipped(r));
#define TELL(name, text)                                                \
	if (r->name)                                                    \
		printf(", %" PRIu64 " of them " text, r->name);
	SKIPS(TELL)
#undef TELL
	printf("\n");
}

static json_t *entry_json(const struct entry *e)
{
	json_t *reasons = json_object();

#define PUT(name, text) json_object_set_new(reasons, #name, json_integer((json_int_t)e->got.name));
	SKIPS(PUT)
#undef PUT
	return json_pack("{sI ss sI sI sI so}", "rank", (json_int_t)e->space.rank, "namespace",
			 e->space.ns, "num_pages", (json_int_t)e->num_pages, "imported",
			 (json_int_t)e->got.imported, "skipped", (json_int_t)skipped(&e->got),
			 "reasons", reasons);
}

static int report(const struct skv_pages *p, const struct entry *v, uint32_t n)
{
	json_t *out = json_array();

	for (uint32_t i = 0; i < n; i++) {
		if (!skv_pages_wanted(p, &v[i].space))
			continue;
		if (p->cli->json)
			json_array_append_new(out, entry_json(&v[i]));
		else
			print_entry(&v[i]);
	}
	if (p->cli->json)
		return skv_cli_print_json(json_pack("{so}", "spaces", out));
	json_decref(out);
	return SKV_EXIT_OK;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int import_entries(struct skv_pages *p, const struct skv_json_node *root,
			  struct skv_arena *a)
{
	struct entry *v = skv_arena_calloc(a, root->n + 1, sizeof *v);
	const struct skv_json_node *name = skv_json_first(root);
	struct skv_buf body = { 0 };
	int told, rc = v ? SKV_EXIT_OK : skv_cli_usage(p->cli, "out of memory");
	bool sent = false;

	for (uint32_t i = 0; rc == SKV_EXIT_OK && i < root->n;
	     i++, name = skv_json_next(skv_json_next(name)))
		rc = read_entry(p, name, a, &v[i]);
	for (uint32_t i = 0; rc == SKV_EXIT_OK && i < root->n; i++)
		if (skv_pages_wanted(p, &v[i].space)) {
			sent = true;
			rc = send_entry(p, &v[i], &body);
		}
	/* includes the work before a failure */
	told = sent || rc == SKV_EXIT_OK ? report(p, v, root->n) : rc;
	for (uint32_t i = 0; v && i < root->n; i++)
		skv_free(v[i].page);
	skv_buf_destroy(&body);
	return rc == SKV_EXIT_OK ? told : rc;
}

int skv_pages_import(struct skv_pages *p, const char *path)
{
	static const struct skv_json_limits limits = { .depth = 8, .values = (1u << 28) - 1,
						       .wide = true, .nul = true };
	struct skv_buf text = { 0 };
	struct skv_json_doc doc;
	struct skv_arena a;
	unsigned line, column;
	int rc = read_all(p, path, &text);

	skv_arena_init(&a);
	if (rc == SKV_EXIT_OK &&
	    !skv_json_parse(&doc, &a, (const char *)text.data, text.len, &limits)) {
		skv_json_line((const char *)text.data, doc.at, &line, &column);
		rc = skv_cli_usage(p->cli,
				   "%s: line %u, column %u: not JSON, or more than can be read",
				   path, line, column);
	}
	if (rc == SKV_EXIT_OK && doc.root->type != SKV_JSON_OBJECT)
		rc = skv_cli_usage(p->cli, "%s: not an object of spaces", path);
	if (rc == SKV_EXIT_OK)
		rc = import_entries(p, doc.root, &a);
	skv_arena_destroy(&a);
	skv_buf_destroy(&text);
	return rc;
}
