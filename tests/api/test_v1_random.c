/*
 * test_v1_random.c - random requests in JSON, whole and damaged: what the codec takes is the same
 * after a way through protobuf.
 *
 * The generator takes a sample of a message and edits it with a grammar's eye: tokens that parsers
 * disagree about, pieces given twice, moved, cut. SKV_CASES sets how many (default 200000),
 * SKV_SEED where to begin; the same numbers give the same cases.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "identity.h"

#define ROOM 8192

static uint64_t state_of_random;

static uint32_t below(uint32_t n)
{
	state_of_random ^= state_of_random << 13;
	state_of_random ^= state_of_random >> 7;
	state_of_random ^= state_of_random << 17;
	return (uint32_t)((state_of_random * 0x2545f4914f6cdd1du) >> 33) % n;
}

struct text {
	char s[ROOM];
	size_t n;
};

/* Replaces `cut` bytes at `at` by p,n; nothing when that does not fit. */
static void splice(struct text *t, size_t at, size_t cut, const char *p, size_t n)
{
	if (at + cut > t->n || t->n - cut + n > ROOM)
		return;
	memmove(t->s + at + n, t->s + at + cut, t->n - at - cut);
	memcpy(t->s + at, p, n);
	t->n = t->n - cut + n;
}

static const char *const tokens[] = {
	"{", "}", "[", "]", ",", ":", "\"", "\\", " ", "\n", "\t\r", "null", "true", "false", "nul",
	"truex", "True",
	"0", "-0", "-", "-1", "00", "01", "1.0", "1.", ".5", "1e3", "1E+3", "1e", "1e-",
	"0e999999999999999999999",
	"1e308", "1.7976931348623157e308", "1.7976931348623159e308",
	"17976931348623158079372897140530341507993413271003782693617377898044496829276475"
	"09466490179775872070963302864166928879109465555478519404026306574886715058206819"
	"08902000708383676273854845817711531764475730270069855571366959622842914819860834"
	"936475292719074168444365510704342711559699508093042880177904174497791.9",
	"1e309", "-1e309", "1e-999", "0.0001e312", "0.0001e313", "9223372036854775807",
	"9223372036854775808",
	"-9223372036854775808", "-9223372036854775809", "18446744073709551615",
	"18446744073709551616",
	"\"18446744073709551615\"", "\"18446744073709551616\"", "\"007\"", "\"4K\"", "\"K\"",
	"\"16777216T\"",
	"\"\"", "\"a\"", "\"\\u0041\"", "\"\\u0000\"", "\"\\ud83d\\ude00\"", "\"\\ud83d\"",
	"\"\\ude00\"", "\"\\ud83d\\u0041\"",
	"\"\\ud83d\\", "\"\\u12g4\"", "\"\\x\"", "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\x01\"",
	"\"\x7f\"", "\"\xc3\xa9\"", "\"\xed\xa0\x80\"",
	"\"\xf4\x90\x80\x80\"", "\"\xc0\x80\"", "\xef\xbb\xbf", "\xc3\xa9", "\xff", "\x80",
	"\xf0\x9f\x98", "{}", "[]", "[[[[[[[[[[[[[[[[",
	"[{\"a\":[{\"b\":1}]}]", "\"keys\":[\"a\"],", "\"keys_int\":[1,2,1],", "\"k\\u0065ys\":1,",
	"\"keys_hex\":[", ",\"x\":1", ",\"x\":{\"y\":1,\"y\":2}",
	(",\"a\":1,\"b\":1,\"c\":1,\"d\":1,\"e\":1,\"f\":1,\"g\":1,\"h\":1,\"i\":1,\"j\":1,\"k\":1,"
	 "\"l\":1,\"m\":1,\"n\":1,\"o\":1,\"p\":1,\"q\":1,\"r\":1"),
	"00000000000000000000000000000001", "\"0123456789ABCDEF0123456789abcdef\"", "..", "a/../b",
	"/", "'", "//", "/**/", "NaN", "Infinity",
};
#define N_TOKENS (sizeof tokens / sizeof tokens[0])

/* Where a token begins, mostly: behind one of the signs of structure. */
static size_t place(const struct text *t)
{
	size_t at = below((uint32_t)t->n + 1);

	if (below(4) == 0)
		return at;
	while (at < t->n && !strchr("{}[],:", t->s[at]))
		at++;
	return at < t->n && below(2) ? at + 1 : at;
}

/* End of the value or word that begins at `at`, seen roughly. */
static size_t token_end(const struct text *t, size_t at)
{
	size_t end = at;

	if (end < t->n && t->s[end] == '"')
		for (end++; end < t->n && t->s[end] != '"'; end++)
			;
	while (end < t->n && !strchr("{}[],:", t->s[end]))
		end++;
	return end;
}

static void edit(struct text *t)
{
	const char *token = tokens[below(N_TOKENS)];
	size_t at = place(t), end = token_end(t, at);
	char copy[256];
	size_t n;
	char c;

	switch (below(10)) {
	case 0:
	case 1:
		splice(t, at, 0, token, strlen(token));
		break;
	case 2:
	case 3:
		splice(t, at, end - at, token, strlen(token));
		break;
	case 4: /* a piece again, somewhere */
		n = below(sizeof copy);
		if (n > t->n - at)
			n = t->n - at;
		memcpy(copy, t->s + at, n);
		splice(t, below(2) ? at : place(t), 0, copy, n);
		break;
	case 5:
		splice(t, at, below(2) ? end - at : below((uint32_t)(t->n - at) + 1), "", 0);
		break;
	case 6:
		c = (char)(below(3) ? 0x20 + below(0x60) : below(256));
		splice(t, at, at < t->n, &c, 1);
		break;
	case 7:
	case 8: /* another number, of any length */
		while (at < t->n && (t->s[at] < '0' || t->s[at] > '9'))
			at++;
		for (end = at; end < t->n && t->s[end] >= '0' && t->s[end] <= '9';)
			end++;
		n = (size_t)snprintf(
			copy, sizeof copy, below(2) ? "%llu" : "\"%llu\"",
			((unsigned long long)below(UINT32_MAX) << 32 | below(UINT32_MAX)) >>
				below(64));
		if (below(2) == 0 && copy[0] != '"' && n > 18)
			n = 18;
		splice(t, at, end - at, copy, n);
		break;
	default:
		if (below(4) == 0)
			t->n = at;
		else
			splice(t, at, 0, " ", 1);
		break;
	}
}

/* A list of keys in one of the forms, sometimes with one twice. */
static void add_keys(struct text *t, uint32_t n)
{
	static const char *const forms[] = { "keys", "keys_int", "keys_hex" };
	uint32_t form = below(3);
	char one[80];
	int len = snprintf(one, sizeof one, "\"%s\":[", forms[form]);

	splice(t, t->n, 0, one, (size_t)len);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = below(8) ? i : below(n);

		if (form == 0)
			len = snprintf(one, sizeof one, "\"k%s%u\"", below(4) ? "" : "\\u00e9", k);
		else if (form == 1)
			len = snprintf(one, sizeof one, below(4) ? "%u" : "\"%u\"", k);
		else
			len = snprintf(one, sizeof one, "\"%032x\"", k);
		splice(t, t->n, 0, i ? "," : "", i > 0);
		splice(t, t->n, 0, one, (size_t)len);
	}
	splice(t, t->n, 0, "]}", 2);
}

static void make(struct text *t, size_t m)
{
	const char *name = messages[m].name;
	const char *head = strcmp(name, "match_req") == 0 ? "{\"instances\":[\"m\",\"n\"],"
			   : strcmp(name, "lookup_req") == 0
				   ? "{\"mode\":\"window\",\"partial\":true,\"window\":3,"
			   : strcmp(name, "start_req") == 0  ? "{\"parent_int\":7,"
			   : strcmp(name, "delete_req") == 0 ? "{"
							     : NULL;

	t->n = 0;
	if (!head || below(2)) {
		splice(t, 0, 0, messages[m].sample, messages[m].n_sample);
		return;
	}
	splice(t, 0, 0, head, strlen(head));
	add_keys(t, below(4) ? 1 + below(6) : below(120));
}

static unsigned long setting(const char *name, unsigned long otherwise)
{
	const char *s = getenv(name);

	return s ? strtoul(s, NULL, 10) : otherwise;
}

static void test_random(void **state)
{
	unsigned long cases = setting("SKV_CASES", 200000), good = 0;
	size_t n_requests = 0;
	static struct text t;

	(void)state;
	while (n_requests < n_messages && !messages[n_requests].written)
		n_requests++;
	state_of_random = (setting("SKV_SEED", 1) + 1) * 0x9e3779b97f4a7c15u;
	for (unsigned long i = 0; i < cases; i++) {
		size_t m = i % n_requests;
		/* Exactly its size, so that a step too far is found. */
		char *exact;

		make(&t, m);
		for (uint32_t edits = below(4); edits > 0; edits--)
			edit(&t);
		exact = malloc(t.n ? t.n : 1);
		assert_non_null(exact);
		memcpy(exact, t.s, t.n);
		good += check_identity(m, exact, t.n) == SKV_OK;
		free(exact);
	}
	printf("%lu cases, %lu of them valid\n", cases, good);
	assert_true(good > cases / 10 && good < cases - cases / 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_random) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
