/* test_engine.c - the posix engine on a real file, its deadlines under a turned clock, and the
 * guard that every engine runs behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine.h"

struct place {
	char dir[32];
	int dirfd;
	struct skv_engine *engine;
};

static int setup(void **state)
{
	struct place *p = calloc(1, sizeof *p);

	assert_non_null(p);
	snprintf(p->dir, sizeof p->dir, "/tmp/skv-engine-XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	p->dirfd = open(p->dir, O_DIRECTORY | O_CLOEXEC);
	assert_true(p->dirfd >= 0);
	assert_int_equal(skv_engine_posix.create(NULL, &p->engine, NULL), SKV_OK);
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct place *p = *state;

	unlinkat(p->dirfd, "f", 0);
	unlinkat(p->dirfd, "l", 0);
	close(p->dirfd);
	assert_int_equal(rmdir(p->dir), 0);
	p->engine->ops->destroy(p->engine);
	free(p);
	return 0;
}

static struct skv_engine_file *make_file(struct place *p, size_t bytes)
{
	struct skv_engine_file *f;
	int fd = openat(p->dirfd, "f", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	close(fd);
	assert_int_equal(skv_engine_open(p->engine, p->dirfd, "f", true, &f, NULL), SKV_OK);
	return f;
}

static struct skv_io_call never(void)
{
	return (struct skv_io_call){ .clock = &skv_clock_system, .at_ms = UINT64_MAX };
}

static void vectors_come_back_as_written(void **state)
{
	struct place *p = *state;
	struct skv_engine_file *f = make_file(p, 64);
	struct skv_io_call by = never();
	char a[] = "hello ", b[] = "world", back[16] = "";
	struct iovec out[2] = { { a, 6 }, { b, 5 } }, in[2] = { { back, 4 }, { back + 4, 7 } };
	struct skv_io_run w = { .file = f, .offset = 10, .iov = out, .n_iov = 2, .length = 11 };
	struct skv_io_run r = { .file = f, .offset = 10, .iov = in, .n_iov = 2, .length = 11 };

	skv_engine_write(p->engine, &w, 1, &by);
	assert_int_equal(w.status, SKV_OK);
	assert_int_equal(w.done, 11);
	assert_int_equal(skv_engine_sync(p->engine, f), SKV_OK);
	skv_engine_read(p->engine, &r, 1, &by);
	assert_int_equal(r.done, 11);
	assert_memory_equal(back, "hello world", 11);
	assert_true(r.ended_ms <= skv_now_ms(&skv_clock_system));
	skv_engine_close(p->engine, f);
}

static void end_of_file_is_a_short_read(void **state)
{
	struct place *p = *state;
	struct skv_engine_file *f = make_file(p, 20);
	struct skv_io_call by = never();
	char back[16];
	struct iovec iov = { back, 16 };
	struct skv_io_run r = { .file = f, .offset = 10, .iov = &iov, .n_iov = 1, .length = 16 };

	skv_engine_read(p->engine, &r, 1, &by);
	assert_int_equal(r.status, SKV_OK);
	assert_int_equal(r.done, 10);
	skv_engine_close(p->engine, f);
}

static void errors_stop_one_run_only(void **state)
{
	struct place *p = *state;
	struct skv_engine_file *f = make_file(p, 64), *ro;
	struct skv_io_call by = never();
	char x = 'x';
	struct iovec iov[2] = { { &x, 1 }, { &x, 1 } };
	struct skv_io_run w[2];

	assert_int_equal(skv_engine_open(p->engine, p->dirfd, "f", false, &ro, NULL), SKV_OK);
	w[0] = (struct skv_io_run){ .file = ro, .iov = &iov[0], .n_iov = 1, .length = 1 };
	w[1] = (struct skv_io_run){ .file = f, .iov = &iov[1], .n_iov = 1, .length = 1 };
	skv_engine_write(p->engine, w, 2, &by);
	assert_int_equal(w[0].status, SKV_E_IO);
	assert_int_equal(w[0].done, 0);
	assert_int_equal(w[1].status, SKV_OK);
	skv_engine_close(p->engine, ro);
	skv_engine_close(p->engine, f);
}

/* A clock that moves on by one millisecond each time it is read. */
static uint64_t tick(void *self) { return (*(uint64_t *)self)++; }

static void nothing_is_submitted_after_the_deadline(void **state)
{
	struct place *p = *state;
	struct skv_engine_file *f = make_file(p, 64);
	uint64_t now = 0;
	const struct skv_clock clock = { tick, tick, &now };
	/* reads of the clock: before run 0 (0), after it (1), before run 1 (2) - late */
	struct skv_io_call by = { .clock = &clock, .at_ms = 2 };
	char one[] = "1", two[] = "2", back[2];
	struct iovec iov[2] = { { one, 1 }, { two, 1 } };
	struct skv_io_run w[2] = {
		{ .file = f, .offset = 0, .iov = &iov[0], .n_iov = 1, .length = 1 },
		{ .file = f, .offset = 1, .iov = &iov[1], .n_iov = 1, .length = 1 }
	};

	skv_engine_write(p->engine, w, 2, &by);
	assert_int_equal(w[0].status, SKV_OK);
	assert_int_equal(w[0].ended_ms, 1);
	assert_int_equal(w[1].status, SKV_E_TIMEOUT);
	assert_int_equal(w[1].done, 0);
	assert_int_equal(pread(f->fd, back, 2, 0), 2);
	assert_memory_equal(back, "1\0", 2);
	skv_engine_close(p->engine, f);
}

static void links_are_not_followed(void **state)
{
	struct place *p = *state;
	struct skv_engine_file *f = make_file(p, 1);
	struct skv_error err;

	skv_engine_close(p->engine, f);
	assert_int_equal(symlinkat("f", p->dirfd, "l"), 0);
	assert_int_equal(skv_engine_open(p->engine, p->dirfd, "l", false, &f, &err), SKV_E_FOREIGN);
	assert_int_equal(skv_engine_open(p->engine, p->dirfd, "none", false, &f, &err),
			 SKV_E_UNAVAILABLE);
}

/* An engine that lies: what the guard makes of it. */
static uint64_t lie;
static void lying(struct skv_engine *e, struct skv_io_run *runs, uint32_t n,
		  const struct skv_io_call *by)
{
	(void)e;
	(void)by;
	for (uint32_t i = 0; i < n; i++)
		runs[i].done = lie;
}

static void an_engine_is_not_believed_blindly(void **state)
{
	static const struct skv_engine_ops ops = {
		.size = sizeof ops, .name = "liar", .read = lying, .write = lying
	};
	struct skv_engine e = { .ops = &ops };
	char x[8];
	struct iovec iov = { x, 8 };
	struct skv_io_run r = { .iov = &iov, .n_iov = 1, .length = 8 };
	struct skv_io_call by = never();

	(void)state;
	lie = 9; /* more than asked for */
	skv_engine_read(&e, &r, 1, &by);
	assert_int_equal(r.status, SKV_E_INTERNAL);
	assert_int_equal(r.done, 0);
	lie = 7; /* a short write without a reason */
	skv_engine_write(&e, &r, 1, &by);
	assert_int_equal(r.status, SKV_E_IO);
	skv_engine_read(&e, &r, 1, &by); /* a short read is a fact, not an error */
	assert_int_equal(r.status, SKV_OK);
}

static void engines_are_found_by_name(void **state)
{
	(void)state;
	assert_ptr_equal(skv_engine_find("posix"), &skv_engine_posix);
	assert_ptr_equal(skv_engine_find("uring"), &skv_engine_uring);
	assert_null(skv_engine_find("warp"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(vectors_come_back_as_written, setup, teardown),
		cmocka_unit_test_setup_teardown(end_of_file_is_a_short_read, setup, teardown),
		cmocka_unit_test_setup_teardown(errors_stop_one_run_only, setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_is_submitted_after_the_deadline, setup,
						teardown),
		cmocka_unit_test_setup_teardown(links_are_not_followed, setup, teardown),
		cmocka_unit_test(an_engine_is_not_believed_blindly),
		cmocka_unit_test(engines_are_found_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
