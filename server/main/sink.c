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

#include <kvb/log.h>

static int open_file(const struct kvb_params *p)
{
	return open(p->log_file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
}

int kvb_sink_open(const struct kvb_params *p, int *fd, struct kvb_error *err)
{
	enum kvb_log_level level = KVB_LOG_INFO;

	*fd = -1;
	kvb_log_level_parse(p->log_level, &level);
	if (*p->log_file) {
		*fd = open_file(p);
		if (*fd < 0)
			return kvb_fail(err, KVB_E_IO, "log_file",
					"cannot open the log file %s: %s",
					p->log_file, strerror(errno));
	}
	kvb_log_setup(*fd >= 0 ? *fd : STDERR_FILENO, strcmp(p->log_format, "json") == 0, level);
	return KVB_OK;
}

void kvb_sink_reopen(const struct kvb_params *p, int fd)
{
	int fresh;

	if (fd < 0)
		return;
	fresh = open_file(p);
	if (fresh < 0) {
		kvb_log(KVB_LOG_ERROR, "main", "cannot open the log file %s again: %s", p->log_file,
			strerror(errno));
		return;
	}
	dup3(fresh, fd, O_CLOEXEC);
	close(fresh);
}
