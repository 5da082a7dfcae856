/*
 * op_pages.c - what needs no object: index, health, readiness, OpenAPI, statistics, metrics.
 *
 * No state. /healthz tells that this process serves; /readyz that it can do its work now.
 */
#include "native.h"

static void write_fixed(struct kvb_call *r, const char *text)
{
	r->type = "application/json";
	r->fixed = text;
}

int kvb_op_index_run(struct kvb_call *r)
{
	(void)r;
	return KVB_OK;
}
void kvb_op_index_write(struct kvb_call *r)
{
	r->type = "text/plain; charset=utf-8";
	kvb_buf_printf(&r->out, "kvblockd %s: where every KV-cache block lies.\n\n", KVB_VERSION);
	for (size_t i = 0; i < ROUTE_COUNT; i++)
		kvb_buf_printf(&r->out, "%-6s %s\n", kvb_routes[i].method, kvb_routes[i].pattern);
	kvb_buf_printf(&r->out, "\nMessages: GET /openapi.json. Try: curl -s %s/v1/stats\n",
		       r->s->url);
}

int kvb_op_healthz_run(struct kvb_call *r)
{
	if (kvb_core_state_get(r->s->core) == KVB_CORE_STOPPED)
		return kvb_fail(&r->err, KVB_E_NOT_READY, NULL, "this manager has stopped");
	return KVB_OK;
}
void kvb_op_healthz_write(struct kvb_call *r) { write_fixed(r, "{\"status\":\"ok\"}"); }

int kvb_op_readyz_run(struct kvb_call *r) { return kvb_service_ready(r->s, &r->err); }
void kvb_op_readyz_write(struct kvb_call *r) { write_fixed(r, "{\"status\":\"ready\"}"); }

int kvb_op_openapi_run(struct kvb_call *r)
{
	(void)r;
	return KVB_OK;
}
void kvb_op_openapi_write(struct kvb_call *r) { write_fixed(r, kvb_v1_openapi()); }

int kvb_op_stats_run(struct kvb_call *r)
{
	return kvb_core_stats(r->s->core, &r->arena, &native_of(r)->u.stats, &r->err);
}
void kvb_op_stats_write(struct kvb_call *r) { native_of(r)->codec->write_stats(&r->out, &native_of(r)->u.stats); }

/* Nothing is decided here, so that a standby is scraped like any other. */
int kvb_op_metrics_run(struct kvb_call *r)
{
	(void)r;
	return KVB_OK;
}
void kvb_op_metrics_write(struct kvb_call *r)
{
	r->type = "text/plain; version=0.0.4; charset=utf-8";
	kvb_service_expose(r->s, &r->arena, &r->out);
}
