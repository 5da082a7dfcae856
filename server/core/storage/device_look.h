/*
 * device_look.h - the state that a storage's threads see: the partition's view of the storage, and
 * its file system.
 */
#ifndef SKV_CORE_STORAGE_DEVICE_LOOK_H
#define SKV_CORE_STORAGE_DEVICE_LOOK_H

#include <stdbool.h>
#include <stdint.h>

struct device;
struct skv_error;
struct skv_storage;

/* The partition's view of this storage. */
struct look {
	bool loaded;
	uint64_t fence; /* of the partition */
	uint32_t files; /* ever created or claimed */
	uint32_t next;  /* number that growth makes */
	uint64_t capacity;
	uint64_t file_bytes;
	uint64_t unwritten; /* bytes in no slab, of files whose space is allocated when written */
	bool growing;
	bool ending; /* files go */
};

struct look device_look(struct device *d);

/* Notes what its file system has free, and so how far its slab files may reach, unless one of them
 * was being made since `before`: some of that one's space was gone already, and all of it is
 * subtracted when it is there. Chunks are allocated when they are written, so files and free bytes
 * do not add up to anything there. */
void device_measure(struct device *d, const struct look *before, uint64_t free_bytes);

/* The open storage, which the caller closes; NULL: not open. */
struct skv_storage *device_use(struct device *d);
int device_not_open(const struct device *d, struct skv_error *err); /* SKV_E_UNAVAILABLE */

#endif
