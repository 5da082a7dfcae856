/*
 * rdma_pump.c - keeps a queue pair busy with the pieces of some runs (see rdma.h).
 *
 * Pieces are posted in order, as many as fit with one doorbell, and complete in order. Registered
 * buffers are used directly; others are copied through the queue pair's own slots. The thread polls
 * for completions, and after a while waits for them. Nothing is posted after the deadline. No state
 * of its own; the thread of the call.
 */
#include "rdma_qp.h"

#include <poll.h>

#include <skv/check.h>
#include <skv/log.h>

#define POLL_US 50  /* before events are waited for */
#define LOOK_MS 100 /* between two looks at the deadline */
#define STILL_US 60000000u /* nothing completes: longer than a device tries */
#define SOME 16     /* completions taken at a time */

struct pump {
	struct skv_qp *q;
	bool write;
	struct skv_io_run *runs;
	uint32_t n;
	skv_qp_keys *keys;
	const struct skv_io_call *by;
	/* The position to post next: */
	uint32_t run;
	int iov;
	size_t offset; /* in that buffer */
	uint64_t at;   /* in the run */
};

/* ---- pieces ---------------------------------------------------------------------------------- */

/* The next bytes that lie together in memory, `most` of them; 0: the run has no more. */
static size_t look(struct pump *p, size_t most, void **data)
{
	const struct skv_io_run *r = &p->runs[p->run];

	while (p->iov < r->n_iov && p->offset == r->iov[p->iov].iov_len) {
		p->iov++;
		p->offset = 0;
	}
	if (p->iov == r->n_iov)
		return 0;
	*data = (char *)r->iov[p->iov].iov_base + p->offset;
	return r->iov[p->iov].iov_len - p->offset < most ? r->iov[p->iov].iov_len - p->offset
							 : most;
}

static void pass(struct pump *p, size_t n)
{
	p->offset += n;
	p->at += n;
}

/* As much as one request can name of registered buffers; 0: the next is none. */
static uint32_t take_registered(struct pump *p, struct ibv_sge *sge, int *n_sge)
{
	const struct skv_rdma_device *d = p->q->device;
	uint32_t length = 0, lkey = 0;
	void *data = NULL;

	for (*n_sge = 0; *n_sge < (int)d->sges; (*n_sge)++) {
		size_t n = look(p, SKV_QP_PIECE - length, &data);

		if (n == 0 || !skv_rdma_key(p->q->rdma, d, data, n, &lkey))
			break;
		sge[*n_sge] = (struct ibv_sge){ (uintptr_t)data, (uint32_t)n, lkey };
		length += (uint32_t)n;
		pass(p, n);
	}
	return length;
}

static uint8_t *slot_at(const struct skv_qp *q, int slot)
{
	return q->slots + (size_t)slot * SKV_QP_SLOT;
}

/* As much as fits into a slot, up to the next registered buffer. */
static uint32_t take_slot(struct pump *p, struct skv_qp_piece *piece, struct ibv_sge *sge)
{
	struct skv_qp *q = p->q;
	uint32_t length = 0, lkey;
	void *data = NULL;

	piece->slot = (int)(q->next_slot++ % SKV_QP_SLOTS);
	q->slots_used++;
	while (length < SKV_QP_SLOT) {
		size_t n = look(p, SKV_QP_SLOT - length, &data);

		if (n == 0 || (length > 0 && skv_rdma_key(q->rdma, q->device, data, n, &lkey)))
			break;
		length += (uint32_t)n;
		pass(p, n);
	}
	if (p->write)
		skv_run_copy(&p->runs[piece->run], piece->at, slot_at(q, piece->slot), length,
			     false);
	*sge = (struct ibv_sge){ (uintptr_t)slot_at(q, piece->slot), length, q->slots_mr->lkey };
	return length;
}

/* Returns false if there is no piece now, for lack of bytes or room. */
static bool next_piece(struct pump *p, struct skv_qp_piece *piece, struct ibv_send_wr *wr,
		       struct ibv_sge *sge)
{
	const struct skv_mn_keys *k;
	void *data;
	uint64_t at;

	while (p->run < p->n && look(p, 1, &data) == 0) {
		p->run++;
		p->iov = 0;
		p->offset = 0;
		p->at = 0;
	}
	if (p->run == p->n)
		return false;
	k = p->keys(&p->runs[p->run]);
	at = p->at;
	SKV_CHECK(p->q->theirs < k->n);
	*piece = (struct skv_qp_piece){ .run = p->run, .slot = -1, .at = at };
	*wr = (struct ibv_send_wr){ .sg_list = sge,
				    .opcode = p->write ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ };
	wr->wr.rdma.remote_addr = k->address + p->runs[p->run].offset + at;
	wr->wr.rdma.rkey = k->rkey[p->q->theirs];
	piece->length = take_registered(p, sge, &wr->num_sge);
	if (piece->length == 0) {
		if (p->q->slots_used == SKV_QP_SLOTS)
			return false;
		wr->num_sge = 1;
		piece->length = take_slot(p, piece, sge);
	}
	SKV_CHECK(piece->length > 0);
	return true;
}

/* Posts as many pieces as fit. SKV_E_TIMEOUT: pieces are left, and the deadline has passed. */
static int post(struct pump *p)
{
	struct skv_qp *q = p->q;
	struct ibv_send_wr wr[SKV_QP_DEPTH], *bad;
	struct ibv_sge sge[SKV_QP_DEPTH][SKV_QP_SGES];
	uint32_t n = 0;

	SKV_CHECK(q->posted - q->completed <= q->device->depth);
	while (q->posted + n - q->completed < q->device->depth &&
	       next_piece(p, &q->piece[(q->posted + n) % SKV_QP_DEPTH], &wr[n], sge[n])) {
		wr[n].wr_id = q->posted + n;
		if (n > 0)
			wr[n - 1].next = &wr[n];
		n++;
	}
	if (n == 0)
		return SKV_OK;
	if (skv_deadline_passed(p->by))
		return SKV_E_TIMEOUT;
	for (uint32_t i = 0; i < n; i++)
		p->runs[q->piece[(q->posted + i) % SKV_QP_DEPTH].run].touched = true;
	if (ibv_post_send(q->id->qp, wr, &bad) != 0)
		return SKV_E_NETWORK;
	q->posted += n;
	return SKV_OK;
}

/* ---- completions ----------------------------------------------------------------------------- */

static int failed(const struct skv_qp *q, const struct ibv_wc *wc)
{
	if (wc->status == IBV_WC_REM_ACCESS_ERR)
		return SKV_E_UNAVAILABLE; /* the slab is gone */
	skv_log(SKV_LOG_WARN, "client", "RDMA over %s failed: %s%s", skv_qp_device(q),
		q->lib->ibv_wc_status_str(wc->status),
		wc->status == IBV_WC_RETRY_EXC_ERR
			? ": is the link up at both ends, with the same MTU (ibv_devinfo)?"
			: "");
	return SKV_E_NETWORK;
}

static void complete(struct pump *p, const struct ibv_wc *wc)
{
	struct skv_qp *q = p->q;
	const struct skv_qp_piece *piece = &q->piece[q->completed % SKV_QP_DEPTH];
	struct skv_io_run *r = &p->runs[piece->run];

	SKV_CHECK(wc->wr_id == q->completed && q->completed < q->posted);
	if (piece->slot >= 0) {
		if (!p->write)
			skv_run_copy(r, piece->at, slot_at(q, piece->slot), piece->length, true);
		q->slots_used--;
	}
	q->completed++;
	r->ios++;
	r->done += piece->length;
	if (!p->write)
		r->arrived = r->done;
	if (r->done == r->length)
		r->ended_ms = skv_now_ms(p->by->clock);
}

/* How many completed, or an error. */
static int reap(struct pump *p)
{
	struct ibv_wc wc[SOME];
	int n = ibv_poll_cq(p->q->cq, SOME, wc);

	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS)
			return failed(p->q, &wc[i]);
		complete(p, &wc[i]);
	}
	return n < 0 ? SKV_E_NETWORK : n;
}

/* Until something completes, the node is gone, or it is time to look at the clock. */
static int sleep_a_little(struct pump *p)
{
	struct skv_qp *q = p->q;
	struct pollfd fd[2] = { { .fd = q->completions->fd, .events = POLLIN },
				{ .fd = q->control_fd, .events = POLLIN | POLLRDHUP } };
	struct ibv_cq *cq;
	void *context;
	int n;

	if (ibv_req_notify_cq(q->cq, 0) != 0)
		return SKV_E_NETWORK;
	n = reap(p); /* completions from before the notification was requested */
	if (n != 0)
		return n;
	poll(fd, 2, LOOK_MS);
	if (fd[0].revents & POLLIN) {
		if (q->lib->ibv_get_cq_event(q->completions, &cq, &context) != 0)
			return SKV_E_NETWORK;
		q->lib->ibv_ack_cq_events(cq, 1);
	}
	return fd[1].revents ? SKV_E_NETWORK : SKV_OK; /* nothing is expected from there */
}

/* A step towards the end of what is on its way. */
static int wait(struct pump *p, uint64_t *idle_us)
{
	int n = reap(p);

	if (n != 0) {
		*idle_us = 0;
		return n < 0 ? n : SKV_OK;
	}
	if (p->by->at_ms != UINT64_MAX && skv_deadline_passed(p->by))
		return SKV_E_TIMEOUT;
	if (p->by->work && p->by->work(p->by->ctx))
		return SKV_OK;
	if (*idle_us == 0)
		*idle_us = skv_now_us();
	if (skv_now_us() - *idle_us < POLL_US)
		return SKV_OK;
	if (skv_now_us() - *idle_us > STILL_US)
		return SKV_E_NETWORK;
	n = sleep_a_little(p);
	if (n > 0)
		*idle_us = 0;
	return n < 0 ? n : SKV_OK;
}

int skv_qp_move(struct skv_qp *q, bool write, struct skv_io_run *runs, uint32_t n,
		skv_qp_keys *keys, const struct skv_io_call *by)
{
	struct pump p = { .q = q, .write = write, .runs = runs, .n = n, .keys = keys, .by = by };
	uint64_t idle_us = 0;
	int rc;

	SKV_CHECK(q->posted == q->completed && q->slots_used == 0);
	do {
		rc = post(&p);
		if (rc == SKV_OK && q->completed < q->posted)
			rc = wait(&p, &idle_us);
	} while (rc == SKV_OK && (p.run < n || q->completed < q->posted));
	return rc;
}
