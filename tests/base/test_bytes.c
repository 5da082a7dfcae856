/*
 * test_bytes.c - writer and reader of durable formats: golden bytes, round trips of random values,
 * and a reader that is fed nonsense and never leaves its bounds (the sanitizer builds watch).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include <skv/bytes.h>
#include <skv/mem.h>

/* splitmix64: the same numbers in every run. */
static uint64_t next(uint64_t *seed)
{
	uint64_t z = *seed += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static void golden_bytes(void **state)
{
	static const uint8_t want[] = { 0x01, 0x02, 0x03, 0x06, 0x05, 0x04, 0x03, 0x0e,
					0x0d, 0x0c, 0x0b, 0x0a, 0x09, 0x08, 0x07, 0xac,
					0x02, 0x02, 'h',  'i',  'x',  '-',  '7' };
	struct skv_buf b;

	(void)state;
	skv_buf_init(&b);
	skv_put_u8(&b, 1);
	skv_put_u16(&b, 0x0302);
	skv_put_u32(&b, 0x03040506);
	skv_put_u64(&b, 0x0708090a0b0c0d0eu);
	skv_put_varint(&b, 300);
	skv_put_string(&b, "hi", 2);
	skv_buf_printf(&b, "%c%d", 'x', -7);
	assert_false(b.failed);
	assert_int_equal(b.len, sizeof want);
	assert_memory_equal(b.data, want, sizeof want);
	skv_buf_destroy(&b);
	assert_null(b.data);
}

static void golden_varints(void **state)
{
	static const struct {
		uint64_t v;
		size_t n;
		uint8_t bytes[10];
	} row[] = {
		{ 0, 1, { 0 } },
		{ 127, 1, { 0x7f } },
		{ 128, 2, { 0x80, 1 } },
		{ 16383, 2, { 0xff, 0x7f } },
		{ 16384, 3, { 0x80, 0x80, 1 } },
		{ UINT64_MAX, 10, { 255, 255, 255, 255, 255, 255, 255, 255, 255, 1 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
		struct skv_rd r = skv_rd_make(row[i].bytes, row[i].n);
		struct skv_buf b = { 0 };

		skv_put_varint(&b, row[i].v);
		assert_int_equal(b.len, row[i].n);
		assert_memory_equal(b.data, row[i].bytes, row[i].n);
		assert_true(skv_get_varint(&r) == row[i].v);
		assert_false(r.failed);
		assert_int_equal(skv_rd_left(&r), 0);
		skv_buf_destroy(&b);
	}
}

static void too_large_varints_fail(void **state)
{
	static const uint8_t eleven[] = { 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1 };
	static const uint8_t over[] = { 255, 255, 255, 255, 255, 255, 255, 255, 255, 2 };
	struct skv_rd r = skv_rd_make(eleven, sizeof eleven);

	(void)state;
	assert_true(skv_get_varint(&r) == 0 && r.failed);
	r = skv_rd_make(over, sizeof over);
	assert_true(skv_get_varint(&r) == 0 && r.failed);
	r = skv_rd_make(eleven, 3); /* ends in the middle */
	assert_true(skv_get_varint(&r) == 0 && r.failed);
}

static void write_one(struct skv_buf *b, uint64_t kind, uint64_t v)
{
	switch (kind) {
	case 0:
		skv_put_u8(b, (uint8_t)v);
		break;
	case 1:
		skv_put_u16(b, (uint16_t)v);
		break;
	case 2:
		skv_put_u32(b, (uint32_t)v);
		break;
	case 3:
		skv_put_u64(b, v);
		break;
	case 4:
		skv_put_varint(b, v >> (v & 63));
		break;
	default:
		skv_put_string(b, (const char *)&v, v & 7);
	}
}

static void read_one(struct skv_rd *r, uint64_t kind, uint64_t v)
{
	const char *s;
	size_t n;

	switch (kind) {
	case 0:
		assert_int_equal(skv_get_u8(r), (uint8_t)v);
		break;
	case 1:
		assert_int_equal(skv_get_u16(r), (uint16_t)v);
		break;
	case 2:
		assert_int_equal(skv_get_u32(r), (uint32_t)v);
		break;
	case 3:
		assert_true(skv_get_u64(r) == v);
		break;
	case 4:
		assert_true(skv_get_varint(r) == v >> (v & 63));
		break;
	default:
		s = skv_get_string(r, &n, 7);
		assert_non_null(s);
		assert_int_equal(n, v & 7);
		assert_memory_equal(s, &v, n);
	}
}

static void random_values_come_back(void **state)
{
	(void)state;
	for (uint64_t round = 0; round < 200; round++) {
		uint64_t w = round, seed = round;
		struct skv_buf b = { 0 };
		struct skv_rd r;

		for (int i = 0; i < 200; i++) {
			uint64_t kind = next(&w) % 6;

			write_one(&b, kind, next(&w));
		}
		assert_false(b.failed);
		r = skv_rd_make(b.data, b.len);
		for (int i = 0; i < 200; i++) {
			uint64_t kind = next(&seed) % 6;

			read_one(&r, kind, next(&seed));
		}
		assert_false(r.failed);
		assert_int_equal(skv_rd_left(&r), 0);
		skv_buf_destroy(&b);
	}
}

/* A heap copy of exactly n bytes, so that one step over the end is found. */
static void read_nonsense(uint64_t seed, size_t n)
{
	uint8_t *raw = skv_malloc(n);
	struct skv_rd r = skv_rd_make(raw, n);
	uint64_t sum = 0;

	assert_non_null(raw);
	for (size_t i = 0; i < n; i++)
		raw[i] = (uint8_t)next(&seed);
	for (int i = 0; i < 50 && !r.failed; i++) {
		size_t before = skv_rd_left(&r), len = 0;
		const char *s;

		switch (next(&seed) % 7) {
		case 0:
			sum += skv_get_u8(&r);
			break;
		case 1:
			sum += skv_get_u16(&r);
			break;
		case 2:
			sum += skv_get_u32(&r);
			break;
		case 3:
			sum += skv_get_u64(&r);
			break;
		case 4:
			sum += skv_get_varint(&r);
			break;
		case 5:
			s = skv_get_string(&r, &len, 16);
			assert_true(len <= 16);
			for (size_t k = 0; s && k < len; k++)
				sum += (uint8_t)s[k];
			break;
		default:
			s = (const char *)skv_get_bytes(&r, next(&seed) % 20);
			sum += s && before > skv_rd_left(&r) ? (uint8_t)s[0] : 0;
		}
		assert_true(skv_rd_left(&r) <= before);
		assert_true(r.p >= raw && r.p <= raw + n);
	}
	assert_true(sum < UINT64_MAX); /* so that the reads are not left out */
	skv_free(raw);
}

static void nonsense_stays_in_bounds(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 20000; i++)
		read_nonsense(i * 77, i % 48);
}

static void a_failed_read_is_sticky(void **state)
{
	static const uint8_t raw[] = { 1, 2, 3 };
	struct skv_rd r = skv_rd_make(raw, sizeof raw);
	size_t n = 9;

	(void)state;
	assert_int_equal(skv_get_u32(&r), 0);
	assert_true(r.failed);
	assert_int_equal(skv_get_u8(&r), 0);
	assert_null(skv_get_bytes(&r, 0));
	assert_null(skv_get_string(&r, &n, 10));
	assert_int_equal(n, 0);
	assert_int_equal(skv_rd_left(&r), 0); /* a loop over what is left ends here */
	assert_ptr_equal(r.p, raw);            /* nothing was consumed */
}

static void empty_readers_are_fine(void **state)
{
	struct skv_rd r = skv_rd_make(NULL, 0);

	(void)state;
	assert_int_equal(skv_rd_left(&r), 0);
	(void)skv_get_bytes(&r, 0);
	assert_false(r.failed);
	assert_int_equal(skv_get_u8(&r), 0);
	assert_true(r.failed);
}

static void strings_have_a_bound(void **state)
{
	struct skv_buf b = { 0 };
	struct skv_rd r;
	size_t n;

	(void)state;
	skv_put_string(&b, "12345", 5);
	r = skv_rd_make(b.data, b.len);
	assert_non_null(skv_get_string(&r, &n, 5));
	r = skv_rd_make(b.data, b.len);
	assert_null(skv_get_string(&r, &n, 4));
	assert_true(r.failed);
	r = skv_rd_make(b.data, b.len - 1);
	assert_null(skv_get_string(&r, &n, 5));
	skv_buf_clear(&b);
	skv_put_varint(&b, UINT64_MAX); /* a length that is a lie */
	r = skv_rd_make(b.data, b.len);
	assert_null(skv_get_string(&r, &n, SIZE_MAX));
	assert_true(r.failed);
	skv_buf_destroy(&b);
}

static void a_failed_write_is_sticky_and_keeps_the_begin(void **state)
{
	struct skv_buf b = { 0 };

	(void)state;
	skv_put_bytes(&b, "begin", 5);
	skv_mem_fail_at(1);
	assert_false(skv_buf_reserve(&b, 1 << 20));
	skv_mem_fail_at(0);
	assert_true(b.failed);
	skv_put_u32(&b, 7);
	skv_buf_printf(&b, "more");
	skv_buf_set_u32(&b, 0, 9);
	assert_int_equal(b.len, 5);
	assert_memory_equal(b.data, "begin", 5);
	skv_buf_clear(&b);
	assert_false(b.failed);
	skv_put_u8(&b, 7);
	assert_int_equal(b.len, 1);
	assert_false(skv_buf_reserve(&b, SIZE_MAX));
	assert_true(b.failed);
	skv_buf_destroy(&b);
}

static void a_length_is_filled_in_later(void **state)
{
	struct skv_buf b = { 0 };
	struct skv_rd r;

	(void)state;
	skv_put_u32(&b, 0);
	skv_put_bytes(&b, "abc", 3);
	skv_buf_set_u32(&b, 0, 0x01020304);
	skv_buf_set_u32(&b, 4, 0xffffffff); /* only three bytes there: left alone */
	skv_buf_set_u32(&b, 100, 1);
	r = skv_rd_make(b.data, b.len);
	assert_int_equal(skv_get_u32(&r), 0x01020304);
	assert_memory_equal(skv_get_bytes(&r, 3), "abc", 3);
	skv_buf_destroy(&b);
}

static void printf_grows_as_needed(void **state)
{
	struct skv_buf b = { 0 };

	(void)state;
	for (int i = 0; i < 1000; i++)
		skv_buf_printf(&b, "%04d,", i);
	assert_int_equal(b.len, 5000);
	assert_memory_equal(b.data, "0000,0001,", 10);
	assert_memory_equal(b.data + 4995, "0999,", 5);
	skv_buf_destroy(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden_bytes),
		cmocka_unit_test(golden_varints),
		cmocka_unit_test(too_large_varints_fail),
		cmocka_unit_test(random_values_come_back),
		cmocka_unit_test(nonsense_stays_in_bounds),
		cmocka_unit_test(a_failed_read_is_sticky),
		cmocka_unit_test(empty_readers_are_fine),
		cmocka_unit_test(strings_have_a_bound),
		cmocka_unit_test(a_failed_write_is_sticky_and_keeps_the_begin),
		cmocka_unit_test(a_length_is_filled_in_later),
		cmocka_unit_test(printf_grows_as_needed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
