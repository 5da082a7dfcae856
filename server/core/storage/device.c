/*
 * device.c - a storage's own thread: opens its root, watches its health, has errands run.
 *
 * File systems hang, so no other thread waits for one: a call that does not return only makes this
 * storage unhealthy (health.c). This thread looks at metadata only; whatever reads or writes files
 * is an errand (errand.c). The threads take core->lock briefly to read the partition, never while
 * they call the file system. d->lock guards the requests to the thread.
 */
#include <storage/device.h>

#include <stdio.h>
#include <string.h>

#include <skv/log.h>
#include <skv/mem.h>
#include <skv/store.h>

#include <lock/core.h>
#include <lock/gate.h>
#include <lock/lock.h>
#include <lock/turn.h>
#include <model/device.h>
#include <model/files.h>
#include <model/layouts.h>
#include <model/objects.h>
#include <model/partition.h>
#include <model/queue.h>
#include <model/volume.h>
#include <journal/registry.h>
#include <journal/registry_write.h>
#include <storage/claim.h>
#include "device_look.h"
#include "device_node.h"
#include "errand.h"
#include "files_look.h"
#include "health.h"

#define PROBE_MS 1000u
#define STEADY_MS 60000u
#define NEWS 8u /* storages in one go; the others follow with the next tick */
#define RETRY_MS 20u /* after a failed open */

bool slot_serves(const struct partition *p, const struct slot *s)
{
	return device_readable(p->volume[s->volume].dev) && slot_readable(p, s);
}

struct device *device_find(const struct skv_core *c, uint32_t id)
{
	for (uint32_t i = 0; i < c->n_device; i++)
		if (c->device[i]->id == id)
			return c->device[i];
	return NULL;
}

int device_add(struct skv_core *c, struct device *d)
{
	void *v = c->device;
	int rc = skv_grow(&v, &c->cap_device, c->n_device + 1, sizeof *c->device);

	c->device = v;
	if (rc == SKV_OK)
		c->device[c->n_device++] = d;
	return rc;
}

int device_make(struct skv_core *c, const struct skv_storage_spec *s, uint32_t id,
		const uint8_t uuid[16], struct device **out)
{
	struct device *d = skv_calloc(1, sizeof *d);

	if (!d)
		return SKV_E_NOMEM;
	d->core = c;
	d->name = skv_strdup(s->name);
	d->type = skv_strdup(s->type);
	d->root = skv_strdup(s->root);
	d->id = id;
	memcpy(d->uuid, uuid, 16);
	d->unit = s->unit;
	d->file_size = s->file_size;
	d->ops = skv_storage_find(s->type);
	d->chunk = s->chunk_size;
	d->any_mount = s->any_mount;
	d->edge = d->ops ? skv_storage_edge(d->ops, d->chunk) : 0;
	d->longest = UINT64_MAX;
	atomic_store(&d->reach, UINT64_MAX);
	skv_mutex_init(&d->lock);
	skv_cond_init(&d->wake);
	d->shown_fault = STORAGE_UNKNOWN;
	if (!d->ops || !d->ops->counted)
		health_note(d, CALL_ROOT, SKV_E_UNAVAILABLE, "not opened yet");
	if (d->name && d->type && d->root && d->ops && device_describe(d, s) == SKV_OK) {
		*out = d;
		return SKV_OK;
	}
	id = d->ops ? 1 : 0;
	device_destroy(d);
	return id ? SKV_E_NOMEM : SKV_E_UNSUPPORTED;
}

/* ---- calls into the file system -------------------------------------------------------------- */

static void close_storage(struct device *d)
{
	struct skv_storage *s;

	skv_mutex_lock(&d->lock);
	s = d->storage;
	d->storage = NULL;
	skv_mutex_unlock(&d->lock);
	skv_storage_close(s);
	/* The files are checked again when the storage is opened again. */
	atomic_store(&d->next_first, 0);
	atomic_store(&d->files_checked, false);
}

int device_open(struct device *d, bool may_create, struct skv_error *err)
{
	struct skv_storage_config cfg = { .name = d->name, .root = d->root, .unit = d->unit,
					  .may_create = may_create,
					  .chunk = d->chunk, .read_chunk = d->fresh,
					  .any_mount = d->any_mount,
					  .token_file = d->core->o.fs_master_token_file };
	const char *masters[SKV_MAX_FS_MASTERS];
	struct skv_storage *opened = NULL;
	struct skv_arena a;
	int rc = SKV_OK;

	memcpy(cfg.uuid, d->uuid, 16);
	skv_arena_init(&a);
	skv_rwlock_read(&d->core->lock);
	atomic_store(&d->reopen, false);
	for (; rc == SKV_OK && cfg.n_masters < d->n_masters; cfg.n_masters++) {
		masters[cfg.n_masters] = skv_arena_strndup(&a, d->masters[cfg.n_masters],
							   strlen(d->masters[cfg.n_masters]));
		rc = masters[cfg.n_masters] ? SKV_OK : SKV_E_NOMEM;
	}
	skv_rwlock_read_unlock(&d->core->lock);
	cfg.masters = masters;
	atomic_store(&d->remote, cfg.n_masters > 0);
	health_begin(d, CALL_ROOT);
	if (rc == SKV_OK)
		rc = skv_storage_open(d->ops, &cfg, &opened, err);
	health_end(d, CALL_ROOT, rc == SKV_OK, false);
	skv_mutex_lock(&d->lock);
	d->storage = opened;
	skv_mutex_unlock(&d->lock);
	skv_arena_destroy(&a);
	return rc;
}

void device_opened(struct device *d)
{
	atomic_store(&d->fs_free, UINT64_MAX);
	health_note(d, CALL_ROOT, SKV_OK, "");
}

/* A root without its marker may be an empty mount point. Where one partition has no files others
 * may have. */
static bool may_create(const struct device *d, const struct look *k)
{
	return k->files == 0 && !d->core->shares;
}

/* Returns true if the storage reports its free space itself. Else the probing write reports more
 * precisely. */
static bool tells_free(const struct device *d)
{
	return d->ops->steady || atomic_load(&d->remote);
}

static int probe(struct device *d, const struct look *k, struct skv_error *err)
{
	const uint64_t asked = skv_now_ms(d->core->clock);
	struct skv_storage_health h = { 0 };
	int rc = SKV_OK;

	if (d->storage && atomic_load(&d->reopen))
		close_storage(d);
	if (!d->storage)
		rc = device_open(d, may_create(d, k), err);
	if (rc != SKV_OK)
		return rc;
	health_begin(d, CALL_ROOT);
	rc = skv_storage_probe(d->storage, SKV_PROBE_ROOT, &h, err);
	if (rc == SKV_OK && tells_free(d))
		device_measure(d, k, h.free_bytes);
	if (rc == SKV_OK)
		rc = device_heard(d, asked, &h, err);
	if (rc == SKV_OK)
		rc = claim_look(d, err);
	health_end(d, CALL_ROOT, rc == SKV_OK, false);
	if (rc != SKV_OK && atomic_load(&d->refused) == REFUSED_NOT) {
		close_storage(d);
		files_doubt_all(d);
	}
	return rc;
}

/* Notes the result for the root. A partition that is loaded or dropped is no fault of the storage,
 * and then no problem is logged. */
static void note_root(struct device *d, int rc, const char *problem)
{
	health_note(d, CALL_ROOT, rc, rc == SKV_E_NOT_READY ? NULL : problem);
}

void device_step(struct device *d)
{
	struct skv_error err = { 0 };
	struct health_news news;
	struct look k;
	int rc;

	if (d->ops->counted)
		return; /* nothing to check */
	skv_mutex_lock(&d->lock);
	d->asked = false;
	skv_mutex_unlock(&d->lock);
	k = device_look(d);
	if (!k.loaded) {
		atomic_store(&d->probed, 0);
		return; /* a standby leaves the files alone */
	}
	rc = probe(d, &k, &err);
	atomic_store(&d->unheard, rc == SKV_E_NETWORK);
	if (rc != SKV_OK)
		note_root(d, rc, err.message);
	if (rc == SKV_OK)
		errands_try(d);
	if (rc == SKV_OK && atomic_load(&d->call[CALL_ROOT].failed)) {
		errands_wait(d);
		note_root(d, rc, "");
	}
	if (health_watch(d, &news))
		skv_log(news.level, "storage", "%s", news.text);
	errands_work(d, &k);
	atomic_store(&d->probed, k.fence);
	if (rc != SKV_OK && atomic_load(&d->refused) == REFUSED_BACK)
		owner_event(d->core, OWN_ON_TURNED_AWAY, k.fence); /* others may not have waited */
}

/* ---- thread ---------------------------------------------------------------------------------- */

/* Time to the next step unless woken: without a file system there is nothing to probe, and a
 * standby does nothing. */
static uint32_t idle_ms(const struct device *d)
{
	if (!atomic_load(&d->probed))
		return PROBE_MS;
	return !d->storage ? RETRY_MS : d->ops->steady ? STEADY_MS : PROBE_MS;
}

/* Errands that return signal, too. */
static void rest_locked(struct device *d) SKV_REQUIRES(d->lock)
{
	const uint64_t until = skv_now_us() + 1000ull * idle_ms(d);
	uint64_t now;

	while (!d->stop && !d->asked && (now = skv_now_us()) < until)
		skv_cond_wait_ms(&d->wake, &d->lock, (until - now + 999) / 1000);
}

static void *device_thread(void *arg)
{
	struct device *d = arg;

	core_log(d->core);
	skv_mutex_lock(&d->lock);
	while (!d->stop) {
		skv_mutex_unlock(&d->lock);
		device_step(d);
		skv_mutex_lock(&d->lock);
		rest_locked(d);
	}
	skv_mutex_unlock(&d->lock);
	errands_join(d);
	atomic_store(&d->ended, true);
	return NULL;
}

int device_start(struct device *d)
{
	/* Manual: stepped by skv_cluster_tick; counted: device_step has nothing to do. */
	if (d->core->o.manual || d->ops->counted)
		return SKV_OK;
	if (pthread_create(&d->thread, NULL, device_thread, d) != 0)
		return SKV_E_NOMEM;
	d->running = true;
	return SKV_OK;
}

void device_ask_stop(struct device *d)
{
	skv_mutex_lock(&d->lock);
	d->stop = true;
	skv_cond_signal(&d->wake);
	skv_mutex_unlock(&d->lock);
}

bool device_stopped(const struct device *d) { return !d->running || atomic_load(&d->ended); }

static void stop_thread(struct device *d)
{
	if (!d->running)
		return;
	device_ask_stop(d);
	pthread_join(d->thread, NULL);
	d->running = false;
}

/* Slots store the number of their volume, so the gap stays until a new storage takes it. */
static void forget_volume(struct partition *p, uint32_t at)
{
	for (size_t i = 0; i < p->n_inst; i++)
		evict_forget_volume(p->inst[i], at);
	for (struct instance *retired = p->retired; retired; retired = retired->next_retired)
		evict_forget_volume(retired, at);
	evict_free_sets(p, at, NULL);
	partition_forget_name(p, at);
	skv_pool_destroy(p->volume[at].pool);
	files_free(&p->volume[at]);
	skv_free(p->volume[at].class);
	layouts_free(&p->volume[at]);
	p->volume[at] = (struct volume){ 0 };
}

void device_remove(struct skv_core *c, struct device *d)
{
	for (uint32_t i = 0; c->partition && i < c->partition->n_volume; i++)
		if (c->partition->volume[i].dev == d)
			forget_volume(c->partition, i);
	for (uint32_t i = 0; i < c->n_device; i++)
		if (c->device[i] == d)
			c->device[i] = c->device[--c->n_device];
}

/* After a demotion the names may belong to a storage created by the next owner. */
static bool still_ours(const struct skv_core *c, uint64_t fence)
{
	return owner_valid(c) && owner_fence(c) == fence;
}

/* So that another storage may be created in it. */
static void leave_directory(struct device *d)
{
	struct skv_error err = { 0 };
	int rc = skv_storage_leave(d->storage, &err);

	if (rc == SKV_E_IN_USE && d->core->number)
		return; /* partitions leave one after the other, number 0 last */
	if (rc != SKV_OK && rc != SKV_E_UNSUPPORTED)
		skv_log(SKV_LOG_WARN, "storage",
			"'%s': the marker of its directory cannot be removed: %s", d->name,
			err.message);
}

void device_retire(struct device *d, uint64_t fence, const struct volume_file *files, size_t n)
{
	struct skv_error err = { 0 };
	bool all = true;

	stop_thread(d);
	claim_give_back(d);
	for (size_t i = 0; d->storage && i < n; i++) {
		int rc = still_ours(d->core, fence)
				 ? skv_storage_remove_file(d->storage, files[i].number, &err)
				 : skv_fail(&err, SKV_E_NOT_OWNER, NULL,
					    "this manager is not the owner any more");

		if (rc != SKV_OK)
			skv_log(SKV_LOG_WARN, "storage", "'%s': slab file %u stays behind: %s",
				d->name, files[i].number, err.message);
		all &= rc == SKV_OK;
	}
	if (d->storage && all && still_ours(d->core, fence))
		leave_directory(d);
	device_destroy(d);
}

/* Removes it from the core's list if its thread has left the file system, else at a later load. */
static struct device *take_unused(struct skv_core *c)
{
	struct device *d = NULL;

	core_lock(c);
	for (uint32_t i = 0; !d && i < c->n_device; i++) {
		if (!c->partition || device_volume(c->partition, c->device[i]))
			continue;
		device_ask_stop(c->device[i]);
		if (device_stopped(c->device[i]))
			d = c->device[i];
	}
	if (d)
		device_remove(c, d);
	core_unlock(c);
	return d;
}

void devices_sweep(struct skv_core *c)
{
	struct device *d;

	/* The call in turn may be using the devices' names: the next load removes them. */
	if (!turn_try(c))
		return;
	while ((d = take_unused(c)) != NULL)
		device_destroy(d);
	turn_leave(c);
}

void device_destroy(struct device *d)
{
	stop_thread(d);
	/* Nothing was granted under this ownership: the next manager may take the directory. */
	if (owner_view(d->core).end == OWN_END_TURNED_AWAY)
		claim_give_back(d);
	if (d->storage)
		skv_storage_close(d->storage);
	skv_mutex_destroy(&d->lock);
	skv_cond_destroy(&d->wake);
	skv_free(d->name);
	skv_free(d->type);
	skv_free(d->root);
	device_forget_description(d);
	skv_free(d);
}

/* While the storage's own thread waits for the root, reads are judged by reads all the same. */
static void go_on(struct device *d)
{
	const uint64_t since = atomic_load(&d->call[CALL_ROOT].since);
	const uint64_t now = skv_now_ms(d->core->clock);

	if (since == 0 || now < since + PROBE_MS || now < d->go_on_at)
		return;
	d->go_on_at = now + PROBE_MS;
	errands_go_on(d);
}

void devices_watch(struct skv_core *c)
{
	struct health_news news[NEWS];
	size_t n = 0;

	skv_rwlock_read(&c->lock);
	for (uint32_t i = 0; i < c->n_device && n < NEWS; i++) {
		if (c->device[i]->ops->counted || !atomic_load(&c->device[i]->probed))
			continue;
		go_on(c->device[i]);
		n += health_watch(c->device[i], &news[n]);
	}
	skv_rwlock_read_unlock(&c->lock);
	for (size_t i = 0; i < n; i++)
		skv_log(news[i].level, "storage", "%s", news[i].text);
}
