/* json_cut.h - iterates over the elements of a list in a JSON answer, as text. */
#ifndef SKV_CLIENT_JSON_CUT_H
#define SKV_CLIENT_JSON_CUT_H

#include <stdbool.h>
#include <stddef.h>

struct skv_json_cut {
	const char *text;
	size_t n;
	size_t at; /* position after the last element returned; n: no more */
};

/* Goes to the start of the list in field `name` of the object. Without such a list there are no
 * elements. */
void skv_json_cut_begin(struct skv_json_cut *c, const char *name);
/* The next element, an object. False: no more, or the text is truncated. */
bool skv_json_cut_next(struct skv_json_cut *c, const char **one, size_t *n);

#endif
