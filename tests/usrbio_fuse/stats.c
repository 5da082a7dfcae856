/* stats.c - counters of the stand-in. Added to by any thread. */
#include "stand.h"

#include <stdio.h>

static uint64_t counters[N_COUNTERS];

static const char *const names[N_COUNTERS] = {
#define COUNTER(name) [N_##name] = #name,
#include "counters.h"
#undef COUNTER
};

/* Returns true for operations for which a real daemon asks the meta service. Opening for reading
 * costs nothing beyond the lookup. */
static bool is_meta(enum counter what)
{
	switch (what) {
	case N_lookup:
	case N_getattr:
	case N_setattr:
	case N_symlink:
	case N_link:
	case N_rename:
	case N_mkdir:
	case N_rmdir:
	case N_create:
	case N_unlink:
	case N_open_write:
	case N_close_write:
	case N_settle:
	case N_readdir:
	case N_statfs:
		return true;
	default:
		return false;
	}
}

void count(enum counter what, uint64_t n)
{
	__atomic_fetch_add(&counters[what], n, __ATOMIC_RELAXED);
	if (!is_meta(what))
		return;
	__atomic_fetch_add(&counters[N_meta], n, __ATOMIC_RELAXED);
	fault_meta();
}

char *stats_text(size_t *length)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, length);

	if (!f)
		return NULL;
	for (int i = 0; i < N_COUNTERS; i++)
		fprintf(f, "%s %llu\n", names[i],
			(unsigned long long)__atomic_load_n(&counters[i], __ATOMIC_RELAXED));
	fclose(f);
	return text;
}
