/*
 * limits.c - the parameters that bound what clients of all ports may take. No state.
 */
#include "limits.h"

#include <assert.h>

/* The ranges of the parameters see to it. */
static uint32_t narrow(uint64_t v)
{
	assert(v <= UINT32_MAX);
	return (uint32_t)v;
}

void limit_service(const struct skv_params *p, struct skv_service_options *o)
{
	assert(p->body_reserve_percent <= 100 && p->body_tenant_percent <= 100 && p->body_address_percent <= 100);
	assert(p->body_max <= p->body_total_max && p->min_rate_after_s <= UINT32_MAX / 1000);
	o->body_max = p->body_max;
	o->body_total_max = p->body_total_max;
	o->body_reserve_percent = (unsigned)p->body_reserve_percent;
	o->body_tenant_percent = (unsigned)p->body_tenant_percent;
	o->body_address_percent = (unsigned)p->body_address_percent;
	o->answer_max = p->answer_max;
	o->pace = (struct skv_pace_limit){ p->min_rate, (uint32_t)p->min_rate_after_s * 1000 };
	o->slow_ms = narrow(p->slow_ms);
	o->log_refused = p->log_refused;
	o->metrics_open = p->metrics_open;
}

/* Of one address: by itself as many as leave room for others. */
static uint32_t per_address(const struct skv_params *p)
{
	return (uint32_t)(p->max_connections_per_ip ? p->max_connections_per_ip : (p->max_connections + 1) / 2);
}

void limit_httpd(const struct skv_params *p, struct skv_httpd_options *o)
{
	assert(p->idle_timeout_s <= UINT32_MAX / 1000);
	o->threads = narrow(p->http_threads);
	o->max_connections = narrow(p->max_connections);
	o->max_connections_per_ip = per_address(p);
	o->idle_timeout_ms = (uint32_t)p->idle_timeout_s * 1000;
}

void limit_grpc(const struct skv_params *p, struct skv_grpc_options *o)
{
	assert(p->idle_timeout_s <= UINT32_MAX / 1000);
	o->threads = narrow(p->grpc_threads);
	o->max_connections = narrow(p->max_connections);
	o->max_connections_per_ip = per_address(p);
	o->max_streams = narrow(p->grpc_max_streams);
	o->idle_timeout_ms = (uint32_t)p->idle_timeout_s * 1000;
}
