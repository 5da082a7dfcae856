/*
 * test_slab.c - slab files of a `file` storage: what is made, what is verified, what is removed,
 * and that a file which is not ours stays as it is.
 */
#include "bench_dir.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <skv/hash.h>

#define SLAB0 "slab-00000000.kvs"
#define SLAB1 "slab-00000001.kvs"
#define TEMP0 ".slabkv-tmp-0123456789abcdef"

/* An opened storage with slab files 0 and 1. */
static struct skv_storage *two_files(struct bench *b)
{
	struct skv_storage *s = bench_open(b);

	assert_int_equal(skv_storage_create_file(s, 0, LENGTH, &b->err), SKV_OK);
	assert_int_equal(skv_storage_create_file(s, 1, LENGTH, &b->err), SKV_OK);
	return s;
}

static void check_says(struct bench *b, struct skv_storage *s, uint32_t file, int status,
		       const char *words)
{
	assert_int_equal(skv_storage_check_file(s, file, LENGTH, &b->err), status);
	bench_says(b, words);
}

static void file_is_allocated_and_marked_at_both_ends(void **state)
{
	struct bench *b = *state;
	struct skv_storage *s = two_files(b);
	uint8_t head[SKV_SUPERBLOCK_SIZE], tail[SKV_SUPERBLOCK_SIZE], again[SKV_SUPERBLOCK_SIZE];
	struct skv_superblock sb;
	struct stat st;
	FILE *f = fopen(bench_path(b, SLAB1), "rb");

	assert_non_null(f);
	assert_int_equal(fread(head, 1, sizeof head, f), sizeof head);
	assert_int_equal(fseek(f, -(long)sizeof tail, SEEK_END), 0);
	assert_int_equal(fread(tail, 1, sizeof tail, f), sizeof tail);
	assert_int_equal(fstat(fileno(f), &st), 0);
	fclose(f);
	assert_int_equal(st.st_size, LENGTH);
	if (b->ops == &skv_storage_file)
		assert_true((uint64_t)st.st_blocks * 512 >= LENGTH); /* really allocated */
	else
		assert_true((uint64_t)st.st_blocks * 512 < LENGTH);
	assert_memory_equal(head, tail, sizeof head);
	assert_int_equal(skv_superblock_decode(head, &sb, &b->err), SKV_OK);
	assert_int_equal(sb.file, 1);
	assert_int_equal(sb.length, LENGTH);
	assert_int_equal(sb.unit, UNIT);
	assert_int_equal(sb.header, SKV_SUPERBLOCK_SIZE);
	assert_int_equal(sb.trailer, SKV_SUPERBLOCK_SIZE);
	skv_superblock_encode(&sb, again);
	assert_memory_equal(head, again, sizeof head); /* nothing else is in it */
	assert_int_equal(bench_entries(b), 4);
	skv_storage_close(s);
}

static void new_file_reads_as_zeros_between(void **state)
{
	struct bench *b = *state;
	struct skv_storage *s = two_files(b);
	FILE *f = fopen(bench_path(b, SLAB0), "rb");
	static uint8_t body[LENGTH];

	assert_non_null(f);
	assert_int_equal(fread(body, 1, LENGTH, f), LENGTH);
	fclose(f);
	for (size_t i = SKV_SUPERBLOCK_SIZE; i < LENGTH - SKV_SUPERBLOCK_SIZE; i++)
		assert_int_equal(body[i], 0);
	skv_storage_close(s);
}

static void create_is_idempotent(void **state)
{
	struct bench *b = *state;
	struct skv_storage *s = two_files(b);
	struct stat before, after;

	assert_int_equal(stat(bench_path(b, SLAB0), &before), 0);
	assert_int_equal(skv_storage_create_file(s, 0, LENGTH, &b->err), SKV_OK);
	assert_int_equal(stat(bench_path(b, SLAB0), &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_int_equal(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
	/* Bytes of blocks in it are nobody's business here. */
	bench_flip(b, SLAB0, UNIT + 5);
	assert_int_equal(skv_storage_create_file(s, 0, LENGTH, &b->err), SKV_OK);
	skv_storage_close(s);
}

static void create_never_replaces(void **state)
{
	struct bench *b = *state;
	struct skv_storage *s = two_files(b);
	char text[5] = { 0 };
	FILE *f;

	assert_int_equal(skv_storage_create_file(s, 0, 2 * LENGTH, &b->err), SKV_E_FOREIGN);
	bench_says(b, "another file has this name; it was left alone");
	assert_int_equal(skv_storage_check_file(s, 0, LENGTH, &b->err), SKV_OK);

	bench_write(b, "slab-00000002.kvs", "mine", 4);
	assert_int_equal(skv_storage_create_file(s, 2, LENGTH, &b->err), SKV_E_FOREIGN);
	bench_says(b, "it was left alone");
	f = fopen(bench_path(b, "slab-00000002.kvs"), "rb");
	assert_non_null(f);
	assert_int_equal(fread(text, 1, 4, f), 4);
	fclose(f);
	assert_string_equal(text, "mine");
	skv_storage_close(s);
}

static void check_finds_missing_and_damaged_files(void **state)
{
	struct bench *b = *state;
	struct skv_storage *s = two_files(b);

	check_says(b, s, 7, SKV_E_NOT_FOUND, "is missing (slab-00000007.kvs)");
	bench_flip(b, SLAB0, 40);
	check_says(b, s, 0, SKV_E_CORRUPT, "checksum is wrong");
	bench_flip(b, SLAB0, 40);
	bench_flip(b, SLAB0, 0);
	check_says(b, s, 0, SKV_E_FOREIGN, "not a slabkv file");
	bench_flip(b, SLAB0, 0);
	bench_flip(b, SLAB0, -1);
	check_says(b, s, 0, SKV_E_CORRUPT, "trailer does not repeat its superblock");
	bench_flip(b, SLAB0, -1);
	assert_int_equal(skv_storage_check_file(s, 0, LENGTH, &b->err), SKV_OK);
	skv_storage_close(s);
}

static void check_finds_every_wrong_length(void **state)
{
	struct bench *b = *state;
	struct skv_storage *s = two_files(b);

	assert_int_equal(skv_storage_check_file(s, 0, LENGTH + UNIT, &b->err), SKV_E_CORRUPT);
	bench_says(b, "its superblock says 262144 bytes, the registry 327680");
	for (off_t cut = LENGTH - 1; cut > 0; cut /= 4) {
		assert_int_equal(truncate(bench_path(b, SLAB0), cut), 0);
		check_says(b, s, 0, SKV_E_CORRUPT, "cut off");
	}
	assert_int_equal(truncate(bench_path(b, SLAB0), 0), 0);
	check_says(b, s, 0, SKV_E_CORRUPT, "cut off");
	assert_int_equal(truncate(bench_path(b, SLAB1), LENGTH + 1), 0);
	check_says(b, s, 1, SKV_E_CORRUPT, "something was appended");
	/* Cut and made long again: the length is right, the trailer is not. */
	assert_int_equal(truncate(bench_path(b, SLAB1), LENGTH - 4096), 0);
	assert_int_equal(truncate(bench_path(b, SLAB1), LENGTH), 0);
	check_says(b, s, 1, SKV_E_CORRUPT, "trailer");
	skv_storage_close(s);
}

static void check_finds_swapped_files(void **state)
{
	struct bench *b = *state;
	struct skv_storage *s = two_files(b);
	char zero[256];

	snprintf(zero, sizeof zero, "%s", bench_path(b, SLAB0));
	assert_int_equal(renameat2(AT_FDCWD, zero, AT_FDCWD, bench_path(b, SLAB1), RENAME_EXCHANGE),
			 0);
	check_says(b, s, 0, SKV_E_FOREIGN, "it is slab file 1: renamed or swapped");
	check_says(b, s, 1, SKV_E_FOREIGN, "it is slab file 0: renamed or swapped");
	assert_int_equal(skv_storage_remove_file(s, 0, &b->err), SKV_E_FOREIGN);
	assert_int_equal(skv_storage_create_file(s, 1, LENGTH, &b->err), SKV_E_FOREIGN);
	assert_int_equal(bench_entries(b), 4);
	skv_storage_close(s);
}

static void check_finds_a_file_of_another_storage(void **state)
{
	struct bench *b = *state;
	struct skv_storage *s = two_files(b);
	struct skv_superblock sb = { .uuid = { 9 }, .file = 0, .length = LENGTH, .unit = UNIT };
	uint8_t raw[SKV_SUPERBLOCK_SIZE];

	skv_superblock_encode(&sb, raw);
	bench_write(b, SLAB0, raw, sizeof raw);
	check_says(b, s, 0, SKV_E_FOREIGN, "belongs to storage 09000000-");
	assert_int_equal(skv_storage_remove_file(s, 0, &b->err), SKV_E_FOREIGN);
	assert_true(bench_has(b, SLAB0));
	skv_storage_close(s);
}

static void check_finds_another_geometry(void **state)
{
	struct bench *b = *state;
	struct skv_storage *s = two_files(b);
	struct skv_superblock sb = { .uuid = { 1, 2, 3, 4 }, .length = LENGTH, .unit = 2 * UNIT,
				     .header = SKV_SUPERBLOCK_SIZE,
				     .trailer = SKV_SUPERBLOCK_SIZE };
	uint8_t raw[SKV_SUPERBLOCK_SIZE];

	skv_superblock_encode(&sb, raw);
	bench_write(b, SLAB0, raw, sizeof raw);
	assert_int_equal(truncate(bench_path(b, SLAB0), LENGTH), 0);
	check_says(b, s, 0, SKV_E_CORRUPT, "geometry differs");
	skv_storage_close(s);
}

static void a_newer_format_is_refused(void **state)
{
	struct bench *b = *state;
	struct skv_storage *s = bench_open(b);
	struct skv_superblock sb = { .uuid = { 1, 2, 3, 4 }, .length = LENGTH, .unit = UNIT };
	uint8_t raw[SKV_SUPERBLOCK_SIZE];
	uint64_t sum;

	skv_superblock_encode(&sb, raw);
	raw[8] = SKV_SUPERBLOCK_VERSION + 1;
	sum = skv_checksum(raw, sizeof raw - 8);
	for (int i = 0; i < 8; i++)
		raw[sizeof raw - 8 + i] = (uint8_t)(sum >> (8 * i));
	bench_write(b, SLAB0, raw, sizeof raw);
	check_says(b, s, 0, SKV_E_UNSUPPORTED, "use a newer one");
	assert_int_equal(skv_storage_create_file(s, 0, LENGTH, &b->err), SKV_E_FOREIGN);
	assert_int_equal(skv_storage_remove_file(s, 0, &b->err), SKV_E_UNSUPPORTED);
	skv_storage_close(s);
}

static void links_and_devices_are_refused(void **state)
{
	struct bench *b = *state;
	struct skv_storage *s = two_files(b);
	char real[128];

	snprintf(real, sizeof real, "%s/real", b->top);
	assert_int_equal(rename(bench_path(b, SLAB0), real), 0);
	assert_int_equal(symlink(real, bench_path(b, SLAB0)), 0);
	check_says(b, s, 0, SKV_E_FOREIGN, "a symbolic link");
	assert_int_equal(skv_storage_create_file(s, 0, LENGTH, &b->err), SKV_E_FOREIGN);
	assert_int_equal(skv_storage_remove_file(s, 0, &b->err), SKV_E_FOREIGN);
	assert_int_equal(access(real, F_OK), 0);
	/* A dangling link is no free name either. */
	assert_int_equal(symlink("nowhere", bench_path(b, "slab-00000002.kvs")), 0);
	assert_int_equal(skv_storage_create_file(s, 2, LENGTH, &b->err), SKV_E_FOREIGN);
	assert_int_equal(mkfifo(bench_path(b, "slab-00000003.kvs"), 0600), 0);
	check_says(b, s, 3, SKV_E_FOREIGN, "not a regular file");
	assert_int_equal(mkdir(bench_path(b, "slab-00000004.kvs"), 0700), 0);
	check_says(b, s, 4, SKV_E_FOREIGN, "not a regular file");
	assert_int_equal(skv_storage_remove_file(s, 4, &b->err), SKV_E_FOREIGN);
	skv_storage_close(s);
}

static void remove_takes_only_what_is_there(void **state)
{
	struct bench *b = *state;
	struct skv_storage *s = two_files(b);

	assert_int_equal(skv_storage_remove_file(s, 0, &b->err), SKV_OK);
	assert_false(bench_has(b, SLAB0));
	assert_true(bench_has(b, SLAB1));
	assert_int_equal(skv_storage_remove_file(s, 0, &b->err), SKV_OK);
	assert_int_equal(b->err.status, SKV_OK);
	assert_string_equal(b->err.message, "");
	/* A file that is ours goes even when it was cut behind its superblock. */
	assert_int_equal(truncate(bench_path(b, SLAB1), SKV_SUPERBLOCK_SIZE), 0);
	assert_int_equal(skv_storage_remove_file(s, 1, &b->err), SKV_OK);
	assert_int_equal(bench_entries(b), 2);
	skv_storage_close(s);
}

static void a_number_is_used_again_after_removal(void **state)
{
	struct bench *b = *state;
	struct skv_storage *s = two_files(b);

	assert_int_equal(skv_storage_remove_file(s, 0, &b->err), SKV_OK);
	assert_int_equal(skv_storage_create_file(s, 0, 2 * LENGTH, &b->err), SKV_OK);
	assert_int_equal(skv_storage_check_file(s, 0, 2 * LENGTH, &b->err), SKV_OK);
	skv_storage_close(s);
}

static void leftovers_of_a_crash_are_swept(void **state)
{
	struct bench *b = *state;
	struct skv_storage *s = bench_open(b);

	bench_write(b, TEMP0, "half", 4);
	bench_write(b, ".slabkv-tmp-slab-00000077.kvs", "half", 4);
	assert_int_equal(skv_storage_create_file(s, 0, LENGTH, &b->err), SKV_OK);
	assert_int_equal(bench_entries(b), 3); /* marker, probe, slab */
	skv_storage_close(s);

	/* Also at open: the space of a leftover may be what is missing for the next file. */
	bench_write(b, TEMP0, "half", 4);
	skv_storage_close(bench_open(b));
	assert_false(bench_has(b, TEMP0));
}

/* Another process, alive, is making a file: its work is left alone. */
static void a_living_makers_file_is_left_alone(void **state)
{
	struct bench *b = *state;
	struct skv_storage *s = bench_open(b);
	int fd;

	bench_write(b, TEMP0, "half", 4);
	fd = open(bench_path(b, TEMP0), O_RDWR);
	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	assert_int_equal(skv_storage_create_file(s, 0, LENGTH, &b->err), SKV_OK);
	assert_true(bench_has(b, TEMP0));
	close(fd); /* now it is a leftover */
	assert_int_equal(skv_storage_create_file(s, 1, LENGTH, &b->err), SKV_OK);
	assert_false(bench_has(b, TEMP0));
	skv_storage_close(s);
}

static void a_leftover_that_is_a_link_is_not_followed(void **state)
{
	struct bench *b = *state;
	struct skv_storage *s = bench_open(b);
	char victim[128];
	struct stat st;

	snprintf(victim, sizeof victim, "%s/victim", b->top);
	assert_int_equal(close(open(victim, O_CREAT | O_WRONLY, 0600)), 0);
	assert_int_equal(symlink(victim, bench_path(b, TEMP0)), 0);
	assert_int_equal(skv_storage_create_file(s, 0, LENGTH, &b->err), SKV_OK);
	assert_int_equal(stat(victim, &st), 0);
	assert_int_equal(st.st_size, 0);
	skv_storage_close(s);
}

struct maker {
	struct skv_storage *s;
	uint32_t first;
	int rc;
};

static void *make_files(void *p)
{
	struct maker *m = p;
	struct skv_storage_health h;

	m->rc = SKV_OK;
	for (uint32_t i = 0; i < 10 && m->rc == SKV_OK; i++) {
		m->rc = skv_storage_create_file(m->s, m->first + i, LENGTH, NULL);
		if (m->rc == SKV_OK)
			m->rc = skv_storage_probe(m->s, SKV_PROBE_WRITE, &h, NULL);
		if (m->rc == SKV_OK && i % 2)
			m->rc = skv_storage_remove_file(m->s, m->first + i, NULL);
	}
	return NULL;
}

/* Sweeps of one thread leave the unfinished files of the others alone. */
static void threads_make_files_at_the_same_time(void **state)
{
	struct bench *b = *state;
	struct skv_storage *s = bench_open(b);
	struct maker m[4];
	pthread_t t[4];

	for (uint32_t i = 0; i < 4; i++) {
		m[i] = (struct maker){ .s = s, .first = i * 100 };
		assert_int_equal(pthread_create(&t[i], NULL, make_files, &m[i]), 0);
	}
	for (int i = 0; i < 4; i++) {
		pthread_join(t[i], NULL);
		assert_int_equal(m[i].rc, SKV_OK);
	}
	assert_int_equal(bench_entries(b), (b->ops->chunked ? 5 : 2) + 4 * 5); /* 4 probe files */
	skv_storage_close(s);
}

int main(void)
{
#define ALL(T) \
		T(file_is_allocated_and_marked_at_both_ends), \
		T(new_file_reads_as_zeros_between), \
		T(create_is_idempotent), \
		T(create_never_replaces), \
		T(check_finds_missing_and_damaged_files), \
		T(check_finds_every_wrong_length), \
		T(check_finds_swapped_files), \
		T(check_finds_a_file_of_another_storage), \
		T(check_finds_another_geometry), \
		T(a_newer_format_is_refused), \
		T(links_and_devices_are_refused), \
		T(remove_takes_only_what_is_there), \
		T(a_number_is_used_again_after_removal), \
		T(leftovers_of_a_crash_are_swept), \
		T(a_living_makers_file_is_left_alone), \
		T(threads_make_files_at_the_same_time), \
		T(a_leftover_that_is_a_link_is_not_followed)
#define T(f) cmocka_unit_test_setup_teardown(f, bench_setup, bench_teardown)
#define T3FS(f) cmocka_unit_test_setup_teardown(f, bench_setup_hf3fs, bench_teardown)
	const struct CMUnitTest file[] = { ALL(T) }, hf3fs[] = { ALL(T3FS) };
	int failed = cmocka_run_group_tests_name("file", file, NULL, NULL);

	return failed + cmocka_run_group_tests_name("hf3fs", hf3fs, NULL, NULL);
}
