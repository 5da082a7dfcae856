/*
 * usrbio_memory.c - memory shared with the FUSE daemon: registration, and buffers in our own
 * memory.
 *
 * The memory is made by us, not by 3FS's library: then every page exists before the daemon gets it
 * (a full /dev/shm is an error, not a SIGBUS, and the pages are charged to this process), it lies
 * on the right NUMA node, and its name is removed at once, so that a process that is killed leaves
 * nothing behind.
 */
#include "usrbio.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <skv/check.h>
#include <skv/hash.h>
#include <skv/mem.h>
#include <skv/superblock.h>

#define SHM "/dev/shm"

/* ---- telling the daemon ---------------------------------------------------------------------- */

int skv_usrbio_publish(const struct skv_usrbio_lib *lib, const char *mount_point, const char *shm,
		       void *base, size_t length, struct skv_usrbio_memory *out,
		       struct skv_error *err)
{
	char target[sizeof SHM + SKV_SHM_NAME], id[37];
	uint8_t uuid[16];
	int rc;

	skv_random(uuid, sizeof uuid);
	skv_uuid_to_text(uuid, id);
	memset(out, 0, sizeof *out);
	snprintf(target, sizeof target, SHM "%s", shm);
	snprintf(out->link, sizeof out->link, "%s/" SKV_USRBIO_VIRT "/%s", mount_point, id);
	rc = lib->iovwrap(&out->iov, base, uuid, mount_point, length, 0, -1);
	if (rc != 0)
		return skv_fail(err, SKV_E_UNAVAILABLE, NULL, "3FS's library refused memory: %s",
				strerror(-rc));
	if (symlink(target, out->link) == 0)
		return SKV_OK;
	rc = errno;
	out->link[0] = '\0';
	return skv_fail(
		err, SKV_E_UNAVAILABLE, NULL,
		"the FUSE daemon of %s refused memory: %s (it must see the same /dev/shm as "
		"this process)",
		mount_point, strerror(rc));
}

void skv_usrbio_withdraw(struct skv_usrbio_memory *m)
{
	if (m->link[0])
		(void)unlink(m->link); /* of a lost daemon: nothing to remove */
	m->link[0] = '\0';
}

bool skv_usrbio_shm_of(const void *base, size_t length, char shm[SKV_SHM_NAME])
{
	unsigned long long begin, end, offset, inode;
	char line[1024], perms[8], path[512];
	unsigned int major, minor;
	bool found = false;
	struct stat st;
	FILE *f = fopen("/proc/self/maps", "re");

	while (f && !found && fgets(line, sizeof line, f)) {
		path[0] = '\0';
		if (sscanf(line, "%llx-%llx %7s %llx %x:%x %llu %511[^\n]", &begin, &end, perms,
			   &offset, &major, &minor, &inode, path) < 7 ||
		    begin != (uintptr_t)base)
			continue;
		found = true;
		if (strncmp(perms, "rw-s", 4) != 0 || offset != 0 ||
		    strncmp(path, SHM "/", sizeof SHM) != 0 ||
		    strlen(path) - strlen(SHM) >= SKV_SHM_NAME || stat(path, &st) != 0 ||
		    !S_ISREG(st.st_mode) || st.st_ino != inode ||
		    st.st_dev != makedev(major, minor) || (uint64_t)st.st_size < length)
			path[0] = '\0';
	}
	if (f)
		fclose(f);
	if (!found || !path[0])
		return false;
	memcpy(shm, path + strlen(SHM), strlen(path) - strlen(SHM) + 1);
	return true;
}

int skv_usrbio_room(const struct skv_hf3fs_options *o, uint64_t rings, struct skv_error *err)
{
	const double mib = 1 << 20;
	uint64_t need = o->read_iov_size + o->write_iov_size + rings, have;
	struct statvfs st;

	if (statvfs(SHM, &st) != 0)
		return skv_fail(err, SKV_E_NO_SPACE, "hf3fs_iov_size",
				SHM ": %s: mount a tmpfs there", strerror(errno));
	have = (uint64_t)st.f_bavail * st.f_frsize;
	skv_fail(
		err, need <= have ? SKV_OK : SKV_E_NO_SPACE, "hf3fs_iov_size",
		"a process needs %.1f MiB of shared memory (%.1f to read, %.1f to write, "
		"%.1f for rings), " SHM
		" has %.1f MiB free%s",
		(double)need / mib, (double)o->read_iov_size / mib, (double)o->write_iov_size / mib,
		(double)rings / mib, (double)have / mib,
		need <= have
			? ""
			: ": make it larger (in a container --shm-size), or "
			  "hf3fs_iov_size smaller");
	return need <= have ? SKV_OK : SKV_E_NO_SPACE;
}

/* ---- buffers --------------------------------------------------------------------------------- */

int skv_usrbio_pool_make(const struct skv_usrbio_lib *lib, const char *mount_point,
			 const char *name, uint64_t bytes, int numa, struct skv_usrbio_pool *out,
			 struct skv_error *err)
{
	struct slabkv_pool_options o = { .size = sizeof o, .bytes = bytes, .buffer_bytes = bytes,
					 .numa_node = numa,
					  .kind = SLABKV_MEMORY_SHARED, .shm_name = name };
	struct slabkv_pool_info info = { .size = sizeof info };
	struct slabkv_error e;
	int rc;

	skv_mutex_init(&out->lock);
	skv_cond_init(&out->freed);
	out->n_units = (uint32_t)(bytes / SKV_USRBIO_UNIT);
	out->used = skv_calloc((out->n_units + 63) / 64, sizeof *out->used);
	if (!out->used)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	if (slabkv_pool_create(&o, &out->pages, &e) != SLABKV_OK)
		return skv_fail(err, e.code, "hf3fs_iov_size", "%s", e.message);
	(void)slabkv_pool_info(out->pages, &info);
	rc = skv_usrbio_publish(lib, mount_point, info.shm, info.base, bytes, &out->memory, err);
	shm_unlink(info.shm);
	return rc;
}

void skv_usrbio_pool_close(struct skv_usrbio_pool *p)
{
	skv_usrbio_withdraw(&p->memory);
	(void)slabkv_pool_destroy(p->pages);
	skv_free(p->used);
	skv_cond_destroy(&p->freed);
	skv_mutex_destroy(&p->lock);
}

static bool is_used(const struct skv_usrbio_pool *p, uint32_t unit)
{
	return p->used[unit / 64] >> (unit % 64) & 1;
}

static void mark(struct skv_usrbio_pool *p, uint32_t unit, uint32_t n, bool used)
{
	if (!SKV_CHECK(n > 0 && unit < p->n_units && n <= p->n_units - unit) ||
	    !SKV_CHECK(used || p->n_used >= n))
		return;
	for (uint32_t i = unit; i < unit + n; i++)
		p->used[i / 64] ^= 1ull << (i % 64);
	p->n_used = used ? p->n_used + n : p->n_used - n;
}

/* The first of `n` free units that begin in [from, to), or `to`. */
static uint32_t search(const struct skv_usrbio_pool *p, uint32_t from, uint32_t to, uint32_t n)
{
	uint32_t begin = from, at = from;

	while (begin < to && begin + n <= p->n_units) {
		if (at % 64 == 0 && p->used[at / 64] == UINT64_MAX) {
			at += 64;
			begin = at;
		} else if (is_used(p, at)) {
			begin = ++at;
		} else if (++at - begin == n) {
			return begin;
		}
	}
	return to;
}

static uint32_t units_of(uint64_t bytes)
{
	return (uint32_t)((bytes + SKV_USRBIO_UNIT - 1) / SKV_USRBIO_UNIT);
}

uint8_t *skv_usrbio_pool_take(struct skv_usrbio_pool *p, uint64_t bytes)
{
	uint32_t n = units_of(bytes), at;

	skv_mutex_lock(&p->lock);
	at = search(p, p->next, p->n_units, n);
	if (at == p->n_units) {
		at = search(p, 0, p->next, n);
		if (at == p->next)
			at = p->n_units;
	}
	if (at < p->n_units) {
		mark(p, at, n, true);
		p->next = at + n < p->n_units ? at + n : 0;
	}
	skv_mutex_unlock(&p->lock);
	return at < p->n_units ? p->memory.iov.base + (uint64_t)at * SKV_USRBIO_UNIT : NULL;
}

void skv_usrbio_pool_give(struct skv_usrbio_pool *p, const uint8_t *data, uint64_t bytes)
{
	uint64_t at = (uint64_t)(data - p->memory.iov.base) / SKV_USRBIO_UNIT;

	skv_mutex_lock(&p->lock);
	if (SKV_CHECK(at < p->n_units && is_used(p, (uint32_t)at)))
		mark(p, (uint32_t)at, units_of(bytes), false);
	skv_cond_broadcast(&p->freed);
	skv_mutex_unlock(&p->lock);
}

void skv_usrbio_pool_wait(struct skv_usrbio_pool *p, uint32_t ms)
{
	skv_mutex_lock(&p->lock);
	skv_cond_wait_ms(&p->freed, &p->lock, ms);
	skv_mutex_unlock(&p->lock);
}
