/*
 * metrics.c - the hf3fs API's counters in Prometheus text format. No state of its own.
 */
#include "hf3fs.h"

#include <inttypes.h>
#include <string.h>

void hf3fs_expose(const struct skv_api *api, struct skv_service *s, struct skv_arena *a,
		  struct skv_buf *out)
{
	static const struct {
		const char *name, *labels, *help;
	} rows[] = {
#define ROW(number, name, labels, help) { "pages_" name, labels, help },
		SKV_HF3FS_COUNTERS(ROW)
#undef ROW
	};
	const struct pages *p = api->ctx;

	(void)s;
	(void)a;
	for (unsigned i = 0; i < HF3FS_COUNTERS; i++) {
		if (i == 0 || strcmp(rows[i].name, rows[i - 1].name) != 0)
			skv_metrics_head(out, rows[i].name, "_total", "counter", rows[i].help);
		skv_buf_printf(out, "slabkv_%s_total%s %" PRIuFAST64 "\n", rows[i].name,
			       rows[i].labels, atomic_load(&p->counters[i]));
	}
}
