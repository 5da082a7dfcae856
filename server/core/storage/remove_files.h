/*
 * remove_files.h - slab files that are drained: dropped from registry, pool and file system, by the device's second thread.
 */
#ifndef SKV_CORE_STORAGE_REMOVE_FILES_H
#define SKV_CORE_STORAGE_REMOVE_FILES_H

#include <stdbool.h>

struct device;
struct volume;

/* By the device's second thread, its file system being well: files that nobody needs any more go. */
void remove_files(struct device *d);
/* Is there a file whose removal has a step to take? */
bool files_to_remove(const struct volume *s);

#endif
