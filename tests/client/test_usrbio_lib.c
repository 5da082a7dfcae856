/* test_usrbio_lib.c - loading 3FS's client library, and where 3FS is mounted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/shell.h"
#include "usrbio_lib.h"

static bool is_3fs;

static bool fake_is_hf3fs(int fd)
{
	assert_true(fd >= 0);
	return is_3fs;
}

static const struct skv_usrbio_lib fake = { .is_hf3fs = fake_is_hf3fs };

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

static void expect_no_mount(const char *path, size_t size, int status, const char *words)
{
	char out[64] = "untouched";
	struct skv_error err;

	assert_int_equal(skv_usrbio_mount_point(&fake, path, out, size, &err), status);
	assert_string_equal(out, "untouched");
	assert_non_null(strstr(err.message, path));
	assert_non_null(strstr(err.message, words));
}

/* The nearest directory above with 3fs-virt/iovs, through links, if the daemon answers. */
static void test_mount_point(void **state)
{
	char dir[] = "/tmp/skv-lib-XXXXXX", command[512], deep[64], link[64], out[64];
	struct skv_error err;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(command, sizeof command,
		 "cd %s && mkdir -p 3fs-virt/iovs a/b c/3fs-virt/iovs && ln -s a/b link && "
		 "touch a/b/slab",
		 dir);
	assert_int_equal(test_shell(command), 0);
	snprintf(deep, sizeof deep, "%s/a/b/slab", dir);
	snprintf(link, sizeof link, "%s/link/slab", dir);
	is_3fs = true;
	assert_int_equal(skv_usrbio_mount_point(&fake, deep, out, sizeof out, &err), SKV_OK);
	assert_string_equal(out, dir);
	assert_int_equal(skv_usrbio_mount_point(&fake, link, out, strlen(dir) + 1, &err), SKV_OK);
	assert_string_equal(out, dir);
	expect_no_mount(deep, strlen(dir), SKV_E_FOREIGN, "its mount point is too long");
	expect_no_mount("/proc/self", sizeof out, SKV_E_FOREIGN, "does not lie on a mounted 3FS");
	expect_no_mount("/", sizeof out, SKV_E_FOREIGN, "does not lie on a mounted 3FS");
	expect_no_mount("/nowhere/at/all", sizeof out, SKV_E_UNAVAILABLE, "No such file");
	snprintf(deep, sizeof deep, "%s/c", dir);
	assert_int_equal(skv_usrbio_mount_point(&fake, deep, out, sizeof out, &err), SKV_OK);
	assert_string_equal(out, deep);
	is_3fs = false;
	expect_no_mount(deep, sizeof out, SKV_E_FOREIGN, "does not lie on a mounted 3FS");
	snprintf(command, sizeof command, "rm -rf %s", dir);
	assert_int_equal(test_shell(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_absent),	    cmocka_unit_test(test_another_library),
		cmocka_unit_test(test_limit),	    cmocka_unit_test(test_mount_point),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
