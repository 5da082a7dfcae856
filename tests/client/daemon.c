/* daemon.c - see daemon.h. The path of slabkvd comes from the build (SLABKVD). */
#include "daemon.h"

#include <setjmp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "shell.h"

static void nap(void)
{
	poll(NULL, 0, 20); /* between two looks at something that has a deadline */
}

static void launch(struct daemon *d, const char *port)
{
	char log[128];

	d->pid = fork();
	assert_true(d->pid >= 0);
	if (d->pid > 0)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(log, sizeof log, "%s/log", d->dir);
	if (chdir(d->dir) != 0 || !freopen(log, "a", stderr) || !freopen(log, "a", stdout))
		_exit(126);
	execl(SLABKVD, "slabkvd", "--http-port", port, "--grpc-port", "off", "--port-file", "port",
	      "--store", "s.db", "--storage-root", d->root, "--storage-capacity", "64M",
	      "--storage-unit", "1M", "--owner-lease-ms", "10000", (char *)NULL);
	_exit(127);
}

/* The port that the manager wrote down. */
static int read_port(const struct daemon *d)
{
	char path[128];
	int port = 0;
	FILE *f;

	snprintf(path, sizeof path, "%s/port", d->dir);
	f = fopen(path, "re");
	if (f && fscanf(f, "%d", &port) != 1)
		port = 0;
	if (f)
		fclose(f);
	return port;
}

void daemon_wait(struct slabkv *kv)
{
	int rc = SLABKV_E_NOT_READY;

	for (int i = 0; i < 1500 && rc != SLABKV_OK; i++) {
		rc = slabkv_ready(kv, NULL);
		if (rc != SLABKV_OK)
			nap();
	}
	assert_int_equal(rc, SLABKV_OK);
}

void daemon_start(struct daemon *d)
{
	struct slabkv_options o;
	struct slabkv *kv;
	const char *url = d->url;
	int port = 0;

	snprintf(d->dir, sizeof d->dir, "/tmp/skv-real-XXXXXX");
	assert_non_null(mkdtemp(d->dir));
	snprintf(d->root, sizeof d->root, "%s/data", d->dir);
	launch(d, "0");
	for (int i = 0; i < 1500 && port == 0; i++) {
		port = read_port(d);
		if (port == 0)
			nap();
	}
	assert_true(port > 0);
	snprintf(d->url, sizeof d->url, "http://127.0.0.1:%d", port);
	slabkv_options_init(&o, sizeof o);
	o.urls = &url;
	o.n_urls = 1;
	assert_int_equal(slabkv_open(&o, &kv, NULL), SLABKV_OK);
	daemon_wait(kv);
	slabkv_close(kv);
}

void daemon_kill(struct daemon *d)
{
	assert_int_equal(kill(d->pid, SIGKILL), 0);
	assert_int_equal(waitpid(d->pid, NULL, 0), d->pid);
	d->pid = 0;
}

void daemon_again(struct daemon *d) { launch(d, strrchr(d->url, ':') + 1); }

void daemon_remove(struct daemon *d)
{
	char command[128];
	int status = 0;

	if (d->pid) {
		assert_int_equal(kill(d->pid, SIGTERM), 0);
		assert_int_equal(waitpid(d->pid, &status, 0), d->pid);
	}
	snprintf(command, sizeof command, "rm -rf '%s'", d->dir);
	assert_int_equal(test_shell(command), 0);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
