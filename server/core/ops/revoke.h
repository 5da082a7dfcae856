/*
 * revoke.h - writes of open sessions that are given up because their blocks are removed.
 */
#ifndef SKV_CORE_OPS_REVOKE_H
#define SKV_CORE_OPS_REVOKE_H

#include <stdint.h>

struct change;
struct instance;
struct partition;
struct session_write;
struct settle;
struct skv_key;

/* The change (to be queued) that gives up what sessions of the instance are writing of these keys; *out NULL: nothing
 * is written, or (*behind) that is decided by a change on its way, and has to be asked again after it. */
int revoke_make(struct partition *p, struct instance *inst, const struct skv_key *keys, uint32_t n, struct settle **out,
		struct change **behind);
void revoke_unmark(struct partition *p, const struct session_write *w);

#endif
