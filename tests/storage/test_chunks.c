/*
 * test_chunks.c - storages of type hf3fs: which mounts will do, chunk sizes, where
 * header and trailer lie, holes.
 *
 * The linker puts __wrap_skv_fs_look between the storage and the file system (CMakeLists.txt), so
 * that a directory like any other is a mount of 3FS with the chunk size that a test wants, or none.
 */
#include "bench_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs.h"

#define KIB ((uint64_t)1024)
#define MIB (1024 * KIB)
#define CHUNK (256 * KIB)
#define SIZE (8 * MIB)

static struct {
	bool real;
	int error;
	struct skv_fs_mount mount; /* of the directory */
	uint64_t file_chunk;       /* of files, if it is another one */
} fake;

int __real_skv_fs_look(int fd, struct skv_fs_mount *out);
int __wrap_skv_fs_look(int fd, struct skv_fs_mount *out);
int __wrap_skv_fs_look(int fd, struct skv_fs_mount *out)
{
	struct stat st;

	if (fake.real)
		return __real_skv_fs_look(fd, out);
	*out = fake.mount;
	if (fake.file_chunk && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		out->chunk = fake.file_chunk;
	return fake.error;
}

static int setup(void **state)
{
	int rc = bench_setup(state);
	struct bench *b = *state;

	if (rc != 0)
		return rc;
	b->ops = &skv_storage_hf3fs;
	b->config.unit = 4 * MIB;
	b->config.read_chunk = true;
	memset(&fake, 0, sizeof fake);
	fake.mount = (struct skv_fs_mount){ .is_3fs = true, .chunk = CHUNK, .type = "fuse.hf3fs" };
	return 0;
}

static void the_directory_says_its_chunk_size(void **state)
{
	static const uint64_t good[] = { 32 * KIB, 64 * KIB, 128 * KIB, MIB, 4 * MIB };
	static const uint64_t bad[] = { 0, 4096, 16 * KIB, 96 * KIB, 128 * MIB };
	struct bench *b = *state;
	char marker[160];

	b->config.unit = 64 * MIB;
	snprintf(marker, sizeof marker, "%s", bench_path(b, SKV_STORAGE_MARKER));
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		struct skv_storage *s;

		fake.mount.chunk = good[i];
		s = bench_open(b);
		assert_int_equal(skv_storage_chunk(s), good[i]);
		skv_storage_close(s);
		assert_int_equal(unlink(marker), 0);
		assert_int_equal(unlink(bench_path(b, ".slabkv-probe")), 0);
	}
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		fake.mount.chunk = bad[i];
		bench_refused(b, SKV_E_INVALID, "must be a power of two from 32 KiB to 64 MiB");
		assert_string_equal(b->err.field, "chunk_size");
		assert_false(bench_has(b, SKV_STORAGE_MARKER));
	}
}

static void a_chunk_has_room_in_a_unit(void **state)
{
	struct bench *b = *state;

	fake.mount.chunk = 8 * MIB;
	bench_refused(b, SKV_E_INVALID, "must be at least one chunk (8388608 bytes)");
	assert_string_equal(b->err.field, "unit");
}

static void another_mount_is_refused(void **state)
{
	struct bench *b = *state;

	fake.mount = (struct skv_fs_mount){ .is_3fs = false, .chunk = CHUNK, .type = "ext4" };
	bench_refused(b, SKV_E_UNAVAILABLE,
		      "is of type hf3fs, but its directory is on a mount of type ext4");
	bench_says(b, "register it as type file");
	assert_int_equal(bench_entries(b), -1); /* nothing is left there */
	b->config.chunk = CHUNK;
	bench_refused(b, SKV_E_UNAVAILABLE, "mount 3FS there");
	assert_int_equal(mkdir(b->root, 0777), 0);
	bench_refused(b, SKV_E_UNAVAILABLE, "mount 3FS there");
	assert_int_equal(bench_entries(b), 0); /* the directory existed before */
}

static void a_mount_that_changes_is_noticed(void **state)
{
	struct bench *b = *state;
	struct skv_storage_health h;
	struct skv_storage *s = bench_open(b);

	assert_int_equal(skv_storage_create_file(s, 0, SIZE, &b->err), SKV_OK);
	fake.mount.is_3fs = false;
	snprintf(fake.mount.type, sizeof fake.mount.type, "tmpfs");
	assert_int_equal(skv_storage_probe(s, SKV_PROBE_WRITE, &h, &b->err), SKV_E_UNAVAILABLE);
	bench_says(b, "tmpfs");
	assert_int_equal(skv_storage_check_file(s, 0, SIZE, &b->err), SKV_E_UNAVAILABLE);
	fake.mount.is_3fs = true;
	assert_int_equal(skv_storage_probe(s, SKV_PROBE_WRITE, &h, &b->err), SKV_OK);
	fake.error = ENOTCONN;
	assert_int_equal(skv_storage_probe(s, SKV_PROBE_WRITE, &h, &b->err), SKV_E_UNAVAILABLE);
	bench_says(
		b,
		"is stale, its daemon or server is gone: unmount it (umount -l) and "
		"mount it again");
	fake.error = ESTALE;
	assert_int_equal(skv_storage_probe(s, SKV_PROBE_WRITE, &h, &b->err), SKV_E_UNAVAILABLE);
	bench_says(b, "stale");
	fake.error = 0;
	assert_int_equal(skv_storage_check_file(s, 0, SIZE, &b->err), SKV_OK);
	skv_storage_close(s);
}

static void another_chunk_size_is_refused(void **state)
{
	struct bench *b = *state;
	struct skv_storage_health h;
	struct skv_storage *s = bench_open(b);

	assert_int_equal(skv_storage_create_file(s, 0, SIZE, &b->err), SKV_OK);
	fake.mount.chunk = 2 * CHUNK;
	assert_int_equal(skv_storage_probe(s, SKV_PROBE_WRITE, &h, &b->err), SKV_E_CONFLICT);
	bench_says(b, "has chunks of 524288 bytes, not of 262144");
	skv_storage_close(s);
	b->config.may_create = false;
	b->config.chunk = CHUNK; /* as the registry has it */
	bench_refused(b, SKV_E_CONFLICT, "name the right directory");
	assert_string_equal(b->err.field, "chunk_size");
	b->config.chunk = 2 * CHUNK; /* the mount agrees, the marker does not */
	bench_refused(b, SKV_E_CONFLICT,
		      "the root's marker says a chunk size of 262144 bytes");
	fake.mount.chunk = CHUNK;
	b->config.chunk = CHUNK;
	s = bench_open(b);
	fake.file_chunk = 2 * CHUNK;
	assert_int_equal(skv_storage_check_file(s, 0, SIZE, &b->err), SKV_E_CORRUPT);
	bench_says(b, "it was made in another directory or layout");
	skv_storage_close(s);
}

static void told_and_found_must_agree(void **state)
{
	struct bench *b = *state;

	b->config.chunk = 64 * KIB;
	bench_refused(b, SKV_E_CONFLICT, "not of 65536");
	assert_false(bench_has(b, SKV_STORAGE_MARKER));
	b->config.chunk = 3 * CHUNK;
	bench_refused(b, SKV_E_INVALID, "a power of two");
	b->ops = &skv_storage_file;
	b->config.chunk = CHUNK;
	bench_refused(b, SKV_E_INVALID, "has no chunks");
}

/* Elsewhere nobody knows of chunks: what is told is believed, else it is the block size. */
static void any_mount_will_do_if_asked(void **state)
{
	struct bench *b = *state;
	struct skv_storage *s;
	struct stat st;

	fake.real = true;
	b->config.any_mount = true;
	b->config.chunk = MIB;
	s = bench_open(b);
	assert_int_equal(skv_storage_chunk(s), MIB);
	assert_int_equal(skv_storage_create_file(s, 0, SIZE, &b->err), SKV_OK);
	assert_int_equal(skv_storage_check_file(s, 0, SIZE, &b->err), SKV_OK);
	skv_storage_close(s);
	b->config.chunk = 0;
	snprintf(b->root, sizeof b->root, "%s/read", b->top);
	s = bench_open(b);
	assert_int_equal(stat(b->root, &st), 0);
	assert_int_equal(skv_storage_chunk(s), (uint64_t)st.st_blksize);
	skv_storage_close(s);
	b->config.any_mount = false;
	bench_refused(b, SKV_E_UNAVAILABLE, "is of type hf3fs"); /* /tmp is no 3FS */
}

/* Made when there were no chunks: its edge stays what it was, whatever the directory says. */
static void old_ones_keep_their_geometry(void **state)
{
	struct bench *b = *state;
	struct skv_storage *s;

	b->config.read_chunk = false;
	s = bench_open(b);
	assert_int_equal(skv_storage_chunk(s), 0);
	assert_int_equal(skv_storage_create_file(s, 0, SIZE, &b->err), SKV_OK);
	skv_storage_close(s);
	b->config.may_create = false;
	s = bench_open(b);
	assert_int_equal(skv_storage_check_file(s, 0, SIZE, &b->err), SKV_OK);
	skv_storage_close(s);
}

static void read_at(struct bench *b, uint64_t at, uint8_t raw[SKV_SUPERBLOCK_SIZE])
{
	int fd = open(bench_path(b, "slab-00000000.kvs"), O_RDONLY);

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, raw, SKV_SUPERBLOCK_SIZE, (off_t)at), SKV_SUPERBLOCK_SIZE);
	close(fd);
}

static void header_and_trailer_are_a_chunk_each(void **state)
{
	uint8_t head[SKV_SUPERBLOCK_SIZE], tail[SKV_SUPERBLOCK_SIZE];
	struct bench *b = *state;
	struct skv_storage *s = bench_open(b);
	struct skv_superblock sb;
	struct stat st;

	assert_int_equal(skv_storage_create_file(s, 0, SIZE, &b->err), SKV_OK);
	read_at(b, 0, head);
	read_at(b, SIZE - CHUNK, tail);
	assert_memory_equal(head, tail, sizeof head);
	assert_int_equal(skv_superblock_decode(head, &sb, &b->err), SKV_OK);
	assert_int_equal(sb.header, CHUNK);
	assert_int_equal(sb.trailer, CHUNK);
	assert_int_equal(sb.length, SIZE);
	assert_int_equal(stat(bench_path(b, "slab-00000000.kvs"), &st), 0);
	assert_int_equal(st.st_size, SIZE);
	assert_true((uint64_t)st.st_blocks * 512 <= 64 * KIB); /* nothing is allocated in advance */
	/* no chunk is left for slots */
	assert_int_equal(skv_storage_create_file(s, 1, 2 * CHUNK, &b->err), SKV_E_INVALID);
	assert_int_equal(skv_storage_create_file(s, 1, 3 * CHUNK, &b->err), SKV_OK);
	skv_storage_close(s);
}

static void holes_are_whole_chunks(void **state)
{
	static const struct skv_storage_range bad[] = {
		{ 0, CHUNK },			    /* the header */
		{ SIZE - CHUNK, SIZE },		    /* the trailer */
		{ CHUNK, SIZE },                    { CHUNK + 4096, 2 * CHUNK },
		{ CHUNK, 2 * CHUNK + 1 },
		{ 2 * CHUNK, 2 * CHUNK },           { 3 * CHUNK, 2 * CHUNK },
		{ CHUNK, UINT64_MAX & ~(CHUNK - 1) },
	};
	const struct skv_storage_range all = { CHUNK, SIZE - CHUNK };
	struct skv_storage_range many[SKV_PUNCH_MAX + 1];
	struct bench *b = *state;
	struct skv_storage *s = bench_open(b);
	uint8_t raw[SKV_SUPERBLOCK_SIZE], zero[SKV_SUPERBLOCK_SIZE] = { 0 };
	struct stat st;
	int fd;

	assert_int_equal(skv_storage_create_file(s, 0, SIZE, &b->err), SKV_OK);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		assert_int_equal(skv_storage_punch_file(s, 0, SIZE, &bad[i], 1, &b->err),
				 SKV_E_INVALID);
		bench_says(b, "whole chunks of 262144 bytes between header and trailer");
	}
	for (size_t i = 0; i <= SKV_PUNCH_MAX; i++)
		many[i] = (struct skv_storage_range){ CHUNK, 2 * CHUNK };
	assert_int_equal(skv_storage_punch_file(s, 0, SIZE, many, SKV_PUNCH_MAX + 1, &b->err),
			 SKV_E_INVALID);
	assert_int_equal(skv_storage_punch_file(s, 0, SIZE, many, 0, &b->err), SKV_E_INVALID);
	assert_int_equal(skv_storage_punch_file(s, 1, SIZE, &all, 1, &b->err), SKV_E_NOT_FOUND);
	assert_int_equal(skv_storage_punch_file(s, 0, 2 * SIZE, &all, 1, &b->err), SKV_E_CORRUPT);

	/* for the hole itself: the file system here has no ioctl of 3FS */
	fake.mount.is_3fs = false;
	skv_storage_close(s);
	b->config.any_mount = true;
	b->config.chunk = CHUNK;
	s = bench_open(b);
	fd = open(bench_path(b, "slab-00000000.kvs"), O_WRONLY);
	memset(raw, 7, sizeof raw);
	assert_int_equal(pwrite(fd, raw, sizeof raw, CHUNK), sizeof raw);
	close(fd);
	assert_int_equal(skv_storage_punch_file(s, 0, SIZE, &all, 1, &b->err), SKV_OK);
	assert_int_equal(skv_storage_punch_file(s, 0, SIZE, &all, 1, &b->err), SKV_OK);
	read_at(b, CHUNK, raw);
	assert_memory_equal(raw, zero, sizeof raw);
	assert_int_equal(skv_storage_check_file(s, 0, SIZE, &b->err), SKV_OK);
	assert_int_equal(stat(bench_path(b, "slab-00000000.kvs"), &st), 0);
	assert_int_equal(st.st_size, SIZE);
	skv_storage_close(s);
}

static void files_with_space_keep_it(void **state)
{
	const struct skv_storage_range all = { 4096, 8192 };
	struct bench *b = *state;
	struct skv_storage *s;

	b->ops = &skv_storage_file;
	s = bench_open(b);
	assert_int_equal(skv_storage_create_file(s, 0, SIZE, &b->err), SKV_OK);
	assert_int_equal(skv_storage_punch_file(s, 0, SIZE, &all, 1, &b->err), SKV_E_UNSUPPORTED);
	bench_says(b, "remove files instead");
	skv_storage_close(s);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, bench_teardown)
	const struct CMUnitTest tests[] = {
		T(the_directory_says_its_chunk_size), T(a_chunk_has_room_in_a_unit),
		T(another_mount_is_refused),	      T(a_mount_that_changes_is_noticed),
		T(another_chunk_size_is_refused),     T(told_and_found_must_agree),
		T(any_mount_will_do_if_asked),	      T(old_ones_keep_their_geometry),
		T(header_and_trailer_are_a_chunk_each), T(holes_are_whole_chunks),
		T(files_with_space_keep_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
