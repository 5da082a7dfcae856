/* params_internal.h - one row of the parameter table as data, shared by params*.c. */
#ifndef KVB_PARAMS_INTERNAL_H
#define KVB_PARAMS_INTERNAL_H

#include <stddef.h>

#include <kvb/params.h>

enum param_type { PARAM_TEXT, PARAM_CHOICE, PARAM_FLAG, PARAM_NUMBER, PARAM_BYTES, PARAM_PORT };

struct param {
	const char *name;
	enum param_type type;
	const char *initial;
	uint64_t min;
	uint64_t max;
	const char *unit;
	const char *help;
	size_t offset; /* in struct kvb_params */
};

extern const struct param kvb_param_rows[KVB_PARAM_COUNT];

#define PARAM_VALUE_MAX 4096 /* a rendered value with its NUL */

/* The value of row `i` as text that the parser reads back. `out` holds PARAM_VALUE_MAX bytes. */
void kvb_param_render(const struct kvb_params *p, enum kvb_param i, char *out);
/* "4096..1T bytes", "full|normal", "true|false": what the row allows. `out` holds 128 bytes. */
void kvb_param_range(const struct param *row, char *out);
/* Reads `text` into row `i`. `where` opens the message of an error. */
int kvb_param_set(struct kvb_params *p, enum kvb_param i, const char *text,
		  enum kvb_param_source source, const char *where, struct kvb_error *err);
/* Row of that name, '-' counting as '_'; KVB_PARAM_COUNT if there is none. */
enum kvb_param kvb_param_find(const char *name);
/* Values that must fit together. */
int kvb_params_check(const struct kvb_params *p, struct kvb_error *err);

#endif
