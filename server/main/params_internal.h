/* params_internal.h - a row of the parameter table as data, shared by params*.c. */
#ifndef SKV_PARAMS_INTERNAL_H
#define SKV_PARAMS_INTERNAL_H

#include <stddef.h>

#include <skv/params.h>

enum param_type { PARAM_TEXT, PARAM_CHOICE, PARAM_FLAG, PARAM_NUMBER, PARAM_BYTES, PARAM_PORT };

struct param {
	const char *name;
	enum param_type type;
	const char *initial;
	uint64_t min;
	uint64_t max;
	const char *unit;
	const char *help;
	size_t offset; /* in struct skv_params */
};

extern const struct param skv_param_rows[SKV_PARAM_COUNT];

#define PARAM_VALUE_MAX 4096 /* a rendered value with its NUL */

/* The value of row `i` as text that the parser accepts. `out` has PARAM_VALUE_MAX bytes. */
void skv_param_render(const struct skv_params *p, enum skv_param i, char *out);
/* Formats the values that the row allows: "4096..1T bytes", "full|normal", "true|false". `out` has
 * 128 bytes. */
void skv_param_range(const struct param *row, char *out);
/* Parses `text` into row `i`. `where` begins the error message. */
int skv_param_set(struct skv_params *p, enum skv_param i, const char *text,
		  enum skv_param_source source, const char *where, struct skv_error *err);
/* Cuts white space off both ends; changes `s`. */
char *skv_param_trim(char *s);
/* Row of that name, '-' counting as '_'; SKV_PARAM_COUNT if there is none. */
enum skv_param skv_param_find(const char *name);
/* Checks values that depend on each other. */
int skv_params_check(const struct skv_params *p, struct skv_error *err);

#endif
