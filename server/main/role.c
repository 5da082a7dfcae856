/*
 * role.c - a role without a core: one API on one HTTP port, until SIGTERM or SIGINT.
 */
#include "role.h"

#include <assert.h>
#include <unistd.h>

#include <skv/httpd.h>
#include <skv/log.h>
#include <skv/service.h>
#include <skv/tls.h>

#include "limits.h"

#define DRAIN_MS 5000
#define QUIET_MS 1000

struct server {
	const struct skv_role *role;
	const struct skv_params *p;
	struct skv_api *api;
	struct skv_service *service;
	struct skv_httpd *httpd;
};

static int bind_ports(struct server *r, struct skv_error *err)
{
	const struct skv_params *p = r->p;
	struct skv_service_options so;
	struct skv_port_options fo;
	int rc;

	assert(r->api && p->http_port <= UINT16_MAX);
	skv_service_options_init(&so);
	so.apis = &r->api;
	so.n_apis = 1;
	so.tokens_file = p->tokens_file;
	limit_service(p, &so);
	so.body_max = r->role->body_max;
	skv_httpd_options_init(&fo);
	fo.apis = (struct skv_apis){ .v = { r->api }, .n = 1, .planes = SKV_PLANE_ALL };
	fo.listen = p->http_listen;
	fo.port = (uint16_t)p->http_port;
	limit_port(p, &fo);
	rc = skv_service_create(&so, &r->service, err);
	if (rc == SKV_OK)
		rc = skv_inherit(&r->service->inherited, err);
	if (rc == SKV_OK)
		rc = skv_httpd_create(&fo, r->service, &r->httpd, err);
	if (rc == SKV_OK && r->role->bind)
		rc = r->role->bind(r->api, r->service, err);
	return rc == SKV_OK ? skv_inherit_check(&r->service->inherited, err) : rc;
}

static int start(struct server *r, struct skv_error *err)
{
	int rc = skv_certificates_load(r->p, err);

	if (rc == SKV_OK)
		rc = r->role->create(r->p, &r->api, err);
	if (rc == SKV_OK)
		rc = bind_ports(r, err);
	if (rc == SKV_OK)
		rc = skv_service_start(r->service, NULL, err);
	if (rc == SKV_OK && r->role->start)
		rc = r->role->start(r->api, err);
	if (rc == SKV_OK)
		rc = skv_httpd_start(r->httpd, err);
	if (rc == SKV_OK)
		rc = skv_write_port_file(r->p->port_file, "", skv_httpd_port(r->httpd), err);
	if (rc != SKV_OK)
		return rc;
	skv_httpd_open(r->httpd);
	r->role->announce(r->p, r->api, skv_httpd_url(r->httpd));
	return SKV_OK;
}

static void release(struct server *r)
{
	skv_httpd_destroy(r->httpd);
	r->role->destroy(r->api);
	skv_service_destroy(r->service);
	skv_tls_unload();
}

static void stop(struct server *r)
{
	skv_log(SKV_LOG_INFO, "main", "stopping: waiting for running requests");
	skv_remove_port_file(r->p->port_file, "");
	skv_httpd_leave(r->httpd, 0);
	if (skv_httpd_drain(r->httpd, DRAIN_MS) > 0 || !skv_httpd_quiet(r->httpd, QUIET_MS)) {
		skv_log(SKV_LOG_WARN, "main", "ending although calls hang in %s", r->role->hangs);
		_exit(0);
	}
	release(r);
	skv_log(SKV_LOG_INFO, "main", "stopped");
}

int skv_role_serve(const struct skv_role *role, const struct skv_params *p)
{
	struct server r = { .role = role, .p = p };
	struct skv_error err;
	sigset_t signals;
	int log_fd = -1, status = 0;

	assert(role->create && role->destroy && role->announce && role->hangs);
	assert(role->body_max > 0);
	skv_signals_block(&signals);
	skv_modes_set(p);
	if (skv_sink_open(p, &log_fd, &err) != SKV_OK) {
		skv_sink_say("slabkvd", err.message);
		return EXIT_PROBLEM;
	}
	if (start(&r, &err) == SKV_OK) {
		skv_wait_for_end(p, r.service, log_fd, &signals);
		skv_signals_arm(&signals);
		stop(&r);
	} else {
		skv_log(SKV_LOG_ERROR, "main", "cannot start: %s", err.message);
		release(&r);
		status = EXIT_PROBLEM;
	}
	skv_sink_close(log_fd);
	return status;
}
