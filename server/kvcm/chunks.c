/*
 * chunks.c - what it costs that specs are not whole chunks of 3FS: told when an instance is registered.
 *
 * 3FS writes a part of a chunk by reading and writing the whole chunk. Slots lie at multiples of their size, so one whose
 * size is no multiple of the chunk shares chunks with its neighbours. No state; blocks for a stat of the storage's
 * directory, whose block size is the chunk's.
 */
#include "model.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include <kvb/core.h>
#include <kvb/log.h>

static uint64_t divisor(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* Slots begin at all multiples of the divisor within a chunk, equally often: of size + chunk - divisor bytes, in the
 * mean, the chunks that a slot lies in consist. */
uint32_t kvcm_chunk_percent(uint64_t size, uint64_t chunk)
{
	uint64_t touched = size + chunk - divisor(size, chunk);

	return size >= UINT64_MAX / 200 ? 100 : (uint32_t)((touched * 100 + size / 2) / size);
}

static void tell(const struct kvb_instance_spec *i, const struct kvb_storage_spec *s, uint64_t chunk)
{
	for (uint32_t k = 0; k < i->n_specs; k++)
		if (i->specs[k].size % chunk != 0)
			kvb_log(KVB_LOG_WARN, "kvcm",
				"instance %s: spec %s of %" PRIu64 " bytes is not whole chunks of storage %s (%" PRIu64
				" bytes): a block's writes cost %" PRIu32 "%% of its bytes, and reads of chunks besides",
				i->id, i->specs[k].name, i->specs[k].size, s->name, chunk,
				kvcm_chunk_percent(i->specs[k].size, chunk));
}

void kvcm_tell_chunk_cost(struct kvb_core *core, const struct kvb_instance_spec *i)
{
	struct kvb_storage_view *v;
	struct kvb_group_view *g;
	struct kvb_error ignored;
	struct kvb_arena a;
	struct stat st;
	uint32_t n;

	kvb_arena_init(&a);
	if (kvb_core_groups(core, i->group, &a, &g, &n, &ignored) != KVB_OK)
		g = NULL;
	for (uint32_t k = 0; g && k < g->spec.n_storages; k++)
		if (kvb_core_storages(core, g->spec.storages[k], &a, &v, &n, &ignored) == KVB_OK &&
		    strcmp(v[0].spec.type, "hf3fs") == 0 && stat(v[0].spec.root, &st) == 0 && st.st_blksize > 0)
			tell(i, &v[0].spec, (uint64_t)st.st_blksize);
	kvb_arena_destroy(&a);
}
