/*
 * metrics.c - the pages API's counters in Prometheus text format. No state of its own.
 */
#include "pages.h"

#include <inttypes.h>

void pages_expose(const struct kvb_api *api, struct kvb_service *s, struct kvb_arena *a, struct kvb_buf *out)
{
	static const struct {
		const char *name, *help;
	} rows[] = {
#define ROW(name, help) { "pages_" #name, help },
		KVB_PAGES_COUNTERS(ROW)
#undef ROW
	};
	const struct pages *p = api->ctx;

	(void)s;
	(void)a;
	for (unsigned i = 0; i < PAGES_COUNTERS; i++) {
		kvb_metrics_head(out, rows[i].name, "_total", "counter", rows[i].help);
		kvb_buf_printf(out, "kvblock_%s_total %" PRIuFAST64 "\n", rows[i].name, atomic_load(&p->counters[i]));
	}
}
