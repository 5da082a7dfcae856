/* fixture.c - see fixture.h. */
#include "fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <skv/log.h>

static struct skv_api *const apis[] = { &skv_v1_api };

int fixture_setup(void **state)
{
	struct fixture *x = calloc(1, sizeof *x);

	assert_non_null(x);
	skv_log_setup(STDERR_FILENO, false, SKV_LOG_ERROR);
	skv_service_options_init(&x->so);
	x->so.apis = apis;
	x->so.n_apis = 1;
	skv_httpd_options_init(&x->o);
	x->o.apis = (struct skv_apis){ { &skv_v1_api }, 1, SKV_PLANE_ALL };
	x->o.port = 0;
	x->o.threads = 2;
	x->cluster = fake_core_create();
	snprintf(x->dir, sizeof x->dir, "/tmp/skv-front-XXXXXX");
	assert_non_null(mkdtemp(x->dir));
	snprintf(x->tokens, sizeof x->tokens, "%s/tokens", x->dir);
	*state = x;
	return 0;
}

int fixture_teardown(void **state)
{
	struct fixture *x = *state;

	fake_core_hang(x->cluster, false);
	fake_core_mode(x->cluster, FAKE_NOW);
	fake_core_release(x->cluster);
	if (x->httpd) {
		skv_httpd_drain(x->httpd, 0);
		assert_true(skv_httpd_quiet(x->httpd, HTTP_WAIT_MS));
	}
	fixture_unbind(x);
	fake_core_destroy(x->cluster);
	unlink(x->tokens);
	if (x->so.audit_file && strncmp(x->so.audit_file, x->dir, strlen(x->dir)) == 0)
		unlink(x->so.audit_file);
	assert_int_equal(rmdir(x->dir), 0); /* nothing is left in it */
	free(x);
	return 0;
}

void fixture_tokens(struct fixture *x, const char *text)
{
	FILE *f = fopen(x->tokens, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	assert_int_equal(chmod(x->tokens, 0600), 0);
	x->so.tokens_file = x->tokens;
}

void fixture_three_tokens(struct fixture *x)
{
	fixture_tokens(x, "# role tenant token\n"
			  "read t-read " TOKEN_READ "\n"
			  "\n"
			  "write t-write " TOKEN_WRITE "\n"
			  "admin default " TOKEN_ADMIN "\n");
}

int fixture_bind(struct fixture *x, struct skv_error *err)
{
	int rc = skv_service_create(&x->so, &x->service, err);

	if (rc == SKV_OK)
		rc = skv_httpd_create(&x->o, x->service, &x->httpd, err);
	if (rc != SKV_OK)
		fixture_unbind(x);
	return rc;
}

void fixture_unbind(struct fixture *x)
{
	/* a client with its answer may be here before the thread that gave the answer is done */
	if (x->httpd)
		assert_true(skv_httpd_quiet(x->httpd, HTTP_WAIT_MS));
	skv_httpd_destroy(x->httpd);
	skv_service_destroy(x->service);
	x->httpd = NULL;
	x->service = NULL;
}

void fixture_start(struct fixture *x)
{
	struct skv_error err;

	if (fixture_bind(x, &err) != SKV_OK ||
	    skv_service_start(x->service, x->cluster, &err) != SKV_OK ||
	    skv_httpd_start(x->httpd, &err) != SKV_OK)
		fail_msg("%s", err.message);
	x->port = skv_httpd_port(x->httpd);
}
