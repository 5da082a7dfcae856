/*
 * load.c - the threads of slots: writers (one of which waits with every session until the manager was
 * killed), and readers.
 *
 * A writer uses keys that nobody else uses, one chain for each session. Most sessions succeed; some are
 * finished in part, aborted, or forgotten, with and without `quiesced`. Bytes are a function of key and spec.
 * No fdatasync: a process is killed here, not the machine.
 * A writer's lock guards its memory of chains; it is never held over a call.
 */
#include "slots.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GRACE_MS 200u      /* as the manager is told */
#define DEADLINE_MS 4000u  /* for each session, and of the survivor */
#define MARGIN_MS 500u     /* nothing is submitted so near to the deadline: this thread may be stopped too */
#define MAX_SPECS 2u

static const struct model {
	const char *id;
	uint32_t n_specs;
	uint64_t size[MAX_SPECS];
} models[] = { { "small", 1, { UNIT } }, { "large", 2, { 2 * UNIT, UNIT } } };

enum chain_state { EMPTY, ACKNOWLEDGED, GOING, DELETED };

struct chain {
	uint64_t first; /* its keys are first .. first + CHAIN - 1 */
	const struct model *model;
	enum chain_state state;
	bool stored[CHAIN]; /* what was acknowledged */
	const struct kvblock_session *s;
};

static struct writer {
	struct load *load;
	unsigned no, seed;
	uint64_t next;
	uint64_t turn;
	struct chain chain[WINDOW];
	pthread_mutex_t lock;
} writer[WRITERS];

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

static int open_slab(const struct load *l, const struct kvblock_file *f)
{
	char path[512];
	int fd;

	snprintf(path, sizeof path, "%s/%s", l->root, f->path);
	fd = open(path, O_RDWR | O_CLOEXEC);
	MUST(fd >= 0, "%s", path);
	return fd;
}

static struct kvblock_keys chain_keys(const struct chain *c, uint64_t *ints)
{
	for (uint32_t i = 0; i < CHAIN; i++)
		ints[i] = c->first + i;
	return kvblock_keys_ints(ints, CHAIN);
}

/* ---- writers ------------------------------------------------------------------------------------------- */

static const struct kvblock_location *at(const struct chain *c, uint32_t block, uint32_t spec)
{
	return &c->s->loc[block * c->model->n_specs + spec];
}

static void set_block(const struct chain *c, uint32_t block, enum claim_state state)
{
	for (uint32_t k = 0; k < c->model->n_specs; k++)
		ledger_set(&c->s->files[at(c, block, k)->file], at(c, block, k), state);
}

/* What a start may say when no manager served for longer than the library tries. */
static bool may_fail(int rc)
{
	return rc == KVBLOCK_E_SESSION_EXPIRED || rc == KVBLOCK_E_TIMEOUT || rc == KVBLOCK_E_NETWORK ||
	       rc == KVBLOCK_E_NOT_OWNER || rc == KVBLOCK_E_NOT_READY || rc == KVBLOCK_E_FENCED ||
	       rc == KVBLOCK_E_UNKNOWN_OUTCOME || rc == KVBLOCK_E_JOURNAL_FULL;
}

static bool begin(struct writer *w, struct chain *c)
{
	uint64_t ints[CHAIN];
	struct kvblock_keys keys = chain_keys(c, ints);
	struct kvblock_put_options o = { .deadline_ms = DEADLINE_MS };
	struct kvblock_error err;
	int rc = kvblock_start(w->load->kv, c->model->id, &keys, &o, NULL, &c->s, &err);

	if (rc != KVBLOCK_OK) {
		MUST(rc != KVBLOCK_E_NO_SPACE || w->load->evicts, "no space, though there is room: %s", err.message);
		MUST(rc == KVBLOCK_E_NO_SPACE || may_fail(rc), "start: %s: %s", kvblock_code(rc), err.message);
		atomic_fetch_add(rc == KVBLOCK_E_NO_SPACE ? &w->load->n.no_space : &w->load->n.refused, 1);
		poll(NULL, 0, 5);
		return false;
	}
	MUST(c->s->n_write == CHAIN, "%u blocks to write of keys that nobody has used", c->s->n_write);
	for (uint32_t i = 0; i < CHAIN; i++)
		for (uint32_t k = 0; k < c->model->n_specs; k++) {
			const struct kvblock_location *loc = at(c, i, k);

			MUST(loc->length == c->model->size[k], "length %llu", (unsigned long long)loc->length);
			ledger_claim(&c->s->files[loc->file], loc, block_key(c->first + i, k),
				     c->s->submit_until_ms + GRACE_MS);
		}
	return true;
}

/* Writes blocks from..to-1. False when it is too late: then nobody may write any more. */
static bool write_blocks(const struct load *l, const struct chain *c, uint64_t *sums, uint32_t from, uint32_t to)
{
	uint8_t bytes[2 * UNIT];

	for (uint32_t i = from; i < to; i++)
		for (uint32_t k = 0; k < c->model->n_specs; k++) {
			const struct kvblock_location *loc = at(c, i, k);
			int fd = open_slab(l, &c->s->files[loc->file]);
			bool late = now_ms() + MARGIN_MS > c->s->submit_until_ms;

			fill(block_key(c->first + i, k), bytes, c->model->size[k]);
			sums[i * c->model->n_specs + k] = kvblock_checksum(bytes, c->model->size[k]);
			if (!late)
				MUST(pwrite(fd, bytes, loc->length, (off_t)loc->offset) == (ssize_t)loc->length, "write");
			close(fd);
			if (late)
				return false;
		}
	return true;
}

/* Finishes with some blocks marked as failed, now and then; remembers what was acknowledged. */
static void end_well(struct writer *w, struct chain *c, const uint64_t *sums, unsigned epoch)
{
	bool mask[CHAIN], quiesced = rand_r(&w->seed) % 2, part = rand_r(&w->seed) % 8 == 0;
	struct kvblock_finish_options o = { mask, CHAIN, sums, CHAIN * c->model->n_specs, quiesced };
	struct kvblock_finished done, again;
	struct kvblock_error err;
	uint32_t good = 0;
	int rc;

	for (uint32_t i = 0; i < CHAIN; i++) {
		mask[i] = !part || rand_r(&w->seed) % 2;
		good += mask[i];
		if (mask[i] || quiesced)
			set_block(c, i, mask[i] ? CLAIM_COMMITTED : CLAIM_LOOSE);
	}
	rc = kvblock_finish(w->load->kv, c->s->id, &o, &done, &err);
	if (rc != KVBLOCK_OK) {
		MUST(now_ms() >= c->s->submit_until_ms, "finish before the deadline: %s: %s", kvblock_code(rc), err.message);
		for (uint32_t i = 0; i < CHAIN; i++)
			set_block(c, i, CLAIM_LOOSE);
		atomic_fetch_add(&w->load->n.refused, 1);
		return;
	}
	MUST(done.committed == good && done.failed == CHAIN - good, "%u committed of %u", done.committed, good);
	if (rand_r(&w->seed) % 8 == 0) {
		MUST(kvblock_finish(w->load->kv, c->s->id, &o, &again, &err) == KVBLOCK_OK, "%s", err.message);
		MUST(again.committed == good && again.failed == CHAIN - good, "a repetition has other numbers");
		atomic_fetch_add(&w->load->n.repeated, 1);
	}
	pthread_mutex_lock(&w->lock);
	memcpy(c->stored, mask, sizeof mask);
	c->state = ACKNOWLEDGED;
	pthread_mutex_unlock(&w->lock);
	atomic_fetch_add(&w->load->n.puts, good);
	atomic_fetch_add(&w->load->n.partial, part);
	if (atomic_load(&w->load->epoch) != epoch)
		atomic_fetch_add(&w->load->n.survived, 1);
}

static void end_badly(struct writer *w, struct chain *c)
{
	bool quiesced = rand_r(&w->seed) % 2;

	if (quiesced)
		for (uint32_t i = 0; i < CHAIN; i++)
			set_block(c, i, CLAIM_LOOSE);
	if (kvblock_abort(w->load->kv, c->s->id, quiesced, NULL) == KVBLOCK_OK)
		atomic_fetch_add(&w->load->n.aborts, 1);
}

/* The survivor goes on when the manager was killed, or before it is too late for that. */
static void wait_for_kill(const struct load *l, const struct chain *c, unsigned epoch)
{
	while (atomic_load(&l->epoch) == epoch && !atomic_load(&l->stop) &&
	       now_ms() + DEADLINE_MS / 2 < c->s->submit_until_ms)
		poll(NULL, 0, 2);
}

static void put_chain(struct writer *w, struct chain *c)
{
	bool survivor = w->no == WRITERS - 1;
	unsigned luck = rand_r(&w->seed) % 64, epoch;
	uint64_t sums[CHAIN * MAX_SPECS];
	bool written;

	pthread_mutex_lock(&w->lock);
	kvblock_free(c->s);
	*c = (struct chain){ .first = w->next, .model = &models[rand_r(&w->seed) % 2] };
	pthread_mutex_unlock(&w->lock);
	w->next += CHAIN;
	if (!begin(w, c))
		return;
	epoch = atomic_load(&w->load->epoch);
	written = write_blocks(w->load, c, sums, 0, CHAIN / 2);
	if (survivor)
		wait_for_kill(w->load, c, epoch);
	written = written && write_blocks(w->load, c, sums, CHAIN / 2, CHAIN);
	if (!written || (luck == 0 && !survivor))
		atomic_fetch_add(&w->load->n.abandoned, 1);
	else if (luck == 1 && !survivor)
		end_badly(w, c);
	else
		end_well(w, c, sums, epoch);
}

/* From the moment that it is sent a delete may act; once acknowledged it must stay so. */
static void delete_chain(struct writer *w, struct chain *c)
{
	uint64_t ints[CHAIN];
	struct kvblock_keys keys = chain_keys(c, ints);
	uint32_t n = 0;

	pthread_mutex_lock(&w->lock);
	c->state = GOING;
	pthread_mutex_unlock(&w->lock);
	for (uint32_t i = 0; i < CHAIN; i++)
		if (c->stored[i])
			set_block(c, i, CLAIM_LOOSE);
	if (kvblock_delete(w->load->kv, c->model->id, &keys, &n, NULL) == KVBLOCK_OK) {
		atomic_fetch_add(&w->load->n.deletes, n);
		c->state = DELETED;
	}
}

/* Puts into the next place and deletes what is half a round old, so that half of the places hold what is there
 * and half what must not come back. */
static void *write_on(void *arg)
{
	struct writer *w = arg;

	while (!atomic_load(&w->load->stop)) {
		struct chain *old = &w->chain[(w->turn + WINDOW / 2) % WINDOW];

		if (old->state == ACKNOWLEDGED && (!w->load->evicts || rand_r(&w->seed) % 4 == 0))
			delete_chain(w, old);
		put_chain(w, &w->chain[w->turn++ % WINDOW]);
	}
	return NULL;
}

/* ---- readers ----------------------------------------------------------------------------------------- */

/* Reads and compares one block by itself; the library's checksum has no part in it. */
static void read_block(struct load *l, const struct kvblock_locations *r, const struct chain *c, uint32_t i)
{
	uint8_t bytes[2 * UNIT], expected[2 * UNIT];

	for (uint32_t k = 0; k < c->model->n_specs; k++) {
		const struct kvblock_location *loc = &r->loc[i * c->model->n_specs + k];
		uint64_t key = block_key(c->first + i, k);
		int fd = open_slab(l, &r->files[loc->file]);
		ssize_t n;

		MUST(loc->length == c->model->size[k], "length %llu", (unsigned long long)loc->length);
		ledger_lease(&r->files[loc->file], loc, key, r->lease_ms ? r->valid_until_ms : 0);
		fill(key, expected, loc->length);
		MUST(loc->has_checksum && loc->checksum == kvblock_checksum(expected, loc->length), "checksum");
		n = pread(fd, bytes, loc->length, (off_t)loc->offset);
		close(fd);
		if (now_ms() >= r->valid_until_ms && !atomic_load(&l->stop))
			continue; /* too late to prove anything */
		MUST(n == (ssize_t)loc->length && memcmp(bytes, expected, loc->length) == 0,
		     "wrong bytes of key %llu in %s at %llu", (unsigned long long)c->first + i,
		     r->files[loc->file].path, (unsigned long long)loc->offset);
		atomic_fetch_add(&l->n.bytes, loc->length);
	}
	atomic_fetch_add(&l->n.reads, 1);
}

/* Returns the hits; `hit` says which. A refused call hits nothing and returns false. */
static bool read_chain(struct load *l, const struct chain *c, uint32_t lease_ms, bool *hit)
{
	uint64_t ints[CHAIN];
	struct kvblock_keys keys = chain_keys(c, ints);
	struct kvblock_lookup_options o = { .mode = KVBLOCK_BATCH, .lease_ms = lease_ms };
	const struct kvblock_locations *r;

	if (kvblock_lookup(l->kv, c->model->id, &keys, &o, &r, NULL) != KVBLOCK_OK) {
		atomic_fetch_add(&l->n.refused, 1);
		return false;
	}
	for (uint32_t i = 0; i < CHAIN; i++) {
		hit[i] = r->hit[i];
		if (hit[i])
			read_block(l, r, c, i);
	}
	kvblock_free(r);
	return true;
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
		if (copy.state != ACKNOWLEDGED || !read_chain(l, &copy, rand_r(&seed) % 4 ? 300 : 0, hit))
			continue;
		pthread_mutex_lock(&w->lock);
		same = c->first == copy.first && c->state == ACKNOWLEDGED; /* no delete was sent meanwhile */
		pthread_mutex_unlock(&w->lock);
		for (uint32_t i = 0; same && !l->evicts && i < CHAIN; i++)
			MUST(hit[i] == copy.stored[i], "key %llu: %s", (unsigned long long)copy.first + i,
			     hit[i] ? "found, but marked as failed" : "lost");
	}
	return NULL;
}

/* ---- begin and end -------------------------------------------------------------------------------------- */

void load_start(struct load *l, struct kvblock *kv, const char *root, bool evicts)
{
	l->kv = kv;
	l->root = root;
	l->evicts = evicts;
	ledger_init(evicts);
	for (unsigned i = 0; i < WRITERS; i++) {
		writer[i] = (struct writer){ .load = l, .no = i, .seed = i + 1, .next = ((uint64_t)i + 1) << 32 };
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
			struct chain *c = &writer[i].chain[j];
			bool hit[CHAIN];

			if (c->state == ACKNOWLEDGED || c->state == DELETED)
				MUST(read_chain(l, c, 0, hit), "a lookup is refused");
			for (uint32_t b = 0; b < CHAIN && c->state == ACKNOWLEDGED; b++) {
				found += hit[b];
				MUST(hit[b] || l->evicts || !c->stored[b], "key %llu is lost",
				     (unsigned long long)c->first + b);
				MUST(!hit[b] || c->stored[b], "key %llu is there, but was marked as failed",
				     (unsigned long long)c->first + b);
			}
			for (uint32_t b = 0; b < CHAIN && c->state == DELETED; b++)
				MUST(!hit[b], "key %llu is back after its delete", (unsigned long long)c->first + b);
			kvblock_free(c->s);
			c->s = NULL;
		}
	return found;
}
