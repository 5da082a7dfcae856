/* refs.c - numbers the blocks of a trace. See refs.h. No state. */
#include "refs.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <skv/mem.h>

#define DAY_MS 86400000ull
#define MAX_GAP_MS (366 * DAY_MS)

struct numbers {
	uint32_t *cell; /* block + 1; open addressing */
	uint32_t mask;
};

static uint32_t *cell_of(const struct numbers *n, const struct refs *r, uint64_t id)
{
	uint32_t i = (uint32_t)(id * 0x9e3779b97f4a7c15u >> 32) & n->mask;

	while (n->cell[i] && r->id[n->cell[i] - 1] != id)
		i = (i + 1) & n->mask;
	return &n->cell[i];
}

static int allocate(const struct skv_trace *t, struct refs *r, struct numbers *n,
		    struct skv_error *err)
{
	uint64_t refs = 0, cells = 16;

	for (size_t i = 0; i < t->n; i++)
		refs += t->v[i].n_ids;
	if (refs >= 1ull << 31 || t->n >= 1ull << 31)
		return skv_fail(err, SKV_E_TOO_LARGE, NULL,
				"%s: over 2^31 references; use --requests", r->name);
	while (cells < 2 * refs)
		cells *= 2;
	r->n_requests = (uint32_t)t->n;
	r->n_refs = (uint32_t)refs;
	r->first = skv_calloc(t->n + 1, sizeof *r->first);
	r->at_ms = skv_calloc(t->n, sizeof *r->at_ms);
	r->ref = skv_calloc(refs, sizeof *r->ref);
	r->id = skv_calloc(refs, sizeof *r->id);
	r->parent = skv_calloc(refs, sizeof *r->parent);
	n->cell = skv_calloc(cells, sizeof *n->cell);
	n->mask = (uint32_t)(cells - 1);
	if (r->first && r->at_ms && r->ref && r->id && r->parent && n->cell)
		return SKV_OK;
	return skv_fail(err, SKV_E_NOMEM, NULL, "%s: out of memory", r->name);
}

/* `seen`: uses of each block, one and several. */
static int add_request(const struct skv_trace_request *q, uint32_t at, struct refs *r,
		       struct numbers *n, uint8_t *seen, struct skv_error *err)
{
	uint32_t before = NO_BLOCK, end = r->first[at];

	for (uint32_t i = 0; i < q->n_ids; i++) {
		uint32_t *cell = cell_of(n, r, q->ids[i]), block;

		if (!*cell) {
			assert(r->n_blocks < r->n_refs);
			r->id[r->n_blocks] = q->ids[i];
			r->parent[r->n_blocks] = before;
			*cell = ++r->n_blocks;
		}
		block = *cell - 1;
		if (r->parent[block] != before)
			return skv_fail(
				err, SKV_E_INVALID, "hash_ids",
				"%s: line %u: hash_ids[%u]: %llu followed another id before: ids "
				"must stand for their whole prefix",
				r->name, at + 1, i, (unsigned long long)q->ids[i]);
		seen[block] = (uint8_t)(seen[block] + (seen[block] < 2));
		r->ref[end++] = before = block;
	}
	assert(end <= r->n_refs);
	r->first[at + 1] = end;
	r->input_tokens += q->input_length;
	return SKV_OK;
}

/* Time since the first request; a request that is out of order happens with the one before.
 * A gap that no trace of requests has is a wrong unit most of the time: refused, because
 * full mode lives through it. */
static int add_time(const struct skv_trace *t, uint32_t i, struct refs *out, struct skv_error *err)
{
	uint64_t first = t->v[0].timestamp_ms,
		 at = t->v[i].timestamp_ms > first ? t->v[i].timestamp_ms - first : 0;
	uint64_t before = i ? out->at_ms[i - 1] : 0;

	if (at > before && at - before > MAX_GAP_MS)
		return skv_fail(
			err, SKV_E_INVALID, "timestamp",
			"%s: line %u: timestamp: %llu days after the line before, at most %llu; "
			"timestamps are milliseconds",
			out->name, i + 1, (unsigned long long)((at - before) / DAY_MS),
			(unsigned long long)(MAX_GAP_MS / DAY_MS));
	out->at_ms[i] = at < before ? before : at;
	assert(out->at_ms[i] >= before);
	return SKV_OK;
}

int refs_make(const struct skv_trace *t, const char *name, struct refs *out, struct skv_error *err)
{
	struct numbers n = { 0 };
	uint8_t *seen = NULL;
	int rc;

	memset(out, 0, sizeof *out);
	snprintf(out->name, sizeof out->name, "%s", name);
	rc = allocate(t, out, &n, err);
	if (rc == SKV_OK && !(seen = skv_calloc(out->n_refs, 1)))
		rc = skv_fail(err, SKV_E_NOMEM, NULL, "%s: out of memory", out->name);
	for (uint32_t i = 0; rc == SKV_OK && i < out->n_requests; i++) {
		rc = add_time(t, i, out, err);
		if (rc == SKV_OK)
			rc = add_request(&t->v[i], i, out, &n, seen, err);
	}
	for (uint32_t b = 0; rc == SKV_OK && b < out->n_blocks; b++)
		out->n_once += seen[b] == 1;
	assert(rc != SKV_OK ||
	       (out->first[out->n_requests] == out->n_refs && out->n_once <= out->n_blocks));
	skv_free(seen);
	skv_free(n.cell);
	return rc;
}

void refs_free(struct refs *r)
{
	skv_free(r->first);
	skv_free(r->ref);
	skv_free(r->at_ms);
	skv_free(r->id);
	skv_free(r->parent);
	memset(r, 0, sizeof *r);
}
