/*
 * device.c - a storage's own thread: opens its root, watches its health, checks slab files.
 *
 * File systems hang, so no other thread waits for one: a call that does not return only makes this
 * device unhealthy (busy_since). The thread takes core->lock briefly to read the partition, never
 * while it calls the file system. d->lock guards the requests to the thread and `problem`. A second
 * thread creates and removes slab files (device_hand.c), which may take long in a healthy file
 * system.
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
#include <model/objects.h>
#include <model/partition.h>
#include <model/queue.h>
#include <model/volume.h>
#include <journal/registry.h>
#include <journal/registry_write.h>
#include <storage/bad_files.h>
#include <storage/claim.h>
#include "device_hand.h"
#include "device_look.h"
#include "device_node.h"
#include "remove_files.h"

#define PROBE_MS 1000u
#define STEADY_MS 60000u
#define RETRY_MS 20u /* after a failed open */
#define HANG_MS 5000u

bool device_hangs(const struct device *d)
{
	uint64_t busy = atomic_load_explicit(&d->busy_since, memory_order_relaxed);

	return busy != 0 && skv_now_ms(d->core->clock) - busy >= HANG_MS;
}

bool device_healthy(const struct device *d)
{
	return atomic_load_explicit(&d->healthy, memory_order_relaxed) && !device_hangs(d) &&
	       !claim_overdue(d);
}

bool device_readable(const struct device *d)
{
	if (!d->n_masters)
		return device_healthy(d);
	return atomic_load_explicit(&d->healthy, memory_order_relaxed) ||
	       atomic_load_explicit(&d->unheard, memory_order_relaxed);
}

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
	snprintf(d->problem, sizeof d->problem, "not opened yet");
	if (d->ops && d->ops->counted)
		atomic_store(&d->healthy, true);
	if (d->name && d->type && d->root && d->ops && device_describe(d, s) == SKV_OK) {
		*out = d;
		return SKV_OK;
	}
	id = d->ops ? 1 : 0;
	device_destroy(d);
	return id ? SKV_E_NOMEM : SKV_E_UNSUPPORTED;
}

/* ---- calls into the file system -------------------------------------------------------------- */

struct skv_storage *device_use(struct device *d)
{
	struct skv_storage *s;

	skv_mutex_lock(&d->lock);
	s = d->storage;
	d->used_by_hand = s != NULL;
	skv_mutex_unlock(&d->lock);
	return s;
}

void device_unuse(struct device *d)
{
	skv_mutex_lock(&d->lock);
	d->used_by_hand = false;
	skv_mutex_unlock(&d->lock);
}

/* Not while the other thread uses it: then it stays open, and the next step closes it. */
static void close_storage(struct device *d)
{
	struct skv_storage *s = NULL;

	skv_mutex_lock(&d->lock);
	if (!d->used_by_hand) {
		s = d->storage;
		d->storage = NULL;
	}
	skv_mutex_unlock(&d->lock);
	if (s)
		skv_storage_close(s);
}

void device_enter(struct device *d) { atomic_store(&d->busy_since, skv_now_ms(d->core->clock)); }
void device_leave(struct device *d) { atomic_store(&d->busy_since, 0); }

static void set_health(struct device *d, bool healthy, const char *problem)
{
	bool was = atomic_exchange(&d->healthy, healthy);
	bool news;

	skv_mutex_lock(&d->lock);
	news = strcmp(d->problem, problem) != 0;
	snprintf(d->problem, sizeof d->problem, "%s", problem);
	skv_mutex_unlock(&d->lock);
	if (healthy && !was)
		skv_log(SKV_LOG_INFO, "storage", "'%s' is healthy", d->name);
	else if (!healthy && (was || news))
		skv_log(SKV_LOG_ERROR, "storage", "'%s' is not usable: %s", d->name, problem);
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
	device_enter(d);
	if (rc == SKV_OK)
		rc = skv_storage_open(d->ops, &cfg, &opened, err);
	device_leave(d);
	skv_mutex_lock(&d->lock);
	d->storage = opened;
	skv_mutex_unlock(&d->lock);
	skv_arena_destroy(&a);
	return rc;
}

struct volume *device_volume(const struct partition *p, const struct device *d)
{
	if (p)
		ASSERT_SHARED(p);
	for (uint32_t i = 0; p && i < p->n_volume; i++)
		if (p->volume[i].dev == d)
			return (struct volume *)&p->volume[i];
	return NULL;
}

struct look device_look(struct device *d)
{
	struct skv_pool_stats st;
	struct look k = { 0 };
	const struct volume *s;

	skv_rwlock_read(&d->core->lock);
	s = device_volume(d->core->partition, d);
	if (s)
		k = (struct look){ .loaded = true, .fence = d->core->partition->fence,
				   .files = s->next_file - file_first_number(d->core->o.partition),
				   .next = file_next_number(s),
				   .capacity = s->capacity,
				   .file_bytes = s->file_bytes - s->vanished_bytes,
				   .growing = s->growing,
				   .ending = files_to_remove(s) };
	if (s && s->growing && d->ops->chunked) {
		skv_pool_stats(s->pool, &st);
		k.unwritten = st.file_bytes - st.assigned_bytes;
	}
	skv_rwlock_read_unlock(&d->core->lock);
	return k;
}

int device_not_open(const struct device *d, struct skv_error *err)
{
	return skv_fail(err, SKV_E_UNAVAILABLE, NULL, "storage '%s' is not open", d->name);
}

int device_remove_file(struct device *d, uint32_t file, struct skv_error *err)
{
	struct skv_storage *s = device_use(d);
	int rc = s ? skv_storage_remove_file(s, file, err) : device_not_open(d, err);

	device_unuse(d);
	return rc;
}

/* A root without its marker may be an empty mount point. Where one partition has no files others
 * may have. */
static bool may_create(const struct device *d, const struct look *k)
{
	return k->files == 0 && d->core->o.partition == 0 && d->core->o.partitions < 2;
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
	device_enter(d);
	rc = skv_storage_probe(d->storage, &h, err);
	if (rc == SKV_OK)
		rc = device_heard(d, asked, &h, err);
	if (rc == SKV_OK)
		rc = claim_look(d, err);
	device_leave(d);
	if (rc != SKV_OK && atomic_load(&d->refused) != REFUSED_NOT)
		return rc;
	if (rc == SKV_OK)
		rc = device_look_at_files(d, !d->files_checked, err);
	d->files_checked |= rc == SKV_OK;
	if (rc == SKV_OK) {
		atomic_store(&d->fs_free, h.free_bytes);
		return SKV_OK;
	}
	close_storage(d); /* when it comes back it is opened again and its files are checked
			   * again */
	d->files_checked = false;
	device_doubt_files(d);
	return rc;
}

/* What its slab files can have in all, unless one was being made meanwhile. Chunks are allocated
 * when they are written, so there files and free bytes do not add up to anything. */
static void measure_reach(struct device *d, const struct look *before)
{
	const uint64_t fs_free = atomic_load(&d->fs_free);
	const struct look now = device_look(d);

	if (d->ops->chunked || before->growing || now.growing ||
	    now.file_bytes != before->file_bytes)
		return;
	atomic_store(&d->reach, fs_free > UINT64_MAX - now.file_bytes ? UINT64_MAX
								       : now.file_bytes + fs_free);
}

void device_step(struct device *d)
{
	struct skv_error err = { 0 };
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
	if (rc == SKV_OK)
		measure_reach(d, &k);
	if (rc == SKV_E_NOT_READY) /* the partition comes or goes: no fault of the storage */
		atomic_store(&d->healthy, false);
	else
		set_health(d, rc == SKV_OK,
			   rc == SKV_OK     ? ""
			   : err.message[0] ? err.message
					    : skv_status_text(rc));
	atomic_store(&d->probed, k.fence);
	if (rc != SKV_OK && atomic_load(&d->refused) == REFUSED_BACK)
		owner_event(d->core, OWN_ON_TURNED_AWAY, k.fence); /* others may not have waited */
	hand_ask(d, k.growing, rc == SKV_OK && k.ending);
}

bool device_grows(struct device *d) { return device_look(d).growing; }

/* ---- thread ---------------------------------------------------------------------------------- */

/* Time to the next step unless woken: without a file system there is nothing to probe, and a
 * standby does nothing. */
static uint32_t idle_ms(const struct device *d)
{
	if (!atomic_load(&d->probed))
		return PROBE_MS;
	return !d->storage ? RETRY_MS : d->ops->steady ? STEADY_MS : PROBE_MS;
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
		if (!d->stop && !d->asked)
			skv_cond_wait_ms(&d->wake, &d->lock, idle_ms(d));
	}
	skv_mutex_unlock(&d->lock);
	hand_join(d);
	atomic_store(&d->ended, true);
	return NULL;
}

int device_start(struct device *d)
{
	if (d->core->o.manual || d->ops->counted)
		return SKV_OK; /* manual: stepped by skv_core_tick; counted: device_step has nothing
				* to do */
	if (pthread_create(&d->thread, NULL, device_thread, d) != 0)
		return SKV_E_NOMEM;
	d->running = true;
	return SKV_OK;
}

void device_ask(struct device *d)
{
	skv_mutex_lock(&d->lock);
	d->asked = true;
	skv_cond_signal(&d->wake);
	skv_mutex_unlock(&d->lock);
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
	skv_pool_destroy(p->volume[at].pool);
	files_free(&p->volume[at]);
	skv_free(p->volume[at].class);
	p->volume[at] = (struct volume){ 0 };
	p->n_gap++;
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

	if (rc == SKV_E_IN_USE && d->core->o.partition)
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

	if (!turn_try(c))
		return; /* its call may be using their names: the next load removes them */
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
