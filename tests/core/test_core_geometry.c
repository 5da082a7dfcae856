/*
 * test_core_geometry.c - how slots lie on chunks: sizes by hand, what a registration tells, which
 * storage a start takes, where slots begin, grace.
 */
#include "core_env.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <skv/log.h>
#include <skv/superblock.h>

#include <model/geometry.h>

#define KIB ((uint64_t)1024)
#define MIB (1024 * KIB)
#define UNIT (8 * MIB)

static struct env e;
static char top[64];

static int setup(void **state)
{
	(void)state;
	snprintf(top, sizeof top, "/tmp/skv-geometry-XXXXXX");
	if (!mkdtemp(top))
		return -1;
	env_quiet();
	env_init(&e);
	env_open(&e);
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st;
	(void)type;
	(void)where;
	return remove(path);
}

static int teardown(void **state)
{
	(void)state;
	env_shutdown(&e);
	env_destroy(&e);
	return nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void by_hand(void **state)
{
	static const struct {
		uint64_t size, chunk;
		bool numbered;
		struct geometry g;
	} cases[] = {
		/* Whole chunks. */
		{ MIB, MIB, false, { FIT_WHOLE, MIB, MIB, 0, 0, 0 } },
		{ 4 * MIB, MIB, false, { FIT_WHOLE, 4 * MIB, MIB, 0, 0, 0 } },
		{ 64 * KIB, 64 * KIB, false, { FIT_WHOLE, 64 * KIB, 64 * KIB, 0, 0, 0 } },
		/* 4,497,408 = 68.625 x 64 KiB, 17.16 x 256 KiB, 4.29 x 1 MiB */
		{ 4497408, 64 * KIB, false, { FIT_ROUNDED, 69 * 64 * KIB, 64 * KIB, 0, 24576, 0 } },
		{ 4497408, 256 * KIB, false,
		  { FIT_ROUNDED, 18 * 256 * KIB, 256 * KIB, 0, 221184, 0 } },
		/* 4 in 16 MiB leave 1,212,416 behind; 1 in 8 MiB and the shorter ones
		 * more than a sixteenth. 7 in 32 MiB leave 2,072,576, which is the
		 * first less than a sixteenth. */
		{ 4497408, MIB, false, { FIT_SEGMENTS, 4497408, 32 * MIB, 32 * MIB, 296082, 0 } },
		/* 15 of 64 KiB - 4 KiB in 1 MiB + ... : 17 in 1 MiB leave 4096 */
		{ 60 * KIB, MIB, false, { FIT_SEGMENTS, 60 * KIB, MIB, MIB, 4 * KIB / 17, 0 } },
		{ 64 * KIB, MIB, false, { FIT_SEGMENTS, 64 * KIB, MIB, MIB, 0, 0 } },
		{ 300 * KIB, MIB, false,
		  { FIT_SEGMENTS, 300 * KIB, 4 * MIB, 4 * MIB, 196 * KIB / 13, 0 } },
		/* An eighth is the bound of what is rounded: 8 chunks and 9. */
		{ 8 * 64 * KIB + 1, 64 * KIB, false,
		  { FIT_ROUNDED, 9 * 64 * KIB, 64 * KIB, 0, 65535, 0 } },
		/* No chunks. */
		{ 4497408, 0, false, { FIT_WHOLE, 4497408, 4096, 0, 0, 0 } },
		{ 1000, 0, false, { FIT_WHOLE, 1000, 1, 0, 0, 0 } },
		{ 1000, 0, true, { FIT_WHOLE, 1000, 1000, 0, 0, 0 } },
		/* Numbered: at multiples of their size, whatever it costs: chunk - gcd. */
		{ 2 * MIB, MIB, true, { FIT_WHOLE, 2 * MIB, 2 * MIB, 0, 0, 0 } },
		{ 3 * MIB / 2, MIB, true, { FIT_COPIED, 3 * MIB / 2, 3 * MIB / 2, 0, 0, MIB / 2 } },
		{ MIB / 2, MIB, true, { FIT_COPIED, MIB / 2, MIB / 2, 0, 0, MIB / 2 } },
		{ 4096, MIB, true, { FIT_COPIED, 4096, 4096, 0, 0, MIB - 4096 } },
		{ 4497408, MIB, true, { FIT_COPIED, 4497408, 4497408, 0, 0, MIB - 8192 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct geometry g =
			geometry_of(cases[i].size, cases[i].numbered, cases[i].chunk, 64 * MIB);

		if (g.fit != cases[i].g.fit || g.stride != cases[i].g.stride ||
		    g.align != cases[i].g.align || g.segment != cases[i].g.segment ||
		    g.wasted != cases[i].g.wasted || g.copied != cases[i].g.copied)
			fail_msg(
				"case %zu: %s stride %llu align %llu segment %llu wasted "
				"%llu copied %llu",
				i, fit_text(g.fit), (unsigned long long)g.stride,
				(unsigned long long)g.align, (unsigned long long)g.segment,
				(unsigned long long)g.wasted, (unsigned long long)g.copied);
	}
}

/* The guarantees hold for any size. */
static void any_size(void **state)
{
	(void)state;
	for (uint64_t size = 1; size < 20 * MIB; size += 1 + size / 37) {
		for (uint64_t chunk = 64 * KIB; chunk <= 64 * MIB; chunk *= 2) {
			struct geometry g = geometry_of(size, false, chunk, 64 * MIB);

			assert_true(g.stride >= size);
			if (g.segment) {
				assert_true(g.segment % chunk == 0 && g.stride == size &&
					    size <= g.segment);
			} else {
				assert_true(g.fit <= FIT_ROUNDED && g.stride % chunk == 0 &&
					    g.align == chunk);
				assert_true(g.wasted == g.stride - size && g.wasted <= size / 8);
			}
		}
	}
}

static int put_storage(const char *name, uint64_t chunk, struct skv_storage_spec *change)
{
	char root[128];
	struct skv_storage_spec s = { .name = name, .type = "hf3fs", .root = root,
				      .capacity = 64 * MIB, .unit = UNIT,
				      .enabled = true, .any_mount = true, .chunk_size = chunk };

	if (change) {
		*change = (struct skv_storage_spec){ .type = change->type ? change->type : s.type,
						     .root = root, .name = name,
						     .capacity = change->capacity ? change->capacity
							     : s.capacity,
						     .unit = change->unit ? change->unit : s.unit,
						     .enabled = true,
						     .any_mount = change->any_mount,
						     .file_size = change->file_size,
						     .chunk_size = chunk };
		s = *change;
	}
	snprintf(root, sizeof root, "%s/%s", top, name);
	return skv_cluster_storage_put(e.cluster, &s, SKV_PUT_ANY, NULL, &e.err);
}

static const struct skv_storage_view *view(const char *name)
{
	struct skv_storage_view *v;

	assert_int_equal(skv_cluster_storage(e.cluster, name, &e.arena, &v, &e.err), SKV_OK);
	return &v[0];
}

static int put_instance(const char *id, uint64_t size, bool numbered)
{
	const struct skv_spec spec = { "kv", size };
	const struct skv_instance_spec i = { .tenant = "t", .id = id, .group = "g", .specs = &spec,
					     .n_specs = 1,
					     .extra = "", .numbered = numbered };

	return skv_cluster_instance_put(e.cluster, &i, SKV_PUT_ANY, NULL, &e.err);
}

static void put_group(const char *const *names, uint32_t n)
{
	const struct skv_group_spec g = { .name = "g", .storages = names, .n_storages = n,
					  .extra = "" };

	assert_int_equal(skv_cluster_group_put(e.cluster, &g, SKV_PUT_ANY, NULL, NULL, &e.err),
			 SKV_OK);
}

/* Not at once: nobody would renew the ownership. */
static void seconds(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		env_advance(&e, 1000);
}

static void says(int rc, int status, const char *field, const char *words)
{
	assert_int_equal(rc, status);
	assert_string_equal(e.err.field, field);
	if (!strstr(e.err.message, words))
		fail_msg("\"%s\" is not in \"%s\"", words, e.err.message);
	skv_error_clear(&e.err);
}

static void refusals(void **state)
{
	struct skv_storage_spec change;
	char path[160];

	(void)state;
	says(put_storage("a", 3 * MIB, NULL), SKV_E_INVALID, "chunk_size",
	     "a power of two from 32 KiB to 64 MiB");
	says(put_storage("a", 128 * MIB, NULL), SKV_E_INVALID, "chunk_size", "64 MiB");
	change = (struct skv_storage_spec){ .any_mount = false };
	says(put_storage("a", 16 * KIB, &change), SKV_E_INVALID, "chunk_size", "32 KiB");
	change = (struct skv_storage_spec){ .any_mount = false };
	says(put_storage("a", MIB, &change), SKV_E_UNAVAILABLE, "root",
	     "is of type hf3fs, but its directory is on a mount of type");
	change = (struct skv_storage_spec){ .type = "file", .any_mount = true };
	says(put_storage("a", 0, &change), SKV_E_INVALID, "any_mount", "has no chunks");
	change = (struct skv_storage_spec){ .type = "file" };
	says(put_storage("a", MIB, &change), SKV_E_INVALID, "chunk_size", "has no chunks");
	change = (struct skv_storage_spec){ .any_mount = true, .unit = MIB };
	says(put_storage("a", 2 * MIB, &change), SKV_E_INVALID, "unit", "at least one chunk");
	change = (struct skv_storage_spec){ .any_mount = true, .file_size = UNIT };
	says(put_storage("b", 4 * MIB, &change), SKV_E_INVALID, "file_size",
	     "four chunks at least");
	change = (struct skv_storage_spec){ .any_mount = true, .capacity = UNIT };
	says(put_storage("c", 4 * MIB, &change), SKV_E_INVALID, "capacity", "four chunks at least");
	snprintf(path, sizeof path, "%s/missing/d", top);
	{
		struct skv_storage_spec s = { .name = "d", .type = "hf3fs", .root = path,
					      .capacity = UNIT, .unit = UNIT,
					      .enabled = true };

		says(skv_cluster_storage_put(e.cluster, &s, SKV_PUT_ANY, NULL, &e.err),
		     SKV_E_UNAVAILABLE, "root", "is the file system mounted?");
	}
	assert_int_equal(put_storage("one", MIB, NULL), SKV_OK);
	{
		struct skv_storage_spec s = { .name = "other", .type = "hf3fs", .root = path,
					      .capacity = 64 * MIB, .unit = UNIT,
					      .enabled = true, .any_mount = true,
					      .chunk_size = MIB };

		/* The directory of another storage of another store. */
		env_shutdown(&e);
		env_destroy(&e);
		env_init(&e);
		env_open(&e);
		snprintf(path, sizeof path, "%s/one", top);
		says(skv_cluster_storage_put(e.cluster, &s, SKV_PUT_ANY, NULL, &e.err),
		     SKV_E_FOREIGN, "root", "belongs to storage");
	}
}

static void what_is_found_is_kept(void **state)
{
	const struct skv_storage_view *v;
	struct skv_storage_spec s;
	struct stat st;
	char path[160];

	(void)state;
	assert_int_equal(put_storage("s", 0, NULL), SKV_OK);
	snprintf(path, sizeof path, "%s/s", top);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(view("s")->spec.chunk_size, (uint64_t)st.st_blksize);
	assert_int_equal(put_storage("m", MIB, NULL), SKV_OK);
	v = view("m");
	assert_int_equal(v->spec.chunk_size, MIB);
	assert_true(v->spec.any_mount);
	assert_int_equal(v->spec.file_size, UNIT); /* an eighth of the capacity */
	/* the same again; not told means as it is */
	assert_int_equal(put_storage("m", 0, NULL), SKV_OK);
	says(put_storage("m", 2 * MIB, NULL), SKV_E_CONFLICT, "chunk_size", "cannot change");
	s = (struct skv_storage_spec){ .any_mount = true, .capacity = 64ull << 40,
				       .unit = 64 * MIB };
	assert_int_equal(put_storage("big", 64 * KIB, &s), SKV_OK);
	assert_int_equal(view("big")->spec.file_size, 4ull << 30);
	s = (struct skv_storage_spec){ .any_mount = true, .capacity = 64ull << 40,
				       .unit = 64 * MIB };
	assert_int_equal(put_storage("big1", MIB, &s), SKV_OK);
	assert_int_equal(view("big1")->spec.file_size, 16ull << 30);
	s = (struct skv_storage_spec){ .any_mount = true, .capacity = 64ull << 40,
				       .unit = 64 * MIB };
	assert_int_equal(put_storage("big4", 8 * MIB, &s), SKV_OK);
	assert_int_equal(view("big4")->spec.file_size, 64ull << 30);
	env_crash(&e);
	env_open(&e);
	v = view("m");
	assert_int_equal(v->spec.chunk_size, MIB);
	assert_int_equal(v->spec.file_size, UNIT);
	assert_true(v->spec.any_mount);
	env_advance(&e, 1000);
	assert_true(view("m")->healthy);
}

/* Lines of the log while a numbered instance with quarters of chunks is registered. */
static void log_of_put_instance(const char *id, uint64_t size, char *text, size_t n)
{
	int ends[2];
	ssize_t got;

	assert_int_equal(pipe(ends), 0);
	skv_log_setup(ends[1], false, SKV_LOG_WARN);
	assert_int_equal(put_instance(id, size, true), SKV_OK);
	env_quiet();
	close(ends[1]);
	got = read(ends[0], text, n - 1);
	assert_true(got >= 0);
	text[got] = '\0';
	close(ends[0]);
}

static void registration_tells_the_cost(void **state)
{
	static const char *const names[] = { "c64k", "c1m", "plain" };
	const struct skv_instance_view *i;
	struct skv_instance_view *v;
	char text[4096];

	(void)state;
	assert_int_equal(put_storage("c64k", 64 * KIB, NULL), SKV_OK);
	assert_int_equal(put_storage("c1m", MIB, NULL), SKV_OK);
	assert_int_equal(put_storage("plain", 0, &(struct skv_storage_spec){ .type = "file" }),
			 SKV_OK);
	put_group(names, 3);
	assert_int_equal(put_instance("i", 100 * KIB, true), SKV_OK);
	assert_int_equal(skv_cluster_instance(e.cluster, "t", "i", &e.arena, &v, &e.err),
			 SKV_OK);
	i = &v[0];
	assert_int_equal(i->n_placements, 2);
	assert_string_equal(i->placements[0].storage, "c64k");
	assert_string_equal(i->placements[0].spec, "kv");
	assert_string_equal(i->placements[0].fit, "copied");
	assert_int_equal(i->placements[0].copied_bytes, 60 * KIB);
	assert_int_equal(i->placements[1].copied_bytes, MIB - 4 * KIB);
	assert_int_equal(put_instance("j", 64 * KIB, false), SKV_OK);
	assert_int_equal(skv_cluster_instance(e.cluster, "t", "j", &e.arena, &v, &e.err),
			 SKV_OK);
	assert_string_equal(v[0].placements[0].fit, "whole");
	assert_int_equal(v[0].placements[0].slot_bytes, 64 * KIB);
	assert_string_equal(v[0].placements[1].fit, "segments");
	log_of_put_instance("quarters", MIB / 4, text, sizeof text);
	assert_non_null(strstr(text, "on storage c1m are copied: 262144 bytes each, 0 wasted; 3FS "
				     "reads 4.00 and writes 4.00 bytes for each byte written"));
	assert_null(strstr(text, "c64k")); /* whole chunks there */
}

/* Starts `n` blocks; the file of the first, all locations in loc. */
static const char *start(const char *instance, uint64_t key, uint32_t n, struct skv_start_res *res)
{
	struct skv_key keys[8];
	struct env_start s = { .instance = instance, .keys = keys, .n = n, .independent = true,
			       .deadline_ms = 20000 };

	for (uint32_t i = 0; i < n; i++)
		keys[i] = (struct skv_key){ key, i + 1 };
	assert_int_equal(env_start(&e, &s, res), SKV_OK);
	return res->files.v[res->loc[0].file].storage;
}

static void the_best_fit_comes_first(void **state)
{
	static const char *const names[] = { "c1m", "c64k", "c256k" };
	struct skv_start_res res;

	(void)state;
	assert_int_equal(put_storage("c64k", 64 * KIB, NULL), SKV_OK);
	assert_int_equal(put_storage("c256k", 256 * KIB, NULL), SKV_OK);
	assert_int_equal(put_storage("c1m", MIB, NULL), SKV_OK);
	put_group(names, 3);
	assert_int_equal(put_instance("whole1m", MIB, false), SKV_OK);
	assert_int_equal(put_instance("whole64k", 64 * KIB, false), SKV_OK);
	assert_int_equal(put_instance("whole256k", 768 * KIB, false), SKV_OK);
	assert_int_equal(put_instance("round", 1000 * KIB, false), SKV_OK);
	assert_int_equal(put_instance("odd", 40 * KIB, false), SKV_OK);
	/* all fit it: the first that the group names */
	assert_string_equal(start("whole1m", 1, 2, &res), "c1m");
	assert_int_equal(res.loc[0].offset % MIB, 0);
	assert_true(res.loc[0].offset >= MIB);
	assert_int_equal(res.loc[1].offset - res.loc[0].offset, MIB);
	assert_string_equal(start("whole64k", 2, 3, &res), "c64k");
	for (int i = 0; i < 3; i++)
		assert_int_equal(res.loc[i].offset % (64 * KIB), 0);
	assert_string_equal(start("whole256k", 3, 2, &res), "c64k"); /* whole on both */
	assert_string_equal(start("round", 4, 2, &res), "c1m");	     /* rounded everywhere */
	assert_int_equal(res.loc[0].offset % MIB, 0);
	assert_int_equal(res.loc[0].length, 1000 * KIB);
	assert_int_equal(res.loc[1].offset - res.loc[0].offset, MIB);
	assert_string_equal(start("odd", 5, 3, &res), "c1m"); /* packed everywhere */
	assert_int_equal(res.loc[0].offset % MIB, 0);
	assert_int_equal(res.loc[1].offset - res.loc[0].offset, 40 * KIB);
	assert_int_equal(res.loc[2].offset - res.loc[1].offset, 40 * KIB);
}

static void note(const struct skv_start_res *res, int i, char path[SKV_SLAB_PATH_MAX],
		 uint64_t *offset)
{
	snprintf(path, SKV_SLAB_PATH_MAX, "%s", res->files.v[res->loc[i].file].path);
	*offset = res->loc[i].offset;
}

/* Blocks are found at their locations after a crash, and no slot is handed out twice. */
static void slots_are_the_same_after_a_crash(void **state)
{
	static const char *const names[] = { "c1m" };
	static const uint64_t sizes[] = { MIB, 1000 * KIB, 40 * KIB };
	static const char *const ids[] = { "whole", "round", "odd" };
	struct {
		char path[SKV_SLAB_PATH_MAX];
		uint64_t offset;
	} at[3][4];
	struct skv_start_res res;
	struct skv_finish_res done;
	char session[SKV_SESSION_ID_HEX + 1];

	(void)state;
	assert_int_equal(put_storage("c1m", MIB, NULL), SKV_OK);
	put_group(names, 1);
	for (int k = 0; k < 3; k++) {
		assert_int_equal(put_instance(ids[k], sizes[k], false), SKV_OK);
		start(ids[k], 1, 4, &res);
		for (int i = 0; i < 4; i++)
			note(&res, i, at[k][i].path, &at[k][i].offset);
		snprintf(session, sizeof session, "%s", res.session);
		assert_int_equal(env_finish(&e, session, NULL, 0, &done), SKV_OK);
	}
	for (int round = 0; round < 2; round++) {
		env_crash(&e);
		env_open(&e);
		env_advance(&e, 1000);
		for (int k = 0; k < 3; k++) {
			const struct skv_key keys[4] = { { 1, 1 }, { 1, 2 }, { 1, 3 }, { 1, 4 } };
			struct skv_lookup_req req = { .tenant = "t", .instance = ids[k],
						      .keys = keys, .n_keys = 4 };
			struct skv_lookup_res found;

			assert_int_equal(env_lookup_req(&e, &req, &found), SKV_OK);
			assert_int_equal(found.matched, 4);
			for (int i = 0; i < 4; i++)
				assert_int_equal(found.loc[i].offset, at[k][i].offset);
			start(ids[k], 10 + (uint64_t)round, 4, &res);
			for (int i = 0; i < 4; i++)
				for (int j = 0; j < 12; j++)
					assert_false(res.loc[i].offset == at[j / 4][j % 4].offset &&
						     strcmp(res.files.v[res.loc[i].file].path,
							    at[j / 4][j % 4].path) == 0);
		}
	}
}

/* 3FS's client retries for 60 s: what an expired session had is not handed out before. */
static void writers_have_a_minute(void **state)
{
	static const char *const names[] = { "c1m" };
	struct skv_start_res res;
	uint64_t held;

	(void)state;
	assert_int_equal(put_storage("c1m", MIB, NULL), SKV_OK);
	put_group(names, 1);
	assert_int_equal(put_instance("i", MIB, false), SKV_OK);
	start("i", 1, 2, &res);
	seconds(21); /* the session of 20 s is over */
	held = view("c1m")->quarantined_bytes;
	assert_int_equal(held, 2 * MIB);
	seconds(50);
	assert_int_equal(view("c1m")->quarantined_bytes, 2 * MIB);
	env_crash(&e); /* nor after a crash */
	env_open(&e);
	env_advance(&e, 100);
	assert_int_equal(view("c1m")->quarantined_bytes, 2 * MIB);
	seconds(62);
	assert_int_equal(view("c1m")->quarantined_bytes, 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_hand),	  cmocka_unit_test(any_size),
		T(refusals),			  T(what_is_found_is_kept),
		T(registration_tells_the_cost),	  T(the_best_fit_comes_first),
		T(slots_are_the_same_after_a_crash), T(writers_have_a_minute),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
