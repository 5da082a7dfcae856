/*
 * test_kvblockd.c - the real program: start, work, stop, start again, standby, refusals, fsck.
 *
 * Each test runs kvblockd in a temporary directory on a free port; the fixture kills what is left and
 * removes the directory.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <kvb/clock.h>

#include "http.h"

#define BLOCK 4096
#define TOKEN "admin-token-0123456789"
#define LIST(...) (const char *const[]){ __VA_ARGS__, NULL }

enum { MANAGERS = 2 };

struct manager {
	pid_t pid; /* 0 = does not run */
	uint16_t port;
	char port_file[96];
	char out[96];
	char log[96];
};

struct box {
	char dir[64];
	struct manager m[MANAGERS];
};

/* ---- processes -------------------------------------------------------------------------------- */

static int setup(void **state)
{
	struct box *b = calloc(1, sizeof *b);
	char dir[] = "/tmp/kvblockd-XXXXXX";

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

static int teardown(void **state)
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

static char *slurp(const char *path)
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

static void pause_10_ms(void)
{
	const struct timespec ts = { 0, 10 * 1000 * 1000 };

	nanosleep(&ts, NULL);
}

static void replace(int fd, const char *path)
{
	int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	if (file < 0 || dup2(file, fd) < 0)
		_exit(99);
	close(file);
}

static void spawn(struct box *b, int which, const char *const *args)
{
	struct manager *m = &b->m[which];
	char port_file[128], store[128], root[128];
	const char *argv[32] = { KVBLOCKD, "--http_port=0", "--storage_capacity=8M", "--storage_unit=1M",
				 "--owner_lease_ms=1000", port_file, store, root };
	char *const envp[] = { "PATH=/usr/bin:/bin", NULL };
	int n = 8;

	snprintf(port_file, sizeof port_file, "--port_file=%s", m->port_file);
	snprintf(store, sizeof store, "--store=%s/kvblock.db", b->dir);
	snprintf(root, sizeof root, "--storage_root=%s/data", b->dir);
	for (; args && *args; args++)
		argv[n++] = *args;
	m->pid = fork();
	assert_true(m->pid >= 0);
	if (m->pid == 0) {
		replace(STDOUT_FILENO, m->out);
		replace(STDERR_FILENO, m->log);
		execve(KVBLOCKD, (char *const *)argv, envp);
		_exit(98);
	}
}

/* Exit status, or minus the signal. */
static int reap(struct manager *m)
{
	uint64_t end = kvb_now_us() + HTTP_WAIT_MS * 1000ull;
	int status = 0;

	while (waitpid(m->pid, &status, WNOHANG) == 0) {
		if (kvb_now_us() > end)
			fail_msg("kvblockd did not end; its log: %s", slurp(m->log));
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

static void await_port(struct manager *m)
{
	uint64_t end = kvb_now_us() + HTTP_WAIT_MS * 1000ull;

	for (;;) {
		char *text = slurp(m->port_file);

		m->port = (uint16_t)strtoul(text, NULL, 10);
		free(text);
		if (m->port)
			return;
		if (!still_runs(m) || kvb_now_us() > end)
			fail_msg("kvblockd did not start: %s", slurp(m->log));
		pause_10_ms();
	}
}

/* Until the ready line is on standard output: then the default objects are there too. */
static void await_ready(struct manager *m)
{
	uint64_t end = kvb_now_us() + HTTP_WAIT_MS * 1000ull;

	for (;;) {
		char *text = slurp(m->out);
		bool ready = strstr(text, " ready: ") && strchr(text, '\n');

		free(text);
		if (ready)
			return;
		if (!still_runs(m) || kvb_now_us() > end)
			fail_msg("kvblockd is not ready: %s", slurp(m->log));
		pause_10_ms();
	}
}

static struct manager *start(struct box *b, int which, const char *const *args)
{
	struct manager *m = &b->m[which];

	unlink(m->port_file);
	unlink(m->out);
	spawn(b, which, args);
	await_port(m);
	await_ready(m);
	return m;
}

static void stop(struct manager *m)
{
	kill(m->pid, SIGTERM);
	assert_int_equal(reap(m), 0);
	assert_int_not_equal(access(m->port_file, F_OK), 0);
}

/* Runs to the end; returns the exit status and what it said. */
static int run(struct box *b, const char *command, char **said)
{
	char text[1024], path[96];
	int status;

	snprintf(path, sizeof path, "%s/said", b->dir);
	snprintf(text, sizeof text, "cd %s && timeout -k 1 20 %s %s > said 2>&1", b->dir, KVBLOCKD,
		 command);
	status = system(text);
	assert_true(WIFEXITED(status));
	*said = slurp(path);
	return WEXITSTATUS(status);
}

static void assert_run(struct box *b, const char *command, int status, const char *words)
{
	char *said;
	int got = run(b, command, &said);

	if (got != status || !strstr(said, words))
		fail_msg("kvblockd %s: status %d, not %d, or no '%s' in: %s", command, got, status, words, said);
	free(said);
}

/* ---- calls ------------------------------------------------------------------------------------ */

static json_t *call(struct manager *m, const char *method, const char *path, const char *body, int status)
{
	struct answer a = http_call(m->port, method, path, NULL, body);
	json_t *j;

	if (a.status != status)
		fail_msg("%s %s: %d, not %d: %s; log: %s", method, path, a.status, status, a.body ? a.body : "",
			 slurp(m->log));
	j = a.body_len ? answer_json(&a) : NULL;
	answer_free(&a);
	return j;
}

static json_int_t number(const json_t *j, const char *name)
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

static void put_instance(struct manager *m)
{
	json_decref(call(m, "PUT", "/v1/instances/model",
			 "{\"group\":\"default\",\"specs\":[{\"name\":\"kv\",\"size\":4096}]}", 201));
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
	const json_t *file = json_array_get(json_object_get(answer, "files"), (size_t)number(loc, "file"));
	char path[512];
	int fd;

	snprintf(path, sizeof path, "%s/data/%s", b->dir, string(file, "path"));
	fd = open(path, O_RDWR);
	assert_true(fd >= 0);
	return fd;
}

static void put_blocks(struct box *b, struct manager *m, const char *keys, size_t n)
{
	char body[256], path[128], block[BLOCK];
	json_t *j;

	snprintf(body, sizeof body, "{\"keys\":%s}", keys);
	j = call(m, "POST", "/v1/instances/model/start", body, 200);
	for (size_t i = 0; i < n; i++) {
		const json_t *loc = location(j, i);
		int fd = open_slab(b, j, loc);

		memset(block, 'a' + (int)i, sizeof block);
		assert_int_equal(number(loc, "length"), BLOCK);
		assert_int_equal(pwrite(fd, block, BLOCK, number(loc, "offset")), BLOCK);
		close(fd);
	}
	snprintf(path, sizeof path, "/v1/sessions/%s/finish", string(j, "session"));
	json_decref(j);
	j = call(m, "POST", path, "{\"success\":true}", 200);
	assert_int_equal(number(j, "committed"), n);
	json_decref(j);
}

static void assert_found(struct box *b, struct manager *m, const char *keys, size_t n)
{
	char body[256], block[BLOCK];
	json_t *j;

	snprintf(body, sizeof body, "{\"keys\":%s}", keys);
	j = call(m, "POST", "/v1/instances/model/lookup", body, 200);
	assert_int_equal(number(j, "matched"), n);
	for (size_t i = 0; i < n; i++) {
		const json_t *loc = location(j, i);
		int fd = open_slab(b, j, loc);

		assert_int_equal(pread(fd, block, BLOCK, number(loc, "offset")), BLOCK);
		for (size_t k = 0; k < BLOCK; k++)
			assert_int_equal(block[k], 'a' + (int)i);
		close(fd);
	}
	json_decref(j);
}

/* ---- tests ------------------------------------------------------------------------------------ */

static void test_put_stop_start_get(void **state)
{
	struct box *b = *state;
	struct manager *m = start(b, 0, NULL);
	char *out = slurp(m->out);
	char fsck[160];
	json_t *j;

	assert_non_null(strstr(out, "http://127.0.0.1:"));
	assert_non_null(strstr(out, "default (file "));
	free(out);
	json_decref(call(m, "GET", "/healthz", NULL, 200));
	json_decref(call(m, "GET", "/readyz", NULL, 200));
	put_instance(m);
	put_blocks(b, m, "[\"a\",\"b\",\"c\"]", 3);
	assert_found(b, m, "[\"a\",\"b\",\"c\"]", 3);
	j = call(m, "GET", "/v1/instances/model/blocks?key=b", NULL, 200);
	json_decref(j);
	stop(m);

	snprintf(fsck, sizeof fsck, "fsck --files --store %s/kvblock.db", b->dir);
	assert_run(b, fsck, 0, "3 blocks");
	start(b, 0, NULL);
	assert_found(b, m, "[\"a\",\"b\",\"c\"]", 3);
	j = call(m, "POST", "/v1/instances/model/delete", "{\"keys\":[\"c\"]}", 200);
	assert_int_equal(number(j, "deleted"), 1);
	json_decref(j);
	assert_found(b, m, "[\"a\",\"b\"]", 2);
	/* kill -9 loses nothing that was acknowledged. */
	kill(m->pid, SIGKILL);
	assert_int_equal(reap(m), -SIGKILL);
	start(b, 0, NULL);
	assert_found(b, m, "[\"a\",\"b\"]", 2);
	stop(m);
	strcat(fsck, " --json");
	assert_run(b, fsck, 0, "\"blocks\":2");
}

static void test_standby_takes_over(void **state)
{
	struct box *b = *state;
	struct manager *first = start(b, 0, NULL);
	struct manager *second = &b->m[1];
	struct answer a;

	put_instance(first);
	put_blocks(b, first, "[\"a\"]", 1);
	spawn(b, 1, NULL);
	await_port(second);
	json_decref(call(second, "GET", "/healthz", NULL, 200));
	a = http_call(second->port, "GET", "/readyz", NULL, NULL);
	assert_int_equal(a.status, 503);
	answer_free(&a);
	assert_call_error(second->port, "GET", "/v1/instances", NULL, NULL, 503, "not_owner");
	kill(first->pid, SIGKILL);
	reap(first);
	await_ready(second);
	assert_found(b, second, "[\"a\"]", 1);
	stop(second);
}

/* A standby that is told to stop does so at once. */
static void test_standby_stops(void **state)
{
	struct box *b = *state;
	struct manager *first = start(b, 0, NULL);

	spawn(b, 1, NULL);
	await_port(&b->m[1]);
	stop(&b->m[1]);
	json_decref(call(first, "GET", "/readyz", NULL, 200));
	stop(first);
}

static void test_default_objects_stay(void **state)
{
	struct box *b = *state;
	struct manager *m = start(b, 0, NULL);
	json_t *j = call(m, "GET", "/v1/storages/default", NULL, 200);
	char other[128], *log;

	assert_int_equal(number(j, "capacity"), 8 << 20);
	json_decref(j);
	json_decref(call(m, "GET", "/v1/groups/default", NULL, 200));
	stop(m);
	/* Less than there is, another root: the storage stays what it is. */
	snprintf(other, sizeof other, "--storage_root=%s/elsewhere", b->dir);
	start(b, 0, LIST("--storage_capacity=4M", other));
	j = call(m, "GET", "/v1/storages/default", NULL, 200);
	assert_int_equal(number(j, "capacity"), 8 << 20);
	json_decref(j);
	stop(m);
	log = slurp(m->log);
	assert_non_null(strstr(log, "stays there"));
	free(log);
	/* More: it grows. */
	start(b, 0, LIST("--storage_capacity=16M"));
	j = call(m, "GET", "/v1/storages/default", NULL, 200);
	assert_int_equal(number(j, "capacity"), 16 << 20);
	json_decref(j);
	stop(m);
}

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	assert_int_equal(chmod(path, 0600), 0);
}

static void test_tokens_and_hangup(void **state)
{
	struct box *b = *state;
	char tokens[96], argument[128], log[96], log_argument[128];
	uint64_t end = kvb_now_us() + HTTP_WAIT_MS * 1000ull;
	struct manager *m;
	int status = 401;

	snprintf(tokens, sizeof tokens, "%s/tokens", b->dir);
	snprintf(argument, sizeof argument, "--tokens_file=%s", tokens);
	snprintf(log, sizeof log, "%s/kvblockd.log", b->dir);
	snprintf(log_argument, sizeof log_argument, "--log_file=%s", log);
	write_file(tokens, "read default other-token-0123456789\n");
	m = start(b, 0, LIST(argument, log_argument));
	assert_call_error(m->port, "GET", "/v1/groups", NULL, NULL, 401, "unauthenticated");
	assert_call_error(m->port, "GET", "/v1/groups", "Authorization: Bearer " TOKEN "\r\n", NULL, 401,
			  "unauthenticated");
	write_file(tokens, "admin default " TOKEN "\n");
	assert_int_equal(unlink(log), 0);
	kill(m->pid, SIGHUP);
	while (status == 401 && kvb_now_us() < end) {
		struct answer a = http_call(m->port, "GET", "/v1/groups",
					    "Authorization: Bearer " TOKEN "\r\n", NULL);

		status = a.status;
		answer_free(&a);
	}
	assert_int_equal(status, 200);
	stop(m);
	assert_int_equal(access(log, F_OK), 0); /* made again by SIGHUP */
}

/* ---- refusals, each with its remedy ----------------------------------------------------------- */

static void test_refused_starts(void **state)
{
	struct box *b = *state;
	char path[96];

	assert_run(b, "--http-listen 0.0.0.0 --http-port 0", 1, "tokens_file");
	snprintf(path, sizeof path, "%s/kvblock.db", b->dir);
	assert_int_not_equal(access(path, F_OK), 0); /* nothing was touched */
	assert_run(b, "--http-port 70000", 2, "0..65535");
	assert_run(b, "--no-such-thing", 2, "--help");
	assert_run(b, "--config /nonexistent/kvblockd.conf", 2, "No such file");
	assert_run(b, "--http-port 0 --store /nonexistent/kvblock.db", 1, "--store");
	assert_run(b, "--http-port 0 --log-file /nonexistent/log", 1, "/nonexistent/log");
	snprintf(path, sizeof path, "%s/tokens", b->dir);
	write_file(path, "admin default " TOKEN "\n");
	assert_int_equal(chmod(path, 0644), 0);
	assert_run(b, "--http-port 0 --tokens-file tokens", 1, "chmod 600");
}

static void test_port_in_use(void **state)
{
	struct box *b = *state;
	struct manager *m = start(b, 0, NULL);
	char command[160];

	snprintf(command, sizeof command, "--http-port %u --store other.db", m->port);
	assert_run(b, command, 1, "--http-port");
	snprintf(command, sizeof command, "%s/other.db", b->dir);
	assert_int_not_equal(access(command, F_OK), 0); /* told before anything was touched */
	stop(m);
}

static void test_foreign_directory(void **state)
{
	struct box *b = *state;
	char path[128];

	snprintf(path, sizeof path, "%s/kvblock-data", b->dir);
	assert_int_equal(mkdir(path, 0755), 0);
	strcat(path, "/thesis.tex");
	write_file(path, "years of work\n");
	assert_run(b, "--http-port 0 --storage-capacity 8M --storage-unit 1M", 1, "--storage-root");
	assert_int_equal(access(path, F_OK), 0);
}

static void test_fsck_without_store(void **state)
{
	struct box *b = *state;
	char path[96];

	assert_run(b, "fsck", 2, "cannot read the store");
	assert_run(b, "fsck --json --store nowhere.db", 2, "\"code\":\"not_found\"");
	assert_run(b, "fsck --nonsense", 2, "Usage");
	assert_run(b, "fsck --help", 0, "Usage");
	snprintf(path, sizeof path, "%s/nowhere.db", b->dir);
	assert_int_not_equal(access(path, F_OK), 0);
	snprintf(path, sizeof path, "%s/text.db", b->dir);
	write_file(path, "this is not a database, but it is long enough to look like one at first sight\n");
	assert_run(b, "fsck --store text.db", 2, "could not check");
}

static void test_information(void **state)
{
	struct box *b = *state;

	assert_run(b, "--version", 0, "kvblockd ");
	assert_run(b, "--help", 0, "--storage-capacity");
	assert_run(b, "--dump-config --slow-ms 7", 0, "\nslow_ms = 7\n");
	assert_run(b, "--man", 0, ".TH KVBLOCKD 8");
	assert_run(b, "--dump-config > c && mv c d && true", 0, "");
	assert_run(b, "--config d --dump-config", 0, "http_port = 7333");
}

static void test_second_signal(void **state)
{
	struct box *b = *state;
	struct manager *m = start(b, 0, NULL);
	struct http h;
	int status;

	/* A request that is not complete holds the drain. */
	http_open(&h, m->port);
	http_request(&h, "POST", "/v1/match", "Content-Length: 100\r\n", NULL);
	http_send(&h, "{", 1);
	json_decref(call(m, "GET", "/healthz", NULL, 200));
	kill(m->pid, SIGTERM);
	for (;;) { /* the drain has begun when nobody can connect any more */
		char *log = slurp(m->log);
		bool begun = strstr(log, "stopping") != NULL;

		free(log);
		if (begun)
			break;
		pause_10_ms();
	}
	kill(m->pid, SIGTERM);
	status = reap(m);
	assert_true(status == 1 || status == 0);
	http_close(&h);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_put_stop_start_get),
		T(test_standby_takes_over),
		T(test_standby_stops),
		T(test_default_objects_stay),
		T(test_tokens_and_hangup),
		T(test_refused_starts),
		T(test_port_in_use),
		T(test_foreign_directory),
		T(test_fsck_without_store),
		T(test_information),
		T(test_second_signal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
