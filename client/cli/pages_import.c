/*
 * pages_import.c - kvblock pages import: upstream's persistence file into page spaces.
 *
 * The file is one object: "rank:namespace" (or "rank", which means kv) -> num_pages, free_pages, key_to_index, a list of
 * [key, page] in order of use, the oldest first. It is read and looked through as a whole before anything is sent.
 * Upstream's server saves while it works, so a page may stand there free and mapped at a time, or on two keys: nobody
 * knows whose bytes it has, so such keys are left out. One thread.
 */
#include "pages.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <kvb/json_out.h>
#include <kvb/mem.h>

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

/* One space of the file. */
struct entry {
	struct kvb_pages_space space;
	uint64_t num_pages;
	const struct kvb_json_node *pairs; /* array of pairs, or an object (the oldest releases) */
	const struct kvb_json_node *free;  /* array, or NULL */
	uint8_t *page;                     /* [num_pages] PAGE_* */
	struct result got;
};

/* ---- the file ---------------------------------------------------------------------------------- */

static int read_all(struct kvb_pages *p, const char *path, struct kvb_buf *out)
{
	FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
	int rc = KVB_EXIT_OK;
	size_t n = 1;

	if (!f)
		return kvb_cli_usage(p->cli, "%s: %s", path, strerror(errno));
	while (n > 0 && kvb_buf_reserve(out, 1u << 20)) {
		n = fread(out->data + out->len, 1, 1u << 20, f);
		out->len += n;
	}
	if (out->failed || ferror(f))
		rc = kvb_cli_usage(p->cli, "%s: %s", path, out->failed ? "out of memory" : strerror(errno));
	if (f != stdin)
		fclose(f);
	return rc;
}

/* The i-th pair after `before` (NULL: the first). False: it is none. */
static bool pair(const struct kvb_json_node *list, const struct kvb_json_node **at, const struct kvb_json_node **key,
		 const struct kvb_json_node **page)
{
	const struct kvb_json_node *v = *at ? *at : kvb_json_first(list);

	*at = kvb_json_next(v);
	if (list->type == KVB_JSON_OBJECT) {
		*key = v;
		*page = *at;
		*at = kvb_json_next(*at);
		return true;
	}
	if (v->type != KVB_JSON_ARRAY || v->n != 2)
		return false;
	*key = kvb_json_first(v);
	*page = kvb_json_next(*key);
	return (*key)->type != KVB_JSON_ARRAY && (*key)->type != KVB_JSON_OBJECT;
}

static uint8_t *page_of(const struct entry *e, const struct kvb_json_node *v)
{
	return v->type == KVB_JSON_INTEGER && v->i >= 0 && (uint64_t)v->i < e->num_pages ? &e->page[v->i] : NULL;
}

/* Looks through it. */
static int mark_pages(struct kvb_pages *p, struct entry *e)
{
	const struct kvb_json_node *at = NULL, *key, *page;
	uint8_t *m;

	e->page = kvb_calloc(e->num_pages + 1, 1);
	if (!e->page)
		return kvb_cli_usage(p->cli, "out of memory");
	for (uint32_t i = 0; i < e->pairs->n; i++) {
		if (!pair(e->pairs, &at, &key, &page))
			return kvb_cli_usage(p->cli, "%" PRId64 ":%s: key_to_index[%u] is no pair of key and page", e->space.rank,
					     e->space.ns, i);
		m = page_of(e, page);
		if (m)
			*m = (uint8_t)(*m & PAGE_MAPPED ? *m | PAGE_TWICE : *m | PAGE_MAPPED);
	}
	for (uint32_t i = 0; e->free && i < e->free->n; i++) {
		page = i ? kvb_json_next(page) : kvb_json_first(e->free);
		m = page_of(e, page);
		if (m)
			*m |= PAGE_FREE;
	}
	return KVB_EXIT_OK;
}

static int read_entry(struct kvb_pages *p, const struct kvb_json_node *name, struct kvb_arena *a, struct entry *e)
{
	const struct kvb_json_node *v = kvb_json_next(name), *n = kvb_json_get(v, "num_pages", 9);
	const char *text = kvb_arena_strndup(a, name->s, name->n);

	if (!text)
		return kvb_cli_usage(p->cli, "out of memory");
	if (!kvb_pages_space_parse(text, &e->space))
		return kvb_cli_usage(p->cli, "'%s' is no rank:namespace: no file of a metadata server?", text);
	e->pairs = kvb_json_get(v, "key_to_index", 12);
	e->free = kvb_json_get(v, "free_pages", 10);
	if (e->free && e->free->type != KVB_JSON_ARRAY)
		e->free = NULL;
	if (!n || n->type != KVB_JSON_INTEGER || n->i > (int64_t)PAGES_MAX || !e->pairs ||
	    (e->pairs->type != KVB_JSON_ARRAY && e->pairs->type != KVB_JSON_OBJECT))
		return kvb_cli_usage(p->cli, "'%s': num_pages and key_to_index are needed", text);
	e->num_pages = n->i > 0 ? (uint64_t)n->i : 0;
	return kvb_pages_wanted(p, &e->space) ? mark_pages(p, e) : KVB_EXIT_OK;
}

/* ---- sending ----------------------------------------------------------------------------------- */

static int send_portion(struct kvb_pages *p, struct entry *e, struct kvb_buf *body)
{
	const struct kvb_json_node *answer;
	int rc;

	kvb_jout_close(body, ']');
	rc = kvb_pages_call(p, "/v1/pages/import", body, &answer);
	if (rc != KVB_EXIT_OK)
		return rc;
	e->got.imported += kvb_pages_u64(answer, "imported");
#define ADD(name, text) e->got.name += kvb_pages_u64(answer, #name);
	SKIPS(ADD)
#undef ADD
	return KVB_EXIT_OK;
}

static void begin_portion(const struct kvb_pages *p, const struct entry *e, struct kvb_buf *body)
{
	kvb_pages_body(p, &e->space, body);
	kvb_jout_field_u64(body, "num_pages", e->num_pages);
	kvb_jout_name(body, "keys");
	kvb_jout_open(body, '[');
}

/* Counts what cannot be sent. */
static bool sendable(struct entry *e, const struct kvb_json_node *page)
{
	const uint8_t *m = page_of(e, page);

	e->got.outside += !m;
	e->got.ambiguous += m && *m != PAGE_MAPPED;
	return m && *m == PAGE_MAPPED;
}

/* An empty space is made, too. */
static int send_entry(struct kvb_pages *p, struct entry *e, struct kvb_buf *body)
{
	const struct kvb_json_node *at = NULL, *key, *page;
	int rc = KVB_EXIT_OK;
	uint32_t n = 0;

	begin_portion(p, e, body);
	for (uint32_t i = 0; rc == KVB_EXIT_OK && i < e->pairs->n; i++) {
		pair(e->pairs, &at, &key, &page);
		if (!sendable(e, page))
			continue;
		kvb_jout_open(body, '[');
		kvb_pages_put_scalar(body, key);
		kvb_jout_i64(body, page->i);
		kvb_jout_close(body, ']');
		if (++n < p->portion)
			continue;
		rc = send_portion(p, e, body);
		begin_portion(p, e, body);
		n = 0;
		kvb_pages_progress(p, "sent", &e->space, i + 1, e->pairs->n);
	}
	return rc == KVB_EXIT_OK && (n > 0 || e->pairs->n == 0) ? send_portion(p, e, body) : rc;
}

/* ---- what came of it --------------------------------------------------------------------------- */

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

	printf("%" PRId64 ":%s: %" PRIu64 " imported, %" PRIu64 " skipped", e->space.rank, e->space.ns, r->imported,
	       skipped(r));
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
	return json_pack("{sI ss sI sI sI so}", "rank", (json_int_t)e->space.rank, "namespace", e->space.ns, "num_pages",
			 (json_int_t)e->num_pages, "imported", (json_int_t)e->got.imported, "skipped",
			 (json_int_t)skipped(&e->got), "reasons", reasons);
}

static int report(const struct kvb_pages *p, const struct entry *v, uint32_t n)
{
	json_t *out = json_array();

	for (uint32_t i = 0; i < n; i++) {
		if (!kvb_pages_wanted(p, &v[i].space))
			continue;
		if (p->cli->json)
			json_array_append_new(out, entry_json(&v[i]));
		else
			print_entry(&v[i]);
	}
	if (p->cli->json)
		return kvb_cli_print_json(json_pack("{so}", "spaces", out));
	json_decref(out);
	return KVB_EXIT_OK;
}

/* ---- all of it --------------------------------------------------------------------------------- */

static int import_entries(struct kvb_pages *p, const struct kvb_json_node *root, struct kvb_arena *a)
{
	struct entry *v = kvb_arena_calloc(a, root->n + 1, sizeof *v);
	const struct kvb_json_node *name = kvb_json_first(root);
	struct kvb_buf body = { 0 };
	int told, rc = v ? KVB_EXIT_OK : kvb_cli_usage(p->cli, "out of memory");
	bool sent = false;

	for (uint32_t i = 0; rc == KVB_EXIT_OK && i < root->n; i++, name = kvb_json_next(kvb_json_next(name)))
		rc = read_entry(p, name, a, &v[i]);
	for (uint32_t i = 0; rc == KVB_EXIT_OK && i < root->n; i++)
		if (kvb_pages_wanted(p, &v[i].space)) {
			sent = true;
			rc = send_entry(p, &v[i], &body);
		}
	told = sent || rc == KVB_EXIT_OK ? report(p, v, root->n) : rc; /* also what was done before a failure */
	for (uint32_t i = 0; v && i < root->n; i++)
		kvb_free(v[i].page);
	kvb_buf_destroy(&body);
	return rc == KVB_EXIT_OK ? told : rc;
}

int kvb_pages_import(struct kvb_pages *p, const char *path)
{
	static const struct kvb_json_limits limits = { .depth = 8, .values = (1u << 28) - 1, .wide = true, .nul = true };
	struct kvb_buf text = { 0 };
	struct kvb_json_doc doc;
	struct kvb_arena a;
	unsigned line, column;
	int rc = read_all(p, path, &text);

	kvb_arena_init(&a);
	if (rc == KVB_EXIT_OK && !kvb_json_parse(&doc, &a, (const char *)text.data, text.len, &limits)) {
		kvb_json_line((const char *)text.data, doc.at, &line, &column);
		rc = kvb_cli_usage(p->cli, "%s: line %u, column %u: not JSON, or more than can be read", path, line, column);
	}
	if (rc == KVB_EXIT_OK && doc.root->type != KVB_JSON_OBJECT)
		rc = kvb_cli_usage(p->cli, "%s: not an object of spaces", path);
	if (rc == KVB_EXIT_OK)
		rc = import_entries(p, doc.root, &a);
	kvb_arena_destroy(&a);
	kvb_buf_destroy(&text);
	return rc;
}
