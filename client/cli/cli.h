/*
 * cli.h - shared by the commands of `slabkv`: global options, exit codes, output.
 *
 * One process, one command. Only replay and bench make threads. The commands know nothing of the
 * manager but slabkv.h and the JSON of its stats.
 */
#ifndef SKV_CLI_H
#define SKV_CLI_H

#include <getopt.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <slabkv.h>

#include "args.h"

/* Documented in slabkv(1). */
enum skv_exit {
	SKV_EXIT_OK = 0,
	SKV_EXIT_MISS = 1,        /* not there: a miss, an unknown object; doctor: a check failed */
	SKV_EXIT_USAGE = 2,       /* wrong options, or a local file that cannot be used */
	SKV_EXIT_UNREACHABLE = 3, /* no manager answered */
	SKV_EXIT_REFUSED = 4,     /* the manager said no, or the storage cannot be used here */
	SKV_EXIT_MISMATCH = 5,    /* bytes differ from the written ones */
};

#define SKV_CLI_LIST_MAX 64

struct skv_cli {
	const char *command;
	const char *urls[16];
	uint32_t n_urls;
	const char *mounts[SKV_CLI_LIST_MAX];
	uint32_t n_mounts;
	char *token; /* skv_malloc, or NULL */
	uint32_t timeout_ms;
	const char *engine; /* NULL: the library's choice */
	struct slabkv_options library; /* options set by -o; the others are defaults */
	bool json;
	bool yes;    /* skip the question before destructive commands */
	char **argv; /* of the command; where getopt is */
	void (*help)(const char *command); /* prints the help of a command; NULL: of all */
};

typedef int (*skv_command_fn)(struct skv_cli *cli, int argc, char **argv);

int skv_cmd_put(struct skv_cli *cli, int argc, char **argv);
int skv_cmd_get(struct skv_cli *cli, int argc, char **argv);
int skv_cmd_lookup(struct skv_cli *cli, int argc, char **argv);
int skv_cmd_match(struct skv_cli *cli, int argc, char **argv);
int skv_cmd_delete(struct skv_cli *cli, int argc, char **argv);
int skv_cmd_purge(struct skv_cli *cli, int argc, char **argv);
int skv_cmd_pin(struct skv_cli *cli, int argc, char **argv);
int skv_cmd_unpin(struct skv_cli *cli, int argc, char **argv);
int skv_cmd_pins(struct skv_cli *cli, int argc, char **argv);
int skv_cmd_plan(struct skv_cli *cli, int argc, char **argv);
int skv_cmd_stat(struct skv_cli *cli, int argc, char **argv);
int skv_cmd_top(struct skv_cli *cli, int argc, char **argv);
int skv_cmd_replay(struct skv_cli *cli, int argc, char **argv);
int skv_cmd_bench(struct skv_cli *cli, int argc, char **argv);
int skv_cmd_doctor(struct skv_cli *cli, int argc, char **argv);
int skv_cmd_pages(struct skv_cli *cli, int argc, char **argv);
int skv_cmd_group(struct skv_cli *cli, int argc, char **argv);
int skv_cmd_storage(struct skv_cli *cli, int argc, char **argv);
int skv_cmd_instance(struct skv_cli *cli, int argc, char **argv);
int skv_cmd_tenant(struct skv_cli *cli, int argc, char **argv);
int skv_cmd_token(struct skv_cli *cli, int argc, char **argv);
int skv_cmd_cluster(struct skv_cli *cli, int argc, char **argv);
int skv_cmd_mover(struct skv_cli *cli, int argc, char **argv);
int skv_cmd_scrub(struct skv_cli *cli, int argc, char **argv);
int skv_cmd_ls(struct skv_cli *cli, int argc, char **argv);
int skv_cmd_help(struct skv_cli *cli, int argc, char **argv);
int skv_cmd_gen_trace(struct skv_cli *cli, int argc, char **argv);

/* ---- options --------------------------------------------------------------------------------- */

/* Global options that may also stand after the command: --url, --token, --token-file, --json,
 * --mount, --timeout, --engine, --option, --yes, --help. Put SKV_CLI_GLOBAL_OPTIONS into
 * the command's table of long options, SKV_CLI_SHORT into its short ones, and pass what getopt_long
 * returned if the command does not know it: SKV_EXIT_OK when it was one of them, -1 when --help was
 * printed (end with SKV_EXIT_OK), else SKV_EXIT_USAGE (a message has been printed). */
enum {
	SKV_OPT_URL = 1000,
	SKV_OPT_TOKEN,
	SKV_OPT_TOKEN_FILE,
	SKV_OPT_JSON,
	SKV_OPT_MOUNT,
	SKV_OPT_TIMEOUT,
	SKV_OPT_ENGINE,
	SKV_OPT_YES,
	SKV_OPT_HELP
};
#define SKV_CLI_SHORT "o:"
#define SKV_CLI_GLOBAL_OPTIONS                                                                     \
	{ "option", required_argument, NULL, 'o' },                                                \
	{ "url", required_argument, NULL, SKV_OPT_URL },                                           \
	{ "token", required_argument, NULL, SKV_OPT_TOKEN },                                       \
	{ "token-file", required_argument, NULL, SKV_OPT_TOKEN_FILE },                             \
	{ "json", no_argument, NULL, SKV_OPT_JSON },                                               \
	{ "mount", required_argument, NULL, SKV_OPT_MOUNT },                                       \
	{ "timeout", required_argument, NULL, SKV_OPT_TIMEOUT },                                   \
	{ "engine", required_argument, NULL, SKV_OPT_ENGINE },                                     \
	{ "yes", no_argument, NULL, SKV_OPT_YES },                                                 \
	{ "help", no_argument, NULL, SKV_OPT_HELP }, { NULL, 0, NULL, 0 }

int skv_cli_global_option(struct skv_cli *cli, int opt, const char *value);
/* A command of actions and no options of its own: runs `run`, with the arguments after the options,
 * at a manager; without anything `usage` is printed. */
int skv_cli_actions(struct skv_cli *cli, int argc, char **argv, const char *usage,
		    int (*run)(struct skv_cli *cli, struct slabkv *kv, int argc, char **argv));
/* SKV_EXIT_USAGE after printing "slabkv COMMAND: ..." and where to find help;
 * with --json, as an object. */
int skv_cli_usage(const struct skv_cli *cli, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The token that calls show; copied. 0 or SKV_EXIT_USAGE. */
int skv_cli_set_token(struct skv_cli *cli, const char *value);

/* An option of one command. */
struct skv_cli_option {
	const char *name;
	enum {
		SKV_CLI_FLAG,   /* has no value; bool */
		SKV_CLI_TEXT,   /* const char *, borrowed */
		SKV_CLI_NUMBER, /* uint32_t from `min` to `max` */
		SKV_CLI_COUNT,  /* the same as uint64_t */
		SKV_CLI_SIZE,   /* uint64_t, like 64K, from `min` to `max` */
		SKV_CLI_TIME,   /* uint64_t: seconds, like 12h or 7d, at least 1 */
		SKV_CLI_PARSED, /* the option's own function `parse` reads it */
	} value;
	void *to;
	uint64_t min, max;
	const char *is; /* kind of value, for the message about a wrong one */
	bool (*parse)(const char *text, void *to);
};
#define SKV_CLI_OPTIONS_END { NULL, SKV_CLI_FLAG, NULL, 0, 0, NULL, NULL }
struct skv_cli_target;
/* Reads the command's options (the last one has no name; NULL: none), those of blocks (`t` NULL:
 * the command has none), and the global ones. As skv_cli_global_option; the arguments after them
 * begin at optind. */
int skv_cli_parse(struct skv_cli *cli, int argc, char **argv, const struct skv_cli_option *options,
		  struct skv_cli_target *t);

/* Asks for confirmation before a destructive command: `fmt` describes its effect ("deletes ...").
 * Returns 0 with --yes, or if the user confirms at the terminal; else SKV_EXIT_USAGE after
 * printing. */
int skv_cli_confirm(const struct skv_cli *cli, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* The nearest of the words offered so far, if any is near enough to be meant. Begin with { 0 }. */
struct skv_nearest {
	const char *word;
	unsigned distance;
};
void skv_cli_nearest(const char *word, const char *candidate, struct skv_nearest *best);
/* SKV_EXIT_USAGE after printing that `word` is none of `known` (up to NULL), and which may be
 * meant. */
int skv_cli_unknown(const struct skv_cli *cli, const char *what, const char *word,
		    const char *const *known);

/* Options that all commands on blocks share. */
struct skv_cli_target {
	const char *instance; /* "default" */
	enum slabkv_key_form form;
	const char **texts; /* [SLABKV_MAX_KEYS], skv_malloc */
	uint32_t n;
	struct skv_args_keys keys;
};
enum { SKV_OPT_INSTANCE = 1100, SKV_OPT_KEY, SKV_OPT_KEY_FORM };
_Static_assert((int)SKV_OPT_HELP < (int)SKV_OPT_INSTANCE, "commands have both in one table");
#define SKV_CLI_TARGET_OPTIONS                                                                     \
	{ "instance", required_argument, NULL, SKV_OPT_INSTANCE },                                 \
	{ "key", required_argument, NULL, SKV_OPT_KEY },                                           \
	{ "key-form", required_argument, NULL, SKV_OPT_KEY_FORM }

void skv_cli_target_init(struct skv_cli_target *t);
void skv_cli_target_free(struct skv_cli_target *t);
/* As skv_cli_global_option, which it falls back to. */
int skv_cli_target_option(struct skv_cli *cli, struct skv_cli_target *t, int opt,
			  const char *value);
/* Adds the rest of argv as keys and parses all. 0 or SKV_EXIT_USAGE. */
int skv_cli_target_keys(struct skv_cli *cli, struct skv_cli_target *t, int argc, char **argv,
			int first);

#define SKV_CLI_MAX_BLOCK (UINT64_C(4) << 30) /* the manager's bound */
#define SKV_CLI_BLOCK_BYTES "a size, e.g. 64K, up to 4G"
/* Keys of a chain that a file was cut into: KEY/0, KEY/1, ... All of KEY is in them; one that
 * leaves no room for that is refused by skv_cli_chain_check, with SKV_EXIT_USAGE after printing. */
#define SKV_CLI_CHAIN_KEY 1025 /* the longest key and its end */
int skv_cli_chain_check(const struct skv_cli *cli, const char *key);
void skv_cli_chain_key(const char *key, uint64_t block, char out[SKV_CLI_CHAIN_KEY]);

/* ---- the manager ----------------------------------------------------------------------------- */

/* Options of the library as the command line has them; the caller may change them before
 * opening. */
void skv_cli_options(const struct skv_cli *cli, struct slabkv_options *o);
/* Opens a handle; NULL o = skv_cli_options. 0, or an exit code after printing why. */
int skv_cli_open(const struct skv_cli *cli, const struct slabkv_options *o, struct slabkv **out);
/* Prints an error of the library (to stderr, with a remedy where there is one) and gives its exit
 * code. */
int skv_cli_fail(const struct skv_cli *cli, const struct slabkv_error *err);
int skv_cli_exit_of(int status);
/* Prints an error that is not the library's: to stderr, with --json as an object. `code` is one
 * word. */
void skv_cli_tell(const struct skv_cli *cli, const char *code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Changes an object by FIELD=VALUE words, which are changed, too; with --json prints it. Values of
 * fields in `lists`, which ends with NULL, are lists of words between commas. */
int skv_cli_set_words(const struct skv_cli *cli, struct slabkv *kv, enum slabkv_object kind,
		      const char *name, char **words, int n, const char *const *lists);

/* Calls the manager's API with JSON both ways. Takes the reference to `body` (NULL: none). *out
 * (may be NULL) gets the answer; release it with json_decref. Returns 0, or an exit code after
 * printing the reason. */
int skv_cli_call(const struct skv_cli *cli, struct slabkv *kv, const char *method, const char *path,
		 json_t *body, json_t **out);
/* slabkv_object_set with the fields, which are taken. */
int skv_cli_object_set(struct slabkv *kv, enum slabkv_object kind, const char *name, json_t *fields,
		       const char **json, struct slabkv_error *err);
/* The same; *out (may be NULL) is the object, to be released with json_decref. 0, or an exit code
 * after printing why. */
int skv_cli_change(const struct skv_cli *cli, struct slabkv *kv, enum slabkv_object kind,
		   const char *name, json_t *fields, json_t **out);
/* GETs a list, all its pages as one document (*out, to be released with json_decref), or only the
 * one that the n words "limit=N" and "after=NAME" ask for; `next` in it is where that one goes on.
 * 0, or an exit code after printing why. */
int skv_cli_list(const struct skv_cli *cli, struct slabkv *kv, const char *path, char **words,
		 int n, json_t **out);
/* The same, printed: with --json as it is, else by `print`. */
int skv_cli_show_list(const struct skv_cli *cli, struct slabkv *kv, const char *path, char **words,
		      int n, void (*print)(const json_t *doc));
/* Makes storage and group NAME the tenant's own. */
typedef int (*skv_cli_own_fn)(const struct skv_cli *cli, struct slabkv *kv, const char *name);
/* slabkv tenant isolate NAME root=DIR...: makes both, in a directory that only processes of a Unix
 * group may enter. 0 or an exit code after printing why. */
int skv_cli_isolate(const struct skv_cli *cli, struct slabkv *kv, const char *name, char **words,
		    int n, skv_cli_own_fn own);
/* The stats as parsed JSON (release with json_decref). 0 or an exit code after printing why. */
int skv_cli_stats(const struct skv_cli *cli, struct slabkv *kv, json_t **out);
/* Makes instance `i` and, if it is absent, its group with the one storage `storage`; an instance
 * that is there already must have the same specs. */
int skv_cli_make_instance(struct slabkv *kv, const struct slabkv_instance *i, const char *storage,
			  struct slabkv_error *err);

/* ---- output ---------------------------------------------------------------------------------- */

/* Prints one JSON document and a newline to stdout; takes the reference. */
int skv_cli_print_json(json_t *doc);
/* With --json prints the document, else calls `print`, if there is one; takes the reference. */
int skv_cli_print(const struct skv_cli *cli, json_t *doc, void (*print)(const json_t *doc));
uint64_t skv_cli_u64(const json_t *object, const char *name);
const char *skv_cli_text(const json_t *object, const char *name);
/* A bound, for which 0 means that there is none: "unlimited". */
void skv_cli_limit(const json_t *object, const char *name, char out[24]);
/* A size of a storage, with its unit: of an external one, pages. */
void skv_cli_storage_size(const json_t *storage, const char *name, char out[24]);

/* ---- the machine, for numbers that mean something only with it ------------------------------- */

struct skv_machine {
	char cpu[128];
	long cores;
	char kernel[128];
};
void skv_machine_read(struct skv_machine *m);
/* CPU time that process `pid` has used, in nanoseconds, as finely as the kernel tells; 0 =
 * unknown. */
uint64_t skv_machine_cpu_ns(long pid);

#endif
