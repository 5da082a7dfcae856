/*
 * httpd.c - life cycle of the HTTP server: options, the daemon of libmicrohttpd, drain, shutdown.
 *
 * Owns everything in struct skv_httpd; the service is shared. Threads: libmicrohttpd's pool
 * (request.c runs on it), one that accepts, one watch for deadlines. Called by one thread of main.
 * It never calls the core itself: the operations do.
 */
#include "internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <skv/log.h>
#include <skv/mem.h>
#include <skv/tls.h>

void skv_httpd_options_init(struct skv_port_options *o)
{
	*o = (struct skv_port_options){
		.listen = "127.0.0.1",
		.port = 7333,
		.host_param = "http_listen",
		.port_param = "http_port",
		.port_option = "--http-port",
		.socket_name = "http",
		.max_connections = 4096,
		.idle_timeout_ms = 60000,
	};
}

/* Paths stay as they came: routes.c splits at '/' before it decodes. */
static size_t keep_escapes(void *cls, struct MHD_Connection *mhd, char *s)
{
	(void)cls;
	(void)mhd;
	return strlen(s);
}

static void log_mhd(void *cls, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
static void log_mhd(void *cls, const char *fmt, va_list ap)
{
	char text[256];

	(void)cls;
	if (!skv_log_enabled(SKV_LOG_DEBUG))
		return;
	vsnprintf(text, sizeof text, fmt, ap);
	text[strcspn(text, "\n")] = '\0';
	skv_log(SKV_LOG_DEBUG, "http", "%s", text);
}

static void on_watch(void *ctx, uint64_t now_ms, uint32_t dropped)
{
	struct skv_httpd *f = ctx;

	skv_metrics_add(&f->s->metrics, METRIC_http_connections_dropped, dropped);
	if (now_ms > SKV_QUEUE_WAIT_MS) {
		skv_workers_expire(&f->s->workers, now_ms - SKV_QUEUE_WAIT_MS);
		skv_workers_expire(&f->s->lookers, now_ms - SKV_QUEUE_WAIT_MS);
	}
}

static int bind_port(struct skv_httpd *f, struct skv_error *err)
{
	const struct skv_listen l = { f->o.listen,     f->o.port,        f->o.host_param,
				      f->o.port_param, f->o.port_option, f->o.socket_name,
				      &f->s->inherited };
	int rc = skv_listen(&l, f->o.open || f->s->auth.path, &f->bound, err);

	if (rc != SKV_OK)
		return rc;
	snprintf(f->url, sizeof f->url, "%s://%s", f->o.tls ? "https" : "http", f->bound.text);
	if (!*f->s->url)
		snprintf(f->s->url, sizeof f->s->url, "%s", f->url);
	return SKV_OK;
}

static void release(struct skv_httpd *f)
{
	if (f->bound.fd >= 0)
		close(f->bound.fd);
	skv_free((char *)f->o.listen);
	skv_free(f);
}

int skv_httpd_create(const struct skv_port_options *o, struct skv_service *s,
		     struct skv_httpd **out, struct skv_error *err)
{
	struct skv_httpd *f = skv_calloc(1, sizeof *f);
	int rc;

	assert(o->apis.n > 0);
	if (!f)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	f->bound.fd = -1;
	f->s = s;
	f->o = *o;
	f->o.listen = skv_strdup(o->listen);
	rc = f->o.listen ? bind_port(f, err) : skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	if (rc != SKV_OK) {
		release(f);
		return rc;
	}
	*out = f;
	return SKV_OK;
}

static unsigned thread_count(const struct skv_httpd *f)
{
	long cores = f->o.threads ? (long)f->o.threads : sysconf(_SC_NPROCESSORS_ONLN);

	return cores < 1 ? 1 : (unsigned)cores;
}

static int start_daemon(struct skv_httpd *f, struct skv_error *err)
{
	/* With epoll libmicrohttpd 0.9.75 does not wait for a handshake's next bytes but asks for
	 * them without end: one client that stops in between would take a thread's whole core. */
	const unsigned flags = (f->o.tls ? MHD_USE_POLL_INTERNAL_THREAD | MHD_USE_TLS
					 : MHD_USE_EPOLL_INTERNAL_THREAD) |
			       MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET |
			       MHD_USE_ERROR_LOG;
	const unsigned threads = thread_count(f);
	const struct MHD_OptionItem options[] = {
		{ MHD_OPTION_THREAD_POOL_SIZE, threads > 1 ? threads : 0, NULL },
		/* Each thread gets its part, and may get all: accept.c keeps the limit. */
		{ MHD_OPTION_CONNECTION_LIMIT, (intptr_t)f->o.max_connections * threads, NULL },
		{ MHD_OPTION_PER_IP_CONNECTION_LIMIT, f->o.max_connections_per_ip, NULL },
		{ MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_POOL, NULL },
		{ MHD_OPTION_CONNECTION_TIMEOUT, 0, NULL }, /* ours: watch.c */
		{ MHD_OPTION_UNESCAPE_CALLBACK, (intptr_t)keep_escapes, NULL },
		{ MHD_OPTION_URI_LOG_CALLBACK, (intptr_t)skv_framing_line, f },
		{ MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)skv_httpd_request_completed, f },
		{ MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)skv_conn_notify, f },
		{ MHD_OPTION_END, 0, NULL },
	};

	assert(skv_events_bounded());
	f->daemon = MHD_start_daemon(flags, 0, NULL, NULL, skv_httpd_request_serve, f,
				     MHD_OPTION_EXTERNAL_LOGGER, log_mhd, NULL, MHD_OPTION_ARRAY,
				     options,
				     f->o.tls ? MHD_OPTION_HTTPS_PRIORITIES : MHD_OPTION_END,
				     SKV_TLS_PRIORITY, MHD_OPTION_HTTPS_CERT_CALLBACK2,
				     skv_tls_retrieve, MHD_OPTION_END);
	if (!f->daemon)
		return skv_fail(err, SKV_E_IO, NULL, "the HTTP server could not start");
	return SKV_OK;
}

/* Between two looks of the watch: a part of what it has to notice. */
static uint32_t watch_interval(const struct skv_httpd *f)
{
	const struct skv_pace_limit *l = &f->s->o.pace;
	uint32_t ms = f->o.idle_timeout_ms;

	if (l->bytes_per_s && l->after_ms < ms)
		ms = l->after_ms;
	ms /= 4;
	return ms < 10 ? 10 : ms > 1000 ? 1000 : ms;
}

int skv_httpd_start(struct skv_httpd *f, struct skv_error *err)
{
	int rc;

	assert(!f->daemon && f->s->started);
	rc = skv_watch_start(&f->watch, watch_interval(f), &f->s->o.pace, on_watch, f, err);
	if (rc != SKV_OK)
		return rc;
	rc = start_daemon(f, err);
	if (rc == SKV_OK)
		rc = skv_accept_start(f, err);
	if (rc == SKV_OK)
		return SKV_OK;
	if (f->daemon)
		MHD_stop_daemon(f->daemon);
	f->daemon = NULL;
	skv_watch_stop(&f->watch);
	return rc;
}

uint16_t skv_httpd_port(const struct skv_httpd *f) { return f->bound.port; }

const char *skv_httpd_url(const struct skv_httpd *f) { return f->url; }

void skv_httpd_leave(struct skv_httpd *f, uint32_t ms)
{
	if (!f->bound.inherited)
		return;
	skv_accept_stop(f);
	atomic_store(&f->s->leaving, true);
	skv_gauge_await_zero(&f->s->metrics, GAUGE_http_open_connections, ms);
}

uint32_t skv_httpd_drain(struct skv_httpd *f, uint32_t timeout_ms)
{
	if (f->bound.inherited) /* else an answer is better than to wait for nothing */
		skv_accept_stop(f);
	atomic_store(&f->s->draining, true);
	return skv_gauge_await_zero(&f->s->metrics, GAUGE_http_in_flight, timeout_ms);
}

bool skv_httpd_quiet(struct skv_httpd *f, uint32_t timeout_ms)
{
	return skv_gauge_await_zero(&f->s->metrics, GAUGE_http_parked, timeout_ms) == 0;
}

void skv_httpd_destroy(struct skv_httpd *f)
{
	if (!f)
		return;
	if (f->daemon) {
		skv_httpd_drain(f, 0);
		skv_accept_stop(f);
		assert(skv_gauge_get(&f->s->metrics, GAUGE_http_parked) == 0);
		MHD_stop_daemon(f->daemon);
		skv_watch_stop(&f->watch);
	}
	release(f);
}
