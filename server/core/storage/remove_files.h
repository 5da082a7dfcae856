/*
 * remove_files.h - removes drained slab files from registry, pool and file system: an errand
 * (errand.c).
 */
#ifndef SKV_CORE_STORAGE_REMOVE_FILES_H
#define SKV_CORE_STORAGE_REMOVE_FILES_H

#include <stdbool.h>

struct device;
struct volume;

/* With a healthy file system: removes files that are no longer needed. */
void remove_files(struct device *d);
/* Returns true if the removal of a file has a step to do. */
bool files_to_remove(const struct volume *s);

#endif
