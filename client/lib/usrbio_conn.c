/*
 * usrbio_conn.c - everything that lives as long as one FUSE daemon: rings, buffers, mapped memory.
 *
 * Owns all of it. A connection is never repaired: when the daemon was restarted, or too much is
 * orphaned, it is lost, and the engine makes another one; of this one, rings and memory go with the
 * last call, the rest with the last file. Whether the daemon is
 * the same is seen by its submit semaphore: each start has one of its own,
 * published below the mount.
 */
#include "usrbio.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <skv/check.h>
#include <skv/log.h>
#include <skv/mem.h>

/* ---- the daemon ------------------------------------------------------------------------------ */

static int read_daemon(const char *mount_point, char out[256])
{
	char path[512];
	ssize_t n;

	snprintf(path, sizeof path, "%s/" SKV_USRBIO_VIRT "/submit-ios", mount_point);
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

/* Nobody touches our memory once the process of the daemon that knows it has ended. What the mount
 * point says proves nothing of it: another daemon may be mounted there over the old one, which
 * lives on for whoever has its files open. But a daemon answers for its own descriptors as long as
 * it lives. A signal may cut a question short. */
static bool has_ended(const struct skv_usrbio_conn *g, int fd)
{
	for (int tries = 0; tries < 3; tries++)
		if (g->lib->is_hf3fs(fd))
			return false;
	return true;
}

void skv_usrbio_conn_check(struct skv_usrbio_conn *g, int fd)
{
	const char *why = NULL;
	char daemon[256];
	int error = read_daemon(g->mount_point, daemon);

	if (error && error != EINTR && error != ENOMEM)
		why = strerror(error);
	else if (!error && strcmp(daemon, g->daemon) != 0)
		why = "it was restarted";
	else if (!error && is_absent(g->pools[SKV_USRBIO_READ].memory.link))
		why = "it does not know this process's memory any more";
	if (why && !atomic_load(&g->gone) && has_ended(g, fd))
		atomic_store(&g->gone, true);
	if (why && !atomic_exchange(&g->lost, true))
		skv_log(SKV_LOG_WARN, "client",
			"the FUSE daemon of %s is lost: %s; recreating rings and buffers",
			g->mount_point, why);
}

void skv_usrbio_conn_orphaned(struct skv_usrbio_conn *g, struct skv_usrbio_ring *r)
{
	uint64_t bytes = (uint64_t)g->pools[r->way].n_units * SKV_USRBIO_UNIT;
	bool much;

	skv_mutex_lock(&r->lock);
	much = r->orphaned > r->entries / 2;
	skv_mutex_unlock(&r->lock);
	much |= atomic_load(&g->orphaned[r->way]) > bytes / 2;
	if (much && !atomic_exchange(&g->lost, true))
		skv_log(SKV_LOG_WARN, "client",
			"too many requests to %s got no answer; recreating rings and buffers",
			g->mount_point);
}

/* ---- making ---------------------------------------------------------------------------------- */

uint64_t skv_usrbio_conn_rings(const struct skv_usrbio_lib *lib, const struct skv_hf3fs_options *o)
{
	return 2ull * o->io_thread_num * lib->ior_size((int)o->ior_entries);
}

/* Holds a descriptor of the directory where memory is published, for as long as the process lives:
 * by its end the daemon sees the end of the thread that opened it, and forgets what that thread
 * has published. The library has one, of whichever thread came first, for the first daemon. It
 * must not be closed earlier. */
static void hold(const struct skv_usrbio_conn *g)
{
	static _Thread_local char held[sizeof g->daemon];
	char path[512];

	if (strcmp(held, g->daemon) == 0)
		return;
	snprintf(path, sizeof path, "%s/" SKV_USRBIO_VIRT, g->mount_point);
	if (open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) >= 0)
		memcpy(held, g->daemon, sizeof held);
}

static int make_rings(struct skv_usrbio_conn *g, struct skv_error *err)
{
	int rc = SKV_OK;

	for (uint32_t i = 0; rc == SKV_OK && i < g->o->io_thread_num; i++) {
		rc = skv_usrbio_ring_make(g, SKV_USRBIO_READ, g->o, &g->rings[SKV_USRBIO_READ][i],
					  err);
		if (rc != SKV_OK)
			break;
		rc = skv_usrbio_ring_make(g, SKV_USRBIO_WRITE, g->o, &g->rings[SKV_USRBIO_WRITE][i],
					  err);
		if (rc == SKV_OK)
			g->n_rings++;
		else
			skv_usrbio_ring_close(&g->rings[SKV_USRBIO_READ][i]);
	}
	return rc;
}

static int make_pools(struct skv_usrbio_conn *g, struct skv_error *err)
{
	static atomic_uint serial;
	const uint64_t bytes[2] = { g->o->read_iov_size, g->o->write_iov_size };
	int rc = SKV_OK;

	for (int way = 0; rc == SKV_OK && way < 2; way++) {
		char name[32];

		snprintf(name, sizeof name, "hf3fs%u", atomic_fetch_add(&serial, 1));
		rc = skv_usrbio_pool_make(g->lib, g->mount_point, name, bytes[way], g->o->numa_id,
					  &g->pools[way], err);
	}
	return rc;
}

static void close_all(struct skv_usrbio_conn *g)
{
	for (uint32_t i = 0; i < g->n_rings; i++) {
		skv_usrbio_ring_close(&g->rings[SKV_USRBIO_READ][i]);
		skv_usrbio_ring_close(&g->rings[SKV_USRBIO_WRITE][i]);
	}
	for (uint32_t i = 0; i < g->n_mapped; i++) {
		skv_usrbio_withdraw(g->mapped[i]);
		skv_free(g->mapped[i]);
	}
	for (int way = 0; way < 2; way++)
		if (g->pools[way].used)
			skv_usrbio_pool_close(&g->pools[way]);
}

bool skv_usrbio_conn_enter(struct skv_usrbio_conn *g)
{
	bool stands;

	skv_mutex_lock(&g->lock);
	stands = g->users > 0 && !atomic_load(&g->lost);
	if (stands)
		g->users++;
	skv_mutex_unlock(&g->lock);
	return stands;
}

void skv_usrbio_conn_leave(struct skv_usrbio_conn *g)
{
	bool last;

	skv_mutex_lock(&g->lock);
	last = --g->users == 0;
	skv_mutex_unlock(&g->lock);
	if (last)
		close_all(g);
}

void skv_usrbio_conn_ref(struct skv_usrbio_conn *g) { atomic_fetch_add(&g->refs, 1); }

void skv_usrbio_conn_unref(struct skv_usrbio_conn *g)
{
	if (!g || atomic_fetch_sub(&g->refs, 1) > 1)
		return;
	if (!SKV_CHECK(g->users == 0))
		return; /* still in use: better leaked than freed */
	skv_mutex_destroy(&g->lock);
	skv_free(g);
}

int skv_usrbio_conn_make(const struct skv_usrbio_lib *lib, const struct skv_hf3fs_options *o,
			   const char *mount_point, struct skv_usrbio_conn **out,
			   struct skv_error *err)
{
	struct skv_usrbio_conn *g = skv_calloc(1, sizeof *g);
	struct skv_error room;
	int rc, error;

	if (!g)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	g->lib = lib;
	g->o = o;
	atomic_init(&g->refs, 1);
	g->users = 1;
	skv_mutex_init(&g->lock);
	snprintf(g->mount_point, sizeof g->mount_point, "%s", mount_point);
	error = read_daemon(mount_point, g->daemon);
	rc = SKV_OK;
	if (error)
		rc = skv_fail(err, SKV_E_UNAVAILABLE, "hf3fs_mount_point",
			      "%s/" SKV_USRBIO_VIRT
			      "/submit-ios: %s: does the FUSE daemon of this 3FS run?",
			      mount_point, strerror(error));
	if (rc == SKV_OK) {
		rc = skv_usrbio_room(o, skv_usrbio_conn_rings(lib, o), &room);
		if (rc != SKV_OK && err)
			*err = room;
	}
	if (rc == SKV_OK)
		rc = make_rings(g, err);
	if (rc == SKV_OK)
		rc = make_pools(g, err);
	if (rc != SKV_OK) {
		skv_usrbio_conn_leave(g);
		skv_usrbio_conn_unref(g);
		return rc;
	}
	hold(g);
	skv_log(SKV_LOG_INFO, "client", "usrbio on %s: %s", mount_point, room.message);
	*out = g;
	return SKV_OK;
}

/* ---- mapped memory --------------------------------------------------------------------------- */

int skv_usrbio_conn_map(struct skv_usrbio_conn *g, void *base, size_t length, struct skv_error *err)
{
	struct skv_usrbio_memory *m;
	char shm[SKV_SHM_NAME];
	int rc = SKV_OK;

	if (!skv_usrbio_shm_of(base, length, shm))
		return skv_fail(
			err, SKV_E_UNSUPPORTED, NULL,
			"no shared memory with a name in /dev/shm: 3FS reads and "
			"writes copies of it");
	m = skv_calloc(1, sizeof *m);
	if (!m)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	hold(g);
	rc = skv_usrbio_publish(g->lib, g->mount_point, shm, base, length, m, err);
	if (rc == SKV_OK) {
		skv_mutex_lock(&g->lock);
		if (g->n_mapped < SKV_USRBIO_MAPPED)
			g->mapped[g->n_mapped++] = m;
		else
			rc = skv_fail(err, SKV_E_UNSUPPORTED, NULL, "at most %u regions",
				      SKV_USRBIO_MAPPED);
		skv_mutex_unlock(&g->lock);
	}
	if (rc != SKV_OK) {
		skv_usrbio_withdraw(m);
		skv_free(m);
	}
	return rc;
}

void skv_usrbio_conn_unmap(struct skv_usrbio_conn *g, const void *base)
{
	struct skv_usrbio_memory *m = NULL;

	skv_mutex_lock(&g->lock);
	for (uint32_t i = 0; i < g->n_mapped && !m; i++) {
		if (g->mapped[i]->iov.base != base)
			continue;
		m = g->mapped[i];
		g->mapped[i] = g->mapped[g->n_mapped - 1];
		g->n_mapped--;
	}
	skv_mutex_unlock(&g->lock);
	if (!m)
		return;
	skv_usrbio_withdraw(m);
	skv_free(m);
}

const struct skv_hf3fs_iov *skv_usrbio_conn_find(struct skv_usrbio_conn *g, const void *data,
						 uint64_t length, uint64_t *n)
{
	const struct skv_hf3fs_iov *found = NULL;

	if (atomic_load_explicit(&g->n_mapped, memory_order_acquire) == 0)
		return NULL;
	skv_mutex_lock(&g->lock);
	for (uint32_t i = 0; i < g->n_mapped && !found; i++) {
		const struct skv_hf3fs_iov *iov = &g->mapped[i]->iov;
		uint64_t at = (uintptr_t)data - (uintptr_t)iov->base;

		if ((uintptr_t)data < (uintptr_t)iov->base || at >= iov->size)
			continue;
		*n = length < iov->size - at ? length : iov->size - at;
		found = iov;
	}
	skv_mutex_unlock(&g->lock);
	return found;
}
