/*
 * params.c - parameter values: the table as data, text to value and back.
 *
 * Owns the strings inside struct skv_params. One thread, at start; no locks. It reads no file and
 * prints nothing: params_read.c reads the sources, params_print.c writes help, dump and manual.
 */
#include "params_internal.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <skv/mem.h>

const struct param skv_param_rows[SKV_PARAM_COUNT] = {
#define ROW(name, type, initial, min, max, unit, help)                                             \
	{ #name, PARAM_##type, initial, min, max, unit, help, offsetof(struct skv_params, name) },
	SKV_PARAMS(ROW)
#undef ROW
};

static char **text_of(struct skv_params *p, const struct param *row)
{
	assert(row->type == PARAM_TEXT || row->type == PARAM_CHOICE);
	return (char **)((char *)p + row->offset);
}

static uint64_t *number_of(struct skv_params *p, const struct param *row)
{
	assert(row->type == PARAM_NUMBER || row->type == PARAM_BYTES || row->type == PARAM_PORT);
	return (uint64_t *)((char *)p + row->offset);
}

static void render_number(uint64_t v, bool bytes, char *out, size_t n)
{
	static const char suffix[] = "KMGTPE";
	int k = -1;

	while (bytes && v >= 1024 && v % 1024 == 0 && k < 5) {
		v /= 1024;
		k++;
	}
	if (k < 0)
		snprintf(out, n, "%" PRIu64, v);
	else
		snprintf(out, n, "%" PRIu64 "%c", v, suffix[k]);
}

void skv_param_render(const struct skv_params *p, enum skv_param i, char *out)
{
	const struct param *row = &skv_param_rows[i];
	const char *at = (const char *)p + row->offset;

	assert(i < SKV_PARAM_COUNT);
	switch (row->type) {
	case PARAM_TEXT:
	case PARAM_CHOICE:
		snprintf(out, PARAM_VALUE_MAX, "%s", *(char *const *)at);
		break;
	case PARAM_FLAG:
		snprintf(out, PARAM_VALUE_MAX, "%s", *(const bool *)at ? "true" : "false");
		break;
	case PARAM_NUMBER:
	case PARAM_BYTES:
		render_number(*(const uint64_t *)at, row->type == PARAM_BYTES, out,
			      PARAM_VALUE_MAX);
		break;
	case PARAM_PORT:
		if (*(const uint64_t *)at == SKV_PORT_OFF)
			snprintf(out, PARAM_VALUE_MAX, "off");
		else
			render_number(*(const uint64_t *)at, false, out, PARAM_VALUE_MAX);
		break;
	}
}

void skv_param_range(const struct param *row, char *out)
{
	char lo[32], hi[32];

	switch (row->type) {
	case PARAM_CHOICE:
		snprintf(out, 128, "%s", row->unit);
		break;
	case PARAM_FLAG:
		snprintf(out, 128, "true|false");
		break;
	case PARAM_TEXT:
		snprintf(out, 128, "%" PRIu64 "..%" PRIu64 " characters", row->min, row->max);
		break;
	case PARAM_NUMBER:
	case PARAM_BYTES:
		render_number(row->min, row->type == PARAM_BYTES, lo, sizeof lo);
		render_number(row->max, row->type == PARAM_BYTES, hi, sizeof hi);
		snprintf(out, 128, "%s..%s%s%s", lo, hi, *row->unit ? " " : "", row->unit);
		break;
	case PARAM_PORT:
		snprintf(out, 128, "%" PRIu64 "..%" PRIu64 ", off", row->min, row->max);
		break;
	}
}

/* The power of 1024 of a suffix: 0 for none, -1 if there is no such suffix. */
static int suffix_power(const char *s)
{
	static const char units[] = "KMGTPE";
	const char *at;

	if (*s == '\0' || strcmp(s, "B") == 0)
		return 0;
	at = strchr(units, *s >= 'a' && *s <= 'z' ? *s - 'a' + 'A' : *s);
	if (!at)
		return -1;
	if (s[1] != '\0' && strcmp(s + 1, "B") != 0 && strcmp(s + 1, "iB") != 0)
		return -1;
	assert(at < units + sizeof units - 1);
	return (int)(at - units) + 1;
}

static bool parse_number(const struct param *row, const char *text, uint64_t *out)
{
	char *end;
	unsigned long long v;
	int power;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	v = strtoull(text, &end, 10);
	if (errno != 0)
		return false;
	power = row->type == PARAM_BYTES ? suffix_power(end) : *end == '\0' ? 0 : -1;
	if (power < 0)
		return false;
	for (; power > 0; power--) {
		if (v > UINT64_MAX / 1024)
			return false;
		v *= 1024;
	}
	if (v < row->min || v > row->max)
		return false;
	*out = v;
	return true;
}

static bool parse_flag(const char *text, bool *out)
{
	static const char *const yes[] = { "true", "yes", "on", "1" };
	static const char *const no[] = { "false", "no", "off", "0" };

	for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++) {
		if (strcmp(text, yes[i]) == 0 || strcmp(text, no[i]) == 0) {
			*out = strcmp(text, yes[i]) == 0;
			return true;
		}
	}
	return false;
}

static bool is_choice(const struct param *row, const char *text)
{
	size_t n = strlen(text);

	for (const char *word = row->unit; *word;) {
		size_t len = strcspn(word, "|");

		if (len == n && memcmp(word, text, n) == 0)
			return true;
		word += len + (word[len] == '|');
	}
	return false;
}

/* Returns true if a line of the file can represent the text: no control characters, no leading or
 * trailing blanks. */
static bool is_text(const struct param *row, const char *text)
{
	size_t n = strlen(text);

	if (n < row->min || n > row->max)
		return false;
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			return false;
	return n == 0 || (text[0] != ' ' && text[n - 1] != ' ');
}

static int store_text(struct skv_params *p, const struct param *row, const char *text,
		      struct skv_error *err)
{
	char *copy = skv_strdup(text);

	if (!copy)
		return skv_fail(err, SKV_E_NOMEM, row->name, "out of memory");
	skv_free(*text_of(p, row));
	*text_of(p, row) = copy;
	return SKV_OK;
}

int skv_param_set(struct skv_params *p, enum skv_param i, const char *text,
		  enum skv_param_source source, const char *where, struct skv_error *err)
{
	const struct param *row = &skv_param_rows[i];
	char range[128];
	bool good = false;
	int rc = SKV_OK;

	assert(i < SKV_PARAM_COUNT);
	switch (row->type) {
	case PARAM_TEXT:
	case PARAM_CHOICE:
		good = row->type == PARAM_TEXT ? is_text(row, text) : is_choice(row, text);
		if (good)
			rc = store_text(p, row, text, err);
		break;
	case PARAM_FLAG:
		good = parse_flag(text, (bool *)((char *)p + row->offset));
		break;
	case PARAM_NUMBER:
	case PARAM_BYTES:
		good = parse_number(row, text, number_of(p, row));
		break;
	case PARAM_PORT:
		good = parse_number(row, text, number_of(p, row));
		if (!good && strcmp(text, "off") == 0) {
			*number_of(p, row) = SKV_PORT_OFF;
			good = true;
		}
		break;
	}
	if (!good) {
		skv_param_range(row, range);
		return skv_fail(err, SKV_E_INVALID, row->name, "%s: %s: '%.64s' is not in %s",
				where, row->name, text, range);
	}
	if (rc == SKV_OK)
		p->source[i] = source;
	return rc;
}

bool skv_kvcm_ports_read(const char *text, uint64_t out[SKV_KVCM_PORTS])
{
	for (int i = 0; i < SKV_KVCM_PORTS; i++) {
		const size_t digits = strspn(text, "0123456789");
		const bool off = strncmp(text, "off", 3) == 0;

		if (!off && (digits == 0 || digits > 5))
			return false;
		out[i] = off ? SKV_PORT_OFF : strtoull(text, NULL, 10);
		text += off ? 3 : digits;
		if ((!off && out[i] >= SKV_PORT_OFF) ||
		    *text != (i + 1 < SKV_KVCM_PORTS ? ',' : '\0'))
			return false;
		text++;
	}
	return true;
}

void skv_params_destroy(struct skv_params *p)
{
	for (size_t i = 0; i < SKV_PARAM_COUNT; i++) {
		const struct param *row = &skv_param_rows[i];

		if (row->type == PARAM_TEXT || row->type == PARAM_CHOICE)
			skv_free(*text_of(p, row));
	}
	memset(p, 0, sizeof *p);
}
