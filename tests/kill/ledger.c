/*
 * ledger.c - kills the manager again and again, with a ledger of who was given which bytes: no slot
 * ever has two owners, and a reader under a lease never sees foreign bytes.
 *
 * usage: ledger SLABKVD full|normal KILLS
 *
 * kill9.c works through put and get; this one uses the low-level calls of the library, records
 * every slot that a start or a lookup names (owners.c), and judges by deadlines, graces and leases.
 * Sessions end in every way (ledger_load.c), one spans each kill, and one kill in four comes while
 * the manager starts and recovers. After each kill `slabkvd fsck --files` must find nothing. Two
 * phases of KILLS kills each, with room for everything and in a storage that is too small. At the
 * end nothing may be in use but the blocks.
 *
 * Each recovery begins deadlines and graces of open sessions anew, so kills without a pause would
 * fill any storage with slots that nobody comes back for, and blocks would rightly be evicted. In
 * the first phase a kill waits while these take too much, which also shows that they end.
 */
#include "ledger.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TAKEN_MAX (64u << 20) /* of 256 MiB */
#define PATIENCE_MS 100000u   /* for whatever must happen; not a measure of anything */

/* Polls until it holds, or the manager of `r` is gone. */
#define UNTIL(cond, ...)                                                                           \
	do {                                                                                       \
		uint64_t end_ = now_ms() + PATIENCE_MS;                                            \
		while (!(cond)) {                                                                  \
			manager_alive(&r->m);                                                      \
			MUST(now_ms() < end_, __VA_ARGS__);                                        \
			poll(NULL, 0, 5);                                                          \
		}                                                                                  \
	} while (0)

/* A phase of the test. */
struct run {
	struct manager m;
	struct slabkv *kv;
	struct load load;
	unsigned seed, kills;
	uint64_t evicted; /* blocks */
};

static uint64_t evicted_blocks(struct slabkv *kv)
{
	static const char name[] = "\"evicted_blocks\":";
	struct slabkv_error err;
	const char *json, *at;
	uint64_t n;

	MUST(slabkv_call(kv, "GET", "/v1/stats", NULL, &json, &err) == SLABKV_OK, "%s",
	     err.message);
	at = strstr(json, name);
	MUST(at, "%s", json);
	n = strtoull(at + sizeof name - 1, NULL, 10);
	slabkv_free(json);
	return n;
}

/* Bytes of blocks and sessions, and of those that wait for a lease or grace. */
static uint64_t taken(struct slabkv *kv, uint64_t *waiting)
{
	*waiting = manager_number(kv, SLABKV_STORAGE, "default", "quarantined_bytes");
	return manager_number(kv, SLABKV_STORAGE, "default", "used_bytes") + *waiting;
}

/* Blocks of all instances, their bytes, and how many sessions are open. */
static uint64_t blocks(struct slabkv *kv, uint64_t *bytes, uint64_t *sessions)
{
	uint64_t n = 0;

	*bytes = *sessions = 0;
	for (unsigned i = 0; i < MODELS; i++) {
		const uint64_t of = manager_number(kv, SLABKV_INSTANCE, models[i].id, "blocks");

		n += of;
		*bytes += of * models[i].block_bytes;
		*sessions += manager_number(kv, SLABKV_INSTANCE, models[i].id, "open_sessions");
	}
	return n;
}

/* No session, no quarantine, no byte in use beyond the blocks. */
static bool ended(struct slabkv *kv)
{
	uint64_t bytes, sessions, waiting;

	blocks(kv, &bytes, &sessions);
	return sessions == 0 && taken(kv, &waiting) == bytes && waiting == 0;
}

static bool has_room(struct slabkv *kv)
{
	uint64_t waiting;

	return taken(kv, &waiting) < TAKEN_MAX;
}

static void pause_up_to(struct run *r, unsigned ms) { poll(NULL, 0, rand_r(&r->seed) % ms); }

static void kill_once(struct run *r)
{
	uint64_t enough, evicted;

	if (!r->load.evicts)
		UNTIL(has_room(r->kv), "what nobody comes back for does not become free");
	enough = atomic_load(&r->load.n.puts) + 50 + rand_r(&r->seed) % 550;
	UNTIL(atomic_load(&r->load.n.puts) >= enough && atomic_load(&r->load.waiting),
	      "the load stands still");
	evicted = evicted_blocks(r->kv);
	MUST(r->load.evicts || evicted == 0, "%" PRIu64 " blocks evicted, though there is room",
	     evicted);
	r->evicted += evicted;
	pause_up_to(r, 50);
	manager_kill(&r->m);
	atomic_fetch_add(&r->load.epoch, 1);
	manager_fsck(&r->m);
	for (r->kills++; rand_r(&r->seed) % 4 == 0; r->kills++) {
		/* in the middle of its recovery */
		manager_launch(&r->m);
		pause_up_to(r, 60);
		manager_kill(&r->m);
		manager_fsck(&r->m);
	}
	manager_start(&r->m);
}

static void begin(struct run *r, bool evicts)
{
	static char root[96];
	struct slabkv_error err;

	manager_start(&r->m);
	r->kv = manager_connect(&r->m);
	for (unsigned i = 0; i < MODELS; i++) {
		struct slabkv_instance in = { .size = sizeof in,
					      .id = models[i].id,
					      .group = "default",
					      .specs = models[i].spec,
					      .spec_size = sizeof models[i].spec[0],
					      .n_specs = models[i].n_specs };

		MUST(slabkv_instance_put(r->kv, &in, &err) == SLABKV_OK, "%s", err.message);
	}
	snprintf(root, sizeof root, "%s/slabkv-data", r->m.dir);
	load_start(&r->load, r->kv, root, evicts);
	UNTIL(atomic_load(&r->load.n.reads) > 0 && atomic_load(&r->load.n.deletes) > 0,
	      "the load does not begin");
	if (evicts)
		UNTIL(evicted_blocks(r->kv) > 100, "nothing is evicted from a full storage");
}

static void check_restart(struct run *r)
{
	uint64_t bytes, sessions, n = blocks(r->kv, &bytes, &sessions), again;

	manager_stop(&r->m);
	manager_fsck(&r->m);
	manager_start(&r->m);
	again = blocks(r->kv, &bytes, &sessions);
	MUST(again == n, "%" PRIu64 " blocks, and %" PRIu64 " after an orderly restart", n, again);
	manager_stop(&r->m);
}

static void report(const struct run *r, uint64_t found)
{
	const struct counts *n = &r->load.n;

	printf("%s: %u kills, %" PRIu64 " ownership checks, %" PRIu64 " blocks put, %" PRIu64
	       " deleted, %" PRIu64 " evicted, %" PRIu64 " read and verified (%" PRIu64
	       " MB), %" PRIu64 " found at the end; sessions: %" PRIu64
	       " finished after a kill, %" PRIu64 " finished twice, %" PRIu64 " in part, %" PRIu64
	       " aborted, %" PRIu64 " abandoned; %" PRIu64 " calls refused, %" PRIu64
	       " starts without space\n",
	       r->load.evicts ? "with eviction" : "with room", r->kills, owners_checks(), n->puts,
	       n->deletes, r->evicted, n->reads, n->bytes >> 20, found, n->survived, n->repeated,
	       n->partial, n->aborts, n->abandoned, n->refused, n->no_space);
	fflush(stdout);
}

static void phase(const char *program, const char *durability, unsigned kills, bool evicts)
{
	static const char *const more[] = { "--session-max-ms", "60000", "--lease-max-ms", "1000",
					    NULL };
	static struct run one;
	struct run *r = &one;
	uint64_t found;

	memset(r, 0, sizeof *r);
	r->seed = 20261121 + kills + evicts;
	manager_init(&r->m, program, durability, evicts ? "24M" : "16G");
	r->m.more = more;
	begin(r, evicts);
	while (r->kills < kills)
		kill_once(r);
	load_stop(&r->load);
	found = load_check(&r->load);
	UNTIL(ended(r->kv), "something is still in use beside the blocks");
	check_restart(r);
	slabkv_close(r->kv);
	manager_remove(&r->m);
	MUST((found > 0 || evicts) && r->load.n.survived > 0 && r->load.n.bytes > 0,
	     "too little was tested");
	report(r, found);
}

int main(int argc, char **argv)
{
	unsigned kills;

	if (argc != 4) {
		fprintf(stderr, "usage: ledger SLABKVD full|normal KILLS\n");
		return 2;
	}
	kills = (unsigned)strtoul(argv[3], NULL, 10);
	phase(argv[1], argv[2], kills, false);
	phase(argv[1], argv[2], kills, true);
	return 0;
}
