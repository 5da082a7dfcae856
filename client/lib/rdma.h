/*
 * rdma.h - moves bytes to and from a memory node by RDMA: what a handle has registered on which
 * device, queue pairs, and the pump that keeps one busy.
 *
 * A queue pair belongs to one TCP connection to the node and to one running call at a time
 * (node.h); it ends with it, and no request ever moves to another one.
 */
#ifndef SKV_CLIENT_RDMA_H
#define SKV_CLIENT_RDMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <skv/memory_node.h>

#include "engine.h"

/* ---- rdma.c: memory registered by a handle --------------------------------------------------- */

struct skv_rdma;
int skv_rdma_create(struct skv_rdma **out, struct skv_error *err);
/* After the last queue pair. NULL is allowed. */
void skv_rdma_destroy(struct skv_rdma *r);
/* Memory that will be moved again and again: registered on each device as soon as a queue pair uses
 * that. What cannot be registered is copied through a queue pair's own memory. */
void skv_rdma_map(struct skv_rdma *r, void *base, size_t length);
/* Before the memory is freed. No I/O on it may be running. */
void skv_rdma_unmap(struct skv_rdma *r, void *base);

/* ---- rdma_qp.c: queue pairs ------------------------------------------------------------------ */

struct skv_qp;
struct skv_qp_to {
	const struct sockaddr *address; /* of the node; its port is not looked at */
	uint16_t port;                  /* of rdma_cm there */
	uint64_t epoch, ticket;
	int control_fd; /* the TCP connection: where it ends, the queue pair is of no use */
};
/* Waits some seconds at most. SKV_E_UNSUPPORTED (no RDMA here, or not to there), SKV_E_UNAVAILABLE,
 * SKV_E_NOMEM; the message names the remedy. */
int skv_qp_connect(struct skv_rdma *r, const struct skv_qp_to *to, struct skv_qp **out,
		   struct skv_error *err);
/* Ends what is on its way; afterwards no buffer is touched. NULL is allowed. */
void skv_qp_destroy(struct skv_qp *q);
/* Returns true if the slab has a key for the node's device. */
bool skv_qp_reaches(const struct skv_qp *q, const struct skv_mn_keys *k);
const char *skv_qp_device(const struct skv_qp *q);

/* ---- rdma_pump.c ----------------------------------------------------------------------------- */

/* Where the file of a run is. */
typedef const struct skv_mn_keys *skv_qp_keys(const struct skv_io_run *r);
/* Moves the runs, in order. SKV_OK: all of them. Else the queue pair must be destroyed before the
 * buffers are touched again, and `done` says what each run moved: SKV_E_TIMEOUT (nothing was posted
 * after the deadline), SKV_E_UNAVAILABLE (the node does not have these bytes any more),
 * SKV_E_NETWORK. `touched` says of what runs something was posted. */
int skv_qp_move(struct skv_qp *q, bool write, struct skv_io_run *runs, uint32_t n,
		skv_qp_keys *keys, const struct skv_io_call *by);

#endif
