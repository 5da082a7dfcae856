/* bench_dir.h - a work bench for storage tests: a temporary directory, and
 * short ways to look at it. */
#ifndef BENCH_DIR_H
#define BENCH_DIR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>

#include <skv/storage.h>
#include <skv/superblock.h>

#define UNIT ((uint64_t)65536)
#define LENGTH (4 * UNIT)

struct bench {
	char top[64];  /* temporary directory, removed at the end */
	char root[96]; /* below it, does not exist at first */
	struct skv_storage_config config;
	/* skv_storage_file, or skv_storage_hf3fs on a directory like any other. */
	const struct skv_storage_ops *ops;
	struct skv_error err;
	char text[256]; /* of bench_path */
};

/* cmocka fixtures: *state is a struct bench. */
int bench_setup(void **state);
int bench_setup_hf3fs(void **state);
int bench_teardown(void **state);

/* Path of `name` below the root; valid until the next call. */
const char *bench_path(struct bench *b, const char *name);
void bench_write(struct bench *b, const char *name, const void *p, size_t n);
/* Number of entries in the root besides ".", ".." and SKV_STORAGE_LINK, or -1 when there is no
 * root. */
int bench_entries(const struct bench *b);
bool bench_has(struct bench *b, const char *name);
/* Flips one byte of a file. */
void bench_flip(struct bench *b, const char *name, long at);

struct skv_storage *bench_open(struct bench *b);
/* Opening must fail with `status` and a sentence that holds `words`. */
void bench_refused(struct bench *b, int status, const char *words);
void bench_says(const struct bench *b, const char *words);

#endif
