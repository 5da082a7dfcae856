/*
 * slots.c - a load for managers that are killed: writes and reads through the low-level calls of the library,
 * keeps a ledger of who was given which bytes, and ends with status 1 at the first breach.
 *
 * usage: slots URL[,URL] ROOT room|evict
 *
 * It starts no process: crash.py kills and restarts the manager and tells so on standard input.
 *	killed	the manager was killed once more
 *	puts	prints how many blocks were put so far
 *	check	the manager is up: end the load, look up everything; one JSON object is printed
 * The instances `small` (4 KiB) and `large` (8 + 4 KiB) exist already. End of input without check: status 3.
 */
#include "slots.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void give_up(int line, const char *what, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "slots: line %d, %s: ", line, what);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\n");
	_exit(1);
}

uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

static struct kvblock *connect_to(char *list)
{
	const char *urls[2] = { list, NULL };
	char *comma = strchr(list, ',');
	struct kvblock_options o;
	struct kvblock_error err;
	struct kvblock *kv;

	if (comma) {
		*comma = '\0';
		urls[1] = comma + 1;
	}
	kvblock_options_init(&o);
	o.urls = urls;
	o.n_urls = comma ? 2 : 1;
	o.timeout_ms = comma ? 6000 : 30000; /* one that is stopped takes half of it, every time */
	o.rounds = 200;
	MUST(kvblock_open(&o, &kv, &err) == KVBLOCK_OK, "%s", err.message);
	return kv;
}

static void print_counts(struct load *l, uint64_t found)
{
	const struct {
		const char *name;
		uint64_t n;
	} row[] = {
		{ "blocks put", l->n.puts },
		{ "blocks read", l->n.reads },
		{ "bytes verified", l->n.bytes },
		{ "blocks deleted", l->n.deletes },
		{ "sessions finished after a kill", l->n.survived },
		{ "finishes repeated", l->n.repeated },
		{ "sessions aborted", l->n.aborts },
		{ "sessions finished in part", l->n.partial },
		{ "sessions abandoned", l->n.abandoned },
		{ "calls refused", l->n.refused },
		{ "starts without space", l->n.no_space },
		{ "ownership checks", ledger_checks() },
		{ "acknowledged blocks found at the end", found },
	};

	for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
		printf("%s\"%s\": %llu", i ? ", " : "{", row[i].name, (unsigned long long)row[i].n);
	printf("}\n");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static struct load l;
	char line[32];

	if (argc != 4) {
		fprintf(stderr, "usage: slots URL[,URL] ROOT room|evict\n");
		return 2;
	}
	load_start(&l, connect_to(argv[1]), argv[2], strcmp(argv[3], "evict") == 0);
	while (fgets(line, sizeof line, stdin)) {
		if (strcmp(line, "killed\n") == 0)
			atomic_fetch_add(&l.epoch, 1);
		if (strcmp(line, "puts\n") == 0) {
			printf("%llu\n", (unsigned long long)l.n.puts);
			fflush(stdout);
		}
		if (strcmp(line, "check\n") == 0) {
			load_stop(&l);
			print_counts(&l, load_check(&l));
			kvblock_close(l.kv);
			return 0;
		}
	}
	_exit(3); /* its parent is gone */
}
