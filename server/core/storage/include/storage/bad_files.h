/*
 * bad_files.h - slab files that are lost or damaged: each costs its own blocks, and nothing else.
 */
#ifndef SKV_CORE_STORAGE_BAD_FILES_H
#define SKV_CORE_STORAGE_BAD_FILES_H

#include <stdbool.h>

struct device;
struct skv_error;
struct volume;

/* Looks whether the files of the volume are there and ours (fsck). */
int device_check_files(struct device *d, const struct volume *s, struct skv_error *err);
/* bad_files.c: by its thread, the marker being well: one file in turn and one of the bad ones, or (`all`) all of them. A file
 * that is not well is told to the partition; what is returned is about the storage as a whole. */
int device_look_at_files(struct device *d, bool all, struct skv_error *err);
/* Its files were not looked at, or in vain. */
void device_doubt_files(struct device *d);

#endif
