/* start.h - opens write sessions: hands out slots for blocks about to be written. */
#ifndef SKV_CORE_OPS_START_H
#define SKV_CORE_OPS_START_H

#include <stdint.h>

#include <skv/core.h>
#include <skv/limits.h>

#include <journal/change.h>

struct block;
struct group;
struct partition;
struct session;
struct skv_bytes;
struct skv_key;

/* skv_core_start for what the manager itself copies: no tenant's blocks_per_s pays for it. */
__typeof__(skv_core_start) start_begin;
/* Serves waiting starts, queue by queue, as far as there are slots. */
void start_serve_waiters(struct partition *p);
void start_fail_line(struct partition *p, struct group *g, int status, const char *text);
void start_fail_waiters(struct partition *p, int status, const char *text);
/* Starts that wait for room, of an instance: all, or those that are to write one of the keys, and
 * that were called in this time. */
struct waiting_of {
	const char *tenant, *instance;
	const struct skv_key *keys;
	uint32_t n_keys; /* 0 = all, begun from from_ms to to_ms (wall, inclusive) */
	uint64_t from_ms, to_ms;
};
/* Ends the waiting starts with SKV_E_SESSION_ENDED, because their blocks are deleted. SKV_E_NOMEM:
 * none has ended. */
int start_end_waiting(struct partition *p, const struct waiting_of *of);
/* A slot given to a session's block. */
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
/* Creates the session's entries and gives them their slots; names[i] names the block of keys[i]
 * (NULL = none). On SKV_E_NOMEM all granted slots are free again and nothing is linked. Used by
 * start and by replay. `have[i]`: the entry of key i; NULL: there is none. */
int start_link(struct partition *p, struct session *s, struct grants *g,
	       const struct skv_bytes *names, struct block *const *have);
/* Reverses it, for a start that never became durable: the slots are free at once. */
void start_unlink(struct partition *p, struct session *s);

extern const struct change_ops start_ops;

#endif
