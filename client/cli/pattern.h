/*
 * pattern.h - block contents as a pure function of instance, spec and key, so that a reader with
 * only the key can check every byte. Stateless.
 */
#ifndef SKV_CLI_PATTERN_H
#define SKV_CLI_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

uint64_t skv_pattern_seed(const char *instance, uint32_t spec, uint64_t key);
void skv_pattern_fill(void *data, size_t size, uint64_t seed);
/* Returns true if every byte is as skv_pattern_fill makes it. */
bool skv_pattern_check(const void *data, size_t size, uint64_t seed);

#endif
