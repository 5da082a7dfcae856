/*
 * cmd_storage.c - slabkv storage: lists storages and slab files, drains a file or a whole storage,
 * cancels a drain, changes a capacity; --wait shows progress. Stateless; one thread.
 */
#include "cli.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <skv/clock.h>

#define MAX_FILES 256
#define PAUSE_MS 200
_Static_assert(PAUSE_MS < 1000, "tv_nsec holds less than a second");

struct storage_command {
	struct skv_cli *cli;
	struct slabkv *kv;
	const char *name; /* of the storage */
	uint32_t file[MAX_FILES];
	uint32_t n_files;
	bool wait;
	bool move; /* drain: no block is evicted */
	uint64_t began; /* bytes in the files when the drain began */
};

/* ---- calls ----------------------------------------------------------------------------------- */

/* As skv_cli_call. */
static int call(struct storage_command *s, const char *method, const char *path, json_t *body,
		json_t **out)
{
	return skv_cli_call(s->cli, s->kv, method, path, body, out);
}

static const char *path_of(const struct storage_command *s, const char *more, char out[300])
{
	snprintf(out, 300, "/v1/storages/%s%s", s->name, more);
	return out;
}

static int get_files(struct storage_command *s, json_t **out)
{
	char path[300];

	return skv_cli_list(s->cli, s->kv, path_of(s, "/files", path), NULL, 0, out);
}

/* ---- output ---------------------------------------------------------------------------------- */

static void print_files(const json_t *doc)
{
	const json_t *f;
	char length[24], used[24], held[24];
	size_t i;

	printf("%-8s %-9s %12s %12s %12s  %s\n", "FILE", "STATE", "LENGTH", "USED", "QUARANTINE",
	       "");
	json_array_foreach(json_object_get(doc, "files"), i, f) {
		const char *why = skv_cli_text(f, "why"), *waits = skv_cli_text(f, "waits_for");

		skv_args_print_size(skv_cli_u64(f, "length"), length);
		skv_args_print_size(skv_cli_u64(f, "used_bytes"), used);
		skv_args_print_size(skv_cli_u64(f, "quarantined_bytes"), held);
		printf("%-8" PRIu64 " %-9s %12s %12s %12s  %s%s%s\n", skv_cli_u64(f, "file"),
		       skv_cli_text(f, "state"), length, used, held, why,
		       *waits ? ", waits for " : "", waits);
	}
}

static void print_storage(const json_t *s)
{
	char capacity[24], used[24];

	skv_cli_storage_size(s, "capacity", capacity);
	skv_cli_storage_size(s, "used_bytes", used);
	printf("%-24s %-9s %12s %12s %8" PRIu64 " %8" PRIu64 "  %s\n", skv_cli_text(s, "name"),
	       skv_cli_text(s, "type"), capacity, used, skv_cli_u64(s, "files"),
	       skv_cli_u64(s, "draining_files"),
	       json_is_true(json_object_get(s, "draining"))  ? "draining"
	       : json_is_true(json_object_get(s, "healthy")) ? ""
							     : "NOT healthy");
}

static void print_storages(const json_t *doc)
{
	const json_t *s;
	size_t i;

	printf("%-24s %-9s %12s %12s %8s %8s\n", "STORAGE", "TYPE", "CAPACITY", "USED", "FILES",
	       "DRAINING");
	json_array_foreach(json_object_get(doc, "storages"), i, s)
		print_storage(s);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static bool is_meant(const struct storage_command *s, const json_t *file)
{
	bool meant = s->n_files == 0;

	for (uint32_t i = 0; i < s->n_files; i++)
		meant |= skv_cli_u64(file, "file") == s->file[i];
	return meant && strcmp(skv_cli_text(file, "state"), "used") != 0;
}

/* Waits until none of the named files drains any more: they are gone, or still in use. */
static int wait_for_files(struct storage_command *s)
{
	const struct timespec pause = { .tv_nsec = PAUSE_MS * 1000000L };
	uint64_t told = 0, now;

	for (;;) {
		uint64_t left = 0, bytes = 0;
		const char *waits = "";
		const json_t *f;
		json_t *doc;
		size_t i;
		int rc = get_files(s, &doc);

		if (rc != SKV_EXIT_OK)
			return rc;
		json_array_foreach(json_object_get(doc, "files"), i, f) {
			if (!is_meant(s, f))
				continue;
			left++;
			bytes += skv_cli_u64(f, "used_bytes") + skv_cli_u64(f, "quarantined_bytes");
			waits = skv_cli_text(f, "waits_for");
		}
		now = skv_now_us();
		if (left && now - told >= 1000000) {
			fprintf(stderr, "%" PRIu64 " files drain, %" PRIu64 " bytes are left", left,
				bytes);
			if (s->move)
				fprintf(stderr, " of %" PRIu64, s->began);
			fprintf(stderr, "%s%s\n", *waits ? ", waiting for " : "", waits);
			told = now;
		}
		json_decref(doc);
		if (!left)
			return SKV_EXIT_OK;
		nanosleep(&pause, NULL);
	}
}

/* ---- the commands ---------------------------------------------------------------------------- */

static int files(struct storage_command *s, char **words, int n)
{
	char path[300];

	return skv_cli_show_list(s->cli, s->kv, path_of(s, "/files", path), words, n, print_files);
}

/* Counts the files that the command names, or all, and the bytes of blocks in them. */
static uint64_t count_meant(const struct storage_command *s, const json_t *doc, uint64_t *bytes)
{
	uint64_t n = 0;
	const json_t *f;
	size_t i;

	*bytes = 0;
	json_array_foreach(json_object_get(doc, "files"), i, f) {
		bool meant = s->n_files == 0;

		for (uint32_t k = 0; k < s->n_files; k++)
			meant |= skv_cli_u64(f, "file") == s->file[k];
		if (!meant)
			continue;
		n++;
		*bytes += skv_cli_u64(f, "used_bytes");
	}
	return n;
}

/* Reports what a drain would cost before it starts. */
static int confirm_drain(struct storage_command *s)
{
	uint64_t n, bytes;
	char size[24];
	json_t *doc;
	int rc = get_files(s, &doc);

	if (rc != SKV_EXIT_OK)
		return rc;
	n = count_meant(s, doc, &bytes);
	json_decref(doc);
	s->began = bytes;
	if (s->move)
		return SKV_EXIT_OK; /* nothing is destroyed */
	skv_args_print_size(bytes, size);
	if (s->n_files > 0)
		return skv_cli_confirm(s->cli,
				       "evicts the blocks in %" PRIu64
				       " slab file%s of storage %s (%s) and removes the file%s",
				       n, n == 1 ? "" : "s", s->name, size, n == 1 ? "" : "s");
	return skv_cli_confirm(
		s->cli,
		"retires storage %s: it takes no new blocks, and all that is in it goes "
		"(%s in %" PRIu64 " slab file%s)",
		s->name, size, n, n == 1 ? "" : "s");
}

static int confirm_shrink(struct storage_command *s, uint64_t bytes)
{
	char path[300], from[24], to[24], used[24];
	json_t *doc;
	int rc = call(s, "GET", path_of(s, "", path), NULL, &doc);

	if (rc != SKV_EXIT_OK)
		return rc;
	skv_args_print_size(skv_cli_u64(doc, "capacity"), from);
	skv_args_print_size(skv_cli_u64(doc, "used_bytes"), used);
	skv_args_print_size(bytes, to);
	if (bytes < skv_cli_u64(doc, "capacity"))
		rc = skv_cli_confirm(
			s->cli,
			"lowers storage %s from %s to %s: slab files that do not fit (%s are used) "
			"are drained and removed",
			s->name, from, to, used);
	json_decref(doc);
	return rc;
}

/* Files one by one, or, without any, the storage as a whole. */
static int drain(struct storage_command *s, bool on)
{
	char path[300];
	int rc = on ? confirm_drain(s) : SKV_EXIT_OK;

	if (rc == SKV_EXIT_OK && s->n_files == 0)
		rc = skv_cli_change(s->cli, s->kv, SLABKV_STORAGE, s->name,
				    json_pack("{s:b, s:b}", "draining", on, "move", s->move), NULL);
	for (uint32_t i = 0; rc == SKV_EXIT_OK && i < s->n_files; i++)
		rc = call(s, "PUT", path_of(s, "/files", path),
			  json_pack("{s:I, s:b, s:b}", "file", (json_int_t)s->file[i], "draining",
				    on, "move", s->move),
			  NULL);
	if (rc == SKV_EXIT_OK && on && s->wait)
		rc = wait_for_files(s);
	return rc == SKV_EXIT_OK ? files(s, NULL, 0) : rc;
}

/* A bad file, with its blocks. */
static int forget(struct storage_command *s)
{
	char path[300];
	int rc = skv_cli_confirm(
		s->cli, "gives up %u slab file%s of storage %s, with all blocks in %s", s->n_files,
		s->n_files == 1 ? "" : "s", s->name, s->n_files == 1 ? "it" : "them");

	assert(s->n_files >= 1 && s->n_files <= MAX_FILES); /* here it is never all of them */
	for (uint32_t i = 0; rc == SKV_EXIT_OK && i < s->n_files; i++)
		rc = call(s, "PUT", path_of(s, "/files", path),
			  json_pack("{s:I, s:b, s:b}", "file", (json_int_t)s->file[i], "draining",
				    1, "forget", 1),
			  NULL);
	if (rc == SKV_EXIT_OK && s->wait)
		rc = wait_for_files(s);
	return rc == SKV_EXIT_OK ? files(s, NULL, 0) : rc;
}

static int capacity(struct storage_command *s, const char *text)
{
	uint64_t bytes;
	json_t *doc;
	int rc;

	if (!skv_args_size(text, &bytes))
		return skv_cli_usage(s->cli, "'%s' is not a size such as 4096, 64K, 10G", text);
	rc = confirm_shrink(s, bytes);
	if (rc == SKV_EXIT_OK)
		rc = skv_cli_change(s->cli, s->kv, SLABKV_STORAGE, s->name,
				    json_pack("{s:I}", "capacity", (json_int_t)bytes), &doc);
	if (rc == SKV_EXIT_OK && s->wait) {
		struct timespec pause = { .tv_nsec = PAUSE_MS * 1000000L };

		nanosleep(&pause, NULL); /* the manager's ticker chooses the files */
		rc = wait_for_files(s);
	}
	if (rc == SKV_EXIT_OK)
		return skv_cli_print(s->cli, doc, print_storage);
	return rc;
}

static int parse_files(struct storage_command *s, int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		char *end;
		unsigned long v;

		errno = 0;
		v = strtoul(argv[i], &end, 10);
		if (argv[i][0] < '0' || argv[i][0] > '9' || *end || errno || v > UINT32_MAX)
			return skv_cli_usage(s->cli, "'%s' is not the number of a slab file",
					     argv[i]);
		if (s->n_files == MAX_FILES)
			return skv_cli_usage(s->cli, "%d files at a time", MAX_FILES);
		s->file[s->n_files++] = (uint32_t)v;
	}
	return SKV_EXIT_OK;
}

static int run(struct storage_command *s, int argc, char **argv)
{
	static const char *const actions[] = { "list",   "files",    "drain", "keep",
					       "forget", "capacity", NULL };
	const char *what = argv[0];
	int rc;

	for (size_t i = 0; strcmp(actions[i], what) != 0;)
		if (!actions[++i])
			return skv_cli_unknown(s->cli, "action", what, actions);
	if (strcmp(what, "list") == 0)
		return skv_cli_show_list(s->cli, s->kv, "/v1/storages", argv + 1, argc - 1,
					 print_storages);
	if (argc < 2)
		return skv_cli_usage(s->cli, "'%s': the name of a storage is missing", what);
	s->name = argv[1];
	if (strcmp(what, "files") == 0)
		return files(s, argv + 2, argc - 2);
	if (strcmp(what, "capacity") == 0 && argc == 3)
		return capacity(s, argv[2]);
	if (strcmp(what, "forget") == 0 && argc > 2) {
		rc = parse_files(s, argc - 2, argv + 2);
		return rc == SKV_EXIT_OK ? forget(s) : rc;
	}
	if (strcmp(what, "drain") != 0 && strcmp(what, "keep") != 0)
		return skv_cli_usage(s->cli, "'%s': not with these arguments", what);
	if (s->move && strcmp(what, "drain") != 0)
		return skv_cli_usage(s->cli, "--move: only with drain");
	rc = parse_files(s, argc - 2, argv + 2);
	return rc == SKV_EXIT_OK ? drain(s, strcmp(what, "drain") == 0) : rc;
}

int skv_cmd_storage(struct skv_cli *cli, int argc, char **argv)
{
	struct storage_command s = { .cli = cli };
	const struct skv_cli_option options[] = {
		{ "wait", SKV_CLI_FLAG, &s.wait, 0, 0, NULL, NULL },
		{ "move", SKV_CLI_FLAG, &s.move, 0, 0, NULL, NULL }, SKV_CLI_OPTIONS_END
	};
	int rc = skv_cli_parse(cli, argc, argv, options, NULL);

	if (rc == SKV_EXIT_OK && optind >= argc)
		rc = skv_cli_usage(cli, "list, files, drain, keep, forget or capacity?");
	if (rc == SKV_EXIT_OK)
		rc = skv_cli_open(cli, NULL, &s.kv);
	if (rc == SKV_EXIT_OK) {
		rc = run(&s, argc - optind, argv + optind);
		slabkv_close(s.kv);
	}
	return rc;
}
