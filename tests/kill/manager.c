/*
 * manager.c - starts, kills, stops and checks a real slabkvd on a directory of its own.
 */
#include "manager.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct manager *running; /* for give_up */

void give_up(const char *file, int line, const char *what, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "%s:%d: %s: ", file, line, what);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\n");
	if (running) {
		fprintf(stderr, "its files: %s\n", running->dir);
		if (running->pid > 0)
			kill(running->pid, SIGKILL);
	}
	_exit(1);
}

void manager_skip(void)
{
	if (running && running->pid > 0)
		kill(running->pid, SIGKILL);
	if (running)
		manager_remove(running);
	_exit(77);
}

void manager_init(struct manager *m, const char *program, const char *durability,
		  const char *capacity)
{
	memset(m, 0, sizeof *m);
	m->program = program;
	m->durability = durability;
	snprintf(m->port, sizeof m->port, "0");
	snprintf(m->dir, sizeof m->dir, "/tmp/skv-kill-XXXXXX");
	MUST(mkdtemp(m->dir), "%s", strerror(errno));
	setenv("SLABKV_STORAGE_CAPACITY", capacity, 1);
	running = m;
}

/* The child: its working directory is ours, so that the defaults for paths serve. */
static void run(const struct manager *m, char *const argv[])
{
	int log;

	prctl(PR_SET_PDEATHSIG, SIGKILL); /* never outlive the test */
	if (chdir(m->dir) != 0)
		_exit(126);
	log = open("log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	dup2(log, STDOUT_FILENO);
	dup2(log, STDERR_FILENO);
	execv(argv[0], argv);
	_exit(127);
}

static bool read_port(struct manager *m)
{
	char path[96], text[16] = "";
	FILE *f;

	snprintf(path, sizeof path, "%s/port", m->dir);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (!fgets(text, sizeof text, f))
		text[0] = '\0';
	fclose(f);
	text[strcspn(text, "\n")] = '\0';
	if (text[0])
		snprintf(m->port, sizeof m->port, "%s", text);
	return text[0] != '\0';
}

static bool is_ready(struct manager *m)
{
	struct slabkv *kv;
	bool ready;

	if (!read_port(m))
		return false;
	kv = manager_connect(m);
	ready = slabkv_ready(kv, NULL) == SLABKV_OK;
	slabkv_close(kv);
	return ready;
}

void manager_launch(struct manager *m)
{
	const char *argv[64] = {
		m->program, "--http-port", m->port, "--grpc-port", "off", "--port-file", "port",
		"--durability", m->durability,
		"--storage-unit", "1M", "--storage-file-size", "8M", "--owner-lease-ms", "10000",
		"--grace-ms", "300",
		"--session-default-ms", "4000", "--session-max-ms", "8000", "--lease-default-ms",
		"100",
		"--lease-max-ms", "200", "--journal-limit", "2M",
	};
	size_t n = 0;

	while (argv[n])
		n++;
	for (const char *const *more = m->more; more && *more; more++) {
		MUST(n < sizeof argv / sizeof argv[0] - 1, "too many parameters");
		argv[n++] = *more;
	}
	m->pid = fork();
	MUST(m->pid >= 0, "%s", strerror(errno));
	if (m->pid == 0)
		run(m, (char *const *)argv);
}

void manager_alive(const struct manager *m)
{
	siginfo_t info = { 0 };

	MUST(waitid(P_PID, (id_t)m->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
		     info.si_pid == 0,
	     "the manager ended by itself; see %s/log", m->dir);
}

void manager_await(struct manager *m)
{
	for (int i = 0; i < 12000 && !is_ready(m); i++) {
		manager_alive(m);
		poll(NULL, 0, 5);
	}
	MUST(is_ready(m), "not ready in time");
}

void manager_start(struct manager *m)
{
	manager_launch(m);
	manager_await(m);
}

void manager_kill(struct manager *m)
{
	int status;

	kill(m->pid, SIGKILL);
	MUST(waitpid(m->pid, &status, 0) == m->pid, "%s", strerror(errno));
	MUST(WIFSIGNALED(status), "it had ended by itself, status %d", status);
	m->pid = 0;
}

void manager_stop(struct manager *m)
{
	int status;

	kill(m->pid, SIGTERM);
	MUST(waitpid(m->pid, &status, 0) == m->pid, "%s", strerror(errno));
	MUST(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %d after SIGTERM", status);
	m->pid = 0;
}

void manager_fsck(struct manager *m)
{
	char *const argv[] = {
		(char *)m->program, "fsck", "--files", "--store", "slabkv.db", NULL
	};
	pid_t pid = fork();
	int status;

	if (pid == 0)
		run(m, argv);
	MUST(waitpid(pid, &status, 0) == pid, "%s", strerror(errno));
	MUST(WIFEXITED(status) && WEXITSTATUS(status) == 0, "fsck: status %d; see %s/log", status,
	     m->dir);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st;
	(void)kind;
	(void)ftw;
	return remove(path);
}

void manager_remove(struct manager *m)
{
	running = NULL;
	nftw(m->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

struct slabkv *manager_connect(const struct manager *m)
{
	char url[64];
	const char *urls[] = { url };
	struct slabkv_options o;
	struct slabkv_error err;
	struct slabkv *kv;

	snprintf(url, sizeof url, "http://127.0.0.1:%s", m->port);
	slabkv_options_init(&o, sizeof o);
	o.urls = urls;
	o.n_urls = 1;
	o.timeout_ms = 60000; /* restarts are slow under the sanitizers */
	o.rounds = 200;
	MUST(slabkv_open(&o, &kv, &err) == SLABKV_OK, "%s", err.message);
	return kv;
}

uint64_t manager_number(struct slabkv *kv, enum slabkv_object kind, const char *name,
			const char *field)
{
	struct slabkv_error err;
	const char *json = NULL, *at;
	char quoted[64];
	uint64_t n;

	MUST(slabkv_object_get(kv, kind, name, &json, &err) == SLABKV_OK, "%s", err.message);
	snprintf(quoted, sizeof quoted, "\"%s\":", field);
	at = strstr(json, quoted);
	MUST(at, "%s has no field %s", name, field);
	n = strtoull(at + strlen(quoted), NULL, 10);
	slabkv_free(json);
	return n;
}
