/*
 * chunks.c - tells in the log what an instance's sizes cost on 3FS.
 *
 * 3FS writes whole chunks: a write of part of one reads and rewrites it. Slots lie at multiples of the spec's size, so a
 * size that is not whole chunks touches some that are its neighbours' too. Blocks with the file system; no state.
 */
#include "meta.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include <kvb/log.h>

static uint64_t greatest_common_divisor(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

uint64_t kvcm_chunks_touched(uint64_t size, uint64_t chunk)
{
	/* Slots begin at all multiples of this in a chunk; the last of them reaches furthest. */
	uint64_t step = greatest_common_divisor(size, chunk);

	return (size + chunk - step + chunk - 1) / chunk;
}

static void tell(const struct kvb_instance_spec *instance, const struct kvb_storage_spec *storage)
{
	struct stat st;

	if (stat(storage->root, &st) != 0 || st.st_blksize <= 0)
		return;
	for (uint32_t i = 0; i < instance->n_specs; i++) {
		uint64_t size = instance->specs[i].size, chunk = (uint64_t)st.st_blksize;
		uint64_t touched = kvcm_chunks_touched(size, chunk);

		if (touched * chunk == size)
			continue;
		kvb_log(KVB_LOG_WARN, "kvcm",
			"instance %s on storage %s: spec %s of %" PRIu64 " bytes is not whole chunks of %" PRIu64
			": 3FS writes up to %" PRIu64 ".%02" PRIu64 " times its bytes",
			instance->id, storage->name, instance->specs[i].name, size, chunk, touched * chunk / size,
			touched * chunk % size * 100 / size);
	}
}

void kvcm_tell_chunks(struct kvcm_call *k, const struct kvb_instance_spec *instance)
{
	struct kvb_storage_view *storages;
	struct kvb_group_view *v;
	struct kvb_error ignored;
	uint32_t n, n_storages;

	if (kvb_core_groups(kvcm_core(k), instance->group, &k->c->arena, &v, &n, &ignored) != KVB_OK ||
	    kvb_core_storages(kvcm_core(k), NULL, &k->c->arena, &storages, &n_storages, &ignored) != KVB_OK)
		return;
	for (uint32_t i = 0; i < n_storages; i++)
		for (uint32_t s = 0; strcmp(storages[i].spec.type, "hf3fs") == 0 && s < v[0].spec.n_storages; s++)
			if (strcmp(storages[i].spec.name, v[0].spec.storages[s]) == 0)
				tell(instance, &storages[i].spec);
}
