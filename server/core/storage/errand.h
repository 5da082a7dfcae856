/* errand.h - calls that a file system may keep for long, each on a thread of its own. */
#ifndef SKV_CORE_STORAGE_ERRAND_H
#define SKV_CORE_STORAGE_ERRAND_H

#include <stdbool.h>

struct device;
struct look;

/* All but errands_go_on by the storage's own thread. */

/* Has threads try to write to it and check its slab files, except those that have not returned. */
void errands_try(struct device *d);
/* Has one make and remove slab files, if there are any to make or remove. */
void errands_work(struct device *d, const struct look *k);
/* The reads of errands_try alone, by the ticker; never waits for the file system. */
void errands_go_on(struct device *d);
/* Once its root was opened: waits until it was written to and all its files were checked, as long
 * as one answer follows another. */
void errands_wait(struct device *d);
/* Waits until all have left the file system. */
void errands_join(struct device *d);

#endif
