/*
 * growth.h - may a space be used, and may it grow: what its device and its capacity say.
 */
#ifndef SKV_CORE_STORAGE_GROWTH_H
#define SKV_CORE_STORAGE_GROWTH_H

#include <stdbool.h>

struct partition;
struct space;

/* Bytes that this space can hand out now without eviction, for one spec. */
bool space_usable(const struct space *s);
bool space_takes(const struct space *s);    /* usable, and new blocks may go there */
bool space_has_room(const struct space *s); /* the capacity allows another file */
bool space_can_grow(const struct partition *p, const struct space *s);
void space_ask_growth(struct partition *p, struct space *s);

#endif
