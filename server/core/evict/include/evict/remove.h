/*
 * remove.h - blocks on their way out, by deletion or eviction.
 */
#ifndef SKV_CORE_EVICT_REMOVE_H
#define SKV_CORE_EVICT_REMOVE_H

#include <stddef.h>

#include <journal/change.h>

struct block;
struct partition;
struct picks;
struct removal;

int remove_mark(struct partition *p, struct picks *k, struct block *b);
int remove_queue(struct partition *p, struct picks *k, struct change **out);
void remove_cancel(struct partition *p, struct picks *k);
/* They are gone: what a record of them does when it is durable. */
void removals_apply(struct partition *p, const struct removal *v, size_t n);

extern const struct change_ops remove_ops;

#endif
