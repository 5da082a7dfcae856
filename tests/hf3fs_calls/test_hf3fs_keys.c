/*
 * test_hf3fs_keys.c - names of spaces, keys of JSON scalars, names of blocks and back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <skv/hf3fs_api.h>
#include <skv/ops.h>

#include "key.h"
#include "space.h"

static const struct skv_secret secret = { { 1, 2, 3 } };

/* ---- spaces ---------------------------------------------------------------------------------- */

static void assert_space(const char *tenant, int64_t rank, const char *ns, const char *name,
			 const char *id)
{
	char got[SKV_MAX_NAME + 1];
	struct space s;

	space_init(&s, tenant, rank, ns, strlen(ns));
	space_name(&s, got);
	assert_string_equal(got, name);
	assert_string_equal(s.id, id);
	assert_true(skv_name_valid(got, strlen(got)));
	assert_true(skv_name_valid(s.id, strlen(s.id)));
}

static void test_space_names(void **state)
{
	char longest[SPACE_NS_MAX + 1], other[SPACE_NS_MAX + 1], name[SKV_MAX_NAME + 1];
	struct space s, t;

	(void)state;
	assert_space("default", 0, "kv", "pages:default:0:kv", "0:kv");
	assert_space("default", 7, "", "pages:default:7:", "7:");
	assert_space("a:b", -1, "a/b c=", "pages:a=3Ab:_-1:a=2Fb=20c=3D", "_-1:a=2Fb=20c=3D");
	memset(longest, '/', sizeof longest - 1);
	longest[sizeof longest - 1] = '\0';
	memcpy(other, longest, sizeof other);
	other[SPACE_NS_MAX - 1] = 'x';
	space_init(&s, longest, -999999999999999999, longest, SPACE_NS_MAX);
	space_init(&t, longest, -999999999999999999, other, SPACE_NS_MAX);
	space_name(&s, name);
	assert_true(skv_name_valid(name, strlen(name)) && skv_name_valid(s.id, strlen(s.id)));
	assert_string_not_equal(s.id, t.id);
	assert_non_null(strstr(s.id, ":=h"));
}

static void assert_back(int64_t rank, const char *ns, size_t n)
{
	struct skv_instance_spec i = { .tenant = "t" };
	struct skv_arena a;
	struct skv_buf extra = { 0 };
	struct space s, got;

	skv_arena_init(&a);
	space_init(&s, "t", rank, ns, n);
	space_extra(&s, &extra);
	i.id = s.id;
	i.extra = (const char *)extra.data;
	assert_true(space_of(&i, &a, &got));
	assert_int_equal(got.rank, rank);
	assert_int_equal(got.n_ns, n);
	assert_memory_equal(got.ns, ns, n);
	assert_string_equal(got.tenant, "t");
	i.id = "0:other";
	assert_false(space_of(&i, &a, &got));
	skv_buf_destroy(&extra);
	skv_arena_destroy(&a);
}

static void test_space_of_instance(void **state)
{
	char ns[SPACE_NS_MAX];

	(void)state;
	memset(ns, '\n', sizeof ns);
	assert_back(0, "kv", 2);
	assert_back(-3, "", 0);
	assert_back(12, "a\"b\\\0\xc3\xbc", 7);
	assert_back(1, ns, sizeof ns);
}

/* A caller that puts an instance may write any `extra`: names have room for ranks of 18 digits. */
static void test_space_of_long_rank(void **state)
{
	const char *const ranks[] = { "-9223372036854775808", "1000000000000000000" };
	struct skv_instance_spec i = { .tenant = "t" };
	struct skv_arena a;
	struct space got;

	(void)state;
	skv_arena_init(&a);
	for (size_t k = 0; k < sizeof ranks / sizeof ranks[0]; k++) {
		char id[64], extra[128];

		snprintf(id, sizeof id, "%s%s:kv", *ranks[k] == '-' ? "_" : "", ranks[k]);
		snprintf(extra, sizeof extra, "{\"pages\":{\"rank\":%s,\"namespace\":\"kv\"}}",
			 ranks[k]);
		i.id = id;
		i.extra = extra;
		assert_false(space_of(&i, &a, &got));
	}
	skv_arena_destroy(&a);
}

/* A space is of its tenant's family by the name of its storage, and by its instance's. */
static void assert_family(const char *tenant, int64_t rank, const char *ns, bool is)
{
	char name[SKV_MAX_NAME + 1], one[SKV_MAX_NAME + 1], other[SKV_MAX_NAME + 1];
	struct space s;

	space_init(&s, tenant, rank, ns, strlen(ns));
	space_name(&s, name);
	assert_int_equal(skv_hf3fs_family(NULL, name, one), is);
	assert_int_equal(skv_hf3fs_family(tenant, s.id, other), is);
	if (!is)
		return;
	assert_string_equal(one, other);
	space_family(tenant, other);
	assert_string_equal(one, other);
}

static void test_families(void **state)
{
	char longest[SKV_MAX_NAME + 1], a[SKV_MAX_NAME + 1], b[SKV_MAX_NAME + 1];
	static const char *const others[] = { "",	     "pages:",	       "pages:t",
					      "pages:t:",    "pages:t:0",      "pages:t:x:vllm",
					      "pages:t:0:vllm:x", "x:t:0:vllm" };

	(void)state;
	memset(longest, 'x', SKV_MAX_NAME);
	longest[SKV_MAX_NAME] = '\0';
	assert_family("t", 0, "vllm", true);
	assert_family("a/b:c", -12, "vllm", true);
	assert_family(longest, HF3FS_RANK_MAX, "vllm", true);
	assert_family("t", 0, "kv", false);
	assert_family("t", 0, "vllm2", false);
	assert_family("t", 0, "x:vllm", false);
	space_family("t", a);
	assert_string_equal(a, "pages:t:vllm");
	space_family(longest, b);
	assert_true(strcmp(a, b) != 0);
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
		assert_false(skv_hf3fs_family(NULL, others[i], a));
		assert_false(skv_hf3fs_family("t", others[i], a));
	}
	snprintf(a, sizeof a, "pages:%.80s:0:vllm", longest); /* no space's: it is too long */
	assert_false(skv_hf3fs_family(NULL, a, b));
}

static void test_ranks(void **state)
{
	int64_t v;

	(void)state;
	assert_true(space_rank("0", 1, false, &v) && v == 0);
	assert_true(space_rank("007", 3, false, &v) && v == 7);
	assert_true(space_rank("0000000000000000000000000000001", 31, false, &v) && v == 1);
	assert_true(space_rank("999999999999999999", 18, false, &v) && v == 999999999999999999);
	assert_false(space_rank("1000000000000000000", 19, false, &v));
	assert_false(space_rank("", 0, true, &v) || space_rank("-", 1, true, &v) ||
		     space_rank("-1", 2, false, &v));
	assert_false(space_rank("1a", 2, true, &v) || space_rank(" 1", 2, true, &v) ||
		     space_rank("1.5", 3, true, &v));
	assert_true(space_rank("-12", 3, true, &v) && v == -12);
	assert_true(space_rank("+12", 3, true, &v) && v == 12);
}

/* ---- keys ------------------------------------------------------------------------------------ */

static struct skv_arena arena;

/* The first element of a list. */
static const struct skv_json_node *scalar(const char *list)
{
	const struct skv_json_limits limits = { .depth = 4, .values = 16, .wide = true,
						.nul = true };
	struct skv_json_doc doc;

	assert_true(skv_json_parse(&doc, &arena, list, strlen(list), &limits));
	return skv_json_first(doc.root);
}

static bool are_equal(const char *a, const char *b)
{
	struct skv_key one, two;

	assert_true(hf3fs_key(&secret, scalar(a), &one));
	assert_true(hf3fs_key(&secret, scalar(b), &two));
	return skv_key_equal(one, two);
}

static void test_keys(void **state)
{
	struct skv_key key;

	(void)state;
	assert_true(hf3fs_key(&secret, scalar("[\"ab\"]"), &key));
	assert_true(skv_key_equal(key, skv_key_from_string(&secret, "ab", 2)));
	assert_true(are_equal("[\"\\u0061b\"]", "[\"ab\"]"));
	assert_true(are_equal("[1]", "[1.0]") && are_equal("[1]", "[true]") &&
		    are_equal("[1]", "[10e-1]"));
	assert_true(are_equal("[0]", "[false]") && are_equal("[0]", "[-0.0]"));
	assert_true(are_equal("[1.5]", "[15e-1]"));
	assert_false(are_equal("[1]", "[\"1\"]") || are_equal("[null]", "[\"null\"]") ||
		     are_equal("[null]", "[0]"));
	assert_false(are_equal("[18446744073709551615]", "[-1]") ||
		     are_equal("[1e300]", "[1e301]"));
	assert_false(are_equal("[\"a\"]", "[\"a\\u0000\"]"));
	assert_false(hf3fs_key(&secret, scalar("[[]]"), &key) ||
		     hf3fs_key(&secret, scalar("[{}]"), &key));
}

/* ---- names ----------------------------------------------------------------------------------- */

static void assert_name(const char *list, size_t length, uint8_t kind)
{
	const struct skv_json_node *v = scalar(list);
	uint8_t out[2048];
	const struct skv_bytes name = { out, hf3fs_name(v, out) };
	struct skv_buf b = { 0 };

	assert_int_equal(name.n, length);
	assert_int_equal(out[0], kind);
	assert_true(name.n <= 1 + strlen(list) - 2);
	skv_put_u8(&b, '[');
	assert_true(hf3fs_name_put(&b, &name));
	skv_put_u8(&b, ']');
	assert_int_equal(b.len, strlen(list));
	assert_memory_equal(b.data, list, b.len);
	skv_buf_destroy(&b);
}

#define HEX64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void test_names(void **state)
{
	static const uint8_t bad[] = { 9, 1, 2 };
	struct skv_buf b = { 0 };

	(void)state;
	assert_name("[\"ab\"]", 3, 0);
	assert_name("[\"\"]", 1, 0);
	assert_name("[\"a\\u0000b\xc3\xbc\\n\"]", 7, 0);
	assert_name("[\"" HEX64 "\"]", 33, 1);
	assert_name("[\"" HEX64 "-k\"]", 35, 1);
	assert_name("[\"" HEX64 HEX64 "\"]", 97, 1);
	assert_name("[\"A123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"]", 65,
		    0);
	assert_name("[\"g123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"]", 65,
		    0);
	assert_name("[-9223372036854775808]", 21, 2);
	assert_name("[18446744073709551615]", 21, 2);
	assert_name("[1.50e1]", 7, 2);
	assert_name("[true]", 5, 2);
	assert_name("[false]", 6, 2);
	assert_name("[null]", 5, 2);
	assert_false(hf3fs_name_put(&b, &(struct skv_bytes){ bad, sizeof bad }));
	assert_false(hf3fs_name_put(&b, &(struct skv_bytes){ bad, 0 }));
	assert_false(hf3fs_name_put(&b, &(struct skv_bytes){ bad + 1, 2 })); /* half a digest */
	skv_buf_destroy(&b);
}

/* Each byte in the place of a digit: a digest only if it is one. */
static void test_digest_digits(void **state)
{
	char text[] = HEX64;
	uint8_t out[80];

	(void)state;
	for (unsigned at = 0; at < 64; at += 5) {
		for (unsigned c = 0; c < 256; c++) {
			const struct skv_json_node v = { .type = SKV_JSON_STRING, .span = 1,
							 .n = 64, .s = text };
			bool digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
			char was = text[at];

			text[at] = (char)c;
			assert_int_equal(hf3fs_name(&v, out), digit ? 33 : 65);
			if (digit)
				assert_int_equal(out[1 + at / 2] >> (at % 2 ? 0 : 4) & 15,
						 c <= '9' ? c - '0' : c - 'a' + 10);
			text[at] = was;
		}
	}
}

static int open_arena(void **state)
{
	(void)state;
	skv_arena_init(&arena);
	return 0;
}

static int close_arena(void **state)
{
	(void)state;
	skv_arena_destroy(&arena);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_space_names), cmocka_unit_test(test_space_of_instance),
		cmocka_unit_test(test_space_of_long_rank), cmocka_unit_test(test_families),
		cmocka_unit_test(test_ranks),	    cmocka_unit_test(test_keys),
		cmocka_unit_test(test_names),	    cmocka_unit_test(test_digest_digits),
	};

	return cmocka_run_group_tests(tests, open_arena, close_arena);
}
