/*
 * etcd_values.c - values of the store's keys in etcd: encoding, decoding, the chained checksum.
 *
 * The first byte of each value is its format, 1. Integers are little-endian. Stateless.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "etcd_store.h"

#define FORMAT 1u

int etcd_no_memory(struct skv_error *err)
{
	return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
}

int etcd_fenced(uint32_t partition, struct skv_error *err)
{
	return skv_fail(err, SKV_E_FENCED, NULL, "partition %u has a newer owner", partition);
}

int etcd_taken_over(uint32_t partition, struct skv_error *err)
{
	return skv_fail(err, SKV_E_UNKNOWN_OUTCOME, NULL, "partition %u was taken over while it "
			"was not known whether a write was executed", partition);
}

int etcd_corrupt(struct skv_error *err, struct skv_etcd_bytes key, const char *what)
{
	return skv_fail(err, SKV_E_CORRUPT, NULL, "the key %.*s of etcd %s", (int)key.n,
			(const char *)key.p, what);
}

void etcd_new_name(char out[ETCD_NAME + 1])
{
	uint64_t random;

	skv_random(&random, sizeof random);
	snprintf(out, ETCD_NAME + 1, "%016llx", (unsigned long long)random);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void put_key(struct skv_buf *b, struct skv_key k)
{
	skv_put_u64(b, k.hi);
	skv_put_u64(b, k.lo);
}

static void put_text(struct skv_buf *b, const char *text) { skv_put_string(b, text, strlen(text)); }

void etcd_put_owner(struct skv_buf *b, const struct etcd_owner *o)
{
	skv_put_u8(b, FORMAT);
	skv_put_u64(b, o->nonce);
	put_text(b, o->manager);
	put_text(b, o->owner);
}

void etcd_put_lease(struct skv_buf *b, const struct etcd_lease *l)
{
	skv_put_u8(b, FORMAT);
	skv_put_u32(b, l->ttl_ms);
	skv_put_u64(b, l->expires_ms);
	put_text(b, l->boot_id);
}

void etcd_put_end(struct skv_buf *b, const struct etcd_end *e)
{
	assert(e->seq <= SKV_STORE_SEQ_MAX);
	skv_put_u8(b, FORMAT);
	skv_put_u64(b, e->fence);
	skv_put_u64(b, e->seq);
	skv_put_u64(b, e->total);
	put_key(b, e->chain);
	skv_put_u64(b, e->before);
}

void etcd_put_batch(struct skv_buf *b, const struct etcd_batch *h)
{
	const size_t at = b->len;

	assert(h->pieces > 0);
	skv_put_u8(b, FORMAT);
	skv_put_u32(b, h->pieces);
	skv_put_u64(b, h->total);
	put_key(b, h->chain);
	assert(b->failed || b->len - at == ETCD_BATCH_BYTES);
	(void)at;
}

void etcd_put_head(struct skv_buf *b, const struct etcd_head *h)
{
	assert(h->name[0] && h->slices <= SKV_STORE_SLICES_MAX);
	skv_put_u8(b, FORMAT);
	put_text(b, h->name);
	skv_put_u8(b, h->in_file);
	skv_put_u64(b, h->id);
	skv_put_u64(b, h->index_at);
	skv_put_u32(b, h->slices);
	put_key(b, h->index_sum);
	skv_put_u64(b, h->seq);
	skv_put_u64(b, h->total);
	put_key(b, h->chain);
}

/* ---- reading --------------------------------------------------------------------------------- */

static struct skv_key get_key(struct skv_rd *r)
{
	struct skv_key k;

	k.hi = skv_get_u64(r);
	k.lo = skv_get_u64(r);
	return k;
}

/* `size` includes the NUL. */
static void get_text(struct skv_rd *r, char *out, size_t size)
{
	size_t n;
	const char *text = skv_get_string(r, &n, size - 1);

	if (text)
		memcpy(out, text, n);
	out[text ? n : 0] = '\0';
}

static struct skv_rd open_value(const struct skv_etcd_kv *kv)
{
	struct skv_rd r = skv_rd_make(kv->value.p, kv->value.n);

	r.failed |= skv_get_u8(&r) != FORMAT;
	return r;
}

static int close_value(const struct skv_etcd_kv *kv, const struct skv_rd *r, struct skv_error *err)
{
	return r->failed || r->p != r->end ? etcd_corrupt(err, kv->key, "has a damaged value")
					   : SKV_OK;
}

int etcd_get_owner(const struct skv_etcd_kv *kv, struct etcd_owner *o, struct skv_error *err)
{
	struct skv_rd r = open_value(kv);

	o->nonce = skv_get_u64(&r);
	get_text(&r, o->manager, sizeof o->manager);
	get_text(&r, o->owner, sizeof o->owner);
	return close_value(kv, &r, err);
}

int etcd_get_lease(const struct skv_etcd_kv *kv, struct etcd_lease *l, struct skv_error *err)
{
	struct skv_rd r = open_value(kv);

	l->ttl_ms = skv_get_u32(&r);
	l->expires_ms = skv_get_u64(&r);
	get_text(&r, l->boot_id, sizeof l->boot_id);
	return close_value(kv, &r, err);
}

int etcd_get_end(const struct skv_etcd_kv *kv, struct etcd_end *e, struct skv_error *err)
{
	struct skv_rd r = open_value(kv);

	*e = (struct etcd_end){ 0 };
	if (kv->mod_revision == 0)
		return SKV_OK;
	e->fence = skv_get_u64(&r);
	e->seq = skv_get_u64(&r);
	e->total = skv_get_u64(&r);
	e->chain = get_key(&r);
	e->before = skv_get_u64(&r);
	return close_value(kv, &r, err);
}

int etcd_get_batch(const struct skv_etcd_kv *kv, struct etcd_batch *h, struct skv_etcd_bytes *bytes,
		   struct skv_error *err)
{
	struct skv_rd r = open_value(kv);

	h->pieces = skv_get_u32(&r);
	h->total = skv_get_u64(&r);
	h->chain = get_key(&r);
	if (r.failed)
		return etcd_corrupt(err, kv->key, "has a damaged value");
	*bytes = (struct skv_etcd_bytes){ r.p, skv_rd_left(&r) };
	return SKV_OK;
}

int etcd_get_head(const struct skv_etcd_kv *kv, struct etcd_head *h, struct skv_error *err)
{
	struct skv_rd r = open_value(kv);

	*h = (struct etcd_head){ .name = "" };
	if (kv->mod_revision == 0)
		return SKV_OK;
	get_text(&r, h->name, sizeof h->name);
	h->in_file = skv_get_u8(&r) != 0;
	h->id = skv_get_u64(&r);
	h->index_at = skv_get_u64(&r);
	h->slices = skv_get_u32(&r);
	h->index_sum = get_key(&r);
	h->seq = skv_get_u64(&r);
	h->total = skv_get_u64(&r);
	h->chain = get_key(&r);
	return close_value(kv, &r, err);
}

struct skv_key etcd_chain(struct skv_key before, uint64_t seq, uint64_t total, const void *bytes,
			  size_t n)
{
	const struct skv_key sum = skv_hash128(bytes, n);
	const uint64_t all[] = { before.hi, before.lo, seq, total, sum.hi, sum.lo };

	return skv_hash128(all, sizeof all);
}
