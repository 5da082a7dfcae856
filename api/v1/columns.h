/*
 * columns.h - columns of locations (Column of slabkv.proto): their parts, the rows that they cover,
 * and their writer. Internal to api/v1.
 */
#ifndef SKV_V1_COLUMNS_H
#define SKV_V1_COLUMNS_H

#include <skv/bytes.h>
#include <skv/ops.h>

/* Fields of LookupResponse and StartResponse that tell where blocks lie; Column, Run, Series. */
enum { FOUND_RUNS = 6, FOUND_COLUMNS = 7, FOUND_COPIES = 8 };
enum { RES_OUTCOMES = 8, RES_COLUMNS = 9 };
enum { COL_LENGTH = 1, COL_RUNS = 2, COL_GENERATIONS = 3, COL_CHECKSUMS = 4 };
enum {
	RUN_MORE = 1,
	RUN_FILE = 2,
	RUN_OFFSET = 3,
	RUN_STRIDE = 4,
	RUN_LENGTH = 5,
	RUN_ABSENT = 6,
	RUN_UNSUMMED = 7
};
enum { SERIES_FIRST = 1, SERIES_STEP = 2, SERIES_MORE = 3 };

struct skv_col_run {
	uint32_t more;
	uint32_t file;
	uint64_t offset; /* of the first */
	uint64_t last;   /* of the last, while it is written */
	uint64_t stride;
	uint64_t length; /* 0 = absent */
	bool has_checksum;
};

struct skv_col_series {
	uint64_t first;
	uint64_t last; /* while it is written */
	uint64_t step;
	uint32_t more;
};

/* The located rows of an answer: loc[row * n_specs + spec] where mark[row] == located. */
struct skv_col_rows {
	const uint8_t *mark; /* [n_rows] */
	uint8_t located;
	uint32_t n_rows;
	uint32_t n_located;
	uint32_t n_specs;
};

/* Returns true if one of the locations exists. */
static inline bool skv_located(const struct skv_location *loc, uint32_t n)
{
	while (n && loc[n - 1].length == 0)
		n--;
	return n > 0;
}

/* columns.c: append these fields of an answer to `b`, in protobuf or in JSON. */
void skv_put_found(struct skv_buf *b, bool json, const struct skv_lookup_res *r);
void skv_put_started(struct skv_buf *b, bool json, const struct skv_start_res *r);

#endif
