/* superblock.c - encode and decode the record of kvb/superblock.h. No state. */
#include <kvb/bytes.h>
#include <kvb/hash.h>
#include <kvb/superblock.h>

#include <stdio.h>
#include <string.h>

#define MAGIC "KVBSLAB\n"
#define SUM_AT (KVB_SUPERBLOCK_SIZE - 8)

static void put_le(uint8_t *p, uint64_t v, int n)
{
	for (int i = 0; i < n; i++)
		p[i] = (uint8_t)(v >> (8 * i));
}

/* Offsets: 0 magic, 8 version, 12 file, 16 uuid, 32 length, 40 unit, 48 header, 56 trailer,
 * 64 created, 72..4087 zero, 4088 checksum. */
void kvb_superblock_encode(const struct kvb_superblock *sb, uint8_t out[KVB_SUPERBLOCK_SIZE])
{
	memset(out, 0, KVB_SUPERBLOCK_SIZE);
	memcpy(out, MAGIC, 8);
	put_le(out + 8, KVB_SUPERBLOCK_VERSION, 4);
	put_le(out + 12, sb->file, 4);
	memcpy(out + 16, sb->uuid, 16);
	put_le(out + 32, sb->length, 8);
	put_le(out + 40, sb->unit, 8);
	put_le(out + 48, sb->header, 8);
	put_le(out + 56, sb->trailer, 8);
	put_le(out + 64, sb->created_ms, 8);
	put_le(out + SUM_AT, kvb_checksum(out, SUM_AT), 8);
}

int kvb_superblock_decode(const uint8_t in[KVB_SUPERBLOCK_SIZE], struct kvb_superblock *out,
			  struct kvb_error *err)
{
	struct kvb_rd r = kvb_rd_make(in, KVB_SUPERBLOCK_SIZE);
	struct kvb_rd tail = kvb_rd_make(in + SUM_AT, 8);
	uint32_t version;

	if (memcmp(kvb_get_bytes(&r, 8), MAGIC, 8) != 0)
		return kvb_fail(err, KVB_E_FOREIGN, NULL, "no kvblock superblock: not a file of kvblockd");
	if (kvb_get_u64(&tail) != kvb_checksum(in, SUM_AT))
		return kvb_fail(err, KVB_E_CORRUPT, NULL, "the superblock's checksum is wrong");
	version = kvb_get_u32(&r);
	if (version != KVB_SUPERBLOCK_VERSION)
		return kvb_fail(err, KVB_E_UNSUPPORTED, NULL,
				"superblock version %u; this program knows %u: use a newer one", version,
				KVB_SUPERBLOCK_VERSION);
	out->file = kvb_get_u32(&r);
	memcpy(out->uuid, kvb_get_bytes(&r, 16), 16);
	out->length = kvb_get_u64(&r);
	out->unit = kvb_get_u64(&r);
	out->header = kvb_get_u64(&r);
	out->trailer = kvb_get_u64(&r);
	out->created_ms = kvb_get_u64(&r);
	return KVB_OK;
}

void kvb_uuid_to_text(const uint8_t uuid[16], char out[37])
{
	char *p = out;

	for (int i = 0; i < 16; i++)
		p += snprintf(p, 4, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", uuid[i]);
}

int kvb_uuid_from_text(const char *text, uint8_t uuid[16])
{
	char hex[33];
	struct kvb_key k;
	size_t n = 0;

	if (strlen(text) != 36)
		return KVB_E_INVALID;
	for (int i = 0; i < 36; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash != (text[i] == '-'))
			return KVB_E_INVALID;
		if (!dash)
			hex[n++] = text[i];
	}
	if (!kvb_key_from_hex(hex, n, &k))
		return KVB_E_INVALID;
	for (int i = 0; i < 8; i++) {
		uuid[i] = (uint8_t)(k.hi >> (56 - 8 * i));
		uuid[8 + i] = (uint8_t)(k.lo >> (56 - 8 * i));
	}
	return KVB_OK;
}

void kvb_slab_path(uint32_t file, char out[KVB_SLAB_PATH_MAX])
{
	snprintf(out, KVB_SLAB_PATH_MAX, "slab-%08u.kvs", file);
}
