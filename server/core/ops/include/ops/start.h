/*
 * start.h - hands out slots for blocks that are about to be written.
 */
#ifndef SKV_CORE_OPS_START_H
#define SKV_CORE_OPS_START_H

#include <stdint.h>

#include <skv/limits.h>

#include <journal/change.h>

struct block;
struct group;
struct partition;
struct session;
struct skv_bytes;
struct skv_key;

/* Serves the lines of waiting starts as far as space goes. */
void start_serve_waiters(struct partition *p);
void start_fail_line(struct partition *p, struct group *g, int status, const char *text);
void start_fail_waiters(struct partition *p, int status, const char *text);
/* One slot handed to a session's block. */
struct grant {
	uint32_t volume;
	uint32_t slab;
	uint32_t index;
};
/* v[spec][i] belongs to the i-th written block that takes this spec. */
struct grants {
	struct grant *v[SKV_MAX_SPECS];
	uint32_t n[SKV_MAX_SPECS];
};
/* Makes the session's entries and gives them their slots, and names[i] to the block of keys[i] (NULL = none). On
 * SKV_E_NOMEM all slots granted are free again and nothing is linked. Used by start and by replay.
 * `have`: the entries of all keys, NULL = to be looked for. */
int start_link(struct partition *p, struct session *s, struct grants *g, const struct skv_bytes *names,
	       struct block *const *have);
/* SKV_E_CONFLICT: keys[*at] is the same as keys[*first]. SKV_E_NOMEM. */
int keys_duplicate(const struct skv_key *keys, uint32_t n, uint32_t *at, uint32_t *first);

extern const struct change_ops start_ops;

#endif
