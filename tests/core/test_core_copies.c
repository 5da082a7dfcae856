/*
 * test_core_copies.c - a store that was copied, and slab directories that both copies would go on
 * in: the copy started first, second, at once; while the other runs; adopted; damaged on the way;
 * with every write of the beginning failing.
 *
 * Two cores without threads on SQLite files, one clock, a real directory.
 */
#include "core_env.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <shell.h>
#include <skv/storage.h>

#define BLOCK 65536u
#define UNIT (1ull << 20)
#define SLOTS 15u

struct scene {
	char top[64];
	struct skv_fake_clock clock;
	struct copy {
		char path[96];
		struct skv_store *store;
		struct skv_cluster *cluster;
		struct skv_core *core;
		struct skv_core_options o;
		_Atomic bool hopeless;
	} a, b;
	uint32_t lease_ms; /* of the ownership */
	bool threads;
	struct skv_store_ops ops; /* SQLite's, but for `get` */
	int (*get)(void *self, const char *key, struct skv_buf *out, uint64_t *version,
		   struct skv_error *err); /* NULL: SQLite's */
	struct skv_arena arena;
	struct skv_error err;
};

struct place {
	char path[64];
	uint64_t offset;
};

/* A directory that hangs: whoever opens it while `armed` waits until `go`. */
static struct {
	_Atomic bool armed, inside, go;
} gate;

DIR *fdopendir(int fd)
{
	DIR *(*next)(int fd) = (DIR * (*)(int)) dlsym(RTLD_NEXT, "fdopendir");

	if (atomic_exchange(&gate.armed, false)) {
		gate.inside = true;
		while (!gate.go)
			poll(NULL, 0, 2);
	}
	return next(fd);
}

static void on_hopeless(void *ctx, int why)
{
	/* another copy, or a journal that is not that of the registry: a restart repairs neither */
	assert_true(why == SKV_E_FOREIGN || why == SKV_E_UNAVAILABLE);
	((struct copy *)ctx)->hopeless = true;
}

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

static void open_copy(struct scene *s, struct copy *c, bool adopt)
{
	struct skv_store_options so = { .path = c->path, .durability = SKV_DURABILITY_FULL,
					.clock = &s->clock.clock };

	s->ops = skv_store_sqlite;
	if (s->get)
		s->ops.get = s->get;
	assert_int_equal(skv_store_open(&s->ops, &so, &c->store, &s->err), SKV_OK);
	skv_core_options_init(&c->o);
	c->o.store = c->store;
	c->o.clock = &s->clock.clock;
	c->o.manual = !s->threads;
	c->o.owner_lease_ms = s->lease_ms;
	c->o.grace_ms = 1000;
	c->o.lease_max_ms = 10000;
	c->o.session_max_ms = 60000;
	c->o.adopt = adopt;
	c->o.hopeless = on_hopeless;
	c->o.hopeless_ctx = c;
	c->hopeless = false;
	assert_int_equal(skv_cluster_create(&c->o, NULL, &c->cluster, &s->err), SKV_OK);
	c->core = skv_cluster_core(c->cluster, 0);
}

/* Ticks until it is ready, or has given up. */
static bool begin(struct scene *s, struct copy *c, bool adopt)
{
	open_copy(s, c, adopt);
	for (int i = 0;
	     i < 20 && !c->hopeless && skv_cluster_state_get(c->cluster) != SKV_CORE_READY; i++)
		skv_cluster_tick(c->cluster);
	return skv_cluster_state_get(c->cluster) == SKV_CORE_READY;
}

/* As in a kill -9; its ownership is over when it returns. */
static void kill_copy(struct scene *s, struct copy *c)
{
	skv_cluster_destroy(c->cluster);
	skv_store_close(c->store);
	skv_fake_clock_advance(&s->clock, s->lease_ms);
	c->core = NULL;
	c->store = NULL;
}

static void stop_copy(struct scene *s, struct copy *c)
{
	skv_cluster_shutdown(c->cluster);
	kill_copy(s, c);
}

static void copy_store(struct scene *s)
{
	shell("cp %s/a.db %s/b.db && for x in -wal -checkpoint -checkpoint-wal; do test ! -e "
	      "%s/a.db$x || cp %s/a.db$x %s/b.db$x; done",
	      s->top, s->top, s->top, s->top, s->top);
}

static int setup(void **state)
{
	struct scene *s = test_calloc(1, sizeof *s);

	env_quiet();
	snprintf(s->top, sizeof s->top, "/tmp/skv-copies-XXXXXX");
	assert_non_null(mkdtemp(s->top));
	snprintf(s->a.path, sizeof s->a.path, "%s/a.db", s->top);
	snprintf(s->b.path, sizeof s->b.path, "%s/b.db", s->top);
	skv_fake_clock_init(&s->clock, 1000000);
	s->lease_ms = 5000;
	skv_arena_init(&s->arena);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;

	if (s->a.core)
		kill_copy(s, &s->a);
	if (s->b.core)
		kill_copy(s, &s->b);
	skv_arena_destroy(&s->arena);
	shell("rm -rf %s", s->top);
	test_free(s);
	return 0;
}

static void make_objects(struct scene *s, struct copy *c)
{
	char root[96];
	struct skv_storage_spec st = { .name = "s", .type = "file", .root = root,
				       .capacity = 2 * UNIT, .unit = UNIT,
				       .file_size = UNIT, .enabled = true };
	const char *storages[] = { "s" };
	struct skv_group_spec g = { .name = "g", .storages = storages, .n_storages = 1 };
	struct skv_spec spec = { "kv", BLOCK };
	struct skv_instance_spec i = { .tenant = "t", .id = "i", .group = "g", .specs = &spec,
				       .n_specs = 1, .extra = "" };

	snprintf(root, sizeof root, "%s/slabs", s->top);
	assert_int_equal(skv_cluster_storage_put(c->cluster, &st, SKV_PUT_ANY, NULL, &s->err),
			 SKV_OK);
	assert_int_equal(skv_cluster_group_put(c->cluster, &g, SKV_PUT_ANY, NULL, NULL, &s->err),
			 SKV_OK);
	assert_int_equal(skv_cluster_instance_put(c->cluster, &i, SKV_PUT_ANY, NULL, &s->err),
			 SKV_OK);
}

struct wait {
	bool done;
	int status;
};

static void on_done(void *ctx, int status)
{
	struct wait *w = ctx;

	w->done = true;
	w->status = status;
}

static int settle(struct scene *s, struct copy *c, struct wait *w, int rc)
{
	for (int i = 0; rc == SKV_PENDING && i < 400 && !w->done; i++) {
		skv_cluster_tick(c->cluster);
		skv_fake_clock_advance(&s->clock, i < 4 ? 0 : 50);
	}
	assert_true(rc != SKV_PENDING || w->done);
	return rc == SKV_PENDING ? w->status : rc;
}

/* Puts a block: started, and finished unless `open`. `sum` 0: without a checksum. */
static int put(struct scene *s, struct copy *c, uint64_t key, uint64_t sum, struct place *where)
{
	struct skv_key k = { 1, key };
	struct skv_start_req q = { .tenant = "t", .instance = "i", .request_id = "", .keys = &k,
				   .n_keys = 1, .deadline_ms = 30000 };
	struct skv_finish_req f = { .tenant = "t", .mask_kind = SKV_MASK_ALL };
	struct skv_start_res r = { 0 };
	struct skv_finish_res fr = { 0 };
	struct wait w = { 0 };
	struct skv_done done = { on_done, &w };
	int rc;

	skv_arena_reset(&s->arena);
	rc = settle(s, c, &w, skv_core_start(c->core, &q, &r, &s->arena, &s->err, &done));
	if (rc != SKV_OK)
		return rc;
	if (where) {
		snprintf(where->path, sizeof where->path, "%s", r.files.v[r.loc[0].file].path);
		where->offset = r.loc[0].offset;
	}
	f.session = r.session;
	f.checksums = sum ? &sum : NULL;
	f.n_checksums = sum ? 1 : 0;
	w = (struct wait){ 0 };
	return settle(s, c, &w, skv_core_finish(c->core, &f, &fr, &s->arena, &s->err, &done));
}

static uint32_t found(struct scene *s, struct copy *c, uint64_t key)
{
	struct skv_key k = { 1, key };
	struct skv_lookup_req q = { .tenant = "t", .instance = "i", .mode = SKV_LOOKUP_BATCH,
				    .keys = &k, .n_keys = 1 };
	uint32_t matched = 0;

	skv_arena_reset(&s->arena);
	if (skv_core_lookup_length(c->core, &q, &matched, &s->arena, &s->err) != SKV_OK)
		return 0;
	return matched;
}

static void advance(struct scene *s, struct copy *c, uint64_t ms)
{
	skv_fake_clock_advance(&s->clock, ms);
	skv_cluster_tick(c->cluster);
}

/* Names of owner files, space before each. */
static const char *names(struct scene *s)
{
	static char text[512];
	char path[96];
	struct dirent *e;
	DIR *d;

	snprintf(path, sizeof path, "%s/slabs", s->top);
	d = opendir(path);
	assert_non_null(d);
	text[0] = '\0';
	while ((e = readdir(d)) != NULL)
		if (strncmp(e->d_name, "owner.", 6) == 0)
			snprintf(text + strlen(text), sizeof text - strlen(text), " %s", e->d_name);
	closedir(d);
	return text;
}

static int storage_serves(struct scene *s, struct copy *c)
{
	(void)s;
	return skv_cluster_ready(c->cluster, &s->err);
}

/* a has blocks 1 (with a checksum) and 2 (without), is stopped, and copied to b. */
static void begin_scene(struct scene *s)
{
	assert_true(begin(s, &s->a, false));
	make_objects(s, &s->a);
	assert_int_equal(put(s, &s->a, 1, 77, NULL), SKV_OK);
	assert_int_equal(put(s, &s->a, 2, 0, NULL), SKV_OK);
	stop_copy(s, &s->a);
	copy_store(s);
}

static void assert_turned_away(struct scene *s, struct copy *c)
{
	struct skv_core_counters counters;

	skv_cluster_counters_get(c->cluster, &counters);
	assert_true(counters.store_refusals > 0);
	assert_true(c->hopeless);
	assert_int_not_equal(skv_cluster_state_get(c->cluster), SKV_CORE_READY);
	assert_int_not_equal(put(s, c, 100, 1, NULL), SKV_OK);
	assert_int_equal(found(s, c, 1), 0);
}

/* ---- scenes ---------------------------------------------------------------------------------- */

static void the_copy_started_second_is_refused(void **state)
{
	struct scene *s = *state;

	begin_scene(s);
	assert_true(begin(s, &s->a, false));
	assert_false(begin(s, &s->b, false));
	assert_turned_away(s, &s->b);
	assert_int_equal(put(s, &s->a, 3, 5, NULL), SKV_OK);
	/* Again and again, with ever greater incarnations of its own, also
	 * when the other is stopped. */
	for (int i = 0; i < 5; i++) {
		kill_copy(s, &s->b);
		if (i == 3)
			stop_copy(s, &s->a);
		assert_false(begin(s, &s->b, false));
		assert_turned_away(s, &s->b);
	}
	assert_true(begin(s, &s->a, false));
	assert_int_equal(found(s, &s->a, 1) + found(s, &s->a, 2) + found(s, &s->a, 3), 3);
}

static void the_copy_started_first_has_it(void **state)
{
	struct scene *s = *state;

	begin_scene(s);
	assert_true(begin(s, &s->b, false));
	assert_int_equal(put(s, &s->b, 3, 5, NULL), SKV_OK);
	assert_false(begin(s, &s->a, false));
	assert_turned_away(s, &s->a);
	advance(s, &s->b, 1000);
	assert_int_equal(put(s, &s->b, 4, 5, NULL), SKV_OK);
}

/* Both take every step beside each other, in each order of the first ticks. */
static void of_two_at_once_one_at_most_grants(void **state)
{
	struct scene *s = *state;

	begin_scene(s);
	for (int order = 0; order < 16; order++) {
		bool a, b;

		open_copy(s, &s->a, false);
		open_copy(s, &s->b, false);
		for (int i = 0; i < 20; i++) {
			skv_cluster_tick(order >> (i % 4) & 1 ? s->a.cluster : s->b.cluster);
			skv_cluster_tick(order >> (i % 4) & 1 ? s->b.cluster : s->a.cluster);
		}
		a = put(s, &s->a, 10 + (uint64_t)order, 1, NULL) == SKV_OK;
		b = put(s, &s->b, 10 + (uint64_t)order, 1, NULL) == SKV_OK;
		assert_false(a && b);
		assert_true(a || b);
		kill_copy(s, &s->a);
		kill_copy(s, &s->b);
		shell("rm -f %s/slabs/owner.*", s->top);
	}
}

static void a_running_one_that_sees_another_grants_nothing(void **state)
{
	struct scene *s = *state;
	struct place where;

	begin_scene(s);
	assert_true(begin(s, &s->a, false));
	assert_int_equal(put(s, &s->a, 3, 5, &where), SKV_OK);
	/* The other is adopted although a runs: against the rule, and so a must notice. */
	assert_true(begin(s, &s->b, true));
	advance(s, &s->a, 1000);
	assert_int_equal(storage_serves(s, &s->a), SKV_E_UNAVAILABLE);
	assert_int_not_equal(put(s, &s->a, 4, 5, NULL), SKV_OK);
	assert_int_equal(found(s, &s->a, 3), 0);
	assert_int_equal(storage_serves(s, &s->b), SKV_OK);
}

static const char *problem(struct scene *s, struct copy *c, struct skv_arena *a)
{
	struct skv_storage_view *v = NULL;
	uint32_t n = 0;

	assert_int_equal(skv_cluster_every_storage(c->cluster, "", a, &v, &n, &s->err), SKV_OK);
	assert_int_equal(n, 1);
	return v[0].problem;
}

/* Another name beside ours: of another copy, or damaged, which is not the same. */
static void a_problem_is_called_by_its_name(void **state)
{
	struct scene *s = *state;
	struct skv_arena a;

	begin_scene(s);
	assert_true(begin(s, &s->a, false));
	skv_arena_init(&a);
	assert_int_equal(storage_serves(s, &s->a), SKV_OK);
	assert_string_equal(problem(s, &s->a, &a), "");
	shell("cd %s/slabs && cp owner.* owner.77 && printf X | dd of=owner.77 bs=1 seek=40 "
	      "conv=notrunc status=none", s->top);
	advance(s, &s->a, 1000);
	assert_int_equal(storage_serves(s, &s->a), SKV_E_UNAVAILABLE);
	assert_non_null(strstr(problem(s, &s->a, &a), "is damaged"));
	assert_null(strstr(problem(s, &s->a, &a), "went on in its directory"));
	skv_arena_destroy(&a);
}

static void a_look_that_is_overdue_ends_granting(void **state)
{
	struct scene *s = *state;

	begin_scene(s);
	s->lease_ms = 60000;
	assert_true(begin(s, &s->a, false));
	assert_int_equal(storage_serves(s, &s->a), SKV_OK);
	skv_fake_clock_advance(&s->clock, 4999); /* copy a stood still, and continues */
	assert_int_equal(storage_serves(s, &s->a), SKV_OK);
	skv_fake_clock_advance(&s->clock, 1);
	assert_int_equal(skv_cluster_may_answer(s->a.cluster), SKV_OK); /* the ownership runs, */
	assert_int_equal(storage_serves(s, &s->a), SKV_E_UNAVAILABLE);
	advance(s, &s->a, 1);
	assert_int_equal(storage_serves(s, &s->a), SKV_OK); /* copy a has looked */
}

/* Slots that were free in the copy may be written now by the other's last clients, and blocks
 * without a checksum cannot be told from those bytes. */
static void adopted_it_counts_as_rolled_back(void **state)
{
	struct scene *s = *state;
	struct skv_core_counters counters;
	struct place first, late;

	begin_scene(s);
	assert_true(begin(s, &s->a, false));
	assert_int_equal(put(s, &s->a, 3, 5, &first), SKV_OK);
	kill_copy(s, &s->a);
	assert_false(begin(s, &s->b, false));
	kill_copy(s, &s->b);
	assert_true(begin(s, &s->b, true));
	skv_cluster_counters_get(s->b.cluster, &counters);
	assert_int_equal(counters.adoptions, 1);
	assert_int_equal(found(s, &s->b, 1), 1);
	assert_int_equal(found(s, &s->b, 2), 0);
	assert_int_equal(found(s, &s->b, 3), 0);
	assert_int_equal(put(s, &s->b, 4, 5, &late), SKV_OK); /* in a new file */
	assert_string_not_equal(late.path, first.path);
	/* A restart without it goes on, and what was free still rests. */
	kill_copy(s, &s->b);
	assert_true(begin(s, &s->b, false));
	assert_int_equal(found(s, &s->b, 1), 1);
	assert_int_equal(found(s, &s->b, 2), 0);
	assert_int_equal(found(s, &s->b, 4), 1);
	assert_int_equal(put(s, &s->b, 5, 5, NULL), SKV_E_NO_SPACE);
	assert_int_equal(skv_cluster_check(s->b.cluster, &s->err), SKV_OK);
	for (int i = 0; i < 62; i++)
		advance(s, &s->b, 1000);
	assert_int_equal(put(s, &s->b, 5, 5, NULL), SKV_OK);
	/* And the first copy is the one that is refused now. */
	assert_false(begin(s, &s->a, false));
	assert_turned_away(s, &s->a);
}

/* The other copy made a file that this one does not know: it would be the
 * next one that growth makes. */
static void an_adopted_file_rests_as_well(void **state)
{
	struct scene *s = *state;
	struct place late;

	begin_scene(s);
	assert_true(begin(s, &s->a, false));
	for (uint64_t i = 3; i <= SLOTS + 1; i++)
		assert_int_equal(put(s, &s->a, i, 5, &late), SKV_OK);
	assert_string_equal(late.path, "slab-00000001.kvs");
	kill_copy(s, &s->a);
	assert_true(begin(s, &s->b, true));
	for (int i = 0; i < 2; i++) {
		/* in place of block 1, whose slot it knows */
		if (put(s, &s->b, 150 + (uint64_t)i, 5, &late) == SKV_OK)
			assert_string_equal(late.path, "slab-00000000.kvs");
		kill_copy(s, &s->b);
		assert_true(begin(s, &s->b, false));
	}
	for (int i = 0; i < 62; i++)
		advance(s, &s->b, 1000);
	for (uint64_t i = 50; i < 50 + SLOTS + 3; i++)
		assert_int_equal(put(s, &s->b, i, 5, &late), SKV_OK);
	assert_string_equal(late.path, "slab-00000001.kvs");
}

static void old_names_are_swept(void **state)
{
	struct scene *s = *state;

	begin_scene(s);
	for (int i = 0; i < 10; i++) {
		assert_true(begin(s, &s->a, false));
		assert_int_equal(strlen(names(s)),
				 i + 2 < 10 ? strlen(" owner.1") : strlen(" owner.10"));
		kill_copy(s, &s->a);
	}
}

static int count(void *ctx, const char *key, const void *bytes, size_t n, uint64_t version)
{
	(void)key;
	(void)bytes;
	(void)n;
	(void)version;
	++*(uint32_t *)ctx;
	return SKV_OK;
}

static void the_store_forgets_what_no_directory_has(void **state)
{
	struct scene *s = *state;
	uint32_t n = 0;

	begin_scene(s);
	for (int i = 0; i < 40; i++) {
		assert_true(begin(s, &s->a, false));
		n = 0;
		assert_int_equal(skv_store_list(s->a.store, "incarnation/", count, &n, &s->err),
				 SKV_OK);
		assert_true(n <= 18);
		kill_copy(s, &s->a);
	}
}

/* The copy that made the name stood still between its place in the store and its file, while others
 * came. */
static void a_name_that_comes_late_is_no_copy(void **state)
{
	struct scene *s = *state;

	begin_scene(s);
	assert_true(begin(s, &s->a, false));
	shell("mkdir %s/late && cp %s/slabs/owner.* %s/late", s->top, s->top, s->top);
	for (int i = 0; i < 5; i++) {
		kill_copy(s, &s->a);
		assert_true(begin(s, &s->a, false));
	}
	kill_copy(s, &s->a);
	shell("cp %s/late/owner.* %s/slabs", s->top, s->top);
	assert_true(begin(s, &s->a, false));
	assert_false(s->a.hopeless);
	assert_int_equal(found(s, &s->a, 1), 1);
	kill_copy(s, &s->a);
	assert_true(begin(s, &s->a, false));
	assert_int_equal(found(s, &s->a, 1), 1);
}

/* A store that forgets an earlier owner, or our own place, while it is asked about it: as if others
 * had claimed the directory meanwhile. */
static struct {
	const struct scene *s;
	unsigned forgets;  /* so many times */
	unsigned after;    /* questions */
	bool file_goes;    /* with it */
	unsigned asked;
} forgetful;

static int forgetful_get(void *self, const char *key, struct skv_buf *out, uint64_t *version,
			 struct skv_error *err)
{
	unsigned long long n;

	if (sscanf(key, "incarnation/%16llx", &n) == 1 && forgetful.asked++ >= forgetful.after &&
	    forgetful.forgets > 0) {
		forgetful.forgets--;
		if (forgetful.file_goes)
			shell("rm %s/slabs/owner.%llu", forgetful.s->top, n);
		return SKV_E_NOT_FOUND;
	}
	return skv_store_sqlite.get(self, key, out, version, err);
}

static bool begin_forgetful(struct scene *s, unsigned after, bool file_goes)
{
	memset(&forgetful, 0, sizeof forgetful);
	forgetful.s = s;
	forgetful.forgets = 1;
	forgetful.after = after;
	forgetful.file_goes = file_goes;
	s->get = forgetful_get;
	return begin(s, &s->a, false);
}

static void a_name_that_goes_while_it_is_judged_is_no_copy(void **state)
{
	struct scene *s = *state;

	begin_scene(s);
	assert_true(begin(s, &s->a, false));
	kill_copy(s, &s->a); /* the name stays */
	assert_true(begin_forgetful(s, 0, true));
	advance(s, &s->a, 1000);
	assert_int_equal(forgetful.forgets, 0);
	assert_false(s->a.hopeless);
	assert_int_equal(storage_serves(s, &s->a), SKV_OK);
	assert_int_equal(found(s, &s->a, 1), 1);
	kill_copy(s, &s->a);
	/* a name that is still there belongs to a copy */
	begin_forgetful(s, 0, false);
	advance(s, &s->a, 1000);
	assert_true(s->a.hopeless);
}

static void a_file_that_is_made_too_late_is_removed(void **state)
{
	struct scene *s = *state;

	begin_scene(s);
	assert_true(begin(s, &s->a, false));
	kill_copy(s, &s->a);
	/* the name of the previous owner, twice, then our own */
	assert_true(begin_forgetful(s, 2, false));
	assert_int_equal(forgetful.forgets, 0);
	assert_true(forgetful.asked > 3); /* the storage was claimed once more */
	assert_int_equal(storage_serves(s, &s->a), SKV_OK);
	assert_false(s->a.hopeless);
	assert_int_equal(found(s, &s->a, 1), 1);
}

static void a_directory_without_owner_files_opens(void **state)
{
	struct scene *s = *state;

	begin_scene(s);
	shell("rm %s/slabs/owner.*", s->top);
	assert_true(begin(s, &s->a, false));
	assert_int_equal(found(s, &s->a, 1), 1);
	/* The names vanish while the manager runs. */
	shell("rm %s/slabs/owner.*", s->top);
	advance(s, &s->a, 1000);
	assert_int_equal(storage_serves(s, &s->a), SKV_OK);
	assert_int_not_equal(strlen(names(s)), 0);
}

static void a_name_that_was_not_written_to_its_end_is_passed(void **state)
{
	struct scene *s = *state;

	begin_scene(s);
	/* names that the next owners would take, too */
	for (int i = 1; i < 8; i++)
		shell("printf SKVOWN1 > %s/slabs/owner.%d", s->top, 2 * i + 1);
	assert_true(begin(s, &s->a, false));
	assert_int_equal(found(s, &s->a, 1), 1);
	advance(s, &s->a, 1000);
	assert_int_equal(storage_serves(s, &s->a), SKV_OK);
}

/* Our own owner file while we run: missing, incomplete, or damaged, it is made again. */
static void its_own_name_is_made_again(void **state)
{
	struct scene *s = *state;
	const char *damages[] = { "rm %s/slabs/owner.*", "truncate -s 8 %s/slabs/owner.*",
				  "truncate -s 0 %s/slabs/owner.*",
				  "for f in %s/slabs/owner.*; do printf X | dd of=$f bs=1 seek=40 "
				  "conv=notrunc status=none; done" };
	char before[512];

	begin_scene(s);
	assert_true(begin(s, &s->a, false));
	snprintf(before, sizeof before, "%s", names(s));
	for (uint64_t i = 0; i < 4; i++) {
		char command[256];

		snprintf(command, sizeof command, damages[i], s->top);
		shell("%s", command);
		advance(s, &s->a, 1000);
		assert_int_equal(storage_serves(s, &s->a), SKV_OK);
		assert_string_equal(names(s), before);
		assert_int_equal(put(s, &s->a, 10 + i, 5, NULL), SKV_OK);
		assert_int_equal(found(s, &s->a, 1), 1);
	}
	/* A recreated name still reveals the other copy. */
	assert_false(begin(s, &s->b, false));
	assert_turned_away(s, &s->b);
}

/* Damaged while nobody runs, it may be another copy's: it is adopted, once. */
static void a_damaged_name_is_adopted_once(void **state)
{
	struct scene *s = *state;

	begin_scene(s);
	assert_true(begin(s, &s->a, false));
	kill_copy(s, &s->a);
	shell("for f in %s/slabs/owner.*; do printf X | dd of=$f bs=1 seek=40 conv=notrunc "
	      "status=none; done", s->top);
	assert_false(begin(s, &s->a, false));
	assert_turned_away(s, &s->a);
	kill_copy(s, &s->a);
	assert_true(begin(s, &s->a, true));
	assert_int_equal(found(s, &s->a, 1), 1);
	kill_copy(s, &s->a);
	assert_true(begin(s, &s->a, false));
	assert_int_equal(found(s, &s->a, 1), 1);
}

static void say(void *ctx, const char *text)
{
	if (strstr(text, "another copy"))
		++*(int *)ctx;
}

static void fsck_tells_of_the_other_copy(void **state)
{
	struct scene *s = *state;
	struct skv_store_options so = { .path = s->b.path, .clock = &s->clock.clock };
	struct skv_fsck_report r;
	int told = 0;

	begin_scene(s);
	assert_true(begin(s, &s->a, false));
	assert_int_equal(skv_store_open(&skv_store_sqlite, &so, &s->b.store, &s->err), SKV_OK);
	assert_int_equal(skv_cluster_fsck(s->b.store, true, NULL, say, &told, &r, &s->err), SKV_OK);
	assert_int_equal(told, 1);
	skv_store_close(s->b.store);
	stop_copy(s, &s->a);
	so.path = s->a.path;
	told = 0;
	assert_int_equal(skv_store_open(&skv_store_sqlite, &so, &s->a.store, &s->err), SKV_OK);
	assert_int_equal(skv_cluster_fsck(s->a.store, true, NULL, say, &told, &r, &s->err), SKV_OK);
	assert_int_equal(told, 0);
	assert_int_equal(r.problems, 0);
	skv_store_close(s->a.store);
}

/* A new storage in a directory where another copy's is, with the marker that it expects. */
static void a_deleted_storage_takes_its_name_with_it(void **state)
{
	struct scene *s = *state;

	assert_true(begin(s, &s->a, false));
	make_objects(s, &s->a);
	assert_int_equal(skv_cluster_instance_delete(s->a.cluster, "t", "i", NULL, &s->err),
			 SKV_OK);
	assert_int_equal(skv_cluster_group_delete(s->a.cluster, "g", &s->err), SKV_OK);
	assert_int_not_equal(strlen(names(s)), 0);
	assert_int_equal(skv_cluster_storage_delete(s->a.cluster, "s", &s->err), SKV_OK);
	assert_int_equal(strlen(names(s)), 0);
}

/* ---- a store that was put back --------------------------------------------------------------- */

/* The copy takes the place of a's file. */
static void put_back(struct scene *s)
{
	shell("cd %s && rm -f a.db* && for x in '' -wal -checkpoint -checkpoint-wal; do "
	      "test ! -e b.db$x || cp b.db$x a.db$x; done",
	      s->top);
}

/* Until the directory knows of all that was acknowledged, as it does a second later. */
static void is_noted(struct scene *s, struct copy *c)
{
	advance(s, c, 1000);
	advance(s, c, 50);
}

/* A copy of the same epoch has the same owner's name in it. */
static void put_back_within_an_epoch_it_is_refused(void **state)
{
	struct scene *s = *state;
	struct place lost, next;

	assert_true(begin(s, &s->a, false));
	make_objects(s, &s->a);
	assert_int_equal(put(s, &s->a, 1, 77, NULL), SKV_OK);
	is_noted(s, &s->a);
	copy_store(s);
	assert_int_equal(put(s, &s->a, 2, 78, &lost), SKV_OK);
	is_noted(s, &s->a);
	kill_copy(s, &s->a);
	put_back(s);
	for (int i = 0; i < 12; i++) { /* attempts do not wear the proof out */
		assert_false(begin(s, &s->a, false));
		assert_turned_away(s, &s->a);
		kill_copy(s, &s->a);
	}
	assert_true(begin(s, &s->a, true));
	assert_int_equal(found(s, &s->a, 1), 1);
	assert_int_equal(found(s, &s->a, 2), 0);
	assert_int_equal(put(s, &s->a, 3, 79, &next), SKV_OK); /* in a new file */
	assert_string_not_equal(next.path, lost.path);
	assert_int_equal(skv_cluster_check(s->a.cluster, &s->err), SKV_OK);
	is_noted(s, &s->a);
	kill_copy(s, &s->a);
	assert_true(begin(s, &s->a, false)); /* once is enough */
	assert_int_equal(found(s, &s->a, 3), 1);
}

/* Nor do attempts of one process that goes on: it never answers in between. */
static void who_was_refused_is_looked_at_again(void **state)
{
	struct scene *s = *state;
	uint64_t claims = 0;

	assert_true(begin(s, &s->a, false));
	make_objects(s, &s->a);
	assert_int_equal(put(s, &s->a, 1, 77, NULL), SKV_OK);
	is_noted(s, &s->a);
	copy_store(s);
	assert_int_equal(put(s, &s->a, 2, 78, NULL), SKV_OK);
	is_noted(s, &s->a);
	kill_copy(s, &s->a);
	put_back(s);
	assert_false(begin(s, &s->a, false));
	for (int i = 0; i < 200; i++) {
		struct skv_core_counters n;

		advance(s, &s->a, s->lease_ms / 10);
		assert_int_not_equal(skv_cluster_state_get(s->a.cluster), SKV_CORE_READY);
		skv_cluster_counters_get(s->a.cluster, &n);
		claims = n.takeovers;
	}
	assert_true(claims > 3);
}

/* A directory that hangs is not waited for; what it proves counts nevertheless. */
static void a_proof_that_comes_late_ends_the_ownership(void **state)
{
	struct scene *s = *state;

	s->lease_ms = 60000;
	assert_true(begin(s, &s->a, false));
	make_objects(s, &s->a);
	is_noted(s, &s->a);
	copy_store(s);
	assert_int_equal(put(s, &s->a, 1, 78, NULL), SKV_OK);
	is_noted(s, &s->a);
	kill_copy(s, &s->a);
	put_back(s);
	s->threads = true;
	gate.armed = true;
	open_copy(s, &s->a, false);
	while (!gate.inside)
		poll(NULL, 0, 2);
	skv_fake_clock_advance(&s->clock, 5000);
	while (skv_cluster_state_get(s->a.cluster) != SKV_CORE_READY)
		poll(NULL, 0, 2);
	assert_int_equal(storage_serves(s, &s->a), SKV_E_UNAVAILABLE);
	gate.go = true;
	for (int i = 0; i < 20000 && !s->a.hopeless; i++)
		poll(NULL, 0, 2);
	assert_true(s->a.hopeless);
	assert_int_not_equal(skv_cluster_state_get(s->a.cluster), SKV_CORE_READY);
}

/* Nothing was written since but by an orderly stop. */
static void a_stop_notes_the_end(void **state)
{
	struct scene *s = *state;

	assert_true(begin(s, &s->a, false));
	make_objects(s, &s->a);
	is_noted(s, &s->a);
	copy_store(s);
	assert_int_equal(put(s, &s->a, 1, 77, NULL), SKV_OK);
	stop_copy(s, &s->a);
	put_back(s);
	assert_false(begin(s, &s->a, false));
	assert_turned_away(s, &s->a);
}

static void put_back_from_an_earlier_epoch_it_is_refused(void **state)
{
	struct scene *s = *state;

	assert_true(begin(s, &s->a, false));
	make_objects(s, &s->a);
	assert_int_equal(put(s, &s->a, 1, 77, NULL), SKV_OK);
	copy_store(s);
	for (int i = 0; i < 2; i++) {
		kill_copy(s, &s->a);
		assert_true(begin(s, &s->a, false));
		assert_int_equal(put(s, &s->a, 2 + (uint64_t)i, 78, NULL), SKV_OK);
	}
	kill_copy(s, &s->a);
	put_back(s);
	assert_false(begin(s, &s->a, false));
	kill_copy(s, &s->a);
	assert_true(begin(s, &s->a, true));
	assert_int_equal(found(s, &s->a, 1), 1);
	assert_int_equal(found(s, &s->a, 2) + found(s, &s->a, 3), 0);
}

struct to {
	struct skv_store *store;
	struct skv_fence fence;
};

static int copy_document(void *ctx, const char *key, const void *bytes, size_t n, uint64_t version)
{
	struct to *to = ctx;

	(void)version;
	return skv_store_put(to->store, &to->fence, key, SKV_VERSION_NONE, bytes, n, NULL, NULL);
}

/* b gets a's registry, and no journal. */
static void an_empty_journal_beside_a_registry_is_not_new(void **state)
{
	struct scene *s = *state;
	struct skv_store_options so = { .path = s->b.path, .clock = &s->clock.clock };
	struct to to = { .fence = { 0 } };

	assert_true(begin(s, &s->a, false));
	make_objects(s, &s->a);
	assert_int_equal(skv_store_open(&skv_store_sqlite, &so, &to.store, &s->err), SKV_OK);
	assert_int_equal(skv_store_acquire(to.store, 0, "x", 1000, &to.fence.number, NULL, 0,
					   &s->err),
			 SKV_OK);
	assert_int_equal(skv_store_list(s->a.store, "", copy_document, &to, &s->err), SKV_OK);
	assert_int_equal(skv_store_release(to.store, 0, to.fence.number, &s->err), SKV_OK);
	skv_store_close(to.store);
	kill_copy(s, &s->a);
	assert_false(begin(s, &s->b, false));
	assert_turned_away(s, &s->b);
	kill_copy(s, &s->b);
	assert_true(begin(s, &s->b, true));
	assert_int_equal(put(s, &s->b, 1, 77, NULL), SKV_OK);
}

/* Batches of two histories are never read as one. */
static void a_batch_of_another_history_is_corruption(void **state)
{
	struct scene *s = *state;
	struct skv_store_options so = { .path = s->a.path, .clock = &s->clock.clock };
	struct skv_core_counters counters;
	struct skv_store_stats st;
	struct skv_store *store;
	uint64_t fence;

	begin_scene(s);
	assert_true(begin(s, &s->a, false));
	assert_int_equal(put(s, &s->a, 3, 5, NULL), SKV_OK);
	kill_copy(s, &s->a);
	assert_int_equal(skv_store_open(&skv_store_sqlite, &so, &store, &s->err), SKV_OK);
	assert_int_equal(skv_store_acquire(store, 0, "x", 1000, &fence, NULL, 0, &s->err), SKV_OK);
	assert_int_equal(skv_store_stats_get(store, 0, &st, &s->err), SKV_OK);
	assert_int_equal(skv_store_append(store, 0, fence, st.last_seq + 1, "", 0, 0, &s->err),
			 SKV_OK); /* the record names nothing before it */
	assert_int_equal(skv_store_release(store, 0, fence, &s->err), SKV_OK);
	skv_store_close(store);
	assert_false(begin(s, &s->a, true));
	assert_turned_away(s, &s->a);
	skv_cluster_counters_get(s->a.cluster, &counters);
	assert_true(counters.corrupt_loads > 0);
}

int main(void)
{
#define SCENE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		SCENE(the_copy_started_second_is_refused),
		SCENE(the_copy_started_first_has_it),
		SCENE(of_two_at_once_one_at_most_grants),
		SCENE(a_running_one_that_sees_another_grants_nothing),
		SCENE(a_problem_is_called_by_its_name),
		SCENE(a_look_that_is_overdue_ends_granting),
		SCENE(adopted_it_counts_as_rolled_back),
		SCENE(an_adopted_file_rests_as_well),
		SCENE(old_names_are_swept),
		SCENE(the_store_forgets_what_no_directory_has),
		SCENE(a_name_that_comes_late_is_no_copy),
		SCENE(a_name_that_goes_while_it_is_judged_is_no_copy),
		SCENE(a_file_that_is_made_too_late_is_removed),
		SCENE(a_directory_without_owner_files_opens),
		SCENE(a_name_that_was_not_written_to_its_end_is_passed),
		SCENE(its_own_name_is_made_again),
		SCENE(a_damaged_name_is_adopted_once),
		SCENE(fsck_tells_of_the_other_copy),
		SCENE(a_deleted_storage_takes_its_name_with_it),
		SCENE(put_back_within_an_epoch_it_is_refused),
		SCENE(who_was_refused_is_looked_at_again),
		SCENE(a_proof_that_comes_late_ends_the_ownership),
		SCENE(a_stop_notes_the_end),
		SCENE(put_back_from_an_earlier_epoch_it_is_refused),
		SCENE(an_empty_journal_beside_a_registry_is_not_new),
		SCENE(a_batch_of_another_history_is_corruption),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
