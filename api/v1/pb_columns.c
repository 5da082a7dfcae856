/*
 * pb_columns.c - files and columns of locations (File, Column of slabkv.proto), both directions.
 *
 * A column is written in one pass for its runs, one for its generations and one for its
 * checksums, straight into reserved memory. The reader lets nothing through that could leave
 * the storage's root or pass the end of an address space, and nothing that does not cover
 * the located rows exactly.
 *
 * No state; any thread.
 */
#include "pb.h"

#include <assert.h>
#include <skv/check.h>

#include <skv/superblock.h>

enum { FILE_TYPE = 1, FILE_STORAGE = 2, FILE_UUID = 3, FILE_PATH = 4 };
enum { RUN_MORE = 1, RUN_FILE = 2, RUN_OFFSET = 3, RUN_STRIDE = 4, RUN_LENGTH = 5, RUN_ABSENT = 6 };
enum { SERIES_FIRST = 1, SERIES_STEP = 2, SERIES_MORE = 3 };
enum {
	COL_LENGTH = 1,
	COL_RUNS = 2,
	COL_GENERATIONS = 3,
	COL_CHECKSUMS = 4,
	COL_CHECKSUM_RUNS = 5
};

/* Most that one location adds: a run of 47, a series of 30, a checksum, its part of
 * checksum_runs. */
#define LOCATION_MAX 96u
#define COLUMN_MAX 64u /* in addition to its locations */

static_assert(sizeof(bool) == 1, "marks are bytes");

/* ---- files ----------------------------------------------------------------------------------- */

void skv_pb_put_files(struct skv_buf *b, uint32_t num, const struct skv_files *files)
{
	for (uint32_t i = 0; i < files->n; i++) {
		const struct skv_file_ref *f = &files->v[i];
		size_t begin = skv_pb_put_begin(b, num, 0);

		skv_pb_put_text(b, FILE_TYPE, f->type);
		skv_pb_put_text(b, FILE_STORAGE, f->storage);
		skv_pb_put_text(b, FILE_UUID, f->uuid);
		skv_pb_put_text(b, FILE_PATH, f->path);
		skv_pb_put_end(b, begin);
	}
}

/* Relative, no empty, "." or ".." component. */
static bool is_inside(const char *path)
{
	for (const char *p = path;; p++) {
		size_t n = strcspn(p, "/");

		if (n == 0 || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
			return false;
		p += n;
		if (!*p)
			return true;
	}
}

static void read_path(struct skv_pbdoc *d, const struct pb_field *f, struct skv_file_ref *out)
{
	const char *s = skv_pb_text(d, f, "path", PB_NO_INDEX, 0, sizeof out->path - 1);

	if (skv_pb_ok(d) && *s && !is_inside(s))
		skv_pb_fail(d, "path", PB_NO_INDEX, SKV_E_INVALID,
			    "is not a path below the storage's root");
	else
		memcpy(out->path, s, strlen(s) + 1);
}

static void read_uuid(struct skv_pbdoc *d, const struct pb_field *f, struct skv_file_ref *out)
{
	const char *s = skv_pb_text(d, f, "uuid", PB_NO_INDEX, 36, 36);
	uint8_t bytes[16];

	if (skv_pb_ok(d) && skv_uuid_from_text(s, bytes) != SKV_OK)
		skv_pb_fail(d, "uuid", PB_NO_INDEX, SKV_E_INVALID, "is not a UUID");
	else
		memcpy(out->uuid, s, strlen(s) + 1);
}

static void read_file(struct skv_pbdoc *d, struct skv_rd r, struct skv_file_ref *out)
{
	struct pb_field f;

	while (skv_pb_next(d, &r, &f)) {
		if (f.number == FILE_TYPE)
			out->type = skv_pb_name(d, &f, "type", PB_NO_INDEX);
		else if (f.number == FILE_STORAGE)
			out->storage = skv_pb_name(d, &f, "storage", PB_NO_INDEX);
		else if (f.number == FILE_UUID)
			read_uuid(d, &f, out);
		else if (f.number == FILE_PATH)
			read_path(d, &f, out);
	}
	if (!out->type || !out->storage || !out->uuid[0])
		skv_pb_fail(d,
			    !out->type      ? "type"
			    : !out->storage ? "storage"
					    : "uuid",
			    PB_NO_INDEX, SKV_E_INVALID, "the field is required");
}

void skv_pb_files(struct skv_pbdoc *d, struct skv_rd message, uint32_t num, uint32_t n,
		  struct skv_files *out)
{
	struct pb_field f;
	uint32_t i = 0;

	out->n = 0;
	out->v = skv_pb_alloc(d, n, sizeof *out->v);
	while (out->v && i < n && skv_pb_next(d, &message, &f)) {
		struct skv_pbat at = { d->at, "files", i };

		if (f.number != num || !skv_pb_wire(d, &f, "files", PB_BYTES))
			continue;
		d->at = &at;
		read_file(d, skv_rd_make(f.p, f.n), &out->v[i++]);
		d->at = at.up;
	}
	if (skv_pb_ok(d))
		out->n = i;
}

/* ---- runs, written --------------------------------------------------------------------------- */

struct run {
	uint32_t more;
	uint32_t file;
	uint64_t offset; /* of the first */
	uint64_t stride;
	uint64_t length; /* 0 = absent */
};

static uint8_t *put_run(uint8_t *p, const struct run *run, uint64_t usual)
{
	uint8_t *begin = p + 2;

	p[0] = COL_RUNS << 3 | PB_BYTES;
	p = skv_pb_raw_uint(begin, RUN_MORE, run->more);
	if (run->length == 0) {
		p = skv_pb_raw_uint(p, RUN_ABSENT, 1);
	} else {
		p = skv_pb_raw_uint(p, RUN_FILE, run->file);
		p = skv_pb_raw_uint(p, RUN_OFFSET, run->offset);
		if (run->more && run->stride != run->length)
			p = skv_pb_raw_uint(p, RUN_STRIDE, skv_pb_zigzag(run->stride));
		if (run->length != usual)
			p = skv_pb_raw_uint(p, RUN_LENGTH, run->length);
	}
	SKV_CHECK(p - begin < 0x80); /* a length of one byte: at most 46 */
	begin[-1] = (uint8_t)(p - begin);
	return p;
}

/* Does the location continue the run? */
static inline bool goes_on(struct run *run, const struct skv_location *l)
{
	uint64_t step;

	if (l->length != run->length)
		return false;
	if (l->length == 0)
		return true;
	if (l->file != run->file)
		return false;
	if (run->more)
		return l->offset == run->offset + (run->more + 1ull) * run->stride;
	step = l->offset - run->offset;
	run->stride = step;
	return step != 0;
}

/* Also finds out the column's usual length, which is that of the first location. */
static uint8_t *put_runs(uint8_t *p, const struct skv_pbrows *rows, const struct skv_location *loc)
{
	struct run run = { 0 };
	uint64_t usual = 0;
	bool begun = false;

	for (uint32_t r = 0; r < rows->n_rows && !usual; r++)
		if (rows->mark[r] == rows->located)
			usual = loc[(size_t)r * rows->n_specs].length;
	p = skv_pb_raw_uint(p, COL_LENGTH, usual);
	for (uint32_t r = 0; r < rows->n_rows; r++) {
		const struct skv_location *l = loc + (size_t)r * rows->n_specs;

		if (rows->mark[r] != rows->located)
			continue;
		if (begun && goes_on(&run, l)) {
			run.more++;
			continue;
		}
		if (begun)
			p = put_run(p, &run, usual);
		begun = true;
		run = (struct run){ .file = l->file, .offset = l->offset, .length = l->length };
	}
	return begun ? put_run(p, &run, usual) : p;
}

/* ---- generations and checksums, written ------------------------------------------------------ */

struct series {
	uint64_t first;
	uint64_t step;
	uint32_t more;
};

static uint8_t *put_one_series(uint8_t *p, const struct series *s)
{
	uint8_t *begin = p + 2;

	p[0] = COL_GENERATIONS << 3 | PB_BYTES;
	p = skv_pb_raw_uint(begin, SERIES_FIRST, s->first);
	if (s->more)
		p = skv_pb_raw_uint(p, SERIES_STEP, skv_pb_zigzag(s->step));
	p = skv_pb_raw_uint(p, SERIES_MORE, s->more);
	SKV_CHECK(p - begin < 0x80); /* a length of one byte: at most 28 */
	begin[-1] = (uint8_t)(p - begin);
	return p;
}

/* Counts the locations that are present, and those with a checksum. */
static uint8_t *put_generations(uint8_t *p, const struct skv_pbrows *rows,
				const struct skv_location *loc, uint32_t *there, uint32_t *sums)
{
	struct series s = { 0 };

	for (uint32_t r = 0; r < rows->n_rows; r++) {
		const struct skv_location *l = loc + (size_t)r * rows->n_specs;

		if (rows->mark[r] != rows->located || l->length == 0)
			continue;
		*sums += l->has_checksum;
		if ((*there)++ == 0) {
			s.first = l->generation;
		} else if (s.more == 0) {
			s.step = l->generation - s.first;
			s.more = 1;
		} else if (l->generation == s.first + (s.more + 1ull) * s.step) {
			s.more++;
		} else {
			p = put_one_series(p, &s);
			s = (struct series){ .first = l->generation };
		}
	}
	return *there ? put_one_series(p, &s) : p;
}

static uint8_t *put_checksums(uint8_t *p, const struct skv_pbrows *rows,
			      const struct skv_location *loc, uint32_t sums)
{
	*p++ = COL_CHECKSUMS << 3 | PB_BYTES;
	p = skv_pb_raw_varint(p, sums * 8ull);
	for (uint32_t r = 0; r < rows->n_rows; r++) {
		const struct skv_location *l = loc + (size_t)r * rows->n_specs;

		if (rows->mark[r] == rows->located && l->length && l->has_checksum)
			p = skv_pb_raw_64(p, l->checksum);
	}
	return p;
}

/* Where some have a checksum and some have not. */
static void put_checksum_runs(struct skv_buf *b, const struct skv_pbrows *rows,
			      const struct skv_location *loc)
{
	size_t begin = skv_pb_put_begin(b, COL_CHECKSUM_RUNS, 4 * (size_t)rows->n_located + 4);
	uint8_t *p;
	bool has = false;
	uint32_t n = 0;

	if (b->failed)
		return;
	p = b->data + begin;
	for (uint32_t r = 0; r < rows->n_rows; r++) {
		const struct skv_location *l = loc + (size_t)r * rows->n_specs;

		if (rows->mark[r] != rows->located || l->length == 0)
			continue;
		if (l->has_checksum != has) {
			p = skv_pb_raw_varint(p, n);
			has = !has;
			n = 0;
		}
		n++;
	}
	p = skv_pb_raw_varint(p, n);
	SKV_CHECK((size_t)(p - b->data) <= b->cap);
	b->len = (size_t)(p - b->data);
	skv_pb_put_end(b, begin);
}

void skv_pb_put_columns(struct skv_buf *b, uint32_t num, const struct skv_pbrows *rows,
			const struct skv_location *loc)
{
	for (uint32_t s = 0; s < rows->n_specs && rows->n_located; s++) {
		size_t begin = skv_pb_put_begin(
			b, num, COLUMN_MAX + (size_t)rows->n_located * LOCATION_MAX);
		uint32_t there = 0, sums = 0;
		uint8_t *p;

		if (b->failed)
			return;
		p = put_runs(b->data + begin, rows, loc + s);
		p = put_generations(p, rows, loc + s, &there, &sums);
		if (sums)
			p = put_checksums(p, rows, loc + s, sums);
		SKV_CHECK(sums <= there && there <= rows->n_located);
		SKV_CHECK((size_t)(p - b->data) <= b->cap);
		b->len = (size_t)(p - b->data);
		if (sums && sums < there)
			put_checksum_runs(b, rows, loc + s);
		skv_pb_put_end(b, begin);
	}
}

/* ---- read ------------------------------------------------------------------------------------ */

/* A column being read: `rows` are the positions in loc of the located rows. */
struct column {
	uint64_t length;
	struct skv_location *loc;
	const uint32_t *rows;
	uint32_t n;       /* rows */
	uint32_t n_there; /* of them, locations that are there */
	uint32_t n_files;
	size_t n_sums;
	size_t n_sum_runs;
	struct skv_rd runs;        /* from the first to the last of them, other fields in between */
	struct skv_rd generations; /* likewise */
};

/* Makes `part` reach from its first field to this one, which begins at `from` and ends at `to`. */
static inline void reach(struct skv_rd *part, const uint8_t *from, const uint8_t *to)
{
	if (!part->p)
		part->p = from;
	part->end = to;
}

/* Signed file offsets must reach the end of the first and the last location of a run. */
static bool in_bounds(const struct run *run)
{
	int64_t way, last;

	return run->length <= INT64_MAX && run->offset <= INT64_MAX - run->length &&
	       !__builtin_mul_overflow((int64_t)run->stride, (int64_t)run->more, &way) &&
	       !__builtin_add_overflow((int64_t)run->offset, way, &last) && last >= 0 &&
	       (uint64_t)last <= INT64_MAX - run->length;
}

static void check_run(struct skv_pbdoc *d, const struct column *c, const struct run *run,
		      bool absent)
{
	if (absent)
		return;
	if (run->length == 0)
		skv_pb_fail(d, "length", PB_NO_INDEX, SKV_E_INVALID, "the field is required");
	else if (run->file >= c->n_files)
		skv_pb_fail(d, "file", PB_NO_INDEX, SKV_E_INVALID,
			    "must be below %u: there are no more files", c->n_files);
	else if (!in_bounds(run))
		skv_pb_fail(d, "offset", PB_NO_INDEX, SKV_E_INVALID,
			    "ends above 2^63-1, or below 0");
}

/* Reads one run into the locations from c->rows[at] on; returns how many. */
static uint32_t read_run(struct skv_pbdoc *d, struct skv_rd r, struct column *c, uint32_t at)
{
	struct run run = { .length = c->length };
	struct pb_field f;
	bool absent = false;
	uint32_t n;

	while (skv_pb_next(d, &r, &f)) {
		if (f.number == RUN_MORE)
			run.more = skv_pb_u32(d, &f, "more", UINT32_MAX);
		else if (f.number == RUN_FILE)
			run.file = skv_pb_u32(d, &f, "file", UINT32_MAX);
		else if (f.number == RUN_OFFSET)
			run.offset = skv_pb_u64(d, &f, "offset", UINT64_MAX);
		else if (f.number == RUN_STRIDE)
			run.stride = skv_pb_unzigzag(skv_pb_u64(d, &f, "stride", UINT64_MAX));
		else if (f.number == RUN_LENGTH)
			run.length = skv_pb_u64(d, &f, "length", UINT64_MAX);
		else if (f.number == RUN_ABSENT)
			absent = skv_pb_u64(d, &f, "absent", UINT64_MAX) != 0;
	}
	if (run.length == 0)
		run.length = c->length;
	if (run.stride == 0)
		run.stride = run.length;
	check_run(d, c, &run, absent);
	if (run.more >= c->n - at)
		skv_pb_fail(d, "more", PB_NO_INDEX, SKV_E_INVALID, "more locations than blocks");
	if (!skv_pb_ok(d))
		return 0;
	n = run.more + 1;
	SKV_CHECK(at + n <= c->n);
	for (uint32_t i = 0; i < n && !absent; i++) {
		struct skv_location *l = &c->loc[c->rows[at + i]];

		l->file = run.file;
		l->length = run.length;
		l->offset = run.offset + i * run.stride;
	}
	c->n_there += absent ? 0 : n;
	SKV_CHECK(c->n_there <= at + n);
	return n;
}

static void read_runs(struct skv_pbdoc *d, struct column *c)
{
	struct skv_rd r = c->runs;
	struct pb_field f;
	uint32_t at = 0, i = 0;

	while (skv_pb_next(d, &r, &f)) {
		struct skv_pbat here = { d->at, "runs", i };

		if (f.number != COL_RUNS || !skv_pb_wire(d, &f, "runs", PB_BYTES))
			continue;
		d->at = &here;
		if (at >= c->n)
			skv_pb_fail(d, NULL, 0, SKV_E_INVALID, "more locations than blocks");
		at += skv_pb_ok(d) ? read_run(d, skv_rd_make(f.p, f.n), c, at) : 0;
		d->at = here.up;
		i++;
	}
	if (at != c->n)
		skv_pb_fail(d, "runs", PB_NO_INDEX, SKV_E_INVALID, "%u locations for %u blocks", at,
			    c->n);
}

/* The next location that is there, from c->rows[*at] on. There is one: the caller counts. */
static inline struct skv_location *next_there(const struct column *c, uint32_t *at)
{
	SKV_CHECK(*at < c->n);
	while (c->loc[c->rows[*at]].length == 0)
		SKV_CHECK(*at + 1 < c->n), (*at)++;
	return &c->loc[c->rows[(*at)++]];
}

static struct series read_one_series(struct skv_pbdoc *d, struct skv_rd r)
{
	struct series s = { 0 };
	struct pb_field f;

	while (skv_pb_next(d, &r, &f)) {
		if (f.number == SERIES_FIRST)
			s.first = skv_pb_u64(d, &f, "first", UINT64_MAX);
		else if (f.number == SERIES_STEP)
			s.step = skv_pb_unzigzag(skv_pb_u64(d, &f, "step", UINT64_MAX));
		else if (f.number == SERIES_MORE)
			s.more = skv_pb_u32(d, &f, "more", UINT32_MAX);
	}
	return s;
}

static void read_generations(struct skv_pbdoc *d, const struct column *c)
{
	struct skv_rd r = c->generations;
	uint32_t left = c->n_there, at = 0, i = 0;
	struct pb_field f;

	while (skv_pb_next(d, &r, &f)) {
		struct skv_pbat here = { d->at, "generations", i };
		struct series s;

		if (f.number != COL_GENERATIONS || !skv_pb_wire(d, &f, "generations", PB_BYTES))
			continue;
		d->at = &here;
		s = read_one_series(d, skv_rd_make(f.p, f.n));
		if (s.more >= left)
			skv_pb_fail(d, NULL, 0, SKV_E_INVALID, "more generations than locations");
		d->at = here.up;
		if (!skv_pb_ok(d))
			return;
		for (uint32_t k = 0; k <= s.more; k++)
			next_there(c, &at)->generation = s.first + k * s.step;
		left -= s.more + 1;
		i++;
	}
	if (left)
		skv_pb_fail(d, "generations", PB_NO_INDEX, SKV_E_INVALID,
			    "%u locations have no generation", left);
}

/* Puts sums[*used..] into the next n locations that are there. */
static void take_sums(const struct column *c, uint32_t *at, const uint64_t *sums, uint64_t n)
{
	for (uint64_t k = 0; k < n; k++) {
		struct skv_location *l = next_there(c, at);

		if (sums) {
			l->checksum = sums[k];
			l->has_checksum = true;
		}
	}
}

static void read_checksums(struct skv_pbdoc *d, struct skv_rd message, const struct column *c)
{
	uint64_t *sums = skv_pb_all_numbers(d, message, COL_CHECKSUMS, "checksums", PB_FIXED64,
					    c->n_sums);
	uint64_t *runs = skv_pb_all_numbers(d, message, COL_CHECKSUM_RUNS, "checksum_runs",
					    PB_VARINT, c->n_sum_runs);
	uint64_t there = c->n_there, left = c->n_sums;
	uint32_t at = 0;

	if (!skv_pb_ok(d))
		return;
	if (c->n_sum_runs == 0) {
		if (left != there)
			skv_pb_fail(d, "checksums", PB_NO_INDEX, SKV_E_INVALID,
				    "%zu checksums for %u locations", c->n_sums, c->n_there);
		else
			take_sums(c, &at, sums, left);
		return;
	}
	for (size_t i = 0; i < c->n_sum_runs; i++) {
		bool has = i % 2;

		if (runs[i] > there || (has && runs[i] > left)) {
			skv_pb_fail(d, "checksum_runs", (uint32_t)i, SKV_E_INVALID,
				    "more than there are");
			return;
		}
		SKV_CHECK(left <= c->n_sums && there <= c->n_there);
		take_sums(c, &at, has ? sums + (c->n_sums - left) : NULL, runs[i]);
		there -= runs[i];
		left -= has ? runs[i] : 0;
	}
	if (left)
		skv_pb_fail(d, "checksums", PB_NO_INDEX, SKV_E_INVALID,
			    "%llu belong to no location", (unsigned long long)left);
}

static void read_column(struct skv_pbdoc *d, struct skv_rd message, struct column *c)
{
	struct skv_rd r = message;
	const uint8_t *from = r.p;
	struct pb_field f;

	for (; skv_pb_next(d, &r, &f); from = r.p) {
		if (f.number == COL_RUNS)
			reach(&c->runs, from, r.p);
		else if (f.number == COL_GENERATIONS)
			reach(&c->generations, from, r.p);
		else if (f.number == COL_LENGTH)
			c->length = skv_pb_u64(d, &f, "length", UINT64_MAX);
		else if (f.number == COL_CHECKSUMS)
			c->n_sums += skv_pb_numbers(d, &f, "checksums", PB_FIXED64);
		else if (f.number == COL_CHECKSUM_RUNS)
			c->n_sum_runs += skv_pb_numbers(d, &f, "checksum_runs", PB_VARINT);
	}
	skv_pb_count(d, "checksums", c->n_sums, 0, c->n);
	skv_pb_count(d, "checksum_runs", c->n_sum_runs, 0, 2 * c->n + 1);
	read_runs(d, c);
	read_generations(d, c);
	if (c->n_sums)
		read_checksums(d, message, c);
}

static uint32_t *located(struct skv_pbdoc *d, const struct skv_pbrows *rows)
{
	uint32_t *at = skv_pb_alloc(d, rows->n_located, sizeof *at);
	uint32_t n = 0;

	for (uint32_t r = 0; at && r < rows->n_rows; r++)
		if (rows->mark[r] == rows->located)
			at[n++] = r * rows->n_specs;
	SKV_CHECK(!at || n == rows->n_located);
	return at;
}

void skv_pb_columns(struct skv_pbdoc *d, struct skv_rd message, uint32_t num, uint32_t n,
		    const struct skv_pbrows *rows, uint32_t n_files,
		    struct skv_location *loc)
{
	uint32_t *at = located(d, rows);
	struct pb_field f;
	uint32_t s = 0;

	if (rows->n_located == 0)
		return;
	if (n != rows->n_specs)
		skv_pb_fail(d, "columns", PB_NO_INDEX, SKV_E_INVALID, "%u columns for %u specs", n,
			    rows->n_specs);
	while (s < n && skv_pb_next(d, &message, &f)) {
		struct skv_pbat here = { d->at, "columns", s };
		struct column c = { .loc = loc + s, .rows = at, .n = rows->n_located,
				    .n_files = n_files };

		if (f.number != num || !skv_pb_wire(d, &f, "columns", PB_BYTES))
			continue;
		d->at = &here;
		read_column(d, skv_rd_make(f.p, f.n), &c);
		d->at = here.up;
		s++;
	}
}
