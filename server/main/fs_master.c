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

#include <kvb/front.h>
#include <kvb/fs_master_api.h>
#include <kvb/log.h>
#include <kvb/service.h>

#define DRAIN_MS 5000
#define BODY_MAX (256u << 10) /* a punch of a thousand ranges has 50 KB */

struct server {
	const struct kvb_params *p;
	struct kvb_api *api;
	struct kvb_service *service;
	struct kvb_front *front;
	bool has_port_file;
};

static int bind_port(struct server *r, struct kvb_error *err)
{
	const struct kvb_params *p = r->p;
	struct kvb_service_options so;
	struct kvb_front_options fo;
	int rc = kvb_fs_master_create(p->root, &r->api, err);

	if (rc != KVB_OK)
		return rc;
	kvb_service_options_init(&so);
	so.apis = &r->api;
	so.n_apis = 1;
	so.tokens_file = p->tokens_file;
	so.body_max = BODY_MAX;
	so.body_total_max = p->body_total_max;
	so.slow_ms = (uint32_t)p->slow_ms;
	so.log_refused = p->log_refused;
	so.metrics_open = p->metrics_open;
	kvb_front_options_init(&fo);
	fo.apis = (struct kvb_apis){ .v = { r->api }, .n = 1, .planes = KVB_PLANE_ALL };
	fo.listen = p->http_listen;
	fo.port = (uint16_t)p->http_port;
	fo.threads = (uint32_t)p->http_threads;
	fo.max_connections = (uint32_t)p->max_connections;
	fo.max_connections_per_ip = (uint32_t)p->max_connections_per_ip;
	fo.idle_timeout_ms = (uint32_t)p->idle_timeout_s * 1000;
	rc = kvb_service_create(&so, &r->service, err);
	if (rc == KVB_OK)
		rc = kvb_inherit(&r->service->inherited, err);
	if (rc == KVB_OK)
		rc = kvb_front_create(&fo, r->service, &r->front, err);
	return rc == KVB_OK ? kvb_inherit_check(&r->service->inherited, err) : rc;
}

static int start(struct server *r, struct kvb_error *err)
{
	int rc = bind_port(r, err);

	if (rc == KVB_OK)
		rc = kvb_service_start(r->service, NULL, err);
	if (rc == KVB_OK)
		rc = kvb_front_start(r->front, err);
	if (rc == KVB_OK)
		rc = kvb_write_port_file(r->p->port_file, kvb_front_port(r->front), "port_file", &r->has_port_file, err);
	if (rc != KVB_OK)
		return rc;
	kvb_front_open(r->front);
	kvb_log(KVB_LOG_INFO, "main", "fs-master of %s listening on %s", r->p->root, kvb_front_url(r->front));
	if (access(r->p->root, R_OK | W_OK | X_OK) != 0)
		kvb_log(KVB_LOG_WARN, "main", "%s is not there or not writable: is the file system mounted? It is looked for with each call",
			r->p->root);
	return KVB_OK;
}

static void wait_for_end(struct server *r, int log_fd, const sigset_t *signals)
{
	for (;;) {
		int number = sigwaitinfo(signals, NULL);
		struct kvb_error err;

		if (number == SIGTERM || number == SIGINT)
			return;
		if (number != SIGHUP)
			continue;
		kvb_sink_reopen(r->p, log_fd);
		if (kvb_service_reload(r->service, &err) == KVB_OK)
			kvb_log(KVB_LOG_INFO, "main", "SIGHUP: tokens and log file opened again");
		else
			kvb_log(KVB_LOG_ERROR, "main", "SIGHUP: the old tokens stay in force: %s", err.message);
	}
}

static void release(struct server *r)
{
	kvb_front_destroy(r->front);
	kvb_service_destroy(r->service);
	kvb_fs_master_destroy(r->api);
}

static void stop(struct server *r)
{
	uint32_t left;

	kvb_log(KVB_LOG_INFO, "main", "stopping: running requests may end");
	if (r->has_port_file)
		unlink(r->p->port_file);
	kvb_front_leave(r->front, 0);
	left = kvb_front_drain(r->front, DRAIN_MS);
	if (left > 0 || !kvb_front_quiet(r->front, 1000)) {
		kvb_log(KVB_LOG_WARN, "main", "leaving calls behind that hang in a file system");
		_exit(0);
	}
	release(r);
	kvb_log(KVB_LOG_INFO, "main", "stopped");
}

int kvb_serve_fs_master(const struct kvb_params *p)
{
	struct server r = { .p = p };
	struct kvb_error err;
	sigset_t signals;
	int log_fd = -1, status = 0;

	kvb_signals_block(&signals);
	if (kvb_sink_open(p, &log_fd, &err) != KVB_OK) {
		fprintf(stderr, "kvblockd: %s\n", err.message);
		return EXIT_PROBLEM;
	}
	if (start(&r, &err) == KVB_OK) {
		wait_for_end(&r, log_fd, &signals);
		kvb_signals_arm(&signals);
		stop(&r);
	} else {
		kvb_log(KVB_LOG_ERROR, "main", "cannot start: %s", err.message);
		release(&r);
		status = EXIT_PROBLEM;
	}
	if (log_fd >= 0) {
		kvb_log_setup(STDERR_FILENO, false, KVB_LOG_INFO);
		close(log_fd);
	}
	return status;
}
