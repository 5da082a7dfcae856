/* end.h - sessions that end without a finish: aborted, or expired. */
#ifndef SKV_CORE_OPS_END_H
#define SKV_CORE_OPS_END_H

#include <stdbool.h>
#include <stdint.h>

#include <skv/ops.h>

#include <journal/change.h>

struct partition;
struct session;

/* NULL: out of memory. */
struct change *session_queue_end(struct partition *p, struct session *s,
				 enum skv_session_state state, bool quiesced);
void session_expire_due(struct partition *p, uint64_t now);

extern const struct change_ops end_ops;

#endif
