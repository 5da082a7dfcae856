/*
 * nodes.c - kv_cache_manager_bin processes for tests.
 *
 * Every wait looks again and again until a deadline and fails the test after it. One thread.
 */
#include "nodes.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <skv/clock.h>

#include "http/http.h"
#include "shell.h"

#define WAIT_S 30

static void pause_20_ms(void) { poll(NULL, 0, 20); }

/* ---- the box --------------------------------------------------------------------------------- */

static void write_startup(const struct nodes *s)
{
	char path[96];
	FILE *f;

	snprintf(path, sizeof path, "%s/start.json", s->dir);
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f,
		"{\"storage_config\":{\"type\":\"file\",\"global_unique_name\":\"nfs_01\","
		"\"storage_spec\":{\"root_path\":\"%s/nfs/\",\"key_count_per_file\":8}},"
		"\"instance_group\":{\"name\":\"default\",\"storage_candidates\":[\"nfs_01\"],"
		"\"global_quota_group_name\":\"default_quota_group\","
		"\"quota\":{\"capacity\":30000000000},"
		"\"cache_config\":{\"cache_prefer_strategy\":2,"
		"\"reclaim_strategy\":{\"reclaim_policy\":1}},\"version\":1}}",
		s->dir);
	fclose(f);
}

int nodes_setup(void **state)
{
	struct nodes *s = calloc(1, sizeof *s);
	char top[] = "/tmp/kvcm-main-XXXXXX";

	assert_non_null(s);
	assert_non_null(mkdtemp(top));
	snprintf(s->dir, sizeof s->dir, "%s", top);
	for (int i = 0; i < NODES; i++) {
		snprintf(s->n[i].dir, sizeof s->n[i].dir, "%s/%d", top, i);
		assert_int_equal(mkdir(s->n[i].dir, 0755), 0);
	}
	write_startup(s);
	*state = s;
	return 0;
}

int nodes_teardown(void **state)
{
	struct nodes *s = *state;
	char command[128];

	for (int i = 0; i < NODES; i++) {
		if (s->n[i].pid > 0) {
			kill(s->n[i].pid, SIGKILL);
			waitpid(s->n[i].pid, NULL, 0);
		}
	}
	snprintf(command, sizeof command, "rm -rf %s", s->dir);
	test_shell(command);
	free(s);
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

char *node_said(struct node *n)
{
	char path[128];

	snprintf(path, sizeof path, "%s/out", n->dir);
	return slurp(path);
}

/* ---- processes ------------------------------------------------------------------------------- */

static void spawn(struct nodes *s, int which, const char *const *args)
{
	struct node *n = &s->n[which];
	char startup[128];
	const char *argv[64] = { PROGRAM,
				 "-e", startup,
				 "-e", "slabkvd.port_file=native",
				 "-e", "slabkvd.storage_capacity=8M",
				 "-e", "slabkvd.storage_unit=1M",
				 "-e", "slabkvd.kvcm_ports=0,0,0,0" };
	char *const envp[] = { "PATH=/usr/bin:/bin", NULL };
	int count = 11;

	snprintf(startup, sizeof startup, "kvcm.startup_config=%s/start.json", s->dir);
	for (; args && *args; args++)
		argv[count++] = *args;
	n->pid = fork();
	assert_true(n->pid >= 0);
	if (n->pid == 0) {
		int out;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (chdir(n->dir) != 0)
			_exit(97);
		out = open("out", O_WRONLY | O_CREAT | O_APPEND, 0644);
		if (out < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(out, STDERR_FILENO) < 0)
			_exit(98);
		execve(PROGRAM, (char *const *)argv, envp);
		_exit(99);
	}
}

int node_reap(struct node *n)
{
	const uint64_t end = skv_now_us() + WAIT_S * 1000000ull;
	int status = 0;

	while (waitpid(n->pid, &status, WNOHANG) == 0) {
		if (skv_now_us() > end)
			fail_msg("it did not end: %s", node_said(n));
		pause_20_ms();
	}
	n->pid = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void node_stop(struct node *n)
{
	kill(n->pid, SIGTERM);
	if (node_reap(n) != 0)
		fail_msg("it did not end well: %s", node_said(n));
}

int node_run(struct nodes *s, int which, const char *const *args)
{
	spawn(s, which, args);
	return node_reap(&s->n[which]);
}

static bool read_ports(struct node *n)
{
	static const struct {
		const char *name;
		size_t at;
	} names[] = {
		{ "meta_rpc_port ", offsetof(struct node, meta_rpc) },
		{ "meta_http_port ", offsetof(struct node, meta_http) },
		{ "admin_rpc_port ", offsetof(struct node, admin_rpc) },
		{ "admin_http_port ", offsetof(struct node, admin_http) },
		{ "debug_http_port ", offsetof(struct node, debug_http) },
	};
	char path[128], *text, *native;
	bool there;

	snprintf(path, sizeof path, "%s/native.kvcm", n->dir);
	text = slurp(path);
	snprintf(path, sizeof path, "%s/native", n->dir);
	native = slurp(path);
	there = *text && *native;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		const char *at = strstr(text, names[i].name);

		*(uint16_t *)((char *)n + names[i].at) =
			at ? (uint16_t)strtoul(at + strlen(names[i].name), NULL, 10) : 0;
	}
	n->native = (uint16_t)strtoul(native, NULL, 10);
	free(text);
	free(native);
	return there;
}

struct node *node_start(struct nodes *s, int which, const char *const *args)
{
	const uint64_t end = skv_now_us() + WAIT_S * 1000000ull;
	struct node *n = &s->n[which];
	char path[128];

	snprintf(path, sizeof path, "%s/native.kvcm", n->dir);
	unlink(path);
	spawn(s, which, args);
	while (!read_ports(n)) {
		if (waitpid(n->pid, NULL, WNOHANG) != 0) {
			n->pid = 0;
			fail_msg("it ended: %s", node_said(n));
		}
		if (skv_now_us() > end)
			fail_msg("it told no ports: %s", node_said(n));
		pause_20_ms();
	}
	return n;
}

/* ---- calls ----------------------------------------------------------------------------------- */

int call_status(uint16_t port, const char *path, const char *headers, const char *body)
{
	struct answer a = http_call(port, "POST", path, headers, body ? body : "{}");
	int status = a.status;

	answer_free(&a);
	return status;
}

json_t *call(uint16_t port, const char *api, const char *body, const char *code)
{
	char path[96];
	struct answer a;
	json_t *j;
	const char *got;

	snprintf(path, sizeof path, "/api/%s", api);
	a = http_call(port, "POST", path, NULL, body ? body : "{}");
	if (a.status != 200)
		fail_msg("%s: %d %s", api, a.status, a.body ? a.body : "");
	j = answer_json(&a);
	got = json_string_value(
		json_object_get(json_object_get(json_object_get(j, "header"), "status"), "code"));
	if (!got || strcmp(got, code) != 0)
		fail_msg("%s: not %s: %s", api, code, a.body);
	answer_free(&a);
	return j;
}

void await_true(bool (*f)(void *ctx), void *ctx, unsigned seconds, const char *what)
{
	const uint64_t end = skv_now_us() + seconds * 1000000ull;

	while (!f(ctx)) {
		if (skv_now_us() > end)
			fail_msg("%s: not within %u s", what, seconds);
		pause_20_ms();
	}
}
