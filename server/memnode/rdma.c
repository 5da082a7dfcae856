/*
 * rdma.c - RDMA of a memory node: its devices, the slabs' registrations, a queue pair beside each
 * TCP connection that asks for one (decision 0047).
 *
 * Owns a protection domain and a completion queue for each device, and a thread that answers
 * rdma_cm. The node posts nothing: clients read and write, and its CPU has no part in that. A
 * connection request names a ticket, which the TCP connection drew; so the queue pair is of a
 * client whose token is known, allows what its role allows from its first state on, and ends with
 * the TCP connection, before a writer there counts as ended.
 *
 * Lock: rdma.lock protects tickets and queue pairs of all connections; before conn_lock. It is held
 * while a request is accepted, which waits for nobody.
 */
#include "memnode.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <skv/hash.h>
#include <skv/log.h>
#include <skv/mem.h>

#define BACKLOG 128
/* Addresses of slabs are 64 GiB apart: an rkey that is given again names nothing at an old one. */
#define ADDRESS_SHIFT 36

struct device {
	struct ibv_context *verbs; /* librdmacm's: its connections have the same */
	struct ibv_pd *pd;
	struct ibv_cq *cq; /* nothing completes here */
	uint8_t reads;     /* outstanding at a time for one queue pair */
};

struct rdma {
	struct skv_mutex lock;
	struct device dev[SKV_MN_DEVICES];
	struct skv_mn_device told[SKV_MN_DEVICES];
	uint32_t n;
	uint64_t epoch;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listening;
	int stop_fd;
	pthread_t thread;
	bool running;
};

/* ---- devices --------------------------------------------------------------------------------- */

static bool is_named(const char *list, const char *name)
{
	size_t n = strlen(name);

	for (const char *at = list; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (strncmp(at, name, n) == 0 && (at[n] == ',' || at[n] == '\0'))
			return true;
	}
	return false;
}

static bool has_link(struct ibv_context *verbs)
{
	struct ibv_device_attr a;
	struct ibv_port_attr p;

	if (ibv_query_device(verbs, &a) != 0)
		return false;
	for (unsigned i = 1; i <= a.phys_port_cnt; i++)
		if (ibv_query_port(verbs, (uint8_t)i, &p) == 0 && p.state == IBV_PORT_ACTIVE)
			return true;
	return false;
}

static int add_device(struct rdma *r, struct ibv_context *verbs, struct skv_error *err)
{
	const char *name = ibv_get_device_name(verbs->device);
	struct skv_mn_device *told = &r->told[r->n];
	struct device *d = &r->dev[r->n];
	struct ibv_device_attr a;
	union ibv_gid gid;

	assert(r->n < SKV_MN_DEVICES);
	*d = (struct device){ .verbs = verbs };
	if (ibv_query_device(verbs, &a) == 0)
		d->reads = (uint8_t)(a.max_qp_rd_atom < 16 ? a.max_qp_rd_atom : 16);
	d->pd = ibv_alloc_pd(verbs);
	d->cq = d->pd ? ibv_create_cq(verbs, 1, NULL, NULL, 0) : NULL;
	r->n++; /* given back with the others */
	if (!d->cq)
		return skv_fail(err, SKV_E_IO, "memory_rdma",
				"RDMA device %s cannot be used: %s; may this process open "
				"/dev/infiniband? --memory-rdma off does without", name,
				strerror(errno));
	snprintf(told->name, sizeof told->name, "%s", name);
	if (ibv_query_gid(verbs, 1, 0, &gid) == 0)
		inet_ntop(AF_INET6, gid.raw, told->gid, sizeof told->gid);
	return SKV_OK;
}

/* Every name in the list is a device's? */
static int check_names(struct ibv_context *const *all, int n, const char *list,
		       struct skv_error *err)
{
	for (const char *at = list; *at;) {
		int length = (int)strcspn(at, ",");
		bool there = false;

		for (int i = 0; i < n && !there; i++) {
			const char *name = ibv_get_device_name(all[i]->device);

			there = strlen(name) == (size_t)length &&
				memcmp(name, at, (size_t)length) == 0;
		}
		if (!there)
			return skv_fail(err, SKV_E_INVALID, "memory_rdma",
					"memory_rdma: this host has no RDMA device '%.*s': "
					"ibv_devices lists them; --memory-rdma auto takes what is "
					"there",
					length < 64 ? length : 64, at);
		at += length;
		at += *at == ',';
	}
	return SKV_OK;
}

static int take_devices(struct rdma *r, const char *wanted, struct skv_error *err)
{
	const bool any = strcmp(wanted, "auto") == 0;
	int n = 0, rc = SKV_OK;
	struct ibv_context **all = rdma_get_devices(&n);

	if (!any)
		rc = check_names(all, all ? n : 0, wanted, err);
	for (int i = 0; all && i < n && rc == SKV_OK && r->n < SKV_MN_DEVICES; i++) {
		const char *name = ibv_get_device_name(all[i]->device);

		if (!(any || is_named(wanted, name)) ||
		    all[i]->device->node_type != IBV_NODE_CA)
			continue;
		if (has_link(all[i]))
			rc = add_device(r, all[i], err);
		else if (any)
			skv_log(SKV_LOG_WARN, "memory",
				"RDMA device %s has no link, and is not used", name);
		else
			rc = skv_fail(err, SKV_E_INVALID, "memory_rdma",
				      "memory_rdma: device %s has no link: bring it up (ip link, "
				      "ibv_devinfo shows PORT_ACTIVE then), or leave it out",
				      name);
	}
	if (all)
		rdma_free_devices(all);
	return rc;
}

int mem_rdma_create(const char *wanted, uint64_t epoch, struct rdma **out, struct skv_error *err)
{
	struct rdma *r;
	int rc;

	assert(epoch != 0);
	*out = NULL;
	if (strcmp(wanted, "off") == 0)
		return SKV_OK;
	r = skv_calloc(1, sizeof *r);
	if (!r)
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	skv_mutex_init(&r->lock);
	r->stop_fd = -1;
	r->epoch = epoch;
	rc = take_devices(r, wanted, err);
	if (rc == SKV_OK && r->n > 0)
		*out = r;
	else
		mem_rdma_destroy(r);
	return rc;
}

void mem_rdma_destroy(struct rdma *r)
{
	if (!r)
		return;
	assert(!r->running);
	if (r->listening)
		rdma_destroy_id(r->listening);
	if (r->channel)
		rdma_destroy_event_channel(r->channel);
	for (uint32_t i = 0; i < r->n; i++) {
		if (r->dev[i].cq)
			ibv_destroy_cq(r->dev[i].cq);
		if (r->dev[i].pd && ibv_dealloc_pd(r->dev[i].pd) != 0)
			skv_log(SKV_LOG_ERROR, "memory", "something is left registered on %s",
				r->told[i].name);
	}
	if (r->stop_fd >= 0)
		close(r->stop_fd);
	skv_mutex_destroy(&r->lock);
	skv_free(r);
}

const struct skv_mn_device *mem_rdma_devices(const struct rdma *r, uint32_t *n)
{
	*n = r ? r->n : 0;
	return r ? r->told : NULL;
}

/* ---- slabs ----------------------------------------------------------------------------------- */

int mem_rdma_register(const struct rdma *r, struct slab *b, struct skv_error *err)
{
	const int may = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;

	b->keys.address = (uint64_t)b->file << ADDRESS_SHIFT;
	for (uint32_t i = 0; r && i < r->n; i++) {
		b->mr[i] = ibv_reg_mr_iova(r->dev[i].pd, b->base, b->mapped, b->keys.address, may);
		if (!b->mr[i])
			return skv_fail(err, SKV_E_NO_SPACE, "memory_rdma",
					"a slab of %llu bytes cannot be registered on RDMA device "
					"%s (%s): raise the limit of locked memory (ulimit -l, "
					"LimitMEMLOCK=), or start with --memory-rdma off",
					(unsigned long long)b->mapped, r->told[i].name,
					strerror(errno));
		b->keys.rkey[i] = b->mr[i]->rkey;
		b->keys.n = i + 1;
	}
	return SKV_OK;
}

void mem_rdma_unregister(struct slab *b)
{
	for (uint32_t i = 0; i < SKV_MN_DEVICES; i++)
		if (b->mr[i] && ibv_dereg_mr(b->mr[i]) != 0)
			skv_log(SKV_LOG_ERROR, "memory", "slab %u stays registered", b->file);
	b->keys.n = 0;
}

/* ---- queue pairs ----------------------------------------------------------------------------- */

static bool to_state(struct rdma_cm_id *id, struct ibv_qp *qp, enum ibv_qp_state state,
		     unsigned access, uint8_t reads)
{
	struct ibv_qp_attr a = { .qp_state = state };
	int mask = 0;

	if (rdma_init_qp_attr(id, &a, &mask) != 0)
		return false;
	a.qp_state = state;
	if (state == IBV_QPS_INIT) {
		a.qp_access_flags = access;
		mask |= IBV_QP_ACCESS_FLAGS;
	} else if (state == IBV_QPS_RTR) {
		a.max_dest_rd_atomic = reads;
	} else {
		a.max_rd_atomic = 1; /* unused: the node reads nothing */
	}
	return ibv_modify_qp(qp, &a, mask) == 0;
}

/* Not rdma_create_qp: until the last step of that, every connection may write. */
static struct ibv_qp *make_qp(const struct device *d, struct rdma_cm_id *id, bool write,
			      uint8_t reads)
{
	struct ibv_qp_init_attr init = { .send_cq = d->cq, .recv_cq = d->cq, .qp_type = IBV_QPT_RC,
					 .cap = { 1, 1, 1, 1, 0 } };
	const unsigned may = IBV_ACCESS_REMOTE_READ | (write ? IBV_ACCESS_REMOTE_WRITE : 0);
	struct ibv_qp *qp = ibv_create_qp(d->pd, &init);

	if (qp && to_state(id, qp, IBV_QPS_INIT, may, reads) &&
	    to_state(id, qp, IBV_QPS_RTR, may, reads) && to_state(id, qp, IBV_QPS_RTS, may, reads))
		return qp;
	if (qp)
		ibv_destroy_qp(qp);
	return NULL;
}

/* After it no request of the client is carried out any more: the device answers none. What cannot
 * be ended here may still write, and its slots are about to be given away: the kernel ends it with
 * the process, and the next start is a new epoch. */
static void end_qp(struct rdma_cm_id *id, struct ibv_qp *qp)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_ERR };
	bool ended = ibv_modify_qp(qp, &a, IBV_QP_STATE) == 0;

	ended |= ibv_destroy_qp(qp) == 0;
	if (!ended) {
		skv_log(SKV_LOG_ERROR, "memory",
			"a queue pair cannot be destroyed (%s): this node ends, start it anew",
			strerror(errno));
		abort();
	}
	rdma_destroy_id(id);
}

/* Returns the connection that drew this ticket, or NULL, and uses up the ticket. */
static struct connection *redeem_locked(struct memnode *m, uint64_t ticket)
	SKV_REQUIRES(m->rdma->lock)
{
	struct connection *c;

	assert(skv_mutex_held(&m->rdma->lock));
	skv_mutex_lock(&m->conn_lock);
	for (c = m->conns; c && (ticket == 0 || c->ticket != ticket); c = c->next)
		;
	skv_mutex_unlock(&m->conn_lock);
	if (c)
		c->ticket = 0;
	return c;
}

/* Why not, or NULL: accepted. */
static const char *accept_locked(struct memnode *m, struct rdma_cm_id *id,
				 const struct skv_mn_rdma *q, struct rdma_conn_param *p)
	SKV_REQUIRES(m->rdma->lock)
{
	struct skv_mn_rdma yes = { .epoch = m->epoch };
	uint8_t raw[SKV_MN_RDMA_BYTES];
	struct rdma *r = m->rdma;
	const struct device *d;
	struct connection *c;

	while (yes.device < r->n && r->dev[yes.device].verbs != id->verbs)
		yes.device++;
	if (yes.device == r->n)
		return "it came over a device that this node does not use";
	if (q->epoch != m->epoch)
		return "it is for another start of a node";
	c = redeem_locked(m, q->ticket);
	if (!c)
		return "nobody has its ticket";
	d = &r->dev[yes.device];
	if (p->responder_resources > d->reads)
		p->responder_resources = d->reads;
	c->qp = make_qp(d, id, c->role >= ROLE_WRITE, p->responder_resources);
	if (!c->qp)
		return "no queue pair is left, or no memory";
	c->id = id;
	skv_mn_rdma_encode(&yes, raw);
	*p = (struct rdma_conn_param){ .private_data = raw, .private_data_len = sizeof raw,
				       .responder_resources = p->responder_resources,
				       .initiator_depth = 1, .rnr_retry_count = 7,
				       .qp_num = c->qp->qp_num };
	if (rdma_accept(id, p) == 0) {
		m->n_qps++;
		return NULL;
	}
	ibv_destroy_qp(c->qp);
	c->qp = NULL;
	c->id = NULL;
	return strerror(errno);
}

static void take_request(struct memnode *m, struct rdma_cm_event *e)
{
	struct rdma_conn_param p = e->param.conn;
	struct rdma_cm_id *id = e->id;
	struct skv_mn_rdma q;
	bool good = p.private_data &&
		    skv_mn_rdma_decode(p.private_data, p.private_data_len, &q);
	const char *why = "it is not one of a client";

	rdma_ack_cm_event(e);
	if (good) {
		skv_mutex_lock(&m->rdma->lock);
		why = accept_locked(m, id, &q, &p);
		skv_mutex_unlock(&m->rdma->lock);
	}
	if (!why)
		return;
	skv_log(SKV_LOG_WARN, "memory", "an RDMA connection was refused: %s", why);
	rdma_reject(id, NULL, 0);
	rdma_destroy_id(id);
}

uint64_t mem_rdma_ticket(struct connection *c)
{
	struct rdma *r = c->node->rdma;
	uint64_t ticket = 0;

	skv_mutex_lock(&r->lock);
	while (!c->qp && ticket == 0)
		skv_random(&ticket, sizeof ticket);
	c->ticket = ticket;
	skv_mutex_unlock(&r->lock);
	return ticket;
}

void mem_rdma_end(struct connection *c)
{
	struct rdma *r = c->node->rdma;
	struct rdma_cm_id *id;
	struct ibv_qp *qp;

	if (!r)
		return;
	skv_mutex_lock(&r->lock);
	c->ticket = 0;
	id = c->id;
	qp = c->qp;
	c->id = NULL;
	c->qp = NULL;
	if (qp)
		c->node->n_qps--;
	skv_mutex_unlock(&r->lock);
	if (qp)
		end_qp(id, qp);
}

uint32_t mem_rdma_count(struct memnode *m)
{
	uint32_t n;

	if (!m->rdma)
		return 0;
	skv_mutex_lock(&m->rdma->lock);
	n = m->n_qps;
	skv_mutex_unlock(&m->rdma->lock);
	return n;
}

/* ---- rdma_cm --------------------------------------------------------------------------------- */

static void *answer_requests(void *arg)
{
	struct memnode *m = arg;
	struct rdma *r = m->rdma;
	struct pollfd p[2] = { { .fd = r->stop_fd, .events = POLLIN },
			       { .fd = r->channel->fd, .events = POLLIN } };
	struct rdma_cm_event *e;

	while (!(p[0].revents & POLLIN)) {
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			break;
		if (!p[1].revents || rdma_get_cm_event(r->channel, &e) != 0)
			continue;
		if (e->event == RDMA_CM_EVENT_CONNECT_REQUEST)
			take_request(m, e);
		else
			rdma_ack_cm_event(e); /* a connection lives as long as its TCP one */
	}
	return NULL;
}

int mem_rdma_bind(struct memnode *m, struct skv_error *err)
{
	struct rdma *r = m->rdma;
	struct sockaddr_storage at;
	socklen_t n = sizeof at;

	if (!r)
		return SKV_OK;
	/* The address of the TCP port, and any port: it is another space of numbers. */
	if (getsockname(m->tcp_fd, (struct sockaddr *)&at, &n) != 0)
		return skv_fail(err, SKV_E_IO, NULL, "getsockname: %s", strerror(errno));
	if (at.ss_family == AF_INET6)
		((struct sockaddr_in6 *)&at)->sin6_port = 0;
	else
		((struct sockaddr_in *)&at)->sin_port = 0;
	r->stop_fd = eventfd(0, EFD_CLOEXEC);
	r->channel = rdma_create_event_channel();
	if (r->stop_fd < 0 || !r->channel ||
	    fcntl(r->channel->fd, F_SETFL, fcntl(r->channel->fd, F_GETFL) | O_NONBLOCK) != 0 ||
	    rdma_create_id(r->channel, &r->listening, NULL, RDMA_PS_TCP) != 0 ||
	    rdma_bind_addr(r->listening, (struct sockaddr *)&at) != 0 ||
	    rdma_listen(r->listening, BACKLOG) != 0)
		return skv_fail(err, SKV_E_IO, "memory_rdma",
				"rdma_cm cannot listen (%s): is /dev/infiniband/rdma_cm there "
				"(modprobe rdma_ucm)? --memory-rdma off does without",
				strerror(errno));
	m->rdma_port = ntohs(rdma_get_src_port(r->listening));
	return SKV_OK;
}

int mem_rdma_start(struct memnode *m, struct skv_error *err)
{
	struct rdma *r = m->rdma;

	if (!r)
		return SKV_OK;
	if (pthread_create(&r->thread, NULL, answer_requests, m) != 0)
		return skv_fail(err, SKV_E_NOMEM, NULL, "cannot start the thread of rdma_cm");
	r->running = true;
	return SKV_OK;
}

void mem_rdma_stop(struct memnode *m)
{
	const uint64_t one = 1;
	struct rdma *r = m->rdma;

	if (!r || !r->running)
		return;
	if (write(r->stop_fd, &one, sizeof one) != sizeof one)
		skv_log(SKV_LOG_ERROR, "memory", "cannot stop the thread of rdma_cm");
	pthread_join(r->thread, NULL);
	r->running = false;
}
