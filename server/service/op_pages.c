/*
 * op_pages.c - what needs no object: index, health, readiness, OpenAPI, statistics.
 *
 * No state. /healthz tells that this process serves; /readyz that it can do its work now.
 */
#include <kvb/call.h>

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
void kvb_op_healthz_write(struct kvb_call *r) { r->fixed = "{\"status\":\"ok\"}"; }

int kvb_op_readyz_run(struct kvb_call *r) { return kvb_service_ready(r->s, &r->err); }
void kvb_op_readyz_write(struct kvb_call *r) { r->fixed = "{\"status\":\"ready\"}"; }

int kvb_op_openapi_run(struct kvb_call *r)
{
	(void)r;
	return KVB_OK;
}
void kvb_op_openapi_write(struct kvb_call *r) { r->fixed = kvb_v1_openapi(); }

int kvb_op_stats_run(struct kvb_call *r)
{
	return kvb_core_stats(r->s->core, &r->arena, &r->u.stats, &r->err);
}
void kvb_op_stats_write(struct kvb_call *r) { r->codec->write_stats(&r->out, &r->u.stats); }
