/*
 * usrbio_pump.c - a call of the engine "usrbio": cuts runs into requests, sends them as far as
 * places and buffers go, settles completions, and returns when no request is in flight or worth
 * waiting for.
 *
 * A request has one piece of memory. Bytes that lie side by side in memory that the daemon knows go
 * without a copy, if they are many (SKV_USRBIO_DIRECT) or all that is left; everything else goes
 * through a buffer of ours, which makes one request of several blocks. Requests end at chunks of
 * the file: a chunk is never written in two parts.
 *
 * While it runs, a run's `done` is where it stops: its whole length first, then the lowest position
 * at which a request failed or came short. A request that is not back when its time is over is
 * orphaned; but not one in the caller's memory. When the daemon is another one, nothing comes
 * back: only requests in the caller's memory are waited for then, until it is sure that the old
 * daemon's process has ended.
 */
#include "usrbio.h"

#include <errno.h>
#include <string.h>

#include <skv/check.h>
#include <skv/log.h>

#define PARTS 4u          /* a call that is too short for large reads has so many */
#define LEAST (4ull << 20) /* unless they were smaller than this */
#define TURN_MS 10u /* between polls for a free place and buffer */

static bool writing(const struct skv_usrbio_call *c) { return c->ring->way == SKV_USRBIO_WRITE; }

/* Extents of memory that hold the runs' bytes: the one at the cursor, joined with neighbours. */
static uint64_t extent(const struct skv_usrbio_call *c, int iov, size_t skip, uint64_t most)
{
	const struct skv_io_run *run = &c->runs[c->run];
	const char *end = (const char *)run->iov[iov].iov_base + run->iov[iov].iov_len;
	uint64_t n = run->iov[iov].iov_len - skip;

	while (n < most && ++iov < run->n_iov && run->iov[iov].iov_base == end) {
		n += run->iov[iov].iov_len;
		end += run->iov[iov].iov_len;
	}
	return n < most ? n : most;
}

static void step(struct skv_usrbio_call *c, uint64_t n)
{
	const struct skv_io_run *run = &c->runs[c->run];

	c->at += n;
	while (n > 0) {
		uint64_t some = run->iov[c->iov].iov_len - c->skip;

		some = some < n ? some : n;
		c->skip += some;
		n -= some;
		if (c->skip == run->iov[c->iov].iov_len) {
			c->iov++;
			c->skip = 0;
		}
	}
}

/* ---- from runs to requests ------------------------------------------------------------------- */

/* Bytes of the next request at most: up to a chunk's edge, unless the run ends before it. */
static uint64_t bound(const struct skv_usrbio_call *c)
{
	const struct skv_io_run *run = &c->runs[c->run];
	const struct skv_usrbio_file *f = (const struct skv_usrbio_file *)run->file;
	uint64_t most = c->most, left = run->length - c->at;
	uint64_t begin = run->offset + c->at, end = (begin + most) & ~(f->chunk - 1);

	if (left <= most)
		return left;
	return end > begin ? end - begin : most;
}

static bool cut_direct(struct skv_usrbio_call *c, struct skv_usrbio_io *io, uint64_t most)
{
	const struct skv_io_run *run = &c->runs[c->run];
	uint8_t *data = (uint8_t *)run->iov[c->iov].iov_base + c->skip;
	uint64_t n = extent(c, c->iov, c->skip, most), in = 0;
	const struct skv_hf3fs_iov *iov = skv_usrbio_conn_find(c->ring->conn, data, n, &in);

	if (!iov || (in < SKV_USRBIO_DIRECT && in < run->length - c->at) ||
	    !skv_usrbio_ring_claim(c->ring, io, data, in))
		return false;
	io->iov = iov;
	return true;
}

/* Up to where bytes can go without a copy. */
static uint64_t until_direct(const struct skv_usrbio_call *c, uint64_t most)
{
	const struct skv_io_run *run = &c->runs[c->run];
	uint64_t n = run->iov[c->iov].iov_len - c->skip, in;

	for (int i = c->iov + 1; i < run->n_iov && n < most; i++) {
		const struct iovec *v = &run->iov[i];

		if (skv_usrbio_conn_find(c->ring->conn, v->iov_base, v->iov_len, &in) &&
		    extent(c, i, 0, most - n) >= SKV_USRBIO_DIRECT)
			break;
		n += v->iov_len;
	}
	return n < most ? n : most;
}

/* About half of it, up to a chunk's edge. */
static uint64_t less(const struct skv_usrbio_call *c, uint64_t n)
{
	const struct skv_io_run *run = &c->runs[c->run];
	const struct skv_usrbio_file *f = (const struct skv_usrbio_file *)run->file;
	uint64_t begin = run->offset + c->at, end = (begin + n / 2) & ~(f->chunk - 1);

	return end > begin ? end - begin : n / 2;
}

/* No call holds more than half of the buffers. A call that holds none accepts a smaller one than it
 * wants. */
static bool cut_buffered(struct skv_usrbio_call *c, struct skv_usrbio_io *io, uint64_t most)
{
	struct skv_usrbio_pool *pool = &c->ring->conn->pools[c->ring->way];
	uint64_t n = until_direct(c, most);
	uint8_t *data;

	if (c->buffered > 0 && c->buffered + n > (uint64_t)pool->n_units * SKV_USRBIO_UNIT / 2)
		return false;
	data = skv_usrbio_pool_take(pool, n);
	while (!data && c->buffered == 0 && n > SKV_USRBIO_UNIT) {
		n = less(c, n);
		data = skv_usrbio_pool_take(pool, n);
	}
	if (!data)
		return false;
	io->iov = &pool->memory.iov;
	io->data = data;
	io->length = n;
	c->buffered += n;
	if (writing(c))
		skv_run_copy(&c->runs[c->run], c->at, data, n, false);
	return true;
}

/* Between the neighbours that it names. */
static void keep(struct skv_usrbio_call *c, struct skv_usrbio_io *io)
{
	*(io->before ? &io->before->after : &c->first) = io;
	*(io->after ? &io->after->before : &c->last) = io;
}

static void forget(struct skv_usrbio_call *c, struct skv_usrbio_io *io)
{
	SKV_CHECK((io->before ? io->before->after : c->first) == io &&
		  (io->after ? io->after->before : c->last) == io);
	*(io->before ? &io->before->after : &c->first) = io->after;
	*(io->after ? &io->after->before : &c->last) = io->before;
}

/* The next request, with its memory. False: nothing is left, or there is no place or buffer now. */
static bool cut(struct skv_usrbio_call *c, struct skv_usrbio_io **out)
{
	struct skv_usrbio_io *io;
	uint64_t most;

	while (c->run < c->n && c->at >= c->runs[c->run].done) {
		c->run++;
		c->at = 0;
		c->iov = 0;
		c->skip = 0;
	}
	if (c->run == c->n)
		return false;
	io = skv_usrbio_ring_take(c->ring);
	if (!io)
		return false;
	io->run = c->run;
	io->at = c->at;
	most = bound(c);
	if (!cut_direct(c, io, most) && !cut_buffered(c, io, most)) {
		skv_usrbio_ring_give(c->ring, io);
		return false;
	}
	step(c, io->length);
	io->before = c->last;
	io->after = NULL;
	keep(c, io);
	*out = io;
	return true;
}

static void release(struct skv_usrbio_call *c, struct skv_usrbio_io *io)
{
	forget(c, io);
	if (!io->own) {
		c->buffered -= io->length;
		skv_usrbio_pool_give(&c->ring->conn->pools[c->ring->way], io->data, io->length);
	}
	skv_usrbio_ring_give(c->ring, io);
}

/* Ends all runs with unsent requests with `status`. */
static void send_no_more(struct skv_usrbio_call *c, int status)
{
	while (c->n_ready > 0) {
		struct skv_usrbio_io *io = c->ready[--c->n_ready];

		skv_run_stop(&c->runs[io->run], io->at, status);
		release(c, io);
	}
	for (; c->run < c->n; c->run++) {
		skv_run_stop(&c->runs[c->run], c->at, status);
		c->at = 0;
	}
}

/* Errors of requests that were not executed, because the daemon does not know the file or
 * memory. */
static bool unknown(int64_t error) { return error == EBADF || error == EACCES || error == EINVAL; }

static void doubt(struct skv_usrbio_call *c, struct skv_io_run *run, int64_t error)
{
	if (!unknown(error))
		return;
	run->again |= error == EBADF; /* only the file may be unknown */
	skv_usrbio_conn_check(c->ring->conn, run->file->fd);
}

/* Sends as many requests as there are places and buffers. */
static void send(struct skv_usrbio_call *c)
{
	/* a write flies while the next is copied */
	uint32_t sent, most = writing(c) ? 1 : SKV_USRBIO_BATCH;
	int error = 0;

	do {
		while (c->n_ready < most && cut(c, &c->ready[c->n_ready]))
			c->n_ready++;
		sent = skv_usrbio_ring_send(c->ring, c, c->ready, c->n_ready, &error);
		for (uint32_t i = 0; i < sent; i++)
			c->runs[c->ready[i]->run].ios++;
		c->pending += sent;
		c->n_ready -= sent;
		memmove(c->ready, c->ready + sent, c->n_ready * sizeof c->ready[0]);
	} while (sent == most);
	if (c->n_ready == 0 || error == EAGAIN)
		return;
	doubt(c, &c->runs[c->ready[0]->run], error);
	send_no_more(c, error == ETIME ? SKV_E_TIMEOUT : skv_engine_status(error));
}

/* ---- landing --------------------------------------------------------------------------------- */

static void settle(struct skv_usrbio_call *c, struct skv_usrbio_io *io)
{
	struct skv_io_run *run = &c->runs[io->run];
	int64_t n = io->result;

	c->pending--;
	run->ended_ms = skv_now_ms(c->by->clock);
	run->touched |= n >= 0 || !unknown(-n);
	if (n > 0 && (uint64_t)n <= io->length && !writing(c) && !io->own)
		skv_run_copy(run, io->at, io->data, (uint64_t)n, true);
	if (n < 0) {
		skv_run_stop(run, io->at, skv_engine_status((int)-n));
		doubt(c, run, -n);
	} else if ((uint64_t)n > io->length) {
		skv_run_stop(run, io->at, SKV_E_INTERNAL);
	} else if ((uint64_t)n < io->length) {
		/* a hole, or the end: nothing was ever written there */
		skv_run_stop(run, io->at + (writing(c) ? 0 : (uint64_t)n),
			 writing(c) ? SKV_E_IO : SKV_OK);
	}
	release(c, io);
}

static uint64_t budget(const struct skv_usrbio_call *c)
{
	return writing(c) ? c->o->write_timeout_ms : c->o->read_timeout_ms;
}

/* Returns the time left before all waiters have left the call. */
static uint64_t left_ms(const struct skv_usrbio_call *c, uint64_t now)
{
	if (c->by->until_ms == 0)
		return UINT64_MAX;
	return c->by->until_ms > now ? c->by->until_ms - now : 0;
}

/* Orphans one request. False: it has landed meanwhile. */
static bool give_up(struct skv_usrbio_call *c, struct skv_usrbio_io *io)
{
	struct skv_io_run *run = &c->runs[io->run];
	uint64_t at = io->at, length = io->length;
	bool own = io->own;

	SKV_CHECK(!own || atomic_load(&c->ring->conn->gone));
	forget(c, io); /* once it is an orphan it may be another call's */
	if (!skv_usrbio_ring_abandon(c->ring, c, io)) {
		keep(c, io);
		return false;
	}
	skv_run_stop(run, at, SKV_E_IO);
	run->in_flight |= writing(c);
	run->touched |= writing(c);
	c->buffered -= own ? 0 : length;
	c->pending--;
	return true;
}

/* Orphans requests that are overdue, and all of them on a lost connection, where nothing completes
 * any more; but none in the caller's memory while the daemon may still access it. */
static void give_up_late(struct skv_usrbio_call *c)
{
	struct skv_usrbio_conn *g = c->ring->conn;
	uint64_t now = skv_now_ms(c->by->clock);
	bool lost = atomic_load(&g->lost), gone = atomic_load(&g->gone);
	uint32_t n = 0, n_overdue = 0;

	for (uint32_t i = 0; i < c->ring->entries && c->pending > 0; i++) {
		struct skv_usrbio_io *io = &c->ring->ios[i];
		bool late;

		if (!skv_usrbio_ring_mine(c->ring, c, io))
			continue;
		late = now - io->sent_ms >= budget(c) || left_ms(c, now) == 0;
		if (io->own && !gone)
			n_overdue += late && skv_usrbio_ring_overdue(c->ring, c, io);
		else if (late)
			n += give_up(c, io);
		else if (lost)
			(void)give_up(c, io);
	}
	if (n_overdue > 0)
		skv_log(SKV_LOG_WARN, "client",
			"usrbio: %u %s registered memory got no answer in %llu ms; they are "
			"waited for, since they may still use it",
			n_overdue, writing(c) ? "writes from" : "reads into",
			(unsigned long long)budget(c));
	if (n == 0)
		return;
	skv_log(SKV_LOG_WARN, "client",
		"usrbio: %u %s got no answer in %llu ms; their memory stays away until it comes", n,
		writing(c) ? "writes" : "reads", (unsigned long long)budget(c));
	skv_usrbio_conn_orphaned(g, c->ring);
}

/* Reaps completions. If there are none, works on, or waits and checks why. */
static void wait_some(struct skv_usrbio_call *c)
{
	const uint64_t left = left_ms(c, skv_now_ms(c->by->clock));
	uint32_t ms = budget(c) < SKV_USRBIO_PROBE_MS ? (uint32_t)budget(c) : SKV_USRBIO_PROBE_MS;
	struct skv_usrbio_io *io;

	ms = left < ms ? (uint32_t)left : ms;
	if (c->working)
		skv_usrbio_ring_poll(c->ring);
	io = skv_usrbio_ring_wait(c->ring, c, c->working ? 0 : ms);
	if (!io && !c->working)
		skv_usrbio_conn_check(c->ring->conn, c->runs[0].file->fd);
	if ((!io && !c->working) || atomic_load(&c->ring->conn->lost))
		give_up_late(c);
	while (io) {
		struct skv_usrbio_io *next = io->next;

		settle(c, io);
		io = next;
	}
}

/* Requests are cut in the order of the runs and land in any: what lies before the first one that is
 * left has arrived. */
static void note_arrived(struct skv_usrbio_call *c)
{
	uint32_t run = c->first ? c->first->run : c->run;
	uint64_t at = c->first ? c->first->at : c->at;

	SKV_CHECK(c->arrived <= run && run <= c->n);
	for (; c->arrived < run; c->arrived++)
		c->runs[c->arrived].arrived = c->runs[c->arrived].done;
	if (run < c->n)
		c->runs[run].arrived = at < c->runs[run].done ? at : c->runs[run].done;
}

/* Nothing is flying, and there is no place or no buffer: others have them. */
static void wait_turn(struct skv_usrbio_call *c)
{
	struct skv_usrbio_conn *g = c->ring->conn;

	/* an orphaned write may have landed */
	for (uint32_t i = 0; i < g->n_rings; i++)
		skv_usrbio_ring_poll(&g->rings[c->ring->way][i]);
	if (skv_deadline_passed(c->by))
		send_no_more(c, SKV_E_TIMEOUT);
	else
		skv_usrbio_pool_wait(&g->pools[c->ring->way], TURN_MS);
}

/* Bytes of a request. Reads are large, but a short call is cut into some, so that one is copied
 * while the next are under way. */
static uint64_t size_of_requests(const struct skv_hf3fs_options *o, enum skv_usrbio_way way,
				 const struct skv_io_run *runs, uint32_t n)
{
	uint64_t total = 0;

	if (way == SKV_USRBIO_WRITE)
		return o->write_io_size;
	for (uint32_t i = 0; i < n; i++)
		total += runs[i].length;
	total /= PARTS;
	if (total < LEAST)
		total = LEAST;
	return total < o->read_io_size ? total : o->read_io_size;
}

/* Nothing of it was sent: the files are to be opened anew. */
static void refuse(struct skv_io_run *runs, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		runs[i].status = SKV_E_IO;
		runs[i].again = true;
	}
}

void skv_usrbio_pump(struct skv_usrbio_conn *g, enum skv_usrbio_way way, struct skv_io_run *runs,
		     uint32_t n, const struct skv_io_call *by)
{
	struct skv_usrbio_call c = { .o = g->o, .runs = runs, .n = n, .by = by,
				     .most = size_of_requests(g->o, way, runs, n) };

	if (!skv_usrbio_conn_enter(g)) {
		refuse(runs, n);
		return;
	}
	c.ring = &g->rings[way][atomic_fetch_add(&g->turn, 1) % g->n_rings];
	skv_cond_init(&c.wake);
	for (uint32_t i = 0; i < n; i++)
		runs[i].done = runs[i].length;
	while (c.run < c.n || c.n_ready > 0 || c.pending > 0) {
		if (atomic_load(&g->lost))
			send_no_more(&c, SKV_E_IO);
		send(&c);
		c.working = c.pending > 0 && by->work && by->work(by->ctx);
		if (c.pending > 0)
			wait_some(&c);
		else if (c.run < c.n || c.n_ready > 0)
			wait_turn(&c);
		if (way == SKV_USRBIO_READ)
			note_arrived(&c);
	}
	skv_cond_destroy(&c.wake);
	for (uint32_t i = 0; i < n; i++)
		runs[i].again = runs[i].status == SKV_E_IO &&
				(runs[i].again || atomic_load(&g->lost)) &&
				!(way == SKV_USRBIO_WRITE && runs[i].touched);
	skv_usrbio_conn_leave(g);
}
