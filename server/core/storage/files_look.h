/* files_look.h - checks of slab files by errands (bad_files.c). */
#ifndef SKV_CORE_STORAGE_FILES_LOOK_H
#define SKV_CORE_STORAGE_FILES_LOOK_H

#include <stdbool.h>

struct device;
struct skv_storage;

/* Checks all files, if that was not done since the storage was opened; else the next one and the
 * next bad one; with `small`, reads a small file beside them (SKV_PROBE_READ). Bad files are
 * reported to the partition, and what the storage as a whole is found to be, to health.c. */
void files_look(struct device *d, struct skv_storage *s, bool small);
/* Discards earlier findings: the files were not checked, or the check failed. */
void files_doubt_all(struct device *d);

#endif
