/*
 * portions.c - the core is asked for a long list, portion by portion. See portions.h. No state of
 * its own.
 */
#include <skv/portions.h>

#include <assert.h>

static bool goes_on(struct skv_portions *p, int *status)
{
	const bool more = p->take ? p->take(p->ctx, status) : *status == SKV_OK;

	assert(*status != SKV_PENDING && p->n <= p->total - p->at);
	if (!more || p->n == p->total - p->at)
		return false;
	p->at += p->n;
	return true;
}

static void on_done(void *ctx, int status)
{
	struct skv_portions *p = ctx;

	if (goes_on(p, &status))
		status = skv_portions_run(p);
	if (status != SKV_PENDING)
		p->end->fn(p->end->ctx, status);
}

int skv_portions_run(struct skv_portions *p)
{
	const uint32_t most = p->most ? p->most : SKV_MAX_KEYS;
	int rc;

	assert(p->at <= p->total && most <= SKV_MAX_KEYS);
	p->done = (struct skv_done){ on_done, p };
	do {
		p->n = p->total - p->at < most ? p->total - p->at : most;
		rc = p->ask(p->ctx);
	} while (rc != SKV_PENDING && goes_on(p, &rc));
	return rc;
}
