/*
 * test_superblock.c - the durable record of directories and slab files: golden bytes, every flipped
 * bit found, uuids as text, names of slab files.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include <skv/hash.h>
#include <skv/superblock.h>

static const struct skv_superblock example = {
	.uuid = { 0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xab, 0xac,
		  0xad, 0xae, 0xaf },
	.file = 7,
	.length = 1u << 30,
	.unit = 64u << 20,
	.header = 4096,
	.trailer = 4096,
	.created_ms = 0x0123456789abcdefu,
};

/* docs/internals/ON_DISK.md has the same table. A change here is a new version of the format. */
static const uint8_t golden[72] = {
	/* 0 */
	'S',  'K',  'V',  'S',  'L',  'A',  'B',  '\n', 0x01, 0x00, 0x00, 0x00, 0x07, 0x00, 0x00,
	0x00,
	/* 16 */
	0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xab, 0xac, 0xad, 0xae,
	0xaf,
	/* 32 */
	0x00, 0x00, 0x00, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00,
	0x00,
	/* 48 */
	0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00,
	/* 64 */
	0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01,
};
static const uint8_t golden_sum[8] = { 0xec, 0xdb, 0xf7, 0x82, 0x06, 0xda, 0x75, 0x9a };

static void golden_bytes(void **state)
{
	uint8_t raw[SKV_SUPERBLOCK_SIZE];

	(void)state;
	memset(raw, 0xff, sizeof raw);
	skv_superblock_encode(&example, raw);
	assert_memory_equal(raw, golden, sizeof golden);
	for (size_t i = sizeof golden; i < SKV_SUPERBLOCK_SIZE - 8; i++)
		assert_int_equal(raw[i], 0);
	assert_memory_equal(raw + SKV_SUPERBLOCK_SIZE - 8, golden_sum, 8);
}

static void golden_bytes_are_read(void **state)
{
	uint8_t raw[SKV_SUPERBLOCK_SIZE] = { 0 };
	struct skv_superblock sb;

	(void)state;
	memcpy(raw, golden, sizeof golden);
	memcpy(raw + SKV_SUPERBLOCK_SIZE - 8, golden_sum, 8);
	assert_int_equal(skv_superblock_decode(raw, &sb, NULL), SKV_OK);
	assert_memory_equal(sb.uuid, example.uuid, 16);
	assert_int_equal(sb.file, 7);
	assert_int_equal(sb.length, 1u << 30);
	assert_int_equal(sb.unit, 64u << 20);
	assert_int_equal(sb.header, 4096);
	assert_int_equal(sb.trailer, 4096);
	assert_true(sb.created_ms == 0x0123456789abcdefu);
}

static void extreme_values_come_back(void **state)
{
	struct skv_superblock sb = { .file = SKV_NO_FILE, .length = UINT64_MAX, .unit = UINT64_MAX,
				     .header = UINT64_MAX, .trailer = UINT64_MAX,
				     .created_ms = UINT64_MAX };
	uint8_t raw[SKV_SUPERBLOCK_SIZE];
	struct skv_superblock back;

	(void)state;
	memset(sb.uuid, 0xff, sizeof sb.uuid);
	skv_superblock_encode(&sb, raw);
	assert_int_equal(skv_superblock_decode(raw, &back, NULL), SKV_OK);
	assert_memory_equal(back.uuid, sb.uuid, 16);
	assert_true(back.file == SKV_NO_FILE && back.length == UINT64_MAX &&
		    back.unit == UINT64_MAX && back.header == UINT64_MAX &&
		    back.trailer == UINT64_MAX && back.created_ms == UINT64_MAX);
}

static void every_flipped_bit_is_found(void **state)
{
	uint8_t raw[SKV_SUPERBLOCK_SIZE];
	struct skv_superblock sb;
	struct skv_error err;

	(void)state;
	skv_superblock_encode(&example, raw);
	for (size_t bit = 0; bit < SKV_SUPERBLOCK_SIZE * 8; bit++) {
		int want = bit / 8 < 8 ? SKV_E_FOREIGN : SKV_E_CORRUPT;

		raw[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(skv_superblock_decode(raw, &sb, &err), want);
		raw[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	assert_int_equal(skv_superblock_decode(raw, &sb, &err), SKV_OK);
}

static void other_contents_are_foreign(void **state)
{
	uint8_t raw[SKV_SUPERBLOCK_SIZE] = { 0 };
	struct skv_superblock sb;
	struct skv_error err;

	(void)state;
	assert_int_equal(skv_superblock_decode(raw, &sb, &err), SKV_E_FOREIGN);
	assert_non_null(strstr(err.message, "not a slabkv file"));
	memset(raw, 0xff, sizeof raw);
	assert_int_equal(skv_superblock_decode(raw, &sb, NULL), SKV_E_FOREIGN);
}

/* A newer version is told apart from damage: its checksum is right. */
static void newer_versions_are_named(void **state)
{
	uint8_t raw[SKV_SUPERBLOCK_SIZE];
	struct skv_superblock sb;
	struct skv_error err;
	uint64_t sum;

	(void)state;
	skv_superblock_encode(&example, raw);
	raw[8] = 2;
	sum = skv_checksum(raw, SKV_SUPERBLOCK_SIZE - 8);
	for (int i = 0; i < 8; i++)
		raw[SKV_SUPERBLOCK_SIZE - 8 + i] = (uint8_t)(sum >> (8 * i));
	assert_int_equal(skv_superblock_decode(raw, &sb, &err), SKV_E_UNSUPPORTED);
	assert_non_null(strstr(err.message, "version 2; this program reads up to 1"));
}

static void uuids_as_text(void **state)
{
	uint8_t back[16];
	char text[37];

	(void)state;
	skv_uuid_to_text(example.uuid, text);
	assert_string_equal(text, "a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf");
	assert_int_equal(skv_uuid_from_text(text, back), SKV_OK);
	assert_memory_equal(back, example.uuid, 16);
	assert_int_equal(skv_uuid_from_text("A0A1A2A3-A4A5-A6A7-A8A9-AAABACADAEAF", back), SKV_OK);
	assert_memory_equal(back, example.uuid, 16);
}

static void other_text_is_no_uuid(void **state)
{
	static const char *const bad[] = {
		"", "a0a1a2a3", "a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaea",
		"a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeafa",
		"a0a1a2a3xa4a5-a6a7-a8a9-aaabacadaeaf", "a0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeag",
		"a0a1a2a-3a4a5-a6a7-a8a9-aaabacadaeaf", "{0a1a2a3-a4a5-a6a7-a8a9-aaabacadaeaf",
		"a0a1a2a3-a4a5-a6a7-a8a9-aaabacada-af",
	};
	uint8_t out[16] = { 5 };

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(skv_uuid_from_text(bad[i], out), SKV_E_INVALID);
	assert_int_equal(out[0], 5); /* untouched */
}

static void slab_files_have_names(void **state)
{
	char path[SKV_SLAB_PATH_MAX];

	(void)state;
	skv_slab_path(0, path);
	assert_string_equal(path, "slab-00000000.kvs");
	skv_slab_path(123, path);
	assert_string_equal(path, "slab-00000123.kvs");
	skv_slab_path(UINT32_MAX, path);
	assert_string_equal(path, "slab-4294967295.kvs");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden_bytes),
		cmocka_unit_test(golden_bytes_are_read),
		cmocka_unit_test(extreme_values_come_back),
		cmocka_unit_test(every_flipped_bit_is_found),
		cmocka_unit_test(other_contents_are_foreign),
		cmocka_unit_test(newer_versions_are_named),
		cmocka_unit_test(uuids_as_text),
		cmocka_unit_test(other_text_is_no_uuid),
		cmocka_unit_test(slab_files_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
