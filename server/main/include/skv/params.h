/*
 * params.h - the parameters of slabkvd: defaults < file < environment < command line.
 *
 * One thread, at start. The rows are in params_table.h.
 */
#ifndef SKV_PARAMS_H
#define SKV_PARAMS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <skv/params_table.h>
#include <skv/status.h>

#define SKV_PARAM_CTYPE_TEXT char *
#define SKV_PARAM_CTYPE_CHOICE char *
#define SKV_PARAM_CTYPE_FLAG bool
#define SKV_PARAM_CTYPE_NUMBER uint64_t
#define SKV_PARAM_CTYPE_BYTES uint64_t
#define SKV_PARAM_CTYPE_PORT uint64_t

#define SKV_PORT_OFF 65536u /* value of a PORT set to "off" */
#define SKV_KVCM_PORTS 4

/* Reads the text of kvcm_ports: meta gRPC and HTTP, admin gRPC and HTTP. False: it is none. */
bool skv_kvcm_ports_read(const char *text, uint64_t out[SKV_KVCM_PORTS]);

enum skv_param {
#define SKV_PARAM_ENUM(name, ...) SKV_PARAM_##name,
	SKV_PARAMS(SKV_PARAM_ENUM)
#undef SKV_PARAM_ENUM
	SKV_PARAM_COUNT
};

enum skv_param_source { SKV_FROM_DEFAULT, SKV_FROM_FILE, SKV_FROM_ENVIRONMENT, SKV_FROM_ARGUMENT };

/* Actions of the command line besides setting values. */
enum skv_action { SKV_ACTION_RUN, SKV_ACTION_HELP, SKV_ACTION_VERSION, SKV_ACTION_DUMP,
		 SKV_ACTION_MAN };

struct skv_params {
#define SKV_PARAM_FIELD(name, type, ...) SKV_PARAM_CTYPE_##type name;
	SKV_PARAMS(SKV_PARAM_FIELD)
#undef SKV_PARAM_FIELD
	enum skv_param_source source[SKV_PARAM_COUNT]; /* which source set it last */
	unsigned line[SKV_PARAM_COUNT]; /* of the file, for those that it has set */
	enum skv_action action;
};

/* Reads all sources. argv[0] is skipped; `envp` as of main (may be NULL). On failure *p is
 * released and *err names the source (file:line, environment variable, argument), the parameter
 * and its range: SKV_E_INVALID, SKV_E_IO (unreadable file), SKV_E_NOMEM. Release with
 * skv_params_destroy. */
int skv_params_load(struct skv_params *p, int argc, char *const *argv, char *const *envp,
		    struct skv_error *err);
/* The same, but continues after each error, which it passes to `tell`; an invalid value keeps the
 * value of the previous source. SKV_E_INVALID after any error; release *p in any case. */
int skv_params_load_telling(struct skv_params *p, int argc, char *const *argv, char *const *envp,
			    void (*tell)(void *ctx, const struct skv_error *err), void *ctx);
/* Returns true if log_format is json by all these sources, even if other values are invalid: then
 * errors are reported in that form, too. */
bool skv_params_want_json(int argc, char *const *argv, char *const *envp);
void skv_params_destroy(struct skv_params *p);
static inline bool skv_params_is_given(const struct skv_params *p, enum skv_param i)
{
	return p->source[i] != SKV_FROM_DEFAULT;
}

/* Usage with one paragraph per parameter. */
void skv_params_help(FILE *out);
/* Writes a configuration file with exactly these values, with comments. */
void skv_params_dump(const struct skv_params *p, FILE *out);
/* The manual page slabkvd(8), roff man macros. */
void skv_params_man(FILE *out);

#endif
