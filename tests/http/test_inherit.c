/* test_inherit.c - listening sockets that are handed over: which are taken for which
 * port, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <skv/service.h>

#define FIRST 3

/* The files that had these numbers before, for the end of the test. */
static int saved[3];

static int setup(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		saved[i] = fcntl(FIRST + i, F_DUPFD_CLOEXEC, 20);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		close(FIRST + i);
		if (saved[i] >= 0) {
			dup2(saved[i], FIRST + i);
			close(saved[i]);
		}
	}
	return 0;
}

/* A socket as number FIRST + i; returns its port. */
static uint16_t give(int i, int type, const char *address, bool listening)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t n = sizeof at;
	int fd = socket(AF_INET, type, 0);

	assert_int_equal(inet_pton(AF_INET, address, &at.sin_addr), 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
	if (listening)
		assert_int_equal(listen(fd, 1), 0);
	if (fd != FIRST + i) {
		assert_int_equal(dup2(fd, FIRST + i), FIRST + i);
		close(fd);
	}
	return ntohs(at.sin_port);
}

static int inherit(struct skv_inherited *in, const char *fds, const char *names,
		   struct skv_error *err)
{
	char pid[32];

	snprintf(pid, sizeof pid, "%d", (int)getpid());
	setenv("LISTEN_PID", pid, 1);
	setenv("LISTEN_FDS", fds, 1);
	if (names)
		setenv("LISTEN_FDNAMES", names, 1);
	return skv_inherit(in, err);
}

static void assert_refused(const char *fds, const char *names, const char *word)
{
	struct skv_inherited in;
	struct skv_error err;

	assert_int_equal(inherit(&in, fds, names, &err), SKV_E_INVALID);
	if (!strstr(err.message, word))
		fail_msg("'%s' is not in: %s", word, err.message);
	assert_null(getenv("LISTEN_FDS"));
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void test_none(void **state)
{
	struct skv_inherited in;
	struct skv_error err;

	(void)state;
	assert_int_equal(skv_inherit(&in, &err), SKV_OK);
	assert_int_equal(in.n, 0);
	setenv("LISTEN_PID", "1", 1); /* another process's */
	setenv("LISTEN_FDS", "2", 1);
	assert_int_equal(skv_inherit(&in, &err), SKV_OK);
	assert_int_equal(in.n, 0);
	assert_null(getenv("LISTEN_PID"));
	assert_int_equal(inherit(&in, "0", NULL, &err), SKV_OK);
	assert_int_equal(skv_inherit_take(&in, "http", 7333), -1);
	assert_int_equal(skv_inherit_check(&in, &err), SKV_OK);
}

static void test_by_name_and_by_port(void **state)
{
	struct skv_inherited in;
	struct skv_error err;
	uint16_t port;

	(void)state;
	give(0, SOCK_STREAM, "127.0.0.1", true);
	give(1, SOCK_STREAM, "127.0.0.1", true);
	port = give(2, SOCK_STREAM, "127.0.0.1", true);
	assert_int_equal(inherit(&in, "3", "grpc:http:slabkvd.socket", &err), SKV_OK);
	assert_null(getenv("LISTEN_FDNAMES"));
	for (int i = 0; i < 3; i++) {
		assert_true(fcntl(FIRST + i, F_GETFD) & FD_CLOEXEC);
		assert_true(fcntl(FIRST + i, F_GETFL) & O_NONBLOCK);
	}
	assert_int_equal(skv_inherit_take(&in, "http", 0), FIRST + 1);
	assert_int_equal(skv_inherit_take(&in, "http", 0), -1);
	assert_int_equal(skv_inherit_take(&in, "grpc", 1), FIRST);
	assert_int_equal(skv_inherit_check(&in, &err), SKV_E_INVALID);
	assert_non_null(strstr(err.message, "'slabkvd.socket'"));
	assert_int_equal(skv_inherit_take(&in, "admin", 1), -1);
	assert_int_equal(skv_inherit_take(&in, "admin", port), FIRST + 2);
	assert_int_equal(skv_inherit_check(&in, &err), SKV_OK);
}

/* A name that is a port's counts more than the number, and there may be
 * fewer names than sockets. */
static void test_names_go_first(void **state)
{
	struct skv_inherited in;
	struct skv_error err;
	uint16_t port;

	(void)state;
	port = give(0, SOCK_STREAM, "127.0.0.1", true);
	give(1, SOCK_STREAM, "127.0.0.1", true);
	assert_int_equal(inherit(&in, "2", "grpc", &err), SKV_OK);
	assert_int_equal(skv_inherit_take(&in, "http", port), -1);
	assert_int_equal(skv_inherit_take(&in, "grpc", 1), FIRST);
	skv_inherit_drop(&in);
	assert_int_equal(fcntl(FIRST + 1, F_GETFD), -1);
}

static void test_refused(void **state)
{
	int pipes[2];

	(void)state;
	assert_refused("two", NULL, "LISTEN_FDS='two'");
	assert_refused("1x", NULL, "LISTEN_FDS='1x'");
	assert_refused("17", NULL, "at most 16");
	assert_refused("-1", NULL, "at most 16");
	give(0, SOCK_STREAM, "127.0.0.1", false);
	assert_refused("1", "http", "('http') is not a listening TCP socket");
	give(0, SOCK_DGRAM, "127.0.0.1", false);
	assert_refused("1", NULL, "not a listening TCP socket");
	assert_int_equal(pipe(pipes), 0);
	dup2(pipes[0], FIRST);
	assert_refused("1", NULL, "not a listening TCP socket");
	close(pipes[0]);
	close(pipes[1]);
	close(FIRST);
	assert_refused("1", NULL, "descriptor 3");
}

static void test_listening(void **state)
{
	struct skv_inherited in;
	struct skv_listen l = { "127.0.0.1", 1,  "http_listen", "http_port", "--http-port",
				"http",      &in };
	struct skv_error err;
	struct skv_bound b;
	uint16_t port;

	(void)state;
	port = give(0, SOCK_STREAM, "127.0.0.1", true);
	assert_int_equal(inherit(&in, "1", "http", &err), SKV_OK);
	assert_int_equal(skv_listen(&l, false, &b, &err), SKV_OK);
	assert_true(b.inherited);
	assert_int_equal(b.fd, FIRST);
	assert_int_equal(b.port, port);
	/* The rule for addresses is the same. */
	give(0, SOCK_STREAM, "0.0.0.0", true);
	assert_int_equal(inherit(&in, "1", "http", &err), SKV_OK);
	assert_int_equal(skv_listen(&l, false, &b, &err), SKV_E_INVALID);
	assert_non_null(strstr(err.message, "without tokens"));
	give(0, SOCK_STREAM, "0.0.0.0", true);
	assert_int_equal(inherit(&in, "1", "http", &err), SKV_OK);
	assert_int_equal(skv_listen(&l, true, &b, &err), SKV_OK);
	l.port = 0; /* none is left: one of our own */
	assert_int_equal(skv_listen(&l, false, &b, &err), SKV_OK);
	assert_false(b.inherited);
	close(b.fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_none, setup, teardown),
		cmocka_unit_test_setup_teardown(test_by_name_and_by_port, setup, teardown),
		cmocka_unit_test_setup_teardown(test_names_go_first, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_listening, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
