/*
 * node_io.c - the engine "memory": bytes of slabs in a memory node's memory.
 *
 * On the node's host a file is a mapping of the slab, and bytes are copied; elsewhere each call
 * takes a connection, and moves them with its queue pair, if it has one, else in frames, straight
 * from and to the caller's buffers. Either way a writer announces itself with BEGIN and checks its
 * deadline after the answer: a node permits reuse of its slots only when no earlier write is open
 * (decision 0040). A write that is not known to have ended is `in_flight`, and the session ends
 * without `quiesced`.
 *
 * Mappings of removed slabs, and of nodes that are gone, are detected at the next use of the file.
 */
#include "node.h"
#include "rdma.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <skv/check.h>
#include <skv/mem.h>
#include <skv/superblock.h>

#define MOST_FDS 4u /* received, to be closed; the kernel closes more */
#define STEP (1u << 20) /* copied between two looks at the deadline */

struct slab {
	struct skv_engine_file file; /* first */
	struct skv_node *node;
	uint32_t number;
	uint64_t length;
	uint8_t superblock[SKV_SUPERBLOCK_SIZE];
	uint8_t *base; /* mapped; NULL: over TCP */
	uint64_t mapped;
	struct skv_mn_keys keys; /* for RDMA; n = 0: none */
};

static struct slab *slab_of(struct skv_engine_file *f) { return (struct slab *)(void *)f; }
static struct skv_node *node_of(struct skv_engine *e) { return (struct skv_node *)(void *)e; }

/* ---- files ----------------------------------------------------------------------------------- */

/* Keeps the only received descriptor; closes several. */
static int take_only_fd(struct msghdr *msg)
{
	int fd;

	for (struct cmsghdr *h = CMSG_FIRSTHDR(msg); h; h = CMSG_NXTHDR(msg, h)) {
		size_t n = (h->cmsg_len - CMSG_LEN(0)) / sizeof fd;

		if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n; i++) {
			memcpy(&fd, CMSG_DATA(h) + i * sizeof fd, sizeof fd);
			if (n == 1)
				return fd;
			close(fd);
		}
	}
	return -1;
}

/* Receives an answer's header; *fd is the received descriptor, or -1. */
static bool receive_with_fd(struct skv_node_conn *c, uint8_t raw[SKV_MN_HEADER], int *fd)
{
	_Alignas(struct cmsghdr) char room[CMSG_SPACE(MOST_FDS * sizeof(int))];
	struct iovec iov = { raw, SKV_MN_HEADER };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = room,
			      .msg_controllen = sizeof room };
	struct iovec rest;
	ssize_t n;

	*fd = -1;
	if (c->tls) {
		rest = (struct iovec){ raw, SKV_MN_HEADER };
		return skv_node_receive(c, &rest, 1, NULL, NULL);
	}
	do
		n = recvmsg(c->fd, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return false;
	*fd = take_only_fd(&msg);
	rest = (struct iovec){ raw + n, SKV_MN_HEADER - (size_t)n };
	return rest.iov_len == 0 || skv_node_receive(c, &rest, 1, NULL, NULL);
}

static int map_slab(struct slab *s, bool write, struct skv_error *err)
{
	const int sealed = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	struct stat st;
	int seals;

	if (s->file.fd < 0)
		return skv_fail(err, SKV_E_NETWORK, NULL,
				"the memory node gave no descriptor for slab %u", s->number);
	/* Without the seals a shorter file would be a SIGBUS later. */
	seals = fcntl(s->file.fd, F_GET_SEALS);
	if (seals < 0 || (seals & sealed) != sealed || fstat(s->file.fd, &st) != 0 ||
	    (uint64_t)st.st_size != s->mapped)
		return skv_fail(err, SKV_E_FOREIGN, NULL,
				"the memory node gave something else than slab %u", s->number);
	s->base = mmap(NULL, s->mapped, PROT_READ | (write ? PROT_WRITE : 0),
		       MAP_SHARED | MAP_POPULATE, s->file.fd, 0);
	if (s->base != MAP_FAILED)
		return SKV_OK;
	s->base = NULL;
	return skv_fail(err, SKV_E_NOMEM, NULL, "slab %u cannot be mapped: %s", s->number,
			strerror(errno));
}

static int ask_for_slab(struct skv_node_conn *c, struct slab *s, bool write, bool *good,
			struct skv_error *err)
{
	const struct skv_mn_frame q = { .op = SKV_MN_OPEN, .file = s->number,
					.flags = (write ? SKV_MN_FLAG_WRITE : 0) |
						 (s->node->rdma_port ? SKV_MN_FLAG_RDMA : 0) };
	uint8_t keys[SKV_MN_KEYS_BYTES(SKV_MN_DEVICES)];
	uint8_t raw[SKV_MN_HEADER];
	struct iovec out = { raw, sizeof raw }, in = { s->superblock, sizeof s->superblock };
	struct iovec more = { keys, 0 };
	struct skv_mn_frame answer;
	int rc;

	skv_mn_encode(&q, raw);
	if (!skv_node_send(c, &out, 1, NULL, NULL) || !receive_with_fd(c, raw, &s->file.fd) ||
	    !skv_mn_decode(raw, &answer) || answer.op != SKV_MN_OPEN)
		return skv_fail(err, SKV_E_UNAVAILABLE, NULL, "memory node %s does not answer",
				s->node->name);
	if (answer.status != SKV_OK) {
		rc = skv_node_refused(c, &answer, err);
		*good = rc != SKV_E_NETWORK;
		return rc;
	}
	more.iov_len = answer.extra - sizeof s->superblock;
	if (answer.extra < sizeof s->superblock || more.iov_len > sizeof keys ||
	    answer.offset < answer.length || !skv_node_receive(c, &in, 1, NULL, NULL) ||
	    (more.iov_len > 0 && (!skv_node_receive(c, &more, 1, NULL, NULL) ||
				  !skv_mn_keys_decode(keys, answer.extra - sizeof s->superblock,
						      &s->keys))))
		return skv_fail(err, SKV_E_NETWORK, NULL, "not a memory node's answer");
	*good = true;
	s->length = answer.length;
	s->mapped = answer.offset;
	return SKV_OK;
}

static void close_file(struct skv_engine *e, struct skv_engine_file *f)
{
	struct slab *s = slab_of(f);

	SKV_CHECK(node_of(e) == s->node);
	if (s->base)
		munmap(s->base, s->mapped);
	if (f->fd >= 0)
		close(f->fd);
	skv_node_release(s->node);
	skv_free(s);
}

static int open_file(struct skv_engine *e, int dirfd, const char *path, bool write,
		     struct skv_engine_file **out, struct skv_error *err)
{
	struct skv_node *n = node_of(e);
	struct skv_node_conn *c = NULL;
	struct slab *s;
	bool good = false;
	int rc = skv_node_take(n, &c, err);

	(void)dirfd;
	if (rc != SKV_OK)
		return rc;
	s = skv_calloc(1, sizeof *s);
	if (!s) {
		skv_node_give(n, c, true);
		return skv_fail(err, SKV_E_NOMEM, NULL, "out of memory");
	}
	s->file = (struct skv_engine_file){ .fd = -1, .engine = e };
	s->number = (uint32_t)strtoul(path + strcspn(path, "0123456789"), NULL, 10);
	s->node = n;
	skv_node_keep(n);
	rc = ask_for_slab(c, s, write, &good, err);
	skv_node_give(n, c, good);
	if (rc == SKV_OK && n->local)
		rc = map_slab(s, write, err);
	if (rc == SKV_OK)
		*out = &s->file;
	else
		close_file(e, &s->file);
	return rc;
}

static int superblock(struct skv_engine *e, struct skv_engine_file *f,
		      uint8_t raw[SKV_SUPERBLOCK_SIZE], uint64_t *length)
{
	const struct slab *s = slab_of(f);

	SKV_CHECK(node_of(e) == s->node);
	memcpy(raw, s->superblock, sizeof s->superblock);
	*length = s->length;
	return SKV_OK;
}

/* A slab that the node gave up loses its magic; a node that ended, its connections. */
static bool still_there(struct skv_engine *e, struct skv_engine_file *f)
{
	struct skv_node *n = node_of(e);
	const struct slab *s = slab_of(f);
	struct skv_node_conn *c;
	struct skv_error err;

	if (atomic_load(&n->dead) || (s->base && memcmp(s->base, s->superblock, 8) != 0))
		return false;
	if (!s->base)
		return true; /* the node is asked anyway */
	if (skv_node_take(n, &c, &err) != SKV_OK)
		return false;
	skv_node_give(n, c, true);
	return true;
}

/* ---- mapped slabs ---------------------------------------------------------------------------- */

/* Looks at the deadline before each step. */
static void copy_run(struct skv_io_run *r, bool write, const struct skv_io_call *by)
{
	const struct slab *s = slab_of(r->file);
	uint8_t *at = s->base + r->offset;

	SKV_CHECK(r->offset + r->length <= s->length);
	for (int i = 0; i < r->n_iov; i++) {
		uint8_t *data = r->iov[i].iov_base;

		for (size_t left = r->iov[i].iov_len; left > 0;) {
			size_t n = left < STEP ? left : STEP;

			if (skv_deadline_passed(by)) {
				r->status = SKV_E_TIMEOUT;
				return;
			}
			memcpy(write ? at : data, write ? data : at, n);
			at += n;
			data += n;
			left -= n;
			r->done += n;
		}
	}
	r->arrived = r->done;
	r->ended_ms = skv_now_ms(by->clock);
}

/* ---- writers --------------------------------------------------------------------------------- */

static void fail_all(struct skv_io_run *runs, uint32_t n, int status, bool in_flight)
{
	for (uint32_t i = 0; i < n; i++) {
		runs[i].status = status;
		runs[i].done = 0;
		runs[i].in_flight = in_flight;
	}
}

static uint32_t left_ms(const struct skv_io_call *by)
{
	uint64_t now = skv_now_ms(by->clock);
	uint64_t left = by->at_ms == UINT64_MAX ? SKV_MAX_SESSION_MS
			: by->at_ms > now	? by->at_ms - now
						: 0;

	return left < SKV_MAX_SESSION_MS ? (uint32_t)left : SKV_MAX_SESSION_MS;
}

/* SKV_OK: the node knows that a write began, and the deadline had not passed then. */
static int begin(struct skv_node_conn *c, const struct skv_io_call *by)
{
	const struct skv_mn_frame q = { .op = SKV_MN_BEGIN, .extra = left_ms(by) };
	struct skv_mn_frame answer;
	struct skv_error err;
	bool late = false;

	if (skv_deadline_passed(by))
		return SKV_E_TIMEOUT;
	if (!skv_node_ask(c, &q, NULL, &answer, by, &late))
		return late ? SKV_E_TIMEOUT : SKV_E_NETWORK;
	if (answer.status != SKV_OK)
		return skv_node_refused(c, &answer, &err);
	return skv_deadline_passed(by) ? SKV_E_TIMEOUT : SKV_OK;
}

/* Sends a run as a frame. Returns false if the connection is unusable. */
static bool send_run(struct skv_node_conn *c, struct skv_io_run *r, const struct skv_io_call *by,
		     bool *late)
{
	const struct skv_mn_frame q = { .op = SKV_MN_WRITE, .file = slab_of(r->file)->number,
					.offset = r->offset, .length = r->length };
	uint8_t raw[SKV_MN_HEADER];
	struct iovec head = { raw, sizeof raw };

	skv_mn_encode(&q, raw);
	if (!skv_node_send(c, &head, 1, by, late) ||
	    !skv_node_send(c, r->iov, r->n_iov, by, late))
		return false;
	r->touched = true;
	return true;
}

/* Ends a write: the node reports how many bytes arrived since BEGIN. */
static bool end(struct skv_node_conn *c, uint64_t sent, const struct skv_io_call *by, bool *late)
{
	const struct skv_mn_frame q = { .op = SKV_MN_END };
	struct skv_mn_frame answer;

	return skv_node_ask(c, &q, NULL, &answer, by, late) && answer.status == SKV_OK &&
	       answer.length == sent;
}

/* Returns false if it is unknown which bytes have arrived. */
static bool send_runs(struct skv_node_conn *c, struct skv_io_run *runs, uint32_t n,
		      const struct skv_io_call *by, bool *late)
{
	uint64_t sent = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (skv_deadline_passed(by)) {
			runs[i].status = SKV_E_TIMEOUT;
			continue;
		}
		if (!send_run(c, &runs[i], by, late))
			return false;
		sent += runs[i].length;
	}
	if (!end(c, sent, by, late))
		return false;
	for (uint32_t i = 0; i < n; i++) {
		runs[i].done = runs[i].touched ? runs[i].length : 0;
		runs[i].ended_ms = skv_now_ms(by->clock);
	}
	return true;
}

/* Between BEGIN and END: copies. END needs no answer here. */
static bool copy_runs(struct skv_node_conn *c, struct skv_io_run *runs, uint32_t n,
		      const struct skv_io_call *by)
{
	const struct skv_mn_frame q = { .op = SKV_MN_END };
	uint8_t raw[SKV_MN_HEADER];
	struct iovec out = { raw, sizeof raw };

	for (uint32_t i = 0; i < n; i++)
		copy_run(&runs[i], true, by);
	skv_mn_encode(&q, raw);
	return skv_node_send(c, &out, 1, NULL, NULL);
}

/* ---- RDMA ------------------------------------------------------------------------------------ */

static const struct skv_mn_keys *keys_of(const struct skv_io_run *r)
{
	return &slab_of(r->file)->keys;
}

/* Returns true if the queue pair reaches all of these slabs. */
static bool by_rdma(const struct skv_node_conn *c, const struct skv_io_run *runs, uint32_t n)
{
	bool yes = c->qp != NULL;

	for (uint32_t i = 0; i < n && yes; i++)
		yes = skv_qp_reaches(c->qp, keys_of(&runs[i]));
	return yes;
}

/* Returns false if the connection must be closed, with its queue pair. */
static bool move_rdma(struct skv_node_conn *c, bool write, struct skv_io_run *runs, uint32_t n,
		      const struct skv_io_call *by)
{
	int rc;

	for (uint32_t i = 0; i < n; i++) {
		SKV_CHECK(runs[i].offset + runs[i].length <= slab_of(runs[i].file)->length);
		runs[i].done = 0;
	}
	rc = skv_qp_move(c->qp, write, runs, n, keys_of, by);
	for (uint32_t i = 0; i < n && rc != SKV_OK; i++)
		if (runs[i].done < runs[i].length) {
			runs[i].status = rc;
			runs[i].in_flight = write && runs[i].touched;
		}
	return rc == SKV_OK;
}

/* Between BEGIN and END: the node's count of bytes is of those over TCP. */
static bool write_rdma(struct skv_node_conn *c, struct skv_io_run *runs, uint32_t n,
		       const struct skv_io_call *by)
{
	bool late = false;

	return move_rdma(c, true, runs, n, by) && end(c, 0, by, &late);
}

static void write_runs(struct skv_engine *e, struct skv_io_run *runs, uint32_t n,
		       const struct skv_io_call *by)
{
	struct skv_node *node = node_of(e);
	struct skv_node_conn *c;
	struct skv_error err;
	bool late = false, good, rdma;
	int rc = skv_deadline_passed(by) ? SKV_E_TIMEOUT : skv_node_take(node, &c, &err);

	if (rc != SKV_OK) {
		fail_all(runs, n, rc, false);
		return;
	}
	rc = begin(c, by);
	if (rc != SKV_OK) { /* closing the connection ends what the node may think has begun */
		skv_node_give(node, c, false);
		fail_all(runs, n, rc, false);
		return;
	}
	rdma = by_rdma(c, runs, n);
	good = node->local ? copy_runs(c, runs, n, by)
	       : rdma	   ? write_rdma(c, runs, n, by)
			   : send_runs(c, runs, n, by, &late);
	skv_node_give(node, c, good);
	if (!good && !node->local && !rdma)
		fail_all(runs, n, late ? SKV_E_TIMEOUT : SKV_E_NETWORK, true);
}

/* ---- readers ------------------------------------------------------------------------ */

static bool ask_for(struct skv_node_conn *c, struct skv_io_run *runs, uint32_t n,
		    const struct skv_io_call *by, bool *late)
{
	uint8_t raw[SKV_MN_READS * SKV_MN_HEADER];
	struct iovec out = { raw, n * SKV_MN_HEADER };

	SKV_CHECK(n <= SKV_MN_READS);
	for (uint32_t i = 0; i < n; i++) {
		const struct skv_mn_frame q = { .op = SKV_MN_READ,
						.file = slab_of(runs[i].file)->number,
						.offset = runs[i].offset,
						.length = runs[i].length };

		skv_mn_encode(&q, raw + i * SKV_MN_HEADER);
	}
	return skv_node_send(c, &out, 1, by, late);
}

/* Buffer by buffer, so that what has arrived can be worked on. */
static bool receive_run(struct skv_node_conn *c, struct skv_io_run *r, const struct skv_io_call *by,
			bool *late)
{
	uint8_t raw[SKV_MN_HEADER];
	struct iovec head = { raw, sizeof raw };
	struct skv_mn_frame answer;
	struct skv_error err;

	if (!skv_node_receive(c, &head, 1, by, late) || !skv_mn_decode(raw, &answer) ||
	    answer.op != SKV_MN_READ)
		return false;
	if (answer.status != SKV_OK) {
		r->status = skv_node_refused(c, &answer, &err);
		return r->status != SKV_E_NETWORK;
	}
	if (answer.length != r->length)
		return false;
	for (int i = 0; i < r->n_iov; i++) {
		size_t length = r->iov[i].iov_len;

		if (!skv_node_receive(c, &r->iov[i], 1, by, late))
			return false;
		r->arrived += length;
	}
	r->done = r->length;
	r->ended_ms = skv_now_ms(by->clock);
	return true;
}

static bool fetch(struct skv_node_conn *c, struct skv_io_run *runs, uint32_t n,
		  const struct skv_io_call *by, bool *late)
{
	if (!ask_for(c, runs, n, by, late))
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (!receive_run(c, &runs[i], by, late))
			return false;
	return true;
}

/* Over TCP, or with the queue pair. */
static void read_far(struct skv_node *node, struct skv_io_run *runs, uint32_t n,
		     const struct skv_io_call *by)
{
	struct skv_node_conn *c;
	struct skv_error err;
	bool late = false, good = true;
	int rc = skv_deadline_passed(by) ? SKV_E_TIMEOUT : skv_node_take(node, &c, &err);

	if (rc != SKV_OK) {
		fail_all(runs, n, rc, false);
		return;
	}
	if (by_rdma(c, runs, n)) {
		good = move_rdma(c, false, runs, n, by);
		skv_node_give(node, c, good);
		return;
	}
	for (uint32_t i = 0; i < n && good; i += SKV_MN_READS) {
		uint32_t some = n - i < SKV_MN_READS ? n - i : SKV_MN_READS;

		late |= skv_deadline_passed(by);
		good = !late && fetch(c, runs + i, some, by, &late);
	}
	skv_node_give(node, c, good);
	for (uint32_t i = 0; i < n && !good; i++)
		if (runs[i].done < runs[i].length && runs[i].status == SKV_OK)
			runs[i].status = late ? SKV_E_TIMEOUT : SKV_E_NETWORK;
}

static void read_runs(struct skv_engine *e, struct skv_io_run *runs, uint32_t n,
		      const struct skv_io_call *by)
{
	struct skv_node *node = node_of(e);

	if (!node->local) {
		read_far(node, runs, n, by);
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		copy_run(&runs[i], false, by);
}

/* Does nothing: memory has no layer below to sync. */
static int sync_file(struct skv_engine *e, struct skv_engine_file *f)
{
	SKV_CHECK(node_of(e) == slab_of(f)->node);
	return SKV_OK;
}

/* Nodes are made by skv_node_open. */
static int create(const struct skv_engine_options *o, struct skv_engine **out,
		  struct skv_error *err)
{
	(void)o;
	(void)out;
	return skv_fail(err, SKV_E_UNSUPPORTED, "engine", "it is of storages of type memory only");
}

static void destroy(struct skv_engine *e) { skv_node_release(node_of(e)); }

const struct skv_engine_ops skv_engine_memory = {
	.size = sizeof skv_engine_memory,
	.name = "memory",
	.create = create,
	.destroy = destroy,
	.open = open_file,
	.close = close_file,
	.read = read_runs,
	.write = write_runs,
	.sync = sync_file,
	.superblock = superblock,
	.still_there = still_there,
};
