/* bad_files.h - lost or damaged slab files: each costs only its own blocks. */
#ifndef SKV_CORE_STORAGE_BAD_FILES_H
#define SKV_CORE_STORAGE_BAD_FILES_H

#include <stdbool.h>

struct device;
struct skv_error;
struct volume;

/* Checks that the volume's files exist and are ours (fsck). */
int device_check_files(struct device *d, const struct volume *s, struct skv_error *err);

#endif
