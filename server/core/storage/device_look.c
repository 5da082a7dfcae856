/*
 * device_look.c - the state that a storage's threads see: the partition's view of the storage, and
 * its opened file system. Also wakes the storage's own thread.
 *
 * Takes core->lock or d->lock briefly.
 */
#include "device_look.h"

#include <lock/core.h>
#include <lock/lock.h>
#include <model/device.h>
#include <model/files.h>
#include <model/partition.h>
#include <model/volume.h>
#include <storage/device.h>
#include "remove_files.h"

struct skv_storage *device_use(struct device *d)
{
	struct skv_storage *s;

	skv_mutex_lock(&d->lock);
	s = d->storage ? skv_storage_share(d->storage) : NULL;
	skv_mutex_unlock(&d->lock);
	return s;
}

struct volume *device_volume(const struct partition *p, const struct device *d)
{
	if (p)
		ASSERT_SHARED(p);
	for (uint32_t i = 0; p && i < p->n_volume; i++)
		if (p->volume[i].dev == d)
			return (struct volume *)&p->volume[i];
	return NULL;
}

struct look device_look(struct device *d)
{
	struct skv_pool_stats st;
	struct look k = { 0 };
	const struct volume *s;

	skv_rwlock_read(&d->core->lock);
	s = device_volume(d->core->partition, d);
	if (s)
		k = (struct look){ .loaded = true,
				   .fence = d->core->partition->fence,
				   .files = s->next_file - file_first_number(d->core->number),
				   .next = file_next_number(s),
				   .capacity = s->capacity,
				   .file_bytes = s->file_bytes - s->vanished_bytes,
				   .growing = s->growing,
				   .ending = files_to_remove(s) };
	if (s && s->growing && d->ops->chunked) {
		skv_pool_stats(s->pool, &st);
		k.unwritten = st.file_bytes - st.assigned_bytes;
	}
	skv_rwlock_read_unlock(&d->core->lock);
	return k;
}

void device_measure(struct device *d, const struct look *before, uint64_t free_bytes)
{
	const struct look now = device_look(d);
	const bool still = !before->growing && !now.growing && now.file_bytes == before->file_bytes;

	if (still || d->ops->chunked || atomic_load(&d->fs_free) == UINT64_MAX)
		atomic_store(&d->fs_free, free_bytes);
	if (still && !d->ops->chunked && !d->ops->steady)
		atomic_store(&d->reach, free_bytes > UINT64_MAX - now.file_bytes
						? UINT64_MAX
						: now.file_bytes + free_bytes);
}

int device_not_open(const struct device *d, struct skv_error *err)
{
	return skv_fail(err, SKV_E_UNAVAILABLE, NULL, "storage '%s' is not open", d->name);
}

int device_remove_file(struct device *d, uint32_t file, struct skv_error *err)
{
	struct skv_storage *s = device_use(d);
	int rc = s ? skv_storage_remove_file(s, file, err) : device_not_open(d, err);

	skv_storage_close(s);
	return rc;
}

bool device_grows(struct device *d) { return device_look(d).growing; }

void device_ask(struct device *d)
{
	skv_mutex_lock(&d->lock);
	d->asked = true;
	skv_cond_signal(&d->wake);
	skv_mutex_unlock(&d->lock);
}
