/* remove.h - removal of blocks, by deletion or eviction. */
#ifndef SKV_CORE_EVICT_REMOVE_H
#define SKV_CORE_EVICT_REMOVE_H

#include <stddef.h>

#include <journal/change.h>

struct block;
struct partition;
struct picks;
struct removal;

int remove_mark(struct partition *p, struct picks *k, struct block *b);
/* Marks some of the block's committed specs likewise. */
int remove_mark_specs(struct partition *p, struct picks *k, struct block *b, uint32_t specs);
int remove_queue(struct partition *p, struct picks *k, struct change **out);
void remove_cancel(struct partition *p, struct picks *k);
/* Applies the durable record of these removals. */
void removals_apply(struct partition *p, const struct removal *v, size_t n);

extern const struct change_ops remove_ops;
extern const struct record_ops remove_slots_record; /* the second type of record written here */

#endif
