/* make_files.h - creates the slab files that a storage grows by. */
#ifndef SKV_CORE_STORAGE_MAKE_FILES_H
#define SKV_CORE_STORAGE_MAKE_FILES_H

struct device;

/* Creates the file that the volume was asked to grow by, if any. */
void make_next_file(struct device *d);

#endif
