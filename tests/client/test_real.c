/*
 * test_real.c - the library with the real manager in a process of its own: the same bytes come
 * back, also over kill -9 between any two steps of a write, over eviction, and with damaged slab
 * files.
 */
#include "fixture.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon.h"

/* The fixture's helpers work on f->kv; the stand-in inside stays unused. */
struct real {
	struct fixture f;
	struct daemon d;
};

static void on_mismatch(void *ctx, const struct slabkv_mismatch *m)
{
	struct fixture *f = ctx;

	f->mismatches++;
	f->last = *m;
}

/* The tests below run in both forms of requests: the library's default, and JSON. */
static const char *codec;

static int setup(void **state)
{
	static const struct slabkv_spec spec = { "kv", FIX_BYTES };
	static const struct slabkv_instance m = { .size = sizeof(struct slabkv_instance),
						  .id = "m",
						  .group = "default",
						  .specs = &spec,
						  .spec_size = sizeof(struct slabkv_spec),
						  .n_specs = 1 };
	struct real *r = calloc(1, sizeof *r);

	assert_non_null(r);
	daemon_start(&r->d);
	slabkv_options_init(&r->f.o, sizeof r->f.o);
	r->f.o.codec = codec;
	r->f.urls[0] = r->d.url;
	r->f.o.urls = r->f.urls;
	r->f.o.n_urls = 1;
	r->f.o.timeout_ms = 20000; /* a restarting manager is waited for */
	r->f.o.rounds = 1000;
	r->f.o.on_mismatch = on_mismatch;
	r->f.o.on_mismatch_ctx = &r->f;
	fixture_reopen(&r->f, NULL, NULL);
	assert_int_equal(slabkv_instance_put(r->f.kv, &m, NULL), SLABKV_OK);
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	struct real *r = *state;

	slabkv_close(r->f.kv);
	daemon_remove(&r->d);
	free(r);
	return 0;
}

static void restart(struct real *r)
{
	daemon_kill(&r->d);
	daemon_again(&r->d);
}

static void blocks_come_back(void **state)
{
	struct real *r = *state;
	struct set b;

	set_init(&b, 1, 300);
	assert_int_equal(set_put(&r->f, &b), SLABKV_OK);
	assert_int_equal(b.io.done, 300);
	assert_true(b.io.ios < 10); /* runs of neighbouring slots */
	assert_int_equal(set_get(&r->f, &b, SLABKV_PREFIX), SLABKV_OK);
	assert_int_equal(b.io.done, 300);
	for (uint32_t i = 0; i < b.n; i++)
		assert_true(set_right(&b, i));
	assert_int_equal(set_put(&r->f, &b), SLABKV_OK);
	assert_int_equal(b.io.exists, 300);
	set_free(&b);
}

/* On a directory that is no mount of 3FS: what is special there is how files are made. */
static void blocks_come_back_from_hf3fs(void **state)
{
	static const char *const names[] = { "three" };
	static const struct slabkv_spec spec = { "kv", FIX_BYTES };
	const struct slabkv_group g = {
		.size = sizeof(struct slabkv_group), .name = "g3", .storages = names,
		.n_storages = 1
	};
	const struct slabkv_instance m = { .size = sizeof(struct slabkv_instance),
					   .id = "m",
					   .group = "g3",
					   .specs = &spec,
					   .spec_size = sizeof(struct slabkv_spec),
					   .n_specs = 1 };
	struct real *r = *state;
	struct slabkv_storage s = { .size = sizeof(struct slabkv_storage),
				    .name = "three",
				    .type = "hf3fs",
				    .root = "",
				    .capacity = 8 << 20,
				    .unit = 1 << 20,
				    .enabled = true,
				    .any_mount = true };
	const struct slabkv_instance_info *info;
	struct slabkv_error err;
	char root[128];
	struct set b;

	snprintf(root, sizeof root, "%s/three", r->d.dir);
	s.root = root;
	assert_int_equal(slabkv_storage_put(r->f.kv, &s, &err), SLABKV_OK);
	assert_int_equal(slabkv_group_put(r->f.kv, &g, &err), SLABKV_OK);
	assert_int_equal(slabkv_instance_delete(r->f.kv, "m", &err), SLABKV_OK);
	assert_int_equal(slabkv_instance_put(r->f.kv, &m, &err), SLABKV_OK);
	assert_int_equal(slabkv_instance_get(r->f.kv, "m", &info, &err), SLABKV_OK);
	assert_int_equal(info->n_placements, 1);
	assert_string_equal(info->placements[0].storage, "three");
	assert_string_equal(info->placements[0].spec, "kv");
	assert_true(info->placements[0].slot_bytes >= FIX_BYTES);
	slabkv_free(info);
	set_init(&b, 1, 100);
	assert_int_equal(set_put(&r->f, &b), SLABKV_OK);
	assert_int_equal(b.io.done, 100);
	restart(r);
	set_clear(&b);
	assert_int_equal(set_get(&r->f, &b, SLABKV_PREFIX), SLABKV_OK);
	assert_int_equal(b.io.done, 100);
	for (uint32_t i = 0; i < b.n; i++)
		assert_true(set_right(&b, i));
	set_free(&b);
}

static void form_is_the_one_asked_for(void **state)
{
	struct real *r = *state;
	struct set b;

	set_init(&b, 1, 20);
	assert_int_equal(set_put(&r->f, &b), SLABKV_OK);
	assert_int_equal(set_get(&r->f, &b, SLABKV_BATCH), SLABKV_OK);
	assert_int_equal(b.io.done, 20);
	assert_ptr_equal(r->f.kv->codec, codec ? &skv_v1_json : &skv_v1_pb);
	set_free(&b);
}

/* Three keys that are there, and all of the instance's pins. */
static void pin_and_unpin(struct slabkv *kv, const struct slabkv_keys *keys)
{
	const struct slabkv_pins *pins;
	struct slabkv_error err;
	bool missing[3] = { true, true, true };
	uint32_t pinned = 0;
	uint64_t n = 0;

	assert_int_equal(slabkv_pin(kv, "m", keys, SLABKV_PIN_SOFT, 60000, &pinned, missing, &err),
			 SLABKV_OK);
	assert_true(pinned == 3 && !missing[0] && !missing[1] && !missing[2]);
	assert_int_equal(slabkv_pin(kv, "m", keys, SLABKV_PIN_HARD, 0, NULL, NULL, &err),
			 SLABKV_OK);
	assert_int_equal(slabkv_pin(kv, "m", keys, SLABKV_PIN_SOFT, 0, NULL, NULL, &err),
			 SLABKV_E_INVALID);
	assert_string_equal(err.field, "ttl_ms");
	assert_int_equal(slabkv_pins(kv, "m", 0, &pins, &err), SLABKV_OK);
	assert_true(pins->n == 3 && pins->next == 0);
	for (uint32_t i = 0; i < 3; i++)
		assert_true(pins->v[i].kind == SLABKV_PIN_HARD && pins->v[i].ttl_ms == 0);
	slabkv_free(pins);
	assert_int_equal(slabkv_unpin(kv, "m", keys, &n, &err), SLABKV_OK);
	assert_int_equal(n, 3);
	assert_int_equal(slabkv_unpin(kv, "m", NULL, &n, &err), SLABKV_OK);
	assert_int_equal(n, 0);
	assert_int_equal(slabkv_pins(kv, "nobody", 0, &pins, &err), SLABKV_E_NOT_FOUND);
}

static void string_and_wide_keys(void **state)
{
	static const char *const texts[] = { "a", "\xc3\xa9", "c" };
	static const struct slabkv_key wide[] = { { 1, 2 }, { UINT64_MAX, 0 }, { 0, 7 } };
	const struct slabkv_keys sets[] = { slabkv_keys_strings(texts, 3),
					    slabkv_keys_wide(wide, 3) };
	const char *const instances[] = { "m" };
	struct real *r = *state;
	struct slabkv_error err;
	uint32_t matched, deleted;

	for (int i = 0; i < 2; i++) {
		const struct slabkv_session *s;
		struct slabkv_finished done = { .size = sizeof(struct slabkv_finished) };

		if (slabkv_start(r->f.kv, "m", &sets[i], NULL, NULL, &s, &err) != SLABKV_OK)
			fail_msg("%s at %s", err.message, err.field);
		assert_int_equal(s->n_write, 3);
		assert_int_equal(slabkv_finish(r->f.kv, s->id, NULL, &done, &err), SLABKV_OK);
		assert_int_equal(done.committed, 3);
		slabkv_free(s);
		assert_int_equal(slabkv_match(r->f.kv, instances, 1, &sets[i], &matched, &err),
				 SLABKV_OK);
		assert_int_equal(matched, 3);
		pin_and_unpin(r->f.kv, &sets[i]);
		assert_int_equal(slabkv_delete(r->f.kv, "m", &sets[i], &deleted, &err), SLABKV_OK);
		assert_int_equal(deleted, 3);
	}
}

static void objects_come_back(void **state)
{
	struct real *r = *state;
	static const struct slabkv_spec specs[] = { { "tp0", 64 }, { "tp1", 128 } };
	const char *storages[] = { "default" };
	const struct slabkv_group g = { .size = sizeof(struct slabkv_group),
					.name = "g",
					.capacity = 1 << 20,
					.storages = storages,
					.n_storages = 1 };
	struct slabkv_instance i = { .size = sizeof(struct slabkv_instance),
				     .id = "two",
				     .group = "g",
				     .block_tokens = 16,
				     .specs = specs,
				     .spec_size = sizeof(struct slabkv_spec),
				     .n_specs = 2,
				     .extra = "x\"y" };
	const struct slabkv_storage_info *s;
	const struct slabkv_group_info *gi;
	const struct slabkv_instance_info *ii;
	struct slabkv_error err;
	const char *path;

	assert_int_equal(slabkv_group_put(r->f.kv, &g, &err), SLABKV_OK);
	assert_int_equal(slabkv_instance_put(r->f.kv, &i, &err), SLABKV_OK);
	assert_int_equal(slabkv_instance_put(r->f.kv, &i, &err), SLABKV_OK);
	i.block_tokens = 32;
	assert_int_equal(slabkv_instance_put(r->f.kv, &i, &err), SLABKV_E_CONFLICT);
	assert_string_equal(err.field, "block_tokens");
	assert_int_equal(slabkv_storage_get(r->f.kv, "default", &s, &err), SLABKV_OK);
	assert_true(s->healthy && s->spec->enabled == SLABKV_YES);
	assert_string_equal(s->spec->root, r->d.root);
	assert_int_equal(s->spec->capacity, 64 << 20);
	slabkv_free(s);
	assert_int_equal(slabkv_group_get(r->f.kv, "g", &gi, &err), SLABKV_OK);
	assert_int_equal(gi->spec->capacity, 1 << 20);
	assert_string_equal(gi->spec->storages[0], "default");
	slabkv_free(gi);
	assert_int_equal(slabkv_instance_get(r->f.kv, "two", &ii, &err), SLABKV_OK);
	assert_int_equal(ii->spec->n_specs, 2);
	assert_string_equal(ii->spec->specs[1].name, "tp1");
	assert_string_equal(ii->spec->extra, "x\"y");
	assert_int_equal(ii->spec->block_tokens, 16);
	slabkv_free(ii);
	assert_int_equal(slabkv_group_delete(r->f.kv, "g", &err), SLABKV_E_IN_USE);
	assert_int_equal(slabkv_instance_delete(r->f.kv, "two", &err), SLABKV_OK);
	assert_int_equal(slabkv_group_delete(r->f.kv, "g", &err), SLABKV_OK);
	assert_int_equal(slabkv_group_delete(r->f.kv, "g", &err), SLABKV_OK);
	assert_int_equal(slabkv_mount_find(r->f.kv, "default", &path, &err), SLABKV_OK);
	assert_string_equal(path, r->d.root);
	slabkv_free(path);
}

static void one_spec_after_the_other(void **state)
{
	struct real *r = *state;
	static const struct slabkv_spec specs[] = { { "a", 100 }, { "b", 200 } };
	static const struct slabkv_instance i = { .size = sizeof(struct slabkv_instance),
						  .id = "ab",
						  .group = "default",
						  .specs = specs,
						  .spec_size = sizeof(struct slabkv_spec),
						  .n_specs = 2 };
	const char *name[] = { "a", "b" };
	char data[2][200], back[2][200];
	const uint64_t id = 1;
	struct slabkv_keys keys = slabkv_keys_ints(&id, 1);
	struct slabkv_buf bufs[2] = { { data[0], 100 }, { data[1], 200 } };
	struct slabkv_block block = { .n_bufs = 1 };

	memset(data[0], 'a', 200);
	memset(data[1], 'b', 200);
	assert_int_equal(slabkv_instance_put(r->f.kv, &i, NULL), SLABKV_OK);
	for (int s = 0; s < 2; s++) {
		const struct slabkv_put_options o = { .size = sizeof(struct slabkv_put_options),
						      .specs = &name[s],
						      .n_specs = 1 };

		block.bufs = &bufs[s];
		assert_int_equal(slabkv_put(r->f.kv, "ab", &keys, &o, &block,
					    sizeof(struct slabkv_block), NULL, NULL),
				 SLABKV_OK);
		assert_int_equal(block.result, SLABKV_WRITTEN);
	}
	bufs[0].data = back[0];
	bufs[1].data = back[1];
	block = (struct slabkv_block){ .bufs = bufs, .n_bufs = 2 };
	assert_int_equal(slabkv_get(r->f.kv, "ab", &keys, NULL, &block, sizeof(struct slabkv_block),
				    NULL, NULL),
			 SLABKV_OK);
	assert_int_equal(block.result, SLABKV_HIT);
	assert_memory_equal(back[0], data[0], 100);
	assert_memory_equal(back[1], data[1], 200);
}

static void acknowledged_blocks_survive_kill_9(void **state)
{
	struct real *r = *state;
	struct set b;

	for (uint32_t round = 0; round < 3; round++) {
		put_all(&r->f, 1 + 10 * round, 10);
		restart(r);
		daemon_wait(r->f.kv); /* until its storage is back, blocks there are misses */
		set_init(&b, 1, 10 * (round + 1));
		assert_int_equal(set_get(&r->f, &b, SLABKV_PREFIX), SLABKV_OK);
		assert_int_equal(b.io.done, b.n);
		for (uint32_t i = 0; i < b.n; i++)
			assert_true(set_right(&b, i));
		set_free(&b);
	}
}

static void open_sessions_survive_kill_9(void **state)
{
	struct real *r = *state;
	const struct slabkv_session *s, *same;
	struct slabkv_finished done = { .size = sizeof(struct slabkv_finished) };
	struct slabkv_error err;
	struct set b;

	set_init(&b, 1, 5);
	assert_int_equal(slabkv_start(r->f.kv, "m", &b.keys, NULL, "once", &s, &err), SLABKV_OK);
	assert_int_equal(s->n_write, 5);
	restart(r);
	/* waits for the manager; the same request finds the same session with the same places */
	assert_int_equal(slabkv_start(r->f.kv, "m", &b.keys, NULL, "once", &same, &err),
			 SLABKV_OK);
	assert_string_equal(same->id, s->id);
	assert_int_equal(same->loc[4].offset, s->loc[4].offset);
	assert_int_equal(same->loc[4].generation, s->loc[4].generation);
	slabkv_free(same);
	assert_int_equal(slabkv_finish(r->f.kv, s->id, NULL, &done, &err), SLABKV_OK);
	assert_int_equal(done.committed, 5);
	restart(r);
	assert_int_equal(slabkv_finish(r->f.kv, s->id, NULL, &done, &err), SLABKV_OK);
	assert_int_equal(done.committed, 5);
	slabkv_free(s);
	set_free(&b);
}

static void damage_is_found(void **state)
{
	struct real *r = *state;
	const struct slabkv_locations *l;
	char path[256];
	struct set b;
	int fd;

	put_all(&r->f, 1, 3);
	set_init(&b, 1, 3);
	assert_int_equal(slabkv_lookup(r->f.kv, "m", &b.keys, NULL, &l, NULL), SLABKV_OK);
	snprintf(path, sizeof path, "%s/%s", r->d.root, l->files[l->loc[1].file].path);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, "\0\0\0\0", 4, (off_t)l->loc[1].offset + 1), 4);
	close(fd);
	slabkv_free(l);
	assert_int_equal(set_get(&r->f, &b, SLABKV_PREFIX), SLABKV_OK);
	assert_int_equal(b.blocks[0].result, SLABKV_HIT);
	assert_int_equal(b.blocks[1].result, SLABKV_MISMATCH);
	assert_int_equal(b.blocks[2].result, SLABKV_HIT);
	assert_int_equal(r->f.mismatches, 1);
	set_free(&b);
}

struct load {
	struct real *r;
	pthread_t thread;
	uint64_t first;
	uint64_t written, hits, wrong, mismatches;
};

/* Writes more than fits and reads back what is still there. */
static void *load_thread(void *ctx)
{
	struct load *l = ctx;
	struct set b;

	set_init(&b, l->first, 64);
	for (uint32_t round = 0; round < 100; round++) {
		for (uint32_t i = 0; i < b.n; i++)
			b.ids[i] = l->first + (uint64_t)round * 64 + i;
		if (set_put(&l->r->f, &b) == SLABKV_OK)
			l->written += b.io.done;
		for (uint32_t i = 0; i < b.n; i++)
			b.ids[i] = l->first + (uint64_t)(round / 2) * 64 + i;
		if (set_get(&l->r->f, &b, SLABKV_BATCH) != SLABKV_OK)
			continue;
		l->mismatches += b.io.mismatches;
		for (uint32_t i = 0; i < b.n; i++) {
			l->hits += b.blocks[i].result == SLABKV_HIT;
			l->wrong += b.blocks[i].result == SLABKV_HIT && !set_right(&b, i);
		}
	}
	set_free(&b);
	return NULL;
}

static void eviction_never_gives_wrong_bytes(void **state)
{
	struct real *r = *state;
	struct load l[3];
	uint64_t written = 0, hits = 0;

	for (uint64_t i = 0; i < 3; i++) {
		l[i] = (struct load){ .r = r, .first = (i + 1) << 32 };
		assert_int_equal(pthread_create(&l[i].thread, NULL, load_thread, &l[i]), 0);
	}
	for (int i = 0; i < 3; i++) {
		pthread_join(l[i].thread, NULL);
		assert_int_equal(l[i].wrong, 0);
		assert_int_equal(l[i].mismatches, 0);
		written += l[i].written;
		hits += l[i].hits;
	}
	assert_true(written > 16384); /* more than the 64 MiB hold */
	assert_true(hits > 0);
}

/* A put changes what it names; what another API has set stays. */
static void puts_leave_the_rest(void **state)
{
	static const char body[] =
		"{\"storages\":[\"default\"],\"capacity\":1048576,\"max_blocks\":77,"
		"\"policy\":\"lru\",\"share\":\"fixed\",\"pin_percent\":20,\"reclaim_blocks\":60,"
		"\"reclaim_period_ms\":900,\"extra\":\"theirs\",\"quotas\":[{\"type\":\"file\","
		"\"capacity\":4096}]}";
	static const char *const kept[] = {
		"\"max_blocks\":77",         "\"policy\":\"lru\"",
		"\"share\":\"fixed\"",       "\"pin_percent\":20",
		"\"reclaim_blocks\":60",     "\"reclaim_period_ms\":900",
		"\"extra\":\"theirs\"",      "\"quotas\":[{\"type\":\"file\",\"capacity\":4096}]",
		"\"storages\":[\"default\"]"
	};
	struct slabkv_group g = { .size = sizeof g, .name = "others", .capacity = 2 << 20 };
	struct slabkv_storage s = { .size = sizeof s, .name = "default", .high_percent = 90,
				    .low_percent = 80 };
	const struct slabkv_storage_info *before, *after;
	const struct slabkv_group_info *info;
	struct real *r = *state;
	struct slabkv_error err;
	const char *text;

	assert_int_equal(slabkv_call(r->f.kv, "PUT", "/v1/groups/others", body, &text, &err),
			 SLABKV_OK);
	slabkv_free(text);
	assert_int_equal(slabkv_group_put(r->f.kv, &g, &err), SLABKV_OK);
	assert_int_equal(slabkv_call(r->f.kv, "GET", "/v1/groups/others", NULL, &text, &err),
			 SLABKV_OK);
	assert_non_null(strstr(text, "\"capacity\":2097152"));
	for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
		assert_non_null(strstr(text, kept[i]));
	slabkv_free(text);
	/* SLABKV_NONE is 0, "" is empty; what was read may be put as it is */
	g = (struct slabkv_group){ .size = sizeof g,
				   .name = "others",
				   .capacity = SLABKV_NONE,
				   .max_blocks = SLABKV_NONE,
				   .policy = "",
				   .share = SLABKV_SHARE_GROUP };
	assert_int_equal(slabkv_group_put(r->f.kv, &g, &err), SLABKV_OK);
	assert_int_equal(slabkv_group_get(r->f.kv, "others", &info, &err), SLABKV_OK);
	assert_true(info->spec->capacity == SLABKV_NONE && info->spec->max_blocks == SLABKV_NONE);
	assert_true(info->spec->share == SLABKV_SHARE_GROUP && info->spec->pin_percent == 20);
	assert_int_equal(slabkv_group_put(r->f.kv, info->spec, &err), SLABKV_OK);
	assert_true(!*info->spec->tier_of && info->spec->write_through == SLABKV_NO);
	slabkv_free(info);
	g = (struct slabkv_group){ .size = sizeof g, .name = "fast", .tier_of = "others",
				   .storages = &s.name, .n_storages = 1,
				   .write_through = SLABKV_YES, .promote_after = 3,
				   .replicate = SLABKV_YES };
	assert_int_equal(slabkv_group_put(r->f.kv, &g, &err), SLABKV_OK);
	g = (struct slabkv_group){ .size = sizeof g, .name = "fast", .capacity = 2 << 20 };
	assert_int_equal(slabkv_group_put(r->f.kv, &g, &err), SLABKV_OK);
	assert_int_equal(slabkv_group_get(r->f.kv, "fast", &info, &err), SLABKV_OK);
	assert_string_equal(info->spec->tier_of, "others");
	assert_int_equal(info->spec->write_through, SLABKV_YES);
	assert_int_equal(info->spec->promote_after, 3);
	assert_int_equal(info->spec->replicate, SLABKV_YES);
	slabkv_free(info);
	/* of a program older than tiers: what lies behind its struct is not looked at */
	g = (struct slabkv_group){ .size = offsetof(struct slabkv_group, tier_of), .name = "fast",
				   .tier_of = "nobody", .write_through = SLABKV_NO,
				   .promote_after = 99 };
	assert_int_equal(slabkv_group_put(r->f.kv, &g, &err), SLABKV_OK);
	assert_int_equal(slabkv_group_get(r->f.kv, "fast", &info, &err), SLABKV_OK);
	assert_string_equal(info->spec->tier_of, "others");
	assert_int_equal(info->spec->write_through, SLABKV_YES);
	assert_int_equal(info->spec->promote_after, 3);
	slabkv_free(info);
	assert_int_equal(slabkv_group_delete(r->f.kv, "others", &err), SLABKV_E_IN_USE);
	assert_int_equal(slabkv_group_delete(r->f.kv, "fast", &err), SLABKV_OK);
	g = (struct slabkv_group){ .size = sizeof g / 2, .name = "others" };
	assert_int_equal(slabkv_group_put(r->f.kv, &g, &err), SLABKV_E_INVALID);
	assert_string_equal(err.field, "size");
	assert_int_equal(slabkv_storage_get(r->f.kv, "default", &before, &err), SLABKV_OK);
	assert_int_equal(slabkv_storage_put(r->f.kv, &s, &err), SLABKV_OK);
	assert_int_equal(slabkv_storage_get(r->f.kv, "default", &after, &err), SLABKV_OK);
	assert_int_equal(after->spec->high_percent, 90);
	assert_int_equal(after->spec->capacity, before->spec->capacity);
	assert_int_equal(after->spec->file_size, before->spec->file_size);
	assert_string_equal(after->spec->root, before->spec->root);
	slabkv_free(before);
	slabkv_free(after);
	assert_int_equal(slabkv_group_delete(r->f.kv, "others", &err), SLABKV_OK);
}

static void lists_have_everything(void **state)
{
	struct real *r = *state;
	const struct slabkv_storages *storages;
	const struct slabkv_groups *groups;
	const struct slabkv_instances *instances;
	const struct slabkv_slab_files *files;
	struct slabkv_error err;
	struct set b;

	set_init(&b, 900, 1);
	set_fill(&b);
	assert_int_equal(set_put(&r->f, &b), SLABKV_OK);
	assert_int_equal(slabkv_storages(r->f.kv, &storages, &err), SLABKV_OK);
	assert_int_equal(storages->n, 1);
	assert_string_equal(storages->v[0]->spec->name, "default");
	assert_true(storages->v[0]->healthy && storages->v[0]->file_bytes > 0 &&
		    strlen(storages->v[0]->uuid) == 36);
	slabkv_free(storages);
	assert_int_equal(slabkv_groups(r->f.kv, &groups, &err), SLABKV_OK);
	assert_true(groups->n >= 1);
	assert_string_equal(groups->v[0]->spec->storages[0], "default");
	slabkv_free(groups);
	assert_int_equal(slabkv_instances(r->f.kv, &instances, &err), SLABKV_OK);
	assert_true(instances->n >= 1);
	for (uint32_t i = 0; i < instances->n; i++)
		assert_true(instances->v[i]->spec->n_specs >= 1 &&
			    instances->v[i]->spec->specs[0].size > 0);
	slabkv_free(instances);
	assert_int_equal(slabkv_storage_files(r->f.kv, "default", &files, &err), SLABKV_OK);
	assert_true(files->n >= 1);
	assert_string_equal(files->v[0].state, "used");
	assert_true(files->v[0].length > 0 && files->v[0].used_bytes > 0);
	assert_int_equal(slabkv_storage_file_set(r->f.kv, "default", files->v[0].file,
						 SLABKV_FILE_KEEP, &err),
			 SLABKV_OK);
	assert_int_equal(slabkv_storage_file_set(r->f.kv, "default", 4711, SLABKV_FILE_DRAIN, &err),
			 SLABKV_E_NOT_FOUND);
	slabkv_free(files);
	assert_int_equal(slabkv_storage_files(r->f.kv, "nowhere", &files, &err),
			 SLABKV_E_NOT_FOUND);
	set_free(&b);
}

static void the_manager_tells_people(void **state)
{
	struct real *r = *state;
	const char *name = "some/key with spaces \xc3\xa4";
	struct slabkv_keys key = slabkv_keys_strings(&name, 1);
	struct slabkv_error err;
	const struct slabkv_block_info *block;
	const struct slabkv_stats *stats;
	struct set b;

	set_init(&b, 1, 1);
	set_fill(&b);
	assert_int_equal(slabkv_put(r->f.kv, "m", &key, NULL, b.blocks, sizeof(struct slabkv_block),
				    &b.io, &err),
			 SLABKV_OK);
	assert_int_equal(b.io.done, 1);
	assert_int_equal(slabkv_block_get(r->f.kv, "m", &key, &block, &err), SLABKV_OK);
	assert_int_equal(block->n_parts, 1);
	assert_string_equal(block->parts[0].state, "committed");
	assert_string_equal(block->parts[0].spec, "kv");
	assert_string_equal(block->parts[0].storage, "default");
	assert_int_equal(block->parts[0].length, FIX_BYTES);
	assert_true(block->parts[0].has_checksum && block->parts[0].generation > 0);
	assert_int_equal(block->parts[0].checksum, skv_checksum(b.memory, FIX_BYTES));
	assert_false(block->has_parent);
	slabkv_free(block);
	assert_int_equal(slabkv_block_get(r->f.kv, "m", &b.keys, &block, &err), SLABKV_E_NOT_FOUND);
	assert_int_equal(slabkv_stats(r->f.kv, &stats, &err), SLABKV_OK);
	assert_string_equal(stats->state, "ready");
	assert_string_equal(stats->version, slabkv_version());
	assert_true(stats->blocks >= 1 && stats->journal_limit > 0 && stats->owner[0]);
	slabkv_free(stats);
	set_free(&b);
}

static void refusals_name_the_field(void **state)
{
	struct real *r = *state;
	const uint64_t twice[] = { 1, 1 };
	struct slabkv_keys keys = slabkv_keys_ints(twice, 2);
	const struct slabkv_locations *l;
	struct slabkv_error err;

	assert_int_equal(slabkv_lookup(r->f.kv, "m", &keys, NULL, &l, &err), SLABKV_E_INVALID);
	assert_non_null(strstr(err.field, "[1]"));
	assert_int_equal(
		slabkv_finish(r->f.kv, "00000000000000000000000000000000", NULL, NULL, &err),
		SLABKV_E_NOT_FOUND);
	assert_string_equal(err.field, "session");
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(form_is_the_one_asked_for),
		T(string_and_wide_keys),
		T(blocks_come_back),
		T(objects_come_back),
		T(one_spec_after_the_other),
		T(acknowledged_blocks_survive_kill_9),
		T(open_sessions_survive_kill_9),
		T(damage_is_found),
		T(eviction_never_gives_wrong_bytes),
		T(blocks_come_back_from_hf3fs),
		T(puts_leave_the_rest),
		T(lists_have_everything),
		T(the_manager_tells_people),
		T(refusals_name_the_field),
	};
#undef T

	int failed = cmocka_run_group_tests_name("protobuf", tests, NULL, NULL);

	codec = "json";
	return failed + cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
