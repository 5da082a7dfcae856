/* checksum.h - implementations of skv_checksum; hash.c chooses one. */
#ifndef SKV_CHECKSUM_H
#define SKV_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
#define SKV_CHECKSUM_AVX2 1
/* Only on a processor with AVX2. The same sum as everywhere. */
uint64_t skv_checksum_avx2(const void *p, size_t n);
#endif

#endif
