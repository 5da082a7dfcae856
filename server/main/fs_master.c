/*
 * fs_master.c - the role fs-master: one HTTP port over the API of server/fsmaster, until SIGTERM or SIGINT.
 *
 * It has neither store nor core, and keeps nothing between calls. Calls that hang in a dead mount are left behind at the
 * end.
 */
#include "main.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include <skv/httpd.h>
#include <skv/fs_master_api.h>
#include <skv/log.h>
#include <skv/service.h>

#include "limits.h"

#define DRAIN_MS 5000
#define BODY_MAX (256u << 10) /* a punch of a thousand ranges has 50 KB */

struct server {
	const struct skv_params *p;
	struct skv_api *api;
	struct skv_service *service;
	struct skv_httpd *httpd;
	bool has_port_file;
};

static int bind_port(struct server *r, struct skv_error *err)
{
	const struct skv_params *p = r->p;
	struct skv_service_options so;
	struct skv_httpd_options fo;
	int rc = skv_fs_master_create(p->root, &r->api, err);

	if (rc != SKV_OK)
		return rc;
	skv_service_options_init(&so);
	so.apis = &r->api;
	so.n_apis = 1;
	so.tokens_file = p->tokens_file;
	limit_service(p, &so);
	so.body_max = BODY_MAX;
	skv_httpd_options_init(&fo);
	fo.apis = (struct skv_apis){ .v = { r->api }, .n = 1, .planes = SKV_PLANE_ALL };
	fo.listen = p->http_listen;
	fo.port = (uint16_t)p->http_port;
	limit_httpd(p, &fo);
	rc = skv_service_create(&so, &r->service, err);
	if (rc == SKV_OK)
		rc = skv_inherit(&r->service->inherited, err);
	if (rc == SKV_OK)
		rc = skv_httpd_create(&fo, r->service, &r->httpd, err);
	return rc == SKV_OK ? skv_inherit_check(&r->service->inherited, err) : rc;
}

static int start(struct server *r, struct skv_error *err)
{
	int rc = bind_port(r, err);

	if (rc == SKV_OK)
		rc = skv_service_start(r->service, NULL, err);
	if (rc == SKV_OK)
		rc = skv_httpd_start(r->httpd, err);
	if (rc == SKV_OK)
		rc = skv_write_port_file(r->p->port_file, skv_httpd_port(r->httpd), "port_file", &r->has_port_file, err);
	if (rc != SKV_OK)
		return rc;
	skv_httpd_open(r->httpd);
	skv_log(SKV_LOG_INFO, "main", "fs-master of %s listening on %s", r->p->root, skv_httpd_url(r->httpd));
	if (access(r->p->root, R_OK | W_OK | X_OK) != 0)
		skv_log(SKV_LOG_WARN, "main", "%s is not there or not writable: is the file system mounted? It is looked for with each call",
			r->p->root);
	return SKV_OK;
}

static void wait_for_end(struct server *r, int log_fd, const sigset_t *signals)
{
	for (;;) {
		int number = sigwaitinfo(signals, NULL);
		struct skv_error err;

		if (number == SIGTERM || number == SIGINT)
			return;
		if (number != SIGHUP)
			continue;
		skv_sink_reopen(r->p, log_fd);
		if (skv_service_reload(r->service, &err) == SKV_OK)
			skv_log(SKV_LOG_INFO, "main", "SIGHUP: tokens and log file opened again");
		else
			skv_log(SKV_LOG_ERROR, "main", "SIGHUP: keeping the old tokens: %s", err.message);
	}
}

static void release(struct server *r)
{
	skv_httpd_destroy(r->httpd);
	skv_service_destroy(r->service);
	skv_fs_master_destroy(r->api);
}

static void stop(struct server *r)
{
	uint32_t left;

	skv_log(SKV_LOG_INFO, "main", "stopping: waiting for running requests");
	if (r->has_port_file)
		unlink(r->p->port_file);
	skv_httpd_leave(r->httpd, 0);
	left = skv_httpd_drain(r->httpd, DRAIN_MS);
	if (left > 0 || !skv_httpd_quiet(r->httpd, 1000)) {
		skv_log(SKV_LOG_WARN, "main", "ending although calls hang in a file system");
		_exit(0);
	}
	release(r);
	skv_log(SKV_LOG_INFO, "main", "stopped");
}

int skv_serve_fs_master(const struct skv_params *p)
{
	struct server r = { .p = p };
	struct skv_error err;
	sigset_t signals;
	int log_fd = -1, status = 0;

	skv_signals_block(&signals);
	if (skv_sink_open(p, &log_fd, &err) != SKV_OK) {
		fprintf(stderr, "slabkvd: %s\n", err.message);
		return EXIT_PROBLEM;
	}
	if (start(&r, &err) == SKV_OK) {
		wait_for_end(&r, log_fd, &signals);
		skv_signals_arm(&signals);
		stop(&r);
	} else {
		skv_log(SKV_LOG_ERROR, "main", "cannot start: %s", err.message);
		release(&r);
		status = EXIT_PROBLEM;
	}
	if (log_fd >= 0) {
		skv_log_setup(STDERR_FILENO, false, SKV_LOG_INFO);
		close(log_fd);
	}
	return status;
}
