/*
 * test_owners.c - owner files of a directory: created exclusively, read whole, swept; and how
 * little anybody else may do with what a storage makes.
 */
#include "bench_dir.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct skv_storage_owner owner(uint64_t incarnation, uint8_t nonce)
{
	struct skv_storage_owner o = { .incarnation = incarnation };

	memset(o.nonce, nonce, sizeof o.nonce);
	return o;
}

static uint32_t owners(struct skv_storage *s, struct skv_storage_owner v[SKV_STORAGE_OWNERS])
{
	uint32_t n = 0;

	assert_int_equal(skv_storage_owners(s, NULL, v, &n, NULL), SKV_OK);
	return n;
}

static void a_name_is_claimed_once(void **state)
{
	struct skv_storage_owner v[SKV_STORAGE_OWNERS], a = owner(7, 1), b = owner(7, 2),
							c = owner(12, 3);
	struct bench *bench = *state;
	struct skv_storage *s = bench_open(bench);

	assert_int_equal(owners(s, v), 0);
	assert_int_equal(skv_storage_claim(s, &a, &bench->err), SKV_OK);
	assert_int_equal(skv_storage_claim(s, &a, &bench->err), SKV_OK); /* again */
	assert_int_equal(skv_storage_claim(s, &b, &bench->err), SKV_E_CONFLICT);
	assert_int_equal(skv_storage_claim(s, &c, &bench->err), SKV_OK);
	assert_true(bench_has(bench, "owner.7"));
	assert_int_equal(owners(s, v), 2);
	assert_memory_equal(&v[0], &c, sizeof c);
	assert_memory_equal(&v[1], &a, sizeof a);
	assert_int_equal(skv_storage_disown(s, &b, &bench->err), SKV_OK); /* not b's */
	assert_int_equal(owners(s, v), 2);
	assert_int_equal(skv_storage_disown(s, &a, &bench->err), SKV_OK);
	assert_int_equal(skv_storage_disown(s, &a, &bench->err), SKV_OK);
	assert_int_equal(owners(s, v), 1);
	assert_int_equal(v[0].incarnation, 12);
	skv_storage_close(s);
	/* The directory opens with them there. */
	bench->config.may_create = false;
	skv_storage_close(bench_open(bench));
}

static void what_is_not_whole_is_nobodys(void **state)
{
	struct skv_storage_owner v[SKV_STORAGE_OWNERS], a = owner(3, 9);
	struct bench *b = *state;
	struct skv_storage *s = bench_open(b);

	bench_write(b, "owner.3", "SKVOWN1\n", 8); /* the file's maker died */
	bench_write(b, "owner.03", "x", 1);
	bench_write(b, "owner.x", "x", 1);
	assert_int_equal(owners(s, v), 0);
	assert_int_equal(skv_storage_claim(s, &a, &b->err), SKV_E_IN_USE);
	assert_int_equal(skv_storage_disown(s, &a, &b->err), SKV_OK);
	assert_true(bench_has(b, "owner.3"));
	a.incarnation = 4;
	assert_int_equal(skv_storage_claim(s, &a, &b->err), SKV_OK);
	bench_flip(b, "owner.4", 33); /* damaged: another's, rather than nobody's */
	assert_int_equal(owners(s, v), 1);
	assert_memory_equal(v[0].nonce, (uint8_t[SKV_STORAGE_NONCE]){ 0 }, SKV_STORAGE_NONCE);
	assert_int_equal(skv_storage_claim(s, &a, &b->err), SKV_E_CONFLICT);
	a = owner(3, 0); /* a maker removes its damaged or incomplete file, and only that */
	assert_int_equal(skv_storage_disown(s, &a, &b->err), SKV_OK);
	assert_false(bench_has(b, "owner.3"));
	a.incarnation = 4;
	assert_int_equal(skv_storage_disown(s, &a, &b->err), SKV_OK);
	assert_false(bench_has(b, "owner.4"));
	a = owner(4, 9);
	assert_int_equal(skv_storage_claim(s, &a, &b->err), SKV_OK);
	a = owner(4, 0);
	assert_int_equal(skv_storage_disown(s, &a, &b->err), SKV_OK);
	assert_true(bench_has(b, "owner.4"));
	a.incarnation = 0;
	assert_int_equal(skv_storage_claim(s, &a, &b->err), SKV_E_INVALID);
	a = owner(5, 0);
	assert_int_equal(skv_storage_claim(s, &a, &b->err), SKV_E_INVALID);
	skv_storage_close(s);
}

/* A write of a horizon that is cut off leaves the one before. */
static void a_horizon_moves_on(void **state)
{
	struct skv_storage_owner v[SKV_STORAGE_OWNERS], a = owner(7, 1);
	struct bench *b = *state;
	struct skv_storage *s = bench_open(b);

	for (uint64_t number = 1; number <= 3; number++) {
		a.horizon = (struct skv_storage_horizon){ 9, number, 100 * number };
		assert_int_equal(skv_storage_claim(s, &a, &b->err), SKV_OK);
		assert_int_equal(owners(s, v), 1);
		assert_memory_equal(&v[0], &a, sizeof a);
	}
	a.horizon.number = 2; /* the horizon never goes back */
	assert_int_equal(skv_storage_claim(s, &a, &b->err), SKV_OK);
	assert_int_equal(owners(s, v), 1);
	assert_int_equal(v[0].horizon.number, 3);
	bench_flip(b, "owner.7", 64 + 8); /* the first of both: 1 and then 3 were there */
	assert_int_equal(owners(s, v), 1);
	assert_int_equal(v[0].horizon.number, 2);
	assert_memory_equal(v[0].nonce, a.nonce, sizeof a.nonce);
	skv_storage_close(s);
}

static void too_many_are_an_error(void **state)
{
	struct skv_storage_owner v[SKV_STORAGE_OWNERS], o;
	struct bench *b = *state;
	struct skv_storage *s = bench_open(b);
	uint32_t n;

	for (uint64_t i = 1; i <= SKV_STORAGE_OWNERS; i++) {
		o = owner(i, 1);
		assert_int_equal(skv_storage_claim(s, &o, &b->err), SKV_OK);
	}
	assert_int_equal(owners(s, v), SKV_STORAGE_OWNERS);
	o = owner(SKV_STORAGE_OWNERS + 1, 1);
	assert_int_equal(skv_storage_claim(s, &o, &b->err), SKV_OK);
	assert_int_equal(skv_storage_owners(s, NULL, v, &n, &b->err), SKV_E_TOO_MANY);
	skv_storage_close(s);
}

#define RACERS 8
struct racer {
	struct skv_storage *s;
	pthread_barrier_t *gun;
	struct skv_storage_owner o;
	int rc;
};

static void *race(void *arg)
{
	struct racer *r = arg;

	pthread_barrier_wait(r->gun);
	r->rc = skv_storage_claim(r->s, &r->o, NULL);
	return NULL;
}

/* The losers see the winner's record whole, or that it is being written. */
static void of_many_at_once_one_has_it(void **state)
{
	struct bench *b = *state;
	struct skv_storage *s = bench_open(b);

	for (uint64_t round = 1; round <= 40; round++) {
		pthread_barrier_t gun;
		struct racer r[RACERS];
		pthread_t t[RACERS];
		int won = 0;

		pthread_barrier_init(&gun, NULL, RACERS);
		for (int i = 0; i < RACERS; i++) {
			r[i] = (struct racer){ s, &gun, owner(round, (uint8_t)(i + 1)), 0 };
			assert_int_equal(pthread_create(&t[i], NULL, race, &r[i]), 0);
		}
		for (int i = 0; i < RACERS; i++) {
			pthread_join(t[i], NULL);
			won += r[i].rc == SKV_OK;
			assert_true(r[i].rc == SKV_OK || r[i].rc == SKV_E_CONFLICT ||
				    r[i].rc == SKV_E_IN_USE);
		}
		assert_int_equal(won, 1);
		pthread_barrier_destroy(&gun);
	}
	skv_storage_close(s);
}

/* ---- modes ----------------------------------------------------------------------------------- */

static mode_t mode_of(struct bench *b, const char *name)
{
	struct stat st;

	assert_int_equal(stat(bench_path(b, name), &st), 0);
	return st.st_mode & 07777;
}

static void files_are_0660_at_most_whatever_the_umask(void **state)
{
	static const struct {
		mode_t umask, file;
	} v[] = { { 0, 0660 }, { 022, 0640 }, { 077, 0600 } };
	const struct skv_storage_owner o = owner(1, 1);
	struct bench *b = *state;
	mode_t old = umask(0);

	for (size_t i = 0; i < sizeof v / sizeof v[0]; i++) {
		struct skv_storage *s;

		umask(v[i].umask);
		s = bench_open(b);
		assert_int_equal(skv_storage_create_file(s, 0, LENGTH, &b->err), SKV_OK);
		assert_int_equal(skv_storage_claim(s, &o, &b->err), SKV_OK);
		assert_int_equal(mode_of(b, "slab-00000000.kvs"), v[i].file);
		assert_int_equal(mode_of(b, "owner.1"), v[i].file);
		assert_int_equal(mode_of(b, ".slabkv-probe"), v[i].file);
		assert_int_equal(mode_of(b, SKV_STORAGE_MARKER), v[i].file);
		assert_int_equal(mode_of(b, ".") & 07, 0);
		skv_storage_close(s);
		unlink(bench_path(b, "slab-00000000.kvs"));
		unlink(bench_path(b, "owner.1"));
		unlink(bench_path(b, ".slabkv-probe"));
		unlink(bench_path(b, SKV_STORAGE_MARKER));
		unlink(bench_path(b, SKV_STORAGE_LINK));
		assert_int_equal(rmdir(b->root), 0);
	}
	umask(old);
}

static void a_hard_linked_probe_file_is_not_written_through(void **state)
{
	struct bench *b = *state;
	struct skv_storage_health h;
	struct skv_storage *s = bench_open(b);
	char precious[128], text[16] = { 0 };
	FILE *f;

	snprintf(precious, sizeof precious, "%s/precious", b->top);
	f = fopen(precious, "w");
	assert_non_null(f);
	fputs("do not touch", f);
	fclose(f);
	assert_int_equal(unlink(bench_path(b, ".slabkv-probe")), 0);
	assert_int_equal(link(precious, bench_path(b, ".slabkv-probe")), 0);
	assert_int_equal(skv_storage_probe(s, SKV_PROBE_WRITE, &h, &b->err), SKV_OK);
	f = fopen(precious, "r");
	assert_non_null(f);
	assert_int_equal(fread(text, 1, sizeof text, f), 12);
	fclose(f);
	assert_string_equal(text, "do not touch");
	unlink(precious);
	skv_storage_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_name_is_claimed_once, bench_setup,
						bench_teardown),
		{ "a_name_is_claimed_once (hf3fs)", a_name_is_claimed_once, bench_setup_hf3fs,
		  bench_teardown, NULL },
		cmocka_unit_test_setup_teardown(what_is_not_whole_is_nobodys, bench_setup,
						bench_teardown),
		cmocka_unit_test_setup_teardown(a_horizon_moves_on, bench_setup, bench_teardown),
		cmocka_unit_test_setup_teardown(too_many_are_an_error, bench_setup, bench_teardown),
		cmocka_unit_test_setup_teardown(of_many_at_once_one_has_it, bench_setup,
						bench_teardown),
		cmocka_unit_test_setup_teardown(files_are_0660_at_most_whatever_the_umask,
						bench_setup, bench_teardown),
		cmocka_unit_test_setup_teardown(a_hard_linked_probe_file_is_not_written_through,
						bench_setup, bench_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
