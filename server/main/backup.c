/*
 * backup.c - the commands that copy a store: `slabkvd migrate`, `backup` and `restore`.
 *
 * migrate copies to an empty store of any kind, while no manager runs on either: both are owned
 * meanwhile. The source stays as it is. Slab directories know the newest owner, so the two stores
 * cannot both hand out slots: the first manager that runs on one shuts the other out.
 *
 * backup copies to a file while managers run on the store; restore copies such a file to an empty
 * store. Blocks written after a backup are not in it, and other blocks may lie in its slots by now.
 * So each partition of a backup, and of a restored store, has a document that marks it. A manager
 * loads neither without --adopt, which treats the store as gone back in time and removes the
 * document.
 */
#include "main.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "copy.h"

#define TRIES 20

struct command {
	const char *name;
	const char *from, *to; /* options of the command */
	const char *usage;
};

static const struct command commands[] = {
	{ "migrate", "--from", "--to",
	  "Usage: slabkvd migrate --from STORE --to STORE\n"
	  "Copies the metadata store to an empty one, while no manager runs on either. Slab files\n"
	  "stay where they are; go on with the new store only.\n"
	  "Exit status: 0 done, 1 not done, 2 wrong arguments.\n" },
	{ "backup", "--store", "--to",
	  "Usage: slabkvd backup --store STORE --to FILE\n"
	  "Copies the metadata store to a new file while managers run on it.\n"
	  "Exit status: 0 done, 1 not done, 2 wrong arguments.\n" },
	{ "restore", "--from", "--store",
	  "Usage: slabkvd restore --from FILE --store STORE\n"
	  "Copies a file that 'slabkvd backup' made to an empty store; then start one manager\n"
	  "with --adopt, once.\n"
	  "Exit status: 0 done, 1 not done, 2 wrong arguments.\n" },
};

/* Removes a file that an attempt has made. */
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

/* Copies a live store. Begins again when an administrator's change happened meanwhile. */
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
		rc = copy_store(c, store, file, true, SKV_STORE_BACKUP);
		if (rc != SKV_OK)
			remove_file(file);
		if (rc == SKV_OK || !c->changed || i == TRIES)
			return rc;
		nanosleep(&pause, NULL);
	}
}

/* -1: continue; else the exit status. */
static int parse(const struct command *what, int argc, char **argv, const char **from,
		 const char **to)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], what->from) == 0 && i + 1 < argc) {
			*from = argv[++i];
		} else if (strcmp(argv[i], what->to) == 0 && i + 1 < argc) {
			*to = argv[++i];
		} else if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			fputs(what->usage, stdout);
			return 0;
		} else {
			fprintf(stderr, "slabkvd %s: argument '%s' is not known\n%s", what->name,
				argv[i], what->usage);
			return EXIT_USAGE;
		}
	}
	if (*from && *to && strcmp(*from, *to) != 0)
		return -1;
	fprintf(stderr, "slabkvd %s: %s and %s are needed, two different stores\n%s", what->name,
		what->from, what->to, what->usage);
	return EXIT_USAGE;
}

bool skv_copy_is_asked(const char *command)
{
	for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
		if (strcmp(commands[i].name, command) == 0)
			return true;
	return false;
}

int skv_copy_main(int argc, char **argv)
{
	const struct command *what = commands;
	const char *from = NULL, *to = NULL;
	struct copy c = { .slices = 0 };
	int status, rc;

	while (strcmp(what->name, argv[0]) != 0)
		what++;
	status = parse(what, argc, argv, &from, &to);
	if (status >= 0)
		return status;
	if (strcmp(what->name, "backup") == 0)
		rc = backup(&c, from, to);
	else
		rc = copy_store(&c, from, to, false,
				strcmp(what->name, "restore") == 0 ? SKV_STORE_BACKUP : NULL);
	if (rc != SKV_OK) {
		fprintf(stderr, "slabkvd %s: %s\n", what->name,
			c.err.message[0] ? c.err.message : skv_status_text(rc));
		return EXIT_PROBLEM;
	}
	copy_tell(&c, "done");
	if (strcmp(what->name, "restore") == 0)
		puts("Make sure that no manager goes on with the store it was made of, then start "
		     "one on this with --adopt, once.");
	return 0;
}
