/* fixture.h - a transport over a fake core on a free port, for one test. */
#ifndef TESTS_FRONT_FIXTURE_H
#define TESTS_FRONT_FIXTURE_H

#include <skv/httpd.h>
#include <skv/v1_api.h>
#include <skv/service.h>

#include "fake_core.h"
#include "http.h"

struct fixture {
	struct skv_service_options so; /* change these two before fixture_start */
	struct skv_port_options o;
	struct skv_cluster *cluster;
	struct skv_service *service;
	struct skv_httpd *httpd;
	uint16_t port;
	char dir[64]; /* temporary, removed at the end */
	char tokens[96];
};

#define TOKEN_READ "read-token-0123456789"
#define TOKEN_WRITE "write-token-0123456789"
#define TOKEN_ADMIN "admin-token-0123456789"
#define BEARER(token) "Authorization: Bearer " token "\r\n"

/* cmocka setup and teardown: the transport is not started yet. */
int fixture_setup(void **state);
int fixture_teardown(void **state);
/* Writes the tokens file (mode 0600) and names it in the options. */
void fixture_tokens(struct fixture *x, const char *text);
/* The three TOKEN_* above, tenants t-read, t-write, default. */
void fixture_three_tokens(struct fixture *x);
/* Makes service and front, which fixture_unbind takes away again. */
int fixture_bind(struct fixture *x, struct skv_error *err);
void fixture_unbind(struct fixture *x);
void fixture_start(struct fixture *x);

#endif
