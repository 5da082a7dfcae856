/*
 * bench_ops.c - the operations that `kvblock bench` measures, and the objects they work on.
 *
 * Metadata only: the storage has type "null" (addresses without bytes), so neither the file system
 * nor the data path of the library is in the numbers.
 */
#include "bench.h"

#include <inttypes.h>
#include <string.h>

#include <kvb/hash.h>

#define SLOT_BYTES 4096u
#define CAPACITY (16ull << 40)
#define FILE_SIZE (1ull << 40)

static int start_finish(struct kvb_bench *b, const uint64_t *ids, uint32_t n,
			struct kvblock_error *err)
{
	const struct kvblock_keys keys = kvblock_keys_ints(ids, n);
	const struct kvblock_finish_options done = { .quiesced = true };
	const struct kvblock_session *s;
	int rc = kvblock_start(b->kv, b->name, &keys, NULL, NULL, &s, err);

	if (rc != KVBLOCK_OK)
		return rc;
	if (s->n_write > 0)
		rc = kvblock_finish(b->kv, s->id, &done, NULL, err);
	if (rc == KVBLOCK_OK &&
	    atomic_fetch_add(&b->made, s->n_write) + s->n_write >= b->max_blocks)
		atomic_store(&b->stop, true);
	kvblock_free(s);
	return rc;
}

static int call_start(struct kvb_bench *b, uint64_t *fresh, uint64_t turn,
		      struct kvblock_error *err)
{
	for (uint32_t i = 0; i < b->keys; i++)
		fresh[i] = (1ull << 40) + turn * b->keys + i;
	return start_finish(b, fresh, b->keys, err);
}

static int lookup(struct kvb_bench *b, const uint64_t *ids, uint32_t n, struct kvblock_error *err)
{
	const struct kvblock_keys keys = kvblock_keys_ints(ids, n);
	const struct kvblock_locations *l;
	int rc = kvblock_lookup(b->kv, b->name, &keys, NULL, &l, err);

	if (rc != KVBLOCK_OK)
		return rc;
	if (l->matched != n) {
		memset(err, 0, sizeof *err);
		err->code = rc = KVBLOCK_E_INTERNAL;
		snprintf(err->message, sizeof err->message, "%u of %u keys were found: evicted?",
			 l->matched, n);
	}
	kvblock_free(l);
	return rc;
}

static int call_lookup(struct kvb_bench *b, uint64_t *fresh, uint64_t turn,
		       struct kvblock_error *err)
{
	(void)fresh;
	(void)turn;
	return lookup(b, b->hot, b->keys, err);
}

static int call_lookup_one(struct kvb_bench *b, uint64_t *fresh, uint64_t turn,
			   struct kvblock_error *err)
{
	(void)fresh;
	return lookup(b, &b->hot[turn % b->keys], 1, err);
}

static int call_match(struct kvb_bench *b, uint64_t *fresh, uint64_t turn,
		      struct kvblock_error *err)
{
	const struct kvblock_keys keys = kvblock_keys_ints(b->hot, b->keys);
	const char *instance = b->name;
	uint32_t matched;

	(void)fresh;
	(void)turn;
	return kvblock_match(b->kv, &instance, 1, &keys, &matched, err);
}

const struct kvb_bench_op kvb_bench_ops[] = {
	{ "lookup, all hits", false, call_lookup },
	{ "start+finish", false, call_start },
	{ "lookup of one key", true, call_lookup_one },
	{ "match", false, call_match },
};
const size_t kvb_bench_n_ops = sizeof kvb_bench_ops / sizeof kvb_bench_ops[0];

int kvb_bench_prepare(struct kvb_bench *b, struct kvblock_error *err)
{
	const char *name = b->name;
	const struct kvblock_storage storage = { .name = name, .type = "null", .root = "",
						 .capacity = CAPACITY, .file_size = FILE_SIZE,
						 .enabled = true };
	const struct kvblock_group group = { .name = name, .storages = &name, .n_storages = 1 };
	const struct kvblock_spec spec = { "kv", SLOT_BYTES };
	const struct kvblock_instance instance = {
		.id = name, .group = name, .specs = &spec, .n_specs = 1
	};
	uint64_t all = b->max_blocks, dice;
	int rc = KVBLOCK_OK;

	kvb_random(&dice, sizeof dice);
	snprintf(b->name, sizeof b->name, "bench-%016" PRIx64, dice);
	rc = kvblock_storage_put(b->kv, &storage, err);
	if (rc == KVBLOCK_OK)
		rc = kvblock_group_put(b->kv, &group, err);
	if (rc == KVBLOCK_OK)
		rc = kvblock_instance_put(b->kv, &instance, err);
	for (uint32_t i = 0; i < b->keys; i++)
		b->hot[i] = i;
	b->max_blocks = UINT64_MAX;
	if (rc == KVBLOCK_OK)
		rc = start_finish(b, b->hot, b->keys, err);
	b->max_blocks = all;
	atomic_store(&b->made, 0);
	return rc;
}

void kvb_bench_remove(struct kvb_bench *b)
{
	struct kvblock_error err;

	if (kvblock_instance_delete(b->kv, b->name, &err) != KVBLOCK_OK ||
	    kvblock_group_delete(b->kv, b->name, &err) != KVBLOCK_OK ||
	    kvblock_storage_delete(b->kv, b->name, &err) != KVBLOCK_OK)
		fprintf(stderr, "kvblock bench: %s is left at the manager: %s\n", b->name,
			err.message);
}
