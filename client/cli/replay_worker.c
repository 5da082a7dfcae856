/*
 * replay_worker.c - a replaying thread: looks up and reads a request's prefix, checks every byte
 * against the pattern, writes what is missing.
 *
 * Owns the thread's buffers and counters. Shared: the handle (thread-safe) and the atomics of
 * struct skv_replay. A call that fails for lack of space is counted and the replay goes on; a
 * permanent failure (no manager, no permission) stops the replay.
 */
#include "replay.h"

#include <assert.h>
#include <string.h>
#include <time.h>

#include <skv/clock.h>
#include <skv/mem.h>

#include "pattern.h"

static _Thread_local struct skv_replay_worker *self;

void skv_replay_on_call(void *ctx, const char *op, uint64_t us, int status)
{
	(void)ctx;
	if (!self || status != SLABKV_OK)
		return;
	if (strcmp(op, "lookup") == 0)
		skv_histogram_add(&self->lookup, us);
	else if (strcmp(op, "start") == 0)
		skv_histogram_add(&self->start, us);
	else if (strcmp(op, "finish") == 0)
		skv_histogram_add(&self->finish, us);
}

uint32_t skv_replay_window(const struct skv_replay *r)
{
	uint64_t room = SKV_REPLAY_MEMORY / r->block_bytes;
	uint64_t longest = 1;

	for (size_t i = 0; i < r->trace.n; i++)
		if (r->trace.v[i].n_ids > longest)
			longest = r->trace.v[i].n_ids;
	if (room < 1)
		room = 1;
	assert(longest <= SLABKV_MAX_KEYS); /* limit of the trace reader */
	return (uint32_t)(longest < room ? longest : room);
}

bool skv_replay_worker_init(struct skv_replay_worker *w, struct skv_replay *r)
{
	uint64_t spec_bytes = r->block_bytes / r->n_specs;

	assert(spec_bytes > 0 && spec_bytes * r->n_specs == r->block_bytes);
	w->r = r;
	w->window = skv_replay_window(r);
	w->memory = skv_malloc(w->window * r->block_bytes);
	w->bufs = skv_calloc((size_t)w->window * r->n_specs, sizeof *w->bufs);
	w->blocks = skv_calloc(w->window, sizeof *w->blocks);
	if (!w->memory || !w->bufs || !w->blocks)
		return false;
	for (uint32_t i = 0; i < w->window * r->n_specs; i++)
		w->bufs[i] = (struct slabkv_buf){ w->memory + i * spec_bytes, spec_bytes };
	for (uint32_t b = 0; b < w->window; b++) {
		w->blocks[b].bufs = &w->bufs[(size_t)b * r->n_specs];
		w->blocks[b].n_bufs = r->n_specs;
	}
	return true;
}

void skv_replay_worker_free(struct skv_replay_worker *w)
{
	skv_free(w->memory);
	skv_free(w->bufs);
	skv_free(w->blocks);
}

static void remember(struct skv_replay *r, const struct slabkv_error *err, bool fatal)
{
	assert(!fatal || err->code != SLABKV_OK);
	skv_mutex_lock(&r->lock);
	if (!r->error.code || (fatal && !r->fatal))
		r->error = *err;
	r->fatal |= fatal;
	skv_mutex_unlock(&r->lock);
	if (fatal)
		atomic_store(&r->stop, true);
}

/* Returns true if trying the next request makes sense. */
static bool passing(int status)
{
	switch (status) {
	case SLABKV_E_NO_SPACE:
	case SLABKV_E_QUOTA:
	case SLABKV_E_TOO_LARGE: /* for the group's capacity */
	case SLABKV_E_TOO_MANY:
	case SLABKV_E_UNAVAILABLE:
	case SLABKV_E_JOURNAL_FULL:
	case SLABKV_E_STORE_FULL:
	case SLABKV_E_STORE_IO:
	case SLABKV_E_SESSION_EXPIRED:
		return true;
	default:
		return false;
	}
}

/* Whether all bytes of block `b` match the pattern of `key`. */
static bool right(const struct skv_replay_worker *w, uint32_t b, uint64_t key)
{
	for (uint32_t s = 0; s < w->r->n_specs; s++) {
		const struct slabkv_buf *buf = &w->blocks[b].bufs[s];

		if (!skv_pattern_check(buf->data, buf->size,
				       skv_pattern_seed(w->r->instance, s, key)))
			return false;
	}
	return true;
}

static void judge(struct skv_replay_worker *w, const uint64_t *ids, uint32_t matched)
{
	struct skv_replay_counts *c = &w->counts;

	assert(matched <= w->window); /* the library returns at most what was requested */
	for (uint32_t b = 0; b < matched; b++) {
		switch (w->blocks[b].result) {
		case SLABKV_HIT:
			if (right(w, b, ids[b])) {
				c->verified++;
				c->bytes_read += w->r->block_bytes;
			} else {
				c->mismatches++;
			}
			break;
		case SLABKV_MISMATCH:
			c->mismatches++;
			break;
		case SLABKV_ERROR:
			c->read_errors++;
			break;
		default:
			c->read_misses++;
			break;
		}
	}
	atomic_fetch_add_explicit(&w->r->bytes, matched * w->r->block_bytes, memory_order_relaxed);
}

/* Reads the prefix. *hits: how long it is. */
static bool read_prefix(struct skv_replay_worker *w, const struct skv_trace_request *q,
			uint32_t *hits)
{
	const struct slabkv_lookup_options o = { .size = sizeof(struct slabkv_lookup_options),
						 .lease_ms = w->r->lease_ms };
	uint32_t n = 0;

	for (*hits = 0; *hits < q->n_ids; *hits += n) {
		struct slabkv_keys keys;
		struct slabkv_error err;
		struct slabkv_io io = { .size = sizeof(struct slabkv_io) };

		n = q->n_ids - *hits < w->window ? q->n_ids - *hits : w->window;
		keys = slabkv_keys_ints(q->ids + *hits, n);
		if (slabkv_get(w->r->kv, w->r->instance, &keys, &o, w->blocks,
			       sizeof(struct slabkv_block), &io, &err) != SLABKV_OK) {
			remember(w->r, &err, true);
			return false;
		}
		if (io.failed)
			remember(w->r, &err, false);
		w->counts.ios += io.ios;
		judge(w, q->ids + *hits, io.matched);
		if (io.matched < n) {
			*hits += io.matched;
			break;
		}
	}
	assert(*hits <= q->n_ids);
	w->counts.prefix_hits += *hits;
	return true;
}

/* Writes ids[first..first+n-1], as far as the group's policy admits them. */
static bool write_window(struct skv_replay_worker *w, const struct skv_trace_request *q,
			 uint32_t first, uint32_t n)
{
	const struct slabkv_put_options how = { .size = sizeof how, .flags = SLABKV_PUT_SELECTIVE };
	struct slabkv_keys keys = slabkv_keys_ints(q->ids + first, n);
	struct slabkv_keys parent = slabkv_keys_ints(q->ids + first - (first > 0), 1);
	struct slabkv_error err;
	struct slabkv_io io = { .size = sizeof(struct slabkv_io) };
	int rc;

	assert(n >= 1 && n <= w->window && first + n <= q->n_ids);
	keys.parent = first > 0 ? &parent : NULL;
	for (uint32_t b = 0; b < n; b++)
		for (uint32_t s = 0; s < w->r->n_specs; s++)
			skv_pattern_fill(w->blocks[b].bufs[s].data, w->blocks[b].bufs[s].size,
					 skv_pattern_seed(w->r->instance, s, q->ids[first + b]));
	rc = slabkv_put(w->r->kv, w->r->instance, &keys, &how, w->blocks,
			sizeof(struct slabkv_block), &io, &err);
	w->counts.written += io.done;
	w->counts.bytes_written += io.bytes;
	w->counts.exists += io.exists;
	w->counts.busy += io.busy;
	w->counts.not_admitted += io.not_admitted;
	w->counts.ios += io.ios;
	w->counts.failed += rc == SLABKV_OK ? io.failed
					    : n - io.exists - io.busy - io.not_admitted;
	atomic_fetch_add_explicit(&w->r->bytes, io.bytes, memory_order_relaxed);
	if (rc != SLABKV_OK || io.failed)
		remember(w->r, &err, rc != SLABKV_OK && !passing(rc));
	return rc == SLABKV_OK || passing(rc);
}

static bool handle(struct skv_replay_worker *w, size_t number)
{
	const struct skv_trace_request *q = &w->r->trace.v[number];
	const struct skv_replay_counts before = w->counts;
	uint32_t hits;

	assert(!w->r->hits || !w->r->hits[number].done); /* each request is one thread's */
	if (!read_prefix(w, q, &hits))
		return false;
	for (uint32_t first = hits;
	     first < q->n_ids && w->counts.not_admitted == before.not_admitted;
	     first += w->window) {
		uint32_t n = q->n_ids - first < w->window ? q->n_ids - first : w->window;

		if (!write_window(w, q, first, n))
			return false;
	}
	w->counts.requests++;
	w->counts.blocks += q->n_ids;
	if (w->r->hits)
		w->r->hits[number] = (struct skv_replay_hits){
			hits, (uint32_t)(w->counts.exists - before.exists),
			(uint32_t)(w->counts.written - before.written), true
		};
	return true;
}

/* --speed: waits until the request is due. */
static void wait_for_turn(const struct skv_replay *r, const struct skv_trace_request *q)
{
	uint64_t base = r->trace.v[0].timestamp_ms;
	uint64_t after = q->timestamp_ms > base ? q->timestamp_ms - base : 0;
	uint64_t at = r->begin_us + (uint64_t)((double)after * 1000 / r->speed);

	while (!atomic_load(&r->stop)) {
		uint64_t now = skv_now_us();
		uint64_t left = now < at ? at - now : 0;
		struct timespec t = { .tv_nsec = (long)(left < 100000 ? left : 100000) * 1000 };

		if (left == 0)
			return;
		nanosleep(&t, NULL);
	}
}

void *skv_replay_work(void *worker)
{
	struct skv_replay_worker *w = worker;
	struct skv_replay *r = w->r;

	self = w;
	while (!atomic_load(&r->stop)) {
		size_t i = atomic_fetch_add(&r->next, 1);

		if (i >= r->trace.n)
			break;
		if (r->speed > 0)
			wait_for_turn(r, &r->trace.v[i]);
		if (!handle(w, i))
			break;
		atomic_fetch_add(&r->done, 1);
	}
	self = NULL;
	skv_mutex_lock(&r->lock);
	assert(r->running > 0 && r->running <= r->n_clients);
	r->running--;
	skv_cond_signal(&r->ended);
	skv_mutex_unlock(&r->lock);
	return NULL;
}
