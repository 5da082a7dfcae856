/*
 * mem.h - memory allocation with fault injection.
 *
 * All allocations of our own code go through these, so that a test can make the n-th one fail
 * (skv_mem_fail_at) and prove that nothing is lost. NULL means out of memory; callers return
 * SKV_E_NOMEM. Any thread may call. Release with skv_free.
 */
#ifndef SKV_MEM_H
#define SKV_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As in the C library, but NULL only means out of memory: size 0 yields a valid pointer. */
void *skv_malloc(size_t size);
void *skv_calloc(size_t n, size_t size);
void *skv_realloc(void *p, size_t size);
char *skv_strdup(const char *s);
void skv_free(void *p);

/* SKV_REGION_BYTES of zeroed memory, aligned to that size; NULL if out of memory. `huge`: in
 * huge pages if possible (fewer TLB misses in random access). Free with skv_region_free (NULL
 * allowed). */
#define SKV_REGION_BYTES ((size_t)2 << 20)
void *skv_region_alloc(bool huge);
void skv_region_free(void *p);

/* Grows *array (elements of `size` bytes) so that it has room for `need` elements; *cap is the
 * current and then the new capacity. The old array stays valid and unchanged on SKV_E_NOMEM. */
int skv_grow(void **array, size_t *cap, size_t need, size_t size);

/* The part of the permitted memory that the process uses. At FULL, from 3/4 on, new entries replace
 * old ones; at TIGHT, from 7/8 on, nothing is added. The rest is for a restart, which needs more
 * memory than running. FULL ends below 7/10. */
enum skv_mem_level { SKV_MEM_FREE, SKV_MEM_FULL, SKV_MEM_TIGHT };
/* Sets the used and the permitted memory, in bytes; `most` 0: no bound. Returns the level. One
 * thread. */
enum skv_mem_level skv_mem_note(uint64_t used, uint64_t most);
/* As noted last; at first FREE, of 0. Any thread. */
enum skv_mem_level skv_mem_level(void);
uint64_t skv_mem_most(void);
/* Returns true if the memory bound is so low (below 512 MiB) that caches and other trades of memory
 * for speed are left out. */
bool skv_mem_is_small(void);

/* Test hook: the n-th allocation from now on fails (n = 1 is the next), once; 0 switches it off. */
void skv_mem_fail_at(unsigned long n);
/* Allocations requested since the last skv_mem_fail_at(n > 0). To count without a failure:
 * skv_mem_fail_at(ULONG_MAX). */
unsigned long skv_mem_count(void);

#endif
