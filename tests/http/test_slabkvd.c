/* test_slabkvd.c - the real program: start, work, stop, start again, standby, refusals, fsck. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <skv/clock.h>

#include "box.h"

#define TOKEN "admin-token-0123456789"

static void test_put_stop_start_get(void **state)
{
	struct box *b = *state;
	struct manager *m = box_start(b, 0, NULL);
	char *out = slurp(m->out);
	char fsck[160];
	json_t *j;

	assert_non_null(strstr(out, "http://127.0.0.1:"));
	assert_non_null(strstr(out, "default (file "));
	free(out);
	json_decref(manager_call(m, "GET", "/healthz", NULL, 200));
	json_decref(manager_call(m, "GET", "/readyz", NULL, 200));
	put_instance(m);
	put_blocks(b, m, "[\"a\",\"b\",\"c\"]", 3);
	assert_found(b, m, "[\"a\",\"b\",\"c\"]", 3);
	j = manager_call(m, "GET", "/v1/instances/model/blocks?key=b", NULL, 200);
	json_decref(j);
	manager_stop(m);

	snprintf(fsck, sizeof fsck, "fsck --files --store %s/slabkv.db", b->dir);
	assert_run(b, fsck, 0, "3 blocks");
	box_start(b, 0, NULL);
	assert_found(b, m, "[\"a\",\"b\",\"c\"]", 3);
	j = manager_call(m, "POST", "/v1/instances/model/delete", "{\"keys\":[\"c\"]}", 200);
	assert_int_equal(json_number(j, "deleted"), 1);
	json_decref(j);
	assert_found(b, m, "[\"a\",\"b\"]", 2);
	/* kill -9 loses nothing that was acknowledged. */
	kill(m->pid, SIGKILL);
	assert_int_equal(manager_reap(m), -SIGKILL);
	box_start(b, 0, NULL);
	assert_found(b, m, "[\"a\",\"b\"]", 2);
	manager_stop(m);
	snprintf(fsck, sizeof fsck, "fsck --json --files --store %s/slabkv.db", b->dir);
	assert_run(b, fsck, 0, "\"blocks\":2");
}

static int connect_from(const char *address, uint16_t port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) },
	from = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(inet_pton(AF_INET, address, &from.sin_addr), 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof from), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
	return fd;
}

/* Status of GET /healthz on a connection that stays open; 0: it was closed. */
static int get_health(struct http *h)
{
	struct answer a;
	int status;

	http_request(h, "GET", "/healthz", NULL, NULL);
	a = http_read(h, false);
	status = a.status;
	answer_free(&a);
	return status;
}

static void test_13_24_one_address_leaves_connections_to_others(void **state)
{
	struct box *b = *state;
	struct manager *m = box_start(b, 0, LIST("--max_connections=8"));
	struct http h[4], more = { 0 }, other = { 0 };

	for (int i = 0; i < 4; i++) {
		h[i] = (struct http){ .fd = connect_from("127.0.0.3", m->port) };
		assert_int_equal(get_health(&h[i]), 200);
	}
	more.fd = connect_from("127.0.0.3", m->port);
	assert_int_equal(get_health(&more), 0);
	other.fd = connect_from("127.0.0.4", m->port);
	assert_int_equal(get_health(&other), 200);
	for (int i = 0; i < 4; i++)
		http_close(&h[i]);
	http_close(&more);
	http_close(&other);
	manager_stop(m);
}

static void test_standby_takes_over(void **state)
{
	struct box *b = *state;
	struct manager *first = box_start(b, 0, NULL);
	struct manager *second = &b->m[1];
	struct answer a;

	put_instance(first);
	put_blocks(b, first, "[\"a\"]", 1);
	box_spawn(b, 1, NULL);
	manager_await_port(second);
	json_decref(manager_call(second, "GET", "/healthz", NULL, 200));
	a = http_call(second->port, "GET", "/readyz", NULL, NULL);
	assert_int_equal(a.status, 503);
	answer_free(&a);
	json_decref(manager_call(second, "GET", "/v1/instances", NULL, 200)); /* by the owner */
	kill(first->pid, SIGKILL);
	manager_reap(first);
	manager_await_ready(second);
	assert_found(b, second, "[\"a\"]", 1);
	manager_stop(second);
}

/* A standby that is told to stop does so at once. */
static void test_standby_stops(void **state)
{
	struct box *b = *state;
	struct manager *first = box_start(b, 0, NULL);

	box_spawn(b, 1, NULL);
	manager_await_port(&b->m[1]);
	manager_stop(&b->m[1]);
	json_decref(manager_call(first, "GET", "/readyz", NULL, 200));
	manager_stop(first);
}

static void test_default_objects_stay(void **state)
{
	struct box *b = *state;
	struct manager *m = box_start(b, 0, NULL);
	json_t *j = manager_call(m, "GET", "/v1/storages/default", NULL, 200);
	char other[128], *log;

	assert_int_equal(json_number(j, "capacity"), 8 << 20);
	json_decref(j);
	json_decref(manager_call(m, "GET", "/v1/groups/default", NULL, 200));
	manager_stop(m);
	/* Less than there is, another root: the storage stays what it is. */
	snprintf(other, sizeof other, "--storage_root=%s/elsewhere", b->dir);
	box_start(b, 0, LIST("--storage_capacity=4M", other));
	j = manager_call(m, "GET", "/v1/storages/default", NULL, 200);
	assert_int_equal(json_number(j, "capacity"), 8 << 20);
	json_decref(j);
	manager_stop(m);
	log = slurp(m->log);
	assert_non_null(strstr(log, "stays there"));
	free(log);
	/* More: it grows. */
	box_start(b, 0, LIST("--storage_capacity=16M"));
	j = manager_call(m, "GET", "/v1/storages/default", NULL, 200);
	assert_int_equal(json_number(j, "capacity"), 16 << 20);
	json_decref(j);
	manager_stop(m);
}

/* A collector of JSON lines gets nothing else, on standard output either. */
static void test_ready_line_in_json(void **state)
{
	struct box *b = *state;
	struct manager *m = box_start(b, 0, LIST("--log_format=json"));
	char *text = slurp(m->out);
	json_t *line;

	manager_stop(m);
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
	line = json_loads(text, 0, NULL);
	assert_non_null(line);
	assert_string_equal(json_string_value(json_object_get(line, "message")), "ready");
	assert_string_equal(json_string_value(json_object_get(line, "component")), "main");
	assert_non_null(
		strstr(json_string_value(json_object_get(line, "url")), "http://127.0.0.1:"));
	assert_non_null(
		strstr(json_string_value(json_object_get(line, "storages")), "default (file "));
	json_decref(line);
	free(text);
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
	uint64_t end = skv_now_us() + HTTP_WAIT_MS * 1000ull;
	struct manager *m;
	int status = 401;

	snprintf(tokens, sizeof tokens, "%s/tokens", b->dir);
	snprintf(argument, sizeof argument, "--tokens_file=%s", tokens);
	snprintf(log, sizeof log, "%s/slabkvd.log", b->dir);
	snprintf(log_argument, sizeof log_argument, "--log_file=%s", log);
	write_file(tokens, "read default other-token-0123456789\n");
	m = box_start(b, 0, LIST(argument, log_argument));
	assert_call_error(m->port, "GET", "/v1/groups", NULL, NULL, 401, "unauthenticated");
	assert_call_error(m->port, "GET", "/v1/groups", "Authorization: Bearer " TOKEN "\r\n", NULL,
			  401,
			  "unauthenticated");
	write_file(tokens, "admin default " TOKEN "\n");
	assert_int_equal(unlink(log), 0);
	kill(m->pid, SIGHUP);
	while (status != 200 && skv_now_us() < end) {
		struct answer a = http_call(m->port, "GET", "/v1/groups",
					    "Authorization: Bearer " TOKEN "\r\n", NULL);

		status = a.status;
		answer_free(&a);
	}
	assert_int_equal(status, 200);
	manager_stop(m);
	assert_int_equal(access(log, F_OK), 0); /* made again by SIGHUP */
}

/* ---- refusals, each with its remedy ---------------------------------------------------------- */

static void test_refused_starts(void **state)
{
	struct box *b = *state;
	char path[96];

	assert_run(b, "--http-listen 0.0.0.0 --http-port 0 --grpc-port 0", 1, "tokens_file");
	snprintf(path, sizeof path, "%s/slabkv.db", b->dir);
	assert_int_not_equal(access(path, F_OK), 0); /* nothing was touched */
	assert_run(b, "--http-port 70000", 2, "0..65535");
	assert_run(b, "--no-such-thing", 2, "--help");
	assert_run(b, "--config /nonexistent/slabkvd.conf", 2, "No such file");
	assert_run(b, "--http-port 0 --grpc-port 0 --store /nonexistent/slabkv.db", 1, "--store");
	assert_run(b, "--http-port 0 --grpc-port 0 --log-file /nonexistent/log", 1,
		   "/nonexistent/log");
	snprintf(path, sizeof path, "%s/tokens", b->dir);
	write_file(path, "admin default " TOKEN "\n");
	assert_int_equal(chmod(path, 0644), 0);
	assert_run(b, "--http-port 0 --grpc-port 0 --tokens-file tokens", 1, "chmod 600");
}

static void test_port_in_use(void **state)
{
	struct box *b = *state;
	struct manager *m = box_start(b, 0, NULL);
	char command[160];

	snprintf(command, sizeof command, "--grpc-port off --http-port %u --store other.db",
		 m->port);
	assert_run(b, command, 1, "--http-port");
	snprintf(command, sizeof command, "%s/other.db", b->dir);
	assert_int_not_equal(access(command, F_OK), 0); /* told before anything was touched */
	manager_stop(m);
}

static void test_foreign_directory(void **state)
{
	struct box *b = *state;
	char path[128];

	snprintf(path, sizeof path, "%s/slabkv-data", b->dir);
	assert_int_equal(mkdir(path, 0755), 0);
	snprintf(path, sizeof path, "%s/slabkv-data/thesis.tex", b->dir);
	write_file(path, "years of work\n");
	assert_run(b, "--http-port 0 --grpc-port 0 --storage-capacity 8M --storage-unit 1M", 1,
		   "--storage-root");
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
	write_file(path,
		   "this is not a database, but it is long enough to look like one at first "
		   "sight\n");
	assert_run(b, "fsck --store text.db", 2, "could not check");
}

static void test_information(void **state)
{
	struct box *b = *state;

	assert_run(b, "--version", 0, "slabkvd ");
	assert_run(b, "--help", 0, "--storage-capacity");
	assert_run(b, "--dump-config --slow-ms 7", 0, "\nslow_ms = 7\n");
	assert_run(b, "--man", 0, ".TH SLABKVD 8");
	assert_run(b, "--dump-config > c && mv c d && true", 0, "");
	assert_run(b, "--config d --dump-config", 0, "http_port = 7333");
}

/* The form of an error shows which API a path belongs to. */
static void test_pages_can_be_left_out(void **state)
{
	struct box *b = *state;
	struct manager *m = box_start(b, 0, NULL);
	json_t *j = manager_call(m, "POST", "/0/nothing", "{}", 404);

	assert_string_equal(json_string_value(json_object_get(j, "detail")), "Not Found");
	json_decref(j);
	manager_stop(m);
	m = box_start(b, 0, LIST("--pages=off"));
	assert_call_error(m->port, "POST", "/0/exists", NULL, "{\"keys\":[]}", 404, "not_found");
	manager_stop(m);
}

static void test_second_signal(void **state)
{
	struct box *b = *state;
	struct manager *m = box_start(b, 0, NULL);
	struct http h;
	int status;

	/* A request that is not complete holds the drain. */
	http_open(&h, m->port);
	http_request(&h, "POST", "/v1/match", "Content-Length: 100\r\n", NULL);
	http_send(&h, "{", 1);
	json_decref(manager_call(m, "GET", "/healthz", NULL, 200));
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
	status = manager_reap(m);
	assert_true(status == 1 || status == 0);
	http_close(&h);
}

#define T(f) cmocka_unit_test_setup_teardown(f, box_setup, box_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_put_stop_start_get),
		T(test_13_24_one_address_leaves_connections_to_others),
		T(test_standby_takes_over),
		T(test_standby_stops),
		T(test_default_objects_stay),
		T(test_ready_line_in_json),
		T(test_tokens_and_hangup),
		T(test_refused_starts),
		T(test_port_in_use),
		T(test_foreign_directory),
		T(test_fsck_without_store),
		T(test_information),
		T(test_pages_can_be_left_out),
		T(test_second_signal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
