/*
 * backup.c - `slabkvd backup`: copies a store to a file while managers run on it; `restore`: copies
 * such a file to an empty store.
 *
 * What was written after a backup is not in it, and other blocks may lie in its slots by now. So it
 * is never taken for the truth: each partition of it has a document that says so, a restored store
 * has it too, and a manager loads neither unless it is told to (--adopt), which makes it count as
 * gone back in time. It takes the document away once that is done.
 */
#include "main.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "copy.h"

#define TRIES 20

static const char usage[] =
	"Usage: slabkvd backup --store STORE --to FILE\n"
	"       slabkvd restore --from FILE --store STORE\n"
	"backup copies the metadata store to a new file while managers run on it. restore copies\n"
	"such a file to an empty store; then start one manager with --adopt, once.\n"
	"Exit status: 0 done, 1 not done, 2 wrong arguments.\n";

static int once(struct copy *c, const char *from, const char *to, bool live)
{
	int rc = copy_open(c, from, to);

	if (rc == SKV_OK)
		rc = copy_own(c, live);
	if (rc == SKV_OK)
		rc = copy_run(c, SKV_STORE_BACKUP);
	copy_close(c);
	return rc;
}

/* What an attempt has made. */
static void remove_file(const char *path)
{
	static const char *const ends[] = { "", "-wal", "-shm", "-reserve", "-checkpoint",
					    "-checkpoint-wal", "-checkpoint-shm" };
	char name[4200];

	for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
		snprintf(name, sizeof name, "%s%s", path, ends[i]);
		unlink(name);
	}
}

/* Begins again when an administrator's change came in between. */
static int backup(struct copy *c, const char *store, const char *file)
{
	const struct timespec pause = { 0, 200 * 1000 * 1000 };
	int rc;

	if (!skv_store_is_file(file))
		return skv_fail(&c->err, SKV_E_INVALID, "to", "--to: name a file");
	if (access(file, F_OK) == 0)
		return skv_fail(&c->err, SKV_E_CONFLICT, "to", "%.200s exists already", file);
	for (int i = 0;; i++) {
		*c = (struct copy){ .slices = 0 };
		rc = once(c, store, file, true);
		if (rc != SKV_OK)
			remove_file(file);
		if (rc == SKV_OK || !c->changed || i == TRIES)
			return rc;
		nanosleep(&pause, NULL);
	}
}

static int parse(int argc, char **argv, const char *file_option, const char **store,
		 const char **file)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--store") == 0 && i + 1 < argc) {
			*store = argv[++i];
		} else if (strcmp(argv[i], file_option) == 0 && i + 1 < argc) {
			*file = argv[++i];
		} else if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			fputs(usage, stdout);
			return -1;
		} else {
			fprintf(stderr, "slabkvd %s: argument '%s' is not known\n%s", argv[0],
				argv[i], usage);
			return EXIT_USAGE;
		}
	}
	if (*store && *file && strcmp(*store, *file) != 0)
		return 0;
	fprintf(stderr, "slabkvd %s: --store and %s are needed\n%s", argv[0], file_option, usage);
	return EXIT_USAGE;
}

static int end(const char *command, const struct copy *c, int rc)
{
	if (rc == SKV_OK) {
		copy_tell(c, "done");
		return 0;
	}
	fprintf(stderr, "slabkvd %s: %s\n", command,
		c->err.message[0] ? c->err.message : skv_status_text(rc));
	return EXIT_PROBLEM;
}

int skv_backup_main(int argc, char **argv)
{
	const char *store = NULL, *file = NULL;
	struct copy c = { .slices = 0 };
	int status = parse(argc, argv, "--to", &store, &file);

	return status ? status < 0 ? 0 : status : end(argv[0], &c, backup(&c, store, file));
}

int skv_restore_main(int argc, char **argv)
{
	const char *store = NULL, *file = NULL;
	struct copy c = { .slices = 0 };
	int status = parse(argc, argv, "--from", &store, &file);

	if (status)
		return status < 0 ? 0 : status;
	status = end(argv[0], &c, once(&c, file, store, false));
	if (status == 0)
		puts("Make sure that no manager goes on with the store it was made of, then start "
		     "one on this with --adopt, once.");
	return status;
}
