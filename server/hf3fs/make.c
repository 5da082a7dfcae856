/*
 * make.c - spaces: found, created, and remembered while they cannot be created.
 *
 * A space exists when its instance does, which is created last; the next request completes one left
 * half-made by a crash. Runs on workers, because the core's administration blocks. A space that
 * could not be created is remembered until the first reservation in it, or until the process ends;
 * one that was dropped, by its storage.
 */
#include "hf3fs.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <skv/clock.h>
#include <skv/log.h>

#define WISH_MS 1000u

void hf3fs_locate(struct hf3fs_request *k)
{
	skv_request_find(k->c, SKV_TARGET_INSTANCE, k->space.tenant, k->space.id);
}

int hf3fs_find(struct hf3fs_request *k)
{
	const char *id = k->space.id;
	const struct skv_match_req req = { .tenant = k->space.tenant, .instances = &id,
					   .n_instances = 1 };
	struct skv_match_res res;

	return skv_cluster_match(hf3fs_cluster(k), &req, &res, &k->c->arena, &k->c->err);
}

int hf3fs_on_worker(struct hf3fs_request *k, void (*run)(struct job *job, bool expired))
{
	k->job.run = run;
	if (skv_workers_submit(&k->c->s->workers, &k->job, skv_now_ms(&skv_clock_system)))
		return SKV_PENDING;
	return skv_fail(&k->c->err, SKV_E_TOO_MANY, NULL,
			"too many administration calls are waiting");
}

/* ---- wishes ---------------------------------------------------------------------------------- */

static struct wish *find_locked(struct pages *p, const char *name) SKV_REQUIRES(p->wish_lock)
{
	assert(skv_mutex_held(&p->wish_lock) && p->n_wishes <= WISHES_MAX);
	for (uint32_t i = 0; i < p->n_wishes; i++)
		if (strcmp(p->wishes[i].name, name) == 0)
			return &p->wishes[i];
	return NULL;
}

/* A wish is retried at most once per second. */
static bool is_due(struct hf3fs_request *k)
{
	struct pages *p = pages_of(k);
	uint64_t now = skv_now_ms(&skv_clock_system);
	char name[SKV_MAX_NAME + 1];
	struct wish *w;
	bool due;

	space_name(&k->space, name);
	skv_mutex_lock(&p->wish_lock);
	w = find_locked(p, name);
	due = w && now - w->tried_ms >= WISH_MS;
	if (due)
		w->tried_ms = now;
	skv_mutex_unlock(&p->wish_lock);
	return due;
}

static bool wish_of(struct hf3fs_request *k, uint64_t *num_pages)
{
	struct pages *p = pages_of(k);
	char name[SKV_MAX_NAME + 1];
	const struct wish *w;

	space_name(&k->space, name);
	skv_mutex_lock(&p->wish_lock);
	w = find_locked(p, name);
	if (w)
		*num_pages = w->num_pages;
	skv_mutex_unlock(&p->wish_lock);
	return w != NULL;
}

void hf3fs_wish_add(struct hf3fs_request *k)
{
	struct pages *p = pages_of(k);
	struct wish made = { .num_pages = k->u.num_pages };
	struct wish *w;

	space_name(&k->space, made.name);
	skv_mutex_lock(&p->wish_lock);
	w = find_locked(p, made.name);
	if (!w && p->n_wishes < WISHES_MAX)
		/* else the first requested size stays, as for a space */
		p->wishes[p->n_wishes++] = made;
	skv_mutex_unlock(&p->wish_lock);
}

static void remove_wish(struct pages *p, const char *name)
{
	struct wish *w;

	skv_mutex_lock(&p->wish_lock);
	w = find_locked(p, name);
	if (w)
		*w = p->wishes[--p->n_wishes];
	skv_mutex_unlock(&p->wish_lock);
}

/* ---- making ---------------------------------------------------------------------------------- */

/* An existing space's size is never changed from here. */
static void compare_size(struct hf3fs_request *k, const char *name, uint64_t num_pages)
{
	struct skv_storage_view *v;
	struct skv_error ignored;

	if (skv_cluster_storage(hf3fs_cluster(k), name, &k->c->arena, &v, &ignored) ==
		    SKV_OK &&
	    v[0].spec.capacity != num_pages)
		skv_log(SKV_LOG_WARN, "pages",
			"%s: an initialize with num_pages %" PRIu64 " is ignored, it has %" PRIu64,
			name, num_pages, v[0].spec.capacity);
}

static int make_storage(struct hf3fs_request *k, const char *name, uint64_t num_pages)
{
	const struct skv_storage_spec spec = {
		.name = name,
		.type = "external",
		.root = "",
		.client_root = "",
		.client_mount = "",
		.capacity = num_pages,
		.enabled = true,
		.extra = "",
	};
	struct skv_storage_view *v;
	int rc = skv_cluster_storage(k->c->s->cluster, name, &k->c->arena, &v, &k->c->err);

	if (rc != SKV_E_NOT_FOUND)
		return rc;
	rc = skv_cluster_storage_put(k->c->s->cluster, &spec, SKV_PUT_NEW, NULL, &k->c->err);
	if (rc == SKV_E_INVALID)
		return hf3fs_refuse(k, 422, true, "num_pages: %s", k->c->err.message);
	return rc == SKV_E_CONFLICT ? SKV_OK : rc; /* created meanwhile, with its present size */
}

static int make_group(struct hf3fs_request *k, const char *name)
{
	const struct skv_group_spec spec = { .name = name, .storages = &name, .n_storages = 1,
					     .extra = "" };
	struct skv_group_view *v;
	int rc = skv_cluster_group(k->c->s->cluster, name, &k->c->arena, &v, &k->c->err);

	if (rc == SKV_E_NOT_FOUND)
		rc = skv_cluster_group_put(k->c->s->cluster, &spec, SKV_PUT_NEW, NULL, NULL,
					   &k->c->err);
	return rc == SKV_E_CONFLICT ? SKV_OK : rc;
}

static int make_instance(struct hf3fs_request *k, const char *name)
{
	static const struct skv_spec page = { "page", 1 };
	struct skv_buf extra = { 0 };
	struct skv_instance_spec spec = {
		.tenant = k->space.tenant,
		.id = k->space.id,
		.group = name,
		.specs = &page,
		.n_specs = 1,
		.named = true,
	};
	int rc;

	space_extra(&k->space, &extra);
	spec.extra = (const char *)extra.data;
	rc = extra.failed ? hf3fs_nomem(k)
			  : skv_cluster_instance_put(k->c->s->cluster, &spec, SKV_PUT_ANY, NULL,
						     &k->c->err);
	skv_buf_destroy(&extra);
	return rc;
}

/* Checks whether the tenant may have another space, if this one is new. */
static int check_room(struct hf3fs_request *k)
{
	struct skv_cluster *cluster = k->c->s->cluster;

	return skv_cluster_has_instance(cluster, k->space.tenant, k->space.id, NULL) == SKV_OK
		       ? SKV_OK
		       : skv_cluster_tenant_room(cluster, k->space.tenant, true, &k->c->err);
}

static int make_all(struct hf3fs_request *k, const char *name, uint64_t num_pages)
{
	int rc;

	assert(skv_thread_locks == 0);
	rc = check_room(k);
	if (rc == SKV_E_QUOTA)
		return hf3fs_refuse(k, 422, true, "%s", k->c->err.message);
	if (rc == SKV_OK)
		rc = make_storage(k, name, num_pages);
	if (rc == SKV_OK)
		rc = make_group(k, name);
	if (rc == SKV_OK)
		rc = make_instance(k, name);
	if (rc == SKV_OK) {
		skv_log(SKV_LOG_INFO, "pages", "%s is initialized", name);
		remove_wish(pages_of(k), name);
	} else if (!k->detail) {
		skv_log(SKV_LOG_WARN, "pages", "%s cannot be made now: %s", name,
			k->c->err.status == rc ? k->c->err.message : skv_status_text(rc));
	}
	return rc;
}

int hf3fs_make(struct hf3fs_request *k, uint64_t num_pages)
{
	char name[SKV_MAX_NAME + 1];
	int rc = hf3fs_find(k);

	space_name(&k->space, name);
	if (rc == SKV_E_NOT_FOUND)
		rc = make_all(k, name, num_pages);
	if (rc == SKV_OK) {
		hf3fs_locate(k);
		compare_size(k, name, num_pages);
	}
	return rc;
}

int hf3fs_drop(struct hf3fs_request *k)
{
	int rc;

	assert(skv_thread_locks == 0);
	rc = skv_cluster_instance_delete(k->c->s->cluster, k->space.tenant, k->space.id, NULL,
					 &k->c->err);
	return rc == SKV_E_NOT_FOUND ? SKV_OK : rc;
}

/* A space that was dropped leaves its storage, which tells how many pages it had to any manager.
 * SKV_E_NOT_FOUND: there is none. */
static int look_for_rest(struct hf3fs_request *k, uint64_t *num_pages)
{
	struct skv_storage_view *v;
	char name[SKV_MAX_NAME + 1];
	int rc;

	if (hf3fs_strict(k))
		return SKV_E_NOT_FOUND;
	space_name(&k->space, name);
	rc = skv_cluster_storage(hf3fs_cluster(k), name, &k->c->arena, &v, &k->c->err);
	if (rc != SKV_OK)
		return rc;
	assert(strcmp(v->spec.name, name) == 0);
	*num_pages = v->spec.capacity;
	return SKV_OK;
}

/* Creates its own wish, or the one that a reservation fulfils. */
static int make_and_ask(struct hf3fs_request *k)
{
	uint64_t num_pages;
	int rc = SKV_OK;

	if (k->op->flags & HF3FS_MAKES)
		num_pages = k->u.num_pages;
	else if (!wish_of(k, &num_pages))
		rc = look_for_rest(k, &num_pages);
	if (rc == SKV_OK)
		rc = hf3fs_make(k, num_pages);
	if (rc == SKV_OK && k->op->flags & HF3FS_MAKES)
		/* the client has just opened the file, and may have recreated it */
		hf3fs_watch_look(pages_of(k), &k->space);
	return rc == SKV_OK && k->op->ask ? hf3fs_go(k) : rc;
}

static void on_worker(struct job *job, bool expired)
{
	struct hf3fs_request *k =
		(struct hf3fs_request *)((char *)job - offsetof(struct hf3fs_request, job));
	int rc = expired ? SKV_E_TIMEOUT : make_and_ask(k);

	if (rc != SKV_PENDING)
		k->c->done.fn(k->c->done.ctx, rc);
}

int hf3fs_make_later(struct hf3fs_request *k)
{
	uint64_t ignored;

	/* a worker can ask for a page that is elsewhere (SKV_E_NOT_OWNER) */
	if (!(k->op->flags & HF3FS_MAKES) && !is_due(k) &&
	    look_for_rest(k, &ignored) == SKV_E_NOT_FOUND)
		return SKV_E_NOT_FOUND;
	skv_error_clear(&k->c->err);
	return hf3fs_on_worker(k, on_worker);
}
