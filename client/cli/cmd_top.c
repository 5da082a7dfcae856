/* cmd_top.c - slabkv top: shows the usage of storages, groups and instances, refreshed until q or
 * an interrupt. Evictions and hits are shown per second once there are two samples, before that
 * since the manager has loaded. No state but the previous sample; one thread. On a terminal the
 * screen is redrawn in place, else tables follow each other. Once a manager has answered, the
 * command waits for it when it is unreachable. */
#include "cli.h"

#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include <skv/mem.h>

/* Fields of groups and instances that are sorted by. */
static const struct {
	const char *word, *field;
} columns[] = {
	{ "name", NULL },		{ "used", "used_bytes" },     { "share", "share_bytes" },
	{ "leased", "leased_bytes" },	{ "pinned", "pinned_bytes" }, { "open", "open_bytes" },
	{ "evicted", "evicted_blocks" }, { "hits", "hits" },
};
#define N_COLUMNS (sizeof columns / sizeof columns[0])

struct top {
	struct skv_cli *cli;
	uint32_t interval; /* seconds */
	bool once;
	bool terminal;
	bool keys;    /* the terminal sends single keys */
	bool narrow;  /* fewer columns: they fit into 80 */
	struct termios was; /* with `keys` */
	size_t column;  /* sorted by */
	uint64_t lines; /* of instances at most; 0 = as many as fit */
	json_t *before; /* the sample before; NULL = none */
	double seconds; /* since then */
};

/* ---- rates ----------------------------------------------------------------------------------- */

static const json_t *same_in(const json_t *list, const json_t *o)
{
	const char *id = json_object_get(o, "id") ? "id" : "name";
	const json_t *other;
	size_t i;

	json_array_foreach(list, i, other)
		if (strcmp(skv_cli_text(other, id), skv_cli_text(o, id)) == 0 &&
		    strcmp(skv_cli_text(other, "tenant"), skv_cli_text(o, "tenant")) == 0)
			return other;
	return NULL;
}

static double rate(const json_t *o, const json_t *before, const char *field, double seconds)
{
	uint64_t now = skv_cli_u64(o, field), then = skv_cli_u64(before, field);

	return now > then && seconds > 0 ? (double)(now - then) / seconds : 0;
}

/* Adds evicted_per_s and hits_per_s to rows that the previous sample had, too. */
static void add_rates(const struct top *t, json_t *stats, const char *kind)
{
	const json_t *list = json_object_get(stats, kind), *before;
	json_t *o;
	size_t i;

	json_array_foreach(list, i, o) {
		before = t->before ? same_in(json_object_get(t->before, kind), o) : NULL;
		if (!before)
			continue;
		json_object_set_new(o, "evicted_per_s",
				    json_real(rate(o, before, "evicted_blocks", t->seconds)));
		json_object_set_new(o, "hits_per_s",
				    json_real(rate(o, before, "hits", t->seconds)));
	}
}

/* By the second, or (before there are two samples) in all. */
static void pace(const json_t *o, const char *per_s, const char *total, char out[24])
{
	const json_t *r = json_object_get(o, per_s);

	if (r)
		snprintf(out, 24, "%.1f/s", json_real_value(r));
	else
		snprintf(out, 24, "%" PRIu64, skv_cli_u64(o, total));
}

/* ---- the table ------------------------------------------------------------------------------- */

static void size_of(const json_t *o, const char *name, char out[24])
{
	skv_args_print_size(skv_cli_u64(o, name), out);
}

static void print_storages(const struct top *t, const json_t *list)
{
	const char *row = t->narrow ? "%-21.21s %-5s %12s %12s %12s %12s\n"
				    : "%-24.24s %-8s %12s %12s %12s %12s\n";
	char capacity[24], used[24], held[24], room[24];
	const json_t *s;
	size_t i;

	putchar('\n');
	printf(row, "STORAGE", "STATE", "CAPACITY", "USED", "QUARANTINE", "FREE");
	json_array_foreach(list, i, s) {
		skv_cli_storage_size(s, "capacity", capacity);
		skv_cli_storage_size(s, "used_bytes", used);
		skv_cli_storage_size(s, "quarantined_bytes", held);
		skv_cli_storage_size(s, "free_bytes", room);
		printf(row, skv_cli_text(s, "name"),
		       json_is_true(json_object_get(s, "healthy")) ? "ok" : "BAD", capacity, used,
		       held, room);
	}
}

#define HOLDER "%-24.24s %-12.12s %10s %10s %10s %10s %10s %10s %10s %10s %10s\n"

#define WIDE 145   /* columns that HOLDER takes at most */
#define NARROW "%-20.20s %9s %9s %9s %9s %9s %8s\n"

static void print_heading(const struct top *t, const char *what, const char *whose, const char *may)
{
	putchar('\n');
	if (t->narrow)
		printf(NARROW, what, "BLOCKS", "USED", may, "LEASED", "EVICTED", "HITS");
	else
		printf(HOLDER, what, whose, "BLOCKS", "USED", may, "LEASED", "PINNED", "SOFT",
		       "OPEN", "EVICTED", "HITS");
}

/* A group or an instance; `whose` is printed after its name, `share` is the field with its
 * limit. */
static void print_holder(const struct top *t, const json_t *o, const char *name, const char *whose,
			 const char *share)
{
	char blocks[24], used[24], may[24], leased[24], pinned[24], soft[24], open[24], evicted[24],
		hits[24];

	snprintf(blocks, sizeof blocks, "%" PRIu64, skv_cli_u64(o, "blocks"));
	size_of(o, "used_bytes", used);
	size_of(o, share, may);
	if (skv_cli_u64(o, share) == 0)
		snprintf(may, sizeof may, "-");
	size_of(o, "leased_bytes", leased);
	size_of(o, "pinned_bytes", pinned);
	size_of(o, "soft_pinned_bytes", soft);
	size_of(o, "open_bytes", open);
	pace(o, "evicted_per_s", "evicted_blocks", evicted);
	pace(o, "hits_per_s", "hits", hits);
	if (t->narrow)
		printf(NARROW, name, blocks, used, may, leased, evicted, hits);
	else
		printf(HOLDER, name, whose, blocks, used, may, leased, pinned, soft, open, evicted,
		       hits);
}

static size_t sort_column; /* of qsort's comparison */

static int compare(const void *a, const void *b)
{
	const json_t *x = *(const json_t *const *)a, *y = *(const json_t *const *)b;
	const char *field = columns[sort_column].field;
	uint64_t u = field ? skv_cli_u64(x, field) : 0, v = field ? skv_cli_u64(y, field) : 0;
	int by_id = strcmp(skv_cli_text(x, "id"), skv_cli_text(y, "id"));

	if (u != v)
		return u < v ? 1 : -1;
	return by_id ? by_id : strcmp(skv_cli_text(x, "tenant"), skv_cli_text(y, "tenant"));
}

/* Instances that fit on the screen below the lines above. */
static uint64_t fitting(const struct top *t, uint64_t above)
{
	struct winsize w;

	if (t->lines)
		return t->lines;
	if (!t->terminal || ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) != 0 || w.ws_row == 0)
		return UINT64_MAX;
	return w.ws_row > above + 3 ? w.ws_row - above - 2 : 1;
}

/* Prints the instances. `all`: their number, of which the list has the first ones. */
static void print_instances(const struct top *t, json_t *list, uint64_t all, uint64_t above)
{
	size_t n = json_array_size(list);
	uint64_t most = fitting(t, above);
	const json_t **v = skv_calloc(n + 1, sizeof *v);

	assert(t->column < N_COLUMNS && most >= 1);
	print_heading(t, "INSTANCE", "GROUP", "SHARE");
	for (size_t i = 0; v && i < n; i++)
		v[i] = json_array_get(list, i);
	sort_column = t->column;
	if (v)
		qsort(v, n, sizeof *v, compare);
	for (size_t i = 0; v && i < n && i < most; i++)
		print_holder(t, v[i], skv_cli_text(v[i], "id"), skv_cli_text(v[i], "group"),
			     "share_bytes");
	if (v && (most < n || all > n))
		printf("... and %" PRIu64 " more\n", (all > n ? all : n) - (most < n ? most : n));
	skv_free(v);
}

static const char *share_word(const json_t *group)
{
	const char *share = skv_cli_text(group, "share");

	return *share ? share : "group";
}

static void print_table(const struct top *t, const json_t *stats)
{
	json_t *groups = json_object_get(stats, "groups");
	uint64_t above = 5 + json_array_size(json_object_get(stats, "storages")) +
			 json_array_size(groups) + 2;
	const json_t *o;
	size_t i;

	printf("slabkvd %s  %s  %" PRIu64 " blocks  %" PRIu64 " sessions  %" PRIu64 " evicted\n",
	       skv_cli_text(stats, "version"), skv_cli_text(stats, "state"),
	       skv_cli_u64(stats, "blocks"), skv_cli_u64(stats, "sessions"),
	       skv_cli_u64(stats, "evicted_blocks"));
	print_storages(t, json_object_get(stats, "storages"));
	print_heading(t, "GROUP", "SHARES", "ROOM");
	json_array_foreach(groups, i, o)
		print_holder(t, o, skv_cli_text(o, "name"), share_word(o), "room_bytes");
	print_instances(t, json_object_get(stats, "instances"),
			skv_cli_u64(stats, "instance_count"), above);
	fflush(stdout);
}

/* ---- the loop -------------------------------------------------------------------------------- */

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* The window may have another size by now. */
static void measure(struct top *t)
{
	struct winsize w;

	t->narrow = t->terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 &&
		    w.ws_col < WIDE;
}

static int show(struct top *t, json_t *stats)
{
	add_rates(t, stats, "groups");
	add_rates(t, stats, "instances");
	measure(t);
	assert(!t->terminal || !t->cli->json); /* no escapes in a program's input */
	if (t->terminal)
		fputs("\033[H\033[2J", stdout);
	if (t->cli->json)
		return skv_cli_print_json(json_incref(stats));
	print_table(t, stats);
	return SKV_EXIT_OK;
}

static volatile sig_atomic_t ended;

static void end(int signal)
{
	(void)signal;
	ended = 1;
}

/* Single keys, unseen. An interrupt ends the loop, so that the terminal is put back. */
static void begin_keys(struct top *t)
{
	struct sigaction action = { .sa_handler = end };
	struct termios raw;

	t->keys = t->terminal && isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &t->was) == 0;
	if (!t->keys)
		return;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	raw = t->was;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	t->keys = tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
}

static void end_keys(const struct top *t)
{
	if (t->keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &t->was);
}

/* Waits until the next sample is due. False: q was typed, or a signal ends it. */
static bool pause_for(const struct top *t)
{
	const double until = now_s() + t->interval;
	struct pollfd in = { .fd = t->keys ? STDIN_FILENO : -1, .events = POLLIN };
	double left;
	char key;

	/* poll takes an int of milliseconds */
	assert(t->interval >= 1 && t->interval <= INT_MAX / 1000 - 1);
	while (!ended && (left = until - now_s()) > 0) {
		if (poll(&in, 1, (int)(left * 1000) + 1) <= 0)
			continue;
		if (read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q')
			return false;
	}
	return !ended;
}

static int watch(struct top *t, struct slabkv *kv)
{
	double last = now_s();
	json_t *stats;
	int rc;

	do {
		rc = skv_cli_stats(t->cli, kv, &stats);
		if (rc == SKV_EXIT_UNREACHABLE && t->before)
			continue; /* the reason has been printed; a restarting manager comes back */
		if (rc != SKV_EXIT_OK)
			break;
		t->seconds = now_s() - last;
		last += t->seconds;
		rc = show(t, stats);
		json_decref(t->before);
		t->before = stats;
		if (t->once || rc != SKV_EXIT_OK || fflush(stdout) != 0)
			break;
	} while (pause_for(t));
	json_decref(t->before);
	if (rc == SKV_EXIT_UNREACHABLE && ended)
		rc = SKV_EXIT_OK;
	return rc;
}

static int take_column(struct top *t, const char *word)
{
	for (t->column = 0; t->column < N_COLUMNS; t->column++)
		if (strcmp(columns[t->column].word, word) == 0)
			return SKV_EXIT_OK;
	return skv_cli_usage(t->cli,
			     "--sort: name, used, share, leased, pinned, open, evicted or hits");
}

int skv_cmd_top(struct skv_cli *cli, int argc, char **argv)
{
	struct top t = { .cli = cli, .interval = 2 };
	const char *column = NULL;
	const struct skv_cli_option options[] = {
		{ "interval", SKV_CLI_NUMBER, &t.interval, 1, 86400, "seconds, 1..86400", NULL },
		{ "once", SKV_CLI_FLAG, &t.once, 0, 0, NULL, NULL },
		{ "sort", SKV_CLI_TEXT, &column, 0, 0, NULL, NULL },
		{ "lines", SKV_CLI_COUNT, &t.lines, 1, UINT32_MAX, "1 or more", NULL },
		SKV_CLI_OPTIONS_END
	};
	struct slabkv *kv;
	int rc = skv_cli_parse(cli, argc, argv, options, NULL);

	if (rc == SKV_EXIT_OK && column)
		rc = take_column(&t, column);
	if (rc == SKV_EXIT_OK && optind < argc)
		rc = skv_cli_usage(cli, "takes no arguments");
	t.terminal = isatty(STDOUT_FILENO) && !t.once && !cli->json;
	ended = 0;
	if (rc == SKV_EXIT_OK)
		rc = skv_cli_open(cli, NULL, &kv);
	if (rc == SKV_EXIT_OK) {
		begin_keys(&t);
		rc = watch(&t, kv);
		end_keys(&t);
		slabkv_close(kv);
	}
	return rc;
}
