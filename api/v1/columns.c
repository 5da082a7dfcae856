/*
 * columns.c - writes which blocks of an answer are located, and their columns of locations, in
 * protobuf or in JSON: the same fields, and both leave out what is 0.
 *
 * A column is written in one pass for its runs, one for its generations and one for its checksums.
 *
 * No state; any thread.
 */
#include "columns.h"
#include "pb.h"

#include <assert.h>
#include <skv/check.h>

#include <skv/json_out.h>

/* Most bytes of a run or series; in JSON a run of five fields has 131. */
#define PART_MAX ((size_t)160)
#define CHECKSUM_MAX ((size_t)19)
#define USUAL ((size_t)32) /* bytes of a location without neighbours, to grow the buffer once */

static_assert(sizeof(bool) == 1, "marks are bytes");

/* ---- both forms ------------------------------------------------------------------------------ */

enum kind { UNSIGNED = 0, SIGNED = 1, TEXT = 2, FLAG = 4 }; /* TEXT: in JSON a decimal string */

/* A field of a run or series. */
static inline uint8_t *put_field(uint8_t *p, bool json, uint32_t num, const char *name, uint64_t v,
				 unsigned kind)
{
	char *s = (char *)p;
	bool negative;

	if (!json)
		return skv_pb_raw_uint(p, num, kind & SIGNED ? skv_pb_zigzag(v) : v);
	if (v == 0)
		return p;
	negative = kind & SIGNED && v > INT64_MAX;
	*s++ = '"';
	s = skv_jraw_bytes(s, name, strlen(name));
	s = skv_jraw_text(s, "\":");
	if (kind & TEXT)
		*s++ = '"';
	if (negative)
		*s++ = '-';
	s = kind & FLAG ? skv_jraw_text(s, "true")
	    : kind      ? skv_jraw_digits(s, negative ? 0 - v : v)
			: skv_jraw_u64(s, v);
	if (kind & TEXT)
		*s++ = '"';
	*s++ = ',';
	return (uint8_t *)s;
}

/* Begins a list or an object; returns what the end takes. In protobuf field `num`, or nothing (0);
 * in JSON the field `name`, or an element (NULL). */
static size_t begin_field(struct skv_buf *b, bool json, uint32_t num, const char *name,
			  char bracket)
{
	if (!json)
		return num ? skv_pb_put_begin(b, num, 0) : 0;
	if (name)
		skv_jout_name(b, name);
	skv_jout_open(b, bracket);
	return 0;
}

static void end_field(struct skv_buf *b, bool json, size_t begin, char bracket)
{
	if (json)
		skv_jout_close(b, bracket);
	else if (begin)
		skv_pb_put_end(b, begin);
}

/* Begins a run or series behind `p`, with room for all of it; `p` NULL: at the buffer's end. NULL:
 * out of memory. */
static inline uint8_t *begin_part(struct skv_buf *b, uint8_t *p, bool json, uint32_t num)
{
	if (!p || (size_t)(b->data + b->cap - p) < PART_MAX) {
		if (p)
			skv_jraw_end(b, (const char *)p);
		p = (uint8_t *)skv_jraw_begin(b, PART_MAX);
		if (!p)
			return NULL;
	}
	if (!json) {
		*p = (uint8_t)(num << 3 | PB_BYTES);
		return p + 2;
	}
	if (p[-1] != '[')
		*p++ = ',';
	*p++ = '{';
	return p;
}

static inline uint8_t *end_part(uint8_t *begin, uint8_t *p, bool json)
{
	if (json) {
		SKV_CHECK((size_t)(p - begin) < PART_MAX - 2);
		p -= p[-1] == ',';
		*p++ = '}';
	} else {
		SKV_CHECK(p - begin < 0x80); /* a length of one byte: at most 46 */
		begin[-1] = (uint8_t)(p - begin);
	}
	return p;
}

/* Ends a list of runs or series behind `p`; NULL: it is empty, or there was no memory. */
static void end_parts(struct skv_buf *b, uint8_t *p, bool json)
{
	if (p)
		skv_jraw_end(b, (const char *)p);
	end_field(b, json, 0, ']');
}

static inline void put_number(struct skv_buf *b, bool json, uint32_t v)
{
	if (json)
		skv_jout_u64(b, v);
	else
		skv_put_varint(b, v);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* A walk over the located rows of a column. */
struct walk {
	const struct skv_location *l; /* of this row */
	const uint8_t *mark;
	uint32_t left; /* rows, from this one on */
	uint32_t step;
	uint8_t located;
};

static inline struct walk walk_rows(const struct skv_col_rows *rows, const struct skv_location *loc)
{
	return (struct walk){ loc, rows->mark, rows->n_rows, rows->n_specs, rows->located };
}

static inline void pass_row(struct walk *w)
{
	w->mark++;
	w->left--;
	w->l += w->step;
}

/* Moves to a located row, unless it is at one. False: there is none. */
static inline bool find_row(struct walk *w)
{
	while (w->left > 0 && *w->mark != w->located)
		pass_row(w);
	return w->left > 0;
}

/* The same, to a row whose location exists. */
static inline bool find_there(struct walk *w)
{
	while (find_row(w) && w->l->length == 0)
		pass_row(w);
	return w->left > 0;
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* `usual`: the column's length; `unsummed`: without checksums, though others of it have them. */
static uint8_t *put_run(struct skv_buf *b, uint8_t *p, bool json, const struct skv_col_run *run,
			uint64_t usual, bool unsummed)
{
	uint8_t *begin = p = begin_part(b, p, json, COL_RUNS);

	SKV_CHECK(run->more < SKV_MAX_KEYS);
	if (!p)
		return NULL;
	p = put_field(p, json, RUN_MORE, "more", run->more, UNSIGNED);
	if (run->length) {
		p = put_field(p, json, RUN_FILE, "file", run->file, UNSIGNED);
		p = put_field(p, json, RUN_OFFSET, "offset", run->offset, UNSIGNED);
		if (run->more && run->stride != run->length)
			p = put_field(p, json, RUN_STRIDE, "stride", run->stride, SIGNED);
		if (run->length != usual)
			p = put_field(p, json, RUN_LENGTH, "length", run->length, UNSIGNED);
	} else {
		p = put_field(p, json, RUN_ABSENT, "absent", true, FLAG);
	}
	p = put_field(p, json, RUN_UNSUMMED, "unsummed", unsummed, FLAG);
	return end_part(begin, p, json);
}

/* Returns true if the location continues the run. */
static inline bool continues_run(struct skv_col_run *run, const struct skv_location *l)
{
	const uint64_t step = l->offset - run->last;

	if (l->length != run->length)
		return false;
	if (l->length == 0)
		return true;
	if (l->file != run->file || l->has_checksum != run->has_checksum)
		return false;
	if (step == 0 || step != run->stride)
		return false;
	run->last = l->offset;
	return true;
}

/* The column's length is that of the first location. Returns how many have a checksum. */
static uint32_t put_runs(struct skv_buf *b, bool json, const struct skv_col_rows *rows,
			 const struct skv_location *loc)
{
	struct walk w = walk_rows(rows, loc);
	const uint64_t usual = find_there(&w) ? w.l->length : 0;
	uint32_t sums = 0;

	if (!json)
		skv_pb_put_uint(b, COL_LENGTH, usual);
	else if (usual)
		skv_jout_field_u64(b, "length", usual);
	while (find_there(&w) && !w.l->has_checksum)
		pass_row(&w);
	const bool any = w.left > 0;
	uint8_t *p = NULL;

	begin_field(b, json, 0, "runs", '[');
	for (w = walk_rows(rows, loc); find_row(&w);) {
		struct skv_col_run run = { .file = w.l->file, .offset = w.l->offset,
					   .last = w.l->offset, .length = w.l->length,
					   .has_checksum = w.l->has_checksum };

		pass_row(&w);
		run.stride = find_row(&w) ? w.l->offset - run.offset : 0;
		for (; find_row(&w) && continues_run(&run, w.l); pass_row(&w))
			run.more++;
		p = put_run(b, p, json, &run, usual, any && run.length && !run.has_checksum);
		sums += run.length && run.has_checksum ? run.more + 1 : 0;
	}
	end_parts(b, p, json);
	SKV_CHECK(sums <= rows->n_located);
	return sums;
}

/* ---- generations and checksums --------------------------------------------------------------- */

static uint8_t *put_series(struct skv_buf *b, uint8_t *p, bool json, const struct skv_col_series *s)
{
	uint8_t *begin = p = begin_part(b, p, json, COL_GENERATIONS);

	if (!p)
		return NULL;
	p = put_field(p, json, SERIES_FIRST, "first", s->first, TEXT);
	if (s->more)
		p = put_field(p, json, SERIES_STEP, "step", s->step, SIGNED | TEXT);
	p = put_field(p, json, SERIES_MORE, "more", s->more, UNSIGNED);
	return end_part(begin, p, json);
}

static inline bool continues_series(struct skv_col_series *s, uint64_t generation)
{
	const uint64_t step = generation - s->last;

	if (step != s->step)
		return false;
	s->last = generation;
	return true;
}

static void put_generations(struct skv_buf *b, bool json, const struct skv_col_rows *rows,
			    const struct skv_location *loc)
{
	uint8_t *p = NULL;

	begin_field(b, json, 0, "generations", '[');
	for (struct walk w = walk_rows(rows, loc); find_there(&w);) {
		struct skv_col_series s = { .first = w.l->generation, .last = w.l->generation };

		pass_row(&w);
		s.step = find_there(&w) ? w.l->generation - s.first : 0;
		for (; find_there(&w) && continues_series(&s, w.l->generation); pass_row(&w))
			s.more++;
		p = put_series(b, p, json, &s);
	}
	end_parts(b, p, json);
}

static void put_checksums(struct skv_buf *b, bool json, const struct skv_col_rows *rows,
			  const struct skv_location *loc, uint32_t sums)
{
	const size_t each = json ? CHECKSUM_MAX : 8;
	uint8_t *p;

	SKV_CHECK(sums > 0 && sums <= rows->n_located);
	begin_field(b, json, 0, "checksums", '[');
	if (!json) {
		skv_put_varint(b, COL_CHECKSUMS << 3 | PB_BYTES);
		skv_put_varint(b, sums * each);
	}
	p = (uint8_t *)skv_jraw_begin(b, sums * each);
	if (!p)
		return;
	for (struct walk w = walk_rows(rows, loc); find_row(&w); pass_row(&w)) {
		if (w.l->length == 0 || !w.l->has_checksum)
			continue;
		if (json)
			p = (uint8_t *)skv_jraw_text(skv_jraw_hex64((char *)p, w.l->checksum), ",");
		else
			p = skv_pb_raw_64(p, w.l->checksum);
	}
	SKV_CHECK((size_t)(p - b->data) == b->len + sums * each);
	skv_jraw_end(b, (const char *)p - json);
	end_field(b, json, 0, ']');
}

/* Field `num` or `name`: a column for each spec. */
static void put_columns(struct skv_buf *b, bool json, uint32_t num, const char *name,
			const struct skv_col_rows *rows, const struct skv_location *loc)
{
	begin_field(b, json, 0, name, '[');
	skv_buf_reserve(b, (size_t)rows->n_located * rows->n_specs * USUAL);
	for (uint32_t s = 0; s < rows->n_specs && rows->n_located; s++) {
		size_t begin = begin_field(b, json, num, NULL, '{');
		uint32_t sums = put_runs(b, json, rows, loc + s);

		put_generations(b, json, rows, loc + s);
		if (sums)
			put_checksums(b, json, rows, loc + s, sums);
		end_field(b, json, begin, '}');
	}
	end_field(b, json, 0, ']');
}

/* ---- answers --------------------------------------------------------------------------------- */

/* Writes misses, hits, misses, hits ...; the last ones only if they are hits. Returns the number of
 * hits. */
static uint32_t put_hits(struct skv_buf *b, bool json, const struct skv_lookup_res *r)
{
	uint32_t n = r->n_keys, hits = 0;
	bool hit = false;
	size_t begin;

	while (n > 0 && !r->hit[n - 1])
		n--;
	if (n == 0 && !json)
		return 0; /* an empty packed field is left out */
	begin = begin_field(b, json, FOUND_RUNS, "hit_runs", '[');
	for (uint32_t i = 0, from = 0; from < n; from = i, hit = !hit) {
		while (i < n && r->hit[i] == hit)
			i++;
		put_number(b, json, i - from);
		hits += hit ? i - from : 0;
	}
	end_field(b, json, begin, ']');
	SKV_CHECK(hits <= n);
	return hits;
}

void skv_put_found(struct skv_buf *b, bool json, const struct skv_lookup_res *r)
{
	const struct skv_col_rows rows = { .mark = (const uint8_t *)r->hit,
					   .located = true,
					   .n_rows = r->n_keys,
					   .n_located = put_hits(b, json, r),
					   .n_specs = r->n_specs };

	SKV_CHECK(r->n_specs <= SKV_MAX_SPECS && rows.n_located <= r->n_keys);
	put_columns(b, json, FOUND_COLUMNS, "columns", &rows, r->loc);
	if (r->copy)
		put_columns(b, json, FOUND_COPIES, "copies", &rows, r->copy);
}

/* Each outcome with how many keys in a row have it; returns how many are to be written. */
static uint32_t put_outcomes(struct skv_buf *b, bool json, const struct skv_start_res *r)
{
	uint32_t writes = 0;
	size_t begin;

	if (r->n_keys == 0 && !json)
		return 0; /* an empty packed field is left out */
	begin = begin_field(b, json, RES_OUTCOMES, "outcome_runs", '[');
	for (uint32_t i = 0; i < r->n_keys;) {
		const uint32_t from = i, outcome = r->outcome[i];

		while (i < r->n_keys && r->outcome[i] == outcome)
			i++;
		/* NO_ROOM cannot be requested over this API */
		SKV_CHECK(outcome < SKV_START_NO_ROOM);
		put_number(b, json, outcome + 4 * (i - from));
		writes += outcome == SKV_START_WRITE ? i - from : 0;
	}
	end_field(b, json, begin, ']');
	return writes;
}

void skv_put_started(struct skv_buf *b, bool json, const struct skv_start_res *r)
{
	const struct skv_col_rows rows = { .mark = r->outcome,
					   .located = SKV_START_WRITE,
					   .n_rows = r->n_keys,
					   .n_located = put_outcomes(b, json, r),
					   .n_specs = r->n_specs };

	SKV_CHECK(r->state == SKV_SESSION_OPEN && rows.n_located == r->n_write);
	SKV_CHECK(r->n_keys <= SKV_MAX_KEYS && r->n_specs <= SKV_MAX_SPECS);
	put_columns(b, json, RES_COLUMNS, "columns", &rows, r->loc);
}
