/* test_owners.c - the library's map of owners, alone, and what calls do with it. */
#include "fixture.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define A "http://a:1"
#define B "http://b:1"
#define M "/v1/instances/m/lookup"
#define SESSION_OF(partition) "/v1/sessions/" partition "0000000000000000000000000000ab/finish"

/* ---- the map --------------------------------------------------------------------------------- */

static void learn(struct skv_owners *o, const char *path, uint32_t partition, uint64_t epoch,
		  const char *url)
{
	const struct skv_owner_note n = { .partition = partition, .epoch = epoch };

	skv_owners_learn(o, path, &n, url);
}

static const char *owner(struct skv_owners *o, const char *path)
{
	static char url[SKV_NOTE_URL];

	return skv_owners_find(o, path, url) ? url : "";
}

static void a_greater_epoch_wins(void **state)
{
	struct skv_owners *o = skv_owners_create();

	(void)state;
	assert_string_equal(owner(o, M), "");
	learn(o, M, 3, 5, A);
	assert_string_equal(owner(o, M), A);
	learn(o, M, 3, 4, B);
	assert_string_equal(owner(o, M), A);
	learn(o, M, 3, 5, B);
	assert_string_equal(owner(o, M), A);
	learn(o, M, 3, 6, B);
	assert_string_equal(owner(o, M), B);
	learn(o, M, 3, 5, A); /* a delayed answer */
	assert_string_equal(owner(o, M), B);
	learn(o, M, 3, 7, B);
	learn(o, M, 3, 6, A);
	assert_string_equal(owner(o, M), B);
	skv_owners_destroy(o);
	skv_owners_destroy(NULL);
}

static void all_paths_of_an_instance_are_one(void **state)
{
	struct skv_owners *o = skv_owners_create();

	(void)state;
	learn(o, M, 3, 5, A);
	assert_string_equal(owner(o, "/v1/instances/m"), A);
	assert_string_equal(owner(o, "/v1/instances/m/pins?cursor=1"), A);
	assert_string_equal(owner(o, "/v1/instances/mm/lookup"), "");
	assert_string_equal(owner(o, "/v1/instances/"), "");
	assert_string_equal(owner(o, "/v1/instances"), "");
	assert_string_equal(owner(o, "/v1/groups/m"), "");
	assert_string_equal(owner(o, "/v1/match"), "");
	learn(o, "/v1/instances/a%2Fb", 4, 1, B);
	assert_string_equal(owner(o, "/v1/instances/a%2Fb/start"), B);
	assert_string_equal(owner(o, "/v1/instances/a/start"), "");
	skv_owners_destroy(o);
}

static void ids_name_their_partition(void **state)
{
	struct skv_owners *o = skv_owners_create();

	(void)state;
	learn(o, M, 0x1f, 5, A);
	assert_string_equal(owner(o, SESSION_OF("1f")), A);
	assert_string_equal(owner(o, "/v1/moves/1f0000000000000000000000000000ab/finish"), A);
	assert_string_equal(owner(o, SESSION_OF("1e")), "");
	assert_string_equal(owner(o, SESSION_OF("1f0")), "");
	assert_string_equal(owner(o, "/v1/moves/take"), "");
	learn(o, SESSION_OF("ff"), 255, 1, B);
	assert_string_equal(owner(o, SESSION_OF("ff")), B);
	skv_owners_destroy(o);
}

/* A report of others about an owner only locates the instance. */
static void hearsay_is_not_kept(void **state)
{
	struct skv_owners *o = skv_owners_create();

	(void)state;
	learn(o, M, 3, 0, A);
	assert_string_equal(owner(o, M), "");
	learn(o, SESSION_OF("03"), 3, 9, B);
	assert_string_equal(owner(o, M), B);
	learn(o, M, 3, 0, A);
	assert_string_equal(owner(o, M), B);
	skv_owners_destroy(o);
}

static void what_is_wrong_is_forgotten(void **state)
{
	struct skv_owners *o = skv_owners_create();

	(void)state;
	learn(o, M, 3, 5, A);
	learn(o, "/v1/instances/n", 4, 5, A);
	learn(o, "/v1/instances/other", 5, 5, B);
	skv_owners_forget(o, M, B); /* B never was the owner */
	assert_string_equal(owner(o, M), A);
	skv_owners_forget(o, "/v1/match", A);
	skv_owners_forget(o, M, A);
	assert_string_equal(owner(o, M), "");
	assert_string_equal(owner(o, "/v1/instances/n"), A);
	/* a store that was restored counts anew: an owner that answers is one */
	learn(o, M, 3, 2, B);
	assert_string_equal(owner(o, M), B);
	learn(o, M, 3, 6, A);
	skv_owners_forget(o, NULL, A);
	assert_string_equal(owner(o, M), "");
	assert_string_equal(owner(o, "/v1/instances/n"), "");
	assert_string_equal(owner(o, "/v1/instances/other"), B);
	skv_owners_destroy(o);
}

/* Newer names take the places of older ones; none leads to another one's partition. */
static void names_are_bounded(void **state)
{
	struct skv_owners *o = skv_owners_create();
	uint32_t known = 0;
	char path[64], url[SKV_NOTE_URL + 1];

	(void)state;
	for (uint32_t i = 0; i < 100000; i++) {
		snprintf(path, sizeof path, "/v1/instances/name-%u", i);
		snprintf(url, sizeof url, "http://owner-%u:1", i % 256);
		learn(o, path, i % 256, 1, url);
	}
	for (uint32_t i = 0; i < 100000; i++) {
		snprintf(path, sizeof path, "/v1/instances/name-%u/lookup", i);
		snprintf(url, sizeof url, "http://owner-%u:1", i % 256);
		if (*owner(o, path)) {
			assert_string_equal(owner(o, path), url);
			known++;
		}
	}
	assert_in_range(known, 512, 1024);
	memset(url, 'a', sizeof url - 1);
	url[sizeof url - 1] = '\0';
	skv_owners_forget(o, NULL, "http://owner-3:1");
	learn(o, M, 3, 1, url);
	assert_string_equal(owner(o, M), "");
	skv_owners_destroy(o);
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Three managers, of which the last one answers, and tells `note` of itself. */
struct three {
	struct fixture *f;
	struct standin a, b;
};

static void begin(struct three *t, void **state, const char *note)
{
	t->f = *state;
	standin_start_failing(&t->a, SKV_E_NOT_OWNER);
	standin_start_failing(&t->b, SKV_E_NOT_OWNER);
	t->f->s.note = note;
	t->f->urls[0] = t->a.url;
	t->f->urls[1] = t->b.url;
	t->f->urls[2] = t->f->s.url;
	t->f->o.n_urls = 3;
	t->f->o.rounds = 1;
	fixture_reopen(t->f, NULL, NULL);
}

static void end(struct three *t)
{
	standin_stop(&t->a);
	standin_stop(&t->b);
}

static uint32_t wrong(const struct three *t) { return t->a.requests + t->b.requests; }

static int lookup(struct fixture *f)
{
	const struct slabkv_locations *found = NULL;
	struct set b;
	int rc;

	set_init(&b, 1, 1);
	rc = slabkv_lookup(f->kv, "m", &b.keys, NULL, &found, &b.err);
	slabkv_free(found);
	set_free(&b);
	return rc;
}

static int match(struct fixture *f)
{
	const char *const name = "m";
	uint32_t matched;
	struct set b;
	int rc;

	set_init(&b, 1, 1);
	rc = slabkv_match(f->kv, &name, 1, &b.keys, &matched, &b.err);
	set_free(&b);
	return rc;
}

static void calls_go_to_the_owner(void **state)
{
	struct three t;

	begin(&t, state, "3 7");
	assert_int_equal(lookup(t.f), SLABKV_OK);
	assert_int_equal(wrong(&t), 2);
	t.f->kv->current = 0; /* another instance's owner was asked in between */
	assert_int_equal(lookup(t.f), SLABKV_OK);
	assert_int_equal(match(t.f), SLABKV_OK);
	assert_int_equal(wrong(&t), 2);
	assert_int_equal(t.f->kv->current, 0);
	end(&t);
}

static void without_a_note_they_are_asked_in_turn(void **state)
{
	static char endless[2000];
	static const char *const none[] = { NULL, "3", "3 7x", "256 1", "",
					    "3 0 http://127.0.0.1:1", endless };
	struct three t;

	memset(endless, ' ', sizeof endless - 2);
	memcpy(endless, "3 7", 3);
	endless[sizeof endless - 2] = '.';

	for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
		begin(&t, state, none[i]);
		for (uint32_t k = 1; k <= 3; k++) {
			t.f->kv->current = 0;
			assert_int_equal(lookup(t.f), SLABKV_OK);
			assert_int_equal(wrong(&t), 2 * k);
		}
		end(&t);
	}
}

/* A tip leads there at once, also to one that was not named. */
static void a_tip_is_followed(void **state)
{
	char tip[SKV_NOTE_MAX];
	struct three t;

	begin(&t, state, "3 7");
	snprintf(tip, sizeof tip, "3 0 %s", t.f->s.url);
	t.a.note = tip;
	t.f->o.n_urls = 2;
	fixture_reopen(t.f, NULL, NULL);
	assert_int_equal(lookup(t.f), SLABKV_OK);
	assert_int_equal(t.a.requests, 1);
	assert_int_equal(lookup(t.f), SLABKV_OK); /* and its answer is kept */
	assert_int_equal(wrong(&t), 1);
	assert_int_equal(t.f->s.lookups, 2);
	end(&t);
}

/* Over another scheme than those that were named: never, nor if these differ. */
static void no_tip_leads_to_another_scheme(void **state)
{
	char tip[SKV_NOTE_MAX], secure[80];
	struct three t;

	begin(&t, state, "3 7");
	snprintf(secure, sizeof secure, "https%s", t.f->s.url + 4);
	snprintf(tip, sizeof tip, "3 0 %s", t.f->s.url);
	t.a.note = tip;
	t.f->urls[1] = secure;
	t.f->o.n_urls = 2;
	fixture_reopen(t.f, NULL, NULL);
	assert_int_not_equal(lookup(t.f), SLABKV_OK);
	assert_int_equal(t.f->s.lookups, 0);
	snprintf(tip, sizeof tip, "3 0 %s", secure);
	t.f->urls[1] = t.b.url;
	fixture_reopen(t.f, NULL, NULL);
	assert_int_equal(lookup(t.f), SLABKV_E_NOT_OWNER);
	assert_int_equal(t.b.requests, 1); /* nobody was asked in between */
	assert_int_equal(t.f->s.lookups, 0);
	end(&t);
}

/* Two that send to each other end with the round. */
static void tips_are_bounded(void **state)
{
	char to_a[SKV_NOTE_MAX], to_b[SKV_NOTE_MAX];
	struct three t;

	begin(&t, state, NULL);
	snprintf(to_a, sizeof to_a, "3 0 %s", t.a.url);
	snprintf(to_b, sizeof to_b, "3 0 %s", t.b.url);
	t.a.note = to_b;
	t.b.note = to_a;
	assert_int_equal(lookup(t.f), SLABKV_OK);
	assert_in_range(wrong(&t), 2, 6);
	end(&t);
}

/* The owner is gone, or owns it no more: it is asked once, then the others. */
static void who_does_not_own_it_is_left(void **state)
{
	struct fixture *f = *state;
	struct standin gone;
	struct three t;

	begin(&t, state, "3 9");
	standin_start(&gone);
	learn(f->kv->owners, M, 3, 8, gone.url);
	gone.fail_op = "*";
	gone.fail_status = SKV_E_NOT_OWNER;
	gone.fail_count = UINT32_MAX;
	f->kv->current = 2;
	assert_int_equal(lookup(f), SLABKV_OK);
	assert_int_equal(lookup(f), SLABKV_OK);
	assert_int_equal(gone.requests, 1);
	learn(f->kv->owners, M, 3, 10, gone.url);
	standin_stop(&gone);
	assert_int_equal(lookup(f), SLABKV_OK);
	assert_string_equal(owner(f->kv->owners, M), f->s.url);
	assert_int_equal(wrong(&t), 0);
	end(&t);
}

/* Opens a port. One that listens accepts connections and never answers; another refuses them. */
static int open_port(bool listens, char url[64])
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t n = sizeof at;
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
	if (listens)
		assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
	snprintf(url, 64, "http://127.0.0.1:%u", ntohs(at.sin_port));
	return fd;
}

/* A hanging manager costs a single hedge, not one for each of its partitions. */
static void who_hangs_is_left(void **state)
{
	struct fixture *f = *state;
	char url[64];
	const int fd = open_port(true, url);
	struct three t;

	f->o.hedge_ms = 50;
	f->o.timeout_ms = 60000;
	begin(&t, state, "3 9");
	learn(f->kv->owners, M, 3, 8, url);
	learn(f->kv->owners, "/v1/instances/n", 4, 8, url);
	f->kv->current = 2;
	assert_int_equal(lookup(f), SLABKV_OK);
	assert_string_equal(owner(f->kv->owners, M), f->s.url);
	assert_string_equal(owner(f->kv->owners, "/v1/instances/n"), "");
	end(&t);
	close(fd);
}

/* Of the three only the last one reaches the owner, and forwards calls to it. */
static void others_forward(struct three *t, const char *url, void **state)
{
	static char tip[SKV_NOTE_MAX];

	snprintf(tip, sizeof tip, "3 0 %s", url);
	begin(t, state, tip);
	t->a.note = t->b.note = tip;
	t->f->s.fail_op = "*";
	t->f->s.fail_status = SKV_E_NOT_OWNER;
	t->f->s.fail_count = UINT32_MAX;
	t->f->s.forwards = true;
	learn(t->f->kv->owners, M, 3, 8, url);
}

/* The first call finds that out, those that follow are forwarded at once. */
static void forwarded(struct three *t)
{
	uint32_t requests;

	assert_int_equal(lookup(t->f), SLABKV_OK);
	requests = t->f->s.requests + wrong(t);
	assert_int_equal(lookup(t->f), SLABKV_OK);
	assert_int_equal(t->f->s.requests + wrong(t), requests + 1);
	end(t);
}

static void others_reach_an_owner_that_refuses_connections(void **state)
{
	struct three t;
	char url[64];
	const int fd = open_port(false, url);

	others_forward(&t, url, state);
	forwarded(&t);
	close(fd);
}

static void others_reach_an_owner_that_never_answers(void **state)
{
	struct fixture *f = *state;
	struct three t;
	char url[64];
	const int fd = open_port(true, url);

	f->o.hedge_ms = 50;
	f->o.timeout_ms = 60000;
	others_forward(&t, url, state);
	f->kv->current = 2;
	forwarded(&t);
	close(fd);
}

/* slabkv_try_for: one request, to whoever would be asked first; the next one is as ever. */
static void a_short_try_is_one_request(void **state)
{
	struct fixture *f = *state;
	struct three t;
	char url[64];
	const int fd = open_port(true, url);

	begin(&t, state, "3 7");
	slabkv_try_for(60000);
	assert_int_equal(lookup(f), SLABKV_E_TIMEOUT);
	assert_int_equal(wrong(&t), 1);
	assert_int_equal(lookup(f), SLABKV_OK);
	assert_int_equal(wrong(&t), 3);
	slabkv_try_for(60000);
	assert_int_equal(lookup(f), SLABKV_OK);
	assert_int_equal(wrong(&t), 3);
	learn(f->kv->owners, M, 3, 8, url);
	slabkv_try_for(50);
	assert_int_equal(lookup(f), SLABKV_E_TIMEOUT);
	assert_string_equal(owner(f->kv->owners, M), url); /* the call had little time */
	assert_int_equal(wrong(&t), 3);
	end(&t);
	close(fd);
}

static void a_single_manager_need_not_tell(void **state)
{
	struct fixture *f = *state;

	f->s.note = "3 7";
	assert_null(f->kv->owners);
	assert_int_equal(lookup(f), SLABKV_OK);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_greater_epoch_wins),
		cmocka_unit_test(all_paths_of_an_instance_are_one),
		cmocka_unit_test(ids_name_their_partition),
		cmocka_unit_test(hearsay_is_not_kept),
		cmocka_unit_test(what_is_wrong_is_forgotten),
		cmocka_unit_test(names_are_bounded),
		T(calls_go_to_the_owner),
		T(without_a_note_they_are_asked_in_turn),
		T(a_tip_is_followed),
		T(no_tip_leads_to_another_scheme),
		T(tips_are_bounded),
		T(who_does_not_own_it_is_left),
		T(who_hangs_is_left),
		T(others_reach_an_owner_that_refuses_connections),
		T(others_reach_an_owner_that_never_answers),
		T(a_short_try_is_one_request),
		T(a_single_manager_need_not_tell),
	};
#undef T

	return cmocka_run_group_tests(tests, NULL, NULL);
}
