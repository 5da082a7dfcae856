/*
 * rdma_qp.c - a queue pair: connects it with librdmacm, and ends it (see rdma.h).
 *
 * No state of its own. The device is the one through which the node's address is reached.
 */
#include "rdma_qp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include <skv/check.h>
#include <skv/clock.h>
#include <skv/mem.h>

#define WAIT_MS 1000  /* for each answer of rdma_cm */
#define DRAIN_MS 1000 /* for requests to be given back by a queue pair in state error */

/* ---- rdma_cm --------------------------------------------------------------------------------- */

/* The event that is waited for, to be acknowledged by the caller; NULL: another one, or none. */
static struct rdma_cm_event *await(struct skv_qp *q, enum rdma_cm_event_type wanted,
				   const char **what)
{
	struct pollfd p = { .fd = q->events->fd, .events = POLLIN };
	struct rdma_cm_event *e;

	*what = "no answer";
	if (poll(&p, 1, WAIT_MS) != 1 || q->lib->rdma_get_cm_event(q->events, &e) != 0)
		return NULL;
	if (e->event == wanted)
		return e;
	*what = q->lib->rdma_event_str(e->event);
	q->lib->rdma_ack_cm_event(e);
	return NULL;
}

static int reach(struct skv_qp *q, const struct skv_qp_to *to, struct skv_error *err)
{
	struct sockaddr_storage at = { 0 };
	const char *what = "no device";
	struct rdma_cm_event *e = NULL;

	if (to->address->sa_family == AF_INET6) {
		memcpy(&at, to->address, sizeof(struct sockaddr_in6));
		((struct sockaddr_in6 *)&at)->sin6_port = htons(to->port);
	} else {
		memcpy(&at, to->address, sizeof(struct sockaddr_in));
		((struct sockaddr_in *)&at)->sin_port = htons(to->port);
	}
	if (q->lib->rdma_resolve_addr(q->id, NULL, (struct sockaddr *)&at, WAIT_MS) == 0)
		e = await(q, RDMA_CM_EVENT_ADDR_RESOLVED, &what);
	if (e) {
		q->lib->rdma_ack_cm_event(e);
		e = NULL;
		if (q->lib->rdma_resolve_route(q->id, WAIT_MS) == 0)
			e = await(q, RDMA_CM_EVENT_ROUTE_RESOLVED, &what);
	}
	if (!e || !q->id->verbs)
		return skv_fail(err, SKV_E_UNSUPPORTED, NULL,
				"the node's address is not reached through an RDMA device of this "
				"host with a link (%s): name the node by an address of its RDMA "
				"network, and look at ibv_devinfo here",
				what);
	q->lib->rdma_ack_cm_event(e);
	return SKV_OK;
}

static int make(struct skv_qp *q, struct skv_error *err)
{
	const struct skv_rdma_device *d = q->device;
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
					 .cap = { d->depth, 1, d->sges, 1, 0 } };

	q->slots = aligned_alloc(4096, (size_t)SKV_QP_SLOT * SKV_QP_SLOTS);
	if (!q->slots)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	q->slots_mr = q->lib->ibv_reg_mr(d->pd, q->slots, (size_t)SKV_QP_SLOT * SKV_QP_SLOTS,
					 IBV_ACCESS_LOCAL_WRITE);
	if (!q->slots_mr)
		return skv_fail(err, SKV_E_UNSUPPORTED, NULL,
				"%u bytes cannot be registered on RDMA device %s (%s): raise the "
				"limit of locked memory (ulimit -l)",
				SKV_QP_SLOT * SKV_QP_SLOTS, skv_qp_device(q), strerror(errno));
	q->completions = q->lib->ibv_create_comp_channel(d->verbs);
	if (q->completions)
		q->cq = q->lib->ibv_create_cq(d->verbs, (int)d->depth, NULL, q->completions, 0);
	init.send_cq = init.recv_cq = q->cq;
	if (q->cq && q->lib->rdma_create_qp(q->id, d->pd, &init) == 0)
		return SKV_OK;
	return skv_fail(err, SKV_E_UNSUPPORTED, NULL, "no queue pair on RDMA device %s: %s",
			skv_qp_device(q), strerror(errno));
}

static int join(struct skv_qp *q, const struct skv_qp_to *to, struct skv_error *err)
{
	const struct skv_mn_rdma ask = { .epoch = to->epoch, .ticket = to->ticket };
	struct skv_mn_rdma answer = { 0 };
	uint8_t raw[SKV_MN_RDMA_BYTES];
	struct rdma_conn_param p = { .private_data = raw, .private_data_len = sizeof raw,
				     .initiator_depth = q->device->reads, .retry_count = 7,
				     .rnr_retry_count = 7 };
	struct rdma_cm_event *e = NULL;
	const char *what = "no memory";
	bool good;

	skv_mn_rdma_encode(&ask, raw);
	if (q->lib->rdma_connect(q->id, &p) == 0)
		e = await(q, RDMA_CM_EVENT_ESTABLISHED, &what);
	if (!e)
		return skv_fail(err, SKV_E_UNAVAILABLE, NULL,
				"the memory node's RDMA port does not take the connection (%s): "
				"its log says why, if it was asked",
				what);
	good = e->param.conn.private_data &&
	       skv_mn_rdma_decode(e->param.conn.private_data, e->param.conn.private_data_len,
				  &answer) &&
	       answer.epoch == to->epoch;
	q->lib->rdma_ack_cm_event(e);
	if (!good)
		return skv_fail(err, SKV_E_UNAVAILABLE, NULL,
				"what answers at the memory node's RDMA port is not that node: is "
				"there another one of that address?");
	q->theirs = answer.device;
	return SKV_OK;
}

/* ---- life ------------------------------------------------------------------------------------ */

static int begin(struct skv_qp *q, struct skv_error *err)
{
	q->events = q->lib->rdma_create_event_channel();
	if (q->events &&
	    fcntl(q->events->fd, F_SETFL, fcntl(q->events->fd, F_GETFL) | O_NONBLOCK) == 0 &&
	    q->lib->rdma_create_id(q->events, &q->id, NULL, RDMA_PS_TCP) == 0)
		return SKV_OK;
	return skv_fail(err, SKV_E_UNSUPPORTED, NULL,
			"rdma_cm cannot be used (%s): is an RDMA device there, and "
			"/dev/infiniband/rdma_cm (modprobe rdma_ucm)?",
			strerror(errno));
}

int skv_qp_connect(struct skv_rdma *r, const struct skv_qp_to *to, struct skv_qp **out,
		   struct skv_error *err)
{
	const struct skv_rdma_lib *lib;
	struct skv_qp *q;
	int rc = skv_rdma_load(&lib, err);

	SKV_CHECK(to->ticket != 0 && to->epoch != 0);
	if (rc != SKV_OK)
		return rc;
	q = skv_calloc(1, sizeof *q);
	if (!q)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	*q = (struct skv_qp){ .rdma = r, .lib = lib, .control_fd = to->control_fd };
	rc = begin(q, err);
	if (rc == SKV_OK)
		rc = reach(q, to, err);
	if (rc == SKV_OK) {
		q->device = skv_rdma_device_of(r, lib, q->id->verbs, err);
		rc = q->device ? make(q, err) : err->status;
	}
	if (rc == SKV_OK)
		rc = join(q, to, err);
	if (rc == SKV_OK)
		*out = q;
	else
		skv_qp_destroy(q);
	return rc;
}

/* In state error a queue pair gives all requests back, done or not. */
static void drain(struct skv_qp *q)
{
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	uint64_t end = skv_now_ms(&skv_clock_system) + DRAIN_MS;
	struct ibv_wc wc;

	q->lib->ibv_modify_qp(q->id->qp, &error, IBV_QP_STATE);
	while (q->completed < q->posted && skv_now_ms(&skv_clock_system) < end) {
		int n = ibv_poll_cq(q->cq, 1, &wc);

		if (n < 0)
			break;
		q->completed += (uint64_t)n;
	}
}

void skv_qp_destroy(struct skv_qp *q)
{
	if (!q)
		return;
	if (q->id && q->id->qp) {
		drain(q);
		q->lib->rdma_destroy_qp(q->id); /* now no buffer is touched any more */
	}
	if (q->cq)
		q->lib->ibv_destroy_cq(q->cq);
	if (q->completions)
		q->lib->ibv_destroy_comp_channel(q->completions);
	if (q->slots_mr)
		q->lib->ibv_dereg_mr(q->slots_mr);
	free(q->slots);
	if (q->id)
		q->lib->rdma_destroy_id(q->id);
	if (q->events)
		q->lib->rdma_destroy_event_channel(q->events);
	skv_free(q);
}

bool skv_qp_reaches(const struct skv_qp *q, const struct skv_mn_keys *k)
{
	return q->theirs < k->n;
}

const char *skv_qp_device(const struct skv_qp *q)
{
	return q->lib->ibv_get_device_name(q->device->verbs->device);
}
