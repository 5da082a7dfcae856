/*
 * test_core_deleted.c - storages that are deleted, on a real file system: each of their slab
 * files leaves the disk, whatever numbers went before, and the next storage in the same
 * directory is as any first one.
 */
#include "core_env.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <shell.h>

#define BLOCK 65536u
#define UNIT (1ull << 20)
#define SLOTS 15u /* of a file of one unit */
#define FILES 4u

enum before { AT_ONCE, KILLED, STOPPED, BEFORES };

static struct env e;
static char top[64];

static int setup(void **state)
{
	(void)state;
	snprintf(top, sizeof top, "%s/skv-deleted-XXXXXX",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	return mkdtemp(top) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[96];

	(void)state;
	snprintf(command, sizeof command, "rm -rf %s", top);
	return test_shell(command);
}

/* ---- on the disk ----------------------------------------------------------------------------- */

/* Bits of the numbers of slab files that there are. */
static unsigned on_disk(void)
{
	struct dirent *d;
	unsigned bits = 0, number;
	DIR *dir = opendir(top);

	assert_non_null(dir);
	while ((d = readdir(dir)) != NULL) {
		assert_null(strstr(d->d_name, "tmp"));
		if (strncmp(d->d_name, "slab-", 5) != 0)
			continue;
		assert_int_equal(sscanf(d->d_name, "slab-%8u.kvs", &number), 1);
		assert_true(number < 32);
		bits |= 1u << number;
	}
	closedir(dir);
	return bits;
}

/* ---- what is done ---------------------------------------------------------------------------- */

static uint32_t put(uint64_t hi, uint32_t n)
{
	struct skv_key keys[FILES * SLOTS];
	uint32_t done = 0;

	env_keys(keys, n, hi, 0);
	for (uint32_t i = 0; i < n; i += SLOTS)
		done += env_put(&e, keys + i, SLOTS);
	return done;
}

/* With all that is needed to write into it. */
static void make_storage(const char *name)
{
	struct skv_storage_spec s = { .name = name, .type = "file", .root = top,
				      .capacity = FILES * UNIT, .unit = UNIT,
				      .file_size = UNIT, .enabled = true };
	struct skv_spec spec = { "kv", BLOCK };

	if (skv_cluster_storage_put(e.cluster, &s, SKV_PUT_ANY, NULL, &e.err) != SKV_OK)
		fail_msg("%s", e.err.message);
	assert_int_equal(env_group(&e, "g", 0, name), SKV_OK);
	assert_int_equal(env_instance(&e, "i", "g", &spec, 1), SKV_OK);
}

static void delete_storage(const char *name)
{
	assert_int_equal(skv_cluster_instance_delete(e.cluster, "t", "i", NULL, &e.err), SKV_OK);
	assert_int_equal(skv_cluster_group_delete(e.cluster, "g", &e.err), SKV_OK);
	assert_int_equal(skv_cluster_storage_delete(e.cluster, name, &e.err), SKV_OK);
}

static void drain(unsigned files)
{
	unsigned left = on_disk() & ~files;

	for (unsigned f = 0; f < 32; f++)
		if (files >> f & 1)
			assert_int_equal(env_file_drain(e.cluster, "s", f, true, false, &e.err),
					 SKV_OK);
	for (int i = 0; i < 2000 && on_disk() != left; i++)
		env_advance(&e, 50);
	assert_int_equal(on_disk(), left);
}

static void restart(enum before how)
{
	if (how == AT_ONCE)
		return;
	if (how == KILLED)
		env_crash(&e);
	else
		env_shutdown(&e);
	env_open(&e);
}

/* The files whose numbers are in `holes` go, perhaps newer ones come; then the storage goes. */
static void play(unsigned holes, bool grown, enum before how)
{
	env_init(&e);
	env_open(&e);
	make_storage("s");
	assert_int_equal(put(1, FILES * SLOTS), FILES * SLOTS);
	assert_int_equal(on_disk(), (1u << FILES) - 1);
	drain(holes);
	if (grown) {
		assert_int_equal(put(2, SLOTS), SLOTS);
		assert_int_equal(on_disk() >> FILES, holes ? 1 : 0);
	}
	restart(how);
	delete_storage("s");
	assert_int_equal(on_disk(), 0);
	restart(how);
	env_check(&e);

	make_storage("t"); /* in the same place */
	assert_int_equal(put(3, FILES * SLOTS), FILES * SLOTS);
	assert_int_equal(on_disk(), (1u << FILES) - 1);
	restart(how);
	env_check(&e);
	delete_storage("t");
	assert_int_equal(on_disk(), 0);
	env_destroy(&e);
}

static void files_with_holes_leave_the_disk(void **state)
{
	(void)state;
	for (unsigned holes = 0; holes < 1u << FILES; holes++)
		for (unsigned k = 0; k < 2 * BEFORES; k++)
			play(holes, k % 2, k / 2);
}

/* The only file is a claim behind numbers that are gone: nothing in the checkpoint names it. */
static void so_does_a_file_that_nothing_names(void **state)
{
	struct skv_key keys[SLOTS];
	uint32_t n;

	(void)state;
	env_init(&e);
	env_open(&e);
	make_storage("s");
	assert_int_equal(put(1, FILES * SLOTS), FILES * SLOTS);
	drain((1u << FILES) - 1);
	assert_int_equal(put(2, SLOTS), SLOTS);
	assert_int_equal(on_disk(), 1u << FILES);
	env_keys(keys, SLOTS, 2, 0);
	assert_int_equal(env_delete(&e, keys, SLOTS, &n), SKV_OK);
	env_shutdown(&e);
	env_open(&e);
	delete_storage("s");
	assert_int_equal(on_disk(), 0);
	make_storage("t");
	assert_int_equal(put(3, FILES * SLOTS), FILES * SLOTS);
	env_destroy(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(files_with_holes_leave_the_disk, setup, teardown),
		cmocka_unit_test_setup_teardown(so_does_a_file_that_nothing_names, setup, teardown),
	};

	env_quiet();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
