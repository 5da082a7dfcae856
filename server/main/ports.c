/*
 * ports.c - opens, starts and closes the peer's ports. See ports.h.
 *
 * Called by main's thread, and kvb_ports_start by the thread that makes the default objects.
 */
#include "ports.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <kvb/api.h>
#include <kvb/front.h>
#include <kvb/grpc.h>
#include <kvb/log.h>

static const struct row {
	const char *name; /* in kvcm_ports_file, and of a socket that was handed over */
	const char *param, *option;
	bool rpc;
	enum kvb_port shared; /* which port is used when this one is off; itself = none is */
	unsigned planes;
} rows[PORT_COUNT] = {
	[PORT_META_RPC] = { "meta_rpc_port", "kvcm_meta_rpc_port", "--kvcm-meta-rpc-port", true, PORT_META_RPC,
			    KVB_PLANE_META },
	[PORT_META_HTTP] = { "meta_http_port", "kvcm_meta_http_port", "--kvcm-meta-http-port", false, PORT_META_HTTP,
			     KVB_PLANE_META },
	[PORT_ADMIN_RPC] = { "admin_rpc_port", "kvcm_admin_rpc_port", "--kvcm-admin-rpc-port", true, PORT_META_RPC,
			     KVB_PLANE_ADMIN | KVB_PLANE_DEBUG },
	[PORT_ADMIN_HTTP] = { "admin_http_port", "kvcm_admin_http_port", "--kvcm-admin-http-port", false,
			      PORT_META_HTTP, KVB_PLANE_ADMIN | KVB_PLANE_DEBUG },
	[PORT_DEBUG_HTTP] = { "debug_http_port", "kvcm_debug_http_port", "--kvcm-debug-http-port", false,
			      PORT_DEBUG_HTTP, KVB_PLANE_DEBUG },
};

static uint64_t asked(const struct kvb_params *p, enum kvb_port which)
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
		return p->kvcm_debug ? p->kvcm_debug_http_port : KVB_PORT_OFF;
	case PORT_COUNT:
		break;
	}
	return KVB_PORT_OFF;
}

/* On the port of another one: its own is off, or the same number. */
static bool is_shared(const struct kvb_params *p, enum kvb_port which)
{
	const uint64_t number = asked(p, which);

	return rows[which].shared != which &&
	       (number == KVB_PORT_OFF || (number != 0 && number == asked(p, rows[which].shared)));
}

/* Services of a port: its own, and those that share it. */
static unsigned planes_of(const struct kvb_params *p, enum kvb_port which)
{
	unsigned planes = 0;

	for (enum kvb_port i = 0; i < PORT_COUNT; i++)
		if (i == which || (is_shared(p, i) && rows[i].shared == which))
			planes |= rows[i].planes;
	return p->kvcm_debug ? planes : planes & ~(unsigned)KVB_PLANE_DEBUG;
}

static const char *listen_address(const struct kvb_params *p)
{
	return *p->kvcm_listen ? p->kvcm_listen : p->http_listen;
}

/* Few calls come to a port without the meta service: two threads do. */
static uint32_t threads(uint64_t asked_for, unsigned planes)
{
	const uint32_t few = asked_for == 1 ? 1 : 2;

	return planes & KVB_PLANE_META ? (uint32_t)asked_for : few;
}

/* Tokens of the admin service alone do: the meta service is meant to be open. */
static bool any_address(const struct kvb_params *p)
{
	return p->kvcm_open || *p->kvcm_admin_tokens;
}

static int bind_http(struct kvb_ports *ports, const struct kvb_params *p, struct kvb_service *s,
		     const struct kvb_apis *apis, enum kvb_port which, struct kvb_error *err)
{
	struct kvb_front_options o;

	kvb_front_options_init(&o);
	o.apis = *apis;
	o.listen = listen_address(p);
	o.port = (uint16_t)asked(p, which);
	o.open = any_address(p);
	o.host_param = "kvcm_listen";
	o.port_param = rows[which].param;
	o.port_option = rows[which].option;
	o.socket_name = rows[which].name;
	o.threads = threads(p->http_threads, apis->planes);
	o.max_connections = (uint32_t)p->max_connections;
	o.max_connections_per_ip = (uint32_t)p->max_connections_per_ip;
	o.idle_timeout_ms = (uint32_t)p->idle_timeout_s * 1000;
	return kvb_front_create(&o, s, &ports->http[which], err);
}

static int bind_rpc(struct kvb_ports *ports, const struct kvb_params *p, struct kvb_service *s,
		    const struct kvb_apis *apis, enum kvb_port which, struct kvb_error *err)
{
	struct kvb_grpc_options o;

	kvb_grpc_options_init(&o);
	o.apis = *apis;
	o.listen = listen_address(p);
	o.port = (uint16_t)asked(p, which);
	o.open = any_address(p);
	o.host_param = "kvcm_listen";
	o.port_param = rows[which].param;
	o.port_option = rows[which].option;
	o.socket_name = rows[which].name;
	o.threads = threads(p->grpc_threads, apis->planes);
	o.max_connections = (uint32_t)p->max_connections;
	o.max_streams = (uint32_t)p->grpc_max_streams;
	o.idle_timeout_ms = (uint32_t)p->idle_timeout_s * 1000;
	return kvb_grpc_create(&o, s, &ports->grpc[which], err);
}

int kvb_ports_bind(struct kvb_ports *ports, const struct kvb_params *p, struct kvb_service *s,
		   const struct kvb_api *api, struct kvb_error *err)
{
	int rc = KVB_OK;

	for (enum kvb_port i = 0; rc == KVB_OK && i < PORT_COUNT; i++) {
		const struct kvb_apis apis = { .v = { api }, .n = 1, .planes = planes_of(p, i) };

		if (asked(p, i) == KVB_PORT_OFF || is_shared(p, i))
			continue;
		rc = rows[i].rpc ? bind_rpc(ports, p, s, &apis, i, err) : bind_http(ports, p, s, &apis, i, err);
		if (rc != KVB_OK && i == PORT_DEBUG_HTTP) { /* its number was nobody's choice */
			kvb_log(KVB_LOG_WARN, "main", "%s", err->message);
			rc = KVB_OK;
		}
	}
	return rc;
}

uint16_t kvb_ports_number(const struct kvb_ports *ports, enum kvb_port which)
{
	const enum kvb_port at = ports->http[which] || ports->grpc[which] ? which : rows[which].shared;

	if (ports->http[at])
		return kvb_front_port(ports->http[at]);
	return ports->grpc[at] ? kvb_grpc_port(ports->grpc[at]) : 0;
}

/* Complete or not there: whoever waits for the file reads all of it. */
static int write_file(struct kvb_ports *ports, const char *path, struct kvb_error *err)
{
	char temporary[4200];
	bool good;
	FILE *f;

	if (!*path)
		return KVB_OK;
	snprintf(temporary, sizeof temporary, "%s.new", path);
	f = fopen(temporary, "we");
	good = f != NULL;
	for (enum kvb_port i = 0; good && i < PORT_COUNT; i++)
		if (kvb_ports_number(ports, i))
			good = fprintf(f, "%s %u\n", rows[i].name, kvb_ports_number(ports, i)) > 0;
	if (f && fclose(f) != 0)
		good = false;
	if (!good || rename(temporary, path) != 0)
		return kvb_fail(err, KVB_E_IO, "kvcm_ports_file", "cannot write kvcm_ports_file %.200s: %s", path,
				strerror(errno));
	ports->has_file = true;
	return KVB_OK;
}

int kvb_ports_start(struct kvb_ports *ports, const struct kvb_params *p, struct kvb_error *err)
{
	int rc = KVB_OK;

	for (enum kvb_port i = 0; rc == KVB_OK && i < PORT_COUNT; i++) {
		if (ports->http[i])
			rc = kvb_front_start(ports->http[i], err);
		else if (ports->grpc[i])
			rc = kvb_grpc_start(ports->grpc[i], err);
	}
	if (rc == KVB_OK)
		rc = write_file(ports, p->kvcm_ports_file, err);
	if (rc == KVB_OK)
		kvb_log(KVB_LOG_INFO, "main", "kvcm on %s: meta grpc %u http %u, admin grpc %u http %u%s",
			listen_address(p), kvb_ports_number(ports, PORT_META_RPC),
			kvb_ports_number(ports, PORT_META_HTTP), kvb_ports_number(ports, PORT_ADMIN_RPC),
			kvb_ports_number(ports, PORT_ADMIN_HTTP), p->kvcm_debug ? ", with fault injection" : "");
	return rc;
}

uint32_t kvb_ports_drain(struct kvb_ports *ports, const struct kvb_params *p, uint32_t timeout_ms)
{
	uint32_t left = 0;

	if (ports->has_file)
		unlink(p->kvcm_ports_file);
	ports->has_file = false;
	for (enum kvb_port i = 0; i < PORT_COUNT; i++) {
		if (ports->http[i])
			left += kvb_front_drain(ports->http[i], left ? 0 : timeout_ms);
		else if (ports->grpc[i])
			left += kvb_grpc_drain(ports->grpc[i], left ? 0 : timeout_ms);
	}
	return left;
}

bool kvb_ports_quiet(struct kvb_ports *ports, uint32_t timeout_ms)
{
	bool quiet = true;

	for (enum kvb_port i = 0; i < PORT_COUNT; i++) {
		if (ports->http[i])
			quiet = kvb_front_quiet(ports->http[i], quiet ? timeout_ms : 0) && quiet;
		else if (ports->grpc[i])
			quiet = kvb_grpc_quiet(ports->grpc[i], quiet ? timeout_ms : 0) && quiet;
	}
	return quiet;
}

void kvb_ports_close(struct kvb_ports *ports)
{
	for (enum kvb_port i = 0; i < PORT_COUNT; i++) {
		kvb_grpc_destroy(ports->grpc[i]);
		kvb_front_destroy(ports->http[i]);
		ports->grpc[i] = NULL;
		ports->http[i] = NULL;
	}
}
