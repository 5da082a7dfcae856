/*
 * load.c - several writers and readers that go on while the manager dies and comes back.
 *
 * A writer puts chains under keys that nobody else uses, remembers which were acknowledged, and
 * deletes old ones. Readers read what was acknowledged and compare every byte. A writer's lock is
 * held while a chain of it is read or deleted, so that a miss cannot be blamed on a delete.
 */
#include "kill9.h"

#include <pthread.h>
#include <string.h>

void fill(uint64_t key, uint8_t *bytes)
{
	uint64_t x = key * 0x9e3779b97f4a7c15u + 1;

	for (size_t i = 0; i < BLOCK; i += 8) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		memcpy(bytes + i, &x, 8);
	}
}

struct io {
	uint8_t bytes[CHAIN][BLOCK];
	uint8_t expected[BLOCK];
	uint64_t ints[CHAIN];
	struct slabkv_buf buf[CHAIN];
	struct slabkv_block block[CHAIN];
	struct slabkv_keys keys;
};

static void prepare(struct io *io, uint64_t first)
{
	for (uint32_t i = 0; i < CHAIN; i++) {
		io->ints[i] = first + i;
		io->buf[i] = (struct slabkv_buf){ io->bytes[i], BLOCK };
		io->block[i] = (struct slabkv_block){ .bufs = &io->buf[i], .n_bufs = 1 };
	}
	io->keys = slabkv_keys_ints(io->ints, CHAIN);
}

static void put_chain(struct writer *w, struct io *io, struct chain *c)
{
	struct slabkv_error err;
	uint32_t written = 0;

	prepare(io, w->next);
	for (uint32_t i = 0; i < CHAIN; i++)
		fill(io->ints[i], io->bytes[i]);
	if (slabkv_put(w->load->kv, "kill9", &io->keys, NULL, io->block,
		       sizeof(struct slabkv_block), NULL, &err) != SLABKV_OK)
		atomic_fetch_add(&w->load->refused, 1);
	else
		for (uint32_t i = 0; i < CHAIN; i++)
			written += io->block[i].result == SLABKV_WRITTEN ||
				   io->block[i].result == SLABKV_EXISTS;
	pthread_mutex_lock(&w->lock);
	*c = (struct chain){ w->next, written == CHAIN ? ACKNOWLEDGED : UNKNOWN };
	pthread_mutex_unlock(&w->lock);
	w->next += CHAIN;
	atomic_fetch_add(&w->load->puts, written);
}

static void delete_chain(struct writer *w, struct io *io, struct chain *c)
{
	uint32_t n;

	pthread_mutex_lock(&w->lock);
	c->state = GOING;
	pthread_mutex_unlock(&w->lock);
	prepare(io, c->first);
	if (slabkv_delete(w->load->kv, "kill9", &io->keys, &n, NULL) == SLABKV_OK)
		atomic_fetch_add(&w->load->deletes, n);
}

static void *write_on(void *arg)
{
	struct writer *w = arg;
	struct io *io = malloc(sizeof *io);
	uint64_t turn = 0;

	MUST(io, "no memory");
	while (!atomic_load(&w->load->stop)) {
		struct chain *c = &w->chain[turn++ % WINDOW];

		if (c->first && !w->load->evicts)
			delete_chain(w, io, c);
		put_chain(w, io, c);
	}
	free(io);
	return NULL;
}

/* Reads one chain; every byte of a hit must be right. Returns the hits. */
static uint32_t read_chain(struct load *l, struct io *io, uint64_t first, bool must)
{
	struct slabkv_error err;
	struct slabkv_io n = { .size = sizeof(struct slabkv_io) };
	uint32_t hits = 0;
	int rc;

	prepare(io, first);
	rc = slabkv_get(l->kv, "kill9", &io->keys, NULL, io->block, sizeof(struct slabkv_block), &n,
			&err);
	if (rc != SLABKV_OK) {
		atomic_fetch_add(&l->refused, 1);
		return 0;
	}
	for (uint32_t i = 0; i < CHAIN; i++) {
		MUST(io->block[i].result != SLABKV_MISMATCH, "key %llu: damaged",
		     (unsigned long long)first + i);
		if (io->block[i].result != SLABKV_HIT) {
			MUST(!must, "acknowledged key %llu is lost (%s)",
			     (unsigned long long)first + i, slabkv_code(io->block[i].why));
			continue;
		}
		fill(first + i, io->expected);
		MUST(memcmp(io->bytes[i], io->expected, BLOCK) == 0, "key %llu: wrong bytes",
		     (unsigned long long)first + i);
		hits++;
	}
	atomic_fetch_add(&l->hits, hits);
	atomic_fetch_add(&l->bytes, (uint64_t)hits * BLOCK);
	return hits;
}

static void *read_on(void *arg)
{
	struct load *l = arg;
	struct io *io = malloc(sizeof *io);
	unsigned seed = (unsigned)(uintptr_t)io;

	MUST(io, "no memory");
	while (!atomic_load(&l->stop)) {
		struct writer *w = &l->writer[rand_r(&seed) % WRITERS];
		struct chain *c = &w->chain[rand_r(&seed) % WINDOW];

		pthread_mutex_lock(&w->lock);
		if (c->state == ACKNOWLEDGED)
			read_chain(l, io, c->first, !l->evicts);
		pthread_mutex_unlock(&w->lock);
		atomic_fetch_add(&l->reads, 1);
	}
	free(io);
	return NULL;
}

void load_start(struct load *l, struct slabkv *kv, bool evicts)
{
	memset(l, 0, sizeof *l);
	l->kv = kv;
	l->evicts = evicts;
	for (unsigned i = 0; i < WRITERS; i++) {
		l->writer[i].load = l;
		l->writer[i].no = i;
		l->writer[i].next = ((uint64_t)i + 1) << 32;
		pthread_mutex_init(&l->writer[i].lock, NULL);
	}
	for (unsigned i = 0; i < WRITERS; i++)
		MUST(pthread_create(&l->thread[i], NULL, write_on, &l->writer[i]) == 0,
		     "no thread");
	for (unsigned i = WRITERS; i < WRITERS + READERS; i++)
		MUST(pthread_create(&l->thread[i], NULL, read_on, l) == 0, "no thread");
}

void load_stop(struct load *l)
{
	atomic_store(&l->stop, true);
	for (unsigned i = 0; i < WRITERS + READERS; i++)
		pthread_join(l->thread[i], NULL);
}

uint64_t load_check_all(struct load *l)
{
	struct io *io = malloc(sizeof *io);
	uint64_t found = 0;

	MUST(io, "no memory");
	for (unsigned i = 0; i < WRITERS; i++)
		for (unsigned j = 0; j < WINDOW; j++)
			if (l->writer[i].chain[j].state == ACKNOWLEDGED)
				found += read_chain(l, io, l->writer[i].chain[j].first, !l->evicts);
	free(io);
	return found;
}
