/*
 * device.h - a storage's own thread: opens its root, watches its health, checks and makes slab files.
 */
#ifndef SKV_CORE_STORAGE_DEVICE_H
#define SKV_CORE_STORAGE_DEVICE_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

struct device;
struct partition;
struct skv_core;
struct skv_error;
struct skv_storage;
struct skv_storage_spec;
struct volume;
struct volume_file;

int device_make(struct skv_core *c, const struct skv_storage_spec *s, uint32_t id, const uint8_t uuid[16],
		struct device **out);
/* Takes what may change besides capacity and enabled. Under the write lock, or before anybody knows the device. */
int device_describe(struct device *d, const struct skv_storage_spec *s);
bool device_same_masters(const struct device *d, const struct skv_storage_spec *s);
int device_start(struct device *d);
void device_ask(struct device *d); /* its thread takes a step at once */
void device_destroy(struct device *d); /* stops its thread first */
/* One step of its thread: open, probe, check files; what files are to be made or removed is its second thread's. */
void device_step(struct device *d);
/* Opens the root for the first time, so that a bad one is refused at once. */
int device_open(struct device *d, bool may_create, struct skv_error *err);
/* Makes the file that the volume grows by. By the second thread. */
void device_grow(struct device *d);
bool device_grows(struct device *d);
bool device_healthy(const struct device *d);
/* May what lies there be looked up? Also when no fs-master answers, which says nothing of the clients' mounts. */
bool device_readable(const struct device *d);
/* Around a call into its file system. */
void device_enter(struct device *d);
void device_leave(struct device *d);
/* By its second thread: the file system's part of it. Once the file is gone it stays SKV_OK. */
int device_remove_file(struct device *d, uint32_t file, struct skv_error *err);
/* Its space; NULL: the partition has none, or there is no part. */
struct volume *device_volume(const struct partition *p, const struct device *d);
/* Of storages that another manager has deleted: they end, once they are out of their file systems. */
void devices_sweep(struct skv_core *c);
struct device *device_find(const struct skv_core *c, uint32_t id);
int device_add(struct skv_core *c, struct device *d); /* under the write lock */
/* Its thread ends once it is out of the file system; has it? */
void device_ask_stop(struct device *d);
bool device_stopped(const struct device *d);
/* A call into its file system has not come back for long. */
bool device_hangs(const struct device *d);
/* Under the write lock: the core and its share forget the device and its (empty) space. */
void device_remove(struct skv_core *c, struct device *d);
/* Ends its thread, removes its files as long as this fence is the newest, destroys it. */
void device_retire(struct device *d, uint64_t fence, const struct volume_file *files, size_t n);

#endif
