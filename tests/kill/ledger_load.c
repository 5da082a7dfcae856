/*
 * ledger_load.c - the threads of the ledger test: writers (one of which waits with every session
 * until the manager was killed), and readers.
 *
 * A writer uses keys that nobody else uses, one chain for each session. Most sessions succeed; some
 * are finished in part, aborted, or forgotten, with and without `quiesced`. Bytes are a function of
 * key and spec. No fdatasync: a process is killed here, not the machine.
 * A writer's lock guards its memory of chains; it is never held over a call.
 */
#include "ledger.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DEADLINE_MS 20000u       /* of sessions that leave no slot behind */
#define SHORT_DEADLINE_MS 1000u  /* of those that do: the end of the test waits for it */
#define LONG_DEADLINE_MS 60000u  /* of the survivor: it waits half of it for a kill */
#define LEASE_MS 500u
#define MARGIN_MS \
	500u /* nothing is submitted so near to the deadline: this thread may be stopped too */

const struct model models[MODELS] = {
	{ "small", 1, { { "kv", UNIT } }, UNIT },
	{ "large", 2, { { "k", 2 * UNIT }, { "v", UNIT } }, 3 * UNIT },
};

enum chain_state { EMPTY, ACKNOWLEDGED, GOING, DELETED };

struct chain {
	uint64_t first; /* the keys are first .. first + CHAIN - 1; 0 = not used yet */
	const struct model *model;
	enum chain_state state;
	bool stored[CHAIN]; /* acknowledged blocks */
};

/* How a session is going to end; the survivor's end well. */
enum ending { FINISH, FINISH_IN_PART, ABORT, FORGET };

static struct writer {
	struct load *load;
	unsigned no, seed;
	uint64_t next;
	uint64_t turn;
	struct chain chain[WINDOW];                      /* under the lock */
	/* Of each chain, for where it lies; this thread's own. */
	const struct slabkv_session *session[WINDOW];
	/* A write is going on, which must not last longer; 0 = none. */
	_Atomic uint64_t writing_until;
	pthread_mutex_t lock;
} writer[WRITERS];

/* A session of a writer. */
struct put {
	struct writer *w;
	struct chain *chain;
	struct chain c; /* next contents of the place */
	const struct slabkv_session *s;
	enum ending ending;
	bool quiesced;
	unsigned epoch; /* kills before it began */
};

uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

static uint64_t block_key(uint64_t key, uint32_t spec) { return key * MAX_SPECS + spec; }

static void fill(uint64_t key, uint8_t *bytes, size_t size)
{
	uint64_t x = key * 0x9e3779b97f4a7c15u + 1;

	for (size_t i = 0; i < size; i += 8) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		memcpy(bytes + i, &x, 8);
	}
}

static int open_slab(const struct load *l, const struct slabkv_file *f)
{
	char path[512];
	int fd;

	snprintf(path, sizeof path, "%s/%s", l->root, f->path);
	fd = open(path, O_RDWR | O_CLOEXEC);
	MUST(fd >= 0, "%s", path);
	return fd;
}

static struct slabkv_keys chain_keys(const struct chain *c, uint64_t *ints)
{
	for (uint32_t i = 0; i < CHAIN; i++)
		ints[i] = c->first + i;
	return slabkv_keys_ints(ints, CHAIN);
}

/* A thread that stands still between its look at the clock and its write breaks the rules
 * itself, and may spoil what others own by then: nothing was learnt about the manager.
 * Ends the test as skipped. */
static void skip_if_late(uint64_t until)
{
	uint64_t now = now_ms();

	if (until == 0 || now < until + GRACE_MS)
		return;
	printf("skipped: a thread of the test itself stood still inside a write, %llu ms beyond "
	       "its deadline and grace\n",
	       (unsigned long long)(now - until - GRACE_MS));
	fflush(stdout);
	manager_skip();
}

/* ---- writers --------------------------------------------------------------------------------- */

static void set_block(const struct chain *c, const struct slabkv_session *s, uint32_t block,
		      enum claim_state state)
{
	for (uint32_t k = 0; k < c->model->n_specs; k++) {
		const struct slabkv_location *loc = &s->loc[block * c->model->n_specs + k];

		owners_set(&s->files[loc->file], loc, state);
	}
}

/* Returns true for errors of a start when no manager served for longer than the library tries. */
static bool may_fail(int rc)
{
	return rc == SLABKV_E_SESSION_EXPIRED || rc == SLABKV_E_TIMEOUT || rc == SLABKV_E_NETWORK ||
	       rc == SLABKV_E_NOT_OWNER || rc == SLABKV_E_NOT_READY || rc == SLABKV_E_FENCED ||
	       rc == SLABKV_E_UNKNOWN_OUTCOME || rc == SLABKV_E_JOURNAL_FULL;
}

static uint32_t deadline_of(const struct put *p)
{
	if (p->w->no == WRITERS - 1)
		return LONG_DEADLINE_MS;
	return p->ending == FORGET || (p->ending != FINISH && !p->quiesced) ? SHORT_DEADLINE_MS
									    : DEADLINE_MS;
}

static bool begin(struct put *p)
{
	struct load *l = p->w->load;
	const struct model *m = p->c.model;
	uint64_t ints[CHAIN];
	struct slabkv_keys keys = chain_keys(&p->c, ints);
	struct slabkv_put_options o = { .size = sizeof(struct slabkv_put_options),
					.deadline_ms = deadline_of(p) };
	struct slabkv_error err;
	int rc = slabkv_start(l->kv, m->id, &keys, &o, NULL, &p->s, &err);

	if (rc != SLABKV_OK) {
		MUST(rc != SLABKV_E_NO_SPACE || l->evicts, "no space, though there is room: %s",
		     err.message);
		MUST(rc == SLABKV_E_NO_SPACE || may_fail(rc), "start: %s: %s", slabkv_code(rc),
		     err.message);
		atomic_fetch_add(rc == SLABKV_E_NO_SPACE ? &l->n.no_space : &l->n.refused, 1);
		poll(NULL, 0, 5);
		return false;
	}
	MUST(p->s->n_write == CHAIN, "%u blocks to write of keys that nobody has used",
	     p->s->n_write);
	for (uint32_t i = 0; i < CHAIN * m->n_specs; i++) {
		const struct slabkv_location *loc = &p->s->loc[i];
		uint32_t k = i % m->n_specs;

		MUST(loc->length == m->spec[k].size, "length %llu",
		     (unsigned long long)loc->length);
		owners_claim(&p->s->files[loc->file], loc,
			     block_key(p->c.first + i / m->n_specs, k),
			     p->s->submit_until_ms + GRACE_MS);
	}
	return true;
}

/* Writes parts from..to-1 of the blocks. False when it is too late: then
 * nobody may write any more. */
static bool write_parts(struct put *p, uint64_t *sums, uint32_t from, uint32_t to)
{
	const struct model *m = p->c.model;
	uint8_t bytes[2 * UNIT];

	for (uint32_t i = from; i < to; i++) {
		const struct slabkv_location *loc = &p->s->loc[i];
		uint64_t key = block_key(p->c.first + i / m->n_specs, i % m->n_specs);
		int fd = open_slab(p->w->load, &p->s->files[loc->file]);
		bool late;

		fill(key, bytes, loc->length);
		sums[i] = slabkv_checksum(bytes, loc->length);
		atomic_store(&p->w->writing_until, p->s->submit_until_ms);
		late = now_ms() + MARGIN_MS > p->s->submit_until_ms;
		if (!late) {
			MUST(pwrite(fd, bytes, loc->length, (off_t)loc->offset) ==
				     (ssize_t)loc->length,
			     "write");
			skip_if_late(p->s->submit_until_ms);
		}
		atomic_store(&p->w->writing_until, 0);
		close(fd);
		if (late)
			return false;
	}
	return true;
}

/* Some blocks are marked as failed if the session ends in part; remembers what was acknowledged. */
static void finish(struct put *p, const uint64_t *sums)
{
	struct load *l = p->w->load;
	bool mask[CHAIN];
	struct slabkv_finish_options o = {
		sizeof o, mask, CHAIN, sums, CHAIN * p->c.model->n_specs, p->quiesced
	};
	struct slabkv_finished done = { .size = sizeof done }, again = { .size = sizeof again };
	struct slabkv_error err;
	uint32_t good = 0;
	int rc;

	for (uint32_t i = 0; i < CHAIN; i++) {
		mask[i] = p->ending == FINISH || rand_r(&p->w->seed) % 2;
		good += mask[i];
		if (mask[i] || p->quiesced)
			set_block(&p->c, p->s, i, mask[i] ? CLAIM_COMMITTED : CLAIM_LOOSE);
	}
	rc = slabkv_finish(l->kv, p->s->id, &o, &done, &err);
	if (rc != SLABKV_OK) {
		MUST(now_ms() >= p->s->submit_until_ms, "finish before the deadline: %s: %s",
		     slabkv_code(rc), err.message);
		for (uint32_t i = 0; i < CHAIN; i++)
			set_block(&p->c, p->s, i, CLAIM_LOOSE);
		atomic_fetch_add(&l->n.refused, 1);
		return;
	}
	MUST(done.committed == good && done.failed == CHAIN - good, "%u committed of %u",
	     done.committed, good);
	if (rand_r(&p->w->seed) % 8 == 0) {
		MUST(slabkv_finish(l->kv, p->s->id, &o, &again, &err) == SLABKV_OK, "%s",
		     err.message);
		MUST(again.committed == good && again.failed == CHAIN - good,
		     "a repetition has other numbers");
		atomic_fetch_add(&l->n.repeated, 1);
	}
	memcpy(p->c.stored, mask, sizeof mask);
	p->c.state = ACKNOWLEDGED;
	pthread_mutex_lock(&p->w->lock);
	*p->chain = p->c;
	pthread_mutex_unlock(&p->w->lock);
	atomic_fetch_add(&l->n.puts, good);
	atomic_fetch_add(&l->n.partial, p->ending == FINISH_IN_PART);
	if (atomic_load(&l->epoch) != p->epoch)
		atomic_fetch_add(&l->n.survived, 1);
}

static void give_back(struct put *p)
{
	if (p->quiesced)
		for (uint32_t i = 0; i < CHAIN; i++)
			set_block(&p->c, p->s, i, CLAIM_LOOSE);
	if (slabkv_abort(p->w->load->kv, p->s->id, p->quiesced, NULL) == SLABKV_OK)
		atomic_fetch_add(&p->w->load->n.aborts, 1);
}

/* The survivor goes on when the manager was killed, or before it is too late for that. */
static void wait_for_kill(const struct put *p)
{
	struct load *l = p->w->load;

	atomic_store(&l->waiting, true);
	while (atomic_load(&l->epoch) == p->epoch && !atomic_load(&l->stop) &&
	       now_ms() + LONG_DEADLINE_MS / 2 < p->s->submit_until_ms)
		poll(NULL, 0, 2);
	atomic_store(&l->waiting, false);
}

static void choose_ending(struct put *p)
{
	unsigned luck = rand_r(&p->w->seed) % 32;

	p->quiesced = rand_r(&p->w->seed) % 2;
	if (p->w->no == WRITERS - 1 || luck > 5)
		p->ending = FINISH;
	else
		p->ending = luck == 0 ? FORGET : luck == 1 ? ABORT : FINISH_IN_PART;
}

static void put_chain(struct writer *w, unsigned place)
{
	uint64_t sums[CHAIN * MAX_SPECS];
	struct put p = { .w = w, .chain = &w->chain[place] };
	uint32_t parts;
	bool written;

	p.c = (struct chain){ .first = w->next, .model = &models[rand_r(&w->seed) % MODELS] };
	parts = CHAIN * p.c.model->n_specs;
	w->next += CHAIN;
	pthread_mutex_lock(&w->lock);
	*p.chain = p.c;
	pthread_mutex_unlock(&w->lock);
	slabkv_free(w->session[place]);
	w->session[place] = NULL;
	choose_ending(&p);
	p.epoch = atomic_load(&w->load->epoch);
	if (!begin(&p))
		return;
	w->session[place] = p.s;
	written = write_parts(&p, sums, 0, parts / 2);
	if (w->no == WRITERS - 1)
		wait_for_kill(&p);
	written = written && write_parts(&p, sums, parts / 2, parts);
	if (!written || p.ending == FORGET)
		atomic_fetch_add(&w->load->n.abandoned, 1);
	else if (p.ending == ABORT)
		give_back(&p);
	else
		finish(&p, sums);
}

static void set_state(struct writer *w, struct chain *c, enum chain_state state)
{
	pthread_mutex_lock(&w->lock);
	c->state = state;
	pthread_mutex_unlock(&w->lock);
}

/* From the moment that it is sent a delete may act; once acknowledged it must stay so. */
static void delete_chain(struct writer *w, unsigned place)
{
	struct chain *c = &w->chain[place];
	uint64_t ints[CHAIN];
	struct slabkv_keys keys = chain_keys(c, ints);
	uint32_t n = 0;

	set_state(w, c, GOING);
	for (uint32_t i = 0; i < CHAIN; i++)
		if (c->stored[i])
			set_block(c, w->session[place], i, CLAIM_LOOSE);
	if (slabkv_delete(w->load->kv, c->model->id, &keys, &n, NULL) == SLABKV_OK) {
		atomic_fetch_add(&w->load->n.deletes, n);
		set_state(w, c, DELETED);
	}
}

/* Puts into the next place and deletes what is half a round old, so that half of the places hold
 * what is there and half what must not come back. */
static void *write_on(void *arg)
{
	struct writer *w = arg;

	while (!atomic_load(&w->load->stop)) {
		unsigned old = (unsigned)((w->turn + WINDOW / 2) % WINDOW);

		if (w->chain[old].state == ACKNOWLEDGED &&
		    (!w->load->evicts || rand_r(&w->seed) % 4 == 0))
			delete_chain(w, old);
		put_chain(w, (unsigned)(w->turn++ % WINDOW));
	}
	return NULL;
}

/* ---- readers --------------------------------------------------------------------------------- */

/* Reads and compares one block by itself; the library's checksum has no part in it. `quiet`: no
 * session is open, so bytes stay without a lease. */
static void read_block(struct load *l, const struct slabkv_locations *r, const struct chain *c,
		       uint32_t i, bool quiet)
{
	uint8_t bytes[2 * UNIT], expected[2 * UNIT];

	for (uint32_t k = 0; k < c->model->n_specs; k++) {
		const struct slabkv_location *loc = &r->loc[i * c->model->n_specs + k];
		uint64_t key = block_key(c->first + i, k);
		int fd = open_slab(l, &r->files[loc->file]);
		ssize_t n;

		MUST(loc->length == c->model->spec[k].size, "length %llu",
		     (unsigned long long)loc->length);
		owners_lease(&r->files[loc->file], loc, key, r->lease_ms ? r->valid_until_ms : 0);
		fill(key, expected, loc->length);
		MUST(loc->has_checksum && loc->checksum == slabkv_checksum(expected, loc->length),
		     "checksum");
		n = pread(fd, bytes, loc->length, (off_t)loc->offset);
		close(fd);
		if (!quiet && (r->lease_ms == 0 || now_ms() >= r->valid_until_ms))
			continue; /* too late to prove anything */
		if (n != (ssize_t)loc->length || memcmp(bytes, expected, loc->length) != 0) {
			for (unsigned j = 0; j < WRITERS; j++)
				skip_if_late(atomic_load(&writer[j].writing_until));
			MUST(false, "wrong bytes of key %llu in %s at %llu",
			     (unsigned long long)c->first + i, r->files[loc->file].path,
			     (unsigned long long)loc->offset);
		}
		atomic_fetch_add(&l->n.bytes, loc->length);
	}
	atomic_fetch_add(&l->n.reads, 1);
}

/* `hit` says which were found. A refused call hits nothing and returns false. */
static bool read_chain(struct load *l, const struct chain *c, uint32_t lease_ms, bool quiet,
		       bool *hit)
{
	uint64_t ints[CHAIN];
	struct slabkv_keys keys = chain_keys(c, ints);
	struct slabkv_lookup_options o = { .size = sizeof(struct slabkv_lookup_options),
					   .mode = SLABKV_BATCH,
					   .lease_ms = lease_ms };
	const struct slabkv_locations *r;

	if (slabkv_lookup(l->kv, c->model->id, &keys, &o, &r, NULL) != SLABKV_OK) {
		atomic_fetch_add(&l->n.refused, 1);
		return false;
	}
	for (uint32_t i = 0; i < CHAIN; i++) {
		hit[i] = r->hit[i];
		if (hit[i])
			read_block(l, r, c, i, quiet);
	}
	slabkv_free(r);
	return true;
}

/* `c` was in this state from before the lookup until after it. */
static void judge_hits(const struct load *l, const struct chain *c, const bool *hit)
{
	for (uint32_t i = 0; i < CHAIN; i++) {
		unsigned long long key = c->first + i;

		MUST(!hit[i] || c->state != DELETED, "key %llu is back after its delete", key);
		if (c->state != ACKNOWLEDGED)
			continue; /* a key of an open session: owners_lease judges */
		MUST(hit[i] || l->evicts || !c->stored[i], "key %llu is lost", key);
		MUST(!hit[i] || c->stored[i], "key %llu is there, but was marked as failed", key);
	}
}

static void *read_on(void *arg)
{
	struct load *l = arg;
	unsigned seed = (unsigned)(uintptr_t)&seed;

	while (!atomic_load(&l->stop)) {
		struct writer *w = &writer[rand_r(&seed) % WRITERS];
		struct chain *c = &w->chain[rand_r(&seed) % WINDOW], copy;
		bool hit[CHAIN], same;

		pthread_mutex_lock(&w->lock);
		copy = *c;
		pthread_mutex_unlock(&w->lock);
		if (copy.first == 0 ||
		    !read_chain(l, &copy, rand_r(&seed) % 4 ? LEASE_MS : 0, false, hit))
			continue;
		pthread_mutex_lock(&w->lock);
		same = c->first == copy.first && c->state == copy.state;
		pthread_mutex_unlock(&w->lock);
		if (same)
			judge_hits(l, &copy, hit);
	}
	return NULL;
}

void load_start(struct load *l, struct slabkv *kv, const char *root, bool evicts)
{
	*l = (struct load){ .kv = kv, .root = root, .evicts = evicts };
	owners_reset(evicts);
	for (unsigned i = 0; i < WRITERS; i++) {
		writer[i] = (struct writer){ .load = l, .no = i, .seed = i + 1,
					     .next = ((uint64_t)i + 1) << 32 };
		pthread_mutex_init(&writer[i].lock, NULL);
	}
	for (unsigned i = 0; i < WRITERS; i++)
		MUST(pthread_create(&l->thread[i], NULL, write_on, &writer[i]) == 0, "no thread");
	for (unsigned i = WRITERS; i < WRITERS + READERS; i++)
		MUST(pthread_create(&l->thread[i], NULL, read_on, l) == 0, "no thread");
}

void load_stop(struct load *l)
{
	atomic_store(&l->stop, true);
	for (unsigned i = 0; i < WRITERS + READERS; i++)
		pthread_join(l->thread[i], NULL);
}

uint64_t load_check(struct load *l)
{
	uint64_t found = 0;

	for (unsigned i = 0; i < WRITERS; i++)
		for (unsigned j = 0; j < WINDOW; j++) {
			const struct chain *c = &writer[i].chain[j];
			bool hit[CHAIN];

			slabkv_free(writer[i].session[j]);
			writer[i].session[j] = NULL;
			if (c->first == 0)
				continue;
			MUST(read_chain(l, c, 0, true, hit), "a lookup is refused");
			judge_hits(l, c, hit);
			for (uint32_t b = 0; b < CHAIN && c->state == ACKNOWLEDGED; b++)
				found += hit[b];
		}
	return found;
}
