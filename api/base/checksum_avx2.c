/* checksum_avx2.c - XXH3-64 with 256-bit registers. Compiled for AVX2, on x86-64 only. */
#include "checksum.h"

#if SKV_CHECKSUM_AVX2
#define XXH_INLINE_ALL
#include <xxhash.h>

#if XXH_VECTOR != XXH_AVX2
#error "compile this file with -mavx2"
#endif

uint64_t skv_checksum_avx2(const void *p, size_t n) { return XXH3_64bits(p, n); }
#endif
