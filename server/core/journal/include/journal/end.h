/*
 * end.h - where a partition's journal ends: the number of the newest record, and its link to the
 * one before. Under the write lock, or by the thread that loads the partition.
 */
#ifndef SKV_CORE_JOURNAL_END_H
#define SKV_CORE_JOURNAL_END_H

#include <stddef.h>
#include <stdint.h>

#include <model/partition.h>

struct skv_buf;

/* The end after this batch, which is number `number`. */
struct journal_end journal_end_of(const struct partition *p, uint64_t number,
				  const struct skv_buf *batch);
/* A batch of n bytes was appended; or read, after its link (journal_link) was. */
void journal_appended(struct partition *p, struct journal_end end, size_t n);
void journal_read(struct partition *p, uint64_t seq, const void *batch, size_t n);
void journal_link(struct partition *p, const struct journal_end *end);
/* The checkpoint has all up to `seq`. */
void journal_seq_least(struct partition *p, uint64_t seq);
/* All that was appended survives a power loss. */
void journal_is_durable(struct partition *p);

#endif
