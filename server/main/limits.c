/* limits.c - limits on clients of all ports, from the parameters. Stateless. */
#include "limits.h"

#include <assert.h>

#include <skv/tls.h>

/* The parameters' ranges ensure that it fits. */
static uint32_t narrow(uint64_t v)
{
	assert(v <= UINT32_MAX);
	return (uint32_t)v;
}

void limit_service(const struct skv_params *p, struct skv_service_options *o)
{
	assert(p->body_reserve_percent <= 100 && p->body_tenant_percent <= 100 &&
	       p->body_address_percent <= 100);
	assert(p->body_max <= p->body_total_max && p->min_rate_after_s <= UINT32_MAX / 1000);
	o->audit_file = p->audit_file;
	o->token_failures = narrow(p->token_failures);
	o->body_max = p->body_max;
	o->body_total_max = p->body_total_max;
	o->body_reserve_percent = (unsigned)p->body_reserve_percent;
	o->body_tenant_percent = (unsigned)p->body_tenant_percent;
	o->body_address_percent = (unsigned)p->body_address_percent;
	o->answer_max = p->answer_max;
	o->pace = (struct skv_pace_limit){ p->min_rate, (uint32_t)p->min_rate_after_s * 1000 };
	o->hold_ms = narrow(p->hold_ms);
	o->forward = p->forward;
	o->slow_ms = narrow(p->slow_ms);
	o->log_refused = p->log_refused;
	o->metrics_open = p->metrics_open;
}

void limit_core(const struct skv_params *p, struct skv_core_options *o)
{
	assert(p->leased_percent <= 100 && p->open_percent <= 100 && p->free_percent <= 100);
	o->lease_default_ms = narrow(p->lease_default_ms);
	o->session_default_ms = narrow(p->session_default_ms);
	o->max_sessions = narrow(p->max_sessions);
	o->leased_percent = (uint32_t)p->leased_percent;
	o->open_percent = (uint32_t)p->open_percent;
	o->free_percent = (uint32_t)p->free_percent;
	o->journal_limit = p->journal_limit;
	o->instance_idle_ms = p->instance_idle_days * 86400000;
}

/* Connections of one address: few enough to leave room for others. */
static uint32_t per_address(const struct skv_params *p)
{
	return (uint32_t)(p->max_connections_per_ip ? p->max_connections_per_ip
						    : (p->max_connections + 1) / 2);
}

void limit_httpd(const struct skv_params *p, struct skv_httpd_options *o)
{
	assert(p->idle_timeout_s <= UINT32_MAX / 1000);
	o->tls = skv_tls_loaded();
	o->threads = narrow(p->http_threads);
	o->max_connections = narrow(p->max_connections);
	o->max_connections_per_ip = per_address(p);
	o->idle_timeout_ms = (uint32_t)p->idle_timeout_s * 1000;
}

void limit_grpc(const struct skv_params *p, struct skv_grpc_options *o)
{
	assert(p->idle_timeout_s <= UINT32_MAX / 1000);
	o->tls = skv_tls_loaded();
	o->threads = narrow(p->grpc_threads);
	o->max_connections = narrow(p->max_connections);
	o->max_connections_per_ip = per_address(p);
	o->max_streams = narrow(p->grpc_max_streams);
	o->idle_timeout_ms = (uint32_t)p->idle_timeout_s * 1000;
}
