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

/* Sets fields of an object. */
static int set_object(struct real *r, enum slabkv_object kind, const char *name, const char *fields)
{
	struct slabkv_error err;
	int rc = slabkv_object_set(r->f.kv, kind, name, fields, NULL, &err);

	if (rc != SLABKV_OK)
		print_message("%s: %s: %s\n", name, err.field, err.message);
	return rc;
}

/* Does the object's JSON have all of these? */
static void assert_has(struct real *r, enum slabkv_object kind, const char *name,
		       const char *const *parts)
{
	const char *json;

	assert_int_equal(slabkv_object_get(r->f.kv, kind, name, &json, NULL), SLABKV_OK);
	for (; *parts; parts++)
		if (!strstr(json, *parts))
			fail_msg("%s is not in %s", *parts, json);
	slabkv_free(json);
}
#define HAS(r, kind, name, ...) \
	assert_has(r, kind, name, (const char *const[]){ __VA_ARGS__, NULL })

/* On a directory that is no mount of 3FS: what is special there is how files are made. */
static void blocks_come_back_from_hf3fs(void **state)
{
	static const struct slabkv_spec spec = { "kv", FIX_BYTES };
	const struct slabkv_instance m = { .size = sizeof(struct slabkv_instance),
					   .id = "m",
					   .group = "g3",
					   .specs = &spec,
					   .spec_size = sizeof(struct slabkv_spec),
					   .n_specs = 1 };
	struct real *r = *state;
	struct slabkv_error err;
	char storage[256];
	struct set b;

	snprintf(storage, sizeof storage,
		 "{\"type\":\"hf3fs\",\"root\":\"%s/three\",\"capacity\":\"8M\",\"unit\":\"1M\","
		 "\"any_mount\":true}",
		 r->d.dir);
	assert_int_equal(set_object(r, SLABKV_STORAGE, "three", storage), SLABKV_OK);
	assert_int_equal(set_object(r, SLABKV_GROUP, "g3", "{\"storages\":[\"three\"]}"),
			 SLABKV_OK);
	assert_int_equal(slabkv_object_delete(r->f.kv, SLABKV_INSTANCE, "m", &err), SLABKV_OK);
	assert_int_equal(slabkv_instance_put(r->f.kv, &m, &err), SLABKV_OK);
	HAS(r, SLABKV_INSTANCE, "m", "\"placements\":[{\"storage\":\"three\",\"spec\":\"kv\"");
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
	struct slabkv_instance i = { .size = sizeof(struct slabkv_instance),
				     .id = "two",
				     .group = "g",
				     .block_tokens = 16,
				     .specs = specs,
				     .spec_size = sizeof(struct slabkv_spec),
				     .n_specs = 2,
				     .extra = "x\"y" };
	const struct slabkv_instance *ii;
	struct slabkv_error err;
	const char *path;
	char root[120];

	assert_int_equal(set_object(r, SLABKV_GROUP, "g",
				    "{\"storages\":[\"default\"],\"capacity\":\"1M\"}"),
			 SLABKV_OK);
	assert_int_equal(slabkv_instance_put(r->f.kv, &i, &err), SLABKV_OK);
	assert_int_equal(slabkv_instance_put(r->f.kv, &i, &err), SLABKV_OK);
	i.block_tokens = 32;
	assert_int_equal(slabkv_instance_put(r->f.kv, &i, &err), SLABKV_E_CONFLICT);
	assert_string_equal(err.field, "block_tokens");
	snprintf(root, sizeof root, "\"root\":\"%s\"", r->d.root);
	HAS(r, SLABKV_STORAGE, "default", "\"healthy\":true", "\"enabled\":true", root,
	    "\"capacity\":67108864");
	HAS(r, SLABKV_GROUP, "g", "\"capacity\":1048576", "\"storages\":[\"default\"]");
	assert_int_equal(slabkv_instance_get(r->f.kv, "two", &ii, &err), SLABKV_OK);
	assert_int_equal(ii->n_specs, 2);
	assert_string_equal(ii->specs[1].name, "tp1");
	assert_string_equal(ii->extra, "x\"y");
	assert_int_equal(ii->block_tokens, 16);
	assert_true(ii->weight == 1 && ii->capacity == SLABKV_NONE);
	i = *ii; /* an instance that was read may be put unchanged */
	assert_int_equal(slabkv_instance_put(r->f.kv, &i, &err), SLABKV_OK);
	slabkv_free(ii);
	i.size = sizeof i / 2;
	assert_int_equal(slabkv_instance_put(r->f.kv, &i, &err), SLABKV_E_INVALID);
	assert_string_equal(err.field, "size");
	assert_int_equal(slabkv_object_delete(r->f.kv, SLABKV_GROUP, "g", &err), SLABKV_E_IN_USE);
	assert_int_equal(slabkv_object_delete(r->f.kv, SLABKV_INSTANCE, "two", &err), SLABKV_OK);
	assert_int_equal(slabkv_object_delete(r->f.kv, SLABKV_GROUP, "g", &err), SLABKV_OK);
	assert_int_equal(slabkv_object_delete(r->f.kv, SLABKV_GROUP, "g", &err), SLABKV_OK);
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

/* A change sets what it names; what another API has set stays. */
static void changes_leave_the_rest(void **state)
{
	static const char body[] =
		"{\"storages\":[\"default\"],\"capacity\":1048576,\"max_blocks\":77,"
		"\"policy\":\"lru\",\"share\":\"fixed\",\"pin_percent\":20,\"reclaim_blocks\":60,"
		"\"reclaim_period_ms\":900,\"extra\":\"theirs\",\"quotas\":[{\"type\":\"file\","
		"\"capacity\":4096}]}";
	struct real *r = *state;
	struct slabkv_error err;
	const char *text;

	assert_int_equal(slabkv_call(r->f.kv, "PUT", "/v1/groups/others", body, &text, &err),
			 SLABKV_OK);
	slabkv_free(text);
	assert_int_equal(set_object(r, SLABKV_GROUP, "others", "{\"capacity\":\"2M\"}"), SLABKV_OK);
	HAS(r, SLABKV_GROUP, "others", "\"capacity\":2097152", "\"max_blocks\":77",
	    "\"policy\":\"lru\"", "\"share\":\"fixed\"", "\"pin_percent\":20",
	    "\"reclaim_blocks\":60", "\"reclaim_period_ms\":900", "\"extra\":\"theirs\"",
	    "\"quotas\":[{\"type\":\"file\",\"capacity\":4096}]",
	    "\"storages\":[\"default\"]");
	assert_int_equal(slabkv_object_set(r->f.kv, SLABKV_GROUP, "others",
					   "{\"capacity\":0,\"max_blocks\":0,\"policy\":\"\","
					   "\"share\":\"group\",\"quotas\":[]}",
					   &text, &err),
			 SLABKV_OK);
	assert_non_null(strstr(text, "\"capacity\":0"));
	assert_non_null(strstr(text, "\"pin_percent\":20"));
	assert_true(!strstr(text, "max_blocks") && !strstr(text, "policy") &&
		    !strstr(text, "share") && !strstr(text, "quotas"));
	slabkv_free(text);
	assert_int_equal(set_object(r, SLABKV_GROUP, "fast",
				    "{\"tier_of\":\"others\",\"storages\":[\"default\"],"
				    "\"write_through\":true,\"promote_after\":3}"),
			 SLABKV_OK);
	assert_int_equal(set_object(r, SLABKV_GROUP, "fast", "{\"capacity\":\"2M\"}"), SLABKV_OK);
	HAS(r, SLABKV_GROUP, "fast", "\"tier_of\":\"others\"", "\"write_through\":true",
	    "\"promote_after\":3", "\"capacity\":2097152");
	assert_int_equal(slabkv_object_delete(r->f.kv, SLABKV_GROUP, "others", &err),
			 SLABKV_E_IN_USE);
	assert_int_equal(slabkv_object_delete(r->f.kv, SLABKV_GROUP, "fast", &err), SLABKV_OK);
	assert_int_equal(set_object(r, SLABKV_STORAGE, "default",
				    "{\"high_percent\":90,\"low_percent\":80}"),
			 SLABKV_OK);
	HAS(r, SLABKV_STORAGE, "default", "\"high_percent\":90", "\"capacity\":67108864");
	assert_int_equal(slabkv_object_delete(r->f.kv, SLABKV_GROUP, "others", &err), SLABKV_OK);
}

/* A field of a change that the object does not have is refused, by its name. */
static void bad_changes_are_refused(void **state)
{
	static const struct {
		const char *fields, *at;
	} bad[] = {
		{ "{\"capacity\":\"2X\"}", "capacity" }, { "{\"used_bytes\":1}", "used_bytes" },
		{ "{\"share\":\"all\"}", "share" },	   { "{\"storages\":[]}", "storages" },
		{ "{\"quotas\":[{\"capacity\":1}]}", "quotas[0].type" },
		{ "[]", "" },				   { "", "" },
	};
	struct real *r = *state;
	struct slabkv_error err;

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		const char *fields = bad[i].fields;

		assert_int_equal(slabkv_object_set(r->f.kv, SLABKV_GROUP, "fresh", fields, NULL,
						   &err),
				 SLABKV_E_INVALID);
		assert_int_equal(slabkv_object_set(r->f.kv, SLABKV_GROUP, "default", fields, NULL,
						   &err),
				 SLABKV_E_INVALID);
		assert_string_equal(err.field, bad[i].at);
	}
	assert_int_equal(slabkv_object_set(r->f.kv, SLABKV_GROUP, "fresh", "{}", NULL, &err),
			 SLABKV_E_INVALID);
	assert_string_equal(err.field, "storages");
	assert_int_equal(slabkv_object_get(r->f.kv, SLABKV_GROUP, "fresh", NULL, &err),
			 SLABKV_E_NOT_FOUND);
	assert_int_equal(slabkv_object_get(r->f.kv, (enum slabkv_object)9, "x", NULL, &err),
			 SLABKV_E_INVALID);
	assert_string_equal(err.field, "kind");
}

static void lists_have_everything(void **state)
{
	struct real *r = *state;
	struct slabkv_error err;
	const char *files;
	struct set b;

	set_init(&b, 900, 1);
	set_fill(&b);
	assert_int_equal(set_put(&r->f, &b), SLABKV_OK);
	HAS(r, SLABKV_STORAGE, NULL, "{\"storages\":[{\"name\":\"default\"");
	HAS(r, SLABKV_GROUP, NULL, "\"groups\":[", "\"name\":\"default\"");
	HAS(r, SLABKV_INSTANCE, NULL, "\"instances\":[", "\"id\":\"m\"");
	HAS(r, SLABKV_TENANT, NULL, "\"tenants\":[");
	assert_int_equal(slabkv_call(r->f.kv, "GET", "/v1/storages/default/files", NULL, &files,
				     &err),
			 SLABKV_OK);
	assert_non_null(strstr(files, "\"state\":\"used\""));
	slabkv_free(files);
	assert_int_equal(slabkv_call(r->f.kv, "GET", "/v1/storages/nowhere/files", NULL, &files,
				     &err),
			 SLABKV_E_NOT_FOUND);
	set_free(&b);
}

static void the_manager_tells_people(void **state)
{
	struct real *r = *state;
	const char *name = "some/key with spaces \xc3\xa4", *json;
	struct slabkv_keys key = slabkv_keys_strings(&name, 1);
	char checksum[40];
	struct slabkv_error err;
	struct set b;

	set_init(&b, 1, 1);
	set_fill(&b);
	assert_int_equal(slabkv_put(r->f.kv, "m", &key, NULL, b.blocks, sizeof(struct slabkv_block),
				    &b.io, &err),
			 SLABKV_OK);
	assert_int_equal(b.io.done, 1);
	assert_int_equal(
		slabkv_call(r->f.kv, "GET",
			    "/v1/instances/m/blocks?key=some%2Fkey%20with%20spaces%20%C3%A4", NULL,
			    &json, &err),
		SLABKV_OK);
	snprintf(checksum, sizeof checksum, "\"checksum\":\"%016llx\"",
		 (unsigned long long)skv_checksum(b.memory, FIX_BYTES));
	assert_true(strstr(json, "\"state\":\"committed\"") && strstr(json, checksum));
	slabkv_free(json);
	assert_int_equal(slabkv_call(r->f.kv, "GET", "/v1/stats", NULL, &json, &err), SLABKV_OK);
	assert_true(strstr(json, "\"state\":\"ready\"") && strstr(json, slabkv_version()));
	slabkv_free(json);
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
		T(changes_leave_the_rest),
		T(bad_changes_are_refused),
		T(lists_have_everything),
		T(the_manager_tells_people),
		T(refusals_name_the_field),
	};
#undef T

	return cmocka_run_group_tests(tests, NULL, NULL);
}
