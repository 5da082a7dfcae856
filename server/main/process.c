/*
 * process.c - process-wide tasks of every role: signals, modes, port files, waiting for the end.
 *
 * Stateless. Main thread.
 */
#include "main.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <skv/log.h>
#include <skv/service.h>

#define PORT_PATH_MAX 4200 /* port_file, and the longest end */

int skv_write_ports(const char *path, const char *end, const char *text, struct skv_error *err)
{
	char at[PORT_PATH_MAX], temporary[PORT_PATH_MAX];
	FILE *f;
	bool good;

	if (!*path)
		return SKV_OK;
	snprintf(at, sizeof at, "%s%s", path, end);
	snprintf(temporary, sizeof temporary, "%s%s.new", path, end);
	assert(strlen(path) + strlen(end) + sizeof ".new" <= sizeof temporary);
	f = fopen(temporary, "we");
	good = f && fputs(text, f) >= 0;
	if (f && fclose(f) != 0)
		good = false;
	if (!good || rename(temporary, at) != 0)
		return skv_fail(err, SKV_E_IO, "port_file", "cannot write port_file %.200s: %s", at,
				strerror(errno));
	return SKV_OK;
}

int skv_write_port_file(const char *path, const char *end, unsigned port, struct skv_error *err)
{
	char text[16];

	assert(port > 0 && port <= UINT16_MAX);
	snprintf(text, sizeof text, "%u\n", port);
	return skv_write_ports(path, end, text, err);
}

void skv_remove_port_file(const char *path, const char *end)
{
	char at[PORT_PATH_MAX];

	if (!*path)
		return;
	snprintf(at, sizeof at, "%s%s", path, end);
	unlink(at);
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

void skv_modes_set(const struct skv_params *p)
{
	const mode_t files = (mode_t)strtoul(p->storage_mode, NULL, 8);

	assert(files >= 0600 && (files & ~(mode_t)0660) == 0); /* the words of the parameter */
	umask(0777 & ~(files | (files & 0444) >> 2));
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

int skv_absolute_root(const struct skv_params *p, char out[SKV_MAX_ROOT + 1], struct skv_error *err)
{
	const char *root = p->storage_root;
	char cwd[SKV_MAX_ROOT + 1] = "";
	int n;

	if (*root != '/' && !getcwd(cwd, sizeof cwd))
		return skv_fail(err, SKV_E_INVALID, "storage_root",
				"cannot make %.100s an absolute path: %s; name one with "
				"--storage-root", root,
				strerror(errno));
	while (strncmp(root, "./", 2) == 0)
		root += 2;
	if (*root == '/' || strcmp(cwd, "/") == 0)
		n = snprintf(out, SKV_MAX_ROOT + 1, "%s%s", *root == '/' ? "" : "/", root);
	else
		n = snprintf(out, SKV_MAX_ROOT + 1, "%s/%s", cwd, root);
	if (n < 0 || n > (int)SKV_MAX_ROOT)
		return skv_fail(err, SKV_E_INVALID, "storage_root",
				"the path of storage_root is over %u characters", SKV_MAX_ROOT);
	assert(out[0] == '/');
	return SKV_OK;
}
