/*
 * op_pages.c - pages without an object: index, health, readiness, OpenAPI, statistics, metrics.
 *
 * No state. /healthz tells that this process serves; /readyz that it can do its work now.
 */
#include "v1.h"

static void write_fixed(struct skv_request *r, const char *text)
{
	r->type = "application/json";
	r->fixed = text;
}

int skv_op_index_run(struct skv_request *r)
{
	(void)r;
	return SKV_OK;
}
void skv_op_index_write(struct skv_request *r)
{
	r->type = "text/plain; charset=utf-8";
	skv_buf_printf(&r->out, "slabkvd %s: where every KV-cache block lies.\n\n", SKV_VERSION);
	for (size_t i = 0; i < SKV_OP_COUNT; i++)
		skv_buf_printf(&r->out, "%-6s %s\n", skv_routes[i].method, skv_routes[i].pattern);
	skv_buf_printf(&r->out, "\nMessages: GET /openapi.json. Try: curl -s %s/v1/stats\n",
		       r->s->url);
}

int skv_op_healthz_run(struct skv_request *r)
{
	if (skv_cluster_state_get(r->s->cluster) == SKV_CORE_STOPPED)
		return skv_fail(&r->err, SKV_E_NOT_READY, NULL, "this manager has stopped");
	return SKV_OK;
}
void skv_op_healthz_write(struct skv_request *r) { write_fixed(r, "{\"status\":\"ok\"}"); }

int skv_op_readyz_run(struct skv_request *r) { return skv_service_ready(r->s, &r->err); }
void skv_op_readyz_write(struct skv_request *r) { write_fixed(r, "{\"status\":\"ready\"}"); }

int skv_op_openapi_run(struct skv_request *r)
{
	(void)r;
	return SKV_OK;
}
void skv_op_openapi_write(struct skv_request *r)
{
	r->type = "application/json";
	skv_v1_write_openapi(&r->out);
}

int skv_op_stats_run(struct skv_request *r)
{
	struct skv_page page;
	int rc = skv_v1_page(r, &page);

	page.brief = true;
	v1_of(r)->answer = &v1_of(r)->u.stats;
	return rc == SKV_OK ? skv_cluster_stats_all(skv_request_cluster(r), &page, &r->arena,
						    &v1_of(r)->u.stats, &r->err)
			    : rc;
}

/* Nothing is decided here, so that a standby is scraped like any other. */
int skv_op_metrics_run(struct skv_request *r)
{
	(void)r;
	return SKV_OK;
}
void skv_op_metrics_write(struct skv_request *r)
{
	r->type = "text/plain; version=0.0.4; charset=utf-8";
	skv_request_expose(r);
}
