/*
 * ports.c - opens, starts and closes KVCM's ports. See ports.h.
 *
 * Called by the main thread, and skv_ports_start by the thread that makes the default objects.
 */
#include "ports.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <skv/api.h>
#include <skv/httpd.h>
#include <skv/grpc.h>
#include <skv/log.h>

#include "limits.h"

static const struct row {
	const char *name; /* in kvcm_ports_file, and of an inherited socket */
	const char *param, *option;
	bool rpc;
	enum skv_port shared; /* the port used when this one is off; itself = none */
	unsigned planes;
} rows[PORT_COUNT] = {
	[PORT_META_RPC] = { "meta_rpc_port", "kvcm_meta_rpc_port", "--kvcm-meta-rpc-port", true,
			    PORT_META_RPC,
			    SKV_PLANE_META },
	[PORT_META_HTTP] = { "meta_http_port", "kvcm_meta_http_port", "--kvcm-meta-http-port",
			     false, PORT_META_HTTP,
			     SKV_PLANE_META },
	[PORT_ADMIN_RPC] = { "admin_rpc_port", "kvcm_admin_rpc_port", "--kvcm-admin-rpc-port", true,
			     PORT_META_RPC,
			     SKV_PLANE_ADMIN | SKV_PLANE_DEBUG },
	[PORT_ADMIN_HTTP] = { "admin_http_port", "kvcm_admin_http_port", "--kvcm-admin-http-port",
			      false,
			      PORT_META_HTTP, SKV_PLANE_ADMIN | SKV_PLANE_DEBUG },
	[PORT_DEBUG_HTTP] = { "debug_http_port", "kvcm_debug_http_port", "--kvcm-debug-http-port",
			      false,
			      PORT_DEBUG_HTTP, SKV_PLANE_DEBUG },
};

static uint64_t asked(const struct skv_params *p, enum skv_port which)
{
	switch (which) {
	case PORT_META_RPC:
		return p->kvcm_meta_rpc_port;
	case PORT_META_HTTP:
		return p->kvcm_meta_http_port;
	case PORT_ADMIN_RPC:
		return p->kvcm_admin_rpc_port;
	case PORT_ADMIN_HTTP:
		return p->kvcm_admin_http_port;
	case PORT_DEBUG_HTTP:
		return p->kvcm_debug ? p->kvcm_debug_http_port : SKV_PORT_OFF;
	case PORT_COUNT:
		break;
	}
	return SKV_PORT_OFF;
}

/* Does it use another one's port, because its own is off or has the same number? */
static bool is_shared(const struct skv_params *p, enum skv_port which)
{
	const uint64_t number = asked(p, which);

	assert(rows[rows[which].shared].shared == rows[which].shared); /* no chains */
	return rows[which].shared != which &&
	       (number == SKV_PORT_OFF || (number != 0 && number == asked(p, rows[which].shared)));
}

/* Services of a port: its own, and those that share it. */
static unsigned planes_of(const struct skv_params *p, enum skv_port which)
{
	unsigned planes = 0;

	for (enum skv_port i = 0; i < PORT_COUNT; i++)
		if (i == which || (is_shared(p, i) && rows[i].shared == which))
			planes |= rows[i].planes;
	return p->kvcm_debug ? planes : planes & ~(unsigned)SKV_PLANE_DEBUG;
}

static const char *listen_address(const struct skv_params *p)
{
	return *p->kvcm_listen ? p->kvcm_listen : p->http_listen;
}

/* A port without the meta service gets few calls: two threads suffice. */
static uint32_t threads(uint64_t asked_for, unsigned planes)
{
	const uint32_t few = asked_for == 1 ? 1 : 2;

	return planes & SKV_PLANE_META ? (uint32_t)asked_for : few;
}

/* Tokens of the admin service alone are enough: the meta service is meant to be open. */
static bool any_address(const struct skv_params *p)
{
	return p->kvcm_open || *p->kvcm_admin_tokens;
}

static int bind_http(struct skv_ports *ports, const struct skv_params *p, struct skv_service *s,
		     const struct skv_apis *apis, enum skv_port which, struct skv_error *err)
{
	struct skv_httpd_options o;

	assert(!rows[which].rpc && asked(p, which) < SKV_PORT_OFF);
	skv_httpd_options_init(&o);
	o.apis = *apis;
	o.listen = listen_address(p);
	o.port = (uint16_t)asked(p, which);
	o.open = any_address(p);
	o.host_param = "kvcm_listen";
	o.port_param = rows[which].param;
	o.port_option = rows[which].option;
	o.socket_name = rows[which].name;
	limit_httpd(p, &o);
	o.tls = o.tls && p->kvcm_tls;
	o.threads = threads(p->http_threads, apis->planes);
	return skv_httpd_create(&o, s, &ports->http[which], err);
}

static int bind_rpc(struct skv_ports *ports, const struct skv_params *p, struct skv_service *s,
		    const struct skv_apis *apis, enum skv_port which, struct skv_error *err)
{
	struct skv_grpc_options o;

	assert(rows[which].rpc && asked(p, which) < SKV_PORT_OFF);
	skv_grpc_options_init(&o);
	o.apis = *apis;
	o.listen = listen_address(p);
	o.port = (uint16_t)asked(p, which);
	o.open = any_address(p);
	o.host_param = "kvcm_listen";
	o.port_param = rows[which].param;
	o.port_option = rows[which].option;
	o.socket_name = rows[which].name;
	limit_grpc(p, &o);
	o.tls = o.tls && p->kvcm_tls;
	o.threads = threads(p->grpc_threads, apis->planes);
	return skv_grpc_create(&o, s, &ports->grpc[which], err);
}

int skv_ports_bind(struct skv_ports *ports, const struct skv_params *p, struct skv_service *s,
		   const struct skv_api *api, struct skv_error *err)
{
	int rc = SKV_OK;

	for (enum skv_port i = 0; rc == SKV_OK && i < PORT_COUNT; i++) {
		const struct skv_apis apis = { .v = { api }, .n = 1, .planes = planes_of(p, i) };

		if (asked(p, i) == SKV_PORT_OFF || is_shared(p, i))
			continue;
		rc = rows[i].rpc ? bind_rpc(ports, p, s, &apis, i, err)
				 : bind_http(ports, p, s, &apis, i, err);
		/* its number was not chosen by anyone */
		if (rc != SKV_OK && i == PORT_DEBUG_HTTP) {
			skv_log(SKV_LOG_WARN, "main", "%s", err->message);
			rc = SKV_OK;
		}
	}
	return rc;
}

uint16_t skv_ports_number(const struct skv_ports *ports, enum skv_port which)
{
	const enum skv_port at =
		ports->http[which] || ports->grpc[which] ? which : rows[which].shared;

	assert(!ports->http[at] || !ports->grpc[at]);
	if (ports->http[at])
		return skv_httpd_port(ports->http[at]);
	return ports->grpc[at] ? skv_grpc_port(ports->grpc[at]) : 0;
}

/* Atomically: whoever waits for the file reads all of it. */
static int write_file(struct skv_ports *ports, const char *path, struct skv_error *err)
{
	char temporary[4200];
	bool good;
	int n;
	FILE *f;

	if (!*path)
		return SKV_OK;
	n = snprintf(temporary, sizeof temporary, "%s.new", path);
	assert(n > 0 && (size_t)n < sizeof temporary);
	f = fopen(temporary, "we");
	good = f != NULL;
	for (enum skv_port i = 0; good && i < PORT_COUNT; i++)
		if (skv_ports_number(ports, i))
			good = fprintf(f, "%s %u\n", rows[i].name, skv_ports_number(ports, i)) > 0;
	if (f && fclose(f) != 0)
		good = false;
	if (!good || rename(temporary, path) != 0)
		return skv_fail(err, SKV_E_IO, "kvcm_ports_file",
				"cannot write kvcm_ports_file %.200s: %s", path, strerror(errno));
	ports->has_file = true;
	return SKV_OK;
}

int skv_ports_start(struct skv_ports *ports, const struct skv_params *p, struct skv_error *err)
{
	int rc = SKV_OK;

	assert(!ports->has_file);
	for (enum skv_port i = 0; rc == SKV_OK && i < PORT_COUNT; i++) {
		if (ports->http[i])
			rc = skv_httpd_start(ports->http[i], err);
		else if (ports->grpc[i])
			rc = skv_grpc_start(ports->grpc[i], err);
	}
	if (rc == SKV_OK)
		rc = write_file(ports, p->kvcm_ports_file, err);
	if (rc == SKV_OK)
		skv_log(SKV_LOG_INFO, "main",
			"kvcm on %s: meta grpc %u http %u, admin grpc %u http %u%s",
			listen_address(p), skv_ports_number(ports, PORT_META_RPC),
			skv_ports_number(ports, PORT_META_HTTP),
			skv_ports_number(ports, PORT_ADMIN_RPC),
			skv_ports_number(ports, PORT_ADMIN_HTTP),
			p->kvcm_debug ? ", with fault injection" : "");
	return rc;
}

uint32_t skv_ports_drain(struct skv_ports *ports, const struct skv_params *p, uint32_t timeout_ms)
{
	uint32_t left = 0;

	if (ports->has_file)
		unlink(p->kvcm_ports_file);
	ports->has_file = false;
	for (enum skv_port i = 0; i < PORT_COUNT; i++) {
		if (ports->http[i])
			left += skv_httpd_drain(ports->http[i], left ? 0 : timeout_ms);
		else if (ports->grpc[i])
			left += skv_grpc_drain(ports->grpc[i], left ? 0 : timeout_ms);
	}
	return left;
}

bool skv_ports_quiet(struct skv_ports *ports, uint32_t timeout_ms)
{
	bool quiet = true;

	for (enum skv_port i = 0; i < PORT_COUNT; i++) {
		if (ports->http[i])
			quiet = skv_httpd_quiet(ports->http[i], quiet ? timeout_ms : 0) && quiet;
		else if (ports->grpc[i])
			quiet = skv_grpc_quiet(ports->grpc[i], quiet ? timeout_ms : 0) && quiet;
	}
	return quiet;
}

void skv_ports_close(struct skv_ports *ports)
{
	for (enum skv_port i = 0; i < PORT_COUNT; i++) {
		skv_grpc_destroy(ports->grpc[i]);
		skv_httpd_destroy(ports->http[i]);
		ports->grpc[i] = NULL;
		ports->http[i] = NULL;
	}
}
