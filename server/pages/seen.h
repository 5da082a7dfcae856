/*
 * seen.h - which keys of a request came before: a table of positions. Lives in an arena; no other state.
 */
#ifndef KVB_PAGES_SEEN_H
#define KVB_PAGES_SEEN_H

#include <stdbool.h>
#include <stdint.h>

#include <kvb/arena.h>
#include <kvb/hash.h>

struct seen {
	uint32_t *at; /* position + 1 in the caller's keys, 0 = none */
	uint32_t mask;
};

/* For n keys. False: out of memory. */
bool seen_init(struct seen *s, struct kvb_arena *a, uint32_t n);
/* Where the position + 1 of `key` stands, or is to be stored: 0 = it is not known yet. */
uint32_t *seen_find(const struct seen *s, const struct kvb_key *keys, struct kvb_key key);

#endif
