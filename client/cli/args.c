/* args.c - parses option values strictly: the whole text is valid or refused. Stateless. */
#include "args.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <skv/mem.h>

bool skv_args_number(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
	unsigned long long v;
	char *end;

	assert(min <= max);
	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	v = strtoull(text, &end, 10);
	if (errno || *end || v < min || v > max)
		return false;
	*out = v;
	return true;
}

bool skv_args_size(const char *text, uint64_t *out)
{
	static const char units[] = "KMGT";
	char digits[24];
	size_t n = strspn(text, "0123456789");
	const char *unit = text[n] ? strchr(units, text[n]) : NULL;
	unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
	uint64_t v;

	if (n == 0 || n >= sizeof digits || (text[n] && (!unit || text[n + 1])))
		return false;
	memcpy(digits, text, n);
	digits[n] = '\0';
	if (!skv_args_number(digits, 0, UINT64_MAX >> shift, &v))
		return false;
	assert(v << shift >> shift == v);
	*out = v << shift;
	return true;
}

bool skv_args_duration(const char *text, uint64_t *s)
{
	static const struct {
		char unit;
		uint64_t s;
	} units[] = { { 'd', 86400 }, { 'h', 3600 }, { 'm', 60 }, { 's', 1 } };
	char digits[16];
	const size_t n = strspn(text, "0123456789");
	uint64_t value;

	if (n == 0 || n >= sizeof digits || !text[n] || text[n + 1])
		return false;
	memcpy(digits, text, n);
	digits[n] = '\0';
	for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
		if (units[i].unit != text[n] || !skv_args_number(digits, 1, 36500, &value))
			continue;
		*s = value * units[i].s;
		return true;
	}
	return false;
}

bool skv_args_factor(const char *text, double *out)
{
	char *end;
	double v;

	if (text[strspn(text, "0123456789.")] || !text[0])
		return false;
	v = strtod(text, &end);
	if (*end || !(v > 0) || v > 1e9)
		return false;
	*out = v;
	return true;
}

bool skv_args_key_form(const char *text, enum slabkv_key_form *out)
{
	static const char *const names[] = { "string", "int", "hex" };

	_Static_assert(SLABKV_KEYS_STRING == 0 && SLABKV_KEYS_INT == 1 && SLABKV_KEYS_WIDE == 2,
		       "the order of names");
	for (int i = 0; i < 3; i++) {
		if (strcmp(text, names[i]) == 0) {
			*out = (enum slabkv_key_form)i;
			return true;
		}
	}
	return false;
}

static bool parse_hex(const char *text, struct slabkv_key *out)
{
	char half[17];

	if (strlen(text) != 32 || text[strspn(text, "0123456789abcdefABCDEF")])
		return false;
	memcpy(half, text, 16);
	half[16] = '\0';
	out->hi = strtoull(half, NULL, 16);
	out->lo = strtoull(text + 16, NULL, 16);
	return true;
}

const char *skv_args_keys_parse(struct skv_args_keys *k, enum slabkv_key_form form,
				const char *const *texts, uint32_t n)
{
	_Static_assert(SLABKV_MAX_KEYS == 16384, "as told here and by the commands' help");
	*k = (struct skv_args_keys){ .form = form, .n = n };
	if (n < 1 || n > SLABKV_MAX_KEYS)
		return "1..16384 keys";
	k->strings = skv_calloc(n, sizeof *k->strings);
	k->ints = skv_calloc(n, sizeof *k->ints);
	k->wide = skv_calloc(n, sizeof *k->wide);
	if (!k->strings || !k->ints || !k->wide)
		return "out of memory";
	for (uint32_t i = 0; i < n; i++) {
		k->strings[i] = texts[i];
		if (form == SLABKV_KEYS_INT &&
		    !skv_args_number(texts[i], 0, UINT64_MAX, &k->ints[i]))
			return "a key of form int is a decimal number";
		if (form == SLABKV_KEYS_WIDE && !parse_hex(texts[i], &k->wide[i]))
			return "a key of form hex has 32 hex digits";
	}
	return NULL;
}

void skv_args_keys_free(struct skv_args_keys *k)
{
	skv_free(k->strings);
	skv_free(k->ints);
	skv_free(k->wide);
	*k = (struct skv_args_keys){ 0 };
}

struct slabkv_keys skv_args_keys_of(const struct skv_args_keys *k)
{
	/* Parsed, or never initialised. */
	assert(k->n <= SLABKV_MAX_KEYS && (k->n == 0 || k->strings));
	if (k->form == SLABKV_KEYS_INT)
		return slabkv_keys_ints(k->ints, k->n);
	if (k->form == SLABKV_KEYS_WIDE)
		return slabkv_keys_wide(k->wide, k->n);
	return slabkv_keys_strings(k->strings, k->n);
}

void skv_args_print_size(uint64_t bytes, char out[24])
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double v = (double)bytes;
	int i = 0;

	while (v >= 1024 && i < 6) {
		v /= 1024;
		i++;
	}
	assert(v < 1024); /* every value of 64 bits has a unit */
	if (i == 0)
		snprintf(out, 24, "%" PRIu64 " B", bytes);
	else
		snprintf(out, 24, "%.*f %s", v < 10 ? 2 : v < 100 ? 1 : 0, v, units[i]);
}
