/*
 * bench_dir.c - the temporary directory of a storage test. One bench per test, one thread. It
 * removes everything that it made, also when the test failed.
 */
#include "bench_dir.h"

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <skv/mem.h>

int bench_setup(void **state)
{
	struct bench *b = skv_calloc(1, sizeof *b);

	if (!b)
		return -1;
	snprintf(b->top, sizeof b->top, "/tmp/skv-storage-XXXXXX");
	if (!mkdtemp(b->top))
		return -1;
	snprintf(b->root, sizeof b->root, "%s/root", b->top);
	b->config = (struct skv_storage_config){
		.name = "test", .root = b->root, .uuid = { 1, 2, 3, 4 }, .unit = UNIT,
		.may_create = true
	};
	b->ops = &skv_storage_file;
	*state = b;
	return 0;
}

int bench_setup_hf3fs(void **state)
{
	int rc = bench_setup(state);

	struct bench *b = *state;

	if (rc != 0)
		return rc;
	b->ops = &skv_storage_hf3fs;
	b->config.chunk = 4096;
	b->config.any_mount = true;
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st;
	(void)type;
	(void)where;
	return remove(path);
}

int bench_teardown(void **state)
{
	struct bench *b = *state;
	int rc = nftw(b->top, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);

	skv_free(b);
	return rc;
}

const char *bench_path(struct bench *b, const char *name)
{
	snprintf(b->text, sizeof b->text, "%s/%s", b->root, name);
	return b->text;
}

void bench_write(struct bench *b, const char *name, const void *p, size_t n)
{
	FILE *f = fopen(bench_path(b, name), "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(p, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

int bench_entries(const struct bench *b)
{
	DIR *d = opendir(b->root);
	int n = 0;

	if (!d)
		return -1;
	for (struct dirent *e; (e = readdir(d)) != NULL;)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
		    strcmp(e->d_name, SKV_STORAGE_LINK) != 0)
			n++;
	closedir(d);
	return n;
}

bool bench_has(struct bench *b, const char *name)
{
	struct stat st;

	return lstat(bench_path(b, name), &st) == 0;
}

void bench_flip(struct bench *b, const char *name, long at)
{
	FILE *f = fopen(bench_path(b, name), "r+b");
	int c;

	assert_non_null(f);
	assert_int_equal(fseek(f, at, at < 0 ? SEEK_END : SEEK_SET), 0);
	c = fgetc(f);
	assert_int_not_equal(c, EOF);
	assert_int_equal(fseek(f, -1, SEEK_CUR), 0);
	fputc(c ^ 0x40, f);
	assert_int_equal(fclose(f), 0);
}

struct skv_storage *bench_open(struct bench *b)
{
	struct skv_storage *s = NULL;
	int rc = skv_storage_open(b->ops, &b->config, &s, &b->err);

	if (rc != SKV_OK)
		print_error("open: %s\n", b->err.message);
	assert_int_equal(rc, SKV_OK);
	assert_non_null(s);
	return s;
}

void bench_says(const struct bench *b, const char *words)
{
	if (!strstr(b->err.message, words))
		print_error("\"%s\" is not in \"%s\"\n", words, b->err.message);
	assert_non_null(strstr(b->err.message, words));
}

void bench_refused(struct bench *b, int status, const char *words)
{
	struct skv_storage *s = NULL;

	assert_int_equal(skv_storage_open(b->ops, &b->config, &s, &b->err), status);
	assert_null(s);
	assert_int_equal(b->err.status, status);
	bench_says(b, words);
}
