/* superblock.c - encode and decode the record of skv/superblock.h. No state. */
#include <skv/bytes.h>
#include <skv/hash.h>
#include <skv/superblock.h>

#include <skv/check.h>
#include <stdio.h>
#include <string.h>

#define MAGIC "SKVSLAB\n"
#define SUM_AT (SKV_SUPERBLOCK_SIZE - 8)

static void put_le(uint8_t *p, uint64_t v, int n)
{
	for (int i = 0; i < n; i++)
		p[i] = (uint8_t)(v >> (8 * i));
}

/* Offsets: 0 magic, 8 version, 12 file, 16 uuid, 32 length, 40 unit, 48 header, 56 trailer,
 * 64 created, 72..4087 zero, 4088 checksum. */
void skv_superblock_encode(const struct skv_superblock *sb, uint8_t out[SKV_SUPERBLOCK_SIZE])
{
	memset(out, 0, SKV_SUPERBLOCK_SIZE);
	memcpy(out, MAGIC, 8);
	put_le(out + 8, SKV_SUPERBLOCK_VERSION, 4);
	put_le(out + 12, sb->file, 4);
	memcpy(out + 16, sb->uuid, 16);
	put_le(out + 32, sb->length, 8);
	put_le(out + 40, sb->unit, 8);
	put_le(out + 48, sb->header, 8);
	put_le(out + 56, sb->trailer, 8);
	put_le(out + 64, sb->created_ms, 8);
	put_le(out + SUM_AT, skv_checksum(out, SUM_AT), 8);
}

int skv_superblock_decode(const uint8_t in[SKV_SUPERBLOCK_SIZE], struct skv_superblock *out,
			  struct skv_error *err)
{
	struct skv_rd r = skv_rd_make(in, SKV_SUPERBLOCK_SIZE);
	struct skv_rd tail = skv_rd_make(in + SUM_AT, 8);
	uint32_t version;
	const uint8_t *magic = skv_get_bytes(&r, 8);

	if (memcmp(magic, MAGIC, 8) != 0)
		return skv_fail(err, SKV_E_FOREIGN, NULL,
				"no slabkv superblock: not a slabkv file");
	if (skv_get_u64(&tail) != skv_checksum(in, SUM_AT))
		return skv_fail(err, SKV_E_CORRUPT, NULL, "the superblock's checksum is wrong");
	version = skv_get_u32(&r);
	if (version != SKV_SUPERBLOCK_VERSION)
		return skv_fail(
			err, SKV_E_UNSUPPORTED, NULL,
			"superblock version %u; this program reads up to %u: use a newer one",
			version, SKV_SUPERBLOCK_VERSION);
	out->file = skv_get_u32(&r);
	memcpy(out->uuid, skv_get_bytes(&r, 16), 16);
	out->length = skv_get_u64(&r);
	out->unit = skv_get_u64(&r);
	out->header = skv_get_u64(&r);
	out->trailer = skv_get_u64(&r);
	out->created_ms = skv_get_u64(&r);
	SKV_CHECK(!r.failed && r.p == in + 72); /* the rest is zero */
	return SKV_OK;
}

void skv_uuid_to_text(const uint8_t uuid[16], char out[37])
{
	static const char digit[] = "0123456789abcdef";
	char *p = out;

	/* In the answer of each lookup, where printf would be a quarter of its instructions. */
	for (int i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*p++ = '-';
		*p++ = digit[uuid[i] >> 4];
		*p++ = digit[uuid[i] & 15];
	}
	*p = '\0';
	SKV_CHECK(p == out + 36);
}

int skv_uuid_from_text(const char *text, uint8_t uuid[16])
{
	char hex[33];
	struct skv_key k;
	size_t n = 0;

	if (strlen(text) != 36)
		return SKV_E_INVALID;
	for (int i = 0; i < 36; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash != (text[i] == '-'))
			return SKV_E_INVALID;
		if (!dash)
			hex[n++] = text[i];
	}
	SKV_CHECK(n == 32);
	if (!skv_key_from_hex(hex, n, &k))
		return SKV_E_INVALID;
	for (int i = 0; i < 8; i++) {
		uuid[i] = (uint8_t)(k.hi >> (56 - 8 * i));
		uuid[8 + i] = (uint8_t)(k.lo >> (56 - 8 * i));
	}
	return SKV_OK;
}

void skv_slab_path(uint32_t file, char out[SKV_SLAB_PATH_MAX])
{
	static const char form[] = "slab-00000000.kvs";
	const size_t last = sizeof "slab-00000000" - 2;

	_Static_assert(sizeof form <= SKV_SLAB_PATH_MAX, "a path fits");
	if (file > 99999999u) {
		snprintf(out, SKV_SLAB_PATH_MAX, "slab-%08u.kvs", file);
		return;
	}
	memcpy(out, form, sizeof form);
	for (size_t at = last; file > 0; at--, file /= 10) /* as in the text of a uuid */
		out[at] = (char)('0' + file % 10);
}
