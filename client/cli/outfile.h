/* outfile.h - a file that appears complete or not at all: written under a temporary name beside its
 * target, then renamed. One thread. */
#ifndef SKV_CLI_OUTFILE_H
#define SKV_CLI_OUTFILE_H

#include <stdio.h>

#include "cli.h"

struct skv_outfile {
	FILE *f;      /* write here */
	/* Final path of the file; NULL: f is the destination itself (stdout, a device, a pipe). */
	char *place;
	char *beside;
};

/* `path` "-": stdout. 0, or SKV_EXIT_USAGE after printing why. Pair with skv_outfile_end. */
int skv_outfile_begin(const struct skv_cli *cli, const char *path, struct skv_outfile *o);
/* rc 0: the file takes its place; else nothing of it stays, and what was there before is as it was.
 * rc, or SKV_EXIT_USAGE after printing why not. */
int skv_outfile_end(const struct skv_cli *cli, struct skv_outfile *o, int rc);

#endif
