/* json_cut.h - the elements of a list in a JSON answer, one after the other, as they stand in the text. */
#ifndef SKV_CLIENT_JSON_CUT_H
#define SKV_CLIENT_JSON_CUT_H

#include <stdbool.h>
#include <stddef.h>

struct skv_json_cut {
	const char *text;
	size_t n;
	size_t at; /* behind what has been given; n: no more */
};

/* Goes to the begin of the list that is field `name` of the object. Without such a list there is nothing to give. */
void skv_json_cut_begin(struct skv_json_cut *c, const char *name);
/* The next element, which is an object, for a reader to judge. False: that was all, or the text ends in the midst. */
bool skv_json_cut_next(struct skv_json_cut *c, const char **one, size_t *n);

#endif
