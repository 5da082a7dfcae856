/* snapshot.h - a copy of the partition as of the end of a batch, taken while calls go on. */
#ifndef SKV_CORE_JOURNAL_SNAPSHOT_H
#define SKV_CORE_JOURNAL_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct partition;
struct skv_buf;

void snapshot_abort(struct partition *p);
/* Under the write lock, by the committer between two batches. */
void snapshot_begin(struct partition *p, uint64_t barrier);
/* Copies at most `most` chunks. SKV_PENDING: more are left. *out, which the caller destroys, gets
 * all copied bytes once they fill a slice, or are the last ones. SKV_E_NOMEM: the snapshot has
 * failed. */
int snapshot_copy(struct partition *p, uint32_t most, size_t slice, struct skv_buf *out);
/* The other records, once all chunks were copied; for the caller to destroy. */
void snapshot_take_tail(struct partition *p, struct skv_buf *leases, struct skv_buf *tail);
/* stored: as a checkpoint, which has what the journal had before it. */
void snapshot_end(struct partition *p, bool stored);
void snapshot_free(struct partition *p); /* with the partition */
/* How long the journal gets until the next checkpoint begins, and at most: bytes. A checkpoint
 * writes at most twice the journal that it replaces, so both grow with it. */
uint64_t journal_due(const struct partition *p);
uint64_t journal_bound(const struct partition *p);
/* Records of the running horizons, for a checkpoint or a takeover; `exact`: only those of leases
 * loaded with the partition, because this ownership's are stored one by one. */
void horizons_put(struct skv_buf *out, struct partition *p, bool exact);

#endif
