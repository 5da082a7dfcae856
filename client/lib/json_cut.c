/*
 * json_cut.c - splits a list of objects in a JSON text: finds the brackets, and leaves the contents
 * to the codec's readers. Stays inside the text, whatever it is. Stateless; any thread.
 */
#include "json_cut.h"

#include <string.h>

/* Behind the string that begins at `at`. */
static size_t skip_string(const struct skv_json_cut *c, size_t at)
{
	for (at++; at < c->n && c->text[at] != '"'; at++)
		if (c->text[at] == '\\')
			at++;
	return at < c->n ? at + 1 : c->n;
}

void skv_json_cut_begin(struct skv_json_cut *c, const char *name)
{
	size_t depth = 0, length = strlen(name), from;
	bool named = false;

	for (c->at = 0; c->at < c->n;) {
		char ch = c->text[c->at];

		if (ch == '"') {
			from = c->at + 1;
			c->at = skip_string(c, c->at);
			if (depth == 1) /* a field's name, or a text, which no bracket follows */
				named = c->at - from == length + 1 &&
					memcmp(c->text + from, name, length) == 0;
			continue;
		}
		c->at++;
		if (ch == '[' && depth == 1 && named)
			return;
		if (ch == '{' || ch == '[')
			depth++;
		else if ((ch == '}' || ch == ']') && depth > 0)
			depth--;
	}
}

bool skv_json_cut_next(struct skv_json_cut *c, const char **one, size_t *n)
{
	size_t depth = 0, from = 0;

	while (c->at < c->n) {
		char ch = c->text[c->at];

		if (ch == '"') {
			c->at = skip_string(c, c->at);
			continue;
		}
		c->at++;
		if (ch == '{' || ch == '[') {
			if (depth++ == 0)
				from = c->at - 1;
		} else if (ch == '}' || ch == ']') {
			if (depth == 0)
				break; /* of the list */
			if (--depth == 0) {
				*one = c->text + from;
				*n = c->at - from;
				return true;
			}
		}
	}
	c->at = c->n;
	return false;
}
