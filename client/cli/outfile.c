/* outfile.c - see outfile.h. No state. */
#include "outfile.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <skv/mem.h>

/* The mode of the file that is replaced; else what open would give. */
static mode_t mode_of(const struct stat *st)
{
	mode_t mask;

	if (st)
		return st->st_mode & 07777;
	mask = umask(0);
	umask(mask);
	return 0666 & ~mask;
}

static int begin_beside(const struct skv_cli *cli, const char *path, const struct stat *st,
			struct skv_outfile *o)
{
	char real[PATH_MAX];
	size_t n;
	int fd;

	o->place = skv_strdup(st && realpath(path, real) ? real : path); /* a link stays one */
	n = o->place ? strlen(o->place) + sizeof ".XXXXXX" : 0;
	o->beside = n ? skv_malloc(n) : NULL;
	if (!o->beside)
		return skv_cli_usage(cli, "out of memory");
	snprintf(o->beside, n, "%s.XXXXXX", o->place);
	assert(strlen(o->beside) + 1 == n); /* mkostemp needs all the X */
	fd = mkostemp(o->beside, O_CLOEXEC);
	if (fd < 0) {
		int error = errno;

		skv_free(o->beside); /* nothing to remove */
		o->beside = NULL;
		return skv_cli_usage(cli, "%s: %s", path, strerror(error));
	}
	if (fchmod(fd, mode_of(st)) == 0)
		o->f = fdopen(fd, "w");
	if (o->f)
		return SKV_EXIT_OK;
	close(fd);
	return skv_cli_usage(cli, "%s: %s", path, strerror(errno));
}

int skv_outfile_begin(const struct skv_cli *cli, const char *path, struct skv_outfile *o)
{
	struct stat st;
	bool there;

	*o = (struct skv_outfile){ 0 };
	if (strcmp(path, "-") == 0) {
		o->f = stdout;
		return SKV_EXIT_OK;
	}
	there = stat(path, &st) == 0;
	if (!there || S_ISREG(st.st_mode))
		return begin_beside(cli, path, there ? &st : NULL, o);
	o->f = fopen(path, "we");
	return o->f ? SKV_EXIT_OK : skv_cli_usage(cli, "%s: %s", path, strerror(errno));
}

int skv_outfile_end(const struct skv_cli *cli, struct skv_outfile *o, int rc)
{
	bool ok = true;
	int error;

	assert(!o->beside || (o->place && o->f != stdout));
	if (o->f) {
		ok = fflush(o->f) == 0 && !ferror(o->f) &&
		     (rc != SKV_EXIT_OK || !o->beside || fsync(fileno(o->f)) == 0);
		if (o->f != stdout)
			ok = fclose(o->f) == 0 && ok;
	}
	if (ok && rc == SKV_EXIT_OK && o->beside)
		ok = rename(o->beside, o->place) == 0;
	error = errno;
	if (o->beside && (!ok || rc != SKV_EXIT_OK))
		unlink(o->beside);
	if (!ok && rc == SKV_EXIT_OK)
		rc = skv_cli_usage(cli, "%s: %s", o->place ? o->place : "output", strerror(error));
	skv_free(o->beside);
	skv_free(o->place);
	*o = (struct skv_outfile){ 0 };
	return rc;
}
