/* trace.c - reads trace files strictly: a line that is not a request is an error with its number,
 * never skipped, since a replay of half a trace would print numbers that mean something else. No
 * state. */
#include "trace.h"

#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <kvb/mem.h>
#include <kvb/status.h>
#include <kvblock.h>

static const char *read_number(const json_t *line, const char *name, uint64_t *out)
{
	const json_t *v = json_object_get(line, name);

	if (!json_is_integer(v) || json_integer_value(v) < 0)
		return "is missing or not a number >= 0";
	*out = (uint64_t)json_integer_value(v);
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

static const char *read_ids(const json_t *line, struct kvb_trace_request *r, const char *name)
{
	const json_t *ids = json_object_get(line, name);
	size_t n = json_array_size(ids);

	if (!json_is_array(ids))
		return "is missing or not a list";
	if (n > KVBLOCK_MAX_KEYS)
		return "has more than 16384 ids";
	r->ids = kvb_calloc(2 * n, sizeof *r->ids); /* the second half is for sorting */
	if (!r->ids)
		return "does not fit into memory";
	for (size_t i = 0; i < n; i++) {
		const json_t *id = json_array_get(ids, i);

		if (!json_is_integer(id) || json_integer_value(id) < 0)
			return "holds something that is not a number >= 0";
		r->ids[i] = (uint64_t)json_integer_value(id);
	}
	r->n_ids = (uint32_t)n;
	return has_twins(r->ids, r->ids + n, r->n_ids) ? "holds an id twice" : NULL;
}

static int read_request(const char *text, size_t n, size_t number, struct kvb_trace_request *r,
			char *why)
{
	json_error_t e;
	json_t *line = json_loadb(text, n, JSON_REJECT_DUPLICATES, &e);
	const char *field = "timestamp";
	const char *wrong;

	memset(r, 0, sizeof *r);
	if (!json_is_object(line)) {
		snprintf(why, 256, "line %zu: %s", number, line ? "not a JSON object" : e.text);
		json_decref(line);
		return -1;
	}
	wrong = read_number(line, field, &r->timestamp_ms);
	if (!wrong)
		wrong = read_number(line, field = "input_length", &r->input_length);
	if (!wrong)
		wrong = read_number(line, field = "output_length", &r->output_length);
	if (!wrong)
		wrong = read_ids(line, r, field = "hash_ids");
	if (wrong)
		snprintf(why, 256, "line %zu: %s %s", number, field, wrong);
	json_decref(line);
	if (wrong)
		kvb_free(r->ids);
	return wrong ? -1 : 0;
}

int kvb_trace_read(FILE *in, size_t limit, struct kvb_trace *out, char *why)
{
	char *text = NULL;
	size_t room = 0;
	ssize_t n;
	int rc = 0;

	*out = (struct kvb_trace){ 0 };
	while (rc == 0 && (limit == 0 || out->n < limit) && (n = getline(&text, &room, in)) >= 0) {
		if (kvb_grow((void **)&out->v, &out->cap, out->n + 1, sizeof *out->v) != KVB_OK) {
			snprintf(why, 256, "out of memory at line %zu", out->n + 1);
			rc = -1;
		} else {
			rc = read_request(text, (size_t)n, out->n + 1, &out->v[out->n], why);
			out->n += rc == 0;
		}
	}
	if (rc == 0 && ferror(in)) {
		snprintf(why, 256, "line %zu: %s", out->n + 1, strerror(errno));
		rc = -1;
	}
	free(text);
	if (rc != 0)
		kvb_trace_free(out);
	return rc;
}

void kvb_trace_free(struct kvb_trace *t)
{
	for (size_t i = 0; i < t->n; i++)
		kvb_free(t->v[i].ids);
	kvb_free(t->v);
	*t = (struct kvb_trace){ 0 };
}
