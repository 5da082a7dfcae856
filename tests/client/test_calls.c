/* test_calls.c - options, failover, retries, idempotence, errors as they reach the caller. */
#include "fixture.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int open_with(const struct slabkv_options *o, struct slabkv_error *err)
{
	struct slabkv *kv = NULL;
	int rc = slabkv_open(o, &kv, err);

	slabkv_close(kv);
	return rc;
}

static void options_are_checked(void **state)
{
	const char *url = "ftp://x", *empty = "";
	struct slabkv_options o;
	struct slabkv_error err;

	(void)state;
	slabkv_options_init(&o, sizeof o);
	assert_int_equal(open_with(&o, &err), SLABKV_OK);
	o.size = 8;
	assert_int_equal(open_with(&o, &err), SLABKV_E_INVALID);
	slabkv_options_init(&o, sizeof o);
	o.urls = &url;
	o.n_urls = 1;
	assert_int_equal(open_with(&o, &err), SLABKV_E_INVALID);
	assert_string_equal(err.field, "urls");
	slabkv_options_init(&o, sizeof o);
	o.mounts = &empty;
	o.n_mounts = 1;
	assert_int_equal(open_with(&o, &err), SLABKV_E_INVALID);
	assert_string_equal(err.field, "mounts");
	slabkv_options_init(&o, sizeof o);
	o.engine = "warp";
	assert_int_equal(open_with(&o, &err), SLABKV_E_INVALID);
	assert_string_equal(err.field, "engine");
	slabkv_options_init(&o, sizeof o);
	o.token = "two\r\nlines";
	assert_int_equal(open_with(&o, &err), SLABKV_E_INVALID);
	slabkv_options_init(&o, sizeof o);
	o.timeout_ms = 0;
	assert_int_equal(open_with(&o, &err), SLABKV_E_INVALID);
	assert_string_equal(err.field, "timeout_ms");
	slabkv_close(NULL);
	slabkv_free(NULL);
}

static void names_are_checked_before_they_stand_in_a_path(void **state)
{
	static const char *const bad[] = { "",    "a//b", "/a",  "a/../b", "..",
					   "a b", "-x",   "a?b", NULL };
	struct fixture *f = *state;
	struct slabkv_error err;
	struct set b;

	set_init(&b, 1, 1);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		assert_int_equal(slabkv_lookup(f->kv, bad[i], &b.keys, NULL, NULL, &err),
				 SLABKV_E_INVALID);
		assert_string_equal(err.field, "instance");
		assert_int_equal(slabkv_delete(f->kv, bad[i], &b.keys, NULL, &err),
				 SLABKV_E_INVALID);
		assert_int_equal(slabkv_object_delete(f->kv, SLABKV_INSTANCE, bad[i], &err),
				 SLABKV_E_INVALID);
		assert_int_equal(slabkv_object_get(f->kv, SLABKV_GROUP, bad[i] ? bad[i] : "",
						   NULL, &err),
				 SLABKV_E_INVALID);
	}
	assert_int_equal(slabkv_finish(f->kv, "../x", NULL, NULL, &err), SLABKV_E_INVALID);
	assert_string_equal(err.field, "session");
	set_free(&b);
}

/* A port where nobody listens. */
static uint16_t closed_port(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t n = sizeof at;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
	close(fd);
	return ntohs(at.sin_port);
}

static void the_next_manager_is_tried(void **state)
{
	struct fixture *f = *state;
	struct standin standby;
	char dead[64];

	standin_start_failing(&standby, SKV_E_NOT_OWNER);
	snprintf(dead, sizeof dead, "http://127.0.0.1:%u/", closed_port());
	f->urls[0] = dead;
	f->urls[1] = standby.url;
	f->urls[2] = f->s.url;
	f->o.n_urls = 3;
	f->o.rounds = 1; /* a single round over all three is enough */
	fixture_reopen(f, NULL, NULL);
	put_all(f, 1, 2);
	assert_int_equal(f->kv->current, 2); /* remembered */
	standin_stop(&standby);
	put_all(f, 3, 2);
}

static void nobody_answers(void **state)
{
	struct fixture *f = *state;
	struct slabkv_error err;
	struct set b;
	char dead[64];

	snprintf(dead, sizeof dead, "http://127.0.0.1:%u", closed_port());
	f->urls[0] = dead;
	f->o.rounds = 2;
	fixture_reopen(f, NULL, NULL);
	set_init(&b, 1, 2);
	assert_int_equal(set_get(f, &b, SLABKV_PREFIX), SLABKV_E_NETWORK);
	assert_int_equal(b.blocks[1].result, SLABKV_MISS);
	assert_int_equal(set_put(f, &b), SLABKV_E_NETWORK);
	assert_int_equal(b.blocks[1].result, SLABKV_FAILED);
	assert_int_equal(b.blocks[1].why, SLABKV_E_NETWORK);
	assert_int_equal(slabkv_ready(f->kv, &err), SLABKV_E_NETWORK);
	assert_non_null(strstr(err.message, dead));
	set_free(&b);
}

/* A manager that accepts and says nothing: the call ends by its own timeout. */
static void a_silent_manager_is_not_waited_for(void **state)
{
	struct fixture *f = *state;
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t n = sizeof at;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char url[64];

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
	snprintf(url, sizeof url, "http://127.0.0.1:%u", ntohs(at.sin_port));
	f->urls[0] = url;
	f->o.timeout_ms = 200;
	fixture_reopen(f, NULL, NULL);
	assert_int_equal(slabkv_ready(f->kv, NULL), SLABKV_E_TIMEOUT);
	/* with a second manager there is time left for it */
	f->urls[1] = f->s.url;
	f->o.n_urls = 2;
	f->o.timeout_ms = 2000;
	fixture_reopen(f, NULL, NULL);
	assert_int_equal(slabkv_ready(f->kv, NULL), SLABKV_OK);
	close(fd);
}

/* A socket of 127.0.0.1 that listens; its URL in `url`. */
static int listener(char url[64], int backlog)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t n = sizeof at;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
	assert_int_equal(listen(fd, backlog), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
	snprintf(url, 64, "http://127.0.0.1:%u", ntohs(at.sin_port));
	return fd;
}

/* Fills its queue: from then on the kernel drops what wants to connect. */
static void stuff(const char *url, int queue[8])
{
	struct sockaddr_in at = { .sin_family = AF_INET };

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	at.sin_port = htons((uint16_t)atoi(strrchr(url, ':') + 1));
	for (int i = 0; i < 8; i++) {
		queue[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		connect(queue[i], (struct sockaddr *)&at, sizeof at);
	}
}

static uint64_t ready_ms(struct fixture *f)
{
	uint64_t begin = skv_now_us();

	assert_int_equal(slabkv_ready(f->kv, NULL), SLABKV_OK);
	return (skv_now_us() - begin) / 1000;
}

static void connecting_has_its_own_limit(void **state)
{
	struct fixture *f = *state;
	int queue[8], fd;
	char url[64];

	fd = listener(url, 0);
	stuff(url, queue);
	f->urls[0] = url;
	f->urls[1] = f->s.url;
	f->o.n_urls = 2;
	f->o.hedge_ms = 0;
	f->o.timeout_ms = 20000;
	f->o.connect_timeout_ms = 100;
	fixture_reopen(f, NULL, NULL);
	assert_true(ready_ms(f) < 5000);
	assert_int_equal(f->kv->current, 1);
	for (int i = 0; i < 8; i++)
		close(queue[i]);
	close(fd);
}

static void the_next_one_answers_for_one_that_hangs(void **state)
{
	struct fixture *f = *state;
	char url[64];
	int fd = listener(url, 8);

	f->urls[0] = url;
	f->urls[1] = f->s.url;
	f->o.n_urls = 2;
	f->o.timeout_ms = 20000;
	f->o.hedge_ms = 50;
	fixture_reopen(f, NULL, NULL);
	assert_true(ready_ms(f) < 5000);
	assert_int_equal(f->kv->current, 1); /* remembered */
	atomic_store(&f->kv->current, 0);
	put_all(f, 1, 3);
	assert_int_equal(f->s.n_sessions, 1);
	close(fd);
}

struct slow {
	pthread_t thread;
	int fd;
};

static void *answer_slowly(void *arg)
{
	static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
	struct slow *s = arg;
	int fd = accept(s->fd, NULL, NULL);
	char request[2048];

	if (read(fd, request, sizeof request) > 0) {
		poll(NULL, 0, 300);
		if (write(fd, text, sizeof text - 1) < 0)
			perror("write");
	}
	close(fd);
	return NULL;
}

/* A manager that refuses has not answered: the client waits for the slow one. */
static void a_refusal_does_not_count(void **state)
{
	struct fixture *f = *state;
	struct standin standby;
	struct slow slow;
	char url[64];

	standin_start_failing(&standby, SKV_E_NOT_OWNER);
	slow.fd = listener(url, 8);
	assert_int_equal(pthread_create(&slow.thread, NULL, answer_slowly, &slow), 0);
	f->urls[0] = url;
	f->urls[1] = standby.url;
	f->o.n_urls = 2;
	f->o.timeout_ms = 20000;
	f->o.hedge_ms = 50;
	fixture_reopen(f, NULL, NULL);
	assert_true(ready_ms(f) >= 250);
	assert_int_equal(f->kv->current, 0);
	pthread_join(slow.thread, NULL);
	close(slow.fd);
	standin_stop(&standby);
}

/* The answer of a proxy for a manager that it cannot reach. */
struct proxy {
	pthread_t thread;
	int fd;
	_Atomic unsigned asked;
	const char *_Atomic text;
};

static void *answer_as_proxy(void *arg)
{
	struct proxy *p = arg;
	char request[4096];
	int fd;

	while ((fd = accept(p->fd, NULL, NULL)) >= 0) {
		if (read(fd, request, sizeof request) > 0) {
			p->asked++;
			if (dprintf(fd, "%s", p->text) < 0)
				perror("write");
		}
		shutdown(fd, SHUT_WR);
		while (read(fd, request, sizeof request) > 0)
			;
		close(fd);
	}
	return NULL;
}

static void a_proxys_answer_is_not_the_managers(void **state)
{
	static const int statuses[] = { 404, 429, 500, 502, 503, 504 };
	static const char *const bodies[] = {
		"Content-Type: text/html\r\nContent-Length: 38\r\n\r\n"
		"<html><h1>Bad Gateway</h1>nginx</html>",
		"Content-Type: text/plain\r\nContent-Length: 19\r\n\r\nno healthy upstream",
		"Content-Type: application/json\r\nContent-Length: 25\r\n\r\n"
		"{\"error\":\"rate limited\" }",
		"Content-Length: 0\r\n\r\n",
		"Content-Type: application/json\r\nContent-Length: 99\r\n\r\n"
		"{\"code\":\"no_space\",",
	};
	struct fixture *f = *state;
	struct proxy p = { .asked = 0 };
	struct slabkv_error err;
	struct slabkv *alone;
	char text[sizeof statuses / sizeof statuses[0] * 5][256], url[64];
	unsigned expected = 0;

	p.fd = listener(url, 8);
	f->urls[0] = url;
	f->urls[1] = f->s.url;
	f->o.n_urls = 2;
	f->o.rounds = 1;
	fixture_reopen(f, NULL, NULL);
	assert_int_equal(pthread_create(&p.thread, NULL, answer_as_proxy, &p), 0);
	for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++)
		for (size_t k = 0; k < sizeof bodies / sizeof bodies[0]; k++) {
			snprintf(text[expected], sizeof text[0],
				 "HTTP/1.1 %d x\r\nConnection: close\r\n%s", statuses[i],
				 bodies[k]);
			p.text = text[expected];
			atomic_store(&f->kv->current, 0);
			assert_int_equal(slabkv_ready(f->kv, &err), SLABKV_OK);
			atomic_store(&f->kv->current, 0);
			put_all(f, 1 + 8 * expected, 2);
			assert_int_equal(f->kv->current, 1);
			assert_true(p.asked >= 2 * ++expected);
		}
	p.text = text[0];
	f->o.n_urls = 1; /* with nobody else the error names the status and the remedy */
	f->o.rounds = 2;
	assert_int_equal(slabkv_open(&f->o, &alone, NULL), SLABKV_OK);
	assert_int_equal(slabkv_ready(alone, &err), SLABKV_E_NETWORK);
	assert_non_null(strstr(err.message, "check the URL"));
	slabkv_close(alone);
	shutdown(p.fd, SHUT_RDWR);
	pthread_join(p.thread, NULL);
	close(p.fd);
}

static void one_text_names_several_managers(void **state)
{
	struct fixture *f = *state;
	struct slabkv_error err;
	struct slabkv *kv;
	char text[160];

	snprintf(text, sizeof text, "127.0.0.1:%u,http://127.0.0.1:%u/,%s", closed_port(),
		 closed_port(), f->s.url);
	f->urls[0] = text;
	f->o.n_urls = 1;
	fixture_reopen(f, NULL, NULL);
	assert_int_equal(f->kv->n_urls, 3);
	put_all(f, 1, 2);
	assert_int_equal(f->kv->current, 2);

	f->o.urls = NULL;
	f->o.n_urls = 0;
	setenv("SLABKV_URL", text, 1);
	fixture_reopen(f, NULL, NULL);
	assert_int_equal(f->kv->n_urls, 3);
	put_all(f, 3, 2);
	setenv("SLABKV_URL", "http://a,,http://b", 1);
	assert_int_equal(slabkv_open(&f->o, &kv, &err), SLABKV_E_INVALID);
	assert_string_equal(err.field, "urls");
	setenv("SLABKV_URL", "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17", 1);
	assert_int_equal(slabkv_open(&f->o, &kv, &err), SLABKV_E_INVALID);
	assert_non_null(strstr(err.message, "16"));
	unsetenv("SLABKV_URL");
}

static void passing_failures_are_retried(void **state)
{
	static const int passing[] = { SKV_E_NOT_READY, SKV_E_NOT_OWNER, SKV_E_UNKNOWN_OUTCOME,
				       SKV_OK };
	static const char *const ops[] = { "start", "finish", "lookup" };
	struct fixture *f = *state;
	uint64_t key = 1;

	for (size_t i = 0; i < sizeof passing / sizeof passing[0]; i++) {
		for (size_t k = 0; k < 3; k++) {
			struct set b;

			f->s.fail_op = ops[k];
			f->s.fail_status = passing[i];
			f->s.fail_count = 2;
			set_init(&b, key++, 1);
			assert_int_equal(set_put(f, &b), SLABKV_OK);
			assert_int_equal(b.blocks[0].result, SLABKV_WRITTEN);
			assert_int_equal(set_get(f, &b, SLABKV_PREFIX), SLABKV_OK);
			assert_int_equal(b.blocks[0].result, SLABKV_HIT);
			assert_int_equal(f->s.fail_count, 0);
			set_free(&b);
		}
	}
}

/* The answer to start was lost after the manager had opened the session. */
static void a_repeated_start_finds_its_session(void **state)
{
	struct fixture *f = *state;
	struct set b;

	f->s.fail_op = "start";
	f->s.fail_status = SKV_OK;
	f->s.fail_count = 1;
	set_init(&b, 1, 3);
	assert_int_equal(set_put(f, &b), SLABKV_OK);
	assert_int_equal(b.io.done, 3); /* not busy by its own first try */
	assert_int_equal(f->s.n_sessions, 1);
	assert_int_equal(f->s.starts, 2);
	set_free(&b);
}

static void lasting_refusals_are_told_at_once(void **state)
{
	struct fixture *f = *state;
	struct set b;

	f->s.fail_op = "start";
	f->s.fail_status = SKV_E_NO_SPACE;
	f->s.fail_count = 5;
	set_init(&b, 1, 1);
	assert_int_equal(set_put(f, &b), SLABKV_E_NO_SPACE);
	assert_int_equal(f->s.fail_count, 4);
	assert_int_equal(b.err.code, SLABKV_E_NO_SPACE);
	assert_string_equal(b.err.message, "told to fail");
	assert_string_equal(b.err.field, "knob");
	f->s.fail_op = "finish";
	f->s.fail_status = SKV_E_SESSION_EXPIRED;
	f->s.fail_count = 1;
	assert_int_equal(set_put(f, &b), SLABKV_E_SESSION_EXPIRED);
	assert_int_equal(b.blocks[0].result, SLABKV_FAILED);
	assert_int_equal(b.blocks[0].why, SLABKV_E_SESSION_EXPIRED);
	set_free(&b);
}

static void an_id_that_is_over_starts_nothing(void **state)
{
	struct fixture *f = *state;
	const struct slabkv_session *s;
	struct slabkv_finished done = { .size = sizeof(struct slabkv_finished) };
	struct slabkv_error err;
	struct set b;

	set_init(&b, 1, 2);
	assert_int_equal(slabkv_start(f->kv, "m", &b.keys, NULL, "again", &s, &err), SLABKV_OK);
	assert_int_equal(s->n_write, 2);
	assert_int_equal(s->outcome[0], SLABKV_START_WRITE);
	assert_int_equal(slabkv_finish(f->kv, s->id, NULL, &done, &err), SLABKV_OK);
	assert_int_equal(done.committed, 2);
	assert_int_equal(slabkv_finish(f->kv, s->id, NULL, &done, &err), SLABKV_OK);
	assert_int_equal(done.committed, 2);
	slabkv_free(s);
	assert_int_equal(slabkv_start(f->kv, "m", &b.keys, NULL, "again", &s, &err),
			 SLABKV_E_SESSION_ENDED);
	set_free(&b);
}

static void unknown_things_are_not_found(void **state)
{
	struct fixture *f = *state;
	const struct slabkv_instance *layout;
	const char *const unknown = "unknown";
	struct slabkv_error err;
	uint32_t matched;
	struct set b;

	set_init(&b, 1, 1);
	assert_int_equal(slabkv_get(f->kv, "unknown", &b.keys, NULL, b.blocks,
				    sizeof(struct slabkv_block), NULL, &err),
			 SLABKV_E_NOT_FOUND);
	assert_string_equal(err.field, "instance");
	assert_int_equal(slabkv_match(f->kv, &unknown, 1, &b.keys, &matched, &err),
			 SLABKV_E_NOT_FOUND);
	assert_int_equal(slabkv_match(f->kv, &unknown, 0, &b.keys, &matched, &err),
			 SLABKV_E_INVALID);
	assert_int_equal(slabkv_instance_get(f->kv, "unknown", &layout, &err), SLABKV_E_NOT_FOUND);
	assert_int_equal(slabkv_object_delete(f->kv, SLABKV_INSTANCE, "unknown", &err), SLABKV_OK);
	assert_int_equal(slabkv_instance_get(f->kv, "m", &layout, &err), SLABKV_OK);
	assert_string_equal(layout->id, "m");
	assert_string_equal(layout->group, "g");
	assert_int_equal(layout->specs[0].size, FIX_BYTES);
	slabkv_free(layout);
	set_free(&b);
}

#define LOG_MAX 256u

static void on_call(void *ctx, const char *op, uint64_t us, int status)
{
	char *log = ctx;

	(void)us;
	assert_int_equal(status, SLABKV_OK);
	snprintf(log + strlen(log), LOG_MAX - strlen(log), "%s ", op);
}

static void every_call_is_reported(void **state)
{
	struct fixture *f = *state;
	char log[LOG_MAX] = "";
	struct set b;

	f->o.on_call = on_call;
	f->o.on_call_ctx = log;
	fixture_reopen(f, NULL, NULL);
	put_all(f, 1, 1);
	set_init(&b, 1, 1);
	assert_int_equal(set_get(f, &b, SLABKV_PREFIX), SLABKV_OK);
	assert_string_equal(log, "start storage_get finish lookup ");
	set_free(&b);
}

static void texts_are_handed_on(void **state)
{
	struct fixture *f = *state;
	struct slabkv_error err;
	const char *json;

	assert_int_equal(slabkv_call(f->kv, "GET", "/v1/stats", NULL, &json, &err), SLABKV_OK);
	assert_string_equal(json, "{\"state\":\"ready\"}");
	slabkv_free(json);
	assert_int_equal(err.code, SLABKV_OK);
	assert_string_equal(slabkv_code(SLABKV_E_NO_SPACE), "no_space");
	assert_true(strlen(slabkv_text(SLABKV_E_TIMEOUT)) > 0);
	assert_string_equal(slabkv_version(), SLABKV_VERSION);
	assert_int_equal(slabkv_checksum("abc", 3), skv_checksum("abc", 3));
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_are_checked),
		T(names_are_checked_before_they_stand_in_a_path),
		T(the_next_manager_is_tried),
		T(nobody_answers),
		T(a_silent_manager_is_not_waited_for),
		T(connecting_has_its_own_limit),
		T(the_next_one_answers_for_one_that_hangs),
		T(a_refusal_does_not_count),
		T(a_proxys_answer_is_not_the_managers),
		T(one_text_names_several_managers),
		T(passing_failures_are_retried),
		T(a_repeated_start_finds_its_session),
		T(lasting_refusals_are_told_at_once),
		T(an_id_that_is_over_starts_nothing),
		T(unknown_things_are_not_found),
		T(every_call_is_reported),
		T(texts_are_handed_on),
	};
#undef T

	return cmocka_run_group_tests(tests, NULL, NULL);
}
