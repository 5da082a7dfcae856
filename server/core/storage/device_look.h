/*
 * device_look.h - what a storage's threads see: the partition's view of it, and its file system.
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

/* The open storage, which the caller closes; NULL: not open. */
struct skv_storage *device_use(struct device *d);
int device_not_open(const struct device *d, struct skv_error *err); /* SKV_E_UNAVAILABLE */

#endif
