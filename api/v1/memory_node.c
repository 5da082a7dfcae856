/*
 * memory_node.c - the frames and the description of skv/memory_node.h.
 *
 * No state; any thread.
 */
#include "parts.h"

#include <skv/check.h>
#include <skv/clock.h>
#include <skv/memory_node.h>

#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct header {
	uint32_t magic;
	uint8_t op;
	uint8_t flags;
	int16_t status;
	uint32_t file;
	uint32_t extra;
	uint64_t offset;
	uint64_t length;
};
_Static_assert(sizeof(struct header) == SKV_MN_HEADER, "no gaps");
_Static_assert(__BYTE_ORDER == __LITTLE_ENDIAN, "the header is copied as it is");

void skv_mn_encode(const struct skv_mn_frame *f, uint8_t out[SKV_MN_HEADER])
{
	const struct header h = { SKV_MN_MAGIC, f->op,	f->flags,  f->status,
				  f->file,	f->extra, f->offset, f->length };

	SKV_CHECK(f->op >= SKV_MN_HELLO && f->op <= SKV_MN_PROVE && f->status <= 0);
	memcpy(out, &h, sizeof h);
}

bool skv_mn_decode(const uint8_t in[SKV_MN_HEADER], struct skv_mn_frame *out)
{
	struct header h;

	memcpy(&h, in, sizeof h);
	if (h.magic != SKV_MN_MAGIC || h.op < SKV_MN_HELLO || h.op > SKV_MN_PROVE || h.status > 0)
		return false;
	*out = (struct skv_mn_frame){ h.op, h.flags, h.status, h.file, h.extra, h.offset,
				      h.length };
	return true;
}

struct rdma {
	uint32_t magic;
	uint16_t version;
	uint16_t device;
	uint64_t epoch;
	uint64_t ticket;
};
_Static_assert(sizeof(struct rdma) == SKV_MN_RDMA_BYTES, "no gaps");

void skv_mn_rdma_encode(const struct skv_mn_rdma *r, uint8_t out[SKV_MN_RDMA_BYTES])
{
	const struct rdma raw = { SKV_MN_RDMA_MAGIC, SKV_MN_VERSION, r->device, r->epoch,
				  r->ticket };

	SKV_CHECK(r->device < SKV_MN_DEVICES);
	memcpy(out, &raw, sizeof raw);
}

bool skv_mn_rdma_decode(const uint8_t *in, size_t n, struct skv_mn_rdma *out)
{
	struct rdma raw;

	if (n < sizeof raw) /* rdma_cm may add zeros */
		return false;
	memcpy(&raw, in, sizeof raw);
	if (raw.magic != SKV_MN_RDMA_MAGIC || raw.version != SKV_MN_VERSION ||
	    raw.device >= SKV_MN_DEVICES)
		return false;
	*out = (struct skv_mn_rdma){ raw.device, raw.epoch, raw.ticket };
	return true;
}

void skv_mn_keys_encode(const struct skv_mn_keys *k, uint8_t *out)
{
	SKV_CHECK(k->n <= SKV_MN_DEVICES);
	memcpy(out, &k->address, sizeof k->address);
	memcpy(out + sizeof k->address, k->rkey, k->n * sizeof k->rkey[0]);
}

bool skv_mn_keys_decode(const uint8_t *in, size_t n, struct skv_mn_keys *out)
{
	*out = (struct skv_mn_keys){ 0 };
	if (n < SKV_MN_KEYS_BYTES(1) || n > SKV_MN_KEYS_BYTES(SKV_MN_DEVICES) || n % 4 != 0)
		return false;
	out->n = (uint32_t)(n - SKV_MN_KEYS_BYTES(0)) / 4;
	memcpy(&out->address, in, sizeof out->address);
	memcpy(out->rkey, in + sizeof out->address, out->n * sizeof out->rkey[0]);
	return true;
}

void skv_mn_local_name(const char *node, uint64_t epoch, char out[SKV_MN_LOCAL_MAX])
{
	int n = snprintf(out, SKV_MN_LOCAL_MAX, "slabkv-memory/%016" PRIx64 "/%.64s", epoch, node);

	SKV_CHECK(n > 0 && n < (int)SKV_MN_LOCAL_MAX);
}

bool skv_mn_place(uint8_t out[SKV_MN_PLACE])
{
	char boot[37], text[96];
	struct skv_key hash;
	struct stat st;

	skv_boot_id(boot);
	if (strspn(boot, "0") == strlen(boot) || stat("/proc/self/ns/net", &st) != 0)
		return false;
	snprintf(text, sizeof text, "%s %llu %llu", boot, (unsigned long long)st.st_dev,
		 (unsigned long long)st.st_ino);
	hash = skv_hash128(text, strlen(text));
	memcpy(out, &hash, sizeof hash);
	return true;
}

void skv_mn_prove(const uint8_t key[SKV_MAC], bool node, const uint8_t nonces[2 * SKV_MN_NONCE],
		  uint8_t out[SKV_MAC])
{
	uint8_t said[1 + 2 * SKV_MN_NONCE] = { node ? 'n' : 'c' };

	memcpy(said + 1, nonces, 2 * SKV_MN_NONCE);
	skv_mac(key, said, sizeof said, out);
}

/* ---- GET / ----------------------------------------------------------------------------------- */

static void write_rdma(struct skv_buf *out, const struct skv_memory_node *n)
{
	skv_jout_field_u64(out, "rdma_port", n->rdma_port);
	skv_jout_field_u64(out, "queue_pairs", n->queue_pairs);
	skv_jout_name(out, "rdma_devices");
	skv_jout_open(out, '[');
	for (uint32_t i = 0; i < n->n_devices; i++) {
		skv_jout_open(out, '{');
		skv_jout_field_string(out, "name", n->devices[i].name);
		skv_jout_field_string(out, "gid", n->devices[i].gid);
		skv_jout_close(out, '}');
	}
	skv_jout_close(out, ']');
}

void skv_mn_write_about(struct skv_buf *out, const struct skv_memory_node *n)
{
	SKV_CHECK(n->epoch != 0);
	skv_jout_begin(out);
	skv_jout_field_string(out, "service", "slabkvd memory-node");
	skv_jout_field_string(out, "version", SKV_VERSION);
	skv_jout_field_string(out, "name", n->name);
	skv_jout_name(out, "epoch");
	skv_jout_hex64(out, n->epoch);
	skv_jout_field_u64(out, "port", n->port);
	skv_jout_field_string(out, "storage", n->storage);
	skv_jout_field_u64(out, "total_bytes", n->total_bytes);
	skv_jout_field_u64(out, "free_bytes", n->free_bytes);
	skv_jout_field_u64(out, "page_bytes", n->page_bytes);
	skv_jout_field_u64(out, "slabs", n->slabs);
	skv_jout_field_u64(out, "tcp_connections", n->tcp);
	skv_jout_field_u64(out, "local_connections", n->local);
	skv_jout_field_u64(out, "writing_ms", n->writing_ms);
	if (n->rdma_port)
		write_rdma(out, n);
	skv_jout_close(out, '}');
}

static uint64_t number(struct skv_jdoc *d, const struct skv_jat *top, const char *name,
		       uint64_t max)
{
	struct skv_jat at = skv_jat_get(top, name);

	return skv_jat_u64(d, &at, 0, max);
}

int skv_mn_read_about(struct skv_arena *a, const char *text, size_t n, struct skv_memory_node *out,
		      struct skv_error *err)
{
	const struct skv_v1_in in = { .arena = a };
	struct skv_jdoc d;
	struct skv_jat top = skv_jdoc_open(&d, &in, text, n, SKV_JMAX_OBJECT, err);
	struct skv_jat name = skv_jat_get(&top, "name"), epoch = skv_jat_get(&top, "epoch"),
		       storage = skv_jat_get(&top, "storage");
	struct skv_memory_node r = { .port = (uint16_t)number(&d, &top, "port", UINT16_MAX) };
	const char *hex = skv_jat_string(&d, &epoch, 16, 16);

	r.name = skv_jat_string(&d, &name, 1, SKV_MAX_NAME);
	r.storage = skv_jat_string(&d, &storage, 0, 36);
	r.total_bytes = number(&d, &top, "total_bytes", UINT64_MAX);
	r.free_bytes = number(&d, &top, "free_bytes", UINT64_MAX);
	r.page_bytes = number(&d, &top, "page_bytes", UINT64_MAX);
	r.slabs = (uint32_t)number(&d, &top, "slabs", UINT32_MAX);
	r.tcp = (uint32_t)number(&d, &top, "tcp_connections", UINT32_MAX);
	r.local = (uint32_t)number(&d, &top, "local_connections", UINT32_MAX);
	r.writing_ms = number(&d, &top, "writing_ms", UINT64_MAX);
	if (skv_jat_get(&top, "rdma_port").v)
		r.rdma_port = (uint16_t)number(&d, &top, "rdma_port", UINT16_MAX);
	if (skv_jdoc_ok(&d)) {
		r.epoch = strtoull(hex, NULL, 16);
		if (r.epoch == 0 || r.port == 0)
			skv_jdoc_fail(&d, &epoch, SKV_E_INVALID, "is not one of a memory node");
	}
	if (skv_jdoc_ok(&d))
		*out = r;
	return skv_jdoc_close(&d);
}
