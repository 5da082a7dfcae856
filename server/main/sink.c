/*
 * sink.c - the log's destination: standard error or a file that may be rotated.
 *
 * The log keeps one descriptor for ever; rotation replaces the file behind it with dup2, so that no
 * writing thread notices. Called by the main thread.
 */
#include "main.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <skv/bytes.h>
#include <skv/log.h>

static int open_file(const struct skv_params *p)
{
	return open(p->log_file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
}

int skv_sink_open(const struct skv_params *p, int *fd, struct skv_error *err)
{
	const bool json = strcmp(p->log_format, "json") == 0;
	enum skv_log_level level = SKV_LOG_INFO;

	*fd = -1;
	skv_log_level_parse(p->log_level, &level);
	skv_log_setup(STDERR_FILENO, json, level);
	if (*p->log_file) {
		*fd = open_file(p);
		if (*fd < 0)
			return skv_fail(err, SKV_E_IO, "log_file",
					"cannot open the log file %s: %s",
					p->log_file, strerror(errno));
	}
	if (*fd >= 0)
		skv_log_setup(*fd, json, level);
	return SKV_OK;
}

void skv_sink_close(int fd)
{
	if (fd < 0)
		return;
	skv_log_setup(STDERR_FILENO, skv_log_is_json(), SKV_LOG_INFO);
	close(fd);
}

void skv_sink_say(const char *program, const char *message)
{
	struct skv_buf line = { 0 };

	if (skv_log_is_json())
		skv_log_line(&line, SKV_LOG_ERROR, "main", message, NULL, 0);
	else
		skv_buf_printf(&line, "%s: %s\n", program, message);
	if (!line.failed)
		fwrite(line.data, 1, line.len, stderr);
	skv_buf_destroy(&line);
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
