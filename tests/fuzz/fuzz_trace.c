/*
 * fuzz_trace.c - any bytes as a trace of requests.
 *
 * What is read must come back the same when it is written and read again, and can be numbered, or
 * is told to be no chain; what is refused names a line. What was numbered is run through a policy
 * and the optimum, at a small capacity.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <skv/trace.h>

#include "../../server/simulate/run.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_again(const struct skv_trace *t)
{
	struct skv_trace again;
	char *text = NULL, why[256];
	size_t n;
	FILE *f = open_memstream(&text, &n);

	if (!f || skv_trace_write(t, f) != 0)
		abort();
	fclose(f);
	f = fmemopen(text, n, "r");
	if (!f || skv_trace_read(f, 0, &again, why) != 0 || again.n != t->n)
		abort();
	for (size_t i = 0; i < t->n; i++)
		if (again.v[i].n_ids != t->v[i].n_ids ||
		    again.v[i].timestamp_ms != t->v[i].timestamp_ms ||
		    memcmp(again.v[i].ids, t->v[i].ids, t->v[i].n_ids * sizeof *t->v[i].ids) != 0)
			abort();
	fclose(f);
	skv_trace_free(&again);
	free(text);
}

static void simulate(const struct skv_trace *t)
{
	struct skv_error err = { 0 };
	struct refs r;
	struct run lru = { .refs = &r, .policy = "lru", .blocks = 3 },
	best = { .refs = &r, .policy = "belady", .blocks = 3 };
	int rc = refs_make(t, "fuzz", &r, &err);

	if (rc != SKV_OK && (rc != SKV_E_INVALID || !strstr(err.message, "line")))
		abort();
	if (rc == SKV_OK && (run_policy(&lru) != SKV_OK || run_belady(&best) != SKV_OK))
		abort();
	refs_free(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	FILE *f = size ? fmemopen((void *)(uintptr_t)data, size, "r") : NULL;
	struct skv_trace t;
	char why[256] = "";

	if (!f)
		return 0;
	if (skv_trace_read(f, 0, &t, why) == 0) {
		if (t.n)
			read_again(&t);
		simulate(&t);
		skv_trace_free(&t);
	} else if (strncmp(why, "line ", 5) != 0) {
		abort();
	}
	fclose(f);
	return 0;
}
