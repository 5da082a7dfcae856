/*
 * test_redis.c - what holds for the store on Redis beyond the contract, on real servers: who
 * acknowledges, what becomes of a call whose answer is lost, what a primary's death costs, leases
 * across hosts, and what is refused.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "redis_calls.h"
#include "shell.h"

static struct servers servers;

static struct skv_store *open_at(const char *url, const struct skv_clock *clock)
{
	const struct skv_store_options o = { .path = url, .clock = clock };
	struct skv_store *s = NULL;
	int rc = skv_store_open(&skv_store_redis, &o, &s, &err);

	if (rc != SKV_OK)
		fail_msg("%s: %s", skv_status_name(rc), err.message);
	return s;
}

static struct skv_store *open_all(const char *tail)
{
	char url[400];

	servers_url(&servers, tail, url, sizeof url);
	return open_at(url, NULL);
}

static int count_slice(void *ctx, uint32_t number, const void *bytes, size_t n)
{
	(void)ctx;
	(void)number;
	(void)bytes;
	(void)n;
	return SKV_OK;
}

static int check_record(void *ctx, uint64_t seq, const void *bytes, size_t n)
{
	uint64_t *last = ctx;
	uint8_t want[200];

	assert_int_equal(seq, *last + 1);
	bench_fill(seq, want, sizeof want);
	assert_int_equal(n, sizeof want);
	assert_memory_equal(bytes, want, n);
	*last = seq;
	return SKV_OK;
}

/* The last record; all before it are there. */
static uint64_t newest(struct skv_store *s)
{
	uint64_t last = 0, base;
	const struct skv_load_sink sink = { count_slice, check_record, &last };
	int rc = skv_store_load(s, 0, &base, &sink, &err);

	if (rc != SKV_OK)
		fail_msg("load: %s: %s", skv_status_name(rc), err.message);
	return last;
}

/* ---- who acknowledges ------------------------------------------------------------------------ */

static void a_silent_replica_holds_everything_up(void **state)
{
	struct skv_store *s, *brief;
	uint64_t fence;

	(void)state;
	servers_start(&servers, 2, NULL);
	s = open_all("p?timeout_ms=20000");
	brief = open_all("p?timeout_ms=2000");
	fence = acquire(s);
	appended(s, fence, 1);
	servers_signal(&servers, 2, SIGSTOP);
	assert_int_equal(append(brief, fence, 2), SKV_E_UNKNOWN_OUTCOME);
	assert_non_null(strstr(err.message, "does not acknowledge"));
	servers_signal(&servers, 2, SIGCONT);
	/* It was appended: a caller that asks learns so. */
	assert_int_equal(append(s, fence, 2), SKV_E_CONFLICT);
	appended(s, fence, 3);
	assert_int_equal(newest(s), 3);
	skv_store_close(brief);
	skv_store_close(s);
	servers_stop(&servers);
}

/* Appended without waiting, the connection gone since: a sync on the next one must not be content
 * with that one's nothing. */
static void a_sync_covers_what_another_connection_wrote(void **state)
{
	struct skv_store *s, *brief;
	uint64_t fence;

	(void)state;
	servers_start(&servers, 1, NULL);
	s = open_all("p?timeout_ms=20000");
	brief = open_all("p?timeout_ms=2000");
	fence = acquire(s);
	appended(s, fence, 1);
	servers_signal(&servers, 1, SIGSTOP);
	assert_int_equal(skv_store_append(brief, 0, fence, 2, "later", 5, SKV_APPEND_LATER, &err),
			 SKV_OK);
	(void)servers_ask(&servers, 0, "CLIENT KILL TYPE normal");
	assert_int_not_equal(skv_store_sync(brief, 0, &err), SKV_OK);
	servers_signal(&servers, 1, SIGCONT);
	for (int tries = 0; tries < 100 && skv_store_sync(brief, 0, &err) != SKV_OK; tries++)
		poll(NULL, 0, 20);
	assert_int_equal(skv_store_sync(brief, 0, &err), SKV_OK);
	skv_store_close(brief);
	skv_store_close(s);
	servers_stop(&servers);
}

/* What was appended without waiting to a partition that another manager has since is that one's
 * now: it must not fail the syncs of those that are still here. */
static void a_partition_that_was_handed_over_fails_no_sync(void **state)
{
	struct skv_store *s, *next;
	uint64_t fence, one, theirs;

	(void)state;
	servers_start(&servers, 1, NULL);
	s = open_all("p");
	next = open_all("p");
	fence = acquire(s);
	appended(s, fence, 1);
	assert_int_equal(skv_store_acquire(s, 1, "a", 60000, &one, NULL, 0, &err), SKV_OK);
	assert_int_equal(skv_store_append(s, 1, one, 1, "later", 5, SKV_APPEND_LATER, &err),
			 SKV_OK);
	assert_int_equal(skv_store_release(s, 1, one, &err), SKV_OK);
	assert_int_equal(skv_store_acquire(next, 1, "b", 60000, &theirs, NULL, 0, &err), SKV_OK);
	assert_int_equal(skv_store_append(next, 1, theirs, 2, "on", 2, 0, &err), SKV_OK);
	assert_int_equal(skv_store_sync(s, 0, &err), SKV_OK);
	assert_int_not_equal(skv_store_sync(s, 1, &err), SKV_OK);
	assert_int_equal(skv_store_sync(next, 1, &err), SKV_OK);
	skv_store_close(next);
	skv_store_close(s);
	servers_stop(&servers);
}

static void without_a_replica_nothing_is_acknowledged(void **state)
{
	struct skv_store *s;
	uint64_t fence = 0;
	char url[400];

	(void)state;
	servers_start(&servers, 0, NULL);
	s = open_all("p?timeout_ms=300");
	assert_int_equal(skv_store_acquire(s, 0, "me", 1000, &fence, NULL, 0, &err),
			 SKV_E_UNKNOWN_OUTCOME);
	assert_non_null(strstr(err.message, "0 replicas are connected and 1 must acknowledge"));
	skv_store_close(s);
	servers_url(&servers, "p?replicas=0&timeout_ms=20000", url, sizeof url);
	s = open_at(url, NULL);
	fence = acquire(s);
	appended(s, fence, 1);
	skv_store_close(s);
	servers_stop(&servers);
}

/* One replica stands while writing goes on, the other stands, the primary dies, the first wakes and
 * is promoted: with a count of one acknowledgement it would have lost what was told. */
static void a_replica_that_stood_has_lost_nothing_that_was_told(void **state)
{
	struct skv_store *s, *brief;
	uint64_t fence, told = 0;

	(void)state;
	servers_start(&servers, 2, NULL);
	s = open_all("p?timeout_ms=20000");
	brief = open_all("p?timeout_ms=100");
	fence = acquire(s);
	for (uint64_t seq = 1; seq <= 20; seq++)
		appended(s, fence, told = seq);
	servers_signal(&servers, 1, SIGSTOP);
	for (uint64_t seq = 21; seq <= 24; seq++)
		if (append(brief, fence, seq) == SKV_OK)
			told = seq;
	servers_signal(&servers, 2, SIGSTOP);
	servers_signal(&servers, 0, SIGKILL);
	servers_signal(&servers, 1, SIGCONT);
	assert_string_equal(servers_ask(&servers, 1, "REPLICAOF NO ONE"), "OK");
	skv_store_close(brief);
	skv_store_close(s);
	s = open_all("p?replicas=0&timeout_ms=20000");
	assert_true(newest(s) >= told);
	assert_int_equal(told, 20);
	skv_store_close(s);
	servers_stop(&servers);
}

/* ---- answers that are lost ------------------------------------------------------------------- */

/* Between the store and the primary; delivers a request, then closes the
 * connection in place of the answer. */
struct proxy {
	int listener;
	uint16_t port, to;
	_Atomic int cut; /* the next so many answers of EVALSHA are lost */
	_Atomic int cuts;
	_Atomic bool stop;
	pthread_t thread;
};

static int dial(uint16_t port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return connect(fd, (struct sockaddr *)&at, sizeof at) == 0 ? fd : -1;
}

static void *proxy_run(void *arg)
{
	struct proxy *p = arg;
	struct pollfd fd[65] = { { .fd = p->listener, .events = POLLIN } };
	bool doomed[65] = { false };
	nfds_t n = 1;
	static char bytes[1 << 16];

	while (!p->stop) {
		if (poll(fd, n, 50) <= 0)
			continue;
		if (fd[0].revents && n + 2 <= 65) {
			fd[n] = (struct pollfd){ .fd = accept(p->listener, NULL, NULL),
						 .events = POLLIN };
			fd[n + 1] = (struct pollfd){ .fd = dial(p->to), .events = POLLIN };
			doomed[n] = doomed[n + 1] = false;
			n += 2;
		}
		for (nfds_t i = 1; i + 1 < n; i += 2) {
			for (nfds_t j = i; j < i + 2; j++) {
				ssize_t got;

				if (!fd[j].revents || fd[j].fd < 0)
					continue;
				got = read(fd[j].fd, bytes, sizeof bytes);
				if (j == i && got > 0 && p->cut > 0 &&
				    memmem(bytes, (size_t)got, "EVALSHA", 7)) {
					doomed[i] = true;
					p->cut--;
				}
				if (got <= 0 || (j == i + 1 && doomed[i])) {
					p->cuts += j == i + 1 && doomed[i] && got > 0;
					close(fd[i].fd);
					close(fd[i + 1].fd);
					fd[i].fd = fd[i + 1].fd = -1;
				} else if (write(fd[j == i ? i + 1 : i].fd, bytes, (size_t)got) !=
					   got) {
					fd[j].revents = 0;
				}
			}
		}
		if (n > 1 && fd[n - 1].fd < 0)
			n -= 2;
	}
	for (nfds_t i = 1; i < n; i++)
		if (fd[i].fd >= 0)
			close(fd[i].fd);
	return NULL;
}

static void proxy_start(struct proxy *p, uint16_t to)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof at;

	*p = (struct proxy){ .listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), .to = to };
	assert_int_equal(bind(p->listener, (struct sockaddr *)&at, sizeof at), 0);
	assert_int_equal(listen(p->listener, 16), 0);
	assert_int_equal(getsockname(p->listener, (struct sockaddr *)&at, &n), 0);
	p->port = ntohs(at.sin_port);
	assert_int_equal(pthread_create(&p->thread, NULL, proxy_run, p), 0);
}

static void proxy_stop(struct proxy *p)
{
	p->stop = true;
	pthread_join(p->thread, NULL);
	close(p->listener);
}

/* Every kind of write, its answer lost once and twice: it is done once, and said so. */
static void a_lost_answer_is_no_unknown_outcome(void **state)
{
	struct proxy p;
	struct skv_store *s;
	char url[128];
	uint64_t fence, other, version, id;
	struct skv_buf v = { 0 };
	int expected = 0;

	(void)state;
	servers_start(&servers, 1, NULL);
	proxy_start(&p, servers.port[0]);
	snprintf(url, sizeof url, "redis://127.0.0.1:%u/p?timeout_ms=20000", p.port);
	s = open_at(url, NULL);
	for (int cut = 1; cut <= 2; cut++) {
		struct skv_fence f;
		char key[16];

#define LOSE(call)                                                        \
	do {                                                              \
		p.cut = cut;                                              \
		if ((call) != SKV_OK)                                     \
			fail_msg("%s: %s", #call, err.message);           \
		expected += cut;                                          \
		assert_int_equal(p.cut, 0);                               \
	} while (0)
		LOSE(skv_store_acquire(s, 0, "me", 60000, &fence, NULL, 0, &err));
		f = (struct skv_fence){ .number = fence };
		snprintf(key, sizeof key, "key%d", cut);
		LOSE(skv_store_put(s, &f, key, SKV_VERSION_NONE, "a", 1, &version, &err));
		assert_int_equal(version, 1);
		LOSE(skv_store_put(s, &f, key, version, "b", 1, &version, &err));
		assert_int_equal(version, 2);
		skv_buf_clear(&v);
		LOSE(skv_store_get(s, key, &v, &version, &err));
		assert_int_equal(version, 2);
		LOSE(skv_store_del(s, &f, key, version, &err));
		assert_int_equal(skv_store_get(s, key, &v, &version, &err), SKV_E_NOT_FOUND);
		LOSE(append(s, fence, (uint64_t)cut * 2 - 1));
		LOSE(append(s, fence, (uint64_t)cut * 2));
		LOSE(skv_store_renew(s, 0, fence, 60000, &err));
		LOSE(skv_store_checkpoint_begin(s, 0, fence, &id, &err));
		LOSE(skv_store_checkpoint_slice(s, 0, fence, id, 0, "slice", 5, &err));
		LOSE(skv_store_checkpoint_abort(s, 0, id));
		LOSE(skv_store_release(s, 0, fence, &err));
		assert_int_equal(skv_store_renew(s, 0, fence, 1000, &err), SKV_E_FENCED);
	}
	assert_int_equal(p.cuts, expected);
	fence = acquire(s);
	assert_int_equal(newest(s), 4);
	bench_ok(&(struct bench){ .err = err }, skv_store_checkpoint_begin(s, 0, fence, &id, &err));
	p.cut = 1;
	bench_ok(&(struct bench){ .err = err },
		 skv_store_checkpoint_commit(s, 0, fence, id, 0, 4, &err));
	assert_int_equal(p.cut, 0);
	bench_ok(&(struct bench){ .err = err },
		 skv_store_acquire(s, 0, "me", 1000, &other, NULL, 0, &err));
	assert_true(other > fence);
	skv_buf_destroy(&v);
	skv_store_close(s);
	proxy_stop(&p);
	servers_stop(&servers);
}

/* ---- a primary's death ----------------------------------------------------------------------- */

static void a_cluster_elects_and_nothing_is_lost(void **state)
{
	struct skv_store *s;
	uint64_t fence, seq = 0;

	(void)state;
	servers_start_cluster(&servers, 500);
	s = open_all("p?timeout_ms=20000");
	fence = acquire(s);
	while (seq < 200)
		appended(s, fence, ++seq);
	servers_signal(&servers, servers_primary(&servers, "{p.0}:journal"), SIGKILL);
	/* One replica is left, and it is the primary now: the set-up must be
	 * told that this is enough. */
	assert_int_equal(newest(s), 200);
	skv_store_close(s);
	s = open_all("p?timeout_ms=20000&replicas=0");
	assert_int_equal(newest(s), 200);
	fence = acquire(s);
	while (seq < 300)
		appended(s, fence, ++seq);
	assert_int_equal(newest(s), 300);
	skv_store_close(s);
	servers_stop(&servers);
}

static bool log_says(int i, const char *part)
{
	char path[128], line[512];
	bool found = false;
	FILE *in;

	snprintf(path, sizeof path, "%s/%d/log", servers.dir, i);
	in = fopen(path, "r");
	assert_non_null(in);
	while (!found && fgets(line, sizeof line, in))
		found = strstr(line, part) != NULL;
	fclose(in);
	return found;
}

/* A standby that looks who owns the partition, meanwhile. */
static void *looks(void *arg)
{
	struct skv_error ignored;
	uint64_t fence;

	assert_int_equal(skv_store_acquire(arg, 0, "another", 0, &fence, NULL, 0, &ignored),
			 SKV_E_NOT_OWNER);
	return NULL;
}

/* force=1: its replica is told to ask for votes, by one sender of two handles that miss the
 * primary; and where that is forbidden, the cluster's own election is waited for. */
static void a_replica_is_elected_at_once(void **state)
{
	static const char accepted[] = "Forced failover user request accepted";

	(void)state;
	for (int allowed = 1; allowed >= 0; allowed--) {
		struct skv_store *s, *other;
		uint64_t fence, seq = 0;
		pthread_t standby;
		int primary;

		servers_start_cluster(&servers, 500);
		s = open_all("p?timeout_ms=20000&replicas=0&force=1");
		other = open_all("p?timeout_ms=20000&replicas=0&force=1");
		fence = acquire(s);
		while (seq < 20)
			appended(s, fence, ++seq);
		looks(other);
		primary = servers_primary(&servers, "{p.0}:journal");
		assert_true(primary < 3);
		if (!allowed)
			assert_string_equal(servers_ask(&servers, primary + 3,
							"ACL SETUSER default -cluster|failover"),
					    "OK");
		servers_signal(&servers, primary, SIGKILL);
		assert_int_equal(pthread_create(&standby, NULL, looks, other), 0);
		while (seq < 40)
			appended(s, fence, ++seq);
		pthread_join(standby, NULL);
		assert_int_equal(newest(s), 40);
		assert_int_equal(log_says(primary + 3, accepted), allowed);
		skv_store_close(other);
		skv_store_close(s);
		servers_stop(&servers);
	}
}

static void a_store_that_went_back_is_told_apart(void **state)
{
	struct skv_store *s, *other;
	uint64_t fence;

	(void)state;
	servers_start(&servers, 1, NULL);
	s = open_all("p?timeout_ms=20000");
	fence = acquire(s);
	for (uint64_t seq = 1; seq <= 5; seq++)
		appended(s, fence, seq);
	/* Record 5 as somebody else would have written it after an older state came back. */
	assert_string_equal(
		servers_ask(&servers, 0, "HSET {p.0}:head chain 00000000000000000000000000000000"),
		"0");
	assert_int_equal(append(s, fence, 6), SKV_E_CORRUPT);
	assert_non_null(strstr(err.message, "went back in time"));
	other = open_all("p?timeout_ms=20000");
	assert_int_equal(skv_store_load(other, 0, &(uint64_t){ 0 },
					&(struct skv_load_sink){ count_slice, check_record,
								 &(uint64_t){ 0 } },
					&err),
			 SKV_E_CORRUPT);
	skv_store_close(other);
	skv_store_close(s);
	servers_stop(&servers);
}

static int no_record(void *ctx, uint64_t seq, const void *bytes, size_t n)
{
	(void)ctx;
	(void)bytes;
	fail_msg("record %llu of %zu bytes", (unsigned long long)seq, n);
	return SKV_OK;
}

/* All is gone, and who knows better writes it back: to everybody else it is another history, whose
 * numbers go on behind all that was known. */
static void what_is_lost_is_restored(void **state)
{
	const struct skv_load_sink sink = { count_slice, check_record, &(uint64_t){ 0 } };
	const struct skv_load_sink restored = { count_slice, no_record, NULL };
	struct skv_position at = { .known = false };
	uint64_t fence, again, base = 0, id;
	struct skv_store *s, *other;

	(void)state;
	servers_start(&servers, 1, NULL);
	s = open_all("p?timeout_ms=20000");
	other = open_all("p?timeout_ms=20000");
	fence = acquire(s);
	for (uint64_t seq = 1; seq <= 5; seq++)
		appended(s, fence, seq);
	assert_int_equal(skv_store_follow(other, 0, &at, &sink, &err), SKV_OK);
	assert_int_equal(at.seq, 5);
	servers_ask(&servers, 0, "FLUSHALL");
	assert_int_equal(append(s, fence, 6), SKV_E_FENCED);
	again = acquire(s);
	assert_true(again > fence);
	assert_true(skv_store_may_go_back(s));
	bench_ok(&(struct bench){ .err = err }, skv_store_checkpoint_begin(s, 0, again, &id, &err));
	assert_int_equal(skv_store_restore(s, 0, again, id, 1, 100, &err), SKV_E_CONFLICT);
	bench_ok(&(struct bench){ .err = err },
		 skv_store_checkpoint_slice(s, 0, again, id, 0, "all", 3, &err));
	assert_int_equal(skv_store_restore(s, 0, fence, id, 1, 100, &err), SKV_E_FENCED);
	bench_ok(&(struct bench){ .err = err },
		 skv_store_restore(s, 0, again, id, 1, 100, &err));
	assert_int_equal(skv_store_follow(other, 0, &at, &sink, &err), SKV_E_CONFLICT);
	assert_int_equal(append(s, again, 6), SKV_E_CONFLICT);
	assert_int_equal(skv_store_load(other, 0, &base, &restored, &err), SKV_OK);
	assert_int_equal(base, 100);
	appended(s, again, 101);
	bench_ok(&(struct bench){ .err = err }, skv_store_checkpoint_begin(s, 0, again, &id, &err));
	assert_int_equal(skv_store_restore(s, 0, again, id, 0, 100, &err), SKV_E_CONFLICT);
	skv_store_close(other);
	skv_store_close(s);
	servers_stop(&servers);
}

static void has_marks(struct skv_store *s, bool lost)
{
	struct skv_registry_marks m;

	bench_ok(&(struct bench){ .err = err }, skv_store_marks(s, 0, &m, &err));
	assert_int_equal(skv_mark_older(m.is, m.least), lost);
}

/* Its shard, while that of the partition has all. */
static void a_registry_that_went_back_is_known(void **state)
{
	struct skv_store *s, *other;
	struct skv_registry_marks m;
	struct skv_fence f = { 0 };

	(void)state;
	servers_start(&servers, 1, NULL);
	s = open_all("p?timeout_ms=20000");
	f.number = acquire(s);
	has_marks(s, false);
	assert_int_equal(skv_store_put(s, &f, "a", SKV_VERSION_NONE, "1", 1, NULL, &err), SKV_OK);
	servers_ask(&servers, 0, "COPY {p.registry}:meta {p.registry}:older");
	assert_int_equal(skv_store_put(s, &f, "a", 1, "2", 1, NULL, &err), SKV_OK);
	assert_int_equal(skv_store_put(s, NULL, "b", SKV_VERSION_NONE, "1", 1, NULL, &err), SKV_OK);
	has_marks(s, false);
	/* An older one refuses its owner, whatever others wrote about themselves, and says so to
	 * who comes next. */
	servers_ask(&servers, 0, "RENAME {p.registry}:older {p.registry}:meta");
	assert_int_equal(skv_store_put(s, &f, "a", 2, "3", 1, NULL, &err), SKV_E_FENCED);
	assert_non_null(strstr(err.message, "went back in time"));
	assert_int_equal(skv_store_del(s, &f, "a", 2, &err), SKV_E_FENCED);
	has_marks(s, true);
	other = open_all("p?timeout_ms=20000");
	has_marks(other, true);
	/* What is written back does not make it whole before all is. */
	f.number = acquire(s);
	f.restores = true;
	assert_int_equal(skv_store_put(s, &f, "a", 2, "2", 1, NULL, &err), SKV_OK);
	has_marks(other, true);
	bench_ok(&(struct bench){ .err = err }, skv_store_marks(s, 0, &m, &err));
	assert_int_equal(skv_store_restored(s, 0, f.number - 1, m.mine, &err), SKV_E_FENCED);
	bench_ok(&(struct bench){ .err = err },
		 skv_store_restored(s, 0, f.number, m.mine, &err));
	has_marks(other, false);
	f.restores = false;
	assert_int_equal(skv_store_put(s, &f, "a", 3, "3", 1, NULL, &err), SKV_OK);
	has_marks(s, false);
	/* All of it. */
	servers_ask(&servers, 0, "DEL {p.registry}:meta {p.registry}:values {p.registry}:versions "
				 "{p.registry}:keys");
	assert_int_equal(skv_store_put(s, &f, "a", 4, "4", 1, NULL, &err), SKV_E_FENCED);
	has_marks(other, true);
	skv_store_close(other);
	skv_store_close(s);
	servers_stop(&servers);
}

/* A process that is started again has read a file, and its replica may have copied that. */
static void processes_that_acknowledged_are_known(void **state)
{
	struct skv_store *s;
	uint64_t fence;
	bool yes = false;

	(void)state;
	servers_start(&servers, 2, NULL);
	s = open_all("p?timeout_ms=20000&replicas=0");
	assert_int_equal(skv_store_survived(s, 0, &yes, &err), SKV_OK);
	assert_true(yes); /* nobody has said anything */
	fence = acquire(s);
	appended(s, fence, 1);
	assert_int_equal(skv_store_vouch(s, 0, fence, &err), SKV_OK);
	assert_int_equal(skv_store_survived(s, 0, &yes, &err), SKV_OK);
	assert_true(yes);
	servers_signal(&servers, 0, SIGKILL);
	assert_string_equal(servers_ask(&servers, 1, "REPLICAOF NO ONE"), "OK");
	assert_int_equal(skv_store_survived(s, 0, &yes, &err), SKV_OK);
	assert_true(yes);
	/* A second one, of who has followed the first: no owner has said anything since. */
	assert_string_equal(servers_ask(&servers, 2, "REPLICAOF 127.0.0.1 %u", servers.port[1]),
			    "OK");
	for (int tries = 0; tries < 1000 && !strstr(servers_ask(&servers, 1, "INFO replication"),
						    "state=online"); tries++)
		poll(NULL, 0, 10);
	servers_signal(&servers, 1, SIGKILL);
	assert_string_equal(servers_ask(&servers, 2, "REPLICAOF NO ONE"), "OK");
	assert_int_equal(skv_store_survived(s, 0, &yes, &err), SKV_OK);
	assert_false(yes);
	for (int tries = 0; tries < 200 && !yes; tries++) { /* it looks once a second */
		poll(NULL, 0, 50);
		assert_int_equal(skv_store_vouch(s, 0, fence, &err), SKV_OK);
		assert_int_equal(skv_store_survived(s, 0, &yes, &err), SKV_OK);
	}
	assert_true(yes);
	skv_store_close(s);
	servers_stop(&servers);
}

/* ---- partitions ------------------------------------------------------------------------------ */

#define PARTITIONS 16

struct opener {
	struct skv_store *s;
	uint32_t partition;
	pthread_barrier_t *begin;
	int rc;
	pthread_t thread;
};

/* What each core of a manager with several partitions does first. */
static void *take_and_append(void *arg)
{
	struct opener *o = arg;
	struct skv_error ignored = { 0 };
	uint64_t fence = 0;

	pthread_barrier_wait(o->begin);
	o->rc = skv_store_acquire(o->s, o->partition, "me", 60000, &fence, NULL, 0, &ignored);
	if (o->rc == SKV_OK)
		o->rc = skv_store_append(o->s, o->partition, fence, 1, "x", 1, 0, &ignored);
	return NULL;
}

static void partitions_begin_at_once(void **state)
{
	struct opener o[PARTITIONS];
	pthread_barrier_t begin;

	(void)state;
	servers_start(&servers, 0, NULL);
	assert_int_equal(pthread_barrier_init(&begin, NULL, PARTITIONS), 0);
	for (int round = 0; round < 20; round++) {
		char tail[64];
		struct skv_store *s;

		snprintf(tail, sizeof tail, "p%d?replicas=0&timeout_ms=20000", round);
		s = open_all(tail);
		for (uint32_t i = 0; i < PARTITIONS; i++) {
			o[i] = (struct opener){ .s = s, .partition = i, .begin = &begin };
			assert_int_equal(
				pthread_create(&o[i].thread, NULL, take_and_append, &o[i]), 0);
		}
		for (uint32_t i = 0; i < PARTITIONS; i++) {
			pthread_join(o[i].thread, NULL);
			assert_int_equal(o[i].rc, SKV_OK);
		}
		skv_store_close(s);
	}
	pthread_barrier_destroy(&begin);
	servers_stop(&servers);
}

/* ---- leases ---------------------------------------------------------------------------------- */

/* Of another host's boot: neither clock can be compared, so its renewals must stand still
 * under the claimant's eyes. */
static void a_lease_of_another_host_is_waited_out(void **state)
{
	struct skv_fake_clock clock;
	struct skv_store *s, *other;
	uint64_t fence, taken = 0;
	char url[400];

	(void)state;
	servers_start(&servers, 1, NULL);
	skv_fake_clock_init(&clock, 5000000);
	servers_url(&servers, "p?timeout_ms=20000", url, sizeof url);
	s = open_at(url, NULL);
	other = open_at(url, &clock.clock);
	assert_int_equal(skv_store_acquire(s, 0, "there", 1000, &fence, NULL, 0, &err), SKV_OK);
	servers_ask(&servers, 0,
		    "HSET {p.0}:owner boot 00000000-0000-0000-0000-00000000beef expires 1");
	for (int i = 0; i < 3; i++) {
		assert_int_equal(skv_store_acquire(other, 0, "here", 1000, &taken, NULL, 0, &err),
				 SKV_E_NOT_OWNER);
		skv_fake_clock_advance(&clock, 999);
		assert_int_equal(skv_store_acquire(other, 0, "here", 1000, &taken, NULL, 0, &err),
				 SKV_E_NOT_OWNER);
		servers_ask(&servers, 0, "HINCRBY {p.0}:owner beats 1"); /* it renews in time */
	}
	assert_int_equal(skv_store_acquire(other, 0, "here", 1000, &taken, NULL, 0, &err),
			 SKV_E_NOT_OWNER);
	skv_fake_clock_advance(&clock, 1000);
	assert_int_equal(skv_store_acquire(other, 0, "here", 1000, &taken, NULL, 0, &err), SKV_OK);
	assert_true(taken > fence);
	assert_int_equal(append(s, fence, 1), SKV_E_FENCED);
	assert_int_equal(skv_store_renew(s, 0, fence, 1000, &err), SKV_E_FENCED);
	skv_store_close(other);
	skv_store_close(s);
	servers_stop(&servers);
}

/* The same number, given again by a primary that has lost the newest acquire. */
static void a_fence_is_its_nonce_too(void **state)
{
	struct skv_store *s;
	uint64_t fence;

	(void)state;
	servers_start(&servers, 1, NULL);
	s = open_all("p?timeout_ms=20000");
	fence = acquire(s);
	appended(s, fence, 1);
	servers_ask(&servers, 0, "HSET {p.0}:owner nonce 0123456789abcdef");
	assert_int_equal(append(s, fence, 2), SKV_E_FENCED);
	assert_int_equal(skv_store_renew(s, 0, fence, 1000, &err), SKV_E_FENCED);
	skv_store_close(s);
	servers_stop(&servers);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void bad_urls_are_refused(void **state)
{
	static const char *const bad[] = { "redis:/x",
					   "redis://",
					   "redis://:6379",
					   "redis://h:0",
					   "redis://h:65536",
					   "redis://h:x",
					   "redis://h,",
					   "redis://h/a/b",
					   "redis://h/a b",
					   "redis://h?replicas=x",
					   "redis://h?replicas=65",
					   "redis://h?timeout_ms=9",
					   "redis://h?what=1",
					   "redis://u:%zz@h",
					   "redis://[::1",
					   "redis://u:%00@h",
					   "rediss:/x",
					   "redis://h?ca_file=/ca.pem",
					   "rediss://h?ca_file=",
					   "rediss://h?cert_file=/c.pem",
					   "rediss://h?ca_file=%zz" };
	char many[64 * 2 + 16];
	int n;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		refused_url(bad[i], SKV_E_INVALID, "redis://");
		assert_string_equal(err.field, "store");
	}
	n = snprintf(many, sizeof many, "redis://h");
	for (int i = 0; i < 64; i++)
		n += snprintf(many + n, sizeof many - (size_t)n, ",h");
	refused_url(many, SKV_E_INVALID, "too many addresses");
}

static void what_cannot_keep_blocks_is_refused(void **state)
{
	static const char *const evicts[] = { "--maxmemory", "100mb", "--maxmemory-policy",
					      "allkeys-lru", NULL };
	char url[400];

	(void)state;
	refused_url("redis://127.0.0.1:1/p?timeout_ms=50", SKV_E_STORE_IO, "cannot connect");
	servers_start(&servers, 0, evicts);
	servers_url(&servers, "p", url, sizeof url);
	refused_url(url, SKV_E_UNSUPPORTED, "noeviction");
	assert_string_equal(servers_ask(&servers, 0, "CONFIG SET maxmemory-policy noeviction"),
			    "OK");
	assert_string_equal(servers_ask(&servers, 0, "SET {p.registry}:meta something"), "OK");
	refused_url(url, SKV_E_CORRUPT, "used by something else");
	servers_ask(&servers, 0, "DEL {p.registry}:meta");
	servers_ask(&servers, 0, "HSET {p.registry}:meta format slabkv_99");
	refused_url(url, SKV_E_UNSUPPORTED, "holds 'slabkv_99'");
	servers_stop(&servers);

	servers_start_cluster(&servers, 500);
	servers_ask(&servers, 1, "CLUSTER DELSLOTS 6000");
	servers_signal(&servers, 2, SIGKILL);
	servers_signal(&servers, 5, SIGKILL);
	servers_url(&servers, "p?timeout_ms=1000", url, sizeof url);
	for (int tries = 0;
	     tries < 300 && strstr(servers_ask(&servers, 0, "CLUSTER INFO"), "cluster_state:ok");
	     tries++)
		poll(NULL, 0, 20);
	refused_url(url, SKV_E_STORE_IO, "CLUSTERDOWN");
	servers_stop(&servers);
}

static void a_password_is_said(void **state)
{
	char url[128];

	(void)state;
	servers_start(&servers, 0, NULL);
	assert_string_equal(servers_ask(&servers, 0, "CONFIG SET requirepass open@sesame"), "OK");
	snprintf(url, sizeof url, "redis://127.0.0.1:%u/p?timeout_ms=100", servers.port[0]);
	refused_url(url, SKV_E_FORBIDDEN, "NOAUTH");
	snprintf(url, sizeof url, "redis://:wrong@127.0.0.1:%u/p?timeout_ms=100", servers.port[0]);
	refused_url(url, SKV_E_FORBIDDEN, "wrong");
	snprintf(url, sizeof url, "redis://:open%%40sesame@127.0.0.1:%u/p", servers.port[0]);
	skv_store_close(open_at(url, NULL));
	snprintf(url, sizeof url, "redis://default:open@sesame@127.0.0.1:%u/p", servers.port[0]);
	skv_store_close(open_at(url, NULL));
	servers_stop(&servers);
}

/* ---- TLS ------------------------------------------------------------------------------------- */

/* A URL of server 0, with what follows '?'; '@' stands for the servers' folder. */
static const char *tls_url(const char *scheme, unsigned int port, const char *options)
{
	static char url[512];
	size_t n = (size_t)snprintf(url, sizeof url, "%s://127.0.0.1:%u/p?replicas=0&", scheme,
				    port);

	for (; *options; options++)
		n += *options == '@'
			     ? (size_t)snprintf(url + n, sizeof url - n, "%s/", servers.dir)
			     : (size_t)snprintf(url + n, sizeof url - n, "%c", *options);
	return url;
}
#define FILES "ca_file=@ca.pem&cert_file=@client.pem&key_file=@client.key"

static void copy(const char *from, const char *to)
{
	char command[200];

	snprintf(command, sizeof command, "cp %s/%s %s/%s", servers.dir, from, servers.dir, to);
	assert_int_equal(test_shell(command), 0);
}

static void certificates_are_checked(void **state)
{
	static const struct {
		const char *options, *says;
	} bad[] = {
		{ "ca_file=@other.pem&cert_file=@client.pem&key_file=@client.key",
		  "The certificate issuer is unknown" },
		{ "cert_file=@client.pem&key_file=@client.key", "The certificate issuer is unkn" },
		{ FILES "&server_name=redis.elsewhere", "does not match" },
		{ "ca_file=@ca.pem", "see cert_file" },
		{ "ca_file=@no.pem", "no.pem cannot be used" },
		{ "ca_file=@ca.pem&cert_file=@client.pem&key_file=@server.key", "cannot be used" },
	};

	(void)state;
	servers_use_tls(true);
	servers_start(&servers, 0, NULL);
	servers_use_tls(false);
	skv_store_close(open_at(tls_url("rediss", servers.tls[0], FILES), NULL));
	skv_store_close(open_at(
		tls_url("rediss", servers.tls[0], FILES "&server_name=redis.example"), NULL));
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		char options[200];

		snprintf(options, sizeof options, "timeout_ms=1000&%s", bad[i].options);
		refused_url(tls_url("rediss", servers.tls[0], options), SKV_E_STORE_IO,
			    bad[i].says);
	}
	refused_url(tls_url("rediss", servers.port[0], "timeout_ms=100&" FILES), SKV_E_STORE_IO,
		"is this a plain port?");
	refused_url(tls_url("redis", servers.tls[0], "timeout_ms=1000"), SKV_E_STORE_IO,
		"the URL begins with rediss://");
	servers_stop(&servers);
}

/* Files are read for each connection: other certificates need no restart. */
static void certificates_are_renewed(void **state)
{
	struct skv_store *s;
	uint64_t fence;

	(void)state;
	servers_use_tls(true);
	servers_start(&servers, 0, NULL);
	servers_use_tls(false);
	copy("ca.pem", "mine.pem");
	s = open_at(tls_url("rediss", servers.tls[0],
			    "timeout_ms=2000&ca_file=@mine.pem&cert_file=@client.pem&"
			    "key_file=@client.key"),
		    NULL);
	fence = acquire(s);
	appended(s, fence, 1);
	copy("other.pem", "mine.pem");
	appended(s, fence, 2); /* an open connection goes on */
	(void)servers_ask(&servers, 0, "CLIENT KILL TYPE normal");
	assert_int_not_equal(append(s, fence, 3), SKV_OK); /* there is none to be had */
	copy("ca.pem", "mine.pem");
	assert_int_equal(newest(s), 2);
	appended(s, fence, 3);
	skv_store_close(s);
	servers_stop(&servers);
}

static void over_tls_a_primarys_death_loses_nothing(void **state)
{
	servers_use_tls(true);
	a_cluster_elects_and_nothing_is_lost(state);
	a_replica_is_elected_at_once(state);
	a_silent_replica_holds_everything_up(state);
	servers_use_tls(false);
}

static void what_is_left_is_kept_for_deletions(void **state)
{
	static const char *const small[] = { "--maxmemory", "20mb", NULL };
	struct skv_store *s = NULL;
	uint64_t fence, seq = 0;
	char url[400], *bytes = calloc(1, 1 << 20);
	struct skv_store_options o = { .path = url, .reserve_bytes = 6 << 20 };
	struct skv_store_stats st;
	int rc;

	(void)state;
	servers_start(&servers, 0, small);
	servers_url(&servers, "p?replicas=0&timeout_ms=20000", url, sizeof url);
	assert_int_equal(skv_store_open(&skv_store_redis, &o, &s, &err), SKV_OK);
	fence = acquire(s);
	do {
		rc = skv_store_append(s, 0, fence, seq + 1, bytes, 1 << 20, 0, &err);
		seq += rc == SKV_OK;
		poll(NULL, 0, 120); /* it looks once a second */
	} while (rc == SKV_OK && seq < 40);
	assert_int_equal(rc, SKV_E_STORE_FULL);
	assert_int_equal(skv_store_append(s, 0, fence, seq + 1, "x", 1, SKV_APPEND_URGENT, &err),
			 SKV_OK);
	assert_int_equal(skv_store_stats_get(s, 0, &st, &err), SKV_OK);
	assert_true(st.free_bytes < 14 << 20);
	do /* until that is gone, too */
		rc = skv_store_append(s, 0, fence, ++seq + 1, bytes, 1 << 20, SKV_APPEND_URGENT,
				      &err);
	while (rc == SKV_OK && seq < 60);
	assert_int_equal(rc, SKV_E_STORE_FULL);
	assert_non_null(strstr(err.message, "maxmemory"));
	free(bytes);
	skv_store_close(s);
	servers_stop(&servers);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_urls_are_refused),
		cmocka_unit_test(a_silent_replica_holds_everything_up),
		cmocka_unit_test(a_sync_covers_what_another_connection_wrote),
		cmocka_unit_test(a_partition_that_was_handed_over_fails_no_sync),
		cmocka_unit_test(without_a_replica_nothing_is_acknowledged),
		cmocka_unit_test(a_replica_that_stood_has_lost_nothing_that_was_told),
		cmocka_unit_test(a_lost_answer_is_no_unknown_outcome),
		cmocka_unit_test(a_cluster_elects_and_nothing_is_lost),
		cmocka_unit_test(a_replica_is_elected_at_once),
		cmocka_unit_test(a_store_that_went_back_is_told_apart),
		cmocka_unit_test(what_is_lost_is_restored),
		cmocka_unit_test(a_registry_that_went_back_is_known),
		cmocka_unit_test(processes_that_acknowledged_are_known),
		cmocka_unit_test(partitions_begin_at_once),
		cmocka_unit_test(a_lease_of_another_host_is_waited_out),
		cmocka_unit_test(a_fence_is_its_nonce_too),
		cmocka_unit_test(what_cannot_keep_blocks_is_refused),
		cmocka_unit_test(a_password_is_said),
		cmocka_unit_test(certificates_are_checked),
		cmocka_unit_test(certificates_are_renewed),
		cmocka_unit_test(over_tls_a_primarys_death_loses_nothing),
		cmocka_unit_test(what_is_left_is_kept_for_deletions),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	if (!servers_available())
		return 77;
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
