/*
 * fsck.c - `slabkvd fsck`: checks a store without a running manager.
 *
 * Reads only; skv_cluster_fsck does the work. Prints one line per problem and a summary, or with
 * --json one object. Exit status 0 clean, 1 problems, 2 could not check.
 */
#include "main.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include <skv/store.h>

enum { FSCK_CLEAN = 0, FSCK_PROBLEMS = 1, FSCK_UNCHECKED = 2 };

struct fsck {
	const char *store;
	char shown[SKV_STORE_SHOWN_MAX]; /* of it */
	const char *token_file; /* NULL = none */
	bool files;
	bool json;
	json_t *problems; /* with json: array of texts */
};

static const char usage[] =
	"Usage: slabkvd fsck [--files] [--fs-master-token-file PATH] [--json] [--store PATH]\n"
	"Checks the metadata store PATH (default ./slabkv.db) while no\n"
	"manager runs on it.\n"
	"  --files  check the slab files too, those behind fs-masters with the token in\n"
	"           --fs-master-token-file\n"
	"  --json   one JSON object instead of text\n"
	"Exit status: 0 clean, 1 problems found, 2 could not check.\n";

static void say(void *ctx, const char *text)
{
	struct fsck *f = ctx;

	if (f->json)
		json_array_append_new(f->problems, json_string(text));
	else
		printf("problem: %s\n", text);
}

/* -1: continue; else the exit status. */
static int parse(struct fsck *f, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--files") == 0) {
			f->files = true;
		} else if (strcmp(argv[i], "--json") == 0) {
			f->json = true;
		} else if (strncmp(argv[i], "--store=", 8) == 0) {
			f->store = argv[i] + 8;
		} else if (strcmp(argv[i], "--store") == 0 && i + 1 < argc) {
			f->store = argv[++i];
		} else if (strcmp(argv[i], "--fs-master-token-file") == 0 && i + 1 < argc) {
			f->token_file = argv[++i];
		} else if (strncmp(argv[i], "--fs-master-token-file=", 23) == 0) {
			f->token_file = argv[i] + 23;
		} else if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			fputs(usage, stdout);
			return FSCK_CLEAN;
		} else {
			fprintf(stderr, "slabkvd fsck: argument '%s' is not known\n%s", argv[i],
				usage);
			return FSCK_UNCHECKED;
		}
	}
	return -1;
}

/* Otherwise a missing store would be created, and found clean. */
static int open_store(struct fsck *f, struct skv_store **out, struct skv_error *err)
{
	const struct skv_store_options o = { .path = f->store };

	skv_store_shown(f->store, f->shown);
	if (skv_store_is_file(f->store) && access(f->store, R_OK) != 0)
		return skv_fail(err, SKV_E_NOT_FOUND, "store", "cannot read the store %.200s: %s",
				f->store, strerror(errno));
	return skv_store_open(skv_store_backend(o.path), &o, out, err);
}

static void print_report(const struct fsck *f, const struct skv_fsck_report *r)
{
	json_t *o;

	if (!f->json) {
		printf("%s: %" PRIu64 " blocks, %" PRIu64 " open sessions, %" PRIu64
		       " slots used, %" PRIu64 " held: %s",
		       f->shown, r->blocks, r->sessions, r->used_slots, r->held_slots,
		       r->problems ? "" : "clean\n");
		if (r->problems)
			printf("%" PRIu64 " problems\n", r->problems);
		return;
	}
	o = json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:O}", "store", f->shown, "blocks",
		      (json_int_t)r->blocks, "sessions", (json_int_t)r->sessions, "used_slots",
		      (json_int_t)r->used_slots, "held_slots", (json_int_t)r->held_slots,
		      "problems", (json_int_t)r->problems, "texts", f->problems);
	if (o)
		json_dumpf(o, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(o);
}

static void print_failure(const struct fsck *f, const struct skv_error *err)
{
	json_t *o;

	if (!f->json) {
		fprintf(stderr, "slabkvd fsck: could not check: %s\n", err->message);
		return;
	}
	o = json_pack("{s:s, s:{s:s, s:s}}", "store", f->shown, "error", "code",
		      skv_status_name(err->status), "message", err->message);
	if (o)
		json_dumpf(o, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(o);
}

int skv_fsck_main(int argc, char **argv)
{
	struct fsck f = { .store = "./slabkv.db" };
	struct skv_fsck_report report = { 0 };
	struct skv_store *store = NULL;
	struct skv_error err = { 0 };
	int rc = parse(&f, argc, argv);

	if (rc >= 0)
		return rc;
	f.problems = json_array();
	rc = open_store(&f, &store, &err);
	if (rc == SKV_OK)
		rc = skv_cluster_fsck(store, f.files, f.token_file, say, &f, &report, &err);
	if (rc == SKV_OK)
		print_report(&f, &report);
	else
		print_failure(&f, &err);
	if (store)
		skv_store_close(store);
	json_decref(f.problems);
	if (rc != SKV_OK)
		return FSCK_UNCHECKED;
	return report.problems ? FSCK_PROBLEMS : FSCK_CLEAN;
}
