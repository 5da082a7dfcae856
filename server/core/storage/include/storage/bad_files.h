/* bad_files.h - lost or damaged slab files: each costs only its own blocks. */
#ifndef SKV_CORE_STORAGE_BAD_FILES_H
#define SKV_CORE_STORAGE_BAD_FILES_H

#include <stdbool.h>

struct device;
struct skv_error;
struct volume;

/* Checks that the volume's files exist and are ours (fsck). */
int device_check_files(struct device *d, const struct volume *s, struct skv_error *err);
/* bad_files.c: checks, on the storage's thread and after its marker, the next file and the next bad
 * one, or (`all`) every file. Bad files are reported to the partition; the result is about the
 * storage as a whole. */
int device_look_at_files(struct device *d, bool all, struct skv_error *err);
/* Its files were not checked, or the check failed. */
void device_doubt_files(struct device *d);

#endif
