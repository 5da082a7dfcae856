/*
 * memory_node.c - the frames and the description of skv/memory_node.h.
 *
 * No state; any thread.
 */
#include "messages.h"

#include <skv/check.h>
#include <skv/clock.h>
#include <skv/memory_node.h>

#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
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

#define T struct skv_mn_device
static const struct skv_field device_rows[] = {
	SKV_CHARS(T, name, 1, .flags = REQUIRED),
	SKV_CHARS(T, gid, 2, .flags = REQUIRED),
};
static const struct skv_table device_table = SKV_TABLE("RdmaDevice", T, device_rows, .open = true);
#undef T

#define T struct skv_memory_node
static const struct skv_field about_rows[] = {
	SKV_TEXT(T, service, 1, .max = 64),
	SKV_TEXT(T, version, 2, .max = 64),
	SKV_TEXT(T, name, 3, .min = 1, .max = SKV_MAX_NAME, .flags = REQUIRED),
	SKV_ROW(T, epoch, "epoch", HEX, 4, .flags = REQUIRED),
	SKV_NUMBER(T, port, 5, .min = 1, .max = UINT16_MAX, .flags = REQUIRED),
	SKV_TEXT(T, storage, 6, .max = 36, .flags = REQUIRED),
	SKV_NUMBER(T, total_bytes, 7, .flags = REQUIRED),
	SKV_NUMBER(T, free_bytes, 8, .flags = REQUIRED),
	SKV_NUMBER(T, page_bytes, 9, .flags = REQUIRED),
	SKV_NUMBER(T, slabs, 10, .flags = REQUIRED),
	SKV_ROW(T, tcp, "tcp_connections", NUMBER, 11, .flags = REQUIRED),
	SKV_ROW(T, local, "local_connections", NUMBER, 12, .flags = REQUIRED),
	SKV_NUMBER(T, writing_ms, 13, .flags = REQUIRED),
	SKV_NUMBER(T, rdma_port, 14, .max = UINT16_MAX, .flags = SHORT),
	SKV_NUMBER(T, queue_pairs, 15),
	SKV_ROW(T, devices, "rdma_devices", MESSAGES, 16, .of = &device_table,
		.count_at = offsetof(T, n_devices), .most = SKV_MN_DEVICES, .flags = SHORT),
};
static const struct skv_table about_table = SKV_TABLE("MemoryNode", T, about_rows, .open = true);
#undef T

void skv_mn_write_about(struct skv_buf *out, const struct skv_memory_node *n)
{
	SKV_CHECK(n->epoch != 0);
	skv_table_write_json(&about_table, out, n);
}

int skv_mn_read_about(struct skv_arena *a, const char *text, size_t n, struct skv_memory_node *out,
		      struct skv_error *err)
{
	const struct skv_v1_in in = { .arena = a };
	int rc = skv_table_read_json(&about_table, &in, text, n, out, err);

	if (rc == SKV_OK && out->epoch == 0)
		rc = skv_fail(err, SKV_E_INVALID, "epoch", "is not one of a memory node");
	return rc;
}
