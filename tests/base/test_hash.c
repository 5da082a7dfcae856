/*
 * test_hash.c - golden values: checksums and key hashes are durable formats, so a new library
 * version must not change them. The SipHash values are those of its reference implementation
 * (vectors_sip128), those of the empty input of XXH3 are the published ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ctype.h>
#include <pthread.h>
#include <string.h>

#include <skv/hash.h>
#include <skv/key_set.h>
#include <skv/status.h>
#include <stdlib.h>
#include <xxhash.h> /* the library itself */

static void checksum_is_xxh3(void **state)
{
	uint8_t b[4096];

	(void)state;
	assert_true(skv_checksum("", 0) == 0x2d06800538d394c2u);
	assert_true(skv_checksum(NULL, 0) == 0x2d06800538d394c2u);
	assert_true(skv_checksum("a", 1) == 0xe6c632b61e964e1fu);
	assert_true(skv_checksum("abc", 3) == 0x78af5f94892f3950u);
	assert_true(skv_checksum("slabkvd", 7) == 0x1b2fa231fd4e965au);
	for (int i = 0; i < 4096; i++)
		b[i] = (uint8_t)i;
	assert_true(skv_checksum(b, sizeof b) == 0xeb4b7c3707879151u);
	b[2000] ^= 1;
	assert_true(skv_checksum(b, sizeof b) != 0xeb4b7c3707879151u);
}

static void checksum_is_the_librarys_at_every_length(void **state)
{
	size_t max = 3 * 4096 + 17;
	uint8_t *b = malloc(max);

	(void)state;
	assert_non_null(b);
	for (size_t i = 0; i < max; i++)
		b[i] = (uint8_t)(i * 167 + i / 251);
	for (size_t n = 0; n < max; n += n < 2100 ? 1 : 61)
		assert_true(skv_checksum(b + max - n, n) == XXH3_64bits(b + max - n, n));
	free(b);
}

static void checksum_does_not_care_for_alignment(void **state)
{
	uint8_t pattern[1024], moved[1024 + 16];

	(void)state;
	for (size_t i = 0; i < sizeof pattern; i++)
		pattern[i] = (uint8_t)(i * 7);
	for (size_t shift = 1; shift < 16; shift++) {
		memcpy(moved + shift, pattern, sizeof pattern);
		for (size_t n = 0; n <= sizeof pattern; n += 64)
			assert_true(skv_checksum(moved + shift, n) == skv_checksum(pattern, n));
	}
}

static void content_hash_is_xxh3_128(void **state)
{
	char hex[SKV_KEY_HEX + 1];

	(void)state;
	skv_key_to_hex(skv_hash128("", 0), hex);
	assert_string_equal(hex, "99aa06d3014798d86001c324468d497f");
	skv_key_to_hex(skv_hash128("abc", 3), hex);
	assert_string_equal(hex, "06b05ab6733a618578af5f94892f3950");
}

static void string_keys_are_siphash(void **state)
{
	static const struct {
		size_t n;
		const char *hex;
	} row[] = {
		{ 0, "a3817f04ba25a8e66df67214c7550293" },
		{ 1, "da87c1d86b99af44347659119b22fc45" },
		{ 2, "8177228da4a45dc7fca38bdef60affe4" },
		{ 63, "5150d1772f50834a503e069a973fbd7c" },
	};
	struct skv_secret secret;
	char text[64], hex[SKV_KEY_HEX + 1];

	(void)state;
	for (int i = 0; i < 16; i++)
		secret.bytes[i] = (uint8_t)i;
	for (int i = 0; i < 64; i++)
		text[i] = (char)i;
	for (size_t i = 0; i < 4; i++) {
		skv_key_to_hex(skv_key_from_string(&secret, text, row[i].n), hex);
		assert_string_equal(hex, row[i].hex);
	}
	secret.bytes[15] ^= 1;
	skv_key_to_hex(skv_key_from_string(&secret, text, 0), hex);
	assert_string_not_equal(hex, row[0].hex);
}

static void a_batch_of_keys_is_its_keys(void **state)
{
	static const size_t n[] = { 64, 64, 64, 64, 64, 3, 3, 66, 66,  66,  66,  0,  0,
				    0,  0,  1,  7,  8,  8, 8, 8,  255, 255, 255, 255 };
	enum { N = sizeof n / sizeof n[0] };
	struct skv_secret secret;
	char text[N][255];
	struct skv_key out[N];
	struct skv_key_batch b = { .secret = &secret };

	(void)state;
	skv_random(&secret, sizeof secret);
	skv_random(text, sizeof text);
	for (int round = 0; round < 300; round++) {
		for (int i = 0; i < N; i++)
			skv_key_batch_add(&b, text[i], round ? (size_t)round % 255 : n[i], &out[i]);
		skv_key_batch_end(&b);
		for (int i = 0; i < N; i++) {
			struct skv_key one = skv_key_from_string(
				&secret, text[i], round ? (size_t)round % 255 : n[i]);

			assert_true(skv_key_equal(out[i], one));
		}
	}
}

static void hex_goes_both_ways(void **state)
{
	struct skv_key key = { 0x0123456789abcdefu, 0xfedcba9876543210u }, back;
	char hex[SKV_KEY_HEX + 1];

	(void)state;
	skv_key_to_hex(key, hex);
	assert_string_equal(hex, "0123456789abcdeffedcba9876543210");
	assert_true(skv_key_from_hex(hex, 32, &back));
	assert_true(skv_key_equal(key, back));
	assert_true(skv_key_from_hex("0123456789ABCDEFFEDCBA9876543210", 32, &back));
	assert_true(skv_key_equal(key, back));
	for (unsigned c = 0; c < 256; c++) { /* each byte at each place */
		for (size_t i = 0; i < SKV_KEY_HEX; i++) {
			memset(hex, '7', SKV_KEY_HEX);
			hex[i] = (char)c;
			assert_int_equal(skv_key_from_hex(hex, SKV_KEY_HEX, &back),
					 c && isxdigit((int)c));
		}
	}
	skv_key_to_hex((struct skv_key){ 0, 5 }, hex); /* keys_int 5 */
	assert_string_equal(hex, "00000000000000000000000000000005");
}

static void other_text_is_no_key(void **state)
{
	static const char good[] = "0123456789abcdeffedcba9876543210";
	struct skv_key key = { 1, 2 };
	char bad[33];

	(void)state;
	assert_false(skv_key_from_hex(good, 31, &key));
	assert_false(skv_key_from_hex(good, 33, &key));
	assert_false(skv_key_from_hex("", 0, &key));
	for (int c = 0; c < 256; c++) {
		if (strchr("0123456789abcdefABCDEF", c) && c != 0)
			continue;
		memcpy(bad, good, sizeof bad);
		bad[c % 32] = (char)c;
		assert_false(skv_key_from_hex(bad, 32, &key));
	}
	assert_true(key.hi == 1 && key.lo == 2); /* untouched */
}

/* The mix of a table: neighbouring keys spread over buckets, and the seed matters. */
static void mixed_keys_spread(void **state)
{
	unsigned bucket[256] = { 0 };
	unsigned same = 0;

	(void)state;
	for (uint64_t i = 0; i < 25600; i++) {
		struct skv_key key = { 0, i };

		bucket[skv_key_mix(key, 42) & 255]++;
		same += skv_key_mix(key, 42) == skv_key_mix(key, 43);
	}
	for (int i = 0; i < 256; i++)
		assert_in_range(bucket[i], 40, 200); /* 100 expected */
	assert_int_equal(same, 0);
}

static void random_bytes_differ(void **state)
{
	uint64_t a[4] = { 0 }, b[4] = { 0 };

	(void)state;
	skv_random(a, sizeof a);
	skv_random(b, sizeof b);
	assert_memory_not_equal(a, b, sizeof a);
	assert_true((a[0] | a[1]) != 0 && (a[2] | a[3]) != 0);
}

static void *draw(void *out)
{
	skv_random(out, 16);
	return NULL;
}

static void threads_draw_different_numbers(void **state)
{
	enum { N = 8 };
	pthread_t t[N];
	uint8_t out[N][16];

	(void)state;
	for (int i = 0; i < N; i++)
		assert_int_equal(pthread_create(&t[i], NULL, draw, out[i]), 0);
	for (int i = 0; i < N; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < N; i++)
		for (int k = 0; k < i; k++)
			assert_memory_not_equal(out[i], out[k], 16);
}

static void secrets_compare(void **state)
{
	(void)state;
	assert_true(skv_equal_secret("abcd", "abcd", 4));
	assert_false(skv_equal_secret("abcd", "abcx", 4));
	assert_true(skv_equal_secret("abcd", "abcx", 3));
	assert_true(skv_equal_secret("", "x", 0));
}

static void a_key_set_knows_what_came_before(void **state)
{
	enum { N = 1000 };
	static struct skv_key keys[N];
	static uint32_t cells[2048];
	struct skv_key_set set;
	uint32_t twice, first;

	(void)state;
	assert_int_equal(skv_key_set_cells(0), 2);
	assert_int_equal(skv_key_set_cells(N), 2048);
	skv_key_set_init(&set, cells, N);
	for (uint32_t i = 0; i < N; i++) {
		uint32_t *at;

		keys[i] = (struct skv_key){ i % 7, i % 300 }; /* alike in a half, never in both */
		at = skv_key_set_find(&set, keys, keys[i]);
		assert_int_equal(*at, 0);
		*at = i + 1;
	}
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(*skv_key_set_find(&set, keys, keys[i]), i + 1);
	assert_int_equal(*skv_key_set_find(&set, keys, (struct skv_key){ 9, 9 }), 0);
	skv_key_set_init(&set, memset(cells, 0, sizeof cells), N);
	assert_int_equal(*skv_key_set_find(&set, keys, keys[5]), 0);
	assert_int_equal(skv_keys_duplicate(keys, N, &twice, &first), SKV_OK);
	keys[N - 1] = keys[N - 2] = keys[7];
	assert_int_equal(skv_keys_duplicate(keys, N, &twice, &first), SKV_E_CONFLICT);
	assert_true(twice == N - 2 && first == 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(checksum_is_xxh3),
		cmocka_unit_test(checksum_is_the_librarys_at_every_length),
		cmocka_unit_test(checksum_does_not_care_for_alignment),
		cmocka_unit_test(content_hash_is_xxh3_128),
		cmocka_unit_test(string_keys_are_siphash),
		cmocka_unit_test(a_batch_of_keys_is_its_keys),
		cmocka_unit_test(hex_goes_both_ways),
		cmocka_unit_test(other_text_is_no_key),
		cmocka_unit_test(mixed_keys_spread),
		cmocka_unit_test(random_bytes_differ),
		cmocka_unit_test(threads_draw_different_numbers),
		cmocka_unit_test(secrets_compare),
		cmocka_unit_test(a_key_set_knows_what_came_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
