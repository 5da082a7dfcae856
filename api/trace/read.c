/* read.c - reads and writes trace files: JSON lines. See skv/trace.h. Stateless. */
#include <skv/trace.h>

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <skv/json.h>
#include <skv/limits.h>
#include <skv/mem.h>
#include <skv/status.h>

#define MAX_VALUES (4u * SKV_MAX_KEYS) /* per line: more ids than allowed, and some other fields */
#define MAX_WHY 256u

static const char *read_number(const struct skv_json_node *line, const char *name, uint64_t *out)
{
	const struct skv_json_node *v = skv_json_get(line, name, strlen(name));

	if (!v || v->type != SKV_JSON_INTEGER || v->i < 0)
		return "is missing or not a number >= 0";
	*out = (uint64_t)v->i;
	return NULL;
}

/* Milliseconds; a fraction of one is cut off. */
static const char *read_time(const struct skv_json_node *line, const char *name, uint64_t *out)
{
	const struct skv_json_node *v = skv_json_get(line, name, strlen(name));
	char text[64];
	double ms;

	if (!v || v->type != SKV_JSON_REAL)
		return read_number(line, name, out);
	snprintf(text, sizeof text, "%.*s", (int)(v->n < sizeof text ? v->n : sizeof text - 1),
		 v->s);
	ms = strtod(text, NULL);
	if (v->n >= sizeof text || !(ms >= 0 && ms <= (double)SKV_MAX_WALL_MS))
		return "is not a number of milliseconds, 0 to 2^53 - 1";
	*out = (uint64_t)ms;
	return NULL;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* `sorted`: room for n. */
static bool has_twins(const uint64_t *ids, uint64_t *sorted, uint32_t n)
{
	if (n == 0)
		return false;
	memcpy(sorted, ids, n * sizeof *sorted);
	qsort(sorted, n, sizeof *sorted, by_value);
	for (uint32_t i = 1; i < n; i++)
		if (sorted[i] == sorted[i - 1])
			return true;
	return false;
}

static const char *read_ids(const struct skv_json_node *line, struct skv_trace_request *r,
			    struct skv_arena *a, const char *name)
{
	const struct skv_json_node *ids = skv_json_get(line, name, strlen(name)), *e;
	uint64_t *sorted;

	if (!ids || ids->type != SKV_JSON_ARRAY)
		return "is missing or not a list";
	if (ids->n > SKV_MAX_KEYS)
		return "has more than 16384 ids";
	r->ids = skv_calloc(ids->n, sizeof *r->ids);
	sorted = skv_arena_alloc(a, ids->n * sizeof *sorted);
	if (!r->ids || !sorted)
		return "does not fit into memory";
	e = ids->n ? skv_json_first(ids) : NULL;
	for (uint32_t i = 0; i < ids->n; i++, e = skv_json_next(e)) {
		if (e->type != SKV_JSON_UNSIGNED && (e->type != SKV_JSON_INTEGER || e->i < 0))
			return "holds something that is not a number >= 0";
		r->ids[i] = e->type == SKV_JSON_UNSIGNED ? e->u : (uint64_t)e->i;
	}
	assert(ids->n <= SKV_MAX_KEYS);
	r->n_ids = ids->n;
	return has_twins(r->ids, sorted, r->n_ids) ? "holds an id twice" : NULL;
}

static const char *fault_text(const struct skv_json_doc *doc)
{
	static const char *const texts[] = {
		[SKV_JSON_UTF8] = "not UTF-8",
		[SKV_JSON_NUL] = "a zero character in a string",
		[SKV_JSON_NUMBER] = "too large a number",
		[SKV_JSON_TWICE] = "a field is given twice",
		[SKV_JSON_LIMIT] = "too many values",	 [SKV_JSON_NOMEM] = "out of memory",
	};

	return doc->fault == SKV_JSON_SYNTAX ? doc->what : texts[doc->fault];
}

static int read_request(const char *text, size_t n, size_t number, struct skv_arena *a,
			struct skv_trace_request *r, char *why)
{
	const struct skv_json_limits limits = { .depth = 16, .values = MAX_VALUES, .wide = true };
	const char *field = "timestamp", *wrong;
	struct skv_json_doc doc;

	memset(r, 0, sizeof *r);
	if (!skv_json_parse(&doc, a, text, n, &limits) || doc.root->type != SKV_JSON_OBJECT) {
		snprintf(why, MAX_WHY, "line %zu: %s", number,
			 doc.root ? "not a JSON object" : fault_text(&doc));
		return -1;
	}
	wrong = read_time(doc.root, field, &r->timestamp_ms);
	if (!wrong)
		wrong = read_number(doc.root, field = "input_length", &r->input_length);
	if (!wrong)
		wrong = read_number(doc.root, field = "output_length", &r->output_length);
	if (!wrong)
		wrong = read_ids(doc.root, r, a, field = "hash_ids");
	if (!wrong)
		return 0;
	snprintf(why, MAX_WHY, "line %zu: %s %s", number, field, wrong);
	skv_free(r->ids);
	return -1;
}

static int read_lines(FILE *in, size_t limit, struct skv_arena *a, struct skv_trace *t, char *why)
{
	char *text = NULL;
	size_t room = 0;
	ssize_t n;
	int rc = 0;

	while (rc == 0 && (limit == 0 || t->n < limit) && (n = getline(&text, &room, in)) >= 0) {
		skv_arena_reset(a);
		if (skv_grow((void **)&t->v, &t->cap, t->n + 1, sizeof *t->v) != SKV_OK) {
			snprintf(why, MAX_WHY, "out of memory at line %zu", t->n + 1);
			rc = -1;
		} else {
			assert(t->n < t->cap && (limit == 0 || t->n < limit));
			rc = read_request(text, (size_t)n, t->n + 1, a, &t->v[t->n], why);
			t->n += rc == 0;
		}
	}
	if (rc == 0 && ferror(in)) {
		snprintf(why, MAX_WHY, "line %zu: %s", t->n + 1, strerror(errno));
		rc = -1;
	}
	free(text);
	return rc;
}

int skv_trace_read(FILE *in, size_t limit, struct skv_trace *out, char *why)
{
	struct skv_arena a;
	int rc;

	*out = (struct skv_trace){ 0 };
	skv_arena_init(&a);
	rc = read_lines(in, limit, &a, out, why);
	skv_arena_destroy(&a);
	if (rc != 0)
		skv_trace_free(out);
	return rc;
}

int skv_trace_write(const struct skv_trace *t, FILE *out)
{
	for (size_t i = 0; i < t->n && !ferror(out); i++) {
		const struct skv_trace_request *r = &t->v[i];

		fprintf(out,
			"{\"timestamp\": %" PRIu64 ", \"input_length\": %" PRIu64
			", \"output_length\": %" PRIu64 ", \"hash_ids\": [",
			r->timestamp_ms, r->input_length, r->output_length);
		for (uint32_t k = 0; k < r->n_ids; k++)
			fprintf(out, "%s%" PRIu64, k ? ", " : "", r->ids[k]);
		fputs("]}\n", out);
	}
	return !ferror(out) && fflush(out) == 0 ? 0 : -1;
}

void skv_trace_free(struct skv_trace *t)
{
	for (size_t i = 0; i < t->n; i++)
		skv_free(t->v[i].ids);
	skv_free(t->v);
	*t = (struct skv_trace){ 0 };
}
