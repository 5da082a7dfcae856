/*
 * uring_pump.c - a call of the engine "uring": cuts runs into requests, keeps up to `depth` of them
 * in flight, continues after a short one, and returns when nothing is in flight.
 *
 * While it runs, a run's `done` is where it stops: its whole length first, then the lowest position
 * at which a request failed or the file ended. Requests of one run are cut in order, so that at the
 * end everything below `done` has been moved. `status` is why it stopped there.
 *
 * Deadline: checked once per batch, right before the one system call that submits it. A request
 * that the kernel did not take is never offered again after the deadline.
 *
 * Direct or buffered is decided request by request. Direct ones cover whole pages of the file, so
 * the two kinds never share a page of the page cache: a buffered neighbour cannot write back old
 * bytes over what went past the cache.
 */
#include "uring.h"

#include <errno.h>
#include <poll.h>

#include <skv/check.h>

#define STRIKES 200u /* tries of 1 ms each, when the kernel has no room for a request */

struct pump {
	struct skv_uring_ring *r;
	struct skv_io_run *runs;
	uint32_t n;
	bool write;
	const struct skv_io_call *by;
	uint32_t run; /* where the next request is cut: run, position in it, buffer, bytes of it */
	uint64_t at;
	int iov;
	size_t skip;
	uint32_t n_free, n_ready, n_sent, n_flight; /* sent: in the ring, not yet the kernel's */
	uint32_t strikes;
	bool working; /* the caller has more work to do meanwhile */
};

static void free_slot(struct pump *p, uint32_t number)
{
	SKV_CHECK(p->n_free < p->r->depth);
	p->r->slots[number].cut = false;
	p->r->free[p->n_free++] = number;
}

static struct skv_uring_file *file_of(const struct pump *p, const struct skv_uring_slot *s)
{
	return (struct skv_uring_file *)p->runs[s->run].file;
}

static bool may_go_direct(const struct pump *p, const struct skv_uring_slot *s)
{
	struct skv_uring_file *f = file_of(p, s);

	if (f->direct < 0 || atomic_load_explicit(&f->refused, memory_order_relaxed) ||
	    (p->runs[s->run].offset + s->at) % f->align || s->length % f->align)
		return false;
	for (uint32_t i = 0; i < s->n_iov; i++)
		if ((uintptr_t)s->iov[i].iov_base % f->memory_align || s->iov[i].iov_len % f->align)
			return false;
	return true;
}

/* ---- from runs to requests ------------------------------------------------------------------- */

/* Takes buffers of the current run until the request is full. Neighbours in memory become one. */
static void fill_slot(struct pump *p, struct skv_uring_slot *s)
{
	const struct skv_io_run *run = &p->runs[p->run];
	const size_t most = p->write ? SKV_URING_WRITE : SKV_URING_READ;

	*s = (struct skv_uring_slot){ .run = p->run, .at = p->at, .cut = true, .room = s->room,
				      .iov = s->room };
	while (p->iov < run->n_iov && s->length < most) {
		const struct iovec *from = &run->iov[p->iov];
		char *base = (char *)from->iov_base + p->skip;
		size_t n = from->iov_len - p->skip;
		struct iovec *last = s->n_iov ? &s->iov[s->n_iov - 1] : NULL;

		if (n > most - s->length)
			n = most - s->length;
		if (last && (char *)last->iov_base + last->iov_len == base)
			last->iov_len += n;
		else if (s->n_iov < SKV_URING_IOV)
			s->iov[s->n_iov++] = (struct iovec){ base, n };
		else
			break;
		s->length += n;
		p->skip += n;
		if (p->skip == from->iov_len) {
			p->iov++;
			p->skip = 0;
		}
	}
	SKV_CHECK(s->length <= most && p->iov <= run->n_iov);
	p->at += s->length;
	s->direct = may_go_direct(p, s);
}

static bool cut(struct pump *p, struct skv_uring_slot *s)
{
	while (p->run < p->n) {
		struct skv_io_run *run = &p->runs[p->run];

		if (p->at < run->done) {
			fill_slot(p, s);
			if (s->length > 0)
				return true;
			/* fewer bytes in iov than stated */
			skv_run_stop(run, p->at, SKV_E_INTERNAL);
		}
		p->run++;
		p->at = 0;
		p->iov = 0;
		p->skip = 0;
	}
	return false;
}

/* Cuts nothing more; what has not been cut yet ends with `status`. */
static void cut_no_more(struct pump *p, int status)
{
	for (; p->run < p->n; p->run++) {
		skv_run_stop(&p->runs[p->run], p->at, status);
		p->at = 0;
	}
}

/* ---- submission ------------------------------------------------------------------------------ */

/* The place of the slot's one buffer in the ring's table, or -1. */
static int registered(const struct pump *p, const struct skv_uring_slot *s)
{
	const char *base = s->iov[0].iov_base;

	for (uint32_t i = 0; s->n_iov == 1 && i < p->r->n_view; i++) {
		const struct skv_uring_region *m = &p->r->view[i];

		if (m->base && base >= m->base && base < m->base + m->length &&
		    s->iov[0].iov_len <= (size_t)(m->base + m->length - base))
			return (int)i;
	}
	return -1;
}

static void prepare(struct pump *p, uint32_t number)
{
	struct skv_uring_slot *s = &p->r->slots[number];
	const struct skv_uring_file *f = file_of(p, s);
	struct io_uring_sqe *sqe = io_uring_get_sqe(&p->r->ring);
	bool fixed = p->r->fixed_files && f->index != SKV_URING_NONE;
	int fd = s->direct ? f->direct : f->base.fd, buffer = registered(p, s);
	uint64_t offset = p->runs[s->run].offset + s->at;
	unsigned int length = (unsigned int)s->length;
	void *base = s->iov[0].iov_base;

	if (!SKV_CHECK(sqe)) { /* the ring has an entry for each slot */
		skv_run_stop(&p->runs[s->run], s->at, SKV_E_INTERNAL);
		free_slot(p, number);
		return;
	}
	if (fixed)
		fd = (int)(2 * f->index + s->direct);
	if (buffer >= 0 && p->write)
		io_uring_prep_write_fixed(sqe, fd, base, length, offset, buffer);
	else if (buffer >= 0)
		io_uring_prep_read_fixed(sqe, fd, base, length, offset, buffer);
	else if (s->n_iov == 1 && p->write)
		io_uring_prep_write(sqe, fd, base, length, offset);
	else if (s->n_iov == 1)
		io_uring_prep_read(sqe, fd, base, length, offset);
	else if (p->write)
		io_uring_prep_writev(sqe, fd, s->iov, s->n_iov, offset);
	else
		io_uring_prep_readv(sqe, fd, s->iov, s->n_iov, offset);
	if (fixed)
		io_uring_sqe_set_flags(sqe, IOSQE_FIXED_FILE);
	io_uring_sqe_set_data64(sqe, number);
	SKV_CHECK(p->n_sent < p->r->depth && s->length > 0);
	p->r->sent[p->n_sent++] = number;
	p->n_flight++;
}

/* Removes the first requests, which the kernel has taken, and keeps the others in `sent`. */
static void forget_taken(struct pump *p)
{
	uint32_t left = io_uring_sq_ready(&p->r->ring);

	if (!SKV_CHECK(left <= p->n_sent))
		left = p->n_sent;
	for (uint32_t i = 0; i < left; i++)
		p->r->sent[i] = p->r->sent[p->n_sent - left + i];
	p->n_sent = left;
}

/* Ends everything that is not in the kernel's hands. */
static void give_up(struct pump *p, int status)
{
	cut_no_more(p, status);
	while (p->n_ready > 0) {
		uint32_t number = p->r->ready[--p->n_ready];

		skv_run_stop(&p->runs[p->r->slots[number].run], p->r->slots[number].at, status);
		free_slot(p, number);
	}
	if (p->n_sent == 0)
		return;
	/* The requests are in the submission queue: do not submit to this ring again. */
	p->r->broken = true;
	while (p->n_sent > 0) {
		const struct skv_uring_slot *s = &p->r->slots[p->r->sent[--p->n_sent]];

		skv_run_stop(&p->runs[s->run], s->at, status);
		p->n_flight--;
	}
}

/* Makes a system call that submits the prepared requests and waits for one completion, unless there
 * is work to do meanwhile. Returns false if the ring can no longer be submitted to. */
static bool enter(struct pump *p)
{
	struct io_uring_cqe *cqe;
	int rc;

	if (p->r->broken) {
		/* Requests that the kernel has taken are waited for in any case. */
		if (io_uring_wait_cqe(&p->r->ring, &cqe) < 0)
			poll(NULL, 0, 1);
		return true;
	}
	rc = io_uring_submit_and_wait(&p->r->ring, p->working ? 0 : 1);
	forget_taken(p);
	if (rc >= 0 || rc == -EINTR) {
		p->strikes = 0;
		return true;
	}
	if (rc != -EAGAIN && rc != -EBUSY && rc != -ENOMEM)
		return false;
	poll(NULL, 0, 1); /* completions arrive anyway, and free the kernel's resources */
	return ++p->strikes < STRIKES;
}

/* ---- completion ------------------------------------------------------------------------------ */

static void retry(struct pump *p, uint32_t number)
{
	const struct skv_uring_slot *s = &p->r->slots[number];

	SKV_CHECK(p->n_ready + p->n_flight < p->r->depth && p->n_free < p->r->depth);
	if (s->at < p->runs[s->run].done)
		p->r->ready[p->n_ready++] = number;
	else
		free_slot(p, number); /* the run stopped before this request */
}

static void advance(struct pump *p, struct skv_uring_slot *s, uint64_t n)
{
	SKV_CHECK(n <= s->length);
	s->at += n;
	s->length -= n;
	while (s->n_iov > 0 && n >= s->iov->iov_len) {
		n -= s->iov->iov_len;
		s->iov++;
		s->n_iov--;
	}
	if (n > 0) {
		s->iov->iov_base = (char *)s->iov->iov_base + n;
		s->iov->iov_len -= n;
	}
	s->direct = s->length > 0 && may_go_direct(p, s);
}

static void landed(struct pump *p, uint32_t number, int res)
{
	struct skv_uring_slot *s = &p->r->slots[number];
	struct skv_io_run *run = &p->runs[s->run];

	SKV_CHECK(p->n_flight > 0 && s->run < p->n);
	p->n_flight--;
	run->ended_ms = skv_now_ms(p->by->clock);
	if ((res == -EINTR || res == -EAGAIN) && ++s->again < STRIKES) {
		retry(p, number);
		return;
	}
	if ((res == -EINVAL || res == -EOPNOTSUPP) && s->direct) {
		/* The file opened with O_DIRECT, but direct I/O is refused. */
		atomic_store_explicit(&file_of(p, s)->refused, true, memory_order_relaxed);
		s->direct = false;
		retry(p, number);
		return;
	}
	if (res > 0 && (uint64_t)res <= s->length) {
		advance(p, s, (uint64_t)res);
		if (s->length > 0) {
			retry(p, number);
			return;
		}
	} else if (res == 0) {
		skv_run_stop(run, s->at, SKV_OK); /* the file ends here */
	} else {
		skv_run_stop(run, s->at, res < 0 ? skv_engine_status(-res) : SKV_E_INTERNAL);
	}
	free_slot(p, number);
}

/* Requests of a run are cut in order and complete in any: all bytes before the first request in
 * flight have arrived. */
static void note_arrived(struct pump *p, uint32_t number)
{
	struct skv_io_run *run = &p->runs[number];
	uint64_t at = p->run > number ? run->length : p->run == number ? p->at : 0;

	for (uint32_t i = 0; i < p->r->depth; i++)
		if (p->r->slots[i].cut && p->r->slots[i].run == number && p->r->slots[i].at < at)
			at = p->r->slots[i].at;
	if (at > run->done)
		at = run->done;
	if (at > run->arrived)
		run->arrived = at;
	SKV_CHECK(run->arrived <= run->length);
}

static void reap(struct pump *p)
{
	struct io_uring_cqe *cqe;

	while (p->n_flight > 0 && io_uring_peek_cqe(&p->r->ring, &cqe) == 0) {
		uint32_t number = (uint32_t)io_uring_cqe_get_data64(cqe);
		int res = cqe->res;

		io_uring_cqe_seen(&p->r->ring, cqe);
		if (!SKV_CHECK(number < p->r->depth))
			continue;
		landed(p, number, res);
		if (p->by->work && !p->write)
			note_arrived(p, p->r->slots[number].run);
	}
}

void skv_uring_pump(struct skv_uring_ring *r, bool write, struct skv_io_run *runs, uint32_t n,
		    const struct skv_io_call *by)
{
	struct pump p = { .r = r, .runs = runs, .n = n, .write = write, .by = by,
			  .working = by->work };

	for (uint32_t i = 0; i < n; i++)
		runs[i].done = runs[i].length;
	for (uint32_t i = 0; i < r->depth; i++)
		free_slot(&p, i);
	for (;;) {
		while (p.n_free > 0 && cut(&p, &r->slots[r->free[p.n_free - 1]]))
			r->ready[p.n_ready++] = r->free[--p.n_free];
		if (p.n_ready + p.n_sent > 0 && skv_deadline_passed(by))
			give_up(&p, SKV_E_TIMEOUT);
		if (r->broken)
			give_up(&p, SKV_E_IO);
		for (uint32_t i = 0; i < p.n_ready; i++)
			prepare(&p, r->ready[i]);
		p.n_ready = 0;
		if (p.n_flight == 0)
			break;
		if (!enter(&p)) {
			r->broken = true;
			give_up(&p, SKV_E_IO);
		}
		reap(&p);
		p.working = by->work && p.n_flight > 0 && by->work(by->ctx);
	}
	/* Every request is back, or was never the kernel's. */
	SKV_CHECK(p.run == p.n && p.n_ready == 0);
}
