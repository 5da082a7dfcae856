/*
 * pb_columns.c - files, written and read, and columns of locations, read (File, Column of
 * slabkv.proto).
 *
 * The reader lets nothing through that could leave the storage's root or pass the end of an
 * address space, and nothing that does not cover the located rows exactly.
 *
 * No state; any thread.
 */
#include "pb.h"

#include <skv/check.h>

#include <skv/superblock.h>

enum { FILE_TYPE = 1, FILE_STORAGE = 2, FILE_UUID = 3, FILE_PATH = 4 };
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

/* ---- read ------------------------------------------------------------------------------------ */

/* A column being read: `rows` are the positions in loc of the located rows. */
struct column {
	uint64_t length;
	struct skv_location *loc;
	const uint32_t *rows;
	uint32_t n;       /* rows */
	uint32_t n_there; /* number of present locations among them */
	uint32_t n_files;
	size_t n_sums;
	uint32_t n_summed; /* locations with a checksum */
};

/* Signed file offsets must reach the end of the first and the last location of a run. */
static bool in_bounds(const struct skv_col_run *run)
{
	int64_t way, last;

	return run->length <= INT64_MAX && run->offset <= INT64_MAX - run->length &&
	       !__builtin_mul_overflow((int64_t)run->stride, (int64_t)run->more, &way) &&
	       !__builtin_add_overflow((int64_t)run->offset, way, &last) && last >= 0 &&
	       (uint64_t)last <= INT64_MAX - run->length;
}

static void check_run(struct skv_pbdoc *d, const struct column *c, const struct skv_col_run *run,
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
	struct skv_col_run run = { .length = c->length, .has_checksum = true };
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
		else if (f.number == RUN_UNSUMMED)
			run.has_checksum = skv_pb_u64(d, &f, "unsummed", UINT64_MAX) == 0;
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
		l->has_checksum = c->n_sums && run.has_checksum;
	}
	c->n_there += absent ? 0 : n;
	c->n_summed += !absent && run.has_checksum ? n : 0;
	SKV_CHECK(c->n_there <= at + n);
	return n;
}

static void read_runs(struct skv_pbdoc *d, struct skv_rd r, struct column *c)
{
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

/* Returns the next present location, from c->rows[*at] on. There is one: the caller counts. */
static inline struct skv_location *next_there(const struct column *c, uint32_t *at)
{
	SKV_CHECK(*at < c->n);
	while (c->loc[c->rows[*at]].length == 0)
		SKV_CHECK(*at + 1 < c->n), (*at)++;
	return &c->loc[c->rows[(*at)++]];
}

static struct skv_col_series read_one_series(struct skv_pbdoc *d, struct skv_rd r)
{
	struct skv_col_series s = { 0 };
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

static void read_generations(struct skv_pbdoc *d, struct skv_rd r, const struct column *c)
{
	uint32_t left = c->n_there, at = 0, i = 0;
	struct pb_field f;

	while (skv_pb_next(d, &r, &f)) {
		struct skv_pbat here = { d->at, "generations", i };
		struct skv_col_series s;

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

static void read_checksums(struct skv_pbdoc *d, struct skv_rd message, const struct column *c)
{
	uint64_t *sums = skv_pb_all_numbers(d, message, COL_CHECKSUMS, "checksums", PB_FIXED64,
					    c->n_sums);
	uint32_t at = 0;

	if (c->n_summed != c->n_sums)
		skv_pb_fail(d, "checksums", PB_NO_INDEX, SKV_E_INVALID,
			    "%zu checksums for %u locations", c->n_sums, c->n_summed);
	for (uint32_t i = 0; skv_pb_ok(d) && i < c->n; i++)
		if (c->loc[c->rows[i]].has_checksum)
			c->loc[c->rows[i]].checksum = sums[at++];
	SKV_CHECK(!skv_pb_ok(d) || at == c->n_sums);
}

static void read_column(struct skv_pbdoc *d, struct skv_rd message, struct column *c)
{
	struct skv_rd r = message;
	struct pb_field f;

	while (skv_pb_next(d, &r, &f)) {
		if (f.number == COL_LENGTH)
			c->length = skv_pb_u64(d, &f, "length", UINT64_MAX);
		else if (f.number == COL_CHECKSUMS)
			c->n_sums += skv_pb_numbers(d, &f, "checksums", PB_FIXED64);
	}
	skv_pb_count(d, "checksums", c->n_sums, 0, c->n);
	read_runs(d, message, c);
	read_generations(d, message, c);
	if (c->n_sums)
		read_checksums(d, message, c);
}

static uint32_t *located(struct skv_pbdoc *d, const struct skv_col_rows *rows)
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
		    const struct skv_col_rows *rows, uint32_t n_files,
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
