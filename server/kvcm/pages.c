/*
 * pages.c - GET pages on KVCM's admin port: metrics and health.
 *
 * On a port that serves the native API as well, its /metrics is the same. No state.
 */
#include "op_list.h"

int kvcm_page_metrics_run(struct skv_request *c)
{
	(void)c;
	return SKV_OK;
}
void kvcm_page_metrics_write(struct skv_request *c)
{
	c->type = "text/plain; version=0.0.4; charset=utf-8";
	skv_request_expose(c);
}

int kvcm_page_healthy_run(struct skv_request *c)
{
	return kvcm_health(c->s).healthy ? SKV_OK
					 : skv_fail(&c->err, SKV_E_NOT_READY, NULL, "not healthy");
}
void kvcm_page_healthy_write(struct skv_request *c)
{
	c->type = "application/json";
	c->fixed = "{\"status\":\"OK\"}";
}
