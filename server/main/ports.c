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
#include "main.h"

#define PORT_FILE_END ".kvcm"

static const struct row {
	const char *name; /* in the file of ports, and of an inherited socket */
	bool rpc;
	enum skv_port shared; /* the port used when this one is off; itself = none */
	unsigned planes;
} rows[PORT_COUNT] = {
	[PORT_META_RPC] = { "meta_rpc_port", true, PORT_META_RPC, SKV_PLANE_META },
	[PORT_META_HTTP] = { "meta_http_port", false, PORT_META_HTTP, SKV_PLANE_META },
	[PORT_ADMIN_RPC] = { "admin_rpc_port", true, PORT_META_RPC,
			     SKV_PLANE_ADMIN | SKV_PLANE_DEBUG },
	[PORT_ADMIN_HTTP] = { "admin_http_port", false, PORT_META_HTTP,
			      SKV_PLANE_ADMIN | SKV_PLANE_DEBUG },
	[PORT_DEBUG_HTTP] = { "debug_http_port", false, PORT_DEBUG_HTTP, SKV_PLANE_DEBUG },
};

/* Older debug clients expect theirs 3000 above the HTTP port of the meta service. */
static uint64_t debug_port(const struct skv_params *p, uint64_t meta)
{
	if (!p->kvcm_debug || meta == 0)
		return p->kvcm_debug ? 0 : SKV_PORT_OFF;
	return meta + 3000 < SKV_PORT_OFF ? meta + 3000 : SKV_PORT_OFF;
}

static uint64_t asked(const struct skv_params *p, enum skv_port which)
{
	uint64_t ports[SKV_KVCM_PORTS];
	bool good = skv_kvcm_ports_read(p->kvcm_ports, ports);

	assert(good); /* checked when the parameters were read */
	_Static_assert(PORT_ADMIN_HTTP + 1 == SKV_KVCM_PORTS, "in the order of kvcm_ports");
	return which == PORT_DEBUG_HTTP ? debug_port(p, ports[PORT_META_HTTP]) : ports[which];
}

/* Returns true if the API uses another one's port, because its own is off or has the same
 * number. */
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

static int bind_port(struct skv_ports *ports, const struct skv_params *p, struct skv_service *s,
		     const struct skv_apis *apis, enum skv_port which, struct skv_error *err)
{
	struct skv_port_options o;

	assert(asked(p, which) < SKV_PORT_OFF);
	if (rows[which].rpc)
		skv_grpc_options_init(&o);
	else
		skv_httpd_options_init(&o);
	o.apis = *apis;
	o.listen = listen_address(p);
	o.port = (uint16_t)asked(p, which);
	o.open = any_address(p);
	o.host_param = "kvcm_listen";
	o.port_param = "kvcm_ports";
	o.port_option = "--kvcm-ports";
	o.socket_name = rows[which].name;
	limit_port(p, &o);
	o.tls = o.tls && p->kvcm_tls;
	o.threads = threads(p->threads, apis->planes);
	return rows[which].rpc ? skv_grpc_create(&o, s, &ports->grpc[which], err)
			       : skv_httpd_create(&o, s, &ports->http[which], err);
}

int skv_ports_bind(struct skv_ports *ports, const struct skv_params *p, struct skv_service *s,
		   const struct skv_api *api, struct skv_error *err)
{
	int rc = SKV_OK;

	for (enum skv_port i = 0; rc == SKV_OK && i < PORT_COUNT; i++) {
		const struct skv_apis apis = { .v = { api }, .n = 1, .planes = planes_of(p, i) };

		if (asked(p, i) == SKV_PORT_OFF || is_shared(p, i))
			continue;
		rc = bind_port(ports, p, s, &apis, i, err);
		/* the port's number is a default that nobody chose */
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

/* A line for each port, as name and number. */
static int write_file(const struct skv_ports *ports, const char *path, struct skv_error *err)
{
	char text[PORT_COUNT * 32] = "";
	size_t n = 0;

	for (enum skv_port i = 0; i < PORT_COUNT; i++)
		if (skv_ports_number(ports, i))
			n += (size_t)snprintf(text + n, sizeof text - n, "%s %u\n", rows[i].name,
					      skv_ports_number(ports, i));
	assert(n < sizeof text);
	return skv_write_ports(path, PORT_FILE_END, text, err);
}

int skv_ports_start(struct skv_ports *ports, const struct skv_params *p, struct skv_error *err)
{
	int rc = SKV_OK;

	for (enum skv_port i = 0; rc == SKV_OK && i < PORT_COUNT; i++) {
		if (ports->http[i])
			rc = skv_httpd_start(ports->http[i], err);
		else if (ports->grpc[i])
			rc = skv_grpc_start(ports->grpc[i], err);
	}
	if (rc == SKV_OK)
		rc = write_file(ports, p->port_file, err);
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

	skv_remove_port_file(p->port_file, PORT_FILE_END);
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
