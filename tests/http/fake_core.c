/*
 * fake_core.c - the skv_core_* functions that the transport calls, without any state behind them.
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

#include <skv/asks.h>
#include <skv/find.h>
#include <skv/lock.h>

#define HELD_MAX 4096

/* Cluster and core in one. */
struct skv_cluster {
	struct skv_mutex lock;
	struct skv_cond changed;
	pthread_t thread;
	bool stop;
	bool hang;
	unsigned hanging;
	bool release;
	enum fake_mode mode;
	struct {
		struct skv_done done;
		int status;
	} held[HELD_MAX];
	unsigned n_held;
	int fail;
	char fail_message[SKV_MESSAGE_MAX];
	char tenant[SKV_MAX_NAME + 1];
	char name[SKV_MAX_NAME + 1];
	struct skv_key key;
	char start[SKV_MAX_REQUEST_ID + 1]; /* request id of the newest */
	char doc_name[256], doc_text[1024];
	atomic_uint calls;
	_Atomic enum skv_core_state state;
	atomic_int may_answer;
	atomic_bool elsewhere;
	atomic_int looks; /* at it that are still answered with SKV_OK */
	struct skv_secret secret;
	atomic_bool secret_read; /* by a manager that has had no partition */
	skv_ask_fn *ask;
	void *ask_ctx;
	uint32_t partitions;
	bool has_storages;
	uint32_t fail_partition, truth; /* plus 1 */
	_Atomic uint32_t found;         /* where the newest call was found to be */
	const char *owner[FAKE_PARTITIONS], *peer[FAKE_PARTITIONS]; /* NULL: this one's */
	const char *token[FAKE_PARTITIONS];
	atomic_bool asks_others;
	_Atomic uint32_t alone;   /* the newest call was for this partition, plus 1 */
	_Atomic uint64_t version; /* version that a put of a group asked for, and the kind of put */
	_Atomic enum skv_put put;
};

static void *complete(void *arg)
{
	struct skv_cluster *c = arg;

	skv_mutex_lock(&c->lock);
	while (!c->stop || c->n_held > 0) {
		struct skv_done done;
		int status;

		if (c->n_held == 0 || (c->mode == FAKE_HOLD && !c->release && !c->stop)) {
			skv_cond_wait(&c->changed, &c->lock);
			continue;
		}
		c->n_held--;
		done = c->held[c->n_held].done;
		status = c->held[c->n_held].status;
		if (c->n_held == 0)
			c->release = false;
		skv_mutex_unlock(&c->lock);
		done.fn(done.ctx, status);
		skv_mutex_lock(&c->lock);
	}
	skv_mutex_unlock(&c->lock);
	return NULL;
}

struct skv_cluster *fake_core_create(void)
{
	struct skv_cluster *c = calloc(1, sizeof *c);

	assert(c);
	skv_mutex_init(&c->lock);
	skv_cond_init(&c->changed);
	c->state = SKV_CORE_READY;
	c->partitions = 1;
	memset(&c->secret, 7, sizeof c->secret);
	if (pthread_create(&c->thread, NULL, complete, c) != 0)
		abort();
	return c;
}

void fake_core_destroy(struct skv_cluster *c)
{
	skv_mutex_lock(&c->lock);
	c->stop = true;
	skv_cond_broadcast(&c->changed);
	skv_mutex_unlock(&c->lock);
	pthread_join(c->thread, NULL);
	skv_cond_destroy(&c->changed);
	skv_mutex_destroy(&c->lock);
	free(c);
}

/* ---- turning it ------------------------------------------------------------------------------ */

void fake_core_state(struct skv_cluster *c, enum skv_core_state state) { c->state = state; }
void fake_core_may_answer(struct skv_cluster *c, int rc) { c->may_answer = rc; }
void fake_core_elsewhere(struct skv_cluster *c, bool is) { c->elsewhere = is; }
void fake_core_loses_ownership_after(struct skv_cluster *c, int looks)
{
	c->looks = looks;
	c->may_answer = SKV_E_NOT_OWNER;
}

void fake_core_mode(struct skv_cluster *c, enum fake_mode mode)
{
	skv_mutex_lock(&c->lock);
	c->mode = mode;
	skv_cond_broadcast(&c->changed);
	skv_mutex_unlock(&c->lock);
}

void fake_core_fail(struct skv_cluster *c, int status, const char *message)
{
	skv_mutex_lock(&c->lock);
	c->fail = status;
	snprintf(c->fail_message, sizeof c->fail_message, "%s", message);
	skv_mutex_unlock(&c->lock);
}

void fake_core_storages(struct skv_cluster *c, bool has)
{
	skv_mutex_lock(&c->lock);
	c->has_storages = has;
	skv_mutex_unlock(&c->lock);
}

bool skv_cluster_has_storages(struct skv_cluster *c)
{
	bool has;

	skv_mutex_lock(&c->lock);
	has = c->has_storages;
	skv_mutex_unlock(&c->lock);
	return has;
}

void fake_core_is_elsewhere(struct skv_cluster *c, uint32_t partition, uint32_t truth)
{
	fake_core_fail(c, SKV_E_NOT_OWNER, "it is elsewhere");
	skv_mutex_lock(&c->lock);
	c->fail_partition = partition + 1;
	c->truth = truth + 1;
	skv_mutex_unlock(&c->lock);
}

void fake_core_owner(struct skv_cluster *c, uint32_t number, const char *name, const char *peer)
{
	c->partitions = FAKE_PARTITIONS;
	c->elsewhere = true;
	c->owner[number] = name;
	c->peer[number] = peer;
}

void fake_core_token(struct skv_cluster *c, uint32_t number, const char *token)
{
	c->token[number] = token;
}

void fake_core_asks(struct skv_cluster *c) { c->asks_others = true; }

uint32_t fake_core_alone(const struct skv_cluster *c) { return c->alone; }
enum skv_put fake_core_put(const struct skv_cluster *c) { return c->put; }
uint64_t fake_core_version(const struct skv_cluster *c) { return c->version; }

void fake_core_await_held(struct skv_cluster *c, unsigned n)
{
	skv_mutex_lock(&c->lock);
	while (c->n_held < n)
		skv_cond_wait(&c->changed, &c->lock);
	skv_mutex_unlock(&c->lock);
}

void fake_core_release(struct skv_cluster *c)
{
	skv_mutex_lock(&c->lock);
	c->release = c->n_held > 0;
	skv_cond_broadcast(&c->changed);
	skv_mutex_unlock(&c->lock);
}

void fake_core_hang(struct skv_cluster *c, bool on)
{
	skv_mutex_lock(&c->lock);
	c->hang = on;
	skv_cond_broadcast(&c->changed);
	skv_mutex_unlock(&c->lock);
}

void fake_core_await_hanging(struct skv_cluster *c, unsigned n)
{
	skv_mutex_lock(&c->lock);
	while (c->hanging < n)
		skv_cond_wait(&c->changed, &c->lock);
	skv_mutex_unlock(&c->lock);
}

unsigned fake_core_calls(const struct skv_cluster *c) { return atomic_load(&c->calls); }
const char *fake_core_tenant(const struct skv_cluster *c) { return c->tenant; }
const char *fake_core_name(const struct skv_cluster *c) { return c->name; }
void fake_core_start_id(struct skv_cluster *c, char id[SKV_MAX_REQUEST_ID + 1])
{
	skv_mutex_lock(&c->lock);
	memcpy(id, c->start, sizeof c->start);
	skv_mutex_unlock(&c->lock);
}

struct skv_key fake_core_key(const struct skv_cluster *c) { return c->key; }

/* ---- what every call does -------------------------------------------------------------------- */

static bool is_own(const char *name) { return strncmp(name, "own", 3) == 0; }

static int note(struct skv_cluster *c, const char *tenant, const char *name,
		const struct skv_key *keys, struct skv_error *err)
{
	int rc = SKV_OK;

	skv_mutex_lock(&c->lock);
	atomic_fetch_add(&c->calls, 1);
	snprintf(c->tenant, sizeof c->tenant, "%s", tenant);
	snprintf(c->name, sizeof c->name, "%s", name);
	if (keys)
		c->key = keys[0];
	if (c->fail && !(c->fail_partition && (is_own(name) || strcmp(name, "gone") == 0 ||
					       !c->owner[c->found])))
		rc = skv_fail(err, c->fail, NULL, "%s", c->fail_message);
	if (rc == SKV_OK && c->alone && c->owner[c->alone - 1])
		rc = skv_fail(err, SKV_E_NOT_OWNER, NULL, "fake: of another one");
	skv_mutex_unlock(&c->lock);
	if (rc == SKV_OK && strcmp(name, "gone") == 0)
		rc = skv_fail(err, SKV_E_NOT_FOUND, "instance", "no such instance");
	return rc;
}

static int end(struct skv_cluster *c, int rc, const struct skv_done *done)
{
	skv_mutex_lock(&c->lock);
	if (!done || c->mode == FAKE_NOW) {
		skv_mutex_unlock(&c->lock);
		return rc;
	}
	assert(c->n_held < HELD_MAX);
	c->held[c->n_held].done = *done;
	c->held[c->n_held].status = rc;
	c->n_held++;
	skv_cond_broadcast(&c->changed);
	skv_mutex_unlock(&c->lock);
	return SKV_PENDING;
}

static int administer(struct skv_cluster *c, const char *name, bool *created, struct skv_error *err)
{
	int rc = note(c, "", name, NULL, err);

	skv_mutex_lock(&c->lock);
	c->hanging++;
	skv_cond_broadcast(&c->changed);
	while (c->hang)
		skv_cond_wait(&c->changed, &c->lock);
	c->hanging--;
	skv_mutex_unlock(&c->lock);
	if (rc == SKV_OK && created)
		*created = strncmp(name, "new", 3) == 0;
	return rc;
}

/* ---- the core's functions -------------------------------------------------------------------- */

enum skv_core_state skv_cluster_state_get(const struct skv_cluster *c) { return c->state; }
bool skv_cluster_draining(const struct skv_cluster *c)
{
	(void)c;
	return false;
}

int skv_cluster_drain(struct skv_cluster *c, bool on, struct skv_error *err)
{
	return administer(c, on ? "drain" : "undrain", NULL, err);
}

/* Nobody else is there. */
void skv_cluster_leader(struct skv_cluster *c, char self[SKV_OWNER_NAME],
			char leader[SKV_OWNER_NAME], uint64_t *remaining_ms)
{
	(void)c;
	*self = *leader = '\0';
	*remaining_ms = 0;
}

bool skv_owner_is_dead(const char *owner); /* skv/store.h, which tests of transports do not see */
bool skv_owner_is_dead(const char *owner)
{
	(void)owner;
	return false;
}

int skv_cluster_doc_publish(struct skv_cluster *c, const char *name, const char *text,
			    struct skv_error *err)
{
	return skv_cluster_doc_put(c, name, SKV_PUT_ANY, text, err);
}

int skv_cluster_doc_retire(struct skv_cluster *c, const char *name, struct skv_error *err)
{
	return skv_cluster_doc_delete(c, name, err);
}

bool skv_cluster_owned_elsewhere(struct skv_cluster *c, uint32_t number, uint64_t since_ms)
{
	(void)number;
	(void)since_ms;
	return c->elsewhere;
}

int skv_cluster_may_answer(const struct skv_cluster *c)
{
	return c->looks > 0 && atomic_fetch_sub((atomic_int *)&c->looks, 1) > 0 ? SKV_OK
										: c->may_answer;
}

bool skv_cluster_may_begin(const struct skv_cluster *c) { return c->state == SKV_CORE_READY; }

int skv_door_check(const struct skv_door *door)
{
	assert(door->given_up == 7);
	return skv_cluster_may_answer(door->part);
}

enum skv_core_state skv_cluster_partition_state(const struct skv_cluster *c, uint32_t number)
{
	assert(number < c->partitions);
	return c->owner[number] ? SKV_CORE_STANDBY : c->state;
}

uint64_t skv_cluster_partition_epoch(const struct skv_cluster *c, uint32_t number)
{
	return skv_cluster_partition_state(c, number) == SKV_CORE_READY ? FAKE_EPOCH : 0;
}

/* Instances whose names do not begin with "gone" are in the last one. */
enum skv_where skv_find(struct skv_cluster *c, const struct skv_target *t, struct skv_door *door)
{
	const bool gone = t->kind == SKV_TARGET_INSTANCE && strncmp(t->name, "gone", 4) == 0;
	uint32_t named, at;

	skv_mutex_lock(&c->lock);
	named = c->fail_partition;
	if (named && t->refused >> (named - 1) & 1)
		named = c->truth;
	skv_mutex_unlock(&c->lock);
	at = t->kind == SKV_TARGET_NONE	      ? 0
	     : t->kind >= SKV_TARGET_SESSION  ? skv_session_partition(t->name)
	     : t->name[0] == '1'              ? 1
	     : named && !is_own(t->name)      ? named - 1
					      : c->partitions - 1;
	*door = (struct skv_door){ .part = c, .core = (struct skv_core *)c, .given_up = 7 };
	c->found = door->partition = at < c->partitions ? at : 0;
	door->unknown = c->asks_others && !skv_thread_waits;
	door->where = gone ? SKV_NOWHERE : c->owner[door->partition] ? SKV_THERE : SKV_HERE;
	return door->where;
}

uint32_t skv_session_partition(const char *id)
{
	struct skv_key k;

	return skv_key_from_hex(id, strlen(id), &k) ? (uint32_t)(k.hi >> 56) : UINT32_MAX;
}

int skv_cluster_partition_may_answer(const struct skv_cluster *c, uint32_t number)
{
	assert(number < c->partitions);
	return c->owner[number] ? SKV_E_NOT_OWNER : skv_cluster_may_answer(c);
}

void skv_cluster_partition_leader(struct skv_cluster *c, uint32_t number, char self[SKV_OWNER_NAME],
				  char leader[SKV_OWNER_NAME], uint64_t *remaining_ms)
{
	assert(number < c->partitions);
	skv_cluster_leader(c, self, leader, remaining_ms);
	if (c->owner[number])
		snprintf(leader, SKV_OWNER_NAME, "%s", c->owner[number]);
}

uint32_t skv_cluster_partitions(const struct skv_cluster *c) { return c->partitions; }

struct skv_cluster *skv_cluster_part(struct skv_cluster *c, uint32_t number)
{
	c->alone = number + 1;
	return c;
}

void skv_cluster_partition_get(struct skv_cluster *c, uint32_t number,
			       struct skv_partition_view *out)
{
	(void)number;
	*out = (struct skv_partition_view){ .state = c->state };
}

int skv_cluster_read_secret(struct skv_cluster *c, struct skv_error *err)
{
	(void)err;
	if (skv_thread_waits)
		c->secret_read = true;
	return c->secret_read ? SKV_OK : SKV_E_NOT_READY;
}

const struct skv_secret *skv_cluster_secret(const struct skv_cluster *c) { return &c->secret; }

int skv_cluster_ready(struct skv_cluster *c, struct skv_error *err)
{
	if (c->state == SKV_CORE_READY)
		return SKV_OK;
	return skv_fail(err, SKV_E_NOT_READY, NULL, "fake: not ready");
}

int skv_cluster_storage_put(struct skv_cluster *c, const struct skv_storage_spec *s,
			    enum skv_put how, bool *created, struct skv_error *err)
{
	(void)how;
	return administer(c, s->name, created, err);
}
int skv_cluster_group_put(struct skv_cluster *c, const struct skv_group_spec *g, enum skv_put how,
			  const uint64_t *expect, bool *created, struct skv_error *err)
{
	c->put = how;
	c->version = expect ? *expect : 0;
	return administer(c, g->name, created, err);
}
int skv_cluster_instance_put(struct skv_cluster *c, const struct skv_instance_spec *i,
			     enum skv_put how, bool *created, struct skv_error *err)
{
	(void)how;
	return administer(c, i->id, created, err);
}
int skv_cluster_files(struct skv_cluster *c, const char *storage, struct skv_arena *a,
		      struct skv_file_view **out, uint32_t *n, struct skv_error *err)
{
	static struct skv_file_view view = { .file = 3, .state = "used", .why = "",
					     .waits_for = "" };

	(void)c, (void)storage, (void)a, (void)err;
	*out = &view;
	*n = 1;
	return SKV_OK;
}

int skv_cluster_file_put(struct skv_cluster *c, const char *storage,
			 const struct skv_file_wish *wish, struct skv_error *err)
{
	(void)c, (void)storage;
	return wish->file == 3
		       ? SKV_OK
		       : skv_fail(err, SKV_E_NOT_FOUND, "file", "no slab file %u", wish->file);
}

int skv_cluster_storage_delete(struct skv_cluster *c, const char *name, struct skv_error *err)
{
	return administer(c, name, NULL, err);
}
int skv_cluster_group_delete(struct skv_cluster *c, const char *name, struct skv_error *err)
{
	return administer(c, name, NULL, err);
}
int skv_cluster_instance_delete(struct skv_cluster *c, const char *tenant, const char *id,
				const struct skv_unused *unused, struct skv_error *err)
{
	(void)tenant;
	if (unused && (unused->ms > 5000 || unused->with_blocks))
		return skv_fail(err, SKV_E_IN_USE, "unused_s", "it was used 5 seconds ago");
	return administer(c, id, NULL, err);
}

/* ---- documents: one -------------------------------------------------------------------------- */

int skv_cluster_doc_get(struct skv_cluster *c, const char *name, struct skv_arena *a,
			struct skv_doc *out, struct skv_error *err)
{
	int rc;

	for (uint32_t i = 0; i < c->partitions; i++) {
		const char *owner = c->owner[i];

		if (owner && strncmp(name, "ask/", 4) == 0 && strcmp(name + 4, owner) == 0 &&
		    c->token[i]) {
			*out = (struct skv_doc){ name, c->token[i], 1 };
			return SKV_OK;
		}
		if (owner && *c->peer[i] && strncmp(name, "url/", 4) == 0 &&
		    strcmp(name + 4, owner) == 0) {
			*out = (struct skv_doc){ name, c->peer[i], 1 };
			return SKV_OK;
		}
		if (owner && strncmp(name, "peer/", 5) == 0 && strcmp(name + 5, owner) == 0) {
			*out = (struct skv_doc){ name, c->peer[i], 1 };
			return SKV_OK;
		}
	}
	skv_mutex_lock(&c->lock);
	rc = strcmp(c->doc_name, name) == 0 ? SKV_OK : SKV_E_NOT_FOUND;
	if (rc == SKV_OK)
		*out = (struct skv_doc){
			skv_arena_strndup(a, c->doc_name, strlen(c->doc_name)),
			skv_arena_strndup(a, c->doc_text, strlen(c->doc_text)), 1 };
	skv_mutex_unlock(&c->lock);
	return rc == SKV_OK ? rc : skv_fail(err, rc, NULL, "no such document");
}
int skv_cluster_doc_put(struct skv_cluster *c, const char *name, enum skv_put how, const char *text,
			struct skv_error *err)
{
	(void)how;
	skv_mutex_lock(&c->lock);
	snprintf(c->doc_name, sizeof c->doc_name, "%s", name);
	snprintf(c->doc_text, sizeof c->doc_text, "%s", text);
	skv_mutex_unlock(&c->lock);
	return administer(c, name, NULL, err);
}
int skv_cluster_doc_delete(struct skv_cluster *c, const char *name, struct skv_error *err)
{
	skv_mutex_lock(&c->lock);
	*c->doc_name = '\0';
	skv_mutex_unlock(&c->lock);
	return administer(c, name, NULL, err);
}
int skv_cluster_doc_list(struct skv_cluster *c, const char *prefix, struct skv_arena *a,
			 struct skv_doc **out, uint32_t *n, struct skv_error *err)
{
	char name[256];

	skv_mutex_lock(&c->lock);
	memcpy(name, c->doc_name, sizeof name);
	skv_mutex_unlock(&c->lock);
	*out = skv_arena_calloc(a, 1, sizeof **out);
	*n = *name && strncmp(name, prefix, strlen(prefix)) == 0;
	return *n ? skv_cluster_doc_get(c, name, a, *out, err) : SKV_OK;
}

static const char *copy(struct skv_arena *a, const char *s)
{
	char *p = skv_arena_strndup(a, s, strlen(s));

	return p ? p : "nomem";
}

int skv_cluster_storage(struct skv_cluster *c, const char *name, struct skv_arena *a,
			struct skv_storage_view **out, struct skv_error *err)
{
	struct skv_storage_view *v = skv_arena_calloc(a, 1, sizeof *v);
	int rc = v ? note(c, "", name ? name : "", NULL, err) : SKV_E_NOMEM;

	if (rc != SKV_OK)
		return rc;
	v->spec = (struct skv_storage_spec){ .name = name ? copy(a, name) : "default",
					     .type = "file", .root = "/data", .capacity = 1 << 30,
					     .file_size = 1 << 30, .unit = 1 << 26,
					     .enabled = true };
	snprintf(v->uuid, sizeof v->uuid, "00000000-0000-0000-0000-000000000001");
	v->healthy = true;
	v->problem = "";
	*out = v;
	return SKV_OK;
}

int skv_cluster_group(struct skv_cluster *c, const char *name, struct skv_arena *a,
		      struct skv_group_view **out, struct skv_error *err)
{
	static const char *const storages[] = { "default" };
	struct skv_group_view *v = skv_arena_calloc(a, 1, sizeof *v);
	int rc = v ? note(c, "", name ? name : "", NULL, err) : SKV_E_NOMEM;

	if (rc == SKV_OK && c->asks_others && !skv_thread_waits)
		rc = skv_fail(err, SKV_E_NOT_OWNER, NULL, "fake: asks others");
	if (rc != SKV_OK)
		return rc;
	v->spec = (struct skv_group_spec){ .name = name ? copy(a, name) : "default",
					   .storages = storages, .n_storages = 1 };
	*out = v;
	return SKV_OK;
}

/* Lists have the one object that each name is. */
#define LIST(kind, ...)                                                                            \
	int skv_cluster_##kind##_list(struct skv_cluster *c, const struct skv_page *page,          \
				      struct skv_arena *a, struct skv_##kind##_list *out,          \
				      struct skv_error *err)                                       \
	{                                                                                          \
		out->next = "";                                                                    \
		if (page->after && *page->after) {                                                 \
			out->n_##kind##s = 0;                                                      \
			return SKV_OK;                                                             \
		}                                                                                  \
		out->n_##kind##s = 1;                                                              \
		return skv_cluster_##kind(c, __VA_ARGS__, a, &out->kind##s, err);                  \
	}
LIST(storage, NULL)
LIST(group, NULL)
LIST(instance, page->tenant, NULL)

int skv_cluster_tenants_set(struct skv_cluster *c, const struct skv_tenant_view *v, uint32_t n,
			    const struct skv_tenant_spec *others)
{
	(void)c;
	(void)v;
	(void)n;
	(void)others;
	return SKV_OK;
}

int skv_cluster_has_instance(struct skv_cluster *c, const char *tenant, const char *id,
			     const char *group)
{
	(void)c;
	(void)tenant;
	(void)id;
	(void)group;
	return SKV_OK;
}

int skv_cluster_has_group(struct skv_cluster *c, const char *name)
{
	(void)c;
	(void)name;
	return SKV_OK;
}

int skv_cluster_has_storage(struct skv_cluster *c, const char *name)
{
	(void)c;
	(void)name;
	return SKV_OK;
}

void skv_cluster_tenant_use(struct skv_cluster *c, const char *tenant, struct skv_tenant_use *out)
{
	(void)c;
	(void)tenant;
	*out = (struct skv_tenant_use){ .bytes = 0 };
}

int skv_cluster_tenant_check(struct skv_cluster *c, const char *tenant, struct skv_error *err)
{
	(void)c;
	(void)tenant;
	(void)err;
	return SKV_OK;
}

unsigned skv_cluster_tenant_wait(struct skv_cluster *c, const char *tenant)
{
	(void)c;
	(void)tenant;
	return 7;
}

int skv_cluster_instance(struct skv_cluster *c, const char *tenant, const char *id,
			 struct skv_arena *a, struct skv_instance_view **out,
			 struct skv_error *err)
{
	static const struct skv_spec specs[] = { { "tp0", 4096 } };
	struct skv_instance_view *v = skv_arena_calloc(a, 1, sizeof *v);
	int rc = v ? note(c, tenant ? tenant : "", id ? id : "", NULL, err) : SKV_E_NOMEM;

	if (rc != SKV_OK)
		return rc;
	v->spec = (struct skv_instance_spec){ .tenant = "default", .id = id ? copy(a, id) : "m",
					      .group = "default",
					      .block_tokens = 16, .specs = specs, .n_specs = 1,
					      .extra = "" };
	*out = v;
	return SKV_OK;
}

static const char *const spec_names[] = { "tp0" };

static struct skv_files one_file(struct skv_arena *a)
{
	struct skv_file_ref *f = skv_arena_calloc(a, 1, sizeof *f);

	if (!f)
		return (struct skv_files){ NULL, 0 };
	f->storage = "default";
	f->type = "file";
	snprintf(f->uuid, sizeof f->uuid, "00000000-0000-0000-0000-000000000001");
	snprintf(f->path, sizeof f->path, "slab-00000001.kvs");
	return (struct skv_files){ f, 1 };
}

static struct skv_location *locations(struct skv_arena *a, uint32_t n)
{
	struct skv_location *loc = skv_arena_calloc(a, n, sizeof *loc);

	for (uint32_t i = 0; loc && i < n; i++)
		loc[i] = (struct skv_location){ 0, (uint64_t)i * 4096, 4096, i + 1, 0, false };
	return loc;
}

int skv_cluster_match(struct skv_cluster *c, const struct skv_match_req *req,
		      struct skv_match_res *res, struct skv_arena *a, struct skv_error *err)
{
	int rc = note(c, req->tenant, req->instances[0], req->keys, err);

	res->n_instances = req->n_instances;
	res->instances = req->instances;
	res->matched = skv_arena_calloc(a, req->n_instances, sizeof *res->matched);
	for (uint32_t i = 0; res->matched && i < req->n_instances; i++)
		res->matched[i] = req->n_keys;
	return res->matched ? rc : SKV_E_NOMEM;
}

int skv_core_lookup(struct skv_core *one, const struct skv_lookup_req *req,
		    struct skv_lookup_res *res, struct skv_arena *a, struct skv_error *err,
		    const struct skv_done *done)
{
	struct skv_cluster *c = (struct skv_cluster *)one;
	int rc = note(c, req->tenant, req->instance, req->keys, err);

	*res = (struct skv_lookup_res){ .n_keys = req->n_keys, .matched = req->n_keys, .n_specs = 1,
					.specs = spec_names, .lease_ms = 1000 };
	res->hit = skv_arena_calloc(a, req->n_keys, sizeof *res->hit);
	for (uint32_t i = 0; res->hit && i < req->n_keys; i++)
		res->hit[i] = true;
	res->loc = locations(a, req->n_keys);
	res->files = one_file(a);
	return end(c, res->hit && res->loc && res->files.v ? rc : SKV_E_NOMEM, done);
}

int skv_core_start(struct skv_core *one, const struct skv_start_req *req, struct skv_start_res *res,
		   struct skv_arena *a, struct skv_error *err, const struct skv_done *done)
{
	struct skv_cluster *c = (struct skv_cluster *)one;
	int rc = note(c, req->tenant, req->instance, req->keys, err);

	skv_mutex_lock(&c->lock);
	snprintf(c->start, sizeof c->start, "%s", req->request_id);
	skv_mutex_unlock(&c->lock);
	*res = (struct skv_start_res){ .state = SKV_SESSION_OPEN, .deadline_ms = 1000,
				       .n_keys = req->n_keys, .n_specs = 1, .specs = spec_names,
				       .n_write = req->n_keys };
	snprintf(res->session, sizeof res->session, "000102030405060708090a0b0c0d0e0f");
	res->outcome = skv_arena_calloc(a, req->n_keys, 1);
	res->loc = locations(a, req->n_keys);
	res->files = one_file(a);
	return end(c, res->outcome && res->loc && res->files.v ? rc : SKV_E_NOMEM, done);
}

int skv_core_finish(struct skv_core *one, const struct skv_finish_req *req,
		    struct skv_finish_res *res, struct skv_arena *a, struct skv_error *err,
		    const struct skv_done *done)
{
	struct skv_cluster *c = (struct skv_cluster *)one;
	int rc = note(c, req->tenant, req->session, NULL, err);

	(void)a;
	*res = (struct skv_finish_res){ SKV_SESSION_FINISHED, 3, 1, 0, NULL };
	return end(c, rc, done);
}

int skv_core_abort(struct skv_core *one, const struct skv_abort_req *req,
		   struct skv_finish_res *res, struct skv_arena *a, struct skv_error *err,
		   const struct skv_done *done)
{
	struct skv_cluster *c = (struct skv_cluster *)one;
	int rc = note(c, req->tenant, req->session, NULL, err);

	(void)a;
	*res = (struct skv_finish_res){ SKV_SESSION_ABORTED, 0, 4, 0, NULL };
	return end(c, rc, done);
}

int skv_cluster_move_take(struct skv_cluster *c, const struct skv_move_take_req *req,
			  struct skv_move_take_res *res, struct skv_arena *a, struct skv_error *err,
			  const struct skv_done *done)
{
	int rc = note(c, "default", "move", NULL, err);

	(void)a;
	(void)req;
	*res = (struct skv_move_take_res){ .move = "" };
	return end(c, rc, done);
}

int skv_cluster_purge(struct skv_cluster *c, const struct skv_purge_req *req,
		      struct skv_purge_res *res, struct skv_arena *a, struct skv_error *err)
{
	(void)a;
	*res = (struct skv_purge_res){ .n_instances = req->n_instances,
				       .instances = req->instances, .blocks = 7, .sessions = 2 };
	return note(c, req->tenant, req->n_instances ? req->instances[0] : "", NULL, err);
}

int skv_core_move_finish(struct skv_core *one, const struct skv_move_finish_req *req,
			 struct skv_move_finish_res *res, struct skv_arena *a,
			 struct skv_error *err, const struct skv_done *done)
{
	struct skv_cluster *c = (struct skv_cluster *)one;
	int rc = note(c, "default", req->move, NULL, err);

	(void)a;
	*res = (struct skv_move_finish_res){ .failed = req->n_moved };
	return end(c, rc, done);
}

int skv_core_report(struct skv_core *one, const struct skv_report_req *req,
		    struct skv_report_res *res, struct skv_arena *a, struct skv_error *err,
		    const struct skv_done *done)
{
	struct skv_cluster *c = (struct skv_cluster *)one;
	int rc = note(c, req->tenant, req->instance, req->keys, err);

	(void)a;
	*res = (struct skv_report_res){ .hidden = req->may_delete ? req->n_damaged : 0,
					.queued = req->may_delete ? 0 : req->n_damaged };
	return end(c, rc, done);
}

int skv_core_delete(struct skv_core *one, const struct skv_delete_req *req,
		    struct skv_delete_res *res, struct skv_arena *a, struct skv_error *err,
		    const struct skv_done *done)
{
	struct skv_cluster *c = (struct skv_cluster *)one;
	int rc = note(c, req->tenant, req->instance, req->keys, err);

	(void)a;
	res->deleted = req->n_keys;
	return end(c, rc, done);
}

int skv_core_pin(struct skv_core *one, const struct skv_pin_req *req, struct skv_pin_res *res,
		 struct skv_arena *a, struct skv_error *err, const struct skv_done *done)
{
	struct skv_cluster *c = (struct skv_cluster *)one;
	int rc = note(c, req->tenant, req->instance, req->keys, err);

	*res = (struct skv_pin_res){ .n_keys = req->n_keys, .pinned = req->n_keys - 1,
				     .missing = skv_arena_calloc(a, req->n_keys, sizeof(bool)) };
	res->missing[req->hard ? 0 : req->n_keys - 1] = true;
	return end(c, rc, done);
}

int skv_core_unpin(struct skv_core *one, const struct skv_unpin_req *req, struct skv_unpin_res *res,
		   struct skv_arena *a, struct skv_error *err, const struct skv_done *done)
{
	struct skv_cluster *c = (struct skv_cluster *)one;
	int rc = note(c, req->tenant, req->instance, req->keys, err);

	(void)a;
	res->unpinned = req->n_keys ? req->n_keys : 77;
	return end(c, rc, done);
}

int skv_core_export(struct skv_core *one, const struct skv_export_req *req,
		    struct skv_export_res *res, struct skv_arena *a, struct skv_error *err)
{
	struct skv_cluster *c = (struct skv_cluster *)one;
	int rc = note(c, req->tenant, req->instance, NULL, err);

	*res = (struct skv_export_res){ .n = 1, .key = skv_arena_calloc(a, 1, sizeof *res->key),
					.next = req->cursor + req->max };
	res->key[0] = (struct skv_key){ 1, req->keys_only };
	return rc;
}

int skv_core_pins(struct skv_core *one, const struct skv_pins_req *req, struct skv_pins_res *res,
		  struct skv_arena *a, struct skv_error *err)
{
	struct skv_cluster *c = (struct skv_cluster *)one;
	int rc = note(c, req->tenant, req->instance, NULL, err);

	*res = (struct skv_pins_res){ .n = 1, .key = skv_arena_calloc(a, 1, sizeof *res->key),
				      .kind = skv_arena_calloc(a, 1, 1),
				      .ttl_ms = skv_arena_calloc(a, 1, sizeof(uint64_t)),
				      .next = req->cursor + req->max };
	res->key[0] = (struct skv_key){ 1, 2 };
	res->kind[0] = SKV_PIN_SOFT;
	res->ttl_ms[0] = 3;
	return rc;
}

int skv_core_trim(struct skv_core *one, const struct skv_trim_req *req, struct skv_trim_res *res,
		  struct skv_arena *a, struct skv_error *err, const struct skv_done *done)
{
	struct skv_cluster *c = (struct skv_cluster *)one;
	int rc = note(c, req->tenant, req->instance, NULL, err);

	(void)a;
	res->deleted = req->to_ms - req->from_ms;
	return end(c, rc, done);
}

int skv_core_block(struct skv_core *one, const char *tenant, const char *instance,
		   struct skv_key key, struct skv_block_view *out, struct skv_arena *a,
		   struct skv_error *err)
{
	struct skv_cluster *c = (struct skv_cluster *)one;
	int rc = note(c, tenant, instance, &key, err);

	*out = (struct skv_block_view){ .key = key, .n_specs = 1, .specs = spec_names };
	out->state = skv_arena_calloc(a, 1, sizeof *out->state);
	out->loc = locations(a, 1);
	out->files = one_file(a);
	if (!out->state || !out->loc || !out->files.v)
		return SKV_E_NOMEM;
	out->state[0] = "committed";
	return rc;
}

int skv_cluster_stats(struct skv_cluster *c, const struct skv_page *page, struct skv_arena *a,
		      struct skv_stats *out, struct skv_error *err)
{
	int rc = note(c, page->tenant ? page->tenant : "", "", NULL, err);

	if (rc == SKV_OK && c->state != SKV_CORE_READY)
		rc = skv_fail(err, SKV_E_NOT_READY, NULL, "fake: not ready");
	memset(out, 0, sizeof *out);
	snprintf(out->version, sizeof out->version, "0");
	out->state = "ready";
	out->blocks = 11;
	out->n_storages = out->n_groups = 1;
	if (rc == SKV_OK)
		rc = skv_cluster_storage(c, NULL, a, &out->storages, err);
	if (rc == SKV_OK)
		rc = skv_cluster_group(c, NULL, a, &out->groups, err);
	return rc;
}

int skv_cluster_stats_all(struct skv_cluster *c, const struct skv_page *page, struct skv_arena *a,
			  struct skv_stats *out, struct skv_error *err)
{
	return skv_cluster_stats(c, page, a, out, err);
}

/* ---- between managers ------------------------------------------------------------------------ */

void skv_cluster_ask_by(struct skv_cluster *c, skv_ask_fn *ask, void *ctx)
{
	c->ask = ask;
	c->ask_ctx = ctx;
}

int fake_core_ask(struct skv_cluster *c, struct skv_peer_call *q, struct skv_error *err)
{
	return c->ask(c->ask_ctx, q, err);
}

void skv_cluster_counters_get(const struct skv_cluster *c, struct skv_core_counters *out)
{
	(void)c;
	memset(out, 0, sizeof *out);
	out->lookup_keys = 42;
}

void skv_cluster_store_counters_get(const struct skv_cluster *s,
				    struct skv_core_store_counters *out)
{
	(void)s;
	*out = (struct skv_core_store_counters){ 5, 1, 3, 100, 70, 50, 0 };
}
