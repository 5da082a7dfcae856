/*
 * params.h - the parameters of kvblockd: defaults < file < environment < command line.
 *
 * One thread, at start. The rows are in params_table.h.
 */
#ifndef KVB_PARAMS_H
#define KVB_PARAMS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <kvb/params_table.h>
#include <kvb/status.h>

#define KVB_PARAM_CTYPE_TEXT char *
#define KVB_PARAM_CTYPE_CHOICE char *
#define KVB_PARAM_CTYPE_FLAG bool
#define KVB_PARAM_CTYPE_NUMBER uint64_t
#define KVB_PARAM_CTYPE_BYTES uint64_t
#define KVB_PARAM_CTYPE_PORT uint64_t

#define KVB_PORT_OFF 65536u /* value of a PORT that is "off" */

enum kvb_param {
#define KVB_PARAM_ENUM(name, ...) KVB_PARAM_##name,
	KVB_PARAMS(KVB_PARAM_ENUM)
#undef KVB_PARAM_ENUM
	KVB_PARAM_COUNT
};

enum kvb_param_source { KVB_FROM_DEFAULT, KVB_FROM_FILE, KVB_FROM_ENVIRONMENT, KVB_FROM_ARGUMENT };

/* What the command line asks for besides values. */
enum kvb_action { KVB_ACTION_RUN, KVB_ACTION_HELP, KVB_ACTION_VERSION, KVB_ACTION_DUMP,
		 KVB_ACTION_MAN };

struct kvb_params {
#define KVB_PARAM_FIELD(name, type, ...) KVB_PARAM_CTYPE_##type name;
	KVB_PARAMS(KVB_PARAM_FIELD)
#undef KVB_PARAM_FIELD
	enum kvb_param_source source[KVB_PARAM_COUNT]; /* which source set it last */
	enum kvb_action action;
};

/* Reads all sources. argv[0] is skipped; `envp` as of main (may be NULL). On failure *p is released
 * and *err names the source (file:line, environment variable, argument), the parameter and its
 * range: KVB_E_INVALID, KVB_E_IO (file unreadable), KVB_E_NOMEM. Release with
 * kvb_params_destroy. */
int kvb_params_load(struct kvb_params *p, int argc, char *const *argv, char *const *envp,
		    struct kvb_error *err);
void kvb_params_destroy(struct kvb_params *p);

/* Usage with one paragraph per parameter. */
void kvb_params_help(FILE *out);
/* A file that gives exactly these values, with comments. */
void kvb_params_dump(const struct kvb_params *p, FILE *out);
/* The manual page kvblockd(8), roff man macros. */
void kvb_params_man(FILE *out);

#endif
