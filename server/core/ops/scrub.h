/* scrub.h - portions of slab files to verify. */
#ifndef SKV_CORE_OPS_SCRUB_H
#define SKV_CORE_OPS_SCRUB_H

#include <stdbool.h>
#include <stdint.h>

#include <skv/ops.h>

struct found;
struct move;
struct partition;

/* Returns true if a slab file is due whose last pass began before that time. 0 = any time. Under
 * the read lock. */
bool scrub_due(const struct partition *p, uint64_t before_ms);
/* A portion: f->n slots of f->v, of file f->file, where f->n is 0. */
void scrub_find(struct found *f, uint64_t before_ms, struct skv_scrub_progress *out);
/* The move has verified its portion, which is no open one any more. */
void scrub_finish(struct partition *p, struct move *m);

#endif
