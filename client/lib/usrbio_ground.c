/*
 * usrbio_ground.c - what stands as long as one FUSE daemon lives: rings, buffers, mapped memory.
 *
 * Owns all of it. A ground is never repaired: when the daemon was restarted, or too much is adrift, it is
 * lost, and the engine makes another one; of this one, rings and memory go with the last call, the rest with the
 * last file. Whether the daemon is
 * the same is seen by its submit semaphore: each start has one of its own, published below the mount.
 */
#include "usrbio.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <kvb/log.h>
#include <kvb/mem.h>

/* ---- the daemon ------------------------------------------------------------------------------ */

static int read_daemon(const char *mount_point, char out[256])
{
	char path[512];
	ssize_t n;

	snprintf(path, sizeof path, "%s/" KVB_USRBIO_VIRT "/submit-ios", mount_point);
	n = readlink(path, out, 255);
	if (n < 0)
		return errno;
	out[n] = '\0';
	return 0;
}

static bool is_absent(const char *link)
{
	char target[256];

	return readlink(link, target, sizeof target) < 0 && errno == ENOENT;
}

void kvb_usrbio_ground_check(struct kvb_usrbio_ground *g)
{
	const char *why = NULL;
	char daemon[256];
	int error = read_daemon(g->mount_point, daemon);

	if (error && error != EINTR && error != ENOMEM) {
		why = strerror(error);
		/* Others (unmounted, no permission) do not say that its process has ended. */
		if (error == ENOTCONN || error == ECONNABORTED)
			atomic_store(&g->gone, true);
	} else if (!error && strcmp(daemon, g->daemon) != 0) {
		why = "it was restarted";
		atomic_store(&g->gone, true);
	} else if (!error && is_absent(g->pools[KVB_USRBIO_READ].memory.link)) {
		why = "it does not know this process's memory any more";
	}
	if (why && !atomic_exchange(&g->lost, true))
		kvb_log(KVB_LOG_WARN, "client", "the FUSE daemon of %s is lost: %s; rings and buffers are made anew",
			g->mount_point, why);
}

void kvb_usrbio_ground_adrift(struct kvb_usrbio_ground *g, struct kvb_usrbio_ring *r)
{
	uint64_t bytes = (uint64_t)g->pools[r->way].n_units * KVB_USRBIO_UNIT;
	bool much;

	kvb_mutex_lock(&r->lock);
	much = r->adrift > r->entries / 2;
	kvb_mutex_unlock(&r->lock);
	much |= atomic_load(&g->adrift[r->way]) > bytes / 2;
	if (much && !atomic_exchange(&g->lost, true))
		kvb_log(KVB_LOG_WARN, "client", "too many requests to %s got no answer; rings and buffers are made anew",
			g->mount_point);
}

/* ---- making ---------------------------------------------------------------------------------- */

uint64_t kvb_usrbio_ground_rings(const struct kvb_usrbio_lib *lib, const struct kvblock_hf3fs *o)
{
	return 2ull * o->io_thread_num * lib->ior_size((int)o->ior_entries);
}

/* Holds a descriptor of the directory where memory is published, for as long as the process lives: by its end
 * the daemon sees the end of the thread that opened it, and forgets what that thread has published. The library
 * has one, of whichever thread came first, for the first daemon. It must not be closed earlier. */
static void hold(const struct kvb_usrbio_ground *g)
{
	static _Thread_local char held[sizeof g->daemon];
	char path[512];

	if (strcmp(held, g->daemon) == 0)
		return;
	snprintf(path, sizeof path, "%s/" KVB_USRBIO_VIRT, g->mount_point);
	if (open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) >= 0)
		memcpy(held, g->daemon, sizeof held);
}

static int make_rings(struct kvb_usrbio_ground *g, struct kvb_error *err)
{
	int rc = KVB_OK;

	for (uint32_t i = 0; rc == KVB_OK && i < g->o->io_thread_num; i++) {
		rc = kvb_usrbio_ring_make(g, KVB_USRBIO_READ, g->o, &g->rings[KVB_USRBIO_READ][i], err);
		if (rc != KVB_OK)
			break;
		rc = kvb_usrbio_ring_make(g, KVB_USRBIO_WRITE, g->o, &g->rings[KVB_USRBIO_WRITE][i], err);
		if (rc == KVB_OK)
			g->n_rings++;
		else
			kvb_usrbio_ring_close(&g->rings[KVB_USRBIO_READ][i]);
	}
	return rc;
}

static int make_pools(struct kvb_usrbio_ground *g, struct kvb_error *err)
{
	static atomic_uint serial;
	const uint64_t bytes[2] = { g->o->read_iov_size, g->o->write_iov_size };
	int rc = KVB_OK;

	for (int way = 0; rc == KVB_OK && way < 2; way++) {
		char name[32];

		snprintf(name, sizeof name, "hf3fs%u", atomic_fetch_add(&serial, 1));
		rc = kvb_usrbio_pool_make(g->lib, g->mount_point, name, bytes[way], g->o->numa_id, &g->pools[way], err);
	}
	return rc;
}

static void close_all(struct kvb_usrbio_ground *g)
{
	for (uint32_t i = 0; i < g->n_rings; i++) {
		kvb_usrbio_ring_close(&g->rings[KVB_USRBIO_READ][i]);
		kvb_usrbio_ring_close(&g->rings[KVB_USRBIO_WRITE][i]);
	}
	for (uint32_t i = 0; i < g->n_mapped; i++) {
		kvb_usrbio_withdraw(g->mapped[i]);
		kvb_free(g->mapped[i]);
	}
	for (int way = 0; way < 2; way++)
		if (g->pools[way].used)
			kvb_usrbio_pool_close(&g->pools[way]);
}

bool kvb_usrbio_ground_enter(struct kvb_usrbio_ground *g)
{
	bool stands;

	kvb_mutex_lock(&g->lock);
	stands = g->users > 0 && !atomic_load(&g->lost);
	if (stands)
		g->users++;
	kvb_mutex_unlock(&g->lock);
	return stands;
}

void kvb_usrbio_ground_leave(struct kvb_usrbio_ground *g)
{
	bool last;

	kvb_mutex_lock(&g->lock);
	last = --g->users == 0;
	kvb_mutex_unlock(&g->lock);
	if (last)
		close_all(g);
}

void kvb_usrbio_ground_ref(struct kvb_usrbio_ground *g) { atomic_fetch_add(&g->refs, 1); }

void kvb_usrbio_ground_unref(struct kvb_usrbio_ground *g)
{
	if (!g || atomic_fetch_sub(&g->refs, 1) > 1)
		return;
	assert(g->users == 0);
	kvb_mutex_destroy(&g->lock);
	kvb_free(g);
}

int kvb_usrbio_ground_make(const struct kvb_usrbio_lib *lib, const struct kvblock_hf3fs *o,
			   const struct kvb_engine_keeper *keeper, const char *mount_point,
			   struct kvb_usrbio_ground **out, struct kvb_error *err)
{
	struct kvb_usrbio_ground *g = kvb_calloc(1, sizeof *g);
	struct kvb_error room;
	int rc, error;

	if (!g)
		return kvb_fail(err, KVB_E_NOMEM, NULL, "out of memory");
	g->lib = lib;
	g->o = o;
	g->keeper = keeper;
	atomic_init(&g->refs, 1);
	g->users = 1;
	kvb_mutex_init(&g->lock);
	snprintf(g->mount_point, sizeof g->mount_point, "%s", mount_point);
	error = read_daemon(mount_point, g->daemon);
	rc = KVB_OK;
	if (error)
		rc = kvb_fail(err, KVB_E_UNAVAILABLE, "hf3fs_mount_point",
			      "%s/" KVB_USRBIO_VIRT "/submit-ios: %s: does the FUSE daemon of this 3FS run?", mount_point,
			      strerror(error));
	if (rc == KVB_OK) {
		rc = kvb_usrbio_room(o, kvb_usrbio_ground_rings(lib, o), &room);
		if (rc != KVB_OK && err)
			*err = room;
	}
	if (rc == KVB_OK)
		rc = make_rings(g, err);
	if (rc == KVB_OK)
		rc = make_pools(g, err);
	if (rc != KVB_OK) {
		kvb_usrbio_ground_leave(g);
		kvb_usrbio_ground_unref(g);
		return rc;
	}
	hold(g);
	kvb_log(KVB_LOG_INFO, "client", "usrbio on %s: %s", mount_point, room.message);
	*out = g;
	return KVB_OK;
}

/* ---- mapped memory --------------------------------------------------------------------------- */

int kvb_usrbio_ground_map(struct kvb_usrbio_ground *g, void *base, size_t length, struct kvb_error *err)
{
	struct kvb_usrbio_memory *m;
	char shm[KVB_SHM_NAME];
	int rc = KVB_OK;

	if (!kvb_usrbio_shm_of(base, length, shm))
		return kvb_fail(err, KVB_E_UNSUPPORTED, NULL,
				"no shared memory with a name in /dev/shm: 3FS reads and writes copies of it");
	m = kvb_calloc(1, sizeof *m);
	if (!m)
		return kvb_fail(err, KVB_E_NOMEM, NULL, "out of memory");
	hold(g);
	rc = kvb_usrbio_publish(g->lib, g->mount_point, shm, base, length, m, err);
	if (rc == KVB_OK) {
		kvb_mutex_lock(&g->lock);
		if (g->n_mapped < KVB_USRBIO_MAPPED)
			g->mapped[g->n_mapped++] = m;
		else
			rc = kvb_fail(err, KVB_E_UNSUPPORTED, NULL, "at most %u regions", KVB_USRBIO_MAPPED);
		kvb_mutex_unlock(&g->lock);
	}
	if (rc != KVB_OK) {
		kvb_usrbio_withdraw(m);
		kvb_free(m);
	}
	return rc;
}

void kvb_usrbio_ground_unmap(struct kvb_usrbio_ground *g, const void *base)
{
	struct kvb_usrbio_memory *m = NULL;

	kvb_mutex_lock(&g->lock);
	for (uint32_t i = 0; i < g->n_mapped && !m; i++) {
		if (g->mapped[i]->iov.base != base)
			continue;
		m = g->mapped[i];
		g->mapped[i] = g->mapped[g->n_mapped - 1];
		g->n_mapped--;
	}
	kvb_mutex_unlock(&g->lock);
	if (!m)
		return;
	kvb_usrbio_withdraw(m);
	kvb_free(m);
}

const struct kvb_hf3fs_iov *kvb_usrbio_ground_find(struct kvb_usrbio_ground *g, const void *data, uint64_t length,
						   uint64_t *n)
{
	const struct kvb_hf3fs_iov *found = NULL;

	if (atomic_load_explicit(&g->n_mapped, memory_order_acquire) == 0)
		return NULL;
	kvb_mutex_lock(&g->lock);
	for (uint32_t i = 0; i < g->n_mapped && !found; i++) {
		const struct kvb_hf3fs_iov *iov = &g->mapped[i]->iov;
		uint64_t at = (uintptr_t)data - (uintptr_t)iov->base;

		if ((uintptr_t)data < (uintptr_t)iov->base || at >= iov->size)
			continue;
		*n = length < iov->size - at ? length : iov->size - at;
		found = iov;
	}
	kvb_mutex_unlock(&g->lock);
	return found;
}
