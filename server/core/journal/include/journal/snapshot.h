/*
 * snapshot.h - a copy of the partition as it is between two batches, taken while everything goes on.
 */
#ifndef SKV_CORE_JOURNAL_SNAPSHOT_H
#define SKV_CORE_JOURNAL_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>

struct partition;
struct skv_buf;

void snapshot_abort(struct partition *p);
/* Under the write lock, by the committer between two batches. */
void snapshot_begin(struct partition *p, uint64_t barrier);
void snapshot_end(struct partition *p);
/* Records of those that run, for a checkpoint or a reign; `exact`: what this reign has given is told otherwise. */
void horizons_put(struct skv_buf *out, struct partition *p, bool exact);

#endif
