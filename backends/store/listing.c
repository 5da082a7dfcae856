/*
 * listing.c - a registry listing between a backend and the caller's function.
 *
 * A backend collects the entries into a buffer while it holds its lock, and delivers them after it
 * has released the lock: the function may then call the store itself, and a slow function delays no
 * other thread. The registry is small (storages, groups, instances, files), so a copy costs little.
 *
 * No state; any thread.
 */
#include <string.h>

#include "internal.h"

void listing_add(struct skv_buf *b, const char *key, const void *bytes, size_t n, uint64_t version)
{
	skv_put_string(b, key, strlen(key) + 1);
	skv_put_u64(b, version);
	skv_put_string(b, bytes, n);
}

int listing_deliver(struct skv_buf *b, skv_registry_fn fn, void *ctx, struct skv_error *err)
{
	struct skv_rd r = skv_rd_make(b->data, b->len);
	int rc = SKV_OK;

	if (b->failed)
		rc = skv_fail(err, SKV_E_NOMEM, NULL, "out of memory while listing the registry");
	while (rc == SKV_OK && skv_rd_left(&r) > 0) {
		size_t key_n, n;
		const char *key = skv_get_string(&r, &key_n, SKV_STORE_KEY_MAX + 1);
		uint64_t version = skv_get_u64(&r);
		const char *bytes = skv_get_string(&r, &n, SKV_STORE_VALUE_MAX);

		if (r.failed)
			rc = skv_fail(err, SKV_E_CORRUPT, NULL,
				      "a registry entry is over its limit");
		else
			rc = fn(ctx, key, bytes, n, version);
	}
	skv_buf_destroy(b);
	return rc;
}
