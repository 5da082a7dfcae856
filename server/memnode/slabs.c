/*
 * slabs.c - the slabs of a memory node: memfds, so that clients of this host can map them and the
 * kernel takes them back with the last user, whatever ends the node.
 *
 * Owns the table of slabs. Memory is allocated when a slab is made, placed by NUMA node before, and
 * sealed against a change of its length. Any thread; the lock is not held while memory is
 * allocated: managers make one slab of a storage at a time, and a second caller finds the slab
 * made.
 */
#include "memnode.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <numa.h>
#include <numaif.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <skv/log.h>
#include <skv/mem.h>
#include <skv/superblock.h>

#ifndef MFD_HUGE_SHIFT
#define MFD_HUGE_SHIFT 26
#endif
#define HUGE_2M (MFD_HUGETLB | 21u << MFD_HUGE_SHIFT)
#define HUGE_1G (MFD_HUGETLB | 30u << MFD_HUGE_SHIFT)

/* ---- resources of this host ------------------------------------------------------------------ */

static uint64_t free_huge_pages(uint64_t page)
{
	char path[96];
	unsigned long long n = 0;
	FILE *f;

	snprintf(path, sizeof path, "/sys/kernel/mm/hugepages/hugepages-%llukB/free_hugepages",
		 (unsigned long long)(page >> 10));
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%llu", &n) != 1)
		n = 0;
	fclose(f);
	return n;
}

static int take_pages(struct slabs *s, const char *pages, struct skv_error *err)
{
	const bool any = strcmp(pages, "auto") == 0;
	const uint64_t page = strcmp(pages, "1G") == 0 ? 1ull << 30 : 2ull << 20;
	uint64_t need = (s->size + page - 1) / page, there;

	s->page = (uint64_t)sysconf(_SC_PAGESIZE);
	s->huge = 0;
	if (strcmp(pages, "normal") == 0)
		return SKV_OK;
	there = free_huge_pages(page);
	if (there >= need) {
		s->page = page;
		s->huge = page == 1ull << 30 ? HUGE_1G : HUGE_2M;
		return SKV_OK;
	}
	if (any)
		return SKV_OK;
	return skv_fail(err, SKV_E_NO_SPACE, "memory_pages",
			"%llu free huge pages of %s are needed and %llu are there: reserve them "
			"(/sys/kernel/mm/hugepages/hugepages-%llukB/nr_hugepages), or start with "
			"--memory-pages auto",
			(unsigned long long)need, pages, (unsigned long long)there,
			(unsigned long long)(page >> 10));
}

/* Returns true if this process may use that node. A kernel without NUMA has node 0. */
static bool may_use(const struct bitmask *allowed, unsigned long node)
{
	return allowed ? node < allowed->size && numa_bitmask_isbitset(allowed, (unsigned)node)
		       : node == 0;
}

/* "0,2" */
static int take_numa(struct slabs *s, const char *text, struct skv_error *err)
{
	struct bitmask *allowed;
	bool good = true;

	if (!text[0])
		return SKV_OK;
	allowed = numa_available() < 0 ? NULL : numa_get_mems_allowed();
	s->numa = numa_allocate_nodemask();
	if (!s->numa) {
		numa_bitmask_free(allowed);
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	}
	for (const char *at = text; *at && good;) {
		char *end;
		unsigned long node = isdigit((unsigned char)*at) ? strtoul(at, &end, 10)
								 : ULONG_MAX;

		good = may_use(allowed, node) && (*end == '\0' || (*end == ',' && end[1]));
		if (good) {
			numa_bitmask_setbit(s->numa, (unsigned)node);
			at = *end ? end + 1 : end;
		}
	}
	numa_bitmask_free(allowed);
	return good ? SKV_OK
		    : skv_fail(err, SKV_E_INVALID, "memory_numa",
			       "memory_numa: '%.60s' does not name NUMA nodes that this process "
			       "may use, with commas: numactl --show lists them",
			       text);
}

int slabs_init(struct slabs *s, const struct skv_memory_options *o, struct skv_error *err)
{
	const uint64_t all = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	int rc;

	*s = (struct slabs){ .size = o->size };
	skv_mutex_init(&s->lock);
	if (o->size == 0)
		return skv_fail(err, SKV_E_INVALID, "memory",
				"a memory node needs the bytes that it may offer: --memory 64G");
	if (o->size > all)
		return skv_fail(err, SKV_E_INVALID, "memory",
				"this host has %llu bytes of memory: offer less than that",
				(unsigned long long)all);
	rc = take_pages(s, o->pages, err);
	if (rc == SKV_OK)
		rc = take_numa(s, o->numa, err);
	return rc;
}

/* ---- one slab -------------------------------------------------------------------------------- */

static void slab_free(struct slab *b)
{
	assert(b->refs == 0);
	mem_rdma_unregister(b); /* first: afterwards no client reaches its memory */
	if (b->base)
		munmap(b->base, b->mapped);
	if (b->fd >= 0)
		close(b->fd);
	if (b->read_fd >= 0)
		close(b->read_fd);
	skv_free(b);
}

static int no_memory(const struct slabs *s, int error, struct skv_error *err)
{
	return skv_fail(err, SKV_E_NO_SPACE, NULL, "%s for a slab: %s",
			s->huge ? "no huge pages are left" : "no memory is left", strerror(error));
}

/* A descriptor of the same memory that cannot write. */
static int reopen_to_read(int fd)
{
	char path[40];

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static int map_slab(const struct slabs *s, struct slab *b, struct skv_error *err)
{
	b->fd = memfd_create("slabkv-slab", MFD_CLOEXEC | MFD_ALLOW_SEALING | s->huge);
	if (b->fd < 0 || ftruncate(b->fd, (off_t)b->mapped) != 0)
		return no_memory(s, errno, err);
	b->base = mmap(NULL, b->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, b->fd, 0);
	if (b->base == MAP_FAILED) {
		b->base = NULL;
		return no_memory(s, errno, err);
	}
	/* The kernel takes one from the number of bits. */
	if (s->numa &&
	    mbind(b->base, b->mapped, MPOL_INTERLEAVE, s->numa->maskp, s->numa->size + 1, 0) != 0)
		return skv_fail(err, SKV_E_INVALID, "memory_numa",
				"a slab cannot be placed on these NUMA nodes: %s", strerror(errno));
	if (fallocate(b->fd, 0, 0, (off_t)b->mapped) != 0)
		return no_memory(s, errno, err);
	b->read_fd = reopen_to_read(b->fd);
	if (b->read_fd < 0 ||
	    fcntl(b->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
		return skv_fail(err, SKV_E_IO, NULL, "a slab cannot be shared: %s",
				strerror(errno));
	return SKV_OK;
}

/* ---- the table ------------------------------------------------------------------------------- */

/* Where the slab of this number is, or would be. */
static size_t place_locked(const struct slabs *s, uint32_t file) SKV_REQUIRES(s->lock)
{
	size_t lo = 0, hi = s->n;

	assert(skv_mutex_held(&s->lock));
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (s->v[mid]->file < file)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static struct slab *find_locked(const struct slabs *s, uint32_t file) SKV_REQUIRES(s->lock)
{
	size_t at = place_locked(s, file);

	return at < s->n && s->v[at]->file == file ? s->v[at] : NULL;
}

static int same_length(const struct slab *b, uint64_t length, struct skv_error *err)
{
	if (b->length == length)
		return SKV_OK;
	return skv_fail(err, SKV_E_FOREIGN, NULL, "slab %u has %llu bytes, not %llu", b->file,
			(unsigned long long)b->length, (unsigned long long)length);
}

/* Takes the bytes from what is left. SKV_PENDING: they are reserved; SKV_OK: it is made already. */
static int reserve(struct slabs *s, uint32_t file, uint64_t length, uint64_t bytes,
		   struct skv_error *err)
{
	const struct slab *there;
	int rc = SKV_PENDING;

	skv_mutex_lock(&s->lock);
	there = find_locked(s, file);
	if (there)
		rc = same_length(there, length, err);
	else if (bytes > s->size - s->used)
		rc = skv_fail(err, SKV_E_NO_SPACE, NULL,
			      "this memory node has %llu of its %llu bytes left",
			      (unsigned long long)(s->size - s->used), (unsigned long long)s->size);
	else
		s->used += bytes;
	assert(s->used <= s->size);
	skv_mutex_unlock(&s->lock);
	return rc;
}

/* Returns false if the slab was made meanwhile, or there is no memory for the table. */
static bool insert(struct slabs *s, struct slab *b)
{
	size_t at;
	bool good;

	skv_mutex_lock(&s->lock);
	at = place_locked(s, b->file);
	good = !(at < s->n && s->v[at]->file == b->file) &&
	       skv_grow((void **)&s->v, &s->cap, s->n + 1, sizeof *s->v) == SKV_OK;
	if (good) {
		memmove(s->v + at + 1, s->v + at, (s->n - at) * sizeof *s->v);
		s->v[at] = b;
		s->n++;
	} else {
		s->used -= b->mapped;
	}
	skv_mutex_unlock(&s->lock);
	return good;
}

int slabs_create(struct slabs *s, const struct skv_superblock *sb, struct skv_error *err)
{
	uint64_t bytes = (sb->length + s->page - 1) / s->page * s->page;
	struct slab *b;
	int rc;

	assert(sb->length > 2 * SKV_SUPERBLOCK_SIZE && sb->file != SKV_NO_FILE);
	rc = reserve(s, sb->file, sb->length, bytes, err);
	if (rc != SKV_PENDING)
		return rc;
	b = skv_calloc(1, sizeof *b);
	if (b) {
		*b = (struct slab){ .file = sb->file, .length = sb->length, .mapped = bytes,
				    .fd = -1, .read_fd = -1 };
		rc = map_slab(s, b, err);
		if (rc == SKV_OK)
			rc = mem_rdma_register(s->rdma, b, err);
	} else {
		rc = skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	}
	if (rc != SKV_OK) {
		skv_mutex_lock(&s->lock);
		s->used -= bytes;
		skv_mutex_unlock(&s->lock);
		if (b)
			slab_free(b);
		return rc;
	}
	skv_superblock_encode(sb, b->base);
	memcpy(b->base + b->length - SKV_SUPERBLOCK_SIZE, b->base, SKV_SUPERBLOCK_SIZE);
	if (!insert(s, b)) {
		slab_free(b);
		return slabs_check(s, sb->file, sb->length, err);
	}
	return SKV_OK;
}

int slabs_check(struct slabs *s, uint32_t file, uint64_t length, struct skv_error *err)
{
	const struct slab *b;
	int rc;

	skv_mutex_lock(&s->lock);
	b = find_locked(s, file);
	rc = b ? same_length(b, length, err)
	       : skv_fail(err, SKV_E_NOT_FOUND, NULL,
			  "slab %u is not in this epoch of the memory node", file);
	skv_mutex_unlock(&s->lock);
	return rc;
}

struct slab *slabs_use(struct slabs *s, uint32_t file)
{
	struct slab *b;

	skv_mutex_lock(&s->lock);
	b = find_locked(s, file);
	if (b)
		b->refs++;
	skv_mutex_unlock(&s->lock);
	assert(!b || !b->removed);
	return b;
}

void slabs_unuse(struct slabs *s, struct slab *b)
{
	bool last;

	skv_mutex_lock(&s->lock);
	assert(b->refs > 0);
	last = --b->refs == 0 && b->removed;
	skv_mutex_unlock(&s->lock);
	if (last)
		slab_free(b);
}

void slabs_remove(struct slabs *s, uint32_t file)
{
	struct slab *b;
	size_t at;

	skv_mutex_lock(&s->lock);
	at = place_locked(s, file);
	b = at < s->n && s->v[at]->file == file ? s->v[at] : NULL;
	if (b) {
		/* Clears the magic, so that processes that map the slab detect its end. */
		memset(b->base, 0, 8);
		memmove(s->v + at, s->v + at + 1, (s->n - at - 1) * sizeof *s->v);
		s->n--;
		s->used -= b->mapped;
		b->removed = true;
		if (b->refs > 0)
			b = NULL; /* the last user frees it */
	}
	skv_mutex_unlock(&s->lock);
	if (b)
		slab_free(b);
}

void slabs_destroy(struct slabs *s)
{
	while (s->n > 0)
		slabs_remove(s, s->v[s->n - 1]->file);
	assert(s->used == 0);
	numa_bitmask_free(s->numa);
	skv_free(s->v);
	skv_mutex_destroy(&s->lock);
}

uint64_t slabs_free_bytes(struct slabs *s)
{
	uint64_t n;

	skv_mutex_lock(&s->lock);
	n = s->size - s->used;
	skv_mutex_unlock(&s->lock);
	return n;
}

uint32_t slabs_count(struct slabs *s)
{
	uint32_t n;

	skv_mutex_lock(&s->lock);
	n = (uint32_t)s->n;
	skv_mutex_unlock(&s->lock);
	return n;
}
