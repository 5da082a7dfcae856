/* test_http_auth.c - the tokens file, the matrix of roles, what is bound without tokens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include <skv/auth.h>
#include "fixture.h"
#include "v1.h"

/* ---- the file -------------------------------------------------------------------------------- */

static void assert_file_refused(struct fixture *x, const char *text, const char *word)
{
	struct skv_error err;

	fixture_tokens(x, text);
	assert_int_equal(fixture_bind(x, &err), SKV_E_INVALID);
	if (!strstr(err.message, word))
		fail_msg("'%s' is not in: %s", word, err.message);
	assert_null(strstr(err.message, "secret"));
}

static void test_bad_files(void **state)
{
	struct fixture *x = *state;

	assert_file_refused(x, "", "holds no token");
	assert_file_refused(x, "# nothing\n\n", "holds no token");
	assert_file_refused(x, "admin default\n", ":1: expected");
	assert_file_refused(x, "# x\nadmin default secret-0123456789ab secret\n", ":2: expected");
	assert_file_refused(x, "admin default sha256:secret\n", ":1: sha256: is followed");
	assert_file_refused(x, "admin default secret-0123456789ab name=../x\n", ":1: a name");
	assert_file_refused(x, "admin default secret-0123456789ab expires=now\n", ":1: expires=");
	assert_file_refused(x, "root default secret-0123456789ab\n", "read, write or admin");
	assert_file_refused(x, "Admin default secret-0123456789ab\n", "read, write or admin");
	assert_file_refused(x, "admin ../x secret-0123456789ab\n", "the tenant must be");
	assert_file_refused(x, "admin default secret\n", "slabkv token new");
	assert_file_refused(x, "admin default secret-0123456789\xc3\xbc\n", "slabkv token new");
}

static void test_file_modes(void **state)
{
	struct fixture *x = *state;
	struct skv_error err;

	fixture_three_tokens(x);
	assert_int_equal(chmod(x->tokens, 0644), 0);
	assert_int_equal(fixture_bind(x, &err), SKV_E_INVALID);
	assert_non_null(strstr(err.message, "chmod 600"));
	assert_int_equal(chmod(x->tokens, 0660), 0);
	assert_int_equal(fixture_bind(x, &err), SKV_E_INVALID);
	assert_int_equal(chmod(x->tokens, 0640), 0);
	assert_int_equal(fixture_bind(x, &err), SKV_OK);
	fixture_unbind(x);
	x->so.tokens_file = "/nonexistent/tokens";
	assert_int_equal(fixture_bind(x, &err), SKV_E_INVALID);
	x->so.tokens_file = x->dir;
	assert_int_equal(fixture_bind(x, &err), SKV_E_INVALID);
}

static void test_headers(void **state)
{
	static const char *const bad[] = {
		NULL, "", "Bearer", "Bearer ", "Basic " TOKEN_ADMIN, TOKEN_ADMIN,
			"Bearer" TOKEN_ADMIN,
		"Bearer " TOKEN_ADMIN "x", "Bearer " TOKEN_ADMIN " ",
		"Bearer admin-token-012345678", "Basic", "Basic ", "Basic Og==", "Basic YTo=",
		/* no ':'; not all of the token */
		"Basic " "dXNlcg==", "Basic dTphZG1pbi10b2tlbi0wMTIzNDU2Nzg=",
		"Basic dTphZG1pbi10b2tlbi0wMTIzNDU2Nzg5AA==", /* a NUL behind it */
		"Basic dTphZG1pbi10b2tlbi0wMTIzNDU2Nzg5 x",
		"Basic dTphZG1pbi10b2tlbi0wMTIzNDU2Nzg5=",
		"Bearer ADMIN-token-0123456789", "Token " TOKEN_ADMIN,
	};
	struct fixture *x = *state;
	struct caller caller;
	struct skv_error err;
	struct auth auth;
	char huge[8192];

	fixture_three_tokens(x);
	assert_int_equal(skv_auth_init(&auth, x->tokens, &err), SKV_OK);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		if (skv_auth_check(&auth, bad[i], NULL, &caller, &err) != SKV_E_UNAUTHENTICATED)
			fail_msg("'%s' was let in", bad[i]);
	memset(huge, 'a', sizeof huge);
	memcpy(huge, "Bearer ", 7);
	huge[sizeof huge - 1] = '\0';
	assert_int_equal(skv_auth_check(&auth, huge, NULL, &caller, &err), SKV_E_UNAUTHENTICATED);
	assert_int_equal(skv_auth_check(&auth, "bearer   " TOKEN_WRITE, NULL, &caller, &err),
			 SKV_OK);
	assert_int_equal(caller.role, ROLE_WRITE);
	assert_string_equal(caller.tenant, "t-write");
	memcpy(huge, "Basic  ", 7);
	assert_int_equal(skv_auth_check(&auth, huge, NULL, &caller, &err), SKV_E_UNAUTHENTICATED);
	assert_int_equal(
		skv_auth_check(&auth, "basic dTphZG1pbi10b2tlbi0wMTIzNDU2Nzg5", NULL, &caller,
			       &err),
		SKV_OK);
	assert_int_equal(caller.role, ROLE_ADMIN);
	assert_int_equal(
		skv_auth_check(&auth, "Basic OndyaXRlLXRva2VuLTAxMjM0NTY3ODk=", NULL, &caller,
			       &err),
		SKV_OK);
	assert_string_equal(caller.tenant, "t-write"); /* no user at all */
	skv_auth_destroy(&auth);
}

/* ---- roles ----------------------------------------------------------------------------------- */

static const char *body_of(const char *name)
{
	if (strcmp(name, "storage_put") == 0)
		return "{\"type\":\"file\",\"root\":\"/data\",\"capacity\":1073741824}";
	if (strcmp(name, "group_put") == 0)
		return "{\"storages\":[\"default\"]}";
	if (strcmp(name, "instance_put") == 0)
		return "{\"group\":\"default\",\"specs\":[{\"name\":\"tp0\",\"size\":4096}]}";
	if (strcmp(name, "match") == 0)
		return "{\"instances\":[\"m\"],\"keys_int\":[1]}";
	if (strcmp(name, "finish") == 0)
		return "{\"success\":true}";
	if (strcmp(name, "token_put") == 0)
		return "{\"role\":\"read\",\"hash\":\"0000000000000000000000000000000000000000"
		       "000000000000000000000000\"}";
	if (strcmp(name, "tenant_put") == 0)
		return "{\"groups\":[\"g\"]}";
	if (strcmp(name, "file_put") == 0)
		return "{\"file\":3,\"draining\":true}";
	if (strcmp(name, "cluster_put") == 0)
		return "{\"draining\":true}";
	if (strcmp(name, "home_put") == 0)
		return "{\"partition\":0,\"member\":\"\"}";
	if (strcmp(name, "purge") == 0)
		return "{\"prefix\":\"m\"}";
	if (strcmp(name, "trim") == 0)
		return "{\"to_ms\":1}";
	if (strcmp(name, "abort") == 0 || strcmp(name, "move_take") == 0)
		return "{}";
	if (strcmp(name, "report") == 0)
		return "{\"keys_int\":[1],\"damaged\":[{\"key\":0,\"generation\":1}]}";
	if (strcmp(name, "move_finish") == 0)
		return "{\"slots\":1,\"moved\":[0]}";
	return "{\"keys_int\":[1]}";
}

static void path_of(const struct skv_route *r, char out[160])
{
	const char *p = r->pattern;
	size_t k = 0;

	while (*p) {
		if (*p == '{') {
			k += (size_t)snprintf(out + k, 160 - k, "0123456789abcdef0123456789abcdef");
			p += strcspn(p, "}") + 1;
		} else {
			out[k++] = *p++;
		}
	}
	out[k] = '\0';
	if (r == &skv_routes[SKV_OP_block_find])
		snprintf(out + k, 160 - k, "?key_int=1");
}

/* Every operation with every token: let in from its own role upwards, told 401 or 403 below. */
static void test_matrix(void **state)
{
	static const struct {
		enum role role;
		const char *header;
	} callers[] = { { ROLE_OPEN, "" },
			{ ROLE_OPEN, BEARER("wrong-token-0123456789") },
			{ ROLE_READ, BEARER(TOKEN_READ) },
			{ ROLE_WRITE, BEARER(TOKEN_WRITE) },
			{ ROLE_ADMIN, BEARER(TOKEN_ADMIN) } };
	struct fixture *x = *state;

	fixture_three_tokens(x);
	x->so.token_failures = 0; /* the test shows more wrong tokens than an address may */
	fixture_start(x);
	for (size_t i = 0; i < SKV_OP_COUNT; i++) {
		const struct skv_route *r = &skv_routes[i];
		char path[160];

		path_of(r, path);
		for (size_t c = 0; c < sizeof callers / sizeof callers[0]; c++) {
			unsigned before = fake_core_calls(x->cluster);
			struct answer a = http_call(x->port, r->method, path, callers[c].header,
						    r->flags & ROUTE_BODY ? body_of(r->name)
						    : NULL);

			/* each sees its own tenant */
			if (r == &skv_routes[SKV_OP_tenant_get] &&
			    (callers[c].role == ROLE_READ || callers[c].role == ROLE_WRITE)) {
				assert_error(&a, 404, "not_found");
			} else if (callers[c].role >= r->role) {
				if (a.status / 100 != 2)
					fail_msg("%s as role %d: %d "
						 "%s", r->name, callers[c].role, a.status, a.body);
			} else if (callers[c].role == ROLE_OPEN) {
				assert_error(&a, 401, "unauthenticated");
				assert_string_equal(answer_header(&a, "WWW-Authenticate"),
						    "Bearer realm=\"slabkvd\"");
			} else {
				assert_error(&a, 403, "forbidden");
			}
			if (callers[c].role < r->role)
				assert_int_equal(fake_core_calls(x->cluster), before);
			answer_free(&a);
		}
	}
}

/* A caller that may register an instance may not give it a larger part. */
static void test_parts_are_admins(void **state)
{
	static const char body[] = "{\"specs\":[{\"name\":\"tp0\",\"size\":4096}],\"weight\":9}";
	struct fixture *x = *state;
	struct answer a;

	fixture_three_tokens(x);
	fixture_start(x);
	a = http_call(x->port, "PUT", "/v1/instances/m", BEARER(TOKEN_WRITE), body);
	assert_error(&a, 403, "forbidden");
	answer_free(&a);
	a = http_call(x->port, "PUT", "/v1/instances/m", BEARER(TOKEN_ADMIN), body);
	assert_int_equal(a.status / 100, 2);
	answer_free(&a);
}

static void test_tenant_comes_from_the_token(void **state)
{
	struct fixture *x = *state;
	struct answer a;

	fixture_three_tokens(x);
	fixture_start(x);
	a = http_call(x->port, "POST", "/v1/instances/m/lookup", BEARER(TOKEN_READ),
		      "{\"keys_int\":[1]}");
	assert_int_equal(a.status, 200);
	assert_string_equal(fake_core_tenant(x->cluster), "t-read");
	answer_free(&a);
	a = http_call(x->port, "POST", "/v1/instances/m/start", BEARER(TOKEN_WRITE),
		      "{\"keys_int\":[1]}");
	assert_int_equal(a.status, 200);
	assert_string_equal(fake_core_tenant(x->cluster), "t-write");
	answer_free(&a);
}

static void test_open_metrics(void **state)
{
	struct fixture *x = *state;
	struct answer a;

	fixture_three_tokens(x);
	x->so.metrics_open = true;
	fixture_start(x);
	a = http_call(x->port, "GET", "/metrics", NULL, NULL);
	assert_int_equal(a.status, 200);
	answer_free(&a);
	assert_call_error(x->port, "GET", "/v1/stats", NULL, NULL, 401, "unauthenticated");
}

static void test_reload(void **state)
{
	struct fixture *x = *state;
	struct skv_error err;
	struct answer a;

	fixture_three_tokens(x);
	fixture_start(x);
	fixture_tokens(x, "read other fresh-token-0123456789\n");
	assert_int_equal(skv_service_reload(x->service, &err), SKV_OK);
	assert_call_error(x->port, "GET", "/v1/stats", BEARER(TOKEN_ADMIN), NULL, 401,
			  "unauthenticated");
	a = http_call(x->port, "GET", "/v1/stats", BEARER("fresh-token-0123456789"), NULL);
	assert_int_equal(a.status, 200);
	answer_free(&a);
	/* A broken file changes nothing. */
	fixture_tokens(x, "read other\n");
	assert_int_equal(skv_service_reload(x->service, &err), SKV_E_INVALID);
	a = http_call(x->port, "GET", "/v1/stats", BEARER("fresh-token-0123456789"), NULL);
	assert_int_equal(a.status, 200);
	answer_free(&a);
}

/* ---- without tokens -------------------------------------------------------------------------- */

static void test_only_loopback_without_tokens(void **state)
{
	static const char *const open_addresses[] = { "0.0.0.0", "::", "::ffff:0.0.0.0" };
	struct fixture *x = *state;
	struct skv_error err;

	for (size_t i = 0; i < sizeof open_addresses / sizeof open_addresses[0]; i++) {
		x->o.listen = open_addresses[i];
		assert_int_equal(fixture_bind(x, &err), SKV_E_INVALID);
		assert_non_null(strstr(err.message, "tokens_file"));
	}
	x->o.listen = "127.0.0.2";
	assert_int_equal(fixture_bind(x, &err), SKV_OK);
	fixture_unbind(x);
	fixture_three_tokens(x);
	x->o.listen = "0.0.0.0";
	assert_int_equal(fixture_bind(x, &err), SKV_OK);
	fixture_unbind(x);
}

static void test_bad_addresses(void **state)
{
	struct fixture *x = *state;
	struct skv_httpd *second = NULL;
	struct skv_error err;

	x->o.listen = "no.such.host.invalid";
	assert_int_equal(fixture_bind(x, &err), SKV_E_INVALID);
	assert_string_equal(err.field, "http_listen");
	x->o.listen = "127.0.0.1";
	assert_int_equal(fixture_bind(x, &err), SKV_OK);
	x->o.port = skv_httpd_port(x->httpd);
	assert_int_equal(skv_httpd_create(&x->o, x->service, &second, &err), SKV_E_IN_USE);
	assert_non_null(strstr(err.message, "--http-port"));
	fixture_unbind(x);
}

/* A web page that a user of this host looks at must not reach a manager without tokens. */
static void test_web_pages_are_refused(void **state)
{
	struct fixture *x = *state;
	struct http h;
	struct answer a;

	fixture_start(x);
	assert_call_error(x->port, "GET", "/v1/stats", "Origin: http://evil.example\r\n", NULL, 403,
			  "forbidden");
	assert_call_error(x->port, "POST", "/v1/match", "Origin: null\r\n", "{}", 403, "forbidden");
	a = http_call(x->port, "GET", "/v1/stats", "Origin: http://localhost\r\n", NULL);
	assert_int_equal(a.status, 200);
	answer_free(&a);
	http_open(&h, x->port);
	http_send(&h, "GET /v1/stats HTTP/1.1\r\nHost: rebound.example:7333\r\n\r\n", 54);
	a = http_read(&h, false);
	assert_error(&a, 403, "forbidden");
	answer_free(&a);
	http_send(&h, "GET /healthz HTTP/1.1\r\nHost: [::1]:7333\r\n\r\n", 43);
	a = http_read(&h, false);
	assert_int_equal(a.status, 200);
	answer_free(&a);
	http_close(&h);
}

#define T(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_bad_files),
		T(test_file_modes),
		T(test_headers),
		T(test_matrix),
		T(test_parts_are_admins),
		T(test_tenant_comes_from_the_token),
		T(test_open_metrics),
		T(test_reload),
		T(test_only_loopback_without_tokens),
		T(test_bad_addresses),
		T(test_web_pages_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
