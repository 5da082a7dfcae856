/* limits.c - limits on clients of all ports, from the parameters. Stateless. */
#include "limits.h"
#include "memory.h"

#include <assert.h>
#include <sys/resource.h>

#include <skv/tls.h>

/* The parameters' ranges ensure that it fits. */
static uint32_t narrow(uint64_t v)
{
	assert(v <= UINT32_MAX);
	return (uint32_t)v;
}

#define MIN_RATE_AFTER_MS 5000u /* min_rate applies after this time, and is measured over it */

/* Descriptors that are not for connections: the store, the storages, calls to other hosts. */
#define OWN_DESCRIPTORS 256u

#define SMALLEST_BODIES (1ull << 20)

uint32_t limit_connections(void)
{
	struct rlimit limit;
	rlim_t own;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= UINT32_MAX)
		return 0;
	own = limit.rlim_cur / 2 < OWN_DESCRIPTORS ? limit.rlim_cur / 2 : OWN_DESCRIPTORS;
	return (uint32_t)(limit.rlim_cur - own);
}

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* Bytes that all calls together may hold of so much memory. */
static uint64_t bodies_of(uint64_t memory)
{
	const uint64_t part = memory / 8;

	if (memory == 0)
		return UINT64_MAX;
	return part > SMALLEST_BODIES ? part : SMALLEST_BODIES;
}

void limit_service(const struct skv_params *p, struct skv_service_options *o)
{
	const bool proxied = p->max_connections_per_ip >= p->max_connections;

	assert(p->body_max <= p->body_total_max);
	o->audit_file = p->audit_file;
	o->body_total_max = least(p->body_total_max, bodies_of(memory_max(p)));
	o->body_max = least(p->body_max, o->body_total_max);
	if (proxied) { /* an address stands for many clients */
		o->token_failures = 0;
		o->body_address_percent = 100;
	}
	o->answer_max = p->answer_max;
	o->pace = (struct skv_pace_limit){ p->min_rate, MIN_RATE_AFTER_MS };
	o->hold_ms = narrow(p->hold_ms);
	o->forward = p->forward;
	o->slow_ms = narrow(p->slow_ms);
	o->metrics_open = p->metrics_open;
	o->connections_max = limit_connections();
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

/* Connections of one address to one port: few enough to leave room for others, on two ports. */
static uint32_t per_address(const struct skv_params *p)
{
	const uint32_t all = limit_connections();
	uint64_t most = p->max_connections_per_ip ? p->max_connections_per_ip
						  : (p->max_connections + 1) / 2;

	if (all && most > (all + 3) / 4)
		most = (all + 3) / 4;
	return narrow(most);
}

void limit_port(const struct skv_params *p, struct skv_port_options *o)
{
	assert(p->idle_timeout_s <= UINT32_MAX / 1000);
	o->tls = skv_tls_loaded();
	o->threads = narrow(p->threads);
	o->max_connections = narrow(p->max_connections);
	o->max_connections_per_ip = per_address(p);
	o->idle_timeout_ms = (uint32_t)p->idle_timeout_s * 1000;
}
