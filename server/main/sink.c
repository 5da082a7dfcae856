/*
 * sink.c - where the log goes: standard error or a file that may be rotated.
 *
 * The log keeps one descriptor for ever; rotation replaces what it refers to with dup2, so that no
 * thread that is writing a line notices. Called by main's thread.
 */
#include "main.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <skv/log.h>

static int open_file(const struct skv_params *p)
{
	return open(p->log_file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
}

int skv_sink_open(const struct skv_params *p, int *fd, struct skv_error *err)
{
	enum skv_log_level level = SKV_LOG_INFO;

	*fd = -1;
	skv_log_level_parse(p->log_level, &level);
	if (*p->log_file) {
		*fd = open_file(p);
		if (*fd < 0)
			return skv_fail(err, SKV_E_IO, "log_file",
					"cannot open the log file %s: %s",
					p->log_file, strerror(errno));
	}
	skv_log_setup(*fd >= 0 ? *fd : STDERR_FILENO, strcmp(p->log_format, "json") == 0, level);
	return SKV_OK;
}

void skv_sink_reopen(const struct skv_params *p, int fd)
{
	int fresh;

	if (fd < 0)
		return;
	fresh = open_file(p);
	if (fresh < 0) {
		skv_log(SKV_LOG_ERROR, "main", "cannot open the log file %s again: %s", p->log_file,
			strerror(errno));
		return;
	}
	dup3(fresh, fd, O_CLOEXEC);
	close(fresh);
}
