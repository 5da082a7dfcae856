/*
 * partition.c - a partition of a store, as a store of its own.
 *
 * To its user it is partition 0, whose registry is the whole registry. In the store below, journal,
 * checkpoints and ownership are those of the partition's number, and keys are
 * "partition/<number>/<key>"; except one, the `shared` key, which all partitions read and write
 * under the same name.
 *
 * Stateless, except for its options. Any thread. The store below is borrowed.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <skv/mem.h>

#include "internal.h"

#define PREFIX 32u /* bytes of "partition/<number>/", at most; and of a kind of documents */
#define KINDS 8u   /* limit of kinds of documents whose changes are requested at once */

struct one_partition {
	struct skv_store *below;
	uint32_t number;
	const char *shared;
	size_t n_prefix;
	char prefix[PREFIX];
};

/* The key below, in `out`. One that is too long is refused there. */
static const char *key_below(const struct one_partition *p, const char *key,
			     char out[PREFIX + SKV_STORE_KEY_MAX + 1])
{
	if (strcmp(key, p->shared) == 0)
		return key;
	snprintf(out, PREFIX + SKV_STORE_KEY_MAX + 1, "%s%s", p->prefix, key);
	return out;
}

static uint32_t number_below(const struct one_partition *p, uint32_t partition)
{
	assert(partition == 0);
	(void)partition;
	return p->number;
}

static int part_open(const struct skv_store_options *o, void **self, struct skv_error *err)
{
	(void)o;
	(void)self;
	return skv_fail(err, SKV_E_UNSUPPORTED, NULL, "use skv_store_partition");
}

static void part_close(void *self) { skv_free(self); }

static int part_get(void *self, const char *key, struct skv_buf *value, uint64_t *version,
		    struct skv_error *err)
{
	struct one_partition *p = self;
	char below[PREFIX + SKV_STORE_KEY_MAX + 1];

	return skv_store_get(p->below, key_below(p, key, below), value, version, err);
}

static struct skv_fence fence_below(const struct one_partition *p, const struct skv_fence *fence)
{
	return fence ? (struct skv_fence){ p->number, fence->number }
		     : (struct skv_fence){ .partition = p->number };
}

static int part_put(void *self, const struct skv_fence *fence, const char *key, uint64_t expect,
		    const void *bytes, size_t n, uint64_t *version, struct skv_error *err)
{
	struct one_partition *p = self;
	struct skv_fence f = fence_below(p, fence);
	char below[PREFIX + SKV_STORE_KEY_MAX + 1];

	assert(!fence || fence->partition == 0);
	return skv_store_put(p->below, fence ? &f : NULL, key_below(p, key, below), expect, bytes,
			     n, version, err);
}

static int part_del(void *self, const struct skv_fence *fence, const char *key, uint64_t expect,
		    struct skv_error *err)
{
	struct one_partition *p = self;
	struct skv_fence f = fence_below(p, fence);
	char below[PREFIX + SKV_STORE_KEY_MAX + 1];

	assert(!fence || fence->partition == 0);
	return skv_store_del(p->below, fence ? &f : NULL, key_below(p, key, below), expect, err);
}

struct list {
	const struct one_partition *p;
	skv_registry_fn fn;
	void *ctx;
};

static int list_one(void *ctx, const char *key, const void *bytes, size_t n, uint64_t version)
{
	const struct list *l = ctx;

	assert(strncmp(key, l->p->prefix, l->p->n_prefix) == 0);
	return l->fn(l->ctx, key + l->p->n_prefix, bytes, n, version);
}

static int part_list(void *self, const char *prefix, skv_registry_fn fn, void *ctx,
		     struct skv_error *err)
{
	struct one_partition *p = self;
	struct list l = { p, fn, ctx };
	char below[PREFIX + SKV_STORE_KEY_MAX + 1];

	snprintf(below, sizeof below, "%s%s", p->prefix, prefix);
	return skv_store_list(p->below, below, list_one, &l, err);
}

static int part_acquire(void *self, uint32_t partition, const char *owner, uint32_t ttl_ms,
			uint64_t *fence, char *holder, size_t holder_size, struct skv_error *err)
{
	struct one_partition *p = self;

	return skv_store_acquire(p->below, number_below(p, partition), owner, ttl_ms, fence, holder,
				 holder_size, err);
}

static int part_renew(void *self, uint32_t partition, uint64_t fence, uint32_t ttl_ms,
		      struct skv_error *err)
{
	struct one_partition *p = self;

	return skv_store_renew(p->below, number_below(p, partition), fence, ttl_ms, err);
}

static int part_release(void *self, uint32_t partition, uint64_t fence, struct skv_error *err)
{
	struct one_partition *p = self;

	return skv_store_release(p->below, number_below(p, partition), fence, err);
}

static int part_append(void *self, uint32_t partition, uint64_t fence, uint64_t seq,
		       const void *bytes, size_t n, unsigned flags, struct skv_error *err)
{
	struct one_partition *p = self;

	return skv_store_append(p->below, number_below(p, partition), fence, seq, bytes, n, flags,
				err);
}

static int part_sync(void *self, uint32_t partition, struct skv_error *err)
{
	struct one_partition *p = self;

	return skv_store_sync(p->below, number_below(p, partition), err);
}

static int part_begin(void *self, uint32_t partition, uint64_t fence, uint64_t *id,
		      struct skv_error *err)
{
	struct one_partition *p = self;

	return skv_store_checkpoint_begin(p->below, number_below(p, partition), fence, id, err);
}

static int part_slice(void *self, uint32_t partition, uint64_t fence, uint64_t id, uint32_t number,
		      const void *bytes, size_t n, struct skv_error *err)
{
	struct one_partition *p = self;

	return skv_store_checkpoint_slice(p->below, number_below(p, partition), fence, id, number,
					  bytes, n, err);
}

static int part_commit(void *self, uint32_t partition, uint64_t fence, uint64_t id, uint32_t slices,
		       uint64_t upto_seq, struct skv_error *err)
{
	struct one_partition *p = self;

	return skv_store_checkpoint_commit(p->below, number_below(p, partition), fence, id, slices,
					   upto_seq, err);
}

static int part_abort(void *self, uint32_t partition, uint64_t id)
{
	struct one_partition *p = self;

	return skv_store_checkpoint_abort(p->below, number_below(p, partition), id);
}

static int part_load(void *self, uint32_t partition, uint64_t *base_seq,
		     const struct skv_load_sink *sink, struct skv_error *err)
{
	struct one_partition *p = self;

	return skv_store_load(p->below, number_below(p, partition), base_seq, sink, err);
}

static int part_stats(void *self, uint32_t partition, struct skv_store_stats *out,
		      struct skv_error *err)
{
	struct one_partition *p = self;

	return skv_store_stats_get(p->below, number_below(p, partition), out, err);
}

static int part_follow(void *self, uint32_t partition, struct skv_position *at,
		       const struct skv_load_sink *sink, struct skv_error *err)
{
	struct one_partition *p = self;

	return skv_store_follow(p->below, number_below(p, partition), at, sink, err);
}

static uint64_t part_renewed(void *self, uint32_t partition)
{
	struct one_partition *p = self;

	return skv_store_renewed_ms(p->below, number_below(p, partition));
}

static int part_changes(void *self, const char *const *prefixes, size_t n, uint64_t *at, bool *all,
			skv_registry_fn fn, void *ctx, struct skv_error *err)
{
	struct one_partition *p = self;
	struct list l = { p, fn, ctx };
	char below[KINDS][2 * PREFIX];
	const char *keys[KINDS];

	assert(n <= KINDS);
	for (size_t i = 0; i < n; i++) {
		assert(strlen(prefixes[i]) < PREFIX);
		snprintf(below[i], sizeof below[i], "%s%s", p->prefix, prefixes[i]);
		keys[i] = below[i];
	}
	return skv_store_changes(p->below, keys, n, at, all, list_one, &l, err);
}

static const struct skv_store_ops part_ops = {
	.size = sizeof part_ops,
	.name = "partition",
	.open = part_open,
	.close = part_close,
	.get = part_get,
	.put = part_put,
	.del = part_del,
	.list = part_list,
	.acquire = part_acquire,
	.renew = part_renew,
	.release = part_release,
	.append = part_append,
	.sync = part_sync,
	.checkpoint_begin = part_begin,
	.checkpoint_slice = part_slice,
	.checkpoint_commit = part_commit,
	.checkpoint_abort = part_abort,
	.load = part_load,
	.stats = part_stats,
	.follow = part_follow,
	.renewed = part_renewed,
	.changes = part_changes,
};

int skv_store_partition(struct skv_store *below, uint32_t number, const char *shared,
			struct skv_store **out, struct skv_error *err)
{
	struct one_partition *p;
	int rc;

	if (number == 0 || number > SKV_STORE_PARTITION_MAX)
		return skv_fail(err, SKV_E_INVALID, "partition", "1 to %u",
				SKV_STORE_PARTITION_MAX);
	p = skv_calloc(1, sizeof *p);
	if (!p)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	p->below = below;
	p->number = number;
	p->shared = shared;
	p->n_prefix =
		(size_t)snprintf(p->prefix, sizeof p->prefix, "partition/%u/", (unsigned)number);
	rc = store_wrap(&part_ops, p, skv_store_durability(below), out, err);
	if (rc != SKV_OK)
		skv_free(p);
	return rc;
}
