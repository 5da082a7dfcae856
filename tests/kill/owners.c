/*
 * owners.c - the ledger: what the clients were told about every 4 KiB of every slab file.
 *
 * Slots are compared by generation, which never repeats and grows with every new life of the same
 * bytes: so it is known which of two answers the manager gave first, in whatever order the threads
 * come here. A breach is found exactly: a claim that was received before the older one had to end
 * cannot be right. A client counts its deadlines and leases from before it asked, so a slow machine
 * makes no breach. One lock for all; any thread.
 */
#include "ledger.h"

#include <stdlib.h>
#include <string.h>

#define FILES 64u
#define FILE_UNITS 2048u /* 8 MiB, as manager.c tells the manager */

struct unit {
	uint64_t generation; /* 0 = never handed out */
	uint64_t key;
	enum claim_state state;
	uint64_t until;       /* of an open session */
	uint64_t received;    /* when its claim came here */
	uint64_t lease_until; /* of readers of this generation */
};

static struct {
	pthread_mutex_t lock;
	bool evicts;
	uint64_t checks;
	unsigned n;
	char path[FILES][64];
	struct unit *unit[FILES];
} ledger = { .lock = PTHREAD_MUTEX_INITIALIZER };

void owners_reset(bool evicts)
{
	for (unsigned i = 0; i < ledger.n; i++)
		free(ledger.unit[i]);
	ledger.n = 0;
	ledger.checks = 0;
	ledger.evicts = evicts;
}

static struct unit *units_locked(const struct slabkv_file *f, const struct slabkv_location *l,
				 unsigned *n)
{
	unsigned i = 0;

	MUST(l->offset % UNIT == 0 && l->length % UNIT == 0 && l->length > 0 && l->generation > 0,
	     "%s: offset %llu, length %llu", f->path, (unsigned long long)l->offset,
	     (unsigned long long)l->length);
	MUST((l->offset + l->length) / UNIT <= FILE_UNITS, "%s: beyond the end of the file",
	     f->path);
	while (i < ledger.n && strcmp(ledger.path[i], f->path) != 0)
		i++;
	if (i == ledger.n) {
		MUST(ledger.n < FILES, "too many files");
		memcpy(ledger.path[i], f->path, sizeof ledger.path[i]);
		ledger.unit[i] = calloc(FILE_UNITS, sizeof(struct unit));
		MUST(ledger.unit[i], "no memory");
		ledger.n++;
	}
	*n = (unsigned)(l->length / UNIT);
	return ledger.unit[i] + l->offset / UNIT;
}

/* `u` was told first, the claim of `key` (received at `now`) later: is that allowed? */
static void judge(const struct unit *u, uint64_t key, uint64_t now)
{
	MUST(u->state != CLAIM_OPEN || now >= u->until,
	     "two owners: given to key %llu %llu ms before the open session of key %llu may end",
	     (unsigned long long)key, (unsigned long long)(u->until - now),
	     (unsigned long long)u->key);
	MUST(u->state != CLAIM_COMMITTED || ledger.evicts,
	     "two owners: given to key %llu, acknowledged to key %llu (generation %llu, "
	     "given %llu ms ago)",
	     (unsigned long long)key, (unsigned long long)u->key, (unsigned long long)u->generation,
	     (unsigned long long)(now - u->received));
	MUST(now >= u->lease_until,
	     "reused under a lease: given to key %llu %llu ms too early, leased for key %llu",
	     (unsigned long long)key, (unsigned long long)(u->lease_until - now),
	     (unsigned long long)u->key);
}

void owners_claim(const struct slabkv_file *f, const struct slabkv_location *l, uint64_t key,
		  uint64_t until)
{
	uint64_t now = now_ms();
	struct unit *u;
	unsigned n;

	pthread_mutex_lock(&ledger.lock);
	for (u = units_locked(f, l, &n); n > 0; n--, u++) {
		ledger.checks++;
		MUST(u->generation != l->generation,
		     "generation %llu came twice: keys %llu and %llu",
		     (unsigned long long)l->generation, (unsigned long long)key,
		     (unsigned long long)u->key);
		if (u->generation > l->generation) { /* the later one was faster in coming here */
			MUST(u->received >= until,
			     "two owners: given to key %llu while key %llu was open",
			     (unsigned long long)u->key, (unsigned long long)key);
			continue;
		}
		judge(u, key, now);
		*u = (struct unit){ l->generation, key, CLAIM_OPEN, until, now, 0 };
	}
	pthread_mutex_unlock(&ledger.lock);
}

void owners_set(const struct slabkv_file *f, const struct slabkv_location *l,
		enum claim_state state)
{
	struct unit *u;
	unsigned n;

	pthread_mutex_lock(&ledger.lock);
	for (u = units_locked(f, l, &n); n > 0; n--, u++)
		if (u->generation == l->generation)
			u->state = state;
	pthread_mutex_unlock(&ledger.lock);
}

void owners_lease(const struct slabkv_file *f, const struct slabkv_location *l, uint64_t key,
		  uint64_t until)
{
	struct unit *u;
	unsigned n;

	pthread_mutex_lock(&ledger.lock);
	for (u = units_locked(f, l, &n); n > 0; n--, u++) {
		ledger.checks++;
		MUST(u->generation >= l->generation,
		     "a lookup names a slot that no start has named: key %llu",
		     (unsigned long long)key);
		if (u->generation > l->generation) {
			MUST(u->received >= until,
			     "reused under a lease: given to key %llu, leased for key %llu",
			     (unsigned long long)u->key, (unsigned long long)key);
			continue;
		}
		MUST(u->state != CLAIM_OPEN,
		     "key %llu is found, and no finish that names it was sent",
		     (unsigned long long)key);
		MUST(u->key == key, "the slot of key %llu is named for key %llu",
		     (unsigned long long)u->key, (unsigned long long)key);
		if (until > u->lease_until)
			u->lease_until = until;
	}
	pthread_mutex_unlock(&ledger.lock);
}

uint64_t owners_checks(void) { return ledger.checks; }
