/*
 * process.c - what any role of the program does with its process: signals, port files.
 *
 * No state. Main's thread.
 */
#include "main.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int skv_write_port_file(const char *path, unsigned port, const char *param, bool *written, struct skv_error *err)
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
