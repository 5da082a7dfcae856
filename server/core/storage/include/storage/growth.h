/* growth.h - may a volume be used, and may it grow. */
#ifndef SKV_CORE_STORAGE_GROWTH_H
#define SKV_CORE_STORAGE_GROWTH_H

#include <stdbool.h>

struct partition;
struct volume;

/* Enabled, and its device is healthy. */
bool volume_usable(const struct volume *s);
bool volume_takes(const struct volume *s);    /* usable, and new blocks may go there */
bool volume_has_room(const struct volume *s); /* the capacity allows another file */
bool volume_can_grow(const struct partition *p, const struct volume *s);
void volume_ask_growth(struct partition *p, struct volume *s);

#endif
