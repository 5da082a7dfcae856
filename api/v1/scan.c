/*
 * scan.c - a forward pass over refused JSON text: finds limits exceeded, and the field of a byte.
 *
 * Only for texts that were refused: the parser gives a byte but no field, and stops at the first
 * fault, while a text over the limits is reported wherever its first fault is. The walk judges
 * nothing else.
 *
 * Owns nothing, allocates nothing; any thread.
 */
#include "json_in.h"

#include <skv/check.h>
#include <stdio.h>
#include <string.h>

/* An open object or array. */
struct level {
	bool object;
	bool value;      /* object: past the colon, so that a string is no field name */
	const char *key; /* object: the newest field name, as in the text */
	size_t key_len;
	size_t index; /* array: of the current element */
};

struct walk {
	struct level levels[SKV_JSON_DEPTH];
	size_t depth;
	size_t values;
	bool deep;
};

/* Adds to the path in `out`; what does not fit is cut. */
static size_t append(char *out, size_t at, const char *s, size_t n)
{
	size_t room = SKV_FIELD_MAX - 1 - at;

	SKV_CHECK(at < SKV_FIELD_MAX);
	if (n > room)
		n = room;
	memcpy(out + at, s, n);
	out[at + n] = '\0';
	return at + n;
}

static void render(const struct walk *w, char out[SKV_FIELD_MAX])
{
	size_t at = 0;
	char index[32];

	out[0] = '\0';
	for (size_t i = 0; i < w->depth; i++) {
		const struct level *l = &w->levels[i];

		if (!l->object) {
			int n = snprintf(index, sizeof index, "[%zu]", l->index);

			at = append(out, at, index, (size_t)n);
		} else if (l->key) {
			if (at > 0)
				at = append(out, at, ".", 1);
			at = append(out, at, l->key, l->key_len);
		}
	}
}

/* Position after the string that begins at `i`; `n` if it does not end. */
static size_t skip_string(const char *text, size_t i, size_t n)
{
	for (i++; i < n; i++) {
		if (text[i] == '\\')
			i++;
		else if (text[i] == '"')
			return i + 1;
	}
	return n;
}

static void open_level(struct walk *w, bool object)
{
	if (w->depth == SKV_JSON_DEPTH) {
		w->deep = true;
		return;
	}
	SKV_CHECK(w->depth < SKV_JSON_DEPTH);
	w->levels[w->depth++] = (struct level){ .object = object };
	w->values++;
}

static void see(struct walk *w, char c)
{
	struct level *top = w->depth ? &w->levels[w->depth - 1] : NULL;

	switch (c) {
	case '{':
	case '[':
		open_level(w, c == '{');
		break;
	case '}':
	case ']':
		if (top)
			w->depth--;
		break;
	case ',':
		w->values++;
		if (top) {
			top->value = false;
			top->index++;
		}
		break;
	case ':':
		if (top)
			top->value = true;
		break;
	default:
		break;
	}
}

enum skv_jscan skv_json_scan(const char *text, size_t n, size_t *values, char field[SKV_FIELD_MAX])
{
	const size_t max_values = *values;
	struct walk w = { .depth = 0 };
	enum skv_jscan result = SKV_JSCAN_END;
	size_t i = 0;

	while (i < n && result == SKV_JSCAN_END) {
		if (text[i] == '"') {
			size_t end = skip_string(text, i, n);
			struct level *top = w.depth ? &w.levels[w.depth - 1] : NULL;

			if (top && top->object && !top->value) {
				top->key = text + i + 1;
				top->key_len =
					end - i - (end > i + 1 && text[end - 1] == '"' ? 2 : 1);
			}
			SKV_CHECK(end > i && end <= n);
			i = end;
			continue;
		}
		see(&w, text[i++]);
		if (w.deep)
			result = SKV_JSCAN_DEEP;
		else if (w.values > max_values)
			result = SKV_JSCAN_MANY;
	}
	/* Too many: the array is at fault, not the element that went over. */
	if (result == SKV_JSCAN_MANY && w.depth > 1 && !w.levels[w.depth - 1].object)
		w.depth--;
	render(&w, field);
	*values = w.values;
	return result;
}
