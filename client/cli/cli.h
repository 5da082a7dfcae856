/*
 * cli.h - what the commands of `kvblock` share: global options, exit codes, output.
 *
 * One process, one command. Only replay and bench make threads. The commands know nothing of the
 * manager but kvblock.h and the JSON of its stats.
 */
#ifndef KVB_CLI_H
#define KVB_CLI_H

#include <getopt.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <kvblock.h>

#include "args.h"

/* Documented in kvblock(1). */
enum kvb_exit {
	KVB_EXIT_OK = 0,
	KVB_EXIT_MISS = 1,        /* not there: a miss, an unknown object; doctor: a check failed */
	KVB_EXIT_USAGE = 2,       /* wrong options, or a local file that cannot be used */
	KVB_EXIT_UNREACHABLE = 3, /* no manager answered */
	KVB_EXIT_REFUSED = 4,     /* the manager said no, or the storage cannot be used here */
	KVB_EXIT_MISMATCH = 5,    /* bytes differ from what was written */
};

#define KVB_CLI_LIST_MAX 64

struct kvb_cli {
	const char *command;
	const char *urls[16];
	uint32_t n_urls;
	const char *mounts[KVB_CLI_LIST_MAX];
	uint32_t n_mounts;
	char *token; /* kvb_malloc, or NULL */
	uint32_t timeout_ms;
	const char *engine; /* NULL: the library's choice */
	const char *codec; /* NULL: the library's */
	struct kvblock_options library; /* what -o has set; the rest are defaults */
	bool json;
};

typedef int (*kvb_command_fn)(struct kvb_cli *cli, int argc, char **argv);

int kvb_cmd_put(struct kvb_cli *cli, int argc, char **argv);
int kvb_cmd_get(struct kvb_cli *cli, int argc, char **argv);
int kvb_cmd_lookup(struct kvb_cli *cli, int argc, char **argv);
int kvb_cmd_match(struct kvb_cli *cli, int argc, char **argv);
int kvb_cmd_delete(struct kvb_cli *cli, int argc, char **argv);
int kvb_cmd_pin(struct kvb_cli *cli, int argc, char **argv);
int kvb_cmd_unpin(struct kvb_cli *cli, int argc, char **argv);
int kvb_cmd_pins(struct kvb_cli *cli, int argc, char **argv);
int kvb_cmd_stat(struct kvb_cli *cli, int argc, char **argv);
int kvb_cmd_top(struct kvb_cli *cli, int argc, char **argv);
int kvb_cmd_replay(struct kvb_cli *cli, int argc, char **argv);
int kvb_cmd_bench(struct kvb_cli *cli, int argc, char **argv);
int kvb_cmd_doctor(struct kvb_cli *cli, int argc, char **argv);
int kvb_cmd_pages(struct kvb_cli *cli, int argc, char **argv);
int kvb_cmd_group(struct kvb_cli *cli, int argc, char **argv);
int kvb_cmd_storage(struct kvb_cli *cli, int argc, char **argv);
int kvb_cmd_gen_trace(struct kvb_cli *cli, int argc, char **argv);

/* ---- options --------------------------------------------------------------------------------- */

/* Global options that may also stand after the command: --url, --token, --token-file, --json,
 * --mount, --timeout, --engine, --option, --codec, --help. Put KVB_CLI_GLOBAL_OPTIONS into the command's table
 * of long options, KVB_CLI_SHORT into its short ones, and pass what getopt_long returned if the command does not know it: KVB_EXIT_OK
 * when it was one of them, -1 when --help was printed (end with KVB_EXIT_OK), else KVB_EXIT_USAGE (a message has
 * been printed). */
enum {
	KVB_OPT_URL = 1000,
	KVB_OPT_TOKEN,
	KVB_OPT_TOKEN_FILE,
	KVB_OPT_JSON,
	KVB_OPT_CODEC,
	KVB_OPT_MOUNT,
	KVB_OPT_TIMEOUT,
	KVB_OPT_ENGINE,
	KVB_OPT_HELP
};
#define KVB_CLI_SHORT "o:"
#define KVB_CLI_GLOBAL_OPTIONS                                                                     \
	{ "option", required_argument, NULL, 'o' },                                                \
	{ "url", required_argument, NULL, KVB_OPT_URL },                                           \
	{ "token", required_argument, NULL, KVB_OPT_TOKEN },                                       \
	{ "token-file", required_argument, NULL, KVB_OPT_TOKEN_FILE },                             \
	{ "json", no_argument, NULL, KVB_OPT_JSON },                                               \
	{ "codec", required_argument, NULL, KVB_OPT_CODEC },                                       \
	{ "mount", required_argument, NULL, KVB_OPT_MOUNT },                                       \
	{ "timeout", required_argument, NULL, KVB_OPT_TIMEOUT },                                   \
	{ "engine", required_argument, NULL, KVB_OPT_ENGINE },                                     \
	{ "help", no_argument, NULL, KVB_OPT_HELP }, { NULL, 0, NULL, 0 }

int kvb_cli_global_option(struct kvb_cli *cli, int opt, const char *value);
/* KVB_EXIT_USAGE after printing "kvblock COMMAND: ..." and where to find help. */
int kvb_cli_usage(const struct kvb_cli *cli, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Texts of a command's help (main.c). */
void kvb_cli_help(const char *command);

/* Options that all commands on blocks share. */
struct kvb_cli_target {
	const char *instance; /* "default" */
	enum kvblock_key_form form;
	const char **texts; /* [KVBLOCK_MAX_KEYS], kvb_malloc */
	uint32_t n;
	struct kvb_args_keys keys;
};
enum { KVB_OPT_INSTANCE = 1100, KVB_OPT_KEY, KVB_OPT_KEY_FORM };
#define KVB_CLI_TARGET_OPTIONS                                                                     \
	{ "instance", required_argument, NULL, KVB_OPT_INSTANCE },                                 \
	{ "key", required_argument, NULL, KVB_OPT_KEY },                                           \
	{ "key-form", required_argument, NULL, KVB_OPT_KEY_FORM }

void kvb_cli_target_init(struct kvb_cli_target *t);
void kvb_cli_target_free(struct kvb_cli_target *t);
/* As kvb_cli_global_option, which it falls back to. */
int kvb_cli_target_option(struct kvb_cli *cli, struct kvb_cli_target *t, int opt,
			  const char *value);
/* Adds the rest of argv as keys and parses all. 0 or KVB_EXIT_USAGE. */
int kvb_cli_target_keys(struct kvb_cli *cli, struct kvb_cli_target *t, int argc, char **argv,
			int first);

/* ---- the manager ----------------------------------------------------------------------------- */

/* Options of the library as the command line has them; the caller may change them before
 * opening. */
void kvb_cli_options(const struct kvb_cli *cli, struct kvblock_options *o);
/* Opens a handle; NULL o = kvb_cli_options. 0, or an exit code after printing why. */
int kvb_cli_open(const struct kvb_cli *cli, const struct kvblock_options *o, struct kvblock **out);
/* Prints an error of the library (to stderr, with a remedy where there is one) and gives its exit
 * code. */
int kvb_cli_fail(const struct kvb_cli *cli, const struct kvblock_error *err);
int kvb_cli_exit_of(int status);
/* The stats as parsed JSON (release with json_decref). 0 or an exit code after printing why. */
int kvb_cli_stats(const struct kvb_cli *cli, struct kvblock *kv, json_t **out);
/* Makes instance `i` and, if it is absent, its group with the one storage `storage`; an instance
 * that is there already must have the same specs. */
int kvb_cli_make_instance(struct kvblock *kv, const struct kvblock_instance *i, const char *storage,
			  struct kvblock_error *err);

/* ---- output ---------------------------------------------------------------------------------- */

/* Prints one JSON document and a newline to stdout; takes the reference. */
int kvb_cli_print_json(json_t *doc);
uint64_t kvb_cli_u64(const json_t *object, const char *name);
const char *kvb_cli_text(const json_t *object, const char *name);
/* A size of a storage, with its unit: of an external one, pages. */
void kvb_cli_storage_size(const json_t *storage, const char *name, char out[24]);

/* ---- the machine, for numbers that mean something only with it ------------------------------- */

struct kvb_machine {
	char cpu[128];
	long cores;
	char kernel[128];
};
void kvb_machine_read(struct kvb_machine *m);
/* CPU time that process `pid` has used, in nanoseconds, as finely as the kernel tells; 0 =
 * unknown. */
uint64_t kvb_machine_cpu_ns(long pid);

#endif
