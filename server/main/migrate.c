/*
 * migrate.c - `slabkvd migrate`: copies a store to an empty one of any kind, while no manager runs
 * on either.
 *
 * Both are owned meanwhile, so no manager begins. The target says that it is unfinished until the
 * last step, and managers refuse such a store: what was cut off is thrown away and begun again.
 *
 * The source stays as it is. Slab directories know the newest owner, so the two stores cannot both
 * hand out slots: the first manager that runs on one shuts the other out.
 */
#include "main.h"

#include <stdio.h>
#include <string.h>

#include "copy.h"

static const char usage[] =
	"Usage: slabkvd migrate --from STORE --to STORE\n"
	"Copies the metadata store to an empty one, while no manager runs on either. Slab files\n"
	"stay where they are; go on with the new store only.\n"
	"Exit status: 0 done, 1 not done, 2 wrong arguments.\n";

static int migrate(struct copy *c, const char *from, const char *to)
{
	int rc = copy_open(c, from, to);

	if (rc == SKV_OK)
		rc = copy_own(c, false);
	if (rc == SKV_OK)
		rc = copy_run(c, NULL);
	copy_close(c);
	return rc;
}

int skv_migrate_main(int argc, char **argv)
{
	struct copy c = { .slices = 0 };
	const char *from = NULL, *to = NULL;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--from") == 0 && i + 1 < argc) {
			from = argv[++i];
		} else if (strcmp(argv[i], "--to") == 0 && i + 1 < argc) {
			to = argv[++i];
		} else if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			fputs(usage, stdout);
			return 0;
		} else {
			fprintf(stderr, "slabkvd migrate: argument '%s' is not known\n%s", argv[i],
				usage);
			return EXIT_USAGE;
		}
	}
	if (!from || !to || strcmp(from, to) == 0) {
		fprintf(stderr, "slabkvd migrate: two different stores are needed\n%s", usage);
		return EXIT_USAGE;
	}
	if (migrate(&c, from, to) != SKV_OK) {
		fprintf(stderr, "slabkvd migrate: %s\n",
			c.err.message[0] ? c.err.message : skv_status_text(c.err.status));
		return EXIT_PROBLEM;
	}
	copy_tell(&c, "done");
	return 0;
}
