/*
 * test_core_bad_files.c - slab files that are lost, cut or damaged while the manager runs or before
 * it starts: each costs its own blocks; repaired, found again, given up after a minute with a
 * witness, or on request; never while a mount flaps.
 *
 * A core without threads on files in a real directory; openat and pread fail
 * as the test says (linker).
 */
#include "core_env.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <shell.h>

#define BLOCK 65536u
#define UNIT (1ull << 20)
#define SLOTS 15u /* of a file of one unit */
#define FILES 3u
#define ALL (FILES * SLOTS)

static struct env e;
static char top[64];

static void shell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void shell(const char *format, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	assert_int_equal(test_shell(text), 0);
}

/* ---- a disk that fails ----------------------------------------------------------------------- */

/* EIO of files whose paths end so; from byte `from` on, or with `opens` as
 * soon as they are opened. */
static struct {
	const char *name; /* NULL: the disk is well */
	off_t from;
	bool opens;
	unsigned hits;
} sick;

int __real_openat(int dir, const char *name, int flags, mode_t mode);
int __wrap_openat(int dir, const char *name, int flags, mode_t mode);
ssize_t __real_pread(int fd, void *out, size_t n, off_t at);
ssize_t __wrap_pread(int fd, void *out, size_t n, off_t at);

static bool is_sick(const char *path)
{
	size_t n = strlen(path), k = sick.name ? strlen(sick.name) : 0;

	return sick.name && n >= k && strcmp(path + n - k, sick.name) == 0;
}

int __wrap_openat(int dir, const char *name, int flags, mode_t mode)
{
	if (!sick.opens || !is_sick(name))
		return __real_openat(dir, name, flags, mode);
	sick.hits++;
	errno = EIO;
	return -1;
}

ssize_t __wrap_pread(int fd, void *out, size_t n, off_t at)
{
	char link[64], path[256];
	ssize_t len;

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	len = sick.name ? readlink(link, path, sizeof path - 1) : -1;
	path[len < 0 ? 0 : len] = '\0';
	if (len < 0 || at < sick.from || !is_sick(path))
		return __real_pread(fd, out, n, at);
	sick.hits++;
	errno = EIO;
	return -1;
}

/* Overwrites some bytes of a slab file. */
static void spoil(uint32_t file, off_t at)
{
	char path[128];
	int fd;

	snprintf(path, sizeof path, "%s/s/slab-%08u.kvs", top, file);
	fd = open(path, O_WRONLY);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, "spoiled", 7, at), 7);
	close(fd);
}
#define HEAD 40
#define TAIL ((off_t)(UNIT - 4096 + 40))

/* Key {1, i} is the i-th; file i has keys from i * SLOTS on. */
static int setup(void **state)
{
	char root[80];
	struct skv_storage_spec s = { .name = "s", .type = "file", .root = root,
				      .capacity = FILES * UNIT, .unit = UNIT,
				      .file_size = UNIT, .enabled = true };
	struct skv_spec spec = { "kv", BLOCK };
	struct skv_key keys[ALL];

	(void)state;
	env_quiet();
	snprintf(top, sizeof top, "/tmp/skv-bad-XXXXXX");
	assert_non_null(mkdtemp(top));
	snprintf(root, sizeof root, "%s/s", top);
	env_init(&e);
	env_open(&e);
	assert_int_equal(skv_cluster_storage_put(e.cluster, &s, SKV_PUT_ANY, NULL, &e.err), SKV_OK);
	assert_int_equal(env_group(&e, "g", 0, "s"), SKV_OK);
	assert_int_equal(env_instance(&e, "i", "g", &spec, 1), SKV_OK);
	env_keys(keys, ALL, 1, 0);
	for (uint32_t i = 0; i < ALL; i += SLOTS)
		assert_int_equal(env_put(&e, keys + i, SLOTS), SLOTS);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	sick.name = NULL;
	env_check(&e);
	env_destroy(&e);
	shell("rm -rf %s", top);
	return 0;
}

static const struct skv_file_view *view(uint32_t number)
{
	struct skv_file_view *v;
	uint32_t n;

	skv_arena_reset(&e.arena);
	assert_int_equal(skv_cluster_files(e.cluster, "s", &e.arena, &v, &n, &e.err), SKV_OK);
	for (uint32_t i = 0; i < n; i++)
		if (v[i].file == number)
			return &v[i];
	return NULL;
}

static uint32_t found_in(uint32_t file)
{
	struct skv_key keys[SLOTS];
	struct skv_lookup_res res;
	uint32_t matched;

	env_keys(keys, SLOTS, 1, file * SLOTS);
	assert_int_equal(env_lookup(&e, keys, SLOTS, SKV_LOOKUP_BATCH, 1, &res), SKV_OK);
	matched = res.matched;
	assert_int_equal(env_match(&e, keys, SLOTS), matched == SLOTS ? SLOTS : 0);
	return matched;
}

/* So that each file is looked at, the bad ones also. */
static void look_around(void)
{
	for (int i = 0; i < 8; i++)
		env_advance(&e, 1000);
}

static void assert_serves(void)
{
	struct skv_stats st;

	assert_int_equal(skv_cluster_ready(e.cluster, &e.err), SKV_OK);
	env_stats(&e, &st);
	assert_true(st.storages[0].healthy);
}

static void assert_bad(uint32_t file, const char *why)
{
	struct skv_stats st;

	assert_serves();
	assert_string_equal(view(file)->state, "bad");
	assert_string_equal(view(file)->why, why);
	env_stats(&e, &st);
	assert_int_equal(st.storages[0].bad_files, 1);
	for (uint32_t f = 0; f < FILES; f++)
		assert_int_equal(found_in(f), f == file ? 0 : SLOTS);
}

static void assert_well(uint32_t file)
{
	assert_serves();
	assert_string_equal(view(file)->state, "used");
	for (uint32_t f = 0; f < FILES; f++)
		assert_int_equal(found_in(f), SLOTS);
}

/* ---- scenes ---------------------------------------------------------------------------------- */

static void a_lost_file_costs_its_own_blocks(void **state)
{
	(void)state;
	shell("mv %s/s/slab-00000001.kvs %s/away", top, top);
	look_around();
	assert_bad(1, "missing");
	shell("mv %s/away %s/s/slab-00000001.kvs", top, top);
	look_around();
	assert_well(1);
}

static void nothing_is_placed_in_a_bad_file(void **state)
{
	struct skv_key keys[5];
	uint32_t deleted;

	(void)state;
	env_keys(keys, 5, 1, SLOTS);
	shell("mv %s/s/slab-00000001.kvs %s/away", top, top);
	look_around();
	assert_int_equal(env_delete(&e, keys, 5, &deleted), SKV_OK); /* room in the bad file */
	look_around();
	env_keys(keys, 5, 2, 0);
	assert_int_equal(env_put(&e, keys, 5), 5);
	assert_int_equal(env_match(&e, keys, 5), 5);
	assert_int_equal(view(1)->used_bytes, (SLOTS - 5) * BLOCK);
}

static void one_before_the_start_costs_no_more(void **state)
{
	(void)state;
	env_crash(&e);
	shell("mv %s/s/slab-00000002.kvs %s/away", top, top);
	env_open(&e);
	assert_bad(2, "missing");
	env_crash(&e);
	shell("mv %s/away %s/s/slab-00000002.kvs", top, top);
	env_open(&e);
	assert_well(2);
}

static void a_flipped_superblock_is_mended_from_its_copy(void **state)
{
	(void)state;
	spoil(0, HEAD);
	spoil(2, TAIL);
	look_around();
	assert_well(0);
	shell("cp %s/s/slab-00000000.kvs %s/a && cp %s/s/slab-00000002.kvs %s/b", top, top, top,
	      top);
	look_around();
	assert_well(2);
	env_crash(&e);
	spoil(1, HEAD);
	env_open(&e);
	assert_well(1);
}

static void both_superblocks_bad_is_damage(void **state)
{
	(void)state;
	spoil(1, HEAD);
	spoil(1, TAIL);
	look_around();
	assert_bad(1, "damaged");
}

static void a_cut_file_is_bad_and_stays(void **state)
{
	(void)state;
	shell("truncate -s 4096 %s/s/slab-00000001.kvs", top);
	look_around();
	assert_bad(1, "damaged");
	for (int i = 0; i < 20; i++)
		look_around();
	/* part of it may be worth something: nobody gives it up unasked */
	assert_bad(1, "damaged");
}

/* Until it is not there any more. */
static void wait_gone(uint32_t file)
{
	for (int i = 0; i < 400 && view(file); i++)
		env_advance(&e, 500);
	assert_null(view(file));
}

static void it_is_given_up_after_a_minute(void **state)
{
	struct skv_key keys[SLOTS];

	(void)state;
	shell("rm %s/s/slab-00000001.kvs", top);
	look_around();
	for (int i = 0; i < 50; i++)
		env_advance(&e, 1000);
	assert_bad(1, "missing"); /* 58 s */
	wait_gone(1);
	assert_serves();
	assert_int_equal(found_in(0) + found_in(2), 2 * SLOTS);
	/* The file's keys can be stored again, in a file of another number; also after a
	 * restart. */
	env_keys(keys, SLOTS, 1, SLOTS);
	assert_int_equal(env_put(&e, keys, SLOTS), SLOTS);
	assert_non_null(view(FILES));
	env_crash(&e);
	env_open(&e);
	assert_null(view(1));
	for (uint32_t f = 0; f < FILES; f++)
		assert_int_equal(found_in(f), SLOTS);
}

static void damage_is_given_up_too_pinned_or_not(void **state)
{
	struct skv_key keys[SLOTS];
	struct skv_pin_res pins;

	(void)state;
	env_keys(keys, SLOTS, 1, SLOTS);
	assert_int_equal(env_pin(&e, keys, SLOTS, SKV_PIN_HARD, 0, &pins), SKV_OK);
	spoil(1, HEAD);
	spoil(1, TAIL);
	look_around();
	wait_gone(1);
	assert_int_equal(found_in(0) + found_in(2), 2 * SLOTS);
	/* The file's owner is unknown: the file stays. */
	shell("test -e %s/s/slab-00000001.kvs", top);
}

static void without_a_witness_nothing_is_given_up(void **state)
{
	(void)state;
	shell("rm %s/s/slab-*.kvs", top);
	for (int i = 0; i < 20; i++)
		look_around();
	assert_serves();
	for (uint32_t f = 0; f < FILES; f++) {
		assert_string_equal(view(f)->state, "bad");
		assert_int_equal(view(f)->used_bytes, SLOTS * BLOCK);
	}
}

static void a_flapping_mount_gives_nothing_up(void **state)
{
	(void)state;
	for (int i = 0; i < 40; i++) {
		shell("mv %s/s %s/gone && mkdir %s/s", top, top, top); /* an empty mount point */
		env_advance(&e, 3000);
		assert_int_equal(skv_cluster_ready(e.cluster, &e.err), SKV_E_UNAVAILABLE);
		shell("rm -rf %s/s && mv %s/gone %s/s", top, top, top);
		/* Half of it is there yet. */
		shell("mv %s/s/slab-00000001.kvs %s/away", top, top);
		look_around();
		assert_bad(1, "missing");
		shell("mv %s/away %s/s/slab-00000001.kvs", top, top);
	}
	look_around();
	assert_well(1);
}

/* A disk under one file: its blocks are misses as long as it lasts. It is not gone, so
 * nobody gives it up unasked. */
static void eio_of_one_file_costs_its_own_blocks(void **state)
{
	static const struct {
		off_t from;
		bool opens;
	} how[] = { { 0, true }, { 0, false }, { 4096, false } };

	(void)state;
	for (unsigned i = 0; i < sizeof how / sizeof how[0]; i++) {
		struct skv_key keys[5];
		uint32_t deleted;

		memset(&sick, 0, sizeof sick);
		sick.from = how[i].from;
		sick.opens = how[i].opens;
		sick.name = "slab-00000001.kvs";
		look_around();
		assert_bad(1, "unreadable");
		assert_true(sick.hits > 0);
		for (int k = 0; k < 15; k++) /* two minutes */
			look_around();
		assert_bad(1, "unreadable");
		env_keys(keys, 5, 1, 0); /* in file 0 there is room, then, */
		assert_int_equal(env_delete(&e, keys, 5, &deleted), SKV_OK);
		look_around(); /* the blocks' leases end */
		assert_int_equal(env_put(&e, keys, 5), 5); /* and nothing is placed in the other */
		assert_int_equal(env_match(&e, keys, 5), 5);
		assert_int_equal(view(1)->used_bytes, SLOTS * BLOCK);
		sick.name = NULL;
		look_around();
		assert_well(1);
	}
}

static void eio_before_the_start_costs_no_more(void **state)
{
	(void)state;
	env_crash(&e);
	memset(&sick, 0, sizeof sick);
	sick.name = "slab-00000002.kvs";
	env_open(&e);
	assert_bad(2, "unreadable");
	env_shutdown(&e);
	env_open(&e);
	assert_bad(2, "unreadable");
	sick.name = NULL;
	look_around();
	assert_well(2);
}

/* Of all that there is: the storage is not well, and nobody knows of any file that it is bad. */
static void eio_of_the_marker_is_the_storages(void **state)
{
	(void)state;
	memset(&sick, 0, sizeof sick);
	sick.name = "";
	look_around();
	assert_int_equal(skv_cluster_ready(e.cluster, &e.err), SKV_E_UNAVAILABLE);
	for (uint32_t f = 0; f < FILES; f++) {
		assert_string_equal(view(f)->state, "used");
		assert_int_equal(found_in(f), 0);
	}
	sick.name = NULL;
	look_around();
	assert_well(1);
}

/* Reads are another matter. */
static void eio_of_writes_stops_them_alone(void **state)
{
	struct skv_core_counters n;

	(void)state;
	memset(&sick, 0, sizeof sick);
	sick.name = ".slabkv-probe";
	sick.opens = true;
	env_advance(&e, 1000);
	assert_int_equal(skv_cluster_ready(e.cluster, &e.err), SKV_E_UNAVAILABLE);
	look_around();
	for (uint32_t f = 0; f < FILES; f++)
		assert_int_equal(found_in(f), SLOTS);
	skv_cluster_counters_get(e.cluster, &n);
	assert_int_equal(n.storage_failed, 1);
	assert_int_equal(n.storage_unread, 0);
	sick.name = NULL;
	env_advance(&e, 1000);
	assert_well(1);
}

static void forget_gives_up_at_once(void **state)
{
	(void)state;
	assert_int_equal(env_file_forget(e.cluster, "s", 1, &e.err), SKV_E_CONFLICT);
	assert_string_equal(e.err.field, "forget");
	assert_int_equal(env_file_forget(e.cluster, "s", 9, &e.err), SKV_E_NOT_FOUND);
	assert_int_equal(env_file_forget(e.cluster, "t", 1, &e.err), SKV_E_NOT_FOUND);
	shell("truncate -s 4096 %s/s/slab-00000001.kvs", top);
	look_around();
	assert_int_equal(env_file_forget(e.cluster, "s", 1, &e.err), SKV_OK);
	assert_int_equal(env_file_forget(e.cluster, "s", 1, &e.err), SKV_OK);
	assert_string_equal(view(1)->why, "lost");
	/* Durable from then on. */
	env_crash(&e);
	env_open(&e);
	wait_gone(1);
	assert_serves();
	assert_int_equal(found_in(0) + found_in(2), 2 * SLOTS);
}

int main(void)
{
#define SCENE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		SCENE(a_lost_file_costs_its_own_blocks),
		SCENE(nothing_is_placed_in_a_bad_file),
		SCENE(one_before_the_start_costs_no_more),
		SCENE(a_flipped_superblock_is_mended_from_its_copy),
		SCENE(both_superblocks_bad_is_damage),
		SCENE(a_cut_file_is_bad_and_stays),
		SCENE(it_is_given_up_after_a_minute),
		SCENE(damage_is_given_up_too_pinned_or_not),
		SCENE(without_a_witness_nothing_is_given_up),
		SCENE(a_flapping_mount_gives_nothing_up),
		SCENE(eio_of_one_file_costs_its_own_blocks),
		SCENE(eio_before_the_start_costs_no_more),
		SCENE(eio_of_the_marker_is_the_storages),
		SCENE(eio_of_writes_stops_them_alone),
		SCENE(forget_gives_up_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
