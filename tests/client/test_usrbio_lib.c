/* test_usrbio_lib.c - loading 3FS's client library, and the guards in front of its functions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "usrbio_lib.h"

static int punches, ranges, refuse_at;

static int fake_punch(int fd, int n, const size_t *start, const size_t *end, size_t flags)
{
	assert_int_equal(fd, 7);
	assert_int_equal(flags, 0);
	assert_in_range(n, 1, SKV_HF3FS_PUNCH_MAX);
	assert_int_equal(start[0], (size_t)ranges * 2 * 65536);
	assert_int_equal(end[n - 1], start[n - 1] + 65536);
	punches++;
	ranges += n;
	return punches == refuse_at ? EIO : 0;
}

static int fake_mount_point(char *out, int size, const char *path)
{
	static const char mount[] = "/3fs/stage";

	assert_int_equal(access(path, F_OK), 0); /* the real one throws */
	if (strncmp(path, "/proc", 5) != 0)
		return -1;
	if ((size_t)size >= sizeof mount)
		memcpy(out, mount, sizeof mount);
	return sizeof mount;
}

static const struct skv_usrbio_lib fake = { .punchhole = fake_punch,
					    .extract_mount_point = fake_mount_point };

static void test_absent(void **state)
{
	const struct skv_usrbio_lib *lib;
	struct skv_error err;

	(void)state;
	assert_int_equal(skv_usrbio_load("/nowhere/libhf3fs_api_shared.so", &lib, &err),
			 SKV_E_UNSUPPORTED);
	assert_string_equal(err.field, "hf3fs_lib");
	assert_non_null(strstr(err.message, "/nowhere/libhf3fs_api_shared.so"));
	assert_non_null(strstr(err.message, SKV_USRBIO_LIB_ENV));
	setenv(SKV_USRBIO_LIB_ENV, "/elsewhere/lib.so", 1);
	assert_int_equal(skv_usrbio_load(NULL, &lib, &err), SKV_E_UNSUPPORTED);
	assert_non_null(strstr(err.message, "/elsewhere/lib.so"));
	unsetenv(SKV_USRBIO_LIB_ENV);
}

static void test_another_library(void **state)
{
	const struct skv_usrbio_lib *lib;
	struct skv_error err;

	(void)state;
	assert_int_equal(skv_usrbio_load("libm.so.6", &lib, &err), SKV_E_UNSUPPORTED);
	assert_non_null(strstr(err.message, "hf3fs_is_hf3fs"));
}

/* In a child: a hard limit does not go up again. */
static void test_limit(void **state)
{
	struct rlimit before;
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	assert_true(before.rlim_max > 256);
	pid = fork();
	if (pid == 0) {
		struct rlimit l;

		skv_usrbio_bound_files(before.rlim_max); /* not beyond: nothing changes */
		if (getrlimit(RLIMIT_NOFILE, &l) != 0 || l.rlim_max != before.rlim_max ||
		    l.rlim_cur != before.rlim_cur)
			_exit(1);
		skv_usrbio_bound_files(256);
		_exit(getrlimit(RLIMIT_NOFILE, &l) != 0 || l.rlim_max != 256 || l.rlim_cur > 256
			      ? 2
			      : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_mount_point(void **state)
{
	char out[32], small[4] = "";
	struct skv_error err;

	(void)state;
	assert_int_equal(skv_usrbio_mount_point(&fake, "/proc/self", out, sizeof out, &err),
			 SKV_OK);
	assert_string_equal(out, "/3fs/stage");
	assert_int_equal(skv_usrbio_mount_point(&fake, "/nowhere/at/all", out, sizeof out, &err),
			 SKV_E_UNAVAILABLE);
	assert_non_null(strstr(err.message, "/nowhere/at/all"));
	assert_int_equal(skv_usrbio_mount_point(&fake, "/dev", out, sizeof out, &err),
			 SKV_E_FOREIGN);
	assert_non_null(strstr(err.message, "/dev does not lie on a mounted 3FS"));
	assert_int_equal(skv_usrbio_mount_point(&fake, "/proc", small, sizeof small, &err),
			 SKV_E_FOREIGN);
}

static void test_punch(void **state)
{
	enum { N = 2500 };
	static size_t start[N], end[N];
	struct skv_error err;

	(void)state;
	for (size_t i = 0; i < N; i++) {
		start[i] = 2 * i * 65536;
		end[i] = start[i] + 65536;
	}
	assert_int_equal(skv_usrbio_punch(&fake, 7, 65536, N, start, end, &err), SKV_OK);
	assert_int_equal(punches, 3);
	assert_int_equal(ranges, N);
	punches = ranges = 0;
	refuse_at = 2;
	assert_int_equal(skv_usrbio_punch(&fake, 7, 65536, N, start, end, &err), SKV_E_IO);
	assert_int_equal(punches, 2);
	/* Nothing at all is done when one range is wrong. */
	punches = 0;
	end[N - 1]--;
	assert_int_equal(skv_usrbio_punch(&fake, 7, 65536, N, start, end, &err), SKV_E_INVALID);
	assert_non_null(strstr(err.message, "2499"));
	end[N - 1] = start[N - 1];
	assert_int_equal(skv_usrbio_punch(&fake, 7, 65536, N, start, end, &err), SKV_E_INVALID);
	assert_int_equal(skv_usrbio_punch(&fake, 7, 0, 1, start, end, &err), SKV_E_INVALID);
	assert_int_equal(punches, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_absent),	    cmocka_unit_test(test_another_library),
		cmocka_unit_test(test_limit),	    cmocka_unit_test(test_mount_point),
		cmocka_unit_test(test_punch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
