/*
 * test_late.c - put and get end in time: with a file system that does not answer, where a block
 * then goes, who has its memory, and with a manager that does not answer.
 *
 * The stand-in's directory counts as one of the network here (skv_engine_may_hang is wrapped), and
 * the engine holds requests at the gate below.
 */
#include "fixture.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <skv/clock.h>

#define IO_MS 600u
#define SOON_MS 1500u /* the most that a call may take: IO_MS and a slow machine */

bool __wrap_skv_engine_may_hang(int fd);

static bool network;

bool __wrap_skv_engine_may_hang(int fd)
{
	(void)fd;
	return network;
}

/* ---- an engine whose requests below an offset hang, or fail ---------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static uint64_t hang_below, fail_below;
static uint32_t hung;
static struct skv_engine_ops gated;

static void pass(const struct skv_io_run *r)
{
	pthread_mutex_lock(&lock);
	hung += r->offset < hang_below;
	while (r->offset < hang_below)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

static void move(struct skv_engine *e, struct skv_io_run *runs, uint32_t n,
		 const struct skv_io_call *by, bool write)
{
	for (uint32_t i = 0; i < n; i++) {
		pass(&runs[i]);
		if (runs[i].offset < fail_below)
			runs[i].status = SKV_E_IO;
		else
			(write ? skv_engine_posix.write
			       : skv_engine_posix.read)(e, &runs[i], 1, by);
	}
}

static void gated_read(struct skv_engine *e, struct skv_io_run *runs, uint32_t n,
		       const struct skv_io_call *by)
{
	move(e, runs, n, by, false);
}

static void gated_write(struct skv_engine *e, struct skv_io_run *runs, uint32_t n,
			const struct skv_io_call *by)
{
	move(e, runs, n, by, true);
}

static int gated_create(const struct skv_engine_options *o, struct skv_engine **out,
			struct skv_error *err)
{
	int rc = skv_engine_posix.create(o, out, err);

	if (rc == SKV_OK)
		(*out)->ops = &gated;
	return rc;
}

/* All requests pass again; waits until the threads left behind have ended. */
static void open_gate(struct slabkv *kv)
{
	pthread_mutex_lock(&lock);
	hang_below = fail_below = 0;
	hung = 0;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	while (kv && atomic_load(&kv->users) > 1)
		poll(NULL, 0, 1);
}

static void begin(struct fixture *f, bool may_hang)
{
	gated = skv_engine_posix;
	gated.create = gated_create;
	gated.read = gated_read;
	gated.write = gated_write;
	network = may_hang;
	f->o.io_timeout_ms = IO_MS;
	fixture_reopen(f, NULL, &gated);
}

static uint64_t began_us;

static void time_begins(void) { began_us = skv_now_us(); }

static void in_time(uint64_t least_ms)
{
	const uint64_t took_ms = (skv_now_us() - began_us) / 1000;

	assert_true(took_ms >= least_ms);
	if (took_ms > SOON_MS)
		fail_msg("it took %llu ms", (unsigned long long)took_ms);
}

/* ---- the tests ------------------------------------------------------------------------------- */

static void bytes_of_a_network_are_the_same(void **state)
{
	struct fixture *f = *state;
	struct set b;

	begin(f, true);
	set_init(&b, 1, 5);
	set_fill(&b);
	assert_int_equal(set_put(f, &b), SLABKV_OK);
	assert_int_equal(b.io.done, 5);
	set_clear(&b);
	assert_int_equal(set_get(f, &b, SLABKV_PREFIX), SLABKV_OK);
	assert_int_equal(b.io.done, 5);
	for (uint32_t i = 0; i < 5; i++)
		assert_true(set_right(&b, i));
	assert_int_equal(atomic_load(&f->kv->users), 1);
	set_free(&b);
}

static void a_put_that_hangs_goes_to_another_storage(void **state)
{
	struct fixture *f = *state;
	struct set b;

	begin(f, true);
	f->s.two_storages = true;
	set_init(&b, 1, 4);
	set_fill(&b);
	hang_below = f->s.next_offset + 4 * FIX_BYTES;
	time_begins();
	assert_int_equal(set_put(f, &b), SLABKV_OK);
	in_time(IO_MS / 2 - 50);
	assert_int_equal(b.io.done, 4);
	assert_int_equal(b.io.failed, 0);
	assert_int_equal(b.err.code, SLABKV_OK);
	assert_int_equal(f->s.starts, 2);
	assert_int_equal(f->s.aborts, 1);
	assert_false(f->s.last_abort_quiesced);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(b.blocks[i].result, SLABKV_WRITTEN);
		assert_int_equal(standin_find(&f->s, "m", 1 + i)->file, 1);
	}
	set_free(&b); /* hanging requests have bytes of their own */
	open_gate(f->kv);
	set_init(&b, 1, 4);
	assert_int_equal(set_get(f, &b, SLABKV_PREFIX), SLABKV_OK);
	for (uint32_t i = 0; i < 4; i++)
		assert_true(set_right(&b, i));
	set_free(&b);
}

static void a_put_that_fails_goes_to_another_storage(void **state)
{
	struct fixture *f = *state;
	struct set b;

	begin(f, false);
	f->s.two_storages = true;
	f->s.gap = 512; /* a run for each block */
	set_init(&b, 1, 4);
	set_fill(&b);
	fail_below = f->s.next_offset + FIX_BYTES; /* the first */
	assert_int_equal(set_put(f, &b), SLABKV_OK);
	assert_int_equal(b.io.done, 4);
	assert_int_equal(b.io.failed, 0);
	assert_int_equal(b.io.bytes, 4 * FIX_BYTES);
	assert_int_equal(b.err.code, SLABKV_OK);
	assert_int_equal(f->s.finishes, 2);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(standin_find(&f->s, "m", 1 + i)->file, i == 0);
	open_gate(NULL);
	set_clear(&b);
	assert_int_equal(set_get(f, &b, SLABKV_PREFIX), SLABKV_OK);
	assert_int_equal(b.io.done, 4);
	for (uint32_t i = 0; i < 4; i++)
		assert_true(set_right(&b, i));
	set_free(&b);
}

static void without_another_storage_a_put_says_who_did_not_answer(void **state)
{
	struct fixture *f = *state;
	struct set b;

	begin(f, true);
	set_init(&b, 1, 2);
	hang_below = UINT64_MAX;
	time_begins();
	assert_int_equal(set_put(f, &b), SLABKV_OK);
	in_time(IO_MS / 2 - 50);
	assert_int_equal(b.io.failed, 2);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(b.blocks[i].result, SLABKV_FAILED);
		assert_int_equal(b.blocks[i].why, SLABKV_E_TIMEOUT);
	}
	assert_int_equal(b.err.code, SLABKV_E_TIMEOUT);
	assert_non_null(strstr(b.err.message, "storage default"));
	assert_non_null(strstr(b.err.message, "slab-00000000.kvs"));
	assert_int_equal(f->s.finishes, 0);
	assert_int_equal(f->s.aborts, 1);
	assert_false(f->s.last_abort_quiesced);
	set_free(&b);
	open_gate(f->kv);
}

static void a_get_that_hangs_never_touches_its_buffers(void **state)
{
	struct fixture *f = *state;
	struct set b;

	begin(f, true);
	put_all(f, 1, 3);
	set_init(&b, 1, 3);
	memset(b.memory, 0xa5, 3 * FIX_BYTES);
	hang_below = UINT64_MAX;
	time_begins();
	assert_int_equal(slabkv_get(f->kv, "m", &b.keys, NULL, b.blocks, sizeof *b.blocks, &b.io,
				    &b.err), SLABKV_OK);
	in_time(IO_MS - 50);
	assert_int_equal(b.io.done, 0);
	assert_int_equal(b.io.failed, 3);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(b.blocks[i].result, SLABKV_ERROR);
		assert_int_equal(b.blocks[i].why, SLABKV_E_TIMEOUT);
	}
	assert_int_equal(b.err.code, SLABKV_E_TIMEOUT);
	assert_non_null(strstr(b.err.message, "slab-00000000.kvs"));
	open_gate(f->kv);
	for (size_t i = 0; i < 3 * FIX_BYTES; i++)
		assert_int_equal(b.memory[i], 0xa5);
	assert_int_equal(set_get(f, &b, SLABKV_PREFIX), SLABKV_OK);
	assert_int_equal(b.io.done, 3);
	for (uint32_t i = 0; i < 3; i++)
		assert_true(set_right(&b, i));
	set_free(&b);
}

/* The last thread that was left behind frees the handle. */
static void a_handle_is_closed_while_a_request_hangs(void **state)
{
	struct fixture *f = *state;
	struct slabkv *kv;
	struct set b;

	begin(f, true);
	set_init(&b, 1, 2);
	hang_below = UINT64_MAX;
	assert_int_equal(set_put(f, &b), SLABKV_OK);
	set_free(&b);
	kv = f->kv;
	skv_handle_keep(kv); /* to see it */
	time_begins();
	fixture_reopen(f, NULL, &gated);
	in_time(0);
	assert_int_equal(atomic_load(&kv->users), 2);
	open_gate(kv);
	skv_handle_drop(kv);
}

/* A manager that takes connections and never answers. */
static void a_silent_manager_costs_no_more(void **state)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof at;
	struct fixture *f = *state;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	const char *known = f->urls[0];
	char url[64];
	struct set b;

	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
	assert_int_equal(listen(fd, 16), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
	snprintf(url, sizeof url, "http://127.0.0.1:%u", ntohs(at.sin_port));
	f->urls[0] = url;
	begin(f, false);
	set_init(&b, 1, 2);
	time_begins();
	assert_int_equal(set_put(f, &b), SLABKV_E_TIMEOUT);
	in_time(IO_MS - 50);
	assert_int_equal(b.blocks[1].why, SLABKV_E_TIMEOUT);
	time_begins();
	assert_int_equal(set_get(f, &b, SLABKV_PREFIX), SLABKV_E_TIMEOUT);
	in_time(IO_MS - 50);
	set_free(&b);
	close(fd);
	f->urls[0] = known;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		TEST(bytes_of_a_network_are_the_same),
		TEST(a_put_that_hangs_goes_to_another_storage),
		TEST(a_put_that_fails_goes_to_another_storage),
		TEST(without_another_storage_a_put_says_who_did_not_answer),
		TEST(a_get_that_hangs_never_touches_its_buffers),
		TEST(a_handle_is_closed_while_a_request_hangs),
		TEST(a_silent_manager_costs_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
