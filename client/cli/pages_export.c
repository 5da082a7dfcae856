/*
 * pages_export.c - slabkv pages export: writes page spaces to upstream's persistence file.
 *
 * The manager lists keys in portions and without order, while other clients work: a page that is
 * listed twice has the key listed last. The keys are sorted by use, the oldest first, as in
 * upstream's own file. One thread.
 */
#include "outfile.h"
#include "pages.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <skv/json_out.h>
#include <skv/mem.h>

struct row {
	uint64_t use;
	uint64_t page;
	size_t at; /* of the key in `keys` */
	uint32_t n;
	uint32_t turn; /* order of arrival */
};

/* Rows and keys collected from one space. */
struct gathered {
	struct row *row;
	size_t n, cap;
	struct skv_buf keys; /* as JSON, one after the other */
	uint64_t num_pages;
};

/* ---- gathering ------------------------------------------------------------------------------- */

static bool add_row(struct gathered *g, const struct skv_json_node *v)
{
	const struct skv_json_node *key = skv_json_first(v), *page = skv_json_next(key),
				   *use = skv_json_next(page);
	size_t at = g->keys.len;
	void *rows = g->row;
	bool grown = skv_grow(&rows, &g->cap, g->n + 1, sizeof *g->row) == 0;

	assert(v->type == SKV_JSON_ARRAY && v->n == 3);
	g->row = rows;
	if (!grown || page->type != SKV_JSON_INTEGER || page->i < 0 ||
	    use->type != SKV_JSON_INTEGER)
		return false;
	assert(g->n < g->cap);
	skv_put_u8(&g->keys, '['); /* no comma before it */
	skv_pages_put_scalar(&g->keys, key);
	g->row[g->n] = (struct row){ (uint64_t)use->i, (uint64_t)page->i, at + 1,
				     (uint32_t)(g->keys.len - at - 1), (uint32_t)g->n };
	g->n++;
	return !g->keys.failed;
}

static bool add_rows(struct gathered *g, const struct skv_json_node *list)
{
	const struct skv_json_node *v = skv_json_first(list);

	for (uint32_t i = 0; i < list->n; i++, v = skv_json_next(v))
		if (v->type != SKV_JSON_ARRAY || v->n != 3 || !add_row(g, v))
			return false;
	return true;
}

static int gather(struct skv_pages *p, const struct skv_pages_space *s, struct gathered *g)
{
	const struct skv_json_node *answer, *list;
	struct skv_buf body = { 0 };
	uint64_t next = 0;
	int rc;

	g->n = 0;
	skv_buf_clear(&g->keys);
	do {
		skv_pages_body(p, s, &body);
		skv_jout_field_u64(&body, "cursor", next);
		skv_jout_field_u64(&body, "max", SLABKV_MAX_KEYS);
		rc = skv_pages_call(p, "/v1/pages/export", &body, &answer);
		if (rc != SKV_EXIT_OK)
			break;
		g->num_pages = skv_pages_u64(answer, "num_pages");
		next = skv_pages_u64(answer, "next");
		list = skv_json_get(answer, "keys", 4);
		if (!list || list->type != SKV_JSON_ARRAY || !add_rows(g, list)) {
			skv_cli_tell(p->cli, "internal",
				     "out of memory, or not an export's answer");
			rc = SKV_EXIT_REFUSED;
		}
		skv_pages_progress(p, "read", s, g->n, g->num_pages);
	} while (rc == SKV_EXIT_OK && next);
	skv_buf_destroy(&body);
	return rc;
}

static int by_page(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->page != y->page)
		return x->page < y->page ? -1 : 1;
	return x->turn < y->turn ? -1 : 1;
}

static int by_use(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->use != y->use)
		return x->use < y->use ? -1 : 1;
	return x->turn < y->turn ? -1 : 1;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Keeps one row for each page, the latest. Leaves the rows in page order. */
static void drop_stale(struct gathered *g)
{
	size_t kept = 0;

	qsort(g->row, g->n, sizeof *g->row, by_page);
	for (size_t i = 0; i < g->n; i++)
		if (i + 1 == g->n || g->row[i + 1].page != g->row[i].page)
			g->row[kept++] = g->row[i];
	g->n = kept;
}

/* For rows in page order: the pages between them are free. */
static void put_free(const struct gathered *g, FILE *f)
{
	const char *comma = "";
	uint64_t page = 0;

	for (size_t i = 0; i <= g->n; i++) {
		uint64_t end = i < g->n ? g->row[i].page : g->num_pages;

		/* as drop_stale leaves them */
		assert(i == 0 || i == g->n || g->row[i - 1].page < end);
		for (; page < end; page++, comma = ", ")
			fprintf(f, "%s%" PRIu64, comma, page);
		page = end + 1;
	}
}

static void put_space(const struct skv_pages_space *s, struct gathered *g, bool first, FILE *f)
{
	struct skv_buf name = { 0 }, text = { 0 };

	skv_buf_printf(&name, "%" PRId64 ":%s", s->rank, s->ns);
	skv_jout_string_n(&text, (const char *)name.data, name.len);
	fputs(first ? "{\n" : ",\n", f);
	fwrite(text.data, 1, text.len, f);
	fprintf(f, ": {\n\"num_pages\": %" PRIu64 ",\n\"free_pages\": [", g->num_pages);
	drop_stale(g);
	put_free(g, f);
	fputs("],\n\"key_to_index\": [", f);
	qsort(g->row, g->n, sizeof *g->row, by_use);
	for (size_t i = 0; i < g->n; i++) {
		assert(g->row[i].at + g->row[i].n <= g->keys.len);
		/* the oldest first, as upstream reads them */
		assert(i == 0 || g->row[i - 1].use <= g->row[i].use);
		fputs(i ? ",\n[" : "\n[", f);
		fwrite(g->keys.data + g->row[i].at, 1, g->row[i].n, f);
		fprintf(f, ", %" PRIu64 "]", g->row[i].page);
	}
	fputs("]}", f);
	skv_buf_destroy(&name);
	skv_buf_destroy(&text);
}

static int put_spaces(struct skv_pages *p, const struct skv_pages_space *v, uint32_t n, FILE *f,
		      json_t *out)
{
	struct gathered g = { 0 };
	int rc = SKV_EXIT_OK;

	for (uint32_t i = 0; rc == SKV_EXIT_OK && i < n; i++) {
		rc = gather(p, &v[i], &g);
		if (rc != SKV_EXIT_OK)
			break;
		put_space(&v[i], &g, i == 0, f);
		json_array_append_new(out,
				      json_pack("{sI ss sI sI}", "rank", (json_int_t)v[i].rank,
						"namespace", v[i].ns, "num_pages",
						(json_int_t)g.num_pages, "keys", (json_int_t)g.n));
	}
	fputs(n ? "\n}\n" : "{}\n", f);
	skv_free(g.row);
	skv_buf_destroy(&g.keys);
	return rc;
}

/* On stdout only when the file is not there. */
static int report(const struct skv_pages *p, bool to_stdout, json_t *out)
{
	const json_t *s;
	size_t i;

	if (p->cli->json && !to_stdout)
		return skv_cli_print_json(json_pack("{so}", "spaces", out));
	json_array_foreach(out, i, s) fprintf(
		to_stdout ? stderr : stdout, "%lld:%s: %" PRIu64 " keys of %" PRIu64 " pages\n",
		(long long)json_integer_value(json_object_get(s, "rank")),
		skv_cli_text(s, "namespace"), skv_cli_u64(s, "keys"), skv_cli_u64(s, "num_pages"));
	json_decref(out);
	return SKV_EXIT_OK;
}

static int export_to(struct skv_pages *p, const char *path, json_t *out)
{
	struct skv_pages_space *v = skv_calloc(SKV_PAGES_SPACES_MAX, sizeof *v);
	struct skv_outfile file = { 0 };
	struct skv_arena names;
	uint32_t n;
	int rc = v ? SKV_EXIT_OK : skv_cli_usage(p->cli, "out of memory");

	skv_arena_init(&names);
	if (rc == SKV_EXIT_OK)
		rc = skv_pages_find(p, v, &n, &names);
	if (rc == SKV_EXIT_OK)
		rc = skv_outfile_begin(p->cli, path, &file);
	if (rc == SKV_EXIT_OK)
		rc = put_spaces(p, v, n, file.f, out);
	rc = skv_outfile_end(p->cli, &file, rc);
	skv_arena_destroy(&names);
	skv_free(v);
	return rc;
}

int skv_pages_export(struct skv_pages *p, const char *path)
{
	json_t *out = json_array();
	int rc = export_to(p, path, out);

	if (rc == SKV_EXIT_OK)
		return report(p, strcmp(path, "-") == 0, out);
	json_decref(out);
	return rc;
}
