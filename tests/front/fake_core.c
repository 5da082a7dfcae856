/*
 * fake_core.c - the kvb_core_* functions that the front calls, without any state behind them.
 *
 * Instance "gone" is unknown; everything else exists. Results are filled in at the call; with
 * FAKE_THREAD and FAKE_HOLD they are told later by the fake's own thread. One lock for everything.
 */
#include "fake_core.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kvb/lock.h>


#define HELD_MAX 4096

struct kvb_core {
	struct kvb_mutex lock;
	struct kvb_cond changed;
	pthread_t thread;
	bool stop;
	bool hang;
	unsigned hanging;
	bool release;
	enum fake_mode mode;
	struct {
		struct kvb_done done;
		int status;
	} held[HELD_MAX];
	unsigned n_held;
	int fail;
	char fail_message[KVB_MESSAGE_MAX];
	char tenant[KVB_MAX_NAME + 1];
	char name[KVB_MAX_NAME + 1];
	struct kvb_key key;
	atomic_uint calls;
	_Atomic enum kvb_core_state state;
	atomic_int may_answer;
	struct kvb_secret secret;
};

static void *complete(void *arg)
{
	struct kvb_core *c = arg;

	kvb_mutex_lock(&c->lock);
	while (!c->stop || c->n_held > 0) {
		struct kvb_done done;
		int status;

		if (c->n_held == 0 || (c->mode == FAKE_HOLD && !c->release && !c->stop)) {
			kvb_cond_wait(&c->changed, &c->lock);
			continue;
		}
		c->n_held--;
		done = c->held[c->n_held].done;
		status = c->held[c->n_held].status;
		if (c->n_held == 0)
			c->release = false;
		kvb_mutex_unlock(&c->lock);
		done.fn(done.ctx, status);
		kvb_mutex_lock(&c->lock);
	}
	kvb_mutex_unlock(&c->lock);
	return NULL;
}

struct kvb_core *fake_core_create(void)
{
	struct kvb_core *c = calloc(1, sizeof *c);

	assert(c);
	kvb_mutex_init(&c->lock);
	kvb_cond_init(&c->changed);
	c->state = KVB_CORE_READY;
	memset(&c->secret, 7, sizeof c->secret);
	if (pthread_create(&c->thread, NULL, complete, c) != 0)
		abort();
	return c;
}

void fake_core_destroy(struct kvb_core *c)
{
	kvb_mutex_lock(&c->lock);
	c->stop = true;
	kvb_cond_broadcast(&c->changed);
	kvb_mutex_unlock(&c->lock);
	pthread_join(c->thread, NULL);
	kvb_cond_destroy(&c->changed);
	kvb_mutex_destroy(&c->lock);
	free(c);
}

/* ---- turning it ------------------------------------------------------------------------------ */

void fake_core_state(struct kvb_core *c, enum kvb_core_state state) { c->state = state; }
void fake_core_may_answer(struct kvb_core *c, int rc) { c->may_answer = rc; }

void fake_core_mode(struct kvb_core *c, enum fake_mode mode)
{
	kvb_mutex_lock(&c->lock);
	c->mode = mode;
	kvb_cond_broadcast(&c->changed);
	kvb_mutex_unlock(&c->lock);
}

void fake_core_fail(struct kvb_core *c, int status, const char *message)
{
	kvb_mutex_lock(&c->lock);
	c->fail = status;
	snprintf(c->fail_message, sizeof c->fail_message, "%s", message);
	kvb_mutex_unlock(&c->lock);
}

void fake_core_await_held(struct kvb_core *c, unsigned n)
{
	kvb_mutex_lock(&c->lock);
	while (c->n_held < n)
		kvb_cond_wait(&c->changed, &c->lock);
	kvb_mutex_unlock(&c->lock);
}

void fake_core_release(struct kvb_core *c)
{
	kvb_mutex_lock(&c->lock);
	c->release = c->n_held > 0;
	kvb_cond_broadcast(&c->changed);
	kvb_mutex_unlock(&c->lock);
}

void fake_core_hang(struct kvb_core *c, bool on)
{
	kvb_mutex_lock(&c->lock);
	c->hang = on;
	kvb_cond_broadcast(&c->changed);
	kvb_mutex_unlock(&c->lock);
}

void fake_core_await_hanging(struct kvb_core *c, unsigned n)
{
	kvb_mutex_lock(&c->lock);
	while (c->hanging < n)
		kvb_cond_wait(&c->changed, &c->lock);
	kvb_mutex_unlock(&c->lock);
}

unsigned fake_core_calls(const struct kvb_core *c) { return atomic_load(&c->calls); }
const char *fake_core_tenant(const struct kvb_core *c) { return c->tenant; }
const char *fake_core_name(const struct kvb_core *c) { return c->name; }
struct kvb_key fake_core_key(const struct kvb_core *c) { return c->key; }

/* ---- what every call does -------------------------------------------------------------------- */

static int note(struct kvb_core *c, const char *tenant, const char *name,
		const struct kvb_key *keys, struct kvb_error *err)
{
	int rc = KVB_OK;

	kvb_mutex_lock(&c->lock);
	atomic_fetch_add(&c->calls, 1);
	snprintf(c->tenant, sizeof c->tenant, "%s", tenant);
	snprintf(c->name, sizeof c->name, "%s", name);
	if (keys)
		c->key = keys[0];
	if (c->fail)
		rc = kvb_fail(err, c->fail, NULL, "%s", c->fail_message);
	kvb_mutex_unlock(&c->lock);
	if (rc == KVB_OK && strcmp(name, "gone") == 0)
		rc = kvb_fail(err, KVB_E_NOT_FOUND, "instance", "no such instance");
	return rc;
}

static int end(struct kvb_core *c, int rc, const struct kvb_done *done)
{
	kvb_mutex_lock(&c->lock);
	if (!done || c->mode == FAKE_NOW) {
		kvb_mutex_unlock(&c->lock);
		return rc;
	}
	assert(c->n_held < HELD_MAX);
	c->held[c->n_held].done = *done;
	c->held[c->n_held].status = rc;
	c->n_held++;
	kvb_cond_broadcast(&c->changed);
	kvb_mutex_unlock(&c->lock);
	return KVB_PENDING;
}

static int administer(struct kvb_core *c, const char *name, bool *created, struct kvb_error *err)
{
	int rc = note(c, "", name, NULL, err);

	kvb_mutex_lock(&c->lock);
	c->hanging++;
	kvb_cond_broadcast(&c->changed);
	while (c->hang)
		kvb_cond_wait(&c->changed, &c->lock);
	c->hanging--;
	kvb_mutex_unlock(&c->lock);
	if (rc == KVB_OK && created)
		*created = strncmp(name, "new", 3) == 0;
	return rc;
}

/* ---- the core's functions -------------------------------------------------------------------- */

enum kvb_core_state kvb_core_state_get(const struct kvb_core *c) { return c->state; }
int kvb_core_may_answer(const struct kvb_core *c) { return c->may_answer; }
const struct kvb_secret *kvb_core_secret(const struct kvb_core *c) { return &c->secret; }

int kvb_core_ready(struct kvb_core *c, struct kvb_error *err)
{
	if (c->state == KVB_CORE_READY)
		return KVB_OK;
	return kvb_fail(err, KVB_E_NOT_READY, NULL, "fake: not ready");
}

int kvb_core_storage_put(struct kvb_core *c, const struct kvb_storage_spec *s, bool *created,
			 struct kvb_error *err)
{
	return administer(c, s->name, created, err);
}
int kvb_core_group_put(struct kvb_core *c, const struct kvb_group_spec *g, const uint64_t *expect, bool *created,
		       struct kvb_error *err)
{
	(void)expect;
	return administer(c, g->name, created, err);
}
int kvb_core_instance_put(struct kvb_core *c, const struct kvb_instance_spec *i, bool *created,
			  struct kvb_error *err)
{
	return administer(c, i->id, created, err);
}
int kvb_core_files(struct kvb_core *c, const char *storage, struct kvb_arena *a, struct kvb_file_view **out, uint32_t *n,
		   struct kvb_error *err)
{
	static struct kvb_file_view view = { .file = 3, .state = "used", .why = "", .waits_for = "" };

	(void)c, (void)storage, (void)a, (void)err;
	*out = &view;
	*n = 1;
	return KVB_OK;
}

int kvb_core_file_drain(struct kvb_core *c, const char *storage, uint32_t file, bool on, struct kvb_error *err)
{
	(void)c, (void)storage, (void)on;
	return file == 3 ? KVB_OK : kvb_fail(err, KVB_E_NOT_FOUND, "file", "no slab file %u", file);
}

int kvb_core_storage_delete(struct kvb_core *c, const char *name, struct kvb_error *err)
{
	return administer(c, name, NULL, err);
}
int kvb_core_group_delete(struct kvb_core *c, const char *name, struct kvb_error *err)
{
	return administer(c, name, NULL, err);
}
int kvb_core_instance_delete(struct kvb_core *c, const char *tenant, const char *id,
			     struct kvb_error *err)
{
	(void)tenant;
	return administer(c, id, NULL, err);
}

static const char *copy(struct kvb_arena *a, const char *s)
{
	char *p = kvb_arena_strndup(a, s, strlen(s));

	return p ? p : "nomem";
}

int kvb_core_storages(struct kvb_core *c, const char *name, struct kvb_arena *a,
		      struct kvb_storage_view **out, uint32_t *n, struct kvb_error *err)
{
	struct kvb_storage_view *v = kvb_arena_calloc(a, 1, sizeof *v);
	int rc = v ? note(c, "", name ? name : "", NULL, err) : KVB_E_NOMEM;

	if (rc != KVB_OK)
		return rc;
	v->spec = (struct kvb_storage_spec){ .name = name ? copy(a, name) : "default",
					     .type = "file", .root = "/data", .capacity = 1 << 30,
					     .file_size = 1 << 30, .unit = 1 << 26, .enabled = true };
	snprintf(v->uuid, sizeof v->uuid, "00000000-0000-0000-0000-000000000001");
	v->healthy = true;
	v->problem = "";
	*out = v;
	*n = 1;
	return KVB_OK;
}

int kvb_core_groups(struct kvb_core *c, const char *name, struct kvb_arena *a,
		    struct kvb_group_view **out, uint32_t *n, struct kvb_error *err)
{
	static const char *const storages[] = { "default" };
	struct kvb_group_view *v = kvb_arena_calloc(a, 1, sizeof *v);
	int rc = v ? note(c, "", name ? name : "", NULL, err) : KVB_E_NOMEM;

	if (rc != KVB_OK)
		return rc;
	v->spec = (struct kvb_group_spec){ .name = name ? copy(a, name) : "default",
					   .storages = storages, .n_storages = 1 };
	*out = v;
	*n = 1;
	return KVB_OK;
}

int kvb_core_instances(struct kvb_core *c, const char *tenant, const char *id, struct kvb_arena *a,
		       struct kvb_instance_view **out, uint32_t *n, struct kvb_error *err)
{
	static const struct kvb_spec specs[] = { { "tp0", 4096 } };
	struct kvb_instance_view *v = kvb_arena_calloc(a, 1, sizeof *v);
	int rc = v ? note(c, tenant, id ? id : "", NULL, err) : KVB_E_NOMEM;

	if (rc != KVB_OK)
		return rc;
	v->spec = (struct kvb_instance_spec){ .tenant = "default", .id = id ? copy(a, id) : "m", .group = "default",
					      .block_tokens = 16, .specs = specs, .n_specs = 1, .extra = "" };
	*out = v;
	*n = 1;
	return KVB_OK;
}

static const char *const spec_names[] = { "tp0" };

static struct kvb_files one_file(struct kvb_arena *a)
{
	struct kvb_file_ref *f = kvb_arena_calloc(a, 1, sizeof *f);

	if (!f)
		return (struct kvb_files){ NULL, 0 };
	f->storage = "default";
	f->type = "file";
	snprintf(f->uuid, sizeof f->uuid, "00000000-0000-0000-0000-000000000001");
	snprintf(f->path, sizeof f->path, "slab-00000001.kvs");
	return (struct kvb_files){ f, 1 };
}

static struct kvb_location *locations(struct kvb_arena *a, uint32_t n)
{
	struct kvb_location *loc = kvb_arena_calloc(a, n, sizeof *loc);

	for (uint32_t i = 0; loc && i < n; i++)
		loc[i] = (struct kvb_location){ 0, (uint64_t)i * 4096, 4096, i + 1, 0, false };
	return loc;
}

int kvb_core_match(struct kvb_core *c, const struct kvb_match_req *req, struct kvb_match_res *res,
		   struct kvb_arena *a, struct kvb_error *err)
{
	int rc = note(c, req->tenant, req->instances[0], req->keys, err);

	res->n_instances = req->n_instances;
	res->instances = req->instances;
	res->matched = kvb_arena_calloc(a, req->n_instances, sizeof *res->matched);
	for (uint32_t i = 0; res->matched && i < req->n_instances; i++)
		res->matched[i] = req->n_keys;
	return res->matched ? rc : KVB_E_NOMEM;
}

int kvb_core_lookup(struct kvb_core *c, const struct kvb_lookup_req *req,
		    struct kvb_lookup_res *res,
		    struct kvb_arena *a, struct kvb_error *err, const struct kvb_done *done)
{
	int rc = note(c, req->tenant, req->instance, req->keys, err);

	*res = (struct kvb_lookup_res){ .n_keys = req->n_keys, .matched = req->n_keys, .n_specs = 1,
					.specs = spec_names, .lease_ms = 1000 };
	res->hit = kvb_arena_calloc(a, req->n_keys, sizeof *res->hit);
	for (uint32_t i = 0; res->hit && i < req->n_keys; i++)
		res->hit[i] = true;
	res->loc = locations(a, req->n_keys);
	res->files = one_file(a);
	return end(c, res->hit && res->loc && res->files.v ? rc : KVB_E_NOMEM, done);
}

int kvb_core_start(struct kvb_core *c, const struct kvb_start_req *req, struct kvb_start_res *res,
		   struct kvb_arena *a, struct kvb_error *err, const struct kvb_done *done)
{
	int rc = note(c, req->tenant, req->instance, req->keys, err);

	*res = (struct kvb_start_res){ .state = KVB_SESSION_OPEN, .deadline_ms = 1000,
				       .n_keys = req->n_keys, .n_specs = 1, .specs = spec_names,
				       .n_write = req->n_keys };
	snprintf(res->session, sizeof res->session, "000102030405060708090a0b0c0d0e0f");
	res->outcome = kvb_arena_calloc(a, req->n_keys, 1);
	res->loc = locations(a, req->n_keys);
	res->files = one_file(a);
	return end(c, res->outcome && res->loc && res->files.v ? rc : KVB_E_NOMEM, done);
}

int kvb_core_finish(struct kvb_core *c, const struct kvb_finish_req *req,
		    struct kvb_finish_res *res,
		    struct kvb_arena *a, struct kvb_error *err, const struct kvb_done *done)
{
	int rc = note(c, req->tenant, req->session, NULL, err);

	(void)a;
	*res = (struct kvb_finish_res){ KVB_SESSION_FINISHED, 3, 1 };
	return end(c, rc, done);
}

int kvb_core_abort(struct kvb_core *c, const struct kvb_abort_req *req, struct kvb_finish_res *res,
		   struct kvb_arena *a, struct kvb_error *err, const struct kvb_done *done)
{
	int rc = note(c, req->tenant, req->session, NULL, err);

	(void)a;
	*res = (struct kvb_finish_res){ KVB_SESSION_ABORTED, 0, 4 };
	return end(c, rc, done);
}

int kvb_core_delete(struct kvb_core *c, const struct kvb_delete_req *req,
		    struct kvb_delete_res *res,
		    struct kvb_arena *a, struct kvb_error *err, const struct kvb_done *done)
{
	int rc = note(c, req->tenant, req->instance, req->keys, err);

	(void)a;
	res->deleted = req->n_keys;
	return end(c, rc, done);
}

int kvb_core_pin(struct kvb_core *c, const struct kvb_pin_req *req, struct kvb_pin_res *res, struct kvb_arena *a,
		 struct kvb_error *err, const struct kvb_done *done)
{
	int rc = note(c, req->tenant, req->instance, req->keys, err);

	*res = (struct kvb_pin_res){ .n_keys = req->n_keys, .pinned = req->n_keys - 1,
				     .missing = kvb_arena_calloc(a, req->n_keys, sizeof(bool)) };
	res->missing[req->kind == KVB_PIN_HARD ? 0 : req->n_keys - 1] = true;
	return end(c, rc, done);
}

int kvb_core_unpin(struct kvb_core *c, const struct kvb_unpin_req *req, struct kvb_unpin_res *res, struct kvb_arena *a,
		   struct kvb_error *err, const struct kvb_done *done)
{
	int rc = note(c, req->tenant, req->instance, req->keys, err);

	(void)a;
	res->unpinned = req->n_keys ? req->n_keys : 77;
	return end(c, rc, done);
}

int kvb_core_pins(struct kvb_core *c, const struct kvb_pins_req *req, struct kvb_pins_res *res, struct kvb_arena *a,
		  struct kvb_error *err)
{
	int rc = note(c, req->tenant, req->instance, NULL, err);

	*res = (struct kvb_pins_res){ .n = 1, .key = kvb_arena_calloc(a, 1, sizeof *res->key),
				      .kind = kvb_arena_calloc(a, 1, 1), .ttl_ms = kvb_arena_calloc(a, 1, sizeof(uint64_t)),
				      .next = req->cursor + req->max };
	res->key[0] = (struct kvb_key){ 1, 2 };
	res->kind[0] = KVB_PIN_SOFT;
	res->ttl_ms[0] = 3;
	return rc;
}

int kvb_core_trim(struct kvb_core *c, const struct kvb_trim_req *req, struct kvb_trim_res *res, struct kvb_arena *a,
		  struct kvb_error *err, const struct kvb_done *done)
{
	int rc = note(c, req->tenant, req->instance, NULL, err);

	(void)a;
	res->deleted = req->to_ms - req->from_ms;
	return end(c, rc, done);
}

int kvb_core_block(struct kvb_core *c, const char *tenant, const char *instance, struct kvb_key key,
		   struct kvb_block_view *out, struct kvb_arena *a, struct kvb_error *err)
{
	int rc = note(c, tenant, instance, &key, err);

	*out = (struct kvb_block_view){ .key = key, .n_specs = 1, .specs = spec_names };
	out->state = kvb_arena_calloc(a, 1, sizeof *out->state);
	out->loc = locations(a, 1);
	out->files = one_file(a);
	if (!out->state || !out->loc || !out->files.v)
		return KVB_E_NOMEM;
	out->state[0] = "committed";
	return rc;
}

int kvb_core_stats(struct kvb_core *c, struct kvb_arena *a, struct kvb_stats *out,
		   struct kvb_error *err)
{
	int rc = note(c, "", "", NULL, err);

	if (rc == KVB_OK && c->state != KVB_CORE_READY)
		rc = kvb_fail(err, KVB_E_NOT_READY, NULL, "fake: not ready");
	memset(out, 0, sizeof *out);
	snprintf(out->version, sizeof out->version, "0");
	out->state = "ready";
	out->blocks = 11;
	if (rc == KVB_OK)
		rc = kvb_core_storages(c, NULL, a, &out->storages, &out->n_storages, err);
	if (rc == KVB_OK)
		rc = kvb_core_groups(c, NULL, a, &out->groups, &out->n_groups, err);
	return rc;
}

void kvb_core_counters_get(const struct kvb_core *c, struct kvb_core_counters *out)
{
	(void)c;
	memset(out, 0, sizeof *out);
	out->lookup_keys = 42;
}

void kvb_core_store_counters_get(const struct kvb_core *s, struct kvb_core_store_counters *out)
{
	(void)s;
	*out = (struct kvb_core_store_counters){ 5, 1, 3, 100, 70, 50 };
}
