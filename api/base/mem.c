/*
 * mem.c - malloc, and large regions from mmap, with fault injection.
 *
 * State: two atomic counters, used by tests only; switched off, the cost is one relaxed load. What
 * was noted about the memory in use. Any thread, no locks. Size 0 yields a pointer that can be
 * freed, so that NULL always means "out of memory". This is the only file of the product that calls
 * malloc itself (tests/rules checks).
 */
#include <skv/mem.h>
#include <skv/status.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SMALL_BYTES (512ull << 20)

static atomic_ulong fail_at;
static atomic_ulong counted;
static atomic_int noted_level;
static _Atomic uint64_t noted_most;

static bool fails(void)
{
	unsigned long at = atomic_load_explicit(&fail_at, memory_order_relaxed);

	if (at == 0)
		return false;
	return atomic_fetch_add_explicit(&counted, 1, memory_order_relaxed) + 1 == at;
}

void skv_mem_fail_at(unsigned long n)
{
	atomic_store(&counted, 0);
	atomic_store(&fail_at, n);
}

unsigned long skv_mem_count(void) { return atomic_load(&counted); }

void *skv_malloc(size_t size) { return fails() ? NULL : malloc(size ? size : 1); }

void *skv_calloc(size_t n, size_t size)
{
	return fails() ? NULL : calloc(n ? n : 1, size ? size : 1);
}

void *skv_realloc(void *p, size_t size) { return fails() ? NULL : realloc(p, size ? size : 1); }

void skv_free(void *p) { free(p); }

char *skv_strdup(const char *s)
{
	size_t n = strlen(s) + 1;
	char *p = skv_malloc(n);

	return p ? memcpy(p, s, n) : NULL;
}

void *skv_region_alloc(bool huge)
{
	const size_t n = SKV_REGION_BYTES;
	char *p, *at;

	if (fails())
		return NULL;
	p = mmap(NULL, 2 * n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	at = (char *)(((uintptr_t)p + n - 1) & ~(uintptr_t)(n - 1));
	if (at > p)
		munmap(p, (size_t)(at - p));
	munmap(at + n, (size_t)(p + n - at));
	if (huge)
		madvise(at, n, MADV_HUGEPAGE); /* a wish */
	return at;
}

void skv_region_free(void *p)
{
	if (p)
		munmap(p, SKV_REGION_BYTES);
}

enum skv_mem_level skv_mem_note(uint64_t used, uint64_t most)
{
	const bool was = skv_mem_level() != SKV_MEM_FREE;
	enum skv_mem_level level = SKV_MEM_FREE;

	if (most && used >= most / 8 * 7)
		level = SKV_MEM_TIGHT;
	else if (most && used >= (was ? most / 10 * 7 : most / 4 * 3))
		level = SKV_MEM_FULL;
	atomic_store(&noted_most, most);
	atomic_store(&noted_level, (int)level);
	return level;
}

enum skv_mem_level skv_mem_level(void)
{
	return (enum skv_mem_level)atomic_load_explicit(&noted_level, memory_order_relaxed);
}

uint64_t skv_mem_most(void) { return atomic_load_explicit(&noted_most, memory_order_relaxed); }

bool skv_mem_is_small(void)
{
	const uint64_t most = skv_mem_most();

	return most && most < SMALL_BYTES;
}

int skv_grow(void **array, size_t *cap, size_t need, size_t size)
{
	size_t n = *cap ? *cap : 8;
	void *p;

	if (need <= *cap)
		return SKV_OK;
	while (n < need) {
		if (n > SIZE_MAX / 2)
			return SKV_E_NOMEM;
		n *= 2;
	}
	if (n > SIZE_MAX / size)
		return SKV_E_NOMEM;
	p = skv_realloc(*array, n * size);
	if (!p)
		return SKV_E_NOMEM;
	*array = p;
	*cap = n;
	return SKV_OK;
}
