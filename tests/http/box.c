/*
 * box.c - real slabkvd processes for tests.
 *
 * Every wait looks again and again until a deadline and fails the test after it. One thread.
 */
#include "box.h"

#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <skv/clock.h>

#include "shell.h"

#define BLOCK 4096

/* ---- processes ------------------------------------------------------------------------------- */

int box_setup(void **state)
{
	struct box *b = calloc(1, sizeof *b);
	char dir[] = "/tmp/slabkvd-XXXXXX";

	assert_non_null(mkdtemp(dir));
	snprintf(b->dir, sizeof b->dir, "%s", dir);
	for (int i = 0; i < MANAGERS; i++) {
		snprintf(b->m[i].port_file, sizeof b->m[i].port_file, "%s/port%d", dir, i);
		snprintf(b->m[i].out, sizeof b->m[i].out, "%s/out%d", dir, i);
		snprintf(b->m[i].log, sizeof b->m[i].log, "%s/log%d", dir, i);
	}
	*state = b;
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	(void)st;
	(void)type;
	(void)walk;
	return remove(path);
}

int box_teardown(void **state)
{
	struct box *b = *state;

	for (int i = 0; i < MANAGERS; i++) {
		if (b->m[i].pid > 0) {
			kill(b->m[i].pid, SIGKILL);
			waitpid(b->m[i].pid, NULL, 0);
		}
	}
	nftw(b->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(b);
	return 0;
}

char *slurp(const char *path)
{
	char *text = calloc(1, 1 << 20);
	FILE *f = fopen(path, "r");

	assert_non_null(text);
	if (f) {
		text[fread(text, 1, (1 << 20) - 1, f)] = '\0';
		fclose(f);
	}
	return text;
}

void pause_10_ms(void)
{
	poll(NULL, 0, 10); /* between two looks at something that has a deadline */
}

static void replace(int fd, const char *path)
{
	int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	if (file < 0 || dup2(file, fd) < 0)
		_exit(99);
	close(file);
}

void box_spawn(struct box *b, int which, const char *const *args)
{
	struct manager *m = &b->m[which];
	char port_file[128], store[128], root[128];
	const char *argv[32] = { SLABKVD, "--http_port=0", "--grpc_port=0", "--storage_capacity=8M",
				"--storage_unit=1M",
				 "--owner_lease_ms=10000", port_file, store, root };
	char *const envp[] = { "PATH=/usr/bin:/bin", NULL };
	int n = 9;

	snprintf(port_file, sizeof port_file, "--port_file=%s", m->port_file);
	snprintf(store, sizeof store, "--store=%s/slabkv.db", b->dir);
	snprintf(root, sizeof root, "--storage_root=%s/data", b->dir);
	for (; args && *args; args++)
		argv[n++] = *args;
	m->pid = fork();
	assert_true(m->pid >= 0);
	if (m->pid == 0) {
		replace(STDOUT_FILENO, m->out);
		replace(STDERR_FILENO, m->log);
		execve(SLABKVD, (char *const *)argv, envp);
		_exit(98);
	}
}

/* Exit status, or minus the signal. */
int manager_reap(struct manager *m)
{
	uint64_t end = skv_now_us() + HTTP_WAIT_MS * 1000ull;
	int status = 0;

	while (waitpid(m->pid, &status, WNOHANG) == 0) {
		if (skv_now_us() > end)
			fail_msg("slabkvd did not end; its log: %s", slurp(m->log));
		pause_10_ms();
	}
	m->pid = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static bool still_runs(struct manager *m)
{
	int status;

	if (m->pid == 0)
		return false;
	if (waitpid(m->pid, &status, WNOHANG) == 0)
		return true;
	m->pid = 0;
	return false;
}

void manager_await_port(struct manager *m)
{
	uint64_t end = skv_now_us() + HTTP_WAIT_MS * 1000ull;

	for (;;) {
		char *text = slurp(m->port_file);

		m->port = (uint16_t)strtoul(text, NULL, 10);
		free(text);
		if (m->port)
			return;
		if (!still_runs(m) || skv_now_us() > end)
			fail_msg("slabkvd did not start: %s", slurp(m->log));
		pause_10_ms();
	}
}

/* Until the ready line is on standard output: then the default objects are there too. */
void manager_await_ready(struct manager *m)
{
	uint64_t end = skv_now_us() + HTTP_WAIT_MS * 1000ull;

	for (;;) {
		char *text = slurp(m->out);
		bool ready = (strstr(text, " ready: ") || strstr(text, "\"ready\"")) &&
			     strchr(text, '\n');

		free(text);
		if (ready)
			return;
		if (!still_runs(m) || skv_now_us() > end)
			fail_msg("slabkvd is not ready: %s", slurp(m->log));
		pause_10_ms();
	}
}

struct manager *box_start(struct box *b, int which, const char *const *args)
{
	struct manager *m = &b->m[which];

	unlink(m->port_file);
	unlink(m->out);
	box_spawn(b, which, args);
	manager_await_port(m);
	manager_await_ready(m);
	return m;
}

void manager_stop(struct manager *m)
{
	kill(m->pid, SIGTERM);
	assert_int_equal(manager_reap(m), 0);
	assert_int_not_equal(access(m->port_file, F_OK), 0);
}

/* Runs to the end; returns the exit status and what it said. */
static int run_once(struct box *b, const char *command, char **said)
{
	char text[1024], path[96];
	int status;

	snprintf(path, sizeof path, "%s/said", b->dir);
	snprintf(text, sizeof text, "cd %s && timeout -k 1 20 %s %s > said 2>&1", b->dir, SLABKVD,
		 command);
	status = test_shell(text);
	assert_true(WIFEXITED(status));
	*said = slurp(path);
	return WEXITSTATUS(status);
}

void assert_run(struct box *b, const char *command, int status, const char *words)
{
	char *said;
	int got = run_once(b, command, &said);

	if (got != status || !strstr(said, words))
		fail_msg("slabkvd %s: status %d, not %d, or no '%s' in: "
			 "%s", command, got, status, words, said);
	free(said);
}

/* ---- calls ----------------------------------------------------------------------------------- */

json_t *manager_call(struct manager *m, const char *method, const char *path, const char *body,
		     int status)
{
	struct answer a = http_call(m->port, method, path, NULL, body);
	json_t *j;

	if (a.status != status)
		fail_msg("%s %s: %d, not %d: %s; log: %s", method, path, a.status, status,
			 a.body ? a.body : "", slurp(m->log));
	j = a.body_len ? answer_json(&a) : NULL;
	answer_free(&a);
	return j;
}

json_int_t json_number(const json_t *j, const char *name)
{
	if (!json_is_integer(json_object_get(j, name)))
		fail_msg("no number '%s' in %s", name, json_dumps(j, 0));
	return json_integer_value(json_object_get(j, name));
}

static const char *string(const json_t *j, const char *name)
{
	const char *s = json_string_value(json_object_get(j, name));

	if (!s)
		fail_msg("no text '%s' in %s", name, json_dumps(j, 0));
	return s;
}

void put_instance(struct manager *m)
{
	json_decref(manager_call(m, "PUT", "/v1/instances/model",
			 "{\"group\":\"default\",\"specs\":[{\"name\":\"kv\",\"size\":4096}]}",
			 201));
}

/* The first location of block `i` of an answer. */
static const json_t *location(const json_t *answer, size_t i)
{
	const json_t *block = json_array_get(json_object_get(answer, "blocks"), i);
	const json_t *loc = json_array_get(json_object_get(block, "locations"), 0);

	if (!json_is_object(loc))
		fail_msg("no location %zu in %s", i, json_dumps(answer, 0));
	return loc;
}

static int open_slab(struct box *b, const json_t *answer, const json_t *loc)
{
	const json_t *file = json_array_get(json_object_get(answer, "files"),
					    (size_t)json_number(loc, "file"));
	char path[512];
	int fd;

	snprintf(path, sizeof path, "%s/data/%s", b->dir, string(file, "path"));
	fd = open(path, O_RDWR);
	assert_true(fd >= 0);
	return fd;
}

void put_blocks(struct box *b, struct manager *m, const char *keys, size_t n)
{
	char body[256], path[128], block[BLOCK];
	json_t *j;

	snprintf(body, sizeof body, "{\"keys\":%s}", keys);
	j = manager_call(m, "POST", "/v1/instances/model/start", body, 200);
	for (size_t i = 0; i < n; i++) {
		const json_t *loc = location(j, i);
		int fd = open_slab(b, j, loc);

		memset(block, 'a' + (int)i, sizeof block);
		assert_int_equal(json_number(loc, "length"), BLOCK);
		assert_int_equal(pwrite(fd, block, BLOCK, json_number(loc, "offset")), BLOCK);
		close(fd);
	}
	snprintf(path, sizeof path, "/v1/sessions/%s/finish", string(j, "session"));
	json_decref(j);
	j = manager_call(m, "POST", path, "{\"success\":true}", 200);
	assert_int_equal(json_number(j, "committed"), n);
	json_decref(j);
}

void assert_found(struct box *b, struct manager *m, const char *keys, size_t n)
{
	char body[256], block[BLOCK];
	json_t *j;

	snprintf(body, sizeof body, "{\"keys\":%s}", keys);
	j = manager_call(m, "POST", "/v1/instances/model/lookup", body, 200);
	assert_int_equal(json_number(j, "matched"), n);
	for (size_t i = 0; i < n; i++) {
		const json_t *loc = location(j, i);
		int fd = open_slab(b, j, loc);

		assert_int_equal(pread(fd, block, BLOCK, json_number(loc, "offset")), BLOCK);
		for (size_t k = 0; k < BLOCK; k++)
			assert_int_equal(block[k], 'a' + (int)i);
		close(fd);
	}
	json_decref(j);
}
