/*
 * test_liar.c - the etcd client with a peer that is no etcd: silence, garbage, frames out of place,
 * refusals, answers that are malformed, endless or cut. Every call ends by its deadline with an
 * error that says so; a write that such a peer may have taken is never said to have failed.
 *
 * SKV_SEED chooses the random bytes, SKV_CASES how many peers speak them.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <arpa/inet.h>
#include <poll.h>
#include <unistd.h>

#include <skv/bytes.h>

#include "etcd_calls.h"

enum { DATA = 0, HEADERS = 1, RST_STREAM = 3, SETTINGS = 4, PUSH = 5, PING = 6, GOAWAY = 7,
       CONTINUATION = 9, END_STREAM = 1, END_HEADERS = 4 };

struct liar {
	int listener;
	uint16_t port;
	pthread_t thread;
	void (*say)(struct liar *l, int fd); /* after the client's first bytes */
	bool mute;                            /* says nothing at all, not even settings */
	uint64_t random;
	_Atomic bool stop;
};

static uint32_t draw(struct liar *l, uint32_t n)
{
	l->random = l->random * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(l->random >> 33) % n;
}

static void say(int fd, const void *p, size_t n)
{
	const uint8_t *at = p;
	ssize_t rc;

	while (n > 0 && (rc = send(fd, at, n, MSG_NOSIGNAL)) > 0) {
		at += rc;
		n -= (size_t)rc;
	}
}

static void frame(int fd, uint8_t type, uint8_t flags, uint32_t stream, const void *p, size_t n)
{
	const uint8_t head[9] = { (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n, type, flags,
				  0, 0, 0, (uint8_t)stream };

	say(fd, head, sizeof head);
	say(fd, p, n);
}

/* Reads until the client has sent its request: DATA with END_STREAM, or for a while. */
static void await_request(struct liar *l, int fd)
{
	struct pollfd p = { fd, POLLIN, 0 };
	char bytes[4096];

	for (int i = 0; i < 50 && !l->stop; i++)
		if (poll(&p, 1, i < 3 ? 100 : 5) <= 0 || recv(fd, bytes, sizeof bytes, 0) <= 0)
			break;
}

static void drain(struct liar *l, int fd)
{
	struct pollfd p = { fd, POLLIN, 0 };
	char bytes[4096];

	while (!l->stop)
		if (poll(&p, 1, 20) > 0 && recv(fd, bytes, sizeof bytes, 0) <= 0)
			return;
}

static void *serve(void *ctx)
{
	struct liar *l = ctx;
	struct pollfd p = { l->listener, POLLIN, 0 };

	while (!l->stop) {
		int fd;

		if (poll(&p, 1, 20) <= 0 || (fd = accept(l->listener, NULL, NULL)) < 0)
			continue;
		if (!l->mute)
			frame(fd, SETTINGS, 0, 0, NULL, 0);
		if (l->say)
			l->say(l, fd);
		close(fd);
	}
	return NULL;
}

/* ---- what it says ---------------------------------------------------------------------------- */

static const uint8_t head_200[] = { 0x88 };       /* :status 200 */
static const uint8_t head_404[] = { 0x8d };
static const uint8_t status_0[] = "\0\x0bgrpc-status\x01" "0";
static const uint8_t status_9x[] = "\0\x0bgrpc-status\x05-9x\xff\x01";

static void only_listens(struct liar *l, int fd) { drain(l, fd); }

static void speaks_http1(struct liar *l, int fd)
{
	const char text[] = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";

	await_request(l, fd);
	say(fd, text, sizeof text - 1);
	drain(l, fd);
}

static void leaves(struct liar *l, int fd)
{
	const uint8_t none[8] = { 0 };

	await_request(l, fd);
	frame(fd, GOAWAY, 0, 0, none, sizeof none);
	drain(l, fd);
}

static void resets(struct liar *l, int fd)
{
	const uint8_t code[4] = { 0, 0, 0, 2 };

	await_request(l, fd);
	for (uint32_t id = 1; id < 100; id += 2)
		frame(fd, RST_STREAM, 0, id, code, sizeof code);
	drain(l, fd);
}

static void refuses_streams(struct liar *l, int fd)
{
	const uint8_t code[4] = { 0, 0, 0, 7 };

	await_request(l, fd);
	frame(fd, RST_STREAM, 0, 1, code, sizeof code);
	drain(l, fd);
}

/* To the first call on the connection alone. */
static void has_no_leader(struct liar *l, int fd)
{
	static const uint8_t answer[] = "\x88" "\0\x0bgrpc-status\x02" "14"
					"\0\x0cgrpc-message\x15" "etcdserver: no leader";

	await_request(l, fd);
	frame(fd, HEADERS, END_HEADERS | END_STREAM, 1, answer, sizeof answer - 1);
	drain(l, fd);
}

static void answers_404(struct liar *l, int fd)
{
	await_request(l, fd);
	frame(fd, HEADERS, END_HEADERS | END_STREAM, 1, head_404, sizeof head_404);
	drain(l, fd);
}

static void answers_no_status(struct liar *l, int fd)
{
	await_request(l, fd);
	frame(fd, HEADERS, END_HEADERS | END_STREAM, 1, head_200, sizeof head_200);
	drain(l, fd);
}

static void answers_odd_status(struct liar *l, int fd)
{
	await_request(l, fd);
	frame(fd, HEADERS, END_HEADERS, 1, head_200, sizeof head_200);
	frame(fd, HEADERS, END_HEADERS | END_STREAM, 1, status_9x, sizeof status_9x - 1);
	drain(l, fd);
}

/* A fine frame of an answer around these bytes. */
static void answer(struct liar *l, int fd, const void *p, size_t n)
{
	await_request(l, fd);
	frame(fd, HEADERS, END_HEADERS, 1, head_200, sizeof head_200);
	frame(fd, DATA, 0, 1, p, n);
	frame(fd, HEADERS, END_HEADERS | END_STREAM, 1, status_0, sizeof status_0 - 1);
	drain(l, fd);
}

static void answers_nothing(struct liar *l, int fd) { answer(l, fd, "", 0); }

static void answers_long_prefix(struct liar *l, int fd)
{
	answer(l, fd, "\0\xff\xff\xff\xff" "abc", 8);
}

static void answers_compressed(struct liar *l, int fd) { answer(l, fd, "\1\0\0\0\1a", 6); }

static void answers_bad_protobuf(struct liar *l, int fd)
{
	answer(l, fd, "\0\0\0\0\4\x0a\x7f\x01\x02", 9);
}

static void answers_no_header(struct liar *l, int fd) { answer(l, fd, "\0\0\0\0\0", 5); }

/* More than an answer may have, as fast as the client takes it. */
static void answers_without_end(struct liar *l, int fd)
{
	static const uint8_t zeros[16384];

	await_request(l, fd);
	frame(fd, HEADERS, END_HEADERS, 1, head_200, sizeof head_200);
	for (int i = 0; i < 64 && !l->stop; i++)
		frame(fd, DATA, 0, 1, zeros, sizeof zeros); /* up to the window */
	drain(l, fd);
}

static void floods(struct liar *l, int fd)
{
	const uint8_t ping[8] = { 0 };

	for (int i = 0; i < 20000 && !l->stop; i++)
		frame(fd, i % 2 ? PING : SETTINGS, 0, 0, ping, i % 2 ? 8 : 0);
	drain(l, fd);
}

static void pushes(struct liar *l, int fd)
{
	const uint8_t promise[] = { 0, 0, 0, 2, 0x88 };

	await_request(l, fd);
	frame(fd, PUSH, END_HEADERS, 1, promise, sizeof promise);
	drain(l, fd);
}

static void continues_without_end(struct liar *l, int fd)
{
	await_request(l, fd);
	frame(fd, HEADERS, 0, 1, head_200, sizeof head_200);
	for (int i = 0; i < 1000 && !l->stop; i++)
		frame(fd, CONTINUATION, 0, 1, NULL, 0);
	drain(l, fd);
}

/* Frames of random types, lengths and bytes; or an answer of random bytes. */
static void speaks_at_random(struct liar *l, int fd)
{
	uint8_t bytes[64];

	await_request(l, fd);
	for (int i = 0; i < 20; i++) {
		const uint32_t n = draw(l, sizeof bytes);

		for (uint32_t k = 0; k < n; k++)
			bytes[k] = (uint8_t)draw(l, draw(l, 2) ? 256 : 12);
		if (draw(l, 4) == 0) { /* a message of protobuf, or nearly */
			bytes[0] = bytes[1] = bytes[2] = bytes[3] = 0;
			bytes[4] = (uint8_t)(n > 5 ? n - 5 : 0);
			frame(fd, HEADERS, END_HEADERS, 1, head_200, sizeof head_200);
			frame(fd, DATA, 0, 1, bytes, n > 5 ? n : 5);
			frame(fd, HEADERS, END_HEADERS | END_STREAM, 1, status_0,
			      sizeof status_0 - 1);
			break;
		}
		frame(fd, (uint8_t)draw(l, 11), (uint8_t)draw(l, 256), draw(l, 4), bytes, n);
	}
	drain(l, fd);
}

/* ---- the client ------------------------------------------------------------------------------ */

static void start(struct liar *l, void (*what)(struct liar *l, int fd), bool mute, uint64_t seed)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t n = sizeof at;

	*l = (struct liar){ .say = what, .mute = mute, .random = seed };
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	l->listener = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(l->listener, (struct sockaddr *)&at, sizeof at), 0);
	assert_int_equal(listen(l->listener, 10), 0);
	assert_int_equal(getsockname(l->listener, (struct sockaddr *)&at, &n), 0);
	l->port = ntohs(at.sin_port);
	assert_int_equal(pthread_create(&l->thread, NULL, serve, l), 0);
}

static void stop(struct liar *l)
{
	l->stop = true;
	pthread_join(l->thread, NULL);
	close(l->listener);
}

/* A read and a write fail; a watch just has no event; a write that may have been taken says so. */
static void check(void (*what)(struct liar *l, int fd), bool mute, uint64_t seed, int put_status)
{
	struct skv_etcd_options o = { .timeout_ms = 400, .silent_ms = 100 };
	const struct skv_etcd_op read = { SKV_ETCD_RANGE, .key = { "a", 1 } };
	const struct skv_etcd_op write = { SKV_ETCD_PUT, .key = { "a", 1 } };
	struct skv_etcd_watch *w;
	struct skv_etcd_event e;
	struct skv_etcd *c;
	char endpoint[40];
	struct liar l;
	int rc;

	start(&l, what, mute, seed);
	snprintf(endpoint, sizeof endpoint, "127.0.0.1:%u", l.port);
	o.endpoints = endpoint;
	c = open_client(&o);
	/* A request that may have been taken counts as taken as soon as it was sent. */
	rc = skv_etcd_run_within(c, put_status == SKV_E_UNKNOWN_OUTCOME ? LONG_MS : 400, &write,
				 NULL, &err);
	if (put_status == SKV_OK ? rc == SKV_OK : rc != put_status)
		fail_msg("put: %s (%s)", skv_status_name(rc), err.message);
	rc = skv_etcd_run(c, &read, NULL, &err);
	if (rc == SKV_OK || rc == SKV_E_UNKNOWN_OUTCOME || !*err.message)
		fail_msg("get: %s (%s)", skv_status_name(rc), err.message);
	expect(skv_etcd_watch_open(c, read.key, read.end, 1, &w, &err), SKV_OK, NULL);
	assert_int_not_equal(skv_etcd_watch_next(w, 100, &e, &err), SKV_OK);
	skv_etcd_watch_close(w);
	skv_etcd_close(c);
	stop(&l);
}

static void lies_become_errors(void **state)
{
	static const struct {
		void (*what)(struct liar *l, int fd);
		bool mute;
		int put; /* SKV_OK: any error */
	} cases[] = {
		{ only_listens, true, SKV_E_STORE_IO }, /* nothing is sent before it speaks */
		{ NULL, true, SKV_E_STORE_IO },
		{ speaks_http1, true, SKV_E_STORE_IO },
		{ only_listens, false, SKV_E_UNKNOWN_OUTCOME },
		{ NULL, false, SKV_OK },
		{ leaves, false, SKV_OK }, /* at the deadline a try may be on its way */
		{ resets, false, SKV_E_UNKNOWN_OUTCOME },
		{ refuses_streams, false, SKV_OK },
		{ answers_404, false, SKV_E_UNKNOWN_OUTCOME },
		{ answers_no_status, false, SKV_E_UNKNOWN_OUTCOME },
		{ answers_odd_status, false, SKV_E_UNKNOWN_OUTCOME },
		{ answers_nothing, false, SKV_E_UNKNOWN_OUTCOME },
		{ answers_long_prefix, false, SKV_E_UNKNOWN_OUTCOME },
		{ answers_compressed, false, SKV_E_UNKNOWN_OUTCOME },
		{ answers_bad_protobuf, false, SKV_E_UNKNOWN_OUTCOME },
		{ answers_no_header, false, SKV_E_UNKNOWN_OUTCOME },
		{ answers_without_end, false, SKV_E_UNKNOWN_OUTCOME },
		{ floods, false, SKV_OK },
		{ pushes, false, SKV_OK },
		{ continues_without_end, false, SKV_OK },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		printf("case %zu\n", i);
		check(cases[i].what, cases[i].mute, 0, cases[i].put);
	}
}

/* A watch that is refused takes the connection with it: what was said to it was not said to a write
 * beside it, which may have been executed. */
static void another_calls_answer_is_not_ones_own(void **state)
{
	struct skv_etcd_options o = { .timeout_ms = LONG_MS };
	const struct skv_etcd_op write = { SKV_ETCD_PUT, .key = { "a", 1 } };
	struct skv_etcd_watch *w;
	struct skv_etcd *c;
	char endpoint[40];
	struct liar l;

	(void)state;
	start(&l, has_no_leader, false, 0);
	snprintf(endpoint, sizeof endpoint, "127.0.0.1:%u", l.port);
	o.endpoints = endpoint;
	c = open_client(&o);
	expect(skv_etcd_watch_open(c, write.key, write.end, 1, &w, &err), SKV_OK, NULL);
	expect(skv_etcd_run(c, &write, NULL, &err), SKV_E_UNKNOWN_OUTCOME, "no leader");
	skv_etcd_watch_close(w);
	skv_etcd_close(c);
	stop(&l);
}

static void garbage_becomes_errors(void **state)
{
	const char *seed = getenv("SKV_SEED"), *cases = getenv("SKV_CASES");
	const uint64_t first = seed ? strtoull(seed, NULL, 0) : 1;

	(void)state;
	for (uint64_t i = 0; i < (cases ? strtoull(cases, NULL, 0) : 20); i++)
		check(speaks_at_random, false, first + i, SKV_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lies_become_errors),
		cmocka_unit_test(another_calls_answer_is_not_ones_own),
		cmocka_unit_test(garbage_becomes_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
