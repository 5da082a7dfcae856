/*
 * usrbio_ring.c - a ring for reads or for writes: entries, submission, waiting.
 *
 * The library wants one thread at a time to prepare and submit, and one to wait. The ring's lock
 * serialises the first. The second is the first thread that waits: this thread takes completions
 * for all and wakes their callers; when it has its own, another thread takes its place. So there
 * are no threads beside the callers', and a call that is alone costs no switch of threads but the
 * daemon's.
 *
 * A completion is believed only if it names a request that is flying: everything else (named
 * twice, never sent) is dropped.
 */
#include "usrbio.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include <skv/check.h>
#include <skv/log.h>
#include <skv/mem.h>

#define REAP 64u      /* completions reaped at a time */
#define SLICE_MS \
	50u /* longest single wait in the library: its clock may be set meanwhile */

static uint64_t now_ms(void) { return skv_now_us() / 1000; }

/* ---- making ---------------------------------------------------------------------------------- */

/* A positive depth would leave the tail of a call unexecuted: the daemon takes exactly
 * so many or none. A negative one ("at most so many at once") is refused by some
 * daemons, not by the newest public one; 0 takes all at once. */
static int create(struct skv_usrbio_conn *g, bool read, const struct skv_hf3fs_options *o,
		  struct skv_hf3fs_ior *ior)
{
	static atomic_bool told;
	int depth = o->io_depth > 0 ? -o->io_depth : o->io_depth;
	int rc = g->lib->iorcreate3(ior, g->mount_point, (int)o->ior_entries, read, depth, 0, 0,
				    o->numa_id);

	if (rc != -EINVAL || depth == 0)
		return rc;
	if (!atomic_exchange(&told, true))
		skv_log(SKV_LOG_INFO, "client",
			"the FUSE daemon of %s takes no negative hf3fs_io_depth: 0 is used",
			g->mount_point);
	return g->lib->iorcreate3(ior, g->mount_point, (int)o->ior_entries, read, 0, 0, 0,
				  o->numa_id);
}

int skv_usrbio_ring_make(struct skv_usrbio_conn *g, enum skv_usrbio_way way,
			 const struct skv_hf3fs_options *o, struct skv_usrbio_ring *out,
			 struct skv_error *err)
{
	int rc;

	out->conn = g;
	out->way = way;
	out->entries = o->ior_entries;
	out->ios = skv_calloc(out->entries, sizeof *out->ios);
	if (!out->ios)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	for (uint32_t i = out->entries; i-- > 0;) {
		out->ios[i].next = out->free;
		out->free = &out->ios[i];
	}
	rc = create(g, way == SKV_USRBIO_READ, o, &out->ior);
	if (rc != 0) {
		skv_free(out->ios);
		out->ios = NULL;
		return skv_fail(
			err, SKV_E_UNAVAILABLE, NULL,
			"the FUSE daemon of %s refused a ring: %s (is it up, and does it see the "
			"same /dev/shm?)",
			g->mount_point, strerror(-rc));
	}
	/* Remove the name; older libraries leave that to the caller. */
	g->lib->iovunlink(&out->ior.iov);
	skv_mutex_init(&out->lock);
	return SKV_OK;
}

void skv_usrbio_ring_close(struct skv_usrbio_ring *r)
{
	r->conn->lib->iordestroy(&r->ior);
	skv_mutex_destroy(&r->lock);
	skv_free(r->ios);
}

/* ---- places ---------------------------------------------------------------------------------- */

struct skv_usrbio_io *skv_usrbio_ring_take(struct skv_usrbio_ring *r)
{
	struct skv_usrbio_io *io;

	skv_mutex_lock(&r->lock);
	io = r->free;
	SKV_CHECK(!io || (!io->flying && !io->own));
	if (io)
		r->free = io->next;
	skv_mutex_unlock(&r->lock);
	if (io) {
		io->data = NULL;
		io->overdue = false;
	}
	return io;
}

static void give_locked(struct skv_usrbio_ring *r, struct skv_usrbio_io *io) SKV_REQUIRES(r->lock)
{
	SKV_CHECK(skv_mutex_held(&r->lock) && io >= r->ios && io < r->ios + r->entries);
	SKV_CHECK(!io->flying && io != r->free);
	io->own = false;
	io->length = 0;
	io->next = r->free;
	r->free = io;
}

void skv_usrbio_ring_give(struct skv_usrbio_ring *r, struct skv_usrbio_io *io)
{
	skv_mutex_lock(&r->lock);
	give_locked(r, io);
	skv_mutex_unlock(&r->lock);
}

bool skv_usrbio_ring_claim(struct skv_usrbio_ring *r, struct skv_usrbio_io *io, uint8_t *data,
			   uint64_t length)
{
	bool mine = true;

	SKV_CHECK(data && length > 0);
	skv_mutex_lock(&r->lock);
	for (uint32_t i = 0; r->way == SKV_USRBIO_READ && mine && i < r->entries; i++) {
		const struct skv_usrbio_io *o = &r->ios[i];

		mine = !o->own || data + length <= o->data || o->data + o->length <= data;
	}
	if (mine) {
		io->own = true;
		io->data = data;
		io->length = length;
	}
	skv_mutex_unlock(&r->lock);
	return mine;
}

/* ---- sending --------------------------------------------------------------------------------- */

uint32_t skv_usrbio_ring_send(struct skv_usrbio_ring *r, struct skv_usrbio_call *c,
			      struct skv_usrbio_io *const *ios, uint32_t n, int *error)
{
	const struct skv_usrbio_lib *lib = r->conn->lib;
	uint32_t sent = 0;
	int rc = 0;

	skv_mutex_lock(&r->lock);
	if (n > 0 && skv_deadline_passed(c->by))
		rc = -ETIME;
	while (rc >= 0 && sent < n) {
		struct skv_usrbio_io *io = ios[sent];
		const struct skv_io_run *run = &c->runs[io->run];
		const struct skv_usrbio_file *f = (const struct skv_usrbio_file *)run->file;

		rc = lib->prep_io(&r->ior, io->iov, r->way == SKV_USRBIO_READ, io->data,
				  f->registered, run->offset + io->at, io->length, io);
		if (rc < 0)
			break;
		io->call = c;
		io->flying = true;
		io->sent_ms = skv_now_ms(c->by->clock);
		sent++;
	}
	if (sent > 0) {
		r->flying += sent;
		/* A prepared request may run before it is submitted, and cannot be withdrawn:
		 * whatever this returns, it is waited for. */
		(void)lib->submit_ios(&r->ior);
	}
	skv_mutex_unlock(&r->lock);
	*error = rc < 0 ? -rc : 0;
	return sent;
}

/* ---- landing --------------------------------------------------------------------------------- */

static void land_locked(struct skv_usrbio_ring *r, const struct skv_hf3fs_cqe *cqe)
	SKV_REQUIRES(r->lock)
{
	struct skv_usrbio_io *io = (struct skv_usrbio_io *)(uintptr_t)cqe->userdata;
	uintptr_t at = (uintptr_t)io - (uintptr_t)r->ios;

	SKV_CHECK(skv_mutex_held(&r->lock));
	if (at >= r->entries * sizeof *io || at % sizeof *io || !io->flying)
		return;
	io->flying = false;
	io->result = cqe->result;
	r->flying--;
	if (io->call) {
		io->next = io->call->landed;
		io->call->landed = io;
		skv_cond_signal(&io->call->wake);
		return;
	}
	r->orphaned--;
	if (!io->own) {
		atomic_fetch_sub(&r->conn->orphaned[r->way], io->length);
		skv_usrbio_pool_give(&r->conn->pools[r->way], io->data, io->length);
	}
	give_locked(r, io);
}

/* Waits once for completions, on behalf of all. */
static void reap_locked(struct skv_usrbio_ring *r, uint32_t ms) SKV_REQUIRES(r->lock)
{
	struct skv_hf3fs_cqe cqes[REAP];
	struct timespec until;
	int n;

	SKV_CHECK(skv_mutex_held(&r->lock));
	r->reaping = true;
	skv_mutex_unlock(&r->lock);
	clock_gettime(CLOCK_REALTIME, &until); /* the library's clock */
	until.tv_nsec += (long)ms * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	n = r->conn->lib->wait_for_ios(&r->ior, cqes, REAP, ms > 0, &until);
	if (n < 0 && ms > 0)
		poll(NULL, 0, 1); /* wait_for_ios returned without waiting */
	skv_mutex_lock(&r->lock);
	r->reaping = false;
	for (int i = 0; i < n && i < (int)REAP; i++)
		land_locked(r, &cqes[i]);
}

static void leave_locked(struct skv_usrbio_ring *r, const struct skv_usrbio_call *c)
	SKV_REQUIRES(r->lock)
{
	struct skv_usrbio_call **at = &r->waiting;

	SKV_CHECK(skv_mutex_held(&r->lock));
	while (*at && *at != c)
		at = &(*at)->next;
	if (*at)
		*at = c->next;
}

struct skv_usrbio_io *skv_usrbio_ring_wait(struct skv_usrbio_ring *r, struct skv_usrbio_call *c,
					   uint32_t ms)
{
	uint64_t until = now_ms() + ms, now;
	struct skv_usrbio_io *landed;

	skv_mutex_lock(&r->lock);
	while (!c->landed && (now = now_ms()) < until) {
		uint32_t some = until - now < SLICE_MS ? (uint32_t)(until - now) : SLICE_MS;

		if (!r->reaping) {
			reap_locked(r, some);
			continue;
		}
		c->next = r->waiting;
		r->waiting = c;
		skv_cond_wait_ms(&c->wake, &r->lock, some);
		leave_locked(r, c);
	}
	landed = c->landed;
	c->landed = NULL;
	if (!r->reaping && r->waiting)
		skv_cond_signal(&r->waiting->wake); /* the woken thread waits for all from now on */
	skv_mutex_unlock(&r->lock);
	return landed;
}

void skv_usrbio_ring_poll(struct skv_usrbio_ring *r)
{
	skv_mutex_lock(&r->lock);
	if (r->flying > 0 && !r->reaping) {
		reap_locked(r, 0);
		if (!r->reaping && r->waiting)
			skv_cond_signal(&r->waiting->wake);
	}
	skv_mutex_unlock(&r->lock);
}

bool skv_usrbio_ring_mine(struct skv_usrbio_ring *r, const struct skv_usrbio_call *c,
			  const struct skv_usrbio_io *io)
{
	bool mine;

	skv_mutex_lock(&r->lock);
	mine = io->flying && io->call == c;
	skv_mutex_unlock(&r->lock);
	return mine;
}

bool skv_usrbio_ring_overdue(struct skv_usrbio_ring *r, const struct skv_usrbio_call *c,
			     struct skv_usrbio_io *io)
{
	bool news;

	skv_mutex_lock(&r->lock);
	news = io->flying && io->call == c && !io->overdue;
	io->overdue |= news;
	skv_mutex_unlock(&r->lock);
	return news;
}

bool skv_usrbio_ring_abandon(struct skv_usrbio_ring *r, const struct skv_usrbio_call *c,
			     struct skv_usrbio_io *io)
{
	bool mine;

	skv_mutex_lock(&r->lock);
	mine = io->flying && io->call == c;
	if (mine) {
		io->call = NULL;
		r->orphaned++;
		if (!io->own)
			atomic_fetch_add(&r->conn->orphaned[r->way], io->length);
	}
	skv_mutex_unlock(&r->lock);
	return mine;
}
