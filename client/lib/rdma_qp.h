/*
 * rdma_qp.h - shared by rdma.c, rdma_qp.c and rdma_pump.c.
 */
#ifndef SKV_CLIENT_RDMA_QP_H
#define SKV_CLIENT_RDMA_QP_H

#include "rdma.h"
#include "rdma_lib.h"

#define SKV_QP_DEPTH 64u        /* requests on their way, at most */
#define SKV_QP_SGES 16u         /* buffers of one request, at most */
#define SKV_QP_PIECE (1u << 20) /* bytes of one; every device takes that much */
#define SKV_QP_SLOT (256u << 10)
#define SKV_QP_SLOTS 4u         /* for unregistered memory */

/* A device that a queue pair uses, for one handle. */
struct skv_rdma_device {
	struct ibv_context *verbs; /* librdmacm's */
	struct ibv_pd *pd;
	uint32_t number; /* in skv_rdma */
	uint32_t depth, sges;
	uint8_t reads; /* outstanding at a time for one queue pair */
};

/* A request on its way. */
struct skv_qp_piece {
	uint32_t run, length;
	int slot; /* -1: the buffers are registered */
	uint64_t at; /* in the run */
};

struct skv_qp {
	struct skv_rdma *rdma;
	const struct skv_rdma_lib *lib;
	const struct skv_rdma_device *device;
	uint16_t theirs; /* the node's device: which of its rkeys is the right one */
	int control_fd;
	struct rdma_event_channel *events;
	struct rdma_cm_id *id;
	struct ibv_comp_channel *completions;
	struct ibv_cq *cq;
	uint8_t *slots;
	struct ibv_mr *slots_mr;
	/* Posted and completed in the same order: numbers modulo SKV_QP_DEPTH. */
	struct skv_qp_piece piece[SKV_QP_DEPTH];
	uint64_t posted, completed;
	uint32_t slots_used;
	uint64_t next_slot;
};

/* The handle's device of these verbs, made at the first call. NULL: an error. */
const struct skv_rdma_device *skv_rdma_device_of(struct skv_rdma *r,
						 const struct skv_rdma_lib *lib,
						 struct ibv_context *verbs, struct skv_error *err);
/* Returns true if this memory is registered there. */
bool skv_rdma_key(struct skv_rdma *r, const struct skv_rdma_device *d, const void *data,
		  size_t length, uint32_t *lkey);

#endif
