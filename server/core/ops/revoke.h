/* revoke.h - gives up writes of open sessions whose blocks are removed. */
#ifndef SKV_CORE_OPS_REVOKE_H
#define SKV_CORE_OPS_REVOKE_H

#include <stdint.h>

struct change;
struct instance;
struct partition;
struct session_write;
struct partial;
struct skv_key;

/* Makes a change (to be queued) that gives up what the instance's sessions are writing of these
 * keys. *out NULL: nothing is being written, or (*behind) a change in flight decides that: ask
 * again after it. */
int revoke_make(struct partition *p, struct instance *inst, const struct skv_key *keys, uint32_t n,
		struct partial **out, struct change **behind);
void revoke_unmark(struct partition *p, const struct session_write *w);

#endif
