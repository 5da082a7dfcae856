/*
 * device.h - a storage's own thread: opens its root, watches its health, checks and creates slab
 * files.
 */
#ifndef SKV_CORE_STORAGE_DEVICE_H
#define SKV_CORE_STORAGE_DEVICE_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#include <model/device.h>

struct device;
struct partition;
struct skv_core;
struct slot;
struct skv_error;
struct skv_storage;
struct skv_storage_spec;
struct volume;
struct volume_file;

int device_make(struct skv_core *c, const struct skv_storage_spec *s, uint32_t id,
		const uint8_t uuid[16], struct device **out);
/* Takes over all mutable settings except capacity and enabled. Under the write lock, or before the
 * device is shared. */
int device_describe(struct device *d, const struct skv_storage_spec *s);
void device_forget_description(struct device *d); /* the last that happens to it */
bool device_same_masters(const struct device *d, const struct skv_storage_spec *s);
int device_start(struct device *d);
void device_ask(struct device *d); /* wakes its thread */
void device_destroy(struct device *d); /* stops its thread first */
/* Makes a step of the device's thread: opens and checks the root, has errands run. */
void device_step(struct device *d);
/* Opens the root for the first time, so that a bad one is refused at once. */
int device_open(struct device *d, bool may_create, struct skv_error *err);
/* Called when the storage was opened and claimed: it takes blocks until the device's thread finds a
 * fault. */
void device_opened(struct device *d);
bool device_grows(struct device *d);
/* Returns the reason why no block may be written to the storage, or (`reads`) none of its blocks
 * may be read. Reads stay allowed if no fs-master answers, because that says nothing about the
 * clients' mounts. */
enum storage_fault device_fault(const struct device *d, bool reads);
bool device_healthy(const struct device *d);
bool device_readable(const struct device *d);
/* Logs and counts changes of health. By the ticker. */
void devices_watch(struct skv_core *c);
/* Returns true if the bytes of a slot can be read now, as far as is known. */
bool slot_serves(const struct partition *p, const struct slot *s);
/* The file system's part of a removal. Once the file is gone it keeps
 * returning SKV_OK. */
int device_remove_file(struct device *d, uint32_t file, struct skv_error *err);
/* Returns the device's volume; NULL: the partition has none, or there is no partition. */
struct volume *device_volume(const struct partition *p, const struct device *d);
/* Ends the devices of storages deleted by another manager, once they have left their file
 * systems. */
void devices_sweep(struct skv_core *c);
struct device *device_find(const struct skv_core *c, uint32_t id);
int device_add(struct skv_core *c, struct device *d); /* under the write lock */
/* Asks its thread to end once it has left the file system; has it? */
void device_ask_stop(struct device *d);
bool device_stopped(const struct device *d);
/* A call of any kind into its file system has not returned for long. */
bool device_hangs(const struct device *d);
/* Under the write lock: removes the device and its (empty) volume from core and partition. */
void device_remove(struct skv_core *c, struct device *d);
/* Ends its thread, removes its files while this fence is the newest, destroys it. */
void device_retire(struct device *d, uint64_t fence, const struct volume_file *files, size_t n);

#endif
