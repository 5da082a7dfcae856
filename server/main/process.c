/*
 * process.c - process-wide tasks of every role: signals, port files, waiting for the end.
 *
 * Stateless. Main thread.
 */
#include "main.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <skv/log.h>
#include <skv/service.h>

int skv_write_port_file(const char *path, unsigned port, const char *param, bool *written,
			struct skv_error *err)
{
	char temporary[4200];
	FILE *f;
	bool good;
	int n;

	if (!*path)
		return SKV_OK;
	n = snprintf(temporary, sizeof temporary, "%s.new", path);
	assert(n > 0 && (size_t)n < sizeof temporary && port > 0 && port <= UINT16_MAX);
	f = fopen(temporary, "we");
	good = f && fprintf(f, "%u\n", port) > 0;
	if (f && fclose(f) != 0)
		good = false;
	if (!good || rename(temporary, path) != 0)
		return skv_fail(err, SKV_E_IO, param, "cannot write %s %.200s: %s", param, path,
				strerror(errno));
	*written = true;
	return SKV_OK;
}

void skv_wait_for_end(const struct skv_params *p, struct skv_service *s, int log_fd,
		      const sigset_t *signals)
{
	assert(sigismember(signals, SIGTERM) == 1);
	for (;;) {
		int number = sigwaitinfo(signals, NULL);
		struct skv_error err;

		if (number == SIGTERM || number == SIGINT)
			return;
		if (number != SIGHUP)
			continue;
		skv_sink_reopen(p, log_fd);
		if (skv_service_reload(s, &err) == SKV_OK)
			skv_log(SKV_LOG_INFO, "main", "SIGHUP: tokens and log files opened again");
		else
			skv_log(SKV_LOG_ERROR, "main", "SIGHUP: keeping what was: %s",
				err.message);
		skv_certificates_reload();
	}
}

static void leave_at_once(int number)
{
	(void)number;
	_exit(EXIT_PROBLEM);
}

void skv_signals_block(sigset_t *signals)
{
	sigemptyset(signals);
	sigaddset(signals, SIGTERM);
	sigaddset(signals, SIGINT);
	sigaddset(signals, SIGHUP);
	pthread_sigmask(SIG_BLOCK, signals, NULL);
}

void skv_signals_arm(const sigset_t *signals)
{
	struct sigaction action = { .sa_handler = leave_at_once };

	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	pthread_sigmask(SIG_UNBLOCK, signals, NULL);
}
