/*
 * finish.h - what the files that end sessions, or single writes of them, call of each other.
 */
#ifndef SKV_CORE_FINISH_H
#define SKV_CORE_FINISH_H

#include "change.h"

/* ---- end.c ------------------------------------------------------------------------------------------ */

/* NULL: out of memory. */
struct change *session_queue_end(struct partition *p, struct session *s, enum skv_session_state state, bool quiesced);

/* ---- settle.c --------------------------------------------------------------------------------------- */

/* So many writes, which are marked as SETTLING, are committed or given up. */
struct settle {
	struct change change;
	struct settled *v;
	uint32_t n;
	uint32_t committed; /* once it is applied */
	uint32_t given_up;
};
/* NULL: out of memory. */
struct settle *settle_make(void);
/* Writes its record. SKV_E_NOMEM. */
int settle_record(struct settle *s);
/* It is not queued after all: the marks go, and it is destroyed. NULL is fine. */
void settle_drop(struct partition *p, struct settle *s);

/* ---- revoke.c --------------------------------------------------------------------------------------- */

/* The change (to be queued) that gives up what sessions of the instance are writing of these keys; *out NULL: nothing
 * is written, or (*behind) that is decided by a change on its way, and has to be asked again after it. */
int revoke_make(struct partition *p, struct instance *inst, const struct skv_key *keys, uint32_t n, struct settle **out,
		struct change **behind);
void revoke_unmark(struct partition *p, const struct session_write *w);

#endif
