/*
 * pattern.h - bytes of a block as a pure function of instance, spec and key, so that a reader who
 * has only the key can check every byte. No state.
 */
#ifndef KVB_CLI_PATTERN_H
#define KVB_CLI_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

uint64_t kvb_pattern_seed(const char *instance, uint32_t spec, uint64_t key);
void kvb_pattern_fill(void *data, size_t size, uint64_t seed);
/* True when every byte is as kvb_pattern_fill makes it. */
bool kvb_pattern_check(const void *data, size_t size, uint64_t seed);

#endif
